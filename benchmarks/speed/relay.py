"""What a relay costs: processor time and memory a message, and how large its batches become.

Run: ``python -m benchmarks relay``.  A real ``hearsay relay`` on loopback, to a gateway that
answers at once.  Devices are connections from 128 networks of 127.0.0.0/8 (Linux), each with one
message of 1,207 bytes, the smallest sealed upload.  The table of batches is a simulation: messages
come at chance moments, each from a network of its own, and a batch leaves with 100 of them or by
the clock.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.lib.page import ROOT, show
from client_sdk.wire.oblivious import ANSWER_TYPE, REQUEST_TYPE
from collector.demo.demo import free_port

MESSAGES: Final = 6_000
AT_ONCE: Final = 400  # connections
WAITING: Final = 4_000  # messages that wait at once, where memory is measured
NETWORKS: Final = 128
MESSAGE: Final = os.urandom(1_207)
RATES: Final = {1_000: 0.058, 10_000: 0.58, 100_000: 5.8, 1_000_000: 58.0}  # devices: uploads a s
BATCH, WITHIN = 100, 15.0  # the defaults
SIMULATED: Final = 20_000  # messages
_GATEWAY: Final = f"""
import asyncio, sys
ANSWER = (b"HTTP/1.1 200 OK\\r\\nContent-Type: {ANSWER_TYPE}\\r\\nContent-Length: 1024\\r\\n\\r\\n"
          + bytes(1024))
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
            writer.write(ANSWER)
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
"""


async def _send(port: int, number: int) -> bool:
    """Send one message over a connection of its own; return whether it was answered."""
    source = (f"127.0.{number % NETWORKS}.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source)
    head = f"POST / HTTP/1.1\r\nHost: r\r\nContent-Type: {REQUEST_TYPE}\r\n"
    writer.write(f"{head}Content-Length: {len(MESSAGE)}\r\n\r\n".encode() + MESSAGE)
    said = await reader.read(4_096)
    writer.close()
    return said.startswith(b"HTTP/1.1 200 ")


async def _load(port: int) -> int:
    """Send MESSAGES, AT_ONCE at a time; return how many were answered."""
    room = asyncio.Semaphore(AT_ONCE)

    async def send(number: int) -> bool:
        async with room:
            return await _send(port, number)

    return sum(await asyncio.gather(*map(send, range(MESSAGES))))


async def _wait(port: int, pid: int) -> int:
    """Let WAITING messages wait; return the bytes by which the relay has grown."""
    before = _resident(pid)
    tasks = [asyncio.create_task(_send(port, 0)) for _ in range(WAITING)]
    await asyncio.sleep(6.0)
    grown = _resident(pid) - before
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return grown


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _processor(pid: int) -> float:
    """Return the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _relay(gateway: int, *options: str) -> Iterator[tuple[int, int]]:
    """Run a relay; yield its port and its process."""
    port = free_port(0)
    words = [sys.executable, "-m", "collector", "relay", "--to", f"http://127.0.0.1:{gateway}"]
    words += ["--port", str(port), "--per-network", "1000000", *options]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        time.sleep(3.0)
        yield port, process.pid
        process.terminate()


def batches(rate: float, chance: random.Random) -> tuple[float, float, float]:
    """Return the median batch of a message, its mean wait in seconds, and the share below ten."""
    now, beat, gathering = 0.0, WITHIN, list[float]()
    sizes, waits = list[int](), list[float]()

    def leave(at: float) -> None:
        sizes.extend([len(gathering)] * len(gathering))
        waits.extend(at - came for came in gathering)
        gathering.clear()

    for _ in range(SIMULATED):
        now += chance.expovariate(rate)
        while now >= beat:
            leave(beat)
            beat += WITHIN
        gathering.append(now)
        if len(gathering) == BATCH:
            leave(now)
    small = sum(size < 10 for size in sizes) / len(sizes)
    return statistics.median(sizes), statistics.mean(waits), small


def main() -> None:
    """Print what a message costs a relay, and what batches become."""
    gateway = free_port(0)
    with subprocess.Popen([sys.executable, "-c", _GATEWAY, str(gateway)]) as served:
        time.sleep(0.5)
        with _relay(gateway, "--batch", str(BATCH), "--within", "2s") as (port, pid):
            before = _processor(pid)
            answered = asyncio.run(_load(port))
            used = _processor(pid) - before
        with _relay(gateway, "--batch", "2", "--within", "10m") as (port, pid):
            grown = asyncio.run(_wait(port, pid))
        served.terminate()
    assert answered == MESSAGES
    rows = {
        "processor time a message": f"{used / MESSAGES * 1e6:.0f} us",
        "memory a message that waits, with its connection": f"{grown / WAITING / 1024:.1f} KiB",
    }
    show(("what", "measured"), rows.items())
    print()
    chance = random.Random(1)
    simulated = {devices: batches(rate, chance) for devices, rate in RATES.items()}
    table = [
        (f"{devices:,}", f"{RATES[devices]:g}", f"{size:g}", f"{wait:.1f} s", f"{small:.0%}")
        for devices, (size, wait, small) in simulated.items()
    ]
    columns = ("devices, 5 uploads a day", "uploads a second", "messages in a batch", "wait")
    show((*columns, "in batches below 10"), table)
