"""`harness policy check`, `explain`, `trust` and `forget`. The other actions have their own modules."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from harness.errors import PolicyError, ToolError, UsageError
from harness.files.own_temporary import OwnTemporary
from harness.files.repository import work_top
from harness.files.workspace import Workspace
from harness.policy.loader import load_policy
from harness.policy.rules import Layer
from harness.policy.verdict import evaluate_here
from harness.policy.walls_here import WallsHere
from harness.session.exits import Exit
from harness.session.policies import assemble, source_name
from harness.session.state import PROJECT_POLICY, State, current_folder
from harness.session.trust import loosened_by
from harness.terminal.console import Console, FinishedOutput, complain
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

WARNED = 1
"""Exit code of `policy check --strict` for warnings without errors."""


def check_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Check policy files and return the exit code."""
    return _check(arguments.files, FinishedOutput(environment), strict=arguments.strict)


def trust_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Trust a file of a project, or end that trust. Return the exit code. Raises HarnessError."""
    return _trust(arguments.file, State.of(environment), forget=arguments.action == "forget")


def _check(files: Sequence[str], console: Console, *, strict: bool) -> int:
    from harness.policy.lint import warnings

    failed = warned = False
    for file in files:
        try:
            policy = load_policy(file)
        except PolicyError as error:
            failed = True
            complain(str(error))
            continue
        rules, defaults = len(policy.rules), len(policy.defaults)
        good = f"{file}: good: {rules} rules, {defaults} defaults, sha256 {policy.sha256}"
        console.line(visible_line(good, 5_000), Tone.GOOD)
        for source in policy.sources[1:]:
            count = sum(rule.origin.file == source.path for rule in policy.rules)
            console.line(f"  extends  {source_name(source)}: {count} rules, sha256 {source.sha256}", Tone.QUIET)
        for line in loosened_by(policy):
            console.line(f"  loosens  {line}")
        for warning in warnings(policy):
            warned = True
            console.line(visible_line(str(warning), 5_000), Tone.WARNING)
    if failed:
        return Exit.USAGE
    return WARNED if warned and strict else Exit.DONE


def _trust(file: str | None, state: State, *, forget: bool) -> int:
    from harness.session.extensions.project_trust import named_file

    path = file or os.path.join(current_folder(), PROJECT_POLICY)
    project_file = named_file(path)
    if project_file is None:
        policy = load_policy(path, layer=Layer.PROJECT)
        sha256, trust, real = policy.sha256, policy.sha256, os.path.realpath(path)
    else:
        sha256, trust, real = project_file.sha256, project_file.trust, project_file.path
    display_path = visible_line(path, 5_000)
    if forget:
        status = "not trusted any more" if state.is_trusted(trust) else "was not trusted"
        if not state.is_declined(trust):
            state.decline_content(trust, real)
        sys.stdout.write(f"{status}: {display_path} with sha256 {sha256}\n")
        return Exit.DONE
    state.trust_content(trust, real)
    preview = "" if project_file is None else "".join(f"{line}\n" for line in project_file.lines)
    sys.stdout.write(f"{preview}trusted: {display_path} with sha256 {sha256}; any change of the file ends the trust\n")
    return Exit.DONE


def explain_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Explain the decision on a call. Return the exit code, which depends on the decision. Raises HarnessError."""
    from harness.app.policy.explain import EXIT_CODES, as_json, explanation, hooks_about, parts_table
    from harness.app.policy.judged_call import typed_action
    from harness.session.extensions.hooks_here import declared_hooks
    from harness.tools.command_walls import CommandWalls

    folder = os.path.realpath(arguments.cwd or current_folder())
    top = folder if arguments.cwd else work_top(folder, environment.get("HOME", ""))
    workspace = Workspace(top, environment.get("HOME"))
    if top != folder:
        complain(
            f"judged in the repository {visible_line(top, 5_000)}, as calls of agents are; `--cwd .` means this folder"
        )
    state = State.of(environment)
    policy = assemble(state, workspace.root, names=arguments.policy, fallback="default")
    tool, words = arguments.tool, arguments.what
    text = words[0] if len(words) == 1 else shlex.join(words)

    def temporary() -> OwnTemporary | None:  # that of a new session, in which nothing is yet
        return CommandWalls(workspace).own_temporary(lambda: os.devnull, environment.get("PATH", "").split(":"))

    try:
        action, note = typed_action(tool, text, workspace, environment, temporary, cwd=folder)
    except ToolError as error:
        raise UsageError(str(error)) from None
    if note:
        complain(note)

    def walls() -> WallsHere:
        return CommandWalls(workspace).walls_here(policy, action.tool)

    verdict = evaluate_here(policy, action, walls=walls)
    hooks = hooks_about(declared_hooks(state, workspace.root, environment), action, verdict)
    if arguments.json:
        sys.stdout.write(f"{as_json(tool, text, action, verdict, policy, hooks)}\n")
    else:
        console = FinishedOutput(environment)
        for line in explanation(tool, text, action, verdict, hooks):
            console.line(line.text, line.tone)
        console.line("")
        console.table(parts_table(action, verdict, policy))
    return EXIT_CODES[verdict.decision]
