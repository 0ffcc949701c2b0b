"""Routes of a command's connections. The host name is checked against the list and resolved once; each address is
then checked.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence

from harness.policy.hosts import (
    LOCALHOST,
    LOOPBACK,
    HostPattern,
    address_problem,
    canonical_host,
    is_address,
    is_listed,
    shown_host,
    split_port,
)
from harness.process.host_proxy import Route
from harness.text.visible import visible_line

MOST_ADDRESSES = 8
"""Maximum number of addresses tried for one name."""

Looks = Callable[[str, int], Iterable[str]]
"""Function that returns the addresses of a host name, for a port. Raises OSError."""


def look_up(name: str, port: int) -> Iterable[str]:
    """Return the addresses that the system finds for a name. Raises OSError."""
    addresses = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return dict.fromkeys(str(address[0]) for *_, address in addresses)


def route_to(target: str, patterns: Sequence[HostPattern], look: Looks = look_up) -> Route:
    """Return the route to `host:port` if the list of hosts permits it. Never raises.

    A route without an address has a reason. INVARIANT: a route contains only checked addresses. The name is not
    resolved again, as the answer could differ.
    """
    try:
        host, port = split_port(target)
        host = canonical_host(host)
    except ValueError as error:
        return Route(host=visible_line(target, 100), port=0, problem=f"{visible_line(target, 100)} {error}")
    if port is None:
        return Route(host=host, port=0, problem=f"{host} has no port")
    if not is_listed(patterns, host, port):
        return Route(host=host, port=port, problem=f"{shown_host(host)}:{port} is not among the hosts it may reach")
    try:
        addresses = [host] if is_address(host) else LOOPBACK if host == LOCALHOST else list(look(host, port))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return Route(host=host, port=port, problem=f"{host} was not found: {reason or error}")
    problems = {address: address_problem(patterns, address, port) for address in addresses[:MOST_ADDRESSES]}
    good = tuple(address for address, problem in problems.items() if not problem)
    if good:
        return Route(host=host, port=port, addresses=good)
    why_not = next(iter(problems.values()), "it has no address")
    return Route(host=host, port=port, problem=why_not if is_address(host) else f"{host}: {why_not}")
