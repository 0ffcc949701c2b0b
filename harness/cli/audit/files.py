"""The lines of `harness audit files`: each file with its changes, and the commands that could write; changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.audit.calls import word
from harness.audit.changes import Change, ChangedFile, Command, OnDisk, undone_calls
from harness.audit.reach import reach_words
from harness.audit.reading import records
from harness.before_images import BeforeImages
from harness.cli.audit.answers import short_digest
from harness.cli.audit.logs import ChosenLogs
from harness.cli.state import State
from harness.cli.trace import Tone
from harness.paths import short_place
from harness.visible import visible_line


class Kept:
    """Whether the content with a digest is kept; each is read once."""

    def __init__(self, folder: str) -> None:
        self._images = BeforeImages(folder)
        self._known: dict[str, bool] = {}

    def __call__(self, sha256: str) -> bool:
        """Say whether it is kept, and still has that digest."""
        if sha256 not in self._known:
            self._known[sha256] = self._images.get(sha256) is not None
        return self._known[sha256]


def undone_in(logs: ChosenLogs, state: State) -> Iterator[tuple[str, str]]:
    """Yield session and call of what was undone, as these logs and all in the state folder tell. Raises LogError."""
    for path in dict.fromkeys((*logs.paths, *state.log_paths())):
        yield from undone_calls(records(path, ("restored",)))


def file_lines(file: ChangedFile, host: str) -> Iterator[tuple[str, Tone]]:
    """Yield the line for a file, and one for each change; `host` is where it was looked at."""
    on_disk = f"{file.on_disk.value}: {file.problem}" if file.problem else file.on_disk.value
    if elsewhere := [one for one in file.hosts if one != host]:
        on_disk += f", here on {host}; changed on {', '.join(elsewhere)}"
    tone = Tone.WARNING if file.on_disk in (OnDisk.CHANGED, OnDisk.GONE) else Tone.PLAIN
    yield f"{visible_line(file.path, 5_000)}  [{visible_line(on_disk, 200)}]", tone
    for change in file.changes:
        yield f"  {_change(change)}", Tone.PLAIN if change.sure else Tone.BAD


def command_line(command: Command) -> tuple[str, Tone]:
    """Return the line for a command that could write."""
    fields = command.fields
    place = _place(fields, word(fields["session"]), word(fields["call"]))
    time = visible_line(word(fields["time"])[:19].replace("T", " "), 19)
    what = f"{visible_line(word(fields['tool']), 60)}  {visible_line(command.what, 200)}"
    return f"  {time}Z  {place}  {what}  [{reach_words(command.reach)}]", Tone.WARNING


def _change(change: Change) -> str:
    session, call = change.place
    time = visible_line(change.time[:19].replace("T", " "), 19)
    did = {True: "created", False: "changed", None: "changed"}[change.created] if change.sure else "MAY HAVE CHANGED"
    if change.sure and change.before_sha256 is not None and change.before_sha256 == change.after_sha256:
        did = "written, the same"
    decided = visible_line(short_place(word(change.fields["decided_by"])), 200)
    by = decided if change.permitted_by == "policy" else f"yes by {_who(change)}; asked by {decided}"
    parts = [f"{time}Z", _place(change.fields, session, call), visible_line(word(change.fields["tool"]), 60), did]
    parts += [
        f"{short_digest(change.before_sha256)} -> {short_digest(change.after_sha256)}",
        f"[{by}]",
        _undoing(change),
    ]
    return "  ".join(parts)


def _place(fields: Mapping[str, JsonValue], session: str, call: str) -> str:
    """Return `session#call`, of a batch with the task in front."""
    return visible_line(f"{word(fields['task'])} {session}#{call}".strip(), 130)


def _who(change: Change) -> str:
    user = word(change.fields["user"])
    account = f" ({user})" if user and change.by_person else ""
    return visible_line(f"{change.permitted_by}{account}", 100)


def _undoing(change: Change) -> str:
    if change.undone:
        return "was undone"
    return f"cannot be undone: {visible_line(change.why_not, 200)}" if change.why_not else "can be undone"
