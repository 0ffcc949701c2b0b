"""A long run in small: what the process holds does not grow with the turns; bench/soak.py is the long one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

from soak import soak


def test_a_long_run_holds_no_more_at_its_end_than_at_its_beginning(tmp_path: Path) -> None:
    found = soak(turns=240, calls=4, session_turns=20, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (960, True)
    first, last = found.held[0], found.held[-1]
    assert {(held.descriptors, held.threads, held.children) for held in found.held} == {
        (first.descriptors, first.threads, first.children)
    }
    assert last.rss - first.rss < 8 * 1024 * 1024
    # Times say little where others use the machine; a history that is read anew for every turn would be tenfold.
    assert found.rate(0.8, 1) < 3 * found.rate(0.0, 0.2)


def test_a_session_that_grows_costs_no_more_threads_and_descriptors(tmp_path: Path) -> None:
    """A session of 100 turns to warm up, then two more: what each of them held is given back."""
    found = soak(turns=300, calls=2, session_turns=100, folder=str(tmp_path))
    assert (found.ran, found.log_whole) == (600, True)
    first, last = found.held
    assert (last.descriptors, last.threads, last.children) == (first.descriptors, first.threads, first.children)
    # Within one session, whose history grows with every turn; read anew for each, the last would take tenfold.
    assert found.rate(0.6, 0.66) < 3 * found.rate(0.34, 0.4)
