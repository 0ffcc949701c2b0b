"""Hostile text made safe to show: nothing that moves the cursor, reorders, hides or piles up text survives."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from itertools import groupby

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rows import all_rows
from sizes import proof_size
from work import assert_linear

from harness.text.visible import MOST_MARKS, suspicious, visible, visible_line, visible_prose

# Unicode's DerivedCoreProperties.txt, Default_Ignorable_Code_Point: what is not drawn at all.
_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
# Letters and symbols that are drawn as a blank, and a placeholder that is drawn as nothing.
_BLANK_BUT_NO_BLANK = "\u2800\U0001d159\U00013441\U00013442\U00016fe4\ufffc"
BIDI_CONTROL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # PropList.txt


def hides(char: str) -> bool:
    """Say by Unicode's own data whether a character can move the cursor, reorder or hide text, or is drawn nobody knows how."""
    category = unicodedata.category(char)
    if char in " \n\t":
        return False
    if category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") or char in _BLANK_BUT_NO_BLANK:
        return True
    return any(first <= ord(char) <= last for first, last in _IGNORABLE)


def is_mark(char: str) -> bool:
    """Say whether a terminal draws a character into the cell before it."""
    jamo = "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"
    return unicodedata.category(char).startswith("M") or jamo


# All of the planes with marks and signs, and samples of those that hold ideographs, nothing, or nothing but private use.
STEP = proof_size("CODE_POINT_STEP", 97, full=1)
CODE_POINTS = (
    *range(0x20000),
    *range(0x20000, 0xE0000, STEP),
    *range(0xE0000, 0xE1000),
    *range(0xE1000, 0x110000, STEP),
)


def test_exactly_the_hiding_code_points_are_escaped() -> None:
    wrong = [
        f"U+{code:04X}" for code in CODE_POINTS if (visible(f"a{chr(code)}") == f"a{chr(code)}") == hides(chr(code))
    ]
    assert wrong == []
    assert all(hides(char) for char in BIDI_CONTROL)


def test_combining_mark_is_escaped_at_a_beginning() -> None:
    """Over all code points: at the beginning, and at the beginning of a line or a column."""
    kept = [
        f"U+{code:04X}"
        for code in CODE_POINTS
        for before in ("", "x\n", "x\t")
        if is_mark(chr(code)) and chr(code) in visible(f"{before}{chr(code)}")
    ]
    assert kept == []


ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
@example("\x1b[31mred\x1b[0m\r\b\x7f\x9b")
@example("a\u202eb\u200bc\u2066d\ufeff")
@example("\ud800\U000e0041")
def test_hiding_characters_are_escaped_in_any_text(text: str) -> None:
    shown = visible(text)
    assert [char for char in shown if hides(char)] == []
    assert shown.encode().decode() == shown
    assert visible(shown) == shown
    assert most_marks(shown) <= MOST_MARKS
    assert not (shown and is_mark(shown[0]))


MARKS = st.text(st.sampled_from("a\u0300\u0338\u20dd\u0e31\u0903\u1161\u11a8 \n\U0001f600-"), max_size=40)


def most_marks(text: str) -> int:
    """Return how many nonspacing marks stand on one base at the most."""
    most = count = 0
    for char in text:
        count = count + 1 if is_mark(char) and unicodedata.category(char) != "Mc" else 0 if not is_mark(char) else count
        most = max(most, count)
    return most


def most_of_any_kind(text: str) -> int:
    """Return how many marks of any kind stand on one base at the most."""
    return max(len(list(run)) if marks else 0 for marks, run in groupby(f"a{text}", is_mark))


@given(MARKS)
@example("\u0300" * 5 + "\u0903" * 4)
def test_marks_do_not_pile_up(text: str) -> None:
    shown = visible(text)
    assert most_marks(shown) <= MOST_MARKS
    assert visible(shown) == shown
    assert visible(f"a{text}").startswith("a")
    has_few = most_marks(text) <= MOST_MARKS and most_of_any_kind(text) <= 8
    assert not has_few or "\\" not in visible(f"a{text}".replace("\n", "b"))


@given(st.lists(ANY_TEXT, max_size=4))
def test_pieces_that_were_made_safe_are_safe_together(pieces: list[str]) -> None:
    shown = "".join(map(visible, pieces))
    assert visible(shown) == shown


@given(ANY_TEXT, st.integers(min_value=0, max_value=50))
def test_a_line_is_one_line_of_bounded_width(text: str, width: int) -> None:
    line = visible_line(text, width)
    cut = len(visible(text).replace("\n", "\\n").replace("\t", "\\t")) - width
    assert [char for char in line if hides(char) or char in "\n\t"] == []
    assert len(line) <= width + (len(f"...(+{cut} characters)") if cut > 0 else 0)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_text_without_such_characters_is_left_alone(text: str) -> None:
    plain = "".join(char for char in text if not hides(char) and not is_mark(char))
    assert visible(plain) == plain


BURMESE = "\u1000\u103c\u103d\u103e\u102f\u1036\u1037\u1038"
SHOWN = [
    pytest.param("", "", id="nothing"),
    pytest.param("plain text", "plain text", id="plain text"),
    pytest.param("two\nlines\tand a tab", "two\nlines\tand a tab", id="newline and tab stay"),
    pytest.param("grüße 漢字 😀", "grüße 漢字 😀", id="letters of every script stay"),
    pytest.param("\x1b[2J", "\\x1b[2J", id="an escape sequence"),
    pytest.param("\x9b2J", "\\x9b2J", id="a C1 control"),
    pytest.param("a\rb", "a\\x0db", id="a carriage return"),
    pytest.param("a\bb", "a\\x08b", id="a backspace"),
    pytest.param("a\0b", "a\\x00b", id="NUL"),
    pytest.param("a\x7fb", "a\\x7fb", id="DEL"),
    pytest.param("a\u202eb", "a\\u202eb", id="right-to-left override"),
    pytest.param("a\u200db", "a\\u200db", id="zero-width joiner"),
    pytest.param("a\u00a0b", "a\\xa0b", id="no-break space"),
    pytest.param("a\u3000b", "a\\u3000b", id="ideographic space"),
    pytest.param("a\u2800b", "a\\u2800b", id="braille blank"),
    pytest.param("a\u3164b", "a\\u3164b", id="hangul filler"),
    pytest.param("a\ud800b", "a\\ud800b", id="a lone surrogate"),
    pytest.param("a\U000e0041b", "a\\U000e0041b", id="a tag character"),
    pytest.param("a\ue000b\U000f0000", "a\\ue000b\\U000f0000", id="private use"),
    pytest.param("a\u0378b\ufffeb", "a\\u0378b\\ufffeb", id="what Unicode does not know"),
    pytest.param("a\u2028b\u2029c", "a\\u2028b\\u2029c", id="line and paragraph separators"),
    pytest.param("a" + "\u0301" * 5, "a" + "\u0301" * 5, id="five marks on a letter"),
    pytest.param(
        "a" + "\u0301" * 7 + "b\u0301", "a" + "\u0301" * 5 + "\\u0301\\u0301b\u0301", id="seven marks on a letter"
    ),
    pytest.param("\u0338a", "\\u0338a", id="a mark with nothing to stand on"),
    pytest.param("\u1161", "\\u1161", id="a vowel that is drawn into the cell before it"),
    pytest.param("\u1112\u1161\u11ab", "\u1112\u1161\u11ab", id="a syllable of Hangul in its letters"),
    pytest.param(BURMESE, BURMESE, id="a full syllable of Burmese"),
    pytest.param("\u26a0\ufe0f", "\u26a0\\ufe0f", id="a presentation selector"),
    pytest.param("a\U0001bca0b", "a\\U0001bca0b", id="a shorthand format control"),
]


@all_rows(("text", "shown"), SHOWN)
def test_a_character_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@all_rows(
    ("text", "width", "line"),
    [
        pytest.param("abc", 3, "abc", id="exactly as wide"),
        pytest.param("abcd", 3, "abcd", id="one too wide: the note would be longer"),
        pytest.param("x" * 22, 3, "x" * 22, id="a rest as long as the note"),
        pytest.param("x" * 23, 3, "xxx...(+20 characters)", id="a rest longer than the note"),
        pytest.param("a\nb\tc", 20, "a\\nb\\tc", id="newline and tab as escapes"),
        pytest.param("a\x1b", 20, "a\\x1b", id="controls as escapes"),
        pytest.param("\n" * 13, 3, "\\n\\...(+23 characters)", id="cut after escaping"),
    ],
)
def test_line_is_cut_with_the_omitted_length(text: str, width: int, line: str) -> None:
    assert visible_line(text, width) == line


@all_rows(
    ("text", "shown"),
    [
        pytest.param("\u26a0\ufe0f mind", "\u26a0 mind", id="emoji style"),
        pytest.param("\u2714\ufe0e", "\u2714", id="text style"),
        pytest.param("1\ufe0f\u20e3", "1\u20e3", id="a keycap"),
        pytest.param("\U0001f469\u200d\U0001f4bb", "\U0001f469\U0001f4bb", id="two joined pictures"),
        pytest.param("\u2764\ufe0f\u200d\U0001f525", "\u2764\U0001f525", id="joined after a selector"),
        pytest.param("a\ufe0f", "a\\ufe0f", id="a selector after a letter"),
        pytest.param("\u26a0\ufe0f\ufe0f", "\u26a0\\ufe0f", id="a second selector"),
        pytest.param("a\u200d\U0001f4bb", "a\\u200d\U0001f4bb", id="a joiner after a letter"),
        pytest.param("\u202e\u26a0\ufe0f\x1b", "\\u202e\u26a0\\x1b", id="all else as everywhere"),
        pytest.param("plain", "plain", id="plain text"),
    ],
)
def test_prose_omits_emoji_selectors_and_joiners(text: str, shown: str) -> None:
    assert visible_prose(text) == shown


@given(ANY_TEXT)
def test_prose_shows_hiding_characters_too(text: str) -> None:
    shown = visible_prose(text)
    assert [char for char in shown if hides(char)] == []
    assert visible(shown) == shown


RIGHT_TO_LEFT = "right-to-left letters with signs or digits between: a terminal may show these in another order"
SUSPICIOUS = [
    pytest.param(
        "\u0441at /etc/passwd",
        '"\u0441at" mixes letters of Cyrillic and Latin',
        "\u0441",
        id="mixed scripts",
    ),
    pytest.param(
        "a\u0301\u0441",
        '"a\u0301\u0441" mixes letters of Cyrillic and Latin',
        "\u0441",
        id="mixed across a mark",
    ),
    pytest.param(
        "\u0441\u0440 a b",
        '"\u0441\u0440" looks like cp, but is Cyrillic',
        "\u0441\u0440",
        id="a program all in look-alikes",
    ),
    pytest.param(
        "true && \u0441\u0440 \u0438\u0437",
        '"\u0441\u0440" looks like cp, but is Cyrillic',
        "\u0441\u0440",
        id="also beside plain Russian",
    ),
    pytest.param(
        "\u03bfk",
        '"\u03bfk" mixes letters of Greek and Latin',
        "\u03bf",
        id="a Greek look-alike",
    ),
    pytest.param(
        "\u0261it push",
        '"\u0261it" holds letters that look like ASCII',
        "\u0261",
        id="a Latin look-alike",
    ),
    pytest.param(
        "\uff52\uff4d x",
        '"\uff52\uff4d" holds what looks like ASCII',
        "\uff52\uff4d",
        id="fullwidth letters",
    ),
    pytest.param("ls a\uff0fb", '"a\uff0fb" holds what looks like ASCII', "\uff0f", id="a fullwidth slash"),
    pytest.param("ls a\u2044b", '"a\u2044b" holds what looks like ASCII', "\u2044", id="a fraction slash"),
    pytest.param("ls a\u2215b", '"a\u2215b" holds what looks like ASCII', "\u2215", id="a division slash"),
    pytest.param("ls a\u2024b", '"a\u2024b" holds what looks like ASCII', "\u2024", id="a dot"),
    pytest.param("a \u01c0 sh", '"\u01c0" holds what looks like ASCII', "\u01c0", id="a bar"),
    pytest.param(
        "\U0001d4c1s",
        '"\U0001d4c1s" holds what looks like ASCII',
        "\U0001d4c1",
        id="a mathematical letter",
    ),
    pytest.param(
        "rm \u2013rf x",
        '"\u2013rf" looks like an option, but begins with',
        "\u2013",
        id="an option with an en dash",
    ),
    pytest.param("rm \u2014help", '"\u2014help" looks like an option, but begins with', "\u2014", id="with an em dash"),
    pytest.param(
        "rm -\u2010force",
        '"-\u2010force" looks like an option, but begins with',
        "\u2010",
        id="with one dash of two",
    ),
    pytest.param(
        "rm '\u2212r'",
        "\"'\u2212r'\" looks like an option, but begins with",
        "\u2212",
        id="quoted, with a minus",
    ),
    pytest.param(
        "rm \u4e00rf",
        '"\u4e00rf" looks like an option, but begins with',
        "\u4e00",
        id="with a numeral",
    ),
    pytest.param(
        "rm\u00a0-rf x",
        '"rm\\xa0-rf" holds blanks that are no blank to a shell',
        "\u00a0",
        id="an odd blank",
    ),
    pytest.param("rm a\u200bb", '"a\\u200bb" holds invisible characters', "\u200b", id="zero width"),
    pytest.param("rm a\ufe0f", '"a\\ufe0f" holds invisible characters', "\ufe0f", id="a variation selector"),
    pytest.param("echo \u202eexe", '"\\u202eexe" holds characters that reorder text', "\u202e", id="bidi"),
    pytest.param("ls \x1b[2J", '"\\x1b[2J" holds control characters', "\u001b", id="an escape in ASCII"),
    pytest.param("ls \udcff", '"\\udcff" holds bytes that are not UTF-8', "\udcff", id="a byte of a file name"),
    pytest.param("ls \ue000", '"\\ue000" holds characters without a meaning in Unicode', "\ue000", id="private use"),
    pytest.param("a\u2028b", '"a\\u2028b" holds line ends that are none to a shell', "\u2028", id="a line separator"),
    pytest.param(
        "echo \u05d0\u05d1 | rm \u05d0",
        RIGHT_TO_LEFT,
        "",
        id="right to left",
    ),
]


@all_rows(("text", "said", "chars"), SUSPICIOUS)
def test_deceptive_characters_are_named(text: str, said: str, chars: str) -> None:
    names = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in chars)
    assert suspicious(text) == (f"{said}{' ' if said.endswith('with') else ': '}{names}" if chars else said,)


@all_rows(
    "text",
    [
        pytest.param("git status --short | head -3 && rm -rf build\n\tls", id="ASCII"),
        pytest.param(
            "git commit -m '\u0418\u0441\u043f\u0440\u0430\u0432\u0438\u043b \u0441 \u0438'",
            id="Russian",
        ),
        pytest.param("git commit -m '\u4fee\u6b63\uff0c\u5b8c\u6210\uff01\uff08\u6d4b\u8bd5\uff09'", id="Chinese"),
        pytest.param("git\u63d0\u4ea4 \u30d5\u30a1\u30a4\u30ebtest", id="East Asian letters with Latin ones"),
        pytest.param("echo '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd'", id="Hebrew without signs"),
        pytest.param("caf\u00e9 na\u00efve Z\u00fcrich \u0130stanbul", id="Latin beyond ASCII"),
        pytest.param(
            "echo \u0394t k\u03a9 \u00b5s m\u00b2 \u2122 \u2026 \u00bd \u201chi\u201d it\u2019s \U0001f600",
            id="signs of every day",
        ),
        pytest.param("echo a \u2014 b", id="a dash between words"),
        pytest.param("src/\u0444\u0430\u0439\u043b_v2.py", id="two scripts in two parts of a name"),
    ],
)
def test_ordinary_text_is_not_suspicious(text: str) -> None:
    assert suspicious(text) == ()


@given(ANY_TEXT)
def test_findings_for_any_text_are_short_and_safe(text: str) -> None:
    said = suspicious(text)
    assert len(said) <= 10
    assert all(visible(finding) == finding and "\n" not in finding and len(finding) < 500 for finding in said)
    assert said or not any(hides(char) for char in text)


def test_many_findings_are_counted() -> None:
    said = suspicious(" ".join(f"\u0441{letter}" for letter in "abdfghklmnz"))
    assert len(said) == 9
    assert said[-1] == "and 3 more such findings"


def test_limit_of_the_search_is_reported() -> None:
    said = suspicious("a " * 150_000 + "\u0441at")
    assert said == ("only the first 200000 characters were searched for look-alikes",)


@all_rows(
    "unit",
    [
        pytest.param("\u0300", id="one pile of marks"),
        pytest.param("\u2500", id="signs"),
        pytest.param("\u1161", id="jamo"),
        pytest.param("\u26a0\ufe0f\u200d", id="selectors and joiners"),
        pytest.param("\x1b\u202e", id="escapes"),
        pytest.param("\u4e2d", id="letters"),
    ],
)
def test_the_work_is_linear(unit: str) -> None:
    """What the regular expressions take is timed by bench/growth.py."""
    for show in (visible, visible_prose, suspicious):
        assert_linear(lambda size: "a" + unit * size, show, 500)
    long = "a" + unit * 60_000
    shown, prose = visible(long), visible_prose(long)
    assert (visible(shown), visible_prose(prose)) == (shown, prose)
    assert all(len(finding) < 500 for finding in suspicious(long))


def test_ascii_does_not_pay_for_unicode() -> None:
    script = (
        "import sys; from harness.text.visible import *; visible('a\\x1b\\n'); suspicious('rm -rf x'); visible_line('b' * 300);"
        "print('unicodedata' in sys.modules, 'harness.text.look_alikes' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out == "False False\n"
