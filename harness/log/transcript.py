"""The conversation of a session, rebuilt from its records after any kind of end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from harness.actions import JsonValue
from harness.history import History
from harness.log.attachments import attachment_fields, attachments_of
from harness.log.order import LogRecord
from harness.log.vocabulary import SUMMARY
from harness.messages import Attachment, FinishReason, Message, Role, ToolCall
from harness.record import Record
from harness.redaction.marks import is_redacted, marks_of


def message_json(message: Message) -> JsonValue:
    """Return a message in the form that a record contains, without empty fields."""
    value: dict[str, JsonValue] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        value["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    if message.echo:
        value["echo"] = message.echo
    value |= attachment_fields(message.attachments)
    return value


def message_of(value: JsonValue) -> Message:
    """Return the message in a value from a record. Raises ValueError if it is not a message."""
    if not isinstance(value, dict):
        raise ValueError("a message is not an object")  # noqa: TRY004 - of what was read, not of an argument
    calls = value.get("tool_calls", [])
    if not isinstance(calls, list):
        raise ValueError("the calls of a message are not a list")  # noqa: TRY004 - of what was read, not of an argument
    return Message(
        role=Role(text_of(value, "role")),
        content=text_of(value, "content"),
        tool_calls=tuple(_call_of(call) for call in calls),
        tool_call_id=None if value.get("tool_call_id") is None else text_of(value, "tool_call_id"),
        echo=_echo_of(value.get("echo")),
        attachments=attachments_of(value),
    )


def _call_of(value: JsonValue) -> ToolCall:
    if not isinstance(value, dict):
        raise ValueError("a call is not an object")  # noqa: TRY004 - of what was read, not of an argument
    return ToolCall(id=text_of(value, "id"), name=text_of(value, "name"), arguments=text_of(value, "arguments"))


def text_of(value: LogRecord, name: str) -> str:
    """Return a text field of a record. Raises ValueError if it is not a text."""
    text = value.get(name)
    if not isinstance(text, str):
        raise ValueError(f"{name} is not a text")  # noqa: TRY004 - of what was read, not of an argument
    return text


def _echo_of(value: JsonValue) -> str:
    """Return the echo that a provider expects with the next request. Empty if the log has only a masked form of it."""
    if not isinstance(value, str) or is_redacted(value):
        return ""
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return ""
    return value


UNKNOWN = (
    "Unknown: the harness was stopped while this call ran; it may have been done in part or wholly. Look before you "
    "repeat it."
)
NOT_RUN = "Not run: the harness was stopped before this call's turn came."
_EDITED = "[At the question this call was changed into: {}]\n{}"
_MAX_EDITED_CHARACTERS = 999
"""Maximum length of edited arguments that the model reads, in characters. The log has more
(gate.records.MAX_CUT_ARGUMENTS).
"""
_UNUSABLE = frozenset((FinishReason.FUNCTION_CALL.value, FinishReason.REASONING.value))
"""Finish reasons of unusable replies. They may have text, but never become part of the conversation."""
_SHOWN_CHARACTERS = 200
"""Number of characters that the conversation keeps of arguments that were cut in the log."""


def edited_text(edits: Sequence[str], result: str) -> str:
    """Return the text for the model about a call that was edited at the approval prompt, perhaps more than once.

    `edits` are the redacted arguments of every edit, oldest first. `result` is the result of the last one.
    """
    for arguments in reversed(edits):
        cut = " ..." if len(arguments) > _MAX_EDITED_CHARACTERS else ""
        result = _EDITED.format(arguments[:_MAX_EDITED_CHARACTERS] + cut, result)
    return result


class Rebuilt(Record):
    """The conversation from the records of one session."""

    messages: tuple[Message, ...] = ()
    """The conversation without its system message. Every call has a result."""
    unknown_calls: tuple[ToolCall, ...] = ()
    """Calls that were running when the harness stopped. In the conversation, their result is unknown."""
    cut_arguments: int = 0
    """Number of calls whose arguments are cut in the log."""
    marks: frozenset[str] = frozenset()
    """Marks that replace secrets in the conversation. A caller that continues it passes them to `Redactor.note`."""


def rebuilt(records: Iterable[LogRecord]) -> Rebuilt:
    """Rebuild the conversation from the records of one session, in their order, after any kind of end.

    Texts that the log has masked stay masked. Raises ValueError for records that no agent writes.
    """
    rebuilding = _Rebuilding()
    for record in records:
        rebuilding.take(record)
    return rebuilding.result()


class _Reply:
    """A reply whose calls or their results are not complete yet."""

    def __init__(self, text: str, echo: str, expected: JsonValue) -> None:
        self.text = text
        self.echo = echo
        self.expected = expected
        self.calls: dict[int, ToolCall] = {}
        self.started: set[int] = set()
        self.results: dict[int, str] = {}
        self.attachments: dict[int, tuple[Attachment, ...]] = {}
        self.edits: dict[int, list[str]] = {}
        """Arguments of the edits of each call, by the first number of the call."""
        self.places: dict[int, int] = {}
        """First number of a call, by the number of the call that replaced it."""

    def place(self, number: int) -> int:
        """Return the number of the model's original call, of which call `number` may be an edit."""
        return self.places.get(number, number)

    def edit(self, number: int, edited_from: int, arguments: str) -> None:
        """Record that call `number` replaces call `edited_from`, whose result no longer counts."""
        first = self.places[number] = self.place(edited_from)
        self.edits.setdefault(first, []).append(arguments)
        self.results.pop(first, None)


class _Rebuilding:
    """A conversation being rebuilt from the records so far."""

    def __init__(self) -> None:
        self._history = History("")
        self._reply: _Reply | None = None
        self._unknown: list[ToolCall] = []
        self._cut: set[int] = set()
        self._by_person: set[int] = set()
        """Calls that the user typed. They are not part of the conversation."""
        self._marks: set[str] = set()

    def take(self, record: LogRecord) -> None:
        self._marks |= marks_of(record)
        match record["kind"]:
            case "user_message":
                self._finish_reply()
                self._history.ask(text_of(record, "text"), attachments_of(record))
            case "model_response":
                if record.get("purpose") != SUMMARY:
                    self._finish_reply()
                if record.get("purpose") != SUMMARY and record.get("finish_reason") not in _UNUSABLE:
                    self._reply = _Reply(text_of(record, "text"), _echo_of(record.get("echo")), record.get("calls"))
            case "call_proposed" | "intent" | "outcome":
                self._take_call(record)
            case "history_changed":
                self._finish_reply()
                self._change(record)
            case _:
                pass  # other records (start and end, decisions, questions, errors) are not part of the conversation

    def result(self) -> Rebuilt:
        self._finish_reply()
        return Rebuilt(
            messages=tuple(self._history.messages[1:]),
            unknown_calls=tuple(self._unknown),
            cut_arguments=len(self._cut),
            marks=frozenset(self._marks),
        )

    def _take_call(self, record: LogRecord) -> None:
        number, reply = record.get("call"), self._reply
        if isinstance(number, int) and record.get("by") == "person":
            self._by_person.add(number)
        if number in self._by_person:
            return
        if not isinstance(number, int) or reply is None:
            raise ValueError(f"record {record.get('seq')} is of a call that no reply made")
        known_numbers = reply.calls.keys() | reply.places.keys()
        edited_from = record.get("edited_from")
        if record["kind"] == "call_proposed" and isinstance(edited_from, int) and edited_from in known_numbers:
            if number in known_numbers:
                raise ValueError(f"record {record.get('seq')} proposes call {number} once more")
            reply.edit(number, edited_from, text_of(record, "arguments"))
        elif record["kind"] == "call_proposed":
            reply.calls[number] = self._call(record, number, {call.id for call in reply.calls.values()})
        elif number not in known_numbers:
            raise ValueError(f"record {record.get('seq')} is of call {number}, which the last reply did not make")
        elif record["kind"] == "intent":
            reply.started.add(reply.place(number))
        else:
            reply.results[reply.place(number)] = text_of(record, "content")
            reply.attachments[reply.place(number)] = attachments_of(record)

    def _call(self, record: LogRecord, number: int, used_identities: set[str]) -> ToolCall:
        identity, arguments = text_of(record, "id"), text_of(record, "arguments")
        if not identity or identity in used_identities:  # the id was masked; adapters reject empty and duplicate ids
            identity = f"call_{number}"
        if "arguments_characters" in record:
            self._cut.add(number)
            note = (
                f"These arguments, {record['arguments_characters']} characters, were too long for the log and are cut."
            )
            arguments = json.dumps({"harness_note": note, "beginning": arguments[:_SHOWN_CHARACTERS]})
        return ToolCall(id=identity, name=text_of(record, "tool"), arguments=arguments)

    def _finish_reply(self) -> None:
        """Add the reply to the conversation, with a result for each of its calls.

        The echo is added only if all calls are complete, because providers accept it only with the unchanged reply.
        """
        reply, self._reply = self._reply, None
        if reply is None:
            return
        is_complete = len(reply.calls) == reply.expected and not self._cut & reply.calls.keys()
        results = [self._result(reply, number) for number in reply.calls]
        attachments = [reply.attachments.get(number, ()) for number in reply.calls]
        self._history.reply(
            reply.text, tuple(reply.calls.values()), results, reply.echo if is_complete else "", attachments
        )

    def _result(self, reply: _Reply, number: int) -> str:
        text = NOT_RUN
        if number in reply.results:
            text = reply.results[number]
        elif number in reply.started:
            self._unknown.append(reply.calls[number])
            text = UNKNOWN
        return edited_text(reply.edits.get(number, ()), text)

    def _change(self, record: LogRecord) -> None:
        start, stop, messages = record.get("start"), record.get("stop"), record.get("messages", [])
        if not (isinstance(start, int) and isinstance(stop, int) and isinstance(messages, list)):
            raise ValueError(f"record {record.get('seq')} changes the conversation without sense")  # noqa: TRY004
        self._history.splice(start, stop, [message_of(message) for message in messages])
