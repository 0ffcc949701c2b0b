"""Approvers, who answer when a policy says confirm, and their answers."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol

from harness.actions import Opening
from harness.declared_types import check_arguments, record_problem, type_name
from harness.errors import GateError
from harness.grant_pattern import GrantPattern, GrantScope
from harness.interrupt import LOOK_SECONDS, Interrupt
from harness.log.vocabulary import Answer
from harness.record import Record
from harness.text.visible import visible_line

if TYPE_CHECKING:
    from harness.actions import Action
    from harness.policy.verdict import Verdict


SOURCES = ("person", "client", "approver", "script", "nobody")
"""Possible sources of an answer."""
_BY_NOBODY = (Answer.NOBODY, Answer.STOP)
"""Answers that need no source."""


class Approval(Record):
    """An answer, its source, and the words given with it."""

    answer: Answer
    by: str
    """Source of the answer: `person`, `client`, `approver`, `script` or `nobody`.

    A `client` is a program that the harness serves; its user is unknown. An `approver` is an external program. A
    refusal names `person` only if a person gave it.
    """
    who: str = ""
    """Name that a client or an approver gave."""
    words: str = ""
    """The person's words with a yes or no, or the reason for NOBODY. They reach the model."""
    may_retry: bool = False
    """With NOBODY: whether someone may answer when the model makes the same call again."""
    arguments: str = ""
    """With EDIT: the arguments of the replacement call, as JSON text."""
    scope: GrantScope | None = None
    """Duration of the grant of `patterns` with YES; `None` for this call only."""
    days: int | None = None
    """With the scope WORKSPACE: duration of the grant in days. `None`: until it is revoked."""
    patterns: tuple[GrantPattern, ...] = ()
    """The granted patterns: those of one choice that `GrantsInForce.offer` returned for this call."""
    opens: tuple[Opening, ...] = ()
    """With YES to a command: what the run may use beyond the effects of the verdict, in this call only."""

    @property
    def problem(self) -> str:
        """The first field with an invalid type or value, in a sentence. Empty if all are valid."""
        if problem := record_problem(self):
            return problem
        if self.by not in SOURCES:
            return f"by must be one of {', '.join(SOURCES)}, not {self.by!r}"
        if self.by == "nobody" and self.answer not in _BY_NOBODY:
            return f"nobody cannot answer {self.answer.value}: `by` names who did"
        return "" if self.days is None or self.days > 0 else f"days must be above 0, not {self.days}"

    @property
    def whose(self) -> str:
        """The source of the answer, in words for the model."""
        return f"the {self.by} ({visible_line(self.who, 100)})" if self.who else f"the {self.by}"

    @property
    def words_with_yes(self) -> str:
        """The words that came with a yes, as the model reads them."""
        return f'{self.whose[0].upper()}{self.whose[1:]} allowed this call, and says to you: "{self.words}"'


def check_approval(approval: object) -> None:
    """Raise GateError unless `approval` is a valid Approval. Type checkers do not see every approver."""
    if not isinstance(approval, Approval):
        raise GateError(f"the approver returned {type_name(approval)}, not an Approval")
    if problem := approval.problem:
        raise GateError(f"the approver returned no valid Approval: {problem}")


def nobody(reason: str = "", *, may_retry: bool = False) -> Approval:
    """Return the approval for an absent user, with the answer NOBODY."""
    return Approval(answer=Answer.NOBODY, by="nobody", words=reason, may_retry=may_retry)


class Approver(Protocol):
    """A function that asks for an answer about one action.

    The gate recognizes only `deny_all` as unattended in advance: under `[unattended] confirm = "block"` it then halts
    before any call of the reply runs. Any other approver reports an absent user only with the answer NOBODY.

    An approver may take any time. KeyboardInterrupt counts as STOP; any other exception stops the run.
    """

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Return the answer for `action`, whose verdict is CONFIRM."""
        ...


def deny_all(action: Action, verdict: Verdict) -> Approval:  # noqa: ARG001 - the signature of an Approver
    """Answer NOBODY: the approver of unattended runs."""
    return nobody()


def stoppable(approver: Approver, interrupt: Interrupt, when: Callable[[], bool]) -> Approver:
    """Return an approver that answers STOP as soon as `interrupt` is requested, while `when` returns True.

    `approver` then runs on a thread of its own, in the context of the caller. An answer that it returns after the stop
    is dropped. `deny_all` is returned as it is, since it does not wait.
    """

    def ask(action: Action, verdict: Verdict) -> Approval:
        if not when():
            return approver(action, verdict)
        ends: list[Approval | BaseException] = []
        is_over, context = allocate_lock(), copy_context()
        is_over.acquire()

        def run() -> None:
            try:
                ends.append(context.run(approver, action, verdict))
            except BaseException as error:  # noqa: BLE001 - raised again on the thread of the gate
                ends.append(error)
            finally:
                is_over.release()

        start_new_thread(run, ())
        while not is_over.acquire(timeout=LOOK_SECONDS):
            if interrupt.requested:
                return Approval(answer=Answer.STOP, by="nobody", words="the run was stopped before an answer came")
        if isinstance(end := ends[0], BaseException):
            raise end
        return end

    return approver if approver is deny_all else ask


class ScriptedAnswers:
    """An approver that returns prepared answers in order, and NO after the last. For demos and tests."""

    def __init__(self, answers: Iterable[str]) -> None:
        """Parse the answers: `y`, `n`, `n: words for the model`, `h` (halt), or `e: arguments`.

        The arguments after `e:` are those of the replacement call, as JSON. Raises ValueError for any other answer.
        """
        check_arguments(ScriptedAnswers.__init__, locals())
        self._answers = [_parse_answer(answer) for answer in answers]
        self.asked: list[tuple[Action, Verdict]] = []

    def __call__(self, action: Action, verdict: Verdict) -> Approval:
        """Return the next answer."""
        self.asked.append((action, verdict))
        if len(self.asked) > len(self._answers):
            return Approval(answer=Answer.NO, by="script", words="no answer was prepared for this question")
        return self._answers[len(self.asked) - 1]

    @property
    def unused(self) -> int:
        """Number of answers that were never used."""
        return max(0, len(self._answers) - len(self.asked))


def _parse_answer(text: str) -> Approval:
    word, _, words = text.strip().partition(":")
    if word.strip().lower() in ("y", "yes") and not words.strip():
        return Approval(answer=Answer.YES, by="script")
    if word.strip().lower() in ("n", "no"):
        return Approval(answer=Answer.NO, by="script", words=words.strip())
    if word.strip().lower() in ("h", "halt"):
        return Approval(answer=Answer.HALT, by="script", words=words.strip())
    if word.strip().lower() == "e" and words.strip():
        return Approval(answer=Answer.EDIT, by="script", arguments=words.strip())
    raise ValueError(f"an answer is y, n, n: and words for the model, h, or e: and arguments; not {text!r}")
