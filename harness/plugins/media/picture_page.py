"""A picture for the model: a line of text, and the picture itself where the model takes pictures."""

from __future__ import annotations

import os
from typing import BinaryIO, Protocol

from harness.actions import PathAccess
from harness.errors import ErrorCode, ToolError
from harness.files.judged_files import shown
from harness.gate.tool import ToolOutput
from harness.messages import Picture
from harness.plugins.media.pictures import (
    MAX_PICTURE_BYTES,
    TITLES,
    CleanPicture,
    PictureError,
    clean_picture,
    picture_type,
)


class PictureTaker(Protocol):
    """Takes the pictures of a session."""

    @property
    def why_not(self) -> str:
        """Why the model gets none, in words for whoever could change that; empty where it gets them."""
        ...

    def keep(self, picture: CleanPicture) -> Picture:
        """Keep the bytes, on disk when this returns, and return what names them. Raises OSError."""
        ...


def picture_page(file: BinaryIO, start: bytes, path: PathAccess, taker: PictureTaker) -> ToolOutput:
    """Return what is read of the picture that begins with `start`, behind which `file` stands.

    Raises ToolError for a picture that is damaged or too large, saying so, and where it cannot be kept.
    """
    title = TITLES[picture_type(start)]
    data = start + (file.read(MAX_PICTURE_BYTES + 1 - len(start)) or b"")
    size = max(os.fstat(file.fileno()).st_size, len(data))
    try:
        picture = clean_picture(data)
    except PictureError as error:
        code = ErrorCode.TOO_LARGE if len(data) > MAX_PICTURE_BYTES else ErrorCode.BINARY
        raise ToolError(f"{shown(path)} begins as a {title} picture ({size:,} bytes); {error}.", code=code) from None
    facts = f"{title} picture, {picture.width} x {picture.height} pixels, {size:,} bytes"
    if taker.why_not:
        return ToolOutput(content=f"[{facts}; not shown: {taker.why_not}]", output_bytes=size)
    try:
        kept = taker.keep(picture)
    except OSError as error:
        raise ToolError(f"{shown(path)}, a {title} picture, cannot be kept beside the log: {error.strerror}.") from None
    without = f"; {picture.dropped:,} bytes of metadata left out" if picture.dropped else ""
    return ToolOutput(content=f"[{facts}{without}; it is shown with this result]", output_bytes=size, pictures=(kept,))
