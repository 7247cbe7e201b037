"""Minimax mechanism: a window over outputs that lie unevenly, for the least largest variance.

Source: Ye, Barg, IEEE Transactions on Information Theory 2018 (a set of likelier outputs around the
    truth); Wang et al., ICDE 2019 (the window of ``piecewise``).  Where the outputs lie is derived
    here, as the solution of a convex program.
Proof: rounding to one of ``steps`` + 1 inputs draws from the value alone, so it is a mixture.  An
    output inside the window of an input has the probability inside/w, one outside (1-inside)/m, w
    and m being ``width`` and ``steps``.  The ratio of the two is at most e^ε because ``inside`` is
    E w/(E w + m), E = e^ε, rounded down to the grid.  What the outputs stand for matters to the
    error alone, and not to privacy.

Inputs i of 0 … m and outputs of 0 … N-1, N = m + w, of which i … i+w-1 are the window of i.  Each
output has an integer t, a byte of ``distances`` for the upper half and its mirror below 0 for the
lower one.  T(i), the sum of t over the window of i, rises from -R to R; p and q are the chances
inside and outside.  As all t add up to 0,
    E[t | i] = (p - q) T(i),
so input i is the position 1/2 + T(i)/(2R), as a part of the range, and an output that of
1/2 + t/(2R (p - q)): exactly unbiased, however the distances were found.

Least variance (derived): Var[t | i]/((p-q) R)^2 is convex in the t of R = 1, so the largest one
over all inputs, and over places half way between two, has one minimum, which Newton steps find
(``python -m benchmarks minimax_table``).  Rounded to a byte, and shared by all ε of a row of
DESIGNS, it is within 1.5 % of the linear program's optimum for ε from 0.5 to 5; `piecewise` spaces
its outputs evenly, and is far.

Draws: with x = num/den, w = den top and a = R (2 num - w), the last step i of T(i) w <= a; of
    rest = a - T(i) w, if there is one, uniform((T(i+1) - T(i)) w) < rest adds 1; then true(inside)
    and so on as in ``piecewise``, m being the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, EpsilonLike, Numpy
from ..exact import THRESHOLD_BITS
from ..families import Scatter, largest_spread
from ._symbols import SymbolReports
from ._wave import MOST_OUTPUTS, Window, inside_of

_BYTE: Final = 8  # bits of a distance


@dataclass(frozen=True, init=False)
class Minimax(SymbolReports):
    """A window of ``width`` outputs, whose ``distances`` from the middle are the least variance's.

    ``distances`` is an integer of a byte for each output of the upper half, the outermost first.
    """

    name = "minimax"
    constants = ("inside",)

    width: int
    distances: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        width: int | None = None,
        distances: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take *width* and *distances* as given, both, or those of DESIGNS for *epsilon*."""
        self.prepare(epsilon, domain_size, precision)
        if width is None and distances is None:
            width, distances = design_of(self.epsilon)
        self.fix("width", width, least=1, most=MOST_OUTPUTS - 1)
        bits = distances.bit_length() if type(distances) is int and distances > 0 else 0
        if not _BYTE * (self.width // 2) < bits <= _BYTE * MOST_OUTPUTS // 2:
            rule = f"must be above 0, of more than width/2 and at most {MOST_OUTPUTS // 2} bytes"
            raise InvalidParameterError("distances", distances, rule)
        object.__setattr__(self, "distances", distances)
        self.validate()

    def validate(self) -> None:
        """Refuse distances of which windows do not rise, besides what all symbols refuse."""
        if any(upper <= lower for lower, upper in pairwise(self.sums)):
            rule = "must give every window a larger sum than the one before"
            raise InvalidParameterError("distances", self.distances, rule)
        super().validate()

    @property
    def payload_count(self) -> int:
        """N: two outputs a distance."""
        return 2 * ((self.distances.bit_length() + _BYTE - 1) // _BYTE)

    @property
    def steps(self) -> int:
        """m, the inputs but one."""
        return self.payload_count - self.width

    @cached_property
    def places(self) -> tuple[int, ...]:
        """t of every output, from the lowest."""
        upper = tuple(self.distances.to_bytes(self.payload_count // 2, "big"))
        return (*(-distance for distance in upper), *reversed(upper))

    @cached_property
    def sums(self) -> tuple[int, ...]:
        """T of every input: its window's sum of t."""
        return _window_sums(self.places, self.width)

    @cached_property
    def inside(self) -> Fraction:
        """The chance of an output within the window."""
        return inside_of(self.epsilon, self.steps, self.width, self.precision)

    @cached_property
    def window(self) -> Window:
        """The channel from inputs to outputs."""
        return Window(self.steps, self.width, self.inside)

    @property
    def likelihood_ratio(self) -> Fraction:
        """That of the channel."""
        return self.window.likelihood_ratio

    def variation(self, np: Numpy) -> float:
        """That of the channel: values between inputs are mixtures."""
        return self.window.variation

    @cached_property
    def gain(self) -> Fraction:
        """p - q, what an output is likelier inside than outside."""
        return self.window.slope / self.width

    def position(self, symbol: int) -> Fraction:
        """Return the unbiased position of an output, as a part of the range."""
        return Fraction(1, 2) + self.places[symbol] / (2 * self.sums[-1] * self.gain)

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* to an input and send it through the channel."""
        return self.window.draw(self.input_of(value, randomness), randomness)

    def input_of(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* to an input beside it at random, so that its expectation is kept."""
        self.require_value(value)
        whole = value.denominator * self.top
        place = self.sums[-1] * (2 * value.numerator - whole)
        step, beyond = 0, self.steps + 1  # the last input not above the place lies between
        while beyond - step > 1:
            middle = (step + beyond) // 2
            if self.sums[middle] * whole <= place:
                step = middle
            else:
                beyond = middle
        rest = place - self.sums[step] * whole
        if rest and randomness.bernoulli_ratio(rest, (self.sums[beyond] - self.sums[step]) * whole):
            return beyond
        return step

    @cached_property
    def inputs(self) -> tuple[Fraction, ...]:
        """The positions of the inputs as parts of the range, from the middle."""
        return tuple(Fraction(total, 2 * self.sums[-1]) for total in self.sums)

    @cached_property
    def noises(self) -> tuple[Fraction, ...]:
        """Var[y | input] of every input, in parts of the range squared."""
        squares = [place * place for place in self.places]
        outside = (1 - self.inside) / self.steps * sum(squares)
        scale = (2 * self.sums[-1] * self.gain) ** 2
        return tuple(
            (outside + self.gain * total) / scale - place * place
            for total, place in zip(_window_sums(squares, self.width), self.inputs, strict=True)
        )

    @cached_property
    def rounding(self) -> Fraction:
        """The largest variance of rounding to an input: half way between two."""
        return max((upper - lower) ** 2 for lower, upper in pairwise(self.inputs)) / 4

    def variance_of(self, position: Fraction) -> float:
        """Return the variance of both inputs beside *position*, and that of rounding to them."""
        place = Fraction(position) / self.top - Fraction(1, 2)
        step = max(i for i in range(self.steps) if self.inputs[i] <= place)
        lower, upper = self.inputs[step : step + 2]
        part = (place - lower) / (upper - lower)
        noise = (1 - part) * self.noises[step] + part * self.noises[step + 1]
        return float((noise + (place - lower) * (upper - place)) * self.top**2)

    @cached_property
    def worst_variance(self) -> float:
        """The largest one: between two inputs it is a parabola, of which this is the peak."""
        return max(self._peaks()) * self.top**2

    def _peaks(self) -> Iterator[float]:
        noises, inputs = list(map(float, self.noises)), list(map(float, self.inputs))
        for noise, place in zip(pairwise(noises), pairwise(inputs), strict=True):
            square, rise = (place[1] - place[0]) ** 2, noise[1] - noise[0]
            part = min(max((1 + rise / square) / 2, 0.0), 1.0)
            yield noise[0] + part * rise + part * (1 - part) * square

    @cached_property
    def credits(self) -> tuple[float, ...]:
        """What each output says of the variance: E[credit | input] is Var[y | input], exactly.

        Derived: E[c | i+1] - E[c | i] = (p - q) (c(i+w) - c(i)), so the outputs i, i + w, i + 2w …
        follow from the first of them.  With each such chain around the same middle, the credits
        differ by the least, and the middle is what is left of Var[y | 0].
        """
        gain, credits = float(self.gain), [0.0] * self.payload_count
        for first in range(self.width):
            for last in range(first, self.steps, self.width):
                rise = float(self.noises[last + 1] - self.noises[last])
                credits[last + self.width] = credits[last] + rise / gain
            chain = range(first, self.payload_count, self.width)
            middle = sum(credits[output] for output in chain) / len(chain)
            for output in chain:
                credits[output] -= middle
        level = float(self.noises[0]) - gain * sum(credits[: self.width])
        return tuple(level + credit for credit in credits)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of positions and its variance, for a fixed population.

        The variance is the sum of credits, within what n inputs can have, and n times the largest
        that rounding may add, but never above the worst variance of all.
        """
        total, _ = self._sums_of(tally, n, np)
        variance = self._noise_of(tally, n, np) + n * float(self.rounding)
        variance = min(variance * self.top**2, n * self.worst_variance)
        return Debiased(np.array([(total + n / 2) * self.top]), np.array([variance]))

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return the sample variance of reports; of positions, what the credits leave for them."""
        total, squares = self._sums_of(tally, n, np)
        mean = total / n
        most = largest_spread((mean + 0.5) * self.top, self.top) / self.top**2
        spread = (squares - self._noise_of(tally, n, np)) / n - mean**2
        spread = min(max(spread, 0.0), most)
        return Scatter((squares / n - mean**2) * self.top**2, spread * self.top**2)

    def _noise_of(self, tally: Array, n: int, np: Numpy) -> float:
        """Return the sum of Var[y | input] over the devices, in parts of the range squared."""
        noise = float(np.asarray(tally) @ np.array(self.credits))
        least, most = float(min(self.noises)), float(max(self.noises))
        return min(max(noise, n * least), n * most)


def _window_sums(numbers: tuple[int, ...] | list[int], width: int) -> tuple[int, ...]:
    """Return the sum of each *width* neighbours."""
    total = (0, *accumulate(numbers))
    return tuple(total[i + width] - total[i] for i in range(len(numbers) - width + 1))


def design_of(epsilon: Fraction) -> tuple[int, int]:
    """Return width and distances of the row of DESIGNS for *epsilon*."""
    chosen = DESIGNS[0]
    for row in DESIGNS:
        if row[0] <= 1000 * epsilon:
            chosen = row
    return chosen[1], int(chosen[2], 16)


# From which ε on, in thousandths; width; distances.  Printed by ``benchmarks minimax_table``.
DESIGNS: Final = (
    (100, 32, "fffffffffffffffffffdf8f4f0ece8e4e1ddd9d6d2cfcbc9c9c9c9c9c9c9c9c9"),
    (550, 32, "fff9f6f5f5f5f5f2ece6e1dbd6d0cbc6c1bcb8b3afaaa6a29e9c9c9c9c9b9a96"),
    (850, 31, "fffffffffffffffff9f2ebe4ded7d1cbc5bfbab4afaaa5a19c98989898989800"),
    (1000, 30, "fffffffffffffffffffff9f0e9e1dad2ccc5beb8b2aca7a19d9d9d9d9d9d0000"),
    (1150, 29, "fffffffffffffffffffffffff5ece3dbd3cbc3bcb5afa8a2a2a2a2a2a2000000"),
    (1300, 28, "fffffffffffffffffffffffffffaefe5dcd3cac2bab2aba7a7a7a7a700000000"),
    (1450, 27, "fffbfbfbfbfbfbfbfbfbfbfbfbfbfbf0e5dad1c7beb5aeadadadad0400000000"),
    (1600, 26, "fff7f5f3f1f0f0f0f0f0f0f0f0f0f0f0eadfd4c9bfb6b2b2b2b2120906040200"),
    (1750, 26, "fff6f2efebe7e7e7e7e7e7e7e7e7e7e7ded1c8bcb4a9a3a3a3a319110d090500"),
    (1850, 25, "fff6f4f3eee8e4e1e1e1e1e1e1e1e1e1e1ded2c7bbb1afafaf261d1a19130b04"),
    (2000, 25, "fff6f1ede9e3dfdbd9d9d9d9d9d9d9d9d9d1c5baafa5a0a0a029211d19150d05"),
    (2100, 24, "fff6f3f0ebe6e5e1dedad6d5d5d5d5d5d5d5d5cdbdb6b6b63a312d29231a1005"),
    (2200, 24, "fff6f1ecebe8e4e0dcd7d2cdcccccccccccccac0b1a8a7a739312d28241a0f05"),
    (2350, 23, "fff8f3eeeeedebe8e5e1dcd7d2ccc9c9c9c9c9c9c6c4c45047413b34291d1106"),
    (2450, 23, "fff6f1ececebe9e5e1dcd7d1ccc5c0c0c0c0c0c0bbb6b64e46413b32261c1006"),
    (2550, 23, "fff6f0eaeae9e6e2ddd8d2ccc6bfb9b8b8b8b8b8b1aaaa4d4540392f251b0f06"),
    (2650, 22, "fff6f2ece9e9e9e7e3dfdad6d0cac3bdbdbdbdbdbdbd5d55514843372a1f1206"),
    (2750, 22, "fff6f1ebe9e9e7e4e0dcd6d1cbc4beb7b4b4b4b4b4b45c5450484135291d1106"),
    (2850, 21, "fff6f1ece7e4e2e1e0dddad6d1cbc5bfbdbdbdbdbd685f5b534d473e2f211407"),
    (2950, 21, "fff5f0eae5e2e1e0dedad6d1ccc6c0b9b3b3b3b3b3665e5a524c483a2d201307"),
    (3050, 20, "fff6f1ece7e4e0dcdbdbdad7d3cec9c3c0c0c0c0746c676059534c4235251707"),
    (3150, 20, "fff5f0e9e5e1dbd9d9d8d6d2cec9c3bcb7b5b5b57169655d58534a4132231507"),
    (3250, 20, "fff5efe8e2ddd9d6d6d5d2cecac4beb8b1aeaeae6f68635d57504a3e30221407"),
    (3300, 19, "fff6f2ebe8e3dfdbd7d6d6d6d4d0ccc6c1c0c07f78746c67615850453b291809"),
    (3400, 19, "fff5f0eae6e1dcd7d3d1d1d0cecac5bfb9b6b67b747068625c554c4337271708"),
    (3500, 19, "fff4efe8e6dfd9d4cfcdcdcbc8c3beb8b1aeae78706d645d5850494034251607"),
    (3600, 18, "fff6f1eceaeae6e0dbd6d1cdc9c8c6c3c3c38b84807970645b52493f34281a09"),
    (3700, 18, "fff5f0eae8e7e4ded7d1ccc7c4c2bfbcbbbb87807c756b60574e463c32261909"),
    (3800, 18, "fff4efe9e7e5e1dbd4cec8c3c0bebbb6b5b5847e7a72695e544b433a30261908"),
    (3850, 17, "fff6f1ebe7e4e3e1ddd8d3cecbc7c4c4c4948d89827c73685c51473c2f211100"),
    (3900, 17, "fff5f0eae6e3e2e0dcd6d1ccc8c4c1c1c1928b87807b70665a4f453a2e211201"),
    (3950, 17, "fff5efe8e4e2e1dedad4cec8c4bfbbbbbb8e88847d776d63574c42382c201202"),
    (4050, 16, "fff6f1ebe7e3e1dedcdad6d2cecac7c69c95928b867f766b5f5245382a190700"),
    (4150, 16, "fff5efe9e3e0dedbd8d5d2cdc8c3c0be97918d87817a71665b4e423528180800"),
    (4250, 16, "fff4eee7e2dddbd8d5d2cec9c4bfbbb9948e8a857f776e63584c403327180800"),
    (4300, 15, "fff7f3f0ece9e5e0dcd8d5d2d0cfcfa9a29e968d857e746b5f544535271b0d03"),
    (4400, 15, "fff6f1eeeae7e2dcd8d4d1cdc9c8c8a49e9991887f7870675b504233251a0d03"),
    (4500, 15, "fff5f1ede9e4dfd9d5d1cdc9c5c3c3a19b968d857c756d64594d403224190d03"),
    (4550, 15, "fff4f0ece8e4ded8d3cfcbc7c2c0c09f99948b827a736b62574c3f3123190d03"),
    (4600, 14, "fff6f1ebe8e6e4e0dcd7d3d0cdccada7a39d968c84796f64584939312c201306"),
    (4700, 14, "fff5efe9e7e3e1ddd8d3cecac7c6a8a29f9992877e756a61554838312a1d1206"),
    (4800, 14, "fff4eee8e5e2dfdbd6d0cbc6c3c2a59f9c968f857c71685e53463832281d1206"),
    (4850, 13, "fff7f4f0ece9e5e0ddd9d7d5d4b9b3ada59e9690867c706352463d382f201507"),
    (4950, 13, "fff6f3efebe6e2dedad6d3d1d0b5afaaa29b938c83796e6151443c372d1f1506"),
    (5000, 13, "fff5f2ede9e3dfdbd6d2cecccab0aaa49c968e867e73695c4d413a342b1e1406"),
    (5150, 12, "fff5f0ece9e6e3dfdad6d2d0b9b3afa9a19890867d716458544a3f32271b0f03"),
    (5400, 11, "fff7f4f0ede9e6e2dfdcdbc6c1bcb4aea59d95897d716961574a4032281e0e04"),
    (5600, 11, "fff5f2eeeae5e0dcd7d4d2bfbab5ada59d958d83776c635b51463c30261b0e04"),
    (5750, 10, "fff7f4f1ede8e5e2dfddccc6c1bab3aca49a8e837b746b5e54473b31271f1305"),
    (5950, 10, "fff5f2eee9e3dfdbd7d4c4beb9b1aaa39b92867c746c64584f43372e251c1205"),
    (6150, 9, "fff7f5f0ece8e5e1dfd1cbc6bfb9b1a89f938c857b70665a50453e33251a0f05"),
    (6350, 9, "fff6f3eee9e4e0dbd9ccc6c0b9b2aaa2988e867f766b61564c433b3024190e05"),
    (6500, 8, "fff8f5f2eeeae6e4d9d3cec7c0b9b0a59f978e83796f655d53453b31251d1105"),
    (6700, 8, "fff6f3efeae6e1dfd4cec8c1bab3aa9f9991887e756a61594f42392f241b1005"),
    (6850, 8, "fff5f2ede8e3dedbd0cac4bdb6aea69c958d847a71675e564c40372d231a1005"),
    (6950, 7, "fff8f5f1eeebe8dfd9d5cec7bfb6afa99f958c827b71645a51473d31241c1206"),
    (7100, 7, "fff7f4efece7e4dbd5d0cac3bbb1aba49b91887f776d61584f453b2f231b1106"),
    (7200, 7, "fff6f3eeeae6e2d9d3cec7c0b8afa9a2988f867d756b60564d443a2e231a1106"),
    (7250, 7, "fff5f2ede9e4e0d7d1ccc5beb6aca69f968c837a73695e544c42392d221a1005"),
    (7350, 7, "fff5f1ece8e2dfd5cfcac3bcb4aaa49d948a817871685c534a41382c22191005"),
    (7400, 6, "fff9f6f3efede5e0dbd5cec6bfb9b0a79e978e827970675c50473d31261b1106"),
    (7550, 6, "fff8f4f1ede9e2dcd8d1cac2bbb5aca39a928a7f756d64594e443b30241a1106"),
    (7650, 6, "fff7f4f0ebe8e0dad5cfc8bfb9b2a9a09890887d746b62574c433a2f241a1006"),
    (7700, 6, "fff7f3efeae6ded8d3cdc5bdb6afa79e958e857b716960554b42392e23191006"),
    (7800, 6, "fff6f2eee9e5ddd6d1cbc3bbb4ada59c938c837970675e544a41382d23191006"),
    (7850, 6, "fff6f2ede8e4dcd5d0c9c2bab3aca39a928a82786f665d534940372d22180f06"),
    (7900, 5, "fffaf8f6f4eee9e6e0dad3cec6bdb6aea59b93897e746b5f544a3f33271d1104"),
    (7950, 5, "fffaf7f4f1ebe6e2dcd5cfc9c1b8b1a9a0968e857a71675c51483d31271c1105"),
)

MECHANISM: Final = Minimax
