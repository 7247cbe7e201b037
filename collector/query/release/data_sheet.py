"""The data sheet of a release: what the numbers are, how they were made, what they are good for.

Pure.  Facts are of JSON types; the page in words is made from the facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, Final

from client_sdk import __version__
from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.keys import dump_parameters

from ...analytics.answer import quantile_estimates
from ...analytics.verb import OTHER
from ...core.cells import FACTS
from ..basis import sources_of
from .release import Part, axes_of

FORM: Final = 1  # of the facts; one more whenever a name changes its meaning
USES: Final = (
    "tables, charts, and comparisons of large groups",
    "trying out queries, dashboards and models before real questions are asked",
    "any number of analyses by anybody: they cost no further privacy",
)
_LIMITS: Final = (
    "No row is a person: rows are made from shares, and a rare value may be held by nobody at all.",
    "Errors computed from the rows are too small: they do not know the noise of the reports. "
    "Take the intervals of the histogram.",
    "What was not reported together is not together here: records of two releases must not be "
    "joined, nor read beside each other as if they were of the same devices.",
    "Within a cell every value is equally likely, because nothing finer was reported.",
    "It speaks of the devices that reported, not of those that did not.",
)
_COUNTS: Final = (
    "Every share was estimated without bias from the tally of randomized reports. The published "
    "counts are the nearest histogram: whole, not negative, and summing to the reports, with the "
    "fewest devices moved."
)
_SETS: Final = (
    "Every share was estimated without bias from the tally of randomized reports; its count is "
    "rounded and kept from 0 to the reports. A device may hold many items, so counts do not sum "
    "to the reports."
)
_BINS: Final = (
    "The histogram is the one that explains the randomized reports best, by expectation "
    "maximization smoothed by a bell, rounded to whole devices. The reports choose how wide the "
    "bell is by Akaike's criterion; nothing is drawn. Smoothing widens sharp peaks, so there are "
    "no intervals around its counts; quantiles have theirs."
)
_RECORDS: Final = (
    "Records were apportioned to the cells of the histogram, so that each cell has its part of "
    "them rounded up or down; numbers were drawn within their cell with equal chance, and the "
    "order is random. The generator needs no secrecy: it works on published counts only."
)


def facts_of(
    parts: Sequence[Part],
    reading: Mapping[str, Any],
    files: Mapping[str, str],
    drawn: Mapping[str, int],
    alpha: float,
) -> dict[str, Any]:
    """Return the facts of a release.

    Args: reading: window, version, whether the window is still open, and reports of groups that are
          left out since they are small.  files: what each file
          holds, by its name.  drawn: number of records and seed, or nothing.
    """
    metric = parts[0].slice.metric
    return {
        "form": FORM,
        "metric": metric.name,
        "title": metric.title,
        "question": metric.question,
        "files": dict(files),
        "columns": _columns(parts),
        "reports": sum(part.slice.n for part in parts),
        "late_reports": sum(part.slice.late for part in parts),
        **_sources(parts),
        **reading,
        **drawn,
        "digest": metric.digest.hex(),
        "mechanism": metric.mechanism_name,
        "parameters": dump_parameters(metric.mechanism.parameters),
        "epsilon_per_report": float(metric.mechanism.spent),
        "delta_per_report": float(metric.mechanism.delta),
        "every": metric.every,
        "longitudinal": metric.longitudinal,
        "min_reports": metric.min_reports,
        "sample": metric.sample.in_words,
        "alpha": alpha,
        "parts": [_accuracy(part, alpha) for part in parts],
        "method": _method(parts, bool(drawn)),
        "uses": list(USES),
        "limits": list(_LIMITS),
        "made_by": f"hearsay {__version__}",
    }


def markdown(facts: Mapping[str, Any]) -> str:
    """Return the page of *facts*."""
    return "\n".join(_page(facts)) + "\n"


def _sources(parts: Sequence[Part]) -> dict[str, Any]:
    """Return how many reports came in which way, if anything is known of it."""
    sources = sources_of((part.slice for part in parts), 0)
    return {"sources": {fact: getattr(sources, fact) for fact in FACTS}} if sources else {}


def _columns(parts: Sequence[Part]) -> dict[str, str]:
    """Return what the columns of records, and those of the histogram beyond them, hold."""
    metric = parts[0].slice.metric
    notes = {
        name: f"public dimension, told by devices as it is{_others(parts, name)}"
        for name in parts[0].slice.dimensions
    }
    for axis in axes_of(metric):
        notes[axis.name] = axis.note
        if (columns := tuple(axis.columns())) != (axis.name,):
            notes[", ".join(columns)] = "in the histogram: the least and the greatest of a cell"
    notes["count"] = "devices, of the reports"
    notes["share"] = "count as a part of the reports"
    if parts[0].estimates:
        notes["unbiased"] = "estimate before it was made consistent; may be below 0"
        notes["ci_low, ci_high"] = "pointwise interval of the unbiased estimate"
        notes["std_error"] = "standard error of the unbiased estimate"
    return notes


def _accuracy(part: Part, alpha: float) -> dict[str, Any]:
    """Return how far the numbers of *part* can be relied on."""
    slice_ = part.slice
    facts: dict[str, Any] = {"of": dict(slice_.dimensions), "reports": slice_.n}
    if part.estimates:
        squares = [estimate.std_error**2 for estimate in part.estimates]
        facts["standard_error_of_a_share"] = sqrt(sum(squares) / len(squares))
        moved = [
            count / slice_.n - estimate.value
            for count, estimate in zip(part.counts.tolist(), part.estimates, strict=True)
        ]
        facts["moved_by_consistency"] = max(map(abs, moved))
    else:
        quantiles = quantile_estimates(slice_.metric, slice_.tally, slice_.n, alpha)
        facts["smoothing"] = part.smoothing
        facts["quantiles"] = {
            name: {"value": e.value, "ci_low": e.ci_low, "ci_high": e.ci_high}
            for name, e in quantiles.items()
        }
    return facts


def _others(parts: Sequence[Part], name: str) -> str:
    is_there = any(part.slice.dimensions[name] == OTHER for part in parts)
    return f"; {OTHER} is groups with too few reports of their own, together" if is_there else ""


def _method(parts: Sequence[Part], drawn: bool) -> list[str]:
    metric = parts[0].slice.metric
    several = metric.domain.several
    bins = isinstance(metric.mechanism, DistributionMechanism)
    counted = _BINS if bins else _SETS if several else _COUNTS
    return [counted, *([_RECORDS] if drawn else [])]


def _page(facts: Mapping[str, Any]) -> Iterator[str]:
    yield f"# {facts['title']}: data sheet\n"
    yield f"{facts['question']}\n"
    yield (
        "Every device randomized its value before it left, and kept the true one. What is here was "
        "computed from the randomized reports alone, so it costs no further privacy.\n"
    )
    yield from _table(("fact", "value"), _facts(facts))
    yield "\n## Files\n"
    yield from _table(("file", "holds"), facts["files"].items())
    yield "\n## Columns\n"
    yield from _table(("column", "holds"), facts["columns"].items())
    yield "\n## How the numbers were made\n"
    yield from (f"{text}\n" for text in facts["method"])
    yield "## How far they can be relied on\n"
    yield from _table(("part", "reports", "accuracy"), map(_relied, facts["parts"]))
    yield "\n## What it may be used for\n"
    yield from (f"- {text}" for text in facts["uses"])
    yield "\n## What it may not be used for, and what it does not say\n"
    yield from (f"- {text}" for text in facts["limits"])


def _facts(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "metric", f"`{facts['metric']}`"
    yield "definition", f"`{facts['digest']}`; what was reported under another one is not here"
    yield "reports", f"{facts['reports']:,}, of which {facts['late_reports']:,} came late"
    if sources := facts.get("sources"):
        ways = ", ".join(f"{reports:,} {fact}" for fact, reports in sources.items())
        yield "how reports came", f"{ways}; of the others, nothing is known"
    yield "window", _window(facts)
    yield "version", _version(facts)
    delta = f", δ = {facts['delta_per_report']:g}" if facts["delta_per_report"] else ""
    yield "privacy of a report", f"ε = {facts['epsilon_per_report']:.6g}{delta}"
    parameters = ", ".join(f"{name} = {value}" for name, value in facts["parameters"].items())
    yield "mechanism", facts["mechanism"] + (f" ({parameters})" if parameters else "")
    yield "repeated reports", facts["longitudinal"]
    if facts["sample"]:
        yield "who reports", facts["sample"]
    yield "fewest reports of a number", f"{facts['min_reports']:,}"
    if few := facts["left_out_reports"]:
        percent = 100 * few / (few + facts["reports"])
        yield "left out", f"{few:,} reports ({percent:.2g} %) of groups with fewer than that"
    for text in facts.get("exclusions", ()):
        yield "excluded", text
    yield "intervals", f"{100 * (1 - facts['alpha']):g} %, pointwise"
    if "records" in facts:
        yield "synthetic records", f"{facts['records']:,}, from seed {facts['seed']}"
    yield "made by", facts["made_by"]


def _window(facts: Mapping[str, Any]) -> str:
    if facts["every"] == ONCE:
        return "all reports so far: a device reports once"
    window = facts["window"]
    return f"{window['from']} to {window['to']}: {window['epochs']} epochs of {facts['every']}"


def _version(facts: Mapping[str, Any]) -> str:
    if facts["version"] is not None:
        return f"{facts['version']}: published, its counts never change"
    return "none: reports may still come, so a later release of the same window may differ"


def _relied(part: Mapping[str, Any]) -> tuple[str, str, str]:
    of = ", ".join(f"{name} {value}" for name, value in part["of"].items()) or "all"
    if "quantiles" in part:
        quantiles = (
            f"{name} {q['value']:.6g} ({q['ci_low']:.6g} to {q['ci_high']:.6g})"
            for name, q in part["quantiles"].items()
        )
        bell = f"; smoothed by a bell of {100 * part['smoothing']:.2g} % of the range"
        return of, f"{part['reports']:,}", ", ".join(quantiles) + bell
    error, moved = part["standard_error_of_a_share"], part["moved_by_consistency"]
    text = f"standard error of a share {100 * error:.2f} points; made consistent by moving shares "
    return of, f"{part['reports']:,}", f"{text}by up to {100 * moved:.2f} points"


def _table(heads: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(str(cell).replace('|', '&#124;') for cell in row)} |"
