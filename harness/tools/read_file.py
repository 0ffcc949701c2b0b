"""The tool `read_file`: a numbered page of a text file; changes nothing, and reads nothing before it was judged."""

from __future__ import annotations

import os

from harness.actions import Access, Action, Effects, PathAccess
from harness.errors import ToolError
from harness.limits import Limits, strictest
from harness.messages import ToolCall
from harness.record import Record
from harness.tool import Arguments, ToolOutput, ToolSpec
from harness.tools.arguments import PATH_SCHEMA, text, whole
from harness.tools.files import (
    BINARY_PROBE_BYTES,
    MAX_LISTED_NAMES,
    binary,
    check_unmoved,
    failure,
    is_binary,
    names_in,
    open_file,
    shown,
    where,
)
from harness.tools.output import RESERVED_CHARACTERS, result_characters
from harness.tools.pages import BYTE_ORDER_MARK, Page, take_page
from harness.visible import visible_line
from harness.workspace import Workspace

MAX_LINES = 2_000
"""Of one page, where the call names no limit."""
MAX_ASKED_LINES = 10_000
MAX_PAGE_BYTES = 50 * 1024

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

    def __init__(self, workspace: Workspace, *, limits: Limits = Limits()) -> None:  # noqa: B008 - never changes
        self._workspace = workspace
        self._limits = limits
        self._room = min(MAX_PAGE_BYTES, result_characters(limits) - RESERVED_CHARACTERS)
        self.spec = _spec()

    def under(self, limits: Limits) -> ReadFileTool:
        """Return the same tool under `limits` as well."""
        return ReadFileTool(self._workspace, limits=strictest((self._limits, limits)))

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
            summary=f"{visible_line(path.written)}{start}",
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
        if os.path.isdir(request.path.real):
            raise _is_folder(request.path)
        descriptor = open_file(request.path)
        try:
            with open(descriptor, "rb") as file:
                probe = file.read(BINARY_PROBE_BYTES)
                if is_binary(probe):
                    raise binary(request.path, probe, os.fstat(descriptor).st_size)
                file.seek(0)
                page = take_page(file, offset=request.offset, limit=request.limit, room=self._room)
        except OSError as error:
            raise failure(error, request.path, "read") from None
        return _output(request, page, marked=probe.startswith(BYTE_ORDER_MARK))


def _is_folder(path: PathAccess) -> ToolError:
    names = names_in(path.real, MAX_LISTED_NAMES + 1) or []
    more = ", ..." if len(names) > MAX_LISTED_NAMES else ""
    held = visible_line(", ".join(names[:MAX_LISTED_NAMES]), 2000)
    return ToolError(f"Path is a directory: {shown(path)}; it holds: {held or 'nothing'}{more}")


def _output(request: ReadFileRequest, page: Page, *, marked: bool) -> ToolOutput:
    if not page.rows and page.size == 0:
        return ToolOutput(content="[empty file]")
    if not page.rows:
        raise ToolError(f"offset {request.offset} is past the end ({page.lines} lines): {shown(request.path)}.")
    last = request.offset + len(page.rows) - 1
    more = last < page.lines or not page.counted
    total = f"{page.lines}" if page.counted else f"more than {page.lines}"
    facts = [f"lines {request.offset}-{last} of {total}", f"{page.size:,} bytes", _encoding(page, marked=marked)]
    if page.counted and page.lines > page.newlines:
        facts.append("no newline at end of file")
    if page.escaped:
        facts.append("hidden or odd characters are shown as \\xNN or \\uNNNN")
    if more:
        facts.append(f"continue with offset={last + 1}")
    return ToolOutput(content="\n".join((*page.rows, f"[{'; '.join(facts)}]")), truncated=more or page.cut)


def _encoding(page: Page, *, marked: bool) -> str:
    words = [f"not valid UTF-8: {page.invalid} bytes shown as \\xNN" if page.invalid else "UTF-8"]
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
