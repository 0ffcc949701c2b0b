"""A picture on the clipboard, stored as a file that a prompt can mention."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness.errors import UsageError
from harness.process.asked_program import ProgramAnswer, ask_program
from harness.process.environment import child_environment, program_outside
from harness.record import Record
from harness.safe_files import make_private, replace_file
from harness.text.amounts import size_of_bytes

MOST_BYTES = 4 * 1024 * 1024
"""Maximum size of a picture, in bytes."""
SECONDS = 5.0
"""Time limit of a clipboard program, in seconds."""
_TYPES = {
    "image/png": ("png", b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": ("jpg", b"\xff\xd8\xff"),
    "image/webp": ("webp", b"RIFF"),
    "image/gif": ("gif", b"GIF8"),
}
"""Extension of a file and first bytes of each media type, the preferred type first."""
_DISPLAY = ("WAYLAND_DISPLAY", "DISPLAY", "XDG_RUNTIME_DIR", "XAUTHORITY")
"""Variables with which a program finds the user's display."""


class ClipboardReader(Record):
    """A program that prints the clipboard."""

    variable: str
    """The variable that is set where the program works."""
    program: str
    lists: Sequence[str]
    """The arguments that print the media types on the clipboard."""
    prints: Sequence[str]
    """The arguments that print one of them. The type follows as `TYPE`."""


_READERS = (
    ClipboardReader(
        variable="WAYLAND_DISPLAY",
        program="wl-paste",
        lists=("--list-types",),
        prints=("--type", "TYPE"),
    ),
    ClipboardReader(
        variable="DISPLAY",
        program="xclip",
        lists=("-selection", "clipboard", "-target", "TARGETS", "-out"),
        prints=("-selection", "clipboard", "-target", "TYPE", "-out"),
    ),
)


def clipboard_picture(environment: Mapping[str, str], root: str, folder: str) -> str:
    """Store the picture on the user's clipboard in `folder`, with mode 0600, and return its path.

    Programs in the workspace `root` are never used. Raises UsageError with the problem in one line.
    """
    reader, program = _reader(environment, root)
    lines = _printed((program, *reader.lists), environment).output.decode("utf-8", "replace").splitlines()
    media_type = next((name for name in _TYPES if name in lines), "")
    if not media_type:
        raise UsageError("the clipboard has no picture")
    words = [word if word != "TYPE" else media_type for word in reader.prints]
    answer = _printed((program, *words), environment)
    ending, start = _TYPES[media_type]
    if answer.is_cut:
        raise UsageError(f"the picture on the clipboard is larger than {size_of_bytes(MOST_BYTES)}")
    if not answer.output.startswith(start):
        raise UsageError(f"{reader.program} printed no {ending} picture")
    path = os.path.join(folder, f"clipboard-{os.urandom(4).hex()}.{ending}")
    try:
        make_private(folder)
        replace_file(path, (answer.output,))
    except OSError as error:
        raise UsageError(f"the picture cannot be stored: {error.strerror}") from None
    return path


def _reader(environment: Mapping[str, str], root: str) -> tuple[ClipboardReader, str]:
    """Return the first reader that is installed for the user's display, and its path. Raises UsageError."""
    readers = [reader for reader in _READERS if environment.get(reader.variable)]
    if not readers:
        raise UsageError("no clipboard can be reached: neither WAYLAND_DISPLAY nor DISPLAY is set")
    variables = child_environment(environment)
    for reader in readers:
        if path := program_outside(root, reader.program, variables):
            return reader, path
    raise UsageError(f"a picture needs {' or '.join(reader.program for reader in readers)}, not installed here")


def _printed(command: Sequence[str], environment: Mapping[str, str]) -> ProgramAnswer:
    """Return the output of a clipboard program. Raises UsageError if it fails."""
    display = {name: environment[name] for name in _DISPLAY if name in environment}
    try:
        answer = ask_program(
            command,
            b"",
            environment={**child_environment(environment), **display},
            folder="/",
            seconds=SECONDS,
            most_bytes=MOST_BYTES,
        )
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from None
    if answer.end.status != 0:
        raise UsageError("the clipboard has no picture")
    return answer
