"""The harness's own folders and the workspace: what a session must not begin with, so that no call reaches logs or policies."""

from __future__ import annotations

import os

from harness.cli.state import State
from harness.errors import UsageError
from harness.paths import is_within
from harness.workspace import Workspace


def refuse_own_folders(workspace: Workspace, state: State) -> None:
    """Raise UsageError where a folder was added that holds what the harness keeps, or lies in it."""
    for folder in workspace.added:
        if any(is_within(own, folder) or is_within(folder, own) for own in state.guarded):
            raise UsageError(f"--add-dir {folder}: the harness keeps its logs or its configuration there")


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
