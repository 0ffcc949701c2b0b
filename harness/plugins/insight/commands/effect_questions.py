"""The answers to `audit files`, `audit reads` and `audit outside`: files changed, files read, effects outside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from harness.actions import JsonValue
from harness.app.audit.answer_writer import deciding_part, name, short_digest, tool_and_summary
from harness.app.audit.logs import ChosenLogs
from harness.app.audit.question import AnswerRow, AskedLogs, Total
from harness.app.kept_contents import kept_contents
from harness.audit.call_effects import CallEffects, FileRead, effects_of_calls, effects_words, reads_of
from harness.audit.calls import text, word
from harness.audit.logged_changes import (
    ChangedFile,
    FoundChanges,
    LoggedChange,
    OnDisk,
    WritingCommand,
    changed_files,
    file_on_disk,
    found_changes,
    undone_paths,
)
from harness.files.session_undo import KeptContents
from harness.log.reader import records
from harness.paths import short_place
from harness.session.state import State
from harness.terminal.styles import Tone
from harness.terminal.tables import GAP
from harness.text.amounts import count_of
from harness.text.visible import visible_line


class Files:
    """Every file that calls changed, and the commands that could write."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._host = os.uname().nodename
        self._files = 0
        self._found_changes = FoundChanges(changes=(), commands=())

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each change, sorted by file, then one for each command. Raises LogError."""
        state, logs = State.of(self._asked_logs.environment), self._asked_logs.logs
        images = KeptImages(state)
        self._found_changes = found_changes(logs.calls(), is_kept=images, undone=_undone_in(logs, state))
        for file in changed_files(self._found_changes.changes, file_on_disk):
            self._files += 1
            yield from self._changes(file)
        above = tuple((line, Tone.PLAIN) for line in self._summary())
        for command in self._found_changes.commands:
            yield self._command(command, above)
            above = ()

    def total(self) -> Total:
        """Return the counts of files, changes and commands."""
        changes, commands = len(self._found_changes.changes), len(self._found_changes.commands)
        return Total(
            counts={"files": self._files, "changes": changes, "commands": commands},
            lines=() if commands else self._summary(),  # otherwise `rows` writes them above the commands
        )

    def _summary(self) -> tuple[str, ...]:
        changes, commands = len(self._found_changes.changes), len(self._found_changes.commands)
        sessions = count_of(self._asked_logs.logs.sessions, "session")
        line = f"{count_of(self._files, 'file')}, {count_of(changes, 'change')} in {sessions}"
        if not commands:
            return (line,)
        them = "what it changed is not recorded, but" if commands == 1 else "what they changed is not recorded, but"
        return line, f"besides, {count_of(commands, 'command')} could write; {them} where it could be:"

    def _changes(self, file: ChangedFile) -> Iterator[AnswerRow]:
        path = visible_line(file.path, 5_000)
        on_disk = f"{file.on_disk.value}: {file.problem}" if file.problem else file.on_disk.value
        if elsewhere := [item for item in file.hosts if item != self._host]:
            on_disk += f", here on {self._host}; changed on {', '.join(elsewhere)}"
        on_disk = visible_line(on_disk, 200)
        tone = Tone.WARNING if file.on_disk in (OnDisk.CHANGED, OnDisk.GONE) else Tone.PLAIN
        head, *objects = file.rows(self._host)
        above: tuple[tuple[str, Tone], ...] = ((f"{path}  [{on_disk}]", tone),)
        object_above: tuple[Mapping[str, JsonValue], ...] = (head,)
        for change, item in zip(file.changes, objects, strict=True):
            cells = self._change(change)
            text_ = f"  {GAP.join((*cells[:5], f'[{cells[5]}]', cells[6]))}"
            yield AnswerRow(
                cells=(path, on_disk, *cells),
                objects=(*object_above, item),
                lines=(*above, (text_, Tone.PLAIN if change.sure else Tone.BAD)),
            )
            above, object_above = (), ()

    def _change(self, change: LoggedChange) -> tuple[str, ...]:
        did = {True: "created", False: "changed", None: "changed"}[change.created]
        if change.removed:
            did = "removed"
        elif not change.sure:
            did = "MAY HAVE CHANGED"
        elif change.before_sha256 is not None and change.before_sha256 == change.after_sha256:
            did = "written, the same"
        decided = visible_line(short_place(word(change.fields["decided_by"])), 200)
        return (
            self._asked_logs.moment({"time": change.time}),
            _place(change.fields, *change.place),
            visible_line(word(change.fields["tool"]), 60),
            did,
            f"{short_digest(change.before_sha256)} -> {short_digest(change.after_sha256)}",
            decided if change.permitted_by == "policy" else f"yes by {_permitter(change)}; asked by {decided}",
            _undoing(change),
        )

    def _command(self, command: WritingCommand, above: tuple[tuple[str, Tone], ...]) -> AnswerRow:
        fields = command.fields
        place = _place(fields, word(fields["session"]), word(fields["call"]))
        tool, words = visible_line(word(fields["tool"]), 60), visible_line(command.summary, 200)
        when, effects_text = self._asked_logs.moment(fields), effects_words(command.reach)
        return AnswerRow(
            cells=("", "", when, place, tool, f"{effects_text}: {words}", "", "", ""),
            objects=(fields,),
            lines=(*above, (f"  {GAP.join((when, place, tool, words))}  [{effects_text}]", Tone.WARNING)),
        )


class KeptImages:
    """A function that returns whether the content with a digest is stored. It reads each content once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stores: dict[str, KeptContents] = {}
        self._kept_images: dict[tuple[str, str], bool] = {}

    def __call__(self, sha256: str, workspace: str) -> bool:
        """Return whether the content of a file in a workspace is stored and still has this digest."""
        if (sha256, workspace) not in self._kept_images:
            self._kept_images[sha256, workspace] = self._is_kept(sha256, workspace)
        return self._kept_images[sha256, workspace]

    def _is_kept(self, sha256: str, workspace: str) -> bool:
        try:
            if workspace not in self._stores:
                self._stores[workspace] = kept_contents(self._state, workspace)
            return self._stores[workspace].get(sha256) is not None
        except ValueError:  # no folder has such a name
            return False


def _undone_in(logs: ChosenLogs, state: State) -> Iterator[tuple[str, str, str]]:
    """Yield session, call and path of each undone change, from these logs and all in the state folder. Raises LogError."""
    for path in dict.fromkeys((*logs.paths, *state.log_paths())):
        yield from undone_paths(records(path, ("restored",)))


def _place(fields: Mapping[str, JsonValue], session: str, call: str) -> str:
    """Return `session#call`, preceded by the task if the log belongs to a batch."""
    return visible_line(f"{word(fields['task'])} {session}#{call}".strip(), 130)


def _permitter(change: LoggedChange) -> str:
    user = word(change.fields["user"])
    account = f" ({user})" if user and change.by_person else ""
    return visible_line(f"{change.permitted_by}{account}", 100)


def _undoing(change: LoggedChange) -> str:
    if change.undone:
        return "was undone"
    return f"cannot be undone: {visible_line(change.why_not, 200)}" if change.why_not else "can be undone"


class FilesRead:
    """Every file and folder that calls read, and the calls with incompletely known reads."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._files = self._unknown = 0

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each read, path by path, then one for each call with unknown reads. Raises LogError."""
        reads = reads_of(self._asked_logs.logs.calls())
        self._files, self._unknown = len(reads.files), len(reads.unknown)
        for file in reads.files:
            yield from self._reads(file)
        above = tuple((line, Tone.PLAIN) for line in self._summary())
        for reach in reads.unknown:
            cells = _about_call(self._asked_logs, reach)
            yield AnswerRow(
                cells=("", "not all known", *cells),
                objects=(reach.fields("unknown_reads"),),
                lines=(*above, (_read_line(cells), Tone.WARNING)),
            )
            above = ()

    def total(self) -> Total:
        """Return the counts of files, and of calls with unknown reads."""
        return Total(
            counts={"files": self._files, "unknown_reads": self._unknown},
            lines=() if self._unknown else self._summary(),  # otherwise `rows` writes them above the calls
        )

    def _summary(self) -> tuple[str, ...]:
        files = count_of(self._files, "file or folder", "files and folders")
        line = f"{files} read in {count_of(self._asked_logs.logs.sessions, 'session')}"
        if not self._unknown:
            return (line,)
        return line, f"not among them: what {count_of(self._unknown, 'call')} read of which no model tells all"

    def _reads(self, file: FileRead) -> Iterator[AnswerRow]:
        path = visible_line(file.path, 5_000)
        outside, tone = ("outside the workspace", Tone.WARNING) if file.is_outside else ("", Tone.PLAIN)
        above: tuple[tuple[str, Tone], ...] = ((f"{path}{f'  [{outside}]' if outside else ''}", tone),)
        for reach, item in zip(file.reads, file.rows(), strict=True):
            cells = _about_call(self._asked_logs, reach)
            yield AnswerRow(
                cells=(path, outside, *cells), objects=(item,), lines=(*above, (_read_line(cells), Tone.PLAIN))
            )
            above = ()


def _read_line(cells: tuple[str, ...]) -> str:
    return f"  {GAP.join(cells[:5])}  [{cells[5]}]"


def _about_call(asked_logs: AskedLogs, reach: CallEffects) -> tuple[str, ...]:
    """Return the cells about a call: time, name, tool, summary, status and deciding part."""
    call = reach.call
    status = visible_line(text(call.outcome, "status"), 20) or "end unknown"
    return asked_logs.moment(call.intent), name(call), *tool_and_summary(call), status, deciding_part(call)


class Outside:
    """The calls that their verdicts permitted to leave the workspace or to reach the network."""

    def __init__(self, asked_logs: AskedLogs) -> None:
        self._asked_logs = asked_logs
        self._calls = self._read = self._written = self._network = self._unknown = 0

    def rows(self) -> Iterator[AnswerRow]:
        """Yield a row for each such call. Raises LogError."""
        for reach in effects_of_calls(self._asked_logs.logs.calls()):
            self._unknown += not reach.reads_known
            if (outside := reach.outside) is None:
                continue
            self._calls += 1
            self._read += bool(outside.reads)
            self._written += bool(outside.writes or outside.may_write)
            self._network += bool(outside.network or outside.hosts)
            yield AnswerRow(
                cells=(*_about_call(self._asked_logs, outside), effects_words(outside, outside=True)),
                objects=(outside.fields("outside"),),
                tone=Tone.WARNING,
            )

    def total(self) -> Total:
        """Return the counts of calls by what they could do outside."""
        calls, read, written, network = self._calls, self._read, self._written, self._network
        counts: dict[str, JsonValue] = {"calls": calls, "read": read, "wrote": written, "network": network}
        by = f"{read} read there, {written} could write there, {network} could reach the network"
        none = "no call is known to have left the workspace"
        line = f"{count_of(calls, 'call')} outside the workspace: {by}" if calls else none
        unknown = f"what {count_of(self._unknown, 'call')} read is not known (`harness audit reads`)"
        rest = f"; {unknown}" if self._unknown else ""
        return Total(
            counts={**counts, "unknown_reads": self._unknown},
            lines=(f"{line}, in {count_of(self._asked_logs.logs.sessions, 'session')}{rest}",),
        )
