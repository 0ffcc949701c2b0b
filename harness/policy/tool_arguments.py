"""The texts in the arguments of an unknown tool, each interpreted as a path and as an address.

A text that two programs could interpret differently is not a certain path or host. No auto rule covers such a text, but
strict rules match it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from posixpath import normpath
from urllib.parse import unquote

from harness.actions import Access, JsonValue, Place, ToolArgument
from harness.regex import regex
from harness.shell.disk import Disk

MOST_ARGUMENTS = 2_000
"""Maximum number of examined texts. REST represents the others."""
MOST_CHARACTERS = 100_000
"""Maximum total length of texts that may be paths. Limits the work of resolving them."""
MOST_DEPTH = 20
"""Maximum nesting of objects and lists. REST represents deeper content."""
REST = ToolArgument(name="", text="more arguments than are looked at")

_LONGEST_PATH = 4_095
"""PATH_MAX of Linux (limits.h)."""
_FILE_URL = regex(r"(?i)^file:(?://(?:localhost)?(?=/))?")
_ESCAPED = regex(r"%[0-9A-Fa-f]{2}")
_EXPANDED = frozenset("*?[{$`\\")
"""Characters that some programs expand, or interpret as a slash."""
_ADDRESS = regex(r"(?i)^(?:(https?|wss?)://)?([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?(/.*)?$")
_LABEL = regex(r"^(?!-)[a-z0-9-]{1,63}(?<!-)$")
_NUMBER = regex(r"^(?:[0-9]+|0x[0-9a-f]*)$")
_BYTE = regex(r"^(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])$")
_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443"}


def tool_arguments(arguments: Mapping[str, JsonValue], disk: Disk) -> tuple[ToolArgument, ...]:
    """Return every text, number, boolean and null in the arguments. Ends with REST if there are too many."""
    results: list[ToolArgument] = []
    remaining = MOST_CHARACTERS
    for name, text in _texts("", arguments, MOST_DEPTH):
        if text is None or remaining < 0 or len(results) == MOST_ARGUMENTS:
            return (*results, REST)
        names, place = _as_path(text, disk)
        remaining -= len(text) if names else 0
        results.append(ToolArgument(name=name, text=text, names=names, place=place, host=host_of(text)))
    return tuple(results)


def _texts(name: str, value: object, depth: int) -> Iterator[tuple[str, str | None]]:
    """Yield the name and text of each value. The text is `None` for content that is nested too deeply."""
    if isinstance(value, str):
        yield name, value
    elif not isinstance(value, Mapping | list):
        is_whole = isinstance(value, float) and value.is_integer()
        yield name, json.dumps(int(value) if is_whole and isinstance(value, float) else value)
    elif not depth:
        yield name, None
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(f"{name}.{_part(key)}" if name else _part(key), each, depth - 1)
    else:
        for each in value:
            yield from _texts(name, each, depth - 1)


def _part(key: str) -> str:
    """Return a key as a part of a dotted name, in quotes if it is empty or has a dot or a quote."""
    return key if key and not {".", '"'}.intersection(key) else json.dumps(key, ensure_ascii=False)


def _as_path(text: str, disk: Disk) -> tuple[tuple[str, ...], Place]:
    """Return the names for path patterns, and the place. The place is OUTSIDE if the text may mean another path too.

    There are no names if the text cannot be a path in any interpretation.
    """
    url = _FILE_URL.match(text)
    path = unquote(text[url.end() :]) if url else text
    if is_long := len(path) > _LONGEST_PATH:
        path = normpath(path)  # some programs shorten it to a valid path like this
    if not path or len(path) > _LONGEST_PATH:
        return (), Place.OUTSIDE
    sure = path.isprintable() and path == path.strip() and not path.startswith("~") and not _EXPANDED.intersection(path)
    sure = (
        sure and not is_long and not _ESCAPED.search(path) and (url is None or _is_plain_url(text[: url.end()], path))
    )
    readings: tuple[str, ...] = (path,)
    if not sure:
        before = path.partition("\0")[0]
        bare = "".join(char for char in before if char.isprintable()).strip()
        path_part = bare.partition("#")[0].partition("?")[0]
        readings = (path, before, bare, path_part, unquote(bare), bare.replace("\\", "/"))
    locations = [
        location
        for location in (disk.resolve_word(each, Access.EITHER) for each in dict.fromkeys(readings))
        if location
    ]
    names = dict.fromkeys(name for location in locations for name in location.names)
    return tuple(names), locations[0].place if sure and locations else Place.OUTSIDE


def _is_plain_url(begin: str, path: str) -> bool:
    """Return whether a `file:` URL names only a path on this machine."""
    return begin.endswith(("/", "t")) and path[:1] == "/" != path[1:2] and {"#", "\ufffd"}.isdisjoint(path)


def host_of(text: str) -> str:
    """Return the host of a URL, or a bare host name, in lower case, with the port unless it is the scheme's default.

    Empty if programs could interpret the text differently: a user or password before the host, a trailing dot,
    non-ASCII letters, an IPv6 address, an unusual number format, a backslash, a blank.
    """
    match = _ADDRESS.match(text)
    if match is None or not text.isprintable() or not {" ", "\\"}.isdisjoint(text):
        return ""
    scheme, host, port, rest = (part.lower() for part in match.groups(default=""))
    labels = host.split(".")
    if not all(map(_LABEL.match, labels)) or (not scheme and (port or rest)):
        return ""
    if _NUMBER.match(labels[-1]) and not (len(labels) == 4 and all(map(_BYTE.match, labels))):
        return ""
    if not port or port == _PORTS.get(scheme):
        return host
    return f"{host}:{port}" if int(port) < 65_536 else ""
