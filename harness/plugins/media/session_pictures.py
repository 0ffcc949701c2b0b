"""The pictures of one session: kept beside its log, and sent where its model takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.log.attachments import KeptPictures
from harness.messages import Message, Picture

if TYPE_CHECKING:
    from harness.plugins.media.pictures import CleanPicture
    from harness.session.config.settings import Settings


class SessionPictures:
    """What the tools, the adapters and the prompt need of the pictures of a session; the log is known later than these."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings in force."""
        self.settings = settings
        """Changed with the model."""
        self._kept: KeptPictures | None = None

    def begin(self, log: str) -> None:
        """Keep pictures beside the log at this path from now on."""
        self._kept = KeptPictures(log)

    @property
    def why_not(self) -> str:
        """Why the model gets none, or nothing."""
        said = self.settings.pictures
        if said.value:
            return "" if self._kept is not None else "there is no log to keep them beside"
        model = self.settings.model.value
        if said.origin.startswith(("default", "preset ")):
            return f"{model} is not known to take pictures here; where it does, `pictures = true` in the configuration says so"
        return f"pictures = false ({said.origin})"

    def keep(self, picture: CleanPicture) -> Picture:
        """Keep one. Raises OSError."""
        if self._kept is None:
            raise OSError(0, "there is no log yet")
        return self._kept.keep(picture.data, picture.media_type, picture.width, picture.height)

    def bytes_of(self, digest: str) -> bytes | None:
        """Return the bytes of a picture; None where they are gone."""
        return self._kept.bytes_of(digest) if self._kept is not None else None

    def take_over(self, messages: Sequence[Message], log: str) -> int:
        """Keep the pictures of a conversation that the log at `log` has; return how many are gone."""
        pictures = tuple(dict.fromkeys(picture for message in messages for picture in message.pictures))
        return self._kept.take_over(pictures, log) if self._kept is not None and pictures else 0
