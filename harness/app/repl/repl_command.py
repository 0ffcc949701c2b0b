"""`harness`: the prompt. It reads a line, acts on it, and repeats until the user exits."""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import Namespace
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, assert_never

from harness.actions import Action
from harness.app.commands.context import usage_in_words
from harness.app.commands.conversation import Conversation
from harness.app.commands.grants import asleep_words
from harness.app.commands.mode import Mode, mode_of, next_mode
from harness.app.commands.model import take_settings
from harness.app.commands.notes_to_model import is_unanswered
from harness.app.commands.own_commands import slash_of
from harness.app.commands.plan import offer_to_carry_out
from harness.app.commands.shell import run_as_person
from harness.app.commands.slash_command import (
    Ask,
    Do,
    Meaning,
    RunAsPerson,
    Wrong,
    added_commands,
    meaning_of,
    slash_commands,
)
from harness.app.repl.attached_files import AttachedFiles, attached
from harness.app.repl.before_prompt import ask_trust, carried_over
from harness.app.repl.repl_terminal import DoublePress, Terminal
from harness.app.repl.status_line import status_of, status_parts, status_text
from harness.app.repl.todo_list import ShownTodo, StandingTodo
from harness.errors import GateError, HarnessError, LogError, UsageError, WorkspaceError
from harness.files.repository import branch_of
from harness.gate.approval import Approval
from harness.loop.run import Interjection
from harness.messages import Attachment, Role, RunResult, StopReason
from harness.plugin import Effect, SlashCommand
from harness.policy.verdict import Verdict
from harness.record import replace
from harness.session.config.provider import NO_PROVIDER
from harness.session.config.settings import settings_from
from harness.session.exits import Exit
from harness.session.front import terminal_is_there
from harness.session.named_plugins import named_plugins
from harness.session.own_folders import fix_modes
from harness.session.policies import describe
from harness.session.provider_models import ProviderModels
from harness.session.running_session import begin_session, collect
from harness.session.session_log import close_and_sign
from harness.session.session_place import place_of
from harness.session.session_rules import rules_of
from harness.session.session_tools import tools_of
from harness.session.signals import Signals
from harness.session.state import State, workspace_folder
from harness.terminal.console import complain, look_from
from harness.terminal.screen import Notices, Screen
from harness.terminal.styles import Line, Tone
from harness.terminal.type_ahead import NEXT_MODE
from harness.terminal.typing_times import TypingTimes
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tools.command_walls import confinement_words

if TYPE_CHECKING:
    from harness.app.repl.asking import Asking
    from harness.app.resume import Carried
    from harness.gate.place_watch import PlacesQuestion
    from harness.log.vocabulary import PlacesAnswer
    from harness.process.lent_terminal import LentTerminal
    from harness.terminal.completion import Menus
    from harness.terminal.undo_question import UndoChoice, UndoQuestion
    from harness.tools.ask_user import UserAnswer, UserQuestion


def tell_end(conversation: Conversation, result: RunResult) -> None:
    """Print the end of a turn, described by `result`."""
    screen = conversation.screen
    if result.stop is StopReason.BLOCKED and conversation.answer and conversation.answer.get("answer") == "halt":
        conversation.say_line("halted, as you said: nothing else of this turn runs", Tone.WARNING)
    elif end_text := how_it_ended(result, conversation.error):
        conversation.say_line(end_text, Tone.WARNING)
    if is_unanswered(conversation.session.messages):
        screen.line("what you said has no answer: it is sent again with what you say next; /undo drops it", Tone.QUIET)
    usage_text = usage_in_words(result.usage, conversation.cost_of(result.usage), unknown="")
    screen.line("")
    screen.line(f"({count_of(result.turns, 'request')}, {usage_text})", Tone.QUIET)
    if not screen.look.repaints:
        status = status_of(conversation, branch_of(conversation.place.workspace.root))
        screen.line(status_text(status, screen.width, conversation.place.settings.terminal.status.value), Tone.QUIET)


def how_it_ended(result: RunResult, error: str) -> str:
    """Return a description of the end of a turn. Empty if it was completed.

    `error` is the text of the last recorded error, which was already shown and is not repeated.
    """
    if result.stop is StopReason.COMPLETED:
        return ""
    word, detail = result.stop.value.replace("_", " "), result.detail
    if error and detail.startswith(error):
        detail = detail.removeprefix(error).strip()
        return f"{word}: {detail}" if detail else ""
    return detail if detail.startswith(word) else f"{word}: {detail}"


MARKS = {Mode.ASK: "> ", Mode.EDITS: "edits> ", Mode.WALLS: "walls> ", Mode.PLAN: "plan> "}
"""Text in front of the input line, by mode."""
END_NOTICE, STOP_NOTICE = "harness: the turn has ended", "harness: an error or a limit ended the turn"
"""Notifications for an absent user."""
_MOST_ECHOED = 12
"""Maximum number of lines shown of a message that the user did not type."""
_FATAL = (StopReason.GATE_ERROR, StopReason.WORKSPACE_LOST)
"""Stop reasons of a turn after which nothing can run any more."""


def repl_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run the prompt until the user exits. Return the exit code. Raises HarnessError for errors before the prompt."""
    if not terminal_is_there():
        raise UsageError("the prompt needs a terminal; in scripts and pipes use `harness run`")
    fix_modes(State.of(environment), complain)
    carried = carried_over(arguments, environment)
    if carried is not None and arguments.model is None:
        arguments.model = carried.model_for(
            settings_from(arguments, environment, workspace_folder(arguments.cwd)), environment
        )
    repl = _opened(arguments, environment, carried)
    return repl if isinstance(repl, int) else repl.talk()


def _opened(arguments: Namespace, environment: Mapping[str, str], carried: Carried | None) -> Repl | int:
    """Return the prompt, or an exit code if there is no model and the user was shown how to get one.

    Raises HarnessError.
    """
    terminal = settings_from(arguments, environment, workspace_folder(arguments.cwd)).terminal
    screen = Screen(sys.stdout, look_from(terminal, environment), notices=Notices(terminal.notify.value))
    times = TypingTimes()
    ask_trust(screen, terminal, environment, workspace_folder(arguments.cwd), times)
    try:
        return Repl(arguments, environment, times, carried=carried)
    except UsageError as error:
        from harness.app.demo.first_run import first_run

        if carried is not None and str(error) == NO_PROVIDER:
            model_text = visible_line(f"{carried.first.get('model')} at {carried.first.get('server')}", 500)
            raise UsageError(
                f"no model is named; the session was held with {model_text}: name it again, by the same flags"
            ) from None
        code = first_run(error, environment, screen, dead_seconds=terminal.dead_seconds.value)
        if code is None:
            raise
        return code


class Repl:
    """One conversation at the terminal."""

    def __init__(
        self,
        arguments: Namespace,
        environment: Mapping[str, str],
        times: TypingTimes,
        *,
        carried: Carried | None = None,
    ) -> None:
        """Begin the conversation. `carried` is the conversation to continue. Raises HarnessError.

        `times` tell of answers before the conversation.
        """
        self._first: str | None = arguments.prompt
        self._place = place = place_of(arguments, environment, complain)
        self._signals = Signals(place.interrupt)
        self._terminal = Terminal(place, self._is_message, times)
        self._screen, self._ahead = self._terminal.screen, self._terminal.ahead
        added = added_commands(named_plugins(place.settings.file))
        tools = tools_of(rules_of(place, arguments, self.tell), self)
        self._running = begin_session(
            ProviderModels(tools),
            mode="repl",
            approver=self._ask,
            on_text=self._screen.text,
            ask_places=self._ask_places,
        )
        self._agent = self._running.agent
        self._running.log.observers.append(self._screen.record)
        self._notes = [Line(tone=Tone.QUIET, text=note) for note in (*self._running.system.notes, *place.notes)]
        granted = tools.rules.granted
        warnings = [granted.problem, *map(asleep_words, granted.grants)]
        self._notes += [Line(tone=Tone.WARNING, text=visible_line(warning, 2_000)) for warning in warnings if warning]
        self._carried = carried
        self._conversation = self._begin(arguments, carried)
        self._running.log.observers.append(self._conversation.record)
        own_commands, left_out = slash_of(place.words.commands, added)
        self._conversation.own_commands = (*added, *own_commands)
        self._notes += [Line(tone=Tone.WARNING, text=note) for note in left_out]
        self._lines = self._terminal.prompt_line(
            place.state.history,
            place.workspace.root,
            place.workspace.outputs or place.state.outputs,
            place.redactor,
            self._toolbar,
            self._commands,
            self._offers,
            partial(next_mode, self._conversation),
        )
        self._interrupts = DoublePress()
        self._waiting_lines: deque[str] = deque()
        """Lines that were typed ahead and must not run by themselves.

        Each becomes the initial text of an input line, which the user may send. INVARIANT: one line at a time. If lines
        were joined, `!` and slash commands would take the following lines as arguments.
        """
        self._branch = ""
        """The workspace's branch when the present line began."""
        self._notice = ""
        """Notification for an absent user, sent when the next line is waited for. Empty for a present user."""
        self._history_told = False
        self._todo = ShownTodo()
        self._standing_todo = StandingTodo()
        self._running.log.observers.append(self._standing_todo.record)
        self._screen.stand(self._standing_todo.rows)
        self._last: RunResult | None = None
        self._went_well = True
        """Whether typed-ahead lines may run: the line before was neither stopped nor refused."""
        self._code = Exit.DONE

    # The session's interface to the user

    def tell(self, line: str, /) -> None:
        """Show one line to the user."""
        self._screen.line(visible_line(line, 2_000), Tone.WARNING)

    def ask(self, question: UserQuestion, /) -> UserAnswer:
        """Ask the user a question of the model."""
        return self._asking.at_terminal.ask_user(question)

    def draw(self, printed: str, /) -> None:
        """Show output of a running command."""
        self._terminal.draw(printed)

    def countdown(self, seconds: float, /) -> None:
        """Show the remaining seconds until a request is sent again."""
        self._screen.countdown(seconds)

    def lend(self) -> AbstractContextManager[LentTerminal] | None:
        """Lend the terminal to a command that the user typed. `None` if the command does not need it."""
        return self._terminal.lend()

    @cached_property
    def _asking(self) -> Asking:
        from harness.app.repl.asking import Asking

        return Asking(self._terminal, self._conversation)

    def _ask(self, action: Action, verdict: Verdict) -> Approval:
        return self._asking.ask(action, verdict)

    def _ask_places(self, question: PlacesQuestion) -> PlacesAnswer:
        return self._asking.at_terminal.ask_places(question)

    def _ask_undo(self, question: UndoQuestion) -> UndoChoice:
        return self._asking.at_terminal.ask_undo(question)

    def _begin(self, arguments: Namespace, carried: Carried | None) -> Conversation:
        """Begin the session, with the conversation to continue, if there is one. Raises LogError."""
        header = self._running.header
        if carried is None:
            session = self._agent.start()
        else:
            self._place.redactor.note(" ".join(carried.rebuilt.marks))
            self._running.tools.attachments.take_over(carried.rebuilt.messages, carried.session.path)
            session = carried.begin(self._agent, header)
        return Conversation(
            running=self._running,
            screen=self._screen,
            approver=self._ask,
            ask_undo=self._ask_undo,
            session=session,
            showing=self._terminal.showing,
            policy_named=arguments.policy,
            policy_sha256=arguments.policy_sha256,
        )

    def _commands(self) -> Sequence[SlashCommand]:
        return (*slash_commands(), *self._conversation.own_commands)

    def _offers(self) -> Menus:
        """Return the menus of the slash commands, by name."""
        return {
            command.name: partial(command.offers, self._conversation) for command in self._commands() if command.offers
        }

    def talk(self) -> int:
        """Read and run lines until the user exits. Return the exit code."""
        running, place, screen, conversation = self._running, self._place, self._screen, self._conversation
        self._signals.install()
        collect()
        screen.line(visible_line(f"harness: model {self._agent.model.name}, workspace {place.workspace.root}", 1_000))
        screen.line(f"policy: {describe(running.policy, place.state)}", Tone.QUIET)
        screen.line(confinement_words(running.tools.level), Tone.QUIET)
        if missing_wall := running.tools.missing_wall:
            screen.line(missing_wall, Tone.WARNING)
        for note in self._notes:
            screen.line(note.text, note.tone)
        if self._carried is not None:
            from harness.app.commands.transcript import show_carried

            show_carried(conversation, self._carried, running.header)
        screen.line("/help for help", Tone.QUIET)
        while self._code is Exit.DONE and not conversation.leaving and (meaning := self._next()) is not None:
            self._take(meaning)
        if self._code is not Exit.LOG:
            self._agent.end(conversation.session, self._ending())
            close_and_sign(place.state, running.log, running.settings.sign_key.value, complain)
        running.close()
        screen.settle()
        for row in self._rows_at_end():
            screen.unbroken(row, Tone.QUIET)
        if not self._is_closed:
            return Exit.TERMINATED if self._signals.terminated else self._code
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards output that could not be written
        return Exit.TERMINATED

    def _rows_at_end(self) -> Iterator[str]:
        """Yield the commands that go on with the conversation and show its log. A log elsewhere is named by its path."""
        log, place, session = self._running.log.path, self._place, self._conversation.session
        if log not in place.state.log_paths(place.workspace.root):
            yield f"log: {log}"
            return
        if self._code is not Exit.LOG and any(message.role is Role.USER for message in session.messages):
            flags = [word for word in sys.argv[1:] if word.startswith("-") and word not in ("-c", "--continue")]
            with_flags = " with the same flags" if flags else ""
            yield f"`harness -c`{with_flags} goes on with this conversation"
        yield f"`harness audit show --session {session.identity}` shows what was done"

    @property
    def _is_closed(self) -> bool:
        """Whether the terminal window was closed. Its end of input may be read before its signal arrives."""
        return self._signals.hung_up or not terminal_is_there()

    def _toolbar(self, hint: str, vi: str) -> Sequence[tuple[str, Tone]]:
        status = replace(status_of(self._conversation, self._branch), hint=hint, vi=vi)
        return status_parts(status, self._screen.width, self._place.settings.terminal.status.value)

    def _ending(self) -> RunResult:
        """Return the end of the session: completed if the user exited, else the reason why it stopped."""
        if self._is_closed:
            return RunResult(stop=StopReason.TERMINAL_CLOSED, text="", detail="the terminal was closed")
        if self._signals.terminated:
            return RunResult(stop=StopReason.INTERRUPTED, text="", detail="the program was told to end")
        if self._last is not None and self._last.stop in _FATAL:
            return self._last
        return RunResult(stop=StopReason.COMPLETED, text="")

    # Reading

    def _next(self) -> Meaning | None:
        """Return the meaning of the next line. `None` if the user exits."""
        if words := self._conversation.prompt:  # text for the model, whatever it begins with
            self._conversation.prompt = ""
            by_command, self._conversation.prompt_by_command = self._conversation.prompt_by_command, False
            first, more = words.split("\n")[:_MOST_ECHOED], words.count("\n") + 1 - _MOST_ECHOED
            self._echo("\n".join([*first, *([f"[{count_of(more, 'further line')}]"] if more > 0 else [])]))
            return Ask(text=words, by_command=by_command)
        while (line := self._next_line()) is not None:
            if line:
                return meaning_of(line, self._conversation.own_commands, self._place.words.left_out)
        return None

    def _next_line(self) -> str | None:
        """Return the next line, which may be empty. `None` if the user exits."""
        if self._signals.terminated:
            return None
        if self._first is not None:
            line, self._first = self._first.strip(), None
            self._echo(line)
            return line
        if self._went_well and not self._waiting_lines and (queued := self._ahead.take()) is not None:
            self._echo(f"{queued}  (queued)")
            if queued != NEXT_MODE:
                self._terminal.remember(queued)
            return queued.strip()
        self._waiting_lines.extend(self._left_over())
        draft, self._conversation.draft = self._conversation.draft, ""
        default = self._waiting_lines.popleft() if self._waiting_lines else draft
        if self._waiting_lines:
            self._screen.line(
                f"{count_of(len(self._waiting_lines), 'more line')} of yours to send after this one", Tone.QUIET
            )
        return self._typed(default)

    def _echo(self, line: str) -> None:
        """Show a line that is not typed now.

        Its continuation lines are marked, so that they do not look like the harness's.
        """
        self._screen.line("> " + line.replace("\n", "\n. "))

    def _left_over(self) -> Iterator[str]:
        """Yield the remaining typed-ahead lines. An unfinished line comes last."""
        while (line := self._ahead.take()) is not None:
            yield line
        if draft := self._ahead.take_draft():
            yield draft

    def _typed(self, default: str) -> str | None:
        """Return the next typed line. `None` if the user exits."""
        interrupt = self._place.interrupt
        if notice := self._notice:
            self._notice = ""
            self._screen.notify(notice)
        for todo_line in self._todo.news(self._conversation.session.messages):
            self._screen.line(todo_line, Tone.QUIET)
        while not self._signals.terminated:
            interrupt.clear()
            self._agent.take_news(self._conversation.session)
            self._screen.settle()
            self._branch = branch_of(self._place.workspace.root)
            try:
                with interrupt:
                    line = self._lines.read(default=default, pre_run=self._warm_up, prompt=self._mark).strip()
            except (EOFError, OSError):  # Ctrl-D, or the terminal is gone
                return None
            except KeyboardInterrupt:
                if self._interrupts.again(time.monotonic()):
                    return None
                default = ""
                self._screen.line("Ctrl-C again leaves", Tone.QUIET)
            except LogError as error:
                self._conversation.say_line(str(error), Tone.BAD)
                self._code = Exit.LOG
                return None
            except HarnessError as error:
                self._conversation.say_line(str(error), Tone.WARNING)
            else:
                self._tell_history()
                self._agent.take_news(self._conversation.session)
                return line
        return None

    def _mark(self) -> str:
        return MARKS[mode_of(self._conversation)]

    def _tell_history(self) -> None:
        """Report once why lines are not stored. The history is loaded after the first prompt appears."""
        problem = self._terminal.history_problem
        if problem and not self._history_told:
            self._history_told = True
            self._conversation.say_line(f"what you type is not kept beyond this program: {problem}", Tone.WARNING)

    def _warm_up(self) -> None:
        """Import the modules of the first turn while the user types, since that takes longest."""
        self._place.interrupt.tell_by(self._lines.stopper())
        self._running.tools.jobs.on_end = self._lines.above(self._tell_news)

        def warm_up() -> None:
            self._running.warm_up()
            slash_commands()

        threading.Thread(target=warm_up, daemon=True).start()

    def _tell_news(self) -> None:
        """Record and show what ended in the background while the user types. A broken log is reported with the line."""
        with suppress(LogError):
            self._agent.take_news(self._conversation.session)

    # Doing

    def _take(self, meaning: Meaning) -> None:
        """Act on a line. Afterwards `_code` tells whether the program can continue."""
        self._place.interrupt.clear()
        if self._signals.terminated:  # a signal that just arrived must not be cleared like a Ctrl-C
            return
        self._asking.at_terminal.turn_begins()
        try:
            self._place.workspace.check()
            with self._ahead:
                self._went_well = self._done(meaning)
                self._screen.settle()
        except LogError as error:
            self._conversation.say_line(str(error), Tone.BAD)
            self._code = Exit.LOG
        except GateError as error:
            self._conversation.say_line(str(error), Tone.BAD)
            self._code = Exit.INTERNAL
        except WorkspaceError as error:
            self._conversation.say_line(str(error), Tone.BAD)
            self._last = RunResult(stop=StopReason.WORKSPACE_LOST, text="", detail=str(error))
            self._code = Exit.INTERNAL
        self._notice = self._notice_of_end(meaning) if self._asking.at_terminal.is_away else ""

    def _notice_of_end(self, meaning: Meaning) -> str:
        """Return the notification that a line is done. Empty if the user stopped it, and so is there."""
        result = self._last if isinstance(meaning, Ask) else None
        if result is not None and result.stop is StopReason.INTERRUPTED:
            return ""
        return END_NOTICE if self._went_well else STOP_NOTICE

    def _done(self, meaning: Meaning) -> bool:
        """Act on a line. Return whether that succeeded. Raises LogError and GateError."""
        match meaning:
            case Ask():
                try:
                    return self._turn(meaning)
                finally:
                    self._model_again()
            case Do():
                return self._do(meaning)
            case RunAsPerson():
                return run_as_person(self._conversation, meaning.text, model_hears=meaning.model_hears)
            case Wrong():
                self._conversation.say_line(meaning.problem, Tone.WARNING, max_characters=1_000)
                return False
            case _:
                assert_never(meaning)

    def _model_again(self) -> None:
        """Restore the model that a command replaced for one turn. Raises LogError."""
        if settings := self._conversation.settings_after:
            self._conversation.settings_after = None
            take_settings(self._conversation, settings)

    def _do(self, meaning: Do) -> bool:
        """Run a slash command, and show its errors in one line. Raises LogError, GateError and WorkspaceError."""
        name = meaning.command.name
        try:
            if meaning.command.effect is Effect.SHOWS:
                with self._place.interrupt:
                    meaning.command.run(self._conversation, meaning.rest)
            else:
                meaning.command.run(self._conversation, meaning.rest)
        except (LogError, GateError, WorkspaceError):
            raise
        except KeyboardInterrupt:
            self._screen.line("stopped", Tone.WARNING)
        except HarnessError as error:
            self._conversation.say_line(str(error), Tone.WARNING)
        except Exception as error:  # a bug in a command must not end the conversation
            if self._place.environment.get("HARNESS_DEBUG"):
                raise
            problem = visible_line(f"{type(error).__name__}: {error}", 1_000)
            self._conversation.say_line(f"internal error in {name}: {problem} (HARNESS_DEBUG=1 shows where)", Tone.BAD)
        else:
            return True
        return False

    def _is_message(self, line: str) -> bool:
        """Return whether a line, without outer blanks, is a message to the model."""
        meaning = meaning_of(line, self._conversation.own_commands, self._place.words.left_out)
        return isinstance(meaning, Ask)

    def _interjection(self) -> Interjection | None:
        """Return the next message that the user typed during the turn, to send with the results. `None` for none.

        For /undo and /back, a turn begins with it.
        """
        line = self._ahead.take_steering()
        if line is None:
            return None
        self._conversation.turns.begin(self._conversation.session)
        self._echo(f"{line}  (with the results)")
        self._terminal.remember(line)
        words, attachments = self._with_files(Ask(text=line.strip()))
        return Interjection(text=words, attachments=attachments)

    def _with_files(self, prompt: Ask) -> tuple[str, tuple[Attachment, ...]]:
        """Return the text of a message, and its attachments. Raises the errors of `Agent.do`."""
        if "@" not in prompt.text:
            return prompt.text, ()
        attached = self._attached(prompt)
        return attached.with_texts(prompt.text), attached.attachments

    def _attached(self, prompt: Ask) -> AttachedFiles:
        """Return the attachments of a line for the model.

        These are the pictures that the user mentions. For a command's text, they are all files that it mentions. Raises
        the errors of `Agent.do`.
        """
        return attached(
            self._agent,
            self._conversation.session,
            prompt.text,
            tell=partial(self._conversation.say_line, tone=Tone.WARNING),
            home=self._place.environment.get("HOME", ""),
            root=self._place.workspace.root if prompt.by_command else "",
            approver=self._conversation.approver if prompt.by_command else None,
        )

    def _turn(self, prompt: Ask) -> bool:
        conversation = self._conversation
        session = conversation.session
        conversation.turns.begin(session)
        self._standing_todo.begin(session)
        conversation.error = ""
        words, attachments = self._with_files(prompt)
        with self._ahead.steering():
            result = self._last = self._agent.run(
                conversation.message(words), session, attachments=attachments, interjection=self._interjection
            )
        self._screen.end_text()
        conversation.count(result)
        tell_end(conversation, result)
        if result.stop is StopReason.LOG_ERROR:
            self._code = Exit.LOG
        elif result.stop in _FATAL:
            self._code = Exit.INTERNAL
        elif conversation.plans:
            return offer_to_carry_out(conversation, result)
        return result.stop is StopReason.COMPLETED
