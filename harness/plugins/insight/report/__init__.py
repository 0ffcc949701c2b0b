"""Reports: an HTML page about logs, for readers who were absent. `audit report` and `run --report html:FILE` write it.

Read page.html first, the page's template, then `page`, which fills it. `figures` makes all counts in one pass before
the page begins. `lists` has the tables, `timeline` every record in order, `charts` the bars, `style` the style sheet.
Text of a log is in `spans` and reaches the page only through the templates, which escape it (app/pages.py).

The page has no script and no references to other files. The same logs give the same page, since its time is that of the
last record. This code verifies no log and writes no file.
"""

from __future__ import annotations

from harness.plugins.insight.report.page import CHARACTERS, TIMELINE_CALLS, report

__all__ = ["CHARACTERS", "TIMELINE_CALLS", "report"]
