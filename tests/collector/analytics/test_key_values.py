"""Keys with numbers, sets and distributions from registry to answer."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pytest

from client_sdk.mechanisms import KeyValueMechanism, SetMechanism
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Row
from collector.estimation.estimate import normal_quantile, ratio_limits
from collector.planning.registry_report import (
    compare_mechanisms,
    describe_metrics,
    pinned,
    plus_minus,
    warnings,
)
from tests.support.crowds.asking import answer, holds
from tests.support.crowds.truths import label_truth
from tests.support.device.registries import KEY_VALUE, NUMBER, SET, file_with
from tests.support.enumeration.populations import metric_of, reported
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.known import known
from tests.support.references.key_value_reference import HeldPairs

DOCS = (Path(__file__).parents[3] / "docs" / "ask" / "registry.md").read_text("utf-8")
ALPHA = 0.05
ITEMS = ["video", "music", "chess", "mean of video", "mean of music", "mean of chess"]


class Held(dict[str, float]):
    """A mapping that can be counted."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict has none
        return hash(frozenset(self.items()))


PEOPLE: dict[object, int] = {
    Held(video=20): 2_000,
    Held(video=0, music=30): 1_000,
    Held(music=-10): 500,
    Held(): 500,
}


def registry(**changes: str | None) -> Registry:
    return Registry.from_text(file_with(KEY_VALUE, **changes))


def metric(**changes: str | None) -> Metric:
    return registry(**changes).metric("m")


def answered(metric: Metric, people: dict[object, int], alpha: float = ALPHA) -> tuple[Row, ...]:
    """Return the answer to reports of *people*, drawn from a seed."""
    return answer(metric, *reported(metric, Counter(people).elements(), "key-values"), alpha)


def test_the_true_answer_is_a_share_and_a_mean_per_key() -> None:
    """A mean is that of the holders; nobody's mean is no number."""
    truth = label_truth(metric(), PEOPLE)

    assert list(truth) == ITEMS
    assert truth["video"] == 0.75
    assert truth["music"] == 0.375
    assert truth["chess"] == 0
    assert truth["mean of video"] == pytest.approx(40 / 3)
    assert truth["mean of music"] == pytest.approx(50 / 3)
    assert np.isnan(truth["mean of chess"])


@pytest.mark.parametrize("mechanism", ["auto", "pckv_ue", "pckv_grr"])
def test_an_answer_has_both_rows_of_a_key_with_intervals_that_hold_the_truth(
    mechanism: str,
) -> None:
    """At a level of 1 - 1e-6 every interval holds; a key that nobody holds has no mean."""
    pairs = metric(epsilon='"4"', mechanism=f'"{mechanism}"')

    found = answered(pairs, PEOPLE, alpha=1e-6)

    truth = label_truth(pairs, PEOPLE)
    assert [row.item for row in found] == ITEMS
    assert [row.unit for row in found] == ["share"] * 3 + ["minutes"] * 3
    assert all(holds(row, truth[row.item]) for row in found[:5])
    assert found[5].value is None
    assert found[5].reason == ("not enough reports: whether any device holds the key is not sure")


def test_a_mean_is_given_exactly_where_the_share_is_surely_above_zero() -> None:
    """One rule decides: the interval of the share, at the level that was asked for."""
    rows = answered(metric(), PEOPLE)

    for share, mean in zip(rows[:3], rows[3:], strict=True):
        assert (mean.value is not None) == (known(share.ci_low) > 0)


def test_means_and_their_intervals_stay_within_the_range() -> None:
    """Everybody at the top: the estimate would pass it in half of all runs."""
    rows = answered(metric(epsilon='"2"'), {Held(video=30): 1_000, Held(video=30, music=-10): 1})

    mean = rows[3]
    assert -10 <= known(mean.ci_low) <= known(mean.value) <= 30
    assert mean.ci_high == 30


def test_below_min_reports_every_row_has_a_reason_and_its_unit() -> None:
    """Too few reports give neither shares nor means."""
    found = answer(metric(), np.zeros(6, dtype=np.int64), 499, ALPHA)

    (reason,) = {row.reason or "" for row in found}
    assert reason.startswith("not enough reports: 499 of at least 500 needed; ")
    assert [row.unit for row in found] == ["share"] * 3 + ["minutes"] * 3


def test_the_ends_of_a_ratio_are_z_standard_errors_from_what_was_found() -> None:
    """Fieller: at a limit r, over - r under is z standard errors of itself at r."""
    over, under, level, slope = (np.array(x) for x in ([30.0, -5.0], [90.0, 50.0], 80.0, 40.0))

    for limit in ratio_limits(over, under, level, slope, ALPHA):
        reach = normal_quantile(ALPHA) * np.sqrt(level + slope * limit**2)
        assert abs(over - limit * under) == pytest.approx(reach)


@pytest.mark.parametrize(("r", "others"), [(-1, 0), (0, 700), (Fraction(1, 3), 50)])
@pytest.mark.parametrize("name", ["pckv_ue", "pckv_grr"])
def test_the_variance_of_the_ratio_is_that_of_the_stated_moments(
    name: str, r: Fraction, others: int
) -> None:
    """Var(lean - r holders) from the coins of one holder and of one other device."""
    mechanism = cast("KeyValueMechanism", metric(mechanism=f'"{name}"', most="2").mechanism)
    same, opposite, foreign = map(float, mechanism.channel)
    x, pad = (1 + float(r)) / 2, mechanism.pad
    rest = (pad - 1) * foreign
    holder = [(x * same + (1 - x) * opposite + rest) / pad]
    holder.append(((1 - x) * same + x * opposite + rest) / pad)
    gap, gain = float(mechanism.holding.p - mechanism.holding.q), float(mechanism.gain)
    weights = np.array([1 / gain - float(r) / gap, -1 / gain - float(r) / gap])

    def variance(chances: Any) -> float:
        shown = np.array(chances)
        return float((weights**2 * shown).sum() - (weights * shown).sum() ** 2)

    level, slope = mechanism.ratio_variance(100, 100 + others)

    exact = 100 * variance(holder) + others * variance([foreign, foreign])
    assert level + slope * float(r) ** 2 == pytest.approx(exact)


def test_the_plan_speaks_of_keys_and_of_means() -> None:
    """Both numbers of a key have an interval that can be planned."""
    pairs = metric()
    (_, line) = describe_metrics(registry())

    assert line.endswith(f"20,000 devices give {plus_minus(pairs)}")
    assert plus_minus(pairs) == (
        "±4.1 points per key, and ±8 minutes for the mean of a key that 10 % hold"
    )


def test_the_example_of_the_docs_is_planned_as_they_say() -> None:
    """docs/ask/registry.md quotes what the check of its own lines prints."""
    (block,) = [
        block for block in re.findall(r"```text\n(.*?)```", DOCS, re.DOTALL) if "most" in block
    ]
    fields = dict(line.split(" = ", 1) for line in block.strip().splitlines())

    planned = plus_minus(metric(**fields, expected_devices="50000"))

    (share, mean) = re.findall(r"±[0-9.]+", planned)
    assert (
        f"{share} points a share and {mean} minutes for a key that every tenth device"
        in " ".join(DOCS.split())
    )


def test_a_hopeless_mean_is_planned_as_the_whole_range() -> None:
    """An interval within the range is never wider than it."""
    assert "and ±20 minutes for the mean" in plus_minus(metric(expected_devices="100"))


def test_the_plan_compares_mechanisms_of_keys_at_the_slots_of_the_metric() -> None:
    """What the plan prints behind *in use* keeps the digest."""
    head, in_use, *rows = compare_mechanisms(metric(), 8)

    assert head == "m: 3 keys, up to 2 held, ε 1"
    assert in_use.startswith('  in use: mechanism = "pckv_grr"; with')
    assert [row.split(":")[0].strip() for row in rows] == ["pckv_grr", "pckv_ue"]
    assert all("points per key" in row for row in rows)
    assert metric(mechanism=pinned(metric()).removeprefix("mechanism = ")) == metric()


def test_hopeless_precision_is_warned_of_in_points_per_key() -> None:
    """The lint names the unit of what cannot be answered."""
    few = registry(expected_devices="100")
    expires = few.metric("m").expires

    assert any("points per key" in line for line in warnings(few, expires))


def test_the_standard_error_predicted_of_a_mean_is_that_of_the_delta_method() -> None:
    """A key that all devices hold in the middle of the range."""
    mechanism = cast("KeyValueMechanism", metric().mechanism)
    middle = HeldPairs({0: Fraction(1, 2)})
    randomness, n = SeededRandomness(b"middle"), 20_000
    payloads = b"".join(mechanism.randomize(middle, randomness) for _ in range(n))

    found = mechanism.means(mechanism.tally(payloads, np), n, np)

    assert found.variances[0] ** 0.5 == pytest.approx(mechanism.predict_mean(n, 1.0), rel=0.05)


SURE: Final = 1e-6  # at this level every interval holds
WAVE: Final = {**NUMBER, "mechanism": '"square_wave"'}
PADDED: Final = {**SET, "mechanism": '"padding_sampling"', "parameters": "{ pad = 2 }"}
SETS: Final[Counter[object]] = Counter({("a", "b"): 600, ("b",): 300, (): 100})
MINUTES: Final[Counter[object]] = Counter(i % 15 / 2 for i in range(6_000))  # 0 to 7
QUANTILES: Final = ["p10", "p25", "p50", "p75", "p90"]


def test_auto_takes_a_mechanism_that_cuts_no_set_and_none_for_distributions() -> None:
    sets, number = metric_of(SET), metric_of(NUMBER, mechanism='"auto"')

    assert isinstance(sets.mechanism, SetMechanism)
    assert sets.mechanism_name == "sampled_item"
    assert sets.mechanism.most == sets.domain.size == 3
    assert not isinstance(number.mechanism, SquareWave)


def test_the_parameters_of_a_set_are_in_its_meaning() -> None:
    meaning = metric_of(PADDED).meaning

    assert '"mechanism":{"name":"padding_sampling","pad":2,"unary":0}' in meaning


def test_the_true_answer_counts_items_and_is_in_the_unit_of_the_domain() -> None:
    ends = label_truth(metric_of(WAVE), {0.0: 50, 10.0: 50})

    assert label_truth(metric_of(SET), SETS) == {"a": 0.6, "b": 0.9, "c": 0.0}
    assert (ends["p10"], ends["p90"]) == pytest.approx((0, 10), abs=0.25)
    assert ends["mean"] == 5


def test_the_quantiles_of_a_distribution_rise_within_its_range_and_the_mean_is_raw() -> None:
    metric = metric_of(WAVE, epsilon='"4"')

    rows = answer(metric, *reported(metric, MINUTES.elements(), "types"), SURE)

    assert [row.item for row in rows] == [*QUANTILES, "mean"]
    assert [row.postprocess for row in rows] == ["monotone"] * 5 + ["raw"]
    assert all((row.ci_low or 0) >= 0 and (row.ci_high or 99) <= 10.5 for row in rows)


def test_the_plan_of_a_set_compares_mechanisms_of_sets_only() -> None:
    lines = list(compare_mechanisms(metric_of(SET), payload_bytes=8))

    assert [line for line in lines if "sampled_item: error" in line and "auto takes it" in line]
    assert not [line for line in lines if "grr" in line or "duchi" in line]
