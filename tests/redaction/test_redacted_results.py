"""What a secret in a file or an output becomes on its way to the model and the log, and what the model may do with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from agent_scene import DONE, Playing, reply

from harness import ActionLog, Agent, Workspace, builtin_tools
from harness.gate.approval import ScriptedAnswers
from harness.log.reader import read_log
from harness.loop.run import Session
from harness.messages import Message, ModelResponse, Role, RunResult, StopReason, ToolCall
from harness.policy.loader import parse_policy
from harness.redaction.marks import is_redacted
from harness.redaction.redactor import Redactor
from policies import AUTO

SECRET = "hunter2-" + "correct-horse"


class Place:
    """An agent with the real tools in a workspace with a secret in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        (self.root / "settings.ini").write_text(f"user = ann\npassword = {SECRET}\nport = 1\n")
        self.path = str(folder / "log.jsonl")
        self.log = ActionLog.open(self.path, redactor=Redactor([SECRET], key=b"k" * 32))
        self.mark = self.log.redactor.redact(SECRET)
        self.session: Session | None = None

    def play(self, *script: ModelResponse, carried: tuple[Message, ...] = ()) -> RunResult:
        agent = Agent(
            model=Playing(script),
            tools=builtin_tools(Workspace(str(self.root), None), environment={"PATH": "/usr/bin:/bin"}),
            policy=parse_policy(AUTO.encode(), "auto.toml"),
            approver=ScriptedAnswers([]),
            log=self.log,
        )
        self.session = agent.start(carried=carried)
        result = agent.run(f"the password is {SECRET}", self.session)
        agent.end(self.session, result)
        return result

    def results(self) -> list[str]:
        assert self.session is not None
        return [message.content for message in self.session.messages if message.role is Role.TOOL]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def calling(number: int, tool: str, arguments: Mapping[str, object]) -> ModelResponse:
    return reply(ToolCall(id=f"c{number}", name=tool, arguments=json.dumps(arguments)))


READ = calling(1, "read_file", {"path": "settings.ini"})


@pytest.mark.parametrize("asked", [READ, calling(1, "bash", {"command": "cat settings.ini"})])
def test_the_model_and_the_log_get_a_mark(place: Place, asked: ModelResponse) -> None:
    place.play(asked, DONE)
    (content,) = place.results()
    assert (SECRET in content, place.mark in content, "port = 1" in content) == (False, True, True)
    (outcome,) = [record for record in read_log(place.path) if record["kind"] == "outcome"]
    assert outcome["content"] == content
    assert SECRET not in Path(place.path).read_text()


def test_record_counts_masked_values_by_rule(place: Place) -> None:
    place.play(DONE)
    said = next(record for record in read_log(place.path) if record["kind"] == "user_message")
    assert (said["text"], said["masked"]) == (f"the password is {place.mark}", {"known": 1})


def test_prompt_reaches_the_model_unmasked(place: Place) -> None:
    place.play(DONE)
    assert place.session is not None
    assert place.session.messages[1].content == f"the password is {SECRET}"


def test_a_mark_is_never_written_in_the_place_of_its_secret(place: Place) -> None:
    """The call is refused before it is judged, and says what to do instead."""
    text = f"user = ann\npassword = {place.mark}\nport = 2\n"
    place.play(READ, calling(2, "write_file", {"path": "settings.ini", "content": text}), DONE)
    assert "a placeholder for a secret that was not shown to you" in place.results()[1]
    assert f"password = {SECRET}\nport = 1" in (place.root / "settings.ini").read_text()


def test_a_mark_that_is_spelled_with_escapes_is_a_mark(place: Place) -> None:
    content = json.dumps({"path": "settings.ini", "content": place.mark}).replace(":known:", "\\u003aknown\\u003a")
    place.play(READ, reply(ToolCall(id="c2", name="write_file", arguments=content)), DONE)
    assert "a placeholder for a secret" in place.results()[1]
    assert SECRET in (place.root / "settings.ini").read_text()


def test_lines_around_a_secret_can_be_edited(place: Place) -> None:
    change = {"path": "settings.ini", "edits": [{"old_string": "port = 1", "new_string": "port = 2"}]}
    place.play(READ, calling(2, "edit_file", change), DONE)
    assert (place.root / "settings.ini").read_text() == f"user = ann\npassword = {SECRET}\nport = 2\n", place.results()
    assert SECRET not in place.results()[1]


def test_a_mark_of_a_resumed_conversation_counts_as_one(place: Place) -> None:
    earlier = (Message(role=Role.USER, content=f"it says {place.mark}"),)
    place.log.redactor = Redactor([SECRET], key=b"k" * 32)  # as in another process
    place.log.redactor.note(place.mark)
    place.play(calling(1, "bash", {"command": f"echo '{place.mark}' > settings.ini"}), DONE, carried=earlier)
    assert "a placeholder for a secret" in place.results()[0]


def test_a_text_that_only_looks_like_a_mark_is_a_text(place: Place) -> None:
    forged = "[redacted:known:00000000]"
    assert is_redacted(forged)
    place.play(calling(1, "write_file", {"path": "notes.txt", "content": forged}), DONE)
    assert (place.root / "notes.txt").read_text() == forged


def test_the_answer_is_given_without_the_secret(place: Place) -> None:
    result = place.play(reply(text=f"It is {SECRET}."))
    assert (result.stop, result.text) == (StopReason.COMPLETED, f"It is {place.mark}.")


def test_file_errors_are_logged_with_a_code(place: Place) -> None:
    place.play(calling(1, "read_file", {"path": "nowhere.txt"}), calling(2, "read_file", {"path": "."}), DONE)
    codes = [record.get("error_code") for record in read_log(place.path) if record["kind"] == "outcome"]
    assert codes == ["E_NOT_FOUND", "E_IS_DIR"]
