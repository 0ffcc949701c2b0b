"""Tickets: a judged command and its walls, for the process that the agent's shell starts to run it.

INVARIANT: a ticket is valid for one use, one command, one folder and a limited time. It is stored in the state folder,
which no confined command can write.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.actions import Action, Enforcement
from harness.errors import ToolError, UsageError
from harness.process.environment import unasked_variables
from harness.record import Record, field_names, replace
from harness.safe_files import make_private, read_small, write_whole
from harness.sandbox import Machine, Walls, probe

if TYPE_CHECKING:
    from harness.files.workspace import Workspace
    from harness.policy.policy import Policy
    from harness.policy.verdict import Verdict
    from harness.tools.command_walls import CommandWalls

GOOD_SECONDS = 600.0
"""Seconds after the judgement in which a command may begin. An agent runs an allowed command at once."""
ASKED_SECONDS = 3_600.0
"""Same limit in seconds for a command about which the agent asks the user first."""
MOST_BYTES = 4_000_000
_TOKEN_BYTES = 8
_LISTS = ("hosts", "folders", "kept_paths", "changes", "named_paths", "denied", "notes")
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def machine(*, has_namespaces: bool = False) -> Machine:
    """Return the abilities of this machine for the commands of another agent.

    Such a command stays in the session of the agent's shell, whose keys and signals it gets. `has_namespaces` means that an
    earlier test of namespaces succeeded, so that none is needed now.
    """
    return replace(probe(), in_session=True, **({"no_namespaces": ""} if has_namespaces else {}))


class Ticket(Record):
    """One judged command."""

    command: str
    cwd: str
    """Resolved path of the folder in which the command starts."""
    walls: Walls
    """The walls of the command. The process that runs it creates the folder `temporary`."""
    keeps_temporary: bool
    """Whether the command gets its own folder for temporary files."""
    good_seconds: float
    required: bool
    """Whether the command must not run if a wall cannot be enforced."""
    variables: Mapping[str, str] = {}
    """Variables to add to the environment of the agent's shell."""
    hosts: tuple[str, ...] = ()
    """Hosts that the command reaches through the proxy, in the form of a policy. Empty without a network of its own."""
    folders: tuple[str, ...] = ()
    """Missing folders that a rule lets the command write. They are created before it runs."""
    root: str = ""
    """The workspace, if its folders in PATH must be searched last: for a read-only command that runs without a question."""
    watched: str = ""
    """The workspace, if its protected places are held and compared. Empty for a command that cannot change them."""
    kept_paths: tuple[str, ...] = ()
    """Further files to compare (absolute paths)."""
    changes: tuple[str, ...] = ()
    """`Effects.changes` of the command."""
    writes_git: bool = True
    """`Effects.writes_git` of the command."""
    named_paths: tuple[str, ...] = ()
    """`Effects.named_paths` of the command."""
    looks_at: str = ""
    """The workspace, if the command may write files of it. Empty for a command that only reads."""
    denied: tuple[Sequence[Sequence[str]], ...] = ()
    """Patterns of each rule that denies to read files, and its exceptions."""
    notes: tuple[str, ...] = ()
    """Sentences for the agent behind the command's output: the files that are hidden from it."""
    folder_to: str = ""
    """File to which the last folder of the command is written. Empty if not needed."""

    @classmethod
    def create(
        cls,
        action: Action,
        verdict: Verdict,
        workspace: Workspace,
        *,
        policy: Policy,
        walls: CommandWalls,
        hidden: Sequence[str],
        is_asked: bool,
    ) -> Ticket:
        """Return the ticket for an allowed command. `is_asked` says whether the agent asks the user first.

        `walls` are those of the commands of this workspace.

        Raises ToolError if the policy requires a wall that this machine does not have.
        """
        from harness.tools.command_walls import left_out_note, missing_folders, walls_for

        effects = verdict.effects
        folders = tuple(missing_folders(effects, workspace))
        required = effects.enforcement is Enforcement.REQUIRED
        if required and effects.unheld:
            raise ToolError(
                f"The policy requires the walls of commands, and they are not whole here: {effects.unheld}."
            )
        own_network = walls.limits_hosts(effects)
        its_walls, _ = walls.by_every_name(walls_for(effects, workspace, hide=hidden), required=required)
        code = "" if its_walls.reader else walls.own_environment(its_walls)
        variables = unasked_variables(effects, os.defpath, workspace.root) if effects.unasked else {}
        return cls(
            command=action.text,
            cwd=action.cwd,
            walls=replace(
                its_walls,
                write=(*its_walls.write, *folders),
                own_network=own_network,
                keep=(*its_walls.keep, *filter(None, (code,))),
            ),
            hosts=effects.hosts if own_network else (),
            folders=folders,
            keeps_temporary=not effects.looks_only,
            good_seconds=ASKED_SECONDS if is_asked else GOOD_SECONDS,
            required=required or verdict.in_walls,
            watched="" if effects.looks_only or effects.opens_places else workspace.root,
            kept_paths=(*effects.keep, *effects.hold),
            writes_git=effects.writes_git,
            looks_at=workspace.root if effects.may_write else "",
            denied=tuple(
                (matcher.patterns.patterns, () if matcher.exceptions is None else matcher.exceptions.patterns)
                for matcher in policy.unreadable_files
            ),
            changes=effects.changes,
            named_paths=effects.named_paths,
            notes=(left_out_note(effects),) if effects.left_out else (),
            variables=variables,
            root=workspace.root if variables.pop("PATH", "") else "",  # the PATH of the agent's shell is used instead
        )


class TicketFolder:
    """The tickets of one session."""

    def __init__(self, session_folder: str, *, now: Callable[[], float] = time.time) -> None:
        """`now` is a clock in seconds since 1970."""
        self._folder = os.path.join(session_folder, "tickets")
        self._now = now

    def put(self, ticket: Ticket, call: int, *, tells_folder: bool = False) -> str:
        """Store a ticket for the call with this number, and return the ticket's path. Raises OSError."""
        make_private(self._folder)
        path = os.path.join(self._folder, os.urandom(_TOKEN_BYTES).hex())
        if tells_folder:
            ticket = replace(ticket, folder_to=told_of(path))
        fields = {field_name: getattr(ticket, field_name) for field_name in field_names(Ticket)}
        walls = {field_name: getattr(ticket.walls, field_name) for field_name in field_names(Walls)}
        fields_of_file = {**fields, "walls": walls, "call": call, "made": self._now()}
        descriptor = os.open(path, _NEW, 0o600)
        try:
            write_whole(descriptor, json.dumps(fields_of_file).encode())
        finally:
            os.close(descriptor)
        return path

    def take(self, name: str) -> tuple[Ticket, int]:
        """Use up a ticket; return it and the number of its call. Raises UsageError if it is invalid, used or too old."""
        if len(name) != 2 * _TOKEN_BYTES or not set(name) <= set("0123456789abcdef"):
            raise UsageError("invalid ticket")
        path = os.path.join(self._folder, name)
        try:
            os.rename(path, f"{path}.used")
        except FileNotFoundError:
            raise UsageError("no such ticket, or one that was used") from None
        except OSError as error:
            raise UsageError(f"the ticket cannot be used up: {error.strerror}") from None
        data = read_small(f"{path}.used", MOST_BYTES)
        os.unlink(f"{path}.used")
        try:
            stored = json.loads(data or b"")
            walls: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in stored.pop("walls").items()
            }
            made_at, call = float(stored.pop("made")), int(stored.pop("call"))
            ticket = Ticket(**{**stored, "walls": Walls(**walls), **{name: tuple(stored[name]) for name in _LISTS}})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(f"the ticket makes no sense: {error!r}") from None
        if not 0 <= self._now() - made_at <= ticket.good_seconds:
            raise UsageError("the ticket is too old: the command must be judged again")
        return ticket, call


def told_of(ticket: str) -> str:
    """Return the path of the file to which the last folder of a ticket's command is written."""
    return f"{ticket}.folder"


def split_name(name: str) -> tuple[str, str]:
    """Split the full name of a ticket into the session's folder and the ticket's own name. Raises UsageError."""
    session, dot, rest = name.rpartition(".")
    if not dot or "/" in session or session in (".", ".."):
        raise UsageError("invalid ticket")
    return session, rest
