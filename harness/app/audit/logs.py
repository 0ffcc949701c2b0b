"""The logs that a question is about, and the warnings that are printed before the answer."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

from harness.app.sessions import logged_sessions, session_named
from harness.audit.calls import CALL_KINDS, LoggedCall, logged_calls
from harness.audit.findings import Findings, Soundness, judge_log
from harness.errors import UsageError
from harness.log.heads_file import HeadsFile, KnownHead, names_of
from harness.log.order import LogRecord
from harness.log.reader import records
from harness.paths import is_within, is_within_any
from harness.session.exits import Exit
from harness.session.state import State, logs_in, workspace_folder
from harness.terminal.console import Look, complain
from harness.terminal.long_work import counted_off
from harness.text.amounts import count_of
from harness.text.visible import visible_line

VERIFIED_BYTES = 32_000_000
"""Maximum total size in bytes of logs that are verified before an answer. Larger logs get a note instead."""
BROKEN = Soundness.BROKEN.value
"""Exit code if an answer is based on a broken log."""
_WORST_FIRST = (Soundness.BROKEN, Soundness.UNREADABLE, Soundness.OPEN, Soundness.NO_HEAD)


class ChosenLogs:
    """The logs that the flags select."""

    def __init__(
        self, paths: Sequence[str], session: str = "", heads: HeadsFile | None = None, named_paths: Sequence[str] = ()
    ) -> None:
        """Create it for these paths. `session` is the name of a single session, or empty; `heads` is the heads file.

        `named_paths` are the files and folders in which `paths` were found. Logs in the heads file that are missing
        from them are reported.
        """
        self.paths = tuple(paths)
        self.session = session
        self.sessions = 0
        """Number of sessions that began in the records read so far."""
        self.findings: tuple[Findings, ...] = ()
        """Verification results of the logs. Empty before the verification."""
        self.missing_logs: tuple[KnownHead, ...] = ()
        """Noted heads of logs that are missing from the named paths."""
        self._heads = heads or HeadsFile("")
        self._paths = tuple(named_paths)
        self._code = Exit.DONE.value
        self._reported_logs: set[str] = set()
        """Paths of logs that were reported as broken or torn."""

    @property
    def code(self) -> int:
        """The exit code, according to the problems reported so far: 0, or BROKEN."""
        return self._code

    def tell_standing(self) -> int:
        """Report problems of these logs on stderr, and return the exit code. Raises LogError.

        The logs are judged as by `audit verify`, unless they are too large. A missing head to compare with and
        unfinished sessions are not reported here; `audit verify` does that.
        """
        size = sum(size_of(path) for path in self.paths)
        if size > VERIFIED_BYTES:
            complain(f"{size // 1_000_000} MB of logs were not verified; `harness audit verify` does that")
            self._tell_gone()
            return self._code
        return self.verify_all()

    def verify_all(self, look: Look | None = None) -> int:
        """Verify these logs regardless of their size, and report as `tell_standing` does. Raises LogError.

        `look` displays the number of verified logs during the work.
        """
        with closing(counted_off(self.paths, len(self.paths), "logs verified", look or Look(), size_of)) as paths:
            self.findings = tuple(judge_log(path, self._heads) for path in paths)
        for findings in self.findings:
            self._tell(findings)
        self._tell_gone()
        return self._code

    def _tell_gone(self) -> None:
        self.missing_logs = tuple(missing_logs(self._paths, self._heads, moved_to(self.findings)))
        for noted_head in self.missing_logs:
            self._code = BROKEN
            complain(f"{noted_head.file} is BROKEN: it is gone; {noted_head.words}")

    def _tell(self, findings: Findings) -> None:
        path = findings.path
        if findings.soundness is Soundness.BROKEN:
            self._reported_logs.add(path)
            self._code = BROKEN
            complain(f"{path} is {findings.reason}: do not rely on what follows")
            return
        if findings.unfit:
            complain(f"{path}: {findings.lines[0]}")
        if unjudged := findings.verification.unjudged:
            complain(f"{path}: {count_of(len(unjudged), 'call')} ran that harness did not allow (!! in `audit show`)")
        if findings.verification.torn:
            self._reported_logs.add(path)
            complain(f"{path}: the last line is torn, and left out")

    def records(self, kinds: Iterable[str] | None = None) -> Iterator[tuple[str, LogRecord]]:
        """Yield the records of these kinds (`None`: all), each with the path of its log, log by log.

        Raises LogError.
        """
        wanted_kinds = None if kinds is None else frozenset(kinds)
        for path in self.paths:
            for record in self.records_of(path, wanted_kinds):
                yield path, record

    def records_of(self, path: str, kinds: frozenset[str] | None = None) -> Iterator[LogRecord]:
        """Yield the records of one of these logs. Stops with a warning at an invalid line."""
        for record in records(path, kinds, stopped=lambda line: self._tell_stop(path, line)):
            if not self.session or record["session"] == self.session:
                yield record

    def calls(self) -> Iterator[LoggedCall]:
        """Yield every call, log by log. A call is yielded once its end was read. Raises LogError."""
        for path in self.paths:
            yield from logged_calls(path, self.count_sessions(self.records_of(path, CALL_KINDS)))

    def count_sessions(self, log_records: Iterable[LogRecord]) -> Iterator[LogRecord]:
        """Yield these records, and count the sessions that begin in them."""
        for record in log_records:
            self.sessions += record["kind"] == "session_started"
            yield record

    def _tell_stop(self, path: str, line: int) -> None:
        if path not in self._reported_logs:
            self._reported_logs.add(path)
            self._code = BROKEN
            complain(f"{path}: line {line} is no whole record; what follows in that log is left out")


def chosen_logs(arguments: Namespace, environment: Mapping[str, str]) -> ChosenLogs:
    """Return the logs that LOG, `--session`, `--all` and `--cwd` select, each once.

    Without LOG, the oldest comes first. Raises UsageError if there is none, LogError if one cannot be read.
    """
    state = State.of(environment)
    heads = HeadsFile(state.heads)
    everywhere = bool(arguments.all or arguments.session)
    folder = state.sessions if everywhere else state.log_folder(workspace_folder(arguments.cwd))
    names = list(arguments.logs) or [folder]
    paths = [path for name in names for path in _logs_named(name, heads)] if arguments.logs else logs_in(folder)
    once: dict[str, str] = {}
    for path in paths:
        once.setdefault(os.path.realpath(path), path)
    paths = list(once.values())
    if not paths and next(missing_logs(names, heads, ()), None) is None:
        place = (
            f"under {state.sessions}"
            if everywhere
            else f"of {workspace_folder(arguments.cwd)}; --all takes the logs of every folder"
        )
        raise UsageError(f"no action log {place}")
    if arguments.session:
        session = session_named(logged_sessions(paths, undoings=True), arguments.session, "--session")
        return ChosenLogs([session.path], session.session, heads)
    return ChosenLogs(paths, "", heads, names)


def named_logs(arguments: Namespace, state: State) -> list[str]:
    """Return the named logs and folders. Without names, return the latest log of this workspace.

    Raises UsageError if this workspace has no log.
    """
    if arguments.files:
        return [*arguments.files]
    workspace = workspace_folder(None)
    paths = state.log_paths(workspace)
    if not paths:
        all_too = ", or take --all" if "all" in arguments else ""
        raise UsageError(f"no action log of {visible_line(workspace, 1_000)}; name one as FILE{all_too}")
    return paths[-1:]


def worst(came_to: Iterable[Soundness]) -> int:
    """Return the exit code for several logs, which is that of the worst."""
    verdicts = set(came_to)
    return next((verdict.value for verdict in _WORST_FIRST if verdict in verdicts), Exit.DONE)


def latest_log(state: State) -> ChosenLogs:
    """Return the newest log of this workspace.

    If there is none, return the newest log of all workspaces and report that. Raises UsageError if there is none at
    all.
    """
    workspace = workspace_folder(None)
    path = state.latest_log(workspace)
    if not is_within(path, state.log_folder(workspace)):
        complain(f"no action log of {workspace}; this is the latest of all: {path}")
    return ChosenLogs([path], "", HeadsFile(state.heads))


def moved_to(all_findings: Iterable[Findings]) -> set[str]:
    """Return the noted paths of logs that have been moved and were found at their new path."""
    places = (findings.evidence.noted for findings in all_findings)
    return {place.known_head.file for place in places if place is not None and place.elsewhere}


def missing_logs(named_paths: Sequence[str], heads: HeadsFile, moved: Collection[str]) -> Iterator[KnownHead]:
    """Yield the noted heads of logs that are missing from a named folder, or from their own named path.

    `moved` are noted paths of logs that were found elsewhere. Raises UsageError for a named log that was removed on
    purpose, according to its tombstone.
    """
    folders = [name for path in named_paths if not os.path.isfile(path) for name in names_of(path)]
    if not folders:
        return
    for head in (*heads.every(), *heads.lost()):
        is_there = os.path.lexists(head.file) and not head.lost
        if is_there or not is_within_any(head.file, folders):
            continue
        if not head.removed and head.file not in moved:
            yield head
        elif head.removed and head.file in folders:
            raise UsageError(
                f"{head.file} was removed on {head.time}, with {head.records} records and the head {head.head}: "
                f"{head.removed}"
            )


def _logs_named(path: str, heads: HeadsFile) -> list[str]:
    """Return a log, or the logs in a folder and below it. Empty if the log is noted but missing.

    Raises UsageError for a folder without logs, and for a file that does not exist and was never noted.
    """
    if os.path.isdir(path):
        logs = logs_in(path)
        if not logs and next(missing_logs([path], heads, ()), None) is None:
            raise UsageError(f"no action log (*.jsonl) in the folder {path}")
        return logs
    if os.path.exists(path):
        return [path]
    if next(missing_logs([path], heads, ()), None) is None:
        raise UsageError(f"no such file: {path}")
    return []


def size_of(path: str) -> int:
    """Return the size of a log in bytes; 0 if it is unknown."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # the code that reads the log reports the error
