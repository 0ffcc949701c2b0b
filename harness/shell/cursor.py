"""A position in a bash text. Skips blanks, comments, continued lines and the bodies of here-documents.

All readers of a text (parser.py, words.py, redirections.py, conditions.py) move one shared cursor. It also counts nesting
depth and words against their limits.
"""

from __future__ import annotations

from harness.regex import regex
from harness.shell.syntax import Literal, Word

MAX_DEPTH = 20
MAX_WORDS = 2_000

END = "\0"
"""Character appended to a text as its end mark. Texts that contain it are rejected."""

WORD_ENDS = frozenset(" \t\n;&|)" + END)
_OPERATOR_CHARACTERS = frozenset("&|;<>()")
ALPHANUMERIC = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
# bash joins continued lines before it parses. Here they are joined during parsing, which gives the same result if the
# character after the join cannot belong to the token before it (here: an operator).
_AFTER_JOINED_OPERATOR = ALPHANUMERIC | frozenset(" \t'\"$/._~")

_DELIMITER = regex(rf"""([A-Za-z0-9_.-]+)|'([^'\n{END}]+)'|"([^"$`\\\n{END}]+)"|\\([A-Za-z0-9_.-]+)""")


class Stop(Exception):
    """Raised if a text cannot be read further. `position` is the offset of the problem."""

    def __init__(self, reason: str, position: int, complaint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.complaint = complaint
        """Same as `Unread.complaint`."""


class Cursor:
    """A position in one text. Its methods raise Stop for syntax that is not supported."""

    def __init__(self, text: str, depth: int = 0, words: int = 0) -> None:
        self.text = text + END
        self.position = 0
        self.end = 0
        """Offset of the end of the last token."""
        self.depth = depth
        self.words = words
        """Number of words read."""
        self.substitutions = 0
        """Number of `$(`, `<(` and `>(` that are open here."""
        self.here_documents = 0
        """Number of here-documents in the innermost of these."""
        # INVARIANT: _line_end >= 0 exactly while a here-document has begun and its body is not yet skipped. The body begins
        # after the line break at _line_end and ends at _body_end. Any other line break token first is an error, since bash
        # would read another body.
        self._line_end = -1
        self._body_end = 0

    def stop(self, reason: str, position: int | None = None, *, complaint: str = "") -> Stop:
        """Return the exception for a problem at `position` (default: the current position)."""
        return Stop(reason, self.position if position is None else position, complaint)

    def unclosed(self, quote: str, position: int) -> Stop:
        """Return the exception for an unclosed quote at `position`."""
        complaint = f"unexpected EOF while looking for matching `{quote}'"
        return self.stop(f"a quote that is not closed ({quote})", position, complaint=complaint)

    def ends_early(self, reason: str) -> Stop:
        """Return the exception for an incomplete command. At the end of the text it has bash's complaint."""
        is_end = self.text[self.position] == END
        return self.stop(reason, complaint="syntax error: unexpected end of file" if is_end else "")

    def unexpected(self) -> Stop:
        """Return the exception for an unexpected character at the current position."""
        char = self.text[self.position]
        names = {END: "the end of the text", "\n": "a line break"}
        return self.stop(f"{names.get(char, char)} where it is not expected")

    def enter(self) -> None:
        """Enter a nesting level. Raises Stop if there are too many."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.stop(f"more than {MAX_DEPTH} levels of nesting")

    def count_words(self, words: int) -> None:
        """Count words. Raises Stop if there are too many."""
        self.words += words
        if self.words > MAX_WORDS:
            raise self.stop(f"more than {MAX_WORDS} words")

    # -- between words

    def skip(self) -> str:
        """Skip blanks, continued lines and a comment. Return the next character."""
        text = self.text
        position = self.position
        while True:
            char = text[position]
            if char in " \t":
                position += 1
            elif char == "\\" and text[position + 1] == "\n":
                position = self._joined_between_words(position)
            else:
                break
        if char == "#":
            position = text.find("\n", position)
            if position < 0:
                position = len(text) - 1
            char = text[position]
        self.position = position
        return char

    def gap(self) -> str:
        """Skip line breaks too. Return the next character."""
        while (char := self.skip()) == "\n":
            self.newline()
        return char

    def newline(self) -> None:
        """Skip the current line break, and the bodies of here-documents after it."""
        if self._line_end < 0:
            self.position += 1
            return
        self.no_pending_here_document(except_at=self.position)
        self.position = self._body_end
        self._line_end = -1

    def no_pending_here_document(self, except_at: int = -1) -> None:
        """Raise Stop if a here-document has begun whose body does not follow at the line break `except_at`."""
        if self._line_end >= 0 and self._line_end != except_at:
            raise self.stop("a here-document that does not begin right behind its line")

    def _joined_between_words(self, position: int) -> int:
        after = self.behind_continuations(position)
        if (
            position
            and self.text[position - 1] in _OPERATOR_CHARACTERS
            and self.text[after] not in _AFTER_JOINED_OPERATOR
        ):
            raise self.stop("a line continued inside an operator", position)
        return after

    def behind_continuations(self, position: int) -> int:
        """Return the position after the continued lines at `position`."""
        while self.text.startswith("\\\n", position):
            position += 2
        return position

    # -- here-documents

    def here_document(self, *, strip: bool) -> Word:
        """Read a here-document: its delimiter, and its body after this line. Return the body.

        With `strip`, leading tabs are removed (`<<-`).
        """
        self.skip()
        match = _DELIMITER.match(self.text, self.position)
        if match is None or not self._ends_delimiter(match.group(), match.end()):
            raise self.stop("a here-document with an odd delimiter")
        if self._line_end < 0:
            self._line_end = self.text.find("\n", self.position)
            self._body_end = self._line_end + 1
        start = self._body_end
        if self._line_end < 0:
            raise self.stop("a here-document without a body")
        delimiter = match.group(match.lastindex or 0)
        body, end = self._lines_before(delimiter, strip=strip)
        if match.lastindex == 1:
            if "$" in body or "`" in body or "\\\n" in body:
                raise self.stop("an expansion inside a here-document")
            body = body.replace("\\\\", "\\")
        self.here_documents += 1
        self.position = self.end = match.end()
        return Word(pieces=(Literal(text=body, quoted=True),), start=start, end=end)

    def _ends_delimiter(self, delimiter: str, end: int) -> bool:
        """Return whether the delimiter ends at `end`, and is not a file descriptor of a following redirection."""
        if self.text[end] in "<>":
            return self.text[end + 1] != "(" and not delimiter.isdecimal()
        return self.text[end] in WORD_ENDS

    def _lines_before(self, delimiter: str, *, strip: bool) -> tuple[str, int]:
        """Return the lines before the delimiter's line, and the offset of that line. Set _body_end to the offset after it."""
        lines: list[str] = []
        while True:
            start = self._body_end
            end = self.text.find("\n", start)
            at_end = end < 0
            line = self.text[start:end]  # at the end of the text, -1 excludes END
            if strip:
                line = line.lstrip("\t")
            self._body_end = len(self.text) - 1 if at_end else end + 1
            if line == delimiter:
                return "".join(lines), start
            # Inside a substitution, bash 5.2 also accepts `EOF)` as the end of the body.
            if at_end or (self.substitutions and line.startswith(delimiter)):
                raise self.stop("a here-document that is not ended by a line of its own")
            lines.append(line + "\n")
