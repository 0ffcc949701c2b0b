"""Logs written by hand, record by record, as the harness would write them: what each test then spoils is its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.actions import JsonValue

Fields = Mapping[str, JsonValue]
Step = tuple[str, Fields]

ARGUMENTS = '{"command": "ls -l"}'
DIGEST = hashlib.sha256(ARGUMENTS.encode()).hexdigest()
"""Of these arguments, and of policies and previews, where it matters only that it is the same."""
EFFECTS: dict[str, JsonValue] = {
    "network": False, "unasked": False, "granted": [], "enforcement": "landlock", "read": None, "write": [],
}  # fmt: skip
FACETS: list[JsonValue] = [
    {"facet": "ls -l", "kind": "Command", "decision": "auto", "by": "model of ls, readers (ci.toml:12)"},
    {"facet": "read .", "kind": "PathAccess", "decision": "auto", "by": "default for reading (ci.toml:9)"},
]


def sha256(text: str) -> str:
    """Return the digest of a text as the log has it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def started(**more: JsonValue) -> Step:
    fields: dict[str, JsonValue] = {
        "harness": "0.1.0",
        "mode": "run",
        "workspace": "/srv/shop",
        "policy_sha256": DIGEST,
    }
    return "session_started", {**fields, **more}


def ended(**more: JsonValue) -> Step:
    return "session_ended", {"stop": "completed", "detail": "", **more}


def proposed(call: int, tool: str = "bash", arguments: str = ARGUMENTS) -> Step:
    fields: dict[str, JsonValue] = {"call": call, "turn": 1, "step": call, "id": f"c{call}", "tool": tool}
    return "call_proposed", {**fields, "arguments": arguments, "arguments_sha256": DIGEST}


def decided(call: int, decision: str = "auto", tool: str = "bash") -> Step:
    fields: dict[str, JsonValue] = {"call": call, "tool": tool, "decision": decision, "by": "readers (ci.toml:12)"}
    fields |= {"reason": "It only reads.", "arguments_sha256": DIGEST, "summary": "ls -l", "source": "rule"}
    fields |= {"rule": "readers", "file": "ci.toml", "line": 12, "layer": "given", "facets": FACETS, "facet_count": 2}
    return "decision", {**fields, "effects": EFFECTS, "policy_sha256": DIGEST}


def intended(call: int, tool: str = "bash", **more: JsonValue) -> Step:
    fields: dict[str, JsonValue] = {"call": call, "tool": tool, "arguments_sha256": DIGEST, "policy_sha256": DIGEST}
    return "intent", {**fields, "preview_sha256": DIGEST, "effects": EFFECTS, "confinement": "landlock", **more}


def done(call: int, content: str = "total 0", tool: str = "bash", **more: JsonValue) -> Step:
    fields: dict[str, JsonValue] = {"call": call, "tool": tool, "status": "ok", "content": content}
    return "outcome", {
        **fields,
        "duration_ms": 3,
        "output_bytes": len(content),
        "truncated": False,
        "exit_code": 0,
        **more,
    }


def one_call(call: int, content: str = "total 0") -> tuple[Step, ...]:
    return proposed(call), decided(call), intended(call), done(call, content)


def a_session(calls: int = 1) -> tuple[Step, ...]:
    steps = [step for call in range(1, calls + 1) for step in one_call(call)]
    return (started(), ("user_message", {"text": "list it"}), *steps, ended())


def lines_of(
    steps: Iterable[Step],
    *,
    session: str = "0123456789ab",
    after: Sequence[bytes] = (),
    mono_ns: int = 1_000,
    own_digests: bool = True,
) -> list[bytes]:
    """Return the lines (without newlines) of `steps`, chained to the last line of `after`; with `own_digests` other arguments
    than `ARGUMENTS` have theirs in the place of DIGEST.
    """
    lines: list[bytes] = []
    digests: dict[str, str] = {}
    previous = hashlib.sha256(after[-1]).hexdigest() if after else "0" * 64
    for number, (kind, fields) in enumerate(steps):
        seq = len(after) + number
        record = {
            "v": 1,
            "seq": seq,
            "time": f"2024-05-01T10:{number // 60 % 60:02d}:{number % 60:02d}.000000Z",
            "mono_ns": mono_ns + seq,
        }
        record |= {"session": session, "kind": kind, "prev": previous, **fields}
        if kind == "call_proposed":
            digests[str(fields.get("call"))] = sha256(str(fields.get("arguments")))
        if own_digests and fields.get("arguments_sha256") == DIGEST:
            record["arguments_sha256"] = digests.get(str(fields.get("call")), DIGEST)
        line = encoded(record)
        previous = hashlib.sha256(line).hexdigest()
        lines.append(line)
    return lines


def encoded(record: Mapping[str, JsonValue] | object) -> bytes:
    """Return a record as the harness writes it."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def rechained(lines: Sequence[bytes], start: int = 0) -> list[bytes]:
    """Return the lines with `seq` and `prev` made right from `start` on: what a forger would do."""
    out = list(lines[:start])
    for line in lines[start:]:
        record = json.loads(line)
        record["seq"], record["prev"] = len(out), hashlib.sha256(out[-1]).hexdigest() if out else "0" * 64
        out.append(encoded(record))
    return out


def head_of(lines: Sequence[bytes]) -> str:
    return hashlib.sha256(lines[-1]).hexdigest()


def write(path: Path, lines: Sequence[bytes], tail: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines) + tail)
    return path
