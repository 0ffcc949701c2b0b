"""Import the openai package quickly, without the data classes that harness does not use.

A plain `import openai` (3.57) builds some 900 data classes of pydantic. That takes more than half of the import's time,
and of the time before the first request. The package has no switch for that. But the `__init__` of `openai.types`, of
each package below it and of `openai.lib` only imports names from its own modules. So those names are imported one by
one, on first use. They are the same objects as after a plain import; only `vars` of such a package has fewer names.

A package whose `__init__` does anything else is imported as usual. After any failure all of openai is.
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
"""Prefixes of the packages to load by name. They end with a dot, so that longer names do not match."""

_one_at_a_time = threading.Lock()


def import_openai() -> None:
    """Import openai unless it is imported already. Raises ImportError, and any error of a broken installation."""
    with _one_at_a_time:
        if "openai" in sys.modules:
            return
        finder = _Finder()
        # A new list, since another thread that imports may be iterating over the old one.
        sys.meta_path = [finder, *sys.meta_path]
        try:
            import_module("openai")
        except Exception:  # noqa: BLE001 - another version may have another structure: then import all of it
            for name in [name for name in sys.modules if name.startswith("openai.")]:
                del sys.modules[name]
        finally:
            sys.meta_path = [other for other in sys.meta_path if other is not finder]
        import_module("openai")


class _Finder(MetaPathFinder):
    """Finds modules as Python's own finder does, but gives the packages in `_PACKAGES` a loader that imports by name."""

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
    """Module name relative to the package, with leading dots."""
    name: str


class _ByName(Loader):
    """Loads a package whose `__init__` only imports names. Each name is imported on first use instead."""

    def __init__(self, plain: SourceFileLoader) -> None:
        self._plain = plain

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as Python's own loader does."""
        return self._plain.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Give the package a `__getattr__` that imports missing names (PEP 562)."""
        sources = _imported_names(self._plain.get_source(module.__name__) or "")
        # Code that reads data files of the package needs the original loader.
        module.__loader__ = self._plain
        if module.__spec__ is not None:
            module.__spec__.loader = self._plain
        if sources is None:
            self._plain.exec_module(module)
            return
        vars(module).update(
            __getattr__=_giver(module, sources),
            __dir__=lambda: sorted({*vars(module), *sources}),
            __all__=[*sources],  # for `import *`, which otherwise finds only names that are already imported
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
                # After a plain import, the package also has its modules as attributes.
                return import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return give


def _imported_names(source: str) -> dict[str, _Source] | None:
    """Return the origin of each name in the source of an `__init__`; `None` if it does more than import names."""
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
