"""A model that replays a cassette: the recorded replies in order, without network, key or waiting.

A cassette is untrusted input. Its tool calls go through the gate like those of any model.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence

from harness.actions import JsonValue
from harness.errors import ModelError, ModelFault, UsageError
from harness.messages import Message, ModelResponse, ToolCall
from harness.model import Retry, ToolSpec
from harness.models.cassette import (
    MAX_CASSETTE_BYTES,
    VERSION,
    Failed,
    Header,
    MalformedError,
    RecordedExchange,
    read_exchange,
    read_header,
)
from harness.models.divergence import Divergence, MessageOutline, Outlines, first_divergence
from harness.record import replace
from harness.redaction.marks import marks_in
from harness.redaction.redactor import Redactor
from harness.safe_files import read_small


class ReplayingModel:
    """Model that answers from a cassette. One conversation at a time."""

    client = f"cassette {VERSION}"
    """Name and version of the client, for the log."""

    def __init__(
        self,
        path: str,
        tell: Callable[[Divergence], None],
        *,
        workspace: str = "",
        redactor: Redactor | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the whole file. `tell` is called at most once, with the first difference from the recorded conversation.

        `workspace` is the absolute path of the current workspace, which replaces the recorded path in replies.
        `redactor` masks the texts before they are compared with the recorded ones, which were masked too.

        Raises UsageError for an invalid cassette. A last line without a newline is skipped and reported in `notes`.
        """
        self.path = path
        data = _read(path)
        self.sha256 = hashlib.sha256(data).hexdigest()
        """SHA-256 of the file."""
        self.header, self._exchanges, torn = _parsed(path, data)
        self.notes = _notes(self.header, len(self._exchanges), torn=torn)
        """Notes about the file, to show to the user."""
        self._tell = tell
        self._monotonic = monotonic
        self._outlines = Outlines(redactor.redact if redactor else _as_it_is, {workspace: "<workspace>"})
        self._moved = _mover(self.header.workspace, workspace)
        self._recorded: list[MessageOutline] = []
        self._position = 0
        self.diverged: Divergence | None = None
        """The first difference from the recorded conversation. `None` if there is none so far."""

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self.header.model

    @property
    def log_fields(self) -> dict[str, JsonValue]:
        """Fields about the cassette for the first record of the log."""
        return {"path": self.path, "sha256": self.sha256}

    @property
    def unused(self) -> int:
        """Number of recorded replies that have not been replayed."""
        return max(len(self._exchanges) - self._position, 0)

    @property
    def marks(self) -> str:
        """The marks of masked secrets in all replies. A call that contains a mark must not run (see Redactor.note)."""
        replies = (exchange.came for exchange in self._exchanges)
        texts = (
            text
            for reply in replies
            if isinstance(reply, ModelResponse)
            for text in (reply.text, *(call.arguments for call in reply.tool_calls))
        )
        return " ".join(dict.fromkeys(mark for text in texts for mark in marks_in(text)))

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the next recorded reply or raise the recorded error, regardless of the request; see Model.complete.

        Raises ModelError if no reply is left, or if reporting the retries takes longer than `seconds`.
        """
        started = self._monotonic()
        if self._position >= len(self._exchanges):
            count = len(self._exchanges)
            raise ModelError(
                f"the cassette {self.path} is used up: it holds {count} {'reply' if count == 1 else 'replies'}, and the run "
                "asks for one more",
                fault=ModelFault.SETTINGS,
            )
        exchange = self._exchanges[self._position]
        self._position += 1
        self._compare(exchange, messages, tools)
        for retry in exchange.retries:
            if seconds is not None and self._monotonic() - started >= seconds:
                raise ModelError(
                    "The time that the run had left is over; the reply was not replayed.", fault=ModelFault.TIME
                )
            on_retry(retry)
        came = exchange.came
        if isinstance(came, Failed):
            raise came.error()
        response = self._moved(came)
        if response.text:
            on_text(response.text)
        return response

    def _compare(self, exchange: RecordedExchange, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        if self.diverged is not None:
            return
        self._recorded[exchange.kept :] = exchange.messages
        names = (exchange.tools, [spec.name for spec in tools])
        self.diverged = first_divergence(self._position, self._recorded, self._outlines.of(messages), names)
        if self.diverged is not None:
            self._tell(self.diverged)


def _as_it_is(text: str) -> str:
    return text


def _read(path: str) -> bytes:
    data = read_small(path, MAX_CASSETTE_BYTES)
    if data is None:
        limit = f"cannot be read (must be a regular file of at most {MAX_CASSETTE_BYTES:,} bytes)"
        raise UsageError(f"--replay {path}: {limit if os.path.exists(path) else 'no such file'}")
    return data


def _parsed(path: str, data: bytes) -> tuple[Header, list[RecordedExchange], bool]:
    """Parse a cassette; return its content and whether its last line lacks a newline. Raises UsageError."""
    first, *lines = data.split(b"\n")
    torn = bool(lines) and lines.pop() != b""
    exchanges: list[RecordedExchange] = []
    before, place = 0, 1
    try:
        header = read_header(first)
        for place, line in enumerate(lines, 2):
            exchange = read_exchange(line, place - 1, before)
            before = exchange.kept + len(exchange.messages)
            exchanges.append(exchange)
    except MalformedError as error:
        raise UsageError(f"--replay {path}:{place}: {error}") from None
    return header, exchanges, torn


def _notes(header: Header, count: int, *, torn: bool) -> tuple[str, ...]:
    replies = "1 reply" if count == 1 else f"{count} replies"
    api = f" (api: {header.api})" if header.api else ""
    notes = [f"replay: {replies} of {header.model}{api}, recorded by harness {header.harness}"]
    if torn:
        notes.append("replay: the last line of the cassette is incomplete and is left out, since its run was killed")
    return tuple(notes)


def _mover(recorded: str, now: str) -> Callable[[ModelResponse], ModelResponse]:
    """Return a function that replaces the recorded workspace with the current one in a reply."""
    if not now or recorded == now or not recorded.startswith("/") or len(recorded) < 2:
        return lambda response: response

    end = r"(?![\w-]|\.\w)"
    plain = re.compile(re.escape(recorded) + end)
    inside = re.compile(re.escape(_as_in_json(recorded)) + end)

    def moved(response: ModelResponse) -> ModelResponse:
        calls = tuple(
            ToolCall(id=call.id, name=call.name, arguments=inside.sub(lambda _: _as_in_json(now), call.arguments))
            for call in response.tool_calls
        )
        return replace(response, text=plain.sub(lambda _: now, response.text), tool_calls=calls)

    return moved


def _as_in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
