"""Code and differences in colours: what is shown is the text, whatever a lexer, a file or a width makes of it."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from rich.syntax import Syntax
from rows import all_rows

from harness.files.diffs import compare
from harness.terminal.console import look_of
from harness.terminal.diff_drawing import diff_rows
from harness.terminal.highlighting import LANGUAGES, LONGEST, MOST_WORK, Highlighter, code_rows, language_of
from harness.terminal.row_text import WRAPPED, Row, Tint, cells, drawn, pieces, wrapped
from harness.terminal.styles import (
    DARK,
    LIGHT,
    SIXTEEN,
    UNKNOWN,
    Fill,
    Ink,
    Palette,
    Tone,
    palette_of,
    with_true_colours,
)

PALETTES = {"dark": DARK, "light": LIGHT, "sixteen": SIXTEEN, "unknown": UNKNOWN}
ESCAPES = re.compile(r"\x1b\[[0-9;]*m|\x1b\[K")
HOSTILE = (
    "[red]rich[/red] [link=https://evil.example]x[/link] :smile:",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b[2J\x1b[1;1Hgone\rover\x08\x07\x9b31m",
    "if (admin\u202e \u2066// begin\u2069 \u2066)",
    "zero\u200bwidth \ufeff tag \U000e0061 private \ue000",
    "\t\u4e16\u754c\u3002\t" * 20,
    "e" + "\u0301" * 40,
    "x" * 5_000,
    "\u2028line\u2029para\x85next\x0b\x0c",
)


def inks(language: str, *lines: str) -> list[list[tuple[str, Ink | Tone]]]:
    highlighter = Highlighter(language)
    return [[(line[start:end], ink) for start, end, ink in highlighter.line(line)] for line in lines]


def changed_rows(before: str, after: str, path: str, width: int) -> Iterator[Row]:
    old, new = (text.encode("utf-8", "surrogateescape") for text in (before, after))
    return diff_rows(compare(old, new).text(), path, width)


def texts(rows: list[Row]) -> list[str]:
    return [row.text for row in rows]


# --- code ---


def test_code_tokens_have_their_kinds() -> None:
    assert inks("python", 'def f(x): return "a" + 12  # why') == [
        [
            ("def", Ink.KEYWORD),
            ("f", Ink.NAME),
            ("return", Ink.KEYWORD),
            ('"a"', Ink.STRING),
            ("12", Ink.NUMBER),
            ("# why", Ink.COMMENT),
        ]
    ]


@all_rows(("language", "lines"), [
    ("python", ('"""one', "two", 'three""" + 1')),
    ("c", ("/* one", "two", "three */ + 1")),
    ("ts", ("`one", "two", "three` + 1")),
])  # fmt: skip
def test_string_or_comment_continues_on_later_lines_and_ends(language: str, lines: tuple[str, ...]) -> None:
    first, second, third = inks(language, *lines)
    kind = first[0][1]
    assert (kind in (Ink.STRING, Ink.COMMENT), second) == (True, [("two", kind)])
    assert (third[0][1], third[-1]) == (kind, ("1", Ink.NUMBER))


def test_a_comment_that_begins_where_a_string_ends_is_one() -> None:
    assert inks("ts", "`a", "${b} c`; /* long", "comment */ let")[2] == [
        ("comment */", Ink.COMMENT),
        ("let", Ink.KEYWORD),
    ]


def test_long_lines_and_lines_after_much_work_stay_plain() -> None:
    highlighter = Highlighter("python")
    assert highlighter.line(f"return {'x' * LONGEST}") == ()
    assert highlighter.line("return 1") != ()
    line = "return 1 " * (LONGEST // 9)
    coloured = sum(highlighter.line(line) != () for _ in range(2 * MOST_WORK // len(line) ** 2))
    assert 0 < coloured <= MOST_WORK // len(line) ** 2
    assert highlighter.line("return 1") == ()


@all_rows("language", sorted(LANGUAGES))
@pytest.mark.parametrize(
    "unit", ['"\\', "/*", "<!--", "${", "$((", "\\'", "r#", ": ", "~$", "&&", "!", '"""', "((", "{{", "`"]
)
def test_broken_code_never_gives_a_colour_outside_its_line(language: str, unit: str) -> None:
    highlighter = Highlighter(language)
    for line in ((unit * LONGEST)[:LONGEST], f"x {unit}", unit, "'", 'end */ --> """ `'):
        for start, end, _ in highlighter.line(line):
            assert 0 <= start < end <= len(line)


def test_every_language_has_its_lexer() -> None:
    assert [language for language in sorted(LANGUAGES) if Syntax("", language).lexer is None] == []


@all_rows(("path", "language"), [
    ("a/b.py", "py"), ("Makefile", "makefile"), ("x/Dockerfile", "dockerfile"), ("a.tar.gz", ""), ("a.H", "c"),
    ("README.md", "md"), ("", ""), ("a/.bashrc", "bash"), ("py/plain", ""), ("a.\x1b[31m", ""),
])  # fmt: skip
def test_language_follows_from_the_file_name(path: str, language: str) -> None:
    assert language_of(path) == language


@all_rows("language", ["python", "bash", "html", "klingon", ""])
@pytest.mark.parametrize("width", [12, 40, 80])
def test_hostile_code_is_shown_completely_and_safely(language: str, width: int) -> None:
    for hostile in HOSTILE:
        rows = list(code_rows(hostile.split("\n"), Highlighter(language), width, gutter="  $ "))
        plain = texts(rows)
        assert all(cells(text) <= max(width, 12) for text in plain)
        assert all(text.startswith("  $ " if number == 0 else f"  {WRAPPED}") for number, text in enumerate(plain))
        for palette in PALETTES.values():
            shown = [drawn(row, palette) for row in rows]
            assert [ESCAPES.sub("", line) for line in shown] == plain
            assert "".join(plain).isprintable()


# --- differences ---

OLD = 'import re\n\n\ndef f(x):\n    """Say\n    it."""\n    return x + 1\n\n\ny = f(1)\n'
NEW = OLD.replace("x + 1", "x + 2").replace("y = f(1)", "y = f(1)\nz = f(2)")


def test_a_difference_has_line_numbers_signs_and_grounds() -> None:
    rows = list(changed_rows(OLD, NEW, "a.py", 40))
    assert texts(rows) == [
        "   4   def f(x):",
        '   5       """Say',
        '   6       it."""',
        "   7 -     return x + 1",
        "   7 +     return x + 2",
        "   8   ",
        "   9   ",
        "  10   y = f(1)",
        "  11 + z = f(2)",
    ]
    assert [row.fill for row in rows[3:6]] == [Fill.REMOVED, Fill.ADDED, Fill.CODE]
    assert [row.tone for row in rows[3:6]] == [Tone.BAD, Tone.GOOD, Tone.PLAIN]


def test_the_words_that_changed_are_marked_and_the_code_is_coloured() -> None:
    rows = list(changed_rows(OLD, NEW, "a.py", 40))
    marked = [
        (row.text[start:end], ink) for row in rows for start, end, ink in row.tints if ink in (Ink.ADDED, Ink.REMOVED)
    ]
    assert marked == [("1", Ink.REMOVED), ("2", Ink.ADDED)]
    assert Tint(11, 17, Ink.KEYWORD) in rows[3].tints
    assert Tint(7, 17, Ink.STRING) in rows[2].tints  # the string that began above


def test_lines_that_have_little_in_common_have_no_marked_words() -> None:
    rows = list(changed_rows("one two\n", "alpha beta gamma\n", "a.txt", 40))
    assert [[tint.ink for tint in row.tints] for row in rows] == [[Ink.COMMENT]] * 2  # of their numbers


def test_changed_words_of_a_long_line_are_marked() -> None:
    line = "var x=1;" * 20_000
    rows = list(changed_rows(f"{line}var a = 1;\n", f"{line}var b = 1;\n", "x.txt", 400))

    marked = {ink: [row.text[t.start : t.end] for row in rows for t in row.tints if t.ink is ink] for ink in MARKS}
    assert marked == {Ink.REMOVED: ["a"], Ink.ADDED: ["b"]}


MARKS = (Ink.REMOVED, Ink.ADDED)


def test_hunks_are_parted_and_lines_about_the_diff_have_no_number() -> None:
    diff = (
        "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n@@ -9,0 +10 @@\n+c\n@@ -20 +22 @@ def f(x): \x1b[2J\n d\n"
        "[... 3 more lines of the diff ...]"
    )
    assert texts(list(diff_rows(diff, "x", 60))) == [
        "   1 - a",
        "     \\ No newline at end of file",
        "   1 + b",
        "     ...",
        "  10 + c",
        "     ... def f(x): \\x1b[2J",
        "  22   d",
        "     [... 3 more lines of the diff ...]",
    ]


def test_heading_after_the_first_hunk_is_shown() -> None:
    assert texts(list(diff_rows("@@ -9 +9 @@ class A:\n-a", "x", 40))) == ["    ... class A:", "  9 - a"]


def test_a_line_of_the_file_cannot_pass_for_a_hunk_or_for_another_line() -> None:
    before, after = "a\n", "a\n@@ -1 +900 @@\n   1 - b\n\r  2 + c\n"
    assert texts(list(changed_rows(before, after, "x", 40))) == [
        "  1   a",
        "  2 + @@ -1 +900 @@",
        "  3 +    1 - b",
        "  4 + \\x0d  2 + c",
    ]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_hostile_difference_is_shown_whole_and_safe(width: int) -> None:
    for first, second in pairwise(HOSTILE):
        rows = list(changed_rows(first, second, "x.py", width))
        plain = texts(rows)
        assert "".join(plain).isprintable()
        assert all(cells(text) <= width for text in plain)
        assert all(re.match(r" {2,}(?:\d+ [-+ ] |\S)", text) for text in plain)
        for palette in PALETTES.values():
            assert [ESCAPES.sub("", drawn(row, palette)) for row in rows] == plain


EMOJI = {
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "flag": "\U0001f1e9\U0001f1ea",
    "skin tone": "\U0001f44d\U0001f3fd",
    "style": "\u2764\ufe0f",
}


@all_rows("emoji", list(EMOJI.values()), ids=list(EMOJI))
def test_emoji_of_several_characters_is_whole_in_a_row(emoji: str) -> None:
    for room in range(cells(emoji), 3 * cells(emoji)):
        rows = [*pieces(emoji * 5, room), *wrapped(f"({emoji})" * 5, room)]
        assert all(row.count(emoji) * len(emoji) == len(row.translate({40: None, 41: None})) for row in rows), (
            room,
            rows,
        )


def test_wrapped_pieces_join_to_the_line() -> None:
    line = "return  call(alpha,   beta) + 世界世界 'a b'   " * 9
    for room in range(1, 60):
        parts = list(pieces(line, room))
        assert "".join(parts) == line
        assert all(cells(part) <= max(room, 2) for part in parts)
    assert list(pieces("alpha beta gamma", 12)) == ["alpha beta ", "gamma"]
    assert list(pieces("alpha(beta_gamma)", 12)) == ["alpha(beta_g", "amma)"]
    assert list(pieces("alpha.be(gamma)", 12)) == ["alpha.be(", "gamma)"]
    assert list(pieces("abcdefgh-e\u0301\u0301xyz", 10)) == ["abcdefgh-", "e\u0301\u0301xyz"]
    assert list(pieces("abcdefghi-\u0301xyz", 10)) == ["abcdefghi", "-\u0301xyz"]


# --- colours ---


@all_rows(("theme", "environment", "palette"), [
    ("auto", {"TERM": "xterm"}, SIXTEEN),
    ("auto", {"TERM": "xterm-256color"}, UNKNOWN),
    ("auto", {"TERM": "xterm", "COLORTERM": "truecolor", "COLORFGBG": "15;0"}, with_true_colours(DARK)),
    ("auto", {"TERM": "xterm-256color", "COLORFGBG": "0;default;15"}, LIGHT),
    ("auto", {"TERM": "xterm-256color", "COLORFGBG": "nonsense"}, UNKNOWN),
    ("light", {"TERM": "xterm-256color", "COLORFGBG": "15;0"}, LIGHT),
    ("dark", {"TERM": "xterm-kitty"}, DARK),
    ("light", {"TERM": "linux"}, SIXTEEN),
])  # fmt: skip
def test_the_colours_are_those_of_the_theme_as_far_as_the_terminal_has_them(
    theme: str, environment: dict[str, str], palette: Palette
) -> None:
    assert palette_of(theme, environment) == palette


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@all_rows(("theme", "environment", "colour"), [
    ("auto", {}, True), ("light", {}, True), ("none", {}, False), ("dark", {"NO_COLOR": "1"}, False),
    ("dark", {"TERM": "dumb"}, False),
])  # fmt: skip
def test_missing_theme_or_colour_support_disables_colours(
    theme: str, environment: dict[str, str], colour: bool
) -> None:
    assert look_of(_Terminal(), {"TERM": "xterm-256color", **environment}, theme=theme).colour is colour


@all_rows("name", sorted(PALETTES))
def test_each_palette_is_complete(name: str) -> None:
    palette = PALETTES[name]
    assert (set(palette.tones), set(palette.inks), set(palette.fills)) == (set(Tone), set(Ink), set(Fill))
    if palette.fills_background:
        assert all(re.fullmatch(r"38;5;\d+;48;5;\d+", code) for code in palette.fills.values())


def test_background_starts_after_the_first_two_columns() -> None:
    row = Row(text="  $ ls", tints=(Tint(4, 6, Ink.NAME),), fill=Fill.CODE)
    base = DARK.fills[Fill.CODE]
    name = f"{base};{DARK.inks[Ink.NAME]}"
    assert drawn(row, DARK) == f"  \x1b[{base}m$ \x1b[0m\x1b[{name}mls\x1b[0m\x1b[{base}m\x1b[K\x1b[0m"
