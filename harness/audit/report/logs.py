"""The logs of a report: what judging each of them showed, in the judge's own words; it judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.audit.calls import task_of
from harness.audit.report.tables import table
from harness.audit.report.text import digest, line, number
from harness.log.findings import Findings, Soundness

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from harness.audit.report.tables import Cells

CLASSES = {Soundness.WHOLE: "whole", Soundness.NO_HEAD: "note"}
MOST_BOXES = 3
"""So many logs have a box each; more are a table."""
NAMES = {Soundness.NO_HEAD: "NO HEAD TO COMPARE WITH"}


def looked_at(logs: Sequence[Findings], unread: Mapping[str, int], gone: Sequence[str]) -> Iterator[str]:
    """Yield which logs were looked at, what judging each showed, and what it does not prove; HTML.

    `unread` gives, by path, the first line of a log that is no record at all: it and what follows is on no page. `gone` are
    logs that were noted where these were looked for, and are not there.
    """
    yield '<h2 id="looked-at">What was looked at</h2>\n'
    for path in gone:
        yield f'<div class="alarm"><strong>GONE</strong> <code>{line(path, 2000)}</code><br>It was noted, and is not '
        yield "there any more.</div>\n"
    if len(logs) > MOST_BOXES:
        yield from _table_of(logs, unread)
        return
    for log in logs:
        yield from _one(log, unread.get(log.path))


def _table_of(logs: Sequence[Findings], unread: Mapping[str, int]) -> Iterator[str]:
    """Yield a table of logs, and below it what judging them proves, each text once."""
    yield from table("every log", _HEADS, (_row(log, unread.get(log.path)) for log in logs))
    proofs: dict[tuple[str, str], int] = {}
    for log in logs:
        proof = log.proved.removeprefix(f"of {log.found.records} records, "), log.not_proved
        proofs[proof] = proofs.get(proof, 0) + 1
    for (proved, not_proved), count in proofs.items():
        yield f'<div class="note">Of <strong>{number(count)}</strong> of these logs:<br>Proved: {line(proved, 2000)}.<br>'
        yield f"Not proved: {line(not_proved, 2000)}.</div>\n"


def _row(log: Findings, unread: int | None) -> Cells:
    is_good = log.soundness in CLASSES and not log.added
    name = line(NAMES.get(log.soundness, log.soundness.name))
    state = f'<span class="word">{name}</span>' if is_good else f'<span class="mark">! {name}</span>'
    task = f'<span class="word">{line(task, 64)}</span> ' if (task := task_of(log.path)) else ""
    found = [line(one, 2000) for one in log.lines]
    if unread is not None:
        found.append(f"Line {unread} is no record: from there on this log is LEFT OUT of this page.")
    return (
        f'<td class="what">{task}<code>{line(log.path, 2000)}</code></td>',
        f"<td>{state}</td>",
        f'<td class="n">{number(log.found.records)}</td>',
        f'<td class="what">{digest(log.found.head)}</td>',
        f'<td class="why">{"<br>".join(found)}</td>',
    )


_HEADS = ("log", "verdict", "verified records", "head", "what was found")


def _one(log: Findings, unread: int | None) -> Iterator[str]:
    kind = "alarm" if log.added else CLASSES.get(log.soundness, "alarm")
    yield f'<div class="{kind}"><strong>{NAMES.get(log.soundness, log.soundness.name)}</strong> '
    yield f"<code>{line(log.path, 2000)}</code>"
    yield "".join(f"<br>{line(one, 2000)}" for one in log.lines)
    if log.found.broken_line is not None:
        yield "<br>What this page tells of that line and all after it proves nothing."
    if unread is not None:
        yield f"<br>Line {unread} is no record: from there on this log is LEFT OUT of this page."
    yield f"<br>{number(log.found.records)} verified records, head {digest(log.found.head)}"
    yield f"<br>Proved: {line(log.proved, 2000)}.<br>Not proved: {line(log.not_proved, 2000)}.</div>\n"
