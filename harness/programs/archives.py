"""Models of programs that pack and unpack archives, which read options in ways of their own. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.actions import Access, Act
from harness.programs.gathered import Gathered, NotCoveredError, or_gap
from harness.programs.model import Found, Parsed, Program, Unknown, Use, gap

_PATTERN = re.compile(r"[*?\[\]]")


# zip(1) 3.0: options of two letters stand among clusters of one; only letters that form none of them are taken.
_ZIP_LETTERS = re.compile(r"-[rqjyXDvu0-9]+|-[mo]|-FS")


@or_gap
def _zip(argv: Sequence[str]) -> Use:
    if list(argv[1:]) in (["-v"], ["-h"], ["-h2"], ["--version"], ["--help"]):
        return Use(act=Act.LOOKS)
    paths = Gathered()
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
        listed, patterns = patterns, word in ("-x", "-i", "--exclude", "--include")
        if word in ("-O", "--out"):
            out = next(words, None)
            if out is None or isinstance(out, Unknown | Found):
                raise NotCoveredError("-O has no value that is known")
        elif word == "-d" or _ZIP_LETTERS.fullmatch(word):
            options.append(word)
        elif not patterns and not (listed and word == "@"):
            raise NotCoveredError(f"the option {word} is not in the model of zip")
    return options, operands, out


_ZIPINFO = re.compile(r"-[12smlvhtzT]*")
_UNZIP = re.compile(r"-[lptvzcqCaonjufL]+")


@or_gap
def _unzip(argv: Sequence[str]) -> Use:
    """unzip(1) 6.0: options, the archive, members; -d and -x also behind it. With -Z first it is zipinfo(1)."""
    if list(argv[1:]) in (["-v"], ["-h"], ["-hh"], ["--help"]):
        return Use(act=Act.LOOKS)
    zipinfo = argv[0].rpartition("/")[2] == "zipinfo"
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
                raise NotCoveredError("-d has no value that is known")
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
    paths = Gathered()
    paths.add_with([".zip", ".ZIP"], archive, Access.READ)
    if not zipinfo and not looks:
        paths.add(folder or ".", Access.WRITE, tree=True)
    return paths.use()


_AR_VALUES = frozenset("abiNlM")


@or_gap
def _ar(argv: Sequence[str]) -> Use:
    """ar takes options from a file that `@FILE` names, and prints members of thin archives from anywhere."""
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
    paths = Gathered()
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
    """Of 7z only the listing of one archive; its switches are joined, `@` names lists, and `*` is expanded."""
    words = [word for word in argv[1:] if word not in ("-slt", "-ba") or isinstance(word, Unknown | Found)]
    if len(words) != 2 or words[0] != "l" or words[1][:1] in ("-", "@") or _PATTERN.search(words[1]):
        raise NotCoveredError("of 7z only `7z l ARCHIVE` has a model")
    paths = Gathered()
    paths.add_with([".7z"], words[1], Access.READ)
    return paths.use()


def _cpio_lists(parsed: Parsed, use: Use) -> Use:
    return use if parsed.has("-t") else gap("of cpio only -t has a model")


PROGRAMS: Mapping[str, Program] = {
    "zip": Program(read=_zip),
    "unzip": Program(read=_unzip),
    "zipinfo": Program(read=_unzip),
    "ar": Program(read=_ar),
    "7z": Program(read=_seven_zip),
    "cpio": Program(
        options="-i|--extract -t|--list -v|--verbose -z|--null --quiet --version:info --help:info",
        operands="TEXT...",
        refine=_cpio_lists,
    ),
}
