"""Tools that check, test and build JavaScript and TypeScript.

Their configuration is code of the project, or names modules that they load: they run it, also to list or to check.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Parsed, PathUse, Program, Use
from harness.programs.shared import all_of, arguments_from, no_files_of_words, one_of, runs, written_by
from harness.record import replace

_SOURCES = tuple(
    "*.js *.jsx *.ts *.tsx *.mjs *.cjs *.mts *.cts *.vue *.svelte *.json *.md *.html *.css *.scss *.less *.yaml *.yml".split()
)


def _tsc(parsed: Parsed, use: Use) -> Use:
    """What is written where stands in tsconfig.json: with --noEmit too, namely tsBuildInfoFile and generateCpuProfile."""
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

_JEST = runs("""
        -h|--help -v|--version -t|--testNamePattern=TEXT --testPathPattern|--testPathPatterns=TEXT
        --testPathIgnorePatterns=TEXT -i|--runInBand -u|--updateSnapshot --coverage[=TEXT] --collectCoverage
        --collectCoverageFrom=TEXT --coverageReporters=TEXT --coverageDirectory=WRITE_TREE --watch --watchAll[=TEXT] --ci
        --silent --verbose[=TEXT] -b|--bail[=TEXT] -w|--maxWorkers=TEXT --passWithNoTests --json --outputFile=WRITE
        --detectOpenHandles --forceExit --no-cache --clearCache --listTests -o|--onlyChanged --onlyFailures|-f
        --findRelatedTests --selectProjects=TEXT --shard=TEXT --testTimeout=TEXT --color --colors --no-color --expand|-e
        --noStackTrace --logHeapUsage --showConfig --runTestsByPath --changedSince=TEXT
        -c|--config=CODE --rootDir=CODE --env=CODE --reporters=CODE --setupFiles=CODE --globalSetup=CODE --transform=CODE
        --runner=CODE --resolver=CODE
    """)
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
_AVA = runs("""
        --help --version -m|--match=TEXT -v|--verbose -s|--serial -u|--update-snapshots -t|--tap -T|--timeout=TEXT
        --fail-fast --config=CODE
    """)
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


# --- Bundlers, frameworks, task runners, servers

_BUNDLER = runs(
    """
        -h|--help -v|--version -w|--watch --mode=TEXT --debug --verbose --silent --prod --production --no-color --color
        --bundle --minify[=TEXT] --sourcemap[=TEXT] --format=TEXT --platform=TEXT --target=TEXT --external:gap --all
        --port=TEXT --host[=TEXT] --open --strictPort --clearScreen=TEXT --emptyOutDir --parallel=TEXT --skip-nx-cache
        --force --no-cache --filter=TEXT --concurrency=TEXT --since=TEXT --scope=TEXT --turbo --turbopack --lint --fix
        --outdir|--outDir=WRITE_TREE --outfile=WRITE -c|--config=CODE --plugin=CODE -p|--require:gap
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
_SERVER = runs(
    """
        -h|--help -v|--version -p|--port=TEXT -l|--listen=TEXT -s|--single -c=TEXT -e|--ext=TEXT -w|--watch=READ
        -q|--quiet -o:gap -x|--exec=CODE -r|--require=CODE --config=CODE
    """,
    operands="SCRIPT TEXT...",
    refine=arguments_from(1),
)

PROGRAMS: Mapping[str, Program] = {
    "tsc": no_files_of_words(_TSC),
    "eslint": _ESLINT,
    "prettier": _PRETTIER,
    "stylelint": _STYLELINT,
    **dict.fromkeys(("markdownlint", "markdownlint-cli2"), _MARKDOWNLINT),
    "jest": _JEST,
    "vitest": _VITEST,
    "mocha": _MOCHA,
    "ava": _AVA,
    **dict.fromkeys(("playwright", "cypress"), _BROWSER_TESTS),
    **dict.fromkeys("vite webpack rollup esbuild next ng nx turbo lerna gulp grunt".split(), _BUNDLER),
    **dict.fromkeys(("nodemon", "serve", "http-server"), _SERVER),
}
