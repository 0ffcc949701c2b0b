"""The entry for the registry of the Agent Client Protocol, held against the package and the program."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from places import ROOT

from harness import __version__
from harness.app.command_line import parser_for

(ENTRY,) = Path(ROOT, "examples", "acp-registry").iterdir()
PROJECT = tomllib.loads(Path(ROOT, "pyproject.toml").read_text())["project"]


def test_entry_names_this_version_of_the_package_and_a_command_that_it_has() -> None:
    entry = json.loads((ENTRY / "agent.json").read_text())
    (distribution,) = entry["distribution"].values()
    assert (entry["id"], entry["version"], distribution["package"]) == (
        ENTRY.name,
        __version__,
        f"{PROJECT['name']}[acp]=={__version__}",
    )
    assert re.fullmatch("[a-z][a-z0-9-]*", entry["id"])
    assert (entry["description"], entry["license"]) == (PROJECT["description"], PROJECT["license"])
    assert distribution["cmd"] in PROJECT["scripts"]
    command, *flags = distribution["args"]
    assert parser_for(command).parse_args(flags).stdio is True


def test_icon_is_small_and_takes_the_colour_of_the_editor() -> None:
    icon = (ENTRY / "icon.svg").read_text()
    assert re.findall(r'(?:width|height)="(\d+)"', icon) == ["16", "16"]
    assert set(re.findall(r'(?:fill|stroke)="([^"]*)"', icon)) == {"currentColor"}
