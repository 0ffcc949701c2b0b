"""The walls of a configured server: the paths and network that its declaration permits, limited by the policy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from harness.actions import Effects, ToolUse
from harness.errors import ToolError, UsageError
from harness.files.workspace import Workspace
from harness.plugins.mcp.server_declaration import ServerDeclaration
from harness.policy.effects import effects_of
from harness.policy.policy import Policy
from harness.policy.walls_here import WallsHere
from harness.process.environment import child_environment
from harness.process.piped_process import PipedProcess
from harness.process.start import Launch
from harness.process.temporary import TemporaryFolder
from harness.record import replace
from harness.safe_files import read_regular
from harness.sandbox import Machine, probe
from harness.text.visible import visible_line
from harness.tools.command_walls import CommandWalls

ELSEWHERE = "none: the server runs elsewhere"
MOST_KEY_BYTES = 64 * 1024
MOST_TOLD = 5


def server_machine() -> Machine:
    """Return the abilities of this machine for servers.

    A server runs outside of namespaces. It may serve a whole session, and its view of the disk would be the one of its
    start: a hidden file that an editor replaces later would be visible in it. Without a view, that is a gap from the start.
    """
    return replace(probe(), no_namespaces="servers run outside of namespaces")


class ServerWalls:
    """The walls for calls of a server, for the gate."""

    def __init__(self, held_by: str, *, confines: bool) -> None:
        """Create the walls. `held_by` describes them, and `confines` is whether the kernel enforces them."""
        self.level = held_by
        self.confines = confines

    def walls_here(self, policy: Policy, tool: str) -> WallsHere:  # noqa: ARG002 - as CallWalls has it
        """Return that no program can be granted."""
        return WallsHere(root="", confines=False, missing="a server has the walls of its declaration")

    def in_words(self, effects: Effects) -> str:  # noqa: ARG002 - as CallWalls has it
        """Return the description of the walls, which is the same for each call."""
        return self.level


class ServerStarter:
    """Starts servers of the configuration, each in its walls."""

    def __init__(
        self, workspace: Workspace, walls: CommandWalls, policy: Policy, environment: Mapping[str, str]
    ) -> None:
        """Make a starter. Servers start in `workspace`, inside `walls`, with variables from `environment`."""
        self._workspace = workspace
        self._walls = walls
        self._policy = policy
        self._environment = environment

    def effects(self, declaration: ServerDeclaration) -> Effects:
        """Return the permitted effects of a server: the declared ones, except those that the policy forbids."""
        use = ToolUse(tool=declaration.name, bounds=declaration.bounds)
        effects = effects_of(
            (use,),
            autos=(),
            asked_parts=(use,),
            open_ended=False,
            tables=self._policy.sandbox_tables,
            keep=self._policy.guarded,
        )
        # A declaration of the network opens Unix sockets too: many servers start a container.
        return replace(effects, sockets=effects.network)

    def held_by(self, declaration: ServerDeclaration) -> str:
        """Return a description of a server's walls."""
        if not declaration.command:
            return ELSEWHERE
        if not self._walls.confines:
            return self._walls.level
        effects = self.effects(declaration)
        places = ", ".join(visible_line(place, 100) for place in effects.granted[:MOST_TOLD])
        more = f" and {len(effects.granted) - MOST_TOLD} more" if len(effects.granted) > MOST_TOLD else ""
        writes = f"it may write {places}{more}" if places else "it may write nothing but temporary files"
        return f"{self._walls.level}: {writes}; {'network' if effects.network else 'no network'}"

    @property
    def confines(self) -> bool:
        """Whether this machine can confine servers."""
        return self._walls.confines

    def start(self, declaration: ServerDeclaration, temporary: TemporaryFolder, errors: int) -> PipedProcess:
        """Start a server with the file descriptor `errors` as its stderr. Raises UsageError if that fails."""
        try:
            variables = {**self._variables(declaration), "TMPDIR": temporary.path()}
            program = shutil.which(declaration.command[0], path=variables["PATH"])
            if program is None and "/" not in declaration.command[0]:
                raise UsageError(f"no program {declaration.command[0]} in the folders of PATH")
            launch = Launch(
                argv=declaration.command,
                executable=declaration.command[0],
                cwd=self._workspace.root,
                environment=variables,
            )
            confinement = self._walls.confinement(self.effects(declaration), temporary.path)
        except (ToolError, OSError) as error:
            raise UsageError(str(error)) from None
        if confinement is None:
            return PipedProcess(launch, "the server", is_bound=True, errors=errors)
        with confinement:
            walled = replace(
                launch,
                confine=confinement.enter,
                starter=confinement.starter,
                prefix=confinement.prefix,
                descriptors=confinement.descriptors,
            )
            return PipedProcess(walled, "the server", is_bound=True, errors=errors)

    def _variables(self, declaration: ServerDeclaration) -> dict[str, str]:
        """Return the environment of a server: the variables of every command, and those of its declaration."""
        declared_variables = {name: self._environment[name] for name in declaration.env if name in self._environment}
        return {
            "PATH": os.defpath,
            **child_environment(self._environment),
            **declared_variables,
            **dict(declaration.variables),
        }

    def has(self, variable: str) -> bool:
        """Return whether an environment variable is set."""
        return variable in self._environment

    def header_values(self, declaration: ServerDeclaration) -> dict[str, str]:
        """Return the headers for each request to a server's URL. Raises UsageError for a missing or invalid token."""
        headers = dict(declaration.headers)
        if declaration.bearer:
            token = self._environment.get(declaration.bearer, "")
            if not token or not token.isprintable() or not token.isascii():
                raise UsageError(f"the variable {declaration.bearer}, which holds its token, is not set, or holds none")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def credential(self, declaration: ServerDeclaration) -> str:
        """Return the secret or the private key of a client that logs in by itself. Raises UsageError if it is missing."""
        if declaration.client_secret:
            if secret := self._environment.get(declaration.client_secret, ""):
                return secret
            raise UsageError(f"the variable {declaration.client_secret}, which holds its client's secret, is not set")
        path = declaration.client_key
        if path.startswith("~/"):
            path = os.path.join(self._environment.get("HOME", "/"), path[2:])
        try:
            return read_regular(path, MOST_KEY_BYTES).decode("ascii", "replace")
        except OSError as error:
            raise UsageError(f"{declaration.client_key}, its client's key, cannot be read: {error.strerror}") from None
