"""The way back from the records of one session to its conversation, whatever ended it; pure, reads no file."""

from __future__ import annotations

import json
from collections.abc import Iterable

from harness.actions import JsonValue
from harness.history import History
from harness.log_order import SUMMARY, LogRecord
from harness.message_records import echo_of, message_of, text_of
from harness.messages import Message, ToolCall
from harness.record import Record

UNKNOWN = (
    "Unknown: the harness was stopped while this call ran; it may have been done in part or wholly. Look before you "
    "repeat it."
)
NOT_RUN = "Not run: the harness was stopped before this call's turn came."
_EDITED = "[At the question this call was changed into: {}]\n{}"
_MAX_EDITED_CHARACTERS = 1000
_SHOWN_CHARACTERS = 200
"""How much is kept of the beginning of arguments that the log has cut."""


def edited_text(arguments: str, result: str) -> str:
    """Return what the model reads of a call that was changed at the question: the arguments that counted, and what came of
    them. `arguments` are redacted.
    """
    cut = " ..." if len(arguments) > _MAX_EDITED_CHARACTERS else ""
    return _EDITED.format(arguments[:_MAX_EDITED_CHARACTERS] + cut, result)


class Rebuilt(Record):
    """What the records of one session come to."""

    messages: tuple[Message, ...] = ()
    """The conversation without its system message; every call has its result."""
    unknown_calls: tuple[ToolCall, ...] = ()
    """Calls that ran when the harness was stopped; the conversation says that their end is unknown."""
    cut_arguments: int = 0
    """Calls of which the log has only the beginning of the arguments."""


def rebuilt(records: Iterable[LogRecord]) -> Rebuilt:
    """Return what the records of one session, in their order, come to, however the session ended.

    Texts that the log has masked stay masked. Raises ValueError for records that no agent writes.
    """
    rebuilding = _Rebuilding()
    for record in records:
        rebuilding.take(record)
    return rebuilding.result()


class _Reply:
    """A reply of which the calls are still to come, or their results."""

    def __init__(self, text: str, echo: str, expected: JsonValue) -> None:
        self.text = text
        self.echo = echo
        self.expected = expected
        self.calls: dict[int, ToolCall] = {}
        self.begun: set[int] = set()
        self.results: dict[int, str] = {}
        self.edits: dict[int, tuple[int, str]] = {}
        """Calls that were put in the place of others: of which, and with which arguments."""

    def edit(self, number: int, edited_from: int, arguments: str) -> None:
        """Take note of a call that takes the place of another, which has its end."""
        self.edits[number] = edited_from, arguments
        self.results.pop(self._proposed_as(number), None)

    def begin(self, number: int) -> None:
        self.begun.add(self._proposed_as(number))

    def end(self, number: int, content: str) -> None:
        while number in self.edits:
            number, arguments = self.edits[number]
            content = edited_text(arguments, content)
        self.results[number] = content

    def _proposed_as(self, number: int) -> int:
        while number in self.edits:
            number = self.edits[number][0]
        return number


class _Rebuilding:
    """What the records so far came to."""

    def __init__(self) -> None:
        self._history = History("")
        self._reply: _Reply | None = None
        self._unknown: list[ToolCall] = []
        self._cut: set[int] = set()

    def take(self, record: LogRecord) -> None:
        match record["kind"]:
            case "user_message":
                self._finish_reply()
                self._history.ask(text_of(record, "text"))
            case "model_response":
                if record.get("purpose") != SUMMARY:
                    self._finish_reply()
                    self._reply = _Reply(text_of(record, "text"), echo_of(record.get("echo")), record.get("calls"))
            case "call_proposed" | "intent" | "outcome":
                self._take_call(record)
            case "history_changed":
                self._finish_reply()
                self._change(record)
            case _:
                pass  # the beginning and the end, decisions, questions, errors: no part of the conversation

    def result(self) -> Rebuilt:
        self._finish_reply()
        return Rebuilt(
            messages=tuple(self._history.messages[1:]),
            unknown_calls=tuple(self._unknown),
            cut_arguments=len(self._cut),
        )

    def _take_call(self, record: LogRecord) -> None:
        number, reply = record.get("call"), self._reply
        if not isinstance(number, int) or reply is None:
            raise ValueError(f"record {record.get('seq')} is of a call that no reply made")
        known = reply.calls.keys() | reply.edits.keys()
        edited_from = record.get("edited_from")
        if record["kind"] == "call_proposed" and isinstance(edited_from, int) and edited_from in known:
            if number in known:
                raise ValueError(f"record {record.get('seq')} proposes call {number} once more")
            reply.edit(number, edited_from, text_of(record, "arguments"))
        elif record["kind"] == "call_proposed":
            reply.calls[number] = self._call(record, number, {call.id for call in reply.calls.values()})
        elif number not in known:
            raise ValueError(f"record {record.get('seq')} is of call {number}, which the last reply did not make")
        elif record["kind"] == "intent":
            reply.begin(number)
        else:
            reply.end(number, text_of(record, "content"))

    def _call(self, record: LogRecord, number: int, taken: set[str]) -> ToolCall:
        identity, arguments = text_of(record, "id"), text_of(record, "arguments")
        if not identity or identity in taken:  # masked beyond recognition; no adapter lets it through
            identity = f"call_{number}"
        if "arguments_characters" in record:
            self._cut.add(number)
            note = (
                f"These arguments, {record['arguments_characters']} characters, were too long for the log and are cut."
            )
            arguments = json.dumps({"harness_note": note, "beginning": arguments[:_SHOWN_CHARACTERS]})
        return ToolCall(id=identity, name=text_of(record, "tool"), arguments=arguments)

    def _finish_reply(self) -> None:
        """Put the reply into the conversation, with a result for each of its calls.

        What a provider wants back with a reply it wants with the whole of it, or not at all.
        """
        reply, self._reply = self._reply, None
        if reply is None:
            return
        whole = len(reply.calls) == reply.expected and not self._cut & reply.calls.keys()
        results = [self._result(reply, number) for number in reply.calls]
        self._history.reply(reply.text, tuple(reply.calls.values()), results, reply.echo if whole else "")

    def _result(self, reply: _Reply, number: int) -> str:
        if number in reply.results:
            return reply.results[number]
        if number not in reply.begun:
            return NOT_RUN
        self._unknown.append(reply.calls[number])
        return UNKNOWN

    def _change(self, record: LogRecord) -> None:
        start, stop, messages = record.get("start"), record.get("stop"), record.get("messages", [])
        if not (isinstance(start, int) and isinstance(stop, int) and isinstance(messages, list)):
            raise ValueError(f"record {record.get('seq')} changes the conversation without sense")  # noqa: TRY004
        self._history.splice(start, stop, [message_of(message) for message in messages])
