"""The device in TypeScript: bytes in a bundle beside other SDKs, and time in Node and Chromium.

Run: ``make bench ARGS=typescript``; ``ARGS="typescript --write"`` puts the tables into
docs/guide/costs.md.  It builds the package, and installs the other SDKs in a temporary folder by
npm, at the versions below.

A bundle is what an application of one line makes: esbuild, minified, for browsers, then gzip -9.
The registry is data of the application and is left out.  Reports are randomized in new processes
of Node, one after the other, and what is shown is the median of ROUNDS in processor time, since
other work on the machine adds less to that; ``record`` is timed by the clock on the wall.

``record`` is called CALLS times, each in another epoch, so that each makes a report, and the client
writes them into a file or IndexedDB meanwhile.  What it sends is acknowledged by no collector.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from benchmarks.lib.page import PAGES, publish, verdict
from benchmarks.lib.page import table as markdown
from benchmarks.lib.registries import items, registry_text
from client_sdk import Registry
from client_sdk.mechanisms import load
from collector.planning.compilation import compiled
from tests.client_sdk_ts.channels import MECHANISMS, write_channel, write_value
from tests.support.node import PACKAGE, Node, build, nodes
from tests.support.sites.browsing import browser_path, running_browser

PAGE: Final = PAGES / "guide" / "costs.md"
PROGRAM: Final = Path(__file__).with_suffix(".mjs")
SCRIPT: Final = Path(__file__).with_name("typescript_page.js")
ROUNDS: Final = 5  # processes a number
READS: Final = 25  # processes that read a registry
REPORTS: Final = 1_000_000  # of randomized response
CALLS: Final = 1_000  # of record
GROUP: Final = 10  # calls, after which the client has the time to write
GROUP_DELAY: Final = 260  # milliseconds; it writes four times a second at most
FEW: Final = 20_000  # of every other mechanism
BURST: Final = 100_000  # values
LONGEST_TASK: Final = 50.0  # milliseconds; a longer one is what browsers call a long task
GRR_BAR: Final = 2.0  # seconds of processor time for REPORTS
NODE_BAR: Final = 1.0  # milliseconds of record, 99 of 100 calls
CHROMIUM_BAR: Final = 5.0
METRICS: Final = 100  # of a registry that is read
READ_BAR: Final = 25.0  # milliseconds of processor time
BARS: Final = {  # KB, gzipped
    "hearsay, one mechanism": 10.0,
    "hearsay, all mechanisms": 16.0,
    "hearsay, the relay's part alone": 25.0,
    "hearsay, the tokens' part alone": 25.0,
}

CLIENT: Final = (
    "new Client({ endpoint, writeKey, registry, mechanisms, consent: 'granted', store })"
    ".record('dark_mode', true);"
)
BROWSER: Final = "import { Client, indexedDbStore } from 'hearsay-telemetry';"
GIVEN: Final = "const { endpoint, writeKey, registry } = globalThis.app;"


class Bundle(NamedTuple):
    """A line of an application, and the package that it needs, unless it is ours."""

    name: str
    package: str
    source: str


BUNDLES: Final = (
    Bundle(
        "hearsay, one mechanism",
        "",
        f"{BROWSER} import {{ grr }} from 'hearsay-telemetry/mechanisms/grr'; {GIVEN}"
        f" const mechanisms = [grr], store = indexedDbStore('app'); {CLIENT}",
    ),
    Bundle(
        "hearsay, all mechanisms",
        "",
        f"{BROWSER} import {{ allMechanisms as mechanisms }} from 'hearsay-telemetry/mechanisms';"
        f" {GIVEN} const store = indexedDbStore('app'); {CLIENT}",
    ),
    Bundle(
        "hearsay, one mechanism and a relay",
        "",
        f"{BROWSER} import {{ grr }} from 'hearsay-telemetry/mechanisms/grr';"
        f" import {{ relay }} from 'hearsay-telemetry/parts/relay'; {GIVEN}"
        f" const mechanisms = [grr, relay], store = indexedDbStore('app'); {CLIENT}",
    ),
    Bundle(
        "hearsay, the relay's part alone",
        "",
        "import { relay } from 'hearsay-telemetry/parts/relay'; globalThis.part = relay;",
    ),
    Bundle(
        "hearsay, the tokens' part alone",
        "",
        "import { tokens } from 'hearsay-telemetry/parts/tokens'; globalThis.part = tokens;",
    ),
    Bundle(
        "@aptabase/web",
        "@aptabase/web@0.5.0",
        "import { init, trackEvent } from '@aptabase/web'; init('A-EU-1');"
        " trackEvent('dark_mode');",
    ),
    Bundle(
        "@plausible-analytics/tracker",
        "@plausible-analytics/tracker@0.4.6",
        "import { init, track } from '@plausible-analytics/tracker';"
        " init({ domain: 'app.example' }); track('dark_mode', {});",
    ),
    Bundle(
        "@mozilla/glean",
        "@mozilla/glean@5.0.10",
        "import Glean from '@mozilla/glean/web';"
        " import Flag from '@mozilla/glean/private/metrics/boolean';"
        " Glean.initialize('app', true, { channel: 'release' }); new Flag({ category: 'app',"
        " name: 'dark', sendInPings: ['events'], lifetime: 'ping', disabled: false }).set(true);",
    ),
    Bundle(
        "posthog-js",
        "posthog-js@1.449.2",
        "import posthog from 'posthog-js'; posthog.init('key'); posthog.capture('dark_mode');",
    ),
)


class Size(NamedTuple):
    """Bytes of a bundle."""

    minified: int
    gzipped: int


def bundle_sizes(node: Node, bundles: Iterable[Bundle] = BUNDLES) -> dict[str, Size]:
    """Return what each of *bundles* weighs."""
    bundles = tuple(bundles)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text('{"private": true}', "utf-8")
        packages = [bundle.package for bundle in bundles if bundle.package]
        if packages:
            words = ("install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            subprocess.run(
                [*node.npm, *words, *packages], cwd=folder, env=node.environment, check=True
            )
        (folder / "node_modules").mkdir(exist_ok=True)
        (folder / "node_modules" / "hearsay-telemetry").symlink_to(PACKAGE)
        return {bundle.name: _size(node, folder, bundle.source) for bundle in bundles}


def _size(node: Node, folder: Path, source: str) -> Size:
    bundle = _bundle(node, folder, source, "--format=esm").encode()
    return Size(len(bundle), len(gzip.compress(bundle, 9)))


def _bundle(node: Node, folder: Path, source: str, *options: str) -> str:
    entry = folder / "entry.js"
    entry.write_text(source, "utf-8")
    usual = ("--bundle", "--minify", "--platform=browser", "--preserve-symlinks")
    done = node.tool("esbuild", str(entry), *usual, *options, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def size_table(sizes: Mapping[str, Size]) -> str:
    """Return the sizes as Markdown, with our bars."""
    lines = []
    for name, size in sizes.items():
        bar = BARS.get(name)
        met = None if bar is None else size.gzipped <= bar * 1_000
        cells = f"{size.minified / 1e3:.1f}", f"{size.gzipped / 1e3:.1f}"
        lines.append((name, *cells, "" if bar is None else f"≤ {bar:.0f} KB", verdict(met)))
    return markdown(("bundle", "KB", "KB gzipped", "bar", ""), lines)


def run(
    node: Node, mode: str, jobs: Sequence[Mapping[str, Any]], processes: int = ROUNDS
) -> list[dict[str, float]]:
    """Return the medians of what *jobs* take in *processes*."""
    rounds = []
    for _ in range(processes):
        words = (str(PROGRAM), str(PACKAGE / "dist"), mode)
        done = node.run(*words, stdin=json.dumps(jobs), timeout=600)
        if done.returncode:
            raise RuntimeError(done.stderr)
        rounds.append(json.loads(done.stdout))
    return [
        {key: median(result[key] for result in results) for key in results[0]}
        for results in zip(*rounds, strict=True)
    ]


def randomize_jobs() -> list[dict[str, Any]]:
    """Return a job a mechanism: epsilon 1, and a domain of 16, of numbers 101 steps."""
    return [
        {
            "mechanism": name,
            "channel": write_channel(mechanism),
            "value": write_value(_value(name, mechanism.domain_size)),
            "reports": REPORTS if name == "grr" else FEW,
        }
        for name in MECHANISMS
        for mechanism in [load(name)("1", _size_of(name))]
    ]


def _size_of(name: str) -> int:
    return 101 if f"numbers.{name}" in load(name).__module__ else 16


def _value(name: str, size: int) -> Any:
    if f"numbers.{name}" in load(name).__module__:
        return Fraction(size, 3)
    by_name = {
        "sampled_item": frozenset({1, 3}),
        "padding_sampling": frozenset({1, 3}),
        "privset": frozenset({1, 3}),
        "pckv_ue": {2: Fraction(1, 3)},
        "pckv_grr": {2: Fraction(1, 3)},
        "pem": b"dark mode",
    }
    return by_name.get(name, 3)


def randomize_table(jobs: Sequence[Mapping[str, Any]], costs: Sequence[Mapping[str, float]]) -> str:
    """Return the times of reports as Markdown: that of the bar, and the range of all others."""
    lines, others = [], []
    for job, cost in zip(jobs, costs, strict=True):
        micro, seconds = cost["processor"] / job["reports"] * 1e6, cost["processor"]
        if job["reports"] != REPORTS:
            others.append(micro)
            continue
        bar = f"10⁶ in ≤ {GRR_BAR:.0f} s: {seconds:.2f} s"
        name = f"`{job['mechanism']}`"
        lines.append((name, f"{micro:.1f} µs", bar, verdict(seconds <= GRR_BAR)))
    span = f"{min(others):.1f} to {max(others):.1f} µs"
    lines.append((f"{len(others)} other mechanisms", span, "", ""))
    return markdown(("a report in Node", "processor time", "bar", ""), lines)


def record_job() -> dict[str, Any]:
    """Return what is recorded: a metric of three items, by randomized response."""
    text = registry_text({"theme": items("grr", 3)}, epsilon="0.1")
    return {
        "registry": json.loads(compiled(Registry.from_text(text))),
        "name": "theme",
        "values": ["v0", "v1", "v2"],
        "calls": CALLS,
        "group": GROUP,
        "delay": GROUP_DELAY,
    }


def burst_job() -> dict[str, Any]:
    """Return what comes in one turn: a count, of which all values of a day add up."""
    own = f'type = "count"\nmin = 0\nmax = {BURST}\nstep = 1\nunit = "runs"\naggregate = "sum"'
    text = registry_text({"runs": f'{own}\nmechanism = "duchi"'}, epsilon="0.1")
    registry = json.loads(compiled(Registry.from_text(text)))
    return {"registry": registry, "name": "runs", "calls": BURST}


def record_in_chromium(node: Node) -> dict[str, dict[str, float]] | None:
    """Return what a page of a secure origin takes to record, or None without a browser."""
    program = browser_path()
    if program is None:
        return None
    source = "export * from 'hearsay-telemetry';" + "".join(
        f"export {{ {path.rpartition('/')[2]} }} from 'hearsay-telemetry/{path}';"
        for path in ("mechanisms/grr", "mechanisms/duchi", "types/count", "parts/aggregates")
    )
    with tempfile.TemporaryDirectory() as name, running_browser(program) as browser:
        folder = Path(name)
        (folder / "node_modules").mkdir()
        (folder / "node_modules" / "hearsay-telemetry").symlink_to(PACKAGE)
        bundle = _bundle(node, folder, source, "--format=iife", "--global-name=hearsay")
        page = browser.new_page()
        empty = "<!doctype html><title>app</title>"
        page.route("**/*", lambda route: route.fulfill(body=empty, content_type="text/html"))
        page.goto("https://app.example/")
        page.add_script_tag(content=bundle)
        jobs = {"record": record_job(), "burst": burst_job()}
        costs: dict[str, dict[str, float]] = page.evaluate(SCRIPT.read_text("utf-8"), jobs)
        return costs


def record_table(
    in_node: Mapping[str, Mapping[str, float]], in_page: Mapping[str, Mapping[str, float]] | None
) -> str:
    """Return the times of ``record`` as Markdown."""
    lines = [_record_line("Node, a file", in_node["record"], NODE_BAR)]
    if in_page is not None:
        lines.append(_record_line("Chromium, IndexedDB", in_page["record"], CHROMIUM_BAR))
        long = int(in_page["record"]["long"])
        lines.append(("Chromium: tasks above 50 ms", "", f"{long}", "", "0", verdict(not long)))
    lines.append(_burst_line("Node", in_node["burst"]))
    if in_page is not None:
        lines.append(_burst_line("Chromium", in_page["burst"]))
    return markdown(("`record`", "median", "99 %", "longest", "bar", ""), lines)


def _record_line(where: str, costs: Mapping[str, float], bar: float) -> tuple[str, ...]:
    if costs["recorded"] != CALLS:
        raise RuntimeError(f"recorded={costs['recorded']}: must be {CALLS}")
    p50, p99, most = (f"{costs[key]:.2f} ms" for key in ("p50", "p99", "most"))
    return (where, p50, p99, most, f"99 % ≤ {bar:.0f} ms", verdict(costs["p99"] <= bar))


def _burst_line(where: str, costs: Mapping[str, float]) -> tuple[str, ...]:
    if costs["recorded"] != BURST:
        raise RuntimeError(f"recorded={costs['recorded']}: must be {BURST}")
    name = f"{where}: the longest task after 10⁵ values in {costs['loop']:.0f} ms"
    met = verdict(costs["longest"] <= LONGEST_TASK)
    return (name, "", "", f"{costs['longest']:.0f} ms", f"≤ {LONGEST_TASK:.0f} ms", met)


def read_job() -> dict[str, Any]:
    """Return a registry of METRICS: categories of 3 to 12 items, and numbers."""
    number = 'type = "number"\nmin = 0\nmax = 100\nstep = 0.5\nunit = "s"\nmechanism = "duchi"'
    kinds = [number if i % 3 else items("grr", 3 + i % 10) for i in range(METRICS)]
    text = registry_text({f"metric_{i}": own for i, own in enumerate(kinds)}, epsilon="0.1")
    return {"registry": compiled(Registry.from_text(text))}


def read_table(job: Mapping[str, Any], cost: Mapping[str, float]) -> str:
    """Return the time until a registry is read as Markdown."""
    if cost["metrics"] != METRICS:
        raise RuntimeError(f"metrics={cost['metrics']}: must be {METRICS}")
    size = f"{METRICS} metrics, {len(job['registry']) / 1e3:.0f} KB"
    time = f"{cost['processor']:.0f} ms"
    line = (size, time, f"≤ {READ_BAR:.0f} ms", verdict(cost["processor"] <= READ_BAR))
    return markdown(("a compiled registry in a new Node", "processor time", "bar", ""), [line])


def main() -> None:
    """Print the tables, or write them with ``--write``."""
    node = next(nodes(), None)
    if node is None:
        print("no Node of version 20 or later here")
        return
    build(node)
    jobs = randomize_jobs()
    (recording,) = run(node, "record", [record_job()], processes=1)
    (burst,) = run(node, "burst", [burst_job()])
    tables = (
        size_table(bundle_sizes(node)),
        record_table({"record": recording, "burst": burst}, record_in_chromium(node)),
        read_table(read_job(), *run(node, "read", [read_job()], processes=READS)),
        randomize_table(jobs, run(node, "randomize", jobs)),
    )
    publish((PAGE, {"typescript": "\n\n".join(tables)}))
