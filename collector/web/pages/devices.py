"""How many devices reported, in words: of the last periods, and where longer ones are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from flask import url_for

from client_sdk.core.epoch import LENGTHS
from client_sdk.registry.metric import Metric

from ...analytics.verb import ACTIVES, load
from .panels import Notice, Panel
from .questions import is_answerable
from .remarks import counts_text

PERIODS: Final = {"1d": "a day", "7d": "a week", "28d": "four weeks"}


def with_latest(panel: Panel, metrics: Sequence[Metric]) -> Panel:
    """Return *panel* with the numbers of the last periods in its hint, if it counts devices.

    A device that reports each day is not known again within a week, so each of *metrics* that has
    longer periods is a link to the devices of those.
    """
    reply, request = panel.reply, panel.request
    if reply is None or not load(request.query.verb).counts_devices:
        return panel
    # A comparison has them in its hint already.
    hint = request.hint if request.query.against else f"{counts_text(reply)} {request.hint}".strip()
    notices = (*request.notices, *longer(reply.meta.metrics[0].name, metrics))
    return replace(panel, request=replace(request, hint=hint, notices=notices))


def longer(address: str, metrics: Sequence[Metric]) -> Iterator[Notice]:
    """Yield the first of *metrics* of each period that is longer than *address*'s own."""
    own = next(metric.every for metric in metrics if metric.address == address)
    for every, words in PERIODS.items():
        if LENGTHS[every] <= LENGTHS[own]:
            continue
        others = (m for m in metrics if m.every == every and is_answerable(ACTIVES, m, metrics))
        if other := next(others, None):
            url = url_for("ask.ask_page", metric=other.address, verb=ACTIVES)
            yield Notice(f"The devices of {words} are counted by", other.title, url)
