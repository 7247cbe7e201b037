"""The client in a program with an event loop: nothing that waits for a network holds the loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import pytest

from client_sdk.client import Client
from client_sdk.privacy.consent import NoOptOuts
from tests.support.device.device import KEY, REGISTRY, make_client
from tests.support.device.device_transport import ScriptedTransport
from tests.support.patience import PATIENCE

TICKS: Final = 20  # turns of the loop while an upload is on its way
ROOT: Final = Path(__file__).parents[2]


class SlowCollector:
    """A collector on this machine that answers an upload when it is let, or loses patience."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.began, self.may_answer = threading.Event(), threading.Event()
        self.bodies: list[bytes] = []
        self.patience = patience
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.bodies.append(body)
                collector.began.set()
                collector.may_answer.wait(collector.patience)
                answer = b'{"accepted": 1, "duplicate": false, "rejected": []}'
                self.send_response(202)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def slow_collector(patience: float = PATIENCE) -> Iterator[SlowCollector]:
    collector = SlowCollector(patience)
    thread = threading.Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.may_answer.set()
        collector.server.shutdown()
        collector.server.server_close()
        thread.join()


def client_of(collector: SlowCollector, folder: Path) -> Client:
    """A client with a report that waits to be sent."""
    client = Client(
        collector.url,
        KEY,
        REGISTRY,
        consent="granted",
        data_dir=folder,
        mode="manual",
        opt_outs=NoOptOuts(),
    )
    client.record("dark_mode", True)
    return client


async def tick(collector: SlowCollector) -> None:
    """Let the collector answer after the loop has turned TICKS times with an upload on its way."""
    while not collector.began.is_set():
        await asyncio.sleep(0.001)
    for _ in range(TICKS):
        await asyncio.sleep(0)
    collector.may_answer.set()


def test_a_flush_lets_the_loop_turn_while_a_collector_is_slow(tmp_path: Path) -> None:
    """Law: the collector answers only because the loop went on; it would have lost patience."""

    async def main(collector: SlowCollector) -> bool:
        ticker = asyncio.ensure_future(tick(collector))
        async with client_of(collector, tmp_path) as client:
            delivery = await client.aflush()
            let = collector.may_answer.is_set()
            await ticker
        assert client.stats()["uploaded"] == 1
        return let and delivery.complete

    with slow_collector() as collector:
        assert asyncio.run(main(collector))
        assert len(collector.bodies) == 1


def test_a_close_lets_the_loop_turn_while_a_collector_is_slow(tmp_path: Path) -> None:
    """Law: of a client that sends all when it is closed."""

    async def main(collector: SlowCollector) -> bool:
        ticker = asyncio.ensure_future(tick(collector))
        client = client_of(collector, tmp_path)
        await client.aclose(timeout=PATIENCE)
        let = collector.may_answer.is_set()
        await ticker
        assert client.stats()["uploaded"] == 1
        return let

    with slow_collector() as collector:
        assert asyncio.run(main(collector))


def test_a_flush_that_holds_the_loop_would_be_caught(tmp_path: Path) -> None:
    """The control: as it is without a thread; the collector loses its patience at once."""

    async def main(collector: SlowCollector) -> bool:
        ticker = asyncio.ensure_future(tick(collector))
        with client_of(collector, tmp_path) as client:
            client.flush()
            let = collector.may_answer.is_set()
            await ticker
        return let

    with slow_collector(patience=0.01) as collector:
        assert not asyncio.run(main(collector))


def test_a_flush_that_is_cancelled_ends_at_once_and_its_upload_counts_once(
    tmp_path: Path,
) -> None:
    """Law: while the collector still holds its answer; the thread ends what it began."""

    async def main(collector: SlowCollector) -> None:
        client = client_of(collector, tmp_path)
        flush = asyncio.ensure_future(client.aflush())
        while not collector.began.is_set():
            await asyncio.sleep(0.001)
        flush.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flush
        assert not collector.may_answer.is_set()
        collector.may_answer.set()
        await client.aflush()
        await client.aclose()
        assert client.stats()["uploaded"] == 1

    with slow_collector() as collector:
        asyncio.run(main(collector))

        assert len(set(collector.bodies)) == 1


def test_a_close_that_is_cancelled_before_it_began_is_done_all_the_same(tmp_path: Path) -> None:
    """Law: where all threads of the loop are busy, and also at the end of the loop."""

    async def main(client: Client, free: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        loop.run_in_executor(None, free.wait, PATIENCE)
        close = asyncio.ensure_future(client.aclose())
        await asyncio.sleep(0)
        close.cancel()
        with pytest.raises(asyncio.CancelledError):
            await close
        client.record("dark_mode", True)  # not closed yet
        assert client.stats()["closed"] == 0
        free.set()

    client = make_client(tmp_path)
    asyncio.run(main(client, threading.Event()))

    client.record("dark_mode", True)
    assert client.stats()["closed"] == 1


def test_an_exception_of_the_block_goes_on_and_the_client_is_closed(tmp_path: Path) -> None:
    transport = ScriptedTransport()
    client = make_client(tmp_path, transport=transport)

    async def main() -> None:
        async with client as entered:
            assert entered is client
            client.record("dark_mode", True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())

    client.record("dark_mode", True)
    assert client.stats()["closed"] == 1
    assert len(transport.sent) == 1


def test_tasks_may_flush_and_close_at_the_same_time(tmp_path: Path) -> None:
    """Law: one report, sent once, whoever comes first."""
    transport = ScriptedTransport()
    client = make_client(tmp_path, transport=transport)
    client.record("dark_mode", True)

    async def main() -> None:
        await asyncio.gather(*(client.aflush() for _ in range(4)), client.aclose(), client.aclose())

    asyncio.run(main())

    assert client.stats()["uploaded"] == len(transport.sent) == 1


def test_a_program_without_a_loop_loads_none() -> None:
    """Law: asyncio takes longer than all of the SDK."""
    snippet = "import sys, client_sdk; client_sdk.Client; print('asyncio' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert done.stdout == "False\n"
