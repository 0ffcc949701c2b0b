"""The patterns for paths (`PathPatterns`).

`covers` is for auto rules: every name of a file must match. `hits` is for strict rules: one name, in any letter case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from harness.paths import TreeNames, fold, name_from_top
from harness.record import Record, replace

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_GLOB_CHARACTERS = frozenset("*?[\\")
_UNCERTAIN = frozenset("[\\")
"""Characters that change the meaning of others after them."""


class PathPatterns(Record):
    """Gitignore patterns (https://git-scm.com/docs/gitignore, without `!`), relative to the workspace.

    For git and for strict rules, `*.md` also matches a folder of that name with all its content. For auto rules it
    matches only files: only `docs/` and `docs/**` match the content of a folder.
    """

    patterns: tuple[str, ...]
    top: str = ""
    """The folder that the patterns are relative to, if it is one above the workspace (absolute, links followed)."""
    below: str = ""
    """The name of the workspace relative to `top`."""

    __slots__ = ("__dict__",)

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether every name, as the name of a file, matches exactly as written. False for absolute names."""
        compiled = self._compiled
        return all(not name.startswith("/") and _is_meant(compiled, name) for name in map(self._from_top, names))

    def hits(self, names: Sequence[str]) -> bool:
        """Return whether any name, or a folder above it, matches. Names match as written or case-folded (`fold`)."""
        return any(self._matches(name) or self._matches_folded(name) for name in map(self._from_top, names))

    def hit_among(self, names: TreeNames) -> Iterator[str]:
        """Yield the names for which `hits` is true, some of them twice. Quick if few of many names match.

        INVARIANT: the expressions find all of them, and perhaps more; `hits` alone decides.
        """
        if self.top:
            names = names.seen_from(self.top, self.below)
        ways = [(self._folded, names.folded)]
        if self._compiled.hard or not names.lines.isascii():  # otherwise every match as written is a folded match too
            ways.append((self, names.lines))
        for patterns, text in ways:
            for expression in patterns._expressions:  # noqa: SLF001 - its own class
                yield from (name for name in names.find(expression, text) if self.hits((name,)))

    @cached_property
    def marks(self) -> frozenset[str] | None:
        """Words of which each path has one that matches: a part of its name, or the end of one from its last dot.

        They are folded. `None` if a path may match without any of them.
        """
        marks = frozenset(map(_mark, self.patterns))
        return None if "" in marks or not marks.isdisjoint(path_marks(self.below)) else marks

    def seen_from(self, workspace: str, top: str) -> PathPatterns:
        """Return the patterns of the folder `top` for a workspace below it. Both are absolute, links followed."""
        return replace(self, top=top, below=workspace.removeprefix(top).strip("/"))

    def _from_top(self, name: str) -> str:
        """Return a name relative to the workspace as one relative to `top`. Absolute names of other places stay."""
        return name_from_top(name, self.top, self.below) if self.top else name

    def _matches_folded(self, name: str) -> bool:
        folded = fold(name)
        if folded == name and self._folded is self:
            return False
        return self._folded._matches(folded)  # noqa: SLF001 - its own class

    def _matches(self, name: str) -> bool:
        compiled = self._compiled
        parts = name.strip("/").split("/")
        if not compiled.names.isdisjoint(parts) or (compiled.folders and not compiled.folders.isdisjoint(parts)):
            return True
        if compiled.endings:
            for part in parts:
                if part.endswith(compiled.endings):
                    return True
        inside = name[:1] != "/"
        if any(_simple_match(each, parts, inside=inside) for each in compiled.simple):
            return True
        return bool(compiled.hard) and _pathspec_match(compiled.hard, name)

    @cached_property
    def _folded(self) -> PathPatterns:
        """The same patterns, case-folded and relative to `top`. This object itself if they are folded as written."""
        folded = tuple(map(fold, self.patterns))
        return self if folded == self.patterns else PathPatterns(patterns=folded)

    @cached_property
    def _compiled(self) -> _Compiled:
        return _compiled(self.patterns)

    @cached_property
    def _expressions(self) -> tuple[re.Pattern[str], ...]:
        return _expressions(self._compiled)


def _mark(pattern: str) -> str:
    """Return a word of every path that a pattern matches (`PathPatterns.marks`). Empty if none is certain."""
    if not pattern.isascii() or pattern != pattern.strip() or not _UNCERTAIN.isdisjoint(pattern):
        return ""
    for part in reversed(pattern.split("/")):
        end = part[part.rfind(".") :] if "." in part else ""
        for word in (part, end):
            if word and _GLOB_CHARACTERS.isdisjoint(word):
                return word.lower()
    return ""


def path_marks(text: str) -> set[str]:
    """Return the words that `PathPatterns.marks` may have for names. `text` has them between slashes."""
    parts = set(fold(text).split("/"))
    return parts | {part[part.rindex(".") :] for part in parts if "." in part}


def _is_meant(compiled: _Compiled, name: str) -> bool:
    """Return whether a pattern matches the file `name` itself, or the entire content of a folder above it."""
    *folders, last = parts = name.strip("/").split("/")
    if last in compiled.names or last.endswith(compiled.endings) or not compiled.folders.isdisjoint(folders):
        return True
    return any(_leads_to(each, parts) for each in compiled.ways)


class _Compiled(Record):
    """Patterns grouped by the way to match them. Most are a name or an ending, at any depth."""

    names: frozenset[str]
    folders: frozenset[str]
    endings: tuple[str, ...]
    simple: tuple[_SimplePattern, ...]
    hard: tuple[str, ...]
    """Patterns that pathspec matches."""
    ways: tuple[_Way, ...]
    """The patterns in `simple` and `hard`, in the stricter reading of auto rules."""


class _SimplePattern(Record):
    parts: tuple[str, ...]
    anchored: bool


class _Way(Record):
    """A pattern as parts of a path; `**` matches any number of parts."""

    parts: tuple[str, ...]
    below: bool
    """Whether the pattern matches the content of a folder."""


def _compiled(patterns: tuple[str, ...]) -> _Compiled:
    """Return `patterns` in groups."""
    names, folders, endings, simple, hard, ways = [], [], [], [], [], []
    for pattern in patterns:
        if not is_simple(pattern):
            hard.append(pattern)
            ways.append(_way(pattern))
        elif "/" not in pattern and "*" not in pattern:
            names.append(pattern)
        elif "/" not in pattern[:-1] and "*" not in pattern:
            folders.append(pattern[:-1])
        elif "/" not in pattern and pattern.startswith("*"):
            endings.append(pattern[1:])
        else:
            pattern_parts = tuple(pattern.removeprefix("**/").strip("/").split("/"))
            anchored = not pattern.startswith("**/") and (pattern.startswith("/") or len(pattern_parts) > 1)
            simple.append(_SimplePattern(parts=pattern_parts, anchored=anchored))
            ways.append(_way(pattern))
    return _Compiled(
        names=frozenset(names),
        folders=frozenset(folders),
        endings=tuple(endings),
        simple=tuple(simple),
        hard=tuple(hard),
        ways=tuple(ways),
    )


def _way(pattern: str) -> _Way:
    anchored = "/" in pattern.rstrip("/")
    text = ("" if anchored else "**/") + pattern.strip("/")
    if pattern.endswith("/**"):
        text += "/*"  # everything below, but not the folder itself
    return _Way(parts=tuple(text.split("/")), below=pattern.endswith("/"))


def is_simple(pattern: str) -> bool:
    """Return whether a pattern has only names with at most one `*` each, maybe after `**/`. Needs no pathspec."""
    if "//" in pattern:
        return False
    pattern = pattern.removeprefix("**/")
    if not pattern.strip("/") or "**" in pattern:
        return False
    return not _GLOB_CHARACTERS.intersection(pattern) or (
        not _GLOB_CHARACTERS.intersection(pattern.replace("*", ""))
        and all(p.count("*") <= 1 for p in pattern.split("/"))
    )


def _simple_match(pattern: _SimplePattern, parts: Sequence[str], *, inside: bool) -> bool:
    """Return whether a simple pattern matches as in gitignore. A test compares this with pathspec."""
    if pattern.anchored and not inside:
        return False
    last = len(parts) - len(pattern.parts)
    starts = range(min(last + 1, 1)) if pattern.anchored else range(last + 1)
    return any(all(map(_part_match, pattern.parts, parts[start:])) for start in starts)


def _leads_to(way: _Way, parts: Sequence[str]) -> bool:
    """Return whether a pattern, compared part by part, matches all of `parts`, or with `below` a folder above them."""
    ends = {0}
    for pattern_part in way.parts:
        if pattern_part == "**":
            ends = set(range(min(ends, default=len(parts) + 1), len(parts) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(parts) and _part_means(pattern_part, parts[end])}
    return not ends.isdisjoint(range(1, len(parts)) if way.below else (len(parts),))


def _part_means(pattern_part: str, part: str) -> bool:
    if is_simple(pattern_part):
        return _part_match(pattern_part, part)
    return bool(_spec((f"/{pattern_part}",), inside=True).match_file(part.replace("\n", "\ufffd")))


def _part_match(pattern_part: str, part: str) -> bool:
    if "*" not in pattern_part:
        return pattern_part == part
    before, _, after = pattern_part.partition("*")
    return len(part) >= len(before) + len(after) and part.startswith(before) and part.endswith(after)


def _pathspec_match(patterns: tuple[str, ...], name: str) -> bool:
    spec = _spec(patterns, inside=name[:1] != "/")
    plain = name.strip("/").replace("\n", "\ufffd")  # pathspec's `**` does not match a line break
    return bool(spec.match_file(plain) or spec.match_file(plain + "/"))


_specs: dict[tuple[tuple[str, ...], bool], GitIgnoreSpec] = {}


def _spec(patterns: tuple[str, ...], *, inside: bool) -> GitIgnoreSpec:
    """Return the compiled patterns. Without `inside` (a path outside the workspace), the anchored ones are left out."""
    key = (patterns, inside)
    if key not in _specs:
        from pathspec import GitIgnoreSpec

        lines = patterns if inside else tuple(p for p in patterns if "/" not in p.rstrip("/") or p.startswith("**/"))
        _specs[key] = GitIgnoreSpec.from_lines(lines)
    return _specs[key]


def _expressions(compiled: _Compiled) -> tuple[re.Pattern[str], ...]:
    """Return expressions that find every matching name in a text of many names (`TreeNames.lines`).

    The alternatives' common first or last character is factored out, which makes a search four times as fast.
    """
    inside = [re.escape(name) for name in (*compiled.names, *compiled.folders)]
    anchored: list[str] = []
    for each in compiled.simple:
        expression = "/".join(re.escape(part).replace(r"\*", "[^/]*") for part in each.parts)
        (anchored if each.anchored else inside).append(expression)
    forms = {
        "/(?:%s)/": inside,
        "\n/(?:%s)/": anchored,
        "(?:%s)/": list(map(re.escape, compiled.endings)),
        "%s": list(map(_on_lines, compiled.hard)),
    }
    return tuple(re.compile(form % "|".join(ways), re.MULTILINE) for form, ways in forms.items() if ways)


def _on_lines(pattern: str) -> str:
    """Return pathspec's expression for one pattern, changed to match the same names on lines of a text."""
    (compiled,) = _spec((pattern,), inside=True).patterns
    text = "(?!)" if compiled.regex is None else str(compiled.regex.pattern)
    return re.sub(r"^\^", "^/+", re.sub(r"\(\?P<\w+>", "(?:", text))


def path_patterns(texts: tuple[str, ...]) -> PathPatterns:
    """Return the patterns that a policy file lists. Raises ValueError, which names the pattern and its problem."""
    for text in texts:
        if problem := check_pattern(text):
            raise ValueError(f"the pattern {text!r} {problem}")
    return PathPatterns(patterns=texts)


def check_pattern(pattern: str) -> str | None:
    """Return the problem of a path pattern, or `None`.

    Refused, because they do not mean what they seem to: negation, comments, blanks at either end, `..`, `~`.
    """
    if not pattern.strip("/"):
        return "is empty"
    if pattern[0] in "!#":
        return f"begins with {pattern[0]!r}; exceptions are written in `except`"
    if pattern != pattern.strip():
        return "begins or ends with a blank, which gitignore patterns drop"
    if not {"..", "."}.isdisjoint(pattern.split("/")) or "//" in pattern:
        return "contains `..`, `.` or `//`; patterns are matched against resolved paths"
    if pattern[0] == "~":
        return "begins with `~`; patterns are relative to the workspace (a name without `/` matches anywhere)"
    if not pattern.isprintable():
        return "contains a character that cannot be shown"
    if not is_simple(pattern):
        from pathspec import GitIgnoreSpec

        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError as error:
            return f"is not a gitignore pattern: {error}"
    return None
