"""The tool `todo`: the model's list of tasks. A call replaces the list and has no other effect."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from harness.actions import SUMMARY_CHARACTERS, Action, Effects, JsonValue, ToolBounds, ToolUse
from harness.gate.arguments import read_as
from harness.gate.tool import Arguments, ToolOutput
from harness.messages import ToolCall
from harness.model import ToolSpec
from harness.record import Record
from harness.text.visible import visible_line
from harness.tool_kinds import OPTIONAL_TOOLS

MOST_ITEMS = 50
MOST_CHARACTERS = 300
"""Maximum length of an item, in characters."""
PENDING, DOING, DONE = "pending", "doing", "done"
STATES = (PENDING, DOING, DONE)
MARKS: Mapping[str, str] = {PENDING: "[ ]", DOING: "[>]", DONE: "[x]"}
"""Marks of the states, in characters that every terminal can show."""


class TodoItem(Record):
    """One task in the list."""

    text: str
    status: str
    """One of STATES."""

    @property
    def line(self) -> str:
        """The item on one line, safe to show."""
        return f"{MARKS[self.status]} {visible_line(self.text, MOST_CHARACTERS)}"


_ITEMS: dict[str, JsonValue] = {
    "type": "array",
    "maxItems": MOST_ITEMS,
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
            "status": {"type": "string", "enum": list(STATES)},
        },
        "required": ["text", "status"],
    },
}
"""Schema of the argument `items`."""


class TodoTool:
    """Replaces the list of tasks."""

    kind = OPTIONAL_TOOLS["todo"]

    def __init__(self) -> None:
        """Create the tool. It stores no list: the calls in the conversation and in the log contain it."""
        self.spec = ToolSpec(
            name=self.kind.name,
            description=(
                "Keep a list of what is to be done, which the person sees. Each call replaces the whole list: send every "
                "item, those that are done too. Use it for work of three steps or more; have one item at a time `doing`."
            ),
            parameters={"properties": {"items": _ITEMS}, "required": ["items"]},
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the new list."""
        items = items_of(arguments)
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(ToolUse(tool=self.spec.name, bounds=ToolBounds(), stays_here=True),),
            summary=visible_line(in_words(items), SUMMARY_CHARACTERS),
            preview="\n".join(item.line for item in items) or "an empty list",
            request=items,
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - as every tool has it
        """Return the progress of the list."""
        items = items_of(action.arguments)
        return ToolOutput(content=f"{self.kind.holds}{in_words(items)}.")


def items_of(arguments: Mapping[str, JsonValue]) -> tuple[TodoItem, ...]:
    """Return the items in the arguments of a call. Invalid items are left out, so that old logs remain readable."""
    values = arguments.get("items")
    items = []
    for value in values[:MOST_ITEMS] if isinstance(values, list) else ():
        text, status = (value.get("text"), value.get("status")) if isinstance(value, dict) else (None, None)
        if isinstance(text, str) and isinstance(status, str) and status in STATES:
            items.append(TodoItem(text=text, status=status))
    return tuple(items)


def items_in(text: str) -> tuple[TodoItem, ...] | None:
    """Return the list in the raw arguments of a call. `None` unless they are a JSON object with a list."""
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return None
    items = read_as(arguments.get("items"), _ITEMS) if isinstance(arguments, dict) else None
    return items_of({"items": items}) if isinstance(items, list) else None


def in_words(items: Sequence[TodoItem]) -> str:
    """Return the progress of a list and its current item, as text that is not yet safe to show."""
    if not items:
        return "nothing to do"
    done = sum(item.status == DONE for item in items)
    doing = next((item.text for item in items if item.status == DOING), "")
    return f"{done} of {len(items)} done" + (f", doing: {doing}" if doing else "")
