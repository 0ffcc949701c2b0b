"""ps, top, lsof and other programs that show processes and settings of a machine. Many more are rows of asked.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.actions import Act
from harness.programs.losses import always
from harness.programs.options import stricter
from harness.programs.program import Found, LooseWords, Parsed, Program, Style, Unknown, Use, gap, reads
from harness.record import replace
from harness.regex import regex

_INFO = " -V|--version:info -h|--help:info"


_CHANGES = Program(act=Act.CHANGES, style=Style.TEXT, operands="TEXT...")
"""A program that changes the machine with any words, all of which are names."""

# ps(1), procps 4. A letter e without a dash shows the environment of processes, which may contain keys. If ps cannot
# parse a word with a dash, it parses it again without the dash (`-axe`, or `-e -u xf` if no user xf exists).
_PS_FLAGS = regex(r"-[AadfFljcwHLTMNmP]+|-a?u?x[wf]*|--(no-headers?|no-headings?|headers?|forest|deselect)|--sort=.+")
_PS_BSD = regex(r"[auxwfjlvsSrTcmHn]+|[0-9][0-9,]*|-p[0-9,]+")
_PS_VALUED = regex(
    r"(-[AadfFljcwHLT]*|[axwf]*)[op]|[auxwf]*k|-[fFlj]*[uUgG]|--(sort|pid|ppid|cols|columns|width|user|group|format)(=.+)?"
)
_PS_ALL = regex(r"-[AaefFljcwH]+|w+|--(no-headers?|forest)|--sort=[a-z%,+-]+")
_PS_ALL_VALUED = regex(r"-[Aaew]*o|--sort|-[fFlj]*C")
"""Words accepted together with -e, and with -C, whose names may contain an e. ps cannot fail to parse any of them, so
it does not parse them again.
"""
_PS_NAMES = regex(r"[A-Za-z%,=:0-9_+.-]+")


def _ps(argv: Sequence[str]) -> Use:
    words = list(argv[1:])
    everything = any(re.match(r"-[A-Za-z]*[eC]", word) for word in words)
    flags, valued = ([_PS_ALL], _PS_ALL_VALUED) if everything else ([_PS_FLAGS, _PS_BSD], _PS_VALUED)
    while words:
        word = words.pop(0)
        if isinstance(word, Unknown | Found):
            return gap(f"{word} may be an option of ps")
        if "environ" in word:
            return gap(f"{word} shows the environment of processes")
        if any(shape.fullmatch(word) for shape in flags) or (valued.fullmatch(word) and "=" in word):
            continue
        if not valued.fullmatch(word) or not words:
            return gap(f"{word} is not in the model of ps, or may show the environment of processes")
        value = words.pop(0)
        if isinstance(value, Unknown):
            sure = value.single and word.endswith(("p", "pid"))
        else:
            # If a user does not exist, ps reads the name as option letters.
            sure = (
                "environ" not in value
                and bool(_PS_NAMES.fullmatch(value))
                and (word[-1] in "okpC" or word.startswith("--") or "e" not in value)
            )
        if not sure:
            return gap(f"{value} behind {word} may show the environment of processes")
    return Use(act=Act.LOOKS)


def _top(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-b") else gap("top at a terminal ends and renices processes")


def _lsof(parsed: Parsed, use: Use) -> Use:
    """Refine lsof. It uses the network only to resolve hosts that -i names. Printed addresses that it cannot resolve
    remain numbers.
    """
    hosts = any("@" in word for word in (*parsed.values("-i"), *parsed.operands))
    return replace(use, network=parsed.has("-i") and hosts)


def _only_names(parsed: Parsed, use: Use) -> Use:
    """Refine sysctl. `sysctl NAME=VALUE` sets a value."""
    sets = any("=" in word or isinstance(word, Unknown) for word in parsed.operands)
    return replace(use, act=stricter(use.act, Act.CHANGES)) if sets else use


# getent(1). Files of databases; nsswitch.conf(5) may name other sources. A command reads a file of the first table only
# if it names no key: with a key, it prints only facts that `id` and `ls -l` show too. It reads a file of the second
# table in any case. Other databases (hosts, networks) are queried from name servers.
_LISTED_DATABASES = {"passwd": "/etc/passwd", "group": "/etc/group"}
_CLOSED_DATABASES = {
    "shadow": "/etc/shadow", "gshadow": "/etc/gshadow", "aliases": "/etc/aliases", "ethers": "/etc/ethers"
}  # fmt: skip
_OPEN_DATABASES = frozenset(("services", "protocols", "rpc", "initgroups"))


def _getent(parsed: Parsed, use: Use) -> Use:
    database, *keys = parsed.operands or ("",)
    if database in _CLOSED_DATABASES:
        return reads(use, _CLOSED_DATABASES[database])
    if database in _LISTED_DATABASES:
        return use if keys else reads(use, _LISTED_DATABASES[database])
    return use if database in _OPEN_DATABASES else replace(use, network=True)


def _crontab(parsed: Parsed, use: Use) -> Use:
    lists = parsed.has("-l") and not parsed.operands and not parsed.has("-r", "-i")
    return reads(use, "/var/spool/cron") if lists else replace(use, act=stricter(use.act, Act.CHANGES))


def _crontab_loses(words: LooseWords) -> Iterator[str]:
    if words.has("-r"):
        yield "crontab -r removes the whole table"
    elif not words.has("-l", "-e", "-V", "-T", "-h"):
        yield "crontab replaces the whole table"


def _tput(parsed: Parsed, use: Use) -> Use:
    """Accept only known capabilities.

    A terminal may name a program that `init` and `reset` run (terminfo(5), iprog).
    """
    capabilities = "cols lines colors sgr0 bold setaf setab rev smul rmul cr el clear op".split()
    return (
        use
        if parsed.operands and parsed.operands[0] in capabilities
        else gap("a capability that is not in the model of tput")
    )


PROGRAMS: Mapping[str, Program] = {
    "ps": Program(read=_ps),
    "top": Program(
        options="-b -n=TEXT -d=TEXT -p=TEXT -u=TEXT -o=TEXT -H -c -i -1 -w[=TEXT]", operands="", refine=_top
    ),
    "lsof": Program(
        options="""
            -i[=TEXT] -n -P -t -l -a -R -U -w -c=TEXT -d=TEXT -p=TEXT -u=TEXT -s[=TEXT] -F[=TEXT] -g[=TEXT] +c=TEXT
            +D|+d=READ -v:info -h:info
        """,
        refine=_lsof,
    ),
    "sysctl": Program(
        options="-a|--all|-A -n|--values -e|--ignore -N|--names -b|--binary -w|--write:changes -p|--load[=READ]:changes"
        " --system:changes" + _INFO,
        operands="TEXT...",
        refine=_only_names,
    ),
    "getent": Program(options="", operands="TEXT TEXT...", refine=_getent),
    "crontab": Program(options="-l -u=TEXT -r:changes -i -e:gap", refine=_crontab, loses=_crontab_loses),
    "userdel": replace(_CHANGES, loses=always("userdel removes a user")),
    "deluser": replace(_CHANGES, loses=always("deluser removes a user")),
    "groupdel": replace(_CHANGES, loses=always("groupdel removes a group")),
    "tput": Program(options="", operands="TEXT...", refine=_tput),
}
