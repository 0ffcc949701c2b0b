"""`harness audit export`: calls in another form, to a file or to stdout; sends nothing, and the log stays the record."""

from __future__ import annotations

from collections.abc import Mapping

from harness.audit.export import FORMS
from harness.audit.export.row import Export
from harness.cli.audit.logs import chosen_logs
from harness.cli.audit.view_file import STDOUT, write_view
from harness.cli.redacting import installation_key
from harness.cli.state import State
from harness.cli.streams import complain

TYPE_CHECKING = False  # as in harness/__init__.py
if TYPE_CHECKING:
    from argparse import Namespace


def export_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the export and return the exit code: 1 if a log is broken. Raises HarnessError."""
    state = State.of(environment)
    chosen = chosen_logs(arguments, environment)
    chosen.tell_standing()
    key = installation_key(state)
    if not key:
        complain("there is no redaction key in the state folder: digests of arguments are left out")
    export = Export(chosen, key=key, content=arguments.content)
    write_view(FORMS[arguments.to]()(export), arguments.output, logs=chosen.paths, state=state, cwd=arguments.cwd)
    for trouble, count in export.troubles.most_common():
        complain(f"{count} times: {trouble}; exported as far as it goes")
    if arguments.output != STDOUT:
        complain(f"wrote {arguments.output}")
    return chosen.code
