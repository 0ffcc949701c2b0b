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
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from harness.cli.terminal.paste_folding import Folding
from harness.cli.terminal.pasted_path import pasted_mention
from harness.cli.terminal.screen_reader_line import continues

ALONE = Condition(lambda: not get_app().key_processor.input_queue)
"""Whether nothing came behind a key at once: of Alt and a key, of what is typed by a program."""
EMPTY = Condition(lambda: not get_app().current_buffer.text)


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
        """Take the chosen completion, finish a command, go on in the next line behind a backslash, or send.

        INVARIANT: a command runs only as it stands in the line: what was begun is finished first, and Enter again runs it.
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

    @keys.add(Keys.BracketedPaste, filter=in_line)
    def _paste(event: KeyPressEvent) -> None:
        _insert(event.current_buffer, folding.folded(pasted_mention(event.data)))


def _finished(buffer: Buffer) -> str | None:
    """Return the command that the menu has first for what was begun; None where nothing is to be finished."""
    state, text = buffer.complete_state, buffer.text
    if state is None or state.current_completion is not None or not text.startswith("/") or text[-1] in "/ ":
        return None
    texts = [text[: len(text) + one.start_position] + one.text for one in state.completions]
    if not texts or text in texts or not buffer.document.is_cursor_at_the_end:
        return None
    return texts[0] if " " in text or texts[0].startswith(text.lower()) else None  # no command by what it does


def _add_screen_keys(keys: KeyBindings, edit: Callable[[KeyPressEvent], None]) -> None:
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("c-c", filter=in_line)
    def _clear_or_leave(event: KeyPressEvent) -> None:
        """Clear the line, which Ctrl-Y brings back; of an empty one, tell whoever reads."""
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
        """Begin a fresh screen: what stood on this one is scrolled up, not erased."""
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
