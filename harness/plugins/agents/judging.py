"""Judge one call of another agent: find its workspace and policy, get the gate's verdict, return the answer.

INVARIANT: no answer is sent before the decision is on disk.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

from harness import __version__
from harness.actions import Action, Decision, Enforcement, JsonValue, PathAccess
from harness.errors import ToolError
from harness.files.repository import work_top
from harness.files.workspace import Workspace
from harness.gate.approval import nobody
from harness.gate.gate import Gate
from harness.gate.options import GateOptions
from harness.gate.pending_call import PendingCall
from harness.gate.records import Advice, policy_fields
from harness.gate.registry import ToolRegistry
from harness.gate.tool import Tool
from harness.messages import ResultStatus, ToolCall
from harness.paths import is_within, short_place
from harness.plugins.agents.agent_session import AgentSession
from harness.plugins.agents.attendance import is_attended
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.foreign_call import MOST_KEPT_BYTES, ForeignCall, ForeignKind, parts_of
from harness.plugins.agents.foreign_tools import foreign_tool
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer
from harness.plugins.agents.handed_over import HandedOver, hand_over
from harness.plugins.agents.open_call import OpenCall
from harness.plugins.agents.second_hook import SecondHook
from harness.policy.verdict import evaluate
from harness.programs.excluding import excluding_words
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
OTHER_PART = "another part of the same call was refused"
_OTHER_FILES = "name folders or files without it"
NO_CALL = ForeignCall(kind=ForeignKind.INWARD, tool="prompt", arguments={})
"""Stands for a call where a session begins without one."""
MOST_ADVICE = 2_000
"""Maximum number of characters of suggested rules in a refusal."""


class JudgedCall:
    """One call of an agent that is being judged."""

    def __init__(
        self,
        agent: GuardedAgent,
        event: HookEvent,
        session: AgentSession,
        parts: HookParts,
        call: ForeignCall | None = None,
    ) -> None:
        """`call` is the translated call, if it is not that of the event."""
        self._agent = agent
        self._event = event
        self._session = session
        self._parts = parts
        self._advice = Advice()
        self._ticket: Ticket | None = None
        self._call = call or agent.call_of(event, parts.environment)
        self._calls = parts_of(self._call)
        self._asks = agent.ask is not None and agent.asks(event, parts.environment)
        """Whether the agent asks the user itself if the verdict is CONFIRM."""
        self._cwd = os.path.realpath(os.path.join(event.cwd, str(self._call.arguments.get("cwd", ""))))
        self._workspace = Workspace(
            session.workspace if session.is_begun else workspace_of(agent, event, parts), parts.home
        )
        self._workspace.skills = tuple(
            real
            for place in agent.own_places(event, parts.environment)
            if not is_within(self._workspace.root, real := os.path.realpath(place))
            and not is_within(self._workspace.home, real)
        )

    @cached_property
    def _policy(self) -> Policy:
        return self._parts.policy_at(self._workspace, self._session.policy_sha256)

    @cached_property
    def _tickets(self) -> ModuleType:
        from harness.plugins.agents import tickets  # only for commands

        return tickets

    @cached_property
    def _walls(self) -> CommandWalls:
        from harness.tools.command_walls import CommandWalls

        return CommandWalls(
            self._workspace,
            hide=self._parts.hidden,
            machine=self._tickets.machine(has_namespaces=self._session.has_namespaces),
        )

    def _tool(self, call: ForeignCall) -> Tool:
        return foreign_tool(call, self._workspace, self._cwd, self._shell)

    def _shell(self) -> BashTool:
        from harness.tools.bash import BashTool
        from harness.tools.command_runner import CommandRunner

        commands = CommandRunner(self._workspace, environment=self._parts.environment, walls=self._walls)
        return BashTool(self._workspace, commands, own_environment=self._may_run_by_ticket)

    @cached_property
    def hook(self) -> SecondHook:
        """This hook, beside another one of ours. Raises PolicyError."""
        return SecondHook(self._agent, self._event, self._session, self._policy.sha256, self._parts.policy_name)

    def reply(self, event_sha256: str) -> HookAnswer:
        """Judge the call, and return the answer for the agent."""
        session, event, agent = self._session, self._event, self._agent
        gate = self._begun_gate()
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
        substance = agent.substance_of(event)
        session.note_answer(event.use_id or substance, pending[0].proposal.number, "")
        if session.latch:
            for pending_call in pending:
                gate.skip(pending_call, session.latch)
            answer = agent.block(session.latch)
        else:
            answer = self._decide(gate, pending, self._policy)
            if self._call.kind is ForeignKind.SHELL:
                session.has_namespaces = self._walls.has_namespaces  # also after a refusal, whose judging may test it
        session.state, session.grants = gate.state, gate.grants.grants
        self.hook.note(min(call.proposal.number for call in pending), answer)
        self._parts.note_head(session.log, False)
        return answer

    def begin(self) -> None:
        """Begin the session in the log, or record a change of the policy. Raises LogError and PolicyError."""
        self._session.state = self._begun_gate().state

    def _begun_gate(self) -> Gate:
        """Return the gate, in a session that has begun."""
        session, policy = self._session, self._policy
        grants, grant_store = self._parts.grants_at(self._workspace.root)
        # Grants of programs need a check of protected places after the run, which only our own tool does.
        exact = [grant for grant in grants if not grant.pattern.program]
        first = not session.is_begun
        if first:
            self._begin(policy)
        else:
            exact = [grant for grant in exact if grant.id in session.log.granted]
            self._follow(policy)
        if self._call.or_tools:
            self._call = self._named_strictest(policy)
            self._calls = (self._call,)
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
        return gate

    def _named_strictest(self, policy: Policy) -> ForeignCall:
        """Return the call with that of its tool's possible names on which the policy decides most strictly."""

        def strictness(call: ForeignCall) -> int:
            arguments = ToolCall(id="", name=call.tool, arguments=self._arguments(call))
            return evaluate(policy, ToolRegistry([self._tool(call)]).prepare(arguments)).decision.value

        names = (self._call.tool, *self._call.or_tools)
        return max((replace(self._call, tool=name, or_tools=()) for name in names), key=strictness)

    def _decide(self, gate: Gate, pending: list[PendingCall], policy: Policy) -> HookAnswer:
        """Decide on all parts of a call, strictest verdict first. The call runs only if every part is allowed."""
        pending.sort(key=lambda call: _strictness(gate, call), reverse=True)
        handed: list[HandedOver] = []
        for number, call in enumerate(pending):
            way_on = self._way_on(call)
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
            return self._agent.deny(f"{end.result.content}{way_on}{self._advised(policy)}")
        return self._handed_over(handed)

    def _begin(self, policy: Policy) -> None:
        fields = {
            "mode": "hook",
            "agent": self._agent.name,
            "model": self._agent.title,  # the model itself is not known here
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
        """Record a change of the policy since the last call, if there was one."""
        if policy.sha256 != self._session.policy_sha256:
            self._session.log.append("policy_changed", {"why": "the policy was changed", **policy_fields(policy)})
            self._session.policy_sha256 = policy.sha256

    def _arguments(self, call: ForeignCall) -> str:
        """Return the arguments of a translated call as JSON text."""
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
        """Ask about the call at a terminal with `harness approve`, and return the answer. For agents that cannot ask."""
        if not self._agent.waits:
            return nobody(f"{self._agent.title} does not wait for an answer")
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
                is_attended=is_attended(self._parts.environment, self._parts.process or os.getpid()),
                has_waited=self._session.has_waited,
            ),
            gate.policy,
        )
        self._session.has_waited = approval.may_retry
        return approval

    def _confinement(self, verdict: Verdict) -> str:
        """Return a description of the walls that confine the call."""
        if self._runs_by_ticket(verdict):
            return self._walls.in_words(verdict.effects)
        return f"none: {self._agent.title} runs it itself, outside our walls"

    def _held_by(self, action: Action, verdict: Verdict) -> str:
        """Return a description of the walls that confine the call. Create a ticket if the walls are ours.

        Raises ToolError if the agent runs a command itself that must be confined.
        """
        if self._runs_by_ticket(verdict):
            is_asked = verdict.decision is Decision.CONFIRM
            self._ticket = self._tickets.Ticket.create(
                action,
                verdict,
                self._workspace,
                policy=self._policy,
                walls=self._walls,
                hidden=self._parts.hidden,
                is_asked=is_asked,
            )
        elif verdict.effects.left_out:
            left_out = verdict.effects.left_out
            raise ToolError(
                f"a rule denies reading {', '.join(left_out[:5])}, and {self._agent.title} runs this command itself, so "
                f"that nothing hides that from it. Leave it out: {_words_without(action, left_out) or _OTHER_FILES}."
            )
        elif self._call.kind is ForeignKind.SHELL and verdict.effects.enforcement is Enforcement.REQUIRED:
            raise ToolError(
                f"the policy requires that commands are confined, and {self._agent.title} runs this one itself. "
                "Do not retry this call."
            )
        return self._confinement(verdict)

    def _runs_by_ticket(self, verdict: Verdict) -> bool:
        """Return whether the call is a command that runs behind our walls with a ticket."""
        if verdict.decision is Decision.CONFIRM and self._asks and not self._agent.asks_rewritten:
            return False
        return self._may_run_by_ticket and verdict.effects.enforcement is not Enforcement.OFF

    @cached_property
    def _may_run_by_ticket(self) -> bool:
        """Whether the call is a command that can run behind our walls with a ticket."""
        takes = self._call.kind is ForeignKind.SHELL and self._agent.rewrites(self._event, self._parts.environment)
        return takes and bool(self._parts.runner) and self._walls.confines

    def _handed_over(self, calls: Sequence[HandedOver]) -> HookAnswer:
        """Return the answer that lets a call run. First copy the files that it changes, and store its parts as open calls."""
        arguments, ticket = None, ""
        asking = next((call for call in calls if call.asks), None)
        if self._ticket is not None:
            line, ticket = self._rewritten(self._ticket, calls[0].proposal.number)
            arguments = {**self._event.arguments, self._call.key: line}
        allowed = self._agent.substance_of(
            self._event if arguments is None else replace(self._event, arguments=arguments)
        )
        key = self._event.use_id or allowed
        self._session.note_answer(key, min(call.proposal.number for call in calls), allowed)
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
                    key=key,
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
        """Return the command line that runs a ticket, and the ticket's path.

        The line contains the command, since the agent displays the line to the user. If the agent's shell keeps its
        folder between commands, the line ends with a `cd` to the folder in which the command ended.
        """
        moves = self._agent.keeps_folder and _MOVES.search(ticket.command) is not None
        path = self._tickets.TicketFolder(self._session.folder).put(ticket, call, tells_folder=moves)
        name = f"{os.path.basename(self._session.folder)}.{os.path.basename(path)}"
        line = f"{self._parts.runner} --ticket {name} -- {quoted(ticket.command)}"
        return (f'{line} && cd -- "$(cat {quoted(self._tickets.told_of(path))})"' if moves else line), path

    def _advise(self, policy: Policy, action: Action, verdict: Verdict) -> Advice:
        self._advice = self._parts.advise(policy, action, verdict)
        return self._advice

    def _way_on(self, pending: PendingCall) -> str:
        """Return a hint for a search that a rule denies because of files below its folder. Empty for other calls."""
        is_denied = pending.verdict is not None and pending.verdict.decision is Decision.DENY
        facets = pending.action.facets if pending.action is not None and is_denied else ()
        if self._call.kind is not ForeignKind.SEARCH or not any(isinstance(f, PathAccess) and f.tree for f in facets):
            return ""
        takes = self._agent.tools[self._event.tool].takes
        pattern = next(
            (f", or files by a pattern (`{name}`: `*.py`)" for name, ours in takes.items() if ours == "glob"), ""
        )
        return f"\nSearch a folder without such files{pattern}."

    def _advised(self, policy: Policy) -> str:
        """Return the rule with which the user could allow a refused call, as a text for the model. Empty if there is none."""
        rules = self._advice.toml.strip()
        if not rules or len(rules) > MOST_ADVICE:
            return ""
        return f"\nThe person may allow it with this rule in a policy of theirs ({policy.name} holds now):\n{rules}"


def _strictness(gate: Gate, pending: PendingCall) -> int:
    """Return the strictness of a call's verdict. A call that cannot be prepared counts as denied."""
    gate.blocks(pending)
    return Decision.DENY.value if pending.verdict is None else pending.verdict.decision.value


def _words_without(action: Action, names: Sequence[str]) -> str:
    """Return the words with which the commands of `action` skip the files `names`. Empty if there are none."""
    words: dict[str, None] = {}
    for path in action.all_facets():
        if isinstance(path, PathAccess) and (below := [name for name in names if name in path.below]):
            words[excluding_words(below, path, action)] = None
    return "" if "" in words else ", ".join(f"`{each}`" for each in words)


def _question(call: HandedOver) -> str:
    """Return the text of the agent's question to the user: the call, and the reason to ask."""
    facet = call.verdict.deciding
    return f"harness asks about `{call.action.summary}`: {facet.reason.rstrip('.')} ({short_place(facet.by)})"


def workspace_of(agent: GuardedAgent, event: HookEvent, parts: HookParts) -> str:
    """Return the workspace of a new session: the top of the repository around the folder that the agent names, or around
    its current one. Without a repository, and in one that holds the home folder, it is that folder itself.
    """
    return work_top(os.path.realpath(agent.folder_of(event, parts.environment)), parts.home or "")
