"""Private keys in their textual encoding (RFC 7468, OpenSSH, OpenPGP), whole, escaped or cut off; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

WORD = "PRIVATE KEY"
"""Stands in every text that holds one."""
LONGEST = 65_536
"""Characters of one block; RSA with 16,384 bits takes 13,000, and what quotes it adds some."""
FEWEST = 24
"""Characters of base64 that make a block one with a key in it: code names the first line alone."""

_BEGIN = r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
END = "-----END "
"""Begins the last line of a block."""
# What stands between the lines of a block when it is quoted: blanks, quotes, `+` and `,` of code, `>` of mail, the numbers of
# listings, escapes of JSON. All that is taken is kept (possessive), so that no text is gone through twice.
_BETWEEN = r"""(?:\\{1,8}+[nrtu]|[\s"'`+,>|.:()\\-])*+"""
_HEADER = r"(?:Proc-Type|DEK-Info|Comment|Version|Hash): [^\n\\]{0,80}+"
_NUMBER = r"[0-9]{1,6}[\t|:]"
_LAST = r"""[A-Za-z0-9+/]{4,}+={0,2}+(?=\s*\Z|[\s\\"']*-----END|\s*\n)"""
_LINES = rf"(?:{_BETWEEN}(?:{_HEADER}|{_NUMBER}|[A-Za-z0-9+/=]{{32,}}+))*+(?:{_BETWEEN}{_LAST})?+"
_EDGE = r"""(?:\\{1,8}+[nr]|[\s"'+,])*+"""
_RUN = rf"[A-Za-z0-9+/]{{{FEWEST}}}"
_NO_KEY = r"\\{1,8}+[nrt]|\\u[0-9a-fA-F]{4}|(?:Proc-Type|DEK-Info): [^\n\\]*|[^A-Za-z0-9+/=]"


def key_blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and base64 of each key in `text`: what stands between its first and its last line.

    A block without its last line, or one that another block interrupts, ends where its lines end to look like one.
    """
    if WORD not in text:
        return
    begins = list(re.finditer(_BEGIN, text))
    limits = [*(found.start() for found in begins), len(text)][1:]
    end = 0
    for begin, limit in zip(begins, limits, strict=True):
        start = begin.end()
        if end >= 0 and end < start:
            end = text.find(END, start)
        if 0 <= end < limit and end - start <= LONGEST:
            stop = end
        else:
            lines = re.compile(_LINES).match(text, start, limit)
            stop = lines.end() if lines else start
        start, stop = _trimmed(text, start, stop)
        plain = re.sub(_NO_KEY, "", text[start:stop])
        if len(plain) >= FEWEST and re.search(_RUN, text[start:stop]):
            yield start, stop, plain


def open_block(text: str, settled: int) -> int | None:
    """Return where the key of the last block in `text` begins if it may go on: all up to `settled` looks like one."""
    around = max(0, text.rfind(WORD) - 64)
    begins = list(re.finditer(_BEGIN, text[around:])) if WORD in text else []
    if not begins:
        return None
    start = around + begins[-1].end()
    lines = re.compile(_LINES).match(text, start)
    end = lines.end() if lines else start
    return start if end >= settled or not text[end:settled].strip() else None


def _trimmed(text: str, start: int, stop: int) -> tuple[int, int]:
    """Leave the line ends and quotes at both edges where they are."""
    head = re.compile(_EDGE).match(text, start, stop)
    start = head.end() if head else start
    while stop > start and (text[stop - 1] in " \t\r\n\"'," or (text[stop - 1] == "+" and text[stop - 2] in " \"'")):
        stop -= 1
    if text[start:stop].endswith(("\\n", "\\r")):
        stop -= 2
    return start, stop
