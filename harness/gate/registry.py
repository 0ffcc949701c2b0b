"""Tools as the loop sees them: prepare a call into an Action, run a permitted Action; the registry holds them.

No tool body can be reached without a Permit: `ToolRegistry.run` takes nothing else, and redeems it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, assert_never, runtime_checkable

from harness.actions import Action, Effects, JsonValue
from harness.errors import ToolError, WorkspaceError
from harness.gate.gate import Permit
from harness.limits import Limits
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.record import Record
from harness.text.strict_json import is_deeper

MAX_ARGUMENT_CHARACTERS = 12_000_000
"""Of one call's raw arguments: room for a 10 MiB file in JSON, and a bound on what is parsed."""
MAX_ARGUMENT_DEPTH = 32
"""Of objects and lists in each other; the tools here need three."""

MAX_NAME_CHARACTERS = 100
"""Of a name that the model made up, where it is told: no tool and no field has a longer one."""

Arguments = Mapping[str, JsonValue]


class ToolSpec(Record):
    """What the model is told of a tool."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments, an object with `additionalProperties` false; the registry checks calls against it."""


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

        `arguments` fit the schema. Raises ToolError for what cannot be prepared.
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

    def run_for(self, action: Action, effects: Effects, seconds: float) -> ToolOutput:
        """Do as `run`, and end the call after `seconds` at the latest, however long it might have asked for."""
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


CUT_SHORT = "Interrupted by the person; what it had begun may be done in part."
"""What the model reads of a call that was interrupted."""
IN_PROCESS = "in process"
"""What is said of a tool whose body is the harness's own code, which does what the action says."""


class ToolRegistry:
    """The tools on offer, by name."""

    def __init__(self, tools: Sequence[Tool], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Raise ValueError if two tools share a name."""
        self._tools: dict[str, Tool] = {}
        self._monotonic = monotonic
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ValueError(f"two tools are named {tool.spec.name}")
            self._tools[tool.spec.name] = tool

    @property
    def names(self) -> Collection[str]:
        """The names of all tools."""
        return self._tools.keys()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told of each tool."""
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def level(self) -> str:
        """What this machine can hold commands to, in a few words."""
        for tool in self._tools.values():
            if isinstance(tool, ConfinedTool):
                return tool.level
        return IN_PROCESS

    def confinement(self, name: str, effects: Effects) -> str:
        """Return what holds a call of the tool `name` to `effects`, in a few words for the log."""
        tool = self._tools[name]
        return tool.confinement(effects) if isinstance(tool, ConfinedTool) else IN_PROCESS

    def check_place(self) -> None:
        """Raise WorkspaceError if the folder that a tool works in is gone."""
        for tool in self._tools.values():
            if isinstance(tool, PlacedTool):
                tool.check_place()

    def prepare(self, call: ToolCall) -> Action:
        """Return the action that `call` stands for. Has no effects; raises ToolError, never anything else."""
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(f"There is no tool named {_quoted(call.name)}. The tools are: {', '.join(self._tools)}.")
        try:
            arguments = parse_arguments(call.arguments, tool.spec)
            action = tool.prepare(call, MappingProxyType(arguments))
            _check_action(action, call)
        except ToolError:
            raise
        except (Exception, SystemExit) as error:
            raise ToolError(f"{call.name} could not prepare this call: {_told(error)}") from error
        return action

    def run(self, permit: Permit, *, seconds: float | None = None) -> ToolResult:
        """Run the permitted action, once. A tool that fails or crashes gives a result; KeyboardInterrupt likewise.

        `seconds` is what the run has left: a call that can be ended is ended then. Raises GateError if the permit is not
        valid.
        """
        action = permit.redeem()
        started = self._monotonic()
        tool, effects = self._tools[action.tool], permit.verdict.effects
        try:
            self.check_place()  # a question may have stood for long
            if seconds is not None and isinstance(tool, TimedTool):
                output = _checked_output(tool.run_for(action, effects, seconds))
            else:
                output = _checked_output(tool.run(action, effects))
        except ToolError as error:
            code = error.code.value if error.code else ""
            output = ToolOutput(content=f"Error: {error}", status=ResultStatus.FAILED, error_code=code)
        except WorkspaceError as error:
            output = ToolOutput(content=f"Error: {error}; nothing was done.", status=ResultStatus.FAILED)
        except KeyboardInterrupt:
            output = ToolOutput(
                content=CUT_SHORT,
                status=ResultStatus.INTERRUPTED,
            )
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a bug in a tool is an error result, not the end
            output = ToolOutput(
                content=f"Error: the tool {action.tool} crashed: {_told(error)}",
                status=ResultStatus.CRASHED,
            )
        return ToolResult(
            call_id=action.call.id,
            status=output.status,
            content=output.content,
            exit_code=output.exit_code,
            duration_ms=round((self._monotonic() - started) * 1000),
            output_bytes=len(output.content) if output.output_bytes is None else output.output_bytes,
            truncated=output.truncated,
            printed=output.printed,
            changed_path=output.changed_path,
            before_sha256=output.before_sha256,
            after_sha256=output.after_sha256,
            error_code=output.error_code,
        )


def _quoted(name: str) -> str:
    """Return a name that the model made up; of a longer one only how long it is, since half a secret would not be masked."""
    return repr(name) if len(name) <= MAX_NAME_CHARACTERS else f"<{len(name)} characters>"


def _told(error: BaseException) -> str:
    """Return what an exception of unknown make says, if it can say anything."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its own __str__ may be the bug
        return type(error).__name__


def _check_action(action: object, call: ToolCall) -> None:
    """Raise TypeError unless a tool prepared the very call that it was given, under its own name.

    INVARIANT: what is judged, logged and run is what the model proposed.
    """
    if not isinstance(action, Action):
        raise TypeError(f"it returned {type(action).__name__}, not an Action")
    if action.call != call or action.tool != call.name:
        raise TypeError("it returned an Action for another call")


_TOOLS_MAY_SAY = (
    ResultStatus.OK,
    ResultStatus.FAILED,
    ResultStatus.TIMEOUT,
    ResultStatus.INTERRUPTED,
    ResultStatus.CRASHED,
)
"""That a call was denied, or did not run, is not for its tool to say."""


def _checked_output(output: object) -> ToolOutput:
    """Return what a tool's body returned. Raises TypeError for what the loop could not record or send."""
    if not isinstance(output, ToolOutput):
        raise TypeError(f"it returned {type(output).__name__}, not a ToolOutput")
    if not isinstance(output.content, str):
        raise TypeError(f"its content is {type(output.content).__name__}, not text")
    if output.status not in _TOOLS_MAY_SAY:
        raise TypeError(f"it returned the status {output.status}")
    return output


def parse_arguments(text: str, spec: ToolSpec) -> dict[str, JsonValue]:
    """Return the arguments in `text`, strict JSON that fits the schema of `spec`.

    Raises ToolError: no key twice, no NaN, no unknown field, no wrong type, no NUL, no lone surrogate, bounded size.
    """
    if len(text) > MAX_ARGUMENT_CHARACTERS:
        raise ToolError(
            f"The arguments of {spec.name} are {len(text)} characters long; at most {MAX_ARGUMENT_CHARACTERS} are taken."
        )
    try:
        value = json.loads(text or "{}", object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The arguments of {spec.name} are not valid JSON: {error}. Send one JSON object.") from None
    if not isinstance(value, dict):
        raise ToolError(f"The arguments of {spec.name} must be a JSON object, not {type(value).__name__}.")
    if is_deeper(value, MAX_ARGUMENT_DEPTH):
        raise ToolError(f"The arguments of {spec.name} are nested more than {MAX_ARGUMENT_DEPTH} levels deep.")
    problem = _schema_problem(value, spec.parameters)
    if problem:
        raise ToolError(f"Invalid arguments for {spec.name}: {problem}")
    return value


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _no_constant(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is not JSON")


def _schema_problem(value: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> str:
    """Check an object: the subset of JSON Schema that the tools here use, strictly."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise TypeError("a tool's schema needs `properties`")
    for name in value:
        if name not in properties:
            return f"unknown field {_quoted(name)}; the fields are {', '.join(properties)}."
    missing = [str(name) for name in required if name not in value]
    if missing:
        return f"{missing[0]} is missing."
    for name, item in value.items():
        problem = _value_problem(item, properties[name])
        if problem:
            return f"{name}: {problem}"
    return ""


def _value_problem(value: JsonValue, schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        raise TypeError("a property's schema must be an object")
    problem = _type_problem(value, str(schema.get("type")))
    if problem:
        return problem
    match value:
        case str():
            return _text_problem(value, schema)
        case dict():
            return _schema_problem(value, schema)
        case list():
            return _list_problem(value, schema)
        case bool() | None:
            return ""
        case int() | float():
            return _number_problem(value, schema)
        case _:
            assert_never(value)


def _type_problem(value: JsonValue, kind: str) -> str:
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    if kind not in fits:
        raise TypeError(f"the registry cannot check values of type {kind}")
    article = "an" if kind in ("array", "object") else "a"
    return "" if fits[kind] else f"must be {article} {kind}, not {type(value).__name__}."


def _list_problem(value: Sequence[JsonValue], schema: Mapping[str, JsonValue]) -> str:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if isinstance(least, int) and len(value) < least:
        return f"must hold at least {least}."
    if isinstance(most, int) and len(value) > most:
        return f"holds {len(value)}; at most {most} are taken."
    for number, item in enumerate(value, 1):
        problem = _value_problem(item, schema.get("items"))
        if problem:
            return f"number {number}: {problem}"
    return ""


def _text_problem(value: str, schema: Mapping[str, JsonValue]) -> str:
    if "\0" in value:
        return "contains a NUL character."
    try:
        value.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate."
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if isinstance(least, int) and len(value) < least:
        return "must not be empty."
    if isinstance(most, int) and len(value) > most:
        return f"is {len(value)} characters long; at most {most} are taken."
    return ""


def _number_problem(value: float, schema: Mapping[str, JsonValue]) -> str:
    if value in (float("inf"), float("-inf")):
        return "is too large a number."  # as JSON 1e999 may stand for it
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int | float) and value < least:
        return f"must be at least {least}."
    if isinstance(most, int | float) and value > most:
        return f"must be at most {most}."
    return ""


PATH_SCHEMA: dict[str, JsonValue] = {
    "type": "string",
    "description": "Relative to the workspace folder, or absolute.",
    "minLength": 1,
}
"""Of the argument `path`, the same for every tool that has one."""


def text(arguments: Arguments, name: str, default: str | None = None) -> str:
    """Return a string argument, or `default` where it was not given.

    Raises TypeError where it is no string and there is no default: the schema was not checked.
    """
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string")
    return value


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return a numeric argument, or `default` where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number")
    return value


def whole(arguments: Arguments, name: str, default: int) -> int:
    """Return a whole number, or `default` where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return a boolean argument, false where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false")
    return value


def objects(arguments: Arguments, name: str) -> list[Arguments]:
    """Return a list of objects. Raises TypeError for anything else."""
    value = arguments.get(name)
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list")
    found: list[Arguments] = [item for item in value if isinstance(item, dict)]
    if len(found) != len(value):
        raise TypeError(f"{name} must be a list of objects")
    return found
