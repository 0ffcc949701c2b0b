"""Programs that pack and unpack: zip, ar, 7z, cpio, tar, and compressors of single files, most of them in place.

Many parse options in their own ways. The model of tar(1) is GNU tar 1.34: its -C applies to the words after it, and
its first word may be options without a dash. Options that bsdtar reads differently (-H -I -L -V -s) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.losses import with_option
from harness.programs.options import Entry, option_table, stricter
from harness.programs.program import Found, OperandRole, Parsed, PathUse, Program, Refine, Unknown, Use, gap, joined
from harness.programs.runners import name_of
from harness.programs.shared import CommandPaths, NotCoveredError, or_gap
from harness.record import replace
from harness.regex import regex

# --- zip, ar, 7z, cpio

_PATTERN = regex(r"[*?\[\]]")


# zip(1) 3.0 has options of two letters, and clusters of options of one letter. Accept only letters that cannot form an
# option of two letters.
_ZIP_LETTERS = regex(r"-[rqjyXDvu0-9]+|-[mo]|-FS")


@or_gap
def _zip(argv: Sequence[str]) -> Use:
    if list(argv[1:]) in (["-v"], ["-h"], ["-h2"], ["--version"], ["--help"]):
        return Use(act=Act.LOOKS)
    paths = CommandPaths()
    options, operands, out = _zip_words(argv)
    if not operands:
        raise NotCoveredError("zip as a filter")
    archive, *files = operands
    if archive == "-":
        raise NotCoveredError("an archive to the output, with what links lead to")
    paths.add_with([".zip"], archive, Access.EITHER)
    if out is not None:
        paths.add_with([".zip"], out, Access.WRITE)
    removes, tree = "-m" in options, any("r" in option for option in options)
    for file in () if "-d" in options else files:
        if not isinstance(file, Found) and _PATTERN.search(file):
            raise NotCoveredError(f"{file} is a pattern that zip expands by itself")
        paths.add(file, Access.EITHER if removes else Access.READ, tree=tree)
    return paths.use()


def _zip_words(argv: Sequence[str]) -> tuple[list[str], list[str], str | None]:
    options: list[str] = []
    operands: list[str] = []
    out: str | None = None
    patterns = False
    words = iter(argv[1:])
    for word in words:
        if isinstance(word, Unknown) and (not word.single or word.prefix[:1] in ("", "-", "@")):
            raise NotCoveredError(f"{word} may be an option")
        if isinstance(word, Found) or word[:1] not in ("-", "@") or word == "-":
            if not patterns:
                operands.append(word)
            continue
        was_patterns, patterns = patterns, word in ("-x", "-i", "--exclude", "--include")
        if word in ("-O", "--out"):
            out = next(words, None)
            if out is None or isinstance(out, Unknown | Found):
                raise NotCoveredError("the value of -O is unknown")
        elif word == "-d" or _ZIP_LETTERS.fullmatch(word):
            options.append(word)
        elif not patterns and not (was_patterns and word == "@"):
            raise NotCoveredError(f"the option {word} is not in the model of zip")
    return options, operands, out


_ZIPINFO = regex(r"-[12smlvhtzT]*")
_UNZIP = regex(r"-[lptvzcqCaonjufL]+")


@or_gap
def _unzip(argv: Sequence[str]) -> Use:
    """Read a command of unzip(1) 6.0: options, the archive, members. -d and -x may follow the archive.

    With -Z as the first option, it is zipinfo(1).
    """
    if list(argv[1:]) in (["-v"], ["-h"], ["-hh"], ["--help"]):
        return Use(act=Act.LOOKS)
    zipinfo = name_of(argv[0]) == "zipinfo"
    letters, folder, archive = "", "", ""
    words = list(argv[1:])
    while words:
        word = words.pop(0)
        if isinstance(word, Unknown) and (not word.single or not archive or word.prefix[:1] in ("", "-")):
            raise NotCoveredError(f"{word} may be an option")
        if isinstance(word, Found) or word[:1] != "-":
            archive = archive or word
        elif word.startswith("-d") and not zipinfo and not folder:
            folder = word[2:] or (words.pop(0) if words else "")
            if not folder or isinstance(folder, Unknown | Found):
                raise NotCoveredError("the value of -d is unknown")
        elif archive and word == "-x":
            continue
        elif not archive and not letters and word.startswith("-Z") and _ZIPINFO.fullmatch("-" + word[2:]):
            zipinfo = True
        elif not archive and (_ZIPINFO if zipinfo else _UNZIP).fullmatch(word):
            letters += word[1:]
        else:
            raise NotCoveredError(f"the option {word} is not in the model of unzip")
    return _unzip_use(archive, folder, letters, zipinfo=zipinfo)


def _unzip_use(archive: str, folder: str, letters: str, *, zipinfo: bool) -> Use:
    if not archive or (not isinstance(archive, Found) and _PATTERN.search(archive)):
        raise NotCoveredError("an archive that is a pattern, or none")
    looks = [letter for letter in letters if letter in "lptvzc"]
    if not zipinfo and looks and (len(looks) > 1 or not set(letters).isdisjoint("onjufL")):
        raise NotCoveredError(f"-{letters}: options that contradict each other")
    paths = CommandPaths()
    paths.add_with([".zip", ".ZIP"], archive, Access.READ)
    if not zipinfo and not looks:
        paths.add(folder or ".", Access.WRITE, tree=True)
    return paths.use()


_AR_VALUES = frozenset("abiNlM")


@or_gap
def _ar(argv: Sequence[str]) -> Use:
    """Read a command of ar. It reads options from the file of a word `@FILE`, and members of thin archives from any
    path.
    """
    if list(argv[1:]) in (["--version"], ["--help"], ["-V"]):
        return Use(act=Act.LOOKS)
    words = argv[1:]
    if len(words) < 2 or any(isinstance(word, Unknown) or word.startswith("@") for word in words):
        raise NotCoveredError("words that ar may take for options")
    letters, archive, *members = words
    letters = letters.removeprefix("-")
    if any(word.startswith("-") for word in words[1:]):
        raise NotCoveredError("options behind the letters")
    if isinstance(words[0], Found) or not letters.isalpha() or not _AR_VALUES.isdisjoint(letters):
        raise NotCoveredError("letters that are not in the model of ar")
    paths = CommandPaths()
    modes = set(letters) & set("dmpqrstx")
    if letters.strip("vO") == "t":
        paths.add(archive, Access.READ)
    elif modes in ({"r"}, {"q"}, {"r", "s"}, {"q", "s"}, {"s"}):
        paths.add(archive, Access.EITHER)
        for member in members:
            paths.add(member, Access.READ)
    else:
        raise NotCoveredError(f"ar {letters} is not in its model")
    return paths.use()


@or_gap
def _seven_zip(argv: Sequence[str]) -> Use:
    """Read a 7z command that lists one archive; others are not covered.

    7z joins values to its switches, reads lists of files from `@FILE`, and expands `*` itself.
    """
    words = [word for word in argv[1:] if word not in ("-slt", "-ba") or isinstance(word, Unknown | Found)]
    if len(words) != 2 or words[0] != "l" or words[1][:1] in ("-", "@") or _PATTERN.search(words[1]):
        raise NotCoveredError("of 7z only `7z l ARCHIVE` has a model")
    paths = CommandPaths()
    paths.add_with([".7z"], words[1], Access.READ)
    return paths.use()


def _cpio_lists(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-t") else gap("of cpio only -t has a model")


# --- tar

_TAR_OPTIONS = """
    -c|--create -x|--extract|--get -t|--list -r|--append -u|--update --delete
    -f|--file=TEXT -C|--directory=FOLDER -X|--exclude-from=READ --index-file=WRITE --mtime=TEXT
    --exclude=TEXT --exclude-vcs --exclude-backups --exclude-caches --exclude-caches-all --no-recursion --recursion
    --null --anchored --no-anchored --wildcards --no-wildcards --wildcards-match-slash --ignore-case --force-local
    -k|--keep-old-files --keep-newer-files --skip-old-files --overwrite --no-overwrite-dir --remove-files -O|--to-stdout
    -m|--touch --sort=TEXT --mode=TEXT --owner=TEXT --group=TEXT --numeric-owner --same-owner --no-same-owner
    --no-same-permissions -p|--preserve-permissions|--same-permissions --acls --no-acls --selinux --xattrs --no-xattrs
    --delay-directory-restore -P|--absolute-names --strip-components=TEXT --transform|--xform=TEXT --one-file-system
    --ignore-failed-read --newer-mtime=TEXT
    -b|--blocking-factor=TEXT -B|--read-full-records -i|--ignore-zeros -n|--seek -S|--sparse -W|--verify
    --format=TEXT --posix -a|--auto-compress --no-auto-compress -j|--bzip2 -J|--xz -z|--gzip|--gunzip|--ungzip
    -Z|--compress|--uncompress --lzip --lzma --lzop --zstd
    -v|--verbose -R|--block-number -l|--check-links -o --full-time --utc --totals[=TEXT] --warning=TEXT
    --checkpoint[=TEXT] --show-transformed-names --show-stored-names --quoting-style=TEXT
    -I|--use-compress-program=CODE --to-command=CODE --checkpoint-action=CODE --rmt-command=CODE --rsh-command=CODE
    -F|--info-script|--new-volume-script=CODE -T|--files-from=CODE -g|--listed-incremental=CODE
"""
# Not in the table: -h and --dereference, because they pack the targets of links, also outside of the folder.

_TAR_MODES = {
    "-c": Access.WRITE,
    "-x": Access.READ,
    "-t": Access.READ,
    "-r": Access.EITHER,
    "-u": Access.EITHER,
    "--delete": Access.EITHER,
}
"""Access to the archive, by tar's mode."""


@or_gap
def _read_tar(argv: Sequence[str]) -> Use:
    if list(argv[1:]) in (["--version"], ["--help"], ["--usage"]):
        return Use(act=Act.LOOKS)
    return _Tar(argv).use()


class _Tar:
    """A reader of the words of one tar command. Its methods raise NotCoveredError."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.table = option_table(_TAR_OPTIONS)
        self.words = list(argv[1:])
        self.flags: set[str] = set()
        self.archive = ""
        self.folders = [""]
        self.operands: list[tuple[str, str]] = []
        """Pairs of a folder (from -C) and an operand relative to it."""
        self.gathered = CommandPaths()

    def use(self) -> Use:
        if self.words and self.words[0][:1] != "-":
            self._old_style()
        while self.words:
            self._word(self.words.pop(0))
        modes = [mode for mode in _TAR_MODES if mode in self.flags]
        if len(modes) != 1:
            raise NotCoveredError("tar without one mode")
        self._archive(_TAR_MODES[modes[0]])
        if modes[0] == "-x" and "-O" not in self.flags:
            self._extract()
        elif modes[0] in ("-c", "-r", "-u"):
            self._pack()
        return self.gathered.use()

    def _old_style(self) -> None:
        """Rewrite `xzf a` as options with dashes. Each letter that takes a value takes the next word."""
        letters = self.words.pop(0)
        if isinstance(letters, Unknown | Found) or not letters.isalpha():
            raise NotCoveredError(f"{letters} may be options of tar")
        options: list[str] = []
        for letter in letters:
            entry = self._entry(f"-{letter}")
            options.append(f"-{letter}")
            if entry.role is not None:
                options.append(self._next(f"-{letter}"))
        self.words = options + self.words

    def _entry(self, name: str) -> Entry:
        entry = self.table.get(name)
        if entry is None:
            raise NotCoveredError(f"the option {name} is not in the model of tar")
        return entry

    def _next(self, name: str) -> str:
        if not self.words:
            raise NotCoveredError(f"{name} has no value")
        value = self.words.pop(0)
        if isinstance(value, Unknown) and not value.single:
            raise NotCoveredError(f"{value} may be any number of words")
        return value

    def _word(self, word: str) -> None:
        if isinstance(word, Unknown) and (not word.single or word.prefix[:1] in ("", "-")):
            raise NotCoveredError(f"{word} may be an option")
        if isinstance(word, Unknown | Found) or word[:1] != "-" or word == "-":
            self.operands.append((self.folders[-1], word))
        elif word == "--":
            if any(operand.startswith("-") for operand in self.words):
                raise NotCoveredError("operands like options, which some versions take for -C")
            self.operands += [(self.folders[-1], operand) for operand in self.words]
            self.words = []
        elif word.startswith("--"):
            self._long(word)
        else:
            self._cluster(word)

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        entry = self._entry(name)
        if entry.role is None:
            if equals:
                raise NotCoveredError(f"{name} takes no value")
            self.flags.add(entry.name)
        elif not entry.joined_only:
            self._option(entry, value if equals else self._next(name))

    def _cluster(self, word: str) -> None:
        for place, letter in enumerate(word[1:], start=2):
            entry = self._entry(f"-{letter}")
            if entry.role is not None:
                self._option(entry, word[place:] or self._next(entry.name))
                return
            self.flags.add(entry.name)

    def _option(self, entry: Entry, value: str) -> None:
        name = entry.name
        if entry.role is OperandRole.CODE:
            raise NotCoveredError(f"{name} {value} says what is run, or names files")
        if entry.role is OperandRole.FOLDER:
            if isinstance(value, Found):
                raise NotCoveredError("one folder after the other")
            self.gathered.add(value, Access.READ, folder=self.folders[-1])
            self.folders.append(joined(self.folders[-1], value))
        elif name == "-f":
            if self.archive:
                raise NotCoveredError("an archive of several volumes")
            self.archive = value
        elif name in ("-X", "--index-file"):
            self.gathered.add(value, Access.READ if name == "-X" else Access.WRITE)
        elif name == "--mtime" and (isinstance(value, Unknown | Found) or value[:1] in ("/", ".")):
            # tar(1): such a value is a file whose date tar uses.
            self.gathered.add(value, Access.READ)
        else:
            self.flags.add(name)

    def _archive(self, access: Access) -> None:
        if ":" in self.archive and "--force-local" not in self.flags:
            raise NotCoveredError(f"{self.archive} may be an archive on another machine")
        if self.archive not in ("", "-") or isinstance(self.archive, Unknown | Found):
            self.gathered.add(self.archive, access)

    def _extract(self) -> None:
        if not self.flags.isdisjoint(("-P", "--transform")):
            raise NotCoveredError("files are extracted to wherever the archive says")
        folders = [*self.folders[1:], *(folder for folder, _ in self.operands)]
        for folder in dict.fromkeys(folders or [""]):
            self.gathered.add(folder or ".", Access.WRITE, tree=True)

    def _pack(self) -> None:
        access = Access.EITHER if "--remove-files" in self.flags else Access.READ
        for folder, operand in self.operands:
            if operand.startswith("@"):
                raise NotCoveredError(f"{operand} is an archive to bsdtar")
            self.gathered.add(operand, access, tree=True, folder=folder)


# --- Programs that compress single files

_SHORT_ENDING = regex(r"(.*)\.t(gz|az|bz|bz2|xz|lz|zst)")


def _in_place(*suffixes: str) -> Refine:
    """Return the refinement for a compressor that replaces `a` by `a.gz`, and the reverse."""

    def refine(parsed: Parsed, use: Use) -> Use:
        paths: list[PathUse] = []
        # The last of -d -z -t -l counts: `xz -t -z f` packs f.
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
    """Return the refinement for zcat and similar programs: they print, and try a missing file's name with a suffix."""

    def refine(_parsed: Parsed, use: Use) -> Use:
        tried = [replace(path, word=path.word + suffix) for path in use.paths for suffix in suffixes]
        return replace(use, paths=(*use.paths, *tried))

    return refine


_GZIP_OPTIONS = """
    -c|--stdout|--to-stdout -d|--decompress|--uncompress -f|--force -k|--keep -l|--list -n|--no-name -q|--quiet
    -t|--test -v|--verbose -1|--fast -2 -3 -4 -5 -6 -7 -8 -9|--best --rsyncable --synchronous
    -V|--version:info -h|--help:info
"""
# Not in the tables: gzip -r follows links out of the folder, and `zstd --rm -c` has removed the file that it printed.
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
# Not in the table: -T and -o, because zstd reads them differently from getopt (`-T0o f` writes f).


PROGRAMS: Mapping[str, Program] = {
    "zip": Program(read=_zip, loses=with_option("-m", "--move", sentence="zip removes the files that it has packed")),
    "unzip": Program(read=_unzip),
    "zipinfo": Program(read=_unzip),
    "ar": Program(read=_ar),
    "7z": Program(read=_seven_zip),
    "cpio": Program(
        options="-i|--extract -t|--list -v|--verbose -z|--null --quiet --version:info --help:info",
        operands="TEXT...",
        refine=_cpio_lists,
    ),
    "tar": Program(
        read=_read_tar, loses=with_option("--remove-files", sentence="tar removes the files that it has packed")
    ),
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
