"""What the middleware of every web framework records: requests, errors, response times.

The device is the installation that serves, with all its processes: they share a ``data_dir``, hence
one ledger, and make one report of each metric and week together.  So it is the installation, or the
person who runs it, that ε protects.  Of a visitor nothing is kept but a part in three numbers: that
there was a request, whether it failed, and how soon its answer began.  No address, header, body or
path is read; routes are known by their templates, and only to leave some of them out.

Each metric may be left out of the registry, and may have another shape than in ``METRICS``:
``requests`` is a number, ``errors`` a boolean or a number, ``latency`` a category of ``LATENCIES``
or a number in ms or s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import InvalidParameterError

if TYPE_CHECKING:
    from ..client import Client
    from ..registry.metric import Metric

FAILED: Final = 500  # HTTP status; from here on it is the server's fault
IDLE: Final = "no request"  # the latency of a week without requests
_STEPS: Final = (  # seconds up to which a label goes; each about three times the one before
    (0.01, "10 ms"),
    (0.03, "30 ms"),
    (0.1, "100 ms"),
    (0.3, "300 ms"),
    (1.0, "1 s"),
    (3.0, "3 s"),
)
_SLOWER: Final = "more"
LATENCIES: Final = (IDLE, *(label for _, label in _STEPS), _SLOWER)
_PER_SECOND: Final = {"ms": 1_000, "s": 1}  # by the unit of a number

METRICS: Final = f"""\
[metrics."http.requests"]
title = "Requests a week"
question = "For how much traffic should the defaults be made?"
type = "count"
aggregate = "sum"
otherwise = 0
min = 0
max = 100000
step = 100
unit = "requests"
epsilon = "1"
every = "7d"
longitudinal = "fresh"
expected_devices = 5000
owner = "server team"
expires = 2027-12-31

[metrics."http.errors"]
title = "Installations with errors"
question = "In how many installations did a request fail this week, and is the release to blame?"
type = "boolean"
aggregate = "any"
otherwise = false
epsilon = "1"
every = "7d"
longitudinal = "fresh"
expected_devices = 5000
owner = "server team"
expires = 2027-12-31

[metrics."http.latency"]
title = "Usual response time"
question = "How fast do most installations answer?"
type = "category"
aggregate = "most_common"
otherwise = "{IDLE}"
values = [{", ".join(f'"{label}"' for label in LATENCIES)}]
epsilon = "1"
every = "7d"
longitudinal = "fresh"
expected_devices = 5000
owner = "server team"
expires = 2027-12-31
"""


class RequestMetrics:
    """Records requests under the metrics of a client's registry that begin with a prefix."""

    def __init__(
        self,
        client: Client,
        *,
        prefix: str = "http",
        leave_out: Iterable[str] = (),
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Look which of the metrics there are.

        Args:   client: in background mode, whose ``record`` waits for nothing.
                prefix: what the names of the metrics begin with, before the dot.
                leave_out: templates of routes that are not counted, such as ``/healthz``.
        Raises: InvalidParameterError: there is none of them, or one has a shape that is not known.
        """
        self._client, self.clock = client, clock
        self._left_out = frozenset(leave_out)
        self._values: list[tuple[str, Callable[[float, bool], object]]] = []
        for name, value_of in (("requests", _request), ("errors", _failure), ("latency", _latency)):
            metric = client.registry.metrics.get(f"{prefix}.{name}")
            if metric is not None:
                self._values.append((metric.name, value_of(metric)))
        if not self._values:
            rule = f"must begin a metric of the registry, such as {prefix}.requests"
            raise InvalidParameterError("prefix", prefix, rule)

    def observe(self, seconds: float, status: int | None, route: str | None = None) -> None:
        """Record one request.

        Args: seconds: until its answer began.  status: of HTTP; None if it was never answered.
              route: the template that it matched, if any; never its path.
        """
        if route is None or route not in self._left_out:
            failed = status is None or status >= FAILED
            for name, value_of in self._values:
                self._client.record(name, value_of(seconds, failed))


def _request(metric: Metric) -> Callable[[float, bool], object]:
    if metric.domain.grid is None:
        raise _misshapen(metric, "a count")
    return lambda seconds, failed: 1


def _failure(metric: Metric) -> Callable[[float, bool], object]:
    if metric.type == "boolean":
        return lambda seconds, failed: failed
    if metric.domain.grid is None:
        raise _misshapen(metric, "a boolean or a count")
    return lambda seconds, failed: int(failed)


def _latency(metric: Metric) -> Callable[[float, bool], object]:
    grid: Any = metric.domain.grid
    if grid is not None and grid.unit in _PER_SECOND:
        factor = _PER_SECOND[grid.unit]
        return lambda seconds, failed: seconds * factor
    if metric.domain.labels != LATENCIES:
        rule = f"a duration in ms or s, or a category of {', '.join(LATENCIES)}"
        raise _misshapen(metric, rule)
    return lambda seconds, failed: label_of(seconds)


def label_of(seconds: float) -> str:
    """Return the label of LATENCIES up to which *seconds* goes."""
    return next((label for end, label in _STEPS if seconds <= end), _SLOWER)


def _misshapen(metric: Metric, shape: str) -> InvalidParameterError:
    return InvalidParameterError(f"metrics.{metric.name}", metric.type, f"must be {shape}")
