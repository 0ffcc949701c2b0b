"""Spellings of one word: the words of a command that a word of a stricter rule means.

A stricter rule errs on the strict side. `secret` means `secret/foo` and `pods,secret` too, in any letter case, and
`secret*` means every word that begins so. A word with an expansion (`sec$X`) is met if its known beginning fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

STAR = "*"
OPERAND_FLAGS = {"+WORD": "+", ":WORD": ":"}
"""Entries in the flags of a strict rule for operands with this beginning, as in `git push origin +main` or `:main`."""
NUMBER_FLAG = "-NUM"
"""Entry in a list of flags for a dash and digits, as in `head -20`."""


def star_match(pattern: str, text: str) -> bool:
    """Return whether a text matches a pattern whose stars match any characters. No other character is special."""
    begin, *parts = pattern.split(STAR)
    if not parts:
        return pattern == text
    end = parts.pop()
    if len(text) < len(begin) + len(end) or not (text.startswith(begin) and text.endswith(end)):
        return False
    place, last = len(begin), len(text) - len(end)
    for part in parts:
        start = text.find(part, place, last)
        if start < 0:
            return False
        place = start + len(part)
    return True


def is_option(word: str) -> bool:
    """Return whether a word begins as an option does."""
    return len(word) > 1 and word[0] == "-"


def pieces(word: str) -> Iterator[str]:
    """Yield the names that one operand may hold: itself, its parts between commas, and their parts before a slash."""
    yield word
    for part in word.split(",") if "," in word else (word,):
        yield part
        yield from (part[:place] for place, letter in enumerate(part) if letter == "/" and place)


def word_hits(token: str, word: str) -> bool:
    """Return whether a word of a stricter rule means `word`. An option means only itself."""
    if token == word or not word or token[0] == "-" or word[0] == "-":
        return token == word
    token, word = token.casefold(), word.casefold()
    begin, dollar, _ = word.partition("$")
    if dollar and begin.strip("\"'"):
        return _may_begin(token, begin.lstrip("\"'"))
    return any(star_match(token, piece) for piece in pieces(word))


def is_unread(word: str) -> bool:
    """Return whether the text of a word is not known before it runs: it has an expansion, or find's `{}`."""
    return "$" in word or "`" in word or "{}" in word


def may_hit(token: str, word: str) -> bool:
    """Return whether a word of a stricter rule may mean `word`, whatever an expansion in it gives."""
    if not is_unread(word):
        return word_hits(token, word)
    begin = min((word.partition(sign)[0] for sign in ("$", "`", "{}")), key=len)
    return _may_begin(token.casefold(), begin.lstrip("\"'").casefold())


def _may_begin(token: str, text: str) -> bool:
    """Return whether a word that begins with `text` and is otherwise unknown may match."""
    begin = token.partition(STAR)[0]
    return begin.startswith(text) or (STAR in token and text.startswith(begin))


def has_flag(flag: str, words: Sequence[str], place: int) -> bool:
    """Return whether the word at `place` has the option `flag`, even in a cluster, joined or abbreviated.

    A flag with a value (`--context=prod`) is met by this value alone, joined or in the next word.
    """
    if flag in OPERAND_FLAGS or "=" not in flag:
        return _is_flag(flag, words[place])
    name, _, expected = flag.partition("=")
    if not _is_flag(name, words[place]):
        return False
    return any(_value_hits(expected, value) for value in _values(name, words, place))


def _values(name: str, words: Sequence[str], place: int) -> Iterator[str]:
    """Yield the values that an option of a word may have."""
    word = words[place]
    _, equals, joined = word.partition("=")
    if equals:
        yield joined
    if len(name) == 2 and word[1:2] != "-":  # the value of a letter is the rest of its cluster
        rests = [word[at + 1 :] for at in range(1, len(word)) if word[at] == name[1]]
        yield from (rest.removeprefix("=") for rest in rests if rest)
        is_last = "" in rests
    else:
        is_last = not equals
    if is_last and place + 1 < len(words):
        yield words[place + 1]


def _value_hits(expected: str, value: str) -> bool:
    if value.lstrip("\"'")[:1] == "$":
        return True
    return word_hits(expected, value.strip("\"'")) if value[:1] != "-" else star_match(expected, value)


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
