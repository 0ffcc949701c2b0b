"""Messages, tool calls and tool results, exchanged between the model, the loop and the tools."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from harness.record import Record

if TYPE_CHECKING:
    from harness.actions import JsonValue  # it imports this module


class Role(Enum):
    """The sender of a message. The values are those of the chat completions API."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Record):
    """A tool call of the model, exactly as received and unchecked."""

    id: str
    name: str
    arguments: str
    """The raw argument text, kept unchanged even if it is invalid JSON.

    Adapters send a form of it that servers accept.
    """
    problem: str = ""
    """Reason why the call could not be parsed. It becomes the result, and the call is neither judged nor run."""


PIXELS_A_TOKEN = 750
"""Pixels per token, for an estimate.

Source: "tokens = (width px * height px)/750" (platform.claude.com/docs/en/build-with-claude/vision).
"""
MOST_ATTACHMENT_TOKENS = 1_600
"""Maximum number of tokens of one attachment.

The same page says that larger images are scaled down to about this number. The counts of other providers differ, but
not by an order of magnitude.
"""


class Attachment(Record):
    """An image that the model sees in addition to the text of a message.

    Its bytes are stored by digest next to the log.
    """

    sha256: str
    """The digest of the bytes that are sent."""
    media_type: str
    """The format of the bytes: image/png, image/jpeg, image/webp or image/gif."""
    width: int
    """Width in pixels."""
    height: int
    size: int
    """Size in bytes."""

    @property
    def tokens(self) -> int:
        """Estimated number of tokens of the attachment."""
        return min(MOST_ATTACHMENT_TOKENS, self.width * self.height // PIXELS_A_TOKEN + 1)

    @property
    def words(self) -> str:
        """A short description."""
        return f"{self.media_type}, {self.width} x {self.height} pixels, {self.size:,} bytes"


class Message(Record):
    """One entry of the conversation."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    """Only in assistant messages. The calls of the reply."""
    tool_call_id: str | None = None
    """Only in tool messages. ID of the call that this message is the result of."""
    echo: str = ""
    """Only in assistant messages. JSON that the provider wants back with the message (reasoning, signatures).

    Only the adapter that made it reads it. The harness itself does not need it.
    """
    attachments: tuple[Attachment, ...] = ()
    """Only in messages of the user and in tool messages. The attached images."""


class ResultStatus(Enum):
    """The result of a tool call. Only OK and FAILED mean that the tool's code ran to its end."""

    OK = "ok"
    FAILED = "failed"
    """The tool ran and reports an error, such as a non-zero exit code or a missing file."""
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"
    """The tool raised an unexpected exception, which is a bug."""
    INVALID = "invalid"
    """Unknown tool, invalid JSON or wrong arguments. The call was neither judged nor run."""
    DENIED = "denied"
    BLOCKED = "blocked"
    NOT_RUN = "not_run"
    """The run ended before the call's turn (a block, a limit, an interrupt), or the reply was cut off."""


class ToolResult(Record):
    """Result of a call. The model gets `content`; the other fields are for the log and the user."""

    call_id: str
    status: ResultStatus
    content: str
    exit_code: int | None = None
    duration_ms: int = 0
    output_bytes: int = 0
    """Size of the tool's whole output in bytes, before `content` was cut."""
    truncated: bool = False
    printed: str | None = None
    """Output of the command itself, as far as `content` has it, without the tool's additions."""
    terminal: bool = False
    """Whether the command used the user's terminal. If so, its output is not in `content`."""
    changed_path: str | None = None
    """The absolute path of the file that the call wrote, if it wrote one."""
    before_sha256: str | None = None
    """Digest of the file before the call. `None` if it did not exist."""
    after_sha256: str | None = None
    error_code: str = ""
    """The kind of a file error, if the tool reports it. See errors.ErrorCode."""
    extra: Mapping[str, JsonValue] = {}
    """Further facts of the tool's feature.

    They are stored in the log's outcome record, and the feature displays them.
    """
    attachments: tuple[Attachment, ...] = ()
    """Attachments that the model sees in addition to `content`."""


class Usage(Record):
    """Tokens as reported by the provider. Zero if it reported none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from a cache."""
    cache_write_tokens: int = 0
    """Input tokens that the provider wrote to a cache, if it counts them separately."""
    unreported: int = 0
    """Number of replies without reported usage. Their usage is unknown, not zero."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of both."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            unreported=self.unreported + other.unreported,
        )


class FinishReason(Enum):
    """Reason why the model stopped, in the categories that the loop distinguishes."""

    DONE = "done"
    """`stop`, `tool_calls` and every other regular end. The loop continues if there are calls."""
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REASONING = "reasoning"
    """A regular end with only reasoning, without text or calls."""
    NO_CALLS = "no_calls"
    """Neither text nor a call, although the finish reason indicates calls."""
    FUNCTION_CALL = "function_call"
    """A call in the old form, which was never offered. It does not matter whether the reply has text."""


class ModelResponse(Record):
    """A complete reply. A reply that was cut off is a ModelError, never one of these."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    finish_reason: FinishReason
    usage: Usage
    retries: int = 0
    echo: str = ""
    """See Message.echo."""


class StopReason(Enum):
    """Reason for the end of a run. It determines the exit code of the command line."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    LIMIT = "limit"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    CUT = "cut"
    """The reply broke off. No part of it was run."""
    NO_ANSWER = "no_answer"
    """The reply had neither text nor a call, even after one more request."""
    UNFIT = "unfit"
    """The answer does not meet the requirements, even after a correction was requested."""
    MODEL_ERROR = "model_error"
    LOG_ERROR = "log_error"
    GATE_ERROR = "gate_error"
    WORKSPACE_LOST = "workspace_lost"
    """The workspace folder disappeared."""
    INTERNAL_ERROR = "internal_error"
    """A bug: an unexpected exception ended the run."""
    INTERRUPTED = "interrupted"
    TERMINAL_CLOSED = "terminal_closed"
    """The user's terminal window was closed."""


class RunResult(Record):
    """The end of a run."""

    stop: StopReason
    text: str
    """The model's last text. If the run was completed, this is the answer."""
    detail: str = ""
    """Cause of the end, for the user: the limit and the last action, the error, or the block."""
    turns: int = 0
    refusals: int = 0
    usage: Usage = Usage()
    cost: float | None = None
    """Cost in dollars, by the configured prices. `None` if unknown."""
