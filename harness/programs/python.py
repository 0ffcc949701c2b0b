"""The model of Python (CPython, PyPy), which runs a script, a module, or code in a word. The model reads no code."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from harness.actions import Access, Act
from harness.programs.options import read_command
from harness.programs.program import Found, PathUse, Program, Unknown, Use, gap
from harness.programs.python_packages import PIP
from harness.programs.shared import argument_paths
from harness.record import replace

_PYTHON_FLAGS = frozenset("bBdEIOPqRsSuv")
_X_OPTIONS = frozenset(
    ("dev", "utf8", "utf8=1", "utf8=0", "importtime", "faulthandler", "tracemalloc", "no_debug_ranges")
)
MODULES = frozenset(
    "ast bandit black build compileall coverage cProfile dis doctest django ensurepip flake8 flit gunicorn hatch http.server "
    "ipykernel IPython isort json.tool jupyter mkdocs mypy nox pdb pip pip_audit piptools pipx poetry pre_commit "
    "py_compile pydoc pylint pyright pytest ruff site sphinx tabnanny timeit tokenize tox trace twine unittest uv uvicorn "
    "venv virtualenv vulture zipapp".split()
)
"""Modules in the model of `python -m`. A file in the working directory may replace any of them."""

LIBRARY = frozenset(
    (
        "abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb "
        "binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections "
        "colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes "
        "curses dataclasses datetime dbm decimal difflib dis distutils doctest dummy_threading email encodings ensurepip "
        "enum errno faulthandler fcntl filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath "
        "getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib "
        "inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma macpath mailbox mailcap "
        "marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path "
        "numbers opcode operator optparse os ossaudiodev parser pathlib pdb pickle pickletools pipes pkgutil platform "
        "plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue "
        "quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil "
        "signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat "
        "statistics string stringprep struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile "
        "telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback "
        "tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref "
        "webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo"
    ).split()
)
"""Modules of Python's standard library, 3.8 to 3.14, without those that begin with `_`."""
_ON_THE_NETWORK = frozenset(
    "build ensurepip gunicorn http.server hatch flit jupyter mkdocs nox pip pip_audit piptools pipx poetry pre_commit tox "
    "twine uv uvicorn virtualenv".split()
)


def _python(argv: Sequence[str]) -> Use:
    if len(argv) == 2 and argv[1] in ("-V", "-VV", "--version", "-h", "--help"):
        return Use(act=Act.LOOKS)
    position = 1
    flags: set[str] = set()
    while position < len(argv):
        word = argv[position]
        if isinstance(word, Unknown | Found):
            return gap(f"{word} may be an option, or a script that is not known")
        if word in ("-", "--") or not word.startswith("-"):
            break
        place = next((place for place, letter in enumerate(word[1:], 1) if letter not in _PYTHON_FLAGS), 0)
        position += 1
        flags |= set(word[1 : place + 1 or None])
        if not place:
            continue
        value = word[place + 1 :]
        if not value and position < len(argv):
            value = argv[position]
            position += 1
        if word[place] == "m":
            return _looking_module(value, flags, argv[position:]) or _module(value, argv[position:])
        if not _known_value(word[place], value):
            return gap(f"the option -{word[place]} is not in its model")
    words = argv[position:]
    return _script(words[1:] if words and words[0] == "--" else words)


def _known_value(letter: str, value: str) -> bool:
    if isinstance(value, Unknown | Found):
        return False
    return (letter == "W" and value != "") or (letter == "X" and value in _X_OPTIONS)


def _script(words: Sequence[str]) -> Use:
    if not words or words[0] == "-":
        return gap("it runs what its input says")
    if isinstance(words[0], Unknown | Found):
        return gap(f"the script {words[0]} is not known")
    paths = argument_paths(words[1:])
    script = PathUse(word=words[0], access=Access.READ)
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=(script, *paths))


def _module(name: str, words: Sequence[str]) -> Use:
    if isinstance(name, Unknown | Found) or name not in MODULES:
        return gap(f"the module {name} is not in its model")
    paths = argument_paths(words)
    network = name in _ON_THE_NETWORK
    return gap(paths) if isinstance(paths, str) else Use(act=Act.RUNS, paths=paths, network=network)


_JSON_TOOL = Program(
    options="--sort-keys --no-ensure-ascii --json-lines --indent=TEXT --tab --no-indent --compact",
    operands="READ WRITE",
)


_SITE = Program(options="--user-base --user-site", operands="")


def _looking_module(name: str, flags: AbstractSet[str], words: Sequence[str]) -> Use | None:
    """Return the use of `-m MODULE` for a module that only looks, else `None`.

    Modules are also searched in the working directory (`imports`), unless `flags` has -I.
    """
    program = {"json.tool": _JSON_TOOL, "site": _SITE, "pip": PIP}.get(name)
    if program is None or isinstance(name, Unknown | Found):
        return None
    use = read_command(program, (name, *words))
    if use.act is not Act.LOOKS or not flags <= _PYTHON_FLAGS | {"m"}:
        return None
    return replace(use, imports="I" not in flags)


_PYTHON = Program(read=_python)

PROGRAMS = dict.fromkeys(("python", "python2", "python3", "pypy", "pypy3"), _PYTHON)
