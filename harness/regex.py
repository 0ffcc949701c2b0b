"""Regular expressions that are compiled when they are first used: all of the start's take 15 ms, and a call needs few."""

from __future__ import annotations

import re
from typing import AnyStr, cast


class _Regex:
    """Gets each method from the compiled expression when it is first asked for, and keeps it."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        method: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, method)
        return method


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile an expression on first use, with the methods of `re.compile`'s result; an error in it is raised then."""
    return cast("re.Pattern[AnyStr]", _Regex(text, flags))
