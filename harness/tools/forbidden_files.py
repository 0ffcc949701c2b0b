"""The files of a workspace that rules forbid a tool to read or to write, or ask about: what holds a granted program. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.actions import Access, Decision, PathAccess, Place
from harness.paths import TreeNames
from harness.policy.policy import Policy
from harness.policy.rules import Rule
from harness.record import Record
from harness.tool_kinds import is_named

ANY_NAME = ":any name:"
"""Stands for every name that a folder may come to hold: no pattern means it that does not mean nearly all."""
_NO_PLAIN_NAME = frozenset("/*?[\\")


def rules_about_files(policy: Policy, tool: str) -> tuple[Rule, ...]:
    """Return the rules that forbid `tool` files by their names alone, or ask about them."""
    return tuple(
        rule
        for rule in policy.rules
        if rule.decision > Decision.AUTO
        and rule.files is not None
        and rule.may_hit(PathAccess)
        and (not rule.tools or is_named(tool, rule.tools))
    )


def excepted_folders(rules: Sequence[Rule]) -> frozenset[str]:
    """Return the names of folders below which, wherever they lie, none of the rules means a file."""
    name_sets = [
        {
            pattern[:-1]
            for pattern in (rule.files.exceptions.patterns if rule.files and rule.files.exceptions else ())
            if pattern.endswith("/") and _NO_PLAIN_NAME.isdisjoint(pattern[:-1])
        }
        for rule in rules
    ]
    return frozenset(set.intersection(*name_sets)) if name_sets else frozenset()


def with_any_name(files: Sequence[str], folders: Sequence[str]) -> TreeNames:
    """Return the names of files, and one name in each folder (the workspace is the empty one) that means every name."""
    return TreeNames([*files, *(f"{folder}/{ANY_NAME}".lstrip("/") for folder in folders)])


class ForbiddenFiles(Record):
    """Those of many names that rules forbid to access in one way, or ask about."""

    files: tuple[str, ...]
    """That are there now."""
    places: tuple[str, ...]
    """The fewest that hold just these, and what comes to be in the folders among them."""
    rule: Rule | None
    """The rule that forbids the first file."""


def forbidden_files(rules: Sequence[Rule], access: Access, names: TreeNames) -> ForbiddenFiles:
    """Return those of many names, made by `with_any_name`, that rules forbid to access in this way, or ask about."""
    matched_names = _match_names(rules, access, names)
    files = tuple(name for name in matched_names if not _is_any_name(name))
    rule = matched_names[files[0]] if files else next(iter(matched_names.values()), None)
    return ForbiddenFiles(files=files, places=_fewest_places(matched_names, names), rule=rule)


def _match_names(rules: Sequence[Rule], access: Access, names: TreeNames) -> dict[str, Rule]:
    place = PathAccess(written=".", real="", names=(".",), access=access, place=Place.ROOT, tree=True, below=names)
    rules_by_name: dict[str, Rule] = {}
    for rule in rules:
        if rule.files is not None and access in rule.files.access:
            for name in rule.files.meant_below(place):
                rules_by_name.setdefault(name, rule)
    return rules_by_name


def _is_any_name(name: str) -> bool:
    """Return whether a name means every name in its folder."""
    return name.rpartition("/")[2] == ANY_NAME


def _fewest_places(matched_names: Collection[str], names: TreeNames) -> tuple[str, ...]:
    """Return the fewest places that hold exactly the given names: whole folders, and single files."""
    whole_folders = _whole_folders(frozenset(matched_names), names)
    places: dict[str, None] = {}
    for name in matched_names:
        parts = name.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        place = next((folder for folder in above if folder in whole_folders), name)
        if not _is_any_name(place):
            places[place] = None
    return tuple(sorted(places))


def _whole_folders(matched_names: frozenset[str], names: TreeNames) -> frozenset[str]:
    """Return the folders whose names all count, including future ones; never the workspace itself."""
    folders = {name.rpartition("/")[0] for name in matched_names if _is_any_name(name)} - {""}
    if not folders:
        return frozenset()
    mixed: set[str] = set()
    for name in names:
        if name not in matched_names:
            folder = name.rpartition("/")[0]
            while folder and folder not in mixed:
                mixed.add(folder)
                folder = folder.rpartition("/")[0]
    return frozenset(folders - mixed)
