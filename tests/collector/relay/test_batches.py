"""Laws of batches: who leaves with whom, in which order, and who is answered when."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from random import SystemRandom
from typing import TypeVar

import pytest

from collector.relay import batches as module
from collector.relay.batches import Batches, Shuffle
from tests.support.patience import PATIENCE

T = TypeVar("T")
SOON = 0.05  # seconds between two beats
NEVER = 3_600.0  # seconds
CHANCE = SystemRandom().shuffle


class Gateway:
    """Answers each message with its reverse, and notes in which order they came."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.threads: set[str] = set()
        self.held = threading.Event()
        self.held.set()

    def carry(self, messages: Sequence[bytes], until: float) -> list[bytes | None]:
        assert 0 < until - time.monotonic() <= module.CARRY_S
        self.held.wait(PATIENCE)
        answers: list[bytes | None] = []
        for message in messages:
            self.came.append(message)
            answers.append(None if message == b"lost" else message[::-1])
        return answers


def messages(count: int) -> list[bytes]:
    return [f"message {number}".encode() for number in range(count)]


def networks(count: int) -> list[bytes]:
    return [bytes([4, 10, 0, number]) for number in range(count)]


def as_it_came(waiting: list[object]) -> None:
    """No shuffle at all."""


def run(
    gateway: Gateway,
    act: Callable[[Batches], Awaitable[T]],
    *,
    size: int = 100,
    within: float = NEVER,
    shuffle: Shuffle = CHANCE,
    **room: int,
) -> T:
    async def live() -> T:
        batches = Batches(gateway.carry, size, within, shuffle, **room)
        batches.start()
        try:
            return await act(batches)
        finally:
            batches.close()

    return asyncio.run(live())


def pass_all(
    batches: Batches, sent: Sequence[bytes], senders: Sequence[bytes]
) -> list[asyncio.Task[bytes | None]]:
    return [
        asyncio.create_task(batches.pass_on(message, sender))
        for message, sender in zip(sent, senders, strict=True)
    ]


def test_a_batch_leaves_whole_when_enough_networks_wait() -> None:
    """Each gets the answer to its own message."""
    gateway, sent = Gateway(), messages(7)

    async def act(batches: Batches) -> list[bytes | None]:
        first = pass_all(batches, sent[:6], networks(6))
        await asyncio.sleep(SOON)
        assert gateway.came == []
        return await asyncio.gather(*first, batches.pass_on(sent[6], b"another"))

    assert run(gateway, act, size=7) == [message[::-1] for message in sent]
    assert sorted(gateway.came) == sorted(sent)


def test_a_flood_from_one_network_makes_no_batch_leave() -> None:
    """A sender cannot fill up the batch of somebody who is watched."""
    gateway = Gateway()

    async def act(batches: Batches) -> None:
        tasks = pass_all(batches, messages(50), [b"flood"] * 49 + [b"watched"])
        await asyncio.sleep(SOON)
        assert gateway.came == []
        batches.stop()
        assert await asyncio.gather(*tasks) == [None] * 50

    run(gateway, act, size=3)


def test_a_batch_that_is_not_full_leaves_at_the_next_beat_of_the_clock() -> None:
    """Beats go on by themselves: that one comes says nothing of when the messages came."""

    async def act(batches: Batches) -> int:
        passed = batches.pass_on(b"abc", b"n")
        asyncio.get_running_loop().call_later(SOON / 2, passed.send, None)
        await asyncio.sleep(SOON)  # begun after the clock, so its beat is before: timers have order
        left = batches.counts.messages
        passed.close()
        return left

    assert run(Gateway(), act, within=SOON) == 1


def orders(shuffle: Shuffle, rounds: int) -> Counter[tuple[int, int]]:
    """Return how often the message of each place came at each place."""
    gateway, sent, seen = Gateway(), messages(4), Counter[tuple[int, int]]()

    async def act(batches: Batches) -> None:
        for _ in range(rounds):
            gateway.came.clear()
            await asyncio.gather(*pass_all(batches, sent, networks(4)))
            for place, message in enumerate(gateway.came):
                seen[sent.index(message), place] += 1

    run(gateway, act, size=4, shuffle=shuffle, connections=1)
    return seen


ROUNDS = 600
# 6.6 standard deviations of a count of 600 x 1/4; false alarms of all 16 counts: below 1e-9
BOUND = 6.6 * (ROUNDS * 3 / 16) ** 0.5


def is_uniform(seen: Counter[tuple[int, int]]) -> bool:
    cells = [(message, place) for message in range(4) for place in range(4)]
    return all(abs(seen[cell] - ROUNDS / 4) < BOUND for cell in cells)


def test_the_order_in_which_messages_leave_is_of_chance() -> None:
    """Over one connection, where the order is exact: every message is at every place as often."""
    assert is_uniform(orders(CHANCE, ROUNDS))


@pytest.mark.parametrize("planted", [as_it_came, list.reverse])
def test_an_order_that_is_not_of_chance_would_be_seen(
    planted: Shuffle,
) -> None:
    assert not is_uniform(orders(planted, ROUNDS))


def test_answers_come_together_and_in_the_order_of_the_questions() -> None:
    """Neither a slow answer nor the order of the answers tells which message was whose."""
    gateway, sent, ended = Gateway(), messages(20), list[int]()

    def note(number: int, _: object) -> None:
        ended.append(number)

    async def act(batches: Batches) -> None:
        gateway.held.clear()
        tasks = pass_all(batches, sent, networks(20))
        for number, task in enumerate(tasks):
            task.add_done_callback(partial(note, number))
        await asyncio.sleep(SOON)
        assert ended == []
        gateway.held.set()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)

    run(gateway, act, size=20)

    assert ended == list(range(20))
    assert gateway.came != sent  # but for 1 of 20! orders


def test_a_message_without_an_answer_costs_the_others_none() -> None:
    gateway = Gateway()

    async def act(batches: Batches) -> list[bytes | None]:
        return await asyncio.gather(*pass_all(batches, [b"ab", b"lost", b"cd"], networks(3)))

    assert run(gateway, act, size=3) == [b"ba", None, b"dc"]


def test_who_leaves_before_the_answer_makes_the_batch_no_smaller() -> None:
    """The message goes with the others; that it counts once is the collector's work."""
    gateway = Gateway()

    async def act(batches: Batches) -> None:
        gone, *others = pass_all(batches, messages(3), networks(3))
        await asyncio.sleep(0)
        gone.cancel()
        assert await asyncio.gather(*others, batches.pass_on(b"last", b"n")) != []

    run(gateway, act, size=4)

    assert len(gateway.came) == 4


def test_beyond_its_room_the_relay_takes_no_message() -> None:
    """By number and by size; room comes back with the answers."""

    async def act(batches: Batches) -> None:
        waiting = pass_all(batches, [b"a", b"b", b"c"], networks(3))
        await asyncio.sleep(0)
        assert await batches.pass_on(b"d", b"n") is None
        batches.stop()
        await asyncio.gather(*waiting)
        batches.start()
        assert await batches.pass_on(bytes(11), b"n") is None
        assert batches.take_counts().refused == 2
        assert await asyncio.gather(*pass_all(batches, [b"ef"] * 5, networks(5))) != []

    run(Gateway(), act, within=SOON, most_waiting=3, most_bytes=10, shares=1)


def test_two_networks_at_their_limit_leave_room_for_others() -> None:
    """A network has a share of the bytes, also of those that are still coming."""

    async def act(batches: Batches) -> None:
        for network in (b"one", b"two"):
            taken = pass_all(batches, [bytes(1)] * 10, [network] * 10)
            await asyncio.sleep(0)
            assert await batches.pass_on(b"x", network) is None
        others = pass_all(batches, [bytes(10)] * 6, networks(6))
        await asyncio.sleep(0)
        assert batches.take_counts().refused == 2
        assert not any(task.done() for task in (*taken, *others))
        assert None not in await asyncio.gather(*others)
        assert await batches.pass_on(b"x", b"one") is not None
        coming = batches.room(b"one")
        assert coming.claim(10)
        assert await batches.pass_on(b"x", b"two") is not None  # so a batch has left
        assert not batches.room(b"one").claim(1)
        coming.release()

    run(Gateway(), act, within=SOON, most_bytes=80, shares=8)


def test_a_relay_that_stops_sends_those_who_wait_away() -> None:
    """They come again; a batch that left early would be smaller than was promised."""
    gateway = Gateway()

    async def act(batches: Batches) -> None:
        tasks = pass_all(batches, messages(3), networks(3))
        await asyncio.sleep(0)
        batches.stop()
        assert await asyncio.gather(*tasks) == [None] * 3
        assert await batches.pass_on(b"late", b"n") is None

    run(gateway, act)

    assert gateway.came == []


def test_counts_are_numbers_and_begin_anew_when_they_are_taken() -> None:
    async def act(batches: Batches) -> None:
        await asyncio.gather(*pass_all(batches, [b"a", b"lost"], networks(2)))
        counts = batches.take_counts()
        assert (counts.messages, counts.batches, counts.smallest) == (2, 1, 2)
        assert counts.unanswered == 1
        assert batches.take_counts().messages == 0

    run(Gateway(), act, size=2)


def test_no_text_of_a_waiting_message_shows_it() -> None:
    """A crash that prints its variables prints no message."""
    loop = asyncio.new_event_loop()
    waiting = module._Waiting(b"secret", loop.create_future())
    loop.close()

    assert "secret" not in repr(waiting)
