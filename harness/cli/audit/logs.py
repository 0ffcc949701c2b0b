"""Which logs a question is about, and what must be said of them beforehand; reads logs and changes nothing."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.audit.calls import CALL_KINDS, LoggedCall, logged_calls
from harness.audit.reading import records
from harness.cli.exits import Exit
from harness.cli.state import State, here
from harness.errors import UsageError
from harness.log_check import verify
from harness.log_order import LogRecord
from harness.visible import visible_line

VERIFIED_BYTES = 32_000_000
"""Logs of so many bytes in all are verified before a question is answered from them; of more, that is said."""
BROKEN = 1
"""Exit code of a question whose answer rests on a log that does not verify."""


class ChosenLogs:
    """The logs that the flags name."""

    def __init__(self, paths: Sequence[str], session: str = "") -> None:
        """Take the paths; `session` is the name of the only one that is meant, or nothing."""
        self.paths = tuple(paths)
        self.session = session
        self.sessions = 0
        """How many sessions began in what `calls` has read so far."""
        self._code = Exit.DONE.value
        self._told: set[str] = set()
        """Logs of which it was said that they are broken or torn."""

    @property
    def code(self) -> int:
        """The exit code that goes with what was said of these logs so far: 0, or BROKEN."""
        return self._code

    def tell_standing(self) -> int:
        """Say on stderr what is wrong with these logs; return the exit code that goes with it. Raises LogError.

        Not compared with any head: that is for `audit verify`.
        """
        sizes = {path: _size(path) for path in self.paths}
        if sum(sizes.values()) > VERIFIED_BYTES:
            _complain(
                f"{sum(sizes.values()) // 1_000_000} MB of logs were not verified; `harness audit verify` does that"
            )
            return self._code
        for path in self.paths:
            found = verify(path)
            if found.broken_line is not None:
                self._told.add(path)
                _complain(
                    f"{path} is BROKEN at line {found.broken_line}, which {found.problem}: do not rely on what follows"
                )
                self._code = BROKEN
            elif found.torn:
                self._told.add(path)
                _complain(f"{path}: the last line is torn, and left out")
        return self._code

    def records(self, kinds: Iterable[str] | None = None) -> Iterator[tuple[str, LogRecord]]:
        """Yield every record of these kinds (None: all) with its log's path, log by log. Raises LogError."""
        wanted = None if kinds is None else frozenset(kinds)
        for path in self.paths:
            for record in self.records_of(path, wanted):
                yield path, record

    def records_of(self, path: str, kinds: frozenset[str] | None = None) -> Iterator[LogRecord]:
        """Yield the records of one of these logs; where a line is none, it is said that what follows is left out."""
        for record in records(path, kinds, stopped=lambda line: self._tell_stop(path, line)):
            if not self.session or record["session"] == self.session:
                yield record

    def calls(self) -> Iterator[LoggedCall]:
        """Yield every call, log by log, each when its end is known. Raises LogError."""
        for path in self.paths:
            yield from logged_calls(path, self.counted(self.records_of(path, CALL_KINDS)))

    def counted(self, found: Iterable[LogRecord]) -> Iterator[LogRecord]:
        """Yield these records, and count the sessions that begin in them."""
        for record in found:
            self.sessions += record["kind"] == "session_started"
            yield record

    def _tell_stop(self, path: str, line: int) -> None:
        if path not in self._told:
            self._told.add(path)
            self._code = BROKEN
            _complain(f"{path}: line {line} is no whole record; what follows in that log is left out")


def chosen_logs(arguments: Namespace, environment: Mapping[str, str]) -> ChosenLogs:
    """Return the logs that `LOG...`, `--session`, `--all` and `--cwd` name, each once; without LOG the oldest first.

    Raises UsageError if there is none, LogError if one cannot be read.
    """
    state = State.of(environment)
    everywhere = bool(arguments.all or arguments.session)
    if arguments.logs:
        paths = [path for named in arguments.logs for path in _logs_in(named)]
    else:
        paths = state.log_paths(None if everywhere else here(arguments.cwd))
    once: dict[str, str] = {}
    for path in paths:
        once.setdefault(os.path.realpath(path), path)
    paths = list(once.values())
    if not paths:
        where = f"under {state.sessions}" if everywhere else f"of {here(arguments.cwd)}; --all takes every folder's"
        raise UsageError(f"there is no action log {where}")
    return _of_session(paths, arguments.session) if arguments.session else ChosenLogs(paths)


def _of_session(paths: Iterable[str], named: str) -> ChosenLogs:
    """Return the only session whose name begins with `named`. Raises UsageError if there is none, or more than one."""
    found = [
        (path, str(record["session"]))
        for path in paths
        for record in records(path, ("session_started",))
        if str(record["session"]).startswith(named)
    ]
    if len(found) != 1:
        what = f"{len(found)} sessions' names begin" if found else "no session's name begins"
        raise UsageError(f"--session: {what} with {visible_line(named)!r}")
    ((path, session),) = found
    return ChosenLogs([path], session)


def _logs_in(named: str) -> list[str]:
    """Return a log, or the logs in a folder and below. Raises UsageError for what is neither."""
    if not os.path.isdir(named):
        if not os.path.exists(named):
            raise UsageError(f"there is no file {named}")
        return [named]
    found = [
        os.path.join(folder, name) for folder, _, files in os.walk(named) for name in files if name.endswith(".jsonl")
    ]
    if not found:
        raise UsageError(f"there is no action log (*.jsonl) in the folder {named}")
    return sorted(found, key=lambda path: (os.path.basename(path), path))


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0  # whoever reads it says so


def _complain(text: str) -> None:
    sys.stderr.write(f"harness: {visible_line(text, 5_000)}\n")
