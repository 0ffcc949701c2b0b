"""Hooks of the configuration in the real program: `harness run`, from the file that declares them to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from places import shell_word
from program import Program
from rows import all_rows
from run_scene import bash, flags_of

from harness.models.scripted import replies, say
from harness.session.exits import Exit

ECHO = 'version = 1\n[tools]\ndefault = "deny"\n[[rule]]\nid = "e"\ndecision = "auto"\nargv = ["echo", "..."]\n'
DENIES = """echo '{"decision": "deny", "reason": "not today"}'"""
BLOCKS = """echo '{"decision": "block", "reason": "closed"}'"""


def hook_of(path: Path | str, event: str = "before-call") -> str:
    return f'[[hook]]\nid = "check"\nevent = "{event}"\ncommand = ["{path}"]\nseconds = 60\n'


def made(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def configured(program: Program, text: str) -> None:
    folder = Path(program.environment["XDG_CONFIG_HOME"], "harness")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def flags(program: Program) -> tuple[str, ...]:
    url = program.serve(replies(bash("echo hi"), say("Done."), say("Done again.")))
    return flags_of(program, url, ECHO)[:-2]


@all_rows(
    ("event", "body", "code", "said"),
    {
        "nothing said": ("before-call", "true", Exit.DONE, ""),
        "a deny": ("before-call", DENIES, Exit.REFUSED, "denied: not today"),
        "a block": ("before-call", BLOCKS, Exit.BLOCKED, "closed"),
        "a crash": ("before-call", "exit 1", Exit.REFUSED, "the hook gave no answer: exit code 1"),
        "a word after a call": ("after-call", DENIES, Exit.DONE, "hook check (after-call of call 1): deny: not today"),
        "a block after a call": ("after-call", BLOCKS, Exit.BLOCKED, "closed"),
        "a session refused": ("session-start", DENIES, Exit.BLOCKED, "does not let the session begin: not today"),
        "the end of a session": ("session-end", DENIES, Exit.DONE, "hook check ("),
        "an answer refused": ("before-answer", DENIES, Exit.NO_ANSWER, "does not let the answer pass: not today"),
    },
    fresh=True,
)
def test_a_run_obeys_the_hooks_of_the_configuration(
    program: Program, event: str, body: str, code: Exit, said: str
) -> None:
    configured(program, hook_of(made(program.home / "check.sh", body), event))
    done = program.run("run", "go", *flags(program))
    assert done.code == code, done
    assert said in done.err
    (log,) = program.logs()
    assert program.run("audit", "verify", str(log)).code == 0
    shown = program.run("audit", "show", str(log)).out
    assert f"hook check ({event}" in shown


def test_a_hook_in_the_workspace_is_refused_before_anything_begins(program: Program) -> None:
    configured(program, hook_of(made(program.workspace / "check.sh", "true")))
    done = program.run("run", "go", *flags(program))
    assert done.code == Exit.USAGE
    assert "config.toml:1: [[hook]] command: check.sh is in the workspace, where calls can change it" in done.err


@pytest.mark.parametrize("trusted", [True, False])
def test_project_hook_runs_only_in_a_trusted_project(program: Program, trusted: bool) -> None:
    (program.workspace / ".harness").mkdir()
    hook = hook_of(made(program.home / "check.sh", DENIES))
    (program.workspace / ".harness" / "config.toml").write_text(hook)
    if trusted:
        assert program.run("policy", "trust", ".harness/config.toml").code == 0
    done = program.run("run", "go", *flags(program))
    assert done.code == (Exit.REFUSED if trusted else Exit.DONE), done
    assert ("config.toml is left out: you have not trusted it" in done.err) == (not trusted)


@all_rows(
    ("event", "matcher", "words", "asked"),
    {
        "every call": ("before-call", "", ("ls",), True),
        "its program": ("before-call", 'argv = ["ls", "..."]', ("ls",), True),
        "another program": ("before-call", 'argv = ["git", "..."]', ("ls",), False),
        "its tool": ("before-call", 'tool = ["read_*"]', ("--tool", "read_file", "a"), True),
        "another event": ("after-call", "", ("ls",), False),
        "what is refused": ("before-call", "", ("--tool", "write_file", "a"), False),
    },
    fresh=True,
)
def test_explain_names_the_hooks_that_are_asked_and_starts_none(
    program: Program, event: str, matcher: str, words: tuple[str, ...], asked: bool
) -> None:
    started = program.home / "started"
    configured(program, f"{hook_of(made(program.home / 'check.sh', f'touch {shell_word(started)}'), event)}{matcher}\n")
    named = f"check ({program.environment['XDG_CONFIG_HOME']}/harness/config.toml:1)"
    told = program.run("policy", "explain", "--policy", "readonly", *words).out
    assert (f"\nhooks asked as well: {named}\n" in told, "hooks" in told) == (asked, asked)
    told = program.run("policy", "explain", "--policy", "readonly", "--json", *words).out
    assert json.loads(told)["hooks"] == ([named] if asked else [])
    assert not started.exists()


def test_a_hook_of_a_trusted_project_may_not_lie_in_it_either(program: Program) -> None:
    made(program.workspace / ".harness" / "check.sh", DENIES)
    (program.workspace / ".harness" / "config.toml").write_text(hook_of(".harness/check.sh"))
    assert program.run("policy", "trust", ".harness/config.toml").code == 0
    done = program.run("run", "go", *flags(program))
    assert (done.code, "command: .harness/check.sh is in the workspace" in done.err) == (Exit.USAGE, True), done
