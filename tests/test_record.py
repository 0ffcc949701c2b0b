"""Records: frozen values with keyword fields, equal by type and content."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import pytest

from harness.record import Record, field_names, replace


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str
    tags: tuple[str, ...] = ()

    @property
    def shouted(self) -> str:
        return self.name.upper()


class Other(Record):
    x: int
    y: int = 0


def test_annotations_define_fields_and_values_their_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(y=2, x=1).y) == (1, 0, 2)


def test_a_subclass_has_the_inherited_fields_first() -> None:
    assert field_names(Named) == ("x", "y", "name", "tags")
    assert repr(Named(x=1, name="a")) == "Named(x=1, y=0, name='a', tags=())"
    assert Named(x=1, name="a").shouted == "A"


@pytest.mark.parametrize(
    ("cls", "values", "message"),
    [
        pytest.param(Point, {}, "Point: missing x", id="a missing field"),
        pytest.param(Point, {"x": 1, "z": 2, "a": 3}, "Point: unknown a, z; known: x, y", id="unknown fields"),
        pytest.param(Point, {"z": 2}, "Point: missing x; unknown z; known: x, y", id="both"),
        pytest.param(Named, {"y": 1}, "Named: missing x, name", id="missing inherited fields"),
    ],
)
def test_a_wrong_set_of_fields_is_refused(cls: type[Record], values: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        cls(**values)
    assert str(caught.value) == message


def test_positional_arguments_are_refused() -> None:
    make: Any = Point
    with pytest.raises(TypeError):
        make(1)


def test_a_field_cannot_be_set_nor_deleted_nor_added() -> None:
    point: Any = Point(x=1)
    with pytest.raises(AttributeError, match=r"^Point is frozen: cannot set x$"):
        point.x = 2
    with pytest.raises(AttributeError, match=r"^Point is frozen: cannot set z$"):
        point.z = 2
    with pytest.raises(AttributeError, match=r"^Point is frozen: cannot delete x$"):
        del point.x
    assert point == Point(x=1)
    assert not hasattr(point, "__dict__")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        pytest.param(Point(x=1), Point(x=1, y=0), True, id="the same content"),
        pytest.param(Point(x=1), Point(x=2), False, id="another value"),
        pytest.param(Point(x=1), Other(x=1), False, id="another type with the same fields"),
        pytest.param(Point(x=1), Named(x=1, name="a"), False, id="a subclass"),
        pytest.param(Point(x=1), (1, 0), False, id="a tuple"),
        pytest.param(Named(x=1, name="a"), Named(x=1, name="a"), True, id="inherited fields, equal"),
        pytest.param(Named(x=1, name="a"), Named(x=2, name="a"), False, id="inherited fields, different"),
    ],
)
def test_equality_is_of_type_and_content(left: Record, right: object, equal: bool) -> None:
    assert ((left == right), (left != right)) == (equal, not equal)
    assert not equal or hash(left) == hash(right)


def test_hashes_differ_by_type() -> None:
    assert len({Point(x=1), Point(x=1), Other(x=1), Named(x=1, name="a")}) == 3


def test_replace_changes_the_named_fields_only() -> None:
    named = Named(x=1, name="a", tags=("t",))
    assert replace(named, x=5) == Named(x=5, y=0, name="a", tags=("t",))
    assert named == Named(x=1, name="a", tags=("t",))
    with pytest.raises(TypeError, match=r"^Named: unknown z; known: x, y, name, tags$"):
        replace(named, z=1)


def test_copies_are_the_record_itself() -> None:
    point = Point(x=1)
    assert copy.copy(point) is point
    assert copy.deepcopy([point])[0] is point


def test_a_record_takes_part_in_match() -> None:
    match Named(x=1, name="a"):
        case Named(name=name, x=1):
            assert name == "a"
        case _:
            pytest.fail("a record was not matched by its fields")


def test_class_without_annotations_is_refused() -> None:
    make: Any = type(Record)
    message = "record Empty declares no fields; its module needs `from __future__ import annotations`"
    with pytest.raises(TypeError) as caught:
        make("Empty", (Record,), {})
    assert str(caught.value) == message


class Squared(Point):
    more: int = 0

    __slots__ = ("__dict__",)

    @cached_property
    def square(self) -> list[int]:
        return [self.x * self.x]


def test_a_cached_property_is_made_once_and_is_neither_compared_nor_copied() -> None:
    point = Squared(x=3)
    assert point.square is point.square
    assert (point, hash(point), repr(point)) == (Squared(x=3), hash(Squared(x=3)), "Squared(x=3, y=0, more=0)")
    assert replace(point, x=4).square == [16]
    with pytest.raises(AttributeError):
        point.square = [1]
    with pytest.raises(AttributeError):
        point.other = 1
