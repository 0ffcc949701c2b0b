"""Compilers of C and C++, the programs they call, the tools around them, and programs that look into object files.

A compiler reads the files that its sources name: `#include ".env"` prints that file with -E, or in the messages of
-fsyntax-only. So `CHANGES` here also means that a program reads more than its operands. Programs of GNU binutils read
options from the file of any word `@FILE`. Options that print sources or debug information are left out, because they
open files that the object names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.programs.rows import Rows
from harness.programs.shared import either_dash, no_files_of_words, operands_written
from harness.record import replace

# --- Compilers

# Options that name neither a program nor a file. Left out on purpose: -B, -wrapper, -specs, -fplugin, -fuse-ld, -Wl,
# -Wa, -Wp, -X..., -mllvm, -fdump-..., -fprofile-..., -save-temps, --sysroot, @FILE.
_HARMLESS = r"""(?x)-(?:
        c | S | E | P | C | H | w | v | s | \#\#\# | M | MM | MP | MG | dM | dD | pipe | pthread | ansi | static | shared
      | rdynamic | pie | no-pie | nostdlib | nostdinc | nodefaultlibs | static-libgcc | static-libstdc\+\+ | static-pie
      | pedantic(?:-errors)? | undef | traditional
      | O[0-3sgz]? | Ofast | g[0-3]? | ggdb[0-3]? | gdwarf(?:-[2-5])?
      | std=[a-z0-9+:]+ | W(?![alp],)[A-Za-z0-9+=_-]* | W
      | m(?:32|64|x32|thumb|native|avx[0-9a-z]*|sse[0-9.a-z]*|fma|bmi2?|popcnt|aes)
      | m(?:arch|tune|cpu|fpu|abi|float-abi)=[a-z0-9.+_-]+
      | fno-[a-z0-9-]+ | fPIC | fpic | fPIE | fpie | fopenmp | fexceptions | fpermissive | fsyntax-only | fcommon | flto
      | fstack-protector(?:-all|-strong)? | fomit-frame-pointer | funroll-loops | ffast-math | fwrapv | fstrict-aliasing
      | ffunction-sections | fdata-sections | fshort-enums | fsigned-char | funsigned-char | fms-extensions | fconcepts
      | fcoroutines | fblocks | fcolor-diagnostics | fdiagnostics-color(?:=[a-z]+)? | fmax-errors=[0-9]+ | ferror-limit=[0-9]+
      | ftemplate-depth=[0-9]+ | fvisibility=[a-z]+ | fvisibility-inlines-hidden | fsanitize=[a-z,-]+ | ftrapv
    )"""
_JOINED = ("-I", "-D", "-U", "-L", "-l", "-x", "-o")
_VALUES = {
    **dict.fromkeys("-I -isystem -iquote -idirafter -include -imacros -L".split(), Access.READ),
    **dict.fromkeys(("-o", "-MF"), Access.WRITE),
    **dict.fromkeys("-l -D -U -x -MT -MQ --param".split(), None),
}
"""Options with a value, each with the access to that path. `None` if the value is not a path."""
_WRITES_NOTHING = frozenset(("-E", "-fsyntax-only", "-M", "-MM", "-###"))
_ABOUT_ITSELF = frozenset("--version -v -dumpversion -dumpfullversion -dumpmachine --help -print-search-dirs".split())


def _read_compiler(argv: Sequence[str]) -> Use:
    """Return the use of a compiler command.

    Options are not clustered, values may be joined, and any `@FILE` is a gap.
    """
    if len(argv) == 2 and argv[1] in _ABOUT_ITSELF:
        return Use(act=Act.LOOKS)
    strange = next((word for word in argv[1:] if isinstance(word, Unknown | Found) or word.startswith("@")), None)
    if strange is not None:
        return gap(f"{strange} may be an option or a file of options")
    paths: list[PathUse] = []
    flags: set[str] = set()
    sources: list[str] = []
    output = ""
    words = iter(argv[1:])
    for word in words:
        if not word.startswith("-") or word == "-":
            sources.append(word)
        elif word in _VALUES or word.startswith(_JOINED):
            option = word if word in _VALUES else word[:2]
            value = next(words, None) if word in _VALUES else word[2:]
            if value is None:
                return gap(f"{option} has no value")
            flags.add(option)
            output = value if option == "-o" else output
            paths += _path_uses(value, _VALUES[option])
        elif word in ("-MD", "-MMD") or re.fullmatch(_HARMLESS, word):
            flags.add(word)
        else:
            return gap(f"the option {word} is not in its model")
    paths += [path for source in sources for path in _path_uses(source, Access.READ)]
    paths += [path for name in _outputs(flags, sources, output) for path in _path_uses(name, Access.WRITE)]
    return Use(act=Act.CHANGES, paths=tuple(paths))


def _path_uses(word: str, access: Access | None) -> list[PathUse]:
    return [] if access is None or word in ("", "-") else [PathUse(word=word, access=access)]


def _outputs(flags: set[str], sources: Sequence[str], output: str) -> list[str]:
    """Return the files that the compiler writes by default, without an option that names them. May list too many."""
    stems = [source.rpartition("/")[2].rpartition(".")[0] or source.rpartition("/")[2] for source in sources]
    written: list[str] = []
    if flags & {"-MD", "-MMD"} and "-MF" not in flags:
        base = output.removesuffix(".o") if output else "a"
        written += [name for stem in stems for name in (f"{stem}.d", f"{base}.d", f"{base}-{stem}.d")]
    if output or flags & _WRITES_NOTHING:
        return written
    if flags & {"-c", "-S"}:
        return written + [f"{stem}.o" if "-c" in flags else f"{stem}.s" for stem in stems]
    return [*written, "a.out"]


_COMPILER = Program(read=_read_compiler)

# --- clang-format, clang-tidy, protoc

_STYLES = frozenset("LLVM GNU Google Chromium Microsoft Mozilla WebKit".split())


def _clang_format(parsed: Parsed, use: Use) -> Use:
    """Refine a clang-format command. Only a command with a named style can be `LOOKS`.

    Otherwise it reads a `.clang-format`, which may be a link, and prints its first line if it cannot parse it.
    """
    styles = parsed.values("-style")
    if any(isinstance(style, Unknown | Found) for style in styles):
        return replace(use, gap="the style is not known")
    files = (style[len("file:") :] for style in styles if style.startswith("file:"))
    use = replace(use, paths=(*use.paths, *(PathUse(word=file, access=Access.READ) for file in files)))
    if parsed.has("-i"):
        use = operands_written(parsed, use)
    is_named_style = bool(styles) and _STYLES.issuperset(styles)
    return use if is_named_style else replace(use, act=stricter(use.act, Act.CHANGES))


_CLANG_FORMAT = Program(
    style=Style.SINGLE,
    options=either_dash(
        """
        version:info help:info i n dry-run Werror verbose style=TEXT fallback-style=TEXT assume-filename=TEXT lines=TEXT
        offset=TEXT length=TEXT cursor=TEXT sort-includes[=TEXT] ferror-limit=TEXT output-replacements-xml
        fail-on-incomplete-format
        """
    ),
    refine=_clang_format,
)
# The flags in its configuration and in compile_commands.json may load plugins into the compiler.
_CLANG_TIDY = Program(
    act=Act.RUNS,
    style=Style.SINGLE,
    options=either_dash(
        "version:info help:info p=READ checks=TEXT quiet header-filter=TEXT warnings-as-errors=TEXT list-checks"
    ),
)


# --- Object files


def _no_lists(parsed: Parsed, use: Use) -> Use:
    words = (*parsed.operands, *(option.value for option in parsed.options if option.value))
    if any(word.startswith("@") for word in words):
        return gap("options out of a file (@)")
    return use if parsed.operands else replace(use, paths=(PathUse(word="a.out", access=Access.READ),))


def _packages(parsed: Parsed, use: Use) -> Use:
    """Return a gap for an operand of pkg-config that may be a file of definitions."""
    plain = all(
        type(word) is str and re.fullmatch(r"[A-Za-z0-9_.+-]+|[<>=!]+", word) and not word.endswith(".pc")
        for word in parsed.operands
    )
    return use if plain else replace(use, gap="a name that may be a file")


_ROWS = Rows(
    r"""
as : changes single : READ... : --version:info --help:info -g --gstabs -W --warn --fatal-warnings --32 --64 -I=READ -o=WRITE
ld : changes single : READ... : --version:info -v:info --help:info -shared -static -r -s -S -g -pie -no-pie -e=TEXT -m=TEXT
    -L=READ -l=TEXT -o=WRITE
# For `--NAME_out` protoc runs protoc-gen-NAME, unless NAME is built in.
protoc : runs single : READ... : --version:info -h|--help:info -I|--proto_path=READ --cpp_out=WRITE_TREE
    --python_out=WRITE_TREE --pyi_out=WRITE_TREE --java_out=WRITE_TREE --csharp_out=WRITE_TREE --go_out=WRITE_TREE
    --go-grpc_out=WRITE_TREE --go_opt=TEXT --go-grpc_opt=TEXT --js_out=WRITE_TREE --ts_out=WRITE_TREE
    --grpc_python_out=WRITE_TREE -o|--descriptor_set_out=WRITE --include_imports --include_source_info
    --experimental_allow_proto3_optional --plugin=CODE
# An operand that is not a plain name may be a file.
pkg-config/pkgconf : looks packages : TEXT... : --version:info --modversion --exists --cflags --libs --libs-only-l
    --libs-only-L --libs-only-other --cflags-only-I --cflags-only-other --list-all --list-package-names --print-requires
    --print-requires-private --print-variables --print-provides --variable=TEXT --static --atleast-version=TEXT
    --exact-version=TEXT --max-version=TEXT --print-errors --short-errors --silence-errors --errors-to-stdout
nm : looks files : READ... : -a|--debug-syms -A|-o|--print-file-name -C|--demangle[=TEXT] --no-demangle -D|--dynamic
    -f|--format=TEXT -g|--extern-only -j|--just-symbols -n|-v|--numeric-sort -p|--no-sort -P|--portability -r|--reverse-sort
    -S|--print-size -s|--print-armap --size-sort --special-syms -t|--radix=TEXT -u|--undefined-only -U|--defined-only
    -W|--no-weak -V|--version:info -h|--help:info
objdump : looks files : READ... : -a|--archive-headers -f|--file-headers -p|--private-headers -h|--headers|--section-headers
    -x|--all-headers -d|--disassemble -D|--disassemble-all -s|--full-contents -t|--syms -T|--dynamic-syms -r|--reloc
    -R|--dynamic-reloc -j|--section=TEXT -M|--disassembler-options=TEXT -m|--architecture=TEXT -C|--demangle[=TEXT]
    -w|--wide -z|--disassemble-zeroes --start-address=TEXT --stop-address=TEXT --no-show-raw-insn --show-raw-insn
    -v|--version:info -H|--help:info
readelf : looks files : READ... : -a|--all -h|--file-header -l|--program-headers|--segments -S|--section-headers|--sections
    -g|--section-groups -t|--section-details -e|--headers -s|--syms|--symbols --dyn-syms -n|--notes -r|--relocs -d|--dynamic
    -V|--version-info -A|--arch-specific -c|--archive-index -D|--use-dynamic -x|--hex-dump=TEXT -p|--string-dump=TEXT
    -I|--histogram -W|--wide -C|--demangle[=TEXT] -v|--version:info -H|--help:info
size : looks files : READ... : -A -B -G -d -o -x -t|--totals --format=TEXT --radix=TEXT --common -V|--version:info
    -h|-H|--help:info
""",
    {"files": _no_lists, "packages": _packages},
)

PROGRAMS: Mapping[str, Program] = {
    **_ROWS,
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), _COMPILER),
    "as": no_files_of_words(_ROWS["as"]),
    "ld": no_files_of_words(_ROWS["ld"]),
    "protoc": no_files_of_words(_ROWS["protoc"]),
    "clang-format": no_files_of_words(_CLANG_FORMAT),
    "clang-tidy": no_files_of_words(_CLANG_TIDY),
}
