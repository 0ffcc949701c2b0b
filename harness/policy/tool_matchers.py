"""Matchers for whole calls of tools: by the tool's name, by its arguments (`where`), or by the contacted host."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from harness.actions import Action, Facet, Place, ToolArgument, ToolUse
from harness.errors import nearest
from harness.paths import fold
from harness.policy.hosts import HostPattern, host_patterns
from harness.policy.matcher import Examples, Matcher, Problem, RuleKeys, not_about, quoted
from harness.policy.patterns import PathPatterns
from harness.record import Record, replace
from harness.regex import regex
from harness.text.fields import check_of
from harness.tool_kinds import SHIPPED_TOOLS, Does, is_from_outside, is_named, tool_kind

if TYPE_CHECKING:
    from harness.policy.rules import Rule

_FORMS = ("path", "host")
"""Ways to match an argument, besides a list of exact words."""
_OUTSIDE = "is about tools from outside"
_NO_PARTS = f"{_OUTSIDE}, which have no argv, path, text or env"
_HOST = regex(r"^(?:\*\.)?[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*(?::[1-9][0-9]{0,4})?\Z")
_USUAL_PORTS = ("80", "443")


class ToolMatcher(Matcher):
    """The tools of a rule: `tool`, and `read_only` of an auto rule."""

    names: tuple[str, ...]
    """Names as written in policies, see `is_named`. Empty if the rule has only `read_only`."""
    only_reads: bool = False
    """Whether it covers only tools that can only read, or whose server declares them as read-only."""

    keys: ClassVar = ("tool", "read_only")
    of_parts: ClassVar = False
    answers_for: ClassVar = frozenset((ToolUse,))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield the matcher if the rule names tools."""
        names, only_reads = keys.texts("tool"), keys.flag("read_only")
        for name in names:
            if name not in keys.tools and not is_from_outside(name):
                keys.fail("tool", f"unknown tool {name!r}{nearest(name, keys.tools)}")
        if names or only_reads:
            yield cls(names=names, only_reads=only_reads)

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - it matches the whole action
        """Return whether it names the tool, or the tool whose default decides the call."""
        return not self.names or is_named(action.tool, self.names) or is_named(action.default_of, self.names)

    def covers(self, action: Action, facet: Facet) -> bool:
        """Return whether it names the tool. With `only_reads`, the tool must also only read."""
        if self.names and not is_named(action.tool, self.names):
            return False
        if not isinstance(facet, ToolUse):
            return not self.only_reads
        may = not self.only_reads or facet.only_reads or (facet.says_reads and not facet.says_destroys)
        return bool(self.names) and may

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - in both kinds of rules
        """Return whether `other` names each of these tools."""
        if not isinstance(other, ToolMatcher) or other.only_reads:
            return False
        return not other.names or (bool(self.names) and all(is_named(name, other.names) for name in self.names))

    def words(self) -> str:
        """Return the tools in words."""
        only = "that only reads, or whose server says so" if self.only_reads else ""
        return " ".join(filter(None, (f"by {quoted(self.names)}" if self.names else "", only)))

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule cannot have these tools. `None` if it can."""
        shipped = next((name for name in self.names if name in SHIPPED_TOOLS), "")
        if self.only_reads and not rule.is_auto:
            return "read_only", "is what an auto rule wants of a tool; a stricter rule is about all that it names"
        if self.only_reads and (rule.has_parts or shipped):
            return "read_only", f"{_OUTSIDE}; {shipped} ships: use argv or path" if not rule.has_parts else _NO_PARTS
        if not rule.is_auto or rule.has_parts:
            return None
        if not self.names:
            return _UNNAMED
        return ("", "an auto rule needs argv or path; a whole tool is set under [tools]") if shipped else None

    def examples(self, *, auto: bool) -> Examples:
        """Return the form of the examples of a rule that has only tools."""
        if auto:
            return Examples.ARGUMENTS
        runs = any(tool_kind(name).does is Does.RUNS for name in self.names)
        return Examples.COMMANDS if runs else Examples.PATHS

    def uncovered_words(self, action: Action, facet: Facet) -> str:
        """Return the reason why it does not cover the call."""
        if self.names and not is_named(action.tool, self.names):
            return f"`tool` does not name {action.tool!r}"
        return "the tool may do more than read" if isinstance(facet, ToolUse) and self.only_reads else not_about(facet)

    def nearness(self, facet: Facet) -> int:
        """Return 1 if it names the used tool, otherwise 0."""
        return int(isinstance(facet, ToolUse) and is_named(facet.tool, self.names))

    def meaning(self, *, auto: bool) -> Hashable:  # noqa: ARG002 - in both kinds of rules
        """Return the names without their order."""
        return "tool", frozenset(self.names), self.only_reads

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return the names. Empty if one has a star, since that matches other names."""
        return () if any(name.endswith("*") for name in self.names) else (frozenset(self.names),)


_UNNAMED: Problem = ("tool", "an auto rule names the tools from outside that it is about")


class ArgumentMatcher(Matcher):
    """Matches calls by one argument: one entry of `where`."""

    argument: ArgumentPatterns

    keys: ClassVar = ("where",)
    of_parts: ClassVar = False
    can_hit: ClassVar = frozenset((ToolUse,))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield a matcher for each argument."""
        table = keys.value("where")
        if table is None:
            return
        if not isinstance(table, dict) or not table:
            keys.fail("where", 'must be a table, such as {path = ["src/"], host = ["*.example.org"]}')
        for name, value in table.items():
            yield cls(argument=_argument(keys, name, value))

    def seen_from(self, workspace: str, top: str) -> Matcher:
        """Return the matcher with paths relative to `top`."""
        paths = self.argument.paths
        paths = None if paths is None else paths.seen_from(workspace, top)
        return replace(self, argument=replace(self.argument, paths=paths))

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the use holds the arguments
        """Return whether an argument matches, or may match."""
        return isinstance(facet, ToolUse) and self.argument.hit_in(facet.arguments) is not None

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether the argument exists and all of it is accounted for."""
        return isinstance(facet, ToolUse) and self.argument.covers(facet.arguments)

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - it hits every argument that it covers
        """Return whether `other` is equal."""
        return self == other

    def words(self) -> str:
        """Return the argument and its patterns."""
        return f"with {quoted((self.argument.text,))}"

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule cannot have arguments. `None` if it can."""
        if rule.has_parts:
            return "where", _NO_PARTS
        if shipped := next((tool for tool in rule.tools if tool in SHIPPED_TOOLS), ""):
            return "where", f"{_OUTSIDE}; {shipped} ships: use argv or path"
        return _UNNAMED if rule.is_auto and not rule.tools else None

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - in both kinds of rules
        """Return the form `ARGUMENTS`."""
        return Examples.ARGUMENTS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return a sentence about the first text that is not covered."""
        return self.argument.uncovered_words(facet.arguments) if isinstance(facet, ToolUse) else not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the sentence that the argument is not hit."""
        is_use = isinstance(facet, ToolUse)
        return f"`where` does not touch the argument {self.argument.name!r}" if is_use else not_about(facet)

    def nearness(self, facet: Facet) -> int:
        """Return 1 if it covers the arguments, otherwise 0."""
        return int(isinstance(facet, ToolUse) and self.argument.covers(facet.arguments))

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:
        """Return the argument that it hits, or `None`."""
        return self.argument.hit_in(use.arguments)


class ArgumentPatterns(Record):
    """The name of an argument, and one of three conditions on it."""

    name: str
    """Name of the argument, after the names of enclosing ones: `edits.path`."""
    paths: PathPatterns | None = None
    hosts: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The name and the condition in words for people. Not yet safe to show."""
        if self.paths is not None:
            return f"{self.name} a path of {', '.join(self.paths.patterns)}"
        return f"{self.name} at {', '.join(self.hosts)}" if self.hosts else f"{self.name} {' or '.join(self.words)}"

    def covers(self, arguments: Sequence[ToolArgument]) -> bool:
        """Return whether the argument exists and every text in it meets the condition.

        Arguments with another spelling of the name must meet it too, since some programs accept `PATH` for `path`.
        """
        if not all(argument.name for argument in arguments):
            return False  # there are more arguments, with unknown names
        own_arguments = [argument for argument in arguments if self._means(argument)]
        return any(argument.name == self.name for argument in own_arguments) and all(
            map(self._accounts_for, own_arguments)
        )

    def uncovered_words(self, arguments: Sequence[ToolArgument]) -> str:
        """Return the reason why the arguments are not covered, without a full stop. Empty if they are."""
        if self.covers(arguments):
            return ""
        own_arguments = [argument for argument in arguments if self._means(argument)]
        stop = next((argument for argument in own_arguments if not self._accounts_for(argument)), None)
        if stop is None:
            return f"`where` names the argument {self.name!r}, which is missing"
        remedy = ": a list of words is exact, and {path = [...]} takes patterns" if "*" in "".join(self.words) else ""
        return f"`where` does not cover {stop.text!r} in the argument {stop.name!r}{remedy}"

    def hit_in(self, arguments: Sequence[ToolArgument]) -> ToolArgument | None:
        """Return the first text in the argument that meets, or may meet, the condition. `None` if there is none."""
        own_arguments = (argument for argument in arguments if not argument.name or self._means(argument))
        return next((argument for argument in own_arguments if not argument.name or self._touches(argument)), None)

    def _means(self, argument: ToolArgument) -> bool:
        name, own_name = _plain(argument.name), _plain(self.name)
        return name == own_name or name.startswith(f"{own_name}.")

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
                return bool(argument.text)  # other programs may find a host in it
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
    """Return the problem of a host pattern, or an empty string."""
    if not _HOST.match(pattern):
        return "is not a host in small letters, such as example.org, *.example.org or localhost:8080"
    port = pattern.partition(":")[2]
    return f"has the usual port {port}: remove it, and write other ports only" if port in _USUAL_PORTS else ""


def _argument(keys: RuleKeys, name: str, value: object) -> ArgumentPatterns:
    """Return the patterns of one argument. A plain list has paths or hosts if the argument's last name says so."""
    form, last = "", name.rpartition(".")[2]
    if isinstance(value, dict):
        if len(value) != 1 or not value.keys() <= set(_FORMS):
            unknown = next((key for key in value if key not in _FORMS), "")
            near = nearest(unknown, _FORMS) if unknown else ""
            in_other = f'; an argument in another is written "{name}.{unknown}"' if unknown else ""
            keys.fail("where", f"{name}: must be {{path = [...]}} or {{host = [...]}}{near}{in_other}")
        ((form, value),) = value.items()
    elif last in _FORMS:
        form = last
    if problem := check_of("list of filled")(value):
        keys.fail("where", f"{name}: {problem}")
    texts = tuple(value) if isinstance(value, list) else ()
    if not name or not texts:
        keys.fail("where", f"{name}: must not be empty")
    if form == "path":
        return ArgumentPatterns(name=name, paths=keys.patterns("where", texts))
    for text in texts if form == "host" else ():
        if problem := host_problem(text):
            keys.fail("where", f"{name}: {text!r} {problem}")
    return ArgumentPatterns(name=name, hosts=texts) if form == "host" else ArgumentPatterns(name=name, words=texts)


class HostMatcher(Matcher):
    """Matches calls by the host that the tool contacts: `host`."""

    patterns: tuple[HostPattern, ...]

    keys: ClassVar = ("host",)
    of_parts: ClassVar = False
    can_hit: ClassVar = frozenset((ToolUse,))
    answers_for: ClassVar = frozenset((ToolUse,))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield the matcher if the rule names hosts."""
        if "host" not in keys:
            return
        try:
            patterns = host_patterns(keys.texts("host"))
        except ValueError as error:
            keys.fail("host", str(error))
        yield cls(patterns=patterns)

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the use holds the host
        """Return whether a pattern matches the host, or may match it."""
        if not isinstance(facet, ToolUse) or not facet.host:
            return False
        return any(_may_mean(facet, pattern) for pattern in self.patterns)

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether a pattern matches exactly this host and port."""
        if not isinstance(facet, ToolUse) or not facet.host:
            return False
        return any(pattern.matches(facet.host, facet.port) for pattern in self.patterns)

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - it hits every host that it covers
        """Return whether `other` has all of these patterns."""
        return isinstance(other, HostMatcher) and set(self.patterns) <= set(other.patterns)

    def words(self) -> str:
        """Return the hosts."""
        return f"to {quoted(pattern.text for pattern in self.patterns)}"

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule cannot have hosts. `None` if it can."""
        tools = rule.find(ToolMatcher)
        if rule.has_parts or rule.find(ArgumentMatcher) or (tools and tools.only_reads):
            return "host", "is about tools that go to a host, which have no argv, path, text, env or where"
        return None

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - in both kinds of rules
        """Return the form `HOSTS`."""
        return Examples.HOSTS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the sentence that the host is not covered."""
        return f"no pattern of `host` covers {facet.host!r}" if isinstance(facet, ToolUse) else not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the sentence that the host is not matched."""
        return f"no pattern of `host` matches {facet.host!r}" if isinstance(facet, ToolUse) else not_about(facet)

    def meaning(self, *, auto: bool) -> Hashable:  # noqa: ARG002 - in both kinds of rules
        """Return the patterns without their order."""
        return "host", frozenset(self.patterns)

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return the patterns."""
        return (frozenset(self.patterns),)


def _may_mean(use: ToolUse, pattern: HostPattern) -> bool:
    """Return whether a pattern of a strict rule matches a host.

    A pattern without a port matches every port. `*.example.org` matches `example.org` too.
    """
    if pattern.port not in (None, use.port):
        return False
    return pattern.matches(use.host, pattern.port or 443) or (pattern.below and use.host == pattern.host)
