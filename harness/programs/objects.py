"""Models of programs that look into object files and libraries. No I/O.

Programs of GNU binutils take options from a file that a word `@FILE` names, wherever it stands; what prints sources or
debug information opens files whose names stand in the object, and is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access
from harness.programs.gathered import never
from harness.programs.model import Parsed, PathUse, Program, Use, gap
from harness.record import replace


def _no_lists(parsed: Parsed, use: Use) -> Use:
    words = (*parsed.operands, *(given.value for given in parsed.options if given.value))
    if any(word.startswith("@") for word in words):
        return gap("options out of a file (@)")
    return use if parsed.operands else replace(use, paths=(PathUse(word="a.out", access=Access.READ),))


PROGRAMS: Mapping[str, Program] = {
    "nm": Program(
        options="""
            -a|--debug-syms -A|-o|--print-file-name -C|--demangle[=TEXT] --no-demangle -D|--dynamic -f|--format=TEXT
            -g|--extern-only -j|--just-symbols -n|-v|--numeric-sort -p|--no-sort -P|--portability -r|--reverse-sort
            -S|--print-size -s|--print-armap --size-sort --special-syms -t|--radix=TEXT -u|--undefined-only
            -U|--defined-only -W|--no-weak -V|--version:info -h|--help:info
        """,
        refine=_no_lists,
    ),
    "objdump": Program(
        options="""
            -a|--archive-headers -f|--file-headers -p|--private-headers -h|--headers|--section-headers -x|--all-headers
            -d|--disassemble -D|--disassemble-all -s|--full-contents -t|--syms -T|--dynamic-syms -r|--reloc
            -R|--dynamic-reloc -j|--section=TEXT -M|--disassembler-options=TEXT -m|--architecture=TEXT -C|--demangle[=TEXT]
            -w|--wide -z|--disassemble-zeroes --start-address=TEXT --stop-address=TEXT --no-show-raw-insn --show-raw-insn
            -v|--version:info -H|--help:info
        """,
        refine=_no_lists,
    ),
    "readelf": Program(
        options="""
            -a|--all -h|--file-header -l|--program-headers|--segments -S|--section-headers|--sections -g|--section-groups
            -t|--section-details -e|--headers -s|--syms|--symbols --dyn-syms -n|--notes -r|--relocs -d|--dynamic
            -V|--version-info -A|--arch-specific -c|--archive-index -D|--use-dynamic -x|--hex-dump=TEXT
            -p|--string-dump=TEXT -I|--histogram -W|--wide -C|--demangle[=TEXT] -v|--version:info -H|--help:info
        """,
        refine=_no_lists,
    ),
    "size": Program(
        options="-A -B -G -d -o -x -t|--totals --format=TEXT --radix=TEXT --common -V|--version:info -h|-H|--help:info",
        refine=_no_lists,
    ),
    "ldd": never("it may run the program that it looks at (ldd(1), Security)"),
}
