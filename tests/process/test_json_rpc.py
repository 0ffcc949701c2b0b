"""A line of JSON-RPC: what it is, and every way in which two readers could take it for two things."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows

from harness.process.json_rpc import (
    MOST_DEPTH,
    MOST_ID_CHARACTERS,
    MOST_LINE_BYTES,
    LineSplitter,
    RefusedLine,
    RpcCode,
    RpcKind,
    RpcMessage,
    double_key,
    id_text,
    read_message,
)

LONG = "x" * MOST_LINE_BYTES
DEEP = MOST_DEPTH - 1
"""Of what lies in the params: these are one level themselves, the message another."""


@all_rows(
    ("line", "kind", "identity", "method"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"ping"}', RpcKind.REQUEST, "1", "ping"),
        ('{"jsonrpc":"2.0","id":"1","method":"ping"}', RpcKind.REQUEST, '"1"', "ping"),
        ('{"jsonrpc":"2.0","id":-7,"method":"ping","params":null}', RpcKind.REQUEST, "-7", "ping"),
        ('{"jsonrpc":"2.0","method":"notifications/x","params":{}}', RpcKind.NOTIFICATION, "", "notifications/x"),
        ('{"jsonrpc":"2.0","id":0,"result":{}}', RpcKind.RESPONSE, "0", ""),
        ('{"jsonrpc":"2.0","id":0,"result":null}', RpcKind.RESPONSE, "0", ""),
        ('{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"m"}}', RpcKind.RESPONSE, "0", ""),
        (' { "jsonrpc" : "2.0" , "id" : 2 , "m\\u0065thod" : "ping" }\r', RpcKind.REQUEST, "2", "ping"),
        ('{"jsonrpc":"2.0","id":"\u2028","method":"\U0001f600"}', RpcKind.REQUEST, '"\\u2028"', "\U0001f600"),
    ],
)
def test_message_is_classified(line: str, kind: RpcKind, identity: str, method: str) -> None:
    message = read_message(line.encode() + b"\n")
    assert isinstance(message, RpcMessage), message
    assert (message.kind, message.id, message.method) == (kind, identity, method)
    assert message.line == line.encode() + b"\n"


ASKS, ANSWERS = (("1",), ()), ((), ("1",))
NOBODY: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


@all_rows(
    ("line", "why", "waiting"),
    {
        "a batch": ('[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]', "batches are not supported", ASKS),
        "an empty batch": ("[]", "batches are not supported", NOBODY),
        "a batch of answers": ('[{"jsonrpc":"2.0","id":1,"result":{}}]', "batches are not supported", ANSWERS),
        "a batch of nonsense": ('[1,[],{"id":1,"method":"m"},{"id":true,"method":"m"}]', "batches are not supported", ASKS),
        "no object": ('"tools/call"', "not a JSON object", NOBODY),
        "no JSON": ("Listening on stdio", "ambiguous JSON", NOBODY),
        "two values": ('{"jsonrpc":"2.0","id":1,"method":"a"} {}', "ambiguous JSON", ASKS),
        "a key twice": ('{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', "duplicate key", ASKS),
        "a key twice, spelled": ('{"jsonrpc":"2.0","id":1,"method":"a","m\\u0065thod":"b"}', "duplicate key", ASKS),
        "a key twice, within": ('{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}', "duplicate key", ANSWERS),
        "a key in another case": ('{"jsonrpc":"2.0","id":1,"method":"a","METHOD":"b"}', "no member", ASKS),
        "a long s": ('{"jsonrpc":"2.0","id":1,"method":"a","param\u017f":{}}', "no member", ASKS),
        "a member of its own": ('{"jsonrpc":"2.0","id":1,"method":"a","x":1}', "no member", ASKS),
        "NaN": ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":NaN}}', "NaN", ASKS),
        "too large a number": ('{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1e999}}', "too large", ASKS),
        "another version": ('{"jsonrpc":"1.0","id":1,"method":"a"}', "2.0", ASKS),
        "no version": ('{"id":1,"method":"a"}', "2.0", ASKS),
        "a fractional id": ('{"jsonrpc":"2.0","id":1.0,"method":"a"}', "the id", NOBODY),
        "an id that is true": ('{"jsonrpc":"2.0","id":true,"method":"a"}', "the id", NOBODY),
        "no id to answer": ('{"jsonrpc":"2.0","id":null,"error":{}}', "the id", NOBODY),
        "an endless id": (
            f'{{"jsonrpc":"2.0","id":"{"x" * MOST_ID_CHARACTERS}","method":"a"}}',
            "the id",
            NOBODY,
        ),
        "an answer to nothing": ('{"jsonrpc":"2.0","result":{}}', "without an id", NOBODY),
        "both ends": ('{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', "neither", ANSWERS),
        "asks and answers": ('{"jsonrpc":"2.0","id":1,"method":"a","result":{}}', "both a request and a response", ASKS),
        "neither": ('{"jsonrpc":"2.0","id":1}', "neither", ANSWERS),
        "a method that is no text": ('{"jsonrpc":"2.0","id":1,"method":1}', "must be a string", ASKS),
        "no method": ('{"jsonrpc":"2.0","id":1,"method":""}', "must be a string", ASKS),
        "params in a list": ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}', "must be an object", ASKS),
        "a mark in front": ('\ufeff{"jsonrpc":"2.0","id":1,"method":"a"}', "ambiguous JSON", NOBODY),
        "a line end within": ('{"jsonrpc":"2.0",\r"id":1,"method":"a"}', "line end", ASKS),
        "a NUL": ('{"jsonrpc":"2.0","id":1,"method":"a\0"}', "ambiguous JSON", ASKS),
        "too long, a request": (f'{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":"{LONG}"}}}}', "longer", ASKS),
        "too long, an answer": (f'{{"jsonrpc":"2.0","id":1,"result":{{"x":"{LONG}"}}}}', "longer", ANSWERS),
        "too long, nobody knows": (LONG + "xx", "longer", NOBODY),
        "deep": (
            f'{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{"[" * DEEP}{"]" * DEEP}}}}}',
            "deep",
            ASKS,
        ),
        "endless depth": ('{"jsonrpc":"2.0","id":1,"method":"a","params":' + '{"x":' * 99_999, "deep", ASKS),
        "endless depth, the id first": ('{"id":1,"jsonrpc":"2.0","result":' + "[" * 99_999, "deep", ANSWERS),
        "endless depth, nobody knows": ('{"x":' * 99_999, "deep", NOBODY),
    },
)  # fmt: skip
def test_invalid_message_is_refused_with_its_answer(
    line: str, why: str, waiting: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    refused = read_message(line.encode() + b"\n")
    assert isinstance(refused, RefusedLine)
    assert why in refused.reason, refused.reason
    assert (refused.asks, refused.answers) == waiting


def test_bytes_that_are_not_utf8_are_refused_and_their_id_is_still_read() -> None:
    refused = read_message(b'{"jsonrpc":"2.0","id":1,"method":"a\xff"}\n')
    assert isinstance(refused, RefusedLine)
    assert (refused.asks, refused.code) == (("1",), RpcCode.PARSE)


def test_the_deepest_message_that_is_taken() -> None:
    depth = DEEP - 1
    line = f'{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"x":{"[" * depth}{"]" * depth}}}}}'
    assert isinstance(read_message(line.encode()), RpcMessage)


@given(st.binary(max_size=300))
def test_any_line_is_read_or_refused(line: bytes) -> None:
    assert isinstance(read_message(line), RpcMessage | RefusedLine)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), inner)
        ),
    )
)
def test_odd_value_is_read_or_refused(value: object) -> None:
    assert isinstance(read_message(json.dumps(value).encode()), RpcMessage | RefusedLine)


@all_rows(
    ("keys", "double"),
    [
        ("name arguments _meta task", ""),
        ("name Name", "Name"),
        ("Arguments", "Arguments"),
        ("name argument\u017f", "argument\u017f"),
        ("x y X", "X"),
    ],
)
def test_keys_that_only_their_case_tells_apart(keys: str, double: str) -> None:
    assert double_key(dict.fromkeys(keys.split()), ("name", "arguments")) == double


@all_rows(("value", "text"), [(1, "1"), ("1", '"1"'), (True, ""), (None, ""), (1.0, ""), ([], ""), (10**600, "")])
def test_an_id_as_text(value: object, text: str) -> None:
    assert id_text(value) == text  # type: ignore[arg-type]  # whatever JSON holds


@given(st.lists(st.binary(max_size=20)), st.integers(min_value=1, max_value=7))
def test_lines_do_not_depend_on_the_pieces_received(pieces: list[bytes], size: int) -> None:
    data = b"\n".join(pieces)
    splitter = LineSplitter()
    found = [line for start in range(0, len(data), size) for line in splitter.add(data[start : start + size])]
    *whole, rest = data.split(b"\n")
    assert (found, splitter.rest) == ([line + b"\n" for line in whole if line.strip()], rest)


def test_unfinished_line_takes_bounded_memory() -> None:
    splitter = LineSplitter()
    block = b"x" * (1 << 20)
    for _ in range(20):
        assert list(splitter.add(block)) == []
    assert len(splitter.rest) == MOST_LINE_BYTES + 1
    (line,) = splitter.add(b"\n")
    assert isinstance(read_message(line), RefusedLine)
    assert list(splitter.add(b'{"a":1}\n')) == [b'{"a":1}\n']
