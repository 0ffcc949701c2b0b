"""The bytes of a session's pictures, in a folder beside its log, each under its digest; the log names them.

The folder is the log's name and `.pictures`, mode 0700, its files 0600. It is guarded and hidden as the log is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.messages import Picture
from harness.regex import regex
from harness.safe_files import read_small, remove_if_there, replace_file, sync_names

_DIGEST = regex(r"[0-9a-f]{64}")
_MEDIA_TYPE = regex(r"image/(png|jpeg|webp|gif)")
_MOST_BYTES = 16 * 1024 * 1024
"""Of a file that is read back: more than any picture that is kept has."""


def pictures_beside(log: str) -> str:
    """Return the path of the folder that keeps the pictures of the log at `log`."""
    return f"{log}.pictures"


def picture_fields(picture: Picture) -> dict[str, JsonValue]:
    """Return a picture as a record names it."""
    return {
        "sha256": picture.sha256,
        "media_type": picture.media_type,
        "width": picture.width,
        "height": picture.height,
        "size": picture.size,
    }


def pictures_of(record: Mapping[str, JsonValue]) -> tuple[Picture, ...]:
    """Return the pictures that a record or a message of it names. Raises ValueError for what no harness writes."""
    named = record.get("pictures", [])
    if not isinstance(named, list):
        raise ValueError("pictures are not a list")  # noqa: TRY004 - of what was read, not of an argument
    return tuple(map(_picture_of, named))


def _picture_of(value: JsonValue) -> Picture:
    match value:
        case {
            "sha256": str() as sha256,
            "media_type": str() as media_type,
            "width": int() as width,
            "height": int() as height,
            "size": int() as size,
        } if _DIGEST.fullmatch(sha256) and _MEDIA_TYPE.fullmatch(media_type) and min(width, height, size) > 0:
            return Picture(sha256=sha256, media_type=media_type, width=width, height=height, size=size)
        case _:
            raise ValueError("a picture is not one")


class KeptPictures:
    """The pictures beside one log."""

    def __init__(self, log: str) -> None:
        """Take the path of the log; the folder is made with the first picture."""
        self.folder = pictures_beside(log)

    def keep(self, data: bytes, media_type: str, width: int, height: int) -> Picture:
        """Keep a picture, and return what names it; it is on disk then. Raises OSError."""
        digest = digest_of(data)
        picture = Picture(sha256=digest, media_type=media_type, width=width, height=height, size=len(data))
        if self.bytes_of(digest) is None:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            replace_file(os.path.join(self.folder, digest), (data,))
            sync_names(self.folder)
            sync_names(os.path.dirname(self.folder))
        return picture

    def bytes_of(self, digest: str) -> bytes | None:
        """Return the bytes with this digest; None where they are not there, or not what was kept."""
        if not _DIGEST.fullmatch(digest) or os.path.islink(self.folder):
            return None
        path = os.path.join(self.folder, digest)
        data = None if os.path.islink(path) else read_small(path, _MOST_BYTES)
        return data if data is not None and digest_of(data) == digest else None

    def remove(self) -> None:
        """Remove the folder with what is kept in it; what is no picture of ours stays, and then the folder."""
        try:
            names = os.listdir(self.folder) if not os.path.islink(self.folder) else []
            for name in filter(_DIGEST.fullmatch, names):
                remove_if_there(os.path.join(self.folder, name))
            os.rmdir(self.folder)
        except OSError:
            pass

    def take_over(self, pictures: Sequence[Picture], log: str) -> int:
        """Keep what an earlier session's log has of `pictures`, as far as it is there; return how many are missing."""
        other, missing = KeptPictures(log), 0
        for picture in pictures:
            data = self.bytes_of(picture.sha256) or other.bytes_of(picture.sha256)
            if data is None:
                missing += 1
                continue
            try:
                self.keep(data, picture.media_type, picture.width, picture.height)
            except OSError:
                missing += 1
        return missing
