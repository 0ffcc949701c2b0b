"""The program's files that outlive a session: logs, their heads, trusted policies. Outside every workspace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.errors import LogError, PolicyError, UsageError
from harness.safe_files import append_line, is_locked_within, open_private
from harness.shipped import STATE_FOLDERS
from harness.text.visible import visible_line

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
"""Seconds to wait for another program's write to the trust file."""
PROJECT_POLICY = os.path.join(".harness", "policy.toml")
PROJECT_CONFIG = os.path.join(".harness", "config.toml")
PROJECT_WORDS = (".harness/commands", ".harness/skills", ".claude/commands", ".claude/skills", ".agents/skills")
"""Folders of a team's own words, ours first; see session/words/."""


def word_folders(workspace: str) -> Iterator[tuple[str, str]]:
    """Yield the folders of words in `workspace` (absolute, links followed) and above it in its repository, the
    nearest first.

    Each is the folder around it, and its name as in PROJECT_WORDS. Of two names of one folder, by links, only the
    first.
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
    """Return the folder that the person means, links followed; `cwd` is what `--cwd` says. Raises UsageError."""
    return os.path.realpath(cwd or current_folder())


def _home(environment: Mapping[str, str]) -> str:
    """Return the home folder. Raises UsageError if it is unset or relative, since that would depend on the current
    folder.
    """
    home = environment.get("HOME", "")
    if home.startswith("/"):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        raise UsageError(
            "HOME is not set, and this user has no home folder: set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME"
        ) from None


def current_folder() -> str:
    """Return the folder that the program was started in. Raises UsageError if it is not there any more."""
    try:
        return os.getcwd()
    except OSError:
        raise UsageError("the current folder is not there any more; go to another, or name one with --cwd") from None


class State:
    """The folders and files of one user (XDG Base Directory Specification 0.8)."""

    def __init__(self, *, state: str, config: str) -> None:
        """Take the two folders that hold everything: see `State.of`. None of it need be there yet."""
        self.state = state
        """State folder (default: ~/.local/state/harness)."""
        self.config = config
        """Configuration folder (default: ~/.config/harness)."""
        self.user_policy = os.path.join(config, "policy.toml")
        self.config_file = os.path.join(config, "config.toml")
        self.models = os.path.join(config, "models.toml")
        """The file of what the person says of models: prices, context lengths."""
        self.sessions = os.path.join(state, "sessions")
        """The folder of all logs."""
        self.heads = os.path.join(state, HEADS_NAME)
        """The file that holds the size and head of every log, outside the logs themselves."""
        self.before_images = os.path.join(state, "before_images")
        """The folder that keeps what files held before they were changed."""
        self.outputs = os.path.join(state, "outputs")
        """The folder of what commands printed beyond what the model is shown."""
        self.exports = os.path.join(state, "exports")
        """The folder of conversations that were written for the person, where they named no other place."""
        self.grants = os.path.join(state, "grants")
        """The folder of what was granted for workspaces, one file each."""
        self.agents = os.path.join(state, "agents")
        """The folder of the sessions of other agents, a folder each."""
        self.waiting = os.path.join(state, "approve")
        """The folder of questions that hooks ask and `harness approve` answers."""
        self.of_plugins = tuple(os.path.join(state, name) for name in STATE_FOLDERS)
        """The folders in which plugins keep files."""
        self.trust = os.path.join(state, "trusted_policies")
        """The file of the digests of what projects bring that the user trusts, and of what they declined."""
        self.redaction_key = os.path.join(state, "redaction_key")
        """The file that holds the key of this installation's marks."""
        self.history = os.path.join(state, "history")
        """The file that keeps the lines of the prompt."""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> State:
        """Return the folders below $XDG_STATE_HOME and $XDG_CONFIG_HOME. Raises UsageError.

        A relative path there is ignored, as XDG asks.
        """

        def folder(variable: str, fallback: str) -> str:
            value = environment.get(variable, "")
            return os.path.join(
                value if value.startswith("/") else os.path.join(_home(environment), fallback), "harness"
            )

        return cls(
            state=folder("XDG_STATE_HOME", os.path.join(".local", "state")), config=folder("XDG_CONFIG_HOME", ".config")
        )

    @property
    def guarded(self) -> tuple[str, str]:
        """The folders that no call may write, links followed."""
        return os.path.realpath(self.state), os.path.realpath(self.config)

    def new_outputs(self) -> str:
        """Return a folder, not made yet, for the full output of one session's commands."""
        return os.path.join(self.outputs, os.urandom(6).hex())

    def remove_old_outputs(self) -> None:
        """Remove what commands of sessions printed that are a week past. What cannot be removed stays."""
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
        """Return the name under which things of a workspace are kept: its own, and a digest of its path."""
        from harness.digest import digest_of

        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in os.path.basename(workspace))[:40] or "root"
        digest = digest_of(workspace.encode("utf-8", "surrogateescape"))[:8]
        return f"{slug}-{digest}"

    def new_export_path(self, session: str) -> str:
        """Return the path of a new file for the conversation of a session, its folder made (mode 0700). Raises OSError."""
        for new_folder in (self.state, self.exports):
            _make_private(new_folder)
        return os.path.join(self.exports, f"harness-{session}-{time.strftime('%Y%m%dT%H%M%S')}.md")

    def new_log_path(self, workspace: str) -> str:
        """Return the path of a new log for a session in `workspace`, its folder made (mode 0700).

        Raises LogError if the folder cannot be made, or would lie inside the workspace.
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
        # To the microsecond: the order of the names is that of the sessions.
        stamp = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(now // 10**9))}.{now // 1000 % 10**6:06d}Z"
        return os.path.join(folder, f"{stamp}-{os.urandom(3).hex()}.jsonl")

    def record_head(self, log: ActionLog, *, closed: bool = True) -> None:
        """Note the size and head of a log that is being closed, or (not `closed`) that goes on.

        Raises LogError if that cannot be written.
        """
        self.make_folder_of_heads()
        from harness.log.heads_file import note_head

        note_head(self.heads, log, closed=closed)

    def record_loss(self, noted_head: KnownHead) -> None:
        """Note that a log is gone, and that another is begun under its name. Raises LogError if that cannot be written."""
        from harness.log.heads_file import note_loss

        note_loss(self.heads, noted_head)

    def check_heads(self) -> None:
        """Raise LogError where no head could be noted: a session could not come to a good end."""
        self.make_folder_of_heads()
        from harness.log.heads_file import opened_heads

        os.close(opened_heads(self.heads))

    def make_folder_of_heads(self) -> None:
        """See to it that the heads file can be made. Raises LogError."""
        try:
            _make_private(self.state)
        except OSError as error:
            raise LogError(f"the heads file cannot be written: {self.heads}: {error.strerror}") from None

    def known_head(self, path: str) -> KnownHead | None:
        """Return the noted head of the log at `path`, or `None`. Raises UsageError if the heads file cannot be read."""
        from harness.log.heads_file import HeadsFile

        return HeadsFile(self.heads).of_path(path)

    def log_paths(self, workspace: str | None = None) -> list[str]:
        """Return every log, oldest first; with `workspace` those of its folder alone."""
        return logs_in(self.sessions if workspace is None else self.log_folder(workspace))

    def latest_log(self, workspace: str) -> str:
        """Return the newest log of a workspace, else the newest of all. Raises UsageError if there is none."""
        paths = self.log_paths(workspace) or self.log_paths()
        if not paths:
            raise UsageError(f"no action log under {self.sessions}")
        return paths[-1]

    def is_trusted(self, sha256: str) -> bool:
        """Say whether the user trusted exactly this content of a project's: their last word counts."""
        return self._last_word_of(sha256) == sha256

    def is_declined(self, sha256: str) -> bool:
        """Say whether the user was asked about exactly this content, and did not say yes, or took it back."""
        return self._last_word_of(sha256) == _DECLINED

    def trust_content(self, sha256: str, path: str) -> None:
        """Note that the user trusts this content. Raises PolicyError if it cannot be written."""
        self._note_trust(sha256, path)

    def decline_content(self, sha256: str, path: str) -> None:
        """Note that the user does not, and need not be asked about it again. Raises PolicyError as `trust_content`."""
        self._note_trust(_DECLINED, sha256, path)

    def was_trusted(self, path: str) -> bool:
        """Return whether the last entry about the file `path` trusted it, in any content."""
        ending = _noted("", path)
        lines = [line for line in _private_lines(self.trust) if line.rstrip("\n").endswith(ending)]
        return bool(lines) and not lines[-1].startswith(f"{_DECLINED} ")

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
    # INVARIANT: one line each time. A line end in the name of a folder must not begin a line of its own.
    return visible_line(" ".join(words), 5_000)


def logs_in(folder: str) -> list[str]:
    """Return every log in a folder and below, the oldest first, without heads files and special files.

    For the results of a batch these are the logs of its tasks, without summaries and kept work folders.
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
                and not (is_summary(name) and name.removesuffix("l") in files)  # a batch's, which lies beside it
            ]
        log_paths = [os.path.join(top, name) for name in names]
        paths += [path for path in log_paths if os.path.isfile(path)]  # no pipe, no link that leads nowhere
    return sorted(paths, key=lambda path: (os.path.basename(path), path))


def _make_private(folder: str) -> None:
    """Make a folder that only its owner may enter; one that others may write is taken back from them.

    `makedirs` gives its mode to the last folder only, and the umask decides on the others.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    mode = os.stat(folder).st_mode
    if mode & 0o022:
        os.chmod(folder, mode & 0o755)


def _private_lines(path: str) -> Iterator[str]:
    """Yield the lines of a file that its user alone may write; none where it is missing. Raises UsageError."""
    try:
        with open(open_private(path, os.O_RDONLY), encoding="utf-8", errors="surrogateescape") as file:
            yield from file
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
