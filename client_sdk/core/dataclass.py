"""Classes of values, decorated and checked like ``dataclasses``, and cheap to load.

The standard module loads ``inspect`` and compiles six functions a class: much of what an
application would pay for starting to record.  Here all classes share their functions, which
read the fields from the class.  Only what the SDK uses is here.
"""

from __future__ import annotations

from collections.abc import Callable

from .typing import Any, Final, NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")
_MISSING: Final = object()
_FIELDS: Final = "_fields_of_dataclass"  # the attribute of a class that holds them


class _Field(NamedTuple):
    """What an instance gets that is made without this field, and whether its repr shows it."""

    default: object = _MISSING
    factory: Any = _MISSING
    in_repr: bool = True


def field(*, default: object = _MISSING, default_factory: Any = _MISSING, repr: bool = True) -> Any:
    """Return the description of a field; ``repr=False`` hides it."""
    return _Field(default, default_factory, repr)


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, init: bool = True, repr: bool = True
) -> Callable[[type[T]], type[T]]:
    """Give a class what its annotations say: a constructor, equality, a hash if it is *frozen*.

    ``init=False`` keeps the class's own constructor, ``repr=False`` the repr of all objects.
    """
    return lambda cls: _complete(cls, frozen, init, repr)


def replace(instance: T, **changes: object) -> T:
    """Return a copy of *instance* with other values in some fields.

    Raises: TypeError: there is no such field.
    """
    return type(instance)(**{**as_dict(instance), **changes})


def field_names(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of *cls*, inherited ones first."""
    return tuple(_fields(cls))


def as_dict(instance: object) -> dict[str, object]:
    """Return the fields of *instance* by name."""
    return {name: getattr(instance, name) for name in field_names(type(instance))}


def _complete(cls: type[T], frozen: bool, init: bool, in_repr: bool) -> type[T]:
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields |= base.__dict__.get(_FIELDS, {})
    for name, annotation in cls.__annotations__.items():  # only this class has them, as text
        if not annotation.startswith("ClassVar"):
            default = cls.__dict__.get(name, _MISSING)
            fields[name] = default if isinstance(default, _Field) else _Field(default)
            if isinstance(default, _Field):
                delattr(cls, name)
    functions: dict[str, Callable[..., Any]] = {"__eq__": _equal}
    if init:
        functions["__init__"] = _initialize
    if in_repr:
        functions["__repr__"] = _show
    if frozen:
        functions |= {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}
    own = {name: function for name, function in functions.items() if name not in cls.__dict__}
    for name, function in own.items():
        setattr(cls, name, function)
    if not frozen:
        cls.__hash__ = None  # type: ignore[assignment]  # as in dataclasses: it may change
    setattr(cls, _FIELDS, fields)
    return cls


def _fields(cls: type) -> dict[str, _Field]:
    fields: dict[str, _Field] = getattr(cls, _FIELDS)
    return fields


def _initialize(self: Any, *args: Any, **named: Any) -> None:
    state, fields = self.__dict__, _fields(type(self))
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__}: takes {len(fields)} values, got {len(args)}")
    state.update(zip(fields, args, strict=False))
    for name, value in named.items():
        if name not in fields or name in state:
            raise TypeError(f"{type(self).__name__}: {name} is unknown or given twice")
        state[name] = value
    if len(state) < len(fields):
        _fill(self, state, fields)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _fill(self: object, state: dict[str, object], fields: dict[str, _Field]) -> None:
    """Set the fields that were not given to their defaults."""
    for name, described in fields.items():
        if name in state:
            continue
        if described.factory is not _MISSING:
            state[name] = described.factory()
        elif described.default is not _MISSING:
            state[name] = described.default
        else:
            raise TypeError(f"{type(self).__name__}: {name} is missing")


def _values(self: object) -> tuple[object, ...]:
    return tuple([getattr(self, name) for name in _fields(type(self))])


def _equal(self: object, other: object) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: object) -> int:
    return hash(_values(self))


def _show(self: object) -> str:
    fields = _fields(type(self)).items()
    parts = [f"{name}={getattr(self, name)!r}" for name, described in fields if described.in_repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _refuse(self: object, name: str, *value: object) -> None:
    raise AttributeError(f"{type(self).__name__}.{name}: must not change")
