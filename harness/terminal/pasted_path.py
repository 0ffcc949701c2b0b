"""Pasted paths of files, as mentions: `@/path/shot.png`. Terminals paste the path of a file that is dropped on them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

from harness.paths import is_within
from harness.session.shipped_plugins import shown_endings
from harness.terminal.completion import mention, shell_word

_MOST_PASTE = 65_536
"""Maximum length of a paste to examine, in characters: 16 times PATH_MAX."""
_MOST_FILES = 50


def pasted_mention(text: str, is_file: Callable[[str], bool] = os.path.isfile, *, root: str = "") -> str:
    """Return a paste of absolute paths in which a file of the folder `root`, or one such as a picture, is a mention.

    Another path stays a path, without the form of a URL. A blank follows each path. A paste with other text is returned
    unchanged, and so is one of plain paths without a mention. `is_file` returns whether a file exists; no file is read
    here.
    """
    paths = _paths(text, is_file) if len(text) <= _MOST_PASTE else []
    words = [_mention(path, root) or shell_word(path) for path in paths]
    if not any(word.startswith("@") for word in words) and "file://" not in text:
        return text

    return "".join(f"{word} " for word in words) or text


def _mention(path: str, root: str) -> str:
    """Return the mention of a file in `root`, or of one that can be shown to the model. Empty for others."""
    if root and is_within(path, root):
        return f"@{mention(os.path.relpath(path, root))}"
    return f"@{mention(path)}" if _shown_path().fullmatch(path) else ""


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
