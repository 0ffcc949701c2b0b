"""The first run without a configured model: show the ways to get one, and offer the demo."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from harness.app.command_line import parser_for
from harness.app.demo.demo_command import demo_command
from harness.errors import HarnessError
from harness.models.presets import PRESETS
from harness.session.config.provider import NO_PROVIDER
from harness.session.config.settings import config_path
from harness.session.exits import Exit
from harness.terminal.console import Look
from harness.terminal.keys import Event, Key, Keyboard
from harness.terminal.screen import Screen
from harness.text.visible import visible_line

_LEAVES = ("q", "esc", "end")


def first_run(
    error: HarnessError, environment: Mapping[str, str], screen: Screen, *, dead_seconds: float
) -> int | None:
    """Show the ways to get a model, and offer the demo, if `error` says that no model was named and no key is set.

    Keys count only after `dead_seconds` without a key, so that earlier keys do not answer the question. Enter does
    nothing.

    Returns the exit code of the demo, or that of a usage error if the user quits. Returns `None` for any other error,
    which is not handled. Call it only at a terminal (`terminal_is_there`). Raises HarnessError as the demo does.
    """
    if str(error) != NO_PROVIDER:
        return None
    for line in _ways(environment):
        screen.line(line)
    if _wants_demo(screen.look, dead_seconds):
        return _demo(environment)

    return Exit.USAGE


def _ways(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the text. Lines have at most 78 characters, except for paths and names."""
    yield "harness: no model to talk to yet. There are three ways to one:"
    yield ""
    yield "1. a key, in a variable of the environment"
    yield "     export OPENAI_API_KEY=...   and then:  harness"
    yield "     export MISTRAL_API_KEY=...  and:  harness --provider mistral --model NAME"
    yield "     (or of: anthropic, azure, deepseek, gemini, groq, openrouter, xai ...)"
    yield "2. a server on this machine, without a key"
    yield "     harness --provider ollama --model NAME"
    yield "     harness --base-url http://localhost:8080/v1 --model NAME"
    yield "3. the configuration, for good"
    yield f"     {visible_line(config_path(environment), 500)}"
    yield '     provider = "ollama"'
    yield '     model = "NAME"'
    for preset in PRESETS.values():
        if preset.key_variable and environment.get(preset.key_variable, "").strip():
            yield ""
            yield f"{preset.key_variable} is set: harness --provider {preset.name} --model NAME"
    yield ""
    yield "d = play the demo now: a scripted model, no key, no network;  q = leave"


def _wants_demo(look: Look, dead_seconds: float) -> bool:
    """Wait for the key d, q or Esc. Return whether it was d. False at the end of the input."""

    def brackets(switch: str) -> None:
        if look.repaints:
            sys.stdout.write(switch)
            sys.stdout.flush()

    try:
        with Keyboard(sys.stdin.fileno(), brackets=brackets) as keyboard:
            if keyboard.rest(dead_seconds) is not None:
                return False
            while True:
                came = keyboard.next()
                if came is Event.END or came is Event.STOP:
                    return False
                if isinstance(came, Key) and came.text.lower() in ("d", *_LEAVES):
                    return came.text.lower() == "d"
    except OSError:  # the terminal is gone
        return False


def _demo(environment: Mapping[str, str]) -> int:
    return demo_command(parser_for("demo").parse_args([]), environment)
