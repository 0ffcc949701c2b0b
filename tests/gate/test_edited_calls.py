"""Calls that are changed at the question: both versions are in the log, and the one that runs was judged like any other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_scene import DONE, Scene, answering, call, reply
from rows import all_rows

from harness.actions import Action
from harness.errors import GateError
from harness.gate.approval import Approval, ScriptedAnswers
from harness.gate.gate import MAX_EDITS
from harness.limits import Limits
from harness.log.order import LogRecord
from harness.log.reader import read_log
from harness.log.transcript import rebuilt
from harness.log.verify import verify
from harness.log.vocabulary import Answer
from harness.messages import StopReason
from harness.policy.verdict import Verdict


def edit(do: str) -> str:
    return "e: " + json.dumps({"do": do})


def new_path(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path / "log.jsonl")


path = pytest.fixture(new_path, name="path")


def records(path: str, *kinds: str) -> list[LogRecord]:
    return [record for record in read_log(path) if record["kind"] in kinds]


def rebuilt_as_lived(scene: Scene, path: str) -> bool:
    assert scene.session is not None
    return list(rebuilt(read_log(path)).messages) == list(scene.session.messages[1:])


def test_the_call_that_is_wanted_runs_and_both_are_in_the_log(path: str) -> None:
    scene = Scene(path, reply(call(1, "asked", "old")), DONE, approver=ScriptedAnswers([edit("new"), "y"]))
    assert scene.play().stop is StopReason.COMPLETED
    assert scene.ran == ["asked new"]
    assert scene.results() == ['[At the question this call was changed into: {"do": "new"}]\ndid new']
    old, new = records(path, "call_proposed")
    assert (json.loads(str(old["arguments"])), json.loads(str(new["arguments"]))) == ({"do": "old"}, {"do": "new"})
    assert (new["edited_from"], new["call"], new["id"]) == (old["call"], 2, old["id"])
    answers = [(one["call"], one["answer"], one.get("edited_to")) for one in records(path, "approval_answered")]
    assert answers == [(1, "edit", 2), (2, "yes", None)]
    ends = [(one["call"], one["status"], one["content"]) for one in records(path, "outcome")]
    assert ends == [(1, "denied", "Not run: the script put another call in its place."), (2, "ok", "did new")]
    assert verify(path).broken_line is None
    assert rebuilt_as_lived(scene, path)


def test_a_secret_among_the_words_of_a_yes_is_masked(path: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3

    def person(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.YES, by="person", words=f"with {secret}, please")

    scene = Scene(path, reply(call(1, "asked", "a")), DONE, approver=person)
    assert scene.play().stop is StopReason.COMPLETED
    assert scene.results()[0].startswith('did a\n\n[The person allowed this call, and says to you: "with ')
    assert secret not in scene.results()[0]
    assert secret not in Path(path).read_text()


def test_comment_with_an_approval_reaches_the_model_with_the_result(path: str) -> None:
    """As the person's, behind what the call says; a resumed session has them, and without words nothing is added."""
    answers = iter(("only this once", ""))

    def person(action: Action, verdict: Verdict) -> Approval:
        return Approval(answer=Answer.YES, by="person", words=next(answers))

    scene = Scene(path, reply(call(1, "asked", "a"), call(2, "asked", "b")), DONE, approver=person)
    assert scene.play().stop is StopReason.COMPLETED
    said = 'did a\n\n[The person allowed this call, and says to you: "only this once"]'
    assert scene.results() == [said, "did b"]
    assert [one["words"] for one in records(path, "approval_answered")] == ["only this once", ""]
    assert [one["content"] for one in records(path, "outcome")] == [said, "did b"]
    assert verify(path).broken_line is None
    assert rebuilt_as_lived(scene, path)


@all_rows(
    ("wanted", "answers", "status", "told"),
    [
        ('e: {"do": 1}', [], "invalid", "Error: Invalid arguments for asked: do: must be a string"),
        ("e: {", [], "invalid", "Error: The arguments of asked are not valid JSON"),
        (edit("other"), ["n: no"], "denied", 'Denied by the script: "no"'),
        (
            edit("other"),
            [edit("third"), "y"],
            "ok",
            '[At the question this call was changed into: {"do": "third"}]\ndid',
        ),
    ],
    anew={"path": new_path},
)
def test_it_is_judged_like_every_call(path: str, wanted: str, answers: list[str], status: str, told: str) -> None:
    scene = Scene(path, reply(call(1, "asked")), DONE, approver=ScriptedAnswers([wanted, *answers]))
    assert scene.play().stop is StopReason.COMPLETED
    assert records(path, "outcome")[-1]["status"] == status
    (result,) = scene.results()
    first, _, rest = result.partition("\n")
    assert first == f"[At the question this call was changed into: {wanted.removeprefix('e: ')}]"
    assert rest.startswith(told)
    assert verify(path).broken_line is None
    assert rebuilt_as_lived(scene, path)


def test_edit_is_not_an_approval(path: str) -> None:
    """It is asked about anew, and nothing runs without an answer."""
    scene = Scene(path, reply(call(1, "asked", "old")), DONE, approver=ScriptedAnswers([edit("new")]))
    scene.play()
    assert scene.ran == []


def test_an_edit_of_one_call_leaves_the_others(path: str) -> None:
    script = reply(call(1, "free", "a"), call(2, "asked", "b"), call(3, "free", "c"))
    scene = Scene(path, script, DONE, approver=ScriptedAnswers([edit("new"), "y"]))
    scene.play()
    assert scene.ran == ["free a", "asked new", "free c"]
    assert [one["call"] for one in records(path, "call_proposed")] == [1, 2, 3, 4]
    assert [record["step"] for record in records(path, "call_proposed")] == [1, 2, 3, 2]
    assert rebuilt_as_lived(scene, path)


def test_edits_without_end_stop_the_run(path: str) -> None:
    again = Approval(answer=Answer.EDIT, by="script", arguments='{"do": "again"}')
    scene = Scene(path, reply(call(1, "asked")), DONE, approver=answering(lambda: again))
    result = scene.play()
    assert (result.stop, scene.ran) == (StopReason.GATE_ERROR, [])
    assert f"more than {MAX_EDITS} times" in result.detail


@all_rows("arguments", [None, 1, b"{}"], anew={"path": new_path})
def test_edit_without_text_arguments_is_an_error(path: str, arguments: object) -> None:
    odd = Approval(answer=Answer.EDIT, by="script", arguments=arguments)  # type: ignore[arg-type]
    scene = Scene(path, reply(call(1, "asked")), DONE, approver=answering(lambda: odd))
    assert (scene.play().stop, scene.ran) == (StopReason.GATE_ERROR, [])


def test_time_that_is_over_after_an_edit_leaves_a_whole_log(path: str) -> None:
    """The call that was wanted does not run, and has an end of its own."""
    times = iter([0.0] * 30)
    asked: list[float] = []

    def slow() -> object:
        asked.append(1.0)
        return Approval(answer=Answer.EDIT, by="script", arguments='{"do": "new"}')

    scene = Scene(
        path,
        reply(call(1, "asked", "old"), call(2, "free")),
        DONE,
        approver=answering(slow),
        limits=Limits(max_seconds=5),
        monotonic=lambda: 10.0 if asked else next(times),
    )
    assert (scene.play().stop, scene.ran) == (StopReason.LIMIT, [])
    ends = [(one["call"], one["status"]) for one in records(path, "outcome")]
    assert ends == [(1, "denied"), (3, "not_run"), (2, "not_run")]
    assert rebuilt_as_lived(scene, path)


@all_rows("failing", ["a gate error", "a bug", "Ctrl-C at the second question"], anew={"path": new_path})
def test_a_fault_after_an_edit_leaves_a_conversation_that_can_be_resumed(path: str, failing: str) -> None:
    faults = {
        "a gate error": GateError("no"),
        "a bug": RuntimeError("x"),
        "Ctrl-C at the second question": KeyboardInterrupt(),
    }
    answers = iter([Approval(answer=Answer.EDIT, by="script", arguments='{"do": "new"}')])

    def asked() -> object:
        answer = next(answers, None)
        if answer is None:
            raise faults[failing]
        return answer

    scene = Scene(path, reply(call(1, "asked", "old"), call(2, "free")), DONE, approver=answering(asked))
    scene.play()
    assert scene.ran == []
    assert verify(path).broken_line is None
    assert rebuilt_as_lived(scene, path)


def test_long_arguments_of_an_edit_read_alike_after_a_way_through_the_log(path: str) -> None:
    scene = Scene(path, reply(call(1, "asked")), DONE, approver=ScriptedAnswers([edit("x" * 70_000), "n"]))
    scene.play()
    assert scene.results()[0].startswith('[At the question this call was changed into: {"do": "xxx')
    assert rebuilt_as_lived(scene, path)
