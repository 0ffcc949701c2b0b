"""CSV rows (RFC 4180) whose cells contain no formulas and no control characters.

A text that a spreadsheet would read as a formula gets an apostrophe in front (OWASP, "CSV Injection"). Numbers stay
numbers. The separator is a comma in every locale.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from harness.text.visible import visible

Cell: TypeAlias = "str | int | float | bool | None"
_FORMULA = frozenset("=+-@|%\t\r\n\uff1d\uff0b\uff0d\uff20\uff5c\uff05")
"""Characters that begin a formula. Includes the full-width forms, which some programs treat alike."""
_LINE_END = "\r\n"


def csv_row(values: Iterable[Cell]) -> str:
    """Return these values as one row, with a line end."""
    return ",".join(map(csv_cell, values)) + _LINE_END


def csv_cell(value: Cell) -> str:
    """Return one value as a cell. Text is always quoted, so that it cannot end the cell."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            visible_text = visible(value).replace("\n", "\\n").replace("\t", "\\t")
            mark = "'" if is_formula(value) or is_formula(visible_text) else ""
            quoted = visible_text.replace('"', '""')
            return f'"{mark}{quoted}"'


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet could read a text as a formula. Leading whitespace is ignored."""
    return text[:1] in ("\t", "\r", "\n") or text.lstrip()[:1] in _FORMULA
