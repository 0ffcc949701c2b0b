"""The commands of the core without their own folder: `undo`, `sessions list`, `sessions delete`, `schema` and `completion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import filled, folder_flag, json_flag, positive_integer
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _undo_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 everything was undone, 7 something could not be undone."
    parser.add_argument(
        "--session", type=filled, metavar="ID", help="session ID or its beginning (default: the newest session here)"
    )
    parser.add_argument(
        "--to",
        type=positive_integer,
        metavar="CALL",
        help="the first call to undo (default: undo the last change only)",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
    json_flag(parser, "write one JSON object per line, and a summary")
    folder_flag(parser)
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the session's log, if it is not in the state folder"
    )


def _list_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list the sessions of every folder")
    json_flag(parser)
    folder_flag(parser)


def _delete_flags(parser: ArgumentParser) -> None:
    parser.add_argument("session", type=filled, metavar="ID", help="session ID or its beginning")
    parser.add_argument("--yes", action="store_true", help="delete it (default: only show what would be deleted)")


_COMPLETION = later("harness.app.shell_completion", "completion_command")
_SCHEMA = later("harness.app.schema", "schema_command")
PLUGIN = Plugin(
    name="core",
    commands=(
        CliCommand(
            name="undo",
            help="Restore the files that a session's calls changed, unless they changed again since.",
            add_flags=_undo_flags,
            run=later("harness.app.undo", "undo_command"),
        ),
        CliCommand(
            name="sessions list",
            help="List the sessions of this folder, newest last. An open session has not recorded its end.",
            add_flags=_list_flags,
            run=later("harness.app.sessions", "list_sessions"),
            is_light=True,
        ),
        CliCommand(
            name="sessions delete",
            help="Delete a session with its log. The heads file keeps a tombstone.",
            add_flags=_delete_flags,
            run=later("harness.app.session_removal", "delete_command"),
        ),
        CliCommand(
            name="schema log",
            help="Print the JSON Schema (draft 2020-12) of a record of the action log.",
            run=_SCHEMA,
            is_light=True,
        ),
        CliCommand(
            name="schema result",
            help="Print the JSON Schema (draft 2020-12) of the result of a run.",
            run=_SCHEMA,
            is_light=True,
        ),
        CliCommand(
            name="completion bash",
            help="Print the completion script for bash. In ~/.bashrc: source <(harness completion bash).",
            run=_COMPLETION,
            is_light=True,
        ),
        CliCommand(
            name="completion zsh",
            help="Print the completion script for zsh. In ~/.zshrc, after compinit: source <(harness completion zsh).",
            run=_COMPLETION,
            is_light=True,
        ),
        CliCommand(
            name="completion fish",
            help="Print the completion script for fish. In ~/.config/fish/config.fish: harness completion fish | source.",
            run=_COMPLETION,
            is_light=True,
        ),
    ),
)
