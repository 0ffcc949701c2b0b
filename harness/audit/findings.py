"""Findings: the result of verifying a log and comparing it with the heads noted outside it, as text.

Every message about the state of a log is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TypeAlias

from harness.log.heads_file import HeadNote, HeadsFile, KnownHead, Signature
from harness.log.verify import Verification, first_session, verify
from harness.record import Record
from harness.text.amounts import count_of

MAX_TOLD = 20
"""Maximum number of open calls or sessions listed; the rest are counted."""
_CONSISTENT = (
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


class Soundness(Enum):
    """The result of reading a log; the values are the exit codes."""

    WHOLE = 0
    BROKEN = 1
    OPEN = 3
    """Intact, but a call or session has no end, the last line is incomplete, or a call ran that was not allowed."""
    NO_HEAD = 4
    """Intact, but without a matching head to compare its end with."""
    UNREADABLE = 8


class GivenHead(Record):
    """A hash that a person kept."""

    head: str

    source = "--head"

    @property
    def end(self) -> str:
        """The head that the log must end in."""
        return self.head

    @property
    def noted(self) -> Mapping[int, frozenset[str]]:
        """The heads that the log must have had, by its number of records. Always empty, since that is unknown here."""
        return {}

    def words(self) -> str:
        """Return a description of the head's source."""
        return "the one that you gave"


class SignedHead(Record):
    """The signed note beside a log."""

    note: HeadNote
    signer: str

    source = "signature"

    @property
    def end(self) -> str:
        """The head that the log must end in."""
        return self.note.head

    @property
    def noted(self) -> Mapping[int, frozenset[str]]:
        """The heads that the log must have had, by its number of records."""
        return {self.note.records: frozenset((self.note.head,))}

    def words(self) -> str:
        """Return a description of the head's source."""
        return f"the one that {self.signer} signed"


class NotedHead(Record):
    """The notes about a log in the heads file."""

    known_head: KnownHead
    elsewhere: bool = False
    """Whether the notes were found by the ID of the log's first session instead of by its path."""

    @property
    def source(self) -> str:
        """The name of the head's source in `--json`."""
        return "heads file, under another path" if self.elsewhere else "heads file"

    @property
    def end(self) -> str:
        """The head that the log must end in. Empty if no head was noted when the log was closed."""
        return self.known_head.head if self.known_head.closed else ""

    @property
    def noted(self) -> Mapping[int, frozenset[str]]:
        """The heads that the log must have had, by its number of records."""
        return self.known_head.noted

    def words(self) -> str:
        """Return a description of the head's source."""
        return (
            f"the one that was noted{f' as {self.known_head.file}' if self.elsewhere else ''} when the log was closed"
        )


KeptHead: TypeAlias = GivenHead | SignedHead | NotedHead
"""A head of a log that is kept outside the log."""


class Evidence(Record):
    """The heads and the signature to compare a log with."""

    kept_heads: tuple[KeptHead, ...] = ()
    """Heads that the log's end must match: the requested ones, otherwise those in the heads file."""
    noted: NotedHead | None = None
    """The notes in the heads file, also if another head was requested. The log must have had every head in them."""
    signature: Signature | None = None
    """Result of checking the signature. `None` if no check was requested."""

    @property
    def known_head(self) -> KnownHead | None:
        """The log's noted head. `None` if the heads file has no note of it."""
        return self.noted.known_head if self.noted is not None else None

    @property
    def given_head(self) -> str | None:
        """The hash that a person kept."""
        return next((kept_head.head for kept_head in self.kept_heads if isinstance(kept_head, GivenHead)), None)

    @property
    def is_unsigned(self) -> bool:
        """Whether a signature was requested and no valid one exists."""
        return self.signature is not None and self.signature.note is None

    @property
    def source(self) -> str:
        """Sources of the heads that the end is compared with, in the words of `--json`."""
        return ", ".join(kept_head.source for kept_head in self.kept_heads) or "none"

    @property
    def heads(self) -> dict[int, frozenset[str]]:
        """Every head that the log must have had, by its number of records."""
        heads: dict[int, frozenset[str]] = {}
        for kept_head in (*self.kept_heads, *((self.noted,) if self.noted is not None else ())):
            for count, noted in kept_head.noted.items():
                heads[count] = heads.get(count, frozenset()) | noted
        return heads

    def is_end(self, head: str) -> bool:
        """Return whether every kept head is `head`, and a requested signature is valid. False without a kept head."""
        return (
            bool(self.kept_heads)
            and not self.is_unsigned
            and all(kept_head.end == head for kept_head in self.kept_heads)
        )


def evidence_of(noted: NotedHead | None, given_head: str | None, signature: Signature | None) -> Evidence:
    """Return the evidence to compare a log with: the requested hash and signature, otherwise the heads file."""
    kept_heads: list[KeptHead] = [GivenHead(head=given_head)] if given_head else []
    if signature is not None and signature.note is not None:
        kept_heads.append(SignedHead(note=signature.note, signer=signature.signer))
    if noted is not None and not given_head and signature is None:
        kept_heads.append(noted)
    return Evidence(kept_heads=tuple(kept_heads), noted=noted, signature=signature)


class Findings(Record):
    """The report on one log."""

    path: str
    soundness: Soundness
    lines: tuple[str, ...]
    """Problems, open ends and oddities of the log."""
    proved: str
    not_proved: str
    evidence: Evidence
    verification: Verification

    @property
    def reason(self) -> str:
        """Problems and open ends, in one line."""
        return "; ".join(self.lines) or self.not_proved

    @property
    def added(self) -> int:
        """Number of records after the head that was noted when the log was closed.

        0 if a session continued the log, since it first notes that the log is open again.
        """
        known_head = self.evidence.known_head
        return (
            max(0, self.verification.records - known_head.records)
            if known_head is not None and known_head.closed
            else 0
        )

    @property
    def unfit(self) -> str:
        """The reason why neither a session nor a signature may build on this log; empty if there is none.

        Continuing or signing a log asserts that the harness wrote all its records.
        """
        return self.reason if self.soundness is Soundness.BROKEN or self.added else ""


def judge_log(
    path: str, heads: HeadsFile, *, given_head: str | None = None, signature: Signature | None = None
) -> Findings:
    """Verify one log, compare it with the heads kept outside it, and return the findings.

    `given_head` is a hash that a person kept. `signature` is the result of checking the signed note beside the log;
    `None` if no check was requested. Raises LogError if the log cannot be read, UsageError if the heads file cannot.
    """
    # INVARIANT: the notes are read before the log, which may be growing.
    known_head = heads.of_path(path)
    session = first_session(path) if known_head is None else ""
    elsewhere = heads.of_session(session) if session else None
    known_head = known_head or elsewhere
    noted = NotedHead(known_head=known_head, elsewhere=elsewhere is not None) if known_head is not None else None
    evidence = evidence_of(noted, given_head, signature)
    return findings_of(path, evidence, verify(path, given_head, evidence.heads))


def findings_of(path: str, evidence: Evidence, verification: Verification) -> Findings:
    """Return the findings about a log from its verification and the evidence."""
    broken = tuple(_breaks(evidence, verification))
    still_open = () if broken else tuple(_open_ends(verification))
    if broken:
        soundness = Soundness.BROKEN
    elif still_open:
        soundness = Soundness.OPEN
    else:
        soundness = Soundness.WHOLE if evidence.is_end(verification.head) else Soundness.NO_HEAD
    return Findings(
        path=path,
        soundness=soundness,
        lines=broken or (*_added(evidence, verification), *still_open, *_jumps(verification)),
        proved=_proved(soundness, evidence, verification),
        not_proved=_not_proved(soundness, evidence, verification),
        evidence=evidence,
        verification=verification,
    )


def _breaks(evidence: Evidence, verification: Verification) -> Iterator[str]:
    """Yield the reasons why this is not the log that harness wrote."""
    if verification.broken_line is not None:
        yield f"BROKEN at line {verification.broken_line} (byte {verification.broken_offset}): it {verification.problem}"
        return
    given_head = evidence.given_head
    is_empty = not verification.records and given_head == verification.head
    if given_head is not None and not verification.passed_head and not is_empty:
        yield f"BROKEN: this is not the log that was kept in mind: no record of it has the head {given_head}"
    if evidence.signature is not None and evidence.signature.problem:
        yield f"BROKEN: the signed head beside it does not count: {evidence.signature.problem}"
    if verification.missed is not None:
        yield _missed(evidence, verification)


def _missed(evidence: Evidence, verification: Verification) -> str:
    """Return a description of how a log fails to match a noted head."""
    noted, count = evidence.noted, verification.missed or 0
    location = "in its signed head" if noted is None or count not in noted.noted else "in the heads file"
    if noted is not None and noted.elsewhere:
        location += f" for {noted.known_head.file}"
    heads = evidence.heads
    if count > verification.records:
        return (
            f"BROKEN: it was longer once: {max(heads)} records are noted {location}, and it has "
            f"{verification.records}; a tail is missing"
        )
    return (
        f"BROKEN: its first {count} records are not those that are noted {location}: no record of it has the head "
        f"{' and '.join(sorted(heads.get(count, ())))}, so it was rewritten, or another log was put in its place"
    )


def _added(evidence: Evidence, verification: Verification) -> Iterator[str]:
    """Yield a message if a closed log has more records. A session that continues a log first notes that it is open."""
    known_head = evidence.known_head
    if known_head is not None and known_head.closed and verification.records > known_head.records:
        yield (
            f"ADDED: {verification.records - known_head.records} records from line {known_head.records + 1} on stand "
            "after the head that was noted when the log was closed, and no session that goes on with it was noted: "
            "anyone may have written them"
        )


def _open_ends(verification: Verification) -> Iterator[str]:
    if not verification.records:
        yield "OPEN: there is no whole record in this file: nothing was proved"
    if verification.torn:
        yield (
            f"OPEN: the last line is torn ({verification.torn_bytes} bytes without an end); something stopped the "
            "harness while it was written"
        )
    unjudged = [call.partition(":")[::2] for call in verification.unjudged]
    yield from _first_lines(
        f"UNJUDGED: the agent ran a call of {tool} that was not allowed so (session {session})"
        for session, tool in unjudged
    )
    calls = [call.rpartition(":")[::2] for call in verification.unknown_calls]
    yield from _first_lines(
        f"OPEN: call {call} was begun and its end is not known; it may have run (session {session})"
        for session, call in calls
    )
    yield from _first_lines(
        f"OPEN: session {session} never said that it ended" for session in verification.open_sessions
    )


def _jumps(verification: Verification) -> Iterator[str]:
    for jump in verification.jumps[:MAX_TOLD]:
        yield f"CLOCK: before line {jump.line} {jump.words} (session {jump.session})"
    if len(verification.jumps) > MAX_TOLD:
        yield "CLOCK: and more like it"


def _first_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first MAX_TOLD lines, then the number of lines left out."""
    omitted = 0
    for number, line in enumerate(lines):
        if number < MAX_TOLD:
            yield line
        else:
            omitted += 1
    if omitted:
        yield f"OPEN: and {omitted} more like it"


def _proved(soundness: Soundness, evidence: Evidence, verification: Verification) -> str:
    if not verification.records:
        return "nothing"
    if verification.broken_line is not None:
        return f"of the {verification.records} records before that line, {_CONSISTENT}"
    if soundness is Soundness.BROKEN:
        return f"only that the file is consistent in itself: {_CONSISTENT}"
    several = f"the texts of {verification.policy_texts} policy files have the digests that they name"
    single = "the text of its policy file has the digest that it names"
    texts = f"; {single if verification.policy_texts == 1 else several}" if verification.policy_texts else ""
    calls = (
        "1 call have the digest"
        if verification.held_arguments == 1
        else f"{verification.held_arguments} calls have the digests"
    )
    arguments = f"; the arguments of {calls} that the log gives for them" if verification.held_arguments else ""
    summary = f"of {verification.records} records, {_CONSISTENT}{texts}{arguments}"
    if not evidence.kept_heads:
        return summary
    if soundness is Soundness.WHOLE:
        end = ", and ".join(kept_head.words() for kept_head in evidence.kept_heads)
        return f"{summary}. The head is {end}: nothing was cut off or rewritten"
    count = max(evidence.heads, default=0)
    up_to = f"record {count}" if count else "the head that you gave"
    return f"{summary}. Up to {up_to} nothing was cut off or rewritten"


def _not_proved(soundness: Soundness, evidence: Evidence, verification: Verification) -> str:
    parts = []
    if verification.broken_line is not None:
        parts.append("Anything of what stands from that line on")
    elif soundness is Soundness.BROKEN:
        parts.append("That this is what the harness wrote")
    elif evidence.is_unsigned:
        parts.append(NO_HEAD.format(kind="signed "))
    elif not evidence.kept_heads:
        parts.append(NO_HEAD.format(kind=""))
    elif not evidence.is_end(verification.head):
        parts.append(WENT_ON)
    if verification.unjudged:
        parts.append(f"that all that ran was judged: {count_of(len(verification.unjudged), 'call')} ran unjudged")
    if verification.masked_policies:
        parts.append(
            f"that the text of {len(verification.masked_policies)} policy files is theirs, since secrets in it were masked"
        )
    for count, reason in (
        (verification.masked_arguments, "masked in part"),
        (verification.cut_arguments, "too long for the log"),
    ):
        if count:
            parts.append(f"that the arguments of {count} calls are those of their digests, since they are {reason}")
    return "; ".join((*parts, NEVER_PROVED))
