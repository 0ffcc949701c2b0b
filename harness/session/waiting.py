"""Questions that wait for the user at another terminal: a hook asks, and `harness approve` answers.

Each question is a folder `approve/ID` in the state folder. It has the file `question`, which the asking hook keeps locked
while it waits, and the file `answer`, which the first process that answers creates.

INVARIANT: only a yes to exactly this question, within its time, counts as a yes. An answer names the question's ID and the
digest of everything shown. Only the first process that creates the file `answer` decides; when the time is over, the hook
itself creates it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from harness.actions import JsonValue
from harness.digest import digest_of
from harness.gate.approval import Approval, nobody
from harness.grant_pattern import GrantScope, pattern_fields, pattern_from
from harness.log.vocabulary import Answer
from harness.record import Record, replace
from harness.safe_files import NEW_FILE, make_private, open_private, read_small, remove_if_there, write_new, write_whole

if TYPE_CHECKING:
    from harness.policy.grant_offers import Offer
    from harness.session.asked_call import AskedCall
    from harness.session.question_file import WaitingQuestion

WAITS_SECONDS = 300.0
"""Seconds that a question waits: half of an agent's wait for its hook."""
UNHEARD_SECONDS = 60.0
"""Seconds that a question waits for `harness approve` to begin, if a person seems to be there."""
LOOK_SECONDS = 0.1
"""Seconds between a hook's checks for its answer."""
MOST_BYTES = 4_000_000
"""Maximum size of a question file, in bytes."""
MOST_ANSWER_BYTES = 200_000
MOST_WORDS = 4_000
"""Maximum characters of the user's words in an answer."""
OLD_SECONDS = 3600.0
"""Age in seconds after which leftovers of a killed hook are deleted."""

_WAY = "the person can start `harness approve` in another terminal, and then have you try again"
NOBODY_LISTENS = f"nobody is there to ask: {_WAY}"
NOBODY_CAME = f"nobody answered within a minute: {_WAY}"
NOT_YET = "nobody has started `harness approve` yet"
TOO_LARGE = "the call is too large to be shown in another terminal"
IN_TIME = "nobody answered in time"
LEFT = f"`harness approve` ended without an answer: {_WAY}"
NO_ANSWER = "the answer file is invalid"
NO_PROGRAMS = "the walls that hold a granted program are those of our own commands alone"

_QUESTION, _ANSWER, _LISTENING = "question", "answer", "listening"
_ANSWERS = (Answer.YES, Answer.NO, Answer.STOP, Answer.NOBODY)


class Waiting(Record):
    """A question in the list."""

    id: str
    sha256: str
    question: WaitingQuestion | None
    problem: str = ""
    """Reason why the question cannot be shown. Empty if it can."""


class WaitingList:
    """The questions that wait in one folder."""

    def __init__(
        self,
        folder: str,
        *,
        seconds: float = WAITS_SECONDS,
        unheard_seconds: float | None = None,
        clock_stopped: Callable[[], AbstractContextManager[object]] = nullcontext,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Keep the folder, which need not exist yet, and the seconds that a question waits.

        `unheard_seconds` are those that it waits for a process to listen; `None` if nobody would start one.
        `clock_stopped` pauses the time limit on the hook's own work while the user reads.
        """
        self._folder = folder
        self._seconds = seconds
        self._unheard_seconds = unheard_seconds
        self._clock_stopped = clock_stopped
        self._monotonic = monotonic
        self._sleep = sleep

    # Methods for a hook

    def ask(self, asked_call: AskedCall) -> Approval:
        """Ask the listening process and return its answer, or NOBODY if none listens in time. Raises OSError."""
        question = self.put(replace(asked_call, offer=lambda: without_programs(asked_call.offer())))
        if isinstance(question, str):
            return nobody(question, may_retry=question is NOT_YET)
        with self._clock_stopped():
            try:
                while (approval := question.look()) is None:
                    self._sleep(LOOK_SECONDS)
                return approval
            finally:
                question.withdraw()

    def put(self, asked_call: AskedCall) -> ListedQuestion | str:
        """Add a question to the list and return it, or a reason if no process listens or it is too large. Raises OSError."""
        unheard_seconds = 0.0 if self.is_heard() else self._unheard_seconds
        if unheard_seconds is None:
            return NOBODY_LISTENS
        if not unheard_seconds and not self.is_heard():
            return NOT_YET
        offer = asked_call.offer()
        data = self._packed(asked_call, offer)
        if len(data) > MOST_BYTES:
            return TOO_LARGE
        make_private(self._folder)
        return ListedQuestion(
            self._folder,
            data,
            offer,
            self._monotonic() + self._seconds,
            self.is_heard,
            self._monotonic,
            unheard_end=self._monotonic() + unheard_seconds,
        )

    def is_heard(self) -> bool:
        """Return whether a `harness approve` process is listening."""
        try:
            descriptor = open_private(os.path.join(self._folder, _LISTENING), os.O_RDWR)
        except OSError:
            return False
        try:
            return not _locks(descriptor, fcntl.LOCK_EX)
        finally:
            os.close(descriptor)

    def _packed(self, asked_call: AskedCall, offer: Offer | str) -> bytes:
        from harness.session.question_file import WaitingQuestion, packed

        now = time.time()
        call = asked_call.action.call
        return packed(
            WaitingQuestion(
                agent=asked_call.agent,
                session=asked_call.session,
                workspace=asked_call.workspace,
                confinement=asked_call.confinement,
                level=asked_call.level,
                writes=asked_call.writes,
                asked=now,
                until=now + self._seconds,
                # Some agents give no call IDs. An empty ID would mark it as a question of harness itself.
                action=replace(asked_call.action, call=replace(call, id=call.id or "call")),
                verdict=asked_call.verdict,
                offer=offer,
            )
        )

    # Methods for `harness approve`

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen for the duration of the block: hooks add their questions meanwhile. Raises OSError."""
        make_private(self._folder)
        descriptor = open_private(os.path.join(self._folder, _LISTENING), os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def all(self) -> list[Waiting]:
        """Return the waiting questions: first those that cannot be shown, then the others, oldest first."""
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return []
        questions = [self._question_named(name) for name in names if name != _LISTENING]
        return sorted(
            (waiting for waiting in questions if waiting is not None),
            key=lambda waiting: waiting.question.asked if waiting.question else 0,
        )

    def waits(self, identity: str) -> bool:
        """Return whether a question still waits for an answer."""
        place = os.path.join(self._folder, identity)
        return not os.path.lexists(os.path.join(place, _ANSWER)) and self._is_asked(place)

    def is_answered(self, identity: str) -> bool:
        """Return whether a question in the list has an answer."""
        return os.path.lexists(os.path.join(self._folder, identity, _ANSWER))

    def answer(self, waiting: Waiting, approval: Approval) -> bool:
        """Answer a question. Return whether the answer was the first one and in time. Raises OSError."""
        fields: dict[str, JsonValue] = {
            "id": waiting.id,
            "sha256": waiting.sha256,
            "answer": approval.answer.value,
            "words": approval.words,
            "scope": approval.scope.value if approval.scope else None,
            "days": approval.days,
            "patterns": [dict(pattern_fields(pattern)) for pattern in approval.patterns],
        }
        draft = os.path.join(self._folder, f".{os.urandom(8).hex()}")
        try:
            write_new(draft, json.dumps(fields).encode())
            os.link(draft, os.path.join(self._folder, waiting.id, _ANSWER))
        except (FileExistsError, FileNotFoundError):
            return False
        finally:
            remove_if_there(draft)
        return True

    def _question_named(self, name: str) -> Waiting | None:
        """Return the waiting question in the folder `name`, or `None`. Remove an abandoned folder."""
        from harness.session.question_file import QuestionError, unpacked

        place = os.path.join(self._folder, name)
        if name.startswith("."):
            self._clear_up(place)
            return None
        if not self._is_asked(place):
            _remove(place, os.path.join(self._folder, f".{name}"))
            return None
        if self.is_answered(name):
            return None
        data = read_small(os.path.join(place, _QUESTION), MOST_BYTES)
        if data is None:
            return None  # it was withdrawn just now
        try:
            return Waiting(id=name, sha256=digest_of(data), question=unpacked(data))
        except QuestionError as error:
            return Waiting(id=name, sha256=digest_of(data), question=None, problem=str(error))

    def _is_asked(self, place: str) -> bool:
        """Return whether the asking hook is still running, that is, whether its question is locked."""
        try:
            descriptor = open_private(os.path.join(place, _QUESTION), os.O_RDONLY)
        except OSError:
            return False
        try:
            return not _locks(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def _clear_up(self, place: str) -> None:
        try:
            is_old = os.lstat(place).st_mtime < time.time() - OLD_SECONDS
        except OSError:
            return
        if is_old:
            remove_if_there(place)
            _remove(place, place)


class ListedQuestion:
    """A question that is in the list until it is withdrawn."""

    def __init__(
        self,
        folder: str,
        question: bytes,
        offer: Offer | str,
        end: float,
        is_heard: Callable[[], bool],
        monotonic: Callable[[], float],
        *,
        unheard_end: float,
    ) -> None:
        """Add the question to the list, to be answered before `end` (monotonic seconds). Raises OSError.

        It waits for a process to listen until `unheard_end`.
        """
        self._question = question
        self._offer = offer
        self._end = end
        self._is_heard = is_heard
        self._monotonic = monotonic
        self._unheard_end = unheard_end
        self._was_heard = is_heard()
        name = os.urandom(8).hex()
        self._draft_place, self._place = os.path.join(folder, f".{name}"), os.path.join(folder, name)
        os.mkdir(self._draft_place, 0o700)
        self._descriptor = os.open(os.path.join(self._draft_place, _QUESTION), NEW_FILE, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            write_whole(self._descriptor, question)
            os.rename(self._draft_place, self._place)
        except BaseException:
            self.withdraw()
            raise

    def look(self) -> Approval | None:
        """Return the answer, or NOBODY if none can come any more, or `None` while the question is open."""
        if os.path.lexists(os.path.join(self._place, _ANSWER)):
            return self._take_answer("")
        if self._monotonic() >= self._end:
            return self._take_answer(IN_TIME)
        if self._is_heard():
            self._was_heard = True
        elif self._was_heard:
            return self._take_answer(LEFT)
        elif self._monotonic() >= self._unheard_end:
            return self._take_answer(NOBODY_CAME)
        return None

    def withdraw(self) -> None:
        """Remove the question from the list. May be called again."""
        if self._descriptor >= 0:
            _remove(self._place, self._draft_place)
            os.close(self._descriptor)
            self._descriptor = -1

    def _take_answer(self, reason: str) -> Approval:
        """Return the answer, or NOBODY with `reason` if there is none. Later answers are impossible after this."""
        path = os.path.join(self._place, _ANSWER)
        try:
            os.close(os.open(path, NEW_FILE, 0o600))
        except FileExistsError:
            data = read_small(path, MOST_ANSWER_BYTES)
        else:
            return nobody(reason, may_retry=reason in (LEFT, NOBODY_CAME))
        try:
            return _approval_from(json.loads(data or b""), os.path.basename(self._place), self._question, self._offer)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return nobody(NO_ANSWER)


def _locks(descriptor: int, kind: int) -> bool:
    """Try to take a lock and return whether that succeeded. Closing the descriptor releases it."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _remove(place: str, away: str) -> None:
    """Rename the folder of a question from `place` to `away`, so that it leaves the list at once, and remove it."""
    try:
        os.rename(place, away)
    except OSError:
        pass  # another process renamed it, or it never existed
    for name in (_ANSWER, _QUESTION):
        remove_if_there(os.path.join(away, name))
    try:
        os.rmdir(away)
    except OSError:
        pass


def without_programs(offer: Offer | str) -> Offer | str:
    """Remove grants for a program with any words from the offer, for the reason in NO_PROGRAMS."""
    if isinstance(offer, str):
        return offer
    choices = tuple(choice for choice in offer.choices if not any(pattern.program for pattern in choice.patterns))
    if len(choices) == len(offer.choices):
        return offer
    return replace(offer, choices=choices, no_program=NO_PROGRAMS) if choices else NO_PROGRAMS


def _approval_from(fields: Mapping[str, JsonValue], identity: str, question: bytes, offer: Offer | str) -> Approval:
    """Return the answer in a file. Raises ValueError, TypeError or KeyError if it is not a valid answer to this question."""
    answer, words, days = Answer(fields["answer"]), fields["words"], fields["days"]
    if (fields["id"], fields["sha256"]) != (identity, digest_of(question)) or answer not in _ANSWERS:
        raise ValueError("an answer to something else")
    if not isinstance(words, str) or len(words) > MOST_WORDS or not (days is None or isinstance(days, int)):
        raise ValueError("words are a text, and days a number")
    if answer is Answer.NOBODY:
        return nobody(words or LEFT)
    pattern_list = fields["patterns"]
    if not isinstance(pattern_list, list) or not all(isinstance(item, dict) for item in pattern_list):
        raise ValueError("patterns: must be a list of objects")
    patterns = tuple(pattern_from(item) for item in pattern_list if isinstance(item, dict))
    scope = None if fields["scope"] is None else GrantScope(fields["scope"])
    offered = () if isinstance(offer, str) else offer.choices
    choice = next((item for item in offered if item.patterns == patterns), None)
    if (scope is not None or patterns or days is not None) and (choice is None or scope is None):
        raise ValueError("the answer grants something that was not offered")
    return Approval(answer=answer, by="person", words=words, scope=scope, days=days, patterns=patterns)
