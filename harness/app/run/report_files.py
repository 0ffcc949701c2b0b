"""The report files of unattended runs. They are checked before the run, and written atomically after it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence

from harness.app.run.reported import ReportedRun
from harness.errors import LogError, UsageError
from harness.files.folders import open_to_list
from harness.paths import is_within
from harness.plugin import ReportForm
from harness.record import Record
from harness.safe_files import NEW_FILE, name_beside, replace_file, sync_names
from harness.session.own_folders import output_path
from harness.session.shipped_plugins import report_form
from harness.shipped import REPORTS

_BESIDE = re.compile(r"\.(torn(\.[0-9]+)?|head(\.sig)?)\Z")
"""Suffixes of files next to a log: torn bytes, a signed head, its signature."""
_RECORD = re.compile(rb'"(prev|head)":\s?"[0-9a-f]{64}"')
_LOOKED_AT = 1 << 20
"""Maximum number of bytes of a file that are checked for records."""


def why_not(target: str, logs: Sequence[str] = ()) -> str:
    """Return the reason why `target` must not be written, or an empty string.

    `target` is absolute, with links followed. `logs` are paths of logs. Other logs are recognized by name or content.
    """
    if _is_beside(target, logs):
        return "it belongs to an action log, and is never written over"
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"it cannot be written: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if any(_is_same(target, log) for log in logs) or _is_record(target):
        return "it is or holds records of an action log, and is never written over"
    return ""


def _is_beside(target: str, logs: Sequence[str]) -> bool:
    """Return whether a path is that of a file next to a log: one of `logs`, or any `*.jsonl`."""
    match = _BESIDE.search(target)
    log = target[: match.start()] if match else ""
    return log.endswith(".jsonl") or log in map(os.path.realpath, logs)


def _is_same(target: str, log: str) -> bool:
    try:
        return os.path.samefile(target, log)
    except OSError:
        return False


def _is_record(path: str) -> bool:
    """Return whether a file has records of a log, or notes of heads, at any position.

    A `*.jsonl` that does not begin with an object counts as a damaged log. An older report may be overwritten, because
    its lines are no records.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError:
        return True  # the file exists, and its content is unknown
    if _RECORD.search(start):
        return True
    return bool(start) and path.endswith(".jsonl") and not start.startswith(b"{")


class _Target(Record):
    """The file for a report."""

    form: str
    flag_path: str
    """The value of the flag."""
    folder: int
    """File descriptor of the folder.

    INVARIANT: a run cannot redirect the report by changing folders on the path.
    """
    name: str


class Reports:
    """The reports of `--report FORM:FILE`."""

    def __init__(
        self,
        options: Sequence[str],
        *,
        with_answer: bool = False,
        keep_from: Sequence[str] = (),
        folders: Sequence[str] = (),
        plugin_forms: Sequence[ReportForm] = (),
    ) -> None:
        """Check every file, so that an unwritable one stops the run before it costs anything.

        `keep_from` are files and folders that must not be written: the log, the run's input, the harness's own state.
        Links in `folders` are not followed. `plugin_forms` are the forms of external plugins.

        Raises UsageError for an unknown form, a missing folder, a duplicate file, an unwritable file, or a file with
        log records.
        """
        self._with_answer = with_answer
        self._writers = {form.name: form.write for form in plugin_forms}
        self._targets: list[_Target] = []
        real_paths: set[str] = set()
        for option in options:
            form, path = _split(option, self._writers)
            real = output_path(path, folders, shown_as=f"--report {option}")
            if real in real_paths:
                raise UsageError(f"--report {option}: the file is named twice")
            real_paths.add(real)
            _check_harmless(option, real, keep_from)
            self._targets.append(_opened(form, option, real))

    def write(self, runs: Sequence[ReportedRun]) -> str:
        """Write every report, replacing earlier ones. Return the problems in one line, or an empty string."""
        return "; ".join(problem for target in self._targets if (problem := self._write(target, runs)))

    def _write(self, target: _Target, runs: Sequence[ReportedRun]) -> str:
        try:
            write = self._writers.get(target.form) or report_form(target.form).write
            _put(target, write(runs, with_answer=self._with_answer))
        except (OSError, LogError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return f"the report {target.flag_path} cannot be written: {reason}"
        except Exception as error:  # noqa: BLE001 - a bug in a report must not change the result of the run
            return f"the report {target.flag_path} cannot be made: {error!r}"
        return ""


def _split(option: str, plugin_forms: Iterable[str]) -> tuple[str, str]:
    form, colon, path = option.partition(":")
    forms = (*REPORTS, *plugin_forms)
    if form not in forms or not colon:
        raise UsageError(f"--report {option}: a report is FORM:FILE, and FORM one of {', '.join(forms)}")
    if not path:
        raise UsageError(f"--report {option}: the file is missing")
    return form, path


def _check_harmless(option: str, real: str, keep_from: Iterable[str]) -> None:
    """Raise UsageError if writing the file would destroy data or cannot work."""
    for protected_path in keep_from:
        if protected_path and is_within(real, os.path.realpath(protected_path)):
            raise UsageError(
                f"--report {option}: that is the action log, what the run is made of, or one of the harness's own files"
            )
    reason = why_not(real)
    if reason:
        raise UsageError(f"--report {option}: {reason}")


def _opened(form: str, option: str, real: str) -> _Target:
    """Return the target with its folder opened. Raises UsageError if the folder is not writable.

    A file is created there and removed, in order to detect a full or read-only disk.
    """
    folder, name = os.path.split(real)
    descriptor = -1
    try:
        descriptor = open_to_list(folder)
        part = name_beside(name)
        os.close(os.open(part, NEW_FILE, 0o600, dir_fd=descriptor))
        os.unlink(part, dir_fd=descriptor)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise UsageError(f"--report {option} cannot be written: {folder}: {error.strerror}") from None
    return _Target(form=form, flag_path=option, folder=descriptor, name=name)


def _put(target: _Target, pieces: Iterable[str]) -> None:
    """Write a file in UTF-8, with lone surrogates escaped. Raises OSError."""
    replace_file(target.name, (piece.encode("utf-8", "backslashreplace") for piece in pieces), target.folder)
    sync_names(target.folder)
