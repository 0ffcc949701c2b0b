"""The third step of a session, its tools: confined by this machine's sandbox and connected to the session's front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.files.before_images import BeforeImages
from harness.files.workspace import Workspace
from harness.gate.tool import ConfinedTool, Tool
from harness.interrupt import Interrupt
from harness.log.attachments import attachments_beside
from harness.plugin import ToolPlace
from harness.policy.policy import Policy, denies_altogether
from harness.process.hardening import undumpable
from harness.process.job import Jobs
from harness.record import Record
from harness.redaction.stream import RedactedStream
from harness.sandbox.keeper import start_early
from harness.sandbox.seatbelt_trial import machine_here
from harness.session.chosen_tools import ChosenTools, chosen_tools
from harness.session.front import Front
from harness.session.named_plugins import named_plugins
from harness.session.session_attachments import SessionAttachments
from harness.session.session_place import SessionPlace
from harness.session.session_rules import SessionRules
from harness.session.shipped_plugins import file_readers, tool_offers
from harness.session.state import State
from harness.tools import builtin_tools, optional_tools
from harness.tools.command_changes import CommandChanges
from harness.tools.command_walls import CONTAINER_HINT, CommandWalls

if TYPE_CHECKING:
    from harness.process.lent_terminal import LentTerminal
    from harness.tools.delegate import Helpers
    from harness.tools.script_declaration import ScriptDeclaration


class HelperSeat:
    """Holds the helper runner for the tool `delegate`, which is made before the agent that the helpers serve."""

    def __init__(self) -> None:
        self._helpers: Helpers | None = None

    def take(self, helpers: Helpers) -> None:
        """Use this helper runner from now on."""
        self._helpers = helpers

    def helpers(self) -> Helpers | None:
        """Return the helper runner. None before the session has begun."""
        return self._helpers


class SessionTools(Record):
    """The tools of a session. RunningSession is made with them."""

    rules: SessionRules
    front: Front
    tools: tuple[Tool, ...]
    chosen: ChosenTools
    level: str
    """Short description of the walls that confine commands."""
    attachments: SessionAttachments
    seat: HelperSeat
    changes: CommandChanges
    """The looks at the files around commands."""
    jobs: Jobs
    """The background commands."""

    @property
    def place(self) -> SessionPlace:
        """The place of the session."""
        return self.rules.place

    @property
    def missing_wall(self) -> str:
        """A sentence on the part of the workspace walls that this machine lacks. Empty if it lacks none."""
        walls = next((tool.walls for tool in self.tools if isinstance(tool, ConfinedTool)), None)
        lack = walls.lack if isinstance(walls, CommandWalls) else ""
        return f"walls: workspace, but what a rule denies stays readable in it ({lack})" if lack else ""


def tools_of(rules: SessionRules, front: Front) -> SessionTools:
    """Return the tools of a session. Raises UsageError if commands must be confined and cannot be, or if no tool is left."""
    place, policy = rules.place, rules.policy
    attachments, seat = SessionAttachments(place.settings), HelperSeat()
    changes = CommandChanges(place.workspace.root, place.state.trees, place.environment)
    plugin_offers = [offer for plugin in named_plugins(place.settings.file) for offer in plugin.tools]
    chosen = chosen_tools(place.settings.tools, place.extensions.tools, [offer.kind.name for offer in plugin_offers])
    optional_names = chosen.optional(policy)
    jobs = Jobs(partial(RedactedStream, place.redactor))
    shipped = tools_in(
        place.workspace,
        place.state,
        place.environment,
        place.interrupt,
        front.draw,
        lend=front.lend,
        log=place.log,
        scripts=tuple(place.extensions.tools.values()),
        attachments=attachments,
        changes=changes,
        jobs=jobs if "job" in optional_names else None,
    )
    optional = optional_tools(optional_names, ask=front.ask, helpers=seat.helpers, jobs=jobs)
    room = ToolPlace(workspace=place.workspace, environment=place.environment, stops=lambda: place.interrupt.stops)
    offered = tuple(offer.make(room) for offer in (*tool_offers(optional_names), *plugin_offers))
    level = check_confinement(policy, shipped)
    tools = chosen.of((*shipped, *optional, *offered))
    names = [tool.spec.name for tool in tools]
    if not place.extensions.sections and all(denies_altogether(policy, name) for name in names):
        raise UsageError(f"no tool is left to offer: the policy refuses every call of {', '.join(names)}")
    return SessionTools(
        rules=rules,
        front=front,
        tools=tools,
        chosen=chosen,
        level=level,
        attachments=attachments,
        seat=seat,
        changes=changes,
        jobs=jobs,
    )


def helper_tools(
    tools: SessionTools, log: str, workspace: Workspace, interrupt: Interrupt, hide: Sequence[str]
) -> tuple[Tool, ...]:
    """Return new tools for files, commands and scripts for a helper in `workspace`. Output of its commands is not drawn."""
    place = tools.place
    return tools_in(
        workspace,
        place.state,
        place.environment,
        interrupt,
        log=log,
        hide=hide,
        scripts=tuple(place.extensions.tools.values()),
        attachments=tools.attachments,
    )


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
    attachments: SessionAttachments | None = None,
    changes: CommandChanges | None = None,
    jobs: Jobs | None = None,
) -> tuple[Tool, ...]:
    """Return the shipped tools and scripts for a workspace. No command can read `log` and the absolute paths in `hide`.

    `changes` finds the files that commands change (default: a new one). `jobs` are the background commands (default: there
    can be none).

    From this call on, commands cannot read this process's memory or environment, which hold keys.
    """
    undumpable()
    start_early()
    state.remove_old_outputs()
    return builtin_tools(
        workspace,
        environment=environment,
        images=BeforeImages(state.before_images),
        hide=(*state.guarded, *hide, *(() if log is None else (log, attachments_beside(log)))),
        on_output=on_output,
        lend=lend,
        stops=lambda: interrupt.stops,
        scripts=scripts,
        readers=file_readers(attachments),
        changes=changes or CommandChanges(workspace.root, state.trees, environment),
        jobs=jobs,
        machine=machine_here(state.state),
    )


def check_confinement(policy: Policy, tools: Sequence[Tool]) -> str:
    """Return this machine's confinement of commands, in a few words.

    Raises UsageError if the policy requires confinement and the machine cannot enforce it.
    """
    walls = next(tool.walls for tool in tools if isinstance(tool, ConfinedTool))
    required = policy.sandbox.required
    if required is not None and not walls.confines:
        raise UsageError(
            f"{required}: commands must be confined, but this machine cannot confine them: {walls.level}. "
            f"{CONTAINER_HINT}; `harness doctor` shows the machine's abilities"
        )
    return walls.level
