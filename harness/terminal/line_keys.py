"""The keys of the line at the prompt: for its text, for the screen, and for the menus."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import (
    Condition,
    emacs_mode,
    has_focus,
    has_selection,
    vi_navigation_mode,
)
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from harness.terminal.escape_sequences import ESC, EscapeSequences, is_control, key_of, pasted_text
from harness.terminal.paste_folding import Folding
from harness.terminal.pasted_path import pasted_mention
from harness.terminal.screen_reader_line import continues
from harness.terminal.unmarked_paste import read_at_once, with_marks

ALONE = Condition(lambda: not get_app().key_processor.input_queue)
"""Whether no further input arrived together with a key. False within Alt and a key, and for input from a program."""
EMPTY = Condition(lambda: not get_app().current_buffer.text)


_CTRL_C = "\x03"


class LineReader(PosixStdinReader):
    """Reads the input of the line. A paste of lines is read as one."""

    def read(self, count: int = 1024) -> str:
        """Return the available text."""
        read = super().read
        return read_at_once(self.stdin_fd, lambda: read(count))


class LineParser(Vt100Parser):
    """Converts the terminal's input into keys for the line.

    Replaces the library's parser, which turns unknown sequences into text, and never ends an unfinished paste.
    """

    @classmethod
    def of(cls, line_input: Vt100Input) -> LineParser:
        """Return a new parser, and let `line_input` use it."""
        line_input.stdin_reader = LineReader(line_input.fileno(), encoding=line_input.stdin.encoding)
        parser = cls(line_input.vt100_parser.feed_key_callback)
        line_input.vt100_parser = parser
        return parser

    def __init__(self, feed_key_callback: Callable[[KeyPress], None]) -> None:
        """`feed_key_callback` is called with each key."""
        super().__init__(feed_key_callback)
        self._sequences = EscapeSequences()

    @property
    def in_paste(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._sequences.pasted is not None

    def feed(self, data: str) -> None:
        """Emit the keys and pastes that are complete with `data`, which was read at once."""
        for unit in with_marks(self._sequences.feed(data)):
            pasted = pasted_text(unit)
            if pasted is None:
                self._feed_key(unit, key_of(unit))
            else:
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))

    def flush(self) -> None:
        """Complete an unfinished key, because no input followed it.

        A Ctrl-C at the end of an unfinished paste ends it; the pasted text stays in the line. This cannot happen within
        a normal paste, where more input follows at once.
        """
        if (self._sequences.pasted or "").endswith(_CTRL_C):
            pasted = self._sequences.end().rstrip(_CTRL_C)
            self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        elif self.in_paste:
            get_app().invalidate()  # redraw, because no key causes it
        super().feed(self._sequences.pause())
        super().flush()

    def _feed_key(self, unit: str, key: str) -> None:
        if key == ESC != unit:
            super().feed(key)
            super().flush()
        elif key in ANSI_SEQUENCES and key.startswith(ESC):
            keys = ANSI_SEQUENCES[key]
            for each in keys if isinstance(keys, tuple) else (keys,):
                self.feed_key_callback(KeyPress(each, ""))  # without data, which an unbound key would insert as text
        elif not is_control(key):
            super().feed(key)


def line_keys(
    folding: Folding,
    edit: Callable[[KeyPressEvent], None],
    close_menu: Callable[[Buffer], None],
    drop_rest: Callable[[Buffer], bool],
    root: str = "",
) -> KeyBindings:
    """Return the key bindings.

    `edit` opens the editor. `close_menu` is called after a choice from the menu. `drop_rest` drops a line that belongs to
    an answer, and returns whether it did. Pasted paths of files in `root` become mentions.
    """
    keys = KeyBindings()
    _add_text_keys(keys, close_menu, drop_rest)
    _add_paste_key(keys, folding, root)
    _add_screen_keys(keys, edit)
    return keys


def _add_text_keys(
    keys: KeyBindings, close_menu: Callable[[Buffer], None], drop_rest: Callable[[Buffer], bool]
) -> None:
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=in_line)
    def _enter(event: KeyPressEvent) -> None:
        """Accept the chosen completion, complete a command, begin a new line after a backslash, or send the line.

        INVARIANT: a command runs only as written in the line. Enter completes a partial command, and a second Enter
        runs it.
        """
        buffer = event.current_buffer
        state = buffer.complete_state
        is_chosen = state is not None and state.current_completion is not None and not buffer.text.startswith("/")
        if drop_rest(buffer) or is_chosen:
            close_menu(buffer)
        elif (finished := _finished(buffer)) is not None:
            buffer.document = end_of(finished)
            close_menu(buffer)
        elif buffer.document.is_cursor_at_the_end and continues(buffer.text):
            if not buffer.text.startswith("!"):
                buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("c-j", filter=in_line)
    @keys.add("escape", "enter", filter=in_line & emacs_mode)
    def _newline(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    @keys.add("c-@", filter=in_line)
    def _nothing(event: KeyPressEvent) -> None:
        """Ignore Ctrl-Space, which often switches input methods. The library would start an invisible selection."""


def _add_paste_key(keys: KeyBindings, folding: Folding, root: str) -> None:
    @keys.add(Keys.BracketedPaste, filter=has_focus(DEFAULT_BUFFER))
    def _paste(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = event.data if buffer.text.startswith("!") else pasted_mention(event.data, root=root)
        _insert(buffer, folding.folded(text))


def _finished(buffer: Buffer) -> str | None:
    """Return the menu's first completion of a partial command. `None` if there is no partial command to complete."""
    state, text = buffer.complete_state, buffer.text
    if state is None or state.current_completion is not None or not text.startswith("/") or text[-1] in "/ ":
        return None
    texts = [text[: len(text) + completion.start_position] + completion.text for completion in state.completions]
    if not texts or text in texts or not buffer.document.is_cursor_at_the_end:
        return None
    return texts[0] if " " in text or texts[0].startswith(text.lower()) else None  # not if only its summary matches


def _add_screen_keys(keys: KeyBindings, edit: Callable[[KeyPressEvent], None]) -> None:
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("c-c", filter=in_line)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        """Clear the line; Ctrl-Y restores it. In an empty line, raise KeyboardInterrupt from the prompt."""
        buffer = event.current_buffer
        if not buffer.text:
            event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")
            return
        event.app.clipboard.set_text(buffer.text)
        buffer.reset()
        event.app.vi_state.reset()

    @keys.add("c-x", "c-e", filter=in_line & emacs_mode & ~has_selection)
    @keys.add("v", filter=in_line & vi_navigation_mode)
    def _edit(event: KeyPressEvent) -> None:
        edit(event)

    @keys.add("c-l")
    def _fresh_screen(event: KeyPressEvent) -> None:
        """Clear the screen by scrolling the old text up, so that none of it is erased."""
        output = event.app.output
        event.app.renderer.erase()
        output.write_raw("\n" * output.get_size().rows)
        event.app.renderer.clear()


def _insert(buffer: Buffer, text: str) -> None:
    """Insert a text at the cursor, replacing the selection."""
    if buffer.selection_state:
        buffer.cut_selection()
    buffer.insert_text(text)


def end_of(text: str) -> Document:
    """Return a document with this text and the cursor at its end."""
    return Document(text, len(text))
