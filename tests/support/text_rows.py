"""Tables of bash lines as text: a line, and below it, indented, what becomes of it. `⏎` is a line break, `# ` a comment."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

LINE_BREAK = "\u23ce"


class TextRow(NamedTuple):
    """One line of a table, and what stands below it."""

    place: str
    """The file and the line in it."""
    text: str
    answers: list[str]


def text_rows(path: Path) -> list[TextRow]:
    """Return the rows of a file. Raises ValueError for a line without an answer, and for an empty file."""
    rows: list[TextRow] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        text = line.replace(LINE_BREAK, "\n")
        if line.startswith("    ") and rows:
            rows[-1].answers.append(text.removeprefix("    "))
        elif line.strip() and not line.startswith("# "):
            rows.append(TextRow(f"{path.name}:{number}", text, []))
    unanswered = [row.place for row in rows if not row.answers]
    if unanswered or not rows:
        raise ValueError(f"{path}: {', '.join(unanswered) or 'there is no row'}: nothing is said of it")
    return rows
