"""Notes on time axes: which of them a chart is to show, and until when one is only planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from ..core.catalog import Catalog
from .documents import Document, Note
from .shelf import is_visible, place_if_known


def notes_on(
    notes: Iterable[Document[Note]], metrics: Sequence[str], catalog: Catalog
) -> list[Note]:
    """Return the *notes* for charts of *metrics*, the first day first.

    A note of a metric is for its charts; a note of an app, or of all apps, for their metrics.
    """
    places = {place for name in metrics if (place := place_if_known(catalog, name))}
    apps = {app for app, _ in places}
    chosen = (
        document.content
        for document in notes
        if not document.content.app or document.content.app in apps
        if not document.content.metric or place_if_known(catalog, document.content.metric) in places
    )
    return sorted(chosen, key=lambda note: (note.at, note.text))


def readable(
    notes: Iterable[Document[Note]], view: Catalog, catalog: Catalog
) -> list[Document[Note]]:
    """Return the *notes* that may be seen by whom *view* is for, the last day first."""
    seen = (note for note in notes if is_visible(note.content, view, catalog))
    return sorted(seen, key=lambda note: (note.content.at, note.at), reverse=True)


def is_planned(note: Note, now: float) -> bool:
    """Return whether the day of *note* has not come at Unix time *now*, in UTC."""
    return note.at > datetime.fromtimestamp(now, UTC).date().isoformat()
