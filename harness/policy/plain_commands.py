"""Commands as written in rules, parsed alone and in an empty workspace. Decides which of them an auto rule can have."""

from __future__ import annotations

from functools import lru_cache
from posixpath import join, normpath

from harness.actions import Access, Command, Facet, PathAccess, Place
from harness.policy.argv_pattern import ArgvPattern
from harness.policy.granted_programs import LEAVES
from harness.policy.spellings import OPERAND_FLAGS, STAR
from harness.programs.git_pathspecs import ShownFiles
from harness.programs.leading import runs_code, value_problem
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS, is_one_of, name_of
from harness.record import replace


def plain_command(words: tuple[str, ...]) -> Command | None:
    """Return these words parsed as one command. `None` if it runs another command or controls the shell."""
    from harness.shell.builtins import KNOWN_BUILTINS, UNKNOWN_BUILTINS

    name = name_of(words[0])
    if name in WRAPPERS or name in SHELLS or name in KNOWN_BUILTINS or name in UNKNOWN_BUILTINS:
        return None
    (first, *more) = _read_words(words)
    return first if not more and isinstance(first, Command) and first.argv == tuple(words) else None


def _read_words(words: tuple[str, ...]) -> tuple[Facet, ...]:
    from harness.shell.facets import read_commands

    quoted = ("'" + word.replace("'", "'\\''") + "'" for word in words[1:])
    return read_commands(" ".join((words[0], *quoted)), EXAMPLE_DISK)


def _runs_another(words: tuple[str, ...]) -> bool:
    """Return whether the words are a program followed by a command or a script that it runs."""
    first, *more = _read_words(words)
    is_program = isinstance(first, Command) and first.argv == words
    return is_program and (bool(more) or (name_of(words[0]) in SHELLS and len(words) > 1))


def _remedy(words: tuple[str, ...]) -> str:
    """Return the advice to the author of a rule for these words. Empty if there is none."""
    leaves, runs_another = name_of(words[0]) in LEAVES, _runs_another(words)
    if leaves and not runs_another:
        return ": it acts outside the workspace, so let a person decide on it"
    walls = "" if leaves else 'write `walls = "workspace"`, or '
    return f": {walls}have the command behind it called by itself, and write a rule for that" if runs_another else ""


@lru_cache(maxsize=20_000)  # a file of the largest size has fewer rules
def plain_rule_command(words: tuple[str, ...]) -> Command | None:
    """Return `plain_command` of a rule's words. Cached, since the loader and `policy check` both call it."""
    return plain_command(words)


def auto_argv_problem(argv: ArgvPattern) -> tuple[str, str] | None:
    """Return the key and the reason why no auto rule can have these words. `None` if one can.

    Programs that run code from their operands are refused, unless the words fix the script or the module.
    """
    for flag in OPERAND_FLAGS.keys() & set(argv.flags or ()):
        return "flags", f"{flag} is for stricter rules: an auto rule names its operands"
    for flag in argv.flags or ():
        if "=" in flag and STAR in flag:
            return "flags", f"{flag}: an auto rule takes flags as written; write it in `options`"
    if problem := options_problem(argv):
        return problem
    for option in argv.options or ():
        if any(runs_code(program, option.partition("=")[0]) for program in argv.tokens[0]):
            return (
                "options",
                f"{option} may make the program run something else; no auto rule without walls may list it",
            )
    steering = next((word for word in argv.tokens[0] if is_one_of(word, INTERPRETERS)), None)
    if steering is not None and not _fixes_script(argv):
        operand = "the target" if name_of(steering) == "make" else "the script, or -m and the module"
        return "argv", f"{steering} runs whatever its operands say; name {operand}"
    for program in argv.tokens[0]:
        words = (program, *(token[0] for token in argv.tokens[1:]))
        if plain_rule_command(words) is None:
            return "argv", f"{program} is never understood well enough for an auto rule{_remedy(words)}"
    return None


def options_problem(argv: ArgvPattern) -> tuple[str, str] | None:
    """Return the key and the reason why a rule cannot have its options before the subcommand. `None` if it can."""
    if argv.options and len(argv.tokens) < 2:
        return "options", "is about options before the second word of `argv`: name that word, or write them in `flags`"
    problems = (value_problem(program, option) for program in argv.tokens[0] for option in argv.options or ())
    problem = next(filter(None, problems), "")
    return ("options", problem) if problem else None


def _fixes_script(argv: ArgvPattern) -> bool:
    """Return whether every alternative after the program is a script's name, or `-m` followed by a module."""
    if len(argv.tokens) < 2:
        return not argv.rest
    first = argv.tokens[1]
    if all(not word.startswith("-") for word in first):
        return True
    return first == ("-m",) and len(argv.tokens) > 2 and all(not word.startswith("-") for word in argv.tokens[2])


class _ExampleDisk:
    """A stub of an empty disk without links. The workspace is /workspace, the home folder /home/user."""

    root = "/workspace"
    home = "/home/user"

    def resolve(self, word: str, access: Access, cwd: str | None = None, *, entry: bool = False) -> PathAccess:
        real = normpath(join(cwd or self.root, word))
        inside = real.startswith("/workspace/")
        name = real[len("/workspace/") :] if inside else "." if real == "/workspace" else real
        place = Place.INSIDE if inside else Place.ROOT if name == "." else Place.OUTSIDE
        return PathAccess(written=word, real=real, names=(name,), access=access, place=place, entry=entry)

    def resolve_word(
        self, word: str, access: Access, cwd: str | None = None, *, entry: bool = False
    ) -> PathAccess | None:
        return self.resolve(word, access, cwd, entry=entry) if word else None

    def look_below(self, path: PathAccess, **_narrowing: object) -> PathAccess:
        return replace(path, tree=True)

    def look_tracked(self, path: PathAccess, selection: ShownFiles, **_options: object) -> PathAccess:  # noqa: ARG002 - nothing is tracked
        return replace(path, tree=True)

    def plain_tracked(self, folder: str, selection: ShownFiles, **_options: object) -> bool:  # noqa: ARG002 - likewise
        return True

    def exists(self, path: str) -> bool:  # noqa: ARG002 - the disk is empty
        return False

    def plain_below(self, folder: str, **_narrowing: object) -> bool:  # noqa: ARG002 - the disk is empty
        return True

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - the disk is empty
        return False

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:  # noqa: ARG002 - likewise
        return ()

    def git_problem(self, folder: str, cwd: str) -> str | None:  # noqa: ARG002 - likewise
        return None

    def git_top(self, folder: str, cwd: str) -> str:  # noqa: ARG002 - likewise
        return self.root

    def git_places(self, folder: str, cwd: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:  # noqa: ARG002 - likewise
        return (), ""

    def git_remotes(self, folder: str, cwd: str) -> tuple[str, ...]:  # noqa: ARG002 - likewise
        return ()


EXAMPLE_DISK = _ExampleDisk()
