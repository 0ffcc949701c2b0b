"""The part of an unfinished Markdown paragraph whose look is final: everything before a sign that may begin
something.

CommonMark reads such signs from left to right: text before an open one, with none inside, looks the same whatever
follows. In doubt everything waits: a waiting paragraph is shown whole at its end.
"""

from __future__ import annotations

import re

from harness.terminal.row_text import cells

_SIGN = re.compile(r"`+|[*_]+|~+|!?\[|<|\\.?", re.DOTALL)
_TICKS = re.compile(r"`+")
_LINK = re.compile(r"!?\[[^\[\]`*_\\<~!]*+\]\((?:https?://[^()\s<\\]*+|[^()\s<\\:]*+)(?:\s++\"[^\"\\]*+\")?+\)")
_NO_LINK = re.compile(r"!?\[[^\[\]`\\<]*+\](?=[^(])")
_ADDRESS = re.compile(r"<(?:https?://[^<>\s]*+|[^<>\s`*_~\[\\]*+)>")
_NO_ADDRESS = re.compile(r"<[^<>\s]*+[\s<]")


def settled(text: str) -> int:
    """Return the length of a paragraph's text whose look is final, up to the end of a word."""
    opened: list[str] = []
    at = last = 0
    while match := _SIGN.search(text, at):
        sign, start = match[0], match.start()
        if not opened:
            last = _end_of_word(text, at, start) or last
        at = match.end()
        if sign[0] not in "*_~":
            at = _end_of(text, sign, start)
            if at < 0:
                return last
        elif at == len(text) or not _paired(opened, sign, before=text[start - 1 : start], after=text[at]):
            return last
    return last if opened else _end_of_word(text, at, len(text)) or last


def _end_of_word(text: str, first: int, end: int) -> int:
    """Return the last place in a part of the text where a word has ended: behind a blank, or between two wide characters."""
    for place in range(end, first, -1):
        if text[place - 1].isspace() or (place < end and cells(text[place - 1 : place + 1]) == 4):
            return place
    return 0


def _paired(opened: list[str], sign: str, *, before: str, after: str) -> bool:
    """Take in a sign of emphasis: it opens something, or closes what was opened last. Say whether it is plain what it does.

    Which it does, its neighbours tell (CommonMark 6.2, left- and right-flanking): blanks, signs of ASCII, letters.
    """
    if not (_is_known(before) and _is_known(after)):
        return False
    after_word, before_word = before.isalnum(), after.isalnum()
    opens = not after.isspace() and (before_word or not after_word)
    closes = bool(before.strip()) and (after_word or not before_word)
    if opens and closes:
        return sign[0] == "_" and after_word and before_word  # within a word it is a letter
    if closes and opened:
        return opened.pop() == sign
    if opens:
        opened.append(sign)
        return len(sign) == 2 or (len(sign) < 4 and sign[0] != "~")
    return True


def _is_known(character: str) -> bool:
    return character.isascii() or character.isalnum()


def _end_of(text: str, sign: str, start: int) -> int:
    """Return the end of code, a link, an address or an escape; -1 if it is not known yet."""
    if sign[0] == "\\":
        return start + 2 if len(sign) == 2 else -1
    if sign[0] == "`":
        ticks = (match.end() for match in _TICKS.finditer(text, start + len(sign)) if match[0] == sign)
        end = next(ticks, -1)
        return end if end < len(text) else -1  # more ticks may come
    pattern, none = (_ADDRESS, _NO_ADDRESS) if sign == "<" else (_LINK, _NO_LINK)
    if match := pattern.match(text, start):
        return match.end()
    return start + len(sign) if none.match(text, start) else -1
