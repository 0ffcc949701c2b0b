"""Menus of the line: `/commands` at the start and their arguments, `@files` anywhere, and files after `!`.

A command that lists things shows them in a menu: typing filters it, the arrows choose, Enter sends the resulting line.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from harness.record import Record
from harness.text.visible import visible, visible_line

# As texts: compiled when first used, not before the first prompt.
_COMMAND = r"/\S*"
_ARGUMENT = r"(/\S+)[ \t]+(.*)"
_FILE = r"""(?:^|[\s(\[{<'"`=,;:])@(?:"([^"\n]*)|([^\s"]*))\Z"""
_WORD = r"""(?:'([^'\n]*)|"([^"\n]*)|([^\s'"|&;<>()$`]*))\Z"""
_PLAIN = r"(?a:[\w./+~^%-][\w./+~^%@,=:#-]*)"
"""A name that needs no quotes anywhere. A dot or comma at its end would count as part of the sentence."""
_SHELL_PLAIN = r"(?a:[\w./+][\w./+@%,=:-]*)"
LEAST_SEARCHED = 3
"""Minimum length of a text that is searched in the summaries of commands."""
LONGEST_SHOWN, LONGEST_OFFERED = 60, 44


class Offered(Record):
    """A possible argument of a command, as its menu shows it."""

    text: str
    """The text to insert into the line."""
    label: str
    description: str = ""
    searched: str = ""
    """Further text in which typed words are searched."""
    preview: Callable[[], Sequence[str]] | None = None
    """Function that returns lines to show while the entry is chosen. They need not be safe to display."""
    delete_line: str = ""
    """Line that the Delete key writes while the entry is chosen. Empty: the key has its usual effect."""


Menus: TypeAlias = Mapping[str, Callable[[], Sequence[Offered]]]
"""Functions that return the entries of a menu, by the name of the command."""


class LineCompleter(Completer):
    """Completes the text at the cursor. Slow sources are queried in a separate thread, never in the prompt's."""

    def __init__(
        self,
        commands: Callable[[], Sequence[tuple[str, str]]],
        files: Callable[[str], Sequence[str]],
        offers: Callable[[], Menus],
    ) -> None:
        """Use functions that return the completions.

        `commands` returns names with `/` and summaries; it is not called before a command is typed. `files` returns
        file names for a typed part. `offers` returns the menus; their entries are queried once for each line.
        """
        self._commands = commands
        self._files = files
        self._offers = offers
        self._previews: dict[str, Sequence[str]] = {}
        """Previews of this line's entries, by the text of the line."""
        self._offered_arguments: dict[str, Sequence[Offered] | None] = {}
        """Arguments of the commands of this line; `None` during the query.

        Each line has a new dictionary. A thread that an earlier line started still uses the old one.
        """

    def begin_line(self) -> None:
        """Forget the queried arguments, because a new line begins."""
        self._offered_arguments = {}
        self._previews = {}

    @property
    def is_asking(self) -> bool:
        """Whether the arguments of a command are still being queried."""
        return None in self._offered_arguments.values()

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Return the completions of the text before the cursor. Waits for files and arguments."""
        text = document.text_before_cursor
        if re.fullmatch(_COMMAND, text):
            yield from self._of_commands(text)
        elif follows := self._offering(text):
            yield from self._of_offers(*follows)
        elif text.startswith("!"):
            yield from self._of_shell(text)
        elif match := re.search(_FILE, text):
            yield from self._of_files(match)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the completions without blocking the keys.

        Uses a separate thread, because the event loop would wait for its own threads when the line is sent.
        """
        if re.fullmatch(_COMMAND, document.text_before_cursor):
            for completion in self.get_completions(document, complete_event):
                yield completion
            return
        loop = get_app().loop
        if loop is None:
            return
        answer = loop.create_future()

        def settle(completions: Sequence[Completion]) -> None:
            if not answer.done():
                answer.set_result(completions)

        def look() -> None:
            completions: Sequence[Completion] = ()
            try:
                completions = tuple(self.get_completions(document, complete_event))
            finally:
                try:
                    loop.call_soon_threadsafe(settle, completions)
                except RuntimeError:
                    pass  # the line was sent in the meantime

        threading.Thread(target=look, name="completion", daemon=True).start()
        for completion in await answer:
            yield completion

    def is_awaited(self, text: str) -> bool:
        """Return whether completions of this text are shown during typing: those of commands, arguments and `@files`."""
        if text.startswith("/"):
            return re.fullmatch(_COMMAND, text) is not None or self._offering(text) is not None
        return "@" in text and text[0] != "!" and re.search(_FILE, text) is not None

    def has_nothing(self, text: str) -> bool:
        """Return whether the query for arguments of the text's command has returned none."""
        follows = self._offering(text)
        return follows is not None and self._offered_arguments.get(follows[0]) == ()

    def preview(self, text: str) -> Sequence[str]:
        """Return the preview of the entry whose choice makes this text. Empty for other texts."""
        if text not in self._previews:
            entry = self.chosen(text)
            self._previews[text] = entry.preview() if entry is not None and entry.preview is not None else ()
        return self._previews[text]

    def chosen(self, text: str) -> Offered | None:
        """Return the entry whose choice makes this text, if its command has been queried."""
        follows = self._offering(text)
        entries = self._offered_arguments.get(follows[0]) if follows else None
        return next((entry for entry in entries or () if follows and entry.text == follows[1]), None)

    def _of_commands(self, text: str) -> Iterator[Completion]:
        typed = text[1:].lower()
        commands = self._commands()
        matches = [command for command in commands if command[0].startswith(f"/{typed}")]
        if len(typed) >= LEAST_SEARCHED:  # without a matching name, search the summaries: `/session` finds /resume
            matches = matches or [command for command in commands if typed in f"{command[0]} {command[1]}".lower()]
        for name, summary in matches:
            yield Completion(name, -len(text), display=visible_line(name), display_meta=visible_line(summary))

    def _offering(self, text: str) -> tuple[str, str] | None:
        """Return the command whose menu belongs to the text, and the text after its name. `None` without a menu."""
        match = re.fullmatch(_ARGUMENT, text)
        return (match[1].lower(), match[2]) if match and match[1].lower() in self._offers() else None

    def _of_offers(self, command: str, typed: str) -> Iterator[Completion]:
        cache = self._offered_arguments
        offered = cache.setdefault(command, None)
        if offered is None:
            try:
                offered = cache[command] = tuple(self._offers()[command]())
            finally:
                if cache.get(command) is None:
                    cache.pop(command, None)
        words = typed.lower().split()
        fitting = [argument for argument in offered if _fits(argument, words)]
        for argument in sorted(fitting, key=lambda argument: not argument.text.lower().startswith(typed.lower())):
            description = visible_line(argument.description, LONGEST_SHOWN)
            yield Completion(
                argument.text,
                -len(typed),
                display=visible_line(argument.label, LONGEST_OFFERED),
                display_meta=description,
            )

    def _of_files(self, match: re.Match[str]) -> Iterator[Completion]:
        quoted, bare = match.groups()
        typed = bare if quoted is None else quoted
        length = len(typed) + (1 if quoted is None else 2)
        for name in self._files(typed):
            yield Completion(f"@{mention(name)}", -length, display=_display_name(name))

    def _of_shell(self, text: str) -> Iterator[Completion]:
        match = re.search(_WORD, text[1:])
        typed = next((group for group in match.groups() if group is not None), "") if match else ""
        if match is None or not typed:
            return
        names = self._files(typed)
        beginning = [name for name in names if name.startswith(typed)]  # preferred, as in a shell
        for name in beginning or names:
            yield Completion(shell_word(name), -len(match[0]), display=_display_name(name))


def _fits(argument: Offered, words: Sequence[str]) -> bool:
    """Return whether every word occurs in the text, the label, the description or the searched text of an entry."""
    searched = f"{argument.text}\n{argument.label}\n{argument.description}\n{argument.searched}".lower()
    return all(word in searched for word in words)


def _display_name(name: str) -> str:
    """Return a name for the menu, safe to show. Of a long name, only the end is shown."""
    line = visible_line(name, 10 * len(name))
    return line if len(line) <= LONGEST_SHOWN else f"...{line[3 - LONGEST_SHOWN :]}"


def mention(name: str) -> str:
    """Return an unambiguous mention of a file for a prompt: the plain name, or a JSON string.

    Names with other characters than letters, digits and a few signs are quoted. Invisible characters become escapes.
    """
    if re.fullmatch(_PLAIN, name) and name[-1] not in ".,:":
        return name
    if not name.isascii() and name.isprintable() and name.replace("/", "").replace(".", "").replace("_", "").isalnum():
        return name if visible(name) == name else json.dumps(name)
    return json.dumps(name, ensure_ascii=visible_line(name, len(name)) != name)


def shell_word(name: str) -> str:
    """Return a name as one word of bash (QUOTING in bash(1)) that cannot be an option."""
    name = f"./{name}" if name[:1] in ("-", "~") else name
    if re.fullmatch(_SHELL_PLAIN, name):
        return name
    if visible_line(name, len(name)) == name:
        return "'{}'".format(name.replace("'", "'\\''"))
    return "$'{}'".format("".join(map(_shell_escape, name)))


def _shell_escape(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if visible_line(char) == char:
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode())
