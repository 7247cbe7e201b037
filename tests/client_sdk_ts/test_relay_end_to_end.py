"""The device in TypeScript by a running relay to a running collector, in Node and in a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY
from tests.support.device.loopback import serving_files
from tests.support.node import PACKAGE, Node
from tests.support.patience import PATIENCE
from tests.support.sites.capsules import make_keys
from tests.support.sites.relayed import Relay, running_relay
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

REGISTRY: Final = Path(__file__).parents[2] / "examples" / "metrics.toml"
VALUES: Final = {"theme": "dark", "uses_plugins": True, "startup_ms": 420}
# One program for both: what differs is how the parts come to it.
PROGRAM: Final = """
const client = new Client({
  endpoint, writeKey, relay, relayKey, registry, mechanisms: [...everything, part],
  consent: "granted", store: memoryStore(), optOuts: noOptOuts, segment: { platform: "linux" },
});
for (const [name, value] of Object.entries(values)) client.record(name, value);
const delivery = await client.flush(patience);
const counts = Object.entries(client.stats()).filter(([, count]) => count);
await client.close();
const result = { complete: delivery.complete, counts: Object.fromEntries(counts) };
"""
EXPORTS: Final = """
export * from "hearsay-telemetry";
export { everything } from "hearsay-telemetry/mechanisms";
export { relay as part } from "hearsay-telemetry/parts/relay";
"""


class World(NamedTuple):
    """All that a device needs, and where its page is served from."""

    site: Site
    relay: Relay
    settings: dict[str, object]
    origin: str
    folder: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Each device is a batch of its own here, as one network is."""
    folder, pages = tmp_path_factory.mktemp("relay"), tmp_path_factory.mktemp("pages")
    keys = make_keys(folder)
    opens = {"HEARSAY_OBLIVIOUS_KEYS": keys.path}
    with serving_files(pages) as server:
        origin = f"http://127.0.0.1:{server.port}"
        with (
            running_site(folder, REGISTRY, WRITE_KEY, READ_TOKEN, settings=opens) as site,
            running_relay(folder, site.url, origins=(origin,)) as relay,
        ):
            settings: dict[str, object] = {
                "endpoint": "https://nowhere.invalid",  # nothing may be sent there
                "writeKey": WRITE_KEY,
                "relay": relay.url,
                "relayKey": keys.relay_key,
                "registry": compiled(Registry.from_file(REGISTRY)),
                "values": VALUES,
                "patience": 1_000 * PATIENCE,
            }
            yield World(site, relay, settings, origin, pages)


SENT: Final = {
    "complete": True,
    "counts": {"recorded": len(VALUES), "window_opened": 1, "uploaded": len(VALUES)},
}
KEPT: Final = {
    "complete": False,
    "counts": {"recorded": len(VALUES), "window_opened": 1, "network": 1},
}


def test_a_program_in_node_reports_by_the_relay(node: Node, world: World) -> None:
    before = {name: world.site.reports(name) for name in VALUES}
    imports = "".join(
        f"import {names} from {str(PACKAGE / 'dist' / module)!r};"
        for names, module in (
            ("{ Client, memoryStore, noOptOuts }", "node.js"),
            ("{ everything }", "all.js"),
            ("{ relay as part }", "parts/relay.js"),
        )
    )
    names = "{ endpoint, writeKey, relay, relayKey, registry, values, patience }"
    given = f"const {names} = {json.dumps(world.settings)};"

    result = node.evaluate(f"{imports}{given}{PROGRAM} console.log(JSON.stringify(result));")

    assert result == SENT
    for name in VALUES:
        assert world.site.wait_for_reports(name, before[name] + 1) == before[name] + 1


@pytest.fixture(scope="module")
def bundled(node: Node, world: World) -> None:
    """A page with the package lies ready."""
    (world.folder / "node_modules").mkdir()
    (world.folder / "node_modules" / "hearsay-telemetry").symlink_to(PACKAGE)
    (world.folder / "entry.js").write_text(EXPORTS, "utf-8")
    words = ("--bundle", "--format=iife", "--global-name=hearsay", "--outfile=page.js")
    done = node.tool("esbuild", "entry.js", *words, "--log-level=error", cwd=world.folder)
    assert done.returncode == 0, done.stderr
    (world.folder / "index.html").write_text(
        '<!doctype html><title>app</title><script src="page.js"></script>', "utf-8"
    )


@pytest.fixture
def page(browser: Browser, bundled: None) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def recorded_in(page: Page, world: World) -> object:
    names = "{ endpoint, writeKey, relay, relayKey, registry, values, patience }"
    parts = "const { Client, everything, memoryStore, noOptOuts, part } = hearsay;"
    return page.evaluate(
        f"async ({names}) => {{ {parts}{PROGRAM} return result; }}", world.settings
    )


def test_a_page_reports_by_the_relay_and_speaks_to_nobody_else(page: Page, world: World) -> None:
    before = world.site.reports("theme")
    page.goto(f"{world.origin}/index.html")
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))

    result = recorded_in(page, world)

    assert result == SENT
    assert hosts == {urlsplit(world.relay.url).netloc}
    assert world.site.wait_for_reports("theme", before + 1) == before + 1


def test_a_page_of_an_origin_that_the_relay_does_not_list_sends_nothing(
    page: Page, world: World
) -> None:
    before = world.site.reports("theme")
    page.goto(world.origin.replace("127.0.0.1", "localhost") + "/index.html")

    result = recorded_in(page, world)

    assert result == KEPT
    world.site.wait_until_folded()
    assert world.site.reports("theme") == before
