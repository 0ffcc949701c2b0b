"""The attachments of one session: stored beside its log, and sent to a model that supports them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.log.attachments import KeptAttachments
from harness.messages import Attachment, Message
from harness.session.config.settings import Settings


class SessionAttachments:
    """Stores the attachments of a session. Tools, models and the prompt share it before the log is open."""

    def __init__(self, settings: Settings) -> None:
        """Keep the settings in force."""
        self.settings = settings
        """The settings of the current model; replaced when the model changes."""
        self._attachments: KeptAttachments | None = None

    def begin(self, log: str) -> None:
        """Store attachments beside the log at this path from now on."""
        self._attachments = KeptAttachments(log)

    @property
    def why_not(self) -> str:
        """The reason why the model gets no attachments; empty if it gets them."""
        setting = self.settings.pictures
        if setting.value:
            return "" if self._attachments is not None else "there is no log to keep them beside"
        model = self.settings.model.value
        if setting.origin.startswith(("default", "preset ")):
            return f"{model} is not known to take pictures here; where it does, `pictures = true` in the configuration says so"
        return f"pictures = false ({setting.origin})"

    def keep(self, data: bytes, media_type: str, width: int, height: int) -> Attachment:
        """Store the bytes and return an attachment that refers to them. Raises OSError."""
        if self._attachments is None:
            raise OSError(0, "there is no log yet")
        return self._attachments.keep(data, media_type, width, height)

    def bytes_of(self, digest: str) -> bytes | None:
        """Return the bytes of an attachment; None if they are missing."""
        return self._attachments.bytes_of(digest) if self._attachments is not None else None

    def take_over(self, messages: Sequence[Message], log: str) -> int:
        """Copy the attachments of a conversation from the folder of another log. Return the number of missing ones."""
        attachments = tuple(dict.fromkeys(attachment for message in messages for attachment in message.attachments))
        return self._attachments.take_over(attachments, log) if self._attachments is not None and attachments else 0
