"""What of ``typing`` the device needs when it runs: the standard module costs a start 3 ms.

Type checkers see the standard names.  Of these only a few do anything at run time, as no annotation
is ever looked at there: a base with parameters is a plain class, and a named tuple is made as by
``collections``.  ``typing`` is imported by ``handles`` alone, whose aliases have parameters.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true

if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import Final as Final
    from typing import Generic as Generic
    from typing import Literal as Literal
    from typing import NamedTuple as NamedTuple
    from typing import Protocol as Protocol
    from typing import TypeAlias as TypeAlias
    from typing import TypeVar as TypeVar
    from typing import cast as cast
    from typing import dataclass_transform as dataclass_transform
else:
    IO = Any = ClassVar = Final = Literal = TypeAlias = object

    def TypeVar(name, *constraints, bound=None):  # noqa: N802 - as the class that it stands for
        """Return what stands for any type."""
        return object

    def cast(kind, value):
        """Return *value*."""
        return value

    def dataclass_transform(**options):
        """Return a decorator that changes nothing."""
        return lambda decorator: decorator

    class Generic:
        """A base that takes type parameters, and forgets them."""

        __slots__ = ()

        def __class_getitem__(cls, parameters):
            return cls

    class Protocol:
        """A base of classes that only say what others must have."""

        __slots__ = ()

    class _NamedTuples(type):
        """Makes the classes that derive from NamedTuple."""

        def __new__(cls, name, bases, body):
            from collections import namedtuple

            names = body.pop("__annotations__")
            defaults = [body.pop(field) for field in names if field in body]
            kind = namedtuple(name, names, defaults=defaults, module=body["__module__"])
            for key, entry in body.items():
                setattr(kind, key, entry)
            return kind

    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
