"""Reads one reply out of an exchange, within the deadlines of its try; decides nothing about either."""

from __future__ import annotations

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


def read_reply(
    exchange: Exchange,
    clock: TryClock,
    reply: ReplyBody,
    on_text: Callable[[str], None],
    monotonic: Callable[[], float],
) -> None:
    """Feed `reply` with what comes in, up to its end, and tell `on_text` the text that each piece adds.

    Raises OutOfTime at the deadline, and what sending, reading and `on_text` raise.
    """
    events = 0
    while True:
        ends, limit = clock.next()
        now = monotonic()
        if now >= ends:
            raise OutOfTime(limit)
        try:
            piece = exchange.take(ends - now)
        except TimeoutError:
            raise OutOfTime(limit) from None
        if piece is None:
            return
        if isinstance(piece, Phase):
            clock.reached(piece, monotonic())
            continue
        for text in reply.feed(piece):
            on_text(text)
        if reply.events > events:
            clock.event(monotonic())
            if reply.finished:
                clock.finished(monotonic())
        events = reply.events
        if reply.over:
            clock.over(monotonic())
            _drain(exchange, clock, monotonic)
            return


def _drain(exchange: Exchange, clock: TryClock, monotonic: Callable[[], float]) -> None:
    """Wait a moment for the end of an answer of which nothing counts any more."""
    try:
        while (now := monotonic()) < clock.next()[0] and exchange.take(clock.next()[0] - now) is not None:
            pass
    except (FailedTry, TimeoutError):
        pass  # then its connection is not used again
