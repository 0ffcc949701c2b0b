"""Checks whether a repository's configuration can make a git command that only reads run a program.

It is a whitelist: any other key counts as one that names a program. The caller finds and reads the file, and also
checks the other files that git obeys: config.worktree and the configurations of submodules.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.programs.git import LOOKING

OVERRIDDEN = frozenset(("core.fsmonitor", "core.hookspath", "core.pager"))
"""Keys that name programs, but are accepted.

INVARIANT: harness overrides them for every git command that it runs without asking.
"""

# git-config(1). Left out on purpose, because they name programs or make git read elsewhere: core.gitProxy, .askPass,
# .alternateRefsCommand, .worktree, .attributesFile and .excludesFile (check-ignore -v prints their lines), diff.external
# and .orderFile, log.showSignature and .diffMerges (remerge runs merge drivers), mailmap.*, format.*,
# status.submoduleSummary, submodule.recurse, tar.*, trailer.*, man.*, pager.*, gpg.*.program.
_HARMLESS = {
    "core": """
        repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode hidedotfiles autocrlf eol
        safecrlf checkroundtripencoding symlinks quotepath whitespace abbrev compression loosecompression bigfilethreshold
        untrackedcache commentchar commentstring editor trustctime checkstat sharedrepository multipackindex commitgraph
        protecthfs protectntfs preloadindex fscache longpaths deltabasecachelimit packedgitlimit packedgitwindowsize
        packedrefstimeout filesreflocktimeout splitindex sparsecheckout sparsecheckoutcone disambiguate notesref fsync
        fsyncmethod fsyncobjectfiles fsmonitorhookversion warnambiguousrefs usereplacerefs maxtreedepth
        restrictinheritedhandles sshcommand""",
    "extensions": "noop noop-v1 preciousobjects relativeworktrees worktreeconfig",
    "branch": "autosetupmerge autosetuprebase",
    "tag": "gpgsign forcesignannotated",
    "submodule": "active fetchjobs",
    "diff": """
        algorithm autorefreshindex colormoved colormovedws context dirstat indentheuristic interhunkcontext mnemonicprefix
        noprefix srcprefix dstprefix relative renamelimit renames statgraphwidth statnamewidth suppressblankempty
        wserrorhighlight wordregex ignoresubmodules guitool tool trustexitcode""",
    "log": "abbrevcommit date decorate excludedecoration initialdecorationset graphcolors showroot mailmap",
    "blame": "blankboundary coloring date showemail showroot markunblamablelines markignoredlines",
    "grep": "linenumber column patterntype extendedregexp threads fullname",
    "status": """
        relativepaths short branch aheadbehind displaycommentprefix renamelimit renames showstash showuntrackedfiles""",
    "gpg": "format mintrustlevel",
    "apply": "ignorewhitespace whitespace",
    "i18n": "commitencoding logoutputencoding",
    "lfs": "repositoryformatversion url pushurl access locksverify fetchinclude fetchexclude",
}
_HARMLESS_BELOW = {
    "remote": """
        url fetch push pushurl tagopt prune prunetags mirror skipfetchall skipdefaultupdate gh-resolved followremotehead""",
    "submodule": "url active branch ignore fetchrecursesubmodules shallow",
    "diff": "xfuncname funcname wordregex binary algorithm cachetextconv trustexitcode",
    "merge": "name driver recursive",
    "filter": "required",
    "lfs": "access locksverify",
}
"""Harmless keys with a subsection, such as `remote.origin.url`, by section."""
# Some of these keys, core.sshCommand and merge.*.driver name programs. Git runs them only to fetch, commit, merge, edit
# or set something up.
_HARMLESS_SECTIONS = frozenset(
    "user author committer pull push fetch init color column gc advice rebase commit sequence http credential url "
    "gui gitk maintenance rerere pack transfer am clone checkout index feature versionsort notes stash protocol remotes "
    "sendemail svn svn-remote gitflow hub github safe help clean showbranch receive mergetool difftool interactive".split()
)
_GIT_LFS = frozenset(
    f"git-lfs {words}"
    for words in ("clean -- %f", "smudge -- %f", "smudge --skip -- %f", "filter-process", "filter-process --skip")
)
"""Values that `git lfs install` writes. Programs that git-lfs itself runs have other keys (`lfs.extension.*`)."""
_REASONS = {
    "include.path": "includes a file",
    "includeif": "includes a file",
    "promisor": "lets reading reach the network",
    "partialclonefilter": "lets reading reach the network",
    "extensions.partialclone": "lets reading reach the network",
    "core.worktree": "moves the working tree",
    "log.showsignature": "starts gpg",
}


def programs_named(config: str) -> str | None:
    """Return the reason why this configuration could make a reading git command run a program or read elsewhere.

    `None` if there is no reason. `config` is the text of one file; bytes that are not text may have been replaced.
    Assumes that the keys of `OVERRIDDEN` are overridden.
    """
    try:
        for name, value in _settings(config):
            problem = _problem(name, value)
            if problem:
                return f"the repository's configuration sets {name}, which {problem}"
    except ValueError as error:
        return f"the repository's configuration is not understood: {error}"
    return None


def _problem(name: str, value: str | None) -> str:
    """Return the reason why a setting is not harmless, or an empty string.

    `name` is the full name of the setting, with section and key in lower case.
    """
    section, _, rest = name.partition(".")
    below, _, key = rest.rpartition(".")
    if name in OVERRIDDEN or section in _HARMLESS_SECTIONS or (below and section == "branch"):
        return ""
    harmless_keys = (_HARMLESS_BELOW if "." in rest else _HARMLESS).get(section, "")
    if key in harmless_keys.split() or _is_harmless_value(section, below, key, value or ""):
        return ""
    if (section == "merge" and "." not in rest) or (section == "alias" and not _is_looking(rest)):
        return ""
    reason = _REASONS.get(name) or _REASONS.get(section) or _REASONS.get(key)
    return reason or "may name a program or a file elsewhere"


def _is_looking(alias: str) -> bool:
    """Return whether an alias has the name of a read-only subcommand. Git uses such an alias only if its version lacks
    the subcommand.
    """
    return alias.partition(".")[0].lower() in {name.partition(" ")[0] for name in LOOKING}


def _is_harmless_value(section: str, below: str, key: str, value: str) -> bool:
    """Return whether the value is harmless, for a key that is harmless with some values only."""
    match (section, bool(below), key):
        case ("pretty", False, _) | ("format", False, "pretty"):
            return "%" not in value or "G" not in value  # %G? and similar formats start gpg
        case ("filter", True, "clean" | "smudge" | "process"):
            return below == "lfs" and value in _GIT_LFS
        case ("branch" | "tag", False, "sort"):
            return "signature" not in value
        case ("submodule", True, "update"):
            return not value.strip().startswith("!")
        case ("diff", False, "submodule"):
            return value in ("short", "log")  # `diff` starts git in the submodule
        case ("blame", False, "ignorerevsfile"):
            return value == ".git-blame-ignore-revs"  # git would print lines of another file in an error
        case ("extensions", False, "objectformat" | "compatobjectformat"):
            return value in ("sha1", "sha256")
        case ("extensions", False, "refstorage"):
            return value in ("files", "reftable")
        case _:
            return False


def _settings(config: str) -> Iterator[tuple[str, str | None]]:
    """Yield the full name and the value or `None` of each setting, as git reads them (git-config(1), "Syntax").

    Raises ValueError for text that git would reject, for control characters, and for settings outside a section.
    """
    text = config.removeprefix("\ufeff").replace("\r\n", "\n")
    if any(char < " " and char not in "\t\n" for char in text) or "\x7f" in text:
        raise ValueError("a control character")
    section = ""
    place = 0
    while place < len(text):
        char = text[place]
        if char in " \t\n":
            place += 1
        elif char in "#;":
            place = _line_end(text, place)
        elif char == "[":
            section, place = _section(text, place + 1)
        elif char.isascii() and char.isalpha():
            if not section:
                raise ValueError("a setting outside a section")
            key, value, place = _setting(text, place)
            yield f"{section}.{key}", value
        else:
            raise ValueError(f"the character {char!r} at the beginning of a line")


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _is_name(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "-")


def _section(text: str, place: int) -> tuple[str, int]:
    """Read a section header after its `[`: `core`, `remote "a.b"`, or the old form `remote.origin`.

    Return its name and the position after the `]`.
    """
    start = place
    while place < len(text) and (_is_name(text[place]) or text[place] == "."):
        place += 1
    name = text[start:place].lower()
    if not name:
        raise ValueError("a section without a name")
    if text[place : place + 1] == "]":
        return name, place + 1
    blank = place
    while text[place : place + 1] in (" ", "\t"):
        place += 1
    if place == blank or text[place : place + 1] != '"':
        raise ValueError("a section that is not closed")
    below = ""
    place += 1
    while place < len(text) and text[place] not in '"\n':
        place += text[place] == "\\"
        below += text[place : place + 1]
        place += 1
    if text[place : place + 2] != '"]' or "\n" in below:
        raise ValueError("a section that is not closed")
    return f"{name}.{below}", place + 2


def _setting(text: str, place: int) -> tuple[str, str | None, int]:
    """Read a setting. Return the key, the value, and the position after it.

    The value of a key without `=` is `None`, which means true.
    """
    start = place
    while place < len(text) and _is_name(text[place]):
        place += 1
    key = text[start:place].lower()
    while text[place : place + 1] in (" ", "\t"):
        place += 1
    if place == len(text) or text[place] == "\n":
        return key, None, place
    if text[place] != "=":
        raise ValueError(f"the setting {key}")
    value, place = _value(text, place + 1)
    return key, value, place


def _value(text: str, place: int) -> tuple[str, int]:
    value = ""
    quoted = False
    while place < len(text) and (text[place] != "\n" or quoted):
        char = text[place]
        place += 1
        if char == "\\":
            escaped = text[place : place + 1]
            if escaped not in _ESCAPES:
                raise ValueError("a backslash in a value")
            value += _ESCAPES[escaped]
            place += 1
        elif char == '"':
            quoted = not quoted
        elif char == "\n":
            break
        elif char in "#;" and not quoted:
            return value.strip(" \t"), _line_end(text, place)
        else:
            value += char
    if quoted:
        raise ValueError("a quotation that is not closed")
    return value.strip(" \t"), place


_ESCAPES = {"\n": "", "n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}
