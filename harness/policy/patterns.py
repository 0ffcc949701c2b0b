"""The patterns of matchers: for the words of a command (`ArgvPattern`) and for paths (`PathPatterns`).

`covers` is for auto rules and must account for every word. `hits` is for strict rules; one matching part is enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from harness.paths import TreeNames, fold
from harness.programs.catalog import options_in
from harness.programs.runners import name_of
from harness.record import Record

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NUMBER_FLAG = "-NUM"
"""Entry in a list of flags for a dash and digits, as in `head -20`."""

OPERAND_FLAGS = {"+WORD": "+", ":WORD": ":"}
"""Entries in the flags of a strict rule for operands with this beginning, as in `git push origin +main` or `:main`."""

_GLOB_CHARACTERS = frozenset("*?[\\")


class ArgvPattern(Record):
    """A pattern for the words of a command. Each token is a tuple of alternatives; `rest` allows any further words."""

    tokens: tuple[tuple[str, ...], ...]
    rest: bool
    flags: tuple[str, ...] | None = None

    def covers(self, argv: Sequence[str]) -> bool:
        """Return whether this pattern accounts for every word of `argv`, as needed for an auto rule.

        The program is compared as written: `/tmp/pytest` is not `pytest`. Options may be anywhere after the pattern's
        own words; an unlisted one is not covered. Clustered letters and joined values are split if the program is known
        to split them (options_in).
        """
        return self.uncovered_place(argv) is None

    def uncovered_place(self, argv: Sequence[str]) -> int | None:
        """Return the index of the first word of `argv` that the pattern does not cover. `None` if it covers all words.

        If a word is missing, the index is the length of `argv`.
        """
        for place, token in enumerate(self.tokens):
            if place >= len(argv) or argv[place] not in token:
                return place
        for place in range(len(self.tokens), len(argv)):
            word = argv[place]
            if _is_option(word):
                if not _is_listed(argv, word, self.flags or ()):
                    return place
            elif not self.rest or (len(word) > 1 and word[0] == "@"):
                return place  # many programs read further options from `@file`
        return None

    def uncovered_words(self, argv: Sequence[str]) -> str:
        """Return a sentence about the word at `uncovered_place`, without its full stop. Empty if all words are covered."""
        place = self.uncovered_place(argv)
        if place is None:
            return ""
        if place < len(self.tokens):
            token = self.tokens[place]
            expected = " or ".join(map(repr, token))
            if place >= len(argv):
                return f"word {place + 1} is missing, and `argv` has {expected} there"
            if place == 0:
                return f"the program is {argv[0]!r}, not {expected}"
            problem = f"word {place + 1} is {argv[place]!r}, not {expected}"
            if _is_option(argv[place]):
                return f"{problem}: write an option that stands there as a word of `argv`"
            return (
                f"{problem}: `argv` takes no patterns, so list the words"
                if _GLOB_CHARACTERS.intersection(expected)
                else problem
            )
        word = argv[place]
        if _is_option(word):
            letter = next((each for each in options_in(argv, word) if each not in (self.flags or ())), word)
            return f"the option {letter!r} is not in `flags`"
        if self.rest:
            return f"{word!r} may name a file of further options"
        return f"{word!r} follows the words of `argv`, which do not end in '...'"

    def unhit_words(self, argv: Sequence[str]) -> str:
        """Return the reason why a strict rule with this pattern does not hit `argv`, without a full stop.

        Empty if it does.
        """
        if not argv or name_of(argv[0]) not in _programs(self.tokens):
            return f"the program is {argv[0] if argv else ''!r}, not {' or '.join(map(repr, self.tokens[0]))}"
        for count in range(1, len(self.tokens)):
            if _after_prefix(argv, {1}, self.tokens[1 : count + 1]) is None:
                before, expected = " or ".join(self.tokens[count - 1]), " or ".join(map(repr, self.tokens[count]))
                is_option = any(map(_is_option, self.tokens[count]))
                remedy = ": write options in `flags`, which takes them in any order" if is_option else ""
                return f"{before!r} is not followed by {expected}{remedy}"
        return "" if self.hits(argv) else "no option of `flags` follows"

    def hits(self, argv: Sequence[str]) -> bool:
        """Return whether `argv` begins with this pattern, as needed for a strict rule.

        The program is compared without its folder, and options between the words (with or without a value) are
        skipped: `/usr/bin/git -C x push` begins with `git push`. If the pattern has flags, one of them must follow.
        """
        return bool(argv) and name_of(argv[0]) in _programs(self.tokens) and self._hits_from(argv, {1})

    def hits_anywhere(self, words: Sequence[str]) -> bool:
        """Return whether the pattern hits at any position of loosely split words. Errs on the strict side."""
        programs = _programs(self.tokens)
        return self._hits_from(words, {place for place, word in enumerate(words, 1) if name_of(word) in programs})

    def _hits_from(self, argv: Sequence[str], starts: set[int]) -> bool:
        """Return whether the tokens after the program, and a required flag, follow one of the indexes in `starts`."""
        after = _after_prefix(argv, starts, self.tokens[1:])
        if after is None:
            return False
        return self.flags is None or any(_is_flag(flag, word) for flag in self.flags for word in argv[after:])


def argv_pattern(value: object, flags: tuple[str, ...] | None = None) -> ArgvPattern:
    """Return the pattern that a policy file writes as a list of words. Raises ValueError with the problem as its text."""
    problem = 'must be a list of words, such as ["git", ["status", "diff"], "..."]'
    if not isinstance(value, list) or not value:
        raise ValueError(problem)
    rest = value[-1] == "..."
    tokens = []
    for token in value[:-1] if rest else value:
        alternatives = token if isinstance(token, list) else [token]
        if not alternatives or not all(isinstance(word, str) and word for word in alternatives):
            raise ValueError(problem)
        if "..." in alternatives:
            raise ValueError('"..." must be the last word')
        tokens.append(tuple(alternatives))
    if not tokens:
        raise ValueError("names no program")
    for program in tokens[0]:
        if any(char.isspace() for char in program):
            raise ValueError(f"{program!r} is one word; write each word of the command by itself")
    return ArgvPattern(tokens=tuple(tokens), rest=rest, flags=flags)


@cache
def _programs(tokens: tuple[tuple[str, ...], ...]) -> frozenset[str]:
    """Return the names of the programs without folders: `./deploy.sh` in a strict rule matches in any folder."""
    return frozenset(name_of(word) for word in tokens[0]) if tokens else frozenset()


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-"


def _is_listed(argv: Sequence[str], option: str, allowed: Sequence[str]) -> bool:
    if option in allowed:
        return True
    if option.startswith("--") and "=" in option:
        return option.partition("=")[0] in allowed
    if NUMBER_FLAG in allowed and option[1:].isascii() and option[1:].isdigit():
        return True
    apart = options_in(argv, option)
    return bool(apart) and all(each in allowed for each in apart)


def _is_flag(flag: str, word: str) -> bool:
    """Return whether a word has the option `flag`, even in a cluster, with a joined value, or abbreviated."""
    name = word.partition("=")[0]
    if flag in OPERAND_FLAGS:
        bare = word.lstrip("\"'")  # a word with an expansion still has its quotes
        return len(bare) > 1 and bare.startswith(OPERAND_FLAGS[flag])
    if flag in (word, name) or (flag == NUMBER_FLAG and word[:1] == "-" and word[1:].isdigit()):
        return True
    if flag.startswith("--"):  # `--m` is `--mirror`; some programs accept `-force` for `--force`
        return (len(name) > 2 and flag.startswith(name)) or name == flag[1:]
    if len(flag) > 2:
        return name == f"-{flag}"
    return len(word) > 2 and word[0] == "-" and word[1] != "-" and flag[1] in word


def _after_prefix(argv: Sequence[str], starts: set[int], tokens: Sequence[tuple[str, ...]]) -> int | None:
    """Return the first index after all `tokens`, or `None` if they do not follow any of `starts` in order.

    Options between them are skipped, each with or without a value.
    """
    ends = starts
    for token in tokens:
        ends = {place + 1 for place in _past_options(argv, ends) if argv[place] in token}
    return min(ends, default=None)


def _past_options(argv: Sequence[str], starts: set[int]) -> set[int]:
    """Return every index that can be reached from `starts` by skipping options, each with or without one value."""
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        place = waiting.pop()
        if place < len(argv) and place not in reached:
            reached.add(place)
            if _is_option(argv[place]):
                waiting += [place + 1, place + 2]
    return reached


class PathPatterns(Record):
    """Gitignore patterns (https://git-scm.com/docs/gitignore, without `!`), relative to the workspace.

    For git and for strict rules, `*.md` also matches a folder of that name with all its content. For auto rules it
    matches only files: only `docs/` and `docs/**` match the content of a folder.
    """

    patterns: tuple[str, ...]

    def covers(self, names: Sequence[str]) -> bool:
        """Return whether every name, as the name of a file, matches exactly as written. False for absolute names."""
        compiled = _compiled(self.patterns)
        return all(not name.startswith("/") and _is_meant(compiled, name) for name in names)

    def hits(self, names: Sequence[str]) -> bool:
        """Return whether any name, or a folder above it, matches. Names match as written or case-folded (`fold`)."""
        return any(self._matches(name) or self._matches_folded(name) for name in names)

    def hit_among(self, names: TreeNames) -> Iterator[str]:
        """Yield the names for which `hits` is true, some of them twice. Quick if few of many names match.

        INVARIANT: the expressions find all of them, and perhaps more; `hits` alone decides.
        """
        compiled = _compiled(self.patterns)
        ways = [(compiled.folded, names.folded)]
        if compiled.hard or not names.lines.isascii():  # otherwise every match as written is a folded match too
            ways.append((self.patterns, names.lines))
        for patterns, text in ways:
            for expression in _expressions(patterns):
                yield from (name for name in names.find(expression, text) if self.hits((name,)))

    def _matches_folded(self, name: str) -> bool:
        folded = fold(name)
        patterns = _compiled(self.patterns).folded
        if folded == name and patterns == self.patterns:
            return False
        return PathPatterns(patterns=patterns)._matches(folded)  # noqa: SLF001 - its own class

    def _matches(self, name: str) -> bool:
        compiled = _compiled(self.patterns)
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
    folded: tuple[str, ...]
    """All patterns, case-folded."""


class _SimplePattern(Record):
    parts: tuple[str, ...]
    anchored: bool


class _Way(Record):
    """A pattern as parts of a path; `**` matches any number of parts."""

    parts: tuple[str, ...]
    below: bool
    """Whether the pattern matches the content of a folder."""


@cache
def _compiled(patterns: tuple[str, ...]) -> _Compiled:
    """Return `patterns` in groups. Cached, since a policy needs them for every path."""
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
        folded=tuple(fold(pattern) for pattern in patterns),
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


@lru_cache(maxsize=256)
def _expressions(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return expressions that find every matching name in a text of many names (`TreeNames.lines`).

    The alternatives' common first or last character is factored out, which makes a search four times as fast.
    """
    compiled = _compiled(patterns)
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
