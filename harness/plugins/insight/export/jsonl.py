"""JSON Lines: one flat ASCII object per call, with the fields of row.py in their order. Missing values are null."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plugins.insight.export.row import Export, encoded, row


def exported(export: Export) -> Iterator[str]:
    """Yield one line per call. Raises LogError."""
    for call in export.logs.calls():
        yield encoded(row(call, export))
