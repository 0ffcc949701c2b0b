"""Programs that cut, sort, compare and show text: head, sort, diff, jq, man. sed and awk have separate files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from harness.actions import Access, Act
from harness.programs.options import option_table, read_command
from harness.programs.program import READER, READER_OF_INPUT, Found, Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.record import replace

# --- Text

_INFO = "--help:info --version:info "
_INFO_SHORT = "-h|--help:info -V|--version:info "
_FILES = Program(operands="READ...")


def _begins(word: str) -> tuple[str, ...]:
    """Return the possible beginnings of a word."""
    return word.starts if isinstance(word, Found) else (word,)


def _plain_operands(parsed: Parsed, use: Use) -> Use:
    """Return a gap for operands that begin with `+` or `-`.

    Pagers read `+!rm x` as a command, `-x` as an option or file.
    """
    odd = next(
        (word for word in parsed.operands if word != "-" and any(b[:1] in ("+", "-") for b in _begins(word))), ""
    )
    return gap(f"{odd} may be a command to a pager") if odd else use


def _no_lists(parsed: Parsed, use: Use) -> Use:
    """Return a gap for any word `@FILE`. Programs of binutils read further words from that file."""
    words = (*parsed.operands, *(option.value or "" for option in parsed.options))
    list_word = next((word for word in words if any(begin.startswith("@") for begin in _begins(word))), "")
    return gap(f"{list_word} is a file of further words") if list_word else use


def _following(parsed: Parsed, use: Use) -> Use:
    """Refine diff. It follows links in folders, unless --no-dereference is set."""
    if parsed.has("--no-dereference"):
        return use
    return replace(use, paths=tuple(replace(path, follows=path.tree) for path in use.paths))


def _pieces(parsed: Parsed, use: Use) -> Use:
    """Add the first of the files that split creates by default. All of them have the prefix `x`."""
    if len(parsed.operands) == 2:
        return use
    return replace(use, paths=(*use.paths, PathUse(word="xaa", access=Access.WRITE)))


def _first_piece(parsed: Parsed, use: Use) -> Use:
    if parsed.has("-f"):
        return use
    return replace(use, paths=(*use.paths, PathUse(word="xx00", access=Access.WRITE)))


_JQ_LETTERS = frozenset("csnrjaSCMRe")
_JQ_FLAGS = frozenset(
    "--compact-output --slurp --null-input --raw-output --join-output --ascii-output --sort-keys --color-output "
    "--monochrome-output --raw-input --exit-status --tab --seq --stream --stream-errors --unbuffered --raw-output0 --args "
    "--jsonargs".split()
)
_JQ_VALUES = {"--arg": 2, "--argjson": 2, "--slurpfile": 2, "--rawfile": 2, "--argfile": 2, "--indent": 1}
_JQ_FILES = frozenset(("--slurpfile", "--rawfile", "--argfile"))
_JQ_LOADS = r"(?<![.\w])(?:import|include|modulemeta)\b"
"""Words by which a jq program reads further files. A field of that name (`.include`) does not count."""


def _is_one_word(word: str) -> bool:
    return not isinstance(word, Unknown) or word.single


def _jq(argv: Sequence[str]) -> Use:
    """Return the use of a jq command. Its options may have two values, and may occur at any position."""
    if len(argv) == 2 and argv[1] in ("--version", "--help", "-h", "-V"):
        return Use(act=Act.LOOKS)
    files: list[str] = []
    program: str | None = None
    texts = has_end_mark = False
    words = iter(argv[1:])
    for word in words:
        if isinstance(word, Unknown) and not (has_end_mark and _is_one_word(word)):
            return gap(f"{word} may be an option, or several words")
        if not has_end_mark and len(word) > 1 and word.startswith("-"):
            problem = "" if word == "--" and program is not None else _jq_option(word, words, files)
            if problem:
                return gap(problem)
            has_end_mark = word == "--"
            texts = texts or word in ("--args", "--jsonargs")  # only operands before these options are files
        elif program is None:
            program = word
        elif not texts:
            files.append(word)
    if program is not None and (isinstance(program, Unknown | Found) or re.search(_JQ_LOADS, program)):
        return gap("a program of jq that may read further files")
    return read_command(_FILES, (argv[0], "--", *files))


def _jq_option(word: str, words: Iterator[str], files: list[str]) -> str:
    """Read the values of an option from `words`, and add those that are files to `files`.

    Return the reason for a gap, or an empty string.
    """
    if word in _JQ_VALUES:
        values = list(islice(words, _JQ_VALUES[word]))
        if len(values) < _JQ_VALUES[word] or not all(map(_is_one_word, values)):
            return f"the values of {word} are not known"
        files += values[1:] if word in _JQ_FILES else []
    elif word not in _JQ_FLAGS and not _JQ_LETTERS.issuperset(word[1:]):
        return f"the option {word} is not in its model"
    return ""


_PRINTS_SUMS = Program(
    facts=READER_OF_INPUT,
    # -c reads names of files from a file.
    options=_INFO + "-b|--binary -t|--text -z|--zero --tag -l|--length=TEXT -a|--algorithm=TEXT --untagged --raw --base64 "
    "--debug -c|--check:gap",
)  # fmt: skip
_ENCODES = Program(
    options=_INFO + "-d|-D|--decode -i|--ignore-garbage -w|--wrap=TEXT",
)  # fmt: skip
_HEXDUMP = Program(
    options=_INFO_SHORT + "-b|--one-byte-octal -c|--one-byte-char -C|--canonical -d|--two-bytes-decimal -o|--two-bytes-octal "
    "-x|--two-bytes-hex -L[=TEXT] --color[=TEXT] -e|--format=TEXT -f|--format-file=READ -n|--length=TEXT -s|--skip=TEXT "
    "-v|--no-squeezing",
)  # fmt: skip

_XXD = Program(
    # All words after the first operand are operands: `xxd a -b` writes a file named -b.
    style=Style.POSIX,
    options="-v|-version:info -a|-autoskip -b|-bits -C|-capitalize -d -e -E|-EBCDIC -i|-include -p|-ps|-plain "
    "-u|-uppercase -c|-cols=TEXT -g|-groupsize=TEXT -l|-len=TEXT -n|-name=TEXT -o|-offset=TEXT -s|-seek|-skip=TEXT "
    "-r|-revert",
    operands="READ WRITE",
)


def _xxd(argv: Sequence[str]) -> Use:
    """Return the use of an xxd command. xxd reads only the first letter after a dash: `-bl a out` means `-b a out`, and
    writes out.
    """
    for word in argv[1:]:
        if len(word) > 2 and word[0] == "-" and word not in option_table(_XXD.options) and word[1] not in "cglnos-":
            return gap(f"{word} is several letters, of which xxd reads one")
    return read_command(_XXD, argv)


# --- Manual pages and calendars


def _man(parsed: Parsed, use: Use) -> Use:
    """Accept only names and sections. A word with a slash is a file that man formats."""
    for word in (*parsed.operands, *(option.value for option in parsed.options if option.value)):
        if isinstance(word, Unknown | Found) or "/" in word:
            return gap(f"{word} is not the plain name of a manual page")
    return use


_CALENDAR = Program(style=Style.TEXT, operands="TEXT...")
"""Calendars of util-linux and BSD. None of their words is a file or a program."""


PROGRAMS: Mapping[str, Program] = {
    "head": Program(
        facts=READER_OF_INPUT,
        options=_INFO + "-NUM -c|--bytes=TEXT -n|--lines=TEXT -q|--quiet|--silent -v|--verbose -z|--zero-terminated",
    ),
    "tail": Program(
        facts=READER_OF_INPUT,
        options=_INFO
        + "-NUM -c|--bytes=TEXT -f --follow[=TEXT] -F -n|--lines=TEXT --max-unchanged-stats=TEXT --pid=TEXT "
        "-q|--quiet|--silent --retry -s|--sleep-interval=TEXT -v|--verbose -z|--zero-terminated",
    ),
    "wc": Program(
        facts=READER_OF_INPUT,
        options=_INFO + "-c|--bytes -m|--chars -l|--lines -L|--max-line-length -w|--words --total=TEXT",
    ),
    "sort": Program(
        facts="files few-variables",
        # -T names a folder in which sort writes parts of the text. --compress-program names a program to run.
        options=_INFO + "-b|--ignore-leading-blanks -d|--dictionary-order -f|--ignore-case -g|--general-numeric-sort "
        "-i|--ignore-nonprinting -M|--month-sort -h|--human-numeric-sort -n|--numeric-sort -R|--random-sort "
        "--random-source=READ -r|--reverse -V|--version-sort --sort=TEXT --batch-size=TEXT -c --check[=TEXT] -C "
        "--compress-program=CODE --debug -k|--key=TEXT -m|--merge -o|--output=WRITE -s|--stable -S|--buffer-size=TEXT "
        "-t|--field-separator=TEXT -T|--temporary-directory=WRITE_TREE --parallel=TEXT -u|--unique -z|--zero-terminated "
        "--files0-from=CODE",
    ),
    "uniq": Program(
        facts="files few-variables",
        options=_INFO + "-NUM -c|--count -d|--repeated -D --all-repeated[=TEXT] -f|--skip-fields=TEXT --group[=TEXT] "
        "-i|--ignore-case -s|--skip-chars=TEXT -u|--unique -w|--check-chars=TEXT -z|--zero-terminated",
        operands="READ WRITE",
    ),
    "cut": Program(
        facts=READER,
        options=_INFO + "-b|--bytes=TEXT -c|--characters=TEXT -d|--delimiter=TEXT -f|--fields=TEXT -n --complement "
        "-s|--only-delimited --output-delimiter=TEXT -z|--zero-terminated",
    ),
    # Neither tr nor numfmt opens files named by its words.
    "tr": Program(facts="only-reads few-variables", style=Style.TEXT, operands="TEXT..."),
    "numfmt": Program(style=Style.TEXT, operands="TEXT..."),
    "paste": Program(
        facts="only-reads few-variables", options=_INFO + "-d|--delimiters=TEXT -s|--serial -z|--zero-terminated"
    ),
    "join": Program(
        facts="only-reads few-variables",
        options=_INFO
        + "-a=TEXT -e=TEXT -i|--ignore-case -j=TEXT -o=TEXT -t=TEXT -v=TEXT -1=TEXT -2=TEXT --check-order "
        "--nocheck-order --header -z|--zero-terminated",
        operands="READ READ",
    ),
    "comm": Program(
        facts="few-variables",
        options=_INFO + "-1 -2 -3 --check-order --nocheck-order --output-delimiter=TEXT --total -z|--zero-terminated",
        operands="READ READ",
    ),
    "nl": Program(
        facts=READER_OF_INPUT,
        options=_INFO + "-b|--body-numbering=TEXT -d|--section-delimiter=TEXT -f|--footer-numbering=TEXT "
        "-h|--header-numbering=TEXT -i|--line-increment=TEXT -l|--join-blank-lines=TEXT -n|--number-format=TEXT "
        "-p|--no-renumber -s|--number-separator=TEXT -v|--starting-line-number=TEXT -w|--number-width=TEXT",
    ),
    "od": Program(
        facts=READER,
        options=_INFO + "-A|--address-radix=TEXT --endian=TEXT -j|--skip-bytes=TEXT -N|--read-bytes=TEXT -S=TEXT "
        "--strings[=TEXT] -t|--format=TEXT -v|--output-duplicates -w|--width[=TEXT] -a -b -c -d -f -i -l -o -s -x",
    ),
    "xxd": replace(_XXD, read=_xxd, facts="few-variables"),
    "hexdump": _HEXDUMP,
    "hd": _HEXDUMP,
    "fold": Program(facts=READER, options=_INFO + "-NUM -b|--bytes -s|--spaces -w|--width=TEXT"),
    "fmt": Program(
        options=_INFO
        + "-NUM -c|--crown-margin -p|--prefix=TEXT -s|--split-only -t|--tagged-paragraph -u|--uniform-spacing "
        "-w|--width=TEXT -g|--goal=TEXT"
    ),
    "column": Program(
        facts="files",
        options=_INFO_SHORT + "-t|--table -n|--table-name=TEXT -O|--table-order=TEXT -N|--table-columns=TEXT "
        "-l|--table-columns-limit=TEXT -E|--table-noextreme=TEXT -d|--table-noheadings -e|--table-header-repeat "
        "-H|--table-hide=TEXT -R|--table-right=TEXT -T|--table-truncate=TEXT -W|--table-wrap=TEXT -L|--keep-empty-lines "
        "-J|--json -r|--tree=TEXT -i|--tree-id=TEXT -p|--tree-parent=TEXT -c|--output-width=TEXT -o|--output-separator=TEXT "
        "-s|--separator=TEXT -x|--fillrows",
    ),
    "expand": Program(facts=READER, options=_INFO + "-i|--initial -t|--tabs=TEXT -NUM"),
    "unexpand": Program(facts=READER, options=_INFO + "-a|--all --first-only -t|--tabs=TEXT -NUM"),
    "rev": Program(facts="few-variables", options=_INFO_SHORT),
    "tac": Program(facts=READER, options=_INFO + "-b|--before -r|--regex -s|--separator=TEXT"),
    "shuf": Program(
        options=_INFO + "-e|--echo -i|--input-range=TEXT -n|--head-count=TEXT -o|--output=WRITE --random-source=READ "
        "-r|--repeat -z|--zero-terminated"
    ),
    "split": Program(
        # split writes several files. The second operand is their common prefix.
        act=Act.CHANGES,
        options=_INFO + "-NUM -a|--suffix-length=TEXT --additional-suffix=TEXT -b|--bytes=TEXT -C|--line-bytes=TEXT -d "
        "--numeric-suffixes[=TEXT] -x --hex-suffixes[=TEXT] -e|--elide-empty-files --filter=CODE -l|--lines=TEXT "
        "-n|--number=TEXT -t|--separator=TEXT -u|--unbuffered --verbose",
        operands="READ WRITE",
        refine=_pieces,
    ),
    "csplit": Program(
        act=Act.CHANGES,
        options=_INFO + "-b|--suffix-format=TEXT -f|--prefix=WRITE -k|--keep-files --suppress-matched -n|--digits=TEXT "
        "-s|--quiet|--silent -z|--elide-empty-files",
        operands="READ TEXT...",
        refine=_first_piece,
    ),
    "iconv": Program(
        # A charset with a slash in its name is a file that defines a charset.
        options="-?|--help:info --usage:info -V|--version:info -f|--from-code=READ -t|--to-code=READ -l|--list -c "
        "-o|--output=WRITE -s|--silent --verbose"
    ),
    "base64": _ENCODES,
    "base32": _ENCODES,
    "basenc": Program(
        options=_INFO + "--base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 -d|--decode "
        "-i|--ignore-garbage -w|--wrap=TEXT"
    ),
    "md5sum": _PRINTS_SUMS,
    "b2sum": _PRINTS_SUMS,
    "sha1sum": _PRINTS_SUMS,
    "sha224sum": _PRINTS_SUMS,
    "sha256sum": _PRINTS_SUMS,
    "sha384sum": _PRINTS_SUMS,
    "sha512sum": _PRINTS_SUMS,
    "cksum": _PRINTS_SUMS,
    "sum": Program(facts="only-reads", options=_INFO + "-r -s|--sysv"),
    "diff": Program(
        facts="only-reads few-variables",
        # diff of two folders reads every file in them, even without -r. -l runs pr.
        options=_INFO
        + "-v:info --normal -q|--brief -s|--report-identical-files -c -C=TEXT --context[=TEXT] -u -U=TEXT "
        "--unified[=TEXT] -NUM -e|--ed -n|--rcs -y|--side-by-side -W|--width=TEXT --left-column --suppress-common-lines "
        "-p|--show-c-function -F|--show-function-line=TEXT -L|--label=TEXT -t|--expand-tabs -T|--initial-tab --tabsize=TEXT "
        "--suppress-blank-empty -r|--recursive --no-dereference -N|--new-file -P|--unidirectional-new-file "
        "--ignore-file-name-case --no-ignore-file-name-case -x|--exclude=TEXT -X|--exclude-from=READ -S|--starting-file=TEXT "
        "--from-file=TREE --to-file=TREE -i|--ignore-case -E|--ignore-tab-expansion -Z|--ignore-trailing-space "
        "-b|--ignore-space-change -w|--ignore-all-space -B|--ignore-blank-lines -I|--ignore-matching-lines=TEXT -a|--text "
        "--strip-trailing-cr -D|--ifdef=TEXT --line-format=TEXT --old-line-format=TEXT --new-line-format=TEXT "
        "--unchanged-line-format=TEXT --old-group-format=TEXT --new-group-format=TEXT --changed-group-format=TEXT "
        "--unchanged-group-format=TEXT -d|--minimal --horizon-lines=TEXT --speed-large-files -H --color[=TEXT] --palette=TEXT "
        "-l|--paginate:gap",
        operands="TREE...",
        refine=_following,
    ),
    "cmp": Program(
        facts=READER,
        options=_INFO
        + "-v:info -b|--print-bytes -i|--ignore-initial=TEXT -l|--verbose -n|--bytes=TEXT -s|--quiet|--silent",
        operands="READ READ TEXT TEXT",
    ),
    "patch": Program(
        # The patch names the files to change. If it contains an ed script, patch runs ed.
        act=Act.CHANGES,
        options=_INFO
        + "-v:info -p|--strip=TEXT -F|--fuzz=TEXT -l|--ignore-whitespace -c|--context -n|--normal -u|--unified "
        "-N|--forward -R|--reverse -i|--input=READ -o|--output=WRITE -r|--reject-file=WRITE --merge[=TEXT] "
        "-E|--remove-empty-files -t|--batch -f|--force -s|--quiet|--silent --verbose --dry-run -d|--directory=FOLDER --binary "
        "--no-backup-if-mismatch -e|--ed:gap",
        operands="EITHER READ",
    ),
    "strings": Program(
        facts="files",
        options=_INFO + "-v|-V:info -NUM -a|--all -d|--data -f|--print-file-name -n|--bytes=TEXT -t|--radix=TEXT "
        "-w|--include-all-whitespace -o -e|--encoding=TEXT -U|--unicode=TEXT -s|--output-separator=TEXT",
        refine=_no_lists,
    ),
    "file": Program(
        facts="files input-without-files",
        # Left out: -m and -C (read and write the database of file types), -f (reads names), -z (runs decompressors).
        options=_INFO + "-v:info -b|--brief -e|--exclude=TEXT --exclude-quiet=TEXT --extension -F|--separator=TEXT "
        "-h|--no-dereference -i|--mime --mime-type --mime-encoding --apple -k|--keep-going -L|--dereference -n|--no-buffer "
        "-N|--no-pad -0|--print0 "
        "-P|--parameter=TEXT -r|--raw",
    ),
    "jq": Program(facts=READER, read=_jq),
    "less": Program(
        style=Style.POSIX, options="-V|--version:info --help:info -F -i -N -R -r -S -X", refine=_plain_operands
    ),
    # bat 0.26. It starts no pager, as its output is not a terminal. Left out: --diff, which runs git.
    **dict.fromkeys(
        ("bat", "batcat"),
        Program(
            options="""
                -V|--version:info -h|--help:info -A|--show-all -p|--plain -l|--language=TEXT -H|--highlight-line=TEXT
                -n|--number -r|--line-range=TEXT --style=TEXT --theme=TEXT --color=TEXT --decorations=TEXT --paging=TEXT
                -P|--no-paging --wrap=TEXT -S|--chop-long-lines --tabs=TEXT --file-name=TEXT -f|--force-colorization
                -s|--squeeze-blank
                -L|--list-languages --list-themes -u|--unbuffered -pp
            """,
            facts="files",
        ),
    ),
    "more": Program(style=Style.POSIX, options=_INFO_SHORT + "-NUM -d -f -s", refine=_plain_operands),
    "bc": Program(options=_INFO_SHORT + "-l|--mathlib -q|--quiet -s|--standard -w|--warn", operands=""),
    "tsort": Program(options=_INFO, operands="READ"),
    # man-db 2.11, and man of BSD. It starts no pager, as its output is not a terminal.
    "man": Program(
        options="""
            -f|--whatis -k|--apropos -w|--where|--path|--location -a|--all -i|--ignore-case -I|--match-case --regex --wildcard
            --names-only --no-subpages -s|-S|--sections=TEXT -e|--extension=TEXT -7|--ascii --no-hyphenation|--nh
            --no-justification|--nj -V|--version:info -h|--help:info
        """,
        operands="TEXT...",
        refine=_man,
    ),
    "cal": _CALENDAR,
    "ncal": _CALENDAR,
}
