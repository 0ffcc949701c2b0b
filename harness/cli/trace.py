"""Log records to lines for people: what `run` prints while it works and `audit show` afterwards; plain text, safe to show."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harness.audit.calls import number, sign_of, word
from harness.log_order import LogRecord
from harness.paths import short_place
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
    """Turns the records of sessions, in order, into one line per call and one for whatever else matters."""

    def __init__(self) -> None:
        self._decisions: dict[tuple[str, str], LogRecord] = {}
        self._answers: dict[tuple[str, str], LogRecord] = {}

    def line(self, record: LogRecord) -> Line | None:
        """Return the line for `record`, or None where nothing needs to be said yet."""
        kind, key = record["kind"], (word(record.get("session")), word(record.get("call")))
        if kind == "decision":
            self._decisions[key] = record
        elif kind == "approval_answered":
            self._answers[key] = record
        elif kind == "outcome":
            return ended_line(record, self._decisions.pop(key, {}), self._answers.pop(key, {}))
        else:
            return event_line(record)
        return None


def event_line(record: LogRecord) -> Line | None:
    """Return the line for a record that is about no call and says that something went otherwise, or None."""
    match record["kind"]:
        case "error" if "retry_seconds" in record:
            tries = f"try {word(record.get('attempt'))} of {word(record.get('attempts'))} failed"
            text = f"~ {tries}, again in {word(record['retry_seconds'])} s: {word(record.get('message'))}"
            return Line(tone=Tone.WARNING, text=visible_line(text, 500))
        case "error":
            text = f"! {word(record.get('where'))}: {word(record.get('message'))}"
            return Line(tone=Tone.BAD, text=visible_line(text, 1_000))
        case "grant" if record.get("not_kept"):
            text = f"~ granted for this session only; it could not be kept: {word(record['not_kept'])}"
            return Line(tone=Tone.WARNING, text=visible_line(text, 1_000))
        case "history_changed" if record.get("why") == "compacted":
            text = "~ the older part of the conversation was summarized (the log keeps all of it)"
            return Line(tone=Tone.WARNING, text=text)
        case "answer_checked" if record.get("fits") is not True:
            return Line(
                tone=Tone.WARNING, text=visible_line(f"~ the answer does not fit: {word(record.get('problem'))}", 1_000)
            )
        case "diverged":
            place = f"request {word(record.get('request'))}, message {word(record.get('message'))}"
            text = f"{word(record.get('recorded'))!r} was recorded, and it is {word(record.get('now'))!r} now"
            return Line(
                tone=Tone.WARNING,
                text=visible_line(f"~ the replay diverges at {place} ({word(record.get('role'))}): {text}", 1_000),
            )
        case "limit":
            return Line(tone=Tone.BAD, text=visible_line(f"! limit: {word(record.get('limit'))}"))
        case _:
            return None


def ended_line(outcome: LogRecord, decision: LogRecord, answered: LogRecord) -> Line:
    """Return the line for a call that has ended; `decision` and `answered` are empty where it has none."""
    status = word(outcome.get("status"))
    summary = word(decision.get("summary")) or word(outcome.get("content"))
    parts = [f"{sign_of(status)} {word(outcome.get('tool'))}  {visible_line(summary, 100)}"]
    parts += [how_decided(decision, answered), _how_ended(status, outcome)]
    tone = _STATUS_TONES.get(status, Tone.BAD)
    return Line(tone=tone, text=visible_line("  ".join(part for part in parts if part), 400))


def how_decided(decision: LogRecord, answered: LogRecord) -> str:
    """Return in brackets what decided a call: an answer with its time, or a rule; empty where nothing did."""
    if not decision or decision.get("decision") == "none":
        return ""
    if answered:
        words = f': "{word(answered.get("words"))}"' if answered.get("words") else ""
        answer, by, seconds = (word(answered.get(name)) for name in ("answer", "by", "seconds"))
        scope = f" for the {word(answered.get('scope'))}" if answered.get("scope") else ""
        return f"[asked: {answer}{scope} by {by}, {seconds} s{words}]"
    return f"[{word(decision.get('decision'))}: {short_place(word(decision.get('by')))}]"


def _how_ended(status: str, outcome: LogRecord) -> str:
    if status in ("ok", "failed") and "duration_ms" in outcome:
        duration = number(outcome, "duration_ms")
        seconds = f"{duration / 1000:.1f} s" if duration is not None else ""
        code = outcome.get("exit_code")
        return f"exit {word(code)}, {seconds}" if code is not None else f"{status}, {seconds}"
    return "" if status == "not_run" else status  # its result begins with the words
