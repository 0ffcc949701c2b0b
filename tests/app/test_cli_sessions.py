"""`harness sessions` and `harness -c`: what is listed, what goes on from which end, what a person is told."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from program import made_program
from rows import all_rows
from run_scene import wait_until
from screen_scene import ENTER_KEY
from talking import Talking

from harness.actions import JsonValue
from harness.app.command_line import command
from harness.app.resume import Carried
from harness.app.sessions import LoggedSession, SessionOutline
from harness.history import History
from harness.log.clocks import timestamp
from harness.log.reader import read_log
from harness.log.transcript import NOT_RUN, UNKNOWN, Rebuilt, rebuilt
from harness.messages import Message, Role
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import ChatDialect
from harness.models.scripted import ModelScript, Reply, call, replies, request_problem, say
from harness.session.exits import Exit
from harness.shipped import COMMANDS
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

Talk = Callable[..., Talking]


@pytest.fixture
def policy(program: Program) -> str:
    """A policy file that lets everything run."""
    path = program.home / "auto.toml"
    path.write_text(AUTO)
    return str(path)


@pytest.fixture
def talk(program: Program, policy: str) -> Iterator[Talk]:
    """Start the program at a pseudo-terminal against a script, with the policy that lets everything run."""
    children: list[Talking] = []

    def spawn(script: ModelScript, *words: str, model: str = "scripted", cwd: Path | None = None) -> Talking:
        flags = ("--base-url", program.serve(script), "--model", model, "--policy", policy)
        child = Talking(program, *words, *flags, cwd=cwd, dimensions=(50, 500))
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.end()


def run(program: Program, policy: str, prompt: str, *answers: Reply, cwd: Path | None = None) -> str:
    """Run one prompt against these replies, and return the session's name."""
    flags = ("--base-url", program.serve(replies(*answers)), "--model", "scripted", "--policy", policy)
    done = program.run("run", prompt, "--output", "json", *flags, cwd=cwd or program.workspace)
    assert done.code == 0, done.err
    return str(json.loads(done.out)["session"])


AT_THE_PROMPT = r"\x1b\[\?12l\x1b\[\?25h"
"""What the line editor ends with when it has drawn its line: keys from then on are typed at the prompt, not ahead."""


def typed(child: Talking, line: str) -> None:
    """Type a line once the prompt waits."""
    child.expect(AT_THE_PROMPT)
    child.send(line + ENTER_KEY)


def leave(child: Talking) -> None:
    child.expect("requests?,")
    typed(child, "/exit")
    child.expect(pexpect.EOF)
    assert child.exit_code() == 0


def messages(program: Program) -> list[tuple[object, object]]:
    """Return role and text of what the last server was sent last, the system message left out."""
    sent = program.players[-1].requests[-1]["messages"]
    assert isinstance(sent, list)
    return [(message["role"], message["content"]) for message in sent[1:] if isinstance(message, dict)]


def killed_in_a_call(program: Program, policy: str, *calls: str) -> Path:
    """Kill a run with SIGKILL while its first call of `calls` (after `touch begun`) runs; return its log."""
    first = call("bash", command="touch begun; sleep 1000")
    reply = Reply(text="working", calls=(first, *(call("bash", command=command) for command in calls)))
    process = program.start(
        "run", "do it", "--base-url", program.serve(replies(reply)), "--model", "scripted", "--policy", policy
    )
    wait_until((program.workspace / "begun").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return program.logs()[-1]


class TestList:
    def test_only_the_folder_of_the_workspace_is_read(self, program: Program, policy: str) -> None:
        """Whoever has many projects waits for the logs of one."""
        session = run(program, policy, "look", Reply(text="one"))
        (log,) = program.logs()
        elsewhere = log.parent.parent / "other-00000000"
        elsewhere.mkdir()
        (elsewhere / log.name).write_bytes(log.read_bytes())
        counts = [program.run("sessions", "list", *words).out.count(session) for words in ((), ("--all",))]
        assert counts == [1, 2]

    def test_one_line_a_session_the_newest_last(self, program: Program, policy: str) -> None:
        first = run(program, policy, "\n  look around \x1b[2J\nand more", Reply(text="one"))
        second = run(program, policy, "again", Reply(text="two"))
        done = program.run("sessions", "list")
        lines = [re.split(" {2,}", line) for line in done.out.splitlines()]
        assert done.code == 0
        assert [line[0] for line in lines] == [first, second]
        assert lines[0][2:] == ["1 turn", "scripted", "completed", "look around \\x1b[2J"]
        assert lines[0][1] in ("just now", "1 min ago")

    def test_json_list_includes_the_log_path(self, program: Program, policy: str) -> None:
        name = run(program, policy, "look", Reply(text="one"))
        (told,) = map(json.loads, program.run("sessions", "list", "--json").out.splitlines())
        expected = {"session": name, "mode": "run", "model": "scripted", "turns": 1, "prompt": "look", "torn": False}
        assert told.items() >= expected.items()
        assert (told["ended"], told["origin"]) == ("completed", None)
        assert (told["workspace"], told["log"]) == (str(program.workspace), str(program.logs()[0]))

    def test_those_of_other_folders_only_with_all(self, program: Program, policy: str) -> None:
        other = program.home / "other"
        other.mkdir()
        name = run(program, policy, "look", Reply(text="one"), cwd=other)
        assert "--all shows" in program.run("sessions", "list").out
        told = program.run("sessions", "list", "--all").out
        assert told.startswith(name)
        assert str(other) in told

    def test_killed_session_is_listed_as_open(self, program: Program, policy: str) -> None:
        log = killed_in_a_call(program, policy)
        assert "1 turn  scripted  open  do it" in program.run("sessions", "list").out
        with log.open("a") as file:
            file.write('{"call":1,')
        assert "1 turn  scripted  open, torn  do it" in program.run("sessions", "list").out

    def test_empty_list_is_reported(self, program: Program) -> None:
        done = program.run("sessions", "list")
        assert (done.code, done.out.startswith("no session in ")) == (0, True)


class TestDelete:
    def test_log_is_removed_and_its_tombstone_stays(self, program: Program, policy: str) -> None:
        first = run(program, policy, "one", Reply(text="first"))
        second = run(program, policy, "two", Reply(text="second"))
        (log, other) = program.logs()
        shown = program.run("sessions", "delete", first)
        assert (shown.code, log.exists()) == (Exit.USAGE, True)
        assert f"{first} (one): its log {log}" in shown.out
        assert program.run("sessions", "delete", first, "--yes").code == 0
        assert program.logs() == [other]
        assert f'"sessions":["{first}"]' in (program.state / "harness" / "heads.jsonl").read_text()
        assert program.run("sessions", "delete", first, "--yes").code == Exit.USAGE
        assert [line.split()[0] for line in program.run("sessions", "list").out.splitlines()] == [second]
        assert program.run("audit", "verify").code == 0

    def test_broken_log_stays(self, program: Program, policy: str) -> None:
        name = run(program, policy, "one", Reply(text="first"))
        (log,) = program.logs()
        log.write_bytes(log.read_bytes().replace(b"first", b"worst"))
        done = program.run("sessions", "delete", name, "--yes")
        assert (done.code, log.exists()) == (Exit.USAGE, True)
        assert "the session is not deleted" in done.err


@pytest.mark.terminal
class TestGoingOn:
    def test_newest_session_of_the_folder_continues_in_a_new_log(
        self, program: Program, policy: str, talk: Talk
    ) -> None:
        look = Reply(text="looking", calls=(call("bash", command="echo seen"),))
        name = run(program, policy, "look", look, Reply(text="I saw it."))
        (old,) = program.logs()
        before = old.read_bytes()
        child = talk(replies(Reply(text="It said: seen.")), "-c", "what was it?")
        for shown in ("> look", "looking", "  \\| seen", r"\+ bash  echo seen", "I saw it."):
            child.expect(shown)
        child.expect(f"resumed session {name} of .*: 4 messages, 1 of them yours")
        child.expect("It said: seen.")
        leave(child)
        roles = [role for role, _ in messages(program)]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
        assert [text for _, text in messages(program)][-2:] == ["I saw it.", "what was it?"]
        assert old.read_bytes() == before
        (new,) = set(program.logs()) - {old}
        first, changed, *_ = read_log(str(new))
        origin = first["origin"]
        assert isinstance(origin, dict)
        assert (origin["session"], origin["how"], origin["log"]) == (name, "resumed", str(old))
        assert origin["records"] == len(before.splitlines())
        assert (changed["kind"], changed["why"], changed["start"], changed["stop"]) == (
            "history_changed",
            "resumed",
            0,
            0,
        )
        assert program.run("audit", "verify", str(new)).code == 0

    def test_a_resumed_session_can_be_resumed_from_its_own_log_alone(
        self, program: Program, policy: str, talk: Talk
    ) -> None:
        run(program, policy, "one", Reply(text="first"))
        child = talk(replies(Reply(text="second")), "-c", "two")
        leave(child)
        os.unlink(program.logs()[0])
        child = talk(replies(Reply(text="third")), "sessions", "resume")
        for shown in ("> one", "first", "> two", "second", "resumed session"):
            child.expect(shown)
        typed(child, "three")
        child.expect("third")
        leave(child)
        assert [text for _, text in messages(program)] == ["one", "first", "two", "second", "three"]

    def test_session_without_a_turn_is_not_the_newest(self, program: Program, policy: str, talk: Talk) -> None:
        name = run(program, policy, "one", Reply(text="first"))
        child = talk(replies())
        child.expect("/help for help")
        typed(child, "/exit")
        child.expect(pexpect.EOF)
        child = talk(replies(Reply(text="second")), "-c", "two")
        child.expect(f"resumed session {name}")
        leave(child)

    def test_newest_finished_session_is_resumed_beside_a_running_one(
        self, program: Program, policy: str, talk: Talk
    ) -> None:
        name = run(program, policy, "one", Reply(text="first"))
        other = talk(replies(Reply(text="elsewhere")), "two")
        other.expect("requests?,")
        assert re.search(r"1 turn  scripted  running +two\n", program.run("sessions", "list").out)
        child = talk(replies(Reply(text="second")), "-c", "three")
        child.expect("is still running in another terminal; this is the newest that is over")
        child.expect(f"resumed session {name}")
        leave(child)
        typed(other, "/exit")
        other.expect(pexpect.EOF)

    def test_resuming_a_killed_call_informs_user_and_model(self, program: Program, policy: str, talk: Talk) -> None:
        killed_in_a_call(program, policy, "echo never")
        child = talk(replies(Reply(text="Looking first.")), "-c", "go on")
        child.expect("what it did is unknown: bash .*touch begun")
        child.expect("Looking first.")
        leave(child)
        assert messages(program) == [
            ("user", "do it"), ("assistant", "working"), ("tool", UNKNOWN), ("tool", NOT_RUN), ("user", "go on"),
        ]  # fmt: skip

    def test_torn_line_is_reported_and_skipped(self, program: Program, policy: str, talk: Talk) -> None:
        log = killed_in_a_call(program, policy)
        with log.open("a") as file:
            file.write('{"call":1,"kind":"outcome","content":"ok"')
        before = log.read_bytes()
        child = talk(replies(Reply(text="Fine.")), "-c", "go on")
        child.expect("the last line of its log is torn")
        leave(child)
        assert ("tool", UNKNOWN) in messages(program)
        assert log.read_bytes() == before

    def test_changed_settings_are_listed_in_one_line(self, program: Program, policy: str, talk: Talk) -> None:
        name = run(program, policy, "one", Reply(text="first"))
        other = program.home / "other"
        other.mkdir()
        child = talk(replies(Reply(text="second")), "sessions", "resume", name[:8], "two", model="better", cwd=other)
        child.expect(f"not as it was: workspace {program.workspace} then, {other} now; model scripted then, better now")
        leave(child)

    def test_session_continues_with_its_model_at_the_same_address(self, program: Program, policy: str) -> None:
        """Unless another one is named: what the environment says is for new sessions."""
        flags = ("--base-url", program.serve(replies(*(Reply(text=text) for text in "123"))), "--policy", policy)
        program.environment["HARNESS_MODEL"] = "usual"
        assert program.run("run", "one", "--model", "better", *flags).code == 0
        for named, asked in ((), "better"), (("--model", "other"), "other"):
            child = Talking(program, "-c", "go on", *named, *flags, dimensions=(50, 500))
            leave(child)
            child.end()
            assert program.players[-1].requests[-1]["model"] == asked
            assert re.search(rf"1 turn +{asked} ", program.run("sessions", "list").out)

    def test_masked_texts_stay_masked_with_a_notice(self, program: Program, policy: str, talk: Talk) -> None:
        program.environment["SERVICE_API_KEY"] = "hunter2-hunter2"
        run(program, policy, "use hunter2-hunter2", Reply(text="fine"))
        child = talk(replies(Reply(text="second")), "-c", "two")
        child.expect("secrets that the log has masked stay masked")
        leave(child)
        assert re.fullmatch(r"use \[redacted:known:[0-9a-f]{8}\]", str(messages(program)[0][1]))

    @pytest.mark.parametrize(
        ("turn", "expected"),
        [
            pytest.param(("--turn", "0"), [], id="before the first"),
            pytest.param(("--turn", "1"), ["one", "1"], id="after the first"),
            pytest.param(("--turn", "3"), ["one", "1", "three", "3"], id="after one that follows an undone one"),
            pytest.param((), [], id="all of it, and it was cleared"),
        ],
    )
    def test_fork_contains_the_session_up_to_a_turn(
        self, program: Program, talk: Talk, turn: tuple[str, ...], expected: list[str]
    ) -> None:
        child = talk(replies(*(Reply(text=text) for text in "123")), "one")
        child.expect("requests?,")
        for line, answer in (
            ("two", "requests?,"),
            ("/undo", "forgotten"),
            ("three", "requests?,"),
            ("/clear", "forgotten"),
        ):
            typed(child, line)
            child.expect(answer)
        typed(child, "/exit")
        child.expect(pexpect.EOF)
        (one,) = map(json.loads, program.run("sessions", "list", "--json").out.splitlines())
        child = talk(replies(Reply(text="fork")), "sessions", "fork", one["session"], "next", *turn)
        child.expect("forked session")
        leave(child)
        assert [text for _, text in messages(program)] == [*expected, "next"]


def test_every_prefix_of_a_real_log_gives_a_whole_conversation(program: Program, policy: str) -> None:
    """Wherever a session was stopped, a strict server takes what comes back."""
    both = (call("bash", command="echo a"), call("read_file", path="missing"))
    run(program, policy, "go", Reply(text="both", calls=both), Reply(calls=(call("nothing"),)), Reply(text="done"))
    records = list(read_log(str(program.logs()[0])))
    seen = set()
    for count in range(1, len(records) + 1):
        history = History("system")
        history.splice(0, 0, rebuilt(records[:count]).messages)
        request = json.loads(ChatDialect("m", Endpoint()).request(history.messages, ()))
        assert request_problem(request) == ""
        seen.add(len(history.messages))
    assert seen == {1, 2, 3, 4, 5, 7, 8}
    whole = rebuilt(records).messages
    assert [(one.role.value, one.content or None) for one in whole[:-1]] == messages(program)


def carried_with(said: tuple[Message, ...], about: dict[str, JsonValue]) -> Carried:
    found = LoggedSession(path="/log", session="s", time="t", mode="run", workspace="/w")
    return Carried(
        session=found, method="resumed", rebuilt=Rebuilt(messages=said), first=about, torn=False, records=1, head="0"
    )


@all_rows(
    ("changed", "expected"),
    [
        pytest.param({}, '{"r":1}', id="the same model at the same address"),
        pytest.param({"model": "other"}, "", id="another model"),
        pytest.param({"server": "elsewhere"}, "", id="another address"),
        pytest.param({"api": "responses"}, "", id="another API"),
    ],
)
def test_provider_echo_is_sent_to_the_same_provider_only(changed: dict[str, JsonValue], expected: str) -> None:
    """A signature of one provider is an error at another, and what it thought is nobody else's."""
    about: dict[str, JsonValue] = {"model": "m", "api": "chat", "server": "host:1"}
    said = (Message(role=Role.USER, content="a"), Message(role=Role.ASSISTANT, content="b", echo='{"r":1}'))
    carried = carried_with(said, about)
    assert [message.echo for message in carried.messages({**about, **changed})] == ["", expected]
    assert [message.content for message in carried.messages({**about, **changed})] == ["a", "b"]


class TestRefused:
    def refusal(self, program: Program, *words: str) -> str:
        before = program.logs()
        done = program.run(*words, "--base-url", "http://127.0.0.1:9", "--model", "m")
        assert done.code == Exit.USAGE
        assert program.logs() == before
        return done.err

    def test_without_a_terminal(self, program: Program) -> None:
        assert "needs a terminal" in self.refusal(program, "-c")
        assert "needs a terminal" in self.refusal(program, "sessions", "resume")

    def test_an_action_that_is_none(self, program: Program) -> None:
        assert "list, resume, fork" in program.run("sessions", "lst").err


@pytest.mark.terminal
class TestRefusedAtATerminal:
    def refused(self, talk: Talk, said: str, *words: str) -> None:
        child = talk(replies(), *words)
        child.expect(said)
        child.expect(pexpect.EOF)
        assert child.exit_code() == Exit.USAGE

    def test_missing_session_is_refused(self, talk: Talk) -> None:
        self.refused(talk, "no session in", "-c")

    def test_a_name_that_no_session_has(self, program: Program, policy: str, talk: Talk) -> None:
        run(program, policy, "one", Reply(text="first"))
        self.refused(talk, "no session's name begins with 'zz'", "sessions", "resume", "zz")

    def test_a_turn_that_it_does_not_have(self, program: Program, policy: str, talk: Talk) -> None:
        name = run(program, policy, "one", Reply(text="first"))
        self.refused(
            talk, "turn 2 does not exist: the session has only 1 turn", "sessions", "fork", name, "--turn", "2"
        )

    def test_log_with_a_broken_chain_is_refused(self, program: Program, policy: str, talk: Talk) -> None:
        run(program, policy, "one", Reply(text="first"))
        (log,) = program.logs()
        log.write_bytes(log.read_bytes().replace(b'"first"', b'"worst"'))
        self.refused(talk, "cannot be relied on", "-c")
        assert program.logs() == [log]

    def test_log_with_a_missing_tail_is_refused(self, program: Program, policy: str, talk: Talk) -> None:
        run(program, policy, "one", Reply(text="first"))
        (log,) = program.logs()
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))
        self.refused(talk, "a tail is missing", "-c")

    def test_running_session_is_refused(self, program: Program, policy: str, talk: Talk) -> None:
        child = talk(replies(Reply(text="first")), "one")
        child.expect("requests?,")
        (session,) = (
            json.loads(line)["session"] for line in program.run("sessions", "list", "--json").out.splitlines()
        )
        self.refused(talk, f"session {session} is still running in another terminal.*leave it there", "-c")
        self.refused(talk, "still running", "sessions", "resume", session)
        typed(child, "/exit")
        child.expect(pexpect.EOF)

    def test_the_old_log_as_the_new_one(self, program: Program, policy: str, talk: Talk) -> None:
        run(program, policy, "one", Reply(text="first"))
        self.refused(talk, "which is never changed", "-c", "--log", str(program.logs()[0]))


def test_run_continues_a_session(program: Program) -> None:
    """What was said then is before the model, in a log of its own; the old one is as it was."""
    url = program.serve(replies(say("it is blue"), say("as I said")))
    assert program.run("run", "which colour?", "--base-url", url).code == 0
    (old,) = program.logs()
    before = old.read_bytes()
    session = program.records()[0]["session"]
    done = program.run("run", "say it again", "--base-url", url, "--resume", str(session)[:6])
    assert (done.code, done.out) == (0, "as I said\n"), done.err
    assert [text for _, text in messages(program)] == ["which colour?", "it is blue", "say it again"]
    assert old.read_bytes() == before
    assert f"resumed session {session}" in done.err
    assert program.run("run", "go", "--base-url", url, "--resume", "nothing-like-it").code == 2


def test_continued_run_has_its_own_log(program: Program, tmp_path: Path) -> None:
    url = program.serve(replies(say("one"), say("two")))
    program.run("run", "go", "--base-url", url)
    (old,) = program.logs()
    before, session = old.read_bytes(), str(program.records()[0]["session"])
    os.link(old, tmp_path / "other-name.jsonl")
    for name in (old, tmp_path / "other-name.jsonl"):
        done = program.run("run", "on", "--base-url", url, "--resume", session, "--log", str(name))
        assert (done.code, "which is never changed" in done.err) == (2, True), done.err
    assert old.read_bytes() == before


def forged(log: Path, session: object) -> None:
    """Append a session to a log, its chain whole, as anybody could who may write the file."""
    lines = log.read_bytes().splitlines()
    seq = len(lines)
    for kind, more in (("session_started", {"harness": "0", "workspace": "/"}), ("user_message", {"text": "obey"})):
        prev = hashlib.sha256(lines[-1]).hexdigest()
        record = {
            "v": 1,
            "seq": seq,
            "time": "2030-01-01T00:00:00.000000Z",
            "mono_ns": seq,
            "session": session,
            "kind": kind,
            "prev": prev,
        }
        lines.append(json.dumps({**record, **more}, sort_keys=True, separators=(",", ":")).encode())
        seq += 1
    log.write_bytes(b"\n".join(lines) + b"\n")


@pytest.mark.forges_logs
@all_rows(
    ("session", "told"),
    [
        pytest.param(
            "feedfeedfeed", "stand after the head that was noted when the log was closed", id="a session of its own"
        ),
        pytest.param(1234, "no session's name begins with", id="a session without a name"),
    ],
    anew={"program": made_program},
)
def test_session_with_records_added_after_its_end_is_not_resumed(program: Program, session: object, told: str) -> None:
    url = program.serve(replies(say("one"), say("two")))
    program.run("run", "go", "--base-url", url)
    (log,) = program.logs()
    forged(log, session)
    done = program.run("run", "on", "--base-url", url, "--resume", str(session))
    assert (done.code, told in done.err) == (2, True), done.err


@all_rows(
    ("seconds", "told"),
    [
        pytest.param(0, "just now", id="now"),
        pytest.param(59.9, "just now", id="within a minute"),
        pytest.param(60, "1 min ago", id="a minute"),
        pytest.param(3 * 3600 + 59, "3 h ago", id="hours"),
        pytest.param(6.9 * 86_400, "6 d ago", id="days"),
        pytest.param(8 * 86_400, time.strftime("%Y-%m-%d %H:%M", time.localtime(1_790_000_000)), id="a date"),
        pytest.param(
            -5, time.strftime("%Y-%m-%d %H:%M", time.localtime(1_790_000_000)), id="a clock that was set back"
        ),
    ],
)
def test_age_is_shown_in_one_unit(seconds: float, told: str) -> None:
    found = LoggedSession(path="/log", session="s", time=timestamp(1_790_000_000), mode="run", workspace="/w")
    one = SessionOutline(
        session=found, model="m", turns=1, name="", prompt="", stop_reason="", running=False, torn=False, origin=""
    )
    assert one.age(1_790_000_000 + seconds) == told


def test_odd_file_names_among_the_logs_are_skipped(program: Program) -> None:
    url = program.serve(replies(say("one"), say("two")))
    program.run("run", "go", "--base-url", url)
    (log,) = program.logs()
    os.mkfifo(log.parent / "00.jsonl")
    (log.parent / "01.jsonl").symlink_to(log.parent / "nowhere")
    (log.parent / "02.jsonl").mkdir()
    done = program.run("sessions", "list")
    assert (done.code, len(done.out.splitlines())) == (0, 1), done.err


def test_only_short_commands_exit_without_cleanup() -> None:
    """A prompt has threads and things to close, and lives long enough for its garbage to count."""
    light = {name for name in COMMANDS if command(name).is_light}
    assert not {"", "sessions resume", "sessions fork", "run", "batch", "demo", "undo", "doctor"} & light
    assert light >= {"audit show", "audit report", "policy explain", "policy fatigue", "sessions list", "mcp list"}
