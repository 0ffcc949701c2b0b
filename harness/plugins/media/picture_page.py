"""A picture for the model: a line of text, and the picture itself if the model accepts pictures."""

from __future__ import annotations

import os

from harness.errors import ErrorCode, ToolError
from harness.files.judged_files import display_path
from harness.gate.tool import ToolOutput
from harness.messages import Attachment
from harness.plugins.media.pictures import (
    MAX_PICTURE_BYTES,
    TITLES,
    CleanPicture,
    PictureError,
    clean_picture,
    picture_type,
)
from harness.tools.file_reader import AttachmentKeeper, OpenedFile


def kept_picture(picture: CleanPicture, keeper: AttachmentKeeper) -> Attachment:
    """Store a picture without its metadata. Raises OSError."""
    return keeper.keep(picture.data, picture.media_type, picture.width, picture.height)


class PictureReader:
    """Reads pictures."""

    description = "a PNG, JPEG, WebP or GIF is shown to you if you take pictures"

    def __init__(self, keeper: AttachmentKeeper | None) -> None:
        """Create a reader that stores pictures with `keeper`. Without a keeper it accepts no file."""
        self._keeper = keeper

    def takes(self, start: bytes) -> bool:
        """Return whether a file that begins with `start` is a picture."""
        return self._keeper is not None and bool(picture_type(start))

    def read(self, opened: OpenedFile) -> ToolOutput:
        """Return a line about the picture, and the picture if the model accepts pictures.

        Raises ToolError if the picture is damaged, is too large or cannot be stored.
        """
        if self._keeper is None:
            raise TypeError("expected an AttachmentKeeper, got None")
        return _picture_page(opened, self._keeper)


def _picture_page(opened: OpenedFile, keeper: AttachmentKeeper) -> ToolOutput:
    file, start, path = opened.file, opened.start, opened.path
    title = TITLES[picture_type(start)]
    data = start + (file.read(MAX_PICTURE_BYTES + 1 - len(start)) or b"")
    size = max(os.fstat(file.fileno()).st_size, len(data))
    try:
        picture = clean_picture(data)
    except PictureError as error:
        code = ErrorCode.TOO_LARGE if len(data) > MAX_PICTURE_BYTES else ErrorCode.BINARY
        raise ToolError(
            f"{display_path(path)} begins as a {title} picture ({size:,} bytes); {error}.", code=code
        ) from None
    facts = f"{title} picture, {picture.width} x {picture.height} pixels, {size:,} bytes"
    if keeper.why_not:
        return ToolOutput(content=f"[{facts}; not shown: {keeper.why_not}]", output_bytes=size)
    try:
        attachment = kept_picture(picture, keeper)
    except OSError as error:
        raise ToolError(
            f"{display_path(path)}, a {title} picture, cannot be kept beside the log: {error.strerror}."
        ) from None
    without = f"; {picture.dropped:,} bytes of metadata left out" if picture.dropped else ""
    return ToolOutput(
        content=f"[{facts}{without}; it is shown with this result]", output_bytes=size, attachments=(attachment,)
    )
