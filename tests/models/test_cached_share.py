"""What a request begins with stays the same, by every API: bench/cached_share.py, over twenty turns."""

from __future__ import annotations

import json
import subprocess
import sys

from places import ROOT

LEAST_SHARE = 0.85


def test_most_tokens_of_a_long_session_are_cached() -> None:
    command = [sys.executable, f"{ROOT}/bench/cached_share.py", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    shares = json.loads(done.stdout)
    assert set(shares) == {"chat", "reasoning", "openrouter", "litellm", "responses", "messages"}
    assert min(shares.values()) >= LEAST_SHARE, shares
