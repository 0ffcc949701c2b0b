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
from harness.policy.spellings import is_option
from harness.programs.catalog import CLUSTERS
from harness.session.rule_subjects import Value
from harness.text.strict_json import NotJsonError, read_one

_LISTS = {"allow": Decision.AUTO, "ask": Decision.CONFIRM, "deny": Decision.DENY}
_FILE_TOOLS = {"Read": Kind.READS, "Glob": Kind.READS, "Grep": Kind.READS, "LS": Kind.READS} | dict.fromkeys(
    ("Edit", "Write", "MultiEdit", "NotebookEdit"), Kind.WRITES
)
_MODES = {
    "acceptEdits": dict.fromkeys(Kind.WRITES.value, Decision.AUTO),
    "dontAsk": dict.fromkeys(ASKED, Decision.DENY),
}
_SHELL = re.compile(r"[|&;<>()$`\\\"'{}\[\]?~#!\n]")
"""Characters that make the words of a command uncertain."""


def claude_permissions(text: str) -> tuple[list[Permission], Mapping[str, Decision]]:
    """Return the permissions of a settings.json, and the defaults of its mode. Raises UsageError for another format."""
    try:
        settings = read_one(text)
    except NotJsonError as error:
        raise UsageError(f"invalid JSON: {error}") from None
    table = settings.get("permissions", {}) if isinstance(settings, dict) else None
    if not isinstance(table, dict):
        raise UsageError("not settings of Claude Code: `permissions` must be an object")
    permissions: list[Permission] = []
    for name, decision in _LISTS.items():
        entries = table.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise UsageError(f"permissions.{name} must be a list of strings")
        permissions += [_permission(str(entry).strip(), decision) for entry in entries]
    mode = str(table.get("defaultMode", "default"))
    if mode not in (*_MODES, "default"):
        permissions.append(_left_out(f"defaultMode {mode}", "a mode is chosen at the prompt, not in a policy"))
    for key in table.keys() - {*_LISTS, "defaultMode"}:
        permissions.append(
            _left_out(key, "places outside the workspace are asked about (built-in), and modes have no key here")
        )
    return permissions, {**DEFAULTS, **_MODES.get(mode, {})}


def _left_out(source: str, reason: str) -> Permission:
    return Permission(source=source, decision=Decision.AUTO, problem=reason)


def _permission(entry: str, decision: Decision) -> Permission:
    match = re.fullmatch(r"([\w*-]+)(?:\((.*)\))?", entry, re.DOTALL)
    if match is None:
        return Permission(source=entry, decision=decision, kind=Kind.COMMANDS, problem="its form is not known")
    tool, content = match[1], match[2]
    is_whole = content in (None, "", "*", "**", ":*")
    if tool == "Bash":
        kind, keys = Kind.COMMANDS, {} if is_whole else _command(str(content), decision)
    elif tool in _FILE_TOOLS:
        kind = _FILE_TOOLS[tool]
        keys = {} if is_whole else _files(str(content), kind, decision)
    elif tool == "WebFetch":
        kind, keys = Kind.WEB, {} if is_whole else _host(str(content), decision)
    elif tool.startswith("mcp__") and is_whole:
        parts = tool.split("__")
        kind, keys = Kind.OTHERS, {"tool": [tool if len(parts) > 2 else f"{tool}__*"]}
    else:
        problem = "harness has no such tool"
        return Permission(source=entry, decision=decision, problem=problem, is_harmless=not tool.startswith("mcp__"))
    if keys is None:
        problem = "`argv` has no such pattern" if kind is Kind.COMMANDS else "a policy has no such pattern"
        return Permission(source=entry, decision=decision, kind=kind, problem=problem)
    return Permission(source=entry, decision=decision, kind=kind, keys=keys)


def _command(pattern: str, decision: Decision) -> dict[str, Value] | None:
    """Return the keys of a rule for a pattern of commands. `None` if there are none."""
    is_prefix = pattern.endswith((":*", " *", "*"))
    begin = pattern.removesuffix("*").removesuffix(":")
    words = begin.split()
    is_plain = bool(words) and "*" not in begin and not _SHELL.search(begin)
    if decision is Decision.AUTO:  # of `test*` only `test` and further words
        return {"argv": [*words, *(["..."] if is_prefix else [])], "walls": "workspace"} if is_plain else None
    is_whole_word = pattern[-2:] in (":*", " *") or not is_prefix
    if is_plain and (is_whole_word or (len(words) > 1 and words[-1][0] != "-")):
        return _strict_command(words if is_whole_word else [*words[:-1], f"{words[-1]}*"], shlex.join(words))
    if is_plain and words[0] in CLUSTERS:  # `rm -rf*`: the letter is in each of these words
        return _strict_command(words, shlex.join(words))
    piece = max((piece.strip() for piece in pattern.removesuffix(":*").split("*")), key=len)
    return {"text": piece, "match": [f"x {piece}"]} if piece else None


def _strict_command(words: list[str], example: str) -> dict[str, Value]:
    """Return the keys of a stricter rule for the first words of a command, with its options at any place."""
    flags = [word[:2] if word[1] != "-" and words[0] in CLUSTERS else word for word in words[1:] if is_option(word)]
    argv = [word for word in words if not is_option(word)]
    return {"argv": argv, "match": [example], "flags": flags}


def _files(pattern: str, kind: Kind, decision: Decision) -> dict[str, Value] | None:
    """Return the keys of a rule for a gitignore pattern. A stricter rule matches at any depth, which is more."""
    is_auto = decision is Decision.AUTO
    paths = [_path(each, is_auto=is_auto) for each in _without_braces(pattern)]
    if not all(paths):
        return None
    keys: dict[str, Value] = {"access": ["read" if kind is Kind.READS else "write"], "path": paths}
    examples = [re.sub(r"/$", "/x", path.replace("**/", "").replace("*", "x")) for path in paths]
    return keys if is_auto else keys | {"match": examples}


def _without_braces(pattern: str) -> list[str]:
    """Return the pattern once for each alternative in its braces."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [path for each in match[1].split(",") for path in _without_braces(f"{before}{each}{after}")]


def _path(pattern: str, *, is_auto: bool) -> str:
    """Return the pattern for `path`. Empty if there is none."""
    is_outside = pattern.startswith(("//", "~"))
    plain = pattern.removeprefix("~").removeprefix("./").strip("/").removesuffix("**").rstrip("/")
    if not plain or set("{}!?[") & set(plain) or (is_auto and is_outside):
        return ""
    ending = "/" if pattern.endswith(("/", "/**")) else ""
    if is_auto:
        is_name = "/" not in plain and not ending and not pattern.startswith(("/", "./"))
        return f"{'' if is_name else '/'}{plain}{ending}"
    begin = "" if "/" not in plain or plain.startswith("**/") else "**/"
    return f"{begin}{plain}{ending}"


def _host(content: str, decision: Decision) -> dict[str, Value] | None:
    domain = content.removeprefix("domain:")
    if domain == content or not domain:
        return None
    strict = decision is not Decision.AUTO and not domain.startswith("*.")
    return {"host": [domain, f"*.{domain}"], "match": [domain]} if strict else {"host": [domain]}
