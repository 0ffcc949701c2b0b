"""What a signed note says of a log, and what checking its signature showed; it runs nothing and reads no file."""

from __future__ import annotations

from harness.record import Record

ORIGIN = "harness action log"
_NOTE_LINES = 6


class HeadNote(Record):
    """What a signed note says of a log."""

    records: int
    head: str
    size: int
    """In bytes."""
    session: str
    time: str

    def text(self) -> str:
        """Return the bytes that are signed, as text."""
        return f"{ORIGIN}\n{self.records}\n{self.head}\n{self.size}\n{self.session}\n{self.time}\n"


class Signature(Record):
    """What checking a signed note showed."""

    note: HeadNote | None
    """None: there is none, or it does not count."""
    signer: str = ""
    """Whose signature it is, as the file of allowed signers calls them."""
    problem: str = ""
    """Why the signature does not count; empty with no note: there is none."""


def parse_note(data: bytes) -> HeadNote | None:
    """Return what a note says, or None if it is none to the letter: other bytes were not written by the harness."""
    try:
        lines = data.decode("ascii").split("\n")
        note = HeadNote(records=int(lines[1]), head=lines[2], size=int(lines[3]), session=lines[4], time=lines[5])
    except (ValueError, IndexError):
        return None
    return note if len(lines) == _NOTE_LINES + 1 and note.text().encode() == data else None
