"""Contents of files before their changes, stored by digest."""

from __future__ import annotations

import os

from harness.digest import digest_of
from harness.regex import regex
from harness.safe_files import replace_file, sync_path

_DIGEST = regex(r"[0-9a-f]{64}")


class BeforeImages:
    """A content-addressed store in a folder of its own: `<2 hex>/<62 hex>`, named by the SHA-256 of the content.

    INVARIANT: a file under its final name holds the bytes of its name, and they are on disk: it was written under
    another name, synced, and renamed. A crash leaves a file whose name ends in `.tmp`, which is never read.
    """

    def __init__(self, folder: str) -> None:
        """Take the folder (absolute); it is made, for its owner only, when the first content is kept."""
        self.folder = folder

    def keep(self, data: bytes) -> str:
        """Store `data` and return its SHA-256 in hex; when this returns, it is on disk.

        Raises OSError; then it is not to be counted on.
        """
        digest = digest_of(data)
        # INVARIANT: touched before it is looked at: `audit prune` removes none that is younger than a day.
        if self._touch(digest) and self.get(digest) == data:
            return digest
        folder = os.path.dirname(self.path_of(digest))
        fresh = not os.path.isdir(folder)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        replace_file(self.path_of(digest), (data,))
        sync_path(folder)
        if fresh:
            sync_path(self.folder)
        return digest

    def get(self, sha256: str) -> bytes | None:
        """Return the content with this digest (64 hex digits), or None: not kept, not readable, or damaged since."""
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
        """Say that what is kept under this digest is needed from now on; return whether there is such a file."""
        try:
            os.utime(self.path_of(digest), follow_symlinks=False)
        except OSError:
            return False
        return True

    def path_of(self, digest: str) -> str:
        """Return the path of the file that holds the content with this SHA-256 (64 hex digits), if it is kept."""
        return os.path.join(self.folder, digest[:2], digest[2:])
