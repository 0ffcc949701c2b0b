"""Interface of readers for files that are not text. `read_file` selects one by the first bytes of a file."""

from __future__ import annotations

from collections.abc import Callable
from io import BufferedReader
from typing import Protocol

from harness.actions import Effects, PathAccess
from harness.gate.tool import ToolOutput
from harness.messages import Attachment
from harness.record import Record
from harness.tools.command_runner import CommandRunner


class AttachmentKeeper(Protocol):
    """Stores the attachments of a session, which the model receives in addition to text."""

    @property
    def why_not(self) -> str:
        """The reason why the model gets no attachments. Empty if it gets them."""
        ...

    def keep(self, data: bytes, media_type: str, width: int, height: int) -> Attachment:
        """Store the bytes on disk, and return an attachment that refers to them. Raises OSError."""
        ...


class OpenedFile(Record):
    """A file that was judged and opened, with the requested part of it."""

    file: BufferedReader
    """The opened file, positioned after `start`."""
    start: bytes
    """The first bytes of the file."""
    path: PathAccess
    offset: int
    """The first part to read, from 1. The reader defines what a part is."""
    limit: int
    """The maximum number of parts."""
    room: int
    """The maximum size of the text, in bytes."""
    effects: Effects
    """The effects that the verdict permits. A process that the reader starts is confined to them."""
    commands: CommandRunner
    """Provides the walls and the environment for a process that the reader starts."""
    stops: Callable[[], int] | None = None
    """Function that returns the number of stop requests, for threads that get no KeyboardInterrupt."""


class FileReader(Protocol):
    """Reads files of one format."""

    @property
    def description(self) -> str:
        """Clause about the format, for the description of `read_file`. Starts in lower case, without a full stop."""
        ...

    def takes(self, start: bytes) -> bool:
        """Return whether a file that begins with `start` has the format.

        The first reader that returns true reads it.
        """
        ...

    def read(self, opened: OpenedFile) -> ToolOutput:
        """Return the content of the file. Raises ToolError for a file that cannot be read, and OSError."""
        ...
