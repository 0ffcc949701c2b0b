"""Package managers of JavaScript: npm, pnpm, yarn, and what runs packages.

A project steers all of them. `.npmrc` names the registry, into whose address variables of the environment are expanded; it can
turn on the look for a newer npm, which any npm command then makes (seen with npm 11.19), and it places cache and logs.
`.yarnrc.yml` (yarnPath) and `package.json` (packageManager, by corepack and pnpm) name the very program that runs. Hence
nothing here only looks, but `npm --version`, which prints before any of that.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.program import Parsed, Program, Refine, Style, Use
from harness.programs.shared import ANYTHING_ELSE, all_of, also_writes, arguments_from, name_first, read_alike, runs
from harness.record import replace

# npm takes one dash for two and abbreviations: hence no clusters, and whatever is not written out here is a gap.
_NPM_COMMON = """
    -h|--help -s|--silent -q|--quiet -d -dd --verbose --loglevel=TEXT --json --parseable -l|--long --color[=TEXT] --no-color
    --no-progress --no-fund --no-audit --no-update-notifier --offline --prefer-offline -y|--yes -n|--no -g|--global
    -w|--workspace=TEXT -ws|--workspaces --include-workspace-root --prefix|-C=FOLDER --cache=WRITE_TREE --location=TEXT
    --script-shell=CODE --node-options=CODE --userconfig=CODE --globalconfig=CODE --registry=CODE --shell=CODE --git=CODE
    --node-gyp=CODE --init-module=CODE --https-proxy=CODE --proxy=CODE --cafile=READ
"""


def _shell_text(_parsed: Parsed, use: Use) -> Use:
    """The text of `npx -c` is run by sh."""
    return use if all(map(read_alike, use.scripts)) else replace(use, gap="text that sh may read otherwise than bash")


def _npm(options: str = "", *, act: Act = Act.RUNS, refine: Refine | None = None) -> Program:
    """Return the model of a subcommand of npm."""
    return Program(
        act=act, style=Style.SINGLE, network=True, options=f"{_NPM_COMMON} {options}", operands="TEXT...", refine=refine
    )


_NPM_TREE = """
    --omit=TEXT --include=TEXT --production --legacy-peer-deps --strict-peer-deps --force|-f --ignore-scripts --dry-run
    --package-lock-only --no-package-lock --foreground-scripts --install-strategy=TEXT --engine-strict
"""
_NPM_SAVE = (
    "--save|-S --save-dev|-D --save-optional|-O --save-peer --save-exact|-E --save-prod|-P --no-save --save-prefix=TEXT"
)
_NPM_FILES = also_writes("package.json", "package-lock.json")
_NPM_RUN = _npm("--if-present --ignore-scripts --foreground-scripts", refine=arguments_from(1))
_NPM_TEST = _npm("--if-present --ignore-scripts --foreground-scripts", refine=arguments_from(0))
_NPM_LOOK = _npm(
    "-a|--all --depth=TEXT --omit=TEXT --include=TEXT --link --package-lock-only --no-unicode --production --dev",
    act=Act.CHANGES,
)
_NPM_CHANGE = _npm(
    f"{_NPM_TREE} {_NPM_SAVE} --tag=TEXT --access=TEXT --otp=TEXT --allow-same-version --preid=TEXT -m=TEXT"
)
_EXEC = "--package|-p=TEXT --call|-c=SHELL"
_NPM = Program(
    style=Style.SINGLE,
    network=True,
    options=f"{_NPM_COMMON} -v|--version:info",
    subcommands={
        **dict.fromkeys("run run-script rum urn".split(), _NPM_RUN),
        **dict.fromkeys("test t tst start stop restart".split(), _NPM_TEST),
        **dict.fromkeys(
            "install i add in isntall uninstall un remove rm update up upgrade dedupe prune link".split(),
            _npm(f"{_NPM_TREE} {_NPM_SAVE}", refine=_NPM_FILES),
        ),
        **dict.fromkeys("ci clean-install install-test it install-ci-test rebuild".split(), _npm(_NPM_TREE)),
        **dict.fromkeys(
            "ls list la ll root prefix bin view info show v outdated explain why query search ping whoami fund".split(),
            _NPM_LOOK,
        ),
        **dict.fromkeys(
            ("config get", "config list", "config ls", "pkg get", "help", "doctor", "audit", "sbom"), _NPM_LOOK
        ),
        **dict.fromkeys(
            ("pkg set", "pkg delete", "pkg fix"), _npm(act=Act.CHANGES, refine=also_writes("package.json"))
        ),
        **dict.fromkeys("init create version pack publish deprecate dist-tag shrinkwrap cache".split(), _NPM_CHANGE),
        "audit fix": _npm(_NPM_TREE, refine=_NPM_FILES),
        **dict.fromkeys(("exec", "x"), _npm(_EXEC, refine=all_of(arguments_from(1), _shell_text))),
    },
)

# The first operand is a package or a program of node_modules; what follows is its own.
_NPX = runs(
    """
        -h|--help -v|--version -y|--yes -n|--no|--no-install -q|--quiet -p|--package=TEXT -c|--call=SHELL
        --prefer-offline
    """,
    style=Style.POSIX,
    operands="COMMAND...",
    refine=all_of(arguments_from(1), _shell_text),
)
_BUNX = replace(_NPX, options="-h|--help --version --bun -p|--package=TEXT --silent --verbose")

# --- pnpm and yarn: what stands behind a script's name is the script's

_SCRIPT = runs(style=Style.TEXT, operands="TEXT...", refine=arguments_from(0))
_NAMED = runs(
    "-s|--silent --if-present -r|--recursive --parallel -q|--quiet",
    style=Style.POSIX,
    operands="TEXT...",
    refine=all_of(name_first, arguments_from(1)),
)
_SCRIPT_NAMES = (
    "test t start stop build dev lint format typecheck type-check check clean preview serve watch coverage e2e".split()
)
_PNPM_COMMON = """
    -h|--help -v|--version -s|--silent -r|--recursive --filter|-F=TEXT -w|--workspace-root --stream --parallel --color
    --no-color --reporter=TEXT --loglevel=TEXT --if-present --no-bail --offline --prefer-offline --workspace-concurrency=TEXT
    -C|--dir=FOLDER --registry=CODE --script-shell=CODE --node-options=CODE --config=CODE --store-dir=WRITE_TREE
"""
_PNPM_CHANGE = runs(
    f"""
        {_PNPM_COMMON} -D|--save-dev -P|--save-prod -O|--save-optional -E|--save-exact -g|--global -f|--force --dev --prod
        --frozen-lockfile --no-frozen-lockfile --lockfile-only --no-lockfile --ignore-scripts --no-optional --latest -L
        --shamefully-hoist --strict-peer-dependencies --fix-lockfile --depth=TEXT --json --long --dry-run --tag=TEXT
    """,
    operands="TEXT...",
)
_PNPM = runs(
    _PNPM_COMMON,
    subcommands={
        "": ANYTHING_ELSE,
        **dict.fromkeys(_SCRIPT_NAMES, _SCRIPT),
        **dict.fromkeys(("run", "run-script", "exec", "dlx", "create"), _NAMED),
        **dict.fromkeys(
            "install i add remove rm uninstall update up dedupe import".split(),
            replace(_PNPM_CHANGE, refine=also_writes("package.json", "pnpm-lock.yaml")),
        ),
        **dict.fromkeys(
            "list ls why outdated audit licenses store prune rebuild fetch pack publish root bin".split(), _PNPM_CHANGE
        ),
    },
)
_YARN_COMMON = """
    -h|--help -v|--version -s|--silent --verbose --json --offline --non-interactive --no-progress --cwd=FOLDER
    --use-yarnrc=CODE --script-shell=CODE --registry=CODE --cache-folder=WRITE_TREE --modules-folder=WRITE_TREE
"""
_YARN_CHANGE = runs(
    f"""
        {_YARN_COMMON} -D|--dev -P|--peer -O|--optional -E|--exact -T|--tilde -W|--ignore-workspace-root-check --force
        --frozen-lockfile --immutable --pure-lockfile --production --check-files --ignore-scripts --ignore-engines --latest
        --mode=TEXT --depth=TEXT --pattern=TEXT -A|--all -R|--recursive
    """,
    operands="TEXT...",
)
_YARN_INSTALL = replace(_YARN_CHANGE, refine=also_writes("package.json", "yarn.lock"))
_YARN = runs(
    _YARN_COMMON,
    subcommands={
        "": _YARN_INSTALL,
        **dict.fromkeys(_SCRIPT_NAMES, _SCRIPT),
        **dict.fromkeys(("run", "exec", "dlx", "create", "node", "workspace", "workspaces"), _NAMED),
        **dict.fromkeys("install add remove up upgrade upgrade-interactive dedupe import".split(), _YARN_INSTALL),
        **dict.fromkeys(
            "list why info outdated audit licenses config cache version pack publish bin".split(), _YARN_CHANGE
        ),
    },
)

# --- What installs and switches versions of node and of package managers

_VERSIONS = runs(
    "-h|--help -v|--version --lts --latest --install-if-missing --default", operands="TEXT...", refine=arguments_from(1)
)

PROGRAMS: Mapping[str, Program] = {
    "npm": _NPM,
    **dict.fromkeys(("npx", "pnpx"), _NPX),
    "bunx": _BUNX,
    "pnpm": _PNPM,
    "yarn": _YARN,
    **dict.fromkeys(("corepack", "nvm", "fnm", "volta"), _VERSIONS),
}
