"""`python -m harness`: the same as the `harness` command."""

import sys

# Python puts the current folder first for `-m`: a module of the repository that is worked in must not come before others.
if __name__ == "__main__" and not sys.flags.safe_path and not __file__.startswith(f"{sys.path[0]}/"):
    del sys.path[0]

from harness.cli.main import program

if __name__ == "__main__":
    program()
