"""CSV: a header, then one row per call. The columns are the fields of row.py, in their order."""

from __future__ import annotations

from collections.abc import Iterator

from harness.app.audit.csv_cell import csv_row
from harness.audit.calls import LoggedCall
from harness.plugins.insight.export.row import Export, row

_EMPTY = LoggedCall(log="", session="", number="0", started={})


def exported(export: Export) -> Iterator[str]:
    """Yield the header, then one row per call. Raises LogError."""
    yield ",".join(row(_EMPTY, Export(export.logs, content=export.content))) + "\r\n"
    for call in export.logs.calls():
        yield csv_row(row(call, export).values())
