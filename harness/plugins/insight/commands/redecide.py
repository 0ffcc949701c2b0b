"""`harness audit redecide`: judge the calls of logs again under another policy. Nothing is run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from harness.app.audit.answer_writer import AnswerWriter
from harness.app.audit.logs import Filled, chosen_logs, log_flags
from harness.app.policy.replay import list_changes, under_policy


def add_flags(parser: ArgumentParser, _verb: str, filled: Filled) -> None:
    """Give `parser` the flags of `harness audit redecide`."""
    from harness.app.flags import policy_flag

    parser.description = "Judge the calls of logs again under another policy; nothing is run."
    log_flags(parser, filled)
    policy_flag(parser, "a file, or a shipped one", required=True)
    parser.add_argument("--fail-on", choices=("laxer", "any"), help="exit 1 if there are such changes")


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """List what would change, as `policy replay` does; the exit code is BROKEN too where one of the logs is.

    Raises HarnessError.
    """
    chosen = chosen_logs(arguments, environment)
    chosen.verify_all()
    replay = under_policy(arguments.policy, environment, chosen.paths, chosen.findings)
    with AnswerWriter(environment, as_json=arguments.json) as output:
        code = list_changes(replay, chosen.paths, chosen.session, output, fail_on=arguments.fail_on)
    return chosen.code or code
