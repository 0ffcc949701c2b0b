"""Ask the client a question of the model to the user. It is sent as a request for permission, the only kind available.

INVARIANT: an answer is one of the choices of this very request, and it permits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from acp.schema import PermissionOption, RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate
from pydantic import ValidationError

from harness.actions import JsonValue
from harness.plugins.acp.client_wire import ClientAnswer, OpenQuestion
from harness.plugins.acp.session_updates import encodable_text, text_content
from harness.record import replace
from harness.text.visible import visible_line
from harness.tools.ask_user import MOST_CHOICE_CHARACTERS, Replied, UserAnswer, UserQuestion

CHOICE, NONE, STOP = "choice-", "none", "stop"
TITLE = "The model asks you"
_OTHERS = {NONE: "None of these", STOP: "Stop the turn"}


def answer_of_client(
    question: UserQuestion,
    ask: Callable[[Mapping[str, JsonValue]], OpenQuestion],
    *,
    call: str,
    mask: Callable[[str], str],
) -> UserAnswer:
    """Return the user's answer. A question without choices is not asked, since the client has no text field for it.

    `ask` adds the session to the parameters and sends the request. `call` is the client's name of the call that asks.
    `mask` masks secrets.
    """
    if not question.choices:
        return UserAnswer(replied=Replied.ONLY_CHOICES)
    masked = replace(question, question=mask(question.question), choices=tuple(map(mask, question.choices)))
    choices = (f"{number}. {choice}" for number, choice in enumerate(masked.choices, 1))
    tool_call = ToolCallUpdate(
        tool_call_id=call,
        title=TITLE,
        kind="other",
        status="in_progress",
        content=[text_content("\n".join((masked.question, *choices)))],
    )
    request = RequestPermissionRequest(session_id="", tool_call=tool_call, options=list(_options(masked)))
    answer = ask(request.model_dump(mode="json", by_alias=True, exclude_none=True)).answer()
    return _answer(answer or ClientAnswer(withdrawn=True), question)


def _options(question: UserQuestion) -> Iterator[PermissionOption]:
    for number, choice in enumerate(question.choices, 1):
        name = encodable_text(visible_line(choice, MOST_CHOICE_CHARACTERS))
        yield PermissionOption(option_id=f"{CHOICE}{number}", name=name, kind="allow_once")
    for identity, name in _OTHERS.items():
        yield PermissionOption(option_id=identity, name=name, kind="reject_once")


def _answer(answer: ClientAnswer, question: UserQuestion) -> UserAnswer:
    """Convert an answer of the client to a user's answer. Never raises: a client may send anything."""
    if answer.withdrawn:
        return UserAnswer(replied=Replied.STOP)
    if answer.problem:
        return UserAnswer(replied=Replied.NOBODY)
    try:
        outcome = RequestPermissionResponse.model_validate(answer.result).outcome
    except ValidationError:
        return UserAnswer(replied=Replied.NO_ANSWER)
    if outcome.outcome == "cancelled" or outcome.option_id == STOP:
        return UserAnswer(replied=Replied.STOP)
    if outcome.option_id == NONE:
        return UserAnswer(replied=Replied.ONLY_CHOICES)
    chosen = {f"{CHOICE}{number}": choice for number, choice in enumerate(question.choices, 1)}.get(outcome.option_id)
    if chosen is None:
        return UserAnswer(replied=Replied.NO_ANSWER)
    return UserAnswer(replied=Replied.ANSWERED, text=chosen)
