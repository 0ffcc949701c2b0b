"""Which files a rule may be suggested for: plain ones of the workspace, by their exact names; pure, judges nothing."""

from __future__ import annotations

import re
from posixpath import basename

from harness.actions import PathAccess, Place
from harness.built_in import is_entry_point
from harness.suggestions.rule_text import is_text

_PATTERN_CHARACTERS = frozenset("*?[]\\!#")
_SECRET = re.compile(
    r"(?:^|[._-])env(?:$|[._-])|^id_(?:rsa|dsa|ecdsa|ed25519)|secret|credential|passw|\.(?:pem|key|p12|pfx|jks|kdbx)$"
)
"""Names of files that tend to hold secrets, or to set what programs run with."""


def is_plain(name: str) -> bool:
    """Say whether a name can stand in a rule as the pattern of itself."""
    return name.isprintable() and name == name.strip() and is_text(name) and _PATTERN_CHARACTERS.isdisjoint(name)


def file_problem(path: PathAccess) -> str:
    """Return why no rule about one file can be about this one; or nothing."""
    if not all(map(is_plain, path.names)):
        return "its name cannot stand in a rule as it is"
    if path.place is not Place.INSIDE:
        return "it lies outside the workspace"
    return name_problem(path)


def name_problem(path: PathAccess) -> str:
    """Return what the names of a file inside the workspace say against a rule about it; or nothing."""
    if any(is_entry_point(name) for name in (path.real, *path.names)):
        return "builds and tests run it without naming it"
    parts = [part for name in path.names for part in name.casefold().split("/")]
    if any(part.startswith(".") and part not in (".", "..") for part in parts):
        return "its name, or that of a folder, begins with a dot: programs obey such files"
    if any(_SECRET.search(part) for part in parts):
        return "its name is like those of files that hold secrets"
    return ""


def is_about(path: PathAccess, name: str) -> bool:
    """Say whether a path is the file of that name in the workspace, or a tree that may hold it."""
    if name in path.names or name in path.below:
        return True
    if not path.tree:
        return False
    return path.place is not Place.INSIDE or any(name.startswith(f"{folder}/") for folder in path.names)


def may_mention(text: str, name: str) -> bool:
    """Say whether a text, of which no more is known, may be about a file."""
    return name in text or basename(name) in text
