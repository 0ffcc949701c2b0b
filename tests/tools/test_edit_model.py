"""Edits against a slow and simple model of bytes: whatever the file, all that is not in a replaced span stays as it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from file_road import Road
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from rows import all_rows
from sizes import examples

from harness.files.encoding import Encoding, adapted, read_text
from harness.messages import ResultStatus
from harness.tools.edits import Edit, Occurrences, Spliced, Unmatched, splice_all

LIMIT = 10_000

# Few different pieces, so that texts meet; line ends of all kinds, and bytes that are no UTF-8.
PIECES = st.sampled_from(
    [b"a", b"b", b"ab", b"\n", b"\r\n", b"\r", b"\t", "é".encode(), b"\xff", b" ", b"\xef\xbb\xbf"]
)
DATA = st.lists(PIECES, max_size=14).map(b"".join)
TEXT = st.text(alphabet="ab\n\r\té ", max_size=4) | st.sampled_from(
    ["a\nb", "\na", "a\r\n", "b\n", "\n", "\r\n", "a\n\nb"]
)
EDITS = st.builds(Edit, old=TEXT.filter(bool), new=TEXT, occurrences=st.sampled_from(Occurrences))


def with_lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def cuts_an_end(data: bytes, place: int) -> bool:
    return data[place - 1 : place] == b"\r" and data[place : place + 1] == b"\n" and place > 0


def hits(data: bytes, old: bytes) -> tuple[list[tuple[int, int]], bool]:
    """Return every span that `old` names, and whether exactly: tried at every pair of places."""
    pairs = [(start, end) for start in range(len(data)) for end in range(start + 1, len(data) + 1)]
    exact = [(start, end) for start, end in pairs if data[start:end] == old]
    if exact and not (old.startswith(b"\n") and b"\r" not in old and b"\r\n" in data):
        return exact, True
    loose = [
        (start, end)
        for start, end in pairs
        if with_lf(data[start:end]) == with_lf(old) and not cuts_an_end(data, start) and not cuts_an_end(data, end)
    ]
    return loose, False


def piece(data: bytes, start: int, edit: Edit, *, exact: bool) -> bytes:
    """Return what stands in the place of a span: its line ends are those of the line where it begins, or the one above."""
    new = edit.new.encode()
    if exact and (b"\n" not in data or only_ends_differ(edit)):
        return new
    after = [place for place in range(start, len(data)) if data[place : place + 1] == b"\n"]
    before = [place for place in range(start) if data[place : place + 1] == b"\n"]
    place = after[0] if after else before[-1] if before else 0
    if place > 0 and data[place - 1 : place] == b"\r":
        return with_lf(new).replace(b"\n", b"\r\n")
    return with_lf(new)


def only_ends_differ(edit: Edit) -> bool:
    return lines_of(edit.old) == lines_of(edit.new)


def lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def model(data: bytes, edit: Edit) -> bytes | None:
    """Return the edited bytes, or None where the edit must be refused."""
    try:
        data.decode()
    except UnicodeDecodeError:
        if not edit.new.isascii():
            return None
    spans, exact = hits(data, edit.old.encode())
    if not spans or (edit.occurrences is Occurrences.ONE and len(spans) > 1):
        return None
    result, done = b"", 0
    for start, end in spans:
        if start >= done:
            result += data[done:start] + piece(data, start, edit, exact=exact)
            done = end
    result += data[done:]
    return None if result == data else result


def model_of_all(data: bytes, edits: Sequence[Edit]) -> bytes | None:
    result: bytes | None = data
    for edit in edits:
        if result is not None:
            result = model(result, edit)
    return None if result == data else result


@settings(max_examples=examples(600), deadline=None)
@given(data=DATA, edits=st.lists(EDITS, min_size=1, max_size=3))
def test_edits_agree_with_the_model(data: bytes, edits: list[Edit]) -> None:
    expected = model_of_all(data, edits)

    found = splice_all(data, edits, most_bytes=LIMIT)

    event("refused" if expected is None else "applied")
    assert (found.content if isinstance(found, Spliced) else None) == expected


@settings(max_examples=examples(300), deadline=None)
@given(before=DATA, old=TEXT.filter(bool), after=DATA, new=TEXT)
def test_an_edit_that_is_in_the_file_is_found(before: bytes, old: str, after: bytes, new: str) -> None:
    """The random texts above seldom meet: here the file is made around the text."""
    data = before + old.encode() + after
    edit = Edit(old=old, new=new, occurrences=Occurrences.ALL)
    expected = model(data, edit)

    found = splice_all(data, [edit], most_bytes=LIMIT)

    assert (found.content if isinstance(found, Spliced) else None) == expected
    if isinstance(found, Unmatched):
        assert "not found" not in found.reason


@all_rows(
    ("data", "old", "new", "after"),
    [
        pytest.param(b"x\r\nfoo\r\n", "\nfoo", "\nbar", b"x\r\nbar\r\n", id="a text that begins with a line end"),
        pytest.param(b"x\r\nfoo\r\n", "foo\n", "bar\n", b"x\r\nbar\r\n", id="a text that ends with one"),
        pytest.param(b"x\ny\r\nz", "z", "z\nw", b"x\ny\r\nz\r\nw", id="behind the last line end, that one counts"),
        pytest.param(b"a\rb\rc", "b", "x\ny", b"a\rx\ny\rc", id="a lone CR is no line end"),
        pytest.param(b"a\r\n", "\n", "\r\r\n", b"a\r\r\n", id="a CR in front of CR LF is not lost"),
        pytest.param(b"a\nb\n", "b", "b\r\nc", b"a\nb\nc\n", id="CR LF in the new text is LF in a file that has LF"),
        pytest.param(b"a\nb\n", "a\nb", "a\r\nc", b"a\nc\n", id="also where the old text has LF"),
        pytest.param(
            b"a\r\nb\r\n", "a\r\nb", "a\nc\nd", b"a\r\nc\r\nd\r\n", id="LF is CR LF where the old text has that"
        ),
        pytest.param(
            b"a\r\nb\r\n", "b", "c\r\nd\ne", b"a\r\nc\r\nd\r\ne\r\n", id="a new text that mixes them follows too"
        ),
        pytest.param(b"a\nb\n", "a\nb", "a\r\nb", b"a\r\nb\n", id="an edit about line ends alone is made as it says"),
        pytest.param(b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n", id="both ways"),
        pytest.param(b"one line", "one", "1\n2", b"1\n2 line", id="no line end at all"),
    ],
)
def test_line_ends_follow_the_file(data: bytes, old: str, new: str, after: bytes) -> None:
    found = splice_all(data, [Edit(old=old, new=new, occurrences=Occurrences.ONE)], most_bytes=LIMIT)

    assert found == Spliced(content=after, replacements=1)


# The same through the tool and the disk, in every encoding

CHARACTERS = st.lists(
    st.sampled_from([*"ab \tz\né\u4e2d\U0001f600\u2028\ufeff", "\r\n", "\r\n", "\r"]), max_size=30
).map("".join)


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    before=CHARACTERS,
    after=CHARACTERS,
    new=st.text(alphabet="xyé\U0001f600 ", max_size=6),
    encoding=st.sampled_from(Encoding),
    marked=st.booleans(),
)
def test_all_that_is_outside_the_edit_stays_byte_for_byte(
    before: str, after: str, new: str, encoding: Encoding, marked: bool
) -> None:
    mark = encoding.mark if marked or encoding is not Encoding.UTF_8 else b""
    left, right = (mark + before.encode(encoding.value), after.encode(encoding.value))
    with TemporaryDirectory() as folder:
        road = Road(Path(os.path.realpath(folder)))
        path = road.file("f.txt", left + "<old>".encode(encoding.value) + right)

        result = road.run("edit_file", path="f.txt", old_string="<old>", new_string=new)
        road.log.close()

        assert result.status is ResultStatus.OK, result.content
        assert path.read_bytes() == left + new.encode(encoding.value) + right
        assert set(road.tree()) == {"f.txt"}


@given(data=st.binary(max_size=40).map(lambda data: b"\xff\xfe" + data) | st.binary(max_size=40))
def test_text_is_read_and_written_back_exactly_or_not_at_all(data: bytes) -> None:
    text = read_text(data)

    assume(text is not None)
    assert text is not None
    assert text.encoded(text.body) == data


@given(old=CHARACTERS, content=CHARACTERS, encoding=st.sampled_from(Encoding), marked=st.booleans())
def test_an_overwritten_file_keeps_its_form_and_gets_the_content(
    old: str, content: str, encoding: Encoding, marked: bool
) -> None:
    mark = encoding.mark if marked or encoding is not Encoding.UTF_8 else b""

    form = adapted(content.encode(), mark + old.encode(encoding.value))

    keeps_mark = bool(mark) or (encoding is Encoding.UTF_8 and old.startswith("\ufeff"))
    body = form.data.decode(encoding.value)
    assert not keeps_mark or body.startswith("\ufeff")
    lines = old.removeprefix("\ufeff")
    uniform = "\r\n" in lines and "\n" not in lines.replace("\r\n", "")
    wanted = content.replace("\n", "\r\n") if uniform and "\r" not in content else content
    assert body.removeprefix("\ufeff") == wanted.removeprefix("\ufeff")
