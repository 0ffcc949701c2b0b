"""A run in GitHub Actions: no text of a model is a command, and the job is told how the run ended."""

from __future__ import annotations

import html
import io
import json
import os
import random
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from program import made_program
from question_scene import together
from rows import all_rows
from runner_commands import Found, Step, outputs_in

from harness.actions import JsonValue
from harness.app.run import workflow_commands
from harness.app.run.facts import RunFacts
from harness.app.run.reported import ReportedRun
from harness.app.run.workflow_commands import CommandFence, Guarded, LineGuard, command, escape_json
from harness.models.scripted import Reply, call, replies, say
from harness.plugins.reports.github import MAX_ANNOTATIONS, MAX_SUMMARY_BYTES, Annotation, Annotations, actions_from
from harness.process.environment import child_environment
from harness.session.shipped_plugins import report_form

if TYPE_CHECKING:
    from program import Program

EVIL = (
    "::set-output name=evil::1",
    "  \t::error::forged",
    "x ##[set-output name=evil]1",
    "##[add-mask]e",
    "####[error]forged",
    "\u3000::warning::forged",
    "a\r::error::forged",
    "::unknown::##[error]forged",
    "::stop-commands::token",
    ":::error::forged",
    "##[error]a ##[error]b",
    "::add-matcher::.github/evil.json",
)
EXPORTS = ("csv", "jsonl", "ocsf", "otlp")
POLICY = """\
version = 1
name = "ci"
[tools]
default = "auto"
[[rule]]
id = "never"
decision = "deny"
argv = ["touch", "..."]
reason = "Touching is not done."
"""


def obeyed(*texts: str) -> list[Found]:
    step = Step()
    for text in texts:
        step.read(text)
    return step.obeyed


@all_rows("line", [line for line in EVIL if line != "::stop-commands::token" and "unknown" not in line])
def test_lines_are_commands_without_a_guard(line: str) -> None:
    """Else the tests below would show nothing. (`:::error::` is none: the name would be `:error`.)"""
    assert bool(obeyed(line)) == (line != ":::error::forged")


@all_rows("line", EVIL)
def test_guarded_line_is_never_a_command(line: str) -> None:
    for size in (1, 2, 3, len(line)):
        guard = LineGuard()
        shown = "".join(guard.safe(line[start : start + size]) for start in range(0, len(line), size))
        assert obeyed(shown) == []
        step = Step()
        step.read(shown)
        assert not step.stopped


@all_rows("text", ["policy: file ci.toml (33a6); confinement", "a::b ## [x] #[y] C::d", "", "\n\n", "é ✓"])
def test_harmless_text_stays_unchanged(text: str) -> None:
    assert LineGuard().safe(text) == text


@all_rows("line", EVIL)
def test_json_contains_no_command_and_keeps_its_value(line: str) -> None:
    for indent in (None, 2):
        text = escape_json(json.dumps({line: [line, {"a": f"\\{line}#"}]}, indent=indent))
        assert (json.loads(text), obeyed(text)) == ({line: [line, {"a": f"\\{line}#"}]}, [])


@all_rows("seed", range(300))
def test_mixed_pieces_contain_no_command(seed: int) -> None:
    """Also where the guard looks at a piece as a whole and passes it on."""
    chance = random.Random(seed)
    pieces = [chance.choice((" ", ":", "#", "[", "error]x", "error::x", "\n", "ab", "\r", "\u2003", "##", "::"))
              for _ in range(60)]  # fmt: skip
    whole, cut = LineGuard(), LineGuard()
    shown = "".join(cut.safe(piece) for piece in pieces)
    assert (obeyed(shown), shown) == ([], whole.safe("".join(pieces)))


def test_guarded_stream_covers_every_way_to_write() -> None:
    raw = io.BytesIO()
    stream = Guarded(io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace"))
    stream.writelines(f"{line}\n" for line in EVIL)
    print("::error", "forged", sep="::", end="", file=stream)
    stream.write_command("::notice::ours")
    stream.write("\udc80::error::x\n")
    assert obeyed(raw.getvalue().decode()) == [Found("notice", {}, "ours")]


def _interleaved(out: list[str], err: list[str], chance: random.Random) -> list[str]:
    """Return the lines of two streams in some order that keeps that of each."""
    order = [0] * len(out) + [1] * len(err)
    chance.shuffle(order)
    streams = [iter(out), iter(err)]
    return [next(streams[which]) for which in order]


@all_rows("seed", range(200))
def test_hostile_lines_are_ignored_in_any_order_of_the_streams(seed: int) -> None:
    """Stop is one flag for both streams: with a fence in each, the end of one would lift the other's."""
    chance = random.Random(seed)
    out = f"{CommandFence().around(chr(10).join(EVIL))}::notice::ours\n".split("\n")
    err = LineGuard().safe("\n".join(EVIL)).split("\n")
    step = Step()
    for line in _interleaved(out, err, chance):
        step.read(line)
    assert (step.obeyed, step.stopped) == ([Found("notice", {}, "ours")], False)


def test_one_fence_per_stream_is_insufficient() -> None:
    """Why it is done otherwise: the test above can fail."""
    out, err = (
        ["", "::stop-commands::a", "answer", "::a::"],
        ["", "::stop-commands::b", "trace", "::error::forged", "::b::"],
    )
    assert obeyed(*err[:3], *out, *err[3:]) == []
    assert obeyed(*out[:2], *err[:3], *out[2:], *err[3:]) == [Found("error", {}, "forged")]


def test_a_fence_begins_a_line_and_a_kill_leaves_it_closed() -> None:
    step = Step()
    step.read("progress 50%" + CommandFence().around("::error::forged")[:-12])
    assert (step.obeyed, step.stopped) == ([], True)


@all_rows("seed", range(100))
def test_answers_of_parallel_runs_contain_no_command(seed: int) -> None:
    """The end of one fence lifts that of the other, in one pipe or two; so nothing in a fence relies on it."""
    one, other = (CommandFence().around("\n".join(EVIL * 3)).split("\n") for _ in range(2))
    step = Step()
    for line in _interleaved(one, other, random.Random(seed)):
        step.read(line)
    assert step.obeyed == []


@all_rows("value", ["a,b:c%d\r\ne", "100%", "%0A", ""])
def test_command_text_arrives_unchanged(value: str) -> None:
    """But a `%0A` that was written as such: the runner reads `%250A` in two steps, and gets a line end. Harmless."""
    (found,) = obeyed(command("warning", value, {"file": value, "line": "3"}))
    wanted = value.replace("%0A", "\n") if value == "%0A" else value
    assert (found.data in (value, wanted), found.properties["line"], len(obeyed(command("x", value, {})))) == (
        True,
        "3",
        0,
    )


def job(folder: Path, **more: str) -> dict[str, str]:
    made = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_OUTPUT": str(folder / "output"),
        **more,
    }
    for name in ("summary", "output"):
        (folder / name).touch()
    return made


def refusal(number: int, status: str = "denied", file: str | None = "/w/ci.toml") -> list[dict[str, JsonValue]]:
    base: dict[str, JsonValue] = {"session": "s", "call": number, "tool": "bash", "time": "", "mono_ns": 0}
    return [
        {**base, "kind": "decision", "decision": "deny", "summary": f"touch {number} ::x\n%", "by": "rule r (/w/ci.toml:7)",
         "source": "rule", "rule": "r", "file": file, "line": 7, "reason": "No."},
        {**base, "kind": "outcome", "status": status, "content": "no"},
    ]  # fmt: skip


def facts_of(records: list[dict[str, JsonValue]]) -> RunFacts:
    facts = RunFacts()
    started: dict[str, JsonValue] = {"kind": "session_started", "session": "s", "time": "", "mono_ns": 0}
    for record in [started, *records]:
        facts.record(record)
    return facts


def annotations_of(runs: list[RunFacts], workspace: str) -> list[Annotation]:
    found = Annotations(workspace)
    for facts in runs:
        found.add(facts)
    return found.chosen()


def test_annotations_are_limited_with_the_worst_first() -> None:
    records = [one for number in range(30) for one in refusal(number, "blocked" if number > 25 else "denied")]
    records.append({"kind": "limit", "session": "s", "limit": "turns"})
    found = annotations_of([facts_of(records)], "/w")
    assert (len(found), [one.level for one in found]) == (MAX_ANNOTATIONS, ["error"] * 4 + ["warning"] * 5 + ["notice"])
    assert found[-1].message.startswith("22 more")
    assert [(one.file, one.line) for one in found[:9]] == [("ci.toml", 7)] * 9


def test_an_annotation_names_a_policy_file_as_the_step_summary_does() -> None:
    facts = facts_of(refusal(1))
    (found,) = annotations_of([facts], "/w")
    summary = html.unescape("".join(report_form("md").write([reported(facts)], with_answer=False)))
    assert "rule r (ci.toml:7)]" in found.message
    assert "<code>ci.toml:7</code>" in summary


@all_rows("file", ["/elsewhere/ci.toml", "", None, "/w/../x", "\0", "/w2/ci.toml", "ci"])
def test_policy_outside_the_workspace_has_no_annotation_place(file: str | None) -> None:
    (found,) = annotations_of([facts_of(refusal(1, file=file))], "/w")
    assert found.file == ""


@all_rows(("number", "shown"), [(0, 0), (9, 9), (10, 10), (11, 10), (2_000, 10)])
def test_the_annotations_of_many_runs_are_as_few(number: int, shown: int) -> None:
    found = annotations_of([facts_of(refusal(1)) for _ in range(number)], "/w")
    assert len(found) == shown
    assert number <= 10 or found[-1].message.startswith(f"{number - 9} more")


def reported(facts: RunFacts, **result: JsonValue) -> ReportedRun:
    return ReportedRun(name="run", facts=facts, result={"end": "completed", "log": "/l", "head": "ab", **result})


def test_hostile_values_stay_values(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A log path with line ends in it sets no second output; what stood in the file without a line end stays too."""
    environment = job(tmp_path)
    (tmp_path / "output").write_text("mine=1")
    actions = actions_from(environment)
    assert actions is not None
    path = "/tmp/a\nexit-code=0\nharness_00\n::error::x\udc80"
    assert actions.tell(reported(facts_of(refusal(1)), log=path), output=None, code=7) == ""
    assert outputs_in((tmp_path / "output").read_text()) == {
        "mine": "1", "end": "completed", "refused": "1", "blocked": "0", "log-path": path.replace("\udc80", "\\udc80"),
        "log-head": "ab", "exit-code": "7",
    }  # fmt: skip
    (found,) = obeyed(capfd.readouterr().err)
    assert (found.name, "touch 1 ::x" in found.data, "\n" in found.data) == ("warning", True, False)


def test_summary_is_cut_between_blocks_with_a_notice(tmp_path: Path) -> None:
    environment = job(tmp_path)
    before = "x" * (MAX_SUMMARY_BYTES - 9_000)
    (tmp_path / "summary").write_text(before)
    actions = actions_from(environment)
    assert actions is not None
    runs = facts_of([one for number in range(300) for one in refusal(number)])
    assert actions.tell(reported(runs), output=None, code=7) == ""
    text = (tmp_path / "summary").read_text()
    assert (text.startswith(before), len(text.encode()) <= MAX_SUMMARY_BYTES) == (True, True)
    assert "left out: a step summary holds 1 MiB" in text[-200:]


def _a_link(path: Path) -> None:
    (path.parent / "target").touch()
    path.symlink_to(path.parent / "target")


@all_rows("variable", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
@all_rows(
    ("make", "why"),
    [
        pytest.param(_a_link, "it is a link", id="a link"),
        pytest.param(os.mkfifo, "No such device or address", id="a pipe"),
        pytest.param(Path.mkdir, "Is a directory", id="a folder"),
    ],
)
def test_unwritable_runner_file_is_reported(
    tmp_path: Path, variable: str, make: object, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    environment = job(tmp_path)
    path = Path(environment[variable])
    path.unlink()
    assert callable(make)
    make(path)
    actions = actions_from(environment)
    assert actions is not None
    problem = actions.tell(reported(facts_of(refusal(1))), output=None, code=7)
    assert (problem.startswith(f"${variable} "), why in problem) == (True, True), problem
    assert "warning" in capfd.readouterr().err
    if variable != "GITHUB_OUTPUT":
        assert outputs_in((tmp_path / "output").read_text())["exit-code"] == "1"
    if (tmp_path / "target").exists():
        assert (tmp_path / "target").read_text() == ""


@all_rows("variable", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
def test_a_full_file_of_the_runner(tmp_path: Path, variable: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A summary that is full is said, and no failure of the run: the log has it all. Outputs are what a job goes by."""
    environment = job(tmp_path)
    full = Path(environment[variable])
    full.write_text("x" * MAX_SUMMARY_BYTES)
    actions = actions_from(environment)
    assert actions is not None
    problem = actions.tell(reported(facts_of(refusal(1))), output=None, code=7)
    assert full.stat().st_size == MAX_SUMMARY_BYTES
    said = f"${variable} is full: {MAX_SUMMARY_BYTES} bytes stand in it"
    err = capfd.readouterr().err
    if variable == "GITHUB_OUTPUT":
        assert (problem, "is full" in err) == (said, False)
    else:
        assert (problem, f"harness: {said}" in err) == ("", True)
        assert outputs_in((tmp_path / "output").read_text())["exit-code"] == "7"


def test_a_job_may_want_neither_summary_nor_outputs(tmp_path: Path) -> None:
    actions = actions_from(job(tmp_path, GITHUB_STEP_SUMMARY=os.devnull, GITHUB_OUTPUT=os.devnull))
    assert actions is not None
    assert actions.tell(reported(facts_of(refusal(1))), output=None, code=0) == ""


def test_a_summary_does_not_spoil_the_outputs(tmp_path: Path) -> None:
    actions = actions_from(job(tmp_path, GITHUB_STEP_SUMMARY=str(tmp_path / "output")))
    assert actions is not None
    assert "are the same file" in actions.tell(reported(facts_of(refusal(1))), output=None, code=7)
    assert outputs_in((tmp_path / "output").read_text())["exit-code"] == "1"


def test_several_runs_are_reported_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    actions = actions_from(job(tmp_path))
    assert actions is not None
    runs = [reported(facts_of(refusal(number, "blocked" if number else "denied"))) for number in range(3)]
    assert actions.tell_all(runs, code=3) == ""
    assert outputs_in((tmp_path / "output").read_text()) == {"refused": "1", "blocked": "2", "exit-code": "3"}
    assert [found.name for found in obeyed(capfd.readouterr().err)] == ["error", "error", "warning"]
    assert (tmp_path / "summary").read_text().count("No.") == 3


@all_rows("value", [None, "", "false", "False", "0"])
def test_reports_need_a_github_job(value: str | None) -> None:
    environment = {"GITHUB_OUTPUT": "/nowhere/x"} | ({} if value is None else {"GITHUB_ACTIONS": value})
    assert actions_from(environment) is None


@all_rows("value", ["true", "True", "TRUE", "1", "yes"])
def test_a_job_is_one_however_it_is_written(value: str) -> None:
    """Taken for a job wrongly, a run loses nothing; not taken for one, its words are commands."""
    assert actions_from({"GITHUB_ACTIONS": value}) is not None


def test_commands_get_no_variables_of_the_job() -> None:
    """What would let it write outputs, variables and paths of later steps, or speak for the job."""
    names = "OUTPUT ENV PATH STATE STEP_SUMMARY TOKEN WORKSPACE ACTIONS EVENT_PATH".split()
    more = "ACTIONS_RUNTIME_TOKEN ACTIONS_RUNTIME_URL ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL"
    others = "ACTIONS_CACHE_URL RUNNER_TEMP RUNNER_TRACKING_ID INPUT_PROMPT GH_TOKEN"
    given = dict.fromkeys([*(f"GITHUB_{name}" for name in names), *more.split(), *others.split()], "/x")
    assert set(child_environment({**given, "PATH": "/bin", "HOME": "/h"})) & set(given) == set()


def start(program: Program, tmp_path: Path, script: list[Reply], *flags: str) -> tuple[subprocess.Popen[bytes], str]:
    program.environment |= job(tmp_path, GITHUB_WORKSPACE=str(program.workspace), GITHUB_TOKEN="ghs_secret")
    rules = program.workspace / "ci" / "policy.toml"
    rules.parent.mkdir()
    rules.write_text(POLICY)
    url = program.serve(replies(*script))
    return program.start("run", "go", "--base-url", url, "--policy", str(rules), *flags), url


TOUCH = Reply(text="\n".join(EVIL), calls=(call("bash", command="touch x '##[error]forged' '\n::error::forged'"),))
ANSWER = "\n".join(("Done.", *EVIL))


def test_a_run_in_a_job(tmp_path: Path) -> None:
    """The real program, once in each form: a hostile model's text is obeyed in neither stream, in no order."""

    def play(form: str) -> None:
        (tmp_path / form).mkdir()
        with contextmanager(made_program)(tmp_path / form) as program:
            check_a_run_in_a_job(program, tmp_path / form, form)

    together(play, {form: (form,) for form in ("text", "json", "jsonl")})


def check_a_run_in_a_job(program: Program, tmp_path: Path, form: str) -> None:
    """Hold what the job knows against how the run ended."""
    printed = Reply(
        calls=(call("bash", command="env; printf '::error::forged\\n##[error]forged\\n'; sleep 2.2; echo"),)
    )
    process, _ = start(program, tmp_path, [TOUCH, printed, say(ANSWER)], "--output", form)
    out, err = (stream.decode() for stream in process.communicate(timeout=300))
    assert process.returncode == 7, err
    for seed in range(20):
        step = Step()
        for line in _interleaved(out.split("\n"), err.split("\n"), random.Random(seed)):
            step.read(line)
        told = [(one.name, one.properties.get("file")) for one in step.obeyed if "touch x" in one.data]
        assert told == [("warning", "ci/policy.toml")]
        assert {one.name for one in step.obeyed} <= {"warning"}
        assert not step.stopped
    match form:
        case "text":
            assert LineGuard().safe(ANSWER) in out
        case "json":
            assert json.loads(out)["answer"] == ANSWER
        case _:
            assert [json.loads(line) for line in out.splitlines()] == program.records()
    outputs = outputs_in((tmp_path / "output").read_text())
    log = str(program.logs()[0])
    assert [outputs[name] for name in ("end", "exit-code", "refused", "blocked")] == ["completed", "7", "1", "0"]
    assert (outputs["log-path"], f"head: {outputs['log-head']}" in err) == (log, True)
    assert program.run("audit", "verify", log, "--head", outputs["log-head"]).code == 0
    summary = (tmp_path / "summary").read_text()
    assert ("Touching is not done." in summary, "Done." in summary, "ghs_secret" in summary) == (True, False, False)
    assert all(name not in json.dumps(program.records()) for name in ("GITHUB_OUTPUT", "GITHUB_TOKEN", "ghs_secret"))


def test_error_before_the_run_is_not_a_command(program: Program, tmp_path: Path) -> None:
    program.environment |= job(tmp_path)
    for words in (
        ("run", "go", "--policy", "x\n::error::forged"),
        ("run", "go", "--policy", "##[error]forged"),
        ("run", "go", "--nonsense\n::error::forged"),
        ("audit", "show", "::error::forged ##[error]x"),
    ):
        done = program.run(*words)
        assert (done.code != 0, obeyed(done.out), obeyed(done.err)) == (True, [], []), done


def test_log_text_is_not_a_command(program: Program, tmp_path: Path) -> None:
    process, _ = start(program, tmp_path, [TOUCH, say(ANSWER)])
    process.communicate(timeout=300)
    log = str(program.logs()[0])
    exports = [["export", "--content", "--to", form] for form in EXPORTS]
    for words in (["show"], ["report", "--full", "-o", "-"], *exports):
        done = program.run("audit", words[0], log, *words[1:])
        assert (done.code, "touch" in done.out, obeyed(done.out), obeyed(done.err)) == (0, True, [], []), words
        if words[-1] in ("jsonl", "ocsf"):
            assert all(isinstance(json.loads(line), dict) for line in done.out.splitlines())


def test_command_code_never_writes_past_the_guard() -> None:
    """But stdout of a run, which is fenced: what is written to the bytes below a stream is not guarded."""
    cli = Path(workflow_commands.__file__).parent
    found = {
        str(path.relative_to(cli))
        for path in cli.rglob("*.py")
        if re.search(r"std(out|err)\.buffer|__std(out|err)__|os\.write\([12]\b", path.read_text())
    }
    assert found == set()


@all_rows("variable", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
def test_unreported_job_is_a_failure(program: Program, tmp_path: Path, variable: str) -> None:
    program.environment |= job(tmp_path)
    program.environment[variable] = str(tmp_path / "nowhere" / "file")
    url = program.serve(replies(say("Done.")))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, f"${variable} cannot be written" in done.err) == (1, True), done.err
