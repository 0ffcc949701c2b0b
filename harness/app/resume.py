"""Continuing an old session. Its conversation is rebuilt from its verified log, which is never changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import takewhile

from harness.actions import JsonValue
from harness.app.sessions import (
    LoggedSession,
    logged_sessions,
    name_in,
    session_named,
    talks,
    verified_session,
)
from harness.audit.calls import is_of_person
from harness.errors import UsageError
from harness.log.order import LogRecord
from harness.log.reader import is_in_use
from harness.log.transcript import Rebuilt, rebuilt
from harness.loop.agent import Agent
from harness.loop.compaction import split_summary
from harness.loop.run import Session
from harness.messages import Message, Role
from harness.models.endpoint import shown_address
from harness.record import Record, replace
from harness.redaction.marks import is_redacted
from harness.session.config.settings import Settings
from harness.session.state import State
from harness.terminal.local_time import local_time
from harness.terminal.styles import Line, Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

RESUMED, FORKED = "resumed", "forked"
_ABOUT_MODEL = ("model", "api", "server", "profile")
"""Log fields that identify a model. If they are equal, the provider knows the data that it sent with a reply."""


class Carried(Record):
    """A conversation that a new session continues."""

    session: LoggedSession
    method: str
    """`resumed` or `forked`."""
    rebuilt: Rebuilt
    first: Mapping[str, JsonValue]
    """See `first_of`."""
    torn: bool
    records: int
    head: str
    name: str = ""
    """Name that the user gave the conversation. Empty for none."""
    note: str = ""
    """Note on the choice of this session, for the user."""

    @property
    def origin(self) -> dict[str, JsonValue]:
        """Origin of the conversation, for the new session's first record."""
        return {
            "how": self.method,
            "session": self.session.session,
            "log": self.session.path,
            "records": self.records,
            "head": self.head,
        }

    def messages(self, header: Mapping[str, JsonValue]) -> tuple[Message, ...]:
        """Return the conversation for a new session whose first record is `header`.

        The provider's own data (`echo`) is kept only for the same model at the same address.
        """
        if self.model_at(header.get("api"), header.get("server")) == header.get("model"):
            return self.rebuilt.messages
        return tuple(replace(message, echo="") if message.echo else message for message in self.rebuilt.messages)

    def begin(self, agent: Agent, header: Mapping[str, JsonValue]) -> Session:
        """Begin the session that continues it, under the same name. Raises the errors of `Agent.start`."""
        session = agent.start(carried=self.messages(header), origin=self.origin)
        if self.name:
            agent.log.append("session_named", {"name": self.name})
        return session

    def model_for(self, settings: Settings, environment: Mapping[str, str]) -> str | None:
        """Return the profile or the model of the last request, if these settings lead to the same server.

        Else `None`.
        """
        profile = str(self.first.get("profile") or "")
        if profile in settings.file.profiles and settings.flags.keys().isdisjoint(("provider", "base_url")):
            new_settings = settings.with_model(profile, environment)
            if self._model_at(new_settings) == new_settings.model.value:
                return profile
        return self._model_at(settings)

    def _model_at(self, settings: Settings) -> str | None:
        return self.model_at(settings.api.value.value, shown_address(settings.base_url.value))

    def model_at(self, api: JsonValue, server: JsonValue) -> str | None:
        """Return the model of the last request, if it used this API and this address. Else `None`."""
        same = (self.first.get("api"), self.first.get("server")) == (api, server)
        return str(self.first.get("model") or "") or None if same else None


def first_of(records: Sequence[LogRecord]) -> dict[str, JsonValue]:
    """Return the first record of a session, with the session's last model instead of the first."""
    changed = next((record for record in reversed(records) if record["kind"] == "model_changed"), records[0])
    return {**records[0], **{name: changed.get(name) for name in _ABOUT_MODEL}}


def newest(state: State, workspace: str) -> tuple[LoggedSession, str]:
    """Return the newest finished session of a workspace, and a note about a newer one that is running.

    A session counts if the user sent a message, or if it continues another. Raises UsageError, LogError.
    """
    running = ""
    for outline in talks(state.log_paths(workspace), workspace):
        if not outline.running:
            newer = f"session {running} is still running in another terminal; this is the newest that is over"
            return outline.session, newer if running else ""
        running = running or outline.session.session
    if running:
        raise UsageError(
            f"session {running} is still running in another terminal, and no session here is over: "
            "leave it there (/quit), or begin a new one with `harness`"
        )
    raise UsageError(f"no session in {visible_line(workspace, 1000)} is in the state folder's logs")


def session_by_name(state: State, name: str) -> LoggedSession:
    """Return the session whose name begins with `name`. Raises UsageError, LogError."""
    return session_named(logged_sessions(state.log_paths()), name, "harness sessions")


def carried_from(state: State, session: LoggedSession, method: str, *, turn: int | None = None) -> Carried:
    """Return the content of a session at its end, or after its turn `turn` (0: before the first).

    Raises UsageError if the session is still running, has no such turn, or has an unreliable log.
    """
    if is_in_use(session.path):
        raise UsageError(f"session {session.session} is still running, or another is in its log; end that first")
    verified = verified_session(session, state)
    records = verified.records if turn is None else until_turn(verified.records, turn)
    try:
        history = rebuilt(records)
    except ValueError as error:
        raise UsageError(
            f"the conversation cannot be rebuilt from {visible_line(session.path, 5_000)}: {visible_line(str(error))}"
        ) from None
    return Carried(
        session=session,
        method=method,
        rebuilt=history,
        first=first_of(records),
        name=name_in(verified.records),
        torn=verified.torn,
        records=verified.count,
        head=verified.head,
    )


def refuse_its_log(carried: Carried, log: str | None) -> None:
    """Raise UsageError if `log` is the same file as the old session's log, also by another name."""
    try:
        same = log is not None and os.path.samefile(log, carried.session.path)
    except OSError:
        return  # there is no such file yet
    if same:
        raise UsageError("--log names the log of the session to go on from, which is never changed; name another file")


def until_turn(records: Sequence[LogRecord], turn: int) -> Sequence[LogRecord]:
    """Return the records of a session up to the end of a turn (0: before the first).

    A turn ends at the user's next message, undo or clear. Raises UsageError if the turn does not exist.
    """
    starts = [index for index, record in enumerate(records) if is_of_person(record)]
    if turn > len(starts):
        raise UsageError(f"turn {turn} does not exist: the session has only {count_of(len(starts), 'turn')}")
    begin = starts[turn - 1] + 1 if turn else 0
    rest = takewhile(lambda record: not (_ends_turn(record) and (turn or is_of_person(record))), records[begin:])
    return (*records[:begin], *rest)


def _ends_turn(record: LogRecord) -> bool:
    changed = record["kind"] == "history_changed" and record.get("why") in ("undone", "cleared")
    return changed or is_of_person(record)


def carried_lines(carried: Carried, header: Mapping[str, JsonValue]) -> tuple[Line, ...]:
    """Return notes for the user about the resumed session. `header` is the new session's first record."""
    history = carried.rebuilt
    prompts = [split_summary(message.content)[1] for message in history.messages if message.role is Role.USER]
    origin = f"{carried.method} session {carried.session.session} of {local_time(carried.session.time)}"
    lines = [Line(tone=Tone.WARNING, text=carried.note)] if carried.note else []
    lines.append(
        Line(tone=Tone.QUIET, text=f"{origin}: {len(history.messages)} messages, {len(prompts)} of them yours")
    )
    show = f"`harness audit show --session {carried.session.session}` shows its calls, with --full whole"
    lines.append(Line(tone=Tone.QUIET, text=show))
    lines += [
        Line(
            tone=Tone.WARNING,
            text=f"the harness was stopped while this ran, and what it did is unknown: {call.name} {call.arguments}",
        )
        for call in history.unknown_calls
    ]
    if carried.torn:
        lines.append(Line(tone=Tone.WARNING, text="the last line of its log is torn; what it was to say is lost"))
    if history.cut_arguments:
        text = f"{history.cut_arguments} calls had arguments too long for the log; the model is told that they are cut"
        lines.append(Line(tone=Tone.QUIET, text=text))
    if any(_is_masked(message) for message in history.messages):
        lines.append(Line(tone=Tone.QUIET, text="secrets that the log has masked stay masked in the conversation"))
    different = [
        f"{name} {_short_text(carried.first.get(name))} then, {_short_text(header.get(name))} now"
        for name in ("workspace", "model", "policy", "policy_sha256")
        if carried.first.get(name) != header.get(name)
    ]
    if different:
        lines.append(Line(tone=Tone.WARNING, text=f"not as it was: {'; '.join(different)}"))
    return tuple(replace(line, text=visible_line(line.text, 500)) for line in lines)


def _is_masked(message: Message) -> bool:
    return is_redacted(message.content) or any(is_redacted(call.arguments) for call in message.tool_calls)


def _short_text(value: JsonValue) -> str:
    text = str(value)
    return text[:12] if len(text) == 64 and text.isalnum() else text
