"""Conversion of a web answer to text. HTML is parsed in a separate process; other text is only cleaned."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from harness.errors import ToolError
from harness.plugins.media.web_request import WebAnswer
from harness.process.asked_program import ask_program
from harness.process.ended import CommandEnding
from harness.process.own_code import own_code
from harness.record import Record
from harness.sandbox.confinement import prepare
from harness.sandbox.machine import probe
from harness.sandbox.walls import Unenforceable, Walls
from harness.text.visible import visible_line

PARSE_SECONDS = 15.0
MOST_TEXT_BYTES = 8_000_000
"""Maximum number of bytes of the parser's output."""
NO_PARSER = "the tags stand in it: the extra `web` (pip install 'permission-harness[web]') makes text of HTML"
_START = "import runpy, sys; sys.exit(runpy.run_path(sys.argv[1])['main']())"
"""Code that runs the child by its path, so that it imports no module of the harness."""
_HTML = ("text/html", "application/xhtml+xml")
_TEXTS = frozenset(
    "application/json application/xml application/javascript application/x-javascript application/ecmascript "
    "application/yaml application/x-yaml application/toml application/x-sh application/sql application/x-ndjson "
    "application/graphql application/rtf message/rfc822".split()
)


class WebPage(Record):
    """The text of an answer."""

    text: str
    note: str = ""
    """Note for the model about the conversion."""


def is_text(media_type: str) -> bool:
    """Return whether a media type is text. A missing type counts as text, and `page_of` examines the content."""
    return (
        not media_type
        or media_type.startswith("text/")
        or media_type in _TEXTS
        or media_type in _HTML
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def page_of(
    answer: WebAnswer, *, environment: Mapping[str, str], seconds: float, stops: Callable[[], int] | None = None
) -> WebPage:
    """Return the text of an answer. Raises ToolError for one that is not text."""
    if not is_text(answer.media_type):
        media_type = visible_line(answer.media_type, 100)
        raise ToolError(f"{answer.address.text} is not text ({media_type}), so it was not read.")
    if b"\0" in answer.body[:8_192] and not answer.charset.lower().startswith(("utf-16", "utf-32")):
        raise ToolError(f"{answer.address.text} is not text: the page has NUL bytes.")
    text = _decoded(answer)
    if answer.media_type in _HTML or (
        not answer.media_type and text.lstrip()[:14].lower().startswith(("<!doctype", "<html"))
    ):
        return _html_page(text, environment, seconds, stops)
    return WebPage(text=plain(text))


def plain(text: str) -> str:
    """Return text without control characters, except newline and tab."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char for char in text if char in "\n\t" or not (ord(char) < 32 or 127 <= ord(char) < 160))


def _decoded(answer: WebAnswer) -> str:
    """Decode a body with its declared encoding, or as UTF-8 if that is missing, unknown or not a usual text encoding."""
    try:
        info = codecs.lookup(answer.charset or "utf-8")
        name = info.name if info._is_text_encoding else "utf-8"  # noqa: SLF001 - as bytes.decode looks at it
    except (LookupError, ValueError):
        name = "utf-8"
    if name in ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"):
        name = "utf-8"
    return answer.body.decode("utf-8-sig" if name == "utf-8" else name, "replace")


def _html_page(html: str, environment: Mapping[str, str], seconds: float, stops: Callable[[], int] | None) -> WebPage:
    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "html_child.py")
    stack = ExitStack()
    try:
        try:  # walls without writing and network, if the kernel supports them
            confine = stack.enter_context(prepare(Walls(write=(), network=False), probe())).enter
        except Unenforceable:
            confine = None  # the child still limits itself
        done = ask_program(
            (sys.executable, *own_code().python_options(), "-c", _START, child),
            html.encode("utf-8", "replace"),
            environment={"PATH": environment.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
            folder="/",
            seconds=max(0.1, min(PARSE_SECONDS, seconds)),
            most_bytes=MOST_TEXT_BYTES,
            stops=stops,
            confine=confine,
        )
    except OSError as error:
        return WebPage(
            text=plain(html), note=f"the tags stand in it: the parser could not be started: {error.strerror}"
        )
    finally:
        stack.close()
    if done.end.ending is CommandEnding.INTERRUPTED:
        raise KeyboardInterrupt
    if done.end.ending is CommandEnding.EXITED and done.end.status == 3:
        return WebPage(text=plain(html), note=NO_PARSER)
    if done.end.ending is not CommandEnding.EXITED or done.end.status:
        return WebPage(text=plain(html), note="the tags stand in it: the parser failed on it")
    note = "a part of it: it is very long" if done.is_cut else ""
    return WebPage(text=plain(done.output.decode("utf-8", "replace")), note=note)
