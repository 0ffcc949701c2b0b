"""Signed heads: the size and head of a closed log as a small note beside it, signed and checked by ssh-keygen(1).

A log `x.jsonl` gets `x.jsonl.head`, laid out like a note of the C2SP specifications (an origin, then lines, each ended by
LF), and `x.jsonl.head.sig`. No prompt is ever shown: a key with a passphrase works only through the SSH agent.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.log.heads_file import HeadNote, Signature, parse_note
from harness.safe_files import remove_if_there, sync_path, write_new
from harness.text.visible import visible_line

NAMESPACE = "harness-log"
"""Namespace of the signature. A signature made for another purpose is invalid (ssh-keygen(1), -n)."""
SECONDS = 10.0
"""Time limit for ssh-keygen, in seconds. Long enough for a user to touch a hardware key."""
MAX_NOTE_BYTES = 4096
_SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")
"""Folders to search for ssh-keygen. PATH is not used, since it may name folders that commands can write."""


def sign_head(path: str, note: HeadNote, key: str, environment: Mapping[str, str]) -> None:
    """Write the note and its signature beside the log at `path`, replacing earlier ones.

    `key` is the path of an SSH key, or of its public half if the agent has the private key. Raises UsageError if
    ssh-keygen is missing, refuses, or takes longer than SECONDS, and if the files cannot be written.
    """
    beside = f"{os.path.abspath(path)}.head"
    temporary = f"{beside}.{os.urandom(4).hex()}.tmp"
    try:
        write_new(temporary, note.text().encode())
        code, _, errors = _ssh_keygen(
            ("-Y", "sign", "-q", "-f", os.path.abspath(key), "-n", NAMESPACE, temporary), b"", environment
        )
        if code != 0:
            raise UsageError(f"ssh-keygen does not sign with {key}: {errors}")
        sync_path(f"{temporary}.sig")
        # INVARIANT: a signature is never beside a note that it does not sign. A crash can leave a note unsigned.
        remove_if_there(f"{beside}.sig")
        os.replace(temporary, beside)
        os.replace(f"{temporary}.sig", f"{beside}.sig")
        sync_path(os.path.dirname(beside))
    except OSError as error:
        raise UsageError(f"the signed head cannot be written: {beside}: {error.strerror}") from None
    finally:
        remove_if_there(temporary)
        remove_if_there(f"{temporary}.sig")


def check_signature(path: str, signers: str, signer: str | None, environment: Mapping[str, str]) -> Signature:
    """Check the signed note beside the log at `path` against a file of allowed signers (ssh-keygen(1), ALLOWED
    SIGNERS).

    `signer` is the required signer; `None` accepts any in the file. Raises UsageError if ssh-keygen or that file is
    missing.
    """
    beside = f"{os.path.abspath(path)}.head"
    if not os.path.isfile(signers):
        raise UsageError(f"--signers: no such file: {signers}")
    if not os.path.isfile(beside) or not os.path.isfile(f"{beside}.sig"):
        return Signature(note=None)
    try:
        with open(beside, "rb") as file:
            data = file.read(MAX_NOTE_BYTES + 1)
    except OSError as error:
        return Signature(note=None, problem=f"the note cannot be read: {error.strerror}")
    note = parse_note(data)
    if note is None:
        return Signature(note=None, problem="the note is not one that the harness wrote")
    options = ("-f", os.path.abspath(signers), "-s", f"{beside}.sig")
    names = (signer,) if signer is not None else _principals(options, environment)
    if not names:
        return Signature(note=None, problem="no allowed signer has the key that it was signed with")
    errors = ""
    for name in names:
        code, _, errors = _ssh_keygen(("-Y", "verify", "-I", name, "-n", NAMESPACE, *options), data, environment)
        if code == 0:
            return Signature(note=note, signer=name)
    return Signature(note=None, problem=f"it is not {' or '.join(names)} who signed this note: {errors}")


def _principals(options: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the allowed signers that have the key of a signature."""
    code, out, _ = _ssh_keygen(("-Y", "find-principals", *options), b"", environment)
    lines = out.decode("utf-8", "replace").splitlines() if code == 0 else []
    names = (name for line in lines for name in line.strip().split(","))
    return tuple(dict.fromkeys(name for name in names if name and not name.startswith(("-", "!"))))


def _ssh_keygen(words: Sequence[str], data: bytes, environment: Mapping[str, str]) -> tuple[int, bytes, str]:
    """Run ssh-keygen in a new session without a terminal. Return its exit code, its stdout and its error text.

    It cannot prompt without a terminal and with SSH_ASKPASS_REQUIRE=never (ssh(1)). Raises UsageError if ssh-keygen is
    missing or takes longer than SECONDS.
    """
    import subprocess

    program = next((path for folder in _SYSTEM_FOLDERS if os.access(path := f"{folder}/ssh-keygen", os.X_OK)), None)
    if program is None:
        raise UsageError("ssh-keygen (OpenSSH) is not installed: heads can be neither signed nor checked")
    variables = {name: environment[name] for name in ("HOME", "SSH_AUTH_SOCK") if environment.get(name)}
    process = subprocess.Popen(
        (program, *words),
        stdin=subprocess.PIPE if data else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
        env={**variables, "PATH": os.pathsep.join(_SYSTEM_FOLDERS), "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"},
    )
    try:
        out, errors = process.communicate(data or None, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise UsageError(f"ssh-keygen did not end within {SECONDS:g} seconds") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return (
        process.returncode,
        out,
        visible_line(errors.decode("utf-8", "replace").strip(), 300) or "it does not say why",
    )
