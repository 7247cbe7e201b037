"""Policies for repeated reports: where their randomness comes from, and what they refuse."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError, InvalidValueError
from client_sdk.core.limits import SECRET_SIZE
from client_sdk.core.randomness import ByteRandomness
from client_sdk.mechanisms import FrequencyOracle
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.registry.longitudinal import (
    Fresh,
    Longitudinal,
    Permanent,
    TwoLayer,
    encode_item,
    permanent_randomness,
)
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.seeded import SeededRandomness

SECRET = bytes(range(SECRET_SIZE))
DIGEST = b"metric"


def test_a_fresh_policy_touches_no_permanent_randomness_and_adds_up() -> None:
    policy = Fresh(GRR("0.5", 4))

    payload = policy.randomize(1, Untouchable(), SeededRandomness(b"fresh"))

    assert policy.oracle.reason(payload) is None
    assert policy.spent_value is None
    assert policy.spent_after(4) == 4 * policy.spent_report


def test_the_collector_folds_the_same_tally_and_debiases_by_the_mixture() -> None:
    policy = TwoLayer(Hadamard("2", 5), "1")
    values = [0] * 3000 + [3] * 1000
    fresh = SeededRandomness(b"fresh")
    rows = [
        policy.randomize(
            v, permanent_randomness(SECRET, i.to_bytes(6, "big"), encode_item(v)), fresh
        )
        for i, v in enumerate(values)
    ]
    column = b"".join(rows)

    checked = policy.mechanism.check(column, np)
    tally = policy.mechanism.tally(checked.payloads, np)

    totals, variances = policy.mechanism.debias(tally, len(values), np)
    errors = (totals - np.array([3000, 0, 0, 1000, 0])) / np.sqrt(variances)
    assert checked.rejected == policy.oracle.check(column, np).rejected == {}
    assert tally.tolist() == policy.oracle.tally(column, np).tolist()
    assert len(tally) == policy.mechanism.tally_size
    assert np.abs(errors).max() < 6.5  # false alarm below 1e-9
    assert policy.mechanism.predict(4000) > policy.oracle.predict(4000)


def test_permanent_randomness_is_shake_256_of_secret_digest_and_value() -> None:
    stream = hashlib.shake_256(SECRET + DIGEST + b"\x00\x00\x00\x07").digest(4000)

    randomness = permanent_randomness(SECRET, DIGEST, encode_item(7))

    drawn = b"".join(randomness.uniform(1 << 64).to_bytes(8, "big") for _ in range(500))
    assert drawn == stream


def test_permanent_randomness_differs_by_secret_metric_and_value() -> None:
    other = bytes(SECRET_SIZE)
    seeds = list(product((SECRET, other), (DIGEST, b"second"), (encode_item(0), encode_item(1))))

    drawn = {permanent_randomness(*seed).uniform(1 << 128) for seed in seeds}

    assert len(drawn) == len(seeds)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_a_secret_of_another_size_is_refused_and_not_shown(size: int) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        permanent_randomness(b"S" * size, DIGEST, b"")

    assert caught.value.name == "secret"
    assert "S" not in str(caught.value)


@pytest.mark.parametrize("policy", [Fresh, Permanent, lambda o: TwoLayer(o, "0.5")])
def test_a_value_outside_the_domain_is_refused_before_any_draw(
    policy: Callable[[FrequencyOracle], Longitudinal],
) -> None:
    for value in (-1, 4, True, None):
        with pytest.raises(InvalidValueError):
            policy(GRR("1", 4)).randomize(value, Untouchable(), Untouchable())  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("epsilon_report", ["1", "1.5", "0", "nan", "-1"])
def test_a_report_epsilon_that_is_not_below_that_of_the_value_is_refused(
    epsilon_report: str,
) -> None:
    with pytest.raises(InvalidParameterError, match=r"^epsilon"):
        TwoLayer(GRR("1", 4), epsilon_report)


class _Impure(GRR):
    pure = False


def test_an_oracle_without_a_pure_channel_has_no_two_layer_policy() -> None:
    with pytest.raises(InvalidParameterError, match=r"^mechanism=grr: has no pure channel"):
        TwoLayer(_Impure("1", 4), "0.5")


def test_the_parameters_of_a_mixture_tell_mixtures_apart() -> None:
    parameters = [
        TwoLayer(SubsetSelection("4", 9), part).mechanism.parameters for part in ("0.5", "1", "2")
    ]

    assert all(a["kept"] < b["kept"] for a, b in pairwise(parameters))
    assert all("subset_size" in each for each in parameters)


def test_every_policy_says_in_one_sentence_what_it_reveals() -> None:
    policies: list[type[Longitudinal]] = [Fresh, Permanent, TwoLayer]

    assert [policy.name for policy in policies] == ["fresh", "permanent", "two_layer"]
    assert all(policy.leak.endswith(".") and policy.leak.count(". ") == 0 for policy in policies)


def test_a_failing_source_gives_no_report() -> None:
    def fail(count: int) -> bytes:
        raise OSError

    with pytest.raises(OSError, match="no report was made"):
        TwoLayer(GRR("1", 4), "0.5").randomize(0, Untouchable(), ByteRandomness(fail))
