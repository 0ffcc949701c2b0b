"""JSON-RPC 2.0 with one message per line: strict parsing, and the reasons for refusals.

Only a line that every parser interprets alike is passed on. These are refused: a batch, a duplicate key, two keys that
differ only in case (equal to parsers in Go), a member unknown to JSON-RPC, bytes that are not UTF-8, a CR within a line
(a line end to some parsers), deep nesting, an overlong line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum

from harness.actions import JsonValue
from harness.record import Record
from harness.text.strict_json import NotJsonError, is_deeper, read_line

CALL_TOOL, LIST_TOOLS = "tools/call", "tools/list"
MOST_LINE_BYTES = 16 * 1024 * 1024
MOST_DEPTH = 100
MOST_ID_CHARACTERS = 500
MOST_IN_BATCH = 100
"""Maximum number of messages in a refused batch that are answered."""
_BEGINNING = 4096
"""Number of bytes of an overlong line that are searched for its ID."""
_MEMBERS = ("jsonrpc", "id", "method", "params", "result", "error")
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID = rb'"id"\s*:\s*(-?[0-9]{1,18}|"[\w. :/-]{1,100}")'
_AT_START = rb'\s*\{\s*(?:%s\s*,\s*%s|%s\s*,\s*%s)\s*,\s*"(method|result|error)"\s*:' % (_VERSION, _ID, _ID, _VERSION)
"""The usual beginning of a message."""


class RpcCode(IntEnum):
    """Error codes of JSON-RPC 2.0 (section 5.1)."""

    PARSE = -32700
    REQUEST = -32600
    PARAMS = -32602
    INTERNAL = -32603


class RpcKind(Enum):
    """The kinds of messages."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"


class RpcMessage(Record):
    """One message, parsed strictly."""

    line: bytes
    """The line as received, with its line end."""
    kind: RpcKind
    id: str
    """The ID as JSON text, so that 1 and "1" differ. Empty for a notification."""
    method: str
    """Name of the method. Empty for a response."""
    fields: Mapping[str, JsonValue]

    @property
    def params(self) -> Mapping[str, JsonValue]:
        """The parameters. Empty without any."""
        params = self.fields.get("params")
        return params if isinstance(params, dict) else {}


class RefusedLine(Record):
    """A line that is not passed on."""

    reason: str
    asks: tuple[str, ...] = ()
    """IDs, as JSON texts, of requests that the line seems to have. The sender waits for their answers."""
    answers: tuple[str, ...] = ()
    """IDs of requests that the line seems to answer. Their sender waits for the answers."""
    code: RpcCode = RpcCode.REQUEST


def read_message(line: bytes) -> RpcMessage | RefusedLine:
    """Return the message in a line that is not blank, or its refusal. Never raises."""
    if len(line) > MOST_LINE_BYTES:
        return _too_long(line)
    if b"\r" in line.rstrip(b"\r\n"):
        return _refused(line, "a line end within the message")
    try:
        value = read_line(line.rstrip(b"\r\n"))
    except NotJsonError as error:
        return _refused(line, f"invalid or ambiguous JSON: {error}", RpcCode.PARSE)
    if isinstance(value, list):
        return _refused(line, "batches are not supported: send each message by itself")
    if not isinstance(value, dict):
        return RefusedLine(reason="not a JSON object", code=RpcCode.REQUEST)
    reason = _problem(value)
    if reason:
        return _refused(line, reason)
    method = value.get("method")
    asks = RpcKind.REQUEST if "id" in value else RpcKind.NOTIFICATION
    return RpcMessage(
        line=line,
        kind=asks if isinstance(method, str) else RpcKind.RESPONSE,
        id=id_text(value["id"]) if "id" in value else "",
        method=method if isinstance(method, str) else "",
        fields=value,
    )


def id_text(value: JsonValue) -> str:
    """Return an ID as JSON text. Empty if it is neither a text nor a whole number, or if it is too long."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    try:
        text = json.dumps(value)
    except ValueError:  # sys.set_int_max_str_digits
        return ""
    return text if len(text) <= MOST_ID_CHARACTERS else ""


def double_key(fields: Mapping[str, JsonValue], reserved: tuple[str, ...]) -> str:
    """Return a key that, ignoring case, equals one of `reserved` or another key. Empty if there is none."""
    folded = set(reserved)
    for key in fields:
        if key in reserved:
            continue
        if key.casefold() in folded:
            return key
        folded.add(key.casefold())
    return ""


def error_line(identity: str, code: RpcCode, message: str) -> bytes:
    """Return the line that answers a request with an error. `identity` is the request's ID as JSON text."""
    return _line({"jsonrpc": "2.0", "id": json.loads(identity), "error": {"code": int(code), "message": message}})


def result_line(identity: str, result: Mapping[str, JsonValue]) -> bytes:
    """Return the line that answers a request with a result. `identity` is the request's ID as JSON text."""
    return _line({"jsonrpc": "2.0", "id": json.loads(identity), "result": dict(result)})


def request_line(identity: str, method: str, params: Mapping[str, JsonValue]) -> bytes:
    """Return the line of a request."""
    return _line({"jsonrpc": "2.0", "id": json.loads(identity), "method": method, "params": dict(params)})


def changed_line(message: RpcMessage, member: str, value: JsonValue) -> bytes:
    """Return the line of `message` with one member changed to `value`."""
    return _line({**message.fields, member: value})


def _line(fields: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def _problem(value: Mapping[str, JsonValue]) -> str:
    """Return the reason why an object is not a message, or an empty string."""
    unknown_key = next((key for key in value if key not in _MEMBERS), None)
    if unknown_key is not None:
        return f"JSON-RPC has no member {json.dumps(unknown_key[:50])}"
    if value.get("jsonrpc") != "2.0":
        return '"jsonrpc" must be "2.0"'
    if "id" in value and not id_text(value["id"]):
        return "the id must be a string or an integer, and not too long"
    if is_deeper(dict(value), MOST_DEPTH):
        return f"nested more than {MOST_DEPTH} levels deep"
    ends = [name for name in ("result", "error") if name in value]
    if "method" in value:
        if not isinstance(value["method"], str) or not value["method"]:
            return "the method must be a string"
        if ends:
            return "both a request and a response"
        params = value.get("params")
        return "" if params is None or isinstance(params, dict) else "params must be an object"
    if len(ends) != 1 or "params" in value:
        return "neither a request nor a response"
    return "" if "id" in value else "a response without an id"


def _too_long(line: bytes) -> RefusedLine:
    asks, answers = _told_at_start(line)
    return RefusedLine(reason=f"longer than {MOST_LINE_BYTES} bytes", asks=asks, answers=answers)


def _told_at_start(line: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the IDs of a line's apparent request and answer, from the beginning of a line that cannot be parsed.

    Each is a tuple with at most one ID.
    """
    match = re.match(_AT_START, line[:_BEGINNING])
    if match is None:
        return (), ()
    first, second, member = match.groups()
    identity = id_text(json.loads(first or second))
    return ((identity,), ()) if member == b"method" else ((), (identity,))


def _refused(line: bytes, reason: str, code: RpcCode = RpcCode.REQUEST) -> RefusedLine:
    """Return the refusal of a line, with the IDs of its apparent requests and answers from loose parsing."""
    asks: list[str] = []
    answers: list[str] = []
    try:
        for fields in _objects(line):
            identity = id_text(fields.get("id"))
            if identity:
                (asks if "method" in fields else answers).append(identity)
    except (ValueError, RecursionError):
        ids = _told_at_start(line)
        return RefusedLine(reason=reason, asks=ids[0], answers=ids[1], code=code)
    return RefusedLine(reason=reason, asks=tuple(asks), answers=tuple(answers), code=code)


def _objects(line: bytes) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the JSON objects in a line. Raises ValueError or RecursionError if the line cannot be parsed."""
    value = json.loads(line.decode("utf-8", "replace"))
    for item in value[:MOST_IN_BATCH] if isinstance(value, list) else (value,):
        if isinstance(item, dict):
            yield item


class LineSplitter:
    """Splits a stream into lines. An overlong line is cut to one byte more than the maximum length."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def add(self, block: bytes) -> Iterator[bytes]:
        """Add received bytes. Yield each completed line with its line end. Blank lines are dropped."""
        *lines, rest = block.split(b"\n")
        for piece in lines:
            self._keep(piece + b"\n")
            line = b"".join(self._pieces)
            self._pieces.clear()
            self._length = 0
            if line.strip():
                yield line
        self._keep(rest)

    @property
    def is_too_long(self) -> bool:
        """Whether the unfinished line is already longer than MOST_LINE_BYTES."""
        return self._length > MOST_LINE_BYTES

    @property
    def rest(self) -> bytes:
        """The bytes after the last line end."""
        return b"".join(self._pieces)

    def _keep(self, piece: bytes) -> None:
        room = MOST_LINE_BYTES + 1 - self._length
        if piece and room > 0:
            self._pieces.append(piece[:room])
            self._length += len(self._pieces[-1])
