"""A program that converts an HTML page on stdin to plain text on stdout.

It runs in its own process, since a parser may fail on hostile input. Before it parses, it limits its own memory, CPU
time, file size and number of open files. It imports no module of the harness.
"""

from __future__ import annotations

import resource
import sys
from typing import Any

MEMORY_BYTES = 1_000_000_000
CPU_SECONDS = 10
MOST_DEPTH = 400
"""Maximum depth of nested elements. Deeper elements are left out."""
MISSING = 3
"""Exit code if the parser is not installed."""
_LEFT_OUT = frozenset(
    "script style noscript template svg math canvas iframe object embed head nav footer form button select input dialog".split()
)
_BLOCKS = frozenset(
    "p div section article main header aside ul ol dl dt dd table tr blockquote figure figcaption details summary address "
    "hr body fieldset".split()
)
_AROUND = {
    **dict.fromkeys(_BLOCKS, ("\n\n", "\n\n")),
    **{f"h{level}": (f"\n\n{'#' * level} ", "\n\n") for level in range(1, 7)},
    **dict.fromkeys(("td", "th"), ("", " | ")),
    "li": ("\n- ", ""),
    "br": ("\n", ""),
}
"""Text added before and after the text of an element, by tag."""


class PageLines:
    """Builds the text of a page."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Add text. Each run of whitespace becomes one blank."""
        words = " ".join(text.split())
        if words:
            before = " " if text[:1].isspace() and self._pieces and not self._pieces[-1].endswith(("\n", " ")) else ""
            self._pieces.append(f"{before}{words}{' ' if text[-1:].isspace() else ''}")
        elif text and self._pieces and not self._pieces[-1].endswith(("\n", " ")):
            self._pieces.append(" ")

    def as_it_is(self, text: str) -> None:
        """Add text unchanged, including its newlines."""
        if text:
            self._pieces.append(text)

    def line(self, begin: str = "") -> None:
        """Begin a new line with the text `begin`."""
        self._pieces.append(f"\n{begin}")

    @property
    def full_text(self) -> str:
        """The complete text, with at most one empty line in a row."""
        lines: list[str] = []
        for line in "".join(self._pieces).split("\n"):
            if line.strip() or (lines and lines[-1]):
                lines.append(line.rstrip())
        return "\n".join(lines).strip()


def text_of(html: str) -> str:
    """Return the text of a page, with its headings, lists, code and links."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    text = PageLines()
    title = tree.css_first("title")
    if title is not None and title.text().strip():
        text.add(title.text())
        text.line()
        text.line()
    if tree.body is not None:
        _walk(tree.body, text, 0)
    return text.full_text


def _walk(parent: Any, text: PageLines, depth: int) -> None:
    node = parent.child
    while node is not None:
        tag = node.tag or ""
        if tag == "-text":
            text.add(node.text_content or "")
        elif tag == "pre":
            text.line("```\n")
            text.as_it_is((node.text() or "").strip("\n"))
            text.line("```\n")
        elif not tag.startswith(("-", "!", "_")) and tag not in _LEFT_OUT and depth < MOST_DEPTH:
            begin, end = _AROUND.get(tag, ("", ""))
            text.as_it_is(begin)
            _walk(node, text, depth + 1)
            text.as_it_is(end or _link(node, tag))
        node = node.next


def _link(node: Any, tag: str) -> str:
    """Return the target of a link in parentheses, to add after its text, or an empty string."""
    target = (node.attributes.get("href") or "").strip() if tag == "a" else ""
    follows = target and not target.startswith(("#", "javascript:", "data:"))
    return f" ({''.join(target.split())[:1_000]})" if follows else ""


def _bind() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))


def main() -> int:
    """Read the page, limit this process, parse, and write the text. Return the exit code."""
    try:
        import selectolax.lexbor  # noqa: F401 - imported before the limits apply
    except ImportError:
        return MISSING
    html = sys.stdin.buffer.read().decode("utf-8", "replace")
    _bind()
    sys.stdout.buffer.write(text_of(html).encode("utf-8", "replace"))
    return 0
