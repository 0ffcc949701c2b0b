"""Possible subjects of rules, from repeated approvals: commands word for word, files by name.

INVARIANT: a rule never covers a command or file that was not approved itself. One exception: a reading command that was
approved with three different files in the same position. Its rule lists exactly those files.
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
"""Answers that reject the call as proposed."""


class SeenCall(Record):
    """A call of a log that was not auto, or would not be now."""

    log: str
    session: str
    call: str
    tool: str
    summary: str
    """The call in one line. Untrusted text."""
    decided: str
    """The decision in the log."""
    action: Action | None
    """The call, rebuilt from the log. `None` if the log has only a part of it."""
    policy: Policy | None
    """The policy at the time. `None` if the log lacks its text."""
    verdict: Verdict | None
    """The verdict of `policy` with the files as they are now. `None` if the call cannot be judged again."""
    unseen: tuple[str, ...]
    answer: str = ""
    by: str = ""
    """The source of the answer."""
    granted: tuple[str, ...] = ()
    """Further places that the call was permitted to write when it ran."""
    network: bool = False
    """Whether the call was permitted to reach the network when it ran."""
    policy_sha256: str = ""

    @property
    def approved(self) -> bool:
        """Whether a person was asked and approved."""
        return self.decided == "confirm" and self.answer == "yes" and self.by == "person"

    @property
    def refused(self) -> bool:
        """Whether the approver refused the call or replaced it by another."""
        return self.answer in REFUSALS


def is_evidence(call: SeenCall) -> bool:
    """Return whether a person approved this call and a rule could have spared the question."""
    return call.approved and not why_no_evidence(call)


def why_no_evidence(call: SeenCall) -> str:
    """Return the reason why a person's approval of this call supports no rule.

    Empty if it supports one, and for calls that no person approved.
    """
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
    """Yield the files that a call reads or writes, or may read or write."""
    for facet in () if call.action is None else call.action.all_facets():
        if isinstance(facet, PathAccess):
            yield facet


LEAST_DIFFERENT = 3
"""Minimum number of different files for one rule about all of them."""

_Words: TypeAlias = "tuple[str, ...]"
_Commands: TypeAlias = "dict[_Words, list[tuple[Command, SeenCall]]]"
_Asked: TypeAlias = "tuple[PathAccess, SeenCall, tuple[Access, ...]]"
_Files: TypeAlias = "dict[str, list[_Asked]]"


class RuleCandidate(Record):
    """A subject with at least the requested number of approvals."""

    subject: str
    """The command or file. Untrusted text."""
    evidence: tuple[SeenCall, ...]
    problem: str = ""
    """Reason why no rule can cover the subject. Empty if one can."""
    is_choice: bool = False
    """Whether the subject is several commands. Each of them may have been approved just once."""
    commands: tuple[Command, ...] = ()
    """The approved commands. Empty if the subject is a file."""
    tokens: tuple[_Words, ...] = ()
    """The words of the command, each with its alternatives."""
    files: tuple[str, ...] = ()
    """Names in the workspace: of the file that is the subject, or of the files that the commands use."""
    access: tuple[Access, ...] = ()
    """The approved kinds of access, if the subject is a file."""


def candidates_of(evidence: Sequence[SeenCall], minimum: int) -> Iterator[RuleCandidate]:
    """Yield the subjects with at least `minimum` approvals in different calls, those of several commands first."""
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
    """Yield each folder with several approved plain files, their number, and their calls. No rule covers a folder."""
    folders: dict[str, _Files] = {}
    for name, places in _asked_files(evidence).items():
        if dirname(name) and not any(file_problem(path) for path, _, _ in places):
            folders.setdefault(dirname(name), {})[name] = places
    for folder, files in folders.items():
        if len(files) >= LEAST_DIFFERENT:
            yield f"{folder}/", len(files), tuple(call for places in files.values() for _, call, _ in places)


def refusal_like(candidate: RuleCandidate, call: SeenCall) -> bool:
    """Return whether `call` was refused and resembles the candidate: it has the same program or one of its files.

    The program's name counts at any position: `sudo frob`, `python3 -m frob`.
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
    """Return the words of a part that could be names of programs, without their folders."""
    match facet:
        case Command():
            return set(map(basename, facet.argv))
        case Opaque():
            return {basename(word) for words in facet.commands for word in words}
        case _:
            return set()


def _file_names(commands: Iterable[Command]) -> tuple[str, ...]:
    """Return the names of the files that the commands use, without the workspace folder itself."""
    paths = (path for command in commands for path in command.paths if path.place is not Place.ROOT)
    return tuple(dict.fromkeys(name for path in paths for name in path.names))


def _asked_commands(evidence: Iterable[SeenCall]) -> _Commands:
    """Return the commands that needed approval, by their words, each with its calls."""
    commands: _Commands = {}
    for call in evidence:
        asked_facets = (
            [] if call.verdict is None else [f.facet for f in call.verdict.facets if f.decision is Decision.CONFIRM]
        )
        if all(
            isinstance(facet, Command) for facet in asked_facets
        ):  # otherwise a rule for commands cannot spare the question
            for argv, command in {f.argv: f for f in asked_facets if isinstance(f, Command)}.items():
                commands.setdefault(argv, []).append((command, call))
    return commands


def _choices(commands: _Commands) -> Iterator[RuleCandidate]:
    """Yield each reading command that was approved with at least LEAST_DIFFERENT files in the same position."""
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
    """Yield the indexes of words that name a file in the workspace. Empty unless the command only reads."""
    if command.act is not Act.LOOKS:
        return
    for place, word in enumerate(command.argv):
        uses = [path for path in command.paths if path.written == word]
        plain = all(path.access is Access.READ and path.place is Place.INSIDE and not path.tree for path in uses)
        if place and uses and plain and not word.startswith("-"):
            yield place


def _asked_files(evidence: Iterable[SeenCall]) -> _Files:
    """Return the files that needed approval, by name, each with its calls. Only calls of writing file tools count."""
    files: _Files = {}
    for call in evidence:
        if tool_kind(call.tool).does is not Does.WRITES or call.verdict is None:
            continue
        asked_facets = [f for f in call.verdict.facets if f.decision is Decision.CONFIRM and f.source is Source.DEFAULT]
        paths = [verdict.facet for verdict in asked_facets if isinstance(verdict.facet, PathAccess)]
        names = {name for path in paths for name in path.names}
        # A link has two names, and a rule would have to list both.
        if len(names) == 1 and len(paths) == len(asked_facets):
            accesses = tuple(dict.fromkeys(path.access for path in paths))
            files.setdefault(names.pop(), []).append((paths[0], call, accesses))
    return files
