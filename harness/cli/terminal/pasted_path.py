"""A pasted path of a picture, as a terminal gives a file that is dropped on it, becomes a mention: `@/path/shot.png`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

_PICTURE = re.compile(r"/[^\n\0]+\.(?:png|jpe?g|webp|gif)", re.IGNORECASE)
_MOST_PATH = 4_096
"""Characters (PATH_MAX)."""


def pasted_mention(text: str, is_file: Callable[[str], bool] = os.path.isfile) -> str:
    """Return a paste that is the absolute path of a picture as a mention with a blank behind it; any other as it is.

    `is_file` says whether there is such a file: nothing of it is read here.
    """
    path = _bare_path(text.strip()) if len(text) <= _MOST_PATH else ""
    if not _PICTURE.fullmatch(path) or not is_file(path):
        return text
    from harness.cli.terminal.completion import mention

    return f"@{mention(path)} "


def _bare_path(text: str) -> str:
    """Return a path out of the forms in which terminals paste one: an address, in quotes, with backslashes, or as it is."""
    if text.startswith("file:///"):
        from urllib.parse import unquote

        return unquote(text[len("file://") :])
    if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return re.sub(r"\\(.)", r"\1", text) if re.fullmatch(r"(?:[^\\\s]|\\.)+", text) else text
