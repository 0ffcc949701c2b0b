"""The lines of `harness audit unknown`: calls without an end, and open sessions; looks at files, and changes none."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.audit.calls import text
from harness.audit.disk import look
from harness.audit.endings import OpenSession, UnknownCall
from harness.cli.audit.answers import count, short_digest
from harness.cli.audit.words import moment, name, what, who, why
from harness.cli.trace import Tone
from harness.log_lines import is_in_use, is_whole
from harness.visible import visible_line


class EndsOf:
    """What is said of the open ends of one log, with what the disk says of them now."""

    def __init__(self, path: str) -> None:
        """Look at the log at `path`. Raises LogError if it cannot be read."""
        self._path = path
        self._in_use = is_in_use(path)
        self.torn = not is_whole(path)

    def torn_fields(self) -> dict[str, JsonValue]:
        """Return what is written as JSON of a last line that has no end."""
        return {"row": "torn_line", "log": self._path, "in_use": self._in_use}

    def torn_line(self) -> tuple[str, Tone]:
        """Return the line for people about a last line that has no end."""
        may = "in use: it may be being written" if self._in_use else "it may have begun a call, or ended one"
        return f"{visible_line(self._path, 5_000)}: the last line is torn; {may}", Tone.WARNING

    def fields(self, one: UnknownCall | OpenSession) -> dict[str, JsonValue]:
        """Return what is written as JSON."""
        if isinstance(one, OpenSession):
            return one.fields(in_use=self._in_use, torn=self.torn)
        return one.fields(in_use=self._in_use, file_now=_file_now(one))

    def line(self, one: UnknownCall | OpenSession) -> tuple[str, Tone]:
        """Return the line for people."""
        if isinstance(one, OpenSession):
            return self._session_line(one), Tone.WARNING
        return self._call_line(one), Tone.WARNING if self._in_use else Tone.BAD

    def _call_line(self, one: UnknownCall) -> str:
        call = one.call
        allowed = f"yes by {who(call)}" if call.answered else "auto"
        parts = [moment(call.intent), name(call), what(call), f"[{allowed}: {why(call)}]"]
        if one.path:
            digests = f"{short_digest(one.before_sha256)} -> {short_digest(one.after_sha256)}"
            parts.append(f"to change {visible_line(one.path, 1_000)} {digests}: {_NOW[_file_now(one)]}")
        else:
            parts.append(_could_write(one.could_write))
        running = "in use: it may simply be running" if self._in_use else "it may have run, wholly or in part"
        return "  ".join((*parts, f"end unknown; {running}"))

    def _session_line(self, one: OpenSession) -> str:
        session = visible_line(text(one.started, "session"), 40)
        where = visible_line(text(one.started, "workspace") or "-", 300)
        parts = [moment(one.started), f"session {session} in {where} never said that it ended"]
        if one.not_begun:
            parts.append(f"{count(len(one.not_begun), 'call')} without an end and not begun")
        if self._in_use:
            parts.append("its log is in use: it may simply be running")
        elif self.torn:
            parts.append("its log's last line is torn")
        return "  ".join((*parts, visible_line(one.log, 5_000)))


def nothing_open(sessions: int) -> str:
    """Return the line for logs in which everything has an end."""
    if not sessions:
        return "there is no session, and so no call"
    return f"every call that was begun in {count(sessions, 'session')} has an end, and every session"


def _could_write(paths: list[str] | None) -> str:
    if paths is None:
        return "it could write; which paths is not known"
    if not paths:
        return "it was to read only"
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return f"it could write {', '.join(visible_line(path, 200) for path in paths[:5])}{more}"


_NOW = {
    "as_intended": "the file is what it was to become",
    "as_before": "the file is as it was before",
    "otherwise": "the file is neither what it was nor what it was to become",
    "not_looked_at": "the file was not looked at",
    "": "",
}


def _file_now(one: UnknownCall) -> str:
    """Return how the file that a call was to change stands to that now."""
    if not one.path:
        return ""
    found = look(one.path)
    if found.problem or one.after_sha256 is None:
        return "not_looked_at"
    if found.sha256 == one.after_sha256:
        return "as_intended"
    return "as_before" if found.sha256 == one.before_sha256 else "otherwise"
