"""Shells and the builtins that run their words: which text is run, and which of it is read as bash reads it; pure.

Only the text of `-c` and of `eval` is vouched for. What a shell reads from a file is code that nobody reads, and what it
reads from its input is a gap here.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.code_files import argument_paths
from harness.programs.model import Found, Parsed, PathUse, Program, Unknown, Use, gap
from harness.programs.refinements import read_alike, with_command, wraps
from harness.record import Record

_OPTIONS = frozenset(("errexit", "nounset", "pipefail", "xtrace", "verbose"))
_LETTERS = frozenset("ceuxvno")


class _Started(Record):
    """How a shell is started: its options, and the words after them."""

    letters: str
    names: tuple[str, ...]
    words: tuple[str, ...]


def _started(argv: Sequence[str]) -> _Started | str:
    """Return options and words of a shell, or why they cannot be told. `-o` takes the next word, wherever it stands."""
    letters: list[str] = []
    names: list[str] = []
    position = 1
    while position < len(argv):
        word = argv[position]
        if isinstance(word, Unknown) and (not word.single or word.prefix[:1] in ("", "-", "+")):
            return f"{word} may be an option"
        if isinstance(word, Unknown | Found) or word[:1] not in ("-", "+"):
            break
        position += 1
        if word == "--":
            break
        if word in ("--norc", "--noprofile"):
            continue
        if word[0] == "+" or len(word) == 1 or not _LETTERS.issuperset(word[1:]):
            return f"the option {word} is not in its model"
        letters += word[1:]
        for _ in range(word.count("o")):
            if position >= len(argv) or argv[position] not in _OPTIONS or isinstance(argv[position], Unknown | Found):
                return "its model does not know what -o sets"
            names.append(argv[position])
            position += 1
    return _Started(letters="".join(letters), names=tuple(names), words=tuple(argv[position:]))


def _shell(argv: Sequence[str], *, is_bash: bool) -> Use:
    if len(argv) == 2 and argv[1] in ("--version", "--help") and not isinstance(argv[1], Unknown | Found):
        return Use(act=Act.LOOKS)
    started = _started(argv)
    if isinstance(started, str):
        return gap(started)
    if not started.words:
        return gap("it runs what its input says")
    first, arguments = started.words[0], started.words[1:]
    if "c" not in started.letters:
        return _file(started, first, arguments)
    if isinstance(first, Unknown | Found):
        return gap(f"the text {first} is not known")
    if "n" in started.letters:
        return gap("its model does not vouch for -n with -c")
    if arguments and "$" in first:
        return gap("text that uses the words behind it")
    if "PS4" in first and ("x" in started.letters or "xtrace" in started.names):
        return gap("PS4, which is run for each traced command")
    if not is_bash and not read_alike(first):
        return gap("text that sh may read otherwise than bash")
    return Use(act=Act.WRAPS, scripts=(str(first),))


def _file(started: _Started, file: str, arguments: tuple[str, ...]) -> Use:
    if isinstance(file, Unknown | Found):
        return gap(f"the script {file} is not known")
    script = PathUse(word=file, access=Access.READ)
    if "n" in started.letters:  # reads the commands and runs none: bash(1), set -n
        return Use(act=Act.LOOKS, paths=(script,)) if started.letters == "n" else gap("-n among other options")
    paths = argument_paths(arguments)
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=(script, *paths))


def _bash(argv: Sequence[str]) -> Use:
    return _shell(argv, is_bash=True)


def _sh(argv: Sequence[str]) -> Use:
    return _shell(argv, is_bash=False)


def _other_shell(argv: Sequence[str]) -> Use:
    """Shells whose language is another than bash's: `=cmd` and `*(e:..:)` of zsh, everything of fish and csh."""
    if len(argv) == 2 and argv[1] == "--version" and not isinstance(argv[1], Unknown | Found):
        return Use(act=Act.LOOKS)
    first = argv[1] if len(argv) > 1 else "-"
    if isinstance(first, Unknown | Found) or first[:1] in ("-", "+"):
        return gap("a shell whose language is not read")
    return _file(_Started(letters="", names=(), words=()), first, tuple(argv[2:]))


def _eval(argv: Sequence[str]) -> Use:
    """`eval` joins its words with blanks and runs them in the very shell that it stands in (POSIX.1-2024, XCU 2.15)."""
    words = argv[2:] if len(argv) > 1 and argv[1] == "--" else argv[1:]
    unclear = next((word for word in words if isinstance(word, Unknown | Found)), None)
    if unclear is not None:
        return gap(f"eval of {unclear}, which is not known")
    if words and words[0].startswith("-") and len(words) == len(argv) - 1:
        return gap(f"the option {words[0]} is not in its model")
    text = " ".join(words)
    return Use(act=Act.WRAPS, scripts=(text,)) if text.strip() else Use(act=Act.LOOKS)


def _command(parsed: Parsed, use: Use) -> Use:
    if parsed.has("-v", "-V"):
        return Use(act=Act.LOOKS)
    return with_command(parsed, use)


_OTHER_SHELL = Program(read=_other_shell)

PROGRAMS = {
    "bash": Program(read=_bash),
    "sh": Program(read=_sh),
    "dash": Program(read=_sh),
    "ash": Program(read=_sh),
    **dict.fromkeys(("zsh", "ksh", "mksh", "fish", "csh", "tcsh", "yash", "rbash"), _OTHER_SHELL),
    "eval": Program(read=_eval),
    "command": wraps(
        "-v -V",  # -p: another PATH
        refine=_command,
    ),
    "builtin": wraps(),
    "exec": wraps(),  # -a: another name, on which what some programs do hangs; -c: no environment; -l: a login
}
