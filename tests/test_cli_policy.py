"""`harness policy`: check, explain, trust."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.models.scripted import Reply, call, replies

if TYPE_CHECKING:
    from conftest import Program

EXPLAINED = [
    pytest.param("bash", "git status", "auto", "rule git-look (", id="a reading command"),
    pytest.param("bash", "git -C sub push --force", "deny", "rule force-push (", id="past global options"),
    pytest.param("bash", "ls > out", "confirm", "built-in opaque", id="a redirection"),
    pytest.param("bash", "rm -rf /", "block", "built-in delete-tree", id="a recursive delete of the root"),
    pytest.param("bash", "make", "confirm", "default for bash (", id="a default"),
    pytest.param("bash", "cat .env", "deny", "rule secrets (", id="a secret by another tool"),
    pytest.param("read_file", ".env", "deny", "rule secrets (", id="a secret"),
    pytest.param("bash", "cat " + "x/" * 2500, "confirm", "built-in outside", id="a path that cannot be followed"),
    pytest.param("read_file", "src/a.py", "auto", "default for read_file (", id="a plain file"),
    pytest.param("write_file", ".github/workflows/x.yml", "confirm", "built-in protected", id="a protected file"),
    pytest.param("read_file", "/etc/passwd", "confirm", "built-in outside", id="outside the workspace"),
    pytest.param(
        "bash", "cat /proc/self/cwd/x", "confirm", "built-in outside", id="a link that depends on who follows it"
    ),
    pytest.param("bash", "git log -p -- ':(top).env'", "deny", "rule secrets (", id="a pathspec with magic"),
    pytest.param("bash", "git log -p -- '.en?'", "confirm", "built-in opaque", id="a pathspec with a pattern"),
    pytest.param("bash", "git log --format=%GG", "confirm", "built-in opaque", id="a format that runs gpg"),
    pytest.param("bash", "ls -R -L .", "confirm", "default for bash (", id="following the links of a repository"),
    pytest.param("bash", "ls @x", "confirm", "default for bash (", id="options out of a file"),
]


@pytest.mark.parametrize(("tool", "what", "decision", "by"), EXPLAINED)
def test_explain_names_the_deciding_rule(program: Program, tool: str, what: str, decision: str, by: str) -> None:
    """The decision, the rule with file and line, and the reason."""
    done = program.run("policy", "explain", "--tool", tool, what)
    lines = dict(line.split(": ", 1) for line in done.out.splitlines() if ": " in line)
    assert (done.code, lines["decision"]) == (0, decision)
    assert lines["decided by"].startswith(by)
    if by.endswith("("):
        assert lines["decided by"].rstrip(")").rpartition(":")[2].isdigit()


def test_check_reports_every_file(program: Program) -> None:
    """Good files are named with their digest, bad ones with file, line and key; exit 2 if any is bad."""
    good, bad = program.home / "good.toml", program.home / "bad.toml"
    good.write_text("version = 1\n")
    bad.write_text("version = 1\n[limits]\nturn = 3\n")
    done = program.run("policy", "check", str(good), str(bad), "ci")
    assert done.code == 2
    assert f"{good}: good: 0 rules" in done.out
    assert "ci: good: " in done.out
    assert f"{bad}:3: [limits] turn: unknown key; did you mean turns?" in done.err


def test_a_file_in_the_folder_never_takes_a_shipped_name(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    """`--policy readonly` is the shipped one whatever lies in the workspace."""
    in_workspace("readonly", 'version = 1\n[tools]\ndefault = "auto"\nwrite_file = "auto"\n')
    done = program.run("policy", "explain", "--policy", "readonly", "--tool", "write_file", "x")
    assert "decision: deny" in done.out


PROJECT = """\
version = 1
[tools]
bash = "auto"
[[rule]]
id = "no-make"
decision = "deny"
argv = ["make"]
reason = "Use the script."
[[rule]]
id = "tests"
decision = "auto"
argv = ["pytest"]
"""


def test_a_project_policy_tightens_at_once_and_loosens_when_trusted(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    """Its deny counts; its auto counts only for exactly the content that was trusted."""

    def decision(command: str) -> str:
        out = program.run("policy", "explain", command).out
        return next(line for line in out.splitlines() if line.startswith("decision: ")).removeprefix("decision: ")

    path = in_workspace(".harness/policy.toml", PROJECT)
    assert (decision("make"), decision("pytest"), decision("touch x")) == ("deny", "confirm", "confirm")
    assert program.run("policy", "trust", str(path)).code == 0
    assert (decision("make"), decision("pytest"), decision("touch x")) == ("deny", "auto", "confirm")
    path.write_text(PROJECT + "# changed\n")
    assert (decision("make"), decision("pytest")) == ("deny", "confirm")


def test_a_broken_project_policy_stops_the_run(program: Program, in_workspace: Callable[[str, str], Path]) -> None:
    """A layer is never left out because it is broken."""
    in_workspace(".harness/policy.toml", "version = 1\nnope = 2\n")
    url = program.serve(replies(Reply(text="hi")))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, program.players[0].requests) == (2, [])


def test_no_call_may_write_the_policies_or_the_log(program: Program, in_workspace: Callable[[str, str], Path]) -> None:
    """Writing the policy in use, by any tool, halts the run."""
    path = in_workspace("rules.toml", 'version = 1\n[tools]\ndefault = "auto"\n')
    for attempt in (
        call("write_file", path="rules.toml", content=""),
        call("bash", command="cp x rules.toml"),
        call("bash", command="echo > rules.toml"),
    ):
        url = program.serve(replies(Reply(calls=(attempt,)), Reply(text="done")))
        done = program.run(
            "run", "go", "--base-url", url, "--policy", "rules.toml", "--log", str(program.home / "x.jsonl")
        )
        assert done.code == 3, done.err
        assert path.read_text() != ""


@pytest.mark.parametrize("words", [("--version",), ("policy", "explain", "ls"), ("demo", "--list"), ("audit", "list")])
def test_a_reader_that_goes_away_is_told_by_the_exit_code(program: Program, words: tuple[str, ...]) -> None:
    """141, one line at most, no traceback; closed from the start it is 2."""
    program.run("demo", "--answers", "n,n")
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start(*words, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in err, b"Exception" in err) == (141, False, False), err
    closed = program.run(*words, stdout=None, preexec_fn=lambda: os.close(1))
    assert (closed.code, "stdout is closed" in closed.err) == (2, True)


def test_the_users_own_policy_stands_in_for_the_shipped_default(program: Program) -> None:
    """At the prompt and in explain; a broken one is never skipped; `run` without --policy stays readonly."""
    folder = Path(program.environment["XDG_CONFIG_HOME"]) / "harness"
    folder.mkdir(parents=True)
    (folder / "policy.toml").write_text('version = 1\n[tools]\nbash = "deny"\n')
    done = program.run("policy", "explain", "ls")
    assert f"decided by: default for bash ({folder / 'policy.toml'}:3)" in done.out
    (folder / "policy.toml").write_text("version = 2\n")
    assert program.run("policy", "explain", "ls").code == 2
    assert "readonly" in program.run("run", "go", "--base-url", program.serve(replies(Reply(text="hi")))).err


def test_no_call_may_write_the_users_folders(program: Program) -> None:
    """Policies, trust, logs: outside the workspace, and a hard block all the same."""
    for path in (
        f"{program.state}/harness/trusted_policies",
        f"{program.environment['XDG_CONFIG_HOME']}/harness/policy.toml",
    ):
        done = program.run("policy", "explain", "--tool", "write_file", path)
        assert "decision: block" in done.out
        assert "built-in own-files" in done.out
