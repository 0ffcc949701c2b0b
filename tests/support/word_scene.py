"""What the tests of a team's own words share: a skill, and how the files of a folder are written."""

from __future__ import annotations

from pathlib import Path

SKILL = "---\nname: release\ndescription: how a release is made\n---\nRun make.\n"


def put(folder: Path, **files: str) -> Path:
    """Write Markdown files by their names, in which `__` is a slash, and return the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
