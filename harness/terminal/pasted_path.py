"""Convert pasted paths of files that the model can see (such as pictures) into mentions: `@/path/shot.png`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

from harness.session.shipped_plugins import shown_endings
from harness.terminal.completion import mention, shell_word

_MOST_PASTE = 65_536
"""Maximum length of a paste to examine, in characters: 16 times PATH_MAX."""
_MOST_FILES = 50


def pasted_mention(text: str, is_file: Callable[[str], bool] = os.path.isfile) -> str:
    """Return a paste of absolute paths in which each file that the model can see is replaced by a mention.

    A blank follows each path. A paste with other text, or without such a file, is returned unchanged. `is_file` returns
    whether a file exists; no file is read here.
    """
    paths = _paths(text, is_file) if len(text) <= _MOST_PASTE else []
    pattern = _shown_path()
    if not any(map(pattern.fullmatch, paths)):
        return text

    return "".join(f"@{mention(path)} " if pattern.fullmatch(path) else f"{shell_word(path)} " for path in paths)


@cache
def _shown_path() -> re.Pattern[str]:
    return re.compile(rf"/[^\n\0]+\.(?:{shown_endings()})", re.IGNORECASE)


def _paths(text: str, is_file: Callable[[str], bool]) -> list[str]:
    """Return the files that a paste names. Empty if it contains other text, or names too many files."""
    paths_found: list[str] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        # A name with blanks may be pasted without quotes; then it is alone on its line.
        splits = (words for words in (_words(line), [line]) if words and len(words) <= _MOST_FILES)
        paths = next((words for words in splits if all(word.startswith("/") and is_file(word) for word in words)), None)
        if paths is None or len(paths_found) + len(paths) > _MOST_FILES:
            return []
        paths_found += paths
    return paths_found


def _words(line: str) -> list[str]:
    """Return the words of a line in a form in which terminals paste paths; empty for other lines.

    The forms are a `file:` URL, quotes, backslashes, and the plain path.
    """
    if line[0] not in "/'\"f":
        return []

    try:
        words = shlex.split(line)
    except ValueError:  # a quote that does not end
        return []
    return [unquote(word.removeprefix("file://")) if word.startswith("file:///") else word for word in words]
