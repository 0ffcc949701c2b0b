"""The entry point: flags to commands, errors to one line and an exit code; heavy things are imported by the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness import __version__
from harness.errors import HarnessError, LogError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

COMMANDS = ("run", "demo", "policy", "audit")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with `argv` (the process's own where it is None) and return its exit code.

    An expected failure is one line on stderr; an unexpected one is a line, and a traceback with HARNESS_DEBUG set.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words == ["--version"]:
        sys.stdout.write(f"harness {__version__}\n")
        return 0
    import os

    from harness.cli.console import use_utf8
    from harness.cli.exits import Exit
    from harness.cli.signals import keep_standard_descriptors

    _, stdout_open, stderr_open = keep_standard_descriptors()
    if not stdout_open or sys.stdout is None:
        _complain("stdout is closed; there is nowhere to write the answer")
        return Exit.USAGE
    if not stderr_open or sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    use_utf8()
    try:
        return _dispatch(words, os.environ)
    except LogError as error:
        _complain(str(error))
        return Exit.LOG
    except HarnessError as error:
        _complain(str(error))
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return Exit.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug is one line for the user, and exit 1
        if os.environ.get("HARNESS_DEBUG"):
            raise
        _complain(f"internal error: {type(error).__name__}: {error} (HARNESS_DEBUG=1 shows where)")
        return Exit.INTERNAL


def _complain(text: str) -> None:
    from harness.visible import visible

    if sys.stderr is not None:
        sys.stderr.write(f"harness: {visible(text)}\n")


def _dispatch(words: list[str], environment: Mapping[str, str]) -> int:
    command = next((word for word in words[:1] if word in COMMANDS), None)
    arguments = _parser(command).parse_args(words[1:] if command else words)
    run: Callable[[Namespace, Mapping[str, str]], int]
    match command:
        case "run":
            from harness.cli.run import run_command as run
        case "demo":
            from harness.cli.demo import demo_command as run
        case "policy":
            from harness.cli.policy import policy_command as run
        case "audit":
            from harness.cli.audit import audit_command as run
        case _:
            from harness.cli.repl import repl_command as run
    return run(arguments, environment)


def _parser(command: str | None) -> ArgumentParser:
    """Return the parser of one command: only the one that is needed is built."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    match command:
        case "run":
            parser = ArgumentParser("harness run", description="Run one prompt; never asks, never reads the terminal.")
            parser.add_argument("prompt", help="what to do; - reads it from stdin")
            _session_flags(parser)
            parser.add_argument("--output", choices=("text", "json", "jsonl"), default="text", help="form of stdout")
            parser.add_argument("--allow-refusals", action="store_true", help="exit 0 although calls were refused")
            parser.add_argument("-q", "--quiet", action="store_true", help="no trace on stderr")
        case "demo":
            parser = ArgumentParser("harness demo", description="Play a bundled scenario with a scripted model.")
            parser.add_argument("name", nargs="?", default="fix", help="which one (--list names them)")
            parser.add_argument("--answers", metavar="y,y,n", help="answers to the questions, in order")
            parser.add_argument("--list", action="store_true", help="name the scenarios")
            parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
        case "policy":
            parser = _policy_parser()
        case "audit":
            parser = _audit_parser()
        case _:
            parser = ArgumentParser(
                "harness",
                description="A coding harness in which every call of the model is decided before it runs.",
                epilog="commands:\n  harness run PROMPT     one prompt, nobody to ask (CI)\n"
                "  harness demo           a scripted model, without key or network\n"
                "  harness policy ...     check a policy, explain a decision, trust a project's policy\n"
                "  harness audit ...      list, show and verify action logs",
                formatter_class=RawDescriptionHelpFormatter,
            )
            parser.add_argument("prompt", nargs="?", help="the first thing to do; without it the prompt waits")
            parser.add_argument("--version", action="version", version=f"harness {__version__}")
            _session_flags(parser)
    return parser


def _session_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--policy", metavar="FILE", help="a policy file, or a shipped one: default, ci, readonly, demo")
    parser.add_argument("--model", help="the model's name (else HARNESS_MODEL)")
    parser.add_argument("--base-url", metavar="URL", help="of an OpenAI-compatible server (else OPENAI_BASE_URL)")
    parser.add_argument("--cwd", metavar="DIR", help="the workspace (else the current folder)")
    parser.add_argument("--log", metavar="FILE", help="the action log (else a new file in the state folder)")
    parser.add_argument("--max-turns", type=_whole, metavar="N", help="requests to the model")
    parser.add_argument("--max-seconds", type=_number, metavar="S", help="wall time")
    parser.add_argument("--max-tokens", type=_whole, metavar="N", help="tokens in and out")


def _policy_parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(
        "harness policy", description="Check a policy, explain a decision, trust a project's policy."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="check|explain|trust")
    check = actions.add_parser("check", help="load policies strictly and run their examples")
    check.add_argument("files", nargs="+", metavar="FILE")
    explain = actions.add_parser("explain", help="say what would be decided on a call, and by which rule")
    explain.add_argument("--tool", default="bash", help="bash, read_file, write_file or edit_file")
    explain.add_argument(
        "--policy", metavar="FILE", help="a policy file, or a shipped one (else the one of the prompt)"
    )
    explain.add_argument("--cwd", metavar="DIR", help="the workspace (else the current folder)")
    explain.add_argument("what", nargs="+", help="the command line in one word, or the path")
    trust = actions.add_parser("trust", help="let the auto rules of a project's policy count")
    trust.add_argument("file", nargs="?", metavar="FILE", help="by default .harness/policy.toml")
    return parser


def _audit_parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser("harness audit", description="Read and check action logs; without FILE the latest one.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|verify")
    actions.add_parser("list", help="name the logs in the state folder")
    show = actions.add_parser("show", help="a readable timeline")
    show.add_argument("files", nargs="*", metavar="FILE")
    show.add_argument("--json", action="store_true", help="the whole records, one a line")
    check = actions.add_parser("verify", help="check chain and order; exit 0 whole, 1 broken, 3 open, 4 no head kept")
    check.add_argument("files", nargs="*", metavar="FILE")
    check.add_argument("--head", help="the head hash that was noted elsewhere")
    return parser


def _whole(text: str) -> int:
    from argparse import ArgumentTypeError

    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _number(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value
