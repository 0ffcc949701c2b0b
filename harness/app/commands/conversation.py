"""The object of slash commands: the session, its parts, and its display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from harness.actions import Action, Effects
from harness.app.commands.notes_to_model import NotesToModel, is_unanswered
from harness.audit.helper_tree import HelperTree
from harness.gate.approval import Approver
from harness.log.order import LogRecord
from harness.loop.run import Session
from harness.messages import RunResult, StopReason, Usage
from harness.model import Prices
from harness.plugin import SlashCommand
from harness.policy.grant_offers import Offer
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.record import Record
from harness.session.advice import advice_on
from harness.session.config.settings import Settings
from harness.session.policies import home_of_rules
from harness.session.running_session import RunningSession
from harness.session.session_log import pinned
from harness.terminal.screen import Screen
from harness.terminal.styles import Tone
from harness.text.amounts import count_of
from harness.text.visible import visible_line


class Spent(Record):
    """Usage of one turn."""

    model: str
    requests: int
    usage: Usage
    cost: float | None
    """Cost in dollars. `None` if unknown."""


class Turns:
    """The turns of one session, the newest last, by the numbers of their calls."""

    def __init__(self, origin: str = "") -> None:
        """`origin` is the session that this one goes on from, if there is one."""
        self.origin = origin
        self._calls: list[list[int]] = []

    def begin_session(self, origin: str) -> None:
        """Forget every turn: a session begins that goes on from the one named `origin`."""
        self.origin = origin
        self._calls.clear()

    def begin(self, session: Session) -> None:
        """Note that the person is about to say something; it is part of the turn before where that got no answer."""
        if not (is_unanswered(session.messages) and self._calls):
            self._calls.append([])

    def record(self, record: LogRecord) -> None:
        """Note a call of the turn that goes on, not one of the person's own; an observer of the log."""
        number, whose = record.get("call"), record.get("by")
        if record["kind"] == "call_proposed" and isinstance(number, int) and self._calls and whose is None:
            self._calls[-1].append(number)

    def forget(self) -> None:
        """Forget every turn."""
        self._calls.clear()

    def pop(self) -> list[int] | None:
        """Forget the last turn, and return its calls; None for one of the session that this one goes on from."""
        return self._calls.pop() if self._calls else None


class Conversation:
    """One conversation at the prompt, with everything that a command may need."""

    def __init__(
        self,
        *,
        running: RunningSession,
        screen: Screen,
        approver: Approver,
        session: Session,
        turns: Turns,
        showing: Callable[[Callable[[str], None], bool], AbstractContextManager[None]],
        policy_named: str | Sequence[str] | None,
        policy_sha256: str | None,
    ) -> None:
        """`showing` has a command of the person's shown by a function, and lends it the terminal where wanted; the last two
        are what --policy and --policy-sha256 say.
        """
        self.running = running
        self.place = running.place
        self.tools = running.tools
        self.screen = screen
        self.approver = approver
        self.agent = running.agent
        self.session = session
        self.turns = turns
        self.header = running.header
        self.showing = showing
        self.policy_named = policy_named
        self.policy_sha256 = policy_sha256
        self.policy_before_plan: Policy | None = None
        """The policy to return to after plan mode. `None` outside of it."""
        self.offers_plans = True
        """Whether an answer in plan mode is put to the person as a plan: until they said no to one, without words."""
        self.spent: list[Spent] = []
        self.prompt = ""
        """The next message to the model, in the person's place and with their consent."""
        self.prompt_by_command = False
        """Whether that is what a command of the user or the team says."""
        self.own_commands: Sequence[SlashCommand] = ()
        """The commands of the user and the team."""
        self.settings_after: Settings | None = None
        """Settings of the model that answers again after the next turn. `None` for the present one."""
        self.draft = ""
        """Initial text of the next line: a command whose menu opens, or words that the person sends or changes."""
        self.leaving = False
        self.decision: LogRecord | None = None
        """The last one that was recorded."""
        self.answer: LogRecord | None = None
        """The person's answer to it, if it was asked about."""
        self.stop: StopReason | None = None
        """The end of the last turn of this session."""
        self.error = ""
        """The message of the last error that was recorded in it."""
        self.notes = NotesToModel()
        self.helpers = HelperTree()
        """The helpers of its sessions."""

    @property
    def plans(self) -> bool:
        """Whether plan mode is on."""
        return self.policy_before_plan is not None

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Show text that may hold anything, line by line as it is."""
        self.screen.line(text, tone)

    def say_line(self, text: str, tone: Tone = Tone.PLAIN, *, max_characters: int = 2_000) -> None:
        """Show text that may hold anything on one line."""
        self.screen.line(visible_line(text, max_characters), tone)

    def tell_log(self, tone: Tone = Tone.PLAIN) -> None:
        """Show the log's path, size and head, each on a line of its own that can be copied."""
        for line in pinned(self.agent.log, self.place.environment.get("HOME", "")):
            self.screen.unbroken(line, tone)

    @property
    def prices(self) -> Prices | None:
        """Prices of the model's tokens. `None` if unknown."""
        return self.agent.prices

    def cost_of(self, usage: Usage) -> float | None:
        """Return the cost of `usage` of the model in dollars, or `None` if unknown."""
        return None if self.prices is None else self.prices.cost(usage)

    @property
    def cost(self) -> float | None:
        """Cost of the session in dollars. `None` if any part is unknown."""
        usage = self.session.whole_usage
        other_tokens = usage.input_tokens - sum(turn.usage.input_tokens for turn in self.spent)
        models = {turn.model for turn in self.spent} | {self.agent.model.name}
        if len(models) == 1:
            return self.cost_of(usage)
        known_costs = [turn.cost for turn in self.spent if turn.cost is not None]
        return sum(known_costs) if len(known_costs) == len(self.spent) and not other_tokens else None

    def confinement(self, tool: str, effects: Effects) -> str:
        """Return the present confinement of a call of `tool`."""
        return self.agent.registry.confinement(tool, effects)

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return the grants on offer at a question, or the reason for none."""
        return "plan mode is on" if self.plans else self.agent.gate.grants.offer(action, verdict)

    def advice(self, action: Action, verdict: Verdict) -> str:
        """Return the rule that would answer a question from now on, and where it belongs, or why there is none."""
        if self.plans:
            return "/plan off leaves it"

        advice = advice_on(self.agent.gate.policy, action, verdict, reason="Asked too often at the prompt.")
        if not advice.toml:
            return f"no rule lifts the question: {advice.reason}"
        home = home_of_rules(self.running.policy, self.place.state)
        return f"a rule would allow it unasked, in {home}:\n{advice.toml.rstrip()}"

    def record(self, record: LogRecord) -> None:
        """Keep a record for /why; an observer of the log."""
        if self.helpers.record(record) is not None:
            return
        self.turns.record(record)
        match record["kind"]:
            case "decision" if record.get("decision") != "none":
                self.decision, self.answer = record, None
            case "approval_answered":
                self.answer = record
            case "error" if "retry_seconds" not in record:
                self.error = str(record.get("message"))
            case _:
                pass

    def begin(self, session: Session, origin: str) -> None:
        """Continue with `session`, which continues the one named `origin`; pending notes for the model are dropped."""
        self.session = session
        self.turns.begin_session(origin)
        self.spent.clear()
        self.decision = self.answer = self.stop = None
        self.forget_notes()

    def open_menu(self, command: str) -> bool:
        """Let the next line begin with a command, its menu open; False where nothing can be drawn below the line."""
        repaints = self.screen.look.repaints
        self.draft = f"{command} " if repaints else self.draft
        return repaints

    def forget_notes(self) -> None:
        """Drop the pending notes for the model, and report that."""
        if count := self.notes.forget():
            self.say(f"the model is not told of {count_of(count, 'command')} that you ran before", Tone.QUIET)

    def message(self, line: str) -> str:
        """Return the person's message after the notes for the model."""
        return self.notes.message(
            line, self.session.messages, plans=self.plans, interrupted=self.stop is StopReason.INTERRUPTED
        )

    def masked(self, text: str) -> str:
        """Return text with the known secrets masked, as in the log."""
        return self.place.redactor.redact(text)

    def count(self, result: RunResult) -> None:
        """Keep the usage and the end of a turn."""
        self.stop = result.stop
        self.spent.append(
            Spent(
                model=self.agent.model.name,
                requests=result.turns,
                usage=result.usage,
                cost=self.cost_of(result.usage),
            )
        )
