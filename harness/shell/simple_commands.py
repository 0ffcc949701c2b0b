"""Turns a simple command into facets. The model of its program says what it runs, reads and writes.

A wrapper and the command that it runs are separate facets. For a command that no model covers, each word counts as a path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.actions import Access, Act, Command, PathAccess, Place
from harness.paths import is_within
from harness.programs.program import TEMPORARY_FOLDER, Found, Temporary, Unknown, Use
from harness.programs.runners import FIND_RUNS, INTERPRETERS, SHELLS, WRAPPERS, name_of
from harness.programs.variables import changes_the_shell, prints_environment
from harness.record import replace
from harness.shell.builtins import (
    BUILTINS_WITHOUT_PROGRAM,
    KNOWN_BUILTINS,
    SPECIAL_BUILTINS,
    UNKNOWN_BUILTINS,
    run_builtin,
    shows_something,
)
from harness.shell.command_line import CommandLine
from harness.shell.expansion import Expander, is_pattern
from harness.shell.loose_words import MAX_CLUSTER_LETTERS, cluster, likely_paths
from harness.shell.parser import parse
from harness.shell.printed_names import HandedNames
from harness.shell.program_use import (
    SYSTEM_FOLDERS,
    git_places,
    git_problem,
    git_remotes,
    is_steered,
    may_import,
    paths_used,
    program_of,
    use_of,
)
from harness.shell.redirections import NO_STDIN, Stdin, apply_redirections
from harness.shell.shell_state import Outcome, ShellState, StopReading, check_variable
from harness.shell.syntax import Literal, Redirection, Script, Simple, Substitution, Unread, Word

MAX_LAYERS = 6
"""Maximum nesting of wrappers and shells. Deeper nesting is opaque."""

_NAMES_ARE_FREE = (Place.INSIDE, Place.ROOT)
"""Places in which a pattern may list file names without being a path of the command."""


class SimpleCommands:
    """Reads the simple commands of a line into its facets."""

    def __init__(
        self, line: CommandLine, names: HandedNames, read_script: Callable[[Script, ShellState], Outcome]
    ) -> None:
        """Use `read_script` to read a whole script, such as the text of a `bash -c` or of an `eval`."""
        self._line = line
        self._names = names
        self._read_script = read_script
        self._run_by: tuple[tuple[str, ...], ...] = ()
        """Words of the enclosing commands that run the current one, outermost first."""

    def read(self, node: Simple, state: ShellState) -> Outcome:
        """Read a simple command of the tree. Return the states after it."""
        assigned = self._assigned(node, state) if node.assignments else state
        if not node.words:  # bash then assigns before it redirects, other shells after
            if node.assignments and any(each.target.constant is None for each in node.redirections):
                raise StopReading("an assignment beside a redirection that may hold it", node.text)
            apply_redirections(self._line, node.redirections, assigned)
            only = node.assignments[0] if len(node.assignments) == 1 else None
            temporary = _made_by_mktemp(only.value, state, certain=True) if only is not None else None
            ok = assigned if only is None or temporary is None else assigned.with_value(only.name, temporary)
            return Outcome(ok=ok, failed=assigned)
        expander = self._line.expander(state)
        argv = self._expanded(node, expander)
        if state.lines is not None:
            argv = self._names.with_line(node, argv, state.lines, state)
        argv = _with_temporary(node, argv, expander)
        stdin = NO_STDIN
        if node.redirections:
            stdin = apply_redirections(self._line, node.redirections, state, of_command=True)
        names = frozenset(each.name for each in node.assignments)
        if names and argv[0] in (*KNOWN_BUILTINS, "eval") and not (argv[0] == "read" and names == {"IFS"}):
            raise StopReading(f"a variable in front of {argv[0]}", node.text)
        inside = replace(state, exported=state.exported | names, values=assigned.values)
        if node.redirections:
            inside = inside.reading(node.redirections)
        if names and argv[0] in SPECIAL_BUILTINS:
            state = replace(state, exported=state.exported | names).forgetting(names)
        argv, *arguments = self._names.with_listed(argv, state)
        for each in arguments:
            self._command(each, node.text, inside, state, stdin=stdin, patterns=expander)
        return self._command(argv, node.text, inside, state, stdin=stdin, patterns=expander)

    def _expanded(self, node: Simple, expander: Expander) -> tuple[str, ...]:
        """Return bash's expansion of a command's words. Raises StopReading if the first of them is unknown."""
        first = node.words[0]
        if first.constant == "export":  # as in an assignment, its words are not matched against files
            if not (first.plain and all(map(_is_plain_export, node.words[1:]))):
                raise StopReading("export with words that may be split", node.text)
            return tuple(expander.value(word) for word in node.words)
        argv = tuple(self._line.expanded_words(node.words, expander))
        if is_pattern(first) or isinstance(argv[0], Unknown) or not argv[0]:
            raise StopReading("a command whose name is not plain", node.text)
        if argv[0] == "eval" and node.redirections:
            raise StopReading("a redirection of eval", node.text)
        return argv

    def _assigned(self, node: Simple, state: ShellState) -> ShellState:
        """Return the state after the assignments of a command. Each sees the values of those before it."""
        for each in node.assignments:
            if not node.words:
                check_variable(each.name, node.text)
            expander = self._line.expander(state)
            value = expander.value(each.value)
            unknown = value if isinstance(value, Unknown) else None
            known_value: str | None = value
            if unknown is not None:
                known_value = expander.temporary(each.value) or _made_by_mktemp(each.value, state, certain=False)
            state = state.with_value(each.name, known_value, integer=unknown is not None and unknown.integer)
            # In front of a command, a `$( )` in a later value gets the earlier variables in its environment.
            state = state.handing_on(each.name) if node.words else state.touching(each.name)
        return state

    def _command(
        self,
        argv: tuple[str, ...],
        text: str,
        inside: ShellState,
        after: ShellState,
        *,
        stdin: Stdin,
        patterns: Expander | None = None,
    ) -> Outcome:
        """Read one command. `inside` is the state in which it runs, `after` the state of the shell after it."""
        name = argv[0]
        if isinstance(name, Unknown | Found):
            raise StopReading("a command whose name is not plain", text)
        if name in KNOWN_BUILTINS:
            self._names.printed = None
            return run_builtin(self._line, argv, text, inside, after, stdin)
        program = program_of(name)
        use = use_of(program, argv, stdin)
        if name in UNKNOWN_BUILTINS and use.gap:
            raise StopReading(f"{name}, which changes how the rest is run", text)
        if name == "eval" and not use.gap:
            return self._eval(use, argv, text, inside, after)
        if use.gap and (program in SHELLS or name in ("exec", "eval")):
            raise StopReading(use.gap, text)
        if stdin.text is not None and program in INTERPRETERS and not use.scripts and use.act is not Act.LOOKS:
            self._add_program_text(argv, text, inside, program, stdin.text)
            return Outcome(ok=after, failed=after)
        use = self._names.with_names(program, argv, use, inside)
        self._line.layers += 1
        if self._line.layers > MAX_LAYERS:
            raise StopReading(f"more than {MAX_LAYERS} commands that run commands", text)
        self._add_command(argv, text, inside, use, stdin, patterns)
        outer = self._run_by
        self._run_by = (*outer, tuple(map(str, argv)))
        self._read_what_it_runs(program, use, inside)
        self._run_by = outer
        if use.remote:
            self._line.add_opaque("a command that another machine or a container runs", use.remote, inside)
        self._line.layers -= 1
        if name == "exit" and all(word.isdigit() for word in argv[1:2]) and len(argv) <= 2:
            return Outcome(ok=None, failed=None)
        return Outcome(ok=after, failed=after)

    def _eval(self, use: Use, argv: tuple[str, ...], text: str, inside: ShellState, after: ShellState) -> Outcome:
        """Read an `eval`. Its text runs in this shell, so its changes of folder and variables stay in effect."""
        self._names.printed = None
        self._add_command(argv, text, inside, use, NO_STDIN, None)
        outcome = Outcome(ok=after, failed=after)
        for script in use.scripts:
            outcome = self._read_text(script, text, outcome.either() or after)
        return outcome

    def _read_what_it_runs(self, program: str, use: Use, state: ShellState) -> None:
        """Read the commands and texts that a command runs."""
        if use.act not in (Act.LOOKS, Act.WRAPS) or use.login:
            # sudo, env -i and start-up files may change or unset variables.
            state = state.forgetting(frozenset((*state.values, "TMPDIR")))
        for command in use.commands:
            if command.argv[0] in BUILTINS_WITHOUT_PROGRAM:
                raise StopReading(f"{program} {command.argv[0]}", " ".join(command.argv))
            folder = state
            if command.folder:
                reals = [path.real for path in self._line.resolved(command.folder, Access.READ, state)]
                # A shell started in the current folder keeps that folder's name.
                same_folders = [
                    f for f in state.folders for p in self._line.resolved(f, Access.READ, state) if p.real in reals
                ]
                folder = replace(state, folders=tuple(dict.fromkeys((*reals, *same_folders))))
            for name in command.variables:
                folder = folder.handing_on(name)
            folder = replace(folder, elsewhere=folder.elsewhere or command.elsewhere)
            folder = folder.forgetting(frozenset(command.variables))
            self._command(command.argv, " ".join(command.argv), folder, folder, stdin=NO_STDIN)
        if use.login and is_within(self._line.disk.home, self._line.disk.root):
            raise StopReading("a login shell, whose start-up files lie in the workspace", use.scripts[0])
        for script in use.scripts:
            obeyed = next((name for name in sorted(state.exported) if changes_the_shell(name)), None)
            if obeyed is not None:
                raise StopReading(f"{obeyed} is handed to a shell, which obeys it", script)
            self._read_text(script, script, state.in_a_new_shell())

    def _read_text(self, text: str, part: str, state: ShellState) -> Outcome:
        """Read constant text that is passed to a shell. Return the states after it."""
        script = parse(text)
        if isinstance(script, Unread):
            raise StopReading(f"in the text for a shell: {script.reason}", part)
        self._line.layers += 1
        if self._line.layers > MAX_LAYERS:
            raise StopReading(f"more than {MAX_LAYERS} commands that run commands", part)
        outcome = self._read_script(script, state)
        self._line.layers -= 1
        return outcome

    def _add_program_text(
        self, argv: tuple[str, ...], text: str, state: ShellState, program: str, program_text: str
    ) -> None:
        """Add an opaque facet for an interpreter that runs a given text. For a shell, raise StopReading instead."""
        reason = f"text that {program} is given to run"
        part = text if program_text in text else f"{text}\n{program_text}"
        if program in SHELLS:
            raise StopReading(reason, part)
        self._line.add_opaque(reason, part, state, given_to=self._facet(argv, text, state))

    def _facet(self, argv: tuple[str, ...], text: str, state: ShellState) -> Command:
        """Return the facet of a command, without the facts from its model."""
        return Command(
            text=text,
            argv=tuple(word.written if isinstance(word, Temporary) else str(word) for word in argv),
            variables=tuple(sorted(state.exported)),
            folder=state.folders[0] if len(state.folders) == 1 and not state.elsewhere else "",
            run_by=self._run_by,
            fed=state.fed,
        )

    def _add_command(
        self, argv: tuple[str, ...], text: str, state: ShellState, use: Use, stdin: Stdin, patterns: Expander | None
    ) -> None:
        """Add the facet of one command. It is opaque if an unknown word or folder may change its meaning."""
        if use.gap and (_hides_more(argv) or any(isinstance(word, Unknown | Found) for word in argv)):
            self._line.add_opaque(use.gap, text, state)
            return
        if not state.folders and (use.gap or any(not path.word.startswith("/") for path in use.paths)):
            self._line.add_opaque("the folder that it runs in is not known", text, state)
            return
        paths = self._paths(argv, state, use, stdin, patterns)
        problem = use.gap
        if not problem and use.git_folder is not None:
            problem = git_problem(self._line, use.git_folder, state)
        program, act = program_of(argv[0]), use.act
        if problem:
            program, act = "", Act.UNKNOWN
        elif (use.imports and may_import(self._line, state)) or is_steered(self._line, use.obeys, state):
            act = Act.RUNS
        elif act is Act.WRAPS and shows_something(program, paths):
            act = Act.LOOKS
        opens, claimed = ((), "") if act is Act.LOOKS else git_places(self._line, argv, use, state)
        if claimed:  # treated like any other folder outside
            paths += self._line.resolved(claimed, Access.WRITE, state)
        self._line.add(
            replace(
                self._facet(argv, text, state),
                paths=tuple(dict.fromkeys(paths)),
                opens=opens,
                act=act,
                network=use.network,
                remotes=git_remotes(self._line, argv, use, state),
                needs="" if problem else use.needs,
                model=program,
                gap=problem,
            )
        )
        if not use.commands and prints_environment(program, argv):
            self._line.uses_environment(text, state)

    def _paths(
        self, argv: tuple[str, ...], state: ShellState, use: Use, stdin: Stdin, patterns: Expander | None
    ) -> list[PathAccess]:
        """Return all paths of a command: from its redirections, patterns, name and operands."""
        line = self._line
        paths = list(stdin.paths)
        for folder in patterns.folders if patterns is not None else ():
            paths += [path for path in line.resolved(folder, Access.READ, state) if path.place not in _NAMES_ARE_FREE]
        if "/" in argv[0] and argv[0].rpartition("/")[0] not in SYSTEM_FOLDERS:
            paths += line.resolved(argv[0], Access.READ, state)
        if use.gap:
            paths += [path for word in likely_paths(argv[1:]) for path in line.resolved(word, Access.EITHER, state)]
        else:
            for path in use.paths:
                paths += paths_used(line, path, use, state)
        if patterns is not None and any(path.access is not Access.READ for path in paths):
            folder_paths = (
                path for each in patterns.whole_folders for path in line.resolved(each, Access.WRITE, state)
            )
            paths = [*folder_paths, *paths]
        return paths


_TAKE_TEMPORARY = frozenset(
    "cat cmp cp cut diff egrep fgrep grep head ls mkdir mv rm sort stat tail tee touch uniq wc".split()
)
"""Programs whose operands may be known paths of the private temporary folder.

INVARIANT: each of them treats an empty operand as a file that does not exist, and none makes a link in that folder with
arguments that `_makes_no_link` accepts. So files written below such a path stay in the folder.
"""


def _with_temporary(node: Simple, argv: tuple[str, ...], expander: Expander) -> tuple[str, ...]:
    """Return the words of a command, with its variables replaced by their paths in the private temporary folder."""
    program = program_of(argv[0])
    if program not in _TAKE_TEMPORARY or len(argv) != len(node.words):
        return argv
    tried = tuple(expander.temporary(word) or value for word, value in zip(node.words, argv, strict=True))
    if not any(isinstance(word, Temporary) for word in tried):
        return argv
    use = use_of(program, tried, NO_STDIN)
    return argv if use.gap or not _makes_no_link(program, use) else tried


def _makes_no_link(program: str, use: Use) -> bool:
    """Return whether a command puts no link into the private temporary folder."""
    written = [path for path in use.paths if path.word.startswith(TEMPORARY_FOLDER) and path.access is not Access.READ]
    if program == "mv":  # a moved file may be a link
        return all(path.access is Access.EITHER for path in written)
    return program != "cp" or not any(path.tree or path.entry or path.access is Access.EITHER for path in written)


def _made_by_mktemp(value: Word, state: ShellState, *, certain: bool) -> Temporary | None:
    """Return the path that an assigned `$(mktemp)` makes, or `None` if it is not in the private temporary folder."""
    piece = value.pieces[0] if len(value.pieces) == 1 else None
    items = piece.body.items if isinstance(piece, Substitution) else ()
    node = items[0].first.commands[0] if len(items) == 1 else None
    if not isinstance(node, Simple) or items[0].text != node.text or items[0].background or node.assignments:
        return None
    argv = tuple(word.constant for word in node.words if word.constant is not None)
    if argv[:1] != ("mktemp",) or len(argv) < len(node.words) or not all(map(_hides_errors, node.redirections)):
        return None
    use = use_of("mktemp", argv, NO_STDIN)
    path = use.paths[0].word if len(use.paths) == 1 else ""
    is_private = path.startswith(TEMPORARY_FOLDER) and state.has_own_tmpdir
    return Temporary(path, certain=certain, written="$(mktemp)") if is_private else None


def _hides_errors(redirection: Redirection) -> bool:
    return redirection.descriptor == 2 and redirection.operator == ">" and redirection.target.constant == "/dev/null"


def _is_plain_export(word: Word) -> bool:
    """Return whether bash does not split a word of `export`: it is constant, or begins with an unquoted `NAME=`."""
    begin = word.pieces[0] if word.pieces else None
    return word.constant is not None or (isinstance(begin, Literal) and not begin.quoted and "=" in begin.text)


def _hides_more(argv: Sequence[str]) -> bool:
    """Return whether a command that no model covers may run or read more than its words show. It is then opaque."""
    name = name_of(argv[0])
    if name in WRAPPERS or name in SHELLS or (name == "find" and not FIND_RUNS.isdisjoint(argv)):
        return True
    if any(len(cluster(word)) > MAX_CLUSTER_LETTERS + 1 for word in argv[1:]):
        return True
    if name in ("printf", "test", "["):
        return any(word.startswith("-v") for word in argv[1:])
    return name == "git" and any(_steers_git(word) for word in argv[1:])


def _steers_git(word: str) -> bool:
    """Return whether a word is more to git than a path (gitglossary(7), pathspec), or a format that runs gpg (`%G`)."""
    magic = word.startswith((":(", ":!", ":^", ":/")) or (word[0:1] != "-" and not set("*?[").isdisjoint(word))
    return magic or "%G" in word
