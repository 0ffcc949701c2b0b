"""A matcher: one condition of a rule, and everything that others need to know of it.

The loader, `policy check`, `policy explain`, the trust question and the reference ask the matchers of a rule. matchers.py has
the kinds, and the table `MATCHERS`. Files are special: what walls hide comes from `Rule.files`, the rule's `FileMatcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from harness.actions import (
    Action,
    Command,
    Facet,
    Opaque,
    PathAccess,
    ToolArgument,
    ToolUse,
    Unconfined,
    describe_facet,
)
from harness.policy.patterns import PathPatterns, path_patterns
from harness.record import Record
from harness.text.fields import check_of

if TYPE_CHECKING:
    from harness.policy.rules import Rule

Problem: TypeAlias = "tuple[str, str]"
"""A key of the rule (empty: the rule itself), and what is wrong with it."""
EVERY_KIND: frozenset[type[Record]] = frozenset((Command, Opaque, PathAccess, ToolUse, Unconfined))


class Examples(Enum):
    """The form of a rule's examples (`match`, `not_match`). Of several matchers the last in this order decides."""

    PATHS = "paths"
    COMMANDS = "command lines"
    ARGUMENTS = "arguments of a tool"
    HOSTS = "hosts"


class Matcher(Record):
    """One condition of a rule; a rule matches a facet if all of its matchers do.

    A new kind defines `keys`, `read`, `hits` and `words`. The rest has defaults on the safe side: the loader refuses an auto
    rule with it, and `policy check` takes it to be implied by an equal one of a strict rule alone.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    """The keys of `[[rule]]` that it reads, the main one first. Empty if no file can say it."""
    needs: ClassVar[Mapping[str, str]] = {}
    """Keys that need another key, and that key."""
    can_hit: ClassVar[frozenset[type[Record]]] = EVERY_KIND
    """The kinds of facets that it can hit. A rule is not asked about others."""
    answers_for: ClassVar[frozenset[type[Record]]] = frozenset()
    """The kinds of facets that an auto rule may cover because it has this matcher. Every rule needs one that answers."""
    of_parts: ClassVar[bool] = True
    """Whether it is about parts of calls: commands, files, text. If not, it is about whole calls of tools."""
    walled: ClassVar[bool] = False
    """Whether a command that it covers runs inside walls, which hold it to what is granted."""

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:  # noqa: ARG003 - as its kinds define it
        """Yield the matchers that the keys of a rule say. Fails through `keys`."""
        yield from ()

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it touches a facet, as a strict rule asks. In doubt it does."""
        return True

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it accounts for a whole facet, as an auto rule asks. In doubt it does not."""
        return False

    def implies(self, other: Matcher, *, auto: bool) -> bool:
        """Return whether `other` hits every facet that this matches. In doubt it does not.

        In an auto rule this matches the facets that it covers, in a strict rule those that it hits.
        """
        return self == other and not auto

    def words(self) -> str:
        """Return it in words for a person, to follow `every call`. Not yet safe to show."""
        raise NotImplementedError

    @property
    def names_subject(self) -> bool:
        """Whether its words name a command or files by themselves, without `every call` in front."""
        return False

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why `rule`, which has it, is invalid. `None` if it is valid."""
        is_strict_only = type(self).covers is Matcher.covers
        return (
            (self.keys[0], "no auto rule can have it: it covers nothing") if rule.is_auto and is_strict_only else None
        )

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - likewise
        """Return the form of the examples of a rule that has it."""
        return Examples.COMMANDS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why it does not cover a facet, without a full stop."""
        return not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why it does not hit a facet, without a full stop."""
        return not_about(facet)

    def nearness(self, facet: Facet) -> int:  # noqa: ARG002 - likewise
        """Return its nearness to covering a facet; 0 if it is about something else."""
        return 0

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:  # noqa: ARG002 - likewise
        """Return the argument by which it hits the use of a tool. `None` if it hits by none."""
        return None

    def meaning(self, *, auto: bool) -> Hashable:  # noqa: ARG002 - likewise
        """Return its meaning, whatever the order of its words. It is equal for matchers that match the same."""
        return self

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return sets of words, for lint to find the rules that it has to compare.

        INVARIANT: a matcher that implies this one has a word of each of these sets in its own.
        """
        return (frozenset((self,)),)


def not_about(facet: Facet) -> str:
    """Return the sentence about a rule that has nothing to do with a facet, without a full stop."""
    return f"the rule is not about {describe_facet(facet)!r}"


def quoted(words: Iterable[str], between: str = ", ") -> str:
    """Return words as a shell would take them, for people."""
    import shlex

    return between.join(map(shlex.quote, words))


class RuleKeys:
    """The keys of one `[[rule]]`. Each is checked as it is read; a mistake raises through `fail`."""

    def __init__(
        self, table: Mapping[str, object], *, auto: bool, tools: Sequence[str], fail: Callable[[str, str], NoReturn]
    ) -> None:
        self._table = table
        self.auto = auto
        """Whether the rule's decision is auto."""
        self.tools = tools
        """The names of tools that the file may speak of."""
        self.fail = fail
        """Raises PolicyError for a key, with what is wrong with it."""

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def value(self, key: str, holds: str = "") -> Any:
        """Return the value of a key, `None` if it is absent. `holds` is its type as text/fields.py writes it."""
        if holds and key in self._table and (problem := check_of(holds)(self._table[key])):
            self.fail(key, problem)
        return self._table.get(key)

    def text(self, key: str) -> str:
        """Return a text, which is not empty unless the key is absent."""
        return self.value(key, "filled") or ""

    def texts(self, key: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Return a list of texts."""
        texts = tuple(self.value(key, "list of text") or ())
        if key in self and not texts and not may_be_empty:
            self.fail(key, "must not be empty")
        return texts

    def flag(self, key: str) -> bool:
        """Return true or false; false if the key is absent."""
        return bool(self.value(key, "flag"))

    def patterns(self, key: str, texts: tuple[str, ...]) -> PathPatterns:
        """Return the path patterns that a key lists."""
        try:
            return path_patterns(texts)
        except ValueError as error:
            self.fail(key, str(error))
