"""Bodies: whole or refused, within their limit and their time, and counted while they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from collector.core.errors import BodyTooLargeError, SlowBodyError
from collector.serving.bodies import Bodies
from tests.support.sites.rsgi import Protocol

PARTS = (b"ab", b"cde")


def read(
    protocol: Protocol,
    length: int | None,
    limit: int = 5,
    claim: Callable[[int], None] | None = None,
) -> bytes:
    return asyncio.run(Bodies().read(protocol, length, limit, 60.0, claim))


@pytest.mark.parametrize("length", [None, 5])
@pytest.mark.parametrize("counts", [False, True])
def test_a_body_comes_whole_and_each_part_is_counted(length: int | None, counts: bool) -> None:
    claimed: list[int] = []

    assert read(Protocol(PARTS), length, claim=claimed.append if counts else None) == b"abcde"
    assert claimed == [2, 3] * counts


@pytest.mark.parametrize("length", [None, 5])
def test_a_body_of_a_byte_too_much_is_refused(length: int | None) -> None:
    with pytest.raises(BodyTooLargeError, match="at most 4 bytes"):
        read(Protocol(PARTS), length, limit=4)


@pytest.mark.parametrize("counts", [False, True])
def test_a_body_that_is_cut_off_is_none(counts: bool) -> None:
    claimed: list[int] = []

    with pytest.raises(ProtocolClosed):
        read(Protocol(PARTS, gone=True), 5, claim=claimed.append if counts else None)


def test_a_body_is_given_up_when_its_time_is_over_and_not_before() -> None:
    async def given_up(after: float) -> bool:
        bodies, protocol = Bodies(), Protocol(PARTS, stalls=True)
        task = asyncio.ensure_future(bodies.read(protocol, 9, 9, 60.0))
        while not protocol.stalled:
            await asyncio.sleep(0)
        began = asyncio.get_running_loop().time()
        bodies.give_up(began + after)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises((SlowBodyError, asyncio.CancelledError)) as ended:
            await task
        return ended.type is SlowBodyError

    assert asyncio.run(given_up(61.0))
    assert not asyncio.run(given_up(0.0))
