"""Models of the tools that check and format Python code; data, and what their tables cannot say.

Those that load plugins, or that are steered by code, run it, whatever is asked of them: `RUNS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.model import Parsed, PathUse, Program, Use
from harness.programs.options import stricter
from harness.programs.tables import as_trees, here_by_default, no_files_of_words, one_of, operands_written
from harness.record import replace

# What ruff opens below a folder, as seen with ruff 0.17; `--extension env:python` adds .env and all files so named.
_PYTHON_FILES = ("*.py", "*.pyi", "*.pyw", "*.ipynb", "*.md", "*.markdown", "pyproject.toml", "ruff.toml", ".ruff.toml")


# --- ruff


def _ruff(parsed: Parsed, use: Use, *, writes: bool) -> Use:
    """Take ruff for a reader only where it is told to heed no configuration and to keep no cache.

    Configuration may fix files by itself (`fix = true`), keep the cache anywhere (`cache-dir`), and `extend` any file, of
    which the line that is no TOML is then shown. All of that was seen with ruff 0.17.
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
    """Without --check or --diff the files are written. Its cache in the user's cache folder is no effect."""
    if parsed.has("--check", "--diff"):
        return as_trees(parsed, use)
    return as_trees(parsed, operands_written(parsed, use, Act.CHANGES), _PYTHON_FILES)


# The configuration of black cannot name code or files, but it can widen `include` to all files below an operand; what
# cannot be parsed is shown. Hence whole trees. Options of the command line are stronger than it.
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
# isort runs git where the configuration says skip_gitignore, and git runs what the repository's configuration says.
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
# The configuration of these names plugins, formatters, or further files and folders to read or write.
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
_PYRIGHT = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -w|--watch --stats --verbose --outputjson --warnings --skipunannotated --dependencies
        --level=TEXT --threads=TEXT --pythonversion=TEXT --pythonplatform=TEXT -p|--project=CODE --pythonpath=CODE
        -v|--venvpath|--venv-path=CODE -t|--typeshedpath|--typeshed-path=READ
    """,
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
}
