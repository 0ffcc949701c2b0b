"""pip and uv. Other programs for packages of Python are rows of asked.py.

Installing runs code (setup.py, build backends). Looking may also run code, if it starts the interpreter of the project
or loads plugins.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.actions import Act
from harness.programs.options import stricter
from harness.programs.program import Inner, Parsed, Program, Style, Use
from harness.programs.shared import also_writes, arguments_from, runs
from harness.record import replace

# --- pip

# -V is left out: pip accepts it after a subcommand, and still runs the subcommand (`pip cache purge -V`).
_PIP_COMMON = """
    -h|--help:info -v|--verbose -q|--quiet --debug --isolated --no-input --no-color --require-virtualenv
    --disable-pip-version-check --no-python-version-warning --no-cache-dir --timeout=TEXT --retries=TEXT --exists-action=TEXT
    --use-feature=TEXT --use-deprecated=TEXT --log=WRITE --cache-dir=WRITE_TREE --cert=READ --client-cert=READ
    --python=CODE --keyring-provider=CODE --proxy=CODE --trusted-host=CODE
"""
# The source of packages determines the code that runs.
_PIP_INDEX = "--no-index --pre -i|--index-url=CODE --extra-index-url=CODE -f|--find-links=CODE"
_PIP_BUILD = f"""
    {_PIP_COMMON} {_PIP_INDEX} -r|--requirement=READ -c|--constraint=READ -e|--editable=SCRIPT --no-deps --prefer-binary
    --no-binary=TEXT --only-binary=TEXT --require-hashes --progress-bar=TEXT --no-build-isolation --use-pep517
    --ignore-requires-python --no-clean --src=WRITE_TREE --global-option=CODE --build-option=CODE -C|--config-settings=CODE
"""


def _pip_freeze(parsed: Parsed, use: Use) -> Use:
    """Refine `pip freeze`. For editable packages, it runs git and hg in their folders, which run programs that the
    settings there name.
    """
    return use if parsed.has("--exclude-editable") else replace(use, act=stricter(use.act, Act.RUNS))


PIP = Program(
    options=f"-V|--version:info {_PIP_COMMON}",
    subcommands={
        # Older versions of pip sometimes check for a newer pip, at the index that the user configured.
        "list": Program(
            options=f"""
                {_PIP_COMMON} {_PIP_INDEX} -o|--outdated:network -u|--uptodate:network -e|--editable -l|--local --user
                --path=READ --format=TEXT --not-required --exclude-editable --include-editable --exclude=TEXT
            """,
            operands="TEXT...",
        ),
        "show": Program(options=f"{_PIP_COMMON} -f|--files", operands="TEXT..."),
        "check": Program(options=_PIP_COMMON, operands=""),
        "help": Program(options=_PIP_COMMON, operands="TEXT..."),
        "freeze": Program(
            options=f"""
                {_PIP_COMMON} -l|--local --user --all --path=READ -r|--requirement=READ --exclude-editable
                --exclude=TEXT
            """,
            operands="",
            refine=_pip_freeze,
        ),
        "install": runs(f"""
                {_PIP_BUILD} -U|--upgrade --upgrade-strategy=TEXT --force-reinstall -I|--ignore-installed --dry-run --user
                --break-system-packages --root-user-action=TEXT --compile --no-compile --no-warn-script-location
                --no-warn-conflicts -t|--target=WRITE_TREE --root=WRITE_TREE --prefix=WRITE_TREE --report=WRITE
            """),
        "wheel": runs(f"{_PIP_BUILD} -w|--wheel-dir=WRITE_TREE --no-verify"),
        "download": runs(f"{_PIP_BUILD} -d|--dest=WRITE_TREE"),
        "uninstall": Program(
            act=Act.CHANGES,
            options=f"{_PIP_COMMON} -y|--yes -r|--requirement=READ --break-system-packages --root-user-action=TEXT",
            operands="TEXT...",
        ),
        # Settings may contain addresses with passwords.
        **dict.fromkeys(
            "config list, config get, config set, cache dir, cache info, cache list, cache purge, debug".split(", "),
            Program(act=Act.CHANGES, options=f"{_PIP_COMMON} --user --global --site --format=TEXT", operands="TEXT..."),
        ),
        "index versions": Program(
            act=Act.CHANGES, network=True, options=f"{_PIP_COMMON} {_PIP_INDEX}", operands="TEXT..."
        ),
    },
)


# --- uv

_UV_COMMON = """
    -h|--help:info -v|--verbose -q|--quiet -n|--no-cache --no-progress --offline --no-config --color=TEXT
    --no-python-downloads --managed-python --no-managed-python --project=READ --directory=FOLDER --cache-dir=WRITE_TREE
    --config-file=CODE --allow-insecure-host=CODE --native-tls
"""
_UV_PROJECT = f"""
    {_UV_COMMON} --frozen --locked --no-sync --isolated --active --all-packages --package=TEXT --extra=TEXT --all-extras
    --no-extra=TEXT --group=TEXT --no-group=TEXT --only-group=TEXT --all-groups --dev --no-dev --only-dev --no-editable
    --inexact --exact --reinstall --reinstall-package=TEXT -U|--upgrade -P|--upgrade-package=TEXT --prerelease=TEXT
    --resolution=TEXT --dry-run --check --no-build-isolation --no-binary --no-build --script=SCRIPT --no-install-project
    --with=TEXT --with-editable=SCRIPT --with-requirements=READ --no-project --no-env-file
    -p|--python=CODE --index=CODE --default-index=CODE --index-url=CODE --extra-index-url=CODE --find-links=CODE
    -C|--config-setting=CODE --env-file=CODE
"""


def _uv_run(parsed: Parsed, use: Use) -> Use:
    """Refine `uv run`.

    `uv run FILE.py` and `uv run -m MODULE` run python. An address or the input is code, so a gap.
    """
    if not use.commands:
        return replace(use, gap="it runs what its input says")
    words = use.commands[0].argv
    if words[0] == "-" or "://" in words[0]:
        return replace(use, gap=f"{words[0]} is code from elsewhere")
    if parsed.has("--module"):
        words = ("python", "-m", *words)
    elif words[0].lower().endswith((".py", ".pyw")) or parsed.has("--script"):
        words = ("python", *words)
    return replace(use, commands=(Inner(argv=words, folder=use.commands[0].folder),))


_UV_RUN = runs(
    f"{_UV_PROJECT.replace('--script=SCRIPT', '--script|-s')} --module|-m",
    style=Style.POSIX,
    operands="COMMAND...",
    refine=_uv_run,
)
_UV_TOOL_RUN = runs(
    f"""
        {_UV_COMMON} --from=TEXT --with=TEXT --isolated -U|--upgrade -p|--python=CODE --index=CODE
        --default-index=CODE
    """,
    style=Style.POSIX,
    operands="TEXT...",
    refine=arguments_from(1),
)
# Even subcommands that only list start the interpreter in .venv, a program of the project.
_UV_PIP = runs(f"""
        {_UV_COMMON} -e|--editable=SCRIPT -r|--requirements|--requirement=READ -c|--constraints|--constraint=READ --system
        -U|--upgrade -P|--upgrade-package=TEXT --no-deps --reinstall --strict --format=TEXT --outdated --exclude-editable
        --extra=TEXT --all-extras --group=TEXT --pre --prerelease=TEXT --no-build-isolation --break-system-packages
        -y|--yes -o|--output-file=EITHER -t|--target=WRITE_TREE --generate-hashes --no-header -f|--files
        -p|--python=CODE --index=CODE --default-index=CODE --index-url=CODE --extra-index-url=CODE --find-links=CODE
    """)
_UV_PIP_LIST = replace(
    _UV_PIP, options=_UV_PIP.options.replace("-e|--editable=SCRIPT", "-e|--editable"), operands="TEXT..."
)
_UV_CHANGES = runs(_UV_PROJECT, operands="TEXT...")


def _uv_sync(parsed: Parsed, use: Use) -> Use:
    """Return the use with the lock file, which `--frozen` and `--locked` leave as it is."""
    return use if parsed.has("--frozen", "--locked") else also_writes("uv.lock")(parsed, use)


_UV = Program(
    options=f"-V|--version:info {_UV_COMMON}",
    subcommands={
        "run": _UV_RUN,
        "tool run": _UV_TOOL_RUN,
        "pip install": _UV_PIP,
        "pip sync": _UV_PIP,
        "pip compile": _UV_PIP,
        "pip uninstall": _UV_PIP,
        **dict.fromkeys(("pip list", "pip show", "pip freeze", "pip check", "pip tree"), _UV_PIP_LIST),
        **dict.fromkeys(("add", "remove"), replace(_UV_CHANGES, refine=also_writes("pyproject.toml", "uv.lock"))),
        "sync": replace(_UV_CHANGES, refine=_uv_sync),
        "lock": replace(_UV_CHANGES, refine=also_writes("uv.lock")),
        **dict.fromkeys(("tree", "export", "version", "publish", "format"), _UV_CHANGES),
        **dict.fromkeys(("tool install", "tool uninstall", "tool list", "tool upgrade"), _UV_CHANGES),
        **dict.fromkeys(("python list", "python install", "python find", "python pin", "cache clean"), _UV_CHANGES),
        "venv": runs(
            f"""
                {_UV_COMMON} --seed --clear --allow-existing --prompt=TEXT --system-site-packages -p|--python=CODE
            """,
            operands="WRITE_TREE",
        ),
        "build": runs(f"{_UV_COMMON} --sdist --wheel --package=TEXT -o|--out-dir=WRITE_TREE"),
        "init": Program(
            act=Act.CHANGES, options=f"{_UV_COMMON} --lib --app --package --bare --name=TEXT", operands="WRITE_TREE"
        ),
    },
)


PROGRAMS: Mapping[str, Program] = {
    **dict.fromkeys(("pip", "pip3"), PIP),
    "uv": _UV,
}
