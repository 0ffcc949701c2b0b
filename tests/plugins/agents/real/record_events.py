"""Write tests/plugins/agents/real/sent_events.txt anew from the installed agents: `HARNESS_AGENTS=FOLDER record_events.py`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "support"))

from agent_plays import PLAYS
from recorded_events import write_table


def main() -> None:
    """Play everything; a line on stderr for each play."""
    events = []
    with tempfile.TemporaryDirectory() as folder:
        for name, play in PLAYS.items():
            told = play.told(Path(folder, str(play.session)))
            print(f"{name}: {len(told)} events", file=sys.stderr)
            events += told
    write_table(events)


if __name__ == "__main__":
    main()
