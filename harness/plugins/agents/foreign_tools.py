"""The gate's tools for calls of another agent. They create the Action to judge, and never run anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from harness.actions import (
    SUMMARY_CHARACTERS,
    Access,
    Action,
    Effects,
    Facet,
    FileChange,
    JsonValue,
    Opaque,
    PathAccess,
    ToolBounds,
    ToolUse,
)
from harness.digest import digest_of
from harness.errors import ToolError
from harness.files.workspace import Workspace
from harness.gate.arguments import flag, text
from harness.gate.tool import Arguments, Tool, ToolOutput
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.plugins.agents.foreign_call import MOST_KEPT_BYTES, ForeignCall, ForeignKind
from harness.record import Record
from harness.regex import regex
from harness.safe_files import read_small
from harness.text.visible import visible, visible_line
from harness.tool_kinds import READ_FILE, ToolKind, tool_kind

MOST_SHOWN = 20_000
"""Maximum number of characters of a preview."""
_LEADS_OUT = regex(r"^[/~]|\.\.|\\|[{,][./~,}]")
"""Matches a glob pattern that may lead out of its folder, even only after brace expansion (`{.,}./*`) or unquoting."""
_NAMES_ALONE = regex(r"(?:\*\*/)?\*\.(?:([A-Za-z0-9_]+)|\{([A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*)\})")
"""Matches a pattern of file names that all agents read alike: `*.py`, `**/*.{ts,tsx}`."""
_ANYTHING: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": True}


class ForeignRequest(Record):
    """Data of a request in addition to its action."""

    writes: tuple[str, ...] = ()
    """Resolved paths of the files to write."""


class ForeignFiles:
    """The tool for calls that read, list, search, write, edit or patch files."""

    def __init__(self, call: ForeignCall, workspace: Workspace, cwd: str) -> None:
        """`cwd` is the folder for relative paths."""
        self.kind: ToolKind = tool_kind(call.tool)
        self.root = workspace.root
        self.check_place = workspace.check
        self._call = call
        self._workspace = workspace
        self._cwd = cwd
        self.spec = _spec(call)

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action. Raises ToolError for an invalid path, or a patch that is not understood."""
        kind = self._call.kind
        if kind is ForeignKind.PATCH:
            return self._patched(call, arguments)
        path = text(arguments, "path", "." if kind in (ForeignKind.LIST, ForeignKind.SEARCH) else None)
        if path != path.strip() or path.casefold().startswith("file:"):
            raise ToolError(
                "A blank around the path, or `file:` in front of it: some agents read another path out of it."
            )
        reads = kind in (ForeignKind.READ, ForeignKind.LIST, ForeignKind.SEARCH)
        access = self._workspace.resolve(path, Access.READ if reads else Access.WRITE, self._cwd)
        if reads:
            return self._action(
                call, arguments, (self._whole_path(access, arguments),), preview=visible_line(path, 4096)
            )
        after = _content_after(kind, arguments, access.real)
        return self._action(
            call,
            arguments,
            _written(access),
            preview=_preview(kind, arguments),
            change=_change_to(access.real, after),
            writes=(access.real,),
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Raise: the agent carries it out."""
        _not_ours(action, effects)

    def _action(
        self,
        call: ToolCall,
        arguments: Arguments,
        facets: tuple[Facet, ...],
        *,
        preview: str,
        change: FileChange | None = None,
        writes: tuple[str, ...] = (),
    ) -> Action:
        paths = [facet.written for facet in facets if isinstance(facet, PathAccess)]
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=facets,
            reads_as=READ_FILE.name,
            summary=visible_line(", ".join(dict.fromkeys(paths)), SUMMARY_CHARACTERS),
            preview=preview,
            shown_whole=len(preview) < MOST_SHOWN,
            change=change,
            request=ForeignRequest(writes=writes),
            described=self.kind,
        )

    def _whole_path(self, path: PathAccess, arguments: Arguments) -> Facet:
        """Return the facet for a read or a search. A search in a folder reads everything below it."""
        pattern = text(arguments, "glob", "")
        if self._call.kind is not ForeignKind.SEARCH and _LEADS_OUT.search(pattern):
            return Opaque(text=pattern, reason="a pattern that may lead out of its folder", column=1, paths=(path,))
        if self._call.kind is ForeignKind.SEARCH and os.path.isdir(path.real):
            return self._workspace.look_below(path, follows=True, only=_names_alone(pattern))
        return path

    def _patched(self, call: ToolCall, arguments: Arguments) -> Action:
        from harness.plugins.agents.patches import read_patch

        patch = text(arguments, "patch")
        facets: list[Facet] = []
        writes: list[str] = []
        changes: list[FileChange | None] = []
        for part in read_patch(patch):
            for name in part.names:
                access = self._workspace.resolve(name, Access.WRITE, self._cwd, entry=part.removes)
                facets += _written(access)
                writes.append(access.real)
            before = read_small(writes[-1], MOST_KEPT_BYTES)
            changes.append(_change_to(writes[-1], part.after(before)) if len(part.names) == 1 else None)
        change = changes[0] if len(changes) == 1 else None
        preview = visible(patch)[:MOST_SHOWN]
        return self._action(call, arguments, tuple(facets), preview=preview, change=change, writes=tuple(writes))


class ForeignFetch:
    """The tool for calls that fetch pages of the web. Rules with `host` decide on them, as on our own such tool."""

    def __init__(self, call: ForeignCall) -> None:
        """Create the tool for one call."""
        self.kind = tool_kind(call.tool)
        self.spec = _spec(call)

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action, with a facet for each address. Raises ToolError for an invalid address, or for none."""
        from harness.plugins.media.web_address import web_address

        words = text(arguments, "text", "").split()
        written = [text(arguments, "url")] if "url" in arguments else []
        addresses = [web_address(word) for word in (*written, *(word for word in words if "://" in word))]
        if not addresses:
            raise ToolError("The call names no address that begins with https:// or http://.")
        names = "\n".join(dict.fromkeys(address.text for address in addresses))
        facets = (
            ToolUse(tool=self.spec.name, host=address.host, port=address.port, bounds=ToolBounds(network=True))
            for address in addresses
        )
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=tuple(dict.fromkeys(facets)),
            summary=visible_line(names, SUMMARY_CHARACTERS),
            preview=visible(names)[:MOST_SHOWN],
            shown_whole=len(names) < MOST_SHOWN,
            request=ForeignRequest(),
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Raise: the agent carries it out."""
        _not_ours(action, effects)


class ForeignOther:
    """The tool for calls whose effect is unknown, or that affect only the agent itself."""

    def __init__(self, call: ForeignCall, workspace: Workspace) -> None:
        """Create the tool for one call."""
        self.kind = tool_kind(call.tool)
        self._inward = call.kind is ForeignKind.INWARD
        self._workspace = workspace
        self.spec = _spec(call)

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action, whose facet is the use of the tool.

        A call that affects only the agent itself is judged as a read of the workspace folder.
        """
        from harness.policy.tool_arguments import tool_arguments  # only needed for such a call

        facet: Facet = ToolUse(tool=self.spec.name, arguments=tool_arguments(arguments, self._workspace))
        if self._inward:
            facet = self._workspace.resolve(".", Access.READ)
        text = visible(call.arguments)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(facet,),
            summary=visible_line(self.spec.name, SUMMARY_CHARACTERS),
            preview=text[:MOST_SHOWN],
            shown_whole=len(text) < MOST_SHOWN,
            request=ForeignRequest(),
            default_of=READ_FILE.name if self._inward else "",
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Raise: the agent carries it out."""
        _not_ours(action, effects)


def foreign_tool(call: ForeignCall, workspace: Workspace, cwd: str, shell: Callable[[], Tool]) -> Tool:
    """Return the tool that prepares one call; `shell` creates the tool for commands."""
    if call.kind is ForeignKind.SHELL:
        return shell()
    if call.kind is ForeignKind.FETCH:
        return ForeignFetch(call)
    if call.kind in (ForeignKind.INWARD, ForeignKind.UNKNOWN):
        return ForeignOther(call, workspace)
    return ForeignFiles(call, workspace, cwd)


def _not_ours(action: Action, effects: Effects) -> NoReturn:  # noqa: ARG001 - the signature of a body
    raise ToolError(f"{action.tool} is carried out by the agent that called it")


def _written(access: PathAccess) -> tuple[Facet, ...]:
    """Return the facets of a change: the file is written, and read if it exists."""
    from harness.files.file_changes import write_and_read  # only needed for a change

    return write_and_read(access, new=not os.path.lexists(access.real))


def _names_alone(pattern: str) -> tuple[str, ...]:
    """Return the patterns of the names of the only files that a search reads. Empty if it may read any file."""
    match = _NAMES_ALONE.fullmatch(pattern)
    return () if match is None else tuple(f"*.{ending}" for ending in (match[1] or match[2]).split(","))


def _spec(call: ForeignCall) -> ToolSpec:
    # ForeignTool.read has checked the arguments already; an unknown tool accepts any.
    return ToolSpec(name=call.tool, description="", parameters=dict(_ANYTHING))


def _change_to(path: str, after: bytes | None) -> FileChange | None:
    """Return the present and the predicted digest of a file; `None` if the change cannot be predicted."""
    if after is None:
        return None
    after_sha256 = digest_of(after)
    try:
        mode = os.lstat(path).st_mode & 0o7777
    except FileNotFoundError:
        return FileChange(path=path, before_sha256=None, after_sha256=after_sha256, before_mode=None)
    except OSError:
        return None
    before = read_small(path, MOST_KEPT_BYTES)
    if before is None:
        return None
    return FileChange(path=path, before_sha256=digest_of(before), after_sha256=after_sha256, before_mode=mode)


def _content_after(kind: ForeignKind, arguments: Arguments, path: str) -> bytes | None:
    """Return the content that a file will have if the agent runs the call as stated; `None` if it is unpredictable."""
    if kind is ForeignKind.WRITE:
        return text(arguments, "content").encode()
    content = read_small(path, MOST_KEPT_BYTES)
    edits = [(old.encode(), new.encode()) for old, new in _edits(arguments)]
    if content is None:
        old, new = edits[0]
        return new if not old and len(edits) == 1 and not os.path.lexists(path) else None
    for old, new in edits:
        if not old or old not in content:
            return None
        content = content.replace(old, new, -1 if flag(arguments, "replace_all") else 1)
    return content


def _edits(arguments: Arguments) -> Sequence[tuple[str, str]]:
    """Return the removed and the added text of each place that an edit changes. Raises ToolError for another form."""
    if "edits" not in arguments:
        return [(text(arguments, "old_string"), text(arguments, "new_string"))]
    edits = arguments["edits"]
    if not isinstance(edits, list) or not edits:
        raise ToolError("`edits` is not a list of changes.")
    changes: list[tuple[str, str]] = []
    for edit in edits:
        match edit:
            case {"old_string": str() as old, "new_string": str() as new, **rest} if not rest:
                changes.append((old, new))
            case _:
                raise ToolError("A change in `edits` is not an old and a new text.")
    return changes


def _preview(kind: ForeignKind, arguments: Arguments) -> str:
    """Return the preview of a change for the user: the path, the removed text and the added text."""
    name = visible_line(text(arguments, "path"), 4096)
    if kind is ForeignKind.WRITE:
        return _cut((f"write {name}", *_marked("+", text(arguments, "content"))))
    everywhere = " (everywhere)" if flag(arguments, "replace_all") else ""
    changes = (line for old, new in _edits(arguments) for line in (*_marked("-", old), *_marked("+", new)))
    return _cut((f"edit {name}{everywhere}", *changes))


def _marked(sign: str, content: str) -> Sequence[str]:
    return [f"{sign}{visible_line(line, MOST_SHOWN)}" for line in content.splitlines()]


def _cut(lines: Sequence[str]) -> str:
    return "\n".join(lines)[:MOST_SHOWN]
