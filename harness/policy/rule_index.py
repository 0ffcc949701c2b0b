"""An index of a policy's rules, so that a decision tries only those that could match. Pure.

A rule is found by its marks (`Rule.marks`): names of programs, parts of the names of files. The words of an action are
all marks that a rule for one of its parts could have.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.actions import Action, Command, Opaque, PathAccess, Unconfined
from harness.policy.patterns import path_marks
from harness.policy.rules import Rule
from harness.programs.runners import name_of

FEW = 16
"""Number of rules up to which all are tried. That takes less time than to gather the words of a large tree."""


class RuleIndex:
    """The rules of a policy by their marks."""

    def __init__(self, rules: tuple[Rule, ...], *, few: int = FEW) -> None:
        self._rules = rules
        self._few = few
        self._places: dict[str, list[int]] = {}
        """Indexes of the rules, by mark."""
        self._unmarked: list[int] = []
        """Indexes of the rules that are tried on every action."""
        for place, rule in enumerate(self._rules):
            marks = rule.marks
            if marks is None:
                self._unmarked.append(place)
            else:
                for mark in marks:
                    self._places.setdefault(mark, []).append(place)

    def candidates(self, action: Action) -> tuple[Rule, ...]:
        """Return the rules that could match a part of an action, in their order.

        INVARIANT: a rule that is left out hits and covers no part of the action.
        """
        words = None if len(self._rules) <= self._few else _words(action)
        if words is None:
            return self._rules
        places = {*self._unmarked, *(place for word in self._places.keys() & words for place in self._places[word])}
        return tuple(self._rules[place] for place in sorted(places))


def _words(action: Action) -> set[str] | None:
    """Return the words of an action. `None` for a call that a rule may match without any of them."""
    words: set[str] = set()
    trees = {}
    for facet in action.all_facets():
        match facet:
            case Command():
                words.update(_programs(facet))
            case Opaque():
                words.update(name_of(word) for command in facet.commands for word in command)
                words.update(_programs(facet.given_to) if facet.given_to else ())
            case PathAccess():
                words |= path_marks("/".join(facet.names))
                trees[id(facet.below)] = facet.below
            case Unconfined():
                pass
            case _:
                return None
    for tree in trees.values():
        words |= path_marks(tree.folded)
    return words


def _programs(command: Command) -> Iterator[str]:
    """Yield the names of the program of a command, and of those that run it."""
    return (name_of(words[0]) for words in (command.argv, *command.run_by) if words)
