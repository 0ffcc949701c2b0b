"""Calls of logs in other forms, for other programs: `audit export --to FORM`.

Read `row` first: one call as flat fields, with notes on values of unexpected types. Each form is one module: `csv`,
`jsonl`, `ocsf`, `otlp`. A new form is such a module, with `exported(export)`, and one row here.

An export is a view: nothing here verifies a log, sends anything or writes a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from harness.plugins.insight.export.row import Export


class Exporter(Protocol):
    """A writer of a form."""

    def __call__(self, export: Export) -> Iterator[str]:
        """Yield the text of an export, piece by piece. Raises LogError."""
        ...


EXPORTS: Mapping[str, str] = {
    "csv": "harness.plugins.insight.export.csv",
    "jsonl": "harness.plugins.insight.export.jsonl",
    "ocsf": "harness.plugins.insight.export.ocsf",
    "otlp": "harness.plugins.insight.export.otlp",
}
"""Values of `--to`, and the module of each form, which is imported on demand."""


def exporter(form: str) -> Exporter:
    """Return the writer of a form of EXPORTS."""
    return cast("Exporter", import_module(EXPORTS[form]).exported)
