"""The SHA-256 of bytes, without OpenSSL where that can be had, as the standard library's `random` does it.

Loading OpenSSL takes 3 ms, and each call of another agent is a short process or two.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


def digest_of(data: bytes) -> str:
    """Return it in hex."""
    text: str = _module().sha256(data).hexdigest()
    return text


@cache
def _module() -> Any:
    from importlib import import_module

    try:
        return import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256")
    except ImportError:  # a Python that was built without
        return import_module("hashlib")
