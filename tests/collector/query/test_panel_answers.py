"""Answers of metrics that a panel draws devices for: what they count, and whom they are about."""

from __future__ import annotations

import json
from fractions import Fraction
from math import hypot
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from client_sdk.registry.metric import Sample
from collector.analytics.association import Association, associations
from collector.analytics.comparing.numbers import Scatter, estimates_of, variance_if
from collector.analytics.sums import Shares, members_of
from collector.analytics.verb import NO_TALLY, OF_ALL, Slice, VerbQuery, load, sampled
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.remarks import Code
from collector.estimation.estimate import Estimate, shares
from collector.query import Answer, plan, read, run
from collector.query.run import HOLDS
from tests.collector.web.conftest import MakeApp, config, credentials, make_app, storage
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.asking import holds
from tests.support.crowds.uploads import NOON, READ_TOKEN, bearer
from tests.support.device.device import metric_text, registry_of
from tests.support.enumeration.populations import reported
from tests.support.known import known
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

__all__ = ["config", "credentials", "make_app", "storage"]  # fixtures of the web process

FUNNEL: Final = 'type = "funnel"\nvalues = ["visit", "paid"]'
RETENTION: Final = 'type = "retention"\nperiods = ["a", "b"]'
TEXT: Final = 'schema = 1\napp = "demo"\n[panel]\nweek = "8"\n' + "".join(
    (
        *(metric_text(f"m{i}", every="7d") for i in range(6)),
        metric_text("steps", FUNNEL, every="7d"),
        metric_text("stays", RETENTION, every="7d"),
        metric_text("always", 'type = "boolean"\npanel = false', every="7d"),
    )
)
SENTENCE: Final = "a sample of the devices (3 in 8) answers each week"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """A catalog of the file, as every process of the collector reads it."""
    path = tmp_path / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")
    return Catalog.from_files([str(path)])


def answer(catalog: Catalog, name: str, verb: str, **fields: Any) -> Answer:
    """Return the answer from 3,000 reports of *name*."""
    metric, storage = catalog.metric(name), MemoryStorage()
    size = metric.mechanism.tally_size
    entries = [3_000, *(3_000 // size + (i < 3_000 % size) for i in range(size))]
    epoch = plan(read(b'{"metrics": ["m0"]}'), catalog, NOON).readings[0].epochs[-1]
    storage.put({Cell(metric.digest, epoch - 1, ""): list(enumerate(entries))})
    body = json.dumps({"metrics": [name], "verb": verb, **fields}).encode()
    return run(plan(read(body), catalog, NOON), storage)


@pytest.mark.parametrize(("share", "part"), [(0.02, 0.1), (0.3, 0.9), (0.5, 1 / 3)])
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_intervals_of_drawn_devices_hold_the_share_of_all(
    epsilon: str, share: float, part: float
) -> None:
    """Law: 94 to 96 % of all hold it; the band allows 6 standard errors of 2,000 more.

    False alarms are below 1e-8 for all six.  Without the draw half of them hold at ε 4.
    """
    text = metric_text("m", every="7d", epsilon=epsilon)
    metric = replace(registry_of(text).metric("m"), sample=Sample(part, "7d"))
    mechanism, devices, rounds = metric.mechanism, 6_000, 2_000
    channel: Any = mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    chance, held = np.random.default_rng(8), 0
    for _ in range(rounds):
        holders = chance.binomial(round(share * devices), part)
        others = chance.binomial(devices - round(share * devices), part)
        n = int(holders + others)
        yes = int(chance.binomial(holders, p) + chance.binomial(others, q))
        tally = np.array([n - yes, yes])
        reports = Slice(metric, {}, n, tally, (2_900,))
        estimate = sampled(reports, shares(mechanism, tally, n, 0.05), 0.05)[1]
        held += estimate.ci_low <= share <= estimate.ci_high

    assert 0.91 <= held / rounds <= 0.99


def test_epochs_of_one_draw_are_of_the_same_devices(catalog: Catalog) -> None:
    """Law: seven days of one week scatter as one of them, and two weeks as two draws."""
    daily = replace(catalog.metric("m0"), every="1d", sample=Sample(0.25, "7d"))
    life = replace(daily, sample=Sample(0.25, "life"))
    monday = 2_900 * 7 - 3
    raw = [Estimate(0.5, 0.0, 0.5, 0.5)]

    def error(metric: Any, days: int) -> float:
        part = Slice(metric, {}, 700 * days, NO_TALLY, tuple(range(monday, monday + days)))
        return sampled(part, raw, 0.05)[0].std_error

    assert error(daily, 7) == pytest.approx(error(daily, 1))
    assert error(daily, 14) == pytest.approx(error(daily, 7) / 2**0.5)
    assert error(life, 14) == pytest.approx(error(life, 1))


def test_two_weeks_of_drawn_devices_are_never_a_fixed_population(catalog: Catalog) -> None:
    """Law: whoever asks for one is answered as of drawn devices, or weeks would seem to differ."""
    drawn, every = catalog.metric("m0"), catalog.metric("always")
    parts = [Slice(metric, {}, 3_000, NO_TALLY, (2_900,)) for metric in (drawn, every)]

    of_drawn, of_all = (
        variance_if(part, Scatter(0.1, 0.2, 0.3), "reported", in_time=True) for part in parts
    )

    assert of_drawn == pytest.approx(0.3 / 3_000)
    assert of_all == pytest.approx(0.1 / 3_000)


@pytest.mark.parametrize(("verb", "kind"), [("funnel", FUNNEL), ("retention", RETENTION)])
def test_steps_and_periods_of_drawn_devices_are_those_of_all(verb: str, kind: str) -> None:
    """Law: at ε 8 noise is next to nothing, and 95 % of 2,000 intervals hold all the same.

    6 standard errors of 2,000 below 94 % are 91 %: false alarms are below 1e-9.  Retained devices
    are half of those that were there before, so half of the devices tell of them.
    """
    (metric,) = registry_of(metric_text("m", kind, every="7d", epsilon="8"))
    part, devices, rounds = 0.25, 6_000, 2_000
    items = metric.domain.size
    metric = replace(metric, sample=Sample(part, "7d"))
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    law = np.full((items, items), q) + np.eye(items) * (p - q)
    chance, held = np.random.default_rng(9), np.zeros(4)
    members = members_of(metric.domain)  # type: ignore[arg-type]  # it is one of both
    for _ in range(rounds):
        drawn = chance.binomial(devices // items, part, items)
        tally = sum(chance.multinomial(n, row) for n, row in zip(drawn, law, strict=True))
        slice_ = Slice(metric, {}, int(drawn.sum()), np.asarray(tally), (2_900,))
        counts = Shares.of_slice(slice_)
        whole, inner = members[0], members[0] & members[1]
        rows = [
            *counts.groups(members, 0.05)[:2],
            counts.ratio(inner, whole, 0.05),
            list(estimates_of(slice_, 0.05).values())[-1],
        ]
        last = members[1].mean() if verb == "funnel" else inner.sum() / whole.sum()
        truths = members[0].mean(), members[1].mean(), inner.sum() / whole.sum(), last
        held += [
            row.ci_low <= truth <= row.ci_high
            for row, truth in zip(rows, truths, strict=True)
            if row
        ]

    assert (held / rounds >= 0.91).all()
    assert (held / rounds <= 0.99).all()


def test_shares_of_versions_among_drawn_devices_are_not_called_exact(catalog: Catalog) -> None:
    """Law: what is counted in the clear of a sample has an interval around it."""
    drawn, every = catalog.metric("m0"), catalog.metric("always")
    rows = []
    for metric in (drawn, every):
        parts = [
            Slice(metric, {"time": "w", "version": version}, n, NO_TALLY, (2_900,))
            for version, n in (("1", 300), ("2", 700))
        ]
        query = VerbQuery(0.05, options=load("adoption").options())
        rows.append(load("adoption").answer(parts, query))
    of_drawn, of_all = (found.rows[0] for found in rows)
    reach = 1.96 * (5 / 8 * 0.3 * 0.7 / 1_000) ** 0.5

    assert [found.facts["exact"] for found in rows] == [False, True]
    assert of_all.ci_low == of_all.value == 0.3
    assert of_drawn.value == pytest.approx(0.3)
    assert "exact" not in (of_drawn.note or "")
    assert of_drawn.ci_low == pytest.approx(0.3 - reach, rel=1e-3)


def test_a_collector_that_knows_two_versions_takes_the_smaller_sample(tmp_path: Path) -> None:
    """Law: a report does not say under which panel it was drawn."""
    paths = [tmp_path / "new.toml", tmp_path / "old.toml"]
    paths[0].write_text(TEXT.replace('week = "8"', 'week = "16"'), encoding="utf-8")
    paths[1].write_text(TEXT, encoding="utf-8")

    both = Catalog.from_files(map(str, paths)).metric("m0")

    assert Catalog.from_files([str(paths[0])]).metric("m0").sample.share > 3 / 8
    assert both.sample.share == pytest.approx(3 / 8)


def test_the_pages_and_the_api_say_who_answers(make_app: MakeApp) -> None:
    client = make_app(TEXT).test_client()
    listed = json.loads(client.get("/v1/metrics", headers=bearer(READ_TOKEN)).data)
    inclusion = {metric["name"]: metric["inclusion"] for metric in listed["metrics"]}
    client.set_cookie("hearsay", READ_TOKEN)
    drawn, every = (
        Page(client.get(f"/metric/{name}", headers=BROWSER).text).text for name in ("m0", "always")
    )

    assert inclusion["always"] == 1
    assert inclusion["m0"] == pytest.approx(3 / 8)
    assert SENTENCE.capitalize()[:10] + SENTENCE[10:] in drawn
    assert "sample" not in every


@pytest.mark.parametrize(
    ("share", "period", "words"),
    [
        (1 / 3, "7d", "1 in 3"),
        (0.001, "28d", "1 in 1,000) answers each four weeks"),
        (0.999, "life", "99 in 100) answers, the same ones always"),
        (0.4, "7d", "(2 in 5) answers each week"),
    ],
)
def test_a_sample_is_told_in_small_numbers(share: float, period: str, words: str) -> None:
    """Law: it is never told that nobody, or everybody, answers."""
    assert words in (Sample(share, period).in_words or "")
    assert Sample(1.0, period).in_words is None


@pytest.mark.parametrize(
    ("name", "verb", "whose"),
    [("steps", "funnel", HOLDS[OF_ALL]), ("m0", "frequency", HOLDS[OF_ALL])],
)
def test_a_sampled_answer_says_for_whom_its_own_intervals_hold(
    catalog: Catalog, name: str, verb: str, whose: str
) -> None:
    found = answer(catalog, name, verb)

    (warning,) = (each.text for each in found.meta.warnings if each.code == Code.SAMPLE)
    assert warning.endswith(f"; {whose}")


def test_a_sum_over_drawn_devices_is_scaled_up_to_all_with_the_error_of_the_draw() -> None:
    """Law: Horvitz and Thompson; of numbers at both ends the bound of their squares is reached."""
    part, spent, devices = Fraction(2, 5), 200, 10_000
    text = metric_text(
        "m", f'type = "count"\nmin = 0\nmax = {spent}\nstep = 1\nunit = "EUR"', every="7d"
    )
    metric = replace(registry_of(text).metric("m"), sample=Sample(float(part), "7d"))
    n = int(devices * part)
    tally, _ = reported(metric, [spent] * (n // 4) + [0] * (n - n // 4), "spent")
    drawn, of_all = (
        Slice(each, {}, n, tally, (2_900,)) for each in (metric, replace(metric, sample=Sample()))
    )

    (total,), (raw,) = (
        load("sum").answer([each], VerbQuery(0.05)).rows for each in (drawn, of_all)
    )
    squares = known(total.value) * spent
    error = hypot(known(raw.std_error) / part, ((1 / part - 1) * squares) ** 0.5)

    assert known(total.value) == pytest.approx(known(raw.value) / part)
    assert total.std_error == pytest.approx(error)
    assert holds(total, devices * spent / 4)
    assert not holds(raw, devices * spent / 4)


def test_tiles_of_strings_in_a_panel_are_as_any_other(make_app: MakeApp) -> None:
    """Law: the tile says where common strings are looked for, and names no place in a question."""
    strings = (metric_text(f"s{i}", 'type = "string"\nlength = 4', every="7d") for i in range(2))
    client = make_app(TEXT + "".join(strings)).test_client()
    client.set_cookie("hearsay", READ_TOKEN)
    shown = Page(client.get("/", headers=BROWSER).text).text

    assert shown.count("Open it to search for common strings.") == 2
    assert "metrics.0" not in shown


def test_the_association_of_two_answers_is_as_uncertain_as_the_draw_makes_it() -> None:
    """Law: the strongest cell less its margins is a weighted sum of shares, of devices drawn."""
    kind = 'type = "pair"\nparts = { a = ["x", "y"], b = ["u", "v"] }'
    (metric,) = registry_of(metric_text("m", kind, every="7d", epsilon="4"))
    n, part = 100_000, 0.25
    shares = np.array([0.4, 0.1, 0.2, 0.3])
    channel: Any = metric.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    tally = np.rint(n * (q + (p - q) * shares)).astype(np.int64)
    drawn, of_all = (
        associations([Slice(each, {}, n, tally, (2_900,))], 0.05)[0]
        for each in (replace(metric, sample=Sample(part, "7d")), metric)
    )
    assert isinstance(drawn, Association)
    assert isinstance(of_all, Association)
    row, column = drawn.cell
    table = shares.reshape(2, 2)
    inside = np.zeros((2, 2))
    inside[row, column] = 1
    inside[row] -= table[:, column].sum()
    inside[:, column] -= table[row].sum()
    scatter = (inside**2 * table).sum() - (inside * table).sum() ** 2

    added = drawn.beyond.std_error**2 - of_all.beyond.std_error**2

    assert added == pytest.approx((1 - part) * scatter / n, rel=1e-3)
