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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median
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
PARSE = """\
import json, sys
with open(sys.argv[1], "rb") as log:
    for line in log:
        json.loads(line)
"""
QUERY = "SELECT tool, status, count(*), sum(duration_ms) FROM records WHERE kind = 'outcome' GROUP BY ALL ORDER BY ALL"
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
    started: Fields = {
        "harness": "0.1.0", "model": "m", "mode": "repl", "workspace": "/home/ann/project", "policy": "own",
        "policy_sha256": DIGEST, "policy_files": [], "tools": list(TOOLS), "system": "You are ...", "confinement": "full",
    }  # fmt: skip
    yield "session_started", started
    yield "user_message", {"text": "go on"}
    written = 2
    counts: dict[str, int] = {}
    for call in range(1, CALLS_IN_A_SESSION + 1):
        records = list(_call(chance, call))
        if written + len(records) >= left:
            break
        written += len(records)
        for kind, fields in records:
            names = ["calls"] if kind == "call_proposed" else []
            names += [f"{field}_{fields[field]}" for field in ("decision", "answer", "status") if field in fields]
            for name in names:
                counts[name] = counts.get(name, 0) + 1
            yield kind, fields
    yield "session_ended", {"stop": "completed", "detail": "", "input_tokens": 1, "output_tokens": 1, "counts": counts}


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


def wall(command: Sequence[str], folder: str) -> tuple[float, int]:
    """Return the seconds that a process takes, and the most memory in MB that it held at once."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, cwd=folder, env={**os.environ, "XDG_STATE_HOME": folder}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exited with {process.returncode}")
    return time.perf_counter() - started, usage.ru_maxrss // 1024


def row(name: str, value: str, floor: str, goal: str) -> None:
    """Print one line of the table."""
    print(f"{name:44} {value:>20} {floor:>28}   {goal}")


def start_up(log: str, folder: str, runs: int = 11) -> None:
    """A question to a small log against the bare interpreter."""
    commands = {"pass": [sys.executable, "-c", "pass"]}
    commands |= {words[0]: [*HARNESS, "audit", *words] for words in (("list",), ("stats", log))}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(wall(command, folder)[0])
    floor = median(times.pop("pass"))
    for name, seconds in times.items():
        ratio = f"{median(seconds) / floor:.2f} times pass ({floor * 1e3:.0f} ms)"
        row(f"start: audit {name}", f"{median(seconds) * 1e3:.0f} ms", ratio, "<= 2.5 times")


def counting(log: str, folder: str, records: int) -> None:
    """The statistics of the long log, counted here and by DuckDB, against parsing every line of it."""
    floor = wall([sys.executable, "-c", PARSE, log], folder)[0]
    goals = {"stats": "< 10 s", "stats --sql": "< 2 s", "stats --sql QUERY": ""}
    commands: dict[str, tuple[str, ...]] = {
        "stats": (),
        "stats --sql": ("--sql",),
        "stats --sql QUERY": ("--sql", QUERY),
    }
    for name, words in commands.items():
        try:
            seconds, memory = wall([*HARNESS, "audit", "stats", log, *words], folder)
        except SystemExit as error:
            row(name, str(error)[-40:], "", "")
            continue
        against = f"{seconds / floor:.2f} times json ({floor:.1f} s)"
        row(f"{name}, {records} records", f"{seconds:.2f} s, {memory} MB", against, goals[name])


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--log", help="the long log: kept, and made first where it is missing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, log = os.path.join(folder, "small.jsonl"), arguments.log or os.path.join(folder, "long.jsonl")
        long_log(small, 30)
        if not os.path.exists(log):
            long_log(log, arguments.records)
        print(f"{log}: {os.path.getsize(log) // 1_000_000} MB\n")
        start_up(small, folder)
        counting(os.path.abspath(log), folder, arguments.records)


if __name__ == "__main__":
    main()
