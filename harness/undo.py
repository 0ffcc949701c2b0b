"""What of a session's changes of files can be undone, read out of the records of its log; pure, and decides nothing else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import TypeAlias

from harness.actions import Enforcement, JsonValue
from harness.log_order import LogRecord
from harness.log_words import CUT_SHORT, FILE_TOOLS
from harness.record import Record
from harness.redaction.marks import is_redacted


class Ending(Enum):
    """What the log knows of a call's end."""

    DONE = "done"
    UNKNOWN = "unknown"
    """Something cut the call short: whether the file was written is told by its content alone."""


class Undoable(Record):
    """A change of one file by one call."""

    call: int
    tool: str
    path: str
    """Absolute and resolved, as it was when the call was judged; not yet held against the disk."""
    before_sha256: str | None
    """None: there was no file."""
    after_sha256: str
    before_mode: int | None
    """Permission bits, without set-id bits, which the call kept; None where there was no file."""
    ending: Ending
    earlier: frozenset[str | None]
    """What the file was before this call, and before each call of the session that changed it earlier."""


class Unrestorable(Record):
    """A call that may have changed something which cannot be brought back."""

    call: int
    tool: str
    what: str
    """The command or the path, as the log has it: hostile text."""
    why: str
    is_command: bool
    """Whether it is a command, of which nothing but this can be told, and not a file that should have been restored."""


Step: TypeAlias = Undoable | Unrestorable


class Standing(Enum):
    """How a file stands to a change that is to be undone."""

    AS_LEFT = "as left"
    """It is what the call left."""
    UNDONE = "undone"
    """It is what it was before the call, or before an earlier one."""
    CHANGED = "changed"
    """It is something else: someone changed it since."""


def standing(step: Undoable, sha256: str | None) -> Standing:
    """Return how a file with this digest (None: there is no file) stands to the change."""
    if sha256 == step.after_sha256:
        return Standing.AS_LEFT
    return Standing.UNDONE if sha256 in step.earlier else Standing.CHANGED


def plan(records: Iterable[LogRecord], session: str, undone: Collection[int] = ()) -> tuple[Step, ...]:
    """Return the changes of a session, newest first, and the calls of which the log cannot tell what they changed.

    `records` are those of a verified log; records of other sessions are passed over, and so are the calls in `undone`.
    A record that does not make sense becomes an Unrestorable; nothing is raised.
    """
    decisions: dict[int, LogRecord] = {}
    intents: dict[int, LogRecord] = {}
    outcomes: dict[int, LogRecord] = {}
    kinds = {"decision": decisions, "intent": intents, "outcome": outcomes}
    for record in records:
        call = record.get("call")
        if record["session"] == session and record["kind"] in kinds and isinstance(call, int):
            kinds[str(record["kind"])][call] = record
    steps: list[Step] = []
    earlier: dict[str, frozenset[str | None]] = {}
    for call, intent in intents.items():
        step = _step(call, intent, outcomes.get(call), decisions.get(call, {}), earlier)
        if isinstance(step, Undoable):
            earlier[step.path] = step.earlier
        if step is not None and call not in undone:
            steps.append(step)
    return tuple(reversed(steps))


def _step(
    call: int,
    intent: LogRecord,
    outcome: LogRecord | None,
    decision: LogRecord,
    earlier: Mapping[str, frozenset[str | None]],
) -> Step | None:
    tool, change = str(intent.get("tool")), intent.get("change")
    changed = None if outcome is None else outcome.get("changed_path")
    if change is None:
        if changed is not None:
            return _file(call, tool, changed, "the log does not say what the file was before")
        return None if tool in FILE_TOOLS else _command(call, tool, intent, decision)
    ending = _ending(outcome)
    if ending is None:
        return None
    if not isinstance(change, dict):
        return _file(call, tool, changed, "the log's record of the change makes no sense")
    return _change(call, tool, change, outcome, ending, earlier)


def _ending(outcome: LogRecord | None) -> Ending | None:
    """Return what is known of the end of a call that was to change a file; None if it did not change it."""
    if outcome is None:
        return Ending.UNKNOWN
    if outcome.get("changed_path") is not None:
        return Ending.DONE
    return Ending.UNKNOWN if outcome.get("status") in CUT_SHORT else None


def _change(
    call: int,
    tool: str,
    change: Mapping[str, JsonValue],
    outcome: LogRecord | None,
    ending: Ending,
    earlier: Mapping[str, frozenset[str | None]],
) -> Step:
    path, mode = change.get("path"), change.get("before_mode")
    before, after = change.get("before_sha256"), change.get("after_sha256")
    if not isinstance(path, str) or not _is_plain(path):
        return _file(call, tool, path, "the log does not hold a plain absolute path")
    if is_redacted(path):
        return _file(call, tool, path, "a secret in its path was masked in the log")
    if not isinstance(after, str) or not _is_digest(after) or not (before is None or _is_digest(before)):
        return _file(call, tool, path, "the log does not hold the digests of the file")
    if (mode is None) != (before is None) or not (mode is None or _is_mode(mode)):
        return _file(call, tool, path, "the log does not hold the permissions of the file")
    told = () if outcome is None or ending is Ending.UNKNOWN else tuple(outcome.get(name) for name in _TOLD)
    if told and told != (path, before, after):
        return _file(call, tool, path, "what the log says of the change before and after the call differs")
    return Undoable(
        call=call,
        tool=tool,
        path=path,
        before_sha256=None if before is None else str(before),
        after_sha256=after,
        before_mode=mode & 0o777 if isinstance(mode, int) else None,
        ending=ending,
        earlier=earlier.get(path, frozenset()) | {None if before is None else str(before)},
    )


_TOLD = ("changed_path", "before_sha256", "after_sha256")


def _file(call: int, tool: str, path: JsonValue, why: str) -> Unrestorable:
    return Unrestorable(call=call, tool=tool, what=str(path), why=why, is_command=False)


def _command(call: int, tool: str, intent: LogRecord, decision: LogRecord) -> Unrestorable | None:
    """Return the note for a call that was permitted to write something, or None for one that only read."""
    effects = intent.get("effects", decision.get("effects"))
    reads_only = isinstance(effects, dict) and effects.get("write") == [] and not effects.get("granted")
    # Of one that a person let run unconfined, the effects are what is known of it, no more.
    if reads_only and isinstance(effects, dict) and effects.get("enforcement") != Enforcement.OFF.value:
        return None
    what = str(decision.get("summary"))
    return Unrestorable(call=call, tool=tool, what=what, why="what a command changed is not recorded", is_command=True)


def _is_plain(path: str) -> bool:
    """Say whether a path is absolute and resolved in itself: no empty part, no `.`, no `..`, no NUL."""
    parts = path.split("/")
    return len(parts) > 1 and parts[0] == "" and "\0" not in path and not {"", ".", ".."} & set(parts[1:])


def _is_digest(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - set("0123456789abcdef")


def _is_mode(value: JsonValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 0o7777
