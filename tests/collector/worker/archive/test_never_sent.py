"""Whatever is excluded, no question tells it from a world in which it had never been sent.

Several applications, metrics, weeks, dimensions, ways of coming and small keys at once; through
the store, its archive, and a successor that is restored from that.
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from client_sdk.core.epoch import ONCE, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, RELAYED, Cell, key_source, segment_text
from collector.core.entry import AcceptedColumn, encode
from collector.core.exclusions import Exclusion, to_json
from collector.query import plan, read, run
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.archive.drain import drain
from collector.worker.archive.files import Folder
from collector.worker.archive.refold import add, restore, tally_file
from collector.worker.worker import Pace, Worker
from tests.support.store.archives import SEALED
from tests.support.store.servers import own_keys, profile_of

HEAD: Final = """
schema = 1
app = {{ name = "{app}", separate = true }}

[segments]
platform = ["linux", "mac"]
version = ["2.2", "2.3"]
"""
METRIC: Final = """
[metrics.{name}]
title = "A metric"
question = "What do we decide by it?"
{kind}
epsilon = "1.0"
every = "{every}"
segments = {segments}
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "tests"
expires = 2999-12-31
"""
PAGE: Final = 'type = "category"\nvalues = ["home", "news", "shop"]\nmechanism = "grr"'
YES: Final = 'type = "boolean"\nmechanism = "grr"'
METRICS: Final = {
    "editor": [
        ("page", PAGE, "1d", '["platform", "version"]'),
        ("weekly", YES, "7d", '["version"]'),
        ("joined", YES, "once", "[]"),
    ],
    "viewer": [("page", PAGE, "1d", '["platform"]'), ("fails", YES, "1d", "[]")],
}
CATALOG: Final = Catalog([
    Registry.from_text(
        HEAD.format(app=app)
        + "".join(
            METRIC.format(name=name, kind=kind, every=every, segments=segments)
            for name, kind, every, segments in tables
        )
    )
    for app, tables in METRICS.items()
])  # fmt: skip
MECHANISMS: Final = {digest: metric.mechanism for digest, metric in CATALOG.by_digest.items()}
EVERY: Final = {digest: metric.every for digest, metric in CATALOG.by_digest.items()}
LEAST: Final = 100  # reports of a source: what docs/operate/repair.md says, and not the code
NOW: Final = time.time()
TODAY: Final = int(NOW) // 86_400  # by the store's own clock
DAYS: Final = [TODAY - back for back in (15, 9, 8, 2, 1, 0)]  # of four weeks, or three
KEYS: Final = {"aaaaaaaaaaaa": 12, "bbbbbbbbbbbb": 9, "cccccccccccc": 2, "dddddddddddd": 1}
FACTS: Final = (frozenset[str](), frozenset({ATTESTED}), frozenset({RELAYED}))
# Reports, and questions of those that there are.
SMALL, LARGE = (12_000, 25), (1_000_000, 150)


class Sent(NamedTuple):
    """Reports that came in one upload on one metric, and all that is known of them."""

    metric: Metric
    epoch: int
    segment: tuple[tuple[str, str], ...]
    facts: frozenset[str]
    key: str
    payloads: bytes

    @property
    def place(self) -> tuple[object, ...]:
        return self.metric.digest, self.epoch, self.segment, self.facts

    @property
    def column(self) -> AcceptedColumn:
        text = segment_text(self.metric, dict(self.segment), self.facts | key_source(self.key))
        return AcceptedColumn(Cell(self.metric.digest, self.epoch, text), self.payloads)


def text_of(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def name_of(metric: Metric) -> str:
    """Return app and name, as exclusions name a metric."""
    return f"{metric.app}/{metric.name}"


def fleet(chance: random.Random, reports: int) -> list[Sent]:
    """Return what several keys send; some have few reports in most places."""
    metrics, sent, left = list(CATALOG), [], reports
    size = max(1, reports // 3_000)
    while left > 0:
        metric, day = chance.choice(metrics), chance.choice(DAYS)
        (key,) = chance.choices(list(KEYS), list(KEYS.values()))
        epoch = 0 if metric.every == ONCE else epoch_of(metric.every, day * 86_400)
        segment = tuple(
            (name, chance.choice(values)) for name, values in metric.segments.items()
            if chance.random() < 0.9
        )  # fmt: skip
        values = 3 if metric.name == "page" else 2
        payloads = bytes(chance.choices(range(values), k=chance.randint(1, 2 * size)))
        sent.append(Sent(metric, epoch, segment, chance.choice(FACTS), key, payloads))
        left -= len(payloads)
    return sent


def some_exclusions(chance: random.Random) -> list[Exclusion]:
    """Return exclusions as operators make them: by key and version, of some metrics or all."""
    made = []
    for number in range(chance.randint(2, 5)):
        by = chance.choice(["key", "key", "version"])
        name = chance.choice(["2.2", "2.3"]) if by == "version" else chance.choice(list(KEYS))
        first, last = sorted(chance.choices(DAYS, k=2))
        days = {"first": text_of(first), "last": text_of(last)} if chance.random() < 0.8 else {}
        named = chance.sample([name_of(metric) for metric in CATALOG], 3)
        metrics = tuple(named) if by == "version" or chance.random() < 0.4 else ()
        made.append(
            msgspec.convert(
                {"id": str(number), "by": by, "name": name, "metrics": metrics, "author": "ada",
                 "because": "why", "at": number, **days},
                Exclusion,
            )
        )  # fmt: skip
    return made


def means(exclusion: Exclusion, sent: Sent) -> bool:
    """Return whether an operator who reads the documentation expects *sent* to go by name."""
    metric = sent.metric
    if exclusion.metrics and name_of(metric) not in exclusion.metrics:
        return False
    if (metric.every == ONCE) != (exclusion.first == ""):
        return False
    if metric.every != ONCE:
        first, last = (date.fromisoformat(day) for day in (exclusion.first, exclusion.last))
        days = range((first - date(1970, 1, 1)).days, (last - date(1970, 1, 1)).days + 1)
        if sent.epoch not in {epoch_of(metric.every, day * 86_400) for day in days}:
            return False
    own = sent.key if exclusion.by == "key" else dict(sent.segment).get("version")
    return own == exclusion.name


def never_sent(sent: Sequence[Sent], exclusions: Sequence[Exclusion]) -> list[Sent]:
    """Return what is left, by the rules as they are documented, from the reports themselves."""
    left = [
        one for one in sent
        if not any(each.by == "version" and means(each, one) for each in exclusions)
    ]  # fmt: skip
    counts: dict[object, Counter[str]] = defaultdict(Counter)
    named: dict[object, set[str]] = defaultdict(set)
    for one in left:
        counts[one.place][one.key] += len(one.payloads)
        if any(each.by == "key" and means(each, one) for each in exclusions):
            named[one.place].add(one.key)
    for place, gone in named.items():
        small = {key for key, n in counts[place].items() if n < LEAST}
        if small and sum(counts[place][key] for key in small) < LEAST:
            others = sorted((n, key) for key, n in counts[place].items() if key not in small)
            small |= {key for _, key in others[:1]}
        gone |= small if gone & small else set()
    return [one for one in left if one.key not in named[one.place]]


class Deployment:
    """A store with its archive, and whatever is asked of it."""

    def __init__(self, server: Connection, kind: str, path: Path) -> None:
        self.keys = own_keys()
        self.storage = RedisStorage(server, self.keys, profile_of(kind), archived=True)
        self.queue = RedisArchiveQueue(server, self.keys)
        self.records = ExclusionStore(RedisHashes(server, self.keys.prefix))
        self.path = path / self.keys.prefix
        self.storage.prepare()

    def take(self, chance: random.Random, sent: Sequence[Sent]) -> None:
        """Append uploads of one to three columns, and fold them."""
        left, uploads = [one.column for one in sent], []
        while left:
            columns = [left.pop() for _ in range(min(len(left), chance.randint(1, 3)))]
            reports = sum(len(column.payloads) for column in columns)
            uploads.append(SealedUpload(secrets.token_bytes(16), SEALED, encode(columns), reports))
        for first in range(0, len(uploads), 50):
            self.storage.append_many(uploads[first : first + 50])
        worker = Worker(self.storage, MECHANISMS, EVERY, pace=Pace(min_idle_ms=0))
        while self.storage.backlog():
            worker.step()

    def exclude(self, exclusions: Iterable[Exclusion]) -> None:
        for exclusion in exclusions:
            assert self.records.put(exclusion.id, to_json(exclusion))

    def lose_and_restore(self) -> None:
        """Write what there is to the archive, lose the store, and restore its successor."""
        drain(self.queue, Folder(self.path), MECHANISMS, lambda: None)
        self.storage.destroy()
        self.storage.prepare()
        restore(self.queue, self.records, Folder(self.path), CATALOG.by_digest, _here)

    def answers(self, queries: Sequence[dict[str, Any]]) -> list[Any]:
        """Return numbers and counts of *queries*, by day, segment and way of coming."""
        return [_asked(self.storage, query) for query in queries]


def _here(files: Sequence[Path], mechanisms: Any) -> dict[tuple[int, Cell], bytes]:
    return add([tally_file(path, mechanisms) for path in files], mechanisms)


def _questions() -> Iterator[dict[str, Any]]:
    whole = [text_of(DAYS[0]), text_of(DAYS[-1])]
    ranges = [whole, [text_of(DAYS[1]), text_of(DAYS[2])], [text_of(DAYS[-1])] * 2]
    filters: list[list[Any]] = [[], [["is", "@source", [ATTESTED]]]]
    filters += [[["is_not", "@source", [RELAYED]], ["is", "version", ["2.3"]]]]
    every_day = [(metric, days) for metric in CATALOG for days in ranges if metric.every == "1d"]
    others = [(metric, whole) for metric in CATALOG if metric.every != "1d"]
    for (metric, days), chosen in product([*every_day, *others], filters):
        known = set(metric.segments)
        if all(name == "@source" or name in known for _, name, _ in chosen):
            for names in ([], ["time"], sorted(known), ["time", *sorted(known)]):
                if metric.every != ONCE or "time" not in names:
                    yield {"metrics": [metric.address], "date_range": days,
                           "dimensions": names, "filters": chosen}  # fmt: skip


def _asked(storage: RedisStorage, query: dict[str, Any]) -> Any:
    resolved = plan(read(json.dumps(query).encode()), CATALOG, NOW)
    answer = run(resolved, storage, is_checked=False)
    (basis,) = answer.meta.metrics
    return answer.rows, answer.meta.n, basis.definitions, basis.sources


QUESTIONS: Final = list(_questions())
WHOLE: Final = [
    {"metrics": [metric.address], "date_range": [text_of(DAYS[0]), text_of(DAYS[-1])]}
    for metric in CATALOG
]


@pytest.fixture
def deployments(
    server: Connection, server_kind: str, store: object, tmp_path: Path
) -> Iterator[tuple[Deployment, Deployment]]:
    pair = Deployment(server, server_kind, tmp_path), Deployment(server, server_kind, tmp_path)
    yield pair
    for deployment in pair:
        deployment.storage.destroy()


@pytest.mark.parametrize(
    ("reports", "questions"), [SMALL, pytest.param(*LARGE, marks=pytest.mark.slow)]
)
def test_no_question_tells_what_is_excluded_from_what_was_never_sent(
    deployments: tuple[Deployment, Deployment], reports: int, questions: int
) -> None:
    chance = random.Random(secrets.randbits(32))
    sent, exclusions = fleet(chance, reports), some_exclusions(chance)
    queries = [*WHOLE, *chance.sample(QUESTIONS, min(questions, len(QUESTIONS)))]
    real, clean = deployments
    left = never_sent(sent, exclusions)
    real.take(chance, sent)
    clean.take(chance, left)
    before = real.answers(queries)
    real.exclude(exclusions)

    expected = clean.answers(queries)
    assert (before == expected) == (len(left) == len(sent))
    assert real.answers(queries) == expected, exclusions

    real.lose_and_restore()
    assert real.answers(queries) == expected, exclusions
    assert sum(one.folded.reports for one in real.storage.counters()) == sum(
        len(one.payloads) for one in sent
    )
