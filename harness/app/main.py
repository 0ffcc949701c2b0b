"""The entry point: runs the command of a command line and turns errors into one line and an exit code.

Each command imports only the modules that it needs.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

import harness
from harness import __version__
from harness.errors import ChangedCodeError, HarnessError, LogError, SessionRefusedError, UsageError, nearest
from harness.session.exits import Exit
from harness.shipped import TOPICS

if TYPE_CHECKING:
    from harness.plugin import CliCommand


def program() -> NoReturn:
    """Run `main`, and exit the process with its exit code.

    A light command leaves nothing to close. Its output is flushed, and the process exits at once. Other commands have
    threads and open resources, and shut down in order.
    """
    harness.is_program = True
    try:
        code = main()
    except KeyboardInterrupt:  # before `main` handles interrupts, or after it returned
        code = 130
    if ChangedCodeError.first and code != 1:  # the error was raised but a caller caught it
        _complain(ChangedCodeError.first)
        code = 1
    light = _is_light(sys.argv[1:])
    if not light:
        _keep_code()
    if not _flushed():
        # Python flushes once more on exit, and would exit with 120 if the reader is gone.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
    elif light:
        os._exit(code)
    sys.exit(code)


def _is_light(words: list[str]) -> bool:
    """Return whether the words are a command that leaves nothing to close."""
    if words in (["--version"], ["help"]):
        return True
    from harness.app.command_line import named_command

    try:
        return named_command(words)[0].is_light
    except UsageError:
        return False


def _keep_code() -> None:
    """Ignore signals from now on, so that the exit code stays the one in the log and in the output.

    Python restores the default handlers of signals on exit, except for ignored ones.
    """
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def _flushed() -> bool:
    """Flush stdout and stderr. Return whether that succeeded. `main` has already reported a failure."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (`None`: that of the process), and return the exit code.

    An expected failure writes one line to stderr. An unexpected one does too, with a traceback if HARNESS_DEBUG is set.
    """
    words = list(sys.argv[1:] if argv is None else argv)

    _, stdout_open, stderr_open = _keep_standard_descriptors()
    if not stdout_open or sys.stdout is None:
        _complain("stdout is closed; there is nowhere to write the answer")
        return Exit.USAGE
    if not stderr_open or sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    _use_utf8()
    _guard(words)
    try:
        return _answer(words, os.environ)
    except HarnessError as error:
        _complain(str(error))
        codes = {LogError: Exit.LOG, SessionRefusedError: Exit.BLOCKED, ChangedCodeError: Exit.INTERNAL}
        return codes.get(type(error), Exit.USAGE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO):
            return _internal(error)
        if error.errno != errno.EPIPE:  # `| head` has read enough; the exit code reports it
            _complain(f"stdout cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is one line for the user, and exit 1
        return _internal(error)


def _keep_standard_descriptors() -> tuple[bool, bool, bool]:
    """Replace closed standard streams with /dev/null. Return whether stdin, stdout and stderr were open.

    Otherwise the next opened file, such as the action log, would become a standard stream.
    """
    was_open = []
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
            was_open.append(True)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != descriptor:
                os.dup2(null, descriptor)
                os.close(null)
            was_open.append(False)
    return was_open[0], was_open[1], was_open[2]


def _use_utf8() -> None:
    """Make stdout and stderr accept any character in any locale. Characters that cannot be encoded are escaped."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _guard(words: list[str]) -> None:
    """Prevent output in a GitHub Actions job from being interpreted as a command of the runner."""
    if os.environ.get("GITHUB_ACTIONS"):
        from harness.app.run.workflow_commands import guard_streams, is_job

        if is_job(os.environ):
            guard_streams(words[:1] == ["run"])


def _answer(words: list[str], environment: Mapping[str, str]) -> int:
    """Run the command, and flush its output."""
    if words == ["--version"]:
        sys.stdout.write(f"harness {__version__}\n")
        code = 0
    else:
        code = _dispatch(words, environment)
    sys.stdout.flush()
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("HARNESS_DEBUG"):
        raise error
    _complain(f"internal error: {type(error).__name__}: {error} (HARNESS_DEBUG=1 shows where)")
    return 1


def _complain(text: str) -> None:
    from harness.text.visible import visible

    try:
        # Later lines are indented, so that a line end in a file name cannot fake an error line of this program.
        message = visible(text).replace("\n", "\n  ")
        sys.stderr.write(f"harness: {message}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # stderr cannot be written; the exit code still reports the error


def _dispatch(words: list[str], environment: Mapping[str, str]) -> int:
    from harness.app.command_line import actions, actions_help, first_words, named_command, parser_of, short_help

    plugin_commands = _other_commands(words, environment, first_words())
    if words == ["help"]:
        sys.stdout.write(short_help(plugin_commands))
        return 0
    if words[:1] == ["help"]:
        if words[1] not in first_words(plugin_commands):
            sys.stdout.write(_topic_text(words[1], first_words(plugin_commands)))
            return 0
        words = [*words[1:], "--help"]
    if words[1:2] in (["-h"], ["--help"]) and actions(words[0], plugin_commands):
        sys.stdout.write(actions_help(words[0], plugin_commands))
        return 0
    command, rest = named_command(words, plugin_commands)
    if not (command.is_light or command.holds_session):
        gc.enable()  # a session enables it after it has loaded its long-lived objects: running_session.collect
    return command.run(parser_of(command).parse_args(rest), environment)


def _topic_text(name: str, command_words: Sequence[str]) -> str:
    """Return a topic of the help. Raises UsageError if the name is neither a topic nor a command."""
    if name not in TOPICS:
        raise UsageError(f"unknown command or topic: {name}{nearest(name, (*command_words, *TOPICS))}")
    from harness.app.topics import topic_text

    return topic_text(name)


def _other_commands(
    words: list[str], environment: Mapping[str, str], shipped_words: Sequence[str]
) -> Sequence[CliCommand]:
    """Return the commands of external plugins, if the words may name one and not only a shipped command or topic."""
    asks_help = words[:1] == ["help"] and words[1:2] != ["help"]
    command_words = words[1:2] if asks_help else words[:1]
    if not (command_words or asks_help) or (
        command_words
        and (command_words[0] in (*shipped_words, *(TOPICS if asks_help else ())) or not command_words[0][:1].isalpha())
    ):
        return ()
    from harness.session.state import State

    file = State.of(environment).config_file
    if not os.path.lexists(file):
        return ()
    from harness.session.named_plugins import plugins_in

    try:
        return [command for plugin in plugins_in(file) for command in plugin.commands]
    except UsageError as error:
        if words != ["help"]:
            raise
        _complain(str(error))  # the user needs help most when the configuration is broken
        return ()
