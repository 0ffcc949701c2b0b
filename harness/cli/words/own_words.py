"""The words that hold in one workspace: the user's own, and those of the workspace that the user trusts."""

from __future__ import annotations

import os

from harness.cli.extensions.project_trust import trusted_files
from harness.cli.state import PROJECT_WORDS, State
from harness.cli.words.word_files import OwnCommand, OwnWords, Skill, folder_data, words_in
from harness.text.visible import visible_line


def words_here(state: State, workspace: str) -> OwnWords:
    """Return the user's own words and those of `workspace` that are trusted as they are. Of two of one name the user's
    counts. Asks nothing. Raises UsageError where the file of what is trusted cannot be read."""
    found, notes = [], []
    for kind in ("commands", "skills"):
        folder = os.path.join(os.path.realpath(state.config), kind)
        if os.path.isdir(folder):
            try:
                found.append(words_in(folder_data(folder), folder))
            except ValueError as error:
                notes.append(visible_line(f"{folder} is left out: {error}", 1_000))
    if any(os.path.lexists(os.path.join(workspace, name)) for name in PROJECT_WORDS):
        trusted = trusted_files(state, workspace, PROJECT_WORDS)
        notes += trusted.notes
        found += [words_in(file.data, file.path) for file in trusted.files]
    commands, skills = dict[str, OwnCommand](), dict[str, Skill]()
    for words in found:
        notes += words.notes
        for name, command in words.commands.items():
            if commands.setdefault(name, command) is not command:
                notes.append(visible_line(f"{command.path} is left out: {commands[name].path} has that name", 1_000))
        for name, skill in words.skills.items():
            if skills.setdefault(name, skill) is not skill:
                notes.append(visible_line(f"{skill.path} is left out: {skills[name].path} has that name", 1_000))
    return OwnWords(commands=commands, skills=skills, notes=tuple(notes))
