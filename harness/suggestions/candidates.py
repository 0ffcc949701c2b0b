"""What a rule could be about, out of repeated approvals: commands word for word, files by name; pure, proposes nothing.

Never wider than what was seen, but in two cases: a command whose last words are files that it only reads, of which three
different ones were approved; and a folder, of which three files were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import basename, dirname
from typing import TypeAlias

from harness.actions import Access, Act, Command, Opaque, PathAccess, Place
from harness.built_in import is_entry_point
from harness.policy import Source
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS
from harness.record import Record
from harness.rule_examples import plain_command
from harness.rules import Decision
from harness.suggestions.rule_text import is_text
from harness.suggestions.seen import Seen, changed_files

LEAST_DIFFERENT = 3
"""So many different files are what makes a pattern of them."""

_RUNS_ANOTHER = frozenset(
    "run run-script exec x dlx eval tool bisect foreach rebase start script ssh shell console repl invoke do".split()
)
"""Words behind which the name of a program or a script stands (`npm run`, `cargo run`, `uv run`, `git bisect`)."""
_TAKES_AWAY = frozenset("rm rmdir unlink shred truncate dd mv kill pkill killall".split())
"""What these did cannot be looked at afterwards."""
_NEEDS_NO_QUOTES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")
_PATTERN_CHARACTERS = frozenset("*?[]\\!#")

_Commands: TypeAlias = "dict[tuple[str, ...], list[tuple[Command, Seen]]]"
_Asked: TypeAlias = "tuple[PathAccess, Seen, tuple[Access, ...]]"
_Files: TypeAlias = "dict[str, list[_Asked]]"


class Candidate(Record):
    """What was approved at least so often as was asked for."""

    what: str
    """Hostile text."""
    evidence: tuple[Seen, ...]
    problem: str = ""
    """Why no rule can be about it."""
    is_wider: bool = False
    """Whether it is about more than what was seen."""
    commands: tuple[Command, ...] = ()
    """Each that was seen; of what is about files, none."""
    argv: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pattern: str = ""
    """Of files, as policies write it: from the workspace on."""
    files: tuple[str, ...] = ()
    """Those that were seen, by their names in the workspace."""
    access: tuple[Access, ...] = ()


def candidates_of(evidence: Sequence[Seen], least: int) -> Iterator[Candidate]:
    """Yield what was approved at least `least` times in different calls; what is wider than what was seen comes first."""
    commands = _asked_commands(evidence)
    yield from _prefixes(commands)
    for argv, found in commands.items():
        if len(found) >= least:
            (command, _), *_ = found
            problem = command_problem([command for command, _ in found])
            calls = tuple(one for _, one in found)
            yield Candidate(what=shown(command), evidence=calls, problem=problem, commands=(command,), argv=argv)
    files = _asked_files(evidence)
    yield from _folders(files)
    for name, places in files.items():
        if len(places) >= least:
            yield _about_files(name, f"/{name}", {name: places}, is_wider=False)


def refusal_like(candidate: Candidate, one: Seen) -> bool:
    """Say whether a call was refused that is like what the candidate is about: the same program, the same file or folder."""
    if not one.refused:
        return False
    if candidate.commands:
        program = basename(candidate.argv[0])
        if one.action is None:
            return one.tool == "bash" and program in one.summary
        return any(program in _programs(facet) for facet in one.action.facets)
    if one.action is None:
        return any(name in one.summary for name in candidate.files)
    return any(f"/{name}".startswith(candidate.pattern) for path in changed_files(one) for name in path.names)


def shown(command: Command) -> str:
    """Return the command as bash reads it back, each word quoted where it must be."""
    return " ".join(map(_quoted, command.argv))


def _quoted(word: str) -> str:
    if word and _NEEDS_NO_QUOTES.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def is_plain(name: str) -> bool:
    """Say whether a name can stand in a rule as the pattern of itself."""
    return name.isprintable() and name == name.strip() and is_text(name) and _PATTERN_CHARACTERS.isdisjoint(name)


def command_problem(commands: Sequence[Command]) -> str:
    """Return why a command, seen so often, cannot be allowed by its words; or nothing."""
    argv = commands[0].argv
    name = basename(argv[0])
    if not {name, name.rstrip("0123456789.-")}.isdisjoint(INTERPRETERS | SHELLS | WRAPPERS):
        return f"{name} runs what its operands say"
    if any(word in _RUNS_ANOTHER for word in argv[1:3]):
        return "it runs a program or a script that is named behind it"
    if "/" in argv[0]:
        return "the program is named by a file, which may be another one the next time"
    if name in _TAKES_AWAY:
        return f"what {name} takes away does not come back"
    if any(command.variables for command in commands):
        return "variables are set in front of it, and a rule cannot say to what"
    if "..." in argv or not all(map(is_text, argv)) or any(not {"$", "`"}.isdisjoint(word) for word in argv):
        return "its words are not all known, or no rule can say them"
    for path in (path for command in commands for path in command.paths if path.access is not Access.READ):
        if path.place not in (Place.INSIDE, Place.ROOT):
            return f"it may write outside the workspace: {path.written}"
        if is_entry_point(path.real):
            return f"it may write what builds and tests run without naming it: {path.written}"
    return "" if plain_command(argv) is not None else "it is never understood well enough for a rule"


def _programs(facet: object) -> set[str]:
    """Return the programs of a part of a call; of one that was not understood, every word of it."""
    match facet:
        case Command():
            return {basename(facet.argv[0])} if facet.argv else set()
        case Opaque():
            return {basename(word) for words in facet.commands for word in words}
        case _:
            return set()


def _asked_commands(evidence: Iterable[Seen]) -> _Commands:
    """Return the commands that were asked about, by their words; each call counts once for each."""
    found: _Commands = {}
    for one in evidence:
        asked = [] if one.verdict is None else [f.facet for f in one.verdict.facets if f.decision is Decision.CONFIRM]
        if all(isinstance(facet, Command) for facet in asked):  # else a rule for commands would spare nothing
            for argv, command in {f.argv: f for f in asked if isinstance(f, Command)}.items():
                found.setdefault(argv, []).append((command, one))
    return found


def _prefixes(commands: _Commands) -> Iterator[Candidate]:
    """Yield commands whose last words are files that they only read, where enough different ones were approved."""
    by_head: dict[tuple[str, ...], list[tuple[Command, Seen]]] = {}
    for found in commands.values():
        command, _ = found[0]
        head = _head(command)
        if head and not command_problem([command for command, _ in found]):
            by_head.setdefault(head, []).extend(found)
    for head, found in by_head.items():
        seen = {command.argv: command for command, _ in found}
        tails = {tuple(word for word in argv[len(head) :] if not word.startswith("-")) for argv in seen}
        beside = {_beside(command) for command in seen.values()}
        if len(tails) >= LEAST_DIFFERENT and len(beside) == 1:
            flags = dict.fromkeys(word for argv in seen for word in argv[len(head) :] if word.startswith("-"))
            yield Candidate(
                what=f"{' '.join(head)} ...",
                evidence=tuple({id(one): one for _, one in found}.values()),
                is_wider=True,
                commands=tuple(seen.values()),
                argv=head,
                flags=tuple(flags),
            )


def _head(command: Command) -> tuple[str, ...]:
    """Return the words before the first option and the first file; nothing where not all others are files that are only read.

    INVARIANT: by the model of the program, what stands behind these words is read and no more.
    """
    if not command.model or command.act not in (Act.LOOKS, Act.CHANGES) or command.network:
        return ()
    files = {path.written: path for path in command.paths}
    argv = command.argv
    count = next((n for n, word in enumerate(argv) if n and (word in files or word.startswith("-"))), len(argv))
    behind = [word for word in argv[count:] if not word.startswith("-")]
    plain = all(
        word in files
        and files[word].access is Access.READ
        and files[word].place is Place.INSIDE
        and not files[word].tree
        for word in behind
    )
    return argv[:count] if behind and plain and not any("=" in word or word == "-" for word in argv[count:]) else ()


def _beside(command: Command) -> tuple[tuple[str, Access], ...]:
    """Return what it does to files that it does not name: a cache, an index."""
    return tuple((path.written, path.access) for path in command.paths if path.written not in command.argv)


def _asked_files(evidence: Iterable[Seen]) -> _Files:
    """Return the files that were asked about, by name; of calls of the file tools, which have one file each."""
    found: _Files = {}
    for one in evidence:
        if one.tool not in ("write_file", "edit_file") or one.verdict is None:
            continue
        asked = [f for f in one.verdict.facets if f.decision is Decision.CONFIRM and f.source is Source.DEFAULT]
        paths = [verdict.facet for verdict in asked if isinstance(verdict.facet, PathAccess)]
        names = {name for path in paths for name in path.names}
        if len(names) == 1 and len(paths) == len(asked):  # a link has two names, and a rule would have to say both
            accesses = tuple(dict.fromkeys(path.access for path in paths))
            found.setdefault(names.pop(), []).append((paths[0], one, accesses))
    return found


def _folders(files: _Files) -> Iterator[Candidate]:
    by_folder: dict[str, _Files] = {}
    for name, places in files.items():
        if dirname(name):
            by_folder.setdefault(dirname(name), {})[name] = places
    for folder, inside in by_folder.items():
        if len(inside) >= LEAST_DIFFERENT:
            yield _about_files(f"{folder}/", f"/{folder}/", inside, is_wider=True)


def _about_files(what: str, pattern: str, files: Mapping[str, Sequence[_Asked]], *, is_wider: bool) -> Candidate:
    places = [place for found in files.values() for place in found]
    problem = ""
    if not is_plain(pattern):
        problem = "its name cannot stand in a rule as it is"
    elif any(path.place is not Place.INSIDE for path, _, _ in places):
        problem = "it lies outside the workspace"
    elif any(is_entry_point(path.real) for path, _, _ in places):
        problem = "builds and tests run it without naming it"
    return Candidate(
        what=what,
        evidence=tuple(one for _, one, _ in places),
        problem=problem,
        is_wider=is_wider,
        pattern=pattern,
        files=tuple(files),
        access=tuple(dict.fromkeys(access for _, _, accesses in places for access in accesses)),
    )
