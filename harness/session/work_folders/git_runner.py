"""Runs git for the harness's own work, without running any program from a repository's configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from harness.errors import UsageError
from harness.process.environment import OFFLINE, OFFLINE_VARIABLES, UNASKED, as_variables
from harness.process.lifeline import is_of_a_batch
from harness.record import Record
from harness.text.visible import visible_line

SECONDS = 900.0
"""Timeout of one git command, in seconds."""
_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
"""Folders to search for git. PATH is not used, since it may name folders that commands can write."""
_PASSED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER")
"""Environment variables passed to git. API keys are left out, and git's own variables, which could change the repository."""

# git-config(1). No hooks, no fsmonitor, no git commands in submodules, no maintenance. A repository's configuration cannot
# hide changed files or change the format of patches.
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
    """Raised when a git command fails. The text includes git's own message."""


class GitTimeout(GitFailure):
    """Raised when a git command exceeds its timeout."""


class Git:
    """Runs git commands in one folder or repository, and waits for each. They cannot use a transport (fetch or push)."""

    seconds = SECONDS

    def __init__(
        self, environment: Mapping[str, str], *, folder: str, filters: Iterable[str] = (), hooks: Iterable[str] = ()
    ) -> None:
        """Prepare git with the program's environment, for commands in `folder`. Raises UsageError without git.

        The filter drivers in `filters` (gitattributes(5)) and the configured hooks in `hooks` (git-hook(1), from git 2.54
        on) are switched off.
        """
        self.folder = folder
        self._program = _git_path()
        self._passed = {name: environment[name] for name in _PASSED if name in environment}
        self._settings = [*_SETTINGS]
        self._variables: Mapping[str, str] = OFFLINE_VARIABLES
        for name in filters:
            keys = ("clean", "smudge", "process")
            self._settings += [(f"filter.{name}.{key}", "") for key in keys]
            self._settings.append((f"filter.{name}.required", "false"))
        self._settings += [(f"hook.{name}.enabled", "false") for name in hooks]
        # Ctrl-C at a terminal must reach only the harness, which ends in order. In a batch, git stays in the process group
        # of its task, which is killed as a whole.
        self._own_session = not is_of_a_batch(environment)

    def run(
        self,
        arguments: Sequence[str | bytes],
        *,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        into: int | None = None,
        fine: Sequence[int] = (0,),
    ) -> bytes:
        """Run one command. Return its output, or write it to the file descriptor `into`.

        Raises GitFailure for an exit code that is not in `fine`, and GitTimeout after `seconds`. In messages, user and
        password are removed from addresses.
        """
        import subprocess

        try:
            done = subprocess.run(
                [self._program, *arguments],
                input=stdin,
                stdout=subprocess.PIPE if into is None else into,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**self._environment(), **(variables or {})},
                timeout=self.seconds,
                check=False,
                start_new_session=self._own_session,
            )
        except subprocess.TimeoutExpired:
            raise GitTimeout(f"git {_subcommand(arguments)} took more than {self.seconds:.0f} seconds") from None
        except (OSError, ValueError) as error:
            raise GitFailure(f"git cannot be started: {error}") from None
        if done.returncode not in fine:
            error_text = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
            error_text = re.sub(r"(\w+://)[^\s'\"]*@", r"\1", error_text)
            raise GitFailure(f"git {_subcommand(arguments)}: {visible_line(error_text, 1_000)}")
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
            **self._variables,
            **as_variables(self._settings),
        }


def _git_path() -> str:
    for folder in _SYSTEM_FOLDERS:
        program = os.path.join(folder, "git")
        if os.access(program, os.X_OK):
            return program
    raise UsageError(f"tasks need git, which was not found in {', '.join(_SYSTEM_FOLDERS)}")


def _subcommand(arguments: Sequence[str | bytes]) -> str:
    """Return the subcommand, for a message."""
    words = [argument if isinstance(argument, str) else os.fsdecode(argument) for argument in arguments]
    return visible_line(next((word for word in words if not word.startswith("-")), ""), 100)


class Programs(Record):
    """The programs in a repository's configuration, which must be switched off."""

    filters: tuple[str, ...]
    """Names of filter drivers, which git would run on every file (gitattributes(5))."""
    hooks: tuple[str, ...]


def programs_of(git_dir: str, environment: Mapping[str, str]) -> Programs:
    """Return the programs in a repository's configuration. Raises UsageError."""
    git = Git(environment, folder="/")
    words = [f"--git-dir={git_dir}", "config", "-z", "--name-only", "--get-regexp", r"^(filter|hook)\."]
    keys = git.run(words, fine=(0, 1)).decode("utf-8", "surrogateescape").split("\0")
    programs: dict[str, dict[str, None]] = {"filter": {}, "hook": {}}
    for key in keys:
        section, _, rest = key.partition(".")
        if "." in rest:
            programs[section][rest.rpartition(".")[0]] = None
    return Programs(filters=tuple(programs["filter"]), hooks=tuple(programs["hook"]))
