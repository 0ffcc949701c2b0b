"""`harness mcp check`: starts each configured server in its walls, lists its tools, ends it, and prints a line.

For one server it prints the details too.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping

from harness.errors import UsageError, nearest
from harness.files.workspace import Workspace
from harness.plugins.mcp.commands.list_command import configured, masking, standing, way_to
from harness.plugins.mcp.configured_server import ServerReport, Standing
from harness.plugins.mcp.mcp_servers import McpServers
from harness.plugins.mcp.pins import PinFile, ToolPin, pins_folder
from harness.plugins.mcp.server_declaration import KEY, ServerDeclaration, secrets_of
from harness.plugins.mcp.server_walls import ServerStarter, server_machine
from harness.regex import regex
from harness.session.exits import Exit
from harness.session.own_folders import fix_modes
from harness.session.policies import assemble
from harness.session.state import State, current_folder
from harness.terminal.console import complain
from harness.text.amounts import count_of
from harness.text.visible import visible_line
from harness.tools.command_walls import CommandWalls

FAILED = 1
"""Exit code if a server did not list its tools, or if its list differs from `pinned`."""
MOST_SECONDS = 3_600.0
"""Maximum seconds for one server. Its own time limits for connecting and listing are shorter."""
MOST_ERROR_LINES = 20
"""Maximum number of lines shown from the end of a server's stderr."""
_NO_NETWORK = regex(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|getaddrinfo|name resolution|[Nn]etwork is unreachable|"
    r"[Cc]ould not resolve|ConnectError|socket"
)
_NO_WRITE = regex(r"EACCES|EROFS|EPERM|[Pp]ermission denied|Read-only file system|Operation not permitted")
_PLACE = regex(r"['\"](/[^'\"\s]{1,300})['\"]")


def check_command(arguments: Namespace, environment: Mapping[str, str]) -> int:
    """Start and end the chosen servers, and report. Return 0, or 1 if a server failed. Raises UsageError."""
    state = State.of(environment)
    fix_modes(state, complain)
    configuration = configured(arguments, environment, starts=True)
    servers = configuration.extensions.in_section(KEY)
    if arguments.name is not None and arguments.name not in servers:
        raise UsageError(
            f"no MCP server {visible_line(arguments.name, 50)!r} is configured{nearest(arguments.name, servers)}"
        )
    for note in configuration.notes:
        _say(note)
    chosen = [chosen_server for name, chosen_server in servers.items() if arguments.name in (None, name)]
    if not chosen:
        _say("no MCP server is configured here")
        return Exit.DONE
    redactor = masking(state, environment, secrets_of(chosen, environment))
    redact = redactor.redact
    workspace = Workspace(current_folder(), environment.get("HOME"))
    policy = assemble(state, workspace.root, names=None, fallback="default")
    walls = CommandWalls(workspace, hide=state.guarded, machine=server_machine())
    starter = ServerStarter(workspace, walls, policy, environment)
    code: int = Exit.DONE
    for declaration in chosen:
        report = _tried(
            McpServers([declaration], starter, workspace, pins=pins_folder(state), redact=redact, learn=redactor.learn)
        )
        pins = PinFile(pins_folder(state), declaration.name).read()
        reason = _why_not(report, declaration)
        code = FAILED if reason else code
        word = "ok" if not report.notes and not _with_hidden_characters(report) else "not clean"
        end = f"failed: {reason}" if reason else f"{word}, {_tools_in_a_line(report, pins)}"
        _say(redact(f"{declaration.name}: {end}"))
        if len(chosen) == 1:
            _say("")
            origin = configuration.extensions.of(KEY, declaration.name)
            _say(redact(f"{declaration.name}  {way_to(declaration)}  ({origin})"))
            for line in _report_lines(report, declaration, pins):
                _say(f"  {redact(line)}")
    if len(chosen) > 1:
        _say("`harness mcp check NAME` shows the tools, the walls and the errors of one server")
    return code


def _tools_in_a_line(report: ServerReport, pins: Mapping[str, ToolPin]) -> str:
    """Return the number of a server's tools, of those in each state, and of its notes."""
    states = Counter(standing(pins[tool.name], tool.command) if tool.name in pins else "new" for tool in report.tools)
    notes = [count_of(len(report.notes), "note")] if report.notes else []
    hidden = len(_with_hidden_characters(report))
    notes += [f"{hidden} with hidden characters"] if hidden else []
    counts = [*(f"{number} {state}" for state, number in states.items()), *notes]
    return ", ".join((count_of(len(report.tools), "tool"), *counts))


def _with_hidden_characters(report: ServerReport) -> list[str]:
    """Return the names of the tools of whose descriptions a person would not see every character."""
    return [tool.name for tool in report.tools if tool.text != tool.plain_text]


def _why_not(report: ServerReport, declaration: ServerDeclaration) -> str:
    if report.standing is not Standing.READY:
        return report.reason
    return "" if declaration.pinned in ("", report.digest) else "it lists something else than its `pinned` holds"


def _tried(servers: McpServers) -> ServerReport:
    """Start and end the only server in `servers`. Return a report on it."""
    servers.start()
    try:
        servers.wait(MOST_SECONDS)
        (report,) = servers.reports()
    finally:
        servers.close()
    if report.standing is not Standing.READY:
        (report,) = servers.reports()  # now with the end of its stderr
    return report


def _report_lines(report: ServerReport, declaration: ServerDeclaration, pins: Mapping[str, ToolPin]) -> Iterator[str]:
    yield f"held by {report.held_by}"
    if report.standing is not Standing.READY:
        lines = [line for line in report.errors.splitlines() if line.strip()][-MOST_ERROR_LINES:]
        yield from (["the end of what it wrote to stderr:"] if lines else [])
        yield from (f"  {line}" for line in lines)
        yield from hints(declaration, f"{report.reason}\n{report.errors}")
        return
    if _why_not(report, declaration):
        yield f'the whole list has pinned = "{report.digest}"'
        yield f"its pinned in the configuration is another: {declaration.pinned}"
        return
    yield f'{count_of(len(report.tools), "tool")}; to hold the whole list, configure pinned = "{report.digest}"'
    if any(tool.name not in pins or pins[tool.name].listed is not None for tool in report.tools):
        yield f"to pin one tool: harness mcp pin {declaration.name} --yes SHA256, with the sha256 of that tool"
    yield from (f"note: {note}" for note in report.notes)
    yield from (f"note: {name}: its hidden characters are shown as escapes" for name in _with_hidden_characters(report))
    if report.noise:
        yield f"note: {count_of(report.noise, 'line')} of its output were no messages"
    for tool in report.tools:
        yield f"{standing(pins[tool.name], tool.command) if tool.name in pins else 'new'}: {tool.name}, sha256 {tool.sha256}"
        yield from (f"  {line}" for line in tool.text.splitlines()[1:-2])  # without name and command line


def hints(declaration: ServerDeclaration, error_text: str) -> Iterator[str]:
    """Yield hints on failures that were probably caused by the walls, judging by a server's output."""
    if not declaration.command:
        return
    table = f"[{KEY}.{declaration.name}]"
    if not declaration.network and _NO_NETWORK.search(error_text):
        yield f"hint: it may not reach the network; `network = true` under {table} lets it"
    if _NO_WRITE.search(error_text):
        places = list(dict.fromkeys(_PLACE.findall(error_text)))[:3]
        location = f" (it named {', '.join(visible_line(place, 300) for place in places)})" if places else ""
        yield f"hint: it may write nothing but temporary files and what `write = [...]` under {table} names{location}"
    if declaration.command[0] in ("npx", "uvx", "pipx"):
        yield (
            f"hint: {declaration.command[0]} downloads at the start, which takes network and a cache that it may write; "
            "install the server, and name its program"
        )


def _say(text: str) -> None:
    sys.stdout.write(f"{visible_line(text, 5_000)}\n")
    sys.stdout.flush()
