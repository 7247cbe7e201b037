"""What every mechanism is: parameters that cannot be wrong, and one method for each party.

========== ============================================================================
device     ``randomize`` (value to payload), ``spent`` (epsilon of the channel as built)
intake     ``payload_size``, ``check``
worker     ``tally_size``, ``tally``
query      ``debias``; ``predict`` before any data exist
========== ============================================================================

The same object serves all parties, so a probability is written once.  Generic versions here are
slow and obvious; a mechanism overrides them by vectorised ones, which must equal them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

from ..core.dataclass import dataclass, field_names
from ..core.errors import InvalidParameterError, InvalidTallyError
from ..core.randomness import Randomness
from ..core.typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
)
from .exact import THRESHOLD_BITS, parse_epsilon, require_ratio, spent_by

if TYPE_CHECKING:
    from typing import Self

Value = TypeVar("Value")
EpsilonLike: TypeAlias = str | int | float | Decimal | Fraction
Constant: TypeAlias = Fraction | tuple[Fraction, ...]  # an exact number that chance is drawn by
Numpy: TypeAlias = Any  # the numpy module, handed in by the collector
Array: TypeAlias = Any  # a numpy array

MAX_DOMAIN_SIZE: Final = 1 << 24  # items or grid points; a tally of 128 MiB, more is a typing error
MAX_REPORTS: Final = (
    1 << 31
)  # reports in one tally; keeps every cell of every mechanism in an int64
_SMALL_COLUMN: Final = 16  # payloads; below it a Python loop beats the fixed cost of numpy


class Checked(NamedTuple):
    """The valid *payloads* of a column, and how many were *rejected*, by reason."""

    payloads: bytes
    rejected: dict[str, int]


class Debiased(NamedTuple):
    """Unbiased totals over all reports and their variances, for a fixed population.

    Frequency oracle: devices per item and devices squared, shape (domain_size,); may be negative.
    Mean mechanism: the sum of grid positions and its variance, shape (1,).
    """

    totals: Array
    variances: Array


class Reach(NamedTuple):
    """The least and the most that one report can stand for, in the unit of the estimate.

    ``crowd``: only one honest report in so many bears upon the estimate, while a fake one always
    does; 1 where all do.
    """

    low: float
    high: float
    crowd: float = 1.0

    def in_unit(self, factor: float, offset: float = 0.0) -> Reach:
        """Return the reach in another unit, *factor* > 0."""
        return Reach(self.low * factor + offset, self.high * factor + offset, self.crowd)


class Coins(NamedTuple):
    """The *ones* of independent bits: in each report one of chance *own*, *others* of *other*."""

    ones: Array
    own: float
    other: float
    others: int


class Draws(NamedTuple):
    """The *counts* of what every device draws evenly, and the *chance* of each; shape (…, m)."""

    counts: Array
    chance: float


class NoiseLaw(NamedTuple):
    """What noise alone decides of tallies of honest reports, whatever the devices hold.

    ``lowest`` and ``highest`` are the least and the largest chance, over all values, that a report
    adds 1 to a cell, shape (tally_size,), or one float for all cells; no report adds more.
    ``lowest`` is stated only where cells are independent or negatively associated.  None: unknown.
    """

    coins: Coins | None = None
    draws: Draws | None = None
    lowest: Array | float | None = None
    highest: Array | float | None = None


@dataclass(frozen=True, init=False)
class Mechanism(ABC, Generic[Value]):
    """A local randomizer and its decoder.  Subclasses define ``name`` and say Source and Proof."""

    name: ClassVar[str]
    automatic: ClassVar[bool] = True  # whether ``auto`` may choose it
    spare: ClassVar[bool] = False  # whether ``auto`` takes it only where all others err more
    unbiased: ClassVar[bool] = True  # whether debiased totals are unbiased; a regression's are not
    # the properties whose exact numbers ``randomize`` draws by; all others follow from these and
    # from the parameters by integers and fractions
    constants: ClassVar[tuple[str, ...]] = ()

    epsilon: Fraction
    domain_size: int
    precision: int

    def __init__(
        self, epsilon: EpsilonLike, domain_size: int, *, precision: int = THRESHOLD_BITS
    ) -> None:
        """Refuse what cannot be private or useful.

        Args:   epsilon: nats per report, 1e-9 to 16 as a decimal.  domain_size: items or points.
                precision: bits of the probability grid; other than 128 only to enumerate in tests.
        Raises: InvalidParameterError: names the parameter.
        """
        self.prepare(epsilon, domain_size, precision)
        self.validate()

    def prepare(self, epsilon: EpsilonLike, domain_size: int, precision: int) -> None:
        """Check and set the parameters that every mechanism has.  Raises InvalidParameterError."""
        if isinstance(domain_size, bool) or not isinstance(domain_size, int):
            raise InvalidParameterError("domain_size", domain_size, "must be an integer")
        if not 2 <= domain_size <= MAX_DOMAIN_SIZE:
            rule = f"must be between 2 and {MAX_DOMAIN_SIZE}"
            raise InvalidParameterError("domain_size", domain_size, rule)
        if type(precision) is not int or not 1 <= precision <= THRESHOLD_BITS:
            rule = f"must be an integer from 1 to {THRESHOLD_BITS}"
            raise InvalidParameterError("precision", precision, rule)
        object.__setattr__(self, "epsilon", parse_epsilon(epsilon))
        object.__setattr__(self, "domain_size", domain_size)
        object.__setattr__(self, "precision", precision)

    def fix(self, name: str, number: object, *, least: int, most: int) -> None:
        """Set a parameter, an integer from *least* to *most*.  Raises InvalidParameterError."""
        if type(number) is not int or not least <= number <= most:
            raise InvalidParameterError(name, number, f"must be from {least} to {most}")
        object.__setattr__(self, name, number)

    @abstractmethod
    def require_value(self, value: Value) -> None:
        """Raise InvalidValueError unless *value* can be randomized.  It is never shown."""

    @classmethod
    def with_constants(
        cls, constants: Mapping[str, Constant], epsilon: EpsilonLike, domain_size: int, **own: int
    ) -> Self:
        """Return the mechanism of these parameters with *constants* that were worked out before.

        It is as checked as any other: constants that spend more than epsilon are refused.
        Raises: InvalidParameterError: names the parameter, or a constant that it has not.
        """
        for name in constants:
            if name not in cls.constants:
                raise InvalidParameterError(name, "...", f"is no constant of {cls.name}")
        mechanism = cls.__new__(cls)
        mechanism.__dict__.update(constants)
        cls.__init__(mechanism, epsilon, domain_size, **own)
        return mechanism

    def constant_values(self) -> dict[str, Constant]:
        """Return the numbers of ``constants`` by name, those that these parameters need."""
        return {name: getattr(self, name) for name in self.constants}

    @classmethod
    def fit(cls, epsilon: EpsilonLike, domain_size: int, payload_bits: int) -> Mechanism[Any]:
        """Return the mechanism at its best parameters for payloads of at most *payload_bits*.

        It may be unable to keep that limit: the caller looks at ``payload_size``.
        Raises: InvalidParameterError: these parameters give no mechanism.
        """
        return cls(epsilon, domain_size)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """The parameters beyond epsilon and domain_size that change what a payload means."""
        common = ("epsilon", "domain_size", "precision")
        return tuple(name for name in field_names(cls) if name not in common)

    @property
    def parameters(self) -> dict[str, int]:
        """The values of ``parameter_names``; part of a metric's digest."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    @abstractmethod
    def validate(self) -> None:
        """Raise InvalidParameterError if these parameters give no private and useful channel."""

    def no_channel(self) -> InvalidParameterError:
        """Return the error for parameters whose channel tells nothing, or all."""
        rule = f"gives no usable channel for domain_size={self.domain_size}"
        return InvalidParameterError("epsilon", self.epsilon, rule)

    @property
    @abstractmethod
    def spent(self) -> Fraction:
        """Epsilon of the channel as built, in nats per report: never above ``epsilon``."""

    @property
    def delta(self) -> Fraction:
        """Chance of a report that says more than ``spent`` allows: 0, privacy is pure by default.

        Exactly: Pr[report in S | v] <= e^spent Pr[report in S | w] + delta, for every set S.
        """
        return Fraction(0)

    @abstractmethod
    def randomize(self, value: Value, randomness: Randomness) -> bytes:
        """Return the payload for *value*: ``spent``-LDP, ``payload_size`` bytes.

        Raises: InvalidValueError: *value* is outside the domain; nothing was drawn.
                EntropyError: no randomness.
        """

    @property
    @abstractmethod
    def payload_size(self) -> int:
        """Bytes of a payload, the same for every value."""

    @abstractmethod
    def reason(self, payload: bytes) -> str | None:
        """Return why a payload of the right size is invalid, or None if some value can give it."""

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Return which payloads break each rule, by its ``reason``, as booleans of shape (n,).

        The first rule that a payload breaks is its reason.  An attacker sends whole columns of
        invalid ones, so every mechanism has its own version, without a loop.
        """
        reasons = np.array([self.reason(payload) or "" for payload in self.split(payloads)])
        return {reason: reasons == reason for reason in np.unique(reasons).tolist() if reason}

    def check(self, payloads: bytes, np: Numpy = None) -> Checked:
        """Keep the valid payloads of a column and count the others by reason.

        Args: payloads: n payloads end to end.  np: numpy, if there is one and n is large.
        """
        if np is not None and len(payloads) >= _SMALL_COLUMN * self.payload_size:
            valid = np.ones(len(payloads) // self.payload_size, dtype=bool)
            rejected: dict[str, int] = {}
            for reason, faulty in self.faults(payloads, np).items():
                if many := int((valid & faulty).sum()):
                    rejected[reason] = many
                    valid &= ~faulty
            if not rejected:
                return Checked(payloads, {})
            table = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
            return Checked(table[valid].tobytes(), rejected)
        rows = self.split(payloads)
        reasons = [self.reason(row) for row in rows]
        if not any(reasons):
            return Checked(payloads, {})
        kept = b"".join(row for row, reason in zip(rows, reasons, strict=True) if reason is None)
        return Checked(kept, dict(Counter(reason for reason in reasons if reason is not None)))

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """Cells of the tally, independent of the number of reports."""

    @property
    def fold_steps(self) -> int:
        """Cells that the fold of one report looks at; between equals, ``auto`` takes the fewest."""
        return 1

    @abstractmethod
    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Return the integer sufficient statistic of valid payloads: int64, shape (tally_size,)."""

    @abstractmethod
    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Turn the tally of *n* reports into unbiased totals and variances.

        Raises: InvalidTallyError: another length, or an entry that n reports cannot give.
        """

    def require_whole(self, tally: Array, n: int, np: Numpy) -> None:
        """Raise InvalidTallyError unless *n* reports can have left *tally* behind.

        This asks ``debias``; a mechanism whose cells add up to something says so too.
        """
        self.debias(tally, n, np)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Return what noise alone decides of *tally*, of any leading shape: nothing is known."""
        return NoiseLaw()

    def share_reach(self, item: int, np: Numpy) -> Reach | None:
        """Return what one report can stand for in the share of *item*; None: not known."""
        return None

    def group_reach(self, items: int) -> Reach | None:
        """Return what one report can stand for in the sum of *items* shares; None: not known."""
        return None

    def position_reach(self, np: Numpy) -> Reach | None:
        """Return what one report can stand for in the mean, in grid steps; None: not known."""
        return None

    def variation(self, np: Numpy) -> float:
        """Return the largest total variation between the laws of two values, or a bound of it.

        The bound: no channel of this epsilon has more than randomized response, tanh(epsilon / 2).
        """
        return math.tanh(float(self.spent) / 2)

    @abstractmethod
    def predict(self, n: int) -> float:
        """Return the standard error to expect from *n* reports, before any data exist.

        Frequency oracle: of a share, root mean square over the items.
        Mean mechanism: of the mean, as a part of the range.
        """

    def split(self, payloads: bytes) -> list[bytes]:
        """Return the payloads of a column one by one."""
        size = self.payload_size
        return [payloads[i : i + size] for i in range(0, len(payloads), size)]

    def require_tally(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return *tally* as int64, or raise InvalidTallyError if its shape or n is wrong."""
        cells = np.asarray(tally)
        if cells.dtype.kind not in "iu" or cells.shape != (self.tally_size,):
            raise InvalidTallyError(f"tally: must be {self.tally_size} integers")
        if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= MAX_REPORTS:
            raise InvalidTallyError(f"n: must be an integer from 0 to {MAX_REPORTS}")
        return cells.astype(np.int64)

    @cached_property
    def spent_nano(self) -> int:
        """``spent`` in whole nano-nats, rounded up: what the ledger is charged."""
        return -(-self.spent * 10**9 // 1)


class RatioMechanism(Mechanism[Value]):
    """A mechanism that spends the logarithm of its largest likelihood ratio."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | v] / Pr[payload | w] over all payloads and values: e^spent."""

    def validate(self) -> None:
        """Refuse a channel that spends more than epsilon."""
        require_ratio(self.likelihood_ratio, self.epsilon)

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return spent_by(self.likelihood_ratio, self.epsilon)


def width_of(values: int) -> int:
    """Return the bytes, 1, 2, 4 or 8, that hold any integer in [0, values)."""
    bits = (values - 1).bit_length()
    return next(width for width in (1, 2, 4, 8) if bits <= 8 * width)


def column(payloads: bytes, width: int, np: Numpy) -> Array:
    """Return fixed-width big-endian unsigned integers as an array of shape (n,)."""
    return np.frombuffer(payloads, dtype=f">u{width}")
