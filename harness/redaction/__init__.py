"""Redaction: secrets in a text become marks. Names are imported when first used: what reads a log needs `marks` alone."""

from __future__ import annotations

from harness.redaction.marks import is_redacted as is_redacted

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.redaction.redactor import KNOWN, Redactor

__all__ = ["KNOWN", "Redactor", "is_redacted"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness.redaction import redactor

    return getattr(redactor, name)
