"""The pattern for the words of a command (`ArgvPattern`).

`covers` is for auto rules and must account for every word. `hits` is for strict rules; one matching part is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from harness.policy.spellings import NUMBER_FLAG, STAR, has_flag, is_option, is_unread, may_hit, star_match, word_hits
from harness.programs.catalog import options_in
from harness.programs.leading import LeadingOption, leading_options, text_values
from harness.programs.runners import name_of
from harness.record import Record

_GLOB_CHARACTERS = frozenset("*?[\\")


class ArgvPattern(Record):
    """A pattern for the words of a command. Each token is a tuple of alternatives; `rest` allows any further words."""

    tokens: tuple[tuple[str, ...], ...]
    rest: bool
    flags: tuple[str, ...] | None = None
    options: tuple[str, ...] | None = None
    """Options that a command may have before its subcommand, beside those in `flags`.

    `--context=dev` has this value, `--context=*` any. `None`: none, not even those, as for a grant.
    """
    any_options: bool = False
    """Whether unlisted options of the program's table may occur there too, as in walls (`names_no_path`)."""

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
        count = self.leading_words(argv)
        place = self._uncovered_place((argv[0], *argv[1 + count :]) if count else argv)
        return place + count if place and count else place

    def _uncovered_place(self, argv: Sequence[str]) -> int | None:
        for place, token in enumerate(self.tokens):
            if place >= len(argv) or argv[place] not in token:
                return place
        for place in range(len(self.tokens), len(argv)):
            word = argv[place]
            if is_option(word):
                if not _is_listed(argv, word, self.flags or ()):
                    return place
            elif not self.rest or (len(word) > 1 and word[0] == "@"):
                return place  # many programs read further options from `@file`
        return None

    def leading_words(self, argv: Sequence[str]) -> int:
        """Return the number of words of the options before the subcommand. 0 if the pattern does not cover them."""
        if self.options is None or len(argv) < 3 or not is_option(argv[1]) or len(self.tokens) < 2:
            return 0
        if argv[0] not in self.tokens[0] or argv[1] in self.tokens[1]:
            return 0
        leading = leading_options(argv, _takes_value(self.options))
        if leading is None or not all(map(self._allows, leading)):
            return 0
        return sum(option.width for option in leading)

    def _allows(self, option: LeadingOption) -> bool:
        if self.any_options and option.names_no_path and option.name not in _takes_value(self.options or ()):
            return True
        written = option.name if option.value is None else f"{option.name}={option.value}"
        goes_up = option.value is not None and ".." in option.value.split("/")
        for pattern in self.options or ():
            if pattern == written or (star_match(pattern, written) and (not goes_up or pattern == f"{option.name}=*")):
                return True  # `infra/*` does not mean `infra/../prod`
        return option.is_shared and not {option.name, written}.isdisjoint(self.flags or ())

    def unlisted_value(self, argv: Sequence[str], first: int) -> str:
        """Return a sentence about an option from index `first` on whose value is not in `options`. Empty without one.

        `options = ["--context=dev-*"]` names the values of `--context` at every place.
        """
        with_values = {name for name, takes_value in _takes_value(self.options or ()).items() if takes_value}
        for place in range(first, len(argv)):
            name, equals, value = argv[place].partition("=")
            if name in with_values:
                written = f"{name}={value if equals else ''.join(argv[place + 1 : place + 2])}"
                if not any(star_match(pattern, written) for pattern in self.options or ()):
                    return f"{written!r} is not in `options`"
        return ""

    def uncovered_words(self, argv: Sequence[str]) -> str:
        """Return a sentence about the word at `uncovered_place`, without its full stop. Empty if all words are covered."""
        place = self.uncovered_place(argv)
        if place is None:
            return ""
        count = self.leading_words(argv)
        if place - count < len(self.tokens):
            return self._unmatched_words(argv, place, count)
        word = argv[place]
        if is_option(word):
            letter = next((each for each in options_in(argv, word) if each not in (self.flags or ())), word)
            return f"the option {letter!r} is not in `flags`"
        if self.rest:
            return f"{word!r} may name a file of further options"
        return f"{word!r} follows the words of `argv`, which do not end in '...'"

    def _unmatched_words(self, argv: Sequence[str], place: int, count: int) -> str:
        """Return a sentence about a word that is not the word of `argv` there, or is missing."""
        token = self.tokens[place - count]
        expected = " or ".join(map(repr, token))
        if place >= len(argv):
            return f"word {place + 1} is missing, and `argv` has {expected} there"
        if place == 0:
            return f"the program is {argv[0]!r}, not {expected}"
        problem = f"word {place + 1} is {argv[place]!r}, not {expected}"
        if place == 1 and is_option(argv[1]) and self.options is not None:
            return f"{problem}: {self._leading_problem(argv)}"
        if is_option(argv[place]):
            return f"{problem}: write an option that stands there as a word of `argv`"
        if _GLOB_CHARACTERS.intersection(expected):
            return f"{problem}: stars in `argv` need `walls`, and match no slash"
        return problem

    def _leading_problem(self, argv: Sequence[str]) -> str:
        """Return the remedy for an option before the subcommand."""
        leading = leading_options(argv, _takes_value(self.options or ()))
        if leading is None:
            name = argv[1].partition("=")[0]
            return f'list it in `options` ("{name}", or "{name}=*" if it takes a value)'
        option = next((option for option in leading if not self._allows(option)), None)
        if option is None:
            return "no word follows the options"
        if option.is_shared:
            return f"list {option.name!r} in `flags`"
        value = "" if option.value is None else "=*"
        return f'list it in `options` ("{option.name}{value}")'

    def unhit_words(self, argv: Sequence[str]) -> str:
        """Return the reason why a strict rule with this pattern does not hit `argv`, without a full stop.

        Empty if it does.
        """
        if not argv or name_of(argv[0]) not in _programs(self.tokens):
            return f"the program is {argv[0] if argv else ''!r}, not {' or '.join(map(repr, self.tokens[0]))}"
        for count in range(1, len(self.tokens)):
            if _after_prefix(argv, {1}, self.tokens[1 : count + 1], text_values(argv)) is None:
                before, expected = " or ".join(self.tokens[count - 1]), " or ".join(map(repr, self.tokens[count]))
                has_option = any(map(is_option, self.tokens[count]))
                remedy = ": write options in `flags`, which takes them in any order" if has_option else ""
                return f"{before!r} is not followed by {expected}{remedy}"
        return "" if self.hits(argv) else "no option of `flags` follows"

    def hits(self, argv: Sequence[str]) -> bool:
        """Return whether `argv` begins with this pattern, as needed for a strict rule.

        The program is compared without its folder, and options between the words (with or without a value) are
        skipped: `/usr/bin/git -C x push` begins with `git push`. A word with a star may be any later operand. If the
        pattern has flags, one of them must follow. A long one, or one with a value, may be anywhere after the program.
        """
        if not argv or name_of(argv[0]) not in _programs(self.tokens):
            return False
        return self._hits_from(argv, {1}, text_values(argv))

    def may_hit(self, argv: Sequence[str]) -> bool:
        """Return whether `argv` may begin with this pattern, whatever the words are that cannot be read (`is_unread`)."""
        if not argv or name_of(argv[0]) not in _programs(self.tokens):
            return False
        values = text_values(argv)
        is_known = not any(is_unread(word) for place, word in enumerate(argv) if place not in values)
        return not is_known and _after_prefix(argv, {1}, self.tokens[1:], values, may_hit) is not None

    def hits_anywhere(self, words: Sequence[str]) -> bool:
        """Return whether the pattern hits at any position of loosely split words. Errs on the strict side."""
        programs = _programs(self.tokens)
        return self._hits_from(words, {place for place, word in enumerate(words, 1) if name_of(word) in programs})

    def _hits_from(self, argv: Sequence[str], starts: set[int], values: frozenset[int] = frozenset()) -> bool:
        """Return whether the tokens after the program, and a required flag, follow one of the indexes in `starts`.

        The words at `values` are no operands.
        """
        after = _after_prefix(argv, starts, self.tokens[1:], values)
        if after is None:
            return False
        if self.flags is None:
            return True
        first = min(starts)
        return any(
            has_flag(flag, argv, place)
            for flag in self.flags
            for place in range(first if len(flag) > 2 and flag[0] == "-" else after, len(argv))
        )


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


def _takes_value(options: Sequence[str]) -> dict[str, bool]:
    """Return whether each option of a rule's `options` takes a value, by its name."""
    return {option.partition("=")[0]: "=" in option for option in options}


def _is_listed(argv: Sequence[str], option: str, allowed: Sequence[str]) -> bool:
    if option in allowed:
        return True
    if option.startswith("--") and "=" in option:
        return option.partition("=")[0] in allowed
    if NUMBER_FLAG in allowed and option[1:].isascii() and option[1:].isdigit():
        return True
    apart = options_in(argv, option)
    return bool(apart) and all(each in allowed for each in apart)


def _after_prefix(
    argv: Sequence[str],
    starts: set[int],
    tokens: Sequence[tuple[str, ...]],
    values: frozenset[int],
    hit: Callable[[str, str], bool] = word_hits,
) -> int | None:
    """Return the first index after all `tokens`, or `None` if they do not follow any of `starts` in order.

    Options between them are skipped, each with or without a value. The words at `values` are skipped too.
    """
    ends = starts
    for token in tokens:
        reached = _past_options(argv, ends) - values
        ends = {place + 1 for place in reached if any(hit(word, argv[place]) for word in token)}
        stars = [word for word in token if STAR in word]
        if stars and reached:
            later = set(range(min(reached), len(argv))) - values
            ends |= {place + 1 for place in later if any(hit(word, argv[place]) for word in stars)}
    return min(ends, default=None)


def _past_options(argv: Sequence[str], starts: set[int]) -> set[int]:
    """Return every index that can be reached from `starts` by skipping options, each with or without one value."""
    reached: set[int] = set()
    waiting = list(starts)
    while waiting:
        place = waiting.pop()
        if place < len(argv) and place not in reached:
            reached.add(place)
            if is_option(argv[place]):
                waiting += [place + 1, place + 2]
    return reached
