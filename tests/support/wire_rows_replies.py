"""Wire cases of replies that are whole: in which bytes they may come, and all the ways in which servers write a call."""

from __future__ import annotations

import json
from typing import Any

from chat_events import CALLED, DONE, STOP, calls, chunk, fragment, said, sse
from fault_server import Answer, End, Send, Wait, chunked, chunks, head, until_close, whole, zipped
from wire_cases import (
    CALL,
    CALL_DOCUMENT,
    ENDPOINT,
    Case,
    calling,
    cut,
    do,
    document,
    failing,
    failure,
    fine,
    one,
    refused,
    stream,
)

from harness.errors import ModelFault
from harness.messages import StopReason, Usage
from harness.models.endpoint import Quirks
from harness.record import replace

TEXT = sse(chunk({"role": "assistant", "content": ""}), said("o"), said("k"), STOP, DONE)
WORK = sse(
    calls(fragment("", call_id="c1", name="work")), calls(fragment('{"do":')), calls(fragment('"a"}')), CALLED, DONE
)
PLAIN = '{"do":"a"}'

# ---------------------------------------------------------------------------------------------- bytes, however they come


def _dribble(data: bytes, size: int, pause: float = 0.0) -> Answer:
    return chunked(
        Send(data=chunks(*(data[i : i + size] for i in range(0, len(data), size))), slice_bytes=size, pause=pause)
    )


BYTES: dict[str, Case] = {
    "text in one piece": fine(whole(TEXT), document=(document({"content": "ok"}),)),
    "text in chunks of one byte": fine(_dribble(TEXT, 1)),
    "a call in chunks of three bytes, with pauses": calling(_dribble(WORK, 3, 0.0005)),
    "a call in one piece": calling(CALL, document=(CALL_DOCUMENT,)),
    "line ends are CRLF": calling(whole(WORK.replace(b"\n", b"\r\n"))),
    "line ends are CR": calling(whole(WORK.replace(b"\n", b"\r"))),
    "a byte-order mark first": calling(whole(b"\xef\xbb\xbf" + WORK)),
    "comments between all events": calling(whole(b": hi\n\n" + WORK.replace(b"\n\n", b"\n\n: PROCESSING\n\n"))),
    "retry, id and event lines": calling(
        whole(b"retry: 10\n\nid: 7\n\n" + WORK.replace(b"data", b"event: chunk\ndata"))
    ),
    "the end of the connection ends the body": calling(until_close(Send(data=WORK), End.CLOSE)),
    "HTTP/1.0": calling(
        until_close(Send(data=WORK), End.CLOSE, version="1.0"),
        document=(
            until_close(
                Send(
                    data=json.dumps(
                        {"choices": [{"message": {"tool_calls": [one()]}, "finish_reason": "stop"}]}
                    ).encode()
                ),
                End.CLOSE,
                version="1.0",
            ),
        ),
    ),
    "half closed after the reply": calling(until_close(Send(data=WORK), End.HALF)),
    "gzip": calling(zipped(WORK)),
    "content type JSON for a stream": calling(whole(WORK, kind="application/json")),
    "content type HTML for a stream": calling(whole(WORK, kind="text/html")),
    "no content type": calling(whole(WORK, kind="")),
    "content type of a stream for a document": calling(
        whole(json.dumps({"choices": [{"message": {"tool_calls": [one()]}, "finish_reason": "stop"}]}).encode())
    ),
    "a document where a stream was asked for": calling(CALL_DOCUMENT),
    "a stream where a document was asked for": fine(whole(TEXT), document=(whole(TEXT),)),
    "100 and 103 before the answer": calling(
        Answer(
            steps=(
                Send(data=b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"),
                *whole(WORK).steps,
            )
        )
    ),
    "a slow head": calling(
        Answer(
            steps=(Send(data=head(200, "connection: close"), slice_bytes=9, pause=0.002), Send(data=WORK), End.CLOSE)
        )
    ),
    "a pause between head and body": calling(chunked(Wait(seconds=0.1), Send(data=chunks(WORK)))),
    "many headers": calling(whole(WORK, *(f"x-{number}: {'y' * 400}" for number in range(60)))),
    "the server goes on talking after [DONE]": calling(
        whole(WORK + sse(calls(one(do("late"), call_id="c9", index=9)), "garbage", {"error": "late"}))
    ),
    "no last chunk after [DONE]": calling(chunked(Send(data=chunks(WORK, last=b"")), End.CLOSE)),
    "a reset after [DONE]": calling(chunked(Send(data=chunks(WORK, last=b"")), Wait(seconds=0.1), End.RESET)),
    "the server closes after every answer": calling(
        until_close(Send(data=WORK), End.CLOSE),
        until_close(Send(data=sse(calls(one(do("b"), call_id="c2")), CALLED)), End.CLOSE),
        ran=("a", "b"),
        history="s u a1 t a1 t a u",
    ),
    "a connection that was kept closes before the next request": calling(
        Answer(
            steps=(Send(data=head(200, f"content-length: {len(WORK)}", "connection: keep-alive") + WORK), End.CLOSE)
        ),
        least=True,  # a request that leaves before the end arrives is sent again
    ),
    "two hundred thousand comments": calling(whole(b":\n" * 200_000 + WORK)),
}

# ---------------------------------------------------------------------------------------------------- finish reasons


def _finished(reason: object, *more: object) -> Answer:
    return stream(calls(one()), chunk(finish=reason), *more)


LENGTH_CALL: dict[str, Any] = {"ran": (), "results": ("not_run",), "history": "s u a1 t a u"}
LENGTH: dict[str, Any] = {"stop": (StopReason.LENGTH,), "ran": (), "requests": 1, "shown": "", "detail": "length"}
FILTERED: dict[str, Any] = {
    **LENGTH,
    "results": ("not_run",),
    "stop": (StopReason.CONTENT_FILTER,),
    "history": "s u a1 t u",
    "detail": "content filter",
}
OLD_STYLE = {"function_call": {"name": "work", "arguments": PLAIN}}


def _unanswered(message: dict[str, Any], finish: str, *, says: str, shown: str = "") -> Case:
    """Return a case in which the reply is `message`, and again when it is asked for once more."""
    message = {name: None if value is ... else value for name, value in message.items()}
    return fine(
        *[stream(chunk({"role": "assistant", **message}), chunk(finish=finish), DONE)] * 2,
        document=(document(message, finish),) * 2,
        requests=2,
        stop=(StopReason.NO_ANSWER,),
        shown=shown * 2,
        detail=says,
        history="s u",
    )


FINISH: dict[str, Case] = {
    "calls with finish `stop`": calling(_finished("stop"), document=(document({"tool_calls": [one()]}, "stop"),)),
    "calls with no finish reason but [DONE]": calling(stream(calls(one()), DONE)),
    "calls with an empty finish reason, then [DONE]": calling(_finished("", DONE)),
    "calls with a finish reason on every chunk": calling(
        stream(
            calls(fragment('{"do":', call_id="c1", name="work"), finish="tool_calls"),
            calls(fragment('"a"}'), finish="tool_calls"),
        )
    ),
    "calls with an odd finish reason": calling(
        _finished("end_turn"), document=(document({"tool_calls": [one()]}, "end_turn"),)
    ),
    "calls with finish STOP in capitals": calling(_finished("STOP")),
    "calls with finish `function_call`": calling(_finished("function_call")),
    "finish `tool_calls` without calls": fine(
        stream(said("ok"), CALLED), document=(document({"content": "ok"}, "tool_calls"),)
    ),
    "finish `tool_calls` with neither calls nor text": _unanswered(
        {}, "tool_calls", says="finish reason speaks of calls"
    ),
    "an old-style function_call": _unanswered(OLD_STYLE, "function_call", says="old form `function_call`"),
    "an old-style function_call that ends with `stop`": _unanswered(OLD_STYLE, "stop", says="old form `function_call`"),
    "an old-style function_call beside text": _unanswered(
        {"content": "I look.", **OLD_STYLE}, "function_call", shown="I look.", says="old form `function_call`"
    ),
    "finish `function_call` with nothing": _unanswered({}, "function_call", says="finish reason speaks of calls"),
    "empty content": _unanswered({"content": ""}, "stop", says="and nothing else"),
    "content null": _unanswered({"content": ...}, "stop", says="and nothing else"),
    "an empty list of calls": _unanswered({"content": "", "tool_calls": []}, "tool_calls", says="speaks of calls"),
    "reasoning in the text": _unanswered(
        {"content": "<think>plan"}, "stop", shown="<think>plan", says="reasoning alone"
    ),
    "reasoning in a field of another name": _unanswered({"reasoning": "hm"}, "stop", says="reasoning alone"),
    "thinking in a list of parts": _unanswered(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        "stop",
        says="reasoning alone",
    ),
    "finish length, then stop": calling(stream(calls(one()), chunk(finish="length"), STOP, DONE), **LENGTH_CALL),
    "finish content_filter, then tool_calls": calling(
        stream(calls(one()), chunk(finish="content_filter"), CALLED, DONE),
        **FILTERED,
    ),
    "finish error, then stop": cut(stream(calls(one()), chunk(finish="error"), STOP, DONE), fault=(ModelFault.SERVER,)),
    **{
        f"finish {word} with a call": cut(
            _finished(word, DONE),
            document=(document({"tool_calls": [one()]}, word),) * 2,
            fault=(ModelFault.SERVER, ModelFault.REPLY),
            detail=word,
        )
        for word in (
            "insufficient_system_resource",
            "network_error",
            "malformed_function_call",
            "pause_turn",
            "timeout",
            "other",
            "cancel",
            "failed",
            "incomplete",
            "interrupted",
            "unheard_of",
        )
    },
    **{
        f"finish {word} with a call": calling(_finished(word), **LENGTH_CALL)
        for word in ("max_output_tokens", "model_context_window_exceeded")
    },
    **{
        f"finish {word} with a call": calling(_finished(word), **FILTERED)
        for word in ("sensitive", "recitation", "refusal")
    },
    **{f"finish {word} with a call": calling(_finished(word)) for word in ("eos", "tool_use", "end", "TOOL_CALL")},
    "text with a finish reason that nobody knows": fine(stream(said("ok"), chunk(finish="unheard_of"))),
    "a call goes on after the finish reason": cut(
        stream(calls(fragment('{"do":', call_id="c1", name="work")), CALLED, calls(fragment('"a"}')), DONE)
    ),
    "another call after the finish reason, cut": cut(
        until_close(
            Send(data=sse(calls(one()), CALLED) + sse(calls(one(do("b"), index=1, call_id="c2")))[:-2]), End.CLOSE
        )
    ),
    "another call within the event after the finish reason": cut(
        until_close(
            Send(data=sse(calls(one()), CALLED) + sse(calls(one(do("b"), index=1, call_id="c2")))[:-20]), End.CLOSE
        )
    ),
    "the finish reason comes again after the last call": calling(
        stream(calls(one(), finish="tool_calls"), calls(one(do("b"), index=1, call_id="c2")), CALLED), ran=("a", "b")
    ),
    "a document with a call and no finish reason": cut(
        document({"tool_calls": [one()]}, None), document=(document({"tool_calls": [one()]}, None),) * 2
    ),
    "one chunk in place of a stream": failing(
        whole(json.dumps(calls(one())).encode(), kind="application/json"),
        document=(whole(json.dumps(calls(one())).encode(), kind="application/json"),),
        fault=(ModelFault.REPLY,),
    ),
    "a list of chunks in place of a stream": failing(
        whole(json.dumps([calls(one()), chunk(finish="length")]).encode(), kind="application/json"),
        fault=(ModelFault.REPLY,),
    ),
    "another choice finishes the first one's call": cut(
        stream(
            calls(fragment('{"do":', call_id="c1", name="work")),
            {"choices": [{"index": 1, "delta": {"tool_calls": [fragment('"a"}')]}, "finish_reason": "stop"}]},
            DONE,
        )
    ),
    "the first choice is too long, another is whole": calling(
        stream(
            calls(one()),
            chunk(finish="length"),
            {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]},
        ),
        **LENGTH_CALL,
    ),
    "a second message begins in the same stream": cut(
        stream({**calls(one()), "id": "m1"}, {**calls(one(do("b"), call_id="c2")), "id": "m2"}, {**CALLED, "id": "m2"})
    ),
    "every chunk has an id of its own": calling(
        stream(
            *(
                {**event, "id": f"m{number}"}
                for number, event in enumerate((said("ok "), calls(one()), calls(one(do("b"), call_id="c2")), CALLED))
            )
        ),
        ran=("a", "b"),
        shown="ok ok",
    ),
    "finish length with a whole call": calling(
        _finished("length"), document=(document({"tool_calls": [one()]}, "length"),), **LENGTH_CALL
    ),
    "finish length with a cut call": calling(
        stream(calls(one('{"do": "a')), chunk(finish="length"), DONE), **LENGTH_CALL
    ),
    "finish max_tokens with a call": calling(_finished("MAX_TOKENS"), **LENGTH_CALL),
    "finish model_length with a call": calling(_finished("model_length"), **LENGTH_CALL),
    "finish length with two calls": calling(
        stream(calls(one()), calls(one(do("b"), call_id="c2", index=1)), chunk(finish="length")),
        **{**LENGTH_CALL, "results": ("not_run", "not_run"), "history": "s u a2 t t a u"},
    ),
    "finish length with text": calling(
        stream(said("par"), chunk(finish="length")),
        document=(document({"content": "par"}, "length"),),
        **{**LENGTH, "shown": "par", "history": "s u a u"},
    ),
    "finish length with nothing": calling(stream(chunk(finish="length")), **{**LENGTH, "history": "s u"}),
    "finish content_filter with a call": calling(
        _finished("content_filter"),
        document=(document({"tool_calls": [one()]}, "content_filter"),),
        **FILTERED,
    ),
    "finish content_filter with text": calling(
        stream(said("par"), chunk(finish="content_filter")),
        **{**FILTERED, "results": (), "shown": "par", "history": "s u a u"},
    ),
    "finish SAFETY of another API": calling(_finished("SAFETY"), **FILTERED),
}

# ------------------------------------------------------------------------------------------------ how a call is written


def _calls(*deltas: object) -> Answer:
    return stream(*deltas, CALLED, DONE)


def _ids(count: int) -> object:
    """Return what says that the calls of the last-but-one message are `count` with different ids."""

    def sees(bodies: object) -> bool:
        made = [call["id"] for message in bodies[-1]["messages"] for call in message.get("tool_calls") or ()]  # type: ignore[index]
        return len(set(made)) == count

    return sees


B = do("b")
TWO = {"ran": ("a", "b")}
WRITTEN: dict[str, Case] = {
    "index missing, one call": calling(_calls(calls(one(index=None))), document=(CALL_DOCUMENT,)),
    "index missing, in pieces": calling(
        _calls(calls(fragment('{"do":', index=None, call_id="c1", name="work")), calls(fragment('"a"}', index=None)))
    ),
    "index missing, two whole calls": calling(
        _calls(calls(one(index=None)), calls(one(B, index=None, call_id="c2"))),
        document=(document({"tool_calls": [one(index=None), one(B, index=None, call_id="c2")]}, "tool_calls"),),
        **TWO,
    ),
    "index missing, two whole calls in one delta": calling(
        _calls(calls(one(index=None), one(B, index=None, call_id="c2"))), **TWO
    ),
    "index null": calling(_calls(calls(one(index=...)))),
    "every index 0, ids differ": calling(_calls(calls(one()), calls(one(B, call_id="c2"))), **TWO),
    "every index 0, no ids": calling(
        _calls(calls(one(call_id=None)), calls(one(B, call_id=None))), **TWO, sees=_ids(2)
    ),
    "every index 0, in pieces": calling(
        _calls(
            calls(fragment('{"do":', call_id="c1", name="work")),
            calls(fragment('"a"}')),
            calls(fragment('{"do":', call_id="c2", name="work")),
            calls(fragment('"b"}')),
        ),
        **TWO,
    ),
    "a gap in the indexes": calling(_calls(calls(one()), calls(one(B, index=7, call_id="c2"))), **TWO),
    "a huge index": calling(_calls(calls(one(index=10**30)))),
    "a negative index": calling(_calls(calls(one(index=-1)))),
    "the index as text": calling(
        _calls(calls(fragment('{"do":', index="0", call_id="c1", name="work")), calls(fragment('"a"}', index="0")))
    ),
    "the same index twice in the first delta": calling(
        _calls(calls(fragment("", call_id="c1", name="work"), fragment(PLAIN)))
    ),
    "indexes from 1": calling(_calls(calls(one(index=1)), calls(one(B, index=2, call_id="c2"))), **TWO),
    "two calls in turns": calling(
        _calls(
            calls(
                fragment('{"do":', call_id="c1", name="work"), fragment('{"do":', index=1, call_id="c2", name="work")
            ),
            calls(fragment('"b"}', index=1)),
            calls(fragment('"a"}')),
        ),
        **TWO,
    ),
    "id null": calling(
        _calls(calls(one(call_id=...))), document=(document({"tool_calls": [one(call_id=...)]}, "stop"),), sees=_ids(1)
    ),
    "id empty": calling(
        _calls(calls(one(call_id=""))), document=(document({"tool_calls": [one(call_id="")]}, "stop"),), sees=_ids(1)
    ),
    "id absent": calling(
        _calls(calls(one(call_id=None))), document=(document({"tool_calls": [one(call_id=None)]}, "stop"),)
    ),
    "id a number": calling(_calls(calls(one(call_id=7))), sees=_ids(1)),
    "id very long": calling(_calls(calls(one(call_id="x" * 300))), sees=_ids(1)),
    "id with characters that no id has": calling(_calls(calls(one(call_id="c 1/\u00e4"))), sees=_ids(1)),
    "two calls of one id": calling(
        _calls(calls(one()), calls(one(B, index=1))),
        document=(document({"tool_calls": [one(), one(B)]}, "stop"),),
        **TWO,
        sees=_ids(2),
    ),
    "a whole call that comes twice is one call": calling(_calls(calls(one()), calls(one()))),
    "the id of an earlier reply": calling(
        CALL,
        _calls(calls(one(B))),
        document=(CALL_DOCUMENT, document({"tool_calls": [one(B)]}, "stop")),
        **TWO,
        history="s u a1 t a1 t a u",
        sees=_ids(2),
    ),
    "id and name resent with every piece": calling(
        _calls(*(calls(fragment(piece, call_id="c1", name="work")) for piece in ('{"do"', ':"a', '"}')))
    ),
    "id and name null later on": calling(
        _calls(calls(fragment('{"do":', call_id="c1", name="work")), calls(fragment('"a"}', call_id=..., name=...)))
    ),
    "another id with every piece": calling(
        _calls(calls(fragment('{"do":', call_id="c1", name="work")), calls(fragment('"a"}', call_id="c9")))
    ),
    "a late id": calling(_calls(calls(fragment(name="work")), calls(fragment(PLAIN, call_id="c1")))),
    "the name in pieces": calling(
        _calls(calls(fragment(call_id="c1", name="wo")), calls(fragment(name="rk")), calls(fragment(PLAIN)))
    ),
    "an empty name first": calling(
        _calls(calls(fragment("", call_id="c1", name="")), calls(fragment(PLAIN, name="work")))
    ),
    "no name at all": refused(
        _calls(calls(one(name=None))), document=(document({"tool_calls": [one(name=None)]}, "stop"),)
    ),
    "an unknown name": refused(
        _calls(calls(one(name="rm_rf"))), document=(document({"tool_calls": [one(name="rm_rf")]}, "stop"),)
    ),
    "a name in other letters": refused(_calls(calls(one(name="Work")))),
    "a name with a prefix": refused(_calls(calls(one(name="functions.work")))),
    "a name with a blank": refused(_calls(calls(one(name="work ")))),
    "a name in look-alike letters": refused(_calls(calls(one(name="w\u043erk")))),
    "a name of 200 characters": refused(_calls(calls(one(name="x" * 200)))),
    "a name of 500 characters": cut(
        _calls(calls(one(name="x" * 500))), document=(document({"tool_calls": [one(name="x" * 500)]}),) * 2
    ),
    "an id of a million characters": cut(_calls(calls(one(call_id="x" * 1_000_000)))),
    "an id with a signature in it": calling(_calls(calls(one(call_id="call_1__thought__" + "s" * 5000))), sees=_ids(1)),
    "one call of two is unknown": calling(
        _calls(calls(one(name="nope")), calls(one(B, index=1, call_id="c2"))),
        ran=("b",),
        results=("invalid", "ok"),
        history="s u a2 t t a u",
    ),
    "a call that nobody may approve": calling(
        _calls(calls(one(name="ask"))),
        ran=(),
        results=("denied",),
        history="s u a1 t a u",
        document=(document({"tool_calls": [one(name="ask")]}, "stop"),),
    ),
    "text and a call": calling(
        stream(said("let me "), calls(one()), CALLED),
        shown="let me ok",
        document=(document({"content": "let me ", "tool_calls": [one()]}),),
    ),
    "reasoning and a call": calling(stream(chunk({"reasoning_content": "hm"}), calls(one()), CALLED)),
    "empty and null choices around a call": calling(
        stream(
            {"choices": []},
            {"choices": None},
            {},
            {"choices": [None]},
            calls(one()),
            {"choices": [{"delta": None}]},
            CALLED,
        )
    ),
    "tool_calls null beside text": fine(
        stream(chunk({"content": "ok", "tool_calls": None}), STOP),
        document=(document({"content": "ok", "tool_calls": None}),),
    ),
    "a whole message in one event": calling(
        stream({"choices": [{"message": {"tool_calls": [one()]}, "finish_reason": "stop"}]})
    ),
    "a whole message after its deltas, which differs": cut(
        stream(calls(one()), {"choices": [{"index": 0, "message": {"tool_calls": [one(B)]}, "finish_reason": "stop"}]})
    ),
    "one call at two indexes is one call": calling(_calls(calls(one()), calls(one(index=1)))),
    "two equal calls without ids are two": calling(
        _calls(calls(one(call_id=None)), calls(one(call_id=None))), ran=("a", "a")
    ),
    "a whole message after its deltas": calling(
        stream(calls(one()), {"choices": [{"message": {"tool_calls": [one()]}, "finish_reason": "stop"}]})
    ),
    "a second choice is not ours": calling(
        stream(
            {
                "choices": [
                    {"index": 0, "delta": {"tool_calls": [one()]}},
                    {"index": 1, "delta": {"tool_calls": [one(B)]}},
                ]
            },
            CALLED,
        )
    ),
    "forty calls": calling(
        _calls(*(calls(one(do(str(n)), index=n, call_id=f"c{n}")) for n in range(40))),
        ran=tuple(map(str, range(40))),
    ),
}

# ---------------------------------------------------------------------------------------------------- arguments


def _given(arguments: object) -> tuple[Answer, Answer]:
    return _calls(calls(one(arguments))), document({"tool_calls": [one(arguments)]}, "tool_calls")


def _taken(arguments: object, *ran: str, **more: object) -> Case:
    streamed, documented = _given(arguments)
    return calling(streamed, document=(documented,), ran=ran, **more)


def _invalid(arguments: object, **more: object) -> Case:
    streamed, documented = _given(arguments)
    return refused(streamed, document=(documented,), **more)


def _raw(arguments: str) -> Answer:
    """Return a call whose arguments field holds this very text."""
    call = '{"index":0,"id":"c1","function":{"name":"work","arguments":' + arguments + "}}"
    return stream('{"choices":[{"index":0,"delta":{"tool_calls":[' + call + ']},"finish_reason":"tool_calls"}]}', DONE)


DEEP = '{"do": "a", "more": ' + "[" * 100_000 + "]" * 100_000 + "}"
ARGUMENTS: dict[str, Case] = {
    "an object in place of text": _taken({"do": "a"}, "a"),
    "text beyond ASCII": _taken('{"do": "\u00e4\U0001f600"}', "\u00e4\U0001f600"),
    "white space around": _taken(' \n{"do": "a"}\n ', "a"),
    "a number written at length": _taken('{"do": "a", "n": 1.50}', "a"),
    "a character cut into two pieces": calling(
        _calls(calls(fragment('{"do": "\ud83d', call_id="c1", name="work")), calls(fragment('\ude00"}'))),
        ran=("\U0001f600",),
    ),
    "a megabyte": _taken(do("x" * 1_000_000), "x" * 1_000_000),
    "empty": _invalid(""),
    "absent": refused(_calls(calls(fragment(call_id="c1", name="work")))),
    "null": refused(_calls(calls(fragment(..., call_id="c1", name="work")))),
    "an object with a key twice": refused(_raw('{"do": "a", "do": "b"}')),
    "an object with a key twice that says the same": refused(_raw('{"do": "a", "do": "a"}')),
    "an object with NaN": refused(_raw('{"do": "a", "n": NaN}')),
    "a list in place of text": _invalid([]),
    "a number in place of text": _invalid(0),
    "a truth value in place of text": _invalid(False),
    "arguments twice in one fragment": failing(
        _raw(json.dumps(PLAIN) + ',"arguments":' + json.dumps(B)),
        fault=(ModelFault.REPLY,),
        detail="two different values",
    ),
    "the text null": _invalid("null"),
    "an empty object": _invalid("{}"),
    "encoded twice": _invalid(json.dumps(PLAIN)),
    "a list": _invalid('[{"do": "a"}]'),
    "cut, though the finish reason says otherwise": _invalid('{"do": "a'),
    "cut after the value": _invalid('{"do": "a"'),
    "two objects": _invalid(PLAIN + PLAIN),
    "rubbish behind": _invalid(PLAIN + "}"),
    "a comment behind": _invalid(PLAIN + " // run it"),
    "a key twice": _invalid('{"do": "a", "do": "b"}'),
    "a key twice, deeper": _invalid('{"do": "a", "more": [{"x": 1, "x": 2}]}'),
    "a key twice in other spelling": _invalid('{"do": "a", "d\\u006f": "b"}'),
    "NaN": _invalid('{"do": "a", "n": NaN}'),
    "Infinity": _invalid('{"do": "a", "n": -Infinity}'),
    "a number without bounds": _invalid('{"do": "a", "n": 1e999}'),
    "an integer of 5000 digits": _invalid('{"do": "a", "n": ' + "9" * 5000 + "}"),
    "an escaped lone surrogate": _invalid('{"do": "\\ud83d"}'),
    "a bare lone surrogate": _invalid('{"do": "\ud83d"}'),
    "NUL": _invalid('{"do": "a\\u0000b"}'),
    "a line break inside a text": _invalid('{"do": "a\nb"}'),
    "single quotes": _invalid("{'do': 'a'}"),
    "an unknown field": _invalid('{"do": "a", "force": true}'),
    "a field that is missing": _invalid('{"n": 1}'),
    "a wrong type": _invalid('{"do": 1}'),
    "a truth value for a number": _invalid('{"do": "a", "n": true}'),
    "a hundred thousand levels": _invalid(DEEP),
    "an object in a text, a text in an object": _invalid('{"do": {"do": "a"}}'),
}

# ---------------------------------------------------------------------------- what servers want, and other peculiarities

USAGE = {"prompt_tokens": 7, "completion_tokens": 3}


def _marked(text: str) -> Case:
    return failing(
        stream(said(text), STOP),
        document=(document({"content": text}),),
        fault=(ModelFault.REPLY,),
        shown=text,
        least=True,
    )


def _no_stream_options(bodies: object) -> bool:
    return "stream_options" in bodies[0] and all("stream_options" not in body for body in bodies[1:])  # type: ignore[index]


def _no_stream(bodies: object) -> bool:
    return bodies[0]["stream"] is True and all(not body.get("stream") for body in bodies[1:])  # type: ignore[index]


def _echoed(field: str, value: object) -> object:
    def sees(bodies: object) -> bool:
        return any(message.get(field) == value for message in bodies[1]["messages"])  # type: ignore[index]

    return sees


NINE = replace(ENDPOINT, quirks=Quirks(nine_character_ids=True))
PECULIAR: dict[str, Case] = {
    "usage in a chunk of its own": fine(
        stream(said("ok"), STOP, {"choices": [], "usage": USAGE}, DONE),
        usage=Usage(input_tokens=7, output_tokens=3),
        document=(document({"content": "ok"}, usage=USAGE),),
    ),
    "usage on every chunk": fine(
        stream(said("ok", usage={**USAGE, "completion_tokens": 1}), chunk(finish="stop", usage=USAGE)),
        usage=Usage(input_tokens=7, output_tokens=3),
    ),
    "usage where Groq puts it": fine(
        stream(said("ok"), chunk(finish="stop", x_groq={"usage": USAGE})), usage=Usage(input_tokens=7, output_tokens=3)
    ),
    "usage with cached tokens": fine(
        stream(said("ok"), chunk(finish="stop", usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 5}})),
        usage=Usage(input_tokens=7, output_tokens=3, cached_tokens=5),
    ),
    "no usage": fine(usage=Usage(unreported=1)),
    "usage of wrong types": fine(
        stream(said("ok"), chunk(finish="stop", usage={"prompt_tokens": [7], "completion_tokens": 1})),
        usage=Usage(unreported=1),
    ),
    "usage beyond all bounds": fine(
        stream(said("ok"), chunk(finish="stop", usage={"prompt_tokens": 10**400, "completion_tokens": 1})),
        usage=Usage(unreported=1),
    ),
    "usage that leaves out the thoughts": fine(
        stream(said("ok"), chunk(finish="stop", usage={**USAGE, "total_tokens": 5000})),
        usage=Usage(input_tokens=7, output_tokens=4993),
    ),
    "reasoning goes back within the turn": calling(
        stream(chunk({"reasoning_content": "h"}), chunk({"reasoning_content": "m"}), calls(one()), CALLED),
        document=(document({"reasoning_content": "hm", "tool_calls": [one()]}),),
        sees=_echoed("reasoning_content", "hm"),
    ),
    "ids of nine characters": calling(
        CALL,
        document=(CALL_DOCUMENT,),
        endpoint=NINE,
        sees=lambda bodies: all(
            len(call["id"]) == 9 and call["id"].isalnum()
            for message in bodies[1]["messages"]
            for call in message.get("tool_calls") or ()
        ),
    ),
    "a server that knows no stream_options": calling(
        failure(400, "Unrecognized request argument supplied: stream_options", param="stream_options"),
        CALL,
        requests=3,
        waits=(0.0,),
        sees=_no_stream_options,
    ),
    "a server that takes no stream with tools": calling(
        failure(400, "Cannot use tools with stream"),
        CALL_DOCUMENT,
        requests=3,
        waits=(0.0,),
        sees=_no_stream,
    ),
    "a call that the server could not parse": calling(
        failure(400, "Failed to call a function.", code="tool_use_failed", failed_generation="<function=work>"),
        CALL,
        requests=3,
        waits=(0.5,),
        document=(
            failure(400, "Failed to call a function.", code="tool_use_failed", failed_generation="x"),
            CALL_DOCUMENT,
        ),
    ),
    "a call as text: [TOOL_CALLS]": _marked('[TOOL_CALLS][{"name": "work", "arguments": {"do": "a"}}]'),
    "a call as text: <tool_call>": _marked('<tool_call>\n{"name": "work", "arguments": {"do": "a"}}\n</tool_call>'),
    "a call as text: <|python_tag|>": _marked('<|python_tag|>{"name": "work", "parameters": {"do": "a"}}'),
    "a call as text: <function=": _marked('<function=work>{"do": "a"}</function>'),
    "a call as text: JSON": _marked('{"name": "work", "arguments": {"do": "a"}}'),
    "a call as text: a code block": _marked('```json\n{"name": "work", "arguments": {"do": "a"}}\n```'),
    "a call as text: gpt-oss": _marked(
        '<|channel|>commentary to=functions.work <|constrain|>json<|message|>{"do": "a"}<|call|>'
    ),
    "JSON in an answer": fine(stream(said('Send {"name": "work"}.'), STOP), shown='Send {"name": "work"}.'),
    "prose about such a mark": fine(
        stream(said("Use <tool_call> to call a tool."), STOP), shown="Use <tool_call> to call a tool."
    ),
    "a reply with nothing in it": fine(
        stream(chunk({"role": "assistant"}), STOP, DONE), document=(document({"content": ""}),), requests=2
    ),
    "a refusal is text": fine(
        stream(chunk({"refusal": "No."}), STOP), shown="No.", document=(document({"refusal": "No."}),)
    ),
    "content in parts": fine(stream(chunk({"content": [{"type": "text", "text": "ok"}]}), STOP)),
    "lone surrogates in text": fine(stream(said("o\udc80k"), STOP), shown="o\ufffdk"),
}
