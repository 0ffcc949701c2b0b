"""The flags of every command. Only the parser that is needed is built."""

from __future__ import annotations

import argparse
import os
from argparse import RawDescriptionHelpFormatter
from typing import TYPE_CHECKING

from harness import __version__
from harness.app.audit import VERBS, add_audit_flags
from harness.app.flag_values import count, filled, number, report, server_name, sha256, shard, whole
from harness.text.visible import visible
from harness.tool_kinds import BASH, SHIPPED_TOOLS

if TYPE_CHECKING:
    from typing import NoReturn


ACTIONS = {
    "policy": ("check", "explain", "test", "replay", "suggest", "fatigue", "trust", "forget"),
    "audit": tuple(VERBS),
    "schema": ("log", "result"),
    "config": ("show", "path"),
    "models": ("list", "update"),
    "sessions": ("list", "resume", "fork"),
    "hook": ("install", "check", "status", "uninstall"),
    "mcp": ("proxy", "serve", "list", "check", "pin", "unpin"),
    "queue": ("status", "cancel", "retry", "limit"),
}
"""Commands that take an action, and the actions."""

EXAMPLE_CASE = f'{{"id": "1", "tool": "{BASH.name}", "args": {{"{BASH.subject}": "ls"}}, "expect": "auto"}}'
"""Of those that `policy test` takes."""
MOST_WIDTH = 110
"""Of help, in columns; so wide it is in a file."""

_USAGE = "harness [OPTION ...] [PROMPT]\n       harness COMMAND ...      (harness help COMMAND says how)"
_COMMANDS = """\
Each call of the model is decided before it runs. No command: the prompt.
work
  run PROMPT   one prompt, nobody to ask (CI)
  batch TASKS  many prompts, each in a folder; worker, queue: on many machines
  demo         a scripted model, without key or network
  sessions     list, resume, fork; harness -c goes on with the newest one here
  serve        let an editor drive sessions (ACP)
  undo         put back what a session changed
decide
  policy       {policy}
  hook, mcp    the gate before other agents, MCP servers; approve: answer them
look back
  audit        {audit}
  schema       the JSON Schema of log and result
this machine
  config       the settings, and who said them; models: what is known of each
  doctor       what can be enforced here; --model: whether a model works"""
_EXITS = """\
exit codes: 0 done, 1 internal error, 2 usage or policy, 3 hard block, 4 limit, 5 no usable answer, 6 provider failed, \
7 done but calls were refused, 8 the log cannot be written, 130/143 interrupted, 141 stdout was closed"""


def short_help() -> str:
    """Return what the commands do, on one screen."""
    parser = parser_for("", "")
    shown = "\n".join(fitted(line, _width()) for line in str(parser.description).splitlines())
    more = fitted("`harness --help` has the options of the prompt and the exit codes too.", _width())
    return f"{parser.format_usage()}\n{shown}\n{more}\n"


def actions_help(command: str) -> str:
    """Return what the actions of a command do, a line or two each."""
    told = [(action, parser_for(command, action).description or "") for action in ACTIONS[command]]
    width = max(len(action) for action, _ in told) + 2
    lines = [fitted(f"  {action:{width}}{description}", _width()) for action, description in told]
    return "\n".join([f"usage: harness {command} ACTION [--help]", "", *lines, ""])


def fitted(line: str, width: int) -> str:
    """Return a line in lines of at most `width` characters; they go on below its second column, where it has one."""
    if len(line) <= width:
        return line
    import textwrap

    body = line.lstrip()
    column = body.find("  ")
    start = len(line) - len(body[column:].lstrip()) if column > 0 else len(line) - len(body)
    return textwrap.fill(line, width, subsequent_indent=" " * min(start, width // 2), break_on_hyphens=False)


def _width() -> int:
    """Return how wide help is: as the terminal, where it goes to one or into a pager, up to MOST_WIDTH."""
    for descriptor in (1, 2):
        try:
            return min(os.get_terminal_size(descriptor).columns or MOST_WIDTH, MOST_WIDTH)
        except OSError:
            continue
    return MOST_WIDTH


class _Formatter(RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions that fit."""

    def __init__(self, prog: str) -> None:
        # With a width of its own, since argparse would import shutil (2 ms) to ask the terminal, at every flag.
        super().__init__(prog, width=_width())

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(fitted(f"{indent}{line}", width) for line in text.splitlines())

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Break no flag that is named in a help: its halves are no flags."""
        import textwrap

        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class ArgumentParser(argparse.ArgumentParser):
    """A parser that says what is wrong with an argument without writing it to the terminal as it is."""

    def error(self, message: str) -> NoReturn:
        """Say it, where the flags are listed, and exit with 2. Raises SystemExit."""
        told = visible(message).replace("\n", "\n  ")
        if is_unquoted(message) and any(action.dest == "prompt" for action in self._actions):
            told += " (a prompt of several words is put in quotes)"
        self.exit(2, f"{self.prog}: error: {told}\n`{self.prog} --help` lists what it takes\n")


def is_unquoted(message: str) -> bool:
    """Say whether a complaint of argparse is about words behind the last one that it takes, none of them a flag."""
    words = message.removeprefix("unrecognized arguments: ")
    return words != message and not any(word.startswith("-") for word in words.split())


def parser_for(command: str, action: str) -> ArgumentParser:  # noqa: C901, PLR0912, PLR0915 - a case a command
    """Return the parser of `harness COMMAND ACTION`; the empty command is the prompt."""
    name = " ".join(word for word in ("harness", command, action) if word)
    parser = ArgumentParser(name, formatter_class=_Formatter)
    parser.set_defaults(action=action)
    match command, action:
        case (("run" | "batch"), _):
            (run_flags if command == "run" else batch_flags)(parser)
        case (("worker" | "queue"), _):
            from harness.plugins.fleet.queue.fleet_flags import add_fleet_flags

            add_fleet_flags(parser, action)
            if command == "worker":
                work_flags(parser, names_folder=False)
                _decision_flags(parser)
        case "demo", _:
            _demo_flags(parser)
        case "approve", _:
            parser.description = (
                "Answer here, as long as this runs, what the harness asks (`run --ask`, the prompt, `mcp serve`), and what"
                " agents ask that `harness hook` stands before."
            )
            parser.add_argument("--list", action="store_true", help="print what waits, one JSON object a line")
            _terminal_flags(parser)
        case "policy", _:
            _policy_flags(parser, action)
        case "audit", _:
            add_audit_flags(parser, action, filled)
        case "undo", _:
            _undo_flags(parser)
        case "sessions", _:
            _sessions_flags(parser, action)
        case (("config" | "hook"), _):
            (_config_flags if command == "config" else _hook_flags)(parser, action)
        case "models", _:
            _models_flags(parser, action)
        case "mcp", _:
            _mcp_flags(parser, action)
        case "serve", _:
            _serve_flags(parser)
        case "schema", _:
            parser.description = (
                "Print a JSON Schema (draft 2020-12): of a record of the action log, of a run's result."
            )
        case "doctor", _:
            parser.description = "Say what this machine can enforce, by trying it in a temporary folder."
            parser.epilog = "Exit code: 0 commands can be confined, 2 they cannot; policies that require it do not run."
            parser.add_argument("--json", action="store_true", help="one object, with every attempt")
            model_flags(parser, optional_name=True)
            parser.add_argument(
                "--cwd", type=filled, metavar="DIR", help="with --model: the workspace (else the current folder)"
            )
        case _:
            parser.usage = _USAGE
            actions = {name: ", ".join(ACTIONS[name]) for name in ("policy", "audit", "mcp")}
            parser.description = _COMMANDS.format(**actions)
            parser.epilog = _EXITS
            parser.add_argument("prompt", nargs="?", help=argparse.SUPPRESS)
            parser.add_argument(
                "-c",
                "--continue",
                dest="resume",
                action="store_true",
                help="go on with the newest session of this folder",
            )
            parser.add_argument("--version", action="version", version=f"harness {__version__}")
            session_flags(parser)
            _terminal_flags(parser)
    return parser


def _demo_flags(parser: ArgumentParser) -> None:
    parser.description = "Play a bundled scenario with a scripted model."
    parser.add_argument("name", nargs="?", default="fix", help="which one (--list names them)")
    parser.add_argument("--answers", metavar="y,y,n", help="answers to the questions, in order")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder")
    _terminal_flags(parser)


def _config_flags(parser: ArgumentParser, action: str) -> None:
    if action == "path":
        parser.description = "Say where the user's configuration is, or would be."
        return
    parser.description = "Say which settings hold, as TOML; nothing is sent, and no key is shown."
    parser.add_argument("--origin", action="store_true", help="who said each of them")
    parser.add_argument("--json", action="store_true", help="one object, origins included")
    model_flags(parser)
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")


def _models_flags(parser: ArgumentParser, action: str) -> None:
    if action == "update":
        parser.description = (
            "Check a table of prices and context lengths (TOML, with date and source), and keep it as yours."
        )
        parser.add_argument("file", type=filled, metavar="FILE", help="the table, which replaces the one before")
        return
    parser.description = "Say which models the provider offers and what is known of each; what nobody said is `-`."
    parser.epilog = "Exit code: 0; 2 usage, 6 where the provider gave no list: then what is known without it is shown."
    parser.add_argument("--json", action="store_true", help="one object, with who says each figure")
    model_flags(parser)
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")


def _hook_flags(parser: ArgumentParser, action: str) -> None:
    from harness.plugins.agents.guarded_agent import AGENTS

    if action == "status":
        parser.description = "Say of each agent whether it asks harness, by which policy, and what it lets pass."
        parser.add_argument("agent", nargs="?", choices=tuple(AGENTS), metavar="AGENT", help=", ".join(AGENTS))
        return
    if action == "check":
        parser.description = "Play three calls through an agent, without a key, and say what happened to each."
        parser.add_argument("agent", choices=tuple(AGENTS), metavar="AGENT", help=", ".join(AGENTS))
        return
    if action == "install":
        parser.description = (
            "Let an agent ask harness before each tool call: show the change of its settings, ask, write it."
        )
    else:
        parser.description = "Take the hook of harness out of an agent's settings, and nothing else."
    parser.add_argument("agent", choices=tuple(AGENTS), metavar="AGENT", help=", ".join(AGENTS))
    parser.add_argument("--project", action="store_true", help="in the settings of the current folder, not in yours")
    if action == "install":
        policy_flag(parser, "what decides (else as for the prompt)")
    parser.add_argument("--yes", action="store_true", help="write it without asking")


def _mcp_flags(parser: ArgumentParser, action: str) -> None:
    match action:
        case "proxy":
            parser.usage = "harness mcp proxy --name NAME [--policy FILE] [--log FILE] -- COMMAND ..."
            parser.description = "Stand before an MCP server (stdio): judge, ask about and log each call of its tools."
            parser.epilog = "Exit code: the server's; 1 internal error, 2 usage or policy, 8 the log cannot be written."
            parser.add_argument("--name", type=server_name, required=True, help="the server's, in policies and logs")
            policy_flag(parser, "a policy file, or the name of one")
            parser.add_argument("--log", type=filled, metavar="FILE", help="the action log (else in the state folder)")
            parser.add_argument("server", nargs="+", metavar="COMMAND", help="what starts the server, behind --")
            parser.set_defaults(cwd=None, add_dir=[], copied_from=None)
        case "serve":
            parser.description = (
                "Offer our tools to an MCP client (stdio), each call judged, asked about, confined and logged."
            )
            parser.epilog = (
                "Exit code: 0 the client left; 1 internal error, 2 usage or policy, 8 the log cannot be written."
            )
            parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
            policy_flag(parser, "a policy file, or the name of one")
            parser.add_argument("--log", type=filled, metavar="FILE", help="the action log (else in the state folder)")
            parser.add_argument(
                "--no-forms", action="store_true", help="ask nobody by forms of the client, which it may fill in itself"
            )
            parser.add_argument(
                "--permission-prompt",
                action="store_true",
                help="offer the tool approve as well, for --permission-prompt-tool of Claude Code",
            )
            parser.set_defaults(add_dir=[], copied_from=None)
        case "list":
            parser.description = (
                "Name configured MCP servers, and the tools that a person has seen, new and changed ones."
            )
            parser.add_argument("--json", action="store_true", help="an object for each server and tool")
        case "check":
            parser.description = "Start configured MCP servers, print what they say of their tools, and end them."
            parser.epilog = (
                "Exit code: 0 all of them listed their tools, 1 some did not, or other ones than are `pinned`."
            )
            parser.add_argument("name", nargs="?", type=server_name, metavar="NAME", help="one server (else all)")
        case _:
            does = "Look at what an MCP server says of its tools now" if action == "pin" else "Forget that it was seen"
            parser.description = f"{does}, and say yes or no."
            parser.add_argument("name", type=server_name, metavar="NAME", help="the server's")
            parser.add_argument("tool", nargs="?", type=filled, metavar="TOOL", help="one tool (else all)")


def _serve_flags(parser: ArgumentParser) -> None:
    parser.usage = "harness serve --stdio [OPTION ...]"
    parser.description = (
        "Let an editor or a program drive sessions, by the Agent Client Protocol (agentclientprotocol.com)."
    )
    parser.epilog = "Exit code: 0 the client closed its side, 2 usage, 8 a log cannot be written, 130/143 interrupted."
    parser.add_argument(
        "--stdio", action="store_true", help="JSON lines on stdin and stdout; there is nothing else yet"
    )
    parser.add_argument("--records", action="store_true", help="send each record of the log too, as _harness/record")
    work_flags(parser, names_folder=False)


def _terminal_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII alone")
    parser.add_argument("--screen-reader", action="store_true", help="write over nothing that was written")


def _policy_flags(parser: ArgumentParser, action: str) -> None:
    match action:
        case "check":
            parser.description = "Load policies strictly, run their examples, and warn of what is surely not meant."
            parser.add_argument("--strict", action="store_true", help="exit 1 if there are warnings")
            parser.add_argument("files", nargs="+", metavar="FILE")
        case "test":
            parser.description = "Hold a file of cases against a policy, one JSON object a line; nothing is run."
            parser.epilog = f"A case: {EXAMPLE_CASE}"
            policy_flag(parser, "a policy file, or a shipped one", required=True)
            parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace of cases that name none")
            parser.add_argument("--json", action="store_true", help="one object a line, and a summary")
            parser.add_argument("cases", metavar="CASES", help="the file of cases")
        case "replay":
            from harness.app.audit.logs import log_flags

            parser.description = "Judge the calls of action logs again, and list what would change; nothing is run."
            log_flags(parser, filled)
            policy_flag(parser, "the new policy, or a shipped one", required=True)
            parser.add_argument("--fail-on", choices=("laxer", "any"), help="exit 1 if there are such changes")
        case "suggest":
            parser.description = "Propose rules that would have spared your repeated approvals; no policy is written."
            from harness.app.audit.logs import log_flags

            log_flags(parser, filled)
            parser.add_argument(
                "--least", type=whole, default=2, metavar="N", help="approvals in different calls (else 2)"
            )
        case "fatigue":
            parser.description = "Count the questions of sessions, and those that are left where grants are taken."
            from harness.app.audit.logs import log_flags

            log_flags(parser, filled)
            policy_flag(parser, "a policy file, or a shipped one (else each session's own)")
            parser.add_argument(
                "--take",
                choices=("exact", "program", "walls", "widest"),
                default="walls",
                help="which grant is taken when it is first offered: the exact words; all edits and programs inside walls; "
                "there every known command as well; the widest (else walls)",
            )
        case "trust" | "forget":
            what = "a project's policy, .mcp.json, .harness/config.toml, or a folder of commands or skills"
            parser.description = (
                f"Let {what} count, as long as its content stays the same."
                if action == "trust"
                else f"Trust {what} no more."
            )
            parser.add_argument("file", nargs="?", metavar="FILE", help="by default .harness/policy.toml")
        case _:
            parser.description = "Say what would be decided on a call, and by which rule; nothing is run."
            parser.epilog = "Exit code: 0 auto, 10 confirm, 20 deny, 30 block."
            *names, last = SHIPPED_TOOLS
            parser.add_argument("--tool", default=BASH.name, help=f"{', '.join(names)} or {last}")
            policy_flag(parser, "a policy file, or a shipped one (else the prompt's)")
            parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
            parser.add_argument("--json", action="store_true", help="one object, with every operand")
            parser.add_argument(
                "what", nargs="+", help="the command line in one word, or the path; with --tool also arguments as JSON"
            )


def _sessions_flags(parser: ArgumentParser, action: str) -> None:
    if action == "list":
        parser.description = "Name the sessions of this folder, the newest last; what is open never said that it ended."
        parser.add_argument("--all", action="store_true", help="those of every folder")
        parser.add_argument("--json", action="store_true", help="one object a line")
        parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
        return
    if action == "fork":
        parser.description = "Begin a session with what another held after one of its turns; both can go on."
        parser.add_argument("session", metavar="ID", help="the session, or how its name begins")
        parser.add_argument("--turn", type=count, metavar="N", help="after its turn N, 0 before the first (else all)")
    else:
        parser.description = "Begin a session with what another held when it ended, however it ended."
        parser.add_argument("session", nargs="?", metavar="ID", help="how its name begins (else the newest one here)")
    parser.add_argument("prompt", nargs="?", help="the first thing to do; without it the prompt waits")
    session_flags(parser)
    _terminal_flags(parser)


def _undo_flags(parser: ArgumentParser) -> None:
    parser.description = "Put back files that a session's calls changed, where they still are what the calls left."
    parser.epilog = "Exit code: 0 all of it was undone, 7 something could not be."
    parser.add_argument(
        "--session", type=filled, metavar="ID", help="the session, or how its name begins (else the newest one here)"
    )
    parser.add_argument("--to", type=whole, metavar="CALL", help="back to and including this call (else one change)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="one object a line, and a summary")
    parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the session's log, where it is not in the state folder"
    )


def session_flags(parser: ArgumentParser) -> None:
    """Add what the prompt and a run have in common."""
    work_flags(parser)
    parser.add_argument(
        "--log", type=filled, metavar="FILE", help="the action log (else a new file in the state folder)"
    )


def policy_flag(parser: argparse.ArgumentParser, text: str, *, required: bool = False) -> None:
    """Add `--policy`, which may be given several times: the strictest policy decides. `text` is the help."""
    parser.add_argument(
        "--policy",
        action="append",
        type=filled,
        metavar="FILE",
        required=required,
        help=f"{text}; several: the strictest",
    )


def work_flags(parser: ArgumentParser, *, names_folder: bool = True) -> None:
    """Add what the prompt, a run and a batch have in common: policy, model, workspace (where it is named), limits."""
    policy_flag(parser, "a policy file, or a shipped one: default, ci, readonly, demo")
    parser.add_argument(
        "--policy-sha256", type=sha256, metavar="HEX", help="the digest that the file of --policy must have"
    )
    model_flags(parser)
    parser.add_argument(
        "--system", type=filled, metavar="FILE", help="a template in the place of the standard system prompt"
    )
    parser.add_argument("--no-instructions", action="store_true", help="do not read AGENTS.md")
    if names_folder:
        parser.add_argument("--cwd", type=filled, metavar="DIR", help="the workspace (else the current folder)")
    parser.add_argument(
        "--add-dir", type=filled, action="append", default=[], metavar="DIR", help="a folder that may be read as well"
    )
    parser.add_argument(
        "--tools",
        type=filled,
        metavar="NAMES",
        help="offer these tools alone, with commas between; +NAME,+NAME adds them",
    )
    parser.set_defaults(copied_from=None)  # the folder that a task's workspace is made of
    parser.add_argument("--max-turns", type=whole, metavar="N", help="requests to the model")
    parser.add_argument("--max-seconds", type=number, metavar="S", help="wall time")
    parser.add_argument("--max-tokens", type=whole, metavar="N", help="tokens in and out")
    parser.add_argument("--max-cost", type=number, metavar="DOLLARS", help="by the prices in the configuration")


def model_flags(parser: ArgumentParser, *, optional_name: bool = False) -> None:
    """Add who is asked; with `optional_name`, `--model` need not name one."""
    parser.add_argument(
        "--provider", type=filled, metavar="NAME", help="openai, azure, ollama ... (else HARNESS_PROVIDER)"
    )
    if optional_name:
        parser.add_argument(
            "--model", nargs="?", const="", metavar="NAME", help="send the model one tiny request, and say what works"
        )
    else:
        parser.add_argument("--model", type=filled, help="the model's name (else HARNESS_MODEL)")
    address = "of an OpenAI-compatible server (else HARNESS_BASE_URL, OPENAI_BASE_URL)"
    parser.add_argument("--base-url", type=filled, metavar="URL", help=address)
    parser.add_argument("--api", choices=("chat", "responses", "messages"), help="which API (else HARNESS_API)")
    parser.add_argument("--calls", choices=("functions", "text"), help="text: for models without function calling")
    parser.add_argument(
        "--effort", type=filled, metavar="WORD", help="how much the model thinks: low, medium, high ..."
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=filled,
        metavar="NAME=VALUE",
        help="a setting of the model: temperature=0.2",
    )


def run_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness run`."""
    parser.description = "Run one prompt; never reads the terminal, and asks nobody but by --ask."
    parser.epilog = _EXITS
    parser.add_argument("prompt", nargs="?", help="what to do; - reads it from stdin")
    parser.add_argument("--prompt-file", type=filled, metavar="FILE", help="read it from a file, {{variables}} and all")
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE", help="the value of a {{variable}}")
    parser.add_argument("--no-stdin", action="store_true", help="attach nothing from stdin to the prompt")
    parser.add_argument("--resume", type=filled, metavar="ID", help="go on with a session: how its name begins")
    session_flags(parser)
    parser.add_argument(
        "--done-marker", type=filled, metavar="TEXT", help="end when a command that succeeds prints this line first"
    )
    parser.add_argument(
        "--output-schema", type=filled, metavar="FILE", help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument("--output", choices=("text", "json", "jsonl"), default="text", help="form of stdout")
    _outcome_flags(parser)
    parser.add_argument(
        "--ask", action="store_true", help="ask the approver of the configuration, else `harness approve`"
    )
    parser.add_argument("--record", type=filled, metavar="FILE", help="keep the model's side of the run as a cassette")
    parser.add_argument("--replay", type=filled, metavar="FILE", help="ask a cassette in the place of a model")
    parser.add_argument("--task", type=filled, metavar="FILE", help="the task of a batch, as JSON; needs --out")
    parser.add_argument("--out", type=filled, metavar="DIR", help="with --task: the folder of what comes of it")


def batch_flags(parser: ArgumentParser) -> None:
    """Add the flags of `harness batch`."""
    parser.description = "Run many tasks, each in a folder of its own; a second start does what is not done yet."
    parser.epilog = 'A task: {"id": "parse-1", "prompt": "Make the test pass.", "cwd": "/srv/repo"}'
    parser.add_argument("tasks", metavar="TASKS", help="the file of tasks, one JSON object a line")
    parser.add_argument(
        "--out", type=filled, metavar="DIR", required=True, help="the folder, or s3:// URL, of what comes of them"
    )
    parser.add_argument("-j", "--jobs", type=whole, metavar="N", help="so many at once (else one a processor)")
    parser.add_argument("--shard", type=shard, metavar="I/N", help="the I-th of N parts of the tasks alone")
    parser.add_argument("--from", dest="source", choices=("swebench",), help="TASKS holds the instances of a benchmark")
    parser.add_argument(
        "--repos", type=filled, metavar="PREFIX", help="where their repositories are (else https://github.com/)"
    )
    from harness.plugins.fleet.queue.fleet_flags import add_queued_batch_flags

    add_queued_batch_flags(parser)
    work_flags(parser)
    _outcome_flags(parser)


def _outcome_flags(parser: ArgumentParser) -> None:
    from harness.plugins.reports import RUN_REPORTS

    *others, last = RUN_REPORTS
    forms = f"{', '.join(others)} or {last}"
    _decision_flags(parser)
    parser.add_argument("--report", type=report, action="append", default=[], metavar="FORM:FILE", help=forms)
    parser.add_argument("--report-answer", action="store_true", help="the model's answer in the reports too, fenced")
    parser.add_argument("-q", "--quiet", action="store_true", help="no trace on stderr")


def _decision_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="judge and record every call, and run none")
    parser.add_argument("--plan", action="store_true", help="put plan mode over the policy: nothing is changed")
    parser.add_argument("--allow-refusals", action="store_true", help="exit 0 although calls were refused")
