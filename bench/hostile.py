"""Run every hostile row that the policy permits unasked, as a real process in its walls, and look at what it changed.

Usage: python bench/hostile.py [--every N] [--only TEXT] [--policy NAME...] [--json FILE] [PASS...]. The passes, the rows
and the effects are those of tests/support/held_rows.py. Prints how many rows ran at each level, and each effect beyond
the walls. Needs bwrap, for the throw-away namespace around it all. Always exits 0: a bench measures, it does not judge.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import held_rows
import second_wall


def main() -> None:
    parser = argparse.ArgumentParser(description="Run hostile rows in their walls.")
    parser.add_argument(
        "passes", nargs="*", default=list(held_rows.PASSES), help="control, namespaces, bubblewrap, landlock"
    )
    parser.add_argument("--policy", action="append", choices=held_rows.POLICIES, help="take only this policy")
    parser.add_argument("--every", type=int, default=1, help="run about one row in so many (default: 1)")
    parser.add_argument("--only", default="", help="run only rows that hold this text")
    parser.add_argument("--at-once", type=int, default=2, help="passes to run at once (default: 2)")
    parser.add_argument("--json", type=Path, help="write the whole report to this file")
    options = parser.parse_args()
    if reason := second_wall.missing():
        print(f"nothing was run: {reason}", file=sys.stderr)
        return
    policies = options.policy or held_rows.POLICIES
    passes = [(name, policy) for policy in policies for name in options.passes]
    reports = held_rows.run_outside(passes, every=options.every, only=options.only, at_once=options.at_once)
    for title, report in reports.items():
        kinds = Counter(kind for row in report["beyond"] for kind in row["kinds"])
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none"
        print(
            f"{title} ({report['level']}): {report['run']} of {report['attempts']} rows ran, "
            f"{len(report['beyond'])} with effects beyond the walls ({counts}), {len(report['known'])} known, "
            f"{report['seconds']} s"
        )
        if not title.startswith("control"):
            for row in report["beyond"]:
                print(f"  {json.dumps(row)[:500]}")
    if options.json is not None:
        options.json.write_text(json.dumps(reports, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
