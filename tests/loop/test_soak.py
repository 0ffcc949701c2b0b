"""A long run in small: what the process holds does not grow with the turns; bench/soak.py is the long one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from places import ROOT
from sizes import proof_size

sys.path.insert(0, os.path.join(ROOT, "bench"))

from soak import soak

ENDING = {-1, 0, 1}
"""By how many threads two looks differ: that of the last request may not have ended yet."""


def test_a_long_run_holds_no_more_at_its_end_than_at_its_beginning(tmp_path: Path) -> None:
    turns = 20 * proof_size("SOAK", 3, full=12)
    found = soak(turns=turns, calls=4, session_turns=20, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (4 * turns, True)
    first, last = found.held[0], found.held[-1]
    assert {(held.descriptors, held.children) for held in found.held} == {(first.descriptors, first.children)}
    assert {held.threads - first.threads for held in found.held} <= ENDING
    assert last.rss - first.rss < 8 * 1024 * 1024


def test_a_session_that_grows_costs_no_more_threads_and_descriptors(tmp_path: Path) -> None:
    """A long session to warm up, then two more: what each of them held is given back."""
    turns = 25 * proof_size("SOAK_SESSION", 1, full=4)
    found = soak(turns=3 * turns, calls=2, session_turns=turns, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (6 * turns, True)
    first, last = found.held
    assert (last.descriptors, last.children) == (first.descriptors, first.children)
    assert last.threads - first.threads in ENDING
