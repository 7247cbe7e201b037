"""Applications that fork after they have made a client, again and again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from client_sdk.registry import Registry
from collector.intake.wire import JSON, decode
from tests.faults.conftest import Tell
from tests.support.faults.forking import registry_text
from tests.support.faults.site import fault_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

PATIENCE = 600.0  # seconds for all forks; a child that waits for ever uses them up


@pytest.mark.faults
@pytest.mark.parametrize(
    "forks", [pytest.param(10, id="small"), pytest.param(200, id="full", marks=pytest.mark.faults)]
)
def test_forked_children_share_neither_noise_nor_connections(
    forks: int, tmp_path: Path, tell: Tell
) -> None:
    """Each child of a process that has sent records, sends and ends; all is counted once."""
    text, log = registry_text(forks + 1), tmp_path / "bodies"
    registry = Registry.from_text(text)
    with fault_site(tmp_path, collectors=0, workers=0) as site:
        path = site.write_registry("forks", text)
        site.add_collector("forks")
        site.add_worker("forks")
        program = [sys.executable, "-m", "tests.support.faults.forking"]
        subprocess.run(
            [*program, str(path), str(tmp_path / "data"), str(log), str(site.ports[0]), str(forks)],
            check=True,
            timeout=PATIENCE,
        )
        bodies = {bytes.fromhex(line) for line in log.read_text().split()}
        enqueued = {decode(body, JSON).id: body for body in bodies}
        found = site.compared(enqueued, registry)

    payloads = [column.payloads for body in bodies for column in decode(body, JSON).columns]
    tell(f"{forks} forks after the first upload: {found}; {len(set(payloads))} different payloads")
    assert found.equal, found
    assert len(enqueued) == len(bodies)
    assert len(payloads) == forks + 1
    assert len(set(payloads)) == len(payloads)  # 128 fair bits each
