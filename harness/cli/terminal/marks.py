"""Marks: characters that switch a style on or off within a text of our own making; `visible` leaves none of them in text from
elsewhere, so that nobody else can write them. Definitions only."""

from __future__ import annotations

import re

BOLD, NOT_BOLD = "\x0e", "\x0f"
ITALIC, NOT_ITALIC = "\x10", "\x11"
CODE, NOT_CODE = "\x12", "\x13"
STRUCK, NOT_STRUCK = "\x14", "\x15"
LINK, NOT_LINK = "\x16", "\x17"
MARKS = "\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17"
ANY_MARK = re.compile(f"[{MARKS}]")
