"""The commands that open the prompt: `harness` itself, `sessions resume` and `sessions fork`."""

from __future__ import annotations

from argparse import SUPPRESS
from typing import TYPE_CHECKING

from harness import __version__
from harness.app.common_flags import EXIT_CODES, count, session_flags, terminal_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _prompt_flags(parser: ArgumentParser) -> None:
    from harness.app.command_line import command_list

    parser.usage = "harness [OPTION ...] [PROMPT], harness COMMAND ..., harness help [TOPIC]"
    parser.description = f"{parser.description}\n{command_list()}"
    parser.epilog = EXIT_CODES
    parser.add_argument("prompt", nargs="?", help=SUPPRESS)
    parser.add_argument(
        "-c", "--continue", dest="resume", action="store_true", help="resume the newest session of this folder"
    )
    parser.add_argument("--version", action="version", version=f"harness {__version__}")
    _add_shared(parser)


def _resume_flags(parser: ArgumentParser) -> None:
    parser.add_argument(
        "session", nargs="?", metavar="ID", help="session ID or its beginning (default: the newest session here)"
    )
    _first_prompt(parser)


def _fork_flags(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help="session ID or its beginning")
    parser.add_argument(
        "--turn", type=count, metavar="N", help="the last turn to take; 0 takes none (default: all turns)"
    )
    _first_prompt(parser)


def _first_prompt(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", nargs="?", help="the first prompt (default: wait for it)")
    _add_shared(parser)


def _add_shared(parser: ArgumentParser) -> None:
    session_flags(parser)
    terminal_flags(parser)


_RUN = later("harness.app.repl.repl_command", "repl_command")
PLUGIN = Plugin(
    name="prompt",
    commands=(
        CliCommand(
            name="",
            help="Harness decides each call of the model before it runs. No command: the prompt.",
            add_flags=_prompt_flags,
            run=_RUN,
            holds_session=True,
        ),
        CliCommand(
            name="sessions resume",
            help="Begin a session with the conversation of another, however that ended.",
            add_flags=_resume_flags,
            run=_RUN,
            holds_session=True,
        ),
        CliCommand(
            name="sessions fork",
            help="Begin a session with the conversation of another up to one of its turns. Both can continue.",
            add_flags=_fork_flags,
            run=_RUN,
            holds_session=True,
        ),
    ),
)
