"""Programs that search files and list their names: grep, rg, fd, tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.losses import removes_each
from harness.programs.options import read_command, stricter
from harness.programs.program import READER_OF_INPUT, Parsed, PathUse, Program, Unknown, Use, gap
from harness.record import replace
from harness.regex import regex


def _search_current_folder(use: Use, *, tree: bool) -> Use:
    """Return `use` with the current folder, which programs search if no path is named."""
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ, tree=tree)))


# grep(1), GNU 3.11. egrep and fgrep take the same options.
_GREP_OPTIONS = """
    -E|--extended-regexp -F|--fixed-strings -G|--basic-regexp -P|--perl-regexp
    -e|--regexp=TEXT:instead -f|--file=READ:instead
    -i|-y|--ignore-case --no-ignore-case -w|--word-regexp -x|--line-regexp -z|--null-data -v|--invert-match
    -s|--no-messages -V|--version:info --help:info
    -m|--max-count=TEXT -b|--byte-offset -n|--line-number --line-buffered -H|--with-filename -h|--no-filename
    --label=TEXT -o|--only-matching -q|--quiet|--silent -L|--files-without-match -l|--files-with-matches -c|--count
    -T|--initial-tab -Z|--null -a|--text -I -U|--binary --binary-files=TEXT
    -r|--recursive:tree -R|--dereference-recursive:tree -d|--directories=TEXT:tree -D|--devices=TEXT
    --include=TEXT --exclude=TEXT --exclude-dir=TEXT --exclude-from=READ
    -A|--after-context=TEXT -B|--before-context=TEXT -C|--context=TEXT -NUM
    --group-separator=TEXT --no-group-separator --color|--colour[=TEXT]
"""


_NAME = regex(r"[A-Za-z0-9_.+-]*\*?[A-Za-z0-9_.+-]*")
"""A pattern of names with at most one `*`, which all programs read in the same way."""
_ENDING = regex(r"\*?[A-Za-z0-9_.+-]+")
"""A pattern for the end of names, which all programs read in the same way. rg reads `#x` as a comment, `x ` as `x`."""


def _left_out(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the unambiguous patterns of names to exclude. The others do not count, so they exclude no files here."""
    return tuple(name for name in patterns if name and not isinstance(name, Unknown) and _NAME.fullmatch(name))


def _grep_here(parsed: Parsed, use: Use) -> Use:
    """Refine grep. `grep -r` without a file searches the current folder; without -r grep reads its input.

    The last --include or --exclude that matches a file decides (grep(1)). Files that match none are searched, unless
    the first one is an --include. So --include narrows the names only if it is first, and only an --exclude after the
    last --include counts.
    """
    if not parsed.has("-r", "-R", "-d"):
        return use
    pattern = 0 if parsed.has("-e", "-f") else 1
    if len(parsed.operands) <= pattern:
        use = _search_current_folder(use, tree=True)
    chosen = [option for option in parsed.options if option.name in ("--include", "--exclude", "--exclude-from")]
    included = [place for place, option in enumerate(chosen) if option.name == "--include"]
    only = parsed.values("--include")
    if included[:1] != [0] or not all(map(_ENDING.fullmatch, only)):
        only = ()  # BSD grep matches patterns against whole paths: `t*` also matches `t/x`
    rest = chosen[included[-1] + 1 :] if included else chosen
    excluded = _left_out([option.value or "" for option in rest if option.name == "--exclude"])
    skips = parsed.values("--exclude-dir")
    follows = parsed.has("-R")
    if any(isinstance(name, Unknown) for name in (*only, *skips)):
        return use if not follows else gap("grep -R with a name that is not known")
    narrowed = {"only": only, "skips": skips, "excluded": excluded, "follows": follows}
    paths = (replace(p, **narrowed) if p.tree else p for p in use.paths)
    return replace(use, paths=tuple(paths))


_GREP = Program(facts=READER_OF_INPUT, options=_GREP_OPTIONS, operands="(TEXT) READ...", refine=_grep_here)

# rg(1), ripgrep 13 to 15.
_RG_OPTIONS = """
    -e|--regexp=TEXT:instead -f|--file=READ:instead --files:instead --type-list:instead
    -A|--after-context=TEXT -B|--before-context=TEXT -C|--context=TEXT
    -E|--encoding=TEXT -F|--fixed-strings -P|--pcre2 --engine=TEXT --auto-hybrid-regex -U|--multiline --multiline-dotall
    -i|--ignore-case -s|--case-sensitive -S|--smart-case -w|--word-regexp -x|--line-regexp -v|--invert-match --crlf
    --null-data --no-unicode --no-pcre2-unicode --dfa-size-limit=TEXT --regex-size-limit=TEXT --stop-on-nonmatch
    -g|--glob=TEXT --iglob=TEXT --glob-case-insensitive -t|--type=TEXT -T|--type-not=TEXT --type-add=TEXT
    --type-clear=TEXT -.|--hidden --no-hidden -u|--unrestricted -d|--max-depth|--maxdepth=TEXT --max-filesize=TEXT
    --ignore-file=READ --ignore-file-case-insensitive --no-ignore --no-ignore-dot --no-ignore-exclude --no-ignore-files
    --no-ignore-global --no-ignore-messages --no-ignore-parent --no-ignore-vcs --no-require-git --one-file-system
    --binary -a|--text --mmap --no-mmap -j|--threads=TEXT --sort=TEXT --sortr=TEXT --no-config --no-pre --no-follow
    -n|--line-number -N|--no-line-number --column --no-column -b|--byte-offset -H|--with-filename -I|--no-filename
    --heading --no-heading -c|--count --count-matches --include-zero -l|--files-with-matches --files-without-match
    -m|--max-count=TEXT -M|--max-columns=TEXT --max-columns-preview -o|--only-matching --passthru|--passthrough
    -r|--replace=TEXT -q|--quiet --no-messages --stats --json --vimgrep -p|--pretty --trim -0|--null
    --color=TEXT --colors=TEXT --context-separator=TEXT --no-context-separator --field-context-separator=TEXT
    --field-match-separator=TEXT --path-separator=TEXT --line-buffered --block-buffered --debug --trace
    --hyperlink-format=TEXT
    --pre=CODE --pre-glob=TEXT --hostname-bin=CODE
    -z|--search-zip:gap -L|--follow:gap
    -V|--version:info -h|--help:info --pcre2-version:info
"""
# -z runs gzip and similar programs. -L follows links out of the searched tree.


_RG_TYPES = {
    "py": "*.py *.pyi",
    "python": "*.py *.pyi",
    "rust": "*.rs",
    "go": "*.go",
    "ts": "*.cts *.mts *.ts *.tsx",
    "js": "*.cjs *.js *.jsx *.mjs *.vue",
    "java": "*.java *.jsp *.jspx *.properties",
}
"""Patterns of file names by common type (`rg --type-list`). A search by another type counts as reading all files."""


def _rg_paths(parsed: Parsed, use: Use) -> Use:
    """Refine rg. Without a path it searches the current folder. With --files it only lists names."""
    if any(value.startswith("=") for value in parsed.values("-f", "--ignore-file")):
        # rg drops the `=`: `-f=x` reads x.
        return gap("a value joined on with =")
    lists = parsed.has("--files", "--type-list")
    pattern = 0 if lists or parsed.has("-e", "-f") else 1
    if len(parsed.operands) <= pattern:
        use = _search_current_folder(use, tree=False)
    if lists:
        return use
    # A glob, a type, a `!` in an ignore file, --hidden and -uu can include hidden files. Plain globs narrow the files.
    every = parsed.values("-g", "--iglob")
    globs = [value for value in every if isinstance(value, Unknown) or value[:1] != "!"]
    types = parsed.values("-t")
    only: tuple[str, ...] = ()
    if types and not globs and all(name in _RG_TYPES for name in types):
        only = tuple(pattern for name in types for pattern in _RG_TYPES[name].split())
    elif globs and not types and all(map(_ENDING.fullmatch, globs)):
        only = tuple(globs)
    if parsed.has("--iglob", "--glob-case-insensitive", "--type-add", "--type-clear"):
        only = ()
    # The last glob that matches a file decides; those of --iglob count after the others. A glob of `!` and a plain name
    # excludes files and folders of that name.
    last = max((place for place, value in enumerate(every) if value in globs), default=-1)
    rest = () if parsed.has("--iglob") and globs else every[last + 1 :]
    excluded = _left_out(value[1:].removeprefix("**/") for value in rest if value not in globs)
    hidden = bool(globs) or parsed.has("-.", "-u", "-t", "--type-add", "--type-clear", "--ignore-file")
    read = (replace(path, tree=True, only=only, skips=excluded, excluded=excluded, hidden=hidden) for path in use.paths)
    return replace(use, paths=tuple(read))


_RG = Program(facts="only-reads few-variables", options=_RG_OPTIONS, operands="(TEXT) READ...", refine=_rg_paths)


def _ag_paths(parsed: Parsed, use: Use) -> Use:
    """Refine ag. Without a path it searches the current folder.

    It searches hidden files only with --hidden or -u. With -a, -t or -u it ignores --ignore.
    """
    if len(parsed.operands) <= (0 if parsed.has("-g") else 1):
        use = _search_current_folder(use, tree=True)
    excluded = () if parsed.has("-a", "-t", "-u") else _left_out(parsed.values("--ignore", "--ignore-dir"))
    hidden = parsed.has("--hidden", "-u")
    read = (
        replace(path, skips=excluded, excluded=excluded, hidden=hidden) if path.tree else path for path in use.paths
    )
    return replace(use, paths=tuple(read))


# ag(1), the silver searcher 2.2.
_AG = Program(
    options="""
        -g=TEXT:instead -G|--file-search-regex=TEXT -A|-B|-C=TEXT --after|--before|--context[=TEXT]
        -a|--all-types -c|--count -D|--debug --depth=TEXT -F|-Q|--fixed-strings|--literal -i|--ignore-case
        -s|--case-sensitive -S|--smart-case --ignore=TEXT --ignore-dir=TEXT -p|--path-to-ignore=READ -h|--no-filename
        -H|--heading --noheading --nogroup --group --hidden -l|--files-with-matches -L|--files-without-matches
        -m|--max-count=TEXT --nobreak --nocolor --color --nonumbers --numbers --column -o|--only-matching -r|-R|--recurse
        -n|--norecurse -t|--all-text -u|--unrestricted -U|--skip-vcs-ignores -v|--invert-match -w|--word-regexp
        -0|--null --silent --stats --vimgrep --ackmate --passthrough --nomultiline --workers=TEXT
        --pager=CODE -f|--follow:gap -z|--search-zip:gap
        -V|--version:info --help:info --list-file-types:info
    """,
    operands="(TEXT) TREE...",
    refine=_ag_paths,
)

# fd(1), 8 to 10. The words after -x and -X are a command. fd runs it for each file (-x), or once for all (-X).
_FD = Program(
    options="""
        -H|--hidden --no-hidden -I|--no-ignore --no-ignore-vcs --no-ignore-parent --no-require-git
        --no-global-ignore-file -u|--unrestricted -s|--case-sensitive -i|--ignore-case -g|--glob --regex
        -F|--fixed-strings --literal --and=TEXT -a|--absolute-path -l|--list-details -L|--follow -p|--full-path
        -0|--print0 -d|--max-depth|--maxdepth=TEXT --min-depth=TEXT --exact-depth=TEXT -E|--exclude=TEXT --prune
        -t|--type=TEXT -e|--extension=TEXT -S|--size=TEXT --changed-within|--newer=TEXT --changed-before|--older=TEXT
        -o|--owner=TEXT --ignore-file=READ -c|--color=TEXT -j|--threads=TEXT --max-results=TEXT -1 -q|--quiet
        --show-errors --path-separator=TEXT --search-path=READ --strip-cwd-prefix[=TEXT] --one-file-system|--xdev
        --format=TEXT --hyperlink[=TEXT]
        --base-directory=FOLDER -x|--exec=CODE -X|--exec-batch=CODE --batch-size=TEXT
        -V|--version:info -h|--help:info
    """,
    operands="TEXT READ...",
    refine=lambda parsed, use: _search_current_folder(use, tree=False) if len(parsed.operands) < 2 else use,
    loses=lambda words: removes_each(("-x", "-X", "--exec", "--exec-batch"), words.words, "fd"),
)

_TREE_VALUES = frozenset("LPIHTo")
_TREE = Program(
    options="""
        -a -d -f -x -L=TEXT -P=TEXT -I=TEXT -o=WRITE --gitignore --gitfile=READ --ignore-case --matchdirs --metafirst
        --prune --noreport --charset=TEXT --filelimit=TEXT -q -N -Q -p -u -g -s -h --si --du -D --timefmt=TEXT -F --inodes
        --device -v -t -c -U -r --dirsfirst --filesfirst --sort=TEXT -i -A -S -n -C -X -J -H=TEXT -T=TEXT --nolinks
        --hintro=READ --houtro=READ --fromfile --version:info --help:info
    """
)
# Not in the table: -R, which writes 00Tree.html files, and --info, which reads .info files in every folder.


def _tree(argv: Sequence[str]) -> Use:
    """Read a tree command.

    Options in a cluster take their values from the next words: in `-Lo 2 f`, f belongs to -o.
    """
    for word in argv[1:]:
        letters = "" if word.startswith("--") or word[:1] != "-" else word[1:]
        # Only the last letter of a cluster may take a value here. `-L2` is the only joined form.
        if _TREE_VALUES & set(letters[:-1]) and not re.fullmatch(r"L[0-9]+", letters):
            return gap(f"{word}: options with values in one word")
    use = read_command(_TREE, argv)
    has_paths = any(path.access is Access.READ for path in use.paths)
    return use if use.gap or has_paths or argv[1:] == ["--version"] else _search_current_folder(use, tree=False)


def _ctags_writes(parsed: Parsed, use: Use) -> Use:
    """Refine ctags. Without -f it writes `tags`, or `TAGS` with -e."""
    if any(value.startswith("@") for value in parsed.values("--exclude")):
        return gap("a list of patterns in a file")
    if parsed.has("-f"):
        return use
    name = "TAGS" if parsed.has("-e") else "tags"
    default_paths = () if parsed.operands else (PathUse(word=".", access=Access.READ, tree=True),)
    written = PathUse(word=name, access=Access.WRITE)
    return replace(use, act=stricter(use.act, Act.WRITES), paths=(*use.paths, *default_paths, written))


_CTAGS = Program(
    # A .ctags or .ctags.d in the current folder may contain options, such as the name of the output file.
    act=Act.CHANGES,
    options="""
        -R|--recurse[=TEXT]:tree -f|-o=WRITE -e -a|--append[=TEXT] --languages=TEXT --exclude=TEXT --fields=TEXT
        --extras=TEXT --extra=TEXT -n -u --sort=TEXT --tag-relative=TEXT -x --version:info --help:info
    """,
    refine=_ctags_writes,
)

_WHICH = Program(options="-a|--all -s --skip-alias --skip-functions --version:info --help:info", operands="TEXT...")


PROGRAMS: Mapping[str, Program] = {
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": _RG,
    "ag": _AG,
    "fd": _FD,
    "fdfind": _FD,
    "tree": Program(read=_tree),
    "which": _WHICH,
    "whereis": Program(options="-b -m -s -u -l -V|--version:info -h|--help:info", operands="TEXT..."),
    "ctags": _CTAGS,
}
