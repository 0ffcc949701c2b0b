"""Proxies that the environment names, and TLS: the way to the server, and the words for each of its failures.

Each row runs against real servers on the loopback. `http://model.test` is an address that only a proxy can lead to.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from chat_wire import GOOD, Asked, Wire, http, reply
from rows import all_rows

from harness.errors import ModelError, ModelFault

VARIABLES = (
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE".split()
)
NOTHING_THERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def failed(url: str, attempts: int = 1, paths: Mapping[str, str] | None = None) -> ModelError:
    with pytest.raises(ModelError) as raised:
        Asked(url, attempts=attempts, certificate_paths=paths or {}).complete()
    return raised.value


ROUND = {
    "SOCKS before the loopback": ({"ALL_PROXY": "socks5://127.0.0.1:1"}, "127.0.0.1"),
    "an unknown protocol before the loopback": ({"ALL_PROXY": "socks://127.0.0.1:1/"}, "127.0.0.1"),
    "SOCKS before a host that goes round it": (
        {"ALL_PROXY": "socks5://127.0.0.1:1", "NO_PROXY": "example.org,0.0.0.0"},
        "0.0.0.0",
    ),
    "SOCKS before every host": ({"ALL_PROXY": "socks5://127.0.0.1:1", "NO_PROXY": "*"}, "0.0.0.0"),
    "SOCKS for the other protocol": ({"HTTPS_PROXY": "socks5://127.0.0.1:1"}, "0.0.0.0"),
    "in small letters": ({"all_proxy": "socks5://127.0.0.1:1", "no_proxy": "0.0.0.0"}, "0.0.0.0"),
}


@all_rows(("environment", "host"), ROUND)
def test_a_proxy_that_is_not_taken_is_not_built(
    environment: dict[str, str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Wire(GOOD) as wire:
        assert Asked(wire.url.replace("127.0.0.1", host), attempts=1).complete() == reply("Hi")


ROUND_IT = "NO_PROXY names hosts that are reached without a proxy."
UNUSABLE = {
    "SOCKS without its package": (
        {"ALL_PROXY": "socks5://ann:pass1234@127.0.0.1:1"},
        f"ALL_PROXY names the proxy socks5://127.0.0.1:1, which needs a package: pip install 'httpx2[socks]'. {ROUND_IT}",
    ),
    "an unknown protocol": (
        {"https_proxy": "socks://127.0.0.1:1"},
        (
            "HTTPS_PROXY names the proxy socks://127.0.0.1:1, whose protocol is not supported: http, https, socks5 and "
            f"socks5h are. {ROUND_IT}"
        ),
    ),
}


@all_rows(("environment", "text"), UNUSABLE)
def test_a_proxy_that_cannot_be_used_is_named_with_its_variable(
    environment: dict[str, str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    error = failed("https://model.test/v1")
    assert (str(error).replace("httpx[", "httpx2["), error.fault) == (text, ModelFault.SETTINGS)


ANSWERS = {
    "407 of a tunnel": ("https", 407, "407 Word. Put a user and a password into its address", 1),
    "403 of a tunnel": ("https", 403, f"403 Word. {ROUND_IT}", 1),
    "502 of a tunnel": ("https", 502, f"502 Word. {ROUND_IT}", 2),
    "407 of plain HTTP": ("http", 407, "407 Proxy Authentication Required. Put a user and a password", 1),
}


@all_rows(("scheme", "status", "text", "requests"), ANSWERS)
def test_a_proxy_that_refuses_is_named(
    scheme: str, status: int, text: str, requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Wire(*[http(status, b"go away")] * 2) as proxy:
        address = proxy.url.removesuffix("/v1")
        monkeypatch.setenv("ALL_PROXY", address.replace("//", "//ann:pass1234@"))
        error = str(failed(f"{scheme}://model.test/v1", attempts=2))
    assert f"The proxy {address} (ALL_PROXY) refused to connect to {scheme}://model.test/v1: {text}" in error
    assert "pass1234" not in error
    assert len(proxy.requests) == requests


def test_status_possibly_written_by_a_proxy_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(http(403, b"blocked by the company")) as proxy:
        address = proxy.url.removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", address)
        error = str(failed("http://model.test/v1"))
    assert error.endswith(f" The proxy {address} (HTTP_PROXY) may have answered in place of the server.")


def test_an_answer_through_a_proxy_is_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    with Wire(GOOD) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        assert Asked("http://model.test/v1", attempts=1).complete() == reply("Hi")
    assert proxy.heads[0].startswith("POST http://model.test/v1/chat/completions")


@all_rows("scheme", ["http", "https"])
def test_a_proxy_that_does_not_run_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", f"http://{NOTHING_THERE}")
    error = failed(f"{scheme}://model.test/v1")
    assert (error.fault, "Connection refused" in str(error)) == (ModelFault.CONNECTION, True)
    assert str(error).startswith(f"The connection to the proxy http://{NOTHING_THERE} (ALL_PROXY) failed: ")
    assert str(error).endswith(f". Is it running, and its address right? {ROUND_IT}")


# --- TLS -----------------------------------------------------------------------------------------------------------


class Certificate:
    """A certificate that signs itself, and its key."""

    def __init__(self, folder: Path, name: str = "IP:127.0.0.1", days: int = 2) -> None:
        self.path, key = str(folder / "certificate"), str(folder / "key")
        (folder / "extensions").write_text(f"subjectAltName={name}\n")
        for command in (
            "openssl req -newkey rsa:2048 -nodes -keyout key -out request -subj /CN=x",
            f"openssl x509 -req -in request -signkey key -days {days} -out certificate -extfile extensions",
        ):
            subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.path, key)


@contextmanager
def tls_server(context: ssl.SSLContext) -> Iterator[str]:
    """Yield the address of a server that ends after the handshake."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection, context.wrap_socket(connection, server_side=True) as wrapped:
                    wrapped.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/v1"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


OWN = "If your own authority signs it, set SSL_CERT_FILE to a file with that authority's certificate (PEM)."
CERTIFICATES: dict[str, tuple[dict[str, object], bool, dict[str, str], str]] = {
    "signed by itself": ({}, False, {}, OWN),
    "of an authority that only other programs are told of": (
        {},
        False,
        {"REQUESTS_CA_BUNDLE": "/etc/own.pem"},
        "REQUESTS_CA_BUNDLE is not read here: set SSL_CERT_FILE to /etc/own.pem.",
    ),
    "of another host": (
        {"name": "DNS:other.test"},
        True,
        {},
        "Is its address right? The certificate is for another name.",
    ),
    "expired": (
        {"days": -1},
        True,
        {},
        "Is this machine's clock right? Otherwise the server needs a new certificate.",
    ),
}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
@all_rows(("certificate", "trusted", "environment", "remedy"), CERTIFICATES)
def test_unverifiable_certificate_is_reported_with_a_remedy(
    certificate: dict[str, int | str],
    trusted: bool,
    environment: dict[str, str],
    remedy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Certificate(tmp_path, **certificate)  # type: ignore[arg-type]
    paths = {**environment, **({"SSL_CERT_FILE": made.path} if trusted else {})}
    for name, value in paths.items():
        monkeypatch.setenv(name, value)
    with tls_server(made.context) as url:
        error = failed(url, attempts=3, paths=paths)
    assert str(error).startswith(f"The certificate of {url} cannot be verified: ConnectError: ")
    assert str(error).endswith(f". {remedy}")


def test_list_of_folders_with_authorities_is_read_where_one_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = f"{tmp_path}{os.pathsep}{tmp_path / 'none'}"
    monkeypatch.setenv("SSL_CERT_DIR", folders)
    made = Certificate(tmp_path)
    with tls_server(made.context) as url:
        error = failed(url, paths={"SSL_CERT_DIR": folders})
    assert str(error).startswith(f"The certificate of {url} cannot be verified: ")


MISSING = {
    "a file": ("SSL_CERT_FILE", "none.pem", "SSL_CERT_FILE names {path}, which does not exist. "),
    "a folder": ("SSL_CERT_DIR", "none", "SSL_CERT_DIR names {path}, which does not exist. "),
    "a file without certificates": (
        "SSL_CERT_FILE",
        "text",
        "The certificates in {path} (SSL_CERT_FILE) cannot be read",
    ),
    "a folder as a file": ("SSL_CERT_FILE", "", "The certificates in {path} (SSL_CERT_FILE) cannot be read: Is a dir"),
}


@all_rows(("variable", "name", "text"), MISSING)
def test_authorities_that_cannot_be_read_are_named_with_their_variable(
    variable: str, name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("hello")
    path = str(tmp_path / name) if name else str(tmp_path)
    monkeypatch.setenv(variable, path)
    error = failed("https://model.test/v1", paths={variable: path})
    assert (str(error).startswith(text.format(path=path)), error.fault) == (True, ModelFault.SETTINGS)


def test_plain_http_to_a_server_of_tls_asks_for_the_other_address() -> None:
    alert = b"\x15\x03\x01\x00\x02\x02\x28"
    with Wire(alert * 3) as wire:
        assert str(failed(wire.url)).endswith(". The server does not speak HTTP there; try the address with https://.")
