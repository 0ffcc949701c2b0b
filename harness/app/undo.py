"""`harness undo`: put back the files that a session changed, where they still hold what the harness wrote."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from harness import __version__
from harness.actions import JsonValue
from harness.app.sessions import UNDO, LoggedSession, logged_sessions, session_named, verified_session
from harness.audit.logged_changes import undone_calls as undone_in
from harness.errors import UsageError
from harness.files.before_images import BeforeImages
from harness.files.undo import (
    Rehearsal,
    Result,
    Step,
    StepOutcome,
    Undoable,
    Unrestorable,
    changes_to_undo,
    restore,
    unwind,
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
from harness.session.state import State, here
from harness.terminal.console import FinishedOutput, complain
from harness.terminal.styles import Line, Tone
from harness.text.visible import visible_line

EFFECTS = (Result.RESTORED, Result.REMOVED)
_FORESEEN = {"restored": "would restore", "removed": "would remove"}
_TONES = {Result.RESTORED: Tone.GOOD, Result.REMOVED: Tone.GOOD, Result.ALREADY: Tone.QUIET, Result.REFUSED: Tone.BAD}

Ended = StepOutcome | Unrestorable


def undo_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Undo the newest change of a session, or all back to a call, and return the exit code. Raises HarnessError.

    A signal stops it between two files, with a report of the restored ones.
    """
    interrupt = Interrupt()
    signals = Signals(interrupt)
    state = State.of(environment)
    folder = here(arguments.cwd)
    found = _session_to_undo(arguments, state, folder)
    steps = _steps(found, state, arguments.to, folder)
    workspace, images = Workspace(found.workspace, environment.get("HOME")), BeforeImages(state.before_images)
    every = arguments.to is not None
    foreseen = list(unwind(steps, Rehearsal(workspace, images), all_of_them=every))
    calls = [one.step.call for one in foreseen if isinstance(one, StepOutcome) and one.result in EFFECTS]
    if arguments.dry_run or not calls:
        return _tell(foreseen, found, workspace, arguments, environment)
    undo_one = partial(restore, workspace=workspace, images=images)
    signals.install()
    redactor = redactor_for(
        state, environment, secrets_of(environment), unless=(workspace.root, environment.get("HOME", ""))
    )
    log = opened_log(state, redactor, path=None, workspace=workspace.root, tell=complain)
    try:
        _begin(log, found, calls)
        ended = put_back(log, found.session, unwind(steps, undo_one, all_of_them=every), interrupt)
        _end(log, StopReason.INTERRUPTED if interrupt.requested else StopReason.COMPLETED, ended)
    finally:
        try:
            state.record_head(log)
        finally:
            log.close()
    code = _tell(ended, found, workspace, arguments, environment, log.path)
    if interrupt.requested:
        complain("undo was stopped: what is not named above stands as it was; undo again to go on")
        return Exit.TERMINATED if signals.terminated else Exit.INTERRUPTED
    return code


def undone_calls(paths: Iterable[str], session: str) -> frozenset[int]:
    """Return the calls of a session that were undone, as the logs of undoings tell. Raises LogError."""
    undone = (one for path in paths for one in undone_in(records(path, ("restored",))))
    return frozenset(int(call) for of, call in undone if of == session and call.isascii() and call.isdigit())


def put_back(log: ActionLog, session: str, doing: Iterator[Ended], interrupt: Interrupt) -> list[Ended]:
    """Do one step after another, and record the result of each before the next, until a signal arrives.

    `session` is the one whose changes are undone. Raises LogError.
    """
    ended: list[Ended] = []
    while not interrupt.requested and (one := next(doing, None)) is not None:
        ended.append(one)
        log.append("restored", {"of_session": session, **_fields(one)}, sync=True)
    return ended


def _session_to_undo(arguments: Namespace, state: State, folder: str) -> LoggedSession:
    """Return the session that is named, else the newest in `folder` that may have changed something, else its newest.

    Raises UsageError if there is none, LogError for what cannot be read.
    """
    sessions = logged_sessions([arguments.log] if arguments.log else state.log_paths())
    if arguments.session is not None:
        return session_named(sessions, arguments.session, "--session")
    of_it = [one for one in sessions if one.workspace == folder]
    if not of_it:
        where = visible_line(arguments.log or "the state folder's logs; --log FILE names another", 5_000)
        raise UsageError(f"no session in {visible_line(folder, 1_000)} is in {where}")
    return next((one for one in reversed(of_it) if _may_have_changed(one)), of_it[-1])


def _may_have_changed(found: LoggedSession) -> bool:
    """Say whether the session changed a file or ran a command; also where its log cannot be read to the end."""
    stops: list[int] = []
    steps = changes_to_undo(records(found.path, ("decision", "intent", "outcome"), stopped=stops.append), found.session)
    return bool(steps or stops)


def _steps(found: LoggedSession, state: State, to: int | None, folder: str) -> tuple[Step, ...]:
    """Return the changes to undo, the newest first. `folder` is the one that the person means.

    Raises UsageError if the session has no call `to`.
    """
    verified = verified_session(found, state).records
    if to is not None and not any(one["kind"] == "call_proposed" and one.get("call") == to for one in verified):
        raise UsageError(
            f"--to: session {found.session} has no call {to}; `harness audit show --session {found.session}` numbers them"
        )
    steps = changes_to_undo(verified, found.session, undone_calls(state.log_paths(), found.session))
    foreign = not is_within(os.path.realpath(found.path), os.path.realpath(state.sessions))
    bounds = folder if foreign and state.known_head(found.path) is None else None
    return tuple(unless_forged(step, state.guarded, bounds) for step in steps if to is None or step.call >= to)


def unless_forged(step: Step, guarded: Iterable[str], bounds: str | None) -> Step:
    """Keep a forged log from reaching logs, trust and policies: no call was ever permitted to write them.

    A log that anyone may have made (it is not among the harness's own, and no head of it was kept) reaches no file
    outside `bounds`, the folder that the person means: its chain does not tell who wrote it.
    """
    if not isinstance(step, Undoable):
        return step
    why = ""
    if any(is_within(step.path, folder) for folder in guarded):
        why = "the harness's own files are never restored"
    elif bounds is not None and not is_within(step.path, bounds):
        why = "it lies elsewhere, and no head of this log was kept: anyone may have written it"
    if not why:
        return step
    return Unrestorable(call=step.call, tool=step.tool, what=step.path, why=why, is_command=False)


def _begin(log: ActionLog, found: LoggedSession, calls: list[int]) -> None:
    log.append(
        "session_started",
        {
            "mode": UNDO,
            "harness": __version__,
            "argv": list(sys.argv),
            **who_and_where(),
            "workspace": found.workspace,
            "of_session": found.session,
            "of_log": found.path,
            "calls": list(calls),
        },
        sync=True,
    )


def _end(log: ActionLog, stop: StopReason, ended: Iterable[Ended]) -> None:
    detail = ", ".join(f"{count} {word}" for word, count in _counts(ended).items())
    log.append("session_ended", {"stop": stop.value, "detail": detail}, sync=True)


def _fields(ended: Ended) -> dict[str, JsonValue]:
    match ended:
        case StepOutcome():
            step = ended.step
            return {
                "call": step.call,
                "tool": step.tool,
                "path": step.path,
                "result": ended.result.value,
                "detail": ended.detail,
                "before_sha256": step.before_sha256,
                "after_sha256": step.after_sha256,
            }
        case Unrestorable():
            name = "command" if ended.is_command else "path"
            result = "not undone" if ended.is_command else Result.REFUSED.value
            return {"call": ended.call, "tool": ended.tool, name: ended.what, "result": result, "detail": ended.why}


def _counts(ended: Iterable[Ended]) -> dict[str, int]:
    counts = {result.value: 0 for result in Result} | {"not undone": 0}
    for one in ended:
        counts[str(_fields(one)["result"])] += 1
    return counts


def _tell(
    ended: list[Ended],
    found: LoggedSession,
    workspace: Workspace,
    arguments: Namespace,
    environment: Mapping[str, str],
    log: str | None = None,
) -> int:
    """Print the steps, done or to be done, and return the exit code."""
    counts = _counts(ended)
    code = Exit.REFUSED if counts[Result.REFUSED.value] else Exit.DONE
    if arguments.json:
        summary: dict[str, JsonValue] = {"session": found.session, "log": found.path, "workspace": found.workspace}
        summary |= {"undo_log": log, "exit_code": int(code), **counts}
        for fields in (*map(_fields, ended), summary):
            sys.stdout.write(json.dumps({"dry_run": bool(arguments.dry_run), **fields}, sort_keys=True) + "\n")
        return code
    console = FinishedOutput(environment)
    console.line(visible_line(f"session {found.session} in {found.workspace}, begun {found.time}", 1000), Tone.QUIET)
    for one in ended:
        line = undo_line(one, workspace.root, dry_run=arguments.dry_run)
        console.line(line.text, line.tone)
    if (
        not any(isinstance(one, StepOutcome) and one.result is not Result.ALREADY for one in ended)
        and code is Exit.DONE
    ):
        console.line("there is nothing to undo")
    if log is not None:
        console.line(visible_line(f"log: {log}", 5_000), Tone.QUIET)
    return code


def undo_line(ended: Ended, root: str, *, dry_run: bool) -> Line:
    """Return the line about one step, done or with `dry_run` to be done; `root` is the workspace."""
    fields = _fields(ended)
    word = str(fields["result"])
    word = _FORESEEN.get(word, word) if dry_run else word
    what = str(fields.get("path", fields.get("command"))).removeprefix(root.rstrip("/") + "/")
    detail = f": {fields['detail']}" if fields["detail"] else ""
    text = f"{word:<14} {visible_line(what, 300)}  [call {fields['call']} {visible_line(str(fields['tool']), 50)}]"
    tone = _TONES[ended.result] if isinstance(ended, StepOutcome) else Tone.WARNING if ended.is_command else Tone.BAD
    return Line(tone=tone, text=visible_line(f"{text}{detail}", 1000))
