"""Rules that a person's repeated approvals speak for: what they could be about, how they are written, what they would change.

Everything here is pure, and allows nothing: a suggestion is text for a person to read.
"""
