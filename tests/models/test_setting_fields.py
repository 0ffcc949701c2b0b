"""Settings of a model: what each API sends of them, and what a refusal is told with."""

from __future__ import annotations

import json

import pytest
from rows import all_rows

from harness.actions import JsonValue
from harness.messages import Message, Role
from harness.model import ModelSettings
from harness.models.anthropic_messages import MessagesDialect
from harness.models.dialect import Dialect
from harness.models.endpoint import Endpoint, Quirks
from harness.models.failures import ProviderRefusal
from harness.models.openai_chat import ChatDialect
from harness.models.openai_responses import ResponsesDialect
from harness.models.presets import Api
from harness.models.setting_fields import SettingFields, setting_problem

ALL = ModelSettings(
    max_output_tokens=9, effort="low", temperature=0.5, top_p=0.9, seed=7, stop=("END",), verbosity="low",
    service_tier="flex", extra_body={"top_k": 3, "reasoning": {"summary": "auto"}}, extra_headers={"x-team": "a"},
)  # fmt: skip
SAID = (Message(role=Role.USER, content="hello"),)
EXTRA = {"top_k": 3, "reasoning": {"summary": "auto"}}
SENT = {
    ChatDialect: {
        "max_tokens": 9, "reasoning_effort": "low", "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["END"],
        "verbosity": "low", "service_tier": "flex", **EXTRA,
    },
    ResponsesDialect: {
        "max_output_tokens": 9, "reasoning": {"summary": "auto", "effort": "low"}, "temperature": 0.5, "top_p": 0.9,
        "text": {"verbosity": "low"}, "service_tier": "flex", "top_k": 3,
    },
    MessagesDialect: {
        "max_tokens": 9, "output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}, "temperature": 0.5, "top_p": 0.9,
        "stop_sequences": ["END"], "service_tier": "flex", **EXTRA,
    },
}  # fmt: skip


def body(dialect: Dialect) -> dict[str, object]:
    value = json.loads(dialect.request(SAID, ()))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("made", SENT)
def test_only_settings_with_a_value_are_sent(made: type[Dialect]) -> None:
    plain, told = body(made("m", Endpoint())), body(made("m", Endpoint(settings=ALL)))
    plain.pop("max_tokens", None)
    assert told == {**plain, **SENT[made]}


@pytest.mark.parametrize("made", SENT)
def test_refusal_names_the_setting(made: type[Dialect]) -> None:
    dialect = made("m", Endpoint(settings=ALL))
    field = "reasoning_effort" if made is ChatDialect else "effort"
    refusal = ProviderRefusal(status=400, codes=(), message="", words=f"unsupported value: '{field}' and 'top_k'")
    assert not dialect.learn(refusal, SAID)
    assert dialect.setting_hint(refusal) == " See your settings of the model: `effort`, `extra_body.top_k`."
    assert made("m", Endpoint()).setting_hint(refusal) == ""


NAMED = ModelSettings(
    max_output_tokens=9, effort="low", temperature=0.5, seed=7, stop=("END",), verbosity="low",
    extra_body={"thinking": {}, "top_k": 3}, extra_headers={"anthropic-beta": "a", "origin": "b"},
)  # fmt: skip
REFUSALS = {
    # As OpenAI, Anthropic, Groq, Gemini, vLLM, DeepSeek, xAI and pydantic word it.
    "unsupported value: 'temperature' does not support 0.2 with this model.": ["temperature"],
    '{"error": {"message": "no.", "param": "reasoning_effort"}}': ["effort"],
    '{"error": {"message": "temperature: range: 0..1"}}': ["temperature"],
    "`temperature` may only be set to 1 when thinking is enabled.": ["temperature"],
    "'seed' : number must be an integer": ["seed"],
    "invalid value at 'generation_config.stop'": ["stop"],
    "temperature must be non-negative, got -1": ["temperature"],
    "invalid temperature value, the valid range of temperature is [0, 2]": ["temperature"],
    "argument not supported on this model: stop": ["stop"],
    "model x does not support parameter stop.": ["stop"],
    '[{"loc": ["body", "verbosity"], "msg": "extra inputs are not permitted"}]': ["verbosity"],
    "thinking.budget_tokens: input should be greater than or equal to 1024": ["extra_body.thinking"],
    "unexpected value(s) `a` for the `anthropic-beta` header": ["extra_headers.anthropic-beta"],
    "unexpected anthropic-beta a": ["extra_headers.anthropic-beta"],
    "max_tokens and top_k are too large": ["max_output_tokens", "extra_body.top_k"],
    # Ordinary words.
    "please stop sending this": [],
    '{"message": "stop sending this"}': [],
    "we stop here. the seed of doubt, with best effort; your thinking is wrong": [],
    "the origin of this request is unknown": [],
    "non-stop requests, stop-gap seeds": [],
}


@all_rows(("words", "names"), REFUSALS.items(), ids=REFUSALS)
def test_settings_are_found_in_a_refusal_by_their_names_and_not_by_ordinary_words(words: str, names: list[str]) -> None:
    fields = SettingFields(NAMED, Api.CHAT)
    assert [*fields.named_in(words)] == names


def test_the_most_tokens_of_a_reply_go_by_the_name_that_the_server_takes() -> None:
    settings = ModelSettings(max_output_tokens=9)
    dialect = ChatDialect("m", Endpoint(settings=settings))
    words = "unsupported parameter: 'max_tokens'; use 'max_completion_tokens' instead"
    refusal = ProviderRefusal(status=400, codes=(), message="", words=words)
    assert dialect.learn(refusal, SAID)
    assert body(dialect)["max_completion_tokens"] == 9
    assert "max_tokens" not in body(dialect)
    assert not dialect.learn(refusal, SAID)
    known = ChatDialect("m", Endpoint(settings=settings, quirks=Quirks(output_field="max_completion_tokens")))
    assert body(known)["max_completion_tokens"] == 9


@pytest.mark.parametrize("made", SENT)
@pytest.mark.parametrize("name", ["messages", "tools", "stream", "model", "temperature"])
def test_extra_body_cannot_replace_own_fields(made: type[Dialect], name: str) -> None:
    """Whoever makes the endpoint: a program that uses the library has no configuration that was checked."""
    with pytest.raises(ValueError, match=f"extra_body.{name}: is a "):
        made("m", Endpoint(settings=ModelSettings(extra_body={name: []})))


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens: 64000 > 32000, which is the maximum",
        "max_tokens is too large: 64000. this model's maximum context length is 16384 tokens",
    ],
)
def test_a_persons_own_number_is_never_made_smaller_in_silence(words: str) -> None:
    dialect = MessagesDialect("m", Endpoint(settings=ModelSettings(max_output_tokens=64_000)))
    refusal = ProviderRefusal(status=400, codes=(), message="", words=words)
    assert not dialect.learn(refusal, SAID)
    assert "`max_output_tokens`" in dialect.setting_hint(refusal)


# askalf/dario#273, anthropics/claude-code#29531, dotCipher/opencode-claude-bridge#1.
NO_THINKING = (
    "adaptive thinking is not supported on this model",
    "only 'enabled' and 'disabled' are supported for thinking; 'adaptive' is not supported.",
    "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode",
    "thinking: extra inputs are not permitted",
)


@pytest.mark.parametrize("words", NO_THINKING)
def test_effort_asks_claude_to_think_where_the_server_takes_that(words: str) -> None:
    dialect = MessagesDialect("m", Endpoint(settings=ModelSettings(effort="high", temperature=0.2)))
    refusal = ProviderRefusal(status=400, codes=(), message="", words=words)
    assert body(dialect)["thinking"] == {"type": "adaptive"}
    assert dialect.learn(refusal, SAID)
    assert "thinking" not in body(dialect)
    assert body(dialect)["output_config"] == {"effort": "high"}
    assert not dialect.learn(refusal, SAID)


def test_thinking_set_by_the_user_is_sent_unchanged() -> None:
    own: JsonValue = {"type": "enabled", "budget_tokens": 4_000}
    told = body(MessagesDialect("m", Endpoint(settings=ModelSettings(effort="high", extra_body={"thinking": own}))))
    assert told["thinking"] == own
    assert "thinking" not in body(MessagesDialect("m", Endpoint()))


@pytest.mark.parametrize(
    ("name", "value", "api", "preset", "problem"),
    [
        ("seed", 1, Api.RESPONSES, "openai", "the Responses API has no such setting"),
        ("seed", 1, Api.CHAT, "openai", ""),
        ("verbosity", "low", Api.MESSAGES, "", "the Messages API has no such setting"),
        ("effort", "hgih", Api.CHAT, "openai", "openai takes none, minimal, low, medium, high, xhigh, max, not 'hgih'"),
        ("effort", "hgih", Api.CHAT, "groq", ""),
        ("temperature", 1.5, Api.MESSAGES, "anthropic-messages", "anthropic-messages takes at most 1"),
        ("stop", ["a"] * 5, Api.CHAT, "openai", "openai takes at most 4 of them"),
        ("extra_body.a", 1, Api.RESPONSES, "openai", ""),
        ("extra_body.max_tokens", 5, Api.MESSAGES, "", "is a setting of its own: max_output_tokens = ..."),
        ("extra_body.max_tokens", 5, Api.CHAT, "", "is a setting of its own: max_output_tokens = ..."),
        ("extra_body.max_completion_tokens", 5, Api.CHAT, "", "is a setting of its own: max_output_tokens = ..."),
        ("extra_body.max_tokens", 5, Api.RESPONSES, "", ""),
        ("extra_body.reasoning_effort", "low", Api.CHAT, "", "is a setting of its own: effort = ..."),
        ("extra_body.stop_sequences", ["a"], Api.MESSAGES, "", "is a setting of its own: stop = ..."),
        ("extra_body.reasoning", {"effort": "low"}, Api.RESPONSES, "", "is a setting of its own: effort = ..."),
        ("extra_body.reasoning", 3, Api.RESPONSES, "", "is a setting of its own: effort = ..."),
        ("extra_body.reasoning", {"summary": "auto"}, Api.RESPONSES, "", ""),
        ("extra_body.reasoning", {"effort": "low"}, Api.CHAT, "openrouter", ""),
        ("extra_body.text", {"verbosity": "low"}, Api.RESPONSES, "", "is a setting of its own: verbosity = ..."),
        ("extra_body.output_config", {"effort": "low"}, Api.MESSAGES, "", "is a setting of its own: effort = ..."),
        ("extra_body.temperature", 1, Api.MESSAGES, "", "is a setting of its own: temperature = ..."),
        ("extra_body.thinking", {"type": "enabled"}, Api.MESSAGES, "", ""),
        *(
            (f"extra_body.{name}", 1, api, "", "is a field that the program writes itself")
            for api in Api
            for name in ("model", "messages", "input", "instructions", "system", "tools", "stream", "stream_options")
        ),
        ("extra_headers.x-a", "b", Api.RESPONSES, "openai", ""),
    ],
)
def test_unsupported_setting_is_reported_before_sending(
    name: str, value: object, api: Api, preset: str, problem: str
) -> None:
    assert setting_problem(name, value, api, preset) == problem  # type: ignore[arg-type]
