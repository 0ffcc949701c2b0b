"""Equipment of helpers: read-only tools in the workspace, or tools in a worktree whose changes become a patch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.errors import PolicyError, ToolError, UsageError, nearest
from harness.files.repository import git_top
from harness.files.workspace import Workspace
from harness.gate.tool import Tool
from harness.interrupt import Interrupt
from harness.paths import is_within
from harness.policy.policy import Policy
from harness.session.config.provider import about_model
from harness.session.delegated_sessions import AnotherModel, DelegatedSessions, Equipment
from harness.session.policies import held_to_reading
from harness.session.session_tools import helper_tools
from harness.session.work_folders.changes import take_changes
from harness.session.work_folders.work_folder import WorkFolder, removed
from harness.session.work_folders.worktree import add_worktree, remove_work_folder
from harness.tool_kinds import is_of_server
from harness.tools.delegation import DelegatedTask, HelperChanges, HelperPolicy

if TYPE_CHECKING:
    from harness.session.running_session import RunningSession
    from harness.session.session_place import SessionPlace

NOT_FOR_HELPERS = ("delegate", "ask_user", "todo", "job")
"""Tools of the main conversation that helpers do not get."""
MOST_PATCH_BYTES = 1_000_000
"""Maximum bytes of a patch that are shown to the model. The patch file is complete."""
_ROLE = (
    "\n\nYou are a helper: another conversation of the model gave you the one task that follows, and reads nothing but your "
    "last answer. Nobody else reads it, and you cannot ask back. Answer shortly and with places (file:line)."
)
_READS = " You only read and look; you change nothing."


def helpers_of(session: RunningSession, another_model: AnotherModel | None) -> DelegatedSessions:
    """Return the `DelegatedSessions` of a session. `another_model` is passed to it.

    Each helper gets new tools for files, commands and scripts, since tools keep track of the files that their
    conversation has read.
    """
    agent = session.agent

    @contextmanager
    def equip(task: DelegatedTask, policy: Policy, interrupt: Interrupt) -> Iterator[Equipment]:
        tool_names = [name for name in agent.registry.names if name not in NOT_FOR_HELPERS]
        if task.policy is HelperPolicy.SAME:  # servers work in the caller's workspace
            tool_names = [name for name in tool_names if not is_of_server(name)]
        names = _names(task, tool_names)

        def tools_in(workspace: Workspace, hide: Sequence[str] = ()) -> tuple[Tool, ...]:
            fresh = helper_tools(session.tools, session.log.path, workspace, interrupt, hide)
            fresh_tools = {tool.spec.name: tool for tool in fresh}
            return tuple(fresh_tools.get(name) or agent.registry[name] for name in names)

        system, model = f"{agent.system}{_ROLE}", about_model(session.settings)
        if task.policy is HelperPolicy.SAME:
            session_workspace = session.place.workspace
            with _worktree(session) as (folder, changes):
                workspace = Workspace(
                    folder,
                    session_workspace.home,
                    outputs=session_workspace.outputs,
                    skills=session_workspace.skills,
                    copy_of=session_workspace.root,
                )
                yield Equipment(
                    tools=tools_in(workspace, _hidden_in(policy, session_workspace.root)),
                    # INVARIANT: the helper's changes are in the patch only, not in the caller's workspace.
                    policy=policy.guarding(session_workspace.root),
                    system=f"{system}{_works_in(workspace.root, session_workspace.root)}",
                    log_fields={**model, "workspace": workspace.root, "copy_of": session_workspace.root},
                    changes=changes,
                )
            return
        try:
            policy = held_to_reading(policy)
        except PolicyError as error:
            raise ToolError(f"A helper cannot be had: {error}") from None
        yield Equipment(
            tools=tools_in(session.place.workspace), policy=policy, system=f"{system}{_READS}", log_fields=model
        )

    return DelegatedSessions(agent, equip, another_model)


def _hidden_in(policy: Policy, root: str) -> Sequence[str]:
    """Return the absolute paths in the workspace at `root` that the policy hides."""
    return [os.path.join(root, place) for place in policy.sandbox.hide if not place.startswith(("/", "~"))]


def _names(task: DelegatedTask, known_names: Sequence[str]) -> Sequence[str]:
    """Return the names of a helper's tools. Raises ToolError for one that the caller does not have."""
    for name in task.tools:
        if name not in known_names:
            raise ToolError(
                f"A helper cannot have {name!r}{nearest(name, known_names)}; it may have {', '.join(known_names)}."
            )
    return task.tools or known_names


def _works_in(folder: str, root: str) -> str:
    return (
        f" You work in {folder}, a copy of the last commit of {root}: name no file of the latter. What you change in the "
        "copy goes back as a patch. Commit nothing."
    )


@contextmanager
def _worktree(session: RunningSession) -> Iterator[tuple[str, Callable[[], HelperChanges]]]:
    """Make a worktree of the workspace's repository, and remove it at the end.

    Yields the folder to work in, and a function that returns the changes.

    Raises ToolError if it cannot be made.
    """
    root, environment = session.place.workspace.root, session.place.environment
    only_reads = "A helper that writes cannot be started here, one that only reads can"
    if not os.path.lexists(os.path.join(git_top(root), ".git")):
        raise ToolError(
            f"{only_reads}: the writing one needs a copy of a git repository, and the workspace is not in one."
        )
    around = os.path.realpath(tempfile.mkdtemp(prefix="harness-helper-"))
    attempt = os.path.join(around, "copy")  # in a folder of its own, since git forgets worktrees whose folders are gone
    try:
        os.mkdir(attempt)
        if is_within(attempt, root):
            raise ToolError(f"{only_reads}: the folder for temporary files is in the workspace.")
        try:
            folder = add_worktree(attempt, root, None, environment)
        except UsageError as error:
            raise ToolError(f"{only_reads}: {error}.") from None
        yield folder.workspace, lambda: _changes(session.place, folder, attempt)
    finally:
        problem = remove_work_folder(attempt, environment)
        problem = problem or removed(around)
        if problem:
            session.front.tell(f"the copy of a helper is left behind: {problem}")


def _changes(place: SessionPlace, folder: WorkFolder, attempt: str) -> HelperChanges:
    """Save the changes in a copy as a patch beside the outputs of commands, and return them."""
    out = os.path.join(place.workspace.outputs or place.state.new_outputs(), f"helper-{os.urandom(4).hex()}")
    try:
        os.makedirs(out, mode=0o700)
    except OSError as error:
        return HelperChanges(notes=(f"its changes are lost: {out} cannot be made: {error.strerror}",))
    changes = take_changes(folder, attempt, out, place.environment)
    notes = [*folder.notes, *(f"lost, since no patch holds it: {lost}" for lost in changes.lost)]
    if changes.ignored is not None:
        notes.append(f"new files that the repository ignores are in {os.path.join(out, changes.ignored.file)}")
    if changes.patch is None or not changes.patch.files:
        return HelperChanges(notes=("it changed nothing", *notes))
    path = os.path.join(out, changes.patch.file)
    with open(path, "rb") as file:
        text = file.read(MOST_PATCH_BYTES).decode("utf-8", "replace")
    return HelperChanges(patch=text, patch_file=path, notes=tuple(notes))
