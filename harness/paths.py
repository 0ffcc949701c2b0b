"""Paths as text: within another, folded, files shortened; pure: it looks at no disk."""

from __future__ import annotations

import unicodedata

XARGS_SPLITS = " \"'\\"
"""What xargs splits words at, or takes for more than itself, of what can be shown."""
SHELL_SPLITS = XARGS_SPLITS + "*?["
"""What a shell may not find in words that are not quoted, for them to stay as they are."""


def is_within(path: str, folder: str) -> bool:
    """Say whether `path` is `folder` or lies beneath it: /repo-evil is not within /repo. Both absolute and normalised."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")


def fold(text: str) -> str:
    """Return `text` case-folded and in normal form C, so that `.ENV` on a case-blind disk is `.env`."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def is_plain_name(name: str, *, split: str) -> bool:
    """Say whether a name, or a path, is one line that can be read, with none of the characters of `split` in it."""
    return name.isprintable() and set(split).isdisjoint(name)


def short_place(by: str) -> str:
    """Shorten `rule look (/long/way/default.toml:58)` to `rule look (default.toml:58)`: the log has the whole path."""
    before, bracket, place = by.rpartition("(")
    return f"{before}{bracket}{place.rpartition('/')[2]}" if bracket else by
