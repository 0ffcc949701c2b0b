"""Rules of policy files, and the tests whether a rule covers or hits a part of an action.

An auto rule must cover a whole facet. A strict rule only needs to hit it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeVar

from harness.actions import (
    Access,
    Action,
    Decision,
    Facet,
    Opaque,
    PathAccess,
    Place,
    ToolArgument,
    ToolUse,
    Unconfined,
)
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.command_matchers import CommandMatcher
from harness.policy.hosts import HostPattern, Reach
from harness.policy.matcher import Matcher, not_about, quoted
from harness.policy.matchers import FileMatcher
from harness.policy.tool_matchers import HostMatcher, ToolMatcher
from harness.record import Record
from harness.tool_kinds import is_named

MatcherT = TypeVar("MatcherT", bound=Matcher)


class Layer(Enum):
    """The source of a rule or a default."""

    BUILT_IN = "built-in"
    MANAGED = "managed"
    FILE = "file"
    """A file given with --policy, or loaded by a program. It replaces USER and SHIPPED.

    Several such files each decide alone.
    """
    USER = "user"
    SHIPPED = "shipped"
    PROJECT = "project"
    REPOSITORY = "repository"
    """The policy at the top of the repository that the workspace is a folder of."""
    SESSION = "session"


class Origin(Record):
    """A place in a policy file."""

    file: str
    line: int
    root: str = ""
    """The named file that extends this one. Empty for a file that was named itself."""

    @property
    def unit(self) -> str:
        """The file that was named. It and the files that it extends decide as one."""
        return self.root or self.file

    def __str__(self) -> str:
        """Return `file:line`."""
        return f"{self.file}:{self.line}"


class Opens(Record):
    """Permissions that an auto rule grants to the commands it covers."""

    write: tuple[str, ...] = ()
    """Places that the commands may write, with everything below. Written as in `Effects.granted`."""
    network: bool = False
    """Whether the commands may reach the network."""
    hosts: tuple[str, ...] = ()
    """Hosts that the commands may reach if `network` is false (policy/hosts.py)."""

    @property
    def reaches(self) -> bool:
        """Whether it permits the network or some hosts."""
        return self.network or bool(self.hosts)

    @property
    def reach(self) -> Reach:
        """The hosts that may be reached."""
        return None if self.network else self.hosts

    def words(self) -> str:
        """Return the permissions in words for people. Empty if there are none."""
        may = [f"write {quoted(self.write)}"] if self.write else []
        if self.network:
            may.append("reach the network")
        elif self.hosts:
            may.append(f"reach only {quoted(self.hosts)}")
        return " and ".join(may)


class Rule(Record):
    """One `[[rule]]`, or a grant. It matches if all of its matchers do."""

    id: str
    decision: Decision
    origin: Origin
    layer: Layer
    matchers: tuple[Matcher, ...]
    """The matchers, in the order of MATCHERS (matchers.py)."""
    opens: Opens = Opens()
    reason: str = ""
    hint: str = ""

    @property
    def label(self) -> str:
        """The rule's id and place, as refusals and logs show it."""
        return f"{self.id} ({self.origin})"

    @property
    def is_auto(self) -> bool:
        """Whether it lets calls run without a question."""
        return self.decision is Decision.AUTO

    def find(self, kind: type[MatcherT]) -> MatcherT | None:
        """Return the rule's first matcher of a kind, or `None`."""
        for matcher in self.matchers:
            if isinstance(matcher, kind):
                return matcher
        return None

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that the rule names. Empty if it matches every tool."""
        matcher = self.find(ToolMatcher)
        return matcher.names if matcher else ()

    @property
    def only_reads(self) -> bool:
        """Whether the rule matches only external tools that only read."""
        matcher = self.find(ToolMatcher)
        return matcher is not None and matcher.only_reads

    @property
    def argv(self) -> ArgvPattern | None:
        """The pattern for the words of commands. `None` if the rule has none."""
        matcher = self.find(CommandMatcher)
        return matcher.argv if matcher else None

    @property
    def files(self) -> FileMatcher | None:
        """The matcher for files or for operands of commands. `None` if the rule has none."""
        return self.find(FileMatcher)

    @property
    def goes_to(self) -> tuple[HostPattern, ...]:
        """The host patterns of the rule. Empty if it has none."""
        matcher = self.find(HostMatcher)
        return matcher.patterns if matcher else ()

    @property
    def has_parts(self) -> bool:
        """Whether the rule matches parts of calls. If not, it matches whole calls of tools."""
        return any(matcher.of_parts for matcher in self.matchers)

    @property
    def walled(self) -> bool:
        """Whether a command that the rule permits runs only inside walls (verdict.py)."""
        return any(matcher.walled for matcher in self.matchers)

    @property
    def any_words(self) -> bool:
        """Whether it is a grant for any command inside walls, without naming one."""
        return self.walled and not any(matcher.names_subject for matcher in self.matchers)

    @property
    def marks(self) -> frozenset[str] | None:
        """Words of which an action has one if the rule matches a part of it (rule_index.py). `None` if unknown."""
        marks = (matcher.marks(auto=self.is_auto) for matcher in self.matchers)
        return next((words for words in marks if words is not None), None)

    def may_hit(self, kind: type[Record]) -> bool:
        """Return whether the rule could hit a facet of that kind."""
        for matcher in self.matchers:  # noqa: SIM110 - runs for every rule and facet, and is faster than `all`
            if kind not in matcher.can_hit:
                return False
        return True

    def may_cover(self, kind: type[Record]) -> bool:
        """Return whether the rule could cover a facet of that kind."""
        is_about_tools = False
        for matcher in self.matchers:
            if kind in matcher.answers_for:
                return True
            is_about_tools = is_about_tools or ToolUse in matcher.answers_for
        # The reads and writes of an external tool are parts of its use.
        return kind is PathAccess and is_about_tools and not self.has_parts

    def hits(self, action: Action, facet: Facet) -> bool:
        """Return whether this rule, as a strict rule, hits the facet."""
        for matcher in self.matchers:  # noqa: SIM110 - likewise
            if not matcher.hits(action, facet):
                return False
        return True

    def covers(self, action: Action, facet: Facet) -> bool:
        """Return whether this rule, as an auto rule, accounts for the whole facet."""
        if not self.may_cover(type(facet)):
            return False
        if isinstance(facet, ToolUse) or (isinstance(facet, PathAccess) and not self.has_parts):
            uses = [part for part in action.facets if isinstance(part, ToolUse)]
            is_here = not isinstance(facet, PathAccess) or _is_here(facet)
            return is_here and bool(uses) and all(self._covers_use(action, use) for use in uses)
        for matcher in self.matchers:  # noqa: SIM110 - likewise
            if not matcher.covers(action, facet):
                return False
        return True

    def covers_words(self, action: Action, facet: Opaque, words: Sequence[str]) -> bool:
        """Return whether this rule covers one command of a text that could only be split loosely."""
        return self.walled and all(
            matcher.covers_words(words) if matcher.of_parts else matcher.covers(action, facet)
            for matcher in self.matchers
        )

    def _covers_use(self, action: Action, use: ToolUse) -> bool:
        """Return whether the rule accounts for the use of a tool, including all reads and writes of the call."""
        if use.says_destroys and use.tool not in self.tools:  # a star may match tools that its author did not think of
            return False
        return all(matcher.covers(action, use) for matcher in self.matchers)

    def uncovered_words(self, action: Action, facet: Facet) -> str:
        """Return the reason why this rule, as an auto rule, does not cover a facet, without a full stop.

        Empty if it does.
        """
        if self.covers(action, facet):
            return ""
        if isinstance(facet, Unconfined):
            return "no rule covers a run without confinement"
        if isinstance(facet, Opaque):
            return f"{facet.text!r} is not plainly understood: {facet.reason}"
        matcher = next((matcher for matcher in self.matchers if not matcher.covers(action, facet)), None)
        if matcher is not None:
            return matcher.uncovered_words(action, facet)
        is_use = isinstance(facet, ToolUse) and facet.says_destroys
        return "the tool may destroy, and a star does not cover that" if is_use else not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:
        """Return the reason why this rule, as a strict rule, does not hit a facet, without a full stop.

        Empty if it does.
        """
        matcher = next((matcher for matcher in self.matchers if not matcher.hits(action, facet)), None)
        return "" if matcher is None else matcher.unhit_words(action, facet)

    def nearness(self, facet: Facet) -> int:
        """Return a number for how nearly the rule covers a facet. 0 if it does not concern the facet."""
        if isinstance(facet, ToolUse) and (self.has_parts or not is_named(facet.tool, self.tools)):
            return 0
        return sum(matcher.nearness(facet) for matcher in self.matchers)

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:
        """Return the argument that makes the rule hit the use of a tool. `None` if no argument does."""
        return next(filter(None, (matcher.argument_hit(use) for matcher in self.matchers)), None)

    def words(self) -> str:
        """Return the calls that the rule matches, in words for people. Not yet safe to show."""
        words = " ".join(matcher.words() for matcher in self.matchers)
        if any(matcher.names_subject for matcher in self.matchers):
            return words
        if words.startswith("by "):
            return f"every call of {words.removeprefix('by ')}"
        return f"every call {words}" if words else "everything"


def _is_here(path: PathAccess) -> bool:
    """Return whether a tool's path is in the workspace or the session's own `/tmp`.

    The workspace folder itself counts only for reading.
    """
    is_inside = path.place in (Place.INSIDE, Place.TEMPORARY)
    is_inside = is_inside or (path.place is Place.ROOT and path.access is Access.READ)
    return is_inside and path.is_whole
