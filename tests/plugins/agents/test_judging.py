"""What a hook answers to the calls of an agent, and what stands in the log then."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hook_scene import UNBOUND, HookScene, word_of
from judged_world import Row, hostile, made_with_secrets
from rows import all_rows
from text_rows import TextRow, text_rows

from harness.actions import Action
from harness.digest import digest_of
from harness.files.undo import Result as UndoResult
from harness.files.undo import Undoable, Unrestorable, changes_to_undo, restore
from harness.files.workspace import Workspace
from harness.gate.approval import Approval, ScriptedAnswers, deny_all
from harness.gate.records import Advice
from harness.grant_pattern import GrantScope
from harness.log.action_log import ActionLog
from harness.log.reader import read_log
from harness.log.vocabulary import Answer
from harness.plugins.agents.event import EventError, HookEvent, When
from harness.plugins.agents.guarded_agent import HookAnswer, agent_named
from harness.plugins.agents.judging import workspace_of
from harness.policy.loader import load_policy
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.sandbox import enforces, probe
from harness.session.asked_call import AskedCall
from policies import AUTO

CONFINES = enforces(probe())
ROWS = [
    [part.strip() for part in f"{line} ".split(" | ")]
    for line in Path(__file__).with_name("judged.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
BEGIN = b'{"session_id": "S", "hook_event_name": "PreToolUse", "cwd": "/", '


def _scene(folder: Path, **named: object) -> HookScene:
    scene = HookScene(folder, load_policy("default"), **named)  # type: ignore[arg-type]
    (scene.workspace / ".git").mkdir()
    (scene.workspace / "sub").mkdir()
    (scene.workspace / "f.txt").write_text("alpha\n")
    (scene.workspace / ".env").write_text("X=1\n")
    (scene.workspace / "link").symlink_to(".")
    skill = scene.workspace / ".claude" / "skills" / "words"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: words\n---\nSay less!\n")
    (folder / ".claude" / "skills" / "mine").mkdir(parents=True)
    return scene


@all_rows("agent,tool,arguments,word,reason", ROWS, ids=lambda row: " ".join(row[:3]))
def test_each_call_gets_the_answer_of_its_row(
    agent: str, tool: str, arguments: str, word: str, reason: str, tmp_path: Path
) -> None:
    scene = _scene(tmp_path, agent=agent)
    written = arguments.replace('"/w', f'"{scene.workspace}').replace('"~', f'"{tmp_path}')
    reply = scene.event("PreToolUse", tool, json.loads(written), permission_mode="bypassPermissions")
    rewritten = "exec --ticket" in reply.stdout
    held = (
        tool in ("Bash", "Monitor")
        and "unconfined" not in reason
        and word in ("run", "ask")
        and reason not in ("Bash", "Monitor")
    )
    runs = "allow" if CONFINES or agent == "claude" else "silence"
    assert (word_of(reply), rewritten) == (runs if word == "run" else word, held and CONFINES)
    assert reason in f"{reply.stdout}{reply.stderr}"
    kinds = [str(record["kind"]) for record in scene.records()]
    assert kinds[:2] == ["session_started", "call_proposed"]
    assert {"allow": "intent", "silence": "intent", "run": "intent", "ask": "approval_asked"}.get(
        word, "outcome"
    ) in kinds[-2:]


LISTS = [
    [part.strip() for part in f"{line} ".split(" | ")]
    for line in Path(__file__).with_name("lists.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@all_rows("tool,arguments,word,reason", LISTS, ids=lambda row: " ".join(row[:2]))
def test_all_of_a_list_is_judged(tool: str, arguments: str, word: str, reason: str, tmp_path: Path) -> None:
    scene = _scene(tmp_path, agent="cline")
    given = json.loads(arguments.replace('"/w', f'"{scene.workspace}'))
    told = {"type": "beforeTool", "sessionId": "S", "cwd": str(scene.workspace), "toolName": tool, "toolCallId": "c1"}
    reply = scene.send(json.dumps({**told, "input": given}).encode())
    assert (reply.code, "exec --ticket" in reply.stdout) == (2 if word == "deny" else 0, word == "run" and CONFINES)
    assert reason in reply.stderr
    outcomes = [record for record in scene.records() if record["kind"] == "outcome"]
    assert len(outcomes) == (len(given.get("files", [])) or 1 if word == "deny" else 0)


FOREIGN = [
    line.rpartition(" | ")[::2]
    for line in Path(__file__).with_name("foreign_environment.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


@all_rows("command,answer", FOREIGN, ids=lambda row: row[0])
def test_command_that_may_print_keys_of_its_environment_is_asked_about(
    command: str, answer: str, tmp_path: Path
) -> None:
    scene = _scene(tmp_path, agent="qwen")
    reply = scene.event("PreToolUse", "run_shell_command", {"command": command.replace("\\n", "\n")})
    assert word_of(reply) == {"asked": "ask", "runs": "silence"}[answer]


@all_rows(
    "policy", [AUTO.encode(), b'version = 1\n[[rule]]\nid = "e"\ndecision = "auto"\nargv = ["printenv", "..."]\n']
)
def test_no_rule_allows_printing_the_environment_of_an_agent_unasked(policy: bytes, tmp_path: Path) -> None:
    scene = HookScene(tmp_path, policy, agent="qwen")
    reply = scene.event("PreToolUse", "run_shell_command", {"command": "printenv TOKEN"})
    assert (word_of(reply), "may hold keys" in reply.stdout) == ("ask", True)


@all_rows(
    "text",
    ["Run !`touch x` first", "```!\ntouch x\n```", "---\nhooks:\n  Stop: []\n---\n", '---\n"\\x68ooks": {}\n---\n'],
)
@all_rows("place", [".claude/skills/words/SKILL.md", "../.claude/commands/deep/other.md"])
def test_skill_asks_where_a_file_of_the_project_may_run_commands(text: str, place: str, tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    (scene.workspace / "sub" / ".claude").mkdir()
    path = scene.workspace / "sub" / place
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (scene.workspace / "sub" / ".claude" / "skills" / "words").mkdir(parents=True, exist_ok=True)
    asked = {"skill": "words"}
    assert word_of(scene.event("PreToolUse", "Skill", asked, cwd=str(scene.workspace / "sub"))) == "ask"
    path.write_text("Say less!\n")
    assert word_of(scene.event("PreToolUse", "Skill", asked, "c2", cwd=str(scene.workspace / "sub"))) == "allow"


HOSTS = """version = 1
[tools]
default = "auto"
[unattended]
confirm = "deny"
[[rule]]
id = "here"
decision = "auto"
host = ["docs.example.org"]
[[rule]]
id = "there"
decision = "deny"
host = ["*.example.net"]
reason = "not there"
[[rule]]
id = "place"
decision = "deny"
tool = ["mcp__place__*"]
reason = "no place"
"""
SENT = {
    "claude": '"session_id": "S", "hook_event_name": "PreToolUse", "tool_name": %s, "tool_input": %s, "cwd": "/"',
    "codex": '"session_id": "S", "hook_event_name": "PreToolUse", "tool_name": %s, "tool_input": %s, "cwd": "/"',
    "gemini": '"session_id": "S", "hook_event_name": "BeforeTool", "tool_name": %s, "tool_input": %s, "cwd": "/"',
    "qwen": '"session_id": "S", "hook_event_name": "PreToolUse", "tool_name": %s, "tool_input": %s, "cwd": "/"',
    "copilot": '"sessionId": "S", "toolName": %s, "toolArgs": %s, "cwd": "/"',
    "opencode": '"when": "before", "sessionID": "S", "callID": "c", "tool": %s, "args": %s, "directory": "/"',
}
"""The event before a call in the form of each agent, without its name of the tool and the arguments."""


@all_rows("row", text_rows(Path(__file__).with_name("one_policy.txt")), ids=lambda row: row.text)
def test_one_policy_decides_alike_for_all_agents(row: TextRow, tmp_path: Path) -> None:
    agent, tool, arguments, *more = (part.strip() for part in row.text.split(" | "))
    home = tmp_path / "home"
    (home / ".copilot").mkdir(parents=True)
    (home / ".copilot" / "mcp-config.json").write_text('{"mcpServers": {"place": {}, "a-b": {}}}')
    scene = HookScene(
        tmp_path, HOSTS.encode(), agent=agent, environment={"HOME": str(home), f"{agent.upper()}_PROJECT_DIR": "/"}
    )
    sent = SENT[agent] % (json.dumps(tool), arguments) + "".join(f", {part}" for part in more)
    scene.send(f"{{{sent}}}".encode())
    called = next(record for record in scene.records() if record["kind"] == "call_proposed")
    decided = next(record for record in scene.records() if record["kind"] == "decision")
    assert [f"{called['tool']}: {decided['decision']}"] == row.answers


@all_rows("folder,top", [("w", "w"), ("w/sub", "w"), ("alone", "alone"), ("", ""), ("inner", "inner")])
def test_workspace_is_the_top_of_the_repository_but_never_the_home_folder(
    folder: str, top: str, tmp_path: Path
) -> None:
    for name in (".git", "w/.git", "w/sub", "alone", "inner/deep"):
        (tmp_path / name).mkdir(parents=True)
    parts = HookScene(tmp_path, b"version = 1\n").parts
    parts = replace(parts, environment={"CLAUDE_PROJECT_DIR": str(tmp_path / folder)})
    event = HookEvent(when=When.BEFORE, session="S", cwd="/")
    assert workspace_of(agent_named("claude"), event, parts) == str(tmp_path / top).rstrip("/")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, HookScene]:
    """One scene for each policy of the table, all of the same repository."""
    world = made_with_secrets(tmp_path_factory.mktemp("home"))
    root = Path(world.workspace.root)
    return {
        name: HookScene(tmp_path_factory.mktemp(name), policy, workspace=root, home=world.workspace.home)
        for name, policy in world.policies.items()
    }


@all_rows("row", hostile(), ids=lambda row: f"{row.policy} {row.command}")
def test_hostile_command_is_judged_as_strictly_as_by_the_gate(row: Row, scenes: dict[str, HookScene]) -> None:
    scene = scenes[row.policy]
    reply = scene.event("PreToolUse", "Bash", {"command": row.command}, session_id=str(row.line))
    if ["allow", "ask", "deny", "block"].index(word_of(reply)) < row.decision.value:
        log = max(scene.logs.iterdir(), key=lambda path: path.stat().st_mtime_ns)
        made = next(record for record in read_log(str(log)) if record["kind"] == "decision")
        effects = made["effects"]
        assert isinstance(effects, dict)
        assert (bool(effects.get("left_out")), effects["enforcement"]) == (True, "required")  # by a ticket, hidden


def test_outcome_reported_by_an_agent_is_logged_as_its_claim(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    edit = {"file_path": str(scene.workspace / "f.txt"), "old_string": "alpha", "new_string": "beta"}
    assert word_of(scene.event("PreToolUse", "Edit", edit)) == "ask"
    (scene.workspace / "f.txt").write_text("beta\n")
    assert scene.event("PostToolUse", "Edit", edit, tool_response={"filePath": "f.txt"}) == HookAnswer()
    outcome = scene.records()[-1]
    assert (outcome["status"], outcome["seen_by"]) == ("ok", "claude")
    assert outcome["changed_path"] == str(scene.workspace / "f.txt")
    kinds = [record["kind"] for record in scene.records()]
    assert kinds[-4:] == ["approval_asked", "approval_answered", "intent", "outcome"]
    assert scene.parts.images.get(str(outcome["before_sha256"])) == b"alpha\n"


def test_time_of_an_unseen_approval_at_the_agent_is_recorded(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    edit = {"file_path": str(scene.workspace / "f.txt"), "old_string": "alpha", "new_string": "beta"}
    asked = scene.event("PreToolUse", "Edit", edit)
    assert "(default for edit_file (default.toml:" in asked.stdout
    (state,) = tmp_path.glob("agents/*/session.json")
    held = json.loads(state.read_text())
    held["open"][0]["asked_ns"] -= 16 * 10**9
    state.write_text(json.dumps(held))
    scene.event("PostToolUse", "Edit", edit, tool_response={})
    (answered,) = (record for record in scene.records() if record["kind"] == "approval_answered")
    assert (answered["by"], answered["who"]) == ("client", "claude")
    assert isinstance(answered["seconds"], float)
    assert answered["seconds"] >= 16


@all_rows("answer,told", [("n", False), ("nobody", True)])
def test_allowing_rule_is_suggested_only_without_an_approver(answer: str, told: bool, tmp_path: Path) -> None:
    approver = deny_all if answer == "nobody" else ScriptedAnswers([answer])
    scene = _scene(tmp_path, agent="codex", approver=approver, advise=lambda *_: Advice(toml="[[rule]]"))
    reply = scene.event("PreToolUse", "Bash", {"command": "touch x"})
    assert (word_of(reply), "[[rule]]" in reply.stderr) == ("deny", told)


@all_rows(
    "tool,arguments,made,back",
    [
        ("Edit", {"old_string": "alpha", "new_string": "beta"}, "beta\n", "alpha\n"),
        ("Edit", {"old_string": "alpha", "new_string": "beta"}, "something else\n", "alpha\n"),
        ("Write", {"content": "new\n"}, "new\n", "alpha\n"),
        ("Write", {"content": "new\n", "file_path": "made.txt"}, "new\n", None),
    ],
    ids=["edit", "edit that came out otherwise", "write", "new file"],
)
def test_change_by_an_agent_can_be_undone(
    tool: str, arguments: dict[str, str], made: str, back: str | None, tmp_path: Path
) -> None:
    scene = _scene(tmp_path)
    path = scene.workspace / arguments.get("file_path", "f.txt")
    call = {**arguments, "file_path": str(path)}
    scene.event("PreToolUse", tool, call)
    path.write_text(made)
    scene.event("PostToolUse", tool, call, tool_response={})
    records = scene.records()
    (step,) = changes_to_undo(records, str(records[0]["session"]), log="")
    assert isinstance(step, Undoable)
    undone = restore(step, Workspace(str(scene.workspace)), scene.parts.images)
    assert undone.result is (UndoResult.REMOVED if back is None else UndoResult.RESTORED), undone.detail
    assert (path.read_text() if path.exists() else None) == back


def test_last_of_two_edits_judged_together_is_undone_alone(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    path = scene.workspace / "f.txt"
    path.write_text("alpha\nbeta\n")
    edits = [{"file_path": str(path), "old_string": old, "new_string": old.upper()} for old in ("alpha", "beta")]
    for edit in edits:
        scene.event("PreToolUse", "Edit", edit, edit["old_string"])
    for edit in edits:
        path.write_text(path.read_text().replace(edit["old_string"], edit["new_string"]))
        scene.event("PostToolUse", "Edit", edit, edit["old_string"], tool_response={})
    records = scene.records()
    for step, left in zip(
        changes_to_undo(records, str(records[0]["session"]), log=""), ("ALPHA\nbeta\n", "alpha\nbeta\n"), strict=True
    ):
        assert isinstance(step, Undoable)
        assert restore(step, Workspace(str(scene.workspace)), scene.parts.images).result is UndoResult.RESTORED
        assert path.read_text() == left


@all_rows(
    "agent,tool,arguments,told",
    {
        "text that is not there": (
            "claude",
            "Edit",
            {"file_path": "f.txt", "old_string": "Alpha", "new_string": "b"},
            True,
        ),
        "no outcome": (
            "codex",
            "Bash",
            {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: f.txt\n*** End Patch\nE"},
            False,
        ),
    },
)
def test_unpredictable_change_is_named_when_others_are_undone(
    agent: str, tool: str, arguments: dict[str, str], told: bool, tmp_path: Path
) -> None:
    scene = _scene(tmp_path, agent=agent, approver=ScriptedAnswers(["y"]))
    scene.event("PreToolUse", tool, arguments)
    if told:
        scene.event("PostToolUse", tool, arguments, tool_response={})
    records = scene.records()
    (step,) = changes_to_undo(records, str(records[0]["session"]), log="")
    assert isinstance(step, Unrestorable)
    assert (step.subject, step.is_command) == (str(scene.workspace / "f.txt"), False)


@all_rows(
    "lines,held",
    [
        ([UNBOUND], True),
        ([], False),
        ([UNBOUND, {"type": "turn_context", "payload": {"sandbox_policy": {"type": "workspace-write"}}}], False),
        ([{"type": "turn_context", "payload": {"sandbox_policy": {"type": "read-only"}}}, UNBOUND], True),
        ([UNBOUND, {"type": "turn_context", "payload": {}}], False),
        ([UNBOUND, {"type": "message", "text": json.dumps({"type": "turn_context"})}], True),
    ],
    ids=["off", "nothing told", "on since", "off since", "not understood", "only words"],
)
def test_codex_command_without_a_sandbox_gets_walls(lines: list[object], held: bool, tmp_path: Path) -> None:
    scene = _scene(tmp_path, agent="codex")
    scene.transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reply = scene.event("PreToolUse", "Bash", {"command": "ls"}, permission_mode="bypassPermissions")
    assert (reply.code, "exec --ticket" in reply.stdout) == (0, held and CONFINES)
    # What mktemp makes lies in a private folder only behind our walls.
    reply = scene.event("PreToolUse", "Bash", {"command": "mktemp"}, permission_mode="bypassPermissions")
    assert ("outside the workspace" in f"{reply.stdout}{reply.stderr}") == (not held or not CONFINES)


PATCH = """*** Begin Patch
*** Update File: f.txt
@@
-alpha
+beta
*** Add File: made.txt
+new
*** Add File: {third}
+x
*** End Patch
"""


def test_each_file_of_a_patch_is_a_separate_undoable_call(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, AUTO.encode(), agent="codex")
    (scene.workspace / "f.txt").write_text("alpha\n")
    call = {"command": PATCH.format(third="sub/x.txt")}
    assert scene.event("PreToolUse", "apply_patch", call) == HookAnswer()
    (scene.workspace / "sub").mkdir()
    for name, content in (("f.txt", "beta\n"), ("made.txt", "new\n"), ("sub/x.txt", "x\n")):
        (scene.workspace / name).write_text(content)
    scene.event("PostToolUse", "apply_patch", call, tool_response="Success.")
    records = scene.records()
    steps = changes_to_undo(records, str(records[0]["session"]), log="")
    for step in steps:
        assert isinstance(step, Undoable)
        restore(step, Workspace(str(scene.workspace)), scene.parts.images)
    assert len(steps) == 3
    assert (scene.workspace / "f.txt").read_text() == "alpha\n"
    assert not (scene.workspace / "made.txt").exists()


def test_patch_writes_added_files_and_edits_changed_ones(tmp_path: Path) -> None:
    policy = b'version = 1\n[tools]\ndefault = "confirm"\nedit_file = "auto"\nread_file = "auto"\n'
    scene = HookScene(tmp_path, policy, agent="codex")
    (scene.workspace / "f.txt").write_text("alpha\n")
    assert scene.event("PreToolUse", "apply_patch", {"command": PATCH.format(third="x")}).code == 2
    tools = [record["tool"] for record in scene.records() if record["kind"] == "call_proposed"]
    assert tools == ["edit_file", "write_file", "write_file"]


def test_a_patch_of_which_one_part_is_refused_is_refused_as_a_whole(tmp_path: Path) -> None:
    scene = HookScene(tmp_path, load_policy("default"), agent="codex", approver=ScriptedAnswers(["y", "y", "n"]))
    (scene.workspace / "f.txt").write_text("alpha\n")
    assert scene.event("PreToolUse", "apply_patch", {"command": PATCH.format(third=".env")}).code == 2
    ends = [record["status"] for record in scene.records() if record["kind"] == "outcome"]
    assert ends == ["denied", "not_run", "not_run"]
    assert scene.event("PreToolUse", "apply_patch", {"command": PATCH.format(third="x")}, "c2").code == 2
    ends = [record["status"] for record in scene.records() if record["kind"] == "outcome"][3:]
    assert ends == ["denied", "failed", "failed"]


def test_block_stops_the_session_but_not_another(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "rm -rf /"})) == "block"
    held = scene.event("PreToolUse", "Bash", {"command": "ls"}, "c2")
    assert word_of(held) == "block"
    assert "Nothing more runs in this session; a person may begin a new one." in f"{held.stdout}{held.stderr}"
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "ls"}, session_id="T")) == "allow"
    assert [record["status"] for record in scene.records() if record["kind"] == "outcome"] == ["blocked", "not_run"]
    scene.event("SessionEnd")
    ended = next(record for record in scene.records() if record["kind"] == "session_ended")
    assert ended["stop"] == "blocked"
    assert "delete-tree" in str(ended["detail"])
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "ls"}, "c3")) == "block"  # taken up again


def test_ended_session_lists_calls_with_unknown_outcome(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    scene.event("PreToolUse", "Bash", {"command": "touch x"}, "asked")
    scene.event("PreToolUse", "Read", {"file_path": str(scene.workspace / "f.txt")}, "allowed")
    scene.event("SessionEnd")
    records = scene.records()
    assert records[-1]["kind"] == "session_ended"
    assert [record["status"] for record in records if record["kind"] == "outcome"] == ["not_run"]
    assert list(tmp_path.glob("agents/*/tickets/*")) == []
    scene.event("PreToolUse", "Bash", {"command": "ls"}, "later")  # the agent goes on with a session of that name
    assert [record["kind"] for record in scene.records()].count("session_started") == 2


def test_a_lost_copy_of_the_session_is_made_good_from_the_log(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    scene.event("PreToolUse", "Bash", {"command": "ls"}, "c1")
    (state,) = tmp_path.glob("agents/*/session.json")
    older = state.read_bytes()
    scene.event("PreToolUse", "Bash", {"command": "pwd"}, "c2")
    scene.event("PreToolUse", "Bash", {"command": "rm -rf /"}, "c3")
    state.write_bytes(older)  # as if the process had been killed before it wrote it
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "ls"}, "c4")) == "block"
    numbers = [record["call"] for record in scene.records() if record["kind"] == "call_proposed"]
    assert numbers == [1, 2, 3, 4]


@pytest.mark.parametrize("resumed", [False, True], ids=["first call", "first call after its end"])
def test_a_block_of_a_process_that_is_cut_short_holds(resumed: bool, tmp_path: Path) -> None:
    def cut_short(log: ActionLog, closed: bool) -> None:
        raise KeyboardInterrupt

    scene = _scene(tmp_path)
    if resumed:
        scene.event("PreToolUse", "Bash", {"command": "ls"}, "c0")
        scene.event("SessionEnd")
    whole = scene.parts
    scene.parts = replace(whole, note_head=cut_short)  # behind the decision, before the copy is written
    with pytest.raises(KeyboardInterrupt):
        scene.event("PreToolUse", "Bash", {"command": "rm -rf /"}, "c1")
    scene.parts = whole
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "ls"}, "c2")) == "block"


def test_interrupted_call_has_an_outcome_in_a_complete_log(tmp_path: Path) -> None:
    def killed(action: Action, verdict: Verdict) -> Approval:
        os._exit(9)

    scene = _scene(tmp_path, approver=killed, environment={"CLAUDE_CODE_SESSION_ATTENDED": ""})
    scene.event("PreToolUse", "Bash", {"command": "ls"}, "c1")
    child = os.fork()
    if child == 0:
        try:
            scene.event("PreToolUse", "Bash", {"command": "touch x"}, "c2")
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    scene.event("PreToolUse", "Bash", {"command": "ls"}, "c3")
    scene.event("SessionEnd")
    records = scene.records()
    assert {one["call"]: one["status"] for one in records if one["kind"] == "outcome"}[2] == "not_run"
    assert records[-1]["kind"] == "session_ended"


@all_rows(
    "tool,arguments",
    {
        "one long line": ("Write", {"file_path": "f.txt", "content": "x" * 15_000 + " end"}),
        "a long line that goes": (
            "Edit",
            {"file_path": "f.txt", "old_string": "x" * 15_000 + " end", "new_string": "y"},
        ),
        "signs that grow when they are shown": ("UnheardOf", {"a": "\u200b" * 5_000, "b": "end"}),
        "much": ("UnheardOf", {"a": "x" * 30_000, "b": "end"}),
    },
)
def test_incompletely_shown_call_does_not_count_as_shown(tool: str, arguments: dict[str, str], tmp_path: Path) -> None:
    seen: list[Action] = []

    def look(action: Action, verdict: Verdict) -> Approval:
        seen.append(action)
        return deny_all(action, verdict)

    scene = _scene(tmp_path, approver=look, environment={"CLAUDE_CODE_SESSION_ATTENDED": ""})
    scene.event("PreToolUse", tool, arguments)
    (action,) = seen
    assert ("end" in action.preview) >= action.shown_whole


def test_session_grants_add_up(tmp_path: Path) -> None:
    asked: list[str] = []

    def granted(call: AskedCall, policy: Policy) -> Approval:
        asked.append(call.action.text)
        offer = call.offer()
        assert not isinstance(offer, str)
        patterns = offer.choices[0].patterns
        return Approval(answer=Answer.YES, by="person", scope=GrantScope.SESSION, patterns=patterns)

    scene = _scene(tmp_path, environment={"CLAUDE_CODE_SESSION_ATTENDED": ""})
    scene.parts = replace(scene.parts, ask=granted)
    for number, command in enumerate(("touch x", "touch y", "touch x", "touch y")):
        assert word_of(scene.event("PreToolUse", "Bash", {"command": command}, str(number))) == "allow"
    assert asked == ["touch x", "touch y"]


def test_changed_policy_is_recorded_and_applied(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "touch x"})) == "ask"
    scene.policy = load_policy("readonly")
    assert word_of(scene.event("PreToolUse", "Bash", {"command": "touch x"}, "c2")) == "deny"
    assert [record["kind"] for record in scene.records()].count("policy_changed") == 1


@all_rows(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b'{"session_id": "S"}',
        b'{"session_id": "S", "session_id": "T"}',
        b'{"session_id": "\xff"}',
        BEGIN + b'"tool_name": "Bash", "tool_input": []}',
        BEGIN + b'"tool_name": "Bash", "tool_input": {"a": "\\u0000"}}',
        BEGIN + b'"tool_name": "Bash", "tool_input": {"a": "\\ud800"}}',
        BEGIN + b'"tool_name": 1, "tool_input": {}}',
        b"[" * 100_000,
        b'{"session_id": "S", "x": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"session_id": "S", "x": NaN}',
    ],
)
def test_invalid_event_is_an_error(data: bytes, tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    with pytest.raises(EventError):
        scene.send(data)
    assert scene.records() == []


def test_a_call_of_cursor_at_the_hook_of_claude_is_judged_and_answered_as_that_of_cursor(tmp_path: Path) -> None:
    scene = _scene(tmp_path)
    reply = scene.event("preToolUse", "Read", {"path": str(scene.workspace / ".env")}, cursor_version="3.21.16")
    assert json.loads(reply.stdout)["permission"] == "deny"
    assert scene.records()[0]["agent"] == "cursor"


def test_an_edit_at_several_places_is_predicted_and_one_of_another_form_refused(tmp_path: Path) -> None:
    asked: list[Action] = []

    def approver(action: Action, verdict: Verdict) -> Approval:
        asked.append(action)
        return deny_all(action, verdict)

    scene = HookScene(tmp_path, load_policy("default"), agent="pi", approver=approver)

    def edited(edits: object) -> HookAnswer:
        call = {"toolName": "edit", "toolCallId": "c1", "input": {"path": "f.txt", "edits": edits}}
        fields = {"type": "tool_call", "cwd": str(scene.workspace), "sessionId": "S", **call}
        return scene.send(json.dumps(fields).encode())

    (scene.workspace / "f.txt").write_text("alpha beta\n")
    two = [{"oldText": "alpha", "newText": "A"}, {"oldText": "beta", "newText": "B"}]
    assert edited(two).code == 2
    (action,) = asked
    assert action.change is not None
    assert action.change.after_sha256 == digest_of(b"A B\n")
    assert action.preview == "edit f.txt\n-alpha\n+A\n-beta\n+B"
    for other in ("later", [], [{"oldText": "alpha"}], [{"oldText": "a", "newText": "b", "all": True}]):
        assert edited(other).code == 2
    assert len(asked) == 1
