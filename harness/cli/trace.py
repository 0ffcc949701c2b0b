"""Log records to lines for people: what `run` prints while it works and `audit show` afterwards; plain text, safe to show."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harness.log_order import LogRecord
from harness.record import Record
from harness.visible import visible_line


class Tone(Enum):
    """How a line is meant; colour is only ever added to words that say the same."""

    PLAIN = "plain"
    QUIET = "quiet"
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Line(Record):
    """One line of the trace, without colour."""

    tone: Tone
    text: str


_STATUS_TONES: Mapping[str, Tone] = {
    "ok": Tone.GOOD,
    "failed": Tone.WARNING,
    "timeout": Tone.WARNING,
    "interrupted": Tone.WARNING,
    "crashed": Tone.BAD,
    "invalid": Tone.WARNING,
    "denied": Tone.BAD,
    "blocked": Tone.BAD,
    "not_run": Tone.QUIET,
}


class Tracer:
    """Turns the records of one session, in order, into one line per call and one for whatever else matters."""

    def __init__(self) -> None:
        self._decisions: dict[object, LogRecord] = {}
        self._answers: dict[object, LogRecord] = {}

    def line(self, record: LogRecord) -> Line | None:
        """Return the line for `record`, or None where nothing needs to be said yet."""
        kind = record["kind"]
        if kind == "decision":
            self._decisions[record.get("call")] = record
        elif kind == "approval_answered":
            self._answers[record.get("call")] = record
        elif kind == "outcome":
            return self._outcome(record)
        elif kind == "error" and "retry_seconds" in record:
            tries = f"try {record.get('attempt')} of {record.get('attempts')} failed"
            text = f"~ {tries}, again in {record['retry_seconds']} s: {record.get('message')}"
            return Line(tone=Tone.WARNING, text=visible_line(text, 500))
        elif kind == "error":
            return Line(tone=Tone.BAD, text=visible_line(f"! {record.get('where')}: {record.get('message')}", 1_000))
        elif kind == "history_changed" and record.get("why") == "compacted":
            text = "~ the older part of the conversation was summarized (the log keeps all of it)"
            return Line(tone=Tone.WARNING, text=text)
        elif kind == "limit":
            return Line(tone=Tone.BAD, text=visible_line(f"! limit: {record.get('limit')}"))
        return None

    def _outcome(self, record: LogRecord) -> Line:
        status = str(record.get("status"))
        decision = self._decisions.pop(record.get("call"), {})
        answer = self._answers.pop(record.get("call"), None)
        summary = str(decision.get("summary") or record.get("content") or "")
        parts = [f"{_mark(status)} {record.get('tool')}  {visible_line(summary, 100)}", _how_decided(decision, answer)]
        parts.append(_how_ended(status, record))
        tone = _STATUS_TONES.get(status, Tone.BAD)
        return Line(tone=tone, text=visible_line("  ".join(part for part in parts if part), 400))


def _mark(status: str) -> str:
    return {"ok": "+", "denied": "x", "blocked": "#", "not_run": "-"}.get(status, "!")


def _how_decided(decision: LogRecord, answer: LogRecord | None) -> str:
    if not decision or decision.get("decision") == "none":
        return ""
    if answer is not None:
        words = f': "{answer["words"]}"' if answer.get("words") else ""
        return f"[asked: {answer.get('answer')} by {answer.get('by')}, {answer.get('seconds')} s{words}]"
    return f"[{decision['decision']}: {_short_place(str(decision.get('by')))}]"


def _short_place(by: str) -> str:
    """Shorten `rule look (/long/way/default.toml:58)` to `rule look (default.toml:58)`: the log has the whole path."""
    before, bracket, place = by.rpartition("(")
    return f"{before}{bracket}{place.rpartition('/')[2]}" if bracket else by


def _how_ended(status: str, record: LogRecord) -> str:
    if status in ("ok", "failed") and "duration_ms" in record:
        duration = record["duration_ms"]
        seconds = f"{duration / 1000:.1f} s" if isinstance(duration, int) else ""
        code = record.get("exit_code")
        return f"exit {code}, {seconds}" if code is not None else f"{status}, {seconds}"
    return "" if status == "not_run" else status  # its result begins with the words
