"""The reports that a model is learned from: all of one definition of a metric, added up.

A model is post-processing of reports, so to learn one, or many, costs no privacy.  What was left
out of a window, because it was pruned, would make a model of others than it says: it is refused.
What operators have taken out of answers is in no model either, and a model says so as answers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from client_sdk.core.dataclass import replace
from client_sdk.core.epoch import ONCE
from client_sdk.learning.model import Model

from ..analytics.verb import Slice
from ..core.catalog import Catalog
from ..core.errors import PrunedError, QueryError
from ..query import Plan, plan, question, without_pruned
from ..query.basis import excluded_in
from ..query.exclusions import remarks_on
from ..query.reader import Reader
from ..query.reading import naming
from ..storage.protocols import TallyStore

EXCLUDED: Final = "excluded"  # the part of a model that says what was left out


@dataclass(frozen=True)
class LeftOut:
    """What operators have taken out of the reports of a metric: by which exclusions, how many."""

    exclusions: tuple[str, ...] = ()  # ids of those in force
    reports: int = 0
    notes: tuple[str, ...] = ()  # what answers say of them

    @classmethod
    def of(cls, plan: Plan, parts: Iterable[Slice]) -> LeftOut:
        """Return what a *plan* of one metric leaves out of its *parts*."""
        (reading,), gone = plan.readings, excluded_in(parts)
        said = remarks_on(plan.excluded, reading.metric, reading.epochs, gone)
        ids = sorted(exclusion.id for exclusion in plan.excluded.applied)
        return cls(tuple(ids), gone.reports, tuple(map(str, said)))

    def parts(self) -> dict[str, object]:
        """Return what a model file says of it; nothing if there is no exclusion."""
        if not self.exclusions:
            return {}
        return {EXCLUDED: {"reports": self.reports, "notes": list(self.notes)}}


NOTHING: Final = LeftOut()


class Crowd(NamedTuple):
    """The reports that a model is learned from, and what was left out of them."""

    part: Slice
    left_out: LeftOut

    def noted_in(self, model: Model) -> Model:
        """Return *model*, which was learned of these reports, with what was left out of them."""
        return replace(model, parts={**model.parts, **self.left_out.parts()})


def reports_of(
    name: str, window: Mapping[str, str], catalog: Catalog, storage: TallyStore, now: float
) -> Crowd:
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
        raise QueryError(min(window), rule)
    reader = Reader(storage)
    resolved = without_pruned(plan(question(metric, window, now), catalog, now), reader)
    if resolved.notes:
        raise PrunedError("date_range", f"{resolved.notes[0]}; take later days")
    (reading,) = resolved.readings
    with naming(metric):
        read = reader.slices(resolved, reading, reading.metric)
        reader.require_unpruned(resolved)
    left_out = LeftOut.of(resolved, read)
    besides = "".join(f"; {note}" for note in left_out.notes)
    if not read or read[0].n == 0:
        raise QueryError("metric", f"no reports in this window{besides}", metric.address)
    (whole,) = read
    if whole.refusal is not None:
        raise QueryError("metric", f"{whole.refusal}{besides}", metric.address)
    return Crowd(whole, left_out)
