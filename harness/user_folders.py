"""The folders of the user in which the program keeps its files (XDG Base Directory Specification 0.8)."""

from __future__ import annotations

import os
from collections.abc import Mapping

from harness.errors import UsageError

BEFORE_IMAGES = "before_images"
"""Name of the folder with the content of files before they were changed, in the state folder."""
TREES = "trees"
"""Name of the folder with the contents of files around commands, in the state folder."""


def state_folder(environment: Mapping[str, str]) -> str:
    """Return the state folder (default: ~/.local/state/harness). It need not exist. Raises UsageError."""
    return _folder(environment, "XDG_STATE_HOME", os.path.join(".local", "state"))


def configuration_folder(environment: Mapping[str, str]) -> str:
    """Return the configuration folder (default: ~/.config/harness). It need not exist. Raises UsageError."""
    return _folder(environment, "XDG_CONFIG_HOME", ".config")


def _folder(environment: Mapping[str, str], variable: str, fallback: str) -> str:
    """Return the folder below `variable`. A relative path there is ignored, as XDG asks."""
    value = environment.get(variable, "")
    return os.path.join(value if value.startswith("/") else os.path.join(_home(environment), fallback), "harness")


def _home(environment: Mapping[str, str]) -> str:
    """Return the home folder: an absolute $HOME, otherwise that of the account. Raises UsageError if there is neither."""
    home = environment.get("HOME", "")
    if home.startswith("/"):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise UsageError(
            "HOME is not set, and this user has no home folder: set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME"
        ) from None
