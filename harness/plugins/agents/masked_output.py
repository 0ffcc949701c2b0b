"""Masked output: the text that a command prints, passed on to the agent with marks instead of secrets.

The command writes to pipes of ours in place of the agent's pipes, sockets and files. A terminal or a device stays as it is.
"""

from __future__ import annotations

import codecs
import os
import select
import stat
from _thread import allocate_lock, start_new_thread
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from harness.redaction.redactor import Redactor
from harness.redaction.stream import RedactedStream

_MASKED_KINDS = (stat.S_IFIFO, stat.S_IFREG, stat.S_IFSOCK)
_CHUNK = 1 << 20
"""Maximum number of bytes read at once. No pipe holds more (pipe(7), pipe-max-size)."""
_IDLE_MILLISECONDS = 100
"""Time without new text after which the beginning of a line is passed on. The lines of stdout and stderr stay whole."""


class MaskedOutput:
    """Our stdout and stderr within a `with` block, masked while a command and its processes have them."""

    def __init__(self, redactor: Redactor) -> None:
        """Mask what `redactor` finds."""
        self._redactor = redactor
        self._streams: list[_MaskedStream] = []
        self._stopped = self._stop = -1

    def __enter__(self) -> Self:
        """Put the pipes in place."""
        by_file: dict[tuple[int, int], list[int]] = {}
        for descriptor in (1, 2):
            status = os.fstat(descriptor)
            if stat.S_IFMT(status.st_mode) in _MASKED_KINDS:
                by_file.setdefault((status.st_dev, status.st_ino), []).append(descriptor)
        self._stopped, self._stop = os.pipe()
        self._streams = [_MaskedStream(descriptors, self._redactor) for descriptors in by_file.values()]
        return self

    def begin(self) -> None:
        """Begin to pass on. Call this once the command has the pipes, on a thread that masks its signals."""
        for stream in self._streams:
            stream.begin(self._stopped)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Pass on what the command printed until now, and give back our own stdout and stderr."""
        os.close(self._stop)
        for stream in self._streams:
            stream.end()
        os.close(self._stopped)


class _MaskedStream:
    """One file of the agent, and the pipe that the command has instead."""

    def __init__(self, descriptors: Sequence[int], redactor: Redactor) -> None:
        """Put the pipe in the place of `descriptors`, which all lead to the file."""
        self._descriptors = descriptors
        self._file = os.dup(descriptors[0])
        self._reader, writer = os.pipe()
        for descriptor in descriptors:
            os.dup2(writer, descriptor)
        os.close(writer)
        # Bytes that are not UTF-8 come out as they went in.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._text = RedactedStream(redactor)
        self._line = ""
        """Masked text that is not written yet, since its line goes on."""
        self._is_open = True
        self._has_pipe = True
        """Whether the pipe is still in the place of the file."""
        self._done = allocate_lock()

    def begin(self, stopped: int) -> None:
        """Give back the file, and pass text on, on a thread of its own, until `stopped` is closed at its other end."""
        self._give_back()
        self._done.acquire()
        start_new_thread(self._pass_on_until, (stopped,))

    def end(self) -> None:
        """Wait until all text is passed on."""
        self._give_back()
        with self._done:
            pass
        self._close()

    def _give_back(self) -> None:
        if self._has_pipe:
            self._has_pipe = False
            for descriptor in self._descriptors:
                os.dup2(self._file, descriptor)

    def _pass_on_until(self, stopped: int) -> None:
        try:
            self._pass_on(stopped)
            self._finish()
        except BaseException:
            self._close()  # the command gets SIGPIPE
            raise
        finally:
            self._done.release()

    def _pass_on(self, stopped: int) -> None:
        """Pass text on until its end, or until `stopped` is closed at its other end."""
        events = select.poll()
        events.register(self._reader, select.POLLIN)
        events.register(stopped, 0)  # tells of its other end
        is_stopped = False
        while self._is_open and not is_stopped:
            ready = dict(events.poll(_IDLE_MILLISECONDS if self._line else None))
            is_stopped = stopped in ready
            if self._reader in ready:  # after the end of the command, one read takes all that it printed
                self._read()
            elif not ready:
                self._write("", whole_lines=False)

    def _read(self) -> None:
        """Read once, and write the lines that need not be held back. At the end of the text, write the rest and close."""
        data = os.read(self._reader, _CHUNK)
        if data:
            self._write(self._text.feed(self._decoder.decode(data)), whole_lines=True)
        else:
            self._finish()
            self._close()

    def _finish(self) -> None:
        """Write the text that is held back."""
        last = self._text.feed(self._decoder.decode(b"", final=True)) + self._text.finish()
        self._write(last, whole_lines=False)

    def _write(self, text: str, *, whole_lines: bool) -> None:
        text = self._line + text
        end = text.rfind("\n") + 1 if whole_lines and len(text) < _CHUNK else len(text)
        text, self._line = text[:end], text[end:]
        data = text.encode("utf-8", "surrogateescape")
        while data and self._is_open:
            try:
                data = data[os.write(self._file, data) :]
            except BlockingIOError:
                select.select((), (self._file,), ())
            except OSError:  # nobody reads it, or the disk is full: the command gets SIGPIPE
                self._close()

    def _close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._reader)
            os.close(self._file)
