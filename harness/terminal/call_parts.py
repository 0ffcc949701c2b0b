"""The parts of a call for a question: each command of a line with all its verdicts. No side effects."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act, Action, Command, Decision, Opaque, PathAccess, Unconfined
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record

_BETWEEN = re.compile(r"[ \t\n;&|(){}!]*")
"""Text that may be between the commands of a line shown part by part: only operators and blanks, no commands or data."""
_REACHES = (Act.LOOKS, Act.WRITES, Act.CHANGES)
"""Acts of commands that certainly use the network. A command that runs other code may not use it."""

DOES = {Access.READ: "reads", Access.WRITE: "writes", Access.EITHER: "reads or writes"}


class Part(Record):
    """A command, a text that could not be parsed, or a file without a command."""

    text: str
    """The text in the call, or the access to a file. Hostile text."""
    verdicts: tuple[FacetVerdict, ...]

    @property
    def asks(self) -> bool:
        """Whether it needs the user's approval."""
        return any(verdict.decision is Decision.CONFIRM for verdict in self.verdicts)

    @property
    def reaches_network(self) -> bool:
        """Whether it certainly reaches the network."""
        facets = (verdict.facet for verdict in self.verdicts)
        return any(isinstance(facet, Command) and facet.network and facet.act in _REACHES for facet in facets)

    @property
    def needs(self) -> str:
        """The sockets that its commands need, in words for the user."""
        facets = (judgement.facet for judgement in self.verdicts)
        return ", ".join(dict.fromkeys(facet.needs for facet in facets if isinstance(facet, Command) and facet.needs))

    def reasons(self, opened: frozenset[str]) -> tuple[str, ...]:
        """Return the reasons for the question other than a missing rule. Not yet safe to show.

        `opened` are written paths and protected places that the question names elsewhere.
        """
        return tuple(dict.fromkeys(reason for verdict in self.verdicts if (reason := _reason(verdict, opened))))


def _reason(verdict: FacetVerdict, opened: frozenset[str]) -> str:
    facet = verdict.facet
    if isinstance(facet, PathAccess) and facet.access is Access.WRITE and _is_named(verdict, facet, opened):
        return ""
    usual = verdict.source in (Source.DEFAULT, Source.COVERED) or isinstance(facet, Unconfined)
    if verdict.decision is not Decision.CONFIRM or usual:
        return ""
    if isinstance(facet, PathAccess):
        is_named = verdict.reason.startswith(
            f"{facet.written} "
        )  # as in the reasons of built-in rules: `/etc lies outside ...`
        does = f"{DOES[facet.access]} {facet.written}" + (", which " if is_named else ": ")
        return (
            f"{does}{verdict.reason.removeprefix(f'{facet.written} ') if is_named else verdict.reason}{_rule(verdict)}"
        )
    return f"{verdict.reason}{_rule(verdict)}"


def _is_named(verdict: FacetVerdict, path: PathAccess, opened: frozenset[str]) -> bool:
    """Return whether a question about a written path says no more than that the path is opened."""
    if verdict.by == "built-in protected":
        return not opened.isdisjoint(path.names)
    return path.real in opened and verdict.reason == f"{path.written} lies outside the workspace"


def _rule(verdict: FacetVerdict) -> str:
    return f"  [rule {verdict.rule}]" if verdict.rule else ""


def parts_of(action: Action, verdict: Verdict) -> tuple[Part, ...]:
    """Return the commands of a call in order, each with its input, its wrapper and its output files.

    A file without a command is a separate part. INVARIANT: every reason for the question is in one of the parts, except
    an unconfined run and a hook's question.
    """
    action_facets = set(map(id, action.facets))
    parts: list[tuple[str, list[FacetVerdict]]] = []
    files: list[FacetVerdict] = []
    for facet_verdict in verdict.facets:
        facet = facet_verdict.facet
        match facet:
            case Unconfined():
                continue
            case _ if facet_verdict.source is Source.HOOK:
                continue
            case PathAccess() if id(facet) in action_facets:
                files.append(facet_verdict)
            case PathAccess() if parts:
                parts[-1][1].append(facet_verdict)
            case Command() | Opaque() if parts and _is_within(facet, parts[-1][0]):
                parts[-1][1].extend((*files, facet_verdict))
                files = []
            case _:
                text = facet.text
                parts += _of_files([file for file in files if not _names(text, file)])
                parts.append((text, [*(file for file in files if _names(text, file)), facet_verdict]))
                files = []
    return tuple(Part(text=text, verdicts=tuple(verdicts)) for text, verdicts in (*parts, *_of_files(files)))


def _names(text: str, verdict: FacetVerdict) -> bool:
    return isinstance(verdict.facet, PathAccess) and verdict.facet.written in text


def _of_files(files: Sequence[FacetVerdict]) -> list[tuple[str, list[FacetVerdict]]]:
    """Return one part for each file. It combines the verdicts for reading and writing."""
    by_name: dict[str, tuple[str, list[FacetVerdict]]] = {}
    for file in files:
        if isinstance(file.facet, PathAccess):
            does = f"{DOES[file.facet.access]} {file.facet.text}"
            by_name.setdefault(file.facet.text, (does, []))[1].append(file)
    return [*by_name.values()]


def _is_within(facet: Command | Opaque, text: str) -> bool:
    """Return whether a facet belongs to the part `text` before it: the same text, or a command that it runs."""
    return facet.text == text or (isinstance(facet, Command) and bool(facet.run_by) and facet.text in text)


def split(text: str, parts: Sequence[Part]) -> tuple[str, ...]:
    """Split a command line into one piece per part. Joined, the pieces are the whole line. Empty if that is impossible.

    INVARIANT: the line is split only if the parts, in order, contain everything except operators. So no piece can
    contain another part.
    """
    starts: list[int] = []
    at = 0
    for part in parts:
        begin = text.find(part.text, at) if part.text else -1
        if begin < 0 or not _BETWEEN.fullmatch(text, at, begin):
            return ()
        starts.append(begin)
        at = begin + len(part.text)
    if not starts or not _BETWEEN.fullmatch(text, at):
        return ()
    return tuple(text[start:end] for start, end in zip((0, *starts[1:]), (*starts[1:], len(text)), strict=True))
