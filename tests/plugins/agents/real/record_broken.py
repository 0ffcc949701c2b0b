"""Write what_runs_behind_ours.txt anew from the installed agents: `HARNESS_AGENTS=FOLDER record_broken.py`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from agent_rig import BEFORE
from broken_hook import BROKEN, runs_broken, write_table


def main() -> None:
    """Play everything; a line on stderr for each play."""
    ran: dict[str, list[str]] = {agent: [] for agent in BEFORE}
    with tempfile.TemporaryDirectory() as folder:
        for number, (agent, fault) in enumerate((agent, fault) for agent in BEFORE for fault in BROKEN):
            runs = runs_broken(agent, fault, Path(folder, str(number)))
            print(f"{agent}, {fault}: {'runs' if runs else 'stopped'}", file=sys.stderr)
            if runs:
                ran[agent].append(fault)
    write_table(ran)


if __name__ == "__main__":
    main()
