"""Loosening: what of a project's policy counts only once it is trusted, a line each; says it, and changes nothing."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator, Sequence

from harness.matchers import ArgvPattern
from harness.policy import Policy
from harness.rules import Decision, Rule
from harness.visible import visible_line

LINE = 4_000
"""Characters of one line; what is longer says how much of it is missing."""


def loosening(policy: Policy) -> tuple[str, ...]:
    """Return what `tightening_only` (harness/policy_file.py) leaves out of `policy`, in words, each with its file and line.

    Empty for a policy that only tightens. Ready to be shown; no line holds a line end.
    """
    return tuple(visible_line(line, LINE) for line in (*_defaults(policy), *_sandboxes(policy), *_rules(policy)))


def _defaults(policy: Policy) -> Iterator[str]:
    for default in policy.defaults:
        if default.decision is Decision.AUTO:
            yield f"default  {default.what} is auto where no rule says otherwise  ({default.origin})"
    for readers in policy.readers:
        if readers.on:
            yield f"readers  commands that only look are auto  ({readers.origin})"


def _sandboxes(policy: Policy) -> Iterator[str]:
    for said in policy.sandboxes:
        beyond = [place for place in said.write or () if _is_outside(place)]
        if beyond:
            yield f"sandbox  commands that you approve may write {_listed(beyond)}  ({said.origin})"
        if said.show:
            yield f"sandbox  commands can read {_listed(said.show)}, which is hidden else  ({said.origin})"


def _is_outside(place: str) -> bool:
    """Say whether a place of `write` lies outside the workspace, as written."""
    return posixpath.normpath(place).startswith(("/", "~"))


def _rules(policy: Policy) -> Iterator[str]:
    for rule in policy.rules:
        if rule.decision is Decision.AUTO:
            yield f"auto     {_matched(rule)}{_granted(rule)}  (rule {rule.label})"


def _matched(rule: Rule) -> str:
    """Return what an auto rule lets run: what its matchers say, all of which must hold."""
    what = []
    if rule.argv is not None:
        what.append(f"the command {argv_text(rule.argv)}")
    if rule.path is not None:
        accesses = " and ".join(access.value for access in rule.access)
        what.append(f"{accesses} {_listed(rule.path.patterns)}")
        if rule.exceptions is not None:
            what.append(f"but not {_listed(rule.exceptions.patterns)}")
    if rule.env:
        what.append(f"with variables {_listed(rule.env)} set")
    if rule.text:
        what.append(f"with {shlex.quote(rule.text)} in it")
    if rule.tools:
        what.append(f"by {_listed(rule.tools)}")
    return " ".join(what) or "everything"


def argv_text(argv: ArgvPattern) -> str:
    """Return the words of a pattern as a person would type them: `git {status,diff} ...`, and which options may follow."""
    words = [_alternatives(token) for token in argv.tokens]
    rest = [*words, "..."] if argv.rest else words
    options = f" with options {_listed(argv.flags)}" if argv.flags else ""
    return " ".join(rest) + options


def _alternatives(token: Sequence[str]) -> str:
    quoted = [shlex.quote(word) for word in token]
    return quoted[0] if len(quoted) == 1 else f"{{{','.join(quoted)}}}"


def _granted(rule: Rule) -> str:
    may = [f"write {_listed(rule.write)}"] if rule.write else []
    if rule.network:
        may.append("reach the network")
    return f" (it may {' and '.join(may)})" if may else ""


def _listed(words: Sequence[str]) -> str:
    return ", ".join(shlex.quote(word) for word in words)
