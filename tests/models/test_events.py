"""Server-sent events out of bytes."""

from __future__ import annotations

from rows import all_rows

from harness.models.wire_format import EventDecoder

EVENTS = {
    "LF ends lines": (b"data: a\n\ndata: b\n\n", [("", b"a"), ("", b"b")]),
    "CRLF ends lines, and several data lines are one event": (b"data: a\r\ndata: b\r\n\r\n", [("", b"a\nb")]),
    "CR alone ends lines": (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
    "line ends may be mixed": (b"data: a\r\n\ndata: b\n\r\n", [("", b"a"), ("", b"b")]),
    "comments are skipped": (b": keep-alive\n\n: again\ndata: a\n\n", [("", b"a")]),
    "a byte-order mark at the start is skipped": (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
    "one blank after the colon is dropped": (b"data:a\n\ndata:  b\n\n", [("", b"a"), ("", b" b")]),
    "a name holds for one event": (b"event: error\ndata: a\n\ndata: b\n\n", [("error", b"a"), ("", b"b")]),
    "blocks without data are no events": (b"id: 1\nretry: 5\n\nevent: ping\n\ndata\n\ndata:\n\n", []),
    "an event that the end cuts is handed out": (b"data: a\n\ndata: b", [("", b"a"), ("", b"b")]),
    "empty lines mean nothing": (b"\n\n\ndata: a\n\n\n\n", [("", b"a")]),
    "other separators end no line": (
        "data: ä\u2028\x0b\x0c\x85b\n\n".encode(),
        [("", "ä\u2028\x0b\x0c\x85b".encode())],
    ),
}


LONGEST = {
    "a line": (b"data: 1234567890", 16),
    "an event of many lines": (b"data: 12345\n" * 10, 60),
    "events one by one": (b"data: 12345\n\n" * 10, 11),
    "a comment": (b":123456789\n", 10),
    "a byte-order mark, and nothing": (b"\xef\xbb\xbf", 3),
}


@all_rows(("wire", "expected"), LONGEST)
def test_too_long_line_or_event_is_noticed_early(wire: bytes, expected: int) -> None:
    for size in range(1, len(wire) + 1):
        decoder = EventDecoder()
        for start in range(0, len(wire), size):
            decoder.feed(wire[start : start + size])
        assert decoder.longest == expected


@all_rows(("wire", "expected"), EVENTS)
def test_bytes_become_events_wherever_they_are_cut(wire: bytes, expected: list[tuple[str, bytes]]) -> None:
    def events(*pieces: bytes) -> list[tuple[str, bytes]]:
        decoder = EventDecoder()
        return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()

    assert events(wire) == expected
    assert events(*(wire[i : i + 1] for i in range(len(wire)))) == expected
    for cut in range(len(wire) + 1):
        assert events(wire[:cut], b"", wire[cut:]) == expected
