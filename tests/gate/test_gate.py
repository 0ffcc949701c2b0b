"""The gate: who gets a permit, what a permit is good for, what is on disk by then, and what the model is told."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from agent_scene import Asked
from log_scene import begun, proved, unsynced
from rows import all_rows

from harness.actions import (
    Access,
    Action,
    Command,
    Decision,
    Effects,
    Facet,
    JsonValue,
    Opaque,
    PathAccess,
    Place,
    ToolUse,
)
from harness.errors import GateError, LogError, ModelError, PolicyError, ToolError
from harness.gate.approval import Approval, Approver, deny_all
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.pending_call import CallEnd, PendingCall
from harness.gate.registry import ToolRegistry
from harness.gate.ruling import Permit, Refusal, refusal_text, rule_on
from harness.gate.tool import ToolOutput
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.verify import Verification, verify
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.model import ToolSpec
from harness.policy.loader import parse_policy
from harness.policy.policy import Policy
from harness.policy.rules import Layer, Origin
from harness.policy.verdict import FacetVerdict, Source, Verdict
from harness.record import replace

POLICY = b"""
version = 1
name = "table"
[tools]
free = "auto"
asked = "confirm"
refused = "deny"
halted = "block"
bash = "confirm"
write_file = "auto"
[unattended]
confirm = "deny"
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest", "..."]
flags = ["-q"]
[[rule]]
id = "hands-off"
decision = "deny"
argv = ["touch"]
reason = "Nothing is touched here."
hint = "Ask for the file instead."
"""

TOOLS = ("free", "asked", "refused", "halted")


def policy(*, unattended: str = "deny") -> Policy:
    text = POLICY.replace(b'confirm = "deny"', f'confirm = "{unattended}"'.encode())
    return parse_policy(text, "table.toml", extra_tools=TOOLS)


def action(tool: str, *facets: Facet, summary: str = "", preview: str = "the whole of it") -> Action:
    call = ToolCall(id="c1", name=tool, arguments='{"x": 1}')
    return Action(
        call=call, tool=tool, arguments={}, facets=facets, summary=summary or tool, preview=preview, request=None
    )


def command(*argv: str) -> Command:
    return Command(text=" ".join(argv), argv=argv)


def writing(path: str) -> PathAccess:
    return PathAccess(written=path, real=f"/w/{path}", names=(path,), access=Access.WRITE, place=Place.INSIDE)


def says(answer: Answer, by: str = "person", words: str = "") -> Callable[[], object]:
    return lambda: Approval(answer=answer, by=by, words=words)


def raises(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


def returns(value: object) -> Callable[[], object]:
    return lambda: value


YES = says(Answer.YES)


class Given:
    """A tool that prepares what a test says, and says that it did what a test says."""

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(
            name=name, description="", parameters={"type": "object", "properties": {"x": {"type": "integer"}}}
        )
        self.next: Action | None = None
        self.output = ToolOutput(content="done")
        self.ran: list[Action] = []

    def prepare(self, call: ToolCall, arguments: Mapping[str, JsonValue]) -> Action:
        assert self.next is not None
        return self.next

    def run(self, action: Action, effects: Effects) -> ToolOutput:
        self.ran.append(action)
        return self.output


class Desk(NamedTuple):
    """A gate, its log, and what was asked."""

    gate: Gate
    log: ActionLog
    asked: Asked
    path: Path

    def call(self, judged: Action, output: ToolOutput | None = None) -> CallEnd:
        """Put an action through the gate, as if it was prepared from its call."""
        return self.gate.call(self.pending(judged, output))

    def pending(self, judged: Action, output: ToolOutput | None = None) -> PendingCall:
        given(self.gate, judged.tool).next = judged
        given(self.gate, judged.tool).output = output or ToolOutput(content="done")
        return self.gate.propose(judged.call)

    def ran(self, tool: str) -> list[Action]:
        return given(self.gate, tool).ran

    def kinds(self) -> list[str]:
        """Return the kinds of all records but the session's."""
        return [str(record["kind"]) for record in self.records()]

    def records(self) -> list[LogRecord]:
        return [record for record in read_log(str(self.path)) if record["kind"] != "session_started"]


MakeDesk = Callable[..., Desk]


def given(gate: Gate, tool: str) -> Given:
    found = gate.tools[tool]
    assert isinstance(found, Given)
    return found


def tools() -> ToolRegistry:
    return ToolRegistry([Given(name) for name in (*TOOLS, "bash", "write_file")])


def new_desk(tmp_path: Path) -> Iterator[MakeDesk]:
    """Make a gate with a log of its own, in which a session has begun."""

    def make(answer: Callable[[], object] = YES, *, unattended: str = "deny", room: int = 1000) -> Desk:
        path = tmp_path / "log.jsonl"
        log = begun(ActionLog.open(str(path), sync=unsynced), policy(unattended=unattended))
        asked = Asked(answer)
        left = iter(range(room))

        def close_when_full(record: LogRecord) -> None:
            if next(left) == room - 1:
                log.close()

        if room == 0:
            log.close()
        log.observers.append(close_when_full)
        return Desk(
            Gate(
                tools=tools(),
                policy=policy(unattended=unattended),
                approver=asked,
                log=log,
            ),
            log,
            asked,
            path,
        )

    yield make


desk = pytest.fixture(new_desk, name="desk")


STATUSES = {Decision.DENY: ResultStatus.DENIED, Decision.BLOCK: ResultStatus.BLOCKED}


# --- decision x answer ---------------------------------------------------------------------------------------------

ANSWERS = {
    "yes": says(Answer.YES),
    "no": says(Answer.NO),
    "stop": says(Answer.STOP),
    "nobody": says(Answer.NOBODY, by="nobody"),
    "raises": raises(RuntimeError("no terminal")),
    "raises KeyboardInterrupt": raises(KeyboardInterrupt()),
    "returns None": returns(None),
}


@all_rows("answer", ANSWERS.values(), ids=ANSWERS.keys(), anew={"desk": new_desk})
def test_auto_is_permitted_without_asking(desk: MakeDesk, answer: Callable[[], object]) -> None:
    here = desk(answer)
    judged = action("free")
    assert here.call(judged).result.status is ResultStatus.OK
    assert [ran is judged for ran in here.ran("free")] == [True]
    assert here.asked.shown == []
    assert here.kinds() == ["call_proposed", "decision", "intent", "outcome"]


def begun_dry(path: Path) -> ActionLog:
    log = ActionLog.open(str(path))
    log.append("session_started", {"harness": "test", "policy_sha256": policy().sha256, "dry_run": True})
    return log


@all_rows(
    ("tool", "answer", "status"),
    [
        ("free", YES, "not_run"),
        ("asked", YES, "not_run"),
        ("asked", says(Answer.NO), "denied"),
        ("refused", YES, "denied"),
        ("halted", YES, "blocked"),
    ],
)
def test_dry_run_of_the_gate_runs_no_call(tmp_path: Path, tool: str, answer: Callable[[], object], status: str) -> None:
    with_log = begun_dry(tmp_path / "log.jsonl")
    gate = Gate(
        tools=tools(),
        policy=policy(),
        approver=Asked(answer),
        log=with_log,
        options=GateOptions(dry_run=True),
    )
    here = Desk(gate, with_log, Asked(answer), tmp_path / "log.jsonl")
    assert here.call(action(tool)).result.status.value == status
    assert here.ran(tool) == []
    records = list(read_log(str(tmp_path / "log.jsonl")))
    assert [str(one["status"]) for one in records if one["kind"] == "outcome"] == [status]
    assert [one for one in records if one["kind"] == "intent"] == []


def test_the_log_takes_no_intent_in_a_dry_run(tmp_path: Path) -> None:
    """Whoever wrote it: a gate that forgot, or a forger."""
    log = begun_dry(tmp_path / "log.jsonl")
    gate = Gate(tools=tools(), policy=policy(), approver=Asked(YES), log=log)
    here = Desk(gate, log, Asked(YES), tmp_path / "log.jsonl")
    with pytest.raises(LogError, match="lets call 1 run in a dry run"):
        here.call(action("free"))
    assert here.ran("free") == []


@all_rows(
    ("tool", "decision", "answer"),
    [
        (tool, decision, answer)
        for tool, decision in (("refused", Decision.DENY), ("halted", Decision.BLOCK))
        for answer in ANSWERS.values()
    ],
    anew={"desk": new_desk},
)
def test_deny_and_block_are_refused_without_asking(
    desk: MakeDesk, tool: str, decision: Decision, answer: Callable[[], object]
) -> None:
    here = desk(answer)
    ended = here.call(action(tool))
    assert (ended.result.status, ended.ends_turn, here.asked.shown) == (STATUSES[decision], False, [])
    assert here.ran(tool) == []
    assert here.kinds() == ["call_proposed", "decision", "outcome"]


def test_confirm_with_a_yes_is_permitted(desk: MakeDesk) -> None:
    here = desk(says(Answer.YES, words="go on"))
    judged = action("asked")
    assert here.call(judged).result.status is ResultStatus.OK
    assert [ran is judged for ran in here.ran("asked")] == [True]
    assert [shown is judged for shown, _ in here.asked.shown] == [True]
    assert here.kinds() == ["call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome"]
    assert here.records()[3]["words"] == "go on"


@all_rows(
    ("answer", "unattended", "decision", "ends_turn"),
    [
        (says(Answer.NO), "deny", Decision.DENY, False),
        (says(Answer.NO), "block", Decision.DENY, False),
        (says(Answer.STOP), "deny", Decision.DENY, True),
        (says(Answer.STOP), "block", Decision.DENY, True),
        (raises(KeyboardInterrupt()), "deny", Decision.DENY, True),
        (raises(KeyboardInterrupt()), "block", Decision.DENY, True),
        (says(Answer.NOBODY, by="nobody"), "deny", Decision.DENY, False),
        (says(Answer.NOBODY, by="nobody"), "block", Decision.BLOCK, False),
    ],
    ids=[
        "no is a denial",
        "no is a denial, whatever holds for nobody",
        "stop is a denial that ends the turn",
        "stop is no block",
        "Ctrl-C at the question is a stop",
        "Ctrl-C at the question is no block",
        "nobody there: denied where the policy says so",
        "nobody there: blocked where the policy says so",
    ],
    anew={"desk": new_desk},
)
def test_confirm_without_a_yes_is_refused(
    desk: MakeDesk, answer: Callable[[], object], unattended: str, decision: Decision, ends_turn: bool
) -> None:
    here = desk(answer, unattended=unattended)
    ended = here.call(action("asked"))
    assert (ended.result.status, ended.ends_turn, here.ran("asked")) == (STATUSES[decision], ends_turn, [])
    assert here.kinds() == ["call_proposed", "decision", "approval_asked", "approval_answered", "outcome"]
    assert here.records()[-1]["status"] == ("blocked" if decision is Decision.BLOCK else "denied")


@all_rows(
    ("answer", "words"),
    [
        (raises(RuntimeError("no terminal")), r"the approver failed: RuntimeError\('no terminal'\)"),
        (raises(ToolError("x")), r"the approver failed: ToolError\('x'\)"),
        (raises(PolicyError("x")), r"the approver failed: PolicyError\('x'\)"),
        (raises(ModelError("x")), r"the approver failed: ModelError\('x'\)"),
        (returns(None), "returned None, not an Approval"),
        (returns(True), "returned a bool, not an Approval"),
        (returns("yes"), "returned a str, not an Approval"),
        (returns(Approval(answer=cast(Any, "yes"), by="person")), "no valid Approval"),
        (returns(Approval(answer=cast(Any, True), by="person")), "no valid Approval"),
        (returns(Approval(answer=Answer.YES, by=cast(Any, None))), "no valid Approval"),
        (returns(Approval(answer=Answer.YES, by="person", words=cast(Any, b"y"))), "no valid Approval"),
    ],
    ids=[
        "an error",
        "an error meant for the model",
        "an error meant for the operator",
        "an error of the provider",
        "nothing",
        "True",
        "a word",
        "an approval whose answer is a word",
        "an approval whose answer is True",
        "an approval by nobody at all",
        "an approval whose words are bytes",
    ],
    anew={"desk": new_desk},
)
def test_an_approver_that_fails_is_a_fault_of_the_gate(
    desk: MakeDesk, answer: Callable[[], object], words: str
) -> None:
    """Nothing is permitted, nothing is answered, and no intent stands in the log."""
    here = desk(answer)
    with pytest.raises(GateError, match=words):
        here.call(action("asked"))
    assert here.ran("asked") == []
    assert here.kinds() == ["call_proposed", "decision", "approval_asked"]


@all_rows("error", [LogError("full"), GateError("odd")], ids=["of the log", "of the gate"], anew={"desk": new_desk})
def test_an_approver_passes_errors_on_that_stop_the_run_anyway(desk: MakeDesk, error: Exception) -> None:
    here = desk(raises(error))
    with pytest.raises(type(error), match=str(error)):
        here.call(action("asked"))
    assert "intent" not in here.kinds()


@all_rows(
    "judged",
    [
        action("free", "not a facet"),  # type: ignore[arg-type]
        replace(action("free"), facets=None),
        replace(action("free"), facets=(command(),)),
    ],
    ids=["a facet of no known kind", "no facets", "a command without a program"],
    anew={"desk": new_desk},
)
def test_an_action_that_cannot_be_judged_is_a_fault_of_the_gate(desk: MakeDesk, judged: Action) -> None:
    """Its default would be auto: what no rule knows must not fall to a default."""
    here = desk()
    pending = here.pending(judged)
    with pytest.raises(GateError, match="the policy could not judge a call of free"):
        here.gate.call(pending)
    with pytest.raises(GateError, match="the policy could not judge a call of free"):
        here.gate.blocks(pending)
    assert here.kinds() == ["call_proposed"]


# --- decision x answer x failing log -------------------------------------------------------------------------------

ROADS = {
    "auto": ("free", "yes", ["call_proposed", "decision", "intent", "outcome"]),
    "confirm, yes": (
        "asked",
        "yes",
        ["call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome"],
    ),
    "confirm, no": ("asked", "no", ["call_proposed", "decision", "approval_asked", "approval_answered", "outcome"]),
    "deny": ("refused", "yes", ["call_proposed", "decision", "outcome"]),
    "block": ("halted", "yes", ["call_proposed", "decision", "outcome"]),
}


@all_rows(
    ("road", "room"),
    [(road, room) for road, (_, _, kinds) in ROADS.items() for room in range(len(kinds))],
    ids=[f"{road}, no room for the {kinds[n]}" for road, (_, _, kinds) in ROADS.items() for n in range(len(kinds))],
    anew={"desk": new_desk},
)
def test_a_record_that_cannot_be_written_stops_everything(desk: MakeDesk, road: str, room: int) -> None:
    """LogError, and nothing further is written; nothing runs whose intent is not written."""
    tool, answer, kinds = ROADS[road]
    here = desk(ANSWERS[answer], room=room)
    with pytest.raises(LogError):
        here.call(action(tool))
    assert here.kinds() == kinds[:room]
    assert len(here.ran(tool)) == (1 if "intent" in kinds[:room] else 0)
    assert len(here.asked.shown) == (1 if "approval_asked" in kinds[:room] else 0)
    assert verify(str(here.path)).broken_line is None


@all_rows(("tool", "answer", "kinds"), ROADS.values(), ids=ROADS.keys(), anew={"desk": new_desk})
def test_complete_log_has_all_records_of_the_call(desk: MakeDesk, tool: str, answer: str, kinds: list[str]) -> None:
    """The counterpart of the table above: it fails for no other reason than the missing room."""
    here = desk(ANSWERS[answer], room=len(kinds))
    assert (here.call(action(tool)).result.status is ResultStatus.OK) == ("intent" in kinds)
    assert here.kinds() == kinds


def test_an_outcome_that_cannot_be_written_is_a_log_error(desk: MakeDesk) -> None:
    """The run happened; the log shows an intent whose end is not known."""
    here = desk(room=3)
    with pytest.raises(LogError):
        here.call(action("free"))
    assert len(here.ran("free")) == 1
    assert verify(str(here.path)).unknown_calls == (f"{here.log.session}:1",)


def test_interrupt_during_the_intent_leaves_no_permit(desk: MakeDesk) -> None:
    """Ctrl-C between the record and the permit: the intent is on disk, and there is nothing to run it with."""
    here = desk()

    def interrupted(record: LogRecord) -> None:
        if record["kind"] == "intent":
            raise KeyboardInterrupt

    here.log.observers.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        here.call(action("free"))
    assert (here.ran("free"), here.kinds()) == ([], ["call_proposed", "decision", "intent"])


# --- rule_on -------------------------------------------------------------------------------------------------------


def _verdict(decision: Decision) -> Verdict:
    facet = FacetVerdict(facet=ToolUse(tool="t"), decision=decision, source=Source.DEFAULT, reason="because", by="x")
    return Verdict(
        decision=decision, facets=(facet,), effects=Effects(read=None, write=None, network=False, unasked=False)
    )


_APPROVALS = (None, *(Approval(answer=answer, by="person") for answer in Answer))
_NO_ONE = (None, Approval(answer=Answer.NOBODY, by="person"))
_HALT = Approval(answer=Answer.HALT, by="person")


@all_rows(
    ("decision", "approval", "unattended"),
    product(Decision, _APPROVALS, (Decision.DENY, Decision.BLOCK)),
    anew={"desk": new_desk},
)
def test_rule_on_is_total_and_permits_two_rows_only(
    desk: MakeDesk, decision: Decision, approval: Approval | None, unattended: Decision
) -> None:
    """Auto, and a confirm with a yes. Even those permits are good for nothing before the gate has written the intent."""
    judged = action("free")
    proposal = desk().gate.propose(judged.call).proposal
    ruling = rule_on(proposal, judged, _verdict(decision), approval, unattended)
    yes = approval is not None and approval.answer is Answer.YES
    if decision is Decision.AUTO or (decision is Decision.CONFIRM and yes):
        assert isinstance(ruling, Permit)
        with pytest.raises(GateError, match="without a valid permit"):
            ruling.redeem()
    else:
        assert isinstance(ruling, Refusal)
        assert ruling.decision is (
            decision
            if decision is not Decision.CONFIRM
            else Decision.BLOCK
            if approval == _HALT or (unattended is Decision.BLOCK and approval in _NO_ONE)
            else Decision.DENY
        )


# --- permits -------------------------------------------------------------------------------------------------------


def permit_for(here: Desk, judged: Action) -> Permit:
    """Return a permit as the gate has it when the intent is written."""
    ruling = rule_on(here.gate.propose(judged.call).proposal, judged, _verdict(Decision.AUTO), None, Decision.DENY)
    assert isinstance(ruling, Permit)
    ruling.seal.armed = True
    return ruling


def _forged(permit: Permit) -> Permit:
    return Permit(
        proposal=permit.proposal,
        action=permit.action,
        verdict=permit.verdict,
        approval=None,
        seal=None,  # type: ignore[arg-type]
    )


def _with_an_imitated_seal(permit: Permit) -> Permit:
    class Imitation:
        armed = True
        action = permit.action

        def __init__(self) -> None:
            self.permit: object = None

    seal = Imitation()
    made = replace(permit, seal=seal)
    seal.permit = made
    return made


def _with_a_copied_seal(permit: Permit) -> Permit:
    return replace(permit, seal=copy.copy(permit.seal))


def _with_a_deeply_copied_seal(permit: Permit) -> Permit:
    return replace(permit, seal=copy.deepcopy(permit.seal))


@all_rows(
    "change",
    [
        _forged,
        _with_an_imitated_seal,
        _with_a_copied_seal,
        _with_a_deeply_copied_seal,
        replace,
        lambda permit: replace(permit, action=action("free", summary="another")),
        lambda permit: replace(permit, action=replace(permit.action)),
        lambda permit: replace(permit, proposal=replace(permit.proposal, number=7)),
        lambda permit: replace(permit, verdict=replace(permit.verdict, notes=("x",))),
    ],
    ids=[
        "made by hand",
        "made by hand with a seal that looks right",
        "with a copy of the seal",
        "with a deep copy of the seal",
        "copied field by field",
        "for another action",
        "for an equal action that is another object",
        "for another call of the log",
        "with another verdict",
    ],
    anew={"desk": new_desk},
)
def test_only_the_very_permit_that_the_gate_gave_can_be_redeemed(
    desk: MakeDesk, change: Callable[[Permit], Permit]
) -> None:
    """What was made of it is refused, and spoils nothing: the original is still good, once."""
    here = desk()
    judged = action("free")
    permit = permit_for(here, judged)
    with pytest.raises(GateError, match="a call was about to run without a valid permit"):
        change(permit).redeem()
    assert permit.redeem() is judged
    with pytest.raises(GateError, match="a call was about to run without a valid permit"):
        permit.redeem()
    with pytest.raises(GateError, match="a call was about to run without a valid permit"):
        change(permit).redeem()


def test_copying_a_permit_gives_the_permit(desk: MakeDesk) -> None:
    """copy and deepcopy cannot double it."""
    permit = permit_for(desk(), action("free"))
    assert copy.copy(permit) is permit
    assert copy.deepcopy(permit) is permit


@all_rows("protocol", range(pickle.HIGHEST_PROTOCOL + 1), anew={"desk": new_desk})
def test_a_permit_does_not_survive_pickling(desk: MakeDesk, protocol: int) -> None:
    """Neither sent to another process nor kept for later."""
    permit = permit_for(desk(), action("free"))
    with pytest.raises((TypeError, AttributeError)):
        pickle.loads(pickle.dumps(permit, protocol))


def test_a_permit_is_frozen_and_final(desk: MakeDesk) -> None:
    """Its action cannot be exchanged."""
    permit = permit_for(desk(), action("free"))
    with pytest.raises(AttributeError, match="frozen"):
        permit.action = action("asked")  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        permit.action.tool = "asked"  # type: ignore[misc]


# --- what is written -----------------------------------------------------------------------------------------------


def _bare(record: LogRecord) -> dict[str, object]:
    common = ("v", "seq", "time", "mono_ns", "session", "prev", "seconds", "duration_ms")
    return {name: value for name, value in record.items() if name not in common and not name.endswith("_sha256")}


def test_the_records_of_a_call_that_was_asked_about_and_ran(desk: MakeDesk) -> None:
    """Whole records, but for hashes and times."""
    here = desk(says(Answer.YES, by="script"))
    judged = action("bash", command("mkdir", "x"), summary="mkdir x")
    here.call(judged, ToolOutput(status=ResultStatus.FAILED, content="no", exit_code=1, output_bytes=2))
    effects = {
        "network": False, "read": None, "write": None, "granted": ["."], "enforcement": "where possible", "unasked": False,
        "sockets": False, "level": "workspace",
    }  # fmt: skip
    assert [_bare(record) for record in here.records()] == [
        {
            "kind": "call_proposed", "call": 1, "turn": 0, "step": 0, "id": "c1", "tool": "bash",
            "arguments": '{"x": 1}',
        },
        {
            "kind": "decision", "call": 1, "tool": "bash", "summary": "mkdir x", "decision": "confirm",
            "source": "default", "by": "default for bash (table.toml:9)",
            "rule": None, "file": "table.toml", "line": 9, "layer": "file",
            "reason": "no rule matches, and bash is confirm by default",
            "effects": effects, "facet_count": 1,
            "facets": [{"facet": "mkdir x", "kind": "Command", "decision": "confirm",
                        "by": "default for bash (table.toml:9)"}],
        },
        {"kind": "approval_asked", "call": 1},
        {"kind": "approval_answered", "call": 1, "answer": "yes", "by": "script", "words": ""},
        {"kind": "intent", "call": 1, "tool": "bash", "effects": effects, "confinement": "in process"},
        {
            "kind": "outcome", "call": 1, "tool": "bash", "status": "failed", "content": "no",
            "output_bytes": 2, "truncated": False, "exit_code": 1,
        },
    ]  # fmt: skip
    here.log.append("session_ended", {"stop": "completed", "detail": ""})
    assert proved(str(here.path)) == Verification(records=8, head=here.log.head)


def test_a_written_file_is_recorded_with_its_digests(desk: MakeDesk) -> None:
    here = desk()
    here.call(action("free"), ToolOutput(content="", changed_path="/w/a", before_sha256=None, after_sha256="f" * 64))
    last = here.records()[-1]
    assert (last["changed_path"], last["before_sha256"], last["after_sha256"]) == ("/w/a", None, "f" * 64)


CONNECTIONS: dict[str, JsonValue] = {
    "connections": [
        {"host": "a.org", "port": 443, "allowed": True, "times": 2, "sent": 10, "received": 20, "address": "192.0.2.7"},
        {"host": "b.org", "port": 443, "allowed": False, "times": 1, "sent": 0, "received": 0, "why_not": "not listed"},
    ],
    "connection_count": 3,
}  # fmt: skip


@all_rows(
    ("extra", "fields"),
    [
        (CONNECTIONS, CONNECTIONS),
        ({"patch_file": "/o/a.patch"}, {"patch_file": "/o/a.patch"}),
        ({"n": [{"a": 1, "b": None}], "patch_file": "/o"}, {"patch_file": "/o", "extra": {"n": [{"a": 1, "b": None}]}}),
        ({}, {}),
    ],
    anew={"desk": new_desk},
)
def test_extra_facts_are_recorded_in_the_outcome(
    desk: MakeDesk, extra: Mapping[str, JsonValue], fields: dict[str, JsonValue]
) -> None:
    here = desk()
    here.call(action("free"), ToolOutput(content="", extra=extra))
    last = here.records()[-1]
    extra_names = ("connections", "connection_count", "patch_file", "extra")
    assert {name: last[name] for name in extra_names if name in last} == fields
    here.log.append("session_ended", {"stop": "completed", "detail": ""})
    assert proved(str(here.path)).head == here.log.head


def test_secrets_in_extra_facts_are_masked_at_any_depth(desk: MakeDesk) -> None:
    here, secret = desk(), f"ghp_{'a1B2' * 9}"
    result = here.call(action("free"), ToolOutput(content="", extra={"a": [{"b": f"is {secret}"}]})).result
    assert secret not in str(result.extra)
    assert secret not in here.path.read_text()
    assert "'b': 'is " in str(result.extra)


@all_rows(
    ("extra", "problem"),
    [
        ({"rows": {1}}, "its extra facts are not JSON: Object of type set is not JSON serializable"),
        ({"rate": float("nan")}, "its extra facts are not JSON: Out of range float values are not JSON compliant"),
        ([1], "ToolOutput: extra must be a mapping, not a list"),
        ({"patch_file": 3}, "its extra facts: patch_file: must be a string, not a number"),
        ({"connections": [{}]}, "its extra facts: connections: number 1: lacks the field host"),
    ],
    anew={"desk": new_desk},
)
def test_unloggable_extra_facts_are_a_crash_of_the_tool(desk: MakeDesk, extra: Any, problem: str) -> None:
    here = desk()
    result = here.call(action("free"), ToolOutput(content="", extra=extra)).result
    assert result.status is ResultStatus.CRASHED
    assert problem in result.content
    here.log.append("session_ended", {"stop": "completed", "detail": ""})
    assert proved(str(here.path)).head == here.log.head


def test_the_wait_for_an_answer_is_recorded(tmp_path: Path) -> None:
    """In seconds, by the gate's own clock."""
    times = iter((10.0, 12.5))
    log = begun(ActionLog.open(str(tmp_path / "log.jsonl")), policy())
    gate = Gate(
        tools=tools(),
        policy=policy(),
        approver=deny_all,
        log=log,
        monotonic=lambda: next(times),
    )
    Desk(gate, log, Asked(YES), tmp_path / "log.jsonl").call(action("asked"))
    answered = [record for record in read_log(log.path) if record["kind"] == "approval_answered"]
    assert [(record["seconds"], record["answer"], record["by"]) for record in answered] == [(2.5, "nobody", "nobody")]


def test_long_arguments_are_kept_by_digest_length_and_beginning(desk: MakeDesk) -> None:
    """A record does not grow with what the model sends."""
    here = desk()
    here.gate.propose(ToolCall(id="c1", name="free", arguments="x" * 64_001))
    (record,) = here.records()
    assert (record["arguments"], record["arguments_characters"]) == ("x" * 1000, 64_001)
    assert len(json.dumps(record)) < 2000


def test_a_call_of_many_facets_is_recorded_with_their_number(desk: MakeDesk) -> None:
    """The first fifty, and how many there are; the deciding one is named whatever its place."""
    here = desk()
    commands = [*(command("pytest", str(number)) for number in range(200)), command("touch", "x")]
    judged = action("bash", *commands)
    ended = here.call(judged)
    decided = here.records()[1]
    facets = decided["facets"]
    assert ended.result.status is ResultStatus.DENIED
    assert isinstance(facets, list)
    assert (len(facets), decided["facet_count"], decided["decision"]) == (50, 201, "deny")
    assert decided["by"] == "rule hands-off (table.toml:18)"


def test_the_log_in_use_is_guarded(desk: MakeDesk) -> None:
    """A call that would write the log is a block, whatever the policy says."""
    here = desk()
    path = str(here.path)
    own = PathAccess(written=path, real=path, names=(path,), access=Access.WRITE, place=Place.OUTSIDE)
    judged = action("write_file", own)
    assert here.gate.blocks(here.pending(judged)) is True
    assert here.kinds() == ["call_proposed"]


# --- calls that are never judged -----------------------------------------------------------------------------------


def test_invalid_and_unreached_calls_have_a_decision_and_an_outcome(desk: MakeDesk) -> None:
    here = desk()
    first, second = (here.gate.propose(ToolCall(id=name, name="free", arguments="{")) for name in ("a", "b"))
    ended = here.gate.call(first)
    assert (ended.result.call_id, ended.result.status) == ("a", ResultStatus.INVALID)
    assert ended.result.content.startswith("Error: The arguments of free are not valid JSON")
    assert here.gate.skip(second, "the run ended") == ToolResult(
        call_id="b", status=ResultStatus.NOT_RUN, content="Not run: the run ended"
    )
    here.log.append("session_ended", {"stop": "completed", "detail": ""})
    assert here.kinds() == ["call_proposed"] * 2 + ["decision", "outcome"] * 2 + ["session_ended"]
    assert proved(str(here.path)) == Verification(records=8, head=here.log.head)


@all_rows(
    ("last", "added"),
    [
        ("call_proposed", ["decision", "outcome"]),
        ("decision", ["outcome"]),
        ("approval_asked", ["outcome"]),
        ("approval_answered", ["outcome"]),
        ("intent", []),
    ],
    ids=lambda value: f"left after its {value}" if isinstance(value, str) else "",
    anew={"desk": new_desk},
)
def test_interrupted_calls_have_an_outcome_unless_they_may_have_run(
    desk: MakeDesk, last: str, added: list[str]
) -> None:
    """An exception after each record in turn; what the log lacks is added, once."""
    here = desk()

    def interrupted(record: LogRecord) -> None:
        if record["kind"] == last:
            raise KeyboardInterrupt

    here.log.observers.append(interrupted)
    with pytest.raises(KeyboardInterrupt):
        here.call(action("asked"))
    here.log.observers.remove(interrupted)
    before = here.kinds()
    here.gate.end_open_calls("the run ended")
    here.gate.end_open_calls("the run ended")
    assert here.kinds() == before + added
    here.log.append("session_ended", {"stop": "completed", "detail": ""})
    found = verify(str(here.path))
    assert (found.broken_line, found.unknown_calls) == (None, () if added else (f"{here.log.session}:1",))


# --- what the model is told ----------------------------------------------------------------------------------------

_FACET = FacetVerdict(
    facet=command("rm", "-r", "build"),
    decision=Decision.DENY,
    source=Source.RULE,
    reason="Nothing is deleted here.",
    hint="Move it to old/ instead.",
    by="rule no-delete (ci.toml:12)",
)
_PATH = FacetVerdict(
    facet=writing("x"), decision=Decision.DENY, source=Source.DEFAULT, reason="by default", by="d (p:1)"
)
_PACKAGED = FacetVerdict(
    facet=writing("x"),
    decision=Decision.DENY,
    source=Source.DEFAULT,
    reason="rule look (/py/policies/default.toml:9) does not lift it",
    by="default for bash (/py/policies/plan.toml:8)",
    layer=Layer.SHIPPED,
    origin=Origin(file="/py/policies/plan.toml", line=8),
)
_LONG = FacetVerdict(
    facet=Opaque(text="x" * 300, reason="r", column=1),
    decision=Decision.DENY,
    source=Source.OPAQUE,
    reason="odd",
    by="o",
)
NO_DETOUR = "Do not retry this call as it is, and do not get at what was refused another way."


@all_rows(
    ("facet", "approval", "decision", "text"),
    [
        (
            _FACET, None, Decision.DENY,
            ("Denied by rule no-delete (ci.toml:12): Nothing is deleted here. Part: `rm -r build`. "
            f"Hint: Move it to old/ instead. {NO_DETOUR}"),
        ),
        (
            _FACET, None, Decision.BLOCK,
            ("Blocked by rule no-delete (ci.toml:12): Nothing is deleted here. Part: `rm -r build`. "
            "Hint: Move it to old/ instead. The run stops here."),
        ),
        (_PATH, None, Decision.DENY, f"Denied by d (p:1): by default. Part: `write x`. {NO_DETOUR}"),
        (
            _PACKAGED, None, Decision.DENY,
            ("Denied by default for bash (plan.toml:8): rule look (default.toml:9) does not lift it. Part: `write x`. "
            f"{NO_DETOUR}"),
        ),
        (
            _LONG, None, Decision.DENY,
            f"Denied by o: odd. Part: `{'x' * 200}... (300 characters)`. {NO_DETOUR}",
        ),
        (
            _FACET, Approval(answer=Answer.NO, by="person"), Decision.DENY,
            f"Denied by the person, without a reason. Part: `rm -r build`. {NO_DETOUR}",
        ),
        (
            _FACET, Approval(answer=Answer.NO, by="person", words="use make clean"), Decision.DENY,
            f'Denied by the person: "use make clean". Part: `rm -r build`. {NO_DETOUR}',
        ),
        (
            _FACET, Approval(answer=Answer.STOP, by="person"), Decision.DENY,
            f"Denied by the person, who stopped the turn at the question. Part: `rm -r build`. {NO_DETOUR}",
        ),
        (
            _FACET, Approval(answer=Answer.HALT, by="person", words="enough"), Decision.BLOCK,
            'Blocked by the person: "enough". Part: `rm -r build`. The run stops here.',
        ),
        (
            _FACET, Approval(answer=Answer.NO, by="script"), Decision.DENY,
            f"Denied by the script, without a reason. Part: `rm -r build`. {NO_DETOUR}",
        ),
        (
            _FACET, Approval(answer=Answer.NOBODY, by="nobody"), Decision.DENY,
            ("Denied: this needs a person's yes (rule no-delete (ci.toml:12)) and nobody is there to ask. "
            f"Nothing is deleted here. Part: `rm -r build`. Hint: Move it to old/ instead. {NO_DETOUR}"),
        ),
        (
            _FACET, Approval(answer=Answer.NOBODY, by="nobody"), Decision.BLOCK,
            ("Blocked: this needs a person's yes (rule no-delete (ci.toml:12)) and nobody is there to ask. "
            "Nothing is deleted here. Part: `rm -r build`. Hint: Move it to old/ instead. The run stops here."),
        ),
    ],
    ids=[
        "denied by a rule",
        "blocked by a rule",
        "denied by a default, without a hint",
        "denied by a policy of the program, wherever it lies",
        "a long part is cut",
        "denied by a person without a word",
        "denied by a person with words",
        "stopped at the question",
        "halted at the question",
        "denied by a script, which is no person",
        "nobody to ask, denied",
        "nobody to ask, blocked",
    ],
)  # fmt: skip
def test_refusals_in_full(facet: FacetVerdict, approval: Approval | None, decision: Decision, text: str) -> None:
    verdict = Verdict(
        decision=facet.decision, facets=(facet,), effects=Effects(read=None, write=None, network=False, unasked=False)
    )
    assert refusal_text(verdict, approval, decision) == text


def test_text_for_the_model_equals_the_logged_text(desk: MakeDesk) -> None:
    """The golden text of a whole road: rule, file and line, part, reason, hint, no detour."""
    here = desk()
    judged = action("bash", command("pytest", "-q"), command("touch", "x"))
    assert here.call(judged).result.content == here.records()[-1]["content"] == (
        "Denied by rule hands-off (table.toml:18): Nothing is touched here. Part: `touch x`. "
        "Hint: Ask for the file instead. Do not retry this call as it is, and do not get at what was refused another way."
    )  # fmt: skip


# --- entry points that changed unseen ------------------------------------------------------------------------------


def change(
    here: Desk, name: str, preview: str, *, tool: str = "write_file", status: ResultStatus = ResultStatus.OK
) -> None:
    """Write a file through the gate."""
    changed = f"/w/{name}" if status is ResultStatus.OK else None
    written = action(tool, writing(name), summary=f"write {name}", preview=preview)
    here.call(written, ToolOutput(content="", status=status, changed_path=changed))


def judge(here: Desk, *facets: Facet) -> str:
    """Put a bash call through the gate; say whether it was asked about, and with which notes."""
    before = len(here.asked.shown)
    here.call(action("bash", *facets))
    asked = here.asked.shown[before:]
    return f"asked, notes {list(asked[0][1].notes)}" if asked else "not asked"


PYTEST = command("pytest", "-q")
MKDIR = command("mkdir", "x")


def test_unseen_entry_point_suspends_the_auto_rule(desk: MakeDesk) -> None:
    """Auto, then asked with the change shown, then auto again after the yes."""
    here = desk()
    assert judge(here, PYTEST) == "not asked"
    change(here, "conftest.py", "+import evil")
    assert judge(here, PYTEST) == "asked, notes ['+import evil']"
    assert judge(here, PYTEST) == "not asked"
    (verdict,) = [verdict for _, verdict in here.asked.shown]
    assert verdict.facets[0].source is Source.SUSPENDED


def test_files_of_other_tools_count_as_changed_without_a_report(desk: MakeDesk) -> None:
    here = desk()
    here.call(action("free", writing("conftest.py"), preview="+import evil"), ToolOutput(content="done"))
    assert judge(here, PYTEST) == "asked, notes ['+import evil']"


def test_file_tool_without_a_change_suspends_no_grant(desk: MakeDesk) -> None:
    here = desk()
    here.call(action("write_file", writing("conftest.py")), ToolOutput(content="Unchanged: conftest.py"))
    assert judge(here, PYTEST) == "not asked"


def test_file_that_is_not_an_entry_point_suspends_no_grant(desk: MakeDesk) -> None:
    here = desk()
    change(here, "notes.md", "+hello")
    assert judge(here, PYTEST) == "not asked"


@all_rows(
    "answer",
    [Answer.NO, Answer.STOP, Answer.HALT, Answer.NOBODY],
    ids=lambda answer: answer.value,
    anew={"desk": new_desk},
)
def test_rule_stays_suspended_without_an_approval(desk: MakeDesk, answer: Answer) -> None:
    here = desk(says(answer))
    change(here, "conftest.py", "+import evil")
    assert judge(here, PYTEST) == "asked, notes ['+import evil']"
    assert judge(here, PYTEST) == "asked, notes ['+import evil']"


def test_approval_of_another_call_clears_no_change(desk: MakeDesk) -> None:
    """The change was not among what that person was shown."""
    here = desk()
    change(here, "conftest.py", "+import evil")
    assert judge(here, MKDIR) == "asked, notes []"
    assert judge(here, PYTEST) == "asked, notes ['+import evil']"


def test_a_second_change_of_the_same_file_does_not_hide_the_first(desk: MakeDesk) -> None:
    """Each change is a note; a harmless one on top buries nothing."""
    here = desk()
    change(here, "conftest.py", "+import evil")
    change(here, "conftest.py", "+# a comment")
    change(here, "Makefile", "+test:")
    assert judge(here, PYTEST) == "asked, notes ['+import evil', '+# a comment', '+test:']"
    assert judge(here, PYTEST) == "not asked"


def test_approved_change_counts_as_seen(desk: MakeDesk) -> None:
    here = desk()
    change(here, "conftest.py", "+import evil", tool="asked")
    assert judge(here, PYTEST) == "not asked"


@all_rows(
    ("status", "then"),
    [
        (ResultStatus.INTERRUPTED, "asked, notes ['+import evil']"),
        (ResultStatus.CRASHED, "asked, notes ['+import evil']"),
        (ResultStatus.TIMEOUT, "asked, notes ['+import evil']"),
        (ResultStatus.FAILED, "not asked"),
    ],
    ids=["interrupted: it may be written", "crashed: it may be written", "timed out: it may be written",
         "failed: the tool says that it is not"], anew={"desk": new_desk})  # fmt: skip
def test_a_write_that_did_not_report_counts_as_a_change(desk: MakeDesk, status: ResultStatus, then: str) -> None:
    here = desk()
    change(here, "conftest.py", "+import evil", status=status)
    assert judge(here, PYTEST) == then


def test_notes_are_shown_also_where_another_part_decides(desk: MakeDesk) -> None:
    """A suspended command beside one that is asked about anyway: one question, with the change."""
    here = desk()
    change(here, "conftest.py", "+import evil")
    assert judge(here, MKDIR, PYTEST) == "asked, notes ['+import evil']"
    assert judge(here, PYTEST) == "not asked"


def test_unattended_a_suspended_rule_refuses(desk: MakeDesk, tmp_path: Path) -> None:
    """Nobody can have seen the change."""
    log = begun(ActionLog.open(str(tmp_path / "unattended.jsonl")), policy())
    approver: Approver = deny_all
    gate = Gate(tools=tools(), policy=policy(), approver=approver, log=log)
    here = Desk(gate, log, Asked(returns(None)), tmp_path / "unattended.jsonl")
    change(here, "conftest.py", "+import evil")
    ended = here.call(action("bash", PYTEST))
    assert ended.result.content.startswith("Denied: this needs a person's yes (rule tests (table.toml:13), suspended)")


def _facets(value: Sequence[FacetVerdict]) -> list[str]:
    return [facet.source.value for facet in value]


def test_shown_action_itself_is_run(desk: MakeDesk) -> None:
    """The very object."""
    here = desk()
    here.call(action("bash", MKDIR, PYTEST))
    ((shown, _),) = here.asked.shown
    assert [ran is shown for ran in here.ran("bash")] == [True]
