"""The command line of our hook in an agent's settings: how an installation writes it, and how it is recognized.

INVARIANT: only a line that an installation writes, or wrote, is ours. A line with more shell text could let a call run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import harness
from harness.actions import JsonValue
from harness.paths import is_within
from harness.record import Record
from harness.session.asked_call import quoted

_CLOSED = "|| { [ $? = 2 ] || echo harness failed >&2; exit 2; }"
"""Shell text after our program. It turns every failure into a refusal, even if the program is missing.

Exit code 2 is already a refusal with a reason.
"""
_ENDS = ("", f" {_CLOSED}", " || { [ $? -eq 2 ] || echo harness: the hook failed >&2; exit 2; }")
"""Endings of a line of ours: none, the present one, and that of an earlier version."""
_WORD = r"(?:'(?:[^']|'\\'')*+'|[A-Za-z0-9_./@%+,:-]++)"
_MAIN = r"(?<=/harness/__main__\.py)|(?<=/harness/__main__\.py')"
_LINE = re.compile(
    rf"(?P<program>{_WORD})(?P<module>(?: -[A-Z]+)? -m harness| -I -S {_WORD}(?:{_MAIN}))? hook (?P<agent>[a-z]+)"
    rf"(?P<policies>(?: --policy {_WORD})*+)(?P<end>{'|'.join(map(re.escape, _ENDS))})",
    re.DOTALL,
)
_POLICY = re.compile(rf" --policy ({_WORD})")
_IN_SH = re.compile(r"/bin/sh -c (?P<line>'(?:[^']|'\\'')*+')", re.DOTALL)


class HookLine(Record):
    """The parts of a command line of our hook."""

    text: str
    """The line, without an sh around it."""
    program: str
    """Path of the program that the hook starts."""
    policies: tuple[str, ...]
    paths: tuple[str, ...]
    """The words that name the program and our main module, as written. The second is empty if the line has none."""
    is_closed: bool
    """Whether the line turns every failure into a refusal, and loads our module from no other folder."""


def hook_command(program: str, agent: str, policies: Sequence[str] = ()) -> str:
    """Return the command line of our hook. `program` is our program, quoted; `policies` are files or names of policies.

    The line must not depend on our version, since Codex trusts exactly this line.
    """
    policy_flags = "".join(f" --policy {quoted(policy)}" for policy in policies)
    return f"{program} hook {agent}{policy_flags} {_CLOSED}"


def hook_line(command: JsonValue, agent: str) -> HookLine | None:
    """Return the parts of a command line that calls our hook for this agent. `None` for any other value."""
    if not isinstance(command, str):
        return None
    in_sh = _IN_SH.fullmatch(command)
    text = _unquoted(in_sh["line"]) if in_sh else command
    match = _LINE.fullmatch(text)
    if match is None or match["agent"] != agent:
        return None
    program, module = _unquoted(match["program"]), match["module"] or ""
    if not module and os.path.basename(program) != "harness":
        return None
    return HookLine(
        text=text,
        program=program,
        policies=tuple(map(_unquoted, _POLICY.findall(match["policies"]))),
        paths=(match["program"], module.partition(" -I -S ")[2]),
        is_closed=match["end"] == f" {_CLOSED}" and module != " -m harness",
    )


def is_ours(command: JsonValue, agent: str) -> bool:
    """Return whether a command line of an agent's settings calls our hook for this agent."""
    return hook_line(command, agent) is not None


def is_written_by_us(command: JsonValue, agent: str, folder: str) -> bool:
    """Return whether a command line is one that an installation writes, and runs no program in `folder` but ours.

    A project may declare a hook of its own that looks like ours.
    """
    line = hook_line(command, agent)
    if line is None:
        return False
    paths = [(word, _unquoted(word)) for word in line.paths if "/" in word]
    our_files = (sys.executable, os.path.join(os.path.dirname(harness.__file__), "__main__.py"))
    return (
        line.is_closed
        and all(quoted(path) == word and os.path.isabs(path) for word, path in paths)
        and not any(is_within(os.path.realpath(path), folder) for _, path in paths if path not in our_files)
    )


def _unquoted(word: str) -> str:
    return word[1:-1].replace("'\\''", "'") if word.startswith("'") else word
