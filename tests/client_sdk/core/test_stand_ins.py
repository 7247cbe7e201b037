"""What stands for a part of the standard library does as that part does."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import pickle
import typing
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import client_sdk
from client_sdk.core import compact_json
from client_sdk.core import typing as ours
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


PACKAGE: Final = Path(client_sdk.__file__).parent
MAY: Final = {"core/typing.py", "handles.py"}  # the home of the names, and aliases with parameters


T = ours.TypeVar("T")


class Place(ours.NamedTuple):
    """A place."""

    x: int
    y: int = 2

    @property
    def total(self) -> int:
        """Both."""
        return self.x + self.y


class UsualPoint(typing.NamedTuple):
    """A place."""

    x: int
    y: int = 2


class Box(ours.Generic[T]):
    """Holds something."""


def test_a_named_tuple_is_one_of_the_standard_library() -> None:
    point = Place(1)

    assert (point, point.x, point.y, point.total) == ((1, 2), 1, 2, 3)
    assert (Place._fields, Place._field_defaults) == (
        UsualPoint._fields,
        UsualPoint._field_defaults,
    )
    assert (repr(point), point._replace(x=5), point._asdict()) == (
        "Place(x=1, y=2)",
        (5, 2),
        {"x": 1, "y": 2},
    )
    assert (Place.__doc__, Place.__module__) == ("A place.", __name__)
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 - our own


def test_a_class_with_parameters_is_the_class() -> None:
    box = Box[int]()

    assert type(box) is Box
    assert Box.__mro__ == (Box, ours.Generic, object)


def imports_typing(source: str) -> bool:
    """Whether *source* loads ``typing`` when it is imported."""
    statements = list(ast.parse(source).body)
    while statements:
        statement = statements.pop()
        if isinstance(statement, ast.ImportFrom) and statement.module == "typing":
            return statement.level == 0
        if isinstance(statement, ast.Import) and any(a.name == "typing" for a in statement.names):
            return True
        if isinstance(statement, ast.If) and ast.unparse(statement.test) != "TYPE_CHECKING":
            statements += statement.body
    return False


def test_no_module_of_the_device_loads_typing() -> None:
    loading = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if imports_typing(path.read_text("utf-8"))
    }

    assert {path for path in loading if not path.startswith("integrations/")} <= MAY


def test_a_planted_import_of_typing_is_found() -> None:
    assert imports_typing("import os\nfrom typing import Final\n")
    assert imports_typing("import typing\n")
    assert not imports_typing("from .typing import Final\nif TYPE_CHECKING:\n    import typing\n")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
DAMAGED = (
    *("", " ", "{", "[1,]", "[1] 2", "{1:2}", "nul", '"a', '"\n"', "\ufeff1", "01", "1 }"),
    *("1" * 5_000, "[" * 100_000, '{"a":1,"a":2'),
)


@pytest.fixture(params=["own", "standard"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let JSON go one way or the other."""
    if request.param == "standard":
        monkeypatch.setattr(compact_json, "_functions", None)


def test_this_interpreter_has_functions_of_its_own() -> None:
    assert compact_json._functions is not None


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("sort_keys", [False, True])
def test_the_text_is_that_of_the_standard_module(sort_keys: bool) -> None:
    @given(values)
    def same(value: Any) -> None:
        usual = json.dumps(value, sort_keys=sort_keys, separators=(",", ":"))
        assert compact_json.dumps(value, sort_keys=sort_keys) == usual

    same()


@pytest.mark.usefixtures("way")
def test_what_is_read_is_what_the_standard_module_reads() -> None:
    @given(values, st.text(" \t\r\n"), st.integers(0, 2))
    def same(value: Any, space: str, indent: int) -> None:
        text = space + json.dumps(value, indent=indent or None) + space
        assert repr(compact_json.loads(text)) == repr(json.loads(text))

    same()


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_text_is_refused_in_the_words_of_the_standard_module(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as usual:
        json.loads(text)
    with pytest.raises(usual.type) as ours:
        compact_json.loads(text)

    assert str(ours.value) == str(usual.value)


@pytest.mark.usefixtures("way")
def test_hooks_make_objects_and_numbers_that_are_not_whole() -> None:
    text = '{"a": 1.5, "b": [NaN, -Infinity, 1e3, 7], "a": {}}'

    read = compact_json.loads(text, pairs=list, number=lambda text: f"<{text}>")

    assert read == [("a", "<1.5>"), ("b", ["<NaN>", "<-Infinity>", "<1e3>", 7]), ("a", [])]


@pytest.mark.usefixtures("way")
def test_a_value_without_a_form_of_its_own_is_replaced_or_refused() -> None:
    assert compact_json.dumps([b"\x01"], default=bytes.hex) == '["01"]'
    with pytest.raises(TypeError, match="bytes is not JSON serializable"):
        compact_json.dumps([b"\x01"])
