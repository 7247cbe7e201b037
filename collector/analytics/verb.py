"""What a verb is, what it is given, and the rows that verbs share.  Pure.

A verb is one file of ``verbs/``, whose name is that of the verb and which holds one ``VERB``.
Nothing lists the verbs: ``names`` reads the folder.  A verb is given the merged reports of each
slice and the query.

A device with a permanent response that sends the same payload in every epoch says no more in E
reports than in one.  Where n reports are of E epochs, they are groups of at most E alike, and the
variance of a sum of such is at most E times that of independent ones: errors are at most sqrt(E)
times as large (``widened``).  Responses of two layers repeat in part, for which this is a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from importlib import import_module
from math import hypot, sqrt
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec import Meta, Struct

from client_sdk.registry.domain import Domain
from client_sdk.registry.metric import Metric

from ..core.cells import Source
from ..core.remarks import Code, Remark, remark
from ..estimation.arrays import Ints
from ..estimation.estimate import Estimate, mean_of, normal_quantile
from .rows import ITEM, RAW, SHARE, TIME, Chart, Findings, Row, empty_row, row_of

_VERBS: Final = f"{__package__}.verbs"  # the folder: it stands above, so nothing here imports it
NOT_SAID: Final = "(not said)"  # the value of a dimension that a device did not tell
OTHER: Final = "(other)"  # the value of dimensions of groups that are told together
# The verbs that pages, reports and watches ask of their own accord.  What a verb is like, its own
# file says: nothing else tells one from another by its name.
ESTIMATE: Final = "estimate"  # of a request that names none
ACTIVES: Final = "actives"  # what it asks of a metric that shows its count, with AVERAGED
TOP: Final = "top_k"
TREND: Final = "trend"
SEGMENTS: Final = "segments"
COMPARE: Final = "compare"
LIFT: Final = "lift"
ADOPTION: Final = "adoption"
HISTOGRAM: Final = "histogram"
CDF: Final = "cdf"
QUANTILE: Final = "quantile"
AVERAGED: Final[Mapping[str, object]] = MappingProxyType({"average": True})
Devices: TypeAlias = Literal["all", "answered", "both"]
# For which devices intervals hold where a panel draws those that report: all; those that answered;
# of shares and means all, of quantiles and of the means of keys those that answered.
OF_ALL: Final = "all"
OF_ANSWERED: Final = "answered"
OF_BOTH: Final = "both"
MOST_FACTS: Final = 1_000  # comparisons or groups whose numbers are told
NO_TALLY: Final[Ints] = np.zeros(0, dtype=np.int64)
_Key = TypeVar("_Key")


class Origin(NamedTuple):
    """How reports came, with the epoch and the segment that everybody knows of them."""

    source: Source
    epoch: int
    segment: str  # canonical text, of all dimensions that the metric keeps apart


@dataclass(frozen=True)
class Slice:
    """The reports of one metric that share the values of all dimensions that were asked for.

    ``refusal`` says why there is no number: too few reports.  A verb that estimates must give a row
    with this reason, so that no report is missing from its answer.  One that only counts reports
    need not heed it, nor need sums over several slices.
    """

    metric: Metric
    dimensions: Mapping[str, str]  # in the order asked: "time" to a label, a dimension to a value
    n: int  # reports
    tally: Ints  # shape (metric.mechanism.tally_size,); NO_TALLY where there are ``definitions``
    epochs: tuple[int, ...]  # whose reports are here, ascending
    is_open: bool = False  # the last epoch is still running
    late: int = 0  # of the n reports, those folded later than a day after their epoch
    refusal: Remark | None = None
    reports: Mapping[int, int] = field(default_factory=dict)  # by epoch; empty: not known
    origins: Mapping[Origin, int] = field(default_factory=dict)  # reports of a known source
    excluded: int = 0  # reports that exclusions have taken out, not among the n
    merged_key_reports: int = 0  # of these, those of other keys that went with the one excluded
    # of a metric whose reports say what they are about, such as gradients their round: all that the
    # n reports say; NOT_SAID where one says nothing
    labels: frozenset[str] = frozenset()
    # of a metric that was reported under several definitions, where they are told as one: the
    # reports under each; there is no tally of all
    definitions: tuple[Slice, ...] = ()

    @property
    def mixture(self) -> Remark | None:
        """Why the mean of the reports is about nothing; None if they are all about the same."""
        if len(self.labels) < 2 and NOT_SAID not in self.labels:
            return None
        names = " and ".join(self.metric.domain.segment)
        few = f"{len(self.labels):,} values" if len(self.labels) > 1 else "no value"
        return remark(Code.MIXED, few=few, names=names)


@dataclass(frozen=True)
class VerbQuery:
    """What was asked of the slices: 1 - level, post-processing and the verb's own options."""

    alpha: float
    postprocess: str = RAW
    options: Any = field(default=None)  # a frozen struct of the verb's own type
    segments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # grouped by, in order
    metrics: tuple[Metric, ...] = ()  # asked about, in order: slices are of those that have reports
    pause: Callable[[], None] = lambda: None  # between long steps; raises if time is up


def each_definition(part: Slice) -> tuple[Slice, ...]:
    """Return the reports of a slice by the definition that they were made under."""
    return part.definitions or (part,)


def united(definitions: Iterable[Sequence[Slice]], metric: Metric) -> list[Slice]:
    """Return slices with the reports under all *definitions* of *metric*, in order."""
    return in_order(
        parts[0]
        if all(part.metric.digest == metric.digest for part in parts)
        else replace(
            merged(parts, parts[0].dimensions),
            metric=metric,
            refusal=parts[0].refusal,
            tally=NO_TALLY,
            definitions=tuple(part for part in parts if part.n),
        )
        for parts in alike(part for slices in definitions for part in slices)
    )


def alike(slices: Iterable[Slice], but: str | None = None) -> list[list[Slice]]:
    """Return *slices* in groups that share their values of all dimensions *but* one."""
    groups: dict[tuple[tuple[str, str], ...], list[Slice]] = {}
    for part in slices:
        key = tuple(item for item in part.dimensions.items() if item[0] != but)
        groups.setdefault(key, []).append(part)
    return list(groups.values())


def merged(parts: Sequence[Slice], dimensions: Mapping[str, str]) -> Slice:
    """Return the reports of at least one slice together, as the slice of *dimensions*."""
    by_digest: dict[bytes, list[Slice]] = {}
    for each in (each for part in parts for each in each_definition(part)):
        by_digest.setdefault(each.metric.digest, []).append(each)
    is_single = len(by_digest) == 1 and not parts[0].definitions
    return replace(
        parts[0],
        dimensions=dimensions,
        n=sum(part.n for part in parts),
        tally=reduce(np.add, (part.tally for part in parts)) if is_single else NO_TALLY,
        definitions=()
        if is_single
        else tuple(merged(alike, dimensions) for alike in by_digest.values()),
        epochs=tuple(sorted({epoch for part in parts for epoch in part.epochs})),
        is_open=any(part.is_open for part in parts),
        late=sum(part.late for part in parts),
        refusal=None,
        reports=_added(part.reports for part in parts),
        origins=_added(part.origins for part in parts),
        excluded=sum(part.excluded for part in parts),
        merged_key_reports=sum(part.merged_key_reports for part in parts),
        labels=frozenset().union(*(part.labels for part in parts)),
    )


def without(whole: Slice, part: Slice, dimensions: Mapping[str, str]) -> Slice:
    """Return the reports of *whole* that are not those of *part*, as the slice of *dimensions*.

    Of their epochs no less is known than that they are among those of the whole.
    """
    taken = {each.metric.digest: each for each in each_definition(part)}
    rest = (
        without(each, taken[each.metric.digest], dimensions)
        if each.metric.digest in taken
        else each
        for each in whole.definitions
    )
    return replace(
        whole,
        dimensions=dimensions,
        n=whole.n - part.n,
        tally=NO_TALLY if whole.definitions else whole.tally - part.tally,
        reports=Counter(whole.reports) - Counter(part.reports),
        definitions=tuple(each for each in rest if each.n),
    )


def _added(each: Iterable[Mapping[_Key, int]]) -> Mapping[_Key, int]:
    total = Counter[_Key]()  # one, as a sum of many makes as many, each longer than the last
    for reports in each:
        total.update(reports)
    return +total


def in_order(slices: Iterable[Slice]) -> list[Slice]:
    """Return *slices* in the order of time, and of values as they are declared."""
    return sorted(slices, key=_place)


def _place(part: Slice) -> tuple[Any, ...]:
    """Return where a slice stands: what was not said, and what is told together, come last."""
    places: list[Any] = []
    for name, value in part.dimensions.items():
        declared = part.metric.segments.get(name, ())
        last = len(declared) + (value == OTHER)
        place: Any = value if name == TIME else declared.index(value) if value in declared else last
        places.append(place)
    return tuple(places)


Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]  # as options have it


class NoOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options of a verb that has none."""


def never(*_: Any) -> bool:
    """Return False, whatever is asked."""
    return False


def always(*_: Any) -> bool:
    """Return True, whatever is asked: such as that rows are averages over reports."""
    return True


def is_plain(metric: Metric) -> bool:
    """Return whether values are numbers or items, of which no question of their type says more."""
    return bool(metric.domain.grid) or metric.domain.verb == Domain.verb


@dataclass(frozen=True)
class Offer:
    """How a form offers a verb: in which words, after which others, and of which metrics."""

    question: str  # in plain words
    place: int  # among all questions, ascending
    words: Callable[[Metric, str], str] | None = None  # the question of a metric, about a dimension
    is_usual: Callable[[Metric], bool] = always  # of a metric it stands among the first questions
    has_sense: Callable[[Metric], bool] = always  # it is worth offering
    needs_partner: Callable[[Metric], bool] = never  # it is of a metric and another one
    may_pair: Callable[[Metric, Metric], bool] = always  # whether the second can be the other
    is_likely_pair: Callable[[Metric, Metric], bool] = never  # whether people mean the second
    items: int = 20  # of which one answer says something; where there are more, one is chosen
    no_item: str = "all of them"  # what an answer is of if no item is chosen
    joins_stretches: bool = False  # by default rows are of stretches of time that suit the range
    typed: str = ""  # words by which people who type ask for it


@dataclass(frozen=True)
class Verb:
    """How one kind of question is answered, and of which metrics it can be asked.

    ``answer`` gets the slices in the order of metrics, then of dimensions; it raises QueryError
    with the field of the request at fault, and InvalidTallyError.  ``refusal`` tells why it cannot
    be asked of a metric, with a verb or a declaration that would work, or returns None.
    """

    answer: Callable[[Sequence[Slice], VerbQuery], Findings]
    refusal: Callable[[Metric], str | None]
    options: type[Struct] = NoOptions
    postprocess: tuple[str, ...] = (RAW,)
    least_metrics: int = 1
    most_metrics: int = 1
    needs_time: bool = False  # slices by epochs: asked for by dimension "time" if it is missing
    estimates: bool = True  # rows are shares and means of slices, to be held against the need
    combines: Callable[[Any, Any], bool] = never  # of a domain, with these options: rows are of
    # averages over reports, of which the average over several definitions is one again
    unites: bool = False  # where it combines, it is given the slices of all definitions as one
    counts: Callable[[Any], bool] = never  # with these options it only counts reports, and so is
    # given the slices of all definitions at once
    joins: bool = False  # of a funnel and a retention, rows are of what one report says together
    # of a metric, with these options: OF_ALL, OF_ANSWERED or OF_BOTH
    holds: Callable[[Metric, Any], Devices] = lambda _metric, _options: OF_ALL
    merges_small: bool = True  # groups with too few reports are told as one, *(other)*
    needs_segment: bool = False  # rows are of the values of one dimension of segments
    # of a metric, the dimensions that it is about if none is chosen; else it is the first of all
    about: Callable[[Metric], Sequence[str]] = lambda _metric: ()
    # of a metric, these options and the dimensions of segments asked for: what was left out
    defaults: Callable[[Metric, Mapping[str, object], Sequence[str]], Mapping[str, object]] = (
        lambda _metric, _options, _dimensions: {}
    )
    compares: bool = False  # rows hold a stretch of time, or a segment, against another
    ranks_segments: bool = False  # intervals of segments hold at once, so some are surely higher
    counts_devices: bool = False
    counts_attributes: bool = False  # of a record, rows say how many reports are about which
    is_bounded: bool = False  # what one report weighs in each number is known
    chart: Chart = Chart.ROWS
    title: str = ""  # of its panel; "": the first line of its file
    panel: Mapping[str, Any] = field(default_factory=dict)  # its options on the page of a metric
    offer: Offer = Offer("", 1_000, is_usual=never)  # what its file says first, after all others
    most_slices: int = 50_000  # of one question, so that none keeps a processor for long
    # of a group of a metric, with these options: in counters that take as long to read
    cost: Callable[[Metric, Any], int] = lambda _metric, _options: 0


@cache
def names() -> tuple[str, ...]:
    """Return the verbs, in the order of the alphabet."""
    return tuple(sorted(module.name for module in iter_modules(import_module(_VERBS).__path__)))


@cache
def load(name: str) -> Verb:
    """Return the verb *name*.  Raises LookupError: there is none."""
    if name not in names():
        raise LookupError(name)
    verb: Verb = import_module(f"{_VERBS}.{name}").VERB
    return verb


def summary(name: str) -> str:
    """Return what the verb *name* answers, in one line."""
    return (import_module(f"{_VERBS}.{name}").__doc__ or "").partition("\n")[0]


def repeats_of(part: Slice) -> int:
    """Return how many reports of a slice may share their noise."""
    return 1 if part.metric.policy is None else max(len(part.epochs), 1)


def widened(
    part: Slice, estimates: Sequence[Estimate], alpha: float, fraction: float = 1.0
) -> list[Estimate]:
    """Return *estimates* of a slice, which took its reports for independent, with their errors.

    Args: fraction: of the devices, those that the shares are of.
    """
    factor = sqrt(repeats_of(part))
    if factor == 1:
        return sampled(part, estimates, alpha, fraction)
    wider = [
        Estimate(
            estimate.value,
            factor * estimate.std_error,
            estimate.value - factor * (estimate.value - estimate.ci_low),
            estimate.value + factor * (estimate.ci_high - estimate.value),
        )
        for estimate in estimates
    ]
    return sampled(part, wider, alpha, fraction)


def draw_law(part: Slice) -> float:
    """Return the variance of a share f of devices that a panel drew, divided by f (1 - f)."""
    metric = part.metric
    return (1 - metric.sample.share) * metric.drawn_together(part.epochs) / max(part.n, 1)


def spread_of_share(share: float) -> float:
    """Return the variance of a yes or no that this *share* of devices hold, cut off at its ends."""
    inside = min(max(share, 0.0), 1.0)
    return inside * (1 - inside)


def sampled(
    part: Slice,
    estimates: Sequence[Estimate],
    alpha: float,
    fraction: float = 1.0,
    spread: Callable[[float], float] | None = None,
) -> list[Estimate]:
    """Return *estimates* of shares or means of those who reported as such of all devices.

    Where a panel draws a part π of the devices, the share f of the n that it drew has the variance
    (1 - π) f (1 - f) / n around that of all, at most m times as much if one draw decides over m
    epochs; a mean has no more than the share of its place in the range.  As in a score interval,
    each limit takes it at the limit.

    Args:   fraction: of the devices, those that the shares are of.
            spread: the most that values can scatter whose mean is this number, as a variance;
                without it, of values in the range of the metric.
    Source: Cochran, Sampling Techniques, 3rd edition, 1977, eq. 2.13; Wilson, JASA 1927.
    """
    metric = part.metric
    if metric.sample.share >= 1:
        return list(estimates)
    law = draw_law(part) / max(fraction, 1 / part.n)
    least, extent = metric.domain.least, metric.domain.extent

    def error(number: float) -> float:
        if spread is not None:
            return sqrt(law * spread(number))
        return extent * sqrt(law * spread_of_share((number - least) / extent))

    return [with_draw(estimate, alpha, error) for estimate in estimates]


def with_draw(e: Estimate, alpha: float, error: Callable[[float], float]) -> Estimate:
    """Return an estimate with the *error* that a draw of devices adds, at each limit its own."""
    z = normal_quantile(alpha)
    return Estimate(
        e.value,
        hypot(e.std_error, error(e.value)),
        e.value - hypot(e.value - e.ci_low, z * error(e.ci_low)),
        e.value + hypot(e.ci_high - e.value, z * error(e.ci_high)),
    )


def devices_of(part: Slice) -> float:
    """Return how many devices the reports of a slice stand for, whatever a panel draws."""
    return part.n / part.metric.sample.share


def mean_of_drawn(
    estimates: Sequence[Estimate], weights: Sequence[float], laws: Sequence[float], alpha: float
) -> Estimate:
    """Return the mean over all devices of what independent *estimates* are of.

    Args:    weights: the devices that the reports of each stand for.
             laws: what a draw of devices adds to its variance, for each square it is apart.
    Derived: how many devices a panel draws is chance, so as of a ratio, x_i - x counts beside s_i.
    """
    centre = np.average([each.value for each in estimates], weights=weights)

    def with_its_draw(each: Estimate, law: float) -> Estimate:
        apart = sqrt(law) * abs(each.value - centre)
        return with_draw(each, alpha, lambda _: apart)

    return mean_of(list(map(with_its_draw, estimates, laws)), weights)


def of_answered(_metric: Metric, _options: Any) -> Devices:
    """Return that rows are of the devices that answered alone."""
    return OF_ANSWERED


def rows_of(
    part: Slice,
    names: Sequence[Mapping[str, str]],
    estimates: Sequence[Estimate],
    alpha: float,
    unit: str = SHARE,
    *,
    simultaneous: bool = False,
    notes: Sequence[Remark] = (),
    postprocess: str = RAW,
) -> list[Row]:
    """Return a row of a slice that may have numbers for each of *names*.

    Args: names: dimensions within the slice.  notes, postprocess: of every row.
    """
    return [
        row_of(
            {**part.dimensions, **name},
            estimate,
            part.n,
            alpha,
            unit,
            is_open=part.is_open,
            simultaneous=simultaneous,
            notes=tuple(notes),
            postprocess=postprocess,
        )
        for name, estimate in zip(names, estimates, strict=True)
    ]


def refused_rows(
    part: Slice,
    names: Sequence[Mapping[str, str]],
    alpha: float,
    unit: str = SHARE,
    *,
    refusal: Remark | None = None,
    simultaneous: bool = False,
) -> list[Row]:
    """Return rows without numbers, as *refusal* says why or else that of the slice.

    Args: names: dimensions within the slice.
    """
    why = refusal or part.refusal or part.mixture
    assert why is not None  # noqa: S101 - the caller has looked
    return [
        empty_row(
            {**part.dimensions, **name},
            part.n,
            alpha,
            unit,
            why,
            is_open=part.is_open,
            simultaneous=simultaneous,
        )
        for name in names
    ]


def named(items: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the dimensions of *items* within a slice."""
    return [{ITEM: item} for item in items]
