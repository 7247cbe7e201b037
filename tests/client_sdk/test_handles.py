"""client_sdk.handles: what a handle records, and when."""

from __future__ import annotations

import asyncio
import doctest
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest

from client_sdk import command, handles
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.handles import Counter, Flag, Stopwatch, TimeCounter, Timer
from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient
from tests.support.device.registries import BOOLEAN, HEAD, NUMBER, table

MILLISECOND: Final = 1_000_000  # nanoseconds
DURATION: Final = {**NUMBER, "type": '"duration"', "unit": '"ms"', "max": "1000", "min": "0"}
METRICS: Final = HEAD + "".join(
    (
        table("build", DURATION, aggregate='"sum"', every='"1d"'),
        table("saves", NUMBER, aggregate='"sum"', every='"1d"'),
        table("exported", BOOLEAN, aggregate='"any"', every='"1d"'),
    )
)


class Recorded:
    """A client that keeps what it is asked to record."""

    def __init__(self) -> None:
        self.values: list[tuple[str, object]] = []

    def record(self, name: str, value: object, /) -> None:
        self.values.append((name, value))


class Ticks:
    """A clock that each look at it moves on by a millisecond."""

    now = 0

    def __call__(self) -> int:
        self.now += MILLISECOND
        return self.now


@pytest.fixture
def client() -> Recorded:
    return Recorded()


@pytest.fixture
def build(client: Recorded) -> Timer:
    return Timer(client, "build", MILLISECOND, Ticks())


def test_the_examples_of_the_docstring_run() -> None:
    done = doctest.testmod(handles, extraglobs={"METRICS": METRICS})

    assert (done.attempted > 8, done.failed) == (True, 0)


def test_a_block_is_recorded_in_the_unit_of_its_metric(client: Recorded) -> None:
    with Timer(client, "build", MILLISECOND, Ticks()).time():
        pass
    with Timer(client, "build", 1_000, Ticks()).time():
        pass
    with Timer(client, "build", 3_600_000_000_000, iter([0, 5_400_000_000_000]).__next__).time():
        pass

    assert client.values == [("build", 1), ("build", 1_000), ("build", 1.5)]


def test_a_block_that_raises_is_recorded_unless_told_not_to(client: Recorded, build: Timer) -> None:
    """Law: and its exception goes on."""
    for failures in (True, False):
        with pytest.raises(ZeroDivisionError), build.time(failures=failures):
            _ = 1 / 0

    assert client.values == [("build", 1)]


def test_blocks_within_each_other_are_timed_apart(client: Recorded, build: Timer) -> None:
    watch = build.time()
    with watch, watch:
        pass

    assert client.values == [("build", 1), ("build", 3)]


def test_a_function_is_timed_at_each_call_and_stays_itself(client: Recorded, build: Timer) -> None:
    @build.time()
    def twice(number: int) -> int:
        """Double."""
        return 2 * number

    assert [twice(3), twice(number=4)] == [6, 8]
    assert (twice.__name__, twice.__doc__) == ("twice", "Double.")
    assert client.values == [("build", 1)] * 2


def test_a_function_that_calls_itself_is_timed_from_each_call_on(
    client: Recorded, build: Timer
) -> None:
    @build.time(failures=False)
    def down(number: int) -> None:
        if number < 0:
            raise ValueError(number)
        if number:
            down(number - 1)

    down(1)
    with pytest.raises(ValueError, match="-1"):
        down(-1)

    assert client.values == [("build", 1), ("build", 3)]


def test_a_coroutine_function_is_timed_to_its_end(client: Recorded) -> None:
    """Law: from its first step on, beside others, and not only until it is first awaited."""
    ticks = Ticks()
    gate: list[asyncio.Event] = []

    @Timer(client, "build", MILLISECOND, ticks).time()
    async def wait(number: int) -> int:
        await gate[0].wait()
        return number

    async def main() -> list[int]:
        gate.append(asyncio.Event())
        waiting = [asyncio.ensure_future(wait(number)) for number in (1, 2)]
        await asyncio.sleep(0)
        assert client.values == []
        ticks.now += 7 * MILLISECOND
        gate[0].set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [1, 2]
    assert client.values == [("build", 9), ("build", 9)]


@pytest.mark.parametrize("failures", [True, False])
def test_a_task_that_is_cancelled_is_a_failure(
    failures: bool, client: Recorded, build: Timer
) -> None:
    @build.time(failures=failures)
    async def endless() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.ensure_future(endless())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert client.values == [("build", 1)] * failures


class Callables:
    """What can be called, in ways that do not show on the first look."""

    async def method(self) -> str:
        return "awaited"

    async def __call__(self) -> str:
        return "awaited"


@pytest.mark.parametrize(
    "function",
    [Callables().method, Callables(), functools.partial(functools.partial(Callables().method))],
)
def test_what_is_awaited_is_timed_until_then(
    function: Callable[[], Any], client: Recorded, build: Timer
) -> None:
    called = wrapped(build.time(), function)()

    assert client.values == []
    assert asyncio.run(called) == "awaited"
    assert client.values == [("build", 1)]


def wrapped(watch: Stopwatch, function: Callable[[], Any]) -> Callable[[], Any]:
    if not hasattr(function, "__name__"):
        functools.update_wrapper(function, Callables.method)
    return watch(function)


def test_a_builtin_is_timed(client: Recorded, build: Timer) -> None:
    assert build.time()(len)("abc") == 3
    assert build.time()(int)("7") == 7
    assert client.values == [("build", 1)] * 2


def test_a_generator_is_refused(build: Timer) -> None:
    """Law: its time is mostly that of who uses it."""

    def items() -> Iterator[int]:
        yield 1

    async def more() -> AsyncIterator[int]:
        yield 1

    for function in (items, more):
        with pytest.raises(InvalidParameterError, match="must not be a generator"):
            build.time()(function)


def test_counters_and_flags_record_what_their_names_say(client: Recorded) -> None:
    Counter(client, "saves").add()
    Counter(client, "saves").add(2.5)
    Flag(client, "exported").seen()
    with TimeCounter(client, "build", MILLISECOND, Ticks()).time():
        TimeCounter(client, "build", MILLISECOND).add(3)

    assert client.values == [
        ("saves", 1),
        ("saves", 2.5),
        ("exported", True),
        ("build", 3),
        ("build", 1),
    ]


def test_what_is_recorded_becomes_one_report_of_the_day() -> None:
    client = MemoryClient(Registry.from_text(METRICS))

    with TimeCounter(client, "build", MILLISECOND).time():
        Counter(client, "saves").add(2)
    Flag(client, "exported").seen()
    client.clock.advance(days=1)
    client.flush()

    assert client.refused == []
    assert client.stats()["recorded"] == 3


def test_definitions_are_compared_where_a_registry_was_read() -> None:
    """Law: the light path has read none, and its child refuses what the registry does not know."""
    registry = Registry.from_text(METRICS)
    digests = {metric.name: metric.digest.hex() for metric in registry}

    handles.require_definitions(MemoryClient(registry), digests)
    handles.require_definitions(command, {"gone": "00"})
    with pytest.raises(RegistryError, match=r"metrics\.gone: has not the definition"):
        handles.require_definitions(MemoryClient(registry), {**digests, "gone": "00"})
