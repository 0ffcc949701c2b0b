"""Hostile text made safe to show: nothing that moves the cursor, reorders or hides text survives."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.visible import visible, visible_line

# Unicode's DerivedCoreProperties.txt, Default_Ignorable_Code_Point: what is not drawn at all.
_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_BLANK_BUT_NO_BLANK = "\u2800"


def hides(char: str) -> bool:
    """Say by Unicode's own data whether a character can move the cursor, reorder or hide text."""
    category = unicodedata.category(char)
    if char in " \n\t":
        return False
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs") or char == _BLANK_BUT_NO_BLANK:
        return True
    return any(first <= ord(char) <= last for first, last in _IGNORABLE)


def test_over_all_code_points_exactly_the_hiding_ones_are_escaped() -> None:
    """Assigned ones: the reserved places among the format characters are escaped too."""
    beyond = range(0x80, sys.maxunicode + 1)
    kept = set(visible("".join(map(chr, beyond)))) | {char for char in map(chr, range(0x80)) if visible(char) == char}
    wrong = [
        f"U+{code:04X}"
        for code in range(sys.maxunicode + 1)
        if (chr(code) in kept) == hides(chr(code)) and unicodedata.category(chr(code)) != "Cn"
    ]
    assert wrong == []


ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
@example("\x1b[31mred\x1b[0m\r\b\x7f\x9b")
@example("a\u202eb\u200bc\u2066d\ufeff")
@example("\ud800\U000e0041")
def test_no_hiding_character_survives_in_any_text(text: str) -> None:
    shown = visible(text)
    assert [char for char in shown if hides(char)] == []
    assert shown.encode().decode() == shown
    assert visible(shown) == shown


@given(ANY_TEXT, st.integers(min_value=0, max_value=50))
def test_a_line_is_one_line_of_bounded_width(text: str, width: int) -> None:
    line = visible_line(text, width)
    cut = len(visible(text).replace("\n", "\\n").replace("\t", "\\t")) - width
    assert [char for char in line if hides(char) or char in "\n\t"] == []
    assert len(line) <= width + (len(f"...(+{cut} characters)") if cut > 0 else 0)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u2800")))
def test_text_without_such_characters_is_left_alone(text: str) -> None:
    plain = "".join(char for char in text if not hides(char))
    assert visible(plain) == plain


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
    pytest.param("a\U0001bca0b", "a\\U0001bca0b", id="a shorthand format control"),
]


@pytest.mark.parametrize(("text", "shown"), SHOWN)
def test_a_character_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        pytest.param("abc", 3, "abc", id="exactly as wide"),
        pytest.param("abcd", 3, "abc...(+1 characters)", id="one too wide"),
        pytest.param("a\nb\tc", 20, "a\\nb\\tc", id="newline and tab as escapes"),
        pytest.param("a\x1b", 20, "a\\x1b", id="controls as escapes"),
        pytest.param("\n\n", 3, "\\n\\...(+1 characters)", id="cut after escaping"),
    ],
)
def test_a_line_is_cut_and_says_by_how_much(text: str, width: int, line: str) -> None:
    assert visible_line(text, width) == line
