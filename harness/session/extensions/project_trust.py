"""Trust in a workspace's own files: `.harness/config.toml`, files of plugins, and folders of commands and skills.

Command and skill folders (PROJECT_WORDS, such as `.harness/commands`) count in the workspace and above it in its
repository; each folder is treated as one file. A file counts only after the user saw all of it and trusted it, at the
prompt or with `harness policy trust FILE`. The trust is for exactly this content in exactly this folder, since a relative
command starts another program in another folder.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.digest import digest_of
from harness.errors import UsageError
from harness.files.repository import git_top
from harness.paths import is_within
from harness.record import Record
from harness.safe_files import read_regular
from harness.session.config.extension_tables import project_tables
from harness.session.extensions.extensions import extensions_in
from harness.session.extensions.started_words import command_words, permission_words, variable_words
from harness.session.shipped_plugins import section_of
from harness.session.state import PROJECT_CONFIG, PROJECT_WORDS, State, word_folders
from harness.shipped import PROJECT_FILES, SECTIONS
from harness.text.amounts import count_of
from harness.text.toml_places import read_toml
from harness.text.visible import visible, visible_line

if TYPE_CHECKING:
    from harness.gate.approval import Approver

NAMES = (*PROJECT_FILES, PROJECT_CONFIG)
MOST_BYTES = 100_000
"""Maximum size of one file in bytes, since the user must read it."""
_NO_SCRIPTS = "scripts beside a SKILL.md are not part of it, and can change without it"


class ProjectFile(Record):
    """One such file or folder, read once, so that exactly the same content is shown, trusted and used."""

    path: str
    """Absolute path."""
    name: str
    """Relative name, from NAMES or PROJECT_WORDS."""
    data: bytes
    sha256: str
    """Digest of the content alone, which the user can compute too."""
    trust: str
    """Digest of name, folder and content, under which trust is stored."""
    lines: tuple[str, ...]
    """Lines to show the user: the programs, hosts and files that it would use, then its full content."""
    left_out: Mapping[str, str] = {}
    """Files of the folder that do not count, with the reasons."""

    @property
    def folder(self) -> str:
        """The folder that `name` is relative to."""
        return self.path.removesuffix(f"/{self.name}") or "/"


class TrustedFiles(Record):
    """Trust in the files of a workspace."""

    files: tuple[ProjectFile, ...] = ()
    """Files whose current content is trusted."""
    left_out: tuple[tuple[ProjectFile, str], ...] = ()
    """Files that are not trusted, each with a note with the reason."""
    notes: tuple[str, ...] = ()
    """All notes, including those about invalid files."""


def trusted_files(state: State, workspace: str) -> TrustedFiles:
    """Return the trust in the files NAMES of `workspace` (the folder, links followed), without a question to the user.

    Raises UsageError if the file of trusted digests cannot be read.
    """
    return _trusted(state, workspace, [(workspace, name) for name in NAMES])


def trusted_words(state: State, workspace: str) -> TrustedFiles:
    """Return the trust in the command and skill folders, those of the workspace first. See `trusted_files`."""
    return _trusted(state, workspace, list(word_folders(workspace)))


def _trusted(state: State, workspace: str, places: Sequence[tuple[str, str]]) -> TrustedFiles:
    files, left_out, notes = [], [], []
    for folder, name in places:
        shown_path = _display_name(workspace, folder, name)
        try:
            file = project_file(folder, name)
        except ValueError as error:
            notes.append(visible_line(f"{shown_path} is left out: {error}", 2_000))
            continue
        if file is not None and state.is_trusted(file.trust):
            files.append(file)
        elif file is not None:
            reason = (
                "you declined it"
                if state.is_declined(file.trust)
                else "it changed since you trusted it"
                if state.was_trusted(file.path)
                else "you have not trusted it"
            )
            trust_command = f"harness policy trust {shlex.quote(shown_path)}"
            note = f"{shown_path} is left out: {reason}; `{trust_command}` shows it and trusts it"
            left_out.append((file, visible_line(note, 2_000)))
    return TrustedFiles(files=tuple(files), left_out=tuple(left_out), notes=(*notes, *(note for _, note in left_out)))


def _display_name(workspace: str, folder: str, name: str) -> str:
    """Return the path of a file relative to the workspace, for display."""
    return name if folder == workspace else os.path.relpath(os.path.join(folder, name), workspace)


def ask_trust_of_files(state: State, workspace: str, ask: Approver) -> tuple[str, ...]:
    """Ask about each file that has no answer yet, and store the answer. Return notes for the user.

    Must be called before `trusted_files`, and only with a terminal. Any answer but yes is stored as a no. Raises
    PolicyError if an answer cannot be stored.
    """
    from harness.session.trust import CHANGED

    notes = []
    for folder, name in (*((workspace, name) for name in NAMES), *word_folders(workspace)):
        try:
            file = project_file(folder, name)
        except ValueError:
            continue  # `trusted_files` reports it
        if file is None or state.is_trusted(file.trust) or state.is_declined(file.trust):
            continue
        shown_path = _display_name(workspace, folder, name)
        came = "it changed since you trusted it" if state.was_trusted(file.path) else "it came with the folder"
        if not _ask_trust(file, shown_path, came, ask):
            state.decline_content(file.trust, file.path)
            trust_command = f"harness policy trust {shlex.quote(shown_path)}"
            note = f"{shown_path} is not trusted. It is not asked again; `{trust_command}` trusts it"
        else:
            state.trust_content(file.trust, file.path)
            note = f"trusted: {file.path}; any change of its content ends the trust"
            note = note if _is_as_shown(file) else f"{file.path} {CHANGED}"
        notes.append(visible_line(note, 2_000))
    return tuple(notes)


def _ask_trust(file: ProjectFile, display_path: str, came: str, ask: Approver) -> bool:
    from harness.session.trust import TRUST_TOOL, is_wanted

    if file.name in PROJECT_WORDS:
        skills = "its skills are named to the model, which may read them"
        effect = skills if _has_skills(file.name) else "its commands are sent as if you had typed them"
        return is_wanted(
            ask,
            tool=TRUST_TOOL,
            summary=f"trust what {display_path} tells you and the model",
            preview="\n".join(file.lines),
            reason=f"{came}; {effect}",
            by="once for this content in this folder; it permits nothing, the policy decides on every call",
        )
    return is_wanted(
        ask,
        tool=TRUST_TOOL,
        summary=f"trust what {display_path} of this folder would start",
        preview="\n".join(file.lines),
        reason=f"{came}, and what it names is started as you",
        by="once for this content in this folder; programs that lie in the folder can change without it",
    )


def project_file(workspace: str, name: str) -> ProjectFile | None:
    """Return the file or folder `name` in `workspace`, or `None` if it is missing or declares nothing.

    `name` is from NAMES or PROJECT_WORDS. Raises ValueError if it cannot be read or is invalid.
    """
    path = os.path.join(workspace, name)
    if not os.path.lexists(path):
        return None
    if name in PROJECT_WORDS:
        return _folder_of_words(path, name, workspace)
    try:
        data = read_regular(path, MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES:,} bytes")
    value = _value(name, data)
    effects = [visible_line(line, 10_000) for line in _parts_of(name, value)]
    if not effects:
        return None
    sha256 = digest_of(data)
    content_lines = visible(json.dumps(value, indent=2, ensure_ascii=False, default=str)).split("\n")
    head = f"{visible_line(path, 2_000)}  sha256 {sha256}", f"would bring {count_of(len(effects), 'thing')}:"
    bound = b"\0".join((name.encode(), workspace.encode("utf-8", "surrogateescape"), data))
    lines = *head, *(f"  {line}" for line in effects), "all of it:", *(f"  {line}" for line in content_lines)
    return ProjectFile(path=path, name=name, data=data, sha256=sha256, trust=digest_of(bound), lines=lines)


def _folder_of_words(path: str, name: str, workspace: str) -> ProjectFile | None:
    """Return a command or skill folder as one ProjectFile. Raises ValueError."""
    from harness.session.words.word_files import lines_of, read_word_folder

    top = git_top(workspace)

    def check(place: str) -> None:
        if not is_within(os.path.realpath(place), top):
            raise ValueError("a link leads out of the repository")

    word_folder = read_word_folder(path, check)
    if not word_folder.data:
        for file, reason in word_folder.left_out.items():
            raise ValueError(f"{file}: {reason}")
        return None
    files = json.loads(word_folder.data)
    descriptions = [*lines_of(word_folder, path), *([_NO_SCRIPTS] if _has_skills(name) else [])]
    lines = [visible_line(path, 2_000), f"would bring {count_of(len(files), 'file')} of words:"]
    lines += [*(f"  {visible_line(line, 2_000)}" for line in descriptions), "all of it:"]
    for file, text in files.items():
        lines += [f"  --- {visible_line(file, 500)}", *(f"  {line}" for line in visible(text).split("\n"))]
    return ProjectFile(
        path=path,
        name=name,
        data=word_folder.data,
        sha256=digest_of(word_folder.data),
        trust=digest_of(b"\0".join((name.encode(), workspace.encode("utf-8", "surrogateescape"), word_folder.data))),
        lines=tuple(lines),
        left_out=word_folder.left_out,
    )


def _has_skills(name: str) -> bool:
    return name.endswith("/skills")


def named_file(path: str) -> ProjectFile | None:
    """Return the file or folder at `path`, or `None` if its name is not in NAMES or PROJECT_WORDS.


    Raises UsageError if it is missing, declares nothing, or is invalid.
    """
    absolute_path = os.path.abspath(path)
    name = next((suffix for suffix in (*NAMES, *PROJECT_WORDS) if absolute_path.endswith(f"/{suffix}")), "")
    if not name:
        return None
    try:
        file = project_file(os.path.realpath(absolute_path.removesuffix(f"/{name}") or "/"), name)
    except ValueError as error:
        raise UsageError(f"{visible_line(path, 1_000)}: {error}") from None
    if file is None:
        raise UsageError(f"{visible_line(path, 1_000)}: the file does not exist or declares nothing")
    return file


def _value(name: str, data: bytes) -> Mapping[str, Any]:
    """Parse and validate a file. Raises ValueError."""
    if name in PROJECT_FILES:
        form = section_of(PROJECT_FILES[name]).project_file
        return {} if form is None else form.entries(data)

    try:
        extensions_in(project_tables(data, name))
    except UsageError as error:
        raise ValueError(str(error)) from None
    return read_toml(data)[1]


def _parts_of(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    if name in PROJECT_FILES:
        form = section_of(PROJECT_FILES[name]).project_file
        if form is not None:
            yield from (form.words(entry, fields) for entry, fields in value.items())
        return
    for key in SECTIONS:
        entries: object = value
        for part in key.split("."):
            entries = _dict(entries).get(part)
        yield from (section_of(key).words(entry, _dict(fields)) for entry, fields in _dict(entries).items())
    for kind, word in (("tool", "argv"), ("hook", "command")):
        for table in _list(value.get(kind)):
            fields_of_table = _dict(table)
            label = fields_of_table.get("name") or fields_of_table.get("id") or "without a name"
            variables, may = variable_words(_list(fields_of_table.get("env"))), permission_words(fields_of_table)
            yield f"{kind} {label} runs: {command_words(_list(fields_of_table.get(word)))}{variables}{may}"


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_as_shown(file: ProjectFile) -> bool:
    try:
        return project_file(file.folder, file.name) == file
    except ValueError:
        return False
