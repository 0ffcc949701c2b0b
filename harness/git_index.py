"""What git tracks: the names and object ids in the file `index`, read as git does (gitformat-index(5)). Pure."""

from __future__ import annotations

from collections.abc import Iterator

_MODES = frozenset(mode.to_bytes(4, "big") for mode in (0o100644, 0o100755, 0o100664, 0o120000, 0o160000))
"""Of a file, a program, a file of old versions of git, a link and a submodule. A folder stands in sparse indexes alone."""
_BEFORE_ID = 40
"""Bytes of an entry in front of the object id."""


def read_index(data: bytes) -> tuple[tuple[str, bytes], ...] | None:
    """Return name and object id of all that git tracks; names begin at the top of the repository.

    None for an index that names less than git tracks, or that is not understood. Ids have 20 bytes or 32, which the file
    does not say: of a wrong guess nothing fits.
    """
    for size in (20, 32):
        try:
            return tuple(_entries(data, size))
        except (ValueError, IndexError):
            continue
    return None


def _entries(data: bytes, size: int) -> Iterator[tuple[str, bytes]]:
    version = int.from_bytes(data[4:8], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index")
    place, name, flags = 12, b"", _BEFORE_ID + size
    for _ in range(int.from_bytes(data[8:12], "big")):
        start = place
        if data[start + 24 : start + 28] not in _MODES:
            raise ValueError("an entry of a kind that is not known")
        place = start + flags + (4 if data[start + flags] & 0x40 else 2)
        kept = b""
        if version == 4:
            dropped, place = _number(data, place)
            kept = name[: len(name) - dropped]
        end = data.index(b"\0", place)
        name = kept + data[place:end]
        place = end + 1 if version == 4 else start + (end - start + 8) // 8 * 8
        yield name.decode("utf-8", "surrogateescape"), data[start + _BEFORE_ID : start + flags]
    _check_rest(data, place, size)


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Read a number as git packs it (varint.c), and where it ends."""
    value = data[place] & 127
    while data[place] & 128:
        place += 1
        value = (value + 1 << 7) + (data[place] & 127)
    return value, place + 1


def _check_rest(data: bytes, place: int, size: int) -> None:
    """Raise ValueError unless extensions follow up to the checksum, and none that says that names stand elsewhere."""
    while place < len(data) - size:
        if not data[place : place + 1].isupper():  # `link` of a split index, `sdir` of a sparse one, or none at all
            raise ValueError("an extension that changes what the entries mean")
        place += 8 + int.from_bytes(data[place + 4 : place + 8], "big")
    if place != len(data) - size:
        raise ValueError("entries that do not end where they should")
