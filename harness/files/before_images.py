"""Contents of files before their changes, stored by digest."""

from __future__ import annotations

import os

from harness.digest import digest_of
from harness.regex import regex
from harness.safe_files import make_private, replace_file, sync_path

_DIGEST = regex(r"[0-9a-f]{64}")


class BeforeImages:
    """A content-addressed store in a folder of its own: `<2 hex>/<62 hex>`, named by the SHA-256 of the content.

    INVARIANT: a file under its final name is complete and on disk, and its content has the digest in its name. It was
    written under another name, synced and renamed. A crash may leave a file ending in `.tmp`, which is never read.
    """

    def __init__(self, folder: str) -> None:
        """Use an absolute `folder`. It is created, for its owner only, with the first stored content."""
        self.folder = folder

    def keep(self, data: bytes) -> str:
        """Store `data` and return its SHA-256 in hex. The data is on disk when this returns.

        Raises OSError; then the data may be lost.
        """
        digest = digest_of(data)
        # INVARIANT: touch the file before reading it. `audit prune` removes no file touched within the last day.
        if self._touch(digest) and self.get(digest) == data:
            return digest
        folder = os.path.dirname(self.path_of(digest))
        fresh = not os.path.isdir(folder)
        make_private(folder)
        replace_file(self.path_of(digest), (data,))
        sync_path(folder)
        if fresh:
            sync_path(self.folder)
        return digest

    def get(self, sha256: str) -> bytes | None:
        """Return the content with this digest (64 hex digits). `None` if missing, unreadable or damaged."""
        if not _DIGEST.fullmatch(sha256):
            return None
        try:
            descriptor = os.open(self.path_of(sha256), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                data = file.read()
        except OSError:
            return None
        return data if digest_of(data) == sha256 else None

    def _touch(self, digest: str) -> bool:
        """Renew the time stamp of the file with this digest, so that it is not pruned. Return whether it exists."""
        try:
            os.utime(self.path_of(digest), follow_symlinks=False)
        except OSError:
            return False
        return True

    def path_of(self, digest: str) -> str:
        """Return the path at which the content with this SHA-256 (64 hex digits) is or would be stored."""
        return os.path.join(self.folder, digest[:2], digest[2:])
