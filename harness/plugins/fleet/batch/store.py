"""Stores of named files: a local folder, or a URL that fsspec can access.

Files at a URL are read back after writing.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from harness.errors import HarnessError, UsageError
from harness.safe_files import NEW_FILE, name_beside, remove_if_there, replace_file, sync_path
from harness.text.visible import visible_line

Pieces: TypeAlias = Callable[[], Iterable[bytes]]
"""Returns the pieces of a file's content. It can be called again, since a write may have to be repeated."""

PIECE_BYTES = 8 << 20
READ_BACK_BYTES = 1 << 20
"""Maximum number of bytes, at the end of a file, that are read back after a write."""
PAUSES = (1.0, 4.0, 15.0)
"""Seconds to wait before each retry after a temporary failure of a store."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*)://(.*)", re.DOTALL)
_FOR_GOOD = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
)
_NOT_EXCLUSIVE = frozenset((errno.ENOSYS, errno.EOPNOTSUPP))
_T = TypeVar("_T")


class ResultsError(HarnessError):
    """Raised if a place of results is full, unreachable or not writable, or a file differs from its expected content."""


class Store(Protocol):
    """Files by name, with `/` between the parts of a name. Every method raises ResultsError if it fails."""

    address: str
    """Address of the store, for messages."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; empty for a missing folder. Raises ResultsError."""

    def size(self, name: str) -> int | None:
        """Return the size of a file in bytes. `None` if it does not exist. Raises ResultsError."""

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file."""

    def create(self, name: str, pieces: Pieces) -> bool:
        """Write a new file. Return False, and write nothing, if it exists already."""

    def replace(self, name: str, pieces: Pieces) -> None:
        """Write or replace a file."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""


def is_url(out: str) -> bool:
    """Return whether `out` is a URL, not a folder."""
    return bool(_URL.match(out))


def store_at(out: str, *, pauses: Sequence[float] = PAUSES) -> Store:
    """Return the store at `out`: a folder, also as a `file://` URL, or another URL. Nothing is read or written yet.

    `pauses` are the seconds before each retry. Raises UsageError for an invalid URL, for one with credentials, and if
    the package for its protocol is not installed.
    """
    match = _URL.match(out)
    if match is None:
        return FolderStore(os.path.abspath(out))
    protocol, rest = match[1].lower(), match[2]
    _check_url(out, rest)
    if protocol == "file":
        path = rest.removeprefix("localhost") if rest.startswith("localhost/") else rest
        if not path.startswith("/"):
            raise UsageError(f"{_visible(out)}: a file:// URL has an absolute path, as in file:///srv/results")
        return FolderStore(os.path.abspath(path))
    return UrlStore(f"{protocol}://{rest}".rstrip("/"), pauses=pauses)


def _check_url(out: str, rest: str) -> None:
    if "@" in rest.partition("/")[0]:
        # The message does not repeat the text, since it contains a secret.
        raise UsageError(
            "the URL of the results holds a name or a key before '@': give credentials to the store's own settings"
        )
    if "?" in rest or "#" in rest:
        raise UsageError(
            "the URL of the results ends in '?' or '#' and more: leave that out; settings are the store's own"
        )
    if "::" in out:
        raise UsageError(f"{_visible(out)}: '::' is not taken in the URL of results")
    if not rest.strip("/"):
        raise UsageError(f"{_visible(out)}: it names no place, as in s3://bucket/run")
    if ".." in rest.split("/"):
        raise UsageError(f"{_visible(out)}: '..' is not taken in the URL of results")


def _visible(text: str) -> str:
    return visible_line(text, 300)


class FolderStore:
    """Files below a folder. Writes are synced to disk, and only the owner can read the files."""

    def __init__(self, folder: str, *, link: Callable[[str, str], None] = os.link) -> None:
        """Use `folder`, which need not exist yet.

        `link` makes a hard link, and raises FileExistsError if the name exists.
        """
        self.address = folder
        self._link = link

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; empty for a missing folder. Raises ResultsError."""
        try:
            return sorted(os.listdir(self._path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise self._failed("read", folder, error) from None

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none. Raises ResultsError."""
        try:
            status = os.stat(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed("read", name, error) from None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file. Raises ResultsError."""
        try:
            with open(os.open(self._path(name), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                while piece := file.read(PIECE_BYTES):
                    yield piece
        except OSError as error:
            raise self._failed("read", name, error) from None

    def create(self, name: str, pieces: Pieces) -> bool:
        """Write a file that is not there yet. Return False where it is there. Raises ResultsError."""
        path = self._path(name)
        try:
            if os.path.lexists(path):
                return False
            temporary = name_beside(path)
            _make_folder(os.path.dirname(path))
            replace_file(temporary, pieces())
            try:
                self._name(temporary, path)
            finally:
                remove_if_there(temporary)
            sync_path(os.path.dirname(path))
        except FileExistsError:
            return False
        except OSError as error:
            raise self._failed("written", name, error) from None
        return True

    def replace(self, name: str, pieces: Pieces) -> None:
        """Write or replace a file. Raises ResultsError."""
        path = self._path(name)
        try:
            _make_folder(os.path.dirname(path))
            replace_file(path, pieces())
            sync_path(os.path.dirname(path))
        except OSError as error:
            raise self._failed("written", name, error) from None

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Raises ResultsError."""
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._failed("removed", name, error) from None

    def _name(self, temporary: str, path: str) -> None:
        """Give a temporary file its final name. Raises FileExistsError if the name exists, and OSError."""
        try:
            self._link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.close(os.open(path, NEW_FILE, 0o600))
            os.rename(temporary, path)

    def _path(self, name: str) -> str:
        return os.path.join(self.address, name) if name else self.address

    def _failed(self, action: str, name: str, error: OSError) -> ResultsError:
        return ResultsError(f"{_visible(self._path(name))} cannot be {action}: {error.strerror or error}")


def _make_folder(path: str) -> None:
    """Make a folder and its missing parents, all with mode 0700. Raises OSError.

    `os.makedirs` applies its mode to the last folder only.
    """
    if not os.path.isdir(path):
        _make_folder(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass


class UrlStore:
    """Files below a URL, through fsspec. The credentials must permit listing, since listings are not cached.

    A new file is created exclusively (fsspec's mode "xb") if the store supports that. Otherwise only a check for the
    file precedes the write, so that two simultaneous writers of one name can overwrite each other.
    """

    def __init__(self, url: str, *, pauses: Sequence[float] = PAUSES) -> None:
        """Use a checked URL. Raises UsageError if fsspec, or its package for this protocol, is not installed."""
        self.address = _visible(url)
        self._pauses = pauses
        try:
            import fsspec
        except ImportError:
            raise UsageError(
                f"{self.address}: results at a URL need fsspec: pip install 'permission-harness[fleet]'"
            ) from None
        protocol = url.partition("://")[0]
        try:
            kind = fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            raise UsageError(f"{self.address}: {_visible(str(error))}") from None
        except ValueError:
            raise UsageError(f"{self.address}: nothing that is installed reads {protocol}:// URLs") from None
        try:
            self._files: Any = kind()
        except Exception as error:  # noqa: BLE001 - each store raises its own
            raise UsageError(f"{self.address}: {_words(error)}") from None
        self._root: str = kind._strip_protocol(url)  # noqa: SLF001 - fsspec's own word for it, of every store

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder; empty for a missing folder. Raises ResultsError."""

        def list_names() -> Sequence[str]:
            self._files.invalidate_cache()
            try:
                paths = self._files.ls(self._path(folder), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return ()
            return sorted({str(path).rstrip("/").rpartition("/")[2] for path in paths})

        return self._tried("listed", folder, list_names)

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None where there is none. Raises ResultsError."""
        return self._tried("read", name, partial(self._size, name))

    def read(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file. Raises ResultsError."""
        size = self.size(name)
        if size is None:
            raise ResultsError(f"{self._display_address(name)} is not there")
        for start in range(0, size, PIECE_BYTES):
            yield self._part(name, start, min(start + PIECE_BYTES, size))

    def create(self, name: str, pieces: Pieces) -> bool:
        """Write a file that is not there yet. Return False where it is there. Raises ResultsError."""

        def create_file() -> bool:
            if self._size(name) is not None:
                return False
            try:
                return self._write(name, pieces, "xb")
            except FileExistsError:
                return False
            except (NotImplementedError, ValueError, TypeError):
                return self._write(name, pieces, "wb")
            except OSError as error:
                if error.errno not in _NOT_EXCLUSIVE:
                    raise
                return self._write(name, pieces, "wb")

        return self._tried("written", name, create_file)

    def replace(self, name: str, pieces: Pieces) -> None:
        """Write or replace a file. Raises ResultsError."""
        self._tried("written", name, lambda: self._write(name, pieces, "wb"))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there. Raises ResultsError."""

        def removed() -> None:
            try:
                self._files.rm_file(self._path(name))
            except FileNotFoundError:
                pass

        self._tried("removed", name, removed)

    def _size(self, name: str) -> int | None:
        self._files.invalidate_cache()
        try:
            info = self._files.info(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            return None
        size = info.get("size")
        return size if info.get("type") == "file" and isinstance(size, int) else None

    def _part(self, name: str, start: int, end: int) -> bytes:
        """Return bytes of a file from `start` to `end`. Raises ResultsError."""
        part = self._tried("read", name, lambda: bytes(self._files.cat_file(self._path(name), start=start, end=end)))
        if len(part) != end - start:
            raise ResultsError(
                f"{self._display_address(name)} cannot be read: the store sent {len(part)} of {end - start} bytes"
            )
        return part

    def _write(self, name: str, pieces: Pieces, mode: str) -> bool:
        """Write a file, then compare its size and its last bytes with the stored ones.

        Raises the store's own errors.
        """
        path = self._path(name)
        size, end = 0, b""
        with self._opened(path, mode) as file:
            for piece in pieces():
                file.write(piece)
                size += len(piece)
                end = (end + piece)[-READ_BACK_BYTES:]
        stored_size = self._size(name)
        if stored_size != size:
            raise OSError(errno.EIO, f"{size} bytes were written, and {stored_size} are there")
        if size and bytes(self._files.cat_file(path, start=size - len(end), end=size)) != end:
            raise OSError(errno.EIO, "other bytes are there than were written")
        return True

    def _opened(self, path: str, mode: str) -> Any:
        """Open a file for writing.

        Make its folder if the store needs that, but never a bucket. Raises the store's errors.
        """
        try:
            return self._files.open(path, mode)
        except FileNotFoundError:
            top = path.partition("/")[0] or "/"
            if not self._files.exists(top):
                raise
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            return self._files.open(path, mode)

    def _tried(self, action: str, name: str, call: Callable[[], _T]) -> _T:
        """Return the result of `call`. After a temporary failure, retry after each pause. Raises ResultsError."""
        for pause in (*self._pauses, None):
            try:
                return call()
            except ResultsError:
                raise
            except Exception as error:  # noqa: BLE001 - each store raises its own
                if pause is None or (isinstance(error, OSError) and error.errno in _FOR_GOOD) or _is_for_good(error):
                    raise ResultsError(f"{self._display_address(name)} cannot be {action}: {_words(error)}") from None
                time.sleep(pause)
        raise AssertionError(action)  # the last pause is None

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _display_address(self, name: str) -> str:
        return f"{self.address}/{_visible(name)}" if name else self.address


def _is_for_good(error: Exception) -> bool:
    """Return whether an error is permanent: missing credentials, permissions or place. Some stores set no errno."""
    return (
        isinstance(error, FileNotFoundError | PermissionError | NotImplementedError)
        or "Credentials" in type(error).__name__
    )


def _words(error: Exception) -> str:
    """Return the message of a store's error on one line. The query of a URL is removed, since it may be a signature."""
    error_text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _visible(re.sub(r"(https?://[^\s?]+)\?\S*", r"\1", str(error_text)) or type(error).__name__)


def pieces_of_file(path: str) -> Pieces:
    """Return the pieces of a local file. Iterating raises ResultsError if the file cannot be read."""
    return lambda: FolderStore(os.path.dirname(path)).read(os.path.basename(path))


def digest_of_pieces(pieces: Iterable[bytes], max_bytes: int | None = None) -> str:
    """Return the SHA-256 of the content, or of its first `max_bytes` bytes, in hexadecimal."""
    digest, remaining = hashlib.sha256(), max_bytes
    for piece in pieces:
        digest.update(piece if remaining is None else piece[:remaining])
        if remaining is not None:
            remaining -= min(remaining, len(piece))
            if not remaining:
                break
    return digest.hexdigest()
