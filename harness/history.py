"""The conversation. Messages are added only in this module.

INVARIANT: every call has exactly one result, with its ID, in call order. Two messages of the user, or two final
replies, are never adjacent. Strict servers refuse anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.messages import Attachment, Message, Role, ToolCall
from harness.record import replace


class History:
    """A conversation. `messages[0]` is the system message; positions in ranges do not count it."""

    def __init__(self, system: str) -> None:
        """Begin with the system message alone."""
        self.messages: list[Message] = [Message(role=Role.SYSTEM, content=system)]

    def ask(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Add a message of the user. It is joined to the previous message if that one is also the user's."""
        self._add(Message(role=Role.USER, content=text, attachments=tuple(attachments)))

    def reply(
        self,
        text: str,
        calls: Sequence[ToolCall] = (),
        results: Sequence[str] = (),
        echo: str = "",
        attachments: Sequence[tuple[Attachment, ...]] = (),
    ) -> None:
        """Add a reply and the results of its calls, in one step.

        `attachments` belong to `results`, in the same order; it may be shorter. A reply without text and calls is not
        added, because several servers then refuse all later requests. Raises ValueError unless each call has one
        result.
        """
        answers = [
            Message(role=Role.TOOL, content=result, tool_call_id=call.id, attachments=attached)
            for call, result, attached in zip(
                calls, results, [*attachments, *[()] * (len(calls) - len(attachments))], strict=True
            )
        ]
        if not (calls or text.strip()):
            return
        self._add(Message(role=Role.ASSISTANT, content=text, tool_calls=tuple(calls), echo=echo), *answers)

    def splice(
        self, start: int, stop: int, messages: Sequence[Message] = (), *, before: Callable[[], object] | None = None
    ) -> None:
        """Replace the messages from `start` up to `stop` with `messages`.

        `before` is called once the replacement is certain to succeed. Its exceptions pass through. Raises ValueError
        for an invalid range, or if a call and its result would be separated. After an exception, the conversation is
        unchanged.
        """
        changed = self._spliced(start, stop, messages)
        if before is not None:
            before()
        self.messages[:] = changed

    def _spliced(self, start: int, stop: int, messages: Sequence[Message]) -> list[Message]:
        if not 0 <= start <= stop < len(self.messages):
            raise ValueError(f"the conversation has no messages {start} to {stop}")
        changed = History("")
        changed.messages = self.messages[: start + 1]
        for message in (*messages, *self.messages[stop + 1 :]):
            changed._add(message)
        problem = pairing_problem(changed.messages[1:])
        if problem:
            raise ValueError(problem)
        return changed.messages

    @property
    def last_turn(self) -> tuple[int, int]:
        """The range from the last message of the user to the end. Empty if the user sent no message."""
        stop = len(self.messages) - 1
        spoken = (index for index in range(stop, 0, -1) if self.messages[index].role is Role.USER)
        return next(spoken, stop + 1) - 1, stop

    def _add(self, message: Message, *following: Message) -> None:
        last, position = self.messages[-1], len(self.messages)
        if message.role is last.role is Role.USER or (message.role is last.role is Role.ASSISTANT and _is_final(last)):
            content = "\n\n".join(text for text in (last.content, message.content) if text)
            attachments = (*last.attachments, *message.attachments)
            message, position = replace(message, content=content, attachments=attachments), position - 1
        # INVARIANT: one assignment, so that an interrupt cannot leave a call without its result.
        self.messages[position:] = (message, *following)


def _is_final(reply: Message) -> bool:
    return not reply.tool_calls


def pairing_problem(messages: Sequence[Message]) -> str:
    """Return a description of the first call or result that has no partner. Empty if all are paired.

    `messages` are those after the system message.
    """
    awaited: list[str] = []
    for number, message in enumerate(messages):
        match message.role:
            case Role.TOOL:
                if not awaited or message.tool_call_id != awaited.pop(0):
                    return f"message {number} is a result of {message.tool_call_id}, which is not due there"
                continue
            case Role.SYSTEM:
                return f"message {number} is a second system message"
            case Role.USER | Role.ASSISTANT:
                pass
        if awaited:
            return f"the call {awaited[0]} has no result directly after it"
        awaited = [call.id for call in message.tool_calls]
        if len({*awaited, ""}) != len(awaited) + 1 or (awaited and message.role is not Role.ASSISTANT):
            return f"message {number} has calls that cannot be told apart, or should have none"
    return f"the call {awaited[0]} has no result" if awaited else ""
