"""Configuration by the real program: what is sent where, what a workspace cannot change, and what is shown of it."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import socket
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pexpect
import pytest
from program import made_program
from rows import all_rows

from harness.models.scripted import Failure, Reply, call, replies, say
from harness.terminal.console import Console, Look

if TYPE_CHECKING:
    from program import Program

DONE = say("Done.")
AUTO = 'version = 1\n[tools]\ndefault = "auto"\nread_file = "auto"\nbash = "auto"\n'


def write_config(program: Program, text: str) -> Path:
    path = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def shown(program: Program, *words: str) -> dict[str, tuple[object, str]]:
    """Return every setting and its origin, as `config show --json` has them."""
    done = program.run("config", "show", "--json", *words)
    assert (done.code, done.err) == (0, "")
    return {name: (s["value"], s["origin"]) for name, s in json.loads(done.out)["settings"].items()}


# --- the layers ---


def test_flags_over_environment_over_file_over_defaults(program: Program) -> None:
    """Each layer taken away in turn, by what the server is really asked for."""
    path = write_config(program, f'model = "of-file"\nbase_url = "{program.serve(replies(DONE, DONE, DONE, DONE))}"\n')
    program.environment["HARNESS_MODEL"] = "of-environment"
    flagged = program.run("run", "go", "--model", "of-flag")
    from_environment = program.run("run", "go")
    del program.environment["HARNESS_MODEL"]
    from_file = program.run("run", "go")
    path.write_text(path.read_text().partition("\n")[2])
    by_default = program.run("run", "go")
    assert [d.code for d in (flagged, from_environment, from_file, by_default)] == [0, 0, 0, 0], by_default.err
    asked = [request["model"] for request in program.players[0].requests]
    assert asked == ["of-flag", "of-environment", "of-file", "gpt-5"]


def test_an_address_by_flag_environment_and_file(program: Program) -> None:
    """One server each: only the one that counts is asked."""
    urls = [program.serve(replies(DONE)) for _ in range(4)]
    write_config(program, f'base_url = "{urls[0]}"\n')
    asked = []
    for variable, url in (("", ""), ("OPENAI_BASE_URL", urls[1]), ("HARNESS_BASE_URL", urls[2])):
        program.environment |= {variable: url} if variable else {}
        assert program.run("run", "go").code == 0
        asked.append([len(player.requests) for player in program.players])
    assert program.run("run", "go", "--base-url", urls[3]).code == 0
    asked.append([len(player.requests) for player in program.players])
    assert asked == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_responses_api_is_used_if_configured(program: Program) -> None:
    """By the file; the answer comes through the second adapter."""
    write_config(program, f'base_url = "{program.serve(replies(DONE))}"\napi = "responses"\n')
    done = program.run("run", "go")
    assert (done.code, done.out) == (0, "Done.\n"), done.err


def test_deadlines_of_the_file_reach_the_wire(program: Program) -> None:
    """A bound on the reply that is too small for any ends the run with the provider's exit code."""
    write_config(program, f'base_url = "{program.serve(replies(DONE))}"\nattempts = 1\n[bounds]\nbytes = 10\n')
    done = program.run("run", "go")
    assert (done.code, "10" in done.err) == (6, True), done.err


# --- what is wrong ---

REFUSED = {
    "a slip": ('modle = "x"\n', ":1: modle: unknown key; did you mean model?"),
    "a key in the file": ('api_key = "sk-0123456789"\n', ":1: api_key: keys are never read from files"),
    "no TOML": ("model =\n", ": is not TOML"),
}


@pytest.mark.parametrize("words", [("run", "go"), ("config", "show"), ("doctor", "--model")], ids=" ".join)
@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_invalid_configuration_file_stops_the_start(
    program: Program, words: tuple[str, ...], text: str, message: str
) -> None:
    """Exit 2, one line with file, line and key; no request, no log."""
    path = write_config(program, text)
    program.environment["OPENAI_BASE_URL"] = program.serve(replies(DONE))
    done = program.run(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert done.err.startswith(f"harness: {path}{message}")
    assert "sk-0123456789" not in done.err
    assert (program.players[0].requests, program.logs()) == ([], [])


def test_tables_that_are_not_understood_are_refused_as_a_run_refuses_them(program: Program) -> None:
    path = write_config(program, '[[tool]]\nname = "x"\ncolour = "red"\n')
    shown, run = program.run("config", "show"), program.run("run", "go")
    assert (shown.code, shown.out, shown.err) == (run.code, run.out, run.err) == (2, "", shown.err)
    assert f"{path}:3: [[tool]]" in shown.err
    assert "unknown field 'colour'" in shown.err


@all_rows(
    ("words", "code"),
    [(("config", "show"), 0), (("mcp", "list"), 0), (("mcp", "check"), 2), (("run", "go"), 2)],
    anew={"program": made_program},
)
def test_commands_without_a_workspace_read_it_in_its_own_folder(
    program: Program, words: tuple[str, ...], code: int
) -> None:
    """What makes calls there refuses it, since a call could change it."""
    folder = write_config(program, 'model = "m"\n').parent.parent
    done = program.run(*words, cwd=folder)
    assert (done.code, "the file is inside the workspace" in done.err) == (code, code == 2), done


@all_rows(
    "words",
    [("--version",), ("policy", "explain", "ls"), ("audit", "list"), ("config", "path")],
    anew={"program": made_program},
)
def test_commands_that_talk_to_no_model_do_not_read_it(program: Program, words: tuple[str, ...]) -> None:
    write_config(program, "this is not TOML\n")
    assert program.run(*words).code == 0


def test_key_of_another_provider_is_not_sent(program: Program) -> None:
    program.environment["OPENAI_API_KEY"] = "sk-0123456789"
    write_config(program, f'base_url = "{program.serve(replies(DONE))}"\nkey_variable = "CORP_KEY"\n')
    done = program.run("run", "go")
    assert (done.code, "wants a key: export CORP_KEY" in done.err) == (2, True), done.err
    assert program.players[0].requests == []


def test_a_key_in_a_variable_of_any_name_is_masked_in_the_log(program: Program) -> None:
    key = "corporate-0123456789"
    program.environment["CORP_LLM"] = key
    (program.workspace / "notes").write_text(f"do not tell: {key}\n")
    url = program.serve(replies(Reply(calls=(call("read_file", path="notes"),)), DONE))
    write_config(program, f'base_url = "{url}"\nkey_variable = "CORP_LLM"\n')
    assert program.run("run", "go").code == 0
    log = program.logs()[0].read_text()
    assert (key in log, "[redacted:known:" in log) == (False, True)


def heard(program: Program, *words: str) -> str:
    """Return the head of the one request that the program sends, in small letters."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        process = program.start(
            "doctor", "--model", "m", "--base-url", f"http://127.0.0.1:{server.getsockname()[1]}", *words
        )
        connection, _ = server.accept()
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        process.communicate(timeout=120)
    return head.partition(b"\r\n\r\n")[0].decode().lower()


def test_openai_variables_are_sent_to_openai_only(program: Program) -> None:
    """Neither its key nor what the SDK reads beside it. With OpenAI's own name the same variables are sent."""
    program.environment |= {
        "OPENAI_API_KEY": "of-openai-1", "OPENAI_ADMIN_KEY": "of-openai-2", "OPENAI_ORG_ID": "of-openai-3",
        "OPENAI_PROJECT_ID": "of-openai-4", "OPENAI_CUSTOM_HEADERS": "x-more: of-openai-5",
    }  # fmt: skip
    head = heard(program, "--provider", "vllm")
    assert ("of-openai" in head, "authorization: bearer none" in head) == (False, True)
    assert ("of-openai" in heard(program), "of-openai-3" in heard(program)) == (True, True)  # a proxy of one's own
    own = heard(program, "--provider", "openai")
    assert ("bearer of-openai-1" in own, "of-openai-3" in own, "of-openai-2" in own) == (True, True, False)


# --- the workspace ---


def test_workspace_files_never_choose_endpoint_key_or_log(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    """Each kind of file that some program would read, and all together, in the folder in which the harness starts."""
    evil, good = program.serve(replies(DONE)), program.serve(replies(DONE))
    config = f'base_url = "{evil}"\nmodel = "evil"\nkey_variable = "OTHER_KEY"\n'
    variables = f"OPENAI_BASE_URL={evil}\nHARNESS_BASE_URL={evil}\nOPENAI_API_KEY=evil\nHARNESS_MODEL=evil\n"
    for name in (
        "config.toml", "harness.toml", "harness/config.toml", ".harness/config.toml", ".config/harness/config.toml",
        ".harness.toml", "harness/harness/config.toml",
    ):  # fmt: skip
        in_workspace(name, config)
    for name in (".env", ".env.local", ".envrc", ".harness/.env", ".harness/environment"):
        in_workspace(name, variables)
    in_workspace("pyproject.toml", f'[tool.harness]\nbase_url = "{evil}"\nlog = "here.jsonl"\nmodel = "evil"\n')
    in_workspace("setup.cfg", f"[harness]\nbase_url = {evil}\n")
    in_workspace("sitecustomize.py", f"import os\nos.environ['OPENAI_BASE_URL'] = {evil!r}\n")
    program.environment |= {"OPENAI_BASE_URL": good, "OPENAI_API_KEY": "sk-0123456789", "XDG_CONFIG_HOME": "."}
    done = program.run("run", "go")
    assert (done.code, done.out) == (0, "Done.\n")
    assert ([len(player.requests) for player in program.players], program.players[1].requests[0]["model"]) == (
        [0, 1],
        "gpt-5",
    )
    assert len(program.logs()) == 1, "in the state folder"
    assert list(program.workspace.rglob("*.jsonl")) == []


def test_policy_in_the_workspace_never_loosens_the_rules(
    program: Program, in_workspace: Callable[[str, str], Path]
) -> None:
    in_workspace(".harness/policy.toml", AUTO)
    script = replies(Reply(calls=(call("bash", command="touch made"),)), DONE)
    assert program.run("run", "go", "--base-url", program.serve(script)).code == 7
    assert not (program.workspace / "made").exists()


def test_a_configuration_in_the_workspace_refuses_to_start(program: Program) -> None:
    """The folder named by XDG_CONFIG_HOME, and a link of the user's that leads there."""
    config = program.workspace / "conf" / "harness"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'base_url = "{program.serve(replies(DONE))}"\n')
    for home in (program.workspace / "conf", program.home / "link"):
        program.environment["XDG_CONFIG_HOME"] = str(home)
        if home.name == "link":
            home.symlink_to(program.workspace / "conf")
        for words in (("run", "go"), ("doctor", "--model")):
            done = program.run(*words)
            assert done.code == 2
            assert "workspace" in done.err
    assert program.players[0].requests == []


# --- what is shown ---


def test_path_shows_the_expected_file(program: Program) -> None:
    done = program.run("config", "path")
    assert (done.code, done.out) == (0, f"{program.environment['XDG_CONFIG_HOME']}/harness/config.toml\n")


def test_shown_configuration_is_toml_that_loads_to_the_same(program: Program) -> None:
    """What is shown, written to the file, holds alike; no key is in it."""
    program.environment |= {"CORP_KEY": "sk-0123456789", "OPENAI_API_KEY": "sk-9876543210"}
    path = write_config(
        program,
        'base_url = "https://llm.example.org/v1"\nkey_variable = "CORP_KEY"\nmodel = "a\\"b"\n'
        '[prices."a\\"b"]\ninput = 1\noutput = 2\n[prices.other]\ninput = 3\noutput = 4\n[deadlines]\nidle = 3\n',
    )
    first = program.run("config", "show")
    assert (first.code, first.err, "sk-" in first.out) == (0, "", False)
    assert "# key: CORP_KEY is set" in first.out.splitlines()
    table = tomllib.loads(first.out)
    assert (table["model"], table["deadlines"]["idle"]) == ('a"b', 3.0)
    assert table["prices"] == {'a"b': {"input": 1.0, "output": 2.0}, "other": {"input": 3.0, "output": 4.0}}
    path.write_text(first.out)
    again = program.run("config", "show")
    assert (again.code, again.out) == (0, first.out)


def test_show_lists_origins(program: Program) -> None:
    path = write_config(program, '\nmodel = "m"\nattempts = 2\n[deadlines]\nidle = 3\n')
    program.environment["HARNESS_API"] = "responses"
    found = shown(program, "--base-url", "http://user:secret@127.0.0.1:1/v1?key=secret")
    assert {name: value for name, value in found.items() if value[1] != "default"} == {
        "model": ("m", f"{path}:2"),
        "base_url": ("http://127.0.0.1:1/v1", "flag --base-url"),
        "api": ("responses", "environment HARNESS_API"),
        "attempts": (2, f"{path}:3"),
        "deadlines.idle": (3.0, f"{path}:5"),
    }
    lines = program.run("config", "show", "--origin", "--provider", "ollama").out.splitlines()
    assert 'provider = "ollama"  # flag --provider' in lines
    assert f'model = "m"  # {path}:2' in lines
    assert "# key: none is wanted" in lines


def test_header_values_are_hidden(program: Program) -> None:
    write_config(program, '[extra_headers]\nX-Team = "of-file"\n[models.m.extra_headers]\nX-Other = "of-file"\n')
    by_flag = ("--set", "extra_headers.X-More=of-flag")
    for words in ((), ("--origin",), ("--json",)):
        done = program.run("config", "show", *words, *by_flag)
        assert (done.code, "of-file" in done.out, "of-flag" in done.out) == (0, False, False)
        assert all(name in done.out for name in ("x-team", "x-other", "x-more"))
    tomllib.loads(program.run("config", "show").out)


def test_show_needs_neither_key_nor_provider(program: Program) -> None:
    done = program.run("config", "show")
    assert (done.code, "# key: OPENAI_API_KEY is NOT set" in done.out) == (0, True)


# --- a limit of cost ---

NO_PRICES = "a limit of cost (--max-cost, or cost in a policy) needs the prices of 'gpt-5'"


def test_cost_limit_without_prices_stops_the_start(program: Program) -> None:
    policy = program.home / "policy.toml"
    policy.write_text("version = 1\n[limits]\ncost = 1\n")
    url = program.serve(replies(DONE))
    for words in (("--max-cost", "0.5"), ("--policy", str(policy))):
        done = program.run("run", "go", "--base-url", url, *words)
        assert (done.code, NO_PRICES in done.err, '[prices."gpt-5"]' in done.err) == (2, True, True), done.err
    assert (program.players[0].requests, program.logs()) == ([], [])


def test_a_limit_of_cost_with_prices_runs(program: Program) -> None:
    write_config(program, '[prices."gpt-5"]\ninput = 1\noutput = 2\n')
    done = program.run("run", "go", "--base-url", program.serve(replies(DONE)), "--max-cost", "0.5")
    assert (done.code, done.out) == (0, "Done.\n"), done.err


# --- the wait before a request is sent again ---

COUNT = """
import sys
from harness.terminal.console import Console, Look

now = [0.0]
def sleep(seconds):
    now[0] += seconds
Console(sys.stdout, Look()).countdown(2.25, monotonic=lambda: now[0], sleep=sleep)
print("on after", now[0])
"""


def test_wait_counts_down_on_one_line_of_a_terminal() -> None:
    child = pexpect.spawn(sys.executable, ["-c", COUNT], encoding="utf-8", timeout=60)
    child.expect(pexpect.EOF)
    frames = [frame.strip() for frame in str(child.before).split("\r")]
    assert [frame for frame in frames if frame] == [
        "again in 3 s (Ctrl-C stops)",
        "again in 2 s (Ctrl-C stops)",
        "again in 1 s (Ctrl-C stops)",
        "on after 2.25",
    ]


def test_interrupt_ends_the_wait_immediately() -> None:
    """On a terminal; the line is gone afterwards."""
    leader, follower = pty.openpty()
    code = (
        "import signal, sys\nfrom harness.terminal.console import Console, Look\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "try:\n    Console(sys.stdout, Look()).countdown(1000)\n"
        "except KeyboardInterrupt:\n    print('stopped')\n"
    )
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, "-c", code],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, follower, 1), (os.POSIX_SPAWN_CLOSE, leader)],
    )
    os.close(follower)
    seen = b""
    while b"again in" not in seen:
        seen += os.read(leader, 4096)
    os.kill(process, signal.SIGINT)
    while b"stopped" not in seen:
        seen += os.read(leader, 4096)
    assert os.waitpid(process, 0)[1] == 0
    os.close(leader)


def test_wait_is_silent_on_a_pipe(program: Program) -> None:
    """The retry line says it already."""
    url = program.serve(replies(Failure(status=503, headers=(("retry-after", "1"),)), DONE))
    done = program.run("run", "go", "--base-url", url)
    assert (done.code, len(program.players[0].requests), "(Ctrl-C stops)" in done.err) == (0, 2, False)
    now, slept, pipe = [0.0], [], io.StringIO()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    Console(pipe, Look()).countdown(2.25, monotonic=lambda: now[0], sleep=sleep)
    assert (slept, pipe.getvalue()) == ([2.25], "")
