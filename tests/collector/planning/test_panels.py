"""Panels before any data exist: who would starve without one, and which weights make one fit."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from client_sdk.core.epoch import DAY, HOUR, epoch_of
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import with_samples
from client_sdk.registry import Registry
from client_sdk.testing import FrozenClock, MemoryClient
from collector.cli import main
from collector.estimation.precision import half_width, reports_for, still_needed
from collector.planning.panels import fitted, remedies, rewritten, starvation
from collector.planning.planner import PlanRequest, plan
from collector.planning.registry_report import warnings
from tests.support.device.device import metric_text

HEAD: Final = 'schema = 1\napp = "demo"\n'
NANO: Final = 10**9
MONDAY: Final = (2_900 * 7 - 3) * DAY  # Unix time; four weeks begin, too
WEEKS: Final = 12
WEEKLY: Final = [metric_text(f"m{i}", every="7d") for i in range(12)]
ANY: Final = 'type = "boolean"\naggregate = "any"'
KINDS: Final = {
    "twelve a week": WEEKLY,
    "a day and a week": [
        metric_text("daily", epsilon="0.7"), metric_text("used", ANY, every="7d", epsilon="2"),
        metric_text("month", every="28d", epsilon="2"), metric_text("last", every="7d"),
        metric_text("once", every="once", epsilon="2"),
    ],
    "days in turn": [metric_text(f"m{i}", epsilon="0.5") for i in range(3)],
    "hours": [metric_text("hourly", every="1h", epsilon="0.04"), metric_text("daily", ANY)],
    "repeated": [
        metric_text("kept").replace('"fresh"', '"permanent"'),
        metric_text("two", epsilon="1").replace('"fresh"', '"two_layer"\nepsilon_permanent = "4"'),
        metric_text("fresh", epsilon="1.1"),
    ],
}  # fmt: skip


def command(*words: str) -> Result:
    """Return what ``hearsay registry`` prints."""
    return CliRunner().invoke(main, ["registry", *words])


def with_panel(*metrics: str, week: str = "8") -> str:
    """Return a registry with a panel as TOML."""
    return f'{HEAD}[panel]\nweek = "{week}"\n' + "".join(metrics)


@pytest.mark.parametrize("kind", KINDS)
def test_who_starves_is_who_does_at_a_device(kind: str) -> None:
    """Law: the same metrics, as often, as in the ledger of a client that records all of them."""
    registry = Registry.from_text(HEAD + "".join(KINDS[kind]))
    client = MemoryClient(registry, clock=FrozenClock(MONDAY))
    hours = 1 if kind == "hours" else 24
    for _ in range(WEEKS * 7 * 24 // hours):
        for name in registry.metrics:
            client.record(name, True)
        client.clock.advance(seconds=hours * HOUR)
    with client._engine.store.transaction() as tx:
        charged = set(tx.execute("SELECT digest, epoch FROM charges").fetchall())

    expected = {}
    for metric in registry:
        late = metric.aggregate is not None  # the window of the last epoch is open
        since, until = (epoch_of(metric.every, MONDAY + w * 7 * DAY - 1) + 1 for w in (4, WEEKS))
        epochs = range(since - late, until - late) if metric.every != "once" else range(1)
        share = sum((metric.digest, epoch) in charged for epoch in epochs) / len(epochs)
        if share < 1:
            expected[metric.name] = share

    assert starvation(registry, Caps()) == pytest.approx(expected)


def test_a_check_names_who_starves_and_the_panel_that_mends_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(HEAD + "".join(WEEKLY), encoding="utf-8")
    without = command("check", str(path)).output
    path.write_text(with_panel(*WEEKLY), encoding="utf-8")
    within = command("check", str(path)).output

    assert "never reports m8, m9, m10 and m11\n" in without
    assert '[panel] with week = "8" lets' in without
    assert "with a chance of 33.3 %" in without
    assert "from 3,333 reports, as 33.3 % of the devices report" in within
    assert "never reports" not in within
    assert "devices refuse the rest" not in within


def test_a_plan_counts_the_devices_that_are_drawn() -> None:
    """Law: with a chance of a third, a wish takes three times as many, and more for the draw."""
    whole = Registry.from_text(HEAD + "".join(WEEKLY)).metric("m0")
    part = with_samples(Registry.from_text(with_panel(*WEEKLY))).metric("m0")
    request = PlanRequest(devices=30_000, half_width=0.02)
    (line,), (drawn,) = (plan(m, request, [m.epsilon]) for m in (whole, part))
    more = (1 - part.sample.share) / 4

    assert part.expected_reports == whole.expected_reports // 3 == 3_333
    assert drawn.half_width == pytest.approx(half_width(part.mechanism, 9_999, 0.05, more))
    assert drawn.devices is not None
    assert line.devices is not None
    assert drawn.devices == pytest.approx(
        3 * (reports_for(part.mechanism, 0.02, 0.05, more) or 0), abs=3
    )
    assert 3 * line.devices < drawn.devices < 4 * line.devices
    assert still_needed(part, 0) == reports_for(part.mechanism, 0.05, 0.05, more)


def test_a_need_that_the_panel_cannot_meet_is_named() -> None:
    """Law: of 10,000 devices 3,333 report, which is too few for what 10,000 would give."""
    metrics = [text + "need = 0.025\n" for text in WEEKLY]
    whole = Registry.from_text(HEAD + "".join(metrics))
    part = with_samples(Registry.from_text(with_panel(*metrics)))

    assert not [line for line in warnings(whole, date(2026, 1, 1)) if "above its need" in line]
    assert len([x for x in warnings(part, date(2026, 1, 1)) if "above its need" in x]) == 12


def test_fitted_weights_give_intervals_of_like_needs() -> None:
    """Law: half-widths over needs differ by a twentieth at most where not all devices report."""
    needs = ["0.03", "0.05", "0.08", "0.02", *["0.04"] * 8]
    metrics = [f"{text}need = {need}\n" for text, need in zip(WEEKLY, needs, strict=True)]
    registry = fitted(Registry.from_text(HEAD + "".join(metrics)), 6 * NANO, 50_000)
    missed = [
        half_width(m.mechanism, m.expected_reports) / float(m.need or 1)
        for m in registry
        if m.sample.share < 1
    ]

    assert len(missed) > 8
    assert max(missed) <= 1.05 * min(missed)
    assert sum(metric.sample.share for metric in registry) == pytest.approx(3, abs=1e-6)


def test_metrics_without_needs_have_like_chances() -> None:
    registry = fitted(Registry.from_text(HEAD + "".join(WEEKLY)), 6 * NANO)

    assert {metric.weight for metric in registry} == {1}
    assert {round(metric.sample.share, 9) for metric in registry} == {0.25}


@pytest.mark.parametrize("head", [HEAD, f'{HEAD}panel = {{ week = "2" }}\n'])
def test_a_fitted_registry_keeps_its_file(head: str, tmp_path: Path) -> None:
    """Law: panel and weights are written, all else stays, and a second time changes nothing."""
    metrics = [f"\n# above m{i}{text}need = 0.0{i % 4 + 2}\n" for i, text in enumerate(WEEKLY)]
    path, fit = tmp_path / "metrics.toml", tmp_path / "fit.toml"
    path.write_text(head + "".join(metrics).replace("[metrics.m3]", '[metrics."m3"]  # third'))

    printed = command("plan", "--cap", "6", "--devices", "50000", str(path), "-o", str(fit))
    first = fit.read_text()
    again = command("plan", "--cap", "6", "--devices", "50000", str(fit), "-o", str(fit))

    assert printed.exit_code == again.exit_code == 0
    assert first == fit.read_text()
    assert set(path.read_text().splitlines()) - set(first.splitlines()) <= {
        'panel = { week = "2" }'
    }
    loaded = Registry.from_file(fit)
    assert loaded.panel_week == 6 * NANO
    assert {m.digest for m in loaded} == {m.digest for m in Registry.from_file(path)}
    assert {f"{m.name} {m.weight}" for m in loaded} == {
        " ".join(line.split()[:2]) for line in printed.output.splitlines()[2:]
    }


def test_a_file_that_lines_cannot_be_added_to_is_refused() -> None:
    text = f'{HEAD}metrics.m = {{ title = "A", question = "B", type = "boolean", epsilon = "1",' + (
        ' every = "7d", longitudinal = "fresh", owner = "t", expected_devices = 10,'
        " expires = 2099-12-31, need = 0.1 }\n" + WEEKLY[0]
    )
    registry = fitted(Registry.from_text(text), 2 * NANO)

    assert registry.metric("m").weight != 1
    with pytest.raises(RegistryError, match="by hand"):
        rewritten(text, registry)


def test_where_not_even_a_panel_helps_the_ways_out_do(tmp_path: Path) -> None:
    """Law: what is named as a way brings the metric within the cap."""
    path = tmp_path / "metrics.toml"
    path.write_text(HEAD + metric_text("hot", every="1d", epsilon="2"), encoding="utf-8")
    refusal = command("plan", "--cap", "6", str(path))

    assert refusal.exit_code == 1
    (line,) = [line for line in refusal.stderr.splitlines() if "hot costs ε 14" in line]
    assert "ε to at most 0.857" in line
    assert 'every = "7d"' in line
    assert 'longitudinal = "permanent"' in line
    for way in (
        metric_text("hot", epsilon="0.857"),
        metric_text("hot", every="7d", epsilon="2"),
        metric_text("hot", epsilon="2").replace('"fresh"', '"permanent"'),
    ):
        assert fitted(Registry.from_text(HEAD + way), 6 * NANO).panel_week == 6 * NANO


def test_two_that_fit_alone_and_not_together_are_told_so() -> None:
    kept = metric_text("kept", epsilon="3").replace('"fresh"', '"permanent"')
    registry = Registry.from_text(HEAD + kept + metric_text("weekly", every="7d", epsilon="3"))

    with pytest.raises(InvalidParameterError):
        fitted(registry, 8 * NANO)
    assert "drawn for life" in "".join(remedies(registry, 8 * NANO))


@pytest.mark.parametrize("words", [["--devices", "10"], ["--output", "x.toml"]])
def test_options_of_a_panel_go_with_its_cap(words: list[str]) -> None:
    refusal = command("plan", *words, "examples/metrics.toml")

    assert refusal.exit_code == 2
    assert "go with --cap" in refusal.output
