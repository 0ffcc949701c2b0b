"""Templates: what is filled, and what is refused with file, line and the nearest known name."""

from __future__ import annotations

import pytest
from rows import all_rows

from harness.errors import UsageError
from harness.session.words.template import fill, variables

VALUES = {"workspace": "/w", "date": "2026-01-02"}

FILLED = {
    "no variables": ("plain } { text", "plain } { text"),
    "one": ("in {{workspace}}.", "in /w."),
    "blanks within": ("in {{ workspace }}, {{\tdate}}", "in /w, 2026-01-02"),
    "twice": ("{{date}}{{date}}", "2026-01-022026-01-02"),
    "the braces themselves": (r"\{{workspace}}", "{{workspace}}"),
    "a backslash elsewhere": (r"a\b {{date}}\n", r"a\b 2026-01-02\n"),
    "closing braces alone": ("}} {{date}} }}", "}} 2026-01-02 }}"),
}


@all_rows(("template", "expected"), FILLED.values(), ids=FILLED)
def test_variables_are_replaced(template: str, expected: str) -> None:
    assert fill(template, VALUES, name="t") == expected


def test_a_value_is_not_read_as_a_template() -> None:
    assert fill("{{a}}|{{b}}", {"a": "{{b}}", "b": r"\{{a}} \1"}, name="t") == r"{{b}}|\{{a}} \1"


REFUSED = {
    "an unknown variable": ("a\n{{nope}}", "t:2: no value for {{nope}}; known are: workspace, date"),
    "a misspelt variable": ("{{workspce}}", "t:1: no value for {{workspce}}; did you mean workspace?"),
    "braces that are no variable": (
        "\n\n{{% for %}}",
        r"t:3: {{ begins a variable, as in {{name}}; write \{{ for the braces",
    ),
    "an unclosed one": ("{{date", r"t:1: {{ begins a variable, as in {{name}}; write \{{ for the braces"),
    "an empty one": ("{{}}", r"t:1: {{ begins a variable, as in {{name}}; write \{{ for the braces"),
    "an attribute": ("{{date.year}}", r"t:1: {{ begins a variable, as in {{name}}; write \{{ for the braces"),
    "four braces": ("{{{{date}}}}", r"t:1: {{ begins a variable, as in {{name}}; write \{{ for the braces"),
}


@all_rows(("template", "message"), REFUSED.values(), ids=REFUSED)
def test_unknown_variable_is_refused(template: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        fill(template, VALUES, name="t")
    assert str(raised.value) == message


def test_unused_value_from_the_user_is_refused() -> None:
    assert fill("x", VALUES, name="t") == "x"
    with pytest.raises(UsageError, match=r"^t: {{date}} does not occur, but was given a value$"):
        fill("{{workspace}}", VALUES, name="t", all_used=True)


def test_template_lists_its_names() -> None:
    assert variables(r"{{a}} \{{b}} {{ c }} {{a}}") == {"a", "c"}
