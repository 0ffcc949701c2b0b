"""Seatbelt trial: whether the walls of Seatbelt hold on this very machine. Only walls that did are used.

Every attempt is made without walls and within them, in a folder made for it. An attempt that fails without walls proves
nothing, so the walls are not believed then either. The result is kept in a file, named by the digest of system version and
profile.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack

from harness.digest import digest_of
from harness.process.removal import remove_folder
from harness.record import Record, replace
from harness.safe_files import open_private, read_regular, replace_file
from harness.sandbox.machine import Machine, probe
from harness.sandbox.seatbelt import PROGRAM, is_of_root, prefix, profile
from harness.sandbox.walls import Unenforceable, Walls

SECONDS = 30.0
"""Maximum seconds of one program of the trial."""
DONE = "done"
_MOST_BYTES = 64_000
_CODE = """\
import errno, json, os, socket, subprocess, sys
place, port, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
inside = place + "/inside"
def write(path):
    with open(path, "a") as file: file.write("x")
def read(path):
    with open(path) as file: file.read()
def connect(family, address):
    with socket.socket(family) as link:
        link.settimeout(5); link.connect(address)
def run():
    subprocess.run(["/bin/sh", "-c", ":"], check=True)
def there_and_back(old, new):
    os.rename(old, new); os.rename(new, old)
def link(path):
    os.link(inside + "/secret", path); read(path)
def made(make, path):
    make(path); (os.rmdir if os.path.isdir(path) else os.unlink)(path)
said = {}
for name, attempt in {
    "read a file": lambda: read(inside + "/plain"),
    "start a program": run,
    "write /dev/null": lambda: write("/dev/null"),
    "write the workspace": lambda: write(inside + "/plain"),
    "make and remove a file": lambda: made(write, inside + "/new"),
    "write the temporary folder": lambda: made(write, place + "/temporary/new"),
    "read a hidden file": lambda: read(inside + "/secret"),
    "read a file in a hidden folder": lambda: read(place + "/hidden/file"),
    "read a hidden file by another name": lambda: made(link, inside + "/link"),
    "move a hidden file": lambda: there_and_back(inside + "/secret", inside + "/moved"),
    "write a protected file": lambda: write(inside + "/folder/kept"),
    "replace a protected file": lambda: there_and_back(inside + "/folder/kept", inside + "/folder/other"),
    "move the folder of a protected file": lambda: there_and_back(inside + "/folder", inside + "/moved"),
    "write outside": lambda: write(place + "/outside/file"),
    "make a folder outside": lambda: made(os.mkdir, place + "/outside/new"),
    "change a mode outside": lambda: os.chmod(place + "/outside/file", 0o600),
    "write over a link": lambda: write(inside + "/way/file"),
    "connect to this machine": lambda: connect(socket.AF_INET, ("127.0.0.1", port)),
    "connect to another program": lambda: connect(socket.AF_UNIX, place + "/s"),
    "signal another program": lambda: os.kill(parent, 0),
}.items():
    try:
        attempt()
    except OSError as error:
        said[name] = errno.errorcode.get(error.errno, str(error))
    except BaseException as error:
        said[name] = type(error).__name__
    else:
        said[name] = "done"
print(json.dumps(said))
"""
"""Program that makes every attempt, and prints the result of each."""
ALLOWED = ("read a file", "start a program", "write /dev/null")
"""Attempts that must succeed for every command."""
WRITES = ("write the workspace", "make and remove a file", "write the temporary folder")
"""Attempts that must succeed for a command that may write, and fail for a reader."""


class SeatbeltTrial(Record):
    """Result of the trial."""

    failures: tuple[str, ...]
    """Problems, a sentence each. Empty if every wall held."""


def proved(folder: str, program: str, version: str, *, owner_matters: bool = True) -> SeatbeltTrial:
    """Return the result of the trial of `program` on a system of this version. Make it if it is not kept in `folder`.

    `folder` must be one that no command in walls can write. With `owner_matters` the program must belong to root. A kept result
    counts for this program alone, in a file of this user that no other may write. Commands without walls could forge it.
    """
    if owner_matters and not is_of_root(program):
        return SeatbeltTrial(failures=(f"{program} is not a program of root",))
    # Paths that every system has, so that every kind of rule is in the profile.
    walls = Walls(
        write=("/",), network=True, hide=("/dev/null",), show=("/dev",), keep=("/dev/zero",), needed_socket=True
    )
    parts = (version, program, _digest(program), profile(walls), profile(_reader(walls)), _CODE)
    digest = digest_of("\0".join(parts).encode())
    path = os.path.join(folder, f"walls-{digest[:32]}.json")
    stored = _stored(path)
    if stored is None:
        stored = make_trial(program)
        try:
            replace_file(
                path, [json.dumps({"version": version, "failures": stored.failures}, indent=1).encode() + b"\n"]
            )
        except OSError:
            pass  # it is made again then
    return stored


def with_seatbelt(machine: Machine, folder: str, program: str = PROGRAM, *, owner_matters: bool = True) -> Machine:
    """Return a machine without walls with those of Seatbelt, if they held in a trial here, else with the reason.

    The trial runs at first use. Its result is kept in `folder` (see `proved`). `owner_matters` means that the
    program must belong to root.
    """
    trial = proved(folder, program, " ".join(os.uname()), owner_matters=owner_matters)
    if trial.failures:
        more = f" (and {len(trial.failures) - 1} more)" if len(trial.failures) > 1 else ""
        return replace(machine, reasons=(*machine.reasons, f"Seatbelt is not used: {trial.failures[0]}{more}"))
    return replace(machine, seatbelt=program, no_namespaces="Seatbelt has none", reasons=())


def machine_here(folder: str) -> Machine:
    """Return the walls of this machine, with those of Seatbelt on a Mac (see `with_seatbelt`)."""
    machine = probe()
    return with_seatbelt(machine, folder) if sys.platform == "darwin" else machine


def _digest(program: str) -> str:
    """Return the digest of a program. Empty if it cannot be read: then the trial fails, too."""
    try:
        return digest_of(read_regular(program))
    except OSError:
        return ""


def _stored(path: str) -> SeatbeltTrial | None:
    try:
        with open(open_private(path, os.O_RDONLY), "rb") as file:
            failures = json.loads(file.read(_MOST_BYTES))["failures"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not isinstance(failures, list):
        return None
    return SeatbeltTrial(failures=tuple(map(str, failures)))


def make_trial(program: str) -> SeatbeltTrial:
    """Make the trial of `program`, and return its result. Never raises: what cannot be tried does not hold."""
    place = f"{os.path.realpath('/tmp')}/harness-{os.urandom(8).hex()}"  # noqa: S108 - a short name: sockets need it
    try:
        with ExitStack() as stack:
            os.mkdir(place, 0o700)
            stack.callback(remove_folder, place)
            port = _scene(place, stack)
            inside = f"{place}/inside"
            walls = Walls(
                write=(inside,),
                network=False,
                hide=(f"{inside}/secret", f"{place}/hidden"),
                keep=(f"{inside}/folder/kept",),
                unix_sockets=False,
                temporary=f"{place}/temporary",
            )
            without = _results((), place, port)
            writer = _results(prefix(walls, program), place, port)
            reader = _results(prefix(_reader(walls), program), place, port)
    except (OSError, ValueError) as error:
        return SeatbeltTrial(failures=(f"nothing could be tried: {error}",))
    return SeatbeltTrial(
        failures=(
            *(f"without walls, too, it fails to {name}: {end}" for name, end in without.items() if end != DONE),
            *_wrong("a command that may write", writer, without, (*ALLOWED, *WRITES)),
            *_wrong("a command that only reads", reader, without, ALLOWED),
        )
    )


def _reader(walls: Walls) -> Walls:
    return Walls(write=(), network=False, hide=walls.hide, unix_sockets=False)


def _wrong(subject: str, within: Mapping[str, str], without: Mapping[str, str], allowed: tuple[str, ...]) -> list[str]:
    """Return a sentence for each attempt that ended otherwise than the walls must end it."""
    missing = [f"{subject}: nothing is known of the attempt to {name}" for name in without if name not in within]
    return missing + [
        f"{subject} can {name}" if end == DONE else f"{subject} cannot {name}: {end}"
        for name, end in within.items()
        if (end == DONE) != (name in allowed)
    ]


def _scene(place: str, stack: ExitStack) -> int:
    """Make the files and sockets of the attempts. Return the port of a listener. Raises OSError."""
    for name in ("inside", "inside/folder", "hidden", "outside", "temporary"):
        os.mkdir(f"{place}/{name}")
    for name in ("inside/plain", "inside/secret", "inside/folder/kept", "hidden/file", "outside/file"):
        with open(f"{place}/{name}", "w", encoding="ascii") as file:
            file.write("content\n")
    os.symlink(f"{place}/outside", f"{place}/inside/way")
    unix_listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    unix_listener.bind(f"{place}/s")
    listener = stack.enter_context(socket.socket(socket.AF_INET))
    listener.bind(("127.0.0.1", 0))
    for each in (unix_listener, listener):
        each.listen(16)
    return int(listener.getsockname()[1])


def _results(words: tuple[str, ...], place: str, port: int) -> dict[str, str]:
    """Make the attempts behind `words`. Return the result of each. Raises OSError, also if the program says nothing."""
    import subprocess

    command = (*words, sys.executable, "-I", "-S", "-B", "-c", _CODE, place, str(port), str(os.getpid()))
    try:
        done = subprocess.run(
            command,
            cwd=f"{place}/inside",
            env={"PATH": "/bin:/usr/bin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        text = error.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise OSError(f"{command[0]} ended with {error.returncode}: {text or 'it results nothing'}") from None
    except subprocess.SubprocessError as error:
        raise OSError(str(error)) from None
    results = json.loads(done.stdout)
    if not isinstance(results, dict):
        raise Unenforceable(f"{command[0]} printed something else")
    return {str(name): str(end) for name, end in results.items()}
