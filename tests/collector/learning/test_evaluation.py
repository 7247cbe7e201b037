"""How well a model predicts: figures beside those that are counted pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.learning.model import Model
from client_sdk.learning.rounds import FINAL, signed
from collector.core.errors import QueryError
from collector.learning.evaluation import area, evaluate, lines_of, of_numbers, of_truths
from tests.support.device.learning import SEED, registry, round_model

METRIC = registry().metric("ranker")
MODEL = signed(Model.of(FINAL, METRIC, 400, {"theta": [0.0, 1.0, 0.0, 2.0]}), SEED)


def test_the_area_is_the_part_of_pairs_in_order_equal_ones_half() -> None:
    dice = np.random.default_rng(5)
    scores = dice.integers(0, 6, 160).astype(float)
    truth = (dice.random(160) < 0.3).astype(float)

    pairs = [(a > b) + (a == b) / 2 for a in scores[truth > 0] for b in scores[truth <= 0]]
    assert area(scores, truth).value == pytest.approx(np.mean(pairs))


Draw = Callable[[Any, int, int], tuple[Any, Any]]
LAWS: Final[dict[str, tuple[Draw, float]]] = {  # scores of true and of false rows, and the truth
    "near": (lambda d, m, n: (d.standard_normal(m) + 1, d.standard_normal(n)), 0.76025),
    "far": (lambda d, m, n: (d.standard_normal(m) + 3, d.standard_normal(n)), 0.98305),
    # P(N(3, 3² + 1²) > 0) = Φ(3/√10): the smaller class scatters more
    "scattered": (lambda d, m, n: (3 * d.standard_normal(m) + 3, d.standard_normal(n)), 0.82860),
    # two values: 0.95² + 2 · 0.95 · 0.05 / 2
    "flags": (lambda d, m, n: (1.0 * (d.random(m) < 0.95), 1.0 * (d.random(n) < 0.05)), 0.95),
}
RUNS: Final = 400


def delong(yes: Any, no: Any) -> tuple[float, float]:
    """Return DeLong's interval, the planted bug: too short where rows are few."""
    pairs = (yes[:, None] > no).astype(float) + (yes[:, None] == no) / 2
    error = (pairs.mean(1).var(ddof=1) / len(yes) + pairs.mean(0).var(ddof=1) / len(no)) ** 0.5
    return pairs.mean() - 1.96 * error, pairs.mean() + 1.96 * error


@pytest.mark.parametrize("law", LAWS)
def test_the_interval_of_the_area_holds_the_truth_as_often_as_it_says(law: str) -> None:
    """Of 400 draws with 30 and 300 rows, seeded: what held 87 % of the time would not pass.

    Of 372 that are needed, 348 would be expected with a standard deviation of 6.7.
    """
    (draw, truth), dice = LAWS[law], np.random.default_rng(6)
    labels = np.repeat([1.0, 0.0], [30, 300])
    held, by_delong = 0, 0
    for _ in range(RUNS):
        yes, no = draw(dice, 30, 300)
        figure = area(np.concatenate([yes, no]), labels)
        assert 0 <= figure.low <= (figure.value or 0) <= figure.high <= 1
        held += figure.low <= truth <= figure.high
        low, high = delong(yes, no)
        by_delong += low <= truth <= high

    assert held / RUNS >= 0.93
    assert law not in ("far", "flags") or by_delong / RUNS < 0.9


def test_the_interval_is_newcombes_where_scores_scatter_alike() -> None:
    """By hand: both ends are z times the error of method 5 away from the area."""
    dice = np.random.default_rng(5)
    truth = np.repeat([1.0, 0.0], [60, 90])
    figure = area(dice.exponential(1 + truth), truth)

    for end in (figure.low, figure.high):
        middle = (60 + 90) / 2
        inner = 2 * middle - 1 - (3 * middle - 3) / ((2 - end) * (1 + end))
        error = (end * (1 - end) * inner / (60 * 90)) ** 0.5
        assert abs((figure.value or 0) - end) >= 1.959963 * error
        assert abs((figure.value or 0) - end) <= 1.2 * 1.959964 * error  # or DeLong's


def test_rows_that_are_parted_wholly_still_leave_something_open() -> None:
    truth = np.repeat([1.0, 0.0], [30, 30])

    right, _, curve = of_truths(truth * 2 - 1, truth)

    assert (right.value, right.high, curve.value, curve.high) == (1.0, 1.0, 1.0, 1.0)
    assert right.low == pytest.approx(60 / (60 + 1.959964**2))  # Wilson's, at a share of 1
    assert 0.85 < curve.low < 0.95


def test_too_few_rows_of_a_class_give_the_reason() -> None:
    truth = np.repeat([1.0, 0.0], [29, 400])

    lines = lines_of(of_truths(truth, truth))

    assert lines[0].startswith("accuracy: 1.0000 (95 %: 0.99")
    assert lines[2] == "AUC: not enough rows: 29 true and 400 false ones, of at least 30 each"
    few = lines_of(of_truths(truth[:29], truth[:29]))
    assert few[0] == "accuracy: not enough rows: 29 of at least 30"
    assert "nan" not in "".join(lines + few)
    assert "not enough rows: 5 of" in lines_of(of_numbers(truth[:5], truth[:5]))[0]


def test_an_error_of_numbers_is_never_below_0() -> None:
    dice = np.random.default_rng(1)
    truth = np.where(dice.random(40) < 0.03, 1.0, 0.0)

    square, mean = of_numbers(np.zeros(40), truth)

    assert square.low == 0.0 < (square.value or 0) < square.high
    assert mean.low == 0.0


def test_rows_of_a_file_are_read_as_devices_read_theirs(tmp_path: Path) -> None:
    path = tmp_path / "test.csv"
    rows = "1,paid,60,yes\n2,free,20,no\n3,,,No\n4,gold,99,TRUE\n"
    path.write_text("\ufeffid,plan,age,buys\n" + rows * 15, encoding="utf-8")

    right, _, curve = evaluate(METRIC, MODEL, path, "buys")

    assert right.value == 1.0  # a row without anything has the score 0, which says no
    assert curve.value == 1.0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("age,buys\n1,yes\n", "must have the columns plan"),
        ("age,plan,buys\n", "must have rows below its head"),
        ("age,plan,age,buys\n1,paid,1,yes\n", "each column once"),
        ("age,plan,buys\n1,paid,yes\n2,paid\n", "line 3 has another number of fields"),
        ("age,plan,buys\n1,paid,yes\n2,paid,no,no\n", "line 3 has another number of fields"),
        ("age,plan,buys\n\n\n1,paid,\n", "line 4 is no row"),
        ('age,plan,buys\n1,"' + "x" * 140_000 + '",yes\n', "must be CSV: field larger"),
        ("age,plan,buys\n1,paid,yes\nold,paid,no\n", "line 3 is no row"),
        ("age,plan,buys\n1,paid,yes\n2,paid,maybe\n", "line 3 is no row"),
        ("age,plan,buys\n1,paid,yes\nnan,paid,no\n", "line 3 is no row"),
        ("", "must have the columns age, buys, plan"),
    ],
)
def test_a_file_that_is_no_test_set_is_refused(tmp_path: Path, text: str, rule: str) -> None:
    path = tmp_path / "test.csv"
    path.write_text(text)

    with pytest.raises(QueryError, match=rule):
        evaluate(METRIC, MODEL, path, "buys")


def test_what_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"age,plan,buys\n1,caf\xe9,yes\n")

    with pytest.raises(QueryError, match="must be text in UTF-8"):
        evaluate(METRIC, MODEL, latin, "buys")
    for path in (tmp_path / "missing.csv", tmp_path):
        with pytest.raises(QueryError, match="cannot be read: "):
            evaluate(METRIC, MODEL, path, "buys")


def test_the_model_of_a_round_is_not_what_was_learned(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="once every round had its step"):
        evaluate(METRIC, round_model(METRIC, 2, [0, 0, 0, 0]), tmp_path / "t.csv", "buys")
