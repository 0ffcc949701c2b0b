"""Checks that tell secrets from texts that only look like them: randomness, decoded headers, placeholders."""

from __future__ import annotations

import binascii
import json
import math
import re
from functools import lru_cache

from harness.regex import regex

_MIN_BITS = 3.0
"""Minimum entropy (Shannon) of a random value of 12 to 20 characters, in bits per character. Words have less."""

_MIN_CHANGES = 0.15
"""Minimum share, in a random value, of neighbouring characters of different kinds: digits, lower case, upper case."""
_DENSE_BITS = 3.8
"""Minimum entropy of 40 random base64 characters, in bits per character. They have about 4.9."""
_MOST_LOOKED_AT = 256
"""Maximum number of characters of a value that are examined."""

_CHANGES = (b"0a", b"0A", b"a0", b"A0", b"aA")
_KINDS = bytes(
    ord("0" if byte in b"0123456789" else "a" if 97 <= byte <= 122 else "A" if 65 <= byte <= 90 else "-")
    for byte in range(256)
)
"""The kind of character of each ASCII byte."""
_FILLER = r"[xX]{6}|\*{3}|\.{3}|[-_#]{6}|…"
_PLACEHOLDER = (
    r"(?i:^[<{(%$]|[>})]$|^\[[^:\]]*\]$|\$\{|\{\{|%s|%\(|example|sample|dummy|placeholder|change.?me|replace|^\W*redacted\W*$|insert|"
    r"your|(?:^|[-_])(?:my|the|some|fake|test|todo)[-_]|^(?:fake|test)|not.?a.?real|null$|none$|undefined)"
)
# Every placeholder of letters and digits contains one of these words, or begins with `fake` or `test`.
_PLACEHOLDER_WORDS = (
    "example", "sample", "dummy", "placeholder", "change", "replace", "redacted", "insert", "your", "real", "null", "none",
    "undefined",
)  # fmt: skip
_WORD_PASSWORDS = frozenset(
    "password passwd passwort pass passw pwd pw secret token key user username name login admin root guest foo bar baz "
    "abc test pass1 pass2 password1 1234 12345 123456 p w x a b".split()
)
_NOT_CHANCE = regex(
    r"(?s:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # a UUID (RFC 9562)
    r"|[A-Za-z][A-Za-z0-9+.-]*://.*"
    r"|(?:sha(?:1|224|256|384|512)|md5|blake[23][a-z]?)[-:=].*"  # Subresource Integrity, lock files
    r"|v?[0-9]+(?:\.[0-9]+)+.*"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}.*"
    r"|(?:~|\.{1,2}|/[a-z]{2,12})/.*"
    r"|[0-9a-fA-F]{1,31})"  # a number, the beginning of a digest
)


_DOTTED = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+"
_ESCAPE_BEFORE = (
    r"(?:\\[abfnrtv0]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}|&[a-z]{2,5};|\[[0-9;]{0,8}m)\Z"
)


def is_filler(value: str) -> bool:
    """Return whether a value is filler: `xxxxxx`, stars or dots in place of a secret."""
    value = value[:_MOST_LOOKED_AT]
    if value.isalnum() and "xx" not in value.lower():
        return False  # the most frequent answer, at a tenth of the time
    return re.search(_FILLER, value) is not None


def _is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `<your-key>`, `${TOKEN}`, `changeme`."""
    if value.isalnum() and value.isascii():
        low = value.lower()
        if not (any(word in low for word in _PLACEHOLDER_WORDS) or low.startswith(("fake", "test"))):
            return is_filler(value)
    return is_filler(value) or re.search(_PLACEHOLDER, value) is not None


def is_password(value: str) -> bool:
    """Return whether the text in a URL's password position can be a password: not a placeholder or a word such as
    "password".
    """
    return not _is_placeholder(value) and value.lower() not in _WORD_PASSWORDS


def is_mixed_password(value: str) -> bool:
    """Return whether a value can be a password and has more than letters.

    Used after short options and in addresses, where a plain word does not count.
    """
    return not value.isalpha() and is_password(value)


def is_marked_password(value: str) -> bool:
    """Return whether an unquoted password differs from a name in code, by a sign, or by a digit and both cases."""
    has_cases = value != value.lower() and value != value.upper()
    has_sign = re.search("[!@#$%^&*+~?]", value) is not None
    return (has_sign or (has_digit(value) and has_cases)) and is_mixed_password(value)


def is_chance(value: str, min_length: int = 12) -> bool:
    """Return whether a value looks random: it mixes letters and digits as words and names do not.

    False for a UUID, an address, a labelled digest, a version, a date and a path.
    """
    return len(value) >= min_length and _is_chance(value[:_MOST_LOOKED_AT])


@lru_cache(maxsize=4096)
def _is_chance(value: str) -> bool:
    """Return whether a value that is long enough looks random. Cached, as a text often repeats a value."""
    kinds = value.encode("ascii", "replace").translate(_KINDS)
    if b"0" not in kinds or kinds.count(b"a") + kinds.count(b"A") < 2:
        return False
    neighbours = sum(len(run) - 1 for run in kinds.split(b"-") if run)
    if not sum(map(kinds.count, _CHANGES)) >= _MIN_CHANGES * neighbours > 0 or not _has_bits(value, _MIN_BITS):
        return False
    return not _is_of_known_make(value) and not _is_placeholder(value)


def _is_of_known_make(value: str) -> bool:
    if value.isalnum():
        return len(value) < 32 and not value.strip("0123456789abcdefABCDEF")  # a number, the beginning of a digest
    return _NOT_CHANCE.fullmatch(value) is not None


def is_long_chance(value: str) -> bool:
    """Return whether a value has at least 20 characters and looks random."""
    return is_chance(value, 20)


def is_dense(value: str) -> bool:
    """Return whether a value of a known length has a digit and the entropy of random text."""
    return has_digit(value) and _has_bits(value, _DENSE_BITS)


def is_bare_chance(value: str) -> bool:
    """Return whether an unquoted value looks random, and is not a dotted name in code such as `a25519.B25519Key`."""
    return is_chance(value, 20) and re.fullmatch(_DOTTED, value) is None


def has_digit(value: str) -> bool:
    """Return whether a value contains a digit. Words joined by hyphens have none."""
    return any(character.isdigit() for character in value)


def _has_bits(value: str, min_bits: float) -> bool:
    """Return whether a value has at least `min_bits` bits per character.

    A cheap lower bound, from the number of distinct characters, often suffices.
    """
    max_repeats = len(value) - len(set(value)) + 1
    return (
        math.log2(len(value)) - max_repeats * math.log2(max_repeats) / len(value) >= min_bits or bits(value) >= min_bits
    )


def bits(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    count = len(value)
    return -sum(n / count * math.log2(n / count) for n in map(value.count, set(value)))


def has_token_header(value: str) -> bool:
    """Return whether a value begins like a JSON Web Token: base64url of an object with the key `alg` (RFC 7515, section
    4).
    """
    segment, point, _ = value[:8192].partition(".")
    try:
        header = json.loads(_decoded(segment.replace("-", "+").replace("_", "/")))
    except (ValueError, RecursionError):
        return False
    return bool(point) and isinstance(header, dict) and isinstance(header.get("alg"), str)


def is_basic_pair(value: str) -> bool:
    """Return whether a value is base64 of `user:password` (RFC 7617, section 2)."""
    try:
        pair = _decoded(value).decode("utf-8")
    except ValueError:
        return False
    name, colon, password = pair.partition(":")
    return bool(colon) and pair.isprintable() and bool(password) and " " not in name


def stands_for_number(segment: str) -> bool:
    """Return whether a value is base64 of a number, like the first part of a Discord token (Discord's developer
    documentation).
    """
    try:
        return _decoded(segment.replace("-", "+").replace("_", "/")).isdigit()
    except ValueError:
        return False


def _decoded(segment: str) -> bytes:
    """Decode base64 without padding. Raises ValueError."""
    return binascii.a2b_base64(segment.rstrip("=") + "=" * (-len(segment.rstrip("=")) % 4), strict_mode=True)


def segment_before(text: str, end: int) -> str:
    """Return the run of letters, digits, `_` and `-` before `end`, at most 28 characters."""
    match = re.search(r"[A-Za-z0-9_-]*\Z", text[max(0, end - 28) : end])
    return match[0] if match else ""


def is_apart(text: str, start: int) -> bool:
    r"""Return whether a word begins at `start`: no letter or digit precedes it, except as the end of an escape.

    Examples of escapes: `\n` in JSON, `%3D` for `=` in an address, and terminal colours, which end in `m`.
    """
    if start == 0 or not (text[start - 1].isalnum() and text[start - 1].isascii()):
        return True
    return re.search(_ESCAPE_BEFORE, text[max(0, start - 12) : start]) is not None
