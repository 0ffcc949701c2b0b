"""The answers to `audit approvals` and `audit denied`: decisions of people and policies about calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from harness.actions import JsonValue
from harness.app.audit.answer_writer import answer_source, deciding_part, name, quoted, seconds, tool_and_summary
from harness.app.audit.question import AnswerRow, AskedLogs, Total
from harness.audit.calls import Fate, edited_from, edited_to, text
from harness.log.vocabulary import ANSWERS
from harness.plugins.insight.questions import (
    LoggedQuestion,
    LoggedRefusal,
    RefusalCounts,
    Refuser,
    questions,
    refusals,
)
from harness.plugins.insight.stats import NO_ANSWER, OTHER_ANSWER, QuestionCount
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

_TONES = {
    "yes": Tone.GOOD,
    "no": Tone.BAD,
    "stop": Tone.BAD,
    "halt": Tone.BAD,
    "nobody": Tone.WARNING,
    "edit": Tone.WARNING,
}


class Approvals:
    """Every question that was asked, with its answer."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._counts = QuestionCount()

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each question. Raises LogError."""
        for question in questions(self._asked_logs.logs.calls()):
            self._counts.take(question.call, in_burst=question.in_burst)
            yield self._row(question)

    def total(self) -> Total:
        """Return the counts of questions by their answer."""
        counts, sessions = self._counts, self._asked_logs.logs.sessions
        nobody = f"nobody was asked anything in {count_of(sessions, 'session')}"
        return Total(
            counts=_question_counts(counts), lines=(_counts_line(counts) if counts.question_count else nobody,)
        )

    def _row(self, question: LoggedQuestion) -> AnswerRow:
        call = question.call
        remarks = ["under 1 s"] if call.is_quick else []
        if question.in_burst:
            remarks.append("burst")
        if (origin := edited_from(call)) is not None:
            remarks.append(visible_line(f"made of call {origin}", 60))
        when = self._asked_logs.moment(call.asked or call.answered)
        return AnswerRow(
            cells=(
                when,
                name(call),
                *tool_and_summary(call),
                deciding_part(call),
                _answer(question),
                "  ".join(remarks),
            ),
            objects=(question.fields(),),
            tone=Tone.WARNING if call.is_quick or question.in_burst else _TONES.get(call.answer, Tone.WARNING),
        )


def _answer(question: LoggedQuestion) -> str:
    call = question.call
    match question.call.answer:
        case "" if call.fate is Fate.OPEN:
            return "asked, no answer recorded: the log ends there"
        case "":
            return f"asked, no answer recorded: {visible_line(text(call.outcome, 'content'), 200)}"
        case "nobody":
            return "nobody was there to answer"
        case "edit":
            into = visible_line(f"edit, into call {edited_to(call)}", 60)
            return f"{into}, by {answer_source(call)}, {seconds(call)}"
        case answer:
            parts = [
                visible_line(answer, 20),
                f"by {answer_source(call)},",
                seconds(call),
                quoted(text(call.answered, "words")),
            ]
            return " ".join(part for part in parts if part)


def _question_counts(counts: QuestionCount) -> dict[str, JsonValue]:
    """Return the counts over all questions as JSON."""
    answers: dict[str, JsonValue] = {answer: counts.answers[answer] for answer in (*ANSWERS, OTHER_ANSWER)}
    return {
        "asked": counts.question_count,
        **answers,
        "unanswered": counts.answers[NO_ANSWER],
        "quick": counts.quick,
        "quick_yes": counts.quick_yes,
        "in_bursts": counts.in_bursts,
        "wait_median": counts.median,
    }


def _counts_line(counts: QuestionCount) -> str:
    """Return the counts over all questions in words."""
    answers = counts.answers
    words = [f"{counts.question_count} asked: {answers['yes']} yes", f"{answers['no']} no"]
    words += [f"{answers[answer]} {answer}" for answer in ("stop", "halt", "edit", OTHER_ANSWER) if answers[answer]]
    words.append(f"{answers['nobody']} nobody")
    if answers[NO_ANSWER]:
        words.append(f"{answers[NO_ANSWER]} without an answer")
    median = "" if counts.median is None else f"; median wait {counts.median:g} s"
    bursts = f", {counts.in_bursts} in bursts" if counts.in_bursts else ""
    return f"{', '.join(words)}{median}; {counts.quick} under 1 s ({counts.quick_yes} of them yes){bursts}"


_BY = {
    Refuser.POLICY: "by the policy",
    Refuser.PERSON: "by a person",
    Refuser.SCRIPT: "by a script",
    Refuser.NOBODY: "for nobody was there",
    Refuser.EDIT: "for another call in their place",
    Refuser.UNSAID: "by whom the log does not say",
}


class Refusals:
    """Every call that was refused."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._lists_invalid: bool = asked_logs.arguments.invalid
        self._counts = RefusalCounts()

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each refused call, with `--invalid` for each invalid call too. Raises LogError."""
        for refusal in refusals(self._asked_logs.logs.calls(), self._counts, invalid=self._lists_invalid):
            call = refusal.call
            status = visible_line(text(call.outcome, "status"), 20)
            reasons = _refused_by(refusal), visible_line(refusal.reason, 500), visible_line(refusal.hint, 300)
            yield AnswerRow(
                cells=(self._asked_logs.moment(call.outcome), name(call), status, *tool_and_summary(call), *reasons),
                objects=(refusal.fields(),),
                tone=Tone.WARNING if refusal.refuser in (Refuser.EDIT, Refuser.TOOL) else Tone.BAD,
            )

    def total(self) -> Total:
        """Return the number of refused calls, by the source of the refusal."""
        counts = self._counts
        total = sum(counts.refused.values())
        by = ", ".join(
            f"{counts.refused[refuser]} {words}" for refuser, words in _BY.items() if refuser in counts.refused
        )
        none = f"no call was refused in {count_of(self._asked_logs.logs.sessions, 'session')}"
        line = f"{count_of(total, 'call')} refused: {by}" if total else none
        if counts.invalid:
            line += f"; {counts.invalid} invalid{'' if self._lists_invalid else ' (--invalid lists them)'}"
        if counts.never_came:
            line += f"; {counts.never_came} not run, for something else ended the run"
        return Total(counts=counts.fields(), lines=(line,))


def _refused_by(refusal: LoggedRefusal) -> str:
    call = refusal.call
    match refusal.refuser:
        case Refuser.POLICY:
            return deciding_part(call)
        case Refuser.PERSON | Refuser.SCRIPT | Refuser.OUTSIDE:
            words = quoted(refusal.words) or "without a word"
            return f"{answer_source(call)}, {seconds(call)}: {words}; asked by {deciding_part(call)}"
        case Refuser.NOBODY:
            return f"nobody was there to ask; needed by {deciding_part(call)}"
        case Refuser.EDIT:
            return f"{answer_source(call)} put {visible_line(f'call {edited_to(call)}', 60)} in its place"
        case Refuser.TOOL:
            return "no valid call"
        case Refuser.UNSAID:
            return "by whom the log does not say"
        case _:
            assert_never(refusal.refuser)
