"""JSON text that is edited in place: the rest keeps its bytes, and an addition that is removed leaves no trace."""

from __future__ import annotations

import json
import random

from rows import all_rows

from harness.actions import JsonValue
from harness.plugins.agents.json_text import edited, without_comments

TEXTS = [
    "{}",
    "{ }",
    '{"a":1}',
    '{\n  "a": 1\n}\n',
    '{\n  "a": 1 // of a\n  /* the end */\n}\n',
    "// above\n{\n\t// only a comment\n}\n",
    '{\n\t"hooks": {"Stop": [ ]},\n\t"b": [1,\n2]\n}',
    '{\r\n    "a": {}\r\n}\r\n',
    '{\n  "hooks": {\n    "Before": [\n      {"x": "// no comment"} // y\n      ,{"y": "\\"/*"}\n    ]\n  },\n  "z": 1\n}\n',
]
OURS: JsonValue = {"matcher": "*", "hooks": [{"command": 'it\'s "ours"'}]}


def value_of(text: str) -> JsonValue:
    value: JsonValue = json.loads(without_comments(text))
    return value


@all_rows("text", TEXTS)
def test_removed_addition_leaves_the_same_bytes(text: str) -> None:
    old, new = value_of(text), value_of(text)
    assert isinstance(new, dict)
    hooks = new.setdefault("hooks", {})
    assert isinstance(hooks, dict)
    for event in ("Before", "After"):
        entries = hooks.setdefault(event, [])
        assert isinstance(entries, list)
        entries.append(OURS)
    after = edited(text, old, new)
    assert value_of(after) == new
    assert ("\n" in after.strip()) == ("\n" in text.strip() or '"' not in text)
    assert ("\r\n" in after, "\n" in after.replace("\r\n", "")) == (
        "\r\n" in text,
        "\r\n" not in text and "\n" in after,
    )
    assert edited(after, new, old) == text


@all_rows(
    "text,new,after",
    [
        ('{"a": 1, /* b */ "b": 2}', {"b": 2}, '{/* b */ "b": 2}'),
        ('{"a": 1, "b": 2 /* c */}', {"a": 1}, '{"a": 1 /* c */}'),
        ('{"a": 1 /* a */, "b": 2}', {"a": 1}, '{"a": 1 /* a */}'),
        ('{"a": [1, 2, 3]}', {"a": [1, 3]}, '{"a": [1, 3]}'),
        ('{"a": [1, 3]}', {"a": [1, 2, 3]}, '{"a": [1, 2, 3]}'),
        ('{"a": [1, 3]}', {"a": [0, 1, 3, 4]}, '{"a": [0, 1, 3, 4]}'),
        ('{"a": 1, "b": true}', {"a": True, "b": 1}, '{"a": true, "b": 1}'),
        ('{"a": 1}', {"b": 1}, '{ "b": 1}'),
        ('{"a": [{"b": 1, "c": 2}]}', {"a": [{"b": 3, "c": 2}]}, '{"a": [{"b": 3, "c": 2}]}'),
        ('{"a\\u0062": 1}', {"ab": 2}, '{"a\\u0062": 2}'),
    ],
)
def test_edit_changes_only_its_own_text(text: str, new: JsonValue, after: str) -> None:
    assert edited(text, value_of(text), new) == after


def _any_value(chance: random.Random, depth: int) -> JsonValue:
    match chance.randrange(6 if depth else 3):
        case 0:
            return chance.randrange(3)
        case 1:
            return chance.choice(["", "x", 'a"b', "// c", "/* d */", "\\", "{[,]}"])
        case 2:
            return chance.choice([None, True, False])
        case 3:
            return [_any_value(chance, depth - 1) for _ in range(chance.randrange(4))]
        case _:
            return {chance.choice("abcde"): _any_value(chance, depth - 1) for _ in range(chance.randrange(4))}


def test_any_value_can_become_any_other() -> None:
    chance = random.Random(41)
    for _ in range(2_000):
        old, new = _any_value(chance, 4), _any_value(chance, 4)
        text = json.dumps(old, indent=chance.choice([None, 1, 4, "\t"]))
        if "\n" in text:  # comments behind lines and before the first
            lines = [line + chance.choice(["", "", " // x, ]"]) for line in text.split("\n")]
            text = "/* { */\n" + "\n".join(lines)
        after = edited(text, old, new)
        assert json.dumps(value_of(after), sort_keys=True) == json.dumps(new, sort_keys=True), (text, new, after)
