"""`harness policy replay`, `audit redecide`: calls of old logs, judged again under another policy; nothing here runs one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from harness.action_log import read_log
from harness.actions import Access, Action, JsonValue, PathAccess
from harness.built_in import is_entry_point
from harness.cli.calls import CallReader, PolicyInForce, tool_use, workspace_at
from harness.cli.exits import Exit
from harness.cli.explain import short_by
from harness.errors import LogError, ToolError, UsageError
from harness.log_check import verify
from harness.log_order import LogRecord
from harness.policy import evaluate
from harness.policy_file import DECISION_WORDS, TOOL_NAMES
from harness.record import Record, replace
from harness.redaction import is_redacted
from harness.rules import Decision
from harness.visible import visible_line
from harness.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

CHANGED = 1
"""Exit code where `--fail-on` names a change that was found."""
_ENDED_SOMEHOW = ("interrupted", "crashed", "timeout")
"""Ends of a call that may have changed its file without saying so."""


class Replayed(Record):
    """A call of a log, judged again."""

    log: str
    session: str
    call: str
    """Its number."""
    tool: str
    summary: str
    old: Decision | None
    """None where the log's word is not one of ours."""
    old_by: str
    new: Decision | None = None
    """None where the call cannot be judged again."""
    new_by: str = ""
    problem: str = ""

    @property
    def change(self) -> str:
        """`laxer`, `stricter`, `same`, or `unknown` where it could not be judged again."""
        if self.old is None or self.new is None:
            return "unknown"
        return "same" if self.new is self.old else "laxer" if self.new < self.old else "stricter"


class _Session:
    """What must be known of a session to judge its calls as they were judged then."""

    def __init__(self, name: str, workspace: Workspace) -> None:
        self.name = name
        self.workspace = workspace
        self.proposed: dict[str, LogRecord] = {}
        self.decided: dict[str, LogRecord] = {}
        self.actions: dict[str, Action] = {}
        self.unseen: dict[str, None] = {}
        """Changes of entry points that no person had seen, as the gate keeps them."""


class Replay:
    """Goes through the records of logs, in order, and judges each decided call again."""

    def __init__(self, policy: str, environment: Mapping[str, str], logs: Sequence[str]) -> None:
        """Take the new policy's file or shipped name, and all logs. Raises PolicyError."""
        self.undecided = 0
        """Calls that had no decision: invalid ones, and those whose turn never came."""
        self.notes: list[str] = []
        """What a person should know of the logs: a broken chain, a folder that is gone."""
        self.broken = False
        """Whether a chain was broken."""
        self._environment = environment
        self._reader = CallReader()
        self._policies = PolicyInForce(policy, environment, *(os.path.realpath(log) for log in logs))

    def calls(self, log: str, only: str = "") -> Iterator[Replayed]:
        """Yield every decided call of a log, judged again; of a broken log those before the break.

        `only` is the name of the session that is meant, where it is not all of them.

        Raises UsageError if the log cannot be read, PolicyError if the policy cannot.
        """
        sessions: dict[str, _Session] = {}
        try:
            for record in islice(read_log(log), self._good_records(log)):
                if only and record["session"] != only:
                    continue
                if record["kind"] == "session_started":
                    sessions[str(record["session"])] = self._begin(record)
                    continue
                found = self._enter(log, sessions[str(record["session"])], record)
                if found is not None:
                    yield found
        except LogError as error:
            raise UsageError(str(error)) from None

    def _good_records(self, log: str) -> int:
        """Return how many records can be relied on, and note where that is not all."""
        found = verify(log)
        if found.broken_line is not None:
            self.broken = True
            self.notes.append(f"{log}: broken at line {found.broken_line}: it {found.problem}; replayed up to there")
        elif found.torn:
            self.notes.append(f"{log}: the last line is torn; replayed up to there")
        return found.records

    def _begin(self, record: LogRecord) -> _Session:
        folder, name = record.get("workspace"), str(record["session"])
        if not isinstance(folder, str) or is_redacted(folder):
            folder = os.getcwd()
            self.notes.append(f"session {name} names no workspace; its paths are taken from {folder}")
        elif not os.path.isdir(folder):
            self.notes.append(f"session {name}: the workspace {folder} is gone; judged as if it were there, and empty")
        return _Session(name, workspace_at(folder, self._environment.get("HOME")))

    def _enter(self, log: str, session: _Session, record: LogRecord) -> Replayed | None:
        """Take in one record; return the call that it decides, judged again."""
        call = str(record.get("call"))
        match record["kind"]:
            case "call_proposed":
                session.proposed[call] = record
            case "decision" if record.get("decision") == "none":
                self.undecided += 1
            case "decision":
                session.decided[call] = record
                return self._judge(log, session, record)
            case "approval_answered" if record.get("answer") == "yes" and _suspended(session.decided[call]):
                session.unseen.clear()  # the change was part of the question
            case "outcome" if call in session.decided and session.decided[call].get("decision") == "auto":
                if any(is_entry_point(path) for path in _changed(record, session.actions.get(call))):
                    session.unseen[str(session.decided[call].get("summary"))] = None
        return None

    def _judge(self, log: str, session: _Session, record: LogRecord) -> Replayed:
        call = str(record.get("call"))
        judged = Replayed(
            log=log,
            session=session.name,
            call=call,
            tool=str(record.get("tool")),
            summary=str(record.get("summary")),
            old=DECISION_WORDS.get(str(record.get("decision"))),
            old_by=str(record.get("by")),
        )
        try:
            action = self._action(judged, session, record)
        except ToolError as error:
            return replace(judged, problem=str(error))
        session.actions[call] = action
        verdict = evaluate(self._policies.at(session.workspace), action, tuple(session.unseen))
        return replace(judged, new=verdict.decision, new_by=verdict.deciding.by)

    def _action(self, judged: Replayed, session: _Session, decision: LogRecord) -> Action:
        """Return the action that was judged. Raises ToolError where the log does not hold all of it."""
        facets = _facets(decision)
        if judged.tool not in TOOL_NAMES:
            if [facet.get("kind") for facet in facets] == ["ToolUse"]:
                return tool_use(judged.tool)
            raise ToolError(f"{judged.tool} is a tool of another program")
        proposed = session.proposed[judged.call]
        arguments = proposed.get("arguments")
        if "arguments_characters" in proposed or not isinstance(arguments, str):
            raise ToolError("the log holds its arguments only in part")
        if is_redacted(arguments):
            raise ToolError("a secret was masked in its arguments")
        # A call that would change nothing was judged as a read; older logs show that of an edit by its facets.
        old_edit = judged.tool == "edit_file" and not any(str(f.get("facet")).startswith("write ") for f in facets)
        changes = not (decision.get("default_of") or old_edit)
        return self._reader.action(judged.tool, arguments, session.workspace, changes=changes)


def _facets(decision: LogRecord) -> list[dict[str, JsonValue]]:
    facets = decision.get("facets")
    return [facet for facet in facets if isinstance(facet, dict)] if isinstance(facets, list) else []


def _suspended(decision: LogRecord) -> bool:
    """Say whether a change of an entry point was shown with the question."""
    return any(str(facet.get("by")).endswith(", suspended") for facet in _facets(decision))


def _changed(outcome: LogRecord, action: Action | None) -> Sequence[str]:
    """Return the files that a call changed, or may have changed: as the gate takes it."""
    path = outcome.get("changed_path")
    if isinstance(path, str):
        return (path,)
    if action is None or outcome.get("status") not in _ENDED_SOMEHOW:
        return ()
    paths = (facet for facet in action.facets if isinstance(facet, PathAccess))
    return tuple(path.real for path in paths if path.access is not Access.READ)


def replay_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Judge the calls of every log again, list what would change, and return the exit code.

    Raises UsageError or PolicyError.
    """
    replay = Replay(arguments.policy, environment, arguments.logs)
    return _list_changes(replay, arguments.logs, "", as_json=arguments.json, fail_on=arguments.fail_on)


def redecide_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do the same for the logs that an audit is about; the exit code is BROKEN too where one of them is.

    Raises HarnessError.
    """
    from harness.cli.audit_logs import BROKEN, chosen_logs

    chosen = chosen_logs(arguments, environment)
    replay = Replay(arguments.policy, environment, chosen.paths)
    code = _list_changes(replay, chosen.paths, chosen.session, as_json=arguments.json, fail_on=arguments.fail_on)
    return BROKEN if replay.broken else code


def _list_changes(replay: Replay, logs: Sequence[str], only: str, *, as_json: bool, fail_on: str | None) -> int:
    """Write what would change, as it is found, and how many calls there were; return the exit code."""
    count = dict.fromkeys(("calls", "changes", "laxer", "stricter", "unknown", "undecided"), 0)
    told = 0
    for log in logs:
        for call in replay.calls(log, only):
            count["calls"] += 1
            if call.change != "same":
                count[call.change] += 1
                sys.stdout.write(f"{json.dumps(_told(call)) if as_json else _line(call)}\n")
        for note in replay.notes[told:]:
            sys.stderr.write(f"harness: {visible_line(note, 5_000)}\n")
        told = len(replay.notes)
    count |= {"changes": count["laxer"] + count["stricter"], "undecided": replay.undecided}
    sys.stdout.write(f"{json.dumps({'summary': count}) if as_json else _summary(count)}\n")
    found = {"laxer": count["laxer"], "any": count["changes"]}
    return CHANGED if fail_on and found[fail_on] else Exit.DONE


def _line(call: Replayed) -> str:
    about = visible_line(f"{call.session} #{call.call} {call.tool}  {visible_line(call.summary, 100)}", 300)
    if call.old is None or call.new is None:
        return f"{about}: cannot be judged: {visible_line(call.problem or 'its decision is not known', 300)}"
    old = f"{call.old.word} by {visible_line(short_by(call.old_by), 200)}"
    return f"{about}: {old} -> {call.new.word} by {visible_line(short_by(call.new_by), 200)}: {call.change}"


def _summary(count: Mapping[str, int]) -> str:
    text = f"{count['calls']} calls, {count['changes']} changes: {count['laxer']} laxer, {count['stricter']} stricter"
    if count["unknown"]:
        text += f"; {count['unknown']} cannot be judged"
    return f"{text}; {count['undecided']} never decided" if count["undecided"] else text


def _told(call: Replayed) -> dict[str, JsonValue]:
    return {
        "log": call.log,
        "session": call.session,
        "call": int(call.call) if call.call.isdecimal() else call.call,
        "tool": call.tool,
        "summary": call.summary,
        "change": call.change,
        "old": None if call.old is None else call.old.word,
        "old_by": call.old_by,
        "new": None if call.new is None else call.new.word,
        "new_by": call.new_by or None,
        "error": call.problem or None,
    }
