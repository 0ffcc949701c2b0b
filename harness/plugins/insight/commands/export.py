"""`harness audit export`: calls in another format, to a file or to stdout. It sends nothing and changes no log."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence

from harness.app.audit.answer_writer import to_stdout
from harness.app.audit.logs import chosen_logs
from harness.app.run.report_files import why_not
from harness.errors import UsageError
from harness.files.folders import open_to_list
from harness.paths import is_within_any
from harness.plugins.insight.export import exporter
from harness.plugins.insight.export.row import Export
from harness.safe_files import replace_file, sync_names
from harness.session.environment_secrets import installation_key
from harness.session.own_folders import output_path
from harness.session.state import State, workspace_folder
from harness.terminal.console import complain

STDOUT = "-"


def write_view(
    pieces: Iterable[str], output: str, *, logs: Sequence[str], state: State, cwd: str | None = None
) -> None:
    """Write text to the file `output` (mode 0600, UTF-8), or to stdout. `logs` are the exported logs.

    No link in the workspace (`cwd`, or the current folder) is followed. The file gets its name once it is complete on
    disk; until then an earlier file remains. Lone surrogates become escapes.

    Raises UsageError if the file must not or cannot be written, OSError if stdout cannot be written.
    """
    if output == STDOUT:
        to_stdout(pieces)
        return
    target = output_path(output, (workspace_folder(cwd),))
    _check_harmless(target, logs, state)
    try:
        folder = open_to_list(os.path.dirname(target))
        try:
            replace_file(
                os.path.basename(target), (piece.encode("utf-8", "backslashreplace") for piece in pieces), folder
            )
            sync_names(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None


def _check_harmless(target: str, logs: Sequence[str], state: State) -> None:
    """Raise UsageError if writing `target` would destroy a log or another file that the harness relies on."""
    if is_within_any(target, state.guarded):
        raise UsageError(f"{target}: this folder is for the harness's own files; choose another place")
    reason = why_not(target, logs)
    if reason:
        raise UsageError(f"{target}: {reason}; {STDOUT} writes to stdout")


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write the export and return the exit code: 1 if a log is broken. Raises HarnessError."""
    state = State.of(environment)
    chosen = chosen_logs(arguments, environment)
    chosen.tell_standing()
    key = installation_key(state)
    if not key:
        complain("there is no redaction key in the state folder: digests of arguments are left out")
    export = Export(chosen, key=key, content=arguments.content)
    write_view(exporter(arguments.to)(export), arguments.output, logs=chosen.paths, state=state, cwd=arguments.cwd)
    for trouble, count in export.troubles.most_common():
        complain(f"{count} times: {trouble}; exported as far as it goes")
    if arguments.output != STDOUT:
        complain(f"wrote {arguments.output}")
    return chosen.code
