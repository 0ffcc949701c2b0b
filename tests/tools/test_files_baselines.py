"""Read before overwriting, forms that are kept, several edits at once, and what is said of a text that is not there."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from file_road import EFFECTS, POLICY, Road, failed, sha256
from git_scene import run_git
from rows import all_rows
from sizes import spread
from work import lines_run

from harness import ToolError
from harness.actions import FileChange, JsonValue, PathAccess
from harness.errors import ErrorCode
from harness.files import baselines as bounds
from harness.files.baselines import Baselines
from harness.files.workspace import MAX_PATH_BYTES
from harness.gate.arguments import parse_arguments
from harness.gate.tool import Tool
from harness.messages import ResultStatus, ToolCall
from harness.tools.edit_file import EditFileTool
from harness.tools.edits import Edit, Occurrences, Spliced, Unmatched, splice_all
from harness.tools.near_miss import explain_miss
from harness.tools.write_file import WriteFileTool


def new_road(tmp_path: Path) -> Iterator[Road]:
    made = Road(tmp_path)
    yield made
    made.log.close()


road = pytest.fixture(new_road, name="road")


# Read before overwriting


def test_an_unread_file_is_not_overwritten(road: Road) -> None:
    path = road.unread("a.txt", b"old\n")

    result = road.run("write_file", path="a.txt", content="new\n")

    assert result == failed("Error: Read the file before overwriting it: a.txt. The file exists and was not changed.")
    assert path.read_bytes() == b"old\n"


@all_rows(
    "look",
    [
        pytest.param(lambda road: road.run("read_file", path="a.txt"), id="a read"),
        pytest.param(lambda road: road.run("read_file", path="a.txt", offset=2, limit=1), id="a page of it"),
        pytest.param(lambda road: road.run("read_file", path="./b/../a.txt"), id="a read by another name"),
        pytest.param(lambda road: road.run("edit_file", path="a.txt", old_string="old", new_string="2"), id="an edit"),
        pytest.param(lambda road: road.run("read_file", path="link"), id="a read through a link"),
    ],
    anew={"road": new_road},
)
def test_a_file_that_was_seen_is_overwritten(road: Road, look: Callable[[Road], object]) -> None:
    path = road.unread("a.txt", b"old\nlines\n")
    road.unread("b/c", b"")
    (road.root / "link").symlink_to("a.txt")
    look(road)

    result = road.run("write_file", path="a.txt", content="new\n")

    assert (result.status, path.read_bytes()) == (ResultStatus.OK, b"new\n")


def test_own_writes_are_known(road: Road) -> None:
    results = [road.run("write_file", path="a.txt", content=f"{number}\n").content for number in range(3)]
    results.append(road.run("edit_file", path="a.txt", old_string="2", new_string="3").content.split("\n")[0])
    results.append(road.run("write_file", path="a.txt", content="4\n").content)

    assert results == [
        "Created a.txt (1 line, 2 bytes)",
        "Overwrote a.txt (+1 -1 lines)",
        "Overwrote a.txt (+1 -1 lines)",
        "Edited a.txt: 1 replacement (+1 -1)",
        "Overwrote a.txt (+1 -1 lines)",
    ]


@all_rows(
    ("content", "look", "said"),
    [
        pytest.param(
            b"old\n", {"offset": 9}, "Read the file before overwriting it: a.bin. The file exists and was not changed.",
            id="a page behind the end",
        ),
        pytest.param(
            b"\0\1", {}, "a.bin exists and is a binary file, which cannot be read. The file was not changed. Write to another "
            "path.", id="a binary file",
        ),
    ], anew={"road": new_road})  # fmt: skip
def test_empty_look_does_not_count_as_reading(road: Road, content: bytes, look: dict[str, int], said: str) -> None:
    road.unread("a.bin", content)
    road.run("read_file", path="a.bin", **look)

    assert road.run("write_file", path="a.bin", content="x") == failed(f"Error: {said}")
    assert road.tree() == {"a.bin": content}


def test_a_text_is_not_replaced_everywhere_in_a_file_that_was_not_read(road: Road) -> None:
    road.unread("a.txt", b"old\n")
    calls = [{"old_string": letter, "new_string": "", "replace_all": True} for letter in "old"]

    result = road.run("edit_file", path="a.txt", edits=calls)

    assert result == failed("Error: Read the file before you set replace_all: a.txt. Nothing was written.")
    assert road.tree() == {"a.txt": b"old\n"}


STALE_CALLS = [
    pytest.param("write_file", {"content": "mine\n"}, id="write"),
    pytest.param("edit_file", {"old_string": "two", "new_string": "mine"}, id="edit"),
]


@all_rows(("tool", "arguments"), STALE_CALLS, anew={"road": new_road})
def test_a_file_that_changed_since_it_was_read_is_shown_and_then_known(
    road: Road, tool: str, arguments: dict[str, str]
) -> None:
    path = road.file("a.txt", b"one\ntwo\n")
    path.write_bytes(b"one\ntwo\nthree\n")

    first = road.run(tool, path="a.txt", **arguments)
    unchanged = path.read_bytes()
    second = road.run(tool, path="a.txt", **arguments)

    assert first == failed(
        "Error: The file changed on disk after it was read: a.txt. Nothing was written. What changed, whole; if the call "
        "is still right, send it again:\n@@ -1,2 +1,3 @@\n one\n two\n+three"
    )
    assert unchanged == b"one\ntwo\nthree\n"
    assert second.status is ResultStatus.OK


@pytest.mark.parametrize(("tool", "arguments"), STALE_CALLS)
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        pytest.param(
            b"two\n", b"two\n" + b"line\n" * 60, "Nothing was written. Read it again. What changed begins:", id="much"
        ),
        pytest.param(
            b"two\n",
            b"two\n" + b"x" * 5_000 + b"\n",
            "Nothing was written. Read it again. What changed begins:",
            id="wide",
        ),
        pytest.param(b"two\n" * 100_000, b"two\n", "Nothing was written. Read it again.", id="a large file"),
    ],
)
def test_changes_beyond_the_shown_lines_require_another_read(
    road: Road, tool: str, arguments: dict[str, str], before: bytes, after: bytes, said: str
) -> None:
    path = road.file("a.txt", before)
    path.write_bytes(after)

    results = [road.run(tool, path="a.txt", **arguments) for _ in range(2)]

    start = f"Error: The file changed on disk after it was read: a.txt. {said}"
    assert [result.content[: len(start)] for result in results] == [start, start]
    assert (path.read_bytes(), max(len(result.content) for result in results) <= 3_000) == (after, True)
    road.run("read_file", path="a.txt")
    assert road.run(tool, path="a.txt", **arguments).status is ResultStatus.OK


def test_a_touched_file_with_the_same_bytes_is_not_stale(road: Road) -> None:
    path = road.file("a.txt", b"old\n")
    path.unlink()
    path.write_bytes(b"old\n")

    assert road.run("write_file", path="a.txt", content="new\n").status is ResultStatus.OK


def test_deleted_file_is_created_again(road: Road) -> None:
    road.file("a.txt", b"old\n").unlink()

    assert road.run("write_file", path="a.txt", content="new\n").content == "Created a.txt (1 line, 4 bytes)"


@all_rows("content", ["mine\n", "one\ntwo\nSECRET\n"], ids=["other content", "the very content"])
def test_text_about_a_stale_file_is_judged_as_a_read(tmp_path: Path, content: str) -> None:
    rule = b'[[rule]]\nid = "secret"\ndecision = "deny"\naccess = ["read"]\npath = ["a.txt"]\nreason = "Secret."\n'
    road = Road(tmp_path, policy=POLICY + rule)
    path = road.file("a.txt", b"one\ntwo\n")
    path.write_bytes(b"one\ntwo\nSECRET\n")

    results = [
        road.run("write_file", path="a.txt", content=content),
        road.run("edit_file", path="a.txt", old_string="two", new_string="x"),
    ]
    road.log.close()

    assert [(result.status, "SECRET" in result.content) for result in results] == [(ResultStatus.DENIED, False)] * 2


@all_rows(
    ("content", "permitted"), [("mine\n", False), ("old\n", True)], ids=["a write", "a write that changes nothing"]
)
def test_only_a_write_that_changes_the_file_needs_leave_to_write(tmp_path: Path, content: str, permitted: bool) -> None:
    road = Road(tmp_path, policy=b'version = 1\n[tools]\nread_file = "auto"\nwrite_file = "deny"\ndefault = "deny"\n')
    road.file("a.txt", b"old\n")

    result = road.run("write_file", path="a.txt", content=content)
    road.log.close()

    assert (result.status is ResultStatus.OK) is permitted


def test_a_rule_against_writing_holds_for_an_unread_file_too(tmp_path: Path) -> None:
    rule = b'[[rule]]\nid = "keep"\ndecision = "block"\naccess = ["write"]\npath = ["a.txt"]\nreason = "Keep."\n'
    road = Road(tmp_path, policy=POLICY + rule)
    road.unread("a.txt", b"old\n")

    blocks = road.gate.blocks(road.gate.propose(road.call("write_file", path="a.txt", content="new\n")))
    road.log.close()

    assert blocks


def test_baselines_are_bounded_in_number_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_FILES", 3)
    monkeypatch.setattr(bounds, "MAX_ALL_KEPT_BYTES", 25)
    known = Baselines()
    for name in "abcd":
        known.saw(name, name.encode() * 10)

    found = {name: known.get(name) for name in "abcd"}

    assert {name: baseline and baseline.content for name, baseline in found.items()} == {
        "a": None,
        "b": None,
        "c": b"c" * 10,
        "d": b"d" * 10,
    }
    assert [found[name] is None for name in "abcd"] == [True, False, False, False]


# The change that is logged, and the old bytes that are kept


def test_the_action_names_the_change_by_digest_and_the_old_bytes_are_kept(road: Road) -> None:
    path = road.file("a.txt", b"old\n")
    path.chmod(0o750)

    changes = [
        road.prepare("write_file", path="a.txt", content="new\n").change,
        road.prepare("edit_file", path="a.txt", old_string="old", new_string="new").change,
        road.prepare("write_file", path="b.txt", content="new\n").change,
        road.prepare("write_file", path="a.txt", content="old\n").change,
        road.prepare("edit_file", path="a.txt", old_string="other", new_string="new").change,
        road.prepare("read_file", path="a.txt").change,
    ]
    road.run("write_file", path="a.txt", content="new\n")

    change = FileChange(
        path=str(path), before_sha256=sha256(b"old\n"), after_sha256=sha256(b"new\n"), before_mode=0o750
    )
    made = FileChange(
        path=str(road.root / "b.txt"), before_sha256=None, after_sha256=sha256(b"new\n"), before_mode=None
    )
    assert changes == [change, change, made, None, None, None]
    assert road.images.get(sha256(b"old\n")) == b"old\n"


@all_rows(("tool", "arguments"), STALE_CALLS, anew={"road": new_road})
def test_change_without_a_saved_original_is_refused(
    road: Road, tmp_path: Path, tool: str, arguments: dict[str, str]
) -> None:
    path = road.file("a.txt", b"two\n")
    (tmp_path / "images").write_text("a file where the folder should be")

    result = road.run(tool, path="a.txt", **arguments)

    said = "The old content of a.txt could not be saved for undo (Not a directory). The file was not changed."
    assert result == failed(f"Error: {said}")
    assert (path.read_bytes(), set(road.tree())) == (b"two\n", {"a.txt"})


# Encodings and line ends


@all_rows(
    ("data", "content", "facts"),
    [
        pytest.param(
            b"\xff\xfe" + "a\u4e2d\nb\n".encode("utf-16-le"),
            "     1\ta\u4e2d\n     2\tb",
            "lines 1-2 of 2; 12 bytes; UTF-16LE, BOM, LF",
            id="UTF-16LE",
        ),
        pytest.param(
            b"\xfe\xff" + "a\r\nb".encode("utf-16-be"),
            "     1\ta\n     2\tb",
            "lines 1-2 of 2; 10 bytes; UTF-16BE, BOM, CRLF; no newline at end of file",
            id="UTF-16BE with CRLF",
        ),
        pytest.param(
            b"\xff\xfe" + b"a\0\x00\xd8b\0",
            "     1\ta\\xed\\xa0\\x80b",
            "lines 1-1 of 1; 8 bytes; not valid UTF-16LE: 3 bytes shown as \\xNN, BOM; no newline at end of file",
            id="a lone surrogate",
        ),
    ],
    anew={"road": new_road},
)
def test_utf_16_is_read(road: Road, data: bytes, content: str, facts: str) -> None:
    road.unread("a.txt", data)

    assert road.run("read_file", path="a.txt").content == f"{content}\n[{facts}]"


def test_an_empty_utf_16_file_is_empty(road: Road) -> None:
    road.unread("a.txt", b"\xff\xfe")

    assert road.run("read_file", path="a.txt").content == "[empty file]"


@all_rows(
    ("old", "content", "written", "kept"),
    [
        pytest.param(b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", "; kept: CRLF line endings", id="CRLF"),
        pytest.param(b"a\r\nb\n", "x\ny\n", b"x\ny\n", "", id="mixed line ends give no form"),
        pytest.param(b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n", "", id="content that speaks of CR"),
        pytest.param(b"a\r\nb\r\n", "x", b"x", "", id="content without a line end"),
        pytest.param(b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n", "; kept: BOM", id="a byte-order mark"),
        pytest.param(b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n", "", id="not twice"),
        pytest.param(
            b"\xff\xfe" + "a\r\n".encode("utf-16-le"),
            "é\n",
            b"\xff\xfe" + "é\r\n".encode("utf-16-le"),
            "; kept: CRLF line endings, UTF-16LE with BOM",
            id="UTF-16 and CRLF",
        ),
        pytest.param(b"\0a\r\n", "x\n", b"x\n", "", id="a binary file"),
    ],
    anew={"road": new_road},
)
def test_an_overwritten_file_keeps_its_form(road: Road, old: bytes, content: str, written: bytes, kept: str) -> None:
    road.file("a.txt", old)

    preview = road.prepare("write_file", path="a.txt", content=content).preview.split("\n")[0]
    result = road.run("write_file", path="a.txt", content=content)

    assert road.tree() == {"a.txt": written}
    assert result.content.partition(" lines)")[2] == kept
    assert preview.endswith(kept)


def test_write_that_differs_only_in_line_ends_changes_no_file(road: Road) -> None:
    road.unread("a.txt", b"\xef\xbb\xbfa\r\nb\r\n")

    assert road.run("write_file", path="a.txt", content="a\nb\n").content == "Unchanged: a.txt"


def test_an_edit_of_utf_16_shows_text_and_writes_utf_16(road: Road) -> None:
    road.unread("a.txt", b"\xff\xfe" + "one\r\ntwo\r\n".encode("utf-16-le"))

    result = road.run("edit_file", path="a.txt", old_string="two\n", new_string="zwei\nund\n")

    assert result.content == ("Edited a.txt: 1 replacement (+2 -1)\n@@ -1,2 +1,3 @@\n one\n-two\n+zwei\n+und")
    assert road.tree() == {"a.txt": b"\xff\xfe" + "one\r\nzwei\r\nund\r\n".encode("utf-16-le")}


# Several edits at once


def test_edits_apply_in_order_to_the_result_of_the_previous(road: Road) -> None:
    road.file("f.py", b"a = 1\nb = 2\n")
    edits = [
        {"old_string": "a = 1", "new_string": "a = c"},
        {"old_string": "c", "new_string": "9"},
        {"old_string": " = ", "new_string": "=", "replace_all": True},
    ]

    result = road.run("edit_file", path="f.py", edits=edits)

    assert result.content.split("\n")[0] == "Edited f.py: 4 replacements (+2 -2)"
    assert road.tree() == {"f.py": b"a=9\nb=2\n"}


@all_rows(
    ("second", "message"),
    [
        pytest.param(
            {"old_string": "SELECT", "new_string": "x"},
            "edit 2 of 3: old_string not found in f.py. Nothing in the file is much like it; read the file again. "
            "No edit was applied.",
            id="not found",
        ),
        pytest.param(
            {"old_string": "=", "new_string": "x"},
            "edit 2 of 3: old_string occurs 2 times in f.py (lines 1, 2). Add context, or set replace_all. "
            "No edit was applied.",
            id="twice",
        ),
        pytest.param(
            {"old_string": "a = 0\nvalue = compute(1, 3)", "new_string": "x"},
            "edit 2 of 3: old_string not found in f.py. Nearest text (lines 1-2):\na = 0\nvalue = compute(1, 2)\n"
            "(No edit was applied.)",
            id="near",
        ),
    ],
    anew={"road": new_road},
)
def test_edits_are_made_all_or_none(road: Road, second: dict[str, str], message: str) -> None:
    data = b"a = 1\nvalue = compute(1, 2)\n"
    road.file("f.py", data)
    first, third = {"old_string": "a", "new_string": "A", "replace_all": True}, {"old_string": "1", "new_string": "2"}
    first = {"old_string": "a = 1", "new_string": "a = 0"}

    result = road.run("edit_file", path="f.py", edits=[first, second, third])

    assert result == failed(f"Error: {message}")
    assert road.tree() == {"f.py": data}


ONE = {"old_string": "a", "new_string": "b"}


@all_rows(
    ("arguments", "message"),
    [
        pytest.param({"edits": [ONE], **ONE}, "give either edits or new_string, old_string, not both.", id="both"),
        pytest.param(
            {"edits": [ONE], "replace_all": True}, "give either edits or replace_all, not both.", id="a part of both"
        ),
        pytest.param({}, "old_string is missing.", id="neither"),
        pytest.param({"edits": []}, "edits: must hold at least 1.", id="no edit"),
        pytest.param({"edits": [ONE] * 51}, "edits: holds 51; at most 50 are taken.", id="too many"),
        pytest.param({"edits": ONE}, "edits: must be a list, not an object.", id="no list"),
        pytest.param({"edits": "a"}, "edits: must be a list, not a string.", id="a text"),
        pytest.param({"edits": "[]"}, "edits: must hold at least 1.", id="an empty list in a text"),
        pytest.param({"edits": [ONE, "x"]}, "edits: number 2: must be an object, not a string.", id="no object"),
        pytest.param({"edits": [{"old_string": "a"}]}, "edits: number 1: new_string is missing.", id="half an edit"),
        pytest.param(
            {"edits": [{**ONE, "all": True}]},
            "edits: number 1: unknown field 'all'; the fields are old_string, new_string, replace_all.",
            id="an unknown field",
        ),
        pytest.param(
            {"edits": [{**ONE, "old_string": "a\0"}]},
            "edits: number 1: old_string: contains a NUL character.",
            id="NUL inside",
        ),
        pytest.param(
            {"edits": [ONE, {**ONE, "old_string": ""}]},
            "edit 2 of 2: old_string is empty; use write_file to create or replace a file.",
            id="an empty old text",
        ),
    ],
    anew={"road": new_road},
)
def test_a_list_of_edits_that_makes_no_sense_is_an_argument_error(
    road: Road, arguments: dict[str, object], message: str
) -> None:
    road.file("f.py", b"a")

    with pytest.raises(ToolError) as caught:
        road.prepare("edit_file", path="f.py", **arguments)

    assert str(caught.value) == f"Invalid arguments for edit_file: {message}"


def test_a_lone_surrogate_inside_a_list_is_an_argument_error(road: Road) -> None:
    text = '{"path": "f", "edits": [{"old_string": "\\ud800", "new_string": ""}]}'

    with pytest.raises(ToolError, match="edits: number 1: old_string: contains a lone surrogate"):
        parse_arguments(text, EditFileTool(road.workspace).spec)


# Why a text is not there


DECOMPOSED = unicodedata.normalize("NFD", "café")


ZERO_WIDTH = "U+200B (ZERO WIDTH SPACE)"
ACUTE = "U+00E9 (LATIN SMALL LETTER E WITH ACUTE)"
BOM = "U+FEFF (ZERO WIDTH NO-BREAK SPACE)"
FIGURE, SPACE = "U+2007 (FIGURE SPACE)", "U+0020 (SPACE)"
CYRILLIC, LATIN = "U+0430 (CYRILLIC SMALL LETTER A)", "U+0061 (LATIN SMALL LETTER A)"
CS = "c" * 600
OTHERWISE_WRITTEN = [
    ("x\nzero\u200bwidth\n", "zerowidth", "hidden characters at line 2", ZERO_WIDTH, "none"),
    ("so\u00adft\n", "soft", "hidden characters at line 1", "U+00AD (SOFT HYPHEN)", "none"),
    ("\u200ba b\n\ufeffc\n", "b\nc", "hidden characters at line 2", BOM, "none"),
    ("a\x1b[1mb\n", "a[1mb", "hidden characters at line 1", "U+001B (no name)", "none"),
    ("\u200b" * 300 + f"\nab\u200b{CS}\n", f"ab{CS}", "hidden characters at line 2", ZERO_WIDTH, "none"),
    ("a\u2007b\n", "a b", "quotes, dashes or blanks at line 1", FIGURE, SPACE),
    ("p\u0430ssword\n", "password", "letters that look alike at line 1", CYRILLIC, LATIN),
    ("caf\\u00e9 café\n", "café café", "escapes at line 1", "\\u00e9", ACUTE),
    ("café café\n", "caf\\u00E9 caf\\xe9", "escapes at line 1", ACUTE, "\\u00E9"),
    ('x\ns = "a\\nb"\n', 's = "a\nb"', "escapes at line 2", "\\n", "a line break"),
    ("s = 'a\nb'\n", "s = 'a\\nb'", "escapes at line 1", "a line break", "\\n"),
    ("<p>a &lt; b</p>\n", "<p>a < b</p>", "escapes at line 1", "&lt;", "U+003C (LESS-THAN SIGN)"),
    ("a && b\n", "a &amp;&amp; b", "escapes at line 1", "U+0026 (AMPERSAND)", "&amp;"),
    ('say(\\"hi\\")\n', 'say("hi")', "escapes at line 1", '\\"', "U+0022 (QUOTATION MARK)"),
    (f"{CS}&#39;\u201c\n", f"{CS}'\"", "escapes at line 1", "&#39;", "U+0027 (APOSTROPHE)"),
]


@all_rows(("data", "old", "kind", "theirs", "ours"), OTHERWISE_WRITTEN)
def test_a_text_that_is_written_otherwise_is_explained(data: str, old: str, kind: str, theirs: str, ours: str) -> None:
    said = f"It differs in {kind}: the file has {theirs} where old_string has {ours}."
    assert explain_miss(data.encode(), old, "") == said


def test_a_hidden_character_in_the_old_text_is_named() -> None:
    said = f"It differs in hidden characters at line 1: old_string has {ZERO_WIDTH} where the file has none."
    assert explain_miss(b"zerowidth\n", "zero\u200bwidth", "") == said


@all_rows(
    ("data", "old", "said"),
    [
        pytest.param(
            "x\nsay \u201chello\u201d\n",
            'say "hello"',
            "It differs in quotes, dashes or blanks at line 2: the file has U+201C (LEFT DOUBLE QUOTATION MARK) "
            "where old_string has U+0022 (QUOTATION MARK).",
            id="quotes",
        ),
        pytest.param(
            "a - b\n",
            "a \u2013 b",
            "It differs in quotes, dashes or blanks at line 1: the file has U+002D (HYPHEN-MINUS) "
            "where old_string has U+2013 (EN DASH).",
            id="a dash",
        ),
        pytest.param(
            "a\u00a0b\n",
            "a b",
            "It differs in quotes, dashes or blanks at line 1: the file has U+00A0 (NO-BREAK SPACE) "
            "where old_string has U+0020 (SPACE).",
            id="a blank of another kind",
        ),
        pytest.param(f"x\n{DECOMPOSED} au lait\n", "café au lait", "It differs in Unicode form (NFC/NFD) at line 2.", id="NFD"),
        pytest.param("x\ncafé\n", DECOMPOSED, "It differs in Unicode form (NFC/NFD) at line 2.", id="NFC"),
        pytest.param(
            "a\nb\n  c\n", "b\nc", "It differs only in whitespace at line 3: the file has 2 spaces where old_string has "
            "no indentation.", id="blanks in the second line",
        ),
        pytest.param(
            "def f():\n    a = 1\n    b = 2\n    return a\n",
            "def f():\n    a = 1\n    c = 3\n    return a\n",
            "Nearest text (lines 1-4):\ndef f():\n    a = 1\n    b = 2\n    return a",
            id="one line of four",
        ),
        pytest.param(
            "".join(f"value_{i} = compute(thing, {i})\n" for i in range(500)), "value_377 = computed(thing, 377)",
            "Nearest text (lines 378-378):\nvalue_377 = compute(thing, 377)", id="one line with another word",
        ),
        pytest.param(
            "x = 1\ny = 2\n", "Nothing alike whatsoever", "Nothing in the file is much like it; read the file again.",
            id="nothing like it",
        ),
    ],
)  # fmt: skip
def test_a_miss_is_explained(data: str, old: str, said: str) -> None:
    assert explain_miss(data.encode(), old, "") == said


@all_rows(
    ("data", "old", "new", "said"),
    [
        ("n = 5\n", "n = 4", "5", "new_string is already there (line 1). Nearest text (lines 1-1):\nn = 5"),
        ("a\nx = 15\ny = 5\n", "whatever there was", "5", "new_string is already there (line 3)."),
        ("n = 15\n", "n = 4", "5", "Nearest text (lines 1-1):\nn = 15"),
        (
            "n  = 4\nm = 5\n",
            "n = 4",
            "5",
            "It differs only in whitespace at line 1: there are other blanks inside the line.",
        ),
        ("n = 15\n", "whatever there was", " \n", "Nothing in the file is much like it; read the file again."),
        ("n = 5\n", "whatever there was", "n = 5", "new_string is already there (line 1)."),
    ],
    ids=["short", "short, and nothing like it", "part of a number", "short, with the old text", "blanks", "long"],
)
def test_a_new_text_that_is_there_is_named(data: str, old: str, new: str, said: str) -> None:
    assert explain_miss(data.encode(), old, new) == said


def test_a_replacement_character_for_bytes_is_explained() -> None:
    said = "old_string has U+FFFD where the file has bytes that are no UTF-8: they cannot be named in an edit."
    assert explain_miss(b"caf\xe9\n", "caf\ufffd", "") == said


WORST = [
    pytest.param(lambda: ("a\n" * 5_000_000, "\n".join(["a"] * 2_000) + "\nb"), id="one letter a line"),
    pytest.param(lambda: ("\n" * 9_000_000, "\n" * 5_000 + "b"), id="empty lines"),
    pytest.param(lambda: ("x" * 10_000_000, "x" * 1_000_000 + "y"), id="one line"),
    pytest.param(lambda: ("the quick brown fox\n" * 500_000, "the quick brown cat\n" * 5_000), id="one line again and again"),
    pytest.param(lambda: ("é\u201c \n" * 1_000_000, "e\u201d " * 1_000), id="characters beyond ASCII"),
    pytest.param(lambda: ("a b c d e f g h\n" * 600_000, "h g f e d c b a"), id="short words everywhere"),
    pytest.param(lambda: ("a" + "\u0301" * 40_000 + "\u0316" * 40_000, "not there"), id="combining characters"),
    pytest.param(lambda: ("abc\n", "a" + "\u0301" * 40_000 + "\u0316" * 40_000), id="combining characters in the old text"),
    pytest.param(lambda: ("a" * 99 + "\n", "b" + ("a" + "\u0301" * 15 + "\u0316" * 15) * 40_000), id="as many as are normal"),
    pytest.param(lambda: ("\uf900\u0344" * 1_700_000, "\u0344q" * 1_000), id="characters that come apart"),
    pytest.param(lambda: ("a b " * 2_500_000, "a a b b " * 5_000 + "q"), id="two words in another order"),
    pytest.param(lambda: ("a\nb\n" * 2_500_000, "a\na\nb\nb\n" * 1_000 + "q"), id="two lines in another order"),
    pytest.param(
        lambda: ("\n".join("".join(" \t"[n >> bit & 1] for bit in range(18)) + "a" for n in range(250_000)),
        "\n".join(["a"] * 200) + "\nb"), id="one word, every indentation",
    ),
    pytest.param(lambda: ("x" * 10_000_000, "\\x41" * 370_000 + "k"), id="escapes"),
    pytest.param(lambda: ("\\n" * 5_000_000, "\\n" * 500_000 + "k"), id="escapes in the file"),
    pytest.param(lambda: ("\u200b" * 499_000 + "ab", "\u200c" * 499_000 + "ab"), id="hidden characters everywhere"),
    pytest.param(lambda: ("&lt;" * 240_000, "<" * 240_000), id="entities instead of characters"),
]  # fmt: skip


@all_rows("made", spread("BOUNDS", WORST, 4))
def test_explaining_a_miss_is_bounded_for_any_file(made: Callable[[], tuple[str, str]]) -> None:
    """In lines of Python; bench/growth.py times what the calls in them take."""
    text, old = made()
    data = text.encode()
    said: list[str] = []

    lines = lines_run(lambda: said.append(explain_miss(data, old, "")))

    assert said[0]
    assert lines < 12_000_000  # some half a second; twice as many as any of them needs


LARGE = 10 * 1024 * 1024
COSTLY = [
    pytest.param(lambda: b"\r\n" * (LARGE // 2), [("\n", " ", True)], Spliced, id="every line end of a file with CRLF"),
    pytest.param(
        lambda: b"\r\n" * (LARGE // 2 - 1) + b"\n",
        [("\n\n\n", "x", False)],
        Unmatched,
        id="many places in a file with mixed ends",
    ),
    pytest.param(lambda: b"\r\n" * (LARGE // 2 - 1) + b"\n", [("\n", " ", True)], Unmatched, id="all of them"),
    pytest.param(
        lambda: b"q\nzzz\r\n" + b"\r\n" * (LARGE // 2 - 4),
        [("\nzzz\n", "\nzzy\n", False), ("\nzzy\n", "\nzzz\n", False)] * 25,
        Unmatched,
        id="fifty edits with mixed ends",
    ),
    pytest.param(
        lambda: b"a" * LARGE, [("a" * 90 + "b", "c", False)], Unmatched, id="a text that nearly occurs everywhere"
    ),
    pytest.param(
        lambda: b"a" * LARGE, [("a", "b", True), ("b", "a", True)] * 25, Unmatched, id="fifty edits of every letter"
    ),
    pytest.param(
        lambda: b"ab" * (LARGE // 2 - 1) + b"x",
        [("x", "y", False), ("y", "x", False)] * 5,
        Unmatched,
        id="back and forth",
    ),
]


@all_rows(("made", "edits", "kind"), spread("BOUNDS", COSTLY, 3))
def test_finding_edits_is_bounded_for_any_file(
    made: Callable[[], bytes], edits: list[tuple[str, str, bool]], kind: type[Spliced | Unmatched]
) -> None:
    every = [
        Edit(old=old, new=new, occurrences=Occurrences.ALL if everywhere else Occurrences.ONE)
        for old, new, everywhere in edits
    ]
    data = made()
    results: list[Spliced | Unmatched] = []

    lines = lines_run(lambda: results.append(splice_all(data, every, most_bytes=LARGE)))

    (found,) = results
    assert isinstance(found, kind)
    assert not isinstance(found, Unmatched) or len(found.reason) < 500
    assert lines < 12_000_000  # about half a second; twice as many as any of them needs


# A file that is not there


def test_the_same_name_elsewhere_is_named(road: Road) -> None:
    for name in (
        ".ssh/parser.py",
        "lib/.hidden/parser.py",
        "lib/deep/parser.py",
        "lib/parser.py",
        "gone/parser.py",
        "lib/x.py",
    ):
        road.unread(name, b"")
    run_git(road.root, "init", "-q")
    run_git(road.root, "add", "-A")
    (road.root / "gone" / "parser.py").unlink()
    road.unread("build/parser.py", b"")

    result = road.run("read_file", path="src/parser.py")

    said = "File not found: src/parser.py. Its folder does not exist. Did you mean: lib/parser.py, lib/deep/parser.py?"
    assert result == failed(f"Error: {said}")


def test_outside_a_repository_the_same_name_elsewhere_is_named(road: Road) -> None:
    for name in (".hidden/parser.py", "a/.ssh/parser.py", "z/deep/parser.py", "z/parser.py", "a/x.py"):
        road.unread(name, b"")
    (road.root / "link").symlink_to(road.root / "z")

    result = road.run("read_file", path="src/parser.py")

    said = "File not found: src/parser.py. Its folder does not exist. Did you mean: z/parser.py, z/deep/parser.py?"
    assert result == failed(f"Error: {said}")


@all_rows("path", ["bad\\xff.txt", "bad\\udcff.txt"], anew={"road": new_road})
def test_a_name_that_is_not_utf_8_is_read_edited_and_written(road: Road, path: str) -> None:
    file = road.root / os.fsdecode(b"bad\xff.txt")
    file.write_bytes(b"one\n")

    missing = road.run("read_file", path="bad.txt")
    read = road.run("read_file", path=path)
    edited = road.run("edit_file", path=path, old_string="one", new_string="two")
    written = road.run("write_file", path=path, content="three\n")

    assert missing == failed("Error: File not found: bad.txt. Did you mean: bad\\udcff.txt?")
    assert read.content.startswith("     1\tone\n")
    assert edited.content.startswith("Edited bad\\udcff.txt: 1 replacement")
    assert written.content.startswith("Overwrote bad\\udcff.txt")
    assert (file.read_bytes(), os.listdir(road.root)) == (b"three\n", [file.name])
    records = [json.loads(line) for line in (road.root.parent / "log.jsonl").read_bytes().decode().splitlines()]
    assert {record["changed_path"] for record in records if record.get("changed_path")} == {str(file)}


@all_rows(
    ("path", "names"),
    [
        pytest.param("a\\xff", ("a\\xff", os.fsdecode(b"a\xff")), id="the name as it is written comes first"),
        pytest.param("caf\\xc3\\xa9", ("café",), id="bytes that are UTF-8 are the character that rules name"),
        pytest.param("\\x41", ("A",), id="other escapes are none"),
    ],
    anew={"road": new_road},
)
def test_escaped_name_selects_one_file(road: Road, path: str, names: tuple[str, ...]) -> None:
    for name in names:
        (road.root / name).write_bytes(b"")

    (facet,) = road.prepare("read_file", path=path).facets
    assert isinstance(facet, PathAccess)
    assert facet.names == (names[0] if path != "\\x41" else path,)


def test_names_in_the_same_folder_are_suggested_first(road: Road) -> None:
    for name in ("src/main.py", "other/mian.py"):
        road.unread(name, b"")
    run_git(road.root, "init", "-q")
    run_git(road.root, "add", "-A")

    result = road.run("edit_file", path="src/mian.py", old_string="a", new_string="b")

    assert result == failed("Error: File not found: src/mian.py. Did you mean: src/main.py, other/mian.py?")


# Codes


@all_rows(
    ("tool", "arguments", "code"),
    [
        ("read_file", {"path": "none"}, ErrorCode.NOT_FOUND),
        ("read_file", {"path": "."}, ErrorCode.IS_FOLDER),
        ("read_file", {"path": "a.txt/x"}, ErrorCode.NOT_FOLDER),
        ("read_file", {"path": "a.txt", "offset": 9}, ErrorCode.RANGE),
        ("read_file", {"path": "a.bin"}, ErrorCode.BINARY),
        ("read_file", {"path": "/dev/null"}, ErrorCode.NOT_REGULAR),
        ("read_file", {"path": "loop"}, ErrorCode.LOOP),
        ("read_file", {"path": "loop/x"}, ErrorCode.LOOP),
        ("read_file", {"path": "x" * 300}, ErrorCode.NAME),
        ("write_file", {"path": "unread", "content": ""}, ErrorCode.NOT_READ),
        ("write_file", {"path": "stale", "content": ""}, ErrorCode.STALE),
        ("write_file", {"path": "large", "content": ""}, ErrorCode.TOO_LARGE),
        ("write_file", {"path": ".", "content": ""}, ErrorCode.IS_FOLDER),
        ("edit_file", {"path": "a.txt", "old_string": "zzz", "new_string": ""}, ErrorCode.NO_MATCH),
        ("edit_file", {"path": "a.txt", "old_string": "a", "new_string": "b"}, ErrorCode.NOT_UNIQUE),
        ("edit_file", {"path": "bytes", "old_string": "b", "new_string": "é"}, ErrorCode.ENCODING),
        ("edit_file", {"path": "none", "old_string": "b", "new_string": ""}, ErrorCode.NOT_FOUND),
    ],
    ids=lambda value: value.value if isinstance(value, ErrorCode) else "",
    anew={"road": new_road},
)
def test_errors_have_codes(road: Road, tool: str, arguments: dict[str, JsonValue], code: ErrorCode) -> None:
    road.file("a.txt", b"a a\n")
    road.file("a.bin", b"\0")
    road.file("bytes", b"\xff b")
    road.unread("unread", b"x")
    road.file("stale", b"1").write_bytes(b"2")
    with (road.root / "large").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    (road.root / "loop").symlink_to("loop")
    by_name: dict[str, Tool] = {
        "read_file": road.reader,
        "write_file": WriteFileTool(road.workspace, baselines=road.baselines),
        "edit_file": EditFileTool(road.workspace, baselines=road.baselines),
    }

    with pytest.raises(ToolError) as caught:
        by_name[tool].run(by_name[tool].prepare(ToolCall(id="c", name=tool, arguments=""), arguments), EFFECTS)

    assert caught.value.code is code


FILE_TOOLS = ("read_file", "write_file", "edit_file")


@all_rows(("tool", "size"), product(FILE_TOOLS, (1 << 43, 10 * 1024 * 1024 + 1)), anew={"road": new_road})
def test_huge_file_is_refused_or_paged_immediately(road: Road, tool: str, size: int) -> None:
    """A file with a hole may be larger than any disk: reading it would end in no time that anybody waits."""
    with (road.root / "huge").open("wb") as file:
        file.write(b"line\n" * 4_000)
        file.truncate(size)
    more = {"read_file": {}, "write_file": {"content": "x"}, "edit_file": {"old_string": "a", "new_string": "b"}}

    result = road.run(tool, path="huge", **more[tool])

    said = f"Error: File too large: huge has {size:,} bytes; at most 10,485,760 are taken."
    assert result.content == said or (tool == "read_file" and "continue with offset=2001" in result.content)


@all_rows(
    ("tool", "path"), product(FILE_TOOLS, ("x" * 5_000, "x/" * 2_500, "\u4e2d/" * 1_600)), anew={"road": new_road}
)
def test_a_path_that_is_far_too_long_is_refused(road: Road, tool: str, path: str) -> None:
    more = {"read_file": {}, "write_file": {"content": "x"}, "edit_file": {"old_string": "a", "new_string": "b"}}

    try:
        said = road.run(tool, path=path, **more[tool]).content
    except ToolError as error:
        said = str(error)

    assert ("too long" in said, len(said) < MAX_PATH_BYTES) == (True, True)
    assert road.tree() == {}
