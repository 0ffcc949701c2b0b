"""The scripted model: what a script sees and says, what its server refuses, and how it goes over the wire."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest
from responses_server import ServerOfBothApis, whole_response
from rows import all_rows

from harness.errors import CutReply, ModelError
from harness.messages import FinishReason, Message, ModelResponse, Role, ToolCall, Usage
from harness.model import Retry
from harness.models.endpoint import Endpoint
from harness.models.openai_chat import OpenAIChat
from harness.models.scripted import (
    Failure,
    Player,
    Raw,
    Reply,
    ScriptedAnswer,
    ToolOutcome,
    Turn,
    call,
    replies,
    request_problem,
    say,
)
from harness.record import replace

USER: dict[str, Any] = {"role": "user", "content": "go"}


def asked(*ids: str, **more: object) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": f"tool_{call_id}", "arguments": "{}"}}
            for call_id in ids
        ],
        **more,
    }


def result(call_id: object, content: object = "out") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def request(*messages: object, **more: object) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def broken_call(**changes: object) -> dict[str, Any]:
    message = asked("a")
    message["tool_calls"][0].update(changes)
    return message


# --------------------------------------------------------------------------------------------- what the server refuses

PAIRING = {
    "a plain question": (request(USER), ""),
    "two calls, two results in order": (request(USER, asked("a", "b"), result("a"), result("b"), USER), ""),
    "an id used again in a later turn": (request(USER, asked("a"), result("a"), asked("a"), result("a")), ""),
    "a call at the end": (request(USER, asked("a")), "the call a has no result"),
    "one result of two is missing at the end": (
        request(USER, asked("a", "b"), result("a")),
        "the call b has no result",
    ),
    "a user message before the result": (
        request(asked("a"), USER, result("a")),
        "messages[1]: the call a has no result directly after it",
    ),
    "another reply before the result": (
        request(asked("a"), asked("b")),
        "messages[1]: the call a has no result directly after it",
    ),
    "results in the wrong order": (
        request(asked("a", "b"), result("b"), result("a")),
        "messages[1]: the result b stands where that of a should",
    ),
    "a result without any call": (request(USER, result("a")), "messages[1]: the result a has no call right before it"),
    "a result of another call": (
        request(asked("a"), result("x")),
        "messages[1]: the result x has no call right before it",
    ),
    "a second result of one call": (
        request(asked("a"), result("a"), result("a")),
        "messages[2]: the result a has no call right before it",
    ),
    "a result without an id": (
        request(asked("a"), result(None)),
        "messages[1]: the result None has no call right before it",
    ),
    "a result without a text": (request(asked("a"), result("a", None)), "messages[1]: the result a has no text"),
    "two calls with one id": (
        request(asked("a", "a"), result("a"), result("a")),
        "messages[0]: two calls share an id",
    ),
    "calls of the user": (
        request(asked("a", role="user"), result("a")),
        "messages[0]: `tool_calls` must be a list in an assistant message, and not empty",
    ),
    "an empty list of calls": (
        request(asked()),
        "messages[0]: `tool_calls` must be a list in an assistant message, and not empty",
    ),
    "a call without an id": (request(broken_call(id="")), "messages[0]: a tool call has no id"),
    "a call of another type": (
        request(broken_call(type="custom")),
        "messages[0]: a tool call must be an object of type `function`",
    ),
    "a call whose arguments are an object": (
        request(broken_call(function={"name": "x", "arguments": {}})),
        "messages[0]: a tool call needs a name and arguments, both texts",
    ),
    "an unknown role": (request(USER, {"role": "robot"}), "messages[1] has no known role"),
    "a message that is no object": (request("hello"), "messages[0] has no known role"),
    "no messages": (request(), "`messages` must be a list that is not empty"),
    "messages that are no list": ({"model": "m", "messages": "hello"}, "`messages` must be a list that is not empty"),
    "no model": ({"messages": [USER]}, "`model` must be a text"),
}


@all_rows(("asked_for", "problem"), PAIRING)
def test_a_history_is_taken_only_if_calls_and_results_are_paired(asked_for: dict[str, Any], problem: str) -> None:
    player = Player(replies(say("fine")))
    answer = player.answer(asked_for)
    assert request_problem(asked_for) == problem
    assert answer == (refusal(problem) if problem else say("fine"))
    assert player.requests == [asked_for]
    assert player.finished is (not problem)  # a refused request does not move the script


def refusal(problem: str) -> Failure:
    error = {"message": problem, "type": "invalid_request_error", "param": None, "code": None}
    return Failure(status=400, body=json.dumps({"error": error}))


def test_a_request_must_be_an_object() -> None:
    player = Player(replies(say("fine")))
    assert player.answer(["hello"]) == refusal("the request must be a JSON object")
    assert player.requests == []


# ------------------------------------------------------------------------------------------------ what a script sees


def test_script_sees_the_results_of_its_calls_and_branches() -> None:
    turns: list[Turn] = []

    def script() -> Generator[Reply, Turn, None]:
        turn = yield Reply(calls=(call("bash", command="rm x"), call("read_file", path="a")))
        turns.append(turn)
        if "denied" in turn.results[0].content.lower():
            turns.append((yield Reply(text="Another way.", calls=(call("bash", command="ls"),))))
        yield say("done")

    player = Player(script)
    first = player.answer(request(USER))
    assert first == Reply(
        calls=(
            ToolCall(id="call_1", name="bash", arguments='{"command": "rm x"}'),
            ToolCall(id="call_2", name="read_file", arguments='{"path": "a"}'),
        )
    )
    history = [USER, asked("call_1", "call_2"), result("call_1", "Denied: no."), result("call_2", "text")]
    second = player.answer(request(*history))
    assert second == Reply(
        text="Another way.", calls=(ToolCall(id="call_3", name="bash", arguments='{"command": "ls"}'),)
    )
    more = [asked("call_3"), result("call_3", ""), {"role": "user", "content": [{"type": "text", "text": "and?"}]}]
    assert player.answer(request(*history, *more)) == say("done")
    assert turns == [
        Turn(
            results=(
                ToolOutcome(call_id="call_1", name="tool_call_1", content="Denied: no."),
                ToolOutcome(call_id="call_2", name="tool_call_2", content="text"),
            ),
            user="go",
            messages=tuple(history),
        ),
        Turn(
            results=(ToolOutcome(call_id="call_3", name="tool_call_3", content=""),),
            user="and?",
            messages=(*history, *more),
        ),
    ]


def test_script_is_finished_when_it_awaits_no_more_requests() -> None:
    player = Player(replies(Reply(calls=(call("a"),)), say("done")))
    seen = [player.finished]
    for messages in ([USER], [USER, asked("call_1"), result("call_1")], [USER, USER]):
        player.answer(request(*messages))
        seen.append(player.finished)
    assert seen == [False, False, True, True]


def test_an_id_of_the_script_s_own_is_kept() -> None:
    player = Player(replies(Reply(calls=(replace(call("a"), id="mine"), call("a", name="b", tool="c")))))
    assert player.answer(request(USER)) == Reply(
        calls=(
            ToolCall(id="mine", name="a", arguments="{}"),
            ToolCall(id="call_2", name="a", arguments='{"name": "b", "tool": "c"}'),
        )
    )


def test_failures_and_raw_answers_are_steps_of_the_script() -> None:
    steps: Sequence[ScriptedAnswer] = (Failure(status=503, body="busy"), Raw(body=b"data: {"), say("a"), say("b"))
    player = Player(replies(*steps))
    assert [(player.answer(request(USER)), player.finished) for _ in steps] == [
        (steps[0], False),
        (steps[1], False),
        (steps[2], True),
        (steps[3], True),
    ]


def test_after_its_end_a_script_answers_only_the_last_request_over_again() -> None:
    player = Player(replies(say("a")))
    assert [player.answer(request(USER)), player.answer(request(USER))] == [say("a"), say("a")]
    assert player.answer(request(USER, USER)) == refusal("the script is over")
    assert player.answer(request(USER)) == say("a")
    assert player.finished


def test_empty_script_is_finished_immediately() -> None:
    player = Player(replies())
    assert (player.answer(request(USER)), player.finished) == (refusal("the script is over"), True)


def test_script_error_is_sent_to_the_client() -> None:
    def script() -> Generator[Reply, Turn, None]:
        turn = yield say("a")
        yield say(turn.results[0].content)

    player = Player(script)
    player.answer(request(USER))
    assert player.answer(request(USER, USER)) == refusal("the script failed: IndexError: tuple index out of range")
    assert not player.finished


def test_equal_messages_of_later_requests_are_kept_once() -> None:
    player = Player(replies(say("a"), say("b"), say("c")))
    for count in (1, 2, 3):
        player.answer(request(*({"role": "user", "content": str(i)} for i in range(count))))
    first, second, third = (kept["messages"] for kept in player.requests)
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert isinstance(third, list)
    assert (len(first), len(second), len(third)) == (1, 2, 3)
    assert first[0] is second[0] is third[0]
    assert second[1] is third[1]


# ------------------------------------------------------------------------------------------------------ over the wire


def serving() -> Iterator[tuple[Player, http.client.HTTPConnection]]:
    player = Player(
        replies(Reply(text="Working on it.", calls=(call("bash", command="ls -l"),)), say("done"), say("x"))
    )
    with ServerOfBothApis(player, fragment=9) as server:
        connection = http.client.HTTPConnection("127.0.0.1", int(server.base_url.split(":")[2].removesuffix("/v1")))
        yield player, connection
        connection.close()


served = pytest.fixture(serving)


def exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: object = None
) -> tuple[int, str, str]:
    connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body).encode())
    response = connection.getresponse()
    return response.status, response.headers["content-type"], response.read().decode()


CALL_JSON = {"id": "call_1", "type": "function"}


def test_a_stream_is_cut_into_pieces_as_the_api_does(served: tuple[Player, http.client.HTTPConnection]) -> None:
    asked_for = request(USER, stream=True, stream_options={"include_usage": True})
    status, kind, body = exchange(served[1], "POST", "/v1/chat/completions", asked_for)
    events = body.split("\n\n")
    assert (status, kind, events[-2:]) == (200, "text/event-stream", ["data: [DONE]", ""])
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    common = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    deltas: list[object] = [
        {"role": "assistant", "content": ""},
        {"content": "Working on i"},
        {"content": "t."},
        {"tool_calls": [{"index": 0, **CALL_JSON, "function": {"name": "bash", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"command'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '": "ls -l'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]},
    ]
    choices: list[object] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])
    usage = {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
    assert chunks == [
        *({**common, "choices": choice, "usage": None} for choice in choices),
        {**common, "choices": [], "usage": usage},
    ]


@all_rows("options", [None, {}, {"include_usage": False}])
def test_usage_is_left_out_of_a_stream_that_did_not_ask_for_it(
    served: tuple[Player, http.client.HTTPConnection], options: object
) -> None:
    body = exchange(served[1], "POST", "/v1/chat/completions", request(USER, stream=True, stream_options=options))[2]
    assert body.endswith("data: [DONE]\n\n")
    assert "prompt_tokens" not in body


def test_without_streaming_a_reply_is_one_document(served: tuple[Player, http.client.HTTPConnection]) -> None:
    status, kind, body = exchange(served[1], "POST", "/v1/chat/completions", request(USER))
    function = {"name": "bash", "arguments": '{"command": "ls -l"}'}
    assert (status, kind, json.loads(body)) == (
        200,
        "application/json",
        {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "Working on it.",
                        "tool_calls": [{**CALL_JSON, "function": function}],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220},
        },
    )


SERVED = "only /v1/chat/completions and /v1/models are served here"
NOT_SERVED = {
    "another path": ("POST", "/v1/completions", {}, 404, SERVED),
    "another method": (
        "GET",
        "/v1/chat/completions",
        {},
        404,
        SERVED,
    ),
    "a body that is no JSON": (
        "POST",
        "/v1/chat/completions",
        b"{",
        400,
        "the body must be JSON with a content-length",
    ),
    "a body that is no object": ("POST", "/v1/chat/completions", [], 400, "the request must be a JSON object"),
}


@all_rows(("method", "path", "body", "status", "message"), NOT_SERVED)
def test_other_requests_get_a_plain_error(
    served: tuple[Player, http.client.HTTPConnection], method: str, path: str, body: object, status: int, message: str
) -> None:
    answer = exchange(served[1], method, path, body)
    assert (answer[0], json.loads(answer[2])["error"]["message"]) == (status, message)


def test_one_connection_serves_many_requests(served: tuple[Player, http.client.HTTPConnection]) -> None:
    player, connection = served
    assert exchange(connection, "GET", "/v1/models?limit=1")[0] == 200
    socket_before = connection.sock
    assert exchange(connection, "POST", "/v1/chat/completions", request(USER, stream=True))[0] == 200
    assert exchange(connection, "POST", "/v1/chat/completions", request(USER))[0] == 200
    assert connection.sock is socket_before
    assert len(player.requests) == 2


def test_the_end_of_the_block_ends_every_thread() -> None:
    before = set(threading.enumerate())
    with ServerOfBothApis(Player(replies())) as server:
        port = int(server.base_url.split(":")[2].removesuffix("/v1"))
        open_connection = http.client.HTTPConnection("127.0.0.1", port)
        assert exchange(open_connection, "GET", "/v1/models")[0] == 200
        assert len(set(threading.enumerate()) - before) == 2
    assert set(threading.enumerate()) <= before
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", port).connect()
    open_connection.close()


def test_fragments_have_at_least_one_character() -> None:
    with pytest.raises(ValueError, match=r"^fragment must be at least 1, not 0$"):
        ServerOfBothApis(Player(replies()), fragment=0)


# -------------------------------------------------------------------------------------------------- the Responses API


def response_call(call_id: object = "a", **more: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "bash", "arguments": "{}", **more}


def response_output(call_id: object = "a", output: object = "out") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


SAID = {"type": "message", "role": "assistant", "content": "hm"}
REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "x"}

ITEMS: dict[str, tuple[object, str]] = {
    "a text": ("go", ""),
    "a question": ([USER], ""),
    "a question in parts": ([{"role": "user", "content": [{"type": "input_text", "text": "go"}]}], ""),
    "a call with its output": ([USER, response_call(), response_output(), USER], ""),
    "text and two calls with their outputs": (
        [USER, SAID, response_call("a"), response_call("b"), response_output("a"), response_output("b")],
        "",
    ),
    "reasoning before text and call": ([REASONING, SAID, REASONING, response_call(), response_output()], ""),
    "two turns": ([USER, response_call(), response_output(), SAID, USER, response_call(), response_output()], ""),
    "a call at the end": ([USER, response_call()], "the call a has no result"),
    "one output of two is missing": (
        [response_call("a"), response_call("b"), response_output("a")],
        "the call b has no result",
    ),
    "a question before the output": (
        [response_call(), USER, response_output()],
        "messages[1]: the call a has no result directly after it",
    ),
    "outputs in the wrong order": (
        [response_call("a"), response_call("b"), response_output("b"), response_output("a")],
        "messages[1]: the result b stands where that of a should",
    ),
    "an output without a call": ([USER, response_output()], "messages[1]: the result a has no call right before it"),
    "a second output of one call": (
        [response_call(), response_output(), response_output()],
        "messages[2]: the result a has no call right before it",
    ),
    "an output without a text": (
        [response_call(), response_output("a", None)],
        "messages[1]: the result a has no text",
    ),
    "two calls with one id": ([response_call(), response_call()], "messages[0]: two calls share an id"),
    "a call without an id": ([response_call("")], "messages[0]: a tool call has no id"),
    "a call whose arguments are an object": (
        [response_call(arguments={})],
        "messages[0]: a tool call needs a name and arguments, both texts",
    ),
    "reasoning at the end": ([USER, REASONING], "input[1]: reasoning without the item that it led to"),
    "reasoning before a question": ([REASONING, USER], "input[0]: reasoning without the item that it led to"),
    "reasoning before an output": (
        [response_call(), REASONING, response_output()],
        "input[1]: reasoning without the item that it led to",
    ),
    "an item of an unknown type": ([USER, {"type": "odd"}], "input[1] has no known type"),
    "an item of an unknown role": ([{"role": "robot", "content": ""}], "messages[0] has no known role"),
    "an item that is no object": (["go"], "input[0] must be an object"),
    "no items": ([], "`input` must be a text, or a list that is not empty"),
    "no input": (None, "`input` must be a text, or a list that is not empty"),
}


@all_rows(("items", "problem"), ITEMS, anew={"served": serving})
def test_items_are_taken_only_if_calls_and_outputs_are_paired(
    served: tuple[Player, http.client.HTTPConnection], items: object, problem: str
) -> None:
    player, connection = served
    status, _, body = exchange(connection, "POST", "/v1/responses", {"model": "m", "input": items})
    assert (status, json.loads(body).get("error") and json.loads(body)["error"]["message"]) == (
        (400, problem) if problem else (200, None)
    )
    assert player.finished is False  # the first answer has a call


def test_a_script_sees_items_as_messages(served: tuple[Player, http.client.HTTPConnection]) -> None:
    player, connection = served
    items = [USER, REASONING, SAID, response_call(), response_output()]
    asked_for = {"model": "m", "store": False, "instructions": "be", "input": items}
    exchange(connection, "POST", "/v1/responses", asked_for)
    call_json = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    assert player.requests == [
        {
            "model": "m",
            "store": False,
            "messages": [
                {"role": "system", "content": "be"},
                USER,
                {"role": "assistant", "content": "hm", "tool_calls": [call_json]},
                {"role": "tool", "tool_call_id": "a", "content": "out"},
            ],
        }
    ]


RESPONSE_CALL = {
    "id": "fc_call_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "bash",
    "arguments": '{"command": "ls -l"}',
}


def test_a_response_is_streamed_as_the_api_does(served: tuple[Player, http.client.HTTPConnection]) -> None:
    asked_for = {"model": "m", "input": "go", "stream": True}
    status, kind, body = exchange(served[1], "POST", "/v1/responses", asked_for)
    assert (status, kind) == (200, "text/event-stream")
    blocks = [block.split("\n") for block in body.split("\n\n")[:-1]]
    events = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [name.removeprefix("event: ") for name, _ in blocks] == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == (
        "Working on it."
    )
    response = events[-1]["response"]
    assert (response["status"], response["output"][1]) == ("completed", RESPONSE_CALL)
    assert events[-2]["item"] == RESPONSE_CALL


def test_without_streaming_a_response_is_one_document(served: tuple[Player, http.client.HTTPConnection]) -> None:
    body = exchange(served[1], "POST", "/v1/responses", {"model": "m", "input": "go"})[2]
    response = json.loads(body)
    part = {"type": "output_text", "text": "Working on it.", "annotations": []}
    said = {"id": "msg_scripted", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    assert (response["object"], response["status"], response["incomplete_details"]) == ("response", "completed", None)
    assert response["output"] == [said, RESPONSE_CALL]
    assert response["usage"] == {
        "input_tokens": 200,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
        "total_tokens": 220,
    }


@all_rows(
    ("finish_reason", "status", "details"),
    [
        (None, "completed", None),
        ("stop", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
        ("odd", "incomplete", {"reason": "odd"}),
    ],
)
def test_finish_reason_is_converted_to_a_status(finish_reason: str | None, status: str, details: object) -> None:
    response = whole_response(Reply(text="a", finish_reason=finish_reason), {"model": "m"})
    assert isinstance(response, dict)
    assert (response["status"], response["incomplete_details"]) == (status, details)


def test_failures_and_raw_answers_are_the_same_in_both_apis() -> None:
    player = Player(replies(Failure(status=503, body="busy"), Raw(body=b"data: {")))
    with ServerOfBothApis(player) as server:
        port = int(server.base_url.split(":")[2].removesuffix("/v1"))
        connection = http.client.HTTPConnection("127.0.0.1", port)
        got = [exchange(connection, "POST", "/v1/responses", {"model": "m", "input": "go"}) for _ in range(2)]
        connection.close()
    assert [(status, body) for status, _, body in got] == [(503, "busy"), (200, "data: {")]


@all_rows(
    ("body", "message"),
    [(b"{", "the body must be JSON with a content-length"), ([], "the request must be a JSON object")],
)
def test_other_bodies_get_a_plain_error(
    served: tuple[Player, http.client.HTTPConnection], body: object, message: str
) -> None:
    answer = exchange(served[1], "POST", "/v1/responses", body)
    assert (answer[0], json.loads(answer[2])["error"]["message"]) == (400, message)


# ---------------------------------------------------------------------------------------- through the adapter and back


class Asking:
    """An adapter at a script's server, with everything that it reported."""

    def __init__(self, server: ServerOfBothApis) -> None:
        self.slept: list[float] = []
        self.retries: list[Retry] = []
        self.text: list[str] = []
        self.model = OpenAIChat(
            "scripted",
            Endpoint(base_url=server.base_url, api_key="no-key"),
            sleep=self.slept.append,
            jitter=lambda: 0.0,
        )

    def __call__(self, *messages: Message) -> ModelResponse:
        return self.model.complete(messages, (), on_text=self.text.append, on_retry=self.retries.append)


GO = Message(role=Role.USER, content="go")
LONG = "Zeile für Zeile \U0001f600\n" * 40


@all_rows("fragment", [1, 7, 100_000])
def test_scripted_conversation_survives_a_round_trip(fragment: int) -> None:
    written = Reply(
        text=LONG,
        calls=(call("write_file", path="a", content=LONG), call("bash", command='"\\')),
        usage=Usage(input_tokens=5, output_tokens=6),
    )
    player = Player(replies(written, Reply(text="cut", finish_reason="length"), say("")))
    with ServerOfBothApis(player, fragment=fragment) as server:
        ask = Asking(server)
        response = ask(GO)
        history = [
            GO,
            Message(role=Role.ASSISTANT, content=response.text, tool_calls=response.tool_calls),
            *(Message(role=Role.TOOL, content="ok", tool_call_id=made.id) for made in response.tool_calls),
        ]
        second = ask(*history)
        third = ask(*history, GO)
    calls = tuple(replace(made, id=f"call_{number}") for number, made in enumerate(written.calls, 1))
    assert response == ModelResponse(
        text=LONG, tool_calls=calls, finish_reason=FinishReason.DONE, usage=Usage(input_tokens=5, output_tokens=6)
    )
    assert "".join(ask.text) == LONG + "cut"
    usage = Usage(input_tokens=200, output_tokens=20)
    assert second == ModelResponse(text="cut", tool_calls=(), finish_reason=FinishReason.LENGTH, usage=usage)
    assert third == ModelResponse(text="", tool_calls=(), finish_reason=FinishReason.DONE, usage=usage)


def test_a_history_with_a_hole_is_refused_and_not_retried() -> None:
    player = Player(replies(say("fine")))
    hole = Message(role=Role.ASSISTANT, content="", tool_calls=(ToolCall(id="c1", name="bash", arguments="{}"),))
    with ServerOfBothApis(player) as server:
        ask = Asking(server)
        with pytest.raises(ModelError) as raised:
            ask(GO, hole, GO)
    assert str(raised.value) == (
        "The provider refused the request (HTTP 400: messages[2]: the call c1 has no result directly after it)."
    )
    assert (ask.slept, len(player.requests)) == ([], 1)


def test_failures_of_a_script_are_those_of_a_provider() -> None:
    slow = Failure(status=429, body='{"error": {"message": "slow"}}', headers=(("retry-after", "3"),))
    player = Player(replies(slow, say("fine"), Raw(body=b'data: {"choices": [{"delta": {"content": "ab"}}]}\n\n')))
    with ServerOfBothApis(player) as server:
        ask = Asking(server)
        assert ask(GO) == ModelResponse(
            text="fine",
            tool_calls=(),
            finish_reason=FinishReason.DONE,
            usage=Usage(input_tokens=200, output_tokens=20),
            retries=1,
        )
        with pytest.raises(CutReply, match=r"^The reply was cut off: the stream ended without a finish reason"):
            ask(GO)
    assert ask.slept == [3.0, 0.5]
    assert ask.retries[0] == Retry(
        attempt=1, attempts=5, wait_seconds=3.0, reason="The provider could not answer (HTTP 429: slow)."
    )
    assert "cut off" in ask.retries[1].reason  # asked for once more, and cut again: the script is over
    assert player.finished
