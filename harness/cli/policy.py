"""`harness policy`: check a file, explain a decision, trust a project's policy; nothing here runs a call."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from harness.actions import Access, Action, Facet, describe_facet
from harness.cli.exits import Exit
from harness.cli.policies import assemble, load_named
from harness.cli.state import PROJECT_POLICY, State
from harness.errors import PolicyError, ToolError, UsageError
from harness.messages import ToolCall
from harness.policy import Layer, Verdict, evaluate
from harness.policy_file import TOOL_NAMES, load_policy, nearest
from harness.shell.commands import read_commands
from harness.visible import visible_line
from harness.workspace import Workspace

_ACCESSES = {"read_file": (Access.READ,), "edit_file": (Access.WRITE, Access.READ)}
"""What a tool does to its file, where that is not only writing; an edit shows lines around the change."""


def policy_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness policy ACTION` asks and return the exit code. Raises HarnessError."""
    if arguments.action == "check":
        return _check(arguments.files)
    if arguments.action == "trust":
        return _trust(arguments.file, State.of(environment))
    return _explain(arguments, environment)


def _check(files: Sequence[str]) -> int:
    failed = False
    for file in files:
        try:
            policy = load_named(file)
        except PolicyError as error:
            failed = True
            sys.stderr.write(f"{visible_line(str(error), 2000)}\n")
            continue
        rules, defaults = len(policy.rules), len(policy.defaults)
        line = f"{file}: good: {rules} rules, {defaults} defaults, sha256 {policy.sha256}"
        sys.stdout.write(f"{visible_line(line, 5_000)}\n")
    return Exit.USAGE if failed else Exit.DONE


def _trust(file: str | None, state: State) -> int:
    path = file or os.path.join(os.getcwd(), PROJECT_POLICY)
    policy = load_policy(path, layer=Layer.PROJECT)
    state.trust_policy(policy.sha256, os.path.realpath(path))
    path = visible_line(path, 5_000)
    sys.stdout.write(f"trusted: {path} with sha256 {policy.sha256}; any change of the file ends the trust\n")
    return Exit.DONE


def _explain(arguments: Namespace, environment: Mapping[str, str]) -> int:
    workspace = Workspace(arguments.cwd or os.getcwd(), environment.get("HOME"))
    policy = assemble(State.of(environment), workspace.root, named=arguments.policy, fallback="default")
    text = arguments.what[0] if len(arguments.what) == 1 else shlex.join(arguments.what)
    try:
        verdict = evaluate(policy, action_for(arguments.tool, text, workspace))
    except ToolError as error:
        raise UsageError(str(error)) from None
    sys.stdout.write("\n".join(explanation(arguments.tool, text, verdict)) + "\n")
    return Exit.DONE


def action_for(tool: str, text: str, workspace: Workspace) -> Action:
    """Return the action that would be judged if the model called `tool` with this command or path.

    Raises UsageError for an unknown tool, ToolError for a path that cannot name a file.
    """
    call = ToolCall(id="explain", name=tool, arguments="{}")
    if tool == "bash":
        facets: tuple[Facet, ...] = read_commands(text, workspace.resolve_word)
        raw = text
    elif tool in TOOL_NAMES:
        accesses = _ACCESSES.get(tool, (Access.WRITE,))
        facets, raw = tuple(workspace.resolve(text, access) for access in accesses), ""
    else:
        raise UsageError(f"there is no tool named {tool!r}{nearest(tool, TOOL_NAMES)}")
    return Action(call=call, tool=tool, arguments={}, facets=facets, summary=text, preview=text, request=None, text=raw)


def explanation(tool: str, text: str, verdict: Verdict) -> list[str]:
    """Return the lines that say what was decided and which rule, with file and line, decided each part."""
    deciding = verdict.deciding
    lines = [
        f"{tool}: {visible_line(text)}",
        f"decision: {verdict.decision.word}",
        f"decided by: {visible_line(deciding.by, 1000)}",
        f"reason: {visible_line(deciding.reason, 1000)}",
    ]
    if deciding.hint:
        lines.append(f"hint: {visible_line(deciding.hint, 1000)}")
    shown = verdict.shown
    if len(shown) > 1:
        lines.append("parts:")
        lines += [
            f"  {f.decision.word:8} {visible_line(describe_facet(f.facet), 100)}  [{visible_line(f.by, 300)}]"
            for f in shown
        ]
    return lines
