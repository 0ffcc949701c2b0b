"""The tool `ask_user`: the model asks the user a question, with or without choices. It has no other effect."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from harness.actions import SUMMARY_CHARACTERS, Action, Effects, ToolUse
from harness.errors import ToolError
from harness.gate.arguments import text
from harness.gate.tool import Arguments, ToolOutput
from harness.messages import ResultStatus, ToolCall
from harness.model import ToolSpec
from harness.record import Record
from harness.text.visible import visible, visible_line
from harness.tool_kinds import OPTIONAL_TOOLS

MOST_CHOICES = 8
"""Maximum number of choices. Each choice needs a key."""
MOST_QUESTION_CHARACTERS = 4_000
MOST_CHOICE_CHARACTERS = 200
NOBODY_THERE = (
    "Nobody is there to answer. Decide by yourself what is safe and can be taken back, and say in your answer what you "
    "assumed; where nothing is, end with the question."
)
ONLY_CHOICES = (
    "The person can only choose here, and chose nothing. Ask with other choices, or end with the question: they answer with "
    "their next message."
)
NO_ANSWER = "The person gave no answer. Do not ask the same again: go on without it, or end with what is open."


class UserQuestion(Record):
    """A question of the model. Its text is unsafe to show as it is."""

    question: str
    choices: tuple[str, ...] = ()


class Replied(Enum):
    """The outcome of a question."""

    ANSWERED = "answered"
    NO_ANSWER = "no answer"
    ONLY_CHOICES = "only choices"
    """The user selected no choice, or there was none, and the client accepts no other text."""
    NOBODY = "nobody there"
    STOP = "stop"
    """The user stopped the turn."""


class UserAnswer(Record):
    """The answer of the user."""

    replied: Replied
    text: str = ""
    """For ANSWERED: the selected choice, or the text of the user."""


class AskUserTool:
    """Asks the user."""

    kind = OPTIONAL_TOOLS["ask_user"]

    def __init__(self, ask: Callable[[UserQuestion], UserAnswer | None] | None = None) -> None:
        """Store `ask`, which asks the user a question and returns `None` if no user is present.

        If `ask` is `None`, no user is ever present.
        """
        self._ask = ask
        self.spec = ToolSpec(
            name=self.kind.name,
            description=(
                "Ask the user a question, if their wish decides and you cannot find it out. Give choices if there are few; "
                "the user may also answer in other words. Never ask for passwords or keys. The user may be absent."
            ),
            parameters={
                "properties": {
                    "question": {"type": "string", "minLength": 1, "maxLength": MOST_QUESTION_CHARACTERS},
                    "choices": {
                        "type": "array",
                        "maxItems": MOST_CHOICES,
                        "items": {"type": "string", "minLength": 1, "maxLength": MOST_CHOICE_CHARACTERS},
                    },
                },
                "required": ["question"],
            },
        )

    def prepare(self, call: ToolCall, arguments: Arguments) -> Action:
        """Return the action with the question and its choices. Raises ToolError for blank text and equal choices."""
        question = UserQuestion(question=text(arguments, "question"), choices=_choices(arguments))
        if not question.question.strip() or not all(map(str.strip, question.choices)):
            raise ToolError("The question or a choice holds nothing but blanks.")
        visible_choices = [
            visible_line(choice, MOST_CHOICE_CHARACTERS).strip().casefold() for choice in question.choices
        ]
        if len(set(visible_choices)) < len(visible_choices):
            raise ToolError("Two choices look the same.")
        numbered_choices = (
            f"{number}. {visible_line(choice, 1_000)}" for number, choice in enumerate(question.choices, 1)
        )
        return Action(
            call=call,
            tool=self.spec.name,
            arguments=arguments,
            facets=(ToolUse(tool=self.spec.name, stays_here=True),),
            summary=visible_line(question.question, SUMMARY_CHARACTERS),
            preview="\n".join((visible(question.question), *numbered_choices)),
            request=question,
            described=self.kind,
        )

    def run(self, action: Action, effects: Effects) -> ToolOutput:  # noqa: ARG002 - as every tool has it
        """Ask the user, and return the answer. Raises KeyboardInterrupt if the user stops the turn at the question."""
        if not isinstance(action.request, UserQuestion):
            raise TypeError(f"the action was not prepared by {self.spec.name}")
        reply = None if self._ask is None else self._ask(action.request)
        answer = reply or UserAnswer(replied=Replied.NOBODY)
        match answer.replied:
            case Replied.ANSWERED:
                return ToolOutput(content=f"The person answered: {answer.text}")
            case Replied.NO_ANSWER:
                return ToolOutput(content=NO_ANSWER)
            case Replied.ONLY_CHOICES:
                return ToolOutput(content=ONLY_CHOICES)
            case Replied.NOBODY:
                return ToolOutput(content=NOBODY_THERE, status=ResultStatus.FAILED)
            case Replied.STOP:
                raise KeyboardInterrupt


def _choices(arguments: Arguments) -> tuple[str, ...]:
    values = arguments.get("choices")
    return tuple(choice for choice in values if isinstance(choice, str)) if isinstance(values, list) else ()
