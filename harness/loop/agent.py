"""The loop: ask the model, put every call through the gate, answer every call, until a reply holds no calls.

INVARIANT: after a run, however it ended, each call in the history has exactly one result with its id, in call order.
"""

from __future__ import annotations

import json
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from harness.actions import Action, JsonValue
from harness.declared_types import check_arguments
from harness.errors import CutReply, GateError, LogError, ModelError, ModelFault, SessionRefusedError, WorkspaceError
from harness.gate.approval import Approval, Approver, stoppable
from harness.gate.call_checks import NO_SESSION_CHECKS, SessionChecks
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.pending_call import CallEnd, PendingCall
from harness.gate.records import policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.session_records import record_begin, record_end, session_facts
from harness.gate.tool import Tool
from harness.history import History
from harness.interrupt import Interrupt, Interrupted
from harness.limits import Limits, strictest
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.vocabulary import Answer
from harness.loop.checked_sessions import CheckedSessions
from harness.loop.compaction import due, summarize
from harness.loop.model_requests import ModelRequests
from harness.loop.observers import Observers
from harness.loop.offered_tools import OfferedTools, OutsideTools, no_more_tools
from harness.loop.reply_calls import ENDED_HERE, ReplyCalls, is_cut, no_answer, unusable
from harness.loop.run import Background, Interjection, NoBackground, Run, Session, no_interjection
from harness.messages import Attachment, Message, ModelResponse, RunResult, StopReason, ToolCall, ToolResult, Usage
from harness.model import Model, Prices, ToolSpec
from harness.policy.destruction import destroys
from harness.policy.policy import Policy
from harness.policy.verdict import Source, Verdict
from harness.record import replace

DEFAULT_SYSTEM = """\
You are a careful software engineer working in the user's repository through tools. Look before you change: read the \
files concerned, make the smallest change that does the job, and check it (run the tests) before you say it is done.
Every call is decided by a policy before it runs. A refusal says who refused and why: do not repeat the call as it was, and \
do not get at what was refused another way; take the form that the refusal names, choose another course, or say what you \
need and stop.
When you are done, answer in a few sentences, without a tool call."""
"""Instructions for every tool set. Advice on one tool belongs in its description."""


TYPED = "typed at the prompt"
"""`words` of the log's approval record for a call that the user typed, when no prompt was shown."""
UNEXPECTED = "an unexpected exception passed through"
_IS_ASYNC: ContextVar[bool] = ContextVar("is_async", default=False)
"""Whether this thread is that of a `run_async`."""


class Agent:
    """A model, tools, and the gate between them. Policy, approver and log have no defaults: nothing runs ungated."""

    def __init__(  # noqa: PLR0913 - each is named where it is passed
        self,
        *,
        model: Model,
        tools: Sequence[Tool],
        policy: Policy,
        approver: Approver,
        log: ActionLog,
        limits: Limits | None = None,
        prices: Prices | None = None,
        context_tokens: int | None = None,
        system: str = DEFAULT_SYSTEM,
        facts: Mapping[str, JsonValue] | None = None,
        on_text: Callable[[str], None] | None = None,
        observers: Observers | None = None,
        interrupt: Interrupt | None = None,
        together: int = 1,
        done_marker: str | None = None,
        check_answer: Callable[[str, float | None], str] | None = None,
        more_tools: Callable[[], OutsideTools | None] = no_more_tools,
        checks: SessionChecks = NO_SESSION_CHECKS,
        options: GateOptions = GateOptions(),  # noqa: B008 - it never changes
        background: Background = NoBackground(),  # noqa: B008 - likewise
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an agent.

        - `limits` tighten those of the policy.
        - `prices` are those of the model.
        - `context_tokens`: the model's context length. Near it, older messages are summarized. `None` (unknown): they are
          summarized only after the provider refuses a request as too long.
        - `facts`: fields added to the log's first record. Its `workspace` is by default the folder of the tools.
        - `on_text` receives the model's text as it arrives; the run waits for it. `observers` receive all events on
          threads of their own.
        - `together`: maximum number of reading calls of one reply that run at once.
        - `done_marker`: a command that succeeds and prints this as its first line ends the run.
        - `check_answer` takes an answer and the run's remaining seconds (`None`: no limit). It returns the problem with the
          answer, or an empty string. The model gets the first problem as a message; a second unfit answer ends the run.
        - `more_tools` is called before each request. It returns the tools from outside if they changed since the last
          call, otherwise `None`.
        - `checks`: the user's own programs (hooks). They can refuse or ask about a call, never allow one.
        - `options`: options of the gate.
        - `background`: work that goes on between calls. The model gets its news with the next request.
        - `monotonic`: a clock in seconds.

        Raises TypeError for a part of a wrong type, and ValueError if there are no tools, if two share a name, or if
        there is a limit on the cost and no price.
        """
        check_arguments(Agent.__init__, locals())
        self.approver = approver
        self.log = log
        self.own_limits = limits or Limits()
        """The caller's limits, which tighten those of the policy."""
        self.context_tokens = context_tokens
        """The model's context length; may be changed between requests, with the model."""
        self.system = system
        self.facts = facts or {}
        self.together = together
        self.checks = checks
        self.options = options
        self._background = background
        self.monotonic = monotonic
        self._on_text = on_text
        self._done_marker = done_marker
        self._tools = OfferedTools(tools, more_tools)
        self.interrupt = interrupt or Interrupt()
        """Handle through which the user stops the agent. Code of a program calls `stop`."""
        self._is_stopped = False
        self._observers = observers or Observers()
        self._requests = ModelRequests(
            model, prices, interrupt=self.interrupt, on_text=self._tell_text, monotonic=monotonic
        )
        self.limits, registry = self._limited(policy)
        self.gate = Gate(
            policy=policy,
            approver=stoppable(approver, self.interrupt, when=_IS_ASYNC.get),
            log=log,
            tools=registry,
            interrupt=self.interrupt,
            checks=checks.calls,
            options=options,
            monotonic=monotonic,
        )
        self._checked = CheckedSessions(checks, check_answer, self.gate, self.interrupt)
        self._sessions: set[str] = set()
        self._turn = allocate_lock()
        """Held by a run, since an agent has one at a time."""
        self.run_now: Run | None = None
        """The current run, or the last one if none is active. `None` before the first."""
        if observers is not None:
            log.observers.append(self._tell_record)

    @property
    def model(self) -> Model:
        """The present model."""
        return self._requests.model

    @property
    def prices(self) -> Prices | None:
        """Prices of the present model."""
        return self._requests.prices

    @property
    def registry(self) -> ToolRegistry:
        """The current tools, bound to the limits in force."""
        return self.gate.tools

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """Descriptions for the model: all tools except those that the policy always refuses."""
        return self.registry.offered(self.gate.policy)

    def _limited(self, policy: Policy) -> tuple[Limits, ToolRegistry]:
        """Return the limits of `policy` and of the caller, and the tools bound to them. Raises ValueError."""
        limits = strictest([policy.limits, self.own_limits]).filled()
        _check_prices(limits, self._requests.prices)
        # Bound here, so that no caller can forget to pass a policy's limits to the tools.
        return limits, self._tools.under(limits)

    def take_tools(self, session: Session) -> None:
        """Offer the current tools from outside, and record a change of them. Raises LogError.

        Must not be called while a tool call of a reply is still waiting to run.
        """
        changed = self._tools.changed(self.registry, self.limits)
        if changed is None:
            return
        self.log.session = session.identity
        self.log.append("tools_changed", changed[1], sync=True)
        self.gate.tools = changed[0]

    def take_news(self, session: Session) -> None:
        """Record what has happened in the background, and leave notes on it for the model. Raises LogError."""
        for news in self._background.news():
            self.log.session = session.identity
            self.log.append(news.kind, news.fields)
            if news.note:
                session.notes.append(self.log.redactor.redact(news.note))

    def end_background(self, session: Session) -> None:
        """End the work in the background, and record that. Raises LogError."""
        self._background.close()
        self.take_news(session)

    def start(self, *, carried: Sequence[Message] = (), origin: Mapping[str, JsonValue] | None = None) -> Session:
        """Begin a session and record it.

        `carried` is a complete conversation to continue, without its system message (see transcript.rebuilt). `origin`
        describes its source: session, log, records, head, and `how` (resumed or forked).
        Raises, before anything is recorded, ValueError for an invalid conversation, RuntimeError if the agent is running,
        and LogError if the log has an open session of another agent. Raises also LogError and SessionRefusedError.
        """
        with self._alone():
            return self._start(carried, origin)

    def _start(self, carried: Sequence[Message], origin: Mapping[str, JsonValue] | None) -> Session:
        if carried:
            History(self.system).splice(0, 0, carried)
        described: dict[str, JsonValue] = {
            **session_facts(self.gate, self.facts),
            "model": self.model.name,
        }
        begun_from: dict[str, JsonValue] = {} if origin is None else {"origin": dict(origin)}
        fields = {**described, **begun_from, "system": self.system}
        identity = record_begin(self.log, self.gate, fields, self._sessions)
        session = Session(self.system, identity)
        refusal = self._checked.begin(session, described)
        if refusal:
            self.end(session, RunResult(stop=StopReason.BLOCKED, text="", detail=refusal))
            raise SessionRefusedError(refusal)
        if carried:
            session.change(self.log, str((origin or {}).get("how") or "resumed"), 0, 0, carried)
        return session

    def end(
        self,
        session: Session,
        result: RunResult | None = None,
        *,
        exit_code: int | None = None,
        has_successor: bool = False,
    ) -> None:
        """Record the end of the session, and before it an end for every call without one. Raises LogError.

        `exit_code` is the exit code of the program that ends with it, or `None`. With `has_successor`, another session goes
        on with what runs in the background.
        """
        session.ended = True
        self.log.session = session.identity
        self.gate.end_open_calls(ENDED_HERE)
        if not has_successor:
            self.end_background(session)
        stop = result.stop if result else StopReason.COMPLETED
        self._checked.end(session, stop)
        used: dict[str, JsonValue] = {
            "input_tokens": session.usage.input_tokens,
            "output_tokens": session.usage.output_tokens,
            **({} if exit_code is None else {"exit_code": exit_code}),
        }
        record_end(self.log, stop, result.detail if result else "", used)

    def change_history(
        self, session: Session, reason: str, start: int, stop: int, messages: Sequence[Message] = ()
    ) -> None:
        """Replace a range of the conversation (counted without the system message) with `messages`, and record that.

        `reason` is `cleared`, `undone` or another word for the log. Raises LogError, and ValueError for a range that
        would separate a call from its result.
        """
        self.log.session = session.identity
        self.gate.end_open_calls(ENDED_HERE)  # left by a run that failed; they belong to the old conversation
        session.change(self.log, reason, start, stop, messages)

    def change_policy(
        self, session: Session, policy: Policy, reason: str, *, asked: Mapping[str, JsonValue] | None = None
    ) -> None:
        """Use `policy` from now on, and record it with its files. Grants stay, but do not lift refusals by default.

        `reason` is a word for the log; `asked` describes the question about the change, if there was one: question, answer,
        by, words, seconds. Raises LogError, and ValueError for a limit on the cost without a known price; then nothing is
        changed.
        """
        self.log.session = session.identity
        limits, registry = self._limited(policy)
        question_fields: dict[str, JsonValue] = {} if asked is None else {"asked": dict(asked)}
        self.gate.end_open_calls(ENDED_HERE)
        self.log.append("policy_changed", {"why": reason, **policy_fields(policy), **question_fields}, sync=True)
        self.limits = limits
        self.gate.change_policy(policy, registry)

    def change_model(
        self, session: Session, model: Model, fields: Mapping[str, JsonValue], prices: Prices | None = None
    ) -> None:
        """Use `model` from now on, with its `prices`, and record it with `fields` (api, server).

        Raises LogError, and ValueError if there is a limit on the cost and no price; then nothing is changed.
        """
        _check_prices(self.limits, prices)
        self.log.session = session.identity
        self.log.append("model_changed", {"model": model.name, **fields}, sync=True)
        self._requests.model, self._requests.prices = model, prices
        session.last_usage = Usage()  # another model counts tokens differently and has another context length

    def do(
        self,
        session: Session,
        tool: str,
        arguments: Mapping[str, JsonValue],
        *,
        approver: Approver | None = None,
    ) -> ToolResult:
        """Run a tool call that the user typed. It passes the same gate and log, but stays outside of the conversation.

        Calls that the policy denies or blocks are refused. If the policy asks, having typed the call counts as approval,
        except for irreversible calls and calls that a hook asks about: those go to the agent's approver. If `approver`
        is passed, it answers every question instead.
        Raises GateError, LogError, WorkspaceError, and ValueError for a session that was ended.
        """
        if session.ended:
            raise ValueError("the session was ended; start another one")
        self.log.session = session.identity
        call = ToolCall(id="", name=tool, arguments=json.dumps(dict(arguments), ensure_ascii=False))
        pending = self.gate.propose(call, by_person=True)
        try:
            return self.gate.call(pending, approver=approver or self._typed).result
        except Interrupted:
            return self.gate.skip(pending, "the person interrupted")

    def _typed(self, action: Action, verdict: Verdict) -> Approval:
        """Approve a call because the user typed it. Ask the approver about irreversible calls and about hooks' questions."""
        if destroys(action) or any(part.source is Source.HOOK for part in verdict.facets):
            return self.approver(action, verdict)
        return Approval(answer=Answer.YES, by="person", words=TYPED)

    def compact(self, session: Session) -> str:
        """Let the model summarize the whole conversation, whatever its length. The log keeps the original messages.

        Returns the reason for a failure, or an empty string. Raises LogError, and ValueError for a session that was ended.
        """
        if session.ended:
            raise ValueError("the session was ended; start another one")
        self.log.session = session.identity
        try:
            return self._summarize(self._new_run(session), keep_nothing=True)
        except KeyboardInterrupt:
            return "interrupted while the model was summarizing"
        except ModelError as error:
            return str(error)

    def run(
        self,
        prompt: str,
        session: Session | None = None,
        *,
        carried: Sequence[Message] = (),
        origin: Mapping[str, JsonValue] | None = None,
        attachments: Sequence[Attachment] = (),
        interjection: Callable[[], Interjection | None] = no_interjection,
    ) -> RunResult:
        """Work on `prompt` until the model is done or something ends it; return the result. `attachments` go with it.

        `interjection` is called before each request that sends results of calls, until it returns `None`. Its messages
        follow the results.

        Without `session`, a new one is started (with `carried` and `origin`, see `start`) and ended. A `session` that is
        passed continues its conversation, and the caller ends it.

        Raises, before anything begins, ValueError for a session that was ended, TypeError for a prompt that is not text,
        and RuntimeError if the agent is running. Other expected errors (provider, policy,
        log, interrupt) become stop reasons. An unexpected exception passes through: a bug, or a KeyboardInterrupt that
        Python's own handler raises between two steps. Even then each call of the history has its result, and the
        observers receive exactly one end.
        """
        check_arguments(Agent.run, locals())
        with self._alone(), self._run_of(prompt, session, carried, origin, attachments) as run:
            run.interjection = interjection
            while run.end is None:
                reply = self._reply(run)
                if reply is None:
                    continue
                calls = ReplyCalls(
                    run,
                    reply,
                    self.gate,
                    self.interrupt,
                    done_marker=self._done_marker or "",
                    together=self.together,
                )
                with calls as answers:
                    for first, *following in answers.to_run():
                        if following:
                            answers.take_all((first, *following), self._beside((first, *following), run))
                        else:
                            answers.take(first, self.gate.call(first, seconds_left=lambda: run.seconds_left))
                if answers.done:
                    self._check_answer(run)
        return run.result

    async def run_async(
        self,
        prompt: str,
        session: Session | None = None,
        *,
        carried: Sequence[Message] = (),
        origin: Mapping[str, JsonValue] | None = None,
        attachments: Sequence[Attachment] = (),
        interjection: Callable[[], Interjection | None] = no_interjection,
    ) -> RunResult:
        """Do as `run` on another thread, so that the event loop goes on. The observers run there too.

        The approver runs on a further thread, so that `stop` ends its question too.
        A task that is cancelled stops the run, waits for its end, and then raises CancelledError.
        """
        import asyncio

        def run() -> RunResult:
            _IS_ASYNC.set(True)  # in the context of that thread alone
            return self.run(
                prompt, session, carried=carried, origin=origin, attachments=attachments, interjection=interjection
            )

        running = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait([running])
            raise

    def stop(self) -> None:
        """End the current run with `StopReason.INTERRUPTED`, from any thread or task. Nothing is raised there.

        A request to the model is given up and a running command is ended. In `run_async` a question ends too; in `run`,
        an approver that waits must return by itself. Between two runs, `stop` ends the next one.
        """
        self._is_stopped = True
        self.interrupt.note()

    def _beside(self, group: Sequence[PendingCall], run: Run) -> Sequence[CallEnd]:
        """Run a group of read-only calls through the gate at once."""
        return self.gate.call_together(group, seconds_left=lambda: run.seconds_left, limit=self.together)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a second run until the end of the block. Raises RuntimeError if the agent is running."""
        if not self._turn.acquire(blocking=False):
            raise RuntimeError("the agent is running: make another one, with its own log, to run at once")
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _run_of(
        self,
        prompt: str,
        session: Session | None,
        carried: Sequence[Message],
        origin: Mapping[str, JsonValue] | None,
        attachments: Sequence[Attachment] = (),
    ) -> Iterator[Run]:
        """Begin the work on `prompt`, and give the run exactly one end, which the observers receive.

        Without `session`, a new session is started and ended here. Raises ValueError for a session that was ended.
        """
        if session is not None and session.ended:
            raise ValueError("the session was ended; start another one")
        run = self._new_run(session or Session(self.system, ""))
        try:
            with self._faults(run):
                run.session = session or self._start(carried, origin)
                self.log.session = run.session.identity
                self.gate.end_open_calls(ENDED_HERE)  # of a run of this session that a bug or an interrupt cut short
                self._give_notes(run)
                run.ask(prompt, attachments)
            with self._faults(run):
                yield run  # also a run that could not begin; its `end` is set already
            if session is None and run.session.identity and run.result.stop is not StopReason.LOG_ERROR:
                with self._faults(run):
                    self.end(run.session, run.result)
            redact = self.log.redactor.redact
            run.end = replace(run.result, text=redact(run.result.text), detail=redact(run.result.detail))
        except BaseException:
            run.end = replace(run.result, stop=StopReason.INTERNAL_ERROR, text="", detail=UNEXPECTED)
            if session is None and run.session.identity and not run.session.ended:
                with self._faults(run):  # so that the log can begin another session
                    self.end(run.session, run.end)
            raise
        finally:
            if self._is_stopped:  # the request was for this run
                self._is_stopped = False
                self.interrupt.clear()
            self._observers.end(run.result)

    @contextmanager
    def _faults(self, run: Run) -> Iterator[None]:
        """End `run` if the log, the gate or the workspace fails, or a hook refuses the session."""
        try:
            yield
        except LogError as error:
            run.stop(StopReason.LOG_ERROR, str(error))
        except SessionRefusedError as error:
            run.stop(StopReason.BLOCKED, str(error))
        except (GateError, WorkspaceError) as error:
            gate = isinstance(error, GateError)
            try:
                self.log.append("error", {"where": "gate" if gate else "workspace", "message": str(error)})
            except LogError:
                pass  # this fault is the one to report; nothing runs either way
            run.stop(StopReason.GATE_ERROR if gate else StopReason.WORKSPACE_LOST, str(error))

    def _give_notes(self, run: Run) -> None:
        """Give the model the notes of hooks and of the background. Raises LogError."""
        self.take_news(run.session)
        while run.session.notes:
            run.tell_model(run.session.notes.pop(0))

    def _new_run(self, session: Session) -> Run:
        self.run_now = Run(session, self.limits, self.log, prices=self._requests.prices, monotonic=self.monotonic)
        return self.run_now

    def _reply(self, run: Run) -> ModelResponse | None:
        """Ask the model, and return its reply if it has tool calls, otherwise `None`.

        `None` means that the run has ended, or that the caller should ask again.
        """
        self.registry.check_place()
        run.stop_at_limit(run.limit_reached())
        if run.end is not None:
            return None
        doing = "the model was answering"
        try:
            if self.context_tokens is not None and self._is_long(run):
                doing = "the model was summarizing"
                self._summarize(run)
                return None  # so that the limits are checked again before the next request
            doing = "tools were waited for"
            self.take_tools(run.session)
            self._give_notes(run)
            run.take_interjections()
            doing = "the model was answering"
            response = self._requests.ask(run, self.offered)
        except KeyboardInterrupt:
            run.stop(StopReason.INTERRUPTED, f"interrupted while {doing}")
            return None
        except ModelError as error:
            self._failed(run, error)
            return None
        run.text = response.text
        problem = no_answer(response)
        run.unusable = run.unusable + 1 if problem or is_cut(response) else 0
        if problem:
            self._requests.without_answer(run, problem)
        elif response.tool_calls:
            return response
        else:
            run.session.history.reply(response.text, echo=response.echo)
            if is_cut(response):
                run.stop(*unusable(response))
            else:
                self._check_answer(run)
        return None

    def _check_answer(self, run: Run) -> None:
        """End the run if its answer passes the checks. If not, tell the model the first time."""
        self.registry.check_place()
        if self._checked.lets_pass(run):
            run.stop(StopReason.COMPLETED)

    def _summarize(self, run: Run, *, too_long: bool = False, keep_nothing: bool = False) -> str:
        tokens = self.context_tokens
        return summarize(self._requests, run, context_tokens=tokens, too_long=too_long, keep_nothing=keep_nothing)

    def _is_long(self, run: Run) -> bool:
        """Return whether the conversation is near the model's context length. True at most once per reply."""
        near = due(run.session.last_usage, self.context_tokens)
        run.session.last_usage = Usage()  # even if summarizing fails, so that it is not tried again and again
        return near

    def _failed(self, run: Run, error: ModelError) -> None:
        """Record a request that failed for good, and end the run unless a shorter conversation can help."""
        if error.fault is ModelFault.TIME:
            return run.stop_at_limit(run.time_limit)
        self._requests.log_failure(run, error)
        if isinstance(error, CutReply):
            return run.stop(StopReason.CUT, str(error))
        if error.fault is not ModelFault.CONTEXT or run.compacted:
            return run.stop(StopReason.MODEL_ERROR, str(error))
        run.compacted = True
        run.stop_at_limit(run.limit_reached())
        if run.end is not None:
            return None
        try:
            problem = self._summarize(run, too_long=True)
        except KeyboardInterrupt:
            return run.stop(StopReason.INTERRUPTED, "interrupted while the model was summarizing")
        except ModelError:
            return run.stop_at_limit(run.time_limit)
        if problem:
            run.stop(StopReason.MODEL_ERROR, f"{error} A summary could not help: {problem}")
        return None

    def _tell_text(self, text: str) -> None:
        self._observers.text(text)
        if self._on_text is not None:
            self._on_text(text)

    def _tell_record(self, record: LogRecord) -> None:
        if record["session"] in self._sessions:  # another agent may write to the same log
            self._observers.record(record)


def _check_prices(limits: Limits, prices: Prices | None) -> None:
    if limits.max_cost is not None and prices is None:
        raise ValueError("max_cost needs prices: pass `prices`, or no `max_cost`")
