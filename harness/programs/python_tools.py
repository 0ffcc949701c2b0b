"""Models of the tools that test and document Python code, and of those that run hooks and applications; data.

A tool that loads plugins, configuration that is code, or the project itself, runs code: `RUNS`, whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.model import Found, Parsed, PathUse, Program, Style, Unknown, Use
from harness.programs.tables import ANYTHING_ELSE, arguments_from, no_files_of_words
from harness.record import replace


def _pytest(parsed: Parsed, use: Use) -> Use:
    """Take node ids for the files in front of them, allow `-p no:NAME`, and see the folders of coverage reports."""
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
_PYTEST = Program(
    act=Act.RUNS,
    network=True,
    options="""
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

_TOX = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -v|--verbose -q|--quiet -l|--list -a|--listenvs-all -r|--recreate -p|--parallel[=TEXT] -e=TEXT
        -m=TEXT -f=TEXT --notest --skip-pkg-install --skip-missing-interpreters[=TEXT] --sitepackages --workdir=WRITE_TREE
        -c|--conf=CODE -x|--override=CODE
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
_NOX = Program(
    act=Act.RUNS,
    network=True,
    options="""
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
# Its configuration names plugins, and its data files name what is read.
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
        "run": Program(
            act=Act.RUNS,
            network=True,
            style=Style.POSIX,
            options=f"""
                {_COVERAGE_COMMON} -a|--append --branch -p|--parallel-mode --source=TEXT --timid -m|--module:instead
            """,
            operands="(SCRIPT) TEXT...",
            refine=arguments_from(1),
        ),
        **dict.fromkeys(("report", "html", "xml", "json", "lcov", "combine", "annotate"), _COVERAGE_REPORT),
        "erase": Program(act=Act.RUNS, options=_COVERAGE_COMMON, operands=""),
    },
)
_PRE_COMMIT = Program(
    act=Act.RUNS,
    network=True,
    options="-h|--help -V|--version",
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
_SPHINX = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -b|--builder=TEXT -M=TEXT -a|--write-all -E|--fresh-env -j|--jobs=TEXT -n|--nitpicky -q|--quiet
        -Q|--silent -v|--verbose -W|--fail-on-warning -T|--show-traceback --keep-going -t|--tag=TEXT -w|--warning-file=WRITE
        -d|--doctree-dir=WRITE_TREE -c|--conf-dir=CODE -D|--define=CODE -A|--html-define=TEXT
    """,
    operands="READ WRITE_TREE READ...",
)
_MKDOCS = Program(
    act=Act.RUNS,
    network=True,
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
    ),
)
_APPLICATION = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -v|--verbosity=TEXT --traceback --no-color --settings=CODE --pythonpath=CODE
        -c|--config=CODE
    """,
    operands="TEXT...",
    refine=arguments_from(1),
)
# These run whatever a file, a notebook, or the words of the command say.
_NOTEBOOK = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version --no-banner --to=TEXT --execute --inplace:inplace --output=WRITE -c:gap -m:gap -i:gap
    """,
    operands="TEXT...",
    refine=arguments_from(0),
)

PROGRAMS: Mapping[str, Program] = {
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
