"""One session that a client drives: a thread, a log, a model and an agent of its own; one thing at a time is done in it."""

from __future__ import annotations

import os
import queue
import threading
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from acp.schema import CurrentModeUpdate, SessionMode, SessionModeState

from harness.actions import Action, JsonValue
from harness.app.commands.grants import asleep_words
from harness.app.commands.mode import SAID, Mode
from harness.app.commands.notes_to_model import NotesToModel
from harness.app.commands.own_commands import called, said_in_run, slash_of
from harness.app.repl.attached_files import attached
from harness.app.repl.todo_list import todo_of
from harness.app.resume import Carried, carried_lines
from harness.audit.helper_tree import HelperTree
from harness.errors import LogError, UsageError
from harness.files.before_images import BeforeImages
from harness.gate.approval import Approval
from harness.log.order import LogRecord
from harness.loop.agent import Agent
from harness.loop.run import Session
from harness.messages import RunResult, StopReason
from harness.plugins.acp.client_approver import ASKS, ClientApprover
from harness.plugins.acp.client_question import answer_of_client
from harness.plugins.acp.client_wire import ClientWire, OpenQuestion, RefusedRequest
from harness.plugins.acp.prompt_blocks import Block, SaidPrompt, said_prompt
from harness.plugins.acp.session_updates import (
    RecordUpdates,
    Shown,
    message_chunk,
    noted,
    notification,
    offered_commands,
    planned,
    replayed,
)
from harness.plugins.acp.stored_sessions import MODE, carried_session
from harness.policy.grant_offers import Offer
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.process.json_rpc import RpcCode
from harness.redaction.stream import RedactedStream
from harness.session.approver.session_approver import approver_outside
from harness.session.config.settings import settings_from
from harness.session.policies import describe, with_plan_mode
from harness.session.provider_models import ProviderModels
from harness.session.running_session import RunningSession, begin_session
from harness.session.session_log import close_and_sign, close_log
from harness.session.session_place import SessionPlace, place_of
from harness.session.session_rules import rules_of
from harness.session.session_tools import tools_of
from harness.session.state import State
from harness.terminal.console import complain
from harness.terminal.styles import Tone
from harness.text.visible import visible_line
from harness.tools.ask_user import UserAnswer, UserQuestion

UPDATE, RECORD = "session/update", "_harness/record"
MOST_TOLD = 2_000
FATAL = (StopReason.LOG_ERROR, StopReason.GATE_ERROR, StopReason.WORKSPACE_LOST)
"""Ends of a turn that also end the session."""


class ServedSession:
    """Runs what it is given, in order, on its own thread."""

    def __init__(
        self, arguments: Namespace, environment: Mapping[str, str], wire: ClientWire, *, client: str, records: bool
    ) -> None:
        """Take the flags of the command, with the session's folder; `client` is what drives it, for the log; `records`:
        whether it is sent each record.
        """
        self._arguments = arguments
        self._environment = environment
        self._wire = wire
        self.client = client
        self._records = records
        self._name = ""
        self._early: list[LogRecord] | None = []
        """Records that the client is not sent yet: it does not know the session's name."""
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="harness-session", daemon=True)
        self._is_busy = threading.Lock()
        """Held from when a prompt, or a change, is accepted until it is done."""
        self._is_asked_to_stop = False
        self._place: SessionPlace | None = None
        self._opened: _Opened | None = None
        self._last: RunResult | None = None
        self._first_result: RunResult | None = None
        """The first recorded end of the session. `None` while it runs."""
        self._notes = NotesToModel()
        self._question: OpenQuestion | None = None
        """The one that was put last."""
        self.log_problem = ""
        """The problem of the log's end."""
        self._thread.start()

    # Of any thread

    def take(self, work: Callable[[], None]) -> None:
        """Have something done when all before it is done."""
        self._work.put(work)

    def begins(self) -> bool:
        """Say whether a prompt or a change may begin now; then none other does until `is_done`."""
        if not self._is_busy.acquire(blocking=False):
            return False
        if self._place is not None:
            self._place.interrupt.clear()
        self._is_asked_to_stop = False
        return True

    def is_done(self) -> None:
        """Let the next one begin."""
        self._is_busy.release()

    def cancel(self) -> None:
        """Ask what runs to stop, once; where nothing runs nothing happens."""
        if self._is_busy.locked() and not self._is_asked_to_stop:
            self._stop()

    def end(self, result: RunResult) -> None:
        """Have what runs stopped, and the session ended."""
        self._stop()
        self._first_result = self._first_result or result
        self._work.put(None)

    def nudge(self) -> None:
        """Withdraw the session's open question at its end. Call this repeatedly until the session ended, since it
        begins to wait at a moment that no other thread can see.
        """
        if self._is_asked_to_stop and self._thread.is_alive() and (question := self._question) is not None:
            question.withdraw()

    @property
    def is_stopping(self) -> bool:
        """Whether something has to be woken so that it stops."""
        return self._is_asked_to_stop and (self._is_busy.locked() or self._work.qsize() > 0) and self._thread.is_alive()

    def is_over(self, seconds: float) -> bool:
        """Wait for the end, at most so long; say whether it has come."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _stop(self) -> None:
        self._is_asked_to_stop = True
        if self._place is not None:
            self._place.interrupt.note()
        self.nudge()

    def _run(self) -> None:
        try:
            while (work := self._work.get()) is not None:
                try:
                    work()
                except Exception as error:  # noqa: BLE001 - what comes next is to be answered all the same
                    self.tell(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._end(
                self._first_result or RunResult(stop=StopReason.INTERNAL_ERROR, text="", detail="the session failed")
            )

    # On its own thread

    def open(self, name: str = "") -> dict[str, JsonValue]:
        """Begin the session, or continue the one with the client's name `name`, and show its conversation.

        Returns the client's description of it. Raises HarnessError.
        """
        arguments, state = self._arguments, State.of(self._environment)
        carried = carried_session(state, name, arguments.cwd) if name else None
        if carried is not None and arguments.model is None:
            settings = settings_from(arguments, self._environment, arguments.cwd)
            arguments.model = carried.model_for(settings, self._environment)
        self._place = place = place_of(arguments, self._environment, complain)
        opened = self._opened = _Opened(self, place, arguments, carried)
        self._name = name or opened.session.identity
        if carried is not None:
            for update in replayed(carried.rebuilt.messages, place.workspace.root):
                self.show(update)
            if items := todo_of(carried.rebuilt.messages):
                self.show(planned(items))
        return {"sessionId": self._name, **self._session_fields(opened)}

    def send_first_updates(self) -> None:
        """Do what waits until the client knows the session: send its first records and the commands that there are, import
        what the first request needs.
        """
        early, self._early = self._early, None
        for record in early or ():
            self.record(record)
        if self._opened is not None:
            if self._opened.commands:
                self.show(offered_commands(self._opened.commands))
            self._opened.running.warm_up()

    def prompt(self, blocks: Sequence[Block]) -> dict[str, JsonValue]:
        """Work on what the person says, and return how the turn ended. Raises RefusedRequest for what went wrong."""
        opened = self._the_opened()
        prompt = said_prompt(blocks, self.redacted, opened.expanded, opened.attachments)
        session, interrupted = opened.session, self._last is not None and self._last.stop is StopReason.INTERRUPTED
        words = self._notes.message(prompt.text, session.messages, plans=opened.plans, interrupted=interrupted)
        result = self._last = opened.agent.run(words, session, attachments=prompt.attachments)
        opened.end_text()
        return _prompt_answer(result, cancelled=self._is_asked_to_stop)

    def set_mode(self, name: str) -> None:
        """Let another mode hold. Raises PolicyError and LogError."""
        self._the_opened().set_mode(Mode(name))

    def redacted(self, text: str) -> str:
        """Return text with the known secrets masked."""
        return text if self._place is None else self._place.redactor.redact(text)

    def show(self, update: Shown) -> None:
        """Show the client something of this session."""
        self._wire.tell(UPDATE, notification(self._name, update))

    def tell(self, text: str) -> None:
        """Say one line to the person. In any thread."""
        if self._name:
            self.show(noted(visible_line(self.redacted(text), MOST_TOLD)))
        else:
            complain(text)

    def record(self, record: LogRecord) -> None:
        """Send a record, where the client wants them."""
        if self._records and self._early is not None:
            self._early.append(record)
        elif self._records:
            self._wire.tell(RECORD, {"sessionId": self._name, "record": dict(record)})

    def ask(self, fields: Mapping[str, JsonValue]) -> OpenQuestion:
        """Put a question to the client."""
        self._question = self._wire.ask(ASKS, {**fields, "sessionId": self._name})
        return self._question

    @property
    def header_fields(self) -> dict[str, JsonValue]:
        """Fields about the client in the log's first record."""
        return {"client": self.client}

    def _the_opened(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the session was not opened")
        return self._opened

    def _session_fields(self, opened: _Opened) -> dict[str, JsonValue]:
        """Return the client's description of a session that was begun."""
        modes = SessionModeState(
            current_mode_id=Mode.ASK.value,
            available_modes=[SessionMode(id=mode.value, name=mode.value, description=SAID[mode]) for mode in Mode],
        )
        running, notes = opened.running, list[JsonValue](opened.notes)
        return {
            "modes": modes.model_dump(mode="json", by_alias=True, exclude_none=True),
            "_meta": {
                "harness": {
                    "session": opened.session.identity,
                    "log": running.log.path,
                    "model": running.agent.model.name,
                    "policy": describe(running.policy),
                    "confinement": running.tools.level,
                    "notes": notes,
                }
            },
        }

    def _end(self, result: RunResult) -> None:
        if self._opened is None:
            return
        opened, running, last = self._opened, self._opened.running, self._last
        running.place.interrupt.clear()  # what asks at the end (a hook) is not what was to stop
        try:
            if last is None or last.stop is not StopReason.LOG_ERROR:
                opened.agent.end(opened.session, last if last is not None and last.stop in FATAL else result)
            close_and_sign(running.place.state, running.log, running.settings.sign_key.value, complain)
        except LogError as error:
            self.log_problem = str(error)
            complain(self.log_problem)
        finally:
            running.close()
            running.models.close()


class _Opened:
    """A session that was begun; its front is the client."""

    def __init__(
        self, served: ServedSession, place: SessionPlace, arguments: Namespace, carried: Carried | None
    ) -> None:
        """Begin it. Raises HarnessError."""
        self._served = served
        self._place = place
        self._stream = RedactedStream(place.redactor)
        self._updates = RecordUpdates(
            place.workspace.root, BeforeImages(place.state.before_images), place.redactor.redact
        )
        self._helpers = HelperTree()
        tools = tools_of(rules_of(place, arguments, served.tell), self)
        self.running: RunningSession = begin_session(
            ProviderModels(tools), mode=MODE, approver=self._ask, header=served.header_fields, on_text=self._text
        )
        try:
            self._begin(carried)
        except BaseException:
            self.running.close()
            close_log(place.state, self.running.log)
            raise
        self._below_plan: Policy | None = None
        """The policy to return to after plan mode. `None` outside of it."""

    def _begin(self, carried: Carried | None) -> None:
        running, place = self.running, self._place
        self.agent: Agent = running.agent
        self.attachments = running.tools.attachments
        running.log.observers.append(self._record)
        granted = running.rules.granted
        self.commands, left_out = slash_of(place.words.commands)
        notes = (*running.system.notes, *place.notes, *left_out, granted.problem, *map(asleep_words, granted.grants))
        self.notes = [note for note in notes if note]
        if carried is None:
            self.session: Session = self.agent.start()
        else:
            identity = running.header
            self.notes += [line.text for line in carried_lines(carried, identity) if line.tone is Tone.WARNING]
            place.redactor.note(" ".join(carried.rebuilt.marks))
            self.attachments.take_over(carried.rebuilt.messages, carried.session.path)
            self.session = self.agent.start(carried=carried.messages(identity), origin=carried.origin)

    # In front of the session

    def tell(self, line: str, /) -> None:
        """Show the client one line."""
        self._served.tell(line)

    def ask(self, question: UserQuestion, /) -> UserAnswer:
        """Put a question of the model to the client."""
        redact = self._place.redactor.redact
        return answer_of_client(question, self._served.ask, call=self._updates.begun_call, mask=redact)

    def draw(self, printed: str, /) -> None:
        """Draw nothing: the client is sent what a command printed when it ends."""

    def countdown(self, seconds: float, /) -> None:
        """Wait, until the client cancels."""
        self._place.interrupt.sleep(seconds)

    def lend(self) -> None:
        """Lend nothing, since there is no terminal."""

    @cached_property
    def approver(self) -> ClientApprover:
        """The approver that asks the client about calls, and an approver outside."""
        place = self._place
        return ClientApprover(
            self._served.ask,
            confinement=self.agent.registry.confinement,
            environment=place.environment,
            offer=self._offer,
            mask=place.redactor.redact,
            call=lambda: self._updates.asked_call,
            outside=approver_outside(self.running, self._offer, is_alone=False),
            client=self._served.client,
        )

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        return self.approver(action, verdict)

    @property
    def plans(self) -> bool:
        """Whether plan mode holds."""
        return self._below_plan is not None

    def set_mode(self, mode: Mode) -> None:
        """Let another mode hold. Raises PolicyError and LogError."""
        agent = self.agent
        now = Mode.PLAN if self.plans else Mode.EDITS if agent.gate.grants.allows_edits else Mode.ASK
        if mode is now:
            return
        plan = with_plan_mode(self.running.policy) if mode is Mode.PLAN else None
        agent.log.session = self.session.identity
        if self._below_plan is not None:
            agent.change_policy(self.session, self._below_plan, "plan left")
            self._below_plan = None
        if agent.gate.grants.allows_edits is not (mode is Mode.EDITS):
            agent.gate.grants.allow_edits(on=mode is Mode.EDITS)
        if plan is not None:
            agent.change_policy(self.session, plan, "plan")
            self._below_plan = self.running.policy

    def expanded(self, words: str) -> SaidPrompt:
        """Return the person's message; for a command its text, in its mode, with the files that it names.

        Raises RefusedRequest for an unknown command, or one that wants another model; PolicyError, and the errors of
        `Agent.do`.
        """
        if not words.startswith("/"):
            return SaidPrompt(text=words.strip())

        place = self._place
        command = called(words, place.words)
        if command is not None and command.plans and not self.plans:
            self.set_mode(Mode.PLAN)
            mode = Mode.PLAN.value
            self._served.show(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
        try:
            command_words = said_in_run(words, place.words, self.running.settings, plans=self.plans)
        except UsageError as error:
            raise RefusedRequest(RpcCode.PARAMS, str(error)) from None
        if command_words is None:
            return SaidPrompt(text=words)
        for note in command_words.notes:
            self._served.tell(note)
        files = attached(
            self.agent,
            self.session,
            command_words.words,
            tell=self._served.tell,
            home=place.environment.get("HOME", ""),
            root=place.workspace.root,
            approver=self.approver,
        )
        return SaidPrompt(text=files.with_texts(command_words.words), attachments=files.attachments)

    def end_text(self) -> None:
        """Show the rest of the model's text."""
        if rest := self._stream.finish():
            self._served.show(message_chunk(rest))

    def _text(self, delta: str) -> None:
        if text := self._stream.feed(delta):
            self._served.show(message_chunk(text))

    def _record(self, record: LogRecord) -> None:
        helper = self._helpers.record(record)
        if helper is None and record["kind"] in ("model_response", "error"):
            self.end_text()
        for update in self._updates.of(record, helper):
            self._served.show(update)
        self._served.record(record)

    def _offer(self, action: Action, verdict: Verdict) -> Offer | str:
        return "plan mode is on" if self.plans else self.agent.gate.grants.offer(action, verdict)


def _prompt_answer(result: RunResult, *, cancelled: bool) -> dict[str, JsonValue]:
    """Return the answer to a prompt. Raises RefusedRequest where the protocol has no stop reason for the end.

    Its `refusal` means that the turn is forgotten, which none is here: what a hard block ended is an error, too.
    """
    usage = result.usage
    meta: dict[str, JsonValue] = {
        "stop": result.stop.value,
        "detail": result.detail,
        "turns": result.turns,
        "refusals": result.refusals,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "cost": result.cost,
    }
    match result.stop:
        case _ if cancelled and result.stop not in FATAL:
            reason = "cancelled"  # the protocol wants it, whatever else it came to
        case StopReason.INTERRUPTED:
            reason = "cancelled"
        case StopReason.COMPLETED:
            reason = "end_turn"
        case StopReason.LIMIT:
            reason = "max_turn_requests"
        case StopReason.LENGTH:
            reason = "max_tokens"
        case _:
            word = result.stop.value.replace("_", " ")
            raise RefusedRequest(RpcCode.INTERNAL, f"{word}: {result.detail}", {"harness": meta})
    return {"stopReason": reason, "_meta": {"harness": meta}}


def session_arguments(arguments: Namespace, folder: str) -> Namespace:
    """Return the flags of the command for a session in a folder."""
    return Namespace(**{**vars(arguments), "cwd": os.path.realpath(folder), "log": None})
