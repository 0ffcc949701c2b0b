"""The registry: what arguments it takes, what it does with tools that misbehave, and that only a permit runs anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_scene import begun, unsynced
from rows import all_rows
from sizes import examples

from harness.actions import Action, Effects, JsonValue
from harness.errors import ToolError
from harness.gate.approval import deny_all
from harness.gate.arguments import MAX_ARGUMENT_CHARACTERS, parse_arguments
from harness.gate.gate import Gate
from harness.gate.registry import ToolRegistry
from harness.gate.tool import ToolOutput
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.model import ToolSpec
from harness.policy.loader import parse_policy
from harness.record import replace

SPEC = ToolSpec(
    name="probe",
    description="For tests.",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": 20_000_000},
            "short": {"type": "string", "maxLength": 5},
            "flag": {"type": "boolean"},
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "size": {"type": "number", "minimum": 0},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "names": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "parts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"old": {"type": "string"}, "times": {"type": "integer"}},
                    "required": ["old"],
                },
            },
            "about": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
)


class Probe:
    """A tool that does what a test says, and remembers what it ran."""

    def __init__(
        self,
        body: Callable[[Action], object] = lambda action: ToolOutput(content="done"),
        *,
        name: str = "probe",
        prepare: Callable[[Action], object] = lambda action: action,
        parameters: Mapping[str, JsonValue] = SPEC.parameters,
    ) -> None:
        self.spec = replace(SPEC, name=name, parameters=parameters)
        self.ran: list[Action] = []
        self._body = body
        self._prepare = prepare

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        name = self.spec.name
        made = Action(call=call, tool=name, arguments=arguments, facets=(), summary=name, preview=name, request=None)
        return self._prepare(made)  # type: ignore[return-value]  # some rows return what a tool must not

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        self.ran.append(action)
        return self._body(action)  # type: ignore[return-value]  # likewise


def call(arguments: str = '{"text": "x"}', name: str = "probe") -> ToolCall:
    return ToolCall(id="c1", name=name, arguments=arguments)


def raises(error: BaseException) -> Callable[[Action], object]:
    def fail(action: Action) -> object:
        raise error

    return fail


Run = Callable[..., ToolResult]


def new_run(tmp_path: Path) -> Iterator[Run]:
    """Put one call of a tool through the real gate, by a clock that stands still."""
    policy = parse_policy(b'version = 1\n[tools]\nprobe = "auto"\n', "auto.toml", extra_tools=("probe",))

    def through_the_gate(probe: Probe, monotonic: Callable[[], float] = lambda: 0.0) -> ToolResult:
        log = begun(ActionLog.open(str(tmp_path / "log.jsonl"), sync=unsynced), policy)
        gate = Gate(policy=policy, approver=deny_all, log=log, tools=ToolRegistry([probe]), monotonic=monotonic)
        return gate.call(gate.propose(call())).result

    yield through_the_gate


run = pytest.fixture(new_run, name="run")


# --- arguments -----------------------------------------------------------------------------------------------------


@all_rows(
    ("text", "value"),
    [
        ('{"text": "x"}', {"text": "x"}),
        (' {"text":"\\u00e9\\ud83d\\ude00\\n"}\n', {"text": "é\U0001f600\n"}),
        (
            '{"text": "x", "flag": false, "count": 10, "size": 0.5}',
            {"text": "x", "flag": False, "count": 10, "size": 0.5},
        ),
        ('{"text": "x", "size": 3}', {"text": "x", "size": 3}),
        ('{"text": "' + "x" * 10_500_000 + '"}', {"text": "x" * 10_500_000}),
    ],
    ids=["one text", "escapes and blanks around", "every type", "an integer is a number", "ten megabytes of text"],
)
def test_arguments_that_fit(text: str, value: dict[str, JsonValue]) -> None:
    assert parse_arguments(text, SPEC) == value


@all_rows(
    ("sent", "read"),
    [
        ('"short": null', {}),
        ('"short": null, "flag": null, "count": null, "size": null, "mode": null, "names": null, "about": null', {}),
        ('"count": 2.0', {"count": 2}),
        ('"count": 1e1', {"count": 10}),
        ('"count": "2"', {"count": 2}),
        ('"count": " 2\\n"', {"count": 2}),
        ('"count": "2.0"', {"count": 2}),
        ('"count": "null"', {}),
        ('"count": "None"', {}),
        ('"size": "0.5"', {"size": 0.5}),
        ('"size": "3"', {"size": 3}),
        ('"size": 3.0', {"size": 3.0}),
        ('"flag": "true"', {"flag": True}),
        ('"flag": "False"', {"flag": False}),
        ('"short": "null"', {"short": "null"}),
        ('"short": "2"', {"short": "2"}),
        ('"short": "true"', {"short": "true"}),
        ('"names": "[\\"a\\", \\"2\\"]"', {"names": ["a", "2"]}),
        ('"names": "[]"', {"names": []}),
        ('"names": ["[]", "null"]', {"names": ["[]", "null"]}),
        ('"parts": "[{\\"old\\": \\"1\\", \\"times\\": \\"2\\"}]"', {"parts": [{"old": "1", "times": 2}]}),
        ('"parts": ["{\\"old\\": \\"a\\", \\"times\\": null}"]', {"parts": [{"old": "a"}]}),
        ('"parts": [{"old": "a", "times": 3.0}]', {"parts": [{"old": "a", "times": 3}]}),
        ('"about": "{\\"deep\\": \\"True\\"}"', {"about": {"deep": True}}),
    ],
)
def test_argument_with_one_possible_reading_is_read_so(sent: str, read: dict[str, JsonValue]) -> None:
    """Types are compared too: 2.0 == 2."""
    value = parse_arguments(f'{{"text": "x", {sent}}}', SPEC)
    assert json.dumps(value) == json.dumps({"text": "x", **read})


def test_null_arguments_count_as_empty() -> None:
    spec = replace(SPEC, parameters={**SPEC.parameters, "required": []})
    assert parse_arguments("null", spec) == parse_arguments("", spec) == {}


def test_unchecked_arguments_stay_unchanged() -> None:
    sent = {"text": None, "count": "2", "size": 2.0}
    assert json.dumps(parse_arguments(json.dumps(sent), replace(SPEC, is_checked=False))) == json.dumps(sent)


FIELDS = "the fields are text, short, flag, count, size, mode, names, parts, about."
NOT_JSON = "The arguments of probe are not valid JSON: "


@all_rows(
    ("text", "problem"),
    [
        ("", "Invalid arguments for probe: text is missing."),
        ("{}", "Invalid arguments for probe: text is missing."),
        ("   ", NOT_JSON + "Expecting value: line 1 column 4 (char 3). Send one JSON object."),
        ('{"text": "x"', NOT_JSON + "Expecting ',' delimiter: line 1 column 13 (char 12). Send one JSON object."),
        ('{"text": "x"} {}', NOT_JSON + "Extra data: line 1 column 15 (char 14). Send one JSON object."),
        ("{'text': 'x'}", NOT_JSON + "Expecting property name enclosed in double quotes: line 1 column 2 (char 1). "
         "Send one JSON object."),
        ('{"text": "a\nb"}', NOT_JSON + "Invalid control character at: line 1 column 12 (char 11). Send one JSON object."),
        ('{"text": "x", "text": "y"}', NOT_JSON + "duplicate key. Send one JSON object."),
        ('{"text": "x", "t\\u0065xt": "y"}', NOT_JSON + "duplicate key. Send one JSON object."),
        ('{"text": "x", "short": {"a": 1, "a": 2}}', NOT_JSON + "duplicate key. Send one JSON object."),
        ('{"text": NaN}', NOT_JSON + "NaN is not JSON. Send one JSON object."),
        ('{"text": "x", "size": Infinity}', NOT_JSON + "Infinity is not JSON. Send one JSON object."),
        ('{"text": "x", "size": -Infinity}', NOT_JSON + "-Infinity is not JSON. Send one JSON object."),
        ('{"text": "x", "size": 1e999}', "Invalid arguments for probe: size: is too large a number."),
        ("[" * 100_000, NOT_JSON + "maximum recursion depth exceeded while decoding a JSON array from a unicode string. "
         "Send one JSON object."),
        ('{"text": ' + "[" * 500 + "]" * 500 + "}", "Invalid arguments for probe: text: must be a string, not a list."),
        ("[]", "The arguments of probe must be a JSON object, not a list."),
        ("null", "Invalid arguments for probe: text is missing."),
        ('"text"', "The arguments of probe must be a JSON object, not a string."),
        ('{"txt": "x"}',
         "Invalid arguments for probe: unknown field 'txt'; " + FIELDS),
        ('{"' + "t" * 101 + '": 1}',
         "Invalid arguments for probe: unknown field <101 characters>; " + FIELDS),
        ('{"text": "x", "Text": "y"}',
         "Invalid arguments for probe: unknown field 'Text'; " + FIELDS),
        ('{"text": "x", "\\ud800": "y"}',
         "Invalid arguments for probe: unknown field '\\ud800'; " + FIELDS),
        ('{"text": 1}', "Invalid arguments for probe: text: must be a string, not a number."),
        ('{"text": null}', "Invalid arguments for probe: text: must be a string, not null."),
        ('{"text": ["x"]}', "Invalid arguments for probe: text: must be a string, not a list."),
        ('{"text": {"x": 1}}', "Invalid arguments for probe: text: must be a string, not an object."),
        ('{"text": "x", "count": true}', "Invalid arguments for probe: count: must be an integer, not true or false."),
        ('{"text": "x", "size": false}', "Invalid arguments for probe: size: must be a number, not true or false."),
        ('{"text": "x", "count": 2.5}', "Invalid arguments for probe: count: must be an integer, not a decimal number."),
        ('{"text": "x", "count": "two"}', "Invalid arguments for probe: count: must be an integer, not a string."),
        ('{"text": "x", "count": "2.5"}', "Invalid arguments for probe: count: must be an integer, not a decimal number."),
        ('{"text": "x", "count": "true"}', "Invalid arguments for probe: count: must be an integer, not a string."),
        ('{"text": "x", "count": "\\"2\\""}', "Invalid arguments for probe: count: must be an integer, not a string."),
        ('{"text": "x", "count": "11"}', "Invalid arguments for probe: count: must be at most 10."),
        ('{"text": "x", "count": "' + "1" * 5_000 + '"}',
         "Invalid arguments for probe: count: must be an integer, not a string."),
        ('{"text": "x", "count": 1e999}', "Invalid arguments for probe: count: must be an integer, not a decimal number."),
        ('{"text": "x", "size": "NaN"}', "Invalid arguments for probe: size: must be a number, not a string."),
        ('{"text": "x", "size": "1e999"}', "Invalid arguments for probe: size: is too large a number."),
        ('{"text": "x", "names": "a"}', "Invalid arguments for probe: names: must be a list, not a string."),
        ('{"text": "x", "names": {"a": 1}}', "Invalid arguments for probe: names: must be a list, not an object."),
        ('{"text": "x", "names": [null]}', "Invalid arguments for probe: names: number 1: must be a string, not null."),
        ('{"text": "x", "names": "[1]"}', "Invalid arguments for probe: names: number 1: must be a string, not a number."),
        ('{"text": "x", "names": "' + "[" * 100_000 + '"}',
         "Invalid arguments for probe: names: must be a list, not a string."),
        ('{"text": "x", "parts": [{"old": null}]}',
         "Invalid arguments for probe: parts: number 1: old: must be a string, not null."),
        ('{"text": "x", "about": "{\\"deep\\": true, \\"deep\\": false}"}',
         "Invalid arguments for probe: about: must be an object, not a string."),
        ('{"text": "x", "nothing": null}', "Invalid arguments for probe: unknown field 'nothing'; " + FIELDS),
        ('{"text": "x", "flag": 1}', "Invalid arguments for probe: flag: must be true or false, not a number."),
        ('{"text": "x", "flag": "1"}', "Invalid arguments for probe: flag: must be true or false, not a string."),
        ('{"text": "x", "count": 0}', "Invalid arguments for probe: count: must be at least 1."),
        ('{"text": "x", "count": 11}', "Invalid arguments for probe: count: must be at most 10."),
        ('{"text": "x", "mode": "Fast"}', "Invalid arguments for probe: mode: must be one of fast, slow."),
        ('{"text": "x", "size": -0.1}', "Invalid arguments for probe: size: must be at least 0."),
        ('{"text": ""}', "Invalid arguments for probe: text: must not be empty."),
        ('{"text": "x", "short": "123456"}',
         "Invalid arguments for probe: short: is 6 characters long; at most 5 are taken."),
        ('{"text": "a\\u0000b"}', "Invalid arguments for probe: text: contains a NUL character."),
        ('{"text": "\\ud800"}', "Invalid arguments for probe: text: contains a lone surrogate."),
        ('{"text": "\\udc80x"}', "Invalid arguments for probe: text: contains a lone surrogate."),
        ('{"text": "' + "x" * MAX_ARGUMENT_CHARACTERS + '"}',
         "The arguments of probe are 12000012 characters long; at most 12000000 are taken."),
    ],
    ids=[
        "nothing at all", "an empty object", "blanks", "cut off", "two objects", "Python's quotes", "a raw newline",
        "a key twice", "a key twice, once in disguise", "a key twice further in", "NaN", "Infinity", "minus Infinity",
        "a float beyond floats", "a depth of a hundred thousand", "a depth of 33",
        "a depth of 32", "an array", "null", "a text", "a field misspelt", "a field too long to tell",
        "a field in other letters", "a field that cannot be shown", "a number for a text", "null for a text",
        "a list for a text", "an object for a text", "true for an integer", "false for a number", "a fraction for an integer",
        "a word for an integer", "a fraction in a text", "true in a text for an integer", "a text in a text",
        "a text too large",
        "a numeral too long", "infinity for an integer", "NaN in a text", "infinity in a text", "a text for a list",
        "an object for a list", "null in a list", "a list in a text that does not fit", "a deep list in a text",
        "null further in", "a key twice in a text", "null for an unknown field", "1 for a boolean",
        "1 in a text for a boolean", "too small", "too large", "negative",
        "an empty text", "too long a text", "NUL", "half a surrogate pair", "the other half", "more than ten megabytes",
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused_with_a_text_for_the_model(text: str, problem: str) -> None:
    with pytest.raises(ToolError) as told:
        parse_arguments(text, SPEC)
    assert str(told.value) == problem


@settings(max_examples=examples(300), deadline=None)
@given(
    st.one_of(
        st.text(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["text", "short", "flag", "count", "size", "names", "parts", "about", "old", "deep", "x"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ).map(json.dumps),
    )
)
def test_arguments_fit_the_schema_or_raise_a_tool_error(text: str) -> None:
    """Never another exception, never a value of another type."""
    try:
        value = parse_arguments(text, SPEC)
    except ToolError:
        return
    kinds = {name: type(item) for name, item in value.items()}
    allowed: dict[str, Sequence[type]] = {
        "text": (str,), "short": (str,), "flag": (bool,), "count": (int,), "size": (int, float),
        "names": (list,), "parts": (list,), "about": (dict,),
    }  # fmt: skip
    assert "text" in value
    assert all(kind in allowed[name] for name, kind in kinds.items())
    assert all("\0" not in item and item.encode() for item in (value["text"],) if isinstance(item, str))


# --- preparing -----------------------------------------------------------------------------------------------------


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are named probe"):
        ToolRegistry([Probe(), Probe(name="other"), Probe()])


def test_the_specs_are_those_of_the_tools_in_order() -> None:
    tools = [Probe(name="b"), Probe(name="a")]
    assert ToolRegistry(tools).specs == tuple(tool.spec for tool in tools)


def test_unknown_tool_error_lists_the_tools() -> None:
    """Names are compared to the letter; a long one is never told in part: half a secret would not be masked."""
    registry = ToolRegistry([Probe(), Probe(name="other")])
    for name in ("Probe", "probe ", "pr\u043ebe", "", "p" * 1000):
        with pytest.raises(ToolError) as told:
            registry.prepare(call(name=name))
        shown = repr(name) if len(name) <= 100 else "<1000 characters>"
        assert str(told.value) == f"The tool {shown} does not exist. The tools are: probe, other."


def test_a_call_is_prepared_into_the_action_for_it() -> None:
    probe = Probe()
    asked = call('{"text": "hello", "count": 3}')
    action = ToolRegistry([probe]).prepare(asked)
    assert action.call is asked
    assert dict(action.arguments) == {"text": "hello", "count": 3}
    assert probe.ran == []


def test_judged_and_run_arguments_are_one_reading() -> None:
    given: list[Mapping[str, JsonValue]] = []

    def prepare(action: Action) -> Action:
        given.append(action.arguments)
        return action

    action = ToolRegistry([Probe(prepare=prepare)]).prepare(call('{"text": "x", "count": "3", "size": null}'))
    assert given[0] is action.arguments
    assert dict(action.arguments) == {"text": "x", "count": 3}


def test_prepared_arguments_cannot_be_changed() -> None:
    """What was judged is what runs."""
    action = ToolRegistry([Probe()]).prepare(call())
    with pytest.raises(TypeError):
        action.arguments["text"] = "other"  # type: ignore[index]


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@all_rows(
    ("prepare", "problem"),
    [
        (raises(ToolError("No such file.")), "No such file."),
        (raises(RuntimeError("a bug")), "probe could not prepare this call: RuntimeError: a bug"),
        (raises(SystemExit(3)), "probe could not prepare this call: SystemExit: 3"),
        (raises(Mute()), "probe could not prepare this call: Mute"),
        (lambda action: None, "probe could not prepare this call: TypeError: `prepare` must return an Action, not None"),
        (
            lambda action: replace(action, call=call('{"text": "y"}')),
            "probe could not prepare this call: TypeError: expected the Action of this call, got that of another",
        ),
        (
            lambda action: replace(action, tool="other"),
            "probe could not prepare this call: TypeError: expected the Action of this call, got that of another",
        ),
    ],
    ids=[
        "an error for the model", "a bug", "an exit", "a bug without words", "nothing", "another call",
        "an action of another tool",
    ],
)  # fmt: skip
def test_a_tool_that_cannot_prepare_gives_a_tool_error(prepare: Callable[[Action], object], problem: str) -> None:
    """Nothing but ToolError comes out, whatever the tool does."""
    registry = ToolRegistry([Probe(prepare=prepare), Probe(name="other")])
    with pytest.raises(ToolError) as told:
        registry.prepare(call())
    assert str(told.value) == problem


@all_rows(
    "parameters",
    [{}, {"properties": []}, {"properties": {"text": []}}, {"properties": {"text": {"type": "null"}}}],
    ids=["no properties", "properties that are a list", "a property that is a list", "a type that is not checked"],
)
def test_uncheckable_schema_rejects_every_call(parameters: Mapping[str, JsonValue]) -> None:
    registry = ToolRegistry([Probe(parameters=parameters)])
    with pytest.raises(ToolError, match="probe could not prepare this call: TypeError"):
        registry.prepare(call())


# --- running -------------------------------------------------------------------------------------------------------


def test_prepared_action_itself_is_run_and_timed(run: Run) -> None:
    prepared: list[Action] = []

    def prepare(action: Action) -> Action:
        prepared.append(action)
        return action

    probe = Probe(prepare=prepare)
    times = iter((5.0, 5.25))
    assert run(probe, lambda: next(times)) == ToolResult(
        call_id="c1", status=ResultStatus.OK, content="done", duration_ms=250, output_bytes=4
    )
    assert [ran is prepared[0] for ran in probe.ran] == [True]


def test_tool_report_becomes_the_result(run: Run) -> None:
    output = ToolOutput(
        content="cut",
        status=ResultStatus.TIMEOUT,
        exit_code=124,
        output_bytes=1_000_000,
        truncated=True,
        printed="c",
        changed_path="/w/a",
        before_sha256="b" * 64,
        after_sha256="a" * 64,
    )
    assert run(Probe(lambda action: output)) == ToolResult(
        call_id="c1",
        status=ResultStatus.TIMEOUT,
        content="cut",
        exit_code=124,
        output_bytes=1_000_000,
        truncated=True,
        printed="c",
        changed_path="/w/a",
        before_sha256="b" * 64,
        after_sha256="a" * 64,
    )


CRASHED = "Error: the tool probe crashed: "


@all_rows(
    ("body", "status", "content"),
    [
        (raises(ToolError("No such file.")), ResultStatus.FAILED, "Error: No such file."),
        (raises(RuntimeError("a bug")), ResultStatus.CRASHED, CRASHED + "RuntimeError: a bug"),
        (raises(MemoryError()), ResultStatus.CRASHED, CRASHED + "MemoryError: "),
        (raises(RecursionError("deep")), ResultStatus.CRASHED, CRASHED + "RecursionError: deep"),
        (raises(SystemExit(0)), ResultStatus.CRASHED, CRASHED + "SystemExit: 0"),
        (raises(Mute()), ResultStatus.CRASHED, CRASHED + "Mute"),
        (
            raises(KeyboardInterrupt()), ResultStatus.INTERRUPTED,
            "Interrupted by the person; the call may be done in part.",
        ),
        (lambda action: None, ResultStatus.CRASHED, CRASHED + "TypeError: `run` must return a ToolOutput, not None"),
        (lambda action: "done", ResultStatus.CRASHED, CRASHED + "TypeError: `run` must return a ToolOutput, not a str"),
        (
            lambda action: ToolOutput(content=b"bytes"),  # type: ignore[arg-type]
            ResultStatus.CRASHED, CRASHED + "TypeError: ToolOutput: content must be text, not a bytes",
        ),
        (
            lambda action: ToolOutput(content="", status=ResultStatus.DENIED),
            ResultStatus.CRASHED, CRASHED + "TypeError: status: a tool must not return ResultStatus.DENIED",
        ),
        (
            lambda action: ToolOutput(content="", status=ResultStatus.NOT_RUN),
            ResultStatus.CRASHED, CRASHED + "TypeError: status: a tool must not return ResultStatus.NOT_RUN",
        ),
    ],
    ids=[
        "an error for the model", "a bug", "no memory", "too deep", "an exit", "a bug without words", "Ctrl-C", "nothing",
        "a text", "bytes", "a claim that it was denied", "a claim that it did not run",
    ], anew={"run": new_run})  # fmt: skip
def test_tool_body_always_ends_in_a_result(
    run: Run, body: Callable[[Action], object], status: ResultStatus, content: str
) -> None:
    probe = Probe(body)
    result = run(probe)
    assert result == ToolResult(call_id="c1", status=status, content=content, output_bytes=len(content))
    assert len(probe.ran) == 1
