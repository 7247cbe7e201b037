"""The store in IndexedDB, in a real Chromium: of many tabs at once, and where it cannot be used."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.device.loopback import serving_files
from tests.support.node import PACKAGE, Node

METRIC: Final = "0123456789ab"
NANO: Final = 40_000_000  # of a charge
CAP: Final = 200  # charges: a week of 8

# What each page has: `device.charge` counts what became of attempts, `device.raw` has the text.
SETUP: Final = """<!doctype html><title>tab</title><script type="module">
const load = (path) => import(`./dist/${path}.js`);
const [{ capsOf }, ledger, { put }, { indexedDbStore }, { sessionStore }, { readDocument, writeDocument }] =
  await Promise.all(["privacy/caps", "storage/ledger", "storage/outbox", "storage/indexed_db", "storage/memory",
    "storage/document"].map(load));
const METRIC = "0123456789ab";
const caps = capsOf({ metric_week: "999", week: "8" });
const store = indexedDbStore("app");
const outcome = (promise) => promise.then(() => "recorded", (error) => error.reason ?? String(error));
const report = (epoch) => (state) => {
  ledger.beginLedger(state, caps, 100);
  ledger.charge(state, caps, { digest: METRIC, epoch, nano: 40_000_000 }, 100);
  put(state, { digest: METRIC, epoch, payload: "AAAA", day: 100 }, {}, []);
};
const database = () => new Promise((resolve, reject) => {
  const request = indexedDB.open("hearsay-telemetry app", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("documents");
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
globalThis.device = {
  store, indexedDbStore, sessionStore, readDocument, writeDocument, outcome, report,
  acknowledged: [],
  async charge(first, count) {
    const outcomes = {};
    for (let i = 0; i < count; i++) {
      const name = await outcome(store.update(report(first + i)));
      outcomes[name] = (outcomes[name] ?? 0) + 1;
      if (name === "recorded") this.acknowledged.push(first + i);
    }
    return outcomes;
  },
  /** Returns the text that is kept, or puts another in its place. */
  async raw(text) {
    const db = await database();
    const objects = db.transaction("documents", text === undefined ? "readonly" : "readwrite").objectStore("documents");
    const request = text === undefined ? objects.get("state") : objects.put(text, "state");
    await new Promise((resolve, reject) => {
      request.transaction.oncomplete = resolve;
      request.transaction.onabort = reject;
    });
    db.close();
    return request.result;
  },
};
</script>"""  # noqa: E501 - a page
FRAME: Final = '<!doctype html><iframe sandbox="allow-scripts" src="tab.html"></iframe>'
NEWER: Final = '{"version":2,"what":"is not known"}'
NO_DATABASE: Final = "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })"
CHARGE: Final = "device.outcome(device.store.update(device.report(%d)))"


@pytest.fixture(scope="module")
def address(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a folder with the built package and a page that loads it."""
    folder = tmp_path_factory.mktemp("tabs")
    shutil.copytree(PACKAGE / "dist", folder / "dist")
    (folder / "tab.html").write_text(SETUP, "utf-8")
    (folder / "frame.html").write_text(FRAME, "utf-8")
    with serving_files(folder) as server:
        yield f"http://localhost:{server.port}"


@pytest.fixture
def profile(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def tab(profile: BrowserContext, address: str) -> Page:
    return opened(profile, address)


def opened(profile: BrowserContext, address: str) -> Page:
    page = profile.new_page()
    page.goto(f"{address}/tab.html")
    page.wait_for_function("globalThis.device")
    return page


def state_of(page: Page) -> Any:
    return page.evaluate("device.store.read((state) => state)")


@pytest.mark.parametrize(
    ("tabs", "attempts"), [(4, 80), pytest.param(8, 1_000, marks=pytest.mark.slow)]
)
def test_tabs_together_charge_exactly_the_cap(
    profile: BrowserContext, address: str, tabs: int, attempts: int
) -> None:
    """Law: what was recorded is in the ledger and in the outbox, and it is all of the cap."""
    pages = [opened(profile, address) for _ in range(tabs)]
    for number, page in enumerate(pages):
        page.evaluate(f"void (device.done = device.charge({number * attempts}, {attempts}))")

    total: Counter[str] = Counter()
    for page in pages:
        total += Counter(page.evaluate("device.done"))

    state = state_of(pages[0])
    account = state["ledger"][METRIC]
    assert total == {"recorded": CAP, "budget": tabs * attempts - CAP}
    assert account["nano"] == CAP * NANO
    assert sum(last - first + 1 for first, last in account["epochs"]) == CAP
    assert len(state["reports"]) == CAP


def test_tabs_that_take_no_turns_would_be_caught(profile: BrowserContext, address: str) -> None:
    """Without a transaction around both, what one tab reads another has changed meanwhile."""
    pages = [opened(profile, address) for _ in range(4)]
    for number, page in enumerate(pages):
        page.evaluate(
            """(first) => void (device.done = (async () => {
                for (let i = 0; i < 40; i++) {
                    const state = device.readDocument(await device.raw());
                    device.report(first + i)(state);
                    await device.raw(device.writeDocument(state));
                }
            })())""",
            1_000 * number,
        )
    for page in pages:
        page.evaluate("device.done")

    assert state_of(pages[0])["ledger"][METRIC]["nano"] < 160 * NANO


@pytest.mark.parametrize("closings", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_tab_that_is_closed_at_any_moment_loses_and_doubles_nothing(
    profile: BrowserContext, address: str, closings: int
) -> None:
    """Law: what a promise was kept of is there; every charge has its report."""
    rng = random.Random("closings")
    watcher = opened(profile, address)
    for number in range(closings):
        page = opened(profile, address)
        page.evaluate(f"void device.charge({1_000 * number}, 4)")
        page.wait_for_timeout(rng.random() * 30)
        acknowledged = page.evaluate("device.acknowledged")
        page.close()

        state = state_of(watcher)
        reports = [report["epoch"] for report in state["reports"]]
        account = state["ledger"].get(METRIC, {"nano": 0, "epochs": []})
        assert set(acknowledged) <= set(reports)
        assert account["nano"] == len(reports) * NANO
        assert len(set(reports)) == len(reports)


def test_a_change_that_throws_leaves_nothing_behind(tab: Page) -> None:
    error = tab.evaluate(
        """device.store.update((state) => {
            state.consent = "denied";
            throw new RangeError("broken");
        }).catch(String)"""
    )

    assert error == "RangeError: broken"
    assert tab.evaluate("device.raw()") is None


def test_a_full_disk_is_a_store_error_and_nothing_happened(tab: Page, address: str) -> None:
    """Law: an exceeded quota is counted, and once there is room it goes on."""
    session = tab.context.new_cdp_session(tab)
    session.send("Storage.overrideQuotaForOrigin", {"origin": address, "quotaSize": 1})

    refused = tab.evaluate(CHARGE % 2)
    session.send("Storage.overrideQuotaForOrigin", {"origin": address})
    later = tab.evaluate(CHARGE % 3)

    assert (refused, later) == ("store", "recorded")
    assert state_of(tab)["ledger"][METRIC]["epochs"] == [[3, 3]]


def test_a_window_without_indexed_db_is_a_store_error(browser: Browser, address: str) -> None:
    """As some private windows; a session is what is left there."""
    with browser.new_context() as profile:
        profile.add_init_script(NO_DATABASE)
        page = opened(profile, address)

        assert page.evaluate(CHARGE % 1) == "store"
        session = "device.outcome(device.sessionStore('app').update(device.report(%d)))"
        assert page.evaluate(session % 1) == "recorded"
        assert page.evaluate(session % 2) == "already_reported"


def test_a_frame_that_may_keep_nothing_is_a_store_error(tab: Page, address: str) -> None:
    """A sandboxed frame has neither IndexedDB nor locks, and says so by throwing."""
    tab.goto(f"{address}/frame.html")
    frame = tab.frames[-1]
    frame.wait_for_function("globalThis.device")

    assert frame.evaluate(CHARGE % 1) == "store"


def test_a_text_that_ends_anywhere_costs_the_rest_of_the_week(tab: Page) -> None:
    """Law: damage is never thrown into the application, and never loosens a budget."""
    assert tab.evaluate(CHARGE % 1) == "recorded"
    text = tab.evaluate("device.raw()")

    outcomes = tab.evaluate(
        """async (text) => {
            const outcomes = [];
            for (let end = 0; end < text.length; end++) {
                await device.raw(text.slice(0, end));
                outcomes.push(await device.outcome(device.store.update(device.report(2))));
            }
            return outcomes;
        }""",
        text,
    )

    assert outcomes == ["budget"] * len(text)


def test_a_newer_document_is_refused_and_left_as_it_is(tab: Page) -> None:
    newer = tab.evaluate(
        """async (text) => {
            await device.raw(text);
            return text;
        }""",
        f"{hashlib.sha256(NEWER.encode()).hexdigest()[:16]} {NEWER}",
    )

    assert tab.evaluate(CHARGE % 1) == "store"
    assert tab.evaluate("device.raw()") == newer


def test_a_newer_database_is_refused_and_an_older_tab_gives_way_to_it(
    profile: BrowserContext, address: str
) -> None:
    """Law: this version neither blocks a newer one nor writes into what that made."""
    old, new = opened(profile, address), opened(profile, address)
    assert old.evaluate(CHARGE % 1) == "recorded"

    upgraded = new.evaluate(
        """new Promise((resolve) => {
            const request = indexedDB.open("hearsay-telemetry app", 2);
            request.onsuccess = () => resolve(request.result.version);
            request.onblocked = () => resolve("blocked");
        })"""
    )

    assert upgraded == 2
    assert old.evaluate(CHARGE % 2) == "store"


def test_storage_that_is_cleared_beneath_an_open_tab_begins_anew(
    profile: BrowserContext, address: str
) -> None:
    """A device whose ledger was cleared is a new one: no page can know of the one before."""
    old, other = opened(profile, address), opened(profile, address)
    assert old.evaluate(CHARGE % 1) == "recorded"

    deleted = other.evaluate(
        """new Promise((resolve) => {
            const request = indexedDB.deleteDatabase("hearsay-telemetry app");
            request.onsuccess = () => resolve("deleted");
            request.onblocked = () => resolve("blocked");
        })"""
    )

    assert deleted == "deleted"
    assert old.evaluate(CHARGE % 2) == "recorded"
    assert state_of(old)["ledger"][METRIC]["epochs"] == [[2, 2]]


def test_a_closed_store_takes_nothing(tab: Page) -> None:
    assert tab.evaluate(CHARGE % 1) == "recorded"

    tab.evaluate("device.store.close()")

    assert tab.evaluate(CHARGE % 2) == "store"
