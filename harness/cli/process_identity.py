"""Who runs this process, and where: what a session's first record says of it; asks the system, not the environment."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.actions import JsonValue


def who_and_where() -> dict[str, JsonValue]:
    """Return who runs this process, by the account's name and number, on which machine, and the process's number."""
    import pwd

    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = ""
    return {"user": user, "uid": os.getuid(), "host": os.uname().nodename, "pid": os.getpid()}
