"""Import the openai package without the data classes that nothing here uses.

A plain `import openai` (3.57) builds some 900 data classes of pydantic, which takes more than half of its time, and
of the time before the first request. The package has no switch for that. But the `__init__` of `openai.types`, of
each package below it and of `openai.lib` only imports names from its own modules. So those names are imported one by
one, on first use. The objects are those of a plain import; only `vars` of such a package shows fewer.

A package that does anything else is imported as usual, and so is all of openai after any failure.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import NamedTuple

_PACKAGES = ("openai.types.", "openai.lib.")
"""These, and the packages below them; each with its last dot, so that no longer name is taken for one."""

_one_at_a_time = threading.Lock()


def import_openai() -> None:
    """Import openai, if that has not happened. Raises ImportError, and any error of a broken installation."""
    with _one_at_a_time:
        if "openai" in sys.modules:
            return
        finder = _Finder()
        # A new list each time: another thread that imports may be going through the one that there is.
        sys.meta_path = [finder, *sys.meta_path]
        try:
            import_module("openai")
        except Exception:  # noqa: BLE001 - a version that is put together otherwise: then all of it
            for name in [name for name in sys.modules if name.startswith("openai.")]:
                del sys.modules[name]
        finally:
            sys.meta_path = [other for other in sys.meta_path if other is not finder]
        import_module("openai")


class _Finder(MetaPathFinder):
    """Finds what Python's own finder does, and has the packages named above give out their names one by one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(_PACKAGES):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.submodule_search_locations and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _ByName(spec.loader)
        return spec


class _Source(NamedTuple):
    """The origin of a package's name."""

    module: str
    """Relative to the package, with its dots."""
    name: str


class _ByName(Loader):
    """Loads a package whose `__init__` only imports: instead of running it, its names are imported when asked for."""

    def __init__(self, plain: SourceFileLoader) -> None:
        self._plain = plain

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave it to Python."""
        return self._plain.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Give the package what answers for names that it does not hold yet (PEP 562)."""
        sources = _imported_names(self._plain.get_source(module.__name__) or "")
        # Who asks the package for its files finds the loader that knows them.
        module.__loader__ = self._plain
        if module.__spec__ is not None:
            module.__spec__.loader = self._plain
        if sources is None:
            self._plain.exec_module(module)
            return
        vars(module).update(
            __getattr__=_giver(module, sources),
            __dir__=lambda: sorted({*vars(module), *sources}),
            __all__=[*sources],  # for `import *`, which looks at nothing else but the names that are there
        )


def _giver(module: ModuleType, sources: Mapping[str, _Source]) -> Callable[[str], object]:
    package = module.__name__

    def give(name: str) -> object:
        source = sources.get(name)
        if source is not None:
            value = getattr(import_module(source.module, package), source.name)
            setattr(module, name, value)
            return value
        if not name.startswith("__"):
            try:
                # Its modules are there after a plain import, since the names come from them.
                return import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return give


def _imported_names(source: str) -> dict[str, _Source] | None:
    """Return the origins of an `__init__`'s names; `None` if it does more than import names from modules."""
    import ast

    sources = {}
    for statement in ast.parse(source).body:
        if not isinstance(statement, ast.ImportFrom) or not statement.module:
            return None
        for alias in statement.names:
            if alias.name == "*":
                return None
            module = "." * statement.level + statement.module
            sources[alias.asname or alias.name] = _Source(module, alias.name)
    return sources
