"""Questions that wait for a person at another terminal, between one who asks and one who listens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from judged_world import hostile, made_with_secrets
from question_scene import Asked, asked, command
from rows import all_rows

from harness import __version__
from harness.actions import ToolBounds, ToolUse
from harness.app.policy.judged_call import call_from_outside
from harness.files.workspace import Workspace
from harness.gate.approval import Approval
from harness.grant_pattern import GrantScope
from harness.log.vocabulary import Answer
from harness.policy.destruction import destroys
from harness.policy.grant_offers import Offer
from harness.policy.loader import parse_policy
from harness.policy.verdict import evaluate
from harness.record import replace
from harness.session.asked_call import AskedCall
from harness.session.question_file import QuestionError, WaitingQuestion, packed, unpacked
from harness.session.waiting import (
    IN_TIME,
    LEFT,
    LOOK_SECONDS,
    NO_ANSWER,
    NO_PROGRAMS,
    NOBODY_CAME,
    NOBODY_LISTENS,
    NOT_YET,
    Waiting,
    WaitingList,
)
from harness.terminal.question import Question, question_rows
from harness.terminal.question_help import facet_rows, fact_rows
from harness.text.visible import visible

YES = Approval(answer=Answer.YES, by="person")
NO = Approval(answer=Answer.NO, by="person", words="use the other branch")
SECONDS = 10.0


class Played:
    """One who asks, and one who listens and answers when the one who asks waits; the time is played."""

    def __init__(self, folder: Path, *, about: Asked | None = None) -> None:
        self.folder = folder
        (folder / "w").mkdir()
        self.about = about or command(str(folder / "w"), "touch made")
        self.listener = WaitingList(str(folder / "approve"))
        self.play: Callable[[Waiting], None] = lambda _: None
        self.play_next: Callable[[], None] | None = None
        self.now = 0.0
        self.waited = 0
        self.seen: Waiting | None = None

    def ask(self, unheard_seconds: float | None = None) -> Approval:
        """Ask, and return what came of it."""
        list_of_hook = WaitingList(
            str(self.folder / "approve"),
            seconds=SECONDS,
            unheard_seconds=unheard_seconds,
            monotonic=lambda: self.now,
            sleep=self._pass_time,
        )
        about = self.about
        return list_of_hook.ask(
            AskedCall(
                agent="Codex CLI",
                session="S",
                workspace=str(self.folder / "w"),
                confinement="kernel",
                level="kernel",
                writes=(".",),
                action=about.action,
                verdict=about.verdict,
                offer=lambda: about.offer(about.action, about.verdict),
            )
        )

    def listen(self, play: Callable[[Waiting], None]) -> Approval:
        """Ask while somebody listens, who does `play` once the question waits."""
        self.play = play
        with self.listener.listening():
            return self.ask()

    def left(self) -> list[str]:
        """Return what is left in the folder besides the file of those who listen."""
        return sorted(set(os.listdir(self.folder / "approve")) - {"listening"})

    def write_answer(self, waiting: Waiting, **changed: object) -> None:
        """Make an answer by hand, whole and well formed but for what is changed."""
        fields = {
            "id": waiting.id, "sha256": waiting.sha256, "answer": "yes", "words": "", "scope": None, "days": None,
            "patterns": [], **changed,
        }  # fmt: skip
        (self.folder / "approve" / waiting.id / "answer").write_text(json.dumps(fields))

    def _pass_time(self, seconds: float) -> None:
        self.waited += 1
        if self.play_next is not None:
            self.play_next()
        if self.seen is None:
            (self.seen,) = self.listener.all()
            self.play(self.seen)
        self.now += seconds


def test_hook_does_not_wait_without_a_listener(tmp_path: Path) -> None:
    played = Played(tmp_path)
    assert played.ask() == Approval(answer=Answer.NOBODY, by="nobody", words=NOBODY_LISTENS)
    assert (played.waited, (tmp_path / "approve").exists()) == (0, False)
    with played.listener.listening():
        pass
    assert (played.ask().words, played.left()) == (NOBODY_LISTENS, [])


def test_question_waits_a_while_for_a_listener_if_a_person_is_there(tmp_path: Path) -> None:
    played = Played(tmp_path)
    assert played.ask(2.0) == Approval(answer=Answer.NOBODY, by="nobody", words=NOBODY_CAME, may_retry=True)
    assert played.now == pytest.approx(2.0, abs=LOOK_SECONDS)
    assert played.left() == []
    assert played.ask(0.0) == Approval(answer=Answer.NOBODY, by="nobody", words=NOT_YET, may_retry=True)


def test_listener_that_comes_later_answers_in_the_usual_time(tmp_path: Path) -> None:
    played, going = Played(tmp_path), ExitStack()

    def come(waiting: Waiting) -> None:
        going.enter_context(played.listener.listening())
        played.now = SECONDS - 1
        played.listener.answer(waiting, YES)

    played.play = come
    with going:
        assert played.ask(2.0) == YES


def test_question_ends_when_a_listener_that_came_later_leaves(tmp_path: Path) -> None:
    played = Played(tmp_path)
    coming = ExitStack()

    def come(waiting: Waiting) -> None:
        coming.enter_context(played.listener.listening())
        played.play_next = coming.close

    played.play = come
    assert played.ask(2.0) == Approval(answer=Answer.NOBODY, by="nobody", words=LEFT, may_retry=True)


@all_rows("given", [YES, NO, Approval(answer=Answer.STOP, by="person")], ids=lambda given: given.answer.value)
def test_an_answer_arrives_as_it_was_given(given: Approval, tmp_path: Path) -> None:
    played = Played(tmp_path)

    def answer(waiting: Waiting) -> None:
        assert played.listener.waits(waiting.id)
        assert played.listener.answer(waiting, given)
        assert not played.listener.waits(waiting.id)
        assert not played.listener.answer(waiting, YES)  # the first one counts
        assert played.listener.all() == []

    assert played.listen(answer) == given
    assert played.left() == []


Forge = Callable[[Played, Waiting], None]
FORGED: dict[str, Forge] = {
    "another digest": lambda played, waiting: played.write_answer(waiting, sha256="0" * 64),
    "another question": lambda played, waiting: played.write_answer(waiting, id="0" * 16),
    "no such answer": lambda played, waiting: played.write_answer(waiting, answer="sure"),
    "an edit": lambda played, waiting: played.write_answer(waiting, answer="edit"),
    "a halt": lambda played, waiting: played.write_answer(waiting, answer="halt"),
    "words that are none": lambda played, waiting: played.write_answer(waiting, words=1),
    "a grant of nothing": lambda played, waiting: played.write_answer(waiting, scope="session"),
    "days of nothing": lambda played, waiting: played.write_answer(waiting, days=7),
    "a grant that was not offered": lambda played, waiting: played.write_answer(
        waiting,
        scope="session",
        patterns=[
            {"tools": ["bash"], "argv": ["rm"], "path": "", "access": [], "write": [], "network": True, "folder": "/"}
        ],
    ),
    "a list": lambda played, waiting: _text(played, waiting, "[]"),
    "half of one": lambda played, waiting: _text(played, waiting, '{"id": "'),
    "nothing": lambda played, waiting: _text(played, waiting, ""),
    "a folder": lambda played, waiting: (played.folder / "approve" / waiting.id / "answer").mkdir(),
}


def _text(played: Played, waiting: Waiting, text: str) -> None:
    (played.folder / "approve" / waiting.id / "answer").write_text(text)


@all_rows("forge", FORGED)
def test_invalid_answer_is_a_refusal(forge: Forge, tmp_path: Path) -> None:
    played = Played(tmp_path)
    came = played.listen(lambda waiting: forge(played, waiting))
    assert (came.answer, came.by, came.words) == (Answer.NOBODY, "nobody", NO_ANSWER)


def test_a_question_is_refused_when_its_time_is_over_and_no_answer_counts_then(tmp_path: Path) -> None:
    played = Played(tmp_path)

    def wait(waiting: Waiting) -> None:
        played.now += SECONDS

    assert played.listen(wait) == Approval(answer=Answer.NOBODY, by="nobody", words=IN_TIME)
    assert played.seen is not None
    assert not played.listener.answer(played.seen, YES)
    assert played.left() == []


def test_an_answer_that_was_there_before_the_time_was_looked_at_counts(tmp_path: Path) -> None:
    played = Played(tmp_path)

    def wait(waiting: Waiting) -> None:
        assert played.listener.answer(waiting, YES)
        played.now += SECONDS

    assert played.listen(wait) == YES


@all_rows("others,why", [(False, LEFT), (True, IN_TIME)], ids=lambda row: f"others stay: {row[0]}")
def test_a_question_is_refused_when_the_last_who_listened_is_gone(others: bool, why: str, tmp_path: Path) -> None:
    played, going = Played(tmp_path), ExitStack()
    going.enter_context(WaitingList(str(tmp_path / "approve")).listening())
    with played.listener.listening() if others else nullcontext():
        played.play = lambda _: going.close()
        assert played.ask() == Approval(answer=Answer.NOBODY, by="nobody", words=why, may_retry=why is LEFT)


def test_a_grant_of_exactly_this_comes_with_a_yes_and_none_of_a_program_is_offered(tmp_path: Path) -> None:
    played = Played(tmp_path)
    offered = played.about.offer(played.about.action, played.about.verdict)
    assert isinstance(offered, Offer)
    assert any(one.program for choice in offered.choices for one in choice.patterns)

    def grant(waiting: Waiting) -> None:
        assert waiting.question is not None
        assert isinstance(waiting.question.offer, Offer)
        (choice,) = waiting.question.offer.choices
        assert (choice, waiting.question.offer.no_program) == (offered.choices[0], NO_PROGRAMS)
        yes = replace(YES, scope=GrantScope.WORKSPACE, days=7, patterns=choice.patterns)
        assert played.listener.answer(waiting, yes)

    came = played.listen(grant)
    assert (came.answer, came.scope, came.days) == (Answer.YES, GrantScope.WORKSPACE, 7)
    assert came.patterns == offered.choices[0].patterns


def test_a_program_is_not_granted_though_an_answer_says_so(tmp_path: Path) -> None:
    played = Played(tmp_path)
    offered = played.about.offer(played.about.action, played.about.verdict)
    assert isinstance(offered, Offer)
    program = next(choice for choice in offered.choices if choice.patterns[0].program)
    yes = replace(YES, scope=GrantScope.SESSION, patterns=program.patterns)
    assert played.listen(lambda waiting: _passed(played.listener.answer(waiting, yes))).words == NO_ANSWER


def _passed(answered: bool) -> None:
    assert answered


def test_leftover_of_a_killed_hook_is_not_a_question(tmp_path: Path) -> None:
    played = Played(tmp_path)

    def kill(waiting: Waiting) -> None:
        """What is left where the hook has no lock any more: a copy of its folder."""
        place = tmp_path / "approve" / waiting.id
        (tmp_path / "approve" / "left").mkdir()
        (tmp_path / "approve" / "left" / "question").write_bytes((place / "question").read_bytes())
        (tmp_path / "approve" / "left" / "question").chmod(0o600)
        assert not played.listener.waits("left")
        assert [one.id for one in played.listener.all()] == [waiting.id]
        assert not (tmp_path / "approve" / "left").exists()

    assert played.listen(kill).words == IN_TIME


def test_a_question_and_its_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    played = Played(tmp_path)
    modes: list[int] = []

    def look(waiting: Waiting) -> None:
        place = tmp_path / "approve" / waiting.id
        modes.extend(one.stat().st_mode & 0o777 for one in (tmp_path / "approve", place, place / "question"))
        assert played.listener.answer(waiting, NO)

    played.listen(look)
    assert modes == [0o700, 0o700, 0o600]


def test_hook_time_is_paused_while_a_person_reads(tmp_path: Path) -> None:
    """Only then: where nobody listens it is not touched."""
    played, stood = Played(tmp_path), list[str]()

    @contextmanager
    def stopped() -> Iterator[None]:
        stood.append("begins")
        yield
        stood.append("ends")

    hook = WaitingList(str(tmp_path / "approve"), seconds=0.0, clock_stopped=stopped)
    about = played.about
    call = AskedCall(
        agent="A", session="S", workspace="/w", confinement="", level="", writes=(),
        action=about.action, verdict=about.verdict, offer=lambda: "nothing",
    )  # fmt: skip
    assert (hook.ask(call).words, stood) == (NOBODY_LISTENS, [])
    with played.listener.listening():
        assert (hook.ask(call).words, stood) == (IN_TIME, ["begins", "ends"])


# -- the file of a question


def _rows(question: Question) -> Sequence[object]:
    return (
        *question_rows(question, 100),
        *fact_rows(question, 100),
        *facet_rows(question.verdict, 100),
        question.title(100),
        destroys(question.action),
    )


def _shown(about: Asked) -> None:
    """Hold what is shown of a call against what is shown of it once it was a file."""
    whole = WaitingQuestion(
        agent="A", session="S", workspace="/w", confinement="kernel", level="kernel", writes=(), asked=0.0, until=1.0,
        action=about.action, verdict=about.verdict, offer="nothing",
    )  # fmt: skip
    came = unpacked(packed(whole))
    before, after = (
        Question(action=one.action, verdict=one.verdict, confinement="kernel", destroys=destroys(one.action))
        for one in (whole, came)
    )
    assert _rows(before) == _rows(after)


def test_a_question_out_of_a_file_shows_what_the_hostile_table_shows(tmp_path: Path) -> None:
    world = made_with_secrets(tmp_path)
    for row in hostile():
        action, policy = world.action(row.command), world.policies[row.policy]
        _shown(Asked(action, evaluate(policy, action), policy))


def test_a_question_out_of_a_file_shows_what_is_known_of_a_tool_from_outside(tmp_path: Path) -> None:
    workspace, held = Workspace(str(tmp_path)), parse_policy(b"version = 1", "p.toml")
    for bounds in (None, ToolBounds(), ToolBounds(write=("build/",), network=True, is_held=False)):
        use = ToolUse(tool="mcp__s__do", says_reads=True, says_destroys=True, bounds=bounds)
        action = call_from_outside(use, '{"path": "src/a.py"}', workspace)
        _shown(Asked(action, evaluate(held, action), held))


@all_rows(
    "tool,arguments",
    [
        ("bash", {"command": "echo \x1b[2J\u202e && touch 'a\nb'", "timeout_seconds": 7}),
        ("bash", {"command": "rm -rf src; git push --force"}),
        ("bash", {"command": "x", "unconfined": True, "justification": "\x1b]0;title\x07"}),
        ("write_file", {"path": "a/\x1b[1mb", "content": "one\n\x1b[31mtwo\ud83d\ude00\n"}),
    ],
)
def test_hostile_text_is_shown_the_same_and_safe(tool: str, arguments: dict[str, object], tmp_path: Path) -> None:
    about = asked(str(tmp_path), tool, arguments)
    _shown(about)
    question = Question(
        action=about.action, verdict=about.verdict, confinement="kernel", destroys=destroys(about.action)
    )
    for row in question_rows(question, 60):
        assert visible(row.text) == row.text


@all_rows(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"harness": "0.0.0", "records": []}',
        *(
            b'{"harness": "%s", "records": %s}' % (__version__.encode(), records)
            for records in (
                b"[]",
                b"1",
                b'[{"kind": "Popen", "fields": {}}]',
                b'[{"kind": "Origin", "fields": {"file": "x"}}]',
                b'[{"kind": "Origin", "fields": {"file": "x", "line": 1}}]',
                b'[{"kind": "Origin", "fields": {"file": {"record": 5}, "line": 1}}]',
                b'[{"kind": "Origin", "fields": {"file": {"word": ["Popen", "x"]}, "line": 1}}]',
                b'[{"kind": "Origin", "fields": {"file": {"a": 1}, "line": 1}}]',
            )
        ),
    ],
)
def test_a_file_that_holds_no_question_is_refused(data: bytes) -> None:
    with pytest.raises(QuestionError):
        unpacked(data)
