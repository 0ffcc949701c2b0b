"""Package managers of JavaScript (npm, pnpm, yarn), and tools that check, test and build JavaScript and TypeScript.

A project configures all of them. `.npmrc` names the registry, and npm expands environment variables in its address.
`.npmrc` can also make any npm command check for a newer npm (tested with npm 11.19), set the folders of cache and
logs, and name code that npm 6 loads (onload-script). `.yarnrc.yml` (yarnPath) and `package.json` (packageManager, for
corepack and pnpm) name the program that runs. So no package manager counts as one that only looks. The exceptions are
some npm commands without a `.npmrc`, and `npm --version`, which reads no configuration. The configuration of the tools
is code of the project, or names modules to load. The tools run it even to list or to check.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Parsed, PathUse, Program, Refine, Style, Use
from harness.programs.shared import (
    ANYTHING_ELSE,
    all_of,
    also_writes,
    arguments_from,
    name_first,
    no_files_of_words,
    one_of,
    read_alike,
    runs,
    written_by,
)
from harness.record import replace

# --- Package managers

# npm accepts long options with one dash, and abbreviations. So clusters are not read, and an option that is not listed
# here is a gap. Each npm command accepts every setting, and uses those that concern it.
_NPM_OPTIONS = """
    -h|--help -s|--silent -q|--quiet -d -dd --verbose --loglevel=TEXT --json --parseable -l|--long --color[=TEXT] --no-color
    --no-progress --no-fund --no-audit --no-update-notifier --offline --prefer-offline -y|--yes -n|--no -g|--global
    -w|--workspace=TEXT -ws|--workspaces --include-workspace-root --prefix|-C=FOLDER --cache=WRITE_TREE --location=TEXT
    --if-present --ignore-scripts --foreground-scripts
    -a|--all --depth=TEXT --omit=TEXT --include=TEXT --link --no-unicode --production --dev
    --legacy-peer-deps --strict-peer-deps --force|-f --dry-run --package-lock-only --no-package-lock --install-strategy=TEXT
    --engine-strict --save|-S --save-dev|-D --save-optional|-O --save-peer --save-exact|-E --save-prod|-P --no-save
    --save-prefix=TEXT --tag=TEXT --access=TEXT --otp=TEXT --allow-same-version --preid=TEXT -m=TEXT
    --script-shell=CODE --node-options=CODE --userconfig=CODE --globalconfig=CODE --registry=CODE --shell=CODE --git=CODE
    --node-gyp=CODE --init-module=CODE --https-proxy=CODE --proxy=CODE --cafile=READ
"""


def _shell_text(_parsed: Parsed, use: Use) -> Use:
    """Return a gap if sh and bash may read the text of `npx -c` differently. npx runs it with sh."""
    return use if all(map(read_alike, use.scripts)) else replace(use, gap="text that sh may read otherwise than bash")


def _npm(more: str = "", *, act: Act = Act.RUNS, refine: Refine | None = None) -> Program:
    """Return the model of subcommands of npm."""
    return Program(
        act=act, style=Style.SINGLE, network=True, options=f"{_NPM_OPTIONS} {more}", operands="TEXT...", refine=refine
    )


_NPM_SETTINGS = frozenset(
    "registry prefix cache globalconfig userconfig node-version npm-version engine-strict".split()
)
"""Settings that contain no password."""


def _npm_looks(parsed: Parsed, use: Use) -> Use:
    """Add the files that describe the package. A command that shows a setting that may be a password is CHANGES."""
    if parsed.program.endswith("config get") and not (parsed.operands and _NPM_SETTINGS.issuperset(parsed.operands)):
        return replace(use, act=Act.CHANGES, network=True)
    folder = use.obeys[0].removesuffix(".npmrc")
    names = ("package.json", "package-lock.json")
    files = (PathUse(word=f"{folder}{name}", access=Access.READ, upwards=True) for name in names)
    return replace(use, paths=(*use.paths, *files))


_NPM_LOOKS = Program(
    style=Style.SINGLE,
    options="""
        -s|--silent -q|--quiet --json -p|--parseable -l|--long -a|--all -g|--global --depth=TEXT --omit=TEXT --include=TEXT
        --link --no-color --color[=TEXT] --production --dev --prod -w|--workspace=TEXT -ws|--workspaces --offline
    """,
    operands="TEXT...",
    obeys=".npmrc",
    refine=_npm_looks,
)
_NPM = Program(
    style=Style.SINGLE,
    options=f"{_NPM_OPTIONS} -v|--version:info",
    subcommands={
        **dict.fromkeys("run run-script rum urn".split(), _npm(refine=arguments_from(1))),
        **dict.fromkeys("test t tst start stop restart".split(), _npm(refine=arguments_from(0))),
        **dict.fromkeys(
            (
                *"install i add in isntall uninstall un remove rm update up upgrade dedupe prune link install-test it".split(),
                "audit fix",
            ),
            _npm(refine=also_writes("package.json", "package-lock.json")),
        ),
        **dict.fromkeys(
            (
                *"ci clean-install install-ci-test rebuild".split(),
                *"init create version pack publish deprecate dist-tag shrinkwrap cache".split(),
            ),
            _npm(),
        ),
        **dict.fromkeys(
            (
                *"bin view info show v outdated query search ping whoami fund help doctor sbom".split(),
                *("config list", "config ls", "audit signatures"),
            ),
            _npm(act=Act.CHANGES),
        ),
        **dict.fromkeys((*"ls list la ll root prefix explain why".split(), "pkg get", "config get"), _NPM_LOOKS),
        "audit": replace(_npm(act=Act.CHANGES), operands=""),  # no operands, as `npm audit --json fix` changes files
        **dict.fromkeys(
            ("pkg set", "pkg delete", "pkg fix"), _npm(act=Act.CHANGES, refine=also_writes("package.json"))
        ),
        **dict.fromkeys(
            ("exec", "x"),
            _npm("--package|-p=TEXT --call|-c=SHELL", refine=all_of(arguments_from(1), _shell_text)),
        ),
    },
)

# The first operand is a package, or a program in node_modules. The following words are its arguments.
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

# --- pnpm and yarn: words after the name of a script are its arguments

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

# --- Tools

_SOURCES = tuple(
    "*.js *.jsx *.ts *.tsx *.mjs *.cjs *.mts *.cts *.vue *.svelte *.json *.md *.html *.css *.scss *.less *.yaml *.yml".split()
)


def _tsc(parsed: Parsed, use: Use) -> Use:
    """Refine tsc. tsconfig.json names the output files, even with --noEmit (tsBuildInfoFile, generateCpuProfile)."""
    if parsed.has("--noEmit") and "false" not in parsed.operands:  # `--noEmit false` turns it off
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.WRITE)), act=stricter(use.act, Act.WRITES))


_TSC = Program(
    act=Act.CHANGES,
    options="""
        -h|--help:info -v|--version:info --all --noEmit --strict --skipLibCheck --pretty
        -w|--watch --incremental --listFiles --listFilesOnly --showConfig --explainFiles --traceResolution
        --allowJs --checkJs --esModuleInterop --noImplicitAny --noUnusedLocals --noUnusedParameters --isolatedModules
        --resolveJsonModule --declaration --emitDeclarationOnly
        --sourceMap --extendedDiagnostics --diagnostics --noErrorTruncation
        -t|--target=TEXT -m|--module=TEXT --moduleResolution=TEXT --jsx=TEXT --lib=TEXT --types=TEXT --init:writes
        -b|--build:runs --force --clean --dry --verbose
        -p|--project=READ --rootDir=READ --baseUrl=READ --outDir=WRITE_TREE --outFile=WRITE --declarationDir=WRITE_TREE
        --tsBuildInfoFile=WRITE --generateTrace=WRITE_TREE --generateCpuProfile=WRITE --plugins=CODE
    """,
    refine=_tsc,
)


# --- Linters and formatters

_ESLINT = Program(
    act=Act.RUNS,
    options="""
        -h|--help -v|--version --fix --fix-dry-run --fix-type=TEXT --ext=TEXT --quiet --max-warnings=TEXT --cache
        --no-cache --cache-strategy=TEXT --cache-location|--cache-file=WRITE --ignore-pattern=TEXT --ignore-path=READ
        --no-ignore --no-eslintrc --no-inline-config --rule=TEXT --env=TEXT --global=TEXT --parser-options=TEXT --stdin
        --stdin-filename=TEXT --color --no-color --debug --report-unused-disable-directives --no-error-on-unmatched-pattern
        --exit-on-fatal-error --no-warn-ignored --pass-on-no-patterns --print-config=READ --env-info -o|--output-file=WRITE
        -f|--format=TEXT -c|--config=CODE --parser=CODE --plugin=CODE --rulesdir=CODE --resolve-plugins-relative-to=CODE
        --flag=CODE --init:gap
    """,
    refine=all_of(
        written_by("--fix", only=_SOURCES),
        one_of("-f", "stylish json json-with-metadata html unix compact tap junit checkstyle visualstudio jslint-xml"),
    ),
)
_PRETTIER = Program(
    act=Act.RUNS,
    options="""
        -h|--help -v|--version -c|--check -l|--list-different -w|--write -u|--ignore-unknown --no-config
        --config-precedence=TEXT --no-editorconfig --ignore-path=READ --with-node-modules --parser=TEXT --stdin-filepath=TEXT
        --print-width=TEXT --tab-width=TEXT --use-tabs --no-semi --single-quote --jsx-single-quote --quote-props=TEXT
        --trailing-comma=TEXT --no-bracket-spacing --bracket-same-line --arrow-parens=TEXT --prose-wrap=TEXT --end-of-line=TEXT
        --html-whitespace-sensitivity=TEXT --log-level|--loglevel=TEXT --no-color --color --cache --cache-strategy=TEXT
        --cache-location=WRITE --no-error-on-unmatched-pattern --find-config-path=READ --file-info=READ --support-info
        --config=CODE --plugin=CODE --plugin-search-dir=CODE
    """,
    refine=all_of(
        written_by("-w", only=_SOURCES),
        one_of(
            "--parser",
            "acorn angular babel babel-flow babel-ts css espree flow glimmer graphql html json json5 jsonc less lwc markdown "
            "mdx meriyah scss typescript vue yaml",
        ),
    ),
)
_STYLELINT = Program(
    act=Act.RUNS,
    options="""
        -h|--help -v|--version --fix --cache -q|--quiet --color --no-color --max-warnings=TEXT --ignore-pattern=TEXT
        --ignore-path|-i=READ --allow-empty-input|--aei -f|--formatter=TEXT -o|--output-file=WRITE --config|-c=CODE
        --custom-syntax=CODE --custom-formatter=CODE --config-basedir=CODE
    """,
    refine=all_of(written_by("--fix", only=_SOURCES), one_of("-f", "compact github json string tap unix verbose")),
)
_MARKDOWNLINT = Program(
    act=Act.RUNS,
    options="""
        -h|--help -V|--version -f|--fix -i|--ignore=TEXT -q|--quiet -o|--output=WRITE -c|--config=CODE
        -r|--rules=CODE
    """,
    refine=written_by("-f", only=("*.md", "*.markdown")),
)


# --- Tests

_VITEST = runs(
    """
        -h|--help -v|--version -t|--testNamePattern=TEXT -u|--update -w|--watch[=TEXT] --run --coverage[=TEXT]
        --coverage.enabled[=TEXT] --coverage.reporter=TEXT --reporter=TEXT --outputFile=WRITE --silent[=TEXT] --globals
        --bail=TEXT --retry=TEXT --shard=TEXT --project=TEXT --passWithNoTests --changed[=TEXT] --testTimeout=TEXT
        --no-color --no-threads --pool=TEXT --typecheck --logHeapUsage --allowOnly --hideSkippedTests --no-file-parallelism
        --dir=READ -c|--config=CODE -r|--root=CODE --environment=CODE --globalSetup=CODE --ui:gap --api[=TEXT]:gap
        --browser[=TEXT]:gap
    """,
    refine=one_of(
        "--reporter", "default basic verbose dot json junit tap tap-flat html blob hanging-process github-actions tree"
    ),
)
_MOCHA = runs(
    """
        -h|--help -V|--version -g|--grep=TEXT -f|--fgrep=TEXT -t|--timeout=TEXT -s|--slow=TEXT -b|--bail -C|--no-color
        -c|--color -i|--invert -w|--watch -j|--jobs=TEXT -p|--parallel --recursive --exit --forbid-only --dry-run --sort
        --check-leaks --full-trace --diff --no-diff --inline-diffs --retries=TEXT --ignore=TEXT --extension=TEXT
        -R|--reporter=TEXT
        -u|--ui=TEXT --spec=READ --file=SCRIPT -r|--require=CODE --config=CODE --package=CODE --opts=CODE
        -n|--node-option=CODE
    """,
    refine=all_of(
        one_of("-R", "dot doc html json json-stream landing list markdown min nyan progress spec tap xunit"),
        one_of("-u", "bdd tdd exports qunit"),
    ),
)
_BROWSER_TESTS = runs(
    """
        -h|--help -V|--version -g|--grep=TEXT --grep-invert=TEXT --project=TEXT --workers|-j=TEXT --retries=TEXT --headed
        --headless --list --max-failures=TEXT -x --timeout=TEXT --trace=TEXT --reporter=TEXT --shard=TEXT -u|--update-snapshots
        --with-deps -q|--quiet --spec|-s=READ -b|--browser=TEXT --e2e --component --output=WRITE_TREE -c|--config=CODE
        --config-file|-C=CODE
    """,
    operands="TEXT READ...",
    refine=all_of(
        one_of("--reporter", "list line dot html json junit blob github null spec"),
        one_of("-b", "chrome chromium firefox electron edge webkit cr ff wk all"),
    ),
)


PROGRAMS: Mapping[str, Program] = {
    "npm": _NPM,
    **dict.fromkeys(("npx", "pnpx"), _NPX),
    "bunx": _BUNX,
    "pnpm": _PNPM,
    "yarn": _YARN,
    "tsc": no_files_of_words(_TSC),
    "eslint": _ESLINT,
    "prettier": _PRETTIER,
    "stylelint": _STYLELINT,
    **dict.fromkeys(("markdownlint", "markdownlint-cli2"), _MARKDOWNLINT),
    "vitest": _VITEST,
    "mocha": _MOCHA,
    **dict.fromkeys(("playwright", "cypress"), _BROWSER_TESTS),
}
