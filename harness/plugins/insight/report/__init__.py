"""A report: one page of HTML about logs, for an absent reader: `audit report`, and `run --report html:FILE`.

Read page.html first, which is the page, then `page`, which fills it. `figures` counts in one pass what must be known
beforehand; `lists` has the tables, `timeline` every record in order, `charts` the bars, `style` the look. Text of a
log is in `spans` and reaches the page only through the templates, which escape it (app/pages.py).

The page holds no script, refers to nothing outside itself and is the same for the same logs: its time is that of the
last record. Nothing here verifies a log or writes a file.
"""

from __future__ import annotations

from harness.plugins.insight.report.page import CHARACTERS, TIMELINE_CALLS, report

__all__ = ["CHARACTERS", "TIMELINE_CALLS", "report"]
