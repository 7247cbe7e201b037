"""Channels made for questions: nothing errs less, and what is printed is taken by a registry."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk.core.errors import RegistryError
from client_sdk.mechanisms import ItemMechanism
from client_sdk.mechanisms.items.cover import Cover
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry.contract import Registry
from collector.cli.registry import registry as registry_commands
from collector.core.config import Config
from collector.core.errors import QueryError
from collector.planning.compilation import compiled
from collector.planning.design import ASKS, design, error_of, gram, others
from collector.web import create_app
from tests.support.crowds.uploads import NOON, READ_TOKEN, WRITE_KEY, bearer
from tests.support.store.memory_storage import MemoryStorage

REGISTRY: Final = """
schema = 1
app = "app"

[metrics.start]
title = "Start"
question = "How long does a start take?"
type = "category"
values = ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s"]
epsilon = "1.0"
every = "7d"
longitudinal = "fresh"
expected_devices = 50000
owner = "team"
expires = 2099-12-31
"""


def questions_of(ask: str, items: int) -> Any:
    """Return the weights of every question, written out; shape (questions, items)."""
    runs = [(first, last) for first, last in combinations_with_replacement(range(items), 2)]
    if ask == "items":
        runs = [(item, item) for item in range(items)]
    elif ask == "quantiles":
        runs = [(0, last) for last in range(items - 1)]
    return np.array([[first <= i <= last for i in range(items)] for first, last in runs], float)


@pytest.mark.parametrize("items", [2, 3, 7])
@pytest.mark.parametrize("ask", ASKS)
def test_what_is_asked_is_the_mean_over_all_questions_of_that_kind(ask: str, items: int) -> None:
    weights = questions_of(ask, items)

    assert gram({ask: 3.0}, items) == pytest.approx(weights.T @ weights / len(weights))


def test_asks_are_mixed_by_their_weights() -> None:
    mixed = gram({"items": 3, "ranges": 1}, 5)

    assert mixed == pytest.approx(0.75 * gram({"items": 1}, 5) + 0.25 * gram({"ranges": 1}, 5))


@pytest.mark.parametrize(
    "asks", [{}, {"medians": 1.0}, {"items": 0.0}, {"items": math.nan}, {"items": 1e308}]
)
def test_what_cannot_be_asked_is_refused(asks: dict[str, float]) -> None:
    with pytest.raises(QueryError, match="ask"):
        gram(asks, 4)


@pytest.mark.parametrize("epsilon", ["0.5", "2", "5"])
@pytest.mark.parametrize(("items", "ask"), [(3, "ranges"), (5, "items"), (8, "quantiles")])
def test_a_design_comes_within_one_percent_of_what_no_channel_goes_below(
    items: int, ask: str, epsilon: str
) -> None:
    """And below all other mechanisms, which the bound holds for, too."""
    questions = gram({ask: 1}, items)

    made = design(Fraction(epsilon), items, questions)

    assert made.bound is not None
    assert made.bound * (1 - 1e-6) <= made.error <= 1.01 * made.bound
    for error in others(Fraction(epsilon), items, questions).values():
        assert error >= made.bound * 0.99  # errors of some are of reports that are drawn
        assert made.error <= 1.01 * error


@pytest.mark.parametrize("seed", range(20))
def test_no_channel_of_the_same_epsilon_drawn_at_random_goes_below_the_bound(seed: int) -> None:
    """Law: also one whose rows take more than two values."""
    chance, items, epsilon = np.random.default_rng(seed), 4, 1.0
    questions = gram({"quantiles": 1}, items)
    channel = np.exp(epsilon / 2 * chance.random((12, items)))
    channel /= channel.sum(axis=0)  # keeps ratios in a row below e^epsilon, as their range halved
    assert (channel.max(axis=1) / channel.min(axis=1)).max() <= math.exp(epsilon)
    scaled = channel / channel.sum(axis=1, keepdims=True)
    inverse = np.linalg.inv(scaled.T @ channel)
    error = math.sqrt((questions * inverse).sum() / items - np.trace(questions) / items)

    bound = design(Fraction(1), items, questions).bound

    assert bound is not None
    assert error >= bound


@pytest.mark.parametrize(("is_drawn", "tolerance"), [(False, 0.005), (True, 0.1)])
def test_an_error_without_a_law_of_sums_is_that_of_reports(
    is_drawn: bool, tolerance: float
) -> None:
    """Of all that can be made, or of those that are drawn where these are too many."""
    mechanism, questions = GRR("1", 6), gram({"items": 1}, 6)

    class Unknown(GRR):
        def sum_laws(self, weights: Any, np: Any) -> None:
            return None

        def enumerated(self, np: Any) -> Any:
            return None if is_drawn else super().enumerated(np)

    assert error_of(Unknown("1", 6), questions) == pytest.approx(
        error_of(mechanism, questions), rel=tolerance
    )


def test_the_lines_that_are_printed_are_taken_by_the_registry(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY, encoding="utf-8")

    said = CliRunner().invoke(
        registry_commands, ["design", str(path), "start", "--ask", "ranges=2"]
    )

    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    path.write_text(REGISTRY + "\n".join(lines[-2:]), encoding="utf-8")
    metric = Registry.from_file(str(path)).metric("start")
    assert f'mechanism = "{metric.mechanism_name}"' == lines[-2]
    (line,) = (line for line in lines if "no channel" in line)
    half_width, bound = re.findall(r"[0-9.]+", line)
    assert isinstance(metric.mechanism, ItemMechanism)
    error = error_of(metric.mechanism, gram({"ranges": 1}, 6))
    assert float(half_width) == pytest.approx(100 * 1.96 * error / math.sqrt(100_000), abs=0.006)
    least = design(Fraction(1), 6, gram({"ranges": 1}, 6)).bound
    assert least is not None
    assert (
        0 <= 100 * 1.959964 * least / math.sqrt(100_000) - float(bound) < 0.011
    )  # never rounded up


def test_a_question_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY, encoding="utf-8")
    twice = ["--ask", "items=2", "--ask", "items"]

    said = CliRunner().invoke(registry_commands, ["design", str(path), "start", *twice])

    assert said.exit_code == 2
    assert "must name each question once" in said.output


def test_a_table_of_kilobytes_is_read_compiled_and_shown(tmp_path: Path) -> None:
    """Python writes no integer of more than 4,300 digits in decimal: nothing may try to."""
    items, chance = 64, random.Random(1)
    sets = [(60_000 - i, chance.getrandbits(items) | 1 << i % items) for i in range(300)]
    table = Cover.table_of(sets, items)["sets"]
    with pytest.raises(ValueError, match="integer string conversion"):
        str(table)
    labels = ", ".join(f'"item {i}"' for i in range(items))
    text = re.sub(r"values = .*", f"values = [{labels}]", REGISTRY)
    own = f'mechanism = "cover"\nparameters = {{ sets = {hex(table)} }}'

    registry = Registry.from_text(text + own)

    metric = registry.metric("start")
    again = Registry.from_text(compiled(registry)).metric("start")
    assert (again.digest, again.mechanism) == (metric.digest, metric.mechanism)
    place = tmp_path / "metrics.toml"
    place.write_text(text + own, encoding="utf-8")
    settings = {
        "HEARSAY_REGISTRY": str(place),
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
    }
    client = create_app(Config.from_env(settings), MemoryStorage(), lambda: NOON).test_client()
    for path in ("/metric/start", "/privacy", "/privacy/record.json", "/privacy/people"):
        assert client.get(path, headers=bearer(READ_TOKEN)).status_code == 200
    with pytest.raises(RegistryError, match=r"sets=\.\.\.: is not a parameter of grr"):
        Registry.from_text(text + own.replace("cover", "grr"))


@pytest.mark.parametrize("epsilon", ["0.5", "1"])
@pytest.mark.parametrize("most", [2, 8, 9])
def test_few_sets_are_completed_by_single_items(most: int, epsilon: str) -> None:
    items = 8
    questions = gram({"items": 1}, items)

    made = design(Fraction(epsilon), items, questions, most)

    assert isinstance(made.mechanism, Cover)
    assert sum(sets.bit_count() > 1 for _, sets in made.mechanism.table) <= most
    assert made.error <= 1.01 * error_of(GRR(epsilon, items), questions)


def test_a_metric_that_repeats_its_reports_is_refused_before_its_design(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(REGISTRY.replace('"fresh"', '"permanent"'), encoding="utf-8")

    said = CliRunner().invoke(registry_commands, ["design", str(path), "start"])

    assert "must be fresh, not permanent" in str(said.exception) + said.output


def test_a_metric_of_numbers_is_refused_with_what_can_be_designed_for(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    number = 'type = "number"\nmin = 0\nmax = 9\nstep = 1\nunit = "s"'
    text = re.sub(r'type = "category"\nvalues = .*', number, REGISTRY)
    path.write_text(text, encoding="utf-8")

    said = CliRunner().invoke(registry_commands, ["design", str(path), "start"])

    assert said.exit_code != 0
    assert "must be of items" in str(said.exception) + said.output
