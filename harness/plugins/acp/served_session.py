"""One session that a client drives. It has its own thread, log, model and agent, and does one task at a time."""

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
from harness.plugins.acp.client_servers import ClientServer, with_client_servers
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
"""Stop reasons of a turn that also end the session."""


class ServedSession:
    """A session with its own thread, which runs the given tasks in order."""

    def __init__(
        self, arguments: Namespace, environment: Mapping[str, str], wire: ClientWire, *, client: str, records: bool
    ) -> None:
        """`arguments` are the command's flags with the session's folder. `client` is the client's name, for the log.

        `records` says whether the client gets each record of the log.
        """
        self._arguments = arguments
        self._environment = environment
        self._wire = wire
        self.client = client
        self._records = records
        self._name = ""
        self._early: list[LogRecord] | None = []
        """Records to send once the client knows the session's name. `None` after that."""
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="harness-session", daemon=True)
        self._is_busy = threading.Lock()
        """Locked from the moment when a prompt or a change of mode is accepted until it is done."""
        self._is_asked_to_stop = False
        self._place: SessionPlace | None = None
        self._opened: _Opened | None = None
        self._last: RunResult | None = None
        self._first_result: RunResult | None = None
        """The result of the first call of `end`. `None` before it."""
        self._notes = NotesToModel()
        self._question: OpenQuestion | None = None
        """The last question to the client."""
        self.log_problem = ""
        """Error while the log was ended. Empty if there was none."""
        self._thread.start()

    # For any thread

    def take(self, work: Callable[[], None]) -> None:
        """Queue a task for the session's thread."""
        self._work.put(work)

    def begins(self) -> bool:
        """Reserve the session for a prompt or a change of mode, until `is_done`. Return False if it is busy."""
        if not self._is_busy.acquire(blocking=False):
            return False
        if self._place is not None:
            self._place.interrupt.clear()
        self._is_asked_to_stop = False
        return True

    def is_done(self) -> None:
        """Release the session for the next prompt or change of mode."""
        self._is_busy.release()

    def cancel(self) -> None:
        """Ask the running task, if there is one, to stop. A repeated call has no effect."""
        if self._is_busy.locked() and not self._is_asked_to_stop:
            self._stop()

    def end(self, result: RunResult) -> None:
        """Ask the running task to stop, and end the session after it. The first `result` becomes the session's end."""
        self._stop()
        self._first_result = self._first_result or result
        self._work.put(None)

    def nudge(self) -> None:
        """Withdraw the open question of a session that was asked to stop.

        Call this repeatedly until the session ends: another thread cannot see when it begins to wait for an answer.
        """
        if self._is_asked_to_stop and self._thread.is_alive() and (question := self._question) is not None:
            question.withdraw()

    @property
    def is_stopping(self) -> bool:
        """Whether the session was asked to stop and still has tasks, so that `nudge` is needed."""
        return self._is_asked_to_stop and (self._is_busy.locked() or self._work.qsize() > 0) and self._thread.is_alive()

    def is_over(self, seconds: float) -> bool:
        """Wait for the end of the session, at most `seconds`. Return whether it has ended."""
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
                except Exception as error:  # noqa: BLE001 - later tasks must still run
                    self.tell(f"internal error: {type(error).__name__}: {error}")
        finally:
            self._end(
                self._first_result or RunResult(stop=StopReason.INTERNAL_ERROR, text="", detail="the session failed")
            )

    # For the session's thread

    def open(self, name: str = "", servers: Sequence[ClientServer] = ()) -> dict[str, JsonValue]:
        """Begin the session, or continue the one that the client calls `name`, and send its conversation.

        `servers` are the MCP servers that the client declares.
        Returns the session's description for the client. Raises HarnessError.
        """
        arguments, state = self._arguments, State.of(self._environment)
        carried = carried_session(state, name, arguments.cwd) if name else None
        if carried is not None and arguments.model is None:
            settings = settings_from(arguments, self._environment, arguments.cwd)
            arguments.model = carried.model_for(settings, self._environment)
        place, notes = with_client_servers(place_of(arguments, self._environment, complain), servers)
        self._place = place
        for note in notes:
            complain(note)
        opened = self._opened = _Opened(self, place, arguments, carried)
        self._name = name or opened.session.identity
        if carried is not None:
            for update in replayed(carried.rebuilt.messages, place.workspace.root):
                self.show(update)
            if items := todo_of(carried.rebuilt.messages):
                self.show(planned(items))
        return {"sessionId": self._name, **self._session_fields(opened, notes)}

    def send_first_updates(self) -> None:
        """Do the work that must wait until the client knows the session's name.

        Send the first records and the available commands, and import the modules for the first request.
        """
        early, self._early = self._early, None
        for record in early or ():
            self.record(record)
        if self._opened is not None:
            if self._opened.commands:
                self.show(offered_commands(self._opened.commands))
            self._opened.running.warm_up()

    def prompt(self, blocks: Sequence[Block]) -> dict[str, JsonValue]:
        """Run a turn on the user's prompt, and return its stop reason. Raises RefusedRequest for a failed turn."""
        opened = self._the_opened()
        prompt = said_prompt(blocks, self.redacted, opened.expanded, opened.attachments)
        session, interrupted = opened.session, self._last is not None and self._last.stop is StopReason.INTERRUPTED
        words = self._notes.message(prompt.text, session.messages, plans=opened.plans, interrupted=interrupted)
        result = self._last = opened.agent.run(words, session, attachments=prompt.attachments)
        opened.end_text()
        return _prompt_answer(result, cancelled=self._is_asked_to_stop)

    def set_mode(self, name: str) -> None:
        """Switch to another mode. Raises PolicyError and LogError."""
        self._the_opened().set_mode(Mode(name))

    def redacted(self, text: str) -> str:
        """Return text with the known secrets masked."""
        return text if self._place is None else self._place.redactor.redact(text)

    def show(self, update: Shown) -> None:
        """Send an update of this session to the client."""
        self._wire.tell(UPDATE, notification(self._name, update))

    def tell(self, text: str) -> None:
        """Show one line to the user. Any thread may call this."""
        if self._name:
            self.show(noted(visible_line(self.redacted(text), MOST_TOLD)))
        else:
            complain(text)

    def record(self, record: LogRecord) -> None:
        """Send a record of the log to the client, if it asked for records."""
        if self._records and self._early is not None:
            self._early.append(record)
        elif self._records:
            self._wire.tell(RECORD, {"sessionId": self._name, "record": dict(record)})

    def ask(self, fields: Mapping[str, JsonValue]) -> OpenQuestion:
        """Send a question to the client."""
        self._question = self._wire.ask(ASKS, {**fields, "sessionId": self._name})
        return self._question

    @property
    def header_fields(self) -> dict[str, JsonValue]:
        """Fields about the client for the first record of the log."""
        return {"client": self.client}

    def _the_opened(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the session was not opened")
        return self._opened

    def _session_fields(self, opened: _Opened, notes: Sequence[str]) -> dict[str, JsonValue]:
        """Return the description of an opened session for the client, with its own notes and `notes`."""
        modes = SessionModeState(
            current_mode_id=Mode.ASK.value,
            available_modes=[SessionMode(id=mode.value, name=mode.value, description=SAID[mode]) for mode in Mode],
        )
        running = opened.running
        return {
            "modes": modes.model_dump(mode="json", by_alias=True, exclude_none=True),
            "_meta": {
                "harness": {
                    "session": opened.session.identity,
                    "log": running.log.path,
                    "model": running.agent.model.name,
                    "policy": describe(running.policy, running.place.state),
                    "confinement": running.tools.level,
                    "notes": [*opened.notes, *notes],
                }
            },
        }

    def _end(self, result: RunResult) -> None:
        if self._opened is None:
            return
        opened, running, last = self._opened, self._opened.running, self._last
        running.place.interrupt.clear()  # a hook that asks at the end must not be interrupted by the earlier stop
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
    """An opened session. It shows lines, questions and modes to the client."""

    def __init__(
        self, served: ServedSession, place: SessionPlace, arguments: Namespace, carried: Carried | None
    ) -> None:
        """Begin the session. Raises HarnessError."""
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
            self.session = carried.begin(self.agent, identity)

    # The interface to the user

    def tell(self, line: str, /) -> None:
        """Show one line to the user."""
        self._served.tell(line)

    def ask(self, question: UserQuestion, /) -> UserAnswer:
        """Ask the client a question of the model."""
        redact = self._place.redactor.redact
        return answer_of_client(question, self._served.ask, call=self._updates.begun_call, mask=redact)

    def draw(self, printed: str, /) -> None:
        """Do nothing: the client gets the output of a command when it ends."""

    def countdown(self, seconds: float, /) -> None:
        """Wait for `seconds`, or until the client cancels."""
        self._place.interrupt.sleep(seconds)

    def lend(self) -> None:
        """Do nothing, since there is no terminal to lend."""

    @cached_property
    def approver(self) -> ClientApprover:
        """The approver that asks the client, and an outside approver, about calls."""
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
        """Whether plan mode is on."""
        return self._below_plan is not None

    def set_mode(self, mode: Mode) -> None:
        """Switch to another mode. Raises PolicyError and LogError."""
        agent = self.agent
        now = Mode.PLAN if self.plans else Mode(agent.gate.grants.mode or Mode.ASK.value)
        if mode is now:
            return
        plan = with_plan_mode(self.running.policy) if mode is Mode.PLAN else None
        agent.log.session = self.session.identity
        if self._below_plan is not None:
            agent.change_policy(self.session, self._below_plan, "plan left")
            self._below_plan = None
        agent.gate.grants.set_mode(mode.value if mode in (Mode.EDITS, Mode.WALLS) else "")
        if plan is not None:
            agent.change_policy(self.session, plan, "plan")
            self._below_plan = self.running.policy

    def expanded(self, words: str) -> SaidPrompt:
        """Return the user's message. A command is replaced by its text, with the files that the text names.

        A command for plan mode also turns plan mode on. Raises RefusedRequest for an unknown command, or one that wants
        another model; PolicyError, and the errors of `Agent.do`.
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
        """Send the rest of the model's text that the redactor held back."""
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
    """Return the answer to a prompt. Raises RefusedRequest if the protocol has no stop reason for the end of the turn.

    The protocol's `refusal` means that the turn is removed from the conversation, which harness never does. So a turn
    that a hard block ended is an error too.
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
            reason = "cancelled"  # the protocol requires it after session/cancel, regardless of the result
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


def session_arguments(arguments: Namespace, folder: str, added: Sequence[str] = ()) -> Namespace:
    """Return the flags of the command for a session in a folder. `added` are folders that belong to its workspace."""
    folders = [*arguments.add_dir, *map(os.path.realpath, added)]
    return Namespace(**{**vars(arguments), "cwd": os.path.realpath(folder), "add_dir": folders, "log": None})
