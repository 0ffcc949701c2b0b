"""The program's own code on disk, which is loaded only in the state before the first call that could write there.

The program, its dependencies and Python's library may be in a folder that commands can write, such as a `.venv` of the
workspace. `note_before` records the digests of the files in such a folder before the first call that may write there.
From then on this process imports only recorded, unchanged files from there: it ignores new files, ends the run at a
changed one, and uses no bytecode. Usually no call may write there, and only paths are compared.
"""

from __future__ import annotations

import ctypes
import os
import sys
from _thread import RLock
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from types import ModuleType
from typing import NoReturn

import harness
from harness.digest import digest_of
from harness.errors import ChangedCodeError, GateError
from harness.paths import is_within, is_within_any
from harness.safe_files import read_regular
from harness.system import HAS_PROC

NOTED = (".py", ".so", ".pth", ".toml", ".pem")
"""Endings of the files to record: code, files that Python obeys at its start, and data that decisions depend on."""
PROT_READ, PROT_WRITE, PROT_EXEC = 1, 2, 4
"""Protection flags of <sys/mman.h>."""


@cache
def own_code() -> OwnCode:
    """Return the code of this process."""
    return OwnCode()


class OwnCode:
    """The places of the code, and the recorded digests of the files there."""

    def __init__(self) -> None:
        """Initialize with the places that modules are imported from."""
        self._package = _package()
        entries = dict.fromkeys(os.path.abspath(entry) for entry in sys.path if entry)
        if not is_within_any(self._package, entries):
            entries[self._package] = None
        self._places = {entry: os.path.realpath(entry) for entry in entries}
        self._prefix = os.path.realpath(sys.prefix) if sys.prefix != sys.base_prefix else ""
        self._start = (os.path.abspath(sys.executable), os.path.join(sys.prefix, "pyvenv.cfg"))
        self._digests: dict[str, str] = {}
        self._folders: set[str] = set()
        self._noted: set[str] = set()
        self._lock = RLock()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of program, dependencies, library and interpreter, links followed. No folder is in another."""
        python = os.path.dirname(os.path.realpath(sys.executable))
        places = [self._package, self._prefix, *self._places.values(), python]
        folders = dict.fromkeys(os.path.realpath(path) for path in places if path and os.path.exists(path))
        return tuple(path for path in folders if not any(is_within(path, other) for other in folders if other != path))

    def environment_within(self, write: Sequence[str]) -> str:
        """Return the folder of this Python's virtual environment if a path in `write` is a folder above it.

        Empty otherwise. The paths are absolute, with links followed.
        """
        holds = any(is_within(self._prefix, path) and self._prefix != path for path in write)
        return self._prefix if self._prefix and holds else ""

    def has_other_names(self) -> bool:
        """Return whether the program is installed as links to a cache, so that a write to the cache changes it."""
        status = os.lstat(__file__)
        return os.path.islink(__file__) or status.st_nlink > 1

    def note_before(self, write: Sequence[str] | None, excluded: str = "") -> None:
        """Record the code in the places that a call will be able to write.

        `write` has absolute paths, links followed, each with everything below it; `None` is the whole disk. The folder
        `excluded` does not belong to a path above it, but to a path inside it. Does nothing in a process that is not
        the `harness` command.
        """
        if not harness.is_program:
            return
        with self._lock:
            for entry, real in self._places.items():
                inside = bool(excluded) and is_within(real, excluded)
                if entry not in self._noted and (
                    write is None
                    or any(_meet(path, entry, real) for path in write if not inside or is_within(path, excluded))
                ):
                    self._note(entry)

    @property
    def is_noted(self) -> bool:
        """Whether code was recorded, since a call could write it."""
        return bool(self._noted)

    def check(self, path: str) -> None:
        """Check a file of the program before its use. Raises ChangedCodeError if it changed since it was recorded."""
        if self._noted and self._place_of(path) in self._noted and _digest(path) != self._digests.get(path):
            self.refuse(path)

    def check_certificates(self) -> None:
        """Check the certificate files of the dependencies. Raises ChangedCodeError."""
        for path in self._digests:
            if path.endswith(".pem"):
                self.check(path)

    def python_options(self) -> tuple[str, ...]:
        """Return the options for a new Python process that loads the same code and ignores environment variables.

        Raises ChangedCodeError if any of the code changed, since the new process cannot check that itself.
        """
        if not self._noted:
            return ("-I",)
        with self._lock:
            now = {path for entry in self._noted for path in _files(entry, self._places)}
            for path in sorted(now.union(self._digests)):
                if path not in self._digests or _digest(path) != self._digests[path]:
                    self.refuse(path)
        # Bytecode is neither recorded nor used, since commands may legitimately write more of it.
        return ("-I", "-B", "-X", "pycache_prefix=/dev/null")

    def refuse(self, path: str) -> NoReturn:
        """Raise ChangedCodeError for a file."""
        state = "is gone" if not os.path.lexists(path) else "was changed" if path in self._digests else "is new"
        text = (
            f"{path} {state} since a call of this session could first write there. It is code that the harness itself "
            "would run, so the session ends. Install the harness outside of the folders that calls may write"
        )
        ChangedCodeError.first = ChangedCodeError.first or text
        raise ChangedCodeError(text)

    def read(self, path: str) -> bytes:
        """Return the content of a recorded file. Raises ChangedCodeError if it changed or was not recorded."""
        data = _content(path)
        if data is None or digest_of(data) != self._digests.get(path):
            self.refuse(path)
        return data

    def find(self, folder: str, fullname: str) -> ModuleSpec | None:
        """Return the spec of a module among the recorded files of `folder`. `None` if there is none."""
        base = os.path.join(folder, fullname.rpartition(".")[2])
        for stem, places in ((os.path.join(base, "__init__"), [base]), (base, None)):
            for ending in (*EXTENSION_SUFFIXES, ".py"):
                path = f"{stem}{ending}"
                if path in self._digests:
                    loader = (_Source if ending == ".py" else _Extension)(fullname, path)
                    spec = ModuleSpec(fullname, loader, origin=path)
                    spec.has_location = True
                    spec.submodule_search_locations = places
                    return spec
        if base not in self._folders:
            return None
        spec = ModuleSpec(fullname, None)
        spec.submodule_search_locations = [base]
        return spec

    def _note(self, entry: str) -> None:
        for path in _files(entry, self._places):
            self._digests[path] = _digest(path)
            folder = os.path.dirname(path)
            while folder not in self._folders and is_within(folder, entry):  # one may hold folders alone
                self._folders.add(folder)
                folder = os.path.dirname(folder)
        _keep_mapped(entry)
        for path in self._start:
            if path not in self._digests:
                self._digests[path] = _digest(path)
        if not self._noted:
            sys.path_hooks.insert(0, _finder)
            # The finders of setuptools load packages installed as links without using path_hooks.
            sys.meta_path[:] = [finder for finder in sys.meta_path if not finder.__module__.startswith("__editable__")]
        self._noted.add(entry)
        for path in [path for path in sys.path_importer_cache if self._place_of(path) == entry]:
            del sys.path_importer_cache[path]

    def _place_of(self, path: str) -> str:
        return max((entry for entry in self._places if is_within(path, entry)), key=len, default="")

    def finder(self, path: str) -> _Finder:
        """Return the finder of modules in a folder of a recorded place. Raises ImportError for any other folder."""
        folder = os.path.abspath(path)
        if self._place_of(folder) not in self._noted:
            raise ImportError(f"{path} is not noted")
        return _Finder(folder)


def _finder(path: str) -> _Finder:
    return own_code().finder(path)


class _Finder:
    """Finds the modules of one folder for the import system."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of a module, or `None`."""
        return own_code().find(self._folder, fullname)

    def invalidate_caches(self) -> None:
        """Do nothing: the recorded state stays."""


class _Source(SourceFileLoader):
    """Loads a module from its recorded source."""

    def path_stats(self, path: str) -> NoReturn:
        """Raise OSError, so that Python neither reads nor writes bytecode, which may not match the source."""
        raise OSError(f"no bytecode of {path} is used")

    def get_data(self, path: str) -> bytes:
        """Return the content of a file. Raises ChangedCodeError."""
        return own_code().read(path)


class _Extension(ExtensionFileLoader):
    """Loads a compiled module from its recorded file."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module. Raises ChangedCodeError."""
        own_code().check(self.path)
        module = super().create_module(spec)
        _keep_mapped(self.path)
        own_code().check(self.path)
        return module


def _meet(path: str, *places: str) -> bool:
    return any(is_within(place, path) or is_within(path, place) for place in places)


def _content(path: str) -> bytes | None:
    """Return the content of a file. `None` if it cannot be read."""
    try:
        return read_regular(path)
    except OSError:
        return None


def _digest(path: str) -> str:
    """Return the digest of a file. Empty if it cannot be read.

    `hashlib` is several times faster than `digest_of`, and an environment can have thousands of files.
    """
    import hashlib

    data = _content(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _keep_mapped(place: str) -> None:
    """Copy the compiled code that this process loaded from a place into private memory.

    A write to such a file changes its mapped pages in memory, except private copies of pages. Raises GateError if a
    copy is impossible.
    """
    if not HAS_PROC:
        return  # macOS ends a program whose signed code was changed
    library, real = ctypes.CDLL(None), os.path.realpath(place)
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        mappings = [line.rstrip("\n").split(maxsplit=5) for line in file]
    for span, rights, *_, path in (fields for fields in mappings if len(fields) == 6):
        if not is_within(path, real) or rights[0] != "r" or rights[1] == "w":
            continue
        start, end = (int(number, 16) for number in span.split("-"))
        address, size = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
        executable = PROT_EXEC if rights[2] == "x" else 0
        if library.mprotect(address, size, PROT_READ | PROT_WRITE | executable):
            raise GateError(f"{path} is code of the harness, and a call could change it in memory: nothing is run")
        ctypes.memmove(start, ctypes.string_at(start, end - start), end - start)
        library.mprotect(address, size, PROT_READ | executable)


def _package() -> str:
    """Return the folder of the program's own package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _files(entry: str, places: dict[str, str]) -> Iterator[str]:
    """Yield the files to record in a place. Other places inside it are left out.

    If the place has more than installed packages, such as a checkout, only its folders with an `__init__.py` and the
    shipped policies count. The packages of the interpreter lie in Python's library, but a virtual environment imports none.
    """
    if os.path.isfile(entry):
        yield entry
        return
    package = _package()
    policies = os.path.join(os.path.dirname(package), "policies")
    installed = entry in (os.path.dirname(os.__file__), package) or entry.endswith(("-packages", "lib-dynload"))
    waiting = [entry]
    while waiting:
        folder = waiting.pop()
        try:
            children = sorted(os.scandir(folder), key=lambda child: child.name)
        except OSError:
            continue
        for child in children:
            try:
                if child.is_dir():
                    packaged = installed or folder != entry or child.path == policies
                    packaged = packaged or os.path.isfile(os.path.join(child.path, "__init__.py"))
                    loops = child.is_symlink() and is_within(os.path.realpath(folder), os.path.realpath(child.path))
                    if packaged and not loops and child.path not in places and not child.name.endswith("-packages"):
                        waiting.append(child.path)
                elif child.name.endswith(NOTED):
                    yield child.path
            except OSError:
                continue
