"""A real Chromium: the same payloads as Node's, and entropy that no worker of a page shares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page

from tests.client_sdk_ts.channels import MECHANISMS, vector_job
from tests.support.enumeration.vectors import cases
from tests.support.node import Node

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
