"""Files of commands (`NAME.md` or `FOLDER/NAME.md`) and skills (`NAME/SKILL.md`), from the user or a project.

A folder is read once and kept as one JSON text, so that exactly the content that the user saw and trusted is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from harness.record import Record
from harness.regex import regex
from harness.safe_files import read_regular
from harness.session.words.front_matter import front_matter
from harness.text.visible import visible_line

SKILL = "SKILL.md"
MOST_FILES = 500
"""Maximum number of files, and of folders, in one folder."""
MOST_BYTES = 200_000
"""Maximum size of one file, in bytes. The largest published command or skill has 121,453 bytes."""
MOST_FOLDER_BYTES = 2_000_000
"""Maximum size of all files of one folder, in bytes, since the user reads them before trusting them."""
_NAME = regex(r"[a-z0-9][a-z0-9._-]{0,63}")
_FIELDS = ("description", "model", "plan", "argument-hint")
"""Fields of a command. `plan: true` turns on plan mode for it. Fields of other agents have no effect."""
_NO_MODELS = ("inherit", "default")
"""Other agents' names for the current model."""
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1_024
"""Maximum length of a skill's description, in characters (agentskills.io/specification). A longer one is cut."""
_MOST_NOTE = 1_000

Check: TypeAlias = Callable[[str], None]
"""Raises ValueError for a path that must not be read, because of its place or its target."""


class OwnCommand(Record):
    """A command of a team or a user."""

    name: str
    """Name without the slash. For `frontend/component.md` it is `frontend:component`."""
    description: str
    arguments: str
    """Description of the arguments. Empty if the file has none."""
    model: str
    plans: bool
    body: str
    path: str

    @property
    def short_name(self) -> str:
        """Name without folders. Users may type it if no other command has it."""
        return self.name.rpartition(":")[2]


class Skill(Record):
    """A skill: name, description for the model, and path of its file."""

    name: str
    """Name of its folder."""
    description: str
    path: str


class OwnWords(Record):
    """Commands and skills by name, and notes for the user."""

    commands: Mapping[str, OwnCommand] = {}
    skills: Mapping[str, Skill] = {}
    left_out: Mapping[str, str] = {}
    """Reasons why commands do not count, by name."""
    skill_places: tuple[str, ...] = ()
    """Folders (or single files) of skills outside of the workspace, absolute, links followed."""
    notes: tuple[str, ...] = ()


def by_name(commands: Mapping[str, OwnCommand]) -> dict[str, OwnCommand]:
    """Return commands by full name, and also by short name if no other command has that name in full."""
    short = {command.short_name: command for command in reversed(list(commands.values()))}
    return {**short, **commands}


class WordFolder(Record):
    """The files of one folder of commands or skills."""

    data: bytes = b""
    """JSON object with the text of each file by its path in the folder. Empty if there are no files."""
    left_out: Mapping[str, str] = {}
    """Reasons why files do not count, by their path in the folder."""


def read_word_folder(folder: str, check: Check) -> WordFolder:
    """Return the files of `folder`, links followed. Files that are not plain text or fail `check` are left out.

    Raises ValueError if the folder itself fails `check`, cannot be read, or has too many or too large files. Then none
    of its files counts.
    """
    texts, left_out = dict[str, str](), dict[str, str]()
    files = _skills if os.path.basename(folder) == "skills" else _commands
    for number, name in enumerate(files(folder, check, left_out)):
        if number == MOST_FILES:
            raise ValueError(f"more than {MOST_FILES} files")
        try:
            texts[name] = _text(os.path.join(folder, name), check)
        except ValueError as error:
            left_out[name] = str(error)
    data = json.dumps(texts).encode() if texts else b""
    if len(data) > MOST_FOLDER_BYTES:
        raise ValueError(f"more than {MOST_FOLDER_BYTES:,} bytes in all files")
    return WordFolder(data=data, left_out=left_out)


def _skills(folder: str, check: Check, left_out: dict[str, str]) -> Iterator[str]:  # noqa: ARG001 - as of commands
    check(folder)
    for name in _names(folder):
        path = os.path.join(name, SKILL)
        if os.path.lexists(os.path.join(folder, path)):
            yield path


def _commands(folder: str, check: Check, left_out: dict[str, str]) -> Iterator[str]:
    """Yield the files of commands in a folder and below. Skipped folders are added to `left_out`, with the reasons."""
    check(folder)
    waiting, real_folders = [""], {os.path.realpath(folder)}
    for around in waiting:
        for name in _names(os.path.join(folder, around)):
            inner = os.path.join(around, name)
            path = os.path.join(folder, inner)
            real = os.path.realpath(path)
            if name.endswith(".md"):
                yield inner
            elif os.path.isdir(real) and real not in real_folders:
                if len(real_folders) == MOST_FILES:
                    raise ValueError(f"more than {MOST_FILES} folders")
                real_folders.add(real)
                try:
                    check(path)
                    _names(path)
                    waiting.append(inner)
                except ValueError as error:
                    left_out[inner] = str(error)


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None


def _text(path: str, check: Check) -> str:
    check(path)
    try:
        data = read_regular(path, MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES:,} bytes")
    if b"\0" in data:
        raise ValueError("not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def words_in(word_folder: WordFolder, folder: str) -> OwnWords:
    """Parse the files of `folder`, a path. An invalid file is left out, with a note."""
    commands, skills, left_out, notes = dict[str, OwnCommand](), dict[str, Skill](), dict[str, str](), list[str]()

    def leave_out(name: str, reason: str) -> None:
        left_out[_command_name(name)] = note = _note(f"{os.path.join(folder, name)} is left out: {reason}")
        notes.append(note)

    for name, text in (json.loads(word_folder.data) if word_folder.data else {}).items():
        path = os.path.join(folder, name)
        try:
            if name.endswith(f"/{SKILL}"):
                skill = _skill(text, path, notes)
                skills[skill.name] = skill
            else:
                command = _command(_command_name(name), text, path, notes)
                commands[command.name] = command
        except ValueError as error:
            leave_out(name, str(error))
    for name, folder_reason in word_folder.left_out.items():
        leave_out(name, folder_reason)
    return OwnWords(commands=commands, skills=skills, left_out=left_out, notes=tuple(notes))


def _note(text: str) -> str:
    return visible_line(text, _MOST_NOTE)


def _command_name(path: str) -> str:
    return path.removesuffix(".md").replace("/", ":").lower()


def _command(name: str, text: str, path: str, notes: list[str]) -> OwnCommand:
    if not all(map(_NAME.fullmatch, name.split(":"))):
        raise ValueError("the name of a command may have letters, digits, -, _ and . only")
    matter = front_matter(text)
    fields = matter.fields
    if fields.get("plan", "false").lower() not in ("true", "false"):
        raise ValueError("plan: must be true or false")
    body = matter.body.strip()
    if not body:
        raise ValueError("the file is empty")
    notes += [_note(f"{path}: {problem}") for problem in (matter.problem, *_slips(fields)) if problem]
    first = next((line for line in (body_line.lstrip("#- ") for body_line in body.split("\n")) if line), "")
    return OwnCommand(
        name=name,
        description=fields.get("description") or first[:100],
        arguments=fields.get("argument-hint", ""),
        model="" if fields.get("model") in _NO_MODELS else fields.get("model", ""),
        plans=fields.get("plan", "").lower() == "true",
        body=body,
        path=path,
    )


def _slips(fields: Mapping[str, str]) -> Iterator[str]:
    """Yield notes about misspelled keys. Other unknown keys are ignored, since other agents may use them."""
    unknown_keys = [key for key in fields if key not in _FIELDS]
    if not unknown_keys:
        return
    from difflib import get_close_matches  # 10 ms, for odd keys only

    for key in unknown_keys:
        for near in get_close_matches(key, _FIELDS, 1, 0.75):
            yield f"{key} means nothing here; did you mean {near}?"


def _skill(text: str, path: str, notes: list[str]) -> Skill:
    matter = front_matter(text)
    fields, name = matter.fields, os.path.basename(os.path.dirname(path))
    if not name.isprintable() or len(name) > _LONGEST_NAME:
        raise ValueError(f"the name of its folder must be one line of at most {_LONGEST_NAME} characters")
    description = " ".join(fields.get("description", "").split())
    if not description:
        raise ValueError(f"missing description, which tells the model when to read the skill {matter.problem}".rstrip())
    if fields.get("disable-model-invocation", "").lower() == "true":
        raise ValueError("disable-model-invocation keeps models from choosing the skill")
    if matter.problem:
        notes.append(_note(f"{path}: {matter.problem}"))
    if fields.get("name") != name:
        notes.append(_note(f"{path}: its name must be that of its folder, which counts: {name}"))
    cut = len(description) > _LONGEST_DESCRIPTION
    return Skill(name=name, description=description[:_LONGEST_DESCRIPTION] + (" ..." if cut else ""), path=path)


def lines_of(word_folder: WordFolder, folder: str) -> list[str]:
    """Return a summary of a folder for the question about trust. The lines are not yet safe to display."""
    words = words_in(word_folder, folder)
    lines = [f"the command /{word.name}: {word.description}{_switches(word)}" for word in words.commands.values()]
    lines += [f"the skill {word.name}: {word.description}" for word in words.skills.values()]
    return [*lines, *words.notes]


def _switches(command: OwnCommand) -> str:
    switches = [f"asks the model {command.model}"] if command.model else []
    switches += ["in plan mode"] if command.plans else []
    return f" ({', '.join(switches)})" if switches else ""
