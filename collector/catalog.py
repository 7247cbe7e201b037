"""The metrics that a collector knows: the current registry, and older ones still being reported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from client_sdk.errors import UnknownMetricError
from client_sdk.metric import Metric
from client_sdk.registry import Registry

from .errors import ConfigError


@dataclass(frozen=True)
class Known:
    """A metric with the segment vocabulary of the registry that declares it."""

    metric: Metric
    vocabulary: Mapping[str, tuple[str, ...]]


class Catalog:
    """Registries, the current one first.  A digest is known if any of them declares it."""

    def __init__(self, registries: Sequence[Registry]) -> None:
        """Index *registries* by digest and, for queries, the current metrics by name."""
        if not registries:
            raise ConfigError("registry", "", "at least one registry file is needed")
        self.registries = tuple(registries)

    @cached_property
    def by_digest(self) -> Mapping[bytes, Known]:
        """Every known definition; where registries share a digest, the current one counts."""
        return {
            metric.digest: Known(metric, registry.segments)
            for registry in reversed(self.registries)
            for metric in registry
        }

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
