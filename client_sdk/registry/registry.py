"""``metrics.toml``: its keys, and what becomes of them.

Unknown keys are errors, and all problems are reported at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from ..core.epoch import ONCE
from ..core.errors import HearsayError, RegistryError
from ..core.typing import Any, Final, NamedTuple
from ..mechanisms import DistributionMechanism, Mechanism, names
from . import fields
from .domain import Domain
from .encodings import Encoded, ItemEncoding
from .fields import Problems, load
from .keys import ANY, APP, AUTO, GRID, IGNORE, METRIC, OWN, REQUIRED, SEGMENT, SHAPES, Entry, Key
from .lock import Lock
from .longitudinal import Longitudinal, TwoLayer
from .metric import AUTOMATED, COUNT, DIMENSION, PEOPLE, Metric
from .selection import choose, choose_policy, distribution_name
from .types import kind_of, kinds

SCHEMA: Final = 1
MEAN, QUANTILES = "mean", "quantiles"  # what can be asked of numbers
_TOP_KEYS: Final = {"schema", "app", "segments", "panel", "metrics"}
_PANEL_KEYS: Final = {"week"}
_APP: Final = {key.name: key for key in APP}
_WEEK: Final = re.compile(r"(?=.*[1-9])[0-9]{1,6}(\.[0-9]{1,9})?", re.ASCII)  # as of caps
_OF_MECHANISM: Final = ("epsilon", "mechanism", "parameters")
_COMMON: Final = {key.name: key for key in METRIC if key.table}


def known_keys() -> dict[str, set[str]]:
    """Return all keys by the heading of docs/ask/registry.md that explains them."""
    of_types = (kind.table_keys for kind in kinds().values())
    return {
        "Keys of the file": _TOP_KEYS,
        "Keys of a metric": set(_COMMON).union(*of_types),
    }


class App(NamedTuple):
    """What a file says of its application."""

    name: str
    automation: str = IGNORE  # what becomes of machines that run it
    retire_key: str | None = None  # that signs lists of retired metrics
    separate: bool = False  # its name is in the digest of each metric


def parse(
    text: str, lock: Lock | None = None
) -> tuple[App, dict[str, tuple[str, ...]], list[Metric], int | None]:
    """Return the application, its segments, its metrics, and the budget of the panel.

    Args:   lock: what was chosen where the text leaves the choice.
    Raises: RegistryError: with every problem found.
            IncompleteInstallationError: there are no mechanisms, whatever the text says.
    """
    names()
    table = load(text)
    problems = Problems()
    fields.refuse_unknown("registry", table, _TOP_KEYS, problems)
    if type(table.get("schema")) is not int or table["schema"] != SCHEMA:
        problems.add("schema", f"must be {SCHEMA}")
    app = _app(table.get("app"), problems)
    segments = _segments(table.get("segments", {}), problems)
    own: dict[str, tuple[str, ...]] = {}
    if app.automation == SEGMENT:
        own = {DIMENSION: (PEOPLE, AUTOMATED)}
        if DIMENSION in segments:
            problems.add(f"segments.{DIMENSION}", f"is what app.automation={SEGMENT} declares")
    week = _panel(table, problems)
    entries = table.get("metrics")
    if not isinstance(entries, dict) or not entries:
        problems.add("metrics", "must hold at least one metric")
        entries = {}
    make = partial(_metric, segments=segments, in_panel=week is not None, own=own, app=app)
    metrics = [_locked(name, entry, make, lock, problems) for name, entry in entries.items()]
    problems.lines += lock.unknown(entries) if lock else ()
    good = [metric for metric in metrics if metric is not None]
    for dimension, values in _longest(metric.domain.segment for metric in good).items():
        if dimension in segments:
            problems.add(f"segments.{dimension}", "is what a metric with learning declares")
        own = {**own, dimension: values}
    if len({metric.digest for metric in good}) != len(good):
        problems.add("metrics", "two metrics share a digest; rename one")
    if problems.lines:
        from .mistakes import explained  # loaded for registries with mistakes only

        raise RegistryError(explained(problems.lines, table, text))
    return app, {**segments, **own}, good, week


def _locked(
    name: str,
    entry: object,
    make: Callable[[str, object, Problems], Metric | None],
    lock: Lock | None,
    problems: Problems,
) -> Metric | None:
    """Return the metric that *make* makes of *entry*, as *lock* has it."""
    if lock is None:
        return make(name, entry, problems)
    trial = Problems()
    metric = make(name, lock.applied(name, entry), trial)
    if metric is not None and lock.fits(metric):
        return metric
    before = len(problems.lines)
    anew = make(name, entry, problems)  # what is wrong without a lock, too, is wrong by itself
    if lock.renews:
        return anew
    if anew is not None and len(problems.lines) == before:
        reason = trial.lines[0].partition(": ")[2] if trial.lines else ""
        problems.add(f"metrics.{name}", lock.stale(anew, reason))
    return None


def _metric(
    name: str,
    entry: object,
    problems: Problems,
    *,
    segments: Mapping[str, tuple[str, ...]],
    in_panel: bool,
    own: Mapping[str, tuple[str, ...]],
    app: App,
) -> Metric | None:
    place = f"metrics.{name}"
    before = len(problems.lines)
    fields.value(place, "name", name, problems)
    if not isinstance(entry, dict):
        problems.add(place, "must be a table")
        return None
    inner = list(fields.inner_metrics(entry))
    for keys in inner:
        whole = ".".join((name, *keys))
        rule = f'is a table in a table; write [metrics."{whole}"], in quotes'
        problems.add(f"metrics.{whole}", rule)
    entry = {key: part for key, part in entry.items() if key not in {keys[0] for keys in inner}}
    if inner and not entry:
        return None
    kind = entry.get("type")
    if not isinstance(kind, str) or (domain_type := kind_of(kind)) is None:
        fields.value(f"{place}.type", "|".join(sorted(kinds())), kind, problems)
        return None
    fields.refuse_unknown(place, entry, _COMMON.keys() | domain_type.table_keys, problems)
    values = _values(place, entry, _COMMON, problems)
    _check_layers(place, domain_type, entry, values, problems)
    dimensions = _dimensions(f"{place}.segments", entry.get("segments", []), segments, problems)
    domain = domain_type.read(place, entry, problems)
    otherwise = _aggregation(place, entry, domain, problems)
    if domain is not None and domain.labelled and values["every"] != ONCE:
        rule = f"must be {ONCE} with learning: a device takes part in one round only"
        problems.add(f"{place}.every", rule)
    need = _need(f"{place}.need", entry, domain, problems)
    shape = _shape(place, entry, domain, problems)
    if not in_panel:
        for key in {"weight", "panel"} & entry.keys():
            problems.add(f"{place}.{key}", "is for registries with a [panel] only")
    is_sampled = in_panel and values["panel"]
    show = _show(
        place, entry, is_counted=values["every"] != ONCE and not is_sampled, problems=problems
    )
    asks_quantiles = QUANTILES in _asks(f"{place}.ask", entry.get("ask", [MEAN]), problems)
    if len(problems.lines) > before or domain is None:
        return None
    try:
        chosen, mechanism, policy = _chosen(entry, values, domain, asks_quantiles)
    except HearsayError as error:
        problems.add(place, str(error))
        return None
    if asks_quantiles and not isinstance(mechanism, DistributionMechanism):
        rule = f"needs a mechanism with quantiles, and {chosen} has none; leave it out"
        problems.add(f"{place}.ask={QUANTILES}", rule)
        return None
    return Metric(
        name=name,
        type=kind,
        domain=domain,
        mechanism_name=chosen,
        mechanism=mechanism,
        segments=dict(sorted({**dimensions, **own, **domain.segment}.items())),
        policy=policy,
        aggregate=entry.get("aggregate"),
        otherwise=otherwise,
        need=need,
        shape=shape,
        show=show,
        app=app.name,
        separate=app.separate,
        **{key: part for key, part in values.items() if key not in _OF_MECHANISM},
    )


def _chosen(
    entry: Entry, values: Entry, domain: Domain, asks_quantiles: bool
) -> tuple[str, Mechanism[Any], Longitudinal | None]:
    """Return the mechanism of a metric with its name, and the policy of one that is not fresh.

    Raises: HearsayError: none serves the metric.
    """
    epsilon, requested, parameters = (values[key] for key in _OF_MECHANISM)
    if values["longitudinal"] != "fresh":
        of_value = entry.get("epsilon_permanent")
        name, policy = choose_policy(requested, domain.size, epsilon, of_value, parameters)
        return name, policy.mechanism, policy
    if asks_quantiles and requested == AUTO:
        requested = distribution_name(epsilon, domain.size)
    family = domain.encodes.family
    return *choose(requested, family, epsilon, domain.size, parameters, domain.parameters), None


def _values(
    place: str, entry: Mapping[str, object], keys: Mapping[str, Key], problems: Problems
) -> dict[str, Any]:
    """Return *entry*'s values of the keys that have a rule; None where the rule is broken."""
    return {
        name: fields.value(f"{place}.{name}", key.table, entry.get(name), problems)
        if name in entry or key.default is REQUIRED
        else key.default
        for name, key in keys.items()
        if key.table != OWN
    }


def _longest(parts: Iterable[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """Return each dimension's longest vocabulary, which begins with all others."""
    whole: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for name, values in part.items():
            whole[name] = max(whole.get(name, ()), values, key=len)
    return whole


def _app(entry: object, problems: Problems) -> App:
    if not isinstance(entry, dict):
        return App(fields.value("app", "name", entry, problems))
    fields.refuse_unknown("app", entry, _APP.keys(), problems)
    values = _values("app", entry, _APP, problems)
    return App(fields.value("app.name", "name", entry.get("name"), problems), **values)


def _panel(table: Mapping[str, object], problems: Problems) -> int | None:
    """Return the budget of the panel in nano-epsilon, rounded down; None if there is no panel."""
    if "panel" not in table:
        return None
    entry = table["panel"]
    if not isinstance(entry, dict):
        problems.add("panel", 'must be a table such as { week = "8" }')
        return None
    fields.refuse_unknown("panel", entry, _PANEL_KEYS, problems)
    week = entry.get("week")
    if not isinstance(week, str) or not _WEEK.fullmatch(week):
        rule = 'must be a positive decimal in quotes, such as "8", at most 999999'
        problems.add("panel.week", f"{rule}, with at most 9 decimals")
        return None
    return int(Fraction(week) * 10**9)


def _check_layers(
    place: str,
    kind: type[Domain],
    entry: Mapping[str, object],
    values: Entry,
    problems: Problems,
) -> None:
    """Add what is wrong with ``epsilon_permanent``, and with a policy that its type has not."""
    name, epsilon = values["longitudinal"], values["epsilon"]
    if name not in (None, "fresh") and kind.encodes is not ItemEncoding:
        problems.add(f"{place}.longitudinal", f"must be fresh for a {entry['type']}")
    place, of_value = f"{place}.epsilon_permanent", entry.get("epsilon_permanent")
    if name != TwoLayer.name:
        if of_value is not None:
            problems.add(place, f"is for longitudinal={TwoLayer.name} only")
    elif fields.value(place, "decimal", of_value, problems) is None or epsilon is None:
        return
    elif Fraction(str(of_value)) <= Fraction(epsilon):
        problems.add(place, "must be above epsilon, the cost of a report")


def _aggregation(
    place: str, entry: Mapping[str, object], domain: Domain | None, problems: Problems
) -> Encoded | None:
    """Check ``aggregate`` and ``otherwise``, and return the latter as its metric encodes it."""
    if domain is None or not {"aggregate", "otherwise"} & entry.keys():
        return None
    from .aggregates import problems_of  # few metrics have any

    broken = list(problems_of(entry, domain))
    problems.lines += [f"{place}.{problem}" for problem in broken]
    if broken or "otherwise" not in entry:
        return None
    return domain.encode(entry["otherwise"], "otherwise")


def _need(
    place: str, entry: Mapping[str, object], domain: Domain | None, problems: Problems
) -> Fraction | None:
    """Return the wanted half-width: a share, or of a number in its unit."""
    if domain is None or "need" not in entry:
        return None
    need = fields.decimal(place, entry["need"], problems)
    grid = domain.grid
    whole = Fraction(domain.extent) if grid is None else grid.maximum - grid.minimum
    if need is not None and not 0 < need <= whole:
        problems.add(place, f"must be above 0 and at most {float(whole):g}")
    return need


def _asks(place: str, entry: object, problems: Problems) -> Sequence[str]:
    """Return the question about numbers, which chooses the mechanism if it is ``auto``."""
    if isinstance(entry, list) and entry and all(words in (MEAN, QUANTILES) for words in entry):
        return entry
    problems.add(place, f'must be a list of "{MEAN}" and "{QUANTILES}"')
    return ()


def _show(place: str, entry: Mapping[str, object], *, is_counted: bool, problems: Problems) -> str:
    """Return what the metric shows: "" for the values."""
    if "show" not in entry:
        return ""
    if not is_counted:
        rule = f"must not be {ONCE}, nor in a panel (panel = false): reports then count no devices"
        problems.add(f"{place}.show", rule)
    if entry["show"] != COUNT:
        problems.add(f"{place}.show", f"must be {COUNT}")
    return COUNT


def _shape(
    place: str, entry: Mapping[str, object], domain: Domain | None, problems: Problems
) -> str:
    """Return what is assumed of the numbers' distribution; counts are whole if the grid is."""
    if "shape" in entry:
        return str(fields.value(f"{place}.shape", "|".join(SHAPES), entry["shape"], problems))
    grid = None if domain is None else domain.grid
    if entry["type"] != "count" or grid is None:
        return ANY
    whole = grid.minimum.denominator == 1 and (1 / grid.step).denominator == 1
    return GRID if whole else ANY


def _segments(entry: object, problems: Problems) -> dict[str, tuple[str, ...]]:
    if not isinstance(entry, dict):
        problems.add("segments", "must be a table of dimension = [values]")
        return {}
    return {
        fields.value(f"segments.{dimension}", "name", dimension, problems, dimension): (
            fields.labels(f"segments.{dimension}", values, problems)
        )
        for dimension, values in entry.items()
    }


def _dimensions(
    place: str, entry: object, segments: Mapping[str, tuple[str, ...]], problems: Problems
) -> dict[str, tuple[str, ...]]:
    if not isinstance(entry, list) or any(
        dimension not in segments for dimension in map(str, entry)
    ):
        problems.add(place, "must be a list of dimensions declared under [segments]")
        return {}
    return {dimension: segments[dimension] for dimension in sorted(set(map(str, entry)))}
