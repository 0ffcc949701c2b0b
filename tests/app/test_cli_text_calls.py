"""Calls as text: the program against a server whose model writes fenced blocks."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from places import shell_word
from program import Program
from rows import all_rows

from harness.models.scripted import ModelScript, Reply, Turn, replies, say

POLICY = """\
version = 1

[tools]
bash = "confirm"

[[rule]]
id = "look"
decision = "auto"
argv = [["cat", "printf"], "..."]
"""


def _ran(program: Program, script: ModelScript, *flags: str) -> tuple[int, str]:
    (program.workspace / "notes.txt").write_text("what is in a\n")
    policy = program.home / "policy.toml"
    policy.write_text(POLICY)
    url = program.serve(script)
    given = ("--calls", "text", "--policy", str(policy), "--base-url", url, "--model", "m", *flags)
    ended = program.run("run", "Look into a.", *given)
    return ended.code, ended.out


def test_one_block_is_a_call_and_a_reply_without_is_the_answer(program: Program) -> None:
    code, out = _ran(program, replies(Reply(text="I look.\n```bash\ncat notes.txt\n```"), say("It says what is in a.")))
    assert (code, out.strip()) == (0, "It says what is in a.")
    first, second = program.players[0].requests
    assert "tools" not in first
    messages: Any = second["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "exactly one fenced block" in str(messages[0]["content"])
    assert messages[2] == {"role": "assistant", "content": "I look.\n```bash\ncat notes.txt\n```"}
    assert "what is in a" in str(messages[3]["content"])
    assert program.records()[0]["call_form"] == "text"


BLOCK = "```bash\nmkdir -p docs/new && cat > docs/new/a.md <<'EOF'\n# A\nEOF\n```"


def test_ci_policy_allows_a_block_the_writes_of_write_file(program: Program) -> None:
    url = program.serve(replies(Reply(text=BLOCK), say("Written.")))
    given = ("--calls", "text", "--policy", "ci", "--base-url", url, "--model", "m")
    assert program.run("run", "Write it.", *given).code == 0
    assert (program.workspace / "docs/new/a.md").read_text() == "# A\n"


@all_rows(
    "block", ["cat > .github/a.yml <<< x", "cat > uv.lock <<< x", "cat > .env <<< x", "cat > ../a <<< x"], fresh=True
)
def test_ci_policy_confines_writes_of_a_text_call(program: Program, block: str) -> None:
    (program.workspace / ".github").mkdir()
    url = program.serve(replies(Reply(text=f"```bash\n{block}\n```"), say("Then not.")))
    given = ("--calls", "text", "--policy", "ci", "--base-url", url, "--model", "m")
    assert program.run("run", "Write it.", *given).code == 7


UNWALLED = """version = 1
[tools]
default = "auto"
bash = "deny"
readers = true
[[rule]]
id = "redirections"
decision = "auto"
access = ["write"]
path = ["*"]
[[rule]]
id = "tests"
decision = "auto"
argv = ["python3", "-m", "unittest"]
flags = ["-q"]
write = ["."]
"""


def test_block_that_writes_an_entry_point_suspends_the_rules_that_run_it(program: Program, tmp_path: Path) -> None:
    """A rule with walls is not suspended: the walls hold whatever it runs."""
    (tmp_path / "p.toml").write_text(UNWALLED)
    blocks = ['cat > conftest.py <<< \'open("mark", "w")\'', "python3 -m unittest -q"]
    url = program.serve(replies(*(Reply(text=f"```bash\n{block}\n```") for block in blocks), say("Not run.")))
    given = ("--calls", "text", "--policy", str(tmp_path / "p.toml"), "--base-url", url, "--model", "m")
    assert program.run("run", "Write it.", *given).code == 7
    assert [record["status"] for record in program.records() if record["kind"] == "outcome"] == ["ok", "denied"]


WRONG = {
    "two blocks": ("```bash\ncat a\n```\n```bash\ncat a\n```", "contains 2 fenced bash blocks"),
    "no end": ("```bash\ncat a", "has no end"),
    "a session's form": (
        "1. I look.\n    ```console\n    $ cat a\n    ```",
        "a fenced console block, which was not run",
    ),
}


@all_rows("reply, told", WRONG, fresh=True)
def test_reply_without_exactly_one_block_runs_no_command(program: Program, reply: str, told: str) -> None:
    seen: list[str] = []

    def script() -> Generator[Reply, Turn, None]:
        turn = yield Reply(text=reply)
        seen.append(turn.user)
        yield say("I see.")

    code, _ = _ran(program, script)
    assert code == 0
    assert told in seen[0]
    assert not [record for record in program.records() if record["kind"] == "intent"]


def test_refusal_is_sent_as_the_next_message(program: Program, tmp_path: Path) -> None:
    code, _ = _ran(program, replies(Reply(text=f"```bash\ntouch {shell_word(tmp_path)}/made\n```"), say("Then not.")))
    assert code == 7
    assert not (tmp_path / "made").exists()
    assert "Denied" in str(program.players[0].requests[1]["messages"])


def test_block_is_text_by_default(program: Program) -> None:
    url = program.serve(replies(Reply(text="```bash\ncat a\n```")))
    ended = program.run("run", "Look.", "--base-url", url, "--model", "m")
    assert ended.code == 0
    assert "tools" in program.players[0].requests[0]
    assert not [record for record in program.records() if record["kind"] == "call_proposed"]


def test_instructions_fit_the_single_tool_and_its_way_to_write_a_file(program: Program) -> None:
    write = "```bash\ncat > made.txt <<'EOF'\n$x\nEOF\n```"
    (program.home / "policy.toml").write_text(POLICY + WRITES)
    url = program.serve(replies(Reply(text=write), say("Done.")))
    policy = str(program.home / "policy.toml")
    ended = program.run("run", "Go.", "--calls", "text", "--policy", policy, "--base-url", url, "--model", "m")
    assert (ended.code, (program.workspace / "made.txt").read_text()) == (0, "$x\n")
    messages: Any = program.players[0].requests[0]["messages"]
    system = messages[0]["content"]
    assert "cat > FILE <<'EOF'" in system
    assert not [name for name in ("edit_file", "write_file", "`cwd`", "no redirections") if name in system]


WRITES = """
[[rule]]
id = "made"
decision = "auto"
access = ["write"]
path = ["made.txt"]
"""
UNUSABLE = {
    "bash is not chosen": (("--tools", "read_file"), POLICY, "bash is not among the tools (flag --tools)"),
    "bash is refused": ((), 'version = 1\n[tools]\nbash = "deny"\n', "refuses every call of bash"),
}


@all_rows("flags, policy, told", UNUSABLE, fresh=True)
def test_text_calls_need_a_shell(program: Program, flags: tuple[str, ...], policy: str, told: str) -> None:
    (program.home / "policy.toml").write_text(policy)
    url = program.serve(replies(say("Never asked.")))
    given = ("--calls", "text", "--policy", str(program.home / "policy.toml"), "--base-url", url, "--model", "m")
    ended = program.run("run", "Go.", *given, *flags)
    assert (ended.code, program.players[0].requests) == (2, [])
    assert "flag --calls: the calls of such a model are commands, and " in ended.err
    assert told in ended.err
