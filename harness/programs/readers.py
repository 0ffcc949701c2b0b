"""Commands that only read what their operands name, however loosely they were split: else an operand may be a write. Pure.

For words of which quotes, expansions and redirections are gone (shell/loose.py). No model can say this: it vouches for
the very words, and `awk '{print > "x"}'`, which writes x, is loosely `awk print x`, which reads it. That a command reads
says nothing of whether it may run. Being wrong here makes a verdict on a write laxer by one step, never auto.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.programs.model import Names
from harness.programs.runners import FIND_RUNS
from harness.record import replace

FILE_READERS = frozenset(
    "b2sum basename cat cksum cmp column cut dirname du egrep expand fgrep file fold grep head jq ls md5sum nl od readlink "
    "realpath sed sha1sum sha224sum sha256sum sha384sum sha512sum sort stat strings tac tail unexpand uniq wc".split()
)
"""Programs that take every operand for the name of a file, whatever it is called, and read what lies in a folder only where
their model says so (TREE)."""

_WHATEVER_THE_OPTIONS = frozenset(
    "b2sum basename cat cksum cmp cut diff dirname du egrep expand fgrep fold grep head join jq ls md5sum nl od paste "
    "readlink realpath rg sha1sum sha224sum sha256sum sha384sum sha512sum stat sum tac tail tr unexpand wc".split()
)
"""No option of these (GNU coreutils 9, diffutils 3, grep 3; jq 1.7, ripgrep 14) writes a file that is named in it.

Left out with intent: `sort` (-o, --compress-program), `uniq` (second operand), `tee`, `dd`, `split` (--filter), `file`
(-C writes), `less`, `man` (run other programs).
"""

_FIND_WRITES = frozenset(("-delete", "-fprint", "-fprint0", "-fprintf", "-fls"))
_SED_READS = frozenset(("-n", "-E", "-r", "-e", "-s", "-z", "-u", "--quiet", "--silent", "--regexp-extended"))
_GIT_LOOKS = frozenset(("status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "describe"))


def only_reads(argv: Sequence[str]) -> bool:
    """Say whether `argv` is known never to write what its operands name; a program given with its folder is not known."""
    options = [word for word in argv[1:] if word.startswith("-")]
    match argv[0]:
        case "find":
            return (_FIND_WRITES | FIND_RUNS).isdisjoint(argv)
        case "sed":
            # `w` and `e` take what stands behind them for a file or a command: `sed -n "w x"`.
            runs_on = any(word.endswith(("w", "W", "e")) for word in argv[1:-1])
            return not runs_on and all(option in _SED_READS for option in options)
        case "git":
            # --output, its abbreviations, and -O (an order file; a pager for grep).
            looks = len(argv) > 1 and argv[1] in _GIT_LOOKS
            return looks and not any(option.startswith(("--o", "-o", "-O")) for option in options)
        case name:
            return name in _WHATEVER_THE_OPTIONS


def names_for(program: str, names: Names) -> Names:
    """Return what is known of the files that a program reads when it is handed `names`: a folder among them holds others."""
    if program in FILE_READERS or not names.folders:
        return names
    return replace(names, skips=(), hidden=True)
