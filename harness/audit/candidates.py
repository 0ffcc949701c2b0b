"""What a rule could be about, out of repeated approvals: commands word for word, files by name; pure, proposes nothing.

Never wider than what was seen, but in two cases: a command whose last words are files that it only reads, of which three
different ones were approved; and a folder, of which three files were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, dirname

from harness.actions import Access, Act, Command, Opaque, PathAccess, Place
from harness.audit.rule_text import command_rule, path_rule
from harness.audit.seen import Seen
from harness.built_in import is_entry_point
from harness.errors import PolicyError
from harness.policy import Source
from harness.policy_file import parse_policy
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS
from harness.record import Record
from harness.rule_examples import plain_command
from harness.rules import Decision, Rule

LEAST_DIFFERENT = 3
"""So many different files are what makes a pattern of them."""
MOST_EXAMPLES = 4

_RUNS_ANOTHER = frozenset(
    "run run-script exec x dlx eval tool bisect foreach rebase start script ssh shell console repl invoke do".split()
)
"""Second words behind which the name of a program or a script stands (`npm run`, `cargo run`, `uv run`, `git bisect`)."""
_PATTERN_CHARACTERS = frozenset("*?[]\\!#")


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
    """Each that was seen."""
    argv: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    pattern: str = ""
    """Of files, as policies write it."""
    files: tuple[str, ...] = ()
    """Those that were seen, by their names in the workspace."""
    access: tuple[Access, ...] = ()

    def written(self, taken: Iterable[str], seen: Sequence[Seen]) -> tuple[str, str, Rule] | str:
        """Return id, TOML and the rule, its examples run by the loader; or why there can be none."""
        if self.commands:
            name, toml = self._command_rule(taken, seen)
        else:
            name, toml = self._path_rule(taken, seen)
        try:
            (rule,) = parse_policy(b"version = 1\n" + toml.encode("ascii"), "suggestion").rules
        except (PolicyError, ValueError) as error:
            return f"the loader refuses the rule: {error}"
        return name, toml, rule

    def _command_rule(self, taken: Iterable[str], seen: Sequence[Seen]) -> tuple[str, str]:
        acts = {command.act for command in self.commands}
        writes = bool(acts & {Act.CHANGES, Act.RUNS, Act.UNKNOWN}) and all("." in one.granted for one in self.evidence)
        network = all(c.network for c in self.commands) and all(one.network for one in self.evidence)
        lines = dict.fromkeys(shown(command) for command in self.commands)
        others = dict.fromkeys(
            shown(facet)
            for one in seen
            if one.action is not None
            for facet in one.action.facets
            if isinstance(facet, Command) and facet.argv[0] == self.argv[0]
        )
        first = next(iter(lines))
        tried = [f"{first}; touch another-file", f"{first} > another-file", f"PATH=/tmp {first}"]
        tried.append(f"{first} --another-option")
        return command_rule(
            taken,
            argv=self.argv,
            rest=self.is_wider,
            flags=self.flags,
            write=writes,
            network=network,
            match=list(lines)[:MOST_EXAMPLES],
            not_match=[*tried, *[line for line in others if not self._covers(line)][:MOST_EXAMPLES]],
            times=len(self.evidence),
        )

    def _covers(self, line: str) -> bool:
        """Say whether an example is, or may be, one that the rule is about."""
        return any(
            command.argv[: len(self.argv)] == self.argv
            for command in (*self.commands, *_commands_in(line, self.argv[0]))
            if shown(command) == line
        )

    def _path_rule(self, taken: Iterable[str], seen: Sequence[Seen]) -> tuple[str, str]:
        tools = sorted({one.tool for one in self.evidence})
        others = dict.fromkeys(name for one in seen for path in _changes(one) for name in path.names)
        outside = [name for name in others if not f"/{name}".startswith(self.pattern) and is_plain(name)]
        match = [name for name in self.files if is_plain(name)][:MOST_EXAMPLES]
        return path_rule(
            taken,
            pattern=self.pattern,
            tools=tools,
            access=[access.value for access in self.access],
            match=match,
            not_match=[f"another/{match[0]}", *[name for name in outside if not name.startswith("/")][:MOST_EXAMPLES]],
            times=len(self.evidence),
        )


def candidates_of(evidence: Sequence[Seen], least: int) -> Iterator[Candidate]:
    """Yield what was approved at least `least` times in different calls; what is wider than what was seen comes first."""
    commands = _grouped_commands(evidence)
    yield from _prefixes(commands)
    for argv, found in commands.items():
        if len(found) >= least:
            (command, _), *_ = found
            yield Candidate(
                what=shown(command),
                evidence=tuple(one for _, one in found),
                problem=_command_problem([command for command, _ in found]),
                commands=(command,),
                argv=argv,
            )
    files = _grouped_files(evidence)
    yield from _folders(files)
    for name, places in files.items():
        if len(places) >= least:
            yield _about_files(name, f"/{name}", {name: places}, is_wider=False)


def refusal_like(candidate: Candidate, one: Seen) -> bool:
    """Say whether a call was refused that is like what the candidate is about; in doubt, yes."""
    if not one.refused:
        return False
    if candidate.commands:
        programs = {basename(candidate.argv[0])}
        if one.action is None:
            return one.tool == "bash" and any(program in one.summary for program in programs)
        return any(
            _is_like(candidate.commands, facet) for facet in one.action.facets if isinstance(facet, Command | Opaque)
        )
    if one.action is None:
        return one.tool != "bash" and any(name in one.summary or one.summary in name for name in candidate.files)
    names = [name for path in _changes(one) for name in path.names]
    return any(f"/{name}".startswith(candidate.pattern) for name in names)


def shown(command: Command) -> str:
    """Return the command as bash reads it back, each word quoted where it must be."""
    from shlex import join

    return join(command.argv)


def is_plain(name: str) -> bool:
    """Say whether a name can stand in a rule as the pattern of itself."""
    return name.isprintable() and name == name.strip() and not _PATTERN_CHARACTERS.intersection(name)


def _is_like(commands: Sequence[Command], facet: Command | Opaque) -> bool:
    """Say whether it is the same program, and, where models tell, not surely another of its subcommands."""
    program = basename(commands[0].argv[0])
    if isinstance(facet, Opaque):
        return any(basename(word) == program for words in facet.commands for word in words)
    if not facet.argv or basename(facet.argv[0]) != program:
        return False
    models = {command.model for command in commands}
    return not facet.model or "" in models or facet.model in models


def _grouped_commands(evidence: Sequence[Seen]) -> dict[tuple[str, ...], list[tuple[Command, Seen]]]:
    """Return the commands that were asked about, by their words; each call counts once for each."""
    found: dict[tuple[str, ...], list[tuple[Command, Seen]]] = {}
    for one in evidence:
        asked = [f.facet for f in one.verdict.facets if f.decision is Decision.CONFIRM] if one.verdict else []
        if not all(isinstance(facet, Command) for facet in asked):
            continue  # a redirection into a file: a rule for the command alone would not spare the question
        by_words = {facet.argv: facet for facet in asked if isinstance(facet, Command)}
        for argv, command in by_words.items():
            found.setdefault(argv, []).append((command, one))
    return found


def _command_problem(commands: Sequence[Command]) -> str:
    """Return why a command cannot be allowed by its words, or nothing."""
    argv = commands[0].argv
    name = basename(argv[0])
    plain = name.rstrip("0123456789.-")
    if not {name, plain}.isdisjoint(INTERPRETERS | SHELLS | WRAPPERS):
        return f"{name} runs what its operands say"
    if any(word in _RUNS_ANOTHER for word in argv[1:3]):
        return f"{' '.join(argv[:3])} runs a program or a script that is named behind it"
    if any(command.variables for command in commands):
        return "variables are set in front of it, and a rule could not say to what"
    for path in (path for command in commands for path in command.paths):
        if path.access is not Access.READ and path.place not in (Place.INSIDE, Place.ROOT):
            return f"it may write outside the workspace: {path.written}"
        if path.access is not Access.READ and is_entry_point(path.real):
            return f"it may write what builds and tests run: {path.written}"
    if "..." in argv or not all(is_text(word) for word in argv):
        return "a rule cannot say its words"
    return "" if plain_command(argv) is not None else "it is never understood well enough for a rule"


def is_text(word: str) -> bool:
    """Say whether a word can stand in a policy file: Unicode without lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in word)


def _prefixes(commands: dict[tuple[str, ...], list[tuple[Command, Seen]]]) -> Iterator[Candidate]:
    """Yield commands whose last words are files that they only read, where enough different ones were approved."""
    by_model: dict[tuple[str, str], list[tuple[Command, Seen]]] = {}
    for found in commands.values():
        command, _ = found[0]
        if command.model and _only_reads(command) and not _command_problem([c for c, _ in found]):
            by_model.setdefault((command.argv[0], command.model), []).extend(found)
    for (program, model), found in by_model.items():
        words = [_parted(command) for command, _ in found]
        heads, tails = {head for head, _, _ in words}, {tail for _, _, tail in words}
        if len(heads) == 1 and len(tails) >= LEAST_DIFFERENT:
            (head,) = heads
            if len(head) < len(model.split()):
                continue
            different = {command.argv: command for command, _ in found}
            yield Candidate(
                what=f"{' '.join(head)} ...",
                evidence=tuple(dict((id(one), one) for _, one in found).values()),
                is_wider=True,
                commands=tuple(different.values()),
                argv=head,
                flags=tuple(dict.fromkeys(flag for _, flags, _ in words for flag in flags)),
            )


def _only_reads(command: Command) -> bool:
    if command.act not in (Act.LOOKS, Act.CHANGES) or command.network or not command.paths:
        return False
    return all(path.access is Access.READ and path.place is Place.INSIDE and not path.tree for path in command.paths)


def _parted(command: Command) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the words before the first option or file, the options, and the files; nothing where a word is none of these."""
    files = {path.written for path in command.paths}
    head: list[str] = []
    for word in command.argv:
        if word in files or word.startswith("-"):
            break
        head.append(word)
    rest = command.argv[len(head) :]
    flags = tuple(word for word in rest if word.startswith("-"))
    tail = tuple(word for word in rest if word in files)
    if len(flags) + len(tail) != len(rest) or any("=" in flag for flag in flags):
        return command.argv, (), ()
    return tuple(head), flags, tail


def _commands_in(line: str, program: str) -> Iterator[Command]:
    from shlex import split

    command = plain_command(split(line)) if line.startswith(program) else None
    if command is not None:
        yield command


def _grouped_files(evidence: Sequence[Seen]) -> dict[str, list[tuple[PathAccess, Seen, tuple[Access, ...]]]]:
    """Return the files that were asked about, by name; of calls of the file tools, which have one file each."""
    found: dict[str, list[tuple[PathAccess, Seen, tuple[Access, ...]]]] = {}
    for one in evidence:
        if one.tool not in ("write_file", "edit_file") or one.verdict is None:
            continue
        asked = [f for f in one.verdict.facets if f.decision is Decision.CONFIRM and f.source is Source.DEFAULT]
        paths = [verdict.facet for verdict in asked if isinstance(verdict.facet, PathAccess)]
        names = {name for path in paths for name in path.names}
        if len(names) != 1 or len(paths) != len(asked):
            continue  # a link: it has two names, and a rule would have to say both
        (name,) = names
        accesses = tuple(dict.fromkeys(path.access for path in paths))
        found.setdefault(name, []).append((paths[0], one, accesses))
    return found


def _folders(files: dict[str, list[tuple[PathAccess, Seen, tuple[Access, ...]]]]) -> Iterator[Candidate]:
    by_folder: dict[str, dict[str, list[tuple[PathAccess, Seen, tuple[Access, ...]]]]] = {}
    for name, places in files.items():
        if dirname(name):
            by_folder.setdefault(dirname(name), {})[name] = places
    for folder, inside in by_folder.items():
        if len(inside) >= LEAST_DIFFERENT:
            yield _about_files(f"{folder}/", f"/{folder}/", inside, is_wider=True)


def _about_files(
    what: str, pattern: str, files: dict[str, list[tuple[PathAccess, Seen, tuple[Access, ...]]]], *, is_wider: bool
) -> Candidate:
    places = [place for found in files.values() for place in found]
    problem = ""
    if not is_plain(pattern) or not is_text(pattern):
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


def _changes(one: Seen) -> Iterator[PathAccess]:
    """Yield the files that a call would write."""
    for facet in () if one.action is None else one.action.all_facets():
        if isinstance(facet, PathAccess) and facet.access is not Access.READ:
            yield facet
