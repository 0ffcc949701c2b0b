"""Time how work grows with a text made against it, where tests cannot count it: inside of a regular expression, `find`, `+=`.

Usage: python bench/growth.py [WORD ...]; with words, only the rows whose names hold one of them. Prints the CPU time of a
size and of four times as much, and their ratio: 4 is linear and good, 16 is quadratic, above 8 fails. Unlike the other
files here it judges: the exit code is 1 where a row fails. No test does that: it takes a quiet machine.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harness.actions import Action
from harness.files.diffs import compare
from harness.files.workspace import Workspace
from harness.log.verify import verify
from harness.messages import Message, Role, ToolCall
from harness.models.divergence import Outlines
from harness.models.reply_body import unread_call
from harness.policy.destruction import destroys
from harness.policy.lint import warnings
from harness.policy.loader import parse_policy
from harness.policy.plain_commands import EXAMPLE_DISK
from harness.policy.policy import Policy, combine
from harness.policy.verdict import evaluate
from harness.process.capture import readable
from harness.redaction.encoded import encoded_spans
from harness.redaction.redactor import Redactor
from harness.redaction.shapes import SHAPES, shape_spans
from harness.redaction.stream import RedactedStream
from harness.session.session_log import close_log, opened_log
from harness.session.state import State
from harness.shell.facets import read_commands
from harness.shell.loose_words import loose_commands
from harness.shell.parser import parse
from harness.terminal.console import complain
from harness.terminal.file_names import NameIndex
from harness.terminal.markdown_stream import Markdown
from harness.terminal.styles import SIXTEEN
from harness.text.strict_json import NotJsonError, read_one
from harness.text.visible import suspicious, visible, visible_prose
from harness.tools.bash import BashTool
from harness.tools.edits import Edit, Occurrences, splice_all
from harness.tools.near_miss import explain_miss

FACTOR = 4
MOST = 8.0
ROUNDS = 5
AGAIN = 3
"""How often a row that grows too much is measured again: who is late for another reason is so once."""


class Row(NamedTuple):
    """What is timed: body(make(size)), and only body."""

    name: str
    make: Callable[[int], Any]
    body: Callable[[Any], object]
    size: int


def repeated(unit: str, before: str = "") -> Callable[[int], str]:
    """Return what makes a text of some size by repeating one."""
    return lambda size: before + unit * (size // len(unit))


def encoded(unit: str) -> Callable[[int], bytes]:
    """Return the same for bytes."""
    return lambda size: repeated(unit)(size).encode()


# -- text that is shown

PILES = {
    "one pile of marks": "\u0300",
    "signs": "\u2500",
    "jamo": "\u1161",
    "selectors and joiners": "\u26a0\ufe0f\u200d",
    "escapes": "\x1b\u202e",
    "letters": "\u4e2d",
}


def show(text: str) -> None:
    visible(text), visible_prose(text), suspicious(text)


def shown() -> Iterator[Row]:
    for name, unit in PILES.items():
        yield Row(f"visible: {name}", repeated(unit, "a"), show, 25_000)


# -- JSON


def keys(count: int) -> str:
    return "{" + ",".join(f'"{number}": 0' for number in range(count)) + f', "{count - 1}": 1}}'


def refuse(text: str) -> None:
    try:
        read_one(text)
    except NotJsonError:
        return
    raise SystemExit("a duplicate key was not found")


def strict_json() -> Iterator[Row]:
    yield Row("JSON: a duplicate key", keys, refuse, 5_000)


# -- commands

COMMANDS = {
    "words": "a ",
    "commands": "a;",
    "quotes": "''",
    "double quotes": '""',
    "open parameters": "${",
    "open substitutions": "$(",
    "backslashes": "\\",
    "equals signs": "ab=",
    "here-documents": "<<a ",
}


def read(text: str) -> None:
    read_commands(text, EXAMPLE_DISK)


def commands() -> Iterator[Row]:
    for name, unit in COMMANDS.items():
        for reader, size in ((parse, 2_400), (read, 2_400), (loose_commands, 25_000)):  # the first two take 10,000
            yield Row(f"shell, {reader.__name__}: {name}", repeated(unit), reader, size)
    yield Row("shell, read: a long line of words", lambda count: "ls " + "w1 " * count, read, 20_000)


# What is looked for in a text that is not understood: begin, part and end.
JUDGED = {
    "deletes again and again": ("", "rm -r x ", ">"),
    "find again and again": ("", "find -name x -o ", ">"),
    "one word": ("", "x", ">"),
    "functions that do not end": ("", "f(){", ""),
    "blanks": ("f()", " ", "{"),
    "a pipeline of itself": ("f(){", "f|", ""),
    "almost fork bombs": ("", ":(){ :|: ", ""),
    "wrapped": ("sudo ", "rm ", ""),
    "requests": ("sudo ", "curl ", "DELETE"),
    "pushes": ("foo ", "git push x ", "--force"),
    "redirections": ("", "x >", ""),
    "code": ("python3 -c '", "shutil.rmtree os.remove( ", ""),
}
PERMITTING = parse_policy(b'version = 1\n[tools]\ndefault = "auto"\n', "permitting.toml")


def judge(action: Action) -> None:
    evaluate(PERMITTING, action)
    destroys(action)


def judged() -> Iterator[Row]:
    tool, call = BashTool(Workspace("/")), ToolCall(id="1", name="bash", arguments="{}")

    def making(begin: str, part: str, end: str) -> Callable[[int], Action]:
        return lambda size: tool.prepare(call, {"command": begin + part * (size // len(part)) + end})

    for name, parts in JUDGED.items():
        yield Row(f"judging: {name}", making(*parts), judge, 100_000)


# -- policies

RULES = {
    "commands": """
decision = "auto"
argv = ["tool{0}", ["test", "run"], "..."]
flags = ["-q"]
write = ["."]
match = ["tool{0} run -q a"]
not_match = ["tool{0} run; touch x"]
""",
    "commands of one program": """
decision = "deny"
argv = ["git", "own{0}"]
flags = ["--force"]
reason = "r"
match = ["git own{0} --force"]
""",
    "paths": """
decision = "deny"
path = ["secret{0}", "*.pem{0}", "/data{0}/"]
except = ["secret{0}.example"]
reason = "r"
match = ["secret{0}"]
""",
}
"""One policy is made of each, and one of all in turn."""


def policy_of(*kinds: str) -> Callable[[int], bytes]:
    """Return what makes a policy of so many rules, of these kinds in turn."""

    def make(size: int) -> bytes:
        rules = (f'[[rule]]\nid = "{number}"{kinds[number % len(kinds)].format(number)}' for number in range(size))
        return "\n".join(("version = 1", *rules)).encode()

    return make


def loaded(data: bytes) -> Policy:
    return parse_policy(data, "policy.toml")


def checked(data: bytes) -> None:
    warnings(loaded(data))


UNMARKED = """
decision = "deny"
path = ["[st]ecret{0}?"]
reason = "r"
"""
"""A rule that is tried on every file."""


class Decided(NamedTuple):
    """A decision that the policy has made before, so that everything it keeps is made."""

    policy: Policy
    action: Action


def decision(folder: str, rule: str) -> Callable[[int], Decided]:
    """Return what makes a policy of so many rules, and one call in a folder of files."""
    for number in range(200):
        with open(os.path.join(folder, f"{number}.py"), "w"):
            pass
    call = ToolCall(id="1", name="bash", arguments="{}")
    action = BashTool(Workspace(folder)).prepare(call, {"command": "grep -rn foo . | sort > out; ls"})

    def make(size: int) -> Decided:
        decided = Decided(parse_policy(policy_of(rule)(size), "policy.toml", examples=False), action)
        evaluate(*decided)
        return decided

    return make


def two_lists(size: int) -> Policy:
    """Return the policy of two files that open the network to so many hosts."""
    hosts = ", ".join(f'"h{number}.example.org"' for number in range(size))
    opened = f"network = [{hosts}]"
    rule = f'[[rule]]\nid = "a"\ndecision = "auto"\nargv = ["curl", "..."]\n{opened}'
    text = f"version = 1\n[sandbox]\n{opened}\n{rule}"
    return combine([parse_policy(text.encode(), file) for file in ("a.toml", "b.toml")])


def decisions() -> Iterator[Row]:
    for name, rule in {**RULES, "paths tried on every file": UNMARKED}.items():
        with tempfile.TemporaryDirectory() as folder:
            yield Row(f"a decision: {name}", decision(folder, rule), lambda decided: evaluate(*decided), 250)
    action = BashTool(Workspace("/")).prepare(
        ToolCall(id="1", name="bash", arguments="{}"), {"command": "curl x; make"}
    )
    yield Row("a decision: hosts that two files list", two_lists, lambda policy: evaluate(policy, action), 500)


def policies() -> Iterator[Row]:
    kinds = {name: (rule,) for name, rule in RULES.items()}
    for name, rules in {**kinds, "all kinds": tuple(RULES.values())}.items():
        make = policy_of(*rules)
        yield Row(f"a policy, loaded: {name}", make, loaded, 250)
        yield Row(f"a policy, checked: {name}", make, checked, 250)


# -- logs


REDACTOR = Redactor((), key=b"a key")


class ClosedLog(NamedTuple):
    """A log whose head was noted when it was closed, in a state folder of its own."""

    state: State
    path: str


def closed_log(folder: str, records: int) -> ClosedLog:
    state = State(state=folder, config=folder)
    made = ClosedLog(state, os.path.join(folder, "log.jsonl"))
    log = opened_log(state, REDACTOR, path=made.path, workspace="", tell=complain)
    log.append("session_started", {"harness": "0"})
    for _ in range(records):
        log.append("user_message", {"text": "x" * 500})
    log.append("session_ended", {"stop": "completed", "detail": ""})
    close_log(state, log)
    return made


def gone_on_with(made: ClosedLog) -> None:
    opened_log(made.state, REDACTOR, path=made.path, workspace="", tell=complain).close()


def logs() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:

        def make(size: int) -> ClosedLog:
            return closed_log(tempfile.mkdtemp(dir=folder), size)

        yield Row("a closed log, gone on with: records", make, gone_on_with, 2_000)
        yield Row("a log, judged as a whole: records", make, lambda made: verify(made.path), 2_000)


# -- secrets

AGAINST = (
    "a", "0", " ", "\n", "-", ".", "/", ":", "=", '"', "\\", "%20", "secret = ", 'token: "', "token:        ",
    "password\":\"", "eyJa.", "12345678:AA", "://", "://a:b", ":\\/\\/u:", "bearer ", "basic ", "machine a login b password ",
    "machine" + " " * 8, "ghp_", "xoxb-1-", "SG." + "a" * 32 + ".", "M" * 24 + ".", "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\\n", "-----END ", "[redacted:known:01234567]", "\u6f22",
    "$6$a$", "auth: ", "cookie: a=", "%3a%2f%2fa%3a", "?token=", "?password=ab%26", "curl a ", "mysql a ", ":5432:a:b:",
    "create user a with password ", "password=!", "QUJDREVGR0hJSktMTU5P", "0a",
)  # fmt: skip
LINES = ("\n", "\n12:", "\n     1\t", "\n+", "\n1:+", "\n" + " " * 9, "\\n12\\t", "\\n", "1", " ", "\n1234567", "\n>a")
STREAMS = {
    "words": "the quick answer ",
    "one word": "a1",
    "code": 'token = key["secret"] + password\n',
    "line ends": "\n",
    "other letters": "\u6f22\u5b57\u3002",
}
BEGIN = "-----BEGIN PRIVATE KEY-----\n"
LONG = "".join(random.Random(3).choices("abcdefGHIJKL0123456789+/", k=160))
VALUES = (
    "alpha-Qx81zz-user\nbravo-Kk92mmq-pass\n  indented = Zz19-qL44x\nthe last one",
    LONG,
    f"{BEGIN}{LONG[:64]}\n{LONG[64:128]}\n{LONG[128:]}\n-----END PRIVATE KEY-----",
)


def look_for_shapes(text: str) -> None:
    for _ in (*shape_spans(text, SHAPES), *encoded_spans(text)):
        pass


def stream(text: str) -> None:
    made = RedactedStream(Redactor(("known-value-1", "other known value"), key=b"a key"))
    for at in range(0, len(text), 3):
        made.feed(text[at : at + 3])
    made.finish()


def secrets() -> Iterator[Row]:
    for unit in AGAINST:
        yield Row(f"shapes of secrets: {unit[:40]!r}", repeated(unit), look_for_shapes, 100_000)
        yield Row(f"shapes of secrets, in a key: {unit[:40]!r}", repeated(unit, BEGIN), look_for_shapes, 100_000)
    known = Redactor(VALUES, key=b"a key", shapes=False)
    for unit in LINES:
        yield Row(f"known values: {unit!r}", repeated(unit), known.redact, 250_000)
    for name, unit in STREAMS.items():
        yield Row(f"a stream: {name}", repeated(unit), stream, 50_000)
    yield Row("a stream: an unended key", repeated("M" * 64 + "\n", BEGIN), stream, 50_000)


# -- files: a text that is not there, edits, diffs

MISSES = {
    "one letter a line": ("a\n", "a\n"),
    "empty lines": ("\n", "\n"),
    "one line": ("x", "x"),
    "lines again and again": ("the quick brown fox\n", "the quick brown cat\n"),
    "two words in another order": ("a b ", "a a b b "),
    "characters beyond ASCII": ("é\u201c \n", "e\u201d "),
    "characters that come apart": ("\uf900\u0344", "\u0344q"),
    "one pile of marks": ("\u0301\u0316", "\u0316\u0301"),
    "escapes": ("x", "\\x41"),
}
EDITS = {
    "every line end": ("\r\n", "\n", " "),
    "a text that nearly is everywhere": ("a", "a" * 90 + "b", "c"),
    "a text that overlaps itself": ("ab", "ab" * 40, "c"),
}


def miss(text: str, old: str) -> Callable[[int], tuple[bytes, str]]:
    """Return what makes a file, and a text of a tenth of it that is not there."""
    return lambda size: (encoded(text)(size), repeated(old)(size // 10) + "q")


def replaced(old: str, new: str) -> Callable[[bytes], object]:
    edit = Edit(old=old, new=new, occurrences=Occurrences.ALL)
    return lambda data: splice_all(data, [edit], most_bytes=1 << 30)


def files() -> Iterator[Row]:
    for name, (text, old) in MISSES.items():
        yield Row(f"a miss: {name}", miss(text, old), lambda made: explain_miss(made[0], made[1], ""), 100_000)
    for name, (unit, old, new) in EDITS.items():
        yield Row(f"an edit: {name}", encoded(unit), replaced(old, new), 500_000)
    yield Row("a diff: one line", lambda size: (b"\xff" * size, b"\xfe" * size), lambda made: compare(*made), 1_000_000)
    yield Row(
        "a diff: one long line is new", lambda size: (b"", b"\x1b" * size), lambda made: compare(*made), 1_000_000
    )


# -- what commands print, names of files, Markdown

OUTPUT = {
    "returns": "\r", "ends and returns": "\r\r\n", "lines written over": "a\r", "escapes": "\x1b",
    "sequences": "\x1b[0", "commands that do not end": "\x1b]a", "strings that do not end": "\x1bP",
}  # fmt: skip
MARKDOWN = {
    "one word": "x", "one line": "word ", "stars": "*", "emphasis": "**a *b ", "ticks": "`", "brackets": "[",
    "links that do not end": "[a](", "titles that do not end": '[a](b "c', "targets": "](((((", "addresses": "<http://",
    "quotes": "> ", "pipes": "|-", "markers": "- ", "hashes": "#", "marks": "\u0301", "wide characters": "日",
}  # fmt: skip
MARKDOWN_LINES = {
    "a heading that may end": ("# ", " #", "x"), "a heading with blanks": ("# x", " ", "y"), "blanks": ("a", " ", "日"),
    "a rule that is none": ("", "--- ", "x"), "delimiters that are none": ("x|y\n", "|:-", "x"),
}  # fmt: skip
"""Lines are cut at 8,192 characters, so that each of them is short, and there are many."""


def rendered(text: str) -> None:
    markdown = Markdown(lambda: 80, SIXTEEN)
    for at in range(0, len(text), 1_000):
        markdown.feed(text[at : at + 1_000])
    markdown.finish()


def lines_of(before: str, unit: str, behind: str) -> Callable[[int], str]:
    return lambda size: f"{repeated(unit, before)(size)}{behind}\n\n" * 50


def long_names(size: int) -> NameIndex:
    return NameIndex([f"{'a' * size}{number}" for number in range(200)])


def terminal() -> Iterator[Row]:
    for name, unit in OUTPUT.items():
        yield Row(f"output: {name}", encoded(unit), readable, 100_000)
    for name, unit in MARKDOWN.items():
        yield Row(f"Markdown: {name}", repeated(unit), rendered, 100_000)
    for name, parts in MARKDOWN_LINES.items():
        yield Row(f"Markdown, in one line: {name}", lines_of(*parts), rendered, 900)
    yield Row("names of files", long_names, lambda names: names.matches("a" * 150 + "b"), 1_000)


# -- what models say

SAID = {
    "paths": "/a", "digits": "1", "brackets and paths": "[a/", "signs": "=", "places": "a:b", "jobs": "[1] ",
}  # fmt: skip


def outlined(text: str) -> None:
    Outlines(str, {"/a/work": "<workspace>"}).of([Message(role=Role.USER, content=text)])


def models() -> Iterator[Row]:
    for name, unit in SAID.items():
        yield Row(f"an outline: {name}", repeated(unit), outlined, 100_000)
    yield Row(
        "calls left in a text: marks",
        repeated("\n[TOOL_CALLS]"),
        lambda text: unread_call(text, frozenset("b")),
        500_000,
    )


GROUPS: tuple[Callable[[], Iterator[Row]], ...] = (
    shown,
    strict_json,
    commands,
    judged,
    policies,
    decisions,
    logs,
    secrets,
    files,
    terminal,
    models,
)


def seconds(row: Row, size: int) -> float:
    """Return the CPU seconds of the fastest of some rounds, without what collecting garbage takes."""
    best = float("inf")
    for _ in range(ROUNDS):
        made = row.make(size)
        gc.collect()
        gc.disable()
        began = time.process_time()
        row.body(made)
        best = min(best, time.process_time() - began)
        gc.enable()
    return best


def measured(row: Row) -> tuple[float, float]:
    """Return what a row takes for its size, and for FACTOR times that."""
    least, most = seconds(row, row.size), seconds(row, row.size * FACTOR)
    for _ in range(AGAIN):
        if most <= MOST * least:
            break
        least, most = seconds(row, row.size), seconds(row, row.size * FACTOR)
    return least, most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="part of a row's name")
    words: list[str] = parser.parse_args().words
    count = too_much = 0
    for row in (row for group in GROUPS for row in group()):
        if not words or any(word in row.name for word in words):
            if not count:
                print(f"{'':<72} {'size':>9} {'ms':>9} {'4 x: ms':>9} {'ratio':>6}")
            least, most = measured(row)
            grows = most > MOST * least
            count, too_much = count + 1, too_much + grows
            ratio = f"{most / least:>6.1f}{'  TOO MUCH' if grows else ''}"
            print(f"{row.name:<72} {row.size:>9,} {least * 1000:>9.2f} {most * 1000:>9.2f} {ratio}", flush=True)
    if not count:
        parser.error(f"no row's name holds {' or '.join(words)}")
    print(f"{too_much} of {count} above {MOST:.0f}" if too_much else f"all {count} below {MOST:.0f}")
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
