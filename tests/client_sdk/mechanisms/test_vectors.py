"""Vectors: what an SDK in another language must reproduce, and what every collector must refuse."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from client_sdk.mechanisms import (
    FrequencyOracle,
    KeyValueMechanism,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
    names,
)
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.numbers._symbols import MomentReports
from client_sdk.mechanisms.numbers.minimax import Minimax
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from tests.support.enumeration.estimates import TOLERANCE, agree, stated
from tests.support.enumeration.formula import digits
from tests.support.enumeration.make_vectors import regenerate
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import (
    FOLDER,
    build,
    every_case,
    every_of,
    grid,
    read,
    textbook,
    values_of,
)
from tests.support.loops import in_turn, per_mechanism

GRID_STEP = Fraction(1, 1 << 120)  # far above one step of the 128-bit grid, far below a float's


def payloads_of(case: dict[str, Any]) -> list[bytes]:
    """Return the payloads that a case expects."""
    return [bytes.fromhex(payload) for payload in case["expected"]["payloads"]]


@pytest.mark.parametrize("name", names())
def test_making_a_vector_file_again_changes_nothing(name: str) -> None:
    assert regenerate(name) == (FOLDER / f"{name}.json").read_text("utf-8")


@pytest.mark.parametrize("name", names())
def test_a_vector_file_is_named_after_its_mechanism_and_has_good_and_bad_payloads(
    name: str,
) -> None:
    vectors = read(name)

    assert (vectors["format"], vectors["mechanism"]) == (1, name)
    assert vectors["cases"]
    assert all(case["bad"] and case["values"] for case in vectors["cases"])


@every_of(grid)
def test_the_probabilities_are_those_of_the_textbook(small: Any) -> None:
    numbers = textbook(small.name, small.mechanism)

    if isinstance(small.mechanism, FrequencyOracle | SetMechanism | TextMechanism):
        channel = small.mechanism.channel
        assert abs(channel.p - Fraction(numbers["p"])) < GRID_STEP
        assert abs(channel.q - Fraction(numbers["q"])) < GRID_STEP
    elif isinstance(small.mechanism, KeyValueMechanism):
        for key, probability in small.mechanism.channel._asdict().items():
            assert abs(probability - Fraction(numbers[key])) < GRID_STEP
    elif isinstance(small.mechanism, RecordMechanism):
        truths = small.mechanism.constant_values()["truths"]
        assert isinstance(truths, tuple)
        for truth, (_, selection) in zip(truths, small.mechanism.attributes, strict=True):
            size = selection.parameters["subset_size"]
            held, others = size * Fraction(numbers["odds"]), selection.domain_size - size
            assert abs(truth - held / (held + others)) < GRID_STEP
    elif isinstance(small.mechanism, VectorMechanism):
        constants = small.mechanism.constant_values()
        assert constants
        for key, probability in constants.items():
            assert isinstance(probability, Fraction)
            step = max(GRID_STEP, Fraction(2, probability.denominator))  # a coin's grid is coarser
            assert abs(probability - Fraction(numbers[key])) < step
    elif isinstance(small.mechanism, Exponential):
        assert abs(small.mechanism.decay - Fraction(numbers["decay"])) < GRID_STEP
    elif isinstance(small.mechanism, SquareWave):
        assert abs(small.mechanism.near - Fraction(numbers["near"])) < GRID_STEP
        assert abs(small.mechanism.far - Fraction(numbers["far"])) < GRID_STEP
    elif isinstance(small.mechanism, Minimax):
        assert abs(small.mechanism.inside - Fraction(numbers["inside"])) < GRID_STEP
    elif isinstance(small.mechanism, MomentReports):
        moments = small.mechanism.moments
        assert float(moments.constant + moments.square / 4) == pytest.approx(float(numbers["end"]))
        assert moments.square in (0, pytest.approx(float(numbers["square"])))
    else:
        assert small.mechanism.worst_variance == pytest.approx(float(numbers["variance"]))


@every_case()
def test_the_textbook_numbers_of_a_case_are_its_formulas_to_30_digits(
    name: str, case: dict[str, Any]
) -> None:
    numbers = textbook(name, build(name, case))

    assert case["expected"]["textbook"] == {key: digits(n, 30) for key, n in numbers.items()}
    for key, probability in case["expected"].get("channel", {}).items():
        assert abs(Fraction(probability) - Fraction(numbers[key])) < GRID_STEP


@every_case()
def test_a_seed_gives_the_payloads_of_the_case(name: str, case: dict[str, Any]) -> None:
    mechanism = build(name, case)
    randomness = SeededRandomness(bytes.fromhex(case["seed"]))

    made = [mechanism.randomize(value, randomness) for value in values_of(mechanism, case)]

    assert made == payloads_of(case)
    assert {len(payload) for payload in made} == {case["expected"]["payload_size"]}


@every_case()
def test_the_payloads_of_a_case_give_its_tally_and_its_textbook_estimates(
    name: str, case: dict[str, Any]
) -> None:
    mechanism, expected = build(name, case), case["expected"]
    payloads = payloads_of(case)

    tally = mechanism.tally(b"".join(payloads), np)
    totals, variances = mechanism.debias(tally, len(payloads), np)

    assert {str(i): tally[i] for i in np.flatnonzero(tally)} == expected["tally"]
    for found, wanted in ((totals, expected["totals"]), (variances, expected["variances"])):
        assert wanted
        assert all(agree(found[int(i)], number) for i, number in wanted.items())


@every_case()
def test_the_bad_payloads_of_a_case_are_refused_for_the_stated_reason(
    name: str, case: dict[str, Any]
) -> None:
    mechanism = build(name, case)

    for bad in case["bad"]:
        payload = bytes.fromhex(bad["payload"])
        assert len(payload) == mechanism.payload_size
        assert mechanism.reason(payload) == bad["reason"]
        assert mechanism.check(payload * 20, np).rejected == {bad["reason"]: 20}


def test_the_readme_explains_every_key_and_states_the_tolerance_of_estimates() -> None:
    """Whoever writes an SDK in another language has the files and this page, nothing else."""
    page = (FOLDER / "README.md").read_text("utf-8")
    files = [read(name) for name in names()]
    of_cases = [case for file in files for case in file["cases"]]
    keys = {key for part in [*files, *of_cases] for key in part}
    keys |= {key for case in of_cases for key in case["expected"]}

    assert all(f"`{key}`" in page for key in keys)
    assert f"at most {TOLERANCE} times".lower() in " ".join(page.split())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("-3.33067048837E-16", "0"),
        ("-0.0829881650736489", "-0.082988165074"),
        ("1.44E+13", "14400000000000"),
        ("16.3279068275123456", "16.3279068275"),
    ],
)
def test_an_estimate_is_stated_without_dust_and_without_an_exponent(number: str, text: str) -> None:
    assert stated(Decimal(number)) == text


@pytest.mark.parametrize("wanted", ["0", "8.16597633015", "14400000000000"])
def test_an_estimate_off_by_more_than_the_tolerance_is_not_the_stated_one(wanted: str) -> None:
    unit = max(abs(float(wanted)), 1.0)

    assert agree(float(wanted) + 0.9e-9 * unit, wanted)
    assert not agree(float(wanted) + 1.1e-9 * unit, wanted)


def test_a_loop_over_cases_fails_at_the_first_that_breaks_the_law_and_names_it() -> None:
    tried: list[int] = []

    def law(number: int) -> None:
        tried.append(number)
        assert number != 2

    with pytest.raises(AssertionError) as failure:
        in_turn("number", [1, 2, 3])(law)()

    assert tried == [1, 2]
    assert failure.value.__notes__ == ["case: 2"]


def test_a_law_of_a_mechanism_without_a_case_fails() -> None:
    def law(case: object) -> None:
        raise AssertionError("there is no case")

    loop = per_mechanism("case", lambda _: [])(law)

    with pytest.raises(AssertionError, match="holds nothing"):
        loop("grr", 1)
