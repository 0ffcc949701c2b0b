"""View: the mounts of one command, as a description, and `build`, which makes them in the keeper.

Everything is read-only but the writable layers. `/dev` holds harmless devices, `/run` and `/tmp` are private, and hidden
paths are covered: a file by `/dev/null` without devices, which cannot be opened, and a folder by an empty one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, MutableSequence, Sequence

from harness.paths import is_within, is_within_any
from harness.sandbox import kernel, mounts
from harness.sandbox.landlock import HARMLESS_DEVICES, SHARED_MEMORY, Right
from harness.sandbox.layers import MountLayer, parents
from harness.sandbox.walls import TEMPORARY

View = Mapping[str, object]
"""Plain values for `build`, which `marshal` can send: see `views`."""
MOST_KEPT = 8
"""Maximum number of kept views, and of their descriptions. A session uses two or three."""
RUN = "/run"
CONSOLE = "/dev/console"
DEVICES = (*HARMLESS_DEVICES, "/dev/tty")
LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
)
_CLOSED = mounts.READ_ONLY | mounts.NO_SET_ID | mounts.NO_DEVICES


def build(view: View, *, has_own_processes: bool) -> bool:
    """Move the calling thread into a new mount namespace with the mounts of `view`. Raises OSError.

    Return whether every path of the view existed, and so has its mount.

    `has_own_processes` means that `/proc` has only processes of the session.

    INVARIANT: the thread was started for one command. A current folder or a descriptor of a folder from before would
    still reach hidden files, so the caller changes the folder afterwards and passes on no folder.
    """
    layers: Sequence[tuple[str, str]] = view["layers"]  # type: ignore[assignment]
    covered: Sequence[str] = view["covered"]  # type: ignore[assignment]
    temporary, reader, console = str(view["temporary"]), bool(view["reader"]), str(view["console"])
    kernel.new_namespaces(mounts.NEW_MOUNTS)
    mounts.set_attributes_of_all(0, propagation=mounts.PRIVATE)
    from_before = (MountLayer.WRITABLE.value, MountLayer.DEVICE.value, MountLayer.SHOWN.value)
    trees = {path: tree for path, kind in layers if kind in from_before and (tree := _clone(path)) >= 0}
    devices = {path: tree for path in DEVICES if (tree := _clone(path)) >= 0}
    if console and (tree := _clone(console)) >= 0:
        devices[CONSOLE] = tree
    scratch = [(path, mounts.clone(temporary)) for path in covered if path in TEMPORARY]
    run_links = _links_in(RUN) if RUN in covered else ()
    mounts.set_attributes_of_all(_CLOSED)
    if os.geteuid() and has_own_processes:  # root could change the kernel's settings there
        mounts.set_attributes_at("/proc", 0, cleared=mounts.READ_ONLY)
    _cover_devices(devices, reader=reader)
    for path, tree in scratch:
        mounts.set_attributes(tree, mounts.NO_SET_ID | mounts.NO_DEVICES, propagation=mounts.PRIVATE)
        mounts.attach(tree, path)
    emptied = [RUN] if RUN in covered and _cover(RUN) else []
    for name, target in run_links:
        os.symlink(target, f"{RUN}/{name}")
    null, is_whole, places = mounts.opened("/dev/null"), True, dict[str, bool]()
    for path, kind in layers:
        match MountLayer(kind):
            case MountLayer.HIDDEN_FILE:
                is_mounted = _mask(path, null)
            case MountLayer.WRITABLE | MountLayer.DEVICE | MountLayer.SHOWN as layer:
                is_mounted = path in trees
                if is_mounted:
                    _attach_tree(trees[path], path, layer, (*covered, *emptied), places)
            case layer:
                is_mounted = _add_layer(path, layer, emptied)
        is_whole = is_whole and is_mounted
    os.close(null)
    mounts.set_attributes_at("/dev", mounts.READ_ONLY)
    for path in emptied:
        mounts.set_attributes_at(path, mounts.READ_ONLY)
    return is_whole


def allow_writing(ruleset: int) -> None:
    """Add the folders that the view of this thread covers to the writable ones of a Landlock ruleset. Raises OSError."""
    for path in ("/dev", "/proc"):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            kernel.add_path(ruleset, Right.WRITE_FILE, descriptor)
        finally:
            os.close(descriptor)


def _add_layer(path: str, layer: MountLayer, emptied: MutableSequence[str]) -> bool:
    """Mount a layer over an existing path, and return whether there is one.

    A folder that it covers by an empty one is added to `emptied`, and stays writable until later.
    """
    match layer:
        case MountLayer.WAY:
            mounts.attach(mounts.clone(path), path)
        case MountLayer.PROTECTED:
            tree = mounts.clone(path)
            mounts.set_attributes(tree, mounts.READ_ONLY)
            mounts.attach(tree, path)
        case _:
            if not _cover(path):
                return False
            emptied.append(path)
    return True


def _clone(path: str) -> int:
    """Return a detached copy of the mount at a path. -1 if the path is missing."""
    try:
        return mounts.clone(path)
    except FileNotFoundError:
        return -1


def _attach_tree(tree: int, path: str, layer: MountLayer, covered: Sequence[str], places: dict[str, bool]) -> None:
    """Attach a copy from before the view at its path. Its mount point is made if it is in a covered folder.

    `places` are the mounts that were made so for other paths, each with whether it is a copy from before the view.
    """
    attributes = {MountLayer.WRITABLE: mounts.NO_SET_ID | mounts.NO_DEVICES, MountLayer.SHOWN: _CLOSED}.get(layer, 0)
    mounts.set_attributes(tree, attributes, propagation=mounts.PRIVATE)
    if is_within_any(path, covered):
        for folder in reversed(parents(path)):
            top = max((len(top) for top in covered if is_within(folder, top) and folder != top), default=0)
            copy = max(
                (len(place) for place, is_copy in places.items() if is_copy and is_within(folder, place)), default=0
            )
            if top > copy and folder not in places:  # a folder of a copy exists
                _make_way(folder)
                places[folder] = False
        _make_mount_point(path, is_folder=stat.S_ISDIR(os.fstat(tree).st_mode))
    mounts.attach(tree, path)
    places[path] = True


def _make_way(folder: str) -> None:
    """Make a folder above a mount point, and mount it onto itself, so that no command can rename it."""
    _make_mount_point(folder, is_folder=True)
    if is_within_any(folder, TEMPORARY):  # elsewhere, the covered folder becomes read-only
        mounts.attach(mounts.clone(folder), folder)


def _make_mount_point(path: str, *, is_folder: bool) -> None:
    """Make a folder or a file. Anything else at the path, left by a command, is removed."""
    if os.path.islink(path) or (os.path.lexists(path) and os.path.isdir(path) != is_folder):
        os.unlink(path)
    if os.path.lexists(path):
        return
    if is_folder:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _mask(path: str, null: int) -> bool:
    """Cover a file by the opened `/dev/null` without devices, so that not even root can open it.

    Return whether the file exists.
    """
    tree = mounts.clone_of(null, recursive=False)
    mounts.set_attributes(tree, _CLOSED, recursive=False)
    try:
        mounts.attach(tree, path)
    except FileNotFoundError:
        return False
    return True


def _cover(path: str) -> bool:
    """Cover a folder by an empty one, still writable for mount points. Return whether the folder exists."""
    try:
        mounts.attach(mounts.new_file_system("tmpfs", (("mode", "0755"),), mounts.NO_SET_ID | mounts.NO_DEVICES), path)
    except FileNotFoundError:
        return False
    return True


def _cover_devices(devices: Mapping[str, int], *, reader: bool) -> None:
    """Cover `/dev` by a folder with harmless devices and, but for a reader, own terminals and shared memory."""
    mounts.attach(mounts.new_file_system("tmpfs", (("mode", "0755"),)), "/dev")
    for path, tree in devices.items():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        mounts.attach(tree, path)
    for name, target in LINKS:
        os.symlink(target, name)
    if reader:
        return
    terminals = (("newinstance", ""), ("ptmxmode", "0666"), ("mode", "0620"))
    attributes = mounts.NO_SET_ID | mounts.NO_PROGRAMS
    os.mkdir("/dev/pts")
    mounts.attach(mounts.new_file_system("devpts", terminals, attributes), "/dev/pts")
    os.mkdir(SHARED_MEMORY)
    shared = mounts.new_file_system("tmpfs", (("mode", "1777"),), mounts.NO_SET_ID | mounts.NO_DEVICES)
    mounts.attach(shared, SHARED_MEMORY)


def _links_in(folder: str) -> Sequence[tuple[str, str]]:
    """Return the names and targets of the links in a folder. Some systems reach their programs over links in `/run`."""
    try:
        return [(entry.name, os.readlink(entry.path)) for entry in os.scandir(folder) if entry.is_symlink()]
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EACCES):
            return ()
        raise
