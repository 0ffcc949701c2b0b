"""Every wire case through the real loop: what runs, how often is asked, what the person sees, what the history is.

The rows are in wire_rows_replies.py (replies that are whole) and wire_rows_faults.py (what goes wrong); the judge of all of
them is `play` in wire_cases.py.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

import wire_rows_faults as faults
import wire_rows_replies as replies
from chat_events import CALLED, calls, said, sse
from fault_server import Answer, End, FaultServer, FullListener, Repeat, Send, chunked, chunks, head
from in_flight import all_over, exchanges, signalled
from rows import all_rows
from wire_cases import (
    ENDPOINT,
    FINE,
    Case,
    Given,
    Stage,
    failure,
    one,
    play,
)
from wire_contract import CHAT, MESSAGES, RESPONSES, Speaker
from wire_rows_loop import LOOP

from harness.messages import StopReason
from harness.models.endpoint import Deadlines
from harness.models.presets import Api
from harness.record import replace

TABLES = {
    "bytes": replies.BYTES,
    "finish": replies.FINISH,
    "written": replies.WRITTEN,
    "arguments": replies.ARGUMENTS,
    "peculiar": replies.PECULIAR,
    "cuts": faults.CUTS,
    "early": faults.EARLY,
    "no reply": faults.NO_REPLY,
    "in band": faults.IN_BAND,
    "statuses": faults.STATUSES,
    "deadlines": faults.DEADLINES,
    "bounds": faults.BOUNDS,
}
FAULTS = frozenset(("cuts", "early", "no reply", "in band", "statuses", "deadlines", "bounds"))


def rows_of(tables: Iterable[str]) -> dict[str, tuple[Case, bool]]:
    """Return the cases of these tables, each as a stream and, where that makes sense, as a whole document."""
    return {
        f"{table}: {name}{'' if streaming else ' (whole)'}": (case, streaming)
        for table in tables
        for name, case in TABLES[table].items()
        for streaming in (True, False)
        if streaming or case.document is not None
    }


@all_rows(("case", "streaming"), rows_of(sorted(set(TABLES) - FAULTS)))
def test_replies_that_are_whole(case: Case, streaming: bool, tmp_path: Path) -> None:
    play(case, str(tmp_path), streaming=streaming)


@all_rows(("case", "streaming"), rows_of(sorted(FAULTS)))
def test_wire_case_plays_as_described(case: Case, streaming: bool, tmp_path: Path) -> None:
    play(case, str(tmp_path), streaming=streaming)


# What is no reply is the same whatever API was spoken; what is one, tests/wire_contract.py holds for all.
ALL_APIS = {
    f"{table}: {name}": case
    for table in ("early", "no reply", "statuses", "deadlines", "bounds")
    for name, case in TABLES[table].items()
    if case.shown in ("", "ok") and not case.ran and (table != "bounds" or "bytes" in name)
}


@all_rows("api", [Api.RESPONSES, Api.MESSAGES])
@all_rows("case", ALL_APIS)
def test_a_fault_by_another_api(case: Case, api: Api, tmp_path: Path) -> None:
    play(case, str(tmp_path), api=api)


SPEAKERS = {Api.CHAT: CHAT, Api.RESPONSES: RESPONSES, Api.MESSAGES: MESSAGES}


@all_rows("api", list(SPEAKERS))
@all_rows("row", LOOP)
def test_loop_is_the_same_for_each_api(row: Callable[[Speaker], Case], api: Api, tmp_path: Path) -> None:
    play(row(SPEAKERS[api]), str(tmp_path), api=api)


def test_there_are_enough_cases() -> None:
    """As many as there were, so that no table can fall out of sight."""
    assert sum(len(rows) for rows in TABLES.values()) >= 340


# --- redirects -----------------------------------------------------------------------------------------------------


def _redirect(code: int, to: str) -> Answer:
    return Answer(steps=(Send(data=head(code, f"location: {to}", "content-length: 0", kind="")),))


@all_rows("code", [301, 302, 303, 307, 308])
def test_a_redirect_elsewhere_never_takes_the_key_along(code: int, tmp_path: Path) -> None:
    """Whether it is followed is the SDK's; the key stays with the server that it is for."""
    with FaultServer([], afterwards=FINE) as elsewhere:
        with FaultServer([], afterwards=_redirect(code, f"{elsewhere.url}/chat/completions")) as server:
            stage = Stage(str(tmp_path), replace(ENDPOINT, base_url=server.url, attempts=1))
            result = stage.agent.run("go", stage.session)
            stage.close(result)
        assert len(server.requests) == 1
    assert all("sk-wire" not in request.head for request in elsewhere.requests)
    assert stage.reached == []


@all_rows("code", [301, 302, 307, 308])
def test_a_redirect_to_itself_ends(code: int, tmp_path: Path) -> None:
    with FaultServer([], afterwards=_redirect(code, "/v1/chat/completions")) as server:
        stage = Stage(str(tmp_path), replace(ENDPOINT, base_url=server.url))
        result = stage.agent.run("go", stage.session)
        stage.close(result)
    assert (result.stop, stage.reached) == (StopReason.MODEL_ERROR, [])
    assert 1 <= len(server.requests) <= 50


# --- interrupts ----------------------------------------------------------------------------------------------------

PAR = chunks(sse(said("par")), last=b"")
INTERRUPTED: dict[str, tuple[Given, ...]] = {
    "before the head": (Answer(steps=(End.STALL,)),),
    "in a head that drips": (Answer(steps=(Send(data=b"HTTP/1.1 200 OK\r\nx: "), Repeat(data=b"y", pause=0.02))),),
    "before the first event": (chunked(End.STALL),),
    "in comments for ever": (chunked(Repeat(data=chunks(b": hi\n\n", last=b""), pause=0.005)),),
    "after text": (chunked(Send(data=PAR), End.STALL),),
    "in text for ever": (chunked(Repeat(data=PAR, pause=0.001)),),
    "after a call": (chunked(Send(data=chunks(sse(calls(one())), last=b"")), End.STALL),),
    "after the finish reason": (chunked(Send(data=chunks(sse(calls(one()), CALLED), last=b"")), End.STALL),),
    "in the wait before a retry": (failure(503, "busy", "retry-after: 59"),),
    "in a long body": (),
}


def long_body() -> Given:
    """Return one that is made only where it is sent: 30 MB."""
    return chunked(Send(data=chunks(sse({**said("x"), "padding": "x" * 30_000_000}), last=b"")), End.STALL)


def interrupted(stage: Stage, when: Callable[[], bool]) -> StopReason:
    """Run a prompt that has no end of its own; a real signal strikes a moment after `when` holds. Return the end.

    On a busy machine it may strike before what the row is about; then it passes.
    """
    struck: list[int] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        struck.append(number)
        stage.interrupt.request()

    before = signal.signal(signal.SIGALRM, on_signal)
    try:
        with signalled(signal.SIGALRM, when):
            result = stage.agent.run("go", stage.session)
    finally:
        signal.signal(signal.SIGALRM, before)
    stage.close(result)
    assert struck
    return result.stop


@all_rows("answers", INTERRUPTED)
def test_wire_interrupt_takes_effect_immediately(answers: tuple[Given, ...], tmp_path: Path) -> None:
    with FaultServer(answers or (long_body(),), afterwards=FINE) as server:
        stage = Stage(str(tmp_path), replace(ENDPOINT, base_url=server.url), sleep=time.sleep)
        stage.chat.warm_up()
        stop = interrupted(stage, lambda: bool(server.requests))
        assert (stop, stage.reached) == (StopReason.INTERRUPTED, [])
        assert len(server.requests) == 1
    assert all_over()


def test_an_interrupt_takes_effect_while_connecting(tmp_path: Path) -> None:
    with FullListener() as listener:
        stage = Stage(str(tmp_path), replace(ENDPOINT, base_url=listener.url))
        stage.chat.warm_up()
        stop = interrupted(stage, lambda: exchanges() > 0)
        assert stop is StopReason.INTERRUPTED
    assert all_over()  # the connect is refused when it is tried again: there is no listener any more


def test_unaccepted_connection_has_a_deadline(tmp_path: Path) -> None:
    with FullListener() as listener:
        endpoint = replace(ENDPOINT, base_url=listener.url, attempts=1, deadlines=Deadlines(connect=0.2))
        stage = Stage(str(tmp_path), endpoint)
        stage.chat.warm_up()
        result = stage.agent.run("go", stage.session)
        stage.close(result)
    assert result.stop is StopReason.MODEL_ERROR
    assert "0.2 s" in result.detail


def test_a_text_that_blocks_the_screen_does_not_lose_the_reply(tmp_path: Path) -> None:
    """A slow observer: the reply is the same, and the call of it runs once."""
    answer = chunked(Send(data=chunks(sse(*[said("x")] * 20, calls(one()), CALLED))))
    with FaultServer([answer], afterwards=FINE) as server:
        seen: list[str] = []

        def slowly(text: str) -> None:
            time.sleep(0.01)
            seen.append(text)

        stage = Stage(str(tmp_path), replace(ENDPOINT, base_url=server.url), on_text=slowly)
        result = stage.agent.run("go", stage.session)
        stage.close(result)
    assert (result.stop, len(stage.reached), "".join(seen)) == (StopReason.COMPLETED, 1, "x" * 20 + "ok")
