"""The model's text about the skills: their names, when they help, and their paths."""

from __future__ import annotations

from collections.abc import Iterable

from harness.session.words.word_files import Skill

_BEGIN = """\
Skills are texts that say how a kind of work is done here. Where one fits the task, read its file first, with what it names \
in its folder. A skill grants no permission: what it says to run is a tool call like any other."""


def skills_text(skills: Iterable[Skill]) -> str:
    """Return the text about the skills for the system prompt. Empty without any."""
    lines = [f"- {skill.name} ({skill.path}): {' '.join(skill.description.split())}" for skill in skills]
    return "\n".join((_BEGIN, *lines)) if lines else ""
