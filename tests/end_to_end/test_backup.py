"""A store that is lost is put back from a copy: the same tallies, and nothing counted twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest
import requests

from client_sdk.wire.reports import Column
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    READ_TOKEN,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    registry_text,
    upload,
)
from tests.support.patience import PATIENCE
from tests.support.sites.site import Site, running_site
from tests.support.store.cluster import cluster, url_of
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

UPLOADS: Final = 200  # before the copy
SEALED: Final = int(time.time() // 86_400)  # one day for all, so that a retry is the same bytes
ESTIMATE: Final = "/v1/metrics/opted_in/estimate"


def send(site: Site, number: int) -> dict[str, Any]:
    """Send upload *number*, the same bytes whenever it is called, and return the answer."""
    digest = registry().metric("opted_in").digest
    columns = [Column(digest, 0, bytes([number % 3 == 0]))]
    body = as_json(upload(columns, upload_id=number.to_bytes(16, "big"), sealed=SEALED))
    headers = {**bearer(WRITE_KEY), "Content-Type": "application/json"}
    answer = requests.post(f"{site.url}/v1/reports", body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 202, answer.text
    said: dict[str, Any] = answer.json()
    return said


def tallies(site: Site) -> dict[str, Any]:
    """Return what is answered, without the time of the answer."""
    answer = requests.get(site.url + ESTIMATE, headers=bearer(READ_TOKEN), timeout=PATIENCE)
    answer.raise_for_status()
    document: dict[str, Any] = answer.json()
    return {"n": document["meta"]["n"], "rows": document["rows"]}


def hearsay(redis_url: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REDIS_URL": redis_url, "HEARSAY_REGISTRY": str(folder / "m.toml")}
    command = [sys.executable, "-m", "collector", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.toml").write_text(registry_text(), encoding="utf-8")
    for name in ("lost", "copies"):
        (tmp_path / name).mkdir()
    return tmp_path


def running(folder: Path, store: str) -> Any:
    return running_site(folder / store, folder / "m.toml", WRITE_KEY, READ_TOKEN, GATEWAY_KEY)


def test_a_lost_store_is_put_back_as_it_was_and_counts_nothing_twice(folder: Path) -> None:
    """Law: what was folded and what waited is there again, and a repeated upload is known."""
    with running(folder, "lost") as site:
        for number in range(UPLOADS):
            send(site, number)
        site.wait_until_folded()
        before = tallies(site)
        site.kill_worker()
        for number in range(UPLOADS, UPLOADS + 50):  # these wait in the streams
            send(site, number)
        done = hearsay(site.redis_url, folder, "backup", str(folder / "copies"))
        assert done.returncode == 0, done.stderr
        for number in range(900, 910):  # after the copy: devices forget them, and so do we
            send(site, number)
    shutil.rmtree(folder / "lost")

    (copy,) = (folder / "copies").iterdir()
    shutil.copytree(copy / "store", folder / "back")
    with running(folder, "back") as site:
        site.wait_until_folded()
        after = tallies(site)
        repeated = [send(site, number) for number in range(UPLOADS + 50)]
        site.wait_until_folded()
        again = tallies(site)
        checked = hearsay(site.redis_url, folder, "fsck")

    assert before["n"] == UPLOADS
    assert after["n"] == UPLOADS + 50
    assert all(answer["duplicate"] for answer in repeated)
    assert again == after
    assert checked.returncode == 0, checked.stdout


def test_tallies_are_put_back_integer_for_integer(folder: Path) -> None:
    with running(folder, "lost") as site:
        for number in range(UPLOADS):
            send(site, number)
        site.wait_until_folded()
        before = tallies(site)
        done = hearsay(site.redis_url, folder, "backup", str(folder / "copies"))
        assert done.returncode == 0, done.stderr
    shutil.rmtree(folder / "lost")

    (copy,) = (folder / "copies").iterdir()
    shutil.copytree(copy / "store", folder / "back")
    with running(folder, "back") as site:
        after = tallies(site)

    assert after == before


def test_a_copy_is_its_owners_and_old_ones_go(folder: Path) -> None:
    copies = folder / "copies"
    (copies / "2020-01-01T00-00-00Z").mkdir()
    (copies / "2021-01-01T00-00-00Z").mkdir()
    (copies / "mine").mkdir()
    (copies / ".unfinished-2022-01-01T00-00-00Z").mkdir()
    with running(folder, "lost") as site:
        send(site, 1)
        done = hearsay(site.redis_url, folder, "backup", str(copies), "--keep", "2")

    assert done.returncode == 0, done.stderr
    assert "older copies deleted: 1" in done.stdout
    names = sorted(path.name for path in copies.iterdir())
    assert names[0] == "2021-01-01T00-00-00Z"
    assert names[2:] == ["mine"]
    files = [path for path in (copies / names[1]).rglob("*") if path.is_file()]
    assert len(files) == 2
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_the_first_copy_makes_its_folder_but_not_the_folder_above(folder: Path) -> None:
    """A missing folder above may be a disk that is not mounted."""
    with running(folder, "lost") as site:
        first = hearsay(site.redis_url, folder, "backup", str(folder / "new"))
        deeper = hearsay(site.redis_url, folder, "backup", str(folder / "none" / "new"))

    assert first.returncode == 0, first.stderr
    assert (folder / "new").stat().st_mode & 0o777 == 0o700
    assert deeper.returncode == 1
    assert "cannot be made: No such file or directory" in deeper.stderr
    assert not (folder / "none").exists()


def test_a_store_that_cannot_be_copied_leaves_no_copy(folder: Path) -> None:
    """Law: what looks like a copy is one."""
    done = hearsay("redis://127.0.0.1:1/0", folder, "backup", str(folder / "copies"))

    assert done.returncode == 1
    assert "Error: store: no copy of store:" in done.stderr
    assert [path.name for path in (folder / "copies").iterdir() if path.name[0] != "."] == []


def test_each_primary_of_a_cluster_is_copied(folder: Path) -> None:
    with cluster() as nodes:
        done = hearsay(url_of(nodes), folder, "backup", str(folder / "copies"))

        names = {node.address.replace(":", "-") for node in nodes}

    assert done.returncode == 0, done.stderr
    (copy,) = (folder / "copies").iterdir()
    assert {path.name for path in copy.iterdir()} == names
