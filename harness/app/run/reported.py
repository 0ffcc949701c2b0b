"""A run that is reported on, and the words that every form of report says alike: how it ended, in numbers and in a sentence.

Nothing of it is escaped yet: each form does that in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts
from harness.app.run.unquoted import divergence_of, unquoted_detail
from harness.record import Record

MOST_ANSWER = 60_000
"""Characters of an answer."""
DIVERGED = "the replay diverged"
"""A kind of trouble that is none of the run's."""
_GOOD = (0, 7)
"""Exit codes of runs that came to their end."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_UNTOLD = "the log does not say how it ended"
_ENDS = {
    "completed": "completed",
    "blocked": "halted by a hard block",
    "limit": "stopped at a limit",
    "length": "no usable answer: it was too long",
    "content_filter": "no usable answer: the provider's content filter",
    "cut": "no usable answer: the reply was cut off",
    "no_answer": "no usable answer: neither text nor a call",
    "unfit": "no usable answer: it does not fit the schema",
    "model_error": "the model provider failed",
    "log_error": "the action log could not be written",
    "gate_error": "the gate failed",
    "workspace_lost": "the workspace disappeared",
    "internal_error": "an internal error",
    "interrupted": "interrupted",
    "terminal_closed": "the terminal was closed",
}


class ReportedRun(Record):
    """A run that a report is about."""

    name: str
    """Name of the run: the task of a batch, else any word. Hostile like everything else."""
    facts: RunFacts
    result: Mapping[str, JsonValue]
    """The object of `--output json`."""
    heads: str = ""
    """The file with the noted heads of logs, for the form that verifies the log itself. Empty if unknown."""

    @property
    def exit_code(self) -> int | None:
        """The exit code. `None` if unknown."""
        code = self.result.get("exit_code")
        return code if type(code) is int else self.facts.exit_code

    @property
    def is_done(self) -> bool:
        """Whether it came to its end, calls refused or not."""
        return self.exit_code in _GOOD

    @property
    def end_words(self) -> str:
        """Its end, in a few words of the harness."""
        end = self.text("end") or self.facts.stop
        if not end:
            return _UNTOLD
        return _ENDS.get(end, f"ended: {end[:40]}")

    @property
    def ended_in_own_words(self) -> bool:
        """Whether `end_words` are the harness's own, without text of a log."""
        return self.end_words == _UNTOLD or self.end_words in _ENDS.values()

    @property
    def cost_words(self) -> str:
        """The cost in dollars, or that it is not known."""
        cost = self.result.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            return "not known"
        return f"${cost:.4f}"

    @property
    def began(self) -> str:
        """Its start (RFC 3339, UTC). Empty if the log lacks it."""
        return self.facts.started.time if _TIME.fullmatch(self.facts.started.time) else ""

    def text(self, name: str) -> str:
        """Return a text of the result object."""
        value: JsonValue = self.result.get(name)
        return value if isinstance(value, str) else ""

    def answer(self, *, with_answer: bool) -> str:
        """Return the model's answer, of a long one the beginning, and it says so; empty unless `with_answer`."""
        answer = self.text("answer") if with_answer else ""
        more = cut_words(answer, MOST_ANSWER)
        return f"{answer[:MOST_ANSWER]}\n({more})" if more else answer

    def detail(self, *, with_answer: bool) -> str:
        """Return the cause of its end, in a sentence; empty without a further one.

        It may quote anything, but the model's words only `with_answer`.
        """
        detail = self.text("detail") or self.facts.detail
        return detail if with_answer or not detail else unquoted_detail(self.text("end") or self.facts.stop, detail)

    def troubles(self, *, with_answer: bool) -> Iterator[tuple[str, str]]:
        """Yield the problems besides calls, each with its kind; `with_answer` as in `detail`."""
        facts = self.facts
        for limit in facts.limits:
            yield "limit", limit
        for error in facts.errors:
            yield "error", f"{error.location}: {error.quoted if with_answer else error.message}"
        if facts.answer_problem:
            problem = facts.quoted_problem if with_answer else facts.answer_problem
            yield "the answer does not fit its schema", problem
        for divergence in facts.diverged:
            visible_divergence = divergence if with_answer else divergence_of(divergence)
            problem = ", ".join(f"{name} {value}" for name, value in visible_divergence.items() if value != "")
            yield DIVERGED, problem

    @property
    def unrecorded_changes(self) -> str:
        """The gaps in the list of changed files. Empty if it is complete."""
        count = self.facts.ran_unrecorded
        if not count:
            return ""
        return f"Commands begun: {count:,}. What commands changed is not recorded file by file."

    @property
    def left_out(self) -> list[str]:
        """The parts that the report leaves out, a sentence each."""
        facts = self.facts
        notes = []
        for count, noun in (
            (facts.calls_left_out, "calls"),
            (facts.refused_left_out, "refusals"),
            (facts.changed_left_out, "changes of files"),
            (facts.notes_left_out, "limits, errors or divergences"),
        ):
            if count:
                notes.append(f"{count:,} more {noun} are not listed here; the log has them.")
        if facts.odd:
            notes.append(f"{facts.odd:,} records of the log could not be understood, and are left out.")
        if facts.session and not facts.is_ended:
            notes.append(
                "The log has no end of this session: it may have been cut short, and calls may be missing here."
            )
        elif not facts.session:
            notes.append("There is no session in the log: nothing is known of what was done.")
        return notes


def cut_words(text: str, max_characters: int) -> str:
    """Return the note about a text that is cut to so many characters; empty if it is whole."""
    return f"{len(text) - max_characters:,} more characters are left out" if len(text) > max_characters else ""


def place(file: str, at: int | None) -> str:
    """Return `ci.toml:31`: the last part of a file's path, and the line."""
    name = file.rpartition("/")[2]
    return f"{name}:{at}" if name and at is not None else name


def answered_words(answered_by: str, decision: str) -> str:
    """Return the reason why a person did not allow a call; empty if a rule refused it."""
    if decision != "confirm":
        return ""
    return "nobody was there to say yes" if answered_by in ("nobody", "") else f"{answered_by} did not say yes"
