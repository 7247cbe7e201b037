"""What of a person who reports through a relay can be told from an answer's reports: ε, or why not.

A claim needs a relay that somebody else runs, and reports that are known to have come through it,
each alone in its upload.  A device hides among those of the same metric, period, segment and
source, as all of these are in the clear; the smallest such group decides for its period.  Periods
are added up.  It is never less than what the relayed reports tell of any one device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import fsum
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from ..analytics.verb import Origin, Slice
from ..core.cells import RELAYED
from ..core.config import RelayTerms
from ..planning.shuffling import (
    ASSUMED,
    epsilon_of,
    honest_of,
    otherwise,
    refusal,
    rounded_down,
    together,
)

NO_OPERATOR: Final = "no operator of a relay is declared (HEARSAY_RELAY_OPERATOR)"
NONE_RELAYED: Final = "none of these reports came through a relay, alone in its upload"
_NOTHING: Final = 1 - 1e-6  # of what reports tell one by one, from which on a relay hides nothing


class EpsilonShuffled(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What shuffled reports tell of a device at most, if all of ``assumes`` holds.

    ``n`` is the honest devices of the smallest group.  Where nothing is claimed, only ``because``
    is there.
    """

    epsilon: float | UnsetType = UNSET
    delta: float | UnsetType = UNSET
    n: int | UnsetType = UNSET
    assumes: list[str] | UnsetType = UNSET
    because: str | UnsetType = UNSET


def shuffled_of(read: Sequence[Sequence[Slice]], terms: RelayTerms) -> EpsilonShuffled | UnsetType:
    """Return what can be claimed of a device whose reports are in *read*; nothing without relays.

    Args: read: the slices of each definition of one metric.
    """
    parts = [_Part(slices, terms.colluding) for slices in read if slices]
    relayed = [part for part in parts if part.relayed]
    if not terms.operator:
        return EpsilonShuffled(because=NO_OPERATOR) if relayed else UNSET
    if not relayed:
        return EpsilonShuffled(because=NONE_RELAYED)
    for part in relayed:
        if reason := refusal(part.metric):
            return EpsilonShuffled(because=reason)
    least = min(min(part.groups) for part in relayed)
    alone = fsum(len(part.groups) * epsilon_of(part.metric) for part in relayed)
    groups = [(part.metric, rounded_down(n)) for part in relayed for n in part.groups if n > 0]
    if least < 1 or (claim := together(groups)).epsilon >= alone * _NOTHING:
        rule = f"the smallest group that a device hides in has {least} honest reports"
        return EpsilonShuffled(because=f"too few relayed reports: {rule}")
    count, total = (sum(getattr(part, name) for part in parts) for name in ("relayed", "n"))
    return EpsilonShuffled(
        epsilon=claim.epsilon,
        delta=claim.delta,
        n=least,
        assumes=[
            *_assumptions(terms),
            f"the device is one of those whose {count:,} of {total:,} reports came so",
            otherwise(max(epsilon_of(part.metric) for part in relayed)),
        ],
    )


class _Part:
    """The relayed reports of one definition, and the groups that their devices hide in."""

    def __init__(self, slices: Sequence[Slice], colluding: Fraction) -> None:
        """Take of each epoch the smallest group; all of a device's reports are in such."""
        self.metric = slices[0].metric
        self.n = sum(part.n for part in slices)
        known = sum((Counter(part.origins) for part in slices), Counter[Origin]())
        groups = {origin: n for origin, n in known.items() if RELAYED in origin.source and n}
        self.relayed = sum(groups.values())
        smallest: dict[int, int] = {}
        for origin, n in groups.items():
            smallest[origin.epoch] = min(n, smallest.get(origin.epoch, n))
        self.groups = [honest_of(n, colluding) for n in smallest.values()]


def _assumptions(terms: RelayTerms) -> Iterator[str]:
    yield (
        f"the relay is run by {terms.operator}, mixes what it passes on, and does not work with "
        "the collector"
    )
    yield (
        f"of each group at most {float(100 * terms.colluding):g} % are of devices that work with "
        "the collector, forged, or known to it by another way"
        if terms.colluding
        else "no relayed report is forged, or of a device that works with the collector"
    )
    yield from ASSUMED
