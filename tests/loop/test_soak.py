"""A long run in small: what the process holds does not grow with the turns; bench/soak.py is the long one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from places import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))

from soak import soak

ENDING = {-1, 0, 1}
"""By how many threads two looks differ: that of the last request may not have ended yet."""


def test_a_long_run_holds_no_more_at_its_end_than_at_its_beginning(tmp_path: Path) -> None:
    found = soak(turns=240, calls=4, session_turns=20, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (960, True)
    first, last = found.held[0], found.held[-1]
    assert {(held.descriptors, held.children) for held in found.held} == {(first.descriptors, first.children)}
    assert {held.threads - first.threads for held in found.held} <= ENDING
    assert last.rss - first.rss < 8 * 1024 * 1024


def test_a_session_that_grows_costs_no_more_threads_and_descriptors(tmp_path: Path) -> None:
    """A session of 100 turns to warm up, then two more: what each of them held is given back."""
    found = soak(turns=300, calls=2, session_turns=100, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (600, True)
    first, last = found.held
    assert (last.descriptors, last.children) == (first.descriptors, first.children)
    assert last.threads - first.threads in ENDING
