"""The model's to-do list in the conversation. It is shown while a turn runs, and above the prompt when it has changed."""

from __future__ import annotations

from collections.abc import Sequence

from harness.log.order import LogRecord
from harness.loop.compaction import held_calls
from harness.loop.run import Session
from harness.messages import Message, ResultStatus
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tools.todo import DOING, DONE, TodoItem, TodoTool, in_words, items_in

MOST_LINES = 7
"""Maximum number of lines of a list above the prompt."""
MOST_STANDING = 5
"""Maximum number of lines of a list while a turn runs."""


class ShownTodo:
    """The state of the list when it was last shown."""

    def __init__(self) -> None:
        self._shown_items: tuple[TodoItem, ...] = ()

    def news(self, messages: Sequence[Message]) -> list[str]:
        """Return the lines of the conversation's list, safe to display. An unchanged list becomes one short line.

        Empty if the list has no open items and is unchanged or new.
        """
        items, before = todo_of(messages), self._shown_items
        self._shown_items = items
        open_items = [item for item in items if item.status != DONE]
        if items == before and open_items:
            return [visible_line(in_words(items), 200)]
        return [] if items == before or not (before or open_items) else todo_lines(items)


class StandingTodo:
    """The list of the conversation while a turn runs."""

    def __init__(self) -> None:
        self._session = ""
        self._items: tuple[TodoItem, ...] = ()
        self._proposed: dict[int, tuple[TodoItem, ...]] = {}
        """The lists of calls that have not ended, by the call's number."""

    def begin(self, session: Session) -> None:
        """Take the list of a conversation, in which a turn begins."""
        self._session, self._items = session.identity, todo_of(session.messages)
        self._proposed.clear()

    def record(self, record: LogRecord) -> None:
        """Take the list of a call that succeeds. An observer of the log."""
        number = record.get("call")
        if record["session"] != self._session or not isinstance(number, int):
            return
        if record["kind"] == "call_proposed" and record.get("tool") == TodoTool.kind.name:
            self._proposed[number] = items_in(str(record.get("arguments"))) or ()
        elif record["kind"] == "outcome" and number in self._proposed:
            items = self._proposed.pop(number)
            self._items = items if record.get("status") == ResultStatus.OK.value else self._items

    def rows(self, width: int, height: int) -> list[str]:  # noqa: ARG002 - rows that are too wide are cut
        """Return the rows for a terminal of this size: the items around the current one, safe to show.

        A low terminal has one row. Empty if no item is open.
        """
        return standing_lines(self._items, min(MOST_STANDING, (height - 9) // 3))


def standing_lines(items: Sequence[TodoItem], max_lines: int) -> list[str]:
    """Return at most `max_lines` lines of a list: the progress, and the items around the current one.

    Empty if no item is open.
    """
    open_items = [index for index, item in enumerate(items) if item.status != DONE]
    if not open_items or max_lines < 1:
        return []
    if len(items) <= max_lines:
        return [item.line for item in items]
    if max_lines == 1:
        return [visible_line(in_words(items), 200)]
    current = next((index for index in open_items if items[index].status == DOING), open_items[0])
    first = max(0, min(current - 1, len(items) - (max_lines - 1)))
    done = sum(item.status == DONE for item in items)
    return [f"{done} of {len(items)} done", *(item.line for item in items[first : first + max_lines - 1])]


def todo_of(messages: Sequence[Message]) -> tuple[TodoItem, ...]:
    """Return the latest list of a conversation. Empty if there is none."""
    return items_in(held_calls(messages).get(TodoTool.kind.name, "")) or ()


def todo_lines(items: Sequence[TodoItem], max_lines: int = MOST_LINES) -> list[str]:
    """Return at most `max_lines` lines of a list. Finished items are omitted first, then the last open ones."""
    if len(items) <= max_lines:
        return [item.line for item in items]
    done = sum(item.status == DONE for item in items)
    open_items = [item for item in items if item.status != DONE]
    if not open_items:
        return [f"all {count_of(done, 'item')} done"]
    head = [f"{done} of {count_of(len(items), 'item')} done"] if done else []
    room = max_lines - len(head)
    if len(open_items) > room:
        return [*head, *(item.line for item in open_items[: room - 1]), f"... and {len(open_items) - room + 1} more"]
    return [*head, *(item.line for item in open_items)]
