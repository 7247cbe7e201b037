"""The common strings of an open vocabulary, found without a list, and the shares of named ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Final

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from client_sdk.mechanisms import TextMechanism
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import normal_quantile
from ...estimation.precision import ALPHA
from ..rows import LIKELY, SURE, Findings, Row
from ..text.certainty import FALSE, Shares, sorted_out
from ..text.search import Plan, Search, candidates
from ..text.sketches import shares_of, sketches_of
from ..verb import (
    Offer,
    Slice,
    Verb,
    VerbQuery,
    merged,
    named,
    of_answered,
    refused_rows,
    rows_of,
)

_PRINTABLE: Final = "".join(map(chr, range(32, 127)))
_USELESS: Final = (
    0.5  # share; where only strings more common than that would be found, none is told
)

_LIKELY: Final = remark(Code.LIKELY, percent=100 * FALSE)
_PERHAPS_ZERO: Final = remark(Code.PERHAPS_ZERO)

Share = Annotated[float, Meta(gt=0, lt=1)]
Text = Annotated[str, Meta(max_length=128)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How common, how many, of which characters; or the shares of ``candidates``, without a search.

    Without ``threshold`` all strings are wanted that somebody holds for sure, or ``likely``.
    """

    threshold: Share | None = None
    k: Annotated[int, Meta(ge=1, le=100_000)] = 100
    likely: bool = True
    candidates: Annotated[list[Text], Meta(max_length=100_000)] = field(default_factory=list)
    alphabet: Annotated[str, Meta(min_length=1, max_length=128)] = _PRINTABLE


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a string, the most common first.

    Found strings have at least the threshold by their estimate.  The intervals hold at once, with
    1 - alpha, for all strings that were looked up, shown or not; what has one above 0 is sure.
    Others are likely: of all such strings a tenth is expected to be noise.  Those that are sure
    come first where more are found than k.  A slice of too few reports to find the threshold is
    refused, with the reports that are needed.

    Raises: QueryError: ``options.candidates``.
    """
    rows: list[Row] = []
    facts: list[dict[str, object]] = []
    able = [part for part in slices if part.refusal is None]
    searching = None if query.options.candidates or not able else _Searching.of(able, query)
    for part in slices:
        if part.refusal is not None:
            rows += refused_rows(part, [{}], query.alpha, simultaneous=True)
            continue
        query.pause()
        part_rows, fact = (
            _of_candidates(part, query, query.alpha / len(able))
            if searching is None
            else searching.answered(part)
        )
        rows += part_rows
        facts.append({"dimensions": dict(part.dimensions), **fact})
    return Findings(tuple(rows), facts={"slices": facts})


@dataclass(frozen=True)
class _Searching:
    """A search of each of several groups, and one of all of them together.

    What they share is found in all together, where it stands out most; a string of one group alone
    in the search of that group.  A group has looked up what either search has, and its intervals
    hold for all of that at once.
    """

    plan: Plan
    parts: Sequence[Slice]
    query: VerbQuery

    @classmethod
    def of(cls, parts: Sequence[Slice], query: VerbQuery) -> _Searching:
        """Return the search that answers *query* about *parts*, which have enough reports."""
        plan = _plan(parts[0].metric, query.options, query.alpha, len(parts))
        return cls(plan, parts, query)

    @cached_property
    def of_all(self) -> Search:
        """What a search of all groups together comes to: what is sure there, or likely."""
        whole = merged(self.parts, {})
        levels = sketches_of(self.plan.mechanism, whole.tally, whole.n)
        search = candidates(levels, self.plan, self.query.pause)
        sure, others = sorted_out(levels, self.plan, search)
        return search._replace(texts=[*sure, *others])

    def answered(self, part: Slice) -> tuple[list[Row], dict[str, object]]:
        """Return the rows of a slice, and what is known of it."""
        options: Options = self.query.options
        plan, alpha = self.plan, self.query.alpha
        threshold = _USELESS if options.threshold is None else options.threshold
        detectable = plan.detectable(part.n)
        fact: dict[str, object] = {
            "detectable_share": min(detectable, 1.0),
            "levels": plan.mechanism.levels,
            "longest": plan.mechanism.domain_size,
            "reports_needed": plan.reports_needed(threshold),
        }
        if detectable > threshold:
            refusal = _shortage(plan, part.n, threshold)
            return refused_rows(part, [{}], alpha, refusal=refusal), fact
        levels = sketches_of(plan.mechanism, part.tally, part.n)
        search = candidates(levels, plan, self.query.pause)
        if plan.groups > 1:
            search = search.beside(self.of_all)
        sure, others = sorted_out(levels, plan, search)
        shown = _most_common(sure, options.threshold, options.k)
        room = options.k - len(shown) if options.likely else 0
        more = _most_common(others, options.threshold, room)
        fact["strings_looked_up"] = sum(search.looked_up)
        fact |= {SURE: len(shown), LIKELY: len(more), "false_among_likely": FALSE}
        both = _most_common(shown | more, None, options.k)
        marks = {text: SURE if text in shown else LIKELY for text in both}
        rows = zip(marks.values(), _rows(part, both, alpha, marks), strict=True)
        return [replace(row, certainty=mark) for mark, row in rows], fact


def _most_common(estimates: Shares, least: float | None, k: int) -> Shares:
    """Return the first *k* of those with at least a share, the most common first."""
    common = [each for each in estimates.items() if each[1].value >= (least or 0.0)]
    return dict(sorted(common, key=lambda each: (-each[1].value, each[0]))[:k])


def _of_candidates(
    part: Slice, query: VerbQuery, alpha: float
) -> tuple[list[Row], dict[str, object]]:
    """Return a row for each of the first k candidates, the most common first, and their number."""
    domain, levels = part.metric.domain, sketches_of(_mechanism(part.metric), part.tally, part.n)
    texts = [domain.encode(text, "options.candidates") for text in query.options.candidates]
    if len(set(texts)) < len(texts):
        raise QueryError("options.candidates", "must be different in the bytes that count")
    z = normal_quantile(alpha / len(texts))  # Bonferroni: under any dependence
    held = [text for text in texts if isinstance(text, bytes)]
    estimates = dict(zip(held, shares_of(levels, held, z), strict=True))
    ranked = sorted(estimates, key=lambda text: (-estimates[text].value, text))[: query.options.k]
    rows = _rows(part, {text: estimates[text] for text in ranked}, query.alpha, {})
    return rows, {"candidates": len(texts)}


def _rows(part: Slice, estimates: Shares, alpha: float, marks: dict[bytes, str]) -> list[Row]:
    rows: list[Row] = []
    for text, estimate in estimates.items():
        notes = [_LIKELY if text in marks else _PERHAPS_ZERO] if estimate.ci_low <= 0 else []
        if len(text) > (size := part.metric.mechanism.domain_size) - 4:  # of a character up to 4
            notes.append(remark(Code.CUT, size=size))
        names = named([text.decode("utf-8", "replace")])
        rows += rows_of(part, names, [estimate], alpha, simultaneous=True, notes=notes)
    return rows


def _shortage(plan: Plan, n: int, threshold: float) -> Remark:
    """Return why there is no row, and how many reports would do."""
    needed = plan.reports_needed(threshold)
    if needed is None:
        return remark(Code.OUT_OF_REACH, share=threshold)
    percent = 100 * min(plan.detectable(n), 1)
    return remark(Code.TOO_RARE, n=n, percent=percent, needed=needed, share=100 * threshold)


def _plan(metric: Metric, options: Options, alpha: float, groups: int) -> Plan:
    """Return how to search each of *groups*, so that all intervals hold at once with 1 - alpha."""
    alphabet = bytes(sorted(set(options.alphabet.encode("utf-8", "replace"))))
    return Plan(_mechanism(metric), alphabet, alpha / groups, groups)


def _mechanism(metric: Metric) -> TextMechanism:
    mechanism = metric.mechanism
    assert isinstance(mechanism, TextMechanism)  # noqa: S101 - see refusal
    return mechanism


def refusal(metric: Metric) -> str | None:
    """Answer metrics of strings."""
    if isinstance(metric.mechanism, TextMechanism):
        return None
    return "has a list of values, or numbers; ask for top_k, or declare a metric of the type string"


def cost(metric: Metric, options: Options) -> int:
    """Return how many prefixes a search tries, once in each row of their level, at most."""
    plan = _plan(metric, options, ALPHA, 1)
    mechanism = plan.mechanism
    return 0 if options.candidates else plan.tried * mechanism.levels * mechanism.rows


VERB = Verb(
    answer,
    refusal,
    Options,
    estimates=False,
    most_slices=16,
    holds=of_answered,
    cost=cost,
    title="The most common strings",
    panel={"k": 20},
    offer=Offer("Which are most common?", 20, typed="most common top popular words terms frequent"),
)
