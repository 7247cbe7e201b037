"""The common strings of an open vocabulary, found without a list, and the shares of named ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from client_sdk.mechanisms import TextMechanism
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import Estimate, normal_quantile
from ..rows import Findings, Row
from ..text.search import Plan, candidates
from ..text.sketches import Sketch, shares_of, sketches_of
from ..verb import Slice, Verb, VerbQuery, named, refused_rows, rows_of

PRINTABLE: Final = "".join(map(chr, range(32, 127)))
USELESS: Final = 0.5  # share; where only strings more common than that would be found, none is told
CUT: Final = "longer strings that begin so are counted here: strings are cut to {} bytes"
UNSURE: Final = "not distinguishable from zero"

Share = Annotated[float, Meta(gt=0, lt=1)]
Text = Annotated[str, Meta(max_length=128)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How common, how many, of which characters; or the shares of ``candidates``, without a search.

    Without ``threshold`` all strings are wanted that are common for sure.
    """

    threshold: Share | None = None
    k: Annotated[int, Meta(ge=1, le=100_000)] = 100
    candidates: Annotated[list[Text], Meta(max_length=100_000)] = field(default_factory=list)
    alphabet: Annotated[str, Meta(min_length=1, max_length=128)] = PRINTABLE


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a string, the most common first.

    Found strings have a share above 0 for sure, and at least the threshold by their estimate.  The
    intervals hold at once, with 1 - alpha, for all strings that were looked up, shown or not.  A
    slice of too few reports to find the threshold is refused, with the reports that are needed.

    Raises: QueryError: ``options.candidates``.
    """
    rows: list[Row] = []
    facts: list[dict[str, Any]] = []
    answered = sum(part.refusal is None for part in slices)
    for part in slices:
        if part.refusal is not None:
            rows += refused_rows(part, [{}], query.alpha, simultaneous=True)
            continue
        part_rows, fact = _answered(part, query, query.alpha / answered)
        rows += part_rows
        facts.append({"dimensions": dict(part.dimensions), **fact})
    return Findings(tuple(rows), facts={"slices": facts})


def _answered(part: Slice, query: VerbQuery, alpha: float) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of a slice, and what is known of it."""
    options: Options = query.options
    mechanism = _mechanism(part.metric)
    if options.candidates:
        levels = sketches_of(mechanism, part.tally, part.n)
        return _of_candidates(part, levels, query, alpha), {"candidates": len(options.candidates)}
    plan = Plan(mechanism, bytes(sorted(set(options.alphabet.encode("utf-8", "replace")))), alpha)
    threshold = USELESS if options.threshold is None else options.threshold
    fact = {
        "detectable_share": min(plan.detectable(part.n), 1.0),
        "levels": mechanism.levels,
        "longest": mechanism.domain_size,
        "reports_needed": plan.reports_needed(threshold),
    }
    if plan.detectable(part.n) > threshold:
        return refused_rows(
            part, [{}], query.alpha, reason=_shortage(plan, part.n, threshold)
        ), fact
    levels = sketches_of(mechanism, part.tally, part.n)
    texts = candidates(levels, plan)
    common = _common(dict(zip(texts, shares_of(levels, texts, plan.z), strict=True)), options)
    fact["strings_looked_up"] = plan.tests * mechanism.levels
    return _rows(part, dict(common[: options.k]), query.alpha), fact


def _common(estimates: dict[bytes, Estimate], options: Options) -> list[tuple[bytes, Estimate]]:
    """Return the strings that are common for sure, the most common first."""
    least = options.threshold or 0.0
    sure = [each for each in estimates.items() if each[1].ci_low > 0 and each[1].value >= least]
    return sorted(sure, key=lambda each: (-each[1].value, each[0]))


def _of_candidates(
    part: Slice, levels: Sequence[Sketch], query: VerbQuery, alpha: float
) -> list[Row]:
    """Return a row for each of the first k candidates, the most common first."""
    domain = part.metric.domain
    texts = [domain.encode(text, "options.candidates") for text in query.options.candidates]
    if len(set(texts)) < len(texts):
        raise QueryError("options.candidates: must be different in the bytes that count")
    z = normal_quantile(alpha / len(texts))  # Bonferroni: under any dependence
    held = [text for text in texts if isinstance(text, bytes)]
    estimates = dict(zip(held, shares_of(levels, held, z), strict=True))
    ranked = sorted(estimates, key=lambda text: (-estimates[text].value, text))[: query.options.k]
    return _rows(part, {text: estimates[text] for text in ranked}, query.alpha)


def _rows(part: Slice, estimates: dict[bytes, Estimate], alpha: float) -> list[Row]:
    rows: list[Row] = []
    for text, estimate in estimates.items():
        notes = [UNSURE] if estimate.ci_low <= 0 else []
        if len(text) > part.metric.mechanism.domain_size - 4:  # a character has up to 4 bytes
            notes.append(CUT.format(part.metric.mechanism.domain_size))
        names = named([text.decode("utf-8", "replace")])
        note = "; ".join(notes) or None
        rows += rows_of(part, names, [estimate], alpha, simultaneous=True, note=note)
    return rows


def _shortage(plan: Plan, n: int, threshold: float) -> str:
    """Return why there is no row, and how many reports would do."""
    needed = plan.reports_needed(threshold)
    if needed is None:
        return f"a share of {threshold:.3g} is out of reach of a search with so many characters"
    return (
        f"not enough reports: of {n:,} only strings that {100 * min(plan.detectable(n), 1):.3g} % "
        f"hold are found; {needed:,} are needed for a share of {100 * threshold:.3g} %"
    )


def _mechanism(metric: Metric) -> TextMechanism:
    mechanism = metric.mechanism
    assert isinstance(mechanism, TextMechanism)  # noqa: S101 - see refusal
    return mechanism


def refusal(metric: Metric) -> str | None:
    """Answer metrics of strings."""
    if isinstance(metric.mechanism, TextMechanism):
        return None
    return "has a list of values, or numbers; ask for top_k, or declare a metric of the type string"


VERB = Verb(answer, refusal, Options, estimates=False, most_slices=16)
