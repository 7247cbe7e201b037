"""An oracle blurred by reports that know nothing: what one two-layer report looks like.

Source: derived; see ``client_sdk/registry/longitudinal.py`` for the policy that sends such reports.
Proof: write P(r|v) for the oracle, E for its largest ratio and U(r) for what blurs it.  A report
    follows s P(r|v) + (1-s) U(r).  If the likelihoods of r are b and at most E·b, and U(r) = M·b,
    the ratio is at most (sE+(1-s)M) / (s+(1-s)M), which falls with M.
    Uniform payloads: every item has the likelihood E·b for a share f of all payloads and b for the
    others, so U(r) = 1/count = M·b with M = 1 + f (E-1), for every r.
    Of other oracles U is the mean of P over the k items.  If j items have the higher likelihood
    and the others b, then M = (jE+k-j)/k.  For j = 1 it is a bound for any oracle, since
    U(r) >= b(E'+k-1)/k where the ratio of r is E' <= E, and s(E'-1)/(1+(1-s)(E'-1)/k) grows with
    E'.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ..core.dataclass import dataclass
from ..core.randomness import Randomness
from .base import Array, EpsilonLike, NoiseLaw, Numpy
from .exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from .frequency import FrequencyOracle, PairLaw
from .supports import Channel


@dataclass(frozen=True, init=False)
class Mixture(FrequencyOracle):
    """*base* with probability s, else a payload that knows nothing: what TwoLayer sends.

    Derived: an item is supported by a uniform payload with q̄ = f, by one of a uniform item with
        q̄ = (p+(k-1)q)/k; so the channel stays pure: p' = s p + (1-s) q̄ and q' = s q + (1-s) q̄.
    """

    name = "two_layer"

    base: FrequencyOracle

    def __init__(self, base: FrequencyOracle, epsilon: EpsilonLike) -> None:
        """Mix *base* so that one report is *epsilon*-LDP."""
        self.prepare(epsilon, base.domain_size, THRESHOLD_BITS)
        object.__setattr__(self, "base", base)

    @property
    def automatic(self) -> bool:  # type: ignore[override]  # known only of *base*
        """As *base*."""
        return self.base.automatic

    @property
    def spare(self) -> bool:  # type: ignore[override]  # known only of *base*
        """As *base*."""
        return self.base.spare

    @property
    def parameters(self) -> dict[str, int]:
        """Those of *base*, and s in units of 2^-128."""
        return {**self.base.parameters, "kept": int(self.kept * (1 << THRESHOLD_BITS))}

    @cached_property
    def _mean_likelihood(self) -> Fraction:
        """M of the proof: what blurs the worst payload over its lower likelihood."""
        law = self.base.uniform_law()
        if law is not None:
            return 1 + law.single * (self.base.likelihood_ratio - 1)
        k, j = self.domain_size, self.base.least_support
        return (j * self.base.likelihood_ratio + k - j) / k

    @cached_property
    def kept(self) -> Fraction:
        """s: the largest multiple of 2^-128 that keeps one report at epsilon."""
        mean = self._mean_likelihood
        odds, ratio = exp_floor(self.epsilon), self.base.likelihood_ratio
        if ratio <= odds:
            return Fraction(1)
        return floor_to_grid(mean * (odds - 1) / (ratio - odds + mean * (odds - 1)))

    @cached_property
    def channel(self) -> Channel:
        """p' and q' of the mixture."""
        p, q, s = self.base.channel.p, self.base.channel.q, self.kept
        law = self.base.uniform_law()
        mean = (p + (self.domain_size - 1) * q) / self.domain_size if law is None else law.single
        blurred = (1 - s) * mean
        return Channel(s * p + blurred, s * q + blurred)

    @property
    def likelihood_ratio(self) -> Fraction:
        """(sE+(1-s)M) / (s+(1-s)M)."""
        s, blurred = self.kept, (1 - self.kept) * self._mean_likelihood
        return (s * self.base.likelihood_ratio + blurred) / (s + blurred)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a payload as if it were the first of this device."""
        self.require_value(value)
        if randomness.bernoulli(self.kept):
            return self.base.randomize(value, randomness)
        return self.blur(randomness)

    def blur(self, randomness: Randomness) -> bytes:
        """Return a payload that knows nothing: a uniform one, or *base*'s of a uniform item."""
        if self.base.uniform_law() is not None:
            return self.base.uniform_payload(randomness)
        return self.base.randomize(randomness.uniform(self.domain_size), randomness)

    @property
    def payload_size(self) -> int:
        """As *base*."""
        return self.base.payload_size

    def reason(self, payload: bytes) -> str | None:
        """As *base*."""
        return self.base.reason(payload)

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """As *base*."""
        return self.base.faults(payloads, np)

    def supports(self, payload: bytes) -> Iterable[int]:
        """As *base*."""
        return self.base.supports(payload)

    @property
    def tally_size(self) -> int:
        """As *base*."""
        return self.base.tally_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """As *base*."""
        return self.base.tally(payloads, np)

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """As *base*."""
        return self.base.support_counts(tally, n, np)

    def most_supported(self, items: int) -> int:
        """As *base*."""
        return self.base.most_supported(items)

    def report_sums(self, weights: Array, np: Numpy) -> Array | None:
        """As *base*: the payloads are its own."""
        return self.base.report_sums(weights, np)

    def knows_sums(self, np: Numpy) -> bool:
        """As *base*."""
        return self.base.knows_sums(np)

    def pair_law(self) -> PairLaw | None:
        """Return those of *base*, of which a part is of a uniform item."""
        pair = self.base.pair_law()
        if pair is None:
            return None
        kept, k = float(self.kept), self.domain_size
        blurred = (1 - kept) * (2 * pair.own + (k - 2) * pair.others) / k
        return PairLaw(kept * pair.own + blurred, kept * pair.others + blurred)

    def sum_moments(self, weights: Array, np: Numpy) -> tuple[Array, Array] | None:
        """Mix the moments of *base* with those of what blurs it."""
        moments = self.base.sum_moments(weights, np)
        if moments is None:
            return None
        kept, law = float(self.kept), self.base.uniform_law()
        if law is not None:
            total, squares = weights.sum(axis=1)[:, None], (weights**2).sum(axis=1)[:, None]
            single, pair = float(law.single), float(law.pair)
            uniform = single * total, single * squares + pair * (total**2 - squares)
            first, second = (
                kept * moment + (1 - kept) * mean
                for moment, mean in zip(moments, uniform, strict=True)
            )
            return first, second
        first, second = (
            kept * moment + (1 - kept) * moment.mean(axis=1, keepdims=True) for moment in moments
        )
        return first, second

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Return that of *base*, which holds for any mixture of items, and for uniform payloads.

        These are no likelier in any cell than those of the item that is likeliest there.  A
        ``lowest`` of all cells is q of its channel, and so it is here.
        """
        law, uniform = self.base.noise_law(tally, np), self.base.uniform_law()
        if uniform is not None and law.lowest is not None:
            return law._replace(lowest=np.minimum(law.lowest, float(uniform.single)))
        return law._replace(lowest=float(self.channel.q)) if type(law.lowest) is float else law
