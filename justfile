# The commands of a day. `just` lists them; each also works when it is typed by hand.

default:
    @just --list

# Create .venv and install the package with its tools.
setup:
    python3 -m venv .venv
    .venv/bin/pip install --quiet -e '.[dev]'

# Run tests, e.g. `just test tests/policy -x`.
test *arguments="-n auto":
    .venv/bin/python -m pytest {{arguments}}

# Run the linter, the formatter and the type checker.
check:
    .venv/bin/ruff check .
    .venv/bin/ruff format .
    .venv/bin/mypy

# Write the snapshots of the screens anew; read the difference before you commit it.
screens:
    RENEW_SCREENS=1 .venv/bin/python -m pytest -q tests/terminal/test_screens.py
    git diff --stat tests/terminal/screens

# Make the site in build/site; `just site serve` shows it and builds it anew when mkdocs.yml changes.
site command="build --strict --clean":
    .venv/bin/python docs/site.py
    .venv/bin/zensical {{command}}

# Run everything that must pass before a change is merged.
all:
    .ci/run
