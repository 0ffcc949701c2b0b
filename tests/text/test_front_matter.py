"""What a Markdown file says of itself between two lines `---`."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.text.front_matter import front_matter

READ = {
    "nothing is said": ("Hello\n---\n", {}, "Hello\n---\n"),
    "plain": ("---\nname: a-b\nplan: true\n---\nHello\n", {"name": "a-b", "plan": "true"}, "Hello\n"),
    "quoted": ("---\na: \"x: \\\"y\\\" # z\"\nb: 'it''s'\n---\n", {"a": 'x: "y" # z', "b": "it's"}, ""),
    "a comment": ("---\n# all of it\na: b # c\n---\n", {"a": "b"}, ""),
    "folded": ("---\na: >\n  one\n  two\nb: c\n---\n", {"a": "one two", "b": "c"}, ""),
    "kept lines": ("---\na: |\n  one\n  two\n---\n", {"a": "one\ntwo"}, ""),
    "a list": ("---\na:\n- one\n- two\n---\n", {"a": "- one - two"}, ""),
    "Windows": ("---\r\na: b\r\n---\r\nHello", {"a": "b"}, "Hello"),
    "no value": ("---\na:\n---\n", {"a": ""}, ""),
}


@all_rows(("text", "fields", "body"), [pytest.param(*row, id=name) for name, row in READ.items()])
def test_fields_and_the_rest(text: str, fields: dict[str, str], body: str) -> None:
    found = front_matter(text)
    assert (found.fields, found.body) == (fields, body)


@all_rows(
    ("text", "problem"),
    [
        pytest.param("---\na: b\n", "line 1: --- begins", id="no end"),
        pytest.param("---\na b\n---\n", "line 2: it must be", id="no key"),
        pytest.param("---\na: b\na: c\n---\n", "line 3: a stands here twice", id="twice"),
    ],
)
def test_what_is_none(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        front_matter(text)
