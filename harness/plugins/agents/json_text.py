"""JSON text, edited in place: text that an edit does not concern keeps its bytes, also comments.

INVARIANT: if an edit adds members and another edit removes them, the text is the same as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from harness.actions import JsonValue
from harness.record import Record

_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = re.compile(rf"(?P<string>{_STRING})|//[^\n\r]*+|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(rf"\s*+({_STRING}|[\[\]{{}},:]|[^\s,:\[\]{{}}\"]++)", re.DOTALL)
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def without_comments(text: str) -> str:
    """Return the text with spaces in place of `//` and `/* */` comments. All other characters keep their positions."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match["string"] else re.sub(r"[^\n\r]", " ", match[0])

    return _COMMENT.sub(blank, text)


def edited(text: str, old: JsonValue, new: JsonValue) -> str:
    """Return `text` with the value `new` instead of its value `old`. Its comments stay."""
    plain = without_comments(text)
    root, _ = _element(plain, 0)
    for edit in sorted(_Editor(text, plain).edits(root, old, new), key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


class _Element(Record):
    """A value of the text, with its key if it is a member of an object."""

    start: int
    """Offset of the key, or else of the value."""
    at: int
    """Offset of the value."""
    end: int
    key: str = ""
    inner: Sequence[_Element] = ()
    """Members of an object, or items of a list."""


class _Edit(Record):
    """A span of the text, and its replacement."""

    start: int
    end: int
    new: str


def _element(plain: str, at: int) -> tuple[_Element, int]:
    """Return the value after the offset `at` of a valid text, and the offset of its end."""
    start, word, end = _token(plain, at)
    if word not in "{[":
        return _Element(start=start, at=start, end=end), end
    inner: list[_Element] = []
    while True:
        key_start, key, after = _token(plain, end)
        if key in "]}":
            return _Element(start=start, at=start, end=after, inner=inner), after
        if key == ",":
            end = after
        elif word == "{":
            value, end = _element(plain, _token(plain, after)[2])
            inner.append(_Element(start=key_start, at=value.at, end=end, key=str(json.loads(key)), inner=value.inner))
        else:
            value, end = _element(plain, end)
            inner.append(value)


def _token(plain: str, at: int) -> tuple[int, str, int]:
    match = _TOKEN.match(plain, at)
    if match is None:
        raise ValueError(f"no token of JSON at offset {at}")
    return match.start(1), match[1], match.end(1)


class _Editor:
    """Compares two values, and yields the edits of one text. `plain` is the text without its comments."""

    def __init__(self, text: str, plain: str) -> None:
        self._text, self._plain = text, plain
        match = _INDENT.search(text)
        self._unit = match[1] if match else "  "
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._is_one_line = "\n" not in text.strip() and '"' in text

    def edits(self, element: _Element, old: JsonValue, new: JsonValue) -> Iterator[_Edit]:
        if isinstance(old, dict) and isinstance(new, dict):
            yield from self._object_edits(element, old, new)
        elif isinstance(old, list) and isinstance(new, list):
            yield from self._list_edits(element, old, new)
        elif _text_of(old) != _text_of(new):
            yield _Edit(start=element.at, end=element.end, new=self._written(new, self._margin(element.start)))

    def _object_edits(self, element: _Element, old: dict[str, JsonValue], new: dict[str, JsonValue]) -> Iterator[_Edit]:
        for member in element.inner:
            if member.key in new:
                yield from self.edits(member, old[member.key], new[member.key])
        margin = self._inner_margin(element)
        added = [
            f"{json.dumps(key, ensure_ascii=False)}: {self._written(value, margin)}"
            for key, value in new.items()
            if key not in old
        ]
        removed = [n for n, member in enumerate(element.inner) if member.key not in new]
        yield from self._removed(element, removed)
        yield from self._appended(element, removed, added)

    def _list_edits(self, element: _Element, old: list[JsonValue], new: list[JsonValue]) -> Iterator[_Edit]:
        """Yield the edits of the items between the equal items at the start and those at the end."""
        margin = self._inner_margin(element)
        before = _equal_items(old, new)
        equal_end = min(_equal_items(old[::-1], new[::-1]), len(old) - before, len(new) - before)
        end, new_end = len(old) - equal_end, len(new) - equal_end
        pair_end = min(end, new_end)
        for n in range(before, pair_end):
            yield from self.edits(element.inner[n], old[n], new[n])
        removed = range(pair_end, end)
        texts = [self._written(value, margin) for value in new[pair_end:new_end]]
        if equal_end and texts:
            at = element.inner[end].start
            yield _Edit(start=at, end=at, new="".join(f"{text},{self._gap(margin)}" for text in texts))
            texts = []
        yield from self._removed(element, removed)
        yield from self._appended(element, removed, texts)

    def _removed(self, element: _Element, removed: Sequence[int]) -> Iterator[_Edit]:
        """Yield the edits that remove the inner elements with these numbers."""
        inner = element.inner
        remaining = [n for n in range(len(inner)) if n not in removed]
        last_remaining = remaining[-1] if remaining else -1
        for n in removed:
            if n < last_remaining:
                comma = self._comma(inner[n].end)
                yield _Edit(start=inner[n].start, end=self._after_space(comma + 1), new="")
        if last_remaining + 1 == len(inner):
            return
        end, trailing_comma = inner[-1].end, self._comma(inner[-1].end)
        start = self._before_space(inner[last_remaining + 1].start)
        if trailing_comma >= 0:
            end = trailing_comma + 1
        elif remaining:
            comma = self._comma(inner[last_remaining].end)
            if comma + 1 == start:
                start = comma
            else:
                yield _Edit(start=comma, end=comma + 1, new="")
        yield _Edit(start=start, end=end, new="")

    def _appended(self, element: _Element, removed: Sequence[int], added: Sequence[str]) -> Iterator[_Edit]:
        """Yield the edits that add texts after the last inner element."""
        if not added:
            return
        gap, at = self._gap(self._inner_margin(element)), self._before_space(element.end - 1)
        new = ",".join(f"{gap}{text}" for text in added)
        remaining = [inner for n, inner in enumerate(element.inner) if n not in removed]
        if element.inner and self._comma(element.inner[-1].end) >= 0:
            new += ","
        elif remaining and remaining[-1].end == at:
            new = f",{new}"
        elif remaining:
            yield _Edit(start=remaining[-1].end, end=remaining[-1].end, new=",")
        yield _Edit(start=at, end=at, new=new)

    def _comma(self, at: int) -> int:
        """Return the offset of the comma after an element that ends at `at`; -1 if another token follows."""
        start, word, _ = _token(self._plain, at)
        return start if word == "," else -1

    def _after_space(self, at: int) -> int:
        return len(self._text) - len(self._text[at:].lstrip())

    def _before_space(self, at: int) -> int:
        return len(self._text[:at].rstrip())

    def _margin(self, at: int) -> str:
        """Return the indentation of the line that contains the offset `at`."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _inner_margin(self, element: _Element) -> str:
        """Return the indentation of the inner elements: the existing one, or one step more than the element's."""
        if element.inner:
            first = element.inner[0].start
            margin = self._margin(first)
            if self._text[:first].endswith(f"\n{margin}"):
                return margin
        return self._margin(element.at) + self._unit

    def _gap(self, margin: str) -> str:
        return " " if self._is_one_line else f"{self._line_end}{margin}"

    def _written(self, value: JsonValue, margin: str) -> str:
        if self._is_one_line:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return f"{self._line_end}{margin}".join(lines)


def _equal_items(items: Sequence[JsonValue], other: Sequence[JsonValue]) -> int:
    """Return the number of equal items at the start of both lists."""
    pairs = zip(items, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: _text_of(pair[0]) == _text_of(pair[1]), pairs))


def _text_of(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
