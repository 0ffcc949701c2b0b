"""What reading one log showed, against what was kept of it, in words: proved, not proved, broken; reads, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import assert_never

from harness.cli.heads import HeadsFile, KnownHead
from harness.log_check import Verification, first_session, verify
from harness.record import Record

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.cli.signing import Signature

MAX_TOLD = 20
"""Of many open calls or sessions, so many are named, and the others counted."""
CONSISTENT = (
    "each record is as the harness writes it and follows from the one before; every run was permitted beforehand, with the "
    "same arguments, under the policy of its session"
)
NEVER_PROVED = (
    "that the harness was honest and unmodified; what commands did beyond their output; who sat at the keyboard; that the "
    "clock was right"
)
NO_HEAD = (
    "No {kind}head to compare with: a tail that was cut off, a rewritten end, a wholly rewritten log, or another log in this "
    "one's place could not be seen"
)
WENT_ON = "The log went on after the head that was kept: a tail that was cut off or rewritten since could not be seen"


class Verdict(Enum):
    """What reading a log came to; the values are the exit codes."""

    WHOLE = 0
    BROKEN = 1
    OPEN = 3
    """Intact, and something in it has no end."""
    NO_HEAD = 4
    """Intact, and no head to compare the end with."""
    UNREADABLE = 8


class Source(Enum):
    """Where the head comes from that the end of a log is compared with."""

    NONE = "none"
    GIVEN = "--head"
    SIGNED = "signature"
    NOTED = "heads file"
    NOTED_ELSEWHERE = "heads file, under another path"


class Evidence(Record):
    """What a log is compared with."""

    known: KnownHead | None
    """What was noted of it."""
    elsewhere: bool = False
    """Whether that was found by its first session, and not by its path."""
    given: str | None = None
    """A hash that a person kept."""
    signature: Signature | None = None
    """None: nobody asked for one."""

    @property
    def source(self) -> Source:
        """What the end is compared with: what was asked for counts, and the heads file where nothing was."""
        if self.given is not None:
            return Source.GIVEN
        if self.signature is not None:
            return Source.SIGNED if self.signature.note is not None else Source.NONE
        if self.known is None:
            return Source.NONE
        return Source.NOTED_ELSEWHERE if self.elsewhere else Source.NOTED

    @property
    def noted(self) -> dict[int, frozenset[str]]:
        """Every head that the log must have had, by its number of records."""
        noted = dict(self.known.noted) if self.known is not None else {}
        note = self.signature.note if self.signature is not None else None
        if note is not None:
            noted[note.records] = noted.get(note.records, frozenset()) | {note.head}
        return noted

    def is_end(self, head: str) -> bool:
        """Say whether `head` is the one that the log had when it was closed."""
        match self.source:
            case Source.GIVEN:
                return head == self.given
            case Source.SIGNED:
                assert self.signature is not None  # noqa: S101 - for the type checker
                return self.signature.note is not None and head == self.signature.note.head
            case Source.NOTED | Source.NOTED_ELSEWHERE:
                return self.known is not None and self.known.closed and head == self.known.head
            case Source.NONE:
                return False
            case _:
                assert_never(self.source)


class Findings(Record):
    """What is said of one log."""

    path: str
    verdict: Verdict
    lines: tuple[str, ...]
    """What is wrong with it, or open."""
    proved: str
    not_proved: str
    evidence: Evidence
    found: Verification

    @property
    def why(self) -> str:
        """What is wrong or open, in one line."""
        return "; ".join(self.lines) or self.not_proved


def judged(path: str, heads: HeadsFile, *, given: str | None = None, signature: Signature | None = None) -> Findings:
    """Read one log, compare it with what was kept of it, and say what that showed.

    `given` is a hash that a person kept; `signature` the signed note beside the log, where one was asked for. Raises
    LogError if the log cannot be read, UsageError if the heads file cannot.
    """
    # INVARIANT: what was noted is read before the log, which may be growing.
    known = heads.of_path(path)
    session = first_session(path) if known is None else ""
    elsewhere = heads.of_session(session) if session else None
    evidence = Evidence(
        known=known or elsewhere, elsewhere=elsewhere is not None, given=given or None, signature=signature
    )
    return findings_of(path, evidence, verify(path, given, evidence.noted))


def findings_of(path: str, evidence: Evidence, found: Verification) -> Findings:
    """Return what is to be said of a log that was read."""
    broken = tuple(_breaks(evidence, found))
    still_open = () if broken else tuple(_open_ends(found))
    if broken:
        verdict = Verdict.BROKEN
    elif still_open:
        verdict = Verdict.OPEN
    else:
        verdict = Verdict.WHOLE if evidence.is_end(found.head) else Verdict.NO_HEAD
    return Findings(
        path=path,
        verdict=verdict,
        lines=broken or still_open,
        proved=_proved(verdict, evidence, found),
        not_proved=_not_proved(verdict, evidence, found),
        evidence=evidence,
        found=found,
    )


def _breaks(evidence: Evidence, found: Verification) -> Iterator[str]:
    """Yield what shows that this is not what was written."""
    if found.broken_line is not None:
        yield f"BROKEN at line {found.broken_line} (byte {found.broken_offset}): it {found.problem}"
        return
    is_empty = not found.records and evidence.given == found.head
    if evidence.given is not None and not found.passed_head and not is_empty:
        yield f"BROKEN: this is not the log that was kept in mind: no record of it has the head {evidence.given}"
    if evidence.signature is not None and evidence.signature.problem:
        yield f"BROKEN: the signed head beside it does not count: {evidence.signature.problem}"
    if found.missed is not None:
        yield _missed(evidence, found)


def _missed(evidence: Evidence, found: Verification) -> str:
    """Return in which way a log does not pass through a head that was noted."""
    known, count = evidence.known, found.missed or 0
    where = "in its signed head" if known is None or count not in known.noted else "in the heads file"
    if known is not None and evidence.elsewhere:
        where += f" for {known.file}"
    heads = " and ".join(sorted(evidence.noted.get(count, ())))
    if count > found.records:
        most = max(evidence.noted)
        return f"BROKEN: it was longer once: {most} records are noted {where}, and it has {found.records}; a tail is missing"
    return (
        f"BROKEN: its first {count} records are not those that are noted {where}: no record of it has the head {heads}, "
        "so it was rewritten, or another log was put in its place"
    )


def _open_ends(found: Verification) -> Iterator[str]:
    if not found.records:
        yield "OPEN: there is no whole record in this file: nothing was proved"
    if found.torn:
        yield (
            f"OPEN: the last line is torn ({found.torn_bytes} bytes without an end); something stopped the harness while it "
            "was written"
        )
    calls = [call.rpartition(":")[::2] for call in found.unknown_calls]
    yield from _some(
        f"OPEN: call {call} was begun and its end is not known; it may have run (session {session})"
        for session, call in calls
    )
    yield from _some(f"OPEN: session {session} never said that it ended" for session in found.open_sessions)


def _some(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first of many lines, and how many are left out."""
    left = 0
    for number, line in enumerate(lines):
        if number < MAX_TOLD:
            yield line
        else:
            left += 1
    if left:
        yield f"OPEN: and {left} more like it"


def _proved(verdict: Verdict, evidence: Evidence, found: Verification) -> str:
    if not found.records:
        return "nothing"
    if found.broken_line is not None:
        return f"of the {found.records} records before that line, {CONSISTENT}"
    if verdict is Verdict.BROKEN:
        return f"only that the file is consistent in itself: {CONSISTENT}"
    texts = (
        f"; the text of {found.policy_texts} policy files is the one with their digests" if found.policy_texts else ""
    )
    what = f"of {found.records} records, {CONSISTENT}{texts}"
    match evidence.source:
        case Source.NONE:
            return what
        case Source.GIVEN:
            end = "the one that you gave"
        case Source.SIGNED:
            assert evidence.signature is not None  # noqa: S101 - for the type checker
            end = f"the one that {evidence.signature.signer} signed"
        case Source.NOTED | Source.NOTED_ELSEWHERE:
            at = f" as {evidence.known.file}" if evidence.known is not None and evidence.elsewhere else ""
            end = f"the one that was noted{at} when the log was closed"
        case _:
            assert_never(evidence.source)
    if verdict is Verdict.WHOLE:
        return f"{what}. The head is {end}: nothing was cut off or rewritten"
    count = max(evidence.noted, default=0)
    up_to = f"record {count}" if count else "the head that you gave"
    return f"{what}. Up to {up_to} nothing was cut off or rewritten"


def _not_proved(verdict: Verdict, evidence: Evidence, found: Verification) -> str:
    parts = []
    if found.broken_line is not None:
        parts.append("Anything of what stands from that line on")
    elif verdict is Verdict.BROKEN:
        parts.append("That this is what the harness wrote")
    elif evidence.source is Source.NONE:
        parts.append(NO_HEAD.format(kind="" if evidence.signature is None else "signed "))
    elif verdict in (Verdict.NO_HEAD, Verdict.OPEN) and not evidence.is_end(found.head):
        parts.append(WENT_ON)
    if found.masked_policies:
        parts.append(
            f"that the text of {len(found.masked_policies)} policy files is theirs, since secrets in it were masked"
        )
    return "; ".join((*parts, NEVER_PROVED))
