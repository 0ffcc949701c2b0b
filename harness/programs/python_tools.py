"""Tools that check, format, test and document Python code. Others are rows of asked.py.

A tool that loads plugins, code as its configuration, or the project itself is `RUNS` with any words.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.options import stricter
from harness.programs.program import Found, Parsed, PathUse, Program, Unknown, Use
from harness.programs.rows import Rows
from harness.programs.shared import as_trees, here_by_default, no_files_of_words, one_of, operands_written
from harness.record import replace

# Files that ruff opens below a folder (tested with ruff 0.17). `--extension env:python` adds files such as .env.
_PYTHON_FILES = ("*.py", "*.pyi", "*.pyw", "*.ipynb", "*.md", "*.markdown", "pyproject.toml", "ruff.toml", ".ruff.toml")


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


def _black(parsed: Parsed, use: Use) -> Use:
    """Refine black. Without --check or --diff it writes the files. Its cache in the user's cache folder is ignored."""
    if parsed.has("--check", "--diff"):
        return as_trees(parsed, use)
    return as_trees(parsed, operands_written(parsed, use, Act.CHANGES), _PYTHON_FILES)


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


_ROWS = Rows(
    r"""
ruff-options = -h|--help:info -v|--verbose -q|--quiet -s|--silent --no-cache|-n --isolated --preview --no-preview
    --config=READ --color=TEXT --target-version=TEXT --line-length=TEXT --exclude=TEXT --extend-exclude=TEXT
    --extension=TEXT --output-format=TEXT --stdin-filename=TEXT --respect-gitignore --no-respect-gitignore --force-exclude
    --no-force-exclude --cache-dir=WRITE_TREE
ruff : looks : READ... : -V|--version:info -h|--help:info -v|--verbose -q|--quiet -s|--silent --isolated --color=TEXT
    --config=CODE
ruff check : looks ruff-check : READ... : ruff-options -e|--exit-zero --exit-non-zero-on-fix --no-fix --no-fix-only --diff
    --statistics --show-files --show-settings --show-fixes --no-show-fixes --ignore-noqa --unsafe-fixes --no-unsafe-fixes
    -w|--watch --select=TEXT --ignore=TEXT --extend-select=TEXT --extend-ignore=TEXT --per-file-ignores=TEXT
    --extend-per-file-ignores=TEXT --fixable=TEXT --unfixable=TEXT --extend-fixable=TEXT --fix --fix-only --add-noqa[=TEXT]
    -o|--output-file=WRITE
ruff format : looks ruff-format : READ... : ruff-options --check --diff --range=TEXT --exit-non-zero-on-format
ruff rule, linter, config, version, help : looks : TEXT... : -h|--help:info --all --output-format=TEXT
ruff clean : changes : - : -h|--help:info -q|--quiet -v|--verbose
# The configuration of black cannot name code or files, but its `include` may match all files below an operand, and black prints
# lines that it cannot parse. So it reads whole trees. Options of the command override the configuration.
black : looks black : READ... : -h|--help:info --version:info -q|--quiet -v|--verbose --check --diff --color --no-color
    --fast --safe --pyi --ipynb -S|--skip-string-normalization -C|--skip-magic-trailing-comma -x|--skip-source-first-line
    --preview --unstable --enable-unstable-feature=TEXT --no-cache -l|--line-length=TEXT -t|--target-version=TEXT
    --include=TEXT --exclude=TEXT --extend-exclude=TEXT --force-exclude=TEXT --stdin-filename=TEXT -W|--workers=TEXT
    --line-ranges=TEXT --required-version=TEXT -c|--code=TEXT --config=READ
pylint : runs pylint-formats : READ... : -h|--help --version -v|--verbose -E|--errors-only -r|--reports=TEXT -s|--score=TEXT
    -f|--output-format=TEXT -j|--jobs=TEXT -d|--disable=TEXT -e|--enable=TEXT --ignore=TEXT --ignore-patterns=TEXT
    --ignore-paths=TEXT --max-line-length=TEXT --recursive=TEXT --fail-under=TEXT --fail-on=TEXT --exit-zero
    --msg-template=TEXT --py-version=TEXT --list-msgs --help-msg=TEXT --from-stdin --output=WRITE --rcfile=CODE
    --load-plugins=CODE --init-hook=CODE
mypy : runs : READ... : -h|--help:info -V|--version:info -v|--verbose -m|--module=TEXT -p|--package=TEXT -c|--command=TEXT
    -O|--output=TEXT --strict --pretty --no-pretty --no-color-output --no-error-summary --show-error-codes
    --hide-error-codes --show-error-context --show-column-numbers --show-error-end --show-absolute-path
    --show-error-code-links --show-traceback|--tb --ignore-missing-imports --follow-imports=TEXT --follow-untyped-imports
    --no-site-packages --namespace-packages --no-namespace-packages --explicit-package-bases --python-version=TEXT
    --platform=TEXT --exclude=TEXT --exclude-gitignore --no-incremental --no-strict-optional --implicit-optional
    --no-implicit-optional --disallow-untyped-defs --disallow-untyped-calls --disallow-any-generics
    --disallow-incomplete-defs --check-untyped-defs --warn-unused-ignores --warn-redundant-casts --warn-return-any
    --warn-unreachable --warn-unused-configs --no-warn-no-return --strict-equality --extra-checks --allow-redefinition
    --no-implicit-reexport --disable-error-code=TEXT --enable-error-code=TEXT --always-true=TEXT --always-false=TEXT
    --sqlite-cache --skip-version-check --non-interactive --scripts-are-modules --cache-dir=WRITE_TREE --junit-xml=WRITE
    --html-report=WRITE_TREE --txt-report=WRITE_TREE --xml-report=WRITE_TREE --cobertura-xml-report=WRITE_TREE
    --any-exprs-report=WRITE_TREE --linecount-report=WRITE_TREE --lineprecision-report=WRITE_TREE --custom-typeshed-dir=READ
    --install-types:gap --pdb:gap --config-file=CODE --python-executable=CODE
# Even `pytest --version` reads the configuration and loads plugins (before pytest 8.4).
pytest/py.test : runs net pytest : READ... : -q|--quiet -v|--verbose -s -x|--exitfirst -l|--showlocals -h|--help
    -V|--version --no-showlocals --verbosity=TEXT -k=TEXT -m=TEXT -r|--report-chars=TEXT -W|--pythonwarnings=TEXT -p=TEXT
    -n|--numprocesses=TEXT --dist=TEXT --maxfail=TEXT --max-warnings=TEXT --lf|--last-failed --ff|--failed-first
    --nf|--new-first --sw|--stepwise --sw-skip|--stepwise-skip --lfnf|--last-failed-no-failures=TEXT --cache-clear
    --cache-show[=TEXT] --tb=TEXT --color=TEXT --code-highlight=TEXT --capture=TEXT --show-capture=TEXT --full-trace
    --durations=TEXT --durations-min=TEXT --no-header --no-summary --disable-warnings|--disable-pytest-warnings --runxfail
    --co|--collect-only --ignore=TEXT --ignore-glob=TEXT --deselect=TEXT --noconftest --import-mode=TEXT --markers
    --fixtures|--funcargs --fixtures-per-test --strict --strict-markers --strict-config --setup-show --setup-plan
    --setup-only --continue-on-collection-errors --doctest-modules --doctest-glob=TEXT --assert=TEXT --log-level=TEXT
    --log-cli-level=TEXT --timeout=TEXT --reruns=TEXT --randomly-seed=TEXT --asyncio-mode=TEXT --hypothesis-seed=TEXT
    --hypothesis-profile=TEXT --hypothesis-show-statistics --benchmark-only --benchmark-skip --cov[=READ] --cov-report=TEXT
    --cov-branch --no-cov --cov-append --cov-fail-under=TEXT --junit-xml|--junitxml=WRITE --junit-prefix=TEXT
    --log-file=WRITE --basetemp=WRITE_TREE --pyargs:gap --pdb:gap --trace:gap --pastebin=TEXT:gap --debug[=WRITE]:gap
    -c|--config-file=CODE --rootdir=CODE --confcutdir=CODE -o|--override-ini=CODE --cov-config=CODE --pdbcls=CODE
sphinx-build : runs net : READ WRITE_TREE READ... : -h|--help --version -b|--builder=TEXT -M=TEXT -a|--write-all
    -E|--fresh-env -j|--jobs=TEXT -n|--nitpicky -q|--quiet -Q|--silent -v|--verbose -W|--fail-on-warning -T|--show-traceback
    --keep-going -t|--tag=TEXT -w|--warning-file=WRITE -d|--doctree-dir=WRITE_TREE -c|--conf-dir=CODE -D|--define=CODE
    -A|--html-define=TEXT
""",
    {
        "ruff-check": _ruff_check,
        "ruff-format": _ruff_format,
        "black": _black,
        "pylint-formats": one_of("-f", "text parseable colorized msvs json json2 github"),
        "pytest": _pytest,
    },
)

PROGRAMS: Mapping[str, Program] = {
    **{name: no_files_of_words(model) for name, model in _ROWS.items()},
    "black": _ROWS["black"],
}
