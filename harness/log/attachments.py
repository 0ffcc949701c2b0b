"""The attachments of a session: files in a folder beside its log, named by their digests. Records list the digests.

The folder has the name of the log and the suffix `.pictures`. Its mode is 0700, that of its files 0600. It is protected
and hidden like the log. The names of the folder and of the record field are from the time when all attachments were
pictures; they are kept for old logs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.messages import Attachment
from harness.regex import regex
from harness.safe_files import make_private, read_small, remove_if_there, replace_file, sync_names

FIELD = "pictures"
"""The field of a record or message that lists its attachments."""
_DIGEST = regex(r"[0-9a-f]{64}")
_MEDIA_TYPE = regex(r"image/(png|jpeg|webp|gif)")
_MOST_BYTES = 128 * 1024 * 1024
"""The maximum size of a file that is read back. No stored attachment is larger."""


def attachments_beside(log: str) -> str:
    """Return the path of the folder with the attachments of the log at `log`."""
    return f"{log}.{FIELD}"


def attachment_fields(attachments: Sequence[Attachment]) -> dict[str, JsonValue]:
    """Return the field of a record that lists attachments, or no field if there are none."""
    return {FIELD: [_record_fields(attachment) for attachment in attachments]} if attachments else {}


def _record_fields(attachment: Attachment) -> dict[str, JsonValue]:
    return {
        "sha256": attachment.sha256,
        "media_type": attachment.media_type,
        "width": attachment.width,
        "height": attachment.height,
        "size": attachment.size,
    }


def attachments_of(record: Mapping[str, JsonValue]) -> tuple[Attachment, ...]:
    """Return the attachments that a record or message lists. Raises ValueError for a list that harness never writes."""
    values = record.get(FIELD, [])
    if not isinstance(values, list):
        raise ValueError(f"{FIELD} are not a list")  # noqa: TRY004 - of what was read, not of an argument
    return tuple(map(_attachment_of, values))


def _attachment_of(value: JsonValue) -> Attachment:
    match value:
        case {
            "sha256": str() as sha256,
            "media_type": str() as media_type,
            "width": int() as width,
            "height": int() as height,
            "size": int() as size,
        } if _DIGEST.fullmatch(sha256) and _MEDIA_TYPE.fullmatch(media_type) and min(width, height, size) > 0:
            return Attachment(sha256=sha256, media_type=media_type, width=width, height=height, size=size)
        case _:
            raise ValueError(f"an entry of {FIELD} is not valid")


class KeptAttachments:
    """The attachments beside one log."""

    def __init__(self, log: str) -> None:
        """Take the path of the log. The folder is created with the first attachment."""
        self.folder = attachments_beside(log)

    def keep(self, data: bytes, media_type: str, width: int, height: int) -> Attachment:
        """Store the bytes on disk and return the attachment that names them. Raises OSError."""
        digest = self.keep_data(data)
        return Attachment(sha256=digest, media_type=media_type, width=width, height=height, size=len(data))

    def keep_data(self, data: bytes) -> str:
        """Store the bytes on disk and return their digest. Raises OSError."""
        digest = digest_of(data)
        if self.bytes_of(digest) is None:
            make_private(self.folder)
            replace_file(os.path.join(self.folder, digest), (data,))
            sync_names(self.folder)
            sync_names(os.path.dirname(self.folder))
        return digest

    def bytes_of(self, digest: str) -> bytes | None:
        """Return the bytes with this digest; None if they are missing or changed."""
        if not _DIGEST.fullmatch(digest) or os.path.islink(self.folder):
            return None
        path = os.path.join(self.folder, digest)
        data = None if os.path.islink(path) else read_small(path, _MOST_BYTES)
        return data if data is not None and digest_of(data) == digest else None

    def remove(self) -> None:
        """Remove the stored attachments, and the folder if nothing else is in it."""
        try:
            names = os.listdir(self.folder) if not os.path.islink(self.folder) else []
            for name in filter(_DIGEST.fullmatch, names):
                remove_if_there(os.path.join(self.folder, name))
            os.rmdir(self.folder)
        except OSError:
            pass

    def take_over(self, attachments: Sequence[Attachment], log: str) -> int:
        """Copy attachments from the folder of the earlier log `log`. Return the number that could not be copied."""
        other, missing = KeptAttachments(log), 0
        for attachment in attachments:
            data = self.bytes_of(attachment.sha256) or other.bytes_of(attachment.sha256)
            if data is None:
                missing += 1
                continue
            try:
                self.keep(data, attachment.media_type, attachment.width, attachment.height)
            except OSError:
                missing += 1
        return missing
