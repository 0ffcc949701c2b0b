"""The row of a call in an export: flat fields with stable names, and a count of values of unexpected types.

A log may hold values of any type. An unexpected one becomes JSON text in a text column, and is left out of a number
column; both are counted, and the exporting command reports the count.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

from harness.actions import JsonValue
from harness.audit.calls import AuditedLogs, LoggedCall, call_number
from harness.log.order import LogRecord
from harness.log.reader import finite, whole_number

Cell: TypeAlias = str | int | float | bool | None
MOST_TROUBLES = 50
"""Maximum number of kinds of problems counted separately. A forged log may have any number of kinds."""
OTHER_TROUBLE = "other trouble"


class Export:
    """An export, and its unexpected values."""

    def __init__(self, logs: AuditedLogs, *, key: bytes = b"", content: bool = False) -> None:
        """Initialize an export of `logs`.

        `key` is the installation's key; without it, digests of arguments are left out. `content` adds arguments and
        results.
        """
        self.logs = logs
        self.key = key
        self.content = content
        self.troubles: Counter[str] = Counter()

    def note(self, trouble: str) -> None:
        """Count a value that could not be exported as intended."""
        is_countable = trouble in self.troubles or len(self.troubles) < MOST_TROUBLES
        self.troubles[trouble if is_countable else OTHER_TROUBLE] += 1

    def text(self, record: LogRecord, name: str) -> str | None:
        """Return a text field of a record. `None` if it is missing or null, JSON if it has another type."""
        value = record.get(name)
        if value is None or isinstance(value, str):
            return None if value is None else plain(value)
        self.note(f"{name} is no text")
        return _json(value)

    def integer(self, record: LogRecord, name: str) -> int | None:
        """Return a whole number of a record. `None` if it is missing, null or of another type."""
        number = whole_number(record.get(name))
        if number is None and record.get(name) is not None:
            self.note(f"{name} is no whole number")
        return number

    def number(self, record: LogRecord, name: str) -> float | None:
        """Return a number of a record. `None` if it is missing, null or of another type."""
        number = finite(record.get(name))
        if number is None and record.get(name) is not None:
            self.note(f"{name} is no number")
        return number

    def flag(self, record: LogRecord, name: str) -> bool | None:
        """Return a boolean of a record. `None` if it is missing, null or of another type."""
        value = record.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.note(f"{name} is neither true nor false")
        return None

    def part(self, record: LogRecord, name: str) -> LogRecord:
        """Return an object in a record. Empty if it is missing, null or of another type."""
        value = record.get(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.note(f"{name} is no object")
        return {}

    def arguments_hmac(self, call: LoggedCall) -> str | None:
        """Return `hmac-sha256:` and the HMAC-SHA256 (RFC 2104), under the key, of the arguments' hexadecimal SHA-256.

        A plain SHA-256 would allow guessing short arguments, and so the secrets masked in them. In one installation, equal
        arguments have equal HMACs. `None` without a key, or if the log has no digest.
        """
        sha256 = call.proposed.get("arguments_sha256") or call.decision.get("arguments_sha256")
        if not self.key or not isinstance(sha256, str):
            return None
        return "hmac-sha256:" + hmac.new(self.key, plain(sha256).encode(), hashlib.sha256).hexdigest()


def row(call: LoggedCall, export: Export) -> Mapping[str, Cell]:
    """Return one call as flat fields. Every field is present; `None` if the log lacks its value."""
    started, proposed, decision = call.started, call.proposed, call.decision
    answer, intent, outcome = call.answered, call.intent, call.outcome
    if not proposed:
        export.note("a call without its proposal")
    effects = export.part(intent or decision, "effects")
    fields: dict[str, Cell] = {
        "log": plain(call.log),
        "session": plain(call.session),
        "call": _number_of(call, export),
        "turn": export.integer(proposed, "turn"),
        "step": export.integer(proposed, "step"),
        "time": export.text(proposed or decision, "time"),
        "ended": export.text(outcome, "time"),
        "call_id": export.text(proposed, "id"),
        "tool": plain(call.tool),
        "summary": export.text(decision, "summary"),
        "decision": export.text(decision, "decision"),
        "decided_by": export.text(decision, "by"),
        "reason": export.text(decision, "reason"),
        "source": export.text(decision, "source"),
        "rule": export.text(decision, "rule"),
        "rule_file": export.text(decision, "file"),
        "rule_line": export.integer(decision, "line"),
        "layer": export.text(decision, "layer"),
        "policy": export.text(started, "policy"),
        "policy_sha256": export.text(decision, "policy_sha256") or export.text(started, "policy_sha256"),
        "asked": bool(call.asked or answer),
        "answer": export.text(answer, "answer"),
        "answered_by": export.text(answer, "by"),
        "answer_words": export.text(answer, "words"),
        "waited_seconds": export.number(answer, "seconds"),
        "edited_from": export.integer(proposed, "edited_from"),
        "edited_to": export.integer(answer, "edited_to"),
        "fate": call.fate.value,
        "status": export.text(outcome, "status"),
        "duration_ms": export.integer(outcome, "duration_ms"),
        "exit_code": export.integer(outcome, "exit_code"),
        "error_code": export.text(outcome, "error_code"),
        "output_bytes": export.integer(outcome, "output_bytes"),
        "truncated": export.flag(outcome, "truncated"),
        "changed_path": export.text(outcome, "changed_path"),
        "before_sha256": export.text(outcome, "before_sha256"),
        "after_sha256": export.text(outcome, "after_sha256"),
        "network": export.flag(effects, "network"),
        "confinement": export.text(intent, "confinement"),
        "arguments_hmac": export.arguments_hmac(call),
        "arguments_characters": export.integer(proposed, "arguments_characters"),
        "mode": export.text(started, "mode"),
        "workspace": export.text(started, "workspace"),
        "model": export.text(started, "model"),
        "user": export.text(started, "user"),
        "host": export.text(started, "host"),
        "harness": export.text(started, "harness"),
        "unjudged": export.text(outcome, "why") if call.is_unjudged else None,
    }
    if export.content:
        fields["arguments"] = export.text(proposed, "arguments")
        fields["content"] = export.text(outcome, "content")
    return fields


def _number_of(call: LoggedCall, export: Export) -> int | str | None:
    """Return the number of a call. In a malformed log, the value in its place as text.

    An unjudged call has the number of the call in whose place it ran, or `None`.
    """
    if call.is_unjudged and "call" not in call.outcome:
        return None
    number = call_number(call)
    if isinstance(number, int):
        return number
    if call.number == "0":  # the call without records, whose row is the header
        return 0
    export.note("call is no whole number")
    return plain(call.number)


def plain(text: str) -> str:
    """Return `text` as valid Unicode: each lone surrogate becomes its escape, such as `\\udc80`."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def encoded(value: object) -> str:
    """Return a value as one line of JSON in ASCII."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False) + "\n"


def _json(value: JsonValue) -> str:
    try:
        return json.dumps(value, sort_keys=True)
    except (RecursionError, ValueError):
        return "(nested too deeply)"
