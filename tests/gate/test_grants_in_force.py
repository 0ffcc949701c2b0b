"""Grants, halts, changes of policy and a person's own calls, through the agent: what runs, and what the log says of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_scene import Asked, Playing, reply
from grant_scene import Scene, bash, granting, held
from log_auditor import audited
from log_scene import forged
from rows import all_rows

from harness.actions import Action, JsonValue
from harness.app.audit.verify import redecided
from harness.gate.approval import Approval, Approver
from harness.grant_pattern import GrantPattern, GrantScope
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.transcript import rebuilt
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.loop.agent import Agent
from harness.messages import ResultStatus, StopReason
from harness.policy.grant_offers import Offer
from harness.policy.rules import Origin
from harness.policy.session_grants import Grant
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.session.kept_grants import KeptGrants
from harness.session.state import State
from harness.terminal.question import by_model
from harness.terminal.trace import event_line
from policies import ASKING


def test_call_granted_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir b"), bash("mkdir a"), approver=granting(GrantScope.SESSION))
    assert scene.agent.run("go").stop is StopReason.COMPLETED
    assert [record["decision"] for record in scene.records("decision")] == ["confirm", "confirm", "auto"]
    last = scene.records("decision")[-1]
    assert (last["layer"], last["rule"], last["file"], last["line"]) == (
        "session",
        "grant-1",
        "grants of this session",
        1,
    )
    first, second = scene.records("grant")
    assert (first["change"], first["scope"], first["argv"], first["call"]) == ("added", "session", ["mkdir", "a"], 1)
    assert (second["grant"], second["argv"]) == ("grant-2", ["mkdir", "b"])
    assert [record.get("scope") for record in scene.records("approval_answered")] == ["session", "session"]
    scene.close()


def test_call_is_asked_again_after_its_grant_is_revoked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), approver=granting(GrantScope.SESSION))
    session = scene.agent.start()
    scene.agent.run("go", session)
    (grant,) = scene.agent.gate.grants.grants
    assert scene.agent.gate.grants.revoke(replace(grant, id="grant-7")) == ""
    assert scene.agent.gate.grants.revoke(grant) == ""
    assert not scene.agent.gate.grants.grants
    (tmp_path / "w" / "a").rmdir()
    assert scene.agent.do(session, "bash", {"command": "mkdir a"}).status is ResultStatus.OK
    assert [record["decision"] for record in scene.records("decision")] == ["confirm", "confirm"]
    assert [record["change"] for record in scene.records("grant")] == ["added", "revoked"]
    scene.agent.end(session)
    scene.close()


def test_kept_grant_applies_to_later_sessions_of_the_workspace_only(tmp_path: Path) -> None:
    first = Scene(tmp_path, bash("mkdir a"), approver=granting(GrantScope.WORKSPACE), kept=True)
    first.agent.run("go")
    (grant,) = first.records("grant")
    assert (grant["scope"], str(grant["grant"])[:5], grant["folder"]) == ("workspace", "kept-", str(first.root))
    first.close()
    (tmp_path / "w" / "a").rmdir()
    os.rename(first.path, f"{first.path}.1")
    second = Scene(tmp_path, bash("mkdir a"), approver=lambda _: Asked(_never), kept=True)
    assert second.agent.run("go").stop is StopReason.COMPLETED
    assert [(record["change"], record["file"], record["line"]) for record in second.records("grant")] == [
        ("kept", second.kept.path, 1)
    ]
    second.close()
    elsewhere = KeptGrants(os.path.dirname(second.kept.path), "w", "/elsewhere").read()
    assert elsewhere.grants == ()
    assert "another workspace" in elsewhere.problem
    assert second.kept.revoke(str(grant["grant"])) == ""
    assert second.kept.read().grants == ()
    third = second.kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w"))
    assert isinstance(third, Grant)
    assert third.origin == Origin(file=second.kept.path, line=3)
    assert os.stat(second.kept.path).st_mode & 0o777 == 0o600


def test_removed_grant_file_never_repeats_an_id(tmp_path: Path) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir b"), approver=granting(GrantScope.WORKSPACE), kept=True)
    session = scene.agent.start()
    scene.agent.run("go", session)
    os.unlink(scene.kept.path)
    first, second = scene.agent.gate.grants.grants
    assert first.id != second.id
    scene.agent.end(session)
    scene.close()


def test_a_granted_command_that_writes_an_entry_point_suspends(tmp_path: Path) -> None:
    """What `pytest` would run has changed, and nobody has looked at it: the grant for it is asked about again."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "new.py").write_text("x = 1\n")
    scene = Scene(
        tmp_path, bash("echo-all"), bash("cp new.py conftest.py"), bash("cp new.py conftest.py"), bash("echo-all"),
        approver=granting(GrantScope.SESSION),
    )  # fmt: skip
    scene.agent.run("go")
    assert [record["decision"] for record in scene.records("decision")] == ["confirm", "confirm", "auto", "confirm"]
    assert scene.records("decision")[-1]["source"] == "suspended"
    scene.close()


def test_grant_that_cannot_be_saved_applies_to_the_session_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "grants").write_text("a file where the folder would be")
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir a"), approver=granting(GrantScope.WORKSPACE), kept=True)
    assert scene.agent.run("go").stop is StopReason.COMPLETED
    (record,) = scene.records("grant")
    assert (record["grant"], record["scope"]) == ("grant-1", "session")
    line = event_line(record)
    assert line is not None
    assert line.text.startswith("~ granted for this session only; it could not be kept: ")
    assert str(tmp_path / "state" / "grants") in line.text
    scene.close()


def _never() -> object:
    raise AssertionError("nobody was to be asked")


@all_rows(
    ("spoil", "problem"),
    [
        (lambda text: text.replace('"mkdir"', '"bash"'), "never understood"),
        (lambda text: text.replace('"network": true', '"network": 1'), "true or false"),
        (lambda text: text.replace('"write"', '"wirte"'), "unknown or missing fields"),
        (lambda text: text[:-1], "incomplete"),
        (lambda text: text + "x\n", "not understood"),
        (lambda text: text + "[" * 100_000 + "\n", "not understood"),
        (lambda text: text + "\n", "not understood"),
        (lambda text: text.replace('["mkdir", "a"]', '"mkdir"'), "list of texts"),
    ],
)
def test_invalid_grant_file_is_ignored(tmp_path: Path, spoil: Callable[[str], str], problem: str) -> None:
    kept = KeptGrants(str(tmp_path / "grants"), "w", "/w")
    assert kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "a"), folder="/w", write=(".",), network=True))
    assert len(kept.read().grants) == 1
    file = Path(kept.path)
    file.write_text(spoil(file.read_text()))
    read = kept.read()
    assert read.grants == ()
    assert problem in read.problem


PATTERN = GrantPattern(tools=("bash",), argv=("mkdir", "a"), folder="/w")
OTHER = GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w")


@all_rows("cut", [1, 20, 100])
def test_a_grant_that_a_crash_cut_short_goes_with_the_next_that_is_kept(tmp_path: Path, cut: int) -> None:
    """Until then the file counts for nothing; what was cut short had never been said to be kept."""
    kept = KeptGrants(str(tmp_path), "w", "/w")
    kept.keep(PATTERN)
    whole = Path(kept.path).read_bytes()
    kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "incomplete"), folder="/w"))
    Path(kept.path).write_bytes(Path(kept.path).read_bytes()[:-cut])
    assert kept.read().grants == ()
    other = kept.keep(OTHER)
    assert isinstance(other, Grant)
    assert other.origin == Origin(file=kept.path, line=2)
    assert Path(kept.path).read_bytes().startswith(whole)
    assert [grant.pattern for grant in kept.read().grants] == [PATTERN, OTHER]


@all_rows("left", [1, 20, 40])
def test_a_revocation_that_was_cut_short_is_not_thrown_away(tmp_path: Path, left: int) -> None:
    """What it took back would be granted again; a person has to look at it."""
    kept = KeptGrants(str(tmp_path), "w", "/w")
    kept.keep(PATTERN)
    whole = Path(kept.path).read_bytes()
    assert kept.revoke(kept.read().grants[0].id) == ""
    torn = Path(kept.path).read_bytes()[: len(whole) + left]
    assert not torn.endswith(b"\n")
    Path(kept.path).write_bytes(torn)
    assert "incomplete" in str(kept.keep(OTHER))
    assert (kept.read().grants, Path(kept.path).read_bytes()) == ((), torn)


KEEPING = """
import os, resource, sys
from harness.session.kept_grants import KeptGrants
from harness.policy.session_grants import GrantPattern
kept = KeptGrants(sys.argv[1], "w", "/w")
(grant,) = kept.read().grants
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(kept.path) + 10, resource.RLIM_INFINITY))
print(kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w")), kept.revoke(grant.id))
"""


def test_a_grant_for_which_the_disk_has_no_room_leaves_the_others(tmp_path: Path) -> None:
    """A limit on the size of files takes a part of the line first, as a full disk does (setrlimit(2))."""
    kept = KeptGrants(str(tmp_path), "w", "/w")
    kept.keep(PATTERN)
    whole = Path(kept.path).read_bytes()
    done = subprocess.run([sys.executable, "-c", KEEPING, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == f"{kept.path}: File too large {kept.path}: File too large\n"
    assert (Path(kept.path).read_bytes(), len(kept.read().grants)) == (whole, 1)


@all_rows("mode", [0o622, 0o602])
def test_grant_file_writable_by_others_is_ignored(tmp_path: Path, mode: int) -> None:
    kept = KeptGrants(str(tmp_path / "grants"), "w", "/w")
    assert kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "a"), folder="/w"))
    os.chmod(kept.path, mode)
    assert "others than you may write it" in kept.read().problem
    assert "others than you may write it" in str(
        kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w"))
    )
    os.unlink(kept.path)
    os.symlink("/dev/null", kept.path)
    assert kept.read().grants == ()
    assert isinstance(kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w")), str)
    os.unlink(kept.path)
    os.mkfifo(kept.path)
    assert kept.read().grants == ()
    assert isinstance(kept.keep(GrantPattern(tools=("bash",), argv=("mkdir", "b"), folder="/w")), str)


@all_rows(
    "approval",
    [
        Approval(answer=Answer.YES, by="x", scope=GrantScope.SESSION),
        Approval(answer=Answer.YES, by="x", patterns=(GrantPattern(tools=("bash",), argv=("mkdir", "a"), folder="/w"),)),
        Approval(
            answer=Answer.NO, by="x", scope=GrantScope.SESSION, patterns=(GrantPattern(tools=("bash",), argv=("mkdir", "a")),)
        ),
        Approval(
            answer=Answer.YES, by="x", scope=GrantScope.SESSION, patterns=(GrantPattern(tools=("bash",), argv=("rm", "a")),)
        ),
        Approval(
            answer=Answer.YES,
            by="x",
            scope=GrantScope.WORKSPACE,
            patterns=(GrantPattern(tools=("bash",), argv=("mkdir", "a"), folder="/w", write=("/",), network=True),),
        ),
    ],
)  # fmt: skip
def test_an_approver_that_grants_what_was_not_offered_stops_the_run(tmp_path: Path, approval: Approval) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), approver=lambda _: Asked(lambda: approval))
    assert scene.agent.run("go").stop is StopReason.GATE_ERROR
    assert not (scene.root / "a").exists()
    assert scene.agent.gate.grants.grants == ()


def test_a_halt_is_a_hard_block_by_the_person(tmp_path: Path) -> None:
    """Nothing else of the reply runs; the model and the log are told whose word it was."""
    two = bash("mkdir a", "mkdir b")
    scene = Scene(
        tmp_path, two, approver=lambda _: Asked(lambda: Approval(answer=Answer.HALT, by="person", words="enough"))
    )
    session = scene.agent.start()
    result = scene.agent.run("go", session)
    assert (result.stop, os.listdir(scene.root)) == (StopReason.BLOCKED, [])
    assert [record["status"] for record in scene.records("outcome")] == ["blocked", "not_run"]
    assert 'Blocked by the person: "enough"' in result.detail
    assert [message.content for message in rebuilt(read_log(scene.path)).messages] == [
        message.content for message in session.messages[1:]
    ]
    scene.agent.end(session, result)
    scene.close()


@all_rows(
    ("command", "status", "decision"),
    [
        ("mkdir a", ResultStatus.OK, "confirm"),
        ("touch a", ResultStatus.DENIED, "deny"),
        ("halt-here", ResultStatus.BLOCKED, "block"),
        ("false", ResultStatus.FAILED, "confirm"),
    ],
)
def test_a_call_of_the_person_goes_through_the_gate_and_not_into_the_conversation(
    tmp_path: Path, command: str, status: ResultStatus, decision: str
) -> None:
    scene = Scene(tmp_path, approver=lambda _: Asked(_never))
    session = scene.agent.start()
    result = scene.agent.do(session, "bash", {"command": command})
    assert result.status is status, result
    (proposed,), (decided,) = scene.records("call_proposed"), scene.records("decision")
    assert (proposed["by"], json.loads(str(proposed["arguments"])), decided["decision"]) == (
        "person", {"command": command}, decision,
    )  # fmt: skip
    answers = [(record["answer"], record["by"], record["words"]) for record in scene.records("approval_answered")]
    assert answers == ([("yes", "person", "typed at the prompt")] if decision == "confirm" else [])
    scene.agent.run("hello", session)
    assert [message.role.value for message in session.messages] == ["system", "user", "assistant"]
    assert list(rebuilt(read_log(scene.path)).messages) == list(session.messages[1:])
    scene.agent.end(session)
    scene.close()


def test_a_call_of_the_person_that_is_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approver=lambda _: Asked(_never))
    session = scene.agent.start()
    assert scene.agent.do(session, "bash", {"comand": "ls"}).status is ResultStatus.INVALID
    scene.agent.end(session)
    with pytest.raises(ValueError, match="ended"):
        scene.agent.do(session, "bash", {"command": "ls"})
    scene.close()


def test_another_policy_holds_from_where_the_log_says_so(tmp_path: Path) -> None:
    """Grants stay and lift no refusal by default; unseen changes stay unseen; limits are the new ones."""
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir a"), bash("mkdir a"), approver=granting(GrantScope.SESSION))
    session = scene.agent.start()
    assert scene.agent.do(session, "bash", {"command": "mkdir a"}).status is ResultStatus.OK
    scene.agent.change_policy(session, held(b'version = 1\n[tools]\nbash = "deny"\n[limits]\nturns = 3\n'), "plan")
    assert scene.agent.do(session, "bash", {"command": "mkdir b"}).status is ResultStatus.DENIED
    assert scene.agent.limits.max_turns == 3
    scene.agent.change_policy(session, held(), "plan left")
    assert scene.agent.do(session, "bash", {"command": "mkdir c"}).status is ResultStatus.OK
    told = scene.records("session_started", "policy_changed", "decision")
    assert [record.get("why") or record.get("decision") for record in told] == [
        None, "confirm", "plan", "deny", "plan left", "confirm",
    ]  # fmt: skip
    assert told[2]["policy_sha256"] == told[3]["policy_sha256"] != told[1]["policy_sha256"]
    assert str(told[2]["policy_files"]).count("turns = 3") == 1
    scene.agent.end(session)
    scene.close()


def test_the_calls_of_such_a_log_are_judged_again_as_they_were(tmp_path: Path) -> None:
    """Under the policies and the grants of the time: each as it was decided; without them it would not come out so."""
    scene = Scene(
        tmp_path, bash("mkdir a"), bash("mkdir a"), bash("mkdir a && mkdir b"), approver=granting(GrantScope.SESSION)
    )
    session = scene.agent.start()
    scene.agent.run("go", session)
    scene.agent.change_policy(session, held(b'version = 1\n[tools]\nbash = "block"\n'), "reloaded")
    assert scene.agent.do(session, "bash", {"command": "mkdir a"}).status is ResultStatus.BLOCKED
    scene.agent.change_policy(session, held(), "reloaded")
    scene.agent.gate.grants.revoke(scene.agent.gate.grants.grants[0])
    assert scene.agent.do(session, "bash", {"command": "mkdir b"}).status is ResultStatus.OK
    scene.agent.end(session)
    scene.close()
    decided = [str(record["decision"]) for record in scene.records("decision")]
    assert decided == ["confirm", "auto", "confirm", "block", "auto"]
    environment = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    found = redecided(scene.path, State.of(environment), environment)
    assert (found.same, found.otherwise, found.unjudged) == (5, 0, 0), found.lines


def test_a_call_of_the_person_that_destroys_is_asked_about_as_theirs(tmp_path: Path) -> None:
    asked = Asked(lambda: Approval(answer=Answer.NO, by="person"))
    scene = Scene(tmp_path, approver=lambda _: asked)
    session = scene.agent.start()
    assert scene.agent.do(session, "bash", {"command": "git reset --hard"}).status is ResultStatus.DENIED
    assert [by_model(action) for action, _ in asked.shown] == [False]  # so it is put to nobody outside
    scene.agent.end(session)
    scene.close()


def test_another_model_is_asked_from_where_the_log_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path, approver=lambda _: Asked(_never))
    session = scene.agent.start()
    scene.agent.run("hello", session)
    scene.agent.change_model(session, Playing([reply(text="I am another.")]), {"api": "chat"})
    assert scene.agent.run("who?", session).text == "I am another."
    assert [record["model"] for record in scene.records("model_changed")] == ["playing"]
    scene.agent.end(session)
    scene.close()


def test_an_offer_is_of_the_policy_in_force(tmp_path: Path) -> None:
    """What is granted already is not asked about, and what is asked about can be granted."""
    seen: list[Offer | str] = []

    def of(agent: Agent) -> Approver:
        def approver(action: Action, verdict: Verdict) -> Approval:
            seen.append(agent.gate.grants.offer(action, verdict))
            return granting(GrantScope.SESSION)(agent)(action, verdict)

        return approver

    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir a && mkdir b"), approver=of)
    scene.agent.run("go")
    assert [[one.argv for one in offer.choices[0].patterns] for offer in seen if isinstance(offer, Offer)] == [
        [("mkdir", "a")],
        [("mkdir", "b")],
    ]
    assert [grant.id for grant in scene.agent.gate.grants.grants] == ["grant-1", "grant-2"]
    scene.close()


@pytest.mark.forges_logs
@pytest.mark.parametrize(
    ("forge", "problem"),
    [
        (lambda record: record["kind"] != "grant", "which nobody granted"),
        (lambda record: record["kind"] != "approval_answered", "no yes before it says so"),
    ],
)
def test_log_without_the_grant_record_is_broken(
    tmp_path: Path, forge: Callable[[LogRecord], bool], problem: str
) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir a"), approver=granting(GrantScope.SESSION))
    scene.agent.run("go")
    scene.close()
    steps = [(str(record["kind"]), record) for record in read_log(scene.path) if forge(record)]
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(forged([(kind, _without_chain(record)) for kind, record in steps])))
    found = verify(str(path))
    assert problem in str(found.problem)
    assert audited(str(path)).breaches != []


@pytest.mark.forges_logs
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"change": "kept"}, "as it begins"),
        ({"change": "kept", "scope": "workspace"}, "as it begins"),
        ({"scope": "workspace"}, "more than was answered"),
        ({"tools": ["write_file"]}, "more than was answered"),
        ({"call": 2}, "no yes before it"),
        ({"change": "revoked"}, "not in force"),
    ],
)
def test_forged_grant_breaks_the_log(tmp_path: Path, changes: dict[str, JsonValue], problem: str) -> None:
    scene = Scene(tmp_path, bash("mkdir a"), bash("mkdir a"), approver=granting(GrantScope.SESSION))
    scene.agent.run("go")
    scene.close()
    steps = [
        (str(one["kind"]), {**_without_chain(one), **(changes if one["kind"] == "grant" else {})})
        for one in read_log(scene.path)
    ]
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(forged(steps)))
    assert problem in str(verify(str(path)).problem)


@pytest.mark.forges_logs
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"granted": [".", "/etc"]}, "something else than was decided"),
        ({"named": ["/etc/passwd"]}, "something else than was decided"),
        ({"write": ["/etc/passwd"]}, "something else than was decided"),
        ({"enforcement": "off"}, "something else than was decided"),
        ({"network": True}, "something else than was decided"),
        ({"hosts": ["example.org"]}, "something else than was decided"),
    ],
)
def test_a_call_runs_within_its_decision_or_the_walls_granted_at_its_question(
    tmp_path: Path, changes: dict[str, JsonValue], problem: str
) -> None:
    inside = granting(GrantScope.SESSION, "this program, any words, inside walls")
    offline = ASKING.encode() + b"[sandbox]\nnetwork = false\n"
    scene = Scene(tmp_path, bash("python3 -c 1"), approver=inside, policy=offline)
    scene.agent.run("go")
    scene.close()
    steps = [(str(one["kind"]), _without_chain(one)) for one in read_log(scene.path)]
    for kind, fields in steps:
        if kind == "intent":
            effects = fields["effects"]
            assert isinstance(effects, dict)
            effects.update(changes)
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(forged(steps)))
    assert problem in str(verify(str(path)).problem)


@pytest.mark.forges_logs
def test_call_after_a_halt_breaks_the_log(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path, bash("mkdir a", "mkdir b"), approver=lambda _: Asked(lambda: Approval(answer=Answer.YES, by="person"))
    )
    scene.agent.run("go")
    scene.close()
    steps = [(str(one["kind"]), dict(_without_chain(one))) for one in read_log(scene.path)]
    first = next(n for n, (kind, _) in enumerate(steps) if kind == "approval_answered")
    steps[first][1]["answer"] = "halt"
    intent = next(n for n, (kind, _) in enumerate(steps) if kind == "intent")
    outcome = next(n for n, (kind, _) in enumerate(steps) if kind == "outcome")
    steps[outcome][1]["status"] = "blocked"
    del steps[intent]
    path = tmp_path / "forged.jsonl"
    path.write_bytes(b"".join(forged(steps)))
    assert "after the person halted the run" in str(verify(str(path)).problem)


def _without_chain(record: LogRecord) -> LogRecord:
    return {name: value for name, value in record.items() if name not in ("seq", "prev", "kind", "v")}
