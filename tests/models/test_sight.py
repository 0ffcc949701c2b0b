"""Pictures on the wire: what a server does not take is sent as text, by every API, and the rest stays a picture."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from fault_server import FaultServer
from rows import all_rows
from wire_contract import CHAT, MESSAGES, RESPONSES, error, fine

from harness.errors import ModelError
from harness.messages import Attachment, Message, Role, ToolCall
from harness.model import Retry
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.openai_wire import OpenAIWire

SPEAKERS = {OpenAIChat: CHAT, OpenAIResponses: RESPONSES, AnthropicMessages: MESSAGES}
ADAPTERS = [pytest.param(made, id=made.__name__) for made in SPEAKERS]
# anthropics/claude-code#49537 and #52220, daya0576/pi-imessage#5.
TOO_LARGE = "messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 5272940 bytes > 5242880 bytes"
TOO_MANY = (
    "messages.8.content.3.image.source.base64.data: At least one of the image dimensions exceed max allowed size for "
    "many-image requests: 2000 pixels"
)
STANDS = "a picture stood here"


def picture(name: str) -> Attachment:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Attachment(sha256=digest, media_type="image/png", width=3, height=2, size=9)


def looked(name: str, place: int) -> list[Message]:
    call = ToolCall(id=f"c{place}", name="look", arguments="{}")
    shown = Message(role=Role.TOOL, content="[shown]", tool_call_id=call.id, attachments=(picture(name),))
    return [Message(role=Role.ASSISTANT, content="", tool_calls=(call,)), shown]


ASKED = [Message(role=Role.USER, content="go", attachments=(picture("a"),)), *looked("b", 1), *looked("c", 2)]


class Conversation:
    """One adapter before one server, and what each of its requests showed."""

    def __init__(self, made: type[OpenAIWire], server: FaultServer) -> None:
        self._server = server
        self.retries: list[Retry] = []
        self.model = made(
            "m",
            Endpoint(
                base_url=server.url, api_key="sk-sight-012", attempts=1, attachments=lambda digest: digest.encode()
            ),
        )

    def ask(self, messages: Sequence[Message]) -> str:
        with closing(self.model):
            return self.model.complete(messages, (), on_text=lambda _: None, on_retry=self.retries.append).text

    def shown(self) -> list[tuple[str, int]]:
        """Return, for each request, which pictures it showed, and how many texts stood for others."""
        return [seen(request.json) for request in self._server.requests]


def seen(asked: Any) -> tuple[str, int]:
    text = json.dumps(asked)
    names = "abcdef"
    shown = [name for name in names if base64.b64encode(picture(name).sha256.encode()).decode() in text]
    return "".join(shown), text.count(STANDS)


@all_rows("said", {"one is too large": TOO_LARGE, "one of many is too large": TOO_MANY}.items())
@all_rows("made", ADAPTERS)
def test_refused_pictures_are_retried_one_by_one_and_later_ones_sent(
    made: type[OpenAIWire], said: tuple[str, str]
) -> None:
    ok = fine(SPEAKERS[made])
    refused = error(400, said[1])
    with FaultServer([refused, ok, refused, refused, ok, ok]) as server:
        asked = Conversation(made, server)
        assert asked.ask(ASKED) == "fine"
        more = [*ASKED, *looked("d", 3)]
        assert asked.ask(more) == "fine"
        assert asked.ask([*more, *looked("e", 4)]) == "fine"
        assert asked.shown() == [("abc", 0), ("c", 2), ("cd", 2), ("d", 3), ("", 4), ("e", 4)]
    assert ["refused a picture" in retry.reason for retry in asked.retries] == [True] * 3


BLIND = {
    "OpenRouter": (404, "No endpoints found that support image input"),
    "OpenAI": (400, "Invalid content type. image_url is only supported by certain models."),
    "llama-server": (
        500,
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
    ),
    "DeepSeek": (400, "messages[0]: unknown variant `image_url`, expected `text` at line 1 column 90"),
    "vLLM": (400, "deepseek-r1 is not a multimodal model"),
    "vLLM, of a model of texts": (400, "At most 0 image(s) may be provided in one prompt."),
    "LM Studio": (400, "This model does not support image input"),
    "Groq": (400, "for 'role:user' the following must be satisfied[('messages.0.content' : value must be a string)]"),
    "Ollama": (500, "this model is missing data required for image input"),
}  # fmt: skip


@all_rows(("status", "said"), BLIND)
@all_rows("made", ADAPTERS)
def test_a_model_that_takes_no_pictures_gets_texts_from_then_on(made: type[OpenAIWire], status: int, said: str) -> None:
    ok = fine(SPEAKERS[made])
    with FaultServer([error(status, said), ok, ok]) as server:
        asked = Conversation(made, server)
        assert asked.ask(ASKED) == "fine"
        assert asked.ask([*ASKED, *looked("d", 3)]) == "fine"
        assert asked.shown() == [("abc", 0), ("", 3), ("", 4)]
    (retry,) = asked.retries
    assert "takes no pictures" in retry.reason


OTHERS = {
    "another field": (400, "temperature must be below 1"),
    "a policy": (400, "The image was flagged by our content policy"),
    "the key": (401, "image input needs a key"),
    "no model": (404, "No endpoints found for some/model"),
}


@all_rows(("status", "said"), OTHERS)
def test_other_refusals_do_not_disable_pictures(status: int, said: str) -> None:
    with FaultServer([error(status, said)]) as server:
        asked = Conversation(OpenAIChat, server)
        with pytest.raises(ModelError):
            asked.ask(ASKED)
        assert asked.shown() == [("abc", 0)]


def test_refusal_without_a_sent_picture_does_not_disable_pictures() -> None:
    with FaultServer([error(400, TOO_LARGE)]) as server:
        asked = Conversation(AnthropicMessages, server)
        with pytest.raises(ModelError):
            asked.ask([Message(role=Role.USER, content="go")])
    assert asked.retries == []
