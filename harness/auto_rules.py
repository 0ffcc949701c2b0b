"""What an auto rule must not say: the ways in which it would let through more than any rule can vouch for; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from harness.matchers import OPERAND_FLAGS, ArgvPattern
from harness.programs.runners import INTERPRETERS
from harness.programs.variables import steers
from harness.rule_examples import plain_command
from harness.rules import Decision, Rule

Problem: TypeAlias = "tuple[str, str]"
"""A key of the rule (nothing: the rule itself), and what is wrong with it."""


def rule_problem(rule: Rule) -> Problem | None:
    """Return why a rule cannot be: it could never match, or would let through what no rule can vouch for."""
    if rule.argv is None and rule.path is None and not (rule.text or rule.env or rule.tools):
        return "", "matches nothing: give argv, path, text, env or tool"
    if rule.tools and "bash" not in rule.tools and (rule.argv or rule.text or rule.env):
        return "tool", "argv, text and env are about bash, which is not among the tools"
    for key, given in (("write", rule.write), ("network", rule.network)):
        if given and (rule.decision is not Decision.AUTO or rule.argv is None):
            return key, "is what an auto rule grants to the commands of its argv"
    if rule.decision is Decision.AUTO:
        return next(_auto_problems(rule), None)
    if rule.argv is not None and rule.argv.flags == ():
        return "flags", "an empty list is never met: name the options, or leave it out"
    valued = next((flag for flag in (rule.argv and rule.argv.flags) or () if "=" in flag), None)
    if valued is not None:
        return "flags", f"{valued} holds a value: a stricter rule names the option, and means it with any value"
    return None


def _auto_problems(rule: Rule) -> Iterator[Problem]:
    if rule.text:
        yield "text", "an auto rule cannot be about a piece of text: use argv"
    if rule.argv is None and rule.path is None:
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
    steering = next((word for word in argv.tokens[0] if _is_interpreter(word)), None)
    if steering is not None and not _fixes_script(argv):
        yield "argv", f"{steering} runs whatever its operands say; name the script, or -m and the module"
    for program in argv.tokens[0]:
        if plain_command((program, *(token[0] for token in argv.tokens[1:]))) is None:
            yield "argv", f"{program} is never understood well enough for an auto rule"


def _is_interpreter(word: str) -> bool:
    """Say whether `word` names an interpreter, whatever its folder and its version: `/usr/bin/python3.11` does."""
    name = word.rpartition("/")[2]
    return name in INTERPRETERS or name.rstrip("0123456789.-") in INTERPRETERS


def _fixes_script(argv: ArgvPattern) -> bool:
    """Say whether every alternative after the program is a script's name, or -m with a module behind it."""
    if len(argv.tokens) < 2:
        return not argv.rest
    first = argv.tokens[1]
    if all(not word.startswith("-") for word in first):
        return True
    return first == ("-m",) and len(argv.tokens) > 2 and all(not word.startswith("-") for word in argv.tokens[2])
