"""Write docs/agents/ anew: a page for each agent that can be guarded."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from agent_pages import FOLDER, page

from harness.plugins.agents.guarded_agent import AGENTS


def main() -> None:
    """Write each page."""
    FOLDER.mkdir(exist_ok=True)
    for name in AGENTS:
        (FOLDER / f"{name}.md").write_text(page(name))


if __name__ == "__main__":
    main()
