"""`harness policy import`: write a policy from the permissions of another agent."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.errors import UsageError
from harness.plugins.agents.claude_permissions import claude_permissions
from harness.plugins.agents.codex_rules import codex_rules
from harness.plugins.agents.imported_policy import imported_policy
from harness.safe_files import read_regular
from harness.session.exits import Exit
from harness.terminal.console import complain
from harness.text.visible import visible_line

READERS = {"claude": claude_permissions, "codex": codex_rules}
"""The reader of each agent's permissions."""
_MOST_BYTES = 1_000_000


def import_command(arguments: Namespace, environment: Mapping[str, str]) -> int:  # noqa: ARG001 - as all commands
    """Write the policy to stdout, and the number of permissions left out to stderr. Raises UsageError."""
    name = visible_line(arguments.file, 500)
    try:
        data = read_regular(arguments.file, _MOST_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name}: is not UTF-8") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{name}: is larger than {_MOST_BYTES} bytes")
    try:
        permissions, defaults = READERS[arguments.agent](text)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    policy = imported_policy(f"from-{arguments.agent}", permissions, defaults)
    sys.stdout.write(policy.text)
    count = len(permissions) - len(policy.left_out)
    complain(
        f"{count} of {len(permissions)} permissions are in the policy, {len(policy.wider)} of them stricter; "
        "the end lists these and the others, with reasons"
    )
    return Exit.DONE
