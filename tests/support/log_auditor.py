"""An auditor who knows the contract of the log's records and not a line of the harness: reads raw lines, says what is wrong.

Written apart from harness/log/order.py and harness/log/verify.py on purpose: what checks them must not be them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

BEGUN = {"ok", "failed", "timeout", "interrupted", "crashed"}
NOT_BEGUN = {"invalid", "denied", "blocked", "not_run"}
OF_CALLS = {"call_proposed", "decision", "approval_asked", "approval_answered", "intent", "outcome"}

Record = dict[str, Any]


class Call:
    """All records of one call, by kind, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.of: dict[str, list[Record]] = {kind: [] for kind in OF_CALLS}

    def one(self, kind: str) -> Record | None:
        return self.of[kind][0] if self.of[kind] else None

    @property
    def ran(self) -> bool:
        return bool(self.of["intent"])

    @property
    def is_unknown(self) -> bool:
        return self.ran and not self.of["outcome"]

    def breaches(self, session: Session, *, whole: bool) -> Iterator[str]:
        """Yield what the records of this call alone show; `whole`: its session has ended."""
        for kind, records in self.of.items():
            if len(records) > 1:
                yield f"{len(records)} records {kind}"
        proposed, decision, intent, outcome = map(self.one, ("call_proposed", "decision", "intent", "outcome"))
        if proposed is None:
            yield "was never proposed"
            return
        if whole and (decision is None or (outcome is None and intent is None)):
            yield "lacks its decision or its end"
        order = [proposed, decision, self.one("approval_asked"), self.one("approval_answered"), intent, outcome]
        places = [record["seq"] for record in order if record is not None]
        if places != sorted(places):
            yield "has its records in another order than the gate goes"
        if "arguments_characters" not in proposed and "masked" not in proposed:
            text = proposed["arguments"].encode("utf-8", "surrogatepass")
            if hashlib.sha256(text).hexdigest() != proposed["arguments_sha256"]:
                yield "was proposed with other arguments than its digest says"
        yield from self._digests(session, proposed, decision, intent)
        by_grant = decision is not None and decision["decision"] == "auto" and decision["layer"] == "session"
        if by_grant and decision is not None and decision["rule"] not in session.granted_at(decision["seq"]):
            yield f"runs by {decision['rule']}, which was not granted then"
        if by_grant and decision is not None and decision["rule"] in session.asleep_at(decision["seq"]):
            yield f"runs by {decision['rule']}, which slept then"
        yield from self._asking(decision)
        if intent is not None and not self._permitted(decision, intent):
            yield "ran without a decision before it that permits it"
        if outcome is not None:
            yield from self._end(decision, intent, outcome)

    def _digests(
        self, session: Session, proposed: Record, decision: Record | None, intent: Record | None
    ) -> Iterator[str]:
        for record in (decision, intent):
            if record is None:
                continue
            if record["arguments_sha256"] != proposed["arguments_sha256"]:
                yield f"its {record['kind']} is about other arguments"
            if record["tool"] != proposed["tool"]:
                yield f"its {record['kind']} is about another tool"
            if record.get("decision") != "none" and record["policy_sha256"] != session.policy_at(record["seq"]):
                yield f"its {record['kind']} is of another policy"

    def _asking(self, decision: Record | None) -> Iterator[str]:
        asked, answered = self.one("approval_asked"), self.one("approval_answered")
        if asked is not None and (decision is None or decision["decision"] != "confirm"):
            yield "was asked about although nothing had to be confirmed"
        if answered is not None and asked is None:
            yield "was answered and never asked about"

    def _permitted(self, decision: Record | None, intent: Record) -> bool:
        if decision is None or decision["seq"] > intent["seq"]:
            return False
        if decision["decision"] == "auto":
            return True
        answered = self.one("approval_answered")
        return (
            decision["decision"] == "confirm"
            and answered is not None
            and answered["seq"] < intent["seq"]
            and answered["answer"] == "yes"
        )

    def _end(self, decision: Record | None, intent: Record | None, outcome: Record) -> Iterator[str]:
        status = outcome["status"]
        if (status in BEGUN) != (intent is not None):
            yield f"ended {status}, and its intent is {'there' if intent else 'missing'}"
        if status not in BEGUN | NOT_BEGUN:
            yield f"ended in no known way: {status}"
        match (decision or {}).get("decision"):
            case "none" if status not in ("invalid", "not_run"):
                yield f"was never judged, and ended {status}"
            case "deny" if status not in ("denied", "not_run"):
                yield f"was denied, and ended {status}"
            case "block" if status != "blocked":
                yield f"was blocked, and ended {status}"
            case _:
                pass


class Session:
    """All records of one session."""

    def __init__(self, started: Record) -> None:
        self.started = started
        self.ended: Record | None = None
        self.calls: dict[object, Call] = {}
        self.clock = started["mono_ns"]
        self.policies: list[Record] = [started]
        self.grants: list[Record] = []
        self.places: list[Record] = []

    def policy_at(self, seq: int) -> object:
        """Return the digest of the policy that was in force when a record was written."""
        return [record["policy_sha256"] for record in self.policies if record["seq"] < seq][-1]

    def granted_at(self, seq: int) -> set[str]:
        """Return the names of the grants that were in force when a record was written."""
        in_force: set[str] = set()
        for record in self.grants:
            if record["seq"] < seq:
                in_force = (
                    in_force - {record["grant"]} if record["change"] == "revoked" else in_force | {record["grant"]}
                )
        return in_force

    def asleep_at(self, seq: int) -> set[str]:
        """Return the names of the grants that slept when a record was written."""
        asleep: set[str] = set()
        for record in sorted((*self.grants, *self.places), key=lambda one: one["seq"]):
            if record["seq"] >= seq:
                break
            if record["kind"] == "grant":
                asleep = asleep - {record["grant"]} | ({record["grant"]} if record.get("asleep") else set())
            elif record["kind"] == "places_changed":
                asleep |= set(record["grants"])
            elif record["answer"] != "nobody":
                asleep -= set(record["grants"])
        return asleep

    def grant_breaches(self) -> Iterator[str]:
        for grant in self.grants:
            name, in_force = grant["grant"], self.granted_at(grant["seq"])
            if (grant["change"] == "revoked") != (name in in_force):
                yield f"{name} is {grant['change']} out of turn"
            if grant["change"] == "added":
                answered = self.calls[grant["call"]].one("approval_answered") if grant["call"] in self.calls else None
                if answered is None or answered["answer"] != "yes" or "scope" not in answered:
                    yield f"{name} was added, and nobody said so"

    def expected_counts(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for call in self.calls.values():
            counts["calls"] += len(call.of["call_proposed"])
            counts.update(f"decision_{record['decision']}" for record in call.of["decision"])
            counts.update(f"answer_{record['answer']}" for record in call.of["approval_answered"])
            counts.update(f"status_{record['status']}" for record in call.of["outcome"])
        return dict(counts)

    def breaches(self) -> Iterator[str]:
        yield from self.grant_breaches()
        for call in self.calls.values():
            yield from (f"call {call.name} {breach}" for breach in call.breaches(self, whole=bool(self.ended)))
            answered = call.one("approval_answered")
            edited_to = None if answered is None else answered.get("edited_to")
            if (answered is not None and answered["answer"] == "edit") != (edited_to is not None):
                yield f"call {call.name} was edited and does not say into which, or the other way round"
            if edited_to is not None and edited_to in self.calls:
                heir = self.calls[edited_to].one("call_proposed")
                if heir is None or heir.get("edited_from") != call.name:
                    yield f"call {edited_to} does not say that it was made of {call.name}"
            proposed = call.one("call_proposed")
            source = None if proposed is None else proposed.get("edited_from")
            if source is not None:
                first = self.calls[source].one("approval_answered")
                if first is None or first.get("edited_to") != call.name:
                    yield f"call {call.name} says that it was made of {source}, which knows nothing of it"
        if self.ended is not None and self.ended["counts"] != self.expected_counts():
            yield f"it ends with the counts {self.ended['counts']}, not {self.expected_counts()}"


class Audit:
    """What a log says, read by somebody else."""

    def __init__(self, lines: list[bytes]) -> None:
        """Take the raw lines, newlines included; the last one may be torn."""
        self.torn = bool(lines) and not lines[-1].endswith(b"\n")
        self.sessions: dict[str, Session] = {}
        self.records: list[Record] = []
        self._found: list[str] = []
        previous = "0" * 64
        for seq, line in enumerate(lines[:-1] if self.torn else lines):
            record: Record = json.loads(line)
            if (record["v"], record["seq"], record["prev"]) != (1, seq, previous):
                self._found.append(f"record {seq} does not follow from the one before")
            previous = hashlib.sha256(line[:-1]).hexdigest()
            self.records.append(record)
            self._take(record)
        self.head = previous

    def _take(self, record: Record) -> None:
        name, kind = record["session"], record["kind"]
        if kind == "session_started":
            if name in self.sessions:
                self._found.append(f"session {name} begins twice")
            self.sessions[name] = Session(record)
            return
        session = self.sessions.get(name)
        if session is None or session.ended is not None:
            self._found.append(f"record {record['seq']} is of a session that is not open")
            return
        if record["mono_ns"] < session.clock:
            self._found.append(f"record {record['seq']} was written before the one before it")
        session.clock = record["mono_ns"]
        if kind == "session_ended":
            session.ended = record
        elif kind == "policy_changed":
            session.policies.append(record)
        elif kind == "grant":
            session.grants.append(record)
        elif kind in ("places_changed", "places_answered"):
            session.places.append(record)
        elif kind in OF_CALLS:
            call = session.calls.setdefault(record["call"], Call(record["call"]))
            call.of[kind].append(record)

    @property
    def breaches(self) -> list[str]:
        """Everything that is wrong."""
        return [*self._found, *(breach for session in self.sessions.values() for breach in session.breaches())]

    @property
    def calls(self) -> list[tuple[str, Call]]:
        return [(name, call) for name, session in self.sessions.items() for call in session.calls.values()]

    @property
    def unknown(self) -> set[str]:
        """Calls that may have run, as `session:call`."""
        return {f"{name}:{call.name}" for name, call in self.calls if call.is_unknown}

    @property
    def open(self) -> set[str]:
        return {name for name, session in self.sessions.items() if session.ended is None}


def audited(path: str) -> Audit:
    """Read a log."""
    with open(path, "rb") as file:
        return Audit(file.readlines())
