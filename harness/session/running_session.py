"""`RunningSession`, the last step of a session: the agent with its gate, model and log.

A session is made in four steps: SessionPlace, SessionRules, SessionTools and RunningSession. Each step is frozen before
the next begins. Mistakes in flags, settings and policies are found before the log is opened.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.files.repository import checked_out
from harness.gate.approval import Approver
from harness.gate.options import GateOptions
from harness.gate.place_watch import AskPlaces, nobody_to_ask
from harness.gate.registry import ToolRegistry
from harness.gate.tool import ChangingTool
from harness.interrupt import Interrupt
from harness.limits import strictest
from harness.log.action_log import ActionLog
from harness.loop.agent import Agent
from harness.loop.offered_tools import OutsideTools, no_more_tools
from harness.loop.run import Session
from harness.model import Model, OwnModel
from harness.policy.policy import Policy, denies_altogether
from harness.process.environment import child_environment
from harness.record import replace
from harness.session.active_parts import ActiveParts
from harness.session.config.provider import about_model, not_for, withhold
from harness.session.config.settings import Settings
from harness.session.front import Front
from harness.session.jobs_in_background import JobsInBackground
from harness.session.provider_models import ProviderModels
from harness.session.session_log import close_log, lost_log, opened_log, who_and_where
from harness.session.session_place import SessionPlace
from harness.session.session_rules import SessionRules
from harness.session.session_tools import SessionTools
from harness.session.shipped_plugins import part_of
from harness.session.system_prompt import SystemPrompt, system_prompt
from harness.session.templates import Templates, session_values
from harness.session.words.skills import skills_text
from harness.session.words.word_files import OwnWords
from harness.system import processors

if TYPE_CHECKING:
    from harness.log.heads_file import KnownHead

WAITING, MOST_AT_ONCE = 4, 32
"""Read-only calls that run at once: `WAITING` more than there are processors, at most `MOST_AT_ONCE`."""


class RunningSession:
    """A started session: the results of the steps before, and the state that may change while it runs."""

    def __init__(
        self,
        *,
        models: ProviderModels,
        agent: Agent,
        system: SystemPrompt,
        templates: Templates,
        header: Mapping[str, JsonValue],
        parts: ActiveParts,
    ) -> None:
        """See `begin_session`."""
        self.tools: SessionTools = models.tools
        self.rules: SessionRules = models.tools.rules
        self.place: SessionPlace = models.tools.place
        self.front: Front = models.tools.front
        self.models = models
        self.agent = agent
        self.log: ActionLog = agent.log
        self.system = system
        self.templates = templates
        self.header = header
        """Fields of the log's first record about the start."""
        self.settings: Settings = self.place.settings
        """The settings of the model that answers now."""
        self.policy: Policy = self.rules.policy
        """The policy from the files. In plan mode the gate uses a stricter one."""
        self._parts = parts

    def change_policy(self, session: Session, policy: Policy, reason: str, *, judged_by: Policy) -> None:
        """Use `policy` from now on. The gate judges by `judged_by`, which is stricter in plan mode.

        Raises LogError and ValueError as Agent does; then nothing is changed.
        """
        self.agent.change_policy(session, judged_by, reason)
        self.policy = policy

    def change_model(self, session: Session, settings: Settings) -> None:
        """Use the model that `settings` name from now on. Raises UsageError and LogError."""
        model = self.models.of(settings, self.policy)
        withhold(not_for(settings))
        # `echo` is a provider's data about its own replies. It must not be sent to another model.
        messages = session.messages[1:]
        if any(message.echo for message in messages):
            without = tuple(replace(message, echo="") for message in messages)
            self.agent.change_history(session, "model changed", 0, len(messages), without)
        self.agent.change_model(session, model, about_model(settings), settings.prices.value)
        self.agent.context_tokens = settings.context_tokens.value
        self.tools.attachments.settings = self.settings = settings

    def another_model(self, interrupt: Interrupt) -> OwnModel:
        """Return another model with the current settings, stopped by `interrupt`."""
        return self.models.another(self.settings, self.policy, interrupt)

    def warm_up(self) -> None:
        """Load and start everything that the first request needs. May be called in any thread."""
        self._parts.begin()
        self.models.warm_up()
        self.look_ahead()

    def look_ahead(self) -> None:
        """Begin to look at the files of the workspace, unless a look is recent or the policy refuses all that writes."""
        tools = [tool.spec.name for tool in self.tools.tools if isinstance(tool, ChangingTool)]
        writers = replace(self.policy, readers=())
        if not all(denies_altogether(writers, name) for name in tools):
            self.tools.changes.look_ahead(self.policy)

    def close(self) -> None:
        """End everything that was started for the session."""
        self.tools.jobs.close()
        self._parts.close()


def begin_session(
    models: ProviderModels,
    model: Model | None = None,
    *,
    mode: str,
    approver: Approver,
    header: Mapping[str, JsonValue] | None = None,
    on_text: Callable[[str], None] | None = None,
    ask_places: AskPlaces = nobody_to_ask,
    done_marker: str | None = None,
    check_answer: Callable[[str, float | None], str] | None = None,
) -> RunningSession:
    """Open the log and make the agent from the tools in `models`. `Agent.start` writes the first record.

    `model` is a model that is recorded or played back; `None` is the model that the settings name. `mode` and `header`
    are fields of the first record.
    Raises UsageError, LogError, and ValueError as Agent does.
    """
    tools = models.tools
    rules, place, front = tools.rules, tools.place, tools.front
    settings, root = place.settings, place.workspace.root
    answers = models.calling(models.first_model() if model is None else model, settings, rules.policy)
    values = session_values(
        root,
        [spec.name for spec in ToolRegistry(tools.tools).offered(rules.policy)],
        rules.policy.name,
        strictest((rules.limits, rules.policy.limits)),
    )
    system = system_prompt(settings, workspace=root, config=place.state.config, values=values)
    templates = Templates(settings, values, root)
    notes = _told_of(place.workspace.added) + _told_of_skills(place.words)
    system = replace(system, text=place.redactor.redact(system.text + notes))
    lost = lost_log(place.state, place.log)
    if lost is not None:
        front.tell(f"the log that was noted as {lost.file} is gone: {lost.words}; a new one begins there")
    log = opened_log(place.state, place.redactor, path=place.log, workspace=root, tell=front.tell)

    def tell_text(text: str) -> None:
        session.look_ahead()  # a call may follow, which then need not wait for a look
        if on_text is not None:
            on_text(text)

    try:
        tools.attachments.begin(log.path)
        parts, more_tools = _parts_of(tools, log, approver)
        first = {**_about_of(tools, mode, answers.name, lost), **system.header_fields, **(header or {})}
        agent = Agent(
            model=answers,
            tools=tools.tools,
            policy=rules.policy,
            approver=approver,
            log=log,
            limits=rules.limits,
            prices=settings.prices.value,
            context_tokens=settings.context_tokens.value,
            system=system.text,
            facts=first,
            on_text=tell_text,
            interrupt=place.interrupt,
            together=calls_at_once(),
            done_marker=done_marker,
            check_answer=check_answer,
            more_tools=more_tools,
            checks=rules.checks,
            options=GateOptions(
                grants=rules.granted.grants,
                kept=rules.kept_grants,
                ask_places=ask_places,
                dry_run=rules.unattended is not None and rules.unattended.dry_run,
                advise=rules.advise,
                phrase=templates.result if templates.has_result else None,
            ),
            background=JobsInBackground(tools.jobs),
        )
        tools.jobs.call_now = lambda: (log.session, log.running_call)
    except BaseException:
        close_log(place.state, log)
        raise
    session = RunningSession(models=models, agent=agent, system=system, templates=templates, header=first, parts=parts)
    if any(tool.spec.name == "delegate" for tool in tools.tools):
        from harness.session.delegated_work import helpers_of  # imported only if helpers are on offer

        # A recording has one order of replies, so helpers of a recorded model run one after the other.
        tools.seat.take(helpers_of(session, session.another_model if model is None else None))
    return session


def _parts_of(
    tools: SessionTools, log: ActionLog, approver: Approver
) -> tuple[ActiveParts, Callable[[], OutsideTools | None]]:
    """Return the parts that plugins add, and the function that returns changes of their tools. Raises UsageError.

    The parts start with `warm_up` or at the first request.
    """
    active_parts = [part_of(key) for key in tools.place.extensions.sections]
    if not active_parts:
        return ActiveParts(), no_more_tools
    parts = ActiveParts([part.make(tools, log, approver) for part in active_parts])
    return parts, tools.chosen.outside(parts.news)


def _about_of(tools: SessionTools, mode: str, model: str, lost: KnownHead | None) -> dict[str, JsonValue]:
    """Return the fields of a session's first record about its start; none is secret."""
    place, policy = tools.place, tools.rules.policy
    added = place.workspace.added
    return {
        "mode": mode,
        "argv": list(sys.argv),
        **who_and_where(),
        "workspace": place.workspace.root,
        "git_head": checked_out(place.workspace.root),
        "environment": [*sorted(child_environment(place.environment))],
        "model": model,
        **about_model(place.settings),
        "policy": policy.name,
        "policy_sha256": policy.sha256,
        **({"add_dirs": list(added)} if added else {}),
        **_lost_in(lost),
    }


def _lost_in(lost: KnownHead | None) -> dict[str, JsonValue]:
    if lost is None:
        return {}
    return {"lost_log": {"file": lost.file, "records": lost.records, "head": lost.head, "noted": lost.time}}


def _told_of(added: Sequence[str]) -> str:
    """Return the text for the model about the added folders."""
    return f"\n\nThese folders may be read as well, by absolute paths: {', '.join(added)}" if added else ""


def _told_of_skills(words: OwnWords) -> str:
    if not words.skills:
        return ""

    return f"\n\n{skills_text(words.skills.values())}"


def calls_at_once() -> int:
    """Return the number of read-only calls that may run at once on this machine.

    It exceeds the number of processors, since these calls mostly wait for disks.
    """
    return min(MOST_AT_ONCE, processors() + WAITING)


def collect() -> None:
    """Turn on garbage collection, which is off during the start: it would take a third of a short run (bench/beside.py).

    Existing objects are excluded, since objects made by imports live as long as the process.
    """
    gc.freeze()
    gc.enable()
