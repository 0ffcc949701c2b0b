"""The tool `read_file`: a numbered page of a text file; changes nothing, and reads nothing before it was judged."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

from harness.actions import SUMMARY_CHARACTERS, Access, Action, Effects, PathAccess
from harness.errors import ErrorCode, ToolError
from harness.limits import Limits, strictest
from harness.messages import ToolCall
from harness.record import Record
from harness.tool import Arguments, ToolOutput, ToolSpec
from harness.tools import pages
from harness.tools.arguments import PATH_SCHEMA, text, whole
from harness.tools.baselines import Baselines
from harness.tools.encoding import BINARY_PROBE_BYTES, UTF_8_MARK, Encoding, encoding_of, is_binary, read_text
from harness.tools.files import MAX_FILE_BYTES, binary, check_unmoved, failure, open_file, shown, where
from harness.tools.missing import not_found
from harness.tools.opening import names_in
from harness.tools.output import RESERVED_CHARACTERS, result_characters
from harness.tools.pages import Page, take_page
from harness.visible import visible_line
from harness.workspace import Workspace

MAX_LINES = 2_000
"""Of one page, where the call names no limit."""
MAX_ASKED_LINES = 10_000
MAX_PAGE_BYTES = 50 * 1024
MAX_LISTED_NAMES = 50

_DESCRIPTION = (
    "Read a text file inside or outside the workspace. Returns numbered lines, at most 2000 or 50 KiB a page, and a last "
    "line that says what was shown and with which offset to go on. The number and the tab in front of each line are not "
    "part of the file. The call is judged before it runs."
)


class ReadFileRequest(Record):
    """What is read."""

    path: PathAccess
    offset: int
    """The first line, from 1."""
    limit: int
    """Lines at most."""


class ReadFileTool:
    """Reads pages of files."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        baselines: Baselines | None = None,
    ) -> None:
        """Note in `baselines` what was read, for the tools that write: those of the same session must share it."""
        self._workspace = workspace
        self._baselines = Baselines() if baselines is None else baselines
        self._limits = limits
        self._room = min(MAX_PAGE_BYTES, result_characters(limits) - RESERVED_CHARACTERS)
        self.spec = _spec()

    def under(self, limits: Limits) -> ReadFileTool:
        """Return the same tool under `limits` as well."""
        both = strictest((self._limits, limits))
        return ReadFileTool(self._workspace, limits=both, baselines=self._baselines)

    def check_place(self) -> None:
        """Raise WorkspaceError if the workspace is gone."""
        self._workspace.check()

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action. Raises ToolError for a path that cannot name a file."""
        path = self._workspace.resolve(text(arguments, "path"), Access.READ)
        offset, limit = whole(arguments, "offset", 1), whole(arguments, "limit", MAX_LINES)
        start = "" if offset == 1 else f" from line {offset}"
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(path,),
            summary=f"{visible_line(path.written, SUMMARY_CHARACTERS)}{start}",
            preview=f"read {where(path)}{start}, {limit} lines at most",
            request=ReadFileRequest(path=path, offset=offset, limit=limit),
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - it does what the action says
        """Return the page.

        Raises ToolError for whatever is not a readable text file, for an offset behind its end, and if the path leads
        elsewhere than when it was judged.
        """
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
                return self._read(file, request)
        except OSError as error:
            raise failure(error, request.path, "read") from None

    def _read(self, file: io.BufferedReader, request: ReadFileRequest) -> ToolOutput:
        path = request.path
        size = os.fstat(file.fileno()).st_size
        start = file.read(BINARY_PROBE_BYTES) or b""  # None: some files in /proc have nothing to give at the moment
        encoding = encoding_of(start)
        if size > MAX_FILE_BYTES:
            if encoding is not Encoding.UTF_8:
                told = (
                    f"File too large: {shown(path)} has {size:,} bytes; of {encoding.label} at most {MAX_FILE_BYTES:,}"
                )
                raise ToolError(f"{told} are read.", code=ErrorCode.TOO_LARGE)
            if is_binary(start):
                raise binary(path, start, size)
            file.seek(0)
            return _output(request, self._page(file, request), encoding, marked=start.startswith(UTF_8_MARK), size=None)
        # INVARIANT: the digest that is noted is that of the very bytes that the page is taken from.
        data = start + (file.read(MAX_FILE_BYTES) or b"")
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{shown(path)} grew while it was read. Read it again.", code=ErrorCode.RACE)
        text = read_text(data)
        if text is None:
            raise binary(path, start, len(data))
        marked = data.startswith(encoding.mark)
        output = _output(request, self._page(io.BytesIO(text.body), request), encoding, marked=marked, size=len(data))
        self._baselines.saw(path.real, data)  # only now: of a page that is none nothing was seen
        return output

    def _page(self, file: BinaryIO, request: ReadFileRequest) -> Page:
        return take_page(file, offset=request.offset, limit=request.limit, room=self._room)


def _is_folder(path: PathAccess) -> ToolError:
    names = names_in(path.real, MAX_LISTED_NAMES + 1) or []
    more = ", ..." if len(names) > MAX_LISTED_NAMES else ""
    held = visible_line(", ".join(names[:MAX_LISTED_NAMES]), 2000)
    return ToolError(
        f"Path is a directory: {shown(path)}; it holds: {held or 'nothing'}{more}", code=ErrorCode.IS_FOLDER
    )


def _output(request: ReadFileRequest, page: Page, encoding: Encoding, *, marked: bool, size: int | None) -> ToolOutput:
    """Return the result. `size` is that of the file; None where the page knows it."""
    if not page.rows and page.size == 0:
        return ToolOutput(content="[empty file]")
    if not page.rows and page.given_up:
        most = f"{pages.MAX_READ_BYTES:,}"
        told = f"offset {request.offset} lies more than {most} bytes behind the start of {shown(request.path)}"
        raise ToolError(f"{told}; take the part that is wanted with a command.", code=ErrorCode.RANGE)
    if not page.rows:
        lines = "1 line" if page.lines == 1 else f"{page.lines} lines"
        told = f"offset {request.offset} is past the end ({lines}): {shown(request.path)}."
        raise ToolError(told, code=ErrorCode.RANGE)
    last = request.offset + len(page.rows) - 1
    more = last < page.lines or not page.counted
    total = f"{page.lines}" if page.counted else f"more than {page.lines}"
    facts = [
        f"lines {request.offset}-{last} of {total}",
        f"{page.size if size is None else size:,} bytes",
        _encoding(page, encoding, marked=marked),
    ]
    if page.counted and page.lines > page.newlines:
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


def _spec() -> ToolSpec:
    return ToolSpec(
        name="read_file",
        description=_DESCRIPTION,
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
