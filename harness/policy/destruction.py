"""Irreversible deletions and overwrites by a call, in words for the approval prompt.

This code forbids no call: rules do that. It prefers wrong hits to missed ones, since a wrong hit only makes the user
type a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.actions import Access, Act, Action, Command, Facet, Opaque, PathAccess, Place, ToolUse, Unconfined
from harness.programs.losses import losses, program_named
from harness.regex import regex
from harness.text.visible import visible_line

_CODE = regex(
    r"\b(?:rmtree|os\.remove|fs\.rm(?:Sync|dir)?|rmSync|unlink(?:Sync)?|rm_rf|remove_dir_all|remove_tree|File\.delete|FileUtils\.rm"
    r"|drop\s+(?:table|database|schema|owned|view|index|user|role)|truncate\s+table|delete\s+from"
    r"|dropDatabase|deleteMany|flushall|flushdb)\b",
    re.IGNORECASE,
)
"""Destructive code in the text for an interpreter or a database."""
_WINDOW = 200
"""Number of words after a program's name that count as its operands, in text that is only searched."""
_OFTEN = 50
"""Number of times that a text names a program before the window shrinks to a tenth. Limits the work on long texts."""
_PIECES = regex(r"[\s;&|()`'\"]+")
_EMPTIES = regex(r"(?<![>&\d])>\|?\s*[^>&\s]")
"""Redirection that overwrites a file (Bash manual, 3.6.2)."""
_PRINT_NOTHING = ((":",), ("true",), ("cat", "/dev/null"), ("echo", "-n"))
_DELETES_ALL = frozenset(("d", "1,$d"))
"""Scripts of sed that delete all lines."""
_FED_NOTHING = regex(r"(?<!<)<\s*/dev/null")
_REMOVES = frozenset(("rm", "unlink"))
_PUBLISHES = regex(
    r"(?:(?:npm|pnpm|bun|cargo|poetry|uv|flit|hatch|vsce|lerna) publish|yarn (?:npm )?publish|twine upload|gem push"
    r"|(?:docker|podman|helm) push|mvn deploy|dotnet nuget push|gh release create)(?!\S)"
)
"""Commands that make something public, without its registry taking it back."""
_TAKES_TEXT = frozenset("git patch gh glab curl http xh mail tee".split())
"""Programs that do not execute their input, such as a diff."""


def destroys(action: Action) -> tuple[str, ...]:
    """Return the irreversible effects of `action`, one sentence each. Empty without known ones.

    Commands inside wrappers count too. Text that could not be parsed counts as destructive if it names a destructive
    program. The writes of file tools do not count, since undo can restore the old content.
    """
    parts = tuple(action.all_facets())
    sentences = [reason for facet in parts for reason in _of_facet(action, facet)]
    fed = [facet for facet in parts if isinstance(facet, Command) and _obeys_what_it_is_fed(facet)]
    if fed:
        sentences += _of_fed(frozenset(program_named(command.argv[0]) for command in fed), action.text)
    if action.text.lstrip().startswith(">") and _EMPTIES.match(action.text.lstrip()):
        sentences.append("a file is emptied")
    return tuple(dict.fromkeys(map(visible_line, sentences)))


def _of_facet(action: Action, facet: Facet) -> Iterator[str]:
    match facet:
        case Command():
            yield from _of_command(facet)
        case Opaque():
            for words in facet.commands:
                yield from _of_loose(words, is_understood=False)
            yield from _of_code(facet.text)
        case PathAccess():
            outside = facet.place in (Place.ABOVE, Place.OUTSIDE, Place.ADDED)
            if facet.access is Access.WRITE and facet.tree and outside and action.cwd:
                yield "a whole folder outside of the workspace is written"
        case ToolUse():
            if facet.says_destroys:
                yield f"the server of {facet.tool} says that it may destroy"
        case Unconfined():
            # Running unconfined destroys nothing yet. Users who must type the word too often type it unread.
            return


def _of_command(command: Command) -> Iterator[str]:
    yield from losses(command.argv)
    if _empties_files(command):
        yield "a file is emptied"
    # `grep rm` only searches text, but `ssh host 'rm -r x'` runs it. A commit message is not a command; a git alias is.
    if program_named(command.argv[0]) != "git":
        if command.act in (Act.WRAPS, Act.RUNS, Act.UNKNOWN):
            yield from _of_text(" ".join(command.argv[1:]))
    else:
        for word in command.argv[1:]:
            alias = word.partition("!")
            if alias[1] and (not alias[0] or alias[0].endswith("=")):
                yield from _of_text(alias[2])


def _empties_files(command: Command) -> bool:
    name, words = program_named(command.argv[0]), command.argv[1:]
    if name == "sed":
        return any(word.startswith(("-i", "--in-place")) for word in words) and not _DELETES_ALL.isdisjoint(words)
    if name == "tee":
        return bool(_FED_NOTHING.search(command.text)) and not {"-a", "--append"}.intersection(words)
    return command.argv in _PRINT_NOTHING and bool(_EMPTIES.search(command.text))


def removed(action: Action) -> tuple[PathAccess, ...]:
    """Return the single files that commands remove by name. The removal of several, or of a folder, is in `destroys`."""
    commands = [facet for facet in action.all_facets() if isinstance(facet, Command)]
    removals = [each for each in commands if program_named(each.argv[0]) in _REMOVES and not [*losses(each.argv)]]
    return tuple(path for each in removals for path in each.paths if path.access is Access.WRITE)


def publications(action: Action) -> tuple[str, ...]:
    """Return the commands that publish for good, each in its first words."""
    lines: list[Sequence[str]] = []
    for facet in action.all_facets():
        lines += [facet.argv] if isinstance(facet, Command) else facet.commands if isinstance(facet, Opaque) else []
    first_words = (" ".join((program_named(line[0]), *line[1:3])) for line in lines if line)
    matches = (_PUBLISHES.match(words) for words in first_words)
    return tuple(dict.fromkeys(match.group() for match in matches if match))


def _obeys_what_it_is_fed(command: Command) -> bool:
    """Return whether a command may execute its input: text of the line, or the output of `echo`."""
    return (
        command.fed and command.act not in (Act.LOOKS, Act.WRITES) and program_named(command.argv[0]) not in _TAKES_TEXT
    )


def _of_fed(names: frozenset[str], text: str) -> Iterator[str]:
    yield from _of_text(text)
    words = [piece for piece in _PIECES.split(text) if piece]
    for name in sorted(names):
        yield from losses((name, *words))


def _of_text(text: str) -> Iterator[str]:
    """Yield the irreversible effects of text that some program runs."""
    yield from _of_loose([piece for piece in _PIECES.split(text) if piece], is_understood=True)
    yield from _of_code(text)


def _of_loose(words: Sequence[str], *, is_understood: bool) -> Iterator[str]:
    """Yield the irreversible effects if any word starts a command. Without `is_understood`, some names alone suffice.

    A program found destructive is not tried again, since a text may name it ten thousand times.
    """
    reported: set[str] = set()
    tried: dict[str, int] = {}
    for index, word in enumerate(words):
        name = program_named(word)
        if name in reported:
            continue
        tried[name] = tried.get(name, 0) + 1
        rest = words[index : index + (_WINDOW if tried[name] < _OFTEN else _WINDOW // 10)]
        reasons = list(losses(rest))
        if not is_understood and name == "rm":
            reasons.append("it names rm, and was not plainly understood")
        if not is_understood and name == "git" and _GIT_DOUBTS.intersection(rest):
            reasons.append("it names git with a word that destroys, and was not plainly understood")
        if reasons:
            reported.add(name)
        yield from reasons


_GIT_DOUBTS = frozenset("--hard --force -f -D --delete --mirror clean restore stash expire prune".split())


def _of_code(text: str) -> Iterator[str]:
    if match := _CODE.search(text[:1_000_000]):
        yield f"the text that it runs says {' '.join(match.group().split())}"
