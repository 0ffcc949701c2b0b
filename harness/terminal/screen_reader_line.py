"""The line at the prompt for screen readers and TERM=dumb, edited by Python's `readline`, which repaints one line only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType

from harness.record import Record
from harness.terminal.escape_sequences import typed_text
from harness.terminal.keys import ALONE_SECONDS, kept_mode, readable
from harness.terminal.row_text import cells
from harness.text.visible import visible, visible_line

CONTINUED = ". "
PASTED = "(a paste: Enter in an empty line sends it)"
_LONGEST_ROW = 200
_SETTINGS = (
    "set enable-bracketed-paste off",  # its escapes would be read aloud, or shown
    "set show-all-if-ambiguous on",
    "set completion-query-items 0",
    "set page-completions off",
    "set bell-style none",
    '"\\e[": skip-csi-sequence',
    "tab: complete",
)
_SETTINGS_OF_LIBEDIT = ("bind ^I rl_complete",)


class Candidate(Record):
    """A replacement of the last typed characters."""

    text: str
    replaces: int
    """Number of characters before the cursor that `text` replaces."""
    label: str


Completing = Callable[[str], Sequence[Candidate]]


def read_line(
    prompt: str, *, default: str = "", complete: Completing | None = None, history: Iterable[str] = (), vi: bool = False
) -> str:
    """Return the typed text. A line that ends in a backslash continues in the next one.

    The keys are those of `readline`. `history` are earlier lines, oldest first. A Tab lists the completions of the text
    before the cursor, and adds their common beginning. A `default` of one line is the initial text; others are shown
    above the line, and an empty line selects them. Lines that are pasted together continue until an empty line.

    Raises EOFError at the end of input, and KeyboardInterrupt on Ctrl-C.
    """
    readline = _readline(history, vi=vi)
    is_editable = readline is not None and default.isprintable()
    if default and not is_editable:
        _write(f"kept: {visible(default)}\n(Enter alone sends it)\n")
    with kept_mode(sys.stdin.fileno()):
        text = "\n".join(_lines(readline, prompt, default if is_editable else "", complete))
    return text or ("" if is_editable else default)


def continues(line: str) -> bool:
    """Return whether a line continues in the next one: it ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _lines(readline: ModuleType | None, prompt: str, default: str, complete: Completing | None) -> Sequence[str]:
    lines: list[str] = []
    is_pasted = False
    while True:
        now = CONTINUED if lines else prompt
        if readline is not None:
            before = "".join(f"{line}\n" for line in lines)
            _Completions(readline, now, before, complete).install()
            readline.set_startup_hook(None if lines else lambda: readline.insert_text(default))
        line = typed_text(input(now))
        more_follows = bool(readable((sys.stdin.fileno(),), ALONE_SECONDS))
        if more_follows and not is_pasted:
            _write(f"{PASTED}\n")
        is_pasted = is_pasted or more_follows
        if is_pasted and (line or more_follows):
            lines.append(line)
        elif not is_pasted and continues(line):
            lines.append(line if _is_command(lines, line) else line[:-1])
        else:
            return lines if is_pasted else [*lines, line]


def _is_command(lines: list[str], line: str) -> bool:
    """Return whether the text is a shell command (`!`), in which the backslash is kept."""
    return (lines[0] if lines else line).startswith("!")


def _readline(history: Iterable[str], *, vi: bool) -> ModuleType | None:
    """Return the line editor, set up for one line. `None` if this Python has none: then the terminal edits the line."""
    try:
        import readline
    except ImportError:
        return None
    is_libedit = "libedit" in (readline.__doc__ or "")
    for setting in _SETTINGS_OF_LIBEDIT if is_libedit else _SETTINGS:
        readline.parse_and_bind(setting)
    if vi:
        readline.parse_and_bind("bind -v" if is_libedit else "set editing-mode vi")
    readline.set_auto_history(False)
    readline.clear_history()
    for line in history:
        if line.isprintable():
            readline.add_history(line)
    return readline


class _Completions:
    """The completions of one line, for `readline`."""

    def __init__(self, readline: ModuleType, prompt: str, before: str, complete: Completing | None) -> None:
        self._readline = readline
        self._prompt = prompt
        self._before = before
        """The earlier lines of the text."""
        self._complete = complete
        self._rows: Sequence[str] = ()
        self._texts: Sequence[str] = ()

    def install(self) -> None:
        self._readline.set_completer_delims("")
        self._readline.set_completer(self._text_at if self._complete is not None else None)
        self._readline.set_completion_display_matches_hook(
            lambda common_beginning, *_: self._show(self._rows, common_beginning)
        )

    def _text_at(self, line: str, index: int) -> str | None:
        """Return the line with the completion at `index`. `None` behind the last one."""
        if index == 0 and self._complete is not None:
            candidates = [each for each in self._complete(self._before + line) if each.text.isprintable()]
            self._texts = [line[: len(line) - each.replaces] + each.text for each in candidates]
            self._rows = [visible_line(each.label, _LONGEST_ROW) for each in candidates]
            if not candidates:
                self._show(["(nothing completes this)"], line)
        return self._texts[index] if index < len(self._texts) else None

    def _show(self, rows: Sequence[str], before: str) -> None:
        """Write rows below the line, and the line again, with the cursor behind `before`.

        `readline` writes what it added first: otherwise it would write that behind the new line.
        """
        line: str = self._readline.get_line_buffer()
        self._readline.redisplay()
        back = "\b" * cells(visible(line[len(before) :]))
        _write("".join(f"\n{row}" for row in rows) + f"\n{self._prompt}{visible(line)}{back}")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
