"""A simple command to facets: what it runs, reads and writes, by the model of its program, layer by layer; pure.

A wrapper and the command that it runs are a facet each. What no model covers keeps its words, all taken for paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Act, Command, PathAccess, Place
from harness.programs.catalog import model_of
from harness.programs.model import Found, Unknown, Use, gap
from harness.programs.options import read_command
from harness.programs.runners import FIND_RUNS, INTERPRETERS, PLAIN_WRAPPERS, SHELLS, WRAPPERS
from harness.programs.shared import read_alike
from harness.programs.variables import changes_the_shell
from harness.record import replace
from harness.shell.builtins import (
    GO_ELSEWHERE,
    NO_PROGRAMS,
    SHELL_BUILTINS,
    SPECIAL_BUILTINS,
    STEERS_THE_SHELL,
    after_builtin,
)
from harness.shell.expand import Expander
from harness.shell.loose_reading import MAX_CLUSTER_LETTERS, cluster, likely_paths
from harness.shell.parser import parse
from harness.shell.parts import Stdin, is_pattern
from harness.shell.printed_names import SYSTEM_FOLDERS, HandedNames, program_of
from harness.shell.state import Outcome, State, StopReading, either_folder
from harness.shell.syntax import Literal, Simple, Unread, Word

MAX_LAYERS = 6
"""Wrappers around wrappers, and shells in shells; deeper is opaque."""

_NAMES_ARE_FREE = (Place.INSIDE, Place.ROOT)
"""Where the names that a pattern stands for may be told."""


class SimpleCommands(HandedNames):
    """Reads simple commands into its facets."""

    def simple(self, node: Simple, state: State) -> Outcome:
        """Read a simple command as it stands in the tree; return what is known behind it."""
        assigned = self.assigned(node, state)
        if not node.words:  # then bash assigns before it redirects, and others after
            if node.assignments and any(each.target.constant is None for each in node.redirections):
                raise StopReading("an assignment beside a redirection that may hold it", node.text)
            self.redirected(node.redirections, assigned)
            return Outcome(ok=assigned, failed=assigned)
        expander = self.expander(state)
        argv = self.with_line(node, self.expanded(node, expander), state)
        stdin = self.redirected(node.redirections, state, commandless=False)
        names = frozenset(each.name for each in node.assignments)
        if names and argv[0] in (*SHELL_BUILTINS, "eval") and not (argv[0] == "read" and names == {"IFS"}):
            raise StopReading(f"a variable in front of {argv[0]}", node.text)
        inside = replace(state, exported=state.exported | names, values=assigned.values).reading(node.redirections)
        if names and argv[0] in SPECIAL_BUILTINS:
            state = replace(state, exported=state.exported | names).forgetting(names)
        argv, *others = self.with_listed(argv, state)
        for each in others:
            self.command(each, node.text, inside, state, stdin=stdin, patterns=expander)
        return self.command(argv, node.text, inside, state, stdin=stdin, patterns=expander)

    def expanded(self, node: Simple, expander: Expander) -> tuple[str, ...]:
        """Return the words that bash makes of a command's words; the first of them is known."""
        first = node.words[0]
        if first.constant == "export":  # its words are not matched against files, as in an assignment
            if not (first.plain and all(map(_is_plain_export, node.words[1:]))):
                raise StopReading("export with words that may be split", node.text)
            return tuple(expander.value(word) for word in node.words)
        argv = tuple(self.words(node.words, expander))
        if is_pattern(first) or isinstance(argv[0], Unknown) or not argv[0]:
            raise StopReading("a command whose name is not plain", node.text)
        if argv[0] == "eval" and node.redirections:
            raise StopReading("a redirection of eval", node.text)
        return argv

    def assigned(self, node: Simple, state: State) -> State:
        """Return the state after the assignments of a command that is nothing else. Each sees those before it."""
        for each in node.assignments:
            if not node.words:
                self.check_name(each.name, node.text)
            value = self.expander(state).value(each.value)
            unknown = value if isinstance(value, Unknown) else None
            known = None if unknown is not None else value
            state = state.with_value(each.name, known, integer=unknown is not None and unknown.integer)
            # In front of a command, what runs inside a later value is given the variables before it.
            state = state.handing_on(each.name) if node.words else state.touching(each.name)
        return state

    def check_name(self, name: str, part: str) -> None:
        """Raise StopReading if setting this variable changes the shell itself."""
        if changes_the_shell(name):
            raise StopReading(f"{name} is set, which changes how the rest is run", part)

    def command(
        self,
        argv: tuple[str, ...],
        text: str,
        inside: State,
        after: State,
        *,
        stdin: Stdin,
        patterns: Expander | None = None,
    ) -> Outcome:
        """Read one command. `inside` is the state that it runs in, `after` that of the shell behind it."""
        name = argv[0]
        if isinstance(name, Unknown | Found):
            raise StopReading("a command whose name is not plain", text)
        if name in SHELL_BUILTINS:
            return self.builtin(argv, text, inside, after, stdin)
        if name in STEERS_THE_SHELL:
            raise StopReading(f"{name}, which changes how the rest is run", text)
        program = program_of(name)
        use = self.use_of(program, argv, stdin)
        if name == "eval" and not use.gap:
            return self.eval(use, argv, text, inside, after)
        if use.gap and (program in SHELLS or name in ("exec", "eval")):
            raise StopReading(use.gap, text)
        if stdin.text is not None and program in INTERPRETERS and not use.scripts and use.act is not Act.LOOKS:
            raise StopReading(f"text that {program} is given to run", text)
        use = self.with_names(program, argv, use, inside)
        self.layers += 1
        if self.layers > MAX_LAYERS:
            raise StopReading(f"more than {MAX_LAYERS} commands that run commands", text)
        self.add_command(argv, text, inside, use, stdin, patterns)
        self.inner(program, use, inside)
        if use.remote:
            self.add_opaque("a command that another machine or a container runs", use.remote, inside)
        self.layers -= 1
        if name == "exit" and all(word.isdigit() for word in argv[1:2]) and len(argv) <= 2:
            return Outcome(ok=None, failed=None)
        return Outcome(ok=after, failed=after)

    def use_of(self, program: str, argv: tuple[str, ...], stdin: Stdin) -> Use:
        """Return what the model of a program says of a command; a gap where there is none."""
        if stdin.text is not None and program in ("bash", "sh") and len(argv) == 1:
            if "\n" in stdin.text.rstrip("\n"):
                return gap("a shell hands the lines that it has not read yet to the commands of those before")
            if program == "bash" or read_alike(stdin.text):
                return Use(act=Act.WRAPS, scripts=(stdin.text,))
            return gap("sh may read this text otherwise than bash")
        model = model_of(program) if program else None
        return read_command(model, argv) if model is not None else gap(f"there is no model of {argv[0]}")

    def eval(self, use: Use, argv: tuple[str, ...], text: str, inside: State, after: State) -> Outcome:
        """`eval` runs its text in this very shell: folder and variables change for what follows."""
        self.printed = None
        self.add_command(argv, text, inside, use, Stdin(), None)
        outcome = Outcome(ok=after, failed=after)
        for script in use.scripts:
            outcome = self.parsed(script, text, outcome.either() or after)
        return outcome

    def inner(self, program: str, use: Use, state: State) -> None:
        """Read the commands and texts that a command runs."""
        if use.act not in (Act.LOOKS, Act.WRAPS):  # sudo, env -i: they may give other values, or none
            state = state.forgetting(frozenset(state.values))
        for command in use.commands:
            if command.argv[0] in NO_PROGRAMS:
                raise StopReading(f"{program} {command.argv[0]}", " ".join(command.argv))
            folder = state
            if command.folder:
                reals = [path.real for path in self.resolved(command.folder, Access.READ, state)]
                # A shell that is started where the folder is the one at hand keeps the name that this has.
                here = [f for f in state.folders for p in self.resolved(f, Access.READ, state) if p.real in reals]
                folder = replace(state, folders=tuple(dict.fromkeys((*reals, *here))))
            for name in command.variables:
                folder = folder.handing_on(name)
            folder = replace(folder, elsewhere=folder.elsewhere or command.elsewhere)
            folder = folder.forgetting(frozenset(command.variables))
            self.command(command.argv, " ".join(command.argv), folder, folder, stdin=Stdin())
        for script in use.scripts:
            obeyed = next((name for name in sorted(state.exported) if changes_the_shell(name)), None)
            if obeyed is not None:
                raise StopReading(f"{obeyed} is handed to a shell, which obeys it", script)
            self.parsed(script, script, state.in_a_new_shell())

    def parsed(self, text: str, part: str, state: State) -> Outcome:
        """Read constant text that a shell is given."""
        script = parse(text)
        if isinstance(script, Unread):
            raise StopReading(f"in the text for a shell: {script.reason}", part)
        self.layers += 1
        if self.layers > MAX_LAYERS:
            raise StopReading(f"more than {MAX_LAYERS} commands that run commands", part)
        outcome = self.script(script, state)
        self.layers -= 1
        return outcome

    def add_command(
        self, argv: tuple[str, ...], text: str, state: State, use: Use, stdin: Stdin, patterns: Expander | None
    ) -> None:
        """Add the facet of one command: opaque where a word or the folder is not known and that may matter."""
        if use.gap and (_hides_more(argv) or any(isinstance(word, Unknown | Found) for word in argv)):
            self.add_opaque(use.gap, text, state)
            return
        reads_folder = any(not path.word.startswith("/") for path in use.paths) or bool(use.gap)
        if not state.folders and reads_folder:
            self.add_opaque("the folder that it runs in is not known", text, state)
            return
        paths = list(stdin.paths)
        for folder in patterns.folders if patterns is not None else ():
            paths += [path for path in self.resolved(folder, Access.READ, state) if path.place not in _NAMES_ARE_FREE]
        if "/" in argv[0] and not _in_system_folder(argv[0]):
            paths += self.resolved(argv[0], Access.EITHER, state)
        if use.gap:
            paths += [path for word in likely_paths(argv[1:]) for path in self.resolved(word, Access.EITHER, state)]
        else:
            paths += [each for path in use.paths for each in self.used(path, use, state)]
        if patterns is not None and any(path.access is not Access.READ for path in paths):
            whole = (path for each in patterns.whole_folders for path in self.resolved(each, Access.WRITE, state))
            paths = [*whole, *paths]
        problem = use.gap or self.git_problem(use, state)
        act = Act.RUNS if use.imports and self.may_import(state) else use.act
        self.add(
            Command(
                text=text,
                argv=tuple(str(word) for word in argv),
                variables=tuple(sorted(state.exported)),
                paths=tuple(dict.fromkeys(paths)) if len(paths) > 1 else tuple(paths),
                act=Act.UNKNOWN if problem else _act(act, program_of(argv[0]), paths),
                network=use.network,
                model="" if problem else program_of(argv[0]),
                gap=problem or "",
                folder=state.folders[0] if len(state.folders) == 1 and not state.elsewhere else "",
                fed=state.fed,
            )
        )

    # Builtins that change the shell.

    def builtin(self, argv: tuple[str, ...], text: str, inside: State, after: State, stdin: Stdin) -> Outcome:
        """Read one of the builtins of which it is known what they change."""
        self.printed = None
        if argv[0] in GO_ELSEWHERE:
            return self.elsewhere(argv, text, inside, after, stdin)
        changed = after_builtin(argv, after)
        if isinstance(changed, str):
            raise StopReading(changed, text)
        variables = tuple(sorted(inside.exported - {"IFS"} if argv[0] == "read" else inside.exported))
        words = tuple(str(word) for word in argv)
        act = _act(Act.WRAPS, argv[0], stdin.paths)
        self.add(Command(text=text, argv=words, variables=variables, paths=stdin.paths, act=act, model=argv[0]))
        return Outcome(ok=changed, failed=changed)

    def elsewhere(self, argv: tuple[str, ...], text: str, inside: State, after: State, stdin: Stdin) -> Outcome:
        """`cd`, `pushd` and `popd` go to a folder as it is written, or where that is none, as the kernel reads it."""
        targets = self.targets(argv, after)
        if not targets:
            self.add_opaque(f"{argv[0]} to a folder that is not known", text, after)
            unknown = after.in_folders((), after.stack if argv[0] == "cd" else None)
            return Outcome(ok=unknown, failed=after)
        if not after.folders and not all(target.startswith("/") for target in targets):
            self.add_opaque("the folder that it runs in is not known", text, after)
            return Outcome(ok=after, failed=after)
        reached = [self.folders_after_cd(target, after, physical="-P" in argv) for target in targets]
        paths = tuple(dict.fromkeys((*stdin.paths, *(path for found, _ in reached for path in found))))
        folders = reached[0][1]
        for _, others in reached[1:]:
            folders = either_folder(folders, others)
        variables = tuple(sorted(inside.exported))
        self.add(Command(text=text, argv=argv, variables=variables, paths=paths, act=Act.WRAPS, model=argv[0]))
        plain = all(".." not in target.strip("/").removeprefix("../").split("/") for target in targets)
        there = plain and bool(folders) and not self.disk_changed and all(map(self.disk.is_folder, folders))
        return Outcome(ok=after.in_folders(folders, _stack_after(argv[0], after)), failed=None if there else after)

    def targets(self, argv: tuple[str, ...], state: State) -> tuple[str, ...]:
        """Return the words that say where the shell may go; none where that is not known."""
        if argv == ("cd", "-"):
            return state.before
        if argv[0] == "popd":
            return state.stack[0] if len(argv) == 1 and state.stack else ()
        words = [word for word in argv[1:] if argv[0] == "pushd" or word not in ("--", "-L", "-P")]
        if not words and argv[0] == "cd":
            return (self.disk.home,)
        if len(words) != 1 or isinstance(words[0], Unknown | Found) or words[0][:1] in ("", "-"):
            return ()
        return () if argv[0] == "pushd" and (state.stack is None or words[0][0] == "+") else (words[0],)


def _stack_after(name: str, state: State) -> tuple[tuple[str, ...], ...] | None:
    """Return the stack of folders behind `cd`, `pushd` or `popd` in `state`."""
    stack = state.stack
    if name == "cd" or stack is None:
        return stack
    return stack[1:] if name == "popd" else (state.folders, *stack)


def _is_plain_export(word: Word) -> bool:
    """Say whether bash leaves a word of export whole: nothing expands, or `NAME=` is written without any quoting."""
    begin = word.pieces[0] if word.pieces else None
    return word.constant is not None or (isinstance(begin, Literal) and not begin.quoted and "=" in begin.text)


def _act(act: Act, program: str, paths: Sequence[PathAccess]) -> Act:
    """Return WRAPS only for what shows nothing itself: `find -exec` lists files, and what reads `< file` reads it."""
    if act is Act.WRAPS and (program not in PLAIN_WRAPPERS or (paths and program not in GO_ELSEWHERE)):
        return Act.LOOKS
    return act


def _in_system_folder(name: str) -> bool:
    return name.rpartition("/")[0] in SYSTEM_FOLDERS


def _hides_more(argv: Sequence[str]) -> bool:
    """Say whether a command that no model covers may run or read more than its words show, so that it is opaque."""
    name = argv[0].rpartition("/")[2]
    if name in WRAPPERS or name in SHELLS or (name == "find" and not FIND_RUNS.isdisjoint(argv)):
        return True
    if any(len(cluster(word)) > MAX_CLUSTER_LETTERS + 1 for word in argv[1:]):
        return True
    if name in ("printf", "test", "["):
        return any(word.startswith("-v") for word in argv[1:])
    return name == "git" and any(_steers_git(word) for word in argv[1:])


def _steers_git(word: str) -> bool:
    """Say whether git takes a word for more than the path it seems to be (gitglossary(7), pathspec), or runs gpg for it."""
    magic = word.startswith((":(", ":!", ":^", ":/")) or (word[0:1] != "-" and not set("*?[").isdisjoint(word))
    return magic or "%G" in word
