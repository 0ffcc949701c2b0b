"""Secrets in the environment, and the redactor that masks them, with the key of this installation."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.programs.variables import HARMLESS, PASSED, SET
from harness.redaction.known_values import MIN_SECRET_CHARACTERS, forms_of_lines, is_ordinary
from harness.redaction.redactor import Redactor
from harness.redaction.secret_checks import is_long_chance
from harness.redaction.shapes import shape_spans, shapes_for
from harness.regex import regex
from harness.safe_files import MAY_USE, make_private, open_private, sync_path
from harness.session.state import State

KEY_BYTES = 32
"""Length of the key in bytes: the output length of SHA-256, the minimum in RFC 2104, section 3."""

_ONE_WORD = regex(r"[A-Za-z0-9_+/=.~-]{20,4096}")
_PUBLIC = regex(
    r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}"  # a commit, a digest
    r"|(?=[a-z0-9.-]*[.-])[a-z0-9.-]+"  # a name of a host, a pod, a build (RFC 1123, section 2.1)
)


_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH", "PRIVATE", "COOKIE", "WEBHOOK")
_PLACES = (
    "_FILE",
    "_PATH",
    "_DIR",
    "_HOME",
    "_SOCK",
    "_URL",
    "_URI",
    "_ENDPOINT",
    "_HOST",
    "_DOMAIN",
    "_TYPE",
    "_PARALLELISM",
)
"""Endings of variables that hold the location of a secret, not the secret itself."""
_WORKING_FOLDERS = ("PWD", "OLDPWD", "INIT_CWD")


def _ignore(line: str) -> None:
    pass


def redactor_for(
    state: State,
    environment: Mapping[str, str],
    secrets: Iterable[str],
    *,
    unless: Iterable[str] = (),
    tell: Callable[[str], None] = _ignore,
) -> Redactor:
    """Return a redactor for `secrets` and for environment values that look secret and are withheld from commands.

    `unless` are texts that must stay readable: the path of the workspace, the home folder. A value that occurs in one
    of them is not masked anywhere. Otherwise a part of every path in the log would be masked, which breaks undo,
    resuming and the audit. `tell` gets problems as plain lines without the values.

    The key is that of the installation, so that equal secrets have equal marks in all its logs. It is made on first
    use. If it can be neither read nor made, a random key is used, and marks are equal within this process only.
    """
    readable, masked = tuple(unless), []
    for secret in dict.fromkeys((*secrets, *withheld_secrets(environment))):
        place = _path_with(secret.strip(), readable)
        if not place:
            masked.append(secret)
        else:
            tell(
                f"a value that counts as secret stands in the path {place}: it is not masked, or no path could be read"
            )
    return Redactor(masked, key=installation_key(state, tell))


def _path_with(plain: str, readable: Iterable[str]) -> str:
    """Return the first text in which a known value would be masked, or an empty string."""
    if len(plain) < MIN_SECRET_CHARACTERS or is_ordinary(plain):
        return ""  # it is masked nowhere
    forms = (plain, *forms_of_lines(plain))
    return next((text for text in readable if any(form in text for form in forms)), "")


def secrets_of(environment: Mapping[str, str], key_variable: str = "", address: str = "") -> list[str]:
    """Return the values to mask: of variables with secret names, of the key's variable, and the secrets in an
    address.

    An address may hold a password, and secrets in its query. `withheld_secrets` finds values that look secret by
    themselves: a password in DATABASE_URL.
    """
    secrets = [value for name, value in environment.items() if _sounds_secret(name)]
    if address:
        secrets += _secrets_in_address(address)
    secrets.append(environment.get(key_variable, ""))
    return list(dict.fromkeys(value for value in secrets if value))


def _secrets_in_address(address: str) -> list[str]:
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        parts = urlsplit(address)
        return [parts.password or "", unquote(parts.password or ""), *(value for _, value in parse_qsl(parts.query))]
    except ValueError:
        return []  # an invalid address is refused elsewhere


def _sounds_secret(name: str) -> bool:
    upper = name.upper().replace("AUTHOR", "")  # GIT_AUTHOR_NAME
    if upper in _WORKING_FOLDERS or upper.endswith(_PLACES):
        return False
    return any(word in upper for word in _SECRET_WORDS)


def withheld_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return the environment values that are withheld from commands and look secret, whatever their variable's name.

    A value looks secret if it looks random, or if a shape of a secret matches inside it (then only that part: a password
    in an address). Other withheld values, such as host names, commits and versions, are not returned: masking them
    would make texts unreadable. `secrets_of` finds the variables with secret names.
    """
    passed_names = PASSED | SET | HARMLESS | {"PATH"}
    values = [value for name, value in environment.items() if name not in passed_names]
    return list(dict.fromkeys(secret for value in values for secret in _secrets_in(value)))


def _secrets_in(value: str) -> Iterator[str]:
    word = value.strip()
    if _ONE_WORD.fullmatch(word) and not _PUBLIC.fullmatch(word) and is_long_chance(word):
        yield word
    for span in shape_spans(value, shapes_for(value)):
        secret = value[span.start : span.end]
        yield secret
        if "%" in secret:
            from urllib.parse import unquote

            yield unquote(secret)


def installation_key(state: State, tell: Callable[[str], None] = _ignore) -> bytes:
    """Return the key of this installation's marks (`redaction_key` in the state folder), or empty bytes if that fails.

    Two processes that make it at once return the same key. A key that is too short was written incompletely and is
    replaced. Any other unusable file at that path is neither used nor replaced; `tell` gets one line about it.
    """
    path = state.redaction_key
    key = _read(path)
    if key is None or (isinstance(key, bytes) and len(key) < KEY_BYTES):
        try:
            make_private(state.state)
            _make(path) if key is None else _make_anew(path)
            key = _read(path)
        except OSError as error:
            key = error.strerror
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    problem = key if isinstance(key, str) else "it was taken away"
    tell(f"{path} cannot be used ({problem}): until that is mended, equal secrets have other marks in each run")
    return b""


def _read(path: str) -> bytes | str | None:
    """Return the key at `path` (it may be too short), a text about a problem with the file, or `None` if it is missing."""
    try:
        descriptor = open_private(path, os.O_RDONLY, closed=MAY_USE)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error.strerror)
    try:
        size = os.fstat(descriptor).st_size
        if size > KEY_BYTES:
            return f"it has {size} bytes instead of {KEY_BYTES}"
        return os.read(descriptor, KEY_BYTES)
    except OSError as error:
        return str(error.strerror)
    finally:
        os.close(descriptor)


def _make(path: str) -> None:
    """Make a key at `path` if there is none. It is never visible incomplete: link(2) names a file already written."""
    draft = _draft(path)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was first, and its key holds
    finally:
        os.unlink(draft)
    sync_path(os.path.dirname(path))


def _make_anew(path: str) -> None:
    """Replace a key that is too short, unless another process has done so. A lock on the old file prevents a race.

    INVARIANT: a complete key is never replaced. The file is checked after locking, since it may be new already.
    """
    old = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(old, fcntl.LOCK_EX)
        opened_status, path_status = os.fstat(old), os.lstat(path)
        if (opened_status.st_dev, opened_status.st_ino) == (
            path_status.st_dev,
            path_status.st_ino,
        ) and opened_status.st_size < KEY_BYTES:
            os.rename(_draft(path), path)
            sync_path(os.path.dirname(path))
    finally:
        os.close(old)


def _draft(path: str) -> str:
    """Write a new key beside `path` and return its path; a failure leaves no file."""
    draft = f"{path}.{os.urandom(6).hex()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        remaining = os.urandom(KEY_BYTES)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.fsync(descriptor)
    except BaseException:
        os.unlink(draft)
        raise
    finally:
        os.close(descriptor)
    return draft
