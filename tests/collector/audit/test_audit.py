"""An audit refutes a mechanism that tells more than it claims, and no honest one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from math import log
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from client_sdk.core.errors import InvalidParameterError
from client_sdk.core.randomness import Randomness, system_randomness
from client_sdk.mechanisms import Channel, Mechanism, load, names
from client_sdk.mechanisms.composite.padding_sampling import PaddingSampling
from client_sdk.mechanisms.composite.pckv_grr import PCKVGRR
from client_sdk.mechanisms.composite.pckv_ue import PCKVUE
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from client_sdk.mechanisms.items.exponential import Exponential
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.audit.audit import FAILS, HOLDS, LOOSE_VERDICT, audit, lower_bound, run
from collector.audit.cases import cases_of
from collector.cli import main
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.seeded import SeededRandomness

DRAWS = 4_000  # a side; honest mechanisms only, so no power is needed


class _TenPercentMore(GRR):
    """Planted fault: the coin of 1.1 ε."""

    @cached_property
    def more(self) -> GRR:
        return GRR(self.epsilon * Fraction(11, 10), self.domain_size)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return self.more.randomize(value, randomness)


class _TwiceTheEpsilon(GRR):
    """Planted fault: the coin of 2 ε."""

    @cached_property
    def twice(self) -> GRR:
        return GRR(2 * self.epsilon, self.domain_size)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return self.twice.randomize(value, randomness)


class _HalfTheNoise(DiscreteLaplace):
    """Planted fault: the scale of 2 ε."""

    @cached_property
    def noisy(self) -> DiscreteLaplace:
        return DiscreteLaplace(2 * self.epsilon, self.domain_size)

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        position = int(self.noisy.decode(self.noisy.randomize(value, randomness)))
        return (position + self.margin).to_bytes(self.payload_size, "big")


class _TwiceTheDecay(Exponential):
    """Planted fault: the table of weights of 2 ε, beside the law of ε."""

    @cached_property
    def twice(self) -> Exponential:
        return Exponential(2 * self.epsilon, self.domain_size)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return self.twice.randomize(value, randomness)


class _TwiceTheStep(SquareWave):
    """Planted fault: the step of 2 ε over the window of ε."""

    @cached_property
    def higher(self) -> SquareWave:
        return SquareWave(2 * self.epsilon, self.domain_size, reach=self.reach)

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        return self.higher.randomize(value, randomness)


class _SetOfTwiceTheEpsilon(PaddingSampling):
    """Planted fault: the coin of 2 ε."""

    @cached_property
    def twice(self) -> PaddingSampling:
        own = {"pad": self.pad, "unary": self.unary}
        return PaddingSampling(2 * self.epsilon, self.domain_size, **own)

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        return self.twice.randomize(value, randomness)


class _SetWithoutPadding(PaddingSampling):
    """Planted fault: one of the items is always drawn, by the coin that padding pays for."""

    @cached_property
    def narrow(self) -> PaddingSampling:
        narrow = PaddingSampling(self.epsilon, self.domain_size, pad=1, unary=0)
        object.__setattr__(narrow, "symbol_channel", self.symbol_channel)
        return narrow

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        filled = sorted(value) * self.pad
        drawn = frozenset({filled[randomness.uniform(len(filled))]})
        return self.narrow.randomize(drawn, randomness)


class _AnswerOfTwiceTheEpsilon(SampledItem):
    """Planted fault: the answer about the drawn item is told by the coin of 2 ε."""

    @cached_property
    def twice(self) -> SampledItem:
        return SampledItem(2 * self.epsilon, self.domain_size)

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        return self.twice.randomize(value, randomness)


class _SignOfTwiceTheEpsilon(PCKVUE):
    """Planted fault: the sign is kept by the coin of 2 ε."""

    @cached_property
    def wrong(self) -> PCKVUE:
        wrong = PCKVUE(self.epsilon, self.domain_size, pad=self.pad, top=self.top)
        object.__setattr__(wrong, "kept", PCKVUE(2 * self.epsilon, self.domain_size).kept)
        return wrong

    def randomize(self, value: Mapping[int, Fraction], randomness: Randomness) -> bytes:
        return self.wrong.randomize(value, randomness)


class _PairsWithoutPadding(PCKVGRR):
    """Planted fault: a held pair is always drawn, by the coin that padding pays for."""

    @cached_property
    def plain(self) -> PCKVGRR:
        return PCKVGRR(self.epsilon, self.domain_size, pad=1, top=self.top)

    def draw_pair(self, value: Mapping[int, Fraction], randomness: Randomness) -> tuple[int, bool]:
        return self.plain.draw_pair(value, randomness)


class _HalfTheEpsilon(GRR):
    """Planted waste: the coin of ε / 2."""

    @cached_property
    def channel(self) -> Channel:
        return GRR(self.epsilon / 2, self.domain_size).channel


def audited(mechanism: Mechanism[Any], draws: int = DRAWS) -> str:
    return audit(mechanism, system_randomness(), draws).verdict


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_an_honest_mechanism_holds_its_claim(name: str, epsilon: str) -> None:
    assert audited(load(name)(epsilon, 5)) != FAILS


@pytest.mark.parametrize("mechanism", [GRR("1", 2), DiscreteLaplace("1", 9)], ids=repr)
def test_a_mechanism_as_noisy_as_it_claims_is_not_called_loose(mechanism: Mechanism[Any]) -> None:
    assert audited(mechanism) == HOLDS


def test_ten_percent_more_epsilon_than_claimed_is_found() -> None:
    assert audited(_TenPercentMore("1", 2), draws=200_000) == FAILS


def test_laplace_noise_of_half_the_scale_is_found() -> None:
    assert audited(_HalfTheNoise("1", 5), draws=20_000) == FAILS


@pytest.mark.parametrize(
    "planted",
    [
        *(_SetOfTwiceTheEpsilon("1", 5), _SetWithoutPadding("1", 5)),
        _AnswerOfTwiceTheEpsilon("1", 5),
        *(_SignOfTwiceTheEpsilon("1", 5, pad=1), _PairsWithoutPadding("1", 5, pad=3)),
    ],
    ids=repr,
)
def test_a_set_or_key_value_mechanism_that_tells_more_than_it_claims_is_found(
    planted: Mechanism[Any],
) -> None:
    """The events of sets and pairs see a coin of 2 ε, and sampling without its padding."""
    assert audited(planted, draws=10_000) == FAILS


@pytest.mark.parametrize("planted", [_TwiceTheDecay("1", 5), _TwiceTheStep("1", 5)], ids=repr)
def test_drawing_by_another_law_than_the_stated_one_is_found(planted: Mechanism[Any]) -> None:
    assert audited(planted, draws=20_000) == FAILS


@pytest.mark.parametrize("name", ["exponential", "square_wave"])
@pytest.mark.parametrize("seed", [b"0", b"1", b"2", b"3"])
def test_the_event_of_a_stated_law_lies_in_the_half_nearer_to_the_likely_value(
    name: str, seed: bytes
) -> None:
    mechanism = load(name)("1", 16)
    (case,) = cases_of(mechanism, SeededRandomness(seed), 1)
    middle = (mechanism.tally_size - 1) / 2

    telling = [symbol for symbol in range(mechanism.tally_size) if case.event(bytes([symbol]))]

    assert telling
    assert all((symbol < middle) == (case.likely == 0) for symbol in telling)


def test_noise_beyond_what_epsilon_needs_is_told() -> None:
    assert audited(_HalfTheEpsilon("2", 2), draws=20_000) == LOOSE_VERDICT


@pytest.mark.parametrize("name", names())
def test_every_family_has_an_event_that_its_two_values_tell_apart(name: str) -> None:
    mechanism = load(name)("8", 5)
    (case,) = cases_of(mechanism, system_randomness(), 1)

    likely, unlikely = (
        sum(case.event(mechanism.randomize(value, system_randomness())) for _ in range(1_000))
        for value in (case.likely, case.unlikely)
    )

    assert likely > unlikely + 30


@pytest.mark.parametrize(("likely", "unlikely"), [(0, 0), (0, 500), (300, 300), (20, 10)])
def test_hits_that_show_nothing_bound_epsilon_by_zero(likely: int, unlikely: int) -> None:
    assert lower_bound(likely, unlikely, 1_000) == 0


def test_the_bound_closes_in_on_the_logarithm_of_the_ratio() -> None:
    bounds = [lower_bound(n * 3 // 4, n // 4, n) for n in (1_000, 100_000, 10_000_000)]

    assert bounds == sorted(bounds)
    assert log(3) * 0.99 < bounds[-1] < log(3)


def test_too_few_draws_are_refused_before_any() -> None:
    with pytest.raises(InvalidParameterError, match="draws=999"):
        audit(GRR("1", 2), Untouchable(), 999)
    with pytest.raises(InvalidParameterError, match="pairs=0"):
        audit(GRR("1", 2), Untouchable(), 1_000, 0)


@pytest.mark.parametrize(("planted", "status"), [(GRR, 0), (_TwiceTheEpsilon, 1)])
def test_the_exit_status_says_whether_a_claim_failed(planted: type[GRR], status: int) -> None:
    shown: list[str] = []

    assert run([planted("1", 2)], 10_000, False, shown.append) == status
    assert (FAILS in "\n".join(shown)) is bool(status)


def test_a_mechanism_of_no_known_family_is_refused_by_name() -> None:
    """A family that nobody wrote an event for cannot pass as audited."""
    stranger = cast("Mechanism[Any]", SimpleNamespace(name="stranger", domain_size=2))

    with pytest.raises(InvalidParameterError, match=r"^mechanism=stranger: has no event"):
        cases_of(stranger, SeededRandomness(b""), 1)


def test_the_command_prints_one_json_document() -> None:
    arguments = ["audit", "--mechanism", "grr", "--draws", "2000", "--json"]

    result = CliRunner().invoke(main, arguments)

    document = json.loads(result.output)
    assert result.exit_code == 0
    assert document["alpha"] == 1e-9
    assert [a["mechanism"] for a in document["audits"]] == ["grr"]
    assert document["audits"][0]["lower_bound"] <= document["audits"][0]["epsilon"] == 1.0


def test_the_command_names_a_mechanism_that_is_not_there() -> None:
    result = CliRunner().invoke(main, ["audit", "--mechanism", "nonesuch"])

    assert result.exit_code == 1
    assert "nonesuch" in result.output
