"""The logs of a report: what judging each of them showed, in the judge's own words; it judges nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.audit.report.text import digest, line, number
from harness.log_findings import Findings, Soundness

CLASSES = {Soundness.WHOLE: "whole", Soundness.NO_HEAD: "note"}
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
    for log in logs:
        yield from _one(log, unread.get(log.path))


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
