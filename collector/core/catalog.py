"""The metrics that a collector knows: the current registry, and older ones still being reported.

A tally is kept under a digest, which does not name its metric.  So what a digest stands for is
recorded before anything is folded under it: the metric, the lines of a registry that choose its
mechanism, and a digest of each part of its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from typing import Final, NamedTuple

from client_sdk.core.dataclass import replace
from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.panel import with_samples
from client_sdk.registry.contract import Registry
from client_sdk.registry.lock import parameters_text
from client_sdk.registry.metric import Metric, Sample

from .errors import AmbiguousMetricError, ConfigError

ADDRESS: Final = "(?:[a-z0-9_.]+/)?[a-z0-9_.]+"  # name, or app/name


class Catalog:
    """Registries, the current one first.  A digest is known if any of them declares it.

    Several apps may have a metric of one name.  It is then addressed as ``app/name``, which every
    metric may be, and the bare name is refused.
    """

    def __init__(self, registries: Sequence[Registry]) -> None:
        """Index *registries* by digest and, for queries, the current metrics by address.

        Raises: ConfigError: there is none, or two applications define a metric alike.
        """
        if not registries:
            raise ConfigError("registry", "", "at least one registry file is needed")
        _require_apart(registries)
        self.registries = tuple(_addressed(registries))

    @classmethod
    def from_files(cls, paths: Iterable[str]) -> Catalog:
        """Return the catalog of the registry files at *paths*, the current one first.

        Raises: ConfigError, RegistryError: a file is wrong, or they do not go together.
                InvalidParameterError: a panel is too small.
        """
        return cls(_sampled([with_samples(Registry.from_file(path)) for path in paths]))

    @cached_property
    def by_digest(self) -> Mapping[bytes, Metric]:
        """Every known definition, the current one where two registries agree on a digest.

        Its segments take the values of all of them, so devices of an older version still count.
        """
        metrics: dict[bytes, Metric] = {}
        for metric in (metric for registry in self.registries for metric in registry):
            current = metrics.setdefault(metric.digest, metric)
            metrics[metric.digest] = replace(current, segments=_union(current, metric))
        return metrics

    @cached_property
    def by_name(self) -> Mapping[str, Metric]:
        """The definition under which each address is answered: the app's most current one."""
        return {
            metric.address: metric for registry in reversed(self.registries) for metric in registry
        }

    @cached_property
    def apps(self) -> tuple[str, ...]:
        """The apps that have a metric here, in the order of their files."""
        return tuple(
            dict.fromkeys(registry.app for registry in self.registries if registry.metrics)
        )

    def __iter__(self) -> Iterator[Metric]:
        """Iterate over the metrics that have an address of their own."""
        return iter(self.by_name.values())

    def metric(self, name: str) -> Metric:
        """Return the metric that *name*, or ``app/name``, stands for now.

        Raises: UnknownMetricError.  AmbiguousMetricError: several apps have it.
        """
        if name in self.by_name:
            return self.by_name[name]
        app, _, own = name.rpartition("/")
        named = {
            (registry.app, own): registry.metrics[own]
            for registry in reversed(self.registries)
            if own in registry.metrics and app in ("", registry.app)
        }
        if not named:
            nearest = get_close_matches(name, self.by_name)
            raise UnknownMetricError(name, tuple(dict.fromkeys((*nearest, *self.by_name))))
        if len(named) > 1:
            raise AmbiguousMetricError(name, sorted(metric.address for metric in named.values()))
        return next(iter(named.values()))

    def of_app(self, app: str) -> tuple[Metric, ...]:
        """Return the metrics of *app*; none if there is no such app."""
        return tuple(metric for metric in self if metric.app == app)

    def definitions(self, metric: Metric) -> tuple[Metric, ...]:
        """Return what *metric* was defined as, in any registry of its app: itself first.

        Its segments are those of ``by_digest``.  Only definitions with the same kind of domain
        are of one question; a name that was given to another one stands apart.
        """
        listed = self.listed(metric).values()
        return tuple(version for version in listed if version.type == metric.type)

    def listed(self, metric: Metric) -> Mapping[str, Metric]:
        """Return all that a registry of its app defines by the name of *metric*, itself first.

        By digest in hexadecimal.
        """
        of_app = (registry for registry in self.registries if registry.app == metric.app)
        same = (registry.metrics.get(metric.name) for registry in of_app)
        return {
            version.digest.hex(): self.by_digest[version.digest]
            for version in (metric, *filter(None, same))
        }

    def only(self, covers: Callable[[str, str], bool]) -> Catalog:
        """Return a catalog of the metrics for which *covers* (app, name) holds, and of no other."""
        return Catalog(
            [
                replace(
                    registry,
                    metrics={n: m for n, m in registry.metrics.items() if covers(registry.app, n)},
                )
                for registry in self.registries
            ]
        )


def _require_apart(registries: Sequence[Registry]) -> None:
    """Raise ConfigError if two apps define a metric alike: a reader of one would read both."""
    owners: dict[bytes, str] = {}
    for registry in registries:
        for metric in registry:
            owner = owners.setdefault(metric.digest, registry.app)
            if owner != registry.app:
                rule = (
                    f"is defined alike in {owner} and {registry.app}, so their reports could not"
                    f' be kept apart: write app = {{ name = "{registry.app}", separate = true }}'
                    " in one of the files, or give each app a collector with a HEARSAY_PREFIX of"
                    " its own"
                )
                raise ConfigError("metric", metric.name, rule)


def _addressed(registries: Sequence[Registry]) -> Iterator[Registry]:
    """Yield *registries* whose metrics know their app, and whether others have their name."""
    owners: dict[str, set[str]] = {}
    for registry in registries:
        for name in registry.metrics:
            owners.setdefault(name, set()).add(registry.app)
    for registry in registries:
        app = registry.app
        shared = {name: len(owners[name]) > 1 for name in registry.metrics}
        if all((m.app, m.shared) == (app, shared[m.name]) for m in registry):
            yield registry
            continue
        metrics = {m.name: replace(m, app=app, shared=shared[m.name]) for m in registry}
        yield replace(registry, metrics=metrics)


def _sampled(registries: Sequence[Registry]) -> list[Registry]:
    """Return *registries* whose metrics have the least share of devices that any of them draws.

    Devices of either version report under the same digest, so no more than that is known.
    """
    drawn: dict[bytes, set[Sample]] = {}
    for metric in (metric for registry in registries for metric in registry):
        drawn.setdefault(metric.digest, set()).add(metric.sample)
    samples = {
        digest: min(each)._replace(is_least=len({sample.share for sample in each}) > 1)
        for digest, each in drawn.items()
    }
    return [
        replace(r, metrics={m.name: replace(m, sample=samples[m.digest]) for m in r})
        for r in registries
    ]


def _union(current: Metric, older: Metric) -> Mapping[str, tuple[str, ...]]:
    """Return the dimensions of *current*, each with the values that either metric declares."""
    return {
        dimension: tuple(dict.fromkeys((*values, *older.segments.get(dimension, ()))))
        for dimension, values in current.segments.items()
    }


class Orphan(NamedTuple):
    """A definition that no registry file has."""

    digest: bytes
    name: str
    pin: str  # the lines of a registry that choose its mechanism, and where
    in_use: str | None  # the mechanism of the metric now; None: no registry file has it
    changed: tuple[str, ...]  # parts of the meaning that are others now
    reports: int = 0  # that are stored


def records_of(catalog: Catalog) -> dict[bytes, str]:
    """Return the record of each definition, by its digest."""
    return {
        digest: json.dumps([f"{metric.app}/{metric.name}", _pin(metric), _parts(metric)])
        for digest, metric in catalog.by_digest.items()
    }


def orphans_among(records: Mapping[bytes, bytes], catalog: Catalog) -> Iterator[Orphan]:
    """Yield the definitions of *records* that *catalog* has in no registry file.

    What is no record of ours is passed over, and so is what a terminal could act on.
    """
    metrics = {f"{metric.app}/{metric.name}": metric for metric in catalog}
    for digest in sorted(records.keys() - catalog.by_digest.keys()):
        try:
            name, pin, then = json.loads(records[digest])
            metric = metrics.get(name)
            now = {} if metric is None else _parts(metric)
            changed = tuple(key for key in {**then, **now} if then.get(key) != now.get(key))
            is_ours = "".join((name, pin, *then)).isprintable()
        except (ValueError, TypeError, AttributeError):
            continue
        in_use = None if metric is None else metric.mechanism_name
        if is_ours:
            address = name if metric is None else metric.address
            yield Orphan(digest, address, pin, in_use, changed)


def _pin(metric: Metric) -> str:
    heading = f'metrics."{metric.name}"' if "." in metric.name else f"metrics.{metric.name}"
    own = parameters_text(metric)
    parameters = "" if own == "{}" else f", parameters = {own}"
    return f'mechanism = "{metric.mechanism_name}"{parameters} under [{heading}]'


def _parts(metric: Metric) -> dict[str, str]:
    return {
        key: sha256(json.dumps(part).encode()).hexdigest()[:12]
        for key, part in json.loads(metric.meaning).items()
    }
