"""The model's own list: kept by its call, bounded, run unasked, and refused where a policy says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playing import Playing
from rows import all_rows

from harness import ActionLog, Agent, ToolRegistry, Workspace, builtin_tools
from harness.app.repl.todo_list import ShownTodo, todo_lines, todo_of
from harness.errors import ToolError
from harness.gate.approval import deny_all
from harness.messages import Message, Role, ToolCall
from harness.models.scripted import call
from harness.policy.loader import parse_policy
from harness.tools.todo import MOST_CHARACTERS, MOST_ITEMS, TodoItem, TodoTool

ITEMS: list[dict[str, str]] = [
    {"text": "read", "status": "done"},
    {"text": "write\x1b[31m", "status": "doing"},
    {"text": "test", "status": "pending"},
]
SILENT = 'version = 1\ntools.default = "deny"\n'


def played(tmp_path: Path, policy: str, *lists: Any) -> tuple[Sequence[Message], list[dict[str, object]]]:
    log = ActionLog.open(str(tmp_path / "log.jsonl"))
    agent = Agent(
        model=Playing([call("todo", items=items) for items in lists]),
        tools=[*builtin_tools(Workspace(str(tmp_path)), environment={}), TodoTool()],
        policy=parse_policy(policy.encode(), "p.toml"),
        approver=deny_all,
        log=log,
    )
    session = agent.start()
    agent.run("go", session)
    agent.end(session)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    return session.messages, records


@all_rows(
    ("policy", "status"),
    [
        (SILENT, "ok"),
        ('version = 1\ntools.default = "confirm"\n', "ok"),
        ('version = 1\ntools.todo = "auto"\n', "ok"),
        ('version = 1\ntools.todo = "deny"\n', "denied"),
        ('version = 1\ntools.todo = "confirm"\n', "denied"),
        (SILENT + '[[rule]]\nid = "no"\ndecision = "deny"\ntool = ["todo"]\nreason = "No lists."\n', "denied"),
    ],
)
def test_it_runs_unasked_unless_a_policy_names_it(tmp_path: Path, policy: str, status: str) -> None:
    messages, records = played(tmp_path, policy, ITEMS)
    (outcome,) = [record for record in records if record["kind"] == "outcome"]
    assert outcome["status"] == status
    items = todo_of(messages)
    assert [item.text for item in items] == ([one["text"] for one in ITEMS] if status == "ok" else [])
    if status == "ok":
        assert outcome["content"] == "The list is kept: 1 of 3 done, doing: write\x1b[31m."
        assert [item.line for item in items] == ["[x] read", "[>] write\\x1b[31m", "[ ] test"]


def test_newest_list_is_shown_in_full_once(tmp_path: Path) -> None:
    done = [{**one, "status": "done"} for one in ITEMS]
    messages, _ = played(tmp_path, SILENT, ITEMS, done)
    assert {item.status for item in todo_of(messages)} == {"done"}
    shown = ShownTodo()
    assert shown.news(messages) == []  # all was done before anybody saw it
    earlier = messages[: next(at for at, one in enumerate(messages) if one.role is Role.TOOL) + 1]
    assert shown.news(earlier)[0] == "[x] read"
    assert shown.news(earlier) == ["1 of 3 done, doing: write\\x1b[31m"]
    assert shown.news(messages)[0] == "[x] read"
    assert shown.news([]) == []


def test_list_in_a_string_is_kept_and_shown(tmp_path: Path) -> None:
    messages, records = played(tmp_path, SILENT, json.dumps(ITEMS))
    assert [record["status"] for record in records if record["kind"] == "outcome"] == ["ok"]
    assert [item.text for item in todo_of(messages)] == [item["text"] for item in ITEMS]


@all_rows(
    ("count", "done", "lines", "first", "last"),
    [
        (3, 0, 3, "[ ] 0", "[ ] 2"),
        (7, 7, 7, "[x] 0", "[x] 6"),
        (9, 9, 1, "all 9 items done", "all 9 items done"),
        (9, 5, 5, "5 of 9 items done", "[ ] 8"),
        (20, 1, 7, "1 of 20 items done", "... and 14 more"),
        (8, 0, 7, "[ ] 0", "... and 2 more"),
    ],
)
def test_a_long_list_takes_few_lines(count: int, done: int, lines: int, first: str, last: str) -> None:
    items = [TodoItem(text=str(at), status="done" if at < done else "pending") for at in range(count)]
    shown = todo_lines(items)
    assert (len(shown), shown[0], shown[-1]) == (lines, first, last)


@pytest.mark.parametrize(
    "items",
    [
        [{"text": "", "status": "done"}],
        [{"text": "x" * (MOST_CHARACTERS + 1), "status": "done"}],
        [{"text": "x", "status": "soon"}],
        [{"text": "x"}],
        [{"text": "x", "status": "done", "more": "y"}],
        [{"text": "x", "status": "done"}] * (MOST_ITEMS + 1),
        "x",
        None,
    ],
)
def test_invalid_list_is_refused(items: object) -> None:
    with pytest.raises(ToolError):
        ToolRegistry([TodoTool()]).prepare(ToolCall(id="", name="todo", arguments=json.dumps({"items": items})))
