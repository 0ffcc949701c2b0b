"""Trial: whether the namespaces of the keeper hold, tried once in a view that hides and protects a file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator

from harness.sandbox import kernel, mounts
from harness.sandbox.layers import MountLayer
from harness.sandbox.namespaces import Namespaces
from harness.sandbox.view import build

_PLACE = "/tmp/harness-trial"  # noqa: S108 - in a mount of its own, which no other process sees


def why_not_held(namespaces: Namespaces) -> str:
    """Return the reason why a view does not hold on this machine. Empty if it holds. Raises OSError for a failed step.

    INVARIANT: the calling thread ends afterwards, since it enters the walls.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        kernel.new_namespaces(mounts.NEW_MOUNTS)
        mounts.set_attributes_of_all(0, propagation=mounts.PRIVATE)
        mounts.attach(mounts.new_file_system("tmpfs"), "/tmp")  # noqa: S108 - see above
        for name in ("", "/hidden", "/folder"):
            os.mkdir(f"{_PLACE}{name}")
        for name in ("secret", "protected", "folder/kept"):
            with open(f"{_PLACE}/{name}", "w", encoding="ascii") as file:
                file.write("content\n")
        layers = (
            ("", MountLayer.WRITABLE),
            ("/folder", MountLayer.WAY),
            ("/folder/kept", MountLayer.PROTECTED),
            ("/hidden", MountLayer.HIDDEN_FOLDER),
            ("/protected", MountLayer.PROTECTED),
            ("/secret", MountLayer.HIDDEN_FILE),
        )
        build(
            {
                "layers": [(f"{_PLACE}{name}", layer.value) for name, layer in layers],
                "covered": ["/dev", "/run"],
                "temporary": "",
                "reader": False,
                "console": "",
            },
            has_own_processes=namespaces.processes >= 0,
        )
        mounts.enter_namespace(namespaces.network, mounts.NEW_NETWORK)
        kernel.forbid_new_privileges()
        kernel.keep_capabilities(0)
        for name, attempt in _attempts(listener.getsockname()[1]):
            if not _is_refused(attempt):
                return f"{name} was not refused"
        with open(f"{_PLACE}/new", "w", encoding="ascii"):
            return ""


def _attempts(port: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield every attempt that a view must refuse, with its name."""

    def open_with(flags: int, name: str) -> Callable[[], None]:
        return lambda: os.close(os.open(name, flags, 0o600))

    def rename() -> None:
        os.rename(f"{_PLACE}/folder", f"{_PLACE}/other")

    def connect() -> None:
        socket.create_connection(("127.0.0.1", port), 5).close()

    yield "reading a hidden file", open_with(os.O_RDONLY, f"{_PLACE}/secret")
    yield "writing a protected file", open_with(os.O_WRONLY, f"{_PLACE}/protected")
    yield "renaming a folder above one", rename
    yield "writing outside", open_with(os.O_WRONLY | os.O_CREAT, "/run/new")
    yield "connecting to this machine", connect


def _is_refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False
