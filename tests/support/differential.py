"""Scripts, made up, and a real bash to hold against what `read_commands` says of them; run by hand, and by test_differential.

    python tests/support/differential.py --count 100000 --seed 1 --jobs 2

Property `argv`: if a script is AUTO under the loosest policy, every command that bash starts was predicted word for word,
with the variables that it gets, the files that it has open, the places of its operands, and every file that bash itself
wrote. Property `reads` (`--real`): if it is AUTO with readers alone, real programs write no file.

bash runs in a scratch folder, without privileges; programs are stubs that write down how they were called. Not seen are
the builtins that stay builtins: `:`, `[[`, alias, break, builtin, cd, command, continue, declare, eval, exec, exit, export,
let, read, return, set, shift, source, trap, unset and their like. Inside `sh -c` neither are those of UNBUILT.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib  # noqa: F401 - a child without privileges may not be able to load it
import json
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from random import Random
from typing import NamedTuple, TypeVar

from bash_scratch import CHANGED_BY_BASH, Outcome, Ran, Scratch, is_shown
from program_grammar import GIT_COMMANDS, REAL_PROGRAMS, option_scripts, options_in_help, real_scripts
from script_grammar import BARE_WORD, Made, scripts, seeds

from harness.actions import Access, Act, Command, Decision, Facet, Opaque, PathAccess
from harness.app.policy.judged_call import action_for
from harness.files.workspace import Workspace
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.shell.parser import parse
from harness.shell.syntax import Modified, Parameter, Piece, Simple, Word

Argv = tuple[str, ...]
Kind = TypeVar("Kind")

LOOSEST = b'version = 1\nname = "loosest"\n[tools]\nbash = "auto"\nreaders = true\ndefault = "auto"\n'
READERS = b"""
version = 1
name = "readers"
[tools]
bash = "confirm"
readers = true
default = "confirm"
[[rule]]
id = "secrets"
decision = "deny"
access = ["read"]
path = [".env", "*.pem", "/hidden/"]
reason = "They are secrets."
match = ["deep/.env"]
"""

# -- What was predicted, against what was run


class Reading(NamedTuple):
    """What the harness makes of a script."""

    facets: tuple[Facet, ...]
    auto: bool

    @property
    def opaque(self) -> bool:
        return any(isinstance(facet, Opaque) for facet in self.facets)

    @property
    def commands(self) -> list[Command]:
        """Every command that is predicted, those included that are given a text to run."""
        given = [facet.given_to if isinstance(facet, Opaque) else facet for facet in self.facets]
        return [command for command in given if isinstance(command, Command)]

    @property
    def paths(self) -> list[PathAccess]:
        """Every path that any facet names."""
        return [path for facet in self.facets for path in _paths_of(facet)]


def _paths_of(facet: Facet) -> Sequence[PathAccess]:
    if isinstance(facet, PathAccess):
        return (facet,)
    return facet.paths if isinstance(facet, Command | Opaque) else ()


class Reader:
    """Reads and judges scripts for one workspace, under one policy."""

    def __init__(self, policy: bytes, workspace: Workspace) -> None:
        self._policy = parse_policy(policy, "differential.toml")
        self.workspace = workspace

    def read(self, text: str) -> Reading:
        action = action_for("bash", text, self.workspace)
        return Reading(facets=action.facets, auto=evaluate(self._policy, action).decision is Decision.AUTO)


# What stands in a predicted word for a value that is not known: expansions, words of xargs, files of find, patterns.
_OPEN = re.compile(
    r"\$(?:\(\.\.\.\)|\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)|\{[^{}]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*?#$!-])"
    r"|<\(\.\.\.\)|\(words of xargs\)|/dev/fd/63|[*?]|\[[^\]]*\]"
)
_DIGITS = re.compile(r"\$(?:[?#$!]|\(\(.*\)\)|\{#.*\})", re.DOTALL)


class Predicted:
    """The commands of a reading, to find those that a program which ran may be."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._commands = reading.commands
        markers = [re.escape(marker) for marker in _markers(self._commands)]
        self._open = re.compile("|".join((_OPEN.pattern, *markers))) if markers else _OPEN
        marked = re.compile("|".join(markers) or "(?!)")
        self._constants = {word for word in _constants(text) if not marked.search(word)}
        self._exact: dict[Argv, list[Command]] = {}
        for command in self._commands:
            self._exact.setdefault(command.argv, []).append(command)

    def matching(self, argv: Argv) -> list[Command]:
        """Return the commands that were predicted as these words, or with words of unknown value that may be these."""
        exact = self._exact.get(argv, [])
        ran = "\0".join(argv)
        loose = [
            command
            for command in self._commands
            if command.argv != argv and command.argv[0] == argv[0] and re.fullmatch(self._pattern(command.argv), ran)
        ]
        return exact + loose

    def _pattern(self, argv: Argv) -> str:
        parts = [re.escape(argv[0])]
        for word in argv[1:]:
            if word in self._constants or not self._open.search(word):
                parts.append(r"\x00" + re.escape(word))
                continue
            if "$$" in word:  # a dollar before an expansion, or the expansion `$$`
                parts.append(r"(?:\x00[\s\S]*)?")
                continue
            inside = "".join(
                re.sub("/+", "/+", re.escape(piece))
                if index % 2 == 0
                else f"(?:[0-9]*|{re.escape(piece)})"
                if _DIGITS.fullmatch(piece)
                else r"[\s\S]*"
                for index, piece in enumerate(self._split(word))
            )
            parts.append(rf"(?:\x00{inside})?")
        return "".join(parts)

    def _split(self, word: str) -> list[str]:
        """Return what is known of a word, at the even places, and what is not."""
        pieces = []
        end = 0
        for match in self._open.finditer(word):
            pieces += [word[end : match.start()], match.group()]
            end = match.end()
        return [*pieces, word[end:]]


def _markers(commands: Sequence[Command]) -> Iterator[str]:
    """Yield what find and xargs replace in the words of their commands."""
    for command in commands:
        if command.argv[0] in ("find", "xargs"):
            yield "{}"
            yield from (after for word, after in pairwise(command.argv) if word == "-I" and after)
            yield from (
                match[1] for word in command.argv if (match := re.fullmatch(r"(?:-[0rtx]*[Ii]|--replace=)(.+)", word))
            )


def _constants(text: str) -> set[str]:
    """Return the values of the constant words of a script, but for those that an expansion is shown as, too."""
    constants: set[str] = set()
    shown: set[str] = set()
    for word in _words_of_text(text):
        value = word.constant
        if value is None:
            shown.add("".join(_shown(piece) for piece in word.pieces))
        else:
            constants.add(value)
    return constants - shown


def _words_of_text(text: str, depth: int = 0) -> Iterator[Word]:
    """Yield the words of a script, and of those that may be scripts themselves, alone or behind `eval`."""
    script = parse(text)
    inner: set[str] = set()
    for word in _parts(script, Word):
        yield word
        inner.add(word.constant or "")
    for simple in _parts(script, Simple):
        values = [word.constant or "" for word in simple.words]
        if values[:1] == ["eval"]:
            inner.add(" ".join(values[1:]))
    if depth < 4:
        for value in inner:
            if re.search(r"\S[ \t\n;|&<>]", value):
                yield from _words_of_text(value, depth + 1)


def _shown(piece: Piece) -> str:
    if isinstance(piece, Modified):
        return f"${{{piece.name}{piece.operator}{piece.operand}}}"
    return f"${piece.name}" if isinstance(piece, Parameter) else getattr(piece, "text", "$(...)")


def _parts(node: object, kind: type[Kind]) -> Iterator[Kind]:
    """Yield every record of a kind in a tree of records."""
    if isinstance(node, kind):
        yield node
    if isinstance(node, tuple):
        for each in node:
            yield from _parts(each, kind)
    for name in getattr(type(node), "__slots__", ()):
        yield from _parts(getattr(node, name), kind)


class Finding(NamedTuple):
    """A counterexample."""

    kind: str
    what: str


_OPERANDS_ARE_PATHS = frozenset(("ok", "no", "run", "cat", "./ok", "sub/ok"))
"""Stubs of which every word without a dash in front is taken for a path: the folder that they ran in is held against that."""


def find_unpredicted(text: str, reading: Reading, outcome: Outcome, environment: dict[str, str]) -> Finding | None:
    """Return what bash did that the reading of an AUTO script does not name, or None."""
    if any(command.act is Act.RUNS and command.argv[0] in ("bash", "sh", "dash") for command in reading.commands):
        return None  # what stands in a file is not predicted, and does not run under the policies that people have
    predicted = Predicted(text, reading)
    named = {path.real for path in reading.paths}
    for ran in outcome.ran:
        commands = predicted.matching(ran.argv)
        if not commands:
            return Finding("argv", f"{ran.argv!r} was run")
        finding = (
            _check_places(ran, commands)
            or _check_variables(ran, commands, environment)
            or _check_files(ran, named, reading)
        )
        if finding is not None:
            return finding
    written = [path for path in reading.paths if path.access is not Access.READ]
    for changed in outcome.changed:
        # A link that is removed is named, and `real` is where it leads.
        if not any(
            path.real == changed
            or changed.endswith(f"/{path.names[0]}")
            or (path.tree and changed.startswith(path.real + "/"))
            for path in written
        ):
            return Finding("written", f"{changed!r} was written")
    return None


def _check_places(ran: Ran, commands: Sequence[Command]) -> Finding | None:
    if ran.argv[0] not in _OPERANDS_ARE_PATHS:
        return None
    operands = []
    for position, word in enumerate(ran.argv[1:]):
        if word and (word[0] != "-" or "--" in ran.argv[1 : position + 1]) and not word.startswith("/dev/"):
            operands.append(os.path.realpath(os.path.join(ran.folder, word)))
    for command in commands:
        places = {path.real for path in command.paths}
        if places.issuperset(operands) or any(_OPEN.search(word) or "{}" in word for word in command.argv):
            return None
    return Finding("place", f"{ran.argv!r} was run in {ran.folder!r}")


def _check_variables(ran: Ran, commands: Sequence[Command], environment: dict[str, str]) -> Finding | None:
    names = {name for name, value in ran.environment.items() if environment.get(name) != value}
    if len(ran.environment) > 8:  # else it was `env -i`
        names |= environment.keys() - ran.environment.keys()
    names -= CHANGED_BY_BASH
    if any(names.issubset(command.variables) for command in commands):
        return None
    return Finding("variable", f"{ran.argv!r} was run with {sorted(names)} changed")


def _check_files(ran: Ran, named: set[str], reading: Reading) -> Finding | None:
    for file in ran.files:
        if (
            file.startswith(("/dev/", "/proc/"))
            or file.endswith(" (deleted)")
            or file in named
            or not os.path.isfile(file)
        ):
            continue
        trees = [path.real for path in reading.paths if path.tree]
        if not any(file.startswith(tree + "/") for tree in trees):
            return Finding("file", f"{ran.argv!r} had {file!r} open")
    return None


class Checked(NamedTuple):
    """What came of one script."""

    opaque: bool
    auto: bool
    ran: int = 0
    timed_out: bool = False
    finding: Finding | None = None


class Checker:
    """Reads scripts, runs those that are AUTO, and compares."""

    def __init__(
        self, scratch: Scratch, policy: bytes, compare: Callable[[str, Reading, Outcome], Finding | None]
    ) -> None:
        self.scratch = scratch
        self.reader = Reader(policy, Workspace(scratch.root, scratch.home))
        self._compare = compare

    def check(self, text: str) -> Checked:
        try:
            reading = self.reader.read(text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what this looks for
            return Checked(opaque=True, auto=False, finding=Finding("raised", repr(error)))
        if not reading.auto or "\0" in text:
            return Checked(opaque=reading.opaque, auto=reading.auto)
        outcome = self.scratch.run(text)
        finding = self._compare(text, reading, outcome)
        return Checked(opaque=False, auto=True, ran=len(outcome.ran), timed_out=outcome.timed_out, finding=finding)

    def confirmed(self, text: str) -> Finding | None:
        """Return the finding on a script if it comes up again: a process of the script before may have been late."""
        return next((finding for _ in range(3) if (finding := self.check(text).finding) is not None), None)

    def shrunk(self, text: str, kind: str, seconds: float = 10.0) -> str:
        """Return a shorter script with a finding of the same kind."""
        end = time.monotonic() + seconds
        size = max(len(text) // 2, 1)
        while size and time.monotonic() < end:
            at = 0
            while at < len(text) and time.monotonic() < end:
                shorter = text[:at] + text[at + size :]
                finding = self.check(shorter).finding if shorter.strip() else None
                if finding is not None and finding.kind == kind and self.confirmed(shorter) is not None:
                    text = shorter
                else:
                    at += size
            size //= 2
        return text


def stub_checker() -> Checker:
    """Return what holds every argv of an AUTO script against the prediction; from here on without privileges."""
    scratch = Scratch()
    checker = Checker(
        scratch, LOOSEST, lambda text, reading, outcome: find_unpredicted(text, reading, outcome, scratch.environment)
    )
    _settle(checker)
    return checker


def real_checker(hostile: int = -1) -> Checker:
    """Return what runs scripts of readers with the real programs, and finds files that they wrote."""
    checker = Checker(Scratch(real=REAL_PROGRAMS, hostile=hostile), READERS, _find_effect)
    _settle(checker)
    return checker


def _settle(checker: Checker) -> None:
    for text in seeds():  # loads whatever is loaded when first needed, while everything can still be read
        with contextlib.suppress(Exception):  # seen again when the script is checked
            checker.reader.read(text)
    with contextlib.suppress(ImportError):
        tree_sitter_names("ok")
    checker.scratch.settle()


def _find_effect(text: str, reading: Reading, outcome: Outcome) -> Finding | None:
    del reading
    if outcome.changed:
        return Finding("written", f"{', '.join(outcome.changed)} written")
    if "c4n4ry" not in text and is_shown(outcome):
        return Finding("shown", "a secret was shown")
    return None


# -- The second opinion


def tree_sitter_names(text: str) -> list[str] | None:
    """Return the plain names of the commands that tree-sitter-bash finds, or None where it finds an error.

    Raises ImportError where it is not installed.
    """
    import tree_sitter
    import tree_sitter_bash

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(text.encode()).root_node
    if root.has_error:
        return None
    names: list[str] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.type == "command_name" and node.text is not None:
            name = node.text.decode()
            if BARE_WORD.fullmatch(name):
                names.append(name)
    return names


def find_unnamed(text: str, reading: Reading) -> list[str]:
    """Return the commands of an AUTO script that tree-sitter finds and the reading does not name."""
    first = {command.argv[0] for command in reading.commands}
    return [name for name in tree_sitter_names(text) or () if name not in first]


# -- By hand


class Counterexample(NamedTuple):
    """A script that did what was not predicted, as it was made and as short as it could be made."""

    kind: str
    what: str
    text: str
    shrunk: str


class Part(NamedTuple):
    """What one process found."""

    counts: dict[str, int]
    found: list[Counterexample]
    disagreements: list[tuple[str, str]]


class Job(NamedTuple):
    """What one process is to do."""

    seed: int
    size: int
    part: int
    parts: int
    real: bool
    options: bool
    second: bool


def run_part(job: Job) -> Part:
    """Do a job in this process, which loses its privileges."""
    checker = real_checker(job.seed % 64 if job.seed % 2 else -1) if job.real else stub_checker()
    try:
        return _run_part(checker, job)
    finally:
        checker.scratch.remove()


def _run_part(checker: Checker, job: Job) -> Part:
    counts: Counter[str] = Counter()
    found: list[Counterexample] = []
    disagreements: list[tuple[str, str]] = []
    kinds: Counter[str] = Counter()
    for made in _scripts_of(job):
        checked = checker.check(made.text)
        _count(counts, made, checked)
        if checked.finding is not None and (confirmed := checker.confirmed(made.text)) is not None:
            counts["counterexamples"] += 1
            kinds[confirmed.kind] += 1
            shrunk = checker.shrunk(made.text, confirmed.kind) if kinds[confirmed.kind] <= 15 else made.text
            what = checker.confirmed(shrunk) or confirmed
            found.append(Counterexample(confirmed.kind, what.what, made.text, shrunk))
        if job.second and checked.auto:
            disagreements += [(name, made.text) for name in find_unnamed(made.text, checker.reader.read(made.text))]
    return Part(dict(counts), found, disagreements)


def _scripts_of(job: Job) -> Iterator[Made]:
    if not job.real:
        return scripts(Random(job.seed), job.size)
    options = options_in_help([*REAL_PROGRAMS, *GIT_COMMANDS])
    if job.options:
        return option_scripts(options, job.part, job.parts)
    return real_scripts(Random(job.seed), job.size, options)


def _count(counts: Counter[str], made: Made, checked: Checked) -> None:
    counts["scripts"] += 1
    counts[f"made by {made.origin}"] += 1
    counts["read without opaque"] += not checked.opaque
    counts["auto"] += checked.auto
    counts[f"auto of {made.origin}"] += checked.auto
    counts["programs run"] += checked.ran
    counts["auto scripts that ran a program"] += checked.ran > 0
    counts["timed out"] += checked.timed_out


def _each_in_a_process(todo: Sequence[Job], jobs: int) -> Iterator[Part]:
    """Yield the parts as they are done: each in a process of its own, which loses what it takes to make a scratch folder.

    Raises RuntimeError if a process ends without an answer: scripts that nobody looked at must not pass for clean ones.
    """
    waiting = list(reversed(todo))
    running: list[Connection] = []
    context = multiprocessing.get_context("fork")
    while waiting or running:
        while waiting and len(running) < jobs:
            ours, theirs = context.Pipe(duplex=False)
            context.Process(target=_answer, args=(waiting.pop(), theirs), daemon=True).start()
            theirs.close()
            running.append(ours)
        for connection in wait(running):
            assert isinstance(connection, Connection)
            running.remove(connection)
            try:
                part: Part = connection.recv()
            except EOFError:
                raise RuntimeError("a process ended without an answer") from None
            yield part


def _answer(job: Job, connection: Connection) -> None:
    connection.send(run_part(job))


def run_all(seed: int, count: int, jobs: int, *, real: bool, options: bool = False, second: bool = False) -> Part:
    """Check `count` scripts (with `options`: all of those) in several processes."""
    step = 1_000 if real else 5_000
    parts = 8 if options else -(-count // step)
    todo = [
        Job(seed * 1_000_000 + part, min(step, count - part * step), part, parts, real or options, options, second)
        for part in range(parts)
    ]
    counts: Counter[str] = Counter()
    found: list[Counterexample] = []
    disagreements: list[tuple[str, str]] = []
    for done in _each_in_a_process(todo, jobs):
        counts.update(done.counts)
        found += done.found
        disagreements += done.disagreements
    return Part(dict(counts), found, disagreements)


def serve(lines: Iterable[str], *, real: bool) -> None:
    """Check the scripts that come in, one a line, each a JSON text, and answer each with an object.

    A list with a script in it: run it, whatever its verdict, and say what ran and what was written. For the oracle's own tests.
    """
    checker = real_checker() if real else stub_checker()
    try:
        for line in lines:
            asked = json.loads(line)
            if isinstance(asked, list):
                outcome = checker.scratch.run(asked[0])
                answer = {
                    "ran": [list(ran.argv) for ran in outcome.ran],
                    "changed": _inside(checker.scratch, outcome),
                    "shown": is_shown(outcome),
                }
            else:
                checked = checker.check(asked)
                finding = checker.confirmed(asked) if checked.finding is not None else None
                answer = {
                    "auto": checked.auto,
                    "ran": checked.ran,
                    "finding": list(finding) if finding is not None else None,
                }
            print(json.dumps(answer), flush=True)
    finally:
        checker.scratch.remove()


def _inside(scratch: Scratch, outcome: Outcome) -> list[str]:
    return [os.path.relpath(path, scratch.root) for path in outcome.changed]


def main() -> int:
    """Run what the command line says; 1 if there is a counterexample."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--options", action="store_true", help="the same with every option in the programs' help")
    parser.add_argument("--real", action="store_true", help="readers with the real programs: they must write nothing")
    parser.add_argument(
        "--second-opinion", action="store_true", help="print where tree-sitter-bash finds more commands"
    )
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("--serve", action="store_true", help="check the scripts of the input, a JSON text a line")
    parser.add_argument("texts", nargs="*", help="check these scripts only")
    options = parser.parse_args()
    if options.serve:
        serve(sys.stdin, real=options.real)
        return 0
    if options.texts:
        return _check_texts(options.texts, real=options.real)
    started = time.monotonic()
    part = run_all(
        options.seed,
        options.count,
        options.jobs,
        real=options.real,
        options=options.options,
        second=options.second_opinion,
    )
    seconds = time.monotonic() - started
    if options.json:
        print(
            json.dumps(
                {
                    "counts": part.counts,
                    "found": [list(each) for each in part.found],
                    "disagreements": part.disagreements,
                }
            )
        )
    else:
        _print_part(part, seconds)
    return 1 if part.found else 0


def _check_texts(texts: Sequence[str], *, real: bool) -> int:
    checker = real_checker() if real else stub_checker()
    try:
        for text in texts:
            reading = checker.reader.read(text)
            checked = checker.check(text)
            print(f"{'auto' if checked.auto else 'opaque' if checked.opaque else 'asked'}: {text!r}")
            for facet in reading.facets:
                print(
                    "   facet",
                    facet.argv
                    if isinstance(facet, Command)
                    else facet.written
                    if isinstance(facet, PathAccess)
                    else facet,
                )
            print("  ", checked.finding or "as predicted")
    finally:
        checker.scratch.remove()
    return 0


def _print_part(part: Part, seconds: float) -> None:
    for name, count in sorted(part.counts.items()):
        origin = name.removeprefix("auto of ")
        share = f" ({100 * count / max(part.counts[f'made by {origin}'], 1):.0f} %)" if origin != name else ""
        print(f"{count:>9,} {name}{share}")
    print(f"{part.counts['scripts'] / seconds:>9,.0f} scripts a second")
    for found in part.found:
        print(f"\n{found.kind}: {found.what}\n  {found.shrunk!r}\n  made as {found.text!r}")
    for name, text in part.disagreements[:50]:
        print(f"\ntree-sitter: {name}\n  {text!r}")


if __name__ == "__main__":
    sys.exit(main())
