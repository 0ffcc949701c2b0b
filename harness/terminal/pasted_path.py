"""Pasted paths of pictures, as a terminal gives files that are dropped on it, become mentions: `@/path/shot.png`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

_PICTURE = re.compile(r"/[^\n\0]+\.(?:png|jpe?g|webp|gif)", re.IGNORECASE)
_MOST_PASTE = 65_536
"""Characters: 16 times PATH_MAX."""
_MOST_FILES = 50


def pasted_mention(text: str, is_file: Callable[[str], bool] = os.path.isfile) -> str:
    """Return a paste of nothing but absolute paths, one of a picture at least, with the pictures as mentions and a blank
    behind each path; any other paste as it is.

    `is_file` says whether there is such a file: nothing of it is read here.
    """
    paths = _paths(text, is_file) if len(text) <= _MOST_PASTE else []
    if not any(map(_PICTURE.fullmatch, paths)):
        return text
    from harness.terminal.completion import mention, shell_word

    return "".join(f"@{mention(path)} " if _PICTURE.fullmatch(path) else f"{shell_word(path)} " for path in paths)


def _paths(text: str, is_file: Callable[[str], bool]) -> list[str]:
    """Return the files that a paste names; none where it holds anything else."""
    found: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        # A name with blanks in it may come as it is: then it has the line for itself.
        named = (words for words in (_words(line), [line]) if words and len(words) <= _MOST_FILES)
        paths = next((words for words in named if all(word.startswith("/") and is_file(word) for word in words)), None)
        if paths is None or len(found) + len(paths) > _MOST_FILES:
            return []
        found += paths
    return found


def _words(line: str) -> list[str]:
    """Return the words of a line in the forms in which terminals paste paths: an address, in quotes, with backslashes, or as
    it is.
    """
    if line[0] not in "/'\"f":
        return []
    import shlex
    from urllib.parse import unquote

    try:
        words = shlex.split(line)
    except ValueError:  # a quote that does not end
        return []
    return [unquote(word.removeprefix("file://")) if word.startswith("file:///") else word for word in words]
