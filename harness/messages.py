"""Messages, tool calls and tool results, exchanged between the model, the loop and the tools."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from harness.record import Record

if TYPE_CHECKING:
    from harness.actions import JsonValue  # it imports this module


class Role(Enum):
    """The speaker of a message; the values are those of the chat completions wire format."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Record):
    """A tool call of the model, exactly as received and unchecked."""

    id: str
    name: str
    arguments: str
    """The raw argument text. It is kept unchanged, even if it is invalid JSON; an adapter sends back what servers
    take.
    """
    problem: str = ""
    """Reason why no call could be parsed. It becomes the result, and nothing is judged or run."""


PIXELS_A_TOKEN = 750
"""An estimate: "tokens = (width px * height px)/750" (platform.claude.com/docs/en/build-with-claude/vision)."""
MOST_ATTACHMENT_TOKENS = 1_600
"""The maximum for one attachment: the same page says that larger images are scaled down to about as many tokens. Other
providers count differently, in the same order of magnitude."""


class Attachment(Record):
    """Something that the model sees besides the text of a message. Its bytes are stored by digest beside the log."""

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
        """An estimate of the tokens that a model counts for it."""
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
    """Only in assistant messages."""
    tool_call_id: str | None = None
    """Only in tool messages: the call that this is the result of."""
    echo: str = ""
    """Only in assistant messages: JSON of what the provider wants back with it (reasoning, signatures). Opaque to all
    but the adapter that made it; it may be left out, as far as the harness is concerned."""
    attachments: tuple[Attachment, ...] = ()
    """Only in messages of the user and in tool messages."""


class ResultStatus(Enum):
    """The end of a tool call. Only OK and FAILED mean that the tool's body ran to its end."""

    OK = "ok"
    FAILED = "failed"
    """The tool ran and reports an error: a non-zero exit, a file that is not there."""
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"
    """The tool raised something that it should not have: a bug."""
    INVALID = "invalid"
    """Unknown tool, broken JSON, wrong arguments: never judged, never run."""
    DENIED = "denied"
    BLOCKED = "blocked"
    NOT_RUN = "not_run"
    """The run ended (a block, a limit, an interrupt) before this call's turn came, or its reply was cut."""


class ToolResult(Record):
    """Result of a call; `content` alone suffices for the model, the rest is for the log and the person."""

    call_id: str
    status: ResultStatus
    content: str
    exit_code: int | None = None
    duration_ms: int = 0
    output_bytes: int = 0
    """Size of the tool's whole output, before `content` was cut."""
    truncated: bool = False
    printed: str | None = None
    """A command's own output, as far as `content` holds it, without the tool's additions."""
    terminal: bool = False
    """Whether a command had the person's terminal: then nothing that it showed is in `content`."""
    changed_path: str | None = None
    """The absolute path of the file that the call wrote, if it wrote one."""
    before_sha256: str | None = None
    """Digest of the file before the call. `None` if it did not exist."""
    after_sha256: str | None = None
    error_code: str = ""
    """The kind of a file error, if the tool reports it; see errors.ErrorCode."""
    extra: Mapping[str, JsonValue] = {}
    """Further facts that only the tool's feature knows. The outcome in the log holds them, and the feature draws them."""
    attachments: tuple[Attachment, ...] = ()
    """What the model sees besides `content`."""


class Usage(Record):
    """Tokens as the provider reported them; zero where it reported nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the provider read from a cache."""
    cache_write_tokens: int = 0
    """Input tokens that it wrote to a cache, if it counts them separately."""
    unreported: int = 0
    """Replies for which the provider reported nothing: what they took is unknown, not zero."""

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
    """Reason for which the model stopped, as far as the loop cares."""

    DONE = "done"
    """`stop`, `tool_calls` and every other regular end: whether there are calls decides what happens next."""
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REASONING = "reasoning"
    """A regular end, with reasoning alone: neither text nor a call."""
    NO_CALLS = "no_calls"
    """Neither text nor a call, though the finish reason speaks of calls."""
    FUNCTION_CALL = "function_call"
    """A call in the old form, which was never offered, regardless of its text."""


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
    """Reason for the end of a run; the exit codes of the command line follow from it."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    LIMIT = "limit"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    CUT = "cut"
    """The reply ended without a regular end; no part of it ran."""
    NO_ANSWER = "no_answer"
    """The reply held neither text nor a call, also when the model was asked once more."""
    UNFIT = "unfit"
    """The answer does not fit the request, even after a correction was requested."""
    MODEL_ERROR = "model_error"
    LOG_ERROR = "log_error"
    GATE_ERROR = "gate_error"
    WORKSPACE_LOST = "workspace_lost"
    """The folder under work disappeared."""
    INTERNAL_ERROR = "internal_error"
    """A bug: an unexpected exception passed through the run."""
    INTERRUPTED = "interrupted"
    TERMINAL_CLOSED = "terminal_closed"
    """The window in which a person worked was closed."""


class RunResult(Record):
    """The end of a run."""

    stop: StopReason
    text: str
    """The model's last words; the answer, when the run was completed."""
    detail: str = ""
    """Cause of the end, for a person: the limit and the last action, the error, the block."""
    turns: int = 0
    refusals: int = 0
    usage: Usage = Usage()
    cost: float | None = None
    """Cost in dollars, by the configured prices. `None` if unknown."""
