"""The list of a server's models (`GET /models`). The deadline is short, since a user waits for the list."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.errors import ModelError, ModelFault
from harness.models.endpoint import Endpoint
from harness.models.exchange import Exchange
from harness.models.failures import FailedTry
from harness.models.model_facts import LONGEST_NAME, ModelFacts, facts_in
from harness.models.openai_client import OpenAIClient
from harness.text.strict_json import NotJsonError, read_line

MOST_SECONDS = 3.0
MOST_BYTES = 8 * 1024 * 1024
MOST_MODELS = 2_000
_PAGE = "/models?limit=1000"
"""Path for Anthropic's API. It lists 20 models by default, at most 1,000 (platform.claude.com/docs/en/api/models-list)."""


def listed_models(endpoint: Endpoint, *, seconds: float = MOST_SECONDS) -> tuple[str, ...]:
    """Return the sorted names of the server's models, at most MOST_MODELS. Names that do not fit on a line are left out.

    Raises ModelError if the server sends no list within `seconds`. Any thread may call this: it opens its own
    connections.
    """
    return tuple(listed_facts(endpoint, seconds=seconds))


def listed_facts(endpoint: Endpoint, *, seconds: float = MOST_SECONDS) -> Mapping[str, ModelFacts]:
    """Return the facts about each model, by the names of `listed_models`. Raises ModelError as `listed_models` does."""
    client = OpenAIClient("", endpoint)
    try:
        path = _PAGE if endpoint.anthropic_version else "/models"
        answer = _answer(client, path, time.monotonic() + seconds)
        facts = dict(_rows(read_line(answer)))
        return {name: facts_in(facts[name]) for name in sorted(facts)[:MOST_MODELS]}
    except NotJsonError:
        raise ModelError(f"{client.address} answered with no list of models.", fault=ModelFault.REPLY) from None
    except TimeoutError:
        text = f"{client.address} gave no list of models within {seconds:g} s."
        raise ModelError(text, fault=ModelFault.TIMEOUT) from None
    except FailedTry as failed:
        missing = failed.fault is ModelFault.NOT_FOUND
        raise ModelError(f"{client.address} lists no models." if missing else str(failed), fault=failed.fault) from None
    finally:
        client.close()


def _answer(client: OpenAIClient, path: str, ends: float) -> bytes:
    """Return the body of the answer. Raises TimeoutError, and FailedTry as the client does."""
    exchange = Exchange(lambda: client.send(path, None), hang_up=client.connections.hang_up)
    body = bytearray()
    try:
        exchange.start()
        while (piece := exchange.take(ends - time.monotonic())) is not None:
            body += piece if isinstance(piece, bytes) else b""
            if len(body) > MOST_BYTES:
                raise FailedTry(f"{client.address} sent a list of models that is too long.", fault=ModelFault.REPLY)
    finally:
        exchange.close()
    return bytes(body)


def _rows(answer: JsonValue) -> Iterator[tuple[str, Mapping[str, JsonValue]]]:
    """Yield the name and the row of each model in an answer `{"data": [{"id": ...}]}`. Raises NotJsonError."""
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise NotJsonError("no list")
    for row in rows:
        name = row.get("id") if isinstance(row, dict) else None
        if isinstance(row, dict) and isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable():
            yield name, row
