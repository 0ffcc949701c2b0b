"""Wire cases of what goes wrong: cuts, answers that are no replies, errors in all their forms, deadlines and bounds."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

from chat_events import CALLED, DONE, STOP, calls, chunk, fragment, said, sse
from fault_server import (
    Answer,
    End,
    Repeat,
    Send,
    Take,
    Wait,
    chunked,
    chunks,
    head,
    status,
    until_close,
    whole,
    zipped,
)
from wire_cases import (
    CALL,
    ENDPOINT,
    FINE,
    KEY,
    Case,
    broken,
    calling,
    cut,
    do,
    document,
    failing,
    failure,
    fine,
    one,
    stream,
)

from harness.errors import ModelFault
from harness.limits import Limits
from harness.messages import StopReason
from harness.models.endpoint import Deadlines, ReplyBounds
from harness.models.exchange import TAIL_SECONDS
from harness.record import replace

GARBAGE_TLS = b"\x15\x03\x01\x00\x02\x02\x28" * 3
REPLY, SERVER, CONNECTION, TIMEOUT = (
    (ModelFault.REPLY,),
    (ModelFault.SERVER,),
    (ModelFault.CONNECTION,),
    (ModelFault.TIMEOUT,),
)
BROKEN = (ModelFault.REPLY, ModelFault.CONNECTION, ModelFault.TIMEOUT, ModelFault.SERVER)
CUT_OR_ERROR = (StopReason.CUT, StopReason.MODEL_ERROR)

# ------------------------------------------------------------------------------------- cut at every place of a call

EVENTS = [
    sse(chunk({"role": "assistant", "content": None})),
    sse(calls(fragment("", call_id="c1", name="work"))),
    sse(calls(fragment('{"do":'))),
    sse(calls(fragment('"a"'))),
    sse(calls(fragment("}"))),
]
LAST = sse(CALLED)
PLACES = {
    "before any event": b"",
    "within the first event": EVENTS[0][:20],
    "after the role": b"".join(EVENTS[:1]),
    "within the event of the name": b"".join(EVENTS[:1]) + EVENTS[1][:60],
    "after the name": b"".join(EVENTS[:2]),
    "within the arguments' key": b"".join(EVENTS[:3]),
    "after the arguments' value": b"".join(EVENTS[:4]),
    "after the last bracket": b"".join(EVENTS),
    "after the last bracket, without the blank line": b"".join(EVENTS)[:-1],
    "within the finish reason": b"".join(EVENTS) + LAST[: LAST.index(b"tool_calls") + 5],
    "after the finish reason, within its event": b"".join(EVENTS) + LAST.rstrip()[:-1],
}
ENDS = {"ends": End.CLOSE, "is cut": End.HALF, "is reset": End.RESET}


def _first(case: Case) -> Case:
    """Return the case in which only the first try breaks off: the second one's call runs, once."""
    return replace(
        case,
        answers=(case.answers[0], CALL),
        ran=("a",),
        results=("ok",),
        requests=3,
        stop=(StopReason.COMPLETED,),
        fault=(),
        shown="ok",
        history="s u a1 t a u",
    )


CUTS: dict[str, Case] = {
    f"the stream {how} {place}": cut(
        broken(data, end),
        stop=CUT_OR_ERROR,
        fault=BROKEN,
    )
    for place, data in PLACES.items()
    for how, end in ENDS.items()
    if data or end is not End.CLOSE  # that is an empty answer
}
CUTS |= {f"{name}, once": _first(case) for name, case in CUTS.items()}
CUTS |= {
    "cut after the finish reason harms nothing": calling(broken(b"".join(EVENTS) + LAST, End.HALF)),
    "a clean end after the finish reason": calling(broken(b"".join(EVENTS) + LAST, End.CLOSE)),
    "a clean end after text": cut(broken(sse(said("par")), End.CLOSE), shown="parpar"),
    "a cut after text is tried again once, whatever the tries": cut(
        broken(sse(said("par")), End.HALF),
        shown="parpar",
        endpoint=replace(ENDPOINT, attempts=5),
    ),
    "a cut between two calls": cut(
        broken(sse(calls(one())) + sse(calls(one(do("b"), index=1, call_id="c2")))[:50], End.HALF)
    ),
    "a cut of the second reply": calling(
        CALL,
        broken(EVENTS[1], End.HALF),
        broken(EVENTS[1], End.HALF),
        requests=3,
        waits=(0.5,),
        stop=CUT_OR_ERROR,
        fault=BROKEN,
        shown="",
        history="s u a1 t u",
    ),
    "[DONE] cut in the middle": cut(broken(sse(calls(one())) + b"data: [DO", End.CLOSE)),
    "a document is cut": failing(
        *[
            until_close(
                Send(data=json.dumps({"choices": [{"message": {"tool_calls": [one()]}}]}).encode()[:-3]), End.CLOSE
            )
        ]
        * 2,
        requests=2,
        waits=(0.5,),
        stop=(StopReason.CUT,),
        fault=REPLY,
        document=(
            until_close(Send(data=b'{"choices": [{"message": {"tool_calls"'), End.CLOSE, kind="application/json"),
        )
        * 2,
    ),
    "a document shorter than its length": cut(
        *[
            Answer(
                steps=(
                    Send(data=head(200, "content-length: 900", kind="application/json") + b'{"choices": ['),
                    End.CLOSE,
                )
            )
        ],
        stop=CUT_OR_ERROR,
        fault=CONNECTION,
    ),
    "a gzip body is torn": cut(
        zipped(b"".join(EVENTS) + LAST * 50, sent=60),
        stop=CUT_OR_ERROR,
        fault=BROKEN,
        least=True,
    ),
    "gzip that is none": failing(whole(sse(STOP), "content-encoding: gzip"), requests=1, least=True, fault=BROKEN),
    "a bad size of a chunk": cut(chunked(Send(data=b"zz\r\n" + EVENTS[1] + b"\r\n")), stop=CUT_OR_ERROR, fault=BROKEN),
    "a chunk longer than its size": cut(
        chunked(Send(data=b"5\r\n" + EVENTS[1] + b"\r\n0\r\n\r\n")), stop=CUT_OR_ERROR, fault=BROKEN
    ),
    "longer than its length": calling(
        Answer(
            steps=(
                Send(
                    data=head(200, f"content-length: {len(sse(calls(one()), CALLED))}") + sse(calls(one()), CALLED, "{")
                ),
                End.CLOSE,
            )
        )
    ),
    "shorter than its length": cut(
        Answer(steps=(Send(data=head(200, "content-length: 9999") + EVENTS[1]), End.CLOSE)),
        stop=CUT_OR_ERROR,
        fault=BROKEN,
    ),
}

# --------------------------------------------------------------------------------------------- before there is a reply


def _early(*steps: Send | End, take: Take = Take.WHOLE) -> Case:
    detail = r"connection.*[^.]\. \(tried 2"
    return cut(Answer(steps=steps, take=take), stop=(StopReason.MODEL_ERROR,), fault=CONNECTION, detail=detail)


EARLY: dict[str, Case] = {
    "hangs up without a word": _early(End.CLOSE),
    "hangs up before the request": _early(End.CLOSE, take=Take.NOTHING),
    "cuts with the request unread": _early(End.CLOSE, take=Take.HEAD),
    "resets": _early(End.RESET),
    "resets before the request": _early(End.RESET, take=Take.NOTHING),
    "a head that is cut": _early(Send(data=b"HTTP/1.1 200 OK\r\ncontent-le"), End.CLOSE),
    "no HTTP": _early(Send(data=b"garbage\r\n\r\n"), End.CLOSE),
    "TLS where plain HTTP was spoken": _early(Send(data=GARBAGE_TLS), End.CLOSE),
    "a status line without a status": _early(Send(data=b"HTTP/1.1 \r\n\r\n"), End.CLOSE),
    "nobody there": cut(
        endpoint=replace(ENDPOINT, base_url="http://127.0.0.1:9/v1"),
        requests=0,
        fault=CONNECTION,
        stop=(StopReason.MODEL_ERROR,),
        detail="127.0.0.1:9",
    ),
}
# How many requests came is not known where none was read.
EARLY = {
    name: replace(case, requests=0 if "before the request" in name or name == "nobody there" else 2)
    for name, case in EARLY.items()
}

# ------------------------------------------------------------------------------------------- answers that are no reply

PAGE = b"<!DOCTYPE html><html><body>Welcome</body></html>"


def _no_reply(answer: Answer, detail: str, *, again: bool = False) -> Case:
    case = failing(*[answer] * (1 + again), fault=BROKEN, detail=detail, stop=CUT_OR_ERROR)
    case = replace(case, requests=1 + again, waits=(0.5,) * again)
    return replace(case, document=case.answers)


def _empty(answer: Answer) -> Case:
    """Return a case of an empty answer: it is asked for at once without a stream, and then once more."""
    return replace(_no_reply(answer, "empty", again=True), answers=(answer,) * 3, least=True)


def _closing(*steps: Send | Repeat | Wait) -> Answer:
    return until_close(*steps, End.CLOSE)


NO_REPLY: dict[str, Case] = {
    "a web page": _no_reply(whole(PAGE, kind="text/html"), "web page"),
    "a web page that calls itself a stream": _no_reply(whole(PAGE), "web page"),
    "an empty body": _empty(whole(b"")),
    "an empty body without a length": _empty(_closing()),
    "white space": _empty(whole(b"\r\n \n")),
    "an empty stream, whose reason comes without one (llama-cpp-python)": failing(
        whole(b""),
        failure(400, "Requested tokens (3000) exceed context window of 2048"),
        whole(b""),
        failure(400, "Requested tokens (3000) exceed context window of 2048"),
        requests=2,
        waits=(0.0,),
        fault=(ModelFault.CONTEXT,),
        detail="long",
        least=True,
        sees=lambda bodies: [body["stream"] for body in bodies[:3]] == [True, False, True],
    ),
    "204": _empty(Answer(steps=(Send(data=b"HTTP/1.1 204 No Content\r\n\r\n"),))),
    "plain words": _no_reply(whole(b"Service temporarily unavailable", kind="text/plain"), "not an event stream"),
    "a JSON list": _no_reply(whole(b"[]", kind="application/json"), "not a reply"),
    "a JSON word": _no_reply(whole(b"null", kind="application/json"), ""),
    "JSON of something else": _no_reply(whole(b'{"status": "up"}', kind="application/json"), "not a reply"),
    "JSON with no choices": _no_reply(whole(b'{"choices": []}', kind="application/json"), "not a reply"),
    "broken JSON": _no_reply(whole(b'{"choices" [', kind="application/json"), "JSON", again=False),
    "only [DONE]": _no_reply(whole(b"data: [DONE]\n\n"), "empty|held nothing", again=True),
    "binary": _no_reply(whole(bytes(range(1, 256))), ""),
    "an event that is no JSON": _no_reply(whole(sse("{oops", STOP)), "JSON"),
    "an event that is a list": _no_reply(whole(sse("[1]", STOP)), "not a JSON object"),
    "an event that is not UTF-8": _no_reply(
        whole(b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n' + sse(STOP)), "JSON"
    ),
    "JSON of a hundred thousand levels": _no_reply(whole(b"data: " + b"[" * 100_000 + b"\n\n"), "JSON"),
    "only comments, then the end": _no_reply(
        _closing(Send(data=b": hi\n\n" * 5)), "finish reason|empty|keep", again=True
    ),
    "events without choices, then [DONE]": _no_reply(whole(sse({"id": 1}, DONE)), "empty|held nothing", again=True),
}
for _again in ("plain words", "broken JSON"):  # either is safe
    NO_REPLY[_again] = replace(NO_REPLY[_again], least=True)

# ------------------------------------------------------------------------------------------------ errors in the stream


def _error(fields: object) -> bytes:
    return sse({"error": fields})


def _passing(*answers: Answer, **more: object) -> Case:
    """Return a case whose first answer is an error that passes: the second is `ok`."""
    return fine(*answers, FINE, **{"requests": 2, "waits": (0.5,), **more})


def _lasting(answer: Answer, fault: ModelFault, detail: str, **more: object) -> Case:
    return failing(answer, **{"document": (answer,), "fault": (fault,), "detail": detail, **more})


def _later(first: bytes, then: bytes) -> Answer:
    """Return a stream whose second part is a piece of its own, which is read after the first."""
    return chunked(Send(data=chunks(first, then)))


OVERLOADED = {"message": "Overloaded", "type": "overloaded_error", "code": 529}
IN_BAND: dict[str, Case] = {
    "overloaded, before any text": _passing(whole(_error(OVERLOADED)), document=(whole(_error(OVERLOADED)[6:]), FINE)),
    "rate limit, before any text": _passing(
        whole(_error({"message": "Rate limit reached", "code": "rate_limit_exceeded"})), waits=(8.0,)
    ),
    "rate limit with its wait": _passing(
        whole(_error({"message": "Please try again in 12.5s.", "code": "rate_limit_exceeded"})), waits=(12.5,)
    ),
    "429 as a code": _passing(whole(_error({"message": "slow down", "code": 429})), waits=(8.0,)),
    "500 as a text": _passing(whole(_error({"message": "oops", "code": "500"}))),
    "503 by `event: error`": _passing(whole(b"event: error\n" + sse({"message": "busy", "code": 503}))),
    "502 in a choice": _passing(whole(sse({"choices": [{"error": {"message": "upstream", "code": 502}}]}))),
    "overloaded, after text": _passing(_later(sse(said("par")), _error(OVERLOADED)), shown="parok"),
    "overloaded, after a call": _passing(whole(sse(calls(one())) + _error(OVERLOADED))),
    "overloaded, after text, for ever": failing(
        *[_later(sse(said("par")), _error(OVERLOADED))] * 2,
        requests=2,
        waits=(0.5,),
        shown="parpar",
        stop=CUT_OR_ERROR,
        fault=BROKEN,
        detail="Overloaded",
        endpoint=replace(ENDPOINT, attempts=5),
    ),
    "an error and then a finish reason": _passing(whole(sse(calls(one())) + _error(OVERLOADED) + sse(CALLED, DONE))),
    "finish reason `error`": cut(
        whole(sse(calls(one()), chunk(finish="error"))),
        stop=CUT_OR_ERROR,
        fault=BROKEN,
        document=(document({"tool_calls": [one()]}, "error"),) * 2,
    ),
    "finish reason `abort`": cut(whole(sse(calls(one()), chunk(finish="abort"))), stop=CUT_OR_ERROR, fault=BROKEN),
    "a bad request": _lasting(
        whole(json.dumps({"error": {"message": "bad tools", "code": 400}}).encode()), ModelFault.REQUEST, "bad tools"
    ),
    "a bad key": _lasting(
        whole(json.dumps({"error": {"message": f"no {KEY}", "code": "invalid_api_key"}}).encode()),
        ModelFault.AUTHENTICATION,
        "no",
    ),
    "out of money": _lasting(
        whole(json.dumps({"error": {"message": "no money", "code": "insufficient_quota"}}).encode()),
        ModelFault.QUOTA,
        "no money",
    ),
    "the context is too long": _lasting(
        whole(json.dumps({"error": {"message": "too long", "code": "context_length_exceeded"}}).encode()),
        ModelFault.CONTEXT,
        "long",
        least=True,
    ),
    **{
        f"an error of another form, after a call: {value}": _passing(whole(sse(calls(one()), value, DONE)))
        for value in (
            {"type": "error", "message": "boom", "code": 500},
            {"code": 503, "message": "busy"},
            {"detail": "internal error"},
            {"message": "Service temporarily unavailable"},
        )
    },
    "an error that is a text": failing(
        whole(_error("it broke")),
        fault=(*BROKEN, ModelFault.REQUEST),
        detail="it broke",
        stop=CUT_OR_ERROR,
        least=True,
    ),
    "an error by `object`": failing(
        whole(sse({"object": "error", "message": "it broke"})),
        fault=(*BROKEN, ModelFault.REQUEST),
        detail="it broke",
        stop=CUT_OR_ERROR,
        least=True,
    ),
}
for _name in ("an error that is a text", "an error by `object`"):  # what sort it is cannot be told
    IN_BAND[_name] = replace(IN_BAND[_name], answers=IN_BAND[_name].answers * 2)

# ---------------------------------------------------------------------------------------------- statuses, and waiting


def _busy(code: int, /, *headers: str, wait: float = 0.5, **fields: object) -> Case:
    answer = failure(code, "busy", *headers, **fields)
    return _passing(answer, document=(answer, FINE), waits=(wait,))


def _date(ahead: float) -> str:
    return "retry-after: " + formatdate(time.time() + ahead, usegmt=True)


STATUSES: dict[str, Case] = {
    **{f"{code}": _busy(code) for code in (408, 409, 500, 502, 503, 504, 520, 529)},
    "429": _busy(429, wait=8),
    "429 with its wait in words": _passing(failure(429, "Please try again in 1m30.5s."), waits=(90.5,)),
    "429 with its wait in a field": _passing(
        failure(429, "quota", details=[{"@type": "RetryInfo", "retryDelay": "12s"}]), waits=(12.0,)
    ),
    "429 with a wait beyond all tries, in words": _lasting(
        failure(429, "Please try again in 7m12s."), ModelFault.SERVER, r"wait 432 s; of `retry_seconds` \(300\)"
    ),
    "429 with the reset of its limit": _busy(
        429, "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 1m5s", wait=65
    ),
    "429 with the reset of a limit that is not reached": _busy(
        429, "x-ratelimit-remaining-tokens: 5", "x-ratelimit-reset-tokens: 1m5s", wait=8
    ),
    "429 with the exact wait beside the reset": _passing(
        failure(429, "Try again in 3s", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 1m5s"),
        waits=(3.0,),
    ),
    "429 until the tries are used up": failing(
        *[failure(429, "slow down")] * 5,
        requests=5,
        waits=(8.0, 16.0, 32.0, 64.0),
        endpoint=replace(ENDPOINT, attempts=5),
        fault=SERVER,
        detail="slow down.*5 times",
    ),
    "503 with a page": _passing(status(503, PAGE)),
    "503 with nothing": _passing(status(503)),
    "503 with a body that is cut": _passing(
        Answer(steps=(Send(data=head(503, "content-length: 99") + b"busy"), End.CLOSE))
    ),
    "Retry-After in seconds": _busy(429, "retry-after: 7", wait=7),
    "Retry-After in parts of a second": _busy(429, "retry-after: 0.25", wait=0.25),
    "Retry-After in milliseconds": _busy(429, "retry-after-ms: 250", wait=0.25),
    "milliseconds before seconds": _busy(429, "retry-after: 7", "retry-after-ms: 250", wait=0.25),
    "Retry-After zero": _busy(429, "retry-after: 0", wait=8),
    "Retry-After negative": _busy(429, "retry-after: -5", wait=8),
    "Retry-After that is no number": _busy(429, "retry-after: soon", wait=8),
    "Retry-After without bounds": _busy(429, "retry-after: inf", wait=8),
    "Retry-After in the past": _busy(429, _date(-3600), wait=8),
    "x-should-retry on an error of the server": _busy(500, "x-should-retry: true"),
    "Retry-After of an hour": _lasting(failure(429, "busy", "retry-after: 3600"), ModelFault.SERVER, "wait 3600 s"),
    # Written when the tests are collected, and read up to hours later.
    "Retry-After days ahead": _lasting(failure(503, "busy", _date(864_000)), ModelFault.SERVER, "wait 8\\d{5} s"),
    "x-should-retry says no": _lasting(failure(503, "busy", "x-should-retry: false"), ModelFault.SERVER, "busy"),
    "429 out of money": _lasting(failure(429, "no money", code="insufficient_quota"), ModelFault.QUOTA, "no money"),
    "402": _lasting(failure(402, "pay"), ModelFault.QUOTA, "pay"),
    "401": _lasting(failure(401, f"bad {KEY}"), ModelFault.AUTHENTICATION, "key.*bad \\[key\\]"),
    "403": _lasting(failure(403, "not you"), ModelFault.AUTHENTICATION, "not you"),
    "404": _lasting(failure(404, "no such model"), ModelFault.NOT_FOUND, "no such model.*base URL"),
    "404 with a page": _lasting(status(404, PAGE), ModelFault.NOT_FOUND, "base URL"),
    "400 context by its code": _lasting(
        failure(400, "No", code="context_length_exceeded"), ModelFault.CONTEXT, "long", least=True
    ),
    "400 context by its words": _lasting(
        failure(400, "This model's maximum context length is 8192 tokens."), ModelFault.CONTEXT, "long", least=True
    ),
    "400 content policy": _lasting(
        failure(400, "unsafe", code="content_policy_violation"), ModelFault.CONTENT, "unsafe"
    ),
    "400 content filter of Azure": _lasting(
        failure(400, "filtered", code="content_filter"), ModelFault.CONTENT, "filtered"
    ),
    "400": _lasting(failure(400, "bad tools"), ModelFault.REQUEST, "bad tools"),
    "405": _lasting(failure(405, "POST?"), ModelFault.REQUEST, "POST"),
    "413": _lasting(status(413), ModelFault.CONTEXT, "long", least=True),
    "422": _lasting(status(422, {"detail": [{"msg": "x"}]}), ModelFault.REQUEST, "422"),
    "501": _busy(501),
    "three failures and then a reply": fine(
        *[failure(503, "busy")] * 3,
        FINE,
        requests=4,
        waits=(0.5, 1.0, 2.0),
        endpoint=replace(ENDPOINT, attempts=5),
    ),
    "failures until the tries are used up": failing(
        *[failure(503, "busy")] * 3,
        requests=3,
        waits=(0.5, 1.0),
        endpoint=replace(ENDPOINT, attempts=3),
        fault=SERVER,
        detail="busy.*3",
    ),
    "a wait that is longer than all tries may take": failing(
        failure(503, "busy", "retry-after: 40"), fault=SERVER, endpoint=replace(ENDPOINT, attempts=9, retry_seconds=30)
    ),
    "one try": failing(failure(503, "busy"), requests=1, endpoint=replace(ENDPOINT, attempts=1), fault=SERVER),
}
for _name in ("400 context by its code", "400 context by its words", "413", "the context is too long"):
    _rows = STATUSES if _name in STATUSES else IN_BAND
    _row = _rows[_name]  # the loop may make the conversation shorter and ask once more
    _rows[_name] = replace(_row, answers=_row.answers * 2, document=_row.answers * 2)

# -------------------------------------------------------------------------------------------------- deadlines and bounds


def _within(**seconds: float) -> Deadlines:
    return Deadlines(**{"connect": 600, "first_event": 600, "idle": 600, "total": 36_000, **seconds})


def _late(answer: Answer, deadline: Deadlines, **more: object) -> Case:
    """Return a case of one try that must end by a deadline: by itself it would never."""
    return failing(
        answer,
        endpoint=replace(ENDPOINT, attempts=1, deadlines=deadline),
        **{"fault": TIMEOUT, "stop": CUT_OR_ERROR, **more},
    )


ENDLESS = Repeat(data=chunks(b": keep-alive\n\n", last=b""), pause=0.02)
PAR = chunks(sse(said("par")), last=b"")
DEADLINES: dict[str, Case] = {
    "nothing at all": _late(Answer(steps=(End.STALL,)), _within(first_event=0.15)),
    "a head and nothing more": _late(chunked(End.STALL), _within(first_event=0.15)),
    "a head that drips": _late(
        Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\nx-pad: "), Repeat(data=b"y", pause=0.02))),
        _within(first_event=0.15),
    ),
    "comments for ever": _late(chunked(ENDLESS), _within(first_event=0.15)),
    "an event that drips": _late(chunked(Repeat(data=chunks(b"x", last=b""), pause=0.02)), _within(first_event=0.15)),
    "text and then nothing": _late(chunked(Send(data=PAR), End.STALL), _within(idle=0.15), shown="par"),
    "text and then comments for ever": _late(chunked(Send(data=PAR), ENDLESS), _within(idle=0.15), shown="par"),
    "a call and then nothing": _late(
        chunked(Send(data=chunks(sse(calls(one())), last=b"")), End.STALL), _within(idle=0.15)
    ),
    "text for ever": _late(
        chunked(Repeat(data=chunks(sse(chunk({"reasoning_content": "x"})), last=b""), pause=0.02)), _within(total=0.5)
    ),
    # What comes in time is there at once, and the clock goes on while it is read: each piece takes two or three looks.
    "slow, but in time": fine(
        chunked(Send(data=PAR * 5 + chunks(sse(said("", "stop"))))),
        shown="par" * 5,
        endpoint=replace(ENDPOINT, deadlines=_within(idle=600)),
        tick=100,
    ),
    "slow, with a finish reason on every chunk": fine(
        chunked(Send(data=chunks(*[sse(said("par", "stop"))] * 8))), shown="par" * 8, tick=TAIL_SECONDS / 10
    ),
    "a call that goes on long after the finish reason, and stops": _late(
        chunked(
            Send(
                data=chunks(
                    sse(calls(fragment("", call_id="c1", name="work")), CALLED),
                    *[sse(calls(fragment(" ")))] * 8,
                    sse(calls(fragment('{"do":'))),
                    last=b"",
                )
            ),
            ENDLESS,
        ),
        _within(idle=20),
        tick=TAIL_SECONDS / 10,
    ),
    "nothing at first, then a reply": fine(
        Answer(steps=(End.STALL,)),
        requests=2,
        waits=(0.5,),
        endpoint=replace(ENDPOINT, deadlines=_within(connect=6000), retry_seconds=36_000),
        tick=599.8,  # from when the first request was sent, a moment is left
    ),
    "the run's own time is over": failing(
        chunked(ENDLESS),
        stop=(StopReason.LIMIT,),
        fault=(ModelFault.TIME,),
        limits=Limits(max_seconds=500),
        detail="seconds",
        tick=10,
    ),
    "a finish reason and no end": calling(
        chunked(Send(data=chunks(sse(calls(one()), CALLED), last=b"")), End.STALL),
        endpoint=replace(ENDPOINT, deadlines=_within(idle=0.15)),
    ),
    "[DONE] and no end": calling(chunked(Send(data=chunks(sse(calls(one()), CALLED, DONE), last=b"")), End.STALL)),
}


def _bounded(answer: Answer, detail: str, shown: str = "", **bound: int) -> Case:
    return failing(
        answer,
        endpoint=replace(ENDPOINT, bounds=ReplyBounds(**bound)),
        fault=REPLY,
        detail=detail,
        shown=shown,
    )


MANY = sse(*[chunk({"reasoning_content": "x"})] * 200)
BOUNDS: dict[str, Case] = {
    "more bytes than are taken": _bounded(whole(MANY + sse(STOP)), "bytes|KiB|MiB|long", bytes=5000),
    "more bytes than are taken, unpacked": _bounded(
        zipped(b":" * 1_000_000 + b"\n" + sse(STOP)), "bytes|KiB|MiB|long", bytes=50_000
    ),
    "one event that is too long": _bounded(whole(sse(said("x" * 5000), STOP)), "event_bytes", event_bytes=4000),
    "one line that is too long": _bounded(whole(b":" * 5000 + b"\n" + sse(STOP)), "event_bytes", event_bytes=4000),
    "one event in many lines": _bounded(whole(b"data: 123\n" * 1500 + sse(STOP)), "event_bytes", event_bytes=4000),
    "a document that is too long": _bounded(document({"content": "x" * 5000}), "event_bytes", event_bytes=4000),
    "an event as long as is taken": replace(
        fine(whole(sse(*[said("x" * 3000)] * 3, STOP)), shown="x" * 9000),
        endpoint=replace(ENDPOINT, bounds=ReplyBounds(event_bytes=4000)),
    ),
    "more events than are taken": _bounded(whole(MANY + sse(STOP)), "events", events=100),
    "more calls than are taken": _bounded(
        stream(*(calls(one(index=n, call_id=f"c{n}")) for n in range(6)), CALLED), "calls", calls=5
    ),
    "longer arguments than are taken": _bounded(
        stream(calls(one(do("x" * 900))), CALLED), "argument", argument_characters=500
    ),
    "a bound is noticed before the end": _bounded(
        chunked(Send(data=chunks(MANY, last=b"")), End.STALL), "events", events=100
    ),
    "as many as are taken": calling(
        stream(*(calls(one(do(str(n)), index=n, call_id=f"c{n}")) for n in range(5)), CALLED),
        ran=tuple("01234"),
        endpoint=replace(ENDPOINT, bounds=ReplyBounds(calls=5)),
    ),
}
