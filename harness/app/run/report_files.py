"""The report files of unattended runs: checked before the run, written whole or not at all after it."""

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
"""Endings that files beside a log add to its name: torn bytes, a signed head, its signature."""
_RECORD = re.compile(rb'"(prev|head)":\s?"[0-9a-f]{64}"')
_LOOKED_AT = 1 << 20
"""Bytes of a file that are looked at."""


def why_not(target: str, logs: Sequence[str] = ()) -> str:
    """Return the reason against writing a file at `target` (absolute, links followed), or an empty string.

    `logs` are the known logs. Any other one is recognized by its name or by its content.
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
    """Say whether a path is that of what is kept beside a log: one of these, or any `*.jsonl`."""
    match = _BESIDE.search(target)
    log = target[: match.start()] if match else ""
    return log.endswith(".jsonl") or log in map(os.path.realpath, logs)


def _is_same(target: str, log: str) -> bool:
    try:
        return os.path.samefile(target, log)
    except OSError:
        return False


def _is_record(path: str) -> bool:
    """Return whether a file holds records of a log, or notes of heads, whatever precedes them.

    A `*.jsonl` that does not begin with an object counts as a garbled log. An earlier view may be overwritten: none
    of its lines is a record.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError:
        return True  # it is there, and nobody can say what it is
    if _RECORD.search(start):
        return True
    return bool(start) and path.endswith(".jsonl") and not start.startswith(b"{")


class _Target(Record):
    """A file that a report goes to."""

    form: str
    flag_path: str
    """The path as the flag names it."""
    folder: int
    """A descriptor of its folder. INVARIANT: what a run does to the folders on the way does not move the report elsewhere."""
    name: str


class Reports:
    """The reports that `--report FORM:FILE` asks for."""

    def __init__(
        self,
        options: Sequence[str],
        *,
        with_answer: bool = False,
        keep_from: Sequence[str] = (),
        folders: Sequence[str] = (),
        plugin_forms: Sequence[ReportForm] = (),
    ) -> None:
        """Check every file, so that an unwritable one stops the run before anything is paid for.

        `keep_from` are files and folders that must not be written to: the log, the run's input, the harness's own
        state. No link in `folders` is followed. `plugin_forms` are forms of plugins that do not ship.

        Raises UsageError for an unknown form, a missing folder, a duplicate file, an unwritable one, or one that is
        or holds a record.
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
        """Write every report; return the problem, in a line, or an empty string. A repetition replaces the earlier
        ones.
        """
        return "; ".join(problem for target in self._targets if (problem := self._write(target, runs)))

    def _write(self, target: _Target, runs: Sequence[ReportedRun]) -> str:
        try:
            write = self._writers.get(target.form) or report_form(target.form).write
            _put(target, write(runs, with_answer=self._with_answer))
        except (OSError, LogError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return f"the report {target.flag_path} cannot be written: {reason}"
        except Exception as error:  # noqa: BLE001 - a bug in a report must not change what the run came to
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
    """Raise UsageError where writing there would destroy something, or cannot work."""
    for protected_path in keep_from:
        if protected_path and is_within(real, os.path.realpath(protected_path)):
            raise UsageError(
                f"--report {option}: that is the action log, what the run is made of, or one of the harness's own files"
            )
    reason = why_not(real)
    if reason:
        raise UsageError(f"--report {option}: {reason}")


def _opened(form: str, option: str, real: str) -> _Target:
    """Return the file with its folder opened; a file is made there and removed, so that a full or read-only disk shows now."""
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
    """Write a file in UTF-8, lone surrogates as escapes. Raises OSError."""
    replace_file(target.name, (piece.encode("utf-8", "backslashreplace") for piece in pieces), target.folder)
    sync_names(target.folder)
