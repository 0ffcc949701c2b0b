"""The small program that an agent starts for each event: it has the user's resident answer (commands/resident.py).

It hands its own streams over, so a process of the resident reads the event and writes the answer. INVARIANT: until the
resident has greeted, nothing is decided, and the caller may decide the event itself. After that, every failure refuses.

A process starts here for each event, so this module imports no other of the package and no slow one: not even `os`,
which takes as long to import as the resident takes to answer.
"""

import _socket
import posix
import sys
import time

GREETING_SECONDS = 3.0
"""Maximum seconds until the resident greets. Then the caller decides the event itself."""
SILENT_SECONDS = 25.0
"""Maximum seconds without an answer: more than a decision takes (20), and less than the least patient agent waits (30)."""
ANSWER_SECONDS = 580.0
"""Same limit with the time that the resident's process waits for a person, as it says. Agents wait 600 seconds."""
COMMANDS = ("install", "check", "status", "run", "uninstall")
"""Words after `hook` that begin a command of a user, not an event of an agent."""
GREETING = b"+"
WAITS, WORKS = b"\xff", b"\xfe"
"""Words of the resident's process instead of an exit code: it begins to wait for a person, and it goes on."""
NUMBER = 8
"""Bytes of a number in a request."""
MOST_PATH = 95
"""Maximum length of a socket's path, in bytes: unix(7) allows 107, and the resident appends its number."""
_PEER_PROCESS = 77
"""SO_PEERPIDFD of Linux 6.5, which Python does not name."""
_NOT_KNOWN = 92
"""ENOPROTOOPT."""
_STREAMS = (0, 1, 2)
_SIGNALS = range(1, 32)
"""All signals but those of real time."""
_LOCK = 3
"""Number of the descriptor that a starting resident locks."""
_NAMESPACES = ("mnt", "pid", "user", "net", "ipc", "uts", "cgroup", "time")
_CREDENTIALS = (b"Uid:", b"Gid:", b"Groups:", b"Cap", b"NoNewPrivs:", b"Seccomp")
_STOPPED = (b"State:\tT", b"State:\tt")
"""States of a process that a signal or a debugger stopped."""
_O_PATH = 0o10000000
_REFUSED = 2


def exit_code(
    words: list[str],
    environment: dict[bytes, bytes],
    *,
    greeting_seconds: float = GREETING_SECONDS,
    silent_seconds: float = SILENT_SECONDS,
    answer_seconds: float = ANSWER_SECONDS,
) -> int | None:
    """Have the resident answer the event on stdin, and return the exit code. Start the resident if there is none.

    `words` are the arguments without the program, and `environment` is that of this process. `None` means that no
    resident can answer, or that it is no event, and that stdin is unread.
    """
    if words[1:2] == [] or words[1] in COMMANDS:
        return None
    if not all(map(_is_open, _STREAMS)):  # a descriptor that is opened here would take the place of one
        return None
    ours = surroundings("self")
    path = "" if ours is None else socket_path(environment, ours)
    if not path:
        return None
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        try:
            _check_folder(_folder_of(path))
            link.settimeout(greeting_seconds)  # so that no full queue of a hung resident holds it
            link.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            _start(path)
            return None
        if peer_surroundings(link) != ours or link.recv(1) != GREETING:
            return None
    except OSError:
        return None
    try:
        link.settimeout(silent_seconds)
        _send(link, words, environment)
        code = _answer(link, silent_seconds, answer_seconds)
    except BaseException as error:  # noqa: BLE001 - the resident may have decided already
        return _refuse(f"{type(error).__name__}: {error}")
    return code[0] if code else _refuse("its process ended")


def _answer(link: "_socket.socket", silent_seconds: float, answer_seconds: float) -> bytes:
    """Return the exit code; empty at the end of the connection. Raises TimeoutError."""
    end = time.monotonic() + answer_seconds
    seconds = silent_seconds
    while True:
        link.settimeout(max(min(seconds, end - time.monotonic()), 0.001))
        word = link.recv(1)
        if word not in (WAITS, WORKS):
            return word
        seconds = answer_seconds if word == WAITS else silent_seconds


def surroundings(process: str) -> tuple[object, ...] | None:
    """Return the credentials, limits and namespaces of a process (`self` or a number).

    The resident serves only processes whose surroundings are its own, since it sees the same files as they do, and may
    do as much. `None` for a process that is confined (no new privileges) or stopped, or that cannot be looked at.
    """
    folder = f"/proc/{process}"
    try:
        lines = content(f"{folder}/status").split(b"\n")
        status = [line for line in lines if line.startswith(_CREDENTIALS)]
        if b"NoNewPrivs:\t0" not in status or any(line.startswith(_STOPPED) for line in lines):
            return None
        spaces = [posix.stat(f"{folder}/ns/{name}").st_ino for name in _NAMESPACES]
        root = posix.stat(f"{folder}/root")
        limits = content(f"{folder}/limits")
    except OSError:
        return None
    try:
        label = content(f"{folder}/attr/current")
    except OSError:  # without a security module
        label = b""
    return b"\n".join(status), limits, label, *spaces, root.st_ino, root.st_dev


def peer_surroundings(link: "_socket.socket") -> tuple[object, ...] | None:
    """Return the surroundings of the process at the other end of a connection, which must be the same user's."""
    process, user = peer_credentials(link)
    if user != posix.geteuid() or process <= 0:
        return None
    try:
        handle = link.getsockopt(_socket.SOL_SOCKET, _PEER_PROCESS)
    except OSError as error:
        return surroundings(str(process)) if error.errno == _NOT_KNOWN else None
    try:
        theirs = surroundings(str(process))
        # It has not ended, so its number is no other's.
        return theirs if b"\nPid:\t%d\n" % process in content(f"/proc/self/fdinfo/{handle}") else None
    finally:
        posix.close(handle)


def peer_credentials(link: "_socket.socket") -> tuple[int, int]:
    """Return the number of the process at the other end of a connection, and its user."""
    credentials = link.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    process, user = (int.from_bytes(credentials[at : at + 4], sys.byteorder, signed=True) for at in (0, 4))
    return process, user


def socket_path(environment: dict[bytes, bytes], ours: tuple[object, ...]) -> str:
    """Return the path of the socket for these surroundings and this installation. Empty if there is no place for one."""
    folder = environment.get(b"XDG_RUNTIME_DIR", b"")
    if folder.startswith(b"/"):
        folder += b"/harness"
    else:
        state = environment.get(b"XDG_STATE_HOME", b"")
        if not state.startswith(b"/"):
            state = environment.get(b"HOME", b"") + b"/.local/state"
        folder = state + b"/harness/resident"
    code = posix.stat(__file__)
    parts = (code.st_ino, code.st_dev, sys.executable.encode(), *ours)
    numbers = (int.from_bytes(part, "big") if isinstance(part, bytes) else part for part in parts)
    name = f"{hash(tuple(numbers)) & (1 << 64) - 1:016x}"  # such a hash does not depend on the process
    path = b"%b/%b" % (folder, name.encode())
    return path.decode(*_CODEC) if path.startswith(b"/") and len(path) <= MOST_PATH else ""


_CODEC = (sys.getfilesystemencoding(), "surrogateescape")


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _check_folder(folder: str) -> None:
    """Raise OSError unless a folder is its user's alone."""
    status = posix.lstat(folder)
    if status.st_mode & 0o170077 != 0o040000 or status.st_uid != posix.geteuid():
        raise PermissionError(f"{folder} is not the user's alone")


def content(path: str) -> bytes:
    """Return the beginning of a file of /proc. Raises OSError."""
    descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        return posix.read(descriptor, 1 << 16)
    finally:
        posix.close(descriptor)


def _send(link: "_socket.socket", words: list[str], environment: dict[bytes, bytes]) -> None:
    """Send the request: the streams and the current folder as descriptors, all else as text."""
    umask = posix.umask(0)
    posix.umask(umask)
    folder = posix.open(".", _O_PATH | posix.O_CLOEXEC)
    fields = [b"%d" % umask, b"%d" % len(words), *(word.encode(*_CODEC) for word in words)]
    fields += [b"%b=%b" % variable for variable in environment.items()]
    body = b"\0".join(fields)
    descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (*_STREAMS, folder))
    ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)]
    data = len(body).to_bytes(NUMBER, "big") + body
    link.sendall(data[link.sendmsg([data], ancillary) :])


def _is_open(number: int) -> bool:
    try:
        posix.fstat(number)
    except OSError:
        return False
    return True


def _start(path: str) -> None:
    """Start a resident at `path`, without waiting for it, unless another process does that right now.

    It serves all agents, so it does not keep the signals that this one ignores or blocks.
    """
    import fcntl

    folder = _folder_of(path)
    _make_folder(folder)
    _check_folder(folder)
    lock = posix.open(folder, posix.O_RDONLY | posix.O_DIRECTORY | posix.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        main = __file__.removesuffix("plugins/agents/resident_client.py") + "__main__.py"
        program = [sys.executable, "-I", "-S", "-X", "utf8", main, "resident", path, str(_LOCK)]
        null = [(posix.POSIX_SPAWN_OPEN, number, "/dev/null", posix.O_RDWR, 0) for number in _STREAMS]
        actions = [*null, (posix.POSIX_SPAWN_DUP2, lock, _LOCK)]
        posix.posix_spawn(program[0], program, {}, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_SIGNALS)
    finally:
        posix.close(lock)


def _make_folder(folder: str) -> None:
    """Create a folder and the missing ones above it, for this user alone. `os`, which could, is not imported."""
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _make_folder(_folder_of(folder))
        posix.mkdir(folder, 0o700)


def _refuse(reason: str) -> int:
    """Write a refusal, and return the exit code that means one to every agent."""
    line = f"harness refuses this call, since the answer of its resident process did not come: {reason}\n"
    try:
        posix.write(2, line.encode("utf-8", "replace"))
    except OSError:
        pass
    return _REFUSED
