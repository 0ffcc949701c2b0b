"""The redactor of an installation: its key in the state folder, and what of the environment is secret; never says a value."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping

from harness.cli.state import State
from harness.programs.variables import HARMLESS, PASSED, SET
from harness.redaction import Redactor
from harness.redaction.checks import is_long_chance
from harness.redaction.shapes import shape_spans, shapes_for

KEY_BYTES = 32
"""As long as what SHA-256 gives: RFC 2104, section 3, wants no less."""

_ONE_WORD = re.compile(r"[A-Za-z0-9_+/=.~-]{20,4096}")
_PUBLIC = re.compile(
    r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}"  # a commit, a digest
    r"|(?=[a-z0-9.-]*[.-])[a-z0-9.-]+"  # a name of a host, a pod, a build (RFC 1123, section 2.1)
)


def redactor_for(state: State, environment: Mapping[str, str], secrets: Iterable[str]) -> Redactor:
    """Return what masks `secrets` and what the environment withholds from commands and looks secret.

    Its key is the installation's, so that equal secrets have equal marks in all its logs; made on first use. Where it can
    be neither read nor made, the key is a random one, and marks are equal within this process only.
    """
    return Redactor((*secrets, *withheld_secrets(environment)), key=installation_key(state))


def withheld_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the values that no command gets from the environment and that look secret, whatever their names.

    A value is one if it looks as if chance had made it, or holds what a shape finds (then that: a password in an address).
    The others are left: the name of a host, a commit or a version is withheld as well, and text without them could not be
    read any more. What a variable holds whose name says that it is secret, harness/cli/provider.py knows (`secrets_of`).
    """
    given = PASSED | SET | HARMLESS | {"PATH"}
    values = [value for name, value in environment.items() if name not in given]
    return list(dict.fromkeys(secret for value in values for secret in _secrets_in(value)))


def _secrets_in(value: str) -> Iterator[str]:
    from urllib.parse import unquote

    word = value.strip()
    if _ONE_WORD.fullmatch(word) and not _PUBLIC.fullmatch(word) and is_long_chance(word):
        yield word
    for span in shape_spans(value, shapes_for(value)):
        secret = value[span.start : span.end]
        yield secret
        yield unquote(secret)


def installation_key(state: State) -> bytes:
    """Return the key of this installation's marks: `redaction_key` in the state folder; empty if it cannot be had.

    Of two processes that make it at once, both return the same.
    """
    path = os.path.join(state.state, "redaction_key")
    key = _read(path)
    if key:
        return key
    try:
        os.makedirs(state.state, mode=0o700, exist_ok=True)
        _make(path)
    except OSError:
        return b""
    return _read(path)


def _read(path: str) -> bytes:
    """Return the key at `path`, or nothing: it is missing, a link, somebody else's, or not of our making."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            return b""
        key = os.read(descriptor, KEY_BYTES + 1)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    return key if len(key) == KEY_BYTES else b""


def _make(path: str) -> None:
    """Make a key at `path` if there is none: whole from the first moment, as link(2) gives a name only to what is written."""
    draft = f"{path}.{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        os.write(descriptor, os.urandom(KEY_BYTES))
        os.fsync(descriptor)
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first, and its key holds
    finally:
        os.close(descriptor)
        os.unlink(draft)
