# ruff: noqa: ARG001 - mkdocs hands its hooks all of these
"""The pages of the site that lie beside `docs/` in the repository: the README is its home page."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the page of each agent behind the one on all of them."""
    for entry in config.nav or ():
        if "agents.md" in (pages := next(iter(entry.values()))):
            pages += [f"agents/{path.name}" for path in sorted((ROOT / "docs/agents").glob("*.md"))]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=linked(text, "")))
    return files


def on_page_markdown(markdown: str, *, page: object, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page in `docs/` to the pages of the site."""
    source = str(getattr(getattr(page, "file", None), "src_uri", ""))
    return markdown if source in PAGES.values() else linked(markdown, "docs/" + posixpath.dirname(source))


def linked(text: str, folder: str) -> str:
    """Return `text`, written in `folder` of the repository, with links that lead to pages; others become plain text."""

    def replaced(match: re.Match[str]) -> str:
        words, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in PAGES:
            inside = PAGES[path]
        elif path.startswith("docs/"):
            inside = path.removeprefix("docs/")
        else:
            return words or path
        here = folder.removeprefix("docs").strip("/")
        return f"[{words}]({posixpath.relpath(inside, here or '.')}{anchor})"

    return LINK.sub(replaced, text)
