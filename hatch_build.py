"""What the build makes: the man page in the wheel, and a README whose links and pictures work on the index."""

import os
import re
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VERSION = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class ManPage(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `share/man/man1/harness.1`. The commands are described without the dependencies of the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatchling calls it
        """Write the page into the folder of build results, where the wheel takes it from."""
        sys.path.insert(0, self.root)
        from harness.app.manual import manual

        page = os.path.join(self.directory, "harness.1")
        os.makedirs(self.directory, exist_ok=True)
        with open(page, "w", encoding="utf-8") as file:
            file.write(manual())
        build_data["shared_data"][page] = "share/man/man1/harness.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the page, which stands in the wheel now: the folder is published as it is."""
        os.remove(os.path.join(self.directory, "harness.1"))


class Readme(MetadataHookInterface):
    """Gives the package the README of the repository, with full addresses at the tag of its version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of the package."""
        source = metadata["urls"]["Source"]
        with open(os.path.join(self.root, "harness", "__init__.py"), encoding="utf-8") as file:
            version = VERSION.search(file.read())
        tag = f"v{version[1]}" if version else "main"
        with open(os.path.join(self.root, "README.md"), encoding="utf-8") as file:
            text = LINK.sub(lambda link: absolute(link, source, tag), file.read())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(link: re.Match[str], source: str, tag: str) -> str:
    """Return `link` with the address of its file in the repository; a picture needs the file itself, not a page on it."""
    picture, words, path = link.groups()
    return f"{picture}[{words}]({source}/{'raw' if picture else 'blob'}/{tag}/{path})"
