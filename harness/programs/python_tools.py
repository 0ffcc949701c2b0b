"""Tools that check, format, test and document Python code, and that run hooks and applications.

A tool that loads plugins, code as its configuration, or the project itself is `RUNS` with any words.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Style, Unknown, Use
from harness.programs.shared import (
    ANYTHING_ELSE,
    arguments_from,
    as_trees,
    here_by_default,
    no_files_of_words,
    one_of,
    operands_written,
    runs,
)
from harness.record import replace

# --- Checkers and formatters

# Files that ruff opens below a folder (tested with ruff 0.17). `--extension env:python` adds files such as .env.
_PYTHON_FILES = ("*.py", "*.pyi", "*.pyw", "*.ipynb", "*.md", "*.markdown", "pyproject.toml", "ruff.toml", ".ruff.toml")


# --- ruff


def _ruff(parsed: Parsed, use: Use, *, writes: bool) -> Use:
    """Refine ruff. It is `LOOKS` only with both --isolated, which ignores the configuration, and --no-cache.

    The configuration can make it fix files (`fix = true`), write its cache anywhere (`cache-dir`), and `extend` any
    file, of which it prints the first line that is not TOML. All tested with ruff 0.17.
    """
    if any("=" in value for value in parsed.values("--config")):
        return replace(use, gap="--config sets an option")
    parsed, use = here_by_default(parsed, use)
    if writes:
        use = operands_written(parsed, use)
    use = as_trees(parsed, use, () if parsed.has("--extension") else _PYTHON_FILES)
    if parsed.has("--isolated") and parsed.has("--no-cache") and not parsed.has("--config"):
        return use
    cache = () if parsed.has("--no-cache") else (PathUse(word=".ruff_cache", access=Access.WRITE, tree=True),)
    return replace(use, paths=(*use.paths, *cache), act=stricter(use.act, Act.CHANGES))


def _ruff_check(parsed: Parsed, use: Use) -> Use:
    return _ruff(parsed, use, writes=parsed.has("--fix", "--fix-only", "--add-noqa"))


def _ruff_format(parsed: Parsed, use: Use) -> Use:
    return _ruff(parsed, use, writes=not parsed.has("--check", "--diff"))


_RUFF_COMMON = """
    -h|--help:info -v|--verbose -q|--quiet -s|--silent --no-cache|-n --isolated --preview --no-preview --config=READ
    --color=TEXT --target-version=TEXT --line-length=TEXT --exclude=TEXT --extend-exclude=TEXT --extension=TEXT
    --output-format=TEXT --stdin-filename=TEXT --respect-gitignore --no-respect-gitignore --force-exclude --no-force-exclude
    --cache-dir=WRITE_TREE
"""
_RUFF_CHECK = Program(
    options=f"""
        {_RUFF_COMMON} -e|--exit-zero --exit-non-zero-on-fix --no-fix --no-fix-only --diff --statistics --show-files
        --show-settings --show-fixes --no-show-fixes --ignore-noqa --unsafe-fixes --no-unsafe-fixes -w|--watch
        --select=TEXT --ignore=TEXT --extend-select=TEXT --extend-ignore=TEXT --per-file-ignores=TEXT
        --extend-per-file-ignores=TEXT --fixable=TEXT --unfixable=TEXT --extend-fixable=TEXT
        --fix --fix-only --add-noqa[=TEXT] -o|--output-file=WRITE
    """,
    refine=_ruff_check,
)
_RUFF_FORMAT = Program(
    options=f"{_RUFF_COMMON} --check --diff --range=TEXT --exit-non-zero-on-format", refine=_ruff_format
)
_RUFF_TELLS = Program(options="-h|--help:info --all --output-format=TEXT", operands="TEXT...")
_RUFF = Program(
    options="""
        -V|--version:info -h|--help:info -v|--verbose -q|--quiet -s|--silent --isolated --color=TEXT --config=CODE
    """,
    subcommands={
        "check": _RUFF_CHECK,
        "format": _RUFF_FORMAT,
        **dict.fromkeys(("rule", "linter", "config", "version", "help"), _RUFF_TELLS),
        "clean": Program(act=Act.CHANGES, options="-h|--help:info -q|--quiet -v|--verbose", operands=""),
    },
)


# --- Other formatters and linters


def _black(parsed: Parsed, use: Use) -> Use:
    """Refine black. Without --check or --diff it writes the files. Its cache in the user's cache folder is ignored."""
    if parsed.has("--check", "--diff"):
        return as_trees(parsed, use)
    return as_trees(parsed, operands_written(parsed, use, Act.CHANGES), _PYTHON_FILES)


# The configuration of black cannot name code or files, but its `include` may match all files below an operand, and
# black prints lines that it cannot parse. So it reads whole trees. Options of the command override the configuration.
_BLACK = Program(
    options="""
        -h|--help:info --version:info -q|--quiet -v|--verbose --check --diff --color --no-color --fast --safe --pyi --ipynb
        -S|--skip-string-normalization -C|--skip-magic-trailing-comma -x|--skip-source-first-line --preview --unstable
        --enable-unstable-feature=TEXT --no-cache -l|--line-length=TEXT -t|--target-version=TEXT --include=TEXT --exclude=TEXT
        --extend-exclude=TEXT --force-exclude=TEXT --stdin-filename=TEXT -W|--workers=TEXT --line-ranges=TEXT
        --required-version=TEXT -c|--code=TEXT --config=READ
    """,
    refine=_black,
)
# isort runs git if the configuration sets skip_gitignore, and git runs programs that the repository's configuration
# names.
_ISORT = Program(
    act=Act.RUNS,
    options="""
        -h|--help -V|--version --vn|--version-number -v|--verbose -q|--quiet -c|--check|--check-only --diff --df --color
        --profile=TEXT -l|--line-length|--line-width=TEXT --skip=TEXT --skip-glob=TEXT --filter-files --gitignore --float-to-top
        --src=READ --py|--python-version=TEXT --show-files --settings-path|--settings-file|--sp=CODE -a|--add-import=TEXT
        -p|--project=TEXT -j|--jobs=TEXT --stdout -d --atomic --overwrite-in-place
    """,
    operands="EITHER...",
)
_FLAKE8 = Program(
    act=Act.RUNS,
    options="""
        -h|--help --version -v|--verbose -q|--quiet --count --exclude=TEXT --extend-exclude=TEXT --filename=TEXT --format=TEXT
        --select=TEXT --extend-select=TEXT --ignore=TEXT --extend-ignore=TEXT --per-file-ignores=TEXT --max-line-length=TEXT
        --max-complexity=TEXT --max-doc-length=TEXT --show-source --statistics --exit-zero -j|--jobs=TEXT --benchmark --isolated
        --output-file=WRITE --tee --config=CODE --append-config=CODE --enable-extensions=CODE
    """,
)
_PYLINT = Program(
    act=Act.RUNS,
    options="""
        -h|--help --version -v|--verbose -E|--errors-only -r|--reports=TEXT -s|--score=TEXT -f|--output-format=TEXT
        -j|--jobs=TEXT -d|--disable=TEXT -e|--enable=TEXT --ignore=TEXT --ignore-patterns=TEXT --ignore-paths=TEXT
        --max-line-length=TEXT --recursive=TEXT --fail-under=TEXT --fail-on=TEXT --exit-zero --msg-template=TEXT
        --py-version=TEXT
        --list-msgs --help-msg=TEXT --from-stdin --output=WRITE --rcfile=CODE --load-plugins=CODE --init-hook=CODE
    """,
    refine=one_of("-f", "text parseable colorized msvs json json2 github"),
)
_CHECKERS = """
    -h|--help --version -v|--verbose -q|--quiet -r|--recursive -x|--exclude=TEXT -f|--format=TEXT -l|--level -i|--confidence
    -s|--skip=TEXT -t|--tests=TEXT --min-confidence=TEXT --sort-by-size -o|--output=WRITE -c|--configfile=CODE
    --config=CODE --ini=CODE
"""
# The configuration of these checkers names plugins, formatters, or other files and folders to read or write.
_CHECKER = Program(act=Act.RUNS, options=_CHECKERS)
_MYPY = Program(
    act=Act.RUNS,
    options="""
        -h|--help:info -V|--version:info -v|--verbose -m|--module=TEXT -p|--package=TEXT -c|--command=TEXT -O|--output=TEXT
        --strict --pretty --no-pretty --no-color-output --no-error-summary --show-error-codes --hide-error-codes
        --show-error-context --show-column-numbers --show-error-end --show-absolute-path --show-error-code-links
        --show-traceback|--tb --ignore-missing-imports --follow-imports=TEXT --follow-untyped-imports --no-site-packages
        --namespace-packages --no-namespace-packages --explicit-package-bases --python-version=TEXT --platform=TEXT
        --exclude=TEXT --exclude-gitignore --no-incremental --no-strict-optional --implicit-optional --no-implicit-optional
        --disallow-untyped-defs --disallow-untyped-calls --disallow-any-generics --disallow-incomplete-defs
        --check-untyped-defs --warn-unused-ignores --warn-redundant-casts --warn-return-any --warn-unreachable
        --warn-unused-configs --no-warn-no-return --strict-equality --extra-checks --allow-redefinition --no-implicit-reexport
        --disable-error-code=TEXT --enable-error-code=TEXT --always-true=TEXT --always-false=TEXT --sqlite-cache
        --skip-version-check --non-interactive --scripts-are-modules --cache-dir=WRITE_TREE --junit-xml=WRITE
        --html-report=WRITE_TREE --txt-report=WRITE_TREE --xml-report=WRITE_TREE --cobertura-xml-report=WRITE_TREE
        --any-exprs-report=WRITE_TREE --linecount-report=WRITE_TREE --lineprecision-report=WRITE_TREE
        --custom-typeshed-dir=READ --install-types:gap --pdb:gap --config-file=CODE --python-executable=CODE
    """,
)
_PYRIGHT = runs("""
        -h|--help --version -w|--watch --stats --verbose --outputjson --warnings --skipunannotated --dependencies
        --level=TEXT --threads=TEXT --pythonversion=TEXT --pythonplatform=TEXT -p|--project=CODE --pythonpath=CODE
        -v|--venvpath|--venv-path=CODE -t|--typeshedpath|--typeshed-path=READ
    """)


# --- Test runners


def _pytest(parsed: Parsed, use: Use) -> Use:
    """Refine pytest. Reduce node IDs to their files, accept `-p no:NAME`, and add the folders of coverage reports."""
    if any(isinstance(name, Unknown | Found) or not name.startswith("no:") for name in parsed.values("-p")):
        return replace(use, gap="-p loads a plugin")
    paths = [replace(path, word=path.word.partition("::")[0]) for path in use.paths]
    for report in parsed.values("--cov-report"):
        if isinstance(report, Unknown | Found):
            return replace(use, gap=f"where {report} is written is not known")
        if ":" in report:
            paths.append(PathUse(word=report.partition(":")[2], access=Access.WRITE, tree=True))
    return replace(use, paths=tuple(paths))


# Even `pytest --version` reads the configuration and loads plugins (before pytest 8.4).
_PYTEST = runs(
    """
        -q|--quiet -v|--verbose -s -x|--exitfirst -l|--showlocals -h|--help -V|--version --no-showlocals --verbosity=TEXT
        -k=TEXT -m=TEXT -r|--report-chars=TEXT -W|--pythonwarnings=TEXT -p=TEXT -n|--numprocesses=TEXT --dist=TEXT
        --maxfail=TEXT --max-warnings=TEXT --lf|--last-failed --ff|--failed-first --nf|--new-first --sw|--stepwise
        --sw-skip|--stepwise-skip --lfnf|--last-failed-no-failures=TEXT --cache-clear --cache-show[=TEXT]
        --tb=TEXT --color=TEXT --code-highlight=TEXT --capture=TEXT --show-capture=TEXT --full-trace --durations=TEXT
        --durations-min=TEXT --no-header --no-summary --disable-warnings|--disable-pytest-warnings --runxfail
        --co|--collect-only --ignore=TEXT --ignore-glob=TEXT --deselect=TEXT --noconftest --import-mode=TEXT --markers
        --fixtures|--funcargs --fixtures-per-test --strict --strict-markers --strict-config --setup-show --setup-plan
        --setup-only --continue-on-collection-errors --doctest-modules --doctest-glob=TEXT --assert=TEXT --log-level=TEXT
        --log-cli-level=TEXT --timeout=TEXT --reruns=TEXT --randomly-seed=TEXT --asyncio-mode=TEXT --hypothesis-seed=TEXT
        --hypothesis-profile=TEXT --hypothesis-show-statistics --benchmark-only --benchmark-skip
        --cov[=READ] --cov-report=TEXT --cov-branch --no-cov --cov-append --cov-fail-under=TEXT
        --junit-xml|--junitxml=WRITE --junit-prefix=TEXT --log-file=WRITE --basetemp=WRITE_TREE
        --pyargs:gap --pdb:gap --trace:gap --pastebin=TEXT:gap --debug[=WRITE]:gap
        -c|--config-file=CODE --rootdir=CODE --confcutdir=CODE -o|--override-ini=CODE --cov-config=CODE --pdbcls=CODE
    """,
    refine=_pytest,
)

_TOX = runs(
    """
        -h|--help --version -v|--verbose -q|--quiet -l|--list -a|--listenvs-all -r|--recreate -p|--parallel[=TEXT] -e=TEXT
        -m=TEXT -f=TEXT --notest --skip-pkg-install --skip-missing-interpreters[=TEXT] --sitepackages --workdir=WRITE_TREE
        -c|--conf=CODE -x|--override=CODE
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
_NOX = runs(
    """
        -h|--help --version -v|--verbose -l|--list -s|-e|--session|--sessions=TEXT -k|--keywords=TEXT -t|--tags=TEXT
        -p|--python|--pythons=TEXT -r|--reuse-existing-virtualenvs -R -x|--stop-on-first-error --no-install -f|--noxfile=SCRIPT
    """,
    operands="TEXT...",
    refine=arguments_from(0),
)


# --- Coverage, documentation, applications

_COVERAGE_COMMON = (
    "-h|--help -q|--quiet --debug=TEXT -i|--ignore-errors --include=TEXT --omit=TEXT --rcfile=CODE --data-file=EITHER"
)
# The configuration of coverage names plugins, and its data files name the files to read.
_COVERAGE_REPORT = Program(
    act=Act.RUNS,
    options=f"""
        {_COVERAGE_COMMON} -m|--show-missing --skip-covered --no-skip-covered --skip-empty --precision=TEXT --sort=TEXT
        --format=TEXT --fail-under=TEXT --contexts=TEXT --show-contexts --title=TEXT --pretty-print -d|--directory=WRITE_TREE
        -o=WRITE
    """,
    operands="READ...",
)
_COVERAGE = Program(
    act=Act.RUNS,
    options="--version -h|--help",
    subcommands={
        "": ANYTHING_ELSE,
        "run": runs(
            f"""
                {_COVERAGE_COMMON} -a|--append --branch -p|--parallel-mode --source=TEXT --timid -m|--module:instead
            """,
            style=Style.POSIX,
            operands="(SCRIPT) TEXT...",
            refine=arguments_from(1),
        ),
        **dict.fromkeys(("report", "html", "xml", "json", "lcov", "combine", "annotate"), _COVERAGE_REPORT),
        "erase": Program(act=Act.RUNS, options=_COVERAGE_COMMON, operands=""),
    },
)
_PRE_COMMIT = runs(
    "-h|--help -V|--version",
    subcommands=dict.fromkeys(
        "run install uninstall autoupdate install-hooks clean gc validate-config validate-manifest sample-config".split(),
        Program(
            act=Act.RUNS,
            options="""
                -h|--help -v|--verbose -a|--all-files --show-diff-on-failure --color=TEXT --hook-stage=TEXT -t|--hook-type=TEXT
                -f|--overwrite --install-hooks --freeze --repo=TEXT -j|--jobs=TEXT --from-ref|--source=TEXT
                --to-ref|--origin=TEXT
                -c|--config=CODE
            """,
            operands="TEXT...",
        ),
    ),
)
_SPHINX = runs(
    """
        -h|--help --version -b|--builder=TEXT -M=TEXT -a|--write-all -E|--fresh-env -j|--jobs=TEXT -n|--nitpicky -q|--quiet
        -Q|--silent -v|--verbose -W|--fail-on-warning -T|--show-traceback --keep-going -t|--tag=TEXT -w|--warning-file=WRITE
        -d|--doctree-dir=WRITE_TREE -c|--conf-dir=CODE -D|--define=CODE -A|--html-define=TEXT
    """,
    operands="READ WRITE_TREE READ...",
)
_MKDOCS = runs(
    subcommands=dict.fromkeys(
        ("build", "serve", "gh-deploy", "new"),
        Program(
            act=Act.RUNS,
            options="""
                -h|--help -q|--quiet -v|--verbose -s|--strict -c|--clean --dirty -t|--theme=TEXT -a|--dev-addr=TEXT
                -d|--site-dir=WRITE_TREE -f|--config-file=CODE
            """,
            operands="WRITE_TREE...",
        ),
    )
)
_APPLICATION = runs(
    """
        -h|--help --version -v|--verbosity=TEXT --traceback --no-color --settings=CODE --pythonpath=CODE
        -c|--config=CODE
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
# These run code from a file, a notebook, or the words of the command.
_NOTEBOOK = runs(
    """
        -h|--help --version --no-banner --to=TEXT --execute --inplace:inplace --output=WRITE -c:gap -m:gap -i:gap
    """,
    operands="TEXT...",
    refine=arguments_from(0),
)


PROGRAMS: Mapping[str, Program] = {
    "ruff": no_files_of_words(_RUFF),
    "black": _BLACK,
    "isort": _ISORT,
    "flake8": _FLAKE8,
    "pylint": no_files_of_words(_PYLINT),
    **dict.fromkeys(("bandit", "vulture"), _CHECKER),
    "mypy": no_files_of_words(_MYPY),
    **dict.fromkeys(("pyright", "basedpyright"), _PYRIGHT),
    "pytest": no_files_of_words(_PYTEST),
    "py.test": no_files_of_words(_PYTEST),
    "tox": _TOX,
    "nox": _NOX,
    "coverage": _COVERAGE,
    "pre-commit": _PRE_COMMIT,
    "sphinx-build": no_files_of_words(_SPHINX),
    "mkdocs": _MKDOCS,
    **dict.fromkeys(("alembic", "django-admin"), _APPLICATION),
    **dict.fromkeys(("ipython", "ipython3", "jupyter"), _NOTEBOOK),
}
