"""Adapter for any server that speaks Anthropic's Messages API, and the form of its requests."""

from __future__ import annotations

from collections.abc import Sequence

from harness.messages import Message, Role
from harness.model import ToolSpec
from harness.models.dialect import Dialect
from harness.models.endpoint import ANTHROPIC_VERSION, CacheMarks, Endpoint, Quirks
from harness.models.failures import ProviderRefusal
from harness.models.messages_content import MARK, EncodedTurns, system_field, tool_json
from harness.models.messages_reply import MessagesReply
from harness.models.openai_wire import OpenAIWire
from harness.models.presets import Api
from harness.models.request_body import encoded
from harness.models.retries import no_cache_marks, no_streams
from harness.record import replace
from harness.regex import regex

OUTPUT_TOKENS = 32_000
"""Default maximum number of tokens of a reply. The API requires this field. Newer models allow more."""
# Greatest output by the beginning of a model's name: platform.claude.com/docs/en/about-claude/models/overview.
_LESS_OUTPUT = (("claude-3-5", 8_192), ("claude-3-7", 32_000), ("claude-3", 4_096), ("claude-2", 4_096))

# The refusal: max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for ...
_MOST_OUTPUT = regex(r"max_tokens: ?[0-9]+ ?> ?([0-9]{1,9})\b")
# "This model's maximum context length is 16384 tokens", "exceed context limit: 180000 + 32000 > 200000".
_WINDOW = regex(
    r"maximum context length (?:is|of) ([0-9]{3,9})\b|context limit: ?[0-9]+ ?\+ ?[0-9]+ ?> ?([0-9]{3,9})\b"
)
_SHARE_OF_WINDOW = 4
"""Divisor of the context window: a reply gets one such part, and the conversation gets the rest."""
# "adaptive thinking is not supported on this model" (before Claude 4.6), "Only 'enabled' and 'disabled' are supported for
# thinking", "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode".
_ADAPTIVE_REFUSED = regex(r"adaptive|\bthinking: extra inputs")
_REFUSED = frozenset((0, 400, 422))


class MessagesDialect(Dialect):
    """Dialect of the Messages API. Encodes each message and each list of tools once."""

    path = "/messages"
    api = Api.MESSAGES
    # "Invalid `signature` in `thinking` block", "thinking blocks ... cannot be modified", "Expected `thinking`".
    reasoning_refused = regex(r"thinking|signature")

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        """`endpoint` is the address of the server and its settings."""
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")
        """The last list of tools, and its encoded field."""
        self._system = ("", b"")
        """The last system message, and its encoded field."""
        self._output_is_set = endpoint.settings.max_output_tokens is not None
        # Most models think only on request; a separate field states the effort (platform.claude.com/docs/en/build-with-claude,
        # "Adaptive thinking", "Effort"). Models before Claude 4.6 need `budget_tokens`, which the user may set.
        self._effort_is_set = bool(endpoint.settings.effort) and "thinking" not in endpoint.settings.extra_body
        super().__init__(model, endpoint)

    @classmethod
    def completed(cls, endpoint: Endpoint) -> Endpoint:
        """Return the endpoint, with the default API version if it names none."""
        return endpoint if endpoint.anthropic_version else replace(endpoint, anthropic_version=ANTHROPIC_VERSION)

    def adapt(self) -> None:
        """Apply the current quirks to later requests. Every message is encoded again."""
        self._turns = self._messages = EncodedTurns(self.sight)
        default = next((maximum for start, maximum in _LESS_OUTPUT if self._model.startswith(start)), OUTPUT_TOKENS)
        maximum = min(self.quirks.most_output or default, OUTPUT_TOKENS)
        # A maximum that the user set is part of the settings. If the server refuses it, the user sees the error.
        output = b"" if self._output_is_set else b',"max_tokens":%d' % maximum
        thinking = b',"thinking":{"type":"adaptive"}' if self._asks_to_think else b""
        start = (b'{"model":', encoded(self._model), output, b',"stream":', encoded(self.quirks.stream), thinking)
        self._start = b"".join((*start, self.settings.encoded()))
        self._tools, self._system = ((), b""), ("", b"")

    def request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> bytes:
        """Return the body of a request. A system message at the start becomes the `system` field."""
        marked = self.quirks.cache_marks is not CacheMarks.NOWHERE
        system = messages[0].content if messages and messages[0].role is Role.SYSTEM else ""
        if system != self._system[0]:
            self._system = (system, system_field(system, marked=marked))
        self._take(messages[1:] if system else messages)
        start = (self._start, self._tool_field(tuple(tools)), self._system[1], b',"messages":')
        return b"".join((*start, self._turns.turns(marked=marked), b"}"))

    def assembly(self, secret: str) -> MessagesReply:
        """Return an assembly for the next reply."""
        return MessagesReply(secret, bounds=self.bounds)

    def learn(self, refusal: ProviderRefusal, messages: Sequence[Message]) -> bool:
        """Adapt to a refusal of `messages`; return whether the request for them differs now.

        A maximum that the user set is never lowered silently.
        """
        if self._output_is_set and less_output(self.quirks, refusal) != self.quirks:
            return False
        if self._asks_to_think and refusal.status in _REFUSED and _ADAPTIVE_REFUSED.search(refusal.words):
            self.quirks = replace(self.quirks, adaptive_thinking=False)
            self.adapt()
            return True
        return super().learn(refusal, messages)

    @property
    def _asks_to_think(self) -> bool:
        """Whether requests ask for adaptive thinking (`thinking`) in addition to the effort."""
        return self._effort_is_set and self.quirks.adaptive_thinking

    def _tool_field(self, tools: tuple[ToolSpec, ...]) -> bytes:
        """Return `,"tools":[...]`.

        The last tool has a cache mark, so that the tools stay cached when the system message changes.
        """
        if tools != self._tools[0]:
            values = [tool_json(tool) for tool in tools]
            if values and self.quirks.cache_marks is not CacheMarks.NOWHERE:
                values[-1]["cache_control"] = MARK
            self._tools = (tools, b',"tools":' + encoded([*values]) if values else b"")
        return self._tools[1]


def less_output(quirks: Quirks, refusal: ProviderRefusal) -> Quirks:
    """Return the quirks with the maximum output that a refusal states, or with a share of the context window it states.

    The window also holds the conversation. Unchanged if requests already ask for no more than that: then the
    conversation is too long.
    """
    if refusal.status not in _REFUSED:
        return quirks
    match, window = _MOST_OUTPUT.search(refusal.words), _WINDOW.search(refusal.words)
    maximum = int(match[1]) if match else int(window[1] or window[2]) // _SHARE_OF_WINDOW if window else 0
    return replace(quirks, most_output=maximum) if 0 < maximum < (quirks.most_output or OUTPUT_TOKENS) else quirks


MessagesDialect.lessons = (no_cache_marks, less_output, no_streams)


class AnthropicMessages(OpenAIWire):
    """A model behind any server that speaks the Messages API. One conversation at a time."""

    dialect = MessagesDialect
