"""Numbers as texts say them."""

from __future__ import annotations

import pytest

from collector.core.text_tables import above, in_digits


@pytest.mark.parametrize(
    ("number", "text"),
    [(380.4, "380"), (1_234_567, "1,230,000"), (0.0012344, "0.00123"), (0, "0"), (-9.999, "-10")],
)
def test_a_number_has_three_digits_and_no_power_of_ten(number: float, text: str) -> None:
    assert in_digits(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(1.0, "1"), (1.001, "1.01"), (0.0998, "0.0998"), (0.09981, "0.0999")]
)
def test_a_bound_is_never_shown_smaller_than_it_is(number: float, text: str) -> None:
    assert above(number) == text
