"""gh (2.x), the command line of GitHub. It always reaches the network, so it is never a reader."""

from __future__ import annotations

import re

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Unknown, Use, gap
from harness.programs.rows import Rows
from harness.record import replace


def _request(parsed: Parsed, use: Use) -> Use:
    """Refine `gh api`. Without a method and fields it sends a GET. A field `name=@file` sends a file."""
    paths = list(use.paths)
    for field in parsed.values("-F", "-f"):
        if isinstance(field, Unknown | Found):
            return gap(f"{field} may name a file that is sent")
    for field in parsed.values("-F"):
        name, separator, file = field.partition("=@")
        if separator and file != "-" and name:
            paths.append(PathUse(word=file, access=Access.READ))
    methods = [value.removeprefix("=").upper() for value in parsed.values("-X")]
    sends = parsed.has("-F", "-f", "--input") and not methods
    if sends or any(method not in ("GET", "HEAD") for method in methods):
        use = replace(use, act=stricter(use.act, Act.CHANGES))
    if any(re.match(r"[^/{]*://", word) for word in parsed.operands):
        return gap("an address of another host")
    return replace(use, paths=tuple(paths))


def _assets(_parsed: Parsed, use: Use) -> Use:
    """Refine `gh release upload TAG FILE#LABEL`: the file is the part before the label."""
    cut = (replace(path, word=path.word.partition("#")[0]) for path in use.paths if "#" in path.word)
    return replace(use, paths=(*use.paths, *cut))


# --web starts a browser, so it is a gap. --template and --jq only format the output. `auth status -t` prints the token.
PROGRAMS = Rows(
    r"""
repo = -R|--repo=TEXT
json = --json=TEXT -q|--jq=TEXT -t|--template=TEXT
body = -b|--body=TEXT -F|--body-file=READ -e|--editor:gap -w|--web:gap
found = -L|--limit=TEXT -S|--search=TEXT -s|--state=TEXT -a|--assignee=TEXT -A|--author=TEXT --app=TEXT -l|--label=TEXT
    -w|--web:gap
create = repo body -t|--title=TEXT -a|--assignee=TEXT -l|--label=TEXT -m|--milestone=TEXT -p|--project=TEXT --recover=READ
    -T|--template=TEXT
gh : looks : - : --version:info --help:info
gh pr list : looks net : - : repo json found -B|--base=TEXT -H|--head=TEXT -d|--draft
gh pr view, issue view : looks net : TEXT... : repo json -c|--comments -w|--web:gap
gh pr diff : looks net : TEXT... : repo --color=TEXT --name-only --patch -w|--web:gap
gh pr status : looks net : - : repo json -c|--conflict-status
gh pr checks : looks net : TEXT... : repo json --required --watch --fail-fast -i|--interval=TEXT -w|--web:gap
gh issue list : looks net : - : repo json found -m|--milestone=TEXT --mention=TEXT
gh issue status : looks net : - : repo json
gh repo view : looks net : TEXT... : json -b|--branch=TEXT -w|--web:gap
gh repo list : looks net : TEXT... : json -L|--limit=TEXT -l|--language=TEXT --topic=TEXT --visibility=TEXT --fork --source
    --archived --no-archived
gh run list : looks net : - : repo json -L|--limit=TEXT -b|--branch=TEXT -c|--commit=TEXT --created=TEXT -e|--event=TEXT
    -s|--status=TEXT -u|--user=TEXT -w|--workflow=TEXT -a|--all
gh run view : looks net : TEXT... : repo json -a|--attempt=TEXT --exit-status -j|--job=TEXT --log --log-failed -v|--verbose
    -w|--web:gap
gh run watch : looks net : TEXT... : repo --compact --exit-status -i|--interval=TEXT
gh workflow list : looks net : - : repo json -a|--all -L|--limit=TEXT
gh workflow view : looks net : TEXT... : repo -r|--ref=TEXT -y|--yaml -w|--web:gap
gh release list : looks net : - : repo json -L|--limit=TEXT --exclude-drafts --exclude-pre-releases
gh release view : looks net : TEXT... : repo json -w|--web:gap
gh label list : looks net : - : repo json -L|--limit=TEXT -S|--search=TEXT
gh gist list : looks net : - : -L|--limit=TEXT --public --secret
gh gist view : looks net : TEXT... : -f|--filename=TEXT --files -r|--raw -w|--web:gap
gh auth status : looks net : - : -h|--hostname=TEXT -a|--active
gh search issues, search prs, search repos, search code, search commits : looks net : TEXT... : json -L|--limit=TEXT
    --repo=TEXT --owner=TEXT --language=TEXT --state=TEXT --author=TEXT --sort=TEXT --order=TEXT --extension=TEXT
    --filename=TEXT --match=TEXT
gh api : looks net request : TEXT : -X|--method=TEXT -F|--field=TEXT -f|--raw-field=TEXT -H|--header=TEXT -q|--jq=TEXT
    -t|--template=TEXT --paginate --slurp -i|--include --silent --verbose --cache=TEXT -p|--preview=TEXT --input=READ
    --hostname=TEXT
gh pr create : changes net : - : create -B|--base=TEXT -H|--head=TEXT -d|--draft -f|--fill --fill-first --fill-verbose
    --dry-run --no-maintainer-edit -r|--reviewer=TEXT
gh issue create : changes net : - : create
gh pr comment, issue comment : changes net : TEXT... : repo body --edit-last
gh pr edit, issue edit : changes net : TEXT... : repo -b|--body=TEXT -F|--body-file=READ -t|--title=TEXT -B|--base=TEXT
    -m|--milestone=TEXT --add-label=TEXT --remove-label=TEXT --add-assignee=TEXT --remove-assignee=TEXT --add-reviewer=TEXT
    --remove-reviewer=TEXT --add-project=TEXT --remove-project=TEXT --remove-milestone
gh pr close : changes net : TEXT... : repo -c|--comment=TEXT -d|--delete-branch
gh issue close : changes net : TEXT... : repo -c|--comment=TEXT -r|--reason=TEXT
gh pr reopen, issue reopen : changes net : TEXT... : repo -c|--comment=TEXT
gh pr ready : changes net : TEXT... : repo --undo
gh pr review : changes net : TEXT... : repo -a|--approve -c|--comment -r|--request-changes -b|--body=TEXT
    -F|--body-file=READ
gh pr merge : changes net : TEXT... : repo --admin --auto --disable-auto -m|--merge -r|--rebase -s|--squash
    -d|--delete-branch -b|--body=TEXT -F|--body-file=READ -t|--subject=TEXT --match-head-commit=TEXT -A|--author-email=TEXT
gh pr checkout : changes net : TEXT... : repo -b|--branch=TEXT --detach -f|--force --recurse-submodules
gh run rerun : changes net : TEXT... : repo --failed -j|--job=TEXT -d|--debug
gh run cancel : changes net : TEXT... : repo
gh run download : changes net : TEXT... : repo -D|--dir=WRITE_TREE -n|--name=TEXT -p|--pattern=TEXT
gh workflow run : changes net : TEXT... : repo -r|--ref=TEXT -f|--raw-field=TEXT
gh release create : changes net assets : TEXT READ... : repo -d|--draft -p|--prerelease --latest[=TEXT] -n|--notes=TEXT
    -F|--notes-file=READ -t|--title=TEXT --target=TEXT --generate-notes --notes-start-tag=TEXT --verify-tag
gh release upload : changes net assets : TEXT READ... : repo --clobber
gh release download : changes net : TEXT... : repo -D|--dir=WRITE_TREE -O|--output=WRITE -p|--pattern=TEXT -A|--archive=TEXT
    --clobber --skip-existing
gh gist create : changes net : READ... : -d|--desc=TEXT -f|--filename=TEXT -p|--public -w|--web:gap
gh repo clone : changes net : TEXT WRITE_TREE : -u|--upstream-remote-name=TEXT --no-upstream
gh repo fork : changes net : TEXT... : --clone[=TEXT] --remote[=TEXT] --remote-name=TEXT --fork-name=TEXT --org=TEXT
gh repo create : changes net : TEXT... : --public --private --internal -d|--description=TEXT -c|--clone --push
    -s|--source=READ -r|--remote=TEXT -g|--gitignore=TEXT -l|--license=TEXT --add-readme --disable-issues --disable-wiki
    -h|--homepage=TEXT -t|--team=TEXT -p|--template=TEXT
""",
    {"request": _request, "assets": _assets},
)
