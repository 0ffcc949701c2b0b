"""The words of docstrings, names, messages and pages, counted. Stored totals only fall: lower them when a count falls.

A docstring is that of a module, class or function, or the string after the assignment of a field or a constant. Code in
backquotes counts as one word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from places import ROOT

QUESTION = "(?:What|Who|Whom|Whose|Which|How|Where|When|Why|what|who|whom|whose|which|how|where|when|why)"
HARD = {
    "a field begins with a preposition": r"\A(?:Of|By|As|In|At|Its|Those|So|Also|Likewise)\b|\A(?:None|Empty):",
    "a passive without an actor": r"""
        \b(?:is|are|was|were|be)\ (?:said|told|heard|meant|spoken)\b(?!\ (?:to|as|for)\b)
        | (?:\A|(?<=[.!?]\ ))(?:[A-Z]\w+ed|Told|Said|Kept|Held|Known|Meant|Shown|Given|Made|Seen|Taken|Left)\ (?:is|are)\b
        | \b(?:is|are)\ (?:asked|known)\b(?!\ (?:to|as|for|by)\b)
    """,
    "stand, lie, come of, become of": r"\b(?:stands?|stood|lies|lay)\b|\b(?:comes?|came|becomes?|became)\ of\b",
    "nothing for an absent value": r"\bor\ nothing\b|\bnothing\ (?:where|if|of|for)\b|;\ nothing\b",
    "for as a conjunction": r",\ for\ (?:it|they|there|nobody|what)\b",
}
"""Patterns that no new docstring may have, by name. The first is for fields and constants alone."""
CLAUSE = rf"\A(?:\w+:\ )?(?:(?:Return|Yield|Say|Take|Give|Tell|Show|Know|Keep|Hold|Read|Write)\ )?{QUESTION}\b"
"""A first sentence with a clause in the place of a noun."""
EMPTY_NAMES = frozenset(
    """
    one found said told known why shown asked answered held kept left given wanted what who how where about whole own most
    begun ended gone made meant named listed counted judged taken seen there here besides behind least half things some
    others further
    """.split()
)
"""Names that do not say what they name."""
SOFT = {
    "nobody in particular": r"\b(?:[Ww]hoever|[Ww]hatever|[Ss]omebody|[Aa]nybody|[Nn]obody)\b",
    "is no": r"\b(?:is|are)\ no\b",
    "in the place of": r"\b(?:in\ the\ place\ of|in\ its\ place|likewise|its\ like|besides|meanwhile)\b",
}
"""Patterns that no text for users or the model may have."""
HELP = rf"\A(?:of|else|by|also|so|those|with|at|{QUESTION}|\w+ed|told|said|kept|held|meant|taken)\b"
"""A help text that does not begin with a noun, or with the verb of a switch."""
BARE = r"\A(?:it|that|they|this|It|That|They|This)\b"
"""A message that does not name its subject."""
PAGE_CLAUSE = rf"{CLAUSE}.*(?<!\?)\Z"
"""The same on a page, where a question may begin so."""
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs")
TOTALS = {
    "hard patterns": 0,
    "clauses for subjects": 4,
    "empty names": 28,
    "help texts": 0,
    "raised texts": 0,
    "sentences of pages": 0,
}
"""The counts of today, each the most that is accepted."""


class Docstring(NamedTuple):
    """A docstring, and its place."""

    place: str
    text: str
    is_field: bool


@cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(Path(ROOT, "harness").rglob("*.py"))
    return tuple((str(path.relative_to(ROOT)), ast.parse(path.read_text())) for path in paths)


@cache
def nodes() -> tuple[tuple[str, ast.AST], ...]:
    return tuple((path, node) for path, tree in sources() for node in ast.walk(tree))


def test_the_totals_only_fall() -> None:
    counts = {kind: len(places) for kind, places in hits().items()}
    above = {kind: hits()[kind][-20:] for kind, count in counts.items() if count > TOTALS[kind]}
    assert above == {}, "new ones are among these, or lower another: python tests/test_plain_english.py lists all"
    assert counts == TOTALS, "lower the stored totals"


def docstrings() -> Iterator[Docstring]:
    for path, node in nodes():
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from _docstrings_in(path, node if name == "body" else None, block)


def _docstrings_in(path: str, owner: ast.AST | None, block: list[ast.stmt]) -> Iterator[Docstring]:
    has_docstring = isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    for number, statement in enumerate(block):
        text = _text_of(statement.value) if isinstance(statement, ast.Expr) else ""
        is_field = number > 0 and isinstance(block[number - 1], ast.Assign | ast.AnnAssign)
        if text and (is_field or (number == 0 and has_docstring)):
            yield Docstring(f"{path}:{statement.lineno}", _without_code(text), is_field)


def _text_of(node: ast.AST) -> str:
    """Return the text of a literal, each replacement field of an f-string as one word; empty for other nodes."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text_of(part) or "`x`" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text_of(left) + _text_of(right)
        case _:
            return ""


def _without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", "code", " ".join(text.split()))


def bindings() -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each variable, parameter, function and attribute that the package binds."""
    for path, node in nodes():
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield f"{path}:{node.lineno}", name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield f"{path}:{node.lineno}", name
            case _:
                pass


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each `help` and `description` that a call is given as a literal."""
    for path, node in nodes():
        if not isinstance(node, ast.keyword):
            continue
        is_help = node.arg in ("help", "description", "epilog")
        if is_help and (text := _text_of(node.value)):
            yield f"{path}:{node.value.lineno}", _without_code(text)


def raised_texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each exception that is raised with a literal."""
    for path, node in nodes():
        error = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(error, ast.Call) and error.args and (text := _text_of(error.args[0])):
            yield f"{path}:{error.lineno}", _without_code(text)


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the page and the text of each sentence outside of blocks of code."""
    for name in PAGES:
        path = Path(ROOT, name)
        for page in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            prose = re.sub(r"(?ms)^ *```.*?^ *```|^ {4}[^\n]*$", "", page.read_text())
            for line in prose.splitlines():
                for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*])|\|", line.lstrip("#-*0123456789. ")):
                    if text := _without_code(sentence).strip():
                        yield str(page.relative_to(ROOT)), text


@cache
def hits() -> dict[str, list[str]]:
    """Return the places of each count."""
    counted: dict[str, list[str]] = {kind: [] for kind in TOTALS}
    for docstring in docstrings():
        for name, pattern in HARD.items():
            if name.startswith("a field") and not docstring.is_field:
                continue
            if re.search(pattern, docstring.text, re.VERBOSE):
                counted["hard patterns"].append(f"{docstring.place}: {name}: {docstring.text[:90]}")
        if re.search(CLAUSE, docstring.text):
            counted["clauses for subjects"].append(f"{docstring.place}: {docstring.text[:90]}")
    counted["empty names"] = [f"{place}: {name}" for place, name in bindings() if name.lstrip("_") in EMPTY_NAMES]
    for kind, texts, pattern in (
        ("help texts", help_texts(), HELP),
        ("raised texts", raised_texts(), BARE),
        ("sentences of pages", sentences(), PAGE_CLAUSE),
    ):
        counted[kind] = [f"{place}: {text[:110]}" for place, text in texts if _is_flagged(text, pattern)]
    return counted


def _is_flagged(text: str, pattern: str) -> bool:
    general = [hard for name, hard in HARD.items() if not name.startswith("a field")]
    return any(re.search(each, text, re.VERBOSE) for each in (*general, *SOFT.values())) or bool(
        re.search(pattern, text)
    )


if __name__ == "__main__":
    for kind, places in hits().items():
        print(f"\n{kind}: {len(places)}", *places, sep="\n  ")
