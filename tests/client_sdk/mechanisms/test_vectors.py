"""Vectors: what an SDK in another language must reproduce, and what every collector must refuse."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from client_sdk.mechanisms import Mechanism, RecordMechanism, names
from client_sdk.mechanisms.items.cover import Cover
from client_sdk.mechanisms.numbers._sums import SumReports
from client_sdk.mechanisms.numbers._symbols import MomentReports
from tests.support.enumeration.estimates import TOLERANCE, agree, stated
from tests.support.enumeration.formula import digits
from tests.support.enumeration.make_vectors import regenerate
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import (
    FOLDER,
    Small,
    build,
    every_case,
    every_of,
    grid,
    read,
    textbook,
    values_of,
)
from tests.support.loops import in_turn, per_mechanism
from tests.support.references.cover_reference import weights_of

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


def chances_of(mechanism: Mechanism[Any], known: Iterable[str]) -> dict[str, Fraction]:
    """Return the exact chances that *mechanism* or its channel states under *known* names."""
    channel = getattr(mechanism, "channel", None)
    stated = ((key, getattr(of, key, None)) for key in known for of in (mechanism, channel))
    return {key: chance for key, chance in stated if isinstance(chance, Fraction)}


@every_of(grid)
def test_the_probabilities_are_those_of_the_textbook(small: Small) -> None:
    mechanism, numbers = small.mechanism, textbook(small.name, small.mechanism)
    chances = chances_of(mechanism, numbers)

    for key, chance in chances.items():
        step = (
            Fraction(2, chance.denominator) if key == "coin" else GRID_STEP
        )  # its grid is coarser
        assert abs(chance - Fraction(numbers[key])) < step
    if isinstance(mechanism, RecordMechanism):
        truths = cast("tuple[Fraction, ...]", mechanism.constant_values()["truths"])
        for truth, (_, selection) in zip(truths, mechanism.attributes, strict=True):
            size = selection.parameters["subset_size"]
            held, others = size * Fraction(numbers["odds"]), selection.domain_size - size
            assert abs(truth - held / (held + others)) < GRID_STEP
    elif isinstance(mechanism, Cover):
        inside, outside = weights_of(mechanism.sets, mechanism.domain_size)
        held = inside * Fraction(numbers["odds"])
        assert abs(mechanism.truth - held / (held + outside)) < GRID_STEP
    elif isinstance(mechanism, MomentReports):
        moments = mechanism.moments
        assert float(moments.constant + moments.square / 4) == pytest.approx(float(numbers["end"]))
        assert moments.square in (0, pytest.approx(float(numbers["square"])))
    elif isinstance(mechanism, SumReports):
        assert mechanism.worst_variance == pytest.approx(float(numbers["variance"]))
    else:
        assert chances


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
