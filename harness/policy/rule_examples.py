"""The examples of a rule (`match`, `not_match`): whether the rule alone would decide them, in an empty workspace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from posixpath import join, normpath
from typing import TypeAlias

from harness.actions import Access, Act, Action, Command, Facet, JsonValue, PathAccess, Place, ToolUse, describe_facet
from harness.decisions import Decision
from harness.messages import ToolCall
from harness.policy.matchers import OPERAND_FLAGS, ArgvPattern
from harness.policy.rules import Rule
from harness.programs.git_pathspecs import ShownFiles
from harness.programs.runners import INTERPRETERS, SHELLS, WRAPPERS, is_one_of, name_of
from harness.programs.variables import steers
from harness.record import replace
from harness.tool_kinds import BASH, READ_FILE, SHIPPED_TOOLS, Does, tool_kind


def example_problem(rule: Rule, example: str) -> str | None:
    """Return why the rule alone would not decide the example. `None` if it would.

    The example is a command line, or a path for a rule about files alone.
    """
    if rule.argv is None and not rule.text and not rule.env and (rule.path is not None or not _runs(rule.tools)):
        accesses = [EXAMPLE_DISK.resolve(example, access) for access in rule.access or (Access.READ, Access.WRITE)]
        tool = rule.tools[0] if rule.tools else READ_FILE.name
        problems = [_problem(rule, _action(tool, (path,), "")) for path in accesses]
        return None if None in problems else problems[0]
    from harness.shell.facets import read_commands

    return _problem(rule, _action(BASH.name, read_commands(example, EXAMPLE_DISK), example))


def example_use_problem(rule: Rule, arguments: Mapping[str, object]) -> str | None:
    """Return why the rule alone would not decide a call of its first tool with these arguments. `None` if it would."""
    from harness.policy.tool_arguments import tool_arguments

    told: dict[str, JsonValue] = json.loads(json.dumps(arguments, default=str))
    tool = next((tool.replace("*", "x") for tool in rule.tools), "tool")
    use = ToolUse(tool=tool, arguments=tool_arguments(told, EXAMPLE_DISK), says_reads=rule.read_only)
    return _problem(rule, _action(tool, (use,), ""))


def example_host_problem(rule: Rule, example: str) -> str | None:
    """Return why the rule alone would not decide a call that goes to this host, `example.org` or `example.org:8080`.

    `None` if it would. Raises ValueError for text that is not a host.
    """
    from harness.policy.hosts import USUAL_PORTS, canonical_host, split_port

    host, port = split_port(example)
    tool = rule.tools[0].replace("*", "x") if rule.tools else "tool"
    use = ToolUse(tool=tool, host=canonical_host(host), port=port or USUAL_PORTS[-1])
    return _problem(rule, _action(tool, (use,), ""))


def plain_command(words: tuple[str, ...]) -> Command | None:
    """Return these words as the one command that bash reads in them; None for one that runs another or steers the shell."""
    from harness.shell.builtins import KNOWN_BUILTINS, UNKNOWN_BUILTINS

    name = name_of(words[0])
    if name in WRAPPERS or name in SHELLS or name in KNOWN_BUILTINS or name in UNKNOWN_BUILTINS:
        return None
    (first, *others) = _read_words(words)
    return first if not others and isinstance(first, Command) and first.argv == tuple(words) else None


def _read_words(words: tuple[str, ...]) -> tuple[Facet, ...]:
    from harness.shell.facets import read_commands

    quoted = ("'" + word.replace("'", "'\\''") + "'" for word in words[1:])
    return read_commands(" ".join((words[0], *quoted)), EXAMPLE_DISK)


def _runs_another(words: tuple[str, ...]) -> bool:
    """Return whether the words are a program and a command, or a script, that it runs."""
    first, *others = _read_words(words)
    is_program = isinstance(first, Command) and first.argv == words
    return is_program and (bool(others) or (name_of(words[0]) in SHELLS and len(words) > 1))


@lru_cache(1_024)
def plain_rule_command(words: tuple[str, ...]) -> Command | None:
    """Return `plain_command` of a rule's words, which are kept: loading a policy asks, and warning about it asks again."""
    return plain_command(words)


def _action(tool: str, facets: tuple[Facet, ...], text: str) -> Action:
    call = ToolCall(id="example", name=tool, arguments="{}")
    return Action(
        call=call, tool=tool, arguments={}, facets=facets, summary=text, preview=text, request=None, text=text
    )


def _problem(rule: Rule, action: Action) -> str | None:
    """Return why the rule alone does not decide an action. `None` if it does.

    An auto rule decides it if it covers every facet but wrappers, and at least one. A strict rule touches one facet.
    """
    if rule.decision is not Decision.AUTO:
        if any(rule.hits(action, facet) for facet in action.all_facets()):
            return None
        return _words(action, action.facets[0], rule.unhit_words) if action.facets else "it has no command"
    own = [facet for facet in action.facets if not (isinstance(facet, Command) and facet.act is Act.WRAPS)]
    uncovered = [facet for facet in own if not rule.covers(action, facet)]
    if own and not uncovered:
        return None
    if not own:
        return "it only runs another command" if action.facets else "it has no command"
    return _words(action, uncovered[0], rule.uncovered_words)


def _words(action: Action, facet: Facet, words: Callable[[Action, Facet], str]) -> str:
    """Return what `words` says of a facet, with the facet's name if the action has several."""
    named = "" if len(action.facets) == 1 else f" (part {describe_facet(facet)!r})"
    return f"{words(action, facet)}{named}"


class _ExampleDisk:
    """A disk on which every path is plain, and nothing lies: the workspace is /workspace, the home folder /home/user."""

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

    def look_tracked(self, path: PathAccess, what: ShownFiles, **_how: object) -> PathAccess:  # noqa: ARG002 - nothing is tracked
        return replace(path, tree=True)

    def plain_tracked(self, folder: str, what: ShownFiles, **_how: object) -> bool:  # noqa: ARG002 - likewise
        return True

    def exists(self, path: str) -> bool:  # noqa: ARG002 - nothing lies here, wherever
        return False

    def plain_below(self, folder: str, **_narrowing: object) -> bool:  # noqa: ARG002 - nothing lies here
        return True

    def is_folder(self, path: str) -> bool:  # noqa: ARG002 - nothing lies here, wherever
        return False

    def expand(self, pattern: str, cwd: str) -> tuple[str, ...] | None:  # noqa: ARG002 - likewise
        return ()

    def git_problem(self, folder: str, cwd: str) -> str | None:  # noqa: ARG002 - likewise
        return None

    def git_top(self, folder: str, cwd: str) -> str:  # noqa: ARG002 - likewise
        return self.root

    def git_places(self, folder: str, cwd: str, *, worktrees: bool) -> tuple[tuple[str, ...], str]:  # noqa: ARG002 - likewise
        return (), ""


EXAMPLE_DISK = _ExampleDisk()


Problem: TypeAlias = "tuple[str, str]"
"""A key of the rule (nothing: the rule itself), and what is wrong with it."""


def rule_problem(rule: Rule) -> Problem | None:
    """Return why a rule cannot be: it could never match, or would let through what no rule can vouch for."""
    if rule.walled:  # whatever the words say, and the variables, the kernel holds it
        return None
    if (
        rule.argv is None
        and rule.path is None
        and not (rule.text or rule.env or rule.tools or rule.where or rule.goes_to)
    ):
        return "", "matches nothing: give argv, path, text, env, where, host or tool"
    if problem := _tools_problem(rule):
        return problem
    if rule.tools and not _runs(rule.tools) and (rule.argv or rule.text or rule.env):
        return "tool", f"argv, text and env are about {BASH.name}, which is not among the tools"
    for key, given in (("write", rule.write), ("network", rule.reaches)):
        if given and (rule.decision is not Decision.AUTO or rule.argv is None):
            return key, "is what an auto rule grants to the commands of its argv"
    if rule.decision is Decision.AUTO:
        return next(_auto_problems(rule), None)
    if rule.argv is not None and rule.argv.flags == ():
        return "flags", "an empty list is never met: name the options, or leave it out"
    valued = next((flag for flag in (rule.argv and rule.argv.flags) or () if "=" in flag), None)
    if valued is not None:
        option = valued.partition("=")[0]
        return "flags", f"{valued} holds a value: write {option}, which a stricter rule means with any value"
    return None


def _tools_problem(rule: Rule) -> Problem | None:
    """Return why a rule cannot be about tools from outside, where it says that it is."""
    if rule.goes_to and (rule.argv or rule.path or rule.text or rule.env or rule.where or rule.read_only):
        return "host", "is about tools that go to a host, which have no argv, path, text, env or where"
    key = "where" if rule.where else "read_only"
    if not rule.where and not rule.read_only:
        return None
    if rule.read_only and rule.decision is not Decision.AUTO:
        return "read_only", "is what an auto rule wants of a tool; a stricter rule is about all that it names"
    if rule.argv is not None or rule.path is not None or rule.text or rule.env:
        return key, "is about tools from outside, which have no argv, path, text or env"
    shipped = next((tool for tool in rule.tools if tool in SHIPPED_TOOLS), "")
    return (key, f"is about tools from outside; {shipped} ships: use argv or path") if shipped else None


def _runs(tools: Sequence[str]) -> bool:
    """Say whether one of these tools runs commands."""
    return any(tool_kind(tool).does is Does.RUNS for tool in tools)


def _auto_problems(rule: Rule) -> Iterator[Problem]:
    if rule.text:
        yield "text", "an auto rule cannot be about a piece of text: use argv"
    if rule.of_tools and not rule.arguments_sha256:
        if not rule.tools and (rule.where or rule.read_only):
            yield "tool", "an auto rule names the tools from outside that it is about"
        if not (rule.tools or rule.goes_to) or any(tool in SHIPPED_TOOLS for tool in rule.tools):
            yield "", "an auto rule needs argv or path; a whole tool is set under [tools]"
    if rule.argv is not None:
        yield from _argv_problems(rule.argv)
    for name in rule.env:
        if steers(name):
            yield "env", f"{name} makes a program run something else; no auto rule may list it"


def _argv_problems(argv: ArgvPattern) -> Iterator[Problem]:
    """Yield programs that run whatever their operands say, unless the rule fixes the script or the module."""
    for flag in OPERAND_FLAGS.keys() & set(argv.flags or ()):
        yield "flags", f"{flag} is for stricter rules: an auto rule names its operands"
    steering = next((word for word in argv.tokens[0] if is_one_of(word, INTERPRETERS)), None)
    if steering is not None and not _fixes_script(argv):
        what = "the target" if name_of(steering) == "make" else "the script, or -m and the module"
        yield "argv", f"{steering} runs whatever its operands say; name {what}"
    for program in argv.tokens[0]:
        words = (program, *(token[0] for token in argv.tokens[1:]))
        if plain_rule_command(words) is None:
            other = ": have the command behind it called by itself, and write a rule for that"
            remedy = other if _runs_another(words) else ""
            yield "argv", f"{program} is never understood well enough for an auto rule{remedy}"


def _fixes_script(argv: ArgvPattern) -> bool:
    """Say whether every alternative after the program is a script's name, or -m with a module behind it."""
    if len(argv.tokens) < 2:
        return not argv.rest
    first = argv.tokens[1]
    if all(not word.startswith("-") for word in first):
        return True
    return first == ("-m",) and len(argv.tokens) > 2 and all(not word.startswith("-") for word in argv.tokens[2])
