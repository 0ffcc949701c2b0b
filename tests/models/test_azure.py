"""Azure OpenAI: addressed by resource, deployment and API version, or like OpenAI itself; runs on openai 2.x and 3.x."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import Any

import pytest
from fault_server import Answer, FaultServer, Request, status, whole
from rows import all_rows
from wire_contract import CHAT, RESPONSES, Speaker, fine

from harness.errors import ModelError, ModelFault
from harness.messages import Message, Role
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses

KEY = "azure-key-0123456789"
VERSION = "2024-10-21"
GO = (Message(role=Role.USER, content="go"),)
SPEAKERS: dict[type[OpenAIChat | OpenAIResponses], Speaker] = {OpenAIChat: CHAT, OpenAIResponses: RESPONSES}
ADAPTERS = [pytest.param(adapter, id=adapter.__name__) for adapter in SPEAKERS]


def ask(
    adapter: type[OpenAIChat | OpenAIResponses], answer: Answer, path: str = "", **more: Any
) -> tuple[str, Request]:
    """Return what came of one question to a server at `path`, and the request."""
    with FaultServer([answer]) as server:
        endpoint = Endpoint(base_url=server.url.removesuffix("/v1") + path, api_key=KEY, attempts=1, **more)
        with closing(adapter("my-gpt", endpoint)) as model:
            reply = model.complete(GO, (), on_text=lambda _: None, on_retry=lambda _: None)
        return reply.text, server.requests[0]


def header(request: Request, name: str) -> str:
    found = re.search(rf"^{name}: (.*)\r?$", request.head, re.IGNORECASE | re.MULTILINE)
    return found[1].strip() if found else ""


@all_rows("path", ["", "/", "/openai", "/openai/", "/openai/v1", "/openai/v1/"])
@all_rows(
    ("adapter", "target"),
    [
        pytest.param(OpenAIChat, "/openai/deployments/my-gpt/chat/completions", id="chat completions"),
        pytest.param(OpenAIResponses, "/openai/responses", id="responses"),
    ],
)
def test_api_version_selects_an_azure_deployment(
    adapter: type[OpenAIChat | OpenAIResponses], target: str, path: str
) -> None:
    text, request = ask(adapter, fine(SPEAKERS[adapter]), path, azure_api_version=VERSION)
    assert text == "fine"
    assert request.head.startswith(f"POST {target}?api-version={VERSION} HTTP/1.1\r\n")
    assert header(request, "api-key") == KEY
    assert request.json["model"] == "my-gpt"


@all_rows("adapter", ADAPTERS)
def test_address_without_a_version_is_like_that_of_openai(adapter: type[OpenAIChat | OpenAIResponses]) -> None:
    text, request = ask(adapter, fine(SPEAKERS[adapter]), "/openai/v1/")
    assert text == "fine"
    assert re.match(r"POST /openai/v1/(chat/completions|responses) HTTP", request.head)
    assert header(request, "authorization") == f"Bearer {KEY}"


FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"violence": {"filtered": True, "severity": "high"}},
        },
    }
}
REFUSALS = {
    "its content filter": (400, FILTERED, ModelFault.CONTENT),
    "a deployment that is not there": (
        404,
        {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}},
        ModelFault.NOT_FOUND,
    ),
    "a path that is not there": (
        404,
        {"error": {"code": "404", "message": "Resource not found"}},
        ModelFault.NOT_FOUND,
    ),
    "a key that is not its own": (
        401,
        {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}},
        ModelFault.AUTHENTICATION,
    ),
}


@all_rows("adapter", ADAPTERS)
@all_rows(("code", "body", "fault"), REFUSALS)
def test_its_refusals_are_known(
    adapter: type[OpenAIChat | OpenAIResponses], code: int, body: object, fault: ModelFault
) -> None:
    with pytest.raises(ModelError) as raised:
        ask(adapter, status(code, body), azure_api_version=VERSION)
    assert raised.value.fault is fault
    assert KEY not in str(raised.value)


def test_azure_endpoint_needs_an_address() -> None:
    model = OpenAIChat("my-gpt", Endpoint(api_key=KEY, azure_api_version=VERSION))
    with pytest.raises(ModelError, match=r"^The base URL must begin with http") as raised:
        model.complete(GO, (), on_text=lambda _: None, on_retry=lambda _: None)
    assert raised.value.fault is ModelFault.SETTINGS


def test_chunk_with_only_filter_results_adds_no_text() -> None:
    told = json.dumps({"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]})
    data = f"data: {told}\n\n".encode() + CHAT.text("a") + CHAT.end()
    text, _ = ask(OpenAIChat, whole(data), azure_api_version=VERSION)
    assert text == "a"
