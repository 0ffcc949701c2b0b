"""Texts for the question about trust: the command and the permissions of a program that a project's file would start."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any


def command_words(words: Sequence[object]) -> str:
    """Return a command line as a shell reads it, or `nothing`."""
    return shlex.join(str(word) for word in words if word is not None) or "nothing"


def variable_words(variables: Sequence[object]) -> str:
    """Return a clause that names the environment variables that a program gets. Empty without any."""
    names = ", ".join(str(variable) for variable in variables if variable)
    return f" (it gets your variables {names})" if names else ""


def permission_words(table: Mapping[str, Any]) -> str:
    """Return a clause with the permissions that a table gives a program. Empty without any."""
    places = [str(place) for key in ("write", "writes") for place in _list(table.get(key))]
    may = [f"write {shlex.join(places)}"] if places else []
    may += ["reach the network"] if table.get("network") else []
    return f" (it may {' and '.join(may)})" if may else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
