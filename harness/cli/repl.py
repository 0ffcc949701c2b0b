"""The prompt: a person, a model, and every call in between asked about or traced; never used without a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from harness.agent import Agent, RunResult, Session
from harness.cli.approvals import terminal_approver, terminal_is_there
from harness.cli.console import wants_colour
from harness.cli.exits import Exit
from harness.cli.policies import describe
from harness.cli.rich_console import RichConsole
from harness.cli.setup import Parts, close_log
from harness.cli.state import State
from harness.cli.trace import Tone
from harness.errors import UsageError
from harness.messages import StopReason
from harness.policy import Policy
from harness.policy_file import nearest
from harness.tool import ToolRegistry
from harness.visible import visible_line

TWICE_SECONDS = 2.0
"""Two Ctrl-C at an empty prompt within this time leave."""

HELP = """\
/help    this text
/tools   the tools that the model has
/policy  the policy in force: files, defaults, rules
/clear   forget the conversation (the log keeps it)
/exit    leave (also Ctrl-D, or Ctrl-C twice)

Ctrl-C stops a turn. A question is answered with y, with n, or with n and words that the model will read."""

COMMANDS = ("/help", "/tools", "/policy", "/clear", "/exit", "/quit")


def repl_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Talk until the person leaves; return the exit code. Raises HarnessError for what fails before the prompt."""
    if not terminal_is_there():
        raise UsageError("the prompt needs a terminal; in scripts and pipes use `harness run`")
    parts = Parts(arguments, environment, fallback="default")
    return Repl(parts, first_prompt=arguments.prompt).talk()


class Repl:
    """One conversation at the terminal."""

    def __init__(self, parts: Parts, *, first_prompt: str | None) -> None:
        self._parts = parts
        self._waiting = first_prompt
        self._console = RichConsole(sys.stdout, colour=wants_colour(sys.stdout, parts.environment))
        self._lines: PromptSession[str] = PromptSession(history=_history(parts.state))
        parts.log.observers.append(self._console.record)
        parts.on_output = self._console.live
        self._agent = Agent(
            model=parts.model,
            tools=parts.tools,
            policy=parts.policy,
            approver=terminal_approver(self._console, parts.interrupt, ToolRegistry(parts.tools).confinement),
            log=parts.log,
            limits=parts.limits,
            about={"mode": "repl", "argv": list(sys.argv), "workspace": parts.workspace.root},
            on_text=self._console.text,
            interrupt=parts.interrupt,
        )
        self._last_interrupt = 0.0
        self._last: RunResult | None = None

    def talk(self) -> int:
        """Read, run, repeat. Returns the exit code."""
        parts, console = self._parts, self._console
        session = self._agent.start()
        parts.signals.install()
        console.line(f"harness: model {parts.model.name}, workspace {parts.workspace.root}")
        console.line(f"policy: {describe(parts.policy)}; confinement: {parts.level}; /help for help", Tone.QUIET)
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
            close_log(parts.state, parts.log)
        console.line(f"log: {parts.log.path}", Tone.QUIET)
        return Exit.TERMINATED if parts.signals.terminated else code

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
        self._console.line(f"({result.turns} requests, {tokens})", Tone.QUIET)

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
        elif word == "/clear":
            del session.messages[1:]
            self._console.line("the conversation is forgotten; the log keeps it", Tone.QUIET)
        else:
            self._console.line(f"there is no command {word}{nearest(word, COMMANDS)}", Tone.WARNING)
        return False


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
