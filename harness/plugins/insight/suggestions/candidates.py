"""Possible subjects of rules, from repeated approvals: commands word for word, files by name.

INVARIANT: a rule is never about anything that was not approved itself, except for one reading command whose words
were approved with three different files in one place: those files are listed one by one, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename, dirname
from typing import TypeAlias

from harness.actions import Access, Act, Action, Command, Decision, Facet, Opaque, PathAccess, Place
from harness.policy.policy import Policy
from harness.policy.verdict import Source, Verdict
from harness.record import Record
from harness.session.rule_subjects import command_problem, file_problem, is_about, may_mention, quoted_command
from harness.tool_kinds import Does, tool_kind

REFUSALS = ("no", "stop", "edit")
"""Answers that say: not this call."""


class SeenCall(Record):
    """A call of a log that was not auto, or would not be now."""

    log: str
    session: str
    call: str
    tool: str
    summary: str
    """Hostile text."""
    decided: str
    """The log's word for what was decided."""
    action: Action | None
    """None where the log does not hold all of it."""
    policy: Policy | None
    """The policy at the time. `None` if the log lacks its text."""
    verdict: Verdict | None
    """The verdict of that policy, on the present disk."""
    unseen: tuple[str, ...]
    answer: str = ""
    by: str = ""
    """The source of the answer."""
    granted: tuple[str, ...] = ()
    """Further places that it was allowed to write when it ran."""
    network: bool = False
    """Whether it was allowed to reach the network, when it ran."""
    policy_sha256: str = ""

    @property
    def approved(self) -> bool:
        """Whether a person was asked, and said yes."""
        return self.decided == "confirm" and self.answer == "yes" and self.by == "person"

    @property
    def refused(self) -> bool:
        """Whether the approver said no, or requested another call in its place."""
        return self.answer in REFUSALS


def is_evidence(call: SeenCall) -> bool:
    """Say whether a person's yes to this call is one that a rule could have spared: only defaults asked, now as then."""
    return call.approved and not why_no_evidence(call)


def why_no_evidence(call: SeenCall) -> str:
    """Return the reason why a person's yes to this call supports no rule; empty if it does, and for other calls."""
    if not call.approved:
        return ""
    if call.action is None:
        return "the logs hold it only in part, or masked"
    if call.verdict is None:
        return "the policy that asked is not known"
    if call.verdict.decision is not Decision.CONFIRM:
        return f"the policy that asked then says {call.verdict.decision.word} on the disk as it is now"
    if call.unseen:
        return "what builds and tests run had been changed, and nobody had seen it"
    if not call.verdict.from_default:
        return f"it is asked about by {call.verdict.deciding.by}, which no further rule lifts"
    return ""


def touched_files(call: SeenCall) -> Iterator[PathAccess]:
    """Yield the files that a call would read or write, or may."""
    for facet in () if call.action is None else call.action.all_facets():
        if isinstance(facet, PathAccess):
            yield facet


LEAST_DIFFERENT = 3
"""Number of different files that become one rule."""

_Words: TypeAlias = "tuple[str, ...]"
_Commands: TypeAlias = "dict[_Words, list[tuple[Command, SeenCall]]]"
_Asked: TypeAlias = "tuple[PathAccess, SeenCall, tuple[Access, ...]]"
_Files: TypeAlias = "dict[str, list[_Asked]]"


class RuleCandidate(Record):
    """A subject with at least the requested number of approvals."""

    subject: str
    """Hostile text."""
    evidence: tuple[SeenCall, ...]
    problem: str = ""
    """Reason why no rule can be about it."""
    is_choice: bool = False
    """Whether it is about several commands, each of which may have been approved once."""
    commands: tuple[Command, ...] = ()
    """Each that was seen; of what is about a file, none."""
    tokens: tuple[_Words, ...] = ()
    """The words of the command, each a choice."""
    files: tuple[str, ...] = ()
    """The file, or those that the commands use, by their names in the workspace."""
    access: tuple[Access, ...] = ()
    """The kinds of access to a file."""


def candidates_of(evidence: Sequence[SeenCall], minimum: int) -> Iterator[RuleCandidate]:
    """Yield the subjects with at least `minimum` approvals in different calls; those of several commands come first."""
    commands = _asked_commands(evidence)
    yield from _choices(commands)
    for argv, uses in commands.items():
        if len(uses) >= minimum:
            commands_seen = [command for command, _ in uses]
            yield RuleCandidate(
                subject=quoted_command(commands_seen[0]),
                evidence=tuple(call for _, call in uses),
                problem=command_problem(commands_seen),
                commands=(commands_seen[0],),
                tokens=tuple((word,) for word in argv),
                files=_file_names(commands_seen),
            )
    for name, places in _asked_files(evidence).items():
        if len(places) >= minimum:
            yield RuleCandidate(
                subject=name,
                evidence=tuple(call for _, call, _ in places),
                problem=next((problem for path, _, _ in places if (problem := file_problem(path))), ""),
                files=(name,),
                access=tuple(dict.fromkeys(access for _, _, accesses in places for access in accesses)),
            )


def folders_of(evidence: Sequence[SeenCall]) -> Iterator[tuple[str, int, tuple[SeenCall, ...]]]:
    """Yield the folders of which several plain files were approved, with their number: no rule is suggested for one."""
    folders: dict[str, _Files] = {}
    for name, places in _asked_files(evidence).items():
        if dirname(name) and not any(file_problem(path) for path, _, _ in places):
            folders.setdefault(dirname(name), {})[name] = places
    for folder, files in folders.items():
        if len(files) >= LEAST_DIFFERENT:
            yield f"{folder}/", len(files), tuple(call for places in files.values() for _, call, _ in places)


def refusal_like(candidate: RuleCandidate, call: SeenCall) -> bool:
    """Return whether a call was refused that resembles the candidate: the same program, or one of its files.

    A word that is the program's name counts as the program anywhere: `sudo frob`, `python3 -m frob`.
    """
    if not call.refused:
        return False
    program = basename(candidate.tokens[0][0]) if candidate.tokens else ""
    if call.action is None:
        return (bool(program) and program in call.summary) or any(may_mention(call.summary, n) for n in candidate.files)
    if program and any(program in _words(facet) for facet in call.action.facets):
        return True
    return any(is_about(path, name) for path in touched_files(call) for name in candidate.files)


def _words(facet: Facet) -> set[str]:
    """Return the words of a part of a call that could name a program, without their folders."""
    match facet:
        case Command():
            return set(map(basename, facet.argv))
        case Opaque():
            return {basename(word) for words in facet.commands for word in words}
        case _:
            return set()


def _file_names(commands: Iterable[Command]) -> tuple[str, ...]:
    """Return the files that commands use, but the workspace itself."""
    paths = (path for command in commands for path in command.paths if path.place is not Place.ROOT)
    return tuple(dict.fromkeys(name for path in paths for name in path.names))


def _asked_commands(evidence: Iterable[SeenCall]) -> _Commands:
    """Return the commands that were asked about, by their words; each call counts once for each."""
    commands: _Commands = {}
    for call in evidence:
        asked_facets = (
            [] if call.verdict is None else [f.facet for f in call.verdict.facets if f.decision is Decision.CONFIRM]
        )
        if all(isinstance(facet, Command) for facet in asked_facets):  # else a rule for commands would spare nothing
            for argv, command in {f.argv: f for f in asked_facets if isinstance(f, Command)}.items():
                commands.setdefault(argv, []).append((command, call))
    return commands


def _choices(commands: _Commands) -> Iterator[RuleCandidate]:
    """Yield commands that only look, and are the same but for one file, where enough different ones were approved."""
    alike: dict[tuple[_Words, _Words], dict[str, list[tuple[Command, SeenCall]]]] = {}
    for argv, uses in commands.items():
        if not command_problem([command for command, _ in uses]):
            for place in _file_places(uses[0][0]):
                alike.setdefault((argv[:place], argv[place + 1 :]), {})[argv[place]] = uses
    for (before, after), files in alike.items():
        if len(files) >= LEAST_DIFFERENT:
            all_uses = [both for uses in files.values() for both in uses]
            yield RuleCandidate(
                subject=" ".join((*before, "FILE", *after)),
                evidence=tuple({id(call): call for _, call in all_uses}.values()),
                is_choice=True,
                commands=tuple({command.argv: command for command, _ in all_uses}.values()),
                tokens=(*((word,) for word in before), tuple(files), *((word,) for word in after)),
                files=_file_names(command for command, _ in all_uses),
            )


def _file_places(command: Command) -> Iterator[int]:
    """Yield the indexes at which a reading command names one file of the workspace that it reads."""
    if command.act is not Act.LOOKS:
        return
    for place, word in enumerate(command.argv):
        uses = [path for path in command.paths if path.written == word]
        plain = all(path.access is Access.READ and path.place is Place.INSIDE and not path.tree for path in uses)
        if place and uses and plain and not word.startswith("-"):
            yield place


def _asked_files(evidence: Iterable[SeenCall]) -> _Files:
    """Return the files that were asked about, by name; of calls of the file tools, which have one file each."""
    files: _Files = {}
    for call in evidence:
        if tool_kind(call.tool).does is not Does.WRITES or call.verdict is None:
            continue
        asked_facets = [f for f in call.verdict.facets if f.decision is Decision.CONFIRM and f.source is Source.DEFAULT]
        paths = [verdict.facet for verdict in asked_facets if isinstance(verdict.facet, PathAccess)]
        names = {name for path in paths for name in path.names}
        # A link has two names, and a rule would have to say both.
        if len(names) == 1 and len(paths) == len(asked_facets):
            accesses = tuple(dict.fromkeys(path.access for path in paths))
            files.setdefault(names.pop(), []).append((paths[0], call, accesses))
    return files
