"""The base class of matchers. A matcher is one condition of a rule, with all methods that other code calls on it.

The loader, `policy check`, `policy explain`, the trust question and the reference call the matchers of a rule.
matchers.py has the kinds, and the table `MATCHERS`. Files are special: the walls hide files according to `Rule.files`,
the rule's `FileMatcher`.
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
"""A key of the rule (empty: the rule itself), and the problem with it."""
EVERY_KIND: frozenset[type[Record]] = frozenset((Command, Opaque, PathAccess, ToolUse, Unconfined))


class Examples(Enum):
    """The form of a rule's examples (`match`, `not_match`). If its matchers differ, the last of their forms counts."""

    PATHS = "paths"
    COMMANDS = "command lines"
    ARGUMENTS = "arguments of a tool"
    HOSTS = "hosts"


class Matcher(Record):
    """One condition of a rule; a rule matches a facet if all of its matchers do.

    A new kind defines `keys`, `read`, `hits` and `words`. The other methods have safe defaults: the loader refuses an
    auto rule with the kind, and for `policy check` only an equal matcher of a strict rule implies it.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    """The keys of `[[rule]]` that it reads, the main one first. Empty if no policy file can have this matcher."""
    needs: ClassVar[Mapping[str, str]] = {}
    """The required other key, by the key that requires it."""
    can_hit: ClassVar[frozenset[type[Record]]] = EVERY_KIND
    """The kinds of facets that it can hit. Its rule is not tried on other kinds."""
    answers_for: ClassVar[frozenset[type[Record]]] = frozenset()
    """The kinds of facets that an auto rule with this matcher may cover. For other kinds it needs another matcher."""
    of_parts: ClassVar[bool] = True
    """Whether it matches parts of calls: commands, files, text. If not, it matches whole calls of tools."""
    walled: ClassVar[bool] = False
    """Whether a command that it covers runs inside walls, which limit it to the granted effects."""

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:  # noqa: ARG003 - the signature of the subclasses
        """Yield the matchers of this kind from the keys of a rule. Reports errors through `keys.fail`."""
        yield from ()

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it matches some of a facet, as needed for a strict rule. True if in doubt."""
        return True

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it accounts for a whole facet, as needed for an auto rule. False if in doubt."""
        return False

    def implies(self, other: Matcher, *, auto: bool) -> bool:
        """Return whether `other` hits every facet that this matcher matches. False if in doubt.

        A matcher matches the facets that it covers in an auto rule, and those that it hits in a strict rule.
        """
        return self == other and not auto

    def seen_from(self, workspace: str, top: str) -> Matcher:  # noqa: ARG002 - likewise
        """Return the matcher of a policy of the folder `top` for a workspace below it. Both are absolute."""
        return self

    def words(self) -> str:
        """Return the condition in words for people, to follow `every call`. Not yet safe to show."""
        raise NotImplementedError

    def covers_words(self, words: Sequence[str]) -> bool:  # noqa: ARG002 - likewise
        """Return whether it covers one command of a text that could only be split loosely."""
        return False

    @property
    def names_subject(self) -> bool:
        """Whether `words` names a command or files, so that it does not need `every call` before it."""
        return False

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why `rule`, which has this matcher, is invalid. `None` if it is valid."""
        is_strict_only = type(self).covers is Matcher.covers
        return (
            (self.keys[0], "no auto rule can have it: it covers nothing") if rule.is_auto and is_strict_only else None
        )

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - likewise
        """Return the form of the examples of a rule with this matcher."""
        return Examples.COMMANDS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why it does not cover a facet, without a full stop."""
        return not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why it does not hit a facet, without a full stop."""
        return not_about(facet)

    def nearness(self, facet: Facet) -> int:  # noqa: ARG002 - likewise
        """Return a number for how nearly it covers a facet. 0 if it does not concern the facet."""
        return 0

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:  # noqa: ARG002 - likewise
        """Return the argument that makes it hit the use of a tool. `None` if no argument does."""
        return None

    def meaning(self, *, auto: bool) -> Hashable:  # noqa: ARG002 - likewise
        """Return a key for the condition that ignores the order of words. Equal for matchers that match the same."""
        return self

    def marks(self, *, auto: bool) -> frozenset[str] | None:  # noqa: ARG002 - likewise
        """Return words (rule_index.py) that select the actions on which the rule is tried. `None`: it is tried on all.

        INVARIANT: it hits, or in an auto rule covers, no part of an action that has none of these words.
        """
        return None

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return sets of words, from which lint finds the rules that it has to compare.

        INVARIANT: a matcher that implies this one has a word of each of these sets in its own sets.
        """
        return (frozenset((self,)),)


def not_about(facet: Facet) -> str:
    """Return the sentence that a rule does not concern a facet, without a full stop."""
    return f"the rule is not about {describe_facet(facet)!r}"


def quoted(words: Iterable[str], between: str = ", ") -> str:
    """Return words quoted for a shell, for people to read."""
    import shlex

    return between.join(map(shlex.quote, words))


class RuleKeys:
    """The keys of one `[[rule]]`. Each is checked when it is read. An invalid one raises PolicyError through `fail`."""

    def __init__(
        self, table: Mapping[str, object], *, auto: bool, tools: Sequence[str], fail: Callable[[str, str], NoReturn]
    ) -> None:
        self._table = table
        self.auto = auto
        """Whether the rule's decision is auto."""
        self.tools = tools
        """The names of tools that the file may mention."""
        self.fail = fail
        """Function that raises PolicyError for a key with a problem."""

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def value(self, key: str, holds: str = "") -> Any:
        """Return the value of a key, `None` if it is absent. `holds` is its type, as written in text/fields.py."""
        if holds and key in self._table and (problem := check_of(holds)(self._table[key])):
            self.fail(key, problem)
        return self._table.get(key)

    def text(self, key: str) -> str:
        """Return a text. It is empty only if the key is absent."""
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
