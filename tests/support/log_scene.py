"""What tests that write an action log without an agent share: records of which a test says only what it is about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from forged_logs import sha256

from harness.actions import JsonValue
from harness.log.action_log import ActionLog
from harness.log.order import LogRecord
from harness.log.reader import NO_PREVIOUS
from harness.log.schema import RECORDS
from harness.log.verify import Verification, verify
from harness.policy.policy import Policy

Step = tuple[str, Mapping[str, JsonValue]]
"""A kind, and fields."""

DIGEST = hashlib.sha256(b"").hexdigest()
"""Of every argument, policy and preview in a record that was filled in: they agree, where a test says nothing else."""
_PLAIN: Mapping[str, JsonValue] = {
    "text": "",
    "count": 0,
    "whole": 0,
    "number": 0,
    "flag": False,
    "digest": DIGEST,
    "effects": {
        "network": False, "unasked": False, "granted": [], "enforcement": "landlock", "read": None, "write": [],
    },
}  # fmt: skip


def unsynced(descriptor: int) -> None:
    """Stand for fdatasync(2) where a log on the disk is not what a test is about: it waits for none."""


def begun(log: ActionLog, policy: Policy) -> ActionLog:
    """Begin a session under `policy`, and return the log: without one, no call may run."""
    log.append("session_started", {"harness": "test", "policy_sha256": policy.sha256})
    return log


def proved(path: str, head: str | None = None) -> Verification:
    """Return what verifying a log showed of its records; not how many bytes, sessions and policies there were."""
    found = verify(path, head)
    return Verification(
        records=found.records,
        head=found.head,
        broken_line=found.broken_line,
        problem=found.problem,
        torn=found.torn,
        unknown_calls=found.unknown_calls,
        open_sessions=found.open_sessions,
        passed_head=found.passed_head,
    )


def filled(kind: str, fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return `fields`, and plain values for what a record of that kind must have besides."""
    table = RECORDS.get(kind, {})
    made = {name: _plain_value(word) for name, word in table.items() if not name.endswith("?")}
    if kind == "decision" and fields.get("decision") != "none":  # what was judged has parts, and may do something
        made |= {"facet_count": 1, "effects": _PLAIN["effects"]}
    if "policy_sha256?" in table and fields.get("decision") != "none":  # what was judged was judged by some policy
        made["policy_sha256"] = DIGEST
    return made | dict(fields)


def _plain_value(word: str) -> JsonValue:
    if word.endswith("|null"):
        return None
    if word.startswith("list of "):
        return []
    return word.split()[2] if word.startswith("one of ") else _PLAIN[word]


def append_filled(log: ActionLog, steps: Iterable[Step]) -> list[LogRecord]:
    """Write `steps` with the real writer, filled in; return the records as they were written."""
    return [log.append(kind, filled(kind, fields)) for kind, fields in steps]


def forged(steps: Sequence[Step], *, session: str = "s") -> list[bytes]:
    """Return lines, newlines included, in the right form and with the right chain: only what they say can be wrong.

    A step's fields are filled in, and count for more than what the log says of itself. DIGEST gives way to the digest of a
    call's arguments.
    """
    previous, lines = NO_PREVIOUS, []
    digests: dict[str, str] = {}
    for seq, (kind, fields) in enumerate(steps):
        common = {
            "v": 1, "seq": seq, "time": "1970-01-01T00:00:00.000000Z", "mono_ns": seq, "session": session, "kind": kind,
            "prev": previous,
        }  # fmt: skip
        record = {**common, **filled(kind, fields)}
        call = str(record.get("call"))
        if kind == "call_proposed":
            digests[call] = sha256(str(record["arguments"]))
        if record.get("arguments_sha256") == DIGEST:
            record["arguments_sha256"] = digests.get(call, DIGEST)
        line = encoded(record)
        previous = digest(line)
        lines.append(line + b"\n")
    return lines


def encoded(record: Mapping[str, object]) -> bytes:
    """Return a record in the form in which logs hold it: JSON in ASCII, sorted, without blanks."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode("ascii")


def digest(line: bytes) -> str:
    """Return what the line after `line` holds as `prev`."""
    return hashlib.sha256(line).hexdigest()
