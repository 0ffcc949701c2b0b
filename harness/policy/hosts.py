"""Hosts: the names and addresses in a policy's list, and the public addresses of the internet.

A pattern is an exact name (`example.org`), all names below one (`*.example.org`, not `example.org` itself), or an
address (`192.0.2.7`, `[2001:db8::7]`), each followed by a port if it is neither 80 nor 443. `localhost` matches
127.0.0.1 and ::1 too. Names are compared in lower-case ASCII form, addresses as numbers. Pure: no name is resolved.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from harness.record import Record
from harness.regex import regex

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

USUAL_PORTS = (80, 443)
"""Ports of a pattern that names no port."""
LONGEST_NAME = 253
LOCALHOST = "localhost"
LOOPBACK = ("127.0.0.1", "::1")

_LABEL = regex(r"^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER = regex(r"^(?:[0-9]+|0[xX][0-9a-fA-F]*)\Z")
_READ_IN_TWO_WAYS = "\u00df\u1e9e\u03c2\u200c\u200d"
"""Characters that the two standards for international domain names map to different names."""
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
_CLOUDS_OWN = (ipaddress.ip_network("168.63.129.16/32"), ipaddress.ip_network("192.0.0.0/24"))
"""Addresses at which cloud providers serve secrets to a machine. Some versions of Python count them as public."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")


class HostPattern(Record):
    """One entry of a list of hosts."""

    host: str
    """A name, or an address in its shortest form without brackets."""
    below: bool = False
    """Whether the pattern matches every name below `host` instead of `host` itself."""
    port: int | None = None
    """Port. `None` for USUAL_PORTS."""

    @property
    def text(self) -> str:
        """The pattern as written in a policy."""
        host_text = f"*.{self.host}" if self.below else shown_host(self.host)
        return host_text if self.port is None else f"{host_text}:{self.port}"

    def matches(self, host: str, port: int) -> bool:
        """Return whether the pattern matches this port of a host. `host` has the form that `canonical_host` returns."""
        if port not in (USUAL_PORTS if self.port is None else (self.port,)):
            return False
        if self.below:
            return host.endswith(f".{self.host}") and _address(host) is None
        return host == self.host or (self.host == LOCALHOST and host in LOOPBACK)


def is_loopback(reach: Reach) -> bool:
    """Return whether all hosts of `reach` are this machine."""
    return reach is not None and all(host_pattern(host).host in (LOCALHOST, *LOOPBACK) for host in reach)


def host_pattern(text: str) -> HostPattern:
    """Return the pattern that a policy writes as `text`. Raises ValueError, whose text describes the problem."""
    if text.strip("*.") == "":
        raise ValueError("means every host: name them, as in example.org or *.example.org")
    host, port = split_port(text)
    below = host.startswith("*.")
    if "*" in (host[2:] if below else host):
        raise ValueError("has a star that is not at the start: *.example.org means the names below example.org")
    host = canonical_host(host[2:] if below else host)
    if below and _address(host) is not None:
        raise ValueError("is an address with a star: remove the star, since only names have names below them")
    if port in USUAL_PORTS:
        raise ValueError(f"has the usual port {port}: remove it, since a host without a port has ports 80 and 443")
    return HostPattern(host=host, below=below, port=port)


@lru_cache(maxsize=256)
def host_patterns(texts: tuple[str, ...]) -> tuple[HostPattern, ...]:
    """Return the patterns of a list. Raises ValueError like `host_pattern`, with the entry before the problem."""
    parsed_patterns = []
    for text in texts:
        try:
            parsed_patterns.append(host_pattern(text))
        except ValueError as error:
            raise ValueError(f"{text!r} {error}") from None
    return tuple(parsed_patterns)


def split_port(text: str) -> tuple[str, int | None]:
    """Return the host and the port of `host:port`, `[address]:port` or either without a port. Raises ValueError."""
    if not text or text != text.strip() or any(ord(char) <= 32 or ord(char) == 127 for char in text):
        raise ValueError("is not a host: it must not be empty, and must not have blanks or control characters")
    if "://" in text or "/" in text:
        raise ValueError("is more than a host: leave out the scheme and the path")
    if "@" in text:
        raise ValueError("has a user in front of the host: leave it out")
    if text.startswith("["):
        inner, closed, rest = text[1:].partition("]")
        if not closed or ":" not in inner or (rest and not rest.startswith(":")):
            raise ValueError("is not a valid address: write [2001:db8::7] or [2001:db8::7]:8080")
        return inner, port_of(rest[1:]) if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, port_of(port) if colon else None


def port_of(text: str) -> int:
    """Return the port that `text` names, in plain digits. Raises ValueError."""
    if not (text.isascii() and text.isdigit()) or text.startswith("0") or len(text) > 5 or int(text) > 65535:
        raise ValueError("has no port from 1 to 65535 after the colon")
    return int(text)


def canonical_host(text: str) -> str:
    """Return a name in lower-case ASCII without a trailing dot, or an address in its shortest form.

    An IPv4 address inside an IPv6 address (`::ffff:192.0.2.7`) is returned as IPv4. Raises ValueError if `text` is
    neither a name nor an address, or is a number that only some programs read as an address (`127.1`, `0x7f000001`).
    """
    name = text.translate(_DOTS)
    if "%" in name:
        raise ValueError("has a percent sign: zones and escapes are not supported")
    address = _address(name.removesuffix(".") if ":" not in name else name)
    if address is not None:
        return str(address)
    if ":" in name:
        raise ValueError("is not an IPv6 address")
    name = _ascii(name).lower().removesuffix(".")
    if not name or len(name) > LONGEST_NAME or not all(map(_LABEL.match, name.split("."))):
        raise ValueError("is not a valid host name")
    if _NUMBER.match(name.rpartition(".")[2]):
        raise ValueError("ends in a number, which programs read in different ways: write the full address")
    return name


def is_address(host: str) -> bool:
    """Return whether a host is an address. `host` has the form that `canonical_host` returns."""
    return _address(host) is not None


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    if any(char in _READ_IN_TWO_WAYS for char in name):
        raise ValueError("has a letter that programs read in two ways: write the ASCII form, xn--...")
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError("is not a valid international host name") from None


def _address(text: str) -> Address | None:
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def shown_host(host: str) -> str:
    """Return a host in the form used before a port: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host else host


Reach: TypeAlias = "tuple[str, ...] | None"
"""Reachable hosts, as written in policies. `None`: every host. Empty: no host."""


def meet(reach: Reach, other: Reach) -> Reach:
    """Return the hosts that both allow. An entry counts only if the other list covers it entirely."""
    if reach is None or other is None:
        return other if reach is None else reach
    return tuple(dict.fromkeys((*_lying_in(reach, other), *_lying_in(other, reach))))


def _lying_in(texts: tuple[str, ...], entries: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts that one entry of a list covers entirely."""
    outer = {(pattern.host, pattern.port, pattern.below) for pattern in host_patterns(entries)}
    for text, pattern in zip(texts, host_patterns(texts), strict=True):
        if not outer.isdisjoint(_covering(pattern)):
            yield text


def _covering(pattern: HostPattern) -> Iterator[tuple[str, int | None, bool]]:
    """Yield the host, the port and `below` of each pattern that covers this one entirely."""
    host, port = pattern.host, pattern.port
    yield host, port, pattern.below
    if host in LOOPBACK:
        yield LOCALHOST, port, False
    while "." in host:
        host = host.partition(".")[2]
        yield host, port, True


def is_listed(patterns: Iterable[HostPattern], host: str, port: int) -> bool:
    """Return whether a pattern matches this port of a host. `host` has the form that `canonical_host` returns."""
    return any(pattern.matches(host, port) for pattern in patterns)


def address_problem(patterns: Sequence[HostPattern], address: str, port: int) -> str:
    """Return the reason why an address of a listed name must not be reached, or an empty string.

    The list itself must have a non-public address (private, loopback, link-local, cloud metadata, in IPv6 too), as an
    address or as `localhost`. The name alone is not enough, since its owner chooses its addresses.
    """
    parsed = _address(address)
    if parsed is None:
        return f"{address} is not an address"
    if is_listed(patterns, str(parsed), port):
        return ""
    kind = _kind(parsed)
    return f"{parsed} is {kind}, and the list of hosts does not name it" if kind else ""


def _kind(address: Address) -> str:
    """Return the kind of a non-public address, or an empty string for a public one."""
    if any(address in network for network in _CLOUDS_OWN):
        return "a cloud's own address"
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "this machine"
    if address.is_link_local:
        return "link-local"
    if address.is_multicast:
        return "a multicast address"
    if not address.is_global:
        return "private or reserved"
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inside(address)
        return _kind(inner) if inner is not None else "site-local" if address.is_site_local else ""
    return ""


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address to which a gateway may translate an IPv6 address. `None` if there is none."""
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)
