"""A collector whose pages can be looked at: every type of metric, reported by real devices."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from client_sdk.core.epoch import DAY
from client_sdk.registry import Registry
from client_sdk.upload.transport import RequestsTransport
from collector.demo.fleet import DEMO_REGISTRY, Person, drive, population
from collector.storage.connection import Connection
from collector.storage.hashes import RedisHashes
from collector.storage.records import WatchStore
from tests.support.sites.site import Site, running_site
from tests.support.sites.watch_states import watch_state

WRITE_KEY: Final = "device-key-for-the-pages-0123456789"
READ_TOKEN: Final = "read-token-for-the-pages-0123456789"
DAYS: Final = 9  # of reports: of today, and of a day of the week before the last seven
A_DAY: Final = 110  # devices; a little more than the fewest that may be shown
MIN_REPORTS: Final = 100

SCRIPTS: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "</style></svg><script>alert(1)</script>",
    "javascript:alert(1)",
    "<details open ontoggle=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "{{7*7}}${alert(1)}",
    "<iframe srcdoc='<script>parent.alert(1)</script>'>",
)
_COMMON: Final = """
question = {question}
every = "{every}"
longitudinal = "fresh"
epsilon = "1.0"
segments = ["platform", "version", "arm"]
expected_devices = 10000
min_reports = 100
owner = {owner}
expires = 2027-12-31
"""
# name: (type and domain, how often, how a person's value is drawn)
_HOSTILE: Final[dict[str, tuple[str, str, Callable[[random.Random], object]]]] = {
    "labels": (
        f'type = "category"\nvalues = {json.dumps(list(SCRIPTS))}',
        "1d",
        lambda chance: chance.choice(SCRIPTS),
    ),
    "plugins": (
        f'type = "set"\nvalues = {json.dumps(list(SCRIPTS[:4]))}',
        "1d",
        lambda chance: chance.sample(SCRIPTS[:4], 2),
    ),
    "minutes": (
        f'type = "key_value"\nvalues = {json.dumps(list(SCRIPTS[:3]))}\n'
        f"min = 0\nmax = 60\nunit = {json.dumps(SCRIPTS[1])}",
        "1d",
        lambda chance: {SCRIPTS[0]: chance.randrange(60), SCRIPTS[1]: 5},
    ),
    "latency": (
        f'type = "duration"\nmin = 0\nmax = 1000\nstep = 10\nunit = {json.dumps(SCRIPTS[0])}',
        "7d",
        lambda chance: chance.randrange(1_000),
    ),
    "place": (
        'type = "location"\nmin = [5.9, 45.8]\nmax = [10.5, 47.85]\ncells = [6, 4]',
        "once",
        lambda chance: [chance.uniform(6, 10), chance.uniform(46, 47.5)],
    ),
    "both": (
        'type = "pair"\nparts = { one = '
        f"{json.dumps(list(SCRIPTS[:3]))}, two = {json.dumps(list(SCRIPTS[3:6]))} }}",
        "once",
        lambda chance: {"one": chance.choice(SCRIPTS[:3]), "two": chance.choice(SCRIPTS[3:6])},
    ),
    "steps": (
        f'type = "funnel"\nvalues = {json.dumps(list(SCRIPTS[:3]))}',
        "once",
        lambda chance: chance.choice((*SCRIPTS[:3], None)),
    ),
    "weeks": (
        f'type = "retention"\nperiods = {json.dumps(list(SCRIPTS[:3]))}',
        "once",
        lambda chance: [one for one in SCRIPTS[:3] if chance.random() < 0.5],
    ),
}
_SEGMENTS: Final = {
    "platform": ("linux", SCRIPTS[1]),
    "version": ("1.0", "1.1"),
    "arm": ("control", SCRIPTS[0]),
}


def hostile_registry() -> str:
    """Return a registry with a metric of every other type, all of whose texts are scripts."""
    parts = ['schema = 1\napp = "hostile"\n[segments]\n']
    parts += [f"{name} = {json.dumps(list(values))}\n" for name, values in _SEGMENTS.items()]
    for number, (name, (domain, every, _)) in enumerate(_HOSTILE.items()):
        texts = [json.dumps(SCRIPTS[(number + place) % len(SCRIPTS)]) for place in range(3)]
        common = _COMMON.format(question=texts[1], owner=texts[2], every=every)
        parts.append(f"[metrics.{name}]\ntitle = {texts[0]}\n{domain}{common}")
    return "\n".join(parts)


HOSTILE: Final = tuple(_HOSTILE)  # names of its metrics
DEMO: Final = tuple(Registry.from_file(str(DEMO_REGISTRY)).metrics)


class ShownSite:
    """Where the pages are, and what opens them."""

    def __init__(self, site: Site, demo: Path, hostile: Path) -> None:
        self.url, self.site = site.url, site
        self.demo, self.hostile = (Registry.from_file(str(path)) for path in (demo, hostile))
        self.token = READ_TOKEN
        self.operator = _operator_token(site, demo)

    def cookie(self, token: str = READ_TOKEN) -> Any:
        """Return what a browser keeps after the log-in with *token*."""
        return cookie_of(self.url, token)

    def report(self, devices: int, days_ago: int = 0) -> None:
        """Let devices report, and wait until that is folded.

        Of past days only the demo's metrics are reported, which have lines over time.
        """
        chance, then = random.Random(days_ago), time.time() - days_ago * DAY
        transport = RequestsTransport(self.url, WRITE_KEY)
        drive(population(devices, chance, days_ago), self.demo, transport, clock=lambda: then)
        if not days_ago:
            drive([_other(chance) for _ in range(devices)], self.hostile, transport)
        self.site.wait_until_folded()


@contextmanager
def shown_site(folder: Path) -> Iterator[ShownSite]:
    """Run a collector of the demo's metrics and the hostile ones, with DAYS of reports."""
    demo, hostile = folder / "metrics.toml", folder / "hostile.toml"
    text = DEMO_REGISTRY.read_text(encoding="utf-8")
    demo.write_text(text.replace("min_reports = 300", f"min_reports = {MIN_REPORTS}"), "utf-8")
    hostile.write_text(hostile_registry(), "utf-8")
    both = Path(os.pathsep.join(map(str, (hostile, demo))))
    with running_site(folder / "store", both, WRITE_KEY, READ_TOKEN) as site:
        shown = ShownSite(site, demo, hostile)
        for days_ago in range(DAYS - 1, -1, -1):
            shown.report(A_DAY, days_ago)
        state = watch_state("labels", SCRIPTS[1], int(time.time()))
        store = WatchStore(RedisHashes(Connection.open(site.redis_url), "hearsay"))
        store.replace(b"", state.ledger)
        for series in state.series.values():
            store.put(series)
        yield shown


def cookie_of(url: str, token: str) -> Any:
    """Return what a browser keeps after the log-in at *url* with *token*."""
    kind = {"httpOnly": True, "sameSite": "Strict"}
    return {"name": "hearsay", "value": token, "url": url, **kind}


def _other(chance: random.Random) -> Person:
    values = {name: draw(chance) for name, (_, _, draw) in _HOSTILE.items()}
    return Person(values, {name: chance.choice(of) for name, of in _SEGMENTS.items()})


def _operator_token(site: Site, registry: Path) -> str:
    """Return a new token that also opens the page of operations."""
    words = [sys.executable, "-m", "collector", "keys", "create", "read", "--role", "operator"]
    settings = {"REDIS_URL": site.redis_url, "HEARSAY_REGISTRY": str(registry)}
    settings |= {"HEARSAY_WRITE_KEY": WRITE_KEY, "HEARSAY_READ_TOKEN": READ_TOKEN}
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("HEARSAY")}
    made = subprocess.run(
        words, env={**inherited, **settings}, capture_output=True, text=True, check=True
    )
    return made.stdout.strip()
