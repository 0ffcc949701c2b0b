"""The lines of the six questions (`questions.py`): what is said to a person of each thing found, and the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from harness.actions import JsonValue
from harness.app.audit.answer_writer import AnswerWriter, name, quoted, seconds, short_digest, what, who, why
from harness.app.audit.logs import ChosenLogs
from harness.audit.call_effects import CallEffects, FileRead, effects_words
from harness.audit.calls import Fate, edited_from, edited_to, text, word
from harness.audit.logged_changes import ChangedFile, LoggedChange, OnDisk, WritingCommand, file_on_disk, undone_calls
from harness.files.before_images import BeforeImages
from harness.log.reader import is_in_use, is_whole, records
from harness.log.vocabulary import ANSWERS
from harness.paths import short_place
from harness.plugins.insight.questions import (
    LoggedQuestion,
    LoggedRefusal,
    OpenSession,
    RefusalCounts,
    Refuser,
    UnknownCall,
)
from harness.plugins.insight.stats import NO_ANSWER, OTHER_ANSWER, QuestionCount
from harness.session.state import State
from harness.terminal.styles import Tone
from harness.terminal.tables import GAP, Column
from harness.text.amounts import counted
from harness.text.visible import visible_line

_TONES = {
    "yes": Tone.GOOD,
    "no": Tone.BAD,
    "stop": Tone.BAD,
    "halt": Tone.BAD,
    "nobody": Tone.WARNING,
    "edit": Tone.WARNING,
}


_CALL = (
    Column(name="when"),
    Column(name="call", spare=2),
    Column(name="tool", spare=1),
    Column(name="what", folds=True),
)
QUESTIONS = (
    *_CALL,
    Column(name="asked by", folds=True, in_line="[{}]"),
    Column(name="answer", folds=True, toned=True),
    Column(name="", toned=True, folds=True, leaves=True),
)
REFUSALS = (
    *_CALL[:2],
    Column(name="refused", toned=True),
    *_CALL[2:],
    Column(name="by", folds=True, in_line="[{}]"),
    Column(name="why", folds=True, leaves=True, in_line="why: {}"),
    Column(name="hint", folds=True, leaves=True, in_line="hint: {}"),
)
OUTSIDE = (
    *_CALL,
    Column(name="ended", spare=3),
    Column(name="decided by", folds=True, in_line="[{}]"),
    Column(name="outside", folds=True, toned=True),
)
UNKNOWN = (
    *_CALL,
    Column(name="allowed by", folds=True, in_line="[{}]"),
    Column(name="change", folds=True),
    Column(name="end", folds=True, toned=True),
)


def question_cells(question: LoggedQuestion, output: AnswerWriter) -> tuple[tuple[str, ...], Tone]:
    """Return the cells of a question, and its tone."""
    call = question.call
    remarks = ["under 1 s"] if call.is_quick else []
    if question.in_burst:
        remarks.append("burst")
    if (origin := edited_from(call)) is not None:
        remarks.append(visible_line(f"made of call {origin}", 60))
    when = output.moment(call.asked or call.answered)
    cells = when, name(call), *what(call), why(call), _answer(question), "  ".join(remarks)
    return cells, Tone.WARNING if call.is_quick or question.in_burst else _TONES.get(call.answer, Tone.WARNING)


def _answer(question: LoggedQuestion) -> str:
    call = question.call
    match question.call.answer:
        case "" if call.fate is Fate.OPEN:
            return "asked, no answer recorded: the log ends there"
        case "":
            return f"asked, no answer recorded: {visible_line(text(call.outcome, 'content'), 200)}"
        case "nobody":
            return "nobody was there to answer"
        case "edit":
            into = visible_line(f"edit, into call {edited_to(call)}", 60)
            return f"{into}, by {who(call)}, {seconds(call)}"
        case answer:
            said = [visible_line(answer, 20), f"by {who(call)},", seconds(call), quoted(text(call.answered, "words"))]
            return " ".join(word for word in said if word)


def question_counts(counts: QuestionCount) -> dict[str, JsonValue]:
    """Return the counts over all questions as JSON."""
    answers: dict[str, JsonValue] = {answer: counts.answers[answer] for answer in (*ANSWERS, OTHER_ANSWER)}
    return {
        "asked": counts.asked,
        **answers,
        "unanswered": counts.answers[NO_ANSWER],
        "quick": counts.quick,
        "quick_yes": counts.quick_yes,
        "in_bursts": counts.in_bursts,
        "wait_median": counts.median,
    }


def question_counts_line(counts: QuestionCount) -> str:
    """Return the counts over all questions in words."""
    answers = counts.answers
    words = [f"{counts.asked} asked: {answers['yes']} yes", f"{answers['no']} no"]
    words += [f"{answers[one]} {one}" for one in ("stop", "halt", "edit", OTHER_ANSWER) if answers[one]]
    words.append(f"{answers['nobody']} nobody")
    if answers[NO_ANSWER]:
        words.append(f"{answers[NO_ANSWER]} without an answer")
    median = "" if counts.median is None else f"; median wait {counts.median:g} s"
    bursts = f", {counts.in_bursts} in bursts" if counts.in_bursts else ""
    return f"{', '.join(words)}{median}; {counts.quick} under 1 s ({counts.quick_yes} of them yes){bursts}"


_BY = {
    Refuser.POLICY: "by the policy",
    Refuser.PERSON: "by a person",
    Refuser.SCRIPT: "by a script",
    Refuser.NOBODY: "for nobody was there",
    Refuser.EDIT: "for another call in their place",
    Refuser.UNSAID: "by whom the log does not say",
}


def refusal_cells(refusal: LoggedRefusal, output: AnswerWriter) -> tuple[tuple[str, ...], Tone]:
    """Return the cells of a refused call: when, which, how, what, by whom, why, hint; and their tone."""
    call = refusal.call
    status = visible_line(text(call.outcome, "status"), 20)
    said = _by(refusal), visible_line(refusal.reason, 500), visible_line(refusal.hint, 300)
    tone = Tone.WARNING if refusal.refuser in (Refuser.EDIT, Refuser.TOOL) else Tone.BAD
    return (output.moment(call.outcome), name(call), status, *what(call), *said), tone


def _by(refusal: LoggedRefusal) -> str:
    call = refusal.call
    match refusal.refuser:
        case Refuser.POLICY:
            return why(call)
        case Refuser.PERSON | Refuser.SCRIPT | Refuser.OUTSIDE:
            words = quoted(refusal.words) or "without a word"
            return f"{who(call)}, {seconds(call)}: {words}; asked by {why(call)}"
        case Refuser.NOBODY:
            return f"nobody was there to ask; needed by {why(call)}"
        case Refuser.EDIT:
            return f"{who(call)} put {visible_line(f'call {edited_to(call)}', 60)} in its place"
        case Refuser.TOOL:
            return "no valid call"
        case Refuser.UNSAID:
            return "by whom the log does not say"
        case _:
            assert_never(refusal.refuser)


def refusal_counts_line(counts: RefusalCounts, sessions: int, *, listed: bool) -> str:
    """Return the counts in words."""
    total = sum(counts.refused.values())
    by = ", ".join(f"{counts.refused[one]} {_BY[one]}" for one in _BY if one in counts.refused)
    line = (
        f"{counted(total, 'call')} refused: {by}" if total else f"no call was refused in {counted(sessions, 'session')}"
    )
    if counts.invalid:
        line += f"; {counts.invalid} invalid{'' if listed else ' (--invalid lists them)'}"
    if counts.never_came:
        line += f"; {counts.never_came} not run, for something else ended the run"
    return line


def read_lines(file: FileRead, output: AnswerWriter) -> Iterator[tuple[str, Tone]]:
    """Yield the line for a file or folder that was read, and one for each call."""
    outside = "  [outside the workspace]" if file.is_outside else ""
    yield f"{visible_line(file.path, 5_000)}{outside}", Tone.WARNING if outside else Tone.PLAIN
    for one in file.reads:
        yield call_line(one, output), Tone.PLAIN


def call_line(reach: CallEffects, output: AnswerWriter) -> str:
    """Return the line for a call that read something."""
    when, named, tool, said, status, by = _call(reach, output)
    return f"  {GAP.join((when, named, tool, said, status))}  [{by}]"


def outside_cells(outside: CallEffects, output: AnswerWriter) -> tuple[tuple[str, ...], Tone]:
    """Return the cells of a call that went outside the workspace, or could reach the network."""
    return (*_call(outside, output), effects_words(outside, outside=True)), Tone.WARNING


def _call(reach: CallEffects, output: AnswerWriter) -> tuple[str, str, str, str, str, str]:
    call = reach.call
    status = visible_line(text(call.outcome, "status"), 20) or "end unknown"
    return output.moment(call.intent), name(call), *what(call), status, why(call)


def reads_line(files: int, sessions: int) -> str:
    """Return the counts of files that were read, in words."""
    return f"{counted(files, 'file or folder', 'files and folders')} read in {counted(sessions, 'session')}"


class KeptImages:
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


def file_lines(file: ChangedFile, host: str, output: AnswerWriter) -> Iterator[tuple[str, Tone]]:
    """Yield the line for a file, and one for each change; `host` is where it was looked at."""
    on_disk = f"{file.on_disk.value}: {file.problem}" if file.problem else file.on_disk.value
    if elsewhere := [one for one in file.hosts if one != host]:
        on_disk += f", here on {host}; changed on {', '.join(elsewhere)}"
    tone = Tone.WARNING if file.on_disk in (OnDisk.CHANGED, OnDisk.GONE) else Tone.PLAIN
    yield f"{visible_line(file.path, 5_000)}  [{visible_line(on_disk, 200)}]", tone
    for change in file.changes:
        yield f"  {_change(change, output)}", Tone.PLAIN if change.sure else Tone.BAD


def command_line(command: WritingCommand, output: AnswerWriter) -> tuple[str, Tone]:
    """Return the line for a command that could write."""
    fields = command.fields
    place = _place(fields, word(fields["session"]), word(fields["call"]))
    what = f"{visible_line(word(fields['tool']), 60)}  {visible_line(command.what, 200)}"
    return f"  {output.moment(fields)}  {place}  {what}  [{effects_words(command.reach)}]", Tone.WARNING


def _change(change: LoggedChange, output: AnswerWriter) -> str:
    session, call = change.place
    did = {True: "created", False: "changed", None: "changed"}[change.created] if change.sure else "MAY HAVE CHANGED"
    if change.sure and change.before_sha256 is not None and change.before_sha256 == change.after_sha256:
        did = "written, the same"
    decided = visible_line(short_place(word(change.fields["decided_by"])), 200)
    by = decided if change.permitted_by == "policy" else f"yes by {_who(change)}; asked by {decided}"
    parts = [
        output.moment({"time": change.time}),
        _place(change.fields, session, call),
        visible_line(word(change.fields["tool"]), 60),
        did,
    ]
    parts += [
        f"{short_digest(change.before_sha256)} -> {short_digest(change.after_sha256)}",
        f"[{by}]",
        _undoing(change),
    ]
    return "  ".join(parts)


def _place(fields: Mapping[str, JsonValue], session: str, call: str) -> str:
    """Return `session#call`, of a batch with the task in front."""
    return visible_line(f"{word(fields['task'])} {session}#{call}".strip(), 130)


def _who(change: LoggedChange) -> str:
    user = word(change.fields["user"])
    account = f" ({user})" if user and change.by_person else ""
    return visible_line(f"{change.permitted_by}{account}", 100)


def _undoing(change: LoggedChange) -> str:
    if change.undone:
        return "was undone"
    return f"cannot be undone: {visible_line(change.why_not, 200)}" if change.why_not else "can be undone"


class OpenEnds:
    """What is said of the open ends of one log, with what the disk says of them now."""

    def __init__(self, path: str) -> None:
        """Look at the log at `path`. Raises LogError if it cannot be read."""
        self._path = path
        self._in_use = is_in_use(path)
        self.torn = not is_whole(path)

    def torn_fields(self) -> dict[str, JsonValue]:
        """Return what is written as JSON of a last line that has no end."""
        return {"row": "torn_line", "log": self._path, "in_use": self._in_use}

    def torn_line(self) -> tuple[str, Tone]:
        """Return the line for people about a last line that has no end."""
        may = "in use: it may be being written" if self._in_use else "it may have begun a call, or ended one"
        return f"{visible_line(self._path, 5_000)}: the last line is torn; {may}", Tone.WARNING

    def fields(self, one: UnknownCall | OpenSession) -> dict[str, JsonValue]:
        """Return what is written as JSON."""
        if isinstance(one, OpenSession):
            return one.fields(in_use=self._in_use, torn=self.torn)
        return one.fields(in_use=self._in_use, file_now=_file_now(one))

    def tell(self, one: UnknownCall | OpenSession, output: AnswerWriter) -> None:
        """Write what people are told."""
        if isinstance(one, OpenSession):
            output.line(self._session_line(one, output), Tone.WARNING)
        else:
            output.entry(UNKNOWN, self._call_cells(one, output), Tone.WARNING if self._in_use else Tone.BAD)

    def _call_cells(self, one: UnknownCall, output: AnswerWriter) -> tuple[str, ...]:
        call = one.call
        allowed = f"yes by {who(call)}" if call.answered else "auto"
        change = _could_write(one.could_write)
        if one.path:
            digests = f"{short_digest(one.before_sha256)} -> {short_digest(one.after_sha256)}"
            change = f"to change {visible_line(one.path, 1_000)} {digests}: {_NOW[_file_now(one)]}"
        running = "in use: it may simply be running" if self._in_use else "it may have run, wholly or in part"
        by = f"{allowed}: {why(call)}"
        return output.moment(call.intent), name(call), *what(call), by, change, f"end unknown; {running}"

    def _session_line(self, one: OpenSession, output: AnswerWriter) -> str:
        session = visible_line(text(one.started, "session"), 40)
        where = visible_line(text(one.started, "workspace") or "-", 300)
        parts = [output.moment(one.started), f"session {session} in {where} never said that it ended"]
        if one.not_begun:
            parts.append(f"{counted(len(one.not_begun), 'call')} without an end and not begun")
        if self._in_use:
            parts.append("its log is in use: it may simply be running")
        elif self.torn:
            parts.append("its log's last line is torn")
        return "  ".join((*parts, visible_line(one.log, 5_000)))


def nothing_open(sessions: int) -> str:
    """Return the line for logs in which everything has an end."""
    if not sessions:
        return "there is no session, and so no call"
    return f"every call that was begun in {counted(sessions, 'session')} has an end, and every session"


def _could_write(paths: list[str] | None) -> str:
    if paths is None:
        return "it could write; which paths is not known"
    if not paths:
        return "it was to read only"
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return f"it could write {', '.join(visible_line(path, 200) for path in paths[:5])}{more}"


_NOW = {
    "as_intended": "the file is what it was to become",
    "as_before": "the file is as it was before",
    "otherwise": "the file is neither what it was nor what it was to become",
    "not_looked_at": "the file was not looked at",
    "": "",
}


def _file_now(one: UnknownCall) -> str:
    """Return how the file that a call was to change stands to that now."""
    if not one.path:
        return ""
    found = file_on_disk(one.path)
    if found.problem or one.after_sha256 is None:
        return "not_looked_at"
    if found.sha256 == one.after_sha256:
        return "as_intended"
    return "as_before" if found.sha256 == one.before_sha256 else "otherwise"
