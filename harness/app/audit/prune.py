"""`harness audit prune`: remove whole logs past a limit, and write a tombstone for each. Logs are never cut."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import sys
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from harness.actions import JsonValue
from harness.audit.findings import Findings, Soundness, judge_log
from harness.errors import LogError, UsageError
from harness.files.segments import prune_stores
from harness.log.attachments import KeptAttachments
from harness.log.clocks import timestamp
from harness.log.heads_file import HeadsFile, append_note
from harness.log.reader import is_in_use
from harness.record import Record
from harness.safe_files import sync_path
from harness.session.exits import Exit
from harness.session.state import State
from harness.terminal.console import Console, FinishedOutput, Look, look_here
from harness.terminal.long_work import counted_off
from harness.terminal.styles import Tone
from harness.terminal.tables import Column, Table, TableRow
from harness.text.visible import visible_line

DAY = 86_400.0


class PruneResult(Enum):
    """What happens to a log."""

    REMOVED = "removed"
    WOULD_BE = "would be removed"
    KEPT = "kept"
    """The log is past a limit, but there is a reason not to remove it."""


class Past(Record):
    """A log past a limit, with the reason."""

    path: str
    size: int
    """Size in bytes."""
    reason: str


class Pruned(Record):
    """Result for a log past a limit."""

    past: Past
    fate: PruneResult
    reason: str
    """Reason why the log is past a limit, or why it was kept."""
    records: int = 0
    head: str = ""
    broken: bool = False


def command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Remove logs and return the exit code. Raises HarnessError, and LogError if a tombstone cannot be written."""
    days, keep = _number(arguments.older_than, "--older-than"), _number(arguments.keep_bytes, "--keep-bytes")
    if days is None and keep is None:
        raise UsageError(
            "prune removes nothing by itself: say which logs are past, with --older-than DAYS, or with --keep-bytes N "
            "(the oldest go, until all come to at most N bytes)"
        )
    state = State.of(environment)
    now = time.time()
    done = []
    logs = _oldest_first(state.log_paths())
    total = sum(size for _, _, size in logs)
    console = FinishedOutput(environment)
    waits = console.width > 0 and not arguments.json
    look = look_here(sys.stderr, environment) if waits or not console.width else Look()
    for written, path, size in counted_off(logs, len(logs), "logs looked at", look, lambda item: item[2]):
        reason = _reason(now - written, total, days, keep)
        if not reason:
            continue
        past = Past(path=path, size=size, reason=reason)
        pruned = prune_log(
            past, state, dry_run=arguments.dry_run, is_broken_too=arguments.broken, is_open_too=arguments.open
        )
        total -= size if pruned.fate is not PruneResult.KEPT else 0
        done.append(pruned)
        if not waits:
            _tell(pruned, as_json=arguments.json)
    if waits and done:
        console.table(_table(done, state))
    images, note = (0, 0), "before-images were not looked at"
    if not arguments.dry_run:
        images, note = remove_unnamed(state, now)
    contents = _prune_contents(state, dry_run=arguments.dry_run)
    _tell_summary(done, images, note, contents, console, arguments)
    kept_broken = any(pruned.broken and pruned.fate is PruneResult.KEPT for pruned in done)
    return Soundness.BROKEN.value if kept_broken else Exit.DONE


def _number(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise UsageError(f"{flag}: {visible_line(text)!r} is not a number of at least 0")
    return value


def _oldest_first(paths: Sequence[str]) -> list[tuple[float, str, int]]:
    """Return the last write time, path and size in bytes of each log, oldest first."""
    stats = ((path, _stat(path)) for path in paths)
    return sorted((status.st_mtime, path, status.st_size) for path, status in stats if status is not None)


def _reason(age: float, total: int, days: float | None, keep: float | None) -> str:
    """Return the reason why a log is past a limit, or an empty string.

    `age` is in seconds; `total` is the total size of the remaining logs in bytes.
    """
    if days is not None and age > days * DAY:
        return f"older than {days:g} days"
    return f"more than {keep:.0f} bytes of logs" if keep is not None and total > keep else ""


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=False)
    except OSError:
        return None


def prune_log(past: Past, state: State, *, dry_run: bool, is_broken_too: bool, is_open_too: bool) -> Pruned:
    """Remove one log, unless there is a reason to keep it. Raises LogError if the tombstone cannot be written.

    A log that is broken, or whose last session has no end, is removed only with the flag for it.
    """
    try:
        descriptor = os.open(past.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return Pruned(past=past, fate=PruneResult.KEPT, reason=f"it cannot be opened: {error.strerror}")
    try:
        # INVARIANT: no process appends to a log while this lock is held, because ActionLog.open takes the same lock.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = _stat(past.path)
        if status is None or not os.path.samestat(status, os.fstat(descriptor)):
            return Pruned(past=past, fate=PruneResult.KEPT, reason="another file took its place meanwhile")
        return _prune_held(past, state, dry_run=dry_run, is_broken_too=is_broken_too, is_open_too=is_open_too)
    except BlockingIOError:
        return Pruned(past=past, fate=PruneResult.KEPT, reason="it is in use")
    finally:
        os.close(descriptor)


def _prune_held(past: Past, state: State, *, dry_run: bool, is_broken_too: bool, is_open_too: bool) -> Pruned:
    try:
        findings = judge_log(past.path, HeadsFile(state.heads))
    except LogError as error:
        return Pruned(past=past, fate=PruneResult.KEPT, reason=str(error))
    broken = findings.soundness is Soundness.BROKEN
    reason = past.reason
    fate = PruneResult.WOULD_BE if dry_run else PruneResult.REMOVED
    if broken and not is_broken_too:
        fate, reason = PruneResult.KEPT, f"{findings.reason} (`harness audit prune --broken` removes it)"
    elif findings.soundness is Soundness.OPEN and not is_open_too:
        fate, reason = PruneResult.KEPT, f"{findings.reason} (`harness audit prune --open` removes it)"
    if fate is PruneResult.REMOVED:
        problem = _remove(past, findings, state)
        if problem:
            fate, reason = PruneResult.KEPT, problem
    verification = findings.verification
    return Pruned(
        past=past, fate=fate, reason=reason, records=verification.records, head=verification.head, broken=broken
    )


def _remove(past: Past, findings: Findings, state: State) -> str:
    """Write the tombstone of a log, then remove the file. Return the reason for a failure, or an empty string.

    If the process is killed in between, the log exists and has a tombstone. The next removal then writes no second
    tombstone. Raises LogError.
    """
    verification, noted_head = findings.verification, findings.evidence.known_head
    file = os.path.abspath(past.path)
    if (
        noted_head is None
        or not noted_head.removed
        or noted_head.file != file
        or (noted_head.records, noted_head.head) != (verification.records, verification.head)
    ):
        broken: dict[str, JsonValue] = (
            {"broken": findings.reason[:500]} if findings.soundness is Soundness.BROKEN else {}
        )
        append_note(state.heads, _tombstone(file, past, findings) | broken)
    try:
        os.unlink(past.path)
    except OSError as error:
        return f"it has a tombstone, and cannot be removed: {error.strerror}"
    for path in beside(past.path):
        _unlink(path)
    KeptAttachments(past.path).remove()
    try:
        sync_path(os.path.dirname(file))
    except OSError:
        pass  # the tombstone is on disk; after a power cut the log may reappear, and will be removed again
    _remove_empty(os.path.dirname(file), state.sessions)
    return ""


def beside(path: str) -> Iterator[str]:
    """Yield the files to remove together with a log: its signed head, and the torn ends that `recover` saved."""
    yield from (f"{path}.head", f"{path}.head.sig", f"{path}.torn")
    number = 2
    while os.path.lexists(f"{path}.torn.{number}"):
        yield f"{path}.torn.{number}"
        number += 1


def _tombstone(file: str, past: Past, findings: Findings) -> dict[str, JsonValue]:
    verification = findings.verification
    return {
        "tombstone": True,
        "file": file,
        "session": verification.sessions[0] if verification.sessions else "",
        "sessions": list(verification.sessions),
        "records": verification.records,
        "head": verification.head,
        "bytes": past.size,
        "reason": past.reason,
        "time": timestamp(time.time()),
        "by": _user(),
    }


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def _remove_empty(folder: str, top: str) -> None:
    """Remove an empty folder below `top`, and then its parents as long as they are empty."""
    top = os.path.abspath(top)
    while folder.startswith(f"{top}/"):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # without its log, the file has no meaning


def _tell(pruned: Pruned, *, as_json: bool) -> None:
    if as_json:
        fields: dict[str, JsonValue] = {
            "file": pruned.past.path,
            "fate": pruned.fate.value,
            "why": pruned.reason,
            "bytes": pruned.past.size,
        }
        fields |= {"records": pruned.records, "head": pruned.head or None, "broken": pruned.broken}
        sys.stdout.write(json.dumps(fields, sort_keys=True) + "\n")
        return
    sys.stdout.write(
        f"{pruned.fate.value}: {visible_line(pruned.past.path, 5_000)}: {visible_line(pruned.reason, 1_000)}\n"
    )


_COLUMNS = Column(name="", toned=True), Column(name="log", folds=True), Column(name="why", folds=True)
_TONES = {PruneResult.KEPT: Tone.WARNING, PruneResult.REMOVED: Tone.PLAIN, PruneResult.WOULD_BE: Tone.PLAIN}


def _table(done: Sequence[Pruned], state: State) -> Table:
    cells = ((pruned.fate.value, pruned.past.path.removeprefix(f"{state.sessions}/"), pruned.reason) for pruned in done)
    tones = (_TONES[pruned.fate] for pruned in done)
    rows = (TableRow(cells=row, tone=tone) for row, tone in zip(cells, tones, strict=True))
    return Table(columns=_COLUMNS, rows=tuple(rows))


def _tell_summary(
    done: Sequence[Pruned],
    images: tuple[int, int],
    note: str,
    contents: int,
    console: Console,
    arguments: Namespace,
) -> None:
    removed = [pruned for pruned in done if pruned.fate is not PruneResult.KEPT]
    size = sum(pruned.past.size for pruned in removed)
    if arguments.json:
        summary: dict[str, JsonValue] = {"dry_run": bool(arguments.dry_run), "logs": len(removed), "bytes": size}
        summary |= {
            "kept": len(done) - len(removed),
            "images": images[0],
            "image_bytes": images[1],
            "images_note": note or None,
            "content_bytes": contents,
        }
        sys.stdout.write(json.dumps({"summary": summary}, sort_keys=True) + "\n")
        return
    verb = PruneResult.WOULD_BE.value if arguments.dry_run else PruneResult.REMOVED.value
    about_images = note or f"{images[0]} before-images ({images[1]} bytes) that no log names were removed"
    kept_note = f"{len(done) - len(removed)} kept although past"
    about_contents = f"; {contents} bytes of contents around commands {verb}" if contents else ""
    console.line(
        f"{len(removed)} logs ({size} bytes) {verb}, {kept_note}; {visible_line(about_images, 500)}{about_contents}"
    )


def _prune_contents(state: State, *, dry_run: bool) -> int:
    """Remove the contents around commands past their limits: size and age. Return the number of bytes."""
    try:
        return prune_stores(state.trees, dry_run=dry_run)
    except OSError:
        return 0  # the next look tries again


YOUNG_SECONDS = 86_400.0
"""Minimum age in seconds before an image is removed. A log may be about to name a younger one."""
_CHUNK = 1 << 20
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_IMAGE = re.compile(r"[0-9a-f]{62}")
_UNFINISHED = re.compile(r"[0-9a-f]{62}\.[0-9a-f]+\.tmp")


def remove_unnamed(state: State, now: float) -> tuple[tuple[int, int], str]:
    """Remove the before-images that no log names. Return their number, their total bytes, and a note.

    The note is the reason why all images were kept, or empty. All are kept if a log that may name them cannot be read.
    This is a log in use (an image is saved before its log names it), or a noted log elsewhere that is missing.
    """
    images = {digest: path for digest, path in _images(state.before_images) if _age(path, now) > YOUNG_SECONDS}
    if not images:
        return (0, 0), ""
    try:
        doubt = _drop_named(images, state)
    except (OSError, LogError) as error:
        doubt = str(error)
    if doubt:
        return (0, 0), f"before-images stay: {visible_line(doubt, 300)}"
    count = size = 0
    for path in images.values():
        try:
            status = os.stat(path, follow_symlinks=False)
            if now - status.st_mtime <= YOUNG_SECONDS:
                continue  # a run that began in between has saved the same content: see BeforeImages.keep
            os.unlink(path)
        except OSError:
            continue
        count, size = count + 1, size + status.st_size
    return (count, size), ""


def _drop_named(images: dict[str, str], state: State) -> str:
    """Remove the images that a log names from `images`. Return the reason for a failure, or an empty string.

    Raises OSError, LogError.
    """
    read: set[str] = set()
    while unread := [path for path in _every_log(state) if path not in read]:  # new logs may appear meanwhile
        for path in unread:
            if not os.path.isfile(path):
                return f"the log {path} may name some, and is not there"
            if is_in_use(path):
                return f"the log {path} is in use"
            for digest in _digests_in(path):
                images.pop(digest, None)
            read.add(path)
    return ""


def _every_log(state: State) -> dict[str, None]:
    """Return the paths of all logs, including noted logs elsewhere. Raises UsageError."""
    paths = dict.fromkeys(os.path.abspath(path) for path in state.log_paths())
    noted = (noted_head.file for noted_head in HeadsFile(state.heads).every() if not noted_head.removed)
    return paths | dict.fromkeys(noted)


def _digests_in(path: str) -> Iterator[str]:
    """Yield all possible digests in a log. A broken log is read too, since it still names images."""
    with open(path, "rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            data = rest + chunk
            for match in _DIGEST.finditer(data):
                yield match[0].decode()
            rest = data[-63:]


def _images(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the digest and path of every image. For leftovers of a crash, the first value is not a digest."""
    for first in _names(folder):
        if not re.fullmatch(r"[0-9a-f]{2}", first):
            continue
        for name in _names(os.path.join(folder, first)):
            if _IMAGE.fullmatch(name) or _UNFINISHED.fullmatch(name):
                yield first + name, os.path.join(folder, first, name)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _age(path: str, now: float) -> float:
    try:
        return now - os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
