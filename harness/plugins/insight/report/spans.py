"""Text of a report page with its style: spans, cells, tables. Only the templates turn it into HTML, and escape it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.app.pages import line, value_text
from harness.audit.calls import LoggedCall
from harness.record import Record
from harness.text.amounts import duration
from harness.text.visible import visible


class PageSpan(NamedTuple):
    """A text with one style."""

    text: str
    style: str = ""
    """`code`, `digest`, `mark`, `quiet`, `strong`, `word`, or `break` for a new line; empty for plain text."""
    link: str = ""
    """The anchor on the page that the text links to. Empty without a link."""


BREAK = PageSpan("", "break")


class Cell(NamedTuple):
    """A cell of a table."""

    spans: tuple[PageSpan, ...]
    kind: str = ""
    """Class in the style sheet."""
    is_head: bool = False
    """Whether the cell is the heading of its row."""


class PageTable(Record):
    """A table on the page. Its rows are made while the page is written."""

    caption: str
    heads: Sequence[str]
    rows: Iterable[Sequence[Cell]]


class Block(NamedTuple):
    """A text with its line breaks."""

    text: str
    left_out: int
    """Number of characters cut off at the end."""


def cell(*spans: PageSpan | str, kind: str = "", is_head: bool = False) -> Cell:
    """Return a cell. A text without a style becomes a plain span."""
    return Cell(tuple(PageSpan(span) if isinstance(span, str) else span for span in spans), kind, is_head)


def code(value: object, width: int) -> PageSpan:
    """Return a value as code, in one line."""
    return PageSpan(line(value, width), "code")


def digest(value: object) -> PageSpan:
    """Return a digest, which can be broken at any character. The word `none` for an empty value."""
    return PageSpan(line(value, 80), "digest") if value else PageSpan("none", "quiet")


def block(value: object, limit: int | None) -> Block:
    """Return a text, safe to show, cut to `limit` characters (`None`: not cut)."""
    text = value_text(value)
    left_out = 0 if limit is None else max(0, len(text) - limit)
    return Block(visible(text if not left_out else text[:limit]), left_out)


def waited(call: LoggedCall) -> tuple[PageSpan, ...]:
    """Return the duration of the answer, with a mark if it was too quick to have been read."""
    seconds = call.waited
    if seconds is None:
        return (PageSpan("not told", "quiet"),)
    time_span = PageSpan(f"{seconds:.2f} s" if seconds < 10 else duration(seconds))
    return (time_span, PageSpan(" "), PageSpan("! under 1 s", "mark")) if call.is_quick else (time_span,)
