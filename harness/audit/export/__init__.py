"""Exporters: the one list of the forms that calls can be written in; imports the one that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import TypeAlias

    from harness.audit.export.row import Export

    Exporter: TypeAlias = Callable[[Export], Iterator[str]]
    """Yields the text of an export, piece by piece. Raises LogError."""


def _csv() -> Exporter:
    from harness.audit.export.csv import exported

    return exported


def _jsonl() -> Exporter:
    from harness.audit.export.jsonl import exported

    return exported


def _ocsf() -> Exporter:
    from harness.audit.export.ocsf import exported

    return exported


def _otlp() -> Exporter:
    from harness.audit.export.otlp import exported

    return exported


FORMS: Mapping[str, Callable[[], Exporter]] = {"csv": _csv, "jsonl": _jsonl, "ocsf": _ocsf, "otlp": _otlp}
"""What `--to` takes. A new form is a module with `exported`, a line here, and its test."""
