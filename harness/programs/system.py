"""Programs for logs, mounts, addresses, sockets and packages of a machine. Those for services are rows of asked.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Unknown, Use, gap, reads
from harness.record import replace
from harness.regex import regex

# --- Logs, mounts, addresses, sockets

_NETLINK = "a netlink socket"


_INFO = " -h|--help:info --version:info"

# journalctl(1), systemd 252.
_JOURNALCTL = """
    --system --user -m|--merge -D|--directory=TREE --file=READ --namespace=TEXT -S|--since=TEXT -U|--until=TEXT
    -c|--cursor=TEXT --after-cursor=TEXT --cursor-file=EITHER -b|--boot[=TEXT] -u|--unit=TEXT --user-unit=TEXT
    -t|--identifier=TEXT -p|--priority=TEXT --facility=TEXT -g|--grep=TEXT --case-sensitive[=TEXT] -k|--dmesg
    -o|--output=TEXT --output-fields=TEXT -n|--lines[=TEXT] -r|--reverse --show-cursor --utc -x|--catalog --no-hostname
    --no-full -l|--full -a|--all -f|--follow --no-tail -q|--quiet --no-pager -e|--pager-end -N|--fields -F|--field=TEXT
    --list-boots --disk-usage --verify --header --list-catalog --dump-catalog
    --vacuum-size=TEXT:changes --vacuum-files=TEXT:changes --vacuum-time=TEXT:changes --sync:changes
    --relinquish-var:changes --smart-relinquish-var:changes --flush:changes --rotate:changes --update-catalog:changes
"""


def _journal_files(parsed: Parsed, use: Use) -> Use:
    if any(re.search(r"[*?\[]", value) for value in parsed.values("--file")):
        return gap("--file with a pattern, which journalctl expands")
    is_elsewhere = parsed.has("-D", "--file", "--list-catalog", "--dump-catalog", "-h", "--version")
    return use if is_elsewhere or use.act is not Act.LOOKS else reads(use, "/var/log/journal")


def _kernel_log(parsed: Parsed, use: Use) -> Use:
    is_elsewhere = parsed.has("-F", "-h", "-V")
    return use if is_elsewhere or use.act is not Act.LOOKS else reads(use, "/dev/kmsg")


_IP_FLAGS = frozenset(
    """
    -4 -6 -0 -br -brief -s -stats -statistics -d -details -o -oneline -j -json -p -pretty -h -human -human-readable -iec
    -c -color -color=always -color=auto -color=never -c=always -c=auto -c=never -t -timestamp -ts -N -Numeric
    """.split()
)
_IP_OBJECTS = frozenset(
    """
    a addr address l link r ro route n neigh neighbor neighbour ru rule maddr maddress netns tunnel tuntap nexthop
    netconf ntable token vrf
    """.split()
)
_IP_LISTS = frozenset(("show", "list", "lst"))
_IP_WORD = regex(r"[A-Za-z0-9_.:@%-]+(/[0-9]+)?")


def _ip(argv: Sequence[str]) -> Use:
    """Return the use of an ip(8) command. ip accepts abbreviations, and takes its first word that fits (`link s` is
    `link set`).

    Only whole words count here. A command that does not list is a change.
    """
    words = list(argv[1:])
    if words in (["-V"], ["-Version"], ["help"], ["-help"]):
        return Use(act=Act.LOOKS)
    while words and (words[0] in _IP_FLAGS or words[0] in ("-f", "-family")):
        if words.pop(0) in ("-f", "-family") and words:
            words.pop(0)
    if not words or not all(_IP_WORD.fullmatch(word) and not isinstance(word, Unknown | Found) for word in words):
        return gap("words that are not in the model of ip")
    if words[0] not in _IP_OBJECTS:
        return gap(f"ip {words[0]} has no model")
    if len(words) == 1 or words[1] in _IP_LISTS or (words[0] in ("r", "ro", "route") and words[1] == "get"):
        return Use(act=Act.LOOKS, network=True, needs=_NETLINK)
    return gap(f"ip {words[0]} exec runs a command") if words[0] in ("netns", "vrf") else Use(act=Act.CHANGES)


_SS_FILTER = regex(
    r"state|exclude|[a-z]+-[a-z0-9]+|established|closed|closing|listening|connected|synchronized|bucket|big|all"
    r"|\(|\)|and|or|not|&&|\|\||!|sport|dport|autobound|=|==|!=|eq|neq|ge|le|gt|lt|>=|<=|>|<|:[a-z0-9-]+"
)


def _ss(parsed: Parsed, use: Use) -> Use:
    """Refine ss. A filter may name hosts, which ss resolves over the network (ss(8))."""
    words = [part for word in parsed.operands for part in word.split()]
    plain = all(_SS_FILTER.fullmatch(word) for word in words)
    unknown = any(isinstance(word, Unknown | Found) for word in parsed.operands)
    return use if plain and not unknown else replace(use, network=True)


def _netstat(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-n") else replace(use, network=True)


def _mount(parsed: Parsed, use: Use) -> Use:
    return replace(use, act=stricter(use.act, Act.CHANGES)) if parsed.operands else use


def _ifconfig(parsed: Parsed, use: Use) -> Use:
    return replace(use, act=Act.CHANGES) if len(parsed.operands) > 1 else use


# --- Packages of the system

# dpkg(1), dpkg-deb(1), 1.21. Options for other roots, hooks and loggers are left out. --info unpacks into the temporary
# folder.
_DPKG = """
    -l|--list -s|--status -L|--listfiles -S|--search -p|--print-avail -V|--verify -C|--audit --get-selections
    --print-architecture --print-foreign-architectures --compare-versions -c|--contents=READ -I|--info=READ:writes
    -i|--install:changes --unpack:changes --configure:changes -r|--remove:changes -P|--purge:changes -a|--pending
    --set-selections:changes --add-architecture:changes --no-pager --dry-run|--simulate|--no-act
    --version:info -?|--help:info
"""
_DPKG_ACTIONS = """
    -l -s -L -S -p -V -C --get-selections --print-architecture --print-foreign-architectures --compare-versions -c -I
    -i --unpack --configure -r -P --set-selections --add-architecture
""".split()


def _one_action(parsed: Parsed, use: Use) -> Use:
    """Return a gap unless dpkg has exactly one action. The operands of -i and --unpack are files."""
    actions = [option.name for option in parsed.options if option.name in _DPKG_ACTIONS]
    if len(set(actions)) != 1:
        return gap("dpkg without one action")
    if actions[0] in ("-i", "--unpack"):
        return replace(use, paths=tuple(PathUse(word=word, access=Access.READ) for word in parsed.operands))
    return use


def _rpm_query(parsed: Parsed, use: Use) -> Use:
    """Refine rpm. Without -q, -i and similar options install packages.

    Formats and macros are left out of the table, as they can run programs (`%(...)`).
    """
    return use if parsed.has("-q") else replace(use, act=stricter(use.act, Act.CHANGES), network=True)


def _pacman_query(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-Q") else replace(use, act=stricter(use.act, Act.CHANGES), network=True)


PROGRAMS: Mapping[str, Program] = {
    "journalctl": Program(options=_JOURNALCTL + _INFO, operands="TEXT...", refine=_journal_files),
    "dmesg": Program(
        options="""
            -f|--facility=TEXT -l|--level=TEXT -J|--json -k|--kernel -L|--color[=TEXT] -P|--nopager -p|--force-prefix
            -r|--raw --noescape -S|--syslog -s|--buffer-size=TEXT -u|--userspace -w|--follow -W|--follow-new -x|--decode
            -d|--show-delta -e|--reltime -T|--ctime -t|--notime --time-format=TEXT --since=TEXT --until=TEXT -F|--file=READ
            -c|--read-clear:changes -C|--clear:changes -D|--console-off:changes -E|--console-on:changes
            -n|--console-level=TEXT:changes -V|--version:info -h|--help:info
        """,
        operands="",
        refine=_kernel_log,
    ),
    "mount": Program(
        options="-l -v|--verbose -t|--types=TEXT -r|--read-only -w|--rw -o|--options=TEXT:changes --bind|-B:changes"
        " -a|--all:changes -V|--version:info -h|--help:info",
        operands="EITHER...",
        refine=_mount,
    ),
    "ip": Program(read=_ip),
    "ss": Program(
        options="""
            -n|--numeric -a|--all -l|--listening -o|--options -e|--extended -m|--memory -p|--processes -i|--info
            -s|--summary -4|--ipv4 -6|--ipv6 -0|--packet -t|--tcp -u|--udp -w|--raw -x|--unix -M|--mptcp -S|--sctp
            -f|--family=TEXT -A|--query|--socket=TEXT -H|--no-header -O|--oneline -r|--resolve:network -K|--kill:changes
            -D|--diag=WRITE -V|--version:info -h|--help:info
        """,
        operands="TEXT...",
        refine=_ss,
    ),
    "netstat": Program(
        options="""
            -t|--tcp -u|--udp -l|--listening -n|--numeric -p|--programs -a|--all -r|--route -i|--interfaces -s|--statistics
            -g|--groups -e|--extend -o|--timers -v|--verbose -w|--raw -x|--unix -4 -6 -W|--wide
            -V|--version:info -h|--help:info
        """,
        operands="",
        refine=_netstat,
    ),
    "ifconfig": Program(
        options="-a -s -v", operands="TEXT...", network=True, needs="a network socket", refine=_ifconfig
    ),
    "dpkg": Program(options=_DPKG, operands="TEXT...", refine=_one_action),
    "rpm": Program(
        options="-q|--query -a|--all -i|--info -l|--list -f|--file -R|--requires -c|--configfiles -d|--docfiles"
        " -U|--upgrade:changes -F|--freshen:changes -e|--erase:changes -v -h --version:info",
        operands="TEXT...",
        refine=_rpm_query,
    ),
    "pacman": Program(
        options="-Q|--query -S|--sync -R|--remove -U|--upgrade -s -i -l -o -q -e -m -n -t -u -y -c --noconfirm --needed"
        " -V|--version:info",
        operands="TEXT...",
        refine=_pacman_query,
    ),
}
