"""The contract of the adapters, each row through the real client over a real socket; runs on openai 2.x and 3.x."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TypedDict, assert_never

import pytest
from clocks import Clock
from fault_server import FaultServer
from rows import all_rows
from wire_contract import (
    CHAT,
    MAX_ARGUMENT_CHARACTERS,
    MAX_CALLS,
    MESSAGES,
    RESPONSES,
    ROWS,
    Expected,
    Failed,
    Interrupted,
    Row,
    Said,
    Speaker,
)

from harness.errors import CutReply, ModelError
from harness.log.schema import MAX_RECORD_BYTES
from harness.messages import Message, ModelResponse, Role
from harness.model import MAX_REPLY_CHARACTERS, Model
from harness.models.anthropic_messages import AnthropicMessages
from harness.models.chat_reply import ChatReply
from harness.models.dialect import Assembly
from harness.models.endpoint import Deadlines, Endpoint, ReplyBounds
from harness.models.messages_reply import MessagesReply
from harness.models.openai_chat import OpenAIChat
from harness.models.openai_responses import OpenAIResponses
from harness.models.reply_body import ReplyBody
from harness.models.responses_reply import ResponsesReply

GO = (Message(role=Role.USER, content="go"),)
LEAST_ROWS = 75
PIECE = "x" * 10_000


def endpoint(url: str, idle: float) -> Endpoint:
    return Endpoint(
        base_url=url,
        api_key="sk-contract-0123",
        attempts=2,
        deadlines=Deadlines(connect=600, first_event=600, idle=idle, total=3600),
        bounds=ReplyBounds(calls=MAX_CALLS, argument_characters=MAX_ARGUMENT_CHARACTERS),
    )


class Seams(TypedDict):
    """What an adapter is given in place of the machine's own."""

    sleep: Callable[[float], None]
    jitter: Callable[[], float]
    monotonic: Callable[[], float]


class Watching:
    """What an adapter reported while a row was played."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.slept: list[float] = []
        self.text: list[str] = []
        monotonic = time.monotonic if row.tick is None else Clock(row.tick)
        self.seams = Seams(sleep=self.slept.append, jitter=lambda: 0.0, monotonic=monotonic)

    def hear(self, text: str) -> None:
        self.text.append(text)
        if self.row.interrupts:
            raise KeyboardInterrupt

    def outcome(self, model: Model) -> Expected:
        try:
            reply = model.complete(GO, (), on_text=self.hear, on_retry=lambda _: None, seconds=self.row.seconds)
        except KeyboardInterrupt:
            return Interrupted.PASSED
        except ModelError as error:
            kind = CutReply if isinstance(error, CutReply) else ModelError
            return Failed(fault=error.fault, text=str(error), kind=kind)
        return self.said(reply)

    def said(self, reply: ModelResponse) -> Said:
        """Return the reply; what was heard is what it says, or ends with it where a try before had begun."""
        assert "".join(self.text).endswith(reply.text)
        return Said(text=reply.text, calls=reply.tool_calls, finish_reason=reply.finish_reason, usage=reply.usage)


def check(found: Expected, expected: Expected) -> None:
    match expected:
        case Failed():
            assert isinstance(found, Failed), found
            assert (found.fault, found.kind) == (expected.fault, expected.kind), found.text
            assert expected.text in found.text
        case Said() | Interrupted.PASSED:
            assert found == expected
        case _:
            assert_never(expected)


@all_rows("row", ROWS)
def test_chat_completions(row: Row) -> None:
    watching = Watching(row)
    with FaultServer(row.answers(CHAT)) as server:
        model = OpenAIChat("m", endpoint(server.url, row.idle), **watching.seams)
        with closing(model):
            found = watching.outcome(model)
        asked = [request.head.split(" ", 2)[1] for request in server.requests]
    check(found, row.expected)
    assert asked == ["/v1/chat/completions"] * row.requests
    assert row.slept is None or tuple(watching.slept) == row.slept


@all_rows("row", ROWS)
def test_responses(row: Row) -> None:
    watching = Watching(row)
    with FaultServer(row.answers(RESPONSES)) as server:
        model = OpenAIResponses("m", endpoint(server.url, row.idle), **watching.seams)
        with closing(model):
            found = watching.outcome(model)
        asked = [request.head.split(" ", 2)[1] for request in server.requests]
    check(found, row.responses_expected or row.expected)
    assert asked == ["/v1/responses"] * (row.responses_requests or row.requests)
    assert row.slept is None or tuple(watching.slept) == row.slept


@all_rows("row", ROWS)
def test_messages(row: Row) -> None:
    watching = Watching(row)
    with FaultServer(row.answers(MESSAGES)) as server:
        model = AnthropicMessages("m", endpoint(server.url, row.idle), **watching.seams)
        with closing(model):
            found = watching.outcome(model)
        asked = [request.head for request in server.requests]
    check(found, row.responses_expected or row.expected)
    assert [head.split(" ", 2)[1] for head in asked] == ["/v1/messages"] * (row.responses_requests or row.requests)
    assert row.slept is None or tuple(watching.slept) == row.slept
    for head in asked:
        fields = head.lower().splitlines()
        assert "x-api-key: sk-contract-0123" in fields
        assert "anthropic-version: 2023-06-01" in fields
        assert not any(field.startswith("authorization") for field in fields)


ASSEMBLIES = [(CHAT, ChatReply), (RESPONSES, ResponsesReply), (MESSAGES, MessagesReply)]


@all_rows(("speaker", "assembly"), ASSEMBLIES, ids=["chat", "responses", "messages"])
def test_long_text_is_read_up_to_the_reply_limit(speaker: Speaker, assembly: type[Assembly]) -> None:
    """Counted is what was fed: 200 MB were offered."""
    body = ReplyBody(assembly())
    fed: list[str] = []
    told: list[str] = []

    def feed_all() -> None:
        for _ in range(20_000):
            fed.append(PIECE)
            told.extend(body.feed(speaker.text(PIECE)))

    body.feed(speaker.start())
    with pytest.raises(ModelError, match="5,505,024 characters"):
        feed_all()
    assert 0 < sum(map(len, told)) <= MAX_REPLY_CHARACTERS < sum(map(len, fed)) <= MAX_REPLY_CHARACTERS + len(PIECE)


def test_the_longest_reply_fits_a_record_of_the_log() -> None:
    """A character may take twelve bytes there (RFC 8259, section 7), and a megabyte is for the other fields."""
    assert MAX_REPLY_CHARACTERS * 12 + 1024 * 1024 == MAX_RECORD_BYTES


def test_the_table_is_as_long_as_it_was() -> None:
    assert len(ROWS) >= LEAST_ROWS
