"""The flags that several commands share: which policy and model, in which folder, within which limits; reads nothing."""

from __future__ import annotations

from argparse import ArgumentTypeError

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import ArgumentParser


def count(text: str) -> int:
    """Return a whole number, 0 too."""
    return 0 if text == "0" else whole(text)


def filled(text: str) -> str:
    """Refuse an empty value: a variable of the shell that is not set must not count as a flag that was not given."""
    if not text.strip():
        raise ArgumentTypeError("it is empty")
    return text


def whole(text: str) -> int:
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
    """Return a digest as it is written everywhere here: 64 hexadecimal digits, small ones."""
    digest = text.strip().lower()
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ArgumentTypeError(f"{text!r} is no SHA-256: 64 hexadecimal digits are wanted")
    return digest


def report(text: str) -> str:
    """Return FORM:FILE; which forms there are is checked where they are made."""
    form, colon, file = text.partition(":")
    if not (form.strip() and colon and file.strip()):
        raise ArgumentTypeError(f"{text!r} is not FORM:FILE, as in md:report.md")
    return text


def shard(text: str) -> tuple[int, int]:
    """Return which part of how many: of `2/8` 2 and 8."""
    part, _, parts = text.partition("/")
    one, all_of_them = whole(part), whole(parts)
    if one > all_of_them:
        raise ArgumentTypeError(f"{text!r}: there is no part {one} of {all_of_them}")
    return one, all_of_them


def session_flags(parser: ArgumentParser) -> None:
    """Add what the prompt and a run have in common."""
    work_flags(parser)
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the action log (else a new file in the state folder)"
    )


def work_flags(parser: ArgumentParser) -> None:
    """Add what the prompt, a run and a batch have in common: policy, model, workspace, limits."""
    parser.add_argument(
        "--policy", type=filled, metavar="FILE", help="a policy file, or a shipped one: default, ci, readonly, demo"
    )
    parser.add_argument(
        "--policy-sha256", type=sha256, metavar="HEX", help="the digest that the file of --policy must have"
    )
    model_flags(parser)
    parser.add_argument(
        "--system", type=filled, metavar="FILE", help="a template in the place of the standard system prompt"
    )
    parser.add_argument("--no-instructions", action="store_true", help="do not read AGENTS.md")
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
    parser.add_argument(
        "--add-dir", type=filled, action="append", default=[], metavar="DIR", help="a folder that may be read as well"
    )
    parser.set_defaults(copied_from=None)  # the folder that a task's workspace is made of
    parser.add_argument("--max-turns", type=whole, metavar="N", help="requests to the model")
    parser.add_argument("--max-seconds", type=number, metavar="S", help="wall time")
    parser.add_argument("--max-tokens", type=whole, metavar="N", help="tokens in and out")
    parser.add_argument("--max-cost", type=number, metavar="DOLLARS", help="by the prices in the configuration")


def model_flags(parser: ArgumentParser, *, optional_name: bool = False) -> None:
    """Add who is asked; with `optional_name`, `--model` need not name one."""
    parser.add_argument(
        "--provider", type=filled, metavar="NAME", help="openai, azure, ollama ... (else HARNESS_PROVIDER)"
    )
    if optional_name:
        parser.add_argument(
            "--model", nargs="?", const="", metavar="NAME", help="send the model one tiny request, and say what works"
        )
    else:
        parser.add_argument("--model", type=filled, help="the model's name (else HARNESS_MODEL)")
    address = "of an OpenAI-compatible server (else HARNESS_BASE_URL, OPENAI_BASE_URL)"
    parser.add_argument("--base-url", type=filled, metavar="URL", help=address)
    parser.add_argument("--api", choices=("chat", "responses"), help="which of the OpenAI APIs (else HARNESS_API)")


_RUN_EPILOG = """\
exit codes: 0 done, 1 internal error, 2 usage or policy, 3 hard block, 4 limit, 5 no usable answer, 6 provider
failed, 7 done but calls were refused, 8 the log cannot be written, 130/143 interrupted, 141 stdout was closed"""


def run_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness run`."""
    parser.description = "Run one prompt; never asks, never reads the terminal."
    parser.epilog = _RUN_EPILOG
    parser.add_argument("prompt", nargs="?", help="what to do; - reads it from stdin")
    parser.add_argument("--prompt-file", type=filled, metavar="FILE", help="read it from a file, {{variables}} and all")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="the value of a {{variable}}")
    parser.add_argument("--no-stdin", action="store_true", help="attach nothing from stdin to the prompt")
    parser.add_argument("--resume", type=filled, metavar="ID", help="go on with a session: how its name begins")
    session_flags(parser)
    parser.add_argument(
        "--done-marker", type=filled, metavar="TEXT", help="end when a command that succeeds prints this line first"
    )
    parser.add_argument(
        "--output-schema", type=filled, metavar="FILE", help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument("--output", choices=("text", "json", "jsonl"), default="text", help="form of stdout")
    _outcome_flags(parser)
    parser.add_argument("--record", type=filled, metavar="FILE", help="keep the model's side of the run as a cassette")
    parser.add_argument("--replay", type=filled, metavar="FILE", help="ask a cassette in the place of a model")
    parser.add_argument("--task", type=filled, metavar="FILE", help="the task of a batch, as JSON; needs --out")
    parser.add_argument("--out", type=filled, metavar="DIR", help="with --task: the folder of what comes of it")


def batch_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness batch`."""
    parser.description = "Run many tasks, each in a folder of its own; a second start does what is not done yet."
    parser.epilog = 'A task: {"id": "parse-1", "prompt": "Make the test pass.", "cwd": "/srv/repo"}'
    parser.add_argument("tasks", metavar="TASKS", help="the file of tasks, one JSON object a line")
    parser.add_argument("--out", type=filled, metavar="DIR", required=True, help="the folder of what comes of them")
    parser.add_argument("-j", "--jobs", type=whole, metavar="N", help="so many at once (else one a processor)")
    parser.add_argument("--shard", type=shard, metavar="I/N", help="the I-th of N parts of the tasks alone")
    work_flags(parser)
    _outcome_flags(parser)


def _outcome_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="judge and record every call, and run none")
    parser.add_argument("--plan", action="store_true", help="put plan mode over the policy: nothing is changed")
    parser.add_argument("--allow-refusals", action="store_true", help="exit 0 although calls were refused")
    parser.add_argument(
        "--report", type=report, action="append", default=[], metavar="FORM:FILE", help="md, junit, sarif or html"
    )
    parser.add_argument("--report-answer", action="store_true", help="the model's answer in the reports too, fenced")
    parser.add_argument("-q", "--quiet", action="store_true", help="no trace on stderr")
