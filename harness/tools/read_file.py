"""The tool `read_file`: returns a page of a text file with line numbers."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import BinaryIO

from harness.actions import SUMMARY_CHARACTERS, Access, Action, Effects, PathAccess
from harness.errors import ErrorCode, ToolError
from harness.files.baselines import Baselines
from harness.files.encoding import BINARY_PROBE_BYTES, UTF_8_MARK, Encoding, encoding_of, is_binary, read_text
from harness.files.folders import names_in
from harness.files.judged_files import (
    MAX_FILE_BYTES,
    binary,
    check_unmoved,
    display_path,
    failure,
    location_of,
    not_found,
    open_file,
)
from harness.files.workspace import Workspace
from harness.gate.arguments import PATH_SCHEMA, text, whole_number
from harness.gate.tool import Arguments, Neighbour, ToolOutput
from harness.limits import Limits, strictest
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.process.capture import RESERVED_CHARACTERS, result_characters
from harness.record import Record
from harness.regex import regex
from harness.text.visible import visible, visible_line
from harness.tool_kinds import READ_FILE
from harness.tools.command_runner import CommandRunner
from harness.tools.file_reader import FileReader, OpenedFile

MAX_LINE_CHARACTERS = 2_000
MAX_READ_BYTES = 2 * 1024 * 1024 * 1024
"""Maximum number of bytes searched for lines. A file with a hole may be larger than any disk."""
MAX_COUNTED_BYTES = 32 * 1024 * 1024
"""Maximum number of bytes after the page in which lines are counted."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_BLOCK_BYTES = 1024 * 1024
_LIKE_AN_ESCAPE = regex(r"\\[xuU][0-9a-f]")


class Page(Record):
    """Lines of a file, and facts about the file."""

    rows: tuple[str, ...]
    """Lines with their numbers, with control and hidden characters escaped. Empty after the end of the file."""
    lines: int
    """Number of lines in the counted part of the file."""
    is_counted: bool
    """Whether lines were counted to the end of the file."""
    size: int
    """Size in bytes."""
    crlf: int
    """Number of CR LF line ends in the counted part of the file."""
    newlines: int
    invalid: int
    r"""Number of invalid UTF-8 bytes on the page, which are shown as `\xNN`."""
    escaped: bool
    """Whether a character is shown as an escape."""
    cut: bool
    """Whether a line is only partly shown."""
    ambiguous: tuple[int, ...]
    """Numbers of lines that have both escaped characters and plain text that looks like an escape."""
    given_up: bool
    """Whether reading stopped at `MAX_READ_BYTES`."""


class _Tally:
    """Counter of the bytes and line ends read from a file."""

    def __init__(self) -> None:
        self.size = 0
        self.newlines = 0
        self.crlf = 0
        self.last = b""

    @property
    def bytes_left(self) -> int:
        """Number of bytes that may still be read."""
        return max(MAX_READ_BYTES - self.size, 0)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.newlines += data.count(b"\n")
        if b"\r" in data:  # searching for one byte is ten times faster than counting two
            self.crlf += data.count(b"\r\n")
        self.crlf += self.last == b"\r" and data.startswith(b"\n")
        self.last = data[-1:]

    @property
    def lines(self) -> int:
        return self.newlines + (self.last not in (b"", b"\n"))


class _Rows:
    """Builder of the lines of a page."""

    def __init__(self, room: int) -> None:
        self.rows: list[str] = []
        self.invalid = 0
        self.escaped = False
        self.cut = False
        self.ambiguous: list[int] = []
        self._room = room
        self.widest = min(MAX_LINE_CHARACTERS, room // 2)

    def add(self, number: int, start: bytes) -> bool:
        """Add the line that starts with `start`. Return whether it fits into the page."""
        has_newline = start.endswith(b"\n")
        line = start[: -2 if start.endswith(b"\r\n") else -1] if has_newline else start
        decoded = line.decode("utf-8", "surrogateescape")
        head = decoded[: self.widest]
        raw = head.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        safe = visible(raw)
        row = f"{number:6d}\t{safe[: self.widest]}"
        cut = len(decoded) > len(head) or len(safe) > self.widest
        size = len(row.encode()) + 1
        if self.rows and size > self._room:
            return False
        self._room -= size
        self.rows.append(row)
        self.cut |= cut
        self.escaped |= safe != raw
        if safe != head and _LIKE_AN_ESCAPE.search(head):
            self.ambiguous.append(number)
        self.invalid += 0 if head.isascii() else sum("\udc80" <= char <= "\udcff" for char in head)
        return True

    def mark_cut(self, size: int, *, is_size_known: bool) -> None:
        """Append a note to the last line that it is longer than shown: `size` bytes, or more if its size is unknown."""
        self.rows[-1] += f"... [line cut: it has {'' if is_size_known else 'more than '}{size:,} bytes]"


def take_page(file: BinaryIO, *, offset: int, limit: int, room: int) -> Page:
    """Return a page of at most `limit` lines, starting with line number `offset` (from 1), in at most `room` bytes.

    The page has at least one line, unless `offset` is after the end. Only LF ends a line. `file` must be at its start.
    At most `MAX_READ_BYTES` are read, including the count after the page. Raises OSError.
    """
    tally, rows = _Tally(), _Rows(room)
    if _skip(file, offset - 1, tally):
        for number in range(offset, offset + limit):
            if not _take_line(file, number, tally, rows):
                break
    given_up = not tally.bytes_left
    is_counted = not given_up and _count_rest(file, tally)
    return Page(
        rows=tuple(rows.rows),
        lines=tally.lines,
        is_counted=is_counted,
        size=tally.size if is_counted else os.fstat(file.fileno()).st_size,
        crlf=tally.crlf,
        newlines=tally.newlines,
        invalid=rows.invalid,
        escaped=rows.escaped,
        cut=rows.cut,
        ambiguous=tuple(rows.ambiguous),
        given_up=given_up,
    )


def _skip(file: BinaryIO, lines: int, tally: _Tally) -> bool:
    """Move past the first `lines` lines. Return False if there are fewer lines, or if they are too long."""
    while tally.newlines < lines:
        block = file.read(min(_BLOCK_BYTES, tally.bytes_left))
        if not block:
            return False
        missing = lines - tally.newlines
        if block.count(b"\n") < missing:
            tally.add(block)
            continue
        end = 0
        for _ in range(missing):
            end = block.index(b"\n", end) + 1
        tally.add(block[:end])
        file.seek(end - len(block), os.SEEK_CUR)
    return True


def _take_line(file: BinaryIO, number: int, tally: _Tally, rows: _Rows) -> bool:
    """Read the next line. Return False at the end of the file or of the bytes to read.

    Also return False if the line does not fit; `file` is then before the line.
    """
    piece = file.readline(min(rows.widest * 4, tally.bytes_left))  # a character has at most four bytes
    if not piece:
        return False
    start = piece.removeprefix(BYTE_ORDER_MARK) if number == 1 else piece
    cut_before, rows.cut = rows.cut, False
    if not rows.add(number, start):
        rows.cut = cut_before
        file.seek(-len(piece), os.SEEK_CUR)
        return False
    tally.add(piece)
    size = len(piece)
    while not piece.endswith(b"\n") and (piece := file.readline(min(_BLOCK_BYTES, tally.bytes_left))):
        tally.add(piece)
        size += len(piece)
    if rows.cut or not tally.bytes_left:
        rows.mark_cut(size, is_size_known=tally.bytes_left > 0)
    rows.cut |= cut_before
    return True


def _count_rest(file: BinaryIO, tally: _Tally) -> bool:
    """Count the lines after the page. Return whether the end of the file was reached."""
    remaining = MAX_COUNTED_BYTES
    while block := file.read(_BLOCK_BYTES):
        tally.add(block)
        remaining -= len(block)
        if remaining <= 0:
            return not file.read(1)
    return True


MAX_LINES = 2_000
"""Default number of lines of a page."""
MAX_ASKED_LINES = 10_000
MAX_PAGE_BYTES = 50 * 1024
MAX_LISTED_NAMES = 50

_DESCRIPTION = (
    "Read a text file inside or outside the workspace. Returns numbered lines, at most 2000 or 50 KiB a page, and a last "
    "line that says what was shown and with which offset to go on. The number and the tab in front of each line are not "
    "part of the file. "
)


_JUDGED = "The call is judged before it runs."


class ReadFileRequest(Record):
    """A page to read."""

    path: PathAccess
    offset: int
    """Number of the first line, from 1."""
    limit: int
    """Maximum number of lines."""


class ReadFileTool:
    """Reads pages of files."""

    kind = READ_FILE
    runs_beside = True

    def __init__(
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        baselines: Baselines | None = None,
        readers: Sequence[FileReader] = (),
        commands: CommandRunner | None = None,
    ) -> None:
        """Create the tool. It records the files it reads in `baselines`, shared with the writing tools of the session.

        `readers` read files that are not text, and `commands` starts their processes. Without both, such a file is
        treated as binary.
        """
        self._workspace = workspace
        self.root = workspace.root
        self.check_place = workspace.check
        self._baselines = Baselines() if baselines is None else baselines
        self._limits = limits
        self._readers = readers
        self._commands = commands
        self._room = min(MAX_PAGE_BYTES, result_characters(limits) - RESERVED_CHARACTERS)
        self.spec = _spec(readers)

    def under(self, limits: Limits) -> ReadFileTool:
        """Return a copy of the tool that also respects `limits`."""
        both = strictest((self._limits, limits))
        return ReadFileTool(
            self._workspace, limits=both, baselines=self._baselines, readers=self._readers, commands=self._commands
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action. Raises ToolError for a path that cannot name a file."""
        path = self._workspace.resolve(self._workspace.file_name(text(arguments, "path")), Access.READ)
        offset, limit = whole_number(arguments, "offset", 1), whole_number(arguments, "limit", MAX_LINES)
        start = "" if offset == 1 else f" from line {offset}"
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(path,),
            summary=f"{visible_line(path.written, SUMMARY_CHARACTERS)}{start}",
            preview=f"read {location_of(path)}{start}, {limit} lines at most",
            request=ReadFileRequest(path=path, offset=offset, limit=limit),
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Return the page.

        Raises ToolError for anything but a readable file, for an offset after its end, and if the path leads to another
        file than when it was judged.
        """
        return self.run_beside(action, effects, None, None)

    def run_beside(
        self,
        action: Action,
        effects: Effects,
        seconds: float | None,  # noqa: ARG002 - it is not cut short
        neighbour: Neighbour | None,
    ) -> ToolOutput:
        """Return the page like `run`. With `neighbour`, it runs in parallel with others."""
        request = action.request
        if not isinstance(request, ReadFileRequest):
            raise TypeError("the action was not prepared by read_file")
        check_unmoved(self._workspace, request.path)
        try:
            descriptor = open_file(request.path)
        except ToolError as error:
            raise _is_folder(request.path) if error.code is ErrorCode.IS_FOLDER else error from None
        if descriptor is None:
            raise not_found(request.path, self._workspace)
        try:
            with open(descriptor, "rb") as file:
                return self._read(file, request, effects, neighbour)
        except OSError as error:
            raise failure(error, request.path, "read") from None

    def _read(
        self, file: io.BufferedReader, request: ReadFileRequest, effects: Effects, neighbour: Neighbour | None
    ) -> ToolOutput:
        path = request.path
        size = os.fstat(file.fileno()).st_size
        start = file.read(BINARY_PROBE_BYTES) or b""  # `None` for some files in /proc that have no data at the moment
        reader = next((reader for reader in self._readers if reader.takes(start)), None)
        if reader is not None and self._commands is not None:
            opened = OpenedFile(
                file=file,
                start=start,
                path=path,
                offset=request.offset,
                limit=request.limit,
                room=self._room,
                effects=effects,
                commands=self._commands,
                stops=None if neighbour is None else neighbour.stops,
            )
            return reader.read(opened)
        encoding = encoding_of(start)
        if size > MAX_FILE_BYTES:
            if encoding is not Encoding.UTF_8:
                maximum = f"of {encoding.label} at most {MAX_FILE_BYTES:,} are read"
                message = f"File too large: {display_path(path)} has {size:,} bytes; {maximum}."
                raise ToolError(message, code=ErrorCode.TOO_LARGE)
            if is_binary(start):
                raise binary(path, start, size)
            file.seek(0)
            return _output(request, self._page(file, request), encoding, marked=start.startswith(UTF_8_MARK), size=None)
        # INVARIANT: the recorded digest is that of exactly the bytes from which the page is taken.
        data = start + (file.read(MAX_FILE_BYTES) or b"")
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{display_path(path)} grew while it was read. Read it again.", code=ErrorCode.RACE)
        text = read_text(data)
        if text is None:
            raise binary(path, start, len(data))
        marked = data.startswith(encoding.mark)
        output = _output(request, self._page(io.BytesIO(text.body), request), encoding, marked=marked, size=len(data))
        self._baselines.saw(path.real, data)  # last, as `_output` raises ToolError for a page without lines
        return output

    def _page(self, file: BinaryIO, request: ReadFileRequest) -> Page:
        return take_page(file, offset=request.offset, limit=request.limit, room=self._room)


def _is_folder(path: PathAccess) -> ToolError:
    names = names_in(path.real, MAX_LISTED_NAMES + 1) or []
    more = ", ..." if len(names) > MAX_LISTED_NAMES else ""
    contents = visible_line(", ".join(names[:MAX_LISTED_NAMES]), 2000)
    return ToolError(
        f"Path is a directory: {display_path(path)}; it holds: {contents or 'nothing'}{more}", code=ErrorCode.IS_FOLDER
    )


def _output(request: ReadFileRequest, page: Page, encoding: Encoding, *, marked: bool, size: int | None) -> ToolOutput:
    """Return the result. `size` is the size of the file, or `None` to use that of the page. Raises ToolError for a page
    without lines.
    """
    if not page.rows and page.size == 0:
        return ToolOutput(content="[empty file]")
    if not page.rows and page.given_up:
        max_bytes = f"{MAX_READ_BYTES:,}"
        message = (
            f"offset {request.offset} lies more than {max_bytes} bytes behind the start of {display_path(request.path)}"
        )
        raise ToolError(f"{message}; take the part that is wanted with a command.", code=ErrorCode.RANGE)
    if not page.rows:
        lines = "1 line" if page.lines == 1 else f"{page.lines} lines"
        message = f"offset {request.offset} is past the end ({lines}): {display_path(request.path)}."
        raise ToolError(message, code=ErrorCode.RANGE)
    last = request.offset + len(page.rows) - 1
    more = last < page.lines or not page.is_counted
    total = f"{page.lines}" if page.is_counted else f"more than {page.lines}"
    facts = [
        f"lines {request.offset}-{last} of {total}",
        f"{page.size if size is None else size:,} bytes",
        _encoding(page, encoding, marked=marked),
    ]
    if page.is_counted and page.lines > page.newlines:
        facts.append("no newline at end of file")
    if page.escaped:
        facts.append("hidden or odd characters are shown as \\xNN or \\uNNNN")
    if page.ambiguous:
        facts.append(f"such escapes stand as plain text too in line {', '.join(map(str, page.ambiguous[:5]))}")
    if page.given_up:
        facts.append("what follows is too far from the start to be read")
    elif more:
        facts.append(f"continue with offset={last + 1}")
    return ToolOutput(content="\n".join((*page.rows, f"[{'; '.join(facts)}]")), truncated=more or page.cut)


def _encoding(page: Page, encoding: Encoding, *, marked: bool) -> str:
    name = encoding.label
    words = [f"not valid {name}: {page.invalid} bytes shown as \\xNN" if page.invalid else name]
    if marked:
        words.append("BOM")
    if page.crlf and page.crlf < page.newlines:
        words.append(f"mixed line endings (CRLF {page.crlf}, LF {page.newlines - page.crlf})")
    elif page.newlines:
        words.append("CRLF" if page.crlf else "LF")
    return ", ".join(words)


def _spec(readers: Sequence[FileReader]) -> ToolSpec:
    summary = "; ".join(reader.description for reader in readers)
    formats = f"{summary[0].upper()}{summary[1:]}. " if summary else ""
    return ToolSpec(
        name=READ_FILE.name,
        description=f"{_DESCRIPTION}{formats}{_JUDGED}",
        parameters={
            "type": "object",
            "properties": {
                "path": PATH_SCHEMA,
                "offset": {"type": "integer", "description": "The first line to read, from 1.", "minimum": 1},
                "limit": {
                    "type": "integer",
                    "description": f"Lines to read at most; {MAX_LINES} if left out.",
                    "minimum": 1,
                    "maximum": MAX_ASKED_LINES,
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )
