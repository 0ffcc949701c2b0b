"""Attachments on the wire: which servers are known to take them, and what an attachment becomes that cannot be sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from harness.messages import Attachment, Message
from harness.models.failures import ImageFault, ProviderRefusal, image_fault
from harness.regex import regex

AttachmentSource: TypeAlias = Callable[[str], bytes | None]
"""Returns the bytes of an attachment by its SHA-256; None where they are gone."""

_SEEING_PRESETS = frozenset(("openai", "azure", "anthropic", "anthropic-messages", "gemini", "openrouter"))
"""Their pages offer attachments in messages of the same API. Of a model there that takes none the provider says so itself."""
_BLIND_MODELS = regex(r"(^|/)(o1-mini|o1-preview|o3-mini|gpt-3\.5|gpt-4-0|gpt-4$|deepseek|codex-mini)", re.IGNORECASE)
"""Models without images according to their makers (platform.openai.com/docs/models)."""


def takes_images(preset: str, model: str) -> bool:
    """Return whether a model behind the preset of this name is known to take images. Empty name: an unknown address."""
    return preset in _SEEING_PRESETS and not _BLIND_MODELS.search(model)


class Sight:
    """Attachments of a conversation that one server is sent, and the texts that replace the others."""

    def __init__(self, source: AttachmentSource | None) -> None:
        """`source` provides the bytes; `None` for a model that reads text alone."""
        self._source = source
        self._refused: frozenset[str] = frozenset()
        """Digests of what goes as text since the server refused a request that held it."""

    def sends(self, attachment: Attachment) -> bool:
        """Say whether an attachment is sent, if its bytes are still there."""
        return self._source is not None and attachment.sha256 not in self._refused

    def encoded(self, attachment: Attachment) -> str:
        """Return the bytes of an attachment as Base64 text; empty if it is not sent."""
        data = self._source(attachment.sha256) if self._source is not None and self.sends(attachment) else None
        if data is None:
            return ""
        import base64

        return base64.b64encode(data).decode()

    def address(self, attachment: Attachment) -> str:
        """Return the same as a `data:` address, or an empty string."""
        text = self.encoded(attachment)
        return f"data:{attachment.media_type};base64,{text}" if text else ""

    def in_place_of(self, attachment: Attachment) -> str:
        """Return the text that replaces an attachment that is not sent."""
        reason = "its file beside the log is gone"
        if self._source is None:
            reason = "this model is not sent pictures"
        elif attachment.sha256 in self._refused:
            reason = "the server refused it, or a request with as many"
        return f"[a picture stood here: {attachment.words}; {reason}]"

    def learn(self, refusal: ProviderRefusal, messages: Sequence[Message]) -> bool:
        """Adapt to a refusal of `messages`; return whether fewer attachments are sent from now on.

        If attachments are too large or too many, only those of the newest message are tried, then none; later ones
        are sent again.
        """
        sent = [
            digests
            for message in messages
            if (digests := {attachment.sha256 for attachment in message.attachments if self.sends(attachment)})
        ]
        if not sent:
            return False
        match image_fault(refusal):
            case ImageFault.NONE:
                return False
            case ImageFault.ALL:
                self._source = None
            case ImageFault.SOME:
                newest = sent.pop()
                self._refused |= frozenset().union(*sent) - newest or newest
            case _ as other:
                assert_never(other)
        return True
