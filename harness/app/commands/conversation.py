"""The object that slash commands act on: the session, its parts, and its display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from harness.actions import Action, Effects
from harness.app.commands.notes_to_model import NotesToModel
from harness.app.commands.turns import Turns, earlier_spending
from harness.audit.helper_tree import HelperTree
from harness.audit.spending import Spending
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
from harness.terminal.undo_question import UndoChoice, UndoQuestion
from harness.text.amounts import count_of
from harness.text.visible import visible_line


class Spent(Record):
    """Usage of one turn."""

    model: str
    requests: int
    usage: Usage
    cost: float | None
    """Cost in dollars. `None` if unknown."""


class Conversation:
    """One conversation at the prompt, with everything that a slash command may need."""

    def __init__(
        self,
        *,
        running: RunningSession,
        screen: Screen,
        approver: Approver,
        ask_undo: Callable[[UndoQuestion], UndoChoice],
        session: Session,
        showing: Callable[[Callable[[str], None], bool], AbstractContextManager[None]],
        policy_named: str | Sequence[str] | None,
        policy_sha256: str | None,
    ) -> None:
        """Create it. `showing` returns a `with` block that displays the output of a user's command by a function.

        The flag of `showing` tells whether the command gets the terminal. `ask_undo` asks how far to go back.
        `policy_named` and `policy_sha256` are the values of --policy and --policy-sha256.
        """
        self.running = running
        self.place = running.place
        self.tools = running.tools
        self.screen = screen
        self.approver = approver
        self.ask_undo = ask_undo
        self.agent = running.agent
        self.session = session
        self.turns = Turns(running.log.path, session)
        self.earlier = earlier_spending(self.turns.parts)
        """Tokens and cost of the sessions that the present one continues."""
        self.header = running.header
        self.showing = showing
        self.policy_named = policy_named
        self.policy_sha256 = policy_sha256
        self.policy_before_plan: Policy | None = None
        """The policy to return to after plan mode. `None` outside plan mode."""
        self.spent: list[Spent] = []
        self.prompt = ""
        """The next message to the model, sent for the user with their consent. Empty for none."""
        self.prompt_by_command = False
        """Whether `prompt` is the text of a command of the user or the team."""
        self.own_commands: Sequence[SlashCommand] = ()
        """The commands of the user and the team."""
        self.settings_after: Settings | None = None
        """Model settings to restore after the next turn. `None` to keep the present ones."""
        self.draft = ""
        """Initial text of the next input line: a command whose menu opens, or words for the user to edit or send."""
        self.leaving = False
        self.decision: LogRecord | None = None
        """The last recorded decision."""
        self.answer: LogRecord | None = None
        """The user's answer to the question about `decision`, if there was one."""
        self.stop: StopReason | None = None
        """Stop reason of the last turn in this session."""
        self.error = ""
        """Message of the last error recorded in this session."""
        self.notes = NotesToModel()
        self.helpers = HelperTree()
        """The helpers of the conversation's sessions."""

    @property
    def plans(self) -> bool:
        """Whether plan mode is on."""
        return self.policy_before_plan is not None

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Show a text line by line. It need not be safe to display."""
        self.screen.line(text, tone)

    def say_line(self, text: str, tone: Tone = Tone.PLAIN, *, max_characters: int = 2_000) -> None:
        """Show a text on one line. It need not be safe to display."""
        self.screen.line(visible_line(text, max_characters), tone)

    def tell_log(self) -> None:
        """Show the path, size and head of the log. Each gets its own line, so that it can be copied."""
        for line in pinned(self.agent.log, self.place.environment.get("HOME", "")):
            self.screen.unbroken(line)

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

    @property
    def spending(self) -> Spending:
        """Tokens and cost of the conversation, through all the sessions that it was in."""
        return self.earlier + Spending(usage=self.session.whole_usage, cost=self.cost)

    def confinement(self, tool: str, effects: Effects) -> str:
        """Return a description of the present confinement for a call of `tool`."""
        return self.agent.registry.confinement(tool, effects)

    def offer(self, action: Action, verdict: Verdict) -> Offer | str:
        """Return the grants that a question can offer, or the reason why there are none."""
        return "plan mode is on" if self.plans else self.agent.gate.grants.offer(action, verdict)

    def advice(self, action: Action, verdict: Verdict) -> str:
        """Return advice on a question: a rule that would answer it from now on, and its file.

        Else return why no rule can.
        """
        if self.plans:
            return "/plan off leaves it"

        advice = advice_on(self.agent.gate.policy, action, verdict, reason="Asked too often at the prompt.")
        if not advice.toml:
            return f"no rule lifts the question: {advice.reason}"
        home = home_of_rules(self.running.policy, self.place.state)
        return f"a rule would allow it unasked, in {home}:\n{advice.toml.rstrip()}"

    def record(self, record: LogRecord) -> None:
        """Store a record that /why needs. An observer of the log."""
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

    def begin(self, session: Session) -> None:
        """Continue with `session`. Pending notes for the model are dropped. Raises LogError."""
        self.session = session
        self.turns = Turns(self.agent.log.path, session)
        self.earlier = earlier_spending(self.turns.parts)
        self.spent.clear()
        self.decision = self.answer = self.stop = None
        self.forget_notes()

    def open_menu(self, command: str) -> bool:
        """Start the next input line with a command and open its menu.

        Returns whether that is possible, which needs a display that can draw below the line.
        """
        repaints = self.screen.look.repaints
        self.draft = f"{command} " if repaints else self.draft
        return repaints

    def forget_notes(self) -> None:
        """Drop the pending notes for the model, and report that to the user."""
        if count := self.notes.forget():
            self.say(f"the model is not told of {count_of(count, 'command')} that you ran before", Tone.QUIET)

    def message(self, line: str) -> str:
        """Return the user's message, preceded by the notes for the model."""
        return self.notes.message(
            line, self.session.messages, plans=self.plans, interrupted=self.stop is StopReason.INTERRUPTED
        )

    def masked(self, text: str) -> str:
        """Return a text with the known secrets masked, as in the log."""
        return self.place.redactor.redact(text)

    def count(self, result: RunResult) -> None:
        """Store the usage and the stop reason of a turn."""
        self.stop = result.stop
        self.spent.append(
            Spent(
                model=self.agent.model.name,
                requests=result.turns,
                usage=result.usage,
                cost=self.cost_of(result.usage),
            )
        )
