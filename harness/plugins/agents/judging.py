"""One call of another agent on its way through the gate: the workspace it is in, the policy, the verdict, the answer.

INVARIANT: nothing is answered before the decision is on disk.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from harness import __version__
from harness.actions import Action, Decision, Enforcement, JsonValue
from harness.errors import ToolError
from harness.files.repository import git_top
from harness.files.workspace import Workspace
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.pending_call import PendingCall
from harness.gate.records import Advice, policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.tool import Tool
from harness.log.vocabulary import Answer
from harness.messages import ResultStatus, ToolCall
from harness.paths import short_place
from harness.plugins.agents.agent_session import AgentSession, OpenCall, key_of
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.foreign_call import MOST_KEPT_BYTES, NAMES, ForeignCall, ForeignKind
from harness.plugins.agents.foreign_tools import foreign_tool
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer
from harness.plugins.agents.handed_over import HandedOver, hand_over
from harness.record import replace
from harness.regex import regex
from harness.safe_files import read_small
from harness.session.asked_call import AskedCall, HookParts, quoted

if TYPE_CHECKING:
    from harness.gate.approval import Approval
    from harness.plugins.agents.tickets import Ticket
    from harness.policy.policy import Policy
    from harness.policy.verdict import Verdict
    from harness.tools.bash import BashTool
    from harness.tools.command_walls import CommandWalls

_MOVES = regex(r"\b(?:cd|pushd|popd)\b")
OTHER_PART = "another part of the same patch was refused"
MOST_ADVICE = 2_000
"""Characters of rules that a refusal names."""


class JudgedCall:
    """One call of an agent on its way through the gate."""

    def __init__(self, agent: GuardedAgent, event: HookEvent, session: AgentSession, parts: HookParts) -> None:
        self._agent = agent
        self._event = event
        self._session = session
        self._parts = parts
        self._advice = Advice()
        self._refused_by_person = False
        self._ticket: Ticket | None = None
        self._call = agent.call_of(event)
        self._calls = _parts_of(self._call)
        self._asks = agent.ask is not None and agent.asks(event, parts.environment)
        """Whether the agent asks the person where we would."""
        self._cwd = os.path.realpath(os.path.join(event.cwd, str(self._call.arguments.get("cwd", ""))))
        folder = session.workspace if session.is_begun else _workspace_of(agent, event, parts.environment)
        self._workspace = Workspace(folder, parts.home)

    @cached_property
    def _walls(self) -> CommandWalls:
        from harness.tools.command_walls import CommandWalls

        return CommandWalls(self._workspace, hide=self._parts.hidden)

    def _tool(self, call: ForeignCall) -> Tool:
        return foreign_tool(call, self._workspace, self._cwd, self._shell)

    def _shell(self) -> BashTool:
        from harness.tools.bash import BashTool
        from harness.tools.command_runner import CommandRunner

        commands = CommandRunner(self._workspace, environment=self._parts.environment, walls=self._walls)
        return BashTool(self._workspace, commands, own_tmpdir=self._may_run_by_ticket)

    def reply(self, event_sha256: str) -> HookAnswer:
        """Judge the call, and return the answer."""
        session, event, agent = self._session, self._event, self._agent
        policy = self._parts.policy_at(self._workspace, session.policy_sha256)
        grants, grant_store = self._parts.grants_at(self._workspace.root)
        # What a granted program did to protected places is looked at when it ends: only our own tool does that.
        exact = [grant for grant in grants if not grant.pattern.program]
        first = not session.is_begun
        if first:
            self._begin(policy)
        else:
            exact = [grant for grant in exact if grant.id in session.log.granted]
            self._follow(policy)
        gate: Gate = Gate(
            policy=policy,
            approver=lambda action, verdict: self._ask(gate, action, verdict),
            log=session.log,
            tools=ToolRegistry([self._tool(call) for call in {call.tool: call for call in self._calls}.values()]),
            checks=self._parts.checks(self._workspace),
            options=GateOptions(
                grants=(*session.grants, *exact), kept=grant_store, advise=self._advise, begun=session.state
            ),
        )
        if first:
            gate.grants.record_kept()
        fields: dict[str, JsonValue] = {
            "tool": event.tool,
            "mode": event.mode,
            "subagent": event.subagent,
            "cwd": event.cwd,
            "event_sha256": event_sha256,
        }
        pending = [
            gate.propose(ToolCall(id=event.use_id, name=call.tool, arguments=self._arguments(call)), agent=fields)
            for call in self._calls
        ]
        if session.latch:
            for pending_call in pending:
                gate.skip(pending_call, session.latch)
            answer = agent.block(session.latch)
        else:
            answer = self._decide(gate, pending, policy)
        session.state, session.grants = gate.state, gate.grants.grants
        self._parts.note_head(session.log, False)
        return answer

    def _decide(self, gate: Gate, pending: list[PendingCall], policy: Policy) -> HookAnswer:
        """Decide on all parts of a call, the one first that will be refused, and return the answer: all of them, or none."""
        pending.sort(key=lambda call: _strictness(gate, call), reverse=True)
        handed: list[HandedOver] = []
        for number, call in enumerate(pending):
            end = hand_over(gate, call, held_by=self._held_by, asks_itself=self._asks)
            if isinstance(end, HandedOver):
                handed.append(end)
                continue
            for other in pending[number + 1 :]:
                gate.skip(other, OTHER_PART)
            self._session.take_back(handed, OTHER_PART)
            if end.result.status is ResultStatus.BLOCKED:
                self._session.latch = (
                    f"{end.result.content} Nothing more runs in this session; a person may begin a new one."
                )
                return self._agent.block(end.result.content)
            return self._agent.deny(f"{end.result.content}{self._advised(policy)}")
        return self._handed_over(handed)

    def _begin(self, policy: Policy) -> None:
        fields = {
            "mode": "hook",
            "agent": self._agent.name,
            "model": self._agent.title,  # as far as is known here
            "agent_session": self._event.session,
            "workspace": self._workspace.root,
            "harness": __version__,
            **policy_fields(policy),
            "confinement": self._walls.level,
            **self._parts.host_fields(),
        }
        log = self._parts.new_log(self._workspace.root)
        self._session.begin(log, self._workspace.root, policy.sha256, fields)

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

    def _ask(self, gate: Gate, action: Action, verdict: Verdict) -> Approval:
        """Ask about the call where the agent cannot, and return the answer."""
        approval = self._parts.ask(
            AskedCall(
                agent=self._agent.title,
                session=self._event.session,
                workspace=self._workspace.root,
                confinement=self._confinement(verdict) if self._call.kind is ForeignKind.SHELL else "",
                level=self._walls.level,
                writes=gate.policy.sandbox.write,
                action=action,
                verdict=verdict,
                offer=lambda: gate.grants.offer(action, verdict),
            )
        )
        self._refused_by_person = approval.answer not in (Answer.YES, Answer.NOBODY)
        return approval

    def _confinement(self, verdict: Verdict) -> str:
        """Return a description of the walls that confine the call to its effects."""
        if self._runs_by_ticket(verdict):
            return self._walls.in_words(verdict.effects)
        return f"none of ours: {self._agent.title} carries it out"

    def _held_by(self, action: Action, verdict: Verdict) -> str:
        """Return a description of the walls that confine the call; make a ticket if they are ours. Raises ToolError."""
        if self._runs_by_ticket(verdict):
            from harness.plugins.agents.tickets import Ticket

            is_asked = verdict.decision is Decision.CONFIRM
            self._ticket = Ticket.create(action, verdict, self._workspace, hidden=self._parts.hidden, is_asked=is_asked)
        elif verdict.effects.left_out:
            raise ToolError(
                f"a rule denies reading {', '.join(verdict.effects.left_out[:5])}, and {self._agent.title} runs this "
                "command itself, so that nothing hides that from it. Leave it out (`grep --exclude=NAME`)."
            )
        elif self._call.kind is ForeignKind.SHELL and verdict.effects.enforcement is Enforcement.REQUIRED:
            raise ToolError(
                f"the policy requires that commands are confined, and {self._agent.title} runs this one itself. "
                "Do not retry this call."
            )
        return self._confinement(verdict)

    def _runs_by_ticket(self, verdict: Verdict) -> bool:
        """Say whether the call is a command that runs in our walls, by a ticket."""
        if verdict.decision is Decision.CONFIRM and self._asks and not self._agent.asks_rewritten:
            return False
        return self._may_run_by_ticket and verdict.effects.enforcement is not Enforcement.OFF

    @cached_property
    def _may_run_by_ticket(self) -> bool:
        """Whether the call is a command that a ticket can put into our walls."""
        takes = self._call.kind is ForeignKind.SHELL and self._agent.rewrites(self._event, self._parts.environment)
        return takes and bool(self._parts.runner) and self._walls.confines

    def _handed_over(self, calls: Sequence[HandedOver]) -> HookAnswer:
        """Keep the files that the parts of a call are about to change, note the parts as open, and let the call run."""
        arguments, ticket = None, ""
        asking = next((call for call in calls if call.asks), None)
        if self._ticket is not None:
            line, ticket = self._rewritten(self._ticket, calls[0].proposal.number)
            arguments = {**self._event.arguments, self._call.key: line}
        for call in calls:
            change = call.action.change
            if change is not None and change.before_sha256 is not None:
                content_now = read_small(change.path, MOST_KEPT_BYTES)
                if content_now is not None:
                    self._parts.images.keep(content_now)
            self._session.remember(
                OpenCall(
                    number=call.proposal.number,
                    id=call.proposal.call.id,
                    tool=call.proposal.call.name,
                    key="" if ticket else key_of(self._event),
                    intent=dict(call.intent) if call.asks else None,
                    asked_ns=time.monotonic_ns() if call.asks else 0,
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
        from harness.plugins.agents.tickets import TicketFolder, told_of

        moves = self._agent.keeps_folder and _MOVES.search(ticket.command) is not None
        path = TicketFolder(self._session.folder).put(ticket, call, tells_folder=moves)
        name = f"{os.path.basename(self._session.folder)}.{os.path.basename(path)}"
        line = f"{self._parts.runner} --ticket {name} -- {quoted(ticket.command)}"
        return (f'{line} && cd -- "$(cat {quoted(told_of(path))})"' if moves else line), path

    def _advise(self, policy: Policy, action: Action, verdict: Verdict) -> Advice:
        self._advice = self._parts.advise(policy, action, verdict)
        return self._advice

    def _advised(self, policy: Policy) -> str:
        """Return the rule that the person may add to a policy to let a refused call run, for the model to pass on."""
        rules = self._advice.toml.strip()
        if self._refused_by_person or not rules or len(rules) > MOST_ADVICE:
            return ""
        return f"\nThe person may allow it with this rule in a policy of theirs ({policy.name} holds now):\n{rules}"


def _parts_of(call: ForeignCall) -> tuple[ForeignCall, ...]:
    """Return the parts of a call that are judged and logged separately: for a patch, the change of each file."""
    if call.kind is not ForeignKind.PATCH:
        return (call,)
    from harness.plugins.agents.patches import PatchKind, read_patch, split_patch

    patch = str(call.arguments["patch"])
    try:
        kinds, parts = [section.kind for section in read_patch(patch)], split_patch(patch)
    except ToolError:
        return (call,)  # the gate says what is wrong with it
    names = (NAMES[ForeignKind.WRITE if kind is PatchKind.ADD else ForeignKind.PATCH] for kind in kinds)
    return tuple(
        replace(call, tool=name, arguments={**call.arguments, "patch": part})
        for name, part in zip(names, parts, strict=True)
    )


def _strictness(gate: Gate, pending: PendingCall) -> int:
    """Return the strictness of the coming decision on a call; one that cannot be prepared is refused."""
    gate.blocks(pending)
    return Decision.DENY.value if pending.verdict is None else pending.verdict.decision.value


def _question(call: HandedOver) -> str:
    """Return the text of the agent's own question to the person: its subject, and the reason to ask."""
    facet = call.verdict.deciding
    return f"harness asks about `{call.action.summary}`: {facet.reason.rstrip('.')} ({short_place(facet.by)})"


def _workspace_of(agent: GuardedAgent, event: HookEvent, environment: Mapping[str, str]) -> str:
    """Return the workspace of a session that begins: as the agent names it, else the repository of its folder, or that."""
    for name in agent.project_variables:
        if os.path.isabs(environment.get(name, "")):
            return environment[name]
    return git_top(os.path.realpath(event.cwd))
