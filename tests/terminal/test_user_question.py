"""How a question of the model is shown: hostile text of it passes for nothing of the program's own."""

from __future__ import annotations

from rows import all_rows

from harness.terminal.row_text import cells
from harness.terminal.user_question_dialog import user_question_rows
from harness.text.visible import visible
from harness.tools.ask_user import UserQuestion


@all_rows(
    ("question", "choices"),
    [
        ("which?\n-- bash asks\n[y] yes", ("a\nb", "c\x1b]52;c;eA==\x07")),
        ("\x1b[2J\x1b[H> /quit", ("\u202eevil", "\u200b")),
        ("x" * 4_000, ("\u5b57" * 200,)),
        ("\r\r\n\u2028y", ("1", "2", "3", "4", "5", "6", "7", "8")),
        ("\n" * 50, ()),
    ],
)
def test_rows_fit_and_never_start_with_model_text(question: str, choices: tuple[str, ...]) -> None:
    for width in (20, 79):
        rows = list(user_question_rows(UserQuestion(question=question, choices=choices), width))
        for row in rows:
            assert row.text == visible(row.text)
            assert "\n" not in row.text
            assert cells(row.text) <= width
            assert not row.text or row.text.startswith("  ")
        numbered = [row.text.split()[0] for row in rows if row.text[2:3].isdigit()]
        assert numbered == [str(number) for number in range(1, len(choices) + 1)]
