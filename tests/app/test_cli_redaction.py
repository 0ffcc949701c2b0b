"""Redaction in the program: one key for an installation, what of the environment is secret, and nothing of it on a screen."""

from __future__ import annotations

import base64
import io
import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planted_secrets import ALNUM, HEX, PLANTED, chance
from rows import all_rows

from harness.models.scripted import Reply, call, replies
from harness.redaction.redactor import Redactor
from harness.session.environment_secrets import KEY_BYTES, _make_anew, installation_key, redactor_for, withheld_secrets
from harness.session.state import State
from harness.terminal.console import LIVE_SECONDS, Console, Look
from policies import AUTO

if TYPE_CHECKING:
    from program import Program

VALUE = "known-" + "value-12"


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(state=str(tmp_path / "state" / "harness"), config=str(tmp_path / "config"))


def key_file(state: State) -> str:
    return os.path.join(state.state, "redaction_key")


def test_the_key_is_made_once_and_is_its_owners_alone(state: State) -> None:
    old = os.umask(0)
    try:
        key = installation_key(state)
    finally:
        os.umask(old)
    status = os.stat(key_file(state))
    assert (len(key), stat.S_IMODE(status.st_mode), status.st_nlink) == (KEY_BYTES, 0o600, 1)
    assert installation_key(state) == key
    assert os.listdir(state.state) == ["redaction_key"]


def test_redactors_of_one_installation_make_equal_marks(state: State) -> None:
    marks = {redactor_for(state, {}, [VALUE]).redact(VALUE) for _ in range(3)}
    other = State(state=state.state + "2", config=state.config)
    assert len(marks) == 1
    assert marks != {redactor_for(other, {}, [VALUE]).redact(VALUE)}


def test_key_made_by_another_process_is_kept(state: State) -> None:
    """Who read a torn one, and then waited long, finds a whole one in its place."""
    key = installation_key(state)
    _make_anew(key_file(state))
    assert installation_key(state) == key


@pytest.mark.parametrize("torn", [False, True])
def test_sixteen_concurrent_processes_share_the_key(state: State, torn: bool) -> None:
    if torn:
        os.makedirs(state.state)
        lay(b"k", 0o600)(key_file(state))
    code = (
        "import sys\nfrom harness.session.environment_secrets import installation_key\n"
        "from harness.session.state import State\n"
        "sys.stdin.readline()\nprint(installation_key(State(state=sys.argv[1], config='c')).hex())"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, state.state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(16)
    ]
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("\n")
        run.stdin.flush()
    keys = {run.communicate(timeout=120)[0].strip() for run in runs}
    assert keys == {installation_key(state).hex()}
    assert len(installation_key(state)) == KEY_BYTES
    assert os.listdir(state.state) == ["redaction_key"]


def lay_link(path: str) -> None:
    with open(f"{path}.other", "wb") as file:
        file.write(b"k" * KEY_BYTES)
    os.chmod(f"{path}.other", 0o600)
    os.symlink(f"{path}.other", path)


def lay(content: bytes, mode: int) -> Callable[[str], None]:
    def write(path: str) -> None:
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)

    return write


@pytest.mark.parametrize(
    "put",
    [
        lay_link, lay(b"k" * KEY_BYTES, 0o644), lay(b"k" * KEY_BYTES, 0o660), lay(b"k" * 33, 0o600), os.mkdir, os.mkfifo,
    ],
    ids="link others-read group long folder pipe".split(),
)  # fmt: skip
def test_foreign_key_file_is_neither_used_nor_replaced(state: State, put: Callable[[str], None]) -> None:
    os.makedirs(state.state)
    put(key_file(state))
    before = sorted(os.listdir(state.state))
    told: list[str] = []
    assert installation_key(state, told.append) == b""
    assert [line.startswith(f"{key_file(state)} cannot be used (") for line in told] == [True]
    assert sorted(os.listdir(state.state)) == before
    marks = {redactor_for(state, {}, [VALUE]).redact(VALUE) for _ in range(2)}
    assert len(marks) == 2  # of random keys; no mark is missing


@pytest.mark.parametrize("torn", [b"", b"k", b"k" * 31])
def test_torn_key_is_replaced_once(state: State, torn: bytes) -> None:
    os.makedirs(state.state)
    lay(torn, 0o600)(key_file(state))
    told: list[str] = []
    key = installation_key(state, told.append)
    assert (len(key), told, os.listdir(state.state)) == (KEY_BYTES, [], ["redaction_key"])
    assert stat.S_IMODE(os.stat(key_file(state)).st_mode) == 0o600
    assert installation_key(state) == key


def test_value_with_a_line_of_the_workspace_path_is_not_masked(state: State) -> None:
    told: list[str] = []
    value = "alpha-Qx81zz-user\nbravo-Kk92mmq-pass"
    one = redactor_for(state, {}, [value], unless=("/srv/bravo-Kk92mmq-pass/src",), tell=told.append)
    assert (one.redact(value), len(told)) == (value, 1)


def test_value_within_the_workspace_path_is_not_masked_and_reported(state: State) -> None:
    told: list[str] = []
    secrets = ["acme_shop1", VALUE, "short", "workspace"]
    one = redactor_for(state, {}, secrets, unless=("/srv/workspace/acme_shop1", "/home/short"), tell=told.append)
    assert one.redact(f"acme_shop1 {VALUE}").startswith("acme_shop1 [redacted:known:")
    assert told == [
        "a value that counts as secret stands in the path /srv/workspace/acme_shop1: it is not masked, or no path could be read"
    ]


def test_marks_are_made_without_a_state_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = State(state=str(tmp_path / "file" / "harness"), config="c")
    assert redactor_for(nowhere, {}, [VALUE]).redact(VALUE).startswith("[redacted:known:")


TOKEN = chance(ALNUM, 32)


@all_rows(
    ("name", "value", "secrets"),
    [
        ("CORP_LLM", TOKEN, [TOKEN]),
        ("CORP_LLM", f" {TOKEN}\n", [TOKEN]),
        ("CORP", hex32 := chance(HEX, 32), [hex32]),
        ("GH", github := PLANTED["github"](), [github, github]),
        ("DATABASE_URL", "postgres://ann:hunter2%21x@db/app", ["hunter2%21x", "hunter2!x"]),
        ("https_proxy", "http://ann:hunter2x@10.0.0.1:3128", ["hunter2x"]),
        ("CONFIG", json.dumps({"a": {"client_secret": TOKEN}}), [TOKEN]),
        ("HOME", TOKEN, []),
        ("LANG", TOKEN, []),
        ("PATH", f"/opt/{TOKEN}", []),
        ("HOSTNAME", "ip-10-0-0-1", []),
        ("HOSTNAME", "3f2a1b9c8d7e", []),
        ("POD_NAME", "web-7d9f8b6c5f-x2x4z-a1b2c3", []),
        ("GITHUB_SHA", chance(HEX, 40), []),
        ("PYTHON_SHA256", chance(HEX, 64), []),
        ("GITHUB_REPOSITORY", "owner/repository2024", []),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXXXXabc123/agent.4242", []),
        ("SSH_CONNECTION", "10.0.0.2 51234 10.0.0.1 22", []),
        ("XDG_RUNTIME_DIR", "/run/user/1000", []),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:*.tar=01;31", []),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/user/1000/bus,guid=0123456789abcdef0123456789abcdef", []),
        ("SESSION_MANAGER", "local/host:@/tmp/.ICE-unix/1234,unix/host:/tmp/.ICE-unix/1234", []),
        ("TERM_SESSION_ID", "w0t0p0:123E4567-E89B-12D3-A456-426614174000", []),
        ("WINDOWID", "12345678901234567890123", []),
        ("VIRTUAL_ENV", "/home/ann/project/.venv", []),
        ("DATABASE_URL", "postgres://localhost/app", []),
    ],
)
def test_withheld_variable_is_secret_if_it_looks_like_one(name: str, value: str, secrets: list[str]) -> None:
    assert withheld_secrets({name: value}) == list(dict.fromkeys(secrets))


def console(*secrets: str) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(stream, Look(), redactor=Redactor(secrets, key=b"k")), stream


@all_rows("size", [1, 2, 5, 100])
def test_secret_split_over_pieces_is_never_shown(size: int) -> None:
    github, two = PLANTED["github"](), "two known words"
    shown, stream = console(VALUE, two)
    text = f"The key is {VALUE}, the other {github}; and {two}, a two known thing."
    for at in range(0, len(text), size):
        shown.text(text[at : at + size])
    shown.line("then a line")
    redact = Redactor([VALUE, two], key=b"k").redact
    assert stream.getvalue() == f"\n{redact(text)}\nthen a line\n"
    assert VALUE not in stream.getvalue()


def test_held_back_text_is_written_at_the_end() -> None:
    shown, stream = console(VALUE)
    seen = []
    for piece in ("The", " answer", " is", " 42", "."):
        shown.text(piece)
        seen.append(stream.getvalue())
    shown.end_text()
    assert seen == ["", "\nThe ", "\nThe answer ", "\nThe answer is ", "\nThe answer is "]
    assert stream.getvalue() == "\nThe answer is 42.\n"
    shown.text("Next")
    shown.end_text()
    assert stream.getvalue().endswith("42.\n\nNext\n")


def test_text_is_written_immediately_without_a_redactor() -> None:
    stream = io.StringIO()
    shown = Console(stream, Look())
    shown.text("wor")
    assert stream.getvalue() == "\nwor"


def test_the_last_line_of_a_running_command_shows_no_secret() -> None:
    shown, stream = console(VALUE)
    shown.live(f"first\nthe key {VALUE}\n")
    assert VALUE not in stream.getvalue()
    assert "  | the key [redacted:known:" in stream.getvalue()


def test_a_key_of_many_lines_is_known_by_those_that_were_printed_before() -> None:
    shown, stream = console()
    lines = [chance(ALNUM + "+/", 64) for _ in range(6)]
    shown.live("-----BEGIN PRIVATE KEY-----\n" + lines[0] + "\n")
    for line in lines[1:]:
        shown._live_at = time.monotonic() - LIVE_SECONDS
        shown.live(line + "\n")
    assert not any(line[:20] in stream.getvalue() for line in lines)
    assert stream.getvalue().count("[redacted:key_block:") == 6


def logs(program: Program) -> str:
    return "".join(path.read_text() for path in program.logs())


def shown_to_the_model(program: Program) -> str:
    """Return the last request without what the model and the person said themselves."""
    messages = program.players[-1].requests[-1]["messages"]
    assert isinstance(messages, list)
    others = [one for one in messages if isinstance(one, dict) and one["role"] in ("system", "tool")]
    assert len(others) == 3
    return json.dumps(others)


def test_a_run_leaves_no_secret_in_its_log_on_the_screen_or_with_the_model(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    secret, github = chance(ALNUM, 40), PLANTED["github"]()
    encoded = base64.b64encode(f"ann:{secret}".encode()).decode()
    in_workspace(".env", f"DEPLOY_TOKEN={secret}\nGH={github}\n")
    in_workspace("policy.toml", AUTO)
    program.environment |= {"DEPLOY_TOKEN": secret, "OPENAI_API_KEY": "sk-" + chance(ALNUM, 40)}
    script = replies(
        Reply(calls=(call("read_file", path=".env"),)),
        Reply(calls=(call("bash", command=f"cat .env; echo {encoded}; echo {secret} >&2"),)),
        Reply(text=f"The token is {secret}, the other one {github}."),
    )
    done = program.run(
        "run", "--base-url", program.serve(script), "--model", "scripted", "--policy",
        str(program.workspace / "policy.toml"), f"What is {secret}?",
    )  # fmt: skip
    assert done.code == 0, done.err
    for hidden in (secret, github, encoded, program.environment["OPENAI_API_KEY"]):
        assert hidden not in logs(program)
        assert hidden not in shown_to_the_model(program)
        assert hidden not in done.out + done.err
    mark = redactor_for(State.of(program.environment), {}, [secret]).redact(secret)
    for place in (logs(program), shown_to_the_model(program), done.out, done.err):
        assert mark in place
    assert any("masked" in record for record in program.records())


def test_two_runs_of_an_installation_mark_a_secret_alike(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    in_workspace("policy.toml", AUTO)
    program.environment["DEPLOY_TOKEN"] = secret = chance(ALNUM, 40)
    for _ in range(2):
        done = program.run(
            "run", "--base-url", program.serve(replies(Reply(text="Fine."))), "--model", "scripted", "--policy",
            str(program.workspace / "policy.toml"), f"What is {secret}?",
        )  # fmt: skip
        assert done.code == 0, done.err
    mark = redactor_for(State.of(program.environment), {}, [secret]).redact(secret)
    assert [mark in path.read_text() for path in program.logs()] == [True, True]
