"""The shipped tools, each in a module of its name, and `builtin_tools`, which assembles them for one workspace.

Read first read_file.py for a tool that reads, write_file.py for one that writes. Each tool describes itself with
`kind` (harness/tool_kinds.py), prepares an action from a call without side effects, and runs the action. edit_file.py
finds a text with edits.py and explains a miss with near_miss.py. bash.py runs a command behind the walls of
command_walls.py, through command_runner.py. script_tool.py does so with a program that the user declared
(script_declaration.py). file_reader.py is the interface for readers of files that are not text.

To add a shipped tool, add a module here, a line in `builtin_tools`, a row in harness/tool_kinds.py, and a line under
`[tools]` of each shipped policy. tests/test_docs.py then names the documents to change, and
tests/support/demo_cassette.py records the session of examples/demo again. A tool of another program can be a class
anywhere; tests/tools/test_fifth_tool.py is a complete example.

Elsewhere: decisions on calls (gate/), the replacement of files (files/), the end of a command (process/).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.declared_types import check_arguments, check_value
from harness.limits import Limits
from harness.process.job import Jobs
from harness.tool_kinds import OPTIONAL_NAMES, tool_kind
from harness.user_folders import BEFORE_IMAGES, TREES, state_folder

if TYPE_CHECKING:
    from harness.files.before_images import BeforeImages
    from harness.files.workspace import Workspace
    from harness.gate.tool import Tool
    from harness.policy.policy import Policy
    from harness.process.lent_terminal import LentTerminal
    from harness.sandbox import Machine
    from harness.tools.ask_user import UserAnswer, UserQuestion
    from harness.tools.command_changes import CommandChanges
    from harness.tools.command_runner import CommandRunner
    from harness.tools.delegate import Helpers
    from harness.tools.file_reader import FileReader
    from harness.tools.script_declaration import ScriptDeclaration


def builtin_tools(  # noqa: PLR0913 - what the tools are given, each named where it is passed
    workspace: Workspace,
    *,
    limits: Limits = Limits(),  # noqa: B008 - a Limits never changes
    environment: Mapping[str, str] | None = None,
    images: BeforeImages | None = None,
    hide: Sequence[str] = (),
    on_output: Callable[[str], None] | None = None,
    lend: Callable[[], AbstractContextManager[LentTerminal] | None] | None = None,
    stops: Callable[[], int] | None = None,
    scripts: Sequence[ScriptDeclaration] = (),
    readers: Sequence[FileReader] = (),
    changes: CommandChanges | None = None,
    jobs: Jobs | None = None,
    undo: bool = False,
    machine: Machine | None = None,
) -> tuple[Tool, ...]:
    """Return the shipped tools for `workspace`, in the order of tool_kinds.SHIPPED_TOOLS, and then `scripts`.

    `limits` bounds the seconds of a command and the characters of a result. `environment` is the source of the few
    variables that a command gets (PATH, HOME, locale; never keys); the default is that of this process. `images` stores
    the content of files before changes, for undo. `hide` are absolute paths that commands cannot read, in addition to
    those that the policy hides. `on_output` receives the output of a running command. `lend` lends the terminal to a
    command that the user typed. `stops` returns the number of interrupts by the user since the call began; the second
    one kills at once. The full output of long commands is stored in the workspace's `outputs` folder, if it has one.
    `readers` read files that are not text for `read_file`. A file without a reader is treated as binary. `changes` finds
    the files that commands change. `jobs` are the background commands of the session (default: there are none). `machine` has
    the walls for commands (default: those of this machine, without Seatbelt).

    With `undo`, the state folder of the user gets the content of files before each change, so that `harness undo --log`
    can restore them. It replaces `images` and `changes`.

    Raises TypeError for a workspace of another type, and UsageError if `undo` finds no home folder.
    """
    from harness.files.baselines import Baselines
    from harness.files.workspace import Workspace
    from harness.process.capture import OutputFolder
    from harness.tools.bash import BashTool
    from harness.tools.command_runner import CommandRunner
    from harness.tools.command_walls import CommandWalls
    from harness.tools.edit_file import EditFileTool
    from harness.tools.read_file import ReadFileTool
    from harness.tools.write_file import WriteFileTool

    check_value("workspace", workspace, Workspace)
    check_arguments(builtin_tools, locals())
    if undo:
        images, changes, state = _undo_stores(workspace, environment)
        hide = (*hide, state)
    baselines = Baselines()
    outputs = None if workspace.outputs is None else OutputFolder(workspace.outputs)
    commands = CommandRunner(
        workspace,
        limits=limits,
        environment=environment,
        walls=CommandWalls(workspace, hide=hide, machine=machine),
        images=images,
        outputs=outputs,
        on_output=on_output,
        stops=stops,
        changes=changes,
        jobs=jobs,
    )
    files = workspace.for_files(commands.own_temporary)
    return (
        BashTool(workspace, commands, lend=lend, temporary=commands.own_temporary),
        ReadFileTool(files, limits=limits, baselines=baselines, readers=readers, commands=commands),
        WriteFileTool(files, baselines=baselines, images=images),
        EditFileTool(files, baselines=baselines, images=images),
        *_script_tools(scripts, commands),
    )


def _undo_stores(
    workspace: Workspace, environment: Mapping[str, str] | None
) -> tuple[BeforeImages, CommandChanges, str]:
    """Return the stores of `harness undo`, and the folder in which they are."""
    from harness.files.before_images import BeforeImages
    from harness.tools.command_changes import CommandChanges
    from harness.tools.command_runner import environment_or_own

    variables = environment_or_own(environment)
    state = os.path.realpath(state_folder(variables))
    changes = CommandChanges(workspace.root, os.path.join(state, TREES), variables)
    return BeforeImages(os.path.join(state, BEFORE_IMAGES)), changes, state


def _script_tools(scripts: Sequence[ScriptDeclaration], commands: CommandRunner) -> Sequence[Tool]:
    if not scripts:
        return ()
    from harness.tools.script_tool import ScriptTool

    return [ScriptTool(declared, commands) for declared in scripts]


def optional_tools(
    names: Collection[str],
    *,
    ask: Callable[[UserQuestion], UserAnswer | None] | None = None,
    helpers: Callable[[], Helpers | None] = lambda: None,
    jobs: Jobs | None = None,
) -> tuple[Tool, ...]:
    """Return the tools of tool_kinds.OPTIONAL_TOOLS in `names` that do not need the loop.

    `ask` asks the user a question, and returns `None` if no user is present. `helpers` returns the runner of helpers,
    or `None` if helpers are not available. `jobs` are the background commands of the session.
    """
    tools: list[Tool] = []
    if "delegate" in names:
        from harness.tools.delegate import DelegateTool

        tools.append(DelegateTool(helpers))
    if "ask_user" in names:
        from harness.tools.ask_user import AskUserTool

        tools.append(AskUserTool(ask))
    if "todo" in names:
        from harness.tools.todo import TodoTool

        tools.append(TodoTool())
    if jobs is not None and "job" in names:
        from harness.tools.job import JobTool

        tools.append(JobTool(jobs))
    return tuple(tools)


def named_in(policy: Policy) -> tuple[str, ...]:
    """Return the optional tools for which a policy has the decision auto or confirm: under [tools], or in a rule.

    A rule names tools by its `tool`. A rule with only a `host` means all tools that reach hosts.
    """
    decisions = {
        name: [default.decision.word for default in policy.defaults if default.tool == name] for name in OPTIONAL_NAMES
    }
    for rule in policy.rules:
        for name in rule.tools or (_of_hosts() if rule.goes_to else ()):
            if name in decisions and rule.decision.word in ("auto", "confirm"):
                decisions[name].append(rule.decision.word)
    return tuple(name for name, words in decisions.items() if {"auto", "confirm"}.intersection(words))


def _of_hosts() -> Sequence[str]:
    return [name for name in OPTIONAL_NAMES if tool_kind(name).goes_to_hosts]
