"""The network of one command that may reach some hosts only: a network of its own, with our proxy as the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from harness.actions import JsonValue
from harness.policy.hosts import LOOPBACK, host_patterns, is_listed
from harness.process.host_proxy import HostConnection, HostProxy
from harness.sandbox.own_network import DOOR, OwnNetwork, why_none
from harness.text.visible import visible_line
from harness.tools.host_routes import Looks, look_up, route_to

PROXY = f"http://{DOOR[0]}:{DOOR[1]}"
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
MAX_TOLD = 5
"""Hosts and refusals that are named in a line."""


class CommandNetwork:
    """A way to some hosts. Close it when its command is over, or was not started."""

    def __init__(self, hosts: Sequence[str], bind: Callable[[], None], look: Looks = look_up) -> None:
        """`hosts` are as a policy writes them; `bind` puts up the command's walls in the child. Raises OSError."""
        self.hosts = tuple(hosts)
        self.bind = bind
        self._patterns = host_patterns(self.hosts)
        self._look = look
        self._network = OwnNetwork()
        self._proxy: HostProxy | None = None

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables that name the proxy; programs bypass it only for addresses in their own network."""
        ours = any(is_listed([pattern], host, pattern.port or 80) for pattern in self._patterns for host in LOOPBACK)
        around = "" if ours else ",".join(("localhost", *LOOPBACK))
        proxies = dict.fromkeys(_VARIABLES, PROXY)
        return {**proxies, "no_proxy": around, "NO_PROXY": around, "NODE_USE_ENV_PROXY": "1"}

    def make(self) -> None:
        """Make the network, in the child. Raises OSError."""
        self._network.make()

    def serve(self) -> None:
        """Begin to answer at its door. Raises OSError where there is none."""
        self._proxy = HostProxy(self._network.door(), partial(route_to, patterns=self._patterns, look=self._look))

    def close(self) -> None:
        """End what is open. May be called again."""
        if self._proxy is not None:
            self._proxy.close()
        self._network.close()

    @property
    def connections(self) -> tuple[HostConnection, ...]:
        """Results of the connections so far."""
        return () if self._proxy is None else self._proxy.connections

    @property
    def total(self) -> int:
        """Number of requested connections."""
        return 0 if self._proxy is None else self._proxy.total

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The connections, the first of many, and their number, as the outcome of the command holds them."""
        if not self.total:
            return {}
        return {"connections": [each.fields() for each in self.connections], "connection_count": self.total}

    def notes(self, *, failed: bool) -> list[str]:
        """Return notes about a finished command: refused connections, and an unused way to the network."""
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


def reach_words(hosts: Sequence[str]) -> str:
    """Return the network of a command that may reach some hosts only, as far as this machine can enforce it."""
    reason = why_none()
    return f"reach nothing: it would reach hosts by name, and {reason}" if reason else f"reach only {in_words(hosts)}"


def in_words(hosts: Sequence[str]) -> str:
    """Return hosts in one line, the first of them by name."""
    names = ", ".join(visible_line(host, 100) for host in hosts[:MAX_TOLD])
    return names if len(hosts) <= MAX_TOLD else f"{names} and {len(hosts) - MAX_TOLD} more"
