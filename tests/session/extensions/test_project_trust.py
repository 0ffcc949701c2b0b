"""What a workspace's own files would have started: shown whole, trusted by content and folder, left out otherwise."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import SUPPORT
from program import Program
from repl_scene import prompts
from rows import all_rows
from run_scene import left_in

from harness.actions import Action
from harness.gate.approval import Approval
from harness.log.vocabulary import Answer
from harness.models.scripted import replies, say
from harness.policy.verdict import Verdict
from harness.session.config.extension_tables import HOOK as HOOKS
from harness.session.config.extension_tables import project_tables
from harness.session.extensions.extensions_here import extensions_here
from harness.session.extensions.project_trust import TrustedFiles, ask_trust_of_files, trusted_files
from harness.session.state import State

HOSTILE = str(Path(SUPPORT, "hostile_mcp_server.py"))

SERVER_TABLES = "mcp.servers"
SERVERS = {"mcpServers": {"files": {"command": "npx", "args": ["-y", "a server"], "env": {"TOKEN": "${GH_TOKEN}"}}}}
SERVER_LINE = "  MCP server files starts: npx -y 'a server' (it gets your variables GH_TOKEN)"


class Answers:
    """An approver that gives one answer, and what it was asked."""

    def __init__(self, answer: Answer, during: Callable[[], object] = lambda: None) -> None:
        self.answer = answer
        self.during = during
        self.asked: list[Action] = []

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        self.asked.append(action)
        self.during()
        return Approval(answer=self.answer, by="person")


class Folder:
    """A workspace that brings a file, and a user's state."""

    def __init__(self, folder: Path, name: str = "w") -> None:
        self.root = os.path.realpath(folder / name)
        self.state = State(state=str(folder / "state"), config=str(folder / "config"))
        Path(self.root, ".harness").mkdir(parents=True)

    def says(self, said: object, name: str = ".mcp.json") -> Folder:
        Path(self.root, name).write_text(said if isinstance(said, str) else json.dumps(said))
        return self

    def asks(self, answers: Answers) -> str:
        return "\n".join(ask_trust_of_files(self.state, self.root, answers))

    @property
    def trusted(self) -> TrustedFiles:
        return trusted_files(self.state, self.root)

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.trusted.files]


def test_approval_trusts_the_shown_content_and_is_asked_for_once(tmp_path: Path) -> None:
    here, yes = Folder(tmp_path).says(SERVERS), Answers(Answer.YES)
    (note,) = here.trusted.notes
    assert note.startswith(".mcp.json is left out: you have not trusted it")
    assert here.asks(yes) == f"trusted: {here.root}/.mcp.json; any change of its content ends the trust"
    assert (here.names, here.trusted.notes, here.asks(yes), len(yes.asked)) == ([".mcp.json"], (), "", 1)
    assert json.loads(here.trusted.files[0].data) == SERVERS
    lines = yes.asked[0].preview.splitlines()
    assert lines[1:4] == ["would bring 1 thing:", SERVER_LINE, "all of it:"]
    assert '"TOKEN": "${GH_TOKEN}"' in [line.strip() for line in lines[4:]]
    here.says(SERVERS | {"also": 1})
    assert (here.names, "left out: it changed since you trusted it" in here.trusted.notes[0]) == ([], True)


@all_rows("answer", [answer for answer in Answer if answer is not Answer.YES])
def test_anything_else_is_a_no_that_is_kept(tmp_path: Path, answer: Answer) -> None:
    here, asked = Folder(tmp_path).says(SERVERS), Answers(answer)
    assert "not asked again" in here.asks(asked)
    assert (here.asks(asked), here.names, len(asked.asked)) == ("", [], 1)
    assert "left out: you declined it" in here.trusted.notes[0]
    here.says(SERVERS | {"also": 1})
    assert "left out: you have not trusted it" in here.trusted.notes[0]
    here.asks(asked)
    assert len(asked.asked) == 2


def test_the_same_content_in_another_folder_is_not_trusted(tmp_path: Path) -> None:
    Folder(tmp_path).says(SERVERS).asks(Answers(Answer.YES))
    assert Folder(tmp_path, "other").says(SERVERS).names == []


def test_file_changed_during_the_question_is_not_trusted(tmp_path: Path) -> None:
    here = Folder(tmp_path).says(SERVERS)
    worse = {"mcpServers": {"files": {"command": "evil"}}}
    assert "its new content is not trusted" in here.asks(Answers(Answer.YES, during=lambda: here.says(worse)))
    assert here.names == []
    assert here.says(SERVERS).names == [".mcp.json"]


CONFIG = ".harness/config.toml"
HOOK = '[[hook]]\nid = "h"\nevent = "before-call"\ncommand = ["./check"]\n'
SHOWN = [
    pytest.param(".mcp.json", {"mcpServers": {"w": {"url": "https://e.org/${X:-a}"}}},
        ["MCP server w is reached at https://e.org/${X:-a} (it gets your variables X)"], id="a URL"),
    pytest.param(".mcp.json", {"mcpServers": {"w": {"command": "a\u202e\x1b[2J", "write": [".", "~/x y"], "network": True}}},
        ["MCP server w starts: 'a\\u202e\\x1b[2J' (it may write . '~/x y' and reach the network)"], id="hostile text"),
    pytest.param(CONFIG, '[mcp.servers.s]\ncommand = ["./s", "a b"]\nenv = ["T"]\nwrite = ["."]\n',
        ["MCP server s starts: ./s 'a b' (it gets your variables T) (it may write .)"], id="a server of ours"),
    pytest.param(CONFIG, '[[tool]]\nname = "lint"\ndescription = "Lints."\nargv = ["ruff", "a b"]\nnetwork = true\n',
        ["tool lint runs: ruff 'a b' (it may reach the network)"], id="a tool"),
    pytest.param(CONFIG, HOOK.replace("check", "\\u0063heck"), ["hook h runs: ./check"], id="a hook"),
]  # fmt: skip


@all_rows(("name", "said", "lines"), SHOWN)
def test_commands_to_start_are_shown_in_words(tmp_path: Path, name: str, said: object, lines: list[str]) -> None:
    yes = Answers(Answer.YES)
    Folder(tmp_path).says(said, name).asks(yes)
    (asked,) = yes.asked
    shown = asked.preview.splitlines()
    assert [line.strip() for line in shown[2 : shown.index("all of it:")]] == lines
    assert "\x1b" not in asked.preview
    assert "\u202e" not in asked.preview


UNFIT = [
    pytest.param(".mcp.json", "{", "is not valid JSON", id="no JSON"),
    pytest.param(
        ".mcp.json", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "duplicate key", id="twice"
    ),
    pytest.param(".mcp.json", {"mcpServers": []}, "must be {", id="a list"),
    pytest.param(".mcp.json", {"mcpServers": {"a": {"command": 1}}}, "command: must be a string", id="a number"),
    pytest.param(".mcp.json", " " * 100_001, "larger than 100,000 bytes", id="too long"),
    pytest.param(CONFIG, '[approver]\ncommand = ["yes"]\n', "tools, servers and hooks, and no more", id="an approver"),
    pytest.param(CONFIG, "[[tool]]\n", "lacks the field name", id="a tool of nothing"),
    pytest.param(CONFIG, "[[tool]\n", "is not TOML", id="no TOML"),
]


@all_rows(("name", "said", "why"), UNFIT)
def test_invalid_file_is_left_out_without_a_question(tmp_path: Path, name: str, said: object, why: str) -> None:
    here, yes = Folder(tmp_path).says(said, name), Answers(Answer.YES)
    assert (here.asks(yes), yes.asked, here.names) == ("", [], [])
    (note,) = here.trusted.notes
    assert note.startswith(f"{name} is left out: ")
    assert why in note


@all_rows(("name", "said"), [(".mcp.json", {}), (".mcp.json", {"mcpServers": {}}), (CONFIG, ""), (CONFIG, "[mcp]\n")])
def test_file_without_declarations_needs_no_question(tmp_path: Path, name: str, said: object) -> None:
    here, yes = Folder(tmp_path).says(said, name), Answers(Answer.YES)
    assert (here.asks(yes), yes.asked, here.trusted) == ("", [], TrustedFiles())


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    here = Folder(tmp_path)
    os.mkfifo(Path(here.root, ".mcp.json"))
    assert "cannot be read: Not a regular file" in here.trusted.notes[0]


@all_rows(("name", "said"), [(".mcp.json", json.dumps(SERVERS)), (CONFIG, HOOK)])
def test_file_is_trusted_and_forgotten_by_command(
    program: Program, in_workspace: Callable[[str, str], Path], name: str, said: str
) -> None:
    in_workspace(".mcp.json", "{}")
    in_workspace(name, said)
    state, root = State.of(program.environment), os.path.realpath(program.workspace)
    done = program.run("policy", "trust", name)
    assert (done.code, done.out.splitlines()[1]) == (0, "would bring 1 thing:")
    assert [one.name for one in trusted_files(state, root).files] == [name]
    done = program.run("policy", "forget", name)
    assert (done.code, done.out.startswith(f"not trusted any more: {name} with sha256 ")) == (0, True)
    assert trusted_files(state, root).files == ()
    assert program.run("policy", "forget", name).out.startswith(f"was not trusted: {name} with sha256 ")
    assert program.run("policy", "trust", name).code == 0
    assert len(trusted_files(state, root).files) == 1


def test_a_policy_can_be_forgotten(program: Program, in_workspace: Callable[[str, str], Path]) -> None:
    in_workspace(".harness/policy.toml", 'version = 1\n[[rule]]\nid = "a"\ndecision = "auto"\nargv = ["make", "x"]\n')
    codes = []
    for action in ("trust", "forget"):
        assert program.run("policy", action).code == 0
        codes.append(program.run("policy", "explain", "make x", "--policy", "default").code)
    assert codes == [0, 10]


OWN = b"""[mcp.servers.mine]
command = ["./mine"]
[[tool]]
name = "lint"
description = "Lints."
argv = ["ruff"]
"""


def test_trusted_servers_join_those_of_the_user(tmp_path: Path) -> None:
    servers = {
        "mine": {"command": "evil"},
        "b": {"command": "${NONE}"},
        "c": {"command": "c", "env": {"K": "${V}"}},
        "é": {"command": "x"},
    }
    here = Folder(tmp_path).says(json.dumps({"mcpServers": servers}, indent=1, ensure_ascii=False)).says(HOOK, CONFIG)
    own = project_tables(OWN, "config.toml")
    before = extensions_here(own, here.state, here.root, {"V": "v"})
    assert (sorted(before.extensions.in_section(SERVER_TABLES)), len(before.notes)) == (["mine"], 2)
    here.asks(Answers(Answer.YES))
    found = extensions_here(own, here.state, here.root, {"V": "v"})
    assert {name: (one.command, one.variables) for name, one in found.extensions.in_section(SERVER_TABLES).items()} == {
        "mine": (("./mine",), ()),
        "c": (("c",), (("K", "v"),)),
    }
    assert (found.extensions.of(SERVER_TABLES, "c"), found.extensions.of(HOOKS, "h")) == (".mcp.json:9", f"{CONFIG}:1")
    assert [note.partition(": ")[2] for note in found.notes] == [
        "the server mine is left out: config.toml:1 declares one of that name",
        "the server b is left out: '${NONE}': the variable NONE is not set",
        "the server é is left out: 'é' cannot be the name of a server: take letters, digits, - and single _, 32 at most",
    ]


# --- in a session ---

STARTED = {"mcpServers": {"here": {"command": sys.executable, "args": [HOSTILE, "plain"]}}}
ASKS = "trust asks"


def test_untrusted_server_is_not_started_by_a_run_and_is_reported(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    in_workspace(".mcp.json", json.dumps(STARTED))
    told = []
    for trusted in (False, True):
        if trusted:
            assert program.run("policy", "trust", ".mcp.json").code == 0
        url = program.serve(replies(say("Done.")))
        done = program.run("run", "go", "--base-url", url, "--model", "scripted", "--policy", "ci")
        tools: Any = program.players[-1].requests[0]["tools"]
        offered = [one["function"]["name"] for one in tools if one["function"]["name"].startswith("mcp__")]
        told.append((done.code, offered, "you have not trusted it; `harness policy trust .mcp.json`" in done.err))
    assert told == [(0, [], True), (0, ["mcp__here__act"], False)]
    assert left_in(program.workspace) == []


@pytest.mark.terminal
def test_the_prompt_asks_once_and_keeps_the_answer(program: Program, in_workspace: Callable[[str, str], Path]) -> None:
    in_workspace(".mcp.json", json.dumps(STARTED))
    with prompts(program) as start:
        prompt = start(replies(), before=lambda played: played.press("trust", "n"))
        assert "MCP server here starts: " in prompt.text()
        assert "is not trusted. It is not asked again" in prompt.text()
        prompt.leave()
        prompt = start(replies())
        assert ASKS not in prompt.text()
        prompt.leave()
        in_workspace(".mcp.json", json.dumps(STARTED, indent=1))
        prompt = start(replies(), before=lambda played: played.press("trust", "y"))
        assert "\ntrusted: " in prompt.text()
        prompt.leave()
        assert ASKS not in start(replies()).text()
    assert left_in(program.workspace) == []
