"""Hostile text played through every command that prints, on a terminal: nothing that was there before is changed by it.

One session is made of it (the model's text, calls, names, files, the policy, the workspace's own name), and every action of
every command shows that session on an emulated terminal. A command without a row here fails the test of the table.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from program import Program
from question_scene import together
from screen_scene import CTRL_D, ENTER, ESC, KEYS_OF_A_QUESTION, PlayedTerminal, paste
from terminal_corpus import (
    BYTES,
    CORPUS,
    PLAIN_SEQUENCES,
    PROMPT_SEQUENCES,
    SHORT,
    TEXT,
    file_names,
    forged_lines,
    frame,
    line_of,
    problems_of_bytes,
    problems_of_screen,
)

from harness.app.command_line import parser_for
from harness.app.commands.slash_command import slash_commands
from harness.messages import ToolCall
from harness.models.scripted import Failure, ModelScript, Reply, call, replies, say
from harness.plugins.fleet.queue.queue import Batch, QueuedTask
from harness.plugins.fleet.queue.version import version_of
from harness.session.exits import Exit
from harness.shipped import COMMANDS

pytestmark = pytest.mark.terminal

NAMES = file_names()
NEW_FILE = f"new{NAMES[3]}"
WORKSPACE = line_of("w\x1b]0;owned\x07\x1b[2J\u202e\u0338\n+ allowed  FORGED\n\x9b31m")
MODEL = line_of("model\x1b[2J\u202e\n+ allowed  FORGED")
BLOCK = frame()


def toml(text: str) -> str:
    """Return a TOML string that holds `text`, what TOML takes of it."""
    held = "".join(char for char in text if not "\ud800" <= char <= "\udfff")
    return '"' + "".join(f"\\U{ord(char):08x}" if not char.isalnum() else char for char in held) + '"'


def policy_text() -> str:
    """Return a policy whose every word is hostile."""
    return f"""version = 1
name = {toml(SHORT)}
[tools]
default = "auto"
edit_file = "auto"
bash = "auto"
readers = true
[limits]
refusals = 1000
bad_calls = 1000
turns = 1000
[sandbox]
write = [".", {toml("~/x" + CORPUS["bidi"])}]
[[rule]]
id = {toml("deny" + SHORT)}
decision = "deny"
argv = ["git", "push"]
reason = {toml(TEXT)}
hint = {toml(TEXT)}
[[rule]]
id = {toml("files" + SHORT)}
decision = "deny"
path = ["secret*"]
reason = {toml(TEXT)}
[[rule]]
id = {toml("auto" + SHORT)}
decision = "auto"
argv = ["make", "x"]
env = [{toml(SHORT)}]
"""


def hostile_calls() -> Iterator[ToolCall]:
    """Yield calls with hostile text wherever one holds any, each for a reply of its own."""
    yield call("write_file", path=f"no/{TEXT}", content=TEXT)
    yield call("read_file", path=NAMES[0])
    yield call("read_file", path=TEXT)
    yield call("edit_file", path="here.txt", old_string="old", new_string=SHORT)
    yield call("edit_file", path="here.txt", old_string=SHORT + "none", new_string=SHORT)
    yield call("bash", command="cat bytes.bin; ls; ls made")
    yield call("bash", command=f"echo '{line_of(SHORT).replace(chr(39), '')}'")
    yield call("bash", command=f"git push '{line_of(SHORT).replace(chr(39), '')}'")
    yield call("write_file", path="secret" + NAMES[0], content=TEXT)
    yield call("read_" + SHORT, path="x")
    yield ToolCall(id="", name="bash", arguments=TEXT)
    yield ToolCall(id="", name="bash", arguments=json.dumps({TEXT: TEXT}))
    yield call("bash", command=TEXT)
    yield call("bash", command=f"rm -rf / '{line_of(SHORT).replace(chr(39), '')}'")  # a hard block: the end


def session() -> ModelScript:
    """Return a model that says and does nothing else."""
    writes = tuple(call("write_file", path=f"made/{name}", content=name) for name in NAMES)
    return replies(
        Reply(text=TEXT, calls=writes),
        *(Reply(text=SHORT, calls=(one,)) for one in hostile_calls()),
        say(TEXT),
        say(SHORT),
    )


class Scene:
    """A state folder in which everything is hostile, and a terminal to look at it."""

    def __init__(self, folder: Path) -> None:
        self.program = Program(folder)
        self.program.workspace = self.program.workspace / WORKSPACE
        self.program.workspace.mkdir()
        self.folder = folder
        self.here = self.program.workspace
        for name in NAMES:
            (self.here / name).write_bytes(BYTES)
        (self.here / "here.txt").write_text("old\n")
        (self.here / "bytes.bin").write_bytes(BYTES)
        (self.here / "AGENTS.md").write_text(line_of(TEXT))
        self.policy = folder / line_of("policy\x1b[2J\n+ allowed  FORGED.toml")
        self.policy.write_text(policy_text())
        self.record()

    def record(self) -> None:
        """Run one session to its end, and one that the server refuses; then the policy becomes the project's as well."""
        done = self.program.run(*self.flags("run", line_of(SHORT)), "--allow-refusals")
        assert done.code == 3, (done.code, done.err[-1_000:])
        error = json.dumps({"error": {"message": TEXT, "code": SHORT, "type": SHORT}})
        refused = self.program.run(*self.flags("run", "go", script=replies(Failure(status=400, body=error))))
        assert refused.code == 6, refused
        project = self.here / ".harness" / "policy.toml"
        project.parent.mkdir()
        project.write_text(policy_text())
        servers = {"a": {"command": TEXT, "args": [SHORT], "env": {SHORT: "${HOME}"}}, SHORT: {"url": TEXT}}
        brought = self.here / "brought"  # what lies there no prompt and no run here asks about
        (brought / ".harness").mkdir(parents=True)
        (brought / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (brought / ".harness" / "config.toml").write_text(
            f'[[tool]]\nname = "lint"\ndescription = {toml(TEXT)}\nargv = ["lint", {toml(CORPUS["bidi"])}]\n'
        )
        (self.folder / "cases.jsonl").write_text(
            json.dumps({"id": TEXT, "tool": "bash", "args": {"command": TEXT}, "expect": "deny"}) + "\n"
        )
        (self.folder / "models.toml").write_text(
            f'date = 2026-11-01\nsource = "https://x"\n[models.{toml(SHORT)}]\ninput = 1\noutput = 2\n'
        )
        (self.folder / "tasks.jsonl").write_text(
            json.dumps({"id": "hostile", "prompt": line_of(SHORT), "cwd": str(self.here)}) + "\n"
        )
        self.queue = f"sqlite:///{self.folder}/queue.db"
        self._fill_queue()
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "a@b", "-f", str(self.folder / "key")], check=True
        )

    def _fill_queue(self) -> None:
        """Write what somebody may who can write to a queue: tasks, workers, results, all hostile."""
        from harness.plugins.fleet.queue.dbos_queue import DbosQueue

        version = version_of(parser_for("worker").parse_args(["--queue", "q"]))
        queue = DbosQueue(self.queue)
        batch, said = Batch(name=BATCH, out=ANY), TEXT.encode(errors="replace").decode()
        tasks = [{"id": one, "prompt": ANY, "cwd": ANY} for one in (ANY, "done", "other")]
        versions = version, version, f"harness {ANY}"
        pairs = zip(tasks, versions, strict=True)
        queue.put(batch, [QueuedTask(batch=BATCH, task=task, version=one, group=ANY) for task, one in pairs], bool)
        queue.ledger.join(ANY, f"harness {ANY}", 2, 1e6)
        attempt = queue.ledger.begin(BATCH, "done", ANY)
        assert attempt is not None
        queue.finish(attempt, "done", {"exit_code": None, "how": said, "problem": said, "detail": said})
        queue.ledger.begin(BATCH, "other", ANY)
        queue.close()

    def flags(self, *words: str, script: ModelScript | None = None) -> list[str]:
        """Return a command with a server, a hostile model and a hostile policy."""
        url = self.program.serve(script or session())
        return [*words, "--base-url", url, "--model", MODEL, "--policy", str(self.policy)]

    def play(
        self, words: Sequence[str], *, columns: int = 80, lines: int = 24, draws: bool = True, **more: str
    ) -> PlayedTerminal:
        """Start a command on a terminal on which there is something already."""
        return PlayedTerminal(
            self.program.command(*words),
            columns=columns,
            lines=lines,
            cwd=self.here,
            environment={**self.program.environment, **more},
            before="\n".join(BLOCK) + "\n",
            draws=draws,
        )

    @property
    def log(self) -> str:
        """The log of the long session."""
        return max(map(str, self.program.logs()), key=os.path.getsize)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("hostile"))
    yield made
    made.program.close()


LOG, POLICY, KEY, CASES, TASKS, TABLE, SERVED, NEW = "LOG", "POLICY", "KEY", "CASES", "TASKS", "TABLE", "SERVED", "NEW"
QUEUE, BATCH, NOWHERE = "QUEUE", "0123456789ab", "http://127.0.0.1:1/v1"
"""Stand for what is only known when a command is played."""
ANY = line_of(SHORT)

# A row per command and action: words to play it with, more than one where it can be asked for in several forms.
ROWS: Mapping[tuple[str, str], Sequence[Sequence[str]]] = {
    ("run", ""): [
        *(["run", ANY, SERVED, "--output", form] for form in ("text", "json", "jsonl")),
        ["run", ANY, SERVED, "--output", "text", "--dry-run"], ["run", ANY, SERVED, "--output", "text", "--plan"],
        *(["run", "x", f"--{name}", ANY[:200]] for name in ("replay", "report", "policy-sha256", "add-dir", "output-schema")),
        ["run", "--task", ANY[:200], "--out", NEW],
    ],
    ("batch", ""): [["batch", TASKS, "--out", NEW, SERVED], ["batch", ANY[:200], "--out", NEW]],
    ("queue", "status"): [["queue", "status", "--queue", at, *more] for at, *more in ((QUEUE,), (QUEUE, "--json"), (ANY,))],
    ("queue", "cancel"): [["queue", "cancel", "--queue", QUEUE, BATCH, ANY[:200]], ["queue", "cancel", "--queue", QUEUE, ANY]],
    ("queue", "retry"): [["queue", "retry", "--queue", QUEUE, BATCH], ["queue", "retry", "--queue", QUEUE, ANY]],
    ("queue", "limit"): [["queue", "limit", "--queue", QUEUE], ["queue", "limit", "--queue", QUEUE, "--key", ANY]],
    ("worker", ""): [["worker", "--queue", QUEUE, "--drain", "--out", "/", "--base-url", NOWHERE], ["worker", "--queue", ANY]],
    ("demo", ""): [["demo", "--answers", "y,y,y"], ["demo", "--list"], ["demo", ANY]],
    ("policy", "check"): [["policy", "check", POLICY], ["policy", "check", ANY[:200]]],
    ("policy", "explain"): [
        ["policy", "explain", ANY, "--policy", POLICY],
        ["policy", "explain", "git push " + "x", "--policy", POLICY, "--json"],
        ["policy", "explain", "git push", "--policy", POLICY],
        ["policy", "explain", "--tool", "read_file", ANY[:200], "--policy", POLICY],
        ["policy", "explain", "--tool", ANY, "x"],
    ],
    ("policy", "new"): [["policy", "new", "x", "--stack", ANY[:200], "--person", "no", "--network", "none"]],
    ("policy", "import"): [["policy", "import", "claude", POLICY], ["policy", "import", "codex", ANY[:200]]],
    ("policy", "test"): [
        ["policy", "test", "--policy", POLICY, CASES], ["policy", "test", "--policy", POLICY, CASES, "--json"],
    ],
    ("policy", "replay"): [["policy", "replay", "--policy", "default", LOG], ["policy", "replay", "--policy", POLICY, LOG],
        ["policy", "replay", "--policy", "readonly", LOG]],
    ("policy", "suggest"): [["policy", "suggest", LOG], ["policy", "suggest", "--all"]],
    ("policy", "fatigue"): [["policy", "fatigue", LOG], ["policy", "fatigue", LOG, "--json", "--policy", POLICY]],
    ("policy", "trust"): [
        ["policy", "trust", POLICY], ["policy", "trust", ANY[:200]],
        ["policy", "trust", "brought/.mcp.json"], ["policy", "trust", "brought/.harness/config.toml"],
    ],
    ("policy", "forget"): [["policy", "forget", POLICY], ["policy", "forget", "brought/.mcp.json"]],
    ("audit", "list"): [["audit", "list"], ["audit", "list", "--all", "--json"]],
    ("audit", "show"): [
        ["audit", "show", LOG], ["audit", "show", LOG, "--full"], ["audit", "show", LOG, "--json"],
        ["audit", "show", "--rule", ANY], ["audit", "show", ANY[:200]],
    ],
    ("audit", "verify"): [["audit", "verify", LOG], ["audit", "verify", "--all"], ["audit", "verify", ANY[:200]]],
    ("audit", "approvals"): [["audit", "approvals", LOG]],
    ("audit", "denied"): [["audit", "denied", LOG, "--invalid"], ["audit", "denied", "--all"]],
    ("audit", "unknown"): [["audit", "unknown", LOG]],
    ("audit", "files"): [["audit", "files", LOG]],
    ("audit", "reads"): [["audit", "reads", LOG]],
    ("audit", "outside"): [["audit", "outside", LOG]],
    ("audit", "stats"): [["audit", "stats", LOG], ["audit", "stats", "--all", "--json"]],
    ("audit", "diff"): [["audit", "diff", LOG, LOG], ["audit", "diff", LOG, ANY[:200]]],
    ("audit", "report"): [["audit", "report", "-o", NEW, LOG, "--title", ANY]],
    ("audit", "export"): [["audit", "export", "--to", "jsonl", "--content", LOG], ["audit", "export", "--to", "csv", LOG]],
    ("audit", "sign"): [["audit", "sign", "--key", KEY, LOG], ["audit", "sign", "--key", ANY[:200], LOG]],
    ("audit", "prune"): [["audit", "prune", "--dry-run", "--keep", "0"], ["audit", "prune", "--dry-run", "--older-than", "0"]],
    ("audit", "recover"): [["audit", "recover", LOG], ["audit", "recover", ANY[:200]]],
    ("undo", ""): [
        ["undo", "--dry-run", "--log", LOG], ["undo", "--dry-run", "--to", "1", "--log", LOG], ["undo", "--session", ANY],
    ],
    ("doctor", ""): [["doctor"], ["doctor", "--model", MODEL, "SERVER"]],
    ("config", "show"): [["config", "show", "--origin", "--model", MODEL], ["config", "show", "--provider", ANY]],
    ("config", "path"): [["config", "path"]],
    ("models", "update"): [["models", "update", TABLE], ["models", "update", ANY[:200]]],
    ("models", "list"): [["models", "--model", MODEL, "SERVER"], ["models", "list", "--json", "--model", MODEL, "SERVER"]],
    ("sessions", "list"): [["sessions", "list"], ["sessions", "list", "--all"]],
    ("sessions", "resume"): [["sessions", "resume", ANY]],
    ("sessions", "fork"): [["sessions", "fork", ANY]],
    ("sessions", "delete"): [["sessions", "delete", ANY], ["sessions", "delete", LOG]],
    ("completion", "bash"): [["completion", "bash"]],
    ("completion", "zsh"): [["completion", "zsh"]],
    ("completion", "fish"): [["completion", "fish"]],
    ("schema", "log"): [["schema", "log"]],
    ("schema", "result"): [["schema", "result"]],
    ("approve", ""): [["approve", ANY]],
    ("hook", "install"): [["hook", "install", "claude", "--yes", "--policy", POLICY], ["hook", "install", ANY]],
    ("hook", "check"): [["hook", "check", ANY]],
    ("hook", "run"): [["hook", "run", "claude", ANY], ["hook", "run", ANY]],
    ("hook", "status"): [["hook", "status", "claude"], ["hook", "status", ANY]],
    ("hook", "uninstall"): [["hook", "uninstall", "claude", "--yes"], ["hook", "uninstall", ANY]],
    ("mcp", "proxy"): [["mcp", "proxy", "--name", "a", "--", ANY], ["mcp", "proxy", "--name", ANY, "--", "true"]],
    ("mcp", "serve"): [["mcp", "serve", "--policy", POLICY], ["mcp", "serve", "--policy", ANY[:200], "--cwd", ANY[:200]]],
    ("mcp", "list"): [["mcp", "list"]],
    ("mcp", "check"): [["mcp", "check"], ["mcp", "check", ANY]],
    ("mcp", "pin"): [["mcp", "pin", "a", ANY], ["mcp", "pin", ANY]],
    ("mcp", "unpin"): [["mcp", "unpin", "a", ANY], ["mcp", "unpin", ANY]],
    ("mcp", "login"): [["mcp", "login", ANY]],
    ("mcp", "logout"): [["mcp", "logout", ANY]],
    ("serve", ""): [["serve"], ["serve", "--stdio", ANY]],
    ("", ""): [[ANY, "--provider", ANY], ["x", "--policy", ANY[:200]], ["--none" + WORKSPACE.replace(" ", "")]],
}  # fmt: skip

# A row per command of the prompt: lines to type, after a turn in which everything was hostile.
PROMPT_ROWS: Mapping[str, Sequence[str]] = {
    "/diff": ["/diff", "/diff --stat"],
    "/output": ["/output", "/output 1", "/output 1-9", "/output {any}"],
    "/log": ["/log", "/log 100"],
    "/why": ["/why", "/why 1", "/why {any}"],
    "/cost": ["/cost"],
    "/context": ["/context"],
    "/policy": ["/policy", "/policy explain {any}", "/policy explain cat bytes.bin", "/policy reload", "/policy {any}"],
    "/grants": ["/grants", "/grants revoke {any}"],
    "/tools": ["/tools"],
    "/model": ["/model", "/model {any}"],
    "/help": ["/help"],
    "/copy": ["/copy", "/copy code", "/copy {any}"],
    "/export": ["/export {any}", "/export made.md"],
    "/transcript": ["/transcript"],
    "/jobs": ["/jobs", "/jobs {any}", "/jobs stop {any}"],
    "/name": ["/name {any}", "/name"],
    "/delete": ["/delete {any}"],
    "/resume": ["/resume", "/resume {any}"],
    "/fork": ["/fork 9", "/fork {any}"],
    "/undo": ["/undo"],
    "/compact": ["hello", "/compact"],
    "/clear": ["/clear"],
    "/plan": ["/plan", "/plan off"],
    "/mode": ["/mode", "/mode {any}"],
    "/back": ["/back", "/back 9", "/back {any}"],
    "/quit": ["/{any}", "!cat bytes.bin; ls", "!!echo '{any}'", "!git push '{any}'"],
}
OPEN_A_MENU = ("/policy", "/model", "/mode", "/back", "/resume")
# What each form exits with, where that is not 0: a command that only complains shows none of the text that it is given.
EXITS: Mapping[tuple[str, str], Sequence[int]] = {
    ("run", ""): [Exit.REFUSED] * 5 + [Exit.USAGE] * 6,
    ("batch", ""): [Exit.REFUSED, Exit.USAGE],
    ("queue", "status"): [0, 0, Exit.USAGE],
    ("queue", "cancel"): [Exit.USAGE, Exit.USAGE],
    ("queue", "retry"): [0, Exit.USAGE],
    ("queue", "limit"): [0, Exit.USAGE],
    ("worker", ""): [0, Exit.USAGE],
    ("demo", ""): [0, 0, Exit.USAGE],
    ("policy", "check"): [0, Exit.USAGE],
    ("policy", "explain"): [10, 20, 20, 0, Exit.USAGE],  # by the decision
    ("policy", "new"): [Exit.USAGE],
    ("policy", "import"): [Exit.USAGE, Exit.USAGE],
    ("policy", "test"): [1, 1],  # the case fails
    ("policy", "trust"): [0, Exit.USAGE, 0, 0],
    ("audit", "show"): [0, 0, 0, 0, Exit.USAGE],
    ("audit", "verify"): [0, 0, Exit.LOG],
    ("audit", "diff"): [0, Exit.USAGE],
    ("audit", "sign"): [0, Exit.USAGE],
    ("audit", "recover"): [0, Exit.LOG],
    ("undo", ""): [0, 0, Exit.USAGE],
    ("doctor", ""): [0, Exit.MODEL],
    ("config", "show"): [0, Exit.USAGE],
    ("models", "update"): [Exit.USAGE, Exit.USAGE],
    ("approve", ""): [Exit.USAGE],
    ("hook", "install"): [0, Exit.USAGE],
    ("hook", "check"): [Exit.USAGE],
    ("hook", "run"): [Exit.USAGE, Exit.USAGE],
    ("hook", "status"): [0, Exit.USAGE],
    ("hook", "uninstall"): [0, Exit.USAGE],
    ("mcp", "proxy"): [Exit.USAGE, Exit.USAGE],
    ("mcp", "serve"): [Exit.USAGE, Exit.USAGE],
    ("mcp", "check"): [0, Exit.USAGE],
    ("mcp", "pin"): [Exit.USAGE, Exit.USAGE],
    ("mcp", "unpin"): [Exit.USAGE, Exit.USAGE],
    ("mcp", "login"): [Exit.USAGE],
    ("mcp", "logout"): [Exit.USAGE],
    ("serve", ""): [Exit.USAGE, Exit.USAGE],
    ("sessions", "resume"): [Exit.USAGE],
    ("sessions", "fork"): [Exit.USAGE],
    ("sessions", "delete"): [Exit.USAGE, Exit.USAGE],
    ("", ""): [Exit.USAGE, Exit.USAGE, Exit.USAGE],
}
JSON_FORMS = frozenset(("--json", "json", "jsonl", "schema"))
TYPED = CORPUS["rich"] + "[y] once FORGED " + CORPUS["formats"] + "\u202e\u0441at"


def test_every_action_of_every_command_has_a_row() -> None:
    assert {" ".join(row).strip() for row in ROWS} == set(COMMANDS)


def test_every_command_of_the_prompt_has_a_row() -> None:
    assert set(PROMPT_ROWS) == {command.name for command in slash_commands()}


def test_commands_never_obey_hostile_text(scene: Scene) -> None:
    played = {
        f"{' '.join(row).strip() or 'prompt'} {at}": (scene, words, code)
        for row, forms in ROWS.items()
        for at, (words, code) in enumerate(zip(forms, EXITS.get(row, [0] * len(forms)), strict=True))
    }
    assert len(played) > 60
    together(play, played, at_once=1)  # some change or lock what others read


def play(scene: Scene, words: Sequence[str], code: int) -> None:
    """Play one command, and look at everything that it wrote."""
    served = "SERVER" in words or SERVED in words
    known = {
        LOG: scene.log,
        POLICY: str(scene.policy),
        KEY: str(scene.folder / "key"),
        CASES: str(scene.folder / "cases.jsonl"),
        TASKS: str(scene.folder / "tasks.jsonl"),
        QUEUE: scene.queue,
        TABLE: str(scene.folder / "models.toml"),
        NEW: str(scene.folder / f"report{os.urandom(4).hex()}.html"),
    }
    words = [known.get(word, word) for word in words if word not in ("SERVER", SERVED)]
    if served:
        words += ["--base-url", scene.program.serve(asking())]
        words += ["--model", MODEL, "--policy", str(scene.policy)] if words[0] in ("run", "batch") else []
    asked = words[:1] == ["x"]
    if asked:  # the prompt: a content that nobody was asked about yet
        (scene.here / ".harness" / "policy.toml").write_text(policy_text() + f"# {os.urandom(8).hex()}\n")
    is_json = not JSON_FORMS.isdisjoint(words)
    with scene.play(words, draws=not is_json) as terminal:
        if asked:
            terminal.wait_for("trust asks")
            terminal.wait_keys()
            terminal.send("n")
        assert terminal.exit_code() == code, terminal.raw
        assert terminal.raw
        assert list(problems_of_bytes(terminal.raw, PROMPT_SEQUENCES if asked else PLAIN_SEQUENCES)) == []
        if not is_json:
            assert list(problems_of_screen(terminal, BLOCK)) == []
        elif words[0] != "run":  # there the trace stands beside it
            assert re.fullmatch(rb"[\r\n -~]+", terminal.raw)  # of ASCII, nothing else is drawn by itself
        if words[0] != "run" or "text" not in words:  # there the answer stands as it is: it is what was asked for
            assert forged_lines(terminal.raw) == []
        assert b"internal error" not in terminal.raw


ASKS = 'version = 1\n[tools]\nbash = "confirm"\nwrite_file = "confirm"\n'


def asking() -> ModelScript:
    """Return a model that asks for hostile calls, and then says hostile things."""
    return replies(
        Reply(text=TEXT, calls=(call("bash", command=f"cat bytes.bin; ls; echo '{ANY.replace(chr(39), '')}'"),)),
        Reply(text=SHORT, calls=(call("write_file", path=NEW_FILE, content=ANY),)),
        Reply(text=SHORT, calls=(call("edit_file", path="here.txt", old_string="old", new_string=ANY),)),
        Reply(text=SHORT, calls=(call("bash", command="cat bytes.bin; touch made.txt"),)),
        *(say(TEXT) for _ in range(9)),
    )


@pytest.fixture
def prompt(scene: Scene) -> Iterator[PlayedTerminal]:
    """The prompt in the hostile workspace, with questions."""
    config = Path(scene.program.environment["XDG_CONFIG_HOME"], "harness")
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text("[terminal]\ndead_seconds = 0.15\n")
    (config / "config.toml").chmod(0o600)
    (scene.here / "here.txt").write_text("old\n")
    (scene.here / NEW_FILE).unlink(missing_ok=True)  # of `run`: what is there already is not written anew
    (scene.here / ".harness" / "policy.toml").write_text(ASKS)
    words = ["--base-url", scene.program.serve(asking()), "--model", MODEL, "--policy", str(scene.policy)]
    with scene.play(words, columns=100, lines=40) as terminal:
        terminal.wait_until(lambda: at_prompt(terminal), "no prompt")
        yield terminal
    (config / "config.toml").unlink()


COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
"""What /copy hands to the terminal."""


def at_prompt(terminal: PlayedTerminal) -> bool:
    return terminal.cursor_row() in (">", "plan>")


def left(terminal: PlayedTerminal) -> None:
    """Leave, and look at everything that was written."""
    terminal.wait_until(lambda: at_prompt(terminal), "no prompt")
    terminal.send(CTRL_D)
    assert terminal.exit_code() == 0
    copied = [base64.b64decode(one).decode() for one in COPIED.findall(terminal.raw)]
    assert [text for text in copied if not text.replace("\n", "").replace("\t", "").isprintable()] == []
    assert "rm -rf ~\n" not in copied  # by text that says so
    assert list(problems_of_bytes(COPIED.sub(b"", terminal.raw), PROMPT_SEQUENCES)) == []
    assert list(problems_of_screen(terminal, BLOCK)) == []
    assert forged_lines(terminal.raw) == []
    assert "internal error" not in terminal.text()


def answer(terminal: PlayedTerminal, tool: str, count: int, *keys: str) -> None:
    """Answer the question of that number, whatever it shows; a space is pressed until all was seen."""
    terminal.wait_question(tool, count)
    terminal.wait_keys()
    for key in keys[:-1]:
        if key == " ":
            while left := _left(terminal):
                terminal.send(key)
                terminal.wait_until(lambda left=left: _left(terminal) not in (None, left), "no other page")  # type: ignore[misc]
        else:
            since = len(terminal.raw)
            terminal.send(key)
            terminal.wait_keys(since=since)
    terminal.send(keys[-1])


def _left(terminal: PlayedTerminal) -> str | None:
    """Return how many rows are still to be seen, as the line of keys says, empty for none; None where there is no such line.

    It stands below each row of a page that is being written.
    """
    row = terminal.cursor_row()
    if KEYS_OF_A_QUESTION.search(row) is None:
        return None
    left = re.match(r"(?:-- )?(\d+) more", row)
    return left[1] if left else ""


def test_prompt_and_its_questions_never_obey_hostile_text(prompt: PlayedTerminal) -> None:
    prompt.send(paste(TYPED))
    prompt.wait_until(lambda: not at_prompt(prompt), "nothing is in the line")
    prompt.send(ENTER)
    answer(prompt, "bash", 1, "?", "v", "n")
    answer(prompt, "write_file", 1, "?", " ", "n")
    answer(prompt, "bash", 3, "y")  # the first one was shown twice
    prompt.wait_until(lambda: at_prompt(prompt), "no prompt")
    for lines in PROMPT_ROWS.values():
        for line in lines:
            prompt.send(paste(line.replace("{any}", TYPED)) if "{any}" in line else line)
            prompt.wait_until(lambda: not at_prompt(prompt), f"{line} is not in the line")
            prompt.send(ENTER)
            if line == "/undo":
                answer(prompt, "undo", 1, "d", "v", "c")
            if line in OPEN_A_MENU:
                prompt.wait_until(lambda: prompt.before_cursor().endswith(" "), "no menu was opened")
                prompt.send(ESC)
            prompt.wait_until(lambda: at_prompt(prompt), f"no prompt after {line}")
    left(prompt)
