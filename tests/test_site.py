"""The site: each page has its place in it, and what its pages quote is what the program says. `.ci/run` builds it."""

from __future__ import annotations

import errno
import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import yaml
from rows import all_rows

import harness

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "site.py"))["pages"]()


def named_in(entries: object) -> Iterator[str]:
    """Return the pages that the navigation names, in order."""
    match entries:
        case str():
            yield entries
        case list():
            for entry in entries:
                yield from named_in(entry)
        case dict():
            yield from named_in(list(entries.values()))
        case _:
            raise AssertionError(f"not an entry: {entries!r}")


def test_each_page_has_its_place_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(named_in(config["nav"])) == sorted(PAGES)


def test_the_reference_holds_what_the_library_promises() -> None:
    assert set(re.findall(r"^::: harness\.(\w+)$", PAGES["reference.md"], re.MULTILINE)) == set(harness.__all__)


def test_a_link_leads_to_a_page_of_the_site_or_is_plain_text() -> None:
    targets = {
        (page, target)
        for page, text in PAGES.items()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text)
        if not target.endswith(".svg")
    }
    missing = [(page, path) for page, path in targets if os.path.normpath(os.path.join(page, "..", path)) not in PAGES]
    assert missing == []


QUOTED = [
    words
    for line in re.findall(r"^- ((?:`[^`]+`(?:, )?)+)", PAGES["troubleshooting.md"], re.MULTILINE)
    for words in re.findall(r"`([^`]+)`", line)
]
"""The words that a reader of the page looks for."""


@all_rows("words", QUOTED)
def test_troubleshooting_quotes_what_the_program_says(words: str) -> None:
    of_the_system = {os.strerror(errno.EROFS), os.strerror(errno.ENETUNREACH)}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "harness").rglob("*.py"))
    assert words in of_the_system or words in sources


def test_the_picture_of_the_whole_needs_no_net_and_has_a_title() -> None:
    picture = (ROOT / "docs" / "overview.svg").read_text(encoding="utf-8")
    root = ET.fromstring(picture)
    assert root.findtext("{http://www.w3.org/2000/svg}title", "").startswith("The model proposes a call.")
    assert re.findall(r"(?:href|src|url)\W*https?:", picture) == []
