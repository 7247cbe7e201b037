"""Tokens that are spent twice at once, against a real store: each counts once, and none is lost.

The steps are those of a web process between headers and acknowledgement, from several threads.  The
two uploads of a token are next to each other, so two threads have it at the same time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384

from client_sdk.core.epoch import day_of
from client_sdk.registry import Registry
from client_sdk.wire.private_token import (
    challenge_digest,
    header_of,
    key_id_of,
    key_of,
    token_input,
    upload_id_of,
    week_of,
)
from client_sdk.wire.reports import Column
from collector.core.config import STANDARD, Config
from collector.demo.embedded import EmbeddedStore
from collector.issuer.keys import IssuerKeys, write_keys
from collector.storage.connection import Connection
from collector.storage.redis import RedisStorage
from collector.web import create_app
from collector.web.ingest.route import accept
from collector.web.ingest.upload import Head
from collector.web.services import Services, services_of
from tests.support.crowds.uploads import WRITE_KEY, as_json, registry_text, upload
from tests.support.device.issuing import NAME, keys_from
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.servers import needs_real, own_keys

pytestmark = [pytest.mark.real, needs_real]

FEW: Final = 250  # tokens
THREADS: Final = 8
TODAY: Final = day_of(time.time())
REGISTRY: Final = registry_text(expires="2999-12-31")
PAGE: Final = Registry.from_text(REGISTRY).metric("page")
FULL: Final = pytest.param(1_000_000, marks=pytest.mark.slow)


@pytest.fixture
def storage(real_store: EmbeddedStore) -> Iterator[RedisStorage]:
    connection = Connection.open(real_store.url)
    storage = RedisStorage(connection, own_keys(), STANDARD)
    storage.prepare()
    yield storage
    storage.destroy()
    connection.close()


@pytest.fixture
def shared(tmp_path: Path, storage: RedisStorage) -> Services:
    """Return what a web process that wants tokens works with."""
    (tmp_path / "metrics.toml").write_text(REGISTRY, encoding="utf-8")
    write_keys(issuer(), tmp_path / "secret", tmp_path / "public")
    config = Config.from_env(
        {
            "HEARSAY_REGISTRY": str(tmp_path / "metrics.toml"),
            "HEARSAY_WRITE_KEY": WRITE_KEY,
            "HEARSAY_KEY_RATE": "1000000",
            "HEARSAY_ISSUER_KEYS": str(tmp_path / "public"),
            "HEARSAY_REQUIRE_TOKEN": "1",
        }
    )
    return services_of(create_app(config, storage, time.time, MemoryCredentials()))


def issuer() -> IssuerKeys:
    return keys_from(week_of(TODAY))


def signed_at_once(number: int) -> bytes:
    """Return a token that its issuer signed openly: as good as one that was blind, and sooner."""
    key = issuer().secrets[week_of(TODAY)]
    key_id = key_id_of(key_of(key.private_numbers().public_numbers.n))
    bound = challenge_digest(NAME, "test", week_of(TODAY))
    message = token_input(number.to_bytes(32, "big"), bound, key_id)
    return message + key.sign(message, PSS(MGF1(SHA384()), 48), SHA384())


def spend(shared: Services, token: bytes) -> bool:
    """Send an upload with *token*; return whether it counted."""
    column = Column(PAGE.digest, TODAY, b"\1")
    body = as_json(upload([column], upload_id=upload_id_of(token), sealed=TODAY))
    key = f"Bearer {WRITE_KEY}"
    head = Head(key, "application/json", "", len(body), token=header_of(token))
    answer = msgspec.json.decode(accept(shared, head, BytesIO(body)))
    assert answer["accepted"] == 1
    return not answer["duplicate"]


@pytest.mark.parametrize("tokens", [FEW, FULL])
def test_of_concurrent_double_spends_one_counts(
    shared: Services, storage: RedisStorage, tokens: int
) -> None:
    lock, turn, counted = threading.Lock(), iter(range(2 * tokens)), Counter[bool]()
    kept: dict[int, bytes] = {}  # tokens that were spent once

    def work() -> None:
        own = Counter[bool]()
        while True:
            with lock:
                number = next(turn, None)
                token = None if number is None else kept.pop(number // 2, None)
                if number is None:
                    counted.update(own)
                    return
                if token is None:
                    token = kept[number // 2] = signed_at_once(number // 2)
            own[spend(shared, token)] += 1

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert counted == {True: tokens, False: tokens}
    assert sum(shard.accepted.reports for shard in storage.counters()) == tokens
