"""The body of one HTTP answer, unpacked in bounded steps, and whether more came behind it; knows no SDK, opens nothing.

The HTTP client's own unpacking is passed by: it takes several encodings one upon the other, and some of its versions
unpack a piece in one step, however large it becomes.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from typing import Protocol

ACCEPTED_ENCODINGS = "gzip"
"""What is asked for (`Accept-Encoding`); an answer in anything else is not read."""
STEP_BYTES = 256 * 1024
"""How much is unpacked in one step."""

_GZIP = 16 + zlib.MAX_WBITS
# From the body's stream inwards (httpx, httpcore and their second versions) to the connection that has parsed it: none of
# them tells the bytes that are left over.
_INWARDS = ("_stream", "_httpcore_stream", "_connection", "_h11_state")


class DecodingError(Exception):
    """A body that is not in the encoding that its head names."""


class _Headers(Protocol):
    """What is used of the headers of httpx and httpx2."""

    def multi_items(self) -> list[tuple[str, str]]: ...


class _RawAnswer(Protocol):
    """What is used of a response of httpx and httpx2, whose body is not yet read."""

    @property
    def headers(self) -> _Headers: ...

    @property
    def stream(self) -> object: ...

    def iter_raw(self) -> Iterator[bytes]: ...


class AnswerBody:
    """The body of one answer. Iterated once."""

    def __init__(self, answer: _RawAnswer) -> None:
        values = (value for name, value in answer.headers.multi_items() if name.lower() == "content-encoding")
        named = [name.strip().lower() for value in values for name in value.split(",")]
        self._encodings = [name for name in named if name not in ("", "identity")]
        self._answer = answer

    @property
    def unknown_encoding(self) -> str:
        """The encoding that was not asked for, as the server names it; empty where the body can be read."""
        return "" if self._encodings in ([], ["gzip"], ["x-gzip"]) else ", ".join(self._encodings)

    def __iter__(self) -> Generator[bytes, None, bool]:
        """Yield the pieces of the body, empty ones too, so that whoever waits for one can stop in between.

        Returns whether the connection is as it should be behind the body: nothing lies there that was not asked for. What
        cannot be seen counts as there. Raises DecodingError, and what the HTTP client raises.
        """
        parser = _parser(self._answer.stream)
        raw = self._answer.iter_raw()
        yield from _unpacked(raw) if self._encodings else raw
        return parser is not None and not parser.trailing_data[0]


class _Parser(Protocol):
    """What is used of h11's Connection."""

    @property
    def trailing_data(self) -> tuple[bytes, bool]: ...


def _parser(stream: object) -> _Parser | None:
    found: object = stream
    for _ in range(8):
        if hasattr(found, "trailing_data"):
            return found
        found = next((inner for name in _INWARDS if (inner := getattr(found, name, None)) is not None), None)
    return None


def _unpacked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what gzip holds. Behind its end nothing counts; a reply that lacks it is known by its own end."""
    packed = zlib.decompressobj(_GZIP)
    for piece in pieces:
        try:
            yield (unpacked := packed.decompress(piece, STEP_BYTES))
            while not packed.eof and len(unpacked) == STEP_BYTES:
                yield (unpacked := packed.decompress(packed.unconsumed_tail, STEP_BYTES))
        except zlib.error as error:
            raise DecodingError(str(error)) from None
