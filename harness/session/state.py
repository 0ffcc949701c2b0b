"""The program's files that outlive a session: logs, their heads, trusted policies. They are outside of every workspace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness import __version__
from harness.errors import LogError, PolicyError, UsageError
from harness.safe_files import append_line, is_locked_within, make_private, open_private
from harness.shipped import STATE_FOLDERS
from harness.text.visible import visible_line
from harness.user_folders import BEFORE_IMAGES, TREES, configuration_folder, state_folder

if TYPE_CHECKING:
    from harness.log.action_log import ActionLog
    from harness.log.heads_file import KnownHead

MANAGED_POLICY = "/etc/harness/policy.toml"
OUTPUT_SECONDS = 7 * 24 * 3600
"""Seconds for which the full output of commands is kept."""
HEADS_NAME = "heads.jsonl"
_DECLINED = "declined"
"""Beginning of a line of the trust file that declines trust."""
_LOCK_SECONDS = 5.0
_MAX_TRIED_BYTES = 50_000
"""Seconds to wait for another program's write to the trust file."""
PROJECT_POLICY = os.path.join(".harness", "policy.toml")
PROJECT_CONFIG = os.path.join(".harness", "config.toml")
PROJECT_WORDS = (".harness/commands", ".harness/skills", ".claude/commands", ".claude/skills", ".agents/skills")
"""Folders of a project's commands and skills, harness's own first; see session/words/."""


def word_folders(workspace: str) -> Iterator[tuple[str, str]]:
    """Yield the command and skill folders in `workspace` and above it in its repository, nearest first.

    `workspace` is absolute, with links followed. Each item is the containing folder, and a name from PROJECT_WORDS. If
    links give a folder two names, only the first is yielded.
    """
    from harness.files.repository import folders_up

    real_paths = set[str]()
    for folder in folders_up(workspace):
        for name in PROJECT_WORDS:
            path = os.path.join(folder, name)
            if os.path.lexists(path) and (real := os.path.realpath(path)) not in real_paths:
                real_paths.add(real)
                yield folder, name


def workspace_folder(cwd: str | None) -> str:
    """Return the workspace, links followed: `cwd` (the value of `--cwd`) or the current folder. Raises UsageError."""
    return os.path.realpath(cwd or current_folder())


def current_folder() -> str:
    """Return the current folder. Raises UsageError if it does not exist any more."""
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the current folder is not there any more; go to another, or name one with --cwd") from None


class State:
    """The folders and files of one user (XDG Base Directory Specification 0.8)."""

    def __init__(self, *, state: str, config: str, home: str = "") -> None:
        """Set all paths below the state and the configuration folder (see `State.of`). They need not exist yet."""
        self.home = home
        """Home folder of the user. Empty if it is unknown."""
        self.state = state
        """State folder (default: ~/.local/state/harness)."""
        self.config = config
        """Configuration folder (default: ~/.config/harness)."""
        self.user_policy = os.path.join(config, "policy.toml")
        self.config_file = os.path.join(config, "config.toml")
        self.models = os.path.join(config, "models.toml")
        """The user's file with facts about models: prices, context lengths."""
        self.sessions = os.path.join(state, "sessions")
        """The folder of all logs."""
        self.heads = os.path.join(state, HEADS_NAME)
        """The heads file: size and head of every log."""
        self.before_images = os.path.join(state, BEFORE_IMAGES)
        """The folder with the content of files before they were changed."""
        self.trees = os.path.join(state, TREES)
        """The folder with the contents of files around commands, one store per workspace."""
        self.undos = os.path.join(state, "undos")
        """The folder with the journals of undos, one folder per workspace."""
        self.outputs = os.path.join(state, "outputs")
        """The folder with the full output of commands, of which the model is shown only a part."""
        self.exports = os.path.join(state, "exports")
        """The default folder for exported conversations."""
        self.grants = os.path.join(state, "grants")
        """The folder with the kept grants, one file per workspace."""
        self.agents = os.path.join(state, "agents")
        """The folder with one folder for each session of another agent."""
        self.waiting = os.path.join(state, "approve")
        """The folder of questions that hooks ask and `harness approve` answers."""
        self.of_plugins = tuple(os.path.join(state, name) for name in STATE_FOLDERS)
        """The folders in which plugins keep files."""
        self.trust = os.path.join(state, "trusted_policies")
        """The trust file: digests of project files that the user has trusted or declined."""
        self.tried = os.path.join(state, "tried_policies")
        """The file with the version and the digests of policies whose examples this user's runs have tried."""
        self.redaction_key = os.path.join(state, "redaction_key")
        """The file with the key of this installation's redaction marks."""
        self.history = os.path.join(state, "history")
        """The file with the history of lines typed at the prompt."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> State:
        """Return the folders below $XDG_STATE_HOME and $XDG_CONFIG_HOME. Raises UsageError."""
        return cls(
            state=state_folder(environment),
            config=configuration_folder(environment),
            home=environment.get("HOME", ""),
        )

    @property
    def guarded(self) -> tuple[str, str]:
        """The folders that no call may write, links followed."""
        return os.path.realpath(self.state), os.path.realpath(self.config)

    def new_outputs(self) -> str:
        """Return a new path for a folder with the full output of one session's commands. The folder is not made yet."""
        return os.path.join(self.outputs, os.urandom(6).hex())

    def remove_old_outputs(self) -> None:
        """Remove command outputs that are older than OUTPUT_SECONDS. Ignores those that cannot be removed."""
        import shutil

        try:
            with os.scandir(self.outputs) as entries:
                old = [e.path for e in entries if e.stat(follow_symlinks=False).st_mtime < time.time() - OUTPUT_SECONDS]
        except OSError:
            return
        for path in old:
            shutil.rmtree(path, ignore_errors=True)

    def log_folder(self, workspace: str) -> str:
        """Return the folder of the logs of sessions in `workspace`."""
        return os.path.join(self.sessions, self.name_of(workspace))

    def name_of(self, workspace: str) -> str:
        """Return the name of a workspace's files and folders in the state folder: its base name and a digest of its path."""
        from harness.digest import digest_of

        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.path.basename(workspace))[:40] or "root"
        digest = digest_of(workspace.encode("utf-8", "surrogateescape"))[:8]
        return f"{slug}-{digest}"

    def new_export_path(self, session: str) -> str:
        """Make the folder of exports (mode 0700), and return the path of a new file for a session. Raises OSError."""
        for new_folder in (self.state, self.exports):
            _make_private(new_folder)
        return os.path.join(self.exports, f"harness-{session}-{time.strftime('%Y%m%dT%H%M%S')}.md")

    def new_log_path(self, workspace: str) -> str:
        """Make the log folder of `workspace` (mode 0700), and return the path of a new log in it.

        Raises LogError if the folder cannot be made, or is inside the workspace.
        """
        folder = self.log_folder(workspace)
        if os.path.realpath(folder).startswith(workspace.rstrip("/") + "/") and workspace != os.path.expanduser("~"):
            raise LogError(f"the log folder is inside the workspace: {folder}; set XDG_STATE_HOME to a folder outside")
        try:
            for new_folder in (self.state, self.sessions, folder):
                _make_private(new_folder)
        except OSError as error:
            raise LogError(f"the log folder cannot be made: {folder}: {error.strerror}") from None
        now = time.time_ns()
        # Precise to the microsecond, so that names sort in the order of the sessions.
        stamp = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now // 10**9))}.{now // 1000 % 10**6:06d}Z"
        return os.path.join(folder, f"{stamp}-{os.urandom(3).hex()}.jsonl")

    def record_head(self, log: ActionLog, *, closed: bool = True) -> None:
        """Note the size and head of a log that is being closed, or, if not `closed`, that is still written.

        Raises LogError if that cannot be written.
        """
        self.make_folder_of_heads()
        from harness.log.heads_file import note_head

        note_head(self.heads, log, closed=closed)

    def record_loss(self, noted_head: KnownHead) -> None:
        """Note that a log is missing and that a new one replaces it. Raises LogError if that cannot be written."""
        from harness.log.heads_file import note_loss

        note_loss(self.heads, noted_head)

    def check_heads(self) -> None:
        """Raise LogError if the heads file cannot be written, since a session could not be closed properly then."""
        self.make_folder_of_heads()
        from harness.log.heads_file import opened_heads

        os.close(opened_heads(self.heads))

    def make_folder_of_heads(self) -> None:
        """Make the folder of the heads file. Raises LogError."""
        try:
            _make_private(self.state)
        except OSError as error:
            raise LogError(f"the heads file cannot be written: {self.heads}: {error.strerror}") from None

    def known_head(self, path: str) -> KnownHead | None:
        """Return the noted head of the log at `path`, or `None`. Raises UsageError if the heads file cannot be read."""
        from harness.log.heads_file import HeadsFile

        return HeadsFile(self.heads).of_path(path)

    def log_paths(self, workspace: str | None = None) -> list[str]:
        """Return the paths of all logs, oldest first. With `workspace`, only the logs of that workspace."""
        return logs_in(self.sessions if workspace is None else self.log_folder(workspace))

    def latest_log(self, workspace: str) -> str:
        """Return the newest log of a workspace, or the newest of all if it has none. Raises UsageError without any log."""
        paths = self.log_paths(workspace) or self.log_paths()
        if not paths:
            raise UsageError(f"no action log under {self.sessions}")
        return paths[-1]

    def is_trusted(self, sha256: str) -> bool:
        """Return whether the user has trusted project content with this digest. The last entry about it counts."""
        return self._last_word_of(sha256) == sha256

    def is_declined(self, sha256: str) -> bool:
        """Return whether the user declined content with this digest, or withdrew their trust in it."""
        return self._last_word_of(sha256) == _DECLINED

    def trust_content(self, sha256: str, path: str) -> None:
        """Note that the user trusts this content. Raises PolicyError if it cannot be written."""
        self._note_trust(sha256, path)

    def decline_content(self, sha256: str, path: str) -> None:
        """Note that the user does not trust this content, so that they are not asked again. Raises PolicyError."""
        self._note_trust(_DECLINED, sha256, path)

    def was_trusted(self, path: str) -> bool:
        """Return whether the last entry about the file `path` trusted it, in any content."""
        ending = _noted("", path)
        lines = [line for line in _private_lines(self.trust) if line.rstrip("\n").endswith(ending)]
        return bool(lines) and not lines[-1].startswith(f"{_DECLINED} ")

    def has_tried(self, sha256: str) -> bool:
        """Return whether this version has tried the examples of the policy with this digest. False in doubt.

        INVARIANT: a wrong answer only leaves examples untried. It changes no decision.
        """
        try:
            return any(line.split() == [__version__, sha256] for line in _private_lines(self.tried))
        except UsageError:
            return False

    def note_tried(self, sha256: str) -> None:
        """Note that the examples of the policy with this digest hold. Only in a state folder that exists already."""
        try:
            with open(open_private(self.tried, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0) as file:
                if file.tell() > _MAX_TRIED_BYTES:
                    file.truncate(0)
                file.write(f"{__version__} {sha256}\n".encode())
        except OSError:
            return  # the next run tries them again

    def _last_word_of(self, sha256: str) -> str:
        """Return the beginning of the last line about this content; empty if there is none."""
        last = ""
        for line in _private_lines(self.trust):
            words = line.split(maxsplit=2)
            if sha256 in words[:1] or words[:2] == [_DECLINED, sha256]:
                last = words[0]
        return last

    def _note_trust(self, *words: str) -> None:
        line = _noted(*words)
        try:
            _make_private(self.state)
            descriptor = open_private(self.trust, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                append_line(descriptor, f"{line}\n".encode(), alone=is_locked_within(descriptor, _LOCK_SECONDS))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise PolicyError(f"the trust file cannot be written: {self.trust}: {error.strerror}") from None


def _noted(*words: str) -> str:
    """Return a line of the trust file."""
    # INVARIANT: exactly one line. A line break in a folder's name must not start a second one.
    return visible_line(" ".join(words), 5_000)


def logs_in(folder: str) -> list[str]:
    """Return the paths of all logs in a folder and below, oldest first, without heads files and special files.

    In the results of a batch, only the logs of its tasks count, not its summaries and the kept work folders.
    """
    from harness.audit.batch_results import ATTEMPTS, LOG, TASK, is_summary

    paths = []
    for top, folders, files in os.walk(folder):
        if TASK in files and ATTEMPTS in folders:
            names = [os.path.join(ATTEMPTS, number, LOG) for number in os.listdir(os.path.join(top, ATTEMPTS))]
            folders.clear()
        else:
            names = [
                name
                for name in files
                if name.endswith(".jsonl")
                and name != HEADS_NAME
                and not (is_summary(name) and name.removesuffix("l") in files)  # the summary of a batch
            ]
        log_paths = [os.path.join(top, name) for name in names]
        paths += [path for path in log_paths if os.path.isfile(path)]  # excludes pipes and broken links
    return sorted(paths, key=lambda path: (os.path.basename(path), path))


def _make_private(folder: str) -> None:
    """Make a folder that only its owner may enter. If others may write an existing folder, remove that permission."""
    make_private(folder)
    mode = os.stat(folder).st_mode
    if mode & 0o022:
        os.chmod(folder, mode & 0o755)


def _private_lines(path: str) -> Iterator[str]:
    """Yield the lines of a file that only its user may write. Yields none if it is missing. Raises UsageError."""
    try:
        with open(open_private(path, os.O_RDONLY), encoding="utf-8", errors="surrogateescape") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
