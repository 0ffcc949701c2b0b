"""Programs that no model vouches for, whatever their words, and why: people are told the reason. A line for each."""

from __future__ import annotations

from collections.abc import Mapping

from harness.programs.program import Program, gap

_REASONS = {
    "ack": "ack takes options, a pager among them, from an .ackrc in the project",
    "jshell": "it writes into the home folder and runs what it reads",
    "ldd": "it may run the program that it looks at (ldd(1), Security)",
    "locate": "it lists names of the whole machine, from a database of any path",
    "stty": "it changes the terminal",
    "zgrep": "it is a shell script that runs gzip and grep on names it puts together",
    **dict.fromkeys(("open", "xdg-open"), "it starts whatever is meant for the file"),
    **dict.fromkeys(("telnet", "ftp", "sftp"), "it takes commands from its input, and `!` runs one here"),
    **dict.fromkeys(
        "at batch bwrap firejail nsenter parallel runcon screen setpriv sg sshpass tmux".split(),
        "its model does not vouch for what it runs",
    ),
}


def _never(reason: str) -> Program:
    return Program(read=lambda _argv: gap(reason))


PROGRAMS: Mapping[str, Program] = {name: _never(reason) for name, reason in _REASONS.items()}
