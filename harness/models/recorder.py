"""A model whose requests and replies are recorded in a cassette, unchanged except for masked secrets.

INVARIANT: every text of the conversation passes through the redactor. Headers, addresses and keys never get here.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence

from harness import __version__
from harness.actions import JsonValue
from harness.errors import CutReply, ModelError, ModelFault, UsageError
from harness.messages import Message, ModelResponse
from harness.model import Model, Retry, ToolSpec
from harness.models.cassette import (
    MAX_CASSETTE_BYTES,
    Failed,
    Header,
    RecordedExchange,
    exchange_fields,
    header_fields,
    line_of,
)
from harness.models.divergence import MessageOutline, Outlines
from harness.record import replace
from harness.redaction.redactor import Redactor

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND


class RecordingModel:
    """Wrapper of a model that records each request and reply at once, so that a killed run leaves those so far.

    A reply that was interrupted, or dropped at the end of the run's time, is not recorded: the model did not cause that.
    """

    def __init__(self, model: Model, path: str, redactor: Redactor, *, workspace: str = "", api: str = "") -> None:
        """Create the file at `path`, mode 0600.

        `workspace` is the absolute path of the workspace. `api` is only written to the header.

        The file is removed with this object, or when the program exits, if no request was recorded and `close` was
        not called: a run that did not start must not block the next one.

        Raises UsageError if the file exists or cannot be created.
        """
        self.path = path
        self.problem = ""
        """Reason why the file is incomplete, empty if it is complete. An incomplete file still ends with a whole line."""
        self._model = model
        self._redact = redactor.redact
        self._outlines = Outlines(redactor.redact, {workspace: "<workspace>"})
        self._before: list[MessageOutline] = []
        self._requests = 0
        self._size = 0
        self._file = _create(path)
        self._unasked = weakref.finalize(self, _remove, path, os.fstat(self._file), os.getpid())
        header = Header(harness=__version__, model=self._redact(model.name), api=api, workspace=workspace)
        self._write(header_fields(header))
        if self.problem:
            raise UsageError(self.problem)

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._model.name

    @property
    def client(self) -> str:
        """Name and version of the recorded model's client. Empty if it has none."""
        client = getattr(self._model, "client", "")
        return client if isinstance(client, str) else ""

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        """Return the reply of the model, or raise its error; see Model.complete."""
        retries: list[Retry] = []

        def heard(retry: Retry) -> None:
            retries.append(replace(retry, reason=self._redact(retry.reason)))
            on_retry(retry)

        try:
            response = self._model.complete(messages, tools, on_text=on_text, on_retry=heard, seconds=seconds)
        except ModelError as error:
            if error.fault is not ModelFault.TIME:
                failed = Failed(
                    is_cut=isinstance(error, CutReply),
                    text=self._redact(str(error)),
                    fault=error.fault,
                    usage=error.usage,
                )
                self._keep(messages, tools, retries, failed)
            raise
        self._keep(messages, tools, retries, self._masked(response))
        return response

    def close(self) -> None:
        """Close the file. Later replies are not recorded, and `problem` says so."""
        self._unasked.detach()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _masked(self, response: ModelResponse) -> ModelResponse:
        redact = self._redact
        calls = tuple(
            replace(
                call,
                id=redact(call.id),
                name=redact(call.name),
                arguments=redact(call.arguments),
                problem=redact(call.problem),
            )
            for call in response.tool_calls
        )
        return replace(response, text=redact(response.text), tool_calls=calls, echo=redact(response.echo))

    def _keep(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        retries: Sequence[Retry],
        came: ModelResponse | Failed,
    ) -> None:
        self._unasked.detach()
        self._requests += 1
        outlines = self._outlines.of(messages)
        common = 0
        for old, new in zip(self._before, outlines, strict=False):
            if old != new:
                break
            common += 1
        self._before = outlines
        exchange = RecordedExchange(
            kept=common,
            messages=tuple(outlines[common:]),
            tools=tuple(self._redact(spec.name) for spec in tools),
            retries=tuple(retries),
            came=came,
        )
        self._write(exchange_fields(self._requests, exchange))

    def _write(self, fields: Mapping[str, JsonValue]) -> None:
        """Append a whole line. On failure set `problem`, write no part of the line, and append no further lines."""
        if self.problem:
            return
        line = line_of(fields)
        try:
            if self._file < 0:
                self._fail("the file was closed")
            elif self._size + len(line) > MAX_CASSETTE_BYTES:
                self._fail(f"a cassette holds at most {MAX_CASSETTE_BYTES:,} bytes")
            else:
                _write_all(self._file, line, self._size)
                self._size += len(line)
        except OSError as error:
            self._fail(error.strerror or str(error))

    def _fail(self, reason: str) -> None:
        self.problem = (
            self.problem or f"the cassette {self.path} lacks the replies from request {self._requests} on: {reason}"
        )


def _create(path: str) -> int:
    try:
        return os.open(path, _NEW_FILE, 0o600)
    except FileExistsError:
        raise UsageError(f"--record {path}: there is such a file already, and it is not overwritten") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise UsageError(f"--record {path}: it cannot be made: {reason}") from None


def _remove(path: str, status: os.stat_result, maker: int) -> None:
    """Remove the file that process `maker` created at `path`. Do nothing in a fork of that process."""
    try:
        if os.getpid() == maker and os.path.samestat(os.lstat(path), status):
            os.unlink(path)
    except OSError:
        pass


def _write_all(descriptor: int, line: bytes, size: int) -> None:
    """Append the line to a file of `size` bytes. Raises OSError; the file is unchanged then."""
    rest = memoryview(line)
    try:
        while rest:  # a disk that fills up gives a short write and no error (write(2))
            rest = rest[os.write(descriptor, rest) :]
    except BaseException:
        os.ftruncate(descriptor, size)
        raise
