"""Reads one reply out of an exchange, within the deadlines of its try; decides nothing about either."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.models.connections import Phase
from harness.models.deadline import Limit, TryClock
from harness.models.exchange import Exchange
from harness.models.failures import FailedTry
from harness.models.reply_body import ReplyBody


class OutOfTime(Exception):
    """A deadline passed."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit.value)
        self.limit = limit


def read_reply(exchange: Exchange, clock: TryClock, reply: ReplyBody, on_text: Callable[[str], None]) -> None:
    """Feed `reply` with what comes in, up to its end, and tell `on_text` the text that each piece adds.

    Raises OutOfTime at the deadline, and what sending, reading and `on_text` raise.
    """
    events = 0
    while True:
        ends, limit = clock.next()
        now = time.monotonic()
        if now >= ends:
            raise OutOfTime(limit)
        try:
            piece = exchange.take(ends - now)
        except TimeoutError:
            raise OutOfTime(limit) from None
        if piece is None:
            return
        if isinstance(piece, Phase):
            clock.reached(piece, time.monotonic())
            continue
        for text in reply.feed(piece):
            on_text(text)
        if reply.events > events:
            clock.event(time.monotonic())
            if reply.finished:
                clock.finished(time.monotonic())
        events = reply.events
        if reply.over:
            clock.over(time.monotonic())
            _drain(exchange, clock)
            return


def _drain(exchange: Exchange, clock: TryClock) -> None:
    """Wait a moment for the end of an answer of which nothing counts any more."""
    try:
        while (now := time.monotonic()) < clock.next()[0] and exchange.take(clock.next()[0] - now) is not None:
            pass
    except (FailedTry, TimeoutError):
        pass  # then its connection is not used again
