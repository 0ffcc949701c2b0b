"""The turns of a conversation and their calls, through all the sessions that the conversation was in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.app.commands.notes_to_model import is_unanswered
from harness.audit.calls import is_of_person, is_typed
from harness.audit.spending import Spending, spending_in
from harness.errors import LogError
from harness.log.order import LogRecord
from harness.log.reader import read_log, records
from harness.log.transcript import message_of, rebuilt
from harness.log.vocabulary import CARRIED, SUMMARY
from harness.loop.compaction import split_summary
from harness.loop.run import Session
from harness.messages import Message, Role
from harness.record import Record

MOST_SESSIONS = 100
"""Maximum number of sessions that are followed back. Only a forged log refers to more."""


class PastSession(Record):
    """A session that a conversation was in."""

    log: str
    """Path of the log."""
    session: str


class CallPlace(Record):
    """The place of a call in the logs."""

    part: PastSession
    call: int


Turn = list[CallPlace]
"""The calls of one turn, without those that the user made."""
TurnRecords = list[tuple[PastSession, LogRecord]]
"""The records of one turn, each with its session, from the user's message to the next one."""


class Turns:
    """The turns of the present conversation, newest last."""

    def __init__(self, log: str, session: Session) -> None:
        """Take the turns of the sessions that `session` continues. `log` is the path of its log. Raises LogError."""
        self._part = PastSession(log=log, session=session.identity)
        self._turns = turns_of(log, session.identity)

    def begin(self, session: Session) -> None:
        """Note that the user is about to send a message. If the previous message got no answer, its turn continues."""
        if not (is_unanswered(session.messages) and self._turns):
            self._turns.append([])

    def record(self, record: LogRecord) -> None:
        """Note a call of the current turn, unless the user made the call. An observer of the log."""
        number = record.get("call")
        is_models = record["kind"] == "call_proposed" and record.get("by") is None
        if is_models and isinstance(number, int) and self._turns and record["session"] == self._part.session:
            self._turns[-1].append(CallPlace(part=self._part, call=number))

    def calls_since(self, count: int) -> Turn:
        """Return the calls of the last `count` turns, oldest first."""
        return [call for turn in self._turns[-count:] for call in turn]

    def forget(self) -> None:
        """Forget every turn."""
        self._turns.clear()

    def drop_last(self) -> None:
        """Forget the last turn, if there is one."""
        del self._turns[-1:]

    @property
    def parts(self) -> tuple[PastSession, ...]:
        """The sessions of the conversation, oldest first."""
        return parts_of(self._part.log, self._part.session)

    def calls_of_user(self) -> Turn:
        """Return the calls that the user made in the present session, oldest first. Raises LogError."""
        proposed = (record for record in _records(self._part) if record["kind"] == "call_proposed")
        numbers = (record.get("call") for record in proposed if is_typed(record))
        return [CallPlace(part=self._part, call=number) for number in numbers if isinstance(number, int)]


def parts_of(log: str, session: str) -> tuple[PastSession, ...]:
    """Return the sessions of a conversation, oldest first, of which `session` in `log` is the last.

    A session whose log cannot be read, and those before it, are left out.
    """
    parts: list[PastSession] = []
    part: PastSession | None = PastSession(log=log, session=session)
    while part is not None and part not in parts and len(parts) < MOST_SESSIONS:
        try:
            started = next((r for r in _records(part) if r["kind"] == "session_started"), None)
        except LogError:
            break
        if started is None:
            break
        parts.append(part)
        part = _origin_of(started)
    return tuple(reversed(parts))


def earlier_spending(parts: Sequence[PastSession]) -> Spending:
    """Return the tokens and the cost of all sessions of a conversation but the last.

    The cost is unknown if a log is missing. Raises LogError.
    """
    sessions: dict[str, set[str]] = {}
    for part in parts[:-1]:
        sessions.setdefault(part.log, set()).add(part.session)
    started = next((r for part in parts[:1] for r in _records(part) if r["kind"] == "session_started"), None)
    is_whole = started is None or _origin_of(started) is None
    spendings = (spending_in(read_log(log), names) for log, names in sessions.items())
    return sum(spendings, Spending(cost=0.0 if is_whole else None))


def turns_of(log: str, session: str) -> list[Turn]:
    """Return the turns of a conversation that are still in it, oldest first. The conversation ends with `session`.

    Raises LogError if a log cannot be read.
    """
    return [
        [
            CallPlace(part=part, call=call)
            for part, record in turn
            if record["kind"] == "call_proposed"
            and isinstance(call := record.get("call"), int)
            and not record.get("by")
        ]
        for turn in records_of_turns(parts_of(log, session))
    ]


def records_of_turns(parts: Sequence[PastSession]) -> list[TurnRecords]:
    """Return the records of the turns that are still in a conversation, oldest first. `parts` are its sessions.

    Without the log of the session before the first, the messages of that session count as turns. The record that
    carried them over is among the records of the last one.

    Raises LogError if a log cannot be read.
    """
    turns: list[TurnRecords] = []
    before: list[LogRecord] = []
    for part in parts:
        records = list(_records(part))
        turns = _turns(part, records, turns, before)
        before = records
    return turns


def _turns(
    part: PastSession, records: Sequence[LogRecord], turns: list[TurnRecords], before: Sequence[LogRecord]
) -> list[TurnRecords]:
    """Return the turns at the end of a session, from those of the session before it and the records of both."""
    is_answered = True
    for record in records:
        match record["kind"]:
            case "history_changed" if record.get("why") in CARRIED:
                messages = carried_messages(record)
                is_answered = not is_unanswered(messages)
                if before:
                    dropped = _messages_of_person(before) - _count(messages)
                    turns = turns[: max(0, len(turns) - max(0, dropped))]
                    continue
                turns = [[] for _ in range(_count(messages))]  # the log of the session before cannot be read
            case "history_changed" if record.get("why") == "undone":
                turns, is_answered = turns[:-1], True
            case "history_changed" if record.get("why") == "cleared":
                turns, is_answered = [], True
            case "user_message" if is_of_person(record):
                turns = turns if turns and not is_answered else [*turns, []]
                is_answered = False
            case "model_response" if record.get("purpose") != SUMMARY:
                is_answered = True
            case _:
                pass
        if turns:
            turns[-1].append((part, record))
    return turns


def _records(part: PastSession) -> Iterator[LogRecord]:
    return (record for record in records(part.log) if record["session"] == part.session)


def _origin_of(started: LogRecord) -> PastSession | None:
    match started.get("origin"):
        case {"session": str() as session, "log": str() as log}:
            return PastSession(log=log, session=session)
        case _:
            return None


def carried_messages(record: LogRecord) -> list[Message]:
    """Return the messages that a record of a changed conversation contains. Empty if they are invalid."""
    messages = record.get("messages")
    try:
        return [message_of(message) for message in messages] if isinstance(messages, list) else []
    except ValueError:
        return []


def _messages_of_person(records: Sequence[LogRecord]) -> int:
    try:
        return _count(rebuilt(records).messages)
    except ValueError:
        return 0


def _count(messages: Sequence[Message]) -> int:
    """Return the number of messages with words of the user."""
    return sum(message.role is Role.USER and bool(split_summary(message.content)[1]) for message in messages)
