"""Wrong types in the promised names: one sentence with the parameter, what it takes, and what came."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from rows import all_rows

import harness
from harness import (
    ActionLog,
    Agent,
    FinishReason,
    GatedTools,
    Limits,
    LogReader,
    ScriptedModel,
    StopReason,
    Tool,
    ToolCall,
    ToolSpec,
    Usage,
    Workspace,
    builtin_tools,
    deny_all,
    load_policy,
    parse_policy,
)

lib: Any = harness
"""The package, for a caller without a type checker."""


@dataclass
class Place:
    """A folder with what an agent needs."""

    folder: Path

    @cached_property
    def log(self) -> ActionLog:
        return ActionLog.open(str(self.folder / "log.jsonl"))

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        (self.folder / "work").mkdir()
        return builtin_tools(Workspace(str(self.folder / "work")))

    def agent(self, **parts: Any) -> Any:
        common = {"model": ScriptedModel("done"), "tools": self.tools, "approver": deny_all, "log": self.log}
        return Agent(**{**common, "policy": load_policy("readonly"), **parts})

    def gate(self, **parts: Any) -> Any:
        common = {"tools": self.tools, "approver": deny_all, "log": self.log, "policy": load_policy("readonly")}
        return GatedTools(**{**common, **parts})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Spoken:
    """A tool whose description is that of another library."""

    spec: Any = {"name": "spoken"}  # noqa: RUF012 - the mistake

    def prepare(self, call: ToolCall, arguments: object) -> Any:
        raise NotImplementedError

    run = prepare


SPEC: Any = {"name": "t", "description": "", "parameters": {}}
LIMITS = "Limits(max_turns=...) makes one"

ROWS: list[tuple[str, Callable[[Place], object], str]] = [
    ("limits", lambda at: at.agent(limits={"max_turns": 3}), f"limits must be a Limits or None, not a dict: {LIMITS}"),
    ("limits of a gate", lambda at: at.gate(limits=3), f"limits must be a Limits or None, not an int: {LIMITS}"),
    ("turns", lambda _: lib.Limits(max_turns="3"), "Limits: max_turns must be a whole number or None, not a str"),
    ("half turns", lambda _: lib.Limits(max_turns=2.5), "Limits: max_turns must be a whole number or None, not a float"),
    ("no turns", lambda _: lib.Limits(max_turns=True), "Limits: max_turns must be a whole number or None, not a bool"),
    ("seconds", lambda _: lib.Limits(max_seconds="9"), "Limits: max_seconds must be a number or None, not a str"),
    ("by place", lambda _: lib.Limits(3), "Limits takes its values by name: Limits(max_turns=...)"),
    ("price", lambda _: lib.Prices(input="1", output=2), "Prices: input must be a number, not a str"),
    (
        "prices", lambda at: at.agent(prices=(1, 2)),
        "prices must be a Prices or None, not a tuple: Prices(input=...) makes one",
    ),
    (
        "address",
        lambda _: lib.OpenAIChat("m", "http://127.0.0.1:1/v1"),
        "endpoint must be an Endpoint or None, not a str: Endpoint(base_url='http://127.0.0.1:1/v1') makes one",
    ),
    ("model name", lambda _: lib.OpenAIChat(None), "model must be text, not None"),
    ("url", lambda _: lib.Endpoint(base_url=Path("x")), "Endpoint: base_url must be text or None, not a PosixPath"),
    ("attempts", lambda _: lib.Endpoint(attempts="2"), "Endpoint: attempts must be a whole number, not a str"),
    (
        "model", lambda at: at.agent(model="gpt"),
        "model must be an object with `name` and `complete`, not a str: OpenAIChat('gpt') makes one",
    ),
    (
        "model class", lambda at: at.agent(model=ScriptedModel),
        "model must be an object with `name` and `complete`, not the class ScriptedModel; pass an object of it",
    ),
    (
        "tools", lambda at: at.gate(tools="."),
        "tools must be a sequence of tools, not a str: builtin_tools(workspace) returns some",
    ),
    (
        "tools at once", lambda at: at.agent(tools=(tool for tool in at.tools)),
        "tools must be a sequence of tools, not a generator: builtin_tools(workspace) returns some",
    ),
    (
        "registry", lambda at: at.agent(tools=lib.ToolRegistry(at.tools)),
        "tools must be a sequence of tools, not a ToolRegistry: builtin_tools(workspace) returns some",
    ),
    (
        "tool", lambda at: at.agent(tools=[5]),
        "tools[0] must be an object with `spec`, `prepare` and `run`, not an int: builtin_tools(workspace) returns some",
    ),
    (
        "tool class", lambda _: lib.ToolRegistry([Spoken]),
        "tools[0] must be an object with `spec`, `prepare` and `run`, not the class Spoken; pass an object of it",
    ),
    (
        "tool description", lambda at: at.agent(tools=[Spoken()]),
        "tools[0].spec must be a ToolSpec, not a dict: ToolSpec(name=...) makes one",
    ),
    (
        "parameters", lambda _: lib.ToolSpec(**{**SPEC, "parameters": "{}"}),
        "ToolSpec: parameters must be a mapping, not a str",
    ),
    ("does", lambda _: lib.ToolKind(name="t", does="reads"), "ToolKind: does must be a Does, not a str: Does.READS is one"),
    ("policy", lambda at: at.agent(policy="ci"), "policy must be a Policy, not a str: load_policy('ci') reads one"),
    (
        "policy file", lambda at: at.gate(policy=Path("x.toml")),
        "policy must be a Policy, not a PosixPath: load_policy('x.toml') reads one",
    ),
    (
        "approver", lambda at: at.agent(approver="y"),
        "approver must be a function, not a str: `deny_all` is the one for runs without a person",
    ),
    ("log", lambda at: at.agent(log="x.jsonl"), "log must be an ActionLog, not a str: ActionLog.open('x.jsonl') opens one"),
    (
        "options", lambda at: at.agent(options={"dry_run": True}),
        "options must be a GateOptions, not a dict: GateOptions(grants=...) makes one",
    ),
    ("dry run", lambda _: lib.GateOptions(dry_run="no"), "GateOptions: dry_run must be True or False, not a str"),
    ("facts", lambda at: at.gate(facts="x"), "facts must be a mapping or None, not a str"),
    ("together", lambda at: at.agent(together="4"), "together must be a whole number, not a str"),
    ("system", lambda at: at.agent(system=None), "system must be text, not None"),
    ("on_text", lambda at: at.agent(on_text="x"), "on_text must be a function or None, not a str"),
    ("observers", lambda at: at.agent(observers=[print]), "observers must be an Observers or None, not a list"),
    ("observer", lambda _: lib.Observers([print]), "observers[0] must be an Observer, not a builtin_function_or_method"),
    (
        "one observer", lambda _: lib.Observers(lib.Observer()),
        "observers must be a sequence of Observer objects, not an Observer",
    ),
    ("prompt", lambda at: at.agent().run(5), "prompt must be text, not an int"),
    ("session", lambda at: at.agent().run("x", "s"), "session must be a Session or None, not a str"),
    ("call name", lambda at: at.gate().call(5, {}), "name must be text, not an int"),
    ("call arguments", lambda at: at.gate().call("bash", ["ls"]), "arguments must be a mapping or text, not a list"),
    ("workspace", lambda _: lib.builtin_tools("."), "workspace must be a Workspace, not a str: Workspace('.') makes one"),
    (
        "workspace path", lambda _: lib.builtin_tools(Path("a")),
        "workspace must be a Workspace, not a PosixPath: Workspace('a') makes one",
    ),
    (
        "limits of tools", lambda at: lib.builtin_tools(lib.Workspace(at.folder), limits=3),
        f"limits must be a Limits, not an int: {LIMITS}",
    ),
    (
        "output", lambda at: lib.builtin_tools(lib.Workspace(at.folder), on_output="x"),
        "on_output must be a function or None, not a str",
    ),
    (
        "hidden", lambda at: lib.builtin_tools(lib.Workspace(at.folder), hide="/x"),
        "hide must be a sequence of texts, not a str",
    ),
    ("folder", lambda _: lib.Workspace(5), "folder must be text or a path, not an int"),
    ("added", lambda at: lib.Workspace(at.folder, added=str(at.folder)), "added must be a sequence of texts, not a str"),
    ("policy path", lambda _: lib.load_policy(None), "path must be text or a path, not None"),
    ("policy table", lambda _: lib.load_policy({"version": 1}), "path must be text or a path, not a dict"),
    (
        "extra tools", lambda _: lib.load_policy("ci", extra_tools="fetch"),
        "extra_tools must be a sequence of texts, not a str",
    ),
    ("extra tool", lambda _: lib.load_policy("ci", extra_tools=[5]), "extra_tools[0] must be text, not an int"),
    ("policy text", lambda _: lib.parse_policy("version = 1", "x.toml"), "data must be bytes, not a str"),
    ("policy name", lambda _: lib.parse_policy(b"version = 1", Path("x.toml")), "file must be text, not a PosixPath"),
    (
        "policies", lambda _: lib.combine(lib.load_policy("ci")),
        "policies must be a sequence of Policy objects, not a Policy: load_policy('ci') reads one",
    ),
    ("policy of many", lambda _: lib.combine(["ci"]), "policies[0] must be a Policy, not a str: load_policy('ci') reads one"),
    (
        "judged", lambda _: lib.evaluate(lib.load_policy("ci"), "ls"),
        "action must be an Action, not a str: Action(call=...) makes one",
    ),
    ("judging", lambda _: lib.evaluate("ci", None), "policy must be a Policy, not a str: load_policy('ci') reads one"),
    ("log path", lambda _: lib.ActionLog.open(5), "path must be text or a path, not an int"),
    ("secrets", lambda at: lib.ActionLog.open(at.folder / "a", secrets="x"), "secrets must be an iterable of texts, not a str"),
    ("secret", lambda at: lib.ActionLog.open(at.folder / "a", secrets=[None]), "secrets[0] must be text, not None"),
    ("reader", lambda _: lib.LogReader(None), "path must be text or a path, not None"),
    ("head", lambda at: lib.LogReader(at.log.path).verify(5), "head must be text or None, not an int"),
    ("answers", lambda _: lib.ScriptedAnswers("yes"), "answers must be an iterable of texts, not a str"),
    ("answer", lambda _: lib.ScriptedAnswers([True]), "answers[0] must be text, not a bool"),
    ("reply", lambda _: lib.ScriptedModel(5), "replies[0] must be text, a tuple or a ModelResponse, not an int"),
    ("replies", lambda _: lib.ScriptedModel(["a", "b"]), "replies[0] must be text, a tuple or a ModelResponse, not a list"),
    ("shown", lambda _: lib.visible(None), "text must be text, not None"),
]  # fmt: skip


@all_rows(("name", "mistake", "sentence"), ROWS)
def test_a_wrong_type_is_one_sentence(
    name: str, mistake: Callable[[Place], object], sentence: str, place: Place
) -> None:
    with pytest.raises(TypeError) as raised:
        mistake(place)
    assert str(raised.value).split(": ", 1)[0] == sentence.split(": ", 1)[0], name
    assert str(raised.value).startswith(sentence), name


REPLY: dict[str, Any] = {"text": "a", "tool_calls": (), "finish_reason": FinishReason.DONE, "usage": Usage()}


@all_rows(
    ("reply", "sentence"),
    [
        ("hello", "`complete` must return a ModelResponse, not a str"),
        (None, "`complete` must return a ModelResponse, not None"),
        (lib.ModelResponse(**{**REPLY, "text": None}), "text must be text, not None"),
        (lib.ModelResponse(**{**REPLY, "tool_calls": None}), "tool_calls must be a tuple of ToolCall objects, not None"),
        (lib.ModelResponse(**{**REPLY, "tool_calls": ({"id": "1"},)}), "tool_calls[0] must be a ToolCall, not a dict"),
        (lib.ModelResponse(**{**REPLY, "finish_reason": "stop"}), "finish_reason must be a FinishReason, not a str"),
        (lib.ModelResponse(**{**REPLY, "usage": {}}), "usage must be a Usage, not a dict"),
        (lib.ModelResponse(**{**REPLY, "usage": lib.Usage(input_tokens=None)}), "input_tokens must be a whole number,"),
        (
            lib.ModelResponse(**{**REPLY, "tool_calls": (lib.ToolCall(id="1", name="bash", arguments={"command": "ls"}),)}),
            "arguments must be text, not a dict",
        ),
    ],
)  # fmt: skip
def test_a_model_that_returns_something_else_ends_the_run(reply: Any, sentence: str, place: Place) -> None:
    class Own:
        name = "own"

        def complete(self, *_: object, **__: object) -> Any:
            return reply

    result = place.agent(model=Own()).run("x")
    assert (result.stop, result.detail.split(": ", 2)[:1]) == (StopReason.MODEL_ERROR, ["the model adapter failed"])
    assert sentence in result.detail
    assert not LogReader(place.log.path).verify().problem


@all_rows(
    ("answer", "sentence"),
    [
        ("yes", "the approver returned a str, not an Approval"),
        (True, "the approver returned a bool, not an Approval"),
        (lib.Approval(answer="yes", by="person"), "answer must be an Answer, not a str: Answer.YES is one"),
        (
            lib.Approval(answer=lib.Answer.YES, by="me"),
            "by must be one of person, client, approver, script, nobody, not 'me'",
        ),
        (lib.Approval(answer=lib.Answer.YES, by="person", words=None), "words must be text, not None"),
    ],
)
def test_an_approver_that_returns_something_else_ends_the_run(answer: Any, sentence: str, place: Place) -> None:
    model = ScriptedModel(("bash", {"command": "touch a"}), "done")
    result = place.agent(model=model, policy=load_policy("default"), approver=lambda _, __: answer).run("x")
    assert result.stop is StopReason.GATE_ERROR
    assert sentence in result.detail


class Own:
    """A tool whose `prepare` and `run` return given values."""

    spec = ToolSpec(
        name="own", description="", parameters={"type": "object", "properties": {}, "additionalProperties": False}
    )

    def __init__(self, ran: Any, **changed: Any) -> None:
        self.ran, self.changed = ran, changed

    def prepare(self, call: ToolCall, _: object) -> Any:
        fields: dict[str, Any] = {"call": call, "tool": "own", "arguments": {}, "facets": (lib.ToolUse(tool="own"),)}
        return lib.Action(**{**fields, "summary": "own", "preview": "own", "request": None, **self.changed})

    def run(self, *_: object) -> Any:
        return self.ran


@all_rows(
    ("tool", "sentence"),
    [
        (Own("done"), "`run` must return a ToolOutput, not a str"),
        (Own(None), "`run` must return a ToolOutput, not None"),
        (Own(lib.ToolOutput(content=b"x")), "ToolOutput: content must be text, not a bytes"),
        (Own(lib.ToolOutput(content="x", status="ok")), "ToolOutput: status must be a ResultStatus, not a str"),
        (
            Own(None, facets=[lib.ToolUse(tool="own")]),
            "Action: facets must be a tuple of Command, PathAccess, Opaque, Unconfined or ToolUse objects, not a list",
        ),
        (Own(None, facets=("own",)), "Action: facets[0] must be a Command, a"),
        (Own(None, summary=None), "Action: summary must be text, not None"),
    ],
)
def test_a_tool_that_returns_something_else_is_told_what_to_return(tool: Own, sentence: str, place: Place) -> None:
    policy = parse_policy(b'version = 1\nname = "x"\n[tools]\nown = "auto"\n', "x.toml", extra_tools=["own"])
    with place.gate(tools=[tool], policy=policy) as gate:
        if sentence.startswith("Action"):
            with pytest.raises(lib.GateError) as raised:
                gate.call("own", {})
            assert sentence in str(raised.value)
        else:
            assert sentence in gate.call("own", {}).content


def test_paths_of_pathlib_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('version = 1\nname = "mine"\n')
    assert load_policy(file).name == "mine"
    assert Workspace(tmp_path).root == str(tmp_path.resolve())
    log = ActionLog.open(tmp_path / "log.jsonl")
    assert log.path == LogReader(tmp_path / "log.jsonl").path == str(tmp_path / "log.jsonl")


def test_the_fields_of_a_record_are_its_signature() -> None:
    parameters = inspect.signature(Limits).parameters
    assert list(parameters)[:2] == ["max_turns", "max_seconds"]
    assert (parameters["max_turns"].default, parameters["max_turns"].annotation) == (None, "int | None")
    assert inspect.signature(ToolSpec).parameters["name"].default is inspect.Parameter.empty
