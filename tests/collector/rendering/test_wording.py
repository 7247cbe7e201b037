"""Dimensions in words: a yes, the others, stretches of days; and what is left as it is."""

from __future__ import annotations

import pytest

from collector.analytics.rows import AGAINST, REST, empty_row
from collector.rendering.wording import days_in_words, worded


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["2026-11-10/2026-11-16"], ["10 to 16 Nov"]),
        (["2026-10-28/2026-11-03"], ["28 Oct to 3 Nov"]),
        (
            ["2026-11-10/2026-11-16", "2025-11-10/2025-11-16"],
            ["10 to 16 Nov 2026", "10 to 16 Nov 2025"],
        ),
        (["2025-12-29/2026-01-04"], ["29 Dec 2025 to 4 Jan 2026"]),
        (["2026-11-16", "2026-11-10/2026-11-12"], ["16 Nov", "10 to 12 Nov"]),
    ],
)
def test_stretches_of_days_are_words(labels: list[str], words: list[str]) -> None:
    assert [days_in_words(labels)[label] for label in labels] == words


@pytest.mark.parametrize(
    "label", ["2026-11-16", "input/output", "2026-01-05T07:00Z/2026-01-05T09:00Z"]
)
def test_days_alone_hours_and_other_labels_stay(label: str) -> None:
    assert days_in_words([label]) == {}


def test_a_boolean_says_yes_and_a_list_that_has_true_in_it_does_not() -> None:
    rows = [empty_row({"item": "true", AGAINST: REST}, 0, 0.05, "share", "too few")]

    assert worded(rows, is_boolean=True)[0].dimensions == {"item": "yes", AGAINST: "the others"}
    assert worded(rows)[0].dimensions == {"item": "true", AGAINST: "the others"}
    assert rows[0].dimensions == {"item": "true", AGAINST: REST}
