"""Cassettes: what a model says, recorded and replayed through the real loop, tools and gate; files that are none, refused."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from clocks import Clock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from log_scene import unsynced
from places import ROOT, SUPPORT
from rows import all_rows
from sizes import examples

from harness import ActionLog, Agent, Workspace, builtin_tools, deny_all, load_policy
from harness.errors import CutReply, ModelError, ModelFault, UsageError
from harness.messages import FinishReason, Message, ModelResponse, Role, RunResult, StopReason, ToolCall, Usage
from harness.model import Model, Retry, ToolSpec
from harness.models.cassette import (
    Header,
    MalformedError,
    RecordedExchange,
    line_of,
    read_exchange,
    read_header,
)
from harness.models.divergence import SHOWN_CHARACTERS, Divergence, Outlines, common_form
from harness.models.recorder import RecordingModel
from harness.models.replayer import ReplayingModel
from harness.redaction.redactor import Redactor

SECRET = "correct-horse-battery-9"
POLICY = """\
version = 1
name = "work"
[tools]
bash = "auto"
read_file = "auto"
write_file = "auto"
edit_file = "auto"
"""
STRICT = (
    'version = 1\nname = "strict"\n[tools]\nbash = "deny"\nread_file = "auto"\nwrite_file = "auto"\nedit_file = "auto"\n'
    '[[rule]]\nid = "pwd"\ndecision = "auto"\nargv = ["pwd"]\n'
)
"""It denies what was recorded, and still offers every tool."""
PLAIN = Redactor((), key=b"k", shapes=False)


class Saying:
    """A model that says these things, one after the other; an exception is raised."""

    name = "spoken-1"
    client = "tests 1"

    def __init__(self, *answers: ModelResponse | Exception, retries: Sequence[Retry] = ()) -> None:
        self._answers = iter(answers)
        self._retries = retries

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None],
        on_retry: Callable[[Retry], None],
        seconds: float | None = None,
    ) -> ModelResponse:
        for retry in self._retries:
            on_retry(retry)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        on_text(answer.text)
        return answer


def said(text: str = "", *calls: ToolCall, echo: str = "") -> ModelResponse:
    usage = Usage(input_tokens=10, output_tokens=2)
    return ModelResponse(text=text, tool_calls=calls, finish_reason=FinishReason.DONE, usage=usage, echo=echo)


def calling(number: int, tool: str, **arguments: object) -> ModelResponse:
    return said("", ToolCall(id=f"c{number}", name=tool, arguments=json.dumps(arguments)))


def run(
    model: Model, folder: Path, *, policy: str = POLICY, prompt: str = "go", system: str = "Be brief."
) -> RunResult:
    """Run a whole agent on `model` in `folder`, which is made if need be."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    (folder / "policy.toml").write_text(policy)
    log = ActionLog.open(str(folder / f"log-{time.monotonic_ns()}.jsonl"), sync=unsynced)
    try:
        agent = Agent(
            model=model,
            tools=builtin_tools(Workspace(str(work), str(folder), outputs=str(folder / "outputs"))),
            policy=load_policy(str(folder / "policy.toml")),
            approver=deny_all,
            log=log,
            system=system,
        )
        return agent.run(prompt)
    finally:
        log.close()


def ask(
    model: Model, *messages: Message, texts: list[str] | None = None, retries: list[Retry] | None = None
) -> ModelResponse:
    """Send one request."""
    heard, tried = [] if texts is None else texts, [] if retries is None else retries
    return model.complete(messages or (USER,), (), on_text=heard.append, on_retry=tried.append)


USER = Message(role=Role.USER, content="go")


def cassette(path: Path, *answers: ModelResponse | Exception, redactor: Redactor = PLAIN) -> Path:
    """Record a model that is asked the same thing for each of these answers."""
    recording = RecordingModel(Saying(*answers), str(path), redactor)
    for answer in answers:
        if isinstance(answer, Exception):
            with pytest.raises(type(answer)):
                ask(recording)
        else:
            ask(recording)
    recording.close()
    return path


def never(divergence: Divergence) -> None:
    raise AssertionError(f"diverged: {divergence}")


# What is recorded


def test_cassette_is_a_private_file_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    result = run(
        RecordingModel(Saying(calling(1, "bash", command="echo hi"), said("done")), str(path), PLAIN), tmp_path / "a"
    )
    assert (result.stop, stat.S_IMODE(path.stat().st_mode)) == (StopReason.COMPLETED, 0o600)
    first, one, two = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["cassette"], first["model"]) == (1, "spoken-1")
    assert [(m["role"], m["begins"]) for m in one["messages"]] == [("system", "Be brief."), ("user", "go")]
    assert (two["kept"], [(m["role"], m["tool"]) for m in two["messages"]]) == (
        2,
        [("assistant", ""), ("tool", "bash")],
    )
    assert two["messages"][1]["begins"].startswith("hi\n[exit code 0")
    assert (one["response"]["calls"][0]["arguments"], two["response"]["text"]) == ('{"command": "echo hi"}', "done")
    assert "bash" in one["tools"]


def test_recording_never_overwrites_a_file_or_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name, why in (
        ("there", "not overwritten"),
        ("link", "not overwritten"),
        ("no/folder", "cannot be made"),
        ("a\0b", "null byte"),
    ):
        with pytest.raises(UsageError, match=why):
            RecordingModel(Saying(), str(tmp_path / name), PLAIN)
    assert ((tmp_path / "there").read_text(), (tmp_path / "elsewhere").exists()) == ("mine", False)


def test_secrets_never_reach_a_cassette(tmp_path: Path) -> None:
    """Not from prompts, results, replies, raw arguments, echoes, reasons of retries or errors; not by its beginning either."""
    redactor = Redactor((SECRET,), key=b"k")
    long = "x" * (SHOWN_CHARACTERS - 5) + SECRET
    retry = Retry(attempt=1, attempts=2, wait_seconds=0.0, reason=f"bad {SECRET}")
    answers: tuple[ModelResponse | Exception, ...] = (
        said(
            f"text {SECRET}",
            ToolCall(id="1", name="bash", arguments=json.dumps({"command": SECRET})),
            echo=json.dumps([SECRET]),
        ),
        ModelError(f"refused {SECRET}", fault=ModelFault.REQUEST),
    )
    model = RecordingModel(Saying(*answers, retries=[retry]), str(tmp_path / "c"), redactor)
    heard: list[Retry] = []
    reply = ask(model, Message(role=Role.USER, content=SECRET), Message(role=Role.USER, content=long), retries=heard)
    with pytest.raises(ModelError):
        ask(model)
    text = (tmp_path / "c").read_text()
    assert (SECRET in text, SECRET[:8] in text, text.count("[redacted:known:")) == (False, False, 8)
    assert (reply, heard) == (answers[0], [retry])  # who asked gets what came


@all_rows("fault", list(ModelFault))
@all_rows("kind", [ModelError, CutReply])
def test_an_error_replays_as_the_error_it_was(tmp_path: Path, kind: type[ModelError], fault: ModelFault) -> None:
    usage = Usage(input_tokens=3, unreported=1) if fault is ModelFault.SERVER else None
    path = cassette(tmp_path / "c", kind("it broke", fault=fault, usage=usage))
    model = ReplayingModel(str(path), never)
    if fault is ModelFault.TIME:  # the run's own end is not the model's side
        assert model.unused == 0
        return
    with pytest.raises(kind, match="it broke") as raised:
        ask(model)
    assert (type(raised.value), raised.value.fault, raised.value.usage) == (kind, fault, usage)


def test_replayed_retries_are_reported_without_waiting(tmp_path: Path) -> None:
    retry = Retry(attempt=1, attempts=3, wait_seconds=1e8, reason="overloaded", usage=Usage(output_tokens=4))
    recording = RecordingModel(Saying(said("ok"), retries=[retry]), str(tmp_path / "c"), PLAIN)
    ask(recording)
    texts, retries = list[str](), list[Retry]()
    ask(ReplayingModel(str(tmp_path / "c"), never), texts=texts, retries=retries)
    assert (texts, retries) == (["ok"], [retry])


def test_replayed_retries_stop_when_the_time_is_over(tmp_path: Path) -> None:
    """Each takes its time: they are written to a log. Here it takes a second."""
    (tmp_path / "c").write_bytes(asked(retries=[RETRY] * 1_000))
    model, told = ReplayingModel(str(tmp_path / "c"), lambda _: None, monotonic=Clock(1.0)), list[Retry]()
    with pytest.raises(ModelError, match="The time that the run had left is over") as raised:
        model.complete((USER,), (), on_text=lambda _: None, on_retry=told.append, seconds=10.0)
    assert (raised.value.fault, len(told)) == (ModelFault.TIME, 9)


counts = st.integers(0, 2**53)
responses = st.builds(
    ModelResponse,
    text=st.text(),
    tool_calls=st.lists(
        st.builds(ToolCall, id=st.text(), name=st.text(), arguments=st.text(), problem=st.text()), max_size=3
    ).map(tuple),
    finish_reason=st.sampled_from(FinishReason),
    usage=st.builds(
        Usage,
        input_tokens=counts,
        output_tokens=counts,
        cached_tokens=counts,
        cache_write_tokens=counts,
        unreported=counts,
    ),
    retries=st.integers(0, 20),
    echo=st.text(),
)


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.lists(responses, max_size=4))
def test_every_reply_survives_recording_and_replay_unchanged(tmp_path: Path, answers: list[ModelResponse]) -> None:
    path = tmp_path / f"{time.monotonic_ns()}"
    cassette(path, *answers)
    model = ReplayingModel(str(path), never)
    assert [ask(model) for _ in answers] == answers
    path.unlink()


def test_a_lone_surrogate_survives_too(tmp_path: Path) -> None:
    answer = said("a\udc80b\x00\u2028")
    assert ask(ReplayingModel(str(cassette(tmp_path / "c", answer)), never)) == answer


# Replaying whole runs


WORK = (
    calling(
        1,
        "bash",
        command="pwd; sleep 0.2; date +%H:%M:%S; mktemp -u; echo $TMPDIR; python3 -c 'print(hex(id(object())))'",
    ),
    calling(2, "write_file", path="a.txt", content="one\n"),
    calling(3, "bash", command="cat a.txt; ls -l; time true; sleep 0.1 & seq 1 30000"),
    calling(4, "read_file", path="a.txt"),
    calling(5, "read_file", path="no.txt"),
    calling(
        6, "bash", command="git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -m x && git log"
    ),
    calling(7, "bash", command="cd sub && touch /proc/no; echo $$ > b; rm b"),
    said("done"),
)


def test_the_same_run_in_another_folder_does_not_diverge(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "other" / "place-for-b"
    (a / "work" / "sub").mkdir(parents=True)
    (a / "work" / "kept.txt").write_text("kept\n")
    shutil.copytree(a, b)
    recording = RecordingModel(Saying(*WORK), str(tmp_path / "c"), PLAIN, workspace=str(a / "work"))
    recorded = run(recording, a, system=f"You work in {a}/work.")
    replaying = ReplayingModel(str(tmp_path / "c"), never, workspace=str(b / "work"))
    replayed = run(replaying, b, system=f"You work in {b}/work, under another policy.")
    assert (recorded.stop, recorded.turns) == (replayed.stop, replayed.turns) == (StopReason.COMPLETED, 8)
    assert (replaying.unused, (b / "work" / "a.txt").read_text()) == (0, "one\n")


def test_recorded_workspace_paths_are_translated(tmp_path: Path) -> None:
    a, b = tmp_path / 'a "q"', tmp_path / "b\\bbb"  # as long: results tell sizes
    path = str(a / "work" / "f.txt")
    answers = (calling(1, "write_file", path=path, content=f"{path} {path}2"), said(f"I wrote {path}."))
    run(RecordingModel(Saying(*answers), str(tmp_path / "c"), PLAIN, workspace=str(a / "work")), a)
    result = run(ReplayingModel(str(tmp_path / "c"), never, workspace=str(b / "work")), b)
    moved = str(b / "work" / "f.txt")
    assert (result.text, Path(moved).read_text()) == (f"I wrote {moved}.", f"{moved} {moved}2")


def test_replay_under_another_policy_reports_the_first_difference_once(tmp_path: Path) -> None:
    told: list[Divergence] = []
    answers = (calling(1, "bash", command="echo hi"), calling(2, "bash", command="touch made"), said("done"))
    run(RecordingModel(Saying(*answers), str(tmp_path / "c"), PLAIN), tmp_path / "a")
    replaying = ReplayingModel(str(tmp_path / "c"), told.append)
    result = run(replaying, tmp_path / "b", policy=STRICT)
    assert (result.stop, result.refusals, (tmp_path / "b" / "work" / "made").exists()) == (
        StopReason.COMPLETED,
        2,
        False,
    )
    (one,) = told
    assert (one.request, one.message, one.role, one.tool) == (2, 3, "tool", "bash")
    assert one.recorded.startswith("hi\n[exit code 0")
    assert one.now.startswith("Denied")
    assert replaying.diverged == one


def test_a_run_that_asks_for_more_than_there_is_ends_as_the_models_fault(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c", calling(1, "bash", command="true"))
    result = run(ReplayingModel(str(path), lambda _: None), tmp_path / "b")
    assert result.stop is StopReason.MODEL_ERROR
    assert "is used up: it holds 1 reply, and the run asks for one more" in result.detail


def test_unused_replies_are_reported(tmp_path: Path) -> None:
    model = ReplayingModel(str(cassette(tmp_path / "c", said("a"), said("b"), said("c"))), never)
    ask(model)
    assert (model.unused, model.notes[0][:30]) == (2, "replay: 3 replies of spoken-1,")
    (tmp_path / "d").write_bytes(lines({**HEADER, "api": "chat"}, ASKED))
    (note,) = ReplayingModel(str(tmp_path / "d"), never).notes
    assert note == "replay: 1 reply of m (api: chat), recorded by harness 1"


def test_masked_replies_name_their_marks_so_that_no_call_runs_with_one(tmp_path: Path) -> None:
    redactor = Redactor((SECRET,), key=b"k")
    path = cassette(tmp_path / "c", calling(1, "bash", command=f"echo {SECRET}"), said(SECRET), redactor=redactor)
    model = ReplayingModel(str(path), never)
    later = Redactor((), key=b"another")
    later.note(model.marks)
    assert later.issued(ask(model).tool_calls[0].arguments).startswith("[redacted:known:")


@all_rows("inner", [0, 1])
def test_a_replay_can_be_recorded_again(tmp_path: Path, inner: int) -> None:
    first = cassette(tmp_path / "1", said("a"), CutReply("cut"))
    again = RecordingModel(ReplayingModel(str(first), never), str(tmp_path / "2"), PLAIN)
    ask(again)
    with pytest.raises(CutReply):
        ask(again)
    assert (tmp_path / "2").read_bytes() == first.read_bytes()


# Where it differs


def differing(tmp_path: Path, recorded: Sequence[Message], now: Sequence[Message]) -> Divergence | None:
    path = tmp_path / f"{time.monotonic_ns()}"
    recording = RecordingModel(Saying(said("x")), str(path), PLAIN)
    ask(recording, *recorded)
    model = ReplayingModel(str(path), lambda _: None)
    ask(model, *now)
    return model.diverged


def message(text: str, role: Role = Role.USER) -> Message:
    return Message(role=role, content=text)


CALLS = Message(role=Role.ASSISTANT, content="", tool_calls=(ToolCall(id="1", name="bash", arguments="{}"),))
OTHER_CALLS = Message(role=Role.ASSISTANT, content="", tool_calls=(ToolCall(id="1", name="bash", arguments="[]"),))
DIFFERENCES = {
    "another prompt": ([message("a")], [message("b")], (0, "user", "", "a", "b")),
    "one message more": ([message("a")], [message("a"), message("b")], (1, "user", "", "", "b")),
    "one message less": ([message("a"), message("b")], [message("a")], (1, "user", "", "b", "")),
    "another role": ([message("a")], [message("a", Role.ASSISTANT)], (0, "assistant", "", "a", "a")),
    "other calls": ([CALLS], [OTHER_CALLS], (0, "assistant", "", "\nbash {}", "\nbash []")),
    "the end alone": (
        [message("a" * 900 + "1")],
        [message("a" * 900 + "2")],
        (0, "user", "", "a" * 299 + "1", "a" * 299 + "2"),
    ),
}


@all_rows(("recorded", "now", "expected"), DIFFERENCES)
def test_difference_names_message_and_place(
    tmp_path: Path, recorded: list[Message], now: list[Message], expected: tuple[int, str, str, str, str]
) -> None:
    found = differing(tmp_path, recorded, now)
    assert found is not None
    assert (found.message, found.role, found.tool, found.recorded, found.now) == expected
    assert found.request == 1


def test_difference_in_the_middle_is_shown_by_its_digest(tmp_path: Path) -> None:
    one, two = (message("a" * 500 + middle + "b" * 500) for middle in "12")
    found = differing(tmp_path, [one], [two])
    assert found is not None
    assert "alike at both ends; 1,001 characters" in found.recorded
    assert found.recorded != found.now
    assert max(len(found.recorded), len(found.now)) <= SHOWN_CHARACTERS


def test_changed_tools_are_a_difference(tmp_path: Path) -> None:
    recording = RecordingModel(Saying(said("x")), str(tmp_path / "c"), PLAIN)
    spec = ToolSpec(name="bash", description="", parameters={})
    recording.complete([USER], [spec], on_text=lambda _: None, on_retry=lambda _: None)
    model = ReplayingModel(str(tmp_path / "c"), lambda _: None)
    ask(model)
    assert model.diverged == Divergence(request=1, message=-1, role="tools", tool="", recorded="bash", now="")


def test_the_system_message_never_counts(tmp_path: Path) -> None:
    assert differing(tmp_path, [message("a", Role.SYSTEM), USER], [message("b", Role.SYSTEM), USER]) is None


ALIKE = {
    "how long a command took": ("[exit code 0, 0.1 s]", "[exit code 0, 12.0 s]"),
    "pytest": ("=== 2 passed in 0.03s ======", "=== 2 passed in 11.03s ====="),
    "bash's time": ("real\t0m0.003s", "real\t1m2.030s"),
    "a clock and a date": ("2026-01-02T03:04:05 Nov 22 14:11 x", "2027-11-12T13:14:15 Dec  1 09:00 x"),
    "temporary names": ("/tmp/tmp.aB3dE6gH9k /tmp/tmpab12cd_4/x", "/var/tmp/tmp.zz3dE6gH9k /tmp/tmpzz12cd_4/x"),
    "a kept output": ("full output: /a/b/output-0123456789ab.txt; x", "full output: /c/output-ba9876543210.txt; x"),
    "an address": ("<object at 0x7f00deadbeef>", "<object at 0x7f11deadbeef>"),
    "a process": ("pid 123 pid=4", "pid 9 pid=77"),
    "a commit": (f"[main (root-commit) 1a2b3c4] x\ncommit {'a' * 40}", f"[main (root-commit) 99aa3c4] x\ncommit {'b' * 40}"),
    "a mark under another key": ("[redacted:known:01234567]", "[redacted:known:76543210]"),
}  # fmt: skip
UNLIKE = {
    "an exit code": ("[exit code 0, 0.1 s]", "[exit code 1, 0.1 s]"),
    "a number of tests": ("2 passed in 0.03s", "3 passed in 0.03s"),
    "a place in a file": ("a.py:12:30: x", "a.py:12:31: x"),
    "a digest of a file": ("0a" * 32 + "  f", "0b" * 32 + "  f"),
    "a rule": ("[redacted:known:01234567]", "[redacted:jwt:01234567]"),
}


@all_rows(("one", "other"), ALIKE)
def test_values_that_vary_in_every_run_are_ignored(one: str, other: str) -> None:
    assert (one != other, common_form(one)) == (True, common_form(other))


@all_rows(("one", "other"), UNLIKE)
def test_different_program_output_counts_as_a_difference(one: str, other: str) -> None:
    assert common_form(one) != common_form(other)


LONG = ("/a" * 100_000, "1" * 200_000, "[a/" * 60_000, "a:b" * 70_000, "[1] " * 50_000)


@all_rows("text", LONG, ids=lambda text: text[:6])
def test_long_text_without_variation_is_its_own_common_form(text: str) -> None:
    """How long each of them takes is timed by bench/growth.py."""
    assert common_form(text) == text
    (outline,) = Outlines(str, {"/a/work": "<workspace>"}).of([message(text)])
    assert (outline.characters, outline.begins, outline.ends) == (len(text), text[:300], text[-300:])


def test_a_long_row_of_signs_has_the_common_form_of_a_short_one() -> None:
    assert common_form("=" * 200_000) == "===="


# Files that are none


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


HEADER = {"cassette": 1, "harness": "1", "model": "m", "api": "", "workspace": ""}
OUTLINE = {"role": "user", "tool": "", "sha256": "0" * 64, "characters": 1, "begins": "a", "ends": ""}
USAGE = {"input_tokens": 1, "output_tokens": 1, "cached_tokens": 0, "unreported": 0}
RESPONSE = {"text": "hi", "calls": [], "finish_reason": "done", "usage": USAGE, "retries": 0, "echo": ""}
ASKED = {"request": 1, "kept": 0, "messages": [OUTLINE], "tools": [], "retries": [], "response": RESPONSE}
RETRY = {"attempt": 1, "attempts": 2, "wait_seconds": 1, "reason": "", "usage": USAGE}
FAILED = {"cut": False, "text": "", "fault": "server", "usage": None}
ERROR = {**{name: value for name, value in ASKED.items() if name != "response"}, "error": FAILED}


def asked(**changed: object) -> bytes:
    return lines(HEADER, {**ASKED, **changed})


def replied(**changed: object) -> bytes:
    return asked(response={**RESPONSE, **changed})


WAIT = "retries: number 1: wait_seconds: must be a number from 0 to 1e9"
NO_CASSETTES = {
    "nothing": (b"", "1: invalid JSON"),
    "a log": (lines({"kind": "session_started"}), "1: not a cassette"),
    "a list": (lines([]), "1: not a cassette"),
    "no text": (b"\xff\xfe\n", "1: invalid JSON: byte 0 is not UTF-8"),
    "of the future": (lines({**HEADER, "cassette": 2}), "1: unknown cassette version 2; this harness reads 1"),
    "true is no version": (lines({**HEADER, "cassette": True}), "1: unknown cassette version true"),
    "a number for a model": (lines({**HEADER, "model": 1}), "1: model: must be a string, not a number"),
    "what nobody knows": (lines({**HEADER, "x": 1}), "1: has the unknown field 'x'"),
    "an empty line": (lines(HEADER) + b"\n", "2: invalid JSON"),
    "garbage in the middle": (lines(HEADER, ASKED) + b"{]\n" + lines(ASKED), "3: invalid JSON: column 2"),
    "a key twice": (lines(HEADER) + b'{"request":1,"request":1}\n', '2: invalid JSON: duplicate key "request"'),
    "not a number": (lines(HEADER) + b'{"request":NaN}\n', "2: invalid JSON: NaN is not a JSON number"),
    "endless digits": (
        lines(HEADER) + b'{"request":' + b"9" * 10_000 + b"}\n",
        "2: invalid JSON: a number has too many",
    ),
    "endless nesting": (lines(HEADER) + b"[" * 200_000 + b"\n", "2: invalid JSON: nested too deeply"),
    "a request out of its turn": (asked(request=2), "2: request: must be 1, not 2"),
    "true is no count": (asked(request=True), "2: request: must be a whole number"),
    "a reply left out": (lines(HEADER, {"request": 1}), "2: lacks the field kept"),
    "more kept than there were": (asked(kept=1), "2: kept: must be at most 0, the messages of the last request, not 1"),
    "messages that are none": (asked(messages={}), "2: messages: must be a list"),
    "a message that is none": (asked(messages=[1]), "2: messages: number 1: must be an object"),
    "a role that nobody has": (asked(messages=[{**OUTLINE, "role": "x"}]), "2: messages: number 1: role: unknown 'x'"),
    "a long beginning": (
        asked(messages=[{**OUTLINE, "begins": "x" * 999}]),
        "2: messages: number 1: begins: must be a string of at most 300",
    ),
    "tools that are none": (asked(tools=[1]), "2: tools: number 1: must be a string"),
    "retries that are none": (asked(retries=[[]]), "2: retries: number 1: must be an object"),
    "a wait without end": (asked(retries=[{**RETRY, "wait_seconds": 1e300}]), f"2: {WAIT}"),
    "a wait backwards": (asked(retries=[{**RETRY, "wait_seconds": -1}]), f"2: {WAIT}"),
    "calls that are none": (
        replied(calls=[{"id": 1, "name": "", "arguments": ""}]),
        "2: response: calls: number 1: id: must be a string",
    ),
    "arguments as an object": (
        replied(calls=[{"id": "1", "name": "", "arguments": {}}]),
        "2: response: calls: number 1: arguments: must be a string",
    ),
    "an end that nobody knows": (replied(finish_reason="x"), "2: response: finish_reason: unknown 'x'"),
    "usage below nothing": (
        replied(usage={**USAGE, "input_tokens": -1}),
        "2: response: usage: input_tokens: must be a whole number",
    ),
    "both": (lines(HEADER, {**ASKED, "error": {}}), "2: has the unknown field 'response'"),
    "a fault that nobody knows": (
        lines(HEADER, {**ERROR, "error": {**FAILED, "fault": "x"}}),
        "2: error: fault: unknown 'x'",
    ),
    "the end of a run's time": (
        lines(HEADER, {**ERROR, "error": {**FAILED, "fault": "time"}}),
        "2: error: fault: unknown 'time'",
    ),
}


@all_rows(("data", "why"), NO_CASSETTES)
def test_invalid_cassette_is_rejected_with_line_number(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(UsageError) as raised:
        ReplayingModel(str(tmp_path / "c"), never)
    assert str(raised.value).startswith(f"--replay {tmp_path}/c:{why}")


names = st.sampled_from([*ASKED, *RESPONSE, *OUTLINE, "error", "x"])
plain_values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
json_values = st.recursive(
    plain_values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=8
)


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(st.sampled_from([*ASKED, "error"]), json_values), st.sampled_from([ASKED, ERROR]), json_values)
def test_cassette_line_is_parsed_or_rejected(
    changed: dict[str, object], base: dict[str, object], other: object
) -> None:
    response = {**RESPONSE, **other} if isinstance(other, dict) else other
    for value in ({**base, **changed}, {**ASKED, "response": response}, other):
        line = json.dumps(value).encode()
        for read in (read_header, lambda line: read_exchange(line, 1, 0)):
            with suppress(MalformedError):
                assert isinstance(read(line), Header | RecordedExchange)


@all_rows("name", ["nowhere", ".", "pipe", "a\0b"])
def test_cassette_must_be_a_regular_file(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=r"cannot be read|no such file"):
        ReplayingModel(str(tmp_path / name), never)


def test_unfinished_line_is_left_out_with_a_note(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c", said("a"), said("b"))
    path.write_bytes(path.read_bytes()[:-10])
    model = ReplayingModel(str(path), never)
    assert (model.unused, len(model.notes), "is incomplete" in model.notes[1]) == (1, 2, True)


@all_rows("cut", [5, 30])
def test_a_cassette_cut_within_its_first_line_is_none(tmp_path: Path, cut: int) -> None:
    path = cassette(tmp_path / "c", said("a"))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UsageError, match=":1: invalid JSON"):
        ReplayingModel(str(path), never)


# What stops a recording


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let this process write files of 2,000 bytes at most (setrlimit(2)): what a full disk does, at a known place."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
def test_full_disk_leaves_complete_lines_and_a_note(tmp_path: Path) -> None:
    answers = [said("a"), said("b" * 3_000), said("c")]
    recording = RecordingModel(Saying(*answers), str(tmp_path / "c"), PLAIN)
    assert [ask(recording) for _ in answers] == answers
    assert recording.problem == f"the cassette {tmp_path}/c lacks the replies from request 2 on: File too large"
    model = ReplayingModel(str(tmp_path / "c"), never)
    assert (model.unused, len(model.notes)) == (1, 1)


@all_rows("kind", ["nothing", "closed", "asked", "replaced"])
def test_recording_without_an_exchange_leaves_no_file(tmp_path: Path, kind: str) -> None:
    recording = RecordingModel(Saying(said("a")), str(tmp_path / "c"), PLAIN)
    match kind:
        case "closed":
            recording.close()
        case "asked":
            ask(recording)
        case "replaced":
            (tmp_path / "c").rename(tmp_path / "moved")
            (tmp_path / "c").write_text("another's")
        case _:
            pass
    descriptor = recording._file
    del recording
    if kind != "closed":
        os.close(descriptor)
    assert (tmp_path / "c").exists() == (kind != "nothing")


def test_closed_recording_names_its_gaps(tmp_path: Path) -> None:
    recording = RecordingModel(Saying(said("a"), said("b")), str(tmp_path / "c"), PLAIN)
    ask(recording)
    recording.close()
    ask(recording)
    assert "lacks the replies from request 2 on" in recording.problem


RECORDS_FOR_EVER = """
import sys
sys.path[:0] = sys.argv[2:]
from test_cassette import PLAIN, RecordingModel, Saying, ask, said
model = RecordingModel(Saying(*[said("x" * 5_000)] * 100_000), sys.argv[1], PLAIN)
while True:
    ask(model)
"""


@all_rows("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_recording_keeps_the_earlier_exchanges(tmp_path: Path, number: int) -> None:
    path = tmp_path / "c"
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDS_FOR_EVER, str(path), SUPPORT, os.path.dirname(__file__)], cwd=ROOT
    )
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < 200_000:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    process.wait(60)
    model = ReplayingModel(str(path), never)
    assert model.unused >= 30
    assert ask(model) == said("x" * 5_000)


def test_a_long_run_takes_a_line_a_request_and_no_more(tmp_path: Path) -> None:
    """Messages are written once: the file grows with the run, not with its square."""
    answers = [*(calling(n, "read_file", path="f") for n in range(15)), said("done")]
    (tmp_path / "a" / "work").mkdir(parents=True)
    (tmp_path / "a" / "work" / "f").write_text("line\n" * 2_000)
    run(RecordingModel(Saying(*answers), str(tmp_path / "c"), PLAIN), tmp_path / "a")
    assert (tmp_path / "c").stat().st_size < 16 * 2_500
    assert run(ReplayingModel(str(tmp_path / "c"), never), tmp_path / "a").stop is StopReason.COMPLETED


def test_a_line_is_plain_ascii() -> None:
    assert line_of({"text": "é\u2028\x1b"}) == b'{"text":"\\u00e9\\u2028\\u001b"}\n'
