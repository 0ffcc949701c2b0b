"""The approver in the user's configuration, for calls of one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from harness.actions import Action, Effects
from harness.errors import UsageError
from harness.files.workspace import Workspace
from harness.paths import is_within
from harness.policy.grant_offers import Offer
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment, program_outside
from harness.record import Record
from harness.session.approver.approver_declaration import ApproverDeclaration
from harness.session.approver.outside_program import AskedProgram
from harness.session.approver.outside_question import MOST_QUESTION_BYTES, OWN, TOO_LARGE, question_of
from harness.session.approver.outside_socket import AskedSocket
from harness.session.approver.standing_question import StandingQuestion


class FoundApprover(Record):
    """The approver in the configuration. INVARIANT: the model cannot write its program and its socket."""

    declaration: ApproverDeclaration
    environment: Mapping[str, str]
    """Environment of its program."""
    workspace: str
    command: tuple[str, ...]
    """Program of the approver, with its arguments. Empty if it listens at a socket."""
    socket: str
    paths: tuple[str, ...]
    """Paths that no call may write: the program, the files named in its arguments, and the socket."""


def found_approver(
    declaration: ApproverDeclaration, environment: Mapping[str, str], roots: Sequence[str]
) -> FoundApprover:
    """Return the declared approver, with its paths resolved.

    `environment` is the user's. `roots` are the workspace and other folders that calls may write. Raises UsageError if
    the program cannot be found, or if it or the socket is in one of `roots`.
    """
    home = environment.get("HOME", "")

    def absolute(word: str) -> str:
        return f"{home}{word[1:]}" if word.startswith("~/") and home else word

    program_environment = child_environment(environment)
    program_environment |= {name: environment[name] for name in declaration.env if name in environment}
    words, socket = tuple(map(absolute, declaration.command)), absolute(declaration.socket)
    if words:
        program = program_outside(roots[0], words[0], program_environment)
        if program is None:
            raise UsageError(f"[approver] program not found outside of the workspace: {words[0]}")
        words = (program, *words[1:])
    named_paths = [word for word in words if word.startswith("/") and os.path.isfile(word)] if words else [socket]
    paths = tuple(dict.fromkeys(file_path for path in named_paths for file_path in (path, os.path.realpath(path))))
    for path in paths:
        if any(is_within(path, os.path.realpath(root)) for root in roots):
            raise UsageError(f"[approver] {path} is in a folder that calls may write; move it elsewhere")
    return FoundApprover(
        declaration=declaration,
        environment=program_environment,
        workspace=roots[0],
        command=words,
        socket=socket,
        paths=paths,
    )


class ConfiguredApprover:
    """Asks the configured approver. Implements AskOutside."""

    def __init__(
        self,
        approver: FoundApprover,
        *,
        session: Callable[[], str],
        redact: Callable[[str], str],
        confinement: Callable[[str, Effects], str],
        offer: Callable[[Action, Verdict], Offer | str],
        agent: str = OWN,
    ) -> None:
        """Keep the approver and its callbacks. `agent` is the asking agent.

        `session` returns the ID of the current session, `redact` masks secrets, `confinement` and `offer` are those of
        TerminalApprover.
        """
        self._approver = approver
        self._agent = agent
        self._session = session
        self._redact = redact
        self._confinement = confinement
        self._offer = offer

    def __call__(self, action: Action, verdict: Verdict) -> StandingQuestion | str:
        """Ask about a call. Return the open question, or the reason why it cannot be asked."""
        approver, seconds = self._approver, self._approver.declaration.seconds
        question = question_of(
            action,
            verdict,
            agent=self._agent,
            session=self._session(),
            workspace=approver.workspace,
            confinement=action.confinement or self._confinement(action.tool, verdict.effects),
            offer=self._offer(action, verdict),
            seconds=seconds,
            redact=self._redact,
        )
        if len(question.line) > MOST_QUESTION_BYTES:
            return TOO_LARGE
        try:
            if approver.command:
                return AskedProgram(question, approver.command, approver.environment, seconds)
            return AskedSocket(question, approver.socket, seconds)
        except UsageError as error:
            return str(error)


def writable_roots(workspace: Workspace, policy: Policy, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the workspace, the added folders, and the places that the policy lets approved commands write.

    A program of the model could listen there in place of the approver.
    """
    home = environment.get("HOME", "")
    places = (*policy.sandbox.write, *policy.sandbox.caches)
    written = (home + name[1:] if name == "~" or name.startswith("~/") else name for name in places)
    return (workspace.root, *workspace.added, *(os.path.join(workspace.root, name) for name in written))
