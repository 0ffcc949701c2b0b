"""The last line of a match over every case: `typing.assert_never` for type checkers, without what importing typing costs."""

from __future__ import annotations

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import assert_never
else:

    def assert_never(value):
        """Raise AssertionError: a case came that the type checker had ruled out."""
        raise AssertionError(f"a case that no branch is for: {value!r}")


__all__ = ["assert_never"]
