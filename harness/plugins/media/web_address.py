"""Strict parsing of web addresses. An address that programs could interpret differently is refused."""

from __future__ import annotations

from urllib.parse import quote, urljoin

from harness.errors import ToolError
from harness.policy.hosts import canonical_host, port_of, shown_host
from harness.record import Record

MOST_CHARACTERS = 4_000
PORTS = {"http": 80, "https": 443}
_KEPT = "%/?:@!$&'()*+,;=-._~[]"
"""Characters of path and query that are not percent-encoded (RFC 3986)."""


class WebAddress(Record):
    """The target of a request."""

    scheme: str
    """`http` or `https`."""
    host: str
    """Host in the form of policy/hosts.py: a name in ASCII, or an address."""
    port: int
    target: str
    """Path and query in ASCII, as in the request line."""

    @property
    def place(self) -> str:
        """Host and port as in an address. The port is left out if it is the default of the scheme."""
        host = shown_host(self.host)
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        """The complete address."""
        return f"{self.scheme}://{self.place}{self.target}"

    def is_same_place(self, other: WebAddress) -> bool:
        """Return whether a redirect to `other` stays at the judged place.

        That is the same scheme, host and port, or an upgrade from `http` to `https` on the default ports.
        """
        if self.host != other.host:
            return False
        upgraded = (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        return upgraded or (self.scheme, self.port) == (other.scheme, other.port)


def web_address(text: str) -> WebAddress:
    """Parse an address. Raises ToolError with a description of the problem."""
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"The address is {len(text)} characters long; at most {MOST_CHARACTERS} are taken.")
    if any(not char.isprintable() or char.isspace() or char == "\\" for char in text):
        raise ToolError("The address has a blank, a backslash or a character that cannot be shown.")
    scheme, colon, rest = text.partition("://")
    scheme = scheme.lower()
    if not colon or scheme not in PORTS:
        raise ToolError("The address must begin with https:// or http://.")
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    place, target = rest[:end], rest[end:].partition("#")[0]
    if "@" in place:
        raise ToolError("The address has a user or a password in front of the host: leave it out.")
    try:
        host, port = _host_and_port(place)
        host = canonical_host(host)
    except ValueError as error:
        raise ToolError(f"The host of the address {error}.") from None
    target = quote(target if target.startswith("/") else f"/{target}", safe=_KEPT)
    return WebAddress(scheme=scheme, host=host, port=port or PORTS[scheme], target=target)


def redirected(address: WebAddress, location: str) -> WebAddress:
    """Return the target of a redirect. Raises ToolError as `web_address` does."""
    return web_address(urljoin(address.text, location.strip(" \t")))


def _host_and_port(place: str) -> tuple[str, int | None]:
    """Return the host as written, and the port, or `None` without one. Raises ValueError."""
    if place.startswith("["):
        inner, closed, rest = place[1:].partition("]")
        if not closed or ":" not in inner or (rest and not rest.startswith(":")):
            raise ValueError("is not an IPv6 address in brackets")
        return inner, port_of(rest[1:]) if rest else None
    if place.count(":") > 1:
        raise ValueError("is an address of IPv6 without brackets")
    host, colon, port = place.partition(":")
    return host, port_of(port) if colon else None
