"""Typed access to arguments that were checked against a schema; only what the tools share, no rules of their own."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.tool import Arguments

PATH_SCHEMA: dict[str, JsonValue] = {
    "type": "string",
    "description": "Relative to the workspace folder, or absolute.",
    "minLength": 1,
}
"""Of the argument `path`, the same for every tool that has one."""


def text(arguments: Arguments, name: str, default: str | None = None) -> str:
    """Return a string argument, or `default` where it was not given.

    Raises TypeError where it is no string and there is no default: the schema was not checked.
    """
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string")
    return value


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return a numeric argument, or `default` where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number")
    return value


def whole(arguments: Arguments, name: str, default: int) -> int:
    """Return a whole number, or `default` where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return a boolean argument, false where it was not given. Raises TypeError for anything else."""
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be true or false")
    return value


def objects(arguments: Arguments, name: str) -> list[Arguments]:
    """Return a list of objects. Raises TypeError for anything else."""
    value = arguments.get(name)
    if not isinstance(value, list):
        raise TypeError(f"{name} must be a list")
    found: list[Arguments] = [item for item in value if isinstance(item, dict)]
    if len(found) != len(value):
        raise TypeError(f"{name} must be a list of objects")
    return found
