"""The prompt: a person, a model, and every call in between asked about or traced; never used without a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from harness.actions import Effects
from harness.cli.approvals import terminal_approver, terminal_is_there
from harness.cli.console import wants_colour
from harness.cli.exits import Exit
from harness.cli.policies import describe
from harness.cli.resuming import FORKED, RESUMED, Carried, carried_from, named, newest, refuse_its_log, told
from harness.cli.rich_console import RichConsole
from harness.cli.setup import Parts, about_of, agent_of, close_log, pinned
from harness.cli.state import State, here
from harness.cli.trace import Line, Tone
from harness.cli.turns import Turns, take_back
from harness.compaction import characters
from harness.errors import UsageError
from harness.messages import RunResult, StopReason
from harness.policy import Policy
from harness.policy_file import nearest
from harness.session import Session
from harness.tool import IN_PROCESS, ToolRegistry
from harness.visible import visible_line

TWICE_SECONDS = 2.0
"""Two Ctrl-C at an empty prompt within this time leave."""

HELP = """\
/help    this text
/tools   the tools that the model has
/policy  the policy in force: files, defaults, rules
/undo    forget the last turn; asks whether the files that it changed are put back
/compact let the model summarize the conversation, to make room (the log keeps it)
/clear   forget the conversation (the log keeps it)
/exit    leave (also Ctrl-D, or Ctrl-C twice)

Ctrl-C stops a turn. A question is answered with y, with n, or with n and words that the model will read."""

COMMANDS = ("/help", "/tools", "/policy", "/undo", "/compact", "/clear", "/exit", "/quit")


def repl_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Talk until the person leaves; return the exit code. Raises HarnessError for what fails before the prompt."""
    if not terminal_is_there():
        raise UsageError("the prompt needs a terminal; in scripts and pipes use `harness run`")
    carried = _carried(arguments, environment)
    parts = Parts(arguments, environment, fallback="default")
    return Repl(parts, first_prompt=arguments.prompt, carried=carried).talk()


def _carried(arguments: Namespace, environment: Mapping[str, str]) -> Carried | None:
    """Return the conversation to go on with, if the person named one. Raises UsageError or LogError."""
    state, action = State.of(environment), arguments.action
    if not action and not arguments.resume:
        return None
    how = FORKED if action == "fork" else RESUMED
    name = arguments.session if action else None
    found = newest(state, here(arguments.cwd)) if name is None else named(state, name)
    carried = carried_from(state, found, how, turn=arguments.turn if action == "fork" else None)
    refuse_its_log(carried, arguments.log)
    return carried


class Repl:
    """One conversation at the terminal."""

    def __init__(self, parts: Parts, *, first_prompt: str | None, carried: Carried | None = None) -> None:
        self._parts = parts
        self._carried = carried
        self._turns = Turns(carried.found.session if carried else "")
        self._waiting = first_prompt
        self._console = RichConsole(
            sys.stdout, colour=wants_colour(sys.stdout, parts.environment), redactor=parts.redactor
        )
        self._lines: PromptSession[str] = PromptSession(history=_history(parts.state))
        parts.log.observers.append(self._console.record)
        parts.log.observers.append(self._turns.record)
        parts.on_output, parts.on_wait = self._console.live, self._console.countdown
        self._approver = terminal_approver(self._console, parts.interrupt, _confinement(ToolRegistry(parts.tools)))
        self._about = about_of(parts, "repl")
        self._agent = agent_of(parts, approver=self._approver, about=self._about, on_text=self._console.text)
        self._last_interrupt = 0.0
        self._notes: tuple[Line, ...] = tuple(Line(tone=Tone.QUIET, text=note) for note in parts.system.notes)
        self._last: RunResult | None = None

    def talk(self) -> int:
        """Read, run, repeat. Returns the exit code."""
        parts, console = self._parts, self._console
        session = self._start()
        parts.signals.install()
        console.line(f"harness: model {parts.model.name}, workspace {parts.workspace.root}")
        console.line(f"policy: {describe(parts.policy)}; confinement: {parts.level}; /help for help", Tone.QUIET)
        for note in self._notes:
            console.line(note.text, note.tone)
        code = Exit.DONE
        while (line := self._next_line()) is not None:
            if line.startswith("/"):
                left = self._command(line, session)
                if left:
                    break
            elif line:
                code = self._turn(line, session)
                if code is not Exit.DONE:
                    break
        if code is not Exit.LOG:
            self._agent.end(session, self._ending())
            close_log(parts.state, parts.log, sign_key=parts.settings.sign_key.value)
        console.line(pinned(parts.log), Tone.QUIET)
        return Exit.TERMINATED if parts.signals.terminated else code

    def _start(self) -> Session:
        """Begin the session, with the conversation that it goes on with. Raises LogError."""
        carried = self._carried
        if carried is None:
            return self._agent.start()
        self._notes += told(carried, self._about)
        self._parts.redactor.note(" ".join(carried.rebuilt.marks))
        return self._agent.start(carried=carried.messages(self._about), origin=carried.origin)

    def _ending(self) -> RunResult:
        """Return how the session ends: as its last turn did, unless the person simply left."""
        if self._parts.signals.terminated:
            return RunResult(stop=StopReason.INTERRUPTED, text="", detail="the program was told to end")
        if self._last is not None and self._last.stop is StopReason.GATE_ERROR:
            return self._last
        return RunResult(stop=StopReason.COMPLETED, text="")

    def _next_line(self) -> str | None:
        """Return what the person typed, or None when they leave."""
        if self._waiting is not None:
            line, self._waiting = self._waiting, None
            return line.strip()
        while not self._parts.signals.terminated:
            self._parts.interrupt.clear()
            try:
                with self._parts.interrupt:
                    return self._lines.prompt("> ", pre_run=self._warm_up).strip()
            except EOFError:
                return None
            except KeyboardInterrupt:
                now = time.monotonic()
                if now - self._last_interrupt < TWICE_SECONDS:
                    return None
                self._last_interrupt = now
                self._console.line("Ctrl-C again leaves", Tone.QUIET)
        return None

    def _warm_up(self) -> None:
        """Import openai while the person types: it takes longer than everything else together."""
        threading.Thread(target=self._parts.model.warm_up, daemon=True).start()

    def _turn(self, line: str, session: Session) -> Exit:
        self._parts.interrupt.clear()
        self._turns.begin(session)
        result = self._last = self._agent.run(line, session)
        self._console.end_text()
        self._tell(result)
        if result.stop is StopReason.LOG_ERROR:
            return Exit.LOG
        return Exit.INTERNAL if result.stop is StopReason.GATE_ERROR else Exit.DONE

    def _tell(self, result: RunResult) -> None:
        if result.stop is not StopReason.COMPLETED:
            self._console.line(
                visible_line(f"{result.stop.value.replace('_', ' ')}: {result.detail}", 2_000), Tone.WARNING
            )
        usage = result.usage
        tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out"
        requests = "1 request" if result.turns == 1 else f"{result.turns} requests"
        cost = f", {result.cost:.4f} dollars" if result.cost is not None else ""
        self._console.line(f"({requests}, {tokens}{cost})", Tone.QUIET)

    def _compact(self, session: Session) -> None:
        before = characters(session.messages[1:])
        self._console.line("asking the model for a summary", Tone.QUIET)
        problem = self._agent.compact(session)
        if problem:
            self._console.line(visible_line(f"nothing was summarized: {problem}", 1_000), Tone.WARNING)
            return
        after = characters(session.messages[1:])
        self._console.line(f"summarized: {before} characters before, {after} now; the log keeps all of it", Tone.QUIET)

    def _command(self, line: str, session: Session) -> bool:
        """Do what a /command says; return whether to leave."""
        word = line.split(maxsplit=1)[0].lower()
        if word in ("/exit", "/quit"):
            return True
        if word == "/help":
            self._console.line(HELP)
        elif word == "/tools":
            for spec in self._agent.registry.specs:
                self._console.line(f"{spec.name}: {spec.description}")
        elif word == "/policy":
            show_policy(self._console, self._agent.gate.policy)
        elif word == "/undo":
            take_back(self._turns, self._agent, session, self._parts, self._approver, self._console)
        elif word == "/compact":
            self._compact(session)
        elif word == "/clear":
            self._agent.change_history(session, "cleared", 0, len(session.messages) - 1)
            self._turns.forget()
            self._console.line("the conversation is forgotten; the log keeps it", Tone.QUIET)
        else:
            self._console.line(f"there is no command {word}{nearest(word, COMMANDS)}", Tone.WARNING)
        return False


def _confinement(registry: ToolRegistry) -> Callable[[str, Effects], str]:
    """Return what says what holds a call to its effects; also of what is asked about and is no tool of the model."""
    tools = {spec.name for spec in registry.specs}
    return lambda tool, effects: registry.confinement(tool, effects) if tool in tools else IN_PROCESS


def show_policy(console: RichConsole, policy: Policy) -> None:
    """Write the policy in force: its files, defaults and rules."""
    for source in policy.sources:
        note = "" if source.trusted else "  (not trusted: only what tightens counts)"
        console.line(f"{source.layer.value}: {source.path}  sha256 {source.sha256[:16]}{note}")
    for default in policy.defaults:
        tool = "any other tool" if default.tool == "default" else default.tool
        console.line(f"  {default.decision.word:8} {tool} by default  [{default.origin}]")
    for rule in policy.rules:
        console.line(f"  {rule.decision.word:8} {rule.label}  {rule.reason}")


def _history(state: State) -> History:
    """Return the file of earlier lines, made with mode 0600; without one where it cannot be written."""
    path = os.path.join(state.state, "history")
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
