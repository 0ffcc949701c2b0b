"""Redaction of what goes over lines: a known value laid out anew is one mark, its ordinary lines stay, nothing is slow."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples, proof_size
from work import assert_linear

from harness.redaction.redactor import Redactor
from harness.redaction.stream import RedactedStream

KEY = b"a key of the installation"

LINES = ("alpha-Qx81zz-user", "bravo-Kk92mmq-pass", "  indented = Zz19-qL44x", "the last one")
VALUE = "\n".join(LINES)
TOKEN = "Tr0ub4dor&3-xK9q_Zw81LmPq"
LONG = "".join(random.Random(3).choices("abcdefGHIJKL0123456789+/", k=160))


def redactor(*secrets: str) -> Redactor:
    return Redactor(secrets, key=KEY, shapes=False)


def mark_of(secret: str) -> str:
    return redactor(secret).redact(secret)


def folded(text: str, width: int = 30) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


LAYOUTS: dict[str, Callable[[list[str]], str]] = {
    "plain": "\n".join,
    "crlf": "\r\n".join,
    "indented": lambda lines: "".join(f"    {line}\n" for line in lines),
    "tabs": lambda lines: "".join(f"\t{line}\r\n" for line in lines),
    "a page of read_file": lambda lines: "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(lines, 98)),
    "a page, in json": lambda lines: json.dumps("".join(f"{n:6d}\t{line}\n" for n, line in enumerate(lines, 98))),
    "grep -n": lambda lines: "".join(f"{n}:{line}\n" for n, line in enumerate(lines, 9)),
    "grep -n, lines around it": lambda lines: "".join(f"{n}-{line}\n" for n, line in enumerate(lines, 9)),
    "numbers and a bar": lambda lines: "".join(f"  {n} | {line}\n".replace(" | ", "|") for n, line in enumerate(lines, 9)),
    "a diff, added": lambda lines: "".join(f"+{line}\n" for line in lines),
    "a diff, taken away": lambda lines: "".join(f"-{line}\n" for line in lines),
    "a diff, as it was": lambda lines: "".join(f" {line}\n" for line in lines),
    "a diff, indented, in json": lambda lines: json.dumps("".join(f"+  {line}\n" for line in lines)),
    "diff without -u": lambda lines: "".join(f"< {line}\n" for line in lines),
    "a mail": lambda lines: "".join(f"> {line}\n" for line in lines),
    "a listed diff": lambda lines: "".join(f"{n:6d}\t+{line}\n" for n, line in enumerate(lines, 9)),
}  # fmt: skip
WRITTEN = {
    "lines": (VALUE, list(LINES)),
    "lines with CR LF": (VALUE.replace("\n", "\r\n"), list(LINES)),
    "lines, escaped": (VALUE.replace("\n", "\\n"), list(LINES)),
    "one long word": (LONG, folded(LONG)),
    "one long word that begins its lines with signs": ("+-".join(folded(LONG)), folded("+-".join(folded(LONG)), 32)),
}


@all_rows("layout", list(LAYOUTS))
@all_rows("written", list(WRITTEN))
def test_a_known_value_has_one_mark_however_its_lines_are_laid_out(written: str, layout: str) -> None:
    value, lines = WRITTEN[written]
    laid_out = LAYOUTS[layout](lines)
    for text in (laid_out, f"before\n{laid_out}\nafter", LAYOUTS[layout](["before it", *lines, "behind it"])):
        redacted, hits = redactor(value).redact_and_count(text)
        assert hits == {"known": 1}
        assert mark_of(value) in redacted
        assert not any(line.strip() in redacted for line in lines)


@all_rows("layout", list(LAYOUTS))
def test_base64_lines_keep_only_the_text_beside_the_value(layout: str) -> None:
    lines = base64.encodebytes(b"x" * 50 + TOKEN.encode() + b"y" * 50).decode().split()
    assert mark_of(TOKEN) in redactor(TOKEN).redact(LAYOUTS[layout](lines))


@all_rows("layout", ["a page of read_file", "a diff, added"])
@all_rows("start", ["4829-", "7:", "+", "-"])
def test_a_value_that_begins_like_the_mark_of_a_line_hides_no_wrapped_one(start: str, layout: str) -> None:
    """The whole one, behind a line end, loses its beginning to that reading, in which the wrapped one stands."""
    value = start + LONG[:60]
    wrapped = LAYOUTS[layout](folded(value))
    fields, _ = redactor(value).fields({"arguments": f"x\n{value}\n", "content": wrapped})
    stream = RedactedStream(redactor(value))
    streamed = stream.feed(f"x\n{value}\n{wrapped}") + stream.finish()
    parts = [value[at : at + 12] for at in range(len(value) - 11)]
    assert [part for part in parts for text in (str(fields), streamed) if part in text] == []


def test_the_words_of_a_value_with_blanks_between_them_are_the_value() -> None:
    assert redactor(VALUE).redact(f"<{' '.join(VALUE.split())}>") == f"<{mark_of(VALUE)}>"


@all_rows("line", LINES[:2])
def test_a_line_that_chance_made_is_a_secret_by_itself(line: str) -> None:
    assert redactor(VALUE).redact(f"see {line}.") == f"see {mark_of(VALUE)}."
    assert redactor(VALUE, line).redact(f"see {line}.") == f"see {mark_of(line)}."  # it is a value of its own


KEY_BLOCK = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *folded(LONG, 64), "-----END RSA PRIVATE KEY-----"])


@all_rows(
    ("value", "line"),
    [
        (VALUE, "the last one"),
        ("localhost\nproduction\nKk92mmq-pass", "Kk92mmq-pas"),
        ("configuration\nincomprehensible\nAa1-Bb2-Cc3", "Aa1-Bb2-Cc3"),  # eleven characters
        ("configuration\nincomprehensible\nnothing", "incomprehensible"),
        ("version: 2024-02-29\nsomething else", "version: 2024-02-29"),
        (KEY_BLOCK, "-----BEGIN RSA PRIVATE KEY-----"),
        (KEY_BLOCK, "-----END RSA PRIVATE KEY-----"),
        ("a\n\n        \n\nb1234", "ab1234 a b1234"),
        ("aaaaaaaaaaaa\naaaaaaaaaaaa", "a" * 24),
    ],
)
def test_words_short_lines_and_the_edges_of_a_key_stay(value: str, line: str) -> None:
    text = f"see {line},\n{line}; and {line}"
    assert redactor(value).redact_and_count(text) == (text, {})


@given(
    st.lists(st.text(alphabet="ab1 \t+-<>:|,.\\nrt", max_size=12), max_size=40), st.sampled_from(["\n", "\r\n", "\\n"])
)
@settings(max_examples=examples(300), deadline=None)
def test_lines_without_the_value_stay(lines: list[str], end: str) -> None:
    text = end.join(lines)
    assert redactor(VALUE, TOKEN, LONG).redact_and_count(text) == (text, {})


@all_rows("layout", list(LAYOUTS))
@all_rows("written", list(WRITTEN))
def test_streamed_redaction_of_lines_equals_that_of_the_entire_text(written: str, layout: str) -> None:
    """Cut by chance, and letter by letter."""
    value, lines = WRITTEN[written]
    one, draw = redactor(value), random.Random()
    for turn in range(proof_size("STREAMS", 2, full=9)):
        before, after = draw.choice(("", "the words before ", "a line\n")), draw.choice(("", " after\n", "\n\nx"))
        text = before + LAYOUTS[layout](lines) + after
        cuts = sorted(draw.sample(range(len(text)), draw.randint(0, len(text) // 4)))
        ends = range(1, len(text) + 1) if turn == 0 else (*cuts, len(text))
        stream, shown, start = RedactedStream(one), [], 0
        for end in ends:
            shown.append(stream.feed(text[start:end]))
            start = end
        assert "".join([*shown, stream.finish()]) == one.redact(text), (text, cuts)


UNITS = (
    "\n",
    "\n12:",
    "\n12",
    "\n     1\t",
    "\n+",
    "\n1:+",
    "\n" + " " * 9,
    "\\n12\\t",
    "\\n",
    "1",
    " ",
    "\n1234567",
    "\n>a",
)


@all_rows("unit", UNITS, ids=range(len(UNITS)))
def test_many_lines_stay_by_work_that_is_linear(unit: str) -> None:
    """What the regular expressions take is timed by bench/growth.py."""
    one = redactor(VALUE, LONG, KEY_BLOCK)
    assert_linear(lambda size: unit * (size // len(unit)), one.redact, 2_500)
    text = unit * (proof_size("LINES", 100_000, full=1_000_000) // len(unit))
    assert one.redact(text) == text
