"""Patterns against words and names: what loosens accounts for everything, what tightens is content with one."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec
from rows import all_rows
from sizes import examples
from work import assert_linear

from harness.paths import TreeNames, fold
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.patterns import PathPatterns, check_pattern, is_simple, path_marks
from harness.policy.spellings import NUMBER_FLAG, star_match
from harness.programs.catalog import CLUSTERS, model_of
from harness.programs.options import option_table
from harness.programs.program import Program, Style


def pattern(*tokens: str, flags: Sequence[str] | None = None) -> ArgvPattern:
    """Return a pattern as a policy file writes it: `|` between alternatives, `...` at the end."""
    rest = tokens[-1:] == ("...",)
    words = tokens[:-1] if rest else tokens
    return ArgvPattern(
        tokens=tuple(tuple(word.split("|")) for word in words),
        rest=rest,
        flags=None if flags is None else tuple(flags),
    )


PYTEST = pattern("pytest", "...", flags=["-q", "-x", "-k", "--maxfail", "-la"])
MODULE = pattern("python3|python3.11", "-m", "pytest|unittest", "...", flags=["-x", "-v", "-s"])
GO = pattern("go", "test", "...", flags=["-count", "-run", "-v"])
EXACT = pattern("git", "status|diff")

COVERS = [
    # the whole command, nothing else
    (EXACT, "git status", True),
    (EXACT, "git diff", True),
    (EXACT, "git", False),
    (EXACT, "git status x", False),
    (EXACT, "git status -s", False),
    (EXACT, "git -C x status", False),
    (EXACT, "git log", False),
    (EXACT, "Git status", False),
    (EXACT, "/usr/bin/git status", False),
    (EXACT, "./git status", False),
    (EXACT, "x git status", False),
    (pattern("ls"), "ls", True),
    (pattern("ls"), "ls -", False),
    (pattern("ls", "..."), "ls - a", True),
    (pattern("ls", "..."), "ls", True),
    (pattern("ls", "..."), "ls -l", False),
    (pattern("ls", "...", flags=[]), "ls -l", False),
    (pattern("npm", "run", "test"), "npm run test", True),
    (pattern("npm", "run", "test"), "npm run tests", False),
    # a program with a folder is another program
    (pattern("./run.sh", "..."), "./run.sh a", True),
    (pattern("./run.sh", "..."), "run.sh a", False),
    # options: those that are listed, as they are listed
    (PYTEST, "pytest", True),
    (PYTEST, "pytest tests/a.py", True),
    (PYTEST, "pytest -q tests -x", True),
    (PYTEST, "pytest -k name", True),
    (PYTEST, "pytest --maxfail 3", True),
    (PYTEST, "pytest --maxfail=3", True),
    (PYTEST, "pytest -la", True),
    (PYTEST, "pytest -p evil", False),
    (PYTEST, "pytest -pevil", False),
    (PYTEST, "pytest -al", False),
    (PYTEST, "pytest --max 3", False),
    (PYTEST, "pytest --maxfailx=3", False),
    (PYTEST, "pytest --maxfail-", False),
    (PYTEST, "pytest --", False),
    (PYTEST, "pytest -- -p", False),
    (PYTEST, "pytest -k -p", False),
    (PYTEST, "pytest tests -p evil", False),
    (PYTEST, "pytest -c=x", False),
    (pattern("git", "log", "...", flags=["--", "-s"]), "git log -- a", True),
    (pattern("git", "log", "...", flags=["--", "-s"]), "git log -- --output=x", False),
    # a dash and digits
    (pattern("head", "...", flags=[NUMBER_FLAG]), "head -20 a", True),
    (pattern("head", "...", flags=[NUMBER_FLAG]), "head -2x a", False),
    (pattern("head", "...", flags=[NUMBER_FLAG]), "head -\u0665 a", False),
    (pattern("head", "...", flags=[NUMBER_FLAG]), "head --20 a", False),
    (pattern("head", "...", flags=["-n"]), "head -20 a", False),
    # letters in one word, of a program that is known to read them so: each is listed, and one with a value ends the word
    (PYTEST, "pytest -qx", True),
    (PYTEST, "pytest -qqxk name", True),
    (PYTEST, "pytest -qxkname", True),
    (PYTEST, "pytest -kname", True),
    (PYTEST, "pytest -k=name", True),
    (PYTEST, "pytest -qv", False),
    (PYTEST, "pytest -qp evil", False),
    (PYTEST, "pytest -qpevil", False),
    (PYTEST, "pytest -xcq", False),
    (PYTEST, "pytest -xé", False),
    (PYTEST, "pytest -q-", False),
    (PYTEST, "pytest --qx", False),
    (pattern("pytest", flags=["-q", "-k"]), "pytest -qk name", False),
    (MODULE, "python3 -m pytest -xvs", True),
    (MODULE, "python3.11 -m pytest -xvs tests", True),
    (MODULE, "python3 -m pytest -xvspevil", False),
    (MODULE, "python3 -m unittest -xv", False),
    (pattern("python3", "x.py", "...", flags=["-m", "-x", "-v"]), "python3 x.py -m pytest -xv", False),
    (pattern("./pytest", "...", flags=["-q", "-x"]), "./pytest -qx", False),
    (pattern("runner", "...", flags=["-q", "-x"]), "runner -qx", False),
    (pattern("grep", "...", flags=["-r", "-n", "-e"]), "grep -rne x a", True),
    (pattern("grep", "...", flags=["-r", "-n"]), "grep -rnf x a", False),
    (pattern("cargo", "test", "...", flags=["-q", "-j"]), "cargo test -qj4 a", True),
    (pattern("cargo", "...", flags=["-q", "-v"]), "cargo -qv test", False),
    (pattern("make", "test", flags=["-j", "-s"]), "make test -sj4", True),
    (pattern("make", "test", flags=["-j", "-s"]), "make test -sf x", False),
    # one dash and a value behind `=`, of a program that has long options with one dash
    (GO, "go test -count=1 -run=A ./...", True),
    (GO, "go test -count 1 ./...", True),
    (GO, "go test -vrun A", False),
    (GO, "go test -exec=sh ./...", False),
    (GO, "go test -counts=1 ./...", False),
    (GO, "go test --count=1 ./...", False),
    (pattern("./go", "test", "...", flags=["-count"]), "./go test -count=1", False),
    (pattern("x", "...", flags=["-a=1", "--b=2"]), "x -a=1 --b=2", True),
    (pattern("x", "...", flags=["-a=1", "--b=2"]), "x -a=2", False),
    (pattern("x", "...", flags=["-a=1", "--b=2"]), "x --b=3", False),
    (pattern("x", "...", flags=["-a=1", "--b=2"]), "x --b", False),
    # options without operands
    (pattern("make", flags=["-s"]), "make -s", True),
    (pattern("make", flags=["-s"]), "make -s all", False),
]


@all_rows(
    ("rule", "line", "covered"),
    [pytest.param(*row, id=f"{row[0].tokens} {row[0].flags}: {row[1]!a} {row[2]}") for row in COVERS],
)
def test_an_auto_pattern_accounts_for_every_word(rule: ArgvPattern, line: str, covered: bool) -> None:
    assert rule.covers(line.split(" ")) is covered


@all_rows("name", sorted(CLUSTERS))
def test_a_program_that_clusters_letters_has_no_long_option_with_one_dash(name: str) -> None:
    def tables(program: Program) -> Iterator[str]:
        yield program.options
        for inner in program.subcommands.values():
            yield from tables(inner)

    model = model_of(name)
    assert model is not None
    spellings = {each for options in tables(model) for each in option_table(options)} - {"-NUM"}
    assert (model.style in (Style.GNU, Style.POSIX), [s for s in spellings if s[1] != "-" and len(s) > 2]) == (True, [])


PUSH = pattern("git", "push")
FORCE = pattern("git", "push", flags=["-f", "--force", "--mirror"])
REFSPEC = pattern("git", "push", flags=["+WORD", ":WORD"])

HITS = [
    (PUSH, "git push", True),
    (PUSH, "git push origin main", True),
    (PUSH, "/usr/bin/git push", True),
    (PUSH, "../git push", True),
    (PUSH, "git -C sub push", True),
    (PUSH, "git -c a=b -C sub --no-pager push", True),
    (PUSH, "git --git-dir=x push", True),
    (PUSH, "git --git-dir x push", True),
    (PUSH, "git -- push", True),
    (PUSH, "git stash push", False),
    (PUSH, "git log push", False),
    (PUSH, "git log --grep push", False),
    (PUSH, "git pushx", False),
    (PUSH, "gitx push", False),
    (PUSH, "git", False),
    (PUSH, "push git", False),
    (PUSH, "echo git push", False),
    (PUSH, "git/ push", False),
    (pattern("git", "push", "..."), "git push x", True),
    (pattern("npm|pnpm", "publish|unpublish"), "pnpm --access public unpublish", True),
    (pattern("git", "remote", "add"), "git -C x remote -v add y", True),
    (pattern("git", "remote", "add"), "git remote show add", False),
    # a rule that names a folder means the program in it, wherever it is called from
    (pattern("./deploy.sh"), "./deploy.sh", True),
    (pattern("./deploy.sh"), "deploy.sh", True),
    (pattern("./deploy.sh"), "/srv/deploy.sh now", True),
    (pattern("/usr/sbin/reboot"), "reboot", True),
    # flags: one of them, anywhere behind
    (FORCE, "git push", False),
    (FORCE, "git push -f", True),
    (FORCE, "git push origin main -f", True),
    (FORCE, "git push -uf", True),
    (FORCE, "git push -fu", True),
    (FORCE, "git push --force", True),
    (FORCE, "git push --force=x", True),
    (FORCE, "git push --forc", True),
    (FORCE, "git push --m", True),
    (FORCE, "git push --mirr origin", True),
    (FORCE, "git push -- -f", True),
    (FORCE, "git -C x push -f", True),
    (FORCE, "git push -u origin", False),
    (FORCE, "git push --follow-tags", False),
    (FORCE, "git push --", False),
    (FORCE, "git push -", False),
    (FORCE, "git push origin f", False),
    (pattern("terraform", "apply", flags=["-auto-approve"]), "terraform apply -auto-approve", True),
    (pattern("terraform", "apply", flags=["-auto-approve"]), "terraform apply -auto-approve=true", True),
    (pattern("terraform", "apply", flags=["-auto-approve"]), "terraform apply --auto-approve", True),
    (pattern("terraform", "apply", flags=["--auto-approve"]), "terraform apply -auto-approve", True),
    (pattern("terraform", "apply", flags=["-auto-approve"]), "terraform apply -auto", False),
    # an operand that begins so
    (REFSPEC, "git push origin +main", True),
    (REFSPEC, "git push origin :main", True),
    (REFSPEC, "git -C x push origin a:b +a:b", True),
    (REFSPEC, 'git push origin "+$BRANCH"', True),
    (REFSPEC, "git push origin main:main", False),
    (REFSPEC, "git push origin :", False),
    (REFSPEC, "git push origin +", False),
    (REFSPEC, "git push origin a+b -- +", False),
    (REFSPEC, "git push -f", False),
    (pattern("head", flags=[NUMBER_FLAG]), "head -20 x", True),
    (pattern("head", flags=[NUMBER_FLAG]), "head -n x", False),
]


@all_rows(
    ("rule", "line", "hit"),
    [pytest.param(*row, id=f"{row[0].tokens} {row[0].flags}: {row[1]} {row[2]}") for row in HITS],
)
def test_a_strict_pattern_is_hit_past_options_and_folders(rule: ArgvPattern, line: str, hit: bool) -> None:
    words = line.split(" ")
    assert rule.hits(words) is hit
    assert rule.hits_anywhere(words) or not hit
    assert rule.hits_anywhere(["sudo", "-u", "x", *words]) or not hit


@all_rows(
    ("rule", "line", "hit"),
    [
        pytest.param(PUSH, "sudo git push", True, id="behind a wrapper"),
        pytest.param(PUSH, "git status git push", True, id="at the second place of its program"),
        pytest.param(PUSH, "git status x push", False, id="another subcommand"),
        pytest.param(FORCE, "-f git push", False, id="the flag in front"),
        pytest.param(FORCE, "git push x git push -f", True, id="the flag behind the second"),
        pytest.param(PUSH, "", False, id="no words"),
    ],
)
def test_a_strict_pattern_is_hit_at_any_place_of_loose_words(rule: ArgvPattern, line: str, hit: bool) -> None:
    assert rule.hits_anywhere(line.split()) is hit


WORDS = st.lists(
    st.sampled_from(["git", "/x/git", "push", "add", "-f", "-C", "--force", "x", "-xf", "--", ""]), max_size=8
)


@settings(max_examples=examples(400))
@given(
    WORDS, st.sampled_from([PUSH, FORCE, pattern("git", "add|push", "x"), pattern("git"), pattern("git", flags=["-f"])])
)
def test_anywhere_means_at_some_position(words: list[str], rule: ArgvPattern) -> None:
    assert rule.hits_anywhere(words) is any(rule.hits(words[start:]) for start in range(len(words)))


@settings(max_examples=examples(400))
@given(WORDS)
def test_words_covered_by_an_auto_rule_are_hit_by_a_strict_one(words: list[str]) -> None:
    """Tightening is never narrower than loosening: `deny` in place of `auto` leaves nothing to slip through."""
    for rule in (pattern("git", "push|add", "...", flags=["-f", "--force"]), pattern("git", "push", "x")):
        assert not rule.covers(words) or ArgvPattern(tokens=rule.tokens, rest=rule.rest).hits(words)


@all_rows(
    "words",
    [
        pytest.param(lambda count: ["git", *["-a"] * count], id="options"),
        pytest.param(lambda count: ["git", *["-a", "x"] * (count // 2)], id="options with values"),
        pytest.param(lambda count: ["git", "-a"] * (count // 2), id="the program again and again"),
        pytest.param(lambda count: ["git", "push"] * (count // 2), id="the pattern again and again"),
        pytest.param(lambda count: ["git", "push", *["--forced"] * count], id="options that begin like the flag"),
    ],
)
@all_rows("rule", [PUSH, FORCE, pattern("git", "a", "b", "c", flags=["-z"])])
def test_the_work_of_hits_is_linear(rule: ArgvPattern, words: Callable[[int], list[str]]) -> None:
    assert_linear(words, rule.hits, 500)
    assert_linear(words, rule.hits_anywhere, 500)


# Paths.

NAME = st.text("abA.-e\u0301\n ", min_size=1, max_size=4).filter(
    lambda name: name.strip(". ") != "" and name == name.strip()
)
SIMPLE = st.builds(
    lambda lead, parts, trail: lead + "/".join(parts) + trail,
    st.sampled_from(["", "/", "**/"]),
    st.lists(
        st.text("abA.*-e", min_size=1, max_size=4).filter(lambda part: part not in (".", "..")), min_size=1, max_size=3
    ),
    st.sampled_from(["", "/"]),
).filter(lambda text: is_simple(text) and check_pattern(text) is None)


PARTS = st.text("abA.-e", min_size=1, max_size=4).filter(lambda part: part not in (".", ".."))


@settings(max_examples=examples(800))
@given(st.lists(SIMPLE, min_size=1, max_size=4), st.lists(PARTS, min_size=1, max_size=4))
@example(["*"], ["a"])
@example(["a/"], ["a"])
@example(["/a*b/"], ["aab", "x"])
@example(["a/b"], ["x", "a", "b"])
@example(["*.pem", "a/", "b"], ["a.pem", "b"])
def test_simple_patterns_match_like_pathspec(texts: list[str], parts: list[str]) -> None:
    name = "/".join(parts)
    rule = PathPatterns(patterns=tuple(texts))
    spec = GitIgnoreSpec.from_lines(texts)
    folded = GitIgnoreSpec.from_lines([text.casefold() for text in texts])
    as_it_is = spec.match_file(name) or spec.match_file(f"{name}/")
    as_folded = folded.match_file(name.casefold()) or folded.match_file(f"{name.casefold()}/")
    assert rule.hits([name]) is bool(as_it_is or as_folded)
    assert rule.covers([name]) is any(means(text, parts) for text in texts)


HARD = st.builds(
    lambda lead, parts, trail: lead + "/".join(parts) + trail,
    st.sampled_from(["", "/", "**/"]),
    st.lists(
        st.lists(st.sampled_from(["a", "A", ".", "*", "**", "?", "-", "[ab]", "[!b]"]), min_size=1, max_size=3)
        .map("".join)
        .filter(lambda part: part not in (".", "..")),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["", "/", "/**"]),
).filter(lambda text: check_pattern(text) is None)


def means(pattern: str, parts: Sequence[str]) -> bool:
    """Say by pathspec whether `pattern` means a file itself, or a folder with all below it in which that lies."""
    if {*pattern.removeprefix("/").split("/")} == {"**"}:
        return True
    wanted = pattern.removesuffix("/**").strip("/").split("/")
    if "/" not in pattern.removesuffix("/"):
        wanted.insert(0, "**")
    if pattern.endswith(("/", "/**")):
        # `a/**/` is read as `a/`.
        folders = [wanted[:end] for end in range(len(wanted) + 1) if {*wanted[end:]} <= {"**"}]
        return any(part_by_part(one, parts[:depth]) for one in folders for depth in range(1, len(parts)))
    return part_by_part(wanted, parts)


def part_by_part(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    if not wanted or not parts:
        return not wanted and not parts
    if wanted == ["**"]:
        return True
    if wanted[0] == "**":
        return part_by_part(wanted[1:], parts) or part_by_part(wanted, parts[1:])
    same = GitIgnoreSpec.from_lines([f"/{wanted[0]}"]).match_file(parts[0])
    return bool(same) and part_by_part(wanted[1:], parts[1:])


@settings(max_examples=examples(800))
@given(st.lists(HARD, min_size=1, max_size=3), st.lists(PARTS, min_size=1, max_size=4))
@example(["[ab]x*"], ["ax", "b"])
@example(["a/**/b?"], ["a", "b1", "b2", "b"])
@example(["**"], ["a", "b"])
@example(["A[!b]A/"], ["A", "A", "A"])
def test_pattern_covers_the_file_or_everything_below(texts: list[str], parts: list[str]) -> None:
    rule = PathPatterns(patterns=tuple(texts))
    assert rule.covers(["/".join(parts)]) is any(means(text, parts) for text in texts)


@settings(max_examples=examples(300))
@given(st.lists(SIMPLE, min_size=1, max_size=4), st.lists(NAME, min_size=1, max_size=3).map("/".join))
def test_covered_path_is_also_hit(texts: list[str], name: str) -> None:
    rule = PathPatterns(patterns=tuple(texts))
    assert not rule.covers([name]) or rule.hits([name])


TREE_NAME = st.text("abA.-/e\u0301\u00df\n", min_size=1, max_size=12).filter(
    lambda name: "//" not in name and not name.startswith("./")  # pathspec takes `./` off, and no resolved path has one
)


@settings(max_examples=examples(800))
@given(st.lists(SIMPLE | HARD, min_size=1, max_size=4), st.lists(TREE_NAME, max_size=6))
@example(["a/*"], ["x/a", "b"])
@example(["[!b][!b][!b]", "a"], ["a", "x", "a"])
@example(["*"], ["b", "a\nb", "a"])
@example(["/a"], ["/a", "a", "x/a"])
@example(["ss"], ["a", "\u00df"])
@example(["[A-a]"], ["_"])
def test_one_search_finds_of_many_names_those_that_are_hit(texts: list[str], names: list[str]) -> None:
    rule = PathPatterns(patterns=tuple(texts))
    assert set(rule.hit_among(TreeNames(names))) == {name for name in names if rule.hits([name])}


PATTERNS = st.lists(
    SIMPLE | HARD | st.sampled_from(["a.b", "*.e", "A*.b", "a?b", "\u212a", "a\\*"]), min_size=1, max_size=3
)


@settings(max_examples=examples(800))
@given(
    PATTERNS,
    st.lists(TREE_NAME | st.sampled_from(["x/a.b", "k", "a/\u212a"]), min_size=1, max_size=3),
    st.sampled_from(["", "b", "a/b.e"]),
)
@example(["\u017f"], ["s"], "")
@example(["k"], ["\u212a"], "")
@example(["b"], ["x"], "b")
def test_what_a_pattern_matches_has_one_of_its_marks(texts: list[str], names: list[str], below: str) -> None:
    patterns = PathPatterns(patterns=tuple(texts))
    patterns = patterns.seen_from(f"/top/{below}", "/top") if below else patterns
    if patterns.hits(names) or patterns.covers(names):
        assert patterns.marks is None or patterns.marks & path_marks("/".join(names))


@settings(max_examples=examples(800))
@given(PATTERNS, st.lists(TREE_NAME | st.sampled_from(["/top/a", "/top/b/a", "/else/a"]), max_size=6))
@example(["/a"], ["a", "/top/a"])
def test_one_search_finds_the_names_below_a_folder_of_the_repository(texts: list[str], names: list[str]) -> None:
    patterns = PathPatterns(patterns=tuple(texts)).seen_from("/top/b", "/top")
    assert set(patterns.hit_among(TreeNames(names))) == {name for name in names if patterns.hits([name])}


PATHS = [
    # patterns, names, covered, hit
    ([".env"], [".env"], True, True),
    ([".env"], ["config/.env"], True, True),
    ([".env"], [".env/x"], False, True),
    (["*.md"], ["x.md"], True, True),
    (["*.md"], ["a/x.md"], True, True),
    (["*.md"], ["x.md/evil.py"], False, True),
    (["*.md"], ["x.md/y.md"], True, True),
    (["docs/*"], ["docs/a.md"], True, True),
    (["docs/*"], ["docs/x/y.sh"], False, True),
    (["docs/**"], ["docs/x/y.sh"], True, True),
    (["docs/**"], ["docs"], False, True),
    (["/docs/**/*.md"], ["docs/x.md/evil.py"], False, True),
    (["/docs/**/*.md"], ["docs/x.md/y/z.md"], True, True),
    (["/docs"], ["docs/a.md"], False, True),
    (["a?.md"], ["ab.md/evil.py"], False, True),
    (["a?.md"], ["ab.md/\x01"], False, True),
    (["a?.md"], ["ab.md/\x01/evil.py"], False, True),
    (["*"], ["a/b.py"], True, True),
    (["**"], ["a/b.py"], True, True),
    (["**/a/b"], ["x/a/b"], True, True),
    (["**/a/b"], ["x/a/b/c"], False, True),
    (["a?/"], ["ab/c/d"], True, True),
    (["a?/"], ["ab"], False, True),
    (["a\\*b"], ["a*b/c"], False, True),
    ([".env"], [".envrc"], False, False),
    ([".env"], [".ENV"], False, True),
    ([".env.*"], [".env.local"], True, True),
    (["*.pem"], ["a/b.pem"], True, True),
    (["*.pem"], ["a.PEM"], False, True),
    (["*.pem"], ["a.pem.txt"], False, False),
    (["/docs/"], ["docs/a.md"], True, True),
    (["/docs/"], ["docs"], False, True),
    (["/docs/"], ["src/docs/a.md"], False, False),
    (["docs/"], ["src/docs/a.md"], True, True),
    (["src/*.py"], ["src/a.py"], True, True),
    (["src/*.py"], ["src/b/a.py"], False, False),
    (["src/**/a.py"], ["src/b/c/a.py"], True, True),
    (["**/secret"], ["x/secret"], True, True),
    (["**/secret"], ["x\ny/secret"], True, True),
    (["secrets/**"], ["secrets/a\nb"], True, True),
    (["se[ck]ret"], ["sekret"], True, True),
    (["se[ck]ret"], ["SECRET"], False, True),
    (["?.txt"], ["a.txt"], True, True),
    (["a\\*b"], ["a*b"], True, True),
    (["a\\*b"], ["axb"], False, False),
    # every name must be covered, one is enough to be hit
    ([".env"], ["link", ".env"], False, True),
    (["/src/"], ["src/link", "src/a.py"], True, True),
    (["/src/"], ["src/link", "other/a.py"], False, True),
    # outside the workspace: never covered, and hit only without an anchor
    (["*"], ["/etc/passwd"], False, True),
    ([".env"], ["/home/x/.env"], False, True),
    (["/etc/"], ["/etc/passwd"], False, False),
    (["etc/passwd"], ["/etc/passwd"], False, False),
    (["**/id_?sa"], ["/home/x/.ssh/id_rsa"], False, True),
    (["id_[rd]sa"], ["/home/x/.ssh/id_rsa"], False, True),
    # as another disk would spell it
    (["caf\u00e9"], ["cafe\u0301"], False, True),
    (["cafe\u0301"], ["caf\u00e9"], False, True),
    (["caf\u00e9"], ["CAFE\u0301"], False, True),
    (["stra\u00dfe"], ["STRASSE"], False, True),
    (["\u0390"], ["\u0399\u0308\u0301"], False, True),
]


@all_rows(
    ("patterns", "names", "covered", "hit"),
    [pytest.param(*row, id=f"{row[0]!a} {row[1]!a} covers {row[2]} hits {row[3]}") for row in PATHS],
)
def test_path_patterns(patterns: list[str], names: list[str], covered: bool, hit: bool) -> None:
    rule = PathPatterns(patterns=tuple(patterns))
    assert (rule.covers(names), rule.hits(names)) == (covered, hit)


@given(st.text())
def test_folding_is_stable_and_blind_to_case_and_normal_form(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


REFUSED = [
    pytest.param("", "is empty", id="nothing"),
    pytest.param("/", "is empty", id="only a slash"),
    pytest.param("!a", "begins with '!'; exceptions are written in `except`", id="negation"),
    pytest.param("#a", "begins with '#'; exceptions are written in `except`", id="a comment"),
    pytest.param(" a", "begins or ends with a blank, which gitignore patterns drop", id="a blank in front"),
    pytest.param("a ", "begins or ends with a blank, which gitignore patterns drop", id="a blank behind"),
    pytest.param("a\n", "begins or ends with a blank, which gitignore patterns drop", id="a line end"),
    pytest.param(
        "../a", "contains `..`, `.` or `//`; patterns are matched against resolved paths", id="a folder above"
    ),
    pytest.param("./a", "contains `..`, `.` or `//`; patterns are matched against resolved paths", id="a dot"),
    pytest.param("a//b", "contains `..`, `.` or `//`; patterns are matched against resolved paths", id="two slashes"),
    pytest.param(
        "~/a",
        "begins with `~`; patterns are relative to the workspace (a name without `/` matches anywhere)",
        id="the home folder",
    ),
    pytest.param("a\u202eb", "contains a character that cannot be shown", id="a character that hides"),
    pytest.param("a\\", "is not a gitignore pattern: ", id="a backslash at the end"),
]


@all_rows(("text", "problem"), REFUSED)
def test_misleading_pattern_is_refused(text: str, problem: str) -> None:
    found = check_pattern(text)
    assert found is not None
    assert found.startswith(problem) if problem.endswith(": ") else found == problem


@all_rows(
    "text", ["a", "/a/", "a/b", "*.pem", "**/a", "a/**", "a\\ b", "[a-z]", "?", ".env.*", "a b", "...", "ünï", "a~"]
)
def test_a_usual_pattern_is_accepted(text: str) -> None:
    assert check_pattern(text) is None


@all_rows(
    ("text", "simple"),
    [
        pytest.param("a", True, id="a name"),
        pytest.param("/a/b/", True, id="names"),
        pytest.param("*.a", True, id="one star"),
        pytest.param("*/a*", True, id="one star in each part"),
        pytest.param("*a*", False, id="two stars in a part"),
        pytest.param("**/a", True, id="two stars together, before it"),
        pytest.param("a/**/b", False, id="two stars together"),
        pytest.param("**/**/b", False, id="twice"),
        pytest.param("a?", False, id="a question mark"),
        pytest.param("[a]", False, id="a class"),
        pytest.param("a\\*", False, id="an escape"),
        pytest.param("a//b", False, id="two slashes"),
        pytest.param("/", False, id="only a slash"),
    ],
)
def test_simple_patterns_are_those_that_need_no_pathspec(text: str, simple: bool) -> None:
    assert is_simple(text) is simple


@settings(max_examples=examples(400))
@given(st.text("ab*[?\n", max_size=8), st.text("ab[?\n", max_size=8))
@example("a*a", "a")
@example("*a*a", "aa")
@example("a**b", "ab")
def test_only_a_star_matches_other_characters(pattern: str, text: str) -> None:
    escaped = "".join(f"[{character}]" if character in "[?" else character for character in pattern)
    assert star_match(pattern, text) == fnmatchcase(text, escaped)
