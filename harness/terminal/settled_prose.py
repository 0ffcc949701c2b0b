"""The part of an unfinished Markdown paragraph whose look is final: the text before the first sign that may open a construct.

CommonMark processes signs from left to right, so the look of text before the first open sign does not depend on later
text. In case of doubt the text waits, and is shown when the paragraph ends.
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
    """Return the length of the beginning of a paragraph whose look is final. It ends at the end of a word."""
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
    """Return the last index in a range of the text where a word has ended: after a blank or between wide characters.

    0 if there is none.
    """
    for place in range(end, first, -1):
        if text[place - 1].isspace() or (place < end and cells(text[place - 1 : place + 1]) == 4):
            return place
    return 0


def _paired(opened: list[str], sign: str, *, before: str, after: str) -> bool:
    """Process a sign of emphasis, which opens an emphasis or closes the last open one. Return whether that is certain.

    Its neighbours decide between the two (CommonMark 6.2, left- and right-flanking): blanks, ASCII signs or letters.
    """
    if not (_is_known(before) and _is_known(after)):
        return False
    after_word, before_word = before.isalnum(), after.isalnum()
    opens = not after.isspace() and (before_word or not after_word)
    closes = bool(before.strip()) and (after_word or not before_word)
    if opens and closes:
        return sign[0] == "_" and after_word and before_word  # within a word, `_` is plain text
    if closes and opened:
        return opened.pop() == sign
    if opens:
        opened.append(sign)
        return len(sign) == 2 or (len(sign) < 4 and sign[0] != "~")
    return True


def _is_known(character: str) -> bool:
    return character.isascii() or character.isalnum()


def _end_of(text: str, sign: str, start: int) -> int:
    """Return the end of code, a link, an address or an escape. -1 if it is not certain yet."""
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
