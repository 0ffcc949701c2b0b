"""How much work a function does, counted in lines of Python: the same on every machine, however busy it is.

What a library or a regular expression does inside of one line is not counted. bench/growth.py times that.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

FACTOR = 4
# Work that grows with the size grows FACTOR times, work that grows with its square FACTOR**2 times.
MOST = FACTOR * 1.75


def lines_run(body: Callable[[], object]) -> int:
    """Count the lines of Python that body() runs in this thread; no finalizer of somebody else's garbage is among them."""
    count = 0

    def on_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(on_line)
    try:
        body()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count


def assert_linear(make: Callable[[int], T], body: Callable[[T], object], size: int) -> None:
    """Assert that the work of body(make(size)) grows with size, and not with its square."""
    small, large = make(size), make(size * FACTOR)
    body(small)  # what is only done once is done now
    least, most = lines_run(lambda: body(small)), lines_run(lambda: body(large))
    assert most <= MOST * least, f"{least:,} lines for {size:,}, {most:,} for {size * FACTOR:,}"
