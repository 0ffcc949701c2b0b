"""The `harness` command, and `python -m harness`: the folders that modules come from are settled before any is imported."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def program() -> "NoReturn":
    """Be the `harness` command. What an agent starts for each of its calls begins here, before anything else is loaded."""
    sys.path[:] = own_entries(sys.path, "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", ""))
    import harness
    from harness.shipped import start_for_agent

    harness.is_program = True
    start_for_agent(sys.argv[1:], os.environ)
    from harness.app.main import program as command

    command()


def own_entries(entries: list[str], python_path: str) -> list[str]:
    """Return the entries of `sys.path` without folders of the surroundings, in which a repository may keep a
    `json.py`.

    The folder that Python puts first (the current one, or that of the script) is dropped, and so are the folders of
    `python_path` (the variable PYTHONPATH). Of the latter, Python's own stay, and the last entries are folders of
    installed packages, such as an installation of this program.
    """
    surroundings = {"", _absolute(""), os.path.dirname(os.path.realpath(sys.argv[0]))}
    if entries and not sys.flags.safe_path and entries[0] in surroundings:
        entries = entries[1:]
    if not python_path:
        return entries
    import site

    named_folders = {_absolute(part) for part in python_path.split(os.pathsep)}
    library = os.path.dirname(os.__file__)
    named_folders -= {library, f"{library}/lib-dynload", *site.getsitepackages(), site.getusersitepackages()}
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    first = [entry for entry in entries if entry not in named_folders]
    # A .pth file may name such a folder too, and Python keeps each entry once.
    last = [entry for entry in entries if entry in named_folders and (entry.endswith("-packages") or entry == home)]
    return [*first, *(entry for entry in last if entry != home or _is_installation(home))]


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the current folder is gone
        return path


def _is_installation(folder: str) -> bool:
    """Return whether a folder holds an installed harness (`pip install --target`), with what that needs, and no checkout."""
    return any(name.startswith("permission_harness-") and name.endswith(".dist-info") for name in os.listdir(folder))


if __name__ == "__main__":
    program()
