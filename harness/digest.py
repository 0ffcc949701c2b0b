"""The SHA-256 digest of bytes, without loading OpenSSL if possible (as in `random` of the standard library).

Loading OpenSSL takes 3 ms, and each call of another agent starts one or two short processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _algorithm() -> Callable[[bytes], Any]:
    try:
        module = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256")
    except ImportError:  # a Python that was built without this module
        module = import_module("hashlib")
    algorithm: Callable[[bytes], Any] = module.sha256
    return algorithm


_sha256 = _algorithm()


def digest_of(data: bytes) -> str:
    """Return the SHA-256 digest of `data` in hexadecimal."""
    text: str = _sha256(data).hexdigest()
    return text
