"""An audit refutes a mechanism that tells more than it claims, and no honest one."""

from __future__ import annotations

import json
from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from math import exp, log, sqrt
from types import SimpleNamespace
from typing import Any, TypeVar, cast

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
from collector.audit.audit import (
    FAILS,
    HOLDS,
    LOOSE_VERDICT,
    NOTHING,
    audit,
    cases_of,
    lower_bound,
    run,
)
from collector.cli import main
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.seeded import SeededRandomness

DRAWS = 4_000  # a side; honest mechanisms only, so no power is needed


M = TypeVar("M", bound=Mechanism[Any])


def sending(claimed: M, other: Mechanism[Any]) -> M:
    """Return what says that it is *claimed*, with a planted fault: its reports are of *other*."""
    object.__setattr__(claimed, "randomize", other.randomize)
    return claimed


class _HalfTheNoise(DiscreteLaplace):
    """Planted fault: the scale of 2 ε."""

    @cached_property
    def noisy(self) -> DiscreteLaplace:
        return DiscreteLaplace(2 * self.epsilon, self.domain_size)

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        position = int(self.noisy.decode(self.noisy.randomize(value, randomness)))
        return (position + self.margin).to_bytes(self.payload_size, "big")


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


class _HalfTheEpsilon(GRR):
    """Planted waste: the coin of ε / 2."""

    @cached_property
    def channel(self) -> Channel:
        return GRR(self.epsilon / 2, self.domain_size).channel


def twice_the_sign() -> PCKVUE:
    """Planted fault: the sign is kept by the coin of 2 ε."""
    planted = PCKVUE("1", 5, pad=1)
    object.__setattr__(planted, "kept", PCKVUE("2", 5).kept)
    return sending(PCKVUE("1", 5, pad=1), planted)


def without_padding() -> PCKVGRR:
    """Planted fault: a held pair is always drawn, by the coin that padding pays for."""
    planted = PCKVGRR("1", 5, pad=3)
    object.__setattr__(planted, "draw_pair", PCKVGRR("1", 5, pad=1, top=planted.top).draw_pair)
    return planted


SETS = PaddingSampling("1", 5)
FAULTS: list[tuple[str, Mechanism[Any], int]] = [
    ("the coin of 1.1 ε", sending(GRR("1", 2), GRR("1.1", 2)), 200_000),
    ("the scale of 2 ε", _HalfTheNoise("1", 5), 20_000),
    ("weights of 2 ε", sending(Exponential("1", 5), Exponential("2", 5)), 20_000),
    (
        "the step of 2 ε over the window of ε",
        sending(SquareWave("1", 5), SquareWave("2", 5, reach=SquareWave("1", 5).reach)),
        20_000,
    ),
    (
        "sets by the coin of 2 ε",
        sending(SETS, PaddingSampling("2", 5, pad=SETS.pad, unary=SETS.unary)),
        10_000,
    ),
    ("sets without padding", _SetWithoutPadding("1", 5), 10_000),
    ("the answer by the coin of 2 ε", sending(SampledItem("1", 5), SampledItem("2", 5)), 10_000),
    ("the sign by the coin of 2 ε", twice_the_sign(), 10_000),
    ("pairs without padding", without_padding(), 10_000),
]


def audited(mechanism: Mechanism[Any], draws: int = DRAWS) -> str:
    return audit(mechanism, system_randomness(), draws).verdict


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_an_honest_mechanism_holds_its_claim(name: str, epsilon: str) -> None:
    assert audited(load(name)(epsilon, 5)) != FAILS


@pytest.mark.parametrize("mechanism", [GRR("1", 2), DiscreteLaplace("1", 9)], ids=repr)
def test_a_mechanism_as_noisy_as_it_claims_is_not_called_loose(mechanism: Mechanism[Any]) -> None:
    assert audited(mechanism) == HOLDS


@pytest.mark.parametrize(("planted", "draws"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_mechanism_that_tells_more_than_it_claims_is_found(
    planted: Mechanism[Any], draws: int
) -> None:
    """A coin of more than ε, noise of less than it needs, sampling without its padding."""
    assert audited(planted, draws) == FAILS


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
    assert audit(GRR("1", 2), system_randomness(), 1_000).draws == 1_000


@pytest.mark.parametrize(("sent", "status"), [("1", 0), ("2", 1)])
def test_the_exit_status_says_whether_a_claim_failed(sent: str, status: int) -> None:
    shown: list[str] = []

    assert run([sending(GRR("1", 2), GRR(sent, 2))], 10_000, False, shown.append) == status
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


@pytest.mark.parametrize(("part", "verdict"), [(0.999, HOLDS), (1.001, NOTHING)])
def test_a_claim_is_judged_up_to_the_most_that_the_draws_can_show(
    part: float, verdict: str
) -> None:
    """The most is what they show if all likely reports hit and no unlikely one does."""
    reach = lower_bound(DRAWS, 0, DRAWS)

    assert audited(GRR(f"{reach * part:.4f}", 2)) == verdict


@pytest.mark.parametrize(("errors", "verdict"), [(5.9, HOLDS), (6.1, LOOSE_VERDICT)])
def test_reports_are_loose_from_six_standard_errors_below_an_honest_bound(
    errors: float, verdict: str
) -> None:
    """So an honest mechanism is called loose once in 10⁹ audits."""
    draws, unlikely, mechanism = 20_000, 4_000, GRR("1", 2)
    honest = round(exp(1) * unlikely)
    error = sqrt(sum((1 - hits / draws) / hits for hits in (honest, unlikely)))
    least = lower_bound(honest, unlikely, draws) - errors * error
    likely = bisect_left(range(honest), least, key=lambda n: lower_bound(n, unlikely, draws))

    def reports(value: int, count: int) -> list[bytes]:
        hits = likely if value == case.likely else unlikely
        return [mine] * hits + [other] * (count - hits)

    (case,) = cases_of(mechanism, SeededRandomness(b""), 1)
    mine, other = sorted((b"\0", b"\1"), key=case.event, reverse=True)
    report = audit(mechanism, SeededRandomness(b""), draws, 1, reports=reports)

    assert report.gravest.verdict == verdict
