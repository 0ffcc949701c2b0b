"""npm, and tools that check, test and build JavaScript and TypeScript. The other package managers are in asked.py.

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
from harness.programs.program import Parsed, PathUse, Program, Use
from harness.programs.rows import Rows
from harness.programs.shared import no_files_of_words, one_of, read_alike, written_by
from harness.record import replace

_NPM_SETTINGS = frozenset(
    "registry prefix cache globalconfig userconfig node-version npm-version engine-strict".split()
)
"""Settings that contain no password."""
_SOURCES = tuple(
    "*.js *.jsx *.ts *.tsx *.mjs *.cjs *.mts *.cts *.vue *.svelte *.json *.md *.html *.css *.scss *.less *.yaml *.yml".split()
)


def _shell_text(_parsed: Parsed, use: Use) -> Use:
    """Return a gap if sh and bash may read the text of `npx -c` differently. npx runs it with sh."""
    return use if all(map(read_alike, use.scripts)) else replace(use, gap="text that sh may read otherwise than bash")


def _npm_looks(parsed: Parsed, use: Use) -> Use:
    """Add the files that describe the package. A command that shows a setting that may be a password is CHANGES."""
    if parsed.program.endswith("config get") and not (parsed.operands and _NPM_SETTINGS.issuperset(parsed.operands)):
        return replace(use, act=Act.CHANGES, network=True)
    folder = use.obeys[0].removesuffix(".npmrc")
    names = ("package.json", "package-lock.json")
    files = (PathUse(word=f"{folder}{name}", access=Access.READ, upwards=True) for name in names)
    return replace(use, paths=(*use.paths, *files))


def _tsc(parsed: Parsed, use: Use) -> Use:
    """Refine tsc. tsconfig.json names the output files, even with --noEmit (tsBuildInfoFile, generateCpuProfile)."""
    if parsed.has("--noEmit") and "false" not in parsed.operands:  # `--noEmit false` turns it off
        return use
    return replace(use, paths=(*use.paths, PathUse(word=".", access=Access.WRITE)), act=stricter(use.act, Act.WRITES))


_ROWS = Rows(
    r"""
# npm accepts long options with one dash, and abbreviations. So clusters are not read, and an option that is not listed here
# is a gap. Each npm command accepts every setting, and uses those that concern it.
npm-options = -h|--help -s|--silent -q|--quiet -d -dd --verbose --loglevel=TEXT --json --parseable -l|--long --color[=TEXT]
    --no-color --no-progress --no-fund --no-audit --no-update-notifier --offline --prefer-offline -y|--yes -n|--no
    -g|--global -w|--workspace=TEXT -ws|--workspaces --include-workspace-root --prefix|-C=FOLDER --cache=WRITE_TREE
    --location=TEXT --if-present --ignore-scripts --foreground-scripts -a|--all --depth=TEXT --omit=TEXT --include=TEXT
    --link --no-unicode --production --dev --legacy-peer-deps --strict-peer-deps --force|-f --dry-run --package-lock-only
    --no-package-lock --install-strategy=TEXT --engine-strict --save|-S --save-dev|-D --save-optional|-O --save-peer
    --save-exact|-E --save-prod|-P --no-save --save-prefix=TEXT --tag=TEXT --access=TEXT --otp=TEXT --allow-same-version
    --preid=TEXT -m=TEXT --script-shell=CODE --node-options=CODE --userconfig=CODE --globalconfig=CODE --registry=CODE
    --shell=CODE --git=CODE --node-gyp=CODE --init-module=CODE --https-proxy=CODE --proxy=CODE --cafile=READ
npm : looks single : READ... : npm-options -v|--version:info
npm run, run-script, rum, urn : runs net single arguments=1 : TEXT... : npm-options
npm test, t, tst, start, stop, restart : runs net single arguments=0 : TEXT... : npm-options
npm install, i, add, in, isntall, uninstall, un, remove, rm, update, up, upgrade, dedupe, prune, link, install-test, it,
    audit fix : runs net single also=package.json,package-lock.json : TEXT... : npm-options
npm ci, clean-install, install-ci-test, rebuild, init, create, version, pack, publish, deprecate, dist-tag, shrinkwrap,
    cache : runs net single : TEXT... : npm-options
npm bin, view, info, show, v, outdated, query, search, ping, whoami, fund, help, doctor, sbom, config list, config ls, audit
    signatures : changes net single : TEXT... : npm-options
npm ls, list, la, ll, root, prefix, explain, why, pkg get, config get : looks obeys=.npmrc single npm-looks : TEXT... :
    -s|--silent -q|--quiet --json -p|--parseable -l|--long -a|--all -g|--global --depth=TEXT --omit=TEXT --include=TEXT
    --link --no-color --color[=TEXT] --production --dev --prod -w|--workspace=TEXT -ws|--workspaces --offline
# `npm audit` without operands, as `npm audit --json fix` changes files
npm audit : changes net single : - : npm-options
npm pkg set, pkg delete, pkg fix : changes net single also=package.json : TEXT... : npm-options
npm exec, x : runs net single arguments=1 shell : TEXT... : npm-options --package|-p=TEXT --call|-c=SHELL

# The first operand is a package, or a program in node_modules. The following words are its arguments.
npx/pnpx : runs net posix arguments=1 shell : COMMAND... : -h|--help -v|--version -y|--yes -n|--no|--no-install -q|--quiet
    -p|--package=TEXT -c|--call=SHELL --prefer-offline
bunx : runs net posix arguments=1 shell : COMMAND... : -h|--help --version --bun -p|--package=TEXT --silent --verbose

# Linters, formatters and tests
tsc : changes tsc : READ... : -h|--help:info -v|--version:info --all --noEmit --strict --skipLibCheck --pretty -w|--watch
    --incremental --listFiles --listFilesOnly --showConfig --explainFiles --traceResolution --allowJs --checkJs
    --esModuleInterop --noImplicitAny --noUnusedLocals --noUnusedParameters --isolatedModules --resolveJsonModule
    --declaration --emitDeclarationOnly --sourceMap --extendedDiagnostics --diagnostics --noErrorTruncation -t|--target=TEXT
    -m|--module=TEXT --moduleResolution=TEXT --jsx=TEXT --lib=TEXT --types=TEXT --init:writes -b|--build:runs --force
    --clean --dry --verbose -p|--project=READ --rootDir=READ --baseUrl=READ --outDir=WRITE_TREE --outFile=WRITE
    --declarationDir=WRITE_TREE --tsBuildInfoFile=WRITE --generateTrace=WRITE_TREE --generateCpuProfile=WRITE --plugins=CODE
eslint : runs fixes eslint-formats : READ... : -h|--help -v|--version --fix --fix-dry-run --fix-type=TEXT --ext=TEXT --quiet
    --max-warnings=TEXT --cache --no-cache --cache-strategy=TEXT --cache-location|--cache-file=WRITE --ignore-pattern=TEXT
    --ignore-path=READ --no-ignore --no-eslintrc --no-inline-config --rule=TEXT --env=TEXT --global=TEXT
    --parser-options=TEXT --stdin --stdin-filename=TEXT --color --no-color --debug --report-unused-disable-directives
    --no-error-on-unmatched-pattern --exit-on-fatal-error --no-warn-ignored --pass-on-no-patterns --print-config=READ
    --env-info -o|--output-file=WRITE -f|--format=TEXT -c|--config=CODE --parser=CODE --plugin=CODE --rulesdir=CODE
    --resolve-plugins-relative-to=CODE --flag=CODE --init:gap
prettier : runs written prettier-parsers : READ... : -h|--help -v|--version -c|--check -l|--list-different -w|--write
    -u|--ignore-unknown --no-config --config-precedence=TEXT --no-editorconfig --ignore-path=READ --with-node-modules
    --parser=TEXT --stdin-filepath=TEXT --print-width=TEXT --tab-width=TEXT --use-tabs --no-semi --single-quote
    --jsx-single-quote --quote-props=TEXT --trailing-comma=TEXT --no-bracket-spacing --bracket-same-line --arrow-parens=TEXT
    --prose-wrap=TEXT --end-of-line=TEXT --html-whitespace-sensitivity=TEXT --log-level|--loglevel=TEXT --no-color --color
    --cache --cache-strategy=TEXT --cache-location=WRITE --no-error-on-unmatched-pattern --find-config-path=READ
    --file-info=READ --support-info --config=CODE --plugin=CODE --plugin-search-dir=CODE
stylelint : runs fixes stylelint-formats : READ... : -h|--help -v|--version --fix --cache -q|--quiet --color --no-color
    --max-warnings=TEXT --ignore-pattern=TEXT --ignore-path|-i=READ --allow-empty-input|--aei -f|--formatter=TEXT
    -o|--output-file=WRITE --config|-c=CODE --custom-syntax=CODE --custom-formatter=CODE --config-basedir=CODE
markdownlint/markdownlint-cli2 : runs markdown : READ... : -h|--help -V|--version -f|--fix -i|--ignore=TEXT -q|--quiet
    -o|--output=WRITE -c|--config=CODE -r|--rules=CODE
vitest : runs net vitest-reporters : READ... : -h|--help -v|--version -t|--testNamePattern=TEXT -u|--update
    -w|--watch[=TEXT] --run --coverage[=TEXT] --coverage.enabled[=TEXT] --coverage.reporter=TEXT --reporter=TEXT
    --outputFile=WRITE --silent[=TEXT] --globals --bail=TEXT --retry=TEXT --shard=TEXT --project=TEXT --passWithNoTests
    --changed[=TEXT] --testTimeout=TEXT --no-color --no-threads --pool=TEXT --typecheck --logHeapUsage --allowOnly
    --hideSkippedTests --no-file-parallelism --dir=READ -c|--config=CODE -r|--root=CODE --environment=CODE
    --globalSetup=CODE --ui:gap --api[=TEXT]:gap --browser[=TEXT]:gap
mocha : runs net mocha-reporters mocha-interfaces : READ... : -h|--help -V|--version -g|--grep=TEXT -f|--fgrep=TEXT
    -t|--timeout=TEXT -s|--slow=TEXT -b|--bail -C|--no-color -c|--color -i|--invert -w|--watch -j|--jobs=TEXT -p|--parallel
    --recursive --exit --forbid-only --dry-run --sort --check-leaks --full-trace --diff --no-diff --inline-diffs
    --retries=TEXT --ignore=TEXT --extension=TEXT -R|--reporter=TEXT -u|--ui=TEXT --spec=READ --file=SCRIPT
    -r|--require=CODE --config=CODE --package=CODE --opts=CODE -n|--node-option=CODE
playwright/cypress : runs net browser-reporters browsers : TEXT READ... : -h|--help -V|--version -g|--grep=TEXT
    --grep-invert=TEXT --project=TEXT --workers|-j=TEXT --retries=TEXT --headed --headless --list --max-failures=TEXT -x
    --timeout=TEXT --trace=TEXT --reporter=TEXT --shard=TEXT -u|--update-snapshots --with-deps -q|--quiet --spec|-s=READ
    -b|--browser=TEXT --e2e --component --output=WRITE_TREE -c|--config=CODE --config-file|-C=CODE
""",
    {
        "shell": _shell_text,
        "npm-looks": _npm_looks,
        "tsc": _tsc,
        "fixes": written_by("--fix", only=_SOURCES),
        "written": written_by("-w", only=_SOURCES),
        "markdown": written_by("-f", only=("*.md", "*.markdown")),
        "eslint-formats": one_of(
            "-f", "stylish json json-with-metadata html unix compact tap junit checkstyle visualstudio jslint-xml"
        ),
        "prettier-parsers": one_of(
            "--parser",
            "acorn angular babel babel-flow babel-ts css espree flow glimmer graphql html json json5 jsonc less lwc markdown "
            "mdx meriyah scss typescript vue yaml",
        ),
        "stylelint-formats": one_of("-f", "compact github json string tap unix verbose"),
        "vitest-reporters": one_of(
            "--reporter",
            "default basic verbose dot json junit tap tap-flat html blob hanging-process github-actions tree",
        ),
        "mocha-reporters": one_of(
            "-R", "dot doc html json json-stream landing list markdown min nyan progress spec tap xunit"
        ),
        "mocha-interfaces": one_of("-u", "bdd tdd exports qunit"),
        "browser-reporters": one_of("--reporter", "list line dot html json junit blob github null spec"),
        "browsers": one_of("-b", "chrome chromium firefox electron edge webkit cr ff wk all"),
    },
)

PROGRAMS: Mapping[str, Program] = {**_ROWS, "tsc": no_files_of_words(_ROWS["tsc"])}
