"""A suggested rule as policies write it: TOML in ASCII, whatever its words hold; pure, judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_MOST_ID = 40


def command_rule(
    taken: Iterable[str],
    *,
    argv: Sequence[str],
    rest: bool,
    flags: Sequence[str],
    write: bool,
    network: bool,
    match: Sequence[str],
    not_match: Sequence[str],
    times: int,
) -> tuple[str, str]:
    """Return id and text of an auto rule for commands. With `write`, they may write the workspace."""
    name = _id("-".join(argv), taken)
    lines = [f"argv      = {_list([*argv, '...'] if rest else argv)}"]
    lines += [f"flags     = {_list(flags)}"] if flags else []
    lines += ['write     = ["."]'] if write else []
    lines += ["network   = true"] if network else []
    return name, _rule(name, lines, match, not_match, times)


def path_rule(
    taken: Iterable[str],
    *,
    pattern: str,
    tools: Sequence[str],
    access: Sequence[str],
    match: Sequence[str],
    not_match: Sequence[str],
    times: int,
) -> tuple[str, str]:
    """Return id and text of an auto rule for files."""
    name = _id(pattern, taken)
    lines = [f"tool      = {_list(tools)}", f"access    = {_list(access)}", f"path      = {_list([pattern])}"]
    return name, _rule(name, lines, match, not_match, times)


def toml_text(text: str) -> str:
    """Return `text` as a basic string of TOML 1.0, in printable ASCII. It must hold no lone surrogate."""
    return '"' + "".join(map(_character, text)) + '"'


def _character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if " " <= char <= "~":
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(map(toml_text, items))}]"


def _rule(name: str, lines: Sequence[str], match: Sequence[str], not_match: Sequence[str], times: int) -> str:
    return "\n".join(
        (
            "[[rule]]",
            f"id        = {toml_text(name)}",
            'decision  = "auto"',
            *lines,
            f'reason    = "Approved {times} times, and never refused."',
            f"match     = {_list(match)}",
            f"not_match = {_list(not_match)}",
            "",
        )
    )


def _id(words: str, taken: Iterable[str]) -> str:
    """Return a name for a rule that no other has."""
    slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in words.lower())
    name = "-".join(part for part in slug.split("-") if part)[:_MOST_ID].rstrip("-") or "rule"
    known, number, found = set(taken), 1, f"suggested-{name}"
    while found in known:
        number += 1
        found = f"suggested-{name}-{number}"
    return found
