"""Tells the maker of the reference what a `Record` takes: its fields, keyword-only (mkdocs.yml names this file)."""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Class, Extension, Function, Module, Parameter, ParameterKind, Parameters


class Records(Extension):
    """Gives each record the `__init__` that its fields make, and takes away what says nothing."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Look at every class of the package."""
        classes = [pkg]
        for place in classes:
            classes += [one for one in place.members.values() if isinstance(one, Module | Class)]
            if isinstance(place, Class) and "__init__" not in place.members and (fields := fields_of(place)):
                place.set_member("__init__", Function("__init__", parent=place, parameters=fields))
            elif isinstance(place, Class):
                leave_out_what_init_keeps(place)


def leave_out_what_init_keeps(place: Class) -> None:
    """Take away the attributes that have no docstring: `self.x = x` tells a reader nothing."""
    for name, member in list(place.members.items()):
        if isinstance(member, Attribute) and not member.docstring and member.labels == {"instance-attribute"}:
            place.del_member(name)


def fields_of(place: Class) -> Parameters | None:
    """Return the parameters of a record's constructor, and None for any other class."""
    lineage = [place, *place.mro()]
    if lineage[-1].path != "harness.record.Record":
        return None
    found = {"self": Parameter("self", kind=ParameterKind.positional_or_keyword)}
    for cls in reversed(lineage[:-1]):
        for name, member in cls.members.items():
            if isinstance(member, Attribute) and "instance-attribute" in member.labels:
                kind = ParameterKind.keyword_only
                found[name] = Parameter(name, annotation=member.annotation, kind=kind, default=member.value)
    return Parameters(*found.values())
