"""Snapshots of the screens that people see: each is a text in `screens/`, compared whole.

`just screens` writes them anew. Read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from places import ROOT
from program import Program, made_program
from question_scene import Asked, asked, command, from_outside
from rows import all_rows

from harness.policy.destruction import destroys
from harness.record import replace
from harness.terminal.question import Asker, Question, question_rows, usual_here
from harness.terminal.question_help import facet_rows, fact_rows

SCREENS = Path(ROOT, "tests", "terminal", "screens")
RENEWS = bool(os.environ.get("RENEW_SCREENS"))

HELPS = {
    "help": ["help"],
    "help-run": ["run", "--help"],
    "help-audit": ["audit", "--help"],
    "help-policy": ["policy", "--help"],
}
"""Commands that print help, by the name of their screen."""

QUESTIONS: Mapping[str, Callable[[str], Asked]] = {
    "question-one-command": lambda root: command(root, "touch a.txt"),
    "question-several-parts": lambda root: command(root, "ls && git push origin main && rm -rf build"),
    "question-opaque": lambda root: command(root, "f() { ls; }; f"),
    "question-network": lambda root: command(root, "curl -o page.html https://example.org"),
    "question-new-file": lambda root: asked(
        root, "write_file", {"path": "greeting.py", "content": 'print("good morning")\nprint("bye")\n'}
    ),
    "question-tool-from-outside": lambda root: from_outside(root, '{"path": "a.py"}', says_reads=True),
}
"""Calls that lead to a question, by the name of their screen."""


def check(name: str, text: str) -> None:
    """Compare a screen with its snapshot; with RENEW_SCREENS set, write the snapshot."""
    path = SCREENS / f"{name}.txt"
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if RENEWS:
        SCREENS.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{name}: the screen has changed; `just screens` writes it anew"


@pytest.fixture
def root(tmp_path: Path) -> str:
    folder = tmp_path / "workspace"
    (folder / "build").mkdir(parents=True)
    return str(folder)


@all_rows("name", tuple(HELPS), anew={"program": made_program})
def test_a_help_has_not_changed(program: Program, name: str) -> None:
    check(name, program.said(*HELPS[name]))


@all_rows("name", tuple(QUESTIONS))
def test_a_question_has_not_changed(root: str, name: str) -> None:
    about = QUESTIONS[name](root)
    question = Question(
        action=about.action,
        verdict=about.verdict,
        confinement="Landlock 7, seccomp",
        usual=usual_here(root, "Landlock 7, seccomp", about.policy),
        destroys=destroys(about.action),
    )
    shown = (*question_rows(question, 78), *facet_rows(about.verdict, 78))
    text = "\n".join([question.title(78), *(row.text for row in shown)])
    assert root not in text, "the temporary folder would decide where lines are broken"
    check(name, text)


def test_a_question_about_a_command_that_no_walls_hold_has_not_changed(root: str) -> None:
    """Another agent runs it: neither the title nor the help of `?` promises walls."""
    about = command(root, "curl -o page.html https://example.org && touch a.txt")
    question = Question(
        action=replace(about.action, cwd="/srv/project"),
        verdict=about.verdict,
        confinement="none: Kimi Code runs it itself, outside our walls",
        usual=usual_here("/srv/project", "Landlock 7, seccomp", about.policy),
        destroys=destroys(about.action),
        asker=Asker(agent="Kimi Code", session="k1", folder="/srv/project", until="12:00:00"),
    )
    rows = (*question_rows(question, 78), *fact_rows(question, 78))
    check("question-no-walls", "\n".join([question.title(78), *(row.text for row in rows)]))


def test_the_trace_of_the_demo_has_not_changed(program: Program) -> None:
    done = program.run("demo", "--answers", "y,y,n")
    check("trace-demo", settled(done.out))


def settled(text: str) -> str:
    """Return a trace without the output of commands and durations, and with folders and digests as constant words.

    Only a slow call has a duration.
    """
    text = re.sub(r"(?m)^  \|.*\n", "", text)
    for pattern, constant in (
        (r", \d+\.\d+ s\b", ""),
        (r"/\S*/harness-demo-\w+", "/tmp/harness-demo"),
        (r"/\S*/state/harness/\S+", "STATE/LOG"),
        (r"\b[0-9a-f]{12,64}\b", "DIGEST"),
        (rf"{re.escape(shlex.quote(sys.executable))} -m harness\b", "harness"),
    ):
        text = re.sub(pattern, constant, text)
    return text


def test_each_snapshot_belongs_to_a_test() -> None:
    snapshots = sorted(path.stem for path in SCREENS.glob("*.txt"))
    assert snapshots == sorted([*HELPS, *QUESTIONS, "question-no-walls", "trace-demo"])
