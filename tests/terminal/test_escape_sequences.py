"""What a terminal sends is split into characters, sequences and pastes, whatever the pieces that it comes in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from input_scene import NO_KEYS
from rows import all_rows

from harness.terminal.escape_sequences import EscapeSequences, key_of, typed_text

KEYS = {
    "\x1b[13;2u": "\n",
    "\x1b[27;2;13~": "\n",
    "\x1b[27;5;13~": "\n",
    "\x1b[13;3u": "\n",
    "\x1b[13u": "\r",
    "\x1b[13;129:1u": "\r",  # Num Lock
    "\x1b[9;2u": "\x1b[Z",
    "\x1b[127;5u": "\x17",
    "\x1b[27u": "\x1b",
    "\x1b[99;5u": "\x03",
    "\x1b[27;5;99~": "\x03",
    "\x1b[99;6u": "",
    "\x1b[32;5u": "\0",
    "\x1b[97;3u": "\x1ba",
    "\x1b[97;1:2;97u": "a",
    "\x1b[97:65;2u": "A",
    "\x1b[228;2u": "Ä",
    "\x1b[1;1:1A": "\x1b[A",
    "\x1b[3;5:2~": "\x1b[3;5~",
    "\x1b[9999999u": "",
    "\x1b[55296u": "",
    "\x1b[u": "\x1b[u",
    "\x1b[A": "\x1b[A",
    "a": "a",
}


@all_rows("sequence", list(NO_KEYS.values()), ids=list(NO_KEYS))
def test_unknown_sequence_is_dropped_from_the_text(sequence: str) -> None:
    units = EscapeSequences().feed(f"a{sequence}b")

    assert units == ["a", sequence, "b"]
    assert typed_text(f"a{sequence}b") == "ab"


@all_rows(("unit", "key"), list(KEYS.items()), ids=list(map(repr, KEYS)))
def test_keys_of_other_terminals_are_recognized(unit: str, key: str) -> None:
    assert EscapeSequences().feed(unit) == [unit]
    assert key_of(unit) == key


@all_rows(
    ("text", "units"),
    [
        pytest.param("\x1b[12\x03", ["\x03"], id="Ctrl-C in a sequence"),
        pytest.param("\x1b]11;rgb\ra", ["\r", "a"], id="Enter in a string"),
        pytest.param("\x1b[M \x03", ["\x03"], id="Ctrl-C in a report of the mouse"),
        pytest.param("\x1bP1\x1b[A", ["\x1b[A"], id="a string that a key interrupts"),
        pytest.param("\x1b\x1b[A", ["\x1b", "\x1b[A"], id="Esc twice"),
        pytest.param("\x1b[1é", ["é"], id="a letter that ends no sequence"),
        pytest.param("\x1b]1" + "2" * 5_000, ["2"] * 905, id="a string without an end"),
        pytest.param("\x1b\r", ["\x1b\r"], id="Alt-Enter"),
        pytest.param("\x1b[200~a\x1b[A\x03\x1b[201~b", ["\x1b[200~a\x1b[A\x03\x1b[201~", "b"], id="a paste"),
        pytest.param("\x1b[200~\x1b[201~" * 2_000, ["\x1b[200~\x1b[201~"] * 2_000, id="many pastes"),
    ],
)
def test_a_sequence_ends(text: str, units: list[str]) -> None:
    assert EscapeSequences().feed(text) == units


@all_rows(("begun", "key", "later"), [("\x1b", "\x1b", ["["]), ("\x1b]", "\x1b]", ["["]), ("\x1b[1", "", ["\x1b[1["])])
def test_pending_key_is_complete_after_a_pause(begun: str, key: str, later: list[str]) -> None:
    sequences = EscapeSequences()
    sequences.feed(begun)

    assert sequences.pause() == key
    assert sequences.feed("[") == later


def test_marks_in_an_unfinished_paste_are_dropped() -> None:
    assert typed_text("a\x1b[200~" * 50_000) == "a" * 50_000


PIECES = st.lists(
    st.sampled_from([*NO_KEYS.values(), *KEYS, "\x1b", "\x1b[200~", "\x1b[", "\x1bP", "\x1b]1", "é", "\x03"])
)


@given(PIECES, st.lists(st.integers(0, 200), max_size=5))
def test_units_do_not_depend_on_the_pieces_received(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    sequences, ends = EscapeSequences(), [*sorted(cuts), len(text)]

    units = [unit for start, end in zip([0, *ends], ends, strict=False) for unit in sequences.feed(text[start:end])]

    assert units == EscapeSequences().feed(text)


@given(PIECES)
def test_outside_a_paste_no_control_character_is_lost(pieces: list[str]) -> None:
    text = "".join(piece for piece in pieces if piece != "\x1b[200~")
    units = EscapeSequences().feed(text + "\x03")

    assert units[-1] in ("\x03", "\x1b\x03")
    assert [unit[-1] for unit in units if unit[-1] == "\x03"] == ["\x03"] * (text.count("\x03") + 1)
