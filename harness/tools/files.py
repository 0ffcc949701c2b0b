"""Open and read judged paths, never through a link that was put in the way; writes nothing.

INVARIANT: what is opened is the resolved path of the `PathAccess`, every folder on the way opened without following
links, so that a link swapped in after the judgement is an error and never another file.
"""

from __future__ import annotations

import errno
import os
import stat
from itertools import islice

from harness.actions import PathAccess
from harness.errors import ToolError
from harness.visible import visible_line
from harness.workspace import Workspace

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Of a file that is written or edited: its bytes are held in memory and shown as a diff."""
BINARY_PROBE_BYTES = 8192
MAX_LISTED_NAMES = 50
MAX_SEARCHED_NAMES = 5_000
"""Of one folder, when a name like a missing one is looked for."""

_OPEN_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = (
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)
_FORMATS = (
    (b"\x89PNG", "PNG image"), (b"\xff\xd8\xff", "JPEG image"), (b"GIF8", "GIF image"), (b"%PDF", "PDF"),
    (b"PK\x03\x04", "ZIP archive"), (b"\x1f\x8b", "gzip data"), (b"\x7fELF", "ELF program"), (b"SQLite format 3", "SQLite"),
    (b"\xff\xfe", "UTF-16 text"), (b"\xfe\xff", "UTF-16 text"),
)  # fmt: skip


def shown(path: PathAccess) -> str:
    """Return the path as the model wrote it, safe to show and of bounded length."""
    return visible_line(path.written, 300)


def where(path: PathAccess) -> str:
    """Return where the path lies, for a person: with what it leads to, where a link is on the way."""
    return visible_line(" -> ".join(path.names), 1000)


def check_unmoved(workspace: Workspace, path: PathAccess) -> None:
    """Raise ToolError if the path as written leads elsewhere than when it was judged."""
    if workspace.resolve(path.written, path.access) != path:
        raise moved(path)


def moved(path: PathAccess) -> ToolError:
    """Return the error for a path that leads elsewhere than when it was judged."""
    return ToolError(f"{shown(path)} leads elsewhere than when it was judged; nothing was done. Send the call again.")


def open_folder(folder: str, made: list[str] | None = None) -> int:
    """Return a descriptor (O_PATH) of the absolute, resolved `folder`, opened part by part without following links.

    Where `made` is a list, folders that are missing are made (0777 less the umask) and their paths appended to it.

    Raises OSError: FileNotFoundError for a missing folder, NotADirectoryError for a file or a link on the way.
    """
    descriptor = os.open("/", _OPEN_FOLDER)
    path = ""
    for part in folder.split("/"):
        if not part:
            continue
        path = f"{path}/{part}"
        try:
            following = _open_part(descriptor, part, path, made)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def _open_part(parent: int, part: str, path: str, made: list[str] | None) -> int:
    try:
        return os.open(part, _OPEN_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if made is None:
            raise
    try:
        os.mkdir(part, dir_fd=parent)
        made.append(path)
    except FileExistsError:
        pass  # someone else was faster
    return os.open(part, _OPEN_FOLDER, dir_fd=parent)


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return what `name` is in the open `folder`, a link itself and not what it leads to; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def check_regular(status: os.stat_result, path: PathAccess) -> None:
    """Raise ToolError unless `status` is that of a regular file; the text says what it is."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolError(f"Path is a directory: {shown(path)}.")
    if stat.S_ISLNK(mode):
        # A resolved path ends in a link only if following it never ends, or if it was put there just now.
        raise ToolError(f"Too many levels of symbolic links: {shown(path)}.")
    kind = next((word for is_kind, word in _KINDS if is_kind(mode)), "of an unknown kind")
    raise ToolError(f"Not a regular file ({kind}): {shown(path)}.")


def open_file(path: PathAccess) -> int:
    """Return a descriptor of a regular file, for reading; the caller closes it.

    Raises ToolError (written for the model) if it is missing, not regular or not readable.
    """
    folder_path, name = os.path.split(path.real)
    try:
        folder = open_folder(folder_path)
        try:
            return _open_in(folder, name or ".", path)
        finally:
            os.close(folder)
    except FileNotFoundError:
        raise not_found(path) from None
    except OSError as error:
        raise failure(error, path, "read") from None


def _open_in(folder: int, name: str, path: PathAccess) -> int:
    # Looked at before it is opened, since opening a device can do something; and again after, since it may have changed.
    check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    descriptor = os.open(name, _OPEN_FILE, dir_fd=folder)
    try:
        check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_whole(path: PathAccess) -> bytes | None:
    """Return the bytes of a regular file of at most 10 MiB, or None if there is none.

    Raises ToolError if it is larger, not regular or not readable.
    """
    folder_path, name = os.path.split(path.real)
    try:
        folder = open_folder(folder_path)
        try:
            return read_in(folder, name or ".", path)
        finally:
            os.close(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure(error, path, "read") from None


def read_in(folder: int, name: str, path: PathAccess) -> bytes:
    """Return the bytes of `name` in the open `folder`, as `read_whole` does. Raises OSError or ToolError."""
    descriptor = _open_in(folder, name, path)
    with open(descriptor, "rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            size = os.fstat(descriptor).st_size
            raise ToolError(f"File too large: {shown(path)} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are taken.")
    return data


def is_binary(data: bytes) -> bool:
    """Say whether bytes from a file's start are no text: a NUL among the first 8 KiB."""
    return b"\0" in data[:BINARY_PROBE_BYTES]


def binary(path: PathAccess, data: bytes, size: int) -> ToolError:
    """Return the error for a file that is no text; `data` is its beginning, `size` all of it in bytes."""
    known = next((f", {name}" for magic, name in _FORMATS if data.startswith(magic)), "")
    return ToolError(f"Binary file ({size:,} bytes{known}): {shown(path)}.")


def not_found(path: PathAccess) -> ToolError:
    """Return the error for a missing file, with names in the same folder that are like it; none of them is opened."""
    from difflib import get_close_matches

    folder, name = os.path.split(path.real)
    names = names_in(folder, MAX_SEARCHED_NAMES)
    if names is None:
        return ToolError(f"File not found: {shown(path)}. Its folder does not exist.")
    before = path.written.rpartition("/")[0]
    close = [f"{before}/{other}" if before else other for other in get_close_matches(name, names, n=3)]
    question = f" Did you mean: {visible_line(', '.join(close), 1000)}?" if close else ""
    return ToolError(f"File not found: {shown(path)}.{question}")


def names_in(folder: str, most: int) -> list[str] | None:
    """Return at most `most` names in the folder, sorted, or None if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, most))
    except OSError:
        return None


def failure(error: OSError, path: PathAccess, verb: str) -> ToolError:
    """Return what an OSError means for the model; `verb` says what was tried: `read` or `write`."""
    name = shown(path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return ToolError(f"Permission denied: {name}.")
    if error.errno == errno.EISDIR:
        return ToolError(f"Path is a directory: {name}.")
    if error.errno == errno.ENOTDIR:
        return ToolError(f"Not a directory: a part of {name} is a file, or a link that leads in a circle.")
    if error.errno == errno.ELOOP:
        return ToolError(f"Too many levels of symbolic links: {name}.")
    if error.errno == errno.ENAMETOOLONG:
        return ToolError(f"File name too long: {name}.")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ToolError(f"No space left on device; {name} is unchanged.")
    if error.errno == errno.EROFS:
        return ToolError(f"Read-only file system: {name}.")
    if error.errno == errno.EFBIG:
        return ToolError(f"File too large for the process limit; {name} is unchanged.")
    return ToolError(f"Cannot {verb} {name}: {error.strerror or error}.")
