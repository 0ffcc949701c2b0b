"""The status line: what it says, in which order things are left out, and that it always fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import all_rows

from harness.app.commands.mode import Mode
from harness.app.repl.status_line import Status, status_parts, status_text
from harness.record import replace
from harness.terminal.row_text import cells
from harness.terminal.styles import Tone
from harness.text.visible import visible_line

FULL = Status(
    model="gpt-large", policy="default", turns=3, input_tokens=12_345, output_tokens=678, cost=0.01234,
    context_tokens_used=51_000, context_tokens=200_000, confinement="confined: files, network", grants=2,
)  # fmt: skip
EDITS = replace(FULL, mode=Mode.EDITS)
LOOSE = replace(FULL, loosened=("UNCONFINED allowed", "network open"), mode=Mode.PLAN)


@all_rows(
    ("status", "width", "text"),
    [
        pytest.param(
            Status(model="m", policy="ci", input_tokens=2_000, cached_tokens=1_801, output_tokens=7), 80,
            "mode ask | m | policy ci | 2.0k tokens in (90% cached), 7 out", id="what came from a cache",
        ),
        pytest.param(Status(model="m", policy="ci"), 80, "mode ask | m | policy ci", id="little to say"),
        pytest.param(
            FULL, 200,
            "mode ask | gpt-large | policy default | confined: files, network | 2 grants | 26% of context | $0.0123 | "
            "3 turns | 12.3k tokens in, 678 out", id="200 columns",
        ),
        pytest.param(
            FULL, 80, "mode ask | gpt-large | confined: files, network | 2 grants | 26% of context", id="80 columns"
        ),
        pytest.param(FULL, 40, "mode ask | gpt-large | 2 grants", id="40 columns"),
        pytest.param(FULL, 20, "mode ask | gpt-large", id="20 columns"),
        pytest.param(FULL, 8, "mode ask", id="8 columns"),
        pytest.param(
            LOOSE, 80, "! UNCONFINED allowed, network open | PLAN: nothing is changed | gpt-large", id="loosened, 80"
        ),
        pytest.param(LOOSE, 40, "! UNCONFINED allowed, network open", id="loosened, 40"),
        pytest.param(LOOSE, 20, "! UNCONFINED allo...", id="loosened, 20"),
        pytest.param(EDITS, 60, "EDITS run unasked | gpt-large | 2 grants | 26% of context", id="edits, 60"),
        pytest.param(EDITS, 40, "EDITS run unasked | gpt-large | 2 grants", id="edits, 40"),
        pytest.param(replace(FULL, hint="? helps"), 40, "mode ask | gpt-large | ? helps", id="a hint, 40"),
        pytest.param(replace(LOOSE, hint="? helps"), 40, "! UNCONFINED allowed, network open", id="a hint is no warning"),
        pytest.param(
            Status(model="m", policy="p", grants=1, turns=1), 80, "mode ask | m | policy p | 1 grant | 1 turn", id="one"
        ),
        pytest.param(Status(model="m", policy="", cost=0.0), 80, "mode ask | m | $0.0000", id="no cost is known too"),
        pytest.param(
            Status(model="m", policy="", context_tokens_used=1_500), 80, "mode ask | m | 1.5k tokens of context",
            id="a context without end",
        ),
        pytest.param(
            Status(model="m", policy="", vi="insert", branch="main"), 80, "mode ask | vi insert | m | main",
            id="vi's mode and the branch",
        ),
        pytest.param(
            Status(model="m", policy="", branch="\x1b/" + 40 * "b"), 80, f"mode ask | m | \\x1b/{16 * 'b'}...",
            id="a long branch",
        ),
        pytest.param(
            Status(model="a\x1b[2J\u202e\nb", policy="[red]x"), 80, "mode ask | a\\x1b[2J\\u202e\\nb | policy [red]x",
            id="hostile",
        ),
    ],
)  # fmt: skip
def test_status_text_fits_the_width(status: Status, width: int, text: str) -> None:
    assert status_text(status, width) == text


def test_setting_orders_and_shortens_the_status() -> None:
    names = ("branch", "context", "mode")
    assert status_text(replace(FULL, branch="main"), 80, names) == "main | 26% of context | mode ask"
    assert status_text(LOOSE, 80, ()) == "! UNCONFINED allowed, network open"


@all_rows(
    ("used", "of", "said"),
    [
        (0, 1_000, "0%"), (1, 1_000, "1%"), (990, 1_000, "99%"), (991, 1_000, "100%"), (3_000, 1_000, "300%"),
    ],
)  # fmt: skip
def test_the_share_is_rounded_up(used: int, of: int, said: str) -> None:
    assert f"{said} of context" in status_text(replace(FULL, context_tokens_used=used, context_tokens=of), 200)


@all_rows(
    ("number", "short"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1.0k"),
        (99_949, "99.9k"),
        (200_000, "200k"),
        (999_400, "999k"),
        (999_600, "1.0M"),
    ],
)
def test_numbers_are_short(number: int, short: str) -> None:
    assert f"{short} tokens in, 1 out" in status_text(replace(FULL, input_tokens=number, output_tokens=1), 200)


def test_tones_agree_with_the_words() -> None:
    tones = dict(status_parts(LOOSE, 200))
    assert tones["! UNCONFINED allowed, network open"] is Tone.BAD
    assert tones["PLAN: nothing is changed"] is Tone.GOOD
    assert dict(status_parts(EDITS, 200))["EDITS run unasked"] is tones["2 grants"] is Tone.WARNING
    assert tones["gpt-large"] is Tone.PLAIN
    assert Tone.BAD not in dict(status_parts(FULL, 200)).values()
    nearly = replace(FULL, context_tokens_used=170_000)
    assert dict(status_parts(nearly, 200))["85% of context"] is Tone.WARNING


ANY = st.text(max_size=60)


@given(
    model=ANY, policy=ANY, confinement=ANY, loosened=st.lists(ANY, max_size=3), mode=st.sampled_from(Mode),
    width=st.integers(1, 220), numbers=st.lists(st.integers(0, 10**12), min_size=6, max_size=6),
)  # fmt: skip
def test_status_line_fits_and_is_visible_for_any_values(
    model: str, policy: str, confinement: str, loosened: list[str], mode: Mode, width: int, numbers: list[int]
) -> None:
    status = Status(
        model=model, policy=policy, confinement=confinement, loosened=tuple(loosened), mode=mode, turns=numbers[0],
        input_tokens=numbers[1], output_tokens=numbers[2], cost=numbers[3] / 100, context_tokens_used=numbers[4],
        context_tokens=numbers[5], grants=numbers[0],
    )  # fmt: skip
    text = status_text(status, width)
    assert cells(text) <= max(width, 2)
    assert visible_line(text, 10_000) == text
    if loosened and width > 20:
        assert status_parts(status, width)[0][1] is Tone.BAD
