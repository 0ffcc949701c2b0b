"""The model's to-do list in the conversation. It is shown above the prompt when it has changed."""

from __future__ import annotations

from collections.abc import Sequence

from harness.loop.compaction import held_calls
from harness.messages import Message
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tools.todo import DONE, TodoItem, TodoTool, in_words, items_in

MOST_LINES = 7
"""Maximum number of lines of a list above the prompt."""


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
