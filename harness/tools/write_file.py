"""The tool `write_file`: a whole new content for a file, in one step; it never writes what was not shown."""

from __future__ import annotations

from harness.actions import Access, Action, Effects, PathAccess
from harness.errors import ToolError
from harness.messages import ToolCall
from harness.record import Record
from harness.tool import Arguments, ToolOutput, ToolSpec
from harness.tools.arguments import PATH_SCHEMA, text
from harness.tools.diffs import count_lines
from harness.tools.files import MAX_FILE_BYTES, check_unmoved, is_binary, read_whole, shown, where
from harness.tools.replacing import Change, Unable, apply, change_to, check_unchanged
from harness.visible import visible_line
from harness.workspace import Workspace

_DESCRIPTION = (
    "Write a whole text file: a new one, with the folders that it needs, or in the place of an old one. To change a part "
    "of a file use edit_file. The call is judged before it runs, and a person may be shown the difference."
)


class WriteFileRequest(Record):
    """What is written."""

    path: PathAccess
    change: Change | Unable


class WriteFileTool:
    """Writes whole files."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.spec = _spec()

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action, with the difference to what is there now as its preview.

        A file that cannot be written makes an action too: why not is told by `run`, once the call was judged.

        Raises ToolError for a path that cannot name a file, and for content that is too long.
        """
        path = self._workspace.resolve(text(arguments, "path"), Access.WRITE)
        content = text(arguments, "content").encode()
        if len(content) > MAX_FILE_BYTES:
            raise ToolError(f"The content is {len(content):,} bytes long; at most {MAX_FILE_BYTES:,} are taken.")
        try:
            old = read_whole(path)
        except ToolError as error:
            change: Change | Unable = Unable(reason=str(error))
            preview = f"cannot write {where(path)}: a yes changes nothing\n{error}"
        else:
            change = change_to(path, old, content)
            preview = _preview(path, old, change)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(path,),
            summary=visible_line(path.written),
            preview=preview,
            shown_whole=isinstance(change, Unable) or change.diff.whole,
            request=WriteFileRequest(path=path, change=change),
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - it does what the action says
        """Write the content that was judged, and say what changed.

        Raises ToolError if it cannot be written, or if path or file are no longer what was judged.
        """
        request = action.request
        if not isinstance(request, WriteFileRequest):
            raise TypeError("the action was not prepared by write_file")
        match request.change:
            case Unable():
                raise ToolError(request.change.reason)
            case Change():
                return self._write(request.change)

    def _write(self, change: Change) -> ToolOutput:
        name = shown(change.path)
        if change.before_sha256 == change.after_sha256:
            check_unmoved(self._workspace, change.path)
            check_unchanged(change)
            return ToolOutput(content=f"Unchanged: {name}")
        note = apply(change, self._workspace)
        if change.before_sha256 is None:
            said = f"Created {name} ({_lines(count_lines(change.content))}, {len(change.content):,} bytes)"
        else:
            said = f"Overwrote {name} (+{change.diff.added} -{change.diff.removed} lines)"
        return ToolOutput(
            content=f"{said}\n{note}" if note else said,
            changed_path=change.path.real,
            before_sha256=change.before_sha256,
            after_sha256=change.after_sha256,
        )


def _preview(path: PathAccess, old: bytes | None, change: Change) -> str:
    diff = change.diff
    if change.before_sha256 == change.after_sha256:
        return f"{where(path)} holds this already; nothing will be written"
    if old is None:
        title = f"new file {where(path)}"
    elif is_binary(old):
        title = f"overwrite {where(path)}, a binary file of {len(old):,} bytes that is not shown"
    else:
        title = f"overwrite {where(path)} (+{diff.added} -{diff.removed} lines)"
    return f"{title}\n{diff.text()}" if diff.lines else f"{title}\n(empty)"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _spec() -> ToolSpec:
    return ToolSpec(
        name="write_file",
        description=_DESCRIPTION,
        parameters={
            "type": "object",
            "properties": {
                "path": PATH_SCHEMA,
                "content": {
                    "type": "string",
                    "description": "The whole content, written byte for byte as UTF-8.",
                    "maxLength": MAX_FILE_BYTES,
                },
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    )
