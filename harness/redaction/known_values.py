"""Find known secret values in a text, in all their forms.

One pass over a text is enough for any number of values. It reads the bytes of the text as a grid of numbers of four
bytes each. Each form has one such number for each of the four offsets at which it may begin in the grid. Only forms
with a number that occurs in the text are then searched for.
"""

from __future__ import annotations

import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from harness.record import Record
from harness.redaction.marks import Span
from harness.redaction.secret_checks import is_chance

KNOWN = "known"
"""Name of the rule for values that the redactor was given."""
MIN_SECRET_CHARACTERS = 8
"""Minimum length of a value to mask. Masking shorter values would hide ordinary text."""
_MIN_SURE_CHARACTERS = 12
"""Number of characters of a base64 text that must be certain before it is searched for."""

MIN_WRAPPED_CHARACTERS = 20
"""Minimum length of a form to search for across line ends. Two words of ordinary text could form a shorter one."""

_MIN_LINE_CHARACTERS = 12
"""Minimum length of a line of a value to search for separately. Ordinary text could contain a shorter one."""

_UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"  # RFC 3986, section 2.3
# Further characters that are not encoded by RFC 3986, Python's quote, JavaScript's encodeURIComponent, and encodeURI.
_LEFT_BARE = (b"", b"/", b"!'()*", b"!'()*;/?:@&=+$,#")
_ORDINARY = (
    r"(?s:[0-9]{1,11}"
    r"|[A-Za-z]?[a-z]{1,10}"
    r"|(.)\1*"
    r"|~?/(?:bin|boot|dev|etc|home|lib|media|mnt|nix|opt|private|proc|root|run|sbin|srv|sys|tmp|usr|var"
    r"|Applications|Library|System|Users|Volumes)(?:/[^\n]*)?)"
)
_END = r"(?:\r?\n|\\r\\n|\\n)"
_NUMBER = r"[ \t]*[0-9]{1,7}(?:\t|\\t|[:|-])"
_NUMBER_OR_A_PART = rf"(?:{_NUMBER}|[ \t]*[0-9]{{1,7}}\\?\Z)"
# Start of a line in a long word that a program wrapped: base64(1) after 76 characters, fold(1), an indented block.
_INDENT = r"[ \t]*"
# Start of a line in a text with line numbers: cat -n, grep -n, nl(1), pages of read_file.
_LISTED = rf"{_NUMBER_OR_A_PART}?{_INDENT}"
# Start of a line in a diff or a mail, with or without line numbers. In base64, a `+` may also be part of the value.
_MARKED = rf"{_NUMBER_OR_A_PART}?[-+<>]?{_INDENT}"
LINE_ENDS = tuple(_END + start for start in (_INDENT, _LISTED, _MARKED))
"""Patterns of the text between the lines of a value, one per layout of a text."""
_MARK_WORDS = "[redacted:known:"


def is_ordinary(plain: str) -> bool:
    """Return whether masking this value would hide ordinary text, whatever the name of its variable.

    Ordinary values are: up to 11 digits (a port, a number, a date), one word of up to 11 letters (`localhost`,
    `Development`), one repeated character, an absolute path below a system folder (a socket, a file that contains the
    key), and the text of the marks themselves. A password that is such a word is not found, because masking it would
    make texts unreadable.
    """
    return re.fullmatch(_ORDINARY, plain) is not None or plain in _MARK_WORDS or "[redacted:" in plain


def forms_of(plain: str) -> Iterator[str]:
    """Yield the spellings of `plain`, itself first. One spelling may occur more than once."""
    yield plain
    data = plain.encode("utf-8", "surrogatepass")
    yield from _escaped(plain)
    yield from _quoted(plain)
    yield from _percent_encoded(data)
    yield data.hex()
    yield data.hex().upper()
    yield from _base64(data)


def forms_of_lines(plain: str) -> Iterator[str]:
    """Yield the spellings of a value of several lines in other layouts, and those of its single lines.

    These are: its lines joined, to search for in an `unwrapped` text; its words separated by blanks, as a shell prints
    an unquoted variable; and each line that looks random. Words and the first line of a key are not secrets.
    """
    lines = [line.strip() for line in re.split(_END, plain)]
    if len(lines) == 1:
        return
    for form in ("".join(lines), " ".join(plain.split())):
        if len(form) >= MIN_WRAPPED_CHARACTERS and not is_ordinary(form):
            yield form
    for line in lines:
        if len(line) >= _MIN_LINE_CHARACTERS and is_chance(line) and not is_ordinary(line):
            yield from _escaped(line)


def _escaped(plain: str) -> Iterator[str]:
    """Yield the value as in JSON (RFC 8259), as in JSON inside a JSON string, and as in Python's repr."""
    for ascii_only in (True, False):
        once = json.dumps(plain, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        yield once.replace("/", "\\/")
    yield repr(plain)[1:-1]


def _quoted(plain: str) -> Iterator[str]:
    """Yield the value as quoted for a POSIX shell: in single quotes, in double quotes, and escaped per character."""
    yield plain.replace("'", "'\"'\"'")  # shlex.quote
    yield plain.replace("'", "'\\''")
    yield re.sub(r'([$`"\\])', r"\\\1", plain)
    yield re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", plain)


def _percent_encoded(data: bytes) -> Iterator[str]:
    for bare in _LEFT_BARE:
        unescaped = _UNRESERVED + bare
        for form in ("%{:02X}", "%{:02x}"):
            encoded = "".join(chr(byte) if byte in unescaped else form.format(byte) for byte in data)
            yield encoded
            yield encoded.replace("%20", "+")  # a form's blanks


def _base64(data: bytes) -> Iterator[str]:
    """Yield the base64 characters of `data` that are the same in any longer text, for each of the three offsets.

    A character has 6 bits (RFC 4648, sections 4 and 5).
    """
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        if end - first >= _MIN_SURE_CHARACTERS:
            sure = binascii.b2a_base64(bytes(before) + data, newline=False)[first:end].decode("ascii")
            yield sure
            yield sure.replace("+", "-").replace("/", "_")


def unwrapped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each pattern of LINE_ENDS that may match in `data`, with a copy of `data` without its matches.

    The result is that of the regular expressions, in an eighth of their time. A text of one line yields none.
    """
    if b"\n" not in data and b"\\n" not in data:
        return
    lines = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if b"\\n" in lines:
        lines = lines.replace(b"\\r\\n", b"\n").replace(b"\\n", b"\n")
    wrapped, bulleted, marked = LINE_ENDS
    first, *following = lines.split(b"\n")
    yield wrapped, b"".join([first, *(line.lstrip(b" \t") for line in following)])
    if re.search(rf"\n{_NUMBER}".encode(), lines):
        yield bulleted, re.sub(rf"\n{_LISTED}".encode(), b"", lines)
    if re.search(rf"\n(?:{_NUMBER})?[-+<>]".encode(), lines):
        yield marked, re.sub(rf"\n{_MARKED}".encode(), b"", lines)


def _wrapped_places(text: str, form: str, line_end: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of `form` in `text`, in one line or over several.

    Matches of `line_end` inside an occurrence are skipped.
    """
    removed = 0
    begins, shifts = [0], [0]
    for line_break in re.finditer(line_end, text):
        removed += line_break.end() - line_break.start()
        begins.append(line_break.end() - removed)
        shifts.append(removed)
    flat = re.sub(line_end, "", text)
    place = flat.find(form)
    while place >= 0:
        last = place + len(form) - 1
        yield (
            place + shifts[bisect_right(begins, place) - 1],
            last + shifts[bisect_right(begins, last) - 1] + 1,
        )
        place = flat.find(form, last + 1)


_MARKS = frozenset("+-<>0123456789")
_WORD = 4
"""Number of bytes that are compared as one number."""
_RARE = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&*+?@^{}~")


class Known(Record):
    """A form of a known value."""

    form: str
    plain: str
    data: bytes
    """The form in UTF-8."""


class Wrapped(Record):
    """Known values that continue over line ends, with the pattern of LINE_ENDS by which they were found."""

    line_end: str
    values: tuple[Known, ...]


class Candidates(Record):
    """The known values that occur in a text."""

    values: tuple[Known, ...]
    wrapped: tuple[Wrapped, ...]


NOTHING = Candidates(values=(), wrapped=())


class KnownValues:
    """All forms of a set of secret values.

    INVARIANT: a form has at least 2 * _WORD - 1 bytes. So it contains a complete word of the grid at any offset.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        """Compute the forms of the values. Ordinary values, and those under MIN_SECRET_CHARACTERS, are left out."""
        plains = [
            plain for plain in map(str.strip, secrets) if len(plain) >= MIN_SECRET_CHARACTERS and not is_ordinary(plain)
        ]
        forms: dict[str, str] = {}
        # Add whole values first. So a value that is also a line of another value gets its own mark.
        for forms_in in (forms_of, forms_of_lines):
            for plain in plains:
                for form in forms_in(plain):
                    forms.setdefault(form, plain)
        longest_first = sorted(forms.items(), key=lambda item: (-len(item[0]), item[0]))
        self._values = tuple(
            Known(form=form, plain=plain, data=form.encode("utf-8", "surrogatepass")) for form, plain in longest_first
        )
        self._by_word: dict[int, list[int]] = {}
        for index, value in enumerate(self._values):
            for word in set(_words(value.data)):
                self._by_word.setdefault(word, []).append(index)
        self._words = frozenset(self._by_word)

    @property
    def forms(self) -> tuple[str, ...]:
        """All spellings of all values, longest first. They are secret."""
        return tuple(value.form for value in self._values)

    def candidates(self, text: str) -> Candidates:
        """Return the forms that occur in `text`."""
        if not self._values:
            return NOTHING
        data = text.encode("utf-8", "surrogatepass")  # faster to search than a text with one wide character
        candidates = self._in(data)
        wrapped = tuple(
            Wrapped(line_end=line_end, values=over_lines)
            for line_end, flat in unwrapped(data)
            if (over_lines := self._over_lines(flat, data))
        )
        return Candidates(values=candidates, wrapped=wrapped) if candidates or wrapped else NOTHING

    def _over_lines(self, flat: bytes, data: bytes) -> tuple[Known, ...]:
        """Return the forms that occur in `flat` and, over line ends, in `data`.

        A form counts if it occurs in `flat` more often than in `data`. A form that begins like the mark of a line
        always counts, because `flat` lacks the beginning of an occurrence at the start of a line.
        """
        return tuple(
            value
            for value in self._in(flat)
            if len(value.form) >= MIN_WRAPPED_CHARACTERS
            and (value.form[0] in _MARKS or flat.count(value.data) > data.count(value.data))
        )

    def _in(self, data: bytes) -> tuple[Known, ...]:
        """Return the forms in `data`, the longest first."""
        met = self._words.intersection(memoryview(data)[: len(data) // _WORD * _WORD].cast("I"))
        if not met:
            return ()
        indexes = sorted({index for word in met for index in self._by_word[word]})
        return tuple(self._values[index] for index in indexes if self._values[index].data in data)


def known_spans(text: str, candidates: Candidates) -> Iterator[Span]:
    """Yield the span of each candidate in `text`. Spans may overlap.

    `candidates` are those of `text`, or of a longer text that contains it.
    """
    for value in candidates.values:
        start = text.find(value.form)
        while start >= 0:
            end = start + len(value.form)
            yield Span(start=start, end=end, rule=KNOWN, plain=value.plain)
            start = text.find(value.form, end)
    for wrapped in candidates.wrapped:
        for value in wrapped.values:
            for start, end in _wrapped_places(text, value.form, wrapped.line_end):
                yield Span(start=start, end=end, rule=KNOWN, plain=value.plain)


def _words(data: bytes) -> Iterator[int]:
    """Yield one word of `data` for each of its four possible offsets in the grid: the word that is rarest in text."""
    for first in range(_WORD):
        aligned = memoryview(data[first : first + (len(data) - first) // _WORD * _WORD])
        starts = range(0, len(aligned), _WORD)
        rarest = max(starts, key=lambda start: sum(byte in _RARE for byte in aligned[start : start + _WORD]))
        yield aligned[rarest : rarest + _WORD].cast("I")[0]
