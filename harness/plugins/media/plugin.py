"""The plugin's additions: the tool `web_fetch`, and readers of pictures and PDF files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.plugin import Plugin, ToolOffer, later
from harness.tool_kinds import ToolKind

if TYPE_CHECKING:
    from harness.tools.file_reader import AttachmentKeeper, FileReader


def media_readers(keeper: AttachmentKeeper | None) -> Sequence[FileReader]:
    """Return the readers of pictures and PDF files. `keeper` stores pictures; without it, pictures are not read."""
    from harness.plugins.media.pdf_pages import PdfReader
    from harness.plugins.media.picture_page import PictureReader

    return PictureReader(keeper), PdfReader()


WEB_FETCH = ToolKind(name="web_fetch", subject="url", goes_to_hosts=True)

PLUGIN = Plugin(
    name="media",
    tools=(ToolOffer(kind=WEB_FETCH, make=later("harness.plugins.media.web_fetch", "web_fetch_tool")),),
    readers=media_readers,
    shown_endings=("png", "jpg", "jpeg", "webp", "gif"),
)
