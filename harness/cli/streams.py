"""The standard streams as they are found: closed ones replaced, odd locales survived; writes nothing."""

from __future__ import annotations

import os
import sys


def keep_standard_descriptors() -> tuple[bool, bool, bool]:
    """Say which of stdin, stdout and stderr are open, and put /dev/null in the place of the others.

    Otherwise the next file that is opened (the action log, say) would become the standard output of something.
    """
    was_open = []
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
            was_open.append(True)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            was_open.append(False)
    return was_open[0], was_open[1], was_open[2]


def use_utf8() -> None:
    """Let stdout and stderr take any character whatever the locale: what it lacks is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def terminal_is_there() -> bool:
    """Say whether a person can be asked: stdin and stdout are terminals, whatever any library thinks of colours."""
    return all(stream is not None and os.isatty(stream.fileno()) for stream in (sys.stdin, sys.stdout))


def complain(text: str) -> None:
    """Write a line on stderr, at most 5,000 characters of it, shown safely; nothing where nobody can be told."""
    from harness.visible import visible_line

    try:
        sys.stderr.write(f"harness: {visible_line(text, 5_000)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
