"""GNU coreutils for files and facts about the machine: ls, cat, cp, rm, chmod. Those for text are in text_tools.py.

A model does not look at the disk, so it cannot tell whether the target of a copy, move or link is a folder. It names
both paths that may be written: the target, and the file in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.actions import Access, Act
from harness.programs.losses import always, moves_from_nothing
from harness.programs.options import read_command, stricter
from harness.programs.program import (
    READER,
    READER_OF_INPUT,
    TEMPORARY_FOLDER,
    Found,
    LooseWords,
    Parsed,
    PathUse,
    Program,
    Style,
    Unknown,
    Use,
    gap,
    joined,
)
from harness.record import replace

_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
_INFO = "--help:info --version:info "
_FILES = Program(operands="READ...")
_TREES = Program(operands="TREE...")


def _read_current_folder(parsed: Parsed, use: Use) -> Use:
    """Add the current folder as the path to read if there are no operands."""
    return use if parsed.operands else replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ)))


def _deep(parsed: Parsed, use: Use) -> Use:
    """Refine -r. A written path then includes everything below it."""
    if not parsed.has("-r", "-R"):
        return use
    return replace(use, paths=tuple(path if path.access is Access.READ else _tree(path) for path in use.paths))


def _touched(parsed: Parsed, use: Use) -> Use:
    """Refine a change of times. With `-h` it affects a link itself, not its target."""
    if not parsed.has("-h"):
        return use
    return replace(use, paths=tuple(replace(path, entry=path.access is not Access.READ) for path in use.paths))


def _removed(parsed: Parsed, use: Use) -> Use:
    """Refine a removal. It affects the directory entry, not the target of a link."""
    return _deep(parsed, replace(use, paths=tuple(replace(path, entry=True) for path in use.paths)))


_LONGEST_NAME = 60
"""Maximum number of characters of a name that is shown."""


def _removes_many(words: LooseWords) -> Iterator[str]:
    operands = words.operands
    if words.has("-r"):
        alone = len(operands) == 1 and len(operands[0]) <= _LONGEST_NAME
        target = f"{operands[0]} with all that is in it" if alone else "folders with all that is in them"
        yield f"rm -r deletes {target}"
    if len(operands) > 1 or any(set("*?[") & set(word) for word in operands):
        yield "rm deletes several files"


def _shred(parsed: Parsed, use: Use) -> Use:
    return _removed(parsed, use) if parsed.has("-u", "--remove") else use


def _tree(path: PathUse) -> PathUse:
    return replace(path, tree=True)


def _copy(parsed: Parsed, use: Use) -> Use:
    deep = parsed.has("-r", "-a")
    # -l and -s create a link instead of a copy. The source can be written through a link.
    access = Access.EITHER if parsed.has("-l", "-s") else Access.READ
    replaces = parsed.has("-a", "-d", "-f", "-l", "-P", "-s", "--remove-destination")
    copied = _placed(parsed, use, source=access, deep=deep, entry=replaces)
    if not deep or not parsed.has("-L"):
        return copied
    return replace(copied, paths=tuple(replace(path, follows=path.tree) for path in copied.paths))


def _move(parsed: Parsed, use: Use) -> Use:
    return _placed(parsed, use, source=Access.EITHER, deep=True, entry=True)


def _install(parsed: Parsed, use: Use) -> Use:
    if parsed.has("-d"):
        return _added(use, _used(parsed.operands, Access.WRITE, deep=False))
    return _placed(parsed, use, source=Access.READ, deep=False, entry=True)


def _placed(parsed: Parsed, use: Use, *, source: Access, deep: bool, entry: bool) -> Use:
    """Read the operands of cp, mv and install: `SOURCE... TARGET`, or `-t FOLDER SOURCE...`.

    `entry` means that an existing target is replaced, rather than its content overwritten.
    """
    sources, target = _sources_and_target(parsed)
    if not sources or not target:
        return gap(f"{parsed.program} with one operand")
    return _added(use, _used(sources, source, deep=deep), _written(parsed, sources, target, deep=deep, entry=entry))


def _link(parsed: Parsed, use: Use) -> Use:
    """Read `ln`. The source of a symbolic link is relative to the folder of the link."""
    sources, target = _sources_and_target(parsed)
    links = _written(parsed, sources or parsed.operands, target or "./", deep=False, entry=True)
    sources = sources or parsed.operands
    if not sources:
        return gap("ln without an operand")
    if not parsed.has("-s"):
        return _added(use, _used(sources, Access.EITHER, deep=False), links)
    source_uses = _used(sources, Access.READ, deep=False)
    if isinstance(source_uses, str) or isinstance(links, str):
        return gap(source_uses if isinstance(source_uses, str) else str(links))
    from_links = [
        PathUse(word=f"{folder.rstrip('/')}/{path.word}", access=Access.READ, tree=path.tree)
        for folder in dict.fromkeys(_folder_of(link.word) for link in links)
        for path in source_uses
        if folder and not path.word.startswith("/")
    ]
    return _added(use, source_uses, from_links, links)


def _folder_of(word: str) -> str:
    folder = word.rstrip("/").rpartition("/")[0]
    return folder or ("/" if word.startswith("/") else "")


def _sources_and_target(parsed: Parsed) -> tuple[tuple[str, ...], str]:
    """Return the sources and the target of a copy, both empty without a target.

    A slash is appended to a target that must be a folder.
    """
    folders = parsed.values("-t")
    if folders:
        folder = folders[-1]
        return parsed.operands, folder if isinstance(folder, Unknown | Found) else f"{folder}/"
    if len(parsed.operands) < 2:
        return (), ""
    *sources, target = parsed.operands
    many = len(sources) > 1 and not isinstance(target, Unknown | Found)
    return tuple(sources), f"{target}/" if many else target


def _written(
    parsed: Parsed, sources: Sequence[str], target: str, *, deep: bool, entry: bool
) -> Sequence[PathUse] | str:
    """Return every path that `sources` may be written to, or the reason why the paths are unknown."""
    if isinstance(target, Unknown | Found):
        return f"the target {target} is not known"
    target_use = PathUse(word=target, access=Access.WRITE, tree=deep, entry=entry)
    if parsed.has("-T"):
        return [target_use]
    last = target.rstrip("/").rpartition("/")[2]
    is_folder = target.endswith("/") or last in (".", "..")
    written = [] if is_folder else [target_use]
    folder = target.rstrip("/") or "/"
    for source in sources:
        if isinstance(source, Found):
            written.append(PathUse(word=folder, access=Access.WRITE, tree=True))
            continue
        name = source.rstrip("/").rpartition("/")[2]
        if name in ("", ".", ".."):  # copies the content of the source into the target itself
            written.append(replace(target_use, word=folder))
        else:
            written.append(replace(target_use, word=f"{folder.rstrip('/')}/{name}"))
    return written


def _used(words: Sequence[str], access: Access, *, deep: bool) -> Sequence[PathUse] | str:
    """Return the operands as paths, or the reason why one of them is unknown."""
    use = read_command(_TREES if deep else _FILES, ("", "--", *words))
    return use.gap or [path if access is Access.READ else replace(path, access=access) for path in use.paths]


def _added(use: Use, *additions: Sequence[PathUse] | str) -> Use:
    """Return `use` with the paths added, or a gap if one of the additions is a reason."""
    paths = list(use.paths)
    for addition in additions:
        if isinstance(addition, str):
            return gap(addition)
        paths += addition
    return replace(use, act=stricter(use.act, Act.WRITES), paths=tuple(paths))


def _parents(parsed: Parsed, use: Use) -> Use:
    """Refine `rmdir -p`. It also removes the parent folders that the path names."""
    if not parsed.has("-p"):
        return use
    above = [
        PathUse(word=path.word.rstrip("/")[:place], access=Access.WRITE)
        for path in use.paths
        for place in range(1, len(path.word.rstrip("/")))
        if path.word[place] == "/"
    ]
    return replace(use, paths=(*use.paths, *above))


def _date(parsed: Parsed, use: Use) -> Use:
    """Refine `date`. An operand other than +FORMAT sets the clock."""
    sets = any(isinstance(word, Unknown) or not word.startswith("+") for word in parsed.operands)
    return replace(use, act=Act.CHANGES) if sets else use


def _hostname(parsed: Parsed, use: Use) -> Use:
    return replace(use, act=Act.CHANGES) if parsed.operands else use


def _mktemp(parsed: Parsed, use: Use) -> Use:
    """Add the file or folder that mktemp creates: TEMPLATE in the current folder or in the private temporary folder."""
    if parsed.has("-u"):
        return use
    words = (*parsed.operands, *parsed.values("-p", "--tmpdir", "--suffix"))
    if any(isinstance(word, Unknown | Found) for word in words):
        return gap("the place of mktemp is not known")
    template = "".join((*(parsed.operands or ("tmp.XXXXXXXXXX",)), *parsed.values("--suffix")[-1:]))
    # A subfolder of the private folder may be a link that an earlier command made. So a template with a slash is not
    # treated as private.
    private = TEMPORARY_FOLDER if "/" not in template else "/tmp"  # noqa: S108 - a name, for people
    chosen_folders = [option.value or private for option in parsed.options if option.name in ("-p", "--tmpdir")]
    folders = chosen_folders[-1:] or [private if parsed.has("-t") or not parsed.operands else "."]
    if parsed.has("-t"):  # mktemp then prefers $TMPDIR to the folder of -p
        folders.append(private)
    paths = [PathUse(word=joined(folder, template), access=Access.WRITE) for folder in dict.fromkeys(folders)]
    return replace(use, act=Act.WRITES, paths=tuple(paths))


_DD = Program(
    options="--if=READ --of=WRITE --bs=TEXT --ibs=TEXT --obs=TEXT --cbs=TEXT --count=TEXT --skip=TEXT --seek=TEXT "
    "--iseek=TEXT --oseek=TEXT --conv=TEXT --status=TEXT --iflag=TEXT --oflag=TEXT",
    operands="",
)


def _tee(parsed: Parsed, use: Use) -> Use:
    """Refine `tee`. It is `LOOKS` if it writes only to /dev/null, stdout or stderr."""
    return use if set(parsed.operands) - _NO_FILES else replace(use, act=Act.LOOKS, paths=())


def _dd(argv: Sequence[str]) -> Use:
    """Read the operands of dd (`KEY=VALUE`) as if they were long options."""
    words: list[str] = [argv[0]]
    for word in argv[1:]:
        if isinstance(word, Unknown):
            words.append(Unknown(f"--{word}", prefix=f"--{word.prefix}", single=word.single))
        elif isinstance(word, Found) or "=" not in word:
            return gap(f"the operand {word} of dd is not in its model")
        else:
            words.append(f"--{word}")
    use = read_command(_DD, words)
    return gap(use.gap.replace("option --", "operand ")) if use.gap else use


_FACT = Program(style=Style.TEXT, operands="TEXT...")
"""A program that prints a fact or computes. All its words are plain text, never paths."""

_COPIES = (
    "-f|--force -i|--interactive -n|--no-clobber -u --update[=TEXT] -v|--verbose -t|--target-directory=TEXT "
    "-T|--no-target-directory --strip-trailing-slashes -Z --debug "
)
# Backups (-b, -S) are left out on purpose, for all programs that copy: they write further files.
_LS = Program(
    facts=READER_OF_INPUT,
    options=_INFO + "-a|--all -A|--almost-all --author -b|--escape --block-size=TEXT -B|--ignore-backups -c -C --color[=TEXT] "
    "-d|--directory -D|--dired -f -F --classify[=TEXT] --file-type --format=TEXT --full-time -g --group-directories-first "
    "-G|--no-group -h|--human-readable --si -H|--dereference-command-line --dereference-command-line-symlink-to-dir "
    "--hide=TEXT --hyperlink[=TEXT] --indicator-style=TEXT -i|--inode -I|--ignore=TEXT -k|--kibibytes -l -L|--dereference:gap "
    "-m -n|--numeric-uid-gid -N|--literal -o -p -q|--hide-control-chars --show-control-chars -Q|--quote-name "
    "--quoting-style=TEXT -r|--reverse -R|--recursive -s|--size -S --sort=TEXT --time=TEXT --time-style=TEXT -t "
    "-T|--tabsize=TEXT -u -U -v -w|--width=TEXT -x -X -Z|--context --zero -1",
    refine=_read_current_folder,
)  # fmt: skip
_CHOWN = Program(
    options=_INFO + "-c|--changes -f|--silent|--quiet -v|--verbose --dereference -h|--no-dereference --from=TEXT "
    "--preserve-root --reference=READ:instead -R|--recursive -H -L -P",
    operands="(TEXT) WRITE...",
    refine=_deep,
)  # fmt: skip

PROGRAMS = {
    "ls": _LS,
    "dir": _LS,
    "vdir": _LS,
    "cat": Program(
        facts=READER_OF_INPUT,
        options=_INFO
        + "-A|--show-all -b|--number-nonblank -e -E|--show-ends -n|--number -s|--squeeze-blank -t -T|--show-tabs "
        "-u -v|--show-nonprinting",
    ),
    "cp": Program(
        act=Act.WRITES,
        options=_INFO + _COPIES + "-a|--archive --attributes-only --copy-contents -d -H -l|--link -L|--dereference "
        "-P|--no-dereference -p --preserve[=TEXT] --no-preserve=TEXT -r|-R|--recursive --reflink[=TEXT] "
        "--remove-destination --sparse=TEXT -s|--symbolic-link -x|--one-file-system --context[=TEXT]",
        operands="TEXT...",
        refine=_copy,
        loses=moves_from_nothing,
    ),
    "mv": Program(
        act=Act.WRITES,
        options=_INFO + _COPIES + "--context --no-copy",
        operands="TEXT...",
        refine=_move,
        loses=moves_from_nothing,
    ),
    "install": Program(
        act=Act.WRITES,
        options=_INFO + "-c -C|--compare -d|--directory -D -g|--group=TEXT -m|--mode=TEXT -o|--owner=TEXT "
        "-p|--preserve-timestamps -t|--target-directory=TEXT -T|--no-target-directory -v|--verbose --preserve-context -Z "
        "--context[=TEXT] -s|--strip:gap --strip-program=CODE",
        operands="TEXT...",
        refine=_install,
        loses=moves_from_nothing,
    ),
    "ln": Program(
        act=Act.WRITES,
        options=_INFO + "-f|--force -i|--interactive -L|--logical -n|--no-dereference -P|--physical -r|--relative "
        "-s|--symbolic -t|--target-directory=TEXT -T|--no-target-directory -v|--verbose",
        operands="TEXT...",
        refine=_link,
    ),
    "rm": Program(
        act=Act.WRITES,
        options=_INFO
        + "-f|--force -i -I --interactive[=TEXT] --one-file-system --preserve-root[=TEXT] -r|-R|--recursive "
        "-d|--dir -v|--verbose",
        operands="WRITE...",
        refine=_removed,
        loses=_removes_many,
    ),
    "unlink": Program(options=_INFO, operands="WRITE", refine=_removed),
    "link": Program(options=_INFO, operands="EITHER WRITE"),
    "rmdir": Program(
        options=_INFO + "--ignore-fail-on-non-empty -p|--parents -v|--verbose", operands="WRITE...", refine=_parents
    ),
    "mkdir": Program(
        options=_INFO + "-m|--mode=TEXT -p|--parents -v|--verbose -Z --context[=TEXT]", operands="WRITE..."
    ),
    "touch": Program(
        options=_INFO
        + "-a -c|--no-create -d|--date=TEXT -f -h|--no-dereference -m -r|--reference=READ -t=TEXT --time=TEXT",
        operands="WRITE...",
        refine=_touched,
    ),
    "chmod": Program(
        # A mode may begin with a dash: `chmod -x a`.
        options=_INFO
        + "-c|--changes -f|--silent|--quiet -v|--verbose --preserve-root --reference=READ:instead -R|--recursive "
        "-r[=TEXT]:instead -w[=TEXT]:instead -x[=TEXT]:instead -X[=TEXT]:instead",
        operands="(TEXT) WRITE...",
        refine=_deep,
    ),
    "chown": _CHOWN,
    "chgrp": _CHOWN,
    "stat": Program(
        facts=READER_OF_INPUT,
        options=_INFO + "-L|--dereference -f|--file-system --cached=TEXT -c|--format=TEXT --printf=TEXT -t|--terse",
    ),
    "du": Program(
        facts=READER_OF_INPUT,
        options=_INFO
        + "-0|--null -a|--all --apparent-size -B|--block-size=TEXT -b|--bytes -c|--total -D|--dereference-args "
        "-d|--max-depth=TEXT -H -h|--human-readable --inodes -k -L|--dereference:gap -l|--count-links -m -P|--no-dereference "
        "-S|--separate-dirs --si -s|--summarize -t|--threshold=TEXT --time[=TEXT] --time-style=TEXT -X|--exclude-from=READ "
        "--exclude=TEXT -x|--one-file-system",
        refine=_read_current_folder,
    ),
    "df": Program(
        facts="few-variables",
        options=_INFO + "-a|--all -B|--block-size=TEXT -h|--human-readable -H|--si -i|--inodes -k -l|--local --no-sync "
        "--output[=TEXT] -P|--portability --total -t|--type=TEXT -T|--print-type -x|--exclude-type=TEXT -v",
    ),
    "realpath": Program(
        facts=READER_OF_INPUT,
        options=_INFO + "-e|--canonicalize-existing -m|--canonicalize-missing -L|--logical -P|--physical -q|--quiet "
        "--relative-to=READ --relative-base=READ -s|--strip|--no-symlinks -z|--zero -E",
    ),
    "readlink": Program(
        facts=READER,
        options=_INFO
        + "-f|--canonicalize -e|--canonicalize-existing -m|--canonicalize-missing -n|--no-newline -q|--quiet "
        "-s|--silent -v|--verbose -z|--zero",
    ),
    "mktemp": Program(
        options=_INFO + "-d|--directory -u|--dry-run -q|--quiet --suffix=TEXT -p=TEXT --tmpdir[=TEXT] -t",
        operands="TEXT",
        refine=_mktemp,
    ),
    "dd": Program(read=_dd, loses=always("dd overwrites what it writes to, byte for byte")),
    "truncate": Program(
        options=_INFO + "-c|--no-create -o|--io-blocks -r|--reference=READ -s|--size=TEXT",
        operands="WRITE...",
        loses=always("truncate cuts files to a size"),
    ),
    "tee": Program(
        options=_INFO + "-a|--append -i|--ignore-interrupts -p --output-error[=TEXT]", operands="WRITE...", refine=_tee
    ),
    "sync": Program(options=_INFO + "-d|--data -f|--file-system"),
    "shred": Program(
        options=_INFO
        + "-f|--force -n|--iterations=TEXT --random-source=READ -s|--size=TEXT -u --remove[=TEXT] -v|--verbose "
        "-x|--exact -z|--zero",
        operands="WRITE...",
        refine=_shred,
        loses=always("shred overwrites files beyond recovery"),
    ),
    "mkfifo": Program(options=_INFO + "-m|--mode=TEXT", operands="WRITE..."),
    "mknod": Program(act=Act.CHANGES, options=_INFO + "-m|--mode=TEXT", operands="WRITE TEXT..."),
    "date": Program(
        facts="few-variables",
        options=_INFO + "-d|--date=TEXT --debug -f|--file=READ -I[=TEXT] --iso-8601[=TEXT] --resolution -R|--rfc-email "
        "--rfc-3339=TEXT -r|--reference=READ -s|--set=TEXT:changes -u|--utc|--universal",
        operands="TEXT...",
        refine=_date,
    ),
    "hostname": Program(
        # These options may query the name service over the network.
        options="--help:info --version:info -V:info -a|--alias:network -A|--all-fqdns:network -d|--domain:network "
        "-f|--fqdn|--long:network -i|--ip-address:network -y|--yp|--nis:network -I|--all-ip-addresses:network -s|--short",
        operands="TEXT",
        refine=_hostname,
    ),
    "uptime": Program(options="-p|--pretty -s|--since -h|--help:info -V|--version:info"),
    "who": Program(options=_INFO + "-a|--all -b|--boot -H|--heading -q|--count -u|--users -m -s|--short"),
    "users": Program(options=_INFO),
    **dict.fromkeys(("dirname", "basename"), replace(_FACT, facts=READER + " no-input")),
    **dict.fromkeys("uname whoami id nproc printenv sleep seq expr".split(), replace(_FACT, facts="few-variables")),
    **dict.fromkeys("groups logname hostid arch tty yes factor".split(), _FACT),
}
