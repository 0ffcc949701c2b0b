"""Carry out an undo plan (`apply_undo`), or finish a killed one (`resume_undo`).

INVARIANT: a path changes only if it is in the state that the plan names. A file is exchanged or renamed aside first,
then examined, and put back if it is not in that state. Folders are reached by descriptors, never through a link.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.files.atomic import NotKeptError, take_over
from harness.files.file_calls import exchange, rename_to_free, sync_file_system
from harness.files.folders import open_folder
from harness.files.path_states import UNREADABLE, open_below, state_below, state_in
from harness.files.segments import SegmentStore
from harness.files.tree_changes import ABSENT, WORKSPACE, PathChange, PathKind, PathState, TreeChanges
from harness.files.tree_undo import UndoPlan, UndoStep, Untouched
from harness.files.undo_journal import UndoJournal
from harness.record import Record, replace
from harness.safe_files import NEW_FILE, sync_names, write_whole
from harness.system import O_PATH, set_mode

_FOLDER = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_SYNCED_FILES = 100
"""Maximum number of steps whose files are synced one by one. Of more, the file system is synced once, at the end."""
_CHANGED = "changed just now"
_NO_CONTENT = "its earlier content is no longer kept"
_SET_ID = 0o7000


class UndoResult(Record):
    """Result of an undo."""

    changes: TreeChanges
    """The changes that the undo made, so that it can be undone like a call."""
    untouched: tuple[Untouched, ...]
    """Paths of the plan that could not be taken back."""


def apply_undo(
    root: str,
    plan: UndoPlan,
    store: SegmentStore,
    journal_path: str,
    *,
    content_of: Callable[[str], bytes | None] | None = None,
    pause: Callable[[str], None] = lambda action: None,  # noqa: ARG005
) -> UndoResult:
    """Carry out the steps of a plan in the absolute, resolved workspace `root`.

    The present contents are kept in `store` first. `content_of` (default: `store.get`) returns a content by its SHA-256.
    `journal_path` is the absolute path of a new journal. `pause` is called between any two actions, for tests. Raises
    OSError if nothing could be begun; the journal then does not exist.
    """
    steps, untouched = _with_kept_contents(root, plan.steps, store)
    if not steps:
        return UndoResult(changes=TreeChanges(), untouched=tuple(untouched))
    journal = UndoJournal.create(journal_path, root, steps)
    result = _Run(journal, content_of or store.get, pause).finish()
    return replace(result, untouched=(*untouched, *result.untouched))


def resume_undo(
    journal_path: str,
    store: SegmentStore,
    *,
    content_of: Callable[[str], bytes | None] | None = None,
    pause: Callable[[str], None] = lambda action: None,  # noqa: ARG005
) -> UndoResult:
    """Finish the undo of a journal that a killed process left. The arguments are those of `apply_undo`.

    Raises BlockingIOError if the undo still runs, OSError, and ValueError for an invalid journal.
    """
    return _Run(UndoJournal.open(journal_path), content_of or store.get, pause).finish()


def _with_kept_contents(
    root: str, steps: tuple[UndoStep, ...], store: SegmentStore
) -> tuple[list[UndoStep], list[Untouched]]:
    """Keep the present contents of all steps. Return the steps whose content is kept, and the others. Raises OSError."""
    kept_steps: list[UndoStep] = []
    untouched: list[Untouched] = []
    descriptor = open_folder(root)
    try:
        for step in steps:
            problem = "" if step.is_mode_alone else _keep_present(descriptor, step, store)
            if problem:
                untouched.append(Untouched(path=step.path, reason=problem, call=step.call))
            else:
                kept_steps.append(step)
    finally:
        os.close(descriptor)
    store.commit()
    return kept_steps, untouched


def _keep_present(root: int, step: UndoStep, store: SegmentStore) -> str:
    """Keep the present content of a step. Return the reason for a failure, or an empty string. Raises OSError."""
    digest = step.present.sha256
    if digest is None or store.has(digest):
        return ""
    try:
        folder = open_below(root, step.path.rpartition("/")[0])
        try:
            state, data = state_in(folder, step.path.rpartition("/")[2])
        finally:
            os.close(folder)
    except OSError as error:
        return error.strerror or str(error)
    if data is None or state.sha256 != digest:
        return _CHANGED
    return store.keep(data)[1]


class _Refused(Exception):
    """A step is not carried out. The text is the reason."""


class _Run:
    """One run of the steps of a journal."""

    def __init__(
        self, journal: UndoJournal, content_of: Callable[[str], bytes | None], pause: Callable[[str], None]
    ) -> None:
        self._journal = journal
        self._content_of = content_of
        self._pause = pause
        self._root = -1
        self._syncs_at_end = len(journal.steps) > _MAX_SYNCED_FILES
        self._reasons: dict[int, str] = {}
        """Reason for each step that was not carried out, by number."""

    def finish(self) -> UndoResult:
        """Carry out all steps that are not yet done, and remove the journal. Raises OSError."""
        began = time.time_ns()
        try:
            self._root = open_folder(self._journal.root)
            try:
                self._take_all()
                result = self._result(began)
            finally:
                os.close(self._root)
            self._pause("finish")
            self._journal.finish()
        finally:
            self._journal.close()
        return result

    def _take_all(self) -> None:
        steps = list(enumerate(self._journal.steps))
        for number, step in reversed(steps):
            if step.present.kind is not PathKind.NONE and step.present.kind is not step.goal.kind:
                self._try(self._remove, number, step)
        for number, step in steps:
            if step.goal.kind is PathKind.FOLDER and step.present.kind is not PathKind.FOLDER:
                self._try(self._make_folder, number, step)
        for number, step in steps:
            if step.is_mode_alone and step.goal.kind is PathKind.FILE and number not in self._journal.ready:
                self._try(self._set_file_mode, number, step)
            elif step.goal.kind in (PathKind.FILE, PathKind.LINK):
                self._try(self._put, number, step)
        for number, step in reversed(steps):
            if step.goal.kind is PathKind.FOLDER:
                self._try(self._set_folder_mode, number, step)
        self._close_opened()

    def _try(self, action: Callable[[int, UndoStep, int, str], None], number: int, step: UndoStep) -> None:
        """Carry out one action on a step, in its open folder. A failure is noted."""
        if number in self._reasons:
            return
        above, _, name = step.path.rpartition("/")
        try:
            with self._folder(above) as folder:
                action(number, step, folder, name)
        except (FileNotFoundError, NotADirectoryError):
            if step.goal.kind is not PathKind.NONE:
                self._reasons[number] = "its folder no longer exists"
        except _Refused as refused:
            self._reasons[number] = str(refused)
        except NotKeptError as error:
            self._reasons[number] = f"its owner or its permissions cannot be given to a new file ({error})"
        except OSError as error:
            self._reasons[number] = error.strerror or str(error)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder below the root for changes. Folders that are closed for this user are opened if they are theirs."""
        descriptor, place = os.open(".", _FOLDER, dir_fd=self._root), ""
        try:
            for part in filter(None, path.split("/")):
                self._open_up(descriptor, place)
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor, place = inner, f"{place}/{part}".lstrip("/")
            self._open_up(descriptor, place)
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_up(self, descriptor: int, path: str) -> None:
        status = os.fstat(descriptor)
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o700 != 0o700 and status.st_uid == os.geteuid():
            self._journal.note_opened(path or WORKSPACE, mode)
            self._pause(f"open {path}")
            set_mode(descriptor, mode | 0o700)

    def _state(self, folder: int, name: str, path: str) -> PathState:
        """Return the present state of a path, with the permission bits from before it was opened. Raises OSError."""
        state = state_in(folder, name)[0]
        mode = self._journal.opened.get(path)
        is_opened = mode is not None and state.kind is PathKind.FOLDER and state.mode == mode | 0o700
        return replace(state, mode=mode) if is_opened else state

    # Remove

    def _remove(self, number: int, step: UndoStep, folder: int, name: str) -> None:
        if step.present.kind is PathKind.FOLDER:
            self._remove_folder(step, folder, name)
            return
        aside = self._temporary(number, "old")
        if state_in(folder, aside)[0].kind is not PathKind.NONE:
            self._settle_aside(step, folder, name, aside)
        state = self._state(folder, name, step.path)
        if state.kind is PathKind.NONE or _is_made(state, step.goal) or number in self._journal.made_folders:
            return
        if not state.is_same(step.present):
            raise _Refused(_CHANGED)
        self._pause(f"rename aside {step.path}")
        rename_to_free(folder, name, aside)
        self._pause(f"look at {step.path}")
        self._settle_aside(step, folder, name, aside)

    def _settle_aside(self, step: UndoStep, folder: int, name: str, aside: str) -> None:
        """Remove a file that was renamed aside, or put it back if it is not as the plan expects."""
        if not state_in(folder, aside)[0].is_same(step.present):
            try:
                rename_to_free(folder, aside, name)
            except FileExistsError:
                raise _Refused(f"{_CHANGED}; the earlier one is now {aside}") from None
            raise _Refused(_CHANGED)
        os.unlink(aside, dir_fd=folder)
        self._pause(f"removed {step.path}")

    def _remove_folder(self, step: UndoStep, folder: int, name: str) -> None:
        if self._state(folder, name, step.path).kind is not PathKind.FOLDER:
            return
        self._pause(f"remove folder {step.path}")
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise _Refused("holds other files") from None
        self._pause(f"removed folder {step.path}")

    # Make

    def _make_folder(self, number: int, step: UndoStep, folder: int, name: str) -> None:
        self._journal.note_made(number)
        self._pause(f"make folder {step.path}")
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
        except FileExistsError:
            if state_in(folder, name)[0].kind is not PathKind.FOLDER:
                raise _Refused(_CHANGED) from None
        self._pause(f"made folder {step.path}")

    def _put(self, number: int, step: UndoStep, folder: int, name: str) -> None:
        """Give a path its earlier content: a file or a link."""
        expected = step.present if step.present.kind is step.goal.kind else ABSENT
        temporary = self._temporary(number, "new")
        leftover = state_in(folder, temporary)[0]
        if leftover.kind is not PathKind.NONE and number not in self._journal.ready:
            os.unlink(temporary, dir_fd=folder)  # cut short
            leftover = ABSENT
        if leftover.kind is not PathKind.NONE and not _is_made(leftover, step.goal):
            self._settle_exchanged(step, folder, name, temporary, expected)
        state = self._state(folder, name, step.path)
        if _is_made(state, step.goal) or not state.is_same(expected):
            if _is_made(leftover, step.goal):
                os.unlink(temporary, dir_fd=folder)
            if not _is_made(state, step.goal):
                raise _Refused(_CHANGED)
            return
        if leftover.kind is PathKind.NONE:
            self._write(step, folder, name, temporary)
            self._journal.note_ready(number)
        self._pause(f"put {step.path}")
        self._give_name(step, folder, name, temporary, expected)
        self._pause(f"made {step.path}")

    def _write(self, step: UndoStep, folder: int, name: str, temporary: str) -> None:
        """Write the earlier content to a temporary file."""
        if step.goal.kind is PathKind.LINK:
            self._pause(f"link {step.path}")
            os.symlink(step.goal.target or "", temporary, dir_fd=folder)
            return
        content = self._content_of(step.goal.sha256 or "")
        if content is None and step.is_mode_alone:
            state, content = state_in(folder, name)
            content = content if state.has_content_of(step.goal) else None
        if content is None:
            raise _Refused(_NO_CONTENT)
        self._pause(f"write {step.path}")
        descriptor = os.open(temporary, NEW_FILE, 0o600, dir_fd=folder)
        try:
            self._pause(f"begin {step.path}")
            write_whole(descriptor, content[: len(content) // 2])
            self._pause(f"half {step.path}")
            write_whole(descriptor, content[len(content) // 2 :])
            if step.present.kind is PathKind.FILE:
                take_over(folder, name, descriptor, os.stat(name, dir_fd=folder, follow_symlinks=False))
            os.fchmod(descriptor, step.goal.mode & ~_SET_ID)
            if not self._syncs_at_end:
                os.fsync(descriptor)
        except BaseException as error:
            if isinstance(error, Exception):
                os.unlink(temporary, dir_fd=folder)
            raise
        finally:
            os.close(descriptor)

    def _give_name(self, step: UndoStep, folder: int, name: str, temporary: str, expected: PathState) -> None:
        """Let the complete temporary file take the name."""
        if expected.kind is PathKind.NONE:
            try:
                rename_to_free(folder, temporary, name)
            except FileExistsError:
                os.unlink(temporary, dir_fd=folder)
                raise _Refused(_CHANGED) from None
            return
        if exchange(folder, name, temporary):
            self._pause(f"exchanged {step.path}")
            self._settle_exchanged(step, folder, name, temporary, expected)
            return
        if not self._state(folder, name, step.path).is_same(expected):
            os.unlink(temporary, dir_fd=folder)
            raise _Refused(_CHANGED)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _settle_exchanged(self, step: UndoStep, folder: int, name: str, temporary: str, expected: PathState) -> None:
        """Remove a file that was exchanged, or exchange it back if it is not as the plan expects."""
        if state_in(folder, temporary)[0].is_same(expected):
            os.unlink(temporary, dir_fd=folder)
            return
        if not _is_made(state_in(folder, name)[0], step.goal) or not exchange(folder, name, temporary):
            raise _Refused(f"{_CHANGED}; the earlier one is now {temporary}")
        self._pause(f"exchanged back {step.path}")
        if _is_made(state_in(folder, temporary)[0], step.goal):
            os.unlink(temporary, dir_fd=folder)
        raise _Refused(_CHANGED)

    def _temporary(self, number: int, ending: str) -> str:
        return f".harness-undo-{self._journal.mark}-{number}.{ending}"

    # Permission bits

    def _set_file_mode(self, number: int, step: UndoStep, folder: int, name: str) -> None:
        """Set the permission bits of a file with an unchanged content. A file with several names is replaced instead."""
        opened_mode = self._journal.opened.get(step.path)
        descriptor = os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            if opened_mode is not None and stat.S_IMODE(os.fstat(descriptor).st_mode) == opened_mode | 0o400:
                set_mode(descriptor, opened_mode)  # it was opened before a kill
            state = state_in(folder, name)[0]
            if _is_made(state, step.goal):
                return
            is_closed = state.unkept == step.present.unkept == UNREADABLE and state.mode == step.present.mode
            if os.fstat(descriptor).st_nlink > 1 and not is_closed:
                self._put(number, step, folder, name)
                return
            if is_closed:
                self._journal.note_opened(step.path, state.mode)
                self._pause(f"open {step.path}")
                set_mode(descriptor, state.mode | 0o400)
                if not state_in(folder, name)[0].has_content_of(step.goal):
                    set_mode(descriptor, state.mode)
                    raise _Refused(_CHANGED)
            elif not state.is_same(step.present):
                raise _Refused(_CHANGED)
            self._pause(f"set mode {step.path}")
            set_mode(descriptor, step.goal.mode & ~_SET_ID)
        finally:
            os.close(descriptor)

    def _set_folder_mode(self, number: int, step: UndoStep, folder: int, name: str) -> None:
        """Set the permission bits of a folder that was made, or whose permission bits changed."""
        state = self._state(folder, name, step.path)
        if state.kind is not PathKind.FOLDER:
            raise _Refused(_CHANGED)
        is_ours = (
            number in self._journal.made_folders and state.mode & ~stat.S_ISGID == 0o700
        )  # mkdir(2): bit of the folder
        if not is_ours and not _is_made(state, step.goal) and not state.is_same(step.present):
            raise _Refused(_CHANGED)
        self._pause(f"set mode {step.path}")
        self._set_mode(folder, name, step.goal.mode & ~stat.S_ISUID)
        self._journal.opened.pop(step.path, None)

    def _set_mode(self, folder: int, name: str, mode: int, *, opened_from: int | None = None) -> None:
        """Set the permission bits of a folder; with `opened_from`, only if it is still as it was opened from these."""
        descriptor = os.open(name, _FOLDER, dir_fd=folder)
        try:
            if opened_from is None or stat.S_IMODE(os.fstat(descriptor).st_mode) == opened_from | 0o700:
                set_mode(descriptor, mode)
        finally:
            os.close(descriptor)

    def _close_opened(self) -> None:
        """Give the folders that were opened their permission bits back, deepest first."""
        for path in sorted(self._journal.opened, reverse=True):
            mode = self._journal.opened[path]
            above, _, name = path.rpartition("/")
            try:
                folder = open_below(self._root, above)
                try:
                    self._pause(f"close {path}")
                    self._set_mode(folder, name, mode, opened_from=mode)
                finally:
                    os.close(folder)
            except OSError:
                pass  # removed, or not a folder

    # Result

    def _result(self, began: int) -> UndoResult:
        changes, untouched = [], []
        folders = {""}
        for number, step in enumerate(self._journal.steps):
            try:
                state = state_below(self._root, step.path)
            except OSError as error:
                state, self._reasons[number] = ABSENT, error.strerror or str(error)
            if number not in self._reasons and _is_made(state, step.goal):
                is_closed = step.present.unkept == UNREADABLE  # its content was compared when it was opened
                before = replace(state, mode=step.present.mode) if is_closed else step.present
                changes.append(PathChange(path=step.path, before=before, after=state))
                folders.add(step.path.rpartition("/")[0])
            else:
                reason = self._reasons.get(number, _CHANGED)
                untouched.append(Untouched(path=step.path, reason=reason, call=step.call))
        if self._syncs_at_end:
            readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root)
            try:
                sync_file_system(readable)
            finally:
                os.close(readable)
            folders.clear()
        for path in folders:
            sync_names(os.path.join(self._journal.root, path))
        return UndoResult(
            changes=TreeChanges(changes=tuple(changes), began_ns=began, ended_ns=time.time_ns()),
            untouched=tuple(untouched),
        )


def _is_made(state: PathState, goal: PathState) -> bool:
    """Return whether a path has its earlier state. Set-id and sticky bits of files are never restored."""
    if not state.has_content_of(goal):
        return False
    dropped = goal.mode & (stat.S_ISUID if state.kind is PathKind.FOLDER else _SET_ID)
    return state.mode in (goal.mode, goal.mode & ~dropped)
