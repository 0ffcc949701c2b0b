"""CSV: one row a call (RFC 4180), with a header. No cell can run as a formula, and none holds a control character.

The columns are the fields of row.py, in their order. A text that would be taken for a formula has an apostrophe
in front of it (OWASP, "CSV Injection"); numbers are numbers. Read it with the comma as separator, whatever a
spreadsheet's language prefers.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.audit.calls import LoggedCall
from harness.plugins.insight.export.row import Cell, Export, row
from harness.text.visible import visible

_FORMULA = frozenset("=+-@|%\t\r\n\uff1d\uff0b\uff0d\uff20\uff5c\uff05")
"""What a formula begins with, also in full width, which some programs take for the same."""
_LINE_END = "\r\n"
_EMPTY = LoggedCall(log="", session="", number="0", started={})


def exported(export: Export) -> Iterator[str]:
    """Yield the header, and a row a call. Raises LogError."""
    header = row(_EMPTY, Export(export.logs, content=export.content))
    yield ",".join(header) + _LINE_END
    for call in export.logs.calls():
        yield ",".join(cell(value) for value in row(call, export).values()) + _LINE_END


def cell(value: Cell) -> str:
    """Return one value as a cell: text always quoted, so that nothing in it can end the cell."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            shown = visible(value).replace("\n", "\\n").replace("\t", "\\t")
            mark = "'" if is_formula(value) or is_formula(shown) else ""
            quoted = shown.replace('"', '""')
            return f'"{mark}{quoted}"'


def is_formula(text: str) -> bool:
    """Say whether a spreadsheet could take a text for a formula, leading blanks of any kind passed over."""
    return text[:1] in ("\t", "\r", "\n") or text.lstrip()[:1] in _FORMULA
