"""The harness's own folders and the workspace: what a session must not begin with, so that no call reaches logs or policies."""

from __future__ import annotations

import os

from harness.cli.named_places import place_of, worked_in
from harness.cli.state import State
from harness.errors import UsageError
from harness.paths import is_within
from harness.workspace import Workspace

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


def refuse_own_folders(workspace: Workspace, state: State) -> None:
    """Raise UsageError where a folder was added that holds what the harness keeps, or lies in it."""
    for folder in workspace.added:
        if any(is_within(own, folder) or is_within(folder, own) for own in state.guarded):
            raise UsageError(f"--add-dir {folder}: the harness keeps its logs or its configuration there")


def named_log(arguments: Namespace, workspace: Workspace, state: State) -> str | None:
    """Return where the log of `--log` lies, links followed; None where none is named.

    Raises UsageError where a command could write it: in the workspace, but for the harness's own folders (see
    `keep_own_folders`). A place elsewhere that a policy opens is not opened where it holds the log (see `walls_for`).
    """
    if arguments.log is None:
        return None
    path = place_of(arguments.log, worked_in(arguments), told=f"--log {arguments.log}")
    if is_within(path, workspace.root) and not any(is_within(path, own) for own in state.guarded):
        raise UsageError(
            f"--log {arguments.log}: it lies in the workspace, where a command of the run could write it: leave --log out, "
            f"and it lies below {state.sessions}, or name a file outside of {workspace.root}"
        )
    return path


def keep_own_folders(workspace: Workspace, state: State) -> None:
    """See to it that no command can make the harness's own folders, or write them, where they lie in the workspace.

    Raises UsageError where nothing could keep a command that may write the workspace from them.
    """
    inside = [folder for folder in state.guarded if is_within(folder, workspace.root)]
    if not inside:
        return
    from harness.sandbox import bubblewrap

    if not bubblewrap.find():
        raise UsageError(
            f"the workspace holds the harness's own files ({', '.join(inside)}), and without a working bubblewrap a command "
            "that may write the workspace could change them. Work in a folder below it, set XDG_STATE_HOME and "
            "XDG_CONFIG_HOME elsewhere, or install bubblewrap"
        )
    try:
        for folder in inside:
            os.makedirs(folder, mode=0o700, exist_ok=True)  # what is not there cannot be hidden
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be made: {error.strerror}") from None
