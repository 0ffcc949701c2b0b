"""The flags of `harness audit`, an action a function; builds parsers and reads nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Filled: TypeAlias = Callable[[str], str]
    """Refuses an empty value."""


def add_flags(parser: ArgumentParser, action: str, filled: Filled) -> None:
    """Give `parser` the flags of `harness audit ACTION`."""
    _FLAGS[action](parser, filled)


def add_log_flags(parser: ArgumentParser, filled: Filled) -> None:
    """Give `parser` the flags that say which logs are meant, and `--json`."""
    _which_logs(parser, filled)


def _list(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Name the sessions: when, where, how many calls, how each ended. Nothing is verified."
    _which_logs(parser, filled)


def _show(parser: ArgumentParser, filled: Filled) -> None:
    from harness.cli.audit.show import UNANSWERED
    from harness.log.order import ANSWERS, DECISIONS

    parser.description = "Write a readable timeline, times in UTC; of the latest log where none is named."
    parser.epilog = (
        "With a filter only the calls that fit are shown; of several, all must. --path looks for its text anywhere in a\n"
        "path that the call named or changed (no pattern; the log has the first 20 paths and 50 parts of a call).\n"
        "TIME: 2026-01-31 (the whole day, UTC), 2026-01-31T10:00:00Z, or how long ago: 90m, 2h, 3d.\n"
        "Exit code: 0, 1 a log does not verify, 2 usage."
    )
    _which_logs(parser, filled, unnamed="the latest log")
    parser.add_argument("--full", action="store_true", help="all that is cut: arguments, results, the system prompt")
    parser.add_argument("--tool", type=filled, metavar="NAME", help="calls of this tool")
    parser.add_argument("--decision", choices=(*DECISIONS, "none"), help="decided so")
    parser.add_argument(
        "--answer",
        choices=(*ANSWERS, UNANSWERED),
        help="asked about and answered so (unanswered: the log has no answer)",
    )
    parser.add_argument("--rule", type=filled, metavar="ID", help="a rule's id, or a part of what decided")
    parser.add_argument("--path", type=filled, metavar="TEXT", help="a part of a path that was named or changed")
    parser.add_argument("--since", type=filled, metavar="TIME", help="asked for at that time or later")
    parser.add_argument("--until", type=filled, metavar="TIME", help="asked for at that time or before")
    parser.add_argument("--call", type=filled, metavar="N", help="the call of this number")


def _verify(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Say what reading whole logs proves, and what it does not."
    parser.epilog = "Exit code: 0 whole, 1 broken, 2 usage, 3 open, 4 no head to compare with, 8 a log cannot be read."
    parser.add_argument("files", nargs="*", metavar="FILE", help="logs or folders (else the latest log)")
    parser.add_argument("--all", action="store_true", help="every log in the state folder, and those that are gone")
    parser.add_argument("--head", type=filled, metavar="HASH", help="the head hash that was kept elsewhere")
    parser.add_argument("--heads", type=filled, metavar="FILE", help="the heads file (else that of the state folder)")
    parser.add_argument(
        "--signers", type=filled, metavar="FILE", help="who may sign heads: ALLOWED SIGNERS of ssh-keygen(1)"
    )
    parser.add_argument(
        "--signer", type=filled, metavar="NAME", help="who must have signed (else anybody in --signers)"
    )
    parser.add_argument(
        "--redecide", action="store_true", help="also judge the calls again, by the policies in the log"
    )
    parser.add_argument("--json", action="store_true", help="one object a log")


def _approvals(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Say who was asked what, under which rule, what they answered, and how long they took."
    parser.epilog = (
        "`under 1 s` and `burst` (3 times yes within 10 s) are said of people's answers.\n"
        "Exit code: 0, 1 a log does not verify, 2 usage."
    )
    _which_logs(parser, filled)


def _denied(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "List the calls that were refused, by whom and why."
    parser.epilog = "Exit code: 0, 1 a log does not verify, 2 usage."
    _which_logs(parser, filled)
    parser.add_argument("--invalid", action="store_true", help="also those that could not be prepared")


def _unknown(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = (
        "List the calls that were begun and whose end is not known (they may have run), open sessions, torn lines."
    )
    parser.epilog = "Exit code: 0 there is none, 1 a log does not verify, 2 usage, 3 there is one."
    _which_logs(parser, filled)


def _files(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "List every file that a call changed, before and after, and whether it can be undone."
    parser.epilog = (
        "The files are looked at on this machine: whether each is still what the last call left.\n"
        "What commands changed is not recorded; those that could write are named, with where.\n"
        "Exit code: 0, 1 a log does not verify, 2 usage."
    )
    _which_logs(parser, filled)


def _reads(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "List every file or folder that calls read, by path, and the calls of which that is not known."
    parser.epilog = "Of a folder, all below it may be meant.\nExit code: 0, 1 a log does not verify, 2 usage."
    _which_logs(parser, filled)


def _outside(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "List the calls that read or could write outside the workspace, or could reach the network."
    parser.epilog = "Told is what their verdicts let them do.\nExit code: 0, 1 a log does not verify, 2 usage."
    _which_logs(parser, filled)


def _stats(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Count calls, questions and refusals by rule: the basis for a better policy."
    _which_logs(parser, filled)
    parser.add_argument(
        "--sql",
        nargs="?",
        const="",
        metavar="QUERY",
        help="behind LOG: the answer to a SELECT over the view `records`, by DuckDB (the extra `sql`)",
    )


def _diff(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Say in what two sessions differ: what was asked, decided, done and changed."
    parser.add_argument("left", type=filled, metavar="A", help="a log file, or how a session's name begins")
    parser.add_argument("right", type=filled, metavar="B", help="likewise")
    parser.add_argument("--json", action="store_true", help="one object a line")


def _redecide(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Judge the calls of logs again under another policy; nothing is run."
    _which_logs(parser, filled)
    parser.add_argument("--policy", type=filled, metavar="FILE", required=True, help="a file, or a shipped one")
    parser.add_argument("--fail-on", choices=("laxer", "any"), help="exit 1 if there are such changes")


def _report(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Write one page of HTML, without scripts, about what happened; the log stays what counts."
    _which_logs(parser, filled, as_json=False)
    parser.add_argument("-o", "--output", type=filled, metavar="FILE", required=True, help="- is stdout")
    parser.add_argument("--title", default="", metavar="TEXT", help="the heading of the page")
    parser.add_argument("--full", action="store_true", help="cut nothing: every call whole, every text to its end")


def _export(parser: ArgumentParser, filled: Filled) -> None:
    from harness.audit.export import EXPORTS

    parser.description = "Write the calls in another form, a view: the log stays the record. Nothing is sent anywhere."
    _which_logs(parser, filled, as_json=False)
    parser.add_argument("--to", choices=tuple(EXPORTS), required=True, help="the form")
    parser.add_argument("--content", action="store_true", help="also arguments and results, as far as the log has them")
    parser.add_argument("-o", "--output", type=filled, metavar="FILE", default="-", help="else stdout")


def _sign(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Sign the size and head of closed logs with ssh-keygen; writes LOG.head and LOG.head.sig."
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--key", type=filled, metavar="FILE", required=True, help="an SSH key")


def _prune(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Remove whole closed logs that are past, each noted with its head in a tombstone."
    parser.epilog = "Exit code: 0 done, 1 a log that is broken was met (and kept, without --broken)."
    parser.add_argument(
        "--older-than", type=filled, metavar="DAYS", help="those that were written last before so many days"
    )
    parser.add_argument(
        "--keep-bytes", type=filled, metavar="N", help="the oldest, until all logs come to at most N bytes"
    )
    parser.add_argument("--open", action="store_true", help="also logs in which something has no end")
    parser.add_argument("--broken", action="store_true", help="also logs that do not verify")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and do nothing")
    parser.add_argument("--json", action="store_true", help="one object a line, and a summary")


def _recover(parser: ArgumentParser, filled: Filled) -> None:
    parser.description = "Bring a log whose last line is torn into a state in which it can be continued."
    parser.add_argument("file", type=filled, metavar="FILE")


def _which_logs(
    parser: ArgumentParser, filled: Filled, *, as_json: bool = True, unnamed: str = "the logs of this workspace"
) -> None:
    """Which logs are meant: what cli/audit/logs.py makes of these."""
    parser.add_argument("logs", nargs="*", metavar="LOG", help=f"files or folders (else {unnamed})")
    parser.add_argument("--session", type=filled, metavar="ID", help="one session: how its name begins")
    parser.add_argument("--all", action="store_true", help="the logs of every workspace")
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
    if as_json:
        parser.add_argument("--json", action="store_true", help="one object a line")


_FLAGS: Mapping[str, Callable[[ArgumentParser, Filled], None]] = {
    "list": _list,
    "show": _show,
    "verify": _verify,
    "approvals": _approvals,
    "denied": _denied,
    "unknown": _unknown,
    "files": _files,
    "reads": _reads,
    "outside": _outside,
    "stats": _stats,
    "diff": _diff,
    "redecide": _redecide,
    "report": _report,
    "export": _export,
    "sign": _sign,
    "prune": _prune,
    "recover": _recover,
}
ACTIONS = tuple(_FLAGS)
"""What comes after `harness audit`."""
