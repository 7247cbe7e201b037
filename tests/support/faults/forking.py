"""An application that forks: ``python -m tests.support.faults.forking``.

Arguments: registry, folder of the device, file that each body is logged to, port, number of forks.
The parent uploads first, so that its children inherit a client in use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from client_sdk.client import Client
from client_sdk.privacy.consent import NoOptOuts
from client_sdk.upload.transport import Answer, RequestsTransport
from tests.support.crowds.uploads import WRITE_KEY
from tests.support.device.device import metric_text

_ITEMS: Final = ", ".join(f'"item {item}"' for item in range(128))
_WIDE: Final = f'type = "category"\nmechanism = "sue"\nvalues = [{_ITEMS}]'
_TRIES: Final = 20  # passes until what was recorded is acknowledged


def registry_text(metrics: int) -> str:
    """Return a registry of so many metrics, whose payloads are of 128 bits."""
    head = 'schema = 1\napp = "forks"\n'
    return head + "".join(metric_text(f"m{i}", _WIDE, epsilon="0.001") for i in range(metrics))


class LoggingTransport:
    """Passes bodies on and keeps them in a file that all processes append to."""

    def __init__(self, inner: RequestsTransport, log: Path) -> None:
        self._inner = inner
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def send(self, body: bytes, timeout: float) -> Answer:
        os.write(self._log, body.hex().encode() + b"\n")
        return self._inner.send(body, timeout)


def use(client: Client, number: int) -> bool:
    """Record the same value as everybody, of a metric of one's own; return whether it was sent."""
    before = client.stats()["uploaded"]
    client.record(f"m{number}", "item 5")
    for _ in range(_TRIES):
        client.flush()
        if client.stats()["uploaded"] > before:
            return True
    return False


def main(registry: str, data: str, log: str, port: str, forks: int) -> None:
    """Use a client, then let one child after the other use it."""
    url = f"http://127.0.0.1:{port}"
    transport = LoggingTransport(RequestsTransport(url, WRITE_KEY), Path(log))
    client = Client(
        url,
        WRITE_KEY,
        registry,
        consent="granted",
        data_dir=data,
        transport=transport,
        mode="manual",
        opt_outs=NoOptOuts(),
    )
    assert use(client, 0), client.stats()
    for number in range(1, forks + 1):
        child = os.fork()
        if child == 0:
            os._exit(0 if use(client, number) else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, f"child {number} ended with {status}"
    client.close()


if __name__ == "__main__":
    _registry, _data, _log, _port, _forks = sys.argv[1:]
    main(_registry, _data, _log, _port, int(_forks))
