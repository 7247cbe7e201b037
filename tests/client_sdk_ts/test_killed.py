"""A Node device that is killed at any moment: what is charged is queued or sent, once."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk.core.base64url import from_base64url
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from client_sdk.storage.ledger import WEEK
from collector.planning.compilation import compiled
from tests.support.device.registries import BOOLEAN, HEAD, table
from tests.support.node import PACKAGE, Node
from tests.support.store.processes import until_ended

PROGRAM: Final = "build/tests/programs/killed.js"
MOST_ROUNDS: Final = 3  # that a child completes before it is killed in the next one
NANO: Final = 100_000_000  # of every report
REGISTRY: Final = HEAD + "".join(
    (
        *(table(f"m{i}", BOOLEAN, every='"1h"', epsilon='"0.1"') for i in range(3)),
        table("any", BOOLEAN, every='"1d"', aggregate='"any"', otherwise="false", epsilon='"0.1"'),
    )
)


def kill_each(node: Node, words: list[str], kills: int) -> None:
    """Let one child after the other work, each until a chance moment of some round of it."""
    chance, round_time = random.SystemRandom(), 0.05
    for child in range(kills):
        process = subprocess.Popen(
            [node.program, PROGRAM, *words, str(child)], cwd=PACKAGE, stdout=subprocess.PIPE
        )
        with until_ended(process, signal.SIGKILL):
            assert process.stdout is not None
            if chance.random() < 0.9:  # the others may be killed before they have begun
                for _ in range(chance.randint(1, MOST_ROUNDS)):
                    began = time.monotonic()
                    assert process.stdout.read(1), "the child ended by itself"
                    round_time = min(time.monotonic() - began, 0.1)
            time.sleep(round_time * chance.random())


def document(node: Node, words: list[str]) -> Any:
    """Return what the device keeps."""
    done = node.run(PROGRAM, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reports_of(body: str) -> set[tuple[str, int, str]]:
    """Return the reports of an upload whose columns have one payload each."""
    return {
        (from_base64url(column["metric"]).hex(), column["epoch"], column["payloads"])
        for column in json.loads(body)["columns"]
    }


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_doubles_and_overspends_nothing(
    node: Node, kills: int, tmp_path: Path
) -> None:
    """Law: every charge has its one report, waiting, sealed or sent; a retry is the same bytes;
    no week is over its cap; the document is whole."""
    (tmp_path / "metrics.json").write_text(compiled(Registry.from_text(REGISTRY)), "utf-8")
    words = [str(tmp_path / name) for name in ("device", "log", "metrics.json")]

    kill_each(node, words, kills)

    state, bodies = document(node, words), defaultdict(set)
    arrived = (tmp_path / "log").read_text("ascii").splitlines()
    for body in (*arrived, *(upload["body"] for upload in state["uploads"])):
        bodies[json.loads(body)["id"]].add(body)
    reports = {(r["digest"], r["epoch"], r["payload"]) for r in state["reports"]}
    reports |= {report for (body, *_) in bodies.values() for report in reports_of(body)}
    accounts = {digest: account for digest, account in state["ledger"].items() if digest}
    charges = {
        (digest, epoch)
        for digest, account in accounts.items()
        for first, last in account["epochs"]
        for epoch in range(first, last + 1)
    }
    spent = sum(account["nano"] for account in accounts.values())
    costs = [cost for account in state["ledger"].values() for cost in account["costs"]]
    weeks = [
        sum(cost["nano"] for cost in costs if end - WEEK < cost["last"] <= end)
        for end in {cost["last"] for cost in costs}
    ]
    assert not state["doubt"]
    assert len(arrived) > kills // 10
    assert all(len(same) == 1 for same in bodies.values())
    assert len(reports) == len(charges)
    assert spent == NANO * len(charges)
    assert {(digest, epoch) for digest, epoch, _ in reports} == charges
    assert max(weeks) <= Caps().week
