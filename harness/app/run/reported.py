"""A run to report on, with the descriptions that all report forms share: its end in numbers and in a sentence.

The texts are not escaped yet. Each form escapes them in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.app.run.facts import RunFacts
from harness.app.run.unquoted import divergence_of, unquoted_detail
from harness.record import Record

MOST_ANSWER = 60_000
"""Maximum number of characters of an answer."""
DIVERGED = "the replay diverged"
"""Kind of a problem that is not an error of the run."""
_GOOD = (0, 7)
"""Exit codes of runs that were completed."""
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
    """A run to report on."""

    name: str
    """Name of the run: the task of a batch, or any word. Untrusted, like all other texts."""
    facts: RunFacts
    result: Mapping[str, JsonValue]
    """The JSON object of `--output json`."""
    heads: str = ""
    """Path of the heads file, for the form that verifies the log. Empty if unknown."""

    @property
    def exit_code(self) -> int | None:
        """The exit code. `None` if unknown."""
        code = self.result.get("exit_code")
        return code if type(code) is int else self.facts.exit_code

    @property
    def is_done(self) -> bool:
        """Whether the run was completed, with or without refused calls."""
        return self.exit_code in _GOOD

    @property
    def end_words(self) -> str:
        """Description of the run's end."""
        end = self.text("end") or self.facts.stop
        if not end:
            return _UNTOLD
        return _ENDS.get(end, f"ended: {end[:40]}")

    @property
    def ended_in_own_words(self) -> bool:
        """Whether `end_words` is a text of the harness, without text from the log."""
        return self.end_words == _UNTOLD or self.end_words in _ENDS.values()

    @property
    def cost_words(self) -> str:
        """The cost in dollars, or `not known`."""
        cost = self.result.get("cost")
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            return "not known"
        return f"${cost:.4f}"

    @property
    def began(self) -> str:
        """Start time (RFC 3339, UTC). Empty if the log lacks it."""
        return self.facts.started.time if _TIME.fullmatch(self.facts.started.time) else ""

    def text(self, name: str) -> str:
        """Return a text field of `result`. Empty if it is missing."""
        value: JsonValue = self.result.get(name)
        return value if isinstance(value, str) else ""

    def answer(self, *, with_answer: bool) -> str:
        """Return the model's answer. Empty unless `with_answer`.

        Of a long answer, only the beginning is returned, with a note.
        """
        answer = self.text("answer") if with_answer else ""
        more = cut_words(answer, MOST_ANSWER)
        return f"{answer[:MOST_ANSWER]}\n({more})" if more else answer

    def detail(self, *, with_answer: bool) -> str:
        """Return the cause of the run's end in a sentence. Empty if there is nothing to add.

        It may quote anything. The model's words are included only with `with_answer`.
        """
        detail = self.text("detail") or self.facts.detail
        return detail if with_answer or not detail else unquoted_detail(self.text("end") or self.facts.stop, detail)

    def troubles(self, *, with_answer: bool) -> Iterator[tuple[str, str]]:
        """Yield the problems that are not about calls, each with its kind. `with_answer` includes the model's words."""
        facts = self.facts
        for call in facts.unjudged:
            yield "ran, and was not allowed", call
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
        """Note on changed files that are not listed. Empty if the list is complete."""
        count = self.facts.ran_unrecorded
        if not count:
            return ""
        return f"Commands begun: {count:,}. What commands changed is not recorded file by file."

    @property
    def left_out(self) -> list[str]:
        """Notes on the omissions of the report, one sentence each."""
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
    """Return a note on the omitted part of a text that is cut to `max_characters`. Empty if it is not cut."""
    return f"{len(text) - max_characters:,} more characters are left out" if len(text) > max_characters else ""


def place(file: str, at: int | None) -> str:
    """Return a short form such as `ci.toml:31`: the file name and the line."""
    name = file.rpartition("/")[2]
    return f"{name}:{at}" if name and at is not None else name


def answered_words(answered_by: str, decision: str) -> str:
    """Return the reason why the user did not allow a call. Empty if a rule refused the call."""
    if decision != "confirm":
        return ""
    return "nobody was there to say yes" if answered_by in ("nobody", "") else f"{answered_by} did not say yes"
