"""Approval by a user at `harness approve`, for calls of harness's own sessions."""

from __future__ import annotations

from collections.abc import Callable

from harness.actions import Action, Effects
from harness.gate.approval import Approval
from harness.policy.grant_offers import Offer
from harness.policy.policy import Policy
from harness.policy.verdict import Verdict
from harness.session.approver.outside_question import OWN
from harness.session.approver.standing_question import StandingQuestion, Watched
from harness.session.asked_call import AskedCall
from harness.session.waiting import LOOK_SECONDS, ListedQuestion, WaitingList


class ListedApprover:
    """Asks through the list of waiting questions. Implements AskOutside."""

    def __init__(
        self,
        waiting: WaitingList,
        *,
        workspace: str,
        level: str,
        session: Callable[[], str],
        policy: Callable[[], Policy],
        confinement: Callable[[str, Effects], str],
        offer: Callable[[Action, Verdict], Offer | str],
        is_alone: bool,
    ) -> None:
        """Keep the list, the workspace and its confinement. The callbacks return the state at the time of a question.

        `is_alone` says that there is no other approver, so that a missing listener is reported.
        """
        self._waiting = waiting
        self._workspace = workspace
        self._level = level
        self._session = session
        self._policy = policy
        self._confinement = confinement
        self._offer = offer
        self._is_alone = is_alone

    def __call__(self, action: Action, verdict: Verdict) -> StandingQuestion | str:
        """Add a question to the list and return it, or the reason why that failed.

        If no process listens, the reason is empty unless this is the only approver.
        """
        if not self._is_alone and not self._waiting.is_heard():
            return ""
        asked_call = AskedCall(
            agent=OWN,
            session=self._session(),
            workspace=self._workspace,
            confinement=action.confinement or self._confinement(action.tool, verdict.effects),
            level=self._level,
            writes=self._policy().sandbox.write,
            action=action,
            verdict=verdict,
            offer=lambda: self._offer(action, verdict),
        )
        try:
            question = self._waiting.put(asked_call)
        except OSError as error:
            return f"the question cannot be put for `harness approve`: {error.strerror}"
        return question if isinstance(question, str) else _Listed(question)


class _Listed:
    """A question in the list, checked every LOOK_SECONDS."""

    def __init__(self, question: ListedQuestion) -> None:
        self._question = question

    def watched(self) -> Watched:
        return Watched(seconds=LOOK_SECONDS)

    def look(self) -> Approval | None:
        return self._question.look()

    def withdraw(self) -> None:
        self._question.withdraw()
