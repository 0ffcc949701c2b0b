"""The commands `harness audit` of the core. The questions about logs and the report are in harness/plugins/insight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import filled, json_flag, log_flags
from harness.log.vocabulary import ANSWERS, DECISIONS
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser

UNANSWERED = "unanswered"
"""The value of `--answer` that selects questions without an answer in the log."""


def _show_flags(parser: ArgumentParser) -> None:
    parser.epilog = (
        "A filter shows only the calls that match; several filters must all match. --path looks for its text anywhere in\n"
        "a path that the call named or changed (not a pattern; the log has the first 20 paths and 50 parts of a call).\n"
        "TIME: 2026-01-31 (the whole day, UTC), 2026-01-31T10:00:00Z, or a time ago: 90m, 2h, 3d.\n"
        "Exit code: 0, 1 a log does not verify, 2 usage."
    )
    log_flags(parser, unnamed="the latest log")
    parser.add_argument("--full", action="store_true", help="cut nothing: arguments, results, the system prompt, diffs")
    parser.add_argument("--tool", type=filled, metavar="NAME", help="calls of this tool")
    parser.add_argument("--decision", choices=(*DECISIONS, "none"), help="calls with this decision")
    parser.add_argument(
        "--answer",
        choices=(*ANSWERS, UNANSWERED),
        help="calls with this answer to their question (unanswered: the log has none)",
    )
    parser.add_argument("--rule", type=filled, metavar="ID", help="a rule's ID, or a part of the deciding rule's text")
    parser.add_argument("--path", type=filled, metavar="TEXT", help="a part of a path that was named or changed")
    parser.add_argument("--since", type=filled, metavar="TIME", help="calls requested at that time or later")
    parser.add_argument("--until", type=filled, metavar="TIME", help="calls requested at that time or before")
    parser.add_argument("--call", type=filled, metavar="N", help="the call with this number")


def _verify_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 whole, 1 broken, 2 usage, 3 open, 4 no head to compare with, 8 a log cannot be read."
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="logs or folders (default: the latest log of this folder)"
    )
    parser.add_argument(
        "--all", action="store_true", help="verify every log in the state folder, and report missing logs"
    )
    parser.add_argument("--head", type=filled, metavar="HASH", help="the head hash that was kept elsewhere")
    parser.add_argument("--heads", type=filled, metavar="FILE", help="the heads file (default: in the state folder)")
    parser.add_argument(
        "--signers", type=filled, metavar="FILE", help="the permitted signers: ALLOWED SIGNERS of ssh-keygen(1)"
    )
    parser.add_argument("--signer", type=filled, metavar="NAME", help="the required signer (default: any in --signers)")
    parser.add_argument("--redecide", action="store_true", help="judge the calls again by the policies in the log")
    json_flag(parser, "write one JSON object per log")


def _sign_flags(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="logs (default: the latest log of this folder)")
    parser.add_argument("--key", type=filled, metavar="FILE", required=True, help="an SSH key")


def _prune_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 done, 1 a broken log was found (and kept, without --broken)."
    parser.add_argument(
        "--older-than", type=filled, metavar="DAYS", help="remove logs last written more than DAYS days ago"
    )
    parser.add_argument(
        "--keep-bytes", type=filled, metavar="N", help="remove the oldest logs until at most N bytes remain"
    )
    parser.add_argument("--open", action="store_true", help="include logs with an unfinished session or call")
    parser.add_argument("--broken", action="store_true", help="include logs that do not verify")
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed, and do nothing")
    json_flag(parser, "write one JSON object per line, and a summary")


def _recover_flags(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=filled, metavar="FILE", help="the log")


PLUGIN = Plugin(
    name="audit",
    commands=(
        CliCommand(
            name="audit list",
            help="List the sessions: time, folder, number of calls and end of each. Verifies nothing.",
            add_flags=log_flags,
            run=later("harness.app.audit.list", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit show",
            help="Print a readable timeline (UTC; local time at a terminal), by default of the latest log.",
            add_flags=_show_flags,
            run=later("harness.app.audit.show", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit verify",
            help="Read whole logs, and state what that proves and what it does not.",
            add_flags=_verify_flags,
            run=later("harness.app.audit.verify", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit sign",
            help="Sign the size and head of closed logs with ssh-keygen; writes LOG.head and LOG.head.sig.",
            add_flags=_sign_flags,
            run=later("harness.app.audit.sign", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit prune",
            help="Remove whole closed logs past a limit. Each leaves a tombstone with its head.",
            add_flags=_prune_flags,
            run=later("harness.app.audit.prune", "command"),
            is_light=True,
        ),
        CliCommand(
            name="audit recover",
            help="Cut the torn last line off a log, so that the log can be continued.",
            add_flags=_recover_flags,
            run=later("harness.app.audit.recover", "command"),
            is_light=True,
        ),
    ),
)
