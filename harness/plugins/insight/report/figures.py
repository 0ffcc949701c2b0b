"""The counts of a report, made in one pass over the logs before the page begins. Keeps counts, not records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from harness.app.pages import value_text
from harness.audit.call_effects import CallEffects, effects_of
from harness.audit.calls import (
    QUICK_SECONDS,
    AuditedLogs,
    CallStanding,
    LoggedCall,
    Who,
    count_in,
    did_fail,
    objects_in,
    rule_of,
    standing_of,
    text,
)
from harness.log.clocks import seconds_between
from harness.log.order import LogRecord
from harness.plugins.insight.questions import questions
from harness.plugins.insight.stats import Cost, QuestionCount
from harness.tool_kinds import tool_kind

WAITS = (QUICK_SECONDS, 2.0, 5.0, 15.0, 60.0, 300.0)
"""Upper bounds of the bins of waiting times, in seconds. The last bin has all longer times."""
MOST_NAMES = 1_000
"""Maximum number of tools, and of rules, counted separately. A forged log may have any number of names."""
MOST_PATHS = 100_000
OTHERS = "(all others)"

_OTHER_KINDS = (
    "session_started", "user_message", "model_request", "model_response", "places_changed", "error", "limit", "restored",
    "session_ended", "ran_unjudged",
)  # fmt: skip
_WIDTH = 300
"""Maximum number of characters kept of a text for a table."""
MAX_TALK = 2_000
"""Maximum number of characters kept of a prompt or of the model's answer."""


class SessionFigures:
    """Counts of one session."""

    def __init__(self, log: str, session: str, started: LogRecord, place: int) -> None:
        self.log = log
        self.name = session
        self.place = place
        """Number of the session on the page, from 1."""
        self.began = {name: started[name] for name in ("time", "mono_ns") if name in started}
        self.start_fields = {
            name: value_text(started.get(name))[:_WIDTH] for name in ("mode", "model", "harness", "workspace", "policy")
        }
        self.account = _account(started)
        self.policy_sha256 = value_text(started.get("policy_sha256"))[:_WIDTH]
        self.confinement = value_text(started.get("confinement"))[:_WIDTH]
        self.helper_of = value_text(started.get("parent"))[:_WIDTH]
        """Session that started this one, if this is a helper's session. Empty otherwise."""
        self.helper = count_in(started, "helper")
        """Number of the helper in the session that started it."""
        self.input_tokens = self.output_tokens = 0
        self.seconds = 0.0
        self.standings: Counter[CallStanding] = Counter()
        """Numbers of calls, by standing."""
        self.cost = Cost()
        self.stop = ""
        self.prompts = 0
        self.prompt = ""
        """The beginning of the first prompt."""
        self.answer = ""
        """The beginning of the model's last text."""

    @property
    def calls(self) -> int:
        """Number of calls of the session."""
        return sum(self.standings.values())

    @property
    def refused(self) -> int:
        """Number of refused and blocked calls."""
        return self.standings[CallStanding.REFUSED] + self.standings[CallStanding.BLOCKED]

    def reach(self, record: LogRecord) -> None:
        """Extend the session's duration to the time of `record`."""
        self.seconds = max(self.seconds, seconds_between(self.began, record) or 0.0)


class ReadPath:
    """A file or folder that calls read."""

    def __init__(self, first: CallEffects) -> None:
        self.first = first.call
        self.calls = 0
        self.is_outside = False


class Figures:
    """All counts of a report page."""

    def __init__(self) -> None:
        self.sessions: dict[tuple[str, str], SessionFigures] = {}
        self.last_time = ""
        self.standings: Counter[CallStanding] = Counter()
        self.by_tool: dict[str, Counter[CallStanding]] = {}
        self.by_rule: dict[str, Counter[CallStanding]] = {}
        self.waits = [0] * (len(WAITS) + 1)
        self.answers: Counter[tuple[str, str]] = Counter()
        """Numbers of answers, by source and answer."""
        self.human_yes = 0
        self.unreadable_waits = 0
        self.questions = QuestionCount()
        self.failed = 0
        self.changes = 0
        self.paths: set[int] = set()
        self.outside = 0
        """Number of calls that read or could write outside the workspace."""
        self.network = 0
        """Number of calls that could reach the network."""
        self.commands = 0
        """Number of calls that could write but whose writes are not in the log."""
        self.read: dict[str, ReadPath] = {}
        self.reads_unknown = 0
        """Number of calls whose reads are unknown, wholly or in part."""
        self.cost = Cost()
        self.kinds: Counter[str] = Counter()
        self.connections = 0
        """Number of hosts that commands reached or tried to reach. A host counts once per call."""
        self.pictures = 0
        """Number of pictures for the model, in prompts and in results."""
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0

    @property
    def calls(self) -> int:
        """Number of calls."""
        return sum(self.standings.values())

    @property
    def seconds(self) -> float:
        """Total duration of all sessions, in seconds."""
        return sum(session.seconds for session in self.sessions.values())

    def take_call(self, call: LoggedCall) -> None:
        """Count a call."""
        standing = standing_of(call)
        self.standings[standing] += 1
        _counter(self.by_tool, call.tool)[standing] += 1
        if call.decided not in ("", "none"):
            _counter(self.by_rule, rule_of(call) or "(the log does not say)")[standing] += 1
        self.failed += did_fail(call)
        if call.asked or call.answered:
            self._take_question(call)
        if text(call.outcome, "changed_path"):
            self.changes += 1
            if len(self.paths) < MOST_PATHS:
                self.paths.add(hash(text(call.outcome, "changed_path")))
        self.connections += len(objects_in(call.outcome.get("connections")))
        self.pictures += len(objects_in(call.outcome.get("pictures")))
        if (reach := effects_of(call)) is not None:
            self._take_reach(reach)
        session = self._session(call.log, call.session, call.started or call.proposed)
        session.standings[standing] += 1
        for record in (call.proposed, call.decision, call.answered, call.intent, call.outcome):
            if record:
                session.reach(record)
                self._reach(record)

    def take_record(self, log: str, record: LogRecord) -> None:
        """Count a record that is not about a call."""
        kind = str(record["kind"])
        self.kinds[kind] += 1
        session = self._session(log, str(record["session"]), record)
        session.reach(record)
        self._reach(record)
        if kind == "session_ended":
            session.stop = value_text(record.get("stop"))[:_WIDTH] or "ended"
        elif kind == "user_message":
            session.prompts += 1
            self.pictures += len(objects_in(record.get("pictures")))
            session.prompt = session.prompt or value_text(record.get("text"))[:MAX_TALK]
        if kind == "model_response" and "purpose" not in record:
            session.answer = value_text(record.get("text"))[:MAX_TALK] or session.answer
        if kind in ("model_response", "error"):
            self.cost.take(record)
            session.cost.take(record)
            session.input_tokens += count_in(record, "input_tokens")
            session.output_tokens += count_in(record, "output_tokens")
            self.input_tokens += count_in(record, "input_tokens")
            self.output_tokens += count_in(record, "output_tokens")
            self.cached_tokens += count_in(record, "cached_tokens")

    def _session(self, log: str, session: str, first: LogRecord) -> SessionFigures:
        key = log, session
        if key not in self.sessions:
            self.sessions[key] = SessionFigures(log, session, first, len(self.sessions) + 1)
        return self.sessions[key]

    def _reach(self, record: LogRecord) -> None:
        self.last_time = max(self.last_time, value_text(record.get("time"))[:40])

    def _take_reach(self, reach: CallEffects) -> None:
        outside = reach.outside
        if outside is not None:
            self.outside += bool(outside.reads or outside.writes or outside.may_write or outside.is_unheld)
            self.network += bool(outside.network or outside.hosts)
        self.commands += is_command(reach)
        self.reads_unknown += not reach.reads_known
        for path in reach.reads:
            is_told = path in self.read or len(self.read) < MOST_PATHS
            read_path = self.read.setdefault(path if is_told else OTHERS, ReadPath(reach))
            read_path.calls += 1
            read_path.is_outside = read_path.is_outside or (outside is not None and path in outside.reads)

    def _take_question(self, call: LoggedCall) -> None:
        if not call.answered:
            self.answers["no answer in the log", ""] += 1
            return
        answer, by = value_text(call.answered.get("answer"))[:40], value_text(call.answered.get("by"))[:40]
        key = answer, by
        self.answers[key if key in self.answers or len(self.answers) < MOST_NAMES else (OTHERS, "")] += 1
        if call.answered_by is not Who.PERSON:
            return
        self.human_yes += answer == "yes"
        if call.waited is None:
            self.unreadable_waits += 1
        else:
            self.waits[wait_bin(call.waited)] += 1


def is_command(reach: CallEffects) -> bool:
    """Return whether a call could write but its writes are not in the log."""
    return reach.is_writer and not tool_kind(reach.call.tool).is_of_files


def wait_bin(seconds: float) -> int:
    """Return the index of the bin for a waiting time."""
    return next((place for place, bound in enumerate(WAITS) if seconds < bound), len(WAITS))


def figures_of(source: AuditedLogs) -> Figures:
    """Count everything. Raises LogError."""
    figures = Figures()
    for log, record in source.records(_OTHER_KINDS):
        figures.take_record(log, record)
    for question in questions(_count(source.calls(), figures)):
        figures.questions.take(question.call, in_burst=question.in_burst)
    return figures


def _count(calls: Iterable[LoggedCall], figures: Figures) -> Iterator[LoggedCall]:
    for call in calls:
        figures.take_call(call)
        yield call


def _counter(counters: dict[str, Counter[CallStanding]], name: str) -> Counter[CallStanding]:
    """Return the counter of a name. Names after the first MOST_NAMES share one counter."""
    name = name[:_WIDTH]
    if name not in counters and len(counters) >= MOST_NAMES:
        name = OTHERS
    return counters.setdefault(name, Counter())


def _account(started: LogRecord) -> str:
    """Return the account and the machine, as far as the log names them."""
    user, host = value_text(started.get("user"))[:100], value_text(started.get("host"))[:100]
    return f"{user}@{host}" if user and host else user or host
