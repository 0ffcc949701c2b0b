"""Hooks about a session: as it begins, as it ends, and before an answer is final."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_scene import KEEP, CheckScene
from rows import all_rows

from harness.errors import SessionRefusedError
from harness.log.verify import verify
from harness.messages import Role, StopReason

ECHO = ("bash", {"command": "echo hi"})
DENIES = """echo '{"decision": "deny", "reason": "not today"}'"""


# -- as it begins


@all_rows(
    ("body", "form", "reason"),
    {
        "deny": (DENIES, "harness", "not today"),
        "confirm, which nobody can answer there": (
            """echo '{"decision": "confirm", "reason": "look"}'""",
            "harness",
            "look",
        ),
        "block": ("""echo '{"decision": "block", "reason": "closed"}'""", "harness", "closed"),
        "exit 2": ("echo no VPN >&2; exit 2", "harness", "no VPN"),
        "a crash": ("exit 1", "harness", "the hook gave no answer: exit code 1"),
        "late": ("sleep 600", "harness", "the hook gave no answer: timed out after 0.3 seconds"),
        "noise": ("echo welcome", "harness", "the hook gave no answer: invalid output"),
        "Claude's continue": ("""echo '{"continue": false, "stopReason": "closed"}'""", "claude", "closed"),
    },
)
def test_a_session_does_not_begin_against_a_hook(tmp_path: Path, body: str, form: str, reason: str) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(body, "session-start", form=form, seconds=0.3 if "sleep" in body else 60)
    result = scene.run(ECHO)
    assert result.stop is StopReason.BLOCKED
    assert result.detail.startswith("hook hook-1 (config.toml:7) does not let the session begin: ")
    assert reason in result.detail
    assert [record["stop"] for record in scene.records("session_ended")] == ["blocked"]
    assert not scene.records("model_request")


def test_denied_session_start_raises_an_error(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(DENIES, "session-start")
    with scene.agent() as agent, pytest.raises(SessionRefusedError, match="does not let the session begin: not today"):
        agent.start()
    found = verify(str(scene.path))
    assert (found.problem, found.open_sessions) == ("", ())


@all_rows(
    ("body", "form"),
    {
        "our note": ("""echo '{"note": "tabs, not spaces"}'""", "harness"),
        "Claude's context": (
            """echo '{"hookSpecificOutput": {"additionalContext": "tabs, not spaces"}}'""",
            "claude",
        ),
        "Claude's plain text": ("echo tabs, not spaces", "claude"),
    },
)
def test_session_start_note_is_sent_to_the_model_once(tmp_path: Path, body: str, form: str) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(body, "session-start", form=form)
    with scene.agent() as agent:
        session = agent.start()
        agent.run("go", session)
        agent.run("and on", session)
        agent.end(session)
        said = [message.content for message in session.messages if message.role is Role.USER]
    assert said == ["[The hook hook-1 says: tabs, not spaces]\n\ngo", "and on"]
    assert [record.get("by") for record in scene.records("user_message")] == ["harness", None, None]
    assert verify(str(scene.path)).problem == ""


def test_hook_receives_the_session(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(KEEP, "session-start")
    scene.run()
    told = scene.told_to()
    assert (told["event"], told["about"]["model"]) == ("session-start", "playing")
    (answered,) = scene.records("hook_answered")
    assert (answered["event"], "call" in answered, answered["answer"]) == ("session-start", False, "nothing")


# -- as it ends


@all_rows(
    ("body", "told"),
    {
        "nothing": (KEEP, []),
        "a deny": (DENIES, ["hook hook-1 (config.toml:7): not today"]),
        "a crash": ("exit 1", ["hook hook-1 (config.toml:7): the hook gave no answer: exit code 1"]),
    },
)
def test_session_end_is_reported_and_not_stopped(tmp_path: Path, body: str, told: list[str]) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(body, "session-end")
    result = scene.run(ECHO)
    assert result.stop is StopReason.COMPLETED
    assert scene.told == told
    answered, ended = scene.records("hook_answered")[0], scene.records("session_ended")[0]
    assert ended["seq"] == int(str(answered["seq"])) + 1
    if body is KEEP:
        assert scene.told_to()["stop"] == "completed"


# -- before an answer is final

DENIES_ONCE = f'if [ -e "$0.told" ]; then exit 0; fi; touch "$0.told"; {DENIES}'


@all_rows(
    ("body", "form", "stop", "requests", "detail"),
    {
        "nothing": ("true", "harness", "completed", 1, ""),
        "a deny, once": (DENIES_ONCE, "harness", "completed", 2, ""),
        "a deny, always": (DENIES, "harness", "unfit", 2, "does not let the answer pass: not today"),
        "a confirm is a deny": (
            """echo '{"decision": "confirm", "reason": "look"}'""",
            "harness",
            "unfit",
            2,
            "does not let the answer pass: look",
        ),
        "a block": ("""echo '{"decision": "block", "reason": "stop"}'""", "harness", "blocked", 1, ": stop"),
        "a crash, which the model cannot mend": (
            "exit 1",
            "harness",
            "unfit",
            1,
            "the hook gave no answer: exit code 1",
        ),
        "an allow": ("""echo '{"decision": "allow"}'""", "harness", "completed", 1, ""),
        "Claude's block": ("""echo '{"decision": "block", "reason": "tests"}'""", "claude", "unfit", 2, ": tests"),
        "Claude's exit 2": ("echo tests >&2; exit 2", "claude", "unfit", 2, ": tests"),
    },
)
def test_answer_passes_the_hooks_or_is_requested_once_more(
    tmp_path: Path, body: str, form: str, stop: str, requests: int, detail: str
) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(body, "before-answer", form=form)
    result = scene.run(ECHO)
    assert (result.stop.value, len(scene.records("model_request"))) == (stop, requests + 1)
    assert result.detail.endswith(detail)
    told = [record["text"] for record in scene.records("user_message") if record.get("by") == "harness"]
    assert len(told) == requests - 1
    assert all(str(text).startswith("The hook hook-1 has this against your answer: ") for text in told)


def test_hook_before_an_answer_receives_the_answer_and_the_repeat_flag(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(f'cat >"$0.$(ls "$0".* 2>/dev/null | wc -l)"; {DENIES}', "before-answer")
    scene.run()
    told = [scene.told_to(f"hook-1.{number}") for number in range(2)]
    assert [(one["event"], one["answer"], one["again"]) for one in told] == [
        ("before-answer", "Done.", False),
        ("before-answer", "Done.", True),
    ]


def test_a_schema_and_a_hook_both_look_at_an_answer(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(DENIES_ONCE, "before-answer")
    looked: list[str] = []

    def fits(text: str, seconds: float | None) -> str:
        looked.append(text)
        return "" if len(looked) > 1 else "no JSON"

    result = scene.run(check_answer=fits)
    assert (result.stop, len(looked)) == (StopReason.COMPLETED, 3)
    assert [record["answer"] for record in scene.records("hook_answered")] == ["deny", "nothing"]
