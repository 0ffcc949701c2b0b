"""The tool `edit_file`: one text of a file replaced by another; it never guesses which text was meant."""

from __future__ import annotations

from harness.actions import Access, Action, Effects, PathAccess
from harness.errors import ToolError
from harness.messages import ToolCall
from harness.record import Record, replace
from harness.tool import Arguments, ToolOutput, ToolSpec
from harness.tools.arguments import PATH_SCHEMA, flag, text
from harness.tools.files import MAX_FILE_BYTES, binary, is_binary, not_found, read_whole, shown, where
from harness.tools.matching import Occurrences, Unmatched, splice
from harness.tools.replacing import Change, Unable, apply, change_to
from harness.visible import visible, visible_line
from harness.workspace import Workspace

MAX_RESULT_LINES = 60
"""Of the diff in the result."""
MAX_RESULT_CHARACTERS = 8_000

_DESCRIPTION = (
    "Replace one text in a file by another. old_string must occur exactly once, character for character (line ends apart), "
    "without the line numbers that read_file shows: give as many lines around the change as that takes, or set "
    "replace_all. The call is judged before it runs, and a person may be shown the difference."
)


class EditFileRequest(Record):
    """What is replaced."""

    path: PathAccess
    change: Change | Unable
    replacements: int = 0


class EditFileTool:
    """Edits files."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.spec = _spec()

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action, with the difference as its preview.

        An edit that does not apply makes an action too: why it does not is told by `run`, once the call was judged,
        since that says what the file holds. It is judged as a read.

        Raises ToolError for a path that cannot name a file, and for texts that are identical or empty.
        """
        path = self._workspace.resolve(text(arguments, "path"), Access.WRITE)
        old, new = text(arguments, "old_string"), text(arguments, "new_string")
        if not old:
            raise ToolError("old_string is empty; use write_file to create or replace a file.")
        if old == new:
            raise ToolError("old_string and new_string are identical: there is nothing to change.")
        request = _request(path, old, new, Occurrences.ALL if flag(arguments, "replace_all") else Occurrences.ONE)
        # What does not apply changes nothing, but its message says what the file holds: it is judged as a read.
        unable = isinstance(request.change, Unable)
        # One that applies is a read as well: the difference that it returns shows lines around the change.
        read = replace(path, access=Access.READ)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(read,) if unable else (path, read),
            default_of="read_file" if unable else "",
            summary=visible_line(path.written),
            preview=_preview(request),
            shown_whole=isinstance(request.change, Unable) or request.change.diff.whole,
            request=request,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - it does what the action says
        """Write the bytes that were judged, and return the difference.

        Raises ToolError if the edit does not apply, if it cannot be written, or if path or file are no longer what was
        judged.
        """
        request = action.request
        if not isinstance(request, EditFileRequest):
            raise TypeError("the action was not prepared by edit_file")
        match request.change:
            case Unable():
                raise ToolError(request.change.reason)
            case Change():
                note = apply(request.change, self._workspace)
                return _output(request.change, request.replacements, note)


def _request(path: PathAccess, old: str, new: str, occurrences: Occurrences) -> EditFileRequest:
    try:
        data = read_whole(path)
    except ToolError as error:
        return EditFileRequest(path=path, change=Unable(reason=str(error)))
    if data is None:
        return EditFileRequest(path=path, change=Unable(reason=str(not_found(path))))
    if is_binary(data):
        return EditFileRequest(path=path, change=Unable(reason=str(binary(path, data, len(data)))))
    spliced = splice(data, old, new, occurrences, most_bytes=MAX_FILE_BYTES)
    if isinstance(spliced, Unmatched):
        return EditFileRequest(path=path, change=Unable(reason=spliced.reason.replace("{path}", shown(path), 1)))
    return EditFileRequest(path=path, change=change_to(path, data, spliced.content), replacements=spliced.replacements)


def _preview(request: EditFileRequest) -> str:
    name, change = where(request.path), request.change
    match change:
        case Unable():
            told = "This edit does not apply: a yes changes nothing, it only tells the model why."
            return f"edit {name}\n{told}\n{visible(change.reason)}"
        case Change():
            return f"edit {name} (+{change.diff.added} -{change.diff.removed} lines)\n{change.diff.text()}"


def _output(change: Change, replacements: int, note: str) -> ToolOutput:
    count = "1 replacement" if replacements == 1 else f"{replacements:,} replacements"
    diff = change.diff
    shown_diff = diff.text(MAX_RESULT_LINES)
    if len(shown_diff) > MAX_RESULT_CHARACTERS:
        shown_diff = f"{shown_diff[:MAX_RESULT_CHARACTERS]}\n[... the rest of the diff is left out ...]"
    parts = [f"Edited {shown(change.path)}: {count} (+{diff.added} -{diff.removed})", shown_diff, note]
    return ToolOutput(
        content="\n".join(part for part in parts if part),
        changed_path=change.path.real,
        before_sha256=change.before_sha256,
        after_sha256=change.after_sha256,
    )


def _spec() -> ToolSpec:
    return ToolSpec(
        name="edit_file",
        description=_DESCRIPTION,
        parameters={
            "type": "object",
            "properties": {
                "path": PATH_SCHEMA,
                "old_string": {
                    "type": "string",
                    "description": "The text to replace.",
                    "minLength": 1,
                    "maxLength": MAX_FILE_BYTES,
                },
                "new_string": {
                    "type": "string",
                    "description": "What comes in its place.",
                    "maxLength": MAX_FILE_BYTES,
                },
                "replace_all": {"type": "boolean", "description": "Replace every occurrence; false if left out."},
            },
            "required": ["path", "old_string", "new_string"],
            "additionalProperties": False,
        },
    )
