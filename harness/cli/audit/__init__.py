"""`harness audit`: which module answers which question; needs no model, no network and no heavy library."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping


def audit_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness audit ACTION` asks and return the exit code. Raises HarnessError."""
    return _function_of(arguments.action)(arguments, environment)


def _function_of(action: str) -> Callable[[Namespace, Mapping[str, str]], int]:  # noqa: C901 - a table
    """Import what does `action`, and nothing else."""
    run: Callable[[Namespace, Mapping[str, str]], int]
    match action:
        case "list":
            from harness.cli.audit.list import list_command as run
        case "show":
            from harness.cli.audit.show import show_command as run
        case "verify":
            from harness.cli.audit.verify import verify_command as run
        case "stats":
            from harness.cli.audit.stats import stats_command as run
        case "diff":
            from harness.cli.audit.diff import diff_command as run
        case "redecide":
            from harness.cli.policy.rejudging import redecide_command as run
        case "report":
            from harness.cli.audit.views import report_command as run
        case "export":
            from harness.cli.audit.views import export_command as run
        case "sign":
            from harness.cli.audit.sign import sign_command as run
        case "prune":
            from harness.cli.audit.prune import prune_command as run
        case "recover":
            from harness.cli.audit.recover import recover_command as run
        case _:
            from harness.cli.audit.questions import question_command as run
    return run
