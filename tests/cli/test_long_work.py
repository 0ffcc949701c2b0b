"""Progress of long work: one live line at a terminal that may be written over, and nothing anywhere else."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
from collections.abc import Iterator

import pytest
from screen_scene import Terminal

from harness.cli.console import Look
from harness.cli.long_work import LongWork, counted_off, is_pipe

LIVE = Look(repaints=True)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as terminal:
        yield terminal
