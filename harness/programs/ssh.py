"""Models of programs that reach other machines by ssh, and of rsync, which also copies on this one. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.gathered import Gathered, never
from harness.programs.model import Found, Parsed, Program, Style, Unknown, Use, gap
from harness.programs.options import stricter
from harness.record import replace


def _is_remote(word: str) -> bool:
    """Say whether scp and rsync take a word for a file on another machine: a colon before any slash (scp(1))."""
    return ":" in word.partition("/")[0] or "://" in word


# ssh(1), scp(1) of OpenSSH 9. Forwarding, other configurations and programs to run are left out or CODE.
_SSH_HARMLESS = frozenset(
    """
    addressfamily batchmode compression connectionattempts connecttimeout identitiesonly loglevel
    numberofpasswordprompts passwordauthentication port preferredauthentications pubkeyauthentication
    serveralivecountmax serveraliveinterval stricthostkeychecking tcpkeepalive user
    """.split()
)
_SSH_HOST = re.compile(r"[A-Za-z0-9_.\[\]:@/%][A-Za-z0-9_.\[\]:@/%-]*")
_SSH_OPTIONS = "-4 -6 -C -q -v -i=READ -c=TEXT -o=TEXT -F=CODE -J=CODE -S=CODE"


def _ssh_options(parsed: Parsed) -> str:
    for value in parsed.values("-o"):
        known = value.prefix if isinstance(value, Unknown) else value
        name = re.split(r"[= \t]", known, maxsplit=1)
        if len(name) < 2 or name[0].lower() not in _SSH_HARMLESS or "\n" in value or isinstance(value, Found):
            return f"-o {value} is not in the model of ssh"
    return ""


def _ssh_host(parsed: Parsed, use: Use) -> Use:
    """ssh reads options behind the host too, up to the command."""
    host, *words = parsed.operands or ("",)
    problem = _ssh_options(parsed)
    if not isinstance(host, Unknown) and (isinstance(host, Found) or not _SSH_HOST.fullmatch(host)):
        problem = problem or "ssh without a plain host"
    if words and words[0][:1] == "-":
        problem = problem or f"{words[0]} behind the host is an option of ssh"
    if words and isinstance(words[0], Unknown) and words[0].prefix[:1] in ("", "-"):
        problem = problem or f"{words[0]} behind the host may be an option of ssh"
    return gap(problem) if problem else replace(use, remote=" ".join(words))


def _copies(parsed: Parsed, use: Use, *, tree: bool) -> Use:
    """The last operand is written, the others are read; some lie on other machines."""
    if any(isinstance(word, Unknown) for word in parsed.operands) or len(parsed.operands) < 2:
        return gap("what is copied where is not known")
    if any(word.startswith("-") for word in parsed.operands):
        return gap("options behind the operands")
    *sources, target = parsed.operands
    paths = Gathered()
    for source in sources:
        if isinstance(source, Found) or not _is_remote(source):
            paths.add(source, Access.EITHER if parsed.has("--remove-source-files") else Access.READ, tree=tree)
    if isinstance(target, Found) or not _is_remote(target):
        paths.add(target, Access.WRITE, tree=True, entry=True)
    act = Act.WRITES if paths.paths and paths.paths[-1].access is not Access.READ else Act.CHANGES
    return replace(use, act=stricter(use.act, act), paths=(*use.paths, *paths.paths))


def _scp_copies(parsed: Parsed, use: Use) -> Use:
    problem = _ssh_options(parsed)
    return gap(problem) if problem else _copies(parsed, use, tree=parsed.has("-r"))


def _rsync_copies(parsed: Parsed, use: Use) -> Use:
    """With one operand rsync lists it; a colon or `rsync://` in any operand reaches another machine."""
    remote = any(_is_remote(word) and not isinstance(word, Found) for word in parsed.operands)
    if len(parsed.operands) == 1 and parsed.operands[0][:1] != "-" and not isinstance(parsed.operands[0], Unknown):
        listed = Gathered()
        if not remote:
            listed.add(parsed.operands[0], Access.READ, tree=True)
        return replace(use, network=remote, paths=(*use.paths, *listed.paths))
    use = _copies(parsed, use, tree=True)
    return use if use.gap else replace(use, network=remote)


# rsync(1), 3.2. Filters may name files of filters, links may lead outside, and some folders are seen from the target:
# left out, or CODE.
_RSYNC_OPTIONS = """
    -a|--archive -r|--recursive -v|--verbose -q|--quiet -n|--dry-run -l|--links -p|--perms -t|--times -g|--group
    -o|--owner -D -E|--executability -A|--acls -X|--xattrs -H|--hard-links -S|--sparse -W|--whole-file -R|--relative
    -u|--update -c|--checksum -I|--ignore-times --size-only -x|--one-file-system -d|--dirs -z|--compress -h
    --human-readable -P --partial --progress --inplace --append -i|--itemize-changes --stats --info=TEXT
    --ignore-existing --existing --delete --delete-before --delete-during --delete-after --delete-delay
    --delete-excluded --remove-source-files -m|--prune-empty-dirs --max-size=TEXT --min-size=TEXT --max-delete=TEXT
    --exclude=TEXT --include=TEXT --exclude-from|--include-from=READ --chmod=TEXT --no-perms --no-owner --no-group
    --bwlimit=TEXT --timeout=TEXT --numeric-ids --out-format=TEXT -4|--ipv4 -6|--ipv6 -s|--protect-args
    --log-file=WRITE --backup-dir|--partial-dir|-T|--temp-dir=CODE -b|--backup --suffix=TEXT --password-file=READ
    -e|--rsh=CODE --rsync-path=CODE -M|--remote-option=CODE -f|--filter=CODE --files-from=CODE --config=CODE
    --daemon:gap --write-batch|--only-write-batch|--read-batch=CODE
    -V|--version:info --help:info
"""

PROGRAMS: Mapping[str, Program] = {
    "ssh": Program(
        network=True,
        act=Act.CHANGES,
        style=Style.POSIX,
        options=_SSH_OPTIONS + " -a -k -n -N -T -t -x -b=TEXT -e=TEXT -l=TEXT -m=TEXT -p=TEXT -E=WRITE -V:info",
        operands="HOST TEXT...",
        refine=_ssh_host,
    ),
    "scp": Program(
        network=True,
        style=Style.POSIX,
        options=_SSH_OPTIONS + " -3 -B -O -p -r -T -l=TEXT -P=TEXT -D=CODE -X=CODE",
        operands="TEXT...",
        refine=_scp_copies,
    ),
    "sftp": never("it takes commands from its input, and `!` runs one here"),
    "rsync": Program(options=_RSYNC_OPTIONS, operands="TEXT...", refine=_rsync_copies),
}
