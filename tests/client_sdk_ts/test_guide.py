"""The programs of docs/guide/typescript.md and of the package's README, as a newcomer runs them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from client_sdk.registry import Registry
from collector.planning.compilation import compiled
from tests.docs.pages import blocks, only
from tests.support.node import PACKAGE, Node
from tests.support.sites.site import Site, running_site
from tests.support.store.servers import needs_real

GUIDE: Final = "docs/guide/typescript.md"
README: Final = "client_sdk_ts/README.md"
MAX_PART: Final = 25_000  # bytes, gzipped, of a part with cryptography
KEY, TOKEN = "a-write-key-of-your-own", "a-read-token-of-your-own"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the registry of the guide, compiled, and the package as npm would link it."""
    ((_, registry),) = [block for block in blocks("docs/guide/embed.md") if block[0] == "toml"]
    (tmp_path / "metrics.toml").write_text(registry, "utf-8")
    (tmp_path / "metrics.json").write_text(compiled(Registry.from_text(registry)), "utf-8")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "hearsay-telemetry").symlink_to(PACKAGE)
    return tmp_path


@pytest.fixture
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    store = tmp_path_factory.mktemp("store")
    with running_site(store, folder / "metrics.toml", KEY, TOKEN) as running:
        yield running


@pytest.mark.real
@needs_real
def test_the_first_programs_report(node: Node, folder: Path, site: Site) -> None:
    """Each is a person of its own."""
    for number, page in enumerate((GUIDE, README), start=1):
        program = folder / str(number) / "app.mjs"
        program.parent.mkdir()
        text = only(page, "js").replace("http://127.0.0.1:8000", site.url)
        assert site.url in text
        program.write_text(text.replace('"metrics.json"', '"../metrics.json"'), "utf-8")

        done = node.run(program, cwd=program.parent)

        assert (done.returncode, done.stderr) == (0, "")
        assert site.wait_for_reports("ui.theme", number) == number
    assert done.stdout == "1 report is with the collector\n"


def test_what_a_browser_imports_holds_no_module_of_node(node: Node, folder: Path) -> None:
    (folder / "page.js").write_text('export * from "hearsay-telemetry";', "utf-8")
    words = ("--bundle", "--format=esm", "--platform=browser")

    done = node.tool("esbuild", "page.js", *words, cwd=folder)

    assert (done.returncode, done.stderr) == (0, "")
    assert "indexedDB" in done.stdout
    assert "node:" not in done.stdout


def test_who_imports_no_relay_or_tokens_has_nothing_of_it_and_who_does_has_little(
    node: Node, folder: Path
) -> None:
    bundles = []
    for module in ("", "/mechanisms", "/parts/relay", "/parts/tokens"):
        (folder / "page.js").write_text(f'export * from "hearsay-telemetry{module}";', "utf-8")
        words = ("--bundle", "--minify", "--format=esm", "--platform=browser")
        done = node.tool("esbuild", "page.js", *words, cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        bundles.append(done.stdout)

    assert ["message/ohttp-req" in bundle for bundle in bundles] == [False, False, True, False]
    assert ["Hearsay-Token" in bundle for bundle in bundles] == [False, False, False, True]
    for bundle in bundles[2:]:
        assert len(gzip.compress(bundle.encode(), 9)) <= MAX_PART
