"""What passes between the model, the loop and the tools: messages, tool calls, tool results."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from harness.record import Record

if TYPE_CHECKING:
    from harness.actions import JsonValue  # it imports this module


class Role(Enum):
    """Who speaks in a message; the values are those of the chat completions wire format."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Record):
    """A call that the model asks for, exactly as it was sent; nothing in it has been checked."""

    id: str
    name: str
    arguments: str
    """The raw argument text. It is kept unchanged, even where it is no JSON; an adapter sends back what servers take."""
    problem: str = ""
    """Why no call could be read out of what the model wrote; it is the result then, and nothing is judged or run."""


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
    """In pixels."""
    height: int
    size: int
    """In bytes."""

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
    """How a tool call ended. Only OK and FAILED mean that the tool's body ran to its end."""

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
    """What a call came to; `content` alone is enough for the model, the rest is for the log and the person."""

    call_id: str
    status: ResultStatus
    content: str
    exit_code: int | None = None
    duration_ms: int = 0
    output_bytes: int = 0
    """How much the tool really produced, before anything was cut from `content`."""
    truncated: bool = False
    printed: str | None = None
    """What a command printed, as far as `content` holds it, and without the words that the tool itself adds there."""
    terminal: bool = False
    """Whether a command had the person's terminal: then nothing that it showed is in `content`."""
    changed_path: str | None = None
    """The absolute path of the file that the call wrote, if it wrote one."""
    before_sha256: str | None = None
    """Of the file before the call; None where there was none."""
    after_sha256: str | None = None
    error_code: str = ""
    """What kind of thing went wrong with a file, where a tool says so; see errors.ErrorCode."""
    extra: Mapping[str, JsonValue] = {}
    """Further facts that only the tool's feature knows. The outcome in the log holds them, and the feature draws them."""
    attachments: tuple[Attachment, ...] = ()
    """What the model sees besides `content`."""


class Usage(Record):
    """Tokens as the provider reported them; zero where it reported nothing."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens, those that the provider had in a cache."""
    cache_write_tokens: int = 0
    """Of the input tokens, those that it put into a cache, where it counts them apart."""
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
    """Why the model stopped, as far as the loop cares."""

    DONE = "done"
    """`stop`, `tool_calls` and every other regular end: whether there are calls decides what happens next."""
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REASONING = "reasoning"
    """A regular end, with reasoning alone: neither text nor a call."""
    NO_CALLS = "no_calls"
    """Neither text nor a call, though the finish reason speaks of calls."""
    FUNCTION_CALL = "function_call"
    """A call in the old form, which was never offered, whatever text stands beside it."""


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
    """Why a run ended; the exit codes of the command line follow from it."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    LIMIT = "limit"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    CUT = "cut"
    """The reply ended without saying that it was finished; nothing of it ran."""
    NO_ANSWER = "no_answer"
    """The reply held neither text nor a call, also when the model was asked once more."""
    UNFIT = "unfit"
    """The answer is not what was asked for, also after the model was told what is wrong with it."""
    MODEL_ERROR = "model_error"
    LOG_ERROR = "log_error"
    GATE_ERROR = "gate_error"
    WORKSPACE_LOST = "workspace_lost"
    """The folder under work disappeared."""
    INTERNAL_ERROR = "internal_error"
    """A bug: an exception that nobody expected passed through the run."""
    INTERRUPTED = "interrupted"
    TERMINAL_CLOSED = "terminal_closed"
    """The window in which a person worked was closed."""


class RunResult(Record):
    """How a run ended."""

    stop: StopReason
    text: str
    """The model's last words; the answer, when the run was completed."""
    detail: str = ""
    """What ended it, for a person: the limit and the last action, the error, the block."""
    turns: int = 0
    refusals: int = 0
    usage: Usage = Usage()
    cost: float | None = None
    """In dollars, by the configured prices; None where it is not known."""
