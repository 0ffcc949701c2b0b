"""Facts about one session, collected from the log's records as they arrive. Never raises.

Every text is untrusted. Texts for display are cut here, put on one line and escaped. Paths, file names and digests stay
as they are, for programs. Memory does not grow with the log: MOST_CALLS and MOST_NOTES limit the stored calls, files
and notes, and further ones are counted.
"""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.actions import JsonValue
from harness.app.run.unquoted import message_of, problem_of
from harness.audit.calls import ABOUT_CALLS, Fate, Joiner, LoggedCall, call_number, number, text, usage_in, word
from harness.audit.helper_tree import HelperTree
from harness.log.clocks import seconds_between
from harness.log.order import LogRecord
from harness.log.reader import records, whole_number
from harness.log.vocabulary import ANSWERS, DECISIONS, STATUSES
from harness.messages import Usage
from harness.paths import is_within, short_place
from harness.record import Record, replace
from harness.text.visible import visible_line
from harness.tool_kinds import tool_kind

MOST_CALLS = 10_000
"""Maximum number of refused calls, of other calls, and of changed files.

MOST_IN_FLIGHT limits the calls without an end.
"""
MOST_NOTES = 200
"""Maximum number of limits, of errors, and of divergences."""
MOST_TOML = 8_000
"""Maximum number of characters of a proposed rule."""
OF_CALLS = (*DECISIONS, "none")
"""The decisions that are counted. `none` is for calls that could not be judged."""


class RunFacts:
    """Facts about one session: the first one that starts in the given records."""

    def __init__(self) -> None:
        self.session = ""
        self.started = Started()
        self.is_ended = False
        self.stop = ""
        self.detail = ""
        """May quote the model. See unquoted.py."""
        self.exit_code: int | None = None
        self.turns = 0
        """Number of started requests to the model, including those for summaries.

        The limit of turns counts the same.
        """
        self.usage = Usage()
        self.counts: dict[str, int] = {}
        """Counts of the session's calls and of its helpers' calls: `calls`, `decision_*`, `answer_*`, `status_*`.

        The same counts as in the record of a session's end, but computed here.
        """
        self.decisions = dict.fromkeys(OF_CALLS, 0)
        self.limits: list[str] = []
        self.errors: list[ReportedError] = []
        self.unjudged: list[str] = []
        """The calls that another agent ran and that were not allowed."""
        self.diverged: list[Mapping[str, JsonValue]] = []
        self.answer_problem = ""
        """Reason why the answer does not meet the requirements, without quotes from the model."""
        self.quoted_problem = ""
        """The same reason with the model's words."""
        self.seconds: float | None = None
        """Seconds from the first record to the last."""
        self.calls_left_out = self.refused_left_out = self.changed_left_out = self.notes_left_out = 0
        self.ran_unrecorded = 0
        """Number of calls that may have changed unlisted files: commands that were started."""
        self.odd = 0
        """Number of records that could not be interpreted. They are not reported."""
        self.helpers = HelperTree()
        """Helpers of this session. Their usage is included in `turns` and `usage`, and their calls in `calls`."""
        self._own_counts: dict[str, int] = {}
        """Like `counts`, without helpers."""
        self._joiner = Joiner("")
        self._calls: list[ReportedCall] = []
        self._kept_counts: Counter[bool] = Counter()
        """Numbers of stored calls: True is the key for refused ones, False for others."""
        self._refused_at: dict[tuple[str, str], int] = {}
        """Index in `_calls` of the last refused call, by session and call number."""
        self._changed: dict[str, ReportedFile] = {}
        self._first: LogRecord = {}

    @property
    def calls(self) -> Sequence[ReportedCall]:
        """All calls in the order of their ends. Calls without an end come last."""
        sessions = (self.session, *(session.session for session in self.helpers.of(self.session)))
        return [*self._calls, *(self._reported(call) for session in sessions for call in self._joiner.open(session))]

    @property
    def refused(self) -> Sequence[ReportedCall]:
        """The calls that were denied or blocked."""
        return tuple(call for call in self._calls if call.is_refused)

    @property
    def changed(self) -> Sequence[ReportedFile]:
        """The files that file tools changed, in the order of their first change."""
        return tuple(self._changed.values())

    @property
    def denied_count(self) -> int:
        """Number of denied calls, including those that `refused` omits."""
        return self.counts.get("status_denied", 0)

    @property
    def blocked_count(self) -> int:
        """Number of blocked calls."""
        return self.counts.get("status_blocked", 0)

    def record(self, record: LogRecord) -> None:
        """Process one record.

        Records of other sessions are ignored. Never raises, since an observer must not disturb the run.
        """
        try:
            self._take(record)
        except Exception:  # noqa: BLE001 - a record may hold anything, and a report must not end a run
            self.odd += 1

    def _take(self, record: LogRecord) -> None:
        kind, session = text(record, "kind"), text(record, "session")
        if kind == "session_started" and not self._first:
            self._begin(record, session)
        helper = self.helpers.record(record) if self._first else None
        if helper is not None and helper.parent == self.session:
            self._about_helper(kind, record, session)
        if not self._first or session != self.session:
            return
        between = seconds_between(self._first, record)
        self.seconds = self.seconds if between is None else between
        if kind in ABOUT_CALLS:
            self._about_call(kind, record, session)
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

    def _about_helper(self, kind: str, record: LogRecord, session: str) -> None:
        if kind in ABOUT_CALLS:
            self._about_call(kind, record, session)
        elif kind == "advice":
            self._advise(record, session)
        elif kind in ("model_request", "model_response", "error"):
            self._event(kind, record)

    def _event(self, kind: str, record: LogRecord) -> None:
        match kind:
            case "model_request":
                self.turns += 1
            case "model_response":
                self.usage += usage_in(record)
            case "advice":
                self._advise(record, self.session)
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
                self.usage += usage_in(record)
                if "retry_seconds" not in record:
                    place, fault = (line(word(record.get(name)), 500) for name in ("where", "fault"))
                    quoted = word(record.get("message"))
                    message = line(message_of(quoted), 500)
                    if self._has_room(self.errors):
                        self.errors.append(
                            ReportedError(location=place, message=message, fault=fault, quoted=line(quoted, 500))
                        )
            case "limit" if self._has_room(self.limits):
                last = line(word(record.get("last_action")))
                self.limits.append(f"{line(word(record.get('limit')))}{f'; last action: {last}' if last else ''}")
            case "ran_unjudged" if self._has_room(self.unjudged):
                self.unjudged.append(line(f"{word(record.get('tool'))} {word(record.get('arguments'))}", 500))
            case "diverged" if self._has_room(self.diverged):
                self.diverged.append({name: _scalar(record.get(name)) for name in DIVERGED})
            case _:
                pass

    def _has_room(self, notes: Sequence[object]) -> bool:
        """Return whether another note can be stored. If not, count it as omitted."""
        is_full = len(notes) >= MOST_NOTES
        self.notes_left_out += is_full
        return not is_full

    def _end(self, record: LogRecord) -> None:
        self.is_ended = True
        self.stop, self.detail = line(text(record, "stop")), line(text(record, "detail"), 2_000)
        self.exit_code = whole_number(record.get("exit_code"))
        logged_counts = record.get("counts")
        if isinstance(logged_counts, dict) and logged_counts != self._own_counts:
            problem = "the counts at the end of the log are not those of its records; told are those of the records"
            self.errors.append(ReportedError(location="log", message=problem, fault="", quoted=problem))

    def _about_call(self, kind: str, record: LogRecord, session: str) -> None:
        if self._joiner.is_full_for(record):
            self.calls_left_out += kind == "call_proposed"
            return
        call = self._joiner.take(record)
        match kind:
            case "call_proposed":
                self._count("calls", session)
            case "decision":
                decision = _counted_name(text(record, "decision"), OF_CALLS)
                self._count(f"decision_{decision}", session)
                self.decisions[decision] = self.decisions.get(decision, 0) + 1
            case "approval_answered":
                self._count(f"answer_{_counted_name(text(record, 'answer'), ANSWERS)}", session)
            case "intent" if session == self.session:  # a helper only reads, or works in a copy
                self.ran_unrecorded += not tool_kind(text(record, "tool")).tells_changes
            case "outcome" if call is not None:
                self._count(f"status_{_counted_name(text(record, 'status'), STATUSES)}", session)
                self._settle(word(record.get("call")), call)
            case _:
                pass

    def _count(self, kind: str, session: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if session == self.session:
            self._own_counts[kind] = self._own_counts.get(kind, 0) + 1

    def _reported(self, call: LoggedCall) -> ReportedCall:
        helper = self.helpers.get(call.session)
        return reported_call(call, self.started.workspace, None if helper is None else helper.number)

    def _settle(self, name: str, call: LoggedCall) -> None:
        is_refused = call.fate is Fate.REFUSED
        if self._kept_counts[is_refused] < MOST_CALLS:  # per kind, so that many calls hide no refusal
            self._kept_counts[is_refused] += 1
            if is_refused:
                self._refused_at[call.session, name] = len(self._calls)
            self._calls.append(self._reported(call))
        else:
            self.refused_left_out += is_refused
            self.calls_left_out += not is_refused
        if call.session == self.session and (path := text(call.outcome, "changed_path")):
            self._change(path, call)

    def _change(self, path: str, call: LoggedCall) -> None:
        before, after = (text(call.outcome, name) or None for name in ("before_sha256", "after_sha256"))
        changed_file = self._changed.get(path)
        if changed_file is not None:
            calls = (*changed_file.calls, _scalar(call_number(call)))[:MOST_CALLS]
            self._changed[path] = replace(changed_file, after_sha256=after, calls=calls)
        elif len(self._changed) < MOST_CALLS:
            calls = (_scalar(call_number(call)),)
            self._changed[path] = ReportedFile(path=path, before_sha256=before, after_sha256=after, calls=calls)
        else:
            self.changed_left_out += 1

    def _advise(self, record: LogRecord, session: str) -> None:
        at = self._refused_at.get((session, word(record.get("call"))))
        if at is None:
            return
        toml, reason = text(record, "toml"), line(text(record, "why"), 500)
        if len(toml) > MOST_TOML:  # half a rule is useless
            toml, reason = "", "a rule is in the log; it is too long to be shown"
        self._calls[at] = replace(self._calls[at], advice_toml=toml, advice_why=reason)


FACT_KINDS = ABOUT_CALLS | frozenset(
    "session_started session_ended model_request model_response error limit advice answer_checked diverged "
    "ran_unjudged".split()
)
"""The kinds of records with reported facts. Other records may be skipped."""
DIVERGED = ("request", "message", "role", "tool", "recorded", "now")
"""The log fields of a divergence."""


def _counted_name(name: str, known_names: Sequence[str]) -> str:
    """Return the name under which a word is counted. Unknown words, which a forged log may have, count as `other`."""
    return name if name in known_names else "other"


def _scalar(value: JsonValue) -> JsonValue:
    return whole_number(value) if isinstance(value, int) and not isinstance(value, bool) else line(word(value), 300)


MOST_SUMMARY = 200
_READ = 4_000
"""Maximum number of characters of a text that are read before it is cut. Escaping never shortens a text."""


class ReportedCall(Record):
    """One call. All texts are cut, on one line and safe to display, except `file`, `touched` and `advice_toml`."""

    number: JsonValue
    """Number of the call in its session. An integer in every log that verifies."""
    helper: int | None
    """Number of the helper that made the call. `None` for the run's own calls."""
    tool: str
    summary: str
    status: str
    """Status of the outcome. `unknown`: started, without a known end. `open`: never started."""
    seconds: float | None
    exit_code: int | None
    note: str
    """Reason why a call was invalid or not run."""
    decision: str
    """The policy's decision: `auto`, `confirm`, `deny`, `block`, `none`. Empty if the log lacks it."""
    by: str
    """Name and place of what decided, as in the log."""
    source: str
    """Kind of what decided: `rule`, `default`, `built_in` ..."""
    rule: str
    file: str
    line: int | None
    layer: str
    reason: str
    part: str
    """The facet that determined the decision."""
    answered_by: str
    """Source of the answer; `nobody` if no user was present. Empty if there was no question."""
    touched: str
    """The one workspace file that the call is about, as a relative path. Empty if there is no single file."""
    advice_toml: str = ""
    """A rule that would allow a refused call. It is a proposal and is never applied automatically."""
    advice_why: str = ""
    """Reason why no rule would allow the call."""

    @property
    def name(self) -> str:
        """Name of the call: its number, after the helper's number if there is one."""
        return f"{self.number}" if self.helper is None else f"helper {self.helper}, {self.number}"

    @property
    def is_refused(self) -> bool:
        """Whether the call was denied or blocked."""
        return self.status in ("denied", "blocked")

    @property
    def why_no_rule(self) -> str:
        """`advice_why` with a shortened path of the policy file."""
        return self.advice_why.replace(self.by, short_place(self.by)) if self.by else self.advice_why


def reported_call(call: LoggedCall, workspace: str, helper: int | None) -> ReportedCall:
    """Return the report on a call. Never raises, whatever the records have in them."""
    decision, outcome = call.decision, call.outcome
    milliseconds = number(outcome, "duration_ms")
    is_told = call.fate in (Fate.INVALID, Fate.NOT_RUN)
    return ReportedCall(
        number=_scalar(call_number(call)),
        helper=helper,
        tool=line(call.tool, 60),
        summary=line(call.summary),
        status=line(text(outcome, "status") or call.fate.value, 20),
        seconds=None if milliseconds is None else milliseconds / 1000,
        exit_code=whole_number(outcome.get("exit_code")),
        note=line(text(outcome, "content"), 300) if is_told else "",
        decision=line(call.decided, 20),
        by=line(call.by, 300),
        source=line(text(decision, "source"), 40),
        rule=line(text(decision, "rule")),
        file=text(decision, "file"),
        line=whole_number(decision.get("line")),
        layer=line(text(decision, "layer"), 40),
        reason=line(text(decision, "reason"), 500),
        part=line(_part(call)),
        answered_by=line(text(call.answered, "by"), 40),
        touched=_touched(call, workspace),
    )


def line(value: str, width: int = MOST_SUMMARY) -> str:
    """Return one line that is safe to display, cut to `width` characters.

    Only the beginning of a very long text is read.
    """
    return visible_line(value, width) if len(value) <= _READ else f"{visible_line(value[:_READ], width)} and more"


def _part(call: LoggedCall) -> str:
    """Return the deciding facet: the first one with the decision and the decider of the whole call."""
    facets = call.decision.get("facets")
    for facet in facets if isinstance(facets, list) else ():
        if isinstance(facet, dict) and all(facet.get(n) == call.decision.get(n) for n in ("decision", "by")):
            return text(facet, "facet")
    return ""


def _touched(call: LoggedCall, workspace: str) -> str:
    """Return the one workspace file that a call is about: a file tool's argument, or the only path written.

    The path is relative to the workspace. Empty if there is no such file.
    """
    if not workspace.startswith("/"):
        return ""
    path = _argument(call)
    if not path:
        effects = call.decision.get("effects")
        written = effects.get("write") if isinstance(effects, dict) else None
        only = written[0] if isinstance(written, list) and len(written) == 1 else None
        path = only if isinstance(only, str) else ""
    if not path:
        return ""
    root = posixpath.normpath(workspace)
    whole_path = posixpath.normpath(posixpath.join(root, path))
    if whole_path == root or not is_within(whole_path, root):
        return ""
    return posixpath.relpath(whole_path, root)


def _argument(call: LoggedCall) -> str:
    """Return the path argument of a file tool's call. Empty for other tools and for an invalid argument."""
    arguments, kind = text(call.proposed, "arguments"), tool_kind(call.tool)
    if not kind.is_of_files:
        return ""
    try:
        arguments_value: JsonValue = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    return kind.subject_of(arguments_value) or ""


class Started(Record):
    """Facts about the start of the session. A field is empty or `None` if the log lacks it."""

    time: str = ""
    """RFC 3339, UTC."""
    harness: str = ""
    model: str = ""
    policy: str = ""
    policy_sha256: str = ""
    workspace: str = ""
    """Absolute path as in the log. Not cut, and not safe to display."""
    confinement: str = ""
    git_head: str = ""
    """Commit of the workspace at the start."""
    dry_run: bool = False
    plan: bool = False
    replay: str = ""
    """Path of the cassette that replaced the model."""


class ReportedFile(Record):
    """A file that file tools changed, with its states before the first and after the last change."""

    path: str
    before_sha256: str | None
    """Digest before. `None` if the file did not exist."""
    after_sha256: str | None
    calls: tuple[JsonValue, ...]


class ReportedError(Record):
    """A logged error that was not just retried."""

    location: str
    message: str
    """Message in the words of the harness or the provider."""
    fault: str
    quoted: str
    """The message with its quotes of a model reply."""


def facts_of_log(path: str) -> RunFacts:
    """Return the facts of the last session in the log at `path`, as far as the log can be read.

    Reading stops at an invalid line, which counts in `odd`. Raises LogError for a file that cannot be read.
    """
    facts, is_started, stopped = RunFacts(), False, list[int]()
    for record in records(path, FACT_KINDS, stopped=stopped.append):
        if record["kind"] == "session_started" and is_started:
            facts = RunFacts()
        is_started = is_started or record["kind"] == "session_started"
        facts.record(record)
    facts.odd += len(stopped)
    return facts
