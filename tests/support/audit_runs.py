"""What tests of questions to logs share: sessions of the real agent, real tools and all, with a person who answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from log_scene import unsynced

from harness.actions import Action
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.limits import Limits
from harness.log.action_log import ActionLog
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.messages import FinishReason, Message, ModelResponse, ToolCall, Usage
from harness.model import Prices, Retry, ToolSpec
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.policy.rules import Layer
from harness.policy.verdict import Verdict
from harness.sandbox.keeper import start_early
from harness.tools import builtin_tools

POLICY = """\
version = 1
name = "own"
[tools]
read_file = "auto"
write_file = "confirm"
edit_file = "confirm"
bash = "confirm"
readers = true
[limits]
refusals = 100
[[rule]]
id = "publish"
decision = "confirm"
argv = ["twine", "upload"]
match = ["twine upload x"]
[[rule]]
id = "secrets"
decision = "deny"
access = ["read", "write"]
path = [".env"]
reason = "Secrets."
match = [".env"]
"""


class Call(NamedTuple):
    """A call that the model makes, and what the person says if they are asked."""

    tool: str
    what: str
    """The command or the path."""
    answer: str = "y"
    """`y`, `n`, `nobody`, `script`: a yes that no person said."""
    seconds: float = 2.0
    content: str = ""
    """Of a file that is written; other ones every time where it is empty."""


class Scripted:
    """A model that makes the calls one a reply, and then says that it is done."""

    name = "scripted"

    def __init__(self, calls: Iterable[Call]) -> None:
        self._calls = list(calls)
        self._made = 0

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        if self._made == len(self._calls):
            return ModelResponse(
                text="done",
                tool_calls=(),
                finish_reason=FinishReason.DONE,
                usage=Usage(input_tokens=7, output_tokens=3),
            )
        call = self._calls[self._made]
        self._made += 1
        arguments = json.dumps(self.arguments(call, self._made))
        wanted = ToolCall(id=f"call_{self._made}", name=call.tool, arguments=arguments)
        usage = Usage(input_tokens=100, output_tokens=10)
        return ModelResponse(text="", tool_calls=(wanted,), finish_reason=FinishReason.DONE, usage=usage)

    def arguments(self, call: Call, number: int) -> dict[str, str]:
        """Return what the tool is called with, `number` being that of the call."""
        arguments = {"command" if call.tool == "bash" else "path": call.what}
        if call.tool == "write_file":
            arguments["content"] = call.content or f"text {number}\n"
        return arguments


class Person:
    """Answers questions as the calls say, after as long as they say."""

    def __init__(self, calls: Iterable[Call]) -> None:
        self._calls = list(calls)
        self.now = 0.0

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        call = next(
            c for c in self._calls if (c.tool, c.what) == (action.tool, action.text or action.arguments["path"])
        )
        self._calls.remove(call)
        self.now += call.seconds
        match call.answer:
            case "y":
                return Approval(answer=Answer.YES, by="person")
            case "script":
                return Approval(answer=Answer.YES, by="script")
            case "nobody":
                return Approval(answer=Answer.NOBODY, by="nobody")
            case _:
                return Approval(answer=Answer.NO, by="person", words="no")


def own_policy(folder: Path, text: str = POLICY) -> Policy:
    """Return a policy that was loaded from a file, as a user's own."""
    path = folder / "own.toml"
    path.write_text(text)
    return load_policy(str(path), layer=Layer.USER)


def session(
    log: Path,
    workspace: Path,
    policy: Policy,
    calls: Sequence[Call],
    *,
    prompt: str = "go",
    prices: Prices | None = None,
    then: tuple[Policy, Sequence[Call]] | None = None,
) -> str:
    """Let the agent run these calls in a session of its own, at the end of the log; return the session's name.

    `then` is another policy, that holds for the calls of a second turn.
    Commands find no programs: what they would do is no matter of these tests, and some had better not be run.
    """
    start_early()  # as every session of the program does: without, the log of a process' first session tells less
    later = then[1] if then else ()
    person = Person((*calls, *later))
    opened = ActionLog.open(str(log), sync=unsynced)
    agent = Agent(
        model=Scripted(calls),
        tools=builtin_tools(Workspace(str(workspace), "/nowhere"), environment={"PATH": "/nonexistent"}),
        policy=policy,
        approver=person,
        log=opened,
        prices=prices,
        limits=Limits(max_turns=len(calls) + len(later) + 2, max_refusals=100),
        facts={"workspace": str(workspace), "mode": "run"},
        monotonic=lambda: person.now,
    )
    begun = agent.start()
    result = agent.run(prompt, begun)
    if then:
        agent.change_policy(begun, then[0], "another")
        agent.change_model(begun, Scripted(later), {}, prices)
        result = agent.run(prompt, begun)
    agent.end(begun, result)
    opened.close()
    return opened.session


CALLS = [
    Call("bash", "ls"),
    Call("bash", "frob a", "y", 0.5),
    Call("bash", "frob b", "y", 3.0),
    Call("bash", "frob c", "n", 9.0),
    Call("bash", "frob d", "nobody", 0.0),
    Call("bash", "frob e", "script", 0.0),
    Call("bash", "twine upload x", "y", 4.0),
    Call("bash", "cat .env"),
    Call("read_file", "none.txt"),
    Call("write_file", "a.txt", "y", 1.0, "text\n"),
    Call("no_such_tool", "x"),
    Call("bash", "rm -rf /"),
]
