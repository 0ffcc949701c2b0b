"""Reading of judged files, with errors about files and folders that the model can read.

INVARIANT: the opened path is the resolved path of the `PathAccess`, and no link on the way is followed. So a link that
was put there after the judgement causes an error and never opens another file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from itertools import islice

from harness.actions import PathAccess
from harness.errors import ErrorCode, ToolError
from harness.files.encoding import BINARY_PROBE_BYTES
from harness.files.folders import names_in, open_folder
from harness.files.repository import tracked_from
from harness.files.workspace import Workspace
from harness.record import Record
from harness.text.visible import one_line, visible_line

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Maximum size of a file to write or edit, in bytes: they are held in memory and shown as a diff."""

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
    (b"\xff\xfe\0\0", "UTF-32 text"), (b"\0\0\xfe\xff", "UTF-32 text"), (b"\xff\xfe", "broken UTF-16 text"),
    (b"\xfe\xff", "broken UTF-16 text"),
)  # fmt: skip


class Present(Record):
    """A file as it is on disk."""

    data: bytes
    mode: int
    """The file's permission bits."""


def display_path(path: PathAccess) -> str:
    """Return the path as the model wrote it, safe to show. Not cut, because a cut secret would not be masked.

    `Workspace.resolve` limits its length to that of a path.
    """
    return one_line(path.written)


def location_of(path: PathAccess) -> str:
    """Return the path for the user, followed by its target if a link is on the way."""
    return visible_line(" -> ".join(path.names), 1000)


def check_unmoved(workspace: Workspace, path: PathAccess) -> None:
    """Raise ToolError if the path as written leads elsewhere than when it was judged."""
    if workspace.resolve(path.written, path.access) != path:
        raise moved(path)


def moved(path: PathAccess) -> ToolError:
    """Return the error for a path that leads elsewhere than when it was judged."""
    text = (
        f"{display_path(path)} leads to another file than when the call was checked. Nothing was done. "
        "Send the call again."
    )
    return ToolError(text, code=ErrorCode.RACE)


def check_regular(status: os.stat_result, path: PathAccess) -> None:
    """Raise ToolError unless `status` belongs to a regular file. The error names the kind of file."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolError(f"Path is a directory: {display_path(path)}.", code=ErrorCode.IS_FOLDER)
    if stat.S_ISLNK(mode):
        raise _link_on_the_way(path)
    kind = next((word for is_kind, word in _KINDS if is_kind(mode)), "of an unknown kind")
    raise ToolError(f"Not a regular file ({kind}): {display_path(path)}.", code=ErrorCode.NOT_REGULAR)


def _link_on_the_way(path: PathAccess) -> ToolError:
    """Return the error for a link in a resolved path: a link loop, or a link that was put there just now."""
    try:
        os.stat(path.real)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return ToolError(f"Too many levels of symbolic links: {display_path(path)}.", code=ErrorCode.LOOP)
    return moved(path)


def open_file(path: PathAccess) -> int | None:
    """Return a descriptor of a regular file, for reading; the caller closes it. `None` if the file does not exist.

    Raises ToolError (written for the model) if the file is not regular or not readable.
    """
    folder_path, name = os.path.split(path.real)
    try:
        folder = open_folder(folder_path)
        try:
            descriptor = _open_in(folder, name or ".", path)
        finally:
            os.close(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure(error, path, "read") from None
    if names_folder(path):
        os.close(descriptor)
        raise ToolError(f"Not a directory: {display_path(path)} is a file.", code=ErrorCode.NOT_FOLDER)
    return descriptor


def names_folder(path: PathAccess) -> bool:
    """Return whether the written path can only name a folder. The kernel accepts `x/` and `x/.` for folders only."""
    return path.written.endswith(("/", "/."))


def _open_in(folder: int, name: str, path: PathAccess) -> int:
    # Checked before opening, because opening a device can have effects; and again after, because it may have changed.
    check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    descriptor = os.open(name, _OPEN_FILE, dir_fd=folder)
    try:
        check_regular(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_whole(path: PathAccess) -> Present | None:
    """Return a regular file of at most 10 MiB. `None` if it does not exist.

    Raises ToolError if the file is larger, not regular or not readable.
    """
    descriptor = open_file(path)
    if descriptor is None:
        return None
    try:
        return _present(descriptor, path)
    except OSError as error:
        raise failure(error, path, "read") from None


def read_in(folder: int, name: str, path: PathAccess) -> bytes:
    """Return the bytes of `name` in the open `folder`, as `read_whole` does. Raises OSError or ToolError."""
    return _present(_open_in(folder, name, path), path).data


def _present(descriptor: int, path: PathAccess) -> Present:
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        data = b"" if status.st_size > MAX_FILE_BYTES else file.read(MAX_FILE_BYTES + 1)
    size = max(status.st_size, len(data))
    if size > MAX_FILE_BYTES:
        text = f"File too large: {display_path(path)} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are taken."
        raise ToolError(text, code=ErrorCode.TOO_LARGE)
    return Present(data=data, mode=stat.S_IMODE(status.st_mode))


def binary(path: PathAccess, start: bytes, size: int) -> ToolError:
    """Return the error for a binary file; `start` are its first bytes."""
    kind = next((f", {name}" for magic, name in _FORMATS if start[:BINARY_PROBE_BYTES].startswith(magic)), "")
    return ToolError(f"Binary file ({size:,} bytes{kind}): {display_path(path)}.", code=ErrorCode.BINARY)


def failure(error: OSError, path: PathAccess, verb: str) -> ToolError:
    """Return the model's error message for an OSError on a file or folder.

    `verb` is the attempted action in "Cannot read x": `read`, `write`, or another verb of the tool.
    """
    name = display_path(path)
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return ToolError(f"Permission denied: {name}.", code=ErrorCode.ACCESS)
        case errno.EISDIR:
            return ToolError(f"Path is a directory: {name}.", code=ErrorCode.IS_FOLDER)
        case errno.ENOTDIR:
            return ToolError(f"Not a directory: a part of {name} is a file.", code=ErrorCode.NOT_FOLDER)
        case errno.ELOOP:
            return _link_on_the_way(path)
        case errno.ENAMETOOLONG:
            return ToolError(f"File name too long: {name}.", code=ErrorCode.NAME)
        case errno.ENOSPC | errno.EDQUOT:
            return ToolError(f"No space left on device; {name} is unchanged.", code=ErrorCode.NO_SPACE)
        case errno.EROFS:
            return ToolError(f"Read-only file system: {name}.", code=ErrorCode.ACCESS)
        case errno.EFBIG:
            text = f"File too large for the process limit; {name} is unchanged."
            return ToolError(text, code=ErrorCode.TOO_LARGE)
        case errno.ENXIO:  # a socket that was put there just now; sockets cannot be opened
            return ToolError(f"Not a regular file (socket): {name}.", code=ErrorCode.NOT_REGULAR)
        case _:
            return ToolError(f"Cannot {verb} {name}: {error.strerror or error}.", code=ErrorCode.IO)


_MAX_SEARCHED_NAMES = 5_000
"""Maximum number of names searched in one folder."""
_MAX_INDEX_BYTES = 5_000_000
"""Maximum size of git's index for a hint, in bytes: about 50,000 files, which take a fifth of a second."""
_MAX_WALKED_NAMES = 5_000
"""Maximum number of names examined to find a file elsewhere, if git tracks no files."""
MAX_NAMED = 3


def not_found(path: PathAccess, workspace: Workspace) -> ToolError:
    """Return the error for a missing file, with suggestions: similar names, and files of the same name elsewhere."""
    from difflib import get_close_matches

    folder, name = os.path.split(path.real)
    names = names_in(folder, _MAX_SEARCHED_NAMES)
    missing = "" if names is not None else " Its folder does not exist."
    before = path.written.rpartition("/")[0]
    likely = [f"{before}/{other}" if before else other for other in get_close_matches(name, names or (), MAX_NAMED)]
    if len(likely) < MAX_NAMED:
        present = [
            os.path.join(os.path.relpath(folder, workspace.root), other) for other in names or () if other == name
        ]
        likely += [other for other in _of_this_name(name, workspace.root) if other not in present]
    likely = list(dict.fromkeys(likely))[:MAX_NAMED]
    question = f" Did you mean: {visible_line(', '.join(likely), 1000)}?" if likely else ""
    return ToolError(f"File not found: {display_path(path)}.{missing}{question}", code=ErrorCode.NOT_FOUND)


def _of_this_name(name: str, root: str) -> list[str]:
    """Return the files with exactly this name in the workspace, nearest to its root first.

    These are files that git tracks or, if it tracks none, files found by a bounded walk. Hidden folders are excluded,
    because reading them may be forbidden.
    """
    top, tracked = tracked_from(root, _MAX_INDEX_BYTES) or ("", ())
    if not tracked:
        return list(islice(_walk_to(name, root), MAX_NAMED))
    paths = [os.path.relpath(os.path.join(top, each), root) for each, *_ in tracked if os.path.basename(each) == name]
    visible_paths = [path for path in paths if "/." not in f"/{os.path.dirname(path)}"]
    files = [path for path in visible_paths if os.path.isfile(os.path.join(root, path))]
    return sorted(files, key=lambda path: (path.count("/"), path))


def _walk_to(name: str, root: str) -> Iterator[str]:
    """Yield the files with this name below `root`, nearest first. Links to folders are not followed."""
    remaining = _MAX_WALKED_NAMES
    waiting = deque([""])
    while waiting and remaining > 0:
        folder = waiting.popleft()
        names = names_in(os.path.join(root, folder), remaining) or ()
        remaining -= len(names)
        for each in names:
            path = os.path.join(folder, each)
            if each == name and os.path.isfile(os.path.join(root, path)):
                yield path
            elif not each.startswith(".") and _is_real_folder(os.path.join(root, path)):
                waiting.append(path)


def _is_real_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
