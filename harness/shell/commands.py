"""Tokens to simple commands: what bash would run, word for word, or `Opaque` for the whole line; pure.

First version: simple commands joined by `&&`, `||`, `;`, `|` and newlines, with variables set in front. Whatever
changes how the rest of the line is read (cd, export, eval, source) or runs another program (env, xargs, sudo, bash -c)
is opaque.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from harness.actions import Access, Command, Opaque, PathAccess
from harness.programs.readers import only_reads
from harness.shell.lexer import Operator, Token, Unread, Word, tokenize

Resolve: TypeAlias = Callable[[str, Access], PathAccess | None]
"""Where a word points if it is taken as a path; None for a word that cannot name a file."""

MAX_WORDS = 2_000
"""A line of more words is opaque. What can be read of it is still judged to the last word: no bound lowers a verdict."""

_KEYWORDS = frozenset(
    "if then elif else fi for while until do done case esac in select function time coproc { } [[ ]] !".split()
)
_STEERS_THE_SHELL = frozenset(
    ". : alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable eval "
    "exec exit export fc fg getopts hash help history jobs let local logout mapfile popd pushd read readarray readonly "
    "return set shift shopt source suspend times trap type typeset ulimit umask unalias unset wait".split()
) - {":", "type", "help", "times"}
_RUNS_ANOTHER_PROGRAM = frozenset(
    "ash bash chroot csh dash doas docker env entr expect fish flock ionice ksh nice nohup nsenter npx parallel podman "
    "pnpx rbash rsh script setsid sh ssh stdbuf strace su sudo taskset tcsh time timeout unshare uvx watch xargs zsh busybox "
    "toybox systemd-run runuser pkexec bunx gdb ltrace chrt fakeroot firejail bwrap at batch cgexec chpst daemonize "
    "dbus-run-session eatmydata faketime hyperfine linux32 linux64 mksh numactl prlimit proxychains proxychains4 pwsh "
    "rlwrap runcon screen setarch setpriv setuidgid sg softlimit ssh-agent sshpass start-stop-daemon tmux torsocks "
    "unbuffer valgrind xvfb-run yash".split()
)
_PRINTS_ITS_OPERANDS = frozenset(("echo", "printf", "true", "false", ":"))
"""Builtins of bash whose operands are text and never files."""
_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_CLUSTER = re.compile(r"-[A-Za-z0-9]*")
MAX_CLUSTER_LETTERS = 24
"""Of letters and digits behind a single dash; behind each of them the name of a file may begin."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")


def read_commands(text: str, resolve: Resolve, *, strict_rules: bool = True) -> tuple[Command | Opaque, ...]:
    """Return the simple commands of `text`, or a single `Opaque`. Never raises, never empty.

    `resolve` is called for every operand; it may look at the disk, this module does not. Without `strict_rules` an Opaque
    holds no loose words or paths: enough where only an auto rule is asked, which never covers one.
    """
    tokens = tokenize(text)
    if isinstance(tokens, Unread):
        return (_opaque(text, tokens, resolve if strict_rules else None),)
    groups = _split(tokens, text)
    if isinstance(groups, Unread):
        return (_opaque(text, groups, resolve if strict_rules else None),)
    commands: list[Command | Opaque] = []
    for words in groups:
        command = _simple_command(words, text, resolve)
        if isinstance(command, Unread):
            return (_opaque(text, command, resolve if strict_rules else None),)
        commands.append(command)
    return tuple(commands)


def _opaque(text: str, unread: Unread, resolve: Resolve | None) -> Opaque:
    if resolve is None:
        return Opaque(text=text, reason=unread.reason, column=unread.column)
    from harness.shell.loose import loose_commands

    commands = loose_commands(text)
    # Where a word stands in several commands, the access that counts is the one of which less is known.
    accesses: dict[str, Access] = {}
    for words in commands:
        access = Access.READ if only_reads(words) else Access.EITHER
        for word in _path_words(words, options_too=True):
            accesses[word] = access if accesses.get(word) is not Access.EITHER else Access.EITHER
    paths = tuple(path for word, access in accesses.items() if (path := resolve(word, access)) is not None)
    return Opaque(text=text, reason=unread.reason, column=unread.column, commands=commands, paths=paths)


def _split(tokens: Sequence[Token], text: str) -> list[list[Word]] | Unread:
    """Split at operators; a line that bash would call a syntax error is unread."""
    groups: list[list[Word]] = []
    current: list[Word] = []
    open_operator: Operator | None = None
    for token in tokens:
        if isinstance(token, Word):
            current.append(token)
            continue
        if current:
            groups.append(current)
            current = []
            open_operator = token if token.value in ("&&", "||", "|") else None
        elif token.value != "\n":
            return Unread(reason=f"nothing before {token.value}", column=token.start + 1)
    if current:
        groups.append(current)
    elif open_operator is not None:
        return Unread(reason=f"nothing after {open_operator.value}", column=open_operator.start + 1)
    if not groups:
        return Unread(reason="no command", column=1)
    if len(groups) > MAX_WORDS or sum(len(group) for group in groups) > MAX_WORDS:
        return Unread(reason=f"more than {MAX_WORDS} words", column=len(text))
    return groups


def _simple_command(words: Sequence[Word], text: str, resolve: Resolve) -> Command | Unread:
    variables: list[str] = []
    for word in words:
        match = _ASSIGNMENT.match(text, word.start, word.end)
        if match is None:
            break
        if match.group(2) != "=":
            return Unread(reason="an assignment that adds or indexes", column=word.start + 1)
        variables.append(match.group(1))
    rest = words[len(variables) :]
    if not rest:
        return Unread(reason="a variable set for the rest of the line", column=words[0].start + 1)
    program = rest[0]
    reason = _not_plain(program, [word.value for word in rest])
    if reason:
        return Unread(reason=reason, column=program.start + 1)
    argv = tuple(word.value for word in rest)
    access = Access.READ if only_reads(argv) else Access.EITHER
    return Command(
        text=text[words[0].start : rest[-1].end],
        argv=argv,
        variables=tuple(variables),
        paths=tuple(path for word in _operands(argv) if (path := resolve(word, access)) is not None),
    )


def _not_plain(program: Word, argv: Sequence[str]) -> str | None:
    """Return why this command cannot be taken at its word, or None."""
    name = program.value.rpartition("/")[2]
    if not name:
        return "a command without a name"
    if not program.quoted and name in _KEYWORDS:
        return f"the shell keyword {name}"
    if name in _STEERS_THE_SHELL:
        return f"{name}, which changes how the rest is run"
    if name in _RUNS_ANOTHER_PROGRAM:
        return f"{name}, which runs another program"
    if name == "find" and not _FIND_RUNS.isdisjoint(argv):
        return "find with an option that runs another program"
    if name in ("printf", "test", "[") and any(word.startswith("-v") for word in argv[1:]):
        return f"{name} -v, which evaluates a name"
    if name == "git" and any(_steers_git(word) for word in argv[1:]):
        return "a git pathspec with magic or a pattern, or a format that runs gpg"
    if any(len(_cluster(word)) > MAX_CLUSTER_LETTERS + 1 for word in argv[1:]):
        return f"an option of more than {MAX_CLUSTER_LETTERS} letters and digits"
    return None


def _steers_git(word: str) -> bool:
    """Say whether git takes a word for more than the path it seems to be (gitglossary(7), pathspec), or runs gpg for it."""
    magic = word.startswith((":(", ":!", ":^", ":/")) or (word[0:1] != "-" and not set("*?[").isdisjoint(word))
    return magic or "%G" in word


def _operands(argv: Sequence[str]) -> Iterator[str]:
    """Yield what may be a path in a command whose words are known."""
    if "/" in argv[0]:
        yield argv[0]
    if argv[0] in _PRINTS_ITS_OPERANDS:
        return
    for word in _path_words(argv[1:], options_too=False):
        if word[0] == "~":
            yield f"./{word}"  # it was quoted, so bash leaves it as it is; the program may still take it as the home folder
        yield word


def _cluster(word: str) -> str:
    """Return the dash and the letters and digits that `word` begins with, or nothing: `-nf` of `-nf.env`."""
    match = _CLUSTER.match(word)
    return match.group() if match else ""


def _path_words(words: Sequence[str], *, options_too: bool) -> tuple[str, ...]:
    """Return what may be a path among operands: each word, and what may be the name of a file inside a word."""
    found: dict[str, None] = {}
    operands_only = False
    for word in words:
        if options_too or operands_only or not word.startswith("-"):
            found[word] = None
        operands_only = operands_only or word == "--"
    for word in words:
        found.update(dict.fromkeys(_inner_paths(word, whole_trees=options_too)))
    found.pop("", None)
    return tuple(found)


def _inner_paths(word: str, *, whole_trees: bool) -> Iterator[str]:
    """Yield what stands behind `=`, `@` (`curl -d @.env`), a colon (`git show HEAD:.env`) or the letters of a short option.

    `whole_trees`: also the folder of which a pattern takes everything (`src/*`).
    """
    if "=" in word:
        yield word.partition("=")[2].removeprefix("@")
        yield word.rpartition("=")[2]
    if ":" in word and not (behind := word.rpartition(":")[2]).startswith("/"):
        yield behind
    if word.startswith("@"):
        yield word[1:]
    for start in range(2, min(len(_cluster(word)), MAX_CLUSTER_LETTERS) + 1):
        yield word[start:].removeprefix("=")
    if whole_trees and word.endswith(("/*", "/.*", "/**")):
        yield word.rpartition("/")[0] or "/"
