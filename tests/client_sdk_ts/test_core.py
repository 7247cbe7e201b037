"""Epochs and reasons of the device in TypeScript are those of the device in Python."""

from __future__ import annotations

import json
import random
from typing import Final

from client_sdk.core.epoch import EVERY, day_of, epoch_label, epoch_of, epoch_start
from client_sdk.core.stats import MISTAKES, Reason
from tests.support.node import Node

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
