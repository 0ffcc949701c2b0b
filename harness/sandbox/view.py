"""View: the mounts of one command. `view_of` describes them in the harness, `build` makes them in the keeper.

Everything is read-only but the writable layers. `/dev` holds harmless devices, `/run` and `/tmp` are private, and hidden
paths are covered: a file by `/dev/null` without devices, which cannot be opened, and a folder by an empty one.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, MutableSequence, Sequence

from harness.paths import is_within
from harness.sandbox import kernel, mounts
from harness.sandbox.landlock import HARMLESS_DEVICES, SHARED_MEMORY, Right, parents
from harness.sandbox.layers import MountLayer, layers_of
from harness.sandbox.walls import TEMPORARY, Walls

View = Mapping[str, object]
"""Plain values for `build`, which `marshal` can send: see `view_of`."""

RUN = "/run"
DEVICES = (*HARMLESS_DEVICES, "/dev/tty")
LINKS = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
)
_RESOLVER = "/etc/resolv.conf"
_CLOSED = mounts.READ_ONLY | mounts.NO_SET_ID | mounts.NO_DEVICES


def view_of(walls: Walls) -> View:
    """Return the view for `walls`, from the current state of the disk. Raises Unenforceable for a link."""
    covered = ["/dev"]
    if walls.temporary is not None and not walls.reader:
        covered += [path for path in TEMPORARY if os.path.isdir(path) and not os.path.islink(path)]
    if walls.sockets:
        hidden = tuple(map(os.path.realpath, walls.hide))
        walls = walls.showing(path for path in _sockets_in(covered) if not _is_in_any(path, hidden))
    else:
        covered.append(RUN)
        walls = walls.hiding(named_sockets())
    resolver = os.path.realpath(_RESOLVER) if walls.internet else ""
    if RUN in covered and is_within(resolver or "/", RUN):
        walls = walls.showing((resolver,))
    return {
        "layers": [(path, layer.value) for path, layer in layers_of(walls, covered).items()],
        "covered": covered,
        "temporary": walls.temporary or "",
        "reader": walls.reader,
    }


def _is_in_any(path: str, folders: Sequence[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)


def _sockets_in(folders: Sequence[str]) -> Iterable[str]:
    return (path for path in named_sockets() if _is_in_any(path, folders))


def named_sockets() -> Iterable[str]:
    """Yield the paths of the Unix sockets that programs of this machine have bound. Raises OSError.

    The kernel lists them by network. So sockets of the commands in walls are not among them.
    """
    with open("/proc/net/unix", "rb") as file:
        for line in file:
            path = line.partition(b" /")[2].rstrip(b"\n")
            if path:
                yield os.path.realpath(b"/" + path).decode("utf-8", "surrogateescape")


def build(view: View, *, has_own_processes: bool) -> None:
    """Move the calling thread into a new mount namespace with the mounts of `view`. Raises OSError.

    `has_own_processes` means that `/proc` has only processes of the session.

    INVARIANT: the thread was started for one command. A current folder or a descriptor of a folder from before would
    still reach hidden files, so the caller changes the folder afterwards and passes on no folder.
    """
    layers: Sequence[tuple[str, str]] = view["layers"]  # type: ignore[assignment]
    covered: Sequence[str] = view["covered"]  # type: ignore[assignment]
    temporary, reader = str(view["temporary"]), bool(view["reader"])
    kernel.new_namespaces(mounts.NEW_MOUNTS)
    mounts.set_attributes_of_all(0, propagation=mounts.PRIVATE)
    from_before = (MountLayer.WRITABLE.value, MountLayer.DEVICE.value, MountLayer.SHOWN.value)
    trees = {path: tree for path, kind in layers if kind in from_before and (tree := _clone(path)) >= 0}
    devices = {path: tree for path in DEVICES if (tree := _clone(path)) >= 0}
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
    null = mounts.opened("/dev/null")
    for path, kind in layers:
        if kind == MountLayer.HIDDEN_FILE.value:
            _mask(path, null)
        else:
            _add_layer(path, MountLayer(kind), trees, covered, emptied)
    os.close(null)
    mounts.set_attributes_at("/dev", mounts.READ_ONLY)
    for path in emptied:
        mounts.set_attributes_at(path, mounts.READ_ONLY)


def allow_writing(ruleset: int) -> None:
    """Add the folders that the view of this thread covers to the writable ones of a Landlock ruleset. Raises OSError."""
    for path in ("/dev", "/proc"):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            kernel.add_path(ruleset, Right.WRITE_FILE, descriptor)
        finally:
            os.close(descriptor)


def _add_layer(
    path: str, layer: MountLayer, trees: Mapping[str, int], covered: Sequence[str], emptied: MutableSequence[str]
) -> None:
    """Mount one layer. A folder that it covers by an empty one is added to `emptied`, and stays writable until later."""
    match layer:
        case MountLayer.WRITABLE | MountLayer.DEVICE | MountLayer.SHOWN if path in trees:
            _attach_tree(trees[path], path, layer, (*covered, *emptied))
        case MountLayer.WAY:
            mounts.attach(mounts.clone(path), path)
        case MountLayer.PROTECTED:
            tree = mounts.clone(path)
            mounts.set_attributes(tree, mounts.READ_ONLY)
            mounts.attach(tree, path)
        case MountLayer.HIDDEN_FOLDER if _cover(path):
            emptied.append(path)
        case _:
            pass


def _clone(path: str) -> int:
    """Return a detached copy of the mount at a path. -1 if the path is missing."""
    try:
        return mounts.clone(path)
    except FileNotFoundError:
        return -1


def _attach_tree(tree: int, path: str, layer: MountLayer, covered: Sequence[str]) -> None:
    """Attach a copy from before the view at its path. Its mount point is made if it is in a covered folder."""
    attributes = {MountLayer.WRITABLE: mounts.NO_SET_ID | mounts.NO_DEVICES, MountLayer.SHOWN: _CLOSED}.get(layer, 0)
    mounts.set_attributes(tree, attributes, propagation=mounts.PRIVATE)
    if any(is_within(path, folder) for folder in covered) and not os.path.lexists(path):
        _make_folders(os.path.dirname(path), covered)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    mounts.attach(tree, path)


def _make_folders(path: str, covered: Sequence[str]) -> None:
    """Create a folder in a covered one, with those above it. A link on the way, left by a command, is removed."""
    for folder in (*reversed(parents(path)), path):
        if any(is_within(folder, top) and folder != top for top in covered) and os.path.islink(folder):
            os.unlink(folder)
    os.makedirs(path, exist_ok=True)


def _mask(path: str, null: int) -> None:
    """Cover a file by the opened `/dev/null` without devices, so that not even root can open it. Skip a missing file."""
    tree = mounts.clone_of(null, recursive=False)
    mounts.set_attributes(tree, _CLOSED, recursive=False)
    try:
        mounts.attach(tree, path)
    except FileNotFoundError:
        pass


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
