"""Events as agents send them, with paths, ids and times that are always the same; the table of those that were recorded."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from places import ROOT

TABLE = Path(ROOT, "tests", "plugins", "agents", "real", "sent_events.txt")
_ARGUMENTS = ("tool_input", "toolArgs", "toolInput", "args", "input")
"""What agents call the arguments of a call."""
_HEADER = """\
# Events as agents sent them to a hook: agent, event, the very JSON, tabs between. Paths, ids and times are made the same.
# Written by tests/plugins/agents/real/record_events.py.
# The versions of the agents stand in harness/plugins/agents/commands/agent_starts.py.
"""


class RecordedEvent(NamedTuple):
    """One row."""

    agent: str
    event: str
    """As the agent calls it in its settings."""
    text: str

    @property
    def fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.text)
        return fields

    @property
    def shape(self) -> tuple[str, str, str, frozenset[str], frozenset[str]]:
        """Which tool, and which keys it and its arguments have: what an agent's next version may change."""
        fields = self.fields
        tool = fields.get("tool_name", fields.get("toolName", fields.get("tool", "")))
        arguments: dict[str, Any] = next((fields[name] for name in _ARGUMENTS if name in fields), {})
        return self.agent, self.event, str(tool), frozenset(fields), frozenset(arguments)


def recorded_events() -> list[RecordedEvent]:
    """Return the rows of the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [RecordedEvent(*line.split("\t", 2)) for line in lines if line and not line.startswith("#")]


def write_table(events: Iterable[RecordedEvent]) -> None:
    """Write the table anew."""
    TABLE.write_text(_HEADER + "".join("\t".join(event) + "\n" for event in events), encoding="utf-8")


class Sameness:
    """Replaces what is another in each run; one for all events of a run, so that equal ids stay equal."""

    def __init__(self, workspace: Path, home: Path, session: int) -> None:
        """Take the places, and the session's number: no two sessions of the table have an id in common."""
        self._session = session
        self._places = [
            (str(workspace), "/w"),
            (re.sub(r"[^A-Za-z0-9]", "-", str(workspace)), "-w"),
            (str(home), "/home/u"),
            (f"a{workspace}", "a/w"),
            (f"b{workspace}", "b/w"),
            (sys.executable, "/usr/bin/python"),
            (str(Path(ROOT, "tests", "plugins", "agents", "real")), "/opt"),
        ]
        self._seen: dict[str, dict[str, str]] = {}

    def of(self, agent: str, event: str, text: str) -> RecordedEvent:
        """Return an event as it stands in the table."""
        text = text.strip()
        for place, name in self._places:
            text = text.replace(place, name)
        for pattern, form in _IDS:
            text = re.sub(pattern, lambda found, form=form: self._numbered(found[0], form), text)  # type: ignore[misc]
        for pattern, always in _OTHER_EACH_TIME:
            text = re.sub(pattern, always, text)
        return RecordedEvent(agent, event, text)

    def _numbered(self, found: str, form: str) -> str:
        """Return what always stands for an id in this session."""
        names = self._seen.setdefault(form, {})
        return names.setdefault(found, form.format(self._session, len(names) + 1))


_IDS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "00000000-0000-4000-8{:03d}-{:012d}"),
    (r"toolu_\d+_\w+", "toolu_{}_{}"),
    (r"\bses_\w+", "ses_{}x{}"),
    (r'(?<=")a[0-9a-f]{16}(?=")', "a{:08d}{:08d}"),
    (r"\bagent_\d{13}_\w+", "agent_{}_{}"),
    (r"\b\d{13}_\w+", "session_{}_{}"),
)
"""Ids, and what stands for them: the number of the session, and its own there."""
_OTHER_EACH_TIME = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "2026-11-23T12:00:00.000Z"),
    (r'(?<="timestamp":)\d+', "1795435200000"),
    (r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", "rollout-2026-11-23T12-00-00"),
    (r"sessions/\d{4}/\d\d/\d\d", "sessions/2026/11/23"),
    (r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-[0-9a-f]{8}", "session-2026-11-23T12-00-00000000"),
    (r'(?<=uration_ms":)\d+', "1"),
    (r'(?<=DurationMs":)\d+', "1"),
    (r'(?<=harnessSectionHash":")[0-9a-f]+', "0" * 16),
    (r"(?<=PGID: )\d+", "1"),
    (r'(?<="wall_time_seconds":)[\d.]+', "0"),
)
