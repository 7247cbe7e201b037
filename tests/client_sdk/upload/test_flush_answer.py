"""What a flush returns: whether all has arrived, and when it is worth another try."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from client_sdk import Delivery
from client_sdk.upload.schedule import FIRST_BACKOFF
from tests.support.device.clock import FakeClock
from tests.support.device.device import alter, make_client
from tests.support.device.device_transport import ScriptedTransport


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_flush_says_that_all_has_arrived(tmp_path: Path, mode: str) -> None:
    with make_client(tmp_path, mode=mode) as client:
        nothing = client.flush()
        client.record("dark_mode", True)

        delivery = client.flush()

    assert nothing == delivery == Delivery(waiting=0, wait=0.0)
    assert delivery.complete


@pytest.mark.parametrize("mode", ["manual", "background"])
def test_a_flush_says_what_still_waits_and_for_how_long(tmp_path: Path, mode: str) -> None:
    clock = FakeClock()
    client = make_client(tmp_path, mode=mode, clock=clock, transport=ScriptedTransport([503]))
    client.record("dark_mode", True)

    first = client.flush()
    clock.advance(seconds=first.wait)
    second = client.flush()

    client.close()
    assert (first.waiting, first.complete) == (1, False)
    assert 0 <= first.wait <= FIRST_BACKOFF
    assert second.complete


def test_who_flushes_until_it_is_complete_delivers_everything(tmp_path: Path) -> None:
    """Law: an upload that was tried before goes alone, and the answer says that others wait."""
    clock = FakeClock()
    client = make_client(tmp_path, clock=clock, transport=ScriptedTransport([503, 202, 503]))
    client.record("dark_mode", True)
    client.flush()
    clock.advance(seconds=FIRST_BACKOFF)
    client.record("theme", "plain")

    flushes = 0
    while not (delivery := client.flush()).complete:
        clock.advance(seconds=delivery.wait)
        flushes += 1

    client.close()
    assert flushes >= 1
    assert client.stats()["uploaded"] == 2


def test_a_flush_without_a_readable_database_does_not_say_that_all_arrived(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.record("dark_mode", True)
    alter(tmp_path, "DROP TABLE uploads")

    delivery = client.flush()

    client.close()
    assert delivery == Delivery(None)
    assert not delivery.complete


def test_a_flush_of_a_closed_client_knows_nothing(tmp_path: Path) -> None:
    client = make_client(tmp_path)
    client.close()

    assert client.flush() == Delivery(None)
    assert client.stats()["store"] == 0


def test_an_async_program_flushes_in_a_thread(tmp_path: Path) -> None:
    """Law: the loop goes on while a flush waits for its answer."""

    async def main() -> tuple[Delivery, int]:
        client = make_client(tmp_path, mode="background")
        client.record("dark_mode", True)
        flushing = asyncio.create_task(asyncio.to_thread(client.flush))
        turns = 0
        while not flushing.done():
            await asyncio.sleep(0)
            turns += 1
        await asyncio.to_thread(client.close)
        return await flushing, turns

    delivery, turns = asyncio.run(main())

    assert delivery.complete
    assert turns > 1
