"""Differences between two sessions: prompts, policy, calls and their outcomes, files.

Times, token counts, the model's words and the text of results are not compared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.audit.calls import CALL_KINDS, LoggedCall, call_number, logged_calls, text, word
from harness.files.diffs import changes
from harness.log.order import LogRecord
from harness.record import Record
from harness.text.strict_json import once

ACCOUNT_KINDS = CALL_KINDS | {"user_message", "session_ended"}
"""Kinds of records that `account_of` needs."""
MOST_CHARACTERS = 300
"""Maximum length kept of a summary or a prompt for display."""
_FIELDS = ("harness", "model", "api", "mode", "confinement", "policy", "policy_sha256", "instructions", "git_head")
"""Compared fields of the `session_started` records."""


class DifferenceKind(Enum):
    """The kind of a difference."""

    ONLY_LEFT = "only_a"
    ONLY_RIGHT = "only_b"
    OTHER = "other"
    SAME = "same"


class CallAccount(Record):
    """The compared facts of one call."""

    number: str
    called: JsonValue
    """Number of the call for JSON. A text if the log's value is not a number."""
    tool: str
    summary: str
    key: bytes
    """Digest of tool and arguments. Calls with equal digests count as the same call."""
    results: tuple[tuple[str, str], ...]
    """Name and value of each result of the call. The value is empty if the log lacks it."""
    path: str
    """The file that it changed. Empty if it changed none."""
    after: str


class Account(Record):
    """The compared facts of one session."""

    log: str
    session: str
    time: str
    workspace: str
    began: tuple[tuple[str, str], ...]
    prompts: tuple[tuple[bytes, str], ...]
    """Digest of each prompt, and the beginning of its text."""
    calls: tuple[CallAccount, ...]
    files: tuple[tuple[str, str], ...]
    """Path of each changed file (relative if inside the workspace) and its last digest."""
    end: str
    """The stop reason. Empty if the log has no end of the session."""


class Difference(Record):
    """One difference between two sessions, or a call that both have."""

    kind: str
    """`began`, `prompt`, `call`, `file` or `end`."""
    change: DifferenceKind
    name: str
    """Name of a field or a file."""
    left: str = ""
    right: str = ""
    calls: tuple[CallAccount | None, CallAccount | None] = (None, None)
    fields: tuple[tuple[str, str, str], ...] = ()
    """Differences of a common call: name, left value and right value."""


def account_of(log: str, session: str, records: Iterable[LogRecord]) -> Account:
    """Return the compared facts of the session, from the records (ACCOUNT_KINDS) of its log."""
    started: LogRecord = {}
    prompts: list[tuple[bytes, str]] = []
    end = ""

    def of_session() -> Iterator[LogRecord]:
        nonlocal started, end
        for record in records:
            if record["session"] != session:
                continue
            match record["kind"]:
                case "session_started":
                    started = record
                case "user_message":
                    prompt = text(record, "text")
                    prompts.append((_digest(prompt), prompt[:MOST_CHARACTERS]))
                case "session_ended":
                    end = (
                        " ".join(filter(None, (text(record, "stop"), text(record, "detail")[:MOST_CHARACTERS]))) or "?"
                    )
                case _:
                    pass
            yield record

    calls_placed = [(_place(call), _call(call)) for call in logged_calls(log, of_session())]
    calls = tuple(call for _, call in sorted(calls_placed, key=lambda item: item[0]))
    workspace = text(started, "workspace")
    changed = {_relative(call.path, workspace): call.after for call in calls if call.path}
    return Account(
        log=log,
        session=session,
        time=text(started, "time"),
        workspace=workspace,
        began=tuple(_began(started)),
        prompts=tuple(prompts),
        calls=calls,
        files=tuple(sorted(changed.items())),
        end=end,
    )


def differences(left: Account, right: Account) -> Iterator[Difference]:
    """Yield the differences and every common call: start, prompts, calls, files, end."""
    right_values = dict(right.began)
    for name, value in left.began:
        if value != right_values.get(name, ""):
            yield Difference(
                kind="began", change=DifferenceKind.OTHER, name=name, left=value, right=right_values.get(name, "")
            )
    left_prompts, right_prompts = [digest for digest, _ in left.prompts], [digest for digest, _ in right.prompts]
    for a, b in aligned(left_prompts, right_prompts):
        if a is None or b is None:
            yield Difference(
                kind="prompt",
                change=DifferenceKind.ONLY_RIGHT if a is None else DifferenceKind.ONLY_LEFT,
                name="",
                left="" if a is None else left.prompts[a][1],
                right="" if b is None else right.prompts[b][1],
            )
    yield from _calls(left.calls, right.calls)
    files = dict(right.files)
    for name, digest in left.files:
        other = files.pop(name, None)
        if other is None:
            yield Difference(kind="file", change=DifferenceKind.ONLY_LEFT, name=name, left=digest)
        elif other != digest:
            yield Difference(kind="file", change=DifferenceKind.OTHER, name=name, left=digest, right=other)
    for name, digest in files.items():
        yield Difference(kind="file", change=DifferenceKind.ONLY_RIGHT, name=name, right=digest)
    if left.end != right.end:
        yield Difference(kind="end", change=DifferenceKind.OTHER, name="", left=left.end, right=right.end)


def aligned(left: Sequence[bytes], right: Sequence[bytes]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of indexes into `left` and `right`, in order, that cover every item of both.

    The items of a pair are equal. An item without an equal one is paired with `None`.
    """
    a = b = 0
    for change in changes(left, right):
        yield from zip(range(a, change.old_start), range(b, change.new_start), strict=True)
        yield from ((place, None) for place in range(change.old_start, change.old_end))
        yield from ((None, place) for place in range(change.new_start, change.new_end))
        a, b = change.old_end, change.new_end
    yield from zip(range(a, len(left)), range(b, len(right)), strict=True)


def _calls(left: Sequence[CallAccount], right: Sequence[CallAccount]) -> Iterator[Difference]:
    for a, b in aligned([call.key for call in left], [call.key for call in right]):
        calls = None if a is None else left[a], None if b is None else right[b]
        if calls[0] is None or calls[1] is None:
            yield Difference(
                kind="call",
                change=DifferenceKind.ONLY_RIGHT if a is None else DifferenceKind.ONLY_LEFT,
                name="",
                calls=calls,
            )
            continue
        results = zip(calls[0].results, calls[1].results, strict=True)
        fields = tuple((name, before, after) for (name, before), (_, after) in results if before != after)
        yield Difference(
            kind="call",
            change=DifferenceKind.OTHER if fields else DifferenceKind.SAME,
            name="",
            calls=calls,
            fields=fields,
        )


def _began(started: LogRecord) -> Iterator[tuple[str, str]]:
    for name in _FIELDS:
        yield name, word(started.get(name))
    yield "policy files", "; ".join(_policy_files(started.get("policy_files")))
    yield "system prompt", _digest(text(started, "system")).hex() if text(started, "system") else ""
    tools = started.get("tools")
    yield "tools", " ".join(sorted(map(word, tools))) if isinstance(tools, list) else ""


def _policy_files(files: JsonValue) -> Iterator[str]:
    for file in files if isinstance(files, list) else ():
        if isinstance(file, dict):
            trusted = "" if file.get("trusted") is not False else " (not trusted)"
            yield f"{word(file.get('layer'))} {word(file.get('path'))} {word(file.get('sha256'))[:16]}{trusted}"


def _call(call: LoggedCall) -> CallAccount:
    outcome, change = call.outcome, call.intent.get("change")
    path, after = text(outcome, "changed_path"), text(outcome, "after_sha256")
    if not outcome and isinstance(change, dict):  # the call may have run; its effect on the file is unknown
        path, after = text(change, "path"), "unknown"
    results = {
        "decision": "unjudged" if call.is_unjudged else call.decided,
        "answer": text(call.answered, "answer"),
        "outcome": text(outcome, "status") or call.fate.value,
        "exit code": word(outcome.get("exit_code")),
        "left in the file": after,
    }
    return CallAccount(
        number=call.number,
        called=call_number(call),
        tool=call.tool,
        summary=call.summary[:MOST_CHARACTERS],
        key=_key(call),
        results=tuple(results.items()),
        path=path,
        after=after,
    )


def _key(call: LoggedCall) -> bytes:
    """Return the digest of tool and arguments. Blanks and the order of fields in the arguments do not matter."""
    proposed = call.proposed
    if "arguments_characters" in proposed:  # the log has only the beginning of the arguments
        return _digest(f"{call.tool}\n{text(proposed, 'arguments_sha256') or text(proposed, 'arguments')}")
    arguments = text(proposed, "arguments")
    try:
        arguments = json.dumps(json.loads(arguments, object_pairs_hook=once), sort_keys=True)
    except (ValueError, RecursionError):
        pass  # arguments that are not valid JSON are compared as text
    return _digest(f"{call.tool}\n{arguments}")


def _digest(prompt: str) -> bytes:
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()


def _place(call: LoggedCall) -> tuple[int, str]:
    number = call_number(call)
    return number if isinstance(number, int) else -1, call.number


def _relative(path: str, workspace: str) -> str:
    inside = workspace.rstrip("/") + "/"
    return path[len(inside) :] if workspace and path.startswith(inside) else path
