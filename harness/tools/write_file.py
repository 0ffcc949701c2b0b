"""The tool `write_file`: writes a whole file in one step. It writes only content that was judged."""

from __future__ import annotations

from harness.actions import SUMMARY_CHARACTERS, Access, Action, Effects, PathAccess, Place
from harness.errors import ErrorCode, ToolError
from harness.files.baselines import Baselines
from harness.files.before_images import BeforeImages
from harness.files.diffs import count_lines
from harness.files.encoding import adapted, read_text, readable
from harness.files.file_changes import (
    Replacement,
    Unable,
    apply,
    change_to,
    check_unchanged,
    stale,
    unable,
    write_and_read,
)
from harness.files.judged_files import (
    MAX_FILE_BYTES,
    Present,
    check_unmoved,
    display_path,
    location_of,
    names_folder,
    read_whole,
)
from harness.files.workspace import Workspace
from harness.gate.arguments import PATH_SCHEMA, text
from harness.gate.tool import Arguments, ToolOutput
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.record import Record
from harness.text.visible import visible, visible_line
from harness.tool_kinds import READ_FILE, WRITE_FILE

_DESCRIPTION = (
    "Write a whole text file: a new one, with the folders that it needs, or in the place of an old one, which must have "
    "been read before. An old file keeps its encoding, byte-order mark and CRLF line endings. To change a part of a file "
    "use edit_file. The call is judged before it runs, and a person may be shown the difference."
)


class WriteFileRequest(Record):
    """A file to write."""

    path: PathAccess
    change: Replacement | Unable
    kept_features: tuple[str, ...] = ()
    """Features of the old file (encoding, line ends) that are kept although the content in the call lacks them."""


class WriteFileTool:
    """Writes whole files."""

    kind = WRITE_FILE

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
        """Return the action, with the diff to the present content as its preview.

        A file that cannot be written also gives an action. `run` raises the reason after the call was judged, because
        the reason may reveal content. Such an action is judged like a read, unless a rule about the write matches. A
        write without a change is judged in the same way, because it also reveals content.

        Raises ToolError for a path that cannot name a file, and for content that is too long.
        """
        path = self._workspace.resolve(self._workspace.file_name(text(arguments, "path")), Access.WRITE)
        content = text(arguments, "content").encode()
        if len(content) > MAX_FILE_BYTES:
            message = f"The content is {len(content):,} bytes long; at most {MAX_FILE_BYTES:,} are taken."
            raise ToolError(message, code=ErrorCode.TOO_LARGE)
        try:
            old = read_whole(path)
            request = self._request(path, old, content)
        except ToolError as error:
            old, request = None, WriteFileRequest(path=path, change=unable(error))
        change = request.change
        writes = isinstance(change, Replacement) and change.changes
        new = isinstance(change, Replacement) and change.before_sha256 is None
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=write_and_read(path, new=new),
            reads_as=READ_FILE.name,
            default_of="" if writes or path.place is not Place.INSIDE else READ_FILE.name,
            summary=visible_line(path.written, SUMMARY_CHARACTERS),
            preview=_preview(request, old),
            shown_whole=isinstance(change, Unable) or change.diff.is_whole,
            change=change.by_digest if isinstance(change, Replacement) and change.changes else None,
            request=request,
            described=self.kind,
        )

    def _request(self, path: PathAccess, old: Present | None, content: bytes) -> WriteFileRequest:
        if old is None and names_folder(path):
            reason = f"Path is that of a directory: {display_path(path)}. No file was written."
            return WriteFileRequest(path=path, change=Unable(reason=reason, code=ErrorCode.IS_FOLDER))
        if old is None:
            return WriteFileRequest(path=path, change=change_to(path, None, content, before=b"", after=content))
        form = adapted(content, old.data)
        if len(form.data) > MAX_FILE_BYTES:
            maximum = f"at most {MAX_FILE_BYTES:,} are taken"
            reason = f"{display_path(path)} would have {len(form.data):,} bytes in its encoding; {maximum}."
            return WriteFileRequest(path=path, change=Unable(reason=reason, code=ErrorCode.TOO_LARGE))
        if form.data != old.data:
            baseline = self._baselines.get(path.real)
            if baseline is None:
                return WriteFileRequest(path=path, change=_unread(path, old))
            changed = stale(path, baseline, old.data)
            if changed is not None:
                return WriteFileRequest(path=path, change=changed)
        change = change_to(path, old, form.data, before=readable(old.data), after=form.text)
        return WriteFileRequest(path=path, change=change, kept_features=form.kept_features)

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - it does what the action says
        """Write the judged content, and return the change.

        Raises ToolError if the file cannot be written, or if the path or the file has changed since it was judged.
        """
        request = action.request
        if not isinstance(request, WriteFileRequest):
            raise TypeError("the action was not prepared by write_file")
        match request.change:
            case Unable(shows=shows) as change:
                if shows is not None:
                    self._baselines.saw(request.path.real, shows)
                raise ToolError(change.reason, code=change.code)
            case Replacement() as change:
                return self._write(change, request.kept_features)

    def _write(self, change: Replacement, kept_names: tuple[str, ...]) -> ToolOutput:
        name = display_path(change.path)
        if not change.changes:
            check_unmoved(self._workspace, change.path)
            check_unchanged(change)
            return ToolOutput(content=f"Unchanged: {name}")
        note = apply(change, self._workspace, self._images)
        self._baselines.saw(change.path.real, change.content, change.after_sha256)
        if change.before_sha256 is None:
            message = f"Created {name} ({_lines(count_lines(change.content))}, {len(change.content):,} bytes)"
        else:
            message = f"Overwrote {name} (+{change.diff.added} -{change.diff.removed} lines)"
        if kept_names:
            message += f"; kept: {', '.join(kept_names)}"
        return ToolOutput(
            content=f"{message}\n{note}" if note else message,
            changed_path=change.path.real,
            before_sha256=change.before_sha256,
            after_sha256=change.after_sha256,
        )


def _unread(path: PathAccess, old: Present) -> Unable:
    """Return the reason why a file that the model has not read is not overwritten."""
    reason = f"Read the file before overwriting it: {display_path(path)}. The file exists and was not changed."
    if read_text(old.data) is None:
        problem = f"{display_path(path)} exists and is a binary file, which cannot be read"
        reason = f"{problem}. The file was not changed. Write to another path."
    return Unable(reason=reason, code=ErrorCode.NOT_READ)


def _preview(request: WriteFileRequest, old: Present | None) -> str:
    path, change = request.path, request.change
    match change:
        case Unable():
            note = f"cannot write {location_of(path)}: a yes changes nothing, it only tells the model why"
            return f"{note}\n{visible(change.reason)}"
        case Replacement():
            pass
    diff = change.diff
    if not change.changes:
        return f"{location_of(path)} already has this content; no change"
    if old is None:
        title = f"new file {location_of(path)}" + (", CRLF line endings" if b"\r\n" in change.content else "")
    elif read_text(old.data) is None:
        title = f"overwrite {location_of(path)}, a binary file of {len(old.data):,} bytes that is not shown"
    else:
        title = f"overwrite {location_of(path)} (+{diff.added} -{diff.removed} lines)"
    if request.kept_features:
        title += f"; kept: {', '.join(request.kept_features)}"
    return f"{title}\n{diff.text()}" if diff.lines else f"{title}\n(empty)"


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _spec() -> ToolSpec:
    return ToolSpec(
        name=WRITE_FILE.name,
        description=_DESCRIPTION,
        parameters={
            "type": "object",
            "properties": {
                "path": PATH_SCHEMA,
                "content": {
                    "type": "string",
                    "description": "The whole content; a new file holds it byte for byte as UTF-8.",
                    "maxLength": MAX_FILE_BYTES,
                },
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    )
