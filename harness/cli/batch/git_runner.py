"""git for the harness's own work: no program that a repository's configuration names is run."""

from __future__ import annotations

import os
import signal
import stat
from _thread import start_new_thread
from collections.abc import Iterable, Mapping, Sequence

from harness.errors import UsageError
from harness.process.environment import OFFLINE, OFFLINE_VARIABLES, UNASKED, as_variables
from harness.record import Record
from harness.text.visible import visible_line

VARIABLE = "HARNESS_LIFELINE"
"""Names the descriptor of the pipe's end for reading, in the process that a batch starts."""


class Lifeline:
    """The batch's own end of the pipe."""

    def __init__(self) -> None:
        """Make the pipe. INVARIANT: nobody but this process holds the end for writing, so that its end is seen."""
        self.reading, self._writing = os.pipe2(os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of both ends."""
        os.close(self.reading)
        os.close(self._writing)


def is_of_a_batch(environment: Mapping[str, str]) -> bool:
    """Say whether a batch started this process."""
    return VARIABLE in environment


def watch_lifeline(environment: Mapping[str, str]) -> None:
    """Where a batch started this process: ask it to end (SIGTERM) once the batch has ended. Otherwise do nothing."""
    told = environment.get(VARIABLE, "")
    if not told.isascii() or not told.isdigit() or len(told) > 6:
        return
    try:
        descriptor = int(told)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return
        os.set_inheritable(descriptor, False)  # what a command started would hold an end of it otherwise
    except OSError:
        return
    start_new_thread(_watch, (descriptor,))


def _watch(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1):
            pass
    except OSError:
        return
    os.kill(os.getpid(), signal.SIGTERM)


SECONDS = 900.0
"""How long one git command may take."""
_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
"""Where git is looked for. Never along PATH: that may name folders that commands can write."""
_PASSED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER")
"""No key of a model's server, and none of git's own variables: they could move the repository."""

# git-config(1). No hooks, no fsmonitor, no submodules' own git commands, no housekeeping; and what decides whether a changed
# file is found, and how a patch is written, is not left to the repository.
_SETTINGS = (
    *UNASKED,
    OFFLINE,
    ("hook.reference-transaction.enabled", "false"),
    ("hook.post-index-change.enabled", "false"),
    ("hook.post-checkout.enabled", "false"),
    ("core.untrackedCache", "false"),
    ("core.splitIndex", "false"),
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.fileMode", "true"),
    ("core.symlinks", "true"),
    ("core.safecrlf", "false"),
    ("core.sparseCheckout", "false"),
    ("core.excludesFile", "/dev/null"),
    ("apply.whitespace", "nowarn"),
    ("apply.ignoreWhitespace", "no"),
    ("index.sparse", "false"),
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "none"),
    ("worktree.useRelativePaths", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)


class GitFailure(UsageError):
    """A git command that could not do what it was asked; the text holds git's own words."""


class GitTimeout(GitFailure):
    """A git command that took too long."""


class Git:
    """Runs git commands in one folder or repository, each to its end."""

    def __init__(
        self, environment: Mapping[str, str], *, folder: str, filters: Iterable[str] = (), hooks: Iterable[str] = ()
    ) -> None:
        """Take the environment of the program, and the folder that the commands are run in.

        `filters` are the names of filter drivers (gitattributes(5)), `hooks` those of hooks that configuration names
        (git-hook(1), from git 2.54 on); they are switched off. Raises UsageError where there is no git.
        """
        self.folder = folder
        self._program = _found()
        self._passed = {name: environment[name] for name in _PASSED if name in environment}
        self._settings = [*_SETTINGS]
        for name in filters:
            keys = ("clean", "smudge", "process")
            self._settings += [(f"filter.{name}.{key}", "") for key in keys]
            self._settings.append((f"filter.{name}.required", "false"))
        self._settings += [(f"hook.{name}.enabled", "false") for name in hooks]
        # Ctrl-C at a terminal is for the harness, which ends in order. A batch's processes have a group of their own, which is
        # killed as a whole.
        self._own_session = not is_of_a_batch(environment)

    def run(
        self,
        arguments: Sequence[str | bytes],
        *,
        given: bytes = b"",
        variables: Mapping[str, str] | None = None,
        into: int | None = None,
        fine: Sequence[int] = (0,),
    ) -> bytes:
        """Run one command and return what it printed, or write that to the descriptor `into`.

        `given` is its input; exit codes in `fine` are no failure. Raises GitFailure for any other, and after SECONDS.
        """
        import subprocess

        try:
            done = subprocess.run(
                [self._program, *arguments],
                input=given,
                stdout=subprocess.PIPE if into is None else into,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**self._environment(), **(variables or {})},
                timeout=SECONDS,
                check=False,
                start_new_session=self._own_session,
            )
        except subprocess.TimeoutExpired:
            raise GitTimeout(f"git {_named(arguments)} took more than {SECONDS:.0f} seconds") from None
        except (OSError, ValueError) as error:
            raise GitFailure(f"git cannot be started: {error}") from None
        if done.returncode not in fine:
            told = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
            raise GitFailure(f"git {_named(arguments)}: {visible_line(told, 1_000)}")
        return done.stdout or b""

    def _environment(self) -> dict[str, str]:
        return {
            **self._passed,
            "PATH": ":".join(_SYSTEM_FOLDERS),
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_PAGER": "cat",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_ATTR_NOSYSTEM": "1",
            **OFFLINE_VARIABLES,
            **as_variables(self._settings),
        }


def _found() -> str:
    for folder in _SYSTEM_FOLDERS:
        program = os.path.join(folder, "git")
        if os.access(program, os.X_OK):
            return program
    raise UsageError(f"tasks need git, and there is none in {', '.join(_SYSTEM_FOLDERS)}")


def _named(arguments: Sequence[str | bytes]) -> str:
    """Return the subcommand, for a message."""
    words = [one if isinstance(one, str) else os.fsdecode(one) for one in arguments]
    return visible_line(next((word for word in words if not word.startswith("-")), ""), 100)


class Programs(Record):
    """The programs that any configuration of a repository names, by git's names for them; git runs none of them for us."""

    filters: tuple[str, ...]
    """Filter drivers, which would be run on every file (gitattributes(5))."""
    hooks: tuple[str, ...]


def programs_of(git_dir: str, environment: Mapping[str, str]) -> Programs:
    """Return what is to be switched off in a repository. Raises UsageError."""
    git = Git(environment, folder="/")
    words = [f"--git-dir={git_dir}", "config", "-z", "--name-only", "--get-regexp", r"^(filter|hook)\."]
    keys = git.run(words, fine=(0, 1)).decode("utf-8", "surrogateescape").split("\0")
    found: dict[str, dict[str, None]] = {"filter": {}, "hook": {}}
    for key in keys:
        section, _, rest = key.partition(".")
        if "." in rest:
            found[section][rest.rpartition(".")[0]] = None
    return Programs(filters=tuple(found["filter"]), hooks=tuple(found["hook"]))
