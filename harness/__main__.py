"""The `harness` command, and `python -m harness`. Cleans the import path before it imports any module."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


def _answer_quickly() -> None:
    """Have the user's resident process answer an event of an agent, if it can, and end this process.

    The settings of agents start Python without its packages (`-I -S`), which takes half the time. Returns with the
    packages for every other command line, and if no resident can answer.
    """
    sys.path.append(__file__.replace("/./", "/").removesuffix("/harness/__main__.py"))  # it is absolute
    if sys.argv[1:2] == ["hook"]:
        import posix

        from harness.plugins.agents.resident_client import exit_code

        code = exit_code(sys.argv[1:], posix.environ)
        if code is not None:
            posix._exit(code)  # noqa: SLF001 - it is `os._exit`
    if sys.argv[1:2] != ["exec"]:
        import site

        site.main()


if __name__ == "__main__" and sys.flags.no_site:
    _answer_quickly()
import gc  # noqa: E402
import os  # noqa: E402 - to import it takes as long as the resident takes to answer


def program() -> "NoReturn":
    """Run the `harness` command. Processes that other agents start for their calls begin here, too."""
    gc.disable()  # Garbage collection would take a third of a light command's time. `main` enables it for others.
    if os.name != "posix":
        sys.exit(_no_system(sys.stderr.write))
    sys.path[:] = own_entries(sys.path, "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", ""))
    import harness
    from harness.shipped import start_for_agent

    harness.is_program = True
    start_for_agent(sys.argv[1:], os.environ)
    from harness.app.main import program as command

    command()


def _no_system(write: "Callable[[str], object]") -> int:
    """Say that the program does not run on this system, and return the exit code."""
    write("harness: Windows is not supported; run harness in WSL2 (https://learn.microsoft.com/windows/wsl)\n")
    return 2


def own_entries(entries: list[str], python_path: str) -> list[str]:
    """Return the entries of `sys.path` that a repository cannot control.

    A repository may contain a `json.py`, which Python would import instead of its own. The first entry is removed if it
    is the current folder or the script's folder. The folders of `python_path` (the variable PYTHONPATH) are removed
    too, except Python's own. Folders of installed packages, such as an installation of this program, are moved to the
    end.
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
    # A .pth file may name a folder of PYTHONPATH too, and Python lists each entry only once.
    last = [entry for entry in entries if entry in named_folders and (entry.endswith("-packages") or entry == home)]
    return [*first, *(entry for entry in last if entry != home or _is_installation(home))]


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the current folder is gone
        return path


def _is_installation(folder: str) -> bool:
    """Return whether a folder is an installation of harness (`pip install --target`) and not a checkout."""
    return any(name.startswith("permission_harness-") and name.endswith(".dist-info") for name in os.listdir(folder))


if __name__ == "__main__":
    program()
