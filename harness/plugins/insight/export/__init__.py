"""Logged calls in formats of other programs: `audit export --to FORM`.

Read `row` first: one call as flat fields, with notes on values of unexpected types. Each form is one module: `csv`,
`jsonl`, `ocsf`, `otlp`. To add a form, write a module with `exported(export)` and add a row to EXPORTS.

This code only yields text: it verifies no log, sends nothing and writes no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from harness.plugins.insight.export.row import Export


class Exporter(Protocol):
    """A function that yields an export in one form."""

    def __call__(self, export: Export) -> Iterator[str]:
        """Yield the text of an export, piece by piece. Raises LogError."""
        ...


EXPORTS: Mapping[str, str] = {
    "csv": "harness.plugins.insight.export.csv",
    "jsonl": "harness.plugins.insight.export.jsonl",
    "ocsf": "harness.plugins.insight.export.ocsf",
    "otlp": "harness.plugins.insight.export.otlp",
}
"""Module of each form, by the value of `--to`. Imported on demand."""


def exporter(form: str) -> Exporter:
    """Return the writer of a form of EXPORTS."""
    return cast("Exporter", import_module(EXPORTS[form]).exported)
