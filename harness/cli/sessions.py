"""`harness sessions`: list what the logs hold, and go on from one of them; it changes no log but the new session's own."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping

from harness.actions import JsonValue
from harness.cli.console import Console, wants_colour
from harness.cli.exits import Exit
from harness.cli.logged_sessions import Outline, logged_sessions, outlines
from harness.cli.state import State, here
from harness.cli.streams import complain
from harness.cli.trace import Tone
from harness.visible import visible_line


def sessions_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Do what `harness sessions ACTION` asks and return the exit code. Raises HarnessError."""
    if arguments.action == "list":
        return _list(arguments, environment)
    from harness.cli.repl import repl_command

    return repl_command(arguments, environment)


def _list(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Write one line a session, the newest last."""
    workspace = here(arguments.cwd)
    found = logged_sessions(State.of(environment).log_paths(None if arguments.all else workspace), stopped=_tell_stop)
    told = outlines(one for one in found if arguments.all or one.workspace == workspace)
    if arguments.json:
        for one in told:
            sys.stdout.write(json.dumps(_fields(one), sort_keys=True) + "\n")
        return Exit.DONE
    console = Console(sys.stdout, colour=wants_colour(sys.stdout, environment))
    for one in told:
        console.line(_line(one, everywhere=arguments.all))
    if not told:
        console.line(visible_line(f"no session in {workspace}; --all shows those of other folders", 1_000), Tone.QUIET)
    return Exit.BROKEN_PIPE if console.broken else Exit.DONE


def _tell_stop(path: str, line: int) -> None:
    where = f"{path}: line {line} is no whole record; what follows in that log is left out"
    complain(where)


def _line(one: Outline, *, everywhere: bool) -> str:
    ended = one.ended.replace("_", " ") or ("open, torn" if one.torn else "open")
    turns = "1 turn" if one.turns == 1 else f"{one.turns} turns"
    words = [one.found.session, f"{one.found.time[:16].replace('T', ' ')}Z", one.found.mode, one.model, turns, ended]
    if everywhere:
        words.append(one.found.workspace)
    if one.origin:
        words.append(f"(from {one.origin})")
    prompt = next((line for line in one.prompt.splitlines() if line.strip()), "")
    return "  ".join((*(visible_line(word, 200) for word in words), visible_line(prompt.strip(), 80))).rstrip()


def _fields(one: Outline) -> dict[str, JsonValue]:
    return {
        "session": one.found.session,
        "time": one.found.time,
        "mode": one.found.mode,
        "workspace": one.found.workspace,
        "log": one.found.path,
        "model": one.model,
        "turns": one.turns,
        "prompt": one.prompt,
        "ended": one.ended or None,
        "torn": one.torn,
        "origin": one.origin or None,
    }
