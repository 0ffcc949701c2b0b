"""Policies that the tests of several rooms judge by, each the text of its file."""

from __future__ import annotations

AUTO = 'version = 1\n[tools]\ndefault = "auto"\n'
CONFIRM = 'version = 1\n[tools]\ndefault = "confirm"\n'
ASKING = f"""{CONFIRM}readers = true
[[rule]]
id = "secrets"
decision = "deny"
access = ["read", "write"]
path = [".env"]
reason = "Secrets."
"""
"""What only looks is not asked about, and one file is nobody's."""
ASKING_TWICE = f"""{ASKING}[[rule]]
id = "push"
decision = "confirm"
argv = ["git", "push"]
[[rule]]
id = "lock"
decision = "confirm"
access = ["write"]
path = ["*.lock"]
"""
"""And rules ask as well: what they put a question to, no grant of a session answers."""
