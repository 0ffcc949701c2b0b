"""The hooks of ours that one session has seen, and their answers (`SeenHooks`)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import JsonValue
from harness.record import Record, field_names

MOST_CALLS = 200
"""Maximum number of stored calls that were judged and have no outcome."""


class GivenAnswer(Record):
    """The answer of one hook to a call."""

    number: int
    """Number of the call in the log; of a patch, that of its first part."""
    substance: str
    """Digest of what the agent asked to run, cut short."""
    policy: str
    """Digest of the policy that decided, cut short."""
    stdout: str
    stderr: str
    code: int


class SeenHooks:
    """The hooks of one session, told apart by their policies."""

    def __init__(self) -> None:
        """No hook was seen yet."""
        self.names: dict[str, str] = {}
        """The policies as the command lines of the hooks name them, by digest."""
        self.answers: dict[str, GivenAnswer] = {}
        """Answers that another hook may have to repeat, by the agent's name of the call."""
        self.prompt: tuple[str, ...] = ()
        """Digest of the last prompt, and digest and name of the policy of the hook that recorded it; empty before the first."""

    @classmethod
    def restored(cls, stored: Mapping[str, JsonValue]) -> SeenHooks:
        """Return the hooks in `fields` of a state file. Raises KeyError and TypeError."""
        hooks = cls()
        names, answers, prompt = stored["names"], stored["answers"], stored["prompt"]
        if not (isinstance(names, dict) and isinstance(answers, dict) and isinstance(prompt, list)):
            raise TypeError("expected two objects and a list")
        hooks.names = {policy: str(name) for policy, name in names.items()}
        hooks.answers = {use_id: GivenAnswer(**answer) for use_id, answer in answers.items()}  # type: ignore[arg-type]  # as written
        hooks.prompt = tuple(map(str, prompt))
        return hooks

    @property
    def fields(self) -> dict[str, JsonValue]:
        """The part of the session's state file."""
        answers: dict[str, JsonValue] = {
            use_id: {name: getattr(answer, name) for name in field_names(GivenAnswer)}
            for use_id, answer in self.answers.items()
        }
        return {"names": dict(self.names), "answers": answers, "prompt": list(self.prompt)}

    def note(self, use_id: str, answer: GivenAnswer, name: str) -> None:
        """Remember an answer, unless the agent gives its calls no names. `name` is that of the policy."""
        self.names[answer.policy] = name
        if use_id:
            self.answers.pop(use_id, None)
            self.answers[use_id] = answer
            if len(self.answers) > MOST_CALLS:
                del self.answers[next(iter(self.answers))]
