"""Markdown as it streams: every kind of block at three widths, hostile text, and the same lines however it was cut."""

from __future__ import annotations

import itertools
import re
from functools import partial

import pytest
import wcwidth
from hypothesis import example, given, settings
from hypothesis import strategies as st
from work import lines_run

from harness.terminal.markdown_stream import MOST_IN_A_BLOCK, MOST_IN_A_LINE, Markdown
from harness.terminal.row_text import cells, cut, ending, fitted, pieces, wrapped
from harness.terminal.styles import DARK, Fill, Ink
from harness.text.visible import visible

WIDTHS = (40, 80, 200)
MOST_STEPS = 2_000_000
"""Lines of Python: more than any text needs, a tenth of a second."""
SGR = re.compile(r"\x1b\[(?:[0-9;]*m|K)")
WORDS = "one two three four five six seven eight nine ten eleven twelve"


def lines_of(text: str, width: int = 40, *, colour: bool = False, ascii_only: bool = False, step: int = 0) -> list[str]:
    markdown = Markdown(lambda: width, DARK if colour else None, ascii_only=ascii_only)
    step = step or len(text) or 1
    lines = [line for at in range(0, len(text), step) for line in markdown.feed(text[at : at + step])]
    return lines + markdown.finish()


BLOCKS = {
    "a paragraph": (
        f"{WORDS}\nand more",
        ["  one two three four five six seven", "  eight nine ten eleven twelve and", "  more"],
    ),
    "two paragraphs": ("one\n\n\n\ntwo\n", ["  one", "", "  two"]),
    "headings": ("# One\n## Two ##\n### `x`\ntext", ["  # One", "  ## Two", "  ### `x`", "  text"]),
    "signs that close a heading": ("# a ##\n# b#\n# #\n#\n# c # d", ["  # a", "  # b#", "  #", "  #", "  # c # d"]),
    "underlined headings": ("One\n===\n\nTwo\n---\n", ["  # One", "", "  ## Two"]),
    "a list": (
        f"- {WORDS}\n- b\n  - c\n    - d\n* e\n",
        ["  • one two three four five six seven", "    eight nine ten eleven twelve", "  • b", "    • c", "      • d", "  • e"],
    ),
    "a numbered list": ("1. a\n2. b\n   - c\n10) d\n", ["  1. a", "  2. b", "     • c", "  10) d"]),
    "tasks": ("- [ ] to do\n- [x] done\n", ["  • [ ] to do", "  • [x] done"]),
    "paragraphs in an item": ("- a\n\n  b\n\nc\n", ["  • a", "", "    b", "", "  c"]),
    "a quote": ("> one\n> two\n> > three\n\nfour", ["  > one two", "  > > three", "", "  four"]),
    "a list in a quote": ("> - a\n> - b\n", ["  > • a", "  > • b"]),
    "a rule": ("a\n\n---\n\nb", ["  a", "", f"  {'─' * 36}", "", "  b"]),
    "code": ("```python\nif x:\n    y = 1\n\n```\nafter\n", ["    if x:", "        y = 1", "", "  after"]),
    "code of tildes, never closed": ("~~~\n```\nx\n", ["    ```", "    x"]),
    "code with signs in it": ("```\n# no heading\n- no list\n> no quote\n| a |\n```", [
        "    # no heading", "    - no list", "    > no quote", "    | a |",
    ]),
    "code in an item": ("- a\n  ```\n  x\n    y\n  ```\n- b\n", ["  • a", "      x", "        y", "  • b"]),
    "a fence right after a marker": ("- ```sh\n  ls\n  ```\nend", ["  •   ls", "", "  end"]),
    "code in a quote": ("> ```\n> x\n> ```\n> y", ["  >   x", "  > y"]),
    "indented code": ("a\n\n    x = 1\n", ["  a", "", "    x = 1"]),
    "code that is too long": (f"```\n{'x' * 50}\n```", [f"    {'x' * 36}", f"  ↪ {'x' * 14}"]),
    "a table": (
        "| name | n |\n|---|--:|\n| a | 1 |\n| b \\| c | 22 |\n",
        ["  name    n", f"  {'─' * 9}", "  a       1", "  b | c  22"],
    ),
    "a table without outer signs": ("a | b\n--|--\n1 | 2\n\nafter", ["  a  b", "  ────", "  1  2", "", "  after"]),
    "a table of prose": (
        f"| k | v |\n|---|---|\n| a | {WORDS} |\n",
        ["  k  v", f"  {'─' * 36}", "  a  one two three four five six seven", "     eight nine ten eleven twelve"],
    ),
    "a table that is too wide": (
        ("| name | first | second | third |\n|---|---|---|---|\n| n1 | the first value | the second value | the third |\n"
        "| n2 | x | y | z |\n"),
        ["  name: n1  first: the first value", "  second: the second value", "  third: the third", "",
         "  name: n2  first: x  second: y", "  third: z"],
    ),
    "a table with an address": (
        f"| what | where |\n|---|---|\n| {WORDS[:23]} | [a](http://example/x) |\n",
        ["  what              where", f"  {'─' * 36}", "  one two three     a", "  four five         (http://example/x)"],
    ),
    "a table with an address that has no room": (
        "| what | where |\n|---|---|\n| one two three four | http://example.org/a/b/c |\n",
        ["  what: one two three four", "  where: http://example.org/a/b/c"],
    ),
    "a table with a cell too many": ("| a |\n|---|\n| 1 | 2 |\n", ["  a", "  ─────", "  1 | 2"]),
    "links": ("[a](http://x/y_z_) <http://b> ![c](d.png) [http://e](http://e)", [
        "  a (http://x/y_z_) http://b c (d.png)", "  http://e",
    ]),
    "emphasis without colour": ("**a** _b_ `c` ~~d~~ \\*e\\*", ["  **a** _b_ `c` ~~d~~ *e*"]),
    "line ends that are meant": ("a  \nb\\\nc", ["  a", "  b", "  c"]),
    "html": ("<b>x</b> &amp; &#27; <!-- hidden -->", ["  <b>x</b> &amp; &#27; <!-- hidden -->"]),
    "html alone": ("<!-- hidden -->\n\n<script>\nx", ["  <!-- hidden -->", "", "  <script> x"]),
    "what a link is defined as": ("[x]: http://hidden", ["  [x]: http://hidden"]),
    "escapes in addresses": ("<http://a/%1b%5b2J>", ["  http://a/\\x1b[2J"]),
    "numbers as they were written": ("2. a\n10. b\n\n- c\n  1) d\n", ["  2. a", "  10. b", "", "  • c", "    1) d"]),
    "line ends of Windows": ("a\r\nb\r\n\r\n- c\r\n", ["  a b", "", "  • c"]),
    "wide characters": ("日本語" * 8, [f"  {'日本語' * 6}", f"  {'日本語' * 2}"]),
    "nothing": ("\n \n", []),
}  # fmt: skip


def test_every_block_at_40_columns() -> None:
    found = {name: lines_of(text) for name, (text, _) in BLOCKS.items()}
    assert found == {name: expected for name, (_, expected) in BLOCKS.items()}


def test_every_block_fits_and_leaves_column_1_alone() -> None:
    for width, colour in itertools.product(WIDTHS, (False, True)):
        drawn = {name: lines_of(text, width, colour=colour) for name, (text, _) in BLOCKS.items()}
        lines = [(name, SGR.sub("", line)) for name, found in drawn.items() for line in found if line]
        assert [one for one in lines if not one[1].startswith("  ") or cells(one[1]) > width] == []


def test_each_block_looks_the_same_in_pieces() -> None:
    for colour in (False, True):
        whole = {name: lines_of(text, colour=colour) for name, (text, _) in BLOCKS.items()}
        for step in (1, 2, 7):
            assert {name: lines_of(text, colour=colour, step=step) for name, (text, _) in BLOCKS.items()} == whole


SIGNS = "\n,\n\n, ,    ,\t,a,word ,**,*,_,`,```,```py\n,\n```\n,~~~,# ,- ,1. ,> ,|,\n|---|---|\n,| a | b |,---,==="
ODD = "[x](http://y),[,](,),\\,<,>,\r,\x1b[2J,\u202e,日本,\u0301,\ud800,é"
PARTS = st.sampled_from([*SIGNS.split(","), *ODD.split(","), "x" * 60])


@example(["```py\n", "    ", "\u0301", "\x1b[2J"], [], 20)
@example(["<http://a/%ef%b8%8f%1b%cc%81>"], [], 20)
@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(PARTS, max_size=40),
    cuts=st.lists(st.integers(1, 30), max_size=40),
    width=st.sampled_from((20, 40, 80)),
)
def test_place_of_a_cut_in_the_stream_does_not_matter(parts: list[str], cuts: list[int], width: int) -> None:
    """Nor is any line too wide, in column 1, or with an escape that is none of our own."""
    text = "".join(parts)
    whole = lines_of(text, width, colour=True)
    markdown, got, at = Markdown(lambda: width, DARK), [], 0
    for length in [*cuts, len(text)]:
        got += markdown.feed(text[at : at + length])
        at += length
    assert got + markdown.finish() == whole
    for line in whole:
        plain = SGR.sub("", line)
        assert not plain or plain.startswith("  ")
        assert plain.isprintable() or "\u0301" in plain, plain
        assert cells(plain) <= width


ENDLESS = {
    "one word without an end": "x" * 100_000,
    "one line without an end": "word " * 20_000,
    "stars": "*" * 100_000,
    "emphasis that begins": "*a " * 50_000,
    "emphasis that ends": "a* " * 50_000,
    "emphasis of two kinds": "**a *b " * 20_000 + "\n",
    "ticks": "`" * 100_000,
    "ticks of every length": "".join("`" * n + " " for n in range(1, 400)),
    "brackets": "[" * 100_000 + "](x)" * 1_000,
    "links that do not end": "[a](" * 30_000,
    "titles that do not end": '[a](b "c' * 20_000,
    "targets": "](((((" * 20_000,
    "addresses": "<http://" * 20_000,
    "quotes": ">" * 100_000,
    "deep quotes": "> " * 50_000 + "x",
    "deep lists": "".join(" " * n + "- x\n" for n in range(400)),
    "pipes": "|" * 100_000 + "\n" + "|-" * 50_000,
    "a table without an end": "|a|b|\n|-|-|\n" + "|1|2|\n" * 1_000,
    "a paragraph without an end": "a\n" * 10_000,
    "a line of code without an end": "```\n" + "x" * 100_000,
    "markers": "- " * 50_000,
    "hashes": "#" * 100_000,
    "headings that may end": "# " + "#" * 8_000 + " x\n" + "# " + " #" * 4_000 + "x\n",
    "headings with blanks": ("# x" + " " * 8_000 + "y\n") * 10,
    "blanks before a wide character": (" " * 8_100 + "日") * 10,
    "blanks between words": ("a" + " " * 8_000 + "日 **b**\n\n") * 10,
    "rules that are none": "-" * 8_000 + "x\n" + "- " * 4_000 + "x\n" + "--- " * 2_000 + "x",
    "delimiters that are none": "|" + "-: " * 2_700 + "\nx|y\n" + "|:-" * 2_700 + "x\n",
    "combining marks": "\u0301" * 100_000,
    "wide characters": "日" * 50_000,
}  # fmt: skip
BY_THE_LINE = {
    "plain": ("one two three four five six seven eight nine", ["one two three", "four five six"]),
    "an item": ("- one two three four five six seven", ["• one two three"]),
    "emphasis that ended": ("one **two three** four five six", ["one **two", "three** four"]),
    "emphasis that goes on": ("one two three four **five six seven eight", ["one two three"]),
    "a word with signs in it": ("one two_three_four five six", ["one", "two_three_four"]),
    "code that goes on": ("one two three four `five six seven eight", ["one two three"]),
    "a link that goes on": ("one two three four [five six seven", ["one two three"]),
    "a link that ended": ("[one](http://x) two three four five", ["one (http://x)"]),
    "brackets": ("one [1] two three four five six", ["one [1] two"]),
    "what may be a table": ("one two three four five | four five six seven", ["one two three"]),
    "wide characters": ("日本語日本語日本語。日本", ["日本語日本語日本"]),
    "no prose": ("| one two three four five six seven", []),
    "a quote": ("> one two three four five six seven", []),
    "a heading": ("# one two three four five six seven", []),
}


def test_prose_is_printed_line_by_line_once_final() -> None:
    found = {}
    for name, (text, _) in BY_THE_LINE.items():
        markdown = Markdown(lambda: 20)
        found[name] = [line.removeprefix("  ") for piece in text for line in markdown.feed(piece)]
    assert found == {name: lines for name, (_, lines) in BY_THE_LINE.items()}


def test_printed_prose_never_becomes_a_heading_or_table() -> None:
    for below in ("===", "---", "--|--"):
        text = f"{WORDS}\n{below}\n\nafter\n"
        whole = lines_of(text)
        assert whole[:2] == [
            "  one two three four five six seven",
            "  eight nine ten eleven twelve" + ("" if below == "---" else f" {below}"),
        ]
        assert all(lines_of(text, step=step) == whole for step in (1, 3, 17))
    assert lines_of(f"short\n===\n{WORDS}")[0] == "  # short"


def test_code_within_a_block_has_one_background() -> None:
    """Its rows end in one column; without colours no row has blanks at its end."""
    text = "1. ```js\n   let x = 1;\n   let much_longer = 22;\n   ```\n\nand\n\n    indented\n    code here\n"
    rows = lines_of(text, 40, colour=True)
    code = [SGR.sub("", row) for row in rows if "\x1b[" in row]
    assert [cells(row) for row in code] == [38] * 4
    assert all(row == row.rstrip() for row in lines_of(text, 40))


def test_paragraph_fits_a_narrowed_terminal() -> None:
    width = [60]
    markdown = Markdown(lambda: width[0], DARK)
    before = markdown.feed(f"{WORDS} **{WORDS}** {WORDS} ")
    width[0] = 30
    after = markdown.feed(f"{WORDS} {WORDS} ") + markdown.finish()
    assert max(cells(SGR.sub("", line)) for line in before) > 30
    assert max(cells(SGR.sub("", line)) for line in after) <= 30
    assert SGR.sub("", " ".join(" ".join([*before, *after]).split())) == " ".join([WORDS] * 5)


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("beginning", ["", "- ", "12. "])
@pytest.mark.parametrize("widths", [(60, 30), (30, 60), (80, 40, 60)])
def test_paragraph_continues_at_the_new_width(beginning: str, widths: tuple[int, ...], colour: bool) -> None:
    """Only the row in which the width changed may be short, and its text is indented like the rest."""
    width = [widths[0]]
    markdown = Markdown(lambda: width[0], DARK if colour else None)
    parts = [markdown.feed(f"{beginning}one **two** ")]
    for number in widths:
        width[0] = number
        parts.append(markdown.feed("some short words " * 20))
    parts[-1] += markdown.finish()
    rows = [(row, number) for part, number in zip(parts[1:], widths, strict=True) for row in part]
    texts = [SGR.sub("", row) for row, _ in rows]
    assert " ".join(" ".join(texts).split()[len(beginning.split()) :]) == f"one {'two' if colour else '**two**'}" + (
        " some short words" * 20 * len(widths)
    )
    assert all(cells(text) <= number for text, (_, number) in zip(texts, rows, strict=True))
    assert {len(text) - len(text.lstrip(" ")) for text in texts[1:]} == {2 + len(beginning)}
    short = [text for text, (_, number) in zip(texts, rows, strict=True) if cells(text) < number - 9]
    assert len(short) <= len(widths)


PROSE = ["word ", "**bold** ", "*em ", "ends* ", "`code` ", "`open ", "[l](http://x/y) ", "[x] ", "a < b ", "<http://a> ",
    "2 * 3 ", "** ", "snake_case ", "_x_ ", "~~del~~ ", "\\*", "\\", "\n", "\n- ", "\n  - ", "\n2. ", "\n---\n", "\n===\n",
    "\n=\n", "| ", "\n|---|---|\n", "日本語。", "x" * 30, "  \n", "(", "!", "\"q\" ", "\n\n"]  # fmt: skip


@example(parts=["word ", "\n  - ", "**bold** "], step=1, colour=False)
@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.sampled_from(PROSE), max_size=40), step=st.integers(1, 9), colour=st.booleans())
def test_prose_by_the_line_equals_prose_in_one_piece(parts: list[str], step: int, colour: bool) -> None:
    text = "".join(parts)
    assert lines_of(text, 30, colour=colour, step=step) == lines_of(text, 30, colour=colour)


def test_closing_punctuation_never_starts_a_line() -> None:
    assert lines_of("日本語の文章です" * 2 + "。はい", 36) == ["  日本語の文章です日本語の文章で", "  す。はい"]
    assert wrapped("「日本」語", 5) == ["「日", "本」", "語"]


FULL = {
    "stars": "*", "emphasis that begins": "*a ", "emphasis that ends": "a* ", "two kinds": "**a *b ", "ticks": "`",
    "brackets": "[", "links": "[a](", "titles": '[a](b "c', "targets": "](((((", "addresses": "<http://", "quotes": ">",
    "quotes and blanks": "> ", "markers": "- ", "pictures": "![", "struck": "~~a", "backslashes": "\\", "pipes": "|",
    "links in links": "[![", "pointed targets": "[a](<b", "empty links": "[]()", "of each": "*_`[",
}  # fmt: skip
"""Over and over, in a line."""


def test_text_waiting_in_an_endless_stream_is_bounded() -> None:
    waited: dict[str, int] = {}
    for name, text in ENDLESS.items():
        markdown = Markdown(lambda: 80, DARK)
        for at in range(0, len(text), 1_000):
            markdown.feed(text[at : at + 1_000])
            waited[name] = max(waited.get(name, 0), markdown.waiting)
        markdown.finish()
    most = 2 * MOST_IN_A_LINE + MOST_IN_A_BLOCK
    assert {name: waiting for name, waiting in waited.items() if waiting > most} == {}


def test_drawing_a_line_takes_bounded_steps() -> None:
    """What waits is bounded, so that these are too. (bench/growth.py times them.)"""
    steps = {}
    for name, unit in FULL.items():
        text = (unit * 2_000)[:2_000]
        steps[name] = lines_run(partial(Markdown(lambda: 80, DARK).feed, f"{text}\n\n"))
    assert {name: count for name, count in steps.items() if count > MOST_STEPS} == {}


def test_endless_line_is_printed_completely() -> None:
    text = "".join(f"{n:07}" for n in range(5_000))
    assert "".join(line.strip() for line in lines_of(text, 100, step=333)) == text
    code = lines_of(f"```\n{text}\n```\n", 100)
    assert "".join(line.removeprefix("  ↪ ").strip() for line in code) == text


def test_text_does_not_look_like_our_own_lines() -> None:
    """Neither in column 1, nor with the bar of a command's output; nor by being long in a code block."""
    forged = (
        "+ allowed  rm -rf /  by you\n\n  | output\n\n| output\n│ output\n\n```\n"
        + " " * 36
        + "+ allowed  rm -rf /\n```"
    )
    lines = lines_of(forged)
    lines += [
        SGR.sub("", line) for line in lines_of(f"{forged}\n\n**| bold**\n\n# | title\n\n***│ both***", colour=True)
    ]
    assert sum("bold" in line or "title" in line or "both" in line for line in lines) == 3
    assert [line for line in lines if line and line[:2] != "  "] == []
    assert [line for line in lines if re.match(r"  [|│]", line)] == []


def test_colours_are_of_one_line_each() -> None:
    """A line that is scrolled to alone looks as it did: no style reaches into the next."""
    for line in lines_of(f"**{WORDS} `code` {WORDS}** and _more_ [x](y)", 40, colour=True):
        assert line.endswith("\x1b[0m") or "\x1b" not in line.rpartition("m")[2]
        assert line.count("\x1b[1m") <= 1
    assert lines_of("**a b** c", colour=True) == ["  \x1b[1ma b\x1b[0m c"]
    wrapped_bold = lines_of(f"**{WORDS}**", colour=True)
    assert [line.strip().startswith("\x1b[1m") for line in wrapped_bold] == [True, True]


IN_A_LINE = {
    "within a word": ("a_b_c snake_case_", "a_b_c snake_case_"),
    "alone": ("2 * 3 * 4", "2 * 3 * 4"),
    "without an end": ("*a", "*a"),
    "nested": ("**a *b* c**", "<1>a <1;3>b<1> c"),
    "both": ("***a***", "<1;3>a"),
    "not in code": ("`a*b*`", "<38;5;116>a*b*"),
    "code with a tick": ("``a`b``", "<38;5;116>a`b"),
    "in a link, not in its target": ("[*a*](b_c_d)", "<3>a (<4>b_c_d)"),
    "brackets in a target": ("[a](b(c)d)", "a (<4>b(c)d)"),
    "where it leads is shown": ("[http://good](http://evil)", "http://good (<4>http://evil)"),
    "no link": ("[a] (b)", "[a] (b)"),
    "a title": ('[a](b "c")', "a (<4>b)"),
    "a picture": ("![a](b)", "a (<4>b)"),
}


def test_signs_within_a_line() -> None:
    shown = {name: "".join(lines_of(text, colour=True)).removeprefix("  ") for name, (text, _) in IN_A_LINE.items()}
    found = {name: re.sub(r"\x1b\[([0-9;]+)m", r"<\1>", text.replace("\x1b[0m", "")) for name, text in shown.items()}
    assert found == {name: expected for name, (_, expected) in IN_A_LINE.items()}


def test_coloured_code_keeps_its_text() -> None:
    text = '```python\ndef f(x):\n    return "a\\n" + x  # why\n```\n```none\nx = 1\n```\n```diff\n-a\n+b\n```\n'
    coloured = lines_of(text, 80, colour=True)
    assert [SGR.sub("", line) for line in coloured] == lines_of(text, 80)
    first, _, plain, minus, plus = coloured
    code, added, removed = (f"\x1b[{DARK.fills[fill]}m" for fill in (Fill.CODE, Fill.ADDED, Fill.REMOVED))
    assert first.startswith(f"  {code}  \x1b[0m\x1b[{DARK.fills[Fill.CODE]};{DARK.inks[Ink.KEYWORD]}mdef\x1b[0m")
    assert (plain, minus, plus) == tuple(
        f"  {fill}{text}\x1b[0m{fill}\x1b[K\x1b[0m"
        for fill, text in ((code, "  x = 1"), (removed, "  -a"), (added, "  +b"))
    )


def test_header_lines_of_a_diff_are_subdued() -> None:
    text = "```diff\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@ def f():\n-a\n b\n```\n"
    coloured = lines_of(text, 80, colour=True)
    assert [SGR.sub("", line) for line in coloured] == lines_of(text, 80)
    code, comment = DARK.fills[Fill.CODE], DARK.inks[Ink.COMMENT]
    for line in coloured[:3]:
        assert re.fullmatch(re.escape(f"  \x1b[{code}m  \x1b[0m\x1b[{code};{comment}m") + r"[^\x1b]+\x1b\[0m.*", line)
    assert all(comment not in line for line in coloured[3:])


def test_a_quote_has_a_bar_and_headings_have_levels_where_there_are_colours() -> None:
    quote = lines_of("> one\n> > two", colour=True)
    assert [SGR.sub("", line) for line in quote] == ["    ▎ one", "    ▎ ▎ two"]
    headings = lines_of("".join(f"{'#' * level} x\n" for level in range(1, 7)), colour=True)
    assert len(set(headings)) == 5
    assert {SGR.sub("", line) for line in headings} == {"  x"}


HOSTILE_CODE = (
    "[red]rich[/red] [link=http://x]y[/link] :smile:",
    "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\ \x9b2J",
    "a\u202eb\u2066c \u200b\ufeff \r over \x08\x07",
    "  | output\n| output\n+ allowed  rm -rf /",
    '/*"\\' * 300,
)


MARKUP = "[red]x[/red] [link=http://e]y[/link] [@click=quit]z[/] :smile: [/]"


def test_the_markup_of_rich_is_text_in_every_block() -> None:
    for block in (
        "{}",
        "# {}",
        "> {}",
        "- {}",
        "1. {}",
        "| {} |\n|---|\n| {} |",
        "```\n{}\n```",
        "**{}**",
        "`{}`",
        "    {}",
    ):
        for colour in (False, True):
            lines = lines_of(block.format(MARKUP, MARKUP), 100, colour=colour)
            assert any(MARKUP in SGR.sub("", line) for line in lines), (block, lines)
            assert all("\x1b" not in SGR.sub("", line) for line in lines)


def test_addresses_never_become_terminal_links() -> None:
    text = "[click](http://x/%1b%5d8;;http://evil%07) <http://a/\x1b]8;;http://evil\x07> ![p](http://x/\x9d8;;y)"
    for colour in (False, True):
        shown = "".join(lines_of(text, 200, colour=colour))
        assert re.findall(r"[\x00-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;]*m)", shown) == []


def test_hostile_code_stays_text_in_every_lexer() -> None:
    for language, code, lead in itertools.product(
        ("python", "c", "diff", "[red]", "\x1b[31m"), HOSTILE_CODE, ("", "> ", "- ")
    ):
        fence = "".join(
            f"{lead if n == 0 or lead == '> ' else '  ' * bool(lead)}{line}\n"
            for n, line in enumerate((f"```{language}", *code.split("\n"), "```"))
        )
        for width in (20, 80):
            lines = lines_of(fence, width, colour=True)
            plain = [SGR.sub("", line) for line in lines]
            assert all(line.isprintable() and cells(line) <= width for line in plain)
            assert [line for line in plain if re.match(r"\S|  ?[|│]", line)] == []
            assert all("\x1b" not in SGR.sub("", line) for line in lines)


def test_ascii_alone() -> None:
    text = "".join(f"{text}\n\n" for name, (text, _) in BLOCKS.items() if name != "wide characters")
    assert [line for line in lines_of(text, ascii_only=True) if not line.isascii()] == []


def test_lengths_in_cells() -> None:
    assert (cells("ab"), cells("日本"), cells("e\u0301"), cells("—…é")) == (2, 4, 1, 3)
    assert cut("日本語", 3) == ("日", "本語")
    assert list(pieces("日本語", 5)) == ["日本", "語"]
    assert (list(pieces("", 5)), list(pieces("abcdef", 4))) == ([""], ["abcd", "ef"])
    assert (fitted("abcdef", 5), fitted("abc", 3), fitted("日本語", 5)) == ("ab...", "abc", "日...")
    assert (ending("abcdef", 5), ending("abc", 3), ending("日本語", 5)) == ("...ef", "abc", "...語")
    assert wrapped("aa bb cc", 5, 4) == ["aa bb", "cc"]
    assert wrapped("    aaaaaaaa", 6) == ["    aa", "aaaaaa"]
    assert wrapped("    日本語日本語", 7) == ["    日", "本語日", "本語"]
    assert wrapped("  日本 語", 5) == ["  日", "本 語"]


@given(st.text(st.sampled_from("a日 \u0301"), max_size=40), st.integers(2, 9), st.integers(2, 9))
def test_wrapped_rows_fit_and_are_complete(text: str, room: int, later: int) -> None:
    """And the blanks that it begins with stay before it: they hold it off column 1."""
    first, *rest = wrapped(text, room, later)
    assert cells(first) <= room
    assert [row for row in rest if cells(row) > later] == []
    assert "".join([first, *rest]).replace(" ", "") == text.replace(" ", "")
    blanks = len(text) - len(text.lstrip(" "))
    assert first.startswith(" " * min(blanks, room))


def test_character_widths_are_never_underestimated() -> None:
    """Every character that is shown as it is, against tables newer than Python's: else a row of them ends at column 1 below."""
    wider = [char for char in map(chr, range(0x20, 0x40000)) if cells(char) < wcwidth.wcwidth(char)]
    assert [f"U+{ord(char):04X}" for char in wider if visible(f"a{char}") == f"a{char}"] == []
    assert cells("\U0001f1e6") == 2


def test_row_of_flags_fits_the_terminal() -> None:
    rows = lines_of("\U0001f1e9\U0001f1ea" * 30 + " + allowed", 40)
    assert max(sum(map(wcwidth.wcwidth, row)) for row in rows) <= 40
    assert all(row.startswith("  ") for row in rows)
