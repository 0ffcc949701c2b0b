"""Wire cases of what the loop makes of a reply, said in the words of either API: cut at the length limit, no answer, one id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fault_server import Answer, Repeat, Send, chunked, chunks
from wire_cases import Case, calling, do, failing, fine
from wire_contract import COUNTED, DONE, Speaker, stream

from harness.errors import ModelFault
from harness.limits import Limits
from harness.messages import StopReason, Usage
from harness.model import MAX_REPLY_CHARACTERS

HALF = '{"do": "a'


def made(s: Speaker, what: str = "a", *, reply_id: str = "", call_id: str = "c1", end: str = "") -> Answer:
    """Return a reply with one call."""
    return stream(s.start(reply_id), s.call(0, call_id, "work", do(what)), s.end(end), DONE)


def cut(s: Speaker, *arguments: str) -> Answer:
    """Return a reply that is cut at the length limit within the last of its calls."""
    written = (s.call(place, f"c{place}", "work", text) for place, text in enumerate(arguments))
    return stream(s.start(), *written, s.end("length"), DONE)


def empty(s: Speaker, *events: bytes, usage: Usage | None = None) -> Answer:
    """Return a reply without text and without a call."""
    return stream(s.start(), *events, s.end(usage=usage), DONE)


def unanswered(*answers: Answer, **more: Any) -> Case:
    """Return a case that ends without an answer; nothing of these replies enters the history."""
    return fine(
        *answers,
        **{
            "requests": len(answers),
            "stop": (StopReason.NO_ANSWER,),
            "shown": "",
            "history": "s u",
            "detail": "neither text nor a call",
            **more,
        },
    )


TWICE = COUNTED + COUNTED
LENGTH: dict[str, Any] = {"stop": (StopReason.LENGTH,), "shown": "", "detail": "length limit"}

PIECE = "x" * 65_536


def endless(s: Speaker) -> Case:
    """Return a case of a text without an end, of which no more than the greatest reply is taken."""
    return failing(
        chunked(Send(data=chunks(s.start(), last=b"")), Repeat(data=chunks(s.text(PIECE), last=b""), pause=0)),
        fault=(ModelFault.REPLY,),
        detail=f"{MAX_REPLY_CHARACTERS:,} characters",
        shown=PIECE * (MAX_REPLY_CHARACTERS // len(PIECE)),
    )


LOOP: dict[str, Callable[[Speaker], Case]] = {
    "a call cut at the length limit is answered, and the model goes on": lambda s: calling(
        cut(s, HALF),
        ran=(),
        results=("not_run",),
        history="s u a1 t a u",
        sees=lambda bodies: "Nothing of it ran" in str(bodies[1]) and "Send less" in str(bodies[1]),
    ),
    "whole calls beside the one that was cut do not run either": lambda s: calling(
        cut(s, do("a"), do("b"), HALF), ran=(), results=("not_run",) * 3, history="s u a3 t t t a u"
    ),
    "a reply cut at the length limit twice in a row": lambda s: calling(
        cut(s, HALF), cut(s, HALF), ran=(), results=("not_run",) * 2, requests=2, history="s u a1 t a1 t u", **LENGTH
    ),
    "a reply cut at the length limit twice, and not in a row": lambda s: calling(
        cut(s, HALF),
        made(s, call_id="c9"),
        cut(s, HALF),
        ran=("a",),
        results=("not_run", "ok", "not_run"),
        history="s u a1 t a1 t a1 t a u",
    ),
    "no answer, then one": lambda s: fine(empty(s), requests=2),
    "no answer twice": lambda s: unanswered(empty(s), empty(s)),
    "what no answer took is counted": lambda s: unanswered(
        *[empty(s, usage=COUNTED)] * 2, usage=TWICE, detail="second unusable reply in a row"
    ),
    "blanks are no answer": lambda s: unanswered(
        *[empty(s, s.text(" \n"))] * 2, shown=" \n" * 2, detail="neither text nor a call"
    ),
    "reasoning alone, then an answer": lambda s: fine(empty(s, s.reasoning("hm")), requests=2),
    "reasoning alone twice": lambda s: unanswered(*[empty(s, s.reasoning("hm"))] * 2, detail="reasoning alone"),
    "no answer twice, and not in a row": lambda s: calling(
        empty(s), made(s), empty(s), ran=("a",), requests=4, history="s u a1 t a u"
    ),
    "no answer after a call cut at the length limit": lambda s: unanswered(
        cut(s, HALF), empty(s), results=("not_run",), history="s u a1 t u"
    ),
    "a call cut at the length limit after no answer": lambda s: calling(
        empty(s), cut(s, HALF), ran=(), results=("not_run",), requests=2, history="s u a1 t u", **LENGTH
    ),
    "no answer and one request left": lambda s: unanswered(
        empty(s),
        limits=Limits(max_turns=1),
        stop=(StopReason.LIMIT,),
        detail="turns = 1",
        sees=lambda bodies: len(bodies) == 2,
    ),
    "a server with one id for all replies and one for all calls": lambda s: calling(
        *[made(s, reply_id="r1")] * 3, ran=("a",) * 3, history="s u a1 t a1 t a1 t a u"
    ),
    "text for ever": endless,
    "one id for two calls of a reply": lambda s: calling(
        stream(s.start("r1"), s.call(0, "c1", "work", do("a")), s.call(1, "c1", "work", do("b")), s.end(), DONE),
        ran=("a", "b"),
    ),
}
