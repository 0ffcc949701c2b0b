"""Ask the client about a call (`session/request_permission`), and also an outside approver if one is listening.

INVARIANT: an approval by the client must answer this very request with the ID of one of its options. Any other answer,
or none, refuses the call. A call that cannot be displayed completely is refused without a question. Only the first
answer counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from acp.schema import PermissionOption, RequestPermissionRequest, RequestPermissionResponse, ToolCallUpdate
from pydantic import ValidationError

from harness.actions import Action, Effects, JsonValue
from harness.gate.approval import Approval, nobody
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.plugins.acp.client_wire import ClientAnswer, OpenQuestion
from harness.plugins.acp.session_updates import encodable_text, kind_of, text_content, title_of
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.verdict import Verdict
from harness.process.environment import child_environment
from harness.record import replace
from harness.session.approver.standing_question import AskOutside, StandingQuestion
from harness.terminal.grant_list import explained_rows, offered_rows
from harness.terminal.question import Question, Usual, by_model, question_rows
from harness.terminal.question_help import facet_rows
from harness.terminal.row_text import Row
from harness.text.visible import visible_line

BY = "client"
"""Source of the answer in the log. It names the client, since harness does not know its user."""
ASKS = "session/request_permission"
ALLOW, REFUSE, STOP, GRANT = "allow", "refuse", "stop", "session-"
WIDTH = 100
"""Width of a question in columns."""
MOST_CHARACTERS = 1_000_000
"""Maximum length of a question. A client might display only a part of a longer one."""
LOOK_SECONDS = 0.1
"""Interval in seconds between checks for an answer of the outside approver."""
TOO_LARGE = "it cannot be shown whole to anybody: make it in smaller steps"


class AskedClient(NamedTuple):
    """The text and the options of a question."""

    text: str
    options: tuple[PermissionOption, ...]
    offer: Offer | None


class ClientApprover:
    """Asks the client of one session."""

    def __init__(
        self,
        ask: Callable[[Mapping[str, JsonValue]], OpenQuestion],
        *,
        confinement: Callable[[str, Effects], str],
        environment: Mapping[str, str],
        offer: Callable[[Action, Verdict], Offer | str],
        mask: Callable[[str], str],
        call: Callable[[], str],
        outside: AskOutside,
        client: str,
    ) -> None:
        """`ask` adds the session to the parameters and sends the request. `confinement` describes the walls of a call.

        `offer` returns the grants on offer, or a reason why there are none. `mask` masks secrets in a call's summary.
        `call` returns the client's name of the model's call in question. `outside` also asks another approver. `client`
        is the name that the client gave itself.
        """
        self._ask = ask
        self._confinement = confinement
        self._environment = environment
        self._offer = offer
        self._mask = mask
        self._call = call
        self._outside = outside
        self._client = client
        self._other_count = 0
        """Number of questions about calls of hooks, servers and helpers, which the client has no name for."""

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Ask about `action`, and return the answer."""
        asked_client = self._request(action, verdict) if action.shown_whole else None
        if asked_client is None or len(asked_client.text) > MOST_CHARACTERS:
            return nobody(TOO_LARGE)
        call = ToolCallUpdate(
            tool_call_id=self._name_of(action),
            title=encodable_text(title_of(action.tool, self._mask(action.summary))),
            kind=kind_of(action.tool),
            status="pending",
            content=[text_content(asked_client.text)],
        )
        request = RequestPermissionRequest(session_id="", tool_call=call, options=list(asked_client.options))
        fields: dict[str, JsonValue] = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        standing = self._outside(action, verdict) if by_model(action) else ""
        try:
            approval = _first(self._ask(fields), asked_client, None if isinstance(standing, str) else standing)
            return replace(approval, who=self._client) if approval.by == BY else approval
        finally:
            if not isinstance(standing, str):
                standing.withdraw()

    def _name_of(self, action: Action) -> str:
        if by_model(action) and not action.asked_by:
            return self._call()
        self._other_count += 1
        return f"question-{self._other_count}"

    def _request(self, action: Action, verdict: Verdict) -> AskedClient:
        reasons = destroys(action)
        offered = self._offer(action, verdict) if by_model(action) and not reasons else None
        offer = offered if isinstance(offered, Offer) else None
        question = self._question(action, verdict, reasons)
        text = "\n".join(
            (
                question.title(WIDTH),
                *_texts(question_rows(question, WIDTH)),
                "what decides about each part:",
                *_texts(facet_rows(verdict, WIDTH)),
                *(_granted_texts(offer) if offer else ()),
            )
        )
        return AskedClient(encodable_text(text), tuple(_options(reasons, offer)), offer)

    def _question(self, action: Action, verdict: Verdict, reasons: tuple[str, ...]) -> Question:
        """Return the question with all facts, since its reader may have no other information about the session."""
        variables = child_environment(self._environment)
        inherited = tuple(sorted(name for name in variables if variables[name] == self._environment.get(name)))
        return Question(
            action=action,
            verdict=verdict,
            confinement=action.confinement or self._confinement(action.tool, verdict.effects),
            variables=inherited,
            set_variables=len(variables) - len(inherited),
            destroys=reasons,
        )


def _texts(rows: tuple[Row, ...] | list[Row]) -> Iterator[str]:
    return (row.text.rstrip() for row in rows)


def _granted_texts(offer: Offer) -> Iterator[str]:
    yield "what may be allowed for this session:"
    yield from _texts((*offered_rows(offer, WIDTH, usual=Usual()), *explained_rows(offer, WIDTH, usual=Usual())))


def _options(reasons: tuple[str, ...], offer: Offer | None) -> Iterator[PermissionOption]:
    once = f"Allow once. THIS DESTROYS: {'; '.join(reasons)}" if reasons else "Allow once"
    yield PermissionOption(option_id=ALLOW, name=encodable_text(visible_line(once, 500)), kind="allow_once")
    for number, choice in enumerate(offer.choices if offer else (), 1):
        name = visible_line(f"Allow for this session [{number}]: {choice.name}", 200)
        yield PermissionOption(option_id=f"{GRANT}{number}", name=encodable_text(name), kind="allow_always")
    yield PermissionOption(option_id=REFUSE, name="Refuse", kind="reject_once")
    yield PermissionOption(option_id=STOP, name="Refuse and stop the turn", kind="reject_once")


def _first(question: OpenQuestion, asked_client: AskedClient, standing: StandingQuestion | None) -> Approval:
    """Return the first answer, by the client or by the outside approver."""
    while True:
        answer = question.answer(None if standing is None else LOOK_SECONDS)
        if answer is not None:
            return _approval(answer, asked_client)
        if standing is None or (approval := standing.look()) is None:
            continue
        if approval.answer is not Answer.NOBODY:
            return approval
        standing.withdraw()
        standing = None


def _approval(answer: ClientAnswer, asked_client: AskedClient) -> Approval:
    """Convert an answer of the client to an approval. Never raises: a client may send anything."""
    if answer.withdrawn:
        return Approval(answer=Answer.STOP, by=BY)
    if answer.problem:
        return nobody(visible_line(answer.problem, 500))
    try:
        outcome = RequestPermissionResponse.model_validate(answer.result).outcome
    except ValidationError:
        return Approval(answer=Answer.NO, by=BY, words="its answer makes no sense")
    if outcome.outcome == "cancelled":
        return Approval(answer=Answer.STOP, by=BY)
    chosen = outcome.option_id
    if chosen not in [option.option_id for option in asked_client.options]:
        return Approval(answer=Answer.NO, by=BY, words="its answer is none of those that were offered")
    match chosen:
        case "allow":
            return Approval(answer=Answer.YES, by=BY)
        case "stop":
            return Approval(answer=Answer.STOP, by=BY)
        case _ if chosen.startswith(GRANT) and asked_client.offer is not None:
            choice = asked_client.offer.choices[int(chosen.removeprefix(GRANT)) - 1]
            return Approval(answer=Answer.YES, by=BY, scope=GrantScope.SESSION, patterns=choice.patterns)
        case _:
            return Approval(answer=Answer.NO, by=BY)
