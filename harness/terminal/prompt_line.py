"""The line at the prompt, where the user types. Returns exactly the text that was sent.

prompt_toolkit edits the line on a terminal with repainting. On others (for a screen reader, TERM=dumb), readline edits it
(screen_reader_line.py). There is no polling: the process sleeps between two keys.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import (
    Condition,
    has_completions,
    has_focus,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from harness.errors import HarnessError
from harness.terminal.completion import LineCompleter, Menus, mention
from harness.terminal.console import Look
from harness.terminal.editor import NotEdited, edited
from harness.terminal.key_panel import KeyWords, panel_rows
from harness.terminal.line_drawing import LineDisplay
from harness.terminal.line_keys import ALONE, EMPTY, LineParser, end_of, line_keys
from harness.terminal.paste_folding import Folding, plain
from harness.terminal.row_text import fitted
from harness.terminal.screen import terminal_size
from harness.terminal.screen_reader_line import CONTINUED, Candidate, read_line
from harness.terminal.styles import PROMPT_STYLES, TOOLBAR, TOOLBAR_RED, Tone
from harness.terminal.typing_times import TypingTimes
from harness.text.visible import visible_line

PROMPT = "> "
MOST_MENU_LINES = 12
"""Maximum number of rows below the line for completions; at most half of the window."""
ESCAPE_SECONDS = 0.05
"""Seconds within which bytes after an Esc belong to it."""
TWICE_SECONDS = 1.0
"""Maximum seconds between two Esc in an empty line that open the menu of earlier messages."""
GO_BACK = "/back "
"""The command that two Esc in an empty line insert."""
KEYS_HINT = "? shows the keys"
WAIT_HINT = "looking for what there is ..."
PASTE_HINT = "a paste goes on; Ctrl-C ends it"
NOTHING_HINT = "nothing to choose; Esc leaves"
MENU_HINT = "Up, Down choose{}; Esc closes"


class PromptLine:
    """Reads the user's texts, one after the other."""

    def __init__(
        self,
        *,
        history: History,
        commands: Callable[[], Sequence[tuple[str, str]]],
        files: Callable[[str], Sequence[str]],
        offers: Callable[[], Menus],
        keys: Sequence[KeyWords],
        vi: bool,
        look: Look,
        toolbar: Callable[[str, str], Sequence[tuple[str, Tone]]],
        next_mode: Callable[[], None],
        environment: Mapping[str, str],
        tell: Callable[[str], None] | None = None,
        times: TypingTimes | None = None,
        picture: Callable[[], str] | None = None,
        root: str = "",
    ) -> None:
        """Set up the line. Neither reads nor writes yet.

        `commands` returns names with `/` and summaries. `files` finds names by a typed part, and `offers` returns the
        menus of commands. `files` and the entries of a menu may be slow, and are called from any thread. `keys` are
        shown at `?`. `toolbar` is called at each key, with a hint about the keys and vi's editing mode. `next_mode` is
        called at Shift-Tab. `tell` shows a line to the user. `times` tell when the user answered a question: the rest of
        the answer is dropped. `picture` stores the picture on the clipboard, and returns its path; its HarnessError is
        shown. Pasted paths of files in `root` become mentions.
        """
        self._times = times or TypingTimes()
        self._default = ""
        """The initial text of the line."""
        self._picture = picture
        self._root = root
        self._problem = ""
        """The reason why the last key had no effect."""
        self._history = history
        self._environment = environment
        self._tell = tell if tell is not None else _print_line
        self._toolbar = toolbar
        self._look = look
        self._keys = keys
        self._keys_shown = self._keys_were_shown = False
        self._drawn_rows = 0
        """Number of rows that were drawn above the status line: those of the keys, or of a preview."""
        self._offered = ""
        """The command whose menu was opened automatically. If sent unchanged, it counts as an empty line."""
        self._next_mode = next_mode
        self._escaped = -TWICE_SECONDS
        """Time of the last Esc in an empty line."""
        self._closed_menu_text = ""
        """The text at which the menu was closed. As long as the text is unchanged, it stays closed."""
        self._is_new = True
        """Whether the user has not sent a line yet."""
        self._folding = Folding()
        self._stored_lines: Sequence[str] = ()
        """The lines of earlier programs, oldest first, if readline edits the line."""
        self._vi = vi
        self._wants_editor = False
        self._session: PromptSession[str] | None = None
        self._parser: LineParser | None = None
        self._completer = LineCompleter(commands, files, offers)
        if look.repaints:
            self._session = self._new_session(self._completer, vi=vi)

    def read(
        self,
        *,
        default: str = "",
        pre_run: Callable[[], None] | None = None,
        prompt: Callable[[], str] = lambda: PROMPT,
    ) -> str:
        """Return the sent text, with folded pastes unfolded. It may contain newlines.

        `default` is the initial text. If it is a command with a menu, the menu opens, and Enter or Esc alone leaves it.
        `pre_run` is called once the prompt is on the screen, and must return at once. The text is exact, except for
        line ends, lone surrogates and marks of pastes (see `Folding`).

        Raises EOFError on Ctrl-D or if the terminal is gone, and KeyboardInterrupt on Ctrl-C, each in an empty line
        only. Errors of switching the mode pass through.
        """
        self._completer.begin_line()
        if self._session is None:
            if pre_run is not None:
                pre_run()
            history = self._earlier_lines()
            line = read_line(prompt(), default=default, complete=self._candidates, history=history, vi=self._vi)
            text = plain(line)
            self._history.append_string(text)
            return "" if self._times.ends_answer(text) else text
        self._folding.clear()
        self._default = line = self._folding.folded(default, "text")
        self._offered = default if self._completer.is_awaited(default) else ""
        while True:
            text = self._prompt(self._session, prompt, line, pre_run)
            if not self._wants_editor:
                self._is_new = False
                return "" if text == self._offered else text
            pre_run = None
            self._default = line = self._edited(text)

    def stopper(self) -> Callable[[], None] | None:
        """Return a function with which a signal handler ends the current line with KeyboardInterrupt.

        `None` if the handler must raise it itself. Call this method once the prompt is on the screen.
        """
        app = self._session.app if self._session is not None else None
        if app is None or app.loop is None:
            return None
        loop = app.loop

        def leave() -> None:
            if not app.is_done:
                app.exit(exception=KeyboardInterrupt())

        def tell() -> None:
            loop.call_soon_threadsafe(leave)

        return tell

    def above(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return a function for other threads that does `work` on this thread, with the line out of the way.

        `work` may print. Nothing is done once the line was sent. Call this method once the prompt is on the screen.
        """
        app = self._session.app if self._session is not None else None
        if app is None or app.loop is None:
            return lambda: None
        loop = app.loop

        def begin() -> None:
            if app.is_running and not app.is_done:
                run_in_terminal(work)

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has ended with its line
                loop.call_soon_threadsafe(begin, context=app.context)

        return tell

    def _prompt(
        self, session: PromptSession[str], prompt: Callable[[], str], line: str, pre_run: Callable[[], None] | None
    ) -> str:
        self._wants_editor = False
        session.app.erase_when_done = False
        session.reserve_space_for_menu = 0
        self._closed_menu_text = ""
        _after_first_drawing(session, pre_run, session.default_buffer.start_completion if self._offered else None)
        return self._folding.unfolded(session.prompt(prompt, default=end_of(line)))

    def _earlier_lines(self) -> Sequence[str]:
        """Return the earlier lines, oldest first. The file is read before the first line."""
        if self._is_new:
            self._is_new = False
            self._stored_lines = [*self._history.load_history_strings()][::-1]
        return [*self._stored_lines, *self._history.get_strings()]

    def _candidates(self, text: str) -> Sequence[Candidate]:
        """Return the completions for a line that readline edits."""
        return [
            Candidate(
                text=completion.text,
                replaces=-completion.start_position,
                label="  ".join(filter(None, (completion.display_text, completion.display_meta_text))),
            )
            for completion in self._completer.get_completions(Document(text), CompleteEvent(completion_requested=True))
        ]

    def _edited(self, text: str) -> str:
        """Let the user edit the line in their editor, and return it. If that fails, show a message and keep the line."""
        try:
            text = edited(text, self._environment, repaints=True)
        except NotEdited as error:
            self._tell(f"{error}; the text is as it was")
        self._folding.clear()
        return self._folding.folded(text, "text")

    def _new_session(self, completer: LineCompleter, *, vi: bool) -> PromptSession[str]:
        look = self._look
        line_input = Vt100Input(sys.stdin)
        self._parser = LineParser.of(line_input)
        session: PromptSession[str] = PromptSession(
            history=_Unfolded(self._history, self._folding),
            completer=completer,
            complete_while_typing=Condition(lambda: self._menu_is_awaited(session.default_buffer)),
            complete_style=CompleteStyle.COLUMN,
            editing_mode=EditingMode.VI if vi else EditingMode.EMACS,
            key_bindings=self._key_bindings(),
            input_processors=[LineDisplay(self._folding)],
            prompt_continuation=_continuation,
            bottom_toolbar=self._drawn_toolbar,
            search_ignore_case=True,
            enable_suspend=True,
            style=Style.from_dict(PROMPT_STYLES),
            include_default_pygments_style=False,
            color_depth=None if look.colour else ColorDepth.MONOCHROME,
            input=line_input,
            output=_Output(sys.stdout, _size, term=self._environment.get("TERM")),
        )
        session.app.terminal_size_polling_interval = (
            None  # SIGWINCH reports changes (signal(7)); polling would wake an idle process
        )
        session.app.ttimeoutlen = ESCAPE_SECONDS
        session.app.key_processor.before_key_press += self._hide_keys
        session.app.before_render += lambda _: self._make_room(session)
        control = session.layout.current_control
        if isinstance(control, BufferControl):
            control.menu_position = lambda: _menu_position(session.default_buffer)
        return session

    def _key_bindings(self) -> KeyBindings:
        keys = line_keys(self._folding, self._edit, self._close_menu, self._drop_rest_of_answer, self._root)
        in_line = has_focus(DEFAULT_BUFFER) & ALONE
        keys.add("?", filter=in_line & EMPTY & ~vi_navigation_mode)(self._show_keys)
        is_offered = Condition(lambda: bool(self._offered) and get_app().current_buffer.text == self._offered)
        keys.add("escape", filter=in_line & (has_completions | is_offered), eager=True)(self._leave_menu)
        keys.add("escape", filter=in_line & EMPTY & ~vi_insert_mode, eager=True)(self._go_back)
        keys.add("delete", filter=in_line & has_completions & Condition(lambda: bool(self._delete_line())))(
            self._write_delete_line
        )
        keys.add("c-v", filter=has_focus(DEFAULT_BUFFER), eager=True)(self._paste_picture)
        keys.add("s-tab", filter=has_focus(DEFAULT_BUFFER) & ~has_completions)(self._switch_mode)
        return keys

    def _paste_picture(self, event: KeyPressEvent) -> None:
        """Mention the picture on the clipboard in the line. Otherwise show the problem until the next key."""
        if self._picture is None:
            return
        try:
            path = self._picture()
        except HarnessError as error:
            self._problem = str(error)
        else:
            buffer = event.current_buffer
            blank = " " if buffer.document.char_before_cursor.strip() else ""
            buffer.insert_text(f"{blank}@{mention(path)} ")

    def _show_keys(self, event: KeyPressEvent) -> None:  # noqa: ARG002 - what a key calls
        self._keys_shown = not self._keys_were_shown

    def _hide_keys(self, _: object) -> None:
        """Close the panel of keys, and hide the last problem, before any key, which then has its usual effect."""
        self._problem = ""
        self._keys_were_shown, self._keys_shown = self._keys_shown, False

    def _delete_line(self) -> str:
        """Return the line that the Delete key writes for the chosen entry of the menu. Empty for none."""
        entry = self._completer.chosen(get_app().current_buffer.text)
        return entry.delete_line if entry is not None else ""

    def _write_delete_line(self, event: KeyPressEvent) -> None:
        line = self._delete_line()
        event.current_buffer.complete_state = None
        event.current_buffer.document = Document(line)

    def _leave_menu(self, event: KeyPressEvent) -> None:
        """Close the menu, and restore the typed text, which may be empty."""
        buffer = event.current_buffer
        buffer.cancel_completion()
        if buffer.text == self._offered:
            buffer.reset()
        self._close_menu(buffer)

    def _close_menu(self, buffer: Buffer) -> None:
        """Close the menu until the text changes."""
        buffer.complete_state = None
        self._closed_menu_text = buffer.text

    def _go_back(self, event: KeyPressEvent) -> None:
        """Open the menu of earlier messages if this is the second of two Esc."""
        before, self._escaped = self._escaped, time.monotonic()
        if self._escaped - before < TWICE_SECONDS:
            self._offered = GO_BACK
            event.current_buffer.insert_text(GO_BACK)

    def _drop_rest_of_answer(self, buffer: Buffer) -> bool:
        """Restore the initial text if the line belongs to the last answer. Return whether it does."""
        belongs = self._times.ends_answer(buffer.text.removeprefix(self._default))
        if belongs:
            buffer.document = end_of(self._default)
        return belongs

    def _switch_mode(self, event: KeyPressEvent) -> None:
        """Switch to the next mode. The typed text is kept."""
        try:
            self._next_mode()
        except HarnessError as error:
            event.app.exit(exception=error)

    def _menu_is_awaited(self, buffer: Buffer) -> bool:
        return buffer.text != self._closed_menu_text and self._completer.is_awaited(buffer.document.text_before_cursor)

    def _make_room(self, session: PromptSession[str]) -> None:
        """Reserve rows for the menu below the line: they grow with the menu, and are freed when it closes.

        To free rows, the last drawing must be erased, because the library never draws fewer rows than before.
        """
        buffer = session.default_buffer
        state, before = buffer.complete_state, session.reserve_space_for_menu
        if state is not None:
            max_lines = min(MOST_MENU_LINES, _size().rows // 2)
            session.reserve_space_for_menu = min(max(before, len(state.completions) + 1), max_lines)
        elif not self._menu_is_awaited(buffer):
            session.reserve_space_for_menu = 0
        rows = _size().rows if self._keys_shown else len(self._preview())
        closed, self._drawn_rows = rows < self._drawn_rows, rows
        if closed or session.reserve_space_for_menu < before:
            session.app.renderer.erase(leave_alternate_screen=False)
            session.app.renderer.request_absolute_cursor_position()

    def _edit(self, event: KeyPressEvent) -> None:
        """Leave the line for the editor. The edited text becomes the line again."""
        self._wants_editor = True
        event.app.erase_when_done = True
        event.app.exit(result=event.current_buffer.text)

    def _drawn_toolbar(self) -> StyleAndTextTuples:
        if self._keys_shown:
            columns, rows = _size().columns, _size().rows
            panel = panel_rows(self._keys, columns, rows - 1)
            return [(f"class:keys.{name}", text) for name, text in panel]
        styles = {**TOOLBAR, Tone.BAD: TOOLBAR_RED} if self._look.colour else TOOLBAR
        status = [
            (f"class:status {styles[tone]}", visible_line(text, 1_000))
            for text, tone in self._toolbar(self._hint(), _vi_mode())
        ]
        preview = [(f"class:status {styles[Tone.PLAIN]}", f"{line}\n") for line in self._preview()]
        return [*preview, *status]

    def _preview(self) -> Sequence[str]:
        """Return the preview of the chosen entry of the menu, fitted to the terminal."""
        buffer = get_app().current_buffer
        lines = self._completer.preview(buffer.text) if buffer.complete_state is not None else ()
        return [fitted(visible_line(line, 1_000), _size().columns) for line in lines]

    def _hint(self) -> str:
        """Return the present hint about keys."""
        buffer, session = get_app().current_buffer, self._session
        if self._problem:
            return self._problem
        if self._parser is not None and self._parser.in_paste:
            return PASTE_HINT
        if self._completer.is_asking:
            return WAIT_HINT
        if buffer.complete_state is not None:
            count = len(buffer.complete_state.completions)
            is_cut = session is not None and count >= session.reserve_space_for_menu
            return MENU_HINT.format(f" of {count}" if is_cut else "")
        if self._completer.has_nothing(buffer.text):
            return NOTHING_HINT
        return KEYS_HINT if self._is_new and not buffer.text else ""


def _vi_mode() -> str:
    """Return the editing mode of vi's keys. Empty with other keys."""
    app = get_app()
    if app.editing_mode is not EditingMode.VI:
        return ""
    return "normal" if vi_navigation_mode() else app.vi_state.input_mode.value.removeprefix("vi-")


def _menu_position(buffer: Buffer) -> int | None:
    """Return the position of the menu: the start of the completed text, so that it does not move during typing."""
    state = buffer.complete_state
    if state is None or not state.completions or buffer.text.startswith("/"):
        return None if state is None else 0
    return max(state.original_document.cursor_position + state.completions[0].start_position, 0)


class _Output(Vt100_Output):
    """Output to a terminal without queries of the cursor position.

    Some terminals do not answer them; then typed keys would count as the answer.
    """

    def __init__(self, stdout: object, get_size: Callable[[], Size], term: str | None) -> None:
        super().__init__(stdout, get_size, term=term, enable_bell=False, enable_cpr=False)  # type: ignore[arg-type]

    def get_rows_below_cursor_position(self) -> int:
        """Return the number of rows below the cursor that are certainly free.

        Without this number, the library draws nothing below the line (`height_is_known`).
        """
        return 1


class _Unfolded(History):
    """The history for the line. Stored entries are unfolded texts; loaded ones are folded if they are long."""

    def __init__(self, history: History, folding: Folding) -> None:
        super().__init__()
        self._inner = history
        self._folding = folding

    async def load(self) -> AsyncGenerator[str, None]:
        async for text in self._inner.load():
            yield self._folding.with_folded_end(text)

    def get_strings(self) -> list[str]:
        return self._inner.get_strings()

    def append_string(self, string: str) -> None:
        self._inner.append_string(self._folding.unfolded(string))

    def load_history_strings(self) -> Iterable[str]:
        return self._inner.load_history_strings()

    def store_string(self, string: str) -> None:
        self._inner.store_string(string)


def _after_first_drawing(session: PromptSession[str], *calls: Callable[[], None] | None) -> None:
    """Call these functions once, after the prompt was first drawn."""

    def once(_: object) -> None:
        session.app.after_render -= once
        for call in filter(None, calls):
            call()

    session.app.after_render += once


def _continuation(width: int, _line: int, wraps: int) -> str:
    """Return the prefix of a further line: a mark, or blanks for the rest of a long line."""
    return " " * width if wraps else CONTINUED.rjust(width)


def _size() -> Size:
    columns, rows = terminal_size(sys.stdout)
    return Size(rows=rows, columns=columns)


def _print_line(text: str) -> None:
    sys.stdout.write(f"{visible_line(text, 500)}\n")
    sys.stdout.flush()
