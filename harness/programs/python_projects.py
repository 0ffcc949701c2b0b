"""Models of what keeps environments of Python, builds and publishes: poetry, pipenv, twine, conda, pipx and their like; data.

Each loads plugins, or code of the project, before it does anything: none of them only looks.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.model import Program, Style
from harness.programs.tables import ANYTHING_ELSE, also_writes, arguments_from

_WITH_PLUGINS = """
    -h|--help -V|--version -v|--verbose -q|--quiet -n|--no-interaction --ansi --no-ansi --no-plugins --no-cache --dry-run
    -G|--group=TEXT --with=TEXT --without=TEXT --only=TEXT --no-root --no-dev --dev -d -E|--extras=TEXT --all-extras --sync
    -t|--tree -l|--latest -o|--outdated --lock --no-update --all -f|--format=TEXT -C|--directory=FOLDER --python=CODE
    --source=CODE -P|--project=READ
"""
_POETRY = Program(
    act=Act.RUNS,
    network=True,
    options=_WITH_PLUGINS,
    subcommands={
        "": ANYTHING_ELSE,
        "run": Program(act=Act.RUNS, network=True, style=Style.POSIX, operands="COMMAND..."),
        **dict.fromkeys(
            ("add", "remove", "install", "update", "lock", "sync"),
            Program(
                act=Act.RUNS,
                network=True,
                options=_WITH_PLUGINS,
                operands="TEXT...",
                refine=also_writes("pyproject.toml", "poetry.lock"),
            ),
        ),
        **dict.fromkeys(
            "show check version build publish env config export search init new about list".split(),
            Program(act=Act.RUNS, network=True, options=_WITH_PLUGINS, operands="TEXT..."),
        ),
    },
)
_PIPENV = Program(
    act=Act.RUNS,
    network=True,
    options=_WITH_PLUGINS,
    subcommands={
        "": ANYTHING_ELSE,
        "run": Program(act=Act.RUNS, network=True, style=Style.POSIX, operands="COMMAND..."),
        **dict.fromkeys(
            "install uninstall update lock sync graph check clean requirements verify".split(),
            Program(act=Act.RUNS, network=True, options="-d|--dev --deploy -v|--verbose", operands="TEXT..."),
        ),
    },
)
_BUILDS = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -v|--verbose -q|--quiet -c|--clean -t|--target=TEXT --format=TEXT --skip-existing
        --strict
    """,
    operands="TEXT EITHER...",
)
_CONDA = Program(
    act=Act.CHANGES,
    network=True,
    options="-h|--help -V|--version:info",
    subcommands={
        "run": Program(
            act=Act.RUNS,
            network=True,
            style=Style.POSIX,
            options="-n|--name=TEXT --no-capture-output --live-stream",
            operands="COMMAND...",
        ),
        **dict.fromkeys(
            (
                *"list info search install create remove update upgrade clean config".split(),
                *("env list", "env create", "env update", "env remove", "env export"),
            ),
            Program(
                act=Act.CHANGES,
                network=True,
                options="""
                    -h|--help -y|--yes -q|--quiet -v|--verbose --json -n|--name=TEXT -f|--file=READ -e|--envs --all --dry-run
                    --export --no-deps --force-reinstall -p|--prefix=WRITE_TREE -c|--channel=CODE --override-channels
                """,
                operands="TEXT...",
            ),
        ),
    },
)
_PIPX = Program(
    act=Act.RUNS,
    network=True,
    options="-h|--help --version:info",
    subcommands={
        "run": Program(
            act=Act.RUNS,
            network=True,
            style=Style.POSIX,
            options="--spec=TEXT --no-cache --pypackages:gap",
            operands="TEXT...",
            refine=arguments_from(1),
        ),
        **dict.fromkeys(
            "install uninstall upgrade upgrade-all reinstall list inject ensurepath".split(),
            Program(
                act=Act.RUNS,
                network=True,
                options="-h|--help -f|--force -v|--verbose --short --json --include-deps",
                operands="TEXT...",
            ),
        ),
    },
)
_VIRTUALENV = Program(
    act=Act.RUNS,
    network=True,
    options="""
        -h|--help --version -v|--verbose -q|--quiet --clear --system-site-packages --prompt=TEXT --no-download --download
        --copies --no-pip --no-setuptools -p|--python=CODE --extra-search-dir=CODE --app-data=CODE
    """,
    operands="WRITE_TREE",
)

PROGRAMS: Mapping[str, Program] = {
    "poetry": _POETRY,
    "pipenv": _PIPENV,
    **dict.fromkeys(("twine", "hatch", "flit", "pdm"), _BUILDS),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _CONDA),
    "pipx": _PIPX,
    "virtualenv": _VIRTUALENV,
}
