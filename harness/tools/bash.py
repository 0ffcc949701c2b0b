"""The tool `bash`: one command line in a fresh shell, confined to nothing yet but its process group and environment."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from typing import assert_never

from harness.actions import Access, Action, Effects, Facet, PathAccess, Place, same_places
from harness.errors import ToolError
from harness.limits import DEFAULT_COMMAND_SECONDS, Limits, strictest
from harness.messages import ResultStatus, ToolCall
from harness.record import Record
from harness.shell.facets import read_call
from harness.tool import Arguments, ToolOutput, ToolSpec
from harness.tools.arguments import number, text
from harness.tools.environment import child_environment, unasked_variables
from harness.tools.output import Capture, result_characters
from harness.tools.processes import Ended, Ending, Rest, run_group
from harness.visible import visible, visible_line
from harness.workspace import Workspace

MAX_COMMAND_BYTES = 120_000
"""One argument of a program holds 131,071 bytes on Linux (execve(2), MAX_ARG_STRLEN)."""
LEAST_SECONDS = 0.1

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_BACKGROUND = re.compile(r"(?<![&><|\\])&(?![&>])")

_DESCRIPTION = (
    "Run a command line with bash. Every call is a fresh shell: no variable, function or folder is kept, standard input "
    "is closed, and what runs in the background ends with the call. The command is judged before it runs: commands that only "
    "read are run at once; what cannot be understood from its text (eval, functions, names that expand) is asked about. "
    "Returns stdout and stderr as one text and the exit status in the last line."
)


class BashRequest(Record):
    """What is run."""

    command: str
    cwd: PathAccess
    """The folder that it starts in."""
    seconds: float


class BashTool:
    """Runs command lines."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Take the environment that commands get their few variables from; that of this process where it is None."""
        self._workspace = workspace
        self._limits = limits
        self._seconds = limits.filled().command_seconds or DEFAULT_COMMAND_SECONDS
        self._characters = result_characters(limits)
        self._environment = child_environment(os.environ if environment is None else environment)
        self.spec = _spec(self._seconds)

    def under(self, limits: Limits) -> BashTool:
        """Return the same tool under `limits` as well."""
        return BashTool(self._workspace, limits=strictest((self._limits, limits)), environment=self._environment)

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action: the command read, its operands resolved from the folder that it starts in.

        Raises ToolError for a command that is too long, and a `cwd` that is outside the workspace or not a folder.
        """
        command = text(arguments, "command")
        size = len(command.encode("utf-8", "surrogatepass"))
        if size > MAX_COMMAND_BYTES:
            raise ToolError(
                f"The command is {size:,} bytes long; at most {MAX_COMMAND_BYTES:,} are taken. "
                "Put it into a script with write_file, and run that."
            )
        seconds = number(arguments, "timeout_s", min(DEFAULT_COMMAND_SECONDS, self._seconds))
        cwd = self._folder(text(arguments, "cwd", "."))
        request = BashRequest(command=command, cwd=cwd, seconds=min(float(seconds), self._seconds))
        first, newline, _ = command.strip().partition("\n")
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=self._facets(command, cwd),
            summary=visible_line(f"{first} ..." if newline else first),
            # INVARIANT: the last two lines are the harness's own, whatever the command contains.
            preview=f"{visible(command)}\ncwd: {visible_line(cwd.names[-1], 4096)}\ntimeout: {request.seconds:g} s",
            request=request,
            text=command,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Run the command and return what it printed and how it ended.

        Where nobody was asked, git is kept from running what the repository's configuration names.

        Raises ToolError if what it names lies elsewhere than when it was judged, and if bash cannot be started.
        """
        request = action.request
        if not isinstance(request, BashRequest):
            raise TypeError("the action was not prepared by bash")
        self._check_unmoved(action, request)
        capture = Capture(self._characters)
        try:
            ended = run_group(
                # `--`: a command line that begins with `-` or `+` is a command, not an option of bash.
                ("bash", "--noprofile", "--norc", "-c", "--", request.command),
                executable=_bash(self._environment["PATH"]),
                cwd=request.cwd.real,
                environment=self._variables(effects),
                seconds=request.seconds,
                output=capture,
            )
        except OSError as error:
            raise ToolError(f"Cannot start bash: {error.strerror or error}.") from None
        return _output(request, capture, ended)

    def _variables(self, effects: Effects) -> Mapping[str, str]:
        if not effects.unasked:
            return self._environment
        return self._environment | unasked_variables(effects, self._environment["PATH"], self._workspace.root)

    def _folder(self, cwd: str) -> PathAccess:
        path = self._workspace.resolve(cwd, Access.READ)
        shown = visible_line(cwd)
        if path.place not in (Place.INSIDE, Place.ROOT):
            raise ToolError(f"cwd is outside the workspace: {shown}. Leave it out to start in the workspace folder.")
        if not os.path.isdir(path.real):
            raise ToolError(f"cwd is not an existing folder: {shown}. It is taken from the workspace folder.")
        return path

    def _facets(self, command: str, cwd: PathAccess) -> tuple[Facet, ...]:
        """Return what is judged: the commands and redirections, and the folder that they start in."""
        return read_call(command, self._workspace, cwd)

    def _check_unmoved(self, action: Action, request: BashRequest) -> None:
        """Refuse to run if a link was changed since the command was judged, so that it means other files now."""
        same_folder = self._workspace.resolve(request.cwd.written, Access.READ) == request.cwd
        if not same_folder or not same_places(self._facets(request.command, request.cwd), action.facets):
            raise ToolError("A path in this command leads elsewhere than when it was judged; nothing was run.")


def _bash(path: str) -> str:
    """Return where bash is. Raises ToolError if it is nowhere."""
    for folder in ("/bin", "/usr/bin", *path.split(":")):
        if os.access(f"{folder}/bash", os.X_OK):
            return f"{folder}/bash"
    raise ToolError("Cannot start bash: it is not installed.")


def _output(request: BashRequest, capture: Capture, ended: Ended) -> ToolOutput:
    printed = capture.readable()
    body = printed.text or "(no output)"
    lines = [body.removesuffix("\n"), *_notes(request, ended), _last_line(request, ended)]
    return ToolOutput(
        content="\n".join(lines),
        status=_result_status(ended),
        exit_code=_exit_code(ended),
        output_bytes=capture.total,
        truncated=printed.truncated,
    )


def _notes(request: BashRequest, ended: Ended) -> list[str]:
    """Say what became of processes that the command left behind, where it may have left any."""
    match ended.rest:
        case Rest.ENDED:
            return ["[processes that the command left in the background were ended with the call]"]
        case Rest.ESCAPED:
            return ["[a process that made a session of its own still holds the output; it may still be running]"]
        case Rest.NOTHING:
            left = _BACKGROUND.search(_QUOTED.sub("", request.command))
            return ["[what still ran in the background was ended with the call]"] if left else []
        case _:
            assert_never(ended.rest)


def _last_line(request: BashRequest, ended: Ended) -> str:
    match ended.ending:
        case Ending.EXITED:
            return f"[exit code {ended.status}, {ended.seconds:.1f} s]"
        case Ending.SIGNALLED:
            return f"[killed by signal {ended.status}{_signal_name(ended.status)}, {ended.seconds:.1f} s]"
        case Ending.TIMED_OUT:
            return f"[timed out after {request.seconds:g} s; the process group was killed]"
        case Ending.INTERRUPTED:
            return f"[interrupted by the person after {ended.seconds:.0f} s]"
        case Ending.UNKNOWN:
            return f"[ended with an unknown status, {ended.seconds:.1f} s]"
        case _:
            assert_never(ended.ending)


def _signal_name(number: int | None) -> str:
    try:
        return f" ({signal.Signals(number or 0).name})"
    except ValueError:
        return ""  # a real-time signal


def _result_status(ended: Ended) -> ResultStatus:
    match ended.ending:
        case Ending.EXITED:
            return ResultStatus.OK if ended.status == 0 else ResultStatus.FAILED
        case Ending.SIGNALLED | Ending.UNKNOWN:
            return ResultStatus.FAILED
        case Ending.TIMED_OUT:
            return ResultStatus.TIMEOUT
        case Ending.INTERRUPTED:
            return ResultStatus.INTERRUPTED
        case _:
            assert_never(ended.ending)


def _exit_code(ended: Ended) -> int | None:
    """Return the exit code; of a killed shell 128 and the signal's number, as a shell would say it of its own child."""
    if ended.ending is Ending.SIGNALLED and ended.status is not None:
        return 128 + ended.status
    return ended.status if ended.ending is Ending.EXITED else None


def _spec(seconds: float) -> ToolSpec:
    return ToolSpec(
        name="bash",
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
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    )
