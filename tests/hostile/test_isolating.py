"""Who may ask cannot isolate a few reports of a key, however questions and exclusions are combined.

Each key reports an item of its own, so that an answer betrays the keys it rests on: its shares,
debiased, are their reports, whole numbers.  Keys that are in the same answers, whatever was asked,
no arithmetic on the answers can part.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from flask.testing import FlaskClient

from client_sdk.core.epoch import epoch_label, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.catalog import Catalog
from collector.core.cells import ATTESTED, RELAYED, UNKNOWN, Cell, key_source, segment_text
from collector.core.credentials import ANALYST, OWNER, READ, Credential
from collector.core.entry import AcceptedColumn
from collector.core.errors import ExclusionError
from collector.estimation.tally import tally_entries
from collector.query import Query
from collector.query.repair import ExclusionRequest, exclude, include, proposed
from collector.web.services import services_of
from collector.workspace.documents import Board, Panel
from tests.collector.query.test_repair import Records
from tests.support.crowds.uploads import NOON, TODAY, bearer
from tests.support.sites.in_memory import in_memory
from tests.support.store.authors import ADA
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

OWNER_TOKEN, ANALYST_TOKEN = "hsr_an-owner", "hsr_an-analyst"
LEAST: Final = 100  # reports of a source: what docs/operate/repair.md says, and not the code
STATES, QUESTIONS = 16, 40  # sets of exclusions, and questions of each
KEYS: Final = ("aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd", "other", None)
FACTS: Final = (frozenset[str](), frozenset({ATTESTED}), frozenset({RELAYED}))
DAYS: Final = [TODAY - back for back in (16, 15, 9, 8, 2, 1)]
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
type = "category"
values = ["a", "b", "c", "d", "other", "unknown"]
mechanism = "grr"
epsilon = "1.0"
every = "{every}"
segments = {segments}
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "tests"
expires = 2999-12-31
"""
METRICS: Final = {
    "editor": [("page", "1d", '["platform", "version"]'), ("theme", "7d", '["version"]')],
    "viewer": [("page", "1d", '["platform"]')],
}
Place: TypeAlias = tuple[str, str, tuple[str, ...], frozenset[str]]  # metric, time, values, facts
Held: TypeAlias = dict[Place, Counter[int]]  # reports by key


def texts() -> Iterator[str]:
    for app, tables in METRICS.items():
        yield HEAD.format(app=app) + "".join(
            METRIC.format(name=name, every=every, segments=segments)
            for name, every, segments in tables
        )


CATALOG: Final = Catalog([Registry.from_text(text) for text in texts()])
PAGE: Final = CATALOG.metric("editor/page")
LINUX: Final = {"platform": "linux", "version": "2.2"}
MECHANISMS: Final = {digest: metric.mechanism for digest, metric in CATALOG.by_digest.items()}


def text_of(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def fleet(chance: random.Random) -> tuple[list[AcceptedColumn], Held]:
    """Return reports of all keys, many of them few in their place, and how many are where."""
    held: Held = defaultdict(Counter)
    columns = []
    for metric, facts in product(CATALOG, FACTS):
        epochs = sorted({epoch_of(metric.every, day * 86_400) for day in DAYS})
        for epoch, values in product(epochs, product(*map(sorted, metric.segments.values()))):
            segment = dict(zip(metric.segments, values, strict=True))
            place = metric.address, epoch_label(metric.every, epoch), values, facts
            known = len(KEYS) - (metric.name == "page")  # of a week some keys are not known
            for key in chance.sample(range(known), chance.randint(1, known)):
                name, n = KEYS[key], chance.choice([1, 7, 60, 99, 100, 230])
                source = facts | (key_source(name) if name else UNKNOWN)
                cell = Cell(metric.digest, epoch, segment_text(metric, segment, source))
                columns.append(AcceptedColumn(cell, bytes([key]) * n))
                held[place][key] += n
    return columns, held


class Analyst:
    """A read token, and what its answers have betrayed of each place: keys that were in one."""

    def __init__(self, client: FlaskClient, held: Held) -> None:
        self.client, self.held = client, held
        self.seen: dict[Place, set[frozenset[int]]] = defaultdict(set)

    def ask(self, metric: Metric, facts: frozenset[str], **more: Any) -> None:
        """Ask with all dimensions, so that a row is of a place, and work out whose reports it has.

        Args: facts: of the way of coming, just these.
        """
        filters = [*more.pop("filters", ())]
        filters += [["is", "@source", [fact]] for fact in facts]
        if lacking := sorted({ATTESTED, RELAYED} - facts):
            filters.append(["is_not", "@source", lacking])
        query = {
            "metrics": [metric.address], "dimensions": ["time", *metric.segments],
            "filters": filters, "small_cells": "withhold",
        } | more  # fmt: skip
        answer = self.client.post("/v1/query", json=query, headers=bearer(OWNER_TOKEN))
        assert answer.status_code == 200, answer.text
        for place, rows in self._places(metric, facts, answer.get_json()["rows"]).items():
            self.seen[place].add(self._keys_of(place, metric, rows))

    def _places(
        self, metric: Metric, facts: frozenset[str], rows: list[Any]
    ) -> Mapping[Place, list[Any]]:
        places = defaultdict(list)
        for row in rows:
            said = row["dimensions"]
            values = tuple(said[name] for name in metric.segments)
            places[metric.address, said["time"], values, facts].append(row)
        return places

    def _keys_of(self, place: Place, metric: Metric, rows: list[Any]) -> frozenset[int]:
        counts, channel = self.held[place], metric.mechanism.channel  # type: ignore[attr-defined]
        n, p, q = rows[0]["n"], float(channel.p), float(channel.q)
        if rows[0]["value"] is None:
            assert n < LEAST
            assert n in {0, counts.total()}, "fewer than a hundred of a place that has more"
            return frozenset(counts if n else ())
        labels = list(metric.domain.labels)
        keys = set()
        for row in rows:
            key = labels.index(row["dimensions"]["item"])
            reports = n * (q + row["value"] * (p - q))
            assert min(abs(reports), abs(reports - counts[key])) < 1e-6, "a part of a key"
            if reports > 0.5:
                keys.add(key)
        return frozenset(keys)


def parts(counts: Mapping[int, int], seen: set[frozenset[int]]) -> list[set[int]]:
    """Return the keys of a place as far as what was *seen* parts them, by any arithmetic."""
    alike: dict[frozenset[frozenset[int]], set[int]] = defaultdict(set)
    for key in counts:
        alike[frozenset(keys for keys in seen if key in keys)].add(key)
    return [keys for where, keys in alike.items() if where]


def too_fine(counts: Mapping[int, int], seen: set[frozenset[int]]) -> list[set[int]]:
    """Return the parts of fewer reports than may be isolated, unless that is the whole place."""
    return [
        keys
        for keys in parts(counts, seen)
        if sum(counts[key] for key in keys) < LEAST and keys != set(counts)
    ]


@pytest.fixture
def deployment(tmp_path: Path) -> tuple[FlaskClient, MemoryStorage]:
    storage = MemoryStorage()
    storage.clock, storage.times = int(NOON), (NOON,)
    tokens = MemoryCredentials()
    for token, role in ((OWNER_TOKEN, OWNER), (ANALYST_TOKEN, ANALYST)):
        tokens.add(token, Credential(READ, role=role, expires=TODAY + 9))
    app = in_memory(tmp_path, *texts(), storage=storage, credentials=tokens, settings={})
    return app.test_client(), storage


def wish(chance: random.Random) -> ExclusionRequest:
    """Return what an operator may type: by key or version, of some days, of a metric or all."""
    first, last = sorted(chance.choices(DAYS, k=2))
    by = chance.choice(["key", "key", "version"])
    name = chance.choice(["2.2", "2.3"] if by == "version" else [key for key in KEYS if key])
    metrics = chance.choice([(), (), ("editor/page",), ("viewer/page", "editor/page")])
    return ExclusionRequest(by, name, "why", "ada", metrics, text_of(first), text_of(last))  # type: ignore[arg-type]


def change(chance: random.Random, storage: MemoryStorage) -> None:
    """Exclude something, or put it back, as the commands do."""
    records, in_force = Records(storage), [
        name for name, record in storage.excluded.items() if json.loads(record)["included"] is None
    ]  # fmt: skip
    if in_force and chance.random() < 0.4:
        include(chance.choice(in_force), "why", "bob", storage, records)
        return
    try:
        exclude(
            proposed(wish(chance), CATALOG, storage, set(filter(None, KEYS)))[0], storage, records
        )
    except ExclusionError:  # some reports have no known key there, or it is excluded already
        return


def asked(chance: random.Random, metric: Metric) -> dict[str, Any]:
    """Return a question that a read token may ask: days, keys, versions, as it was or is now."""
    first = chance.randrange(TODAY - 20, TODAY - 7)
    last = min(first + chance.randint(6, 12), TODAY - 1)  # of a week's metric an epoch, at least
    names = [f"key:{key}" for key in KEYS if key]
    filters = [
        [chance.choice(["is", "is_not"]), "@source", chance.sample(names, chance.randint(1, 3))]
        for _ in range(chance.randint(0, 2))
    ]
    if "version" in metric.segments and chance.random() < 0.3:
        filters.append(["is", "version", [chance.choice(["2.2", "2.3"])]])
    more = {"version": 0} if last < TODAY - 10 and chance.random() < 0.5 else {}
    return {"filters": filters, "date_range": [text_of(first), text_of(last)], **more}


def test_no_combination_of_questions_and_exclusions_isolates_a_few_reports_of_a_key(
    deployment: tuple[FlaskClient, MemoryStorage],
) -> None:
    """Several apps, metrics, weeks, versions and ways of coming; exclusions come and go."""
    chance = random.Random(20)
    client, storage = deployment
    columns, held = fleet(chance)
    storage.put(tally_entries([columns], MECHANISMS))
    analyst = Analyst(client, held)
    for _ in range(STATES):
        for _ in range(QUESTIONS):
            metric = chance.choice(list(CATALOG))
            analyst.ask(metric, chance.choice(FACTS), **asked(chance, metric))
        change(chance, storage)

    parted = {place: too_fine(held[place], seen) for place, seen in analyst.seen.items()}
    assert {place: parts for place, parts in parted.items() if parts} == {}
    assert sum(len(parts(held[place], seen)) > 1 for place, seen in analyst.seen.items()) > 30
    assert len(storage.excluded) > 5


@pytest.mark.parametrize("kind", ["is", "is_not"])
@pytest.mark.parametrize(("token", "status"), [(ANALYST_TOKEN, 403), (OWNER_TOKEN, 200)])
def test_only_an_owner_asks_about_a_single_key(
    deployment: tuple[FlaskClient, MemoryStorage], kind: str, token: str, status: int
) -> None:
    """An analyst who sends 99 reports of their own under a key would have the report of a device.

    Anybody can send them: write keys are public.
    """
    client, storage = deployment
    day, key = DAYS[-1], KEYS[0]
    cells = [
        (Cell(PAGE.digest, day, segment_text(PAGE, LINUX, key_source(name))), n)
        for name, n in ((key, 99 + 1), (KEYS[1], 150))
    ]
    columns = [AcceptedColumn(cell, bytes(n)) for cell, n in cells]
    storage.put(tally_entries([columns], MECHANISMS))
    question = {"metrics": [PAGE.address], "filters": [[kind, "@source", [f"key:{key}"]]]}

    answer = client.post("/v1/query", json=question, headers=bearer(token))

    assert answer.status_code == status, answer.text
    assert ("you need the owner role" in answer.text) == (status == 403)


def test_a_board_shows_a_question_about_a_key_to_owners_only(
    deployment: tuple[FlaskClient, MemoryStorage],
) -> None:
    """To others its other panels, and through a link to nobody."""
    client, _ = deployment
    asked = [Query(metrics=[PAGE.address], filters=[("is", "@source", ["key:" + str(KEYS[0])])])]
    asked.append(Query(metrics=[PAGE.address]))
    services = services_of(client.application)
    panels = [Panel("x", query) for query in asked]
    name = services.workspace.boards.add(Board("x", panels), ADA).name
    address, _ = services.links.share("x", panels, 7, CATALOG, author=ADA)

    shown = client.get(f"/v1/boards/{name}", headers=bearer(ANALYST_TOKEN)).get_json()["panels"]
    opened = client.get(f"/shared/{address}", headers={"Accept": "text/html"})

    assert ["owner role" in panel.get("reason", "") for panel in shown] == [True, False]
    assert opened.status_code == 200
    assert "owner role" in opened.text


@pytest.mark.parametrize("alone", [{0}, {1}, {0, 1}])
def test_a_rule_that_takes_just_what_is_named_would_isolate_a_few_reports(alone: set[int]) -> None:
    """The control, and the planted bug."""
    counts = {0: 7, 1: 60, 2: 500}
    everything, together = frozenset(counts), frozenset({0, 1, 2})

    assert too_fine(counts, {everything, together}) == []
    assert too_fine(counts, {everything, frozenset(alone)})
    assert too_fine(counts, {everything, everything - alone})
