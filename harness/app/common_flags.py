"""Flags that several commands share, and functions that check the value of a flag.

Each check takes the text of a value and returns the value. It raises ArgumentTypeError for an invalid one.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from harness.shipped import REPORTS

EXIT_CODES = """\
exit codes: 0 done, 1 internal error, 2 usage or policy, 3 hard block, 4 limit, 5 no usable answer, 6 provider failed, \
7 done but calls were refused, 8 the log cannot be written, 130/143 interrupted, 141 stdout was closed"""


def count(text: str) -> int:
    """Return a whole number, 0 or above."""
    return 0 if text == "0" else positive_integer(text)


def filled(text: str) -> str:
    """Return the text unless it is empty. An unset shell variable must not count as a missing flag."""
    if not text.strip():
        raise ArgumentTypeError("the value is empty")
    return text


def positive_integer(text: str) -> int:
    """Return a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def number(text: str) -> float:
    """Return a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def sha256(text: str) -> str:
    """Return a SHA-256 digest in lower case."""
    digest = text.strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ArgumentTypeError(f"{text!r} is not a SHA-256 digest (expected 64 hexadecimal digits)")
    return digest


def report(text: str) -> str:
    """Return a FORM:FILE text. The command itself checks FORM."""
    form, colon, file = text.partition(":")
    if not (form.strip() and colon and file.strip()):
        raise ArgumentTypeError(f"{text!r} is not FORM:FILE, as in md:report.md")
    return text


def folder_flag(parser: ArgumentParser) -> None:
    """Add `--cwd`, the workspace."""
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (default: the current folder)")


def json_flag(parser: ArgumentParser, text: str = "write one JSON object per line") -> None:
    """Add `--json` with the help `text`."""
    parser.add_argument("--json", action="store_true", help=text)


def terminal_flags(parser: ArgumentParser) -> None:
    """Add the flags of commands that draw at a terminal."""
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--screen-reader", action="store_true", help="never write over text that was written before")


def policy_flag(parser: ArgumentParser, text: str, *, required: bool = False) -> None:
    """Add `--policy`, which may be repeated; the strictest policy decides. `text` is the help."""
    parser.add_argument(
        "--policy",
        action="append",
        type=filled,
        metavar="FILE",
        required=required,
        help=f"{text}; if repeated, the strictest decides",
    )


def session_flags(parser: ArgumentParser) -> None:
    """Add the flags that the prompt and a run share."""
    work_flags(parser)
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the action log (default: a new file in the state folder)"
    )


def work_flags(parser: ArgumentParser, *, names_folder: bool = True) -> None:
    """Add the flags that the prompt, a run and a batch share: policy, model, workspace and limits.

    Without `names_folder` there is no flag for the workspace, because the command determines it in another way.
    """
    policy_flag(parser, "a policy file or the name of a shipped policy: default, workspace, ci, readonly, demo")
    parser.add_argument(
        "--policy-sha256", type=sha256, metavar="HEX", help="the required SHA-256 digest of the --policy file"
    )
    model_flags(parser)
    parser.add_argument(
        "--system", type=filled, metavar="FILE", help="a template that replaces the standard system prompt"
    )
    parser.add_argument("--no-instructions", action="store_true", help="do not read AGENTS.md")
    if names_folder:
        folder_flag(parser)
    parser.add_argument(
        "--add-dir", type=filled, action="append", default=[], metavar="DIR", help="another folder that may be read"
    )
    parser.add_argument(
        "--tools",
        type=filled,
        metavar="NAMES",
        help="the only tools to offer, separated by commas; +NAME,+NAME adds tools instead",
    )
    parser.set_defaults(copied_from=None)  # the folder that a task's workspace was copied from
    parser.add_argument("--max-turns", type=positive_integer, metavar="N", help="limit of requests to the model")
    parser.add_argument("--max-seconds", type=number, metavar="S", help="limit of wall time")
    parser.add_argument("--max-tokens", type=positive_integer, metavar="N", help="limit of tokens in and out")
    parser.add_argument(
        "--max-cost", type=number, metavar="DOLLARS", help="limit of cost, by the prices in the configuration"
    )


def model_flags(parser: ArgumentParser, *, optional_name: bool = False) -> None:
    """Add the flags that choose the model. With `optional_name`, the value of `--model` is optional."""
    parser.add_argument(
        "--provider", type=filled, metavar="NAME", help="openai, azure, ollama ... (default: HARNESS_PROVIDER)"
    )
    if optional_name:
        parser.add_argument(
            "--model", nargs="?", const="", metavar="NAME", help="send the model one tiny request and show what works"
        )
    else:
        parser.add_argument("--model", type=filled, help="the model's name (default: HARNESS_MODEL)")
    address = "an OpenAI-compatible server (default: HARNESS_BASE_URL, OPENAI_BASE_URL)"
    parser.add_argument("--base-url", type=filled, metavar="URL", help=address)
    parser.add_argument(
        "--api", choices=("chat", "responses", "messages"), help="the API of the server (default: HARNESS_API)"
    )
    parser.add_argument(
        "--calls", choices=("functions", "text"), help="the form of calls; text is for models without function calling"
    )
    parser.add_argument("--effort", type=filled, metavar="WORD", help="reasoning effort: low, medium, high ...")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=filled,
        metavar="NAME=VALUE",
        help="a setting of the model: temperature=0.2",
    )


def outcome_flags(parser: ArgumentParser) -> None:
    """Add the flags that a run and a batch share, for decisions on calls and for reports."""
    *first_forms, last = REPORTS
    decision_flags(parser)
    parser.add_argument(
        "--report",
        type=report,
        action="append",
        default=[],
        metavar="FORM:FILE",
        help=f"a report to write; FORM is {', '.join(first_forms)} or {last}",
    )
    parser.add_argument(
        "--report-answer", action="store_true", help="include the model's answer in the reports, fenced"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="write no trace to stderr")


def decision_flags(parser: ArgumentParser) -> None:
    """Add the flags for decisions on calls in unattended work."""
    parser.add_argument("--dry-run", action="store_true", help="judge and record every call, and run none")
    parser.add_argument("--plan", action="store_true", help="add plan mode to the policy: nothing is changed")
    parser.add_argument("--allow-refusals", action="store_true", help="exit with 0 although calls were refused")


def log_flags(parser: ArgumentParser, *, as_json: bool = True, unnamed: str = "the logs of this workspace") -> None:
    """Add the flags that choose logs (harness/app/audit/logs.py), and `--json`."""
    parser.add_argument("logs", nargs="*", metavar="LOG", help=f"log files or folders (default: {unnamed})")
    parser.add_argument("--session", type=filled, metavar="ID", help="a single session: its ID or the beginning")
    parser.add_argument("--all", action="store_true", help="read the logs of every workspace")
    folder_flag(parser)
    if as_json:
        json_flag(parser)
