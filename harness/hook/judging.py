"""An event of an agent in, an answer in its own form out: the road of each call of another agent.

INVARIANT: nothing is answered before the decision is on disk, and whatever goes wrong on the way is a refusal: whoever calls
`answer` turns every exception into one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence

from harness import __version__
from harness.actions import Action, Enforcement, JsonValue
from harness.errors import ToolError
from harness.files.before_images import BeforeImages
from harness.files.workspace import Workspace
from harness.gate.approval import Approver
from harness.gate.gate import Gate, HandedOver, PendingCall
from harness.gate.grants_in_force import GrantStore
from harness.gate.records import Advice, CallRecords, policy_fields
from harness.gate.registry import ToolRegistry
from harness.hook.agent_session import AgentSession, OpenCall, key_of
from harness.hook.event import HookEvent, When, parse
from harness.hook.foreign_call import ForeignCall, ForeignKind
from harness.hook.foreign_tools import MOST_KEPT_BYTES, foreign_tool
from harness.hook.guarded_agent import GuardedAgent, HookAnswer
from harness.hook.tickets import Ticket, TicketFolder, told_of
from harness.log.action_log import ActionLog
from harness.messages import ResultStatus, ToolCall, ToolResult
from harness.policy.policy import Policy
from harness.policy.rules import Decision
from harness.policy.session_grants import Grant
from harness.policy.verdict import Verdict
from harness.record import Record, replace
from harness.redaction.redactor import Redactor
from harness.regex import regex
from harness.safe_files import read_small
from harness.tools.bash import BashTool
from harness.tools.command_walls import CommandWalls

MOST_LOGGED_RESPONSE = 20_000
"""Characters of what an agent says of an outcome that the log keeps."""
_PLAIN = regex(r"[A-Za-z0-9_./@%+,:-]+")
_MOVES = regex(r"\b(?:cd|pushd|popd)\b")
OTHER_PART = "another part of the same patch was refused"
MOST_ADVICE = 2_000
"""Characters of rules that a refusal names."""


class HookParts(Record):
    """What the program gives a hook: places, policy, and who is asked."""

    folder: str
    """Where sessions of agents are kept, a folder each."""
    home: str | None
    environment: Mapping[str, str]
    redactor: Redactor
    images: BeforeImages
    hidden: tuple[str, ...]
    """What no command may read: our own folders."""
    policy_at: Callable[[Workspace], Policy]
    """The policy that holds in a workspace. Raises PolicyError."""
    new_log: Callable[[str], str]
    """Names a log for a session in a workspace."""
    note_head: Callable[[ActionLog, bool], None]
    """Notes the head of a log, which is closed or goes on."""
    grants_at: Callable[[str], tuple[Sequence[Grant], GrantStore | None]]
    """What is granted in a workspace, and where more is kept."""
    approver: Approver
    """Asks somebody where the agent cannot."""
    advise: Callable[[Policy, Action, Verdict], Advice]
    runner: str
    """The command line, quoted, of what runs a ticket; empty where no call is rewritten."""
    about: Mapping[str, JsonValue]
    """What a session's first record says besides: user, host."""
    wait_seconds: float
    """How long another call of the same session is waited for."""


def answer(agent: GuardedAgent, data: bytes, parts: HookParts) -> HookAnswer:
    """Return the answer to one event, which is `data`.

    Raises EventError, HarnessError and OSError: the call must be refused then.
    """
    event = agent.event_of(parse(data))
    folder = session_folder(parts.folder, agent.name, event.session)
    with AgentSession(folder, parts.redactor, wait_seconds=parts.wait_seconds) as session:
        match event.when:
            case When.BEFORE:
                return _Judged(agent, event, session, parts).reply(hashlib.sha256(data).hexdigest())
            case When.AFTER | When.FAILED:
                _settle(agent, event, session)
            case When.ENDED:
                if session.begun:
                    session.end("completed")
                    parts.note_head(session.log, True)
    return HookAnswer()


class _Judged:
    """One call of an agent on its way through the gate."""

    def __init__(self, agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts) -> None:
        self._agent = agent
        self._event = event
        self._session = session
        self._parts = parts
        self._advice = Advice()
        self._ticket: Ticket | None = None
        self._call = agent.call_of(event)
        self._calls = _parts_of(self._call)
        self._asks = agent.ask is not None and agent.asks(event, parts.environment)
        """Whether the agent asks the person where we would."""
        self._cwd = os.path.realpath(os.path.join(event.cwd, str(self._call.arguments.get("cwd", ""))))
        where = session.workspace if session.begun else _workspace_of(agent, event, parts.environment)
        self._workspace = Workspace(where, parts.home)
        self._walls = CommandWalls(self._workspace, hide=parts.hidden)

    def reply(self, event_sha256: str) -> HookAnswer:
        """Judge the call, and return the answer."""
        session, event, agent = self._session, self._event, self._agent
        policy = self._parts.policy_at(self._workspace)
        grants, kept = self._parts.grants_at(self._workspace.root)
        # What a granted program did to protected places is looked at when it ends: only our own tool does that.
        exact = [one for one in grants if not one.pattern.program]
        first = not session.begun
        if first:
            self._begin(policy)
        else:
            exact = [one for one in exact if one.id in session.log.granted]
            self._follow(policy)
        shell = BashTool(self._workspace, environment=self._parts.environment, walls=self._walls)
        gate = Gate(
            policy=policy,
            approver=self._parts.approver,
            log=session.log,
            tools=ToolRegistry((foreign_tool(self._call, self._workspace, self._cwd, shell),)),
            grants=(*session.grants, *exact),
            kept=kept,
            advise=self._advise,
            begun=session.state,
        )
        if first:
            gate.record_kept()
        about: dict[str, JsonValue] = {
            "tool": event.tool,
            "mode": event.mode,
            "subagent": event.subagent,
            "cwd": event.cwd,
            "event_sha256": event_sha256,
        }
        pending = [
            gate.propose(ToolCall(id=event.use_id, name=call.tool, arguments=self._arguments(call)), agent=about)
            for call in self._calls
        ]
        if session.latch:
            for one in pending:
                gate.skip(one, session.latch)
            answer = agent.block(session.latch)
        else:
            answer = self._answered(gate, pending, policy)
        session.state, session.grants = gate.state, gate.grants
        self._parts.note_head(session.log, False)
        return answer

    def _answered(self, gate: Gate, pending: list[PendingCall], policy: Policy) -> HookAnswer:
        """Decide on all parts of a call, the one first that will be refused, and return the answer: all of them, or none."""
        pending.sort(key=lambda one: _strictness(gate, one), reverse=True)
        handed: list[HandedOver] = []
        for number, one in enumerate(pending):
            end = gate.hand_over(one, held_by=self._held_by, asks_itself=self._asks)
            if isinstance(end, HandedOver):
                handed.append(end)
                continue
            for other in pending[number + 1 :]:
                gate.skip(other, OTHER_PART)
            self._session.take_back(handed, OTHER_PART)
            if end.result.status is ResultStatus.BLOCKED:
                self._session.latch = f"{end.result.content} Nothing more runs in this session."
                return self._agent.block(end.result.content)
            return self._agent.deny(f"{end.result.content}{self._advised(policy)}")
        return self._handed_over(handed)

    def _begin(self, policy: Policy) -> None:
        about = {
            "mode": "hook",
            "agent": self._agent.name,
            "model": self._agent.title,  # as far as is known here
            "agent_session": self._event.session,
            "workspace": self._workspace.root,
            "harness": __version__,
            **policy_fields(policy),
            "confinement": self._walls.level,
            **self._parts.about,
        }
        log = self._parts.new_log(self._workspace.root)
        self._session.begin(log, self._workspace.root, policy.sha256, about)

    def _follow(self, policy: Policy) -> None:
        """Record that another policy holds from here on, where one does."""
        if policy.sha256 != self._session.policy_sha256:
            self._session.log.append("policy_changed", {"why": "the policy was changed", **policy_fields(policy)})
            self._session.policy_sha256 = policy.sha256

    def _arguments(self, call: ForeignCall) -> str:
        """Return the arguments of a call in our words, as JSON text."""
        arguments = dict(call.arguments)
        if self._call.kind is ForeignKind.SHELL:
            arguments["cwd"] = self._cwd
            if arguments.pop("unconfined", False):
                arguments |= {
                    "unconfined": True,
                    "justification": f"{self._agent.title} asks to run it outside its sandbox",
                }
        return json.dumps(arguments, ensure_ascii=False)

    def _held_by(self, action: Action, verdict: Verdict) -> str:
        """Return what holds the call to its effects; make a ticket where that is us. Raises ToolError."""
        self._ticket = self._ticket_for(action, verdict)
        if self._ticket is not None:
            return self._walls.in_words(verdict.effects)
        if self._call.kind is ForeignKind.SHELL and verdict.effects.enforcement is Enforcement.REQUIRED:
            raise ToolError(
                f"the policy requires that commands are confined, and {self._agent.title} runs this one itself. "
                "Do not retry this call."
            )
        return f"none: {self._agent.title} carries it out"

    def _ticket_for(self, action: Action, verdict: Verdict) -> Ticket | None:
        takes = self._call.kind is ForeignKind.SHELL and self._agent.rewrites(self._event, self._parts.environment)
        if verdict.decision is Decision.CONFIRM and self._asks and not self._agent.asks_rewritten:
            return None
        possible = takes and self._parts.runner and self._walls.confines
        if not possible or verdict.effects.enforcement is Enforcement.OFF:
            return None
        asked = verdict.decision is Decision.CONFIRM
        return Ticket.made(action, verdict, self._workspace, hidden=self._parts.hidden, asked=asked)

    def _handed_over(self, calls: Sequence[HandedOver]) -> HookAnswer:
        """Keep what the parts of a call are about to change, note them as open, and let the call run."""
        arguments, ticket = None, ""
        asking = next((call for call in calls if call.asks), None)
        if self._ticket is not None:
            line, ticket = self._rewritten(self._ticket, calls[0].proposal.number)
            arguments = {**self._event.arguments, self._call.key: line}
        for call in calls:
            change = call.action.change
            if change is not None and change.before_sha256 is not None:
                held = read_small(change.path, MOST_KEPT_BYTES)
                if held is not None:
                    self._parts.images.keep(held)
            self._session.remember(
                OpenCall(
                    number=call.proposal.number,
                    id=call.proposal.call.id,
                    tool=call.proposal.call.name,
                    key="" if ticket else key_of(self._event),
                    intent=dict(call.intent) if call.asks else None,
                    path="" if change is None else change.path,
                    before_sha256=None if change is None else change.before_sha256,
                    ticket=ticket,
                )
            )
        if asking is not None and self._agent.ask is not None:
            return self._agent.ask(_question(asking), arguments)
        return self._agent.allow(arguments)

    def _rewritten(self, ticket: Ticket, call: int) -> tuple[str, str]:
        """Return the command line that runs a ticket, and its file. The line shows the command: the agent shows it the person.

        Where the agent keeps the folder that a command goes to, that folder is brought to its shell behind it.
        """
        moves = self._agent.keeps_folder and _MOVES.search(ticket.command) is not None
        path = TicketFolder(self._session.folder).put(ticket, call, tells_folder=moves)
        name = f"{os.path.basename(self._session.folder)}.{os.path.basename(path)}"
        line = f"{self._parts.runner} --ticket {name} -- {quoted(ticket.command)}"
        return (f'{line} && cd -- "$(cat {quoted(told_of(path))})"' if moves else line), path

    def _advise(self, policy: Policy, action: Action, verdict: Verdict) -> Advice:
        self._advice = self._parts.advise(policy, action, verdict)
        return self._advice

    def _advised(self, policy: Policy) -> str:
        """Return what the person may add to a policy so that a refused call runs, for the model to tell them."""
        rules = self._advice.toml.strip()
        if not rules or len(rules) > MOST_ADVICE:
            return ""
        return f"\nThe person may allow it with this rule in a policy of theirs ({policy.name} holds now):\n{rules}"


def _settle(agent: GuardedAgent, event: HookEvent, session: AgentSession) -> None:
    """Record what the agent says that a call came to. A call that is not known, or is seen by us, is passed over."""
    while session.begun and (call := session.take(key_of(event))) is not None:
        if call.intent is not None:  # it was carried out, so somebody there said yes
            call = session.record_yes(call)
        records = CallRecords(session.log)
        said = event.response if isinstance(event.response, str) else json.dumps(event.response, ensure_ascii=False)
        content = records.redact(said)
        result = ToolResult(
            call_id=call.id,
            status=ResultStatus.OK if event.when is When.AFTER else ResultStatus.FAILED,
            content=content[:MOST_LOGGED_RESPONSE],
            output_bytes=len(said),
            truncated=len(content) > MOST_LOGGED_RESPONSE,
        )
        held = read_small(call.path, MOST_KEPT_BYTES) if call.path else None
        after = None if held is None else hashlib.sha256(held).hexdigest()
        if after is not None and after != call.before_sha256:
            result = replace(result, changed_path=call.path, before_sha256=call.before_sha256, after_sha256=after)
        records.ended(call.proposal, result, ran=True, seen_by=agent.name)
        if event.use_id == "":  # such calls are told apart by their order alone: one outcome, one call
            return


def _parts_of(call: ForeignCall) -> tuple[ForeignCall, ...]:
    """Return what is judged and logged for itself: of a patch, what it does to each file."""
    if call.kind is not ForeignKind.PATCH:
        return (call,)
    from harness.hook.patches import split_patch

    try:
        parts = split_patch(str(call.arguments["patch"]))
    except ToolError:
        return (call,)  # the gate says what is wrong with it
    return tuple(replace(call, arguments={**call.arguments, "patch": part}) for part in parts) or (call,)


def _strictness(gate: Gate, pending: PendingCall) -> int:
    """Return how strict the decision on a call is going to be; one that cannot be prepared is refused."""
    gate.blocks(pending)
    return Decision.DENY.value if pending.verdict is None else pending.verdict.decision.value


def _question(call: HandedOver) -> str:
    """Return what the person reads at the agent's own question: what it is about, and why it is asked."""
    facet = call.verdict.deciding
    return f"harness asks about `{call.action.summary}`: {facet.reason.rstrip('.')} ({facet.by})"


def _workspace_of(agent: GuardedAgent, event: HookEvent, environment: Mapping[str, str]) -> str:
    """Return the workspace of a session that begins: as the agent names it, else the repository of its folder, or that."""
    from harness.files.repository import git_top

    for name in agent.project_variables:
        if os.path.isabs(environment.get(name, "")):
            return environment[name]
    return git_top(os.path.realpath(event.cwd))


def session_folder(folder: str, agent: str, session: str) -> str:
    """Return the folder of one session; the agent's own name for it may be anything."""
    return os.path.join(folder, f"{agent}-{hashlib.sha256(session.encode()).hexdigest()[:16]}")


def quoted(text: str) -> str:
    """Return a text as one word of a shell; as it is where nothing in it is special."""
    if _PLAIN.fullmatch(text):
        return text
    return "'" + text.replace("'", "'\\''") + "'"
