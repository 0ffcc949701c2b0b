"""Facts: what the log's records say of one session, gathered as they come; pure, never raises, and judges nothing.

Every text is hostile data. Texts that are read by people are made one line, cut and shown visibly here; paths, file names
and digests stay as they are, for programs. What memory does not grow with is kept as counts: of calls, refusals, changes
and troubles so many are kept as the MOST_ of this module say, and how many more there were is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.audit.calls import ABOUT_CALLS, Fate, LoggedCall, call_number, joined, text, word
from harness.audit.run_reports.rows import (
    ReportedCall,
    ReportedError,
    ReportedFile,
    ReportedRefusal,
    Started,
    line,
    refused_of,
    row_of,
)
from harness.audit.run_reports.unquoted import message_of, problem_of
from harness.log.clocks import seconds_between
from harness.log.order import ANSWERS, DECISIONS, STATUSES, LogRecord
from harness.log.reader import whole
from harness.messages import Usage
from harness.record import replace
from harness.tool_kinds import tool_kind

MOST_CALLS = 10_000
MOST_REFUSED = 5_000
MOST_CHANGED = 5_000
MOST_NOTES = 200
"""Of limits, of errors and of divergences, each."""
MOST_TOML = 8_000
"""Characters of a proposed rule."""
MOST_OPEN = 10_000
"""Calls in flight that are joined; more are only in a forged log."""
OF_CALLS = (*DECISIONS, "none")
"""What is counted of decisions: `none` of calls that could not be judged."""


class RunFacts:
    """What is known of one session: the first one that starts among the records that it is given."""

    def __init__(self) -> None:
        self.session = ""
        self.started = Started()
        self.ended = False
        self.stop = ""
        self.detail = ""
        """May quote the model: see words.detail_of."""
        self.exit_code: int | None = None
        self.turns = 0
        """Requests to the model that were begun, those for summaries too: as the limit of turns counts them."""
        self.usage = Usage()
        self.counts: dict[str, int] = {}
        """As the log's last record has them: `calls`, `decision_*`, `answer_*`, `status_*`; counted here."""
        self.decisions = dict.fromkeys(OF_CALLS, 0)
        self.limits: list[str] = []
        self.errors: list[ReportedError] = []
        self.diverged: list[Mapping[str, JsonValue]] = []
        self.answer_problem = ""
        """Why the answer is not what was asked for, in the harness's words alone."""
        self.quoted_problem = ""
        """The same with what the model wrote."""
        self.seconds: float | None = None
        """From the first record to the last."""
        self.calls_left_out = self.refused_left_out = self.changed_left_out = self.notes_left_out = 0
        self.ran_unrecorded = 0
        """Calls that may have changed files of which the log has no list: commands that were begun."""
        self.odd = 0
        """Records that could not be understood, and of which nothing is told."""
        self._calls: list[ReportedCall] = []
        self._open: dict[str, dict[str, LogRecord]] = {}
        self._refused: list[ReportedRefusal] = []
        self._refused_at: dict[str, int] = {}
        """By the number of the call: where in that list the last of that number stands."""
        self._changed: dict[str, ReportedFile] = {}
        self._first: LogRecord = {}

    @property
    def calls(self) -> Sequence[ReportedCall]:
        """Every call, in the order in which they ended; those without an end last."""
        return [*self._calls, *(row_of(self._joined(found)) for found in self._open.values())]

    @property
    def refused(self) -> Sequence[ReportedRefusal]:
        """The calls that were denied or blocked."""
        return tuple(self._refused)

    @property
    def changed(self) -> Sequence[ReportedFile]:
        """The files that file tools changed, in the order of their first change."""
        return tuple(self._changed.values())

    @property
    def denied_count(self) -> int:
        """How many calls were denied, those left out of `refused` too."""
        return self.counts.get("status_denied", 0)

    @property
    def blocked_count(self) -> int:
        """How many calls were blocked."""
        return self.counts.get("status_blocked", 0)

    def record(self, record: LogRecord) -> None:
        """Take in one record; those of other sessions are passed over. Never raises: an observer harms nothing."""
        try:
            self._take(record)
        except Exception:  # noqa: BLE001 - a record may hold anything, and a report must not end a run
            self.odd += 1

    def _take(self, record: LogRecord) -> None:
        kind, session = text(record, "kind"), text(record, "session")
        if kind == "session_started" and not self._first:
            self._begin(record, session)
        if not self._first or session != self.session:
            return
        between = seconds_between(self._first, record)
        self.seconds = self.seconds if between is None else between
        if kind in ABOUT_CALLS:
            self._about_call(kind, record)
        else:
            self._event(kind, record)

    def _begin(self, record: LogRecord, session: str) -> None:
        self.session = session
        self._first = {name: record[name] for name in ("time", "mono_ns", "kind") if name in record}
        replayed = record.get("replay")
        replay: LogRecord = replayed if isinstance(replayed, dict) else {}
        names = ("harness", "model", "policy", "policy_sha256", "confinement", "git_head")
        self.started = Started(
            time=text(record, "time"),
            workspace=text(record, "workspace"),
            dry_run=record.get("dry_run") is True,
            plan=record.get("plan") is True,
            replay=line(text(replay, "path")),
            **{name: line(text(record, name)) for name in names},
        )

    def _event(self, kind: str, record: LogRecord) -> None:
        match kind:
            case "model_request":
                self.turns += 1
            case "model_response":
                self.usage += _usage(record)
            case "advice":
                self._advise(record)
            case "answer_checked":
                problem = "" if record.get("fits") is True else word(record.get("problem")) or "the answer does not fit"
                self.answer_problem, self.quoted_problem = problem and problem_of(problem), line(problem, 500)
            case "session_ended":
                self._end(record)
            case _:
                self._trouble(kind, record)

    def _trouble(self, kind: str, record: LogRecord) -> None:
        match kind:
            case "error":
                self.usage += _usage(record)
                if "retry_seconds" not in record:
                    where, fault = (line(word(record.get(name)), 500) for name in ("where", "fault"))
                    quoted = word(record.get("message"))
                    message = line(message_of(quoted), 500)
                    if self._has_room(self.errors):
                        self.errors.append(
                            ReportedError(where=where, message=message, fault=fault, quoted=line(quoted, 500))
                        )
            case "limit" if self._has_room(self.limits):
                last = line(word(record.get("last_action")))
                self.limits.append(f"{line(word(record.get('limit')))}{f'; last action: {last}' if last else ''}")
            case "diverged" if self._has_room(self.diverged):
                self.diverged.append({name: _scalar(record.get(name)) for name in DIVERGED})
            case _:
                pass

    def _has_room(self, notes: Sequence[object]) -> bool:
        """Say whether one more can be kept; else count it."""
        is_full = len(notes) >= MOST_NOTES
        self.notes_left_out += is_full
        return not is_full

    def _end(self, record: LogRecord) -> None:
        self.ended = True
        self.stop, self.detail = line(text(record, "stop")), line(text(record, "detail"), 2_000)
        self.exit_code = whole(record.get("exit_code"))
        told = record.get("counts")
        if isinstance(told, dict) and told != self.counts:
            problem = "the counts at the end of the log are not those of its records; told are those of the records"
            self.errors.append(ReportedError(where="log", message=problem, fault="", quoted=problem))

    def _about_call(self, kind: str, record: LogRecord) -> None:
        name = word(record.get("call"))
        if name not in self._open and len(self._open) >= MOST_OPEN:
            self.calls_left_out += kind == "call_proposed"
            return
        found = self._open.setdefault(name, {})
        found[kind] = record
        match kind:
            case "call_proposed":
                self._count("calls")
            case "decision":
                decision = _known(text(record, "decision"), OF_CALLS)
                self._count(f"decision_{decision}")
                self.decisions[decision] = self.decisions.get(decision, 0) + 1
            case "approval_answered":
                self._count(f"answer_{_known(text(record, 'answer'), ANSWERS)}")
            case "intent":
                self.ran_unrecorded += not tool_kind(text(record, "tool")).is_of_files
            case "outcome":
                self._count(f"status_{_known(text(record, 'status'), STATUSES)}")
                del self._open[name]
                self._settle(name, self._joined(found))
            case _:
                pass

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _joined(self, found: Mapping[str, LogRecord]) -> LoggedCall:
        return joined(found, log="", session=self.session, number="")

    def _settle(self, name: str, call: LoggedCall) -> None:
        is_refused = call.fate is Fate.REFUSED
        if is_refused and len(self._refused) < MOST_REFUSED:
            self._refused_at[name] = len(self._refused)
            self._refused.append(refused_of(call, self.started.workspace))
        elif is_refused:
            self.refused_left_out += 1
        # A refusal is never hidden by the thousands of calls before it.
        if len(self._calls) < MOST_CALLS or (is_refused and not self.refused_left_out):
            self._calls.append(row_of(call))
        else:
            self.calls_left_out += 1
        if path := text(call.outcome, "changed_path"):
            self._change(path, call)

    def _change(self, path: str, call: LoggedCall) -> None:
        before, after = (text(call.outcome, name) or None for name in ("before_sha256", "after_sha256"))
        known = self._changed.get(path)
        if known is not None:
            self._changed[path] = replace(
                known, after_sha256=after, calls=(*known.calls, call_number(call))[:MOST_CALLS]
            )
        elif len(self._changed) < MOST_CHANGED:
            self._changed[path] = ReportedFile(
                path=path, before_sha256=before, after_sha256=after, calls=(call_number(call),)
            )
        else:
            self.changed_left_out += 1

    def _advise(self, record: LogRecord) -> None:
        at = self._refused_at.get(word(record.get("call")))
        if at is None:
            return
        toml, why = text(record, "toml"), line(text(record, "why"), 500)
        if len(toml) > MOST_TOML:  # half a rule is none
            toml, why = "", "a rule is in the log; it is too long to be shown"
        self._refused[at] = replace(self._refused[at], advice_toml=toml, advice_why=why)


FACT_KINDS = ABOUT_CALLS | frozenset(
    "session_started session_ended model_request model_response error limit advice answer_checked diverged".split()
)
"""The kinds of records of which something is told; others may be passed over."""
DIVERGED = ("request", "message", "role", "tool", "recorded", "now")
"""The fields of a divergence."""


def _usage(record: LogRecord) -> Usage:
    names = ("input_tokens", "output_tokens", "cached_tokens", "unreported")
    return Usage(**{name: _count(record, name) for name in names})


def _count(record: LogRecord, name: str) -> int:
    return max(0, whole(record.get(name)) or 0)


def _known(found: str, known: Sequence[str]) -> str:
    """Return a word that is counted; a forged log may hold any number of others."""
    return found if found in known else "other"


def _scalar(value: JsonValue) -> JsonValue:
    return whole(value) if isinstance(value, int) and not isinstance(value, bool) else line(word(value), 300)
