"""Random runs: whatever a model, a person, a policy and the tools come up with, the log tells it as it was.

What holds is checked by tests/log_auditor.py, which shares nothing with the harness's own checks.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from log_auditor import BEGUN, Audit, Session, audited
from log_world import Playing, Step, World, mark_of, reply
from rows import all_rows
from sizes import examples

from harness.actions import Action
from harness.errors import CutReply, ModelError, ModelFault, ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.tool import ToolOutput
from harness.interrupt import Interrupt
from harness.limits import Limits
from harness.log.reader import read_log
from harness.log.transcript import rebuilt
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.loop.reply_calls import ENDED_HERE
from harness.messages import FinishReason, Message, Role, StopReason, ToolCall
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.redaction.redactor import Redactor

EXAMPLES = examples(350)
PLAIN = Redactor(key=b"k" * 32, shapes=False)
"""Nothing is masked: what is read back must be equal."""


class Left(BaseException):
    """What a tool raises that nobody expects: the run is over, and the call that was running has no end."""


# --- what may happen -------------------------------------------------------------------------------------------------

DEEDS = (
    "work", "work", "work", "fail", "crash", "exit", "be interrupted", "be signalled", "be signalled for later",
    "say \x1b[2J\u202e\ud800", "cannot be prepared",
)  # fmt: skip
ARGUMENTS: st.SearchStrategy[str] = st.one_of(
    *[st.sampled_from(DEEDS).map(lambda do: json.dumps({"do": do}))] * 6,
    st.text(max_size=20).map(lambda do: json.dumps({"do": do}, ensure_ascii=False)),
    st.sampled_from(["", "{", "[]", "null", '{"do":1}', '{"do":"a","do":"b"}', '{"do":"x","more":1}', '{"do":NaN}', "\ud800",
                     '{"do":"\\ud800"}', '{"do":"\\u0000"}', "[" * 200 + "]" * 200, '{"do":"' + "y" * 3000 + '"}']),
    st.text(max_size=30),
)  # fmt: skip
NAMES = (
    *("asked",) * 4, *("free",) * 3, "refused", "halted", "write_file", "missing", "", "\x1b[31mfree", "free\n",
)  # fmt: skip
FINISHES = (*(FinishReason.DONE,) * 6, FinishReason.LENGTH, FinishReason.CONTENT_FILTER)
FAULTS: tuple[Callable[[], BaseException], ...] = (
    lambda: ModelError("The provider failed."),
    lambda: ModelError("Too long.", fault=ModelFault.CONTEXT),
    lambda: CutReply("The reply broke off."),
    KeyboardInterrupt,
)
WORDS = ("y", "y", "y", "n", "nobody", "stop", "halt", "edit", "edit", "raise", "raise", "interrupt", "garbage")


FEW = st.sampled_from([0, 1, 1, 2, 3])


class Spoken(NamedTuple):
    """What an approver does with a question."""

    word: str
    arguments: str = "{}"


@st.composite
def replies(draw: st.DrawFn) -> Callable[[int], Step]:
    """Make a reply; its calls are numbered when it is known which they are."""
    if draw(st.integers(0, 11)) == 0:
        fault = draw(st.sampled_from(FAULTS))
        return lambda first: fault()
    calls = draw(st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS, st.booleans()), min_size=draw(FEW), max_size=4))
    text, finish = draw(st.text(max_size=10)), draw(st.sampled_from(FINISHES))

    def numbered(first: int) -> Step:
        made = [
            ToolCall(id=f"c{number}", name=name, arguments=_for(name, arguments, number, good))
            for number, (name, arguments, good) in enumerate(calls, start=first)
        ]
        return reply(*made, text=text, finish=finish)

    return numbered


def _for(name: str, arguments: str, number: int, good: bool) -> str:
    if name == "write_file" and good:
        return json.dumps({"path": f"written-{number}", "content": f"by call {number}"})
    return arguments


class Plan(NamedTuple):
    """A run that was thought out."""

    steps: list[Step]
    answers: list[Spoken] | None
    """None: nobody is there to ask."""
    policy: bytes
    limits: Limits
    prompts: int
    clears: bool
    """Whether the conversation is cleared after the first prompt."""


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    steps: list[Step] = []
    for number, make in enumerate(draw(st.lists(replies(), min_size=1 + draw(FEW), max_size=6))):
        steps.append(make(10 * number + 1))
    spoken = st.builds(Spoken, st.sampled_from(WORDS), ARGUMENTS)
    decisions = {
        name: draw(st.sampled_from(["auto", "confirm", "deny", "block"])) if draw(st.integers(0, 3)) == 0 else usual
        for name, usual in (("free", "auto"), ("asked", "confirm"), ("refused", "deny"), ("halted", "block"))
    }
    unattended = draw(st.sampled_from(["deny", "block"]))
    lines = [f'{name} = "{decision}"' for name, decision in decisions.items()]
    policy = "\n".join([
        "version = 1", "[tools]", *lines, 'write_file = "auto"', 'read_file = "auto"', "[unattended]",
        f'confirm = "{unattended}"',
    ])  # fmt: skip
    return Plan(
        steps=steps,
        answers=draw(st.lists(spoken, max_size=8) | st.lists(spoken, min_size=3, max_size=8) | st.none()),
        policy=policy.encode(),
        limits=Limits(
            max_turns=draw(st.none() | st.integers(1, 4)),
            max_refusals=draw(st.none() | st.integers(1, 3)),
            max_bad_calls=draw(st.none() | st.integers(1, 3)),
            max_tokens=draw(st.none() | st.integers(1, 60)),
        ),
        prompts=draw(st.integers(1, 3)),
        clears=draw(st.booleans()),
    )


def approver_for(answers: list[Spoken]) -> Approver:
    left = iter(answers)

    def approver(action: Action, verdict: Verdict) -> Approval:
        spoken = next(left, Spoken("n"))
        match spoken.word:
            case "y":
                return Approval(answer=Answer.YES, by="person")
            case "n":
                return Approval(answer=Answer.NO, by="person", words=spoken.arguments[:20])
            case "nobody":
                return Approval(answer=Answer.NOBODY, by="nobody")
            case "stop":
                return Approval(answer=Answer.STOP, by="person")
            case "halt":
                return Approval(answer=Answer.HALT, by="person")
            case "edit":
                return Approval(answer=Answer.EDIT, by="person", arguments=spoken.arguments)
            case "interrupt":
                raise KeyboardInterrupt
            case "garbage":
                garbage: Any = "yes"
                return garbage  # type: ignore[no-any-return]
            case _:
                raise RuntimeError("the approver broke")

    return approver


class Told:
    """Does what calls ask for, and keeps a record of its own of what ran."""

    def __init__(self, interrupt: Interrupt) -> None:
        self.ran: list[str] = []
        self._interrupt = interrupt

    def __call__(self, action: Action, *, done: bool) -> ToolOutput | None:
        if not done:
            self.ran.append(mark_of(action.call))
            return None
        match action.request:
            case "fail":
                raise ToolError("It did not work.")
            case "crash":
                raise RuntimeError("a bug")
            case "exit":
                raise SystemExit(3)
            case "be interrupted":
                raise KeyboardInterrupt
            case "be signalled":
                self._interrupt.request()
            case "be signalled for later":
                self._interrupt.request_later()
            case "leave":
                _leave()
            case _:
                pass
        return ToolOutput(content=f"did {action.request}", exit_code=0)


def _leave() -> NoReturn:
    raise Left


# --- what must hold --------------------------------------------------------------------------------------------------


def play(plan: Plan, folder: str) -> tuple[World, Told, list[StopReason]]:
    """Let a plan happen in one session, and check what the live session knows and the log must know too."""
    interrupt = Interrupt()
    told = Told(interrupt)
    world = World(
        folder,
        plan.steps,
        approver=deny_all if plan.answers is None else approver_for(plan.answers),
        body=told,
        limits=plan.limits,
        interrupt=interrupt,
        redactor=PLAIN,
        policy_text=plan.policy,
    )
    session, stops, result, faults = world.agent.start(), [], None, 0
    for number in range(plan.prompts):
        interrupt.clear()
        try:
            result = world.agent.run(f"prompt {number}", session)
        except Left:
            result, faults = None, faults + 1
            continue
        stops.append(result.stop)
        faults += result.stop is StopReason.GATE_ERROR
        if number == 0 and plan.clears and not faults:
            world.agent.change_history(session, "cleared", 0, len(session.messages) - 1)
    world.agent.end(session, result)
    live = tuple(session.messages[1:])
    world.log.close()
    records = [record for record in read_log(world.path) if record["session"] == session.identity]
    again = rebuilt(records).messages
    assert _loosely(again) == _loosely(live)
    if not faults:
        assert again == live
    return world, told, stops


def _loosely(messages: tuple[Message, ...]) -> list[Message]:
    """Return a conversation without what is told of calls that a fault cut short: the tests below look at that."""
    ends = ("Not run: the session ended", f"Not run: {ENDED_HERE}")
    return [
        replace(message, content="cut short")
        if message.role is Role.TOOL and message.content.endswith(ends)
        else message
        for message in messages
    ]


def check_world(audit: Audit, told: Told) -> None:
    """What ran in the world is what the log says ran: no body without an intent, and none that ended without its body."""
    begun: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    for _, of in audit.calls:
        proposed, outcome = of.one("call_proposed"), of.one("outcome")
        assert proposed is not None
        if not of.ran or proposed["tool"] == "write_file":
            continue
        mark = f"{proposed['id']}.{proposed['arguments_sha256'][:16]}"
        begun[mark] += 1
        # An interrupt that came before the body began leaves an intent and an end, and no body.
        if outcome is not None and outcome["status"] in BEGUN - {"interrupted"}:
            ended[mark] += 1
    ran = Counter(told.ran)
    assert ran <= begun
    assert ended <= ran


def check_replies(session: Session, records: list[dict[str, Any]]) -> None:
    """Every call of every reply is proposed, in order, from 1; an edited one at the place of the one that it replaces.

    Not those of a reply that was to be a summary: it is no part of the conversation, and nothing of it is ever judged.
    """
    waiting, step = 0, 0
    for record in records:
        if record["kind"] == "model_response" and record.get("purpose") != "summary":
            assert waiting == 0
            waiting, step = record["calls"], 0
        elif record["kind"] == "call_proposed" and "edited_from" not in record:
            waiting, step = waiting - 1, step + 1
            assert (waiting >= 0, record["step"]) == (True, step)
        elif record["kind"] == "call_proposed":
            source = session.calls[record["edited_from"]].one("call_proposed")
            assert source is not None
            assert (record["step"], record["turn"], record["id"]) == (source["step"], source["turn"], source["id"])
    assert waiting == 0


def check(world: World, told: Told) -> Audit:
    audit, found = audited(world.path), verify(world.path)
    assert audit.breaches == []
    assert (found.problem, found.torn, found.records, found.head) == ("", False, len(audit.records), audit.head)
    assert set(found.unknown_calls) == audit.unknown
    assert audit.open == set(found.open_sessions) == set()
    check_world(audit, told)
    for name, session in audit.sessions.items():
        check_replies(session, [record for record in audit.records if record["session"] == name])
    return audit


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_the_log_of_any_run_tells_it_as_it_was(plan: Plan) -> None:
    """One decision and one end for each call; no run without leave; nothing after the end; counts, chain, clock, history."""
    with tempfile.TemporaryDirectory() as folder:
        world, told, _ = play(plan, folder)
        assert check(world, told).unknown == set()


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), plans(), st.integers(0, 5))
def test_unfinished_call_stays_unknown_and_the_next_session_starts(first: Plan, second: Plan, place: int) -> None:
    """A tool raises what nobody expects: its call has no end, in this session, and after another one in the same file."""
    leaving = reply(ToolCall(id="c99", name="free", arguments='{"do": "leave"}'))
    steps = list(first.steps)
    steps.insert(min(place, len(steps)), leaving)
    with tempfile.TemporaryDirectory() as folder:
        world, told, _ = play(first._replace(steps=steps), folder)
        unknown = check(world, told).unknown
        left = any(mark.startswith("c99.") for mark in told.ran)
        assert len(unknown) == left
        again, told_again, _ = play(second._replace(steps=[*_renumbered(second.steps)]), folder)
        told_again.ran += told.ran
        assert check(again, told_again).unknown == unknown


def _renumbered(steps: list[Step]) -> list[Step]:
    """Return the steps with other ids: the traces of both sessions lie in one folder."""
    made: list[Step] = []
    for step in steps:
        if isinstance(step, BaseException):
            made.append(step)
            continue
        calls = [ToolCall(id=f"d{call.id}", name=call.name, arguments=call.arguments) for call in step.tool_calls]
        made.append(reply(*calls, text=step.text, finish=step.finish_reason))
    return made


def test_random_runs_reach_every_end_and_status() -> None:
    """Else the properties above would hold of little."""
    found: set[str] = set()
    for number in (2, 0, *range(40)):  # these two come to all of it, as things are
        if found >= EVERYTHING:
            break
        found |= seen_in_some(number)
    assert found >= EVERYTHING


EVERYTHING = {
    *(f"stop {word}" for word in (
        "completed", "blocked", "limit", "length", "content_filter", "cut", "model_error", "gate_error", "interrupted",
    )),
    *(f"decision {word}" for word in ("auto", "confirm", "deny", "block", "none")),
    *(f"answer {word}" for word in ("yes", "no", "stop", "nobody", "edit")),
    *(f"status {word}" for word in (
        "ok", "failed", "interrupted", "crashed", "invalid", "denied", "blocked", "not_run",
    )),
    *(f"kind {word}" for word in ("history_changed", "limit", "error")),
}  # fmt: skip


def seen_in_some(number: int) -> set[str]:
    """Return what came about in some random runs, always the same ones for a number."""
    found: set[str] = set()

    @seed(number)
    @settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(plans())
    def look(plan: Plan) -> None:
        with tempfile.TemporaryDirectory() as folder:
            world, _, ends = play(plan, folder)
            found.update(f"stop {stop.value}" for stop in ends)
            for record in read_log(world.path):
                for name in ("decision", "answer", "status", "kind"):
                    if name in record:
                        found.add(f"{name} {record[name]}")

    look()
    return found


FAULTY: tuple[tuple[str, list[Spoken]], ...] = (
    ("at its question", [Spoken("raise")]),
    ("after it was changed into another", [Spoken("edit", '{"do": "work"}'), Spoken("raise")]),
)


@all_rows("clears", [False, True], ids=["", "and then the conversation is cleared"])
@all_rows("answers", [answers for _, answers in FAULTY], ids=[name for name, _ in FAULTY])
def test_interrupted_call_reads_the_same_in_conversation_and_log(
    tmp_path: Path, answers: list[Spoken], clears: bool
) -> None:
    """The approver breaks: what the live history says of the call is what a resumed session will read."""
    call = ToolCall(id="c1", name="asked", arguments='{"do": "x"}')
    world = World(str(tmp_path), [reply(call)], approver=approver_for(answers))
    session = world.agent.start()
    assert world.agent.run("go", session).stop is StopReason.GATE_ERROR
    if clears:
        world.agent.change_history(session, "cleared", 0, len(session.messages) - 1)
    world.agent.end(session)
    live = tuple(session.messages[1:])
    world.log.close()
    assert audited(world.path).breaches == []
    assert rebuilt(read_log(world.path)).messages == live


def test_auditor_finds_impossible_records(tmp_path: Path) -> None:
    """A log with one record less, or another word, in it: what checks the runs above is not blind itself."""
    plan = Plan(
        steps=[reply(ToolCall(id="c1", name="asked", arguments='{"do": "work"}')), reply(text="done")],
        answers=[Spoken("y")], policy=b'version = 1\n[tools]\nasked = "confirm"\n', limits=Limits(), prompts=1, clears=False,
    )  # fmt: skip
    world, told, _ = play(plan, str(tmp_path))
    check(world, told)
    with open(world.path, "rb") as file:
        lines = file.readlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    for kind in ("decision", "approval_asked", "approval_answered", "intent", "outcome", "call_proposed"):
        place = kinds.index(kind)
        assert [breach for breach in Audit(lines[:place] + lines[place + 1 :]).breaches if "follow" not in breach], kind
    for old, new in (
        (b'"answer":"yes"', b'"answer":"no"'),
        (b'"decision":"confirm"', b'"decision":"deny"'),
        (b'"calls":1', b'"calls":2'),
    ):
        changed = [line.replace(old, new) if b"model_response" not in line else line for line in lines]
        assert [breach for breach in Audit(changed).breaches if "follow" not in breach], new
    digest = json.loads(lines[kinds.index("intent")])["arguments_sha256"].encode()
    lines[kinds.index("intent")] = lines[kinds.index("intent")].replace(digest, b"0" * 64)
    assert any("other arguments" in breach for breach in Audit(lines).breaches)


def test_exhausted_model_ends_the_run() -> None:
    assert Playing([]).complete([], [], on_text=print, on_retry=print).text == "nothing more"
