"""The tool `edit_file`: replaces texts in a file. It never guesses a text to replace."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import SUMMARY_CHARACTERS, Access, Action, Effects, JsonValue, PathAccess, Place
from harness.errors import ErrorCode, ToolError
from harness.files.baselines import Baselines
from harness.files.before_images import BeforeImages
from harness.files.encoding import read_text
from harness.files.file_changes import Replacement, Unable, apply, change_to, stale, unable, write_and_read
from harness.files.judged_files import MAX_FILE_BYTES, binary, display_path, location_of, not_found, read_whole
from harness.files.workspace import Workspace
from harness.gate.arguments import PATH_SCHEMA, flag, objects, text
from harness.gate.tool import Arguments, ToolOutput
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.record import Record
from harness.text.visible import visible, visible_line
from harness.tool_kinds import EDIT_FILE, READ_FILE
from harness.tools.edits import Edit, Occurrences, Unmatched, splice_all

MAX_EDITS = 50
MAX_RESULT_LINES = 60
"""Maximum number of lines of the diff in the result."""
MAX_RESULT_CHARACTERS = 8_000

_DESCRIPTION = (
    "Replace one text in a file by another, or several with `edits`: these are made in order, all or none. old_string must "
    "occur exactly once, character for character (line ends apart), without the line numbers that read_file shows: give as "
    "many lines around the change as that takes, or set replace_all. The call is judged before it runs, and a person may "
    "be shown the difference."
)


class EditFileRequest(Record):
    """The replacements."""

    path: PathAccess
    change: Replacement | Unable
    replacements: int = 0


class EditFileTool:
    """Edits files."""

    kind = EDIT_FILE

    def __init__(
        self, workspace: Workspace, *, baselines: Baselines | None = None, images: BeforeImages | None = None
    ) -> None:
        """Create the tool. `baselines` are the files that the model has read, shared by the tools of a session.

        `images` stores the content of files before changes, for undo.
        """
        self._workspace = workspace
        self.root = workspace.root
        self.check_place = workspace.check
        self._baselines = Baselines() if baselines is None else baselines
        self._images = images
        self.spec = _spec()

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action, with the diff as its preview.

        An edit that does not apply also gives an action. `run` raises its reason after the call was judged, because the
        reason reveals content of the file. Such an action is judged like a read, unless a rule about the write matches.

        Raises ToolError for a path that cannot name a file, and for texts that are missing, identical or empty.
        """
        path = self._workspace.resolve(self._workspace.file_name(text(arguments, "path")), Access.WRITE)
        request = self._request(path, _edits(arguments))
        unable = isinstance(request.change, Unable)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=write_and_read(path),
            reads_as=READ_FILE.name,
            default_of=READ_FILE.name if unable and path.place is Place.INSIDE else "",
            summary=visible_line(path.written, SUMMARY_CHARACTERS),
            preview=_preview(request),
            shown_whole=isinstance(request.change, Unable) or request.change.diff.is_whole,
            change=None if isinstance(request.change, Unable) else request.change.by_digest,
            request=request,
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - it does what the action says
        """Write the new content as it was judged, and return the diff.

        Raises ToolError if the edit does not apply, if the file cannot be written, or if the path or the file has
        changed since it was judged.
        """
        request = action.request
        if not isinstance(request, EditFileRequest):
            raise TypeError("the action was not prepared by edit_file")
        match request.change:
            case Unable(shows=shows) as change:
                if shows is not None:
                    self._baselines.saw(request.path.real, shows)
                raise ToolError(change.reason, code=change.code)
            case Replacement() as change:
                note = apply(change, self._workspace, self._images)
                self._baselines.saw(change.path.real, change.content, change.after_sha256)
                return _output(change, request.replacements, note)

    def _request(self, path: PathAccess, edits: Sequence[Edit]) -> EditFileRequest:
        try:
            old = read_whole(path)
            if old is None:
                raise not_found(path, self._workspace)
            text = read_text(old.data)
            if text is None:
                raise binary(path, old.data, len(old.data))
        except ToolError as error:
            return EditFileRequest(path=path, change=unable(error))
        # A unique old_string shows that the model has read the file. With replace_all, old_string may be a single
        # letter, so the file must have been read. If it was read, it must not have changed since.
        baseline = self._baselines.get(path.real)
        if baseline is None and any(edit.occurrences is Occurrences.ALL for edit in edits):
            message = f"Read the file before you set replace_all: {display_path(path)}. Nothing was written."
            return EditFileRequest(path=path, change=Unable(reason=message, code=ErrorCode.NOT_READ))
        if baseline is not None and (changed := stale(path, baseline, old.data)) is not None:
            return EditFileRequest(path=path, change=changed)
        spliced = splice_all(text.body, edits, most_bytes=MAX_FILE_BYTES)
        if isinstance(spliced, Unmatched):
            reason = spliced.reason.replace("{path}", display_path(path), 1)
            return EditFileRequest(path=path, change=Unable(reason=reason, code=spliced.code))
        content = text.encoded(spliced.content)
        if len(content) > MAX_FILE_BYTES:
            reason = (
                f"{display_path(path)} would become larger than {MAX_FILE_BYTES:,} bytes. The file was not changed."
            )
            return EditFileRequest(path=path, change=Unable(reason=reason, code=ErrorCode.TOO_LARGE))
        change = change_to(path, old, content, before=text.body, after=spliced.content)
        return EditFileRequest(path=path, change=change, replacements=spliced.replacements)


def _edits(arguments: Arguments) -> list[Edit]:
    """Return the edits of a call. Raises ToolError for arguments that are missing or contradict each other."""
    singly = {"old_string", "new_string", "replace_all"}.intersection(arguments)
    if "edits" in arguments:
        if singly:
            raise _invalid(f"give either edits or {', '.join(sorted(singly))}, not both.")
        items = objects(arguments, "edits")
        return [_edit(each, f"edit {number} of {len(items)}: ") for number, each in enumerate(items, 1)]
    for name in ("old_string", "new_string"):
        if name not in arguments:
            raise _invalid(f"{name} is missing.")
    return [_edit(arguments, "")]


def _edit(arguments: Arguments, which: str) -> Edit:
    old, new = text(arguments, "old_string"), text(arguments, "new_string")
    if not old:
        raise _invalid(f"{which}old_string is empty; use write_file to create or replace a file.")
    if old == new:
        message = f"{which}old_string and new_string are identical: there is nothing to change."
        raise ToolError(message, code=ErrorCode.NO_CHANGE)
    return Edit(old=old, new=new, occurrences=Occurrences.ALL if flag(arguments, "replace_all") else Occurrences.ONE)


def _invalid(problem: str) -> ToolError:
    return ToolError(f"Invalid arguments for edit_file: {problem}", code=ErrorCode.ARGUMENTS)


def _preview(request: EditFileRequest) -> str:
    name, change = location_of(request.path), request.change
    match change:
        case Unable():
            notice = "This edit does not apply: a yes changes nothing, it only tells the model why."
            return f"edit {name}\n{notice}\n{visible(change.reason)}"
        case Replacement():
            return f"edit {name} (+{change.diff.added} -{change.diff.removed} lines)\n{change.diff.text()}"


def _output(change: Replacement, replacements: int, note: str) -> ToolOutput:
    count = "1 replacement" if replacements == 1 else f"{replacements:,} replacements"
    diff = change.diff
    shown_diff = diff.text(MAX_RESULT_LINES)
    if len(shown_diff) > MAX_RESULT_CHARACTERS:
        shown_diff = f"{shown_diff[:MAX_RESULT_CHARACTERS]}\n[... the rest of the diff is left out ...]"
    parts = [f"Edited {display_path(change.path)}: {count} (+{diff.added} -{diff.removed})", shown_diff, note]
    return ToolOutput(
        content="\n".join(part for part in parts if part),
        changed_path=change.path.real,
        before_sha256=change.before_sha256,
        after_sha256=change.after_sha256,
    )


def _spec() -> ToolSpec:
    texts: dict[str, JsonValue] = {
        "old_string": {"type": "string", "description": "The text to replace.", "maxLength": MAX_FILE_BYTES},
        "new_string": {"type": "string", "description": "What comes in its place.", "maxLength": MAX_FILE_BYTES},
        "replace_all": {"type": "boolean", "description": "Replace every occurrence; false if left out."},
    }
    return ToolSpec(
        name=EDIT_FILE.name,
        description=_DESCRIPTION,
        parameters={
            "type": "object",
            "properties": {
                "path": PATH_SCHEMA,
                **texts,
                "edits": {
                    "type": "array",
                    "description": "Several replacements, instead of old_string and new_string; each sees the one before.",
                    "minItems": 1,
                    "maxItems": MAX_EDITS,
                    "items": {
                        "type": "object",
                        "properties": texts,
                        "required": ["old_string", "new_string"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    )
