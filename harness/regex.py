"""Regular expressions that are compiled on first use.

Compiling all that the start defines takes 15 ms, and most calls need only a few of them.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast


class _Regex:
    """Proxy of a compiled expression. Compiles on first access to a method, and caches that method."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags
        _all.append(self)

    def __getattr__(self, name: str) -> object:
        method: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


_all: list[_Regex] = []


def compile_all() -> None:
    """Compile all expressions of the modules that are loaded: for a process that forks others."""
    for expression in _all:
        for name in ("match", "search", "fullmatch", "finditer", "sub", "split"):
            getattr(expression, name)


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return an expression that is compiled on first use. A syntax error in `text` is raised only then."""
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))
