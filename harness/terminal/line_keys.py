"""The keys of the line at the prompt: what they do with its text, with the screen, and where they take from a menu."""

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
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from harness.terminal.escape_sequences import ESC, EscapeSequences, is_control, key_of, pasted_text
from harness.terminal.paste_folding import Folding
from harness.terminal.pasted_path import pasted_mention
from harness.terminal.screen_reader_line import continues

ALONE = Condition(lambda: not get_app().key_processor.input_queue)
"""Whether nothing came behind a key at once: of Alt and a key, of what is typed by a program."""
EMPTY = Condition(lambda: not get_app().current_buffer.text)


_CTRL_C = "\x03"


class LineParser(Vt100Parser):
    """Makes keys of what a terminal sends to the line.

    The library's parser turns an unknown sequence into text, and waits for the end of a paste without end.
    """

    @classmethod
    def of(cls, line_input: Vt100Input) -> LineParser:
        """Return the parser that `line_input` uses from now on."""
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
        """Pass on the keys and pastes that end with `data`."""
        for unit in self._sequences.feed(data):
            pasted = pasted_text(unit)
            if pasted is None:
                self._feed_key(unit, key_of(unit))
            else:
                self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))

    def flush(self) -> None:
        """Complete a key that has begun, since nothing followed. Ctrl-C ends a paste without end; its text stays in the line.

        In a paste with an end, more follows Ctrl-C at once: no part of it becomes a key.
        """
        if (self._sequences.pasted or "").endswith(_CTRL_C):
            pasted = self._sequences.end().rstrip(_CTRL_C)
            self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        elif self.in_paste:
            get_app().invalidate()  # no key is there to have that drawn
        super().feed(self._sequences.pause())
        super().flush()

    def _feed_key(self, unit: str, key: str) -> None:
        if key == ESC != unit:
            super().feed(key)
            super().flush()
        elif key in ANSI_SEQUENCES and key.startswith(ESC):
            keys = ANSI_SEQUENCES[key]
            for each in keys if isinstance(keys, tuple) else (keys,):
                self.feed_key_callback(KeyPress(each, ""))  # without data: a key that nothing is bound to inserts that
        elif not is_control(key):
            super().feed(key)


def line_keys(
    folding: Folding, edit: Callable[[KeyPressEvent], None], close_menu: Callable[[Buffer], None]
) -> KeyBindings:
    """Return the keys; `edit` is called for the editor, `close_menu` where something was taken from the menu."""
    keys = KeyBindings()
    _add_text_keys(keys, folding, close_menu)
    _add_screen_keys(keys, edit)
    return keys


def _add_text_keys(keys: KeyBindings, folding: Folding, close_menu: Callable[[Buffer], None]) -> None:
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=in_line)
    def _enter(event: KeyPressEvent) -> None:
        """Take the chosen completion, finish a command, continue on the next line after a backslash, or send.

        INVARIANT: a command runs only as it is written in the line: a partial one is finished first, and Enter again
        runs it.
        """
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None and not buffer.text.startswith("/"):
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
        """Ignore Ctrl-Space, which switches input methods: the library would begin an invisible selection."""

    @keys.add(Keys.BracketedPaste, filter=in_line)
    def _paste(event: KeyPressEvent) -> None:
        _insert(event.current_buffer, folding.folded(pasted_mention(event.data)))


def _finished(buffer: Buffer) -> str | None:
    """Return the command that the menu has first for what was begun; None where nothing is to be finished."""
    state, text = buffer.complete_state, buffer.text
    if state is None or state.current_completion is not None or not text.startswith("/") or text[-1] in "/ ":
        return None
    texts = [text[: len(text) + completion.start_position] + completion.text for completion in state.completions]
    if not texts or text in texts or not buffer.document.is_cursor_at_the_end:
        return None
    return texts[0] if " " in text or texts[0].startswith(text.lower()) else None  # no command by what it does


def _add_screen_keys(keys: KeyBindings, edit: Callable[[KeyPressEvent], None]) -> None:
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("c-c", filter=in_line)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        """Clear the line, which Ctrl-Y brings back; report an empty one to the reader."""
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
        """Begin a fresh screen: the old text is scrolled up, not erased."""
        output = event.app.output
        event.app.renderer.erase()
        output.write_raw("\n" * output.get_size().rows)
        event.app.renderer.clear()


def _insert(buffer: Buffer, text: str) -> None:
    """Put a text at the cursor, in place of what is selected."""
    if buffer.selection_state:
        buffer.cut_selection()
    buffer.insert_text(text)


def end_of(text: str) -> Document:
    """Return a text with the cursor behind it."""
    return Document(text, len(text))
