"""Policies for reporting a value again and again, as wrappers over any frequency oracle.

A *fresh* metric has none: its mechanism draws new noise for every report, and every report adds up.

============= ====================================================== ==========================
permanent     one payload a value, drawn once and sent again         ``spent_value`` a value
two_layer     the permanent payload, or with 1-s one that knows      ``spent_report`` for the
              nothing: the collector never knows which               first, then ``spent_value``
============= ====================================================== ==========================

A permanent payload is not stored.  It is drawn again from the secret of the device, by
``permanent_randomness``.  A guarantee about permanent responses is therefore computational: it
rests on SHAKE-256 and on the secret never leaving the device.

Source: Erlingsson, Pihur, Korolova, *RAPPOR*, CCS 2014, for permanent and instantaneous responses;
    NIST FIPS 202, SHA-3 Standard, for SHAKE-256, an extendable-output function.  The mixture of
    ``TwoLayer`` is derived in ``mechanisms/mixture.py``.
Proof: write E for the oracle's largest ratio and D for the number of distinct values of a device.
    Two histories repeat alike if at the same reports they repeat the value of the same earlier
    report: 010 and 212 do; 010 and 012, which change at the same reports, do not.
    Permanent: a device's reports are D independent payloads, repeated.  For two histories that
    repeat alike the ratio is at most E^D.  For others it is not bounded.
    TwoLayer, one report: see ``mechanisms/mixture.py``.
    TwoLayer, many reports: they are a random function of D permanent payloads, so for two
    histories that repeat alike the ratio is at most E^D, however many reports there are; reports
    of D values, one each, are independent, so there it is at most e^(D·spent_report).  For others
    it grows with the reports beyond any bound.
    Two reports of one value may cost more than 2·spent_report, because the same payload twice is a
    sign that it is the permanent one; they never cost more than spent_value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.limits import SECRET_SIZE
from ..core.randomness import ByteRandomness, Randomness
from ..core.typing import ClassVar, Final
from ..mechanisms import EpsilonLike, FrequencyOracle, Mixture, parse_epsilon

ITEM_SIZE: Final = 4  # bytes of an encoded item, big-endian; above MAX_DOMAIN_SIZE
_FIRST_SQUEEZE: Final = 256  # bytes; a GRR or a hash report needs less


def _nano(epsilon: Fraction) -> int:
    """Return *epsilon* in whole nano-nats, rounded up."""
    return -(-epsilon * 10**9 // 1)


@dataclass(frozen=True)
class Longitudinal(ABC):
    """A policy: what a device sends when it is asked again."""

    name: ClassVar[str]
    leak: ClassVar[str]  # what repeated reports reveal, one sentence for the docs
    hides_changes: ClassVar[bool] = False  # whether a value has another epsilon than a report

    oracle: FrequencyOracle

    @property
    def mechanism(self) -> FrequencyOracle:
        """The oracle as the collector sees it: same payloads and tally, the right channel."""
        return self.oracle

    @property
    def spent_report(self) -> Fraction:
        """Epsilon of a single report, in nats."""
        return self.mechanism.spent

    @property
    def spent_value(self) -> Fraction:
        """Epsilon of all reports of one value, in nats, for histories that repeat alike."""
        return self.oracle.spent

    def spent_after(self, reports: int) -> Fraction:
        """Return the epsilon of *reports* reports of one unchanged value, in nats."""
        return self.spent_value if reports > 1 else reports * self.spent_report

    def nano_after(self, reports: int) -> int:
        """Return what one more report of a value costs that had *reports*, in nano-nats."""
        return _nano(self.spent_after(reports + 1)) - _nano(self.spent_after(reports))

    @abstractmethod
    def randomize(self, value: int, permanent: Randomness, fresh: Randomness) -> bytes:
        """Return the payload for *value*.

        Args:   permanent: ``permanent_randomness`` of the value, from its first byte.
                fresh: the system's randomness.
        Raises: InvalidValueError: *value* is outside the domain; nothing was drawn.
        """


class Permanent(Longitudinal):
    """One payload a value, sent again whenever the value is reported."""

    name = "permanent"
    leak = (
        "The collector sees at which reports the value changed, whether an earlier one came back, "
        "and can link the reports of a device by their payloads; a new answer is charged and a "
        "repeated one is not, so a device whose answer changes often may go silent on other "
        "questions, which shows."
    )

    def randomize(self, value: int, permanent: Randomness, fresh: Randomness) -> bytes:
        """Return the oracle's payload from *permanent* alone."""
        return self.oracle.randomize(value, permanent)


@dataclass(frozen=True)
class TwoLayer(Longitudinal):
    """The permanent payload with probability s, else a fresh payload that knows nothing.

    ``oracle.epsilon`` is the epsilon of a value for life, ``epsilon_report`` of one report.
    """

    name: ClassVar[str] = "two_layer"
    hides_changes: ClassVar[bool] = True
    leak: ClassVar[str] = (
        "Noise hides a single change, but over many reports the collector sees which payload "
        "recurs, hence that the value changed, and can link the reports of a device; a new answer "
        "is charged and a repeated one is not, so a device whose answer changes often may go "
        "silent on other questions, which shows."
    )

    epsilon_report: EpsilonLike

    def __post_init__(self) -> None:
        """Refuse an oracle that is not pure, and an epsilon for which no s is left."""
        if not self.oracle.pure:
            raise InvalidParameterError("mechanism", self.oracle.name, "has no pure channel")
        object.__setattr__(self, "epsilon_report", parse_epsilon(self.epsilon_report))
        if not self.mechanism.epsilon < self.oracle.epsilon:
            rule = f"must be below epsilon={self.oracle.epsilon}"
            raise InvalidParameterError("epsilon_report", self.epsilon_report, rule)
        self.mechanism.validate()

    @cached_property
    def mechanism(self) -> Mixture:
        """The mixture: same payloads and tally, its own channel."""
        return Mixture(self.oracle, self.epsilon_report)

    def randomize(self, value: int, permanent: Randomness, fresh: Randomness) -> bytes:
        """Return the permanent payload or, which looks alike, a fresh one that knows nothing."""
        self.oracle.require_value(value)
        if fresh.bernoulli(self.mechanism.kept):
            return self.oracle.randomize(value, permanent)
        return self.mechanism.blur(fresh)


def permanent_randomness(secret: bytes, digest: bytes, encoded: bytes) -> ByteRandomness:
    """Return the primitives over SHAKE-256(secret || digest || encoded): the same every time.

    Args:   secret: SECRET_SIZE bytes.  digest: of the metric, of fixed size.
            encoded: what the response is permanent for; ``encode_item`` of a value.
    Raises: InvalidParameterError: the secret has another size; it is not shown.
    """
    if len(secret) != SECRET_SIZE:
        raise InvalidParameterError("secret", "...", f"must be {SECRET_SIZE} bytes")
    return ByteRandomness(_squeeze(secret + digest + encoded))


def encode_item(item: int) -> bytes:
    """Return the fixed-width form of *item* from which its permanent response is derived."""
    return item.to_bytes(ITEM_SIZE, "big")


def _squeeze(absorbed: bytes) -> Callable[[int], bytes]:
    """Return a reader of the SHAKE-256 stream of *absorbed*, no byte twice."""
    import hashlib  # it loads OpenSSL: 4 MB that reports of fresh metrics need not pay for

    shake = hashlib.shake_256(absorbed)
    squeezed, position = b"", 0

    def read(count: int) -> bytes:
        nonlocal squeezed, position
        start, position = position, position + count
        if position > len(squeezed):  # hashlib squeezes from the beginning only
            squeezed = shake.digest(max(2 * position, _FIRST_SQUEEZE))
        return squeezed[start:position]

    return read
