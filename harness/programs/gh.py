"""gh (2.x), the command line of GitHub. It always reaches the network, so it is never a reader."""

from __future__ import annotations

import re

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Refine, Style, Unknown, Use, gap
from harness.record import replace

# --web starts a browser, and the answers of --template and --jq are text that is printed.
_COMMON = "-R|--repo=TEXT"
_JSON = "--json=TEXT -q|--jq=TEXT -t|--template=TEXT"
_LIST = f"""
    {_COMMON} {_JSON} -L|--limit=TEXT -S|--search=TEXT -s|--state=TEXT -a|--assignee=TEXT -A|--author=TEXT --app=TEXT
    -l|--label=TEXT -w|--web:gap
"""
_BODY = "-b|--body=TEXT -F|--body-file=READ -e|--editor:gap -w|--web:gap"
_EDIT = f"""
    {_COMMON} -b|--body=TEXT -F|--body-file=READ -t|--title=TEXT -B|--base=TEXT -m|--milestone=TEXT --add-label=TEXT
    --remove-label=TEXT --add-assignee=TEXT --remove-assignee=TEXT --add-reviewer=TEXT --remove-reviewer=TEXT
    --add-project=TEXT --remove-project=TEXT --remove-milestone
"""
_CREATE = f"""
    {_COMMON} {_BODY} -t|--title=TEXT -a|--assignee=TEXT -l|--label=TEXT -m|--milestone=TEXT -p|--project=TEXT
    --recover=READ -T|--template=TEXT
"""


def _reached(act: Act, options: str, operands: str, refine: Refine | None = None) -> Program:
    return Program(act=act, network=True, options=options, operands=operands, refine=refine)


def _looks(options: str = _COMMON, operands: str = "TEXT...") -> Program:
    return _reached(Act.LOOKS, options, operands)


def _changes(options: str = _COMMON, operands: str = "TEXT...", refine: Refine | None = None) -> Program:
    return _reached(Act.CHANGES, options, operands, refine)


def _request(parsed: Parsed, use: Use) -> Use:
    """For `gh api`: without a method and without fields it is a GET; a field `name=@file` sends a file."""
    paths = list(use.paths)
    for field in parsed.values("-F", "-f"):
        if isinstance(field, Unknown | Found):
            return gap(f"{field} may name a file that is sent")
    for field in parsed.values("-F"):
        name, found, file = field.partition("=@")
        if found and file != "-" and name:
            paths.append(PathUse(word=file, access=Access.READ))
    methods = [value.removeprefix("=").upper() for value in parsed.values("-X")]
    sends = parsed.has("-F", "-f", "--input") and not methods
    if sends or any(method not in ("GET", "HEAD") for method in methods):
        use = replace(use, act=stricter(use.act, Act.CHANGES))
    if any(re.match(r"[^/{]*://", word) for word in parsed.operands):
        return gap("an address of another host")
    return replace(use, paths=tuple(paths))


def _assets(_parsed: Parsed, use: Use) -> Use:
    """For `gh release upload TAG FILE#LABEL`: the file is what stands before the label."""
    cut = (replace(path, word=path.word.partition("#")[0]) for path in use.paths if "#" in path.word)
    return replace(use, paths=(*use.paths, *cut))


_SUBCOMMANDS = {
    "pr list": _looks(f"{_LIST} -B|--base=TEXT -H|--head=TEXT -d|--draft", ""),
    "pr view": _looks(f"{_COMMON} {_JSON} -c|--comments -w|--web:gap"),
    "pr diff": _looks(f"{_COMMON} --color=TEXT --name-only --patch -w|--web:gap"),
    "pr status": _looks(f"{_COMMON} {_JSON} -c|--conflict-status", ""),
    "pr checks": _looks(f"{_COMMON} {_JSON} --required --watch --fail-fast -i|--interval=TEXT -w|--web:gap"),
    "issue list": _looks(f"{_LIST} -m|--milestone=TEXT --mention=TEXT", ""),
    "issue view": _looks(f"{_COMMON} {_JSON} -c|--comments -w|--web:gap"),
    "issue status": _looks(f"{_COMMON} {_JSON}", ""),
    "repo view": _looks(f"{_JSON} -b|--branch=TEXT -w|--web:gap"),
    "repo list": _looks(
        f"{_JSON} -L|--limit=TEXT -l|--language=TEXT --topic=TEXT --visibility=TEXT --fork --source --archived --no-archived"
    ),
    "run list": _looks(
        f"""{_COMMON} {_JSON} -L|--limit=TEXT -b|--branch=TEXT -c|--commit=TEXT --created=TEXT -e|--event=TEXT
        -s|--status=TEXT -u|--user=TEXT -w|--workflow=TEXT -a|--all""",
        "",
    ),
    "run view": _looks(
        f"{_COMMON} {_JSON} -a|--attempt=TEXT --exit-status -j|--job=TEXT --log --log-failed -v|--verbose -w|--web:gap"
    ),
    "run watch": _looks(f"{_COMMON} --compact --exit-status -i|--interval=TEXT"),
    "workflow list": _looks(f"{_COMMON} {_JSON} -a|--all -L|--limit=TEXT", ""),
    "workflow view": _looks(f"{_COMMON} -r|--ref=TEXT -y|--yaml -w|--web:gap"),
    "release list": _looks(f"{_COMMON} {_JSON} -L|--limit=TEXT --exclude-drafts --exclude-pre-releases", ""),
    "release view": _looks(f"{_COMMON} {_JSON} -w|--web:gap"),
    "label list": _looks(f"{_COMMON} {_JSON} -L|--limit=TEXT -S|--search=TEXT", ""),
    "gist list": _looks("-L|--limit=TEXT --public --secret", ""),
    "gist view": _looks("-f|--filename=TEXT --files -r|--raw -w|--web:gap"),
    "auth status": _looks("-h|--hostname=TEXT -a|--active", ""),  # not -t, which prints the token
    **{
        f"search {what}": _looks(
            f"{_JSON} -L|--limit=TEXT --repo=TEXT --owner=TEXT --language=TEXT --state=TEXT "
            "--author=TEXT --sort=TEXT --order=TEXT --extension=TEXT --filename=TEXT --match=TEXT"
        )
        for what in ("issues", "prs", "repos", "code", "commits")
    },
    "api": _reached(
        Act.LOOKS,
        """-X|--method=TEXT -F|--field=TEXT -f|--raw-field=TEXT -H|--header=TEXT -q|--jq=TEXT -t|--template=TEXT
        --paginate --slurp -i|--include --silent --verbose --cache=TEXT -p|--preview=TEXT --input=READ --hostname=TEXT""",
        "TEXT",
        _request,
    ),
    "pr create": _changes(
        f"""{_CREATE} -B|--base=TEXT -H|--head=TEXT -d|--draft -f|--fill --fill-first --fill-verbose --dry-run
        --no-maintainer-edit -r|--reviewer=TEXT""",
        "",
    ),
    "issue create": _changes(_CREATE, ""),
    **{f"{what} comment": _changes(f"{_COMMON} {_BODY} --edit-last") for what in ("pr", "issue")},
    **{f"{what} edit": _changes(_EDIT) for what in ("pr", "issue")},
    "pr close": _changes(f"{_COMMON} -c|--comment=TEXT -d|--delete-branch"),
    "issue close": _changes(f"{_COMMON} -c|--comment=TEXT -r|--reason=TEXT"),
    **{f"{what} reopen": _changes(f"{_COMMON} -c|--comment=TEXT") for what in ("pr", "issue")},
    "pr ready": _changes(f"{_COMMON} --undo"),
    "pr review": _changes(
        f"{_COMMON} -a|--approve -c|--comment -r|--request-changes -b|--body=TEXT -F|--body-file=READ"
    ),
    "pr merge": _changes(
        f"""{_COMMON} --admin --auto --disable-auto -m|--merge -r|--rebase -s|--squash -d|--delete-branch -b|--body=TEXT
        -F|--body-file=READ -t|--subject=TEXT --match-head-commit=TEXT -A|--author-email=TEXT"""
    ),
    "pr checkout": _changes(f"{_COMMON} -b|--branch=TEXT --detach -f|--force --recurse-submodules"),
    "run rerun": _changes(f"{_COMMON} --failed -j|--job=TEXT -d|--debug"),
    "run cancel": _changes(),
    "run download": _changes(f"{_COMMON} -D|--dir=WRITE_TREE -n|--name=TEXT -p|--pattern=TEXT"),
    "workflow run": _changes(f"{_COMMON} -r|--ref=TEXT -f|--raw-field=TEXT"),
    "release create": _changes(
        f"""{_COMMON} -d|--draft -p|--prerelease --latest[=TEXT] -n|--notes=TEXT -F|--notes-file=READ -t|--title=TEXT
        --target=TEXT --generate-notes --notes-start-tag=TEXT --verify-tag""",
        "TEXT READ...",
        _assets,
    ),
    "release upload": _changes(f"{_COMMON} --clobber", "TEXT READ...", _assets),
    "release download": _changes(
        f"{_COMMON} -D|--dir=WRITE_TREE -O|--output=WRITE -p|--pattern=TEXT -A|--archive=TEXT --clobber --skip-existing"
    ),
    "gist create": _changes("-d|--desc=TEXT -f|--filename=TEXT -p|--public -w|--web:gap", "READ..."),
    "repo clone": _changes("-u|--upstream-remote-name=TEXT --no-upstream", "TEXT WRITE_TREE"),
    "repo fork": _changes("--clone[=TEXT] --remote[=TEXT] --remote-name=TEXT --fork-name=TEXT --org=TEXT"),
    "repo create": _changes(
        """--public --private --internal -d|--description=TEXT -c|--clone --push -s|--source=READ -r|--remote=TEXT
        -g|--gitignore=TEXT -l|--license=TEXT --add-readme --disable-issues --disable-wiki -h|--homepage=TEXT
        -t|--team=TEXT -p|--template=TEXT"""
    ),
}

PROGRAMS = {"gh": Program(style=Style.GNU, options="--version:info --help:info", subcommands=_SUBCOMMANDS)}
