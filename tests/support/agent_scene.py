"""An agent with a model that plays a list, and tools that do what their arguments say; each looks whether it may run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from log_scene import proved

from harness.actions import Access, Action, Effects, Facet, JsonValue, PathAccess, Place
from harness.errors import ToolError
from harness.gate.approval import Approval, Approver, ScriptedAnswers
from harness.gate.tool import ToolOutput
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import Verification
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import (
    FinishReason,
    Message,
    ModelResponse,
    ResultStatus,
    Role,
    RunResult,
    ToolCall,
    Usage,
)
from harness.model import Retry, ToolSpec
from harness.policy.loader import parse_policy
from harness.policy.verdict import Verdict

POLICY = b"""
version = 1
name = "table"
[tools]
free = "auto"
asked = "confirm"
refused = "deny"
halted = "block"
"""


TOOLS = ("free", "asked", "refused", "halted")


UNATTENDED_BLOCK = b'[unattended]\nconfirm = "block"\n'


OnText = Callable[[str], None]


OnRetry = Callable[[Retry], None]


Step = ModelResponse | BaseException | Callable[[OnText, OnRetry], ModelResponse]


class Violation(BaseException):
    """A promise was broken: not an Exception, so that nothing in between can make a result of it."""


def unpaired(messages: Sequence[Message]) -> str:
    """Return what is wrong with a history, or nothing: after a reply with calls come their results, in order."""
    waiting: list[str | None] = []
    for position, message in enumerate(messages):
        if message.role is Role.TOOL:
            if not waiting or waiting.pop(0) != message.tool_call_id:
                return f"message {position} is a result of {message.tool_call_id} out of turn"
        elif waiting:
            return f"message {position} comes before the results of {waiting}"
        else:
            waiting = [call.id for call in message.tool_calls]
    return f"the results of {waiting} are missing" if waiting else ""


class Playing:
    """A model that plays a list, and refuses a history in which a call lacks its result or has two."""

    def __init__(self, script: Iterable[Step]) -> None:
        self.name = "playing"
        self.seen: list[list[Message]] = []
        self._script = iter(script)

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: OnText,
        on_retry: OnRetry,
        seconds: float | None = None,
    ) -> ModelResponse:
        if problem := unpaired(messages):
            raise Violation(problem)
        self.seen.append(list(messages))
        step = next(self._script, None)
        match step:
            case None:
                raise Violation("the script is over, and the loop goes on")
            case BaseException():
                raise step
            case ModelResponse():
                return step
            case _:
                return step(on_text, on_retry)


class Probe:
    """A tool that does what its argument says, and looks first whether it may: at the file, not at the harness."""

    def __init__(
        self,
        name: str,
        path: str,
        ran: list[str],
        interrupt: Interrupt,
        on_prepare: Callable[[str], str] = lambda do: do,
    ) -> None:
        self.spec = ToolSpec(
            name=name,
            description="For tests.",
            parameters={"properties": {"do": {"type": "string"}}, "required": ["do"], "additionalProperties": False},
        )
        self._path = path
        self._ran = ran
        self._interrupt = interrupt
        self._on_prepare = on_prepare

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        do = self._on_prepare(str(arguments["do"]))
        facets: tuple[Facet, ...] = ()
        match do:
            case "cannot be prepared":
                raise ToolError("This cannot be prepared.")
            case "cannot be judged":
                facets = (cast(Any, "not a facet"),)
            case "as it stands":
                do = f"as it stands after {self._ran}"
            case "write the log, once something ran" if self._ran:
                facets = (_writing(self._path),)
        name = self.spec.name
        return Action(call=call, tool=name, arguments=arguments, facets=facets, summary=do, preview=do, request=do)

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        check_permitted(self._path, action)
        self._ran.append(f"{self.spec.name} {action.request}")
        match action.request:
            case "fail":
                raise ToolError("It did not work.")
            case "crash":
                raise RuntimeError("a bug")
            case "exit":
                raise SystemExit(0)
            case "be interrupted":
                raise KeyboardInterrupt
            case "leave a mark":
                os.close(os.open(f"{self._path}.mark", os.O_WRONLY | os.O_CREAT, 0o600))
            case str(do) if do.startswith("show "):
                printed = do.removeprefix("show ")
                return ToolOutput(content=f"{printed}\n[exit code 0, 0.1 s]", exit_code=0, printed=printed)
            case str(do) if do.startswith("fail DONE"):
                return ToolOutput(content="DONE", status=ResultStatus.FAILED, exit_code=1, printed="DONE")
            case "stop DONE":
                return ToolOutput(content="DONE", status=ResultStatus.TIMEOUT, exit_code=0, printed="DONE")
            case str(do) if do.startswith("say "):
                return ToolOutput(content=do.removeprefix("say "), exit_code=0)
            case "leave the program":
                raise Violation("left")
            case "be signalled":
                self._interrupt.request()
            case "be signalled for later":
                self._interrupt.request_later()
            case _:
                pass
        return ToolOutput(content=f"did {action.request}")


def _writing(path: str) -> PathAccess:
    return PathAccess(written=path, real=path, names=(path,), access=Access.WRITE, place=Place.OUTSIDE)


def check_permitted(path: str, action: Action) -> None:
    """Raise Violation unless the last record on disk is the intent of a permitted call of this very action."""
    records = list(read_log(path))
    intent = records[-1]
    of_call = [r for r in records if r["session"] == intent["session"] and r.get("call") == intent.get("call")]
    by_kind = {str(record["kind"]): record for record in of_call}
    permitted = by_kind["decision"]["decision"] == "auto" or (
        by_kind["decision"]["decision"] == "confirm" and by_kind["approval_answered"]["answer"] == "yes"
    )
    same = (by_kind["call_proposed"]["id"], by_kind["call_proposed"]["arguments"]) == (
        action.call.id, action.call.arguments,
    )  # fmt: skip
    if intent["kind"] != "intent" or not permitted or not same:
        raise Violation(f"a body was reached without leave: {of_call}")


class Scene:
    """An agent with all that belongs to it."""

    def __init__(
        self,
        path: str,
        *script: Step,
        approver: Approver | None = None,
        policy: bytes = POLICY,
        limits: Limits | None = None,
        room: int | None = None,
        on_text: OnText = lambda text: None,
        monotonic: Callable[[], float] = lambda: 0.0,
        context_tokens: int | None = None,
        done_marker: str | None = None,
        sync: Callable[[int], None] = os.fdatasync,
        on_prepare: Callable[[str], str] = lambda do: do,
        check_answer: Callable[[str, float | None], str] | None = None,
    ) -> None:
        self.path = path
        self.ran: list[str] = []
        self.interrupt = Interrupt()
        self.log = ActionLog.open(path, sync=sync)
        self.model = Playing(script)
        self.agent = Agent(
            model=self.model,
            tools=[Probe(name, path, self.ran, self.interrupt, on_prepare) for name in TOOLS],
            policy=parse_policy(policy, "table.toml", extra_tools=TOOLS),
            approver=approver or ScriptedAnswers([]),
            log=self.log,
            limits=limits,
            system="be careful",
            on_text=on_text,
            interrupt=self.interrupt,
            monotonic=monotonic,
            context_tokens=context_tokens,
            done_marker=done_marker,
            check_answer=check_answer,
        )
        if room is not None:
            self.log.observers.append(lambda record: self.log.close() if self.log.count >= room else None)
        self.session: Session | None = None

    def play(self, prompt: str = "go") -> RunResult:
        """Run one prompt in a session that is ended afterwards, and check what must hold after every end."""
        self.session = self.agent.start()
        result = self.agent.run(prompt, self.session)
        self.agent.end(self.session, result)
        self.check()
        return result

    def check(self) -> None:
        """The history is paired, and the log is whole: no session open, every call ended."""
        assert self.session is not None
        assert unpaired(self.session.messages) == ""
        assert proved(self.path) == Verification(records=self.log.count, head=self.log.head)

    def results(self) -> list[str]:
        """Return what the model reads of its calls."""
        assert self.session is not None
        return [message.content for message in self.session.messages if message.role is Role.TOOL]

    def story(self, first: int = 0) -> str:
        """Return the log in words, without the lines that every run begins with."""
        return "; ".join(_told(record) for record in list(read_log(self.path))[first:])


def _told(record: LogRecord) -> str:
    """Return a record in two or three words."""
    words = {
        "session_started": "start",
        "user_message": "user",
        "model_request": "request",
        "model_response": "response",
        "call_proposed": "propose",
        "decision": "decide",
        "approval_asked": "ask",
        "approval_answered": "answer",
        "session_ended": "end",
    }
    kind = str(record["kind"])
    more = [record.get(name) for name in ("call", "decision", "answer", "status", "where", "stop")]
    return " ".join([words.get(kind, kind), *(str(word) for word in more if word is not None)])


BEGIN = "start; user; request; response; "


def call(number: int, name: str, do: str = "work") -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, arguments=json.dumps({"do": do}))


def reply(
    *calls: ToolCall, text: str = "", finish: FinishReason = FinishReason.DONE, usage: tuple[int, int] = (0, 0)
) -> ModelResponse:
    return ModelResponse(
        text=text,
        tool_calls=calls,
        finish_reason=finish,
        usage=Usage(input_tokens=usage[0], output_tokens=usage[1]),
    )


DONE = reply(text="done")


def answering(answer: Callable[[], object]) -> Approver:
    def approver(action: Action, verdict: Verdict) -> Approval:
        return answer()  # type: ignore[return-value]  # some rows return what an approver must not

    return approver


class Asked:
    """An approver that does one thing, and remembers what it was shown."""

    def __init__(self, answer: Callable[[], object]) -> None:
        self._answer = answer
        self.shown: list[tuple[Action, Verdict]] = []

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        self.shown.append((action, verdict))
        return self._answer()  # type: ignore[return-value]  # some rows return what an approver must not
