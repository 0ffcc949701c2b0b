"""Which files of a folder a container build sends."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from rows import all_rows

from harness.files.build_context import sent_files
from harness.files.untracked import untracked_files

NAMES = (
    "a", "b/a", "b/c.log", "keep.log", "c.log", "sub/x", "sub/y", "sub/deep/x", "sub/deep/z", "a.txt", "x1y", "deep/x", "z/q",
    "sub/a/c", "#a", "a+b", "aab", ".env", "sub/.env", "d/e/x", "d/e/f/x", "dockerfile", "ab", "a.dockerignore",
)  # fmt: skip
LINES = (
    "/a", "b/", "*.log", "!keep.log", "sub/*", "!sub/x", "sub/deep/", "**/z", "sub/**", "a/**/c", "**", "*", "?x", "[ab]",
    " a", "a ", "#a", "!", "/", "//", "!*.txt", "*.txt", "x*y", "**/deep/x", "deep/x", "!deep", "a\r", "!sub/", "./a", "!./a",
    "b/../a", ".", "..", "!.", "a**", "!a**", "**/sub", "!sub/deep/x", "!**/x", "\ufeffa", "\xa0!a", "\xa0a", "\x1ca",
    "\x1c!a", "a+b", "!a+b", ".env", "**/.env", "!.env", "*v", "*/*", "d/**/x", "!d/**", "dockerfile", "*ignore",
)  # fmt: skip


@all_rows("pattern", ["*a*a*a*a*ab", "*a*/*a*/*a*/*a*/b", "**/**/**/**/ab"])
def test_slow_pattern_is_ignored(pattern: str, tmp_path: Path) -> None:
    name = "/".join(["a" * 200] * 10)
    (tmp_path / ".dockerignore").write_text(f"{pattern}\n" * 100)
    assert sent_files([name] * 1_000, "", [str(tmp_path / ".dockerignore")]) == [name] * 1_000
    (tmp_path / "a" / ("a" * 200)).mkdir(parents=True)
    (tmp_path / "a" / ("a" * 200) / ("a" * 200)).write_text("")
    (tmp_path / "exclude").write_text(pattern)
    assert untracked_files(str(tmp_path / "a"), (), str(tmp_path / "exclude"), ignored=True) == ([], True)


@all_rows(
    ("text", "sent"),
    [
        (".env", "sub/.env a/b"),
        ("**/.env", "a/b"),
        ("/sub/\na", ".env"),
        ("*\n!a", "a/b"),
        ("*\n!sub\n**/.env", ""),
        ("!x\nsub\na\n.env", "sub/.env a/b"),
        ("!x\n**/sub/**\na/b\n.env", ""),
        ("*\n!a?", ".env sub/.env a/b"),
        ("*a*b*c*d*e*\n#sub\n\n[s]ub\n./.env", "sub/.env a/b"),
    ],
)
def test_ignore_file_leaves_files_out(text: str, sent: str, tmp_path: Path) -> None:
    ignore_file = tmp_path / ".dockerignore"
    ignore_file.write_text(text)
    names = ["Dockerfile", ".env", "sub/.env", "a/b"]
    assert sent_files(names, "", [str(ignore_file)]) == ["Dockerfile", *sent.split()]
    below = [f"app/{name}" for name in names]
    assert sent_files(below, "app/", [str(ignore_file)]) == [f"app/{name}" for name in ["Dockerfile", *sent.split()]]


def test_each_ignore_file_must_leave_a_file_out(tmp_path: Path) -> None:
    first, second, missing = (str(tmp_path / name) for name in ("first", "second", "missing"))
    Path(first).write_text("a\nb")
    Path(second).write_text("b\nc")
    assert sent_files(["a", "b", "c"], "", [first, missing, second]) == ["a", "c"]
    assert sent_files(["a", "b", "c"], "", [missing, second]) == ["a", "b", "c"]
    Path(second).write_bytes(b"a\n" * 100_000)
    assert sent_files(["a", "b"], "", [first, second]) == ["a", "b"]


class _Daemon(BaseHTTPRequestHandler):
    """Receives the context of a build as Docker's client sends it."""

    protocol_version = "HTTP/1.1"
    sent = b""

    def log_message(self, *_words: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer({"Api-Version": "1.40", "Content-Length": "0"})

    def do_POST(self) -> None:
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        type(self).sent = data
        self._answer({"Content-Length": "0"})

    def _answer(self, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def daemon() -> Iterator[str]:
    """The address of a daemon."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed: what its client sends is not compared here")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Daemon) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"tcp://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@all_rows("seed", range(20))
def test_files_sent_by_docker_are_never_left_out(seed: int, daemon: str, tmp_path: Path) -> None:
    """Patterns that can be read in several ways may leave fewer files out than they do for Docker, never more."""
    chance = random.Random(seed)
    ignore_file = tmp_path / ".dockerignore"
    for name in ("Dockerfile", *chance.sample(NAMES, 14)):
        path = tmp_path / name
        if not path.is_dir() and not any(above.is_file() for above in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("FROM scratch\n")
    ignore_file.write_text("\n".join(chance.sample(LINES, chance.randint(1, 5))))
    names = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()]
    _Daemon.sent = b""
    done = subprocess.run(
        ["docker", "-H", daemon, "build", "-q", "."],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "none"), "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if not _Daemon.sent:
        assert "pattern" in done.stderr  # it refuses a bad one
        return
    with tarfile.open(fileobj=io.BytesIO(_Daemon.sent)) as archive:
        sent = {member.name for member in archive if not member.isdir()}
    assert sent <= set(sent_files(names, "", [str(ignore_file)]))
