"""The `[[hooks]]` of a TOML settings file, added and removed as text, so that all other text stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence

from harness.actions import JsonValue

Hook = Mapping[str, JsonValue]
IsOurs = Callable[[JsonValue], bool]
"""Says whether a command line is ours."""

_HEADER = re.compile(r"^(?=\[)", re.MULTILINE)
"""Matches before a line that begins a table."""


def hooks_in(text: str) -> list[Hook]:
    """Return the hooks of a TOML text. Raises ValueError for an invalid text, and for hooks that are no list of tables."""
    return tables(tomllib.loads(text).get("hooks", []))


def tables(hooks: object) -> list[Hook]:
    """Return a value if it is a list of tables. Raises ValueError for any other."""
    if not isinstance(hooks, list) or not all(isinstance(hook, dict) for hook in hooks):
        raise ValueError("`hooks` is not what it should be")
    return hooks


def as_toml(hooks: Sequence[Hook]) -> str:
    """Return hooks, whose values are texts and whole numbers, as TOML."""
    lines = (
        "".join((f"{name} = {json.dumps(value, ensure_ascii=False)}\n") for name, value in hook.items())
        for hook in hooks
    )
    return "".join(f"[[hooks]]\n{hook}" for hook in lines)


def with_hooks(text: str, ours: Sequence[Hook], is_ours: IsOurs) -> str:
    """Return a TOML text whose hooks are those of others, and then `ours`.

    Raises ValueError for an invalid text, and if the hooks cannot be changed without other changes.
    """
    before = hooks_in(text)
    if [hook for hook in before if is_ours(hook.get("command"))] == list(ours):
        return text
    rest = _without_ours(text, is_ours)
    gap = "" if not ours or not rest else "\n" if rest.endswith("\n") else "\n\n"
    changed = f"{rest}{gap}{as_toml(ours)}"
    other_hooks = [hook for hook in before if not is_ours(hook.get("command"))]
    if hooks_in(changed) != [*other_hooks, *ours] or _without_hooks(changed) != _without_hooks(text):
        raise ValueError("the hooks cannot be changed without a change of other settings")
    return changed


def _without_ours(text: str, is_ours: IsOurs) -> str:
    """Return a TOML text without our hooks, and without the blank line before the first of them."""
    parts = _HEADER.split(text)
    places = [place for place, part in enumerate(parts) if _is_our_part(part, is_ours)]
    if places and places[0] and parts[places[0] - 1].endswith("\n\n"):
        parts[places[0] - 1] = parts[places[0] - 1][:-1]
    return "".join(part for place, part in enumerate(parts) if place not in places)


def _is_our_part(part: str, is_ours: IsOurs) -> bool:
    """Return whether a part of the text, up to the next table, is one of our hooks."""
    if not part.startswith("[["):
        return False
    try:
        (hook,) = hooks_in(part)
    except ValueError:
        return False
    return is_ours(hook.get("command"))


def _without_hooks(text: str) -> Mapping[str, object]:
    return {name: value for name, value in tomllib.loads(text).items() if name != "hooks"}
