"""Connections take over the limits that are set on the socket they come in by."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from collector.web.app import SEND_BUFFER, UNREAD_S, limit_answers

TIMEOUT: int = getattr(socket, "TCP_USER_TIMEOUT", 0)
needs_linux = pytest.mark.skipif(not TIMEOUT, reason="only Linux ends such connections")


@needs_linux
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_a_connection_has_a_small_buffer_and_ends_when_nothing_is_taken(
    family: socket.AddressFamily, host: str
) -> None:
    with ExitStack() as open_:
        server = open_.enter_context(socket.create_server((host, 0), family=family))
        files = len(os.listdir("/dev/fd"))

        limit_answers()

        assert len(os.listdir("/dev/fd")) == files
        open_.enter_context(socket.create_connection(server.getsockname()[:2], 5))
        accepted = open_.enter_context(server.accept()[0])
        assert accepted.getsockopt(socket.IPPROTO_TCP, TIMEOUT) == 1_000 * UNREAD_S
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * SEND_BUFFER


def test_a_process_that_cannot_have_such_limits_says_so() -> None:
    """As on another system, or where the server listens by means that this module cannot see."""
    program = "from collector.web.app import limit_answers; limit_answers()"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )

    assert "whose answers nobody takes" in done.stderr
