"""The parts of a session put together from flags and environment, in the order in which they can fail."""

from __future__ import annotations

import gc
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.actions import Action, JsonValue
from harness.errors import UsageError
from harness.files.before_images import BeforeImages
from harness.files.repository import checked_out
from harness.files.workspace import Workspace
from harness.gate.approval import Approver
from harness.gate.call_checks import NO_SESSION_CHECKS, SessionChecks
from harness.gate.place_watch import AskPlaces, nobody_to_ask
from harness.gate.records import Advice
from harness.gate.registry import ToolRegistry
from harness.gate.tool import ConfinedTool, Tool
from harness.interrupt import Interrupt
from harness.limits import STANDARD, Limits, strictest
from harness.log.attachments import pictures_beside
from harness.loop.agent import Agent
from harness.loop.offered_tools import OutsideTools, no_more_tools
from harness.model import Model, OwnModel
from harness.paths import is_within
from harness.plugin import ToolPlace
from harness.policy.policy import Policy
from harness.policy.refused_tools import denies_altogether
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.process.hardening import undumpable
from harness.record import Record, replace
from harness.session.chosen_tools import chosen_tools
from harness.session.config.provider import about_model, model_from, not_for, withhold
from harness.session.config.settings import Settings, settings_from
from harness.session.environment_secrets import redactor_for, secrets_of
from harness.session.extensions.extensions import Extensions
from harness.session.own_folders import keep_own_folders, named_log, refuse_own_folders
from harness.session.policies import assemble, with_plan_mode
from harness.session.session_attachments import SessionAttachments
from harness.session.session_log import lost_log, opened_log, who_and_where
from harness.session.signals import Signals
from harness.session.state import PROJECT_CONFIG, PROJECT_SERVERS, State, current_folder, here, word_folders
from harness.session.system_prompt import system_prompt
from harness.session.templates import Templates, session_values
from harness.session.words.word_files import OwnWords
from harness.shipped import file_readers, tool_offers
from harness.terminal.console import complain
from harness.tool_kinds import BASH
from harness.tools import builtin_tools, optional_tools
from harness.tools.command_walls import CONTAINER_HINT

if TYPE_CHECKING:
    from harness.log.action_log import ActionLog
    from harness.log.heads_file import KnownHead
    from harness.models.anthropic_messages import AnthropicMessages
    from harness.models.openai_chat import OpenAIChat
    from harness.models.openai_responses import OpenAIResponses
    from harness.models.text_calls import TextCalls
    from harness.plugins.mcp.session_servers import SessionServers
    from harness.process.lent_terminal import LentTerminal
    from harness.redaction.redactor import Redactor
    from harness.session.kept_grants import KeptGrants
    from harness.tools.ask_user import UserAnswer, UserQuestion
    from harness.tools.delegate import Helpers
    from harness.tools.script_declaration import ScriptDeclaration

_Model = TypeVar("_Model", bound=Model)

WAITING, MOST_AT_ONCE = 4, 32
"""Calls that only read and run at once: so many more than there are processors, and at the most."""


class Unattended(Record):
    """What only runs have that nobody watches: the shipped readonly policy stands in, nobody asks, and refusals are advised
    about.
    """

    dry_run: bool = False
    """Whether every call is judged, and none is run."""
    plan: bool = False
    """Whether plan mode lies over the policy; at the prompt it is a mode, of which there is a command."""
    check_answer: Callable[[str, float | None], str] | None = None
    """Says what is wrong with an answer, or nothing, within so many seconds."""
    model_for: Callable[[SessionParts], Model] | None = None
    """Says who answers, when all but the log is known; None: the model that the settings name."""
    take_words: Callable[[SessionParts], None] | None = None
    """Finds what is said, when all but the log is known. Raises UsageError."""


class GatedParts(Protocol):
    """What every session has whose calls go through a gate, whoever proposes them."""

    environment: Mapping[str, str]
    state: State
    workspace: Workspace
    policy: Policy
    level: str
    interrupt: Interrupt
    extensions: Extensions
    redactor: Redactor
    log: ActionLog
    tell: Callable[[str], None]


class SessionParts:
    """What `run` and the prompt have in common. A policy that is wrong fails here, before any request."""

    def __init__(  # noqa: PLR0915 - the order of the parts is what it tells
        self, arguments: Namespace, environment: Mapping[str, str], unattended: Unattended | None = None
    ) -> None:
        """Put them together: for the prompt, or for a run that nobody watches. Raises UsageError, PolicyError or LogError."""
        self.environment = environment
        self.unattended = unattended
        self.state = State.of(environment)
        self.words = words_of(self.state, here(arguments.cwd), environment)
        self.workspace = Workspace(
            arguments.cwd or current_folder(),
            environment.get("HOME"),
            outputs=self.state.new_outputs(),
            added=arguments.add_dir,
            # The git of a task's commands reads the mirror that the worktree is of, though what is around it is hidden.
            skills=(*self.words.skill_places, *mirrors_of(arguments.copied_from, self.state)),
        )
        refuse_own_folders(self.workspace, self.state)
        log = named_log(arguments, self.workspace, self.state)
        self.policy: Policy = assemble(
            self.state,
            self.workspace.root,
            named=arguments.policy,
            fallback="default" if unattended is None else "readonly",
            pinned=arguments.policy_sha256,
        )
        if unattended is not None and unattended.plan:
            self.policy = with_plan_mode(self.policy)
        keep_own_folders(self.workspace, self.state)
        self.interrupt = Interrupt()
        self.on_output: Callable[[str], None] = _ignore
        """Told what a command prints while it runs; set by whoever shows it."""
        self.ask_person: Callable[[UserQuestion], UserAnswer] | None = None
        """Puts a question of the model to the person; set by whoever has a terminal."""
        self.helpers: Helpers | None = None
        """Runs helpers; set by whoever makes the agent."""
        self.lend: Callable[[], AbstractContextManager[LentTerminal]] | None = None
        """Lends the terminal to a command; set by whoever runs one that the person typed, and only while it runs."""
        self.settings: Settings = settings_from(arguments, environment, self.workspace.root)
        self.begun_settings = self.settings
        """Those that held at the beginning; /model may change the model's."""
        self.extensions, self.notes = extensions_of(self.settings, self.state, self.workspace.root, environment)
        self.pictures = SessionAttachments(self.settings)
        self.tools = tools_in(
            self.workspace,
            self.state,
            environment,
            self.interrupt,
            self._tell_output,
            lend=self._lent,
            log=log,
            scripts=tuple(self.extensions.tools.values()),
            pictures=self.pictures,
        )
        self.chosen = chosen_tools(self.settings.tools, self.extensions.tools)
        self.tools += optional_tools(
            self.chosen.optional(self.policy),
            ask=lambda question: None if self.ask_person is None else self.ask_person(question),
            helpers=lambda: self.helpers,
        )
        place = ToolPlace(environment=environment, stops=lambda: self.interrupt.stops)
        self.tools += tuple(offer.make(place) for offer in tool_offers(self.chosen.optional(self.policy)))
        self.level = check_confinement(self.policy, self.tools)
        self.tools = self.chosen.of(self.tools)
        names = [tool.spec.name for tool in self.tools]
        if not self.extensions.servers and all(denies_altogether(self.policy, name) for name in names):
            raise UsageError(f"no tool is left to offer: the policy refuses every call of {', '.join(names)}")
        self.prices = self.settings.prices.value
        self.context_tokens = self.settings.context_tokens.value
        self.on_wait: Callable[[float], None] = time.sleep
        """Waits for some seconds before a request is sent again; set by whoever can show that."""
        withhold(not_for(self.settings))
        self.limits = _limits_of(arguments, self.context_tokens)
        check_prices(self.settings, strictest((self.limits, self.policy.limits)))
        secrets = secrets_of(environment, self.settings.key_variable.value, self.settings.base_url.value)
        for profile in self.settings.file.profiles.values():  # /model may take one
            secrets += secrets_of(environment, profile.value_of("key_variable"), profile.value_of("base_url"))
        for one in self.extensions.servers.values():
            secrets += one.secrets(environment)
        home = environment.get("HOME", "")
        self.redactor = redactor_for(
            self.state, environment, secrets, unless=(self.workspace.root, home), tell=complain
        )
        self.checks = checks_of(self)
        self.tell: Callable[[str], None] = complain
        """Says one line to the person; set by whoever can show that better."""
        self._servers: SessionServers | None = None
        self._named: OpenAIChat | OpenAIResponses | AnthropicMessages | None = None
        model_for = unattended.model_for if unattended is not None else None
        asked = model_for(self) if model_for is not None else self.named_model()
        self.model: Model = self.calling(asked, self.settings)
        named: object = self._named
        self.another_model = self._another_model if asked is named else None
        """Returns one more model, as the settings name it now; None where what the model answers is recorded, or played from a
        recording: that has one order."""
        values = session_values(
            self.workspace.root,
            [spec.name for spec in ToolRegistry(self.tools).offered(self.policy)],
            self.policy.name,
            strictest((self.limits, self.policy.limits)),
        )
        system = system_prompt(self.settings, workspace=self.workspace.root, config=self.state.config, values=values)
        self.templates = Templates(self.settings, values, self.workspace.root)
        self.notes = (*self.notes, *self.words.notes)
        told = _told_of(self.workspace.added) + _told_of_skills(self.words)
        self.system = replace(system, text=self.redactor.redact(system.text + told))
        if unattended is not None and unattended.take_words is not None:
            unattended.take_words(self)
        self.signals = Signals(self.interrupt)
        self.lost = lost_log(self.state, log)
        if self.lost is not None:
            complain(f"the log that was noted as {self.lost.file} is gone: {self.lost.words}; a new one begins there")
        self.log: ActionLog = opened_log(self.state, self.redactor, path=log, workspace=self.workspace.root)
        self.pictures.begin(self.log.path)

    def named_model(self) -> OpenAIChat | OpenAIResponses | AnthropicMessages:
        """Return the model that the settings name. Raises UsageError as `model_from` does."""
        if self._named is None:
            self._named = self._model_from(self.settings, self.interrupt, self._wait)
        return self._named

    def _another_model(self, interrupt: Interrupt) -> OwnModel:
        return self.calling(self._model_from(self.settings, interrupt, interrupt.sleep), self.settings)

    def _model_from(
        self, settings: Settings, interrupt: Interrupt, sleep: Callable[[float], None]
    ) -> OpenAIChat | OpenAIResponses | AnthropicMessages:
        return model_from(
            settings, self.environment, sleep=sleep, stops=lambda: interrupt.stops, pictures=self.pictures.bytes_of
        )

    def model_of(self, settings: Settings) -> Model:
        """Return the model that `settings` name, with its calls in the form that they name. Raises UsageError as `model_from`
        does, and where it could call nothing."""
        return self.calling(self._model_from(settings, self.interrupt, self._wait), settings)

    def calling(self, model: _Model, settings: Settings) -> _Model | TextCalls:
        """Return the model with its calls in the form that `settings` name. Raises UsageError where it could call nothing."""
        if settings.calls.value != "text":
            return model
        from harness.models.text_calls import TextCalls

        problem = ""
        if all(tool.spec.name != BASH.name for tool in self.tools):
            problem = f"{BASH.name} is not among the tools ({self.chosen.origin})"
        elif denies_altogether(self.policy, BASH.name):
            problem = f"the policy {self.policy.name} refuses every call of {BASH.name}"
        if problem:
            raise UsageError(f"{settings.calls.origin}: the calls of such a model are commands, and {problem}")
        return TextCalls(model)

    def warm_up(self) -> None:
        """Load and start what the first request needs, in any thread."""
        if self._servers is not None:
            self._servers.begin()
        if self._named is not None:
            self._named.warm_up()

    @staticmethod
    def collect() -> None:
        """Look for garbage from here on, which a start does not: a third of a short run would go into it (bench/beside.py).

        What is there is left out: what an import leaves lives as long as the process.
        """
        gc.freeze()
        gc.enable()

    def start_servers(self, approver: Approver) -> Callable[[], OutsideTools | None]:
        """Have the MCP servers of the configuration started with `warm_up`, or the first request; return what tells of their
        tools. Raises UsageError."""
        if not self.extensions.servers:
            return no_more_tools
        from harness.plugins.mcp.session_servers import SessionServers

        self._servers = SessionServers(self, approver)
        return self.chosen.outside(self._servers.news)

    def close(self) -> None:
        """End what was started for the session."""
        if self._servers is not None:
            self._servers.close()

    def _tell_output(self, printed: str) -> None:
        self.on_output(printed)

    def _lent(self) -> AbstractContextManager[LentTerminal] | None:
        return None if self.lend is None else self.lend()

    def _wait(self, seconds: float) -> None:
        self.on_wait(seconds)


def _ignore(printed: str) -> None:
    pass


def _told_of(added: Sequence[str]) -> str:
    """Return what the model is told of the folders that were added."""
    return f"\n\nThese folders may be read as well, by absolute paths: {', '.join(added)}" if added else ""


def _limits_of(arguments: Namespace, context_tokens: int | None) -> Limits:
    """Return the limits of the flags, and that of results for a model with a small context.

    There a result has no more characters than the context has tokens: a quarter of it or a third.
    """
    standard = STANDARD.result_characters
    is_small = context_tokens is not None and standard is not None and context_tokens < standard
    return Limits(
        result_characters=context_tokens if is_small else None,
        max_turns=arguments.max_turns,
        max_seconds=arguments.max_seconds,
        max_tokens=arguments.max_tokens,
        max_cost=arguments.max_cost,
    )


def about_of(parts: SessionParts, mode: str) -> dict[str, JsonValue]:
    """Return what a session's first record says of how it was begun; `mode` is `run` or `repl`. No secret is in it."""
    return {
        "mode": mode,
        "argv": list(sys.argv),
        **who_and_where(),
        "workspace": parts.workspace.root,
        "git_head": checked_out(parts.workspace.root),
        "environment": [*sorted(child_environment(parts.environment))],
        "model": parts.model.name,
        **about_model(parts.settings),
        "policy": parts.policy.name,
        "policy_sha256": parts.policy.sha256,
        **({"add_dirs": list(parts.workspace.added)} if parts.workspace.added else {}),
        **_lost_in(parts.lost),
        **parts.system.about,
    }


def _lost_in(lost: KnownHead | None) -> dict[str, JsonValue]:
    if lost is None:
        return {}
    return {"lost_log": {"file": lost.file, "records": lost.records, "head": lost.head, "noted": lost.time}}


def agent_of(
    parts: SessionParts,
    *,
    approver: Approver,
    about: Mapping[str, JsonValue],
    on_text: Callable[[str], None] | None = None,
    done_marker: str | None = None,
    kept: KeptGrants | None = None,
    ask_places: AskPlaces = nobody_to_ask,
) -> Agent:
    """Return the agent of these parts. `kept` are the grants of its workspace, where a person is there to have given them,
    who is asked about protected places by `ask_places`.

    Raises ValueError as Agent does.
    """
    unattended = parts.unattended
    agent = Agent(
        model=parts.model,
        tools=parts.tools,
        policy=parts.policy,
        approver=approver,
        log=parts.log,
        limits=parts.limits,
        prices=parts.prices,
        context_tokens=parts.context_tokens,
        system=parts.system.text,
        about=about,
        on_text=on_text,
        interrupt=parts.interrupt,
        together=calls_at_once(),
        phrase=parts.templates.result if parts.templates.has_result else None,
        done_marker=done_marker,
        grants=kept.read().grants if kept else (),
        kept=kept,
        ask_places=ask_places,
        more_tools=parts.start_servers(approver),
        checks=parts.checks,
        dry_run=unattended is not None and unattended.dry_run,
        advise=(_advise_to_leave_plan if unattended.plan else advise) if unattended else None,
        check_answer=unattended.check_answer if unattended else None,
    )
    if any(tool.spec.name == "delegate" for tool in parts.tools):
        from harness.session.delegated_work import helpers_of  # with the first that may be had

        def fresh(workspace: Workspace, interrupt: Interrupt, hide: Sequence[str]) -> tuple[Tool, ...]:
            return tools_in(
                workspace,
                parts.state,
                parts.environment,
                interrupt,
                log=parts.log.path,
                hide=hide,
                scripts=tuple(parts.extensions.tools.values()),
                pictures=parts.pictures,
            )

        parts.helpers = helpers_of(parts, agent, fresh)
    return agent


def calls_at_once() -> int:
    """Return how many calls that only read may run at once on this machine: they wait for disks more than they compute."""
    return min(MOST_AT_ONCE, len(os.sched_getaffinity(0)) + WAITING)


def _advise_to_leave_plan(policy: Policy, action: Action, verdict: Verdict) -> Advice:  # noqa: ARG001 - as Gate has it
    return Advice(why="plan mode lies over the policy (--plan), and no rule lifts that")


def advise(policy: Policy, action: Action, verdict: Verdict) -> Advice:
    """Return what would let a refused call run."""
    from harness.session.advice import advice_on  # with the first refusal

    return advice_on(policy, action, verdict)


def extensions_of(
    settings: Settings, state: State, workspace: str, environment: Mapping[str, str]
) -> tuple[Extensions, Sequence[str]]:
    """Return what a session has besides the tools that ship, and what a person is told of what is left out; see
    session/extensions/. Raises UsageError.
    """
    files = (os.path.join(workspace, name) for name in (PROJECT_CONFIG, PROJECT_SERVERS))
    if not settings.file.extensions and not any(map(os.path.lexists, files)):
        return Extensions(), ()
    from harness.session.extensions.extensions_here import extensions_here

    found = extensions_here(settings.file.extensions, state, workspace, environment)
    return found.extensions, found.notes


def words_of(state: State, workspace: str, environment: Mapping[str, str]) -> OwnWords:
    """Return the commands and skills of the user, and of the workspace where they are trusted. Raises UsageError."""
    own = (os.path.join(state.config, name) for name in ("commands", "skills"))
    if not any(map(os.path.lexists, own)) and not any(word_folders(workspace)):
        return OwnWords()
    from harness.session.words.own_words import words_here

    return words_here(state, workspace, os.path.realpath(environment.get("HOME") or os.path.expanduser("~")))


def _told_of_skills(words: OwnWords) -> str:
    if not words.skills:
        return ""
    from harness.session.words.skills import skills_text

    return f"\n\n{skills_text(words.skills.values())}"


def checks_of(parts: GatedParts) -> SessionChecks:
    """Return the hooks of the session, as they are declared. Raises UsageError for one that calls could change."""
    if not parts.extensions.hooks:
        return NO_SESSION_CHECKS
    from harness.checks.checks import Checks

    return Checks(
        tuple(parts.extensions.hooks.values()),
        workspace=parts.workspace.root,
        environment=parts.environment,
        redact=parts.redactor.redact,
        interrupt=parts.interrupt,
        tell=lambda said: parts.tell(said),  # noqa: PLW0108 - who shows it best is known later
    )


def mirrors_of(copied_from: str | None, state: State) -> tuple[str, ...]:
    """Return the mirror (session/work_folders/mirror.py) that a workspace is a worktree of; nothing where it is none of those.

    `copied_from` is the folder (absolute, links followed) that the workspace of a task was made of.
    """
    if copied_from is None:
        return ()
    mirrors = os.path.join(os.path.realpath(state.state), "mirrors")
    return (copied_from,) if is_within(copied_from, mirrors) else ()


def tools_in(
    workspace: Workspace,
    state: State,
    environment: Mapping[str, str],
    interrupt: Interrupt,
    on_output: Callable[[str], None] | None = None,
    *,
    lend: Callable[[], AbstractContextManager[LentTerminal] | None] | None = None,
    log: str | None = None,
    hide: Sequence[str] = (),
    scripts: Sequence[ScriptDeclaration] = (),
    pictures: SessionAttachments | None = None,
) -> tuple[Tool, ...]:
    """Return the tools that ship, and scripts, with the places where the program keeps things. No command can read the named
    `log`, nor `hide` (absolute paths).

    From here on, nothing that a command starts can read this process's memory or environment: keys lie there.
    """
    undumpable()
    state.remove_old_outputs()
    return builtin_tools(
        workspace,
        environment=environment,
        images=BeforeImages(state.before_images),
        hide=(*state.guarded, *hide, *(() if log is None else (log, pictures_beside(log)))),
        on_output=on_output,
        lend=lend,
        stops=lambda: interrupt.stops,
        scripts=scripts,
        readers=file_readers(pictures),
    )


def check_confinement(policy: Policy, tools: Sequence[Tool]) -> str:
    """Return what this machine holds commands to, in a few words.

    Raises UsageError if the policy requires that they are confined and the machine cannot.
    """
    walls = next(tool.walls for tool in tools if isinstance(tool, ConfinedTool))
    required = policy.sandbox.required
    if required is not None and not walls.confines:
        raise UsageError(
            f"{required}: commands must be confined here, and this machine cannot: {walls.level}. {CONTAINER_HINT}; "
            "`harness doctor` shows what it can"
        )
    return walls.level


def check_prices(settings: Settings, limits: Limits) -> None:
    """Raise UsageError if the cost is limited and nobody said what the model costs: unknown is not free."""
    if limits.max_cost is None or settings.prices.value is not None:
        return
    import json

    model = json.dumps(settings.model.value, ensure_ascii=False)  # as TOML writes it too
    raise UsageError(
        f"a limit of cost (--max-cost, or cost in a policy) needs the prices of {settings.model.value!r}: write them in "
        f"{settings.file.path} as [prices.{model}] with input = ... and output = ..., in dollars per million tokens"
    )
