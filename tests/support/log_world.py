"""A small world for the proofs of the action log: a scripted model in this process, tools that leave a trace of each call."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from log_auditor import Audit, Call
from log_scene import unsynced

from harness.actions import Access, Action, Effects, JsonValue, PathAccess, Place
from harness.errors import ToolError
from harness.files.before_images import BeforeImages
from harness.files.workspace import Workspace
from harness.gate.approval import Approver, ScriptedAnswers
from harness.gate.tool import Arguments, Neighbour, ToolOutput
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import FinishReason, Message, ModelResponse, RunResult, ToolCall, Usage
from harness.model import Retry, ToolSpec
from harness.policy.loader import parse_policy
from harness.record import replace
from harness.redaction.redactor import Redactor
from harness.tools.write_file import WriteFileTool

TOOLS = ("free", "asked", "refused", "halted")
POLICY_TEXT = b"""
version = 1
name = "world"
[tools]
free = "auto"
asked = "confirm"
refused = "deny"
halted = "block"
write_file = "auto"
read_file = "auto"
"""
POLICY = parse_policy(POLICY_TEXT, "world.toml", extra_tools=TOOLS)
REDACTOR = Redactor(key=b"k" * 32)

Step = ModelResponse | BaseException


class Playing:
    """A model that plays a list; when that is over it has nothing more to say."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.name = "playing"
        self._steps = iter(steps)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        step = next(self._steps, None)
        if isinstance(step, BaseException):
            raise step
        return step or reply(text="nothing more")


class Body(Protocol):
    """What a tool does beside its trace: called before it is left, and after."""

    def __call__(self, action: Action, *, done: bool) -> ToolOutput | None: ...


def nothing_more(action: Action, *, done: bool) -> ToolOutput | None:
    """Do no more than to leave the trace."""
    return None


class Tracing:
    """A tool whose one effect is an empty file, named by the call: `mark_of`."""

    def __init__(self, name: str, folder: str, body: Body) -> None:
        self.spec = ToolSpec(
            name=name,
            description="Leaves a trace.",
            parameters={"properties": {"do": {"type": "string"}}, "required": ["do"], "additionalProperties": False},
        )
        self._folder = folder
        self._body = body

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        do = str(arguments["do"])
        if do == "cannot be prepared":
            raise ToolError("This cannot be prepared.")
        name = self.spec.name
        return Action(call=call, tool=name, arguments=arguments, facets=(), summary=do[:100], preview=do, request=do)

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        self._body(action, done=False)
        os.close(os.open(os.path.join(self._folder, mark_of(action.call)), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        output = self._body(action, done=True)
        return output or ToolOutput(content=f"did {action.request}")


def mark_of(call: ToolCall) -> str:
    """Return the name of the trace of a call: its id, and which arguments ran."""
    return f"{call.id}.{digest_of(call.arguments)[:16]}"


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class TracingBeside(Tracing):
    """The same that says it only reads, and may run beside others."""

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        name = mark_of(call)
        path = PathAccess(written=name, real=f"/w/{name}", names=(name,), access=Access.READ, place=Place.INSIDE)
        return replace(super().prepare(call, arguments), facets=(path,))

    runs_beside = True

    def run_beside(self, action: Action, effects: Effects, seconds: float | None, neighbour: Neighbour) -> ToolOutput:
        return self.run(action, effects)


class World:
    """An agent with all that belongs to it, below one folder: `log.jsonl`, `work` for the traces."""

    def __init__(
        self,
        folder: str,
        script: Iterable[Step],
        *,
        approver: Approver | None = None,
        body: Body = nothing_more,
        limits: Limits | None = None,
        interrupt: Interrupt | None = None,
        redactor: Redactor = REDACTOR,
        policy_text: bytes = b"",
        together: int = 1,
        **seams: Any,
    ) -> None:
        """`seams` are those of ActionLog.open: clock, monotonic_ns, write, sync. `together`: so many calls of `free` may run at
        once, where that is more than one.
        """
        self.path, self.work = os.path.join(folder, "log.jsonl"), os.path.join(folder, "work")
        os.makedirs(self.work, exist_ok=True)
        self.log = ActionLog.open(self.path, redactor=redactor, **{"sync": unsynced, **seams})
        writing = WriteFileTool(Workspace(self.work, home=folder), images=BeforeImages(os.path.join(folder, "images")))
        self.agent = Agent(
            model=Playing(script),
            tools=[
                *(
                    (TracingBeside if together > 1 and name == "free" else Tracing)(name, self.work, body)
                    for name in TOOLS
                ),
                writing,
            ],
            policy=parse_policy(policy_text, "world.toml", extra_tools=TOOLS) if policy_text else POLICY,
            approver=approver or ScriptedAnswers([]),
            log=self.log,
            limits=limits,
            interrupt=interrupt,
            together=together,
            system="be careful",
        )
        self.session: Session | None = None

    def play(self, prompt: str = "go") -> RunResult:
        """Run one prompt in a session of its own, begun and ended by the agent."""
        return self.agent.run(prompt)

    def traces(self) -> set[str]:
        """Return what was done in this world: what lies in its folder."""
        return set(os.listdir(self.work))


def call(number: int, tool: str, do: str = "work") -> ToolCall:
    return ToolCall(id=f"c{number}", name=tool, arguments=json.dumps({"do": do}))


def writing(number: int) -> ToolCall:
    """Return a call of the real `write_file`, which leaves the file `written-N`."""
    arguments = {"path": f"written-{number}", "content": f"by call {number}\n" * 20}
    return ToolCall(id=f"c{number}", name="write_file", arguments=json.dumps(arguments))


def reply(*calls: ToolCall, text: str = "", finish: FinishReason = FinishReason.DONE) -> ModelResponse:
    return ModelResponse(
        text=text, tool_calls=calls, finish_reason=finish, usage=Usage(input_tokens=10, output_tokens=5)
    )


def edit(do: str) -> str:
    """Return the answer that puts another call in the place of one."""
    return f"e: {json.dumps({'do': do})}"


EVENTFUL: tuple[ModelResponse, ...] = (
    reply(call(1, "free"), call(2, "asked"), writing(3), text="several at once"),
    reply(call(4, "refused"), call(5, "missing"), call(6, "asked", "cannot be prepared"), call(7, "asked")),
    reply(writing(8), call(9, "asked", "one thing"), call(10, "free", "x" * 3000)),
    reply(call(11, "free"), text="nearly done"),
    reply(text="done"),
)
"""A run with every road that a call can take but those that end a run."""
ANSWERS = ("y", "n: not now", edit("another thing"), "y")
"""To the questions of EVENTFUL."""


GROUPED: tuple[ModelResponse, ...] = (
    reply(*(call(number, "free") for number in (1, 2, 3)), call(4, "asked"), text="three at once"),
    reply(call(5, "free"), call(6, "free"), writing(7), call(8, "free"), call(9, "free", "x" * 3000)),
    reply(text="done"),
)
"""A run with groups of calls that run at once, and others between them."""


def eventful(folder: str, *, body: Body = nothing_more, together: int = 1, **seams: Any) -> World:
    """Return a world in which EVENTFUL is about to be played, or GROUPED with so many calls at once."""
    script, answers = (EVENTFUL, ANSWERS) if together == 1 else (GROUPED, ("y",))
    return World(folder, script, approver=ScriptedAnswers(answers), body=body, together=together, **seams)


def expected_traces(of: Call) -> set[str]:
    """Return the traces that a call leaves that ran to its end."""
    proposed = of.one("call_proposed")
    assert proposed is not None
    if proposed["tool"] == "write_file":
        return {json.loads(proposed["arguments"])["path"]}
    return {f"{proposed['id']}.{proposed['arguments_sha256'][:16]}"}


def unexplained(audit: Audit, traces: set[str]) -> list[str]:
    """Return what lies in a world without an intent, and what should lie there by what its log says of the ends."""
    begun = {trace for _, of in audit.calls if of.ran for trace in expected_traces(of)}
    ended_well: set[str] = set()
    for _, of in audit.calls:
        outcome = of.one("outcome")
        if of.ran and outcome is not None and outcome["status"] == "ok":
            ended_well |= expected_traces(of)
    may_write = any(of.is_unknown and (of.one("intent") or {})["tool"] == "write_file" for _, of in audit.calls)
    # A file that is written has another name until it is whole; what a kill leaves of it belongs to the call in flight.
    done = {trace for trace in traces if not (may_write and trace.startswith("."))}
    return [
        *(f"{trace} was done, and no intent says so" for trace in sorted(done - begun)),
        *(f"{trace} is said to be done, and was not" for trace in sorted(ended_well - traces)),
    ]


def fields(record: Mapping[str, JsonValue], *names: str) -> tuple[JsonValue, ...]:
    """Return some fields of a record."""
    return tuple(record.get(name) for name in names)
