"""The setting `sign_key`: a run signs the head of its log at its end, with real keys of OpenSSH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from program import Program

from harness.models.scripted import Reply, replies


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed: signing is not shown here")
def test_a_run_signs_its_head(program: Program) -> None:
    key = program.home / ".ssh" / "logs"
    key.parent.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    config = Path(program.environment["XDG_CONFIG_HOME"]) / "harness" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('sign_key = "~/.ssh/logs"\n')
    done = program.run("run", "go", "--base-url", program.serve(replies(Reply(text="done"))))
    assert (done.code, "NOT signed" in done.err) == (0, False)
    signers = program.home / "signers"
    signers.write_text(f"ci@example.org {Path(f'{key}.pub').read_text()}")
    checked = program.run("audit", "verify", "--signers", str(signers))
    assert (checked.code, "ci@example.org signed" in checked.out) == (0, True)
    key.unlink()
    again = program.run("run", "go", "--base-url", program.serve(replies(Reply(text="done"))))
    assert (again.code, "harness: the head of the log is NOT signed" in again.err) == (0, True)
    assert program.run("audit", "verify", "--signers", str(signers)).code == 4
