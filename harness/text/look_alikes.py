"""Warnings about deceptive characters in a command, such as letters that look like others (Unicode's UTS #39).

Covers only common look-alikes. The text is neither changed nor refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

_MOST_FINDINGS = 8
_MOST_NAMED = 4
"""Maximum number of characters named in one finding."""
MOST_CHARACTERS = 200_000
"""Maximum number of characters examined in a text."""
_WORD_SHOWN = 40

# Code points of common letters that look like the ASCII letter before the colon (UTS #39, confusables.txt).
_LETTERS = """
a:0430,03b1,0251 c:0441,03f2,1d04 d:0501,0257 e:0435,04bd g:0261,0581 h:04bb,0570 i:0456,03b9,0269 j:0458,03f3 k:03ba
l:04cf n:0578,057c o:043e,03bf,0585,10e7,05e1,1d0f p:0440,03c1 q:051b,0566 r:0433,1d26 s:0455,1d1b,ab81
u:057d,03c5,028b,1d1c v:03bd,0475,1d20 w:051d,0461,1d21 x:0445,03c7 y:0443,04af,03b3 z:1d22
A:0410,0391,13aa B:0412,0392,13f4 C:0421,03f9,13df D:13a0 E:0415,0395,13ac G:050c,13c0 H:041d,0397,13bb I:0406,0399,04c0
J:0408,13ab K:041a,039a,13e6 L:13de M:041c,039c,13b7 N:039d O:041e,039f,0555 P:0420,03a1,13e2 S:0405,054f,13da
T:0422,03a4,13a2 V:13d9 W:051c,13b3 X:0425,03a7 Y:04ae,03a5 Z:0396,13c3
"""
# Code points of signs that look like the ASCII sign before the blank, in addition to its NFKC equivalents.
_SIGNS = (
    "/ 1735 2044 2215 2571 27cb 29f8 2cc6 31d3 4e3f", "\\ 2216 27cd 29f5 29f9 31d4", ". 2024 a4f8 a60e 0701 0702",
    "| 01c0 05c0 2223 2758", "; 037e", ": 02d0 02f8 0589 05c3 2236 a789", "~ 02dc 223c", "* 066d 204e 2217", "& a778",
    "> 203a 02c3", "< 2039 02c2", "` 02cb 1fef",
)  # fmt: skip
# Full-width signs that are normal in East Asian text.
_EVERYDAY = frozenset("\uff01\uff03\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff5e")
# Characters that look like a dash but are not in Unicode's category Pd.
_DASHES = frozenset("\u02d7\u2043\u2212\u2500\u2501\u2796\ufe63\uff0d")
_STROKES = frozenset("\u30fc\u3161\u4e00\uff70")
"""Letters and a numeral that look like a dash."""
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Unicode's PropList.txt, Bidi_Control."""

_EAST_ASIA = frozenset("CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA IDEOGRAPHIC HANGUL BOPOMOFO".split())
# Scripts that may be mixed with Latin in one word: UTS #39, "moderately restrictive", without those that look like Latin.
_BESIDE_LATIN = frozenset(
    """ARABIC BENGALI DEVANAGARI ETHIOPIC GUJARATI GURMUKHI HEBREW KANNADA KHMER LAO MALAYALAM MYANMAR ORIYA SINHALA TAMIL
    TELUGU THAANA THAI TIBETAN""".split()
)


def findings(text: str, unseen: str) -> Iterator[str]:
    """Yield a sentence about each deceptive feature of `text`: at most _MOST_FINDINGS, then a note about the rest.

    `unseen` is a pattern for printable characters that are displayed as a blank or not at all. The sentences quote
    `text` unchanged, and the caller must make them safe to show.
    """
    if len(text) > MOST_CHARACTERS:
        yield f"only the first {MOST_CHARACTERS} characters were searched for look-alikes"
    sentences = tuple(dict.fromkeys(_all(text[:MOST_CHARACTERS], unseen)))
    yield from sentences[:_MOST_FINDINGS]
    if len(sentences) > _MOST_FINDINGS:
        yield f"and {len(sentences) - _MOST_FINDINGS} more such findings"


def _all(text: str, unseen: str) -> Iterator[str]:
    yield from _unseen(text, unseen)
    if any(_reorders(line) for line in text.splitlines()):
        yield "right-to-left letters with signs or digits between: a terminal may show these in another order"
    plain = {_script(char) for char in set(text) if char.isalpha() and char not in drawn_letters()}
    before = "\n"
    for word in re.findall("\\S+|\\n", text):
        if not word.isascii():
            names = before[-1] in "\n;&|({`" or re.search("[/.=-]", word)  # a program, a path or an option
            yield from _of_word(word, frozenset() if names else plain)
        before = word


def _unseen(text: str, unseen: str) -> Iterator[str]:
    """Yield a sentence for each kind of invisible or blank-looking characters, with the first word that has one."""
    kinds: dict[str, list[str]] = {}
    for char in dict.fromkeys(text):
        if char not in " \n\t" and (kind := _kind(char, unseen)):
            kinds.setdefault(kind, []).append(char)
    for kind, chars in kinds.items():
        at = text.index(chars[0])
        start = max(text.rfind(blank, 0, at) for blank in " \n\t") + 1
        word = re.match("[^ \\n\\t]+", text[start : at + _WORD_SHOWN])
        yield f"{_quoted_start(word.group()) if word else ''} holds {kind}: {_names_of(chars)}"


def _kind(char: str, unseen: str) -> str:
    if char in _BIDI_CONTROLS:
        return "characters that reorder text"
    if re.match(unseen, char):
        return "invisible characters"
    match unicodedata.category(char):
        case "Cc":
            return "control characters"
        case "Zs":
            return "blanks that are no blank to a shell"
        case "Zl" | "Zp":
            return "line ends that are none to a shell"
        case "Cf":
            return "invisible characters"
        case "Cs":
            return "bytes that are not UTF-8"
        case "Co" | "Cn":
            return "characters without a meaning in Unicode"
        case _:
            return ""


def _reorders(line: str) -> bool:
    """Return whether signs or digits between or after right-to-left letters may change places (UAX #9)."""
    if line.isascii():
        return False
    places = [at for at, char in enumerate(line) if unicodedata.bidirectional(char) in ("R", "AL")]
    if not places:
        return False
    between = re.search("[0-9/|;&<>$()\\\\=*~`-]", line[places[0] : places[-1] + 1])
    return bool(between or re.match("[\\s\"']*[0-9/|;&<>$()\\\\=*~`-]", line[places[-1] + 1 :]))


def _of_word(word: str, plain: frozenset[str] | set[str]) -> Iterator[str]:
    """Yield the deceptive features of a word. `plain` are the scripts that the text clearly uses."""
    stands = [char for char in dict.fromkeys(word) if _stands_for(char)]
    if stands:
        yield f"{_quoted_start(word)} holds what looks like ASCII: {_names_of(stands)}"
    begins = re.match("[\"'(]*([^\\w\\s\"'(]{1,3}|[\u30fc\u3161\u4e00\uff70](?=[A-Za-z]))\\w", word)
    if begins and all(char == "-" or _is_dash(char) for char in begins.group(1)) and not begins.group(1).isascii():
        dashes = [char for char in dict.fromkeys(begins.group(1)) if char != "-"]
        yield f"{_quoted_start(word)} looks like an option, but begins with {_names_of(dashes)}"
    bare = "".join(char for char in word if unicodedata.category(char)[0] != "M")
    for letters in re.findall("[^\\W\\d_]+", bare):
        if not letters.isascii():
            yield from _of_letters(letters, word, plain)


def _of_letters(letters: str, word: str, plain: frozenset[str] | set[str]) -> Iterator[str]:
    """Yield a sentence if letters mix scripts that do not belong together, or only look like Latin letters."""
    scripts: dict[str, list[str]] = {}
    for char in dict.fromkeys(letters):
        if char.isalpha() and not _stands_for(char) and (script := _script(char)):
            scripts.setdefault(script, []).append(char)
    latin = scripts.get("LATIN", [])
    foreign = [char for script, chars in scripts.items() if script != "LATIN" for char in chars]
    looks = drawn_letters()
    mixture = " and ".join(map(str.title, sorted(scripts)))
    if not _belong_together(scripts):
        yield f"{_quoted_start(word)} mixes letters of {mixture}: {_names_of(foreign)}"
    elif foreign and not latin and all(char in looks for char in foreign) and not plain & scripts.keys():
        as_latin = "".join(looks.get(char, char) for char in letters)
        yield f"{_quoted_start(word)} looks like {as_latin}, but is {mixture}: {_names_of(foreign)}"
    elif any(char.isascii() for char in latin) and (odd := [char for char in latin if char in looks]):
        yield f"{_quoted_start(word)} holds letters that look like ASCII: {_names_of(odd)}"


def _belong_together(scripts: Mapping[str, list[str]]) -> bool:
    """Return whether one word may mix letters of these scripts.

    Latin may mix with East Asian scripts or with one other. Greek may mix with Latin if it does not look like it
    (`Δt`).
    """
    foreign = scripts.keys() - {"LATIN"}
    if len(scripts) < 2 or foreign <= _EAST_ASIA:
        return True
    if len(foreign) != 1 or "LATIN" not in scripts:
        return False
    (other,) = foreign
    if other == "GREEK":
        return not any(char in drawn_letters() for char in scripts[other])
    return other in _BESIDE_LATIN


def _script(char: str) -> str:
    """Return the script of a letter: the first word of its name. Empty for letters without a script (the micro sign)."""
    name = unicodedata.name(char, "")
    if name.startswith(("MICRO", "MODIFIER", "FEMININE", "MASCULINE")):
        return ""
    return name.partition(" ")[0]


def _stands_for(char: str) -> str:
    """Return the ASCII text that a character is equivalent to (NFKC) or that a sign looks like. Empty if there is none."""
    if char < "\u0250" and char != "\u01c0":
        return ""
    if char in _signs():
        return _signs()[char]
    kind = unicodedata.category(char)
    if char in _EVERYDAY or not (kind[0] in "LPS" or kind in ("Nd", "Nl")):
        return ""
    plain = unicodedata.normalize("NFKC", char)
    if not plain.isascii() or not plain.strip() or plain == char:
        return ""
    if len(plain) > 1 and (kind == "So" or not plain.isalpha()):  # a trade mark, an ellipsis
        return ""
    return plain


def _is_dash(char: str) -> bool:
    return not char.isascii() and (unicodedata.category(char) == "Pd" or char in _DASHES or char in _STROKES)


def _quoted_start(word: str) -> str:
    return f'"{word}"' if len(word) <= _WORD_SHOWN else f'"{word[:_WORD_SHOWN]}" (and so on)'


def _names_of(chars: Iterable[str]) -> str:
    """Return the code points and names of the first characters, and the number of the others."""
    chars = tuple(chars)
    names = [f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in chars[:_MOST_NAMED]]
    return ", ".join(names) + (f" and {len(chars) - _MOST_NAMED} more" if len(chars) > _MOST_NAMED else "")


@cache
def drawn_letters() -> Mapping[str, str]:
    """Return a mapping of each look-alike to the ASCII letter that it looks like."""
    rows = (row.split(":") for row in _LETTERS.split())
    return {chr(int(code, 16)): latin for latin, codes in rows for code in codes.split(",")}


@cache
def _signs() -> Mapping[str, str]:
    return {chr(int(code, 16)): row[0] for row in _SIGNS for code in row.split()[1:]}
