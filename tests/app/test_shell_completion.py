"""Completion of the command line, tried in real shells, and the man page."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rows import all_rows

from harness.app.command_line import actions, first_words
from harness.app.manual import manual
from harness.app.shell_completion import bash_script, fish_script, zsh_script
from harness.app.topics import topic_text
from harness.policy.loader import SHIPPED
from harness.shipped import COMMANDS, TOPICS

COMPLETED = [
    (("",), {*first_words(), "help"}),
    (("au",), {"audit"}),
    (("audit", ""), {*actions("audit")}),
    (("audit", "sh"), {"show"}),
    (("audit", "show", "--dec"), {"--decision"}),
    (("audit", "show", "--decision", "de"), {"deny"}),
    (("audit", "show", "--decision=de"), {"deny"}),
    (("run", "--policy", ""), {*SHIPPED}),
    (("run", "--pol"), {"--policy", "--policy-sha256"}),
    (("--pol",), {"--policy", "--policy-sha256"}),
    (("fix it", "--pol"), {"--policy", "--policy-sha256"}),
    (("undo", "--dr"), {"--dry-run"}),
    (("help", "exit"), {"exit-codes"}),
    (("hook", "install", "cl"), {"claude", "cline"}),
    (("completion", ""), {"bash", "zsh", "fish"}),
    (("run", "--max-turns", ""), set()),
]
"""Words after the program, of which the last is completed, and the words that are offered."""
IN_BASH = """\
source /dev/stdin
COMP_WORDS=(harness "$@") COMP_CWORD=$#
_harness
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run(script: Iterator[str], *command: str) -> str:
    text = "\n".join(script) + "\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


@all_rows(("words", "offered"), COMPLETED)
def test_bash_completes_words_flags_and_values(words: tuple[str, ...], offered: set[str]) -> None:
    """Bash splits a word at `=`, so that `--flag=value` arrives as three words."""
    split = [part for word in words for part in (word.replace("=", " = ").split(" ") if "=" in word else [word])]
    assert set(run(bash_script(), "bash", "--norc", "-c", IN_BASH, "bash", *split).split()) == offered


@pytest.mark.parametrize(("name", "script"), [("zsh", zsh_script), ("fish", fish_script)])
def test_other_shells_accept_their_script(name: str, script: object) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    assert callable(script)
    assert run(script(), name, "-n") == ""


def test_scripts_have_every_command_and_flag() -> None:
    for script in (bash_script, zsh_script, fish_script):
        text = "\n".join(script())
        assert all(word in text for name in COMMANDS for word in name.split())
        assert all(flag in text for flag in ("decision", "max-turns", "policy-sha256"))


def test_man_page_has_every_command_and_is_valid_troff(tmp_path: Path) -> None:
    page = manual()
    assert all(f'.SS "harness {name}"' in page for name in COMMANDS if name)
    if shutil.which("groff"):
        assert run(iter(page.splitlines()), "groff", "-man", "-ww", "-z", "-Tascii") == ""


@all_rows("name", [*TOPICS])
def test_topic_of_help_has_text(name: str) -> None:
    assert len(topic_text(name)) > 200
