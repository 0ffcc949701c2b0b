"""Counts, durations and sizes in words."""

from __future__ import annotations

_MANY = 100_000


def count_of(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 turn`, `2,000 turns`. `plural` is for nouns whose plural is not formed with -s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def short_count(count: int) -> str:
    """Return a count in about five characters. From 100,000 on, in thousands (`k`) or millions (`M`)."""
    if count < _MANY:
        return str(count)
    return f"{count // 1_000}k" if count < 10_000_000 else f"{count // 1_000_000}M"


def duration(seconds: float) -> str:
    """Return a duration in at most two units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    count = round(seconds)
    for size, name, rest, of_rest in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if count >= size:
            return f"{count // size} {name} {count % size // rest} {of_rest}"
    return f"{count} s"


def elapsed(seconds: float) -> str:
    """Return a running time, with two-digit second parts: `12 s`, `3 min 05 s`, `1 h 02 min`."""
    whole_seconds = int(seconds)
    if whole_seconds < 60:
        return f"{whole_seconds} s"
    return (
        f"{whole_seconds // 60} min {whole_seconds % 60:02} s"
        if whole_seconds < 3600
        else f"{whole_seconds // 3600} h {whole_seconds // 60 % 60:02} min"
    )


def ago(seconds: float) -> str:
    """Return an elapsed time as text: `just now`, `5 min ago`, `2 h ago`, `3 d ago`."""
    whole_seconds = int(seconds)
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole_seconds >= size:
            return f"{whole_seconds // size} {name} ago"
    return "just now"


def size_of_bytes(count: int) -> str:
    """Return a number of bytes with a unit, rounded to about three digits."""
    if count < 1000:
        return f"{count} B"
    value, units = count / 1000, ["kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 99.95 else f"{value:.0f} {units[0]}"
