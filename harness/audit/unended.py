"""What has no end: calls that were begun, and sessions that never said that they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.actions import JsonValue
from harness.audit.calls import Fate, Joiner, LoggedCall, about_call, about_decision, call_number, task_of, text
from harness.log.order import LogRecord
from harness.record import Record


class OpenSession(Record):
    """A session that never said that it ended."""

    log: str
    started: LogRecord
    not_begun: tuple[LoggedCall, ...]
    """Its calls that have no end and were not begun: they did not run."""

    def fields(self, *, in_use: bool, torn: bool) -> dict[str, JsonValue]:
        """Return what is written of it as JSON."""
        return {
            "row": "open_session",
            "log": self.log,
            "session": text(self.started, "session"),
            "time": text(self.started, "time"),
            "mode": text(self.started, "mode") or None,
            "model": text(self.started, "model") or None,
            "workspace": text(self.started, "workspace") or None,
            "user": text(self.started, "user") or None,
            "host": text(self.started, "host") or None,
            "calls_not_begun": [call_number(call) for call in self.not_begun],
            "in_use": in_use,
            "torn": torn,
            "task": task_of(self.log) or None,
        }


class UnknownCall(Record):
    """A call that was begun and has no end: it may have run, wholly or in part."""

    call: LoggedCall

    @property
    def path(self) -> str:
        """The file that it was to change; empty where it is not known."""
        return text(self._change, "path")

    @property
    def before_sha256(self) -> str | None:
        """What the file was; None where there was none, or where it is not known."""
        return text(self._change, "before_sha256") or None

    @property
    def after_sha256(self) -> str | None:
        """What the file was to become; None where it is not known."""
        return text(self._change, "after_sha256") or None

    @property
    def could_write(self) -> list[str] | None:
        """The paths that it was let write, as far as the log names them; None where it is not known which."""
        effects = self.call.intent.get("effects")
        effects = effects if isinstance(effects, dict) else {}
        write, granted = effects.get("write"), effects.get("granted")
        if not isinstance(write, list):
            return None
        return [path for path in (*write, *(granted if isinstance(granted, list) else ())) if isinstance(path, str)]

    @property
    def _change(self) -> LogRecord:
        change = self.call.intent.get("change")
        return change if isinstance(change, dict) else {}

    def fields(self, *, in_use: bool, file_now: str) -> dict[str, JsonValue]:
        """Return what is written of it as JSON."""
        return {
            "row": "unknown_call",
            **about_call(self.call),
            **about_decision(self.call),
            "begun_at": text(self.call.intent, "time"),
            "confinement": text(self.call.intent, "confinement") or None,
            "cwd": text(self.call.intent, "cwd") or None,
            "answer": text(self.call.answered, "answer") or None,
            "answered_by": text(self.call.answered, "by") or None,
            "path": self.path or None,
            "before_sha256": self.before_sha256,
            "after_sha256": self.after_sha256,
            "file_now": file_now or None,
            "could_write": None if self.could_write is None else list[JsonValue](self.could_write),
            "in_use": in_use,
        }


def open_ends(log: str, records: Iterable[LogRecord]) -> Iterator[UnknownCall | OpenSession]:
    """Yield the unknown calls in these records (of CALL_KINDS) of the log at path `log`, then its open sessions."""
    joiner = Joiner(log)
    started: dict[str, LogRecord] = {}
    for record in records:
        joiner.take(record)
        if record["kind"] == "session_started":
            started[text(record, "session")] = record
        elif record["kind"] == "session_ended":
            started.pop(text(record, "session"), None)
            yield from _unknown(joiner.rest(text(record, "session")))
    not_begun: dict[str, list[LoggedCall]] = {}
    for call in joiner.rest():
        if call.fate is Fate.UNKNOWN:
            yield UnknownCall(call=call)
        else:
            not_begun.setdefault(call.session, []).append(call)
    for session, record in started.items():
        yield OpenSession(log=log, started=record, not_begun=tuple(not_begun.get(session, ())))


def _unknown(calls: Iterable[LoggedCall]) -> Iterator[UnknownCall]:
    return (UnknownCall(call=call) for call in calls if call.fate is Fate.UNKNOWN)
