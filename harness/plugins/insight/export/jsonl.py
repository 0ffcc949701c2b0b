"""JSON Lines: one flat object a call, in ASCII, the fields of row.py in their order. Null where a log does not say."""

from __future__ import annotations

from collections.abc import Iterator

from harness.plugins.insight.export.row import Export, encoded, row


def exported(export: Export) -> Iterator[str]:
    """Yield a line a call. Raises LogError."""
    for call in export.logs.calls():
        yield encoded(row(call, export))
