"""The fenced code blocks of a reply, as CommonMark reads them: for models that write their calls as text."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.record import Record


class FencedBlock(Record):
    """One block."""

    language: str
    """The first word after the opening fence, in lower case; empty if missing."""
    text: str
    """The text between the fences, without the indentation of a list item around it."""
    is_closed: bool
    """Whether the block has a closing fence. False if the reply or its list item ends before the fence."""


def fenced_blocks(reply: str) -> Sequence[FencedBlock]:
    """Return the blocks in order, including those in list items, but not quoted blocks (`>`).

    A fence inside a longer one is text of the outer block. Unlike CommonMark, HTML blocks are not recognized: a tag
    such as `<think>` would hide the block that follows it.
    """
    blocks: list[FencedBlock] = []
    quotes = 0
    for token in MarkdownIt("commonmark").disable(["html_block", "inline"]).parse(reply):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "fence" and not quotes:
            blocks.append(_block(token))
    return blocks


def _block(token: Token) -> FencedBlock:
    first, end = token.map or (0, 0)
    lines = token.content.count("\n") + (not token.content.endswith("\n") and token.content != "")
    return FencedBlock(
        language=next(iter(token.info.split()), "").lower(),
        text=token.content.removesuffix("\n"),
        is_closed=end - first == lines + 2,
    )
