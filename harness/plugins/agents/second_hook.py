"""Two hooks of ours in the settings of one agent, for example the user's and a project's. The agent asks both about each call.

INVARIANT: with one policy, both give one answer, with one ticket. With two policies, the call does not run.
"""

from __future__ import annotations

from harness.digest import digest_of
from harness.plugins.agents.agent_session import AgentSession
from harness.plugins.agents.event import HookEvent
from harness.plugins.agents.guarded_agent import GuardedAgent, HookAnswer
from harness.plugins.agents.seen_hooks import GivenAnswer
from harness.text.visible import visible_line

_STORED = 16
"""Stored characters of a digest."""


class SecondHook:
    """One hook at one event, of which another hook may have answered already."""

    def __init__(self, agent: GuardedAgent, event: HookEvent, session: AgentSession, sha256: str, name: str) -> None:
        """`sha256` is the digest of the policy in force for this hook, and `name` the policy as its command line names it."""
        self._agent = agent
        self._event = event
        self._session = session
        self._policy = sha256[:_STORED]
        self._name = name

    def answer(self) -> HookAnswer | None:
        """Return the answer to a call that another hook has judged. `None` if the call is to be judged. Raises LogError.

        A call without a name of its own is not known again: there, two policies stop the session.
        """
        event, session = self._event, self._session
        if session.latch:
            return None
        if not event.use_id:
            self._stop_two_policies()
            return None
        substance = self._agent.substance_of(event)
        first, answer = session.hooks.answers.get(event.use_id), session.answers.get(event.use_id)
        rewritten = "" if answer is None else answer.allowed
        if first is None or (substance[:_STORED] != first.substance and substance != rewritten):
            return None
        if first.policy == self._policy:
            return HookAnswer(stdout=first.stdout, stderr=first.stderr, code=first.code)
        reason = self._reason(first.policy)
        for call in [call for call in session.open if call.key == event.use_id and call.number >= first.number]:
            session.replaced(call, f"Nothing was done: {reason}")
        session.note_answer(event.use_id, first.number, "")
        refused = self._agent.deny(reason)
        self.note(first.number, refused)
        return refused

    def note(self, number: int, answer: HookAnswer) -> None:
        """Remember the answer to the call with this number."""
        answer_here = GivenAnswer(
            number=number,
            substance=self._agent.substance_of(self._event)[:_STORED],
            policy=self._policy,
            stdout=answer.stdout,
            stderr=answer.stderr,
            code=answer.code,
        )
        self._session.hooks.note(self._event.use_id, answer_here, self._name)

    def answer_to_prompt(self) -> HookAnswer | None:
        """Return the answer to a prompt that another hook has recorded. `None` for a prompt to record. Raises LogError.

        Hooks with the same command line are not told apart.
        """
        hooks = self._session.hooks
        last, hooks.prompt = hooks.prompt, ()
        if not self._session.is_begun or last[:1] != (self._prompt,) or last[2] == self._name:
            return None
        if last[1] == self._policy:
            return HookAnswer()
        hooks.names[last[1]] = last[2]
        reason = self._reason(last[1])
        self._session.log.append("error", {"where": "settings", "message": reason}, sync=True)
        return self._agent.stop_prompt(reason)

    def note_prompt(self) -> None:
        """Remember a prompt that is recorded now. The calls before it are over."""
        self._session.hooks.answers.clear()
        self._session.hooks.prompt = (self._prompt, self._policy, self._name)

    @property
    def _prompt(self) -> str:
        return digest_of(self._event.prompt.encode())[:_STORED]

    def _stop_two_policies(self) -> None:
        """Stop a session of an agent that gives its calls no names, if it has another hook with another policy."""
        session = self._session
        for policy, name in session.hooks.names.items():
            if policy != self._policy and name != self._name:
                session.latch = f"{self._reason(policy)} Nothing more runs in this session."
                for call in [call for call in session.open if call.ticket]:
                    session.replaced(call, f"Nothing was done: {self._reason(policy)}")
                return

    def _reason(self, other: str) -> str:
        """Return the reason to refuse, for the digest of the other hook's policy."""
        names = (self._session.hooks.names.get(other, "another"), self._name)
        both = " and ".join(visible_line(name, 200) for name in names)
        return (
            f"Two hooks of harness judge this session, by different policies: {both}. Remove one; `harness hook status` "
            "lists them."
        )
