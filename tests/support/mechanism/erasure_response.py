"""Erasure response: one report in four says nothing, the others tell an item by random response.

Source: Warner, JASA 1965 (the coin); Kairouz, Bonawitz, Ramage, ICML 2016 (k items).  The erasure
    is a mechanism for tests, which nobody should deploy: it is to be unlike any that is shipped.
Proof: a report is erased without looking at the item.  An item is told with 3/4 t by its holders
    and 3/4 (1-t)/(k-1) by others, so the ratio of any report is at most t (k-1)/(1-t).  t is
    e^ε/(e^ε+k-1) rounded down to the grid, hence the ratio is at most e^ε.

Draws: uniform(4) < 3 tells; then true(truth), and of a lie uniform(k - 1), from the item on one
    higher.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Final

from client_sdk.core.randomness import Randomness
from client_sdk.mechanisms import Channel, FrequencyOracle
from client_sdk.mechanisms.base import width_of
from client_sdk.mechanisms.exact import exp_floor, respond, truth_chance

_TOLD: Final = Fraction(3, 4)


class ErasureResponse(FrequencyOracle):
    """It overrides nothing that a family answers.  A report is an item, or domain_size: none."""

    name = "erasure_response"
    constants = ("truth",)

    @cached_property
    def truth(self) -> Fraction:
        """The chance of the true item, of a report that is not erased."""
        return truth_chance(exp_floor(self.epsilon), self.domain_size - 1, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """The chances of an item, erasure included."""
        return Channel(_TOLD * self.truth, _TOLD * (1 - self.truth) / (self.domain_size - 1))

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return p / q, exactly."""
        return self.channel.p / self.channel.q

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the item reported for *value*, or none."""
        self.require_value(value)
        told = self.domain_size
        if randomness.bernoulli(_TOLD):
            told = respond(value, self.domain_size, self.truth, randomness)
        return told.to_bytes(self.payload_size, "big")

    @property
    def payload_size(self) -> int:
        """1 to 4 bytes."""
        return width_of(self.domain_size + 1)

    def reason(self, payload: bytes) -> str | None:
        """Refuse a number that no value gives."""
        told = int.from_bytes(payload, "big")
        return None if told <= self.domain_size else "item_out_of_range"

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the item it names, if it names one."""
        told = int.from_bytes(payload, "big")
        return (told,) if told < self.domain_size else ()


MECHANISM: Final = ErasureResponse
