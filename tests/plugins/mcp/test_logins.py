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
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from login_server import BROWSER, SECRET, LoginServer
from program import Done, Program
from rows import all_rows

from harness.errors import ToolError
from harness.plugins.mcp.login_answer import LoginAnswer
from harness.plugins.mcp.logins import LoginFile, StoredLogin
from harness.plugins.mcp.server_declaration import declared

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


def test_token_that_a_server_puts_into_its_list_is_masked(program: Program, far: LoginServer) -> None:
    scene = ConfiguredScene(program, (), url=far.url)
    far.echoes = True
    assert login(program).code == 0
    shown = program.said("mcp", "check", "srv")
    assert ("You sent Bearer [redacted:" in shown, far.token in shown) == (True, False)
    scene.saw_all()
    assert scene.run("mcp__srv__whoami").code == 0
    assert far.calls == ["whoami"]
    written = [path for path in program.state.rglob("*") if path.is_file() and path != file_of(program)]
    assert [path for path in written if far.token.encode() in path.read_bytes()] == []


def test_token_of_a_variable_is_masked_in_the_list_of_its_server(program: Program, far: LoginServer) -> None:
    far.echoes = True
    far.tokens()
    ConfiguredScene(program, (), url=far.url, bearer="WORD")
    done = program.run("mcp", "check", "srv", env={**program.environment, "WORD": far.token})
    assert ("You sent Bearer [redacted:" in done.out, far.token in done.out) == (True, False), done
    assert far.token not in (program.state / "harness" / "mcp" / "srv.json").read_text()


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


# -- a client that logs in by itself


def robot(program: Program, far: LoginServer, **keys: str) -> tuple[ConfiguredScene, dict[str, str]]:
    table = {"client": "robot", "issuer": far.issuer, **({"client_secret": "ROBOT"} | keys)}
    scene = ConfiguredScene(program, (), url=far.url, **{key: value for key, value in table.items() if value})
    return scene, {**program.environment, "ROBOT": SECRET}


def test_client_logs_in_by_its_secret_and_its_token_is_kept_and_masked(program: Program, far: LoginServer) -> None:
    scene, environment = robot(program, far)
    checked = program.run("mcp", "check", env=environment)
    assert (checked.code, checked.out.startswith("srv: ok")) == (0, True), checked
    assert (far.clients, far.asked) == ([f"robot {SECRET}"], [])
    assert file_of(program).stat().st_mode & 0o777 == 0o600
    assert SECRET not in file_of(program).read_text()
    scene.saw_all()
    program.environment["ROBOT"] = SECRET
    assert scene.run("mcp__srv__whoami").code == 0
    assert (far.calls, far.issued) == (["whoami"], 1)  # by the token of the check
    written = [path for path in program.state.rglob("*") if path.is_file() and path != file_of(program)]
    held = [path for path in written if any(word.encode() in path.read_bytes() for word in (far.token, SECRET))]
    assert held == []
    (log,) = program.logs()
    assert "you sent Bearer [redacted:" in log.read_text()


@all_rows(
    ("make", "why"),
    {
        "RSA": (lambda: rsa.generate_private_key(65537, 2048), ""),
        "EC": (lambda: ec.generate_private_key(ec.SECP256R1()), ""),
        "Ed25519": (ed25519.Ed25519PrivateKey.generate, ""),
        "X25519, which signs nothing": (x25519.X25519PrivateKey.generate, "must hold a private key (PEM"),
    },
)
def test_client_logs_in_by_its_key(program: Program, far: LoginServer, make: Any, why: str) -> None:
    key = make()
    far.key, far.clients = key.public_key(), []
    file_of(program).unlink(missing_ok=True)
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (program.home / "robot.pem").write_bytes(key.private_bytes(*forms))
    _, environment = robot(program, far, client_secret="", client_key="~/robot.pem")
    checked = program.run("mcp", "check", env={**environment, "HOME": str(program.home)})
    assert (checked.code, far.clients) == ((1, []) if why else (0, ["robot by its key"])), checked
    assert why in checked.out


@all_rows(
    ("change", "why"),
    {
        "wrong secret": (
            {"ROBOT": "wr0ng-secret-of-the-robot"},
            "failed: OAuthTokenError: Token exchange failed (401)",
        ),
        "no secret": ({"ROBOT": ""}, "the variable ROBOT, which holds its client's secret, is not set"),
    },
)
def test_client_that_is_refused_is_told_as_that(
    program: Program, far: LoginServer, change: dict[str, str], why: str
) -> None:
    _, environment = robot(program, far)
    checked = program.run("mcp", "check", env={**environment, **change})
    assert (checked.code, why in checked.out) == (1, True), checked
    assert "wr0ng" not in checked.out + checked.err
    assert not file_of(program).exists()


def test_secret_of_a_client_goes_to_its_issuer_alone(program: Program, far: LoginServer) -> None:
    _, environment = robot(program, far)
    with LoginServer() as other:
        far.authorizer = other.issuer
        checked = program.run("mcp", "check", env=environment)
        assert (checked.code, other.clients) == (1, [])
        assert f"the login at {far.issuer} failed" in checked.out


def test_token_of_a_user_is_not_taken_for_that_of_a_client(program: Program, far: LoginServer) -> None:
    ConfiguredScene(program, (), url=far.url, client="robot")
    assert login(program).code == 0
    _, environment = robot(program, far)
    assert program.run("mcp", "check", env=environment).code == 0
    assert far.clients[1:] == [f"robot {SECRET}"]
    stored = json.loads(file_of(program).read_text())
    file_of(program).write_text(json.dumps({**stored, "expires": 1.0}))
    assert program.run("mcp", "check", env=environment).code == 0
    assert len(far.clients) == 3  # expired: it asks for another
    done = login(program)
    assert done.code == 2
    assert "has a client that logs in by itself, and takes no login: `harness mcp check srv` tries it" in done.err


def test_call_that_a_client_has_no_right_to_is_told(program: Program, far: LoginServer) -> None:
    scene, environment = robot(program, far)
    program.run("mcp", "check", env=environment)
    scene.saw_all()
    far.wants_scope = "write"
    program.environment["ROBOT"] = SECRET
    assert scene.run("mcp__srv__whoami").code == 0  # it may ask for more by itself
    assert (far.calls, far.scope, far.asked) == (["whoami"], "write", [])


@all_rows(
    ("table", "why"),
    {
        "no client": ({"issuer": "https://a.example", "client_secret": "S"}, "issuer: needs `client`"),
        "neither": ({"issuer": "https://a.example", "client": "c"}, "one of client_secret and client_key"),
        "both": (
            {"issuer": "https://a.example", "client": "c", "client_secret": "S", "client_key": "/k"},
            "one of client_secret and client_key",
        ),
        "with a token": (
            {"issuer": "https://a.example", "client": "c", "client_secret": "S", "bearer": "T"},
            "issuer: not allowed together with bearer",
        ),
        "a key without an issuer": ({"client": "c", "client_key": "/k"}, "client_key: needs `issuer`"),
        "an unencrypted issuer": (
            {"issuer": "http://a.example", "client": "c", "client_secret": "S"},
            "issuer: must begin with https://",
        ),
        "a key in the workspace": (
            {"issuer": "https://a.example", "client": "c", "client_key": "key.pem"},
            "client_key: must be a path that begins with / or ~/",
        ),
    },
)
def test_client_that_is_declared_in_part_is_refused(table: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        declared("srv", {"url": "https://m.example/mcp", **table})


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
