"""Every action log that a test left behind, held against the schema of its records: what tests wrote is what was promised."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.actions import JsonValue
from harness.log.reader import NO_PREVIOUS, is_number, log_lines, parse_line
from harness.log.schema import RECORDS, VERSION, json_schema, problem

MAX_RECORDS = 20_000
"""Of one log; longer ones are of tests that measure."""
SAMPLED_FIRST, SAMPLED_EACH = 20, 50
"""How many records of each kind the JSON Schema is tried on at first, and of how many it is tried on one afterwards."""


class Census:
    """What was found in the logs of one run of the test suite."""

    def __init__(self) -> None:
        self.logs = 0
        self.kinds: Counter[str] = Counter()
        self.sampled: Counter[str] = Counter()
        self._schema = None if importlib.util.find_spec("jsonschema") is None else PrintedSchema()

    @property
    def records(self) -> int:
        """How many records were held against the table."""
        return self.kinds.total()

    def problems(self, folder: str) -> Iterator[str]:
        """Yield what is wrong with the records of the logs below a folder: those whose chain is good, up to where it ends."""
        for path in _logs_below(folder):
            self.logs += 1
            for number, record in enumerate(_chained(path), start=1):
                if found := self._problem(record):
                    yield f"{path}:{number}: {found}"
                    break

    def told(self) -> str:
        """Return what was done, in one line."""
        how = "jsonschema is not installed: no JSON Schema was tried on any"
        if self._schema is not None:
            how = f"the JSON Schema was tried on {self.sampled.total()}"
        return (
            f"action log: {self.records} records of {self.logs} logs fit the schema, of {len(self.kinds)} kinds; {how}"
        )

    def counts(self) -> dict[str, object]:
        """Return what was counted, as a worker of a run in several processes hands it on."""
        return {"logs": self.logs, "kinds": dict(self.kinds), "sampled": dict(self.sampled)}

    def add(self, counts: Mapping[str, Any]) -> None:
        """Add what a worker counted."""
        self.logs += counts["logs"]
        self.kinds.update(counts["kinds"])
        self.sampled.update(counts["sampled"])

    def missing(self) -> list[str]:
        """Return the kinds of which no record was seen."""
        return [kind for kind in RECORDS if not self.kinds[kind]]

    def _problem(self, record: Mapping[str, JsonValue]) -> str:
        kind = str(record["kind"])
        self.kinds[kind] += 1
        found = problem(record)
        if self._schema is None or (self.kinds[kind] > SAMPLED_FIRST and self.records % SAMPLED_EACH):
            return found
        self.sampled[kind] += 1
        fits = self._schema.fits(record)
        if fits is bool(found):
            return f"the JSON Schema and the table disagree: {fits} and {found!r}"
        return found


class PrintedSchema:
    """The JSON Schema that the program prints, as a library understands it that knows nothing of the harness."""

    def __init__(self) -> None:
        from jsonschema import Draft202012Validator

        schema = json_schema()
        self.whole = Draft202012Validator(schema)
        self._of_kind = {
            kind: Draft202012Validator({**schema, "oneOf": [{"$ref": f"#/$defs/{kind}"}]}) for kind in RECORDS
        }

    def fits(self, record: Mapping[str, object]) -> bool:
        """Say whether a record fits: only the alternative of its kind is tried, since it can fit no other (a test)."""
        kind = record.get("kind")
        validator = self._of_kind.get(kind) if isinstance(kind, str) else None
        return (validator or self.whole).is_valid(record)


def _logs_below(folder: str) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if name.endswith(".jsonl") and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    begins = b'"kind":"session_started"' in file.readline(1_000_000)
                if begins:
                    yield path


def _chained(path: str) -> Iterator[Mapping[str, JsonValue]]:
    previous = NO_PREVIOUS
    for seq, (line, whole) in enumerate(log_lines(path)):
        record = parse_line(line) if whole and seq < MAX_RECORDS else None
        if record is None or record["prev"] != previous or not is_number(record["seq"], seq):
            return
        if not is_number(record["v"], VERSION):
            return
        previous = hashlib.sha256(line).hexdigest()
        yield record
