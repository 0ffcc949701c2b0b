"""Host connection: what came of a command's connections to one place, where it may reach some hosts only."""

from __future__ import annotations

from harness.record import Record


class HostConnection(Record):
    """Connections that went to one place, and what came of them."""

    host: str
    """As the program named it; empty where its request was not understood."""
    port: int
    address: str = ""
    """Empty where none was tried."""
    why_not: str = ""
    """Empty where it was let through."""
    times: int = 1
    sent: int = 0
    """Bytes from the program."""
    received: int = 0
    """Bytes to the program."""
