"""The build hook: writes the man page and adds it to the wheel, so that `man harness` finds it after an installation."""

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManPage(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `share/man/man1/harness.1`. The commands are described without the dependencies of the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - as hatchling calls it
        """Write the page into the folder of build results."""
        sys.path.insert(0, self.root)
        from harness.app.manual import manual

        page = os.path.join(self.directory, "harness.1")
        os.makedirs(self.directory, exist_ok=True)
        with open(page, "w", encoding="utf-8") as file:
            file.write(manual())
        build_data["shared_data"][page] = "share/man/man1/harness.1"
