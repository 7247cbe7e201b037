"""The reports that a model is learned from: all of one definition of a metric, added up.

A model is post-processing of reports, so to learn one, or many, costs no privacy.  What was left
out of a window, because it was pruned, would make a model of others than it says: it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from client_sdk.core.epoch import ONCE

from ..analytics.verb import Slice
from ..core.catalog import Catalog
from ..core.errors import PrunedError, QueryError
from ..query import plan, question, without_pruned
from ..query.reading import blaming, slices_of
from ..storage.protocols import TallyStore


def reports_of(
    name: str, window: Mapping[str, str], catalog: Catalog, storage: TallyStore, now: float
) -> Slice:
    """Return the tally of all reports of the metric called *name* in a *window*.

    Args:   window: days ``from`` and ``to`` as text, those that were given; the usual window of
            questions is meant where none is.  A metric asked once has no days, and takes none.
    Raises: QueryError: there are no reports, or fewer than ``min_reports`` of the metric, or days
            of a metric that has none.
            PrunedError: an operator deleted some.
            UnknownMetricError, StorageUnavailableError, DamagedTallyError.
    """
    metric = catalog.metric(name)
    if window and metric.every == ONCE:
        rule = f"metric={metric.address} is asked once, so its reports have no days; leave it out"
        raise QueryError(f"{min(window)}: {rule}")
    resolved = without_pruned(plan(question(metric, window, now), catalog, now), storage)
    if resolved.notes:
        raise PrunedError(f"date_range: {resolved.notes[0]}; take later days")
    (reading,) = resolved.readings
    with blaming(metric):
        read = slices_of(resolved, reading, reading.metric, storage)
    if not read or read[0].n == 0:
        raise QueryError(f"metric={metric.address}: no reports in this window")
    (whole,) = read
    if whole.refusal is not None:
        raise QueryError(f"metric={metric.address}: {whole.refusal}")
    return whole
