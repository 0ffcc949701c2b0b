"""Every way in which a hook can fail to answer, and what follows: a deny, with the reason, and nothing left running."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from check_scene import ENVIRONMENT, HANGS, POLICY, CheckScene
from process_scene import new_children
from rows import all_rows

from harness.actions import Action, Decision
from harness.errors import UsageError
from harness.files.workspace import Workspace
from harness.gate.call_checks import CheckAnswer
from harness.interrupt import Interrupt, Interrupted
from harness.messages import ToolCall
from harness.policy.loader import parse_policy
from harness.policy.rules import Layer
from harness.policy.verdict import Verdict, evaluate
from harness.process import procfs
from harness.tools import builtin_tools

NOTHING, CONFIRM, DENY, BLOCK = Decision.AUTO, Decision.CONFIRM, Decision.DENY, Decision.BLOCK


def judged(scene: CheckScene, tool: str = "bash", **arguments: object) -> tuple[Action, Verdict]:
    tools = {one.spec.name: one for one in builtin_tools(Workspace(str(scene.workspace)), environment=ENVIRONMENT)}
    given: dict[str, Any] = dict(arguments) or {"command": "echo hi"}
    action = tools[tool].prepare(ToolCall(id="c1", name=tool, arguments="{}"), given)
    return action, evaluate(parse_policy(POLICY, "hooks.toml"), action)


def asked(scene: CheckScene, interrupt: Interrupt | None = None) -> tuple[CheckAnswer, ...]:
    return tuple(scene.checks(interrupt=interrupt).calls.before("s", *judged(scene), None))


class Row(NamedTuple):
    """What a hook does, and what follows from it."""

    body: str
    decision: Decision
    reason: str = ""
    """A part of it."""
    note: str = ""
    form: str = "harness"
    seconds: float = 60
    failed: bool = True
    ignored: str = ""


def fine(body: str, decision: Decision, reason: str = "", **more: Any) -> Row:
    return Row(body, decision, reason, failed=False, **more)


def claude(body: str, decision: Decision, reason: str = "", **more: Any) -> Row:
    return fine(body, decision, reason, form="claude", **more)


def specific(**fields: str) -> str:
    import json

    return f"echo '{json.dumps({'hookSpecificOutput': {'hookEventName': 'PreToolUse', **fields}})}'"


LATE = 0.3
ROWS = {
    # It ends badly.
    "a crash": Row("echo the reason >&2; exit 1", DENY, "exit code 1: the reason"),
    "a crash without a word": Row("exit 3", DENY, "exit code 3"),
    "no such program inside": Row("no-such-program", DENY, "exit code 127"),
    "a signal": Row("kill -9 $$", DENY, "killed by signal 9"),
    "its own group killed": Row("kill -TERM 0", DENY, "killed by signal 15"),
    "an answer, and then a crash": Row("echo '{}'; exit 1", DENY, "exit code 1"),
    # It comes late.
    "late": Row("sleep 600", DENY, f"timed out after {LATE:g} seconds", seconds=LATE),
    "late, and deaf": Row(
        "trap '' TERM; sleep 600; sleep 600", DENY, f"timed out after {LATE:g} seconds", seconds=LATE
    ),
    "an answer, and then no end": Row(
        "echo '{}'; exec sleep 600", DENY, f"timed out after {LATE:g} seconds", seconds=LATE
    ),
    "it reads for ever": Row("cat /dev/zero >/dev/null", DENY, f"timed out after {LATE:g} seconds", seconds=LATE),
    "it prints for ever": Row("yes", DENY, f"timed out after {LATE:g} seconds", seconds=LATE),
    # It prints an invalid answer.
    "noise": Row("echo checked", DENY, "invalid output (line 1, column 1: Expecting value): checked"),
    "noise before the answer": Row("echo ok; echo '{}'", DENY, "invalid output"),
    "two answers": Row("echo '{}'; echo '{}'", DENY, "invalid output"),
    "a list": Row("echo '[]'", DENY, "must be an object, not a list"),
    "a word": Row("echo '\"deny\"'", DENY, "must be an object, not a string"),
    "nothing but null": Row("echo null", DENY, "must be an object, not null"),
    "not UTF-8": Row(r"printf '{\"reason\": \"\377\"}'", DENY, "not UTF-8 (byte"),
    "NUL bytes": Row("head -c 10 /dev/zero", DENY, "invalid output"),
    "100 MB": Row("head -c 100000000 /dev/zero", DENY, "more than 262144 bytes"),
    "a key twice": Row("""echo '{"decision": "deny", "decision": "allow"}'""", DENY, "duplicate key"),
    "nested without end": Row("head -c 100000 /dev/zero | tr '\\0' '['", DENY, "nested too deeply"),
    "an unknown key": Row("""echo '{"permission": "deny"}'""", DENY, "unknown field 'permission'"),
    "an unknown decision": Row(
        """echo '{"decision": "maybe"}'""", DENY, "unknown 'maybe' (expected one of confirm, deny, block)"
    ),
    "a decision that is no text": Row("""echo '{"decision": 2}'""", DENY, "decision: must be a string"),
    "a note that is no text": Row("""echo '{"note": ["x"]}'""", DENY, "note: must be a string"),
    "Claude's answer in our form": Row("""echo '{"hookSpecificOutput": {}}'""", DENY, "unknown field"),
    # It answers.
    "silence": fine("true", NOTHING),
    "blank lines": fine("echo; echo", NOTHING),
    "an empty object": fine("echo '{}'", NOTHING),
    "confirm": fine("""echo '{"decision": "confirm", "reason": "look"}'""", CONFIRM, "look"),
    "deny": fine("""echo '{"decision": "deny", "reason": "no"}'""", DENY, "no"),
    "deny without a reason": fine("""echo '{"decision": "deny"}'""", DENY, "the hook gave no reason"),
    "block": fine("""echo '{"decision": "block", "reason": "stop"}'""", BLOCK, "stop"),
    "exit 2": fine("echo not this >&2; exit 2", DENY, "not this"),
    "exit 2 without a word": fine("exit 2", DENY, "the hook gave no reason"),
    "exit 2 and an allow": fine("""echo '{"decision": "allow"}'; echo no >&2; exit 2""", DENY, "no"),
    "an allow": fine("""echo '{"decision": "allow"}'""", NOTHING, ignored="allow"),
    "an approve": fine("""echo '{"decision": "approve"}'""", NOTHING, ignored="approve"),
    "an auto": fine("""echo '{"decision": "auto"}'""", NOTHING, ignored="auto"),
    "a note": fine("""echo '{"note": "by the way"}'""", NOTHING, note="by the way"),
    "a note with a cursor": fine(r"""printf '{"note": "a\\u001b[2Jb"}'""", NOTHING, note="a\\x1b[2Jb"),
    "a huge note": fine(
        """printf '{"note": "'; head -c 20000 /dev/zero | tr '\\0' n; echo '"}'""",
        NOTHING,
        note="[cut: 10000 characters more]",
    ),
    "a huge reason": fine("head -c 20000 /dev/zero | tr '\\0' n >&2; exit 2", DENY, "[cut: 18000 characters more]"),
    "words on stderr": fine("echo just saying >&2", NOTHING),
    # What it leaves behind is ended, and its pipe is not waited for.
    "a child that holds the pipe": fine("sleep 600 & echo '{}'", NOTHING),
    "a child in a session of its own": fine("setsid sleep 600 & echo '{}'", NOTHING),
    # Claude Code's form.
    "claude: silence": claude("true", NOTHING),
    "claude: exit 2": claude("echo not this >&2; exit 2", DENY, "not this"),
    "claude: exit 1": Row("exit 1", DENY, "exit code 1", form="claude"),
    "claude: noise": Row("echo checked", DENY, "invalid output", form="claude"),
    "claude: deny": claude(specific(permissionDecision="deny", permissionDecisionReason="no"), DENY, "no"),
    "claude: ask": claude(specific(permissionDecision="ask", permissionDecisionReason="look"), CONFIRM, "look"),
    "claude: defer": claude(specific(permissionDecision="defer"), CONFIRM, "the hook gave no reason"),
    "claude: allow": claude(specific(permissionDecision="allow"), NOTHING, ignored="allow"),
    "claude: context": claude(specific(additionalContext="mind the gap"), NOTHING, note="mind the gap"),
    "claude: the older block": claude("""echo '{"decision": "block", "reason": "no"}'""", DENY, "no"),
    "claude: the older approve": claude("""echo '{"decision": "approve"}'""", NOTHING, ignored="approve"),
    "claude: both, the one allows": claude(
        """echo '{"decision": "block", "reason": "no", "hookSpecificOutput": {"permissionDecision": "allow"}}'""",
        DENY,
        "no",
        ignored="allow",
    ),
    "claude: continue": claude("""echo '{"continue": false, "stopReason": "enough"}'""", BLOCK, "enough"),
    "claude: another call": claude(
        """echo '{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "ls"}}}'""",
        DENY,
        "another call in the place of this one",
        ignored="allow",
    ),
    "claude: an unknown permission": Row(
        specific(permissionDecision="maybe"), DENY, "permissionDecision: 'maybe' is none of", form="claude"
    ),
    "claude: fields for its screen": claude("""echo '{"suppressOutput": true, "systemMessage": "hi"}'""", NOTHING),
    "claude: no object": Row("""echo '{"hookSpecificOutput": "deny"}'""", DENY, "must be an object", form="claude"),
}


@all_rows("row", ROWS)
def test_a_hook_that_does_not_answer_denies(tmp_path: Path, row: Row) -> None:
    scene = CheckScene(tmp_path)
    scene.hook(row.body, seconds=row.seconds, form=row.form)
    before = procfs.children(os.getpid())
    (answer,) = asked(scene)
    assert (answer.decision, answer.has_failed, answer.ignored) == (row.decision, row.failed, row.ignored)
    assert row.reason in answer.reason
    assert bool(answer.reason) == (row.decision is not NOTHING)
    assert row.note in answer.note
    assert bool(row.note) == bool(answer.note)
    assert answer.reason.startswith("the hook gave no answer: ") == row.failed
    assert answer.program_sha256 is not None
    assert answer.by == "hook hook-1 (config.toml:7)"
    assert new_children(before) == set()


def _missing(scene: CheckScene) -> list[str]:
    return [str(scene.hooks / "gone")]


def _of_no_folder(scene: CheckScene) -> list[str]:
    return ["no-such-program-anywhere"]


def _not_executable(scene: CheckScene) -> list[str]:
    path = scene.program("true")
    os.chmod(path, 0o644)
    return [path]


def _folder(scene: CheckScene) -> list[str]:
    return [str(scene.hooks)]


def _without_interpreter(scene: CheckScene) -> list[str]:
    return [scene.program("true", interpreter="/nonexistent/interpreter")]


@all_rows(
    ("make", "reason"),
    {
        "missing": (_missing, "/hooks/gone does not exist"),
        "in no folder of PATH": (_of_no_folder, "was not found in PATH outside of the workspace"),
        "not executable": (_not_executable, "is not executable"),
        "a folder": (_folder, "is not a file"),
        "no interpreter": (_without_interpreter, "exit code 12"),
    },
)
def test_a_hook_that_cannot_be_started_denies(
    tmp_path: Path, make: Callable[[CheckScene], list[str]], reason: str
) -> None:
    scene = CheckScene(tmp_path)
    scene.declare("h", "before-call", make(scene))
    (answer,) = asked(scene)
    assert (answer.decision, answer.has_failed) == (DENY, True)
    assert reason in answer.reason


def test_a_hook_that_is_removed_in_the_middle_denies_from_then_on(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    hook = scene.hook("true")
    checks = scene.checks().calls
    assert [one.decision for one in checks.before("s", *judged(scene), None)] == [NOTHING]
    os.unlink(hook.command[0])
    assert [one.decision for one in checks.before("s", *judged(scene), None)] == [DENY]


def test_user_can_stop_a_hook(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    interrupt = Interrupt()
    scene.hook(HANGS)
    presser = scene.pressing(interrupt)
    with pytest.raises(Interrupted):
        asked(scene, interrupt)
    presser.join()


@all_rows(
    ("command", "inside", "form"),
    {
        "the program itself": (["./check.sh"], "check.sh", "harness"),
        "by its whole name": (["{work}/check.sh"], "check.sh", "harness"),
        "one that is not there yet": (["./later.sh"], "later.sh", "harness"),
        "what an interpreter runs": (["sh", "{work}/check.sh"], "check.sh", "harness"),
        "what one runs that starts there": (["sh", "check.sh"], "check.sh", "claude"),
        "a folder that Python runs": (["python3", "{work}/check"], "check/__main__.py", "harness"),
        "by a link": (["{hooks}/link"], "hooks/link", "harness"),
        "a file that it is given": (["sh", "-c", ":", "{work}/check.sh"], "check.sh", "harness"),
    },
)
@pytest.mark.parametrize("layer", [Layer.USER, Layer.PROJECT])
def test_a_hook_that_calls_could_change_is_refused(
    tmp_path: Path, command: list[str], inside: str, form: str, layer: Layer
) -> None:
    scene = CheckScene(tmp_path)
    (scene.workspace / "check").mkdir()
    (scene.workspace / "check" / "__main__.py").touch()
    (scene.workspace / "check.sh").write_text("#!/bin/sh\nexit 2\n")
    (scene.workspace / "check.sh").chmod(0o755)
    (scene.hooks / "link").symlink_to(scene.workspace / "check.sh")
    words = [word.format(work=scene.workspace, hooks=scene.hooks) for word in command]
    scene.declare("h", "before-call", words, form=form, layer=layer)
    with pytest.raises(UsageError, match=rf"config.toml:7: \[\[hook\]\] command: .*{inside} is in the workspace"):
        scene.checks()


@all_rows(
    ("form", "inner"),
    {
        "it is the module": ("harness", False),
        "it imports the module": ("harness", True),
        "it imports the module in the workspace": ("claude", True),
    },
)
def test_hook_python_never_imports_from_the_workspace(tmp_path: Path, form: str, inner: bool) -> None:
    scene = CheckScene(tmp_path)
    (scene.workspace / "taken_over.py").touch()
    command = [scene.program("python3 -c 'import taken_over'")] if inner else ["python3", "-m", "taken_over"]
    scene.declare("h", "before-call", command, form=form)
    (answer,) = asked(scene)
    assert (answer.decision, answer.has_failed) == (DENY, True)
    assert "No module named" in answer.reason


def test_workspace_file_named_like_a_hook_command_is_not_run(tmp_path: Path) -> None:
    scene = CheckScene(tmp_path)
    scene.declare("h", "before-call", ["sh", "check.sh"], form="claude")
    checks = scene.checks().calls
    (scene.workspace / "check.sh").write_text("true\n")
    (answer,) = checks.before("s", *judged(scene), None)
    assert (answer.decision, answer.has_failed) == (DENY, True)
    assert "check.sh, which did not exist when the session began" in answer.reason
