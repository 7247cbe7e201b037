"""The examples in TypeScript are built as their scripts say, and report to a real collector.

Pages run in a real Chromium, on another origin than the collector's.  Electron's binary is not
installed: its main process runs in Node, over a stand-in for the module ``electron``.  So does the
extension, over a stand-in for ``vscode``, which hands events to a sender as VS Code does.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from client_sdk.registry import Registry
from collector.planning.typescript import typescript_module
from tests.support.device.loopback import serving_files
from tests.support.node import EXAMPLES, NO_MODULES, ModulesMissingError, Node, install_examples
from tests.support.patience import PATIENCE
from tests.support.sites.browsing import NARROW
from tests.support.sites.shown_site import cookie_of
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

pytestmark = [pytest.mark.real, needs_real]

REGISTRY: Final = EXAMPLES.parent / "metrics.toml"
KEY: Final = "a-write-key-of-your-own"
TOKEN: Final = "a-read-token-of-your-own"
DEFAULT: Final = "http://127.0.0.1:8000"  # where the examples look for a collector
# The program that drives this browser stands for a person.
PERSON: Final = "Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false })"


@pytest.fixture(scope="module")
def built(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each example, built by the words of its script."""
    try:
        install_examples(node)
    except ModulesMissingError:
        pytest.skip(NO_MODULES)
    folder = tmp_path_factory.mktemp("examples")
    scripts: dict[str, str] = json.loads((EXAMPLES / "package.json").read_text("utf-8"))["scripts"]
    for text in scripts.values():
        program, *words = text.replace("out/", f"{folder}/").split()
        if program == "esbuild":
            done = node.tool(program, *words, cwd=EXAMPLES)
            assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def origin(built: Path) -> Iterator[str]:
    """Where the pages are served from."""
    with serving_files(built) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def site(built: Path, origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    store = tmp_path_factory.mktemp("store")
    settings = {"HEARSAY_ORIGINS": origin}
    with running_site(store, REGISTRY, KEY, TOKEN, settings=settings) as running:
        for name in ("page.html", "react.html"):
            text = (EXAMPLES / name).read_text("utf-8")
            assert text.count(DEFAULT) == 2
            (built / name).write_text(text.replace(DEFAULT, running.url), "utf-8")
        yield running


@pytest.fixture
def faults() -> list[str]:
    """What went wrong in the console of ``phone``; empty at the end of a test."""
    return []


@pytest.fixture
def phone(browser: Browser, faults: list[str]) -> Iterator[Page]:
    """A fresh browser of a phone's size."""
    context = browser.new_context(viewport=NARROW, is_mobile=True, has_touch=True)
    context.add_init_script(PERSON)

    def keep(line: ConsoleMessage) -> None:
        if line.type == "error" and not line.location["url"].endswith("/favicon.ico"):
            faults.append(line.text)

    context.on("console", keep)
    context.on("weberror", lambda error: faults.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert faults == []


def test_every_example_has_the_types_that_it_says(node: Node, built: Path) -> None:
    done = node.tool("tsc", "-p", "tsconfig.json", cwd=EXAMPLES)

    assert (done.returncode, done.stdout) == (0, "")
    assert len(list(built.iterdir())) >= 4


def test_the_metrics_are_made_from_the_registry_of_the_examples() -> None:
    made = (EXAMPLES / "metrics.ts").read_text("utf-8")

    assert made == typescript_module(Registry.from_file(REGISTRY))


def test_a_page_of_phone_size_sees_its_own_report_in_the_dashboard(
    phone: Page, site: Site, origin: str
) -> None:
    """The walk of a newcomer."""
    before = site.reports("theme")

    phone.goto(f"{origin}/page.html")
    expect(phone.locator("#notice")).to_contain_text("editor would like to learn")
    phone.get_by_role("button", name="Yes").tap()
    phone.get_by_label("Theme").select_option("dark")
    phone.get_by_role("button", name="Send now").tap()
    expect(phone.locator("#state")).to_contain_text("granted: 1 recorded, 1 sent")
    expect(phone.locator("#shown")).to_contain_text("theme")
    assert site.wait_for_reports("theme", before + 1) == before + 1

    phone.context.add_cookies([cookie_of(site.url, TOKEN)])
    phone.goto(f"{site.url}/metric/theme")
    expect(phone.locator("main")).to_contain_text(f"{before + 1} report")


def test_a_page_keeps_its_answer_and_a_report_is_made_once(
    phone: Page, site: Site, origin: str
) -> None:
    phone.goto(f"{origin}/page.html")
    phone.get_by_role("button", name="Yes").tap()
    phone.get_by_label("Theme").select_option("dark")
    phone.get_by_role("button", name="Send now").tap()
    expect(phone.locator("#state")).to_contain_text("1 sent")
    site.wait_until_folded()
    before = site.reports("theme")

    phone.reload()  # which records how long that took, and no second theme
    expect(phone.locator("#question")).to_be_hidden()
    phone.get_by_label("Theme").select_option("system")
    phone.get_by_role("button", name="Send now").tap()
    expect(phone.locator("#state")).to_contain_text("granted: 1 recorded, 1 sent")

    site.wait_until_folded()
    assert site.reports("theme") == before


def test_a_no_sends_nothing(phone: Page, site: Site, origin: str) -> None:
    sent: list[str] = []
    phone.on("request", lambda request: sent.append(request.url))

    phone.goto(f"{origin}/page.html")
    phone.get_by_role("button", name="No", exact=True).tap()
    phone.get_by_label("Theme").select_option("dark")
    phone.get_by_role("button", name="Send now").tap()
    expect(phone.locator("#state")).to_contain_text("denied: 0 recorded, 0 sent")

    assert [url for url in sent if url.startswith(site.url)] == []


def test_the_hooks_of_react_report_once_however_often_they_render(
    phone: Page, site: Site, origin: str
) -> None:
    before = site.reports("theme")

    phone.goto(f"{origin}/react.html")
    phone.get_by_role("button", name="Yes").tap()
    for theme in ("dark", "system", "light"):
        phone.locator("select").select_option(theme)
    phone.get_by_role("button", name="Send now").tap()
    expect(phone.locator("#state")).to_contain_text("granted: 1 sent")

    site.wait_until_folded()
    assert site.reports("theme") == before + 1


def test_a_page_of_an_origin_that_is_not_listed_cannot_report(
    phone: Page, faults: list[str], site: Site, origin: str
) -> None:
    """The control of the walk: the same page under another name of this machine."""
    before = site.reports("theme")
    other = origin.replace("127.0.0.1", "localhost")
    blocked: list[str] = []
    phone.on("requestfailed", lambda request: blocked.append(request.url))

    phone.goto(f"{other}/page.html")
    phone.get_by_role("button", name="Yes").tap()
    phone.get_by_label("Theme").select_option("dark")
    with phone.expect_event("requestfailed"):
        phone.get_by_role("button", name="Send now").tap()

    assert blocked == [f"{site.url}/v1/reports"]
    assert site.reports("theme") == before
    phone.context.close()
    assert any("CORS policy" in fault for fault in faults)
    faults.clear()


ELECTRON: Final = """
import { EventEmitter } from "node:events";
const handlers = new Map();
const handle = (name, f) => void handlers.set(name, f);
export const ipcMain = Object.assign(new EventEmitter(), { handle });
export const app = Object.assign(new EventEmitter(), {
  whenReady: async () => {},
  getPath: () => process.env.USER_DATA,
  quit: () => {
    let waits = false;
    app.emit("before-quit", { preventDefault: () => void (waits = true) });
    if (!waits) console.log(JSON.stringify({ notice, shown }));
  },
});
export const invoke = (name, ...rest) => handlers.get(name)({}, ...rest);
let notice, shown;
export const tell = (...words) => ([notice, shown] = words);
"""
WINDOW: Final = """
import { app, invoke, ipcMain, tell } from "electron";
await import("./electron_main.mjs");
await invoke("telemetry:consent", process.env.ANSWER);
ipcMain.emit("telemetry:record", {}, "theme", "dark");
ipcMain.emit("telemetry:record", {}, "no such metric", 1);
await invoke("telemetry:send");
tell(await invoke("telemetry:notice"), await invoke("telemetry:show"));
app.quit();
"""
VSCODE: Final = """
const settings = { telemetryLevel: process.env.LEVEL };
let changed;
const levels = { off: 0, crash: 1, error: 2, all: 3 };
exports.ColorThemeKind = { Light: 1, Dark: 2 };
exports.workspace = { getConfiguration: () => ({ get: (name) => settings[name] }) };
exports.window = { onDidChangeActiveColorTheme: (f) => ((changed = f), { dispose() {} }) };
exports.env = {
  createTelemetryLogger: (sender) => ({
    logUsage: (name, data) => {
      if (levels[settings.telemetryLevel] >= 3) sender.sendEventData(`me.editor/${name}`, data);
    },
    dispose: () => sender.flush(),
  }),
};
exports.change = (kind) => changed({ kind });
exports.turn = (level) => void (settings.telemetryLevel = level);
"""
HOST: Final = """
const vscode = require("vscode");
const extension = require("./vscode_extension.cjs");
const context = { globalStorageUri: { fsPath: process.env.USER_DATA }, subscriptions: [] };
extension.activate(context);
vscode.change(2);
setTimeout(async () => {
  if (process.env.THEN) vscode.turn(process.env.THEN);
  await Promise.all(context.subscriptions.map((each) => each.dispose()));
  await extension.deactivate();
}, 400);
"""


def hosted(node: Node, built: Path, folder: Path, files: dict[str, str], **more: str) -> str:
    """Run ``start`` among *files* and what was built, and return what it prints."""
    for bundle in built.glob("*js"):
        shutil.copy(bundle, folder)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    variables = {"USER_DATA": str(folder / "data"), **more}
    start = next(name for name in files if name.startswith("start"))
    done = node.run(start, cwd=folder, variables=variables, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("answer", "reports"), [("granted", 1), ("denied", 0)])
def test_the_main_process_of_electron_reports_for_its_windows(
    node: Node, built: Path, site: Site, tmp_path: Path, answer: str, reports: int
) -> None:
    before = site.reports("theme")
    package = '{"type": "module", "exports": "./index.js"}'
    files = {
        "start.mjs": WINDOW,
        "node_modules/electron/index.js": ELECTRON,
        "node_modules/electron/package.json": package,
    }

    printed = hosted(node, built, tmp_path, files, EDITOR_COLLECTOR=site.url, ANSWER=answer)

    told: Any = json.loads(printed)
    assert "editor would like to learn" in told["notice"]
    site.wait_until_folded()
    assert site.reports("theme") == before + reports


@pytest.mark.parametrize(
    ("level", "then", "reports"), [("all", "", 1), ("all", "off", 0), ("error", "", 0)]
)
def test_the_extension_of_vs_code_obeys_the_level_of_the_user(
    node: Node, built: Path, site: Site, tmp_path: Path, level: str, then: str, reports: int
) -> None:
    """Law: what was recorded before the user turned it down is not sent either."""
    before = site.reports("theme")
    files = {"start.cjs": HOST, "node_modules/vscode/index.js": VSCODE}

    hosted(node, built, tmp_path, files, EDITOR_COLLECTOR=site.url, LEVEL=level, THEN=then)

    site.wait_until_folded()
    assert site.reports("theme") == before + reports
