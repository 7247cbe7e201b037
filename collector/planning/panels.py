"""Panels before any data exist: what would starve without one, and which weights make one fit.

Pure.  A week's cap pays for few metrics.  Without a panel the first that a program records take it
all, day after day; ``starvation`` follows such a program through the arithmetic of the ledger.
``fitted`` chooses the weights of a panel: the width of an interval is inversely as the root of the
reports, so metrics miss their needs by the same factor if each has a weight as the square of its
interval, from all devices, over its need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import EVERY
from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.privacy.budget import WEEK, cost_of_dates, epochs_in, epsilon
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import with_samples
from client_sdk.privacy.wording import counted
from client_sdk.registry.contract import Registry
from client_sdk.registry.encodings import ItemEncoding
from client_sdk.registry.keys import MAX_WEIGHT
from client_sdk.registry.lock import Lock
from client_sdk.registry.metric import Metric

from ..core.text_tables import table_lines
from ..estimation.precision import ALPHA, drawn, half_width, in_words, wished
from .machines import SHORT, shares_of

_LEAST_EPSILON: Final = 10**6  # nano-epsilon, 0.001; less answers nothing
_FINE: Final = 10  # weight of the metric that needs the fewest devices, if no other is 100 times


def starvation(registry: Registry, caps: Caps) -> dict[str, float]:
    """Return which share of its epochs each metric reports that starves under *caps*, by name.

    The device has no panel, records all metrics in the order of the file, and never changes.
    """
    shares = shares_of(replace(registry, panel_week=None), caps)
    return {name: share for name, share in shares.items() if share < SHORT}


def starvation_lines(registry: Registry) -> Iterator[str]:
    """Yield which metrics starve under the default caps, and the panel that fixes it."""
    caps = Caps()
    if registry.panel_week is not None or not (starving := starvation(registry, caps)):
        return
    never = [name for name, share in starving.items() if not share]
    seldom = [f"{name} in {100 * share:.0f} %" for name, share in starving.items() if share]
    words = [f"never reports {_listed(never)}"] if never else []
    words += [f"reports {_listed(seldom)} of the periods"] if seldom else []
    yield (
        "  warning: without a panel the order of the file decides: under the default caps a device "
        f"that records all metrics {', and '.join(words)}"
    )
    week = epsilon(caps.week)
    try:
        panel = with_samples(replace(registry, panel_week=caps.week))
    except InvalidParameterError:
        yield f"  not even a panel of ε {week} helps:"
        yield from (f"    {line}" for line in remedies(registry, caps.week))
        return
    least = min(panel, key=lambda metric: metric.sample.share)
    yield (
        f'  [panel] with week = "{week}" lets each device report each of them in turn, {least.name}'
        f" with a chance of {100 * least.sample.share:.3g} %; hearsay registry plan --cap {week}"
        " chooses the weights"
    )


def remedies(registry: Registry, week: int) -> Iterator[str]:
    """Yield what would let a panel of *week* nano-epsilon hold each metric that it cannot."""
    outside = [metric for metric in registry if not metric.panel]
    fixed = sum(cost_of_dates(metric, WEEK) for metric in outside)
    if outside:
        names = _listed([metric.name for metric in outside])
        yield f"outside of the panel cost ε {epsilon(fixed)} in any seven days: {names}"
    is_alone = True
    for metric in registry:
        room = week - (fixed if metric.panel else 0)
        cost = cost_of_dates(metric, WEEK)
        if cost > room:
            ways = "; or ".join(_ways(metric, room)) or "leave it out"
            is_alone = False
            yield f"{metric.name} costs ε {epsilon(cost)} in any seven days: {ways}"
    if is_alone:
        yield (
            "one metric that is drawn for life (permanent, two_layer or once), one that is drawn"
            " anew and all outside of the panel cost more together: take the dearest out"
        )


def _ways(metric: Metric, room: int) -> Iterator[str]:
    """Yield what would bring a metric within *room* nano-epsilon in any seven days."""
    times = epochs_in(metric.every, WEEK)
    if (most := room // times) >= _LEAST_EPSILON:
        yield f"lower its ε to at most {_down(most - most % _LEAST_EPSILON)}"
    for every in EVERY[EVERY.index(metric.every) + 1 :]:
        if metric.most_nano * epochs_in(every, WEEK) <= room:
            yield f'ask it less often: every = "{every}"'
            break
    repeats = metric.policy is None and metric.domain.encodes is ItemEncoding
    if repeats and metric.domain.size < times and metric.domain.size * metric.most_nano <= room:
        yield 'longitudinal = "permanent", where its value hardly ever changes'


def fitted(registry: Registry, week: int, devices: int | None = None) -> Registry:
    """Return *registry* with a panel of *week* nano-epsilon, weighted so that intervals are alike.

    Alike relative to each metric's need, or to the usual one where only some declare any.  Without
    any need all weights are 1.

    Args:   devices: in place of the expected ones.
    Raises: InvalidParameterError: not even a panel helps.
    """
    metrics = {
        m.name: replace(m, expected_devices=devices or m.expected_devices, weight=1)
        for m in registry
    }
    drawn_metrics = [metric for metric in metrics.values() if metric.panel]
    if any(metric.need is not None for metric in drawn_metrics):
        misses = {m.name: (_reach(m, m.expected_devices) / wished(m)) ** 2 for m in drawn_metrics}
        least = min(misses.values())
        scale = min(_FINE, MAX_WEIGHT * least / max(misses.values()))
        for name, miss in misses.items():
            weight = min(max(round(scale * miss / least), 1), MAX_WEIGHT)
            metrics[name] = replace(metrics[name], weight=weight)
    return with_samples(replace(registry, metrics=metrics, panel_week=week))


def _reach(metric: Metric, reports: int) -> float:
    """Return the half-width to expect from *reports*, as a part."""
    return half_width(metric.mechanism, reports, ALPHA, drawn(metric))


def fit_lines(registry: Registry) -> Iterator[str]:
    """Yield the panel of a registry as a table, and which needs it misses."""
    week = epsilon(registry.panel_week)
    metrics = counted(len(registry.metrics), "metric")
    yield f"{registry.app}: a panel of ε {week} in any seven days, of {metrics}"
    heads = ("metric", "weight", "a device reports", "reports", "interval", "need")
    rows = [_cells(metric) for metric in registry]
    yield from table_lines([heads, *rows], "<>>>>>", indent="  ")
    for metric in registry:
        reach = _reach(metric, metric.expected_reports)
        if metric.expected_reports < metric.min_reports:
            least = f"{metric.min_reports:,}"
            yield f"  {metric.name} has no answers: they take {least} reports, its min_reports"
        if metric.need is not None and reach > wished(metric):
            yield (
                f"  {metric.name} misses its need: more devices, a greater ε, a longer period or"
                " fewer metrics beside it would meet it"
            )


def _cells(metric: Metric) -> tuple[str, ...]:
    reach = in_words(metric, _reach(metric, metric.expected_reports))
    need = "" if metric.need is None else in_words(metric, wished(metric))
    weight = str(metric.weight) if metric.panel else "panel = false"
    chance = f"{100 * metric.sample.share:.3g} %"
    return metric.name, weight, chance, f"{metric.expected_reports:,}", reach, need


_HEADER: Final = re.compile(r"^[ \t]*\[(?P<name>[^\[\]]+)\][ \t]*(#.*)?$")
_METRIC: Final = re.compile(r'metrics\.(?:"(?P<quoted>[^"]+)"|(?P<plain>[A-Za-z0-9_-]+))')
_PANEL: Final = re.compile(r"^[ \t]*panel[ \t]*=")
_WEEK: Final = re.compile(r"^[ \t]*week[ \t]*=")
_WEIGHT: Final = re.compile(r"^[ \t]*weight[ \t]*=")


def rewritten(text: str, registry: Registry, lock: Lock | None = None) -> str:
    """Return the TOML *text* of *registry* with its panel and weights; all else stays as it is.

    Args:   lock: by which the registry was read.
    Raises: RegistryError: the file is written in a way that lines cannot be added to.
    """
    result = "\n".join(_rewritten(text.splitlines(), registry)) + "\n"
    try:
        again = Registry.resolved(result, lock)
    except RegistryError:
        again = None
    if again is None or _facts(again) != _facts(registry):
        rule = "cannot be edited line by line: write [panel] and the weights of the table by hand"
        raise RegistryError([f"registry: {rule}"])
    return result


def _facts(registry: Registry) -> tuple[int | None, Mapping[bytes, tuple[int, bool]]]:
    return registry.panel_week, {m.digest: (m.weight, m.panel) for m in registry}


def _rewritten(lines: Sequence[str], registry: Registry) -> Iterator[str]:
    week = f'week = "{_down(registry.panel_week or 0)}"'
    panel = [] if _has_panel(lines) else ["[panel]", week, ""]
    before, place = _first_table(lines), ""
    for number, line in enumerate(lines):
        if number == before:
            yield from panel
        header = _HEADER.match(line)
        place = header["name"].strip() if header else place
        if place.startswith("metrics") and _WEIGHT.match(line):
            continue
        if place == "panel" and _WEEK.match(line):
            line = week
        elif not place and _PANEL.match(line):
            line = f"panel = {{ {week} }}"
        yield line
        if header and (metric := _METRIC.fullmatch(place)):
            known = registry.metrics.get(metric["quoted"] or metric["plain"])
            if known is not None and known.weight > 1:
                yield f"weight = {known.weight}"


def _has_panel(lines: Sequence[str]) -> bool:
    headers = (_HEADER.match(line) for line in lines)
    return any(_PANEL.match(line) for line in lines[: _first_table(lines)]) or any(
        header and header["name"].strip() == "panel" for header in headers
    )


def _first_table(lines: Sequence[str]) -> int:
    """Return the line of the first table, or of the comments above it."""
    first = next((i for i, line in enumerate(lines) if _HEADER.match(line)), len(lines))
    while first and lines[first - 1].startswith("#"):
        first -= 1
    return first


def _down(nano: int) -> str:
    """Return nano-epsilon as a decimal, exactly."""
    whole, rest = divmod(nano, 10**9)
    return f"{whole}.{rest:09}".rstrip("0").rstrip(".")


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
