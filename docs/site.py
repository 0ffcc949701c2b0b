"""Writes the pages of the site to `build/pages`, where `zensical build --strict` (mkdocs.yml) takes them from.

The pages of the site are those of `docs/`, the README and its like from the root of the repository, and a reference of
what `harness.__all__` promises. A link to a file that is not a page becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parent.parent
FROM_THE_ROOT = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
PICTURES = ("*.svg",)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")

REFERENCE = """# Reference

Made from the docstrings. What stands here is what `harness.__all__` holds and the library promises
([versions](contributing.md#versions)); everything else is private, and may change with any version.
"""


def linked(text: str, folder: str) -> str:
    """Return `text`, written in `folder` of the repository, with links that lead to pages of the site."""

    def replaced(match: re.Match[str]) -> str:
        words, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in FROM_THE_ROOT:
            inside = FROM_THE_ROOT[path]
        elif path.startswith("docs/"):
            inside = path.removeprefix("docs/")
        else:
            return words or path
        here = folder.removeprefix("docs").strip("/")
        return f"[{words}]({posixpath.relpath(inside, here or '.')}{anchor})"

    return LINK.sub(replaced, text)


def reference() -> str:
    """Return the page of the library: a place for the docstring of each name that is promised."""
    names = sorted(harness.__all__, key=str.lower)
    return "\n".join([REFERENCE, *(f"::: harness.{name}" for name in names), ""])


def pages() -> dict[str, str]:
    """Return the text of each page by its path in the site."""
    found = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        source = path.relative_to(ROOT).as_posix()
        found[source.removeprefix("docs/")] = linked(path.read_text(encoding="utf-8"), posixpath.dirname(source))
    for source, page in FROM_THE_ROOT.items():
        found[page] = linked((ROOT / source).read_text(encoding="utf-8"), "")
    return {**found, "reference.md": reference()}


def write(folder: Path) -> None:
    """Write all pages and pictures into `folder`, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in pages().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    for kind in PICTURES:
        for picture in (ROOT / "docs").glob(kind):
            shutil.copy(picture, folder)


if __name__ == "__main__":
    write(ROOT / "build" / "pages")
