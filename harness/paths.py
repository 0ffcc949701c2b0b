"""Absolute paths compared part by part; pure: it looks at no disk."""

from __future__ import annotations


def is_within(path: str, folder: str) -> bool:
    """Say whether `path` is `folder` or lies beneath it: /repo-evil is not within /repo. Both absolute and normalised."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")
