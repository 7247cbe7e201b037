"""One metric: a question with its domain, mechanism and epoch length, named by its digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property

from ..core import compact_json
from ..core.dataclass import dataclass
from ..core.epoch import LENGTHS, epoch_of, epoch_start
from ..core.limits import DIGEST_SIZE
from ..core.typing import TYPE_CHECKING, Any, Final, NamedTuple
from .keys import AGGREGATES, ANY, METRIC, meant_parameters

if TYPE_CHECKING:
    from datetime import date
    from fractions import Fraction

    from ..mechanisms import Mechanism
    from .domain import Domain
    from .encodings import Encoded
    from .longitudinal import Longitudinal

DIMENSION: Final = "automation"  # that SEGMENT adds to every metric; the device fills it
PEOPLE, AUTOMATED = "people", "automated"  # its values
ROUND: Final = "round"  # that a metric with ``learning`` has; each report says its own

MEANING: Final = tuple(key.name for key in METRIC if key.in_digest)
COUNT: Final = "count"  # what a metric shows: how many devices reported

_FINEST: Final = 20  # largest denominator of a share in words


class Sample(NamedTuple):
    """Which devices report: a *share* of them, drawn anew for each *period*."""

    share: float = 1.0
    period: str = "life"  # or "7d", "28d"
    is_least: bool = False  # of several shares, as registries draw different ones

    @property
    def in_words(self) -> str | None:
        """The share of devices that answer, such as "1 in 3 devices"; None if all do."""
        if self.share >= 1:
            return None
        from fractions import Fraction  # devices show no shares

        part = Fraction(self.share).limit_denominator(_FINEST)
        if not 0 < part < 1:  # "none" or "all" would be wrong
            part = Fraction(1, round(1 / self.share)) if part == 0 else Fraction(99, 100)
        often = {"7d": "answers each week", "28d": "answers each four weeks"}.get(
            self.period, "answers, the same ones always"
        )
        return f"a sample of the devices ({part.numerator} in {part.denominator:,}) {often}"

    @property
    def why_no_totals(self) -> str | None:
        """Why it is not known how many devices the reports stand for; None if it is."""
        if not self.is_least:
            return None
        return "is drawn for another part of the devices in another registry"


@dataclass(frozen=True)
class Metric:
    """A metric as registered.  Two metrics with equal ``digest`` mean the same by a report."""

    name: str
    title: str
    question: str
    type: str
    domain: Domain
    mechanism_name: str
    mechanism: Mechanism[Any]
    every: str
    longitudinal: str
    segments: Mapping[str, tuple[str, ...]]  # dimension to its closed vocabulary
    expected_devices: int
    min_reports: int
    owner: str
    expires: date
    policy: Longitudinal | None = None  # of a metric that is not ``fresh``
    aggregate: str | None = None  # one of AGGREGATES: all values of an epoch make one report
    otherwise: Encoded | None = None  # reported of an epoch without a value; None: nothing is
    need: Fraction | None = None  # half-width wished of the 95 % interval, in the answers' unit
    shape: str = ANY  # one of SHAPES; it changes answers, and no report
    robust: bool = True  # false: that few fake devices can move answers far is known and accepted
    weight: int = 1  # of its place in the panel, if the registry has one
    panel: bool = True  # false: it reports whatever the panel draws
    sample: Sample = Sample()  # as the panel of the registry gives it; devices do not read it
    show: str = ""  # COUNT, or "" for what devices say; it changes answers, and no report
    group: str = ""  # under which pages show it; "" for none
    app: str = ""  # of the registry
    separate: bool = False  # the app is in the digest, so that no other app's reports join its own
    shared: bool = False  # another app of the collector has a metric of this name

    @property
    def address(self) -> str:
        """The name by which people ask for it: with its app where the name alone is of several."""
        return f"{self.app}/{self.name}" if self.shared else self.name

    @property
    def epsilon(self) -> Fraction:
        """Nats per report, as asked for; the mechanism's ``spent`` is what is charged."""
        return self.mechanism.epsilon

    def encode(self, value: object) -> Encoded:
        """Return what the mechanism randomizes for *value*.  Raises InvalidValueError."""
        return self.domain.encode(value, self.name)

    @cached_property
    def most_nano(self) -> int:
        """The most that one report is charged, in nano-nats."""
        if self.policy is None:
            return self.mechanism.spent_nano
        return max(self.policy.nano_after(reports) for reports in (0, 1))

    @cached_property
    def whole_delta(self) -> int:
        """Delta of one report in whole 1e-12, rounded up: what is charged."""
        delta = self.mechanism.delta
        return -(-delta * 10**12 // 1) if delta else 0  # most have none, and fractions are slow

    @property
    def expected_reports(self) -> int:
        """How many of the expected devices report in an epoch: those that the panel draws."""
        return max(int(self.expected_devices * self.sample.share), 1)

    def drawn_together(self, epochs: Iterable[int]) -> int:
        """Return the most of *epochs* for which one draw decides that a device reports."""
        every, period = self.every, self.sample.period
        if period not in LENGTHS or every not in LENGTHS:
            return max(len(tuple(epochs)), 1)
        periods = [epoch_of(period, epoch_start(every, epoch)) for epoch in epochs]
        return max(map(periods.count, set(periods)), default=1)

    @property
    def aggregation(self) -> str | None:
        """What of the values of an epoch is reported, in words; None if it is one value."""
        if self.aggregate is None:
            return None
        words = AGGREGATES[self.aggregate]
        if self.aggregate == "max":
            words = self.domain.largest or words
        if self.otherwise is None:
            return words
        return f"{words}, or else {self.domain.in_words(self.otherwise)}"

    @cached_property
    def meaning(self) -> str:
        """All that changes the meaning of a report, in canonical form: sorted, compact JSON."""
        otherwise = self.otherwise
        own = {
            "domain": self.domain.canonical(),
            "epsilon": str(self.epsilon),
            "mechanism": meant_parameters(
                {"name": self.mechanism_name, **self.mechanism.parameters}
            ),
            "otherwise": None if otherwise is None else self.domain.as_given(otherwise),
        }
        parts = {key: own[key] if key in own else getattr(self, key) for key in MEANING}
        return meaning_of(parts, self.app if self.separate else None)

    @property
    def epsilon_permanent(self) -> str | None:
        """Nats of all reports of one value, of a metric of two layers."""
        if self.policy is None or not self.policy.hides_changes:
            return None
        return str(self.policy.oracle.epsilon)

    @cached_property
    def digest(self) -> bytes:
        """First 6 bytes of SHA-256 over ``meaning``: the metric's name on the wire and in Redis."""
        return digest_of(self.meaning)


def meaning_of(parts: Mapping[str, object], app: str | None) -> str:
    """Return the meaning of a metric from the *parts* that are not None.

    Args: app: the application, if its reports are kept apart.
    """
    form = {key: part for key, part in {**parts, "app": app}.items() if part is not None}
    return compact_json.dumps(form, sort_keys=True)


def digest_of(meaning: str) -> bytes:
    """Return the first 6 bytes of SHA-256 over *meaning*."""
    return sha256(meaning.encode("ascii"))[:DIGEST_SIZE]


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 of *data*, by the interpreter's own: hashlib loads OpenSSL, of 4 MB."""
    for name in ("_sha2", "_sha256"):  # of 3.12 on, and before; a builder may leave them out
        with suppress(ImportError):
            own: Any = __import__(name)
            return bytes(own.sha256(data).digest())
    from hashlib import sha256 as usual

    return usual(data).digest()
