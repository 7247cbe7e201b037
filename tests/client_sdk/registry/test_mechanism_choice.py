"""Which mechanism auto takes: by error, payload, fold and the size that is expected."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import cast

import pytest

from benchmarks.accuracy.accuracy import GRID_EPSILONS, GRID_SIZES, optimum
from client_sdk.core.errors import InvalidParameterError, UnknownMechanismError
from client_sdk.mechanisms import (
    DistributionMechanism,
    FrequencyOracle,
    ItemMechanism,
    KeyValueMechanism,
    MeanMechanism,
    SetMechanism,
    VectorMechanism,
    load,
    names,
)
from client_sdk.registry import Registry
from client_sdk.registry.encodings import NUMBERS, Family
from client_sdk.registry.keys import AUTO
from client_sdk.registry.metric import Metric
from client_sdk.registry.selection import (
    MAX_AUTO_PAYLOAD,
    MAX_SET_PAYLOAD,
    SAME_ERROR,
    candidates,
    choose,
    choose_policy,
)
from collector.planning.compilation import compiled
from collector.planning.registry_report import compare_mechanisms, pinned
from tests.support.device.registries import NUMBER, SET, file_with


def _able(epsilon: str, size: int) -> list[FrequencyOracle]:
    """Return every frequency oracle for ``auto`` that accepts these parameters."""
    able = []
    for name in names():
        mechanism = load(name)
        if issubclass(mechanism, FrequencyOracle) and mechanism.automatic:
            try:
                able.append(cast("FrequencyOracle", mechanism.fit(epsilon, size, 64)))
            except InvalidParameterError:
                continue
    return able


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "5", "16"])
@pytest.mark.parametrize("size", [2, 3, 8, 64, 65, 500])
def test_auto_takes_an_error_close_to_the_smallest_within_64_bits(epsilon: str, size: int) -> None:
    name, chosen = choose(AUTO, ItemMechanism, epsilon, size)

    able = [m for m in _able(epsilon, size) if m.payload_size <= 8]
    assert chosen.payload_size <= 8
    assert chosen.predict(1) ** 2 <= 1.05 * min(m.predict(1) for m in able) ** 2
    assert name == chosen.name


def _fair(able: list[FrequencyOracle]) -> list[FrequencyOracle]:
    """Return those beside which none folds at less than a quarter for an error within 2 %."""
    return [
        one
        for one in able
        if not any(
            4 * m.fold_steps < one.fold_steps and m.predict(1) <= 1.02 * one.predict(1)
            for m in able
        )
    ]


SIZES = [2, 7, 33, 100, 200, 1_200, 1_468, 5_317, 12_000, 100_000]


@pytest.mark.parametrize(
    ("epsilons", "sizes"),
    [
        pytest.param(GRID_EPSILONS[::20], SIZES, id="coarse"),
        pytest.param(("1", "1.1", "3.45", "4.9", "5.82", "16"), SIZES, id="ties"),
        pytest.param(GRID_EPSILONS, GRID_SIZES, id="whole", marks=pytest.mark.slow),
    ],
)
def test_auto_never_pays_four_folds_for_an_error_within_two_per_cent(
    epsilons: Iterable[str], sizes: Iterable[int]
) -> None:
    """Law: within 1.05 of the optimum's squared error, and of the cheaper fold where errors tie."""
    for epsilon in epsilons:
        for size in sizes:
            _, chosen = choose(AUTO, ItemMechanism, epsilon, size)

            able = [m for m in _able(epsilon, size) if m.payload_size <= 8]
            assert chosen in _fair(able), (epsilon, size)
            assert chosen.predict(1) ** 2 <= 1.05 * optimum(float(epsilon), size), (epsilon, size)


def test_a_choice_by_the_least_error_alone_would_be_noticed() -> None:
    """The planted bug: of 1,200 items at ε = 1 it folds a thousand times as long."""
    able = [m for m in _able("1", 1_200) if m.payload_size <= 8]

    assert min(able, key=lambda m: m.predict(1)) not in _fair(able)


@pytest.mark.parametrize("size", [2, 3, 10, 100, 1_000, 20_000])
@pytest.mark.parametrize(
    ("of_value", "of_report"), [("2", "1"), ("4", "2"), ("3", "0.5"), ("8", "4")]
)
def test_a_report_of_two_layers_errs_as_one_that_is_asked_once(
    of_value: str, of_report: str, size: int
) -> None:
    """Law: at most 1.05 times the least variance of any mechanism of that epsilon."""
    _, policy = choose_policy(AUTO, size, of_report, of_value, {})

    best = min(m.predict(1) for m in _able(of_report, size) if m.payload_size <= 8)
    assert policy.mechanism.predict(1) ** 2 <= 1.05 * best**2
    assert policy.mechanism.spent <= policy.mechanism.epsilon
    assert policy.spent_value <= Fraction(of_value)


@pytest.mark.parametrize("name", ["grr", "subset_selection", "olh", "pgr", "loloha"])
def test_a_mechanism_that_is_named_for_two_layers_is_fitted_to_what_a_report_shows(
    name: str,
) -> None:
    _, policy = choose_policy(name, 30, "1", "2", {})

    once = choose(name, ItemMechanism, "1", 30)[1]
    assert {**once.parameters, "kept": 0} == {**policy.mechanism.parameters, "kept": 0}


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize("size", [2, 10, 300, 2000])
def test_of_errors_as_good_as_equal_auto_takes_the_shortest_payload_then_the_cheapest_fold(
    epsilon: str, size: int
) -> None:
    name, chosen = choose(AUTO, ItemMechanism, epsilon, size)

    able = [m for m in _able(epsilon, size) if m.payload_size <= 8]
    near = [m for m in _fair(able) if not m.spare]
    least = min(m.predict(1) for m in near)
    near = [m for m in near if m.predict(1) <= SAME_ERROR * least]
    assert name in {m.name for m in near}
    assert chosen.payload_size == min(m.payload_size for m in near)
    shortest = [m for m in near if m.payload_size == chosen.payload_size]
    assert chosen.fold_steps == min(m.fold_steps for m in shortest)


@pytest.mark.parametrize(
    ("family", "epsilon", "size", "fixed", "name"),
    [
        *((VectorMechanism, e, 12, {"cube": 1}, "sampled_number") for e in ("0.1", "1", "1.5")),
        *((VectorMechanism, e, 12, {"cube": 1}, "codebook") for e in ("2", "4", "8")),
        *((VectorMechanism, e, 12, {"cube": 0}, "codebook") for e in ("0.1", "1", "4", "8")),
        *((SetMechanism, e, 1_000, {"pad": 4}, "privset") for e in ("0.5", "1", "2", "4")),
        *((SetMechanism, e, 3_340, {"pad": 6}, "privset") for e in ("0.5", "4")),
        *((SetMechanism, e, 5_000, {"pad": 16}, "privset") for e in ("0.5", "4")),
        *((SetMechanism, e, 5_000, {}, "sampled_item") for e in ("0.1", "1", "8")),
        (SetMechanism, "1", 5, {"pad": 4}, "sampled_item"),
        (SetMechanism, "1", 3_340, {"pad": 3_000}, "sampled_item"),
        (KeyValueMechanism, "1", 3, {"pad": 2, "top": 1}, "pckv_grr"),
        (KeyValueMechanism, "0.5", 16, {"pad": 1, "top": 1}, "pckv_ue"),
        (KeyValueMechanism, "2", 32, {"pad": 1, "top": 1}, "pckv_ue"),
        (KeyValueMechanism, "1", 16, {"pad": 16, "top": 1}, "pckv_grr"),
        (KeyValueMechanism, "1", 100, {"pad": 1, "top": 1}, "pckv_grr"),  # 200 bits are too long
        (ItemMechanism, "9", 63_460, {}, "block_design"),  # all others err more
        (ItemMechanism, "11", 155_672, {}, "block_design"),
        *((NUMBERS, "0.1", size, {}, "duchi") for size in (2, 60_001)),
        *((NUMBERS, e, 60_001, {}, "minimax") for e in ("0.5", "0.7", "1", "2", "4", "8")),
        *((NUMBERS, e, 2, {}, "minimax") for e in ("0.5", "8")),
        *((NUMBERS, "16", size, {}, "piecewise") for size in (2, 11, 60_001)),
    ],
)
def test_auto_takes_the_smallest_predicted_error_that_fits(
    family: Family, epsilon: str, size: int, fixed: dict[str, int], name: str
) -> None:
    """Of those whose privacy is pure, and at the parameters that the metric settles."""
    taken, chosen = choose(AUTO, family, epsilon, size, fixed=fixed)

    limit = MAX_SET_PAYLOAD if family is SetMechanism else MAX_AUTO_PAYLOAD
    fits = [c for c in candidates(family, epsilon, size, fixed=fixed) if c.fits(limit)]
    assert taken == name
    assert chosen.delta == 0
    assert all(chosen.parameters.get(key, number) == number for key, number in fixed.items())
    assert chosen.predict(1) == min(candidate.error for candidate in fits)


def test_candidates_are_listed_by_error() -> None:
    errors = [candidate.error for candidate in candidates(ItemMechanism, "2", 65_537)]

    assert errors == sorted(errors)


def test_a_mechanism_that_is_not_automatic_is_a_candidate_but_never_taken() -> None:
    found = candidates(ItemMechanism, "2", 20)

    by_name_only = [c for c in found if c.mechanism is not None and not c.mechanism.automatic]
    assert by_name_only
    assert not any(candidate.fits(1 << 20) for candidate in by_name_only)


def test_a_candidate_that_refuses_these_parameters_says_why_and_comes_last() -> None:
    last = candidates(ItemMechanism, "2", 65_537)[-1]

    assert last.mechanism is None
    assert last.refusal is not None
    assert last.refusal.name == "domain_size"


def test_a_wanted_mechanism_is_taken_whatever_its_error() -> None:
    name, chosen = choose("grr", ItemMechanism, "0.1", 500)

    assert (name, chosen) == ("grr", load("grr")("0.1", 500))


def test_a_mechanism_of_another_family_is_refused_and_fitting_ones_are_shown() -> None:
    with pytest.raises(InvalidParameterError, match=r"^mechanism=grr: does not fit .*auto, discr"):
        choose("grr", NUMBERS, "1", 10)


def test_an_unknown_mechanism_is_refused_and_fitting_ones_are_shown() -> None:
    known = "known: auto, discrete_gaussian, discrete_laplace"
    with pytest.raises(UnknownMechanismError, match=known):
        choose("magic", NUMBERS, "1", 10)


def test_parameters_that_no_mechanism_accepts_are_refused_by_name() -> None:
    with pytest.raises(InvalidParameterError, match=r"^epsilon=0: "):
        choose(AUTO, ItemMechanism, "0", 10)


def number(**keys: str) -> str:
    return file_with({**NUMBER, "mechanism": '"auto"', **keys})


def test_auto_takes_what_tells_quantiles_where_they_are_to_be_asked() -> None:
    """Law: the digest is that of the mechanism, so the key alone makes no other metric."""
    asked = Registry.from_text(number(ask='["mean", "quantiles"]')).metric("m")
    named = Registry.from_text(number(mechanism='"square_wave"')).metric("m")
    mean, usual = (
        Registry.from_text(text).metric("m") for text in (number(ask='["mean"]'), number())
    )

    assert isinstance(asked.mechanism, DistributionMechanism)
    assert asked.digest == named.digest
    assert isinstance(mean.mechanism, MeanMechanism)
    assert mean.digest == usual.digest != asked.digest


VALUES = json.dumps([f"plugin {i}" for i in range(300)])


def text_with(**changes: str | None) -> str:
    return file_with(SET, **{"values": VALUES, **changes})


def metric_of(**changes: str | None) -> Metric:
    (metric,) = Registry.from_text(text_with(**changes))
    return metric


def test_auto_takes_what_errs_least_with_so_many_items() -> None:
    assert metric_of().mechanism_name == "sampled_item"
    assert metric_of(expected_size="4").mechanism_name == "privset"
    assert metric_of(expected_size="4").mechanism.parameters["pad"] == 4


def test_a_mechanism_that_is_named_takes_it_as_its_slots_or_has_none() -> None:
    padded = metric_of(expected_size="4", mechanism='"padding_sampling"')
    same = metric_of(mechanism='"padding_sampling"', parameters="{ pad = 4 }")

    assert padded.digest == same.digest
    assert metric_of(expected_size="4", mechanism='"sampled_item"').digest == metric_of().digest


def test_the_digest_is_that_of_the_mechanism_as_resolved() -> None:
    resolved = metric_of(expected_size="4")
    parameters = ", ".join(f"{k} = {v}" for k, v in resolved.mechanism.parameters.items())

    named = metric_of(mechanism='"privset"', parameters=f"{{ {parameters} }}")

    assert named.digest == resolved.digest
    assert metric_of(expected_size="5").digest != resolved.digest


def test_the_compiled_registry_is_the_same_metric() -> None:
    (metric,) = Registry.from_text(compiled(Registry.from_text(text_with(expected_size="4"))))

    assert metric.digest == metric_of(expected_size="4").digest
    assert metric.mechanism == metric_of(expected_size="4").mechanism


def test_the_plan_shows_what_is_in_use_as_what_auto_takes() -> None:
    metric = metric_of(expected_size="4")
    lines = list(compare_mechanisms(metric))

    assert lines[1].startswith('  in use: mechanism = "privset"')
    assert lines[2].startswith("  privset: error ")
    assert lines[2].count("; ") == 1
    assert "too long" in "".join(compare_mechanisms(metric, 4))
    assert "pad" not in pinned(metric)
