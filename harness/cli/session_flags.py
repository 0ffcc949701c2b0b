"""The flags that several commands share: which policy and model, in which folder, within which limits; reads nothing."""

from __future__ import annotations

from harness.cli.flag_values import filled, number, sha256, whole

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import ArgumentParser


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
