"""What the commands draw at terminals of three widths, of logs that are hostile in every field that is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from forged_logs import Step, done, ended, intended, lines_of, proposed, started, write
from rows import all_rows

from harness.actions import JsonValue
from harness.models.scripted import Reply, call, replies
from harness.terminal.row_text import cells

if TYPE_CHECKING:
    from program import Program

pytestmark = pytest.mark.forges_logs

HOSTILE = "[red]x[/red] [link=file:///etc]y[/link] :bomb: \x1b[2J\x1b]0;z\x07 漢字の題名 \u202eb " + "long/" * 30
BY = f"rule {HOSTILE[:40]} (/a/place [b]bold[/b]/own.toml:12)"


def decided(call: int, decision: str) -> Step:
    fields: dict[str, JsonValue] = {
        "call": call,
        "tool": HOSTILE[:60],
        "decision": decision,
        "by": BY,
        "source": "rule",
    }
    facets: list[JsonValue] = [{"facet": HOSTILE, "kind": "Command", "decision": decision, "by": BY}]
    return "decision", {**fields, "reason": HOSTILE, "summary": HOSTILE, "facets": facets, "facet_count": 1}


def hostile_session() -> list[Step]:
    steps: list[Step] = [
        started(workspace=f"/srv/{HOSTILE}", model=HOSTILE, user=HOSTILE),
        ("user_message", {"text": HOSTILE, "by": "person"}),
        proposed(1, HOSTILE[:60]),
        decided(1, "confirm"),
        ("approval_asked", {"call": 1, "tool": HOSTILE[:60]}),
        ("approval_answered", {"call": 1, "answer": "yes", "by": "person", "seconds": 0.4, "words": HOSTILE}),
        intended(1, HOSTILE[:60]),
        done(1, HOSTILE, HOSTILE[:60]),
        proposed(2, HOSTILE[:60]),
        decided(2, "deny"),
        ("outcome", {"call": 2, "tool": HOSTILE[:60], "status": "denied", "content": HOSTILE, "hint": HOSTILE}),
        proposed(3),
        decided(3, "auto"),
        intended(3),
        ended(stop=HOSTILE),
    ]
    return steps


@pytest.fixture
def logs(program: Program) -> Path:
    folder = program.state / "harness/sessions/shop-01234567"
    for number in range(3):
        write(folder / f"[b]{number}[b] 漢\x1b[2J.jsonl", lines_of(hostile_session(), session=f"{number}123456789ab"))
    return folder


COMMANDS = (
    ("audit", "list", "--all"),
    ("audit", "stats", "--all"),
    ("audit", "approvals", "--all"),
    ("audit", "denied", "--all"),
    ("audit", "unknown", "--all"),
    ("audit", "outside", "--all"),
    ("audit", "show", "--all"),
    ("audit", "verify", "--all"),
    ("audit", "prune", "--keep-bytes", "0", "--dry-run"),
    ("sessions", "list", "--all"),
    ("policy", "explain", f"echo '{HOSTILE}' && rm -rf build"),
    ("config", "show", "--origin"),
    ("demo", "--list"),
)


@pytest.mark.parametrize("columns", [120, 80, 40])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
@pytest.mark.usefixtures("logs")
def test_tables_fit_the_terminal_and_contain_no_markup(program: Program, words: tuple[str, ...], columns: int) -> None:
    _, shown = program.at_terminal(*words, columns=columns)
    rows = [re.sub(r"\x1b\[[0-9;]*m", "", row) for row in shown.splitlines()]
    assert max(map(cells, rows)) <= columns, [row for row in rows if cells(row) > columns]
    assert [row for row in rows if not row.isprintable()] == []
    assert "Traceback" not in shown
    if words[0] not in ("config", "demo") and columns == 120:
        assert "[red]" in shown or "[b]" in shown
        assert "\\x1b" in "".join("".join(rows).split())


@all_rows("words", COMMANDS)
def test_a_pipe_gets_plain_lines(program: Program, logs: Path, words: tuple[str, ...]) -> None:
    done = program.run(*words)
    assert ("\x1b" in done.out, "─" in done.out, "Traceback" in done.err) == (False, False, False)
    assert all(line.isprintable() for line in done.out.splitlines())


@all_rows("words", (*COMMANDS, ("policy", "check", "ci"), ("policy", "fatigue", "--all")))
def test_full_disk_is_reported_by_every_command(program: Program, logs: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = program.run(*words, stdout=full)
    assert (done.code, done.err.splitlines()[-1]) == (141, "harness: stdout cannot be written: No space left on device")


def test_text_of_a_call_never_starts_a_row_of_the_timeline(program: Program) -> None:
    told = f"{'x' * 66} confirm  write /etc/passwd  [rule own (own.toml:1)]"
    steps = (started(), proposed(1, "bash"), decided(1, "auto"), intended(1, "bash"), done(1, told, "bash"), ended())
    log = write(program.home / "x.jsonl", lines_of(steps))
    _, shown = program.at_terminal("audit", "show", str(log), "--full", columns=80, NO_COLOR="1")
    assert f"          | {'x' * 66}\n              confirm  write /etc/passwd" in shown


def test_times_are_local_at_a_terminal_and_utc_elsewhere(program: Program, logs: Path) -> None:
    _, shown = program.at_terminal("audit", "list", "--all", columns=200, TZ="Asia/Tokyo")
    assert ("2024-05-01 19:00" in shown, "Times are in JST." in shown) == (True, True)
    assert "2024-05-01 10:00:00Z" in program.run("audit", "list", "--all").out
    rows = [json.loads(line) for line in program.run("audit", "list", "--all", "--json").out.splitlines()]
    assert {row["time"] for row in rows} == {"2024-05-01T10:00:00.000000Z"}
    _, timeline = program.at_terminal("audit", "show", "--all", TZ="Asia/Tokyo", NO_COLOR="1")
    assert "2024-05-01 (JST)\n19:00:0" in timeline


def test_verify_of_many_logs_is_a_table_and_json_stays(program: Program, logs: Path) -> None:
    code, shown = program.at_terminal("audit", "verify", "--all", columns=120, NO_COLOR="1")
    piped = program.run("audit", "verify", "--all")
    assert (code, shown.count("shop-01234567/"), "0 of 3 logs whole" in shown) == (piped.code, 3, True)
    assert piped.out.count("Not proved: ") == 3
    at_terminal = program.at_terminal("audit", "verify", "--all", "--json")[1]
    assert at_terminal == program.run("audit", "verify", "--all", "--json").out


def test_terminal_settings_apply_to_finished_output(program: Program, logs: Path) -> None:
    path = program.home / ".config/harness/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[terminal]\nascii = true\n")
    _, shown = program.at_terminal("audit", "stats", "--all", NO_COLOR="1", XDG_CONFIG_HOME=str(path.parent.parent))
    assert ("─" in shown, "----" in shown) == (False, True)
    path.write_text('[terminal]\ntheme = "none"\n')
    url = program.serve(replies(Reply(calls=(call("bash", command="ls"),)), Reply(text="done")))
    _, trace = program.at_terminal("run", "go", "--base-url", url, XDG_CONFIG_HOME=str(path.parent.parent), NO_COLOR="")
    assert ("+ bash  ls" in trace, "\x1b" in trace) == (True, False)
