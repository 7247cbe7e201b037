"""The build in TypeScript, attacked from outside: no metric tells more than its registry claims."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.randomness import system_randomness
from client_sdk.registry import Registry
from collector.audit.audit import FAILS, audit
from collector.audit.device import Device, audit_device
from collector.planning.compilation import compiled
from tests.client_sdk_ts.registries import EVERY_TYPE
from tests.support.device.registries import BOOLEAN, CATEGORY, HEAD, LOCATION, NUMBER, table
from tests.support.node import PACKAGE, Node

FEW: Final = 1_000  # reports a side
MANY: Final = pytest.param(20_000, marks=pytest.mark.slow)
# Mechanisms that no metric of EVERY_TYPE has; an audit of all would look at 25 metrics twice.
OTHERS: Final = HEAD + "".join(
    table(f"{kind}_{number}", fields, mechanism=f'"{name}"')
    for kind, fields, mechanisms in (
        (
            "item",
            CATEGORY,
            "sue oue subset_selection pgr olh block_design hadamard exponential cover",
        ),
        ("place", LOCATION, "hierarchy"),
        ("number", NUMBER, "piecewise hybrid minimax one_bit_mean square_wave discrete_laplace"),
    )
    for number, name in enumerate(mechanisms.split())
)
# Draws a coin of chance p twice where the mechanism asks for it once, and takes the better.
CHEAT: Final = """
import { createInterface } from "node:readline";
import { ByteRandomness } from "hearsay-telemetry-build/src/core/randomness.js";
import { systemSource } from "hearsay-telemetry-build/src/core/entropy.js";
import { readRegistry } from "hearsay-telemetry-build/src/registry/read.js";
import { everything, allTypes } from "hearsay-telemetry-build/src/all.js";
import { readFileSync } from "node:fs";

const registry = readRegistry(readFileSync(process.argv[2], "utf8"), allTypes);
const honest = new ByteRandomness(systemSource());
const cheat = {
  uniform: (n) => honest.uniform(n),
  bernoulli: (p) => honest.bernoulli(p) || honest.bernoulli(p),
  bernoulliBits: (p, n) => honest.bernoulliBits(p, n),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { metric: name, value } = JSON.parse(line);
  const metric = registry.metrics.get(name);
  const mechanism = everything.find((each) => each.name === metric.mechanism);
  const payload = mechanism.randomize(metric.channel, metric.encode(value), cheat);
  console.log(JSON.stringify({ payload: Buffer.from(payload).toString("hex") }));
}
"""


def command(node: Node, program: Path, registry: Registry, folder: Path) -> str:
    path = folder / "metrics.json"
    path.write_text(compiled(registry), "utf-8")
    return shlex.join([node.program, str(program), str(path)])


@pytest.mark.parametrize("draws", [FEW, MANY])
@pytest.mark.parametrize("text", [EVERY_TYPE, OTHERS], ids=["types", "mechanisms"])
def test_no_metric_of_the_build_tells_more_than_it_claims(
    node: Node, tmp_path: Path, text: str, draws: int
) -> None:
    """A false alarm has a chance of 1e-9 a metric, however few draws there are."""
    registry = Registry.from_text(text)
    program = PACKAGE / "build" / "tests" / "programs" / "device.js"

    with Device(command(node, program, registry, tmp_path)) as device:
        audits = audit_device(device, registry, draws, 2)

    assert len(audits) == len(list(registry))
    assert [(found.mechanism, found.gravest) for found in audits if found.verdict == FAILS] == []


def test_a_build_that_favours_the_truth_is_found(node: Node, tmp_path: Path) -> None:
    """The control: a coin of ε, tossed twice for the truth."""
    registry = Registry.from_text(HEAD + table("dark", BOOLEAN))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "hearsay-telemetry-build").symlink_to(PACKAGE / "build")
    (tmp_path / "cheat.mjs").write_text(CHEAT, "utf-8")

    with Device(command(node, tmp_path / "cheat.mjs", registry, tmp_path)) as device:
        [found] = audit_device(device, registry, 20_000)

    assert found.verdict == FAILS
    assert audit(registry.metric("dark").mechanism, system_randomness(), 20_000).verdict != FAILS
