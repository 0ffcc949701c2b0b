"""One `[[hook]]`: what is understood, and what is refused, by its key."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rows import all_rows

from harness.actions import Access
from harness.checks.hook_declaration import declared
from harness.checks.hook_form import HARNESS_FORM
from harness.log.vocabulary import CheckEvent
from harness.plugins.agents.claude_hooks import FORM
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import CommandMatcher
from harness.policy.matchers import OperandMatcher
from harness.policy.patterns import PathPatterns
from harness.policy.tool_matchers import ToolMatcher

FORMS = {FORM.name: lambda: FORM}
PLAIN: dict[str, Any] = {"id": "check", "event": "before-call", "command": ["/opt/check.py"]}


def test_hook_defaults_are_the_widest() -> None:
    hook = declared(PLAIN)
    assert (hook.id, hook.event, hook.command) == ("check", CheckEvent.BEFORE_CALL, ("/opt/check.py",))
    assert hook.matchers == ()
    assert (hook.seconds, hook.form) == (10.0, HARNESS_FORM)


def test_hook_fields_are_parsed() -> None:
    hook = declared(
        {
            **PLAIN,
            "tool": ["bash", "mcp__*"],
            "argv": ["git", ["push", "fetch"], "..."],
            "path": ["src/"],
            "access": ["write"],
            "seconds": 5,
            "form": "claude",
            "command": ["python3", "/opt/check.py"],
        },
        FORMS,
    )
    assert hook.matchers == (
        CommandMatcher(argv=ArgvPattern(tokens=(("git",), ("push", "fetch")), rest=True, options=())),
        OperandMatcher(patterns=PathPatterns(patterns=("src/",)), access=(Access.WRITE,)),
        ToolMatcher(names=("bash", "mcp__*")),
    )
    assert (hook.seconds, hook.form) == (5.0, FORM)


@all_rows(
    ("more", "problem"),
    {
        "no id": ({"id": None}, "id: must be a name"),
        "an id with a blank": ({"id": "a b"}, "id: must be a name"),
        "a long id": ({"id": "a" * 65}, "id: must be a name"),
        "no such event": ({"event": "PreToolUse"}, "event: unknown 'PreToolUse'"),
        "a shell line": ({"command": "check.py --all"}, "command: must be a list of words"),
        "no words": ({"command": []}, "command: must be a list of words"),
        "a blank program": ({"command": [" "]}, "command: names no program"),
        "a module, where the workspace is": (
            {"command": ["python3", "-m", "check"], "form": "claude"},
            "command: '-m' lets the interpreter load files of the workspace",
        ),
        "in one word": (
            {"command": ["/usr/bin/python3.11", "-Imcheck"], "form": "claude"},
            "command: '-Imcheck' lets",
        ),
        "a line": ({"command": ["bash", "-lc", "check.sh"], "form": "claude"}, "command: '-lc' lets the interpreter"),
        "behind another": ({"command": ["nice", "python3", "-c", "1"], "form": "claude"}, "command: '-c' lets the"),
        "a NUL": ({"command": ["a\0b"]}, "command: holds a NUL"),
        "no list of tools": ({"tool": "bash"}, "tool: must be a list of strings"),
        "no tools": ({"tool": []}, "tool: must be a list of strings"),
        "a star in the middle": ({"tool": ["mcp__*__read"]}, "tool: unknown tool 'mcp__*__read'"),
        "a pattern of Claude's": ({"tool": ["Bash|Edit"]}, "tool: unknown tool 'Bash|Edit'"),
        "a name of Claude's": ({"tool": ["Bash"]}, "tool: unknown tool 'Bash'; did you mean bash?"),
        "a slip": ({"tool": ["bsh"]}, "tool: unknown tool 'bsh'; did you mean bash?"),
        "access alone": ({"access": ["read"]}, "access: needs path"),
        "no such access": ({"path": ["a"], "access": ["execute"]}, 'access: must be ["read"], ["write"] or both'),
        "no pattern": ({"path": ["!a"]}, "path: the pattern '!a' begins with '!'"),
        "a line in argv": ({"argv": ["git push"]}, "argv: 'git push' is one word"),
        "argv of no words": ({"argv": "git"}, "argv: must be a list of words"),
        "no time": ({"seconds": 0}, "seconds: must be a number above 0, at most 600"),
        "too much time": ({"seconds": 601}, "seconds: must be a number above 0, at most 600"),
        "no such form": ({"form": "codex"}, "form: unknown 'codex'"),
        "a decision": ({"decision": "auto"}, "has the unknown field 'decision'"),
        "a tool of a session": ({"event": "session-start", "tool": ["bash"]}, "tool: selects calls"),
        "a path of an answer": ({"event": "before-answer", "path": ["a"]}, "path: selects calls"),
    },
)
def test_invalid_hook_field_is_refused(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}"):
        declared({**PLAIN, **more}, FORMS)


def test_missing_hook_field_is_named() -> None:
    for key in PLAIN:
        with pytest.raises(ValueError, match=f"lacks the field {key}"):
            declared({name: value for name, value in PLAIN.items() if name != key})
