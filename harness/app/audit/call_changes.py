"""The changes of files by a call, as lines of `audit show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.app.audit.answer_writer import short_digest
from harness.audit.calls import Fate, LoggedCall, text
from harness.audit.command_changes import change_counts
from harness.files.recorded_changes import changes_from
from harness.files.tree_changes import PathChange, PathKind, PathState, TreeChanges
from harness.log.changed_files import changes_in
from harness.terminal.styles import Tone

MOST_PATHS_SHOWN = 20
"""Maximum number of changed paths that are listed; the rest are counted. `--full` lists all."""


def change_lines(call: LoggedCall, *, full: bool) -> Iterator[tuple[Tone, str]]:
    """Yield the lines about the files that a call changed, was to change, or may have changed."""
    changed = text(call.outcome, "changed_path")
    change = call.intent.get("change")
    if changed:
        before, after = (text(call.outcome, name) or None for name in ("before_sha256", "after_sha256"))
        did = "made" if before is None else "changed"
        yield Tone.PLAIN, f"{did} {changed}  {short_digest(before)} -> {short_digest(after)}"
    elif isinstance(change, dict) and call.fate is Fate.UNKNOWN:
        before, after = (text(change, name) or None for name in ("before_sha256", "after_sha256"))
        yield Tone.BAD, f"was to change {text(change, 'path')}  {short_digest(before)} -> {short_digest(after)}"
    try:
        changes = changes_of(call)
    except ValueError as error:
        yield Tone.BAD, f"the record of its changes is not usable: {error}"
        return
    if changes is not None:
        yield from _lines_of_command(call, changes, full=full)


def changes_of(call: LoggedCall) -> TreeChanges | None:
    """Return the changes of a command. `None` if they were not looked for. Raises ValueError for an invalid record."""
    recorded = changes_in(call.outcome, call.log)
    return None if recorded is None else changes_from(recorded)


def _lines_of_command(call: LoggedCall, changes: TreeChanges, *, full: bool) -> Iterator[tuple[Tone, str]]:
    if changes.problem:
        yield Tone.WARNING, f"its changes of files are not known: {changes.problem}"
    visible_changes = changes.changes if full else changes.changes[:MOST_PATHS_SHOWN]
    for change in visible_changes:
        before, after = _state_words(change.before), _state_words(change.after)
        yield Tone.PLAIN, f"{_word(change)} {change.path}  {before} -> {after}"
    if len(visible_changes) < len(changes.changes):
        counts = change_counts(call.outcome.get("changes"))
        yield Tone.QUIET, f"{len(changes.changes):,} paths in all ({counts}); --full names them"
    for place in changes.left_out:
        if place.is_changed:
            did = "removed" if place.is_removed else "changed"
            yield Tone.WARNING, f"{did}, and left out: {place.path} ({place.reason})"
    recorded = call.outcome.get("changes")
    if isinstance(recorded, Mapping) and recorded.get("history_changed") is True:
        yield Tone.WARNING, "changed git history (HEAD, a branch, a tag or the stash); undo does not take that back"


def _word(change: PathChange) -> str:
    if change.before.kind is PathKind.NONE:
        return "made"
    if change.after.kind is PathKind.NONE:
        return "removed"
    return "changed the mode of" if change.is_mode_alone else "changed"


def _state_words(state: PathState) -> str:
    match state.kind:
        case PathKind.NONE:
            return "none"
        case PathKind.LINK:
            return f"link to {state.target}"
        case PathKind.FILE if state.sha256 is not None:
            return short_digest(state.sha256)
        case PathKind.FILE:
            return state.unkept or "a file"
        case PathKind.FOLDER | PathKind.SPECIAL:
            return f"{state.kind.value} {state.mode:04o}"
