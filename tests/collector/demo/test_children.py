"""Child processes stop with their set, and one that dies says why."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from collector.core.errors import ChildError
from collector.demo.demo import Children, free_port
from collector.demo.embedded import EmbeddedStore
from collector.demo.fleet import DEMO_REGISTRY
from collector.storage.keys import Keys
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.servers import needs_real

BARE = {name: value for name, value in os.environ.items() if not name.startswith("HEARSAY_")}


def test_a_child_that_dies_is_explained_by_its_last_words() -> None:
    with Children() as children:
        process = children.start("worker", BARE)
        process.wait(timeout=PATIENCE)

        with pytest.raises(ChildError, match=r"(?s)worker ended with status 1.*HEARSAY_REGISTRY="):
            children.require_alive()


@pytest.mark.real
@needs_real
def test_leaving_the_set_stops_what_still_runs(
    real_store: EmbeddedStore, keys: Keys, tmp_path: Path
) -> None:
    beat = tmp_path / "beat"
    settings = {
        "HEARSAY_REGISTRY": str(DEMO_REGISTRY),
        "HEARSAY_PREFIX": keys.prefix,
        "HEARSAY_HEARTBEAT": str(beat),
        "REDIS_URL": real_store.url,
    }

    with Children() as children:
        process = children.start("worker", {**BARE, **settings})
        wait_for(beat.exists, running=(process,))

    assert process.returncode == 0


def test_a_free_port_that_is_wanted_is_given() -> None:
    free = [free_port(0) for _ in range(9)]

    assert any(free_port(port) == port for port in free)  # other programs may take some meanwhile


def test_instead_of_a_taken_port_another_is_given() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wanted = taken.getsockname()[1]

        assert free_port(wanted) not in (0, wanted)
