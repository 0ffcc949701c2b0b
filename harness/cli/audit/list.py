"""`harness audit list`: the sessions of the logs, a line each; verifies nothing and changes nothing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from harness.audit.calls import task_of, text
from harness.audit.sessions import SessionInShort, sessions_of
from harness.cli.audit.logs import chosen_logs
from harness.cli.audit.wording import Output
from harness.cli.exits import Exit
from harness.cli.trace import Tone
from harness.errors import LogError, UsageError
from harness.log.reader import is_in_use
from harness.text.visible import visible_line


def list_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line a session and return the exit code. Raises HarnessError."""
    output = Output(environment, as_json=arguments.json)
    try:
        logs = chosen_logs(arguments, environment)
    except UsageError as error:
        if arguments.logs or arguments.session:
            raise
        output.line(str(error), Tone.QUIET)
        return Exit.DONE
    for path in logs.paths:
        try:
            _list(path, logs.session, output)
        except LogError as error:
            output.row({"row": "session", "log": path, "state": "unreadable", "problem": str(error)})
            output.line(f"unreadable: {error}", Tone.BAD)
    return Exit.DONE


def _list(path: str, session: str, output: Output) -> None:
    for one in sessions_of(path):
        if session and text(one.started, "session") != session:
            continue
        in_use = one.state != "ended" and is_in_use(path)
        output.row(one.fields(in_use=in_use))
        if not output.as_json:
            said, tone = _ending(one, in_use=in_use)
            output.line("  ".join((_about(one), said, _size(one.size), visible_line(path, 5_000))), tone, width=8_000)


def _about(one: SessionInShort) -> str:
    started = one.started
    if not started:
        return "no session"
    begun = visible_line(text(started, "time")[:19].replace("T", " "), 19)
    words = [text(started, "session"), f"{begun}Z", text(started, "mode") or "?", text(started, "model") or "-"]
    words = [visible_line(word, 100) for word in (*words, text(started, "workspace") or "-")]
    task = [visible_line(task, 64)] if (task := task_of(one.log)) else []
    return "  ".join((*task, *words, f"{one.calls} calls / {one.asked} asked / {one.refused} refused"))


def _ending(one: SessionInShort, *, in_use: bool) -> tuple[str, Tone]:
    if in_use and one.state in ("open", "torn", "none"):
        return "in use", Tone.GOOD
    match one.state:
        case "ended":
            return visible_line(text(one.ended, "stop").replace("_", " ") or "ended", 60), Tone.PLAIN
        case "open":
            return "open: it never said that it ended", Tone.WARNING
        case "torn":
            return "open, and its last line is torn", Tone.WARNING
        case "broken":
            return f"BROKEN: line {one.bad_line} is no record; what follows was not counted", Tone.BAD
        case _:
            return "empty" if not one.size else "holds no session", Tone.WARNING


def _size(size: int) -> str:
    return f"{size} B" if size < 10_000 else f"{size // 1_000} kB" if size < 10_000_000 else f"{size // 1_000_000} MB"
