"""The metrics that a collector knows: the current registry, and older ones still being reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from client_sdk.core.dataclass import replace
from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.panel import with_samples
from client_sdk.registry.metric import Metric, Sample
from client_sdk.registry.registry import Registry

from .errors import ConfigError


class Catalog:
    """Registries, the current one first.  A digest is known if any of them declares it."""

    def __init__(self, registries: Sequence[Registry]) -> None:
        """Index *registries* by digest and, for queries, the current metrics by name.

        Raises: ConfigError: there is none, or two applications share the name of a metric.
        """
        if not registries:
            raise ConfigError("registry", "", "at least one registry file is needed")
        self.registries = tuple(registries)
        self._require_apps_apart()

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
        """The definition under which each name is answered: that of the most current registry."""
        return {
            metric.name: metric for registry in reversed(self.registries) for metric in registry
        }

    def __iter__(self) -> Iterator[Metric]:
        """Iterate over the metrics that have a name of their own."""
        return iter(self.by_name.values())

    def metric(self, name: str) -> Metric:
        """Return the metric that *name* stands for now.  Raises UnknownMetricError."""
        try:
            return self.by_name[name]
        except KeyError:
            raise UnknownMetricError(name, tuple(self.by_name)) from None

    def definitions(self, metric: Metric) -> tuple[Metric, ...]:
        """Return what *metric* was defined as, in any registry of its name: itself first.

        Its segments are those of ``by_digest``.  Only definitions with the same kind of domain
        are of one question; a name that was given to another one stands apart.
        """
        same = (registry.metrics.get(metric.name) for registry in self.registries)
        versions = {
            version.digest: self.by_digest[version.digest]
            for version in (metric, *filter(None, same))
        }
        return tuple(version for version in versions.values() if version.type == metric.type)

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

    def _require_apps_apart(self) -> None:
        """Raise ConfigError if two apps share a name: answers to it would hide one of them.

        What they define alike could not even be told apart: who reads one would read both.
        """
        owners: dict[str, str] = {}
        for registry in self.registries:
            for metric in registry:
                owner = owners.setdefault(metric.name, registry.app)
                if owner != registry.app:
                    rule = (
                        f"is a metric of {owner} and of {registry.app}: rename one of them, or"
                        " serve each app by a collector with a HEARSAY_PREFIX of its own"
                    )
                    raise ConfigError("metric", metric.name, rule)


def _sampled(registries: Sequence[Registry]) -> list[Registry]:
    """Return *registries* whose metrics have the least share of devices that any of them draws.

    Devices of either version report under the same digest, so no more than that is known.
    """
    samples: dict[bytes, Sample] = {}
    for metric in (metric for registry in registries for metric in registry):
        samples[metric.digest] = min(metric.sample, samples.get(metric.digest, metric.sample))
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
