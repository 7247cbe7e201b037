"""What stands for ``typing`` on a device behaves as that does, where it does anything."""

from __future__ import annotations

import ast
import pickle
import typing
from pathlib import Path
from typing import Final

import client_sdk
from client_sdk.core import typing as ours

PACKAGE: Final = Path(client_sdk.__file__).parent
MAY: Final = {"core/typing.py", "handles.py"}  # the home of the names, and aliases with parameters


T = ours.TypeVar("T")


class Point(ours.NamedTuple):
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
    point = Point(1)

    assert (point, point.x, point.y, point.total) == ((1, 2), 1, 2, 3)
    assert (Point._fields, Point._field_defaults) == (
        UsualPoint._fields,
        UsualPoint._field_defaults,
    )
    assert (repr(point), point._replace(x=5), point._asdict()) == (
        "Point(x=1, y=2)",
        (5, 2),
        {"x": 1, "y": 2},
    )
    assert (Point.__doc__, Point.__module__) == ("A place.", __name__)
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
