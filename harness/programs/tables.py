"""What option tables of build tools have in common: spellings, and refinements over Parsed and Use; pure.

A refinement gets what the tables said of a command without a gap and returns that or something stricter, never less.
"""

from __future__ import annotations

import re

from harness.actions import Access, Act
from harness.programs.code_files import argument_paths
from harness.programs.model import Found, Parsed, PathUse, Refine, Unknown, Use
from harness.programs.options import stricter
from harness.record import replace

_NAME = re.compile(r"[A-Za-z0-9_./%+,:@\[\]-]+")
_SWITCH = re.compile(r"(?:on|off|true|false|yes|no|[01]|enabled|disabled|auto)", re.IGNORECASE)


def either_dash(table: str) -> str:
    """Return the option table of a program that takes one dash or two (go, shfmt, clang-format) out of bare names."""
    return " ".join(f"-{names}|--{names}{rest}" for names, rest in map(_split_entry, table.split()))


def _split_entry(entry: str) -> tuple[str, str]:
    end = next((place for place, char in enumerate(entry) if char in "=[:"), len(entry))
    return entry[:end], entry[end:]


def all_of(*refines: Refine) -> Refine:
    """Return a refinement that applies each in turn, and stops at the first gap."""

    def refine(parsed: Parsed, use: Use) -> Use:
        for each in refines:
            use = each(parsed, use)
            if use.gap:
                break
        return use

    return refine


def beginnings(word: str) -> tuple[str, ...]:
    """Return what a word may begin with; an empty text means that anything may stand there."""
    if isinstance(word, Unknown):
        return (word.prefix,)
    return (*word.starts, "./") if isinstance(word, Found) else (word,)


def no_word_lists(parsed: Parsed, use: Use) -> Use:
    """Refuse an operand `@FILE`, out of which the program would read further words, options among them."""
    for operand in parsed.operands:
        if any(not begin or begin[0] == "@" for begin in beginnings(operand)):
            return replace(use, gap=f"{operand} may be a file of further words")
    return use


def names_only(parsed: Parsed, use: Use) -> Use:
    """Refuse an operand that is no plain name: a variable that is set (`SHELL=x`), or text that a shell might expand."""
    for operand in parsed.operands:
        if isinstance(operand, Unknown | Found) or not _NAME.fullmatch(operand):
            return replace(use, gap=f"{operand} is not a plain name")
    return use


def one_of(option: str, values: str) -> Refine:
    """Refuse values of `option` (or a list with commas) other than these: they could name a module that is loaded."""
    known = frozenset(values.split())

    def refine(parsed: Parsed, use: Use) -> Use:
        for value in parsed.values(option):
            if isinstance(value, Unknown | Found) or not known.issuperset(value.split(",")):
                return replace(use, gap=f"the value {value} of {option} is not in its model")
        return use

    return refine


def definitions(option: str, names: str) -> Refine:
    """Refuse definitions `NAME=VALUE` other than switches (`X=ON`) and those of `names`: values may name compilers."""
    known = frozenset(names.split())

    def refine(parsed: Parsed, use: Use) -> Use:
        for text in parsed.values(option):
            name, _, value = text.partition("=")
            plain = not isinstance(text, Unknown | Found) and _NAME.fullmatch(text.replace("=", ""))
            if not plain or not (name.partition(":")[0] in known or _SWITCH.fullmatch(value)):
                return replace(use, gap=f"the definition {text} is not in its model")
        return use

    return refine


def arguments_from(place: int) -> Refine:
    """Take the operands from `place` on for words given to code that may do anything with them."""

    def refine(parsed: Parsed, use: Use) -> Use:
        paths = argument_paths(parsed.operands[place:])
        return replace(use, gap=paths) if isinstance(paths, str) else replace(use, paths=(*use.paths, *paths))

    return refine


def also_writes(*paths: str) -> Refine:
    """Add files that a command writes without naming them, such as a lock file, for rules about paths."""
    written = tuple(PathUse(word=path, access=Access.WRITE) for path in paths)
    return lambda _parsed, use: replace(use, paths=(*use.paths, *written))


def doing(use: Use, act: Act) -> Use:
    """Return `use` with at least this act."""
    return replace(use, act=stricter(use.act, act))


def as_trees(use: Use, *, default: str = "", only: tuple[str, ...] = ()) -> Use:
    """Return `use` with its paths as trees (of files named like `only`), links followed; `default` where it has none."""
    paths = use.paths or ((PathUse(word=default, access=Access.READ),) if default else ())
    return replace(use, paths=tuple(replace(path, tree=True, follows=True, only=only) for path in paths))


def trees(*, default: str = "", only: tuple[str, ...] = ()) -> Refine:
    """Return the refinement of a program that goes through the folders among its operands, as `as_trees`."""
    return lambda _parsed, use: as_trees(use, default=default, only=only)
