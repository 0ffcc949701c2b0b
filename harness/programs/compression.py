"""Models of programs that compress single files, most of them in place; data. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.model import Parsed, PathUse, Program, Refine, Use
from harness.programs.options import stricter
from harness.record import replace

_SHORT_ENDING = re.compile(r"(.*)\.t(gz|az|bz|bz2|xz|lz|zst)")


def _in_place(*suffixes: str) -> Refine:
    """Return what a compressor does that puts `a.gz` in the place of `a`, and the other way round."""

    def refine(parsed: Parsed, use: Use) -> Use:
        paths: list[PathUse] = []
        # Of -d -z -t -l the last counts: `xz -t -z f` packs f.
        looks = parsed.has("-c") or (parsed.has("-t", "-l") and not parsed.has("-d", "-z"))
        for path in use.paths:
            words = [path.word, *(path.word + suffix for suffix in suffixes)]
            if not looks:
                words += [path.word.removesuffix(suffix) for suffix in suffixes]
                words += [f"{short[1]}.tar" for short in [_SHORT_ENDING.fullmatch(path.word)] if short]
            access = Access.READ if looks else Access.EITHER
            paths += [replace(path, word=word, access=access) for word in dict.fromkeys(words)]
        act = use.act if looks or not paths else stricter(use.act, Act.WRITES)
        return replace(use, act=act, paths=tuple(paths))

    return refine


def _printed(*suffixes: str) -> Refine:
    """Return what zcat and its like do: they print; where a file is not there, they try its name with a suffix."""

    def refine(_parsed: Parsed, use: Use) -> Use:
        tried = [replace(path, word=path.word + suffix) for path in use.paths for suffix in suffixes]
        return replace(use, paths=(*use.paths, *tried))

    return refine


_GZIP_OPTIONS = """
    -c|--stdout|--to-stdout -d|--decompress|--uncompress -f|--force -k|--keep -l|--list -n|--no-name -q|--quiet
    -t|--test -v|--verbose -1|--fast -2 -3 -4 -5 -6 -7 -8 -9|--best --rsyncable --synchronous
    -V|--version:info -h|--help:info
"""
# gzip -r follows links out of the folder, zstd --rm has removed what -c printed: not in the tables.
_GZIP_SUFFIXES = (".gz", "-gz", ".z", "-z", "_z", ".Z")
_BZIP2_OPTIONS = """
    -c|--stdout -d|--decompress -z|--compress -f|--force -k|--keep -t|--test -q|--quiet -v|--verbose -s|--small
    -1|--fast -2 -3 -4 -5 -6 -7 -8 -9|--best -V|--version:info -h|--help:info
"""
_XZ_OPTIONS = """
    -c|--stdout|--to-stdout -d|--decompress|--uncompress -z|--compress -f|--force -k|--keep -l|--list -t|--test
    -q|--quiet -v|--verbose -0 -1|--fast -2 -3 -4 -5 -6 -7 -8 -9|--best -e|--extreme -T|--threads=TEXT --robot
    -M|--memory|--memlimit=TEXT --no-sparse --ignore-check -V|--version:info -h|--help:info
"""
_ZSTD_OPTIONS = """
    -c|--stdout -d|--decompress|--uncompress -z|--compress -f|--force -k|--keep -l|--list -t|--test -q|--quiet
    -v|--verbose -1 -2 -3 -4 -5 -6 -7 -8 -9 --ultra --no-progress -V|--version:info -h|-H|--help:info
"""
# zstd reads -T and -o otherwise than getopt does (`-T0o f` writes f): not in the table.


PROGRAMS: Mapping[str, Program] = {
    "gzip": Program(options=_GZIP_OPTIONS, refine=_in_place(*_GZIP_SUFFIXES)),
    "gunzip": Program(options=_GZIP_OPTIONS, refine=_in_place(*_GZIP_SUFFIXES)),
    "zcat": Program(options=_GZIP_OPTIONS, refine=_printed(*_GZIP_SUFFIXES)),
    "bzip2": Program(options=_BZIP2_OPTIONS, refine=_in_place(".bz2", ".out")),
    "bunzip2": Program(options=_BZIP2_OPTIONS, refine=_in_place(".bz2", ".bz", ".out")),
    "bzcat": Program(options=_BZIP2_OPTIONS),
    "xz": Program(options=_XZ_OPTIONS, refine=_in_place(".xz", ".lzma")),
    "unxz": Program(options=_XZ_OPTIONS, refine=_in_place(".xz", ".lzma")),
    "xzcat": Program(options=_XZ_OPTIONS),
    "zstd": Program(options=_ZSTD_OPTIONS, refine=_in_place(".zst")),
    "unzstd": Program(options=_ZSTD_OPTIONS, refine=_in_place(".zst")),
    "zstdcat": Program(options=_ZSTD_OPTIONS),
}
