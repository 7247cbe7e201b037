"""The stub of the server's protocol ends bodies as the server itself does."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from tests.support.patience import PATIENCE, wait_for
from tests.support.sites.raw_requests import chunked, head
from tests.support.sites.rsgi import Protocol
from tests.support.store.cluster import free_port, listens
from tests.support.store.processes import until_ended

PARTS: Final = (b"x" * 100, b"y" * 100)
PROGRAM: Final = """
import json
from tests.end_to_end.test_server_protocol import read
class App:
    def __rsgi_init__(self, loop):
        print(json.dumps("listens"), flush=True)
    async def __rsgi__(self, scope, protocol):
        seen = await read(protocol, scope.path.strip("/"))
        print(json.dumps(seen), flush=True)
        protocol.response_empty(200, [])
app = App()
"""
CASES: Final = tuple(product(("at_once", "in_parts"), (False, True), ("whole", "closed", "half")))


async def read(protocol: Any, how: str) -> int | None:
    """Return how many bytes come; None if the peer is found to have gone."""
    try:
        if how == "at_once":
            return len(await protocol())
        return sum([len(part) async for part in protocol])
    except ProtocolClosed:
        return None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Any]]:
    """The server that ships, with an application that tells what it reads."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = (Path(sys.executable).parent / "granian", "--interface", "rsgi", "--no-ws", "--port")
    running = subprocess.Popen(
        [*command, str(port), "--log-level", "error", "program:app"],
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{Path.cwd()}", "PATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
    with until_ended(running):
        assert running.stdout is not None
        assert json.loads(running.stdout.readline()) == "listens"
        wait_for(lambda: listens(port), running=(running,))  # it has said so just before
        yield port, running.stdout


def seen_by_server(port: int, told: Any, how: str, end: str, *, is_chunked: bool) -> int | None:
    """Return what the application reads of a request whose last part may not come."""
    length = "Transfer-Encoding: chunked"
    whole, first = chunked(b"".join(PARTS), 100), chunked(PARTS[0]).removesuffix(b"0\r\n\r\n")
    if not is_chunked:
        whole, first = b"".join(PARTS), PARTS[0]
        length = f"Content-Length: {len(whole)}"
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(head(length, path=f"/{how}") + (whole if end == "whole" else first))
        if end == "half":
            connection.shutdown(socket.SHUT_WR)
        if end != "closed":
            seen: int | None = json.loads(told.readline())
            return seen
    seen = json.loads(told.readline())
    return seen


@pytest.mark.parametrize(("how", "is_chunked", "end"), CASES)
def test_the_stub_reads_what_the_server_does(
    server: tuple[int, Any], how: str, is_chunked: bool, end: str
) -> None:
    """Law: read at once a body that is cut off is refused, and in parts it ends as a whole one."""
    stub = Protocol(PARTS, gone=end != "whole")

    seen = seen_by_server(*server, how, end, is_chunked=is_chunked)

    assert seen == asyncio.run(read(stub, how))
    assert (seen is None) == (how == "at_once" and end != "whole")
