"""Invalid payloads of every mechanism: each refused for its own reason, none counted."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final

import pytest

from client_sdk.core.wire import Column
from client_sdk.mechanisms import Mechanism, names
from client_sdk.mechanisms.items.grr import GRR
from collector.core.catalog import Catalog
from collector.estimation.tally import check_column
from collector.intake.validation import judge
from collector.intake.wire import Upload
from tests.support.crowds.uploads import TODAY, UPLOAD_ID, registry
from tests.support.enumeration.invalid_payloads import kinds, known
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import build, read, values_of

INVALID: Final = 10_000  # payloads of a mechanism
HONEST: Final = 30  # honest ones among them


def mixed(
    name: str, case: dict[str, Any], invalid: int
) -> tuple[Mechanism[Any], list[tuple[bytes, str | None]]]:
    """Return a mechanism and payloads of it, in random order, each with the reason it must get."""
    mechanism, chance = build(name, case), random.Random(f"{name}{invalid}")
    randomness, values = SeededRandomness(b"honest"), values_of(mechanism, case)
    rows: list[tuple[bytes, str | None]] = [
        (mechanism.randomize(values[i % len(values)], randomness), None) for i in range(HONEST)
    ]
    possible = list(kinds(name, mechanism).items())
    for i in range(invalid if possible else 0):
        reason, make = possible[i % len(possible)]
        rows.append((make(mechanism, chance), reason))
    chance.shuffle(rows)
    return mechanism, rows


@pytest.mark.parametrize("name", names())
def test_every_invalid_payload_is_refused_for_its_reason_and_every_honest_one_kept(
    name: str,
) -> None:
    """Alone and in a column of all: the same verdict, and what is kept keeps its order."""
    vectors = read(name)["cases"]
    seen: Counter[str] = Counter()
    for case in vectors:
        mechanism, rows = mixed(name, case, -(-INVALID // len(vectors)))

        alone = [mechanism.reason(payload) for payload, _ in rows]
        together = check_column(mechanism, b"".join(payload for payload, _ in rows))

        expected = Counter(reason for _, reason in rows if reason)
        assert alone == [reason for _, reason in rows]
        assert together.payloads == b"".join(p for p, reason in rows if reason is None)
        assert Counter(together.rejected) == expected
        seen += expected

    assert set(seen) == {reason for its, reason in known() if its == name}


def test_the_payloads_of_most_mechanisms_are_bent() -> None:
    """A new mechanism is two files, so it may be missing here; conformance tries its bytes too."""
    assert len({name for name, _ in known()}) > 20


@pytest.mark.parametrize("extra", [1, 2, 7])
def test_a_column_that_is_not_whole_is_refused_whole(extra: int) -> None:
    """Where a report begins, nobody can say."""
    age = registry().metric("age")
    size = age.mechanism.payload_size
    column = Column(age.digest, TODAY, bytes(size * 3 + extra % size))

    verdict = judge(Upload(UPLOAD_ID, TODAY, {}, (column,)), Catalog([registry()]), TODAY)

    rejected = [(one.reason, one.count) for one in verdict.rejected]
    assert rejected == ([("payload_size", 4)] if extra % size else [])
    assert verdict.reports == (0 if extra % size else 3)


class _Lenient(GRR):
    """Planted fault: the first item beyond the domain is let through."""

    def reason(self, payload: bytes) -> str | None:
        number = int.from_bytes(payload, "big")
        return None if number <= self.domain_size else self.beyond


def test_a_check_that_is_wrong_by_one_would_be_seen() -> None:
    """The control: payloads close to the bound are among those that are tried."""
    lenient, chance = _Lenient("1", 1_000), random.Random("control")
    make = kinds("grr", lenient)["item_out_of_range"]

    let_through = [p for p in (make(lenient, chance) for _ in range(100)) if not lenient.reason(p)]

    assert let_through
