"""What `where` of a rule says of one argument of a tool from outside: which paths, hosts or words it may hold, or may not."""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Place, ToolArgument
from harness.paths import fold
from harness.policy.matchers import PathPatterns
from harness.record import Record
from harness.regex import regex

_HOST = regex(r"^(?:\*\.)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*(?::[1-9][0-9]{0,4})?\Z")
_USUAL_PORTS = ("80", "443")


class ArgumentPatterns(Record):
    """The argument of that name, and one of the three that is said of it."""

    name: str
    """With those that it lies in: `edits.path`."""
    paths: PathPatterns | None = None
    hosts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """It in words, for people; not yet safe to show."""
        if self.paths is not None:
            return f"{self.name} a path of {', '.join(self.paths.patterns)}"
        return f"{self.name} at {', '.join(self.hosts)}" if self.hosts else f"{self.name} {' or '.join(self.words)}"

    def covers(self, arguments: Sequence[ToolArgument]) -> bool:
        """Say whether the argument is there, and every text of it, and of what lies in it, is accounted for.

        Other spellings of the name count too: some programs take `PATH` for `path`.
        """
        if not all(argument.name for argument in arguments):
            return False  # of the rest nobody knows the names
        own = [argument for argument in arguments if self._means(argument)]
        return any(argument.name == self.name for argument in own) and all(map(self._accounts_for, own))

    def uncovered_words(self, arguments: Sequence[ToolArgument]) -> str:
        """Return why the arguments are not covered, without a full stop. Empty if they are."""
        if self.covers(arguments):
            return ""
        own = [argument for argument in arguments if self._means(argument)]
        stop = next((argument for argument in own if not self._accounts_for(argument)), None)
        if stop is None:
            return f"`where` names the argument {self.name!r}, which is missing"
        remedy = ": a list of words is exact, and {path = [...]} takes patterns" if "*" in "".join(self.words) else ""
        return f"`where` does not cover {stop.text!r} in the argument {stop.name!r}{remedy}"

    def hit_in(self, arguments: Sequence[ToolArgument]) -> ToolArgument | None:
        """Return the first text of the argument, or in it, that this touches, or may touch; else None."""
        own = (argument for argument in arguments if not argument.name or self._means(argument))
        return next((argument for argument in own if not argument.name or self._touches(argument)), None)

    def _means(self, argument: ToolArgument) -> bool:
        name, wanted = _plain(argument.name), _plain(self.name)
        return name == wanted or name.startswith(f"{wanted}.")

    def _accounts_for(self, argument: ToolArgument) -> bool:
        if self.paths is not None:
            return argument.place is Place.INSIDE and bool(argument.names) and self.paths.covers(argument.names)
        if self.hosts:
            return any(_is_host(pattern, argument.host) for pattern in self.hosts)
        return argument.text in self.words

    def _touches(self, argument: ToolArgument) -> bool:
        if self.paths is not None:
            return self.paths.hits(argument.names)
        if self.hosts:
            if not argument.host:
                return bool(argument.text)  # programs may read a host in it that nobody here does
            hosts = (argument.host, argument.host.partition(":")[0])
            return any(_is_host(pattern, host) or pattern == f"*.{host}" for pattern in self.hosts for host in hosts)
        return fold(argument.text.strip()) in map(fold, self.words)


def _plain(name: str) -> str:
    return fold(name.replace('"', "").replace("\\", ""))


def _is_host(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return len(host) > len(pattern) - 1 and host.endswith(pattern[1:])
    return pattern == host


def host_problem(pattern: str) -> str:
    """Return what is wrong with a pattern of hosts, or nothing."""
    if not _HOST.match(pattern):
        return "is no host in small letters, such as example.org, *.example.org or localhost:8080"
    port = pattern.partition(":")[2]
    return f"has the usual port {port}: leave it out, any other one is written" if port in _USUAL_PORTS else ""
