"""A tool: its description, its preparation of a call into an Action, its body, and one run of the body (`Attempt`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, runtime_checkable

from harness.actions import Action, Effects, JsonValue
from harness.declared_types import record_problem, type_name
from harness.errors import ChangedCodeError, ToolError, WorkspaceError
from harness.limits import Limits
from harness.log.schema import extra_problem
from harness.messages import Attachment, ResultStatus, ToolCall, ToolResult
from harness.model import ToolSpec
from harness.policy.policy import Policy
from harness.policy.walls_here import Undo, WallsHere
from harness.record import Record, replace
from harness.redaction.marks import masked_value

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange, PlaceReturn, PlacesFound

Arguments = Mapping[str, JsonValue]
CompareFiles: TypeAlias = Callable[[], Mapping[str, JsonValue]]
"""Compares the files right after a call, and returns the field `changes` of its outcome record."""

TIME_OVER = "the time of the run was over"
"""Reason why a body did not begin."""
CUT_SHORT = "Interrupted by the person; the call may be done in part."
"""Result of an interrupted call for the model."""
_TOOLS_MAY_SAY = (
    ResultStatus.OK,
    ResultStatus.FAILED,
    ResultStatus.TIMEOUT,
    ResultStatus.INTERRUPTED,
    ResultStatus.CRASHED,
)
"""Statuses that a tool may return. Only the gate reports a call as denied or not run."""


class ToolOutput(Record):
    """The return value of a tool's body; an Attempt makes a ToolResult of it."""

    content: str
    status: ResultStatus = ResultStatus.OK
    exit_code: int | None = None
    output_bytes: int | None = None
    """Size of the complete output. `None`: the length of `content`."""
    truncated: bool = False
    printed: str | None = None
    """Output of the command alone, if `content` has further text; see ToolResult."""
    terminal: bool = False
    """See ToolResult."""
    changed_path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    error_code: str = ""
    extra: Mapping[str, JsonValue] = {}
    """Further facts as JSON; see ToolResult."""
    attachments: tuple[Attachment, ...] = ()
    """Attachments, whose bytes are stored already."""


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """Description for the model."""
        ...

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action of `call`, with resolved paths, parsed command and preview. Has no effects.

        `arguments` fit the schema. The action should describe the tool (`Action.described`); otherwise the gate knows
        only the tool's name. Raises ToolError for a call that cannot be prepared.
        """
        ...

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Carry out `action` within `effects`, and return the output for the model. Called by the gate only.

        Raises ToolError if the action fails, and KeyboardInterrupt if it was interrupted and all its processes have
        ended.
        """
        ...


@runtime_checkable
class LimitedTool(Protocol):
    """A tool whose calls obey limits, such as seconds of a command and characters of a result."""

    def under(self, limits: Limits) -> Tool:
        """Return the same tool under `limits`, in which every limit is set."""
        ...


@runtime_checkable
class TimedTool(Protocol):
    """A tool whose calls may take long, and can be ended before they are done."""

    def run_for(self, action: Action, effects: Effects, seconds: float | None) -> ToolOutput:
        """Do as `run`, but end the call after at most `seconds`, even if the call asks for more time.

        `None`: no time limit.
        """
        ...


class Neighbour(Record):
    """Context of a call that runs in parallel with others, on a thread without KeyboardInterrupt."""

    stops: Callable[[], int]
    """Returns the number of requests to stop since the group began. The first ends the call, the second kills it."""
    stop_all: Callable[[], None]
    """Asks the whole group to stop."""
    in_turn: Callable[[Callable[[str], None], str], None]
    """Schedules the call of a function with a text, on the gate's thread, when it is this call's turn."""
    call: int = 0
    """Number of the call in the log."""
    alike: tuple[int, ...] = ()
    """Numbers of all calls of the group to the same tool, in order. Includes this call."""


@runtime_checkable
class BesideTool(Protocol):
    """A tool whose read-only calls may run in parallel with other calls of the same reply."""

    @property
    def runs_beside(self) -> bool:
        """Whether its calls may run in parallel now."""
        ...

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:
        """Do as `run`, on any thread and for at most `seconds` (`None`: no time limit).

        INVARIANT: the method is thread-safe.
        """
        ...


@runtime_checkable
class SeenTool(Protocol):
    """A tool whose complete description is shown at its first approval prompt, and that stores that the user saw it."""

    def keep_seen(self, action: Action) -> None:
        """Store that the user saw the prompt for `action` and approved.

        If this raises ToolError, the call does not run.
        """
        ...


@runtime_checkable
class PlacedTool(Protocol):
    """A tool that works in a folder."""

    @property
    def root(self) -> str:
        """Absolute path of the folder."""
        ...

    def check_place(self) -> None:
        """Raise WorkspaceError if the folder is gone."""
        ...


class CallWalls(Protocol):
    """Walls that confine calls to their effects."""

    @property
    def confines(self) -> bool:
        """Whether this machine can prevent calls from writing and from using the network."""
        ...

    @property
    def level(self) -> str:
        """Short description of this machine's confinement: `Landlock 7, seccomp`, or `none: ...` with the reason."""
        ...

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:
        """Return the walls available to a granted program of `tool`, in the present workspace."""
        ...

    def in_words(self, effects: Effects) -> str:
        """Return the confinement of a call to `effects`, in the words of `level`."""
        ...


class NotedBefore(Protocol):
    """State of the protected places of a workspace before a call."""

    @property
    def words(self) -> str:
        """Short text: the number of places, and the parts that were not examined."""
        ...

    def compared(self, forbidden: Sequence[str] | None = ()) -> PlacesFound:
        """Return the changes since the call began. If there are any, store copies of the earlier contents.

        `forbidden` is the present value of the argument of `note`. Paths that are new in it were created since.
        """
        ...


class PlacesOfTool(Protocol):
    """The protected places of the workspace that a tool works in."""

    def note(self, also: Sequence[str], forbidden: Sequence[str] | None = ()) -> NotedBefore:
        """Return the present state of the places, and of the further files `also` (absolute paths).

        `forbidden` are the names of all files that a rule protects from writing; `None` if they could not be searched
        for.
        """
        ...

    def with_differences(self, changes: Sequence[PlaceChange]) -> tuple[PlaceChange, ...]:
        """Return changes of an earlier session with their diffs, as far as copies exist."""
        ...

    def put_back(self, changes: Sequence[PlaceChange]) -> tuple[PlaceReturn, ...]:
        """Restore places, each only if it still is in the reported state."""
        ...


@runtime_checkable
class WatchedTool(Protocol):
    """A tool whose calls may change protected places despite all walls."""

    @property
    def places(self) -> PlacesOfTool:
        """The protected places of the tool's workspace."""
        ...


@runtime_checkable
class ChangingTool(Protocol):
    """A tool whose calls may change files that no argument names, as a command does."""

    def expect_files(self, effects: Effects, policy: Policy) -> None:
        """Begin to look at the files at the approval prompt of a call, so that `note_files` is quick."""
        ...

    def note_files(self, effects: Effects, policy: Policy) -> CompareFiles | None:
        """Note the files of the workspace right before a call. `None` for a call that can write none of them.

        `policy` tells which files are denied: their content is never stored. Raises no exception.
        """
        ...

    def outdate_files(self) -> None:
        """Make the next `note_files` look again, since a call or a hook of the session may have changed files."""
        ...


@runtime_checkable
class UndoneTool(Protocol):
    """A tool whose changes undo can take back, with exceptions."""

    @property
    def undo(self) -> Undo:
        """The changes that undo can take back, as of the last look."""
        ...


@runtime_checkable
class ConfinedTool(Protocol):
    """A tool whose calls run in processes that the kernel can confine to their effects."""

    @property
    def walls(self) -> CallWalls:
        """The walls of its calls."""
        ...


class Attempt:
    """One run of a tool's body, as a `with` block. Takes the return value, and turns exceptions into an output."""

    def __init__(self, call: ToolCall, monotonic: Callable[[], float], *, since: float | None = None) -> None:
        """Start the measurement of time now, or at the earlier time `since`. `monotonic` is a clock in seconds."""
        self._call = call
        self._monotonic = monotonic
        self._started = monotonic() if since is None else since
        self._seconds = 0.0
        self._output: ToolOutput | None = None
        self.is_started = False
        """Whether the body was entered. An interrupt before that leaves the call without effect."""
        self.fault: ChangedCodeError | None = None
        """Error that ends the run after the outcome is recorded."""

    def take(self, output: object) -> None:
        """Store the body's return value. Raises TypeError if it cannot be recorded or sent to a model."""
        if not isinstance(output, ToolOutput):
            raise TypeError(f"`run` must return a ToolOutput, not {type_name(output)}")
        if problem := record_problem(output):
            raise TypeError(f"ToolOutput: {problem}")
        if output.status not in _TOOLS_MAY_SAY:
            raise TypeError(f"status: a tool must not return {output.status}")
        self._output = replace(output, extra=_checked(output.extra)) if output.extra else output

    def not_begun(self, reason: str) -> None:
        """Store an output for a body that was not entered. The log needs an outcome, since the intent is on disk."""
        content = f"Error: the call was not run: {reason} before it began."
        self._output = ToolOutput(content=content, status=ResultStatus.FAILED, output_bytes=0)

    def __enter__(self) -> Self:
        """Return the attempt itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Turn an exception into an output. GeneratorExit and other BaseExceptions pass through."""
        self._seconds = self._monotonic() - self._started
        match error:
            case None:
                pass
            case ToolError():
                code = error.code.value if error.code else ""
                self._output = ToolOutput(content=f"Error: {error}", status=ResultStatus.FAILED, error_code=code)
            case WorkspaceError():
                self._output = ToolOutput(content=f"Error: {error}; nothing was done.", status=ResultStatus.FAILED)
            case ChangedCodeError():
                self.fault = error
                self._output = ToolOutput(content=f"Error: {error}.", status=ResultStatus.FAILED)
            case KeyboardInterrupt() if not self.is_started:
                self.not_begun("the person interrupted")
            case KeyboardInterrupt():
                self._output = ToolOutput(content=CUT_SHORT, status=ResultStatus.INTERRUPTED)
            case Exception() | SystemExit():  # a bug in a tool gives an error result, and does not end the run
                content = f"Error: the tool {self._call.name} crashed: {said_by(error)}"
                self._output = ToolOutput(content=content, status=ResultStatus.CRASHED)
            case _:
                return False
        return True

    def result(self, redact: Callable[[str], str]) -> ToolResult:
        """Return the result for the model and the log, with secrets masked."""
        output = self._output
        if output is None:
            raise RuntimeError("the body of a tool neither returned nor raised")
        return ToolResult(
            call_id=self._call.id,
            status=output.status,
            content=redact(output.content),
            exit_code=output.exit_code,
            duration_ms=round(self._seconds * 1000),
            output_bytes=len(output.content) if output.output_bytes is None else output.output_bytes,
            truncated=output.truncated,
            printed=None if output.printed is None else redact(output.printed),
            changed_path=output.changed_path,
            before_sha256=output.before_sha256,
            after_sha256=output.after_sha256,
            error_code=output.error_code,
            terminal=output.terminal,
            extra={name: masked_value(value, redact) for name, value in output.extra.items()},
            attachments=output.attachments,
        )


def _checked(extra: object) -> dict[str, JsonValue]:
    """Return a copy of a tool's extra facts. Raises TypeError if the log could not record them."""
    try:
        facts: JsonValue = json.loads(json.dumps(extra, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"its extra facts are not JSON: {error}") from None
    if not isinstance(facts, dict):
        raise TypeError("its extra facts are not a JSON object")
    if problem := extra_problem(facts):
        raise TypeError(f"its extra facts: {problem}")
    return facts


def said_by(error: BaseException) -> str:
    """Return the type and the message of an exception, or only its type if the message cannot be formed."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ may be the bug
        return type(error).__name__
