"""`harness undo`: restore the files that a session changed, unless they have changed since."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness import __version__
from harness.actions import JsonValue
from harness.app.kept_contents import kept_contents
from harness.app.sessions import UNDO, LoggedSession, logged_sessions, session_named, verified_session
from harness.audit.logged_changes import undone_paths as undone_in
from harness.errors import UsageError
from harness.files.session_undo import (
    Ended,
    LoggedStep,
    PathOutcome,
    SessionUndo,
    finish_killed_undos,
    has_effect,
)
from harness.files.undo import (
    CommandStep,
    Result,
    Step,
    StepOutcome,
    Undoable,
    UndonePath,
    Unrestorable,
    changes_to_undo,
)
from harness.files.workspace import Workspace
from harness.interrupt import Interrupt
from harness.log.action_log import ActionLog
from harness.log.reader import records
from harness.messages import StopReason
from harness.paths import is_within
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.exits import Exit
from harness.session.session_log import opened_log, who_and_where
from harness.session.signals import Signals
from harness.session.state import State, workspace_folder
from harness.terminal.console import FinishedOutput, complain
from harness.terminal.styles import Line, Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line

_FORESEEN = {"restored": "would restore", "removed": "would remove"}
_SUMMED = {
    "restored": "to put back", "removed": "to remove", "refused": "to leave", "not undone": "that cannot be undone"
}  # fmt: skip
MOST_REASONS = 3
"""Maximum number of reasons in a summary, for files that are left and for those that cannot be undone."""
_TONES = {Result.RESTORED: Tone.GOOD, Result.REMOVED: Tone.GOOD, Result.ALREADY: Tone.QUIET, Result.REFUSED: Tone.BAD}

MOST_LINES = 20
"""Maximum number of lines about the files of one command. Further files are counted."""


def undo_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Undo the newest change of a session, or all changes back to a call. Return the exit code. Raises HarnessError.

    A signal stops the command between two files. The restored files are reported.
    """
    interrupt = Interrupt()
    signals = Signals(interrupt)
    state = State.of(environment)
    folder = workspace_folder(arguments.cwd)
    session = _session_to_undo(arguments, state, folder)
    steps = _steps(session, state, arguments.to, folder)
    workspace = Workspace(session.workspace, environment.get("HOME"))
    stores = kept_contents(state, workspace.root)
    if not arguments.dry_run and (finished := finish_killed_undos(stores)):
        complain(finished_words(len(finished)))
    chosen = {(session.session, step.call) for step in steps if arguments.to is None or step.call >= arguments.to}
    logged_steps = [LoggedStep(session=session.session, step=step) for step in steps]
    undo = SessionUndo(logged_steps, chosen, workspace, stores, all_of_them=arguments.to is not None)
    foreseen = [outcome for _, outcome in undo.foreseen()]
    calls = list(dict.fromkeys(call_of(outcome) for outcome in foreseen if has_effect(outcome)))
    if arguments.dry_run or not calls:
        return _tell(foreseen, session, workspace, arguments, environment)
    signals.install()
    redactor = redactor_for(
        state, environment, secrets_of(environment), unless=(workspace.root, environment.get("HOME", ""))
    )
    log = opened_log(state, redactor, path=None, workspace=workspace.root, tell=complain)
    try:
        _begin(log, session, calls)
        outcomes = put_back(log, undo.carry_out(), interrupt)
        _end(log, StopReason.INTERRUPTED if interrupt.requested else StopReason.COMPLETED, outcomes)
    finally:
        try:
            state.record_head(log)
        finally:
            log.close()
    code = _tell(outcomes, session, workspace, arguments, environment, log.path)
    if interrupt.requested:
        complain("undo was stopped: what is not named above stands as it was; undo again to go on")
        return Exit.TERMINATED if signals.terminated else Exit.INTERRUPTED
    return code


def finished_words(count: int) -> str:
    """Return the message about undos that had been killed midway."""
    return f"{count_of(count, 'undo')} that had been stopped midway was finished first"


def undone_paths(paths: Iterable[str], session: str, workspace: str) -> frozenset[UndonePath]:
    """Return the calls and files of a session that were undone, according to the logs of undos. Raises LogError."""
    undone = (each for path in paths for each in undone_in(records(path, ("restored",))))
    pairs = {(int(call), path) for of, call, path in undone if of == session and call.isascii() and call.isdigit()}
    root = workspace.rstrip("/") + "/"
    return frozenset(pairs | {(call, path.removeprefix(root)) for call, path in pairs})


def put_back(log: ActionLog, doing: Iterator[tuple[str, Ended]], interrupt: Interrupt) -> list[Ended]:
    """Run the steps in order, and record the result of each, until a signal arrives.

    `doing` yields the session whose changes are undone, and the result. A result for a command's file is on disk only
    after a later record: the undo of a command is done at once, and has a journal. Raises LogError and OSError.
    """
    outcomes: list[Ended] = []
    while not interrupt.requested and (pair := next(doing, None)) is not None:
        session, outcome = pair
        outcomes.append(outcome)
        is_on_disk = not isinstance(outcome, PathOutcome)
        log.append("restored", {"of_session": session, **_fields(outcome)}, sync=is_on_disk)
    return outcomes


def call_of(outcome: Ended) -> int:
    """Return the number of the call that a result is about."""
    return outcome.step.call if isinstance(outcome, StepOutcome) else outcome.call


def _session_to_undo(arguments: Namespace, state: State, folder: str) -> LoggedSession:
    """Return the session to undo.

    This is the named session. Without a name, it is the newest in `folder` that may have changed something, or else the
    newest there. Raises UsageError if there is none, LogError if a log cannot be read.
    """
    sessions = logged_sessions([arguments.log] if arguments.log else state.log_paths())
    if arguments.session is not None:
        return session_named(sessions, arguments.session, "--session")
    of_it = [session for session in sessions if session.workspace == folder]
    if not of_it:
        place = visible_line(arguments.log or "the state folder's logs; --log FILE names another", 5_000)
        raise UsageError(f"no session in {visible_line(folder, 1_000)} is in {place}")
    return next((session for session in reversed(of_it) if _may_have_changed(session)), of_it[-1])


def _may_have_changed(session: LoggedSession) -> bool:
    """Return whether the session changed a file or ran a command. True if its log cannot be read to the end."""
    stops: list[int] = []
    steps = changes_to_undo(
        records(session.path, ("decision", "intent", "outcome"), stopped=stops.append),
        session.session,
        log=session.path,
    )
    return bool(steps or stops)


def _steps(session: LoggedSession, state: State, to: int | None, folder: str) -> tuple[Step, ...]:
    """Return the changes of a session, the newest first. `folder` is the user's current folder or `--cwd`.

    Raises UsageError if the session has no call `to`.
    """
    verified = verified_session(session, state).records
    if to is not None and not any(
        record["kind"] == "call_proposed" and record.get("call") == to for record in verified
    ):
        raise UsageError(
            f"--to: session {session.session} has no call {to}; `harness audit show --session {session.session}` numbers them"
        )
    undone = undone_paths(state.log_paths(), session.session, session.workspace)
    steps = changes_to_undo(verified, session.session, undone, log=session.path)
    foreign = not is_within(os.path.realpath(session.path), os.path.realpath(state.sessions))
    bounds = folder if foreign and state.known_head(session.path) is None else None
    return tuple(unless_forged(step, state.guarded, bounds, session.workspace) for step in steps)


def unless_forged(step: Step, guarded: Sequence[str], bounds: str | None, workspace: str) -> Step:
    """Return the step, or an `Unrestorable` one if its path shows that the log may be forged.

    Logs, trust and policies are never restored, because no call is permitted to write them. `bounds` is a folder or
    `None`. It is set for a log that anyone may have written: one outside the harness's own folder whose head was never
    noted. Such a log cannot restore files outside `bounds`, because the hash chain does not show who wrote it.
    """
    match step:
        case Undoable():
            subject, paths = step.path, [step.path]
        case CommandStep():
            subject, paths = step.subject, [os.path.join(workspace, change.path) for change in step.changes.changes]
        case _:
            return step
    reason = ""
    if any(is_within(path, folder) for folder in guarded for path in paths):
        reason = "the harness's own files are never restored"
    elif bounds is not None and not all(is_within(path, bounds) for path in paths):
        reason = "it lies elsewhere, and no head of this log was kept: anyone may have written it"
        reason += " (if you trust it: --cwd FOLDER)"
    if not reason:
        return step
    is_command = isinstance(step, CommandStep)
    return Unrestorable(call=step.call, tool=step.tool, subject=subject, reason=reason, is_command=is_command)


def _begin(log: ActionLog, session: LoggedSession, calls: list[int]) -> None:
    log.append(
        "session_started",
        {
            "mode": UNDO,
            "harness": __version__,
            "argv": list(sys.argv),
            **who_and_where(),
            "workspace": session.workspace,
            "of_session": session.session,
            "of_log": session.path,
            "calls": list(calls),
        },
        sync=True,
    )


def _end(log: ActionLog, stop: StopReason, outcomes: Iterable[Ended]) -> None:
    detail = ", ".join(f"{count} {word}" for word, count in _counts(outcomes).items())
    log.append("session_ended", {"stop": stop.value, "detail": detail}, sync=True)


def _fields(outcome: Ended) -> dict[str, JsonValue]:
    match outcome:
        case StepOutcome():
            step = outcome.step
            return {
                "call": step.call,
                "tool": step.tool,
                "path": step.path,
                "result": outcome.result.value,
                "detail": outcome.detail,
                "before_sha256": step.before_sha256,
                "after_sha256": step.after_sha256,
            }
        case PathOutcome():
            return {
                "call": outcome.call,
                "tool": outcome.tool,
                "path": outcome.path,
                "result": outcome.result.value,
                "detail": outcome.detail,
                "before_sha256": outcome.before_sha256,
                "after_sha256": outcome.after_sha256,
            }
        case Unrestorable():
            name = "command" if outcome.is_command else "path"
            result = "not undone" if outcome.is_command else Result.REFUSED.value
            return {
                "call": outcome.call,
                "tool": outcome.tool,
                name: outcome.subject,
                "result": result,
                "detail": outcome.reason,
            }


def _counts(outcomes: Iterable[Ended]) -> dict[str, int]:
    counts = {result.value: 0 for result in Result} | {"not undone": 0}
    for outcome in outcomes:
        counts[str(_fields(outcome)["result"])] += 1
    return counts


def _tell(
    outcomes: list[Ended],
    session: LoggedSession,
    workspace: Workspace,
    arguments: Namespace,
    environment: Mapping[str, str],
    log: str | None = None,
) -> int:
    """Print the steps, which are done or planned, and return the exit code."""
    counts = _counts(outcomes)
    code = Exit.REFUSED if counts[Result.REFUSED.value] else Exit.DONE
    if arguments.json:
        summary: dict[str, JsonValue] = {
            "session": session.session,
            "log": session.path,
            "workspace": session.workspace,
        }
        summary |= {"undo_log": log, "exit_code": int(code), **counts}
        for fields in (*map(_fields, outcomes), summary):
            sys.stdout.write(json.dumps({"dry_run": bool(arguments.dry_run), **fields}, sort_keys=True) + "\n")
        return code
    console = FinishedOutput(environment)
    console.line(
        visible_line(f"session {session.session} in {session.workspace}, begun {session.time}", 1000), Tone.QUIET
    )
    for line in undo_lines(outcomes, workspace.root, dry_run=arguments.dry_run):
        console.line(line.text, line.tone)
    results = [outcome.result for outcome in outcomes if not isinstance(outcome, Unrestorable)]
    if all(result is Result.ALREADY for result in results) and code is Exit.DONE:
        console.line("there is nothing to undo")
    if log is not None:
        console.line(visible_line(f"log: {log}", 5_000), Tone.QUIET)
    return code


def undo_summary(outcomes: Iterable[Ended]) -> str:
    """Return the planned effects of an undo in one line: `2 to put back, 1 to remove, 1 to leave (a.txt: changed since)`."""
    counts = dict.fromkeys(_SUMMED.values(), 0)
    reasons: dict[str, list[str]] = {_SUMMED["refused"]: [], _SUMMED["not undone"]: []}
    for outcome in outcomes:
        fields = _fields(outcome)
        word = _SUMMED.get(str(fields["result"]))
        if word is None:
            continue
        counts[word] += 1
        if word in reasons:
            subject = os.path.basename(str(fields["path"])) if "path" in fields else str(fields.get("command"))
            reasons[word].append(f"{visible_line(subject, 60)}: {visible_line(str(fields['detail']), 100)}")
    parts = []
    for word, count in counts.items():
        reason = "; ".join(reasons.get(word, [])[:MOST_REASONS])
        if count:
            parts.append(f"{count} {word}{f' ({reason})' if reason else ''}")
    return ", ".join(parts)


def undo_lines(outcomes: Sequence[Ended], root: str, *, dry_run: bool) -> Iterator[Line]:
    """Yield the lines about an undo, which is planned if `dry_run`. Of a command, only the first files are listed."""
    counts: dict[int, int] = {}
    for outcome in outcomes:
        call = call_of(outcome)
        counts[call] = counts.get(call, 0) + isinstance(outcome, PathOutcome)
        is_listed = not isinstance(outcome, PathOutcome) or outcome.result is Result.REFUSED
        if is_listed or counts[call] <= MOST_LINES:
            yield _undo_line(outcome, root, dry_run=dry_run)
    for call, count in counts.items():
        if count > MOST_LINES:
            yield Line(tone=Tone.QUIET, text=f"... {count:,} files of call {call} in all")


def _undo_line(outcome: Ended, root: str, *, dry_run: bool) -> Line:
    """Return the line about one step, which is planned if `dry_run`. `root` is the workspace."""
    fields = _fields(outcome)
    word = str(fields["result"])
    word = _FORESEEN.get(word, word) if dry_run else word
    subject = str(fields.get("path", fields.get("command"))).removeprefix(root.rstrip("/") + "/")
    detail = f": {fields['detail']}" if fields["detail"] else ""
    text = f"{word:<14} {visible_line(subject, 300)}  [call {fields['call']} {visible_line(str(fields['tool']), 50)}]"
    tone = (
        Tone.WARNING
        if isinstance(outcome, Unrestorable) and outcome.is_command
        else Tone.BAD
        if isinstance(outcome, Unrestorable)
        else _TONES[outcome.result]
    )
    return Line(tone=tone, text=visible_line(f"{text}{detail}", 1000))
