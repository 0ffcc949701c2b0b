"""Bash among stubs: a scratch folder in which a script runs without privileges, and what it ran and wrote there."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple

from places import shell_word
from script_grammar import PROGRAMS, SHAPES

from harness.actions import Effects
from harness.process.environment import child_environment, unasked_variables
from harness.programs.catalog import names as modelled_names

Argv = tuple[str, ...]

SECONDS = 60.0
"""A script that runs longer is killed; what it ran until then counts."""

# A stub writes one record with one write(2): argc, argv, folder, open files, environment; then prints its operands, or runs
# the real program, if BASE/real has it. Half of some programs' calls fail, so that both ways are taken.
_STUB = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
static char record[1 << 20];
static size_t used;
static void field(const char *text) {
  size_t length = strlen(text) + 1;
  if (used + length + 2 > sizeof record) return;
  memcpy(record + used, text, length);
  used += length;
}
int main(int argc, char **argv, char **environment) {
  char text[4200], name[300];
  const char *base = strrchr(argv[0], '/');
  base = base ? base + 1 : argv[0];
  if (!strcmp(base, "not-found")) { argv++; argc--; base = argv[0]; }
  snprintf(text, sizeof text, "%d", argc);
  field(text);
  for (int i = 0; i < argc; i++) field(argv[i]);
  field(getcwd(text, sizeof text) ? text : "");
  for (int i = 0; i < 10; i++) {
    char link[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", i);
    ssize_t length = readlink(name, link, sizeof link - 1);
    if (length <= 0 || link[0] != '/') continue;
    link[length] = 0;
    snprintf(text, sizeof text, "%d=%s", i, link);
    field(text);
  }
  field("");
  for (char **each = environment; *each; each++) if (**each) field(*each);
  field("");
  int file = open(LOG, O_WRONLY | O_APPEND | O_CREAT, 0600);
  struct stat status;
  if (file < 0 || fstat(file, &status) || write(file, record, used) < 0) return 99;
  if (status.st_size > 150000) kill(0, SIGKILL); /* the group of the script; its parent may be the checker */
  close(file);
  snprintf(text, sizeof text, REAL "/%.200s", base);
  if (argc && base[0] && !strchr(argv[0], '/')) execv(text, argv);
  for (int i = 1; i < argc; i++) { fputs(argv[i], stdout); putchar(i + 1 < argc ? ' ' : '\n'); }
  if (!strcmp(base, "no") || !strcmp(base, "false")) return 1;
  if (!strcmp(base, "test") || !strcmp(base, "[") || !strcmp(base, "grep") || !strcmp(base, "diff"))
    return (status.st_size / 7 + argc) & 1;
  return 0;
}
"""
_PRELUDE = 'enable -n {unbuilt}\ncommand_not_found_handle() {{ {stub} "$@"; }}\n'
UNBUILT = "echo printf test [ true false pwd kill type times help umask".split()
"""Builtins that are turned off, so that the stubs are run in their place."""
_REAL = "env timeout nice nohup stdbuf xargs find bash sh dash setsid taskset ionice flock prlimit chrt".split()
"""Programs that are the real ones, behind their record, so that what they run is recorded too."""
CHANGED_BY_BASH = frozenset("_ SHLVL PWD OLDPWD LD_PRELOAD _STDBUF_O _STDBUF_I _STDBUF_E LINES COLUMNS".split())
_TREE = {
    "a.txt": "x y\nsub\n", "b c.txt": "a\n", "x1": "", "sub/d.py": "", "sub/e.txt": "e\n", ".hidden": "h\n",
    "deep/deeper/f": "f\n", "A=1": "",
    "-rf": "", "--output=x": "", "home/h.txt": "home\n", "[ab]": "", "st*r": "", "odd/new\nline": "", "odd/ x": "",
    "link": "->sub", "sublink": "->deep/deeper",
}  # fmt: skip


SECRET = b"c4n4ry\n"
"""What stands in files that readers must not show; programs may show it backwards, in capitals, in hexadecimal digits ..."""
_SHOWN = re.compile(
    rb"c4n4ry|c   4   n   4|yr4n4c|C4N4RY|6334 ?6e34 ?7279|63 34 6e 34 72 79|YzRuNHJ5|3463 346e|143 064 156",
    re.IGNORECASE,
)


class Ran(NamedTuple):
    """One program that was run."""

    argv: Argv
    folder: str
    files: tuple[str, ...]
    """What it had open, by the names that the kernel gives."""
    environment: dict[str, str]


class Outcome(NamedTuple):
    """What bash did with a script."""

    ran: tuple[Ran, ...]
    changed: tuple[str, ...]
    """Files, absolute, that are new, gone or other than before."""
    timed_out: bool
    printed: bytes = b""


class Scratch:
    """A folder of its own with a workspace, a home, stubs and a canary; bash is run in it."""

    def __init__(self, *, real: Sequence[str] = (), hostile: int = -1) -> None:
        """Make the folder. `real`: names of real programs that PATH holds in place of stubs, the folder being a repository.

        `hostile`: which of _HOSTILE its configuration holds; none of them where it is negative.
        """
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="differential-"))
        os.chmod(self.base, 0o755)
        self.root = f"{self.base}/p/q/w"
        self.canary = f"{self.base}/p/q/canary"
        self.home = f"{self.root}/home"
        self._log = f"{self.base}/log"
        self._output = f"{self.base}/output" if real else "/dev/null"
        self._bash = next(path for path in ("/bin/bash", "/usr/bin/bash") if os.access(path, os.X_OK))
        os.makedirs(self.root)
        os.makedirs(f"{self.base}/bin")
        os.makedirs(f"{self.base}/real")
        if real:
            for name in real:
                _link_to(shutil.which(name), f"{self.base}/bin/{name}")
        else:
            self._make_stubs()
        self.environment = child_environment(
            {"PATH": f"{self.base}/bin", "HOME": self.home, "LANG": "C.UTF-8", "USER": "nobody"}
        )
        if real:
            effects = Effects(read=None, write=None, network=False, unasked=True)
            self.environment |= unasked_variables(effects, self.environment["PATH"], self.root)
        else:
            self.environment["BASH_ENV"] = f"{self.base}/prelude"
        self._real = bool(real)
        self._hostile = _HOSTILE[hostile % len(_HOSTILE)] if hostile >= 0 else ()

    def settle(self) -> None:
        """Give up privileges, where there are any, for good; then make the files."""
        if os.geteuid() == 0:
            for folder, folders, files in os.walk(self.base):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        self._make_tree()
        os.chdir(self.root)

    def remove(self) -> None:
        os.chdir("/")
        shutil.rmtree(self.base, ignore_errors=True)

    def run(self, text: str) -> Outcome:
        """Run a script in the folder, which is this process's own, and put the folder back as it was."""
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self._log, 0)
        timed_out = self._finish(self._start(text), slow="(" in text and (">" in text or "<" in text))
        ran = self._records()
        after = self._snapshot()
        changed = tuple(
            sorted(path for path in after.keys() | self._before.keys() if after.get(path) != self._before.get(path))
        )
        if changed:
            self._make_tree()
        return Outcome(ran=ran, changed=changed, timed_out=timed_out, printed=self._printed())

    def _start(self, text: str) -> int:
        return os.posix_spawn(
            self._bash,
            ("bash", "--noprofile", "--norc", "-c", "--", text),
            self.environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setpgroup=0,
        )

    def _finish(self, pid: int, *, slow: bool) -> bool:
        watch = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        timed_out = not poll.poll(SECONDS * 1000)
        if slow:
            time.sleep(0.004)  # bash does not wait for `<( )`; a busy machine may hide a finding, it makes none
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(watch)
        return timed_out

    def _records(self) -> tuple[Ran, ...]:
        try:
            with open(self._log, "rb") as file:
                fields = iter(file.read().decode("utf-8", "surrogateescape").split("\0"))
        except FileNotFoundError:
            return ()
        ran = []
        for count in fields:
            if not count:
                break
            argv = tuple(next(fields) for _ in range(int(count)))
            folder = next(fields)
            files = tuple(each.partition("=")[2] for each in iter(fields.__next__, ""))
            environment = dict(each.partition("=")[::2] for each in iter(fields.__next__, ""))
            ran.append(Ran(argv=argv, folder=folder, files=files, environment=environment))
        return tuple(ran)

    def _printed(self) -> bytes:
        if not self._real:
            return b""
        with open(self._output, "rb") as file:
            return file.read(1_000_000)

    def _make_stubs(self) -> None:
        stub = f"{self.base}/stub"
        source = f"{self.base}/stub.c"
        with open(source, "w") as file:
            file.write(_STUB)
        compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
        if compiler is None:
            raise SystemExit("differential.py needs a C compiler for its stubs")
        options = ["-O1", f'-DLOG="{self._log}"', f'-DREAL="{self.base}/real"', "-o", stub, source]
        if subprocess.run([compiler, "-static", *options], capture_output=True, check=False).returncode:
            subprocess.run([compiler, *options], check=True)
        known = {
            *modelled_names(),
            *UNBUILT,
            *_REAL,
            "ok",
            "no",
            "run",
            *PROGRAMS,
            *(shape.split()[0] for shape in SHAPES),
        }
        for name in known:
            if "/" not in name and name not in _KEPT:
                os.symlink(stub, f"{self.base}/bin/{name}")
        os.symlink(stub, f"{self.base}/not-found")
        for name in _REAL:
            _link_to(shutil.which(name), f"{self.base}/real/{name}")
        with open(f"{self.base}/prelude", "w") as file:
            file.write(_PRELUDE.format(unbuilt=" ".join(UNBUILT), stub=shell_word(f"{self.base}/not-found")))

    def _make_tree(self) -> None:
        for folder in (self.root, self.canary):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        for name, content in _TREE.items():
            path = f"{self.root}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if content.startswith("->"):
                os.symlink(content[2:], path)
                continue
            with open(path, "w") as file:
                file.write(content)
        with open(f"{self.canary}/secret", "wb") as file:
            file.write(SECRET)
        if self._real:
            self._hide_secrets()
            _make_repository(self.root, self.environment, self._hostile)
        else:
            for name in ("ok", "sub/ok"):
                shutil.copy(f"{self.base}/stub", f"{self.root}/{name}")
        os.chdir(self.root)
        self._before = self._snapshot()

    def _hide_secrets(self) -> None:
        """Put secrets where rules forbid reading, and links to one outside."""
        os.makedirs(f"{self.root}/odd/more")
        os.mkdir(f"{self.root}/hidden")
        for name in ("deep/.env", "k.pem", "hidden/x"):
            with open(f"{self.root}/{name}", "wb") as file:
                file.write(SECRET)
        for name in (
            "a k.pem",
            "'",
            "x\\",
            "-f",
            "+1",
            "t.txt",
            "e=1",
            "HEAD:k.pem",
        ):  # words of xargs, options, revisions
            with open(f"{self.root}/odd/{name}", "w") as file:
                file.write("odd\n")
        with open(f"{self.root}/odd/more/e\nk.pem", "w") as file:
            file.write("odd\n")
        os.symlink("../canary", f"{self.root}/way")
        os.symlink("../canary/secret", f"{self.root}/sub/out")
        os.symlink("../deep/.env", f"{self.root}/sub/in")

    def _snapshot(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        waiting = [f"{self.base}/p"]
        while waiting:
            with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        found[entry.path] = (status.st_mode, status.st_ino)
                    else:
                        found[entry.path] = (
                            status.st_mode,
                            status.st_ino,
                            status.st_size,
                            status.st_mtime_ns,
                            status.st_nlink,
                        )
        return found


_KEPT = frozenset(
    ": alias break builtin cd command continue eval exec exit export jobs read return set shift source unset wait .".split()
)


def _link_to(program: str | None, path: str) -> None:
    if program is not None:
        os.symlink(os.path.realpath(program) if program.endswith("/sh") else program, path)


# Settings by which a repository has git run a program, each with a line of .gitattributes that may be needed for it.
_HOSTILE = (
    ("core.fsmonitor", "touch out-fsmonitor", ""), ("diff.external", "touch out-external", ""),
    ("diff.x.textconv", "touch out-t", "* diff=x"), ("diff.x.command", "touch out-command", "* diff=x"),
    ("filter.x.clean", "touch out-clean", "* filter=x"), ("filter.x.process", "touch out-process", "* filter=x"),
    ("filter.x.smudge", "touch out-smudge", "* filter=x"), ("alias.st", "!touch out-alias", ""),
    ("core.pager", "touch out-pager", ""), ("pager.log", "touch out-pager", ""), ("core.hooksPath", "sub", ""),
    ("gpg.program", "touch out-gpg", ""), ("log.showSignature", "true", ""),
    ("merge.x.driver", "touch out-m", "* merge=x"), ("core.editor", "touch out-editor", ""),
    ("include.path", "../sub/e.txt", ""), ("core.sshCommand", "touch out-ssh", ""),
    ("remote.origin.url", "ext::touch out-ext", ""), ("uploadpack.packObjectsHook", "touch out-hook", ""),
    ("core.attributesFile", "sub/e.txt", ""), ("core.alternateRefsCommand", "touch out-refs", ""),
    ("trailer.x.command", "touch out-trailer", ""), ("core.askPass", "touch out-ask", ""),
    ("credential.helper", "!touch out-credential", ""), ("core.worktree", "../../canary", ""),
    ("core.gitProxy", "touch out-proxy", ""), ("submodule.x.update", "!touch out-submodule", ""),
    ("interactive.diffFilter", "touch out-filter", ""), ("diff.tool", "touch", ""), ("column.ui", "always", ""),
    ("help.autoCorrect", "immediate", ""), ("core.untrackedCache", "true", ""), ("maintenance.auto", "true", ""),
    ("gc.auto", "1", ""), ("core.splitIndex", "true", ""), ("feature.manyFiles", "true", ""),
    ("index.version", "4", ""),
)  # fmt: skip


def _make_repository(root: str, environment: dict[str, str], hostile: Sequence[str]) -> None:
    environment = {
        **environment,
        "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    }

    def git(*words: str) -> None:
        subprocess.run(["/usr/bin/git", *words], cwd=root, env=environment, check=True, capture_output=True)

    git("init", "-q")
    git("add", "a.txt", "sub")
    git("-c", "user.name=n", "-c", "user.email=e@x.test", "commit", "-q", "-m", "one")
    with open(f"{root}/a.txt", "a") as file:
        file.write("changed\n")
    if hostile:
        key, value, attributes = hostile
        git("config", key, value)
        with open(f"{root}/.gitattributes", "w") as file:
            file.write(f"{attributes}\n")


def is_shown(outcome: Outcome) -> bool:
    """Say whether what was printed holds the secret of the scratch folder."""
    return _SHOWN.search(outcome.printed) is not None
