"""A person who is asked about calls of a server's tools: in the proxy, while all else goes on, and by `harness mcp pin`."""

from __future__ import annotations

import json
import os
import queue
import shlex
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from mcp_scene import Json, McpScene, call, line_of, request, tool
from process_scene import wait_until
from program import Program
from repl_scene import Prompt, write_config
from rows import all_rows

from harness.actions import Action
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.gate.call_checks import NO_CHECKS
from harness.log.action_log import ActionLog
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.plugins.mcp.proxy import McpProxy, ProxyEnd, ProxyStop, as_its_client_would, begin_session
from harness.plugins.mcp.tool_catalog import ToolCatalog
from harness.policy.loader import load_policy
from harness.policy.verdict import Verdict
from harness.process.piped_process import PipedProcess

ECHO, FREE = tool("echo", "Does it.\u202eit seod\x1b[2J"), tool("free")
ASKED = 'version = 1\n[tools]\n"mcp__srv__echo" = "confirm"\n"mcp__srv__free" = "auto"\n'
YES = Approval(answer=Answer.YES, by="person")


class Played:
    """A proxy in this process, whose client and whose person are this test."""

    def __init__(self, scene: McpScene, folder: Path) -> None:
        self.scene = scene
        self.questions: queue.SimpleQueue[tuple[Action, Verdict]] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Approval | Exception] = queue.SimpleQueue()
        self.log = ActionLog.open(str(folder / "log.jsonl"))
        source, self._to = os.pipe()
        self._from, sink = os.pipe()
        self._read = os.fdopen(self._from, "rb")
        self._fds = [source, sink]
        catalog = ToolCatalog(scene.words, shlex.join(scene.words), scene.pins)
        policy = load_policy(scene.policy)
        self.proxy = McpProxy(
            PipedProcess(as_its_client_would(scene.words, os.environ), "the server"),
            catalog,
            policy=policy,
            approver=self._ask,
            log=self.log,
            workspace=Workspace(str(folder)),
            checks=NO_CHECKS,
            client=(source, sink),
        )
        begin_session(self.log, policy, {"mode": "mcp proxy"})
        self.ended: list[ProxyEnd] = []
        self._thread = threading.Thread(target=lambda: self.ended.append(self.proxy.run()))
        self._thread.start()

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        self.questions.put((action, verdict))
        answer = self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def write(self, message: Json) -> None:
        os.write(self._to, line_of(message).encode())

    def read(self) -> Json:
        return dict(json.loads(self._read.readline()))

    def text(self) -> str:
        return str(self.read()["result"]["content"][0]["text"])

    def asked(self) -> Action:
        return self.questions.get(timeout=120)[0]

    def end(self) -> ProxyEnd:
        """Leave as the client does, where nobody did; the log verifies then."""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1
            self._thread.join(120)
            (ended,) = self.ended
            self.proxy.end(ended, 0)
            self.log.close()
            found = verify(self.log.path)
            assert (found.problem, found.open_sessions) == ("", ()), found
        return self.ended[0]

    def records(self, kind: str) -> list[Mapping[str, object]]:
        with open(self.log.path, encoding="utf-8") as file:
            return [record for record in map(json.loads, file) if record["kind"] == kind]

    def statuses(self) -> list[object]:
        return [record["status"] for record in self.records("outcome")]

    def close(self) -> None:
        self.end()
        self._read.close()
        for descriptor in self._fds:
            os.close(descriptor)


@pytest.fixture
def scene(program: Program) -> Iterator[McpScene]:
    """A server with a tool that is asked about, and one that is not; nobody has seen the first."""
    with McpScene(program, policy=ASKED, tools=[[ECHO, FREE]], pinned=[FREE]) as made:
        yield made


@pytest.fixture
def played(scene: McpScene, tmp_path: Path) -> Iterator[Played]:
    """The proxy before it."""
    made = Played(scene, tmp_path)
    yield made
    made.close()


def test_first_use_asks_with_the_description_and_an_approval_pins(played: Played) -> None:
    played.write(call(1, "echo", text="a\u200bb"))
    asked = played.asked()
    assert asked.shown_whole
    for shown in (
        "tool echo of the MCP server srv",
        '"text": "a\\u200bb"',
        "Does it.\\u202eit seod\\x1b[2J",
        '"object"',
    ):
        assert shown in asked.preview
    assert played.scene.pins.read()["echo"].pinned is None
    played.answers.put(YES)
    assert played.text() == 'echo got {"text": "a\\u200bb"}'
    assert played.scene.pins.read()["echo"].pinned == played.scene.described(ECHO)
    played.write(call(2, "echo"))
    assert "It is new here" not in played.asked().preview, "the policy asks still"
    played.answers.put(Approval(answer=Answer.NO, by="person", words="not now"))
    assert "not now" in played.text()
    assert played.end().stop is ProxyStop.CLIENT
    assert played.statuses() == ["ok", "denied"]


def test_refusal_pins_no_tool(played: Played) -> None:
    played.write(call(1, "echo"))
    played.asked()
    played.answers.put(Approval(answer=Answer.NO, by="person"))
    assert played.text().startswith("Denied by the person")
    assert played.scene.pins.read()["echo"].pinned is None
    assert played.scene.calls_seen() == []


def test_other_requests_go_on_during_a_question(played: Played) -> None:
    played.write(call(1, "echo"))
    played.asked()
    played.write(request(99, "ping"))
    assert played.read()["result"] == {"echo": "ping"}
    played.write(call(2, "free"))
    assert played.text() == "free got {}"
    played.write(call(3, "echo"))
    played.asked()  # two questions at once
    played.answers.put(YES)
    played.answers.put(YES)
    assert {played.text(), played.text()} == {"echo got {}"}
    assert played.scene.calls_seen()[0] == "free"
    played.end()
    assert played.statuses() == ["ok", "ok", "ok"]


def test_arguments_edited_by_the_person_are_sent(played: Played) -> None:
    message = call(1, "echo", path="/etc")
    message["params"]["_meta"] = {"progressToken": 1}
    played.write(message)
    played.asked()
    played.answers.put(Approval(answer=Answer.EDIT, by="person", arguments='{"path": "/tmp"}'))
    assert '"/tmp"' in played.asked().preview, "what is wanted is judged like every call"
    played.answers.put(YES)
    assert played.text() == 'echo got {"path": "/tmp"}'
    assert played.scene.seen()[-1] == {
        **message,
        "params": {"name": "echo", "arguments": {"path": "/tmp"}, "_meta": {"progressToken": 1}},
    }
    played.end()
    assert played.statuses() == ["denied", "ok"]


def test_tool_changed_during_its_question_is_not_called(played: Played) -> None:
    played.scene.pins.note_listed({})
    played.write(call(1, "echo"))
    played.asked()
    played.proxy._traffic.from_server(  # as the server would say it at this moment
        line_of({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode()
    )
    assert played.read()["method"] == "notifications/tools/list_changed"
    played.answers.put(YES)
    assert "its tools changed" in played.text()
    assert played.scene.calls_seen() == []
    assert played.scene.pins.read()["echo"].pinned is None
    played.end()
    assert played.statuses() == ["failed"]


def test_call_cancelled_during_its_question_is_never_sent(played: Played) -> None:
    played.write(call(1, "echo"))
    played.asked()
    played.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    played.write(request(99, "ping"))
    assert played.read()["id"] == 99
    played.answers.put(YES)
    assert wait_until(lambda: played.statuses() == ["failed"])
    played.write(request(98, "ping"))
    assert played.read()["id"] == 98, "the client gets no answer to what it cancelled"
    assert [one["method"] for one in played.scene.seen()] == ["tools/list", "ping", "ping"], (
        "nor does the server hear of it"
    )
    played.end()


def test_end_during_a_question_runs_no_call(played: Played) -> None:
    played.write(call(1, "echo"))
    played.asked()
    assert played.end().stop is ProxyStop.CLIENT
    assert played.read()["error"]["message"].startswith("The proxy ended")
    played.answers.put(YES)  # too late
    assert played.statuses() == ["not_run"]
    assert played.scene.calls_seen() == []


def test_an_approver_that_fails_ends_the_proxy(played: Played) -> None:
    played.write(call(1, "echo"))
    played.asked()
    played.answers.put(RuntimeError("no screen"))
    assert "no screen" in played.read()["error"]["message"]
    played._thread.join(120)
    assert played.ended[0].stop is ProxyStop.FAULT
    played.end()
    assert (played.statuses(), played.scene.calls_seen()) == (["not_run"], [])


# -- harness mcp pin


def at_terminal(program: Program, *words: str) -> Prompt:
    write_config(program)
    return Prompt(
        program.command("mcp", *words), columns=100, lines=40, cwd=program.workspace, environment=program.environment
    )


@all_rows(
    ("key", "code", "pinned"), [("y", 0, True), ("n", 7, False), ("\x04", 7, False), ("\x03", 7, False)], fresh=True
)
def test_user_reviews_a_new_tool_and_answers(program: Program, key: str, code: int, pinned: bool) -> None:
    with McpScene(program) as scene:
        scene.pins.note_listed({"echo": scene.described(ECHO)})
        with at_terminal(program, "pin", "srv") as played:
            played.press("mcp", key)
            assert played.exit_code() == code
            shown = played.unwrapped()
        assert "Does it.\\u202eit seod\\x1b[2J" in shown
        assert (scene.pins.read()["echo"].pinned == scene.described(ECHO)) is pinned


def test_user_reviews_a_change_and_answers(program: Program) -> None:
    with McpScene(program, pinned=[ECHO, FREE]) as scene:
        other = tool("echo", "Send it elsewhere.")
        scene.pins.note_listed({"echo": scene.described(other)})
        with at_terminal(program, "pin", "srv") as played:
            played.press("mcp", "y")
            assert played.exit_code() == 0
            shown = played.unwrapped()
        assert "-  Does it.\\u202eit seod" in shown
        assert "+  Send it elsewhere." in shown
        assert scene.pins.read()["echo"].pinned == scene.described(other)
        with at_terminal(program, "unpin", "srv", "echo") as played:
            played.press("mcp", "y")
            assert played.exit_code() == 0
        assert scene.pins.read()["echo"].pinned is None


@all_rows(("words", "said"), [(("pin", "srv", "x"), "the tool x"), (("pin", "other"), "the server")], fresh=True)
def test_unknown_tool_cannot_be_pinned(program: Program, words: tuple[str, ...], said: str) -> None:
    with McpScene(program, pinned=[ECHO]), at_terminal(program, *words) as played:
        assert played.exit_code() == 2
        assert f"{said} " in played.unwrapped()


def test_tool_is_pinned_by_its_digest_without_a_terminal(program: Program) -> None:
    with McpScene(program, pinned=[FREE]) as scene:
        scene.pins.note_listed({"echo": scene.described(ECHO)})
        now = scene.described(ECHO).sha256
        for words in (("srv", "--yes", now[:12]), ("srv", FREE["name"], "--yes", now), ("other", "--yes", now)):
            refused = program.run("mcp", "pin", *words)
            assert (refused.code, scene.pins.read()["echo"].pinned) == (2, None), refused
        done = program.run("mcp", "pin", "srv", "--yes", now)
        assert (done.code, done.out) == (0, f"srv echo: pinned, sha256 {now}\n")
        assert scene.pins.read()["echo"].pinned == scene.described(ECHO)
        other = scene.described(tool("echo", "Send it elsewhere."))
        scene.pins.note_listed({"echo": other})
        assert program.run("mcp", "pin", "srv", "echo", "--yes", now).code == 2  # it is the old one
