"""Commands and skills in force in one workspace: the user's own, and those of the workspace that the user trusts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeVar

from harness.errors import UsageError
from harness.paths import is_within, is_within_any
from harness.record import replace
from harness.session.config.config_file import refuse_place
from harness.session.extensions.project_trust import trusted_words
from harness.session.state import State
from harness.session.words.word_files import (
    OwnCommand,
    OwnWords,
    Skill,
    WordFolder,
    by_name,
    read_word_folder,
    words_in,
)
from harness.text.visible import visible_line

WordT = TypeVar("WordT", OwnCommand, Skill)


def words_here(state: State, workspace: str, home: str) -> OwnWords:
    """Return the commands and skills in force in `workspace`, without a question to the user.

    They are the user's own, and those of the workspace and of the folders above it in its repository whose current content
    is trusted. If two have the same name, the user's counts, then the nearest. `workspace` and `home` are absolute, links
    followed. Raises UsageError if the trust file cannot be read.
    """
    word_sets, left_out, notes = _users_own(state, workspace), dict[str, str](), list[str]()
    trusted = trusted_words(state, workspace)
    notes += trusted.notes
    word_sets += [
        words_in(WordFolder(data=word_file.data, left_out=word_file.left_out), word_file.path)
        for word_file in trusted.files
    ]
    for file, reason in trusted.left_out:
        left_out |= dict.fromkeys(by_name(words_in(WordFolder(data=file.data), file.path).commands), reason)
    for words in word_sets:
        left_out |= words.left_out
        notes += words.notes
    commands, skills = (
        _first([word_file.commands for word_file in word_sets], notes),
        _first([word_file.skills for word_file in word_sets], notes),
    )
    named_skills, places = dict[str, Skill](), list[str]()
    for name, skill in skills.items():
        outside = [place for place in _places_of(skill) if not is_within(place, workspace)]
        if bad := next((place for place in outside if not _may_be_read(place, state, workspace, home)), ""):
            notes.append(visible_line(f"{skill.path} is left out: {bad} is not opened to the model", 1_000))
            continue
        named_skills[name] = replace(skill, path=os.path.realpath(skill.path))
        places += outside
    return OwnWords(
        commands=commands, skills=named_skills, left_out=left_out, skill_places=tuple(places), notes=tuple(notes)
    )


def _first(word_sets: Iterable[Mapping[str, WordT]], notes: list[str]) -> dict[str, WordT]:
    """Return the first entry of each name. Add a note about each other one, unless it is the same file."""
    words = dict[str, WordT]()
    for name, word in (item for word_set in word_sets for item in word_set.items()):
        first = words.setdefault(name, word)
        if os.path.realpath(first.path) != os.path.realpath(word.path):
            notes.append(visible_line(f"{word.path} is left out: {first.path} has that name", 1_000))
    return words


def _users_own(state: State, workspace: str) -> list[OwnWords]:
    def check(place: str) -> None:
        try:
            refuse_place(place, workspace)
        except UsageError as error:
            raise ValueError(str(error).removeprefix(f"{place}: ")) from None

    word_sets = []
    for kind in ("commands", "skills"):
        folder = os.path.join(os.path.realpath(state.config), kind)
        if os.path.lexists(folder):
            try:
                word_sets.append(words_in(read_word_folder(folder, check), folder))
            except ValueError as error:
                word_sets.append(OwnWords(notes=(visible_line(f"{folder} is left out: {error}", 1_000),)))
    return word_sets


def _places_of(skill: Skill) -> Iterable[str]:
    """Return the places of a skill to make readable, links followed: its folder, and its file if that is a link elsewhere.

    If the file is a link, and the folder of its target has the skill's name, that whole folder is included (`stow` links
    each file separately).
    """
    folder, path = os.path.realpath(os.path.dirname(skill.path)), os.path.realpath(skill.path)
    around = os.path.dirname(path)
    return dict.fromkeys((folder, around if around == folder or os.path.basename(around) == skill.name else path))


def _may_be_read(place: str, state: State, workspace: str, home: str) -> bool:
    """Return whether the place of a skill may be made readable for the model.

    It must not contain the workspace, the home folder or harness's own folders, nor be in the latter outside of `skills`.
    """
    if any(is_within(guarded_folder, place) for guarded_folder in (workspace, home, *state.guarded)):
        return False
    skills = os.path.join(os.path.realpath(state.config), "skills")
    return is_within(place, skills) or not is_within_any(place, state.guarded)
