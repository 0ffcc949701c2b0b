"""The model of tar, whose -C counts from where it stands on, and whose first word may be options without a dash. No I/O.

Facts: tar(1) of GNU 1.34; options that bsdtar reads otherwise (-H -I -L -V -s) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.gathered import Gathered, NotCoveredError, joined, or_gap
from harness.programs.model import Found, Program, Role, Unknown, Use
from harness.programs.options import Entry, option_table

_OPTIONS = """
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
# -h and --dereference pack what links lead to, outside too: not in the table.

_MODES = {
    "-c": Access.WRITE,
    "-x": Access.READ,
    "-t": Access.READ,
    "-r": Access.EITHER,
    "-u": Access.EITHER,
    "--delete": Access.EITHER,
}
"""What is done, and hence to the archive."""


@or_gap
def _read(argv: Sequence[str]) -> Use:
    if list(argv[1:]) in (["--version"], ["--help"], ["--usage"]):
        return Use(act=Act.LOOKS)
    return _Tar(argv).use()


class _Tar:
    """The cursor over the words of one command. Its methods raise NotCoveredError."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.table = option_table(_OPTIONS)
        self.words = list(argv[1:])
        self.flags: set[str] = set()
        self.archive = ""
        self.folders = [""]
        self.operands: list[tuple[str, str]] = []
        """Each with the folder that it is seen from."""
        self.gathered = Gathered()

    def use(self) -> Use:
        if self.words and self.words[0][:1] != "-":
            self._old_style()
        while self.words:
            self._word(self.words.pop(0))
        modes = [mode for mode in _MODES if mode in self.flags]
        if len(modes) != 1:
            raise NotCoveredError("tar without one mode")
        self._archive(_MODES[modes[0]])
        if modes[0] == "-x" and "-O" not in self.flags:
            self._extract()
        elif modes[0] in ("-c", "-r", "-u"):
            self._pack()
        return self.gathered.use()

    def _old_style(self) -> None:
        """Write `xzf a` as it is with dashes: each letter that takes a value takes the next word."""
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
        if entry.role is Role.CODE:
            raise NotCoveredError(f"{name} {value} says what is run, or names files")
        if entry.role is Role.FOLDER:
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
            # tar(1): a value that begins so is a file, of which the date is taken.
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


PROGRAMS: Mapping[str, Program] = {"tar": Program(read=_read)}
