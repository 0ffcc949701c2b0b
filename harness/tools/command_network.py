"""The network of a command that may reach only some hosts: a separate network whose only exit is harness's proxy."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from functools import partial

from harness.actions import Effects, JsonValue
from harness.policy.hosts import LOOPBACK, host_patterns, is_listed
from harness.process.host_proxy import HostConnection, HostProxy
from harness.sandbox import probe, why_no_namespaces
from harness.sandbox.walls import DOOR
from harness.text.visible import visible_line
from harness.tools.host_routes import Looks, look_up, route_to

PROXY = f"http://{DOOR[0]}:{DOOR[1]}"
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
MAX_TOLD = 5
"""Maximum number of hosts or refusals listed in a note."""


class CommandNetwork:
    """The network of one command. Must be closed after the command, even if the command did not start."""

    def __init__(self, hosts: Sequence[str], look: Looks = look_up) -> None:
        """Prepare a network for `hosts`, written as in policies. `look` resolves host names."""
        self.hosts = tuple(hosts)
        self._patterns = host_patterns(self.hosts)
        self._look = look
        self._proxy: HostProxy | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """Environment variables with the address of the proxy. Programs bypass it only for local addresses."""
        ours = any(is_listed([pattern], host, pattern.port or 80) for pattern in self._patterns for host in LOOPBACK)
        around = "" if ours else ",".join(("localhost", *LOOPBACK))
        proxies = dict.fromkeys(_VARIABLES, PROXY)
        return {**proxies, "no_proxy": around, "NO_PROXY": around, "NODE_USE_ENV_PROXY": "1"}

    def serve(self, door: socket.socket) -> None:
        """Start the proxy at the exit of the network. Raises OSError."""
        self._proxy = HostProxy(door, partial(route_to, patterns=self._patterns, look=self._look))

    def close(self) -> None:
        """Close the proxy and the network. May be called more than once."""
        if self._proxy is not None:
            self._proxy.close()

    @property
    def connections(self) -> tuple[HostConnection, ...]:
        """The connections so far, with their results."""
        return () if self._proxy is None else self._proxy.connections

    @property
    def total(self) -> int:
        """Number of requested connections."""
        return 0 if self._proxy is None else self._proxy.total

    @property
    def fields(self) -> dict[str, JsonValue]:
        """Fields of the outcome record: the first connections, and the number of all. Empty without connections."""
        if not self.total:
            return {}
        return {"connections": [each.fields() for each in self.connections], "connection_count": self.total}

    def notes(self, *, failed: bool) -> list[str]:
        """Return notes on a finished command: the refused connections, and its hosts if it failed without a connection."""
        refused = [each for each in self.connections if each.why_not]
        notes = [f"[network: refused: {visible_line(each.why_not, 200)}]" for each in refused[:MAX_TOLD]]
        if failed and not any(not each.why_not for each in self.connections):
            tried = (
                ""
                if self.total
                else "; nothing was asked of it: a program that does not know http_proxy has no network"
            )
            notes.append(f"[network only through the proxy to: {in_words(self.hosts)}{tried}]")
        return notes


def why_no_hosts() -> str:
    """Return the reason why commands cannot be held to single hosts on this machine. Empty if they can."""
    reason = why_no_namespaces(probe())
    return f"this machine gives commands no network of their own: {reason}" if reason else ""


def unreached_words(effects: Effects) -> str:
    """Return the reason why a command reaches none of the hosts that its effects name. Empty if it reaches them."""
    reason = why_no_hosts() if effects.hosts and not effects.network else ""
    return f"no host is reached: {reason}" if reason else ""


def in_words(hosts: Sequence[str]) -> str:
    """Return the first hosts by name, and the number of the others, in one line."""
    names = ", ".join(visible_line(host, 100) for host in hosts[:MAX_TOLD])
    return names if len(hosts) <= MAX_TOLD else f"{names} and {len(hosts) - MAX_TOLD} more"
