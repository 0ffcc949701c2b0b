"""Server-sent events out of bytes in any slicing; pure, and knows nothing of what the events mean."""

from __future__ import annotations

from typing import TypeAlias

BOM = b"\xef\xbb\xbf"
"""The byte-order mark that may stand at the start of a body."""

Event: TypeAlias = tuple[str, bytes]
"""An event's name (empty where it has none) and its data, not yet decoded."""


class EventDecoder:
    """Server-sent events out of bytes in any slicing.

    Line ends, comments, fields and the byte-order mark are those of the WHATWG HTML standard, section 9.2.6, except that
    an event which the end of the stream leaves without its blank line is not dropped: `finish` returns it.
    """

    def __init__(self) -> None:
        self.recognised = False
        """Whether any line so far was one of an event stream."""
        self.longest = 0
        """The bytes of the longest line or event so far; of one that is still coming, those that are there."""
        self._pieces: list[bytes] = []
        self._pending = 0
        """The bytes of a line whose end has not come in."""
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that `data` completes."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        self._pieces.append(data)
        self._pending += len(data)
        if b"\n" not in data and b"\r" not in data:
            self.longest = max(self.longest, self._pending)
            return []  # joining only at line ends keeps one huge line linear in its length
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._pending = sum(map(len, self._pieces))
        self.longest = max(self.longest, self._pending)
        events: list[Event] = []
        for line in lines:
            self._take_line(line.rstrip(b"\r\n"), events)
        return events

    def finish(self) -> list[Event]:
        """Return what is left at the end of the stream; the last event may be cut anywhere."""
        events: list[Event] = []
        if self._pieces:
            self._take_line(b"".join(self._pieces), events)
            self._pieces = []
        self._take_line(b"", events)
        return events

    def _take_line(self, line: bytes, events: list[Event]) -> None:
        self.longest = max(self.longest, len(line))
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(BOM)
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(value)
            self.longest = max(self.longest, self._data_bytes)
        elif field == b"event":
            self._name = value.removeprefix(b" ").decode(errors="replace")
        elif field not in (b"", b"id", b"retry"):
            return
        self.recognised = True

    def _dispatch(self, events: list[Event]) -> None:
        data = b"\n".join(self._data)
        if data.strip():
            events.append((self._name, data))
        self._name = ""
        self._data.clear()
        self._data_bytes = 0
