"""The plugin that guards other agents. It adds `harness hook` and `harness approve`; only agents run `harness exec`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.app.common_flags import policy_flag, terminal_flags
from harness.plugin import CliCommand, Plugin, later

if TYPE_CHECKING:
    from argparse import ArgumentParser


def _agent(parser: ArgumentParser, *, default: str = "") -> None:
    from harness.plugins.agents.guarded_agent import AGENTS

    agent_names = ", ".join(AGENTS)
    parser.add_argument(
        "agent",
        nargs="?" if default else None,
        choices=tuple(AGENTS),
        metavar="AGENT",
        help=f"{agent_names} (default: {default})" if default else agent_names,
    )


def _install_flags(parser: ArgumentParser) -> None:
    _agent(parser, default="none")
    parser.add_argument("--all", action="store_true", help="install it in every agent that is in PATH")
    _settings_flag(parser)
    policy_flag(parser, "the policy that decides (default: as for the prompt)")
    _yes_flag(parser)


def _uninstall_flags(parser: ArgumentParser) -> None:
    _agent(parser, default="none")
    parser.add_argument("--all", action="store_true", help="remove it from every agent")
    _settings_flag(parser)
    _yes_flag(parser)


def _settings_flag(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--project", action="store_true", help="change the settings of the current folder instead of yours"
    )


def _yes_flag(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="write the change without asking")


def _status_flags(parser: ArgumentParser) -> None:
    _agent(parser, default="all")


def _run_flags(parser: ArgumentParser) -> None:
    _agent(parser)
    parser.add_argument("words", nargs="...", metavar="ARGUMENT", help="arguments of the agent")


def _approve_flags(parser: ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="print the open questions, one JSON object per line")
    terminal_flags(parser)


def _import_flags(parser: ArgumentParser) -> None:
    parser.add_argument("agent", choices=("claude", "codex"), help="the agent of the file")
    parser.add_argument("file", metavar="FILE", help="its settings.json or its rules file")


PLUGIN = Plugin(
    name="agents",
    commands=(
        CliCommand(
            name="hook install",
            help="Let an agent ask harness before each tool call: show the change of its settings, ask, write it.",
            add_flags=_install_flags,
            run=later("harness.plugins.agents.commands.install_command", "install"),
        ),
        CliCommand(
            name="hook check",
            help="Play three calls through an agent, without a key, and show what happened to each.",
            add_flags=_agent,
            run=later("harness.plugins.agents.commands.check_command", "check"),
        ),
        CliCommand(
            name="hook run",
            help="Start an agent so that a project's settings cannot turn its hook off.",
            add_flags=_run_flags,
            run=later("harness.plugins.agents.commands.run_command", "run"),
        ),
        CliCommand(
            name="hook status",
            help="Show for each agent whether it asks harness here, by which policy, and which other hooks it has.",
            add_flags=_status_flags,
            run=later("harness.plugins.agents.commands.status_command", "status"),
        ),
        CliCommand(
            name="hook uninstall",
            help="Remove the hook of harness from an agent's settings, and nothing else.",
            add_flags=_uninstall_flags,
            run=later("harness.plugins.agents.commands.install_command", "uninstall"),
        ),
        CliCommand(
            name="policy import",
            help="Write a policy from the permissions of Claude Code (settings.json) or Codex (rules).",
            add_flags=_import_flags,
            run=later("harness.plugins.agents.commands.import_command", "import_command"),
        ),
        CliCommand(
            name="approve",
            help="Answer questions here while this runs: those of `run --ask`, the prompt and `mcp serve`, and those of "
            "agents that have the hook.",
            add_flags=_approve_flags,
            run=later("harness.plugins.agents.commands.approve_command", "approve_command"),
        ),
    ),
)
