"""Models of the tools that check, format, test and document Python code; data, and what their tables cannot say.

A tool that loads plugins, configuration that is code, or the project itself, runs code: `RUNS`, whatever is asked of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Access, Act
from harness.programs.model import Found, Parsed, PathUse, Program, Style, Unknown, Use
from harness.programs.tables import all_of, arguments_from, as_trees, doing, no_word_lists, one_of
from harness.record import replace

_PYTHON_FILES = ("*.py", "*.pyi", "*.pyw", "*.ipynb", "pyproject.toml")


# --- Tests


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
        --fixtures|--funcargs --fixtures-per-test --strict --strict-markers --strict-config --setup-show --setup-plan --setup-only
        --continue-on-collection-errors --doctest-modules --doctest-glob=TEXT --assert=TEXT --log-level=TEXT
        --log-cli-level=TEXT --timeout=TEXT --reruns=TEXT --randomly-seed=TEXT --asyncio-mode=TEXT
        --hypothesis-seed=TEXT --hypothesis-profile=TEXT --hypothesis-show-statistics --benchmark-only --benchmark-skip
        --cov[=READ] --cov-report=TEXT --cov-branch --no-cov --cov-append --cov-fail-under=TEXT
        --junit-xml|--junitxml=WRITE --junit-prefix=TEXT --log-file=WRITE --basetemp=WRITE_TREE
        --pyargs:gap --pdb:gap --trace:gap --pastebin=TEXT:gap --debug[=WRITE]:gap
        -c|--config-file=CODE --rootdir=CODE --confcutdir=CODE -o|--override-ini=CODE --cov-config=CODE --pdbcls=CODE
    """,
    refine=all_of(no_word_lists, _pytest),
    covered=(
        "pytest",
        "pytest -q tests/test_a.py::test_b",
        "pytest -xvs -k 'a and not b' --maxfail=1 --tb=short tests",
        "pytest -n auto --cov=src --cov-report=term-missing -p no:cacheprovider",
        "pytest --junitxml=out.xml --lf",
        "pytest --version",
    ),
    not_covered=(
        "pytest -p evil",
        "pytest -pevil",
        "pytest -c other.ini",
        "pytest -o addopts=-pevil",
        "pytest --override-i=python_files=x",
        "pytest --rootdir=/tmp",
        "pytest --rootd /tmp",
        "pytest @words",
        "pytest --pyargs os",
    ),
)

_UNITTEST_LIKE = "-v|--verbose -q|--quiet -x -s -h|--help -l|--list -r|--recreate -p|--parallel --version --workdir=WRITE_TREE"

_TOX = Program(
    act=Act.RUNS,
    network=True,
    options=f"{_UNITTEST_LIKE} -e=TEXT -m=TEXT -f=TEXT --notest --skip-pkg-install --develop -c|--conf=CODE -x=CODE".replace(
        " -x -s ", " "
    ),
    operands="TEXT EITHER...",
    covered=("tox", "tox -e py311", "tox run -e lint -- src", "tox --version"),
    not_covered=("tox -c evil.ini", "tox --override testenv.commands=x", "tox -x testenv.commands=x", "tox --root /tmp"),
)
