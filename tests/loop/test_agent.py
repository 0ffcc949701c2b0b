"""The loop with a scripted model in this process: every kind of end, every failure, and what holds after each of them."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import product
from pathlib import Path
from types import FrameType
from typing import NoReturn

import pytest
from agent_scene import (
    BEGIN,
    DONE,
    POLICY,
    TOOLS,
    UNATTENDED_BLOCK,
    OnRetry,
    OnText,
    Playing,
    Probe,
    Scene,
    Step,
    Violation,
    answering,
    call,
    reply,
    unpaired,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from log_scene import proved
from places import SUPPORT
from rows import all_rows
from sizes import examples, spread

from harness import history as history_module
from harness import interrupt as interrupt_module
from harness.actions import JsonValue
from harness.errors import CutReply, LogError, ModelError, ModelFault, ToolError
from harness.files.workspace import Workspace
from harness.gate import approval as approval_module
from harness.gate import gate as gate_module
from harness.gate import grants_in_force
from harness.gate import records as records_module
from harness.gate import registry as registry_module
from harness.gate import ruling as ruling_module
from harness.gate import tool as tool_module
from harness.gate.approval import Approval, Approver, ScriptedAnswers
from harness.gate.gate import MOST_KEPT_CHARACTERS
from harness.gate.tool import Tool
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log import action_log as action_log_module
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.transcript import UNKNOWN, rebuilt
from harness.log.verify import Verification, verify
from harness.log.vocabulary import Answer
from harness.loop import agent as agent_module
from harness.loop import model_requests, reply_calls
from harness.loop import run as run_module
from harness.loop.agent import Agent
from harness.loop.compaction import characters
from harness.loop.run import Interjection, Session
from harness.messages import (
    FinishReason,
    Message,
    ModelResponse,
    Role,
    RunResult,
    StopReason,
    ToolCall,
    Usage,
)
from harness.model import MAX_REPLY_CHARACTERS, Retry
from harness.policy.loader import parse_policy
from harness.tools import builtin_tools


def raising(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


STOP = answering(lambda: Approval(answer=Answer.STOP, by="person"))
NOBODY = answering(lambda: Approval(answer=Answer.NOBODY, by="nobody"))

DENIED = (
    "Denied by default for refused (table.toml:7): no rule matches, and refused is deny by default. Part: `the tool refused`."
    " Do not retry this call as it is, and do not get at what was refused another way."
)
BLOCKED = (
    "Blocked by default for halted (table.toml:8): no rule matches, and halted is block by default. Part: `the tool halted`."
    " The run stops here."
)
OTHER_BLOCKED = "Not run: another call of the same reply was blocked, and the run stops"


def new_path(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "log.jsonl")


path = pytest.fixture(new_path, name="path")


# --- the loop ------------------------------------------------------------------------------------------------------


def test_a_reply_without_calls_is_the_end(path: str) -> None:
    scene = Scene(path, reply(text="hello", usage=(10, 2)))
    assert scene.play() == RunResult(
        stop=StopReason.COMPLETED, text="hello", turns=1, usage=Usage(input_tokens=10, output_tokens=2)
    )
    assert scene.story() == "start; user; request; response; end completed"
    assert scene.model.seen == [
        [Message(role=Role.SYSTEM, content="be careful"), Message(role=Role.USER, content="go")]
    ]


def test_calls_run_in_order_and_are_answered_in_order(path: str) -> None:
    """Three calls of which the second is asked about; then the answer. The whole log and the whole history."""
    calls = (call(1, "free", "one"), call(2, "asked", "two"), call(3, "free", "three"))
    scene = Scene(path, reply(*calls, text="let me"), DONE, approver=ScriptedAnswers(["y"]))
    result = scene.play()
    assert (result.stop, result.text, result.turns) == (StopReason.COMPLETED, "done", 2)
    assert scene.ran == ["free one", "asked two", "free three"]
    assert scene.story() == (
        BEGIN + "propose 1; propose 2; propose 3; decide 1 auto; intent 1; outcome 1 ok; "
        "decide 2 confirm; ask 2; answer 2 yes; intent 2; outcome 2 ok; decide 3 auto; intent 3; outcome 3 ok; "
        "request; response; end completed"
    )
    assert scene.session is not None
    assert scene.session.messages[1:] == [
        Message(role=Role.USER, content="go"),
        Message(role=Role.ASSISTANT, content="let me", tool_calls=calls),
        Message(role=Role.TOOL, content="did one", tool_call_id="c1"),
        Message(role=Role.TOOL, content="did two", tool_call_id="c2"),
        Message(role=Role.TOOL, content="did three", tool_call_id="c3"),
        Message(role=Role.ASSISTANT, content="done"),
    ]


def test_first_record_describes_the_session(path: str) -> None:
    """Versions, model, tools, policy and its digest; what the caller adds cannot pass for any of it."""
    log = ActionLog.open(path)
    agent = Agent(
        model=Playing([DONE]), tools=[Probe("free", path, [], Interrupt())],
        policy=parse_policy(POLICY, "table.toml", extra_tools=TOOLS),
        approver=NOBODY, log=log, facts={"mode": "test", "model": "another", "session": "x"},
    )  # fmt: skip
    agent.run("go")
    first = next(read_log(path))
    names = ("mode", "model", "tools", "policy", "policy_sha256", "confinement", "session")
    digest = parse_policy(POLICY, "table.toml", extra_tools=TOOLS).sha256
    assert [first[name] for name in names] == ["test", "playing", ["free"], "table", digest, "in process", log.session]
    assert first["policy_files"] == [
        {"layer": "file", "path": "table.toml", "sha256": digest, "trusted": True, "text": POLICY.decode()}
    ]


@all_rows(
    "roots, about, expected",
    [
        ((), {}, None),
        (("a",), {}, "a"),
        (("a", "a"), {}, "a"),
        (("a", "b"), {}, None),
        (("a",), {"workspace": "/elsewhere"}, "/elsewhere"),
    ],
)
def test_first_record_names_the_folder_of_the_tools(
    path: str, roots: Sequence[str], about: Mapping[str, JsonValue], expected: str | None
) -> None:
    """A tool without a folder changes nothing; two folders are no workspace."""
    folder = os.path.dirname(path)
    tools: list[Tool] = [Probe("free", path, [], Interrupt())]
    for number, root in enumerate(roots):
        os.makedirs(os.path.join(folder, root), exist_ok=True)
        tools.append(builtin_tools(Workspace(os.path.join(folder, root)))[number])
    policy = parse_policy(POLICY, "table.toml", extra_tools=TOOLS)
    path = f"{path}-{'-'.join(roots)}-{len(about)}"
    with closing(ActionLog.open(path)) as log:
        Agent(model=Playing([DONE]), tools=tools, policy=policy, approver=NOBODY, log=log, facts=about).run("go")
    assert next(read_log(path)).get("workspace") == (expected and os.path.join(os.path.realpath(folder), expected))


def test_call_is_prepared_again_before_it_runs(path: str) -> None:
    """What ran before it may have changed what it means: it is judged, shown and run as it stands then."""
    scene = Scene(path, reply(call(1, "free"), call(2, "asked", "as it stands")), DONE, approver=ScriptedAnswers(["y"]))
    scene.play()
    assert scene.results() == ["did work", "did as it stands after ['free work']"]


def test_calls_with_one_id_or_none_keep_their_order(path: str) -> None:
    """Servers have sent both; results are matched by place."""
    twins = (call(1, "free", "one"), call(1, "free", "two"), ToolCall(id="", name="free", arguments='{"do": "three"}'))
    scene = Scene(path, reply(*twins), DONE)
    assert scene.play().stop is StopReason.COMPLETED
    assert scene.results() == ["did one", "did two", "did three"]


@all_rows(
    ("bad", "ends", "content"),
    [
        (
            ToolCall(id="c1", name="rm", arguments="{}"), "decide 1 none; outcome 1 invalid",
            "Error: The tool 'rm' does not exist. The tools are: free, asked.",
        ),
        (
            ToolCall(id="c1", name="free", arguments='{"do": '), "decide 1 none; outcome 1 invalid",
            ("Error: The arguments of free are not valid JSON: Expecting value: line 1 column 8 (char 7). "
            "Send one JSON object."),
        ),
        (
            ToolCall(id="c1", name="free", arguments='{"do": 1}'), "decide 1 none; outcome 1 invalid",
            "Error: Invalid arguments for free: do: must be a string, not a number.",
        ),
        (call(1, "free", "cannot be prepared"), "decide 1 none; outcome 1 invalid", "Error: This cannot be prepared."),
        (call(1, "refused"), "decide 1 deny; outcome 1 denied", DENIED),
        (
            call(1, "asked"), "decide 1 confirm; ask 1; answer 1 no; outcome 1 denied",
            ('Denied by the script: "no answer was prepared for this question". Part: `the tool asked`. '
            "Do not retry this call as it is, and do not get at what was refused another way."),
        ),
        (call(1, "free", "fail"), "decide 1 auto; intent 1; outcome 1 failed", "Error: It did not work."),
        (
            call(1, "free", "crash"), "decide 1 auto; intent 1; outcome 1 crashed",
            "Error: the tool free crashed: RuntimeError: a bug",
        ),
        (
            call(1, "free", "exit"), "decide 1 auto; intent 1; outcome 1 crashed",
            "Error: the tool free crashed: SystemExit: 0",
        ),
    ],
    ids=[
        "an unknown tool", "broken JSON", "a wrong schema", "a call that its tool cannot prepare", "a denied call",
        "a call that the person denies", "a tool that fails", "a tool that crashes", "a tool that would leave",
    ], anew={"path": new_path})  # fmt: skip
def test_call_that_does_not_run_has_a_result_and_the_loop_goes_on(
    path: str, bad: ToolCall, ends: str, content: str
) -> None:
    scene = Scene(path, reply(bad, call(2, "free")), DONE)
    result = scene.play()
    assert (result.stop, scene.results()) == (StopReason.COMPLETED, [content, "did work"])
    assert result.refusals == (1 if "denied" in ends else 0)
    assert scene.story() == (
        f"{BEGIN}propose 1; propose 2; {ends}; decide 2 auto; intent 2; outcome 2 ok; request; response; end completed"
    )


def test_second_prompt_continues_the_conversation(path: str) -> None:
    """One session of the log, the call numbers go on, and the model sees everything."""
    scene = Scene(path, reply(call(1, "free")), DONE, reply(call(1, "free")), reply(text="again done"))
    session = scene.session = scene.agent.start()
    assert scene.agent.run("first", session).text == "done"
    assert scene.agent.run("second", session).text == "again done"
    scene.agent.end(session)
    scene.check()
    assert [len(seen) for seen in scene.model.seen] == [2, 4, 6, 8]
    assert scene.story() == (
        BEGIN + "propose 1; decide 1 auto; intent 1; outcome 1 ok; request; response; "
        "user; request; response; propose 2; decide 2 auto; intent 2; outcome 2 ok; request; response; end completed"
    )


def test_interjections_follow_the_next_results(path: str) -> None:
    """Several are one message. The last reply has no calls: what is sent then is not taken."""
    sent: list[str] = ["early"]

    def answer(text: str) -> Callable[[OnText, OnRetry], ModelResponse]:
        def step(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
            sent.append(text)
            return reply(call(1, "free")) if text == "calls" else DONE

        return step

    scene = Scene(path, answer("calls"), answer("late"))
    session = scene.session = scene.agent.start()

    def interjection() -> Interjection | None:
        return Interjection(text=sent.pop(0)) if sent else None

    assert scene.agent.run("go", session, interjection=interjection).stop is StopReason.COMPLETED
    scene.agent.end(session)
    scene.check()
    assert sent == ["late"]
    roles = [message.role for message in session.messages]
    assert roles == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
    assert [message.content for message in session.messages if message.role is Role.USER] == ["go", "early\n\ncalls"]
    assert list(rebuilt(read_log(path)).messages) == session.messages[1:]
    assert scene.story() == (
        BEGIN + "propose 1; decide 1 auto; intent 1; outcome 1 ok; user; user; request; response; end completed"
    )


def test_two_runs_without_a_session_are_two_sessions_of_a_whole_log(path: str) -> None:
    """Each is begun and ended; the second is not the first again."""
    scene = Scene(path, reply(call(1, "free")), DONE, reply(call(1, "free")), DONE)
    assert [scene.agent.run(prompt).stop for prompt in ("a", "b")] == [StopReason.COMPLETED] * 2
    assert proved(path) == Verification(records=scene.log.count, head=scene.log.head)
    assert len({record["session"] for record in read_log(path)}) == 2


def test_two_sessions_of_one_agent_can_alternate(path: str) -> None:
    """Every record stands under the session that it belongs to."""
    scene = Scene(path, DONE, reply(call(1, "free")), DONE, DONE)
    first, second = scene.agent.start(), scene.agent.start()
    for session in (first, second, first):
        assert scene.agent.run("go", session).stop is StopReason.COMPLETED
    scene.agent.end(second)
    scene.agent.end(first)
    assert proved(path) == Verification(records=scene.log.count, head=scene.log.head)
    asked = [record["session"] for record in read_log(path) if record["kind"] == "user_message"]
    assert asked == [first.identity, second.identity, first.identity]
    assert [len(first.messages), len(second.messages)] == [5, 5]


def test_two_agents_one_after_the_other_share_a_log(path: str) -> None:
    """Both count their calls from one; sessions keep them apart."""
    scene = Scene(path, reply(call(1, "free")), DONE)
    scene.play()
    second = Agent(
        model=Playing([reply(call(1, "free")), DONE]), tools=[Probe("free", path, [], Interrupt())],
        policy=scene.agent.gate.policy, approver=NOBODY, log=scene.log,
    )  # fmt: skip
    assert second.run("go").stop is StopReason.COMPLETED
    scene.check()


def test_text_is_passed_on_immediately(path: str) -> None:
    heard: list[str] = []

    def speak(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        for piece in ("do", "ne"):
            on_text(piece)
        return DONE

    scene = Scene(path, speak, on_text=heard.append)
    assert (scene.play().text, heard) == ("done", ["do", "ne"])


def test_retries_are_in_the_log_as_they_happen(path: str) -> None:
    """Before the wait, so that they can be shown; they are not turns."""
    kinds: list[str] = []

    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_retry(Retry(attempt=1, attempts=3, wait_seconds=0.5, reason="status 503"))
        kinds.append(str(list(read_log(path))[-1]["kind"]))
        return DONE

    scene = Scene(path, stumble)
    assert (scene.play().turns, kinds) == (1, ["error"])
    told = list(read_log(path))[3]
    names = ("where", "message", "attempt", "attempts", "retry_seconds")
    assert [told[name] for name in names] == ["model", "status 503", 1, 3, 0.5]


# --- blocks --------------------------------------------------------------------------------------------------------


@all_rows("place", [0, 1, 2], ids=["first", "second", "third"], anew={"path": new_path})
def test_a_block_among_three_calls_lets_none_of_them_run(path: str, place: int) -> None:
    """Whatever its place: it is decided, the others are skipped, all are answered, and the run halts."""
    calls = [call(n + 1, "halted" if n == place else "free") for n in range(3)]
    scene = Scene(path, reply(*calls, text="hm"))
    result = scene.play()
    assert result == RunResult(stop=StopReason.BLOCKED, text="hm", detail=BLOCKED, turns=1, refusals=1)
    assert scene.ran == []
    assert scene.results() == [BLOCKED if n == place else OTHER_BLOCKED for n in range(3)]
    skipped = "".join(f"decide {n} none; outcome {n} not_run; " for n in (1, 2, 3) if n != place + 1)
    assert scene.story() == (
        f"{BEGIN}propose 1; propose 2; propose 3; decide {place + 1} block; outcome {place + 1} blocked; "
        f"{skipped}end blocked"
    )


def test_blocked_call_prevents_every_question_of_its_reply(path: str) -> None:
    approver = ScriptedAnswers(["y", "y"])
    calls = (ToolCall(id="c1", name="rm", arguments="{"), call(2, "asked"), call(3, "halted"), call(4, "halted"))
    scene = Scene(path, reply(*calls), approver=approver)
    assert scene.play().stop is StopReason.BLOCKED
    assert (scene.ran, approver.asked) == ([], [])
    assert scene.results() == [OTHER_BLOCKED, OTHER_BLOCKED, BLOCKED, OTHER_BLOCKED]


def test_call_blocked_by_an_earlier_one_halts_the_run(path: str) -> None:
    """It was none when the reply came; it is judged again before it would run."""
    calls = (call(1, "free"), call(2, "free", "write the log, once something ran"), call(3, "free"))
    scene = Scene(path, reply(*calls))
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.BLOCKED, ["free work"])
    assert result.detail.startswith("Blocked by built-in own-files: ")
    assert scene.results() == ["did work", result.detail, OTHER_BLOCKED]


def test_missing_approver_can_be_a_block(path: str) -> None:
    """Where the policy says so; what stands behind it does not run."""
    scene = Scene(path, reply(call(1, "asked"), call(2, "free")), approver=NOBODY, policy=POLICY + UNATTENDED_BLOCK)
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.BLOCKED, [])
    assert result.detail == scene.results()[0]
    assert scene.results()[0].startswith("Blocked: this needs a person's yes")
    assert scene.results()[1] == OTHER_BLOCKED


# --- replies that cannot be used -----------------------------------------------------------------------------------

CUT_SHORT = "the reply was cut at the model's length limit; none of it ran"
WITHHELD = "the reply was withheld by the provider's content filter; none of it ran"


def test_calls_of_a_withheld_reply_do_not_run(path: str) -> None:
    """Not even a block counts: each call is answered as not run."""
    scene = Scene(path, reply(call(1, "free"), call(2, "halted"), text="half", finish=FinishReason.CONTENT_FILTER))
    assert scene.play() == RunResult(stop=StopReason.CONTENT_FILTER, text="half", detail=WITHHELD, turns=1)
    assert (scene.ran, scene.results()) == ([], [f"Not run: {WITHHELD}"] * 2)
    assert scene.story() == (
        f"{BEGIN}propose 1; propose 2; decide 1 none; outcome 1 not_run; decide 2 none; outcome 2 not_run; "
        "end content_filter"
    )


def test_calls_of_a_cut_off_reply_do_not_run_and_the_model_is_informed(path: str) -> None:
    """Not even a block counts. The second such reply in a row ends the run."""
    replies = [reply(call(number, "halted"), text="half", finish=FinishReason.LENGTH) for number in (1, 2)]
    scene = Scene(path, *replies)
    assert scene.play() == RunResult(stop=StopReason.LENGTH, text="half", detail=CUT_SHORT, turns=2)
    first, second = scene.results()
    assert (scene.ran, second) == ([], f"Not run: {CUT_SHORT}")
    assert first.startswith("Not run: the reply was cut at the model's length limit. Nothing of it ran. Send less")
    assert scene.story() == (
        f"{BEGIN}propose 1; decide 1 none; outcome 1 not_run; request; response; propose 2; decide 2 none; "
        "outcome 2 not_run; end length"
    )


def test_empty_reply_is_requested_once_more(path: str) -> None:
    """A model of any kind: what says nothing has not succeeded, and nothing is made up in its place."""
    scene = Scene(path, *[reply(usage=(40, 2))] * 2)
    result = scene.play()
    assert (result.stop, result.turns, result.usage) == (
        StopReason.NO_ANSWER,
        2,
        Usage(input_tokens=80, output_tokens=4),
    )
    assert scene.story() == f"{BEGIN}error model; request; response; error model; end no_answer"
    assert [len(messages) for messages in scene.model.seen] == [2, 2]


@all_rows(
    ("step", "stop", "detail", "story"),
    [
        (reply(text="half", finish=FinishReason.LENGTH), StopReason.LENGTH, CUT_SHORT, "response; end length"),
        (
            reply(finish=FinishReason.CONTENT_FILTER), StopReason.CONTENT_FILTER, WITHHELD,
            "response; end content_filter",
        ),
        (CutReply("no finish reason"), StopReason.CUT, "no finish reason", "error model; end cut"),
        (ModelError("status 401"), StopReason.MODEL_ERROR, "status 401", "error model; end model_error"),
        (
            KeyboardInterrupt(), StopReason.INTERRUPTED, "interrupted while the model was answering", "end interrupted",
        ),
    ],
    ids=["length without calls", "content filter without calls", "a cut stream", "a model that failed", "Ctrl-C"],
    anew={"path": new_path})  # fmt: skip
def test_a_request_without_a_usable_reply_ends_the_run(
    path: str, step: Step, stop: StopReason, detail: str, story: str
) -> None:
    """As the first request, and after calls that ran: their results stay."""
    scene = Scene(path, step)
    result = scene.play()
    assert (result.stop, result.detail, result.turns) == (stop, detail, 1)
    assert scene.story() == f"start; user; request; {story}"
    later = Scene(f"{path}.later", reply(call(1, "free")), step)
    result = later.play()
    assert (result.stop, result.detail, result.turns, later.results()) == (stop, detail, 2, ["did work"])


def test_a_bug_in_a_model_ends_the_run_and_harms_no_history(path: str) -> None:
    """The model boundary makes it a model error; the session can go on."""
    scene = Scene(path, reply(call(1, "free")), RuntimeError("a bug"), DONE)
    session = scene.session = scene.agent.start()
    result = scene.agent.run("go", session)
    assert (result.stop, result.detail) == (StopReason.MODEL_ERROR, "the model adapter failed: RuntimeError: a bug")
    assert scene.agent.run("go on", session).stop is StopReason.COMPLETED
    scene.agent.end(session)
    scene.check()


def test_failing_text_observer_is_harmless(path: str) -> None:
    """The run goes on as if nobody had listened."""

    def broken(text: str) -> None:
        raise BrokenPipeError(text)

    scene = Scene(path, reply(call(1, "free")), DONE, on_text=broken)
    assert scene.play().stop is StopReason.COMPLETED


def test_a_session_that_was_ended_takes_no_prompt(path: str) -> None:
    """Records after its end would make the log lie."""
    scene = Scene(path, DONE, DONE)
    session = scene.session = scene.agent.start()
    scene.agent.run("go", session)
    scene.agent.end(session)
    with pytest.raises(ValueError, match="was ended"):
        scene.agent.run("again", session)


# --- limits --------------------------------------------------------------------------------------------------------

HOW_TO_GO_ON = " To go on, raise the limit in the policy's [limits] or by flag, or give a new prompt."


def test_turns(path: str) -> None:
    """Two requests and no third; the calls of the second have run."""
    scene = Scene(path, *(reply(call(n, "free", f"step {n}")) for n in (1, 2)), limits=Limits(max_turns=2))
    result = scene.play()
    assert (result.stop, result.turns, scene.ran) == (StopReason.LIMIT, 2, ["free step 1", "free step 2"])
    assert result.detail == (
        "a limit was reached: 2 requests were made (turns = 2). Last action: free: step 2." + HOW_TO_GO_ON
    )
    assert scene.story().endswith("outcome 2 ok; limit; end limit")


def test_tokens_are_those_of_the_run(path: str) -> None:
    """Input and output together, checked before the next request is paid for; a new prompt counts from nothing."""
    dear = reply(call(1, "refused"), usage=(60, 40))
    scene = Scene(path, dear, reply(text="done", usage=(60, 39)), limits=Limits(max_tokens=100))
    session = scene.session = scene.agent.start()
    result = scene.agent.run("go", session)
    assert (result.stop, result.usage) == (StopReason.LIMIT, Usage(input_tokens=60, output_tokens=40))
    assert result.detail == (
        "a limit was reached: 100 tokens were used (tokens = 100). Last action: refused: work (refused)." + HOW_TO_GO_ON
    )
    assert scene.agent.run("go on", session).stop is StopReason.COMPLETED
    scene.agent.end(session)
    scene.check()
    assert session.usage == Usage(input_tokens=120, output_tokens=79)


def test_seconds(path: str) -> None:
    """By the agent's own clock: each look at it is a second later."""
    ticks = iter(range(1000))
    script = [reply(call(n, "free")) for n in range(100)]
    scene = Scene(path, *script, limits=Limits(max_seconds=12.5), monotonic=lambda: float(next(ticks)))
    result = scene.play()
    assert result.stop is StopReason.LIMIT
    assert "seconds have passed (seconds = 12.5). Last action: free: work." in result.detail
    assert 1 < result.turns < 5


def test_refusals_of_any_kind_are_counted_together(path: str) -> None:
    """The third refused call ends the run; the fourth call of the reply is answered."""
    calls = (call(1, "refused", "a"), call(2, "asked", "b"), call(3, "refused", "c"), call(4, "free"))
    scene = Scene(path, reply(*calls), limits=Limits(max_refusals=3))
    result = scene.play()
    assert (result.stop, result.refusals, scene.ran) == (StopReason.LIMIT, 3, [])
    assert result.detail == (
        "a limit was reached: 3 calls were refused (refusals = 3). Last action: refused: c (refused)." + HOW_TO_GO_ON
    )
    assert scene.results()[3] == f"Not run: {result.detail}"


def test_the_same_call_refused_three_times(path: str) -> None:
    """Also with others in between; another call's refusals do not count."""
    script = [reply(call(n, "refused", what)) for n, what in enumerate(("same", "other", "same", "same"))]
    scene = Scene(path, *script)
    result = scene.play()
    assert (result.stop, result.turns, result.refusals) == (StopReason.LIMIT, 4, 4)
    assert result.detail == (
        "a limit was reached: the same call was refused 3 times. Last action: refused: same (refused)." + HOW_TO_GO_ON
    )


def test_five_calls_in_a_row_that_cannot_be_understood(path: str) -> None:
    """A good call in between begins the count anew; the sixth of the last reply is answered."""
    bad = [ToolCall(id=f"c{n}", name="rm", arguments="{}") for n in range(6)]
    scene = Scene(path, reply(*bad[:4], call(9, "free")), reply(*bad))
    result = scene.play()
    assert (result.stop, result.turns, scene.ran) == (StopReason.LIMIT, 2, ["free work"])
    assert result.detail == (
        "a limit was reached: 5 calls in a row could not be understood (bad_calls = 5). "
        f"Last action: an unknown tool (not understood).{HOW_TO_GO_ON}"
    )
    assert scene.results()[-1] == f"Not run: {result.detail}"


def test_the_stricter_of_policy_and_argument_holds(path: str) -> None:
    """An argument cannot raise what the policy limits."""
    policy = POLICY + b"[limits]\nturns = 1\n"
    scene = Scene(path, reply(call(1, "free")), policy=policy, limits=Limits(max_turns=9))
    assert scene.play().stop is StopReason.LIMIT


# --- interrupts ----------------------------------------------------------------------------------------------------


def test_an_interrupted_tool_ends_the_turn_and_the_rest_is_answered(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", "be interrupted"), call(2, "free")))
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.INTERRUPTED, ["free be interrupted"])
    assert result.detail == "interrupted during free: be interrupted"
    assert scene.results() == [
        "Interrupted by the person; the call may be done in part.",
        "Not run: interrupted during free: be interrupted",
    ]
    assert scene.story().endswith("intent 1; outcome 1 interrupted; decide 2 none; outcome 2 not_run; end interrupted")


def test_a_signal_while_a_tool_runs_interrupts_it(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", "be signalled"), call(2, "free")))
    assert scene.play().detail == "interrupted during free: be signalled"
    assert scene.ran == ["free be signalled"]


def test_a_request_for_later_lets_the_tool_finish(path: str) -> None:
    """Its result is kept; the next call does not run."""
    scene = Scene(path, reply(call(1, "free", "be signalled for later"), call(2, "free")))
    result = scene.play()
    assert (result.stop, result.detail) == (StopReason.INTERRUPTED, "interrupted after free: be signalled for later")
    assert scene.results() == ["did be signalled for later", f"Not run: {result.detail}"]


@all_rows(
    "approver",
    [STOP, answering(raising(KeyboardInterrupt()))],
    ids=["stop at the question", "Ctrl-C at the question"],
    anew={"path": new_path},
)
def test_a_stop_at_the_question_ends_the_turn(path: str, approver: Approver) -> None:
    scene = Scene(path, reply(call(1, "asked"), call(2, "free")), approver=approver)
    result = scene.play()
    assert (result.stop, result.detail) == (StopReason.INTERRUPTED, "stopped by the person at a question")
    assert (scene.ran, result.refusals) == ([], 1)
    assert scene.results()[1] == "Not run: stopped by the person at a question"
    assert scene.story().endswith("answer 1 stop; outcome 1 denied; decide 2 none; outcome 2 not_run; end interrupted")


def test_approval_after_an_interrupt_runs_no_call(path: str) -> None:
    """The signal came while the question stood, and was only noted: it counts before the yes does."""

    def late_yes() -> object:
        scene.interrupt.request()
        return Approval(answer=Answer.YES, by="person")

    scene = Scene(path, reply(call(1, "asked"), call(2, "free")), approver=answering(late_yes))
    assert (scene.play().stop, scene.ran) == (StopReason.INTERRUPTED, [])


@all_rows(
    "kind",
    ["model_response", "call_proposed", "decision", "intent", "outcome", "model_request", "error"],
    anew={"path": new_path},
)
def test_a_signal_while_a_record_is_shown_is_obeyed_at_the_next_safe_moment(path: str, kind: str) -> None:
    """No record is lost, the log goes on and is whole, and nothing begins any more."""

    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_retry(Retry(attempt=1, attempts=2, wait_seconds=0, reason="status 503"))
        return reply(call(1, "free"), call(2, "free"))

    scene = Scene(path, stumble)
    scene.log.observers.append(lambda record: scene.interrupt.request() if record["kind"] == kind else None)
    assert scene.play().stop is StopReason.INTERRUPTED
    assert len(scene.ran) == (1 if kind == "outcome" else 0)


def test_a_signal_at_every_line_while_a_retry_is_recorded_harms_no_record(tmp_path: Path) -> None:
    """The window is open then, the model being asked; it is held shut until the record is written."""
    lines = _strike_while_a_retry_is_recorded(str(tmp_path / "counted.jsonl"), 0)
    assert lines > 30
    for moment in range(1, lines):
        _strike_while_a_retry_is_recorded(str(tmp_path / f"{moment}.jsonl"), moment)


def _strike_while_a_retry_is_recorded(path: str, moment: int) -> int:
    """Record two retries, with a signal in the second; check how it ends; return how many lines a record takes."""
    counted: list[int] = []

    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        retry = Retry(attempt=1, attempts=2, wait_seconds=0, reason="status 503")
        counted.append(len(at_line_event(-1, lambda: None, lambda: on_retry(retry))))
        at_line_event(moment, scene.interrupt.request, lambda: on_retry(retry))
        return DONE

    scene = Scene(path, stumble)
    assert scene.play().stop is StopReason.INTERRUPTED
    return counted[0]


# --- faults --------------------------------------------------------------------------------------------------------


@all_rows(
    ("calls", "approver", "detail", "ran"),
    [
        (
            (call(1, "free"), call(2, "asked"), call(3, "free")), answering(raising(RuntimeError("no terminal"))),
            "the approver failed: RuntimeError('no terminal')", ["free work"],
        ),
        (
            (call(1, "free"), call(2, "asked"), call(3, "free")), answering(raising(ToolError("x"))),
            "the approver failed: ToolError('x')", ["free work"],
        ),
        (
            (call(1, "free"), call(2, "asked"), call(3, "free")), answering(raising(ModelError("x"))),
            "the approver failed: ModelError('x')", ["free work"],
        ),
        (
            (call(1, "free"), call(2, "asked"), call(3, "free")), answering(lambda: None),
            "the approver returned None, not an Approval", ["free work"],
        ),
        (
            (call(1, "free"), call(2, "free", "cannot be judged"), call(3, "free")), None,
            (
                "the policy could not judge a call of free: TypeError: Action: facets[0] must be a Command, a PathAccess, "
                "an Opaque, an Unconfined or a ToolUse, not a str: Command(text=...) makes one"
            ), [],
        ),
    ],
    ids=[
        "an approver that raises", "an approver that raises what the model should read",
        "an approver that raises what a provider would", "an approver that returns nothing",
        "a call that cannot be judged",
    ], anew={"path": new_path})  # fmt: skip
def test_a_fault_of_the_gate_stops_the_run_and_every_call_has_its_end(
    path: str, calls: Sequence[ToolCall], approver: Approver | None, detail: str, ran: list[str]
) -> None:
    """Nothing runs after it; the history is paired; the log is whole, with one decision and one end for each call."""
    scene = Scene(path, reply(*calls), approver=approver)
    result = scene.play()
    assert (result.stop, result.detail, scene.ran) == (StopReason.GATE_ERROR, detail, ran)
    assert scene.results()[1:] == ["Not run: the run ended here."] * 2
    check_ends(path)


def test_an_approver_that_leaves_the_program_leaves_a_paired_history(path: str) -> None:
    """SystemExit passes through, as it should; what was open is ended with the session."""
    scene = Scene(path, reply(call(1, "asked"), call(2, "free")), approver=answering(raising(SystemExit(1))))
    session = scene.session = scene.agent.start()
    with pytest.raises(SystemExit):
        scene.agent.run("go", session)
    scene.agent.end(session)
    scene.check()
    check_ends(path)
    assert scene.ran == []


def check_ends(path: str) -> None:
    """Every proposed call has exactly one decision and exactly one outcome."""
    counts: dict[object, list[str]] = {}
    for record in read_log(path):
        if record["kind"] in ("call_proposed", "decision", "outcome"):
            counts.setdefault((record["session"], record["call"]), []).append(str(record["kind"]))
    assert all(kinds == ["call_proposed", "decision", "outcome"] for kinds in counts.values()), counts


def eventful(path: str, *, room: int | None = None) -> Scene:
    """A run with every road in it: retry, auto, asked and permitted, asked and denied, denied, invalid, failing."""

    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_retry(Retry(attempt=1, attempts=2, wait_seconds=0, reason="status 503"))
        return reply(call(1, "free"), call(2, "asked"), call(3, "refused"))

    second = reply(call(4, "asked", "again"), ToolCall(id="c5", name="rm", arguments="{}"), call(6, "free", "fail"))
    # No waiting for the disk: what is asked is the order of things, thousands of times.
    return Scene(
        path, stumble, second, DONE, approver=ScriptedAnswers(["y", "n"]), room=room, sync=lambda descriptor: None
    )


def test_the_log_failing_at_every_record_in_turn(tmp_path: Path) -> None:
    """For each n: the run stops with LOG_ERROR, bodies ran for written intents only, the history is paired."""
    whole = eventful(str(tmp_path / "whole.jsonl"))
    assert whole.play().stop is StopReason.COMPLETED
    assert whole.ran == ["free work", "asked work", "free fail"]
    last = whole.log.count - 1  # that of the end of the session, which `end` writes
    for room in range(1, last):
        path = str(tmp_path / f"{room}.jsonl")
        scene = eventful(path, room=room)
        session = scene.agent.start()
        result = scene.agent.run("go", session)
        kinds = [record["kind"] for record in read_log(path)]
        assert (room, result.stop, len(kinds)) == (room, StopReason.LOG_ERROR, room)
        assert (room, len(scene.ran)) == (room, kinds.count("intent"))
        assert (room, unpaired(session.messages)) == (room, "")
        assert (room, verify(path).broken_line) == (room, None)
        with pytest.raises(LogError):
            scene.agent.end(session, result)


def test_a_log_that_fails_at_the_first_or_the_last_record_is_a_log_error(tmp_path: Path) -> None:
    """Without a session of the caller's: nothing is asked of the model, or nothing is called completed."""
    scene = eventful(str(tmp_path / "first.jsonl"))
    scene.log.close()
    result = scene.agent.run("go")
    assert (result.stop, scene.model.seen, scene.ran) == (StopReason.LOG_ERROR, [], [])
    count = sum(1 for _ in read_log(_played(str(tmp_path / "whole.jsonl"))))
    scene = eventful(str(tmp_path / "last.jsonl"), room=count - 1)
    assert scene.agent.run("go").stop is StopReason.LOG_ERROR


def _played(path: str) -> str:
    scene = eventful(path)
    scene.play()
    scene.log.close()
    return path


def full_disk_outcomes(folder: str) -> list[list[object]]:
    """Run in a process of its own: the eventful run on a disk that is full in the middle of each record in turn."""
    path = os.path.join(folder, "log.jsonl")
    with open(_played(path), "rb") as file:
        lines = file.readlines()
    outcomes: list[list[object]] = []
    for number in range(1, len(lines) - 1):
        os.unlink(path)
        scene = eventful(path)
        session = scene.agent.start()
        limit = sum(len(line) for line in lines[:number]) + 40
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        result = scene.agent.run("go", session)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            scene.agent.end(session, result)
            after = "written"
        except LogError:
            after = "refused"
        found = verify(path)
        intents = sum(record["kind"] == "intent" for record in read_log(path))
        outcomes.append([
            result.stop.value, found.records - number, found.torn, found.problem, len(scene.ran) - intents,
            unpaired(session.messages), after,
        ])  # fmt: skip
        scene.log.close()
    return outcomes


def test_a_disk_that_is_full_in_the_middle_of_every_record_in_turn(tmp_path: Path) -> None:
    """The part is taken back, nothing runs unrecorded, and room that comes later is not used."""
    code = "import sys, json; sys.path[:0] = sys.argv[1].split(':'); import test_agent as t; "
    code += "print(json.dumps(t.full_disk_outcomes(sys.argv[2])))"
    # -B: under a limit on the size of files, Python would leave byte code that is cut.
    command = [sys.executable, "-B", "-c", code, HERE, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.stderr == ""
    outcomes = json.loads(child.stdout)
    assert len(outcomes) > 25
    assert outcomes == [["log_error", 0, False, "", 0, "", "refused"]] * len(outcomes)


def _play_until_killed(path: str, number: int) -> NoReturn:
    def kill(record: LogRecord) -> None:
        if record["seq"] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    scene = eventful(path)
    scene.log.observers.append(kill)
    scene.play()
    os._exit(1)  # the test sees by this that nothing was killed


def killed_outcomes(folder: str) -> list[list[object]]:
    """Run in a process of its own: a child for each record in turn, killed the moment that record is written."""
    with open(_played(os.path.join(folder, "whole.jsonl")), "rb") as file:
        count = len(file.readlines())
    outcomes: list[list[object]] = []
    for number in range(1, count):
        path = os.path.join(folder, f"{number}.jsonl")
        child = os.fork()
        if child == 0:
            _play_until_killed(path, number)
        _, status = os.waitpid(child, 0)
        found = verify(path)
        last = list(read_log(path))[-1]
        unknown = [f"{last['session']}:{last['call']}"] if last["kind"] == "intent" else []
        outcomes.append([
            os.waitstatus_to_exitcode(status), found.records - number - 1, found.torn, found.problem,
            list(found.unknown_calls) == unknown, len(found.open_sessions) - (last["kind"] != "session_ended"),
        ])  # fmt: skip
        scene = eventful(path)  # the log is free, and a new session goes on where it ends
        _run_and_end(scene, scene.agent.start())
        scene.log.close()
        again = verify(path)
        outcomes[-1] += [again.problem, list(again.unknown_calls) == unknown]
    return outcomes


def test_a_kill_after_every_record_in_turn(tmp_path: Path) -> None:
    """The log is a valid prefix that says which call may have run, and another session can continue it."""
    code = "import sys, json; sys.path[:0] = sys.argv[1].split(':'); import test_agent as t; "
    code += "print(json.dumps(t.killed_outcomes(sys.argv[2])))"
    command = [sys.executable, "-c", code, HERE, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert child.stderr == ""
    outcomes = json.loads(child.stdout)
    assert len(outcomes) > 25
    assert outcomes == [[-9, 0, False, "", True, 0, "", True]] * len(outcomes)


def play_a_mark(path: str) -> None:
    """Run in a process of its own under strace: a call whose effect the kernel sees."""
    Scene(path, reply(call(1, "free", "leave a mark")), DONE).play()


def test_the_kernel_has_synced_the_intent_before_the_body_does_anything(path: str) -> None:
    """What reached the kernel, in order: the decision and the intent, the sync, the effect, the outcome, the sync."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed: that the intent is on disk before the effect is not shown here")
    code = "import sys; sys.path[:0] = sys.argv[1].split(':'); import test_agent as t; t.play_a_mark(sys.argv[2])"
    traced = [strace, "-y", "-e", "trace=write,fdatasync,openat", "-o", f"{path}.calls"]
    command = [*traced, sys.executable, "-c", code, HERE, path]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    if "ptrace" in child.stderr:
        pytest.skip(f"strace may not trace here: {child.stderr.strip()}")
    assert (child.returncode, child.stderr) == (0, "")
    calls = [_kernel_call(line, path) for line in Path(f"{path}.calls").read_text().splitlines()]
    assert "; ".join(filter(None, calls)) == (
        "write; fdatasync; write; write; write; write; write; write; fdatasync; effect; write; fdatasync; "
        "write; write; write; fdatasync"
    )


def _kernel_call(line: str, path: str) -> str:
    name = line.partition("(")[0]
    if name == "openat":
        return "effect" if f"{path}.mark" in line else ""
    return name if f"<{path}>" in line else ""


# --- an interrupt at every line ------------------------------------------------------------------------------------

HERE = f"{os.path.dirname(os.path.abspath(__file__))}:{SUPPORT}"

ROAD = tuple(
    str(module.__file__)
    for module in (
        agent_module,
        reply_calls,
        model_requests,
        records_module,
        run_module,
        history_module,
        gate_module,
        grants_in_force,
        ruling_module,
        tool_module,
        action_log_module,
        registry_module,
        interrupt_module,
        approval_module,
    )
)

READING = ("read_log", "log_lines", "parse_line", "once", "refuse")
"""What the probes look at the file with is no part of the road."""


def at_line_event(number: int, strike: Callable[[], None], body: Callable[[], None]) -> list[tuple[str, int]]:
    """Run `body` and call `strike` right before the `number`-th line of the road; return the lines up to there.

    What `strike` raises is raised at that line, as an exception from a signal's function is.
    """
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, argument: object) -> object:
        if frame.f_code.co_filename not in ROAD or frame.f_code.co_name in READING:
            return None
        if event == "line" or (event == "call" and frame.f_code.co_name in ("__enter__", "__exit__")):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(lines) == number + 1:
                strike()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        body()
    finally:
        sys.settrace(before)
    return lines


def _moments(folder: Path) -> list[int]:
    """Return where to strike: the first and the last time that each line of the road is reached, or a part of these."""
    scene = eventful(str(folder / "moments.jsonl"))
    session = scene.agent.start()
    lines = at_line_event(-1, lambda: None, lambda: _run_and_end(scene, session))
    first = {line: number for number, line in reversed(list(enumerate(lines)))}
    last = {line: number for number, line in enumerate(lines)}
    moments = sorted({*first.values(), *last.values()})
    assert len(moments) > 300
    return spread("MOMENTS", moments, 100)


def _run_and_end(scene: Scene, session: Session) -> None:
    scene.agent.end(session, scene.agent.run("go", session))


def test_a_signal_at_every_line_of_the_road(tmp_path: Path) -> None:
    """With an Interrupt: the run ends in a result, the log is whole, and every call has its decision and its end."""
    path = str(tmp_path / "log.jsonl")
    stops: set[StopReason] = set()
    for moment in _moments(tmp_path):
        scene = eventful(path)
        session = scene.session = scene.agent.start()

        def body(scene: Scene = scene, session: Session = session) -> None:
            result = scene.agent.run("go", session)
            stops.add(result.stop)
            scene.agent.end(session, result)

        lines = at_line_event(moment, scene.interrupt.request, body)
        try:
            scene.check()
            check_ends(path)
        except AssertionError as error:
            raise AssertionError(f"a signal at {lines[moment]}: {error}") from error
        assert len(scene.ran) <= sum(record["kind"] == "intent" for record in read_log(path))
        scene.log.close()
        os.unlink(path)
    assert stops == {StopReason.COMPLETED, StopReason.INTERRUPTED}


def test_a_keyboard_interrupt_at_every_line_of_the_road(tmp_path: Path) -> None:
    """Without one, as Python's own handler raises it: no body runs without leave, the history is paired, and the log is
    whole as far as it goes, or closed. Never broken, never torn."""
    path = str(tmp_path / "log.jsonl")
    for moment in _moments(tmp_path):
        scene = eventful(path)
        session = scene.agent.start()

        def strike() -> None:
            raise KeyboardInterrupt

        def body(scene: Scene = scene, session: Session = session) -> None:
            scene.agent.run("go", session)

        lines: list[tuple[str, int]] = []
        try:
            lines = at_line_event(moment, strike, body)
        except KeyboardInterrupt:
            pass
        where = f"KeyboardInterrupt at event {moment} {lines[-1:]}"
        assert (where, unpaired(session.messages)) == (where, "")
        try:
            scene.agent.end(session)
        except LogError:
            pass  # struck while a record was written: closed for good
        found = verify(path)
        assert (where, found.broken_line, found.problem, found.torn) == (where, None, "", False)
        scene.log.close()
        os.unlink(path)


# --- anything at all -----------------------------------------------------------------------------------------------

_NAMES = st.sampled_from([*TOOLS[:3], "free", "free", "asked", "unknown", "halted"])
_DOS = st.sampled_from([
    "work", "more work", "fail", "crash", "exit", "be interrupted", "be signalled for later", "cannot be prepared",
])  # fmt: skip
_ARGUMENTS = st.one_of(
    _DOS.map(lambda do: json.dumps({"do": do})),
    _DOS.map(lambda do: json.dumps({"do": do})),
    st.sampled_from(
        ["", "{", "[]", '{"do": 1}', '{"do": "x", "do": "y"}', '{"do": "\\u0000"}', '{"do": "cannot be judged"}']
    ),
)
_CALLS = st.lists(st.tuples(st.sampled_from(["c1", "c2", "c3"]), _NAMES, _ARGUMENTS), max_size=4)
_REPLIES = st.builds(
    lambda calls, finish: reply(*(ToolCall(id=i, name=n, arguments=a) for i, n, a in calls), finish=finish),
    _CALLS,
    st.sampled_from([FinishReason.DONE] * 6 + [FinishReason.LENGTH, FinishReason.CONTENT_FILTER]),
)
_STEPS = st.one_of(
    _REPLIES, _REPLIES, _REPLIES, st.sampled_from([CutReply("cut"), ModelError("failed"), KeyboardInterrupt()])
)
_ANSWERS = st.sampled_from([*Answer, Answer.YES, Answer.YES, KeyboardInterrupt(), RuntimeError("gone"), None])


@settings(max_examples=examples(250), deadline=None)
@given(
    prompts=st.lists(st.lists(_STEPS, max_size=4), min_size=1, max_size=3),
    answers=st.lists(_ANSWERS, max_size=6),
    block=st.booleans(),
    room=st.one_of(st.none(), st.none(), st.integers(2, 40)),
    limits=st.builds(Limits, max_turns=st.integers(1, 6), max_refusals=st.integers(1, 6)),
)
def test_promises_hold_for_any_model_and_user(
    prompts: list[list[Step]],
    answers: list[Answer | BaseException | None],
    block: bool,
    room: int | None,
    limits: Limits,
) -> None:
    """Pairing before every request and at the end; a whole log; one decision and one end for each call; no body without
    leave on disk (the probes look for themselves)."""
    coming = iter(answers)

    def answer() -> object:
        given_now = next(coming, Answer.NOBODY)
        if isinstance(given_now, BaseException):
            raise given_now
        return given_now and Approval(answer=given_now, by="person")

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log.jsonl")
        script = [step for steps in prompts for step in (*steps, DONE)]
        policy = POLICY + UNATTENDED_BLOCK if block else POLICY
        # More replies than prompts may ask for: a run that stops early leaves some for the next prompt.
        scene = Scene(path, *script, *[DONE] * 3, approver=answering(answer), policy=policy, limits=limits, room=room)
        session = scene.session = scene.agent.start()
        stops = []
        for number in range(len(prompts)):
            scene.interrupt.clear()
            stops.append(scene.agent.run(f"prompt {number}", session).stop)
            assert unpaired(session.messages) == ""
        found = verify(path)
        assert (found.broken_line, found.problem, found.torn) == (None, "", False)
        intents = sum(record["kind"] == "intent" for record in read_log(path))
        assert len(scene.ran) == intents
        if room is None:
            assert StopReason.LOG_ERROR not in stops
            scene.agent.end(session)
            scene.check()
            check_ends(path)
        scene.log.close()


# --- a conversation made shorter -------------------------------------------------------------------------------------

LONG = "many words " * 3_000
TOO_LONG = ModelError("the conversation is too long", fault=ModelFault.CONTEXT)
SUMMARY = reply(text="They asked for work, and some was done.")


def summarized(scene: Scene) -> list[str]:
    """Return how long each request's conversation was, a request for a summary marked, and what the log says of it."""
    told = []
    for record in read_log(scene.path):
        if record["kind"] == "model_request":
            told.append(f"{record.get('purpose', 'turn')} of {record['messages']}")
        elif record["kind"] == "history_changed":
            told.append(f"{record['why']} {record['start']} to {record['stop']}")
    return told


def test_too_long_conversation_is_summarized_once(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, SUMMARY, DONE)
    assert scene.play().stop is StopReason.COMPLETED
    assert summarized(scene) == ["turn of 2", "turn of 4", "summary of 2", "compacted 0 to 3", "turn of 2"]
    assert scene.session is not None
    system, asked, answered = scene.session.messages
    assert (system.content, answered.content) == ("be careful", "done")
    assert "They asked for work, and some was done." in asked.content
    assert asked.content.endswith("go")


def test_too_long_a_second_time_is_an_end(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, SUMMARY, TOO_LONG)
    result = scene.play()
    assert (result.stop, result.detail, result.turns) == (StopReason.MODEL_ERROR, "the conversation is too long", 4)


@all_rows(
    ("answer", "stop", "detail"),
    [
        pytest.param(
            ModelError("status 500"),
            StopReason.MODEL_ERROR,
            "the conversation is too long A summary could not help: status 500",
            id="the request for it fails",
        ),
        pytest.param(
            reply(text=" "),
            StopReason.MODEL_ERROR,
            "the conversation is too long A summary could not help: the model gave no summary",
            id="it is empty",
        ),
        pytest.param(
            KeyboardInterrupt(),
            StopReason.INTERRUPTED,
            "interrupted while the model was summarizing",
            id="Ctrl-C meanwhile",
        ),
    ],
    anew={"path": new_path},
)
def test_failed_summary_leaves_the_conversation_unchanged(
    path: str, answer: Step, stop: StopReason, detail: str
) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, answer)
    result = scene.play()
    assert (result.stop, result.detail) == (stop, detail)
    assert scene.session is not None
    assert len(scene.session.messages) == 4
    assert "compacted" not in " ".join(summarized(scene))


def test_older_part_is_summarized_near_the_context_limit(path: str) -> None:
    script = (
        reply(call(1, "free", LONG), usage=(700, 50)),
        reply(call(2, "free", "more"), usage=(750, 50)),
        SUMMARY,
        reply(text="done", usage=(100, 1)),
    )
    scene = Scene(path, *script, context_tokens=1_000)
    assert scene.play().stop is StopReason.COMPLETED
    assert summarized(scene)[-3:] == ["summary of 2", "compacted 0 to 3", "turn of 4"]
    assert scene.results() == ["did more"]  # what was done last is kept as it was


def test_a_summary_on_demand(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), DONE, SUMMARY, reply(text="again"))
    session = scene.session = scene.agent.start()
    scene.agent.run("go", session)
    assert scene.agent.compact(session) == ""
    assert len(session.messages) == 2
    assert scene.agent.compact(session) == "there is nothing in the conversation that is worth a summary"
    assert scene.agent.run("go on", session).text == "again"
    scene.agent.end(session)
    scene.check()


def test_a_summary_counts_against_the_limits(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, SUMMARY, DONE, limits=Limits(max_turns=3))
    result = scene.play()
    assert (result.stop, result.turns) == (StopReason.LIMIT, 3)


# --- a conversation that goes on, or is changed ------------------------------------------------------------------------


def test_carried_conversation_is_logged_and_sent_to_the_model(path: str) -> None:
    carried = [Message(role=Role.USER, content="before"), Message(role=Role.ASSISTANT, content="yes")]
    scene = Scene(path, DONE)
    scene.session = scene.agent.start(carried=carried, origin={"session": "abc", "how": "forked"})
    scene.agent.run("now", scene.session)
    scene.agent.end(scene.session)
    scene.check()
    assert [message.content for message in scene.model.seen[0]] == ["be careful", "before", "yes", "now"]
    started, changed, *_ = read_log(path)
    assert started["origin"] == {"session": "abc", "how": "forked"}
    assert (changed["why"], changed["start"], changed["stop"]) == ("forked", 0, 0)


def test_change_that_separates_call_and_result_is_refused_and_not_recorded(path: str) -> None:
    scene = Scene(path, reply(call(1, "free")), DONE)
    session = scene.session = scene.agent.start()
    scene.agent.run("go", session)
    before, records = list(session.messages), scene.log.count
    with pytest.raises(ValueError, match="result"):
        scene.agent.change_history(session, "undone", 0, 2)
    assert (session.messages, scene.log.count) == (before, records)
    scene.agent.change_history(session, "undone", 0, 4)
    assert [message.role for message in session.messages] == [Role.SYSTEM]
    scene.agent.end(session)


# --- a command that says that it is done -------------------------------------------------------------------------------

MARKER_ROWS: dict[str, tuple[str | None, str, str, bool]] = {
    "the first line is the marker": ("DONE", "show DONE\nall green", "all green", True),
    "the answer ends like a tool's note": ("DONE", "show DONE\na\n[exit code 0, 9 s]", "a\n[exit code 0, 9 s]", True),
    "the marker alone": ("DONE", "show DONE", "", True),
    "the marker with a line end of DOS": ("DONE", "show DONE\r\nb", "b", True),
    "the marker later on": ("DONE", "show x\nDONE", "", False),
    "a longer word": ("DONE", "show DONE2\nb", "", False),
    "the tool's own words": ("(no output)", "say (no output)", "", False),
    "no marker is set": (None, "show DONE", "", False),
    "a marker that is none": (" ", "show \nb", "", False),
    "the command failed": ("DONE", "fail DONE", "", False),
    "the command was stopped": ("DONE", "stop DONE", "", False),
}


@all_rows(("marker", "do", "text", "ends"), MARKER_ROWS.values(), ids=MARKER_ROWS, anew={"path": new_path})
def test_a_marker_ends_the_run(path: str, marker: str | None, do: str, text: str, ends: bool) -> None:
    """The rest of the reply's calls is answered as not run."""
    scene = Scene(path, reply(call(1, "free", do), call(2, "free", "after")), DONE, done_marker=marker)
    result = scene.play()
    assert (result.stop, result.text) == (StopReason.COMPLETED, text if ends else "done")
    assert ("free after" in scene.ran) is not ends
    if ends:
        assert scene.results()[1] == "Not run: the run was done"


def test_a_limit_on_the_cost_needs_prices(path: str) -> None:
    with pytest.raises(ValueError, match="needs prices"):
        Scene(path, limits=Limits(max_cost=1.0))


@all_rows("length", range(60, 141, 10), anew={"path": new_path})
def test_unprepared_call_reveals_no_part_of_a_secret(path: str, length: int) -> None:
    """Wherever it stands in a name that is too long to be told: a part of it would not be masked."""
    token = "".join(("ghp", "_", "A1b2C3d4E5" * 4))
    named = ToolCall(id="c1", name="n" * (length - 20) + " " + token, arguments="{}")
    field = ToolCall(id="c2", name="free", arguments=json.dumps({"k" * (length - 20) + " " + token: 1}))
    scene = Scene(path, reply(named, field), DONE)
    assert scene.play().stop is StopReason.COMPLETED
    told = [*scene.results(), *(str(r["content"]) for r in read_log(path) if r["kind"] == "outcome")]
    assert len(told) == 4
    assert not any(token[:12] in text for text in told)


# --- time, within a reply ------------------------------------------------------------------------------------------------


def test_time_is_looked_at_before_every_call(path: str) -> None:
    """The calls of a reply that is already there are no way round it."""
    now = [0.0]
    scene = Scene(path, reply(*(call(n, "free", f"step {n}") for n in range(5))), limits=Limits(max_seconds=2.5),
                  monotonic=lambda: now[0])  # fmt: skip
    scene.log.observers.append(lambda record: now.append(now.pop() + 1.0) if record["kind"] == "outcome" else None)
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.LIMIT, ["free step 0", "free step 1", "free step 2"])
    assert "3 seconds have passed (seconds = 2.5)" in result.detail
    assert scene.results()[3:] == [f"Not run: {result.detail}"] * 2


NOT_BEGUN = "Error: the call was not run: {} before it began."


def test_unasked_call_does_not_begin_after_the_time_limit(path: str) -> None:
    """It ended while the intent was written: on a busy disk that takes seconds."""
    now = [0.0]
    scene = Scene(
        path, reply(call(1, "free"), call(2, "free")), limits=Limits(max_seconds=2.5), monotonic=lambda: now[0]
    )
    scene.log.observers.append(lambda record: now.append(now.pop() + 3.0) if record["kind"] == "intent" else None)
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.LIMIT, [])
    assert scene.results() == [NOT_BEGUN.format("the time of the run was over"), f"Not run: {result.detail}"]
    assert "intent 1; outcome 1 failed; limit; decide 2 none; outcome 2 not_run" in scene.story()


def test_approval_after_the_time_limit_is_valid(path: str) -> None:
    now = [0.0]

    def late() -> object:
        now[0] += 3.0
        return Approval(answer=Answer.YES, by="person")

    scene = Scene(path, reply(call(1, "asked"), call(2, "free")), approver=answering(late),
                  limits=Limits(max_seconds=2.5), monotonic=lambda: now[0])  # fmt: skip
    assert (scene.play().stop, scene.ran) == (StopReason.LIMIT, ["asked work"])


def test_time_is_looked_at_before_every_call_is_prepared(path: str) -> None:
    """Before the first one runs: a reply may hold many that take long to read."""
    now = [0.0]
    prepared: list[str] = []

    def take_a_second(do: str) -> str:
        now[0] += 1.0
        prepared.append(do)
        return do

    calls = (call(n, "free", f"step {n}") for n in range(9))
    scene = Scene(
        path, reply(*calls), limits=Limits(max_seconds=2.5), monotonic=lambda: now[0], on_prepare=take_a_second
    )
    result = scene.play()
    assert (result.stop, scene.ran, prepared) == (StopReason.LIMIT, [], ["step 0", "step 1", "step 2"])
    assert scene.results() == [f"Not run: {result.detail}"] * 9


@all_rows(("struck", "later"), product(["0", "1", "cannot be prepared"], [False, True]), anew={"path": new_path})
def test_interrupt_during_preparation_ends_the_run_before_any_question(path: str, struck: str, later: bool) -> None:
    prepared: list[str] = []

    def strike(do: str) -> str:
        prepared.append(do)
        if do == struck:
            (scene.interrupt.request_later if later else scene.interrupt.request)()
        return do

    calls = (call(0, "asked", "0"), call(1, "free", "1"), call(2, "free", "cannot be prepared"), call(3, "free", "3"))
    scene = Scene(path, reply(*calls), approver=answering(raising(Violation("asked"))), on_prepare=strike)
    result = scene.play()
    assert (result.stop, result.detail, scene.ran) == (StopReason.INTERRUPTED, "interrupted after none", [])
    assert prepared[-1] == struck
    assert scene.results() == ["Not run: interrupted after none"] * 4
    assert "intent" not in scene.story()


def test_interrupt_after_the_intent_reports_the_call_as_not_begun(path: str) -> None:
    scene = Scene(path, reply(call(1, "free")))
    scene.log.observers.append(lambda record: scene.interrupt.request() if record["kind"] == "intent" else None)
    assert (scene.play().stop, scene.ran) == (StopReason.INTERRUPTED, [])
    assert scene.results() == [NOT_BEGUN.format("the person interrupted")]


def test_of_the_prepared_calls_one_is_kept(path: str) -> None:
    """Each may hold a whole file: forty of ten megabytes do not add up."""
    held: list[weakref.ref[Content]] = []
    alive: list[int] = []

    class Content(str):
        """A text whose life can be seen."""

        __slots__ = ("__weakref__",)

    def prepare(do: str) -> str:
        alive.append(sum(content() is not None for content in held))
        content = Content(do + " " * MOST_KEPT_CHARACTERS)
        held.append(weakref.ref(content))
        return content

    scene = Scene(path, reply(*(call(n, "free", f"step {n}") for n in range(40))), DONE, on_prepare=prepare)
    assert scene.play().stop is StopReason.COMPLETED
    assert len(alive) == 79
    assert max(alive) <= 2


@all_rows("finish", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER], anew={"path": new_path})
def test_a_summary_that_is_not_whole_takes_nobodys_place(path: str, finish: FinishReason) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, reply(text="I cannot", finish=finish))
    result = scene.play()
    assert (result.stop, f"the summary is not whole ({finish.value})" in result.detail) == (
        StopReason.MODEL_ERROR,
        True,
    )
    assert scene.session is not None
    assert len(scene.session.messages) == 4


def test_summary_is_not_requested_beyond_a_limit(path: str) -> None:
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, limits=Limits(max_turns=2))
    assert (scene.play().stop, len(scene.model.seen)) == (StopReason.LIMIT, 2)


def test_time_that_ends_during_a_summary_is_the_limit_of_time(path: str) -> None:
    late = ModelError("over", fault=ModelFault.TIME)
    scene = Scene(path, reply(call(1, "free", LONG)), TOO_LONG, late, limits=Limits(max_seconds=9.0))
    assert scene.play().stop is StopReason.LIMIT


@all_rows(
    ("seconds", "taken", "problem", "stop", "given"),
    [
        (None, 9.0, "", StopReason.COMPLETED, [None]),
        (5.0, 1.0, "", StopReason.COMPLETED, [4.0]),
        (5.0, 4.0, "", StopReason.COMPLETED, [4.0]),  # it fits, whatever the time
        (5.0, 4.0, "too slow", StopReason.LIMIT, [4.0]),
        (5.0, 1.0, "wrong", StopReason.UNFIT, [4.0, 2.0]),
        (1.0, 0.0, "", StopReason.LIMIT, []),  # the time was over when the answer came
    ],
    anew={"path": new_path},
)
def test_an_answer_is_checked_within_the_time_of_the_run(
    path: str, seconds: float | None, taken: float, problem: str, stop: StopReason, given: list[float | None]
) -> None:
    now = [0.0]
    told: list[float | None] = []

    def answer(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        now[0] += 1.0
        return DONE

    def check(text: str, left: float | None) -> str:
        told.append(left)
        now[0] += taken
        return problem

    scene = Scene(
        path, answer, answer, limits=Limits(max_seconds=seconds), monotonic=lambda: now[0], check_answer=check
    )
    assert (scene.play().stop, told) == (stop, given)


@all_rows("part", ["text", "echo", "name", "id"], anew={"path": new_path})
def test_unloggable_reply_is_a_model_error(path: str, part: str) -> None:
    """The log has its end, and what the reply has used."""
    much = "x" * (MAX_REPLY_CHARACTERS + 1)
    names = {"id": "c1", "name": "free", part: much}
    asked = ToolCall(id=names["id"], name=names["name"], arguments='{"do": "work"}')
    usage = Usage(input_tokens=7, output_tokens=9)
    text, echo = (much if part == field else "" for field in ("text", "echo"))
    big = ModelResponse(text=text, echo=echo, tool_calls=(asked,), finish_reason=FinishReason.DONE, usage=usage)
    scene = Scene(path, big)
    result = scene.play()
    assert (result.stop, result.usage, scene.ran) == (StopReason.MODEL_ERROR, usage, [])
    assert scene.story() == "start; user; request; error model; end model_error"
    error = next(record for record in read_log(path) if record["kind"] == "error")
    assert (error["fault"], error["input_tokens"], error["output_tokens"]) == ("reply", 7, 9)


def test_undone_turn_does_not_count_toward_the_next_summary(path: str) -> None:
    script = (reply(call(1, "free", LONG), usage=(10, 1)), reply(text="x", usage=(950, 10)), DONE)
    scene = Scene(path, *script, context_tokens=1_000)
    session = scene.session = scene.agent.start()
    scene.agent.run("go", session)
    scene.agent.change_history(session, "undone", *session.history.last_turn)
    assert scene.agent.run("short", session).stop is StopReason.COMPLETED
    assert summarized(scene)[-1] == "turn of 2"
    scene.agent.end(session)


def test_session_continues_after_a_fault_with_the_recorded_conversation(path: str) -> None:
    """A gate error, and an exception that passes through while a tool runs: each call has one result in both."""

    def yes() -> object:
        return Approval(answer=Answer.YES, by="t")

    answers = iter([raising(RuntimeError("bug")), yes])
    scene = Scene(
        path,
        reply(call(1, "asked"), call(2, "free")),
        reply(call(3, "free", "leave the program"), call(4, "free")),
        DONE,
        approver=answering(lambda: next(answers)()),  # noqa: PLW0108 - the next one at each question
    )
    session = scene.session = scene.agent.start()
    assert scene.agent.run("one", session).stop is StopReason.GATE_ERROR
    with pytest.raises(Violation):
        scene.agent.run("two", session)
    scene.agent.run("three", session)
    scene.agent.end(session)
    assert scene.results() == ["Not run: the run ended here."] * 2 + [UNKNOWN, "Not run: the run ended here."]
    assert rebuilt(read_log(path)).messages == tuple(session.messages[1:])


def test_arguments_that_are_not_understood_are_the_last_action(path: str) -> None:
    scene = Scene(path, reply(ToolCall(id="c1", name="free", arguments="{")), limits=Limits(max_bad_calls=1))
    assert "Last action: free (not understood)." in scene.play().detail


def test_an_agent_without_tools_is_refused(path: str) -> None:
    rules = parse_policy(POLICY, "t.toml", extra_tools=TOOLS)
    with pytest.raises(ValueError, match="no tools"):
        Agent(model=Playing([DONE]), tools=[], policy=rules, approver=NOBODY, log=ActionLog.open(path))


def test_valid_call_resets_the_count_of_bad_ones(path: str) -> None:
    bad = [ToolCall(id=f"b{n}", name="rm", arguments="{}") for n in range(4)]
    scene = Scene(path, reply(*bad[:2], call(9, "free"), *bad[2:]), DONE, limits=Limits(max_bad_calls=3))
    assert scene.play().stop is StopReason.COMPLETED


def test_broken_carried_conversation_leaves_the_log_empty(path: str) -> None:
    scene = Scene(path)
    parted = [Message(role=Role.TOOL, content="of what?", tool_call_id="c9")]
    with pytest.raises(ValueError, match="c9"):
        scene.agent.start(carried=parted, origin={"how": "resumed"})
    assert scene.log.count == 0


def test_interrupt_during_a_summary_names_it(path: str) -> None:
    script = (reply(call(1, "free", LONG), usage=(900, 50)), KeyboardInterrupt())
    scene = Scene(path, *script, context_tokens=1_000)
    result = scene.play()
    assert (result.stop, result.detail) == (StopReason.INTERRUPTED, "interrupted while the model was summarizing")
    assert summarized(scene)[-1] == "summary of 2"


def test_failed_summary_is_requested_once_per_reply(path: str) -> None:
    script = (reply(call(1, "free", LONG), usage=(900, 50)), ModelError("status 500"), DONE)
    scene = Scene(path, *script, context_tokens=1_000)
    assert scene.play().stop is StopReason.COMPLETED
    assert summarized(scene) == ["turn of 2", "summary of 2", "turn of 4"]


@all_rows("context", [10_000, None], anew={"path": new_path})
def test_summary_request_is_limited_by_the_context_size(path: str, context: int | None) -> None:
    """Two characters for each token that the model takes; where nobody knows how many, a third of what was too long."""
    steps = [reply(call(n, "free", "x" * 3_000)) for n in range(30)]
    scene = Scene(path, *steps, TOO_LONG, SUMMARY, DONE, context_tokens=context)
    assert scene.play().stop is StopReason.COMPLETED
    too_long, request = scene.model.seen[30:32]
    most = 2 * context if context else characters(too_long) // 3
    assert most // 2 < characters(request) <= most


def test_failing_text_display_does_not_end_the_run(path: str) -> None:
    def speak(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_text("done")
        return DONE

    def fail(text: str) -> None:
        raise SystemExit(text)

    assert Scene(path, speak, on_text=fail).play().stop is StopReason.COMPLETED


USED = Usage(input_tokens=40, output_tokens=2)


def test_usage_of_failed_tries_is_counted_and_logged(path: str) -> None:
    """Of those that were tried again, and of the one that ended the request; it counts against the limits."""

    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_retry(Retry(attempt=1, attempts=2, wait_seconds=0, reason="cut", usage=USED))
        raise ModelError("status 500", usage=Usage(unreported=1))

    scene = Scene(path, stumble)
    result = scene.play()
    assert (result.stop, result.usage) == (StopReason.MODEL_ERROR, USED + Usage(unreported=1))
    fields = ("input_tokens", "output_tokens", "unreported")
    told = [[record.get(name) for name in fields] for record in read_log(path) if record["kind"] == "error"]
    assert told == [[40, 2, None], [0, 0, 1]]


def test_usage_of_a_failed_try_counts_against_the_limits(path: str) -> None:
    def stumble(on_text: OnText, on_retry: OnRetry) -> ModelResponse:
        on_retry(Retry(attempt=1, attempts=2, wait_seconds=0, reason="cut", usage=USED))
        return reply(call(1, "free"))

    scene = Scene(path, stumble, DONE, limits=Limits(max_tokens=42))
    assert (scene.play().stop, len(scene.model.seen)) == (StopReason.LIMIT, 1)
