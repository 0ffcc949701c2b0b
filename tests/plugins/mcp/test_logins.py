"""Logins at servers at a URL: what a person does, what a session sends, and that no token is ever seen."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client_scene import ClientScene
from configured_scene import ConfiguredScene
from login_server import BROWSER, LoginServer
from program import Done, Program
from rows import all_rows

from harness.errors import ToolError
from harness.plugins.mcp.login_answer import LoginAnswer
from harness.plugins.mcp.logins import LoginFile, StoredLogin

WANTS = "the server wants a login: harness mcp login srv"


@pytest.fixture
def far() -> Iterator[LoginServer]:
    with LoginServer() as server:
        yield server


def login(program: Program, browser: str = BROWSER) -> Done:
    return program.run("mcp", "login", "srv", env={**program.environment, "BROWSER": browser})


def file_of(program: Program) -> Path:
    return program.state / "harness" / "mcp" / "srv.login"


def test_login_lets_later_sessions_in(program: Program, far: LoginServer) -> None:
    scene = ConfiguredScene(program, (), url=far.url)
    before = program.run("mcp", "check")
    assert (before.code, WANTS in before.out) == (1, True)
    assert far.asked == []
    done = login(program)
    assert done.code == 0, done
    server, issuer = far.url.split("/")[2], far.issuer.split("/")[2]
    first, address, waits, last = done.out.splitlines()
    assert first == f"srv at {server} wants a login at {issuer}, which {server} names for it. Open this page:"
    assert address.startswith(f"{far.issuer}/authorize?")
    assert re.fullmatch(r"waiting for the browser, until \d\d:\d\d; Ctrl-C ends it", waits)
    assert last == "srv: logged in; the server lists 1 tool"
    assert file_of(program).stat().st_mode & 0o777 == 0o600
    assert program.said("mcp", "check").startswith("srv: ok")
    scene.saw_all()
    assert scene.run("mcp__srv__whoami").code == 0
    assert far.calls == ["whoami"]
    # The server sends the token back, and that is masked wherever it could be written.
    (log,) = program.logs()
    assert "you sent Bearer [redacted:" in log.read_text()
    written = [path for path in program.state.rglob("*") if path.is_file() and path != file_of(program)]
    assert [path for path in written if far.token.encode() in path.read_bytes()] == []
    assert program.said("mcp", "logout", "srv") == "srv: the login is forgotten here\n"
    assert WANTS in program.run("mcp", "check").out


def test_failed_login_stores_nothing(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url)
    far.refuses = True
    done = login(program)
    assert (done.code, "refused the login: access_denied" in done.err) == (2, True)
    assert not file_of(program).exists()


@all_rows(
    "authorizer",
    {
        "an unencrypted host": "http://192.0.2.7",
        "a service of the cloud": "http://169.254.169.254/latest",
    },
)
def test_login_reaches_other_hosts_by_https_alone(program: Program, far: LoginServer, authorizer: str) -> None:
    ConfiguredScene(program, (), url=far.url)
    far.authorizer = authorizer
    done = login(program)
    assert (done.code, "is not reached by https" in done.err) == (2, True), done
    assert far.asked == []


def test_expired_token_is_renewed(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url)
    assert login(program).code == 0
    stored = json.loads(file_of(program).read_text())
    file_of(program).write_text(json.dumps({**stored, "expires": 1.0}))
    assert program.said("mcp", "check").startswith("srv: ok")
    assert (far.renewals, far.issued) == (1, 2)
    stored = json.loads(file_of(program).read_text())
    assert (stored["tokens"]["refresh_token"], file_of(program).stat().st_mode & 0o777) == (far.refresh, 0o600)


def test_refused_token_is_renewed_once_and_then_a_login_is_wanted(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url)
    assert login(program).code == 0
    stored = json.loads(file_of(program).read_text())
    file_of(program).write_text(json.dumps({**stored, "tokens": {**stored["tokens"], "access_token": "old-one"}}))
    assert program.said("mcp", "check").startswith("srv: ok")
    assert far.renewals == 1
    far.tokens()  # now neither the token nor the refresh token that are stored count
    assert WANTS in program.run("mcp", "check").out
    assert far.asked[1:] == []


def test_login_of_another_address_is_not_sent(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url)
    assert login(program).code == 0
    with LoginServer() as other:
        ConfiguredScene(program, (), url=other.url)
        other.issued = far.issued  # it would accept the token
        assert WANTS in program.run("mcp", "check").out


def test_call_that_lacks_rights_is_told_and_the_next_login_asks_for_them(program: Program, far: LoginServer) -> None:
    scene = ConfiguredScene(program, (), url=far.url)
    assert login(program).code == 0
    program.said("mcp", "check")
    scene.saw_all()
    far.wants_scope = "write"
    done = scene.run("mcp__srv__whoami")
    assert (far.calls, f"a call was refused: {WANTS}" in done.err) == ([], True), done
    assert login(program).code == 0
    assert [query.get("scope") for query in far.asked] == [None, "write"]
    scene.run("mcp__srv__whoami")
    assert far.calls == ["whoami"]


def test_secret_of_a_declared_client_goes_to_one_authorization_server_alone(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url, client="mine", client_secret="SECRET")
    environment = {**program.environment, "BROWSER": BROWSER, "SECRET": "s3cret-of-the-client-1"}
    assert program.run("mcp", "login", "srv", env=environment).code == 0
    assert far.clients == ["mine s3cret-of-the-client-1"]
    with LoginServer() as other:  # the server names another one now
        far.authorizer = other.issuer
        program.run("mcp", "login", "srv", env=environment)
        assert [client.split()[0] for client in other.clients] == ["client-1"]
        assert "s3cret" not in " ".join(other.clients)


@all_rows(
    ("table", "why"),
    {
        "a command": ({"command": ["true"]}, "is started here, and takes no login"),
        "a token": ({"url": "https://example.org/mcp", "bearer": "TOKEN"}, "has a token of its own"),
    },
)
def test_login_without_need_is_refused(program: Program, table: dict[str, Any], why: str) -> None:
    ConfiguredScene(program, table.pop("command", ()), **table)
    done = login(program)
    assert (done.code, why in done.err) == (2, True)


def test_refused_token_of_a_variable_is_told_as_that(tmp_path: Path, far: LoginServer) -> None:
    with ClientScene(tmp_path, {"srv": {"url": far.url, "bearer": "T"}}, variables={"T": "wrong"}) as scene:
        assert scene.report("srv").reason == "the server refuses the token in the variable T (401)"


def test_server_that_ended_the_session_gets_another_and_no_call_twice(tmp_path: Path, far: LoginServer) -> None:
    far.tokens()
    with ClientScene(tmp_path, {"srv": {"url": far.url, "bearer": "T"}}, variables={"T": far.token}) as scene:
        scene.output("mcp__srv__whoami")
        far.session += 1
        with pytest.raises(ToolError, match="it ended the session"):
            scene.output("mcp__srv__whoami")
        assert far.calls == ["whoami"]
        scene.output("mcp__srv__whoami")
        assert far.calls == ["whoami", "whoami"]


# -- the file, and the answer


@all_rows(
    "harm",
    {
        "others may read it": lambda path: path.chmod(0o640),
        "not JSON": lambda path: path.write_text("{"),
        "a field too many": lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), "x": 1})),
        "a link": lambda path: (path.rename(f"{path}.old"), path.symlink_to(f"{path}.old")),
    },
)
def test_harmed_file_counts_as_no_login(tmp_path: Path, harm: Any) -> None:
    file = LoginFile(str(tmp_path / "mcp"), "srv", "https://example.org/mcp")
    kept = StoredLogin(url="https://example.org/mcp", tokens={"access_token": "a"}, expires=time.time())
    file.write(kept)
    assert file.read() == kept
    harm(tmp_path / "mcp" / "srv.login")
    assert file.read() is None


def test_login_counts_for_its_address_alone(tmp_path: Path) -> None:
    LoginFile(str(tmp_path), "srv", "https://a.example/mcp").write(StoredLogin(url="https://a.example/mcp"))
    assert LoginFile(str(tmp_path), "srv", "https://b.example/mcp").read() is None
    assert os.listdir(tmp_path) == ["srv.login"]


def status_of(address: str) -> int:
    try:
        with urllib.request.urlopen(address) as page:
            return int(page.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_answer_with_another_state_is_ignored() -> None:
    with LoginAnswer() as answer:
        assert status_of(f"{answer.address}?state=&code=evil") == 404  # before anything is expected
        answer.expect("s1")
        for wrong in ("?state=s2&code=evil", "?code=evil", "", "/more?state=s1&code=evil"):
            assert status_of(f"{answer.address}{wrong}") == 404
        assert answer.wait(0) is None
        assert status_of(f"{answer.address}?state=s1&code=good") == 200
        assert status_of(f"{answer.address}?state=s1&code=second") == 404
        assert answer.wait(0) == {"state": "s1", "code": "good"}
