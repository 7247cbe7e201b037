"""Two processes never share a port: each would get some of the requests."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from collector.cli import main
from collector.core.errors import ConfigError
from collector.serving.server import require_free
from tests.support.device.issuing import NAME, SECRET


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_an_address_is_free_or_named(host: str, family: socket.AddressFamily) -> None:
    """Also where who listens shares it gladly."""
    with socket.socket(family) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind((host, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"^--port={port}: cannot be listened on"):
            require_free("--port", host, port)

    require_free("--port", host, port)


def test_a_second_issuer_on_a_port_does_not_start(tmp_path: Path) -> None:
    """It would count by a file of its own, and give each identity as many tokens again."""
    keys, machines = tmp_path / "issuer.json", tmp_path / "machines"
    machines.write_bytes(SECRET)
    CliRunner().invoke(main, ["issuer-keys", "new", str(keys), "--name", NAME, "--weeks", "2"])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        port = str(taken.getsockname()[1])
        words = ["--attest", f"secret={machines}", "--state", str(tmp_path / "state")]
        said = CliRunner().invoke(main, ["issuer", str(keys), *words, "--port", port])

    assert said.exit_code == 1
    assert f"--port={port}: cannot be listened on" in said.output
