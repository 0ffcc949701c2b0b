"""Named lists: the table `[lists]` of a policy file. A word `@name` means the entries of a list. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import nearest
from harness.regex import regex

_NAME = regex(r"@(@?)([A-Za-z][A-Za-z0-9_-]*)")
_NESTED = "argv"
"""The key whose inner lists are choices. A named list is one choice there."""
KEYS = ("argv", "flags", "options", "env", "path", "except", "host", "tool", "write", "network")
"""Keys of a rule whose values may name a list."""


class Lists:
    """The lists that the rules of one file can name: the file's own, and those of the files that it extends.

    An own list hides one of the same name in an extended file. It changes no rule of that file.
    """

    def __init__(self, entries_of: Mapping[str, Sequence[str]] | None = None, extended: Sequence[Lists] = ()) -> None:
        self._entries_of = entries_of or {}
        self._choices: dict[str, dict[tuple[str, ...], None]] = {}
        """The contents of each list, by name. Several if files differ."""
        for lists in extended:
            for name, contents in lists._choices.items():  # noqa: SLF001 - of its own class
                self._choices.setdefault(name, {}).update(contents)

    def settle(self, name: str) -> None:
        """Resolve an own list and the lists that it names. Raises ValueError if one is unknown or contains itself."""
        if not _list_name(f"@{name}"):
            raise ValueError("a list's name has letters, digits, - and _, and begins with a letter")
        if not self._entries_of[name]:
            raise ValueError("must not be empty")
        self._choices[name] = {self._entries(self._entries_of[name], (name,)): None}

    def texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return texts with the entries of each named list in its place. Raises ValueError for an unknown list."""
        return self._entries(texts, ())

    def value(self, key: str, value: object) -> object:
        """Return the value of a rule's key with its lists in place. Raises ValueError for an unknown list."""
        if key not in KEYS or not isinstance(value, list) or "@" not in str(value):
            return value
        if key != _NESTED:
            return [entry for item in value for entry in (self.texts((item,)) if isinstance(item, str) else (item,))]
        return [self._choice(item) for item in value]

    def _choice(self, item: object) -> object:
        """Return an element of `argv`: a word, or the list of its choices."""
        if isinstance(item, str):
            entries = self.texts((item,))
            return [*entries] if _list_name(item) else entries[0]
        if isinstance(item, list) and all(isinstance(word, str) for word in item):
            return [*self.texts(item)]
        return item

    def _entries(self, texts: Sequence[str], road: tuple[str, ...]) -> tuple[str, ...]:
        """Return texts with lists in place. `road` are the own lists that are being resolved."""
        entries: list[str] = []
        for text in texts:
            name = _list_name(text)
            if not name:
                entries.append(text[1:] if text.startswith("@@") and _NAME.fullmatch(text) else text)
            elif name in road:
                raise ValueError(f"the list {road[0]!r} contains itself")
            elif name in self._entries_of:
                entries += self._entries(self._entries_of[name], (*road, name))
            else:
                entries += self._extended(name, text)
        return tuple(dict.fromkeys(entries))

    def _extended(self, name: str, text: str) -> tuple[str, ...]:
        contents: list[tuple[str, ...]] = [*self._choices.get(name, ())]
        if not contents:
            names = sorted({*self._entries_of, *self._choices})
            hint = nearest(name, names) if names else "; the file has no [lists]"
            raise ValueError(f'{text!r} is an unknown list{hint} (for the word itself write "@{text}")')
        if len(contents) > 1:
            raise ValueError(f"the list {name!r} differs between the extended files: define one of this name here")
        return contents[0]


def as_word(text: str) -> str:
    """Return the spelling of a word in a policy file: `@@acme` for `@acme`, which would name a list."""
    return f"@{text}" if _NAME.fullmatch(text) else text


def _list_name(text: str) -> str:
    """Return the name of the list that a text means. Empty for any other text."""
    match = _NAME.fullmatch(text)
    return str(match.group(2)) if match and not match.group(1) else ""
