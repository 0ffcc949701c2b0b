"""A tool: what it says of itself, how it prepares a call into an Action, and the body that runs a permitted one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from harness.actions import Action, Effects, JsonValue
from harness.limits import Limits
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.record import Record

Arguments = Mapping[str, JsonValue]


class ToolOutput(Record):
    """What a tool's body returns; the registry makes a ToolResult of it."""

    content: str
    status: ResultStatus = ResultStatus.OK
    exit_code: int | None = None
    output_bytes: int | None = None
    """None: the length of `content`."""
    truncated: bool = False
    printed: str | None = None
    """What a command printed, where `content` holds more than that; see ToolResult."""
    changed_path: str | None = None
    before_sha256: str | None = None
    after_sha256: str | None = None
    error_code: str = ""


class Tool(Protocol):
    """One tool."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action that `call` stands for: paths resolved, command read, preview made. Has no effects.

        `arguments` fit the schema. The action says what the tool is (`Action.described`); of a tool that does not, nothing
        is known but its name. Raises ToolError for what cannot be prepared.
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


@runtime_checkable
class PlacedTool(Protocol):
    """A tool that works in a folder."""

    def check_place(self) -> None:
        """Raise WorkspaceError if the folder is gone."""
        ...


@runtime_checkable
class ConfinedTool(Protocol):
    """A tool whose calls run in processes that the kernel can hold to their effects."""

    @property
    def confines(self) -> bool:
        """Whether this machine can keep its calls from writing and from the network."""
        ...

    @property
    def level(self) -> str:
        """What this machine can hold its calls to, in a few words: `Landlock 7, seccomp`, or `none: ...` and why."""
        ...

    def confinement(self, effects: Effects) -> str:
        """Return in the same words what will hold a call to `effects`."""
        ...


def said_by(error: BaseException) -> str:
    """Return what an exception of unknown make says, if it can say anything."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ may be the bug
        return type(error).__name__
