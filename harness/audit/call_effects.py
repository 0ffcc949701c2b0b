"""Permitted effects of calls, from their verdicts: paths that they read and write, the network.

The log does not record the real effects of a command. Its verdict names known targets and further possible ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.actions import Enforcement, JsonValue
from harness.audit.calls import Fate, LoggedCall, about_call, about_decision, objects_in, text
from harness.log.changed_files import changes_in
from harness.log.order import LogRecord
from harness.paths import is_within
from harness.record import Record, replace
from harness.text.visible import visible_line
from harness.tool_kinds import tool_kind

TMPDIR = "$TMPDIR"
"""Beginning of the paths in the session's own folder for temporary files."""


class CallEffects(Record):
    """Permitted effects of one call. Paths are absolute, links followed, except in `may_write`."""

    call: LoggedCall
    reads: tuple[str, ...]
    """Known paths that it read."""
    reads_known: bool
    """Whether `reads` is complete."""
    writes: tuple[str, ...]
    """Known paths that it wrote."""
    writes_known: bool
    """Whether `writes` and `may_write` are complete."""
    may_write: tuple[str, ...]
    """Further places that it might write, with everything below. Written as in a policy: `.` is the workspace."""
    network: bool
    hosts: tuple[str, ...]
    """Hosts that it could reach without access to the whole network. Written as in a policy."""
    left_out: int
    """Number of paths that the log does not name. It names the first 20."""
    is_unheld: bool
    """Whether it ran unconfined: it might have done anything that its user may do."""
    changed: tuple[str, ...] | None = None
    """Paths in the workspace that it changed, as two looks at the files found them. `None` if nobody looked."""

    @property
    def is_writer(self) -> bool:
        """Whether it could write anything."""
        is_unknown = not self.writes_known and self.changed is None
        return bool(self.changed or self.writes or self.may_write or is_unknown or self.is_unheld)

    @property
    def outside(self) -> CallEffects | None:
        """Return its effects outside the workspace, or on the network; `None` without any."""
        workspace = text(self.call.started, "workspace")
        reads, writes = (
            tuple(
                path for path in paths if not (workspace and is_within(path, workspace)) and not is_within(path, TMPDIR)
            )
            for paths in (self.reads, self.writes)
        )
        may_write = tuple(place for place in self.may_write if _is_outside(place, workspace))
        if not (reads or writes or may_write or self.network or self.hosts or self.is_unheld):
            return None
        return replace(self, reads=reads, writes=writes, may_write=may_write)

    @property
    def targets(self) -> dict[str, JsonValue]:
        """The effects as fields for JSON, without the fields of the call."""
        return {
            "reads": list[JsonValue](self.reads),
            "reads_known": self.reads_known,
            "writes": list[JsonValue](self.writes),
            "writes_known": self.writes_known,
            "may_write": list[JsonValue](self.may_write),
            "network": self.network,
            **({"hosts": list[JsonValue](self.hosts)} if self.hosts else {}),
            "left_out": self.left_out,
            **({} if self.changed is None else {"changed": list[JsonValue](self.changed)}),
            "unheld": self.is_unheld,
        }

    def fields(self, row: str) -> dict[str, JsonValue]:
        """Return its fields for JSON."""
        return {"row": row, **self.call_fields, **self.targets}

    @property
    def call_fields(self) -> dict[str, JsonValue]:
        """The call, its deciding part, and its result."""
        status = text(self.call.outcome, "status") or None
        return {**about_call(self.call), **about_decision(self.call), "status": status}


MOST_PATHS = 5
"""Maximum number of paths of one kind in the text. It gives the number of the rest; the JSON form has all."""


def effects_words(reach: CallEffects, *, outside: bool = False) -> str:
    """Return in words the places that a call could write and reach, with `outside` also the files that it read."""
    parts = [f"read {_name_list(reach.reads)}"] if outside and reach.reads else []
    if reach.changed is not None and not outside:
        parts.append(f"changed {_name_list(reach.changed)}" if reach.changed else "changed no file of the workspace")
    places = [*reach.writes, *("the workspace" if place == "." else place for place in reach.may_write)]
    if places:
        parts.append(f"could write {_name_list(places)}")
    elif not outside and not reach.writes_known and not reach.is_unheld and reach.changed is None:
        parts.append("could write what its walls let it")
    if reach.network:
        parts.append("could reach the network")
    elif reach.hosts:
        parts.append(f"could reach only {_name_list(reach.hosts)}")
    if reach.is_unheld:
        parts.append("nothing held it: it could do whatever its user may")
    return "; ".join(parts)


def _name_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_PATHS} more" if len(names) > MOST_PATHS else ""
    return f"{', '.join(visible_line(name, 300) for name in names[:MOST_PATHS])}{more}"


class FileRead(Record):
    """A file or folder with the calls that read it, in their order."""

    path: str
    reads: tuple[CallEffects, ...]

    @property
    def is_outside(self) -> bool:
        """Whether it is outside the workspace of a session that read it."""
        return any(
            outside is not None and self.path in outside.reads for outside in (read.outside for read in self.reads)
        )

    def rows(self) -> Iterator[dict[str, JsonValue]]:
        """Yield its fields for JSON: each call that read it."""
        for read in self.reads:
            yield {"row": "read", "path": self.path, "outside": self.is_outside, **read.call_fields}


class Reads(Record):
    """Files that some calls read."""

    files: tuple[FileRead, ...]
    """Files in the order of their paths."""
    unknown: tuple[CallEffects, ...]
    """Calls whose reads are unknown, wholly or in part."""


def effects_of(call: LoggedCall) -> CallEffects | None:
    """Return the permitted effects of a call that was begun; `None` for one that did not run."""
    if call.fate not in (Fate.RAN, Fate.UNKNOWN) or not call.intent:
        return None
    effects = call.intent.get("effects")
    effects = effects if isinstance(effects, dict) else {}
    read, write = (_paths(effects, name) for name in ("read", "write"))
    is_off = effects.get("enforcement") == Enforcement.OFF.value
    is_loose = (
        write is None and not tool_kind(call.tool).is_of_files and text(call.intent, "confinement").startswith("none")
    )
    workspace, changed = text(call.started, "workspace"), _changed_by(call)
    writes, may_write = (_paths(effects, "named") or ()) if write is None else write, _paths(effects, "granted") or ()
    if changed is not None:  # inside the workspace it is known what it wrote
        writes = tuple(path for path in writes if not is_within(path, workspace))
        may_write = tuple(place for place in may_write if _is_outside(place, workspace))
    return CallEffects(
        call=_light(call),
        changed=changed,
        reads=read or (),
        reads_known=read is not None and not _left_out(effects, "read"),
        writes=writes,
        writes_known=write is not None and not _left_out(effects, "write"),
        may_write=may_write,
        network=effects.get("network") is True,
        hosts=_paths(effects, "hosts") or (),
        left_out=_left_out(effects, "read") + _left_out(effects, "write"),
        is_unheld=is_off or is_loose,
    )


def _changed_by(call: LoggedCall) -> tuple[str, ...] | None:
    """Return the paths in the workspace that a command changed. `None` if nobody looked, or if the list is not whole."""
    changes = changes_in(call.outcome, call.log)
    paths = None if changes is None or changes.get("problem") else changes.get("paths")
    return None if not isinstance(paths, list) else tuple(text(path, "path") for path in objects_in(paths))


def _light(call: LoggedCall) -> LoggedCall:
    """Return a call without the long fields of its records, since many calls are in memory while a log is read."""
    decision = {name: value for name, value in call.decision.items() if name not in ("facets", "effects")}
    proposed, intent, outcome = (
        {name: record[name] for name in ("call", "time", "tool", "status") if name in record}
        for record in (call.proposed, call.intent, call.outcome)
    )
    return replace(call, proposed=proposed, decision=decision, intent=intent, outcome=outcome)


def effects_of_calls(calls: Iterable[LoggedCall]) -> Iterator[CallEffects]:
    """Yield the permitted effects of each of these calls that was begun."""
    return (reach for call in calls if (reach := effects_of(call)) is not None)


def reads_of(calls: Iterable[LoggedCall]) -> Reads:
    """Return the files that these calls read. Keeps one entry in memory per call and path."""
    files: dict[str, list[CallEffects]] = {}
    unknown = []
    for reach in effects_of_calls(calls):
        for path in reach.reads:
            files.setdefault(path, []).append(reach)
        if not reach.reads_known:
            unknown.append(reach)
    file_reads = tuple(FileRead(path=path, reads=tuple(files[path])) for path in sorted(files))
    return Reads(files=file_reads, unknown=tuple(unknown))


def _paths(effects: LogRecord, name: str) -> tuple[str, ...] | None:
    paths = effects.get(name)
    return tuple(path for path in paths if isinstance(path, str)) if isinstance(paths, list) else None


def _left_out(effects: Mapping[str, JsonValue], name: str) -> int:
    count, paths = effects.get(f"{name}_count"), effects.get(name)
    listed_count = len(paths) if isinstance(paths, list) else 0
    return max(0, count - listed_count) if type(count) is int else 0


def _is_outside(place: str, workspace: str) -> bool:
    """Return whether a place from a policy is outside the workspace. A relative place is inside."""
    if place.startswith("~"):
        return True
    return place.startswith("/") and not (workspace and is_within(posixpath.normpath(place), workspace))
