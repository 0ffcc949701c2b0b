"""How bash is parsed: which tree, which refusal and why; held against a real bash."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples, proof_size
from text_rows import text_rows
from work import assert_linear

from harness.shell import syntax
from harness.shell.cursor import MAX_DEPTH, MAX_WORDS
from harness.shell.parser import MAX_CHARACTERS, parse
from harness.shell.syntax import (
    Arithmetic,
    Case,
    CommandGroup,
    For,
    Glob,
    If,
    Literal,
    Modified,
    Node,
    Number,
    Parameter,
    Piece,
    ProcessFile,
    Redirection,
    Script,
    Simple,
    Substitution,
    Unread,
    While,
    Word,
)

# -- a tree as one line of text
#
# Words: plain characters as they are, quoted ones in '..', a pattern in <..>, a number behind #, an unquoted parameter
# $x and a quoted one "$x", commands $(..) and "$(..)" and <(..), a home folder HOME; pieces are joined by +.
# Commands: a simple one in [..], its redirections behind its words; the rest by name.


def shown(script: Script) -> str:
    parts = []
    for item in script.items:
        text = pipeline(item.first)
        text += "".join(f" {connector.value} {pipeline(other)}" for connector, other in item.rest)
        parts.append(text + (" &" if item.background else ""))
    return "; ".join(parts)


def pipeline(found: syntax.Pipeline) -> str:
    return " | ".join(command(node) for node in found.commands)


def command(node: Node) -> str:
    behind = "".join(f" {redirection(found)}" for found in node.redirections)
    text = ""
    match node:
        case Simple():
            inside = [f"{found.name}={word(found.value)}" for found in node.assignments]
            return f"[{' '.join([*inside, *map(word, node.words), *map(redirection, node.redirections)])}]"
        case CommandGroup():
            text = f"({shown(node.body)})" if node.subshell else f"{{{shown(node.body)}}}"
        case If():
            text = "if " + " elif ".join(f"{shown(test)} then {shown(body)}" for test, body in node.branches)
            text += f" else {shown(node.otherwise)}" if node.otherwise else ""
        case For():
            text = f"for {node.name} in {words(node.words)} do {shown(node.body)}"
        case While():
            text = f"while {shown(node.condition)} do {shown(node.body)}"
        case Case():
            bodies = " ;; ".join(map(shown, node.bodies))
            text = f"case {word(node.subject)} in {words(node.patterns)} do {bodies}"
        case syntax.Test():
            text = f"[[{words(node.words)}]]"
    return text + behind


def words(found: Sequence[Word] | None) -> str:
    return "-" if found is None else " ".join(map(word, found))


def word(found: Word) -> str:
    return "+".join(map(piece, found.pieces))


def piece(found: Piece) -> str:
    match found:
        case Literal():
            return f"'{found.text}'" if found.quoted else found.text
        case Glob():
            return f"<{found.text}>"
        case Parameter():
            return f'"${found.name}"' if found.quoted else f"${found.name}"
        case Modified():
            inside = f"{found.name} {found.operator} {found.operand}"
            return f'"${{{inside}}}"' if found.quoted else f"${{{inside}}}"
        case Number() | Arithmetic():
            return f"#{found.text}"
        case Substitution():
            return f'"$({shown(found.body)})"' if found.quoted else f"$({shown(found.body)})"
        case ProcessFile():
            return f"<({shown(found.body)})"
        case syntax.Tilde():
            return "HOME"


def redirection(found: Redirection) -> str:
    return f"{'' if found.descriptor is None else found.descriptor}{found.operator}{word(found.target)}"


def read(text: str) -> Script:
    """Parse a text that must be understood."""
    tree = parse(text)
    assert isinstance(tree, Script), tree
    return tree


def refused(text: str) -> Unread:
    """Parse a text that must not be understood."""
    tree = parse(text)
    assert isinstance(tree, Unread), shown(tree)
    return tree


def table(name: str) -> Iterator[Any]:
    """Yield the rows of a text beside this file; what a text cannot show stands in the list that they are put into."""
    for row in text_rows(Path(__file__).with_name(name)):
        (answer,) = row.answers
        yield pytest.param(row.text, answer, id=row.place)


# -- what is read

READ = [
    *table("parsed.txt"),
    ("  ls \t -la  ", "[ls -la]"),
    ("# a comment\n\nls", "[ls]"),
    ("echo $'a\\tb\\x41\\101\\u42\\U00000043\\cI\\'\\q'", "[echo 'a\tbAABC\t'\\q']"),
    ("# a comment \\\nls", "[ls]"),
    ("case x in esac", "case x in  do "),
]


@all_rows(("text", "tree"), READ)
def test_line_is_parsed_into_its_tree(text: str, tree: str) -> None:
    assert shown(read(text)) == tree


# -- what generic parsers lose (the list of the research notes, A to I): the tree holds it, or there is none

LOST_ELSEWHERE = [
    ("find . >/dev/null -exec touch x \\;", "[find . -exec touch x ';' >/dev/null]"),  # A: words behind a redirection
    ("rm 2>/dev/null -rf x", "[rm -rf x 2>/dev/null]"),
    ("echo ${x:-`id`}", None),  # B: backquotes inside ${...}
    ('echo "${x:-`id`}"', None),
    ("echo ${x%%$(id)}", None),  # C: commands in the operand of a pattern
    ("echo ${x^^$(id)}", None),
    ("cat <<E\n`id`\nE", None),  # D: backquotes in a here-document
    ("cat <<-E\n\ta\n\t\tb\n\tE\nid", "[cat <<'a\nb\n']; [id]"),  # E: bodies of <<-
    ("echo $\\\n(id)", None),  # F: a continued line inside $(
    ("echo ` id` ; ls", "[echo $([id])]; [ls]"),  # G: a blank behind a backquote
    ("ls\r-l", None),  # H: a carriage return is no blank
    ("echo $((a[x]))", None),  # I: arithmetic evaluates what names hold (so facets.py lets only those of integers pass)
    ("[[ x -eq 0 ]]", None),
    ("a[$(id)]=1", None),
]


@all_rows(("text", "tree"), LOST_ELSEWHERE)
def test_lines_difficult_for_other_parsers_are_read_or_refused(text: str, tree: str | None) -> None:
    if tree is None:
        refused(text)
    else:
        assert shown(read(text)) == tree


# -- what is refused, and why

REFUSED = [
    *table("refused.txt"),
    ("", "no command"),
    ("echo `# only a comment`", "no command"),
    ("cat <<E\nEE\n E\n", "not ended by a line of its own"),
    ("cat <<E 'a\nb'\nE\n", "does not begin right behind its line"),
    ("cat <<E $(a\n)\nE\n", "does not begin right behind its line"),
    ("echo $(cat <<E)\na\nE\n", "does not begin right behind its line"),
    ("ls\x00", "U+0000"),
    ("ls\r\nid", "U+000D"),
    ("ls \x1b[2K", "U+001B"),
    ("ls \u200b", "U+200B"),
    ("ls \u202etxt", "U+202E"),
    ("ls\xa0-l", "U+00A0"),
    ("ls \ud800", "U+D800"),
    ("ls \U000e0041", "U+E0041"),
    ("x |\n", "the end of the text where"),
]


@all_rows(("text", "reason"), REFUSED)
def test_unreadable_line_is_refused_with_a_reason(text: str, reason: str) -> None:
    assert reason in refused(text).reason


@all_rows(
    ("text", "column"),
    [
        ("ls {a,b", 4),
        ("ls; x() { y; }", 6),
        ("ls 'a", 4),
        ("ls a\u200b", 5),
        ("echo `ls {a,b`", 6),
        ("ls &&", 6),
        ("cat <<E\nx", 7),
    ],
)
def test_the_column_is_where_reading_stopped(text: str, column: int) -> None:
    assert refused(text).column == column


@all_rows("text", [" \n# only a comment", "# one\n# two"])
def test_text_of_comments_alone_is_empty(text: str) -> None:
    assert read(text).items == ()


# Broken syntax, behind commands that are whole; each is `bash -n`'s too.
BROKEN = [
    "echo 'x", 'echo "x', "ls &&", "ls ||", "ls |", "ls &&\n# c", "if true; then", "if true; then ls", "while true; do ls",
    "for f in a b; do echo $f", "{ ls;", "ls\nrm x '", "exit\n'", "cat <<E &&\nx\nE\n", "echo \"a $(echo 'b\")\"",
]  # fmt: skip
# What bash reads, or what is not known to be broken.
NOT_BROKEN = ["cat <<E", "cat <<E\nx", "! ", "time", "echo a\\", "if ! ", "f() {", "echo ${x", "x=(a"]


def complaint_of_bash(text: str) -> str:
    bash = shutil.which("bash") or ""
    done = subprocess.run([bash, "-n", "-c", text], capture_output=True, check=False, env={"LC_ALL": "C.UTF-8"})
    return done.stderr.decode(errors="replace") if done.returncode else ""


@all_rows(("text", "is_broken"), [*((text, True) for text in BROKEN), *((text, False) for text in NOT_BROKEN)])
def test_broken_syntax_gets_the_complaint_of_bash(text: str, is_broken: bool) -> None:
    script = parse(text)
    complaint = script.complaint if isinstance(script, Unread) else ""
    assert (bool(complaint), complaint in complaint_of_bash(text)) == (is_broken, True)


def test_bash_complains_too_wherever_a_cut_line_is_broken() -> None:
    rows = [row.text for row in text_rows(Path(__file__).parent / "parsed.txt")]
    cut = [row[:end] for row in rows for end in range(1, len(row), 7)]
    broken = [
        (text, script.complaint) for text in cut if isinstance(script := parse(text), Unread) and script.complaint
    ]
    assert len(broken) > 20
    assert [text for text, complaint in broken if complaint not in complaint_of_bash(text)] == []


# -- where the parts stand


def nodes(script: Script) -> Iterator[Node]:
    """Yield the commands of a script in the order of their beginnings, those of substitutions left out."""
    for item in script.items:
        for found in (item.first, *(other for _, other in item.rest)):
            for node in found.commands:
                yield node
                yield from (inner for body in bodies(node) for inner in nodes(body))


def bodies(node: Node) -> tuple[Script, ...]:
    match node:
        case CommandGroup() | For():
            return (node.body,)
        case If():
            pairs = tuple(body for branch in node.branches for body in branch)
            return (*pairs, node.otherwise) if node.otherwise else pairs
        case While():
            return (node.condition, node.body)
        case Case():
            return node.bodies
        case _:
            return ()


def test_the_text_of_a_part_is_its_slice() -> None:
    text = " ! a 'b'  2>f | { c; d ; } >g && A=1  e # x\n if h; then [[ i ]] ; fi ; (j) & for k in l; do m; done  "
    script = read(text)
    assert [item.text for item in script.items] == [
        "! a 'b'  2>f | { c; d ; } >g && A=1  e",
        "if h; then [[ i ]] ; fi",
        "(j)",
        "for k in l; do m; done",
    ]
    assert script.items[0].first.text == "! a 'b'  2>f | { c; d ; } >g"
    assert [node.text for node in nodes(script)] == [
        "a 'b'  2>f",
        "{ c; d ; } >g",
        "c",
        "d",
        "A=1  e",
        "if h; then [[ i ]] ; fi",
        "h",
        "[[ i ]]",
        "(j)",
        "j",
        "for k in l; do m; done",
        "m",
    ]


def only(text: str) -> Simple:
    """Parse a text of one simple command."""
    (node,) = nodes(read(text))
    assert isinstance(node, Simple)
    return node


def test_words_and_redirections_have_their_positions() -> None:
    text = "A='x' ls  \"a b\"c 2> f <<E\nbody\nE"
    node = only(text)
    assert [text[found.start : found.end] for found in node.words] == ["ls", '"a b"c']
    assert [text[found.start : found.end] for found in node.redirections] == ["2> f", "<<E"]
    assert [text[found.target.start : found.target.end] for found in node.redirections] == ["f", "body\n"]
    (assignment,) = node.assignments
    assert text[assignment.start :].startswith("A='x'")
    assert text[assignment.value.start : assignment.value.end] == "'x'"


def test_text_inside_backquotes_is_the_unescaped_one() -> None:
    (found,) = only("a `b \\$c`").words[1].pieces
    assert isinstance(found, Substitution)
    assert [inner.text for inner in nodes(found.body)] == ["b $c"]


@all_rows(
    ("text", "constant", "plain"),
    [("ab", "ab", True), ("a'b'", "ab", False), ("''", "", False), ("a$x", None, False), ("*", None, False)],
)
def test_a_constant_word_has_a_value(text: str, constant: str | None, plain: bool) -> None:
    found = only(text).words[0]
    assert (found.constant, found.plain) == (constant, plain)


# -- limits


@all_rows(
    ("text", "reason"),
    [
        ("a" * (MAX_CHARACTERS + 1), "longer than"),
        ("a" * 1_000_000, "longer than"),
        ("a " * (MAX_WORDS + 1), "words"),
        ("`a`;" * (MAX_WORDS + 1), "words"),
        ("( " * (MAX_DEPTH + 1) + "a" + " )" * (MAX_DEPTH + 1), "levels"),
        ("echo " + '"$(' * (MAX_DEPTH + 1) + "a" + ')"' * (MAX_DEPTH + 1), "levels"),
        ("[[ " + "( " * (MAX_DEPTH + 1) + "a" + " )" * (MAX_DEPTH + 1) + " ]]", "levels"),
        ("( " * 4_000, "levels"),
        ("$( " * 3_000, "levels"),
    ],
)
def test_line_beyond_the_limits_is_refused(text: str, reason: str) -> None:
    assert reason in refused(text).reason


@all_rows(
    "text",
    ["a" * MAX_CHARACTERS, "a " * MAX_WORDS, "( " * MAX_DEPTH + "a" + " )" * MAX_DEPTH],
    ids=["characters", "words", "levels"],
)
def test_up_to_the_limits_everything_is_read(text: str) -> None:
    read(text)


REPEATED = [
    *("a; ", "'' ", '"" ', "\\a", "$x ", "${x}", "$((1)) ", "$(a) ", "`a`", "[a]", "[a", "{}", "*", "~", "\\\n", "#\n"),
    *("a <<b\nb\n", "a <<b ", "é", "a && ", "a | ", "if a; then ", "a=b ", "$'\\n'", "$'", "$(", "((", "<(", "a 2>b "),
]


@all_rows("part", REPEATED)
@all_rows("quote", ["", '"', "'", "`", "$(", "( "])
def test_work_is_linear(part: str, quote: str) -> None:
    assert_linear(lambda size: quote + part * (size // len(part)), parse, proof_size("TEXT", 200, full=800))


# -- random texts

TOKENS = [
    *" \t\n;&|()<>{}[]$`'\"\\#!*?~=-ab1é",
    *(
        "$(",
        "((",
        "))",
        "<<",
        "<<-",
        "<(",
        "\\\n",
        "${",
        "$'",
        '$"',
        "$x",
        "$$",
        "$?",
        "&&",
        "||",
        ";;",
        "|&",
        "&>",
        ">&",
    ),
    *(
        " ",
        " ",
        "\n",
        "EOF\n",
        "<<EOF",
        "2>",
        "if ",
        "then ",
        "; fi",
        "while ",
        "; do ",
        "; done",
        "for x ",
        "in ",
        "case ",
    ),
    *("esac", "{ ", "; }", "[[ ", " ]]", "time ", "! ", "A=", "a ", "b ", "'a b'", '"$(a)"', "a[1]", "\r", "\u200b"),
]


@given(st.lists(st.sampled_from(TOKENS), max_size=25).map("".join))
@example("$(" * 30)
@example("a\\\n")
@example("$((")
@example("<<'")
@settings(max_examples=examples(400))
def test_parser_accepts_any_text_without_an_exception(text: str) -> None:
    tree = parse(text)
    if isinstance(tree, Unread):
        assert tree.reason
        assert 1 <= tree.column <= len(text) + 1
        return
    for node in nodes(tree):
        assert node.text in text
        if isinstance(node, Simple):
            assert node.words or node.assignments or node.redirections
            for found in node.words:
                check_word(found, text)


def check_word(found: Word, text: str) -> None:
    assert 0 <= found.start < found.end <= len(text)
    assert found.pieces
    literals = [piece if isinstance(piece, Literal) else None for piece in found.pieces]
    for one, other in pairwise(literals):
        assert one is None or other is None or one.quoted is not other.quoted
    assert all(literal.text or literal.quoted for literal in literals if literal)


_PIECES = [part for part in TOKENS if not set(part) & set("'#`\\") and part not in ("<<", "<<-", "<<EOF")]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), st.data())
@example("a &&b", None)
@example("a 2>&1 >|f", None)
@example("if a;then b;fi", None)
@example('A=$x "$(b;c)" ${y}', None)
@settings(max_examples=examples(300))
def test_continued_line_has_the_same_tree(text: str, data: st.DataObject | None) -> None:
    """bash joins it before all else: wherever it stands outside of quotes, the tree is the same, or there is none."""
    places = range(len(text) + 1) if data is None else [data.draw(st.integers(0, len(text)))]
    for at in places:
        joined = parse(f"{text[:at]}\\\n{text[at:]}")
        if isinstance(joined, Script):
            assert shown(joined) == shown(read(text))


# -- against a real bash

BASH = shutil.which("bash") or ""
needs_bash = pytest.mark.skipif(not BASH, reason="there is no bash on this machine")


def run_bash(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BASH, "--noprofile", "--norc", *arguments],
        cwd=folder,
        env={"LC_ALL": "C.UTF-8", **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


_WORDS = [
    *("a", "b", "1", "-x", "x=y", "'a b'", '"a b"', '"$x"', "$x", "$?", "a*b", "[ab]", "{}", "~", "~/a", "\\;", "\\$"),
    *("$'a\\tb'", "$((1+2))", "if", "done", "}", "[", "]", "!", "#", "a#", "''", "<(a)", "{a,b}", "a\\\nb", "'a\nb'"),
    *('"$(a)"', "`a`", "$(a)", "A=1", ">f", "2>f", ">&2", "2>&1", "&>f", "<f", "<<<a", ">|f", "12>f", ">&-", ">$x"),
]
_SHAPES = [
    *("( %s )", "{ %s; }", "if %s; then %s; fi", "if %s\nthen %s\nelse %s\nfi", "for x in a b; do %s; done", "! %s"),
    *("while %s; do %s; done", "case a in a|b) %s;; *) %s\nesac", "time %s", "%s >f", "a $(%s) b", 'a "$(%s)"'),
    *(
        "a <(%s)",
        "%s && %s",
        "%s || %s",
        "%s | %s",
        "%s; %s",
        "%s & %s",
        "%s\n%s",
        "%s &&\\\n%s",
        "%s # a\n%s",
        "a `%s`",
    ),
    *("a <<E && %s\nx\nE\n%s", "a <<'E'; %s\n$x\nE\n", "[[ a == %s ]]", 'a "$(b <<E\nx\nE\n)"; %s'),
]


def filled(shape: str, parts: list[str]) -> str:
    for part in parts:
        shape = shape.replace("%s", part, 1)
    return shape


def changed(text: str, changes: list[tuple[int, str]]) -> str:
    """Insert tokens at places; an empty token takes the character there away."""
    for place, token in changes:
        at = place % (len(text) + 1)
        text = text[:at] + token + text[at + (not token) :]
    return text


_simple = st.lists(st.sampled_from(_WORDS), min_size=1, max_size=4).map(" ".join)
_script = st.recursive(
    _simple,
    lambda inner: st.builds(filled, st.sampled_from(_SHAPES), st.lists(inner, min_size=3, max_size=3)),
    max_leaves=4,
)
_changes = st.lists(st.tuples(st.integers(0, 500), st.sampled_from([*TOKENS, "", "", "", "", ""])), max_size=2)
SCRIPTS = st.builds(changed, _script, _changes)


@needs_bash
@given(SCRIPTS)
@settings(
    deadline=None,
    max_examples=examples(400),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_bash_accepts_the_syntax_of_parsed_lines(tmp_path: Path, text: str) -> None:
    if isinstance(parse(text), Unread):
        return
    done = run_bash("-n", "-c", "--", text, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), text


_QUOTED = [
    *(
        "a",
        "b",
        "'c d'",
        '"e f"',
        "\\g",
        "\\\\",
        '\\"',
        "\\'",
        "''",
        '""',
        "'\"'",
        '"\'"',
        '"\\$"',
        '"\\`"',
        '"\\""',
        '"\\\\"',
    ),
    *(
        '"\\a"',
        "'\\'",
        "$'\\n'",
        "$'\\x41\\''",
        "$'\\101\\q'",
        "\"$'a'\"",
        '"a$"',
        "=",
        ":",
        ",",
        ".",
        "%",
        "@",
        "+",
        "-",
        "é",
    ),
    *(
        "#",
        "!",
        "]",
        "$'a b'",
        "'$x'",
        "\\$x",
        "'*'",
        '"?"',
        "\\*",
        "{}",
        "'`x`'",
        '"~"',
        "\\~",
        "a~",
        "\\[",
        "'{a,b}'",
    ),
    *("\\{a,b\\}", "a\\\nb", "'a\\\nb'", '"a\\\nb"', "'a\nb'", "\\#", "\\;", "\\ ", "$'\\t'"),
]
_quoted_words = st.lists(st.lists(st.sampled_from(_QUOTED), min_size=1, max_size=5).map("".join), max_size=3)


@needs_bash
@given(st.lists(_quoted_words.map(" ".join), min_size=1, max_size=12))
@settings(
    deadline=None,
    max_examples=examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_constant_words_are_the_words_of_bash(tmp_path: Path, lines: list[str]) -> None:
    """Each line is a command `p`; a function of that name prints the words that bash made of it."""
    trees = {text: parse(text) for text in (f"p {line}" for line in lines)}
    texts = [text for text, tree in trees.items() if isinstance(tree, Script)]
    expected = [
        [found.constant for found in node.words]
        for text in texts
        for node in nodes(read(text))
        if isinstance(node, Simple) and node.words[0].constant == "p"  # `p # \` and a line break: two commands
    ]
    (tmp_path / "start").write_text("p() { printf '%s\\0' p \"$@\" $'\\001'; }\n")
    done = run_bash("-c", "--", "\n".join([*texts, "true"]), folder=tmp_path, BASH_ENV=str(tmp_path / "start"))
    assert [group.split("\0")[:-1] for group in done.stdout.split("\1\0")[:-1]] == expected
