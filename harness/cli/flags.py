"""The flags of every command; only the parser that is needed is built, and nothing is read from the environment."""

from __future__ import annotations

import argparse
import os
from argparse import RawDescriptionHelpFormatter

from harness.cli.audit.flags import ACTIONS as AUDIT_ACTIONS
from harness.cli.audit.flags import add_flags as add_audit_flags
from harness.cli.audit.flags import add_log_flags
from harness.cli.session_flags import count, filled, model_flags, session_flags, whole
from harness.text.visible import visible
from harness.version import __version__

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from typing import NoReturn

ACTIONS = {
    "policy": ("check", "explain", "test", "replay", "suggest", "trust"),
    "audit": AUDIT_ACTIONS,
    "schema": ("log", "result"),
    "config": ("show", "path"),
    "sessions": ("list", "resume", "fork"),
}
"""Commands that take an action, and the actions."""

MOST_WIDTH = 110
"""Of help, in columns; so wide it is in a file."""

_EPILOG = """\
commands:
  harness [PROMPT]       the prompt, in a terminal
  harness run PROMPT     one prompt, nobody to ask (CI)
  harness batch TASKS --out DIR    many prompts, each in a folder of its own; goes on where it was stopped
  harness demo           a scripted model, without key or network
  harness policy check FILE...     load policies strictly, run their examples
  harness policy explain WHAT      say what would be decided, and by which rule: 0 auto, 10 confirm, 20 deny, 30 block
  harness policy test CASES        hold a file of cases against a policy: 0 as expected, 1 not
  harness policy replay LOG...     judge the calls of old logs again, and list what would change
  harness policy suggest [LOG...]  propose rules that would have spared your repeated approvals
  harness policy trust [FILE]      let the auto rules of a project's policy count
  harness audit list               name the logs in the state folder
  harness audit show [FILE...]     a readable timeline (the latest log without FILE)
  harness audit verify [FILE...]   check chain and order: 0 whole, 1 broken, 3 open, 4 no head kept
  harness audit QUESTION [LOG...]  approvals, denied, unknown, files, reads, outside, stats; diff; redecide
  harness audit report -o FILE     one page of HTML; export --to csv, jsonl, ocsf, otlp
  harness audit sign, prune, recover
                                   sign heads with an SSH key; remove old logs; mend a torn one
  harness schema log, result       the JSON Schema of the log's records; of what `run --output json` writes
  harness -c                       go on with the newest session of this folder
  harness sessions list            what was said here, and how it ended (--all: in every folder)
  harness sessions resume [ID]     go on with a session, in a new log; fork ID --turn N: from its turn N
  harness undo                     put back the newest file that a session changed; --to CALL: all back to that call
  harness config show              every setting; --origin: who said it
  harness config path              where the user's configuration is
  harness doctor                   try what this machine can enforce: 0 commands can be confined, 2 they cannot
  harness doctor --model [NAME]    send one tiny request: 0 the model is usable, 2 settings, 6 it is not

exit codes: 0 done, 1 internal error, 2 usage or policy, 3 hard block, 4 limit, 5 no usable answer, 6 provider failed, \
7 done but calls were refused, 8 the log cannot be written, 130/143 interrupted, 141 stdout was closed"""


def actions_help(command: str) -> str:
    """Return what the actions of a command do, a line or two each."""
    told = [(action, parser_for(command, action).description or "") for action in ACTIONS[command]]
    width = max(len(action) for action, _ in told) + 2
    lines = [fitted(f"  {action:{width}}{description}", _width()) for action, description in told]
    return "\n".join([f"usage: harness {command} ACTION [--help]", "", *lines, ""])


def fitted(line: str, width: int) -> str:
    """Return a line in lines of at most `width` characters; they go on below its second column, where it has one."""
    if len(line) <= width:
        return line
    import textwrap

    body = line.lstrip()
    column = body.find("  ")
    start = len(line) - len(body[column:].lstrip()) if column > 0 else len(line) - len(body)
    return textwrap.fill(line, width, subsequent_indent=" " * min(start, width // 2), break_on_hyphens=False)


def _width() -> int:
    """Return how wide help is: as the terminal, where it goes to one or into a pager, up to MOST_WIDTH."""
    for descriptor in (1, 2):
        try:
            return min(os.get_terminal_size(descriptor).columns or MOST_WIDTH, MOST_WIDTH)
        except OSError:
            continue
    return MOST_WIDTH


class _Formatter(RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions that fit."""

    def __init__(self, prog: str) -> None:
        # With a width of its own, since argparse would import shutil (2 ms) to ask the terminal, at every flag.
        super().__init__(prog, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(fitted(f"{indent}{line}", width) for line in text.splitlines())


class ArgumentParser(argparse.ArgumentParser):
    """A parser that says what is wrong with an argument without writing it to the terminal as it is."""

    def error(self, message: str) -> NoReturn:
        """Say it, where the flags are listed, and exit with 2. Raises SystemExit."""
        told = visible(message).replace("\n", "\n  ")
        if is_unquoted(message) and any(action.dest == "prompt" for action in self._actions):
            told += " (a prompt of several words is put in quotes)"
        self.exit(2, f"{self.prog}: error: {told}\n`{self.prog} --help` lists what it takes\n")


def is_unquoted(message: str) -> bool:
    """Say whether a complaint of argparse is about words behind the last one that it takes, none of them a flag."""
    words = message.removeprefix("unrecognized arguments: ")
    return words != message and not any(word.startswith("-") for word in words.split())


def parser_for(command: str, action: str) -> ArgumentParser:
    """Return the parser of `harness COMMAND ACTION`; the empty command is the prompt."""
    name = " ".join(word for word in ("harness", command, action) if word)
    parser = ArgumentParser(name, formatter_class=_Formatter)
    parser.set_defaults(action=action)
    match command, action:
        case (("run" | "batch"), _):
            from harness.cli.session_flags import batch_flags, run_flags

            (run_flags if command == "run" else batch_flags)(parser)
        case "demo", _:
            _demo_flags(parser)
        case "policy", _:
            _policy_flags(parser, action)
        case "audit", _:
            add_audit_flags(parser, action, filled)
        case "undo", _:
            _undo_flags(parser)
        case "sessions", _:
            _sessions_flags(parser, action)
        case "config", _:
            _config_flags(parser, action)
        case "schema", _:
            parser.description = (
                "Print a JSON Schema (draft 2020-12): of a record of the action log, of a run's result."
            )
        case "doctor", _:
            parser.description = "Say what this machine can enforce, by trying it in a temporary folder."
            parser.epilog = "Exit code: 0 commands can be confined, 2 they cannot; policies that require it do not run."
            parser.add_argument("--json", action="store_true", help="one object, with every attempt")
            model_flags(parser, optional_name=True)
            parser.add_argument(
                "--cwd", type=filled, metavar="DIR", help="with --model: the workspace (else the current folder)"
            )
        case _:
            parser.description = "A coding harness in which every call of the model is decided before it runs."
            parser.epilog = _EPILOG
            parser.add_argument("prompt", nargs="?", help="the first thing to do; without it the prompt waits")
            parser.add_argument(
                "-c",
                "--continue",
                dest="resume",
                action="store_true",
                help="go on with the newest session of this folder",
            )
            parser.add_argument("--version", action="version", version=f"harness {__version__}")
            session_flags(parser)
            _terminal_flags(parser)
    return parser


def _demo_flags(parser: ArgumentParser) -> None:
    parser.description = "Play a bundled scenario with a scripted model."
    parser.add_argument("name", nargs="?", default="fix", help="which one (--list names them)")
    parser.add_argument("--answers", metavar="y,y,n", help="answers to the questions, in order")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
    _terminal_flags(parser)


def _config_flags(parser: ArgumentParser, action: str) -> None:
    if action == "path":
        parser.description = "Say where the user's configuration is, or would be."
        return
    parser.description = "Say which settings hold, as TOML; nothing is sent, and no key is shown."
    parser.add_argument("--origin", action="store_true", help="who said each of them")
    parser.add_argument("--json", action="store_true", help="one object, origins included")
    model_flags(parser)
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")


def _terminal_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII alone")
    parser.add_argument("--screen-reader", action="store_true", help="write over nothing that was written")


def _policy_flags(parser: ArgumentParser, action: str) -> None:
    match action:
        case "check":
            parser.description = "Load policies strictly, run their examples, and warn of what is surely not meant."
            parser.add_argument("--strict", action="store_true", help="exit 1 if there are warnings")
            parser.add_argument("files", nargs="+", metavar="FILE")
        case "test":
            parser.description = "Hold a file of cases against a policy, one JSON object a line; nothing is run."
            parser.epilog = 'A case: {"id": "1", "tool": "bash", "args": {"command": "ls"}, "expect": "auto"}'
            parser.add_argument(
                "--policy", type=filled, metavar="FILE", required=True, help="a policy file, or a shipped one"
            )
            parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace of cases that name none")
            parser.add_argument("--json", action="store_true", help="one object a line, and a summary")
            parser.add_argument("cases", metavar="CASES", help="the file of cases")
        case "replay":
            parser.description = "Judge the calls of action logs again, and list what would change; nothing is run."
            parser.add_argument(
                "--policy", type=filled, metavar="FILE", required=True, help="the new policy, or a shipped one"
            )
            parser.add_argument("--fail-on", choices=("laxer", "any"), help="exit 1 if there are such changes")
            parser.add_argument("--json", action="store_true", help="one object a line, and a summary")
            parser.add_argument("logs", nargs="+", metavar="LOG")
        case "suggest":
            parser.description = "Propose rules that would have spared your repeated approvals; no policy is written."
            add_log_flags(parser, filled)
            parser.add_argument(
                "--least", type=whole, default=2, metavar="N", help="approvals in different calls (else 2)"
            )
        case "trust":
            parser.description = (
                "Let the auto rules of a project's policy count, as long as its content stays the same."
            )
            parser.add_argument("file", nargs="?", metavar="FILE", help="by default .harness/policy.toml")
        case _:
            parser.description = "Say what would be decided on a call, and by which rule; nothing is run."
            parser.epilog = "Exit code: 0 auto, 10 confirm, 20 deny, 30 block."
            parser.add_argument("--tool", default="bash", help="bash, read_file, write_file or edit_file")
            parser.add_argument(
                "--policy", type=filled, metavar="FILE", help="a policy file, or a shipped one (else the prompt's)"
            )
            parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
            parser.add_argument("--json", action="store_true", help="one object, with every operand")
            parser.add_argument("what", nargs="+", help="the command line in one word, or the path")


def _sessions_flags(parser: ArgumentParser, action: str) -> None:
    if action == "list":
        parser.description = "Name the sessions of this folder, the newest last; what is open never said that it ended."
        parser.add_argument("--all", action="store_true", help="those of every folder")
        parser.add_argument("--json", action="store_true", help="one object a line")
        parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
        return
    if action == "fork":
        parser.description = "Begin a session with what another held after one of its turns; both can go on."
        parser.add_argument("session", metavar="ID", help="the session, or how its name begins")
        parser.add_argument("--turn", type=count, metavar="N", help="after its turn N, 0 before the first (else all)")
    else:
        parser.description = "Begin a session with what another held when it ended, however it ended."
        parser.add_argument("session", nargs="?", metavar="ID", help="how its name begins (else the newest one here)")
    parser.add_argument("prompt", nargs="?", help="the first thing to do; without it the prompt waits")
    session_flags(parser)
    _terminal_flags(parser)


def _undo_flags(parser: ArgumentParser) -> None:
    parser.description = "Put back files that a session's calls changed, where they still are what the calls left."
    parser.epilog = "Exit code: 0 all of it was undone, 7 something could not be."
    parser.add_argument(
        "--session", type=filled, metavar="ID", help="the session, or how its name begins (else the newest one here)"
    )
    parser.add_argument("--to", type=whole, metavar="CALL", help="back to and including this call (else one change)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="one object a line, and a summary")
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the session's log, where it is not in the state folder"
    )
