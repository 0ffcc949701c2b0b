"""Threads that are kept: how many are started, what becomes of one that is stuck, and of a forked process."""

from __future__ import annotations

import os
import threading
from _thread import get_native_id

from process_scene import wait_until

from harness.kept_threads import KeptThreads


def done(threads: KeptThreads) -> int:
    """Do a piece of work; return the number of its thread."""
    over = threading.Event()
    found: list[int] = []
    threads.begin(lambda: found.append(get_native_id()), over.set)
    assert over.wait(60)
    return found[0]


def test_one_thread_does_one_piece_after_the_other() -> None:
    first: list[int] = []
    threads = KeptThreads(lambda: first.append(get_native_id()))
    assert [done(threads) for _ in range(100)] == first * 100
    assert threads.busy == 0


def test_one_that_is_stuck_is_left_to_itself_and_works_again_when_it_comes_back() -> None:
    threads, stuck, over = KeptThreads(), threading.Event(), threading.Event()
    first = done(threads)
    threads.begin(stuck.wait, over.set)
    others = {done(threads) for _ in range(10)}
    assert (len(others), first in others, threads.busy) == (1, False, 1)
    stuck.set()
    assert over.wait(60)
    assert threads.busy == 0
    assert {done(threads), done(threads)} <= {first, *others}


def test_a_thread_is_free_before_it_says_that_it_is_through() -> None:
    threads = KeptThreads()
    told: list[int] = []
    over = threading.Event()

    def say() -> None:
        told.append(threads.busy)
        over.set()

    threads.begin(lambda: None, say)
    assert over.wait(60)
    assert told == [0]


def test_a_forked_process_starts_its_own() -> None:
    threads = KeptThreads()
    done(threads)
    child = os.fork()
    if child == 0:
        over = threading.Event()
        threads.begin(lambda: None, over.set)
        os._exit(0 if over.wait(60) else 1)
    ended = []

    def has_ended() -> bool:
        ended.append(os.waitpid(child, os.WNOHANG))
        return ended[-1][0] == child

    assert wait_until(has_ended)
    assert ended[-1] == (child, 0)
