"""The decisions that a policy can make about a call."""

from __future__ import annotations

from enum import IntEnum


class Decision(IntEnum):
    """The decision on a call. Ordered: the maximum over rules, layers and facets is the answer."""

    AUTO = 0
    CONFIRM = 1
    DENY = 2
    BLOCK = 3

    @property
    def word(self) -> str:
        """The word that policies and logs use."""
        return self.name.lower()
