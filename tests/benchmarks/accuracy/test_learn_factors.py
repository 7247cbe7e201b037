"""The benchmark of factors: its reports are the device's own, and its page has its table."""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import learn_factors as benchmark
from benchmarks.lib.public_data import opened
from client_sdk.registry import Registry
from tests.docs.pages import only

PAGE = "docs/learn/factors.md"
METRIC = benchmark.metric_of(("a", "b", "c", "d"), "2")


def test_words_are_chosen_as_the_device_chooses_them() -> None:
    """Given the sign and the place; a chance of 1 leaves only these."""
    mechanism: Any = METRIC.mechanism
    value: Any = METRIC.encode(["a", "c"])
    near = set(mechanism.ranked(77 * mechanism.words, value)[: mechanism.subset_size])
    words = benchmark.words_of(mechanism, 77)
    many = np.repeat(np.array([value], dtype=float), 2_000, axis=0)

    drawn = benchmark.chosen_words(
        mechanism, words, many, np.ones(len(many)), np.random.default_rng(1)
    )

    hits = sum(int(word) in near for word in drawn)
    spread = (len(many) * float(mechanism.truth * (1 - mechanism.truth))) ** 0.5
    assert abs(hits - len(many) * float(mechanism.truth)) < 6.5 * spread
    assert {int(word) for word in drawn} >= near


def test_the_tally_is_that_of_the_mechanism() -> None:
    """Every report is a word of the table; so the sums and the squares fit one another."""
    likes = np.array([[True, False, True, False], [False, True, False, False]] * 40)

    tally = benchmark.tally_of(METRIC, likes, np.random.default_rng(2))

    totals, variances = METRIC.mechanism.debias(tally, len(likes), np)
    assert len(totals) == 10
    assert (variances > 0).all()


def test_words_are_those_that_the_collector_adds_up() -> None:
    mechanism: Any = METRIC.mechanism
    number = 5 * mechanism.words + 3

    tally = mechanism.tally(number.to_bytes(4, "big"), np)

    assert benchmark.words_of(mechanism, 5)[3].tolist() == tally[:10].tolist()


def test_one_like_is_held_out_of_each_who_has_two() -> None:
    likes = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool)

    held = benchmark.Held.of(likes, np.random.default_rng(3))

    assert held.known.sum(axis=1).tolist() == [1, 2]
    assert not held.known[[0, 1], held.out].any()
    assert held.hits(np.eye(3)[held.out]) == 1.0


def test_the_registry_of_the_page_has_a_taste() -> None:
    text = only(PAGE, "toml")

    assert tomllib.loads(text)["metrics"]["shows"]["type"] == "taste"
    assert Registry.from_text(text).metric("shows").mechanism_name == "codebook"


def test_without_the_data_it_is_said_what_is_missing() -> None:
    with pytest.raises(SystemExit, match="HEARSAY_PUBLIC_DATA=missing: must be a folder with a"):
        opened("a.csv", {})
