"""Laws of the SDK's own dataclass: what ``dataclasses`` promises, as far as it is used."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest

from client_sdk.core.dataclass import as_dict, dataclass, field, field_names, replace


@dataclass(frozen=True)
class Point:
    """A point."""

    unit: ClassVar[str] = "m"

    x: int
    y: int = 0
    seen: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Named(Point):
    """A point that has a name, which its repr does not show."""

    name: str = field(default="origin", repr=False)


@dataclass()
class Counter:
    """Something that changes."""

    count: int = 0


@dataclasses.dataclass(frozen=True)
class Model:
    """The same as ``Point``, as the standard library does it."""

    unit: ClassVar[str] = "m"

    x: int
    y: int = 0
    seen: list[int] = dataclasses.field(default_factory=list)


def test_an_instance_holds_what_is_given_and_defaults_for_the_rest() -> None:
    """By place, by name, and from a factory that is called each time."""
    point, other = Point(1), Point(y=2, x=1)

    assert (point.x, point.y, point.seen) == (1, 0, [])
    assert (other.x, other.y) == (1, 2)
    assert point.seen is not other.seen


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]
)
def test_wrong_arguments_are_refused_as_the_standard_library_refuses_them(
    args: tuple[object, ...], named: dict[str, object]
) -> None:
    """Missing, too many, given twice, unknown."""
    for cls in (Point, Model):
        with pytest.raises(TypeError):
            cls(*args, **named)  # type: ignore[arg-type]  # wrong on purpose


def test_equality_hash_and_repr_are_those_of_the_standard_library() -> None:
    """Instances of different classes are never equal."""
    assert Point(1, 2, [3]) == Point(1, 2, [3]) != Point(1, 2)
    assert Named(1) != Point(1)
    assert repr(Point(1)) == repr(Model(1)).replace("Model", "Point")
    assert hash(Named(1, 2, ())) == hash((1, 2, (), "origin"))  # type: ignore[arg-type]  # hashable


def test_a_frozen_instance_cannot_be_changed() -> None:
    """Neither set nor deleted; what is not frozen can, and so has no hash."""
    point, counter = Point(1), Counter()
    counter.count = 2

    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]  # wrong on purpose
    with pytest.raises(AttributeError):
        del point.x
    with pytest.raises(TypeError):
        hash(counter)


def test_fields_are_those_of_the_bases_first_without_class_variables() -> None:
    """The order of the constructor's arguments."""
    assert field_names(Named) == ("x", "y", "seen", "name")
    assert as_dict(Counter(3)) == {"count": 3}


def test_a_hidden_field_is_not_in_the_repr() -> None:
    """A key or a value must not reach a log."""
    assert "secret" not in repr(Named(1, name="secret"))


def test_a_copy_may_differ_in_some_fields() -> None:
    """replace, copy and pickle make equal instances of the same class."""
    point = Named(1, 2, [3], "here")

    assert replace(point, y=5) == Named(1, 5, [3], "here")
    assert copy.deepcopy(point) == point == pickle.loads(pickle.dumps(point))  # noqa: S301 - ours
    with pytest.raises(TypeError):
        replace(point, z=1)
