"""The models that a server lists: asked with little time, believed as far as a line can hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from fault_server import Answer, End, FaultServer, Send, Wait
from rows import all_rows

from harness.errors import ModelError, ModelFault
from harness.models.endpoint import Endpoint
from harness.models.model_list import MOST_MODELS, listed_models

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


def answered(body: bytes) -> Answer:
    return Answer(steps=(Send(data=HEAD % len(body) + body), End.CLOSE))


def listed(*answers: Answer, seconds: float = 60.0) -> Sequence[str]:
    with FaultServer(answers) as server:
        return listed_models(Endpoint(base_url=server.url, api_key="k-0815"), seconds=seconds)


def data(*names: object) -> bytes:
    return json.dumps({"data": [{"id": name} for name in names]}).encode()


@all_rows(
    ("body", "names"),
    [
        pytest.param(data("b", "a", "a"), ("a", "b"), id="sorted, each once"),
        pytest.param(
            data("ok", "esc\x1b[2J", "two\nlines", "", 7, None, "x" * 201), ("ok",), id="what a line can hold"
        ),
        pytest.param(data(), (), id="none"),
        pytest.param(b'{"data": [1, "x", {"id": "a"}, {}]}', ("a",), id="rows that are none"),
    ],
)
def test_the_names_are_taken(body: bytes, names: Sequence[str]) -> None:
    assert listed(answered(body)) == names


@all_rows(("version", "asked"), [("", "/models"), ("2023-06-01", "/models?limit=1000")])
def test_model_list_of_anthropic_is_fetched_completely(version: str, asked: str) -> None:
    """Of its pages the first has 20 models where nobody asks for more."""
    with FaultServer([answered(data("a"))]) as server:
        listed_models(Endpoint(base_url=server.url, api_key="k-0815", anthropic_version=version), seconds=60.0)
        (request,) = server.requests
    assert request.head.split()[1].endswith(asked)


def test_a_list_has_an_end() -> None:
    assert len(listed(answered(data(*(f"m{number}" for number in range(MOST_MODELS + 10)))))) == MOST_MODELS


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"


@all_rows(
    ("answer", "fault"),
    [
        pytest.param(answered(b"{}"), ModelFault.REPLY, id="no list"),
        pytest.param(answered(b"[" * 100_000), ModelFault.REPLY, id="endless nesting"),
        pytest.param(answered(b"\xff"), ModelFault.REPLY, id="no text"),
        pytest.param(Answer(steps=(Send(data=NOT_FOUND), End.CLOSE)), ModelFault.NOT_FOUND, id="an error status"),
        pytest.param(Answer(steps=(End.RESET,)), ModelFault.CONNECTION, id="a reset"),
    ],
)
def test_invalid_model_list_is_an_error(answer: Answer, fault: ModelFault) -> None:
    with pytest.raises(ModelError) as caught:
        listed(answer)
    assert "k-0815" not in str(caught.value)
    assert caught.value.fault is fault


def test_a_server_that_stalls_is_not_waited_for() -> None:
    with pytest.raises(ModelError, match=r"no list of models within 0\.3 s"):
        listed(Answer(steps=(Wait(seconds=1000.0),)), seconds=0.3)
