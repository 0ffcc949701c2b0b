"""One session of another agent: its log, and the state that is shared by the many short processes that judge its calls.

INVARIANT: the log is authoritative. The state file only saves time; if it does not match the log, for example after a
crash, the log is read again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.errors import LogError
from harness.gate.approval import Approval
from harness.gate.records import CallRecords, GateState, Proposal
from harness.grant_pattern import GrantScope, pattern_fields, pattern_from
from harness.log.action_log import ActionLog
from harness.log.order import Ledger, LogRecord
from harness.log.reader import read_log
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.plugins.agents.open_call import AgentAnswer, OpenCall, end_of, invalidate
from harness.plugins.agents.seen_hooks import SeenHooks
from harness.record import field_names, replace
from harness.redaction.redactor import Redactor
from harness.safe_files import is_locked_within, make_private, open_private, write_whole

if TYPE_CHECKING:
    from harness.plugins.agents.handed_over import HandedOver
    from harness.policy.session_grants import Grant

VERSION = 1
_STATE, _LOCK = "session.json", "lock"
_NEW_STATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_OPEN = 500
"""Maximum number of stored calls without an outcome. Older ones are dropped, and their effect stays unknown."""


NO_ANSWER = "Not run, as far as is known: the agent asked the person, and told of no answer."
NEVER_BEGUN = "Nothing was done: the agent never began it."
REPLACED = "It did not run: the agent ran something else in its place."
STOPPED = (
    "The agent ran something that harness did not allow (`harness audit show` has it). Another hook or a setting may have "
    "let it run (`harness hook status` lists them). Nothing more runs in this session; a person may begin a new one, or "
    'configure `agents.unjudged = "warn"`.'
)
CUT_SHORT = "whoever judged it was cut short."


class AgentSession:
    """One session, locked for this process within its `with` block. Other processes wait; see `is_locked_within`."""

    def __init__(
        self,
        folder: str,
        redactor: Redactor,
        *,
        wait_seconds: float,
        clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`folder` is the session's folder, which is created if missing.

        `wait_seconds` limits the wait for other processes, of which one may be asking a user. `clock_stopped` stops the
        clock of our own work during that wait.
        """
        self._clock_stopped = clock_stopped
        self.folder = folder
        self._redactor = redactor
        self._wait = wait_seconds
        self._lock = -1
        self._log: ActionLog | None = None
        self.workspace = ""
        self.policy_sha256 = ""
        self.has_namespaces = False
        """Whether this machine gave commands namespaces when that was tried. `harness exec` tries it again."""
        self.has_waited = False
        """Whether the last question of this session waited in vain for someone to answer with `harness approve`."""
        self.latch = ""
        """Reason to refuse every further call of this session. Empty before a hard block."""
        self.state = GateState()
        self.grants: tuple[Grant, ...] = ()
        self.open: list[OpenCall] = []
        self.hooks = SeenHooks()
        self.answers: dict[str, AgentAnswer] = {}
        """Our last answers, by the agent's name of the call, or else by the digest of what may run."""

    @property
    def is_begun(self) -> bool:
        """Whether a session is open in the log."""
        return self._log is not None and bool(self._log.session) and self._open_in_log

    @property
    def log(self) -> ActionLog:
        """The open log. Raises LogError before `begin`."""
        if self._log is None:
            raise LogError(f"no log was begun for the session in {self.folder}")
        return self._log

    def __enter__(self) -> Self:
        """Lock and read the session. Raises LogError if another process keeps the lock, or if the state is invalid."""
        make_private(self.folder)
        self._lock = open_private(os.path.join(self.folder, _LOCK), os.O_RDWR | os.O_CREAT)
        try:
            with self._clock_stopped():
                is_locked = is_locked_within(self._lock, self._wait)
            if not is_locked:
                raise LogError("another call of this session is still being decided")  # noqa: TRY301 - the lock is released below
            self._read()
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the state for the next process, and unlock. After an error the old state stays; the log is read again."""
        try:
            if error is None and self._log is not None:
                self._write()
        finally:
            self._let_go()

    def begin(self, path: str, workspace: str, policy_sha256: str, fields: Mapping[str, JsonValue]) -> None:
        """Begin a session in the log at `path`, or in the log that is already open. Raises LogError."""
        if self._log is None:
            self._log = ActionLog.open(path, redactor=self._redactor, wait_seconds=self._wait)
        self._log.begin_session()
        self._log.append("session_started", fields, sync=True)
        self._open_in_log = True
        self.workspace, self.policy_sha256 = workspace, policy_sha256
        self.state, self.grants, self.open, self.answers = GateState(), (), [], {}
        self.hooks = SeenHooks()
        self._write()  # before any judgement: after a crash, the next process finds the log, and a block in it

    def end(self, stop: str, detail: str = "") -> None:
        """Record the end of the session and its reason, and an outcome for each open call that surely did not run.

        Raises LogError.
        """
        for call in self.open:
            unused = bool(call.ticket) and invalidate(call.ticket)
            if self.log.last_step(call.number) != "intent":  # the agent asked, and reports no refusal
                self.log.append("outcome", end_of(call.proposal, "not_run", NO_ANSWER))
            elif unused:
                self.log.append("outcome", end_of(call.proposal, "failed", NEVER_BEGUN))
        counts: JsonValue = dict(self.log.counts)
        self.log.append("session_ended", {"stop": stop, "detail": detail, "counts": counts}, sync=True)
        self._open_in_log = False
        self.open = []

    def remember(self, call: OpenCall) -> None:
        """Add a call to the open calls."""
        self.open = [*self.open[-MOST_OPEN + 1 :], call]

    def note_answer(self, key: str, number: int, allowed: str) -> None:
        """Remember our answer to a call. The fields are those of AgentAnswer."""
        self.answers.pop(key, None)
        self.answers[key] = AgentAnswer(number=number, allowed=allowed)
        if len(self.answers) > MOST_OPEN:
            del self.answers[next(iter(self.answers))]

    def replaced(self, call: OpenCall, reason: str = REPLACED) -> None:
        """Record that an open call did not run, for a reason. Raises LogError.

        Nothing is recorded for a command that has begun with its ticket, whose end harness sees itself.
        """
        if not call.ticket or invalidate(call.ticket):
            self.open.remove(call)
            status = "failed" if self.log.last_step(call.number) == "intent" else "not_run"
            self.log.append("outcome", end_of(call.proposal, status, reason))

    def take_back(self, calls: Sequence[HandedOver], reason: str) -> None:
        """Record that calls which were ready to be carried out will not run. Raises LogError."""
        for call in calls:
            status = "not_run" if call.asks else "failed"  # after an intent, `not_run` is not allowed
            self.log.append("outcome", end_of(call.proposal, status, f"Nothing was done: {reason}."))

    def begins_at(self, path: str, sha256: str) -> bool:
        """Record the new digest of a changed file for the open calls on it. Return whether there are any.

        Those calls were judged before another call changed the file.
        """
        later = [call for call in self.open if call.path == path]
        self.open = [replace(call, before_sha256=sha256) if call in later else call for call in self.open]
        return bool(later)

    def open_call(self, number: int) -> OpenCall | None:
        """Return the open call with this number, or `None`."""
        return next((call for call in self.open if call.number == number), None)

    def record_yes(self, call: OpenCall) -> OpenCall:
        """Record the approval of the agent, and the intent. Return the updated call.

        It is inferred from the run of the call, so the recorded waiting time is an upper bound. A person may have given it,
        or another hook or a setting of the agent: it counts as the client's.
        """
        records, step = CallRecords(self.log), self.log.last_step(call.number)
        agent = os.path.basename(self.folder).partition("-")[0]
        if step == "approval_asked":  # else an interrupted process has recorded it already
            waited = max(0, time.monotonic_ns() - call.asked_ns) / 1e9
            records.record_approval(call.proposal, Approval(answer=Answer.YES, by="client", who=agent), waited, 0)
        if step != "intent":
            records.intended(call.intent or {})
        approved = replace(call, intent=None)
        self.open = [approved if other is call else other for other in self.open]
        return approved

    # -- the state file

    _open_in_log = False

    def _read(self) -> None:
        try:
            with open(os.path.join(self.folder, _STATE), "rb") as file:
                stored = json.loads(file.read())
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:
            raise LogError(f"{os.path.join(self.folder, _STATE)}: cannot be read: {error}") from None
        try:
            self._take_up(stored)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LogError(f"{os.path.join(self.folder, _STATE)}: makes no sense: {error!r}") from None

    def _take_up(self, stored: Mapping[str, JsonValue]) -> None:
        if stored["v"] != VERSION:
            raise ValueError(f"version {stored['v']}")
        path = str(stored["log"])
        if not os.path.exists(path):
            raise self._lost(path)
        self._log = ActionLog.open(path, redactor=self._redactor, wait_seconds=self._wait)
        self.workspace, self.policy_sha256 = str(stored["workspace"]), str(stored["policy_sha256"])
        self.latch, self.has_namespaces = str(stored["latch"]), stored.get("has_namespaces") is True
        self.has_waited = stored.get("has_waited") is True
        unseen = tuple((str(unseen_path), str(diff)) for unseen_path, diff in _pairs(stored["unseen"]))
        self.state = GateState(proposed=_count(stored["proposed"]), unseen=unseen)
        self.grants = tuple(map(_grant, map(_fields, _list(stored["grants"]))))
        self.open = [OpenCall(**_fields(entry)) for entry in _list(stored["open"])]  # type: ignore[arg-type]  # as written
        self.hooks = SeenHooks.restored(_fields(stored["hooks"])) if "hooks" in stored else SeenHooks()
        answers = {key: _list(entry) for key, entry in _fields(stored.get("answers", {})).items()}
        self.answers = {
            key: AgentAnswer(number=_count(entry[0]), allowed=str(entry[1])) for key, entry in answers.items()
        }
        session = str(stored["session"])
        if (stored["records"], stored["head"]) == (self._log.count, self._log.head):
            if session:
                self._log.resume_session(session, Ledger.restored(session, _fields(stored["ledger"])))
                self._open_in_log = True
            return
        self._read_log(session, _count(stored["records"]), str(stored["head"]))

    def _read_log(self, session: str, known_records: int, head: str) -> None:
        """Resume a session from its log, which does not match the state file.

        The state file was written at `known_records` records, of which the last has the hash `head`. Raises LogError if
        the log lacks these records: a block may be among the missing ones.
        """
        ledger, highest, records_read = Ledger(), self.state.proposed, 0
        proposals: list[Proposal] = []
        for record in read_log(self.log.path):
            if records_read == known_records and record["prev"] != head:
                raise self._lost(self.log.path)
            records_read += 1
            ledger.enter(record)
            if record["session"] == session:
                number = record.get("call")
                highest = max(highest, number) if isinstance(number, int) else highest
                if record["kind"] == "call_proposed":
                    proposals.append(_proposal_of(record))
                if record["kind"] == "ran_unjudged" and record.get("stops") is True:
                    self.latch = STOPPED
                elif record.get("status") == "blocked" and record["kind"] == "outcome":
                    self.latch = str(record.get("content"))
        if records_read <= known_records:
            raise self._lost(self.log.path)
        self.state = GateState(proposed=highest, unseen=self.state.unseen)
        self._open_in_log = session in ledger.open_sessions
        self.open = [call for call in self.open if ledger.last_step(session, call.number) is not None]
        if self._open_in_log:
            self.log.resume_session(session, ledger)
            self._end_cut_short(proposals)

    def _end_cut_short(self, proposals: Sequence[Proposal]) -> None:
        """Record the end of calls whose judging process was interrupted. None of them was allowed to run."""
        records, open_numbers = CallRecords(self.log), {call.number for call in self.open}
        for proposal in proposals:
            step = self.log.last_step(proposal.number)
            if proposal.number in open_numbers or step in (
                None,
                "intent",
            ):  # it is unknown whether a call with an intent ran
                continue
            if step == "call_proposed":
                records.undecided(proposal, CUT_SHORT)
            result = ToolResult(call_id=proposal.call.id, status=ResultStatus.NOT_RUN, content=f"Not run: {CUT_SHORT}")
            records.record_end(proposal, result, ran=False)

    def _lost(self, path: str) -> LogError:
        return LogError(
            f"{path}: records of this session are gone from its log; a person who knows why begins it anew by removing "
            f"{self.folder}"
        )

    def _write(self) -> None:
        log = self.log
        fields: dict[str, JsonValue] = {
            "v": VERSION,
            "log": log.path,
            "session": log.session if self._open_in_log else "",
            "records": log.count,
            "head": log.head,
            "ledger": log.saved_session() if self._open_in_log else {},
            "workspace": self.workspace,
            "policy_sha256": self.policy_sha256,
            "latch": self.latch,
            "has_namespaces": self.has_namespaces,
            "has_waited": self.has_waited,
            "proposed": self.state.proposed,
            "unseen": [list(entry) for entry in self.state.unseen],
            "grants": [*filter(None, map(_kept_grant, self.grants))],
            "open": [{name: getattr(entry, name) for name in field_names(OpenCall)} for entry in self.open],
            "hooks": self.hooks.fields,
            "answers": {key: [answer.number, answer.allowed] for key, answer in self.answers.items()},
        }
        path = os.path.join(self.folder, _STATE)
        new_path = f"{path}.new"  # under the lock, so no other process writes it
        try:
            descriptor = os.open(new_path, _NEW_STATE, 0o600)
            try:
                write_whole(descriptor, json.dumps(fields).encode())
            finally:
                os.close(descriptor)
            os.rename(new_path, path)  # not synced: after a crash of the machine, the log is read again
        except OSError as error:
            raise LogError(f"{path}: cannot be written: {error.strerror}") from None

    def _let_go(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def session_folder(folder: str, agent: str, session: str) -> str:
    """Return the folder of one session. Its name has a digest, since the agent's name for the session may be any text."""
    return os.path.join(folder, f"{agent}-{digest_of(session.encode())[:16]}")


# Imported only if there are grants: PostToolUse and `harness exec` do not need the policy modules.


def _grant(stored: Mapping[str, JsonValue]) -> Grant:
    from harness.policy.session_grants import session_grant

    return session_grant(str(stored["id"]), pattern_from(_fields(stored["pattern"])), _count(stored["call"]))


def _kept_grant(grant: Grant) -> dict[str, JsonValue] | None:
    """Return the fields to store for a grant of the session. `None` for a permanent grant, which is stored elsewhere."""
    if grant.scope is not GrantScope.SESSION:
        return None
    return {"id": grant.id, "call": grant.origin.line, "pattern": pattern_fields(grant.pattern)}


def _fields(value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _list(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def _pairs(value: JsonValue) -> list[list[JsonValue]]:
    return [_list(item) for item in _list(value)]


def _count(value: JsonValue) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {type(value).__name__}")
    return value


def _proposal_of(record: LogRecord) -> Proposal:
    call = ToolCall(id=str(record["id"]), name=str(record["tool"]), arguments="")
    return Proposal(number=_count(record["call"]), call=call, arguments_sha256=str(record["arguments_sha256"]))
