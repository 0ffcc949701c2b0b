"""The forms of an answer to a question of `harness audit`: `--csv` and `--html` hold the rows that the text has."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forged_logs import Step, decided, done, ended, intended, lines_of, one_call, proposed, started, write
from rows import all_rows

from harness.actions import JsonValue
from harness.plugins.insight.commands.questions import QUESTIONS

if TYPE_CHECKING:
    from program import Program

HOSTILE = "=cmd|' </td><script>x()</script>\x1b[2J\u202e&lt;"


class _Cells(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


@pytest.fixture
def log(tmp_path: Path) -> str:
    """A log with a call that read and left the workspace, one that was refused, and one without an end."""
    effects: dict[str, JsonValue] = {
        "network": True, "unasked": True, "granted": [], "enforcement": "where possible", "read": ["/etc/" + HOSTILE],
        "write": [],
    }  # fmt: skip
    judged, run = ((kind, {**fields, "effects": effects}) for kind, fields in (decided(1), intended(1)))
    asked: Step = ("approval_answered", {"call": 2, "answer": "no", "by": "person", "words": HOSTILE, "seconds": 0.5})
    steps: list[Step] = [
        started(workspace="/srv/shop"),
        proposed(1, HOSTILE), judged, run, done(1),
        proposed(2, HOSTILE), decided(2, "confirm"), ("approval_asked", {"call": 2, "shown_sha256": "d" * 64}), asked,
        ("outcome", {"call": 2, "tool": "bash", "status": "denied", "content": "Denied."}),
        *one_call(3),
        proposed(4), decided(4), intended(4),
        ended(),
    ]  # fmt: skip
    return str(write(tmp_path / "log.jsonl", lines_of(steps)))


@pytest.mark.forges_logs
@all_rows("name", list(QUESTIONS))
def test_each_form_has_the_same_rows(program: Program, log: str, name: str) -> None:
    table = program.run("audit", name, log, "--csv")
    page = program.run("audit", name, log, "--html")
    head, *rows = csv.reader(io.StringIO(table.out))
    names = [column.name for column in QUESTIONS[name].columns]
    found = _Cells(page.out)
    assert (table.code, page.code) == (program.run("audit", name, log).code,) * 2
    assert head == [one or "remarks" for one in names]
    assert found.rows[0] == names
    assert [[cell.removeprefix("'") for cell in row] for row in rows] == found.rows[1:]
    assert rows or name == "files"


@pytest.mark.forges_logs
@all_rows("name", list(QUESTIONS))
def test_log_text_is_neither_markup_nor_formula(program: Program, log: str, name: str) -> None:
    page = program.run("audit", name, log, "--html").out
    assert "script" not in _Cells(page).tags
    assert not set(page) & {"\x1b", "\u202e"}
    assert not re.search(r"""(?i)(src|href)\s*=|@import|url\(""", page.partition("<tbody>")[0])
    table = program.run("audit", name, log, "--csv").out
    assert not set(table) & {"\x1b", "\u202e"}
    assert not [cell for row in csv.reader(io.StringIO(table)) for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_an_answer_has_one_form(program: Program, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", lines_of([started(), *one_call(1), ended()]))
    done_ = program.run("audit", "denied", str(log), "--csv", "--json")
    assert (done_.code, "not allowed with" in done_.err) == (2, True)
