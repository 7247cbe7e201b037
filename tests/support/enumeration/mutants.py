"""Planted bugs: mechanisms and primitives, each wrong in one way that was seen in the wild."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any

from client_sdk.core.randomness import ByteRandomness, Randomness
from client_sdk.mechanisms import Channel, Record, Vector
from client_sdk.mechanisms.composite.privset import PrivSet
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from client_sdk.mechanisms.items.block_design import BlockDesign
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.hadamard import Hadamard
from client_sdk.mechanisms.items.olh import OLH
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.items.subset_selection import SubsetSelection
from client_sdk.mechanisms.items.sue import SUE
from client_sdk.mechanisms.numbers._wave import Window
from client_sdk.mechanisms.numbers.codebook import VARIANCE, Codebook, codeword
from client_sdk.mechanisms.numbers.discrete_laplace import (
    DiscreteLaplace,
    bernoulli_exp,
    discrete_laplace,
)
from client_sdk.mechanisms.numbers.minimax import Minimax


class DoubleFlip(SUE):
    """Every bit is flipped twice over."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        first, second = (
            randomness.bernoulli_bits(self.channel.q, self.domain_size) for _ in range(2)
        )
        return self.pack(self.one_hot(value) ^ first ^ second)


class SwappedPQ(SUE):
    """A bit is flipped with p and kept with q."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        flips = randomness.bernoulli_bits(self.channel.p, self.domain_size)
        return self.pack(self.one_hot(value) ^ flips)


class DoubledEpsilon(GRR):
    """The coin of twice the epsilon, under the channel of one."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return GRR(2 * self.epsilon, self.domain_size).randomize(value, randomness)


class OffByOne(GRR):
    """The lie may be the true item, and never the one after it."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        if not randomness.bernoulli(self.channel.p):
            other = randomness.uniform(self.domain_size - 1)
            value = other + (other > value)
        return bytes([value])


class ModuloBias(GRR):
    """A byte modulo the number of lies."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        if not randomness.bernoulli(self.channel.p):
            other = randomness.uniform(256) % (self.domain_size - 1)
            value = other + (other >= value)
        return bytes([value])


class OverAll(GRR):
    """A lie is uniform over k items rather than the k - 1 others."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        if not randomness.bernoulli(self.channel.p):
            value = randomness.uniform(self.domain_size)
        return bytes([value])


class RoundedUp(GRR):
    """The coin is one step of the grid, 2^-128, above the threshold."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        other = randomness.uniform(self.domain_size - 1)
        kept = randomness.bernoulli(self.channel.p + Fraction(1, 1 << 128))
        return bytes([value if kept else other + (other >= value)])


class ReusedNoise(OUE):
    """One draw raises all other bits together."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        own = self.one_hot(value)
        others = (1 << self.domain_size) - 1 & ~own
        raised = others if randomness.bernoulli(self.channel.q) else 0
        return self.pack(raised | own if randomness.bernoulli(self.channel.p) else raised)


class TimeSeeded(GRR):
    """A Mersenne twister seeded with the clock."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        chance = random.Random(time.time_ns())
        kept = chance.random() < self.channel.p
        return bytes([value if kept else chance.randrange(self.domain_size)])


class FloatLaplace(DiscreteLaplace):
    """The inverse of a floating-point Laplace distribution, rounded."""

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        u = randomness.uniform(1 << 53) / (1 << 53) - 0.5
        noise = -float(self.scale) * math.copysign(math.log1p(-2 * abs(u)), u)
        return (round(value + noise) + self.margin).to_bytes(self.payload_size, "big")


class HalfTheScale(DiscreteLaplace):
    """The noise that two epsilons would buy."""

    def draw_noise(self, randomness: Randomness) -> int:
        half = self.scale / 2
        return discrete_laplace(half.numerator, half.denominator, randomness)


class TwoZeros(DiscreteLaplace):
    """Minus zero is kept, so that no noise is twice as likely as it should be."""

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        t, s = self.scale.numerator, self.scale.denominator
        u = randomness.uniform(t)
        while not bernoulli_exp(u, t, randomness):
            u = randomness.uniform(t)
        v = 0
        while bernoulli_exp(1, 1, randomness):
            v += 1
        noise = (u + t * v) // s * (-1 if randomness.uniform(2) else 1)
        position = self.round_to_steps(value, self.top, randomness)
        clamped = min(max(position + noise, -self.margin), self.top + self.margin)
        return (clamped + self.margin).to_bytes(self.payload_size, "big")


class ShortRange(DiscreteLaplace):
    """One scale of room beyond the range, so that clamping happens where a test can see it."""

    @cached_property
    def margin(self) -> int:
        return math.ceil(self.scale)


class NeverClamped(ShortRange):
    """The same room, and no clamp after the noise."""

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        wide = DiscreteLaplace(self.epsilon, self.domain_size)
        noisy = int(wide.decode(wide.randomize(value, randomness)))
        return (noisy + self.margin).to_bytes(self.payload_size, "big")


class WrongSubset(SubsetSelection):
    """Without the true item, the subset is one item short."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        others = [item for item in range(self.domain_size) if item != value]
        holds = randomness.bernoulli(self.truth)
        chosen = [others.pop(randomness.uniform(len(others))) for _ in range(self.subset_size - 1)]
        return self.pack_subset([*chosen, value] if holds else chosen)


class AnyPlace(BlockDesign):
    """The block of a lie may hold the item."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        holds = randomness.bernoulli(self.truth)
        step = 1 + randomness.uniform(self.prime - 1)
        place = randomness.uniform(self.block_size if holds else self.prime)
        offset = (value - step * self.inverse(place)) % self.prime
        return ((step - 1) * self.prime + offset).to_bytes(self.payload_size, "big")


class UncheckedWidth(PrivSet):
    """Subsets that meet the set are drawn as if a value met by chance alone."""

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        points = [*self._cut(value, randomness), *self.dummies][: self.pad]
        values = [randomness.uniform(self.prime) for _ in points]
        if randomness.bernoulli(self.truth):
            values[randomness.uniform(self.pad)] = randomness.uniform(self.width)
        return self.pack(self._through(points, values, randomness.uniform(self.prime)))


class IdealHash(OLH):
    """q as if two items collided in exactly 1/g of the seeds."""

    @cached_property
    def channel(self) -> Channel:
        return Channel(self.truth, Fraction(1, self.buckets))


class SignOfRowZero(Hadamard):
    """Rows begin at 1: a row on which two items never agree by design is left out."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        row = 1 + randomness.uniform(self.rows - 1)
        positive = (row & value).bit_count() % 2 == 0
        if not randomness.bernoulli(self.channel.p):
            positive = not positive
        return (2 * row + positive).to_bytes(self.payload_size, "big")


class TellingLength(GRR):
    """The payload is as short as its item allows."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        return super().randomize(value, randomness).lstrip(b"\0")


class AtMost(ByteRandomness):
    """A coin that is true for one byte too many."""

    def bernoulli(self, p: Fraction) -> bool:
        return self.uniform(p.denominator) <= p.numerator


class ByRemainder(ByteRandomness):
    """A uniform number by the remainder of a byte, instead of by rejection."""

    def uniform(self, n: int) -> int:
        return int.from_bytes(self._bytes(1), "big") % n


class SignWords(Codebook):
    """Words of plain signs, which are not alike in all directions."""

    def products(self, first: int, value: Vector) -> list[int]:
        return [
            sum(x if entry > 0 else -x for x, entry in zip(value, word, strict=True))
            for word in self._words(range(first, first + self.words))
        ]

    def _words(self, numbers: Iterable[int]) -> list[list[int]]:
        width = 2 * self.domain_size
        streams = (codeword(number, width) for number in numbers)
        return [[1 if entry & 1 else -1 for entry in stream[::2]] for stream in streams]

    def tally(self, payloads: bytes, np: Any) -> Any:
        numbers = (int.from_bytes(payload, "big") for payload in self.split(payloads))
        deviation = round(float(VARIANCE) ** 0.5)
        words = deviation * np.array(self._words(numbers), dtype=np.int64)
        return np.concatenate([words.sum(axis=0), (words**2).sum(axis=0)])


class LearnedBound(Codebook):
    """The bound is what the vector itself has, as if the norm had been learned from the data."""

    def length_of(self, value: Vector, steps: int) -> int:
        return steps


class ChosenSeed(Codebook):
    """The better of two seeds, chosen after a look at the vector."""

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        both = [randomness.uniform(self.seeds) * self.words for _ in range(2)]
        first = max(both, key=lambda first: max(self.products(first, value)))
        ranked = self.ranked(first, value)
        near = randomness.bernoulli(self.truth)
        words = ranked[: self.subset_size] if near else ranked[self.subset_size :]
        word = words[randomness.uniform(len(words))]
        return (first + word).to_bytes(self.payload_size, "big")


class OwnSubset(Codebook):
    """As many near words as have a positive product: more for some vectors than for others."""

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        first = randomness.uniform(self.seeds) * self.words
        products = self.products(first, value)
        level = sum(products) // len(products)
        near = [word for word in range(self.words) if products[word] > level]
        others = [word for word in range(self.words) if word not in near]
        words = near if not others or (near and randomness.bernoulli(self.truth)) else others
        word = words[randomness.uniform(len(words))]
        return (first + word).to_bytes(self.payload_size, "big")


class NearTooOften(Codebook):
    """Near words are one step of the grid, 2^-128, likelier than they may be."""

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        first = randomness.uniform(self.seeds) * self.words
        ranked = self.ranked(first, value)
        near = randomness.bernoulli(self.truth + Fraction(1, 1 << 128))
        words = ranked[: self.subset_size] if near else ranked[self.subset_size :]
        word = words[randomness.uniform(len(words))]
        return (first + word).to_bytes(self.payload_size, "big")


class ChosenAttribute(SampledAttribute):
    """The attribute of the later value of two, chosen after a look at the record."""

    def randomize(self, value: Record, randomness: Randomness) -> bytes:
        both = [randomness.uniform(len(self.attributes)) for _ in range(2)]
        place = max(both, key=lambda place: value[place] - self.attributes[place].first)
        first, mechanism = self.attributes[place]
        rank = int.from_bytes(mechanism.randomize(value[place] - first, randomness), "big")
        return (self.offsets[place] + rank).to_bytes(self.payload_size, "big")


class RedrawnNoise(SampledAttribute):
    """A report that does not support the record is drawn again, once, as if it had been lost."""

    def randomize(self, value: Record, randomness: Randomness) -> bytes:
        payload = super().randomize(value, randomness)
        if set(value).intersection(self.supports(payload)):
            return payload
        return super().randomize(value, randomness)


class TwoAttributes(SampledAttribute):
    """Two attributes of one record, each with all of ε."""

    def randomize(self, value: Record, randomness: Randomness) -> bytes:
        return super().randomize(value, randomness) + super().randomize(value, randomness)


class NearerInput(Minimax):
    """A position is sent as the input next to it, without a draw."""

    def input_of(self, value: Fraction, randomness: Randomness) -> int:
        place = value / self.top - Fraction(1, 2)
        return min(range(self.steps + 1), key=lambda i: abs(self.inputs[i] - place))


class EvenOutputs(Minimax):
    """Outputs are read as if they lay evenly, as those of ``piecewise``."""

    def position(self, symbol: int) -> Fraction:
        return self.window.position(symbol)


class NarrowWindow(Minimax):
    """The window has one output less, by the chance of a whole one."""

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        narrow = Window(self.steps + 1, self.width - 1, self.inside)
        return narrow.draw(self.input_of(value, randomness), randomness)
