"""A server that could not do its work says so before it listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from collector.core.config import Config
from collector.core.errors import ConfigError
from collector.demo.embedded import EmbeddedStore
from collector.operations.processes import serve
from collector.storage.connect import connect
from tests.support.crowds.uploads import WRITE_KEY, registry_text
from tests.support.store.servers import needs_real, own_keys


def config(tmp_path: Path, **settings: str) -> Config:
    path = tmp_path / "metrics.toml"
    path.write_text(registry_text(), encoding="utf-8")
    return Config.from_env({"HEARSAY_REGISTRY": str(path), **settings})


def test_a_port_that_somebody_listens_on_is_not_shared(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        settings = config(tmp_path, HEARSAY_PORT=port, HEARSAY_WRITE_KEY=WRITE_KEY)

        with pytest.raises(ConfigError, match=f"^HEARSAY_PORT={port}: cannot be listened on"):
            serve(settings, workers=1)


@pytest.mark.real
@needs_real
def test_a_server_to_which_nobody_could_report_does_not_start(
    tmp_path: Path, real_store: EmbeddedStore
) -> None:
    keys = own_keys()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])  # free again; another test may listen on the default
    settings = config(
        tmp_path, REDIS_URL=real_store.url, HEARSAY_PREFIX=keys.prefix, HEARSAY_PORT=port
    )

    with pytest.raises(ConfigError, match=r"^HEARSAY_WRITE_KEY=: must be set"):
        serve(settings, workers=1)

    connect(settings).destroy()
