"""The words of the log that many who read it share: decisions, answers, statuses; a test holds them to the gate's enums."""

from __future__ import annotations

DECISIONS = ("auto", "confirm", "deny", "block")
"""From the mildest to the strictest."""
ANSWERS = ("yes", "no", "stop", "halt", "edit", "nobody")
RAN = ("ok", "failed", "timeout", "interrupted", "crashed")
"""Statuses of calls that were begun."""
CUT_SHORT = ("timeout", "interrupted", "crashed")
"""Of these, those of calls that could not report what they had done; `failed` did."""
DID_NOT_RUN = ("invalid", "denied", "blocked", "not_run")
"""Statuses of calls that were not begun."""
STATUSES = (*RAN, *DID_NOT_RUN)
MOST_FACETS = 50
"""How many parts of a call a decision lists, those first that decided."""
FILE_TOOLS = ("read_file", "write_file", "edit_file")
"""Tools whose intent names all that they change."""
