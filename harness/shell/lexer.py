"""Bash text to words and operators, for the subset that needs no expansion; everything else is `Unread`, with a reason.

Words are dequoted as bash does it (POSIX.1-2024, Shell Command Language 2.2). Nothing here knows what a command is.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from harness.record import Record

MAX_CHARACTERS = 10_000
"""A longer command line is not read: a person could not follow it either."""


class Word(Record):
    """One word after quote removal."""

    value: str
    quoted: bool
    """Whether any part of it was quoted; a quoted word is never a keyword nor an assignment."""
    start: int
    end: int


class Operator(Record):
    """`&&`, `||`, `|`, `;` or a newline."""

    value: str
    start: int


class Unread(Record):
    """Where and why reading stopped."""

    reason: str
    column: int


Token: TypeAlias = Word | Operator

_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>(){}*?\[\]~#!]+")
_BLANKS = re.compile(r"[ \t]+")
_OPERATORS = ("&&", "||", "|&", ";;", "|", ";", "&", "\n")
_READ_OPERATORS = frozenset(("&&", "||", "|", ";", "\n"))
_UNREAD_CHARACTERS = {
    "$": "an expansion ($)",
    "`": "a command substitution (`)",
    "<": "a redirection (<)",
    ">": "a redirection (>)",
    "(": "a subshell or a function",
    ")": "a subshell or a function",
    "{": "a brace expansion or group",
    "}": "a brace expansion or group",
    "*": "a file name pattern (*)",
    "?": "a file name pattern (?)",
    "[": "a file name pattern ([)",
    "]": "a file name pattern (])",
}
_ESCAPED_IN_DOUBLE_QUOTES = frozenset('$`"\\')


def tokenize(text: str) -> tuple[Token, ...] | Unread:
    """Return the tokens of `text`, or why they cannot be told. Linear in the length of the text; never raises."""
    if len(text) > MAX_CHARACTERS:
        return Unread(reason=f"longer than {MAX_CHARACTERS} characters", column=MAX_CHARACTERS + 1)
    if not (text.isascii() and text.isprintable()):
        for position, char in enumerate(text):
            if not char.isprintable() and char not in "\n\t":
                return Unread(reason=f"a control or invisible character (U+{ord(char):04X})", column=position + 1)
    return _Lexer(text).run()


class _Lexer:
    """The cursor over one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.tokens: list[Token] = []

    def run(self) -> tuple[Token, ...] | Unread:
        text = self.text
        while self.position < len(text):
            blanks = _BLANKS.match(text, self.position)
            if blanks:
                self.position = blanks.end()
                continue
            if text.startswith("\\\n", self.position):
                self.position += 2
                continue
            unread = self._operator() if text[self.position] in ";&|\n" else self._word()
            if unread:
                return unread
        return tuple(self.tokens)

    def _operator(self) -> Unread | None:
        value = next(op for op in _OPERATORS if self.text.startswith(op, self.position))
        if value not in _READ_OPERATORS:
            what = "a background job (&)" if value == "&" else f"the operator {value}"
            return self._unread(what)
        self.tokens.append(Operator(value=value, start=self.position))
        self.position += len(value)
        return None

    def _word(self) -> Unread | None:
        start = self.position
        parts: list[str] = []
        quoted = False
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t\n;&|":
                break
            part: str | Unread
            if char == "'":
                part, quoted = self._single_quoted(), True
            elif char == '"':
                part, quoted = self._double_quoted(), True
            elif char == "\\":
                part, quoted = self._escaped(), True
            else:
                part = self._plain(at_start=self.position == start)
            if isinstance(part, Unread):
                return part
            parts.append(part)
        self.tokens.append(Word(value="".join(parts), quoted=quoted, start=start, end=self.position))
        return None

    def _plain(self, *, at_start: bool) -> str | Unread:
        match = _PLAIN.match(self.text, self.position)
        if match:
            self.position = match.end()
            return match.group()
        char = self.text[self.position]
        if char in "~#!" and not (at_start or self.text[self.position - 1] in "=:"):
            self.position += 1  # literal inside a word: HEAD~2, a#b, wow!
            return char
        if char == "!" and self.text[self.position + 1 : self.position + 2] not in ("", " ", "\t", "\n", ";", "&", "|"):
            self.position += 1  # history is off in a shell that is not interactive: `!x` is a plain word
            return char
        names = {"~": "a home folder (~)", "#": "a comment (#)", "!": "a negation (!)"}
        return self._unread(_UNREAD_CHARACTERS.get(char) or names.get(char) or f"the character {char!r}")

    def _single_quoted(self) -> str | Unread:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            return self._unread("a quote that is not closed (')")
        value = self.text[self.position + 1 : end]
        self.position = end + 1
        return value

    def _double_quoted(self) -> str | Unread:
        start = self.position
        parts: list[str] = []
        position = start + 1
        while position < len(self.text):
            char = self.text[position]
            if char == '"':
                self.position = position + 1
                return "".join(parts)
            if char in "$`":
                self.position = position
                return self._unread(_UNREAD_CHARACTERS[char])
            following = self.text[position + 1 : position + 2]
            if char == "\\" and following == "\n":
                position += 2
            elif char == "\\" and following in _ESCAPED_IN_DOUBLE_QUOTES and following:
                parts.append(following)
                position += 2
            else:
                parts.append(char)
                position += 1
        self.position = start
        return self._unread('a quote that is not closed (")')

    def _escaped(self) -> str | Unread:
        following = self.text[self.position + 1 : self.position + 2]
        if not following:
            return self._unread("a backslash at the end")
        if following == "\n":  # bash joins the halves before it looks for keywords and assignments
            return self._unread("a line continued inside a word")
        self.position += 2
        return following

    def _unread(self, reason: str) -> Unread:
        return Unread(reason=reason, column=self.position + 1)
