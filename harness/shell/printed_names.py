"""File names that one command prints and another reads: `git ls-files | head | xargs grep x`.

`HandedNames` puts the names that a command prints (programs/listings.py) into the next command.
"""

from __future__ import annotations

from harness.actions import Access, Act, Place
from harness.paths import SHELL_SPLITS, XARGS_SPLITS, is_plain_name
from harness.programs.catalog import is_known, names_for
from harness.programs.listings import names_printed
from harness.programs.program import FileNames, Found, Incoming, Inner, Listed, Use
from harness.programs.variables import steers
from harness.record import replace
from harness.regex import regex
from harness.shell.builtins import BUILTINS_WITHOUT_PROGRAM
from harness.shell.command_line import CommandLine
from harness.shell.loops import Lines
from harness.shell.program_use import program_of, use_of
from harness.shell.redirections import NO_STDIN
from harness.shell.shell_state import ShellState
from harness.shell.syntax import Simple

_BEGINS_A_PATH = regex(r"[\w./]")
"""First character of a name that programs cannot take for an option (such as `-odir/f`)."""
_SPLITS = {" ": XARGS_SPLITS, "*": SHELL_SPLITS}
_LOOKED_AT = (Place.INSIDE, Place.ROOT, Place.ADDED)


class HandedNames:
    """Replaces words whose value only bash knows at run time with known sets of file names.

    Such words are the input of xargs, a `$(git ls-files)`, and the variable of a loop over names.
    """

    def __init__(self, line: CommandLine) -> None:
        self._line = line
        self.pipeline_layer = 0
        """Nesting level of the current pipeline (see `CommandLine.layers`)."""
        self.printed: FileNames | None = None
        """Facts about the names that the last command of the pipeline prints. `None` if they are unknown."""

    def with_names(self, program: str, argv: tuple[str, ...], use: Use, state: ShellState) -> Use:
        """Return the use of a command in a pipeline, with its input names filled in. Store the names that it prints."""
        if self._line.layers != self.pipeline_layer or state.lines is not None:
            return use
        if use.commands and state.names is not None and not use.gap:  # xargs
            inner = use.commands[0]
            runs = self._runs(inner, state.names, state)
            if runs:
                use = replace(use, commands=tuple(replace(inner, argv=words) for words in runs))
        self.printed = self._names_of(program, argv, use, state)
        return use

    def with_listed(self, argv: tuple[str, ...], state: ShellState) -> tuple[tuple[str, ...], ...]:
        """Return the words of a command for each of its possible runs.

        If the last word is a `$(git ls-files)` and the command only reads those files, it is replaced with their names.
        """
        last = argv[-1]
        if (
            not isinstance(last, Listed)
            or argv[0] in BUILTINS_WITHOUT_PROGRAM
            or any(isinstance(w, Incoming) for w in argv[:-1])
        ):
            return (argv,)
        return self._runs(Inner(argv=argv, takes="*", empty=True), last.names, state) or (argv,)

    def _runs(self, inner: Inner, names: FileNames, state: ShellState) -> tuple[tuple[str, ...], ...]:
        """Return the words of a command, with its incoming words replaced with known names.

        If the command may run without names and then reads other files, its words without names follow. Empty if the
        command may do more than read files.
        """
        if not self._can_take(inner, names, state):
            return ()
        found_name = Found(
            "$(...)" if inner.takes == "*" else "(words of xargs)", names=names_for(program_of(inner.argv[0]), names)
        )
        once: list[str] = []
        more: list[str] = []
        for word in inner.argv:
            once.append(found_name if isinstance(word, Incoming) else word)
            # Try two names as well, since a program may treat a second one differently (uniq writes it).
            more += [found_name, found_name] if isinstance(word, Incoming) and not word.single else once[-1:]
        without = tuple(word for word in once if word is not found_name)
        tried = (tuple(once), tuple(more), *([without] if inner.empty else []))
        if not all(map(self._only_looks, tried)):
            return ()
        alone = inner.empty and self._use(without).paths  # without names it reads other files
        return (tuple(once), without) if alone else (tuple(once),)

    def with_line(self, node: Simple, argv: tuple[str, ...], lines: Lines, state: ShellState) -> tuple[str, ...]:
        """Return the words of a command in a loop over names.

        If the command only reads the named file, the loop's variable is replaced with the names.
        """
        names = state.names
        if names is None or len(argv) != len(node.words):
            return argv
        program = program_of(argv[0])
        found_name = Found(f"${lines.variable}", names=names_for(program, names))
        tried = tuple(
            found_name if lines.is_line(word) else value for word, value in zip(node.words, argv, strict=True)
        )
        inner = Inner(argv=tried, takes=lines.takes)
        if found_name not in tried or not self._can_take(inner, names, state) or not self._only_looks(tried):
            return argv
        return tried

    def _names_of(self, program: str, argv: tuple[str, ...], use: Use, state: ShellState) -> FileNames | None:
        """Return the facts about the names that a command prints. For xargs, those that the command it runs prints."""
        if use.gap or any(map(steers, state.exported)):
            return None
        if program != "xargs":
            return names_printed(program, argv, state.names, fed=state.fed)
        first, *more = use.commands
        if more or first.together or not any(isinstance(word, Found) for word in first.argv):
            return None
        return names_printed(program_of(first.argv[0]), first.argv, None, fed=False)

    def _can_take(self, inner: Inner, names: FileNames, state: ShellState) -> bool:
        """Return whether xargs (or a shell) passes the names on unchanged, and the command takes each as a file."""
        split = _SPLITS.get(inner.takes, "")
        if not inner.takes or (inner.takes == "\0") is not names.nul or self._line.disk_changed or not state.folders:
            return False
        program = program_of(inner.argv[0])
        if names.bare and not is_known(program, "files") and (names.folders or program != "rg"):
            return False
        if not all(_BEGINS_A_PATH.match(start) and is_plain_name(start, split=split) for start in names.starts):
            return False
        places = [path for start in names.starts for path in self._line.resolved(start, Access.READ, state)]
        is_covered = all(path.place in _LOOKED_AT for path in places)
        if not is_covered or (names.lists_names and any(self._line.disk.is_folder(path.real) for path in places)):
            return False
        if names.tracked is not None:
            return all(
                self._line.disk.plain_tracked(path.real, names.tracked, split=split, nul=names.nul) for path in places
            )
        return all(
            self._line.disk.plain_below(
                path.real,
                only=names.only,
                skips=names.skips,
                excluded=names.excluded,
                split=split,
                bare=names.bare,
            )
            for path in places
        )

    def _only_looks(self, argv: tuple[str, ...]) -> bool:
        """Return whether a command only reads the files that its operands name."""
        use = self._use(argv)
        more = use.gap or use.network or use.commands or use.scripts or use.remote
        return not more and use.act is Act.LOOKS and all(path.access is Access.READ for path in use.paths)

    def _use(self, argv: tuple[str, ...]) -> Use:
        return use_of(program_of(argv[0]), argv, NO_STDIN)
