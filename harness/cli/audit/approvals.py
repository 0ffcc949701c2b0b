"""The lines of `harness audit approvals`: a question with its answer, and the counts; writes nothing itself."""

from __future__ import annotations

from harness.actions import JsonValue
from harness.audit.calls import Fate, text
from harness.audit.counts import Waits
from harness.audit.questions import Question
from harness.audit.rows import edited_from, edited_to
from harness.cli.audit.words import moment, name, quoted, seconds, what, who, why
from harness.cli.trace import Tone
from harness.log_words import ANSWERS
from harness.visible import visible_line

_TONES = {
    "yes": Tone.GOOD,
    "no": Tone.BAD,
    "stop": Tone.BAD,
    "halt": Tone.BAD,
    "nobody": Tone.WARNING,
    "edit": Tone.WARNING,
}


def question_line(question: Question) -> tuple[str, Tone]:
    """Return the line for a question."""
    call = question.call
    parts = [moment(call.asked or call.answered), name(call), what(call), f"[{why(call)}]", _answer(question)]
    if question.is_quick:
        parts.append("under 1 s")
    if question.in_burst:
        parts.append("burst")
    if (origin := edited_from(call)) is not None:
        parts.append(visible_line(f"made of call {origin}", 60))
    tone = _TONES.get(question.answer, Tone.WARNING)
    return "  ".join(parts), Tone.WARNING if question.is_quick or question.in_burst else tone


def _answer(question: Question) -> str:
    call = question.call
    match question.answer:
        case "" if call.fate is Fate.OPEN:
            return "asked, no answer recorded: the log ends there"
        case "":
            return f"asked, no answer recorded: {visible_line(text(call.outcome, 'content'), 200)}"
        case "nobody":
            return "nobody was there to answer"
        case "edit":
            into = visible_line(f"edit, into call {edited_to(call)}", 60)
            return f"{into}, by {who(call)}, {seconds(call)}"
        case answer:
            said = [visible_line(answer, 20), f"by {who(call)},", seconds(call), quoted(text(call.answered, "words"))]
            return " ".join(word for word in said if word)


class Tally:
    """Counts over questions."""

    def __init__(self) -> None:
        self.asked = self.quick = self.quick_yes = self.in_bursts = 0
        self._answers: dict[str, int] = {}
        self._waits = Waits()

    def take(self, question: Question) -> None:
        """Count one question."""
        answer = question.answer if question.answer in ANSWERS or not question.answer else "other"
        self.asked += 1
        self._answers[answer] = self._answers.get(answer, 0) + 1
        self.quick += question.is_quick
        self.quick_yes += question.is_quick and question.answer == "yes"
        self.in_bursts += question.in_burst
        if question.by_person and question.seconds is not None:
            self._waits.add(question.seconds)

    @property
    def median(self) -> float | None:
        """The median of the seconds that people took (nearest rank, as `stats` has it); None where nobody answered."""
        return self._waits.quantile(0.5)

    def fields(self) -> dict[str, JsonValue]:
        """Return the counts as JSON."""
        counts: dict[str, JsonValue] = {answer: self._answers.get(answer, 0) for answer in (*ANSWERS, "other")}
        more: dict[str, JsonValue] = {"quick": self.quick, "quick_yes": self.quick_yes, "in_bursts": self.in_bursts}
        more["wait_median"] = self.median
        return {"asked": self.asked, **counts, "unanswered": self._answers.get("", 0), **more}

    def line(self) -> str:
        """Return the counts in words."""
        words = [f"{self.asked} asked: {self._answers.get('yes', 0)} yes", f"{self._answers.get('no', 0)} no"]
        words += [f"{self._answers[one]} {one}" for one in ("stop", "halt", "edit", "other") if one in self._answers]
        words.append(f"{self._answers.get('nobody', 0)} nobody")
        if "" in self._answers:
            words.append(f"{self._answers['']} without an answer")
        median = "" if self.median is None else f"; median wait {self.median:g} s"
        bursts = f", {self.in_bursts} in bursts" if self.in_bursts else ""
        return f"{', '.join(words)}{median}; {self.quick} under 1 s ({self.quick_yes} of them yes){bursts}"
