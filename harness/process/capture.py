"""Output of a command: `Capture` collects it in bounded memory, and returns it as readable text.

A long output is saved in full to a file of an `OutputFolder`, within size limits for a call and for a session. A full
disk does not disturb the command.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable

from harness.limits import Limits
from harness.record import Record
from harness.regex import regex
from harness.text.visible import visible
from harness.tool_kinds import READ_FILE

HEAD_SHARE = 0.4
"""Share of a shortened output that shows its beginning; the rest shows its end."""
RESERVED_CHARACTERS = 300
"""Number of characters of a result reserved for the line at the cut and for the lines about the command's end."""
SPILL_CHARACTERS = 100
"""Number of characters reserved for the note about the file with the full output, in addition to its path."""
_PROBE_BYTES = 8192
"""Number of bytes at the beginning that decide whether an output is binary."""
COUNTED_BYTES = 8 << 20
"""Number of bytes whose lines are counted one by one."""
SAMPLED_BLOCKS = 8
"""After COUNTED_BYTES, the lines of one in this many blocks are counted."""

CALL_BYTES, SESSION_BYTES = 64 << 20, 512 << 20
"""Maximum sizes of the files with full outputs, for a call and for a session."""
_MIB = 1 << 20

# Bytes kept per shown character. Escape sequences are dropped, and characters have up to four bytes.
_HEAD_BYTES, _TAIL_BYTES = 2, 3

_ESCAPE_SEQUENCE = regex(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor (ECMA-48, 5.4)
    r"|\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: titles, links (ECMA-48, 5.6; BEL as xterm ends it)
    r"|[PX^_][^\x1b\n]*\x1b\\"  # other strings with an end
    r"|[()][0-9A-Za-z]|[=>78M]"  # character sets and single functions, as `tput sgr0` prints them
    r")"
)


def result_characters(limits: Limits) -> int:
    """Return the maximum number of characters of a tool's result: that in `limits`, or the default."""
    characters = limits.filled().result_characters
    if characters is None:
        raise ValueError("the standard limits leave a result without a bound")
    return characters


class ReadableOutput(Record):
    """Text for the model, and whether it was shortened."""

    text: str
    truncated: bool


class _Lines:
    """Number of lines in a stream: counted at first, then estimated from an eighth of the rest.

    Counting all of them would take longer than reading them from the pipe.
    """

    def __init__(self) -> None:
        self.exact = True
        self._bytes = 0
        self._line_count = 0
        self._later_bytes = 0
        self._blocks = 0
        self._seen_bytes = 0
        self._sampled_lines = 0

    def add(self, block: bytes) -> None:
        if self._bytes < COUNTED_BYTES:
            self._bytes += len(block)
            self._line_count += block.count(b"\n")
            return
        self.exact = False
        self._later_bytes += len(block)
        if self._blocks % SAMPLED_BLOCKS == 0:
            self._seen_bytes += len(block)
            self._sampled_lines += block.count(b"\n")
        self._blocks += 1

    def count(self) -> int:
        return self._line_count + self._sampled_lines * self._later_bytes // max(self._seen_bytes, 1)


class Capture:
    """Beginning and end of a stream of bytes, in bounded memory.

    Once a part must be left out, the entire stream is written to a file, if one is given.
    """

    def __init__(self, characters: int, spill: Spill | None = None) -> None:
        """Initialize. `characters` is the maximum size of the result; `spill` gets the full output if it is longer."""
        self.total = 0
        """Number of bytes received."""
        self._spill = spill
        reserved = RESERVED_CHARACTERS + (len(spill.path) + SPILL_CHARACTERS if spill is not None else 0)
        self._characters = max(characters - reserved, RESERVED_CHARACTERS)
        self._tail_bytes = self._characters * _TAIL_BYTES
        self._lines = _Lines()
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._spilling = False

    def add(self, block: bytes) -> None:
        """Add the next bytes."""
        self.total += len(block)
        self._lines.add(block)
        if self._spilling and self._spill is not None:
            self._spill.add(block)
        elif self.total > self._characters * _HEAD_BYTES + self._tail_bytes:
            self._spill_all(block)
        room = self._characters * _HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += block[:room]
            block = block[room:]
        if not block:
            return
        self._tail.append(block[-self._tail_bytes :])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
            self._tail_size -= len(self._tail.popleft())

    def readable(self) -> ReadableOutput:
        """Return the output as text, without the middle if it is too long."""
        head, tail = bytes(self._head), b"".join(self._tail)
        probe = head[:_PROBE_BYTES]
        if probe.count(0) * 10 > len(probe):
            saved = self._saved("; saved to {}", "; {}")
            return ReadableOutput(text=f"[binary output, {self.total:,} bytes{saved}]", truncated=True)
        if self.total > len(head) + len(tail):
            return self._cut(readable(head), readable(tail))
        text = readable(head + tail)
        if len(text) <= self._characters:
            return ReadableOutput(text=text, truncated=False)
        return self._cut(text, text)

    def _cut(self, head: str, tail: str) -> ReadableOutput:
        head = _beginning(head, int(self._characters * HEAD_SHARE))
        tail = _end(tail, self._characters - int(self._characters * HEAD_SHARE))
        # Bytes dropped to make the rest readable count as omitted too.
        size = max(self.total - len(head.encode()) - len(tail.encode()), 0)
        lines = max(self._lines.count() - head.count("\n") - tail.count("\n"), 0)
        prefix = "" if self._lines.exact else "about "
        gap = "" if head.endswith("\n") else "\n"
        saved = self._saved(f"; full output: {{}}; read it with {READ_FILE.name}", "; {}")
        return ReadableOutput(
            text=f"{head}{gap}[... {size:,} bytes, {prefix}{lines:,} lines omitted{saved} ...]\n{tail}", truncated=True
        )

    def _saved(self, template: str, failed: str) -> str:
        """Return the note about the file with the full output, and save it first if needed.

        `template` is for a saved file, `failed` for a failure. Empty if no file was given.
        """
        spill = self._spill
        if spill is None:
            return ""
        if not self._spilling:
            self._spill_all(b"")
        sentence = template.format(f"{spill.path} ({spill.failure})" if spill.failure else spill.path)
        return sentence if spill.size else failed.format(spill.failure)

    def _spill_all(self, block: bytes) -> None:
        """Start the file with the bytes so far, which are all still in memory, and `block`."""
        self._spilling = True
        if self._spill is not None:
            for part in (bytes(self._head), *self._tail, block):
                self._spill.add(part)


def readable(raw: bytes) -> str:
    """Return terminal output as plain text: UTF-8, without escape sequences, and with overwritten lines in final form.

    Invalid UTF-8 becomes U+FFFD; other control and hidden characters become visible escapes.
    """
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE_SEQUENCE.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    return visible(text)


def _last_state(line: str) -> str:
    """Return the final form of an overwritten line, such as a progress bar. Carriage returns at its end are ignored."""
    return line.rstrip("\r").rpartition("\r")[2]


def _beginning(text: str, max_characters: int) -> str:
    """Return at most `max_characters` from the start, ending at a line's end if that keeps at least half of them."""
    if len(text) <= max_characters:
        return text
    end = text.rfind("\n", max_characters // 2, max_characters)
    return text[: end + 1] if end >= 0 else text[:max_characters]


def _end(text: str, max_characters: int) -> str:
    """Return at most `max_characters` from the end, beginning at a line's start if that keeps at least half of them."""
    start = max(len(text) - max_characters, 0)
    newline = text.find("\n", max(start - 1, 0), start + max_characters // 2)
    return text[newline + 1 :] if newline >= 0 else text[start:].lstrip("\ufffd")


FIRST_BYTES, KEPT_BYTES = 4_096, 16_384
"""Numbers of bytes kept: from the beginning of an output, and between deliveries. Others are dropped and counted."""


class Live:
    """Passes new output to an observer as readable text. The beginning and the end of an output always get there."""

    def __init__(self, observer: Callable[[str], None]) -> None:
        """Initialize. `observer` gets the text; its exceptions are ignored."""
        self._observer = observer
        self._lock = allocate_lock()
        self._room = FIRST_BYTES
        self._first = b""
        """Bytes before `_pending` that were not delivered yet, and are never dropped."""
        self._pending = b""
        self._dropped = 0
        """Number of bytes dropped between `_first` and `_pending`."""

    def add(self, block: bytes) -> None:
        """Add the next bytes. Never waits for the observer."""
        with self._lock:
            if self._room:
                self._first += block[: self._room]
                first, block = block[: self._room], block[self._room :]
                self._room -= len(first)
            pending = self._pending + block[-KEPT_BYTES:]
            self._dropped += len(self._pending) + len(block) - len(pending[-KEPT_BYTES:])
            self._pending = pending[-KEPT_BYTES:]

    def deliver(self, *, last: bool) -> None:
        """Pass the new text to the observer: only whole lines if there are any, or everything if `last`."""
        with self._lock:
            first, dropped = self._first, self._dropped
            pending = self._pending if dropped else first + self._pending
            end = len(pending) if last else _complete_length(pending)
            raw, rest = pending[:end], pending[end:]
            self._first, self._pending = (b"", rest) if dropped else (rest, b"")
            self._dropped = 0
        if not raw and not dropped:
            return
        text = readable(raw)
        if dropped:
            beginning = readable(first)
            gap = "\n" if beginning and not beginning.endswith("\n") else ""
            text = f"{beginning}{gap}[... {dropped:,} bytes not shown ...]\n{text}"
        try:
            self._observer(text)
        except Exception:  # noqa: BLE001, S110 - an error of the observer must not affect the command
            pass


def _complete_length(raw: bytes) -> int:
    """Return the number of bytes of `raw` to show: up to its last line end, or all if a line is very long."""
    end = max(raw.rfind(b"\n"), raw.rfind(b"\r", 0, -1)) + 1  # a CR at the very end may be half of a CR LF
    return end if end or len(raw) < KEPT_BYTES // 4 else len(raw)


class OutputFolder:
    """The folder of a session's full outputs. Keep no other files in it, since the oldest files are removed."""

    def __init__(self, folder: str, *, call_bytes: int = CALL_BYTES, session_bytes: int = SESSION_BYTES) -> None:
        """Initialize. The folder is made (mode 0700) with the first file. Limits are in bytes."""
        self.folder = folder
        self.call_bytes = call_bytes
        self._session_bytes = session_bytes
        self._lock = allocate_lock()

    def spill(self) -> Spill:
        """Return the file for one output. It is created with its first bytes."""
        return Spill(self, os.path.join(self.folder, f"output-{os.urandom(6).hex()}.txt"))

    def make(self) -> None:
        """Make the folder. Raises OSError."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def trim(self, newest: str) -> None:
        """Remove the oldest files, but never `newest`, until the total size is within the session's limit."""
        with self._lock:
            try:
                with os.scandir(self.folder) as entries:
                    files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
            except OSError:
                return
            size = sum(status.st_size for status, _ in files)
            for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
                if size <= self._session_bytes:
                    return
                if path != newest:
                    _remove(path)
                    size -= status.st_size


class Spill:
    """A file with one output, byte for byte up to the limit."""

    def __init__(self, outputs: OutputFolder, path: str) -> None:
        self.path = path
        self.size = 0
        """Number of bytes in the file."""
        self.failure = ""
        """Reason why the file is missing or incomplete. Empty if it is whole."""
        self._outputs = outputs
        self._room = outputs.call_bytes
        self._file = -1

    def add(self, block: bytes) -> None:
        """Append bytes. Those beyond the limit are left out."""
        if self.failure or not block:
            return
        try:
            if self._file < 0:
                self._outputs.make()
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                self._file = os.open(self.path, flags, 0o600)
            room = self._room - self.size
            self._write(memoryview(block)[:room])
        except OSError as error:
            self._fail(f"the full output could not be saved: {error.strerror or error}")
            return
        if len(block) > room:
            self.failure = f"spill cut at {self._room // _MIB} MiB"

    def close(self) -> None:
        """Close the file. Remove older files if the session's limit is exceeded."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            self._outputs.trim(self.path)

    def _write(self, block: memoryview) -> None:
        while block:
            written = os.write(self._file, block)
            self.size += written
            block = block[written:]

    def _fail(self, reason: str) -> None:
        """Record the failure and remove the file, so that a part of an output is not mistaken for all of it."""
        self.failure = reason
        self.size = 0
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            _remove(self.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
