"""Readers of files that are not text: what `read_file` hands a file to, by how the file begins."""

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
    """Stores the attachments of a session, which the model receives besides text."""

    @property
    def why_not(self) -> str:
        """The reason why the model gets no attachments; empty if it gets them."""
        ...

    def keep(self, data: bytes, media_type: str, width: int, height: int) -> Attachment:
        """Store the bytes on disk and return the attachment that names them. Raises OSError."""
        ...


class OpenedFile(Record):
    """A file that was judged and opened, with the part of it that the call asks for."""

    file: BufferedReader
    """Positioned behind `start`."""
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
    """The effects that the verdict permits. A process that the reader starts is held to them."""
    commands: CommandRunner
    """Has the walls and the environment for a process that the reader starts."""
    stops: Callable[[], int] | None = None
    """Returns how often the call was asked to stop, on a thread that gets no KeyboardInterrupt."""


class FileReader(Protocol):
    """Reads files of one format."""

    @property
    def description(self) -> str:
        """The clause that the description of `read_file` has about the format, without a capital and a full stop."""
        ...

    def takes(self, start: bytes) -> bool:
        """Return whether a file that begins with `start` is of the format. The first reader that takes a file reads it."""
        ...

    def read(self, opened: OpenedFile) -> ToolOutput:
        """Return the content of the file. Raises ToolError for a file that cannot be read, and OSError."""
        ...
