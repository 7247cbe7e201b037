"""Sampled attribute: draw one attribute of a record, and report its item by subset selection.

Source: Nguyên, Xiao, Yang, Hui, Shin, Shin, *Collecting and Analyzing Data from Smart Device Users
    with Local Differential Privacy*, arXiv 1606.05053, 2016 (one attribute, drawn uniformly, is
    reported with all of ε); Arcolezi, Couchot, Al Bouna, Xiao, *Random Sampling Plus Fake Data*,
    CIKM 2021 (Smp: the drawn attribute is told); subset selection as in ``subset_selection``.  The
    decoder is derived here.
Proof: the attribute is drawn without a look at the record.  Given the attribute, the report is that
    of ``subset_selection`` of one of its items, so it is at most e^ε times likelier under one
    record than under another; the largest ratio of all attributes is reached by records that differ
    in that attribute.

Of n reports m are about an attribute.  Their devices are a random sample of all, so the share f of
an item is estimated without bias by (C/m - q)/(p - q), C being the reports about the attribute that
support it, given any m > 0.  Its variance is

    a + b f(1-f) + c f,   a = q(1-q)/(m (p-q)^2),   b = 1/m - 1/n,   c = (1-p-q)/(m (p-q)).

With d attributes m is near n/d.  Subsets of one item are generalized randomized response; the size
is that of the smallest error, which is below the least of those of ``grr`` and ``oue``.  Where
reports of that size did not fit 56 bits it is the largest that does.  An attribute without a report
has even shares with an error that leaves nothing out.

A report is the rank of the subset, after all those of the attributes before.

Draws: uniform(d), the attribute; then as in ``subset_selection`` over its items, by its chance of
    ``truths``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, Draws, EpsilonLike, NoiseLaw, Numpy, Reach, column
from ..exact import THRESHOLD_BITS
from ..items.subset_selection import SubsetSelection
from ..records import Attribute, Part, Record, RecordMechanism

_MOST_BITS: Final = 56  # of the reports of an attribute: those of 64 attributes fit 8 bytes


@dataclass(frozen=True, init=False)
class SampledAttribute(RecordMechanism):
    """One attribute and a subset of its items.  The tally is the sum of supports."""

    name = "sampled_attribute"
    beyond = "report_out_of_range"
    constants = ("truths",)

    starts: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        starts: int = 1,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take the items that begin an attribute, as bits of *starts*; one attribute by default."""
        self.prepare(epsilon, domain_size, precision)
        self.fix("starts", starts, least=1, most=(1 << self.domain_size) - 1)
        self.require_attributes()
        self.__dict__["attributes"] = self._subset_selections()
        self.validate()

    def _subset_selections(self) -> tuple[Attribute, ...]:
        """Return subset selection over the items of each attribute, at the best size that fits."""
        first, attributes = 0, []
        stated = self.__dict__.get("truths", ())
        for place, size in enumerate(self.sizes):
            best = SubsetSelection.fit(self.epsilon, size, _MOST_BITS).subset_size
            known = {"truth": stated[place]} if place < len(stated) else {}
            own = {"subset_size": best, "precision": self.precision}
            mechanism = SubsetSelection.with_constants(known, self.epsilon, size, **own)
            attributes.append(Attribute(first, mechanism))
            first += size
        return tuple(attributes)

    @cached_property
    def truths(self) -> tuple[Fraction, ...]:
        """For each attribute the chance that the subset holds the true item."""
        return tuple(self._selection(place).truth for place in range(len(self.sizes)))

    def _selection(self, place: int) -> SubsetSelection:
        mechanism = self.attributes[place].mechanism
        assert isinstance(mechanism, SubsetSelection)  # noqa: S101 - as they are made
        return mechanism

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the largest of those of the attributes, exactly."""
        return max(attribute.mechanism.likelihood_ratio for attribute in self.attributes)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The first report of each attribute, and one more than the last of all."""
        offsets = [0]
        for place in range(len(self.sizes)):
            offsets.append(offsets[-1] + self._selection(place).subsets)
        return tuple(offsets)

    @property
    def payload_count(self) -> int:
        """Every subset of every attribute."""
        return self.offsets[-1]

    def randomize(self, value: Record, randomness: Randomness) -> bytes:
        """Draw an attribute and report the item of *value* by its mechanism."""
        self.require_value(value)
        place = randomness.uniform(len(self.attributes))
        first, mechanism = self.attributes[place]
        rank = int.from_bytes(mechanism.randomize(value[place] - first, randomness), "big")
        return (self.offsets[place] + rank).to_bytes(self.payload_size, "big")

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items of its subset."""
        report = int.from_bytes(payload, "big")
        place = max(i for i, offset in enumerate(self.offsets[:-1]) if offset <= report)
        first, mechanism = self.attributes[place]
        rank = (report - self.offsets[place]).to_bytes(mechanism.payload_size, "big")
        return (first + item for item in mechanism.supports(rank))

    @property
    def tally_size(self) -> int:
        """One cell an item."""
        return self.domain_size

    @property
    def fold_steps(self) -> int:
        """The elements of the largest subset."""
        return max(attribute.mechanism.fold_steps for attribute in self.attributes)

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Unrank the reports of one attribute after the other."""
        reports = column(payloads, self.payload_size, np).astype(np.uint64)
        cells = np.zeros(self.domain_size, dtype=np.int64)
        for place, (first, mechanism) in enumerate(self.attributes):
            low, high = self.offsets[place : place + 2]
            ranks = reports[(reports >= np.uint64(low)) & (reports < np.uint64(high))]
            own = (ranks - np.uint64(low)).astype(f">u{mechanism.payload_size}").tobytes()
            cells[first : first + mechanism.domain_size] = mechanism.tally(own, np)
        return cells

    def parts(self, tally: Array, n: int, np: Numpy) -> tuple[Part, ...]:
        """Return the cells of each attribute; their sum tells how many reports are about it."""
        cells = self.require_tally(tally, n, np)
        parts = []
        for place, attribute in enumerate(self.attributes):
            own = cells[attribute.first : attribute.end]
            size = self._selection(place).subset_size
            drawn, rest = divmod(int(own.sum()), size)
            if rest or own.min() < 0 or own.max() > drawn:
                raise InvalidTallyError(f"tally: must be supports of {size} items a report")
            parts.append(Part(attribute.mechanism, own, drawn))
        if sum(part.n for part in parts) != n:
            raise InvalidTallyError(f"tally: entries must be of n={n} reports")
        return tuple(parts)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return n times the share of each item among the reports about its attribute.

        Variances take the estimated share, clipped to [0, 1].
        """
        shares = np.concatenate([self._shares(part, np) for part in self.parts(tally, n, np)])
        held = np.clip(shares, 0, 1)
        level, bend, slope = self.share_variance(tally, n, np)
        return Debiased(n * shares, n**2 * (level + bend * held * (1 - held) + slope * held))

    def _shares(self, part: Part, np: Numpy) -> Array:
        if not part.n:
            return np.full(part.mechanism.domain_size, 1 / part.mechanism.domain_size)
        p, q = part.mechanism.chances
        return (part.tally / part.n - q) / (p - q)

    def share_variance(self, tally: Array, n: int, np: Numpy) -> tuple[Array, Array, Array]:
        """Return a, b and c, shape (domain_size,), of the variance a + b f(1-f) + c f of a share.

        Where no report is about the attribute, a > 1 and the others are 0.
        """
        laws = []
        for part in self.parts(tally, n, np):
            p, q = part.mechanism.chances
            level = q * (1 - q) / (p - q) ** 2
            law = (level + 1, 0.0, 0.0)
            if part.n:
                slope = (1 - p - q) / (p - q)
                law = (level / part.n, 1 / part.n - 1 / n, slope / part.n)
            laws.append(np.tile(law, (part.mechanism.domain_size, 1)))
        level, bend, slope = np.concatenate(laws).T
        return level, bend, slope

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return what one report about the attribute stands for; only these bear upon the item."""
        place = sum(attribute.first <= item for attribute in self.attributes) - 1
        p, q = self.attributes[place].mechanism.chances
        return Reach(-q / (p - q), (1 - q) / (p - q), float(len(self.attributes)))

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its attribute evenly."""
        sums = [
            tally[..., attribute.first : attribute.end].sum(axis=-1)
            // self._selection(place).subset_size
            for place, attribute in enumerate(self.attributes)
        ]
        return NoiseLaw(draws=Draws(np.stack(sums, axis=-1), 1 / len(self.attributes)))

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share, of even shares.

        With d attributes that is d times the variance of a mechanism's report, and of a drawn
        device (d-1) f(1-f).
        """
        drawn, total = len(self.attributes), 0.0
        for _, mechanism in self.attributes:
            share = 1 / mechanism.domain_size
            law = drawn * mechanism.predict(1) ** 2 + (drawn - 1) * share * (1 - share)
            total += mechanism.domain_size * law
        return math.sqrt(total / self.domain_size / n)


MECHANISM: Final = SampledAttribute
