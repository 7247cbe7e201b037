"""Typed handles: what the modules made by ``hearsay registry codegen`` are built from.

Each metric has the handle of its kind, so that a type checker knows what can be said of it:

>>> from client_sdk.registry import Registry
>>> from client_sdk.testing import MemoryClient
>>> client = MemoryClient(Registry.from_text(METRICS))
>>> saves = Counter(client, "saves")  # in a made module: ``m.saves``
>>> saves.add()
>>> saves.add(2)
>>> Flag(client, "exported").seen()
>>> build = Timer(client, "build", 1_000_000)
>>> with build.time():
...     pass
>>> @build.time(failures=False)
... def rebuild() -> str:
...     return "done"
>>> rebuild()
'done'
>>> client.stats()["aggregated"]
5
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Items: TypeAlias = list[T] | tuple[T, ...] | set[T] | frozenset[T]  # a value of type ``set``

_COROUTINE: Final = 0x80  # of a function's code, as in ``inspect``, which takes long to load
_GENERATOR: Final = 0x20 | 0x200  # with ``async`` or without


class ClientLike(Protocol):
    """What a handle records with: a client, a gateway's device, ``client_sdk.command``."""

    def record(self, name: str, value: object, /) -> None:
        """Report *value* of the metric called *name*."""


class Handle(Generic[T]):
    """One metric of a client.  It takes only values of type *T*, as a type checker sees it."""

    __slots__ = ("_client", "_name")

    def __init__(self, client: ClientLike, name: str) -> None:
        """Record under *name* with *client*."""
        self._client, self._name = client, name

    def record(self, value: T) -> None:
        """Report *value* as ``Client.record`` does: it never raises and counts what it refuses."""
        self._client.record(self._name, value)


class Counter(Handle[float]):
    """A metric of which the values of an epoch are summed."""

    __slots__ = ()

    def add(self, n: float = 1) -> None:
        """Add *n* to the sum of this epoch."""
        self.record(n)


class Flag(Handle[bool]):
    """A metric that tells whether something happened in an epoch at all."""

    __slots__ = ()

    def seen(self) -> None:
        """Say that it happened."""
        self.record(True)


class Timer(Handle[float]):
    """A metric of how long something takes."""

    __slots__ = ("_clock", "_unit")

    def __init__(
        self,
        client: ClientLike,
        name: str,
        unit: int,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        """Record under *name* with *client*.

        Args: unit: nanoseconds of the metric's unit.  clock: nanoseconds since any moment.
        """
        super().__init__(client, name)
        self._unit, self._clock = unit, clock

    def time(self, *, failures: bool = True) -> Stopwatch:
        """Return what records how long a ``with`` block, or a decorated function, takes.

        A coroutine function is timed from its first step to its end, with all that it waits for.

        Args: failures: whether blocks that raise are recorded, too.
        """
        return Stopwatch(self._clock, self._elapsed, failures=failures)

    def _elapsed(self, nanoseconds: int) -> None:
        self.record(nanoseconds / self._unit)


class TimeCounter(Timer, Counter):
    """A metric of how long something takes in an epoch, all times together."""

    __slots__ = ()


class Stopwatch:
    """One use of ``Timer.time``: a context manager for one block at a time, or a decorator."""

    def __init__(
        self, clock: Callable[[], int], elapsed: Callable[[int], None], *, failures: bool
    ) -> None:
        """Tell *elapsed* the nanoseconds of *clock* that a block took."""
        self._clock, self._elapsed, self._failures = clock, elapsed, failures
        self._begins: list[int] = []  # of blocks within each other

    def __enter__(self) -> None:
        self._begins.append(self._clock())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        nanoseconds = self._clock() - self._begins.pop()
        if kind is None or self._failures:
            self._elapsed(nanoseconds)

    def __call__(self, function: F) -> F:
        """Return *function*, timed; each call has a watch of its own, in whatever thread or task.

        Raises: InvalidParameterError: it is a generator, which runs while others do.
        """
        flags = _flags(function)
        if flags & _GENERATOR:
            from .core.errors import InvalidParameterError

            name = getattr(function, "__qualname__", type(function).__name__)
            rule = "must not be a generator; use ``with`` around what is to be timed"
            raise InvalidParameterError("time", name, rule)
        timed: Any = self._awaited(function) if flags & _COROUTINE else self._called(function)
        return timed  # type: ignore[no-any-return]  # it has the signature of what it wraps

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            with Stopwatch(self._clock, self._elapsed, failures=self._failures):
                return function(*arguments, **named)

        return timed

    def _awaited(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        async def timed(*arguments: Any, **named: Any) -> Any:
            with Stopwatch(self._clock, self._elapsed, failures=self._failures):
                return await function(*arguments, **named)

        return timed


def _flags(function: Any) -> int:
    """Return the flags of the code that a call of *function* runs; 0 where there is none."""
    while hasattr(function, "func"):  # a partial
        function = function.func
    for call in (function, function.__call__):  # the second of objects that can be called
        if (code := getattr(call, "__code__", None)) is not None:
            return int(code.co_flags)
    return 0


def require_definitions(client: ClientLike, digests: Mapping[str, str]) -> None:
    """Raise RegistryError unless *client*'s registry defines every name with its digest, in hex.

    A digest covers the type, the domain and ε of a metric, so handles that agree with it take
    exactly the values that the registry takes.  ``client_sdk.command`` has read none: there a
    handle of another definition is found by the child, which counts what it refuses.
    """
    registry = getattr(client, "registry", None)
    if registry is None:
        return
    problems = [
        f"metrics.{name}: has not the definition that its handle was made from; run codegen again"
        for name, digest in digests.items()
        if name not in registry.metrics or registry.metric(name).digest.hex() != digest
    ]
    if problems:
        from .core.errors import RegistryError

        raise RegistryError(problems)
