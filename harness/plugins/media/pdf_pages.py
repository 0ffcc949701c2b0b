"""The text of a PDF file by page, read by a child process behind walls (pdf_child.py).

The library pypdf belongs to the extra `pdf`. If it is missing, the result says so. Pages are not rendered as pictures.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from harness.actions import Effects, JsonValue
from harness.errors import ErrorCode, ToolError
from harness.files.judged_files import display_path
from harness.gate.tool import ToolOutput
from harness.process.command import run_group
from harness.process.ended import CommandEnding
from harness.process.own_code import own_code
from harness.process.start import Launch, NotConfinedError, becoming, find_bash
from harness.record import Record, replace
from harness.text.visible import visible, visible_line
from harness.tools.command_runner import CommandRunner
from harness.tools.file_reader import OpenedFile

PDF_MARK = b"%PDF-"
SECONDS = 30.0
"""Time limit of the child process, in seconds."""
MAX_PAGES = 200
"""Maximum number of pages per call."""
_MOST_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes of the child's output."""
_CHILD = "pdf_child.py"
_BEGIN = "import runpy, sys; runpy.run_path(sys.argv.pop(1))['main']()"


class PdfText(Record):
    """Parsed output of the child."""

    pages: int
    """Number of pages of the file."""
    texts: tuple[tuple[int, str], ...]
    """Pairs of page number and text."""
    error: str = ""


class _Printed:
    """Collects the output of a process, up to `_MOST_BYTES`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, block: bytes) -> None:
        """Add the next bytes. Bytes above the maximum are dropped."""
        self.data += block[: max(_MOST_BYTES - len(self.data), 0)]


class PdfReader:
    """Reads the text of PDF files."""

    description = "of a PDF you get the text, and offset and limit count its pages"

    def takes(self, start: bytes) -> bool:
        """Return whether a file that begins with `start` is a PDF file."""
        return start.startswith(PDF_MARK)

    def read(self, opened: OpenedFile) -> ToolOutput:
        """Return the text of `limit` pages from page `offset` (from 1) on, with at least a part of one page.

        The child process is confined to reading, without the files that the call's effects hide. Raises ToolError if
        the file cannot be read, and OSError.
        """
        return _pdf_page(opened)


def _pdf_page(opened: OpenedFile) -> ToolOutput:
    file, path, offset, room = opened.file, opened.path, opened.offset, opened.room
    size = os.fstat(file.fileno()).st_size
    if find_spec("pypdf") is None:
        return ToolOutput(
            content=f"[PDF, {size:,} bytes; its text is not read: that takes the extra `pdf` of this program (pypdf)]",
            output_bytes=size,
        )
    file.seek(0)
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    pages = (offset, min(opened.limit, MAX_PAGES), room)
    pdf_text = _read(file.fileno(), opened.effects, opened.commands, pages, opened.stops)
    if pdf_text.error and not pdf_text.texts:
        raise ToolError(
            f"{display_path(path)} is a PDF whose text cannot be read: {pdf_text.error}.", code=ErrorCode.BINARY
        )
    if not pdf_text.texts:
        raise ToolError(
            f"offset {offset} is past the end ({pdf_text.pages} pages): {display_path(path)}.", code=ErrorCode.RANGE
        )
    return _output(pdf_text, size, room)


def _read(
    descriptor: int,
    effects: Effects,
    commands: CommandRunner,
    arguments: tuple[int, int, int],
    stops: Callable[[], int] | None,
) -> PdfText:
    environment = commands.environment
    bash = find_bash(environment["PATH"].split(":"))
    if not bash:
        raise ToolError("The reader of PDFs needs bash, and bash was not found.")
    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), _CHILD)
    reader = replace(effects, write=(), named_paths=(), entries=(), granted=(), network=False, sockets=False)
    printed, complaints = _Printed(), _Printed()
    try:
        confinement = commands.walls.confinement(reader, _no_folder, ())
    except NotConfinedError as error:
        raise ToolError(f"The reader of PDFs cannot be confined: {error.strerror}. The file was not read.") from None
    try:
        launch = Launch(
            argv=becoming((sys.executable, *own_code().python_options(), "-c", _BEGIN, child, *map(str, arguments))),
            executable=bash,
            cwd="/",
            environment=environment,
            confine=None if confinement is None else confinement.enter,
            prefix=() if confinement is None else confinement.prefix,
            descriptors=() if confinement is None else confinement.descriptors,
            input=descriptor,
        )
        command_end = run_group(launch, seconds=SECONDS, output=printed, errors=complaints, stops=stops)
    except NotConfinedError as error:
        raise ToolError(f"The reader of PDFs cannot be confined: {error.strerror}. The file was not read.") from None
    finally:
        if confinement is not None:
            confinement.close()
    if command_end.ending is CommandEnding.INTERRUPTED:
        raise KeyboardInterrupt
    text = _parsed(bytes(printed.data))
    if command_end.ending is CommandEnding.TIMED_OUT:
        return replace(text, error=f"it took more than {SECONDS:g} seconds")
    if not text.error and not text.pages:
        error_text = visible_line(complaints.data.decode("utf-8", "replace").strip()[-200:], 200)
        return replace(text, error=f"the process that reads it ended ({command_end.status}) {error_text}".rstrip())
    return text


def _no_folder() -> str:
    raise ToolError("a reader has no folder to write")


def _parsed(data: bytes) -> PdfText:
    """Parse the child's output. Lines of any other form are ignored."""
    pages, error = 0, ""
    texts: list[tuple[int, str]] = []
    for value in _values(data):
        match value:
            case {"pages": int() as count}:
                pages = max(count, 0)
            case {"page": int() as number, "text": str() as text}:
                texts.append((number, text))
            case {"error": str() as said}:
                error = visible_line(said, 300)
            case _:
                pass
    return PdfText(pages=pages, texts=tuple(texts), error=error)


def _values(data: bytes) -> Iterator[JsonValue]:
    for line in data.split(b"\n"):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _output(pdf_text: PdfText, size: int, room: int) -> ToolOutput:
    parts: list[str] = []
    last, cut = pdf_text.texts[0][0], False
    for number, text in pdf_text.texts:
        safe = "\n".join(visible(line.rstrip()) for line in text.splitlines()).strip("\n")
        part = f"--- page {number} ---\n{safe or '[no text on this page]'}"
        length = len(part.encode())
        if length > room:
            if parts:
                break
            part, cut = part.encode()[:room].decode("utf-8", "ignore"), True
        parts.append(part)
        last = number
        room -= length + 1
    more = last < pdf_text.pages
    facts = [f"pages {pdf_text.texts[0][0]}-{last} of {pdf_text.pages}", f"PDF, {size:,} bytes", "text alone"]
    if cut:
        facts.append("this page is cut: it has more text than a result holds")
    if pdf_text.error:
        facts.append(f"then reading ended: {pdf_text.error}")
    if more:
        facts.append(f"continue with offset={last + 1}")
    return ToolOutput(content="\n".join((*parts, f"[{'; '.join(facts)}]")), output_bytes=size, truncated=more or cut)
