"""Metrics that fakes attack: what honest devices hold, which reports gain most, and how much.

*MGA*: the report that gains most; for ``oue`` padded to as many ones as an honest report has, or
*bare*.  *RIA*: the honest report of a chosen value.  *RPA*: any valid report.  *M2GA*: a key at the
largest number, by the report that gains most.

Source: Cao, Jia, Gong, USENIX Security 2021 (MGA, RIA, RPA); Wu, Cao, Jia, Gong, USENIX Security
    2022 (M2GA, and the like of the others for keys with numbers), of which only the abstract was
    looked up.  Gains of sets, keys, numbers and strings are derived, as in
    ``collector.analytics.poisoning.influence``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import fmean
from typing import Any, Final

from benchmarks.accuracy.poisoning import BEST, HONEST, RANDOM, TARGETS, UNPADDED, gain, payloads
from client_sdk.core.randomness import Randomness
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.poisoning.influence import key_mean_reach, mean_reach, weight
from tests.support.device.registries import CATEGORY, KEY_VALUE, NUMBER, SET, STRING, file_with

PER_KEY: Final = 2_000
EARLIER: Final = 5  # days without fakes
ITEMS: Final = 64
TARGET: Final = 60
FEW: Final = 8  # keys with numbers
Fakes = Callable[[Any, str, int, Randomness], bytes]  # by mechanism and attack, so many
Gains = Callable[["Case", str, float], Mapping[str, float | None]]


@dataclass(frozen=True)
class Case:
    """A metric, what its devices hold, and how fakes of it are made and what they should gain."""

    name: str
    text: str  # of the registry
    attacks: Mapping[str, str]  # by their name on the page
    held: Callable[[int], Any]
    fakes: Fakes
    stated: Gains
    measures: tuple[str, ...]  # rows of the answer whose values are added up
    verb: str = "estimate"
    per_key: int = PER_KEY  # honest reports a day under each key, about
    earlier: int = EARLIER

    @cached_property
    def registry(self) -> Registry:
        """The registry of one metric."""
        return Registry.from_text(self.text)

    @property
    def metric(self) -> Metric:
        """The metric."""
        return self.registry.metric("m")

    @property
    def mechanism(self) -> Any:
        """Its mechanism."""
        return self.metric.mechanism


def category(mechanism: str, **attacks: str) -> Case:
    """Return a case of 64 items of which fakes promote four."""

    def stated(case: Case, attack: str, share: float) -> Mapping[str, float | None]:
        held = len(TARGETS) / ITEMS
        return {"share": gain(case.mechanism, attack, len(TARGETS), held, share)}

    return Case(
        mechanism,
        _text(CATEGORY, mechanism, values=_names(ITEMS)),
        {"MGA": BEST, "RIA": HONEST, "RPA": RANDOM, **attacks},
        lambda device: device % ITEMS,
        lambda made, attack, m, chance: payloads(made, attack, TARGETS, m, chance),
        stated,
        tuple(str(item) for item in TARGETS),
    )


def sets(mechanism: str, **fields: str) -> Case:
    """Return a case of sets of one item of 64, of which fakes promote one."""

    def stated(case: Case, attack: str, share: float) -> Mapping[str, float | None]:
        made, held = case.mechanism, 1 / ITEMS
        reach = made.share_reach(TARGET, None)
        if attack == BEST:
            return {"share": weight(reach, share) * (reach.high - held)}
        low, high = reach.low, reach.high
        yes = 1 / 2 if mechanism == "sampled_item" else 1 / made.symbols
        random = low + yes * (high - low)
        return {"share": share * ((1 if attack == HONEST else random) - held)}

    def fakes(made: Any, attack: str, m: int, chance: Randomness) -> bytes:
        if attack == HONEST:
            return b"".join(made.randomize(frozenset({TARGET}), chance) for _ in range(m))
        if mechanism == "sampled_item":
            return _numbered(made, attack, 2 * TARGET + 1, made.payload_count, m, chance)
        return _numbered(made, attack, TARGET, made.symbols, m, chance)

    return Case(
        f"{mechanism}, sets",
        _text(SET, mechanism, values=_names(ITEMS), **fields),
        {"MGA": BEST, "RIA": HONEST, "RPA": RANDOM},
        lambda device: frozenset({device % ITEMS}),
        fakes,
        stated,
        (str(TARGET),),
    )


def key_values(mechanism: str) -> Case:
    """Return a case of eight keys, each held by an eighth at the middle of the range."""
    target = FEW - 1

    def stated(case: Case, attack: str, share: float) -> Mapping[str, float | None]:
        made, held, domain = case.mechanism, 1 / FEW, case.metric.domain.numbers
        if attack != BEST:
            return {"share": share * (1 - held) if attack == HONEST else None, "mean": None}
        assert domain is not None
        reach, beyond = made.share_reach(target, None), key_mean_reach(made, domain, held)
        assert beyond is not None
        return {
            "share": share * (reach.high - held),
            "mean": weight(beyond, share) * (beyond.high - 10),
        }

    def fakes(made: Any, attack: str, m: int, chance: Randomness) -> bytes:
        if attack == HONEST:
            value = {target: Fraction(made.top)}
            return b"".join(made.randomize(value, chance) for _ in range(m))
        if mechanism == "pckv_grr":
            return _numbered(made, attack, target, made.payload_count, m, chance)
        return b"".join(_signs(made, attack, target, chance) for _ in range(m))

    return Case(
        f"{mechanism}, keys with numbers",
        _text(KEY_VALUE, mechanism, values=_names(FEW), most="1"),
        {"M2GA": BEST, "RIA": HONEST, "RPA": RANDOM},
        lambda device: {device % FEW: Fraction(1, 2)},
        fakes,
        stated,
        (str(target),),
        verb="key_values",
    )


def numbers(mechanism: str) -> Case:
    """Return a case of numbers from 0 to 100, of which fakes raise the mean."""

    def stated(case: Case, attack: str, share: float) -> Mapping[str, float | None]:
        reach = mean_reach(case.mechanism, case.metric.domain)
        assert reach is not None
        position = case.mechanism.position
        count = case.mechanism.payload_count
        random = 100 * fmean(float(position(symbol)) for symbol in range(count))
        ends = {BEST: reach.high, HONEST: 100.0, RANDOM: random}
        return {"mean": share * (ends[attack] - 50)}

    def fakes(made: Any, attack: str, m: int, chance: Randomness) -> bytes:
        if attack == HONEST:
            return b"".join(made.randomize(Fraction(made.top), chance) for _ in range(m))
        best = max(range(made.payload_count), key=made.position)
        return _numbered(made, attack, best, made.payload_count, m, chance)

    return Case(
        f"{mechanism}, numbers",
        _text(NUMBER, mechanism, min="0", max="100", step="1"),
        {"MGA": BEST, "RIA": HONEST, "RPA": RANDOM},
        lambda device: Fraction(device % 101),
        fakes,
        stated,
        ("",),
        verb="mean",
    )


def strings() -> Case:
    """Return a case of four words, the rarest held by a tenth, and one that no device holds."""
    words, word = (b"north",) * 4 + (b"south",) * 3 + (b"east",) * 2 + (b"west",), b"fake"

    def stated(case: Case, attack: str, share: float) -> Mapping[str, float | None]:
        p, q = case.mechanism.chances
        return {"share": share * ((1 - q) / (p - q) if attack == BEST else 1)}

    def fakes(made: Any, attack: str, m: int, chance: Randomness) -> bytes:
        if attack == HONEST:
            return b"".join(made.randomize(word, chance) for _ in range(m))
        reports: list[bytes] = []
        while len(reports) < m:
            report = made.randomize(word, chance)
            reports += [report] if made.agrees(report, word) else []
        return b"".join(reports)

    return Case(
        "pem, strings",
        _text(STRING, "pem"),
        {"MGA": BEST, "RIA": HONEST},
        lambda device: words[device % 10],
        fakes,
        stated,
        ("fake",),
        verb="heavy_hitters",
        per_key=8_000,  # of fewer, only words that a seventh or more hold are listed
        earlier=0,  # no check of strings looks at earlier days
    )


def cases() -> tuple[Case, ...]:
    """Return all cases, in the order of the table."""
    return (
        category("grr"),
        category("oue", **{"MGA, bare": UNPADDED}),
        category("olh"),
        category("hadamard"),
        sets("sampled_item"),
        sets("padding_sampling", parameters="{ pad = 4 }"),
        key_values("pckv_ue"),
        key_values("pckv_grr"),
        numbers("duchi"),
        numbers("piecewise"),
        numbers("hybrid"),
        strings(),
    )


def _text(fields: Mapping[str, str], mechanism: str, **changes: str) -> str:
    usual = {"every": '"1d"', "segments": "[]", "mechanism": f'"{mechanism}"'}
    return file_with(dict(fields), **(usual | changes))


def _names(count: int) -> str:
    return json.dumps([str(item) for item in range(count)])


def _numbered(made: Any, attack: str, best: int, count: int, m: int, chance: Randomness) -> bytes:
    """Return payloads that are numbers below *count*: the *best* one always, or any."""
    sent = (best if attack == BEST else chance.uniform(count) for _ in range(m))
    return b"".join(number.to_bytes(made.payload_size, "big") for number in sent)


def _signs(made: Any, attack: str, target: int, chance: Randomness) -> bytes:
    """Return a report of PCKV-UE: plus for the target alone, or any sign or none for each key."""
    size, width = int(made.domain_size), int(made.payload_size)
    signs = [int(key == target) if attack == BEST else chance.uniform(3) for key in range(size)]
    places = (key + size * (sign == 2) for key, sign in enumerate(signs) if sign)
    bits = sum(1 << (2 * size - 1 - place) for place in places)
    return (bits << (8 * width - 2 * size)).to_bytes(width, "big")
