"""Pins: the descriptions of a server's tools that the user has seen, and the current ones. One file per server.

An invalid file is an error. It does not count as empty, since damage to it would then erase every pin.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from harness.actions import JsonValue
from harness.errors import UsageError
from harness.plugins.mcp.tool_description import ToolDescription
from harness.record import Record, field_names
from harness.safe_files import is_locked_within, make_private, open_private, replace_file, sync_names
from harness.session.state import State
from harness.text.strict_json import NotJsonError, read_line

MOST_BYTES = 64 * 1024 * 1024
MOST_TOOLS = 2_000
"""Maximum number of tools stored per server."""
LOCK_SECONDS = 5.0
"""Seconds to wait for the lock while another process writes the file."""
ENDING = ".json"
_VERSION = 1


def pins_folder(state: State) -> str:
    """Return the folder of the pins of all servers."""
    return os.path.join(state.state, "mcp")


class ToolPin(Record):
    """The stored descriptions of one tool."""

    pinned: ToolDescription | None = None
    """The description that the user saw and approved. `None` without one."""
    listed: ToolDescription | None = None
    """The description in the server's last list, if it differs from the pinned one."""


class PinFile:
    """The pins of one server. Several processes can use the file at the same time."""

    def __init__(self, folder: str, server: str) -> None:
        """Use the file of a server in the folder of all pins, which need not exist yet."""
        self.path = os.path.join(folder, f"{server}{ENDING}")
        self.server = server
        self._folder = folder
        self._cache: tuple[tuple[int, ...], dict[str, ToolPin]] | None = None

    def read(self) -> Mapping[str, ToolPin]:
        """Return all pins, by name of the tool. Raises UsageError if the file is invalid."""
        try:
            descriptor = open_private(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unfit(error.strerror or str(error)) from None
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            version = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._cache is None or self._cache[0] != version:
                self._cache = version, self._parsed(file.read(MOST_BYTES + 1))
        return self._cache[1]

    def note_listed(self, descriptions: Mapping[str, ToolDescription]) -> None:
        """Store the server's current list, so that the user can review it. Raises UsageError and OSError."""
        stored_pins = self.read()
        if not any(_changes(stored_pins.get(name), description) for name, description in descriptions.items()):
            return
        with self._locked() as pins:
            for name, description in descriptions.items():
                if name in pins or len(pins) < MOST_TOOLS:
                    pinned = pins.get(name, ToolPin()).pinned
                    same = pinned is not None and pinned.sha256 == description.sha256
                    pins[name] = ToolPin(pinned=pinned, listed=None if same else description)

    def pin(self, description: ToolDescription) -> None:
        """Store that the user saw and approved this description, and sync to disk. Raises UsageError and OSError."""
        with self._locked() as pins:
            last_listed = pins.get(description.name, ToolPin()).listed
            other = last_listed if last_listed is not None and last_listed.sha256 != description.sha256 else None
            pins[description.name] = ToolPin(pinned=description, listed=other)

    def unpin(self, name: str) -> bool:
        """Remove the pin of a tool. Return whether there was one. Raises UsageError and OSError."""
        with self._locked() as pins:
            pin = pins.get(name, ToolPin())
            if pin.pinned is None:
                return False
            pins[name] = ToolPin(listed=pin.listed or pin.pinned)
            return True

    @contextmanager
    def _locked(self) -> Iterator[dict[str, ToolPin]]:
        """Yield the pins for changes under an exclusive lock, and write them when the block ends.

        Raises UsageError and OSError.
        """
        make_private(self._folder)
        lock = open_private(f"{self.path}.lock", os.O_RDWR | os.O_CREAT)
        try:
            if not is_locked_within(lock, LOCK_SECONDS):
                raise self._unfit(f"another process has held its lock for {LOCK_SECONDS:g} seconds")
            pins = dict(self.read())
            yield pins
            tools = {name: _as_json(pin) for name, pin in sorted(pins.items())}
            data = json.dumps({"version": _VERSION, "server": self.server, "tools": tools}, indent=1).encode("ascii")
            if len(data) > MOST_BYTES:
                raise self._unfit(f"the file would have more than {MOST_BYTES} bytes")
            replace_file(self.path, (data, b"\n"))
            sync_names(self._folder)
        finally:
            os.close(lock)

    def _parsed(self, data: bytes) -> dict[str, ToolPin]:
        if len(data) > MOST_BYTES:
            raise self._unfit(f"the file has more than {MOST_BYTES} bytes")
        try:
            value = read_line(data)
            if not isinstance(value, dict) or (value.get("version"), value.get("server")) != (_VERSION, self.server):
                raise self._unfit("the file is of another version, or another server")
            tools = value.get("tools")
            if value.keys() != {"version", "server", "tools"} or not isinstance(tools, dict):
                raise self._unfit("the file has unknown fields, or lacks some")
            return {name: _pin_from(name, fields) for name, fields in tools.items()}
        except (NotJsonError, ValueError) as error:
            raise self._unfit(str(error)) from None

    def _unfit(self, reason: str) -> UsageError:
        return UsageError(f"{self.path}: {reason}; mend or remove the file, else no tool of the server can be used")


def servers_in(folder: str) -> list[str]:
    """Return the names of the servers with a file of pins."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING))


def _changes(pin: ToolPin | None, description: ToolDescription) -> bool:
    """Return whether a listed description differs from the last known one of the tool."""
    if pin is None:
        return True
    last_known = pin.listed or pin.pinned
    return last_known is None or last_known.sha256 != description.sha256


def _as_json(pin: ToolPin) -> dict[str, JsonValue]:
    return {name: _described(getattr(pin, name)) for name in field_names(ToolPin)}


def _described(description: ToolDescription | None) -> JsonValue:
    return (
        None
        if description is None
        else {"sha256": description.sha256, "command": description.command, "definition": dict(description.definition)}
    )


def _pin_from(name: str, fields: JsonValue) -> ToolPin:
    """Parse the pin of one tool. Raises ValueError."""
    if not isinstance(fields, dict) or fields.keys() != set(field_names(ToolPin)):
        raise ValueError(f"{name} has other fields than a pin")
    read: Callable[[str], ToolDescription | None] = lambda key: _description_from(name, fields[key])  # noqa: E731
    return ToolPin(pinned=read("pinned"), listed=read("listed"))


def _description_from(name: str, fields: JsonValue) -> ToolDescription | None:
    if fields is None:
        return None
    if not isinstance(fields, dict) or fields.keys() != {"sha256", "command", "definition"}:
        raise ValueError(f"{name} has other fields than a description")
    digest, command, definition = fields["sha256"], fields["command"], fields["definition"]
    if not (isinstance(digest, str) and isinstance(command, str) and isinstance(definition, dict)):
        raise ValueError(f"{name} has fields of another type than a description")  # noqa: TRY004
    return ToolDescription(name=name, definition=definition, command=command, sha256=digest)
