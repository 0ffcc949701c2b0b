"""The approver of the person's configuration, who is asked about calls of one session."""

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
from harness.session.approver.approver_declaration import ApproverDeclaration
from harness.session.approver.outside_program import AskedProgram
from harness.session.approver.outside_question import MOST_QUESTION_BYTES, TOO_LARGE, question_of
from harness.session.approver.outside_socket import AskedSocket
from harness.session.approver.standing_question import StandingQuestion


class ConfiguredApprover:
    """See AskOutside. INVARIANT: neither its program nor its socket lies where the model may write."""

    def __init__(
        self,
        declaration: ApproverDeclaration,
        environment: Mapping[str, str],
        roots: Sequence[str],
        *,
        session: Callable[[], str],
        redact: Callable[[str], str],
        confinement: Callable[[str, Effects], str],
        offer: Callable[[Action, Verdict], Offer | str],
    ) -> None:
        """Take who is asked, the person's environment, and the workspace with all else that calls may write.

        `session` names the session that goes on; `redact` masks secrets; `confinement` and `offer` are as for
        TerminalApprover. Raises UsageError where the program cannot be found, or lies in one of `roots`, or the socket does.
        """
        self._declaration = declaration
        self._home = environment.get("HOME", "")
        self._environment = child_environment(environment)
        self._environment |= {name: environment[name] for name in declaration.env if name in environment}
        self._roots = roots
        self._session = session
        self._redact = redact
        self._confinement = confinement
        self._offer = offer
        self._command = self._found_command()
        self.paths = tuple(dict.fromkeys(one for path in self._named() for one in (path, os.path.realpath(path))))
        """What no call may write: the program, files that its words name, and the socket."""
        for path in self.paths:
            if any(is_within(path, os.path.realpath(root)) for root in roots):
                raise UsageError(
                    f"[approver] {path} lies where calls may write, and could be changed; move it elsewhere"
                )

    def __call__(self, action: Action, verdict: Verdict) -> StandingQuestion | str:
        """Put a question; return why not, where that cannot be."""
        seconds = self._declaration.seconds
        question = question_of(
            action,
            verdict,
            session=self._session(),
            workspace=self._roots[0],
            confinement=action.held or self._confinement(action.tool, verdict.effects),
            offer=self._offer(action, verdict),
            seconds=seconds,
            redact=self._redact,
        )
        if len(question.line) > MOST_QUESTION_BYTES:
            return TOO_LARGE
        try:
            if self._command:
                return AskedProgram(question, self._command, self._environment, seconds)
            return AskedSocket(question, self._absolute(self._declaration.socket), seconds)
        except UsageError as error:
            return str(error)

    def _found_command(self) -> tuple[str, ...]:
        if not self._declaration.command:
            return ()
        name, *rest = map(self._absolute, self._declaration.command)
        found = program_outside(self._roots[0], name, self._environment)
        if found is None:
            raise UsageError(f"[approver] the program {name} is not there, or lies in the workspace")
        return (found, *rest)

    def _absolute(self, word: str) -> str:
        return f"{self._home}{word[1:]}" if word.startswith("~/") and self._home else word

    def _named(self) -> list[str]:
        """Return the absolute paths that the declaration names, as far as there are such files."""
        if not self._command:
            return [self._absolute(self._declaration.socket)]
        return [word for word in self._command if word.startswith("/") and os.path.isfile(word)]


def writable_roots(workspace: Workspace, policy: Policy, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the workspace, the folders that were added, and what the policy lets every command write that a person allows:
    one could listen there in the approver's place.
    """
    home = environment.get("HOME", "")
    places = (*policy.sandbox.write, *policy.sandbox.caches)
    written = (home + name[1:] if name == "~" or name.startswith("~/") else name for name in places)
    return (workspace.root, *workspace.added, *(os.path.join(workspace.root, name) for name in written))
