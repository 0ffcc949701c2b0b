"""Tools of which a policy refuses every call."""

from __future__ import annotations

from rows import all_rows

from harness.policy.loader import parse_policy
from harness.policy.policy import denies_altogether

BASE = 'version = 1\n[tools]\nread_file = "auto"\nwrite_file = "deny"\nedit_file = "block"\nbash = "deny"\ndefault = "deny"\n'
DOCS = '[[rule]]\nid = "docs"\ndecision = "auto"\naccess = ["write"]\npath = ["/docs/"]\n'
ONE_TOOL = DOCS + 'tool = ["write_file"]\n'
LS = '[[rule]]\nid = "ls"\ndecision = "confirm"\nargv = ["ls"]\n'
STRICT = '[[rule]]\nid = "rm"\ndecision = "deny"\nreason = "no"\nargv = ["rm"]\n'

ROWS = {
    "refused": (BASE, ["bash", "edit_file", "write_file"]),
    "a strict rule lifts nothing": (BASE + STRICT, ["bash", "edit_file", "write_file"]),
    "files that a rule lets be written": (BASE + DOCS, []),
    "by one tool": (BASE + ONE_TOOL, ["bash", "edit_file"]),
    "a command that a rule asks about": (BASE + LS, ["edit_file", "write_file"]),
    "readers": (BASE.replace("[tools]", "[tools]\nreaders = true"), ["edit_file", "write_file"]),
    "asked about": (BASE.replace('"deny"', '"confirm"'), ["edit_file"]),
    "a star": (BASE + '"mcp__files__*" = "deny"\n', ["bash", "edit_file", "mcp__files__read", "write_file"]),
    "a tool by its name": (BASE + 'web_fetch = "deny"\n', ["bash", "edit_file", "web_fetch", "write_file"]),
}
TOOLS = ("bash", "edit_file", "mcp__files__read", "read_file", "todo", "web_fetch", "write_file")


@all_rows("text, refused", ROWS)
def test_tool_with_only_refused_calls_is_found(text: str, refused: list[str]) -> None:
    policy = parse_policy(text.encode(), "p.toml")
    assert [tool for tool in TOOLS if denies_altogether(policy, tool)] == refused
