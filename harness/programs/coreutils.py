"""Programs that only ever read the files named on their command line, whatever the options; data only."""

from __future__ import annotations

READS_ITS_OPERANDS = frozenset(
    "b2sum basename cat cksum cmp cut dirname du egrep expand fgrep fold grep head join ls md5sum nl od paste readlink "
    "realpath sha1sum sha224sum sha256sum sha384sum sha512sum stat sum tac tail tr unexpand wc".split()
)
"""No option of these (GNU coreutils 9, GNU grep 3) writes a file or runs a program.

Left out with intent: `sort` (-o, --compress-program), `uniq` (second operand), `tee`, `dd`, `split` (--filter), `find`
(-delete, -fprint, -exec), `diff` (harmless, but often an alias), `file` (-C writes), `less`, `man` (run other programs).
"""
