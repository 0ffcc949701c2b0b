"""Attachments in requests: the servers that accept them, and the replacement text of an attachment that is not sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias, assert_never

from harness.messages import Attachment, Message
from harness.models.failures import ImageFault, ProviderRefusal, image_fault
from harness.regex import regex

AttachmentSource: TypeAlias = Callable[[str], bytes | None]
"""Returns the bytes of an attachment by its SHA-256; None if they are missing."""

_SEEING_PRESETS = frozenset(("openai", "azure", "anthropic", "anthropic-messages", "gemini", "openrouter"))
"""Presets whose documentation offers attachments. If one of their models accepts none, the provider refuses them."""
_BLIND_MODELS = regex(r"(^|/)(o1-mini|o1-preview|o3-mini|gpt-3\.5|gpt-4-0|gpt-4$|deepseek|codex-mini)", re.IGNORECASE)
"""Pattern of models that accept no images according to their makers (platform.openai.com/docs/models)."""


def takes_images(preset: str, model: str) -> bool:
    """Return whether a model of this preset is known to accept images. `preset` is empty for an unknown address."""
    return preset in _SEEING_PRESETS and not _BLIND_MODELS.search(model)


class Sight:
    """Decides which attachments of a conversation are sent to one server, and provides texts that replace the others."""

    def __init__(self, source: AttachmentSource | None) -> None:
        """`source` provides the bytes; `None` for a model that reads only text."""
        self._source = source
        self._refused: frozenset[str] = frozenset()
        """SHA-256 of each attachment that is replaced by text, because the server refused a request with it."""

    def sends(self, attachment: Attachment) -> bool:
        """Return whether an attachment is sent, provided that its bytes still exist."""
        return self._source is not None and attachment.sha256 not in self._refused

    def encoded(self, attachment: Attachment) -> str:
        """Return the bytes of an attachment as Base64 text; empty if it is not sent."""
        data = self._source(attachment.sha256) if self._source is not None and self.sends(attachment) else None
        if data is None:
            return ""
        import base64

        return base64.b64encode(data).decode()

    def address(self, attachment: Attachment) -> str:
        """Return an attachment as a `data:` URL; empty if it is not sent."""
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

        If attachments are too large or too many, first only those of the newest message are sent, then none of them.
        Attachments of later messages are sent again.
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
