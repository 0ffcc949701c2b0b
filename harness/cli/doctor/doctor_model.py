"""`harness doctor --model`: one tiny request with one tool, and what of the reply works; the call is never run."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harness.actions import JsonValue
from harness.cli.config.provider import model_from, not_for, withhold
from harness.cli.config.settings import DEFAULT, Settings, settings_from
from harness.cli.console import Console, wants_colour
from harness.cli.doctor.model_findings import REPORT, Asked, ModelFinding, findings
from harness.cli.exits import Exit
from harness.cli.state import here
from harness.cli.text_lines import paragraph, row
from harness.cli.trace import Line, Tone
from harness.errors import ModelError, ModelFault
from harness.messages import Message, Role
from harness.model import Model, Retry
from harness.models.endpoint import Quirks, shown_address
from harness.models.exchange import Timing
from harness.record import replace

if TYPE_CHECKING:
    from argparse import Namespace

MESSAGES = (
    Message(role=Role.SYSTEM, content="You answer by calling tools."),
    Message(role=Role.USER, content='Call the tool `report` once, with the status "ok". Say nothing else.'),
)
ASKED_ONCE = 1
"""Tries: a person who waits can ask again."""


@runtime_checkable
class Learning(Protocol):
    """An adapter that says how it has come to ask the server."""

    @property
    def quirks(self) -> Quirks:
        """What was known at first, and what the server's refusals have taught."""
        ...


@runtime_checkable
class Timed(Protocol):
    """An adapter that says how fast its last try was."""

    @property
    def timing(self) -> Timing:
        """The steps of it."""
        ...


def doctor_model(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Send one request, say what was found, and return the exit code: 0 usable, 2 settings, 6 not usable.

    Raises UsageError for settings that do not make sense; then nothing was sent.
    """
    settings = settings_from(arguments, environment, here(arguments.cwd))
    once = replace(settings, attempts=replace(settings.attempts, value=ASKED_ONCE))
    withhold(not_for(once))
    model = model_from(once, environment)
    try:
        model.warm_up()  # what the import of the SDK takes is no time of the server's
        asked = ask(model)
    finally:
        model.close()
    found = tuple(findings(settings, asked))
    code = _code(asked, found)
    if arguments.json:
        import json

        sys.stdout.write(json.dumps(_fields(settings, asked, found, code), indent=2) + "\n")
        return code
    console = Console(sys.stdout, colour=wants_colour(sys.stdout, environment))
    for line in _lines(settings, found, code):
        console.line(line.text, line.tone)
    return Exit.BROKEN_PIPE if console.broken else code


def ask(model: Model) -> Asked:
    """Send the request and return what came of it, the time measured."""
    begun = time.monotonic()
    first: list[float] = []
    again: list[str] = []

    def on_text(delta: str) -> None:
        if delta and not first:
            first.append(time.monotonic() - begun)

    def on_retry(retry: Retry) -> None:
        again.append(retry.reason)

    reply, error = None, None
    try:
        reply = model.complete(MESSAGES, (REPORT,), on_text=on_text, on_retry=on_retry)
    except ModelError as failure:
        error = failure
    return Asked(
        reply=reply,
        error=error,
        seconds=time.monotonic() - begun,
        first_text_seconds=first[0] if first else None,
        again=tuple(again),
        quirks=model.quirks if isinstance(model, Learning) else None,
        timing=model.timing if isinstance(model, Timed) else Timing(),
    )


def _code(asked: Asked, found: tuple[ModelFinding, ...]) -> Exit:
    if asked.error is not None and asked.error.fault is ModelFault.SETTINGS:
        return Exit.USAGE
    return Exit.MODEL if any(finding.tone is Tone.BAD for finding in found) else Exit.DONE


def _lines(settings: Settings, found: tuple[ModelFinding, ...], code: Exit) -> Iterator[Line]:
    by = "" if settings.api.origin == DEFAULT else f", from {settings.api.origin}"
    yield from row("asked", f"{settings.model.value} by the {settings.api.value.value} API{by}")
    for finding in found:
        yield from row(finding.about, finding.said, finding.tone)
        if finding.advice:
            yield from row("", finding.advice)
    yield Line(tone=Tone.PLAIN, text="")
    if code is Exit.DONE:
        yield from paragraph("The harness can use this model.", Tone.GOOD)
    else:
        yield from paragraph("The harness cannot use this model as things are.", Tone.BAD)


def _fields(settings: Settings, asked: Asked, found: tuple[ModelFinding, ...], code: Exit) -> dict[str, JsonValue]:
    """Return what was found as one object."""
    return {
        "model": settings.model.value,
        "api": settings.api.value.value,
        "address": shown_address(settings.base_url.value),
        "provider": settings.preset.name if settings.preset else None,
        "findings": [
            {
                "about": finding.about,
                "outcome": finding.tone.value,
                "said": finding.said,
                "advice": finding.advice or None,
            }
            for finding in found
        ],
        "fault": asked.error.fault.value if asked.error else None,
        "connected_ms": _milliseconds(asked.timing.connected),
        "first_event_ms": _milliseconds(asked.timing.first_event),
        "first_text_ms": _milliseconds(asked.first_text_seconds),
        "total_ms": _milliseconds(asked.seconds),
        "usable": code is Exit.DONE,
        "exit_code": int(code),
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
