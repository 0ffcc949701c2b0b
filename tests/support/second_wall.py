"""The second wall stands alone: hostile commands run for real, as if the gate had taken each for a reader (or a writer).

By hand: `python tests/support/second_wall.py [--json] [--only TEXT] [--every N] [PASS...]` with the passes `control`, `reader`,
`writer` and `workspace`. Every pass is a process in a throw-away namespace of its own (bwrap: mounts, processes, network, IPC,
host name, and a user namespace), as an ordinary user, with a read-only root; what can be written there lies in memory, and
is watched.
The control runs the same commands without walls: an attempt that has no effect then proves nothing about the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
if HERE not in sys.path:
    sys.path.insert(0, HERE)

from places import ROOT  # noqa: E402 - lies beside this file
from second_wall_attempts import LEFT_OUT, STUBS, Attempt, own, rows  # noqa: E402

from harness.paths import is_within  # noqa: E402

ORDINARY = 65534
PASSES = ("control", "reader", "writer", "workspace")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
STUB_FOLDER = "/stubs"
SECONDS = 60.0
"""For one attempt, which none takes that ends."""
ENDLESS_SECONDS = 1.0
WHOLE_SECONDS = 3600
CHOSEN = 17
"""Of twenty parts of the attempts, the one in which every kind of effect is seen."""
MANY = 200
"""So many attempts of one pass are shared by two namespaces: much of the time goes into waiting."""


# ---------------------------------------------------------------------------------------------------------------------
# Outside: the namespace.


def bwrap(stubs: str) -> list[str]:
    """Return the words that start a command in a namespace of its own, read-only but for folders in memory."""
    root = os.geteuid() == 0
    words = [
        "bwrap",
        "--unshare-ipc",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
    ]
    # Without root bwrap makes the user namespace itself; root becomes an ordinary user first, and makes one then.
    words += ["--cap-drop", "ALL"] if root else ["--unshare-user", "--unshare-pid", "--proc", "/proc"]
    if root:  # bwrap covers parts of a /proc that root could write, and then the kernel forbids another one in it
        names = ("SETUID", "SETGID", "SETPCAP", "SYS_ADMIN")
        words += ["--dir", "/proc", *(word for name in names for word in ("--cap-add", f"CAP_{name}"))]
    words += ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            words += ["--ro-bind", name, name]
    for folder in ("/scratch", "/tmp", "/var/tmp", "/run"):
        words += ["--perms", "1777", "--tmpfs", folder]
    words += ["--symlink", "../run", "/var/run"]
    made = {"/"}
    for folder in program_folders():
        if not folder.startswith("/usr/"):
            words += [*_parents(folder, made), "--ro-bind", folder, folder]
    words += [
        "--ro-bind",
        stubs,
        STUB_FOLDER,
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--tmpfs",
        "/dev/shm",
    ]
    words += [
        "--mqueue",
        "/dev/mqueue",
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
        "--chdir",
        "/scratch",
        "--clearenv",
    ]
    for name, value in (
        ("PATH", f"{PATH}:{STUB_FOLDER}"),
        ("PYTHONPATH", ROOT),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("LANG", "C.UTF-8"),
    ):
        words += ["--setenv", name, value]
    if root:
        ids = [f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--bounding-set=-all"]
        words += ["unshare", "--pid", "--fork", "--mount-proc", "--"]
        words += ["setpriv", *ids, "--", "unshare", "--user", f"--map-user={ORDINARY}", f"--map-group={ORDINARY}"]
        words += ["--fork", "--"]  # what is tried may signal the first process of the namespace
    return words


def program_folders() -> list[str]:
    """Return the folders of this interpreter and of what it imports, none inside another."""
    folders = dict.fromkeys((sys.base_prefix, sys.prefix, ROOT, *filter(os.path.isdir, sys.path[1:])))
    return [one for one in folders if not any(one != other and is_within(one, other) for other in folders)]


def _parents(folder: str, made: set[str]) -> Iterator[str]:
    """Yield what makes the folders above one, for everybody to pass."""
    above = []
    while (folder := os.path.dirname(folder)) not in made:
        above.append(folder)
    for name in reversed(above):
        made.add(name)
        yield from ("--perms", "0755", "--dir", name)


def missing() -> str:
    """Say why there can be no such namespace here; nothing where there can."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    with tempfile.TemporaryDirectory() as stubs:
        os.chmod(stubs, 0o755)
        done = subprocess.run([*bwrap(stubs), "true"], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"bwrap does not work here: {done.stderr.strip()}"


def write_stubs(folder: str) -> list[str]:
    """Write scripts for the programs that are not installed, and return the names of these."""
    made = [name for name in STUBS if shutil.which(name, path=PATH) is None]
    for name in made:
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{STUBS[name]}\n")
        os.chmod(f"{folder}/{name}", 0o755)
    return made


def run_outside(passes: Sequence[str], only: str = "", every: int = 1) -> dict[str, Any]:
    """Run the passes, each in its own namespace, all at once, and return what each reports."""
    with tempfile.TemporaryDirectory() as stubs:
        os.chmod(stubs, 0o755)
        made = write_stubs(stubs)
        command = [
            *bwrap(stubs),
            sys.executable,
            os.path.abspath(__file__),
            "--inside",
            "--only",
            only,
            f"--every={every}",
        ]
        started = [
            (name, started_alone([*command, f"--share={share}", name]))
            for name in passes
            for share in range(_shares(only, every))
        ]
        reports: dict[str, Any] = {}
        try:
            for name, process in started:
                reports[name] = _joined(reports.get(name), _report(process))
        finally:
            for _, process in started:
                end(process)
    return reports | {"stubs": made}


def started_alone(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start what makes a namespace, in a process group of its own."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process group: the namespace, and all that is in it, ends with its first process."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _joined(some: dict[str, Any] | None, more: dict[str, Any]) -> dict[str, Any]:
    """Return two reports of one pass as one; seconds are those of the slower."""
    if some is None:
        return more
    both = {key: value | more[key] if isinstance(value, dict) else value + more[key] for key, value in some.items()}
    return both | {"seconds": max(some["seconds"], more["seconds"])}


def _report(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    try:
        output, _ = process.communicate(timeout=WHOLE_SECONDS)
        found: dict[str, Any] = json.loads(output)
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise RuntimeError(f"a pass ended without a report: {error}") from None
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Inside.


def chosen(only: str = "", every: int = 1) -> list[Attempt]:
    """Return the attempts that hold a text, and of these about one in so many: the same ones whatever else is in the table."""
    held = [attempt for attempt in (*rows(), *own()) if only in attempt.command]
    return [one for one in held if zlib.crc32(one.command.encode()) % every == CHOSEN % every]


def _shares(only: str, every: int) -> int:
    return 2 if len(chosen(only, every)) > MANY else 1


def run_inside(name: str, only: str, every: int, share: int) -> dict[str, Any]:
    """Run every attempt of one pass in this process, and return what became of it."""
    import second_wall_runner

    started = time.monotonic()
    attempts = chosen(only, every)[share :: _shares(only, every)]
    runner = second_wall_runner.Runner(name, SECONDS, ENDLESS_SECONDS)
    report = runner.run([one for one in attempts if one.command not in LEFT_OUT])
    report["has_namespaces"] = int(runner.has_namespaces)
    report["left_out"] = {one.command: LEFT_OUT[one.command] for one in attempts if one.command in LEFT_OUT}
    return report | {"seconds": round(time.monotonic() - started, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--share", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="attempts that hold this text")
    parser.add_argument("--every", type=int, default=1, help="about one attempt in so many")
    parser.add_argument("--json", action="store_true", help="print one object")
    parser.add_argument("passes", nargs="*", default=list(PASSES), help=f"which of {', '.join(PASSES)}")
    options = parser.parse_args()
    if options.inside:
        json.dump(run_inside(options.passes[0], options.only, options.every, options.share), sys.stdout)
        return 0
    if why := missing():
        print(f"NOTHING WAS PROVED: {why}", file=sys.stderr)
        return 2
    report = run_outside(options.passes, options.only, options.every)
    if options.json:
        json.dump(report, sys.stdout)
        return 0
    for name in options.passes:
        _print(name, report[name])
    print(f"stubs for: {', '.join(report['stubs']) or 'nothing'}")
    return 0


def _print(name: str, report: dict[str, Any]) -> None:
    effects, known = len(report["effects"]), len(report["known"])
    print(
        f"\n{name}: {report['attempts']} attempts, {effects} with an effect, {known} open by design, {report['seconds']} s"
    )
    for command, reason in report["left_out"].items():
        print(f"  left out: {command!r}: {reason}")
    for one in (*report["not_run"], *(report["effects"] if name != "control" else ())):
        print(f"  {json.dumps(one)[:600]}")


if __name__ == "__main__":
    sys.exit(main())
