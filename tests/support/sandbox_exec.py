"""Stand-ins for sandbox-exec(1): one that holds, by bubblewrap, one that starts the command without walls, and one that fails.

Called as `sandbox-exec -p PROFILE COMMAND...`. The first understands what `harness.sandbox.seatbelt` writes, and no more.
"""

from __future__ import annotations

import os
import re
import stat
import sys

PATHS = re.compile(r'\(subpath "((?:[^"\\]|\\.)*)"\)')


def paths_of(profile: str, operation: str) -> list[str]:
    """Return the paths of the rules that begin with an operation."""
    lines = [line for line in profile.splitlines() if line.startswith(f"({operation} ")]
    return [re.sub(r"\\(.)", r"\1", path) for line in lines for path in PATHS.findall(line)]


def holding(profile: str) -> list[str]:
    """Return the words of a bubblewrap that does what the profile says."""
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"]
    if "(allow network*" not in profile:
        words.append("--unshare-net")
    for path in paths_of(profile, "allow file-write*"):
        words += ["--bind", path, path]
    for path in paths_of(profile, "deny file-write*"):
        words += ["--bind", os.path.dirname(path), os.path.dirname(path), "--ro-bind", path, path]
    for path in paths_of(profile, "deny file-read-data file-read-xattr file-write* file-link"):
        words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        above = os.path.dirname(path)
        sockets = [
            f"{above}/{name}" for name in os.listdir(above) if stat.S_ISSOCK(os.lstat(f"{above}/{name}").st_mode)
        ]
        words += [word for each in sockets if "unix-socket" not in profile for word in ("--ro-bind", "/dev/null", each)]
    return [*words, "--"]


def main() -> None:
    """Start the command, as the name of this program says."""
    kind, option, profile, *command = sys.argv[1:]
    if option != "-p" or not profile.startswith("(version 1)\n(deny default)\n"):
        sys.exit(64)
    if kind == "fails":
        sys.stderr.write("sandbox-exec: sandbox_apply: Operation not permitted\n")
        sys.exit(71)
    words = holding(profile) if kind == "holds" else []
    os.execvp((words or command)[0], [*words, *command])


if __name__ == "__main__":
    main()
