"""`harness run`, as a CI job runs it: the real program, the real client, a scripted server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from program import made_program
from rows import all_rows
from run_scene import wait_until
from talking import Talking

from harness.models.scripted import Failure, Reply, call, replies, say
from policies import AUTO, CONFIRM

if TYPE_CHECKING:
    from program import Program


def policy(program: Program, text: str) -> str:
    path = program.home / "policy.toml"
    path.write_text(text)
    return str(path)


def touch(name: str = "made") -> Reply:
    return Reply(calls=(call("bash", command=f"touch {name}"),))


DONE = Reply(text="All done.")


def test_text_output_is_the_answer_alone(program: Program) -> None:
    """Only the last answer goes to stdout; trace, policy, log path and head go to stderr."""
    url = program.serve(replies(Reply(text="Let me see.", calls=(call("bash", command="echo hi"),)), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    assert (done.code, done.out) == (0, "All done.\n")
    assert "< Let me see.\n+ bash  echo hi  [auto: default for any other tool (policy.toml:3)]  exit 0" in done.err
    assert f"log: {program.logs()[0]}" in done.err
    assert "head: " in done.err


def test_refusal_that_no_rule_lifts_is_explained_on_stderr(program: Program) -> None:
    url = program.serve(replies(Reply(calls=(call("bash", command="git push --force origin main"),)), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", "default")
    assert done.code == 7
    assert "denied: Rewriting or deleting what others have is done by a person." in done.err
    assert (
        "no further rule would allow:\n  bash  git push --force origin main: rule force-push (default.toml:" in done.err
    )


@all_rows("quiet", [False, True], anew={"program": made_program})
def test_model_error_is_reported_once(program: Program, *, quiet: bool) -> None:
    url = program.serve(replies(Failure(status=401, body='{"error":{"message":"no such key"}}')))
    done = program.run("run", "go", "--base-url", url, "--policy", "ci", *(("--quiet",) if quiet else ()))
    last = done.err.splitlines()[-1]
    assert (done.code, done.err.count("no such key"), last.startswith("harness: model error: ")) == (6, 1, True)
    assert last.endswith("or name the provider that the key is for with --provider or --base-url.")


def test_jsonl_output_is_the_log(program: Program) -> None:
    """Every record appears on stdout as it is in the log."""
    url = program.serve(replies(touch(), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO), "--output", "jsonl")
    assert [json.loads(line) for line in done.out.splitlines()] == program.records()


def test_run_without_a_policy_is_readonly(program: Program) -> None:
    """The shipped readonly policy holds, and one line says so."""
    url = program.serve(replies(touch(), Reply(calls=(call("bash", command="ls"),)), DONE))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, (program.workspace / "made").exists()) == (7, False)
    notes = [line for line in done.err.splitlines() if "no --policy was given" in line]
    assert len(notes) == 1


def test_prompt_from_stdin(program: Program) -> None:
    """`-` reads the prompt from stdin."""
    url = program.serve(replies(DONE))
    prompt = program.home / "prompt"
    prompt.write_text("from stdin")
    with prompt.open("rb") as stdin:
        done = program.run("run", "-", "--base-url", url, stdin=stdin)
    assert done.code == 0
    assert [r["text"] for r in program.records() if r["kind"] == "user_message"] == ["from stdin"]


BAD_POLICIES = [
    pytest.param("version = 1\nverison = 2\n", "policy.toml:2: verison: unknown key; did you mean version?", id="key"),
    pytest.param(
        'version = 1\n[tools]\nbash = "allow"\n', "policy.toml:3: [tools] bash: unknown decision 'allow'", id="decision"
    ),
    pytest.param(
        'version = 1\n[[rule]]\nid = "x"\ndecision = "deny"\nargv = ["rm"]\n', "needs a reason", id="no reason"
    ),
    pytest.param(
        'version = 1\n[[rule]]\nid = "x"\ndecision = "auto"\nargv = ["ls"]\nmatch = ["ls; rm x"]\n',
        "policy.toml:6: [[rule]] match: the rule does not match its example 'ls; rm x'", id="failing example",
    ),
    pytest.param("version = = 1", "is not TOML", id="no TOML"),
]  # fmt: skip


@all_rows(("text", "message"), BAD_POLICIES, anew={"program": made_program})
def test_a_wrong_policy_stops_before_any_request(program: Program, text: str, message: str) -> None:
    """One line, exit 2, nothing asked of the model, no log begun."""
    url = program.serve(replies(DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, text))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert (program.players[0].requests, program.logs()) == ([], [])


def test_a_policy_that_cannot_be_read(program: Program) -> None:
    """A missing file and a folder are refused in one line."""
    for path in (program.home / "missing.toml", program.home):
        done = program.run("run", "go", "--base-url", "http://127.0.0.1:9", "--policy", str(path))
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert "cannot be read" in done.err


def test_missing_provider_error_names_three_ways_out(program: Program) -> None:
    """Neither key nor base URL: exit 2, and the demo is among the ways out."""
    done = program.run("run", "go")
    assert done.code == 2
    for way in ("OPENAI_API_KEY", "--provider ollama", "--base-url", "harness demo"):
        assert way in done.err


def test_a_workspace_that_does_not_exist(program: Program) -> None:
    """Exit 2, one line."""
    done = program.run("run", "go", "--cwd", str(program.home / "nowhere"), "--base-url", "http://127.0.0.1:9")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "not an existing folder" in done.err


def test_a_log_that_cannot_be_written(program: Program) -> None:
    """Exit 8 before any request: a file stands where the state folder should be."""
    url = program.serve(replies(touch(), DONE))
    (program.state / "harness").write_text("in the way")
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    assert (done.code, program.players[0].requests) == (8, [])
    key, log = done.err.splitlines()
    assert ("redaction_key cannot be used" in key, "the log folder cannot be made" in log) == (True, True), done.err
    assert not (program.workspace / "made").exists()


def test_a_full_disk_stops_before_the_next_call(program: Program) -> None:
    """The log hits a file size limit: the call whose intent does not fit is not run, exit 8."""
    url = program.serve(replies(*(touch(f"made{n}") for n in range(40)), DONE))
    limited = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "bash"]
    command = program.command("run", "go", "--base-url", url, "--policy", policy(program, AUTO), "--max-turns", "60")
    done = subprocess.run(
        [*limited, *command],
        cwd=program.workspace,
        env=program.environment,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 8, done.stderr
    (log,) = program.logs()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    intents = {r["call"] for r in records if r["kind"] == "intent"}
    ran = {int(path.name.removeprefix("made")) + 1 for path in program.workspace.glob("made*")}
    assert ran
    assert ran <= intents


def test_an_argument_of_ten_megabytes(program: Program) -> None:
    """It becomes an error result; nothing runs, and the log stays small."""
    url = program.serve(
        replies(Reply(calls=(call("bash", command="echo " + "x" * 10_000_000),)), DONE), fragment=1_000_000
    )
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    assert done.code == 0
    assert [r["status"] for r in program.records() if r["kind"] == "outcome"] == ["invalid"]
    assert program.logs()[0].stat().st_size < 20_000


@all_rows(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)],
    anew={"program": made_program},
)
def test_a_signal_during_a_command(program: Program, number: signal.Signals, code: int) -> None:
    """The command is killed, the record is complete, the exit code is that of the signal."""
    script = replies(Reply(calls=(call("bash", command="touch begun; sleep 1000"), call("bash", command="ls"))), DONE)
    url = program.serve(script)
    process = program.start("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    wait_until((program.workspace / "begun").exists, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    kinds = [r["status"] for r in program.records() if r["kind"] == "outcome"]
    assert kinds == ["interrupted", "not_run"]
    assert program.records()[-1]["stop"] == "interrupted"
    assert program.run("audit", "verify").code == 0


def test_a_signal_while_the_model_is_silent(program: Program) -> None:
    """Ctrl-C takes effect although the server never answers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        process = program.start("run", "go", "--base-url", url)
        connection, _ = listener.accept()
        connection.recv(10)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
        connection.close()
    assert process.returncode == 130, err
    assert program.records()[-1]["stop"] == "interrupted"


def test_stdin_closed(program: Program) -> None:
    """A closed stdin changes nothing: it is never read."""
    url = program.serve(replies(Reply(calls=(call("bash", command="cat; echo end"),)), DONE))
    done = program.run(
        "run", "go", "--base-url", url, "--policy", policy(program, AUTO), stdin=None, preexec_fn=lambda: os.close(0)
    )
    assert (done.code, done.out) == (0, "All done.\n")


def test_stdout_closed_at_the_start(program: Program) -> None:
    """There is nowhere to write: exit 2 before any request."""
    url = program.serve(replies(DONE))
    done = program.run("run", "go", "--base-url", url, stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.code, program.players[0].requests) == (2, [])
    assert "stdout is closed" in done.err


@all_rows("form", ["text", "jsonl", "json"], anew={"program": made_program})
def test_stdout_closed_by_its_reader(program: Program, form: str) -> None:
    """A reader that goes away ends the run cleanly with 141, and the log is whole."""
    url = program.serve(replies(touch("a"), touch("b"), DONE))
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start(
        "run", "go", "--base-url", url, "--policy", policy(program, AUTO), "--output", form, stdout=writer
    )
    os.close(writer)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (141, False), err
    assert program.run("audit", "verify").code == 0


def test_the_terminal_is_never_read(program: Program) -> None:
    """With a pseudo-terminal attached and y typed into it, a confirm is still refused."""
    url = program.serve(replies(touch(), DONE))
    child = Talking(program, "run", "go", "--base-url", url, "--policy", policy(program, CONFIRM))
    child.send("y\ny\n")
    child.expect(pexpect.EOF)
    assert child.exit_code() == 7
    assert not (program.workspace / "made").exists()


def test_the_key_reaches_neither_log_nor_child(program: Program) -> None:
    """The harness's key is not in the command's environment, and is masked in the log wherever it turns up."""
    key = "sk-test-0123456789abcdef"
    program.environment["OPENAI_API_KEY"] = key
    url = program.serve(replies(Reply(calls=(call("bash", command=f"printenv; echo {key}"),)), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    assert done.code == 0
    log = program.logs()[0].read_text()
    assert key not in log
    assert "[redacted:known:" in log
    assert "OPENAI_API_KEY" not in log
    assert key not in done.err


@all_rows("form", ["text", "jsonl", "json"], anew={"program": made_program})
def test_full_stdout_is_a_failure(program: Program, form: str) -> None:
    """What could not be written is told by the exit code."""
    url = program.serve(replies(DONE))
    with open("/dev/full", "wb") as full:
        process = program.start("run", "go", "--base-url", url, "--output", form, stdout=full)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, b"Traceback" in err) == (141, False), err


LIMITS = [
    pytest.param("command_seconds = 1", "sleep 1000", "timeout", id="of time"),
    pytest.param("result_characters = 1000", "head -c 5000 long", "ok", id="of a result"),
]


@all_rows(("limit", "command", "status"), LIMITS, anew={"program": made_program})
def test_a_policys_limits_reach_the_tools(program: Program, limit: str, command: str, status: str) -> None:
    """command_seconds and result_characters of a policy bound the command and its result."""
    rules = AUTO + f"[limits]\n{limit}\nturns = 5\n"
    (program.workspace / "long").write_text("x" * 5000)
    url = program.serve(replies(Reply(calls=(call("bash", command=command),)), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, rules))
    (outcome,) = (r for r in program.records() if r["kind"] == "outcome")
    assert (done.code, outcome["status"]) == (0, status)
    assert len(str(outcome["content"])) <= 1000


SHARES = [(2048, 1500, 2048), (29_000, 20_000, 29_000), (200_000, 29_000, 30_000)]


@all_rows(("tokens", "least", "most"), SHARES, anew={"program": made_program})
def test_a_result_takes_a_share_of_a_small_context(program: Program, tokens: int, least: int, most: int) -> None:
    config = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"context_tokens = {tokens}\n")
    config.chmod(0o600)
    (program.workspace / "long").write_text("some words\n" * 9000)
    calls = (call("bash", command="cat long"), call("read_file", path="long"))
    url = program.serve(replies(Reply(calls=calls), DONE))
    done = program.run("run", "go", "--base-url", url, "--policy", policy(program, AUTO))
    lengths = [len(str(record["content"])) for record in program.records() if record["kind"] == "outcome"]
    assert (done.code, len(lengths), all(least <= length <= most for length in lengths)) == (0, 2, True), lengths


def test_a_denied_folder_is_denied_as_the_place_to_start_in(program: Program) -> None:
    """`cwd` is judged like an operand, also through /proc."""
    rules = AUTO + '[[rule]]\nid = "no"\ndecision = "deny"\npath = ["/secrets/"]\nreason = "No."\n'
    (program.workspace / "secrets").mkdir()
    (program.workspace / "secrets" / "key").write_text("hunter2")
    script = replies(
        Reply(calls=(call("bash", command="ls", cwd="secrets"),)),
        Reply(calls=(call("bash", command="cat /proc/self/cwd/secrets/key"),)),
        DONE,
    )
    done = program.run("run", "go", "--base-url", program.serve(script), "--policy", policy(program, rules))
    assert done.code == 7
    assert [r["status"] for r in program.records() if r["kind"] == "outcome"] == ["denied", "denied"]
    assert "hunter2" not in program.logs()[0].read_text()


def test_key_address_and_model_default_to_the_environment(program: Program) -> None:
    """No flag is needed; the log and its folders are the user's alone."""
    program.environment |= {
        "OPENAI_API_KEY": "sk-test-0123456789abcdef",
        "OPENAI_BASE_URL": program.serve(replies(DONE)),
        "HARNESS_MODEL": "some-model",
    }
    done = program.run("run", "go", umask=0o002)
    log = program.logs()[0]
    assert (done.code, program.players[0].requests[0]["model"]) == (0, "some-model")
    modes = [oct(path.stat().st_mode & 0o777) for path in (log, log.parent, program.state / "harness")]
    assert modes == ["0o600", "0o700", "0o700"]
    assert (program.state / "harness" / "heads.jsonl").stat().st_mode & 0o077 == 0


@all_rows(
    ("words", "message"),
    [
        pytest.param(("run", " "), "the prompt is empty", id="an empty prompt"),
        pytest.param(("run", "go", "--base-url", "localhost:1"), "must begin with http", id="an address that is none"),
        pytest.param(("run", "go", "--max-turns", "0"), "not a whole number above 0", id="a limit of nothing"),
        pytest.param(("run",), "missing prompt: give one, or - to read it", id="no prompt"),
        pytest.param(
            ("policy", "expalin", "ls"),
            "harness policy needs an action: check, new, explain, test, replay, suggest, fatigue, import, trust",
            id="no such action",
        ),
    ],
    anew={"program": made_program},
)
def test_a_command_line_that_makes_no_sense(program: Program, words: tuple[str, ...], message: str) -> None:
    """Exit 2, and a line that says what to write instead."""
    done = program.run(*words)
    assert (done.code, message in done.err, "Traceback" in done.err) == (2, True, False), done.err


def test_a_module_in_the_workspace_is_not_imported(program: Program) -> None:
    """`python -m harness` would find it first, in the current folder."""
    for name in ("tomllib", "openai", "argparse"):
        (program.workspace / f"{name}.py").write_text("open('imported', 'w'); raise SystemExit(99)\n")
    url = program.serve(replies(say("done")))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, (program.workspace / "imported").exists()) == (0, False), done.err
