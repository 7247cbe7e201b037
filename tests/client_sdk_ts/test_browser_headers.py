"""What a browser adds to the requests of a page is in the guide, header by header."""

from __future__ import annotations

import re
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.docs.pages import ROOT, text_of
from tests.support.device.loopback import LoopbackServer, running
from tests.support.node import Node
from tests.support.sites.capsules import make_keys

GUIDE: Final = "docs/guide/typescript.md"
# What the SDK sets itself, and what carries any request.
OURS: Final = {
    *("accept", "authorization", "content-length", "content-type", "host", "connection"),
    *("access-control-request-headers", "access-control-request-method"),
}
EXPORTS: Final = """
export { Client, memoryStore, noOptOuts } from "./dist/index.js";
export { everything } from "./dist/all.js";
export { relay } from "./dist/parts/relay.js";
"""
SEND: Final = """async ([registry, way]) => {
  const { everything, Client, memoryStore, noOptOuts, relay } = hearsay;
  const client = new Client({
    endpoint: "https://nowhere.invalid", writeKey: "a-key", registry, consent: "granted", ...way,
    mechanisms: [...everything, relay], store: memoryStore(), optOuts: noOptOuts,
  });
  client.record("theme", "dark");
  await client.flush(20_000);
}"""


class Recorder(LoopbackServer):
    """Serves an empty page, lets every origin in, and keeps the headers of questions and posts."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.headers: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self._answer(200, b"<!doctype html><title>app</title>")

    def do_OPTIONS(self) -> None:
        self._keep()
        self._answer(204)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._keep()
        self._answer(503)

    def _keep(self) -> None:
        self.server.headers.append({name.lower(): text for name, text in self.headers.items()})

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        for name in ("Origin", "Headers", "Methods"):
            self.send_header(f"Access-Control-Allow-{name}", "*")
        self.send_header("Access-Control-Allow-Headers", "authorization")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def page(node: Node, browser: Browser) -> Page:
    words = ("--bundle", "--format=iife", "--global-name=hearsay", "--log-level=error")
    # an init script is a function of its own
    done = node.tool("esbuild", *words, "--footer:js=globalThis.hearsay = hearsay;", stdin=EXPORTS)
    assert done.returncode == 0, done.stderr
    blank = browser.new_page()
    blank.add_init_script(done.stdout)
    return blank


@pytest.mark.parametrize("by_relay", [False, True], ids=["collector", "relay"])
def test_a_browser_adds_to_an_upload_what_the_guide_names(
    page: Page, by_relay: bool, tmp_path: Path
) -> None:
    registry = compiled(Registry.from_file(ROOT / "examples" / "metrics.toml"))
    with running(Recorder()) as server:
        page.goto(f"http://localhost:{server.port}/")
        url = f"http://127.0.0.1:{server.port}"
        key = make_keys(tmp_path).relay_key
        way: dict[str, Any] = {"relay": url, "relayKey": key} if by_relay else {"endpoint": url}

        page.evaluate(SEND, [registry, way])

    question, sent = server.headers
    assert (set(question) | set(sent)) - OURS <= documented_headers()
    assert {"user-agent", "accept-language", "origin"} <= set(question)
    assert sent["user-agent"] == question["user-agent"] != "hearsay/1"
    assert sent["accept-language"] == "*" != question["accept-language"]
    assert ("authorization" in sent) is not by_relay


def documented_headers() -> set[str]:
    """Return the headers that the guide says a browser adds."""
    (row,) = re.findall(r"^\| headers of the browser \|([^|]+)\|", text_of(GUIDE), re.M)
    return {name.lower() for name in re.findall(r"`([\w-]+)`", row)}
