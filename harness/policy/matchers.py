"""The kinds of matchers of `[[rule]]`, listed in `MATCHERS`. Those for files and text are defined here.

To add one, write a subclass of `Matcher` here and put it into `MATCHERS`. The loader gets its keys from that table.

Make a new condition on files a key of `FileMatcher`, not another matcher: the walls hide the files that a strict rule
forbids, and read them from `Rule.files` (tools/forbidden_files.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from harness.actions import Access, Action, Command, Facet, Opaque, PathAccess, Place, ToolArgument, ToolUse
from harness.errors import nearest
from harness.policy.command_matchers import CommandMatcher, tools_problem
from harness.policy.matcher import Examples, Matcher, Problem, RuleKeys, not_about, quoted
from harness.policy.patterns import PathPatterns
from harness.policy.tool_matchers import ArgumentMatcher, HostMatcher, ToolMatcher
from harness.record import replace

if TYPE_CHECKING:
    from harness.policy.rules import Rule

_COVERED = (Place.INSIDE, Place.TEMPORARY)
"""Places of the paths that path patterns of an auto rule can cover."""


class FileMatcher(Matcher):
    """The names of files, and the kind of access to them: `path`, `access`, `except`."""

    patterns: PathPatterns
    access: tuple[Access, ...]
    exceptions: PathPatterns | None = None

    keys: ClassVar = ("path", "access", "except")
    needs: ClassVar = {"access": "path", "except": "path"}
    can_hit: ClassVar = frozenset((PathAccess, ToolUse))
    answers_for: ClassVar = frozenset((PathAccess,))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield the matcher if the rule is about files. If it names commands too, the files are their operands."""
        if "path" not in keys:
            return
        access_by_name = {access.value: access for access in (Access.READ, Access.WRITE)}
        words = keys.texts("access") or tuple(access_by_name)
        for word in words:
            if word not in access_by_name:
                keys.fail("access", f"unknown access {word!r}{nearest(word, access_by_name)}")
        patterns = keys.patterns("path", keys.texts("path"))
        exceptions = keys.patterns("except", keys.texts("except")) if "except" in keys else None
        of_operands = "argv" in keys or ("env" in keys and not keys.auto)
        kind = OperandMatcher if of_operands else cls
        yield kind(patterns=patterns, access=tuple(access_by_name[word] for word in words), exceptions=exceptions)

    def seen_from(self, workspace: str, top: str) -> Matcher:
        """Return the matcher with patterns relative to `top`."""
        exceptions = None if self.exceptions is None else self.exceptions.seen_from(workspace, top)
        return replace(self, patterns=self.patterns.seen_from(workspace, top), exceptions=exceptions)

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the facet holds the names
        """Return whether it matches a path, or an argument of a tool that may be a path."""
        match facet:
            case PathAccess():
                return self.hits_path(facet)
            case ToolUse():
                return self.argument_hit(facet) is not None
            case _:
                return False

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it matches a path of the workspace by all of its names, and everything below it."""
        return isinstance(facet, PathAccess) and self.covers_path(facet)

    def covers_path(self, path: PathAccess) -> bool:
        """Return whether it covers a path."""
        if path.place not in _COVERED or not self._accounts_for(path.access) or not path.is_whole:
            return False
        # Patterns cover no absolute name, and no other file of the session's own `/tmp` can be meant.
        names = [name.lstrip("/") for name in path.names] if path.place is Place.TEMPORARY else path.names
        return not self._excepts(path) and self.patterns.covers((*names, *path.below))

    def _accounts_for(self, access: Access) -> bool:
        """Return whether `self.access` has this access. An operand that may be read or written needs both."""
        required = (Access.READ, Access.WRITE) if access is Access.EITHER else (access,)
        return all(each in self.access for each in required)

    def _excepts(self, path: PathAccess) -> bool:
        if self.exceptions is None:
            return False
        return self.exceptions.hits(path.names) or next(self.exceptions.hit_among(path.below), None) is not None

    def hits_path(self, path: PathAccess) -> bool:
        """Return whether it matches a path, or a file below it."""
        if path.access is not Access.EITHER and path.access not in self.access:
            return False
        if path.tree and next(self.meant_below(path), ""):
            return True  # even if `exceptions` matches the folder itself, since exceptions are names of files
        return self._hits_names(path.names)

    def hits_only_below(self, path: PathAccess) -> bool:
        """Return whether it matches files below the path, but not the path itself."""
        return path.tree and not self._hits_names(path.names) and next(self.meant_below(path), "") != ""

    def _hits_names(self, names: Sequence[str]) -> bool:
        return self.patterns.hits(names) and (self.exceptions is None or not self.exceptions.covers(names))

    def meant_below(self, path: PathAccess) -> Iterator[str]:
        """Yield the files below the path that match and are not excepted. Some are yielded twice."""
        names = self.patterns.hit_among(path.below)
        yield from (name for name in names if self.exceptions is None or not self.exceptions.covers((name,)))

    def argument_hit(self, use: ToolUse) -> ToolArgument | None:
        """Return the first argument that may be a matching file. Any text may be a path that the tool uses."""
        if use.writes_nothing and Access.READ not in self.access:
            return None
        return next((each for each in use.arguments if not each.name or self._hits_names(each.names)), None)

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - it hits every path that it covers
        """Return whether `other` matches all files that this matcher matches."""
        return (
            type(other) is FileMatcher
            and self.patterns.top == other.patterns.top
            and set(self.patterns.patterns) <= set(other.patterns.patterns)
            and set(self.access) <= set(other.access)
            and _patterns_of(other.exceptions) <= _patterns_of(self.exceptions)
        )

    def words(self) -> str:
        """Return the access and the patterns."""
        return f"{self._access_words()} {self._pattern_words()}"

    def _access_words(self) -> str:
        return " and ".join(access.value for access in self.access)

    def _pattern_words(self) -> str:
        text = quoted(self.patterns.patterns)
        return text if self.exceptions is None else f"{text} but not {quoted(self.exceptions.patterns)}"

    @property
    def names_subject(self) -> bool:
        """True, since `words` names files."""
        return True

    def problem(self, rule: Rule) -> Problem | None:  # noqa: ARG002 - it is valid in every rule
        """Return `None`: it is valid in every rule."""
        return None

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - in both kinds of rules
        """Return the form `PATHS`."""
        return Examples.PATHS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why a path is not covered."""
        if not isinstance(facet, PathAccess):
            return not_about(facet)
        if facet.place not in _COVERED:
            return f"{facet.written!r} does not lie in the workspace"
        if not self._accounts_for(facet.access):
            return f"`access` does not list {facet.access.value}"
        return f"`except` covers {facet.written!r}" if self._excepts(facet) else self._no_pattern(facet)

    def _no_pattern(self, path: PathAccess) -> str:
        return f"no pattern of `path` covers {path.written!r}{self._anchored(path)}"

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the reason why a path is not hit."""
        if not isinstance(facet, PathAccess):
            return not_about(facet)
        if facet.access not in (Access.EITHER, *self.access):
            return f"`access` does not list {facet.access.value}"
        if self.patterns.hits(facet.names):
            return f"`except` covers {facet.written!r}"
        return f"no pattern of `path` matches {facet.written!r}{self._anchored(facet)}"

    def _anchored(self, path: PathAccess) -> str:
        """Return the remedy if a pattern would match below another folder. Empty if none would."""
        for pattern in self.patterns.patterns:
            free = f"**/{pattern}"
            if "/" in pattern[1:-1] and pattern[0] != "/" and PathPatterns(patterns=(free,)).hits(path.names):
                return f": one with a slash inside begins at the workspace, so write {free!r}"
        return ""

    def nearness(self, facet: Facet) -> int:
        """Return 1 if a pattern covers the path."""
        return int(isinstance(facet, PathAccess) and self.patterns.covers(facet.names))

    def meaning(self, *, auto: bool) -> Hashable:  # noqa: ARG002 - in both kinds of rules
        """Return the patterns and the access without their order."""
        patterns = frozenset(self.patterns.patterns)
        return type(self), patterns, frozenset(self.access), frozenset(_patterns_of(self.exceptions))

    def marks(self, *, auto: bool) -> frozenset[str] | None:  # noqa: ARG002 - in both kinds of rules
        """Return the marks of the patterns."""
        return self.patterns.marks

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return the patterns."""
        return (frozenset(self.patterns.patterns),)


def _patterns_of(patterns: PathPatterns | None) -> set[str]:
    return set() if patterns is None else set(patterns.patterns)


class OperandMatcher(FileMatcher):
    """Files that are operands of the commands in the same rule."""

    can_hit: ClassVar = frozenset((Command, Opaque))
    answers_for: ClassVar = frozenset[type]()

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the facet holds the names
        """Return whether it matches an operand."""
        return isinstance(facet, Command | Opaque) and any(map(self.hits_path, facet.paths))

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether it covers every operand."""
        return isinstance(facet, Command) and all(map(self.covers_path, facet.paths))

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - likewise
        """Return False, since a command may have no operand."""
        return False

    def words(self) -> str:
        """Return the access and the patterns, to follow the words of the command."""
        return f"naming only files to {self._access_words()}: {self._pattern_words()}"

    def marks(self, *, auto: bool) -> frozenset[str] | None:
        """Return the marks of the patterns. `None` for an auto rule, since a command may have no operand."""
        return None if auto else super().marks(auto=auto)

    def examples(self, *, auto: bool) -> Examples:  # noqa: ARG002 - likewise
        """Return the form `COMMANDS`."""
        return Examples.COMMANDS

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return a sentence about the first operand that is not covered."""
        paths = facet.paths if isinstance(facet, Command) else ()
        return next((self._no_pattern(path) for path in paths if not self.covers_path(path)), not_about(facet))

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return the sentence that no operand is hit."""
        return "no operand matches `path`" if isinstance(facet, Command) else not_about(facet)

    def nearness(self, facet: Facet) -> int:  # noqa: ARG002 - likewise
        """Return 0, since the rule's `CommandMatcher` counts the words."""
        return 0


class TextMatcher(Matcher):
    """A text that occurs in the raw command line: `text`. For strict rules only."""

    text: str

    keys: ClassVar = ("text",)
    can_hit: ClassVar = frozenset((Command, Opaque, PathAccess))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield the matcher if the rule names a text."""
        if text := keys.text("text"):
            yield cls(text=text)

    def hits(self, action: Action, facet: Facet) -> bool:
        """Return whether the text occurs in the line that a facet is a part of."""
        return type(facet) in self.can_hit and self.text in action.text

    def implies(self, other: Matcher, *, auto: bool) -> bool:  # noqa: ARG002 - no auto rule has it
        """Return whether the text of `other` occurs in this one."""
        return isinstance(other, TextMatcher) and other.text in self.text

    def words(self) -> str:
        """Return the text."""
        return f"with {quoted((self.text,))} in it"

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule cannot have a text."""
        if rule.is_auto:
            return "text", "an auto rule cannot be about a piece of text: use argv"
        return tools_problem(rule)

    def unhit_words(self, action: Action, facet: Facet) -> str:
        """Return the sentence that the text is missing."""
        return f"the text {self.text!r} does not occur" if self.text not in action.text else not_about(facet)

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return no sets, since a longer text may contain this one."""
        return ()


MATCHERS: tuple[type[Matcher], ...] = (
    CommandMatcher, FileMatcher, TextMatcher, ToolMatcher, ArgumentMatcher, HostMatcher,
)  # fmt: skip
"""The kinds of matchers in policy files. A rule has its matchers in this order."""


def read_matchers(keys: RuleKeys) -> Iterator[Matcher]:
    """Yield the matchers for the keys of a rule."""
    for kind in MATCHERS:
        for key, other in kind.needs.items():
            if key in keys and other not in keys:
                keys.fail(key, f"needs {other}")
        yield from kind.read(keys)
