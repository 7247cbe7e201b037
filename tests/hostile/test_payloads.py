"""Invalid payloads of every mechanism: each refused for its own reason, none counted.

The reasons come from the layout of the payloads as the docs tell it, not from ``check``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest

from client_sdk.mechanisms import Mechanism, names
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.wire.reports import Column
from collector.core.catalog import Catalog
from collector.estimation.tally import check_column
from collector.intake.validation import judge
from collector.intake.wire import Upload
from tests.support.crowds.uploads import TODAY, UPLOAD_ID, registry
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.enumeration.vectors import build, read, values_of

Make: TypeAlias = Callable[[Any, random.Random], bytes]  # (mechanism, chance) -> payload
Kind: TypeAlias = tuple[Callable[[Any], bool], Make]  # whether there are such payloads, and one


def kinds(name: str, mechanism: Mechanism[Any]) -> dict[str, Make]:
    """Return how to make an invalid payload of *mechanism*, by the reason it must get.

    Empty if every string of ``payload_size`` bytes is a report that some value gives.
    """
    return {
        reason: make
        for reason, (possible, make) in _KINDS.get(name, {}).items()
        if possible(mechanism)
    }


def known() -> Iterator[tuple[str, str]]:
    """Yield every mechanism and reason that this file knows."""
    for name, reasons in _KINDS.items():
        for reason in reasons:
            yield name, reason


def _number(bound: str) -> Kind:
    """Return how to make a big-endian number from attribute *bound* on."""

    def make(mechanism: Any, chance: random.Random) -> bytes:
        size = int(mechanism.payload_size)
        least, end = int(getattr(mechanism, bound)), 256**size
        # half of them close to the bound, where a comparison is wrong by one
        top = min(end, least + 3) if chance.random() < 0.5 else end
        return chance.randrange(least, top).to_bytes(size, "big")

    return (lambda m: getattr(m, bound) < 256**m.payload_size), make


def _spare(bits: Callable[[Any], int]) -> Kind:
    """Return how to set some of the bits after the last of *bits* in the last byte."""

    def make(mechanism: Any, chance: random.Random) -> bytes:
        spare = -bits(mechanism) % 8
        good = bytearray(_honest(mechanism, chance))
        good[-1] |= chance.randrange(1, 1 << spare)
        return bytes(good)

    return (lambda m: bits(m) % 8 != 0), make


def _honest(mechanism: Any, chance: random.Random) -> bytes:
    """Return random bytes, valid but for what the caller changes: built field by field."""
    name = type(mechanism).name
    if name == "cms":
        row = chance.randrange(mechanism.rows)
        return row.to_bytes(4, "big") + _bits(mechanism.columns, chance)
    if name == "rappor":
        return bytes([chance.randrange(mechanism.cohorts)]) + _bits(mechanism.bits, chance)
    if name == "pckv_ue":
        size = int(mechanism.domain_size)
        shown, signs = chance.getrandbits(size), chance.getrandbits(size)
        bits = (shown & signs) << size | (shown & ~signs)
        return (bits << -2 * size % 8).to_bytes((2 * size + 7) // 8, "big")
    return _bits(_width(mechanism), chance)


def _bits(width: int, chance: random.Random) -> bytes:
    return (chance.getrandbits(width) << -width % 8).to_bytes((width + 7) // 8, "big")


def _width(mechanism: Any) -> int:
    """Return how many bits a report has: one a symbol for sets, else one an item."""
    encoder = getattr(mechanism, "encoder", None)
    return int(encoder.domain_size if encoder is not None else mechanism.domain_size)


def _row_beyond(mechanism: Any, chance: random.Random) -> bytes:
    row = chance.choice((mechanism.rows, (1 << 32) - 1, chance.randrange(mechanism.rows, 1 << 32)))
    return int(row).to_bytes(4, "big") + _honest(mechanism, chance)[4:]


def _cohort_beyond(mechanism: Any, chance: random.Random) -> bytes:
    return bytes([chance.randrange(mechanism.cohorts, 256)]) + _honest(mechanism, chance)[1:]


def _coefficient_beyond(mechanism: Any, chance: random.Random) -> bytes:
    coefficients = [chance.randrange(mechanism.prime) for _ in range(mechanism.pad + 1)]
    beyond = chance.randrange(mechanism.prime, 1 << mechanism.bits)
    coefficients[chance.randrange(len(coefficients))] = beyond
    return bytes(mechanism.pack(coefficients))


def _both_signs(mechanism: Any, chance: random.Random) -> bytes:
    size = mechanism.domain_size
    key = chance.randrange(size)
    bits = (1 << key | 1 << key + size) << -2 * size % 8
    held = int.from_bytes(_honest(mechanism, chance), "big")
    return int(held | bits).to_bytes(mechanism.payload_size, "big")


def _cells(mechanism: Any, items: list[int], chance: random.Random) -> bytes:
    width = mechanism.payload_size // mechanism.sampled
    cells = (2 * item + chance.getrandbits(1) for item in items)
    return b"".join(cell.to_bytes(width, "big") for cell in cells)


def _has_more_items(mechanism: Any) -> bool:
    """Whether the cells have room for an item that is none."""
    width = mechanism.payload_size // mechanism.sampled
    return bool(mechanism.domain_size < 256**width // 2)


def _item_beyond(mechanism: Any, chance: random.Random) -> bytes:
    width = mechanism.payload_size // mechanism.sampled
    items = sorted(chance.sample(range(mechanism.domain_size), mechanism.sampled))
    items[-1] = chance.randrange(mechanism.domain_size, 256**width // 2)
    return _cells(mechanism, items, chance)


def _not_rising(mechanism: Any, chance: random.Random) -> bytes:
    items = sorted(chance.sample(range(mechanism.domain_size), mechanism.sampled))
    place = chance.randrange(len(items) - 1)
    items[place + 1] = chance.choice((items[place], chance.randint(0, items[place])))
    return _cells(mechanism, items, chance)


def _wrong_size(mechanism: Any, chance: random.Random) -> bytes:
    size, right = mechanism.domain_size, mechanism.subset_size
    near = [n for n in (right - 1, right + 1) if 0 <= n <= size]
    wrong = chance.choice([*near, *(n for n in range(size + 1) if n != right)])
    bits = sum(1 << item for item in chance.sample(range(size), wrong))
    return int(bits << -size % 8).to_bytes(mechanism.payload_size, "big")


def _always(_: Any) -> bool:
    return True


def _items(mechanism: Any) -> int:
    return int(mechanism.domain_size)


def _is_ranked(mechanism: Any) -> bool:
    return bool(mechanism.is_ranked)


def _only(condition: Callable[[Any], bool], kind: Kind) -> Kind:
    """Return *kind* where *condition* holds too."""
    possible, make = kind
    return (lambda m: condition(m) and possible(m)), make


def _unary(mechanism: Any) -> bool:
    return bool(mechanism.unary)


_NUMBER: Final = {"number_out_of_range": _number("payload_count")}
_ITEM: Final = {"item_out_of_range": _number("payload_count")}
_ROW: Final = {"row_out_of_range": _number("payload_count")}
_SEED: Final = {"seed_out_of_range": _number("payload_count")}
_BITS: Final = {"bits_beyond_domain": _spare(_items)}
_KINDS: Final[dict[str, dict[str, Kind]]] = {
    "block_design": {"block_out_of_range": _number("payload_count")},
    "cms": {
        "row_out_of_range": (_always, _row_beyond),
        "bits_beyond_row": _spare(lambda m: int(m.columns)),
    },
    "cover": {"set_out_of_range": _number("payload_count")},
    "dbitflip": {
        "item_out_of_range": (_has_more_items, _item_beyond),
        "items_not_rising": (lambda m: m.sampled > 1, _not_rising),
    },
    "discrete_gaussian": _NUMBER,
    "discrete_laplace": _NUMBER,
    "duchi": _NUMBER,
    "exponential": _ITEM,
    "grr": _ITEM,
    "hadamard": _ROW,
    "hcms": _ROW,
    "hierarchy": _ROW,
    "hybrid": _NUMBER,
    "loloha": _SEED,
    "minimax": _NUMBER,
    "olh": _SEED,
    "one_bit_mean": _NUMBER,
    "oue": _BITS,
    "padding_sampling": {
        "symbol_out_of_range": _only(lambda m: not m.unary, _number("symbols")),
        "bits_beyond_domain": _only(_unary, _spare(_width)),
    },
    "pckv_grr": {"symbol_out_of_range": _number("payload_count")},
    "pckv_ue": {
        "bits_beyond_domain": _spare(lambda m: 2 * int(m.domain_size)),
        "both_signs": (_always, _both_signs),
    },
    "pem": {"group_out_of_range": _number("payload_count")},
    "pgr": {"point_out_of_range": _number("payload_count")},
    "piecewise": _NUMBER,
    "privset": {"coefficient_out_of_range": (_always, _coefficient_beyond)},
    "rappor": {
        "cohort_out_of_range": (lambda m: m.cohorts < 256, _cohort_beyond),
        "bits_beyond_filter": _spare(lambda m: int(m.bits)),
    },
    "sampled_attribute": {"report_out_of_range": _number("payload_count")},
    "sampled_item": {"symbol_out_of_range": _number("payload_count")},
    "square_wave": _NUMBER,
    "subset_selection": {
        "subset_out_of_range": _only(_is_ranked, _number("subsets")),
        "bits_beyond_domain": _only(lambda m: not m.is_ranked, _spare(_items)),
        "subset_of_wrong_size": (lambda m: not m.is_ranked, _wrong_size),
    },
    "sue": _BITS,
}

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
