"""A device may report under two definitions in one epoch: no answer takes it for two for sure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from client_sdk.core.wire import Column
from collector.core.catalog import Catalog
from collector.core.config import Config
from collector.web import create_app
from collector.worker.worker import Worker
from tests.support.crowds.asked import post
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    NOON,
    TODAY,
    as_json,
    bearer,
    registry,
    registry_text,
    upload,
)
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

NOW, BEFORE = registry("2.0"), registry("1.0")  # what is asked, and how private each report is


@pytest.fixture
def client(config: Config, storage: MemoryStorage, tmp_path: Path) -> FlaskClient:
    """A collector that knows both definitions of every metric."""
    paths = [tmp_path / f"{name}.toml" for name in ("now", "before")]
    for path, epsilon in zip(paths, ("2.0", "1.0"), strict=True):
        path.write_text(registry_text(epsilon), encoding="utf-8")
    both = replace(config, registry_paths=tuple(map(str, paths)))
    return create_app(both, storage, lambda: NOON, MemoryCredentials()).test_client()


def report(client: FlaskClient, storage: MemoryStorage, **epochs: tuple[int, int]) -> None:
    """Report of pages as said: by epoch so many times under each definition; then fold."""
    columns = [
        Column(definition.metric("page").digest, TODAY - int(ago[1:]), bytes(n))
        for ago, counts in epochs.items()
        for definition, n in zip((NOW, BEFORE), counts, strict=True)
        if n
    ]
    answer = client.post(
        "/v1/reports",
        data=as_json(upload(columns)),
        content_type="application/json",
        headers=bearer(GATEWAY_KEY),
    )
    assert answer.get_json()["accepted"] == sum(map(sum, epochs.values()))
    known = Catalog([NOW, BEFORE]).by_digest
    Worker(
        storage,
        {digest: one.mechanism for digest, one in known.items()},
        {digest: one.every for digest, one in known.items()},
    ).step()


def actives(client: FlaskClient, **more: Any) -> list[dict[str, Any]]:
    asked = {"metrics": ["page"], "verb": "actives", "date_range": "7d", **more}
    answer = post(client, asked)
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.get_json()["rows"]
    return rows


def test_an_epoch_of_two_definitions_has_bounds_and_no_exact_number(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Each of 40 may be among the 30, or none: 40 to 70 devices."""
    report(client, storage, d1=(30, 40))

    (row,) = actives(client, dimensions=["time:day"])

    assert (row["value"], row["ci_low"], row["ci_high"], row["n"]) == (None, 40, 70, 70)
    assert row["reason"].startswith("no more than bounds is known")
    assert "exact" not in row["note"]


def test_an_epoch_of_one_definition_stays_exact_beside_one_of_two(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    report(client, storage, d1=(30, 40), d2=(0, 50), d3=(1, 1))

    *days, whole = actives(client, dimensions=["time:day"])

    found = {row["n"]: (row["value"], row["ci_low"], row["ci_high"]) for row in days}
    assert found == {2: (None, 1, 2), 50: (50, 50, 50), 70: (None, 40, 70)}
    assert (whole["ci_low"], whole["ci_high"]) == (50, 122)


def test_the_most_of_a_stretch_is_that_of_one_definition(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Two days under the old one, and one under the new: at least half of the 90 of the old."""
    report(client, storage, d1=(30, 0), d2=(0, 50), d3=(0, 40))

    rows = actives(client, dimensions=["time:month"])

    (row,) = [row for row in rows if row["n"] == 120]
    assert (row["value"], row["ci_low"], row["ci_high"]) == (None, 45, 120)
