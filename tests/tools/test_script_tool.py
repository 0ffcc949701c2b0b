"""A script that is declared as a tool, on real processes: what is judged, what runs, what holds it, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from log_scene import begun, unsynced
from process_scene import PATIENT, UNTIL_SLEEP
from rows import all_rows

from harness import ActionLog, Answer, Approval, Limits, ToolError, ToolRegistry, Verdict, Workspace, builtin_tools
from harness.actions import Access, Action, Effects, Enforcement, PathAccess, Place, ToolBounds, ToolUse
from harness.gate.approval import Approver
from harness.gate.gate import Gate
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.grant_offers import Offer
from harness.policy.loader import parse_policy
from harness.policy.verdict import Source, evaluate
from harness.record import replace
from harness.redaction.redactor import Redactor
from harness.sandbox import Machine
from harness.session.policies import with_plan_mode
from harness.tools.command_runner import CommandRunner
from harness.tools.command_walls import CommandWalls
from harness.tools.script_declaration import declared
from harness.tools.script_tool import ScriptTool
from policies import AUTO, CONFIRM

PATH = "/usr/local/bin:/usr/bin:/bin"
WALLS = Machine(landlock=7, seccomp="x86_64")
NO_WALLS = Machine(landlock=0, seccomp="", bubblewrap="", reasons=("this kernel has no Landlock",))
TRUSTED = """version = 1
tools.script__t = "auto"
[[rule]]
id = "t"
decision = "auto"
tool = ["script__t"]
read_only = true
"""
UNPLANNED = f"""{TRUSTED}[[rule]]
id = "no"
decision = "block"
path = ["*.lock"]
access = ["write"]
reason = "No."
"""
STRINGS = {name: {"type": "string", "required": False} for name in ("path", "out")} | {
    "files": {"type": "array", "required": False}
}


def confines() -> bool:
    return CommandWalls(Workspace("/")).confines


walled = pytest.mark.skipif(not confines(), reason="this kernel confines nothing")


class Scene:
    """A workspace with scripts, a policy, and a gate that asks `approver`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self.folder = folder
        self.workspace = Workspace(str(self.root), home=str(folder))
        self.asked: list[tuple[Action, Verdict]] = []
        self._logs: list[ActionLog] = []

    def script(self, text: str, name: str = "script.sh") -> str:
        """Make a script of the workspace, and return the word that it is declared by."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
        return f"./{name}"

    def tool(self, *argv: str, given: Mapping[str, Any] | None = None, **declaration: Any) -> ScriptTool:
        names = {name for name in STRINGS if f"{{{name}" in f"{argv} {declaration}"}
        arguments = {name: STRINGS[name] for name in names}
        table = {"name": "t", "description": "It is tried.", "argv": list(argv), "arguments": arguments, **declaration}
        parts = {"environment": {"PATH": PATH}, "pace": PATIENT, **(given or {})}
        return ScriptTool(declared(table), CommandRunner(self.workspace, **parts))

    def gate(self, tool: ScriptTool, policy: str = AUTO, approver: Approver | None = None, **parts: Any) -> Gate:
        held = parse_policy(policy.encode(), "test.toml")
        log = ActionLog.open(str(self.folder / f"log{len(self._logs)}.jsonl"), sync=unsynced, **parts)
        self._logs.append(begun(log, held))
        return Gate(policy=held, approver=approver or self._yes, log=log, tools=ToolRegistry((tool,)))

    def _yes(self, action: Action, verdict: Verdict) -> Approval:
        self.asked.append((action, verdict))
        return Approval(answer=Answer.YES, by="person")

    def run(self, tool: ScriptTool, policy: str = AUTO, **arguments: object) -> ToolResult:
        return run_by(self.gate(tool, policy), **arguments)

    def close(self) -> None:
        for log in self._logs:
            log.close()


def run_by(gate: Gate, **arguments: object) -> ToolResult:
    result = gate.call(gate.propose(called(**arguments))).result
    return replace(result, duration_ms=0, content=re.sub(r", \d+\.\d s\]$", "]", result.content))


def called(**arguments: object) -> ToolCall:
    return ToolCall(id="c1", name="script__t", arguments=json.dumps(arguments))


@pytest.fixture(name="scene")
def new_scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def lines(result: ToolResult) -> list[str]:
    return result.content.split("\n")


# What is judged


def test_declared_effects_are_judged(scene: Scene) -> None:
    (scene.root / "src").mkdir()
    (scene.root / "src" / "a.py").write_text("")
    tool = scene.tool("cat", "{path}", "src", reads=["{path}", "src"], writes=["build/", "{out}"], network=True)

    action = ToolRegistry((tool,)).prepare(called(path="a.txt", out="out.txt"))

    use, *paths = action.facets
    assert isinstance(use, ToolUse)
    assert use.bounds == ToolBounds(write=("build/", "out.txt"), network=True)
    assert [(one.name, one.text) for one in use.arguments] == [("path", "a.txt"), ("out", "out.txt")]
    assert [(p.written, p.access, p.place, p.tree) for p in paths if isinstance(p, PathAccess)] == [
        ("a.txt", Access.READ, Place.INSIDE, False),
        ("src", Access.READ, Place.INSIDE, True),
        ("build/", Access.WRITE, Place.INSIDE, True),
        ("out.txt", Access.WRITE, Place.INSIDE, False),
    ]
    assert action.preview.split("\n") == [
        f"{next(p for p in ('/usr/local/bin/cat', '/usr/bin/cat', '/bin/cat') if os.path.exists(p))} a.txt src",
        f"cwd: {scene.root}",
        "reads: a.txt, src/",
        "may write: build/, out.txt, and a temporary folder of its own",
        "network: yes",
        "timeout: 120 s",
    ]
    assert (action.summary, action.tool, action.cwd) == ("cat a.txt src", "script__t", str(scene.root))


def test_model_text_never_starts_a_line_of_the_question(scene: Scene) -> None:
    tool = scene.tool("echo", "{path}", reads=["{path}"])
    action = ToolRegistry((tool,)).prepare(called(path="x\nnetwork: no\x1b[2K"))
    assert [line.partition(" ")[0] for line in action.preview.split("\n")][1:] == [
        "cwd:",
        "reads:",
        "may",
        "network:",
        "timeout:",
    ]


DENIES = CONFIRM.replace('default = "confirm"', 'default = "deny"\nread_file = "auto"')
ABOUT_PATHS = (
    f"{AUTO}[[rule]]\nid='keys'\ndecision='deny'\naccess=['read', 'write']\npath=['*.key', 'keys/']\nreason='Keys.'\n"
)
PLAIN = {"reads": ["{path}"]}
WRITES = {"writes": ["{path}"]}


@all_rows(
    ("policy", "declaration", "path", "decision"),
    [
        (AUTO, PLAIN, "a.txt", "auto"),
        (AUTO, WRITES, "a.txt", "auto"),
        (AUTO, PLAIN, "/etc/shadow", "confirm"),
        (AUTO, PLAIN, "../a.txt", "confirm"),
        (AUTO, WRITES, "/tmp/a.txt", "confirm"),
        (AUTO, WRITES, "../a.txt", "confirm"),
        (AUTO, WRITES, ".git/hooks/pre-commit", "confirm"),
        (AUTO, WRITES, ".", "confirm"),
        (AUTO, {"writes": ["."]}, "a.txt", "confirm"),
        (AUTO, {"writes": ["src/"]}, "a.txt", "auto"),
        (CONFIRM, PLAIN, "a.txt", "confirm"),
        (DENIES, PLAIN, "a.txt", "deny"),
        (f"{DENIES}script__t = 'auto'\n", PLAIN, "a.txt", "auto"),
        (f"{DENIES}'script__*' = 'confirm'\n", WRITES, "a.txt", "confirm"),
        (ABOUT_PATHS, PLAIN, "a.key", "deny"),
        (ABOUT_PATHS, WRITES, "a.key", "deny"),
        (ABOUT_PATHS, WRITES, "keys/x", "deny"),
        (ABOUT_PATHS, {"reads": ["."]}, "a.txt", "deny"),
        (ABOUT_PATHS, {"writes": ["src/"]}, "a.txt", "auto"),
    ],
)  # fmt: skip
def test_decisions(tmp_path: Path, policy: str, declaration: dict[str, Any], path: str, decision: str) -> None:
    scene = Scene(tmp_path)
    for name in (".git/config", "src/a.py", "secret.key"):
        (scene.root / name).parent.mkdir(exist_ok=True)
        (scene.root / name).write_text("x")
    gate = scene.gate(scene.tool("echo", "{path}", **declaration), policy)
    assert gate.judge(gate.tools.prepare(called(path=path))).decision.word == decision
    scene.close()


def test_script_can_be_granted_for_the_session(scene: Scene) -> None:
    """By its arguments, however the model wrote them."""
    scene.script("echo x", "tools/x")
    gate = scene.gate(scene.tool("tools/x", "{path}"), CONFIRM)
    action = gate.tools.prepare(called(path="a.txt"))
    assert isinstance(gate.grants.offer(action, gate.judge(action)), Offer)


@all_rows(
    ("sandbox", "writes", "network", "granted", "reaches"),
    [
        ("", ["build/", "a.txt"], False, ("build/", "a.txt"), False),
        ("", [], True, (), True),
        ("network = false", ["build/"], True, ("build/",), False),
        ("write = ['build']", ["build/", "a.txt"], False, ("build/",), False),
        ("write = []", ["build/", "a.txt"], True, (), True),
        ("write = ['.']", ["build/", "/srv/x"], False, ("build/",), False),
        ("", ["/srv/x/"], False, ("/srv/x/",), False),
    ],
)  # fmt: skip
def test_declaration_grants_only_effects_allowed_by_the_policy(
    tmp_path: Path, sandbox: str, writes: list[str], network: bool, granted: tuple[str, ...], reaches: bool
) -> None:
    """Whoever says yes."""
    scene = Scene(tmp_path)
    gate = scene.gate(scene.tool("true", writes=writes, network=network), f"{CONFIRM}[sandbox]\n{sandbox}\n")
    effects = gate.judge(gate.tools.prepare(called())).effects
    assert (effects.granted, effects.network, effects.sockets) == (granted, reaches, False)
    assert (effects.read, effects.write, effects.named_paths) == (None, None, ())
    scene.close()


@all_rows(
    ("arguments", "problem"),
    [
        ({"path": "-rf"}, "would be read as an option"),
        ({"path": "a\0b"}, "path: contains a NUL character."),
        ({"path": "/"}, "/ holds the workspace or the home folder, and cannot be written"),
        ({"path": "~"}, "~ holds the workspace or the home folder, and cannot be written"),
        ({"path": ""}, "The path is empty."),
        ({"path": 3}, "path: must be a string"),
        ({"pth": "x"}, "unknown field 'pth'"),
        ({"path": "x", "files": ["a", 3]}, "files: number 2: must be a string"),
    ],
)
def test_calls_that_are_none(tmp_path: Path, arguments: dict[str, object], problem: str) -> None:
    tool = Scene(tmp_path).tool("echo", "{path}", "{files...}", writes=["{path}"])
    with pytest.raises(ToolError, match=re.escape(problem)):
        ToolRegistry((tool,)).prepare(called(**arguments))


@all_rows(("link", "to"), [("build", "src"), ("build", "/etc"), ("build/a", "../src/b"), ("build/a", "/etc/passwd")])
def test_links_grant_no_access(tmp_path: Path, link: str, to: str) -> None:
    """Neither that of an argument, nor one that was put in the place of what is declared."""
    scene = Scene(tmp_path)
    for name in ("src", os.path.dirname(link)):
        (scene.root / name).mkdir(exist_ok=True)
    (scene.root / link).symlink_to(to)
    for tool in (scene.tool("echo", "{path}", writes=["{path}"]), scene.tool("echo", "{path}", writes=[link])):
        with pytest.raises(ToolError, match="behind a link"):
            ToolRegistry((tool,)).prepare(called(path=link))


@all_rows(
    ("policy", "declaration", "path", "held", "unheld"),
    [
        (TRUSTED, {}, "a", "auto", "deny"),
        (TRUSTED, {"network": True}, "a", "deny", "deny"),
        (TRUSTED, {"writes": ["out"]}, "a", "deny", "deny"),
        (UNPLANNED, {}, ".git/hooks/x", "auto", "confirm"),
        (UNPLANNED, {"network": True}, ".git/hooks/x", "auto", "confirm"),
        (UNPLANNED, {"network": True}, "x.lock", "auto", "block"),
        (UNPLANNED, {}, "a", "auto", "auto"),
    ],
)
def test_declared_effects_loosen_only_behind_walls(
    tmp_path: Path, policy: str, declaration: dict[str, Any], path: str, held: str, unheld: str
) -> None:
    scene = Scene(tmp_path)
    rules = parse_policy(policy.encode(), "test.toml")
    judged_by = with_plan_mode(rules) if policy == TRUSTED else rules
    found = []
    for machine in (WALLS, NO_WALLS):
        walls = CommandWalls(scene.workspace, machine=machine)
        tool = scene.tool("echo", "{path}", given={"walls": walls}, **declaration)
        found.append(evaluate(judged_by, ToolRegistry((tool,)).prepare(called(path=path))).decision.word)
    assert found == [held, unheld]


# What runs


def test_the_words_reach_the_program_as_they_are(scene: Scene) -> None:
    tool = scene.tool(scene.script('printf "<%s>" "$0" "$@"'), "{path}", "--", "{files...}")
    result = scene.run(tool, path="$(touch x) `y` \\ 'a' \"b\" *\n;", files=["-a", "", "b  c"])
    assert result.content == (
        f"<{scene.root}/script.sh><$(touch x) `y` \\ 'a' \"b\" *\n;><--><-a><><b  c>\n[exit code 0]"
    )
    assert sorted(os.listdir(scene.root)) == ["script.sh"]


def test_environment_has_only_the_declared_variables(scene: Scene) -> None:
    given = {"PATH": PATH, "CI": "yes", "SECRET": "no", "HOME": "/home/x"}
    tool = scene.tool("env", env=["CI", "ABSENT"], given={"environment": given})
    found = dict(line.partition("=")[::2] for line in lines(scene.run(tool)) if "=" in line)
    assert (found["CI"], found["HOME"], found["PATH"]) == ("yes", "/home/x", PATH)
    assert found.keys().isdisjoint(("SECRET", "ABSENT", "BASH_ENV"))
    assert os.path.basename(found["TMPDIR"]).startswith("harness-")


def test_result_states_its_ending(scene: Scene) -> None:
    result = scene.run(scene.tool(scene.script("echo out; echo err >&2; exit 3")))
    assert (result.status, result.exit_code, result.content) == (ResultStatus.FAILED, 3, "out\nerr\n[exit code 3]")


def test_script_that_cannot_start_is_reported_with_the_reason(scene: Scene) -> None:
    tool = scene.tool(scene.script("echo out"))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as a parent may have left it
    try:
        result = scene.run(tool)
    finally:
        signal.signal(signal.SIGCHLD, before)
    why = "SIGCHLD is ignored in this process, so no command's end can be learned"
    assert result.content == f"Error: Cannot start {scene.root}/script.sh: {why}."


def test_secrets_are_masked(scene: Scene) -> None:
    gate = scene.gate(scene.tool("echo", "hunter2hunter2"), redactor=Redactor(["hunter2hunter2"]))
    assert "hunter2" not in run_by(gate).content


def test_a_program_of_the_workspace_is_not_found_on_path(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.script("echo mine", "bin/lint")
    given = {"environment": {"PATH": f"{scene.root}/bin:{PATH}"}}
    gone, written = scene.tool("lint", given=given), scene.tool("bin/lint", given=given)
    preview = gone.prepare(called(), {}).preview
    why = "no program of that name is on PATH; one of the workspace is to be declared by its path"
    assert f"it cannot start: {why}" in preview
    assert scene.run(gone).content == f"Error: Cannot start lint: {why}."
    assert scene.run(written).content == "mine\n[exit code 0]"
    scene.close()


def test_file_that_is_not_executable_is_not_started(scene: Scene) -> None:
    (scene.root / "plain").write_text("echo x")
    for word in ("./plain", "./none", "~/none", "/none"):
        assert lines(scene.run(scene.tool(word)))[0].endswith("not an executable file.")


def test_a_name_that_a_link_has_is_the_name_that_it_is_called_by(scene: Scene) -> None:
    """As a Python of a virtual environment needs it."""
    (scene.root / "link").symlink_to(scene.script('echo "$0"'))
    assert scene.run(scene.tool("./link")).content == f"{scene.root}/link\n[exit code 0]"


# What holds it


@walled
@all_rows(
    ("does", "declaration", "told", "there"),
    [
        ("echo x > top", {}, "Permission denied", []),
        ("echo x > build/o", {"writes": ["build/"]}, "[exit code 0]", ["build/o"]),
        ("echo x > build/o", {"writes": ["build"]}, "[exit code 0]", ["build/o"]),
        ("echo x > new/a && mkdir new/b", {"writes": ["new/"]}, "[exit code 0]", ["new/a"]),
        ("echo x > top", {"writes": ["build/"]}, "Permission denied", []),
        ("echo x > build/../top", {"writes": ["build/"]}, "Permission denied", []),
        ("echo x > old", {"writes": ["old"]}, "[exit code 0]", ["old"]),
        ("echo x > beside", {"writes": ["old"]}, "Permission denied", ["old"]),
        ("rm old", {"writes": ["old"]}, "Permission denied", ["old"]),
        ("mv old older", {"writes": ["old"]}, "Permission denied", ["old"]),
        ("echo x > fresh", {"writes": ["fresh"]}, "[exit code 0]", ["fresh"]),
        ("echo x > beside", {"writes": ["fresh"]}, "Permission denied", []),
        ("true", {"writes": ["fresh"]}, "[exit code 0]", []),
        ("echo x > out/fresh", {"writes": ["out/fresh"]}, "Cannot make the file", []),
        ("chmod 777 old", {}, "Operation not permitted", ["old"]),
        ("ln -s /etc/passwd build/l; echo x >> build/l", {"writes": ["build/"]}, "Permission denied", []),
        ('echo x > "$TMPDIR/a" && cat "$TMPDIR/a"', {}, "x\n[exit code 0]", []),
        ("echo x > /tmp/$$", {}, "Permission denied", []),
        ('echo x > "$HOME/x"', {}, "Permission denied", []),
        ('cat "$HOME/.ssh/id"', {}, "Permission denied", []),
    ],
)  # fmt: skip
def test_script_writes_its_declared_paths_only(
    tmp_path: Path, does: str, declaration: dict[str, Any], told: str, there: list[str]
) -> None:
    scene = Scene(tmp_path)
    (scene.root / "build").mkdir()
    (scene.root / "old").write_text("old")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("key")
    tool = scene.tool(scene.script(does), given={"environment": {"PATH": PATH, "HOME": str(tmp_path)}}, **declaration)
    before = files_of(scene)

    result = scene.run(tool)

    assert told in result.content.replace("Read-only file system", "Permission denied")
    assert sorted(files_of(scene) - before | ({"old"} if "old" in there else set())) == there
    assert (scene.root / "old").stat().st_mode & 0o777 != 0o777
    scene.close()


def files_of(scene: Scene) -> set[str]:
    files = {
        str(path.relative_to(scene.root)) for path in scene.root.rglob("*") if path.is_file() and not path.is_symlink()
    }
    home = {str(path.relative_to(scene.root)) for path in scene.root.parent.glob("x")}
    return files | home


@walled
@all_rows(("network", "exit_code"), [(True, 0), (False, 1)])
def test_script_reaches_only_a_declared_network(tmp_path: Path, network: bool, exit_code: int) -> None:
    scene = Scene(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        does = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert scene.run(scene.tool(scene.script(does), network=network)).exit_code == exit_code
    scene.close()


@walled
@all_rows("network", [True, False])
def test_script_reaches_no_local_program(tmp_path: Path, network: bool) -> None:
    """Sockets of a container daemon or a session bus lead out of every wall."""
    scene = Scene(tmp_path)
    code = f"import socket; socket.socket(socket.AF_UNIX).connect('{tmp_path}/s'); print('reached')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/s")
        server.listen()
        result = scene.run(scene.tool("/usr/bin/env", "python3", "-c", code, network=network, writes=["build/"]))
    refusals = (
        "PermissionError",
        "ConnectionRefusedError",
    )  # by a filter of system calls, or by a mask over the socket
    assert (result.status, any(name in result.content for name in refusals)) == (ResultStatus.FAILED, True)
    scene.close()


def test_script_does_not_run_if_required_walls_are_missing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    walls = CommandWalls(scene.workspace, machine=NO_WALLS)
    tool = scene.tool(scene.script("touch ran"), given={"walls": walls})
    result = scene.run(tool, f"{AUTO}[sandbox]\nrequired = true\n")
    assert result.content.startswith("Error: The policy requires that commands are confined, and this machine cannot")
    assert not (scene.root / "ran").exists()
    assert scene.run(tool).status is ResultStatus.OK, "elsewhere it runs, and the log says that nothing held it"
    scene.close()


# How it ends


def test_a_child_that_it_leaves_ends_with_it(scene: Scene) -> None:
    result = scene.run(scene.tool(scene.script(f"sleep 1000 & echo $! ; {UNTIL_SLEEP}")))
    assert "[1 background process was still running and has been terminated: sleep]" in result.content
    assert not os.path.exists(f"/proc/{lines(result)[0]}")


def test_hanging_script_ends_after_its_time(scene: Scene) -> None:
    result = scene.run(scene.tool(scene.script("trap '' TERM; echo begun; sleep 1000"), seconds=0.5))
    assert result.status is ResultStatus.TIMEOUT
    assert lines(result)[-1] == "[timed out after 0.5 s; process tree killed]"


@all_rows(
    ("declared_seconds", "limits", "seconds"),
    [
        (None, Limits(), 120.0),
        (300, Limits(), 300.0),
        (300, Limits(command_seconds=30.0), 30.0),
        (10, Limits(command_seconds=30.0), 10.0),
        (9000, Limits(), 600.0),
    ],
)
def test_a_policy_tightens_its_time(
    tmp_path: Path, declared_seconds: float | None, limits: Limits, seconds: float
) -> None:
    said: dict[str, Any] = {} if declared_seconds is None else {"seconds": declared_seconds}
    tool = Scene(tmp_path).tool("true", **said).under(limits)
    assert tool.prepare(called(), {}).seconds == seconds


def test_the_time_of_the_run_ends_it(scene: Scene) -> None:
    gate = scene.gate(scene.tool("sleep", "1000"))
    result = gate.call(gate.propose(called()), seconds_left=lambda: 0.5).result
    assert (
        result.content == "(no output)\n[timed out after 0.5 s, when the time of the run was over; process tree killed]"
    )


def test_endless_output_takes_little_memory(scene: Scene) -> None:
    tool = scene.tool(scene.script("yes | head -c 100000000"))
    scene.run(scene.tool("true"))
    tracemalloc.start()
    try:
        result = scene.run(tool)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (result.output_bytes, result.truncated) == (100_000_000, True)
    assert peak < 4_000_000


def test_an_interrupt_ends_it(scene: Scene) -> None:
    asked: list[int] = []
    tool = scene.tool(
        scene.script("echo begun; exec sleep 1000"),
        given={"stops": lambda: len(asked), "on_output": lambda _: signal.raise_signal(signal.SIGUSR1)},
    )
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: asked.append(number))
    try:
        result = scene.run(tool)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert result.status is ResultStatus.INTERRUPTED
    assert lines(result)[0] == "begun"


# What it runs may be changed


def change(scene: Scene) -> None:
    scene.script("echo changed")


def link_elsewhere(scene: Scene) -> None:
    (scene.root / "script.sh").unlink()
    (scene.root / "script.sh").symlink_to("/usr/bin/id")


def remove(scene: Scene) -> None:
    (scene.root / "script.sh").unlink()


@all_rows(
    ("does", "difference"),
    [
        (change, "+echo changed"),
        (link_elsewhere, "[it is too large for its difference to be shown]|+"),
        (remove, "./script.sh is gone since it was last seen:"),
    ],
    ids=("another content", "a link", "nothing"),
)
@pytest.mark.parametrize("argv", [["./script.sh"], ["bash", "./script.sh"]], ids=("itself", "behind its interpreter"))
def test_change_of_the_script_file_is_asked_about(
    tmp_path: Path, argv: list[str], does: Callable[[Scene], None], difference: str
) -> None:
    scene = Scene(tmp_path)
    scene.script("echo old")
    tool = scene.tool(*argv)
    gate = scene.gate(tool)
    assert run_by(gate).content == "old\n[exit code 0]"
    assert scene.asked == []

    does(scene)
    run_by(gate)

    ((action, verdict),) = scene.asked
    assert verdict.deciding.by == "built-in unseen-tool"
    assert verdict.deciding.reason == "it runs ./script.sh, which changed since it was last seen"
    assert any(one in action.preview for one in difference.split("|"))
    scene.close()


def test_unseen_change_of_an_entry_point_suspends_the_rule(scene: Scene) -> None:
    """It may be what the script runs: make, npm and pytest are told so by no word."""
    rule = f"{CONFIRM}[[rule]]\nid='t'\ndecision='auto'\ntool=['script__t']\n"
    action = ToolRegistry((scene.tool("make"),)).prepare(called())
    held = parse_policy(rule.encode(), "test.toml")
    assert evaluate(held, action).decision.word == "auto"
    verdict = evaluate(held, action, ("Makefile",))
    assert (verdict.decision.word, verdict.deciding.source) == ("confirm", Source.SUSPENDED)


def test_a_change_that_was_seen_is_not_asked_about_again(scene: Scene) -> None:
    tool = scene.tool(scene.script("echo old"))
    gate = scene.gate(tool)
    change(scene)
    assert run_by(gate).content == "changed\n[exit code 0]"
    assert run_by(gate).content == "changed\n[exit code 0]"
    assert len(scene.asked) == 1

    scene.script("echo again")
    run_by(gate)
    assert len(scene.asked) == 2
    assert "-echo changed" in scene.asked[1][0].preview, "what was seen last is what it is compared with"


def test_a_change_that_was_refused_is_asked_about_again(scene: Scene) -> None:
    gate = scene.gate(
        scene.tool(scene.script("echo old")), approver=lambda _a, _v: Approval(answer=Answer.NO, by="person")
    )
    change(scene)
    for _ in range(2):
        assert run_by(gate).status is ResultStatus.DENIED


def test_script_changed_after_its_judgement_does_not_run(scene: Scene) -> None:
    tool = scene.tool(scene.script("touch ran"))

    def yes(action: Action, verdict: Verdict) -> Approval:
        scene.script("touch ran other")
        return Approval(answer=Answer.YES, by="person")

    result = run_by(scene.gate(tool, CONFIRM, yes))
    assert (
        result.content == "Error: A file that this tool runs changed after the call was checked. The tool was not run."
    )
    assert not (scene.root / "ran").exists()


def test_path_redirected_after_its_judgement_prevents_the_run(scene: Scene) -> None:
    (scene.root / "a").mkdir()

    def yes(action: Action, verdict: Verdict) -> Approval:
        (scene.root / "a").rmdir()
        (scene.root / "a").symlink_to(scene.folder)
        return Approval(answer=Answer.YES, by="person")

    result = run_by(scene.gate(scene.tool("touch", "{path}", writes=["{path}"]), CONFIRM, yes), path="a/x")
    assert "leads to another file than when the call was checked" in result.content
    assert not (scene.folder / "x").exists()


def test_a_folder_that_has_the_name_of_the_home_folder_is_none(scene: Scene) -> None:
    gate = scene.gate(scene.tool("true", "{path}", writes=["{path}"]))
    effects = gate.judge(gate.tools.prepare(called(path="./~/x"))).effects
    assert effects.granted == ("./~/x",)


# The one road


@all_rows("policy", [CONFIRM, DENIES, f"{CONFIRM}script__t = 'block'\n"])
def test_unapproved_script_does_not_run(tmp_path: Path, policy: str) -> None:
    scene = Scene(tmp_path)
    tool = scene.tool(scene.script("touch ran"))
    result = run_by(scene.gate(tool, policy, lambda _a, _v: Approval(answer=Answer.NO, by="person")))
    assert result.status in (ResultStatus.DENIED, ResultStatus.BLOCKED)
    assert not (scene.root / "ran").exists()
    scene.close()


def test_an_action_of_another_tool_is_not_run(scene: Scene) -> None:
    tool = scene.tool(scene.script("touch ran"))
    action = tool.prepare(called(), {})
    effects = Effects(read=None, write=None, network=True, unasked=False, enforcement=Enforcement.OFF)
    with pytest.raises(TypeError, match="was not prepared by script__t"):
        tool.run(replace(action, request="touch ran"), effects)


def test_script_is_listed_after_the_shipped_tools(tmp_path: Path) -> None:
    script = declared({"name": "t", "description": "x", "argv": ["true"]})
    tools = builtin_tools(Workspace(str(tmp_path)), environment={}, scripts=[script])
    assert [tool.spec.name for tool in tools][-1] == "script__t"
