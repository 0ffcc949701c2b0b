"""The adapter against a slow, silent or failing server: deadlines, Ctrl-C, bounds, faults, and what is left behind."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from chat_events import DONE, STOP, calls, chunk, fragment, said, sse
from chat_wire import (
    GOOD,
    KEY,
    LEFT_OPEN,
    USER,
    Asked,
    Steps,
    Wire,
    busy,
    failure,
    http,
    reply,
    stream,
    within,
)
from clocks import HOUR, Clock
from fault_server import Answer, End, FaultServer, FullListener, Repeat, Send, Wait, chunks, head, whole
from in_flight import all_over, exchanges, signalled
from process_scene import wait_until
from rows import all_rows

from harness.errors import CutReply, ModelError, ModelFault
from harness.messages import Usage
from harness.model import Retry
from harness.models.endpoint import Deadlines, Endpoint, Quirks, ReplyBounds
from harness.models.exchange import ERROR_SECONDS
from harness.models.openai_chat import OpenAIChat


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


FIRST = sse(said("Hi"))
COMMENT = b": keep-alive\n\n"


def endless(part: bytes) -> Repeat:
    return Repeat(data=part, pause=0.005)


CUT_OFF = "The reply was cut off: "
UNUSED = ". None of it was used ({} characters of text, 0 tool calls begun)."
# What the server sends for ever must have begun to arrive: where it is looked for, the clock of the deadline goes on with
# each look, and not while the server takes its time.
LATE: dict[str, tuple[Steps, Deadlines, float | None, type[ModelError], str]] = {
    "no head": ([b"", End.STALL], within(first_event=0.2), None, ModelError, "{url} sent nothing for 0.2 s."),
    "a head and no body": ([LEFT_OPEN], within(first_event=0.2), None, ModelError, "{url} sent nothing for 0.2 s."),
    "keep-alives only": (
        [LEFT_OPEN, endless(COMMENT)],
        within(idle=0.2),
        10.0,
        ModelError,
        "{url} sent nothing but keep-alives for 600 s.",
    ),
    "a dribble that completes no event": (
        [LEFT_OPEN, b'data: {"choices": [{"delta": {"content": "', endless(b"x")],
        within(idle=0.2),
        10.0,
        ModelError,
        "{url} sent nothing but keep-alives for 600 s.",
    ),
    "a dribble in the head": (
        [b"HTTP/1.1 200 OK\r\n", Repeat(data=b"x-a: b\r\n", pause=0.05)],
        within(first_event=0.2),
        None,
        ModelError,
        "{url} sent nothing for 0.2 s.",
    ),
    "silence after an event": (
        [LEFT_OPEN + FIRST],
        within(idle=0.2),
        None,
        CutReply,
        CUT_OFF + "{url} sent nothing more for 0.2 s" + UNUSED.format(2),
    ),
    "keep-alives after an event": (
        [LEFT_OPEN + FIRST, endless(COMMENT)],
        within(idle=0.2),
        None,
        CutReply,
        CUT_OFF + "{url} sent nothing more for 0.2 s" + UNUSED.format(2),
    ),
    "events without end": (
        [LEFT_OPEN, endless(sse(chunk()))],
        within(total=600),
        10.0,
        CutReply,
        CUT_OFF + "the reply took longer than 600 s" + UNUSED.format(0),
    ),
    "nothing at all for too long": (
        [LEFT_OPEN],
        within(total=0.5),
        None,
        ModelError,
        "{url} did not answer within 0.5 s.",
    ),
}


@all_rows(("steps", "deadlines", "step", "kind", "text"), LATE)
def test_deadlines_are_kept_and_release_everything(
    steps: Steps, deadlines: Deadlines, step: float | None, kind: type[ModelError], text: str
) -> None:
    """A server that would send for ever, or never: without the deadline this hangs."""
    with Wire(GOOD, steps) as wire:
        # The first request imports and opens what stays.
        Asked(wire.url, attempts=1).complete()
        before = descriptors()
        asked = Asked(wire.url, attempts=1, deadlines=deadlines, clock=None if step is None else Clock(step))
        with pytest.raises(ModelError) as raised:
            asked.complete()
        assert all_over()
        assert wait_until(lambda: descriptors() <= before + 1)  # the server's end
    assert (type(raised.value), str(raised.value)) == (kind, text.replace("{url}", wire.url))
    assert raised.value.fault is ModelFault.TIMEOUT


STATUS_ALONE: dict[str, tuple[Steps, ModelFault]] = {
    "a dribble": ([b"HTTP/1.1 503 Busy\r\n\r\n", endless(b"x")], ModelFault.SERVER),
    "silence": ([b"HTTP/1.1 401 No\r\ncontent-length: 9\r\n\r\n", End.STALL], ModelFault.AUTHENTICATION),
    "nothing but the head of gzip": (
        [b"HTTP/1.1 404 No\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10], End.STALL],
        ModelFault.NOT_FOUND,
    ),
    "an encoding that nobody asked for": (
        [b"HTTP/1.1 401 No\r\ncontent-encoding: br\r\n\r\n" + b"x" * 9],
        ModelFault.AUTHENTICATION,
    ),
    "what calls itself gzip": (
        [b"HTTP/1.1 401 No\r\ncontent-encoding: gzip\r\n\r\n" + b"x" * 9],
        ModelFault.AUTHENTICATION,
    ),
    "a body that breaks": ([b"HTTP/1.1 401 No\r\ncontent-length: 99\r\n\r\nx"], ModelFault.AUTHENTICATION),
}


@all_rows(("steps", "fault"), STATUS_ALONE)
def test_an_error_status_holds_however_its_body_ends(steps: Steps, fault: ModelFault) -> None:
    status = bytes(steps[0] if isinstance(steps[0], bytes) else b"").split(b" ")[1].decode()
    with Wire(steps) as wire:
        # The status has all the time to come in. Then half a second is left of what is waited for the rest of an error.
        asked = Asked(wire.url, attempts=1, deadlines=within(), clock=Clock(ERROR_SECONDS - 0.5))
        with pytest.raises(ModelError) as raised:
            asked.complete()
        assert all_over()
    assert (raised.value.fault, f"(HTTP {status}" in str(raised.value)) == (fault, True), raised.value


def test_all_that_moves_a_request_is_bound_by_one_deadline() -> None:
    """It would be moved once too often otherwise. Each look at the clock, of which a request takes several, is 60 s later."""
    with Wire(*[redirect(307, "/v1/again")] * 9) as wire:
        asked = Asked(wire.url, attempts=1, deadlines=within(connect=6000), clock=Clock(60))
        with pytest.raises(ModelError, match=r" sent nothing for 600 s\.$"):
            asked.complete()


PACKED = gzip.compress(sse(said("Hi"), STOP, DONE))
UNREADABLE = {
    "another encoding": (PACKED, "content-encoding: br"),
    "two layers": (gzip.compress(PACKED), "content-encoding: gzip, gzip"),
    "two layers in two lines": (gzip.compress(PACKED), "content-encoding: gzip\r\nContent-Encoding: gzip"),
    "a word that nobody knows": (b"x", f"content-encoding: {KEY}"),
}


@all_rows(("body", "header"), UNREADABLE)
def test_unrequested_encoding_is_not_decoded(body: bytes, header: str) -> None:
    with Wire(http(200, body, header)) as wire, pytest.raises(ModelError, match=" was not requested ") as raised:
        Asked(wire.url).complete()
    assert (raised.value.fault, KEY in str(raised.value)) == (ModelFault.REPLY, False)


@all_rows("header", ["gzip", "GZIP, identity", "x-gzip"])
def test_gzip_is_requested_and_decoded(header: str) -> None:
    with Wire(http(200, PACKED, f"content-encoding: {header}")) as wire:
        assert Asked(wire.url).complete() == reply("Hi")
    assert re.findall("(?im)^accept-encoding: (.*)\r$", wire.heads[0]) == ["gzip"]


def test_empty_compressed_blocks_end_at_the_deadline() -> None:
    """Empty blocks of deflate for ever: the thread that unpacks them has nothing to hand on, and stops all the same.

    A busy machine may reach the deadline before they arrive, and passes then.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begins = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    empty = Repeat(data=b"\x00\x00\x00\xff\xff" * 1_000_000, pause=0)
    with Wire([LEFT_OPEN.replace(b"x-wire: ", b"content-encoding: gzip\r\nx-wire: "), begins, empty]) as wire:
        asked = Asked(wire.url, attempts=1, deadlines=within(first_event=0.5))
        asked.model.warm_up()
        with pytest.raises(ModelError):
            asked.complete()
        assert all_over()


def test_a_bomb_of_gzip_meets_the_bounds_step_by_step() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(300)) + packer.flush()
    before = resident_pages()
    with Wire(http(200, bomb, "content-encoding: gzip")) as wire:
        asked = Asked(wire.url, attempts=1, bounds=ReplyBounds(bytes=20_000_000))
        with pytest.raises(ModelError, match="20000000 bytes"):
            asked.complete()
    assert resident_pages() - before < 100_000_000 // os.sysconf("SC_PAGE_SIZE")


EARLY = {
    "by its length": lambda body: head(200, f"content-length: {len(body)}") + body,
    "in chunks": lambda body: head(200, "transfer-encoding: chunked") + chunks(body),
}


@all_rows("form", EARLY)
def test_early_answer_is_not_used_for_the_next_request(form: Callable[[bytes], bytes]) -> None:
    first, second = (form(sse(said(text), STOP, DONE)) for text in ("one", "two"))
    with FaultServer([Answer(steps=(Send(data=first + first),)), Answer(steps=(Send(data=second),))]) as server:
        with closing(Asked(server.url, attempts=1).model) as model:
            texts = [model.complete(USER, (), on_text=lambda _: None, on_retry=print).text for _ in range(2)]
        assert (texts, len(server.requests), server.connections) == (["one", "two"], 2, 2)


def test_early_error_is_not_used_for_the_next_request() -> None:
    twice = (head(500, "content-length: 2") + b"no") * 2
    with FaultServer([Answer(steps=(Send(data=twice),)), whole(sse(said("two"), STOP, DONE))]) as server:
        asked = Asked(server.url, attempts=2)
        assert asked.complete().text == "two"
        asked.model.close()
        assert (len(server.requests), server.connections) == (2, 2)


def answered(reply_id: str, call_id: str = "c1") -> bytes:
    made = calls(fragment("{}", call_id=call_id, name="bash"))
    return stream({**made, "id": reply_id}, chunk(finish="tool_calls", id=reply_id), DONE)


LIKE = {
    "the same call under another id": (answered("a"), answered("a", "c2")),
    "one id for all replies and one for all calls": (answered("a"), answered("a")),
    "ids of calls that are always the same": (answered("a"), answered("b")),
    "no ids at all": (answered("", ""), answered("", "")),
    "the same text": (stream(said("Hi", id="a"), STOP, DONE),) * 2,
}


@all_rows("answers", LIKE)
def test_a_reply_that_is_like_the_one_before_is_believed(answers: Sequence[bytes]) -> None:
    with Wire(*answers) as wire:
        asked = Asked(wire.url, attempts=1)
        first, second = asked.complete(), asked.complete()
    assert (first.text, len(first.tool_calls)) == (second.text, len(second.tool_calls))


USED = {"prompt_tokens": 7, "completion_tokens": 3}
USAGE = Usage(input_tokens=7, output_tokens=3)
SPENT: dict[str, tuple[bytes, Usage]] = {
    "broken off, and reported": (stream(said("a"), chunk(finish="error", usage=USED)), USAGE),
    "cut off, and reported": (stream(said("a", usage=USED)), USAGE),
    "cut off, and not reported": (stream(said("a")), Usage(unreported=1)),
    "a status": (busy(), Usage()),
    "an error before anything": (stream({"error": {"code": 502, "message": "x"}}), Usage()),
    "no connection": (b"", Usage()),
}


@all_rows(("answer", "used"), SPENT)
def test_usage_of_a_failed_try_is_reported(answer: bytes, used: Usage) -> None:
    with Wire(*[answer] * 2) as wire:
        asked = Asked(wire.url, attempts=2)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert ([retry.usage for retry in asked.retries], raised.value.usage or Usage()) == ([used], used)


def test_usage_of_a_dropped_reply_is_reported() -> None:
    with Wire(stream(chunk(usage=USED), said("x" * 100), STOP)) as wire, pytest.raises(ModelError) as raised:
        Asked(wire.url, bounds=ReplyBounds(events=2)).complete()
    assert raised.value.usage == USAGE


def test_adapted_request_is_reported_and_counted() -> None:
    taught = [failure(400, "stream_options is not known"), failure(400, "streaming is not supported with tools")]
    with Wire(*taught, GOOD) as wire:
        asked = Asked(wire.url, attempts=1)
        assert asked.complete() == reply("Hi", retries=2)
    assert asked.slept == []
    assert [(retry.attempt, retry.attempts, retry.wait_seconds) for retry in asked.retries] == [(1, 2, 0), (2, 3, 0)]
    assert asked.retries[0].reason == (
        "The provider refused the request (HTTP 400: stream_options is not known). It is asked again in the way that the "
        "server takes."
    )


def test_events_in_time_extend_the_wait() -> None:
    """Each is a wait of its own: together they take longer than one may."""
    with Wire([LEFT_OPEN, *(Send(data=FIRST), Wait(seconds=0.05)) * 5, sse(STOP, DONE)]) as wire:
        clock = Clock(60)  # at each look, of which an event takes two
        asked = Asked(wire.url, attempts=1, deadlines=within(first_event=300, idle=300), clock=clock)
        assert asked.complete().text == "Hi" * 5


def test_slow_observer_is_not_taken_for_a_slow_server() -> None:
    clock = Clock()

    def slowly(text: str) -> None:
        clock.now += HOUR

    with Wire([LEFT_OPEN + FIRST, sse(said("x")), Wait(seconds=0.05), sse(STOP, DONE)]) as wire:
        asked = Asked(wire.url, attempts=1, clock=clock)
        response = asked.model.complete(USER, (), on_text=slowly, on_retry=print)
        assert response.text == "Hix"


@all_rows(
    "end",
    [
        pytest.param(sse(STOP, DONE), id="after [DONE] the end of the answer is waited for only a moment"),
        pytest.param(sse(STOP), id="after a finish reason, for the usage"),
    ],
)
def test_a_finished_reply_needs_no_end_of_its_answer(end: bytes) -> None:
    with Wire([LEFT_OPEN + FIRST + end]) as wire:
        asked = Asked(wire.url, attempts=1, deadlines=within(idle=0.5))
        assert asked.complete() == reply("Hi")
        assert all_over()


def test_a_silent_server_is_asked_again() -> None:
    """To the first try a moment is left; to the others all the time that they need until an event is there."""
    clock, retries = Clock(599.8), list[Retry]()

    def on_retry(retry: Retry) -> None:
        retries.append(retry)
        clock.step = 0.0

    with Wire([LEFT_OPEN], *[[LEFT_OPEN + FIRST]] * 2) as wire:
        asked = Asked(
            wire.url, attempts=5, deadlines=within(connect=6000, idle=0.2), retry_seconds=HOUR * 9, clock=clock
        )
        with pytest.raises(CutReply, match=r"^The reply was cut off: .*\(tried 3 times\)$"):
            asked.model.complete(USER, (), on_text=print, on_retry=on_retry)
    assert [" The reply begins again." in retry.reason for retry in retries] == [False, True]
    assert all_over()


def test_tries_end_when_their_time_is_over() -> None:
    with Wire([LEFT_OPEN]) as wire:
        asked = Asked(wire.url, deadlines=within(first_event=0.3), retry_seconds=0.2)
        with pytest.raises(ModelError, match=r" sent nothing for 0\.3 s\.$"):
            asked.complete()
    assert asked.retries == []


OUT_OF_TIME: dict[str, tuple[Steps, float]] = {
    "no answer": ([b"", End.STALL], 0.5),
    "within a reply": ([LEFT_OPEN, endless(FIRST)], 0.5),
    "a long wait before the next try": ([busy("retry-after: 59")], 58.0),
}


@all_rows(("steps", "seconds"), OUT_OF_TIME)
def test_request_takes_at_most_the_remaining_time(steps: Steps, seconds: float) -> None:
    with Wire(GOOD, steps) as wire:
        asked = Asked(wire.url)
        asked.complete()
        with pytest.raises(ModelError) as raised:
            asked.complete(seconds=seconds)
    assert raised.value.fault is ModelFault.TIME
    assert type(raised.value) is ModelError
    assert asked.slept == []
    assert all_over()


# --------------------------------------------------------------------------------------------------------------- Ctrl-C


INTERRUPTED: dict[str, Steps] = {
    "before the head": [b"", End.STALL],
    "within the head": [b"HTTP/1.1 200 OK\r\ncon", End.STALL],
    "within the body": [LEFT_OPEN + FIRST],
    "within keep-alives": [LEFT_OPEN, endless(COMMENT)],
    "in a flood": [LEFT_OPEN, Repeat(data=FIRST * 1000, pause=0)],
    "within a retry's wait": [busy("retry-after: 59")],
}


@all_rows("steps", INTERRUPTED)
def test_interrupt_takes_effect_at_once_and_releases_everything(steps: Steps) -> None:
    with Wire(GOOD, steps, GOOD) as wire:
        model = OpenAIChat("m1", Endpoint(base_url=wire.url, api_key=KEY))
        asked = [model.complete(USER, (), on_text=lambda _: None, on_retry=lambda _: None)]
        before = descriptors()
        with pytest.raises(KeyboardInterrupt), signalled(signal.SIGINT, lambda: len(wire.requests) == 2):
            model.complete(USER, (), on_text=lambda _: None, on_retry=lambda _: None)
        assert all_over()
        assert wait_until(lambda: descriptors() <= before + 1)
        asked.append(model.complete(USER, (), on_text=lambda _: None, on_retry=lambda _: None))
        assert asked == [reply("Hi")] * 2
        model.close()


def test_an_interrupt_takes_effect_while_a_connect_hangs() -> None:
    with FullListener() as listener:
        asked = Asked(listener.url, attempts=1)
        asked.model.warm_up()
        with pytest.raises(KeyboardInterrupt), signalled(signal.SIGINT, lambda: exchanges() > 0):
            asked.complete()
    # The connect is refused when it is tried again: there is no listener any more.
    assert all_over()


def test_a_connect_that_hangs_ends_at_its_deadline() -> None:
    with FullListener() as listener:
        asked = Asked(listener.url, attempts=1, deadlines=within(connect=0.5))
        asked.model.warm_up()
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value) == f"{listener.url} did not take the connection within 0.5 s."
    assert (raised.value.fault, all_over()) == (ModelFault.TIMEOUT, True)


def test_hundred_failures_release_everything() -> None:
    answers = [stream(said("Hi")), http(200, sse(said("Hi")), length=999), busy("x-should-retry: false"), b""] * 25
    with Wire(GOOD, *answers) as wire:
        asked = Asked(wire.url, attempts=1)
        asked.complete()
        before = descriptors()
        for _ in answers:
            with pytest.raises(ModelError):
                asked.complete()
        assert wait_until(lambda: descriptors() <= before + 1)
        assert all_over()


# ------------------------------------------------------------------------------------------------- bounds and failures


SMALL = ReplyBounds(bytes=5000, events=20, calls=3, argument_characters=100)
TOO_MUCH = {
    "bytes": ([FIRST * 1000], "is longer than 5000 bytes", "bytes"),
    "bytes of a document": ([b"{" + b" " * 9000], "is longer than 5000 bytes", "bytes"),
    "bytes of white space": ([b" " * 9000], "is longer than 5000 bytes", "bytes"),
    "bytes of comments": ([COMMENT * 1000], "is longer than 5000 bytes", "bytes"),
    "events": ([sse(*[chunk()] * 21)], "has more than 20 events", "events"),
    "calls": (
        [sse(*[calls(fragment("{}", index=i, name="bash")) for i in range(4)])],
        "has more than 3 tool calls",
        "calls",
    ),
    "calls of a document": (
        [json.dumps({"choices": [{"message": {"tool_calls": [fragment("{}", name="bash")] * 4}}]}).encode(), End.CLOSE],
        "has more than 3 tool calls",
        "calls",
    ),
    "argument characters": (
        [sse(*[calls(fragment("x" * 30, call_id="c1", name="bash"))] * 4)],
        "has a tool call with more than 100 characters of arguments",
        "argument_characters",
    ),
}


@all_rows(("steps", "what", "bound"), TOO_MUCH)
def test_reply_beyond_the_bounds_is_dropped_early(steps: Steps, what: str, bound: str) -> None:
    # The server leaves the answer open: what is noticed, is noticed before its end; a document is read at its end.
    left_open = [End.STALL] if len(steps) == 1 else []
    with Wire([LEFT_OPEN.replace(b"left open", b"open"), *steps, *left_open]) as wire:
        asked = Asked(wire.url, bounds=SMALL)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert (
        str(raised.value) == f"The reply {what}; it was dropped. Raise `{bound}` under [bounds] if it should be taken."
    )
    assert (raised.value.fault, asked.retries, all_over()) == (ModelFault.REPLY, [], True)


FAULTS: dict[str, tuple[bytes, ModelFault, int]] = {
    "401": (failure(401, "no"), ModelFault.AUTHENTICATION, 1),
    "403": (failure(403, "no"), ModelFault.AUTHENTICATION, 1),
    "403 of a moderation": (failure(403, "Your input was flagged for violence"), ModelFault.CONTENT, 1),
    "404": (failure(404, "no"), ModelFault.NOT_FOUND, 1),
    "400 for a model that is not there": (failure(400, "no", code="model_not_found"), ModelFault.NOT_FOUND, 1),
    "404 for a model without tools": (
        failure(404, "No endpoints found that support tool use"),
        ModelFault.REQUEST,
        1,
    ),
    "400 for a model without tools": (failure(400, '"x" does not support tools'), ModelFault.REQUEST, 1),
    "500 for tools without their flag": (
        failure(500, "tools param requires --jinja flag", type="server_error"),
        ModelFault.REQUEST,
        1,
    ),
    "413": (failure(413, "too large"), ModelFault.CONTEXT, 1),
    "context by llama-server": (
        failure(400, "the request exceeds the available context size", type="exceed_context_size_error"),
        ModelFault.CONTEXT,
        1,
    ),
    "context by Gemini": (
        http(
            400,
            b'[{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens"}}]',
        ),
        ModelFault.CONTEXT,
        1,
    ),
    "content policy": (failure(400, "no", code="content_policy_violation"), ModelFault.CONTENT, 1),
    "content filter of Azure": (failure(400, "no", code="content_filter"), ModelFault.CONTENT, 1),
    "content filter of Azure, within": (
        failure(400, "no", innererror={"code": "ResponsibleAIPolicyViolation"}),
        ModelFault.CONTENT,
        1,
    ),
    "402": (failure(402, "pay"), ModelFault.QUOTA, 1),
    "quota": (failure(429, "no", code="insufficient_quota"), ModelFault.QUOTA, 1),
    "400": (failure(400, "no"), ModelFault.REQUEST, 1),
    "400 that should be tried again": (failure(400, "no", "x-should-retry: true"), ModelFault.REQUEST, 3),
    "302 to nowhere": (http(302, b""), ModelFault.REQUEST, 1),
    "429": (failure(429, "slow"), ModelFault.SERVER, 3),
    "529": (failure(529, "overloaded"), ModelFault.SERVER, 3),
    "503 that should not be tried again": (busy("x-should-retry: false"), ModelFault.SERVER, 1),
    "a generation that failed": (
        failure(400, "no", code="tool_use_failed", failed_generation="<f>"),
        ModelFault.REPLY,
        3,
    ),
    "overloaded within the answer": (
        stream({"error": {"type": "overloaded_error", "message": "x"}}),
        ModelFault.SERVER,
        3,
    ),
    "502 within the answer": (stream({"error": {"code": 502, "message": "x"}}), ModelFault.SERVER, 3),
    "429 in words within the answer": (stream({"error": {"code": "429", "message": "x"}}), ModelFault.SERVER, 3),
    "busy in words within the answer": (stream({"error": "Rate limit reached"}), ModelFault.SERVER, 3),
    "an error in the choice": (stream({"choices": [{"error": {"code": 502}}]}), ModelFault.SERVER, 3),
    "401 within the answer": (stream({"error": {"code": 401, "message": "x"}}), ModelFault.AUTHENTICATION, 1),
    "context within the answer": (stream({"error": {"code": "context_length_exceeded"}}), ModelFault.CONTEXT, 1),
    "an unknown error within the answer": (stream({"error": {"message": "x"}}), ModelFault.REQUEST, 1),
    "overloaded in a document": (http(200, b'{"error": {"code": 503, "message": "x"}}'), ModelFault.SERVER, 3),
    "an empty body": (http(200, b""), ModelFault.REPLY, 4),
    "[DONE] alone": (stream(DONE), ModelFault.REPLY, 3),
    "comments alone": (http(200, COMMENT * 3), ModelFault.REPLY, 3),
    "a web page": (http(200, b"<html>" + b"x" * 5000), ModelFault.REPLY, 1),
    "plain text": (http(200, b"hello"), ModelFault.REPLY, 1),
    "JSON of another kind": (http(200, b'{"models": []}'), ModelFault.REPLY, 1),
    "broken JSON": (stream("{"), ModelFault.REPLY, 1),
    "garbage that calls itself gzip": (http(200, b"garbage", "content-encoding: gzip"), ModelFault.REPLY, 1),
    "a finish reason that is an error": (stream(said(None, "error")), ModelFault.SERVER, 3),
    "no HTTP": (b"hello\r\n\r\n", ModelFault.CONNECTION, 3),
    "nothing": (b"", ModelFault.CONNECTION, 3),
}


@all_rows(("answer", "fault", "tries"), FAULTS)
def test_each_failure_has_its_fault_and_temporary_ones_are_retried(
    answer: bytes, fault: ModelFault, tries: int
) -> None:
    with Wire(*[answer] * tries) as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert (raised.value.fault, len(wire.bodies), len(asked.retries)) == (fault, tries, tries - 1), raised.value
    assert asked.text == []


def test_refused_connection_is_a_connection_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
    with pytest.raises(ModelError) as raised:
        Asked(url).complete()
    assert raised.value.fault is ModelFault.CONNECTION


def redirect(status: int, location: str) -> bytes:
    return http(status, b"<html>moved</html>", f"location: {location}")


@all_rows("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_origin_gets_neither_key_nor_conversation(status: int) -> None:
    with Wire(GOOD) as other, Wire(redirect(status, f"{other.url}/chat/completions?key=hidden")) as wire:
        asked = Asked(wire.url)
        with pytest.raises(ModelError) as raised:
            asked.complete()
    assert str(raised.value) == (
        f"{wire.url} redirects the request to {other.url}/chat/completions (HTTP {status}). The redirect was not followed. If "
        "the provider is there, set that address with --base-url."
    )
    assert (raised.value.fault, len(wire.bodies), asked.retries) == (ModelFault.REQUEST, 1, [])
    assert (other.heads, other.bodies) == ([], [])


ELSEWHERE = ["https://127.0.0.1:{port}/v1", "//localhost:{port}/v1", "http://127.0.0.1/v1", "ftp://127.0.0.1:{port}/"]


@all_rows("location", ELSEWHERE)
def test_another_scheme_host_or_port_is_another_origin(location: str) -> None:
    def answer(url: str) -> bytes:
        return redirect(307, location.replace("{port}", url.split(":")[2].removesuffix("/v1")))

    refused = r" redirects the request to .* was not followed\."
    with Wire(answer) as wire, pytest.raises(ModelError, match=refused) as raised:
        Asked(wire.url).complete()
    assert (raised.value.fault, len(wire.bodies)) == (ModelFault.REQUEST, 1)


@all_rows("status", [301, 302, 307, 308])
@all_rows("path", ["/v2/chat/completions", "completions/"])
def test_a_redirect_within_the_origin_is_followed_with_the_whole_request(status: int, path: str) -> None:
    with Wire(redirect(status, path), GOOD) as wire:
        assert Asked(wire.url, attempts=1).complete() == reply("Hi")
    assert wire.bodies[0] == wire.bodies[1]
    assert [f"Bearer {KEY}" in head for head in wire.heads] == [True, True]
    target = path if path.startswith("/") else f"/v1/chat/{path}"
    assert wire.heads[1].startswith(f"POST {target} HTTP/1.1\r\n")


def test_redirects_are_limited() -> None:
    with Wire(*[redirect(307, "/v1/again")] * 9) as wire:
        with pytest.raises(ModelError, match=r" redirects the request again and again, at last to .*/v1/again\.$"):
            Asked(wire.url).complete()
        assert len(wire.bodies) == 6


@all_rows("kind", ["application/json", "text/plain"])
def test_error_body_is_read_up_to_a_limit(kind: str) -> None:
    """The server would send for ever: the answer is told before it comes to an end."""
    head = f"HTTP/1.1 400 Word\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode()
    with Wire([head, b'{"error": {"message": "no ', endless(b"x" * 10_000)]) as wire:
        with pytest.raises(ModelError) as raised:
            Asked(wire.url, attempts=1).complete()
        assert all_over()
    assert (raised.value.fault, len(str(raised.value)) < 400) == (ModelFault.REQUEST, True)
    assert str(raised.value).startswith('The provider refused the request (HTTP 400: {"error": {"message": "no xxx')


def test_quirks_include_those_learned_from_refusals() -> None:
    refused = failure(400, "Unrecognized request argument supplied: stream_options")
    with Wire(refused, GOOD) as wire:
        asked = Asked(wire.url, quirks=Quirks(echo=()))
        assert asked.model.quirks == Quirks(echo=())
        asked.complete()
    assert asked.model.quirks == Quirks(echo=(), usage=False)


@all_rows(
    ("status", "variable", "words"),
    [
        (
            401,
            "MISTRAL_API_KEY",
            "Set MISTRAL_API_KEY to a key that is valid there, or name the provider that the key is",
        ),
        (403, "MISTRAL_API_KEY", "See whether the key in MISTRAL_API_KEY may use model 'm1'."),
        (401, "", "wants an API key (HTTP 401: no), and none is set for it. Name the variable"),
        (403, "", "See whether your key may use model 'm1'."),
    ],
)
def test_a_key_that_is_refused_is_named_by_its_own_variable(status: int, variable: str, words: str) -> None:
    with Wire(failure(status, "no")) as wire, pytest.raises(ModelError) as raised:
        Asked(wire.url, key_variable=variable).complete()
    assert words in str(raised.value)
    assert "OPENAI" not in str(raised.value)


class KeepAlive:
    """A server that keeps one connection: it answers the first request on it, and leaves the second without an answer."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._context = context
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def _serve(self) -> None:
        answer = sse(said("Hi"), STOP, DONE)
        with self._listener, suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                connection.settimeout(600)
                if self._context is not None:
                    connection = self._context.wrap_socket(connection, server_side=True)
                with connection, connection.makefile("rb") as incoming, suppress(OSError):
                    for _ in range(1 if self.connections > 1 else 2):
                        length = 0
                        while (line := incoming.readline()) not in {b"\r\n", b""}:
                            if line.lower().startswith(b"content-length"):
                                length = int(line.split(b":")[1])
                        if not incoming.read(length) or (self.connections == 1 and _ == 1):
                            break
                        connection.sendall(
                            f"HTTP/1.1 200 OK\r\ncontent-length: {len(answer)}\r\n\r\n".encode() + answer
                        )
                    incoming.read(1)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)


def context() -> tuple[ssl.SSLContext, str]:
    """Return the TLS of a server with a certificate of its own, and the file of that certificate."""
    folder = tempfile.mkdtemp()
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key -out cert -subj /CN=x"
    words = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(f"{folder}/cert", f"{folder}/key")
    return made, f"{folder}/cert"


@all_rows("tls", [False, True], ids=["plain", "TLS"])
def test_connection_is_reused_until_its_request_is_abandoned(tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tls and shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    made, certificate = context() if tls else (None, "")
    if tls:
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
    server = KeepAlive(made)
    patient, clock = -HOUR, Clock()
    clock.step = patient
    asked = Asked(server.url, attempts=1, deadlines=within(connect=6000), clock=clock)
    assert asked.complete() == reply("Hi")
    clock.step = 599.8  # from when the request was sent, a moment is left
    with pytest.raises(ModelError, match=r" sent nothing for 600 s\.$"):
        asked.complete()
    assert (server.connections, all_over()) == (1, True)
    clock.step = patient
    assert asked.complete() == reply("Hi")
    assert server.connections == 2
    asked.model.close()
    server.close()


def test_only_a_server_that_speaks_tls_has_the_authorities_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading them is most of what starting a client costs. Where there are none, TLS fails and plain HTTP does not."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    with Wire(GOOD) as wire:
        assert Asked(wire.url, attempts=1).complete().text
        with pytest.raises(ModelError, match="SSL_CERT_FILE or SSL_CERT_DIR cannot be read: No such file"):
            Asked(wire.url.replace("http:", "https:"), attempts=1).complete()
