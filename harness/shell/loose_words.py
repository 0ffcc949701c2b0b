"""Loose reading: possible commands and paths in a text that could not be parsed. Strict rules are applied to all of them.

It finds too much on purpose: a false match of a strict rule costs only a question, a missed match would be worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.actions import Access, Opaque
from harness.programs.catalog import only_reads
from harness.regex import regex
from harness.shell.disk import Disk

MAX_CLUSTER_LETTERS = 24
"""Maximum number of letters and digits after a single dash. A file name may begin after each of them."""


def likely_paths(words: Sequence[str]) -> Iterator[str]:
    """Yield possible paths among the operands of a command."""
    for word in path_words(words, options_too=False):
        if word[0] == "~":
            yield f"./{word}"  # quoted, so bash does not expand it, but the program may treat it as the home folder
        yield word


def cluster(word: str) -> str:
    """Return the dash, letters and digits at the beginning of `word`: `-nf` of `-nf.env`. Empty without a dash."""
    match = re.match("-[A-Za-z0-9]*", word)
    return match.group() if match else ""


def path_words(words: Sequence[str], *, options_too: bool) -> Iterator[str]:
    """Yield possible paths among operands, each once: every word, and possible file names inside words.

    With `options_too`, options count too.
    """
    earlier_words = {""}
    for word in _all_path_words(words, options_too=options_too):
        if word not in earlier_words:
            earlier_words.add(word)
            yield word


def _all_path_words(words: Sequence[str], *, options_too: bool) -> Iterator[str]:
    operands_only = False
    for word in words:
        if options_too or operands_only or not word.startswith("-"):
            yield word
        operands_only = operands_only or word == "--"
    for word in words:
        yield from _inner_paths(word, whole_trees=options_too)


def _inner_paths(word: str, *, whole_trees: bool) -> Iterator[str]:
    """Yield possible paths in a word: text after `=`, `@` (`-d @.env`), `:` (`HEAD:.env`), or a short option's letters.

    With `whole_trees`, also the folder of a pattern that matches all of its contents (`src/*`).
    """
    if "=" in word:
        yield word.partition("=")[2].removeprefix("@")
        yield word.rpartition("=")[2]
    if ":" in word and not (ending := word.rpartition(":")[2]).startswith("/"):
        yield ending
    if word.startswith("@"):
        yield word[1:]
    for start in range(2, min(len(cluster(word)), MAX_CLUSTER_LETTERS) + 1):
        yield word[start:].removeprefix("=")
    if whole_trees and word.endswith(("/*", "/.*", "/**")):
        yield word.rpartition("/")[0] or "/"


_REDIRECTIONS = regex(r"[<>]&|&>|>\|")
_COMMAND_ENDS = regex(r"[;&|\n()`]+")
_WORD_ENDS = regex(r"[\s<>{},]+")
_QUOTES = str.maketrans("", "", "'\"\\")
_EXPANSIONS = (("${IFS}", " "), ("$IFS", " "), ("${HOME}", "~"), ("$HOME", "~"), ("${PWD}", "."), ("$PWD", "."))
# `${X:-rm}/y` is read as the word `$X/y` (not as the path `/y`), and also as a possible word `rm`.
_PARAMETER = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[-=?+])?([^{}]*)\}([^\s;&|<>(){}`,]*)")

_PIECES = regex(
    r"""(?P<single>'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")|(?P<escaped>\\.)|(?P<blank>[ \t]+)
    |(?P<redirection>[0-9]*(?:&>>?|<<<|<<-?|<>|>\||[<>]&|>>?|<))|(?P<end>[;&|\n()`]+)|(?P<plain>[^\s'"\\;&|()`<>]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = regex(r"\\([$`\"\\])")


MAX_PATHS = 10_000
"""Maximum number of different words per text to look up as possible paths. A text with more is always refused."""


def loose_opaque(text: str, reason: str, column: int, disk: Disk, folder: str) -> Opaque:
    """Return the facet of a text that could not be parsed, with all possible commands and paths in it."""
    commands = loose_commands(text)
    accesses, whole_trees = _likely_paths(commands)
    paths = (disk.resolve_word(word, access, folder) for word, access in accesses.items())
    return Opaque(
        text=text,
        reason=reason,
        column=column,
        commands=commands,
        paths=tuple(path for path in paths if path is not None),
        is_whole=whole_trees,
    )


def _likely_paths(commands: Sequence[Sequence[str]]) -> tuple[dict[str, Access], bool]:
    """Return words that may be paths, with their access, and whether the list is complete."""
    # For a word in several commands, `EITHER` overrides `READ`.
    accesses: dict[str, Access] = {}
    for words in commands:
        access = Access.READ if only_reads(words) else Access.EITHER
        for word in path_words(words, options_too=True):
            if len(accesses) == MAX_PATHS and word not in accesses:
                return accesses, False
            accesses[word] = access if accesses.get(word) is not Access.EITHER else Access.EITHER
    return accesses, True


def loose_commands(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the commands in `text` as lists of words, in two readings. Strict rules are applied to both.

    The first drops quotes and splits quoted text like the rest, since it may be a command for another shell. The second
    keeps quoted words together and drops redirections, as bash does: `git -c 'a=b c' 2>&1 push` is a push.
    """
    text = text.replace("\\\n", "")
    for expansion, plain in _EXPANSIONS:
        text = text.replace(expansion, plain)
    return tuple(dict.fromkeys((*_without_quotes(text), *_with_quotes(text))))


def _without_quotes(text: str) -> Iterator[tuple[str, ...]]:
    text = _REDIRECTIONS.sub(" ", text.translate(_QUOTES))
    text = _PARAMETER.sub(r"$\1\3 \2 ", text)
    for part in _COMMAND_ENDS.split(text):
        command = tuple(word.lstrip("$") for word in _WORD_ENDS.split(part) if word.strip("$"))
        if command:
            yield command
        if any("=" in word for word in command):  # `alias x='git push'`
            pieces = tuple(piece for word in command for piece in word.split("=") if piece)
            if pieces:
                yield pieces


def _with_quotes(text: str) -> Iterator[tuple[str, ...]]:
    """Yield commands with their words dequoted. Each target of a redirection is yielded as its own command, as a path."""
    commands: list[list[str]] = [[]]
    targets: list[str] = []
    word: list[str] = []
    into_target = False
    for piece in _PIECES.finditer(f"{text}\n\n"):
        kind = piece.lastgroup
        if kind in ("blank", "redirection", "end"):
            joined_word = "".join(word).lstrip("$")
            word = []
            if joined_word:
                (targets if into_target else commands[-1]).append(joined_word)
                into_target = False
            into_target = kind == "redirection" or (into_target and kind == "blank")
            if kind == "end":
                commands.append([])
        else:
            word.append(_dequoted(piece.group(), kind))
    yield from (tuple(command) for command in commands if command)
    yield from ((target,) for target in targets)


def _dequoted(piece: str, kind: str | None) -> str:
    match kind:
        case "single":
            return piece[1:-1]
        case "double":
            return _ESCAPED.sub(r"\1", piece[1:-1])
        case "escaped":
            return piece[1:]
        case _:
            return piece
