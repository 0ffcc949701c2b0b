"""Measure `harness audit` over a long log against floors taken in the same run; a bench measures, it does not judge.

Usage: python bench/audit.py [--records N] [--log FILE]. Writes a log of a million records (900 MB) into a temporary folder,
or takes the one that --log names, and makes it there first if it is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

Fields: TypeAlias = dict[str, object]

HARNESS = [sys.executable, "-m", "harness"]
SCRIPT = os.path.join(os.path.dirname(sys.executable), "harness")
if os.path.exists(SCRIPT):
    HARNESS = [SCRIPT]
RECORDS = 1_000_000
CALLS_IN_A_SESSION = 200
FILLING = "def slug(text): return '-'.join(re.findall(r'[a-z0-9]+', text.lower()))\n"
_encode = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode

POLICY = "/home/ann/.config/harness/policy.toml"
RULES = tuple((f"rule-{n}", f"rule rule-{n} ({POLICY}:{20 + 9 * n})") for n in range(40))
TOOLS = ("bash", "read_file", "edit_file", "write_file")
DIGEST = hashlib.sha256(b"").hexdigest()


def long_log(path: str, records: int = RECORDS) -> None:
    """Write a log as many sessions would have written it, its chain and order good; always the same one."""
    chance = random.Random(6)
    previous, seq = "0" * 64, 0
    with open(path, "wb") as file:
        while seq < records:
            session = f"{chance.getrandbits(48):012x}"
            for kind, fields in _session(chance, (records - seq) - 1):
                seconds = seq / 20
                record = {
                    **fields, "v": 1, "seq": seq, "kind": kind, "session": session, "prev": previous,
                    "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1.7e9 + seconds)) + f".{seq % 20 * 50_000:06d}Z",
                    "mono_ns": int(seconds * 1e9),
                }  # fmt: skip
                line = _encode(record).encode("ascii")
                file.write(line + b"\n")
                previous, seq = hashlib.sha256(line).hexdigest(), seq + 1


def _session(chance: random.Random, left: int) -> Iterator[tuple[str, Fields]]:
    """Yield kinds and fields of one session: at most `left` records and its end."""
    started = {
        "harness": "0.1.0", "model": "m", "mode": "repl", "workspace": "/home/ann/project", "policy": "own",
        "policy_sha256": DIGEST, "policy_files": [], "tools": list(TOOLS), "system": "You are ...", "confinement": "full",
    }  # fmt: skip
    yield "session_started", started
    yield "user_message", {"text": "go on"}
    count = 2
    for call in range(1, CALLS_IN_A_SESSION + 1):
        records = list(_call(chance, call))
        if count + len(records) >= left:
            break
        count += len(records)
        yield from records
    yield "session_ended", {"stop": "completed", "detail": "", "input_tokens": 1, "output_tokens": 1, "counts": {}}


def _call(chance: random.Random, call: int) -> Iterator[tuple[str, Fields]]:
    tool, (rule, by) = chance.choice(TOOLS), chance.choice(RULES)
    decision = chance.choices(("auto", "confirm", "deny"), (80, 15, 5))[0]
    text = FILLING * chance.randint(1, 30)
    arguments = json.dumps({"path": f"src/{call}.py", "content": FILLING * chance.randint(1, 12)})
    digest = hashlib.sha256(arguments.encode()).hexdigest()
    about = {"call": call, "tool": tool, "arguments_sha256": digest}
    effects = {
        "network": False, "unasked": decision == "auto", "granted": ["."], "enforcement": "where possible",
        "read": [f"/home/ann/project/src/{call}.py"], "write": [f"/home/ann/project/src/{call}.py"], "named": [],
    }  # fmt: skip
    yield "model_request", {"turn": call, "messages": 2 * call}
    usage = {"input_tokens": 1000 + call, "output_tokens": 90, "retries": 0, "ms": chance.randint(200, 9000)}
    yield "model_response", {"turn": call, "text": text[:700], "calls": 1, "finish_reason": "tool_calls", **usage}
    yield "call_proposed", {**about, "turn": call, "step": 1, "id": f"call_{call}", "arguments": arguments}
    facets = [
        {"facet": f"{access} src/{call}.py", "kind": "PathAccess", "decision": decision, "by": by}
        for access in ("write", "read")
    ]
    yield "decision", {
        **about, "summary": f"src/{call}.py", "decision": decision, "source": "rule", "by": by, "rule": rule, "file": POLICY,
        "line": 0, "layer": "user", "reason": "The author says so.", "facets": facets, "facet_count": 2, "effects": effects,
        "policy_sha256": DIGEST,
    }  # fmt: skip
    answer = "yes"
    if decision == "confirm":
        answer = chance.choices(("yes", "no", "nobody"), (85, 10, 5))[0]
        yield "approval_asked", {"call": call, "shown_sha256": digest}
        seconds = round(chance.lognormvariate(1.0, 1.2), 3)
        yield "approval_answered", {"call": call, "answer": answer, "by": "person", "words": "", "seconds": seconds}
    end: Fields = {"call": call, "tool": tool}
    if decision == "deny" or answer != "yes":
        yield "outcome", {**end, "status": "denied", "content": f"Denied by {by}."}
        return
    yield "intent", {
        **about, "policy_sha256": DIGEST, "preview_sha256": digest, "effects": effects, "confinement": "landlock and seccomp",
        "cwd": "/home/ann/project",
    }  # fmt: skip
    status = chance.choices(("ok", "failed", "timeout"), (90, 9, 1))[0]
    yield "outcome", {
        **end, "status": status, "content": text, "duration_ms": chance.randint(1, 5000), "output_bytes": len(text),
        "truncated": False, "exit_code": 0 if status == "ok" else 1,
    }  # fmt: skip
