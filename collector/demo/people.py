"""The people of the demo, drawn from published counts.  Pure but for reading them."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain, repeat
from typing import Final, TypeVar

T = TypeVar("T")

HOUSEHOLDS: Final[Mapping[str, str]] = {  # by the marital status of the census
    "Married-civ-spouse": "married",
    "Married-AF-spouse": "married",
    "Married-spouse-absent": "married",
    "Never-married": "never married",
    "Divorced": "no longer married",
    "Separated": "no longer married",
    "Widowed": "no longer married",
}
MOST_VIEWS: Final = 21  # pages; it stands for as many and more, as in the registry
INCOMES: Final = ("up to 50K", "over 50K")
PLATFORMS: Final = ("desktop", "phone", "tablet")
VERSIONS: Final = ("4.8", "4.9")
# Invented, like all that is said of platforms and versions, since the surveys knew neither: who
# leaves after one page is on a phone more often, so that a comparison finds a difference.
_LEAVING: Final = (0.35, 0.55, 0.10)  # of the platforms, for who leaves after one page
_STAYING: Final = (0.60, 0.28, 0.12)
_NEWEST: Final = 0.92  # of today's visitors that have the new version
_A_DAY: Final = 0.065  # by how much that was less on each day before


@dataclass(frozen=True)
class Person:
    """Somebody with a device: the true value of each metric, and what is public of the device."""

    values: Mapping[str, object]
    segment: Mapping[str, str]


def population(devices: int, chance: random.Random, days_ago: int = 0) -> list[Person]:
    """Draw *devices* people without replacement from the shipped counts, as far as these reach.

    The first page, the number of pages, and age and income come from different surveys, so they
    are paired at random; each keeps its own distribution.  The household is drawn from the people
    of the same income.

    Args: days_ago: of the visit; it decides how many have the new version.
    """
    newest = max(0.0, _NEWEST - _A_DAY * days_ago)
    pages = _draw(_counts("first_page.csv"), devices, chance)
    views = _draw(_counts("page_views.csv"), devices, chance)
    persons = _draw(_counts("age_income.csv"), devices, chance)
    drawn = zip(pages, views, persons, strict=True)
    return [
        _person(page, int(seen), int(age), rich == "true", newest, chance)
        for (page,), (seen,), (age, rich) in drawn
    ]


def _person(
    page: str, seen: int, age: int, rich: bool, newest: float, chance: random.Random
) -> Person:
    """Return one with a household and a device."""
    statuses, weights = _households(rich)
    (marital,) = chance.choices(statuses, weights)
    (platform,) = chance.choices(PLATFORMS, _LEAVING if seen == 1 else _STAYING)
    return Person(
        {
            "first_page": page,
            "one_page": seen == 1,
            "page_views": min(seen, MOST_VIEWS),
            "income_over_50k": rich,
            "age": age,
            "household": {"marital": HOUSEHOLDS[marital], "income": INCOMES[rich]},
        },
        {"platform": platform, "version": VERSIONS[chance.random() < newest]},
    )


def _draw(counts: Mapping[T, int], k: int, chance: random.Random) -> list[T]:
    """Draw *k* holders without replacement; beyond the whole population it is used again."""
    values, weights = list(counts), list(counts.values())
    total = sum(weights)
    whole, rest = divmod(k, total)
    drawn = chance.sample(values, rest, counts=weights)
    everybody: Iterator[T] = chain.from_iterable(map(repeat, values, weights))
    drawn += list(everybody) * whole
    chance.shuffle(drawn)
    return drawn


@cache
def _households(rich: bool) -> tuple[list[str], list[int]]:
    """Return the marital statuses of an income, and how many people have each."""
    income = ">50K" if rich else "<=50K"
    counts = {
        names[0]: n for names, n in _counts("marital_income.csv").items() if names[1] == income
    }
    return list(counts), list(counts.values())


@cache
def _counts(name: str) -> dict[tuple[str, ...], int]:
    """Return how many people have each combination: the last column of a file counts them."""
    text = (files("collector.demo") / "data" / name).read_text(encoding="utf-8")
    lines = csv.reader(text.splitlines()[1:])
    return {tuple(values): int(count) for *values, count in lines}
