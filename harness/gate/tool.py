"""A tool: what it says of itself, how it prepares a call into an Action, its body, and one run of that (`Attempt`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from harness.actions import Action, Effects, JsonValue
from harness.errors import ChangedCodeError, ToolError, WorkspaceError
from harness.limits import Limits
from harness.log.schema import extra_problem
from harness.messages import Attachment, ResultStatus, ToolCall, ToolResult
from harness.model import ToolSpec
from harness.policy.policy import Policy
from harness.record import Record, replace

if TYPE_CHECKING:
    from harness.place_changes import PlaceChange, PlaceReturn, PlacesFound
    from harness.policy.grant_offers import WallsHere

Arguments = Mapping[str, JsonValue]

TIME_OVER = "the time of the run was over"
"""Reason why a body did not begin."""
CUT_SHORT = "Interrupted by the person; the call may be done in part."
"""Text for the model about an interrupted call."""
_TOOLS_MAY_SAY = (
    ResultStatus.OK,
    ResultStatus.FAILED,
    ResultStatus.TIMEOUT,
    ResultStatus.INTERRUPTED,
    ResultStatus.CRASHED,
)
"""That a call was denied, or did not run, is not for its tool to say."""


class ToolOutput(Record):
    """The return value of a tool's body; an Attempt makes a ToolResult of it."""

    content: str
    status: ResultStatus = ResultStatus.OK
    exit_code: int | None = None
    output_bytes: int | None = None
    """Size of the whole output (default: the length of `content`)."""
    truncated: bool = False
    printed: str | None = None
    """A command's own output, if `content` holds more than that; see ToolResult."""
    terminal: bool = False
    """See ToolResult."""
    changed_path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    error_code: str = ""
    extra: Mapping[str, JsonValue] = {}
    """Further facts as JSON; see ToolResult."""
    attachments: tuple[Attachment, ...] = ()
    """Their bytes are stored already."""


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """Description for the model."""
        ...

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action of `call`: paths resolved, command parsed, preview made. Has no effects.

        `arguments` fit the schema. The action describes the tool (`Action.described`); without that, the gate knows only
        the tool's name. Raises ToolError for a call that cannot be prepared.
        """
        ...

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        """Do it within `effects`, and return what the model shall read. Called by the registry only.

        Raises ToolError for what cannot be done, KeyboardInterrupt when it was interrupted and everything it started
        is gone.
        """
        ...


@runtime_checkable
class LimitedTool(Protocol):
    """A tool whose calls are bounded by limits: seconds of a command, characters of a result."""

    def under(self, limits: Limits) -> Tool:
        """Return the same tool under `limits`, which are filled."""
        ...


@runtime_checkable
class TimedTool(Protocol):
    """A tool whose calls may take long, and can be ended before they are done."""

    def run_for(self, action: Action, effects: Effects, seconds: float | None) -> ToolOutput:
        """Do as `run`, and end the call after `seconds` at the latest, however long it might have asked for.

        None: the run has no limit of time.
        """
        ...


class Neighbour(Record):
    """Surroundings of a call that runs beside others, on a thread other than the gate's, without KeyboardInterrupt."""

    stops: Callable[[], int]
    """Returns the number of requests to stop since its group began. The first ends it, the second ends it at once."""
    stop_all: Callable[[], None]
    """Asks the whole group to stop."""
    in_turn: Callable[[Callable[[str], None], str], None]
    """Calls the first with the second, a text, on the gate's thread when the turn of this call has come."""
    call: int = 0
    """Number of the call in the log."""
    alike: tuple[int, ...] = ()
    """The numbers of the calls of its group that are of the same tool, its own included, in their order."""


@runtime_checkable
class BesideTool(Protocol):
    """A tool whose calls, as far as they only read, may run beside others of one reply."""

    @property
    def runs_beside(self) -> bool:
        """Whether they may now."""
        ...

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:
        """Do the same as `run` on any thread, beside others, for `seconds` at most (`None`: no time limit).

        INVARIANT: state in this process is guarded against other threads.
        """
        ...


@runtime_checkable
class SeenTool(Protocol):
    """A tool that is shown whole at its first question, and keeps that a person has seen it."""

    def keep_seen(self, action: Action) -> None:
        """Keep that a person saw what a question about `action` shows, and said yes. Raises ToolError: then it does not run."""
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
    """Walls for calls, by their effects."""

    @property
    def confines(self) -> bool:
        """Whether this machine can keep calls from writing and from the network."""
        ...

    @property
    def level(self) -> str:
        """This machine's confinement of calls, in a few words: `Landlock 7, seccomp`, or `none: ...` and the reason."""
        ...

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:
        """Return the possible walls of a granted program of `tool`, in the present workspace."""
        ...

    def in_words(self, effects: Effects) -> str:
        """Return in the same words what will hold a call to `effects`."""
        ...


class NotedBefore(Protocol):
    """The protected places of a workspace as they were before a call."""

    @property
    def words(self) -> str:
        """Number of places, and the parts that were not examined."""
        ...

    def compared(self, forbidden: Sequence[str] | None = ()) -> PlacesFound:
        """Return the changes since; copies of the earlier contents are stored then.

        `forbidden` is the present value of the argument of `note`: a new path in it was created since.
        """
        ...


class PlacesOfTool(Protocol):
    """The protected places of the workspace that a tool works in."""

    def note(self, also: Sequence[str], forbidden: Sequence[str] | None = ()) -> NotedBefore:
        """Look at them, and at further files (absolute paths) that lie there.

        `forbidden` are the names of all files that a rule forbids to write; None where they cannot be looked for.
        """
        ...

    def with_differences(self, changes: Sequence[PlaceChange]) -> tuple[PlaceChange, ...]:
        """Return changes of an earlier session with their differences, as far as copies exist."""
        ...

    def put_back(self, changes: Sequence[PlaceChange]) -> tuple[PlaceReturn, ...]:
        """Restore places, each only if it still is in the reported state."""
        ...


@runtime_checkable
class WatchedTool(Protocol):
    """A tool whose calls may change protected places, past all walls."""

    @property
    def places(self) -> PlacesOfTool:
        """These places."""
        ...


@runtime_checkable
class ConfinedTool(Protocol):
    """A tool whose calls run in processes that the kernel can hold to their effects."""

    @property
    def walls(self) -> CallWalls:
        """The walls of its calls."""
        ...


class Attempt:
    """One run of a tool's body, as a `with` block: it takes what the body returns, and turns what it raises into an output."""

    def __init__(self, call: ToolCall, monotonic: Callable[[], float], *, since: float | None = None) -> None:
        """Begin to measure, or take that it began at `since`; `monotonic` is a clock in seconds."""
        self._call = call
        self._monotonic = monotonic
        self._started = monotonic() if since is None else since
        self._seconds = 0.0
        self._output: ToolOutput | None = None
        self.is_started = False
        """Whether the body was entered; an interrupt before that has done nothing."""
        self.fault: ChangedCodeError | None = None
        """An error that ends the run once the outcome is recorded."""

    def take(self, output: object) -> None:
        """Use the body's return value. Raises TypeError if it could not be recorded or sent."""
        if not isinstance(output, ToolOutput):
            raise TypeError(f"expected a ToolOutput, got {type(output).__name__}")
        if not isinstance(output.content, str):
            raise TypeError(f"content: expected text, got {type(output.content).__name__}")
        attachments: object = output.attachments
        if not isinstance(attachments, tuple) or not all(
            isinstance(attachment, Attachment) for attachment in attachments
        ):
            raise TypeError("attachments: expected a tuple of Attachment")
        if output.status not in _TOOLS_MAY_SAY:
            raise TypeError(f"status: a tool must not return {output.status}")
        self._output = replace(output, extra=_checked(output.extra)) if output.extra else output

    def not_begun(self, reason: str) -> None:
        """Take that the body was not entered. The intent is on disk, so that the log wants an end."""
        content = f"Error: the call was not run: {reason} before it began."
        self._output = ToolOutput(content=content, status=ResultStatus.FAILED, output_bytes=0)

    def __enter__(self) -> Self:
        """Nothing is done yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Note what was raised as an output. GeneratorExit and their like pass through."""
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
            case Exception() | SystemExit():  # a bug in a tool is an error result, not the end
                content = f"Error: the tool {self._call.name} crashed: {said_by(error)}"
                self._output = ToolOutput(content=content, status=ResultStatus.CRASHED)
            case _:
                return False
        return True

    def result(self, redact: Callable[[str], str]) -> ToolResult:
        """Return the result as the model and the log may have it: redacted."""
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
            extra={name: _redacted(value, redact) for name, value in output.extra.items()},
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


def _redacted(value: JsonValue, redact: Callable[[str], str]) -> JsonValue:
    match value:
        case str():
            return redact(value)
        case list():
            return [_redacted(item, redact) for item in value]
        case dict():
            return {name: _redacted(item, redact) for name, item in value.items()}
        case _:
            return value


def said_by(error: BaseException) -> str:
    """Return the message of any exception, if it has one."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ may be the bug
        return type(error).__name__
