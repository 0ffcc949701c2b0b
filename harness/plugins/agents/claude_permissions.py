"""The permissions in a settings.json of Claude Code, read for `harness policy import`.

Facts: code.claude.com/docs/en/permissions. Deny comes before ask, ask before allow, as the strictest wins here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from harness.actions import Decision
from harness.errors import UsageError
from harness.plugins.agents.imported_policy import ASKED, DEFAULTS, Kind, Permission
from harness.policy.plain_commands import plain_command
from harness.policy.spellings import is_option
from harness.programs.catalog import CLUSTERS
from harness.programs.synonyms import option_synonyms, synonyms
from harness.session.rule_subjects import Value
from harness.shell.parser import RESERVED
from harness.text.strict_json import NotJsonError, read_one

_LISTS = {"allow": Decision.AUTO, "ask": Decision.CONFIRM, "deny": Decision.DENY}
_KINDS = {
    "Bash": Kind.COMMANDS,
    **dict.fromkeys(("Read", "Glob", "Grep", "LS"), Kind.READS),
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), Kind.WRITES),
    "WebFetch": Kind.WEB,
}
"""The kinds of the tools that harness has, too."""
_MODES = {
    "acceptEdits": dict.fromkeys(Kind.WRITES.value, Decision.AUTO),
    "dontAsk": dict.fromkeys(ASKED, Decision.DENY),
}
_SHELL = re.compile(r"[|&;<>()$`\\\"'{}\[\]?~#!\n]")
"""Characters that make the words of a command uncertain."""
_SET = re.compile(r"[A-Za-z_]\w*=")
"""A variable in front of a command."""
_PATTERN = re.compile(r"[^/]*[{}!?\[\]\\][^/]*")
"""A part of a path with a pattern that `path` does not have."""


def claude_permissions(text: str) -> tuple[list[Permission], Mapping[str, Decision]]:
    """Return the permissions of a settings.json, and the defaults of its mode. Raises UsageError for another format."""
    try:
        settings = read_one(text)
    except NotJsonError as error:
        raise UsageError(f"invalid JSON: {error}") from None
    table = settings.get("permissions", {}) if isinstance(settings, dict) else None
    if not isinstance(settings, dict) or not isinstance(table, dict):
        raise UsageError("not settings of Claude Code: `permissions` must be an object")
    mode = str(table.get("defaultMode", "default"))
    permissions: list[Permission] = []
    for name, decision in _LISTS.items():
        entries = table.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise UsageError(f"permissions.{name} must be a list of strings")
        is_refused = mode == "dontAsk" and decision is Decision.CONFIRM
        decision_here = Decision.DENY if is_refused else decision
        permissions += [_permission(str(entry).strip(), decision_here) for entry in entries]
    if mode not in (*_MODES, "default"):
        permissions.append(_left_out(f"defaultMode {mode}", "a mode is chosen at the prompt, not in a policy"))
    for key in table.keys() - {*_LISTS, "defaultMode"}:
        permissions.append(
            _left_out(key, "places outside the workspace are asked about (built-in), and modes have no key here")
        )
    for key in ("env", "hooks", "sandbox"):
        if key in settings:
            permissions.append(_left_out(key, "only `permissions` is read"))
    return permissions, {**DEFAULTS, **_MODES.get(mode, {})}


def _left_out(source: str, reason: str) -> Permission:
    return Permission(source=source, decision=Decision.AUTO, problem=reason)


def _permission(entry: str, decision: Decision) -> Permission:
    match = re.fullmatch(r"([\w*-]+)(?:\((.*)\))?", entry, re.DOTALL)
    if match is None:
        return Permission(source=entry, decision=decision, kind=Kind.ANY, problem="its form is not known")
    tool, content = match[1], match[2]
    is_strict = decision is not Decision.AUTO
    is_whole = content in (None, "", "*", "**", ":*")
    if tool.startswith("mcp__") and (is_whole or is_strict):
        keys: dict[str, Value] = {"tool": [_server_tool(tool)]}
        is_wider = not is_whole or "*" in tool[:-1]
        return Permission(source=entry, decision=decision, kind=Kind.OTHERS, keys=keys, is_wider=is_wider)
    kind = _KINDS.get(tool)
    if kind is None:
        is_pattern = "*" in tool
        problem = "its tools are not known" if is_pattern else "harness has no such tool"
        return Permission(source=entry, decision=decision, kind=Kind.ANY, problem=problem, is_harmless=not is_pattern)
    if is_whole:
        return Permission(source=entry, decision=decision, kind=kind)
    return _scoped(entry, kind, str(content), decision)


def _scoped(entry: str, kind: Kind, content: str, decision: Decision) -> Permission:
    """Return the permission on some calls of a tool."""
    is_strict = decision is not Decision.AUTO
    keys: dict[str, Value] | None
    is_wider = False
    match kind:
        case Kind.COMMANDS if is_strict:
            keys, is_wider = _strict_command(content)
        case Kind.COMMANDS:
            keys = _allowed_command(content)
        case Kind.WEB:
            keys = _host(content, decision)
        case _ if is_strict and content.startswith("!"):
            problem = "it is an exception from other permissions, which hold without it"
            return Permission(source=entry, decision=decision, problem=problem, is_harmless=True)
        case _:
            keys, is_wider = _files(content, kind, is_strict=is_strict)
    if keys is None:
        problem = "`argv` has no such pattern" if kind is Kind.COMMANDS else "a policy has no such pattern"
        return Permission(source=entry, decision=decision, kind=kind, problem=problem)
    return Permission(source=entry, decision=decision, kind=kind, keys=keys, is_wider=is_wider)


def _server_tool(name: str) -> str:
    """Return the name of a server's tools in a policy. Without the end of a name that has a star in it."""
    begin, star, end = name.partition("*")
    if end or len(name.split("__")) > 2:
        return begin + star
    return f"{begin}{star or '__*'}"


def _allowed_command(pattern: str) -> dict[str, Value] | None:
    """Return the keys of an auto rule. `None` if there are none. `test*` allows only `test` and further words."""
    is_prefix = pattern.endswith("*")
    begin = pattern.removesuffix("*").removesuffix(":")
    words = begin.split()
    count = next((place for place, word in enumerate(words) if not _SET.match(word)), len(words))
    variables, words = [word.partition("=")[0] for word in words[:count]], words[count:]
    if not words or "*" in begin or _SHELL.search(begin):
        return None
    return {"argv": [*words, *(["..."] if is_prefix else [])], "env": variables, "walls": "workspace"}


def _strict_command(pattern: str) -> tuple[dict[str, Value], bool]:
    """Return the keys of a stricter rule, and whether it is stricter than the pattern. No keys: all commands."""
    is_prefix = pattern.endswith("*")
    begin = pattern.removesuffix("*").removesuffix(":")
    words = begin.split()
    is_plain = bool(words) and "*" not in begin and not _SHELL.search(begin) and words[0] not in RESERVED
    is_whole_word = pattern[-2:] in (":*", " *") or not is_prefix
    if is_plain and (is_whole_word or (len(words) > 1 and words[-1][0] != "-")):
        return _words(words if is_whole_word else [*words[:-1], f"{words[-1]}*"], shlex.join(words)), False
    if is_plain and words[0] in CLUSTERS:  # `rm -rf*`: the letter is in each of these words
        return _words(words, shlex.join(words)), False
    first, _, rest = pattern.removesuffix(":*").partition(" ")
    is_program = not _SHELL.search(pattern) and "*" not in first and plain_command((first,)) is not None
    piece = max((piece.strip() for piece in (rest if is_program else pattern).split("*")), key=len)
    if is_program:
        return {"argv": [first], "text": piece, "match": [f"{first} {piece}".strip()]}, True
    return ({"text": piece, "match": [f"x {piece}"]} if piece else {}), True


def _words(words: list[str], example: str) -> dict[str, Value]:
    """Return the keys of a stricter rule for the first words of a command, with its options at any place.

    It names the other spellings that the program takes (`pnpm i`, `--recursive`), too.
    """
    flags = [word[:2] if word[1] != "-" and words[0] in CLUSTERS else word for word in words[1:] if is_option(word)]
    first, *rest = (word for word in words if not is_option(word))
    for _ in range(2):  # the letter of a long form, and the other letters of that
        flags += [each for flag in flags for each in option_synonyms(first, rest, flag) if each not in flags]
    argv = [
        [word, *same] if (same := [each[0] for each in synonyms(first, word) if len(each) == 1]) else word
        for word in rest
    ]
    return {"argv": [first, *argv], "match": [example], "flags": list(dict.fromkeys(flags))}


def _files(pattern: str, kind: Kind, *, is_strict: bool) -> tuple[dict[str, Value] | None, bool]:
    """Return the keys of a rule for a gitignore pattern, and whether it is stricter. `None` if there are none.

    A stricter rule matches at any depth, which is more.
    """
    plain = _without_braces(pattern)
    paths = [_strict_path(each) if is_strict else _allowed_path(each) for each in plain]
    if not all(paths):
        return None, False
    keys: dict[str, Value] = {"access": ["read" if kind is Kind.READS else "write"], "path": paths}
    if not is_strict:
        return keys, False
    examples = [re.sub(r"/$", "/x", path.replace("**/", "").replace("*", "x")) for path in paths]
    return keys | {"match": examples}, any(map(_PATTERN.search, plain)) or "*" in paths


def _without_braces(pattern: str) -> list[str]:
    """Return the pattern once for each alternative in its braces."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [path for each in match[1].split(",") for path in _without_braces(f"{before}{each}{after}")]


def _strict_path(pattern: str) -> str:
    """Return a pattern for `path` that matches at least the same files."""
    plain = _PATTERN.sub("*", _name(pattern))
    if plain in ("", "*"):
        return "*"
    begin = "" if "/" not in plain or plain.startswith("**/") else "**/"
    return f"{begin}{plain}{_ending(pattern)}"


def _allowed_path(pattern: str) -> str:
    """Return the pattern for `path`. Empty if there is none."""
    plain = _name(pattern)
    if not plain or _PATTERN.search(plain) or pattern.startswith(("//", "~", "../")):
        return ""
    is_name = "/" not in plain and not _ending(pattern) and not pattern.startswith(("/", "./"))
    return f"{'' if is_name else '/'}{plain}{_ending(pattern)}"


def _name(pattern: str) -> str:
    """Return a pattern of paths without its anchor and its end."""
    plain = re.sub(r"^(?:~|(?:\.\.?/)+)", "", pattern)
    return plain.strip("/").removesuffix("**").rstrip("/")


def _ending(pattern: str) -> str:
    return "/" if pattern.endswith(("/", "/**")) else ""


def _host(content: str, decision: Decision) -> dict[str, Value] | None:
    domain = content.removeprefix("domain:")
    if domain == content or not domain:
        return None
    strict = decision is not Decision.AUTO and not domain.startswith("*.")
    return {"host": [domain, f"*.{domain}"], "match": [domain]} if strict else {"host": [domain]}
