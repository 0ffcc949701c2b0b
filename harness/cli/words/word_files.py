"""The files of a team's own words: commands, `NAME.md`, and skills, `NAME/SKILL.md`.

A folder is read at once and kept as one JSON text: what a person is shown and trusts is what is used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

from harness.errors import nearest
from harness.record import Record
from harness.safe_files import read_regular
from harness.text.front_matter import front_matter
from harness.text.visible import visible_line

SKILL = "SKILL.md"
MOST_FILES = 100
"""Of one folder."""
MOST_BYTES = 32_000
"""Of one file."""
MOST_FOLDER_BYTES = 500_000
"""Of all files of one folder: a person is to read them before they trust them."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_FIELDS = {"description", "model", "plan", "argument-hint"}
"""What a command may say of itself; `plan: true` asks in plan mode."""
_LONGEST_DESCRIPTION = 1_024
"""Of a skill, in characters (agentskills.io/specification)."""


class OwnCommand(Record):
    """A command of a team or a user."""

    name: str
    """Without the slash."""
    description: str
    arguments: str
    """How they are written, if the file says it."""
    model: str
    plans: bool
    body: str
    path: str


class Skill(Record):
    """A skill: what the model is told of it, and where the rest is."""

    name: str
    description: str
    path: str


class OwnWords(Record):
    """What there is, by name, and what a person is told of what is left out."""

    commands: Mapping[str, OwnCommand] = {}
    skills: Mapping[str, Skill] = {}
    notes: tuple[str, ...] = ()


def folder_data(folder: str) -> bytes:
    """Return the files of `folder` as one JSON object, text by path within it; empty where there is none.

    Raises ValueError where something in it is no plain file of text, or there is too much: then nothing of it counts.
    """
    if os.path.realpath(folder) != folder:
        raise ValueError("it is a link, or lies behind one")
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ValueError(f"it cannot be read: {error.strerror}") from None
    skills = folder.endswith("/skills")
    names = [os.path.join(name, SKILL) for name in names] if skills else [one for one in names if one.endswith(".md")]
    names = [name for name in names if os.path.lexists(os.path.join(folder, name))]
    if len(names) > MOST_FILES:
        raise ValueError(f"it has more than {MOST_FILES} files")
    texts = {name: _text(os.path.join(folder, name), name) for name in names}
    data = json.dumps(texts).encode() if texts else b""
    if len(data) > MOST_FOLDER_BYTES:
        raise ValueError(f"its files have more than {MOST_FOLDER_BYTES:,} bytes")
    return data


def _text(path: str, name: str) -> str:
    if os.path.realpath(path) != path:
        raise ValueError(f"{name} is a link, or lies behind one")
    try:
        data = read_regular(path, MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{name} has more than {MOST_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name} is no text in UTF-8") from None


def words_in(data: bytes, folder: str) -> OwnWords:
    """Return what `data`, as of `folder_data`, says. A file that is not understood is left out, and a note says why."""
    commands, skills, notes = dict[str, OwnCommand](), dict[str, Skill](), []
    for name, text in (json.loads(data) if data else {}).items():
        path = os.path.join(folder, name)
        try:
            if name.endswith(f"/{SKILL}"):
                skill = _skill(text, path)
                skills[skill.name] = skill
            else:
                command = _command(name.removesuffix(".md"), text, path)
                commands[command.name] = command
        except ValueError as error:
            notes.append(visible_line(f"{path} is left out: {error}", 1_000))
    return OwnWords(commands=commands, skills=skills, notes=tuple(notes))


def _command(name: str, text: str, path: str) -> OwnCommand:
    if not _NAME.fullmatch(name):
        raise ValueError("a command's name has small letters, digits, - and _ only")
    found = front_matter(text)
    said = found.fields
    if unknown := [key for key in said if key not in _FIELDS]:
        raise ValueError(f"a command has no key {unknown[0]!r}{nearest(unknown[0], _FIELDS)}")
    if said.get("plan", "false").lower() not in ("true", "false"):
        raise ValueError("plan: it is true or false")
    if not found.body.strip():
        raise ValueError("it says nothing")
    first = found.body.strip().split("\n")[0].lstrip("# ")
    return OwnCommand(
        name=name,
        description=said.get("description") or first[:100],
        arguments=said.get("argument-hint", ""),
        model=said.get("model", ""),
        plans=said.get("plan", "").lower() == "true",
        body=found.body.strip(),
        path=path,
    )


def _skill(text: str, path: str) -> Skill:
    said = front_matter(text).fields
    name, description = said.get("name", ""), said.get("description", "")
    if not _NAME.fullmatch(name):
        raise ValueError("its name must be given, in small letters, digits and -")
    if name != os.path.basename(os.path.dirname(path)):
        raise ValueError(f"it names itself {name!r}, and its folder has another name")
    if not description:
        raise ValueError("it has no description, so that the model cannot know when to read it")
    if len(description) > _LONGEST_DESCRIPTION:
        raise ValueError(f"its description has more than {_LONGEST_DESCRIPTION:,} characters")
    return Skill(name=name, description=description, path=path)


def lines_of(data: bytes, folder: str) -> list[str]:
    """Return what a person is told of a folder before they trust it: each name with what it says of itself. Not yet safe."""
    words = words_in(data, folder)
    told = [f"the command /{one.name}: {one.description}{_switches(one)}" for one in words.commands.values()]
    told += [f"the skill {one.name}: {one.description}" for one in words.skills.values()]
    return [*told, *words.notes]


def _switches(command: OwnCommand) -> str:
    said = [f"asks the model {command.model}"] if command.model else []
    said += ["in plan mode"] if command.plans else []
    return f" ({', '.join(said)})" if said else ""
