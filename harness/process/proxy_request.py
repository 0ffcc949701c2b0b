"""The request of a program to a proxy (RFC 9110, 9112): `CONNECT host:port`, or a plain request with the full URL.

Parsing is strict: an ambiguous request is refused, since a server could interpret it differently. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.record import Record
from harness.regex import regex

MAX_HEAD_BYTES = 32_768
"""Maximum size of the lines before the body, in bytes."""
END = b"\r\n\r\n"
_METHOD = regex(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}\Z")
_FIELD = regex(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_OF_THE_WAY = frozenset(
    ("connection", "proxy-connection", "keep-alive", "proxy-authorization", "upgrade", "te", "host")
)
"""Header fields that are only for the proxy, or that it replaces."""


class ProxyRequest(Record):
    """One parsed request."""

    target: str
    """Host and port as written by the program: `example.org:443`."""
    is_tunnel: bool
    """Whether the bytes are passed on unchanged. If not, `head` is sent first."""
    head: bytes = b""
    """Head to send to the server instead of the program's. It requests only the path."""


def read_request(head: bytes) -> ProxyRequest:
    """Parse `head`, the bytes up to and including the empty line. Raises ValueError with the problem as its text."""
    text = head.removesuffix(END).decode("latin-1")
    lines = text.split("\r\n")
    if any(not 32 <= ord(char) != 127 and char != "\t" for line in lines for char in line):
        raise ValueError("the request has a control character")
    if not lines[0].isascii():
        raise ValueError("the request line is not ASCII")
    words = lines[0].split(" ")
    if len(words) != 3 or not _METHOD.match(words[0]) or words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise ValueError("the request is not HTTP/1.1 or HTTP/1.0")
    method, target, _version = words
    fields = tuple(_fields(lines[1:]))
    if method == "CONNECT":
        if ":" not in target.rpartition("]")[2]:
            raise ValueError("CONNECT needs a port")
        return ProxyRequest(target=target, is_tunnel=True)
    return _plain_request(method, target, fields)


def _fields(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _FIELD.match(name):
            raise ValueError("the request has an invalid header line")
        yield name, value.strip()


def _plain_request(method: str, target: str, fields: tuple[tuple[str, str], ...]) -> ProxyRequest:
    scheme, slashes, rest = target.partition("://")
    if not slashes or scheme.lower() != "http":
        raise ValueError("the request is neither CONNECT nor for an address that begins with http://")
    authority, slash, path = rest.partition("/")
    if "?" in authority:
        authority, _, query = rest.partition("?")
        slash, path = "/", f"?{query}"
    if not authority or set(authority) & set("@#?\\"):
        raise ValueError("the host of the address is not plain")
    if not slash:
        path = ""
    # `Connection: close` ends the connection after one request, since a later one could be for another host.
    lines = [f"{method} /{path} HTTP/1.1", f"Host: {authority}", "Connection: close"]
    hop_headers = {
        word.strip().lower() for name, value in fields if name.lower() == "connection" for word in value.split(",")
    }
    lines += [f"{name}: {value}" for name, value in fields if name.lower() not in _OF_THE_WAY | hop_headers]
    with_port = authority if ":" in authority.rpartition("]")[2] else f"{authority}:80"
    head = "\r\n".join(lines).encode("latin-1") + END
    return ProxyRequest(target=with_port, is_tunnel=False, head=head)
