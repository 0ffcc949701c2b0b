"""A row of CSV (RFC 4180). No cell can run as a formula, and none holds a control character.

A text that a spreadsheet would take for a formula gets an apostrophe in front (OWASP, "CSV Injection"); numbers stay numbers.
Read it with the comma as separator, whatever a spreadsheet's language prefers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from harness.text.visible import visible

Cell: TypeAlias = "str | int | float | bool | None"
_FORMULA = frozenset("=+-@|%\t\r\n\uff1d\uff0b\uff0d\uff20\uff5c\uff05")
"""Characters that begin a formula, also in full width, which some programs take for the same."""
_LINE_END = "\r\n"


def csv_row(values: Iterable[Cell]) -> str:
    """Return these values as one row, with its end."""
    return ",".join(map(csv_cell, values)) + _LINE_END


def csv_cell(value: Cell) -> str:
    """Return one value as a cell: text always quoted, so that nothing in it can end the cell."""
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
    """Return whether a spreadsheet could take a text for a formula, after leading blanks of any kind."""
    return text[:1] in ("\t", "\r", "\n") or text.lstrip()[:1] in _FORMULA
