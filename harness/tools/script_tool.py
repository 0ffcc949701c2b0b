"""A script that the user declared as a tool: one program, run without a shell, confined to the declared effects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from shlex import join

from harness.actions import (
    SUMMARY_CHARACTERS,
    Access,
    Action,
    Effects,
    PathAccess,
    Place,
    ToolBounds,
    ToolUse,
)
from harness.errors import ToolError
from harness.files.judged_files import check_unmoved, location_of
from harness.files.new_files import NewFiles
from harness.files.protected_places import ProtectedPlaces
from harness.files.seen_files import SeenFile, SeenFiles
from harness.gate.tool import Arguments, ToolOutput
from harness.limits import DEFAULT_COMMAND_SECONDS, Limits
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.policy.tool_arguments import tool_arguments
from harness.process.environment import program_outside
from harness.process.start import becoming
from harness.record import Record
from harness.text.visible import visible, visible_line
from harness.tool_kinds import READ_FILE, ToolKind, script_tool
from harness.tools.command_runner import CommandRunner, CommandStart
from harness.tools.script_declaration import ScriptDeclaration, placeholders
from harness.tools.script_words import command_words, filled


class ScriptRequest(Record):
    """A script to start."""

    words: tuple[str, ...]
    """The whole command line. The first word is the path of the program."""
    is_found: bool
    """Whether the program exists."""
    paths: tuple[PathAccess, ...]
    """The declared paths to read and to write."""
    seconds: float
    files: dict[str, SeenFile]
    """The files of the workspace that it runs, in their state when the call was judged."""


class ScriptTool:
    """Runs one script."""

    def __init__(
        self, declared: ScriptDeclaration, commands: CommandRunner, seen_files: SeenFiles | None = None
    ) -> None:
        """Record the state of the script's files in the workspace, unless `seen_files` has it.

        If they change later, harness asks the user before the script runs.
        """
        self._declared = declared
        self._commands = commands
        self._workspace = commands.workspace
        self._seen_files = seen_files or SeenFiles(list(_files(declared.argv)), self._workspace)
        self.root = self._workspace.root
        self.check_place = self._workspace.check
        self.walls = commands.walls
        self.expect_files = commands.expect_files
        self.note_files = commands.note_files
        self.outdate_files = commands.outdate_files
        self.spec = ToolSpec(
            name=script_tool(declared.name), description=declared.description, parameters=declared.schema
        )
        self.kind = ToolKind(name=self.spec.name)

    @property
    def places(self) -> ProtectedPlaces:
        """The protected places of the workspace."""
        return self._commands.places

    def under(self, limits: Limits) -> ScriptTool:
        """Return a copy of the tool that also respects `limits`."""
        return ScriptTool(self._declared, self._commands.under(limits), self._seen_files)

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the command line, and the declared paths to read and to write.

        Raises ToolError for a value that would be read as an option, for a path that cannot name a file, and for a path
        to write that is above the workspace or behind a link.
        """
        words = command_words(self._declared.argv, arguments)
        program = self._program(words[0])
        reads = [self._path(word, Access.READ) for word in self._fill(self._declared.reads, arguments)]
        writes = [self._path(word, Access.WRITE) for word in self._fill(self._declared.writes, arguments)]
        files = self._seen_files.now()
        changed = ", ".join(self._seen_files.changed(files))
        request = ScriptRequest(
            words=(program or words[0], *words[1:]),
            is_found=bool(program),
            paths=(*reads, *writes),
            seconds=min(self._declared.seconds or DEFAULT_COMMAND_SECONDS, self._commands.seconds),
            files=files,
        )
        use = ToolUse(
            tool=self.spec.name,
            unseen=f"it runs {changed}, which changed since it was last seen" if changed else "",
            arguments=tool_arguments(arguments, self._workspace),
            bounds=ToolBounds(
                write=tuple(dict.fromkeys(map(_granted, writes))),
                network=self._declared.network,
                is_held=self.walls.confines,
            ),
        )
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(use, *(self._with_content(path) for path in request.paths)),
            summary=visible_line(join(words), SUMMARY_CHARACTERS),
            preview="\n".join((*self._preview(request, reads, writes), *self._seen_files.differences(files))),
            request=request,
            reads_as=READ_FILE.name,
            described=self.kind,
            cwd=self._workspace.root,
            seconds=request.seconds,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Run the script and return its output and exit status.

        Raises ToolError if a path leads to another file than when it was judged, if a file that it runs has changed
        since, or if it cannot start.
        """
        return self.run_for(action, effects, None)

    def run_for(self, action: Action, effects: Effects, seconds: float | None) -> ToolOutput:
        """Run the script like `run`, for at most `seconds`, the remaining time of the run."""
        request = action.request
        if not isinstance(request, ScriptRequest):
            raise TypeError(f"the action was not prepared by {self.spec.name}")
        for path in request.paths:
            check_unmoved(self._workspace, path)
        if self._seen_files.now() != request.files:
            raise ToolError("A file that this tool runs changed after the call was checked. The tool was not run.")
        noun = visible_line(request.words[0], 200)
        if not request.is_found:
            raise ToolError(f"Cannot start {noun}: {self._why_not_found()}.")
        if not effects.unasked:  # the approval prompt showed the changes, and the user approved them
            self._seen_files.saw(request.files)
        start = CommandStart(
            noun=noun,
            argv=becoming(request.words),
            cwd=self._workspace.root,
            seconds=request.seconds,
            variables={
                name: self._commands.base_environment[name]
                for name in self._declared.env
                if name in self._commands.base_environment
            },
        )
        written = (path for path in request.paths if path.access is Access.WRITE and not _is_folder(path))
        new = [path.real for path in written if _granted(path) in effects.granted]
        try:
            with NewFiles(new):
                return self._commands.run(start, effects, seconds_left=seconds)
        except OSError as error:
            raise ToolError(f"Cannot make the file that is to be written: {error.strerror or error}.") from None

    def _program(self, word: str) -> str:
        """Return the path of the program, or an empty string if there is none.

        A name without a slash is searched for on PATH, outside the workspace.
        """
        if "/" not in word:
            return program_outside(self._workspace.root, word, self._commands.environment) or ""
        # Do not resolve links: some programs search for their files beside the path with which they were started.
        path = os.path.normpath(
            os.path.join(self._workspace.root, self._workspace.home + word[1:] if word[:2] == "~/" else word)
        )
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else ""

    def _why_not_found(self) -> str:
        if "/" in self._declared.argv[0]:
            return "not an executable file"
        return "no program of that name is on PATH; one of the workspace is to be declared by its path"

    def _fill(self, words: Sequence[str], arguments: Arguments) -> Iterator[str]:
        for word in words:
            yield from filled(word, arguments)

    def _path(self, word: str, access: Access) -> PathAccess:
        path = self._workspace.resolve(word, access)
        if access is Access.READ:
            return path
        if path.place is Place.ABOVE:
            raise ToolError(f"{visible_line(word, 200)} holds the workspace or the home folder, and cannot be written.")
        if len(path.names) > 1 and not path.names[0].startswith("/"):
            # A link in the workspace may come from the repository or the model.
            raise ToolError(
                f"{location_of(path)} is behind a link, by which this tool writes nothing. Name what it leads to."
            )
        return path

    def _with_content(self, path: PathAccess) -> PathAccess:
        """Return the path with everything below it if it is a folder, else unchanged."""
        if not _is_folder(path):
            return path
        return self._workspace.look_below(path, follows=path.access is Access.READ)

    def _preview(
        self, request: ScriptRequest, reads: Sequence[PathAccess], writes: Sequence[PathAccess]
    ) -> Iterator[str]:
        """Yield the lines of the preview for the user.

        INVARIANT: only the line of the command begins with text that the model can choose.
        """
        yield visible(join(request.words)).replace("\n", "\\n")
        if not request.is_found:
            yield f"it cannot start: {self._why_not_found()}"
        yield f"cwd: {visible_line(self._workspace.root, 4096)}"
        if reads:
            yield f"reads: {_path_list(reads)}"
        yield f"may write: {_path_list(writes) or 'nothing'}, and a temporary folder of its own"
        yield f"network: {'yes' if self._declared.network else 'no'}"
        yield f"timeout: {request.seconds:g} s"


def _files(argv: Sequence[str]) -> Iterator[str]:
    """Yield the words that may name files to run: the program if it is a path, and other words without placeholders."""
    for place, word in enumerate(argv):
        if word and not placeholders(word) and (place or "/" in word):
            yield word


def _path_list(paths: Sequence[PathAccess]) -> str:
    return ", ".join(f"{location_of(path)}/" if _is_folder(path) else location_of(path) for path in paths)


def _is_folder(path: PathAccess) -> bool:
    return path.written.endswith("/") or os.path.isdir(path.real)


def _granted(path: PathAccess) -> str:
    """Return a path to write in the form of `Effects.granted`: a folder has a slash at its end."""
    name = path.names[-1]
    if name.startswith("~"):
        name = f"./{name}"  # here `~` is part of a name, not the home folder
    return f"{name}/" if _is_folder(path) and name != "." else name
