"""The commands `harness policy` of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import filled, folder_flag, json_flag, log_flags, policy_flag
from harness.plugin import CliCommand, Plugin, later
from harness.tool_kinds import BASH, SHIPPED_TOOLS

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXAMPLE_CASE = f'{{"id": "1", "tool": "{BASH.name}", "args": {{"{BASH.subject}": "ls"}}, "expect": "auto"}}'
"""An example of a case for `policy test`."""


def _check_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there are warnings")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a policy file or the name of a shipped policy")


def _explain_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Exit code: 0 auto, 10 confirm, 20 deny, 30 block."
    *names, last = SHIPPED_TOOLS
    parser.add_argument(
        "--tool", default=BASH.name, help=f"the tool: {', '.join(names)} or {last} (default: {BASH.name})"
    )
    policy_flag(parser, "a policy file or the name of a shipped policy (default: the prompt's)")
    folder_flag(parser)
    json_flag(parser, "write one JSON object, with every operand")
    parser.add_argument(
        "what", nargs="+", help="the command line as one word, or the path; with --tool also arguments as JSON"
    )


def _test_flags(parser: ArgumentParser) -> None:
    parser.epilog = f"A case: {EXAMPLE_CASE}"
    policy_flag(parser, "a policy file or the name of a shipped policy", required=True)
    parser.add_argument("--cwd", metavar="DIR", type=filled, help="the workspace of cases that name none")
    json_flag(parser, "write one JSON object per line, and a summary")
    parser.add_argument("cases", metavar="CASES", help="the file of cases, one JSON object per line")


def _replay_flags(parser: ArgumentParser) -> None:
    log_flags(parser)
    policy_flag(parser, "the new policy: a file or the name of a shipped policy", required=True)
    parser.add_argument("--fail-on", choices=("laxer", "any"), help="the changes that make the exit code 1")


def _new_flags(parser: ArgumentParser) -> None:
    parser.epilog = "Without a terminal, give all three flags."
    parser.add_argument("--stack", metavar="NAMES", help="packs for the project, such as `python node`, or none")
    parser.add_argument("--person", choices=("yes", "no"), help="whether a person answers questions")
    parser.add_argument("--network", metavar="HOSTS", help="hosts that commands may reach, or any, or none")
    parser.add_argument("file", metavar="FILE", type=filled, help="the file to make, such as policy.toml")


def _file_flags(parser: ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", metavar="FILE", help="the file (default: .harness/policy.toml)")


_TRUSTED = "a project's policy, .mcp.json, .harness/config.toml, or a folder of commands or skills"
_TRUST = later("harness.app.policy.policy_command", "trust_command")
PLUGIN = Plugin(
    name="policy",
    commands=(
        CliCommand(
            name="policy check",
            help="Load policies strictly, run their examples, and warn of rules that are likely mistakes.",
            add_flags=_check_flags,
            run=later("harness.app.policy.policy_command", "check_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy new",
            help="Make a policy file from three answers: stack, person, network.",
            add_flags=_new_flags,
            run=later("harness.app.policy.new_policy", "new_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy explain",
            help="Show what would be decided on a call, and by which rule. Runs nothing.",
            add_flags=_explain_flags,
            run=later("harness.app.policy.policy_command", "explain_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy test",
            help="Test a policy with a file of cases. Runs nothing.",
            add_flags=_test_flags,
            run=later("harness.app.policy.cases", "test_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy replay",
            help="Judge the calls of action logs again, and list what would change. Runs nothing.",
            add_flags=_replay_flags,
            run=later("harness.app.policy.replay", "replay_command"),
            is_light=True,
        ),
        CliCommand(
            name="policy trust",
            help=f"Trust {_TRUSTED}, until its content changes.",
            add_flags=_file_flags,
            run=_TRUST,
            is_light=True,
        ),
        CliCommand(
            name="policy forget",
            help=f"End the trust in {_TRUSTED}.",
            add_flags=_file_flags,
            run=_TRUST,
            is_light=True,
        ),
    ),
)
