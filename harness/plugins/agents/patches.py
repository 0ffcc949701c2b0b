"""Parse patches for `apply_patch`, which change several files, and shell commands that contain such a patch.

INVARIANT: the result names every file that Cline, Codex or opencode would touch. These programs, and their versions, interpret
a few lines differently: a line inside an update that looks like a header, a blank before a path, a `~`. A patch with
such a line is refused.
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
"""Characters that Codex strips (Unicode's White_Space). Python would strip four more, and so find other names."""
_HERE_MARKS = ("<<EOF", "<<'EOF'", '<<"EOF"')


class PatchKind(Enum):
    """The kind of change to a file."""

    ADD = "add"
    """The file is written, replacing an existing one."""
    DELETE = "delete"
    UPDATE = "update"
    """Lines of the file are replaced; the file may be renamed."""


class Hunk(Record):
    """Old lines and their replacement."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    anchor: str | None = None
    """A line that precedes the old lines. `None` if there is none."""
    at_end: bool = False
    """Whether the old lines are the last lines of the file."""


class FilePatch(Record):
    """The change that a patch makes to one file."""

    kind: PatchKind
    path: str
    moved_to: str = ""
    """The new name; empty if the file keeps its own."""
    content: str = ""
    """Content of an added file."""
    hunks: tuple[Hunk, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The touched paths as written: the file's path, and its new path if it is renamed."""
        return (self.path, self.moved_to) if self.moved_to else (self.path,)

    @property
    def removes(self) -> bool:
        """Whether the file is deleted. For a link, the link itself is deleted, not its target."""
        return self.kind is PatchKind.DELETE

    def after(self, before: bytes | None) -> bytes | None:
        """Return the predicted content of the file; `None` if it is deleted, or if the content is unpredictable.

        `before` is the current content. Codex also accepts old lines that match only nearly; that is not predicted.
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
    """Return the changes of a patch in order. Raises ToolError for a patch that is invalid or ambiguous."""
    lines = _Lines(_within_marks(_lines_of(text)))
    patches = []
    while not lines.at_end:
        patches.append(_file_patch(lines))
    if not patches:
        raise ToolError("The patch is not understood: it names no file.")
    return tuple(patches)


def split_patch(text: str) -> tuple[str, ...]:
    """Split a patch into one patch for each file, in order. Raises ToolError as `read_patch` does."""
    all_lines = _within_marks(_lines_of(text))
    lines = _Lines(all_lines)
    parts = []
    while not lines.at_end:
        begin = lines.position
        _file_patch(lines)
        parts.append("\n".join((_BEGIN, *all_lines[begin : lines.position], _END)))
    return tuple(parts)


class _Lines:
    """Reader of the lines of a patch between its first and last line."""

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
        """The next line; empty at the end."""
        return "" if self.at_end else self._lines[self._next]

    def take(self) -> str:
        self._next += 1
        return self._lines[self._next - 1]

    def unread(self, reason: str) -> ToolError:
        """Return the error for the next line."""
        line = visible_line(self.next, 200)
        return ToolError(f"The patch is not understood: line {self._next + 2}: {reason}: {line}")


def _lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.strip(_SPACE).split("\n")]


def _within_marks(lines: list[str]) -> list[str]:
    """Return the lines between the first and last line of a patch. Like Codex, accept a here-document around the patch."""
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
    """Consume a header line and return its path. Raises ToolError for an ambiguous path."""
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
            lines.take()  # a blank line after a hunk's end; inside a hunk it would be a line of the change
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
    """Return a text with the hunks applied; `None` unless all old lines are found exactly and in order."""
    # Every line has a line end before and after it, so that whole lines can be found by a text search.
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
                return None  # versions differ on whether to insert before or after the empty line
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
    done = 1  # skips the line end at the start
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
    """Return the patch in a shell command that Codex applies itself, and the folder of its `cd` (empty if there is none).

    `None` for every other command, including one that runs `apply_patch` in another way. If Codex gave the command to a
    shell after all, the effect would be the same as that of the returned patch.
    """
    inner = _SHELL.fullmatch(command.strip(" \t\n"))
    script = command if inner is None else _unquoted(inner["script"])
    match = None if script is None else _HERE.fullmatch(script)
    if match is None:
        return None
    mark = match["mark"]
    folder = match["single"] or match["double"] or match["bare"] or ""
    if folder.startswith(("-", "~")) or folder.isdigit() or folder != folder.strip(_SPACE):
        return None  # the shell would go to another folder, or Codex passes the command to the shell
    # Some parsers end the here-document at the first line that begins with the mark. So only the last line may do that.
    lines = re.sub(r"\n[ \t\n]*\Z", "", match["body"]).split("\n")
    if lines[-1] != mark or any(line.lstrip(_SPACE).startswith(mark) for line in lines[:-1]):
        return None
    patch = "\n".join(lines[:-1])
    if not match["quote"] and any(sign in patch for sign in "$`\\"):
        return None  # the shell would expand these characters, Codex does not
    return patch, folder


def _unquoted(word: str) -> str | None:
    """Return the content of one quoted shell word; `None` for anything else."""
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
