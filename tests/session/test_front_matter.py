"""What a Markdown file says of itself between two lines `---`."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.session.words.front_matter import front_matter

READ = {
    "nothing is said": ("Hello\n---\n", {}, "Hello\n---\n"),
    "plain": ("---\nname: a-b\nplan: true\n---\nHello\n", {"name": "a-b", "plan": "true"}, "Hello\n"),
    "quoted": ("---\na: \"x: \\\"y\\\" # z\"\nb: 'it''s'\n---\n", {"a": 'x: "y" # z', "b": "it's"}, ""),
    "quoted, and a comment": ("---\na: \"x\" # c\nb: 'y' # c\n---\n", {"a": "x", "b": "y"}, ""),
    "quoted over lines": (
        '---\na: "x\n  \\u00e9\\ud83d\\ude00\\ud83d\\n"\n---\n',
        {"a": "x \u00e9\U0001f600\ufffd\n"},
        "",
    ),
    "a quote that begins a longer text": ('---\na: "x" or "y"\n---\n', {"a": '"x" or "y"'}, ""),
    "quoted keys, and a blank behind one": (
        "---\n\"a\": 1\n'b': 2\nc : 3\nx.y: 4\n---\n",
        {"a": "1", "b": "2", "c": "3", "x.y": "4"},
        "",
    ),
    "a comment": ("---\n# all of it\na: b # c\nd: # e\n---\n", {"a": "b", "d": ""}, ""),
    "folded": ("---\na: >\n  one\n  two\n\n  three\nb: c\n---\n", {"a": "one two\nthree", "b": "c"}, ""),
    "kept lines": ("---\na: |\n  one\n\n    two\n---\n", {"a": "one\n\n  two"}, ""),
    "headings in a block are no comments": (
        "---\na: |\n  # one\n  two\n# c\nb: c\n---\n",
        {"a": "# one\ntwo", "b": "c"},
        "",
    ),
    "how a block ends": (
        "---\na: |+\n  one\n\nb: >-2\n  two\nc: |- # d\n  e\n---\n",
        {"a": "one", "b": "two", "c": "e"},
        "",
    ),
    "a list": ("---\na:\n- one\n- 'two'\nb:\n  - c # d\n  # e\n  - f\n---\n", {"a": "one, two", "b": "c, f"}, ""),
    "a list in brackets": ("---\na: [\n  one,\n  two\n]\nb: [c] [d]\n---\n", {"a": "[ one, two ]", "b": "[c] [d]"}, ""),
    "a table in it": ("---\na:\n  b: c\n  d: e\nf: g\n---\n", {"a": "b: c d: e", "f": "g"}, ""),
    "colons": ("---\na: Use it when: always\n---\n", {"a": "Use it when: always"}, ""),
    "Windows": ("---\r\na: b\r\nc: |\r\n  d\r\n  e\r\n---\r\nHello", {"a": "b", "c": "d\ne"}, "Hello"),
    "no value": ("---\na:\nb: ~\nc: null\n---\n", {"a": "", "b": "", "c": ""}, ""),
}


@all_rows(("text", "fields", "body"), [pytest.param(*row, id=name) for name, row in READ.items()])
def test_fields_and_the_rest(text: str, fields: dict[str, str], body: str) -> None:
    found = front_matter(text)
    assert (found.fields, found.body, found.problem) == (fields, body, "")


@all_rows(
    ("text", "fields", "body", "problem"),
    [
        pytest.param("---\na: b\n", {}, "---\na: b\n", "line 1: --- begins", id="no end"),
        pytest.param("---\na: b\nc d\ne: f\n---\nx", {"a": "b", "e": "f"}, "x", "line 3: it must be", id="no key"),
        pytest.param("---\na: b\na: |\n  c\n---\nx", {"a": "b"}, "x", "line 3: a stands here twice", id="twice"),
    ],
)
def test_invalid_front_matter_is_reported_and_the_rest_kept(
    text: str, fields: dict[str, str], body: str, problem: str
) -> None:
    found = front_matter(text)
    assert (found.fields, found.body, found.problem.startswith(problem)) == (fields, body, True), found.problem
