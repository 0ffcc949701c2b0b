"""OTLP traces: one trace per session, in the JSON encoding of the OpenTelemetry Protocol.

A line is one ExportTraceServiceRequest, as collectors read files (OpenTelemetry Protocol File Exporter); each line can
be sent alone. IDs are hexadecimal, 64-bit numbers are texts, enums are numbers (OTLP specification, "JSON Protobuf
Encoding"). The spans follow the GenAI semantic conventions: `invoke_agent` for a session, `chat` for a model request,
`execute_tool` for a call, even if it did not run. The decision is in `harness.*`. Contents are exported only on
request, as the conventions recommend.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from harness.actions import JsonValue
from harness.audit.calls import CallStanding, LoggedCall, standing_of, text
from harness.log.clocks import nanoseconds
from harness.log.order import LogRecord
from harness.plugins.insight.export.row import Cell, Export, encoded, plain, row

SPANS_A_REQUEST = 100
CHARACTERS_A_REQUEST = 1_000_000
"""Maximum number of characters per request, far below the limit of 20 MiB that the protocol recommends."""

_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_OTHER_KINDS = ("session_started", "model_request", "model_response", "error", "session_ended")
_OF_SESSIONS = (
    "kind session time harness model server mode policy policy_sha256 confinement host user".split()
)  # not the whole first record, since it has the policy texts
_OF_CALLS = (
    "call_id summary decision decided_by source rule rule_file rule_line layer reason policy_sha256 asked answer answered_by "
    "answer_words waited_seconds edited_from edited_to fate status exit_code output_bytes truncated changed_path "
    "before_sha256 after_sha256 network confinement arguments_hmac unjudged"
).split()
"""Columns of row.py that are exported as `harness.<name>`."""
_CONTENT = frozenset(("summary", "reason", "answer_words", "changed_path"))
"""Columns that may reveal the arguments."""

Span: TypeAlias = dict[str, JsonValue]
Attribute: TypeAlias = Cell | list[str]


def exported(export: Export) -> Iterator[str]:
    """Yield OTLP requests, one per line: first sessions and their model requests, then the calls. Raises LogError."""
    batches = _Batches()
    for log, record in export.logs.records(_OTHER_KINDS):
        yield from batches.take(log, record, export)
    yield from batches.end(export)
    for call in export.logs.calls():
        yield from batches.add(call.log, call.session, call.started, call_span(call, export))
    yield from batches.flush()


class _Open:
    """A session that has not ended yet."""

    def __init__(self, started: LogRecord) -> None:
        self.started = {name: started[name] for name in _OF_SESSIONS if name in started}
        self.last = started
        self.request: LogRecord = {}
        """Model request that has no reply yet. Empty if there is none."""


class _Batches:
    """Collects the spans of a session into OTLP requests, and keeps the open sessions."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Open] = {}
        self._resource: list[JsonValue] = []
        self._spans: list[str] = []
        """Encoded spans of the next OTLP request."""
        self._size = 0

    def take(self, log: str, record: LogRecord, export: Export) -> Iterator[str]:
        """Add a record that is not about a call. Yield the OTLP requests that are full."""
        kind, session = str(record["kind"]), str(record["session"])
        open_session = self._open.setdefault((log, session), _Open(record))
        open_session.last = record
        if kind == "model_request":
            if open_session.request:
                yield from self.add(
                    log,
                    session,
                    open_session.started,
                    chat_span(open_session.started, open_session.request, {}, export),
                )
            open_session.request = record
        elif kind == "model_response" or (kind == "error" and "retry_seconds" not in record and open_session.request):
            yield from self.add(
                log,
                session,
                open_session.started,
                chat_span(open_session.started, open_session.request, record, export),
            )
            open_session.request = {}
        elif kind == "session_ended":
            yield from self._close(log, session, export)

    def _close(self, log: str, session: str, export: Export) -> Iterator[str]:
        open_session = self._open.pop((log, session))
        if open_session.request:
            yield from self.add(
                log, session, open_session.started, chat_span(open_session.started, open_session.request, {}, export)
            )
        yield from self.add(
            log, session, open_session.started, root_span(open_session.started, open_session.last, export)
        )

    def end(self, export: Export) -> Iterator[str]:
        """Yield the spans of sessions without a recorded end."""
        for log, session in list(self._open):
            yield from self._close(log, session, export)

    def add(self, log: str, session: str, started: LogRecord, span: Span) -> Iterator[str]:
        """Add a span. First yield the pending OTLP request if it is full or belongs to another session."""
        resource = _resource(log, session, started)
        if resource != self._resource or len(self._spans) >= SPANS_A_REQUEST or self._size > CHARACTERS_A_REQUEST:
            yield from self.flush()
            self._resource = resource
        text = encoded(span).rstrip("\n")
        self._spans.append(text)
        self._size += len(text)

    def flush(self) -> Iterator[str]:
        """Yield the pending OTLP request unless it is empty, since the protocol advises against empty requests."""
        if self._spans:
            around = encoded(
                {
                    "resourceSpans": [
                        {
                            "resource": {"attributes": self._resource},
                            # A stable name for readers of exports; no module has this name any more.
                            "scopeSpans": [{"scope": {"name": "harness.audit.export.otlp"}, "spans": []}],
                        }
                    ]
                }
            )
            before, after = around.rsplit("[]", 1)
            yield f"{before}[{','.join(self._spans)}]{after}"
        self._spans, self._size = [], 0


def root_span(started: LogRecord, last: LogRecord, export: Export) -> Span:
    """Return the span of a session."""
    attributes: dict[str, Attribute] = {
        **_common("invoke_agent", started, export),
        "gen_ai.agent.name": "harness",
        "gen_ai.agent.version": export.text(started, "harness"),
        "server.address": export.text(started, "server"),
        "harness.mode": export.text(started, "mode"),
        "harness.policy.policy": export.text(started, "policy"),
        "harness.policy_sha256": export.text(started, "policy_sha256"),
        "harness.confinement": export.text(started, "confinement"),
    }
    has_ended = last["kind"] == "session_ended"
    if has_ended:
        attributes["harness.stop"] = export.text(last, "stop")
        attributes["gen_ai.usage.input_tokens"] = export.integer(last, "input_tokens")
        attributes["gen_ai.usage.output_tokens"] = export.integer(last, "output_tokens")
    else:
        attributes["harness.session_open"] = True
    session = str(started["session"])
    span = _span(session, _root_id(session), "invoke_agent harness", _INTERNAL, started, last, attributes, export)
    del span["parentSpanId"]
    return span


def chat_span(started: LogRecord, request: LogRecord, reply: LogRecord, export: Export) -> Span:
    """Return the span of one model request. `reply` is a model_response, the error that ended the request, or empty."""
    first = request or reply
    attributes: dict[str, Attribute] = {
        **_common("chat", started, export),
        "gen_ai.usage.input_tokens": export.integer(reply, "input_tokens"),
        "gen_ai.usage.output_tokens": export.integer(reply, "output_tokens"),
        "gen_ai.usage.cache_read.input_tokens": export.integer(reply, "cached_tokens"),
        "gen_ai.usage.cache_creation.input_tokens": export.integer(reply, "cache_write_tokens"),
        "harness.turn": export.integer(first, "turn"),
        "harness.retries": export.integer(reply, "retries"),
        "harness.purpose": export.text(first, "purpose"),
    }
    if reply.get("kind") == "error":
        attributes["error.type"] = export.text(reply, "fault") or "_OTHER"
    elif reply:
        attributes["gen_ai.response.finish_reasons"] = [export.text(reply, "finish_reason") or "unknown"]
        if export.content and reply.get("text"):
            part = {"type": "text", "content": export.text(reply, "text")}
            message = {"role": "assistant", "parts": [part], "finish_reason": export.text(reply, "finish_reason")}
            attributes["gen_ai.output.messages"] = encoded([message]).strip()
    else:
        attributes["harness.reply"] = "none in the log"
    session = str(first["session"])
    identity = _id(f"chat:{session}:{first.get('seq')}", 8)
    name = f"chat {attributes['gen_ai.request.model'] or ''}".strip()
    return _span(session, identity, name, _CLIENT, first, reply or first, attributes, export)


def call_span(call: LoggedCall, export: Export) -> Span:
    """Return the span of one call: from its intent (or its proposal, without an intent) to its outcome."""
    fields = row(call, export)
    attributes: dict[str, Attribute] = {
        **_common("execute_tool", call.started or {"session": call.session}, export),
        "gen_ai.tool.name": fields["tool"],
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": fields["call_id"],
        "error.type": _error_type(call),
        "harness.call": fields["call"],
    }
    attributes |= {
        f"harness.{name}": fields[name]
        for name in _OF_CALLS
        if name != "call_id" and (export.content or name not in _CONTENT)
    }
    if export.content:
        attributes["gen_ai.tool.call.arguments"] = fields["arguments"]
        attributes["gen_ai.tool.call.result"] = fields["content"]
    first = call.intent or call.proposed or call.decision or call.outcome
    last = call.outcome or call.intent or call.answered or call.decision or first
    identity = _id(f"call:{call.session}:{call.number}", 8)
    name = f"execute_tool {fields['tool'] or ''}".strip()
    return _span(call.session, identity, name, _INTERNAL, first, last, attributes, export)


def _error_type(call: LoggedCall) -> str | None:
    """Return the error type of a call, mostly its status. `None` for a call with the status `ok`."""
    if standing_of(call) in (CallStanding.UNKNOWN, CallStanding.UNACCOUNTED):
        return standing_of(call).value
    if not call.outcome:
        return "no_end"
    status = text(call.outcome, "status")
    return None if status == "ok" else plain(status)[:60] or "_OTHER"


def _common(operation: str, started: LogRecord, export: Export) -> dict[str, Attribute]:
    """Return the attributes that all spans have.

    The provider's name is always `openai`, since every server is reached by OpenAI's protocol.
    """
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": plain(str(started.get("session"))),
        "gen_ai.request.model": export.text(started, "model"),
    }


def _span(
    session: str,
    identity: str,
    name: str,
    kind: int,
    first: LogRecord,
    last: LogRecord,
    attributes: Mapping[str, Attribute],
    export: Export,
) -> Span:
    start, stop = nanoseconds(first.get("time")), nanoseconds(last.get("time"))
    if start is None or stop is None:
        export.note("time cannot be read")
        start = stop = start if start is not None else stop or 0
    if stop < start:
        export.note("the clock was set back during a span")
        stop = start
    span: Span = {
        "traceId": _id(f"session:{session}", 16),
        "spanId": identity,
        "parentSpanId": _root_id(session),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(stop),
        "attributes": _attributes(attributes),
    }
    error = attributes.get("error.type")
    if error:
        span["status"] = {"code": _ERROR, "message": str(error)}
    return span


def _resource(log: str, session: str, started: LogRecord) -> list[JsonValue]:
    return _attributes(
        {
            "service.name": "harness",
            "service.version": plain(text(started, "harness")) or None,
            "host.name": plain(text(started, "host")) or None,
            "user.name": plain(text(started, "user")) or None,
            "harness.log": plain(log),
            "harness.loop.run": plain(session),
        }
    )


def _attributes(values: Mapping[str, Attribute]) -> list[JsonValue]:
    """Return KeyValues (opentelemetry/proto/common/v1). A value of `None` is left out."""
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: Attribute) -> Span:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [{"stringValue": item} for item in value]}}
        case _:
            return {"stringValue": value}


def _root_id(session: str) -> str:
    return _id(f"root:{session}", 8)


def _id(source: str, size: int) -> str:
    """Return an ID of `size` bytes in hexadecimal. It is the same in every export of the log."""
    return hashlib.sha256(source.encode("utf-8", "backslashreplace")).hexdigest()[: size * 2]
