"""Addresses of servers: what of one may be shown, and whether it leads to this machine; pure."""

from __future__ import annotations

import re

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""The names by which people write this machine."""

_LOOPBACK = re.compile(r"https?://(localhost|127(?:\.\d+){3}|\[::1\])(?::|/|$)", re.IGNORECASE)


def shown_address(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    return re.sub(r"//[^/]*@", "//", url.partition("?")[0]).rstrip("/")


def loopback_host(url: str) -> str:
    """Return the host of an address, in lower case, if it is this machine itself; else nothing."""
    found = _LOOPBACK.match(url)
    return found[1].lower() if found is not None else ""


def is_local(url: str) -> bool:
    """Say whether an address leads to this machine itself."""
    return bool(loopback_host(url))
