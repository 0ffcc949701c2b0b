"""Topics of `harness help`: sections of the documentation, drawn for the terminal, and the man page."""

from __future__ import annotations

import os
import re
import sys

import harness
from harness.app.command_line import help_width
from harness.app.manual import manual
from harness.shipped import TOPICS
from harness.terminal.markdown_stream import Markdown

_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n*")
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def topic_text(name: str) -> str:
    """Return a topic, drawn for the terminal. The man page is troff, for `man -l`."""
    if name == "man":
        return manual()
    text = f"{name}\n{section_text(*TOPICS[name])}"
    for markup in (_IMAGE, _LINK, _CODE):
        text = markup.sub(lambda match: (match.groups() or ("",))[0], text)
    drawing = Markdown(help_width, ascii_only=not _takes_unicode())
    return "\n".join([*drawing.feed(text), *drawing.finish(), ""])


def section_text(page: str, heading: str) -> str:
    """Return a section of a page as Markdown, without its heading, up to the next heading.

    The pages are inside the package in the wheel, and in the folder docs in the repository.
    """
    package = os.path.dirname(os.path.abspath(harness.__file__))
    inside = os.path.join(package, "docs", page)
    file = inside if os.path.exists(inside) else os.path.join(os.path.dirname(package), "docs", page)
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    match = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def _takes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
