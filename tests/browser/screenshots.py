"""Make the pictures of the pages for the documentation: ``make screenshots``; about two minutes.

The people are drawn with a fixed seed.  The noise is not: it comes from the operating system, as
on every device.  So two runs give pictures that differ in their numbers, within their intervals.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page, ViewportSize

from client_sdk.registry import Registry
from client_sdk.upload.transport import MESSAGEPACK, RequestsTransport
from collector.core.config import SHARDS, STANDARD
from collector.demo.fleet import DEMO_REGISTRY, drive_gateways, population
from collector.demo.past import Past, backfill
from collector.storage.connect import open_storage
from tests.support.sites.browsing import browser_path, running_browser, watched
from tests.support.sites.shown_site import READ_TOKEN, WRITE_KEY, cookie_of
from tests.support.sites.site import Site, running_site

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
PAGES: Final = {
    "overview": "/",
    "metric": "/metric/one_page",
    "plan": "/plan?metric=first_page",
    "privacy": "/privacy",
}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
SIZE: Final[ViewportSize] = {"width": 1200, "height": 860}  # pixels
DEVICES: Final = 3_000  # of today, as in the demo
_SEED: Final = 1999
_GATEWAY_KEY: Final = "a-gateway-key-of-the-pictures"


def main(folder: Path = FOLDER) -> None:
    """Write a picture of each of PAGES in each of SCHEMES."""
    path = browser_path()
    if path is None:
        sys.exit("no browser is on PATH: apt install chromium")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as kept:
        registry = Path(str(DEMO_REGISTRY))
        store = Path(kept) / "store"
        with running_site(store, registry, WRITE_KEY, READ_TOKEN, _GATEWAY_KEY) as site:
            _feed(site)
            with running_browser(path) as browser:
                for scheme in SCHEMES:
                    with watched(browser, site.url, color_scheme=scheme) as (page, _):
                        page.context.add_cookies([cookie_of(site.url, READ_TOKEN)])
                        for name in PAGES:
                            shot = shot_of(page, name, folder / f"{name}-{scheme}.png")
                            print(f"{name}-{scheme}.png: {len(shot):,} bytes")


def shot_of(page: Page, name: str, path: Path | None = None) -> bytes:
    """Return a picture of the page called *name* as it is seen first; also written to *path*."""
    page.set_viewport_size(SIZE)
    page.goto(PAGES[name])
    page.evaluate("document.fonts.ready")
    return page.screenshot(path=path, animations="disabled", caret="hide")


def _feed(site: Site) -> None:
    """Bring two weeks of reports, as the demo does."""
    site.kill_worker()
    past = Past(site.url, _GATEWAY_KEY, str(DEMO_REGISTRY), DEVICES, _SEED, time.time())
    backfill(past, open_storage(site.redis_url, "hearsay", SHARDS, STANDARD))
    site.restart_worker()
    transport = RequestsTransport(site.url, _GATEWAY_KEY, content_type=MESSAGEPACK)
    people = population(DEVICES, random.Random(_SEED))
    drive_gateways(people, Registry.from_file(str(DEMO_REGISTRY)), transport)
    site.wait_until_folded()


if __name__ == "__main__":
    main()
