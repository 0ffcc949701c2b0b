"""Bodies of chat completions requests."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from chat_wire import BASH, bash
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.messages import Message, Role, ToolCall
from harness.model import ToolSpec
from harness.models.endpoint import CacheMarks, Endpoint, Quirks
from harness.models.failures import ProviderRefusal
from harness.models.openai_chat import ChatDialect
from harness.models.wire_format import IdForm, WireIds
from harness.record import replace


def test_a_long_history_is_encoded_once() -> None:
    messages = [Message(role=Role.ASSISTANT, content=f"{number}" * 100) for number in range(500)]
    conversation = ChatDialect("m1", Endpoint())
    conversation.request(messages, (BASH,))
    encoded = list(conversation._messages._encoded)
    more = [*messages, Message(role=Role.USER, content="new")]
    body = conversation.request(more, (BASH,))
    assert len(conversation._messages._encoded) == 501
    assert all(old is new for old, new in zip(encoded, conversation._messages._encoded, strict=False))
    assert body == ChatDialect("m1", Endpoint()).request(more, (BASH,))


REASONING = '{"api":"chat","reasoning":{"reasoning_content":"hm"},"extra_content":1,"calls":[{"s":1}]}'
MESSAGES = st.lists(
    st.one_of(
        st.builds(
            lambda text, ids, echo: Message(
                role=Role.ASSISTANT,
                content=text,
                tool_calls=tuple(bash(call_id=call_id) for call_id in ids),
                echo=echo,
            ),
            st.sampled_from(["", "a", "\u2028", "\ud800", "b"]),
            st.lists(st.sampled_from(["x", "y", "\udfff", "long" * 20]), max_size=2),
            st.sampled_from(["", REASONING]),
        ),
        st.builds(lambda text: Message(role=Role.USER, content=text), st.sampled_from(["", "u", "v"])),
        st.builds(lambda text: Message(role=Role.TOOL, content=text, tool_call_id="x"), st.sampled_from(["t", "w"])),
    ),
    max_size=8,
)


@given(st.lists(st.tuples(MESSAGES, st.sampled_from([(), (BASH,), (replace(BASH, name="sh"),)])), max_size=5))
@settings(max_examples=examples(300), deadline=None)
def test_request_body_depends_on_its_own_messages_only(
    history: list[tuple[list[Message], tuple[ToolSpec, ...]]],
) -> None:
    conversation = ChatDialect("m1", Endpoint())
    for messages, tools in history:
        fresh = ChatDialect("m1", Endpoint())
        assert conversation.request(messages, tools) == fresh.request(messages, tools)
        assert conversation.call_ids == fresh.call_ids == {c.id for message in messages for c in message.tool_calls}


def sent(messages: Sequence[Message], quirks: Quirks | None = None) -> Any:
    return json.loads(ChatDialect("m1", Endpoint(quirks=quirks or Quirks())).request(messages, ()))


def user(text: str) -> Message:
    return Message(role=Role.USER, content=text)


def assistant(text: str = "", *calls: ToolCall, echo: str = "") -> Message:
    return Message(role=Role.ASSISTANT, content=text, tool_calls=calls, echo=echo)


def result(call_id: str) -> Message:
    return Message(role=Role.TOOL, content="out", tool_call_id=call_id)


SHAPES = {
    "user messages in a row are one": (
        [user("a"), user("b"), assistant("c"), user("d")],
        [("user", "a\n\nb"), ("assistant", "c"), ("user", "d")],
    ),
    "an assistant message that says nothing is not sent, and parts no user messages": (
        [user("a"), assistant(), user("b"), assistant()],
        [("user", "a\n\nb")],
    ),
    "an assistant message with calls alone is sent": (
        [user("a"), assistant("", bash()), result("c1")],
        [("user", "a"), ("assistant", None), ("tool", "out")],
    ),
}


@all_rows(("messages", "expected"), SHAPES)
def test_roles_alternate_on_the_wire(messages: list[Message], expected: list[tuple[str, str]]) -> None:
    assert [(each["role"], each["content"]) for each in sent(messages)["messages"]] == expected


@all_rows(
    ("arguments", "expected"),
    [
        pytest.param('{"a" :1}', '{"a" :1}', id="an object goes back as it came"),
        pytest.param("", "{}", id="none are an empty object"),
        pytest.param('{"a": ', '{"invalid_arguments":"{\\"a\\": "}', id="broken JSON"),
        pytest.param('"{}"', '{"invalid_arguments":"\\"{}\\""}', id="an object encoded twice"),
        pytest.param("[1]", '{"invalid_arguments":"[1]"}', id="a list"),
        pytest.param('{"a": NaN}', '{"invalid_arguments":"{\\"a\\": NaN}"}', id="a number that is no JSON"),
        pytest.param("[" * 100_000, json.dumps({"invalid_arguments": "[" * 100_000}, separators=(",", ":")), id="deep"),
    ],
)
def test_past_arguments_are_sent_as_an_object(arguments: str, expected: str) -> None:
    message = sent([user("a"), assistant("", bash(arguments))])["messages"][1]
    assert message["tool_calls"][0]["function"]["arguments"] == expected


IDS = ["c1", "abcDEF123", "call_" + "x" * 60, "call_" + "x" * 61, "", "functions.bash:0", "\ud800"]


@all_rows(
    ("nine", "form"), [(True, r"[a-zA-Z0-9]{9}"), (False, r".{1,40}")], ids=["nine characters", "at most 40 characters"]
)
def test_ids_fit_and_stay_apart_in_calls_and_results_alike(nine: bool, form: str) -> None:
    messages = [user("a")]
    for call_id in IDS:
        messages += [assistant("", bash(call_id=call_id)), result(call_id)]
    wire = sent(messages, Quirks(nine_character_ids=nine))["messages"][1:]
    made = [message["tool_calls"][0]["id"] for message in wire[::2]]
    assert made == [message["tool_call_id"] for message in wire[1::2]]
    assert len(set(made)) == len(IDS)
    assert all(re.fullmatch(form, call_id) for call_id in made)
    assert ("abcDEF123" in made, "c1" in made, "functions.bash:0" in made) == (True, not nine, not nine)
    assert made == [m["tool_calls"][0]["id"] for m in sent(messages, Quirks(nine_character_ids=nine))["messages"][1::2]]


def test_an_id_that_another_one_was_turned_into_is_turned_itself() -> None:
    ids = WireIds(IdForm.NINE)
    taken = ids.of("a long id")
    assert ids.of(taken) != taken
    assert (ids.of("a long id"), len(ids.of(taken))) == (taken, 9)


def test_reasoning_is_sent_back_in_its_turn() -> None:
    echo = json.dumps(
        {
            "api": "chat",
            "reasoning": {"reasoning_content": "hm", "reasoning": "not asked for"},
            "extra_content": {"google": 1},
            "calls": [{"google": {"thought_signature": "s"}}, None],
        },
        separators=(",", ":"),
    )
    turn = [user("a"), assistant("b", bash(), bash(call_id="c2"), echo=echo), result("c1"), result("c2")]
    conversation = ChatDialect("m1", Endpoint())
    within = json.loads(conversation.request(turn, ()))["messages"][1]
    after = json.loads(conversation.request([*turn, assistant("done"), user("more")], ()))["messages"][1]
    assert within == after
    assert after["reasoning_content"] == "hm"
    assert [call.get("extra_content") for call in after["tool_calls"]] == [{"google": {"thought_signature": "s"}}, None]
    assert (after["extra_content"], "reasoning" in after, "echo" in after) == ({"google": 1}, False, False)


@all_rows("echo", ["{", "[]", '{"api":"responses","reasoning":{"reasoning_content":"x"}}', "[" * 10**5])
def test_echo_of_another_adapter_is_not_sent(echo: str) -> None:
    assert sent([user("a"), assistant("b", echo=echo)])["messages"][1] == {"role": "assistant", "content": "b"}


@all_rows(
    ("quirks", "expected"),
    [
        (Quirks(), {"model": "m1", "stream": True, "stream_options": {"include_usage": True}, "messages": []}),
        (Quirks(usage=False), {"model": "m1", "stream": True, "messages": []}),
        (Quirks(stream=False), {"model": "m1", "stream": False, "messages": []}),
    ],
)
def test_body_uses_the_fields_that_the_server_accepts(quirks: Quirks, expected: object) -> None:
    assert sent([], quirks) == expected


MARKED = {"cache_control": {"type": "ephemeral"}}
TALK = [
    Message(role=Role.SYSTEM, content="be careful"),
    user("a"),
    assistant("", bash()),
    result("c1"),
    user("b"),
    assistant("", bash(call_id="c2"), bash(call_id="c3")),
    result("c2"),
    result("c3"),
]


@all_rows(
    ("marks", "results"),
    {
        "OpenRouter": (CacheMarks.PARTS, {"content": [{"type": "text", "text": "out", **MARKED}]}),
        "LiteLLM": (CacheMarks.RESULTS, {"content": "out", **MARKED}),
    },
)
def test_cache_marks_are_set_on_system_and_last_messages_of_claude(
    marks: CacheMarks, results: dict[str, object]
) -> None:
    quirks = Quirks(cache_marks=marks)
    dialect = ChatDialect("anthropic/claude-x", Endpoint(quirks=quirks))
    sent_now = json.loads(dialect.request(TALK, (BASH,)))["messages"]
    places = [place for place, message in enumerate(sent_now) if "cache_control" in str(message)]
    assert places == [0, 4, 7]
    assert sent_now[4]["content"] == [{"type": "text", "text": "b", **MARKED}]
    assert sent_now[7] == {"role": "tool", "tool_call_id": "c3", **results}
    blank = json.loads(dialect.request([*TALK[:-1], replace(result("c3"), content=" ")], ()))["messages"][7]
    assert (blank["content"], "cache_control" in blank) == (" ", marks is CacheMarks.RESULTS)
    refusal = ProviderRefusal(status=400, codes=(), message="", words="cache_control: extra inputs are not permitted")
    plain = [
        sent(TALK)["messages"],
        json.loads(ChatDialect("gpt-x", Endpoint(quirks=quirks)).request(TALK, ()))["messages"],
    ]
    assert dialect.learn(refusal, TALK)
    assert [json.loads(dialect.request(TALK, ()))["messages"]] * 2 == plain
    assert not dialect.learn(refusal, TALK)
