"""Separation of the harness's own folders from the workspace, so that no call can write logs or policies."""

from __future__ import annotations

import os
import stat
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence

from harness.errors import UsageError
from harness.files.workspace import MAX_LINKS, Workspace
from harness.paths import is_within, is_within_any
from harness.safe_files import MAY_USE, MAY_WRITE
from harness.session.state import State, current_folder, workspace_folder
from harness.system import O_PATH, set_mode, set_owner


def fix_modes(state: State, tell: Callable[[str], None]) -> None:
    """Correct the modes of own files and folders that others may write, or that their owner cannot use. Report each.

    Missing paths and those of another user are skipped: the code that uses them reports the problem.
    """
    for path, shut in _own_paths(state):
        try:
            problem = _fix_mode(path, shut, reads=is_within(path, state.config))
        except OSError:
            continue
        if problem:
            tell(f"{path} {problem}: set right")


def _own_paths(state: State) -> Iterator[tuple[str, int]]:
    """Yield the harness's own paths, each with the mode bits to clear. Folders precede their content."""
    yield state.config, stat.S_IWOTH  # the user works there too: clear only the bit that prevents a start
    for path in (state.config_file, state.models, state.user_policy, state.state, state.heads, state.trust):
        yield path, MAY_WRITE
    for path in (state.redaction_key, state.history):
        yield path, MAY_USE
    for folder in (state.before_images, state.trees, state.undos, state.outputs):
        yield folder, MAY_WRITE
    for folder in (state.sessions, state.grants, *state.of_plugins):
        yield folder, MAY_WRITE
    for folder in (state.sessions, state.grants, *state.of_plugins):
        for path in _in(folder):
            yield path, MAY_WRITE


def _in(folder: str) -> Iterator[str]:
    try:
        yield from (os.path.join(folder, name) for name in os.listdir(folder))
    except OSError:
        return


def _fix_mode(path: str, shut: int, *, reads: bool) -> str:
    """Correct the mode of one path. Return the problem that it had, or an empty string.

    With `reads`, the path need not be writable. Root takes ownership of another user's file if its folder belongs to
    root; otherwise another user's file is left alone. Raises OSError.
    """
    descriptor = os.open(path, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return ""
        user = os.geteuid()
        problem = ""
        if status.st_uid != user:
            if user != 0 or os.stat(os.path.dirname(path)).st_uid != 0:
                return ""
            set_owner(descriptor, 0)
            problem = f"belonged to user {status.st_uid}"
        mode = stat.S_IMODE(status.st_mode)
        opened = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
        needs = opened & ~stat.S_IWUSR if reads else opened
        new_mode = (mode if mode & needs == needs else mode | opened) & ~shut
        if new_mode != mode:
            set_mode(descriptor, new_mode)
            problem = f"had the mode {mode:04o}"
        return problem
    finally:
        os.close(descriptor)


def workspace_folders(arguments: Namespace) -> tuple[str, ...]:
    """Return the folders that a run works in, and the one it is a copy of, links followed. Raises UsageError."""
    added_folders = (*arguments.add_dir, *((arguments.copied_from,) if arguments.copied_from else ()))
    return workspace_folder(arguments.cwd), *(os.path.realpath(folder) for folder in added_folders)


def output_path(path_argument: str, folders: Sequence[str], *, shown_as: str = "") -> str:
    """Return the absolute path of `path_argument`, links followed; `shown_as` is its name in messages.

    Raises UsageError if the path crosses a link in one of `folders` (absolute, links followed). The repository or the
    model may have made such a link, and it may lead to any of the user's files.
    """
    waiting = os.path.join(current_folder(), path_argument).split("/")[::-1]
    real, links = "", 0
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = os.path.dirname(real).rstrip("/")
            continue
        at = f"{real}/{part}"
        try:
            target = os.readlink(at)
        except (OSError, ValueError):
            real = at  # not a link, or missing: opening it later reports that
            continue
        links += 1
        if links > MAX_LINKS:
            raise UsageError(f"{shown_as or path_argument}: there are too many links on the way")
        if is_within_any(at, folders):
            raise UsageError(
                f"{shown_as or path_argument}: {at} is a link in the workspace, which may lead anywhere; name another place"
            )
        if target.startswith("/"):
            real = ""
        waiting.extend(target.split("/")[::-1])
    return real or "/"


def refuse_own_folders(workspace: Workspace, state: State) -> None:
    """Raise UsageError if an added folder holds the harness's own files, or is inside them."""
    for folder in workspace.added:
        if any(
            is_within(guarded_folder, folder) or is_within(folder, guarded_folder) for guarded_folder in state.guarded
        ):
            raise UsageError(f"--add-dir {folder}: the harness keeps its logs or its configuration there")


def named_log(arguments: Namespace, workspace: Workspace, state: State) -> str | None:
    """Return the path given with `--log`, links followed, or `None` without the flag.

    Raises UsageError if a command could write it, that is, if it is in the workspace and not in the harness's own
    folders (see `keep_own_folders`). A folder elsewhere that a policy makes writable is not made so if it contains the
    log (see `walls_for`).
    """
    if arguments.log is None:
        return None
    path = output_path(arguments.log, workspace_folders(arguments), shown_as=f"--log {arguments.log}")
    if is_within(path, workspace.root) and not is_within_any(path, state.guarded):
        raise UsageError(
            f"--log {arguments.log}: the file is in the workspace, where a command of the run could write it: leave --log "
            f"out to keep the log below {state.sessions}, or name a file outside of {workspace.root}"
        )
    return path


def keep_own_folders(workspace: Workspace, state: State) -> None:
    """Make own folders inside of the workspace, so that the sandbox can keep commands from making or writing them.

    Raises UsageError if they cannot be made, or if bubblewrap, which protects them, does not work.
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
            os.makedirs(folder, mode=0o700, exist_ok=True)  # bubblewrap can protect only folders that exist
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be made: {error.strerror}") from None
