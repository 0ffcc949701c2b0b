"""Reads what `apply_patch` takes: a text that changes several files, and the shell commands that hold one.

INVARIANT: every file that Codex or opencode would touch is named. They, and their versions, read a few lines differently (one
that only looks like a header in the middle of an update, a blank in front of a path, a `~`); such a text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from harness.errors import ToolError
from harness.record import Record
from harness.text.visible import visible_line

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE = "*** Add File: ", "*** Delete File: ", "*** Update File: "
_MOVE, _END_OF_FILE, _ENVIRONMENT = "*** Move to: ", "*** End of File", "*** Environment ID:"
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Characters that Codex strips (Unicode's White_Space); Python would strip four separators more, and find other
names.
"""
_HERE_MARKS = ("<<EOF", "<<'EOF'", '<<"EOF"')


class PatchKind(Enum):
    """The kind of change to a file."""

    ADD = "add"
    """It is written anew, also over one that is there."""
    DELETE = "delete"
    UPDATE = "update"
    """Lines of it are replaced; it may get another name."""


class Hunk(Record):
    """Lines that take the place of others."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    anchor: str | None = None
    """A line above the old ones."""
    at_end: bool = False
    """The old ones are the last of the file."""


class FilePatch(Record):
    """The change that a patch makes to one file."""

    kind: PatchKind
    path: str
    moved_to: str = ""
    """The new name; empty if the file keeps its own."""
    content: str = ""
    """Content of a file that is added."""
    hunks: tuple[Hunk, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The paths that it touches, as written: that of the file, and the new one where it is moved."""
        return (self.path, self.moved_to) if self.moved_to else (self.path,)

    @property
    def removes(self) -> bool:
        """Whether the file goes: a link is removed then, not what it leads to."""
        return self.kind is PatchKind.DELETE

    def after(self, before: bytes | None) -> bytes | None:
        """Return the predicted content of the file, moved or not; `None` if it is deleted, or if the content cannot
        be predicted.

        `before` is the present content. Codex also accepts lines that are nearly the same: that is not predicted.
        """
        if self.kind is PatchKind.ADD:
            return self.content.encode()
        if self.kind is PatchKind.DELETE or before is None or b"\r" in before:
            return None
        try:
            text = _replaced(before.decode(), self.hunks)
        except UnicodeDecodeError:
            return None
        return None if text is None else text.encode()


def read_patch(text: str) -> tuple[FilePatch, ...]:
    """Return the changes of a patch, in its order. Raises ToolError for a text that is not plainly understood."""
    lines = _Lines(_within_marks(_lines_of(text)))
    patches = []
    while not lines.at_end:
        patches.append(_file_patch(lines))
    if not patches:
        raise ToolError("The patch is not understood: it names no file.")
    return tuple(patches)


def split_patch(text: str) -> tuple[str, ...]:
    """Return a patch as several, each of one file, in its order. Raises ToolError as `read_patch`."""
    all_lines = _within_marks(_lines_of(text))
    lines = _Lines(all_lines)
    parts = []
    while not lines.at_end:
        begin = lines.position
        _file_patch(lines)
        parts.append("\n".join((_BEGIN, *all_lines[begin : lines.position], _END)))
    return tuple(parts)


class _Lines:
    """The lines of a patch between its marks, one after another."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._next = 0

    @property
    def position(self) -> int:
        return self._next

    @property
    def at_end(self) -> bool:
        return self._next == len(self._lines)

    @property
    def next(self) -> str:
        """The line that comes; empty at the end."""
        return "" if self.at_end else self._lines[self._next]

    def take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    def unread(self, reason: str) -> ToolError:
        """Return the error for the line that comes."""
        line = visible_line(self.next, 200)
        return ToolError(f"The patch is not understood: line {self._next + 2}: {reason}: {line}")


def _lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.strip(_SPACE).split("\n")]


def _within_marks(lines: list[str]) -> list[str]:
    """Return the lines between the marks of a patch. Codex takes one that is still in its here-document, too."""
    if not _is_marked(lines) and len(lines) >= 4 and lines[0] in _HERE_MARKS and lines[-1].endswith("EOF"):
        lines = lines[1:-1]
    if not _is_marked(lines):
        raise ToolError(f"The patch is not understood: it does not begin with `{_BEGIN}` and end with `{_END}`.")
    return lines[1:-1]


def _is_marked(lines: Sequence[str]) -> bool:
    return len(lines) >= 2 and lines[0].strip(_SPACE) == _BEGIN and lines[-1].strip(_SPACE) == _END


def _file_patch(lines: _Lines) -> FilePatch:
    header = lines.next.strip(_SPACE)
    if header.startswith(_ENVIRONMENT):
        raise lines.unread("a file on another machine cannot be judged here")
    if header.startswith(_ADD):
        path = _path(lines, header.removeprefix(_ADD))
        content = []
        while lines.next.startswith("+"):
            content.append(lines.take()[1:] + "\n")
        return FilePatch(kind=PatchKind.ADD, path=path, content="".join(content))
    if header.startswith(_DELETE):
        return FilePatch(kind=PatchKind.DELETE, path=_path(lines, header.removeprefix(_DELETE)))
    if header.startswith(_UPDATE):
        return _update(lines, _path(lines, header.removeprefix(_UPDATE)))
    raise lines.unread("no header of a file")


def _path(lines: _Lines, path: str) -> str:
    """Return the path of a header, which is taken."""
    if not path.strip(_SPACE):
        raise lines.unread("no path")
    if path != path.strip(_SPACE + "\ufeff"):
        raise lines.unread("a blank around a path, which not every reader takes for a part of it")
    if path == "~" or path.startswith("~/"):
        raise lines.unread("the home folder by `~`, which not every version takes for it; name it whole")
    lines.take()
    return path


def _update(lines: _Lines, path: str) -> FilePatch:
    moved_to = ""
    if lines.next.startswith(_MOVE):
        moved_to = _path(lines, lines.next.removeprefix(_MOVE))
    hunks: list[Hunk] = []
    while not lines.at_end and not lines.next.startswith("*"):
        if hunks and not lines.next.strip(_SPACE):
            lines.take()  # behind the mark of a file's end; elsewhere it is a line of a change
        else:
            hunks.append(_hunk(lines, first=not hunks))
    if not hunks:
        raise lines.unread(f"nothing is changed in {visible_line(path, 200)}")
    return FilePatch(kind=PatchKind.UPDATE, path=path, moved_to=moved_to, hunks=tuple(hunks))


def _hunk(lines: _Lines, *, first: bool) -> Hunk:
    context = None
    if lines.next == "@@" or lines.next.startswith("@@ "):
        head = lines.take()
        context = None if head == "@@" else head.removeprefix("@@ ")
    elif not first:
        raise lines.unread("no `@@` in front of a change")
    old: list[str] = []
    new: list[str] = []
    while not lines.at_end and lines.next[:1] in ("", " ", "+", "-"):
        if _looks_like_header(lines.next):
            raise lines.unread("the line looks like a header, and some versions read it as one")
        line = lines.take() or " "
        old += [line[1:]] if line[0] != "+" else []
        new += [line[1:]] if line[0] != "-" else []
    if not old and not new:
        raise lines.unread("a change without a line")
    at_end = lines.next == _END_OF_FILE
    if at_end:
        lines.take()
    return Hunk(old=tuple(old), new=tuple(new), anchor=context, at_end=at_end)


def _looks_like_header(line: str) -> bool:
    bare = line.strip(_SPACE)
    return bare in (_END, _END_OF_FILE) or bare.startswith((_ADD, _DELETE, _UPDATE, _MOVE, _ENVIRONMENT))


def _replaced(before: str, hunks: Sequence[Hunk]) -> str | None:
    """Return a text with its lines replaced, None unless every old line is found exactly, in order."""
    # Each line stands between two line ends: lines are found as a text is, however many there are.
    text = "\n" + before + ("" if not before or before.endswith("\n") else "\n")
    at = 0
    spans: list[tuple[int, int, str]] = []
    for hunk in hunks:
        if hunk.anchor is not None:
            position = text.find(f"\n{hunk.anchor}\n", at)
            if position < 0:
                return None
            at = position + 1 + len(hunk.anchor)
        new = "".join(f"{line}\n" for line in hunk.new)
        if not hunk.old:
            if text.endswith("\n\n"):
                return None  # in front of the empty line or behind it: versions differ
            spans.append((len(text), len(text), new))
            continue
        old = "".join(f"\n{line}" for line in hunk.old) + "\n"
        position = (len(text) - len(old) if text.endswith(old) else -1) if hunk.at_end else text.find(old, at)
        if position < 0:
            return None
        at = position + len(old) - 1
        spans.append((position + 1, position + len(old), new))
    return _spliced(text, sorted(spans, key=lambda span: span[0]))


def _spliced(text: str, spans: Sequence[tuple[int, int, str]]) -> str | None:
    pieces: list[str] = []
    done = 1  # behind the line end in front
    for start, end, new in spans:
        if start < done:
            return None
        pieces += (text[done:start], new)
        done = end
    return "".join((*pieces, text[done:]))


# -- a patch in a shell command

_HERE = re.compile(
    r"""[ \t\n]*(?:cd[ \t]+(?:'(?P<single>[^'\n]+)'|"(?P<double>[^"$`\\\n]+)"|(?P<bare>[A-Za-z0-9_./@%+=:,-]+))"""
    r"""[ \t]*&&[ \t]*)?(?:apply_patch|applypatch)[ \t]*"""
    r"""<<[ \t]*(?P<quote>['"]?)(?P<mark>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)[ \t]*\n(?P<body>.*)""",
    re.DOTALL,
)
_SHELL = re.compile(r"(?:(?:/usr)?/bin/)?(?:bash|sh|zsh) -l?c (?P<script>\S.*)", re.DOTALL)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"$`\\]|\\["$`\\])*)"|([A-Za-z0-9_./@%+=:,-]+)""")


def here_document(command: str) -> tuple[str, str] | None:
    """Return the patch of a shell command that Codex carries out itself, and the folder that it goes to first (or an
    empty string).

    `None` for every other command, also for one that runs `apply_patch` in another way: that is a command like any
    other. The shell would do the same as the returned patch, if Codex gave the command to it.
    """
    inner = _SHELL.fullmatch(command.strip(" \t\n"))
    script = command if inner is None else _unquoted(inner["script"])
    match = None if script is None else _HERE.fullmatch(script)
    if match is None:
        return None
    mark = match["mark"]
    folder = match["single"] or match["double"] or match["bare"] or ""
    if folder.startswith(("-", "~")) or folder.isdigit() or folder != folder.strip(_SPACE):
        return None  # the shell goes elsewhere, or Codex leaves it to the shell
    # The first line that begins like the mark ends it, for one reader or the other; behind it must be nothing.
    lines = re.sub(r"\n[ \t\n]*\Z", "", match["body"]).split("\n")
    if lines[-1] != mark or any(line.lstrip(_SPACE).startswith(mark) for line in lines[:-1]):
        return None
    patch = "\n".join(lines[:-1])
    if not match["quote"] and any(sign in patch for sign in "$`\\"):
        return None  # the shell would put other text in its place, Codex does not
    return patch, folder


def _unquoted(word: str) -> str | None:
    """Return the content of one quoted word of a shell; `None` for anything more than that."""
    pieces: list[str] = []
    at = 0
    while at < len(word):
        match = _QUOTED.match(word, at)
        if match is None:
            return None
        single, double, bare = match.groups()
        pieces.append(single if single is not None else bare or re.sub(r"\\(.)", r"\1", double or ""))
        at = match.end()
    return "".join(pieces)
