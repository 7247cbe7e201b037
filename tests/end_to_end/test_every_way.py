"""By itself, by a relay, with a token or by both: an upload counts once, and says how it came."""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from flask import Flask

from client_sdk.core.epoch import day_of
from client_sdk.wire.private_token import HEADER, header_of, upload_id_of, week_of
from client_sdk.wire.reports import Column
from collector.core.config import Config
from collector.issuer.keys import write_keys
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.web import create_app
from collector.worker.fsck import fsck
from collector.worker.worker import Worker
from tests.support.crowds.uploads import (
    READ_TOKEN,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    registry_text,
    upload,
)
from tests.support.device.issuing import keys_from, token_by
from tests.support.sites.capsules import carried, make_keys, opened, sealed, upload_request
from tests.support.sites.rsgi import Request, answers
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import REAL

REGISTRY: Final = registry(expires="2099-12-31")
PAGE: Final = REGISTRY.metric("page")
TODAY: Final = day_of(time.time())
EACH: Final = 12  # uploads a way
FIELDS: Final = (("authorization", f"Bearer {WRITE_KEY}"), ("content-type", "application/json"))


class Site:
    """A collector that opens capsules and takes tokens, on a real store."""

    def __init__(self, storage: RedisStorage, folder: Path) -> None:
        registry_path, issuer_path = folder / "metrics.toml", folder / "issuer.json"
        registry_path.write_text(registry_text(expires="2099-12-31"), encoding="utf-8")
        self.issuer = keys_from(week_of(TODAY))
        write_keys(self.issuer, folder / "secret.json", issuer_path)
        self.keys = make_keys(folder)
        config = Config.from_env(
            {
                "HEARSAY_REGISTRY": str(registry_path),
                "HEARSAY_WRITE_KEY": WRITE_KEY,
                "HEARSAY_READ_TOKEN": READ_TOKEN,
                "HEARSAY_OBLIVIOUS_KEYS": self.keys.path,
                "HEARSAY_ISSUER_KEYS": str(issuer_path),
                "HEARSAY_RELAY_OPERATOR": "somebody else",
            }
        )
        self.storage = storage
        self.app: Flask = create_app(config, storage, time.time, MemoryCredentials())

    def body(self, token: bytes | None, reports: int = 1) -> bytes:
        upload_id = upload_id_of(token) if token else secrets.token_bytes(16)
        columns = [Column(PAGE.digest, TODAY - day, b"\0") for day in range(reports)]
        return as_json(upload(columns, upload_id=upload_id, sealed=TODAY))

    def send(self, body: bytes, token: bytes | None, *, relayed: bool) -> tuple[int, Any]:
        """Return status and document of an upload, sent one way."""
        more = ((HEADER.lower(), header_of(token)),) if token else ()
        if not relayed:
            fields = dict(FIELDS + more)
            (answer,) = answers(self.app, Request(headers=fields, parts=(body,)))
            assert answer is not None
            return answer.status, answer.body
        capsule = sealed(self.keys, upload_request(body, FIELDS + more))
        response = opened(capsule, *answers(self.app, carried(capsule.message)))
        return response.status, response.content

    def fold(self) -> None:
        metrics = REGISTRY.by_digest
        mechanisms = {digest: metric.mechanism for digest, metric in metrics.items()}
        every = {digest: metric.every for digest, metric in metrics.items()}
        worker = Worker(self.storage, mechanisms, every)
        while self.storage.backlog():
            worker.step()

    def basis(self) -> Any:
        """Return what the answer about the last days rests on."""
        body = {"metrics": ["page"], "date_range": "7d"}
        client = self.app.test_client()
        answer = client.post("/v1/query", json=body, headers=bearer(READ_TOKEN)).get_json()
        return answer["meta"]["metrics"][0]


@pytest.fixture
def site(store: RedisStorage, tmp_path: Path) -> Site:
    return Site(store, tmp_path)


@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
def test_an_upload_counts_once_whichever_ways_it_comes_and_as_it_came_first(
    site: Site, server: Connection, keys: Keys
) -> None:
    """A retry may take another way: it is a duplicate, and changes nothing of how it is counted."""
    chance, said = random.Random(1), Counter[tuple[int, bool]]()
    for relayed in (False, True):
        for has_token in (False, True):
            for _ in range(EACH):
                token = token_by(site.issuer, REGISTRY.app, TODAY) if has_token else None
                body = site.body(token)
                for way in (relayed, chance.random() < 0.5, not relayed):
                    status, answer = site.send(body, token, relayed=way)
                    said[status, b'"duplicate":true' in answer] += 1
    for _ in range(EACH):  # linked to each other, so no relay hides them
        site.send(site.body(None, reports=2), None, relayed=True)
    site.fold()

    basis = site.basis()
    assert said == {(202, False): 4 * EACH, (202, True): 8 * EACH}
    assert basis["n"] == 6 * EACH
    assert basis["sources"] == {"relayed": 2 * EACH, "attested": 2 * EACH, "of": 6 * EACH}
    assert "epsilon_shuffled" in basis
    assert list(fsck(RedisInspection(server, keys), REGISTRY.by_digest)) == []


@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
def test_a_token_that_is_not_good_attests_nothing_and_leaves_no_report(site: Site) -> None:
    """Of another upload, or of another week: neither way is more lenient than the other."""
    ours = token_by(site.issuer, REGISTRY.app, TODAY)
    next_week = token_by(site.issuer, REGISTRY.app, TODAY + 7)
    tries = [(site.body(None), ours), (site.body(next_week), next_week)]

    answers_ = [site.send(*each, relayed=relayed) for each in tries for relayed in (False, True)]
    site.fold()

    assert len({status for status, _ in answers_}) == 1
    assert answers_[0][0] >= 400
    assert site.basis()["n"] == 0
    assert "sources" not in site.basis()
