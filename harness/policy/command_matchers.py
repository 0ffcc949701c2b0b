"""The matchers for commands: `CommandMatcher` for their words, and `WalledMatcher` for rules with `walls`.

An auto rule without walls lists every option and variable of its commands. With `walls = "workspace"` it covers any
words after the first ones, since the kernel confines the command.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, ClassVar

from harness.actions import Action, Command, Facet, Opaque, PathAccess, Place
from harness.errors import nearest
from harness.paths import is_within
from harness.policy.argv_pattern import ArgvPattern, argv_pattern
from harness.policy.loose_commands import programs_in
from harness.policy.matcher import Matcher, Problem, RuleKeys, not_about, quoted
from harness.policy.plain_commands import auto_argv_problem, options_problem
from harness.policy.spellings import OPERAND_FLAGS, STAR, pieces, star_match
from harness.programs.catalog import is_more_than_a_name
from harness.programs.runners import name_of
from harness.programs.variables import steers
from harness.record import replace
from harness.tool_kinds import BASH, Does, tool_kind

if TYPE_CHECKING:
    from harness.policy.rules import Rule

WORKSPACE = "workspace"
"""Level of walls that a rule can name: the workspace walls."""
MAX_COMBINATIONS = 1_000
"""Maximum number of combinations of a rule's words to compare with another rule. A rule with more implies no other."""


class CommandMatcher(Matcher):
    """The words of a command, its options, and the variables set before it: `argv`, `flags`, `env`."""

    argv: ArgvPattern | None
    """Pattern for the words. `None` if a strict rule has only variables."""
    env: tuple[str, ...] = ()

    keys: ClassVar = ("argv", "flags", "options", "env", "walls")
    needs: ClassVar = {"flags": "argv", "options": "argv", "walls": "argv"}
    can_hit: ClassVar = frozenset((Command, Opaque))
    answers_for: ClassVar = frozenset((Command,))

    @classmethod
    def read(cls, keys: RuleKeys) -> Iterator[Matcher]:
        """Yield the matcher if the rule is about commands."""
        walled = _is_walled(keys)
        argv, env = None, keys.texts("env", may_be_empty=walled)
        if "argv" in keys:
            try:
                argv = argv_pattern(keys.value("argv"))
            except ValueError as error:
                keys.fail("argv", str(error))
            flags = _flags(keys)
            argv = replace(argv, flags=flags, options=_options(keys), any_options=walled and flags is None)
        if walled:
            yield WalledMatcher(argv=argv, env=env, any_env="env" not in keys)
        elif argv is not None or env:
            yield cls(argv=argv, env=env)

    def hits(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - the facet holds the words
        """Return whether a command begins with the words and sets one of the variables.

        In text that could not be parsed, the words may be at any position.
        """
        match facet:
            case Command():
                has_words = self.argv is None or self.argv.hits(facet.argv)
                return has_words and (not self.env or any(name in self.env for name in facet.variables))
            case Opaque():
                has_words = self.argv is None or any(map(self.argv.hits_anywhere, facet.commands))
                return has_words and (not self.env or any(_sets_variable(self.env, words) for words in facet.commands))
            case _:
                return False

    def covers(self, action: Action, facet: Facet) -> bool:  # noqa: ARG002 - likewise
        """Return whether the words and the variables of a command are all accounted for."""
        match facet:
            case Command():
                return not self._uncovered(facet)
            case PathAccess():
                return self.argv is None
            case _:
                return False

    def _uncovered(self, command: Command) -> str:
        """Return the reason why the command is not covered. Empty if it is."""
        if self.argv is None:
            return not_about(command)
        if not self.argv.covers(command.argv):
            return self.argv.uncovered_words(command.argv)
        for word in command.argv[self.argv.leading_words(command.argv) + len(self.argv.tokens) :]:
            if is_more_than_a_name(command.argv[0], word):
                return f"{word!r} is more than a plain name"
        name = next((name for name in command.variables if name not in self.env), None)
        return "" if name is None else f"the variable {name!r} is not in `env`"

    def implies(self, other: Matcher, *, auto: bool) -> bool:
        """Return whether `other` hits every command with these words and variables.

        The variables of an auto rule are optional, so `other` must then hit without a variable.
        """
        match other:
            case CommandMatcher():
                has_env = bool(self.env) and set(self.env) <= set(other.env) and not auto
                has_argv = self.argv is not None and (other.argv is None or _is_hit(self.argv, other.argv, auto=auto))
                return (has_env or not other.env) and (has_argv or other.argv is None)
            case _:
                return False

    def words(self) -> str:
        """Return the command as a person would type it, its options and its variables."""
        command = "" if self.argv is None else f"the command {argv_text(self.argv)}"
        variables = f"with variables {quoted(self.env)} set" if self.env else ""
        return " ".join(filter(None, (command, variables)))

    @property
    def names_subject(self) -> bool:
        """Whether it names a command."""
        return self.argv is not None

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule is invalid: it can never match, or these commands are never safe as auto."""
        if problem := tools_problem(rule):
            return problem
        flags = self.argv.flags if self.argv is not None else None
        if rule.is_auto:
            if self.argv is None:
                return (
                    None if rule.files else ("", "an auto rule needs argv or path; a whole tool is set under [tools]")
                )
            if problem := auto_argv_problem(self.argv):
                return problem
            name = next(filter(steers, self.env), "")
            return ("env", f"{name} makes a program run something else; no auto rule may list it") if name else None
        if flags == ():
            return "flags", "an empty list is never met: name the options, or leave it out"
        return None

    def uncovered_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return a sentence about the first word that is not covered."""
        match facet:
            case Command():
                return self._uncovered(facet) or not_about(facet)
            case PathAccess():
                return "`argv` covers commands only"
            case _:
                return not_about(facet)

    def unhit_words(self, action: Action, facet: Facet) -> str:  # noqa: ARG002 - likewise
        """Return a sentence about the missing word or variable."""
        if not isinstance(facet, Command):
            return not_about(facet)
        words = self.argv.unhit_words(facet.argv) if self.argv is not None else ""
        return words or "no variable of `env` is set"

    def nearness(self, facet: Facet) -> int:
        """Return the number of covered leading words plus 2. 1 if the program's name occurs later in the command."""
        if not isinstance(facet, Command) or self.argv is None:
            return 0
        place = self.argv.uncovered_place(facet.argv)
        if place != 0:
            return 2 + (len(facet.argv) + 1 if place is None else place)
        names = {name_of(word) for word in facet.argv}
        return int(any(name_of(word) in names for word in self.argv.tokens[0]))

    def meaning(self, *, auto: bool) -> Hashable:
        """Return the words and variables without the order of alternatives."""
        if self.argv is None:
            return "command", frozenset(self.env)
        rest = self.argv.rest and auto  # it has no effect in a strict rule
        words = tuple(map(frozenset, self.argv.tokens))
        options = None if self.argv.options is None else frozenset(self.argv.options)
        return "command", words, rest, frozenset(self.argv.flags or ()), options, frozenset(self.env)

    def marks(self, *, auto: bool) -> frozenset[str] | None:
        """Return the names of the programs, unless an auto rule has stars in them."""
        programs = () if self.argv is None else self.argv.tokens[0]
        is_open = not programs or (auto and any(STAR in program for program in programs))
        return None if is_open else frozenset(map(name_of, programs))

    def needed(self) -> Sequence[frozenset[Hashable]]:
        """Return the names of the programs, each further word in its pieces, and the variables.

        A word with a star is left out, since it is in no other rule as written.
        """
        programs, *more_tokens = self.argv.tokens if self.argv is not None else ((),)
        words_of = (frozenset(_needed(token)) for token in more_tokens if not any(STAR in word for word in token))
        sets: tuple[frozenset[Hashable], ...] = (frozenset(map(name_of, programs)), *words_of)
        return [words for words in (*sets, frozenset[Hashable](self.env)) if words]


class WalledMatcher(CommandMatcher):
    """The first words of commands that run inside the workspace walls: `argv` with `walls`.

    It covers the command and the commands that it runs, with any further words and variables if `argv` ends in `"..."`.
    `flags`, `env` and an empty `options` are optional limits. A word of `argv` may have stars, which do not match a
    slash. Text that could not be parsed is covered if every command in it is.
    """

    any_env: bool = True
    """Whether variables outside `env` are covered."""

    answers_for: ClassVar = frozenset((Command, Opaque, PathAccess))
    walled: ClassVar = True

    def covers(self, action: Action, facet: Facet) -> bool:
        """Return whether the command or its wrapper begins with the words.

        A target of a redirection in the workspace is covered if all commands of the line are.
        """
        match facet:
            case Command():
                return not self._uncovered(facet)
            case Opaque(given_to=None):
                lines = programs_in(facet)
                return bool(lines) and all(map(self.covers_words, lines))
            case Opaque():
                return facet.given_to is not None and not self._uncovered(facet.given_to)
            case PathAccess():
                is_here = facet.place in (Place.INSIDE, Place.TEMPORARY)
                commands = [part for part in action.facets if isinstance(part, Command)]
                return is_here and bool(commands) and all(self.covers(action, command) for command in commands)
            case _:
                return False

    def covers_words(self, words: Sequence[str]) -> bool:
        """Return whether loosely split words begin with the words of the rule."""
        return not self._uncovered_words(words)

    def _uncovered(self, command: Command) -> str:
        problems = [self._uncovered_words(words) for words in (command.argv, *command.run_by)]
        if "" not in problems:
            return problems[0]
        name = next((name for name in command.variables if not self.any_env and name not in self.env), None)
        return "" if name is None else f"the variable {name!r} is not in `env`"

    def _uncovered_words(self, words: Sequence[str]) -> str:
        """Return the reason why the words of a command are not covered. Empty if they are."""
        if self.argv is None:
            return "the rule names no program"
        if count := self.argv.leading_words(words):
            words = (words[0], *words[1 + count :])
        plain = tuple(
            (word,) if any(_matches(pattern, word) for pattern in token) else token
            for token, word in zip(self.argv.tokens, words, strict=False)
        )
        argv = replace(self.argv, tokens=(*plain, *self.argv.tokens[len(plain) :]))
        if problem := argv.unlisted_value(words, len(argv.tokens)):
            return problem
        if argv.rest and argv.flags is None:  # any other option is covered
            words = [word for place, word in enumerate(words) if place < len(argv.tokens) or word[:1] not in ("-", "@")]
        return argv.uncovered_words(words)

    def words(self) -> str:
        """Return the command, and that it runs in walls."""
        return f"{super().words()} inside the workspace walls"

    def problem(self, rule: Rule) -> Problem | None:
        """Return the reason why the rule is invalid: its tools run no commands, or its options are wrong."""
        return tools_problem(rule) or (options_problem(self.argv) if self.argv is not None else None)

    def meaning(self, *, auto: bool) -> Hashable:
        """Return the words and variables without the order of alternatives."""
        return "walls", self.any_env, super().meaning(auto=auto)


class AnyCommand(Matcher):
    """Any command inside the workspace walls, and any text that could not be parsed. Not for policy files.

    It covers writes to files of the workspace too. What leaves the walls is left to other rules (`walls_fit.unfit`).
    """

    folder: str
    """Folder that the commands run in, or below. Empty for any folder."""

    can_hit: ClassVar = frozenset((Command, Opaque, PathAccess))
    answers_for: ClassVar = frozenset((Command, Opaque, PathAccess))
    walled: ClassVar = True

    def covers(self, action: Action, facet: Facet) -> bool:
        """Return whether it is a command, text, or a write to a file of the workspace or the session's own `/tmp`."""
        match facet:
            case Command():
                is_here = not self.folder or not facet.folder or is_within(facet.folder, self.folder)
                return is_here or _is_in_own_tmp(facet.folder, action)
            case Opaque():
                return True
            case PathAccess():
                return facet.place in (Place.INSIDE, Place.TEMPORARY)
            case _:
                return False

    def words(self) -> str:
        """Return that it covers commands inside walls."""
        return "that fits into the workspace walls"


def _is_in_own_tmp(folder: str, action: Action) -> bool:
    """Return whether a line goes to a folder in the session's own `/tmp`."""
    paths = (part for part in action.all_facets() if isinstance(part, PathAccess))
    return any(path.place is Place.TEMPORARY and folder in (path.real, *path.names) for path in paths)


def _needed(token: Sequence[str]) -> Iterator[Hashable]:
    for word in token:
        yield from pieces(word if word[0] == "-" else word.casefold())


def _matches(pattern: str, word: str) -> bool:
    """Return whether a word is the word of a rule, or matches its stars. An option matches only itself."""
    if pattern == word or "*" not in pattern or word[:1] == "-":
        return pattern == word
    parts, pattern_parts = word.split("/"), pattern.split("/")
    return len(parts) == len(pattern_parts) and all(
        star_match(pattern_part, part) and (part != ".." or pattern_part == "..")
        for pattern_part, part in zip(pattern_parts, parts, strict=True)
    )


def _is_walled(keys: RuleKeys) -> bool:
    """Return whether a rule has `walls`. It can only be `workspace`, and only in an auto rule."""
    level = keys.text("walls")
    if level and not keys.auto:
        keys.fail("walls", "is for auto rules: a stricter rule decides in all walls")
    if level not in ("", WORKSPACE):
        keys.fail("walls", f"unknown walls {level!r}{nearest(level, (WORKSPACE,))}")
    return bool(level)


def _flags(keys: RuleKeys) -> tuple[str, ...] | None:
    if "flags" not in keys:
        return None
    flags = keys.texts("flags", may_be_empty=True)
    for flag in flags:
        if flag not in OPERAND_FLAGS and (not flag.startswith("-") or flag == "-" or flag.lstrip("-")[:1] == "="):
            keys.fail("flags", f"{flag!r} is not an option such as -x or --long")
    return flags


def _options(keys: RuleKeys) -> tuple[str, ...] | None:
    """Return the options before the subcommand that are allowed: `--debug`, or with a value `--context=*`.

    `None` if the key is an empty list: no option is.
    """
    options = keys.texts("options", may_be_empty=keys.auto)
    if "options" in keys and not options:
        return None
    if options and not keys.auto:
        keys.fail("options", "is for auto rules: a stricter rule skips all options before the subcommand")
    for option in options:
        name, equals, value = option.partition("=")
        if not name.strip("-") or name[0] != "-" or STAR in name or (equals and not value):
            keys.fail("options", f"{option!r} is not an option such as --debug, --context=dev or --context=*")
    return options


def _sets_variable(names: Sequence[str], words: Sequence[str]) -> bool:
    return any("=" in word and word.partition("=")[0].rstrip("+") in names for word in words)


def _is_hit(argv: ArgvPattern, strict: ArgvPattern, *, auto: bool) -> bool:
    """Return whether a strict pattern hits every command that a pattern matches."""
    if auto:
        # Further words after a command that is hit do not change this, so it is enough to try the pattern's own words.
        few = prod(map(len, argv.tokens)) <= MAX_COMBINATIONS
        return few and all(strict.hits(words) for words in product(*argv.tokens))
    same_words = len(strict.tokens) <= len(argv.tokens) and all(
        set(token) <= set(wider) for wider, token in zip(strict.tokens, argv.tokens, strict=False)
    )
    same_flags = strict.flags is None or (argv.flags is not None and set(argv.flags) <= set(strict.flags))
    return same_words and same_flags


def argv_text(argv: ArgvPattern) -> str:
    """Return the words of a pattern as a user would type them (`git {status,diff} ...`), and the allowed options."""
    words = [_alternatives(token) for token in argv.tokens]
    options = f" with options {quoted(argv.flags)}" if argv.flags else ""
    leading = f" and before its words {quoted(argv.options)}" if argv.options else ""
    return " ".join([*words, "..."] if argv.rest else words) + options + leading


def _alternatives(token: Sequence[str]) -> str:
    return quoted(token) if len(token) == 1 else f"{{{quoted(token, ',')}}}"


def tools_problem(rule: Rule) -> Problem | None:
    """Return the reason why a rule about commands cannot have its tools: none of them runs commands."""
    if rule.tools and not any(tool_kind(tool).does is Does.RUNS for tool in rule.tools):
        return "tool", f"argv, text and env are about {BASH.name}, which is not among the tools"
    return None
