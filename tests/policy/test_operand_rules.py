"""Rules about operands, values of options, and options before a subcommand: the table operand_rules.txt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rows import all_rows

from harness.policy.loader import parse_policy
from harness.policy.rule_examples import example_problem


def _rows() -> Iterator[tuple[str, str, str]]:
    rule = ""
    for line in Path(__file__).with_name("operand_rules.txt").read_text().splitlines():
        word, _, rest = line.partition(" ")
        match word:
            case "deny" | "auto":
                keys = "\n".join(rest.split("; "))
                rule = f'version = 1\n[[rule]]\nid = "x"\ndecision = "{word}"\nreason = "x"\n{keys}\n'
            case "yes" | "no":
                yield rule, rest, word
            case _:
                pass


ROWS = list(_rows())


@all_rows(("rule", "command", "word"), ROWS)
def test_rule_matches_as_listed(rule: str, command: str, word: str) -> None:
    (loaded,) = parse_policy(rule.encode(), "p.toml").rules
    problem = example_problem(loaded, command)
    assert ("no" if problem else "yes", problem) == (word, problem)


def test_table_has_its_minimum_size() -> None:
    assert len(ROWS) >= 120
