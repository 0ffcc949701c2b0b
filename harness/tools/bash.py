"""The tool `bash`: runs one command line in a fresh shell, confined to the effects that its verdict permits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.actions import (
    SUMMARY_CHARACTERS,
    Access,
    Act,
    Action,
    Command,
    Effects,
    Facet,
    JsonValue,
    Opaque,
    PathAccess,
    Place,
    Unconfined,
)
from harness.errors import ErrorCode, ToolError
from harness.files.own_temporary import OwnTemporary, named_in
from harness.files.workspace import Workspace
from harness.gate.arguments import flag, number, text
from harness.gate.tool import Arguments, Neighbour, ToolOutput
from harness.limits import DEFAULT_COMMAND_SECONDS, Limits
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.policy.walls_here import Undo
from harness.record import Record
from harness.shell.disk import Witness
from harness.system import memory_file, seal
from harness.text.visible import one_line, visible, visible_line
from harness.tool_kinds import BASH
from harness.tools.command_runner import CommandRunner, CommandStart

if TYPE_CHECKING:
    from harness.files.protected_places import ProtectedPlaces
    from harness.process.lent_terminal import LentTerminal

MAX_COMMAND_BYTES = 1_000_000
MAX_ARGUMENT_BYTES = 120_000
"""Maximum size of a command passed as an argument of bash. Linux allows 131,071 bytes (execve(2), MAX_ARG_STRLEN)."""
LEAST_SECONDS = 0.1
MAX_JUSTIFICATION_CHARACTERS = 500
JOB_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,31}"
"""Pattern of the name of a background command."""
MAX_NEW_NAMES = 8
"""Maximum number of files new to git that an approval prompt lists. The rest are counted."""

_DESCRIPTION = (
    "Run a command line with bash. Every call is a fresh shell: no variable, function or folder is kept, standard input "
    "is closed, and what runs in the background ends with the call. The command is judged before it runs: commands that only "
    "read are run at once; what cannot be understood from its text (eval, functions, names that expand) is asked about. "
    "Plain commands are asked about least: simple commands joined by && or |, without redirections and substitutions; the "
    "folder is set by cwd, and files are changed by the tools for that, where there are some. "
    "A command is confined to what it may do: one that only reads can write nothing and has no network. "
    "Returns stdout and stderr as one text and the exit status in the last line."
)
_BACKGROUND = (
    " With background, the command goes on after the call, until the session ends: use it for servers and watchers. The "
    "call returns the output of the first second; the tool job reads the new output and stops it. Later commands in the "
    "same walls reach its ports at 127.0.0.1."
)


class BashRequest(Record):
    """A command to run."""

    command: str
    cwd: PathAccess
    """The working directory."""
    seconds: float
    background: str = ""
    """Name of the background command. Empty for a command that ends with its call."""
    unconfined: Unconfined | None = None
    """The model's request to run unconfined. `None` for a confined run."""
    judged_on: Witness
    """The state of the disk on which the command was judged."""


class BashTool:
    """Runs command lines."""

    kind = BASH
    runs_beside = True

    def __init__(
        self,
        workspace: Workspace,
        commands: CommandRunner | None = None,
        *,
        lend: Callable[[], AbstractContextManager[LentTerminal] | None] | None = None,
        own_environment: bool = True,
        temporary: Callable[[], OwnTemporary | None] = lambda: None,
    ) -> None:
        """Create the tool. `commands` starts the commands; the default is a new runner.

        `lend` lends the terminal to a command that the user typed and that reads keys. It returns `None` for all other
        commands. `own_environment` is false if another program runs the commands, with its own variables. `temporary`
        returns the `/tmp` that commands have as their own, or `None` if they have that of the machine.
        """
        self._workspace = workspace
        self.root = workspace.root
        self.check_place = workspace.check
        self._commands = commands or CommandRunner(workspace)
        self._lend = lend
        self._own_environment = own_environment
        self.temporary = temporary
        """Returns the `/tmp` of the commands, if it is their own."""
        self.walls = self._commands.walls
        self.expect_files = self._commands.expect_files
        self.note_files = self._commands.note_files
        self.outdate_files = self._commands.outdate_files
        self.spec = _spec(self._commands.seconds, background=self._commands.jobs is not None)

    @property
    def undo(self) -> Undo:
        """The changes by commands that undo can take back."""
        return self._commands.undo

    @property
    def places(self) -> ProtectedPlaces:
        """The protected places of the workspace."""
        return self._commands.places

    def under(self, limits: Limits) -> BashTool:
        """Return a copy of the tool that also respects `limits`."""
        return BashTool(
            self._workspace,
            self._commands.under(limits),
            lend=self._lend,
            own_environment=self._own_environment,
            temporary=self.temporary,
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the parsed command. Its operands are resolved relative to its working directory.

        Raises ToolError for a command that is too long or has a syntax error, for a `cwd` that is outside the workspace
        or not a folder, and for `unconfined` without a justification.
        """
        from harness.shell.facets import read_call, syntax_complaint  # late: loads some 20 modules

        command = text(arguments, "command")
        if not command.strip():
            raise ToolError("Invalid arguments for bash: command: must not be blank.", code=ErrorCode.ARGUMENTS)
        size = len(command.encode("utf-8", "surrogatepass"))
        if size > MAX_COMMAND_BYTES:
            raise ToolError(
                f"The command is {size:,} bytes long; at most {MAX_COMMAND_BYTES:,} are taken. "
                "Put it into a script with write_file, and run that."
            )
        seconds = number(arguments, "timeout_s", min(DEFAULT_COMMAND_SECONDS, self._commands.seconds))
        cwd = self._folder(text(arguments, "cwd", "."))
        background = _background(arguments)
        unconfined = _unconfined(arguments) if flag(arguments, "unconfined") else None
        disk = self._workspace.seen_with(named_in(command, self.temporary) if unconfined is None else None)
        facets, judged_on = read_call(command, disk, cwd, own_environment=self._own_environment)
        if isinstance(facets[0], Opaque) and (complaint := syntax_complaint(command)):
            raise ToolError(f"bash: {complaint}. Nothing was run: correct the command line and send it again.")
        request = BashRequest(
            command=command,
            cwd=cwd,
            seconds=min(float(seconds), self._commands.seconds),
            background=background,
            unconfined=unconfined,
            judged_on=judged_on,
        )
        first, newline, _ = command.strip().partition("\n")
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=facets if unconfined is None else (*facets, unconfined),
            summary=visible_line(f"{first} ..." if newline else first, SUMMARY_CHARACTERS),
            preview=_preview(request, facets),
            request=request,
            described=self.kind,
            text=command,
            cwd=cwd.real,
            own_tmp=disk.needs_temporary,
            beside_servers=self._commands.jobs is not None and any(job.serves for job in self._commands.jobs.running),
            seconds=None if background else request.seconds,
            background=background,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Run the command and return its output and exit status.

        If the user was not asked, git is kept from running programs that the repository's configuration names. If a
        program was granted without the network, git's hooks run behind the walls of that grant.

        Raises ToolError if a path leads to another file than when the command was judged, or if bash cannot start.
        """
        return self.run_for(action, effects, None)

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:
        """Run the command like `run_for`, in parallel with others. It has its own shell and walls."""
        return self.run_for(action, effects, seconds, neighbour)

    def run_for(
        self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour | None = None
    ) -> ToolOutput:
        """Run the command like `run`, for at most `seconds`, the remaining time of the run.

        With `neighbour`, it runs in parallel with others.
        """
        request = action.request
        if not isinstance(request, BashRequest):
            raise TypeError("the action was not prepared by bash")
        # A link that was changed since the command was judged may lead to other files now.
        same_folder = self._workspace.resolve(request.cwd.written, Access.READ) == request.cwd
        if not same_folder or not request.judged_on.still_holds():
            raise ToolError(
                "A path in this command leads to another file than when the command was checked. The command was not run."
            )
        lends = self._lend is not None and neighbour is None and not request.background
        lending = self._lend() if self._lend is not None and lends else None
        script = _script(request.command)
        # After `--`, bash reads a command line that begins with `-` or `+` as a command, not as options.
        words = ("-c", "--", request.command) if script is None else ("--", f"/dev/fd/{script}")
        start = CommandStart(
            noun="the command",
            argv=("bash", "--noprofile", "--norc", *words),
            cwd=request.cwd.real,
            seconds=request.seconds,
            descriptors=() if script is None else (script,),
        )
        try:
            if request.background:
                return self._commands.begin(start, effects, request.background, action.summary, neighbour=neighbour)
            return self._commands.run(start, effects, seconds_left=seconds, lending=lending, neighbour=neighbour)
        finally:
            if script is not None:
                os.close(script)

    def _folder(self, cwd: str) -> PathAccess:
        path = self._workspace.resolve(cwd, Access.READ)
        display_path = one_line(
            cwd
        )  # Workspace.resolve bounds its length; cutting it could leave half a secret unmasked
        if path.place not in (Place.INSIDE, Place.ROOT):
            raise ToolError(
                f"cwd is outside the workspace: {display_path}. Leave it out to start in the workspace folder."
            )
        if path.closed:
            raise ToolError(f"Permission denied on the way to cwd: {display_path}.", code=ErrorCode.ACCESS)
        if not os.path.isdir(path.real):
            raise ToolError(f"cwd is not an existing folder: {display_path}. It is taken from the workspace folder.")
        return path


def _unconfined(arguments: Arguments) -> Unconfined:
    justification = text(arguments, "justification", "").strip()
    if not justification:
        raise ToolError("unconfined needs a justification: say what the command needs that it cannot have confined.")
    return Unconfined(justification=justification)


def _background(arguments: Arguments) -> str:
    """Return the name of a background command. Empty for a command that ends with its call. Raises ToolError."""
    name = text(arguments, "name", "")
    if not flag(arguments, "background"):
        if name:
            raise ToolError("name is for background commands: send background: true with it, or leave it out.")
        return ""
    if not re.fullmatch(JOB_NAME, name):
        raise ToolError(
            "background needs a name for the tool job: at most 32 letters, digits, dots, _ and -, such as dev."
        )
    return name


def _preview(request: BashRequest, facets: Sequence[Facet]) -> str:
    """Return the preview for the user. INVARIANT: the lines after the command come from harness, whatever the command
    contains.
    """
    lines = [visible(request.command), *_new_to_git(facets)]
    if request.unconfined is not None:
        lines.append(f"UNCONFINED, because (the model says): {visible_line(request.unconfined.justification, 1000)}")
    lines.append(f"cwd: {visible_line(request.cwd.names[-1], 4096)}")
    if request.background:
        lines.append(f"in the background as {request.background}: it keeps running until the session ends")
    else:
        lines.append(f"timeout: {request.seconds:g} s")
    return "\n".join(lines)


def _new_to_git(facets: Sequence[Facet]) -> Iterator[str]:
    """Yield a line with the untracked files that git would add, if there are any."""
    paths = [
        path for facet in facets if isinstance(facet, Command) and facet.act is Act.CHANGES for path in facet.paths
    ]
    names = tuple(dict.fromkeys(name for path in paths if path.untracked for name in path.below))
    if names:
        more = f" and {len(names) - MAX_NEW_NAMES:,} more" if len(names) > MAX_NEW_NAMES else ""
        yield f"new to git: {', '.join(visible_line(name, 200) for name in names[:MAX_NEW_NAMES])}{more}"


def _script(command: str) -> int | None:
    """Return a file descriptor with the command, for bash to read, or `None` if the command fits into an argument.

    INVARIANT: it is a sealed file in memory, so the command cannot change after it was judged. Raises OSError.
    """
    text = command.encode()
    if len(text) <= MAX_ARGUMENT_BYTES:
        return None
    script = memory_file("command")
    try:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(script, rest) :]
        seal(script)
    except BaseException:
        os.close(script)
        raise
    return script


_BACKGROUND_ARGUMENTS: Mapping[str, JsonValue] = {
    "background": {
        "type": "boolean",
        "description": "Let the command go on after the call. timeout_s does not end it then.",
    },
    "name": {
        "type": "string",
        "description": "With background: a short name for the tool job, such as dev.",
        "maxLength": 32,
    },
}


def _spec(seconds: float, *, background: bool) -> ToolSpec:
    return ToolSpec(
        name=BASH.name,
        description=f"{_DESCRIPTION}{_BACKGROUND if background else ''}",
        parameters={
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command line.",
                    "minLength": 1,
                    "maxLength": MAX_COMMAND_BYTES,
                },
                "cwd": {
                    "type": "string",
                    "description": "The folder to start in, inside the workspace; the workspace folder if left out.",
                    "minLength": 1,
                },
                "timeout_s": {
                    "type": "number",
                    "description": f"Seconds until it is killed; {min(DEFAULT_COMMAND_SECONDS, seconds):g} if left out.",
                    "minimum": min(LEAST_SECONDS, seconds),
                    "maximum": seconds,
                },
                "unconfined": {
                    "type": "boolean",
                    "description": "Ask to run without confinement, where the command fails because of it. Always asked about.",
                },
                "justification": {
                    "type": "string",
                    "description": "With unconfined: what the command needs that it cannot have confined, for the person.",
                    "maxLength": MAX_JUSTIFICATION_CHARACTERS,
                },
                **(_BACKGROUND_ARGUMENTS if background else {}),
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )
