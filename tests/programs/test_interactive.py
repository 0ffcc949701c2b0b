"""Which commands a person wants to sit at."""

from __future__ import annotations

import shlex

from rows import all_rows

from harness.programs.interactive import asks_for_keys

SIT_AT = """
vim x | /usr/bin/vim | less -R log.txt | top | python3 | git add -p | git -C sub add --patch | git commit | git commit -a
git commit --amend | git commit -v | git commit -pm words | git rebase -i HEAD~2 | git stash push -p | git mergetool
git -c a.b=c commit | git checkout -p HEAD x | git add -e
"""
CAPTURED = """
ls -la | cat x | python3 a.py | git add -A | git add . | git commit -m words | git commit -am words | git commit --fixup=abc
git commit --amend --no-edit | git commit -F - | git log -p | git diff | git rebase main | git | git stash | git checkout main
sh -c ls | vimtutor | git commit -qm 'e p i'
"""


def lines(text: str) -> list[str]:
    return [one.strip() for line in text.strip().splitlines() for one in line.split(" | ")]


@all_rows("line", lines(SIT_AT))
def test_interactive_program_asks_for_keys(line: str) -> None:
    assert asks_for_keys(shlex.split(line))


@all_rows("line", lines(CAPTURED))
def test_program_reading_its_input_asks_for_no_keys(line: str) -> None:
    assert not asks_for_keys(shlex.split(line))


def test_program_with_fed_input_asks_for_no_keys() -> None:
    assert not asks_for_keys(("python3",), fed=True)
    assert asks_for_keys(("less",), fed=True)
    assert not asks_for_keys(())
