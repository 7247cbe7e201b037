"""What a page costs: milliseconds of the server and bytes, also of an overview of 100 metrics.

Run: ``python -m benchmarks pages``.  Tallies of two weeks and of a year lie in a Redis-compatible
server of this machine; a time is that of one request without a network, the store's work included.
A page is shown *anew* where nothing is kept of it, as if every tally had changed since, and *again*
where none has; its bar is of both.  Weight is the page with its style sheets and scripts, not
compressed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from statistics import median
from typing import Any, Final

from flask.testing import FlaskClient

from benchmarks.lib.page import head, row, verdict
from benchmarks.lib.registries import items
from benchmarks.speed.query import BEARER, Shape, filled, timed
from collector.query.cache import Cache
from collector.web.services import services_of

PAGE_MS: Final = 50.0
OVERVIEW_MS: Final = 300.0
MOST_BYTES: Final = 150_000
MANY: Final = 100  # metrics
_DAYS: Final = 30
_BOOLEAN: Final = 'type = "boolean"\nmechanism = "grr"'
_NUMBER: Final = (
    'type = "duration"\nmechanism = "square_wave"\nmin = 0\nmax = 5000\nstep = 10\nunit = "ms"'
)
_LOCATION: Final = (
    'type = "location"\nmechanism = "grr"\nmin = [-10, 36]\nmax = [22, 60]\ncells = [16, 12]'
)
SHOWN: Final = (
    Shape("theme", items("grr", 10), 365),
    Shape("dark", _BOOLEAN, 365),
    Shape("startup", _NUMBER, 365),
    Shape("place", _LOCATION, _DAYS),
)
OVERVIEW: Final = tuple(
    Shape(f"m{i}", (items("grr", 10), _BOOLEAN, _NUMBER)[i % 3], _DAYS) for i in range(MANY)
)
_MAP: Final = "/ask?metric=place&verb=map&range=30d"
PAGES: Final = (
    *("/", "/metric/theme", "/metric/dark", "/metric/startup", "/metric/place"),
    *("/metric/theme?range=12mo", "/metric/startup?range=12mo", _MAP),
    *("/compare?metric=theme&range=7d", "/ask?metric=theme&verb=trend&by=time:day&range=12mo"),
    *("/plan?metric=startup", "/privacy", "/privacy/people"),
)
OVERVIEWS: Final = ("/", "/?sheet=2", "/?search=m9", "/?order=name")


def main() -> None:
    """Print what each page takes beside its bars."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    times = [f"ms {how}, {which}" for how in ("anew", "again") for which in ("least", "median")]
    print(head("page", "kB", "with files", *times, "processor ms anew", "again", "bar", ""))
    with filled(SHOWN) as (_, _, client):
        for page in PAGES:
            _show(client, page, page, PAGE_MS)
    with filled(OVERVIEW) as (_, _, client):
        for page in OVERVIEWS:
            _show(client, page, f"{page} of {MANY} metrics", OVERVIEW_MS)


def _show(client: FlaskClient, page: str, what: str, bar: float) -> None:
    text = _loaded(client, page)
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', text))
    size = len(text.encode())
    weight = size + sum(len(client.get(file, buffered=True).data) for file in files)
    walls, processor = timed(lambda: _loaded(client, page, is_kept=False))
    _loaded(client, page)
    again, less = timed(lambda: _loaded(client, page))
    times = (min(walls), median(walls), min(again), median(again), processor, less)
    numbers = (size / 1e3, weight / 1e3, *times)
    met = verdict(max(median(walls), median(again)) <= bar and weight <= MOST_BYTES)
    print(row(what, *(f"{number:.0f}" for number in numbers), f"≤ {bar:.0f} ms", met), flush=True)


def _loaded(client: FlaskClient, page: str, *, is_kept: bool = True) -> str:
    """Return *page*, with or without what the process keeps."""
    if not is_kept:
        replace(services_of(client.application), pages=Cache[Any]()).attach(client.application)
    response = client.get(page, headers=BEARER)
    assert response.status_code == 200, response.text
    return str(response.text)
