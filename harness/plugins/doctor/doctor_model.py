"""`harness doctor --model`: test a model with one small request for one tool call. The call is never run."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Protocol, assert_never, runtime_checkable

from harness.actions import JsonValue
from harness.errors import ModelError, ModelFault, ToolError
from harness.gate.arguments import parse_arguments
from harness.loop.reply_calls import no_answer
from harness.messages import FinishReason, Message, ModelResponse, Role
from harness.model import Model, Retry, ToolSpec
from harness.models.endpoint import Quirks, is_local, shown_address
from harness.models.exchange import Timing
from harness.models.text_calls import TextCalls
from harness.record import Record, field_names, replace
from harness.session.config.provider import model_from, not_for, withhold
from harness.session.config.settings import DEFAULT, Settings, settings_from
from harness.session.exits import Exit
from harness.session.state import workspace_folder
from harness.terminal.console import FinishedOutput
from harness.terminal.styles import Tone
from harness.terminal.tables import labelled
from harness.text.visible import visible_line
from harness.tool_kinds import BASH


class WantedCall(Record):
    """The tool call that the model is to make, in one of the two forms: as a function call or as text."""

    tool: ToolSpec
    arguments: Mapping[str, JsonValue]
    """The requested arguments."""
    prompt: str
    uncalled: str
    """Advice if the model calls no tool."""
    refused: str = ""
    """Advice if the server refuses the request."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the request."""
        system = Message(role=Role.SYSTEM, content="You answer by calling tools.")
        return (system, Message(role=Role.USER, content=self.prompt))


_AS_TEXT = "or the model cannot call tools at all: try --calls text"
BY_FUNCTIONS = WantedCall(
    tool=ToolSpec(
        name="report",
        description="Report that tool calls work.",
        parameters={
            "type": "object",
            "properties": {"status": {"type": "string", "description": "Always `ok`."}},
            "required": ["status"],
            "additionalProperties": False,
        },
    ),
    arguments={"status": "ok"},
    prompt='Call the tool `report` once, with the status "ok". Say nothing else.',
    uncalled=(
        "the server has to parse this model's calls: vLLM wants --enable-auto-tool-choice and --tool-call-parser, "
        f"llama-server --jinja, Ollama and LM Studio a model whose template knows tools; {_AS_TEXT}"
    ),
    refused=f"the server may not take tools; {_AS_TEXT}",
)
BY_TEXT = WantedCall(
    tool=ToolSpec(
        name=BASH.name,
        description="",
        parameters={
            "type": "object",
            "properties": {BASH.subject: {"type": "string"}},
            "required": [BASH.subject],
            "additionalProperties": False,
        },
    ),
    arguments={BASH.subject: "echo ok"},
    prompt="Run the command `echo ok`, once. Say nothing else.",
    uncalled="the model does not write a fenced bash block when it is asked for one: take another model",
)
"""The call for `--calls text`."""


class ModelFinding(Record):
    """The result for one subject."""

    subject: str
    tone: Tone
    text: str
    advice: str = ""
    """Advice to fix the problem, if any."""


class Asked(Record):
    """Result of the request."""

    reply: ModelResponse | None
    error: ModelError | None
    seconds: float
    first_text_seconds: float | None
    """Seconds until the first text. `None` if the reply had none."""
    again: tuple[str, ...] = ()
    """Reasons of retries."""
    quirks: Quirks | None = None
    """The server's peculiarities after the request. `None` if the adapter does not report them."""
    timing: Timing = Timing()
    """Times of the last attempt, if the adapter reports them."""


def findings(settings: Settings, result: Asked) -> Iterator[ModelFinding]:
    """Yield the findings, in the order of a request's steps. No side effects."""
    request = _call_form(settings)
    if result.error is not None:
        yield from _failed(settings, result.error, request)
    if result.reply is not None:
        yield _address(settings)
        yield _key(settings)
        yield _good("model", f"{settings.model.value} answered")
        yield from _asking(settings, result.quirks)
        yield from _call(result.reply, request)
        yield _end(result.reply)
        yield _usage(result.reply)
        if result.reply.echo:
            yield _good("reasoning", "comes with the reply, and goes back with the next request")
    for reason in result.again:
        yield ModelFinding(subject="sent again", tone=Tone.WARNING, text=reason)
    yield _time(result)


def _good(subject: str, text: str) -> ModelFinding:
    return ModelFinding(subject=subject, tone=Tone.GOOD, text=text)


def _bad(subject: str, text: str, advice: str = "") -> ModelFinding:
    return ModelFinding(subject=subject, tone=Tone.BAD, text=text, advice=advice)


def _call_form(settings: Settings) -> WantedCall:
    return BY_TEXT if settings.calls.value == "text" else BY_FUNCTIONS


def _failed(settings: Settings, error: ModelError, request: WantedCall) -> Iterator[ModelFinding]:
    """Yield the steps that the request completed, and the failed one."""
    error_text = str(error)
    match error.fault:
        case ModelFault.SETTINGS:
            yield _bad("settings", error_text)
        case ModelFault.CONNECTION | ModelFault.TIMEOUT | ModelFault.TIME:
            advice = "is the server running, and the address right? `harness config show --origin` says who named it"
            yield _bad("address", error_text, advice)
        case ModelFault.AUTHENTICATION:
            yield _address(settings)
            yield _bad("key", error_text, f"the key is taken from {settings.key_variable.value or 'no variable'}")
        case ModelFault.NOT_FOUND:
            yield _address(settings)
            yield _bad(
                "model", error_text, "a base URL usually ends in /v1; the model's name is what the server calls it"
            )
        case ModelFault.SERVER:
            yield _address(settings)
            yield _bad("server", error_text, "try again later")
        case ModelFault.QUOTA:
            yield _address(settings)
            yield _bad("quota", error_text)
        case ModelFault.CONTEXT | ModelFault.CONTENT | ModelFault.REQUEST:
            yield _address(settings)
            yield _bad("request", error_text, request.refused)
        case ModelFault.REPLY:
            yield _address(settings)
            yield _bad("reply", error_text)
        case _:
            assert_never(error.fault)


def _address(settings: Settings) -> ModelFinding:
    url, reached = settings.base_url.value, f"{shown_address(settings.base_url.value)} was reached"
    title = f" ({settings.preset.title})" if settings.preset else ""
    if settings.key_set and url.lower().startswith("http:") and not is_local(url):
        advice = "use https, or a server on this machine"
        return ModelFinding(
            subject="address", tone=Tone.WARNING, text=f"{reached}{title}, unencrypted: so is the key", advice=advice
        )
    return _good("address", reached + title)


def _key(settings: Settings) -> ModelFinding:
    if settings.key_set:
        return _good("key", f"the one in {settings.key_variable.value} was accepted")
    return _good("key", "none was sent, and none was wanted")


def _asking(settings: Settings, quirks: Quirks | None) -> Iterator[ModelFinding]:
    """Yield whether the reply was streamed, and the server's peculiarities that were learned."""
    if quirks is None:
        return
    if quirks.stream:
        yield _good("streaming", "the reply came as a stream")
    else:
        advice = "text appears only when a reply is whole; servers with --jinja or a tool parser stream calls too"
        text = "replies are asked for as a whole: the server does not stream calls"
        yield ModelFinding(subject="streaming", tone=Tone.WARNING, text=text, advice=advice)
    defaults = settings.preset.quirks if settings.preset else Quirks()
    for name in field_names(Quirks):
        if getattr(defaults, name) != getattr(quirks, name):
            yield ModelFinding(
                subject="learned", tone=Tone.PLAIN, text=f"{name} = {getattr(quirks, name)}, by a refusal"
            )


def _call(reply: ModelResponse, request: WantedCall) -> Iterator[ModelFinding]:
    """Yield the findings about the tool call and its arguments."""
    calls = [call for call in reply.tool_calls if call.name == request.tool.name]
    if not calls and reply.tool_calls:
        yield _bad("tool call", f"the model called {reply.tool_calls[0].name!r}, which it was not offered")
        return
    if not calls:
        text = (
            f"none: the answer came as text: {visible_line(reply.text.strip(), 100)!r}"
            if reply.text.strip()
            else "none"
        )
        yield _bad("tool call", text, request.uncalled)
        return
    if len(reply.tool_calls) > 1:
        yield ModelFinding(
            subject="tool call", tone=Tone.WARNING, text=f"{len(reply.tool_calls)} calls where one was asked for"
        )
    else:
        yield _good("tool call", "came as a call")
    if calls[0].problem:
        yield _bad("arguments", calls[0].problem)
        return
    try:
        arguments = parse_arguments(calls[0].arguments, request.tool)
    except ToolError as error:
        yield _bad("arguments", str(error), "the model or the server writes calls that cannot be read")
        return
    if arguments == request.arguments:
        yield _good("arguments", "as asked for")
    else:
        text = f"can be read, but are not those that were asked for: {visible_line(calls[0].arguments, 100)}"
        yield ModelFinding(subject="arguments", tone=Tone.WARNING, text=text)


def _end(reply: ModelResponse) -> ModelFinding:
    match reply.finish_reason:
        case FinishReason.DONE:
            return _good("end", "the reply was finished")
        case FinishReason.REASONING | FinishReason.NO_CALLS | FinishReason.FUNCTION_CALL:
            return _bad("end", no_answer(reply))
        case FinishReason.LENGTH:
            return _bad("end", "the reply was cut at its greatest length", "raise the server's limit on output tokens")
        case FinishReason.CONTENT_FILTER:
            return _bad("end", "the provider's content filter ended the reply")
        case _:
            assert_never(reply.finish_reason)


def _usage(reply: ModelResponse) -> ModelFinding:
    if reply.usage.unreported:
        advice = (
            "limits of tokens and of cost cannot be held with this server: a run with one ends after its first reply"
        )
        return ModelFinding(subject="usage", tone=Tone.WARNING, text="not reported", advice=advice)
    return _good("usage", f"{reply.usage.input_tokens} tokens in, {reply.usage.output_tokens} out")


def _time(result: Asked) -> ModelFinding:
    steps = {
        "connected": result.timing.connected,
        "first event": result.timing.first_event,
        "first text": result.first_text_seconds,
        "all of it": result.seconds,
    }
    text = ", ".join(f"{step} after {seconds * 1000:.0f} ms" for step, seconds in steps.items() if seconds is not None)
    return ModelFinding(subject="time", tone=Tone.PLAIN, text=text)


ASKED_ONCE = 1
"""Maximum number of attempts. A waiting user can repeat the command."""


@runtime_checkable
class Learning(Protocol):
    """An adapter that reports the peculiarities of the server that it has learned."""

    @property
    def quirks(self) -> Quirks:
        """The initial peculiarities, and those learned from refusals."""
        ...


@runtime_checkable
class Timed(Protocol):
    """An adapter that reports the times of its last attempt."""

    @property
    def timing(self) -> Timing:
        """The times of its steps."""
        ...


def doctor_model(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Send one request and print the findings. Return the exit code: 0 usable, 2 wrong settings, 6 not usable.

    Raises UsageError for invalid settings, before any request.
    """
    settings = settings_from(arguments, environment, workspace_folder(arguments.cwd))
    once = replace(settings, attempts=replace(settings.attempts, value=ASKED_ONCE))
    withhold(not_for(once))
    model = model_from(once, environment)
    try:
        model.warm_up()  # so that the import of the SDK does not count as time of the server
        result = ask(model, _call_form(settings))
    finally:
        model.close()
    model_findings = tuple(findings(settings, result))
    code = _code(result, model_findings)
    if arguments.json:
        sys.stdout.write(json.dumps(_fields(settings, result, model_findings, code), indent=2) + "\n")
        return code
    console = FinishedOutput(environment)
    console.table(labelled(_finding_lines(settings, model_findings)))
    can = "can use this model" if code is Exit.DONE else "cannot use this model as things are"
    console.line(f"\nThe harness {can}.", Tone.GOOD if code is Exit.DONE else Tone.BAD)
    return code


def ask(adapter: Model, request: WantedCall) -> Asked:
    """Send the request, and return the result with its times."""
    model = TextCalls(adapter) if request is BY_TEXT else adapter
    start = time.monotonic()
    first: list[float] = []
    again: list[str] = []

    def on_text(delta: str) -> None:
        if delta and not first:
            first.append(time.monotonic() - start)

    def on_retry(retry: Retry) -> None:
        again.append(retry.reason)

    reply, error = None, None
    try:
        reply = model.complete(request.messages, (request.tool,), on_text=on_text, on_retry=on_retry)
    except ModelError as failure:
        error = failure
    return Asked(
        reply=reply,
        error=error,
        seconds=time.monotonic() - start,
        first_text_seconds=first[0] if first else None,
        again=tuple(again),
        quirks=adapter.quirks if isinstance(adapter, Learning) else None,
        timing=adapter.timing if isinstance(adapter, Timed) else Timing(),
    )


def _code(result: Asked, model_findings: tuple[ModelFinding, ...]) -> Exit:
    if result.error is not None and result.error.fault is ModelFault.SETTINGS:
        return Exit.USAGE
    return Exit.MODEL if any(finding.tone is Tone.BAD for finding in model_findings) else Exit.DONE


def _finding_lines(settings: Settings, model_findings: tuple[ModelFinding, ...]) -> Iterator[tuple[str, str, Tone]]:
    """Yield the request, and each finding with advice: a label, a text, and its tone."""
    by = "" if settings.api.origin == DEFAULT else f", from {settings.api.origin}"
    form = ", with calls as text" if settings.calls.value == "text" else ""
    yield "asked", f"{settings.model.value} by the {settings.api.value.value} API{by}{form}", Tone.PLAIN
    for finding in model_findings:
        yield finding.subject, finding.text, finding.tone
        if finding.advice:
            yield "", finding.advice, Tone.PLAIN


def _fields(
    settings: Settings, result: Asked, model_findings: tuple[ModelFinding, ...], code: Exit
) -> dict[str, JsonValue]:
    """Return the findings as one object."""
    return {
        "model": settings.model.value,
        "api": settings.api.value.value,
        "address": shown_address(settings.base_url.value),
        "provider": settings.preset.name if settings.preset else None,
        "findings": [
            {
                "about": finding.subject,
                "outcome": finding.tone.value,
                "said": finding.text,
                "advice": finding.advice or None,
            }
            for finding in model_findings
        ],
        "fault": result.error.fault.value if result.error else None,
        "connected_ms": _milliseconds(result.timing.connected),
        "first_event_ms": _milliseconds(result.timing.first_event),
        "first_text_ms": _milliseconds(result.first_text_seconds),
        "total_ms": _milliseconds(result.seconds),
        "usable": code is Exit.DONE,
        "exit_code": int(code),
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
