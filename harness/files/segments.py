"""A store of contents in segments: files that are only appended to, and removed as a whole (`SegmentStore`).

A segment is a sequence of batches. A batch is a head (magic, number of contents, bytes of all contents), a table with
the SHA-256 and the length of each content, a checksum of both, and then the contents. A batch that ends beyond the end
of its file was cut short by a crash and is ignored.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.record import Record
from harness.safe_files import make_private, remove_if_there, sync_names, write_whole
from harness.system import sync_data

_HEAD = struct.Struct(">8sIQ")
_ROW = struct.Struct(">32sQ")
_MAGIC = b"harnseg1"
_CHECK_BYTES = 32
_MOST_ROWS = 2_000_000
_BATCH_BYTES = 4_000_000
"""Size of the collected contents, in bytes, from which they are written."""
_PREFIX = "seg-"
LOCK_NAME = "lock"
"""Name of the file in each store whose lock a writer holds (flock(2))."""


class StoreLimits(Record):
    """Limits of the stores, in bytes unless the name has another unit."""

    segment: int = 64_000_000
    """Size from which a segment is closed."""
    store: int = 1_000_000_000
    """Maximum size of one store. A look keeps at most three quarters of it."""
    all_stores: int = 5_000_000_000
    """Maximum size of all stores in the same folder."""
    free: int = 2_000_000_000
    """Free space of the disk, below which no content is kept."""
    free_percent: int = 5
    days: int = 30
    """Age in days from which a segment is removed."""


class SegmentStore:
    """Contents by SHA-256, in a folder that other processes may use at the same time. Not safe for several threads."""

    def __init__(
        self, folder: str, limits: StoreLimits | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Use an absolute `folder`. It is created with the first content, for its owner only."""
        self.folder = folder
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._rows: dict[bytes, tuple[int, int, int]] = {}
        """Number of the segment, offset and length of each content, by digest."""
        self._ends: dict[int, int] = {}
        """End of the last complete batch of each segment."""
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        self._look_bytes = 0
        self._written: int | None = None
        """Number of the segment with bytes that are not yet synced."""
        self._problem: str | None = None
        """Reason why nothing may be kept until the next `commit`. `None` before the disk was examined."""
        self.lost_segments = 0
        """Number of segments that were removed since this store was opened."""

    # Keep

    def keep(self, data: bytes) -> tuple[str, str]:
        """Keep a content. Return its SHA-256 in hex, and the reason why it is not kept, or an empty string.

        The content is on disk after `commit`. Raises OSError; then contents since the last `commit` may be lost.
        """
        digest = hashlib.sha256(data).digest()
        if digest in self._waiting or self._is_young(digest):
            return digest.hex(), ""
        if self._problem is None:
            self._problem = self._space_problem()
        if self._problem:
            return digest.hex(), self._problem
        if self._look_bytes + len(data) > self._limits.store * 3 // 4:
            return digest.hex(), "the store of earlier contents is full"
        self._look_bytes += len(data)
        self._waiting[digest] = data
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _BATCH_BYTES:
            self._write()
        return digest.hex(), ""

    def commit(self) -> None:
        """Write all kept contents to disk. Raises OSError; then contents since the last `commit` may be lost."""
        self._look_bytes, self._problem = 0, None
        self._write()
        if self._written is not None:
            self._sync(self._written)
            self._written = None
            self.prune()

    def _space_problem(self) -> str:
        """Return the reason why no content may be kept: a disk that is nearly full. Otherwise an empty string."""
        folder = self.folder
        while not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        disk = os.statvfs(folder)
        free, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        if free < self._limits.free or free * 100 < total * self._limits.free_percent:
            return "the disk of earlier contents is nearly full"
        return ""

    def _is_young(self, digest: bytes) -> bool:
        """Return whether a content is in the younger three quarters of a full store, so that pruning keeps it for long.

        An older content is copied to the youngest segment.
        """
        row = self._rows.get(digest)
        if row is None:
            return False
        numbers = sorted(self._ends)
        is_small = sum(self._ends.values()) < self._limits.store // 2
        return is_small or numbers.index(row[0]) >= len(numbers) // 4

    def _write(self) -> None:
        """Append the waiting contents as one batch. Raises OSError."""
        if not self._waiting:
            return
        contents, self._waiting, self._waiting_bytes = self._waiting, {}, 0
        make_private(self.folder)
        with _locked(self.folder):
            self.refresh()
            number = max(self._ends, default=0)
            if number == 0 or self._ends[number] >= self._limits.segment:
                number = self._new_segment(max(number + 1, int(self._clock())))  # a number is never used twice
            if self._written is not None and self._written != number:
                self._sync(self._written)
            self._written = number
            table = b"".join(_ROW.pack(digest, len(data)) for digest, data in contents.items())
            head = _HEAD.pack(_MAGIC, len(contents), sum(map(len, contents.values())))
            check = hashlib.sha256(head + table).digest()
            descriptor = os.open(self._path(number), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                start = self._ends[number]
                os.ftruncate(descriptor, start)  # the rest is a torn batch
                os.lseek(descriptor, start, os.SEEK_SET)
                write_whole(descriptor, b"".join((head, table, check, *contents.values())))
            finally:
                os.close(descriptor)
            self.refresh()

    def _sync(self, number: int) -> None:
        descriptor = os.open(self._path(number), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            sync_data(descriptor)
        finally:
            os.close(descriptor)

    def _new_segment(self, number: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(self._path(number), flags, 0o600))
        sync_names(self.folder)
        self._ends[number] = 0
        return number

    def _path(self, number: int) -> str:
        return _segment_path(self.folder, number)

    # Read

    def get(self, sha256: str) -> bytes | None:
        """Return the content with this digest (64 hex digits). `None` if it is missing or damaged."""
        digest = bytes.fromhex(sha256)
        if digest in self._waiting:
            return self._waiting[digest]
        if not self.has(sha256):
            return None
        number, offset, length = self._rows[digest]
        try:
            descriptor = os.open(self._path(number), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with open(descriptor, "rb") as file:
            file.seek(offset)
            data = file.read(length)
        return data if hashlib.sha256(data).digest() == digest else None

    def has(self, sha256: str) -> bool:
        """Return whether the store has a content with this digest (64 hex digits)."""
        digest = bytes.fromhex(sha256)
        if digest not in self._rows and digest not in self._waiting:
            self.refresh()
        return digest in self._rows or digest in self._waiting

    def refresh(self) -> None:
        """Read the tables of the batches that other processes added, and forget the segments that they removed."""
        sizes = dict(segments_in(self.folder))
        missing = self._ends.keys() - sizes.keys()
        if missing:
            self.lost_segments += len(missing)
            self._rows = {digest: row for digest, row in self._rows.items() if row[0] not in missing}
            for number in missing:
                del self._ends[number]
        for number in sorted(sizes):
            if self._ends.setdefault(number, 0) < sizes[number]:
                self._read_tables(number)

    def _read_tables(self, number: int) -> None:
        try:
            descriptor = os.open(self._path(number), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # removed just now
        with open(descriptor, "rb", buffering=0) as file:
            size, place = os.fstat(descriptor).st_size, self._ends[number]
            while place < size:
                head = os.pread(descriptor, _HEAD.size, place)
                if len(head) < _HEAD.size:
                    break
                magic, count, length = _HEAD.unpack(head)
                if magic != _MAGIC or count > _MOST_ROWS:
                    break
                table = os.pread(file.fileno(), count * _ROW.size + _CHECK_BYTES, place + _HEAD.size)
                rows, check = table[:-_CHECK_BYTES], table[-_CHECK_BYTES:]
                offset = place + _HEAD.size + len(table)
                is_torn = len(rows) != count * _ROW.size or offset + length > size
                if is_torn or hashlib.sha256(head + rows).digest() != check:
                    break
                for digest, content_length in _ROW.iter_unpack(rows):
                    self._rows[digest] = (number, offset, content_length)
                    offset += content_length
                place = self._ends[number] = offset

    # Prune

    def prune(self) -> None:
        """Remove the oldest segments until this store and all stores are within their limits.

        The youngest segment of a store is never removed. Errors are ignored: the next `commit` tries again.
        """
        try:
            prune_stores(os.path.dirname(self.folder), self._limits, clock=self._clock)
            self.refresh()
        except OSError:
            pass


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Wait for the lock of a store, and hold it during the `with` block. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, LOCK_NAME), flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _segment_path(folder: str, number: int) -> str:
    return os.path.join(folder, f"{_PREFIX}{number:012d}")


def segments_in(folder: str) -> list[tuple[int, int]]:
    """Return number and size of each segment of a store, oldest first. Empty for a missing store."""
    pairs = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                digits = entry.name.removeprefix(_PREFIX)
                if digits != entry.name and digits.isdecimal():
                    pairs.append((int(digits), entry.stat(follow_symlinks=False).st_size))
    except OSError:
        return []
    return sorted(pairs)


def stored_bytes(stores: str) -> dict[str, int]:
    """Return the size in bytes of each store in the folder `stores`, by the name of the store."""
    return {name: sum(size for _, size in segments_in(os.path.join(stores, name))) for name in _names(stores)}


def _names(stores: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(stores) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def prune_stores(
    stores: str, limits: StoreLimits | None = None, *, clock: Callable[[], float] = time.time, dry_run: bool = False
) -> int:
    """Remove the oldest segments in the folder `stores` until all limits are met. Return the number of bytes removed.

    Segments older than the limit are removed too, but never the youngest segment of a store that is in use: one that
    was written within a day. With `dry_run`, nothing is removed. Raises OSError.
    """
    limits = limits or StoreLimits()
    now = clock()
    rows = []
    for name in _names(stores):
        folder = os.path.join(stores, name)
        segments = segments_in(folder)
        for number, size in segments:
            try:
                written = os.stat(_segment_path(folder, number), follow_symlinks=False).st_mtime
            except FileNotFoundError:
                continue  # another process prunes at the same time
            is_in_use = number == segments[-1][0] and written > now - 86_400
            rows.append((written, folder, number, size, is_in_use))
    sizes = {os.path.join(stores, name): size for name, size in stored_bytes(stores).items()}
    total, removed = sum(sizes.values()), 0
    for written, folder, number, size, is_in_use in sorted(rows):
        is_old = written < now - limits.days * 86_400
        if is_in_use or not (is_old or total > limits.all_stores or sizes[folder] > limits.store):
            continue
        if not dry_run:
            with _locked(folder):
                remove_if_there(_segment_path(folder, number))
        sizes[folder] -= size
        total -= size
        removed += size
    return removed
