"""`harness run`: one prompt, nobody to ask, never a read of the terminal; the exit code tells how it went."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping

from harness.approval import deny_all
from harness.cli.console import Console, wants_colour
from harness.cli.exits import Exit, exit_code
from harness.cli.policies import describe
from harness.cli.prompting import prompt_of
from harness.cli.resuming import RESUMED, carried_from, named, refuse_its_log, told
from harness.cli.setup import Parts, about_of, agent_of, close_log, pinned
from harness.cli.state import State
from harness.cli.trace import Tone
from harness.errors import LogError
from harness.log_order import LogRecord
from harness.messages import RunResult, StopReason
from harness.record import replace
from harness.visible import visible, visible_line


def run_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Run one prompt and return the exit code. Raises HarnessError for what fails before the run begins."""
    prompt = prompt_of(arguments)
    state = State.of(environment)
    carried = carried_from(state, named(state, arguments.resume), RESUMED) if arguments.resume else None
    if carried is not None:
        refuse_its_log(carried, arguments.log)
    parts = Parts(arguments, environment, fallback="readonly")
    if carried is not None:
        parts.redactor.note(" ".join(carried.rebuilt.marks))
    about = about_of(parts, "run")
    console = Console(sys.stderr, colour=wants_colour(sys.stderr, environment), redactor=parts.redactor)
    if arguments.policy is None:
        console.line("harness: no --policy was given; the shipped readonly policy holds (reading only)", Tone.WARNING)
    output = _Output(arguments.output, parts.interrupt.request_later)
    if not arguments.quiet:
        _trace(console, parts)
    for line in told(carried, about) if carried else ():
        if line.tone is Tone.WARNING or not arguments.quiet:
            console.line(line.text, line.tone)
    parts.log.observers.append(output.record)
    parts.signals.install()
    agent = agent_of(parts, approver=deny_all, about=about, done_marker=arguments.done_marker)
    result = agent.run(
        prompt,
        carried=carried.messages(about) if carried else (),
        origin=carried.origin if carried else None,
    )
    code = exit_code(
        result.stop,
        refusals=result.refusals,
        allow_refusals=arguments.allow_refusals,
        terminated=parts.signals.terminated,
    )
    try:
        close_log(parts.state, parts.log, sign_key=parts.settings.sign_key.value)
    except LogError as error:
        code, result = Exit.LOG, replace(result, stop=StopReason.LOG_ERROR, detail=str(error))
    _tell_end(console, parts, result, code)
    output.finish(_summary(result, code, parts), result)
    return Exit.BROKEN_PIPE if output.broken else code


def _trace(console: Console, parts: Parts) -> None:
    """Say what holds, and from here on what happens."""
    console.line(f"policy: {describe(parts.policy)}; confinement: {parts.level}", Tone.QUIET)
    for note in parts.system.notes:
        console.line(note, Tone.QUIET)
    parts.log.observers.append(console.record)
    parts.on_output = console.live
    parts.on_wait = console.countdown


def _tell_end(console: Console, parts: Parts, result: RunResult, code: Exit) -> None:
    """Say how the run ended, and what pins its log."""
    if result.stop is not StopReason.COMPLETED or code is Exit.LOG:
        console.line(visible_line(f"harness: {result.stop.value.replace('_', ' ')}: {result.detail}", 2_000), Tone.BAD)
    elif result.refusals:
        calls = "1 call was" if result.refusals == 1 else f"{result.refusals} calls were"
        console.line(f"harness: done, but {calls} refused", Tone.WARNING)
    console.line(pinned(parts.log), Tone.QUIET)


def _summary(result: RunResult, code: Exit, parts: Parts) -> dict[str, object]:
    return {
        "answer": result.text,
        "stop": result.stop.value,
        "detail": result.detail,
        "exit_code": int(code),
        "turns": result.turns,
        "refusals": result.refusals,
        "usage": {"input_tokens": result.usage.input_tokens, "output_tokens": result.usage.output_tokens},
        "cost": result.cost,
        "model": parts.model.name,
        "policy": {"name": parts.policy.name, "sha256": parts.policy.sha256},
        "log": parts.log.path,
        "session": parts.log.session,
        "records": parts.log.count,
        "head": parts.log.head,
    }


def _marked(text: str) -> str:
    """Return the answer for a terminal, on which the trace is written too: no line of it can pass for one of ours."""
    return "\n".join(f"  {line}" if line else "" for line in visible(text).split("\n"))


class _Output:
    """Stdout, in one of three forms: the answer, one JSON object, or the log's records as they happen."""

    def __init__(self, form: str, on_broken: Callable[[], None]) -> None:
        """`on_broken` is called once, when nobody reads any more."""
        self.broken = False
        self._on_broken = on_broken
        self._form = form

    def record(self, record: LogRecord) -> None:
        if self._form == "jsonl":
            self._write(json.dumps(record, sort_keys=True, separators=(",", ":")))

    def finish(self, summary: Mapping[str, object], result: RunResult) -> None:
        if self._form == "json":
            self._write(json.dumps(summary, indent=2))
        elif self._form == "text" and result.text:
            self._write(_marked(result.text) if sys.stdout.isatty() else result.text)

    def _write(self, text: str) -> None:
        if self.broken:
            return
        try:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except (OSError, ValueError):
            self.broken = True
            self._on_broken()
            # What is still buffered must not raise again when Python exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
