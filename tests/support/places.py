"""Where the repository lies, and what helps its tests."""

from __future__ import annotations

import os

SUPPORT = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(SUPPORT))
