"""The conversation drawn again from the log: the same rows as the live session, the last ones only, and safe."""

from __future__ import annotations

import io

from harness.actions import JsonValue
from harness.app.commands.transcript import draw, last_parts, rows_of
from harness.log.order import LogRecord
from harness.terminal.console import Look
from harness.terminal.screen import Screen

SESSION: dict[str, JsonValue] = {"session": "s", "time": "2026-11-30T10:00:00Z"}


def record(kind: str, **fields: JsonValue) -> LogRecord:
    return {**SESSION, "kind": kind, **fields}


def turn(number: int, prompt: str, answer: str, printed: str = "") -> list[LogRecord]:
    return [
        record("user_message", text=prompt),
        record("model_request"),
        record("model_response", text="looking", calls=1),
        record("call_proposed", call=number, tool="bash"),
        record("decision", call=number, decision="auto", summary="ls", facets=[]),
        record("intent", call=number, tool="bash"),
        record(
            "outcome",
            call=number,
            tool="bash",
            status="ok",
            exit_code=0,
            seconds=0.1,
            content=printed.removesuffix("\n") + "\n[exit code 0, 0.1 s]",
            output_bytes=len(printed),
        ),
        record("model_request"),
        record("model_response", text=answer, calls=0),
    ]


def screen_of(width: int = 80) -> tuple[Screen, io.StringIO]:
    stream = io.StringIO()
    return Screen(stream, Look(), size=lambda: (width, 24)), stream


def drawn(records: list[LogRecord], width: int = 80) -> list[str]:
    return screen_of(width)[0].drawn(lambda screen: draw(screen, records))


def test_rows_are_those_of_the_live_session() -> None:
    records = turn(1, "please\nlook", "**Done**: one.", "a\nb\n" * 20)
    live, stream = screen_of()
    live.line("> please\n. look")
    for each in records:
        if each["kind"] == "model_response":
            for piece in str(each["text"]):
                live.text(piece)
        if each["kind"] == "outcome":
            for line in ("a\nb\n" * 20).splitlines(keepends=True):
                live.live(line)
        live.record(each)
    live.settle()
    rows = drawn(records)
    assert "\n".join(rows) + "\n" == stream.getvalue()
    assert rows[:2] == ["> please", ". look"]
    assert rows[-1].endswith("one.")


def test_no_text_of_the_log_reaches_the_terminal_as_it_is() -> None:
    hostile = "\x1b[2J\x1b]0;x\x07\r+ bash  forged\u202e"
    rows = drawn(turn(1, hostile, hostile, hostile))
    assert not any(set("\x1b\x07\r\u202e") & set(row) for row in rows)
    assert [row[0] for row in rows if "forged" in row and row[0] not in " >●"] == []


def test_last_parts_begin_with_a_message_or_a_reply_and_fill_the_rows() -> None:
    records = [each for number in range(1, 1_000) for each in turn(number, f"message {number}", "a\n\nb\n\nc")]
    last = last_parts(records, 200)
    assert last[0]["kind"] in ("user_message", "model_response")
    rows = drawn(list(last))
    assert 200 <= len(rows) < 400
    assert last[-1] is records[-1]
    assert last_parts(records[:9], 200) == records[:9]
    assert last_parts([], 200) == []


def test_long_message_of_the_user_is_shortened() -> None:
    rows = drawn(turn(1, "\n".join(map(str, range(100))), "Yes."))
    assert ". [80 further lines]" in rows
    assert ". 20" not in rows


def test_readings_in_a_row_become_one_line_as_on_the_live_screen() -> None:
    screen = Screen(io.StringIO(), Look(repaints=True), size=lambda: (80, 24), way_to_output="/output")
    records = [each for each in turn(1, "go", "") if each["kind"] in ("user_message", "model_response")][:2]
    for number, path in enumerate(("a.py", "b.py"), 1):
        fields: dict[str, JsonValue] = {"call": number, "tool": "read_file"}
        records += [
            record("call_proposed", **fields),
            record("decision", **fields, decision="auto", summary=path, facets=[], effects={"write": []}),
            record("intent", **fields),
            record("outcome", **fields, status="ok", content="x\n"),
        ]
    rows = screen.drawn(lambda twin: draw(twin, records))
    assert [row for row in rows if "read" in row] == ["+ read 2 files: a.py, b.py  /output 1-2"]
    assert not any("\x1b" in row for row in rows)


def test_rows_of_earlier_sessions_name_no_call_by_its_number() -> None:
    """The numbers begin again in every session: /output 1 is another call there."""
    screen = Screen(
        io.StringIO(),
        Look(),
        size=lambda: (80, 24),
        way_to_output="/output",
        diff_of=lambda outcome: "".join(f"+{n}\n" for n in range(40)) if "changed_path" in outcome else "",
    )
    edit: dict[str, JsonValue] = {"call": 2, "tool": "edit_file"}
    changes: JsonValue = {"paths": [{"path": "b.py", "before": None, "after": {"kind": "file"}}]}
    records = [
        *turn(1, "go", "Done.", "a\n" * 40),
        record("decision", **edit, decision="auto", summary="a.py", facets=[]),
        record("intent", **edit),
        record("outcome", **edit, status="ok", changed_path="/a.py", content=""),
        record("outcome", call=3, tool="bash", status="ok", exit_code=0, seconds=0.1, content="", changes=changes),
    ]
    text = "\n".join(rows_of(screen, [*records, *({**each, "session": "t"} for each in records)], "t"))
    earlier, _, present = text.partition("> go")[2].partition("> go")
    for hint in ("/output 1", "/diff 2", "/diff 3"):
        assert (hint in earlier, hint in present) == (False, True), hint
    for count in ("more lines, 80 B in all", "more rows", "new b.py"):
        assert (count in earlier, count in present) == (True, True), count
    assert rows_of(screen, [record("session_started")], "s") == []
