"""Record: a frozen, slotted, keyword-only value class.

Type checkers see a dataclass, but start-up takes a tenth of the time. `import dataclasses` takes 18 ms (it loads
`inspect`), and each decorated class about half a millisecond. The start-up budget is about 40 ms.
docs/decisions/python.md has the figures.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any, Self, TypeVar, dataclass_transform

_set = object.__setattr__


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class _RecordType(type):
    """Metaclass that turns the annotations of a class into slots, and their values into defaults."""

    _fields: tuple[str, ...]
    _names: frozenset[str]
    _defaults: dict[str, Any]
    _values: attrgetter[Any]
    """Returns the values of all fields of a record, in order."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _RecordType:
        annotations = namespace.get("__annotations__", {})
        own_fields = tuple(field for field, kind in annotations.items() if not kind.startswith("ClassVar"))
        if bases and not annotations:
            # Python 3.14 stores annotations elsewhere unless the module has `from __future__ import annotations`.
            raise TypeError(f"record {name} declares no fields; its module needs `from __future__ import annotations`")
        defaults = {field: namespace.pop(field) for field in own_fields if field in namespace}
        namespace["__slots__"] = (*own_fields, *namespace.get("__slots__", ()))
        cls = super().__new__(mcs, name, bases, namespace)
        parent = bases[0] if bases else None
        inherited = parent._fields if isinstance(parent, _RecordType) else ()
        inherited_defaults = parent._defaults if isinstance(parent, _RecordType) else {}  # noqa: SLF001 - its own
        cls._fields = inherited + own_fields
        cls._names = frozenset(cls._fields)
        cls._defaults = {**inherited_defaults, **defaults}
        cls._values = attrgetter(*(cls._fields or ("__class__",)))
        return cls

    @property
    def __signature__(cls) -> object:
        """The fields as keyword parameters, for `inspect.signature`."""
        inspect: Any = sys.modules.get("inspect")
        if inspect is None:  # only that module asks, and its import is slow
            raise AttributeError("__signature__")
        types: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            types |= vars(base).get("__annotations__", {})
        kind, empty = inspect.Parameter, inspect.Parameter.empty
        return inspect.Signature([
            kind(name, kind.KEYWORD_ONLY, annotation=types[name], default=cls._defaults.get(name, empty))
            for name in cls._fields
        ])  # fmt: skip


class Record(metaclass=_RecordType):
    """Base of every value type. Fields are annotations, defaults must be immutable, and values cannot be changed.

    A class with `__slots__ = ("__dict__",)` can have a `cached_property`, which is neither compared nor copied.

    Raises TypeError for a missing or an unknown field, AttributeError for an assignment.
    """

    def __init__(self, *unnamed: object, **values: Any) -> None:
        cls = type(self)
        if unnamed:
            fields = ", ".join(f"{field}=..." for field in cls._fields[: len(unnamed)])
            raise TypeError(f"{cls.__name__} takes its values by name: {cls.__name__}({fields})")
        defaults = cls._defaults
        missing = []
        given_count = 0
        for field in cls._fields:
            if field in values:
                given_count += 1
                _set(self, field, values[field])
            elif field in defaults:
                _set(self, field, defaults[field])
            else:
                missing.append(field)
        if missing or given_count != len(values):
            unknown = sorted(values.keys() - cls._names)
            problems = [f"missing {', '.join(missing)}"] if missing else []
            problems += [f"unknown {', '.join(unknown)}; known: {', '.join(cls._fields)}"] if unknown else []
            raise TypeError(f"{cls.__name__}: {'; '.join(problems)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        if type(other) is not cls:
            return NotImplemented
        return bool(cls._values(self) == cls._values(other))

    def __hash__(self) -> int:
        cls = type(self)
        return hash((cls, cls._values(self)))

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self)._fields)
        return f"{type(self).__name__}({fields})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


RecordT = TypeVar("RecordT", bound=Record)


def replace(record: RecordT, **changes: Any) -> RecordT:
    """Return a copy of `record` with other values for the named fields.

    Raises TypeError for a field that the record does not have.
    """
    cls = type(record)
    return cls(**{field: getattr(record, field) for field in cls._fields} | changes)


def field_names(record: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields, inherited ones first, in the order of their declaration."""
    return record._fields
