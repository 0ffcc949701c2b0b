"""The parts of a call as a question shows them: each command of a line with all that was judged of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.actions import Access, Act, Action, Command, Opaque, PathAccess, Unconfined
from harness.decisions import Decision
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import Record

_BETWEEN = re.compile(r"[ \t\n;&|(){}!]*")
"""Text between the commands of a line that is shown part by part: operators, which neither run nor are data."""
_REACHES = (Act.LOOKS, Act.WRITES, Act.CHANGES)
"""Acts whose network use is known; that of run code is not."""

DOES = {Access.READ: "reads", Access.WRITE: "writes", Access.EITHER: "reads or writes"}


class Part(Record):
    """A command, or what was not understood."""

    text: str
    """The text in the call, or the access to a file. Hostile text."""
    judged: tuple[FacetVerdict, ...]

    @property
    def asks(self) -> bool:
        """Whether it needs the person."""
        return any(one.decision is Decision.CONFIRM for one in self.judged)

    @property
    def reaches_network(self) -> bool:
        """Whether it is known to reach the network."""
        facets = (one.facet for one in self.judged)
        return any(isinstance(facet, Command) and facet.network and facet.act in _REACHES for facet in facets)

    @property
    def needs(self) -> str:
        """The sockets that its commands need, in words for a person."""
        facets = (judgement.facet for judgement in self.judged)
        return ", ".join(dict.fromkeys(facet.needs for facet in facets if isinstance(facet, Command) and facet.needs))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for the question beyond a missing rule; not yet safe to show."""
        return tuple(dict.fromkeys(said for one in self.judged if (said := _reason(one))))


def _reason(judged: FacetVerdict) -> str:
    facet = judged.facet
    usual = judged.source in (Source.DEFAULT, Source.COVERED) or isinstance(facet, Unconfined)
    if judged.decision is not Decision.CONFIRM or usual:
        return ""
    if isinstance(facet, PathAccess):
        named = judged.reason.startswith(f"{facet.written} ")  # as what is built in says it: `/etc lies outside ...`
        does = f"{DOES[facet.access]} {facet.written}" + (", which " if named else ": ")
        return f"{does}{judged.reason.removeprefix(f'{facet.written} ') if named else judged.reason}{_rule(judged)}"
    return f"{judged.reason}{_rule(judged)}"


def _rule(judged: FacetVerdict) -> str:
    return f"  [rule {judged.rule}]" if judged.rule else ""


def parts_of(action: Action, verdict: Verdict) -> tuple[Part, ...]:
    """Return the commands of a call in order, each with its input, its wrapper and its output files.

    INVARIANT: everything that leads to the question is in one of them, except an unconfined run and a hook's
    question: a file without a command is a part of its own.
    """
    own = set(map(id, action.facets))
    parts: list[tuple[str, list[FacetVerdict]]] = []
    files: list[FacetVerdict] = []
    for judged in verdict.facets:
        facet = judged.facet
        match facet:
            case Unconfined():
                continue
            case _ if judged.source is Source.HOOK:
                continue
            case PathAccess() if id(facet) in own:
                files.append(judged)
            case PathAccess() if parts:
                parts[-1][1].append(judged)
            case Command() | Opaque() if parts and _is_within(facet, parts[-1][0]):
                parts[-1][1].extend((*files, judged))
                files = []
            case _:
                text = facet.text
                parts += _of_files([one for one in files if not _names(text, one)])
                parts.append((text, [*(one for one in files if _names(text, one)), judged]))
                files = []
    return tuple(Part(text=text, judged=tuple(judged)) for text, judged in (*parts, *_of_files(files)))


def _names(text: str, judged: FacetVerdict) -> bool:
    return isinstance(judged.facet, PathAccess) and judged.facet.written in text


def _of_files(files: Sequence[FacetVerdict]) -> list[tuple[str, list[FacetVerdict]]]:
    """Return a part for each file, which may be read and written."""
    by_name: dict[str, tuple[str, list[FacetVerdict]]] = {}
    for one in files:
        if isinstance(one.facet, PathAccess):
            does = f"{DOES[one.facet.access]} {one.facet.text}"
            by_name.setdefault(one.facet.text, (does, []))[1].append(one)
    return [*by_name.values()]


def _is_within(facet: Command | Opaque, text: str) -> bool:
    """Say whether a facet is a part before it once more: what that runs, or what was not understood of it."""
    return facet.text == text or (isinstance(facet, Command) and bool(facet.run_by) and facet.text in text)


def split(text: str, parts: Sequence[Part]) -> tuple[str, ...]:
    """Split a command line into pieces, one for each part, that together are the whole line. Empty if that is
    impossible.

    INVARIANT: it is split only if everything except operators is in the parts, in order: then no piece can hold
    another part.
    """
    starts: list[int] = []
    at = 0
    for part in parts:
        found = text.find(part.text, at) if part.text else -1
        if found < 0 or not _BETWEEN.fullmatch(text, at, found):
            return ()
        starts.append(found)
        at = found + len(part.text)
    if not starts or not _BETWEEN.fullmatch(text, at):
        return ()
    return tuple(text[start:end] for start, end in zip((0, *starts[1:]), (*starts[1:], len(text)), strict=True))
