"""The files that a call changed, as its outcome record lists them.

A list with more than MOST_LISTED paths is in a file beside the log, among its attachments. The record then has the
digest of that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.log.attachments import KeptAttachments
from harness.redaction.redactor import Redactor

LIST, LIST_DIGEST = "paths", "list_sha256"
MOST_LISTED = 500
"""Maximum number of changed paths in a record."""


def changes_field(changes: Mapping[str, JsonValue], log: str, redactor: Redactor) -> dict[str, JsonValue]:
    """Return the field `changes` of an outcome for the log at the path `log`.

    A long list is stored beside the log. If that fails, the field has the counts and the problem, but no list.
    """
    paths = changes.get(LIST)
    if not isinstance(paths, list) or len(paths) <= MOST_LISTED:
        return dict(changes)
    field = {name: value for name, value in changes.items() if name != LIST}
    try:
        digest = KeptAttachments(log).keep_data(json.dumps(redactor.fields({LIST: paths})[0][LIST]).encode())
    except OSError as error:
        return {**field, "problem": f"the list of its changes could not be stored: {error.strerror or error}"}
    return {**field, LIST_DIGEST: digest}


def changes_in(outcome: Mapping[str, JsonValue], log: str) -> Mapping[str, JsonValue] | None:
    """Return the field `changes` of an outcome with its complete list of paths.

    `log` is the path of the log with the record. The result is `None` if the call's changes were not looked for. It has
    no list if the file beside the log is missing, damaged or not a list.
    """
    changes = outcome.get("changes")
    if not isinstance(changes, dict):
        return None
    digest = changes.get(LIST_DIGEST)
    if not isinstance(digest, str):
        return changes
    data = KeptAttachments(log).bytes_of(digest)
    try:
        paths = None if data is None else json.loads(data)
    except ValueError:
        paths = None
    return {**changes, LIST: paths} if isinstance(paths, list) else changes
