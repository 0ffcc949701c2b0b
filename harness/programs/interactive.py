"""Commands that read keys. A user who types one wants to use it in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.programs.runners import from_subcommand, name_of

_ALWAYS = frozenset(
    "vi vim nvim view vimdiff nano pico emacs micro joe mg hx kak helix less more most man info top htop btop atop tig "
    "lazygit gitui mc ranger nnn lf fzf tmux screen gdb lldb pudb ipython bpython ncdu".split()
)
_ALONE = frozenset("python python3 node irb ghci lua julia sh bash zsh fish psql mysql sqlite3 redis-cli".split())
"""Programs that read keys if they have no arguments."""
_PICKS = frozenset("add checkout restore reset stash commit".split())
"""Git subcommands with options to select hunks interactively."""
_SAID = ("--message", "--file", "--reuse-message", "--fixup", "--squash", "--no-edit", "--dry-run")
"""Options with which `git commit` needs no editor for the message."""
_TAKE_A_WORD = frozenset("mFCct")
"""Letters of `git commit` that take a value."""


def asks_for_keys(argv: Sequence[str], *, fed: bool = False) -> bool:
    """Return whether a command is known to read keys from the terminal. `fed` means that its input is redirected.

    A pure function.
    """
    if not argv:
        return False
    name = name_of(argv[0])
    if name == "git":
        return _git_asks(from_subcommand(argv))
    return name in _ALWAYS or (name in _ALONE and len(argv) == 1 and not fed)


def _git_asks(words: Sequence[str]) -> bool:
    command, *arguments = words or ("",)
    long = [word for word in arguments if word.startswith("--")]
    short = {letter for word in arguments if word[:1] == "-" and word[:2] != "--" for letter in _letters(word)}
    if command in _PICKS and (short & {"p", "i"} or {"--patch", "--interactive"} & set(long)):
        return True
    if command in ("add", "commit") and ("e" in short or "--edit" in long):
        return True
    if command == "commit":
        return not short & {"m", "F", "C"} and not any(word.startswith(_SAID) for word in long)
    return command == "mergetool" or (command == "rebase" and ("i" in short or "--interactive" in long))


def _letters(word: str) -> Iterator[str]:
    """Yield the option letters in a word, up to the first letter that takes a value."""
    for letter in word[1:]:
        yield letter
        if letter in _TAKE_A_WORD:
            return
