"""Models of GNU coreutils that deal with files and facts of the machine; data, pure. Those on text are in text.py.

Everything that copies, moves or links names both places that it may write: the target, and the file in it where the
target is a folder, since a model does not look.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.actions import Access, Act
from harness.programs.model import Found, Parsed, PathUse, Program, Style, Unknown, Use, gap
from harness.programs.options import read_command, stricter
from harness.record import replace

_NO_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))
_INFO = "--help:info --version:info "
_FILES = Program(operands="READ...")
_TREES = Program(operands="TREE...")


def _here(parsed: Parsed, use: Use) -> Use:
    """Without an operand, the folder itself is looked at."""
    return use if parsed.operands else replace(use, paths=(*use.paths, PathUse(word=".", access=Access.READ)))


def _deep(parsed: Parsed, use: Use) -> Use:
    """With -r, what is written is written with everything below it."""
    if not parsed.has("-r", "-R"):
        return use
    return replace(use, paths=tuple(path if path.access is Access.READ else _tree(path) for path in use.paths))


def _removed(parsed: Parsed, use: Use) -> Use:
    """What is removed is the name."""
    return _deep(parsed, replace(use, paths=tuple(replace(path, entry=True) for path in use.paths)))


def _shred(parsed: Parsed, use: Use) -> Use:
    return _removed(parsed, use) if parsed.has("-u", "--remove") else use


def _tree(path: PathUse) -> PathUse:
    return replace(path, tree=True)


def _copy(parsed: Parsed, use: Use) -> Use:
    deep = parsed.has("-r", "-a")
    # A link made instead of a copy is a way to write the source.
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

    `entry` says that a target which is there is replaced, and not only what it holds.
    """
    sources, target = _sources_and_target(parsed)
    if not sources or not target:
        return gap(f"{parsed.program} with one operand")
    return _added(use, _used(sources, source, deep=deep), _written(parsed, sources, target, deep=deep, entry=entry))


def _link(parsed: Parsed, use: Use) -> Use:
    """Read `ln`: a symbolic link holds its source as text, which is looked up from the folder of the link."""
    sources, target = _sources_and_target(parsed)
    links = _written(parsed, sources or parsed.operands, target or "./", deep=False, entry=True)
    sources = sources or parsed.operands
    if not sources:
        return gap("ln without an operand")
    if not parsed.has("-s"):
        return _added(use, _used(sources, Access.EITHER, deep=False), links)
    named = _used(sources, Access.READ, deep=False)
    if isinstance(named, str) or isinstance(links, str):
        return gap(named if isinstance(named, str) else str(links))
    from_links = [
        PathUse(word=f"{folder.rstrip('/')}/{path.word}", access=Access.READ, tree=path.tree)
        for folder in dict.fromkeys(_folder_of(link.word) for link in links)
        for path in named
        if folder and not path.word.startswith("/")
    ]
    return _added(use, named, from_links, links)


def _folder_of(word: str) -> str:
    folder = word.rstrip("/").rpartition("/")[0]
    return folder or ("/" if word.startswith("/") else "")


def _sources_and_target(parsed: Parsed) -> tuple[tuple[str, ...], str]:
    """Return what is copied, and where to: a folder ends in a slash where it surely is one. Empty where there is none."""
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
    """Return every path that `sources` may be written to, or why that is not known."""
    if isinstance(target, Unknown | Found):
        return f"the target {target} is not known"
    whole = PathUse(word=target, access=Access.WRITE, tree=deep, entry=entry)
    if parsed.has("-T"):
        return [whole]
    last = target.rstrip("/").rpartition("/")[2]
    is_folder = target.endswith("/") or last in (".", "..")
    written = [] if is_folder else [whole]
    folder = target.rstrip("/") or "/"
    for source in sources:
        if isinstance(source, Found):
            written.append(PathUse(word=folder, access=Access.WRITE, tree=True))
            continue
        name = source.rstrip("/").rpartition("/")[2]
        if name in ("", ".", ".."):  # the content of the source goes into the target itself
            written.append(replace(whole, word=folder))
        else:
            written.append(replace(whole, word=f"{folder.rstrip('/')}/{name}"))
    return written


def _used(words: Sequence[str], access: Access, *, deep: bool) -> Sequence[PathUse] | str:
    """Return these operands as paths, or why one of them is not known."""
    use = read_command(_TREES if deep else _FILES, ("", "--", *words))
    return use.gap or [path if access is Access.READ else replace(path, access=access) for path in use.paths]


def _added(use: Use, *found: Sequence[PathUse] | str) -> Use:
    """Return `use` with these paths, or a gap where one of them is a reason."""
    paths = list(use.paths)
    for some in found:
        if isinstance(some, str):
            return gap(some)
        paths += some
    return replace(use, act=stricter(use.act, Act.WRITES), paths=tuple(paths))


def _parents(parsed: Parsed, use: Use) -> Use:
    """With -p, rmdir removes the folders above as well."""
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
    """An operand that is no +FORMAT sets the clock."""
    sets = any(isinstance(word, Unknown) or not word.startswith("+") for word in parsed.operands)
    return replace(use, act=Act.CHANGES) if sets else use


def _hostname(parsed: Parsed, use: Use) -> Use:
    return replace(use, act=Act.CHANGES) if parsed.operands else use


def _mktemp(parsed: Parsed, use: Use) -> Use:
    """Name what is made: TEMPLATE here, or in the folder for temporary files."""
    if parsed.has("-u"):
        return use
    if any(isinstance(word, Unknown | Found) for word in (*parsed.operands, *parsed.values("-p", "--tmpdir"))):
        return gap("the place of mktemp is not known")
    elsewhere = parsed.has("-p", "-t", "--tmpdir") or not parsed.operands
    folder = next(iter(parsed.values("-p", "--tmpdir")), "/tmp") if elsewhere else "."  # noqa: S108 - a name, for people
    template = parsed.operands[0] if parsed.operands else "tmp.XXXXXXXXXX"
    made = PathUse(word=f"{folder}/{template}", access=Access.WRITE)
    return replace(use, act=Act.WRITES, paths=(made,))


_DD = Program(
    options="--if=READ --of=WRITE --bs=TEXT --ibs=TEXT --obs=TEXT --cbs=TEXT --count=TEXT --skip=TEXT --seek=TEXT "
    "--iseek=TEXT --oseek=TEXT --conv=TEXT --status=TEXT --iflag=TEXT --oflag=TEXT",
    operands="",
)


def _tee(parsed: Parsed, use: Use) -> Use:
    """It only looks where it writes into nothing, or into its own outputs."""
    return use if set(parsed.operands) - _NO_FILES else replace(use, act=Act.LOOKS, paths=())


def _dd(argv: Sequence[str]) -> Use:
    """Read the operands of dd, KEY=VALUE each, as if they were long options."""
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


def _fact(*looks: str) -> Program:
    """Return the model of a program that prints a fact, or computes; no word of it can be a path or more than text."""
    return Program(style=Style.TEXT, operands="TEXT...", looks=looks)


_COPIES = (
    "-f|--force -i|--interactive -n|--no-clobber -u --update[=TEXT] -v|--verbose -t|--target-directory=TEXT "
    "-T|--no-target-directory --strip-trailing-slashes -Z --debug "
)
# Left out with intent, of all that copy: backups (-b, -S), which write further names.
_LS = Program(
    options=_INFO + "-a|--all -A|--almost-all --author -b|--escape --block-size=TEXT -B|--ignore-backups -c -C --color[=TEXT] "
    "-d|--directory -D|--dired -f -F --classify[=TEXT] --file-type --format=TEXT --full-time -g --group-directories-first "
    "-G|--no-group -h|--human-readable --si -H|--dereference-command-line --dereference-command-line-symlink-to-dir "
    "--hide=TEXT --hyperlink[=TEXT] --indicator-style=TEXT -i|--inode -I|--ignore=TEXT -k|--kibibytes -l -L|--dereference:gap "
    "-m -n|--numeric-uid-gid -N|--literal -o -p -q|--hide-control-chars --show-control-chars -Q|--quote-name "
    "--quoting-style=TEXT -r|--reverse -R|--recursive -s|--size -S --sort=TEXT --time=TEXT --time-style=TEXT -t "
    "-T|--tabsize=TEXT -u -U -v -w|--width=TEXT -x -X -Z|--context --zero -1",
    refine=_here,
    looks=("ls", "ls -la src", "ls -lah --color=never", "ls *.md", "ls -d */", "ls -1 -- -x", "ls --version", "ls -I '*.c'"),
    not_covered=("ls --colour", "ls --recurs", "ls --block-size", "ls --nope=/x"),
)  # fmt: skip
_CHOWN = Program(
    options=_INFO + "-c|--changes -f|--silent|--quiet -v|--verbose --dereference -h|--no-dereference --from=TEXT "
    "--preserve-root --reference=READ:instead -R|--recursive -H -L -P",
    operands="(TEXT) WRITE...",
    refine=_deep,
    covered=("chown me x", "chown -R me:us src", "chgrp us x", "chown --reference=a b"),
    not_covered=("chown --no-preserve-root -R me /", "chown --ref=a b"),
)  # fmt: skip

PROGRAMS = {
    "ls": _LS,
    "dir": _LS,
    "vdir": _LS,
    "cat": Program(
        options=_INFO + "-A|--show-all -b|--number-nonblank -e -E|--show-ends -n|--number -s|--squeeze-blank -t -T|--show-tabs "
        "-u -v|--show-nonprinting",
        looks=("cat", "cat a b", "cat -n src/x.py", "cat - a", "cat -vet a", "cat -- -x"),
        not_covered=("cat -w", "cat --num a"),
    ),
    "cp": Program(
        act=Act.WRITES,
        options=_INFO + _COPIES + "-a|--archive --attributes-only --copy-contents -d -H -l|--link -L|--dereference "
        "-P|--no-dereference -p --preserve[=TEXT] --no-preserve=TEXT -r|-R|--recursive --reflink[=TEXT] "
        "--remove-destination --sparse=TEXT -s|--symbolic-link -x|--one-file-system --context[=TEXT]",
        operands="TEXT...",
        refine=_copy,
        covered=("cp a b", "cp -r src dst", "cp -t dst a b", "cp -a a/. b", "cp a b dst/", "cp -rT a b", "cp -l a b"),
        not_covered=("cp a", "cp -b a b", "cp -S .py a b", "cp --parents a/b c", "cp --target=x a"),
    ),
    "mv": Program(
        act=Act.WRITES,
        options=_INFO + _COPIES + "--context --no-copy",
        operands="TEXT...",
        refine=_move,
        covered=("mv a b", "mv -t dst a b", "mv -v a b dst", "mv -n a/ b/", "mv -T a b"),
        not_covered=("mv a", "mv -b a b", "mv --suffix=x a b", "mv --exchange a b"),
    ),
    "install": Program(
        act=Act.WRITES,
        options=_INFO + "-c -C|--compare -d|--directory -D -g|--group=TEXT -m|--mode=TEXT -o|--owner=TEXT "
        "-p|--preserve-timestamps -t|--target-directory=TEXT -T|--no-target-directory -v|--verbose --preserve-context -Z "
        "--context[=TEXT] -s|--strip:gap --strip-program=CODE",
        operands="TEXT...",
        refine=_install,
        covered=("install -m 755 a b", "install -d a/b c", "install -Dm644 a b/c", "install -t bin a"),
        not_covered=("install -s a b", "install -s --strip-program=./x a b", "install -b a b", "install a"),
    ),
    "ln": Program(
        act=Act.WRITES,
        options=_INFO + "-f|--force -i|--interactive -L|--logical -n|--no-dereference -P|--physical -r|--relative "
        "-s|--symbolic -t|--target-directory=TEXT -T|--no-target-directory -v|--verbose",
        operands="TEXT...",
        refine=_link,
        covered=("ln -s a b", "ln -sf ../a dir/b", "ln a b", "ln -s /etc/passwd", "ln -snf a b", "ln -s -t dir a b"),
        not_covered=("ln", "ln -b a b", "ln -F a b"),
    ),
    "rm": Program(
        act=Act.WRITES,
        options=_INFO + "-f|--force -i -I --interactive[=TEXT] --one-file-system --preserve-root[=TEXT] -r|-R|--recursive "
        "-d|--dir -v|--verbose",
        operands="WRITE...",
        refine=_removed,
        covered=("rm a", "rm -rf build", "rm -- -x", "rm -fv a b", "rm src/a -r"),
        not_covered=("rm -rf --no-preserve-root /", "rm --recur a"),
    ),
    "unlink": Program(
        options=_INFO,
        operands="WRITE",
        refine=_removed,
        covered=("unlink a",),
        not_covered=("unlink a b", "unlink -f a"),
    ),
    "link": Program(options=_INFO, operands="EITHER WRITE", covered=("link a b",), not_covered=("link a b c",)),
    "rmdir": Program(
        options=_INFO + "--ignore-fail-on-non-empty -p|--parents -v|--verbose",
        operands="WRITE...",
        refine=_parents,
        covered=("rmdir a", "rmdir -p a/b/c"),
        not_covered=("rmdir --par a",),
    ),
    "mkdir": Program(
        options=_INFO + "-m|--mode=TEXT -p|--parents -v|--verbose -Z --context[=TEXT]",
        operands="WRITE...",
        covered=("mkdir a", "mkdir -p a/b c", "mkdir -m 700 a"),
        not_covered=("mkdir --mod=7 a",),
    ),
    "touch": Program(
        options=_INFO + "-a -c|--no-create -d|--date=TEXT -f -h|--no-dereference -m -r|--reference=READ -t=TEXT --time=TEXT",
        operands="WRITE...",
        covered=("touch a", "touch -d yesterday a b", "touch -r a b"),
        not_covered=("touch --ref=a b",),
    ),
    "chmod": Program(
        # A mode may begin with a dash: `chmod -x a`.
        options=_INFO + "-c|--changes -f|--silent|--quiet -v|--verbose --preserve-root --reference=READ:instead -R|--recursive "
        "-r[=TEXT]:instead -w[=TEXT]:instead -x[=TEXT]:instead -X[=TEXT]:instead",
        operands="(TEXT) WRITE...",
        refine=_deep,
        covered=("chmod +x a", "chmod -x a", "chmod -R u+w src", "chmod 644 a b", "chmod -rwx a", "chmod --reference=a b"),
        not_covered=("chmod --no-preserve-root -R 0 /", "chmod -s a"),
    ),
    "chown": _CHOWN,
    "chgrp": _CHOWN,
    "stat": Program(
        options=_INFO + "-L|--dereference -f|--file-system --cached=TEXT -c|--format=TEXT --printf=TEXT -t|--terse",
        looks=("stat a", "stat -c '%s %n' a b", "stat --printf='%y\\n' a"),
        not_covered=("stat --form=x a", "stat -x a"),
    ),
    "du": Program(
        options=_INFO + "-0|--null -a|--all --apparent-size -B|--block-size=TEXT -b|--bytes -c|--total -D|--dereference-args "
        "-d|--max-depth=TEXT -H -h|--human-readable --inodes -k -L|--dereference:gap -l|--count-links -m -P|--no-dereference "
        "-S|--separate-dirs --si -s|--summarize -t|--threshold=TEXT --time[=TEXT] --time-style=TEXT -X|--exclude-from=READ "
        "--exclude=TEXT -x|--one-file-system",
        refine=_here,
        looks=("du -sh .", "du -sh", "du -h -d1 src", "du -ah --max-depth=2"),
        not_covered=("du --files0-from=x", "du --files0-fr=x"),
    ),
    "df": Program(
        options=_INFO + "-a|--all -B|--block-size=TEXT -h|--human-readable -H|--si -i|--inodes -k -l|--local --no-sync "
        "--output[=TEXT] -P|--portability --total -t|--type=TEXT -T|--print-type -x|--exclude-type=TEXT -v",
        looks=("df -h", "df -hT .", "df"),
        not_covered=("df --tot",),
    ),
    "dirname": _fact("dirname a/b", "dirname -- $x"),
    "basename": _fact("basename a/b.py .py", "basename -a a/b c/d"),
    "realpath": Program(
        options=_INFO + "-e|--canonicalize-existing -m|--canonicalize-missing -L|--logical -P|--physical -q|--quiet "
        "--relative-to=READ --relative-base=READ -s|--strip|--no-symlinks -z|--zero -E",
        looks=("realpath .", "realpath --relative-to=src src/a"),
        not_covered=("realpath --relative-t=a b",),
    ),
    "readlink": Program(
        options=_INFO + "-f|--canonicalize -e|--canonicalize-existing -m|--canonicalize-missing -n|--no-newline -q|--quiet "
        "-s|--silent -v|--verbose -z|--zero",
        looks=("readlink -f a", "readlink a"),
        not_covered=("readlink -x a",),
    ),
    "mktemp": Program(
        options=_INFO + "-d|--directory -u|--dry-run -q|--quiet --suffix=TEXT -p=TEXT --tmpdir[=TEXT] -t",
        operands="TEXT",
        refine=_mktemp,
        looks=("mktemp -u",),
        covered=("mktemp", "mktemp -d", "mktemp -p . x.XXXX", "mktemp x.XXXX"),
        not_covered=("mktemp --suff=x",),
    ),
    "dd": Program(
        read=_dd,
        looks=("dd", "dd if=a bs=1 count=10 status=none", 'dd if=a "skip=$n"'),
        covered=("dd if=a of=b", "dd of=x conv=notrunc oflag=append"),
        not_covered=("dd if=a b", "dd off=a", "dd -- if=a", "dd --of=a"),
    ),
    "truncate": Program(
        options=_INFO + "-c|--no-create -o|--io-blocks -r|--reference=READ -s|--size=TEXT",
        operands="WRITE...",
        covered=("truncate -s 0 a", "truncate -r a b"),
        not_covered=("truncate --siz=0 a",),
    ),
    "tee": Program(
        options=_INFO + "-a|--append -i|--ignore-interrupts -p --output-error[=TEXT]",
        operands="WRITE...",
        refine=_tee,
        looks=("tee", "tee /dev/null", "tee -a /dev/stderr"),
        covered=("tee a", "tee -a a b", "tee -", "tee a -a"),
        not_covered=("tee --app a",),
    ),
    "sync": Program(options=_INFO + "-d|--data -f|--file-system", looks=("sync", "sync a"), not_covered=("sync --dat a",)),
    "shred": Program(
        options=_INFO + "-f|--force -n|--iterations=TEXT --random-source=READ -s|--size=TEXT -u --remove[=TEXT] -v|--verbose "
        "-x|--exact -z|--zero",
        operands="WRITE...",
        refine=_shred,
        covered=("shred a", "shred -uz a b"),
        not_covered=("shred --rem a",),
    ),
    "mkfifo": Program(
        options=_INFO + "-m|--mode=TEXT", operands="WRITE...", covered=("mkfifo a",), not_covered=("mkfifo --mod=7 a",)
    ),
    "mknod": Program(
        act=Act.CHANGES, options=_INFO + "-m|--mode=TEXT", operands="WRITE TEXT...", covered=("mknod a p", "mknod a b 8 0")
    ),
    "date": Program(
        options=_INFO + "-d|--date=TEXT --debug -f|--file=READ -I[=TEXT] --iso-8601[=TEXT] --resolution -R|--rfc-email "
        "--rfc-3339=TEXT -r|--reference=READ -s|--set=TEXT:changes -u|--utc|--universal",
        operands="TEXT...",
        refine=_date,
        looks=("date", "date +%F", "date -u -d '2 days ago' '+%Y %m'", "date -Iseconds", "date -r a +%s", 'date -d "@$x"'),
        covered=("date -s 12:00", "date --set=x", "date 01020304", "date -u 0102030405", "date -- 01020304"),
        not_covered=("date --se=x", "date -us", "date -j"),
    ),
    "hostname": Program(
        # What the name service says may have to be asked for.
        options="--help:info --version:info -V:info -a|--alias:network -A|--all-fqdns:network -d|--domain:network "
        "-f|--fqdn|--long:network -i|--ip-address:network -y|--yp|--nis:network -I|--all-ip-addresses -s|--short",
        operands="TEXT",
        refine=_hostname,
        looks=("hostname", "hostname -s", "hostname -I"),
        covered=("hostname -f", "hostname x"),
        not_covered=("hostname -F x", "hostname --file=x", "hostname -b", "hostname --shor"),
    ),
    "uptime": Program(options="-p|--pretty -s|--since -h|--help:info -V|--version:info", looks=("uptime", "uptime -p")),
    "who": Program(
        options=_INFO + "-a|--all -b|--boot -H|--heading -q|--count -u|--users -m -s|--short", looks=("who", "who -b")
    ),
    "users": Program(options=_INFO, looks=("users",), not_covered=("users -x",)),
    "uname": _fact("uname -a", "uname -sr"),
    "whoami": _fact("whoami"),
    "id": _fact("id", "id -un", "id -u me"),
    "groups": _fact("groups"),
    "logname": _fact("logname"),
    "hostid": _fact("hostid"),
    "arch": _fact("arch"),
    "nproc": _fact("nproc", "nproc --all"),
    "tty": _fact("tty"),
    "printenv": _fact("printenv", "printenv PATH"),
    "sleep": _fact("sleep 1", "sleep 0.5s", "sleep $x"),
    "yes": _fact("yes", "yes n"),
    "seq": _fact("seq 10", "seq -w 1 2 9", "seq -s, -5 5", "seq 1 $n"),
    "expr": _fact("expr 1 + 2", "expr length abc", "expr -1 '*' 2"),
    "factor": _fact("factor 12"),
}  # fmt: skip
