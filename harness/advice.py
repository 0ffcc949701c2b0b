"""Advice: what would let a refused call run, in the words of a policy file; text, which is never applied by itself."""

from __future__ import annotations

from harness.record import Record


class Advice(Record):
    """What would let a refused call run; for whoever writes the policy, never for the model."""

    toml: str = ""
    """Rules to add, as a policy file has them; empty where no further rule lets it run."""
    why: str = ""
    """Why there is none."""
