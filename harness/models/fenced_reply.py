"""The fenced code blocks of a reply, as CommonMark reads them: for models that write their calls as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.record import Record

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\n]*)")
"""An opening fence: at most three blanks, three or more of one sign, and the words behind it (CommonMark 0.31, 4.5)."""


class FencedBlock(Record):
    """One block."""

    language: str
    """The first word behind the opening fence, in lower case; empty where there is none."""
    text: str
    """What stands between the fences."""
    is_closed: bool
    """Whether the closing fence is there. A block that the reply's end cuts off is not."""


def fenced_blocks(reply: str) -> Sequence[FencedBlock]:
    """Return the blocks in their order. A fence inside a longer one is text of the outer block."""
    blocks: list[FencedBlock] = []
    fence, language, lines = "", "", list[str]()
    for line in reply.splitlines():
        found = _FENCE.fullmatch(line)
        if not fence:
            if found is not None and not (found[1][0] == "`" and "`" in found[2]):
                fence, language, lines = found[1], next(iter(found[2].split()), "").lower(), []
        elif found is not None and found[1].startswith(fence) and not found[2].strip():
            blocks.append(FencedBlock(language=language, text="\n".join(lines), is_closed=True))
            fence = ""
        else:
            lines.append(line)
    if fence:
        blocks.append(FencedBlock(language=language, text="\n".join(lines), is_closed=False))
    return blocks
