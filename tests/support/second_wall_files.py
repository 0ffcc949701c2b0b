"""What there is to destroy: the home folder, the workspace, and the repository in it. Makes them, and no more."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile

HOME = "/scratch/home"
WORKSPACE = "/scratch/home/code/repo"
LOG = "/scratch/home/log"
"""A file that the harness holds open for writing."""
HIDDEN_CONTENT = "hidden-content"
"""What the hidden files hold."""

_RUNS = "#!/bin/sh\necho ran >> ran.txt\n"
_FILES = {
    "README.md": "one\n",
    "notes.txt": "one\ntwo\n",
    "data.csv": "a,b\nKEY,2\n",
    "docs/a file.md": "one\n",
    "data.bin": "\x00\x01",
    "list": "notes.txt\0",
    "src/app.py": "print(1)\n",
    "src/util.py": "x = 1\n",
    "src/deep/mod.py": "x = 1\n",
    "tests/test_app.py": "open('tested', 'w')\ndef test_x(): pass\n",
    ".env": f"KEY={HIDDEN_CONTENT}\n",
    ".env.example": "KEY=\n",
    "config/.env.local": f"KEY={HIDDEN_CONTENT}\n",
    "server.pem": f"{HIDDEN_CONTENT}\n",
    "secrets/key": f"{HIDDEN_CONTENT}\n",
    "--output=x": "one\n",
    "x.py": "open('py-ran', 'w')\n",
    "x.sh": _RUNS,
    "x": _RUNS,
    "deploy": _RUNS,
    "script.sed": "w sed-ran\n",
    "prog.awk": '{print > "awk-ran"}\n',
    "prog.jq": ".\n",
    "Makefile": "all:\n\ttouch made\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "touch npm-ran", "install": "touch npm-ran"}}\n',
    "magic": "0 string x x\n",
    "a": "one\n",
    "b": "two\n",
    "x.patch": "--- a/notes.txt\n+++ b/notes.txt\n@@ -1,2 +1,2 @@\n-one\n+uno\n two\n",
    ".gitattributes": "*.csv diff=x filter=x\n",
    "go.mod": "module x\n",
    "ls": _RUNS,
    "git": _RUNS,
    ".github/workflows/ci.yml": "on: push\n",
    ".vscode/settings.json": "{}\n",
}
_HOME_FILES = {
    ".bashrc": "# mine\n",
    ".ssh/id": f"{HIDDEN_CONTENT}\n",
    ".ssh/config": f"# {HIDDEN_CONTENT}\n",
    ".netrc": f"# {HIDDEN_CONTENT}\n",
    ".bash_history": "ls\n",
    "log": "begun\n",
    ".gitconfig": "[user]\n\tname = x\n\temail = x@example.org\n[init]\n\tdefaultBranch = main\n[core]\n\tfsmonitor = ./x\n",
    "code/other/file": "outside\n",
}
_GIT_CONFIG = """\
[alias]
\tx = !touch alias-ran
[diff "x"]
\ttextconv = ./x
\tcommand = ./x
[filter "x"]
\tclean = ./x
[gpg]
\tprogram = ./x
[core]
\tpager = ./x
\tfsmonitor = ./x
\tsshCommand = ./x
[remote "origin"]
\turl = ../../remote.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[push]
\tdefault = current
"""
_HOOKS = (
    "pre-commit",
    "post-commit",
    "post-checkout",
    "pre-push",
    "post-index-change",
    "reference-transaction",
    "fsmonitor-watchman",
    "pre-auto-gc",
)


def build() -> None:
    """Make the home folder, the workspace, a repository in it, and what lies beside it."""
    for name, text in _HOME_FILES.items():
        _write(f"{HOME}/{name}", text)
    for name, text in _FILES.items():
        _write(f"{WORKSPACE}/{name}", text)
    for folder in (f"{HOME}/code/other/empty", f"{WORKSPACE}/links"):
        os.makedirs(folder)
    for link, target in (
        ("link-to-env", ".env"),
        ("links/here", ".."),
        ("links/out", "../../other"),
        ("links/z.zip", "../../other/file"),
    ):
        os.symlink(target, f"{WORKSPACE}/{link}")
    for name in ("x", "x.sh", "deploy", "ls", "git"):
        os.chmod(f"{WORKSPACE}/{name}", 0o755)
    _write("/dev/shm/theirs", "another program's\n")
    _archives()
    _repository()


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _archives() -> None:
    for name, mode in (("archive.tar", "w:"), ("archive.tar.gz", "w:gz")):
        with tarfile.open(f"{WORKSPACE}/{name}", mode) as archive:  # type: ignore[call-overload]
            member = tarfile.TarInfo("unpacked.txt")
            member.size = 4
            archive.addfile(member, io.BytesIO(b"one\n"))
    with zipfile.ZipFile(f"{WORKSPACE}/archive.zip", "w") as zipped:
        zipped.writestr("unpacked.txt", "one\n")
    with open(f"{WORKSPACE}/data.csv.gz", "wb") as file:
        file.write(b"one\n")


def _repository() -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": HOME, "GIT_CONFIG_GLOBAL": "/dev/null"}
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]

    def git(*words: str, text: str | None = None) -> str:
        command = ["git", *identity, *words]
        done = subprocess.run(
            command, cwd=WORKSPACE, env=environment, check=True, capture_output=True, text=True, input=text
        )
        return done.stdout.strip()

    git("init", "-q", "--bare", "-b", "main", f"{HOME}/remote.git")
    git("init", "-q", "-b", "main", ".")
    git("add", "README.md", "notes.txt", "src", "data.csv")
    git("commit", "-q", "-m", "one")
    git("push", "-q", f"{HOME}/remote.git", "main")
    _write(f"{WORKSPACE}/README.md", "two\n")
    git("commit", "-qam", "two")
    signed = git("cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n", 1
    )
    git("update-ref", "refs/heads/main", git("hash-object", "-t", "commit", "-w", "--stdin", text=signed + "\n"))
    git("branch", "old", "HEAD~1")
    _write(f"{WORKSPACE}/src/app.py", "print(2)\n")
    shutil.rmtree(f"{WORKSPACE}/.git/hooks", ignore_errors=True)
    for name in _HOOKS:
        _write(f"{WORKSPACE}/.git/hooks/{name}", _RUNS)
        os.chmod(f"{WORKSPACE}/.git/hooks/{name}", 0o755)
    with open(f"{WORKSPACE}/.git/config", "a", encoding="utf-8") as file:
        file.write(_GIT_CONFIG)
