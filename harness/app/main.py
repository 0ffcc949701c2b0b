"""The entry point: words to a command, errors to one line and an exit code. Each command imports what it needs."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

import harness
from harness import __version__
from harness.errors import ChangedCodeError, HarnessError, LogError, SessionRefusedError, UsageError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

LIGHT = ("--version", "help", "policy", "audit", "schema", "config", "sessions list", "mcp list")
"""Commands that end in some milliseconds: collecting garbage, and taking the interpreter down, would be a third of it."""
COMMANDS = (
    "run", "batch", "worker", "queue", "demo", "approve", "policy", "audit", "undo", "doctor", "config", "models",
    "sessions", "schema", "hook", "mcp", "serve",
)  # fmt: skip

_WISHES = {"version": "--version"}
_NEAR = 0.75
"""How alike a word and a command are (difflib): `doctro`, `polcy`; not `ran`, `doc`."""


def program() -> NoReturn:
    """Be the `harness` command: run `main`, and leave with its exit code.

    What a light command leaves behind is memory, which goes with the process: what was written is flushed, and the process
    ends at once. The others are taken down in order: they have threads, and things to close.
    """
    harness.is_program = True
    if sys.argv[1:2] in (["hook"], ["exec"]):
        from harness.plugins.agents.commands.each_call import start_for_agent

        start_for_agent(sys.argv[1:], os.environ)  # returns for what a person types
    words = sys.argv[1:]
    light = bool(words) and (words[0] in LIGHT or " ".join(words[:2]) in LIGHT)
    if light or _holds_session(words):
        import gc

        gc.disable()  # a session collects when what lives as long as it is loaded: running_session.collect
    try:
        code = main()
    except KeyboardInterrupt:  # before main could say what it means, or behind its end
        code = 130
    if ChangedCodeError.first and code != 1:  # whatever it interrupted went on
        _complain(ChangedCodeError.first)
        code = 1
    if not light:
        _keep_code()
    if not _flushed():
        # Python flushes once more at its end, and would exit with 120 where nobody reads.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
    elif light:
        os._exit(code)
    sys.exit(code)


def _holds_session(words: Sequence[str]) -> bool:
    """Say whether these words are of a run or of the prompt: `sessions resume` and `fork` come to it too."""
    return not words or words[0] in ("run", "sessions") or words[0] not in COMMANDS


def _keep_code() -> None:
    """Let no signal change the exit code that is known by now: it may stand in the log and in what was written already.

    Python gives signals back their default on its way out, but not to those that are ignored.
    """
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


def _flushed() -> bool:
    """Bring out what was written; say whether it is out. What could not be brought out, `main` has said."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Do what `argv` (the process's own where it is None) asks, and return the exit code.

    An expected failure is one line on stderr; an unexpected one is a line, and a traceback with HARNESS_DEBUG set.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    from harness.session.exits import Exit

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
        if error.errno != errno.EPIPE:  # `| head` has what it wanted; the exit code says it
            _complain(f"stdout cannot be written: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is one line for the user, and exit 1
        return _internal(error)


def _keep_standard_descriptors() -> tuple[bool, bool, bool]:
    """Say which of stdin, stdout and stderr are open, and put /dev/null in the place of the others.

    Otherwise the next file that is opened (the action log, say) would become the standard output of something.
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
    """Let stdout and stderr take any character whatever the locale: what it lacks is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _guard(words: list[str]) -> None:
    """Let nothing that is printed in a GitHub Actions job be a command of its runner, whoever prints it."""
    if os.environ.get("GITHUB_ACTIONS"):
        from harness.app.run.workflow_commands import guard_streams, is_job

        if is_job(os.environ):
            guard_streams(words[:1] == ["run"])


def _answer(words: list[str], environment: Mapping[str, str]) -> int:
    """Do what is asked, and see to it that what was written has arrived."""
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
        # Indented: a line end in a file's name must not begin a line that looks like one of ours.
        told = visible(text).replace("\n", "\n  ")
        sys.stderr.write(f"harness: {told}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # nobody can be told; the exit code still says it


def _dispatch(words: list[str], environment: Mapping[str, str]) -> int:
    from harness.app.flags import ACTIONS, actions_help, parser_for, short_help

    if words == ["help"]:
        sys.stdout.write(short_help())
        return 0
    if words[:1] == ["help"]:
        words = _helping(words[1:])
    command = words.pop(0) if words and words[0] in COMMANDS else ""
    action = ""
    if command in ACTIONS and words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(actions_help(command))
        return 0
    if command in ACTIONS:
        if command == "models" and (not words or words[0].startswith("-")):
            words.insert(0, "list")
        action = words.pop(0) if words else ""
        if action not in ACTIONS[command]:
            raise UsageError(f"harness {command} takes one of: {', '.join(ACTIONS[command])}")
    elif not command:
        _refuse_misspelt(words)
    arguments = parser_for(command, action).parse_args(words)
    return _function_of(command, action)(arguments, environment)


def _helping(words: list[str]) -> list[str]:
    """Return what `harness help` stands for with these words behind it. Raises UsageError for no command."""
    if words[0] not in COMMANDS:
        raise UsageError(f"there is no command {words[0]}; `harness help` names all")
    return [*words, "--help"]


def _refuse_misspelt(words: Sequence[str]) -> None:
    """Raise UsageError for a first word that is nearly a command: as a prompt it would be sent at once, and cost money."""
    first = words[0] if words else ""
    if not first.isalpha():  # flags, a prompt of several words in quotes, nothing
        return
    from difflib import get_close_matches

    meant = get_close_matches(first, (*COMMANDS, "help", *_WISHES), n=1, cutoff=_NEAR)
    if meant:
        command = _WISHES.get(meant[0], meant[0])
        raise UsageError(
            f"there is no command {first}; did you mean `harness {command}`? `harness -- {first}` sends it"
        )


def _function_of(  # noqa: C901, PLR0912 - a case a command
    command: str, action: str
) -> Callable[[Namespace, Mapping[str, str]], int]:
    """Import what does `command`, and nothing else."""
    run: Callable[[Namespace, Mapping[str, str]], int]
    match command:
        case "run":
            from harness.app.run.run_command import run_command as run
        case "batch":
            from harness.plugins.fleet.batch.batch_command import batch_command as run
        case "worker":
            from harness.plugins.fleet.queue.worker_command import worker_command as run
        case "queue":
            from harness.plugins.fleet.queue.queue_command import queue_command as run
        case "demo":
            from harness.app.demo.demo_command import demo_command as run
        case "approve":
            from harness.plugins.agents.commands.approve_command import approve_command as run
        case "policy":
            from harness.app.policy.policy_command import policy_command as run
        case "audit":
            from harness.app.audit import audit_command as run
        case "undo":
            from harness.app.undo import undo_command as run
        case "doctor":
            from harness.plugins.doctor.doctor_command import doctor_command as run
        case "sessions" if action == "list":
            from harness.app.sessions import list_sessions as run
        case "schema":
            from harness.app.schema import schema_command as run
        case "mcp":
            from harness.plugins.mcp.commands.mcp_command import mcp_command as run
        case "serve":
            from harness.plugins.acp.serve_command import serve_command as run
        case "config":
            from harness.app.config.config_command import config_command as run
        case "models":
            from harness.app.config.models_command import models_command as run
        case "hook" if action == "check":
            from harness.plugins.agents.commands.check_command import check as run
        case "hook":
            from harness.plugins.agents.commands.install_command import hook_command_line as run
        case _:  # the prompt; `sessions resume` and `sessions fork` come to it too
            from harness.app.repl.repl_command import repl_command as run
    return run
