"""Models of the package programs of systems: what is installed is looked at, everything else changes the machine. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.model import Parsed, PathUse, Program, Style, Use, gap
from harness.programs.options import stricter
from harness.record import replace

# apt(8), apt-get(8), apt-cache(8), 2.6. -o and -c set what apt runs.
_APT = """
    -y|--yes|--assume-yes --assume-no -q|--quiet[=TEXT] -s|--simulate|--dry-run|--just-print -d|--download-only
    -f|--fix-broken -m|--fix-missing -V|--verbose-versions -u|--show-upgraded --no-install-recommends
    --install-recommends --no-install-suggests --no-upgrade --only-upgrade --reinstall --purge --auto-remove|--autoremove
    --allow-downgrades --allow-change-held-packages -t|--target-release|--default-release=TEXT --no-show-upgraded
    -a|--all-versions -n|--names-only --full --installed --upgradable|--upgradeable --manual-installed -i|--important
    --recurse --no-pager
    -o|--option=CODE -c|--config-file=CODE
"""
_APT_LOOKS = "policy show search depends rdepends madison showpkg showsrc stats pkgnames"
_APT_CHANGES = """
    install remove purge autoremove update upgrade full-upgrade dist-upgrade reinstall clean autoclean build-dep satisfy
    download source autopurge dselect-upgrade check
"""
_APT_LOOKING = Program(options=_APT, operands="READ...")
_APT_CHANGING = Program(act=Act.CHANGES, network=True, options=_APT, operands="READ...")
"""`apt show ./x.deb` and `apt install ./x.deb` read a file."""
_INFO = " -v|--version:info -h|--help:info"


def _apt(looking: str, changing: str) -> Program:
    subcommands = dict.fromkeys(looking.split(), _APT_LOOKING) | dict.fromkeys(changing.split(), _APT_CHANGING)
    if "search" in subcommands:
        subcommands["search"] = replace(_APT_LOOKING, operands="TEXT...")
    return Program(options=_APT + _INFO, subcommands=subcommands)


# dpkg(1), dpkg-deb(1), 1.21. Other roots, hooks and loggers are left out. --info unpacks into the folder for temporary files.
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
    """dpkg needs one action; what is installed are files."""
    actions = [given.name for given in parsed.options if given.name in _DPKG_ACTIONS]
    if len(set(actions)) != 1:
        return gap("dpkg without one action")
    if actions[0] in ("-i", "--unpack"):
        return replace(use, paths=tuple(PathUse(word=word, access=Access.READ) for word in parsed.operands))
    return use


def _rpm_query(parsed: Parsed, use: Use) -> Use:
    """Without -q, -i and its like install. Formats and macros are left out: they run programs (`%(...)`)."""
    return use if parsed.has("-q") else replace(use, act=stricter(use.act, Act.CHANGES), network=True)


def _pacman_query(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-Q") else replace(use, act=stricter(use.act, Act.CHANGES), network=True)


_ANY = Program(act=Act.CHANGES, network=True, style=Style.TEXT, operands="TEXT...")
"""Programs of which everything counts as a change over the network, plugins and all."""
_MANAGED = replace(_ANY, style=Style.GNU, options="-y|--assumeyes -q|--quiet -v|--verbose -f|--force")

PROGRAMS: Mapping[str, Program] = {
    "apt": replace(_apt(f"{_APT_LOOKS} list", _APT_CHANGES)),
    "apt-get": replace(_apt("", _APT_CHANGES)),
    "apt-cache": replace(_apt(_APT_LOOKS, "gencaches")),
    "apt-mark": replace(_apt("showauto showmanual showhold", "auto manual hold unhold")),
    "dpkg": Program(options=_DPKG, operands="TEXT...", refine=_one_action),
    "dpkg-query": Program(
        options="""
            -l|--list -s|--status -L|--listfiles -S|--search -p|--print-avail -W|--show -f|--showformat=TEXT --no-pager
            --version:info -?|--help:info
        """,
        operands="TEXT...",
    ),
    "rpm": Program(
        options="-q|--query -a|--all -i|--info -l|--list -f|--file -R|--requires -c|--configfiles -d|--docfiles"
        " -U|--upgrade:changes -F|--freshen:changes -e|--erase:changes -v -h --version:info",
        operands="TEXT...",
        refine=_rpm_query,
    ),
    "dnf": replace(_MANAGED),
    "yum": replace(_MANAGED),
    "zypper": replace(_MANAGED),
    "apk": Program(
        options="-q|--quiet -v|--verbose --no-cache",
        subcommands={
            "info": Program(options="-e|--installed -v|--verbose -q|--quiet -L|--contents", operands="TEXT..."),
            **{
                name: replace(
                    _ANY,
                    style=Style.GNU,
                    options="-q|--quiet -v|--verbose --no-cache -U|--update-cache --virtual|-t=TEXT",
                )
                for name in ("add", "del", "update", "upgrade", "fix", "search", "list", "policy")
            },
        },
    ),
    "brew": replace(_ANY),
    "pacman": Program(
        options="-Q|--query -S|--sync -R|--remove -U|--upgrade -s -i -l -o -q -e -m -n -t -u -y -c --noconfirm --needed"
        " -V|--version:info",
        operands="TEXT...",
        refine=_pacman_query,
    ),
}
