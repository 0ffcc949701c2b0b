"""`policy replay`: judge the calls of old logs again under another policy, in the order of the logs. Nothing is run."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from harness.actions import Action, Decision, JsonValue, written_paths
from harness.app.audit.answer_writer import AnswerWriter
from harness.app.audit.logs import BROKEN, chosen_logs
from harness.app.policy.judged_call import CallReader
from harness.app.policy.logged_use import is_told_whole, logged_facets, logged_use
from harness.audit.findings import Findings, Soundness, judge_log
from harness.errors import LogError, PolicyError, ToolError, UsageError
from harness.files.workspace import Workspace
from harness.grant_pattern import GrantScope, pattern_from
from harness.log.heads_file import HeadsFile
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.vocabulary import CUT_SHORT
from harness.paths import short_place
from harness.policy.built_in import is_entry_point
from harness.policy.extended import PolicyText, text_and_table
from harness.policy.loader import DECISION_WORDS, parse_policy
from harness.policy.policy import Policy, combine, tightening_only
from harness.policy.rules import Layer, Origin
from harness.policy.session_grants import Grant, with_grants
from harness.policy.verdict import Source, Verdict, evaluate
from harness.record import Record, replace
from harness.redaction.marks import is_redacted
from harness.session.exits import Exit
from harness.session.policies import PolicyInForce
from harness.session.state import State
from harness.terminal.console import complain
from harness.terminal.styles import Tone
from harness.terminal.tables import Column
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tool_kinds import OPTIONAL_NAMES, PLUGIN_TOOLS, SHIPPED_TOOLS, Does

_OF_POLICY = ("policy", "policy_sha256", "policy_files")
"""Log fields about the policy that is in force from a record on."""


class JudgedAgain(Record):
    """A decided call of a log: its action, the old decision and the new one."""

    log: str
    session: str
    call: str
    """Number of the call."""
    decision: LogRecord
    """The decision record in the log."""
    action: Action | None = None
    policy: Policy | None = None
    """The policy of the new judgement."""
    unseen: tuple[str, ...] = ()
    """Changes of entry points that the user had not seen at the time."""
    verdict: Verdict | None = None
    problem: str = ""
    """Reason why the call could not be judged again."""

    @property
    def tool(self) -> str:
        """The tool that was called."""
        return str(self.decision.get("tool"))

    @property
    def summary(self) -> str:
        """The call in one line."""
        return str(self.decision.get("summary"))

    @property
    def old(self) -> Decision | None:
        """The policy's decision at the time, without hooks. `None` if the log's word is unknown."""
        if self.decision.get("source") == Source.HOOK.value:
            words = (DECISION_WORDS.get(str(facet.get("decision"))) for facet in logged_facets(self.decision))
            return max((word for word in words if word is not None), default=None)
        return DECISION_WORDS.get(str(self.decision.get("decision")))

    @property
    def old_by(self) -> str:
        """Name of what decided at the time."""
        by_hook = self.decision.get("source") == Source.HOOK.value
        return "the policy, hooks aside" if by_hook else str(self.decision.get("by"))

    @property
    def new(self) -> Decision | None:
        """The new decision. `None` if the call could not be judged again."""
        return None if self.verdict is None else self.verdict.decision

    @property
    def new_by(self) -> str:
        """Name of what decides now."""
        return "" if self.verdict is None else self.verdict.deciding.by

    @property
    def change(self) -> str:
        """`laxer`, `stricter`, `same`, or `unknown` if one of the decisions is unknown."""
        if self.old is None or self.new is None:
            return "unknown"
        return "same" if self.new is self.old else "laxer" if self.new < self.old else "stricter"


class LoggedSetting:
    """The state of a logged session that is needed to judge its calls as at the time."""

    def __init__(self, name: str, started: LogRecord, workspace: Workspace) -> None:
        self.name = name
        self.started = started
        self.workspace = workspace
        self.proposed: dict[str, LogRecord] = {}
        self.decided: dict[str, LogRecord] = {}
        self.actions: dict[str, Action] = {}
        self.unseen: dict[str, None] = {}
        """Changes of entry points that the user had not seen, as tracked by the gate."""
        self.grants: dict[str, Grant] = {}
        """Grants at the time, by ID."""
        self.asleep: set[str] = set()
        """IDs of suspended grants. Each waits for the user's answer about a command's changes."""

    @property
    def in_force(self) -> tuple[Grant, ...]:
        """The grants that were not suspended."""
        return tuple(grant for name, grant in self.grants.items() if name not in self.asleep)

    def take_grant(self, record: LogRecord) -> None:
        """Apply a record about grants or protected places: grant, revocation, suspension, reactivation.

        Invalid records, which no gate writes, have no effect.
        """
        if record["kind"] == "grant":
            self._take_grant(record)
        else:
            self._take_places(record)

    def _take_places(self, record: LogRecord) -> None:
        grants = record.get("grants")
        grant_ids = {str(grant) for grant in grants} if isinstance(grants, list) else set()
        if record["kind"] == "places_changed":
            self.asleep |= grant_ids
        elif record.get("answer") != "nobody":
            self.asleep -= grant_ids

    def _take_grant(self, record: LogRecord) -> None:
        name = str(record.get("grant"))
        for grant_id in (name, str(record.get("of"))):
            self.grants.pop(grant_id, None)
            self.asleep.discard(grant_id)
        if record.get("asleep"):
            self.asleep.add(name)
        if record.get("change") == "revoked":
            return
        try:
            pattern, scope = pattern_from(record), GrantScope(str(record.get("scope")))
        except ValueError:
            return
        line = record.get("line")
        origin = Origin(file=str(record.get("file")), line=line if isinstance(line, int) else 0)
        self.grants[name] = Grant(id=name, scope=scope, pattern=pattern, origin=origin)


PolicyOf: TypeAlias = Callable[[str, LoggedSetting], Policy | str]
"""Returns the policy for judging a session of the log at a path, or the reason why there is none."""


class Replay:
    """Reads the records of logs in order and judges each decided call again."""

    def __init__(
        self,
        policy_of: PolicyOf,
        environment: Mapping[str, str],
        *,
        whole_only: bool = False,
        granted: bool = True,
        findings: Iterable[Findings] = (),
    ) -> None:
        """Create it. `findings` are results of logs that were already verified and reported.

        `granted` tells whether the user's grants at the time apply. Of a broken log, the records before the break are
        used, or none with `whole_only`. The last of these records may be altered, because each record is protected by
        the next one.
        """
        self.undecided = 0
        """Number of calls without a decision: invalid calls, and those whose turn never came."""
        self.notes: list[str] = []
        """Notes for the user about the logs: a broken chain, a missing folder."""
        self.broken: list[str] = []
        """Logs with altered content: a broken chain, or a noted head that differs."""
        self.without_head: list[str] = []
        """Logs whose end is unproven: no head was noted, or the log continued after the noted head."""
        self.settings: dict[tuple[str, str], LoggedSetting] = {}
        """The sessions, by log path and session name."""
        self._whole_only = whole_only
        self._granted = granted
        self._findings = {log_findings.path: log_findings for log_findings in findings}
        self._heads = HeadsFile(State.of(environment).heads)
        self._policy_of = policy_of
        self._environment = environment
        self._reader = CallReader(environment)

    def calls(
        self, log: str, only: str = "", *, later: Callable[[str, LogRecord], None] | None = None
    ) -> Iterator[JudgedAgain]:
        """Yield every decided call of a log, judged again.

        `only` is the name of a single session to judge. `later` is called for every answer and every intent, with the
        session's name and the record.

        Raises LogError if the log cannot be read, UsageError for an unreadable heads file, PolicyError for an unusable
        policy.
        """
        sessions: dict[str, LoggedSetting] = {}
        for record in islice(read_log(log), self._good_records(log)):
            name = str(record["session"])
            if only and name != only:
                continue
            if record["kind"] == "session_started":
                sessions[name] = self.settings[log, name] = self._begin(record)
                continue
            replayed_call = self._enter(log, sessions[name], record)
            if replayed_call is not None:
                yield replayed_call
            if later is not None and record["kind"] in ("approval_answered", "intent"):
                later(name, record)

    def _good_records(self, log: str) -> int:
        """Return the number of reliable records. Add a note if others are omitted or suspect. Raises LogError."""
        findings = self._findings.get(log)
        standing = findings or judge_log(log, self._heads)
        records = standing.verification.records
        if standing.verification.torn and (findings is None or standing.soundness is Soundness.BROKEN):
            self.notes.append(f"{log}: the last line is torn; judged again up to there")
        left_out = self._whole_only and standing.unfit
        if standing.soundness is not Soundness.BROKEN and not left_out:
            if not standing.evidence.is_end(standing.verification.head):
                self.without_head.append(log)
            return records
        self.broken.append(log)
        if self._whole_only:
            counts, records = "nothing in it counts", 0
        elif standing.verification.broken_line is None:
            counts = "what is left of it was judged again"
        else:
            counts = "judged again up to there, and the last record before it may be what was altered"
        self.notes.append(f"{log}: {_why_broken(standing)}; {counts}")
        return records

    def _begin(self, record: LogRecord) -> LoggedSetting:
        folder, name = record.get("workspace"), str(record["session"])
        if not isinstance(folder, str) or is_redacted(folder) or folder[:1] != "/" or not is_path(folder):
            folder = os.getcwd()
            self.notes.append(f"session {name} names no workspace; its paths are taken from {folder}")
        elif not os.path.isdir(folder):
            display_path = visible_line(folder, 1_000)
            self.notes.append(
                f"session {name}: the workspace {display_path} is gone; judged as if it were there, and empty"
            )
        return LoggedSetting(name, record, Workspace.even_if_gone(folder, self._environment.get("HOME")))

    def _enter(self, log: str, session: LoggedSetting, record: LogRecord) -> JudgedAgain | None:
        """Apply one record. Return the call that it decides, judged again. Else return `None`."""
        call = str(record.get("call"))
        match record["kind"]:
            case "call_proposed":
                session.proposed[call] = record
            case "policy_changed":
                session.started = {**session.started, **{name: record.get(name) for name in _OF_POLICY}}
            case "grant" | "places_changed" | "places_answered" if self._granted:
                session.take_grant(record)
            case "decision" if record.get("decision") == "none":
                self.undecided += 1
            case "decision":
                session.decided[call] = record
                return self._judge(log, session, record)
            case "approval_answered" if record.get("answer") == "yes" and _suspended(session.decided[call]):
                if session.proposed[call].get("by") != "person":  # otherwise nothing was shown
                    session.unseen.clear()  # the question showed the change
            case "outcome" if call in session.decided and session.decided[call].get("decision") == "auto":
                if any(is_entry_point(path) for path in _changed(record, session.actions.get(call))):
                    session.unseen[str(session.decided[call].get("summary"))] = None
        return None

    def _judge(self, log: str, session: LoggedSetting, record: LogRecord) -> JudgedAgain:
        judged_again = JudgedAgain(
            log=log,
            session=session.name,
            call=str(record.get("call")),
            decision=record,
            unseen=tuple(session.unseen),
        )
        try:
            action = self._action(session, record)
        except ToolError as error:
            return replace(judged_again, problem=str(error))
        session.actions[judged_again.call] = action
        policy = self._policy_of(log, session)
        if isinstance(policy, str):
            return replace(judged_again, action=action, problem=policy)
        policy = with_grants(policy, session.in_force)
        effects = record.get("effects")
        hides = isinstance(effects, dict) and bool(effects.get("left_out"))
        verdict = evaluate(policy, action, judged_again.unseen, hides=hides)
        return replace(judged_again, action=action, policy=policy, verdict=verdict)

    def _declares(self, tool: str, workspace: Workspace) -> bool:
        try:
            return self._reader.declares(tool, workspace)
        except UsageError as error:
            raise ToolError(str(error)) from None

    def _action(self, session: LoggedSetting, decision: LogRecord) -> Action:
        """Return the action that was judged. Raises ToolError if the log does not have all of it."""
        facets, tool = logged_facets(decision), str(decision.get("tool"))
        is_prepared = tool in OPTIONAL_NAMES or (
            tool.startswith(PLUGIN_TOOLS) and not is_told_whole(facets) and self._declares(tool, session.workspace)
        )
        if tool not in SHIPPED_TOOLS and not is_prepared and not is_told_whole(facets):
            raise ToolError(f"{tool} is a tool of another program")
        proposed = session.proposed[str(decision.get("call"))]
        arguments = proposed.get("arguments")
        if "arguments_characters" in proposed or not isinstance(arguments, str):
            raise ToolError("the log holds its arguments only in part")
        if is_redacted(arguments):
            raise ToolError("a secret was masked in its arguments")
        if is_prepared:
            return self._reader.action(tool, arguments, session.workspace)
        if tool not in SHIPPED_TOOLS:
            return logged_use(decision, arguments, session.workspace)
        # A call that would change nothing was judged as a read. In older logs, only the facets show that.
        old_edit = SHIPPED_TOOLS[tool].does is Does.WRITES and not any(
            str(f.get("facet")).startswith("write ") for f in facets
        )
        changes = not (decision.get("default_of") or old_edit)
        return self._reader.action(tool, arguments, session.workspace, changes=changes)


def is_path(text: str) -> bool:
    """Return whether a text of a log can be a path here. False for NUL bytes and characters that cannot be encoded."""
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _why_broken(standing: Findings) -> str:
    verification = standing.verification
    return (
        standing.reason
        if verification.broken_line is None
        else f"broken at line {verification.broken_line}: it {verification.problem}"
    )


def _suspended(decision: LogRecord) -> bool:
    """Return whether the question for a call showed the change of an entry point."""
    return any(str(facet.get("by")).endswith(", suspended") for facet in logged_facets(decision))


def _changed(outcome: LogRecord, action: Action | None) -> Sequence[str]:
    """Return the files that a call changed or may have changed, by the gate's criteria."""
    path = outcome.get("changed_path")
    if isinstance(path, str):
        return (path,)
    if action is None or not (action.text or outcome.get("status") in CUT_SHORT):
        return ()
    return written_paths(action)


def recorded_policy(started: LogRecord, state: State) -> Policy | str:
    """Return a session's policy, built from the texts in its first record. If that fails, return the reason."""
    files, tools = started.get("policy_files"), started.get("tools")
    extra = (
        [tool for tool in tools if isinstance(tool, str) and tool not in SHIPPED_TOOLS]
        if isinstance(tools, list)
        else []
    )
    layers = []
    recorded = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    for file in (file for file in recorded if "root" not in file):
        layer = _layer(file, recorded, extra)
        if isinstance(layer, str):
            return layer
        layers.append(layer)
    try:
        policy = combine(layers)
    except PolicyError as error:
        return f"the log holds no policy that could be used: {error}"
    # The policy files and the harness's own files were protected. The harness's are assumed to be at their present
    # paths.
    source_paths = (os.path.realpath(source.path) for source in policy.sources if is_path(source.path))
    return policy.guarding(*source_paths, *state.guarded)


def _layer(
    file: Mapping[str, JsonValue], recorded: Sequence[Mapping[str, JsonValue]], extra_tools: list[str]
) -> Policy | str:
    """Return one layer of a policy, with the files of `recorded` that it extends. If that fails, return the reason."""
    path, word = str(file.get("path")), file.get("layer")
    layers = {layer.value: layer for layer in Layer}
    if not isinstance(word, str) or word not in layers:
        return f"the policy {path} is of no known layer"
    by_path = {str(each.get("path")): each for each in recorded}

    def find(name: str, extending: str) -> PolicyText:
        _, table = text_and_table(PolicyText(path=extending, content=_recorded_text(by_path[extending])))
        names, paths = table["extends"], by_path[extending].get("extends")
        if not isinstance(names, list) or not isinstance(paths, list) or len(names) != len(paths):
            raise ValueError("is not in the log")
        other = str(paths[names.index(name)])
        if other not in by_path:
            raise ValueError("is not in the log")
        return PolicyText(path=other, content=_recorded_text(by_path[other]))

    try:
        data = _recorded_text(file)
    except ValueError as error:
        return str(error)
    try:
        policy = parse_policy(data, path, layer=layers[word], extra_tools=extra_tools, find=find)
    except PolicyError as error:
        return f"the policy of the log does not load here: {error}"
    return policy if file.get("trusted") is True else tightening_only(policy)


def _recorded_text(file: Mapping[str, JsonValue]) -> bytes:
    """Return the text of a policy file in a log. Raises ValueError if it is not there, or not what it was."""
    path, text = str(file.get("path")), file.get("text")
    if not isinstance(text, str):
        raise ValueError(f"the log does not hold the text of the policy {path}")  # noqa: TRY004 - a log may hold any
    data = text.encode("utf-8", "surrogatepass")
    if hashlib.sha256(data).hexdigest() != file.get("sha256"):
        masked = "a secret in it was masked" if is_redacted(text) else "it has another digest"
        raise ValueError(f"the text of the policy {path} is not what it was: {masked}")
    return data


CHANGED = 1
"""Exit code if a change was found that `--fail-on` names."""


def under_policy(
    policy: str | Sequence[str],
    environment: Mapping[str, str],
    logs: Sequence[str],
    findings: Sequence[Findings] = (),
    *,
    granted: bool = True,
) -> Replay:
    """Return a replay of the calls of `logs` under `policy` (files or shipped names) with this machine's layers.

    `findings` are the verification results of the logs, if they were already reported. Raises PolicyError.
    """
    policies = PolicyInForce(policy, environment, *(os.path.realpath(log) for log in logs))
    return Replay(lambda _log, session: policies.at(session.workspace), environment, granted=granted, findings=findings)


def replay_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Judge the calls of the logs again, list the changes, and return the exit code. Raises HarnessError.

    A broken or missing log proves nothing about its calls. With `--fail-on`, the exit code is then BROKEN.
    """
    chosen = chosen_logs(arguments, environment)
    try:
        chosen.verify_all()
        replay = under_policy(arguments.policy, environment, chosen.paths, chosen.findings)
        with AnswerWriter(environment, as_json=arguments.json) as output:
            code = _list_changes(replay, chosen.paths, chosen.session, output, fail_on=arguments.fail_on)
    except LogError as error:
        if not arguments.logs:
            raise
        raise UsageError(str(error)) from None  # a named log must be usable, like a policy
    return BROKEN if chosen.code and arguments.fail_on else code


def _list_changes(replay: Replay, logs: Sequence[str], only: str, output: AnswerWriter, *, fail_on: str | None) -> int:
    """Write each change as it is found, then the number of calls. Return the exit code."""
    count = dict.fromkeys(("calls", "changes", "laxer", "stricter", "unknown", "undecided"), 0)
    listed_count = 0
    for log in logs:
        for call in replay.calls(log, only):
            count["calls"] += 1
            if call.change != "same":
                count[call.change] += 1
                _tell(call, output)
        for note in replay.notes[listed_count:]:
            complain(note)
        listed_count = len(replay.notes)
    count |= {"changes": count["laxer"] + count["stricter"], "undecided": replay.undecided}
    output.line(_summary(count))
    if output.as_json:
        sys.stdout.write(f"{json.dumps({'summary': count})}\n")
    failures = {"laxer": count["laxer"], "any": count["changes"]}
    return CHANGED if fail_on and failures[fail_on] else Exit.DONE


_COLUMNS = (
    Column(name="call"),
    Column(name="tool", spare=1),
    Column(name="what", folds=True),
    Column(name="was", folds=True),
    Column(name="would be", folds=True),
    Column(name="change", toned=True),
)
_TONES = {"laxer": Tone.WARNING, "unknown": Tone.BAD}


def _tell(call: JudgedAgain, output: AnswerWriter) -> None:
    """Write a call whose decision would change."""
    if output.as_json:
        sys.stdout.write(f"{json.dumps(_as_json(call))}\n")
    elif not output.at_terminal:
        output.line(_line(call))
    else:
        was = "" if call.old is None else f"{call.old.word} by {short_place(call.old_by)}"
        new = call.problem if call.new is None else f"{call.new.word} by {short_place(call.new_by)}"
        cells = f"{call.session} #{call.call}", call.tool, call.summary, was, new, call.change
        output.entry(_COLUMNS, cells, _TONES.get(call.change, Tone.PLAIN))


def _line(call: JudgedAgain) -> str:
    call_text = visible_line(f"{call.session} #{call.call} {call.tool}  {visible_line(call.summary, 100)}", 300)
    if call.old is None or call.new is None:
        return f"{call_text}: cannot be judged: {visible_line(call.problem or 'its decision is not known', 300)}"
    old = f"{call.old.word} by {visible_line(short_place(call.old_by), 200)}"
    return f"{call_text}: {old} -> {call.new.word} by {visible_line(short_place(call.new_by), 200)}: {call.change}"


def _summary(count: Mapping[str, int]) -> str:
    summary = f"{count_of(count['calls'], 'call')}, {count_of(count['changes'], 'change')}"
    text = f"{summary}: {count['laxer']} laxer, {count['stricter']} stricter"
    if count["unknown"]:
        text += f"; {count['unknown']} cannot be judged"
    return f"{text}; {count['undecided']} never decided" if count["undecided"] else text


def _as_json(call: JudgedAgain) -> dict[str, JsonValue]:
    return {
        "log": call.log,
        "session": call.session,
        "call": int(call.call) if call.call.isdecimal() and len(call.call) < 20 else call.call,
        "tool": call.tool,
        "summary": call.summary,
        "change": call.change,
        "old": None if call.old is None else call.old.word,
        "old_by": call.old_by,
        "new": None if call.new is None else call.new.word,
        "new_by": call.new_by or None,
        "error": call.problem or None,
    }
