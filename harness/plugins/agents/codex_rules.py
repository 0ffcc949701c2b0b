"""The rules files of Codex (Starlark), read for `harness policy import`.

Only literals, names of them and sums of lists are evaluated. No code of the file runs. Facts: the README of codex-execpolicy.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping
from typing import TypeAlias

from harness.actions import Decision
from harness.errors import UsageError
from harness.plugins.agents.imported_policy import DEFAULTS, Kind, Permission
from harness.policy.spellings import is_option
from harness.session.rule_subjects import Value

_DECISIONS = {"allow": Decision.AUTO, "prompt": Decision.CONFIRM, "forbidden": Decision.DENY}
_Words: TypeAlias = "str | list[_Words]"


def codex_rules(text: str) -> tuple[list[Permission], Mapping[str, Decision]]:
    """Return the rules of a file as permissions, and the defaults. Raises UsageError if it cannot be parsed."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"not a rules file of Codex: {error}") from None
    names: dict[str, _Words | None] = {}
    permissions: list[Permission] = []
    for statement in module.body:
        source = (ast.get_source_segment(text, statement) or "").replace("\n", " ")
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[name] = _value(value, names)
            case ast.Expr(value=ast.Call(func=ast.Name(id="prefix_rule")) as call):
                permissions.append(_rule(call, names, f"line {statement.lineno}: {source}"))
            case ast.Expr(value=ast.Call(func=ast.Name(id="host_executable"))):
                permissions.append(
                    _unsaid(source, Decision.AUTO, "a rule names a program by its name, in any folder if stricter")
                )
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                permissions.append(
                    _unsaid(source, Decision.DENY, "it is not a call of prefix_rule, so its rules are not known")
                )
    return permissions, DEFAULTS


def _unsaid(source: str, decision: Decision, problem: str) -> Permission:
    return Permission(source=source, decision=decision, kind=Kind.COMMANDS, problem=problem)


def _rule(call: ast.Call, names: Mapping[str, _Words | None], source: str) -> Permission:
    keys = {keyword.arg: _value(keyword.value, names) for keyword in call.keywords}
    pattern, word, reason = keys.get("pattern"), keys.get("decision", "allow"), keys.get("justification")
    decision = _DECISIONS.get(word) if isinstance(word, str) else None
    if decision is None or call.args or None in keys:
        return _unsaid(source, Decision.DENY, "its decision is not known")
    tokens = _tokens(pattern)
    if tokens is None:
        return _unsaid(source, decision, "its pattern is not a list of words")
    words = [word for token in tokens for word in token]
    if decision is Decision.AUTO and any("*" in word or word == "..." for word in words):
        return _unsaid(source, decision, "a star in `argv` is a pattern")
    argv: list[str | list[str]] = [token[0] if len(token) == 1 else token for token in tokens]
    rule: dict[str, Value] = {"argv": [*argv, "..."] if decision is Decision.AUTO else argv}
    if decision is Decision.AUTO:
        rule["walls"] = "workspace"
    else:
        options = [word for token in tokens[1:] if all(map(is_option, token)) for word in token]
        plain = [tokens[0], *(token for token in tokens[1:] if not all(map(is_option, token)))]
        if options and len(plain) + 1 == len(tokens):  # one choice of options, which may be anywhere
            rule |= {"argv": [token[0] if len(token) == 1 else token for token in plain], "flags": options}
        rule["match"] = [shlex.join(token[0] for token in tokens)]
    if isinstance(reason, str) and reason:
        rule["reason"] = reason
    return Permission(source=source, decision=decision, kind=Kind.COMMANDS, keys=rule)


def _tokens(pattern: _Words | None) -> list[list[str]] | None:
    """Return the alternatives of each word. `None` if the pattern has another form."""
    if not isinstance(pattern, list) or not pattern:
        return None
    tokens = []
    for token in pattern:
        words = token if isinstance(token, list) else [token]
        if not words or not all(isinstance(word, str) and word for word in words):
            return None
        tokens.append([str(word) for word in words])
    return tokens


def _value(node: ast.expr, names: Mapping[str, _Words | None]) -> _Words | None:
    """Return the value of a literal, a name or a sum. `None` for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            values = [_value(element, names) for element in elements]
            return None if None in values else [value for value in values if value is not None]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left, names), _value(right, names)
            if isinstance(first, list) and isinstance(second, list):
                return [*first, *second]
            return first + second if isinstance(first, str) and isinstance(second, str) else None
        case _:
            return None
