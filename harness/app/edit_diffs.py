"""The diff of an edit, from its outcome record and the contents that the state folder keeps."""

from __future__ import annotations

from collections.abc import Callable

from harness.app.kept_contents import kept_contents
from harness.audit.calls import text
from harness.digest import digest_of
from harness.files.diffs import compare
from harness.files.encoding import read_text
from harness.log.order import LogRecord
from harness.redaction.redactor import Redactor
from harness.safe_files import read_small
from harness.session.state import State

MOST_LINES = 500
"""Maximum number of lines shown of one file's diff. Further lines are counted."""
_MOST_BYTES = 16_000_000
"""Maximum size of an edited file that is read."""


def edit_diffs(state: State, workspace: str, redactor: Redactor) -> Callable[[LogRecord], str]:
    """Return a function that returns the diff of the file that an edit wrote, with masked secrets.

    The diff shows what was written, by the digests in the outcome record. It is empty for other calls, for a binary
    file, and if a content is not kept.
    """
    stores = kept_contents(state, workspace)

    def diff_of(outcome: LogRecord) -> str:
        path, after = text(outcome, "changed_path"), text(outcome, "after_sha256")
        if not path:
            return ""
        before = text(outcome, "before_sha256")
        old = stores.get(before) if before else b""
        new = stores.get(after)
        new = read_small(path, _MOST_BYTES) if new is None else new
        if old is None or new is None or digest_of(new) != after:
            return ""
        texts = [read_text(content) for content in (old, new)]
        bodies = [content.body for content in texts if content is not None]
        return redactor.redact(compare(*bodies).text(MOST_LINES)) if len(bodies) == 2 else ""

    return diff_of
