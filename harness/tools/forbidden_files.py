"""The files of a workspace that rules forbid a tool to read or write, or ask about. The walls of a granted program
protect them. Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.actions import Access, Decision, PathAccess, Place
from harness.paths import TreeNames
from harness.policy.policy import Policy
from harness.policy.rules import Rule
from harness.record import Record
from harness.tool_kinds import is_named

ANY_NAME = ":any name:"
"""Placeholder for any future name in a folder. Only patterns that match nearly all names match it."""
_NO_PLAIN_NAME = frozenset("/*?[\\")


def rules_about_files(policy: Policy, tool: str) -> tuple[Rule, ...]:
    """Return the rules that forbid `tool` files, or ask about them, by the names of the files alone."""
    return tuple(
        rule
        for rule in policy.rules
        if rule.decision > Decision.AUTO
        and rule.files is not None
        and rule.may_hit(PathAccess)
        and (not rule.tools or is_named(tool, rule.tools))
    )


def excepted_folders(rules: Sequence[Rule]) -> frozenset[str]:
    """Return the names of folders whose content every rule excepts, at any depth."""
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
    """Return the names of files, and the placeholder for any name in each folder. The empty folder is the workspace."""
    return TreeNames([*files, *(f"{folder}/{ANY_NAME}".lstrip("/") for folder in folders)])


class ForbiddenFiles(Record):
    """The files that rules forbid, or ask about, for one kind of access."""

    files: tuple[str, ...]
    """Names of the existing files."""
    places: tuple[str, ...]
    """The smallest set of files and folders that contains exactly these files, and future files in its folders."""
    rule: Rule | None
    """The rule that forbids the first file."""


def forbidden_files(rules: Sequence[Rule], access: Access, names: TreeNames) -> ForbiddenFiles:
    """Return the files among `names` that rules forbid for `access`, or ask about.

    `with_any_name` returns such names. Reading leaves out git's settings: git fails where it cannot read them. A command
    that names them is still judged by the rules.
    """
    matched_names = _match_names(rules, access, names)
    if access is Access.READ:
        matched_names = {name: rule for name, rule in matched_names.items() if not is_of_git(name)}
    files = tuple(name for name in matched_names if not _is_any_name(name))
    rule = matched_names[files[0]] if files else next(iter(matched_names.values()), None)
    return ForbiddenFiles(files=files, places=_fewest_places(matched_names, names), rule=rule)


def is_of_git(name: str) -> bool:
    """Return whether git reads a file for its settings, in the git folder of a repository or of its submodules."""
    _, in_git, rest = f"/{name}".rpartition("/.git/")
    return bool(in_git) and (rest.startswith("modules/") or rest in ("config", "config.worktree"))


def _match_names(rules: Sequence[Rule], access: Access, names: TreeNames) -> dict[str, Rule]:
    place = PathAccess(written=".", real="", names=(".",), access=access, place=Place.ROOT, tree=True, below=names)
    rules_by_name: dict[str, Rule] = {}
    for rule in rules:
        if rule.files is not None and access in rule.files.access:
            for name in rule.files.meant_below(place):
                rules_by_name.setdefault(name, rule)
    return rules_by_name


def _is_any_name(name: str) -> bool:
    """Return whether a name is the placeholder for any name in its folder."""
    return name.rpartition("/")[2] == ANY_NAME


def _fewest_places(matched_names: Collection[str], names: TreeNames) -> tuple[str, ...]:
    """Return the smallest set of whole folders and single files that contains exactly `matched_names`."""
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
    """Return the folders in which all names match, including future ones. Never the workspace itself."""
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
