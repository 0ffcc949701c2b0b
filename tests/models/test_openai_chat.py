"""The adapter against a wire: what a server sends, byte for byte, and what comes of it. Runs on openai 2.x and 3.x."""

from __future__ import annotations

import errno
import gc
import json
import re
import socket
import subprocess
import sys
import threading
import weakref

import pytest
from chat_events import DONE, STOP, calls, chunk, fragment, said, sse
from chat_wire import (
    BASH,
    GOOD,
    KEY,
    LEFT_OPEN,
    USER,
    Asked,
    Wire,
    busy,
    failure,
    http,
    reply,
    stream,
    within,
)
from clocks import HOUR, Clock
from rows import all_rows

from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import Message, Role, ToolCall
from harness.model import Retry
from harness.models.endpoint import Endpoint
from harness.models.exchange import Connections
from harness.models.http_answer import AnswerCheck
from harness.models.openai_chat import OpenAIChat
from harness.record import replace


def test_request_matches_the_api() -> None:
    call = ToolCall(id="c1", name="functions.bash", arguments='{"command": "\ud83d"')
    messages = (
        Message(role=Role.SYSTEM, content="Be good."),
        Message(role=Role.USER, content="Grüße \udc80"),
        Message(role=Role.ASSISTANT, content="", tool_calls=(call, replace(call, id="c2", name=""))),
        Message(role=Role.TOOL, content="out", tool_call_id="c1"),
        Message(role=Role.TOOL, content="", tool_call_id="c2"),
        Message(role=Role.ASSISTANT, content=""),
    )
    with Wire(GOOD) as wire:
        Asked(wire.url).complete(messages, (BASH,))
    # What is no JSON object is wrapped into one: a server that parses it would fail for every later request.
    function = {"name": "functions_bash", "arguments": '{"invalid_arguments":"{\\"command\\": \\"\ud83d\\""}'}
    assert wire.bodies == [
        {
            "model": "m1",
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Grüße \ufffd"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": function},
                        {"id": "c2", "type": "function", "function": {**function, "name": "unknown"}},
                    ],
                },
                {"role": "tool", "content": "out", "tool_call_id": "c1"},
                {"role": "tool", "content": "", "tool_call_id": "c2"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "bash", "description": "Run a command.", "parameters": dict(BASH.parameters)},
                }
            ],
        }
    ]
    head = wire.heads[0].lower()
    assert head.startswith("post /v1/chat/completions http/1.1\r\n")
    assert f"authorization: bearer {KEY}" in head
    assert "content-type: application/json" in head


def test_tools_are_left_out_when_there_are_none() -> None:
    with Wire(GOOD) as wire:
        Asked(wire.url).complete()
    assert "tools" not in wire.bodies[0]


def test_text_is_delivered_immediately() -> None:
    with Wire(stream(said("Hel"), said("lo"), STOP, DONE)) as wire:
        asked = Asked(wire.url)
        assert (asked.complete(), asked.text) == (reply("Hello"), ["Hel", "lo"])


def test_an_answer_in_one_document_is_delivered_too() -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).encode()
    with Wire(http(200, body, "content-type: application/json")) as wire:
        asked = Asked(wire.url)
        assert (asked.complete(), asked.text) == (reply("Hi"), ["Hi"])


def http_date(year: int) -> str:
    return f"retry-after: Fri, 01 Jan {year} 00:00:00 GMT"


RETRIED = {
    "503 after the first back-off": ([busy()], [(0.5, "HTTP 503: busy")]),
    "429 without a wait, then 500": (
        [failure(429, "slow down"), failure(500, "oops")],
        [(8.0, "HTTP 429: slow down"), (1.0, "HTTP 500: oops")],
    ),
    "408 and 409": (
        [failure(408, "late"), failure(409, "locked")],
        [(0.5, "HTTP 408: late"), (1.0, "HTTP 409: locked")],
    ),
    "a page from a proxy": ([http(502, b"<h1>Bad\ngateway</h1>")], [(0.5, "HTTP 502: <h1>Bad gateway</h1>")]),
    "a status without a body": ([http(504, b"")], [(0.5, "HTTP 504")]),
    "Retry-After in seconds": ([busy("retry-after: 7")], [(7.0, "HTTP 503: busy")]),
    "Retry-After of all the time for tries": ([busy("retry-after: 290")], [(290.0, "HTTP 503: busy")]),
    "Retry-After in milliseconds goes first": (
        [busy("retry-after: 7", "retry-after-ms: 250")],
        [(0.25, "HTTP 503: busy")],
    ),
    "a negative Retry-After is none": ([busy("retry-after: -5")], [(0.5, "HTTP 503: busy")]),
    "a Retry-After that is no number is none": ([busy("retry-after: soon")], [(0.5, "HTTP 503: busy")]),
    "an infinite Retry-After is none": ([busy("retry-after: inf")], [(0.5, "HTTP 503: busy")]),
    "a Retry-After date that is past is none": ([busy(http_date(2021))], [(0.5, "HTTP 503: busy")]),
}


@all_rows(("answers", "expected"), RETRIED)
def test_passing_failures_are_retried_visibly(answers: list[bytes], expected: list[tuple[float, str]]) -> None:
    with Wire(*answers, GOOD) as wire:
        asked = Asked(wire.url)
        response = asked.complete()
    assert response == reply("Hi", retries=len(expected))
    assert asked.slept == [wait for wait, _ in expected]
    assert asked.retries == [
        Retry(attempt=i + 1, attempts=3, wait_seconds=wait, reason=f"The provider could not answer ({told}).")
        for i, (wait, told) in enumerate(expected)
    ]
    assert wire.bodies == [wire.bodies[0]] * (len(answers) + 1)


CUT_OFF_EARLY = {
    "the server hangs up without a word": b"",
    "the head is cut": b"HTTP/1.1 200 OK\r\ncontent-le",
    "it speaks no HTTP": b"garbage\r\n\r\n",
    "the body is cut before an event": http(200, b": hello\n\n", length=99),
    "a document is cut": http(200, b'{"choices": [', length=99),
}


@all_rows("answer", CUT_OFF_EARLY)
def test_a_connection_that_breaks_before_the_first_event_is_retried(answer: bytes) -> None:
    with Wire(answer, GOOD) as wire:
        asked = Asked(wire.url)
        assert asked.complete() == reply("Hi", retries=1)
        assert asked.slept == [0.5]
        assert asked.retries[0].reason.startswith(f"The connection to {wire.url} failed: ")


def test_silent_server_is_retried_after_the_timeout() -> None:
    """To the first try a moment is left, to the second all the time that it needs."""
    clock, retries = Clock(599.8), list[Retry]()

    def on_retry(retry: Retry) -> None:
        retries.append(retry)
        clock.step = 0.0

    with Wire(LEFT_OPEN, GOOD) as wire:
        asked = Asked(wire.url, deadlines=within(connect=6000), retry_seconds=9 * HOUR, clock=clock)
        assert asked.model.complete(USER, (), on_text=print, on_retry=on_retry) == reply("Hi", retries=1)
    assert [retry.reason for retry in retries] == [f"{wire.url} sent nothing for 600 s."]


def test_refused_connection_is_tried_twice() -> None:
    """No time that passes starts a server on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    asked = Asked(url, attempts=7)
    with pytest.raises(ModelError) as raised:
        asked.complete()
    assert str(raised.value) == (
        f"The connection to {url} failed: ConnectError: [Errno 111] Connection refused. Nothing listens there: is the server "
        "running, and the port right? (tried 2 times)"
    )
    assert (asked.slept, [(retry.attempt, retry.attempts) for retry in asked.retries]) == ([0.5], [(1, 2)])


def test_plain_text_answer_to_tls_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        plain = threading.Thread(target=answer)
        plain.start()
        asked = Asked(f"https://127.0.0.1:{server.getsockname()[1]}/v1", attempts=7)
        with pytest.raises(ModelError, match=r"does not speak TLS: .*Is its address one with http://\?$"):
            asked.complete()
        plain.join()
    assert asked.retries == []


@all_rows(
    ("address", "caused", "hint", "nobody"),
    [
        ("http://localhost:11434/v1", ConnectionRefusedError(111, "no"), "is Ollama running (`ollama serve`)?", True),
        (
            "http://127.0.0.1:4000/v1",
            ConnectionRefusedError(111, "no"),
            "is LiteLLM proxy running (`litellm --config FILE`)?",
            True,
        ),
        ("http://[::1]:9/v1", ConnectionRefusedError(111, "no"), "is the server running, and the port right?", True),
        ("https://example.org/v1", ConnectionRefusedError(111, "no"), "[Errno 111] no.", False),
        (
            "https://example.org/v1",
            socket.gaierror(-2, "unknown"),
            "Is there a network, and is the address right?",
            False,
        ),
        (
            "https://example.org/v1",
            OSError(errno.ENETUNREACH, "no"),
            "Is there a network, and is the address right?",
            False,
        ),
    ],
)
def test_failed_connection_comes_with_a_hint(address: str, caused: OSError, hint: str, nobody: bool) -> None:
    check = AnswerCheck("m", Endpoint(base_url=address), Connections())
    check.address = address
    error = RuntimeError("connecting")
    error.__cause__ = caused
    failed = check.of(error)
    assert (str(failed).endswith(hint), failed.nobody_there, failed.passing) == (True, nobody, True), str(failed)


def test_jitter_takes_up_to_a_quarter_off_a_back_off() -> None:
    with Wire(busy(), GOOD) as wire:
        asked = Asked(wire.url, jitter=0.5)
        asked.complete()
    assert asked.slept == [0.4375]


ENDS = r"the stream ended without a finish reason or \[DONE\]"
BREAKS = "The connection to {url} failed: {broken}"
SHORTER = (
    "At the prompt, /compact or /clear makes it shorter; else give a smaller task, or take a model with more room."
)
REFUSED = {
    "401": (
        failure(401, f"Incorrect API key provided: {KEY}"),
        ModelError,
        (
            "{url} refused the API key (HTTP 401: Incorrect API key provided: [key]). Set OPENAI_API_KEY to "
            "a key that is valid there, or name the provider that the key is for with --provider or --base-url."
        ),
    ),
    "403": (
        failure(403, f"{KEY} may not"),
        ModelError,
        (
            "{url} does not allow this (HTTP 403: [key] may not). See whether the key in OPENAI_API_KEY may "
            "use model 'm1'."
        ),
    ),
    "404": (
        http(404, b"404 page not found"),
        ModelError,
        (
            "Unknown model 'm1' at {url} (HTTP 404: 404 page not found). Check the model's name, and "
            "the base URL: it usually ends in /v1."
        ),
    ),
    "400 with the code for a long context": (
        failure(400, "No", code="context_length_exceeded"),
        ModelError,
        "The conversation is too long for model 'm1' (HTTP 400: No). {shorter}",
    ),
    "400 with words for a long context": (
        failure(400, "This model's maximum context length is 8192 tokens."),
        ModelError,
        (
            "The conversation is too long for model 'm1' (HTTP 400: This model's maximum context length is "
            "8192 tokens.). {shorter}"
        ),
    ),
    "413": (http(413, b""), ModelError, "The conversation is too long for model 'm1' (HTTP 413). {shorter}"),
    "400": (failure(400, "bad tools"), ModelError, "The provider refused the request (HTTP 400: bad tools)."),
    "422": (
        http(422, b'{"detail": [{"loc": ["body"], "msg": "x"}]}'),
        ModelError,
        'The provider refused the request (HTTP 422: {"loc": ["body"], "msg": "x"}).',
    ),
    "429 that will last": (
        failure(429, "no money", code="insufficient_quota"),
        ModelError,
        "{url} wants money (HTTP 429: no money). Waiting does not help: see the account's quota and billing.",
    ),
    "503 that says so itself": (
        busy("x-should-retry: false"),
        ModelError,
        "The provider could not answer (HTTP 503: busy).",
    ),
    "Retry-After beyond the time for tries": (
        busy("retry-after: 420"),
        ModelError,
        (
            "The provider could not answer (HTTP 503: busy). The provider asks to wait 420 s; of `retry_seconds` (300) 300 "
            "s are left. Try again later, or raise it."
        ),
    ),
    "a key in the error of a server": (
        failure(500, f"trace: {KEY}", "x-should-retry: false"),
        ModelError,
        "The provider could not answer (HTTP 500: trace: [key]).",
    ),
    "a page that repeats the key": (
        http(200, f"<html>{KEY}</html>".encode()),
        ModelError,
        ("The answer is a web page, not a reply; check the base URL (it usually ends in /v1): <html>[key]</html>"),
    ),
    "an error event that repeats the key": (
        stream({"error": {"message": f"bad {KEY}"}}),
        ModelError,
        "The provider broke the reply off: bad [key]",
    ),
    "an error in a choice that repeats the key": (
        stream({"choices": [{"error": f"bad {KEY}"}]}),
        ModelError,
        "The provider broke the reply off: bad [key]",
    ),
    "a broken event that repeats the key": (
        stream("{" + KEY),
        ModelError,
        "The provider sent an event that is not valid JSON: {[key]",
    ),
    "a body that cannot be unpacked": (http(200, b"garbage", "content-encoding: gzip"), ModelError, "{gzip}"),
}


@all_rows(("answer", "kind", "text"), REFUSED)
def test_permanent_failure_is_reported_at_once(answer: bytes, kind: type[ModelError], text: str) -> None:
    with Wire(answer) as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    said = str(raised.value)
    expected = re.escape(text.replace("{url}", wire.url).replace("{shorter}", SHORTER))
    expected = expected.replace(re.escape("{gzip}"), re.escape(f"The request to {wire.url} failed: ") + ".*header.*")
    assert re.fullmatch(expected, said), said
    assert type(raised.value) is kind
    assert KEY not in said
    assert (asked.slept, asked.retries, len(wire.bodies)) == ([], [], 1)


BROKEN_BODY = (
    r"RemoteProtocolError: peer closed connection without sending complete message body "
    r"\(received \d+ bytes, expected 9999\)"
)
CUT_OFF = {
    "a stream that just ends": (stream(said("Hi")), ENDS, 2, 0),
    "a stream that ends before it says anything": (stream(chunk({"role": "assistant"})), ENDS, 0, 0),
    "a stream of comments that ends": (http(200, b": hello\n\n" * 9), ENDS, 0, 0),
    "a stream that ends within a call": (stream(calls(fragment('{"a', call_id="c1", name="bash"))), ENDS, 0, 1),
    "a connection that breaks after text": (http(200, sse(said("Hi")), length=9999), BREAKS, 2, 0),
    "a connection that breaks within a call": (
        http(200, sse(calls(fragment('{"a', call_id="c1", name="bash"))), length=9999),
        BREAKS,
        0,
        1,
    ),
    "a connection that breaks after the first event": (
        http(200, sse(chunk({"role": "assistant"})), length=9999),
        BREAKS,
        0,
        0,
    ),
}


@all_rows(("answer", "why", "characters", "begun"), CUT_OFF)
def test_interrupted_reply_is_requested_again_but_only_once_after_shown_text(
    answer: bytes, why: str, characters: int, begun: int
) -> None:
    with Wire(answer, answer, answer) as wire:
        asked = Asked(wire.url, attempts=3)
        with pytest.raises(CutReply) as raised:
            asked.complete((*USER,))
    tries = 2 if characters or begun else 3
    text = (
        "The reply was cut off: "
        + why.replace("{url}", re.escape(wire.url)).replace("{broken}", BROKEN_BODY)
        + rf"\. None of it was used \({characters} characters of text, {begun} tool calls begun\)\."
    )
    again = re.escape(" The reply begins again.") if characters or begun else ""
    assert [bool(re.fullmatch(text + again, retry.reason)) for retry in asked.retries] == [True] * (tries - 1)
    assert re.fullmatch(text + rf" \(tried {tries} times\)", str(raised.value)), raised.value
    assert raised.value.fault is (ModelFault.CONNECTION if why == BREAKS else ModelFault.REPLY)
    assert (len(wire.bodies), asked.text) == (tries, ["Hi"] * tries if characters else [])


@all_rows("answer", [row[0] for row in CUT_OFF.values()], ids=CUT_OFF)
def test_the_second_reply_counts_when_the_first_broke_off(answer: bytes) -> None:
    with Wire(answer, GOOD) as wire:
        assert Asked(wire.url).complete() == reply("Hi", retries=1)
    assert wire.bodies == [wire.bodies[0]] * 2


def test_a_retry_after_date_far_ahead_is_not_waited_for() -> None:
    with Wire(busy(http_date(2999))) as wire:
        asked = Asked(wire.url)
        with pytest.raises(
            ModelError, match=r"^The provider could not answer \(HTTP 503: busy\)\. .* wait \d{11} s; of "
        ):
            asked.complete()
    assert asked.slept == []


def test_a_request_that_cannot_be_sent_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "two\nlines")
    with Wire() as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value).startswith(f"The request to {wire.url} failed: LocalProtocolError: Illegal header value")
    assert (asked.slept, wire.heads) == ([], [])


def test_connection_broken_after_the_finish_reason_is_harmless() -> None:
    with Wire(http(200, sse(said("Hi"), STOP), length=9999)) as wire:
        assert Asked(wire.url).complete() == reply("Hi")


def test_the_address_in_an_error_holds_neither_password_nor_query() -> None:
    with Wire(failure(401, "No")) as wire:
        asked = Asked(wire.url.replace("127", "ann:pass-word@127") + "?token=t0ken")
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value).startswith(f"{wire.url} refused the API key (HTTP 401: No).")


def test_an_interrupt_passes_through_and_hangs_up() -> None:
    def interrupt(text: str) -> None:
        raise KeyboardInterrupt(text)

    with Wire(LEFT_OPEN + sse(said("Hi"))) as wire:
        asked = Asked(wire.url)
        with pytest.raises(KeyboardInterrupt) as raised:
            asked.model.complete(USER, (), on_text=interrupt, on_retry=asked.retries.append)
        assert wire.hung_up.wait(60)
    # Looked at after the wait: the traceback keeps the frames alive, so that nobody but the adapter can have hung up.
    assert str(raised.value) == "Hi"


def test_a_failing_observer_is_not_taken_for_a_failing_provider() -> None:
    def fail(text: str) -> None:
        raise BrokenPipeError(text)

    with Wire(GOOD) as wire:
        asked = Asked(wire.url)
        with pytest.raises(BrokenPipeError, match=r"^Hi$"):
            asked.model.complete(USER, (), on_text=fail, on_retry=asked.retries.append)


NO_KEY = (
    "The API key is missing. Set OPENAI_API_KEY; a local server without keys takes any text. "
    "`harness demo` needs neither key nor network."
)
BAD_SETTINGS = {
    "no key anywhere": (None, "http://127.0.0.1:9/v1", NO_KEY),
    "an empty key": ("", "http://127.0.0.1:9/v1", NO_KEY),
    "a key with a line end": (
        f"{KEY}\n",
        "http://127.0.0.1:9/v1",
        "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY.",
    ),
    "a key with a character that hides": (
        f"{KEY}\u200b",
        "http://127.0.0.1:9/v1",
        "The API key holds a line end or another character that cannot be sent; see OPENAI_API_KEY.",
    ),
    "a base URL without http": (
        KEY,
        "localhost:11434/v1",
        "The base URL must begin with http:// or https://, not 'localhost:11434/v1'.",
    ),
    "a base URL that is none": (
        KEY,
        "http://host:port",
        "The openai client cannot be made: InvalidURL: Invalid port: 'port'",
    ),
}


@all_rows(("key", "url", "text"), BAD_SETTINGS)
def test_unusable_settings_are_reported_before_sending(
    key: str | None, url: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    model = OpenAIChat("m1", Endpoint(base_url=url, api_key=key))
    model.warm_up()
    with pytest.raises(ModelError) as raised:
        model.complete(USER, (), on_text=print, on_retry=print)
    assert str(raised.value) == text


@all_rows(
    ("variable", "key", "words"),
    [
        ("X_KEY", "", "The API key is missing. Set X_KEY; a local server"),
        ("", "", "The API key is missing. Name a variable that holds one; a local server"),
        ("X_KEY", "a\nb", "a line end or another character that cannot be sent; see X_KEY."),
        ("", "a\nb", "a line end or another character that cannot be sent."),
    ],
)
def test_the_variable_of_the_key_is_the_provider_s_own(variable: str, key: str, words: str) -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:9/v1", api_key=key, key_variable=variable)
    with pytest.raises(ModelError) as raised:
        OpenAIChat("m1", endpoint).complete(USER, (), on_text=print, on_retry=print)
    assert words in str(raised.value)


def test_an_admin_key_alone_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_ADMIN_KEY", KEY)
    with Wire() as wire, pytest.raises(ModelError, match=f"^{re.escape(NO_KEY)}$"):
        OpenAIChat("m1", Endpoint(base_url=wire.url)).complete(USER, (), on_text=print, on_retry=print)
    assert wire.heads == []


def test_key_and_address_default_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(GOOD) as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.setenv("NO_PROXY", "*")
        assert OpenAIChat("m1").complete(USER, (), on_text=print, on_retry=print) == reply("Hi")


@all_rows("host", ["127.0.0.1", "localhost", "127.0.0.2", ""])
def test_proxy_variable_is_ignored_for_the_loopback(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where the address itself stands in the environment (no host here)."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Wire(GOOD, host=host or "127.0.0.1") as wire:
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        assert Asked(wire.url if host else None, attempts=1).complete() == reply("Hi")


def test_the_sdk_is_imported_only_when_it_is_needed() -> None:
    code = (
        "import sys; import harness.models.openai_chat as chat; model = chat.OpenAIChat('m', chat.Endpoint(api_key='k'));"
        "print(sorted({'openai', 'httpx', 'httpx2', 'inspect', 'dataclasses'} & set(sys.modules)));"
        "model.warm_up(); print('openai' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout == "[]\nTrue\n"


def test_threads_that_warm_up_together_build_one_client() -> None:
    model = OpenAIChat("m1", Endpoint(api_key=KEY))
    barrier, clients = threading.Barrier(4), []

    def warm_up() -> None:
        barrier.wait()
        model.warm_up()
        clients.append(model._client)

    threads = [threading.Thread(target=warm_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients == [model._client] * 4
    assert model._client is not None


def test_unreferenced_model_closes_its_connections() -> None:
    model = OpenAIChat("m1", Endpoint(api_key=KEY))
    model.warm_up()
    assert model._client is not None
    client, close = weakref.ref(model._client), model._client.close
    del model
    gc.collect()  # the SDK's own parts hold each other
    assert client() is None
    assert isinstance(close, weakref.finalize)
    assert not close.alive


def test_a_closed_model_opens_again() -> None:
    with Wire(GOOD, GOOD) as wire:
        asked = Asked(wire.url)
        assert asked.complete() == reply("Hi")
        asked.model.close()
        assert asked.complete() == reply("Hi")


def test_attempts_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^attempts must be at least 1, not 0$"):
        OpenAIChat("m1", Endpoint(attempts=0))
