"""The tool `bash`: one command line in a fresh shell, confined to what its verdict permits."""

from __future__ import annotations

import fcntl
import math
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, assert_never

from harness.actions import (
    SUMMARY_CHARACTERS,
    Access,
    Action,
    Effects,
    PathAccess,
    Place,
    Unconfined,
)
from harness.errors import ErrorCode, ToolError
from harness.files.workspace import Workspace
from harness.gate.arguments import flag, number, text
from harness.gate.tool import Arguments, ToolOutput
from harness.limits import DEFAULT_COMMAND_SECONDS, Limits, strictest
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.process.environment import at_a_terminal, child_environment, unasked_variables, walled_variables
from harness.process.temporary import TemporaryFolder
from harness.record import Record, replace
from harness.shell.disk import Witness
from harness.shell.facets import read_call
from harness.text.visible import one_line, visible, visible_line
from harness.tool_kinds import BASH
from harness.tools.command_walls import CommandWalls, HeldTo, only_looks, wall_notes

if TYPE_CHECKING:
    from harness.files.before_images import BeforeImages
    from harness.files.protected_places import ProtectedPlaces
    from harness.process.capture import Capture, OutputFolder
    from harness.process.command import Ended, Pace
    from harness.process.lent_terminal import LentTerminal

MAX_COMMAND_BYTES = 1_000_000
MAX_ARGUMENT_BYTES = 120_000
"""What is given to bash as an argument; one holds 131,071 bytes on Linux (execve(2), MAX_ARG_STRLEN)."""
LEAST_SECONDS = 0.1
MAX_JUSTIFICATION_CHARACTERS = 500
NOT_KEPT = "[it had the person's terminal: what it showed there was not kept]"
MAX_NAMES = 10
"""Of processes that are named in a note."""

_DESCRIPTION = (
    "Run a command line with bash. Every call is a fresh shell: no variable, function or folder is kept, standard input "
    "is closed, and what runs in the background ends with the call. The command is judged before it runs: commands that only "
    "read are run at once; what cannot be understood from its text (eval, functions, names that expand) is asked about. "
    "A command is confined to what it may do: one that only reads can write nothing and has no network. "
    "Returns stdout and stderr as one text and the exit status in the last line."
)


class BashRequest(Record):
    """What is run."""

    command: str
    cwd: PathAccess
    """The folder that it starts in."""
    seconds: float
    unconfined: Unconfined | None = None
    """The wish to run without confinement."""
    judged_on: Witness
    """What the disk said as it was judged."""
    cut_by: str = ""
    """Why it has less time than it asked for, where it has."""


class BashTool:
    """Runs command lines."""

    kind = BASH

    def __init__(  # noqa: PLR0913 - what a tool is made of, each named where it is passed
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        environment: Mapping[str, str] | None = None,
        walls: CommandWalls | None = None,
        temporary: TemporaryFolder | None = None,
        images: BeforeImages | None = None,
        outputs: OutputFolder | None = None,
        on_output: Callable[[str], None] | None = None,
        lend: Callable[[], AbstractContextManager[LentTerminal] | None] | None = None,
        interrupts: Callable[[], int] | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Take what commands are given, and who is told.

        Their few variables are taken from `environment`, that of this process where it is None. `walls` puts up the walls
        around them; None: those of this machine. `temporary` is where TMPDIR points for commands that may write; None: a
        folder of this tool's own, which goes with it. `images` keeps what stood at protected
        places; None: it is not kept. What is cut from a result stays whole in `outputs`.
        `on_output` is told what is printed, ten times a second; `lend` lends the person's terminal to a command of theirs
        that asks for keys, and gives None for every other; `interrupts` counts a person's wishes to stop: the second
        one during a call kills at once. `pace` is how long each step of a command's end may take.
        """
        self._workspace = workspace
        self.check_place = workspace.check
        self._limits = limits
        self._seconds = limits.filled().command_seconds or DEFAULT_COMMAND_SECONDS
        self._environment = child_environment(os.environ if environment is None else environment)
        self.walls = walls or CommandWalls(workspace)
        self._temporary = temporary or TemporaryFolder()
        self._images = images
        self._outputs = outputs
        self._on_output = on_output
        self._lend = lend
        self._interrupts = interrupts
        self._pace = pace
        self.spec = _spec(self._seconds)

    @cached_property
    def places(self) -> ProtectedPlaces:
        """The protected places of the workspace; most sessions need no look at them."""
        from harness.files.protected_places import ProtectedPlaces

        return ProtectedPlaces(self._workspace.root, self._images)

    def under(self, limits: Limits) -> BashTool:
        """Return the same tool under `limits` as well."""
        return BashTool(
            self._workspace,
            limits=strictest((self._limits, limits)),
            environment=self._environment,
            walls=self.walls,
            temporary=self._temporary,
            images=self._images,
            outputs=self._outputs,
            on_output=self._on_output,
            lend=self._lend,
            interrupts=self._interrupts,
            pace=self._pace,
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action: the command read, its operands resolved from the folder that it starts in.

        Raises ToolError for a command that is too long, a `cwd` that is outside the workspace or not a folder, and a wish
        to run unconfined without a reason.
        """
        command = text(arguments, "command")
        if not command.strip():
            raise ToolError("Invalid arguments for bash: command: must not be blank.", code=ErrorCode.ARGUMENTS)
        size = len(command.encode("utf-8", "surrogatepass"))
        if size > MAX_COMMAND_BYTES:
            raise ToolError(
                f"The command is {size:,} bytes long; at most {MAX_COMMAND_BYTES:,} are taken. "
                "Put it into a script with write_file, and run that."
            )
        seconds = number(arguments, "timeout_s", min(DEFAULT_COMMAND_SECONDS, self._seconds))
        cwd = self._folder(text(arguments, "cwd", "."))
        unconfined = _unconfined(arguments) if flag(arguments, "unconfined") else None
        facets, judged_on = read_call(command, self._workspace, cwd)
        request = BashRequest(
            command=command,
            cwd=cwd,
            seconds=min(float(seconds), self._seconds),
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
            preview=_preview(request),
            request=request,
            described=self.kind,
            text=command,
            cwd=cwd.real,
            seconds=request.seconds,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Run the command and return what it printed and how it ended.

        Where nobody was asked, git is kept from running what the repository's configuration names; its hooks run behind the
        walls of a granted program, where that has no network.

        Raises ToolError if what it names lies elsewhere than when it was judged, and if bash cannot be started.
        """
        return self.run_for(action, effects, None)

    def run_for(self, action: Action, effects: Effects, seconds: float | None) -> ToolOutput:
        """Do as `run`, for `seconds` at most: the time that the run has left."""
        # Only now: a call that is refused, or that another agent carries out, needs none of it.
        from harness.process.capture import Capture, result_characters
        from harness.process.start import NotConfinedError

        request = action.request
        if not isinstance(request, BashRequest):
            raise TypeError("the action was not prepared by bash")
        if seconds is not None and seconds < request.seconds:
            request = replace(request, seconds=round(seconds, 1), cut_by=", when the time of the run was over")
        # A link may have been changed since the command was judged, so that it means other files now.
        same_folder = self._workspace.resolve(request.cwd.written, Access.READ) == request.cwd
        if not same_folder or not request.judged_on.still_holds():
            raise ToolError("A path in this command leads elsewhere than when it was judged; nothing was run.")
        lending = self._lend() if self._lend is not None else None
        spill = self._outputs.spill() if self._outputs is not None and lending is None else None
        capture = Capture(result_characters(self._limits), spill)
        try:
            with lending or nullcontext() as lent:
                ended, walls = self._run(request, effects, capture, lent)
            return _output(request, capture, ended, walls, lent=lent is not None)
        except NotConfinedError as error:
            raise ToolError(f"Cannot confine the command: {error.strerror}; nothing was run.") from None
        except OSError as error:
            raise ToolError(f"Cannot start bash: {error.strerror or error}.") from None
        finally:
            if spill is not None:
                spill.close()

    def _run(
        self, request: BashRequest, effects: Effects, capture: Capture, lent: LentTerminal | None
    ) -> tuple[Ended, HeldTo | None]:
        """Run it to its end, within walls if there are to be any; return its end, and what held it. Raises OSError.

        At a terminal that was lent to it a command takes as long as the person does.
        """
        from harness.process.capture import Live
        from harness.process.command import STANDARD_PACE, run_group
        from harness.process.start import Launch, find_bash

        bash = find_bash(self._environment["PATH"].split(":"))
        if not bash:
            raise ToolError("Cannot start bash: it is not installed.")
        launch = Launch(
            # `--`: a command line that begins with `-` or `+` is a command, not an option of bash.
            argv=("bash", "--noprofile", "--norc", "-c", "--", request.command),
            executable=bash,
            cwd=request.cwd.real,
            environment=self._variables(effects, lent),
            terminal=lent,
        )
        script = _script(request.command)
        if script is not None:
            argv = ("bash", "--noprofile", "--norc", "--", f"/dev/fd/{script}")
            launch = replace(launch, argv=argv, descriptors=(script,))
        confinement = None
        try:
            hold = (
                () if effects.sockets else self.places.held
            )  # noted before a granted program, whose sockets are closed
            confinement = self.walls.confinement(effects, self._temporary.path, hold, terminal=lent is not None)
            if confinement is not None:
                launch = replace(
                    launch,
                    confine=confinement.enter,
                    prefix=confinement.prefix,
                    descriptors=(*launch.descriptors, *confinement.descriptors),
                )
            ended = run_group(
                launch,
                seconds=request.seconds if lent is None else math.inf,
                output=capture,
                live=lent or (Live(self._on_output) if self._on_output is not None else None),
                interrupts=self._interrupts,
                pace=self._pace or STANDARD_PACE,
            )
            return ended, None if confinement is None else HeldTo(walls=confinement.walls, gaps=confinement.gaps)
        finally:
            if confinement is not None:
                confinement.close()
            if script is not None:
                os.close(script)

    def _variables(self, effects: Effects, lent: LentTerminal | None) -> Mapping[str, str]:
        """Return the environment; a command that may write nothing has nowhere to put temporary files."""
        variables: Mapping[str, str] = self._environment
        if lent is not None:
            variables = at_a_terminal(variables, lent.environment)
        if not only_looks(effects):
            variables = {**variables, "TMPDIR": self._temporary.path()}
        if not effects.sockets and not effects.network:
            variables = {**variables, **walled_variables(self._temporary.path())}
        if not effects.unasked:
            return variables
        return {**variables, **unasked_variables(effects, self._environment["PATH"], self._workspace.root)}

    def _folder(self, cwd: str) -> PathAccess:
        path = self._workspace.resolve(cwd, Access.READ)
        shown = one_line(cwd)  # bounded by Workspace.resolve, and uncut: half a secret would not be masked
        if path.place not in (Place.INSIDE, Place.ROOT):
            raise ToolError(f"cwd is outside the workspace: {shown}. Leave it out to start in the workspace folder.")
        if path.closed:
            raise ToolError(f"Permission denied on the way to cwd: {shown}.", code=ErrorCode.ACCESS)
        if not os.path.isdir(path.real):
            raise ToolError(f"cwd is not an existing folder: {shown}. It is taken from the workspace folder.")
        return path


def _unconfined(arguments: Arguments) -> Unconfined:
    justification = text(arguments, "justification", "").strip()
    if not justification:
        raise ToolError("unconfined needs a justification: say what the command needs that it cannot have confined.")
    return Unconfined(justification=justification)


def _preview(request: BashRequest) -> str:
    """Return what a person sees. INVARIANT: the lines behind the command are the harness's own, whatever it contains."""
    lines = [visible(request.command)]
    if request.unconfined is not None:
        lines.append(f"UNCONFINED, because (the model says): {visible_line(request.unconfined.justification, 1000)}")
    lines += [f"cwd: {visible_line(request.cwd.names[-1], 4096)}", f"timeout: {request.seconds:g} s"]
    return "\n".join(lines)


def _script(command: str) -> int | None:
    """Return a descriptor from which bash reads a command that is too long for an argument; None for any other.

    INVARIANT: a file in memory, sealed, so that what runs is what was judged. Raises OSError.
    """
    text = command.encode()
    if len(text) <= MAX_ARGUMENT_BYTES:
        return None
    script = os.memfd_create("command", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(script, rest) :]
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(script, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(script)
        raise
    return script


def _output(request: BashRequest, capture: Capture, ended: Ended, held: HeldTo | None, *, lent: bool) -> ToolOutput:
    """Return the result; `held` is what the kernel held the command to; `lent`: it had the person's terminal, and what it
    showed there is for them alone."""
    from harness.process.capture import ReadableOutput

    printed = ReadableOutput(text=NOT_KEPT, truncated=True) if lent else capture.readable()
    body = printed.text or "(no output)"
    status, exit_code, last_line = _end_of(request, ended)
    notes = _notes(ended)
    if held is not None:
        notes += wall_notes(printed.text, held, failed=status is not ResultStatus.OK)
    return ToolOutput(
        content="\n".join((body.removesuffix("\n"), *notes, last_line)),
        status=status,
        exit_code=exit_code,
        output_bytes=capture.total,
        truncated=printed.truncated,
        printed=printed.text,
        terminal=lent,
    )


def _notes(ended: Ended) -> list[str]:
    """Say what became of processes that the command left, where it left any."""
    from harness.process.command import CommandEnding

    notes = []
    if ended.terminated and ended.ending in (CommandEnding.EXITED, CommandEnding.SIGNALLED, CommandEnding.UNKNOWN):
        one = len(ended.terminated) == 1
        what = "1 background process was" if one else f"{len(ended.terminated)} background processes were"
        have = "has" if one else "have"
        notes.append(f"[{what} still running and {have} been terminated: {_names(ended.terminated)}]")
    if ended.surviving:
        one = len(ended.surviving) == 1
        what = "1 process" if one else f"{len(ended.surviving)} processes"
        notes.append(f"[{what} could not be killed, and may still be running: {_names(ended.surviving)}]")
    return notes


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(visible_line(name) for name in names[:MAX_NAMES])
    return shown if len(names) <= MAX_NAMES else f"{shown} and {len(names) - MAX_NAMES} more"


def _end_of(request: BashRequest, ended: Ended) -> tuple[ResultStatus, int | None, str]:
    """Return how a command ended: as a status, as an exit code, and as the last line of its result.

    The exit code of a killed shell is 128 and the signal's number, as a shell would say it of its own child.
    """
    from harness.process.command import CommandEnding

    seconds = f"{ended.seconds:.1f} s"
    match ended.ending:
        case CommandEnding.EXITED:
            status = ResultStatus.OK if ended.status == 0 else ResultStatus.FAILED
            return status, ended.status, f"[exit code {ended.status}, {seconds}]"
        case CommandEnding.SIGNALLED:
            code = None if ended.status is None else 128 + ended.status
            return (
                ResultStatus.FAILED,
                code,
                f"[killed by signal {ended.status}{_signal_name(ended.status)}, {seconds}]",
            )
        case CommandEnding.TIMED_OUT:
            why = f"[timed out after {request.seconds:g} s{request.cut_by}; process tree killed]"
            return ResultStatus.TIMEOUT, None, why
        case CommandEnding.INTERRUPTED:
            return ResultStatus.INTERRUPTED, None, f"[interrupted by user after {ended.seconds:.0f} s]"
        case CommandEnding.UNKNOWN:
            return ResultStatus.FAILED, None, f"[ended with an unknown status, {seconds}]"
        case _:
            assert_never(ended.ending)


def _signal_name(number: int | None) -> str:
    try:
        return f" ({signal.Signals(number or 0).name})"
    except ValueError:
        return ""  # a real-time signal


def _spec(seconds: float) -> ToolSpec:
    return ToolSpec(
        name=BASH.name,
        description=_DESCRIPTION,
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
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )
